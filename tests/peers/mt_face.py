# SPDX-License-Identifier: Apache-2.0
"""tests/ops/mt.py's calls through the Python package: install() puts mindtorch_v2 in the place of ctypes.

So what compares the op table with torch compares the bound functions: argument conversion, overloads, results,
exceptions, gradients by torch.autograd.
"""
import mindtorch_v2 as torch
import mt
import numpy as np
from mindtorch_v2 import _C

_boxed = {"call": mt.call}  # what the ctypes way was


class Tensor(mt.Tensor):
    """A tensor of the package with the face of mt.Tensor."""

    __slots__ = ("of",)

    def __init__(self, of):
        self.of = of

    def __del__(self):
        pass

    dtype = property(lambda self: str(self.of.dtype).removeprefix("torch."))
    device = property(lambda self: str(self.of.device))
    shape = property(lambda self: tuple(self.of.shape))
    strides = property(lambda self: tuple(self.of.stride()))
    offset = property(lambda self: self.of.storage_offset())
    numel = property(lambda self: self.of.numel())
    version = property(lambda self: self.of._version)
    storage = property(lambda self: self.of.data_ptr() - self.of.storage_offset() * self.of.element_size())
    is_contiguous = property(lambda self: self.of.is_contiguous())
    is_leaf = property(lambda self: self.of.is_leaf)
    is_view = property(lambda self: self.of._is_view())
    grad = property(lambda self: None if self.of.grad is None else Tensor(self.of.grad))
    grad_fn = property(lambda self: None if self.of.grad_fn is None else self.of.grad_fn.name())

    @property
    def requires_grad(self):
        return self.of.requires_grad

    @requires_grad.setter
    def requires_grad(self, value):
        self.of.requires_grad_(value)

    def backward(self, gradient=None, flags=0):
        self.of.backward(gradient.of if gradient else None, retain_graph=bool(flags & mt.RETAIN_GRAPH),
                         create_graph=bool(flags & mt.CREATE_GRAPH))

    def numpy(self):
        plain = self.of.detach()
        if self.dtype == "bfloat16":
            return plain.float().contiguous().numpy().copy().view(mt.BFloat16)
        return np.array(plain.numpy())


def tensor(array, device="cpu"):
    name = mt.dtype_of(array)
    made = torch.tensor(np.array(array, np.float32 if name == "bfloat16" else None))
    return Tensor(made.to(getattr(torch, name)))


def grad(outputs, inputs, gradients=None, flags=0):
    found = torch.autograd.grad([t.of for t in outputs], [t.of for t in inputs],
                                None if gradients is None else [g.of if g else None for g in gradients],
                                retain_graph=bool(flags & mt.RETAIN_GRAPH) or None,
                                create_graph=bool(flags & mt.CREATE_GRAPH), allow_unused=bool(flags & mt.ALLOW_UNUSED))
    return [None if g is None else Tensor(g) for g in found]


class Generator:
    def __init__(self, seed):
        self.of = torch.Generator()
        self.of.manual_seed(seed)


def _in(value, kind):
    if isinstance(value, (Tensor, Generator)):
        return value.of
    if isinstance(value, (list, tuple)):
        return [_in(v, kind) for v in value]
    if kind == "dtype" and isinstance(value, str):
        return getattr(torch, value)
    return value


def _out(value):
    if isinstance(value, torch.Tensor):
        return Tensor(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_out(v) for v in value) if type(value) in (list, tuple) else tuple(_out(v) for v in value)
    return value


def call(name, *args, **kwargs):
    op = mt.ops()[name]
    names = {p.name: p.type for p in op.parameters}
    args = [_in(v, p.type) for v, p in zip(args, op.parameters)]
    kwargs = {k: _in(v, names.get(k)) for k, v in kwargs.items()}
    result = _out(getattr(_C.ops, name.partition(".")[0])(*args, **kwargs))
    return list(result) if op.n_results == 1 and isinstance(result, tuple) else result


def install():
    mt.Tensor, mt.tensor, mt.grad, mt.call, mt.Generator = Tensor, tensor, grad, call, Generator
    mt.manual_seed = torch.manual_seed
    mt.no_grad = torch.no_grad
