#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""__torch_function__ against torch: which function handlers are told, and the class of what comes back.

Each call is tried with a subclass that notes what it is asked, with an object that is no tensor, and in a mode.
Keywords are not compared: torch fills those of its Python functions in, ours are as the caller gave them. The last
line: N passed, N failed, N skipped.
"""
import operator
import sys
import warnings

import mindtorch_v2
import torch

# t the library, F its functional, x of the subclass, p plain, i integers of the subclass.
CALLS = """
x + x | x + p | p + x | x + 2 | 2 + x | x - p | p - x | 1 - x | x * 2 | 2 * x | x / p | 1 / x | x // 2 | 2 // x
x % 2 | 2 % x | 2 ** x | x @ p | p @ x | x < p | 1 < x | x <= 1 | x == p | p == x | x != 1 | x > 1 | x >= p
i & i | 1 & i | i ^ 1 | 1 ^ i | i << 1 | 1 << i | i >> 1 | -x | +x | abs(x) | ~i | x.shape | x.dtype | x.device
x.ndim | x.T | x.mT | x.data | x.grad | x.requires_grad | x.is_leaf | x.grad_fn | x.layout | x.real | x._base
x._version | x[0] | x[...] | p[i] | p[i, 0] | x.dim() | x.size() | x.stride() | x.numel() | x.is_contiguous()
x.is_floating_point() | x.detach() | x.clone() | x.float() | x.double() | x.long() | x.contiguous()
x[0, 0].item() | x.tolist() | x.numpy() | x.t() | x.sum() | x.mean() | x.abs() | x.clone().add_(1) | x.type()
len(x) | bool(x[0, 0]) | float(x[0, 0]) | int(x[0, 0]) | list(x)[0] | 1.0 in x | x.sort() | x.max() | x.max(0)
x.split(1) | x.chunk(2) | x.unbind() | x.nonzero() | x.new_zeros(2) | x.new_tensor([1]) | x.type_as(p)
p.type_as(x) | x.view_as(p) | x.to(t.float64) | p.to(x) | t.add(x, p) | t.add(input=p, other=x) | t.cat([p, x])
t.stack((x, x)) | t.einsum("ij,jk->ik", x, p) | t.where(x > 1, x, p) | t.sum(x, dim=0) | t.max(x, 0)
t.unique(x) | t.norm(x) | t.meshgrid(i, i, indexing="ij") | t.tensordot(x, p) | t.broadcast_tensors(x, p)
t.cdist(x, x) | t.zeros_like(x) | t.full_like(x, 1) | t.is_tensor(x) | t.numel(x) | t.allclose(x, x)
t.equal(x, x) | t.matmul(x, p) | t.linalg.norm(x) | F.relu(x) | F.linear(x, p) | F.softmax(x, dim=1)
F.mse_loss(x, p) | F.dropout(x, 0.0) | F.gelu(x) | F.pad(x, (1, 1)) | F.layer_norm(x, (2,))
F.embedding(t.tensor([0, 1]), x) | F.normalize(x) | F.one_hot(i) | F.silu(x) | F.unfold(x[None, None], 1)
F.nll_loss(x, t.tensor([0, 1])) | F.cross_entropy(p, i % 2) | F.interpolate(x[None, None], scale_factor=2)
t.nn.Linear(2, 2)(x) | t.nn.Parameter(p) * 2 | t.nn.Parameter(p) * x | t.ones(2) | t.tensor(x) | t.as_tensor(x)
operator.iadd(p.clone(), x) | operator.imul(x.clone(), 2) | operator.setitem(x.clone(), 0, 1.0)
operator.setitem(p.clone(), i, 0.0) | setattr(x.clone(), "data", p) | setattr(x.clone(), "requires_grad", True)
setattr(x.clone(), "grad", p) | t.autograd.grad((leaf * 2).sum(), leaf) | (leaf * 2).sum().backward()
"""
DUCKS = """
t.add(d, p) | t.add(p, d) | t.add(x, d) | p + d | d + p | p - d | d - p | p == d | p < d | p @ d | t.cat([p, d])
F.relu(d) | F.linear(d, p) | t.sum(d, 0) | p.add(d) | t.einsum("i", d) | t.unique(d) | t.zeros_like(d)
t.stack([d]) | p[d] | t.where(d, p, p) | operator.imul(p, d) | F.softmax(d, 1) | t.reshape(p, d) | t.ones(d)
F.cross_entropy(d, p) | t.norm(d) | t.add(p, object()) | t.add(n, p) | F.relu(n) | p + n | t.add(x, n)
"""
MODE = """
p + p | t.add(p, p) | t.ones(2) | F.relu(p) | p.shape | x + x | p.sum() | t.randn(2) | p[0] | 2 + p
t.full((2,), 1.0) | t.arange(3) | t.empty(2) | t.zeros_like(p) | p.size() | p.to(t.float64) | p.detach()
t.randint(3, (2,)) | t.cat([p, p])
"""
KNOWN = {  # calls that ask for more or less, and why
    "list(x)[0]": "torch asks for dim() before unbind()",
}


def named(t, function):
    """The name under which the library has it, and whose it is."""
    name = getattr(function, "__name__", "?").replace("__rtruediv__", "__rdiv__")  # one function in ours
    for owner, place in (("Tensor", t.Tensor), ("torch", t), ("F", t.nn.functional)):
        if getattr(place, name, None) is function:
            return f"{owner}.{name}"
    if getattr(t.linalg, name, None) is function:
        return name
    owner = getattr(function, "__self__", None)
    if owner is not None:
        return f"{getattr(owner, '__name__', '')}.{name}".rpartition("linalg_")[2]
    for attribute in dir(t.Tensor):
        if getattr(t.Tensor, attribute, None) is function:
            return f"Tensor.{attribute}"
    return name


def shape(t, value):
    if isinstance(value, t.Tensor):
        return type(value).__name__ + str(tuple(value.shape))
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(shape(t, each) for each in value) + "]"
    return type(value).__name__


def answers(t):
    """What each call gives and asks, in one library."""
    seen, out = [], {}

    class Logged(t.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return "duck"

    class Refusing:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    class Mode(t.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    def ask(kind, text):
        p = t.ones(2, 2)
        names = {"t": t, "F": t.nn.functional, "operator": operator, "p": p, "d": Duck(), "n": Refusing(),
                 "x": t.tensor([[1.0, 2.0], [3.0, 4.0]]).as_subclass(Logged), "i": t.tensor([1, 0]).as_subclass(Logged),
                 "leaf": t.ones(2, 2).as_subclass(Logged).requires_grad_()}
        seen.clear()
        try:
            result = shape(t, eval(text, names))
        except Exception as error:  # its class and first words are the answer
            result = f"{type(error).__name__}: {str(error)[:40]}"
        told = [named(t, each) for each in seen]
        out[f"{kind}: {text}"] = result, [each for k, each in enumerate(told) if told[k - 1:k] != [each]]

    for kind, texts in (("subclass", CALLS), ("duck", DUCKS)):
        for text in texts.replace("\n", " | ").split(" | "):
            if text.strip():
                ask(kind, text.strip())
    for text in MODE.replace("\n", " | ").split(" | "):
        if text.strip():
            with Mode():
                ask("mode", text.strip())
    return out


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    theirs, ours = answers(torch), answers(mindtorch_v2)
    failed = 0
    for text, wanted in theirs.items():
        found = ours[text]
        if found != wanted and text.partition(": ")[2] not in KNOWN:
            failed += 1
            print(f"FAIL {text}: torch {wanted}, ours {found}")
    print(f"{len(theirs) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
