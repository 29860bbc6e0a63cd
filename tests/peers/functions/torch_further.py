#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The functions of mindtorch_v2._further against torch: values, types, shapes, gradients, errors, rows of a profile.

Every name in _further.FUNCTIONS and METHODS has a call here, or fails. A call is tried with random float64 and, where
it gives what depends on its inputs, its gradient is compared. The last line: N passed, N failed, N skipped.
"""
import sys
import warnings

import mindtorch_v2
import numpy as np
import torch
from mindtorch_v2 import _further

NAN = float("nan")

# Name of the function: calls (t the library, x a matrix 3 x 4, y another of it).
CALLS = {
    "addr": [lambda t, x, y: t.addr(x, x[:, 0], y[0], beta=2, alpha=3), lambda t, x, y: x.addr(y[:, 1], y[0]),
             lambda t, x, y: t.addr(x.detach() * NAN, x[:, 0], y[0], beta=0), lambda t, x, y: t.addr(x, x, y),
             lambda t, x, y: t.addr(x.detach(), x[:, 0].detach(), y[0].detach(), out=t.zeros(3, 4, dtype=t.float64))],
    "addbmm": [lambda t, x, y: t.addbmm(t.ones(2, 2, dtype=x.dtype), x.reshape(2, 2, 3), y.reshape(2, 3, 2), alpha=0.5),
               lambda t, x, y: t.addbmm(x[:2, :2], x.reshape(2, 2, 3), y.reshape(2, 3, 2), beta=0),
               lambda t, x, y: t.addbmm(x[:2, :2], x.reshape(2, 2, 3), y.reshape(4, 3, 1)),
               lambda t, x, y: t.addbmm(x[:2, :3], x.reshape(2, 2, 3), y.reshape(2, 2, 3))],
    "block_diag": [lambda t, x, y: t.block_diag(x, y[0], x[0, 0]), lambda t, x, y: t.block_diag(x, t.ones(2, 2)),
                   lambda t, x, y: t.block_diag(t.ones(1, 1, 1)), lambda t, x, y: t.block_diag(),
                   lambda t, x, y: t.block_diag(x, t.ones(0, 2))],
    "cov": [lambda t, x, y: t.cov(x), lambda t, x, y: x[0].cov(), lambda t, x, y: t.cov(x, correction=0),
            lambda t, x, y: t.cov(x, fweights=t.tensor([1, 2, 3, 1]), aweights=y[0] ** 2, correction=2),
            lambda t, x, y: t.cov(x, aweights=y[0] ** 2), lambda t, x, y: t.cov(x, fweights=t.tensor([1, 0, 2, 3])),
            lambda t, x, y: t.cov(x[:, :1]), lambda t, x, y: t.cov(t.ones(2, 2, 2)),
            lambda t, x, y: t.cov(x, fweights=t.tensor([1, 2])), lambda t, x, y: t.cov(x, fweights=y[0]),
            lambda t, x, y: t.cov(x, fweights=t.tensor([-1, 2, 3, 1])), lambda t, x, y: t.cov(x > 0)],
    "corrcoef": [lambda t, x, y: t.corrcoef(x), lambda t, x, y: x[0].corrcoef(), lambda t, x, y: t.corrcoef(x * 0),
                 lambda t, x, y: t.corrcoef(t.ones(2, 2, 2))],
    "histogram": [lambda t, x, y: t.histogram(x.detach(), 5),
                  lambda t, x, y: x.detach().histogram(4, range=(-0.5, 0.5)),
                  lambda t, x, y: t.histogram(x.detach(), t.tensor([-1.0, 0, 0.5, 1], dtype=x.dtype),
                                              weight=y.detach()),
                  lambda t, x, y: t.histogram(x.detach(), 3, density=True), lambda t, x, y: t.histogram(t.empty(0), 3),
                  lambda t, x, y: t.histogram(t.ones(3), 2), lambda t, x, y: t.histogram(t.tensor([NAN, 1.0]), 3),
                  lambda t, x, y: t.histogram(t.tensor([NAN, 1.0, 0.5]), 3, range=(0, 1)),
                  lambda t, x, y: t.histogram(t.arange(3), 3)],
    "histogramdd": [lambda t, x, y: _flat(t.histogramdd(x.detach().reshape(-1, 2), [2, 3])),
                    lambda t, x, y: _flat(t.histogramdd(x.detach(), 2, density=True)),
                    lambda t, x, y: _flat(t.histogramdd(x.detach().reshape(-1, 2), [2, 3], range=(-1, 1, 0, 1),
                                                        weight=y.detach().reshape(-1)[:6])),
                    lambda t, x, y: t.histogramdd(x.detach(), [2, 3]), lambda t, x, y: t.histogramdd(t.ones(3), 2)],
    "pdist": [lambda t, x, y: t.pdist(x), lambda t, x, y: t.nn.functional.pdist(x, 1.0), lambda t, x, y: t.pdist(x, 1.5), lambda t, x, y: t.pdist(x, float("inf")),
              lambda t, x, y: t.pdist(x[:1]), lambda t, x, y: t.pdist(x[0]), lambda t, x, y: t.pdist(x, -1.0)],
    "renorm": [lambda t, x, y: t.renorm(x, 2, 0, 0.5), lambda t, x, y: x.renorm(1, 1, 0.7),
               lambda t, x, y: t.renorm(x, 2, -1, 100.0), lambda t, x, y: t.renorm(x[0], 2, 0, 1),
               lambda t, x, y: t.renorm(x, 0, 0, 1), lambda t, x, y: t.renorm(x, 2, 0, -1.0)],
    "range": [lambda t, x, y: t.range(1, 4, 0.5), lambda t, x, y: t.range(0, 3, dtype=t.int64),
              lambda t, x, y: t.range(3, 0, -1), lambda t, x, y: t.range(3, 0), lambda t, x, y: t.range(0, 3, 0)],
    "logspace": [lambda t, x, y: t.logspace(-2, 2, 5, 2.0), lambda t, x, y: t.logspace(0, 3, 4, dtype=t.int64),
                 lambda t, x, y: t.logspace(0, 3, 0), lambda t, x, y: t.logspace(2, 3, 1, dtype=t.float64)],
    "vander": [lambda t, x, y: t.vander(t.tensor([1, 2, 3])), lambda t, x, y: t.vander(x[0].detach(), 3, True),
               lambda t, x, y: t.vander(x[0].detach(), 0), lambda t, x, y: t.vander(x),
               lambda t, x, y: t.vander(t.tensor([1, 2], dtype=t.int8))],
    "cartesian_prod": [lambda t, x, y: t.cartesian_prod(x[0], y[1]), lambda t, x, y: t.cartesian_prod(x[0]),
                       lambda t, x, y: t.cartesian_prod(t.arange(2), t.arange(0), t.arange(3)),
                       lambda t, x, y: t.cartesian_prod(x, y)],
    "combinations": [lambda t, x, y: t.combinations(x[0]), lambda t, x, y: t.combinations(x[0], 3, True),
                     lambda t, x, y: t.combinations(t.arange(3), 0), lambda t, x, y: t.combinations(t.arange(2), 3),
                     lambda t, x, y: t.combinations(x)],
    "unravel_index": [lambda t, x, y: t.unravel_index(t.tensor([[5, 7], [0, 11]]), (3, 4)),
                      lambda t, x, y: t.unravel_index(t.tensor(5), (2, 3, 2)),
                      lambda t, x, y: t.unravel_index(x, (3,))],
    "gradient": [lambda t, x, y: t.gradient(x), lambda t, x, y: t.gradient(x, spacing=2.0, edge_order=2),
                 lambda t, x, y: t.gradient(x, dim=1), lambda t, x, y: t.gradient(x, spacing=[0.5, 2.0]),
                 lambda t, x, y: t.gradient(x, spacing=[t.tensor([0.0, 1, 3]), t.tensor([0.0, 0.5, 2, 3])]),
                 lambda t, x, y: t.gradient(x, dim=1, spacing=[t.tensor([0.0, 0.5, 2, 3])], edge_order=2),
                 lambda t, x, y: t.gradient(x[:1]), lambda t, x, y: t.gradient(x, edge_order=3)],
    "hsplit": [lambda t, x, y: t.hsplit(x, 2), lambda t, x, y: x[0].hsplit([1, 3]), lambda t, x, y: t.hsplit(x, 3),
               lambda t, x, y: t.hsplit(x[0, 0], 1)],
    "vsplit": [lambda t, x, y: t.vsplit(x, 3), lambda t, x, y: x.vsplit([1]), lambda t, x, y: t.vsplit(x[0], 1)],
    "dsplit": [lambda t, x, y: t.dsplit(x.reshape(1, 3, 4), 2), lambda t, x, y: t.dsplit(x, 2)],
    "diagflat": [lambda t, x, y: t.diagflat(x), lambda t, x, y: x[0].diagflat(-1)],
    "narrow_copy": [lambda t, x, y: t.narrow_copy(x, 0, 1, 1), lambda t, x, y: x.narrow_copy(1, 1, 3)],
    "adjoint": [lambda t, x, y: t.adjoint(x), lambda t, x, y: x[0].adjoint()],
    # torch's gradient of the first argument is that of the view, so it is not compared.
    "as_strided_scatter": [lambda t, x, y: t.as_strided_scatter(x.detach(), y[0, :2], (2,), (5,)),
                           lambda t, x, y: x.detach().as_strided_scatter(y[:2, :2], (2, 2), (4, 1), 1)],
    "put": [lambda t, x, y: t.put(x, t.tensor([1, -2]), y[0, :2]),
            lambda t, x, y: x.t().put(t.tensor([[1, 3, 1]]), y[:1, :3], True),
            lambda t, x, y: t.put(x, t.tensor([1]), y[0]), lambda t, x, y: t.put(x, t.tensor([1]), t.tensor([1])),
            lambda t, x, y: t.put(x, t.tensor([1.0]), y[0, :1]), lambda t, x, y: t.put(x, t.tensor([12]), y[0, :1])],
    "empty_strided": [lambda t, x, y: t.tensor(t.empty_strided((2, 3), (1, 2)).stride()),
                      lambda t, x, y: t.empty_strided((2, 0), (1, 2)), lambda t, x, y: t.empty_strided((2,), (1, 2))],
    "isreal": [lambda t, x, y: t.isreal(x), lambda t, x, y: t.tensor([1 + 0j, 1j]).isreal()],
    "is_signed": [lambda t, x, y: t.tensor([t.is_signed(x), t.is_signed(t.ones(1, dtype=t.uint8))])],
    "is_conj": [lambda t, x, y: t.tensor(t.is_conj(x))],
    "is_neg": [lambda t, x, y: t.tensor(t.is_neg(x))],
    "get_device": [lambda t, x, y: t.tensor(t.get_device(x))],
    "addr_": [lambda t, x, y: (x * 1).addr_(x[:, 0], y[0]),
              lambda t, x, y: t.ones(3, 4, dtype=t.int64).addr_(x[:, 0], y[0])],
    "addbmm_": [lambda t, x, y: (x[:2, :2] * 1).addbmm_(x.reshape(2, 2, 3), y.reshape(2, 3, 2))],
    "renorm_": [lambda t, x, y: (x * 1).renorm_(2, 0, 0.5)],
    "put_": [lambda t, x, y: (x * 1).put_(t.tensor([1, 3]), y[0, :2]),
             lambda t, x, y: (x * 1).t().put_(t.tensor([[1, 3]]), y[:1, :2], True)],
    "deg2rad_": [lambda t, x, y: (x * 1).deg2rad_(), lambda t, x, y: t.ones(2, dtype=t.int64).deg2rad_()],
    "rad2deg_": [lambda t, x, y: (x * 1).rad2deg_()],
    "polygamma_": [lambda t, x, y: (x.detach() + 3).polygamma_(2)],
    "mvlgamma_": [lambda t, x, y: (x.detach() + 3).mvlgamma_(2)],
    "resize_": [lambda t, x, y: (x.detach() * 1).resize_(2, 2), lambda t, x, y: (x.detach() * 1).resize_((5, 4))[:3],
                lambda t, x, y: (x.detach() * 1)[1].resize_(2, 3),
                lambda t, x, y: t.ones(2, requires_grad=True).resize_(3),
                lambda t, x, y: t.empty(0).resize_(0, 3), lambda t, x, y: (x.detach() * 1).t().resize_(3, 3),
                lambda t, x, y: t.ones(2).resize_(-1)],
    "resize_as_": [lambda t, x, y: (x.detach() * 1).resize_as_(t.ones(2))],
    "new_empty_strided": [lambda t, x, y: t.tensor(x.new_empty_strided((2, 3), (1, 2)).stride())],
    "cauchy_": [lambda t, x, y: (t.empty(20000).cauchy_(2, 3).quantile(t.tensor([0.25, 0.5, 0.75])) / 3).round(),
                lambda t, x, y: t.ones(3, dtype=t.int64).cauchy_(), lambda t, x, y: t.ones(3).cauchy_(0, -1)],
    "log_normal_": [lambda t, x, y: (t.empty(20000).log_normal_(1, 0.5).log().mean() * 10).round(),
                    lambda t, x, y: t.ones(3).log_normal_(0, -1),
                    lambda t, x, y: t.ones(3, dtype=t.int64).log_normal_()],
    "geometric_": [lambda t, x, y: (t.empty(20000).geometric_(0.3).mean() * 3).round(),
                   lambda t, x, y: t.empty(2000, dtype=t.int64).geometric_(0.3).min(),
                   lambda t, x, y: t.ones(3).geometric_(1.5)],
    "apply_": [lambda t, x, y: (x.detach() * 1).apply_(lambda v: v + 1),
               lambda t, x, y: t.ones(2, requires_grad=True).apply_(abs)],
    "map_": [lambda t, x, y: (x.detach() * 1).map_(y.detach(), lambda a, b: a + 2 * b)],
    "cfloat": [lambda t, x, y: t.view_as_real(x.detach().cfloat())],
    "cdouble": [lambda t, x, y: t.view_as_real(x.detach().cdouble())],
    "rrelu": [lambda t, x, y: t.rrelu(x), lambda t, x, y: t.rrelu(x, 0.3, 0.3, True)],
    "rrelu_": [lambda t, x, y: t.rrelu_(x * 1, 0.2, 0.4)],
    "unsafe_split": [lambda t, x, y: t.unsafe_split(x, 2), lambda t, x, y: x.unsafe_split(3, 1)],
    "unsafe_split_with_sizes": [lambda t, x, y: t.unsafe_split_with_sizes(x, [1, 2])],
    "unsafe_chunk": [lambda t, x, y: t.unsafe_chunk(x, 2)],
    "nonzero_static": [lambda t, x, y: t.nonzero_static(x > 0, size=15)],
    "dim_order": [lambda t, x, y: t.tensor(x.t().dim_order())],
    "svd_lowrank": [lambda t, x, y: t.svd_lowrank(x, 3)[1]],
    "pca_lowrank": [lambda t, x, y: t.pca_lowrank(x, 3)[1]],
    "vmap": [lambda t, x, y: t.vmap(lambda row: row * row.sum())(x)],
    "jvp": [lambda t, x, y: t.func.jvp(lambda a, b: (a * b).exp(), (x, y), (y, x)),
            lambda t, x, y: t.func.jvp(lambda a: {"o": a @ y.t()}, (x.detach(),), (y,))[1]["o"],
            lambda t, x, y: t.func.jvp(lambda a: (a.sin(), y), (x,), (y,), has_aux=True),
            lambda t, x, y: t.func.jvp(lambda a: y * 2, (x,), (y,)),
            lambda t, x, y: t.func.jvp(lambda a: t.func.jvp(t.sin, (a,), (y,))[1], (x,), (x,)),
            lambda t, x, y: t.func.grad(lambda a: t.func.jvp(lambda b: b ** 3, (a,), (y,))[1].sum())(x),
            lambda t, x, y: t.func.jvp(t.sin, x, y), lambda t, x, y: t.func.jvp(t.sin, (x,), (y[:2],)),
            lambda t, x, y: t.func.jvp(t.sin, (), ()), lambda t, x, y: t.func.jvp(lambda a: 3, (x,), (y,)),
            lambda t, x, y: t.func.jvp(lambda a: y, (x,), (y,), strict=True)],
    "linearize": [lambda t, x, y: t.func.linearize(lambda a: a.tanh() * 2, x.detach())[1](y.detach()),
                  lambda t, x, y: t.func.linearize(lambda a, b: a * b, x.detach(), y.detach())[0]],
    "jacfwd": [lambda t, x, y: t.func.jacfwd(lambda a: a * a.sum())(x),
               lambda t, x, y: t.func.jacfwd(lambda a, b: (a * b, a.sum()), (0, 1))(x, y)[1],
               lambda t, x, y: t.func.jacfwd(t.func.jacrev(lambda a: (a ** 3).sum()))(x),
               lambda t, x, y: t.func.jacfwd(t.sin, 3)(x)],
    "jacrev": [lambda t, x, y: t.func.jacrev(lambda a: a * a.sum())(x), lambda t, x, y: t.func.jacrev(t.sin)(3),
               lambda t, x, y: t.func.jacrev(lambda a: (a, 3))(x), lambda t, x, y: t.func.jacrev(t.sin, 2)(x),
               lambda t, x, y: t.func.jacrev(lambda a: a.long())(x)],
    "grad": [lambda t, x, y: t.func.grad(lambda a, b: (a * b).sum(), (1, -2))(x, y),
             lambda t, x, y: t.func.grad(t.sum, ())(x), lambda t, x, y: t.func.grad(t.sum, (0, 0))(x),
             lambda t, x, y: t.func.grad(t.sum, "x")(x), lambda t, x, y: t.func.grad(lambda a: a)(3.0)],
    "vjp": [lambda t, x, y: t.func.vjp(lambda a: a ** 2, x)[1](y)[0], lambda t, x, y: t.func.vjp(lambda a: 3, x)],
}
# Those that torch shows as one op around its parts.
ROWS = """addr addbmm block_diag cov corrcoef histogram pdist renorm cartesian_prod combinations hsplit vsplit
dsplit diagflat rrelu rrelu_ unsafe_split unsafe_split_with_sizes unsafe_chunk nonzero_static""".split()
# Words, not exceptions, differ: (name, a word of torch's message).
OTHER_WORDS = {("put", "out of range"), ("resize_", "negative dimension"), ("unravel_index", ""), ("histogramdd", ""),
               ("pdist", ""), ("addbmm", "size"), ("gradient", "spacing"), ("cauchy_", ""), ("apply_", "")}


def _flat(result):
    return result[0], *result[1]


def tried(t, call, arrays):
    inputs = [t.tensor(array, requires_grad=True) for array in arrays]
    result = call(t, *inputs)
    parts = list(result) if isinstance(result, (tuple, list)) else [result]
    wanted = [part for part in parts if part.requires_grad]
    grads = []
    if wanted:
        total = sum((part * part).sum() + part.sum() for part in wanted)
        grads = t.autograd.grad(total, inputs, allow_unused=True)
    return parts, [grad for grad in grads if grad is not None], len(grads)


def differs(ours, theirs):
    for i, (a, b) in enumerate(zip(ours[0] + ours[1], theirs[0] + theirs[1])):
        if str(a.dtype) != str(b.dtype) or tuple(a.shape) != tuple(b.shape):
            return f"{i}: {a.dtype} {tuple(a.shape)}, torch's {b.dtype} {tuple(b.shape)}"
        rtol = 2e-6 if a.dtype == mindtorch_v2.float32 else 1e-10
        if not np.allclose(a.detach().numpy(), b.detach().numpy(), rtol, 1e-12, equal_nan=True):
            return f"{i}: {a}, torch's {b}"
    if (len(ours[0]), len(ours[1]), ours[2]) != (len(theirs[0]), len(theirs[1]), theirs[2]):
        return f"{len(ours[0])} results, {len(ours[1])} gradients; torch's {len(theirs[0])}, {len(theirs[1])}"
    return None


def compare(name, call, arrays):
    answers = []
    for t in (mindtorch_v2, torch):
        try:
            answers.append((tried(t, call, arrays), None))
        except Exception as error:  # noqa: BLE001 whatever either raises
            answers.append((None, error))
    (ours, mine), (theirs, its) = answers
    if mine is None and its is None:
        return differs(ours, theirs)
    if type(mine).__name__ != type(its).__name__:
        return f"raised {mine!r}, torch {its!r}"
    if str(mine).split("\n")[0] != str(its).split("\n")[0] and not any(
            name == other and word in str(its) for other, word in OTHER_WORDS):
        return f"words: {mine}; torch: {its}"
    return None


def op_missing(name, call, arrays):
    """None where both profiles have the op at the user's level."""
    from mindtorch_v2.profiler import profile

    x, y = (mindtorch_v2.tensor(array) for array in arrays)
    with profile(record_shapes=True) as mine:
        call(mindtorch_v2, x, y)
    x, y = (torch.tensor(array) for array in arrays)
    with torch.profiler.profile(record_shapes=True) as its:
        call(torch, x, y)
    shapes = [[(event.name, event.input_shapes) for event in p.events() if event.name == f"aten::{name}"]
              for p in (mine, its)]
    return None if len(shapes[0]) == len(shapes[1]) == 1 else f"in our profile {shapes[0]}, in torch's {shapes[1]}"


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(3)
    mindtorch_v2.manual_seed(3)
    passed = failed = 0
    rng = np.random.default_rng(5)
    arrays = [rng.uniform(-1, 1, (3, 4)), rng.uniform(-1, 1, (3, 4))]
    for name in sorted((set(_further.FUNCTIONS) | set(_further.METHODS)) - set(CALLS)):
        failed += 1
        print(f"FAIL {name} has no call here")
    for name, calls in CALLS.items():
        for i, call in enumerate(calls):
            text = compare(name, call, arrays)
            text = text or (op_missing(name, call, arrays) if i == 0 and name in ROWS else None)
            if text is None:
                passed += 1
            else:
                failed += 1
                print(f"FAIL {name}, call {i}: {text}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
