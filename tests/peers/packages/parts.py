# SPDX-License-Identifier: Apache-2.0
"""Layers, losses, optimizers, metrics and tools: einops, entmax, kornia, pytorch-metric-learning, torch-optimizer,
torchmetrics, torchdiffeq, torchinfo, safetensors and others."""
import os
import tempfile

import torch
from torch import nn

from component import classify, component, floats, integers, sgd, squares


def _perceptron():
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 5))


# ---- einops ----

@component("einops", "Rearrange, Reduce, EinMix")
def _einops():
    from einops.layers.torch import EinMix, Rearrange, Reduce
    made = nn.Sequential(Rearrange("b c (h p) (w q) -> b (h w) (c p q)", p=4, q=4), nn.Linear(48, 16),
                         EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=16, d=8),
                         Reduce("b t d -> b d", "mean"), nn.Linear(8, 5))
    return made, classify(floats(2, 3, 8, 8))


@component("einops", "rearrange, repeat, einsum, pack")
def _einops_functions():
    from einops import einsum, pack, rearrange, reduce, repeat, unpack

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.project = nn.Linear(8, 12)
            self.first = nn.Parameter(floats(8))

        def forward(self, x):
            x, shapes = pack([repeat(self.first, "d -> b d", b=x.shape[0]), x], "b * d")
            q, k, v = rearrange(self.project(x), "b t (three h d) -> three b h t d", three=3, h=2)
            weights = einsum(q, k, "b h i d, b h j d -> b h i j").softmax(-1)
            first, rest = unpack(einsum(weights, v, "b h i j, b h j d -> b i h d").flatten(2), shapes, "b * d")
            return first + reduce(rest, "b t d -> b d", "max")
    return Model(), squares(floats(2, 6, 8))


# ---- losses ----

@component("entmax", "sparsemax and entmax15")
def _entmax():
    from entmax import entmax15, sparsemax
    numbers, weights = floats(4, 8), floats(4, 5)
    return _perceptron(), lambda module: ((sparsemax(module(numbers), dim=-1) + entmax15(module(numbers), dim=-1))
                                          * weights).sum()


@component("entmax", "Entmax15Loss")
def _entmax_loss():
    from entmax import Entmax15Loss
    numbers, target, loss = floats(4, 8), integers(5, 4), Entmax15Loss()
    return _perceptron(), lambda module: loss(module(numbers), target)


def _metric(name, **options):
    @component("pytorch-metric-learning", name)
    def make():
        from pytorch_metric_learning import losses
        loss = getattr(losses, name)(**options)
        numbers, labels = floats(12, 8), integers(3, 12)
        model = nn.ModuleDict({"model": _perceptron(), "loss": loss})
        return model, lambda module: module["loss"](module["model"](numbers), labels)


for _name in ("ContrastiveLoss", "TripletMarginLoss", "NTXentLoss", "MultiSimilarityLoss", "CircleLoss", "SupConLoss",
              "LiftedStructureLoss", "TupletMarginLoss"):
    _metric(_name)
for _name in ("ArcFaceLoss", "CosFaceLoss", "ProxyNCALoss", "NormalizedSoftmaxLoss", "ProxyAnchorLoss"):
    _metric(_name, num_classes=3, embedding_size=5)


@component("kornia", "SSIMLoss, DiceLoss, focal loss")
def _kornia_losses():
    import kornia

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inside = nn.Conv2d(3, 3, 3, padding=1)

        def forward(self, x, target):
            made = self.inside(x)
            return (kornia.losses.ssim_loss(made.sigmoid(), x.sigmoid(), 5) + kornia.losses.dice_loss(made, target)
                    + kornia.losses.focal_loss(made, target, alpha=0.5, gamma=2., reduction="mean"))
    images, target = floats(2, 3, 16, 16), integers(3, 2, 16, 16)
    return Model(), lambda module: module(images, target)


@component("kornia", "filters and colours")
def _kornia_filters():
    import kornia

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inside = nn.Conv2d(3, 3, 3, padding=1)

        def forward(self, x):
            x = kornia.filters.gaussian_blur2d(self.inside(x), (3, 3), (1., 1.))
            return kornia.filters.sobel(kornia.color.rgb_to_grayscale(x.sigmoid()))
    return Model(), squares(floats(2, 3, 16, 16))


@component("torchdiffeq", "odeint with dopri5")
def _odeint():
    from torchdiffeq import odeint

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 4))

        def forward(self, t, y):
            return self.net(y)
    start, times = floats(3, 4), torch.tensor([0., 0.5, 1.])
    return Model(), lambda module: (odeint(module, start, times, method="dopri5", rtol=1e-3, atol=1e-3) ** 2).mean()


@component("torchdiffeq", "odeint_adjoint with rk4")
def _odeint_adjoint():
    from torchdiffeq import odeint_adjoint

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 4))

        def forward(self, t, y):
            return self.net(y)
    start, times = floats(3, 4), torch.tensor([0., 0.5, 1.])
    return Model(), lambda module: (odeint_adjoint(module, start, times, method="rk4") ** 2).mean()


# ---- optimizers ----

def _optimizer(package, name, kind, **options):
    @component(package, name)
    def make():
        module, _, last = kind.rpartition(".")
        found = getattr(__import__(module, fromlist=[last]), last)
        return _perceptron(), classify(floats(4, 8)), lambda parameters: found(parameters, **options)


_optimizer("lion-pytorch", "Lion", "lion_pytorch.Lion", lr=1e-2, weight_decay=1e-2)
_optimizer("adabelief-pytorch", "AdaBelief", "adabelief_pytorch.AdaBelief", lr=1e-2, print_change_log=False)
_optimizer("adam-atan2-pytorch", "AdamAtan2", "adam_atan2_pytorch.AdamAtan2", lr=1e-2)
for _name in ("A2GradExp", "AdaBelief", "AdaBound", "Adafactor", "AdaMod", "AggMo", "DiffGrad", "Lamb", "NovoGrad", "PID",
              "QHAdam", "QHM", "RAdam", "Ranger", "SGDW", "SWATS", "Yogi"):
    _optimizer("torch-optimizer", _name, f"torch_optimizer.{_name}")


@component("pytorch-warmup", "LinearWarmup")
def _warmup():
    import pytorch_warmup

    def optimizer(parameters):
        made = torch.optim.AdamW(parameters, lr=1e-2)
        schedule, warmup = torch.optim.lr_scheduler.StepLR(made, 1, 0.5), pytorch_warmup.LinearWarmup(made, 4)
        step = made.step

        def both():
            step()
            with warmup.dampening():
                schedule.step()
        made.step = both
        return made
    return _perceptron(), classify(floats(4, 8)), optimizer


@component("ema-pytorch", "EMA")
def _ema():
    from ema_pytorch import EMA
    model = _perceptron()
    average = EMA(model, beta=0.9, update_after_step=0, update_every=1)
    numbers = floats(4, 8)

    def optimizer(parameters):
        made = sgd(model.parameters())
        step = made.step

        def both():
            step()
            average.update()
        made.step = both
        return made
    return average, lambda module: (module.model(numbers) ** 2).mean() + (module(numbers) ** 2).mean(), optimizer


# ---- metrics and tools ----

@component("torchmetrics", "classification")
def _classification():
    import torchmetrics.classification as metrics
    numbers, target = floats(16, 8), integers(5, 16)
    found = [metrics.MulticlassAccuracy(5), metrics.MulticlassF1Score(5), metrics.MulticlassAUROC(5),
             metrics.MulticlassConfusionMatrix(5), metrics.MulticlassPrecision(5)]

    def loss(module):
        logits = module(numbers)
        values = [metric(logits.detach().softmax(-1), target).float().sum() for metric in found]
        return nn.functional.cross_entropy(logits, target) + sum(values)
    return _perceptron(), loss


@component("torchmetrics", "regression and collections")
def _regression():
    import torchmetrics
    numbers, target = floats(16, 8), floats(16)
    found = torchmetrics.MetricCollection([torchmetrics.MeanSquaredError(), torchmetrics.R2Score(),
                                           torchmetrics.PearsonCorrCoef(), torchmetrics.MeanAbsoluteError()])

    def loss(module):
        result = module(numbers)[:, 0]
        values = found(result.detach(), target)
        return ((result - target) ** 2).mean() + sum(values.values())
    return _perceptron(), loss


@component("torchmetrics", "StructuralSimilarityIndexMeasure as a loss")
def _ssim():
    from torchmetrics.image import StructuralSimilarityIndexMeasure
    images = floats(2, 3, 16, 16).sigmoid()
    measure = StructuralSimilarityIndexMeasure(data_range=1.0)
    return nn.Conv2d(3, 3, 3, padding=1), lambda module: 1 - measure(module(images).sigmoid(), images)


@component("torchinfo", "summary")
def _summary():
    import torchinfo

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inside = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(),
                                        nn.Linear(4 * 36, 5))

        def forward(self, x):
            return self.inside(x)

    images = floats(2, 3, 8, 8)

    def loss(module):
        text = str(torchinfo.summary(module, input_size=(2, 3, 8, 8), verbose=0))
        return (module(images) ** 2).mean() + sum(map(ord, text)) * 1e-3  # the same text, or another loss
    return Model(), loss


@component("safetensors", "save_file and load_file")
def _safetensors():
    from safetensors.torch import load, load_file, save, save_file
    numbers = floats(4, 8)

    def loss(module):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.safetensors")
            save_file(module.state_dict(), path)
            module.load_state_dict(load_file(path))
        whole = integers(5, 3)
        types = ("int64", "int16", "int8", "uint16", "uint32", "uint64")
        again = load(save({"x": module[0].weight.detach(), **{name: whole.to(getattr(torch, name)) for name in types}}))
        return (module(numbers) ** 2).mean() + again["x"].sum() + sum(again[name].sum() for name in types)
    return _perceptron(), loss


@component("safetensors", "save_model and load_model")
def _safetensors_model():
    from safetensors.torch import load_model, save_model
    numbers = floats(4, 8)

    def loss(module):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.safetensors")
            save_model(module, path)
            other = _perceptron()
            load_model(other, path)
        return (module(numbers) ** 2).mean() + (other(numbers) ** 2).mean().detach()
    return _perceptron(), loss


# ---- reinforcement learning ----

def _policy(name, kind, **options):
    @component("stable-baselines3", name)
    def make():
        import gymnasium
        import numpy
        from stable_baselines3.common.policies import ActorCriticPolicy
        space = gymnasium.spaces.Box(-1, 1, (6,), numpy.float32)
        actions = (gymnasium.spaces.Discrete(3) if kind == "discrete" else
                   gymnasium.spaces.Box(-1, 1, (2,), numpy.float32))
        policy = ActorCriticPolicy(space, actions, lambda _: 1e-3, **options)
        seen = floats(8, 6)
        taken = integers(3, 8) if kind == "discrete" else floats(8, 2)

        def loss(module):
            values, log_probability, entropy = module.evaluate_actions(seen, taken)
            return (values ** 2).mean() - log_probability.mean() - 0.01 * entropy.mean()
        return policy, loss


_policy("ActorCriticPolicy, discrete actions", "discrete")
_policy("ActorCriticPolicy, continuous actions", "continuous")
_policy("ActorCriticPolicy, orthogonal weights and ReLU", "discrete", activation_fn=nn.ReLU, net_arch=[16, 16])


@component("stable-baselines3", "QNetwork of DQN")
def _dqn():
    import gymnasium
    import numpy
    from stable_baselines3.dqn.policies import DQNPolicy
    policy = DQNPolicy(gymnasium.spaces.Box(-1, 1, (6,), numpy.float32), gymnasium.spaces.Discrete(3), lambda _: 1e-3)
    seen, taken, target = floats(8, 6), integers(3, 8, 1), floats(8, 1)

    def loss(module):
        return nn.functional.smooth_l1_loss(module.q_net(seen).gather(1, taken), target)
    return policy, loss
