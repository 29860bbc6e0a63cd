# SPDX-License-Identifier: Apache-2.0
"""nn.utils that change weights against torch's: parametrize, weight_norm, spectral_norm, fusion; values, gradients,
state dicts, reprs, errors: torch_weights.py [-v] [NAME ...]
"""
import pathlib
import sys

import torch.nn.utils.prune

import mindtorch_v2.nn.utils.prune

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from nn_twin import CASES, case, main, raised  # noqa: E402

assert torch.nn.utils.prune and mindtorch_v2.nn.utils.prune  # neither is imported with its library
LAYERS = {"linear": lambda nn: nn.Linear(3, 4), "conv": lambda nn: nn.Conv2d(3, 2, 2),
          "transposed": lambda nn: nn.ConvTranspose2d(3, 2, 2)}
SHAPES = {"linear": (2, 3), "conv": (1, 3, 4, 4), "transposed": (1, 3, 4, 4)}


def described(module):
    return [repr(module), [(k, list(v.shape)) for k, v in module.state_dict().items()],
            [name for name, _ in module.named_parameters()]]


def normed(apply, layer, steps=3, **options):
    """A few forward passes, the last one with gradients."""
    def run(t):
        module = apply(t.nn)(LAYERS[layer](t.nn), **options)
        t.fill(module)
        x = t.x(*SHAPES[layer])
        for _ in range(steps):
            module(x)
        return t.backward(module(x), list(module.parameters()), list(module.buffers())) + described(module)
    return run


for layer in LAYERS:
    for options in ({}, {"dim": None}, {"dim": 1}):
        CASES[f"weight_norm {layer} {options}"] = normed(lambda nn: nn.utils.weight_norm, layer, **options)
        CASES[f"parametrizations.weight_norm {layer} {options}"] = normed(
            lambda nn: nn.utils.parametrizations.weight_norm, layer, **options)
    for options in ({}, {"n_power_iterations": 3}):
        CASES[f"spectral_norm {layer} {options}"] = normed(lambda nn: nn.utils.spectral_norm, layer, **options)
        CASES[f"parametrizations.spectral_norm {layer} {options}"] = normed(
            lambda nn: nn.utils.parametrizations.spectral_norm, layer, **options)


def symmetric(nn):
    class Symmetric(nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).transpose(-1, -2)
    return Symmetric()


def twice(nn):
    class Twice(nn.Module):
        def forward(self, x):
            return 2 * x

        def right_inverse(self, x):
            return x / 2
    return Twice()


@case
def parametrized(t):
    P, module = t.nn.utils.parametrize, t.fill(t.nn.Linear(3, 3))
    P.register_parametrization(module, "weight", symmetric(t.nn))
    found = t.backward(module(t.x(2, 3)), list(module.parameters())) + described(module)
    found += [P.is_parametrized(module), P.is_parametrized(module, "bias"),
              P.type_before_parametrizations(module).__name__]
    with P.cached():
        found.append(module.weight is module.weight)
    P.remove_parametrizations(module, "weight")
    return found + [module.weight.detach()] + described(module) + [P.is_parametrized(module)]


@case
def assigned(t):
    P, module = t.nn.utils.parametrize, t.fill(t.nn.Linear(2, 2))
    before = module.weight.detach().clone().clone()
    P.register_parametrization(module, "weight", twice(t.nn))
    found = [before, module.weight.detach().clone(), module.parametrizations.weight.original.detach().clone()]
    P.register_parametrization(module, "weight", twice(t.nn))
    found += [module.weight.detach().clone(), module.parametrizations.weight.original.detach().clone()]
    module.weight = t.torch.ones(2, 2)
    found += [module.weight.detach().clone(), module.parametrizations.weight.original.detach().clone()]
    P.remove_parametrizations(module, "weight", leave_parametrized=False)
    return found + [module.weight.detach().clone()] + described(module)


@case
def removed(t):
    U, found = t.nn.utils, []
    for apply, remove in ((U.weight_norm, U.remove_weight_norm), (U.spectral_norm, U.remove_spectral_norm)):
        module = apply(t.nn.Linear(3, 4))
        t.fill(module)
        found += [remove(module).weight.detach(), *described(module)]
    return found


@case
def fused(t):
    nn = t.nn
    found = []
    for layer, bn, shape, transpose in ((nn.Conv2d(3, 4, 2), nn.BatchNorm2d(4), (1, 3, 4, 4), False),
                                        (nn.ConvTranspose2d(3, 4, 2), nn.BatchNorm2d(4), (1, 3, 4, 4), True)):
        made = nn.utils.fuse_conv_bn_eval(t.fill(layer).eval(), t.fill(bn).eval(), transpose)
        found += [made(t.x(*shape, grad=False)).detach(), made.weight.detach(), made.bias.detach()]
    linear, bn = t.fill(nn.Linear(3, 4, bias=False)).eval(), t.fill(nn.BatchNorm1d(4)).eval()
    return found + [nn.utils.fuse_linear_bn_eval(linear, bn)(t.x(2, 3, grad=False)).detach()]


@case
def pruned(t):
    """Masks are compared by what they leave; random methods by how much."""
    P, found = t.nn.utils.prune, []
    mask = t.torch.tensor([[1, 0, 1], [0, 1, 1], [1, 1, 0], [0, 0, 1]])
    for apply in (lambda m: P.l1_unstructured(m, "weight", 5), lambda m: P.l1_unstructured(m, "weight", 0.3),
                  lambda m: P.ln_structured(m, "weight", 2, 2, 0), lambda m: P.ln_structured(m, "weight", 0.5, 1, 1),
                  lambda m: P.custom_from_mask(m, "weight", mask),
                  lambda m: P.l1_unstructured(P.ln_structured(m, "weight", 1, 2, 0), "weight", 3),
                  lambda m: P.ln_structured(P.l1_unstructured(m, "weight", 3), "weight", 1, 2, 0),
                  lambda m: P.identity(m, "bias")):
        module = apply(t.fill(t.nn.Linear(3, 4)))
        found += t.backward(module(t.x(2, 3)), list(module.parameters()), list(module.buffers())) + described(module)
        name = "bias" if hasattr(module, "bias_mask") else "weight"
        found += [P.is_pruned(module), described(P.remove(module, name)), getattr(module, name).detach()]
        found.append(P.is_pruned(module))
    for apply in (lambda m: P.random_unstructured(m, "weight", 5), lambda m: P.random_structured(m, "weight", 2, 0)):
        found.append(apply(t.nn.Linear(3, 4)).weight_mask.sum())
    model = t.nn.Sequential(t.fill(t.nn.Linear(3, 4)), t.fill(t.nn.Linear(4, 2)))
    P.global_unstructured([(model[0], "weight"), (model[1], "weight")], P.L1Unstructured, amount=7)
    return found + [model[0].weight_mask, model[1].weight_mask]


@case
def weight_errors(t):
    nn = t.nn
    calls = [
        lambda: nn.utils.parametrize.register_parametrization(nn.Linear(2, 2), "foo", symmetric(nn)),
        lambda: nn.utils.remove_weight_norm(nn.Linear(2, 2)), lambda: nn.utils.remove_spectral_norm(nn.Linear(2, 2)),
        lambda: nn.utils.weight_norm(nn.utils.weight_norm(nn.Linear(2, 2))),
        lambda: nn.utils.spectral_norm(nn.Linear(2, 2), n_power_iterations=0),
        lambda: nn.utils.fuse_conv_bn_eval(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1)),
        lambda: nn.utils.prune.l1_unstructured(nn.Linear(2, 2), "weight", 5),
        lambda: nn.utils.prune.l1_unstructured(nn.Linear(2, 2), "weight", 1.5),
        lambda: nn.utils.prune.l1_unstructured(nn.Linear(2, 2), "weight", "x"),
        lambda: nn.utils.prune.remove(nn.Linear(2, 2), "weight"),
        lambda: nn.utils.prune.ln_structured(nn.Linear(2, 2), "bias", 1, 2, 0),
    ]
    return [raised(call)[0] for call in calls]


if __name__ == "__main__":
    sys.exit(main(__doc__.split("\n")[0]))
