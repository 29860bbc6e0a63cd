# SPDX-License-Identifier: Apache-2.0
"""Cases of ops_order.def. References are NumPy."""
import numpy as np
from cases_index import ordered
from opcases import ALL, EVERY, FLOATS, HALVES, INTEGERS, NUMBERS, Bad, Case, Fixed, cases

NAN, INF = float("nan"), float("inf")
ONCE = ("contiguous", "sliced")
OUT_OF_RANGE = "Dimension out of range (expected to be in range of [-2, 1], but got 2)"
UNIQUE = {"extremes": {kind: "equal elements become different ones" for kind in ("large", "small", "mean")}}


def longs(*numbers):
    return np.array(numbers, np.int64)


def one_of(a, dim, keepdim, rank):
    """The element of each row whose rank in the order rank(row) gives, with its place."""
    if a.ndim == 0:
        return a, np.int64(0)
    values, places = ordered(a, dim)
    at = np.expand_dims(np.apply_along_axis(rank, dim, a), dim).astype(np.int64)
    values, places = np.take_along_axis(values, at, dim), np.take_along_axis(places, at, dim)
    return (values, places) if keepdim else (values.squeeze(dim), places.squeeze(dim))


def isnan(row):
    return np.isnan(row) if row.dtype.kind == "f" else np.zeros(row.shape, bool)


def middle(row):
    return len(row) - isnan(row).sum() if isnan(row).any() else (len(row) - 1) // 2


def nan_middle(row):
    return max(len(row) - isnan(row).sum() - 1, 0) // 2


@cases("median.dim", "nanmedian.dim", dtypes=NUMBERS + HALVES)
def median_dim(g):
    rank = middle if g.op.startswith("median") else nan_middle

    def reference(a, dim, keepdim=False):
        return one_of(a, dim, keepdim, rank)

    for shape, more in (((3, 5), (1,)), ((3, 4), (0, True)), ((2, 5, 3), (1,)), ((70,), (0,)), ((2, 60), (-1,)),
                        ((), (0,)), ((1, 3), (0,))):
        yield Case((g.distinct(shape), *more), {}, reference, exact=True)
    yield Case((g.array((0, 3)), 1), {}, lambda a, dim: (a[:, 0], np.zeros(0, np.int64)), exact=True)
    if g.floating:
        special = g.cast([[1.0, NAN, -1.0, INF, 2.0], [5.0, -INF, 0.0, 3.0, NAN], [1.0, 2.0, 3.0, 4.0, 5.0]])
        yield Case((special, 1), {}, reference, exact=True, grad=False)
    yield Bad((g.array((2, 0)), 1), "IndexError", "Expected reduction dim 1 to have non-zero size.")
    yield Bad((g.array((3, 4)), 2), "IndexError", OUT_OF_RANGE)
    yield Bad((g.mask((3,)), 0), "NotImplementedError", "\"median_out\" not implemented for 'Bool'")


@cases("median", "nanmedian", dtypes=NUMBERS + HALVES)
def median(g):
    rank = middle if g.op == "median" else nan_middle

    def reference(a):
        return one_of(a.reshape(-1), 0, False, rank)[0]

    for shape in ((3, 4), (5,), (2, 3, 3), (), (9, 21)):
        yield Case((g.distinct(shape),), {}, reference, exact=True)
    if g.floating:
        yield Case((g.cast([]),), {}, lambda a: a.dtype.type(NAN), exact=True, grad=False)
        yield Case((g.cast([3.0, NAN, 1.0, 2.0]),), {}, reference, exact=True, grad=False)
        yield Case((g.cast([NAN, NAN]),), {}, reference, exact=True, grad=False)
    yield Bad((g.mask((3,)),), "NotImplementedError", "\"median_cpu\" not implemented for 'Bool'")


@cases("kthvalue", dtypes=NUMBERS + HALVES)
def kthvalue(g):
    def reference(a, k, dim=-1, keepdim=False):
        return one_of(a, dim, keepdim, lambda row: k - 1)

    for shape, more in (((3, 5), (2,)), ((3, 4), (3, 0, True)), ((2, 5, 3), (1, 1)), ((90,), (77,)), ((), (1,))):
        yield Case((g.distinct(shape), *more), {}, reference, exact=True)
    yield Case((g.array((2, 0)), 1, 0), {}, reference=None, check=lambda got, *_: None)
    if g.floating:
        yield Case((g.cast([1.0, NAN, -1.0, INF, 2.0]), 5), {}, reference, exact=True, grad=False)
    for k in (0, 5):
        yield Bad((g.array((3, 4)), k), "RuntimeError", "selected number k out of range for dimension 1")
    yield Bad((g.array((3, 4)), 1, 2), "IndexError", OUT_OF_RANGE)
    yield Bad((g.mask((3,)), 1), "NotImplementedError", "\"kthvalue_cpu\" not implemented for 'Bool'")


@cases("mode", dtypes=EVERY)
def mode(g):
    def of_row(row):
        best, place, most = row[0], 0, 0
        for value in sorted(set(row.tolist()), key=lambda v: (v != v, v)):
            equal = [i for i, each in enumerate(row.tolist()) if each == value] or [int(np.argmax(row != row))]
            if len(equal) > most:
                best, place, most = value, equal[-1], len(equal)
        return best, place

    def reference(a, dim=-1, keepdim=False):
        if a.ndim == 0:
            return a, np.int64(0)
        values = np.apply_along_axis(lambda row: of_row(row)[0], dim, a).astype(a.dtype)
        places = np.apply_along_axis(lambda row: of_row(row)[1], dim, a).astype(np.int64)
        return (np.expand_dims(values, dim), np.expand_dims(places, dim)) if keepdim else (values, places)

    few = g.cast(np.array([[1, 0, 1, 1, 0], [0, 0, 1, 1, 1], [1, 0, 0, 0, 1]]))
    for more in ((), (0,), (1, True)):
        yield Case((few, *more), {}, reference, grad=False)
    if not g.is_bool:
        yield Case((g.cast([4, 2, 4, 2, 7, 1]),), {}, reference, grad=False)
        yield Case((g.cast(np.r_[np.arange(80), 41]),), {}, reference, grad=False, layouts=ONCE)
    if g.floating:
        yield Case((g.distinct((4,)),), {}, reference)
        yield Case((g.cast([NAN, 1.0, NAN, NAN]),), {}, reference, grad=False)
    yield Case((g.array(()),), {}, reference, grad=False)
    yield Case((g.array((2, 0)), 0), {}, reference=None, check=lambda got, *_: None)
    yield Bad((g.array((2, 0)),), "IndexError", "mode(): Expected reduction dim 1 to have non-zero size.")


@cases("aminmax", dtypes=ALL)
def aminmax(g):
    def reference(a, dim=None, keepdim=False):
        if a.ndim == 0:
            return a, a
        return np.min(a, dim, keepdims=keepdim), np.max(a, dim, keepdims=keepdim)

    for shape, more in (((3, 4), {}), ((3, 4), {"dim": 1}), ((2, 3, 2), {"dim": 0, "keepdim": True}), ((), {}),
                        ((), {"dim": 0}), ((0, 3), {"dim": 1})):
        yield Case((g.distinct(shape),), more, reference, double=shape == (3, 4))
    if g.floating:
        yield Case((g.cast([1.0, NAN, INF]),), {}, reference, grad=False)
    yield Bad((g.array((0,)),), "RuntimeError", "cannot compute aminmax over an empty dimension")
    yield Bad((g.array((2, 0)),), "IndexError", "Expected reduction dim 1 to have non-zero size", {"dim": 1})


@cases("nansum", dtypes=ALL)
def nansum(g):
    def reference(a, dim=None, keepdim=False, dtype=None):
        axes = tuple(dim) if dim else None
        a = a if a.dtype.kind == "f" else a.astype(np.int64)
        return np.nansum(a, axis=axes if a.ndim else None, keepdims=keepdim)

    for shape, more in (((3, 4), ()), ((3, 4), ([1],)), ((2, 3, 4), ([0, 2], True)), ((), ()), ((0, 3), ([0],))):
        yield Case((g.array(shape), *more), {}, reference, double=shape == (3, 4))
    if g.floating:
        yield Case((g.cast([[1.0, NAN, 2.0], [NAN, NAN, 3.0]]), [1]), {}, reference)
        yield Case((g.cast([NAN, NAN]),), {}, reference)


@cases("nanmean")
def nanmean(g):
    def reference(a, dim=None, keepdim=False, dtype=None):
        axes = tuple(dim) if dim and a.ndim else None
        return np.nansum(a, axis=axes, keepdims=keepdim) / np.sum(~np.isnan(a), axis=axes, keepdims=keepdim)

    for shape, more in (((3, 4), ()), ((3, 4), ([1],)), ((2, 3, 4), ([0, 2], True)), ((), ()), ((0, 3), ([0],))):
        yield Case((g.array(shape), *more), {}, reference)
    yield Case((g.cast([[1.0, NAN, 2.0], [4.0, NAN, 3.0]]), [1]), {}, reference)
    yield Bad((longs(1, 2),), "RuntimeError", "nanmean(): expected input to have floating point or complex dtype "
              "but got Long")


@cases("quantile", "nanquantile", dtypes=FLOATS + HALVES, skip={"empty": "refused"})
def quantile(g):
    if g.dtype in HALVES:
        yield Bad((g.array((3,)), 0.5), "RuntimeError", "input tensor must be either float or double dtype")
        return

    def reference(a, q, dim=None, keepdim=False, interpolation="linear"):
        function = np.quantile if g.op == "quantile" else np.nanquantile
        return function(a, q, axis=dim, keepdims=keepdim, method=interpolation)

    share = g.cast([0.0, 0.25, 0.6, 1.0])
    for args in ((g.distinct((3, 4)), 0.4), (g.distinct((3, 5)), 0.3, 1), (g.distinct((3, 5)), 0.3, 0, True),
                 (g.distinct((2, 3, 4)), share, 1), (g.distinct((2, 5)), share, -1, True),
                 (g.distinct((3, 3)), share, None, True), (g.distinct((7,)), g.cast(0.5)), (g.distinct((1,)), 0.7)):
        fixed = tuple(Fixed(each) if each is share else each for each in args)
        yield Case(fixed, {}, reference, grad_args=(0,), rtol=2e-5, atol=1e-6)
    for way in ("lower", "higher", "midpoint", "nearest"):
        yield Case((g.distinct((3, 6)), 0.45, 1), {"interpolation": way}, reference, rtol=2e-5)
    yield Case((g.distinct(()), 0.5), {}, lambda a, q: a)
    if g.op == "nanquantile":
        yield Case((g.cast([[1.0, NAN, 4.0, 2.0], [3.0, 5.0, NAN, NAN]]), 0.5, 1), {}, reference, grad=False)
        yield Case((g.cast([NAN, NAN]), 0.5), {}, lambda a, q: np.float64(NAN), grad=False)
    else:
        yield Case((g.cast([[1.0, NAN, 4.0, 2.0], [3.0, 5.0, 1.0, 1.0]]), 0.5, 1), {}, reference, grad=False)
    name = "quantile"  # in torch's words for both
    yield Bad((g.array((0,)), 0.5), "RuntimeError", f"{name}() input tensor must be non-empty")
    yield Bad((g.array((3,)), 1.5), "RuntimeError", f"{name}() q must be in the range [0, 1] but got 1.5")
    yield Bad((g.array((3,)), g.cast([[0.5]])), "RuntimeError", f"{name}() q must be a scalar or 1D tensor")
    yield Bad((longs(1, 2), 0.5), "RuntimeError", f"{name}() input tensor must be either float or double dtype")
    yield Bad((g.array((3,)), 0.5), "RuntimeError", "interpolation must be one of linear, lower, higher, midpoint "
              "or nearest, but got x", {"interpolation": "x"})


@cases("cummax", "cummin", dtypes=EVERY)
def so_far(g):
    def reference(a, dim):
        if a.ndim == 0:
            return a, np.int64(0)
        moved = np.moveaxis(a, dim, 0)
        values, places = moved.copy(), np.zeros(moved.shape, np.int64)
        for i in range(1, len(moved)):
            x, best = moved[i], values[i - 1]
            taken = (x >= best if g.op == "cummax" else x <= best) | (x != x)
            values[i] = np.where(taken, x, best)
            places[i] = np.where(taken, i, places[i - 1])
        return np.moveaxis(values, 0, dim), np.moveaxis(places, 0, dim)

    for shape, dim in (((3, 4), 1), ((3, 4), 0), ((2, 5, 3), 1), ((40,), 0), ((), 0), ((2, 0), 1)):
        yield Case((g.array(shape), dim), {}, reference, exact=True, double=shape == (3, 4))
    if g.floating:
        yield Case((g.cast([1.0, NAN, 2.0, INF, NAN, 0.0]), 0), {}, reference, exact=True, grad=False)
    yield Bad((g.array((3, 4)), 2), "IndexError", OUT_OF_RANGE)


@cases("logcumsumexp")
def logcumsumexp(g):
    def reference(a, dim):
        return np.logaddexp.accumulate(a, dim) if a.ndim else a

    for shape, dim in (((3, 4), 1), ((3, 4), 0), ((2, 5, 3), 1), ((40,), 0), ((), 0), ((2, 0), 1)):
        yield Case((g.array(shape), dim), {}, reference)
    yield Case((g.cast([-INF, -INF, 1.0, 2.0, INF, 3.0]), 0), {}, reference, grad=False)
    yield Case((g.cast([1.0, NAN, 2.0]), 0), {}, reference, grad=False)
    yield Bad((longs(1, 2), 0), "NotImplementedError", "\"logcumsumexp_out_cpu\" not implemented for 'Long'")


@cases("msort", dtypes=EVERY)
def msort(g):
    def reference(a):
        return ordered(a, 0)[0]

    for shape in ((5, 3), (7,), (), (0, 3)):
        yield Case((g.distinct(shape),), {}, reference, exact=True)


# ---- places in sorted rows ----


def found(row, values, right):
    return np.searchsorted(row, values, "right" if right else "left")


@cases("searchsorted", dtypes=NUMBERS + HALVES)
def searchsorted(g):
    def reference(row, values, out_int32=False, right=False, side=None, sorter=None):
        right = right or side == "right"
        row = row if sorter is None else np.take_along_axis(row, sorter, -1)
        dtype = np.int32 if out_int32 else np.int64
        if row.ndim == 1:
            return np.asarray(found(row, values, right)).astype(dtype)
        pairs = zip(row.reshape(-1, row.shape[-1]), values.reshape(-1, values.shape[-1]))
        rows = [found(r, v, right) for r, v in pairs]
        return np.stack(rows).reshape(values.shape).astype(dtype)

    line, rows = np.sort(g.array((9,))), np.sort(g.array((2, 3, 5)), -1)
    line, rows = g.cast(np.asarray(line, np.float64)), g.cast(np.asarray(rows, np.float64))
    yield Case((line, g.array((3, 4))), {}, reference)
    yield Case((line, line), {"right": True}, reference)
    yield Case((rows, g.array((2, 3, 2))), {"out_int32": True}, reference)
    yield Case((line, 2 if g.dtype != "bool" else True), {"side": "right"}, reference)
    yield Case((line, g.array(())), {"side": "left"}, reference)
    yield Case((line, g.array((0,))), {}, reference)
    yield Case((g.array((0,)), g.array((3,))), {}, reference)
    mixed = g.distinct((6,))
    yield Case((Fixed(mixed), g.array((4,))),
               {"sorter": Fixed(np.argsort(np.asarray(mixed, np.float64)).astype(np.int64))}, reference)
    if g.floating:
        yield Case((line, Fixed(g.cast([NAN, INF, -INF]))), {}, lambda row, values: longs(9, 9, 0))
    yield Bad((line, g.array((3,))), "RuntimeError", "side can only be 'left' or 'right' but got up", {"side": "up"})
    yield Bad((line, g.array((3,))), "RuntimeError", "side and right can't be set to opposites",
              {"side": "left", "right": True})
    yield Bad((rows, g.array((2, 2, 2))), "RuntimeError", "boundaries tensor should be 1 dimension or the first N-1")
    yield Bad((rows, 1), "RuntimeError", "input value can be a scalar only when boundaries tensor dimension is 1")
    yield Bad((line, g.array((3,))), "RuntimeError", "boundary and sorter must have the same size",
              {"sorter": longs(0, 1)})
    yield Bad((g.mask((2,)), g.mask((2,))), "NotImplementedError", "'Bool'")


@cases("bucketize", dtypes=NUMBERS + HALVES)
def bucketize(g):
    def reference(values, row, out_int32=False, right=False):
        return np.asarray(found(row, values, right)).astype(np.int32 if out_int32 else np.int64)

    line = g.cast(np.sort(np.asarray(g.array((7,)), np.float64)))
    yield Case((g.array((3, 4)), line), {}, reference)
    yield Case((g.array((3, 4)), line), {"right": True, "out_int32": True}, reference)
    yield Case((g.array(()), line), {}, reference)
    yield Case((1, line), {}, reference)
    yield Case((g.array((0,)), line), {}, reference)
    yield Bad((g.array((3,)), g.array((2, 3))), "RuntimeError", "boundaries tensor must be 1 dimension, but got dim(2)")


# ---- counts ----


@cases("histc", skip={"extremes": {kind: "the range is that of the data" for kind in ("large", "small", "mean")}})
def histc(g):
    def reference(a, bins=100, min=0, max=0):
        low, high = (a.min(), a.max()) if min == max and a.size else (min, max)
        low, high = (low - 1, high + 1) if low == high else (low, high)
        return np.histogram(a, bins, (low, high))[0].astype(np.float64)

    yield Case((g.array((30,)), 5, -1, 1), {}, reference, grad=False)
    yield Case((g.distinct((4, 5)), 4), {}, reference, grad=False)
    yield Case((g.distinct((40,)),), {}, reference, grad=False)
    yield Case((g.cast([1.0, 1.0]), 3), {}, reference, grad=False)
    yield Case((g.array((0,)), 3), {}, reference, grad=False)
    yield Case((g.array(()), 3, -4, 4), {}, reference, grad=False)
    yield Case((Fixed(g.cast([1.0, NAN, INF])), 2, 0, 2), {}, lambda a, *more: np.array([0.0, 1.0]), grad=False)
    yield Bad((g.array((3,)), 0), "RuntimeError", "bins must be > 0")
    yield Bad((g.array((3,)), 2, 3, 1), "RuntimeError", "torch.histc: max must be larger than min")
    yield Bad((g.cast([1.0, NAN]), 2), "RuntimeError", "is not finite")
    yield Bad((longs(1, 2), 2), "NotImplementedError", "\"histogram_cpu\" not implemented for 'Long'")


@cases("bincount", dtypes=INTEGERS, skip={"0-d": "it takes one dimension",
                                          "extremes": {kind: "the numbers are places" for kind in
                                                       ("large", "small", "mean", "ends", "special", "mixed", "subnormal")}})
def bincount(g):
    def reference(a, weights=None, minlength=0):
        return np.bincount(a, weights, minlength) if len(a) else np.zeros(minlength, np.int64)

    x = Fixed(g.array((12,), 0, 6))
    yield Case((x,), {}, reference)
    yield Case((x, None, 9), {}, reference)
    yield Case((x, g.other("float64", (12,))), {}, reference, grad=False, result="float64")
    yield Case((x, g.other("float32", (12,))), {}, reference, grad=False, result="float32")
    yield Case((x, g.other("int32", (12,))), {}, reference, result="float64")
    yield Case((Fixed(g.array((0,))),), {}, reference)
    if g.dtype != "uint8":
        yield Bad((longs(1, -1),), "RuntimeError", "bincount only supports 1-d non-negative integral inputs.")
    yield Bad((g.array((2, 2), 0, 3),), "RuntimeError", "bincount only supports 1-d non-negative integral inputs.")
    yield Bad((g.array((2,), 0, 3), None, -1), "RuntimeError", "minlength should be >= 0")
    yield Bad((g.other("float32", (2,)),), "NotImplementedError", "not implemented for 'Float'")


# ---- different ones ----


def unique_of(a, inverse=True, counts=True, **more):
    """NumPy's unique(), with empty results for what was not asked for."""
    values, places, numbers = np.unique(a, return_inverse=True, return_counts=True, **more)
    nothing = np.zeros(0, np.int64)
    shape = a.shape if "axis" not in more else -1
    return values, places.reshape(shape) if inverse else nothing, numbers if counts else nothing


@cases("_unique2", dtypes=EVERY, skip=UNIQUE)
def unique2(g):
    def reference(a, is_sorted=True, inverse=False, counts=False):
        values, places, numbers = unique_of(np.asarray(a, np.float64), inverse, counts)
        return values.astype(a.dtype), places, numbers

    few = g.cast(np.array([[3, 1, 3], [0, 1, 1]]))
    for more in ((), (True, True), (True, False, True), (False, True, True)):
        yield Case((few, *more), {}, reference, grad=False, exact=True)
    yield Case((g.cast(np.arange(90) % 7), True, True, True), {}, reference, grad=False, exact=True)
    yield Case((g.array(()), True, True, True), {}, reference, grad=False, exact=True)
    yield Case((g.array((0,)), True, True, True), {}, reference, grad=False, exact=True)


@cases("unique_dim", dtypes=EVERY, skip={**UNIQUE, "0-d": "it has no dimension"})
def unique_dim(g):
    def reference(a, dim, *flags):
        values, places, numbers = unique_of(np.asarray(a, np.float64), axis=dim)
        return values.astype(a.dtype), places, numbers

    few = g.cast(np.array([[1, 0, 1], [0, 1, 1], [1, 0, 1], [0, 0, 0]]))
    for dim in (0, 1, -1):
        yield Case((few, dim, True, True, True), {}, reference, grad=False, exact=True)
    yield Case((g.cast(np.arange(24).reshape(2, 3, 4) % 2), 1), {}, reference, grad=False, exact=True)
    yield Case((g.array((0, 3)), 0, True, True, True), {},
               lambda a, *more: (a, np.zeros(0, np.int64), np.zeros(0, np.int64)), grad=False, exact=True)
    yield Bad((g.array((0, 3)), 1), "RuntimeError", "There are 0 sized dimensions, and they aren't selected")
    yield Bad((g.array(()), 0), "IndexError", "Dimension specified as 0 but tensor has no dimensions")


@cases("unique_consecutive", dtypes=EVERY, skip=UNIQUE)
def unique_consecutive(g):
    def reference(a, inverse=False, counts=False, dim=None):
        rows = a.reshape(-1) if dim is None else np.moveaxis(a, dim, 0)
        new = np.array([i == 0 or bool(np.any(rows[i] != rows[i - 1])) for i in range(len(rows))], bool)
        values = rows[new] if dim is None else np.moveaxis(rows[new], 0, dim)
        nothing = np.zeros(0, np.int64)
        places = (np.cumsum(new) - 1).reshape(a.shape if dim is None else -1) if inverse else nothing
        return values, places, np.diff(np.append(np.flatnonzero(new), len(rows))) if counts else nothing

    runs = g.cast(np.array([1, 1, 0, 0, 0, 1, 1, 1, 0]))
    for flags in ((), (True,), (False, True), (True, True)):
        yield Case((runs, *flags), {}, reference, grad=False, exact=True)
    rows = g.cast(np.array([[1, 1, 0], [1, 1, 0], [0, 1, 1]]))
    yield Case((rows, True, True, 0), {}, reference, grad=False, exact=True)
    yield Case((g.cast(np.array([[1, 1, 0], [1, 1, 0]])), True, True, 1), {}, reference, grad=False, exact=True)
    yield Case((g.array(()), True, True), {}, reference, grad=False, exact=True)
    yield Case((g.array((0,)), True, True), {}, lambda a, *more: (a, longs(), longs()), grad=False, exact=True)


