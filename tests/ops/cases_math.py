# SPDX-License-Identifier: Apache-2.0
"""Cases of ops_math.def. References are NumPy."""
import numpy as np
from opcases import HALVES, NUMBERS, Bad, Case, cases

NO_DIMS = "tensor has no dimensions"


def real(a):
    return a if a.dtype.kind == "f" else a.astype(np.float64)


def areas(y, x, dx, dim):
    y = np.moveaxis(real(y), dim, -1)
    if x is None:
        width = dx
    else:
        x = real(x)
        width = np.diff(x if x.ndim == 1 else np.moveaxis(x, dim, -1), axis=-1)
    return (y[..., 1:] + y[..., :-1]) * width / 2


@cases("trapezoid.x", "cumulative_trapezoid.x", "trapz.x", skip={"0-d": "refused"})
def with_points(g):
    def reference(y, x, dim=-1):
        parts = areas(y, x, None, dim)
        return np.moveaxis(np.cumsum(parts, -1), -1, dim) if g.op.startswith("c") else parts.sum(-1)

    rounds = {"atol": 0.05} if g.dtype in HALVES else {}  # each step is rounded
    yield Case((g.array((3, 4)), g.array((4,))), {}, reference, **rounds)
    yield Case((g.array((3, 4)), g.array((3, 4))), {}, reference, **rounds)
    yield Case((g.array((3, 4)), g.array((3,))), {"dim": 0}, reference, **rounds)
    yield Case((g.array((5,)), g.array((5,))), {}, reference, **rounds)
    yield Case((g.array((0,)), g.array((0,))), {}, lambda y, x: np.zeros(()) if not g.op.startswith("c") else y)
    words = "There must be one `x` value for each sample point"
    yield Bad((g.array((3, 4)), g.array((3,))), "RuntimeError", words)
    yield Bad((g.array(()), g.array((3,))), "IndexError", NO_DIMS)


@cases("trapezoid.dx", "cumulative_trapezoid.dx", "trapz.dx", skip={"0-d": "refused"})
def with_distance(g):
    def reference(y, dx=1, dim=-1):
        parts = areas(y, None, dx, dim)
        return np.moveaxis(np.cumsum(parts, -1), -1, dim) if g.op.startswith("c") else parts.sum(-1)

    rounds = {"atol": 0.05} if g.dtype in HALVES else {}
    yield Case((g.array((3, 4)),), {}, reference, **rounds)
    yield Case((g.array((3, 4)),), {"dx": 0.5, "dim": 0}, reference, **rounds)
    yield Case((g.array((1, 3)),), {"dim": 0}, reference)
    yield Case((g.array((2, 0)),), {}, lambda y: np.zeros(2) if not g.op.startswith("c") else y)
    yield Bad((g.array(()),), "IndexError", NO_DIMS)
    yield Bad((g.mask((3,)),), "RuntimeError", "received a bool input for `y`, but bool is not supported")


@cases("rot90", dtypes=NUMBERS, skip={"0-d": "refused"})
def rot90(g):
    def reference(a, k=1, dims=(0, 1)):
        return np.rot90(a, k, tuple(dims))

    for k in (0, 1, 2, 3, -1, 5):
        yield Case((g.array((3, 4)), k), {}, reference)
    yield Case((g.array((2, 3, 4)), 1, [2, 0]), {}, reference)
    yield Case((g.array((0, 3)),), {}, reference)
    yield Bad((g.array((3, 4)), 1, [0]), "RuntimeError", "expected total rotation dims == 2, but got dims = 1")
    yield Bad((g.array((3, 4)), 1, [0, 0]), "RuntimeError", "expected rotation dims to be different")
    yield Bad((g.array((3,)),), "RuntimeError", "expected total dims >= 2, but got total dims = 1")
    yield Bad((g.array((3, 4)), 1, [0, 5]), "IndexError", "Dimension out of range")


@cases("diag_embed", dtypes=NUMBERS, skip={"0-d": "refused"})
def diag_embed(g):
    def reference(a, offset=0, dim1=-2, dim2=-1):
        size = a.shape[-1] + abs(offset)
        out = np.zeros((*a.shape[:-1], size, size), a.dtype)
        at = np.arange(a.shape[-1])
        out[..., at + max(-offset, 0), at + max(offset, 0)] = a
        return np.moveaxis(out, (-2, -1), (dim1, dim2))

    yield Case((g.array((3, 4)),), {}, reference)
    yield Case((g.array((3,)), 1), {}, reference)
    yield Case((g.array((2, 3)), -2, 0, 2), {}, reference)
    yield Case((g.array((2, 0)),), {}, reference)
    yield Bad((g.array((3,)), 0, 1, 1), "RuntimeError", "diagonal dimensions cannot be identical 1, 1")
    yield Bad((g.array(()),), "IndexError", "Dimension out of range (expected to be in range of [-1, 0], but got -2)")


def written(a, place, src):
    out = a.copy()
    out[place] = src
    return out


WRONG = "expected src to have a size equal to the slice of self"


@cases("select_scatter", dtypes=NUMBERS, skip={"0-d": "it has no dimension"})
def select_scatter(g):
    yield Case((g.array((3, 4)), g.array((4,)), 0, 1), {}, lambda a, src, dim, index: written(a, (index,), src))
    yield Case((g.array((3, 4)), g.array((3,)), 1, -1), {},
               lambda a, src, dim, index: written(a, (slice(None), -1), src))
    yield Case((g.array((3, 0)), g.array((0,)), 0, 1), {}, lambda a, src, dim, index: a)
    yield Bad((g.array((3, 4)), g.array((3,)), 0, 1), "RuntimeError", WRONG)


@cases("slice_scatter", dtypes=NUMBERS, skip={"0-d": "it has no dimension"})
def slice_scatter(g):
    def reference(a, src, dim=0, start=None, end=None, step=1):
        return written(a, (slice(None),) * dim + (slice(start, end, step),), src)

    yield Case((g.array((3, 4)), g.array((3, 4))), {}, reference)
    yield Case((g.array((3, 4)), g.array((3, 2)), 1, 0, 4, 2), {}, reference)
    yield Case((g.array((3, 4)), g.array((0, 4)), 0, 3), {}, reference)
    yield Bad((g.array((3, 4)), g.array((3, 3)), 1, 0, 4, 2), "RuntimeError", WRONG)


@cases("diagonal_scatter", dtypes=NUMBERS, skip={"0-d": "it has no dimension"})
def diagonal_scatter(g):
    def reference(a, src, offset=0, dim1=0, dim2=1):
        at = np.arange(len(src))
        return written(a, (at + max(-offset, 0), at + max(offset, 0)), src)

    yield Case((g.array((3, 4)), g.array((3,))), {}, reference)
    yield Case((g.array((3, 4)), g.array((2,)), -1), {}, reference)
    yield Case((g.array((3, 0)), g.array((0,))), {}, reference)
    yield Bad((g.array((3, 4)), g.array((2,))), "RuntimeError", WRONG)
