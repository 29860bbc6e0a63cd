# SPDX-License-Identifier: Apache-2.0
"""mindtorch_v2.nn against torch.nn: outputs, gradients, printed forms, state_dicts, errors, profiles.

usage: torch_nn.py [-v]      (PYTHONPATH has mindtorch_v2)

A case is written once, as a function of the library, and run with both: modules get the same weights
(by numpy), inputs are the same numbers, and everything a case gives back is compared: tensors by value,
texts exactly, exceptions by type and words. After a forward every gradient is compared too.
"""
import sys
import warnings

import mindtorch_v2
from nn_twin import CASES, Skipped, case, main, raised, warned

# ---- values and gradients of modules ----

MODULES = {
    "linear": lambda t: t.run(t.nn.Linear(3, 4), t.x(5, 3)),
    "linear_nobias_1d": lambda t: t.run(t.nn.Linear(3, 4, bias=False), t.x(3)),
    "linear_3d": lambda t: t.run(t.nn.Linear(3, 4), t.x(2, 5, 3)),
    "bilinear": lambda t: t.run(t.nn.Bilinear(3, 2, 4), t.x(5, 3), t.x(5, 2)),
    "conv1d": lambda t: t.run(t.nn.Conv1d(4, 6, 3, 2, 1, 1, 2), t.x(2, 4, 9)),
    "conv1d_same_even": lambda t: t.run(t.nn.Conv1d(2, 3, 4, padding="same"), t.x(2, 2, 9)),
    "conv2d": lambda t: t.run(t.nn.Conv2d(3, 4, (3, 2), stride=(2, 1), padding=1, dilation=2),
                              t.x(2, 3, 9, 8)),
    "conv2d_unbatched": lambda t: t.run(t.nn.Conv2d(3, 4, 3), t.x(3, 6, 6)),
    "conv2d_same": lambda t: t.run(t.nn.Conv2d(3, 4, (4, 3), padding="same", dilation=(1, 2)),
                                   t.x(2, 3, 7, 6)),
    "conv2d_valid": lambda t: t.run(t.nn.Conv2d(3, 4, 2, padding="valid", bias=False), t.x(2, 3, 7, 6)),
    "conv2d_circular": lambda t: t.run(t.nn.Conv2d(2, 2, 3, padding=1, padding_mode="circular"),
                                       t.x(1, 2, 5, 4)),
    "conv2d_reflect": lambda t: t.run(t.nn.Conv2d(2, 2, 3, padding=(1, 2), padding_mode="reflect"),
                                      t.x(1, 2, 5, 4)),
    "conv1d_replicate": lambda t: t.run(t.nn.Conv1d(2, 2, 3, padding=2, padding_mode="replicate"),
                                        t.x(1, 2, 5)),
    "embedding": lambda t: t.run(t.nn.Embedding(7, 3, padding_idx=2), t.ids(7, 4, 5)),
    "layer_norm": lambda t: t.run(t.nn.LayerNorm((4, 3)), t.x(2, 4, 3)),
    "layer_norm_plain": lambda t: t.run(t.nn.LayerNorm(3, elementwise_affine=False), t.x(4, 3)),
    "layer_norm_nobias": lambda t: t.run(t.nn.LayerNorm(3, bias=False), t.x(4, 3)),
    "rms_norm": lambda t: t.run(t.nn.RMSNorm((4, 3)), t.x(2, 4, 3)),
    "rms_norm_eps": lambda t: t.run(t.nn.RMSNorm(3, eps=0.1), t.x(2, 4, 3)),
    "group_norm": lambda t: t.run(t.nn.GroupNorm(2, 6), t.x(3, 6, 4, 2)),
    "group_norm_plain": lambda t: t.run(t.nn.GroupNorm(3, 6, affine=False), t.x(3, 6, 5)),
    "batch_norm1d": lambda t: t.run(t.nn.BatchNorm1d(3), t.x(5, 3)),
    "batch_norm1d_3d": lambda t: t.run(t.nn.BatchNorm1d(3, momentum=None), t.x(5, 3, 2)),
    "batch_norm1d_eval": lambda t: t.run(t.nn.BatchNorm1d(3).eval(), t.x(5, 3)),
    "batch_norm1d_untracked": lambda t: t.run(t.nn.BatchNorm1d(3, track_running_stats=False).eval(),
                                              t.x(5, 3)),
    "batch_norm2d": lambda t: t.run(t.nn.BatchNorm2d(3), t.x(2, 3, 4, 4)),
    "batch_norm2d_plain": lambda t: t.run(t.nn.BatchNorm2d(3, affine=False), t.x(2, 3, 4, 4)),
    "max_pool1d": lambda t: t.run(t.nn.MaxPool1d(3, 2, 1), t.x(2, 3, 9)),
    "max_pool1d_indices": lambda t: t.run(t.nn.MaxPool1d(3, 2, 1, return_indices=True), t.x(2, 3, 9)),
    "max_pool2d": lambda t: t.run(t.nn.MaxPool2d((3, 2), 2, 1, ceil_mode=True), t.x(2, 3, 9, 8)),
    "max_pool2d_indices": lambda t: t.run(t.nn.MaxPool2d(2, return_indices=True), t.x(2, 3, 6, 6)),
    "avg_pool1d": lambda t: t.run(t.nn.AvgPool1d(3, 2, 1), t.x(2, 3, 9)),
    "avg_pool2d": lambda t: t.run(t.nn.AvgPool2d(3, 2, 1, count_include_pad=False), t.x(2, 3, 9, 8)),
    "avg_pool2d_divisor": lambda t: t.run(t.nn.AvgPool2d(3, divisor_override=5), t.x(2, 3, 9, 8)),
    "adaptive_avg_pool1d": lambda t: t.run(t.nn.AdaptiveAvgPool1d(4), t.x(2, 3, 9)),
    "adaptive_avg_pool2d": lambda t: t.run(t.nn.AdaptiveAvgPool2d((3, None)), t.x(2, 3, 9, 8)),
    "adaptive_avg_pool2d_one": lambda t: t.run(t.nn.AdaptiveAvgPool2d(1), t.x(2, 3, 9, 8)),
    "adaptive_max_pool2d": lambda t: t.run(t.nn.AdaptiveMaxPool2d(2), t.x(2, 3, 9, 8)),
    "flatten": lambda t: t.run(t.nn.Flatten(), t.x(2, 3, 4)),
    "unflatten": lambda t: t.run(t.nn.Unflatten(1, (2, -1)), t.x(2, 6)),
    "identity": lambda t: t.run(t.nn.Identity(3, a=1), t.x(2, 3)),
    "pixel_shuffle": lambda t: t.run(t.nn.PixelShuffle(2), t.x(2, 8, 3, 2)),
    "zero_pad2d": lambda t: t.run(t.nn.ZeroPad2d((1, 0, 2, 1)), t.x(2, 3, 4, 4)),
    "constant_pad1d": lambda t: t.run(t.nn.ConstantPad1d((1, -1), 2.5), t.x(2, 3, 4)),
    "cosine_similarity": lambda t: t.run(t.nn.CosineSimilarity(dim=1), t.x(4, 3), t.x(4, 3)),
    "pairwise_distance": lambda t: t.run(t.nn.PairwiseDistance(), t.x(4, 3), t.x(4, 3)),
    "prelu": lambda t: t.run(t.nn.PReLU(3), t.x(4, 3, 2)),
    "dropout_eval": lambda t: t.run(t.nn.Dropout(0.5).eval(), t.x(4, 3)),
    "dropout2d_eval": lambda t: t.run(t.nn.Dropout2d(0.5).eval(), t.x(4, 3, 2, 2)),
    "dropout_zero": lambda t: t.run(t.nn.Dropout(0.0), t.x(4, 3)),
    "dropout_one": lambda t: t.run(t.nn.Dropout(1.0), t.x(4, 3)),
    "sequential": lambda t: t.run(t.nn.Sequential(t.nn.Linear(3, 4), t.nn.ReLU(), t.nn.Linear(4, 2)),
                                  t.x(5, 3)),
}
ACTIVATIONS = (
    "ReLU()", "ReLU(True)", "LeakyReLU(0.2)", "LeakyReLU(0.2, True)", "ELU(1.5)", "ELU(1.5, True)", "GELU()",
    "GELU('tanh')", "SiLU()", "SiLU(True)", "Sigmoid()", "Tanh()", "Softmax(1)", "LogSoftmax(-1)",
    "Softmin(1)",
    "LogSigmoid()", "Softplus()", "Softplus(2.0, 1.0)", "Hardtanh()", "Hardtanh(-0.5, 0.7, True)", "ReLU6()",
    "ReLU6(True)", "Mish()", "Mish(True)", "Hardsigmoid()", "Hardswish()", "Hardswish(True)", "Softsign()",
    "SELU()",
    "SELU(True)", "CELU(1.3)", "CELU(1.3, True)", "GLU()", "Threshold(0.1, 20.0)",
    "Threshold(0.1, 20.0, True)",
    "Tanhshrink()", "PReLU()", "Softmax2d()",
)  # fmt: skip


def activation(text):
    def run(t):
        module = eval("nn." + text, {"nn": t.nn})  # noqa: S307 - our own texts above
        x = t.x(2, 4, 6, 4, scale=3.0)
        return [repr(module)] + t.run(module, x * 1)

    return run


for _text in ACTIVATIONS:
    MODULES["activation " + _text] = activation(_text)
for _name, _run in MODULES.items():
    CASES["module " + _name] = _run

# ---- losses ----

for _reduction in ("mean", "sum", "none"):
    for _name in ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss"):
        CASES[f"loss {_name} {_reduction}"] = lambda t, n=_name, r=_reduction: t.run(
            getattr(t.nn, n)(reduction=r), t.x(4, 3, scale=2.0), t.x(4, 3)
        )
    CASES[f"loss SmoothL1Loss beta {_reduction}"] = lambda t, r=_reduction: t.run(
        t.nn.SmoothL1Loss(reduction=r, beta=0.3), t.x(4, 3), t.x(4, 3)
    )
    CASES[f"loss HuberLoss delta {_reduction}"] = lambda t, r=_reduction: t.run(
        t.nn.HuberLoss(reduction=r, delta=0.3), t.x(4, 3), t.x(4, 3)
    )
    CASES[f"loss CrossEntropyLoss {_reduction}"] = lambda t, r=_reduction: t.run(
        t.nn.CrossEntropyLoss(reduction=r), t.x(6, 5), t.ids(5, 6)
    )
    CASES[f"loss CrossEntropyLoss weight ignore smoothing {_reduction}"] = lambda t, r=_reduction: t.run(
        t.nn.CrossEntropyLoss(t.x(5, low=0.1, grad=False), ignore_index=2, reduction=r, label_smoothing=0.1),
        t.x(6, 5), t.ids(5, 6),
    )  # fmt: skip
    CASES[f"loss CrossEntropyLoss probabilities {_reduction}"] = lambda t, r=_reduction: t.run(
        t.nn.CrossEntropyLoss(reduction=r, label_smoothing=0.2), t.x(6, 5), t.x(6, 5, grad=False).softmax(1)
    )
    CASES[f"loss CrossEntropyLoss images {_reduction}"] = lambda t, r=_reduction: t.run(
        t.nn.CrossEntropyLoss(reduction=r), t.x(2, 5, 3, 2), t.ids(5, 2, 3, 2)
    )
    CASES[f"loss NLLLoss {_reduction}"] = lambda t, r=_reduction: t.run(
        t.nn.NLLLoss(t.x(5, low=0.1, grad=False), ignore_index=1, reduction=r), t.x(6, 5), t.ids(5, 6)
    )
    CASES[f"loss BCELoss {_reduction}"] = lambda t, r=_reduction: t.run(
        t.nn.BCELoss(reduction=r), t.x(4, 3, low=0.05), t.x(4, 3, low=0.0, grad=False)
    )
    CASES[f"loss BCELoss weight {_reduction}"] = lambda t, r=_reduction: t.run(
        t.nn.BCELoss(t.x(3, low=0.1, grad=False), reduction=r), t.x(4, 3, low=0.05),
        t.x(4, 3, low=0.0, grad=False)
    )
    CASES[f"loss BCEWithLogitsLoss {_reduction}"] = lambda t, r=_reduction: t.run(
        t.nn.BCEWithLogitsLoss(reduction=r), t.x(4, 3), t.x(4, 3, low=0.0, grad=False)
    )
    CASES[f"loss BCEWithLogitsLoss weights {_reduction}"] = lambda t, r=_reduction: t.run(
        t.nn.BCEWithLogitsLoss(
            t.x(4, 3, low=0.1, grad=False), reduction=r, pos_weight=t.x(3, low=0.1, grad=False)
        ),
        t.x(4, 3), t.x(4, 3, low=0.0, grad=False),
    )  # fmt: skip
for _reduction in ("batchmean", "sum", "none", "mean"):
    for _log in (False, True):
        CASES[f"loss KLDivLoss {_reduction} {_log}"] = lambda t, r=_reduction, log=_log: t.run(
            t.nn.KLDivLoss(reduction=r, log_target=log), t.x(4, 3).log_softmax(1),
            t.x(4, 3, grad=False).log_softmax(1) if log else t.x(4, 3, grad=False).softmax(1),
        )  # fmt: skip


@case
def loss_weights(t):
    F, x, y, w = t.F, t.x(4, 3), t.x(4, 3, grad=False), t.x(4, 3, low=0.1, grad=False)
    found = []
    for reduction in ("mean", "sum", "none"):
        found.append(F.mse_loss(x, y, weight=w, reduction=reduction))
        found.append(F.l1_loss(x, y, weight=w, reduction=reduction))
        found.append(F.huber_loss(x, y, weight=w, reduction=reduction))
    return t.backward(tuple(found))


@case
def kl_div_zero_target(t):
    x = t.x(2, 3)
    target = t.torch.tensor([[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])
    return t.backward(t.F.kl_div(x, target, reduction="sum"))


# ---- attention ----


def attention(make, *shapes, masks=None, **call):
    def run(t):
        module = make(t.nn)
        inputs = [t.x(*shape) for shape in shapes]
        if len(inputs) == 1:
            inputs = inputs * 3
        elif len(inputs) == 2:
            inputs = [inputs[0], inputs[1], inputs[1]]
        return t.run(module, *inputs, **call, **(masks(t) if masks else {}))

    return run


def causal(t, size):
    return t.torch.ones(size, size, dtype=t.torch.bool).tril().logical_not()


ATTENTION = {
    "self": attention(lambda nn: nn.MultiheadAttention(8, 2), (5, 2, 8)),
    "self, batch first": attention(lambda nn: nn.MultiheadAttention(8, 2, batch_first=True), (2, 5, 8)),
    "self, no weights": attention(lambda nn: nn.MultiheadAttention(8, 2), (5, 2, 8), need_weights=False),
    "per head weights": attention(lambda nn: nn.MultiheadAttention(8, 2), (5, 2, 8),
                                  average_attn_weights=False),
    "two": attention(lambda nn: nn.MultiheadAttention(8, 4, bias=False), (5, 2, 8), (6, 2, 8)),
    "two, batch first": attention(lambda nn: nn.MultiheadAttention(8, 4, batch_first=True), (2, 5, 8),
                                  (2, 6, 8)),
    "three": attention(lambda nn: nn.MultiheadAttention(8, 2), (5, 2, 8), (6, 2, 8), (6, 2, 8)),
    "unbatched": attention(lambda nn: nn.MultiheadAttention(8, 2), (5, 8)),
    "unbatched, no weights": attention(lambda nn: nn.MultiheadAttention(8, 2), (5, 8), need_weights=False),
    "kdim vdim": attention(lambda nn: nn.MultiheadAttention(8, 2, kdim=3, vdim=4), (5, 2, 8), (6, 2, 3),
                           (6, 2, 4)),
    "bias kv": attention(lambda nn: nn.MultiheadAttention(8, 2, add_bias_kv=True), (5, 2, 8)),
    "zero attn": attention(
        lambda nn: nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True), (5, 2, 8),
        masks=lambda t: {"attn_mask": causal(t, 5),
                         "key_padding_mask": t.torch.zeros(2, 5, dtype=t.torch.bool)},
    ),
    "bool mask": attention(
        lambda nn: nn.MultiheadAttention(8, 2), (5, 2, 8), masks=lambda t: {"attn_mask": causal(t, 5)}
    ),
    "float mask 3d": attention(
        lambda nn: nn.MultiheadAttention(8, 2), (5, 2, 8),
        masks=lambda t: {"attn_mask": t.x(4, 5, 5, grad=False)}
    ),
    "float mask 3d, no weights": attention(
        lambda nn: nn.MultiheadAttention(8, 2), (5, 2, 8), need_weights=False,
        masks=lambda t: {"attn_mask": t.x(4, 5, 5, grad=False)},
    ),
    "padding": attention(
        lambda nn: nn.MultiheadAttention(8, 2), (5, 2, 8),
        masks=lambda t: {"key_padding_mask": t.torch.tensor([[False] * 5, [False] * 3 + [True] * 2])},
    ),
    "padding, no weights": attention(
        lambda nn: nn.MultiheadAttention(8, 2), (5, 2, 8), need_weights=False,
        masks=lambda t: {"key_padding_mask": t.torch.tensor([[False] * 5, [False] * 3 + [True] * 2])},
    ),
    "causal": attention(
        lambda nn: nn.MultiheadAttention(8, 2), (5, 2, 8), need_weights=False, is_causal=True,
        masks=lambda t: {"attn_mask": causal(t, 5)},
    ),
    "causal and padding": attention(
        lambda nn: nn.MultiheadAttention(8, 2), (5, 2, 8), need_weights=False, is_causal=True,
        masks=lambda t: {
            "attn_mask": causal(t, 5),
            "key_padding_mask": t.torch.tensor([[False] * 5, [False] * 3 + [True] * 2]),
        },
    ),
}  # fmt: skip
for _name, _run in ATTENTION.items():
    CASES["attention " + _name] = _run


def layer(nn, **given):
    return nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, **given)


TRANSFORMERS = {
    "layer": lambda t: t.run(layer(t.nn), t.x(5, 2, 8)),
    "layer norm_first gelu": lambda t: t.run(layer(t.nn, norm_first=True, activation="gelu"), t.x(5, 2, 8)),
    "layer batch_first nobias": lambda t: t.run(layer(t.nn, batch_first=True, bias=False), t.x(2, 5, 8)),
    "layer causal": lambda t: t.run(layer(t.nn), t.x(5, 2, 8), src_mask=causal(t, 5), is_causal=True),
    "encoder": lambda t: t.run(t.nn.TransformerEncoder(layer(t.nn), 2, t.nn.LayerNorm(8)), t.x(5, 2, 8)),
    "encoder mask": lambda t: t.run(t.nn.TransformerEncoder(layer(t.nn), 2), t.x(5, 2, 8), mask=causal(t, 5)),
    "encoder padding": lambda t: t.run(
        t.nn.TransformerEncoder(layer(t.nn), 2), t.x(5, 2, 8),
        src_key_padding_mask=t.torch.tensor([[False] * 5, [False] * 3 + [True] * 2]),
    ),
}  # fmt: skip
for _name, _run in TRANSFORMERS.items():
    CASES["transformer " + _name] = _run


@case
def sdpa(t):
    q, k, v = t.x(2, 4, 5, 8), t.x(2, 4, 6, 8), t.x(2, 4, 6, 8)
    F = t.F
    mask = t.x(5, 6, grad=False)
    outputs = (
        F.scaled_dot_product_attention(q, k, v),
        F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=0.3),
        F.scaled_dot_product_attention(q, k[:, :, :5], v[:, :, :5], is_causal=True),
        F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True),
    )
    return t.backward(outputs)


# ---- functions ----


@case
def functions(t):
    F, x, y = t.F, t.x(4, 6), t.x(4, 6)
    return t.backward((
        F.normalize(x), F.normalize(x, p=1.0, dim=0), F.glu(x), F.softsign(x), F.tanhshrink(x),
        F.softmin(x, 1),
        F.cosine_similarity(x, y), F.pairwise_distance(x, y), F.pad(x, (1, 2)),
        F.pad(x, (1, -2, -1, 3), value=4.0),
        F.logsigmoid(x), F.softmax(x, 1, dtype=t.torch.float64), F.threshold(x, 0.2, 1.0), F.hardsigmoid(x),
        F.prelu(x, t.x(6)), F.group_norm(x, 3), F.rms_norm(x, (6,)), F.layer_norm(x, (6,), eps=0.1),
    ))  # fmt: skip


@case
def pads(t):
    F, x = t.F, t.x(2, 3, 5, 4)
    return t.backward((
        F.pad(x, (1, 2, 2, 1), mode="reflect"), F.pad(x, (3, 2, 1, 5), mode="replicate"),
        F.pad(x, (1, 4, 2, 1), mode="circular"), F.pad(x, (0, 0, 0, 0, 1, 1)),
    ))  # fmt: skip


@case
def one_hot(t):
    return [t.F.one_hot(t.ids(5, 3, 2), 6), t.F.one_hot(t.torch.tensor([0, 2, 1]))]


# ---- printed forms, names ----


@case
def printed(t):
    nn = t.nn
    mods = [
        nn.Linear(2, 3), nn.Linear(2, 3, bias=False), nn.Bilinear(2, 3, 4), nn.Identity(),
        nn.Conv2d(4, 4, (3, 2), stride=2, padding=1, dilation=2, groups=2, bias=False),
        nn.Conv1d(4, 4, 3, padding="same", padding_mode="circular"), nn.Conv1d(1, 1, 1),
        nn.Embedding(3, 2, padding_idx=1), nn.Embedding(3, 2, norm_type=1.0), nn.LayerNorm((3, 4)),
        nn.LayerNorm(3, bias=False), nn.LayerNorm(3, elementwise_affine=False), nn.RMSNorm(3),
        nn.GroupNorm(2, 4),
        nn.BatchNorm1d(3), nn.BatchNorm2d(3, affine=False, momentum=None), nn.Dropout(0.1),
        nn.Dropout2d(0.3, True),
        nn.Flatten(), nn.Unflatten(1, (2, 2)), nn.MaxPool1d(2), nn.MaxPool2d((2, 3), 1, 1, ceil_mode=True),
        nn.AvgPool1d(2), nn.AvgPool2d(2, divisor_override=3), nn.AdaptiveAvgPool1d(3),
        nn.AdaptiveAvgPool2d((1, None)), nn.AdaptiveMaxPool2d(2), nn.MSELoss(), nn.CrossEntropyLoss(),
        nn.BCEWithLogitsLoss(), nn.KLDivLoss(), nn.HuberLoss(), nn.SmoothL1Loss(), nn.ZeroPad2d(2),
        nn.ConstantPad2d(1, 2.0), nn.PixelShuffle(2), nn.CosineSimilarity(), nn.MultiheadAttention(4, 2),
        nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2, enable_nested_tensor=False),
        nn.Sequential(nn.Linear(1, 2), nn.Sequential(nn.ReLU(), nn.Flatten())), nn.Sequential(), nn.Module(),
        nn.ModuleList([nn.Linear(2, 2) for _ in range(3)] + [nn.ReLU()]), nn.ModuleList(),
        nn.ModuleList([nn.Sequential(nn.ReLU(), nn.Tanh()) for _ in range(2)]),
        nn.ModuleDict({"b": nn.ReLU()}),
        nn.ParameterList([t.torch.zeros(2, 3), 3, t.torch.ones(1)]), nn.ParameterList([t.torch.zeros(1)]),
        nn.ParameterDict({"b": t.torch.zeros(2, 1), "a": t.torch.ones(1), "c": "x"}),
        nn.ModuleDict({"none": None}),
    ]  # fmt: skip
    return [repr(module) for module in mods]


@case
def parameter_names(t):
    nn = t.nn
    mods = [
        nn.Linear(2, 3), nn.Conv2d(2, 4, 3), nn.BatchNorm2d(3), nn.Embedding(4, 2), nn.LayerNorm(3),
        nn.MultiheadAttention(8, 2), nn.MultiheadAttention(8, 2, kdim=3, vdim=4, add_bias_kv=True),
        nn.TransformerEncoderLayer(8, 2, 16), nn.CrossEntropyLoss(weight=t.torch.ones(3)), nn.PReLU(2),
        nn.ParameterDict({"b": t.torch.zeros(1), "a": t.torch.zeros(1)}),
        nn.ParameterList([t.torch.zeros(1)]),
    ]  # fmt: skip
    found = []
    for module in mods:
        found.append([(name, tuple(p.shape), p.requires_grad) for name, p in module.named_parameters()])
        found.append(list(module._parameters))
        found.append([(name, tuple(b.shape), str(b.dtype).split(".")[-1]) for name,
                      b in module.named_buffers()])
        found.append([(key, value["version"]) for key, value in module.state_dict()._metadata.items()])
        found.append(list(module.state_dict()))
    return found


# ---- errors and warnings ----


@case
def module_errors(t):
    nn, torch = t.nn, t.torch
    Z = torch.zeros
    m = nn.Linear(2, 3)
    m.register_buffer("buf", Z(1))
    m.sub = nn.ReLU()
    seq = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    seq.register_buffer("buf", Z(1))
    state = dict(seq.state_dict())
    short = {k: v for k, v in state.items() if k != "0.weight"}
    calls = [
        lambda: nn.Module()(1), lambda: nn.Module().register_parameter("a", Z(1)),
        lambda: nn.Module().register_parameter(3, None), lambda: nn.Module().register_parameter("a.b", None),
        lambda: nn.Module().register_parameter("", None),
        lambda: nn.Module().register_parameter("train", None),
        lambda: nn.Module().register_buffer(3, None), lambda: nn.Module().register_buffer("a.b", None),
        lambda: nn.Module().register_buffer("", None), lambda: nn.Module().register_buffer("train", None),
        lambda: nn.Module().register_buffer("b", 3), lambda: nn.Module().add_module(3, None),
        lambda: nn.Module().add_module("a.b", None), lambda: nn.Module().add_module("", None),
        lambda: nn.Module().add_module("train", None), lambda: nn.Module().add_module("b", 3),
        lambda: nn.Sequential(nn.ReLU), lambda: setattr(m, "weight", Z(1)), lambda: setattr(m, "weight", 3),
        lambda: setattr(m, "sub", 3), lambda: setattr(m, "buf", 3), lambda: m.foo, lambda: delattr(m, "foo"),
        lambda: seq.get_submodule("x"), lambda: seq.get_submodule("0.weight"),
        lambda: seq.get_submodule("0.x.y"),
        lambda: seq.get_parameter("0"), lambda: seq.get_parameter("x"), lambda: seq.get_parameter(""),
        lambda: seq.get_buffer("0.weight"), lambda: seq.get_buffer("x"), lambda: seq.set_submodule("", m),
        lambda: seq.set_submodule("a.b", m), lambda: seq.set_submodule("a", 3),
        lambda: m.set_submodule("weight", m), lambda: m.set_submodule("q", seq, strict=True),
        lambda: seq.load_state_dict(3), lambda: seq.load_state_dict(short),
        lambda: seq.load_state_dict(dict(state, zz=Z(1), z2=Z(1))),
        lambda: seq.load_state_dict(dict(short, **{"zz": Z(1), "0.bias": Z(7)})),
        lambda: seq.load_state_dict(dict(state, **{"0.weight": "abc", "0.bias": Z(2, 2)}), strict=False),
        lambda: seq.train(3), lambda: seq.to(torch.int32), lambda: seq[5], lambda: seq[-3], lambda: seq + 3,
        lambda: seq * 0, lambda: seq * "a", lambda: nn.Sequential(3), lambda: nn.Sequential({"a": nn.ReLU()}),
        lambda: nn.Sequential(nn.ReLU()).insert(5, nn.ReLU()), lambda: nn.Sequential(nn.ReLU()).insert(0, 3),
        lambda: nn.Sequential(nn.ReLU()).pop(3), lambda: nn.ModuleList([nn.ReLU()])[3],
        lambda: nn.ModuleList([nn.ReLU()])["a"], lambda: nn.ModuleList([nn.ReLU()])(1),
        lambda: nn.ModuleList(3),
        lambda: nn.ModuleList().append(3), lambda: nn.ModuleDict()["x"], lambda: nn.ModuleDict().update(3),
        lambda: nn.ModuleDict().update([3]), lambda: nn.ModuleDict().update([(1, 2, 3)]),
        lambda: nn.ModuleDict().update([("a", 2)]), lambda: nn.ModuleDict().pop("q"),
        lambda: nn.ModuleDict({3: nn.ReLU()}), lambda: nn.ModuleDict({"keys": nn.ReLU()}),
        lambda: nn.ParameterList([Z(1)])[9], lambda: nn.ParameterList([Z(1)])(1), lambda: nn.ParameterList(3),
        lambda: nn.ParameterDict()["q"], lambda: nn.ParameterDict()(1), lambda: nn.ParameterDict(3),
        lambda: nn.ParameterDict([3]), lambda: nn.ParameterDict([(1, 2, 3)]),
        lambda: nn.ParameterDict().popitem(),
        lambda: nn.ParameterDict({"train": Z(1)}), lambda: nn.ParameterDict([(3, Z(1))]),
        lambda: nn.Parameter(Z(1, dtype=torch.int64)), lambda: nn.ParameterDict({"a": Z(1)}).pop("q"),
    ]  # fmt: skip
    return [raised(call) for call in calls]


@case
def layer_errors(t):
    nn, F, Z, torch = t.nn, t.F, t.torch.zeros, t.torch
    ints = torch.tensor([0, 1, 2])
    mha, q = nn.MultiheadAttention(8, 2), Z(5, 2, 8)
    calls = [
        lambda: nn.Dropout(1.5), lambda: F.dropout(Z(2), p=-1), lambda: F.dropout1d(Z(2), 0.5),
        lambda: F.mse_loss(Z(2), Z(2), reduction="foo"), lambda: F.huber_loss(Z(2), Z(2), delta=-1),
        lambda: F.smooth_l1_loss(Z(2), Z(2), beta=-1), lambda: F.mse_loss(Z(2), Z(2), weight=Z(3)),
        lambda: F.binary_cross_entropy(Z(2), Z(2, 2)),
        lambda: F.binary_cross_entropy_with_logits(Z(2), Z(2, 2)),
        lambda: F.cross_entropy(Z(2, 3), ints), lambda: F.cross_entropy(Z(3, 3), ints, label_smoothing=2.0),
        lambda: F.nll_loss(Z(2, 3), ints), lambda: F.kl_div(Z(2, 3), Z(2, 3), reduction="x"),
        lambda: F.embedding(ints, Z(3, 2), padding_idx=5), lambda: F.embedding(ints, Z(3, 2), padding_idx=-5),
        lambda: nn.Embedding(3, 2, padding_idx=5), lambda: nn.Embedding(3, 2, _weight=Z(2, 2)),
        lambda: nn.Embedding.from_pretrained(Z(2)), lambda: F.embedding(ints, Z(2, 2)),
        lambda: nn.BatchNorm1d(2)(Z(2)), lambda: nn.BatchNorm1d(2)(Z(2, 2, 2, 2)),
        lambda: nn.BatchNorm2d(2)(Z(2, 2)),
        lambda: nn.BatchNorm1d(2)(Z(1, 2)), lambda: nn.BatchNorm1d(2)(Z(3, 4)),
        lambda: F.batch_norm(Z(3, 2), None, None), lambda: nn.Conv2d(3, 4, 3, groups=2),
        lambda: nn.Conv2d(4, 3, 3, groups=2), lambda: nn.Conv2d(4, 4, 3, groups=0),
        lambda: nn.Conv2d(4, 4, 3, padding="same", stride=2),
        lambda: F.conv1d(Z(1, 1, 4), Z(1, 1, 3), padding="foo"),
        lambda: F.conv1d(Z(1, 1, 4), Z(1, 1, 3), padding="same", stride=2),
        lambda: nn.Conv2d(4, 4, 3)(Z(1, 3, 5, 5)), lambda: nn.Conv2d(4, 4, 3)(Z(3, 5)),
        lambda: nn.LayerNorm(3)(Z(2, 4)), lambda: nn.GroupNorm(3, 4), lambda: F.group_norm(Z(2, 4), 3),
        lambda: F.group_norm(Z(1, 4), 4), lambda: nn.Unflatten(1, 3), lambda: nn.Unflatten(1, (2, "a")),
        lambda: nn.MultiheadAttention(5, 2), lambda: nn.MultiheadAttention(0, 2), lambda: mha(q, q[0], q),
        lambda: mha(q[0, 0], q, q), lambda: mha(q[:, 0], q, q), lambda: mha(Z(5, 2, 6), q, q),
        lambda: mha(q, q, q, key_padding_mask=Z(3, 5)), lambda: mha(q, q, q, key_padding_mask=Z(5)),
        lambda: mha(q, q, q, attn_mask=Z(3, 5)), lambda: mha(q, q, q, attn_mask=Z(5)),
        lambda: mha(q, q, q, attn_mask=Z(2, 5, 5)),
        lambda: mha(q, q, q, attn_mask=Z(5, 5, dtype=torch.int32)),
        lambda: mha(q, q, q, is_causal=True), lambda: mha(q, q, Z(4, 2, 8)),
        lambda: nn.TransformerEncoderLayer(8, 2, activation="foo"), lambda: F.glu(Z(3)), lambda: nn.Linear(2),
        lambda: F.hardtanh(Z(2), 2.0, 1.0), lambda: F.linear(Z(2, 3), Z(4, 2)), lambda: nn.Softmax2d()(Z(2)),
    ]  # fmt: skip
    return [raised(call) for call in calls]


@case
def init_errors(t):
    init, Z = t.nn.init, t.torch.zeros
    calls = [
        lambda: init._calculate_fan_in_and_fan_out(Z(3)), lambda: init.kaiming_uniform_(Z(2, 2), mode="x"),
        lambda: init.calculate_gain("foo"), lambda: init.calculate_gain("leaky_relu", "a"),
        lambda: init.calculate_gain("leaky_relu", True), lambda: init.eye_(Z(2)),
        lambda: init.dirac_(Z(2, 2)),
        lambda: init.dirac_(Z(3, 2, 2), groups=2), lambda: init.orthogonal_(Z(2)),
        lambda: init.sparse_(Z(2), 0.1),
    ]  # fmt: skip
    gains = ["linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu"]
    exact = [init.eye_(Z(2, 3)), init.dirac_(Z(4, 2, 3), 2), init.dirac_(Z(2, 3, 3, 2)),
             init.constant_(Z(2), 3.0)]
    return [raised(call) for call in calls] + [init.calculate_gain(name) for name in gains] + exact


@case
def warnings_given(t):
    nn, F, Z = t.nn, t.F, t.torch.zeros
    return [
        warned(call)
        for call in (
            lambda: F.softmax(Z(2, 2)), lambda: F.log_softmax(Z(2)), lambda: F.mse_loss(Z(2), Z(2, 2)),
            lambda: F.l1_loss(Z(2), Z(2, 2)), lambda: F.mse_loss(Z(2), Z(2), size_average=False),
            lambda: F.mse_loss(Z(2), Z(2), reduce=False), lambda: nn.MSELoss(size_average=False),
            lambda: F.kl_div(Z(2, 3), t.torch.ones(2, 3)), lambda: nn.init.kaiming_uniform_(Z(0, 2)),
            lambda: nn.init.uniform(Z(1)), lambda: F.dropout2d(Z(2, 3, 4), 0.5), lambda: nn.Linear(0, 2),
            lambda: nn.MultiheadAttention(8, 2)(
                Z(5, 2, 8), Z(5, 2, 8), Z(5, 2, 8), attn_mask=Z(5, 5),
                key_padding_mask=Z(2, 5, dtype=t.torch.bool),
            ),
        )
    ]  # fmt: skip


# ---- state, hooks, utils ----


@case
def state_dict_rules(t):
    nn, torch = t.nn, t.torch
    model = t.fill(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)))
    model.register_buffer("skipped", torch.zeros(1), persistent=False)
    state = model.state_dict()
    other = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    results = [repr(other.load_state_dict(state))]
    short = {key: value for key, value in state.items() if "bias" not in key}
    results.append(repr(other.load_state_dict(dict(short, extra=1), strict=False)))
    del state["1.num_batches_tracked"]
    results.append(raised(lambda: other.load_state_dict(state)))
    results.append(repr(other.load_state_dict(dict(state))))
    keep = model.state_dict(keep_vars=True)
    results.append([value is model.get_parameter(key) for key, value in keep.items() if "0." in key])
    assigned = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    results.append(repr(assigned.load_state_dict(keep, assign=True)))
    results.append([assigned[0].weight is model[0].weight, assigned[0].weight.requires_grad, list(state)])
    return results + list(other.state_dict().values()) + list(assigned.state_dict().values())


@case
def backward_hooks(t):
    nn, log = t.nn, []
    model = t.fill(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)))
    model[1].register_full_backward_hook(lambda m, gi, go: log.extend([*gi, *go]))
    model[1].register_full_backward_pre_hook(lambda m, go: (go[0] * 2,))
    model[2].register_full_backward_hook(lambda m, gi, go: (gi[0] * 3,))
    model[0].register_full_backward_hook(lambda m, gi, go: log.extend([*gi, *go]))
    x = t.x(2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = t.backward(model(x), list(model.parameters()))
        model.zero_grad()
        model(x.detach()).sum().backward()
    return result + log + [p.grad for p in model.parameters()]


@case
def hook_errors(t):
    nn = t.nn

    def hooked(register, hook, **given):
        module = nn.Linear(2, 2)
        getattr(module, register)(hook, **given)
        return lambda: module(t.torch.ones(1, 2).requires_grad_()).sum().backward()

    return [
        raised(call)
        for call in (
            hooked("register_forward_pre_hook", lambda m, a, k: 3, with_kwargs=True),
            hooked("register_full_backward_hook", lambda m, gi, go: (gi[0], gi[0])),
            hooked("register_full_backward_pre_hook", lambda m, go: (go[0], go[0])),
        )
    ]


@case
def clip(t):
    nn = t.nn
    found = []
    for kind in (2.0, 1.0, float("inf")):
        model = t.fill(nn.Linear(3, 4))
        model(t.x(5, 3, grad=False)).pow(2).sum().backward()
        found.append(nn.utils.clip_grad_norm_(model.parameters(), 0.7, kind))
        found += [p.grad for p in model.parameters()]
        nn.utils.clip_grad_value_(model.parameters(), 0.05)
        found += [p.grad.clone() for p in model.parameters()]
    found.append(nn.utils.clip_grad_norm_([], 1.0))
    bad = nn.Parameter(t.torch.zeros(2))
    bad.grad = t.torch.full((2,), float("nan"))
    found.append(raised(lambda: nn.utils.clip_grad_norm_([bad], 1.0, error_if_nonfinite=True)))
    vector = nn.utils.parameters_to_vector(model.parameters())
    nn.utils.vector_to_parameters(vector * 2, model.parameters())
    return found + [vector] + list(model.parameters())


# ---- what a profile shows, at the caller's level ----


def shown(make, call, *needs):
    """The ops of a call; skipped where a row that torch shows does not exist here."""

    def run(t):
        missing = [name for name in needs if not hasattr(mindtorch_v2._C.ops, name)]
        if missing:
            raise Skipped(f"no row {', '.join(missing)}")
        given = make(t)
        call(t, *given)
        activity = t.torch.profiler.ProfilerActivity.CPU
        with t.torch.profiler.profile(activities=[activity]) as prof:
            call(t, *given)
        top = [e for e in prof.events() if e.cpu_parent is None]
        return [e.name for e in sorted(top, key=lambda e: e.time_range.start)]

    return run


def xy(t):
    return t.x(4, 6), t.x(4, 6, grad=False)


PROFILES = {
    "linear": shown(lambda t: (t.nn.Linear(6, 2), t.x(4, 6)), lambda t, m, x: m(x)),
    "training step": shown(
        lambda t: (t.nn.Sequential(t.nn.Linear(6, 8), t.nn.ReLU(), t.nn.Linear(8, 3)), t.x(4, 6),
                   t.ids(3, 4)),
        lambda t, m, x, y: t.F.cross_entropy(m(x), y).backward(),
    ),
    "conv same": shown(lambda t: (t.nn.Conv2d(2, 3, 3, padding="same"), t.x(1, 2, 5, 5)), lambda t, m,
                       x: m(x)),
    "batch_norm": shown(lambda t: (t.nn.BatchNorm1d(6), t.x(4, 6)), lambda t, m, x: m(x)),
    "layer_norm": shown(lambda t: (t.nn.LayerNorm(6), t.x(4, 6)), lambda t, m, x: m(x)),
    "group_norm": shown(lambda t: (t.x(4, 6),), lambda t, x: t.F.group_norm(x, 2), "group_norm"),
    "rms_norm": shown(lambda t: (t.x(4, 6),), lambda t, x: t.F.rms_norm(x, (6,)), "rms_norm"),
    "dropout": shown(lambda t: (t.x(4, 6),), lambda t, x: t.F.dropout(x)),
    "dropout in place": shown(
        lambda t: (t.x(4, 6, grad=False),), lambda t, x: t.F.dropout(x, inplace=True), "dropout_"
    ),
    "dropout2d": shown(lambda t: (t.x(2, 3, 4, 4),), lambda t, x: t.F.dropout2d(x), "feature_dropout"),
    "mse_loss": shown(xy, lambda t, x, y: t.F.mse_loss(x, y), "broadcast_tensors"),
    "l1_loss": shown(xy, lambda t, x, y: t.F.l1_loss(x, y), "broadcast_tensors"),
    "smooth_l1_loss": shown(xy, lambda t, x, y: t.F.smooth_l1_loss(x, y), "broadcast_tensors"),
    "huber_loss": shown(xy, lambda t, x, y: t.F.huber_loss(x, y), "broadcast_tensors", "huber_loss"),
    "kl_div": shown(xy, lambda t, x, y: t.F.kl_div(x, y, reduction="sum"), "kl_div"),
    "pad": shown(lambda t: (t.x(4, 6),), lambda t, x: t.F.pad(x, (1, 2)), "pad"),
    "normalize": shown(lambda t: (t.x(4, 6),), lambda t, x: t.F.normalize(x), "expand_as"),
    "embedding": shown(lambda t: (t.nn.Embedding(5, 3), t.ids(5, 4)), lambda t, m, x: m(x)),
    "attention": shown(
        lambda t: (t.nn.MultiheadAttention(8, 2), t.x(5, 2, 8)), lambda t, m,
        x: m(x, x, x)[0].sum().backward()
    ),
    "encoder": shown(
        lambda t: (t.nn.TransformerEncoder(layer(t.nn), 2), t.x(5, 2, 8)), lambda t, m,
        x: m(x).sum().backward()
    ),
    "backward hooks": shown(
        lambda t: (t.nn.Linear(6, 2), t.x(4, 6)),
        lambda t, m,
        x: (m.register_full_backward_hook(lambda *args: None).__enter__(), m(x).sum().backward()),
    ),
    "made": shown(
        lambda t: (), lambda t: (t.nn.Linear(3, 4), t.nn.Embedding(5, 2, padding_idx=1), t.nn.BatchNorm1d(3))
    ),
    "state": shown(lambda t: (t.nn.Linear(3, 4),), lambda t, m: m.load_state_dict(m.state_dict())),
    "clip, a list": shown(
        lambda t: ([t.nn.Parameter(t.torch.ones(3)), t.nn.Parameter(t.torch.ones(2))],),
        lambda t, ps: ([setattr(p, "grad", t.torch.ones(len(p))) for p in ps],
                       t.nn.utils.clip_grad_norm_(ps, 1.0), t.nn.utils.clip_grad_value_(ps, 0.1)),
        "_foreach_norm",
    ),
    "prelu": shown(lambda t: (t.x(4, 6), t.x(6)), lambda t, x, w: t.F.prelu(x, w), "prelu"),
    "cosine": shown(xy, lambda t, x, y: t.F.cosine_similarity(x, y), "cosine_similarity"),
    "clip": shown(
        lambda t: (t.nn.Parameter(t.torch.ones(3)),),
        lambda t,
        p: (setattr(p, "grad", t.torch.ones(3)), t.nn.utils.clip_grad_norm_([p], 1.0, foreach=False)),
    ),
}
for _name in ("relu", "leaky_relu", "elu", "gelu", "silu", "sigmoid", "tanh", "softplus", "hardtanh",
              "logsigmoid",
              "softsign", "tanhshrink"):  # fmt: skip
    PROFILES[_name] = shown(lambda t: (t.x(4, 6),), lambda t, x, n=_name: getattr(t.F, n)(x))
for _name in ("relu6", "mish", "hardsigmoid", "hardswish", "selu", "celu", "glu"):
    PROFILES[_name] = shown(lambda t: (t.x(4, 6),), lambda t, x, n=_name: getattr(t.F, n)(x), _name)
for _name in ("relu", "leaky_relu", "elu", "silu", "hardtanh", "relu6", "mish"):
    PROFILES[_name + " in place"] = shown(
        lambda t: (t.x(4, 6, grad=False),), lambda t, x, n=_name: getattr(t.F, n)(x, inplace=True),
        _name + "_"
    )
for _name, _run in PROFILES.items():
    CASES["profile " + _name] = _run


if __name__ == "__main__":
    sys.exit(main(__doc__.splitlines()[0]))
