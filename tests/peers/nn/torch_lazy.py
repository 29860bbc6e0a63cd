# SPDX-License-Identifier: Apache-2.0
"""Lazy modules against torch's: before and after the first input, loading, copies, errors: torch_lazy.py [-v] [NAME]
"""
import copy
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from nn_twin import CASES, case, main, raised  # noqa: E402

MADE = {
    "LazyLinear(3)": (2, 5), "LazyLinear(3, bias=False)": (2, 4, 5), "LazyConv1d(4, 3)": (2, 3, 6),
    "LazyConv2d(4, 3, 2, 1, groups=2)": (2, 4, 6, 6), "LazyConv2d(4, (2, 3), bias=False)": (3, 5, 6),
    "LazyConv3d(2, 2)": (1, 3, 4, 4, 4), "LazyConvTranspose1d(4, 3)": (2, 3, 6),
    "LazyConvTranspose2d(4, 3, stride=2, padding=1)": (2, 3, 4, 4), "LazyConvTranspose3d(2, 2)": (1, 3, 2, 2, 2),
    "LazyBatchNorm1d()": (4, 3), "LazyBatchNorm2d(affine=False)": (2, 3, 4, 4), "LazyBatchNorm3d()": (2, 3, 2, 2, 2),
    "LazyInstanceNorm1d()": (2, 3, 5), "LazyInstanceNorm2d(affine=False, track_running_stats=False)": (2, 3, 4, 4),
    "LazyInstanceNorm3d()": (2, 3, 2, 2, 2),
}


def described(module):
    tensors = module.state_dict()
    lazy = type(next(iter(tensors.values()), None)).__name__.startswith("Uninitialized")
    return [repr(module), list(tensors), lazy or [list(v.shape) for v in tensors.values()]]


def first_input(text, shape):
    def run(t):
        module = eval(f"nn.{text}", {"nn": t.nn})  # noqa: S307 - texts of this file
        found = described(module)
        twin = module if "Norm" in text else copy.deepcopy(module)  # torch cannot copy such buffers
        module(t.x(*shape, grad=False))
        found += [*described(module), type(module).__name__, len(module._forward_pre_hooks), *described(twin)]
        twin(t.x(*shape, grad=False))
        found += [*described(twin), type(twin).__name__, len(twin._forward_pre_hooks)]
        return found + t.run(module, t.x(*shape))
    return run


for text, shape in MADE.items():
    CASES[text] = first_input(text, shape)


@case
def loaded(t):
    lazy = t.nn.LazyLinear(3)
    full = t.fill(t.nn.Linear(4, 3))
    lazy.load_state_dict(full.state_dict())
    found = [type(lazy).__name__, lazy.weight.detach()]
    found.append(lazy(t.x(2, 4)).detach())
    return found + [repr(lazy), [name for name, _ in lazy.named_parameters()]]


@case
def stacked(t):
    model = t.nn.Sequential(t.nn.LazyConv2d(4, 3), t.nn.LazyBatchNorm2d(), t.nn.Flatten(), t.nn.LazyLinear(2))
    before = repr(model)
    model(t.x(2, 3, 6, 6, grad=False))
    return [before, repr(model), [(k, list(v.shape)) for k, v in model.state_dict().items()]]


@case
def lazy_errors(t):
    nn = t.nn
    calls = [lambda: nn.LazyConv1d(3, 3)(t.torch.zeros(2)), lambda: nn.LazyLinear(3).weight.shape,
             lambda: nn.Linear(4, 3).load_state_dict(nn.LazyLinear(3).state_dict())]
    return [raised(call) for call in calls] + [nn.parameter.is_lazy(nn.LazyLinear(3).weight),
                                               nn.parameter.is_lazy(nn.Linear(3, 3).weight)]


if __name__ == "__main__":
    sys.exit(main(__doc__.split("\n")[0]))
