# SPDX-License-Identifier: Apache-2.0
"""What torch_nn.py compares with: the same data for both libraries, comparisons, the run over all cases."""
import argparse
import traceback
import warnings

import numpy as np
import torch

import mindtorch_v2

RTOL, ATOL = 2e-4, 2e-5
CASES = {}


def case(function):
    """Registers a case under the function's name."""
    CASES[function.__name__] = function
    return function


class Skipped(Exception):
    """Why a case cannot be compared."""


class Library:
    """One of the two, with data made from numpy so that both have the same."""

    def __init__(self, library):
        self.torch = library
        self.nn = library.nn
        self.F = library.nn.functional
        self.rng = np.random.RandomState(7)
        self.inputs = []

    def x(self, *shape, grad=True, scale=1.0, low=None):
        """A float32 tensor of normal numbers (low: uniform ones of [low, 1 - low))."""
        values = self.rng.randn(*shape) * scale if low is None else self.rng.uniform(low, 1 - low, shape)
        made = self.torch.tensor(values.astype("float32").tolist())
        if grad:
            made.requires_grad_()
            self.inputs.append(made)
        return made

    def ids(self, high, *shape):
        """An int64 tensor of numbers below high."""
        return self.torch.tensor(self.rng.randint(0, high, shape).tolist())

    def bools(self, *shape):
        return self.torch.tensor((self.rng.rand(*shape) < 0.3).tolist())

    def fill(self, module):
        """Gives a module's parameters and float buffers numbers of our own."""
        with self.torch.no_grad():
            for _, tensor in list(module.named_parameters()) + list(module.named_buffers()):
                if tensor.is_floating_point():
                    values = self.rng.uniform(0.2, 1.0, tuple(tensor.shape)).astype("float32")
                    tensor.copy_(self.torch.tensor(values.tolist()))
        return module

    def run(self, module, *args, **kwargs):
        """The module's outputs and, after a backward of weighted sums, all gradients and buffers."""
        self.fill(module)
        outputs = module(*args, **kwargs)
        return self.backward(outputs, list(module.parameters()), list(module.buffers()))

    def backward(self, outputs, parameters=(), buffers=()):
        flat = [o for o in (outputs if isinstance(outputs, tuple) else (outputs,)) if o is not None]
        total = None
        for output in flat:
            if not output.requires_grad:
                continue
            weights = np.cos(np.arange(max(int(np.prod(tuple(output.shape))), 1))).astype("float32")
            weights = self.torch.tensor(weights.tolist()).reshape(tuple(output.shape))
            part = (output * weights).sum()
            total = part if total is None else total + part
        if total is not None:
            total.backward()
        grads = [t.grad for t in (*self.inputs, *parameters)]
        return [o.detach() for o in flat] + grads + list(buffers)


def raised(call):
    """What a call raises, as (type, words)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
        except Exception as error:  # noqa: BLE001 - any of them is compared
            return type(error).__name__, str(error).replace("mindtorch_v2.", "torch.")
    return None, ""


def warned(call):
    """The warnings of a call, as (category, words)."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [(w.category.__name__, str(w.message)) for w in caught]


def same(ours, theirs, where="result"):
    """None, or how they differ."""
    if isinstance(theirs, torch.Tensor):
        if not hasattr(ours, "detach"):
            return f"{where}: {type(ours).__name__} instead of a tensor"
        if tuple(ours.shape) != tuple(theirs.shape):
            return f"{where}: shape {tuple(ours.shape)}, torch {tuple(theirs.shape)}"
        if str(ours.dtype).split(".")[-1] != str(theirs.dtype).split(".")[-1]:
            return f"{where}: {ours.dtype}, torch {theirs.dtype}"
        a, b = np.array(ours.detach().tolist(), "float64"), np.array(theirs.detach().tolist(), "float64")
        size = np.nanmax(np.abs(b), initial=1.0, where=np.isfinite(b))  # sums of large terms may be small
        if not np.allclose(a, b, RTOL, ATOL * size, equal_nan=True):
            return f"{where}: values differ by up to {np.nanmax(np.abs(a - b)):g}"
        return None
    if isinstance(theirs, (list, tuple)):
        if len(ours) != len(theirs):
            return f"{where}: {len(ours)} items, torch {len(theirs)}: {ours!r:.200} / {theirs!r:.200}"
        for place, (a, b) in enumerate(zip(ours, theirs)):
            found = same(a, b, f"{where}[{place}]")
            if found:
                return found
        return None
    if isinstance(theirs, float):
        return None if abs(ours - theirs) <= 1e-6 + 1e-6 * abs(theirs) else f"{where}: {ours}, torch {theirs}"
    return None if ours == theirs else f"{where}: {ours!r}, torch {theirs!r}"


def main(about):
    """Runs the cases; the number of failures decides."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("only", nargs="*", help="cases whose names contain this")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    passed = failed = skipped = 0
    for name, run in CASES.items():
        if options.only and not any(part in name for part in options.only):
            continue
        try:
            found = same(run(Library(mindtorch_v2)), run(Library(torch)))
        except Skipped as reason:
            skipped += 1
            print(f"skipped {name}: {reason}")
            continue
        except Exception:  # noqa: BLE001 - a failing case is a failed case
            found = traceback.format_exc() if options.verbose else traceback.format_exc().splitlines()[-1]
        if found:
            failed += 1
            print(f"FAILED {name}: {found}")
        else:
            passed += 1
            if options.verbose:
                print(f"ok     {name}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0
