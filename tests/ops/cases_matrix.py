# SPDX-License-Identifier: Apache-2.0
"""Cases of ops_matrix.def."""
import numpy as np
from opcases import ALL, NUMBERS, Bad, Case, cases

MATRICES = {"0-d": "takes matrices"}
VECTORS = {"0-d": "takes vectors"}


def words_for_bool(g, name, *args):
    """Rows whose cases include bool refuse it."""
    return Bad(args, "NotImplementedError", f"\"{name}\" not implemented for 'Bool'")


@cases("mm", dtypes=ALL, skip=MATRICES)
def mm(g):
    product = lambda a, b: (a @ b).astype(a.dtype)
    if g.is_bool:
        yield words_for_bool(g, "addmm_impl_cpu_", g.array((2, 3)), g.array((3, 4)))
        return
    yield Case((g.array((2, 3)), g.array((3, 4))), {}, product, double=True)
    yield Case((g.array((5, 1)), g.array((1, 4))), {}, product)
    yield Case((g.array((1, 6)), g.array((6, 1))), {}, product)
    yield Case((g.array((0, 3)), g.array((3, 4))), {}, product)
    yield Case((g.array((2, 0)), g.array((0, 4))), {}, product)
    yield Case((g.array((17, 40)), g.array((40, 33))), {}, product, grad=False)
    yield Bad((g.array((2, 3)), g.array((2, 3))), "RuntimeError",
              "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)")
    yield Bad((g.array((3,)), g.array((3, 2))), "RuntimeError", "self must be a matrix")
    yield Bad((g.array((2, 3)), g.array((3,))), "RuntimeError", "mat2 must be a matrix")
    other, words = ("int64", "long int") if g.dtype != "int64" else ("float32", "float")
    yield Bad((g.array((2, 3)), g.other(other, (3, 2))), "RuntimeError",
              f"expected m1 and m2 to have the same dtype, but got: {C_NAMES[g.dtype]} != {words}")


C_NAMES = {"uint8": "unsigned char", "int8": "signed char", "int16": "short int", "int32": "int", "int64": "long int",
           "uint16": "short unsigned int", "uint32": "unsigned int", "uint64": "long unsigned int", "float32": "float",
           "float64": "double"}


@cases("bmm", dtypes=ALL, skip=MATRICES)
def bmm(g):
    product = lambda a, b: np.matmul(a, b).astype(a.dtype)
    if g.is_bool:
        yield words_for_bool(g, "bmm", g.array((2, 2, 3)), g.array((2, 3, 2)))
        return
    yield Case((g.array((2, 2, 3)), g.array((2, 3, 2))), {}, product, double=True)
    yield Case((g.array((1, 2, 3)), g.array((1, 3, 4))), {}, product)
    yield Case((g.array((0, 2, 3)), g.array((0, 3, 4))), {}, product)
    yield Case((g.array((2, 2, 0)), g.array((2, 0, 4))), {}, product)
    yield Bad((g.array((2, 2)), g.array((2, 2, 2))), "RuntimeError", "batch1 must be a 3D tensor")
    yield Bad((g.array((2, 2, 2)), g.array((2, 2))), "RuntimeError", "batch2 must be a 3D tensor")
    yield Bad((g.array((2, 2, 2)), g.array((3, 2, 2))), "RuntimeError",
              "Expected size for first two dimensions of batch2 tensor to be: [2, 2] but got: "
              "[3, 2].")
    yield Bad((g.array((2, 2, 3)), g.other("bool", (2, 3, 2))), "RuntimeError",
              "expected scalar type")


@cases("addmm", dtypes=ALL, skip=MATRICES)
def addmm(g):
    def product(c, a, b, beta=1, alpha=1):
        return (beta * c + alpha * (a @ b)).astype(a.dtype) + np.zeros((), a.dtype)
    if g.is_bool:
        yield words_for_bool(g, "addmm_impl_cpu_", g.array((2, 2)), g.array((2, 2)),
                             g.array((2, 2)))
        return
    yield Case((g.array((2, 4)), g.array((2, 3)), g.array((3, 4))), {}, product, double=True)
    yield Case((g.array((4,)), g.array((2, 3)), g.array((3, 4))), {"beta": 2, "alpha": 3}, product,
               double=True)
    yield Case((g.array((2, 1)), g.array((2, 3)), g.array((3, 4))), {}, product)
    yield Case((g.array(()), g.array((2, 3)), g.array((3, 4))), {}, product)
    yield Case((g.array((2, 4)), g.array((2, 0)), g.array((0, 4))), {"beta": 2}, product)
    yield Case((g.array((4,)), g.array((0, 3)), g.array((3, 4))), {}, product)
    if g.floating:
        yield Case((g.array((4,)), g.array((2, 3)), g.array((3, 4))), {"beta": 0.5, "alpha": -1.5},
                   product)
        yield Case((np.full((2, 4), np.nan, g.dtype), g.array((2, 3)), g.array((3, 4))),
                   {"beta": 0}, lambda c, a, b, beta: a @ b, grad=False,
                   layouts=("contiguous", "transposed"), note="beta 0 ignores NaN")
    else:
        yield Case((g.array((2, 4)), g.array((2, 3)), g.array((3, 4))), {"alpha": 1.5, "beta": 2.5},
                   lambda c, a, b, alpha, beta: (2 * c + a @ b).astype(a.dtype))
    yield Bad((g.array((3,)), g.array((2, 2)), g.array((2, 2))), "RuntimeError",
              "The expanded size of the tensor (2) must match the existing size (3) at "
              "non-singleton dimension 1.  Target sizes: [2, 2].  Tensor sizes: [3]")
    yield Bad((g.array((1, 2, 2)), g.array((2, 2)), g.array((2, 2))), "RuntimeError",
              "the number of sizes provided (2) must be greater or equal to the number of "
              "dimensions in the tensor (3)")
    yield Bad((g.array((2,)), g.array((2, 3)), g.array((2, 2))), "RuntimeError",
              "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x2)")
    yield Bad((g.array((2,)), g.array((2,)), g.array((2, 2))), "RuntimeError",
              "mat1 must be a matrix, got 1-D tensor")
    yield Bad((g.array((2,)), g.array((2, 2)), g.array((2,))), "RuntimeError",
              "mat2 must be a matrix, got 1-D tensor")
    yield Bad((g.other("bool", (2,)), g.array((2, 2)), g.array((2, 2))), "RuntimeError",
              "self and mat2 must have the same dtype, but got Bool and")


@cases("baddbmm", dtypes=ALL, skip=MATRICES)
def baddbmm(g):
    def product(c, a, b, beta=1, alpha=1):
        return (beta * c + alpha * np.matmul(a, b)).astype(a.dtype) + np.zeros((), a.dtype)
    if g.is_bool:
        yield words_for_bool(g, "baddbmm", g.array((2, 2, 2)), g.array((2, 2, 2)),
                             g.array((2, 2, 2)))
        return
    yield Case((g.array((2, 2, 2)), g.array((2, 2, 3)), g.array((2, 3, 2))), {}, product,
               double=True)
    yield Case((g.array((2, 1)), g.array((2, 2, 3)), g.array((2, 3, 2))), {"beta": 2, "alpha": 3},
               product)
    yield Case((g.array((2, 2, 2)), g.array((2, 2, 0)), g.array((2, 0, 2))), {}, product)
    yield Bad((g.array((3,)), g.array((2, 2, 2)), g.array((2, 2, 2))), "RuntimeError",
              "The expanded size of the tensor (2) must match the existing size (3)")
    yield Bad((g.array((2,)), g.array((2, 2, 3)), g.array((3, 3, 2))), "RuntimeError",
              "Expected size for first two dimensions of batch2 tensor")
    yield Bad((g.other("bool", (2, 2, 2)), g.array((2, 2, 2)), g.array((2, 2, 2))), "RuntimeError",
              "Input dtypes must be the same, got: input bool")


@cases("mv", dtypes=ALL, skip=MATRICES)
def mv(g):
    product = lambda a, b: (a @ b).astype(a.dtype)
    if g.is_bool:
        yield words_for_bool(g, "addmv_impl_cpu", g.array((2, 2)), g.array((2,)))
        return
    yield Case((g.array((3, 4)), g.array((4,))), {}, product, double=True)
    yield Case((g.array((2, 0)), g.array((0,))), {}, product)
    yield Case((g.array((0, 2)), g.array((2,))), {}, product)
    yield Bad((g.array((2,)), g.array((2,))), "RuntimeError",
              "vector + matrix @ vector expected, got 1, 1, 1")
    yield Bad((g.array((2, 3)), g.array((2,))), "RuntimeError",
              "size mismatch, got input (2), mat (2x3), vec (2)")
    yield Bad((g.array((2, 2)), g.other("bool", (2,))), "RuntimeError",
              "addmv input tensors must have the same dtype")


@cases("dot", dtypes=ALL, skip=VECTORS)
def dot(g):
    product = lambda a, b: (a @ b).astype(a.dtype) if a.size else a.dtype.type(0)
    if g.is_bool:
        yield words_for_bool(g, "dot", g.array((2,)), g.array((2,)))
        return
    yield Case((g.array((5,)), g.array((5,))), {}, product, double=True)
    yield Case((g.array((0,)), g.array((0,))), {}, product)
    yield Bad((g.array((2, 2)), g.array((2,))), "RuntimeError",
              "1D tensors expected, but got 2D and 1D tensors")
    yield Bad((g.array((3,)), g.array((2,))), "RuntimeError", "inconsistent tensor size, expected "
              "tensor [3] and src [2] to have the same number of elements")
    yield Bad((g.array((2,)), g.other("bool", (2,))), "RuntimeError",
              "dot : expected both vectors to have same dtype")


@cases("outer", dtypes=ALL, skip=VECTORS)
def outer(g):
    yield Case((g.array((3,)), g.array((4,))), {}, np.multiply.outer, double=True)
    yield Case((g.array((0,)), g.array((4,))), {}, np.multiply.outer)
    yield Bad((g.array((2, 2)), g.array((2,))), "RuntimeError",
              "outer: Expected 1-D argument self, but got 2-D")
    yield Bad((g.array((2,)), g.array((2, 2))), "RuntimeError",
              "outer: Expected 1-D argument vec2, but got 2-D")


@cases("matmul", dtypes=NUMBERS, skip={"0-d": "needs at least 1-d"})
def matmul(g):
    product = lambda a, b: np.matmul(a, b).astype(a.dtype)
    shapes = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((2, 2, 3), (3,)),
              ((2, 2, 3), (3, 4)), ((2, 3), (2, 3, 2)), ((3,), (2, 3, 4)), ((2, 2, 3), (2, 3, 2)),
              ((1, 2, 2, 3), (2, 1, 3, 2)), ((2, 1, 2, 3), (3, 2)), ((1, 2, 3), (2, 3, 2))]
    for a, b in shapes:
        yield Case((g.array(a), g.array(b)), {}, product, double=len(a) + len(b) == 6)
    for a, b in [((0, 2, 3), (3, 4)), ((2, 2, 0), (0, 4)), ((2, 2, 0), (2, 0, 3)), ((0,), (0,))]:
        yield Case((g.array(a), g.array(b)), {}, product)
    yield Bad((g.array(()), g.array((2,))), "RuntimeError",
              "both arguments to matmul need to be at least 1D, but they are 0D and 1D")
    yield Bad((g.array((5, 2, 3)), g.array((4, 3, 4))), "RuntimeError",
              "The size of tensor a (5) must match the size of tensor b (4) at non-singleton "
              "dimension 0")
    yield Bad((g.array((5, 2, 3)), g.array((4, 4))), "RuntimeError",
              "mat1 and mat2 shapes cannot be multiplied (10x3 and 4x4)")
    yield Bad((g.array((2, 1, 1, 3)), g.array((5, 2, 2))), "RuntimeError",
              "Expected size for first two dimensions of batch2 tensor to be: [10, 3] but got: "
              "[10, 2].")


@cases("linear", dtypes=NUMBERS, skip={"0-d": "needs at least 1-d"})
def linear(g):
    def reference(x, w, b=None):
        y = np.matmul(x, w.T)
        return (y if b is None else y + b).astype(x.dtype)
    for x in [(2, 3), (3,), (2, 2, 3), (0, 3), (2, 1, 2, 3)]:
        yield Case((g.array(x), g.array((4, 3))), {}, reference, double=x == (2, 3))
        yield Case((g.array(x), g.array((4, 3)), g.array((4,))), {}, reference, double=x == (2, 3))
    yield Case((g.array((2, 3)), g.array((3,))), {}, reference)
    yield Case((g.array((2, 2, 3)), g.array((4, 3)), g.array((2, 4))), {}, reference)
    yield Case((g.array((2, 0)), g.array((4, 0)), g.array((4,))), {}, reference)
    yield Bad((g.array((2, 3)), g.array((4, 2)), g.array((4,))), "RuntimeError",
              "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x4)")
    yield Bad((g.array((2, 3)), g.array((4, 3)), g.array((3,))), "RuntimeError",
              "The expanded size of the tensor (4) must match the existing size (3)")
    yield Bad((g.array(()), g.array((4, 3))), "RuntimeError",
              "both arguments to linear need to be at least 1D, but they are 0D and 2D")
    yield Bad((g.array((2, 3)), g.array((4, 3, 3))), "RuntimeError",
              "t() expects a tensor with <= 2 dimensions, but self is 3D")
