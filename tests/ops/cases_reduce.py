# SPDX-License-Identifier: Apache-2.0
"""Cases of ops_reduce.def. References are NumPy."""
import numpy as np
from opcases import ALL, NUMBERS, TITLES, Bad, Case, Fixed, cases

NAN, INF = float("nan"), float("inf")
OUT_OF_RANGE = "Dimension out of range (expected to be in range of [-2, 1], but got 2)"


def axes(dim):
    """NumPy's axis for a list of dimensions: none, or an empty list, means all."""
    return tuple(dim) if dim else None


def over(function):
    """A reference of (a, dim, keepdim) from a NumPy reduction; 0-d arrays are 1-d ones."""

    def reference(a, dim=None, keepdim=False, **more):
        if a.ndim == 0:
            return np.asarray(function(a.reshape(1), axis=None, keepdims=False, **more)).reshape(())
        return function(a, axis=axes(dim), keepdims=keepdim, **more)

    return reference


SHAPES = (((3, 4), ()), ((3, 4), ([0],)), ((3, 4), ([1], True)), ((3, 4), ([-1],)),
          ((2, 3, 4), ([0, 2],)), ((2, 3, 4), ([1, -1], True)), ((2, 3, 4), ([], True)), ((), ()),
          ((), ([0],)), ((), ([-1], True)), ((5,), ([0],)), ((1, 3), ([0],)))
EMPTY = (((0,), ()), ((2, 0), ([1],)), ((2, 0), ([0], True)), ((0, 3), ([0],)))


def widened(a):
    """Integers as sums have them."""
    return a if a.dtype.kind == "f" else a.astype(np.int64)


@cases("sum", dtypes=ALL)
def total(g):
    reference = over(lambda a, **more: np.sum(widened(a), **more))
    for shape, more in SHAPES + EMPTY:
        yield Case((g.array(shape), *more), {}, reference, double=shape == (3, 4))
    yield Case((g.array((3, 4)),), {"dtype": "float64"}, lambda a, dtype: np.sum(a.astype(np.float64)),
               result="float64")
    yield Case((g.array((3, 4)), [0]), {"dtype": "int32"},
               lambda a, dim, dtype: np.sum(a.astype(np.int32), 0, dtype=np.int32), result="int32",
               grad=False)
    yield Bad((g.array((3, 4)), [0, 0]), "RuntimeError", "dim 0 appears multiple times in the list")
    yield Bad((g.array((3, 4)), [2]), "IndexError", OUT_OF_RANGE)
    if g.floating:
        yield Case((g.array((70, 33)), [0]), {}, reference, grad=False)
        yield Case((g.array((33, 70)), [1]), {}, reference, grad=False)
        yield Case((g.array((3000,)),), {}, reference, grad=False)
        yield Case((g.cast([1.0, NAN, INF]),), {}, reference, grad=False)


@cases("mean", dtypes=ALL)
def mean(g):
    if not g.floating:
        title = TITLES[g.dtype]
        yield Bad((g.array((3,)),), "RuntimeError", "mean(): could not infer output dtype. Input dtype "
                  f"must be either a floating point or complex dtype. Got: {title}")
        yield Case((g.array((3, 4)), [1]), {"dtype": "float64"},
                   lambda a, dim, dtype: np.mean(a, 1), result="float64")
        yield Case((g.array(()),), {"dtype": "float32"}, lambda a, dtype: a * 1.0, result="float32")
        yield Case((g.array((0,)),), {"dtype": "float32"}, lambda a, dtype: np.float64(NAN),
                   result="float32")
        return
    reference = over(np.mean)
    for shape, more in SHAPES:
        yield Case((g.array(shape), *more), {}, reference, double=shape == (3, 4))
    yield Case((g.array((0,)),), {}, lambda a: np.float64(NAN))
    yield Case((g.array((2, 0)), [1]), {}, lambda a, dim: np.full((2,), NAN))
    yield Bad((g.array((3,)),), "RuntimeError", "Optional dtype must be either", {"dtype": "int64"})


@cases("prod", dtypes=ALL)
def prod(g):
    for shape in ((3, 4), (2, 3, 2), (), (0,)):
        yield Case((g.array(shape),), {}, lambda a: np.prod(widened(a)), double=shape == (3, 4))
    if g.floating:
        yield Case((g.cast([2.0, 0.0, 3.0]),), {}, np.prod, double=True, layouts=("contiguous",))
        yield Case((g.cast([0.0, 0.0, 3.0]),), {}, np.prod, layouts=("contiguous",))
    yield Case((g.array((3,)),), {"dtype": "float64"}, lambda a, dtype: np.prod(a.astype(np.float64)),
               result="float64")


@cases("prod.dim_int", dtypes=ALL)
def prod_dim(g):
    reference = over(lambda a, **more: np.prod(widened(a), **more))
    for shape, dim, keepdim in (((3, 4), 0, False), ((3, 4), -1, True), ((), 0, False),
                                ((2, 0), 1, False), ((2, 3, 2), 1, False)):
        yield Case((g.array(shape), dim, keepdim), {},
                   lambda a, dim, keepdim: reference(a, [dim], keepdim), double=shape == (3, 4))
    if g.floating:
        zeros = g.cast([[0.0, 2.0, 3.0], [0.0, 0.0, 1.0], [1.0, 2.0, 3.0]])
        yield Case((zeros, 1), {}, lambda a, dim: np.prod(a, 1), double=True)
    yield Bad((g.array((3, 4)), 2), "IndexError", OUT_OF_RANGE)


# ---- variance ----


def variance_of(a, dim=None, keepdim=False, correction=1):
    count = a.size if not dim or a.ndim == 0 else np.prod([a.shape[d] for d in dim])
    if a.ndim == 0:
        squares, keepdim = np.zeros(()), False
    else:
        squares = np.sum((a - a.mean(axes(dim), keepdims=True)) ** 2, axes(dim), keepdims=keepdim)
    return squares / max(0.0, count - correction)


@cases("var", "std", "var_mean")
def variance(g):
    def reference(a, dim=None, keepdim=False, correction=1):
        var = variance_of(a, dim, keepdim, correction)
        if g.op == "var_mean":
            return var, over(np.mean)(a, dim, keepdim)
        return var if g.op == "var" else np.sqrt(var)

    for shape, more in SHAPES:
        big = int(np.prod(shape)) > 1
        yield Case((g.array(shape), *more), {}, reference, double=shape == (3, 4), grad=None if
                   big and shape != (1, 3) else False)
        yield Case((g.array(shape), *more), {"correction": 0}, reference,
                   grad=None if big and shape != (1, 3) else False)
    yield Case((g.array((3, 4)), [1]), {"correction": 1.5}, reference)
    yield Case((g.array((3, 4)), [1]), {"correction": 7}, reference, grad=False)
    yield Case((g.array((2000,)),), {}, reference, grad=False)
    yield Case((g.cast(1e4 + g.rng.uniform(-1, 1, (4, 300))), [1]), {}, reference, grad=False,
               rtol=1e-3 if g.dtype == "float32" else 1e-9, note="far from zero")
    nothing = np.float64(NAN)
    yield Case((g.array((0,)),), {}, lambda a: (nothing, nothing) if g.op == "var_mean" else nothing)
    words = "var_mean" if g.op == "var_mean" else "std and var"
    yield Bad((g.other("int64", (3,)),), "RuntimeError",
              f"{words} only support floating point and complex dtypes")


# ---- extremes ----


@cases("max", "min", dtypes=ALL, skip={"empty": "an error, tried as such"})
def extreme(g):
    reference = np.max if g.op == "max" else np.min
    for shape in ((3, 4), (7,), ()):
        yield Case((g.distinct(shape),), {}, reference, double=shape == (3, 4) and g.floating)
    yield Bad((g.array((0,)),), "RuntimeError", f"{g.op}(): Expected reduction dim to be specified for "
              "input.numel() == 0. Specify the reduction dim with the 'dim' argument.")
    if g.floating:
        yield Case((g.cast([1.0, NAN, INF]),), {}, reference, grad=False)
        yield Case((g.array((1000,)),), {}, reference, grad=False)


@cases("max.dim", "min.dim", dtypes=ALL)
def extreme_dim(g):
    largest = g.op == "max.dim"

    def reference(a, dim, keepdim=False):
        a1 = a.reshape(1) if a.ndim == 0 else a
        values = (np.max if largest else np.min)(a1, dim, keepdims=keepdim)
        places = (np.argmax if largest else np.argmin)(a1, dim)
        if keepdim and a.ndim > 0:
            places = np.expand_dims(places, dim)
        return np.asarray(values).reshape(() if a.ndim == 0 else values.shape), \
            np.asarray(places).reshape(() if a.ndim == 0 else places.shape)

    for shape, dim, keepdim in (((3, 4), 0, False), ((3, 4), -1, True), ((2, 3, 4), 1, False),
                                ((), 0, False), ((), -1, True), ((5,), 0, False)):
        yield Case((g.distinct(shape), dim, keepdim), {}, reference, double=shape == (3, 4) and
                   g.floating)
    yield Case((g.cast(np.array([[2, 2, 1], [0, 1, 1]])), 1), {}, reference, grad=False,
               note="the first of equals")
    yield Case((g.array((2, 0)), 0), {}, lambda a, dim: (np.zeros((0,), a.dtype), np.zeros((0,), np.int64)))
    if g.floating:
        yield Case((g.cast([[1.0, NAN, INF, NAN]]), 1), {}, lambda a, dim: (np.array([NAN]),
                                                                          np.array([1])), grad=False,
                   layouts=("contiguous", "sliced"))
    name = g.op.split(".")[0]
    yield Bad((g.array((2, 0)), 1), "IndexError",
              f"{name}(): Expected reduction dim 1 to have non-zero size.")
    yield Bad((g.array((3, 4)), 2), "IndexError", OUT_OF_RANGE)


@cases("amax", "amin", dtypes=ALL)
def extremes(g):
    reference = over(np.max if g.op == "amax" else np.min)
    for shape, more in SHAPES:
        yield Case((g.distinct(shape), *more), {}, reference)
    yield Case((g.array((2, 0)), [0]), {}, lambda a, dim: np.zeros((0,), a.dtype))
    yield Bad((g.array((2, 0)), [1]), "IndexError",
              f"{g.op}(): Expected reduction dim 1 to have non-zero size.")
    yield Bad((g.array((0,)),), "RuntimeError", f"{g.op}(): Expected reduction dim to be specified")


@cases("argmax", "argmin", dtypes=ALL)
def places(g):
    if g.is_bool:
        yield Bad((g.array((3,)),), "RuntimeError", f"{g.op}(): does not support bool input")
        return

    def reference(a, dim=None, keepdim=False):
        place = (np.argmax if g.op == "argmax" else np.argmin)(a.reshape(1) if a.ndim == 0 else a, dim)
        if a.ndim == 0:
            return np.asarray(place).reshape(())
        if keepdim:
            place = np.asarray(place).reshape((1,) * a.ndim) if dim is None else np.expand_dims(place, dim)
        return np.asarray(place)

    for shape in ((3, 4), (2, 3, 4), (5,), ()):
        yield Case((g.distinct(shape),), {}, reference)
        yield Case((g.distinct(shape), None, True), {}, reference)
        yield Case((g.distinct(shape), 0), {}, reference)
        yield Case((g.distinct(shape), -1, True), {}, reference)
    yield Case((g.array((2, 0)), 0), {}, lambda a, dim: np.zeros((0,), np.int64))
    yield Bad((g.array((0,)),), "IndexError", f"{g.op}(): Expected reduction dim to be specified for "
              "input.numel() == 0.")
    yield Bad((g.array((2, 0)), 1), "IndexError", "to have non-zero size")
    if g.floating:
        yield Case((g.cast([1.0, NAN, 5.0, NAN]),), {}, lambda a: np.array(1), layouts=("contiguous",
                                                                                     "sliced"))


# ---- truth ----


@cases("all", "any", dtypes=ALL)
def truth(g):
    result = "uint8" if g.dtype == "uint8" else "bool"
    reference = over(lambda a, **more: (np.all if g.op == "all" else np.any)(a, **more))
    low = (0, 1) if g.integer else ()
    for shape, more in SHAPES + EMPTY:
        if more and more[0] == []:
            continue
        yield Case((g.array(shape, *low), *more), {}, reference, result=result)
    yield Case((g.cast(np.zeros((3, 4))), [1]), {}, reference, result=result)
    yield Case((g.cast(np.ones((3, 4))), [0]), {}, reference, result=result)
    yield Case((g.array((3, 4), *low), []), {}, lambda a, dim: a != 0, result=result,
               note="an empty list reduces nothing")
    if g.floating:
        yield Case((g.cast([NAN, 1.0, 0.0]),), {}, reference, result=result)


@cases("count_nonzero", dtypes=ALL)
def count_nonzero(g):
    reference = over(lambda a, axis, keepdims: np.asarray(np.count_nonzero(a, axis=axis)))
    low = (0, 1) if g.integer else ()
    for shape, more in SHAPES + EMPTY:
        yield Case((g.array(shape, *low), *more[:1]), {}, reference, result="int64")


# ---- norms ----


def norm_of(a, p=2, dim=None, keepdim=False):
    if a.ndim == 0:
        return norm_of(a.reshape(1), p)
    x, axis = np.abs(a), axes(dim)
    if p == INF:
        return x.max(axis, keepdims=keepdim)
    if p == -INF:
        return x.min(axis, keepdims=keepdim)
    if p == 0:
        return (x != 0).sum(axis, keepdims=keepdim).astype(np.float64)
    return np.sum(x ** p, axis, keepdims=keepdim) ** (1 / p)


@cases("norm", "linalg_vector_norm")
def norm(g):
    for p in (0, 1, 2, 3, 2.5, -1, 0.5, INF, -INF):
        yield Case((g.away((3, 4)), p), {}, norm_of, double=p in (2, 3, 2.5), grad=None if p != 0
                   else False)
        yield Case((g.away((2, 3, 4)), p, [0, -1], True), {}, norm_of, grad=None if p != 0 else False)
        yield Case((g.away(()), p), {}, norm_of, grad=None if p != 0 else False)
    yield Case((g.away((3, 4)),), {}, norm_of)
    yield Case((g.away((3, 4)), 2, []), {}, norm_of)
    yield Case((g.array((0,)), 2), {}, lambda a, p: np.float64(0))
    yield Case((g.array((2, 0)), 1, [1]), {}, lambda a, p, dim: np.zeros(2))
    yield Case((g.cast([0.0, NAN]), 0), {}, lambda a, p: np.float64(1), grad=False,
               layouts=("contiguous", "sliced"))
    yield Bad((g.array((0,)), INF), "RuntimeError", "cannot compute the inf norm on an empty tensor")
    yield Bad((g.other("int64", (3,)),), "RuntimeError", "linalg.vector_norm: Expected a floating point "
              "or complex tensor as input. Got Long")


@cases("logsumexp", dtypes=ALL)
def logsumexp(g):
    def reference(a, dim, keepdim=False):
        a = np.asarray(a, np.float64)
        if a.ndim == 0:
            return a
        with np.errstate(all="ignore"):
            top = a.max(axes(dim), keepdims=True)
            top = np.where(np.isfinite(top), top, 0)
            out = np.log(np.exp(a - top).sum(axes(dim), keepdims=True)) + top
        return out if keepdim else out.reshape(np.sum(a, axes(dim)).shape)

    for shape, more in SHAPES:
        if more and more[0]:
            yield Case((g.array(shape), *more), {}, reference, double=shape == (3, 4))
    yield Case((g.array((0, 2)), [0]), {}, lambda a, dim: np.full((2,), -INF))
    if g.floating:
        yield Case((g.cast([[-INF, -INF], [INF, 1.0], [1000.0, 1000.0]]), [1]), {}, reference, grad=False)


# ---- running ----


@cases("cumsum", "cumprod", dtypes=ALL)
def running(g):
    function = np.cumsum if g.op == "cumsum" else np.cumprod

    def reference(a, dim, dtype=None):
        a = widened(a) if dtype is None else a.astype(dtype)
        return a if a.ndim == 0 else function(a, dim, dtype=a.dtype)

    for shape, dim in (((3, 4), 0), ((3, 4), -1), ((2, 3, 4), 1), ((5,), 0), ((), 0), ((2, 0), 1),
                       ((0, 2), 0)):
        yield Case((g.array(shape, *((-2, 2) if g.dtype in ("int32", "int64") else ())), dim), {},
                   reference, double=shape == (3, 4))
    if g.op == "cumprod" and g.floating:
        yield Case((g.cast([[2.0, 0.0, 3.0, 0.0, 2.0], [1.0, 2.0, 3.0, 4.0, 0.0]]), 1), {}, reference,
                   double=True)
    yield Case((g.array((3, 4), *((0, 3) if g.integer else ())), 1), {"dtype": "float64"}, reference,
               result="float64")
    yield Bad((g.array((3, 4)), 2), "IndexError", OUT_OF_RANGE)


@cases("sum_to_size", dtypes=NUMBERS, skip={"0-d": "nothing to sum; an error is tried"})
def sum_to_size(g):
    def reference(a, size):
        more = a.ndim - len(size)
        a = widened(a) if tuple(size) != a.shape else a
        a = a.sum(tuple(range(more))) if more else a
        dims = tuple(d for d, s in enumerate(size) if s == 1 and a.shape[d] != 1)
        return a.sum(dims, keepdims=True) if dims else a

    for shape, size in (((3, 4), [1, 4]), ((3, 4), [4]), ((2, 3, 4), [3, 1]), ((3, 4), [3, 4])):
        yield Case((g.array(shape), size), {}, reference, double=True)
    yield Case((g.array((0, 4)), [1, 4]), {}, reference)
    yield Bad((g.array((3, 4)), [2]), "RuntimeError", "size {[2]} is not expandable to size {[3, 4]}.")
    yield Bad((g.array(()), [1]), "RuntimeError", "size {[1]} is not expandable to size {[]}.")
    yield Bad((g.array((3,)), [1, 1, 1]), "RuntimeError", "is not expandable to size {[3]}.")


# ---- the same? ----


@cases("equal", dtypes=ALL)
def equal(g):
    a = g.distinct((3, 4))
    b = a.copy()
    b[2, 3] = not b[2, 3] if g.is_bool else b[2, 3] + 1
    yield Case((a, a.copy()), {}, lambda x, y: bool(np.array_equal(x, y)))
    yield Case((a, b), {}, lambda x, y: bool(np.array_equal(x, y)), layouts=("contiguous", "transposed"))
    yield Case((a, a[:2].copy()), {}, lambda x, y: False)
    yield Case((g.array((0, 2)), g.array((0, 2))), {}, lambda x, y: True)
    yield Case((Fixed(g.cast(1)), Fixed(g.cast(1))), {}, lambda x, y: True)
    if g.floating:
        yield Case((g.cast([NAN]), g.cast([NAN])), {}, lambda x, y: False)


@cases("allclose", dtypes=ALL)
def allclose(g):
    a = g.distinct((3, 4))
    near = a * g.cast(1 + 1e-6) if g.floating else a.copy()
    far = a + g.cast(1) if not g.is_bool else ~a
    yield Case((a, near), {}, lambda x, y: True, grad=False)
    yield Case((a, far), {}, lambda x, y: False, grad=False)
    yield Case((a, far, 0.0, 1.5), {}, lambda x, y, rtol, atol: True, grad=False)
    yield Case((a, near[:1].copy()), {}, lambda x, y: bool(np.allclose(x, y)), grad=False)
    yield Case((g.array((0, 2)), g.array((0, 2))), {}, lambda x, y: True, grad=False)
    yield Case((Fixed(g.cast(1)), Fixed(g.cast(1))), {}, lambda x, y: True, grad=False)
    if g.floating:
        odd = g.cast([INF, -INF, NAN])
        yield Case((odd[:2].copy(), odd[:2].copy()), {}, lambda x, y: True, grad=False)
        yield Case((odd[:1].copy(), g.cast([1.0])), {}, lambda x, y: False, grad=False)
        yield Case((odd, odd.copy()), {}, lambda x, y: False, grad=False, layouts=("contiguous",))
        yield Case((odd, odd.copy(), 1e-5, 1e-8, True), {}, lambda x, y, *more: True, grad=False)
        yield Bad((a, a.astype("float32" if g.dtype == "float64" else "float64")), "RuntimeError",
                  "did not match")
    yield Bad((a, a, -1.0), "RuntimeError", "rtol must be greater than or equal to zero, but got -1")
    yield Bad((a, a, 0.0, -1.0), "RuntimeError", "atol must be greater than or equal to zero")
