#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls as users write them, in torch and in mindtorch_v2: the same values, types, shapes and exceptions.

usage: torch_binding.py [-v]      (a Python that has torch; mindtorch_v2 on PYTHONPATH)

An expression sees `torch` (either library) and the tensors of names(). Results are compared by value,
dtype and shape; exceptions by type, and other words are counted. Every row of the op table must be where
torch has it. Prints "N passed, N failed, N skipped".
"""
import sys
import warnings

import numpy as np
import torch as real

import mindtorch_v2 as ours

warnings.simplefilter("ignore")


def names(torch):
    """What expressions may use; the same numbers for both."""
    values = np.random.RandomState(3)
    make = lambda *shape: torch.tensor(values.randn(*shape).round(3).tolist())  # noqa: E731
    return {
        "torch": torch, "np": np, "x": make(2, 3), "y": make(2, 3), "z": make(2, 3, 4), "v": make(3),
        "m": make(3, 3),
        "p": torch.tensor([[0.5, 1.5], [2.5, 3.5]]), "i": torch.tensor([[1, 2, 3], [4, 5, 6]]),
        "k": torch.tensor([2, 0, 1]), "b": torch.tensor([True, False, True]), "s": torch.tensor(2.0),
        "n": torch.tensor(3), "d": torch.tensor([1.5, -2.5]).double(), "e": torch.zeros(0, 3),
        "image": make(1, 2, 5, 5), "kernel": make(3, 2, 3, 3), "inf": float("inf"), "nan": float("nan"),
    }


EXPRESSIONS = """
x + y; x + 1; 1 + x; x - y; 2 - x; x * 2.5; 2 * i; x / 2; 3 / p; i / 2; i // 2; 7 // i; 7.5 // i; x // 0.5
i % 4; -i % 4; 7 % i; p ** 2; 2 ** p; i ** 2; p ** p; -x; +x; abs(x); ~i; ~b; i & 3; 3 & i; i | 8; i ^ i
b & b; b | ~b; b ^ b; x @ m; m @ v; v @ v; z @ z.transpose(1, 2); x < y; x <= 0; x == y; x != 0; 0 > x
x >= x; i == 3; x == None; x != "a"; x in x; 3 in i; 7 in i; x + True; i + True; i + 2.5; b + b; b * 2
d + x[0, :2]; s + i; n + x; n * 2.5; n / 2; x + s; i + s; x + "a"; "a" + x; x + None; None + x; x + [1]
x @ 2; 2 @ x; x ** "a"; x < "a"; x < None; divmod(x, 2); ~x; x & 1; x.add(y); x.add(y, alpha=2)
x.add(2, alpha=3); torch.add(x, y); torch.add(x, other=y); torch.add(input=x, other=y); x.sub(y, alpha=2)
torch.sub(x, 1); torch.rsub(x, 1); torch.mul(x, y); torch.multiply(x, y); x.div(y)
x.div(2, rounding_mode="floor"); x.div(2, rounding_mode="trunc"); x.div(y, rounding_mode=None)
torch.true_divide(x, 2); torch.floor_divide(i, 2); torch.remainder(i, 4); torch.fmod(i, 4); torch.pow(p, 2)
torch.pow(2, p); x.neg(); x.negative(); torch.atan2(x, y); torch.maximum(x, y); torch.minimum(x, y)
torch.max(x, y); torch.min(x, y); x.max(); x.min(); x.max(1); x.max(dim=0, keepdim=True)
torch.max(x, 1).values; torch.min(x, -1).indices; x.max(1)[1]; x.amax(); x.amax(1); x.amin((0, 1))
x.argmax(); x.argmax(1); x.argmin(dim=0, keepdim=True); x.sum(); x.sum(1); x.sum((0, 1))
x.sum(dim=[1], keepdim=True); x.sum(axis=0); x.sum(0, keepdims=True); x.sum(dtype=torch.float64); i.sum()
b.sum(); x.sum(()); x.sum([]); x.mean(); x.mean(1); x.mean((0,), True); x.mean(dim=1, dtype=torch.float64)
i.mean(); x.prod(); x.prod(1); i.prod(dim=0, keepdim=True); x.std(); x.std(1); x.std(1, False)
x.std(1, unbiased=False, keepdim=True); x.std(False); x.std(dim=1, correction=0); x.var(); x.var(0)
x.var(0, False); x.var(dim=(0, 1)); torch.var(x, unbiased=False); torch.std(x, 1, True); torch.var_mean(x)
torch.var_mean(x, 1); torch.std_mean(x, 1); x.norm(); x.norm(1); x.norm(inf); x.norm(dim=1)
x.norm(2, 1, True); torch.norm(x, p="fro"); x.norm(p=1, dim=(0, 1)); x.logsumexp(1)
torch.logsumexp(x, (0, 1)); x.all(); b.all(); b.any(); x.any(1); b.all(0, True); x.count_nonzero()
torch.count_nonzero(x, 1); x.cumsum(0); x.cumsum(dim=1, dtype=torch.float64); i.cumprod(1); x.softmax(1)
torch.softmax(x, dim=-1); torch.log_softmax(x, 1); torch.softmax(i, 1, dtype=torch.float32); x.sort()
x.sort(1, True); x.sort(descending=True).indices; x.argsort(); x.topk(2); x.topk(1, 0, False)
torch.topk(x, k=2, dim=1, largest=True, sorted=True); x.equal(x); torch.equal(x, y); torch.allclose(x, x)
torch.allclose(x, y, rtol=10, atol=10); torch.isclose(x, x + 1e-9); torch.isnan(x / 0 * 0)
torch.isinf(x / 0); torch.isfinite(x / 0); torch.isposinf(x / 0); torch.isneginf(-abs(x) / 0); x.abs()
x.sign(); p.sqrt(); p.rsqrt(); x.exp(); x.expm1(); p.log(); p.log1p(); p.log2(); p.log10(); x.sin(); x.cos()
x.tan(); x.tanh(); x.sigmoid(); x.erf(); x.relu(); x.floor(); x.ceil(); x.round(); x.trunc(); x.square()
p.reciprocal(); torch.fix(x); x.clamp(0, 1); x.clamp(min=0); x.clamp(max=0.5); torch.clamp(x, -1, 1)
x.clip(0, 1); x.clamp(min=y); x.clamp(y, x); x.clamp_min(0); x.clamp_max(0); i.clamp(2, 4); i.clamp(2.5, 4)
x.lerp(y, 0.5); torch.lerp(x, y, s); torch.addcmul(x, y, y, value=2)
torch.addcdiv(x, y, p.sum() + y.abs(), value=0.5); torch.where(x > 0, x, y); torch.where(x > 0, 1.0, 0.0)
torch.where(x > 0, x, 0); x.where(x > 0, y); torch.where(b); torch.where(x > 0); x.masked_fill(x > 0, 0)
x.masked_fill(x > 0, s); x.masked_select(x > 0); torch.masked_select(x, b); torch.logical_and(b, b)
b.logical_or(x > 0); b.logical_xor(b); torch.logical_not(x); i.bitwise_and(1); i.bitwise_or(i)
i.bitwise_xor(7); i.bitwise_not(); torch.greater(x, y); x.less(0); x.greater_equal(y); x.less_equal(0)
x.not_equal(0); x.eq(y); x.ne(0); x.gt(0); x.lt(0); x.ge(0); x.le(0); torch.nan_to_num(x / 0)
torch.positive(x); torch.mm(x, m); torch.matmul(x, v); torch.bmm(z, z.mT)
torch.addmm(x, x, m, beta=2, alpha=0.5); torch.mv(m, v); torch.dot(v, v); torch.outer(v, v); torch.ger(v, v)
torch.baddbmm(z @ z.mT, z, z.mT); torch.inner(v, v); torch.inner(x, m); torch.addmv(v, m, v)
torch.tensordot(x, m, 1); torch.tensordot(x, y, ([0, 1], [0, 1])); torch.einsum("ij,kj->ik", x, y)
torch.einsum("ij->j", x); torch.einsum("bij,bjk->bik", z, z.mT); torch.einsum("i,j", v, v)
torch.einsum("...ij->...ji", z); torch.einsum("ij,ij->", x, y); torch.trace(m); torch.tril(m); m.triu(1)
torch.diag(v); torch.diag(m); torch.diag(v, 1); m.diagonal(); m.diagonal(1); x.view(6); x.view(3, 2)
x.view((3, -1)); x.view(size=(6,)); x.reshape(3, 2); x.reshape((6,)); x.reshape(-1); x.view(-1, 2)
torch.reshape(x, (3, 2)); x.permute(1, 0); x.permute((1, 0)); z.permute(2, 0, 1); torch.permute(z, (2, 0, 1))
x.transpose(0, 1); x.swapaxes(0, 1); torch.swapdims(x, 0, 1); x.t(); x.T; z.T; z.mT; z.mH; x.H; v.mT
x.expand(4, 2, 3); v.expand(2, -1); v.expand((2, 3)); x.squeeze(); x[None].squeeze(0); x[None].squeeze()
z.squeeze((0, 1)); x.unsqueeze(0); x.unsqueeze(-1); torch.unsqueeze(x, dim=1); x.select(1, 0)
x.narrow(1, 0, 2); torch.narrow(x, 0, 1, 1); x.unbind(); x.unbind(1); x.split(1); x.split(2, dim=1)
x.split([1, 2], 1); torch.split(v, (1, 2)); x.chunk(2); x.chunk(2, dim=1); v.unfold(0, 2, 1); z.flatten()
z.flatten(1); torch.flatten(z, start_dim=0, end_dim=1); z.unflatten(2, (2, 2)); z.movedim(0, 2)
torch.moveaxis(z, 0, 1); x.repeat(2, 2); x.repeat((2, 1)); v.repeat(2); x.tile(2); torch.tile(v, (2, 2))
x.flip(0); x.flip(0, 1); x.flip((0, 1)); torch.flip(x, [1]); torch.roll(v, 1); torch.roll(x, (1, 1), (0, 1))
x.roll(1, 0); torch.cat([x, y]); torch.cat((x, y), dim=1); torch.concat([x, y])
torch.cat(tensors=[x, y], axis=1); torch.stack([x, y]); torch.stack((x, y), -1); torch.vstack([x, y])
torch.hstack([x, y]); torch.dstack([x, y]); torch.column_stack([v, v]); torch.row_stack([v, v])
torch.hstack([v, v]); torch.atleast_1d(s); torch.atleast_2d(v); torch.atleast_3d(x); torch.atleast_2d(s, v)
torch.broadcast_tensors(x, v); torch.broadcast_to(v, (2, 3)); torch.broadcast_shapes((2, 1), (3,))
torch.broadcast_shapes((2,), (3,)); torch.meshgrid(v, v, indexing="ij"); torch.meshgrid(v, k, indexing="xy")
torch.meshgrid(v); x.ravel(); torch.fliplr(x); torch.flipud(x); v.repeat_interleave(2)
x.repeat_interleave(2, 1); torch.repeat_interleave(x, 2, dim=0); x.index_select(1, k)
torch.index_select(x, 0, n - 2); x.gather(1, i % 3); torch.gather(x, 1, i % 2); x.scatter(1, i % 3, y)
x.scatter_add(1, i % 3, y); x.index_add(1, k, y); x.nonzero(); torch.nonzero(x > 0); x.nonzero(as_tuple=True)
torch.argwhere(b); x.masked_scatter(x > 0, y); x.take; torch.numel(x); x.numel(); x.nelement(); x.dim()
x.ndim; x.shape; x.size(); x.size(1); x.size(dim=-1); x.size(5); x.size("a"); x.stride(); x.stride(1)
x.stride(9); x.storage_offset(); x[:, 1:].storage_offset(); x.element_size(); x.itemsize; x.nbytes
x.is_contiguous(); x.t().is_contiguous(); x.t().contiguous().stride(); x.is_floating_point(); x.is_signed()
x.is_complex(); x.is_same_size(y); x.is_set_to(x); x.layout; x.is_leaf; x.requires_grad; x.grad; x.grad_fn
x.is_cuda; x.is_sparse; x._version; x.output_nr; x.item(); s.item(); n.item(); b[0].item(); int(s); float(n)
bool(s); bool(x); bool(e); int(x); float(x); len(x); len(s); list(range(n)); [1, 2, 3, 4][n]; [1][s]
complex(s); round(s.item()); hash(x) == hash(x); "a" in x; x.tolist(); x.type(); x.type("torch.DoubleTensor")
x.type("foo"); x.type(torch.int32); x.type_as(d); x.to(torch.int64); x.to(dtype=torch.float64); x.to("cpu")
x.to("cpu", torch.float64); x.to(d); x.to(torch.float64, copy=True); x.to(copy=True) is x
x.to(torch.float32) is x; x.to(x) is x; x.to("foo"); x.to(foo=1); x.float() is x; x.double(); x.int()
x.long(); x.bool(); x.half(); x.byte(); x.bfloat16(); x.cpu() is x; x.new_zeros(2, 3); x.new_ones((2,))
i.new_full((2,), 7); d.new_tensor([1, 2]); x.new_zeros(()); x.new_zeros(2, dtype=torch.int64)
x.new_empty(2).shape; x.view_as(y.view(6)); v.expand_as(x); x.reshape_as(y.view(6)); x.data
torch.zeros(2, 3); torch.zeros((2, 3)); torch.zeros([2]); torch.zeros(()); torch.zeros(torch.Size([2]))
torch.zeros(size=(2,)); torch.zeros(n); torch.zeros(n, 2); torch.zeros(np.int64(2), 3)
torch.ones(2, dtype=torch.int32); torch.ones(2, requires_grad=True); torch.full((2,), 7)
torch.full((2,), 7.5); torch.full((2,), True); torch.full((2, 2), 1, dtype=torch.float64)
torch.empty(2).shape; torch.empty(2, 3, dtype=torch.int64).shape; torch.zeros_like(i)
torch.ones_like(x, dtype=torch.int64); torch.full_like(x, 2); torch.empty_like(x).shape; torch.eye(2)
torch.eye(2, 3); torch.eye(n=2, dtype=torch.int64); torch.arange(4); torch.arange(1, 4)
torch.arange(1, 7, 2); torch.arange(4.0); torch.arange(0, 1, 0.25); torch.arange(end=3)
torch.arange(1, 4, dtype=torch.float32); torch.arange(start=1, end=4, step=2); torch.arange(5, 0, -2)
torch.linspace(0, 1, 5); torch.linspace(1, 2, steps=3); torch.scalar_tensor(3.5); torch.rand(2, 3).shape
torch.randn((2, 3)).dtype; torch.randint(5, (2,)).dtype; torch.randint(2, 5, (3,)).shape
torch.randint(5, (2,), dtype=torch.int32).dtype; torch.randperm(4).sort()[0]; torch.rand_like(x).shape
torch.normal(0.0, 1.0, (2, 3)).shape; torch.normal(x, 1.0).shape; torch.bernoulli(torch.ones(2))
torch.multinomial(torch.ones(3), 2).shape; x.clone().uniform_(1, 1); x.clone().normal_(0, 0).shape
x.clone().random_(5).shape; x.clone().bernoulli_(1.0); x.clone().fill_(3); x.clone().zero_()
x.clone().add_(1); x.clone().sub_(y); x.clone().mul_(2); x.clone().div_(2); p.clone().pow_(2)
x.clone().copy_(v); x.clone().neg_(); x.clone().clamp_(0, 1); x.clone().relu_(); p.clone().sqrt_()
x.clone().exp_(); x.clone().masked_fill_(x > 0, 1); x.clone().abs_(); x.clone().lerp_(y, 0.5)
x.clone().addcmul_(y, y); x.clone().scatter_(1, i % 3, y); x.clone().unsqueeze_(0); x.clone().squeeze_()
x.clone().t_(); x.clone().transpose_(0, 1); torch.add(x, y, out=torch.empty(2, 3))
torch.add(x, y, out=torch.empty(2, 3, dtype=torch.int64)); torch.device("cpu"); torch.device("cpu:0")
torch.device("cpu").type; torch.device("cpu").index; str(torch.device("cpu", 0)); torch.device("foo")
torch.device("cpu:a"); torch.device(1.5); torch.device("cpu") == torch.device("cpu"); torch.float32
torch.long; torch.float16.itemsize; torch.uint8.is_signed; torch.get_default_dtype()
torch.set_default_dtype(torch.int32); torch.promote_types(torch.int32, torch.float16)
torch.result_type(i, 2.5); torch.result_type(x, d); torch.result_type(s, d)
torch.can_cast(torch.float64, torch.int32); torch.finfo(torch.float32).eps; torch.finfo(torch.float16).max
torch.finfo(torch.int32); torch.iinfo(torch.int64).max; repr(torch.finfo(torch.bfloat16)); torch.Size([2, 3])
torch.Size([2]) + torch.Size([3]); (1,) + torch.Size([2]); torch.Size([2, 3])[1:]; torch.Size([2, 3]).numel()
torch.Size(["a"]); torch.Size(3); torch.Size([2]) * 2; torch.is_tensor(x); torch.is_tensor(1)
torch.is_floating_point(i); torch.is_nonzero(s); torch.is_nonzero(x); torch.conv2d(image, kernel)
torch.conv2d(image, kernel, stride=2); torch.conv2d(image, kernel, padding=(1, 1))
torch.conv2d(image, kernel, None, 1, 1); torch.max_pool2d(image, 2)
torch.max_pool2d(image, kernel_size=(2, 3), stride=1); torch.layer_norm(x, (3,)); torch.dropout(x, 0.0, True)
torch.dropout(x, 0.5, False); torch.embedding(m, k); torch.relu(x)
torch.batch_norm(image, None, None, None, None, True, 0.1, 1e-5, False).shape; x.add("a"); torch.add(x, "a")
torch.add("a", x); x.add(y, foo=1); torch.add(x, y, foo=1); x.add(input=x, other=y); x.add(y, y)
torch.add(x, y, other=y); x.mul(2, 3); torch.permute(x, 1, 0); torch.zeros("a"); torch.zeros(2.5)
torch.zeros(2, "a"); torch.zeros(); torch.zeros(2, dtype="a"); torch.zeros(2, device=3.5)
torch.zeros(2, requires_grad=1); torch.zeros(2, dtype=torch.int64, requires_grad=True); torch.zeros(-1)
torch.mm(x, 2); torch.mm(x, x); torch.exp(2); torch.exp(); torch.cat(x); torch.cat(1); torch.cat([x, 1])
torch.cat([]); torch.cat([x, v]); torch.stack([x, v]); x.transpose(0); x.transpose(0, "a"); x.transpose(0, 5)
x.unsqueeze(); x.unsqueeze(1.5); x.unsqueeze(True); x.unsqueeze(9); torch.softmax(x); torch.softmax(x, 5)
torch.full((2,), "a"); torch.full((2,)); torch.eye(2.5); torch.flip(x, 0); x.flip()
torch.tril(m, diagonal="a"); x.requires_grad_("a"); i.requires_grad_(); x.div(2, rounding_mode="bad")
x + 2**70; x.sum(2**70); x.clamp(); x.view(4); x.view(-1, -1); x.reshape(5); x.t().view(6); z.t()
x.expand(3); x.expand(-1); x.permute(0); x.permute(0, 0); x.squeeze(7); x.sum(5); x.max(5); x.mean(9)
x.split(0); x.split([1]); x.chunk(0); x.narrow(0, 0, 9); x.select(0, 9); x.gather(1, k); x.index_select(0, k)
x + torch.ones(4); x @ x; torch.dot(x, x); torch.bmm(x, x); x.retain_grad(); x.nope; torch.nope; x.repeat(2)
x.topk(9); torch.arange(0, 5, 0); torch.arange(5, 0); torch.linspace(0, 1, -1); torch.randint(0, (2,))
torch.multinomial(v - v - 1, 1); torch.randperm(-1); torch.eye(-1); x.item; x.masked_fill(v, 0)
x.type_as("a"); torch.tensor([1., 2.], requires_grad=True).sum().backward(); torch.where(x > 0, x, "a")
x.max(x, 1, 2); x.clamp("a"); x.squeeze("a"); torch.max(x, foo=1); x.sum(dim="a"); x.sum(keepdim=1)
x.view("a"); x.view(); torch.randint(3); x.sum(dim=1, axis=1); torch.add(x); x.add(); torch.add(); x.exp(1)
x.is_contiguous(1); torch.add(self=x, other=y); torch.linspace(0, 1); torch.unique(i % 3)
torch.unique(i % 3, return_inverse=True, return_counts=True); k.unique(); torch.bincount(k)
torch.bincount(k, minlength=5); torch.bincount(k, weights=v); torch.isin(i, k); torch.take(x, i % 6)
x.take(k); torch.take_along_dim(x, x.argsort(1), 1); x.tensor_split(2, 1); torch.tensor_split(v, (1, 2))
torch.diff(v); x.diff(dim=0); torch.tril_indices(3, 3); torch.triu_indices(2, 3, 1)
torch.randint_like(i, 5).shape; torch.exp2(x); torch.frac(x); torch.sinh(x); x.cosh(); torch.erfc(x)
torch.logit(p / 4); torch.logaddexp(x, y); torch.hypot(x, y); torch.deg2rad(x); torch.rad2deg(i); x.sgn()
torch.vdot(v, v); torch.nansum(x / 0 * 0 + x); torch.kron(x, m); torch.fill(x, 2); x.clone().floor_()
x.clone().cos_(); x.clone().eq_(0); i.clone().remainder_(4); i.clone().floor_divide_(2)
b.clone().logical_not_(); i.clone().bitwise_and_(1); m.clone().tril_(); x.clone().cumsum_(1)
m.clone().fill_diagonal_(0); x.get_device(); torch.bincount(x); torch.take(x, k + 90); torch.sinh(i)
torch.logaddexp(x / 0, x / 0); x * np.float64(2); np.float64(2) * x; np.float32(2) + x; x + np.int64(1)
i * np.float32(2.5); x + np.ones(3); x == np.zeros(3); np.int64(2) < x
torch.add(x, y, out=torch.empty(0)); torch.add(x, y, out=torch.empty(4).double()); reversed(x); reversed(s)
"""



def plain(value):
    """A result as something that can be compared between the libraries."""
    if isinstance(value, (real.Tensor, ours.Tensor)):
        numbers = value.detach().double().tolist() if str(value.dtype) != "torch.bool" else value.tolist()
        return ("tensor", str(value.dtype), tuple(value.shape), bool(value.requires_grad), numbers)
    if isinstance(value, (real.Size, ours.Size)):
        return ("Size", *value)
    if isinstance(value, (tuple, list)):
        kind = type(value).__name__ if hasattr(value, "_fields") or hasattr(value, "n_fields") else "sequence"
        return (kind, *[plain(item) for item in value])
    if callable(value):
        return "callable"
    if isinstance(value, (bool, int, float, str, complex)) or value is None:
        return value
    return repr(value)


def close(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b) or abs(a - b) <= 1e-5 + 1e-5 * abs(b)
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(close(p, q) for p, q in zip(a, b))
    return type(a) is type(b) and a == b


def run(library, expression):
    try:
        return "gives", plain(eval(expression, names(library)))
    except Exception as error:
        return type(error).__name__, str(error)


def same_words(a, b):
    """Messages of one line are compared; longer ones list torch's own overloads."""
    a, b = a.split("\n")[0].replace("'torch'", "'mindtorch_v2'"), b.split("\n")[0]
    if "invalid combination of arguments" in a or "device type at start of device string" in a:
        return True
    return a == b


def compare_names():
    """Every row of the op table is where torch has it: at the top, on Tensor, on both or on neither."""
    passed = failed = 0
    for name in vars(ours._C.ops):
        if name.startswith("_"):
            continue
        for place, place_ours, place_real in (("torch", ours, real), ("Tensor", ours.Tensor, real.Tensor)):
            good = hasattr(place_ours, name) == hasattr(place_real, name)
            passed += good
            failed += not good
            if not good:
                print(f"FAILED {place}.{name}: torch {hasattr(place_real, name)}, ours "
                      f"{hasattr(place_ours, name)}")
    return passed, failed


def main():
    verbose = "-v" in sys.argv[1:]
    passed, failed = compare_names()
    words = 0
    expressions = [part.strip() for line in EXPRESSIONS.strip().splitlines() for part in line.split("; ")]
    for expression in expressions:
        expected, made = run(real, expression), run(ours, expression)
        if expected[0] == made[0] == "gives":
            good = close(expected[1], made[1])
        else:
            good = expected[0] == made[0]
            if good and not same_words(expected[1], made[1]):
                words += 1
                if verbose:
                    print(f"words  {expression}\n   torch {expected[1][:150]}\n   ours  {made[1][:150]}")
        passed += good
        failed += not good
        if not good:
            print(f"FAILED {expression}\n   torch {str(expected)[:200]}\n   ours  {str(made)[:200]}")
    print(f"{words} exceptions of the same type in other words (-v shows them)")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
