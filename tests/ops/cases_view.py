# SPDX-License-Identifier: Apache-2.0
"""Cases of ops_view.def: views, lists of views, and what their derivatives call."""
import numpy as np
from opcases import EVERY, FLOATS, Bad, Case, cases

DIM_2 = "Dimension out of range (expected to be in range of [-2, 1], but got 2)"
DIM_0 = "Dimension out of range (expected to be in range of [-1, 0], but got 1)"
ONCE = ("contiguous",)


def reshaped(a, size):
    return a.reshape(tuple(size))


@cases("view", "_unsafe_view", "reshape", dtypes=EVERY)
def view(g):
    layouts = {} if g.op == "reshape" else {"layouts": ONCE}
    for size in ((12,), (2, 6), (4, 3), (-1, 4), (3, 2, 2), (12, 1), (1, 3, 1, 4)):
        yield Case((g.array((3, 4)), size), {}, reshaped, double=size == (2, 6), **layouts)
    yield Case((g.array((2, 3, 4)), (6, -1)), {}, reshaped, **layouts)
    # Strides that allow it: splitting a dimension of a strided tensor, ones put in.
    yield Case((g.array((3, 4)), (3, 2, 2)), {}, reshaped, layouts=("transposed", "sliced"))
    yield Case((g.array((3, 4)), (3, 1, 4)), {}, reshaped, layouts=("sliced", "broadcast"))
    yield Case((g.array(()), ()), {}, reshaped)
    yield Case((g.array(()), (1, 1)), {}, reshaped)
    yield Case((g.array((1,)), ()), {}, reshaped)
    yield Case((g.array((0, 3)), (3, 0)), {}, reshaped)
    yield Case((g.array((0, 3)), (-1,)), {}, reshaped)
    yield Case((g.array((0, 3)), (0, 7)), {}, reshaped)
    for size, words in (((5, -1), "shape '[5, -1]' is invalid for input of size 12"),
                        ((-1, -1), "only one dimension can be inferred"),
                        ((3, 5), "shape '[3, 5]' is invalid for input of size 12"),
                        ((), "shape '[]' is invalid for input of size 12"),
                        ((2**40, 2**40), "is invalid for input of size 12"),
                        ((-2, 6), "invalid shape dimension -2")):
        yield Bad((g.array((3, 4)), size), "RuntimeError", words)
    yield Bad((g.array((0, 3)), (-1, 0)), "RuntimeError", "can be any value and is ambiguous")


@cases("view.dtype")
def view_dtype(g):
    if g.dtype not in FLOATS:
        return  # moves no elements: two types tell
    same, wide, narrow = ("int32", "float64", "uint8") if g.dtype == "float32" else ("int64", "int64", "int32")

    def reference(a, dtype):
        return np.ascontiguousarray(a, g.dtype).reshape(a.shape).view(dtype)

    yield Case((g.array((3, 4)), same), {}, reference)
    yield Case((g.array(()), same), {}, reference)
    for dtype in (same, wide, narrow):
        yield Case((g.array((3, 4)), dtype), {}, reference, layouts=ONCE, result=dtype)
        yield Case((g.array((0, 4)), dtype), {}, reference, layouts=ONCE, result=dtype)
    title = "Float" if g.dtype == "float32" else "Double"
    yield Bad((g.array(()), narrow), "RuntimeError", f"self.dim() cannot be 0 to view {title} as")
    if g.dtype == "float32":
        yield Bad((g.array((3, 3)), "float64"), "RuntimeError", "self.size(-1) must be divisible by 2 to view Float as "
                  "Double (different element sizes), but got 3")


@cases("permute", dtypes=EVERY)
def permute(g):
    def reference(a, dims):
        return a.transpose(dims)

    for dims in ((2, 0, 1), (0, 1, 2), (-1, -3, 1)):
        yield Case((g.array((2, 3, 4)), dims), {}, reference, double=dims == (2, 0, 1))
    yield Case((g.array(()), ()), {}, reference)
    yield Case((g.array((0, 3)), (1, 0)), {}, reference)
    yield Bad((g.array((3, 4)), (0,)), "RuntimeError", "input.dim() = 2 is not equal to len(dims) = 1")
    yield Bad((g.array((3, 4)), (0, 1, 2)), "RuntimeError", "is not equal to len(dims) = 3")
    yield Bad((g.array((3, 4)), (0, 0)), "RuntimeError", "duplicate dims are not allowed")
    yield Bad((g.array((3, 4)), (0, -2)), "RuntimeError", "duplicate dims are not allowed")
    yield Bad((g.array((3, 4)), (0, 2)), "IndexError", DIM_2)


@cases("transpose", dtypes=EVERY)
def transpose(g):
    def reference(a, p, q):
        return a if a.ndim == 0 else a.swapaxes(p, q)

    for p, q in ((0, 2), (-1, 1), (1, 1)):
        yield Case((g.array((2, 3, 4)), p, q), {}, reference, double=p == 0)
    yield Case((g.array(()), 0, -1), {}, reference)
    yield Case((g.array((0, 3)), 0, 1), {}, reference)
    yield Bad((g.array((3, 4)), 0, 2), "IndexError", DIM_2)
    yield Bad((g.array(()), 0, 1), "IndexError", DIM_0)


@cases("movedim", dtypes=EVERY)
def movedim(g):
    def reference(a, p, q):
        return a if a.ndim == 0 else np.moveaxis(a, p, q)

    for p, q in ((0, 2), (2, 0), (1, -1), (-1, 1), (1, 1)):
        yield Case((g.array((2, 3, 4)), p, q), {}, reference)
    yield Case((g.array(()), 0, -1), {}, reference)
    yield Case((g.array((0, 3)), 0, 1), {}, reference)
    yield Bad((g.array((3, 4)), 0, 2), "IndexError", DIM_2)
    yield Bad((g.array((3, 4)), 2, 0), "IndexError", DIM_2)


@cases("t", dtypes=EVERY)
def t(g):
    yield Case((g.array((3, 4)),), {}, np.transpose, double=True)
    yield Case((g.array((3,)),), {}, np.transpose)
    yield Case((g.array(()),), {}, np.transpose)
    yield Case((g.array((0, 3)),), {}, np.transpose)
    yield Bad((g.array((2, 3, 4)),), "RuntimeError",
              "t() expects a tensor with <= 2 dimensions, but self is 3D")


@cases("expand", dtypes=EVERY)
def expand(g):
    def reference(a, size):
        shape = list(size)
        for i in range(1, a.ndim + 1):
            shape[-i] = a.shape[-i] if shape[-i] == -1 else shape[-i]
        return np.broadcast_to(a, shape)

    for shape, size in (((3, 1), (3, 4)), ((3, 1), (2, -1, 4)), ((1, 4), (3, 4)), ((3, 4), (3, 4)),
                        ((1,), (0,)), ((3, 1), (3, 0)), ((3, 1), (3, -1))):
        yield Case((g.array(shape), size), {}, reference, double=size == (3, 4))
    yield Case((g.array(()), (2, 3)), {}, reference)
    yield Case((g.array(()), ()), {}, reference)
    yield Case((g.array((0, 3)), (2, 0, 3)), {}, reference)
    yield Bad((g.array((3, 4)), (3, 5)), "RuntimeError",
              "The expanded size of the tensor (5) must match the existing size (4) at "
              "non-singleton dimension 1.  Target sizes: [3, 5].  Tensor sizes: [3, 4]")
    yield Bad((g.array((3, 4)), (4,)), "RuntimeError", "the number of sizes provided (1) must be "
              "greater or equal to the number of dimensions in the tensor (2)")
    yield Bad((g.array((3, 4)), (-1, 3, 4)), "RuntimeError",
              "(-1) isn't allowed in a leading, non-existing dimension 0")
    yield Bad((g.array((1,)), (-2,)), "RuntimeError", "The expanded size of the tensor (-2)")
    yield Bad((g.array((1,)), (2**62, 4)), "RuntimeError", "")
    yield Bad((g.array((1,)), (1,) * 17), "RuntimeError", "at most 16")


@cases("squeeze", dtypes=EVERY)
def squeeze(g):
    for shape in ((1, 3, 1, 4), (3, 4), (1, 1), ()):
        yield Case((g.array(shape),), {}, np.squeeze, double=shape == (1, 3, 1, 4))
    yield Case((g.array((1, 0)),), {}, np.squeeze)


def squeezed(a, dims):
    dims = [dims] if isinstance(dims, int) else dims
    axes = tuple(d % a.ndim for d in dims if a.ndim and a.shape[d] == 1)
    return a.squeeze(axes) if axes else a


@cases("squeeze.dim", dtypes=EVERY)
def squeeze_dim(g):
    for dim in (0, 1, -2, 3):
        yield Case((g.array((1, 3, 1, 4)), dim), {}, squeezed, double=dim == -2)
    yield Case((g.array(()), 0), {}, squeezed)
    yield Case((g.array((1, 0)), 0), {}, squeezed)
    yield Bad((g.array((3, 4)), 2), "IndexError", DIM_2)
    yield Bad((g.array(()), 1), "IndexError", DIM_0)


@cases("squeeze.dims", dtypes=EVERY)
def squeeze_dims(g):
    for dims in ((0, 1), (0, 2), (-2,), ()):
        yield Case((g.array((1, 3, 1, 4)), dims), {}, squeezed)
    yield Case((g.array(()), (0,)), {}, squeezed)
    yield Case((g.array((1, 0)), (0, 1)), {}, squeezed)
    yield Bad((g.array((3, 4)), (2,)), "IndexError", DIM_2)
    yield Bad((g.array((3, 4)), (0, 0)), "RuntimeError", "appears multiple times")


@cases("unsqueeze", dtypes=EVERY)
def unsqueeze(g):
    for dim in (0, 1, 2, -1, -3):
        yield Case((g.array((3, 4)), dim), {}, np.expand_dims, double=dim == 1)
    yield Case((g.array(()), 0), {}, np.expand_dims)
    yield Case((g.array((0, 3)), 1), {}, np.expand_dims)
    yield Bad((g.array((3, 4)), 3), "IndexError", "in range of [-3, 2], but got 3")
    yield Bad((g.array((3, 4)), -4), "IndexError", "in range of [-3, 2], but got -4")
    yield Bad((g.array((1,) * 16), 0), "RuntimeError", "at most 16")


def index_of(n_dims, dim, part):
    where = [slice(None)] * n_dims
    where[dim] = part
    return tuple(where)


@cases("select", dtypes=EVERY, skip={"0-d": "has no dimension to select from"})
def select(g):
    def reference(a, dim, index):
        return a[index_of(a.ndim, dim, index)]

    for dim, index in ((0, 1), (1, -1), (-1, 0), (0, -3)):
        yield Case((g.array((3, 4)), dim, index), {}, reference, double=dim == 0)
    yield Case((g.array((3,)), 0, 2), {}, reference)
    yield Case((g.array((3, 0)), 0, 2), {}, reference)
    yield Bad((g.array((3, 4)), 0, 3), "IndexError",
              "select(): index 3 out of range for tensor of size [3, 4] at dimension 0")
    yield Bad((g.array((3, 4)), 0, -4), "IndexError", "index -4 out of range")
    yield Bad((g.array((0, 3)), 0, 0), "IndexError", "index 0 out of range")
    yield Bad((g.array((3, 4)), 2, 0), "IndexError", DIM_2)
    yield Bad((g.array(()), 0, 0), "IndexError", "select() cannot be applied to a 0-dim tensor")


@cases("slice", dtypes=EVERY, skip={"0-d": "has no dimension to slice"})
def slice_(g):
    def reference(a, dim=0, start=None, end=None, step=1):
        return a[index_of(a.ndim, dim, slice(start, end, step))]

    for args in ((0, 1, 3), (1, None, None, 2), (-1, -3, -1), (0, 2, 1), (0, -100, 100, 2),
                 (1, 1, 2**63 - 1, 3), (0, 5, 9), (), (1, 0, 4, 2**62)):
        yield Case((g.array((5, 4)), *args), {}, reference, double=args == (1, None, None, 2))
    yield Case((g.array((0, 3)), 0, 0, 2), {}, reference)
    yield Bad((g.array((3, 4)), 0, 0, 2, 0), "RuntimeError", "slice step must be positive")
    yield Bad((g.array((3, 4)), 0, 0, 2, -1), "RuntimeError", "slice step must be positive")
    yield Bad((g.array((3, 4)), 2), "IndexError", DIM_2)
    yield Bad((g.array(()), 0), "IndexError", "slice() cannot be applied to a 0-dim tensor")


@cases("narrow", dtypes=EVERY, skip={"0-d": "has no dimension to narrow"})
def narrow(g):
    def reference(a, dim, start, length):
        start = start % a.shape[dim] if start < 0 else start
        return a[index_of(a.ndim, dim, slice(start, start + length))]

    for args in ((0, 1, 2), (1, 0, 4), (-1, -1, 1), (0, 3, 0), (0, 0, 0)):
        yield Case((g.array((3, 4)), *args), {}, reference)
    yield Case((g.array((0, 3)), 0, 0, 0), {}, reference)
    yield Bad((g.array((3, 4)), 0, 0, 4), "RuntimeError",
              "start (0) + length (4) exceeds dimension size (3).")
    yield Bad((g.array((3, 4)), 0, 1, 2**63 - 1), "RuntimeError", "exceeds dimension size (3)")
    yield Bad((g.array((3, 4)), 0, 4, 0), "IndexError",
              "start out of range (expected to be in range of [-3, 3], but got 4)")
    yield Bad((g.array((3, 4)), 0, -4, 1), "IndexError", "but got -4)")
    yield Bad((g.array((3, 4)), 0, 0, -1), "RuntimeError", "length must be non-negative")
    yield Bad((g.array((3, 4)), 2, 0, 1), "IndexError", DIM_2)
    yield Bad((g.array(()), 0, 0, 1), "RuntimeError", "narrow() cannot be applied to a 0-dim tensor")


@cases("diagonal", dtypes=EVERY, skip={"0-d": "needs two dimensions"})
def diagonal(g):
    def reference(a, offset=0, dim1=0, dim2=1):
        return a.diagonal(offset, dim1, dim2)

    for args in ((), (1,), (-2,), (10,), (-10,), (0, 1, 0), (1, -1, -2)):
        yield Case((g.array((3, 4)), *args), {}, reference, double=args == (1,))
    yield Case((g.array((2, 3, 4)), 1, 0, 2), {}, reference)
    yield Case((g.array((2, 3, 4)), -1, 2, 0), {}, reference)
    yield Case((g.array((0, 3)),), {}, reference)
    yield Bad((g.array((3, 4)), 0, 0, 0), "RuntimeError", "diagonal dimensions cannot be identical 0, 0")
    yield Bad((g.array((3, 4)), 0, 0, -2), "RuntimeError", "diagonal dimensions cannot be identical")
    yield Bad((g.array((3, 4)), 0, 0, 2), "IndexError", DIM_2)
    yield Bad((g.array((3,)),), "IndexError", DIM_0)


@cases("as_strided", dtypes=EVERY)
def as_strided(g):
    def reference(a, size, stride, offset=0):
        flat = np.ascontiguousarray(a).reshape(-1)
        out = np.empty(size, a.dtype)
        for at in np.ndindex(*size):
            out[at] = flat[offset + sum(i * s for i, s in zip(at, stride))]
        return out

    for args in (((4, 3), (1, 4)), ((2, 2), (4, 2), 1), ((3, 3), (1, 1), 2), ((2, 3), (0, 1)),
                 ((), (), 5), ((12,), (1,)), ((3, 2, 2), (1, 3, 2))):
        yield Case((g.array((3, 4)), *args), {}, reference, layouts=ONCE, double=True)
    yield Case((g.array((3, 4)), (0,), (1,), 100), {}, reference, layouts=ONCE)
    yield Case((g.array(()), (2, 2), (0, 0)), {}, reference, layouts=ONCE)
    yield Case((g.array((0,)), (0, 2), (2, 1)), {}, reference, layouts=ONCE)
    yield Bad((g.array((3, 4)), (3, 3), (1, 1), 10), "RuntimeError",
              "setStorage: sizes [3, 3], strides [1, 1], storage offset 10, and itemsize")
    yield Bad((g.array(()), (), (), 1), "RuntimeError", "are out of bounds for storage of size")
    yield Bad((g.array((0,)), (), ()), "RuntimeError", "are out of bounds for storage of size 0")
    yield Bad((g.array((3, 4)), (3,), (1,), -1), "RuntimeError", "invalid storage offset -1")
    yield Bad((g.array((3, 4)), (3, 3), (-1, 1), 3), "RuntimeError",
              "Negative strides are not supported at the moment, got strides: [-1, 1]")
    yield Bad((g.array((3, 4)), (3,), (1, 1)), "RuntimeError",
              "mismatch in length of strides and shape")
    yield Bad((g.array((3, 4)), (-1,), (1,)), "RuntimeError", "")
    yield Bad((g.array((3, 4)), (2**62, 4), (0, 0)), "RuntimeError", "")
    yield Bad((g.array((3, 4)), (3, 2), (2**62, 2**62)), "RuntimeError", "overflowed")


@cases("unbind", dtypes=EVERY, skip={"0-d": "has no dimension"})
def unbind(g):
    def reference(a, dim=0):
        return [a.take(i, dim) for i in range(a.shape[dim])]

    for dim in (0, 1, -1):
        yield Case((g.array((3, 4)), dim), {}, reference, double=dim == 1)
    yield Case((g.array((40,)), 0), {}, reference)  # more than a small list holds
    yield Case((g.array((0, 3)),), {}, reference)
    yield Case((g.array((3, 0)),), {}, reference)
    yield Bad((g.array((3, 4)), 2), "IndexError", DIM_2)
    yield Bad((g.array(()),), "IndexError", "Dimension specified as 0 but tensor has no dimensions")


@cases("split", dtypes=EVERY, skip={"0-d": "has no dimension"})
def split(g):
    def reference(a, size, dim=0):
        if a.shape[dim] == 0:
            return [a]
        return np.split(a, range(size, a.shape[dim], size), dim)

    for shape, size, dim in (((5, 4), 2, 0), ((5, 4), 3, 1), ((5, 4), 7, -1), ((5, 4), 1, 0),
                             ((0, 3), 2, 0), ((0, 3), 0, 0), ((0, 3), 2, 1)):
        yield Case((g.array(shape), size, dim), {}, reference, double=size == 3)
    yield Bad((g.array((3, 4)), 0), "RuntimeError",
              "split_size can only be 0 if dimension size is 0, but got dimension size of 3")
    yield Bad((g.array((3, 4)), -1), "RuntimeError",
              "split expects split_size be non-negative, but got split_size=-1")
    yield Bad((g.array((3, 4)), 1, 2), "IndexError", DIM_2)
    yield Bad((g.array(()), 1), "RuntimeError", "split expects at least a 1-dimensional tensor")


@cases("split_with_sizes", dtypes=EVERY, skip={"0-d": "has no dimension"})
def split_with_sizes(g):
    def reference(a, sizes, dim=0):
        return np.split(a, np.cumsum(sizes)[:-1], dim)

    for sizes, dim in (((1, 4), 0), ((2, 0, 2), 1), ((5,), 0), ((1, 1, 1, 1, 1), -2)):
        yield Case((g.array((5, 4)), sizes, dim), {}, reference, double=dim == 1)
    yield Case((g.array((0, 4)), (0, 0)), {}, reference)
    for sizes in ((1, 1), (1, 5), ()):
        yield Bad((g.array((3, 4)), sizes), "RuntimeError", "expects split_sizes to sum exactly to 3 "
                  "(input tensor's size at dimension 0), but got split_sizes=[")
    yield Bad((g.array((3, 4)), (2**63 - 1, 2**63 - 1, 5)), "RuntimeError", "to sum exactly to 3")
    yield Bad((g.array((3, 4)), (-1, 4)), "RuntimeError",
              "split_sizes have only non-negative entries, but got split_sizes=[-1, 4]")
    yield Bad((g.array(()), (1,)), "RuntimeError", "split expects at least a 1-dimensional tensor")


@cases("chunk", dtypes=EVERY, skip={"0-d": "has no dimension"})
def chunk(g):
    def reference(a, chunks, dim=0):
        size = a.shape[dim]
        if size == 0:
            return [a] * chunks
        return np.split(a, range(-(-size // chunks), size, -(-size // chunks)), dim)

    for chunks, dim in ((2, 0), (3, 0), (4, 0), (9, 0), (2, -1), (1, 1)):
        yield Case((g.array((5, 4)), chunks, dim), {}, reference)
    yield Case((g.array((0, 3)), 3), {}, reference)
    yield Bad((g.array((3, 4)), 0), "RuntimeError", "`chunks` to be greater than 0, got: 0")
    yield Bad((g.array((3, 4)), -1), "RuntimeError", "`chunks` to be greater than 0, got: -1")
    yield Bad((g.array((3, 4)), 1, 2), "IndexError", DIM_2)
    yield Bad((g.array(()), 1), "RuntimeError", "chunk expects at least a 1-dimensional tensor")


@cases("unfold", dtypes=EVERY)
def unfold(g):
    def reference(a, dim, size, step):
        if a.ndim == 0:
            return a.reshape(1)[:size]
        count = (a.shape[dim] - size) // step + 1
        parts = [np.moveaxis(a[index_of(a.ndim, dim, slice(i * step, i * step + size))], dim, -1)
                 for i in range(count)]
        return np.stack(parts, dim % a.ndim)

    for args in ((0, 2, 1), (0, 2, 2), (1, 3, 1), (-1, 2, 3), (0, 5, 1), (0, 0, 1), (0, 3, 2)):
        yield Case((g.array((5, 4)), *args), {}, reference, double=args == (0, 3, 2))
    yield Case((g.array(()), 0, 1, 1), {}, reference)
    yield Case((g.array((3, 0)), 0, 2, 1), {}, reference)
    yield Bad((g.array((3, 4)), 0, 4, 1), "RuntimeError",
              "maximum size for tensor at dimension 0 is 3 but size is 4")
    yield Bad((g.array((3, 4)), 0, 2, 0), "RuntimeError", "step is 0 but must be > 0")
    yield Bad((g.array((3, 4)), 0, -1, 1), "RuntimeError", "size is -1 but must be >= 0")
    yield Bad((g.array((3, 4)), 2, 1, 1), "IndexError", DIM_2)
    yield Bad((g.array(()), 0, 2, 1), "RuntimeError", "is 1 but size is 2")


@cases("flatten", dtypes=EVERY)
def flatten(g):
    def reference(a, first=0, last=-1):
        if a.ndim == 0:
            return a.reshape(1)
        first, last = first % a.ndim, last % a.ndim
        size = int(np.prod(a.shape[first:last + 1]))
        return a.reshape(a.shape[:first] + (size,) + a.shape[last + 1:])

    for args in ((), (1,), (0, 1), (-2, -1), (1, 1)):
        yield Case((g.array((2, 3, 4)), *args), {}, reference)
    yield Case((g.array(()),), {}, reference)
    yield Case((g.array((0, 3)),), {}, reference)
    yield Bad((g.array((3, 4)), 1, 0), "RuntimeError", "start_dim cannot come after end_dim")
    yield Bad((g.array((3, 4)), 0, 2), "IndexError", DIM_2)


@cases("unflatten", dtypes=EVERY, skip={"0-d": "has no dimension"})
def unflatten(g):
    def reference(a, dim, sizes):
        dim = dim % a.ndim
        return a.reshape(a.shape[:dim] + tuple(sizes) + a.shape[dim + 1:])

    for args in ((1, (2, 2)), (1, (-1, 2)), (0, (3, 1)), (-1, (4,))):
        yield Case((g.array((3, 4)), *args), {}, reference)
    yield Case((g.array((0, 3)), 1, (3, 1)), {}, reference)
    yield Case((g.array((0, 3)), 0, (5, 0)), {}, reference)
    for sizes in ((2, 2), (2, -1), (3, 1, 0), (2**40, 2**40)):
        yield Bad((g.array((3, 4)), 0, sizes), "RuntimeError",
                  "don't multiply up to the size of dim 0 (3) in the input tensor")
    yield Bad((g.array((3, 4)), 0, ()), "RuntimeError", "unflatten: sizes must be non-empty")
    yield Bad((g.array((3, 4)), 0, (-1, -1)), "RuntimeError", "only one dimension can be inferred")
    yield Bad((g.array((3, 4)), 0, (-2,)), "RuntimeError", "invalid shape dimension -2")
    yield Bad((g.array((0, 3)), 0, (0, -1)), "RuntimeError", "ambiguous")
    yield Bad((g.array((3, 4)), 2, (1,)), "IndexError", DIM_2)
    yield Bad((g.array((3, 4)), 0, (1,) * 17), "RuntimeError", "at most 16")


@cases("detach", dtypes=EVERY)
def detach(g):
    for shape in ((3, 4), (), (0, 3)):
        yield Case((g.array(shape),), {}, np.array)


@cases("detach_", dtypes=EVERY)
def detach_(g):
    for shape in ((3, 4), (), (0, 3)):
        yield Case((g.array(shape),), {}, np.array, grad=False)  # it cuts the graph


@cases("alias", dtypes=EVERY)
def alias(g):
    for shape in ((3, 4), (), (0, 3)):
        yield Case((g.array(shape),), {}, np.array, double=True)


@cases("lift_fresh", dtypes=EVERY)
def lift_fresh(g):
    for shape in ((3, 4), (), (0, 3)):
        yield Case((g.array(shape),), {}, np.array)


@cases("resolve_conj", dtypes=EVERY)
def resolve_conj(g):
    for shape in ((3, 4), (), (0, 3)):
        yield Case((g.array(shape),), {}, np.array)


@cases("resolve_neg", dtypes=EVERY)
def resolve_neg(g):
    for shape in ((3, 4), (), (0, 3)):
        yield Case((g.array(shape),), {}, np.array)


# ---- what the derivatives call ----



@cases("select_backward", dtypes=FLOATS)
def select_backward(g):
    def reference(grad, sizes, dim, index):
        out = np.zeros(sizes, grad.dtype)
        out[index_of(len(sizes), dim, index)] = grad
        return out

    yield Case((g.array((4,)), (3, 4), 0, -1), {}, reference, double=True)
    yield Case((g.array((2, 4)), (2, 3, 4), 1, 2), {}, reference)
    yield Case((g.array(()), (3,), 0, 1), {}, reference)
    yield Case((g.array((0,)), (3, 0), 0, 1), {}, reference)
    yield Bad((g.array((3,)), (3, 4), 0, 0), "RuntimeError",
              "the gradient has sizes [3], but the view has [4]")
    yield Bad((g.array((4,)), (3, 4), 0, 3), "IndexError", "index 3 out of range")
    yield Bad((g.array((4,)), (3, -4), 0, 0), "RuntimeError", "")


@cases("slice_backward", dtypes=FLOATS, skip={"0-d": "has no dimension to slice"})
def slice_backward(g):
    def reference(grad, sizes, dim, start, end, step):
        out = np.zeros(sizes, grad.dtype)
        out[index_of(len(sizes), dim, slice(start, end, step))] = grad
        return out

    yield Case((g.array((2, 4)), (5, 4), 0, 1, 5, 2), {}, reference, double=True)
    yield Case((g.array((5, 2)), (5, 4), -1, -2, 2**63 - 1, 1), {}, reference)
    yield Case((g.array((0, 4)), (5, 4), 0, 3, 1, 1), {}, reference)
    yield Bad((g.array((3, 4)), (5, 4), 0, 1, 5, 2), "RuntimeError", "but the view has [2, 4]")


@cases("diagonal_backward", dtypes=FLOATS, skip={"0-d": "a diagonal has a dimension"})
def diagonal_backward(g):
    def reference(grad, sizes, offset, dim1, dim2):
        out = np.zeros(sizes, grad.dtype)
        view = out.diagonal(offset, dim1, dim2)
        view.flags.writeable = True
        view[...] = grad
        return out

    yield Case((g.array((3,)), (3, 4), 1, 0, 1), {}, reference, double=True)
    yield Case((g.array((3, 2)), (2, 3, 4), 0, 0, 2), {}, reference)
    yield Case((g.array((0,)), (3, 4), 9, 0, 1), {}, reference)
    yield Bad((g.array((2,)), (3, 4), 0, 0, 1), "RuntimeError", "but the view has [3]")


@cases("unfold_backward", dtypes=FLOATS, skip={"0-d": "windows have a dimension"})
def unfold_backward(g):
    def reference(grad, sizes, dim, size, step):
        out = np.zeros(sizes, grad.dtype)
        for i in range(grad.shape[dim]):
            part = np.moveaxis(grad.take(i, dim), -1, dim)
            out[index_of(len(sizes), dim, slice(i * step, i * step + size))] += part
        return out

    yield Case((g.array((4, 4, 2)), (5, 4), 0, 2, 1), {}, reference, double=True)
    yield Case((g.array((2, 4, 3)), (5, 4), 0, 3, 2), {}, reference)
    yield Case((g.array((2, 4, 2)), (5, 4), 0, 2, 2), {}, reference)
    yield Case((g.array((5, 2, 3)), (5, 4), 1, 3, 1), {}, reference)
    yield Case((g.array((6, 4, 0)), (5, 4), 0, 0, 1), {}, reference)
    yield Bad((g.array((3, 4, 2)), (5, 4), 0, 2, 1), "RuntimeError", "but the view has [4, 4, 2]")


@cases("as_strided_backward", dtypes=FLOATS)
def as_strided_backward(g):
    def places(size, stride, offset):
        return [offset + sum(i * s for i, s in zip(at, stride)) for at in np.ndindex(*size)]

    def reference(grad, sizes, strides, offset, size, stride, storage_offset, transposed=False):
        read, laid_at = places(sizes, strides, offset), places(size, stride, storage_offset)
        storage = np.zeros(max(read + laid_at + [0]) + 1, grad.dtype)
        for at, value in zip(laid_at, grad.reshape(-1)):
            storage[at] += value
        counts = np.bincount(laid_at if transposed else read, minlength=storage.size)
        storage /= np.maximum(counts, 1)
        return storage[read].reshape(sizes)

    for args in (((3, 4), (4, 1), 0, (3, 3), (1, 1), 2),    # the view overlaps
                 ((3, 4), (4, 1), 0, (2, 2), (4, 2), 1),    # it does not
                 ((3, 4), (0, 1), 0, (2,), (2,), 1),        # the input does: expanded
                 ((3, 4), (1, 1), 2, (3, 3), (1, 2), 3),    # both do
                 ((4, 3), (1, 4), 5, (2, 3), (3, 1), 5),    # transposed, far from the start
                 ((2, 2), (2, 1), 0, (2,), (1,), 10)):      # apart from each other
        grad = g.array(args[3])
        yield Case((grad, *args), {}, reference, double=True)
        yield Case((grad, *args, True), {}, reference)
    yield Case((g.array(()), (3,), (1,), 0, (), (), 1), {}, reference)
    yield Case((g.array((0,)), (3,), (1,), 0, (0,), (1,), 1), {}, reference)
    yield Case((g.array((2,)), (0,), (1,), 0, (2,), (1,), 1), {}, reference)
    yield Bad((g.array((2,)), (3,), (1, 1), 0, (2,), (1,), 0), "RuntimeError", "mismatch in length")
    yield Bad((g.array((2,)), (3,), (-1,), 0, (2,), (1,), 0), "RuntimeError", "negative strides")
    yield Bad((g.array((2,)), (3,), (1,), 0, (3,), (1,), 0), "RuntimeError", "the view has [3]")
