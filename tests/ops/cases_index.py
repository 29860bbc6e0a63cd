# SPDX-License-Identifier: Apache-2.0
"""Cases of ops_index.def: joining, picking, ordering. References are plain loops and NumPy."""
import numpy as np
from opcases import ALL, EVERY, FLOATS, HALVES, NUMBERS, Bad, Case, Fixed, cases

DIM_2 = "Dimension out of range (expected to be in range of [-2, 1], but got 2)"
ONCE = ("contiguous",)
NAN = float("nan")
INF = float("inf")


def longs(*values):
    return np.array(values, np.int64)


# ---- joining ----

@cases("cat", dtypes=EVERY, skip={"0-d": "0-d tensors cannot be joined"})
def cat(g):
    def reference(arrays, dim=0):
        whole = [a for a in arrays if a.shape != (0,)] or arrays[:1]
        return np.concatenate(whole, dim)

    yield Case(([g.array((2, 4)), g.array((3, 4))],), {}, reference, double=True)
    yield Case(([g.array((2, 4)), g.array((2, 1)), g.array((2, 3))], 1), {}, reference)
    yield Case(([g.array((2, 2, 3)), g.array((2, 1, 3))], -2), {}, reference)
    yield Case(([g.array((3,))],), {}, reference)
    yield Case(([g.array((2, 1)) for _ in range(40)], 1), {}, reference)
    yield Case(([g.array((0,)), g.array((2, 3))], 1), {}, reference)
    yield Case(([g.array((0, 3)), g.array((2, 3))],), {}, reference)
    yield Case(([g.array((0,)), g.array((0,))],), {}, reference)
    yield Case(([g.array((0,)), g.array((0, 4))], 1), {}, reference)
    if g.floating:
        yield Case(([g.array((2,)), g.other("int64", (3,))],), {}, reference)
        wide = "float64" if g.dtype == "float64" else "float32"
        yield Case(([g.array((2,)), g.other("float32", (3,))],), {}, reference, result=wide)
    if g.dtype == "int32":
        yield Case(([g.array((2,)), g.other("float64", (0,))],), {}, reference, result="float64")
        yield Case(([g.array((2,)), g.other("bool", (2,))],), {}, reference, result="int32")
        yield Case(([g.array((2,)), g.other("int64", (2,))],), {}, reference, result="int64")
    yield Bad(([],), "ValueError", "expected a non-empty list of Tensors")
    yield Bad(([g.array((3,)), g.array(())],), "RuntimeError",
              "zero-dimensional tensor (at position 1) cannot be concatenated")
    yield Bad(([g.array((3, 4)), g.array((3,))],), "RuntimeError",
              "Tensors must have same number of dimensions: got 2 and 1")
    yield Bad(([g.array((3, 4)), g.array((3, 5))],), "RuntimeError", "Sizes of tensors must match "
              "except in dimension 0. Expected size 4 but got size 5 for tensor number 1 in the list")
    yield Bad(([g.array((3, 4))], 2), "IndexError", DIM_2)


@cases("stack", dtypes=EVERY)
def stack(g):
    for dim in (0, 1, 2, -1, -3):
        yield Case(([g.array((2, 3)), g.array((2, 3))], dim), {}, np.stack, double=dim == 1)
    yield Case(([g.array(()), g.array(()), g.array(())],), {}, np.stack)
    yield Case(([g.array((0, 2)), g.array((0, 2))], 1), {}, np.stack)
    yield Case(([g.array((1,)) for _ in range(20)],), {}, np.stack)
    if g.floating:
        yield Case(([g.array((2,)), g.other("int64", (2,))],), {}, np.stack)
    yield Bad(([],), "RuntimeError", "stack expects a non-empty TensorList")
    yield Bad(([g.array((3, 4)), g.array((3, 5))],), "RuntimeError", "stack expects each tensor to "
              "be equal size, but got [3, 4] at entry 0 and [3, 5] at entry 1")
    yield Bad(([g.array((3, 4))], 3), "IndexError", "in range of [-3, 2], but got 3")


@cases("repeat", dtypes=EVERY)
def repeat(g):
    def reference(a, repeats):
        return np.tile(a, tuple(repeats))

    for repeats in ((2, 3), (2, 1), (1, 1), (2, 2, 3), (2, 1, 1), (2, 0)):
        yield Case((g.array((3, 4)), repeats), {}, reference, double=repeats == (2, 3))
    yield Case((g.array(()), (3,)), {}, reference)
    yield Case((g.array(()), ()), {}, reference)
    yield Case((g.array((0, 3)), (2, 2)), {}, reference)
    yield Case((g.array((2,) * 3), (1, 2, 1)), {}, reference)
    yield Bad((g.array((3, 4)), (2,)), "RuntimeError", "Number of dimensions of repeat dims can not "
              "be smaller than number of dimensions of tensor")
    yield Bad((g.array((3, 4)), (-1, 2)), "RuntimeError",
              "Trying to create tensor with negative dimension")
    yield Bad((g.array((3, 4)), (2**62, 2**62)), "RuntimeError", "")


@cases("roll", dtypes=EVERY)
def roll(g):
    def reference(a, shifts, dims=None):
        if not dims:
            return np.roll(a, shifts[0])
        return np.roll(a, tuple(shifts), tuple(dims))

    for args in (((1,), (0,)), ((-2,), (1,)), ((5, -7), (0, 1)), ((1, 1), (0, 0)), ((3,),), ((-1,),),
                 ((0,), (0,)), ((1, 2, 3), (0, 1, -2)), ((2**62,), (1,)), ((1,), ())):
        yield Case((g.array((3, 4)), *args), {}, reference, double=args == ((5, -7), (0, 1)))
    yield Case((g.array(()), (1,)), {}, reference)
    yield Case((g.array((0, 3)), (1,), (0,)), {}, reference)
    yield Case((g.array((0, 3)), (1,)), {}, reference)
    yield Bad((g.array((3, 4)), (1, 2), (0,)), "RuntimeError",
              "shifts and dimensions must align. shifts: 2, dims:1")
    yield Bad((g.array((3, 4)), (1, 2)), "RuntimeError", "shifts: 2, dims:0")
    yield Bad((g.array((3, 4)), (), ()), "RuntimeError", "`shifts` required")
    yield Bad((g.array((3, 4)), (1,), (2,)), "IndexError", DIM_2)
    yield Bad((g.array(()), (1,), (0,)), "IndexError", "tensor has no dimensions")


@cases("flip", dtypes=EVERY)
def flip(g):
    def reference(a, dims):
        return np.flip(a, tuple(dims)) if a.ndim else a

    for dims in ((0,), (1,), (-1, 0), ()):
        yield Case((g.array((3, 4)), dims), {}, reference, double=dims == (0,))
    yield Case((g.array((2, 3, 2)), (0, 1, 2)), {}, reference)
    yield Case((g.array(()), (0,)), {}, reference)
    yield Case((g.array((0, 3)), (1,)), {}, reference)
    yield Bad((g.array((3, 4)), (2,)), "IndexError", DIM_2)
    yield Bad((g.array((3, 4)), (0, -2)), "RuntimeError", "dim 0 appears multiple times")


@cases("tril", "triu", dtypes=EVERY, skip={"0-d": "takes matrices"})
def triangle(g):
    function = np.tril if g.op == "tril" else np.triu
    for diagonal in (0, 1, -1, 2, -5, 100, -100):
        yield Case((g.array((3, 4)), diagonal), {}, function, double=diagonal == 1)
    yield Case((g.array((2, 4, 3)),), {}, function)
    yield Case((g.array((0, 3)),), {}, function)
    if g.floating:
        yield Case((g.cast([[NAN, NAN], [NAN, 1.0]]), -1), {}, function, grad=False)
    yield Bad((g.array((3,)),), "RuntimeError", "input tensor must have at least 2 dimensions")
    yield Bad((g.array(()),), "RuntimeError", "input tensor must have at least 2 dimensions")


# ---- along one dimension ----

@cases("index_select", dtypes=EVERY)
def index_select(g):
    def reference(a, dim, index):
        return a if a.ndim == 0 else a.take(index.reshape(-1), dim)

    yield Case((g.array((3, 4)), 0, longs(2, 0, 2, 1)), {}, reference, double=True)
    yield Case((g.array((2, 3, 4)), 1, longs(2, 0)), {}, reference)
    yield Case((g.array((2, 3, 4)), -1, g.indices((7,), 4)), {}, reference)
    yield Case((g.array((3, 4)), 1, np.array([3, 0], np.int32)), {}, reference)
    yield Case((g.array((3, 4)), 0, np.array(1)), {}, reference)
    yield Case((g.array(()), 0, longs(0)), {}, reference)
    yield Case((g.array(()), 0, np.array(0)), {}, reference)
    yield Case((g.array((3, 4)), 0, np.zeros(0, np.int64)), {}, reference)
    yield Case((g.array((0, 3)), 1, longs(1)), {}, reference)
    yield Case((g.array((3,)), 0, g.indices((700,), 3)), {}, reference, grad=False, layouts=ONCE)
    yield Bad((g.array((3, 4)), 0, longs(0, 3)), "IndexError", "index out of range in self")
    yield Bad((g.array((3, 4)), 0, longs(-1)), "IndexError", "index out of range in self")
    yield Bad((g.array((3, 0)), 0, longs(5)), "IndexError", "index out of range in self")
    yield Bad((g.array((0, 3)), 0, longs(0)), "RuntimeError",
              "index_select(): self indexing axis dim should be positive")
    yield Bad((g.array((3, 4)), 0, g.indices((2, 2), 3)), "IndexError",
              "index_select(): Index is supposed to be a vector")
    yield Bad((g.array((3, 4)), 0, g.other("float32", (2,))), "RuntimeError",
              "index_select(): Expected dtype int32")
    yield Bad((g.array((3, 4)), 2, longs(0)), "IndexError", DIM_2)
    yield Bad((g.array(()), 0, longs(0, 0)), "RuntimeError",
              "Index to scalar can have only 1 value, got 2 value(s)")


@cases("index_add", dtypes=ALL)
def index_add(g):
    def reference(a, dim, index, source, alpha=1):
        out = np.atleast_1d(a.copy())
        source = np.atleast_1d(source)
        for i, at in enumerate(index.reshape(-1)):
            where = (slice(None),) * (dim % out.ndim)
            if out.dtype == bool:
                out[where + (at,)] |= source[where + (i,)]
            else:
                out[where + (at,)] += np.asarray(alpha * source[where + (i,)]).astype(out.dtype)
        return out.reshape(a.shape)

    index = longs(0, 2, 2)
    yield Case((g.array((3, 4)), 0, index, g.array((3, 4))), {}, reference, double=True)
    yield Case((g.array((2, 3, 4)), 1, index, g.array((2, 3, 4))), {}, reference)
    yield Case((g.array((4, 3)), -1, longs(1, 1, 0, 2, 1), g.array((4, 5))), {}, reference)
    if not g.is_bool:
        yield Case((g.array((3, 4)), 0, index, g.array((3, 4))), {"alpha": 2}, reference, double=True)
    yield Case((g.array((3,)), 0, np.array([1], np.int32), g.array((1,))), {}, reference)
    yield Case((g.array((3, 4)), 0, np.array(1), g.array((1, 4))), {}, reference)
    yield Case((g.array(()), 0, np.array(0), g.array(())), {}, reference)
    yield Case((g.array((3, 4)), 0, np.zeros(0, np.int64), g.array((0, 4))), {}, reference)
    yield Bad((g.array((3, 4)), 0, longs(0, 2), g.array((3, 4))), "RuntimeError", "Number of "
              "indices (2) should be equal to source.size(dim): (3), for dim: 0")
    yield Bad((g.array((3, 4)), 0, longs(0, 2), g.array((2, 3))), "RuntimeError", "source tensor "
              "shape must match self tensor shape, excluding the specified dimension. "
              "Got self.shape = [3, 4] source.shape = [2, 3]")
    wrong = "float64" if g.dtype != "float64" else "float32"
    yield Bad((g.array((3, 4)), 0, index, g.other(wrong, (3, 4))), "RuntimeError",
              "must have the same scalar type")
    yield Bad((g.array((3, 4)), 0, g.other("float32", (2,)), g.array((2, 4))), "RuntimeError",
              "Expected dtype int32/int64 for index but got: Float")
    yield Bad((g.array((3, 4)), 0, g.indices((2, 2), 3), g.array((2, 4))), "IndexError",
              "Index is supposed to be a vector, but got dim: 2 with type: Long and size: [2, 2]")
    yield Bad((g.array((3, 4)), 0, longs(0, 3), g.array((2, 4))), "RuntimeError",
              "index 3 is out of bounds for dimension 0 with size 3")
    yield Bad((g.array((3, 4)), 1, longs(0, -1), g.array((3, 2))), "RuntimeError",
              "index -1 is out of bounds for dimension 1 with size 4")
    yield Bad((g.array((3, 4)), 2, longs(0), g.array((1, 4))), "IndexError", DIM_2)


def gathered(a, dim, index):
    flat_a, flat_index = np.atleast_1d(a), np.atleast_1d(index)
    out = np.empty(flat_index.shape, a.dtype)
    for at in np.ndindex(*flat_index.shape):
        place = list(at)
        place[dim] = flat_index[at]
        out[at] = flat_a[tuple(place)]
    return out.reshape(index.shape)


@cases("gather", dtypes=EVERY)
def gather(g):
    yield Case((g.array((3, 4)), 1, g.indices((3, 2), 4)), {}, gathered, double=True)
    yield Case((g.array((3, 4)), 0, g.indices((5, 3), 3)), {}, gathered)
    yield Case((g.array((2, 3, 4)), -1, g.indices((1, 2, 6), 4)), {}, gathered)
    yield Case((g.array((3, 4)), 1, g.indices((2, 2), 4).astype(np.int32)), {}, gathered)
    yield Case((g.array(()), 0, np.array(0)), {}, gathered)
    yield Case((g.array(()), 0, longs(0, 0, 0)), {}, gathered)
    yield Case((g.array((3,)), 0, np.array(1)), {}, gathered)
    yield Case((g.array((3, 4)), 1, np.zeros((0, 7), np.int64)), {}, gathered)
    yield Case((g.array((3, 4)), 1, np.zeros(0, np.int64)), {}, gathered)
    yield Bad((g.array((3, 4)), 1, longs(0)), "RuntimeError",
              "Index tensor must have the same number of dimensions as input tensor")
    yield Bad((g.array((3, 4)), 1, np.array([[4]])), "RuntimeError",
              "index 4 is out of bounds for dimension 1 with size 4")
    yield Bad((g.array((3, 4)), 1, np.array([[0], [-1]])), "RuntimeError",
              "index -1 is out of bounds for dimension 1 with size 4")
    yield Bad((g.array(()), 0, longs(0, 1)), "RuntimeError", "index 1 is out of bounds")
    yield Bad((g.array((3, 4)), 1, np.zeros((4, 1), np.int64)), "RuntimeError", "Size does not match "
              "at dimension 0 expected index [4, 1] to be no larger than self [3, 4] apart from "
              "dimension 1")
    yield Bad((g.array((3, 4)), 1, g.other("float32", (3, 2))), "RuntimeError",
              "gather(): Expected dtype int32/int64 for index")
    yield Bad((g.array((3, 4)), 2, g.indices((1, 1), 1)), "IndexError", DIM_2)


def scattered(a, dim, index, src, add=False):
    out, flat = np.atleast_1d(a.copy()), np.atleast_1d(index)
    values = np.broadcast_to(np.asarray(src, a.dtype), flat.shape) if np.ndim(src) == 0 else src
    for at in np.ndindex(*flat.shape):
        place = list(at)
        place[dim] = flat[at]
        place = tuple(place)
        if add and out.dtype == bool:
            out[place] |= values[at]
        elif add:
            out[place] += values[at]
        else:
            out[place] = values[at]
    return out.reshape(a.shape)


SCATTER_BAD = (
    ((3, 4), 1, np.array([[4]]), (1, 1), "index 4 is out of bounds for dimension 1 with size 4"),
    ((3, 4), 1, np.array([[-1]]), (1, 1), "index -1 is out of bounds for dimension 1 with size 4"),
    ((3, 4), 1, np.zeros((4, 1), np.int64), (4, 1), "Expected index [4, 1] to be no larger than self "
     "[3, 4] apart from dimension 1"),
    ((3, 4), 1, np.zeros((2, 2), np.int64), (1, 2), "and to be no larger size than src [1, 2]"),
    ((3, 4), 0, np.zeros(2, np.int64), (2,), "same number of dimensions as self tensor"),
    ((3, 4), 0, np.zeros((2, 2), np.int64), (2,), "same number of dimensions as src tensor"),
)


def scatter_bad(g):
    for shape, dim, index, source, words in SCATTER_BAD:
        yield Bad((g.array(shape), dim, index, g.array(source)), "RuntimeError", words)
    wrong = "float64" if g.dtype != "float64" else "float32"
    yield Bad((g.array((3, 4)), 0, np.zeros((1, 1), np.int64), g.other(wrong, (1, 1))),
              "RuntimeError", "scatter(): Expected self.dtype to be equal to src.dtype")
    yield Bad((g.array((3, 4)), 0, g.other("float32", (1, 1)), g.array((1, 1))), "RuntimeError",
              "Expected dtype int32/int64 for index")
    yield Bad((g.array((3, 4)), 2, np.zeros((1, 1), np.int64), g.array((1, 1))), "IndexError", DIM_2)


@cases("scatter", dtypes=EVERY)
def scatter(g):
    apart = np.array([[0, 2], [3, 1], [1, 0]])
    # Indices keep their layout: repeated ones would make equal places, where gradients differ.
    yield Case((g.array((3, 4)), 1, Fixed(apart), g.array((3, 2))), {}, scattered, double=True)
    yield Case((g.array((3, 4)), 1, Fixed(apart[:2]), g.array((3, 3))), {}, scattered)
    yield Case((g.array((4, 3)), 0, Fixed(np.array([[3, 1, 0]])), g.array((2, 3))), {}, scattered)
    yield Case((g.array((2, 3)), 1, g.indices((2, 6), 3), g.array((2, 6))), {}, scattered, grad=False)
    yield Case((g.array((3, 4)), 1, Fixed(apart.astype(np.int32)), g.array((3, 2))), {}, scattered)
    yield Case((g.array((3, 4)), 1, Fixed(apart), 1), {}, scattered)
    if g.floating:
        yield Case((g.array((3, 4)), 1, Fixed(apart), 1.5), {}, scattered, double=True)
        yield Case((g.array((3, 4)), 1, Fixed(apart), True), {}, scattered)
    yield Case((g.array(()), 0, np.array(0), g.array(())), {}, scattered)
    yield Case((g.array(()), 0, longs(0), 1), {}, scattered)
    yield Case((g.array((3, 4)), 0, np.zeros(0, np.int64), 1), {}, scattered)
    yield Case((g.array((0, 4)), 0, np.zeros((0, 2), np.int64), g.array((0, 2))), {}, scattered)
    yield from scatter_bad(g)


@cases("scatter_add", dtypes=ALL)
def scatter_add(g):
    def reference(a, dim, index, src):
        return scattered(a, dim, index, src, True)

    yield Case((g.array((3, 4)), 1, g.indices((3, 6), 4), g.array((3, 6))), {}, reference, double=True)
    yield Case((g.array((4, 3)), -2, g.indices((5, 2), 4), g.array((6, 3))), {}, reference)
    yield Case((g.array((2, 3, 2)), 1, g.indices((2, 3, 2), 3), g.array((2, 3, 2))), {}, reference)
    yield Case((g.array(()), 0, np.array(0), g.array(())), {}, reference)
    yield Case((g.array((3, 4)), 0, np.zeros((0, 4), np.int64), g.array((0, 4))), {}, reference)
    yield from scatter_bad(g)


# ---- advanced indexing ----

def indexed(a, indices):
    """NumPy's rules are torch's; entries that are None stand for whole dimensions."""
    return a[tuple(slice(None) if i is None else i for i in indices)]


@cases("index", dtypes=EVERY, skip={"0-d": "has no dimension to index"})
def index(g):
    x = g.array((2, 3, 4))
    i, j, k = longs(1, 0, -1), longs(2, -3, 0), longs(-1, 1, 0)
    for indices in ([i], [None, j], [None, None, k], [i, j], [i, None, k], [None, j, k], [i, j, k],
                    [longs(1).reshape(1, 1), j], [longs(0, 1).reshape(2, 1), None, k],
                    [np.array(1), j], [np.array(-1)], [g.indices((2, 2), 2)], [i, None]):
        yield Case((x, indices), {}, indexed, double=indices is not None and len(indices) == 2)
    yield Case((x, [g.mask((2, 3))]), {}, indexed)
    yield Case((x, [None, g.mask((3, 4))]), {}, indexed)
    yield Case((x, [g.mask((2, 3, 4))]), {}, indexed, double=True)
    yield Case((x, [np.array([True, False]), None, longs(1)]), {}, indexed)
    yield Case((x, [Fixed(np.array([True, True])), Fixed(longs(0, 2))]), {}, indexed)
    yield Case((x, [np.zeros((2, 3), bool)]), {}, indexed)
    yield Case((x, [i.astype(np.int32)]), {}, indexed)
    yield Case((x, [Fixed(np.array([0, 1], np.uint8))]), {}, lambda a, n: a[1:2])
    yield Case((g.array((5,)), [g.indices((1500,), 5, -5)]), {}, indexed, layouts=ONCE, grad=False)
    yield Case((g.array((0, 3)), [np.zeros(0, np.int64)]), {}, indexed)
    yield Case((g.array((0, 3)), [None, longs(1)]), {}, indexed)
    yield Case((g.array((3, 0)), [longs(2)]), {}, indexed)
    yield Bad((x, [longs(2)]), "IndexError", "index 2 is out of bounds for dimension 0 with size 2")
    yield Bad((x, [None, longs(-4)]), "IndexError",
              "index -4 is out of bounds for dimension 1 with size 3")
    yield Bad((g.array((0, 3)), [longs(0)]), "IndexError",
              "index is out of bounds for dimension with size 0")
    yield Bad((x, [longs(0, 1), longs(0, 1, 2)]), "IndexError", "shape mismatch: indexing tensors "
              "could not be broadcast together with shapes [2], [3]")
    yield Bad((x, [i, i, i, i]), "IndexError", "too many indices for tensor of dimension 3 (got 4)")
    yield Bad((x, [i, i, np.ones((4, 1), bool)]), "IndexError", "too many indices")
    yield Bad((x, [g.other("float32", (2,))]), "IndexError",
              "tensors used as indices must be long, int, byte or bool tensors")
    yield Bad((x, [np.ones(3, bool)]), "IndexError", "The shape of the mask [3] at index 0 does not "
              "match the shape of the indexed tensor [2, 3, 4] at index 0")
    yield Bad((x, [np.ones((2, 4), bool)]), "IndexError", "The shape of the mask [2, 4] at index 1")
    yield Bad((x, []), "IndexError", "at least one index must be provided")
    yield Bad((x, [None, None]), "IndexError", "at least one index must be provided")
    yield Bad((g.array(()), [longs(0)]), "IndexError", "too many indices for tensor of dimension 0")
    yield Bad((x, [np.array(True)]), "IndexError", "without dimensions")


def put(a, indices, values, accumulate=False):
    out = a.copy()
    where = tuple(slice(None) if i is None else i for i in indices)
    if not accumulate:
        out[where] = values
    elif out.dtype == bool:
        np.logical_or.at(out, where, values)
    else:
        np.add.at(out, where, values)
    return out


@cases("index_put", dtypes=EVERY, skip={"0-d": "has no dimension to index"})
def index_put(g):
    x = g.array((2, 3, 4))
    adds = g.dtype not in HALVES
    i, j, k = longs(1, 0, -1), longs(2, -3, 0), longs(-1, 1, 0)
    for indices, shape in (([i], (3, 3, 4)), ([None, j], (2, 3, 4)), ([None, j], (1, 3, 1)),
                           ([i, j], (3, 4)), ([i, None, k], (3, 3)), ([i, j, k], (3,)),
                           ([None, longs(1).reshape(1, 1), k], (3,)), ([i], ())):
        if adds:
            yield Case((x, indices, g.array(shape), True), {}, put, double=len(indices) == 2)
        # Without equal places: assignment to those has no one derivative.
        apart = [None if n is None else Fixed(n[:2] if n.ndim == 1 else n) for n in indices]
        values = g.array((2,) + shape[1:]) if len(shape) and shape[0] == 3 else None
        if values is not None:
            yield Case((x, apart, values), {}, put, double=len(indices) == 3)
    yield Case((x, [Fixed(longs(1))], g.array((3, 4))), {}, put)
    mask = np.array([[1, 0, 1], [0, 0, 1]], bool)
    yield Case((x, [Fixed(mask)], g.array((3, 4))), {}, put)
    yield Case((x, [Fixed(mask)], g.array(())), {}, put)
    yield Case((x, [np.zeros((2, 3), bool)], g.array(())), {}, put)
    yield Case((x, [Fixed(longs(0, 0, 0))], g.array((3, 3, 4))), {}, put, grad=False)
    yield Case((g.array((0, 3)), [np.zeros(0, np.int64)], g.array((0, 3))), {}, put)
    wrong = "float64" if g.dtype != "float64" else "float32"
    yield Bad((x, [i], g.other(wrong, (3, 3, 4))), "RuntimeError",
              "Index put requires the source and destination dtypes match, got ")
    yield Bad((x, [i], g.array((2,))), "RuntimeError", "shape mismatch: value tensor of shape [2] "
              "cannot be broadcast to indexing result of shape [3, 3, 4]")
    yield Bad((x, [i], g.array((1, 3, 3, 4))), "RuntimeError", "cannot be broadcast")
    yield Bad((x, [longs(5)], g.array(())), "IndexError",
              "index 5 is out of bounds for dimension 0 with size 2")
    yield Bad((x, [i, i, i, i], g.array(())), "IndexError", "too many indices")
    yield Bad((x, [], g.array(())), "IndexError", "at least one index must be provided")


# ---- masks ----

@cases("masked_select", dtypes=EVERY)
def masked_select(g):
    def reference(a, mask):
        a, mask = np.broadcast_arrays(a, mask)
        return a[mask].reshape(-1)

    yield Case((g.array((3, 4)), g.mask((3, 4))), {}, reference, double=True)
    yield Case((g.array((3, 4)), g.mask((4,))), {}, reference)
    yield Case((g.array((4,)), g.mask((3, 1))), {}, reference)
    yield Case((g.array((3, 4)), np.zeros((3, 4), bool)), {}, reference)
    yield Case((g.array(()), np.array(True)), {}, reference)
    yield Case((g.array(()), g.mask((3,))), {}, reference)
    yield Case((g.array((0, 4)), g.mask((4,))), {}, reference)
    yield Bad((g.array((3, 4)), g.mask((3,))), "RuntimeError", "must match the size of tensor b")
    yield Bad((g.array((3, 4)), g.other("uint8", (4,))), "RuntimeError",
              "masked_select: expected BoolTensor for mask")


@cases("masked_scatter", dtypes=EVERY)
def masked_scatter(g):
    def reference(a, mask, source):
        a, mask = np.broadcast_arrays(a, mask)
        out = a.copy()
        out[mask] = source.reshape(-1)[:int(mask.sum())]
        return out

    yield Case((g.array((3, 4)), g.mask((3, 4)), g.array((4, 3))), {}, reference, double=True)
    yield Case((g.array((3, 4)), g.mask((4,)), g.array((2, 7))), {}, reference)
    yield Case((g.array((4,)), g.mask((3, 1)), g.array((12,))), {}, reference)
    yield Case((g.array((3, 4)), np.ones((3, 4), bool), g.array((12,))), {}, reference)
    yield Case((g.array((3, 4)), np.zeros((3, 4), bool), g.array((0,))), {}, reference)
    yield Case((g.array(()), np.array(True), g.array(())), {}, reference)
    yield Case((g.array((0, 4)), np.zeros((0, 4), bool), g.array((2,))), {}, reference)
    yield Bad((g.array((3, 4)), np.ones((3, 4), bool), g.array((11,))), "RuntimeError",
              "Number of elements of source < number of ones in mask")
    wrong = "float64" if g.dtype != "float64" else "float32"
    yield Bad((g.array((3, 4)), g.mask((3, 4)), g.other(wrong, (12,))), "RuntimeError",
              "masked_scatter: expected self and source to have same dtypes")
    yield Bad((g.array((3, 4)), g.other("uint8", (4,)), g.array((12,))), "RuntimeError",
              "masked_scatter_ only supports boolean masks, but got mask with dtype Byte")


@cases("nonzero", dtypes=EVERY)
def nonzero(g):
    def reference(a):
        return np.argwhere(a != 0) if a.ndim else np.zeros((int(a != 0), 0), np.int64)

    yield Case((g.array((3, 4)),), {}, reference)
    yield Case((g.array((2, 3, 4)),), {}, reference)
    yield Case((np.zeros_like(g.array((3, 4))),), {}, reference)
    yield Case((g.array((9,)),), {}, reference)
    yield Case((g.cast(1),), {}, reference)
    yield Case((g.cast(0),), {}, reference)
    yield Case((g.array((0, 3)),), {}, reference)
    if g.floating:
        yield Case((g.cast([NAN, 0.0, -0.0, INF, -1.0]),), {}, reference)


# ---- ordering ----

def ordered(a, dim=-1, descending=False):
    if a.ndim == 0:
        return a, np.array(0)
    keys = np.where(np.isnan(a), INF, a).astype(np.float64) if a.dtype.kind == "f" else a
    ranks = [keys.astype(np.int64) if keys.dtype == bool or keys.dtype.kind == "u" else keys]
    if a.dtype.kind == "f":  # NaN after infinity
        ranks.insert(0, np.isnan(a).astype(np.int64))
    ranks = [-r if descending else r for r in ranks]
    place = np.moveaxis(np.broadcast_to(np.arange(a.shape[dim]), np.moveaxis(a, dim, -1).shape),
                        -1, dim)
    order = np.lexsort([place] + ranks[::-1], axis=dim) if a.size else np.zeros(a.shape, np.int64)
    return np.take_along_axis(a, order, dim), order


@cases("sort", dtypes=EVERY)
def sort(g):
    yield Case((g.distinct((3, 4)),), {}, ordered, double=True)
    yield Case((g.distinct((3, 4)), 0, True), {}, ordered)
    yield Case((g.distinct((2, 5, 3)), 1), {}, ordered)
    yield Case((g.distinct((70,)), 0, True), {}, ordered, layouts=ONCE)
    yield Case((g.array((2, 150)), 1), {}, ordered, layouts=ONCE, grad=False)
    yield Case((g.array((60, 3)), 0, True), {}, ordered, layouts=ONCE, grad=False)
    yield Case((g.array(()),), {}, ordered)
    yield Case((g.array((0, 3)),), {}, ordered)
    yield Case((g.array((0, 3)), 0), {}, ordered)
    if g.floating:
        special = g.cast([1.0, NAN, -1.0, INF, -0.0, NAN, -INF, 0.0, 0.0, -0.0, 1.0])
        yield Case((special,), {}, ordered, grad=False)
        yield Case((special, 0, True), {}, ordered, grad=False)
        yield Case((np.tile(special, 12).view(type(special)), 0), {}, ordered, grad=False, layouts=ONCE)
    yield Bad((g.array((3, 4)), 2), "IndexError", DIM_2)


@cases("argsort", dtypes=EVERY)
def argsort(g):
    def reference(a, dim=-1, descending=False):
        return ordered(a, dim, descending)[1]

    yield Case((g.array((3, 4)), 0, True), {}, reference, grad=False)
    yield Case((g.array((3, 4)),), {}, reference, grad=False)
    yield Case((g.array(()),), {}, reference, grad=False)
    yield Case((g.array((0, 3)),), {}, reference)
    yield Bad((g.array((3, 4)), 2), "IndexError", DIM_2)


@cases("topk", dtypes=NUMBERS + HALVES)
def topk(g):
    def reference(a, k, dim=-1, largest=True, sorted=True):
        values, places = ordered(a, dim, largest)
        if a.ndim == 0:
            return values, places
        return values.take(range(k), dim), places.take(range(k), dim)

    yield Case((g.distinct((3, 4)), 2), {}, reference, double=True)
    yield Case((g.distinct((3, 4)), 3, 0, False), {}, reference)
    yield Case((g.distinct((2, 5, 3)), 1, 1), {}, reference)
    yield Case((g.distinct((3, 40)), 2, -1, True, False), {}, reference)
    yield Case((g.array((2, 150)), 7), {}, reference, layouts=ONCE, grad=False)
    yield Case((g.array((150,)), 149, 0, False), {}, reference, layouts=ONCE, grad=False)
    yield Case((g.array((3, 4)), 0), {}, reference)
    yield Case((g.array((3, 4)), 4), {}, reference, grad=False)
    yield Case((g.array(()), 1), {}, reference)
    yield Case((g.array(()), 0), {}, reference)
    yield Case((g.array((0, 3)), 2), {}, reference)
    if g.floating:
        special = g.cast([1.0, NAN, -1.0, INF, -0.0, NAN, -INF, 0.0] + [0.5] * 100)
        for k in (1, 3, 5, 90):
            yield Case((special, k), {}, reference, grad=False, layouts=ONCE)
            yield Case((special, k, 0, False), {}, reference, grad=False, layouts=ONCE)
    for k in (5, -1):
        yield Bad((g.array((3, 4)), k), "RuntimeError", "selected index k out of range")
    yield Bad((g.array(()), 2), "RuntimeError", "selected index k out of range")
    yield Bad((g.array((3, 4)), 1, 2), "IndexError", DIM_2)
    yield Bad((g.mask((3,)), 1), "RuntimeError", "topk does not support bool dtypes on CPU")


@cases("one_hot", dtypes=("int64",))
def one_hot(g):
    def reference(a, classes=-1):
        classes = a.max() + 1 if classes == -1 else classes
        return (a[..., None] == np.arange(classes)).astype(np.int64)

    yield Case((longs(0, 2, 1, 2),), {}, reference)
    yield Case((g.indices((3, 4), 5), 7), {}, reference)
    yield Case((np.array(1), 3), {}, reference)
    yield Case((np.array(1),), {}, reference)
    yield Case((np.zeros((0, 2), np.int64), 3), {}, reference)
    yield Bad((longs(0, 2), 2), "RuntimeError", "Class values must be smaller than num_classes.")
    yield Bad((longs(0, 1), -2), "RuntimeError", "Class values must be smaller than num_classes.")
    yield Bad((longs(0, 1), 0), "RuntimeError", "Class values must be smaller than num_classes.")
    yield Bad((longs(2**63 - 1),), "RuntimeError", "Class values must be smaller than num_classes.")
    yield Bad((longs(0, -1), 2), "RuntimeError", "Class values must be non-negative.")
    yield Bad((np.zeros(0, np.int64),), "RuntimeError",
              "Can not infer total number of classes from empty tensor.")
    for dtype in ("int32", "float32"):
        yield Bad((g.other(dtype, (2,), 0, 1), 2), "RuntimeError",
                  "one_hot is only applicable to index tensor of type LongTensor.")


@cases("value_selecting_reduction_backward", dtypes=FLOATS)
def value_selecting_reduction_backward(g):
    def reference(grad, dim, indices, sizes, keepdim):
        if not keepdim and sizes:
            grad, indices = np.expand_dims(grad, dim), np.expand_dims(indices, dim)
        return scattered(np.zeros(sizes, grad.dtype), dim, indices, grad)

    yield Case((g.array((3,)), 1, g.indices((3,), 4), (3, 4), False), {}, reference, double=True)
    yield Case((g.array((1, 4)), 0, g.indices((1, 4), 3), (3, 4), True), {}, reference)
    yield Case((g.array((3, 2)), -1, Fixed(np.array([[0, 3], [1, 2], [2, 0]])), (3, 4), True), {},
               reference)
    yield Case((g.array(()), 0, np.array(0), (), False), {}, reference)
    yield Case((g.array((0,)), 1, np.zeros(0, np.int64), (0, 4), False), {}, reference)
    yield Bad((g.array((3,)), 1, longs(0, 1, 4), (3, 4), False), "RuntimeError",
              "index 4 is out of bounds for dimension 1 with size 4")


# ---- several sources at one place ----


def combine(kind, parts, dtype):
    if kind == "mean":
        total = sum(parts)
        return total / len(parts) if np.dtype(dtype).kind == "f" else np.floor_divide(total, len(parts))
    if np.dtype(dtype) == bool:
        return any(parts) if kind in ("sum", "amax") else all(parts)
    return {"sum": np.sum, "prod": np.prod, "amax": np.max, "amin": np.min}[kind](np.array(parts, dtype))


def reduced(a, dim, index, src, reduce, include_self=True):
    shaped = [np.atleast_1d(np.asarray(part)) for part in (a, index, src)]
    out, met = shaped[0].copy(), {}
    for place in np.ndindex(shaped[1].shape):
        to = list(place)
        to[dim] = int(shaped[1][place])
        met.setdefault(tuple(to), []).append(shaped[2][place])
    for to, parts in met.items():
        got = combine(reduce, ([shaped[0][to]] if include_self else []) + parts, out.dtype)
        out[to] = np.asarray(got).astype(out.dtype)
    return out.reshape(np.shape(a))


def rows_reduced(a, dim, index, source, reduce, include_self=True):
    shape = [1] * max(np.ndim(source), 1)
    shape[dim] = -1
    repeated = np.broadcast_to(np.reshape(index, shape), np.atleast_1d(source).shape)
    return reduced(a, dim, repeated, source, reduce, include_self)


@cases("scatter_reduce", dtypes=ALL)
def scatter_reduce(g):
    for kind in ("sum", "prod", "mean", "amax", "amin"):
        if kind == "mean" and g.is_bool:
            yield Bad((g.array((3,)), 0, Fixed(np.array([0])), g.array((3,)), kind), "NotImplementedError",
                      "reduce_mean\" not implemented for 'Bool'")
            continue
        for more in ({}, {"include_self": False}):
            yield Case((g.away((3, 4)), 1, g.indices((3, 5), 4), g.away((3, 5)), kind), more, reduced)
        yield Case((g.away((4, 2)), 0, g.indices((3, 2), 4), g.away((5, 2)), kind), {}, reduced, grad=False)
    yield Case((g.array((0, 3)), 1, Fixed(np.zeros((0, 2), np.int64)), g.array((0, 2)), "sum"), {}, reduced)
    yield Case((g.array(()), 0, Fixed(np.zeros((), np.int64)), g.array(()), "amax"), {}, reduced, grad=False)
    if g.floating:
        zeros = g.cast([0.0, 2.0, 3.0]), 0, Fixed(np.array([0, 1, 1, 2])), g.cast([4.0, 0.0, 5.0, 0.0]), "prod"
        yield Case(zeros, {}, reduced, note="one factor is zero")
        nans = g.cast([1.0, np.nan, 3.0]), 0, Fixed(np.array([0, 1, 1])), g.cast([np.nan, 2.0, 1.0]), "amax"
        yield Case(nans, {}, reduced, grad=False)
    yield Bad((g.array((3,)), 0, Fixed(np.array([0])), g.array((3,)), "most"), "RuntimeError",
              "reduce argument must be either sum, prod, mean, amax or amin, got most")


@cases("index_reduce", dtypes=NUMBERS)
def index_reduce(g):
    for kind in ("prod", "mean", "amax", "amin"):
        for more in ({}, {"include_self": False}):
            yield Case((g.away((3, 4)), 0, g.indices((5,), 3), g.away((5, 4)), kind), more, rows_reduced)
    yield Case((g.array((0, 3)), 1, g.indices((2,), 3), g.array((0, 2)), "amax"), {}, rows_reduced)
    yield Case((g.array(()), 0, Fixed(np.array([0])), g.array(()), "amax"), {}, rows_reduced, grad=False)
    yield Bad((g.array((3,)), 0, Fixed(np.array([0])), g.array((1,)), "sum"), "RuntimeError",
              "Expected reduce to be one of prod, mean, amax or amin but got sum")


def rows_written(a, dim, index, source):
    out = np.atleast_1d(a).copy()
    place = [slice(None)] * out.ndim
    place[dim] = np.atleast_1d(index)
    out[tuple(place)] = source
    return out.reshape(np.shape(a))


@cases("index_copy", dtypes=EVERY)
def index_copy(g):
    yield Case((g.array((4, 3)), 0, Fixed(np.array([3, 1])), g.array((2, 3))), {}, rows_written, double=True)
    yield Case((g.array((2, 5)), -1, Fixed(np.array([4, 0, 2])), g.array((2, 3))), {}, rows_written)
    yield Case((g.array((0, 3)), 1, Fixed(np.array([2])), g.array((0, 1))), {}, rows_written)
    yield Case((g.array(()), 0, Fixed(np.array([0])), g.array((1,))), {}, rows_written, grad=False)
    yield Bad((g.array((3, 2)), 0, Fixed(np.array([0, 5])), g.array((2, 2))), "RuntimeError",
              "index 5 is out of bounds for dimension 0 with size 3")
    yield Bad((g.array((3, 2)), 0, Fixed(np.array([0, 1])), g.array((3, 2))), "IndexError",
              "Number of indices (2) should be equal to source.size(dim) (3)")
    yield Bad((g.array((3, 2)), 0, Fixed(np.array([[0]])), g.array((1, 2))), "IndexError",
              "Index should have dimension 1 or 0 (got 2)")


@cases("index_fill", dtypes=EVERY)
def index_fill(g):
    number = True if g.is_bool else 2
    yield Case((g.array((4, 3)), 0, Fixed(np.array([3, -3])), number), {}, rows_written, double=True)
    yield Case((g.array((2, 3)), 1, Fixed(np.array(1)), number), {}, rows_written)
    yield Case((g.array((2, 3)), 1, Fixed(np.array([0, 2])), g.array(())), {}, rows_written)
    yield Case((g.array((0, 3)), 1, Fixed(np.array([2])), number), {}, rows_written)
    yield Case((g.array(()), 0, Fixed(np.array([0])), number), {}, rows_written)
    yield Bad((g.array((3, 2)), 0, Fixed(np.array([0, 5])), number), "RuntimeError",
              "index 5 is out of bounds for dimension 0 with size 3")
    yield Bad((g.array((3, 2)), 0, Fixed(np.array([[0]])), number), "RuntimeError", "Index has to be a vector/scalar")
    yield Bad((g.array((3, 2)), 0, Fixed(np.array([0])), g.array((2,))), "RuntimeError",
              "only supports a 0-dimensional value tensor, but got tensor with 1 dimension(s)")
