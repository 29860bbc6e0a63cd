# SPDX-License-Identifier: Apache-2.0
"""Cases of ops_alias.def: other names take the cases of the row that they name."""
import dataclasses

import cases_index
import cases_matrix
import cases_pointwise
import cases_view
import numpy as np
from layouts import map_arrays
from opcases import ALL, EVERY, REGISTRY, Bad, Case, cases

NAMES = {
    "__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor", "max.other": "maximum",
    "min.other": "minimum", "absolute": "abs", "negative": "neg", "fix": "trunc", "multiply": "mul",
    "subtract": "sub", "divide": "div", "arctan2": "atan2", "greater": "gt", "greater_equal": "ge",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan",
    "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "less": "lt", "less_equal": "le", "not_equal": "ne", "clip": "clamp", "clip.Tensor": "clamp.Tensor",
    "concat": "cat", "concatenate": "cat", "swapaxes": "transpose", "swapdims": "transpose",
    "moveaxis": "movedim", "ger": "outer", "broadcast_to": "expand", "argwhere": "nonzero",
}
UNDERIVED = ("gt", "ge", "lt", "le", "ne", "bitwise_and", "bitwise_or", "bitwise_xor", "trunc", "nonzero")
POINTWISE = ("cases_pointwise", "cases_gamma", "cases_special")
MODULES = (cases_index, cases_matrix, cases_pointwise, cases_view)  # where those rows have their cases


def same_as(alias, row, modules=MODULES):
    target = REGISTRY[row]
    assert target.module in {module.__name__ for module in modules}, (row, target.module)

    def function(g):
        g.op = row
        first = None
        for case in target.function(g):
            if isinstance(case, Case) and row in UNDERIVED:
                case = dataclasses.replace(case, grad=False)
            if isinstance(case, Case) and first is None:
                first = case
            yield case
        if first is not None and target.module in POINTWISE:  # whose rows get these made
            for shape in ((0, 3), ()):
                yield dataclasses.replace(first, args=map_arrays(first.args, lambda a: np.resize(a, shape)),
                                          double=False)

    cases(alias, dtypes=target.dtypes, skip=target.skip)(function)


for name, target in NAMES.items():
    same_as(name, target)


@cases("true_divide", dtypes=ALL)
def true_divide(g):
    def reference(a, b):
        return np.true_divide(a, b)

    for shape, other in (((3, 4), (4,)), ((), (2,)), ((0, 3), (3,))):
        yield Case((g.array(shape), g.positive(other)), {}, reference)
    yield Case((g.array((3,)), 4), {}, reference)
    yield Bad((g.array((2,)), g.array((3,))), "RuntimeError", "must match the size of tensor b (3)")


BITS = {"__iand__": np.bitwise_and, "__ior__": np.bitwise_or, "__ixor__": np.bitwise_xor}


@cases(*BITS, dtypes=ALL)
def bits_in_place(g):
    if g.floating:
        yield Bad((g.array((2,)), g.array((2,))), "NotImplementedError", "_cpu\" not implemented for '")
        return
    reference = BITS[g.op]
    for shape, other in (((3, 4), (3, 4)), ((3, 4), (4,)), ((), ()), ((0, 3), (3,))):
        yield Case((g.array(shape), g.array(other)), {}, reference, layouts=("contiguous", "transposed"))
    yield Case((g.array((3,)), True if g.is_bool else 6), {},
               lambda a, b: reference(a, np.asarray(b, a.dtype)))
    if g.is_bool:
        yield Bad((g.array((2,)), g.other("int64", (2,))), "RuntimeError",
                  "result type Long can't be cast to the desired output type Bool")
    yield Bad((g.array((2,)), g.array((3,))), "RuntimeError", "")


@cases("is_nonzero", dtypes=EVERY, skip={"empty": "an error, tried as such"})
def is_nonzero(g):
    for value in (0, 1):
        for shape in ((), (1,), (1, 1)):
            yield Case((g.cast(np.full(shape, value)),), {}, lambda a: bool(a.reshape(()).item()), grad=False)
    if g.floating:
        for value in (0.25, -0.0, np.nan, np.inf):
            yield Case((g.cast(value),), {}, lambda a: bool(a.item()), grad=False)
    yield Bad((g.array((2,)),), "RuntimeError",
              "Boolean value of Tensor with more than one value is ambiguous")
    yield Bad((g.array((0,)),), "RuntimeError", "Boolean value of Tensor with no values is ambiguous")


@cases("numpy_T", dtypes=EVERY)
def numpy_T(g):
    for shape in ((3, 4), (), (5,), (0, 2), (2, 3, 4), (1, 2) * 4):
        yield Case((g.array(shape),), {}, lambda a: a.T, double=shape == (3, 4))


@cases("mT", dtypes=EVERY)
def mT(g):
    for shape in ((3, 4), (2, 3, 4), (0, 2), (1, 2) * 4):
        yield Case((g.array(shape),), {}, lambda a: np.swapaxes(a, -1, -2))
    yield Case((g.array(()),), {}, lambda a: a)
    yield Bad((g.array((3,)),), "RuntimeError",
              "only supported on matrices or batches of matrices. Got 1-D tensor.")


@cases("reshape_as", dtypes=EVERY)
def reshape_as(g):
    for shape, other in (((3, 4), (2, 6)), ((1,), ()), ((), (1, 1)), ((0, 3), (3, 0))):
        yield Case((g.array(shape), g.array(other)), {}, lambda a, b: a.reshape(b.shape), grad_args=(0,))
    yield Bad((g.array((3,)), g.array((2,))), "RuntimeError", "shape '[2]' is invalid for input of size 3")


@cases("type_as", dtypes=EVERY)
def type_as(g):
    for other in ("int64", "float64", "float32", "bool"):
        for shape in ((3, 4), (), (0,)):
            yield Case((g.array(shape), g.other(other, (2,))), {}, lambda a, b: a.astype(b.dtype),
                       result=other, exact=True, grad=False)
    yield Case((g.array((3, 4)), g.array((2,))), {}, lambda a, b: a, grad_args=(0,), result=g.dtype)


@cases("ravel", dtypes=EVERY)
def ravel(g):
    for shape in ((3, 4), (), (5,), (0, 2), (2, 3, 4)):
        yield Case((g.array(shape),), {}, np.ravel)


@cases("tile", dtypes=EVERY)
def tile(g):
    for shape, dims in (((3, 4), (2,)), ((3, 4), (2, 2)), ((3, 4), (2, 1, 3)), ((), (2, 2)), ((3,), ()),
                        ((), ()), ((0, 3), (2,)), ((2, 3), (0,)), ((1, 2) * 4, (2,))):
        yield Case((g.array(shape), dims), {}, np.tile)
    yield Bad((g.array((3, 4)), (-1,)), "RuntimeError", "Trying to create tensor with negative dimension")


# ---- new tensors of a tensor's type ----

def has(dtype, shape):
    def check(got, *_):
        assert got.dtype == dtype and got.shape == tuple(shape), (got, dtype, shape)
        assert got.is_contiguous

    return check


NEGATIVE = "Trying to create tensor with negative dimension -1: "
SIZES = ((2, 3), (), (0, 2), (1, 2, 1, 2))


@cases("new_empty", dtypes=EVERY)
def new_empty(g):
    for size in SIZES:
        yield Case((g.array(size), size), {}, check=has(g.dtype, size), grad=False)
    yield Case((g.array((3,)), (2,)), {"dtype": "int64"}, check=has("int64", (2,)), grad=False)
    yield Bad((g.array((3,)), (2, -1)), "RuntimeError", NEGATIVE + "[2, -1]")


@cases("new_zeros", "new_ones", dtypes=EVERY)
def new_constant(g):
    value = 0 if g.op == "new_zeros" else 1
    for size in SIZES:
        yield Case((g.array(size), size), {}, lambda a, size: np.full(size, value), result=g.dtype,
                   grad=False)
    for dtype in ("bool", "int64", "float64"):
        yield Case((g.array((3,)), (2,)), {"dtype": dtype}, lambda a, size, dtype: np.full(size, value),
                   result=dtype, grad=False)
    yield Bad((g.array((3,)), (2, -1)), "RuntimeError", NEGATIVE + "[2, -1]")


@cases("new_full", dtypes=ALL)
def new_full(g):
    for size in SIZES:
        for value in (True, 3, 1.5):
            yield Case((g.array(size), size, value), {},
                       lambda a, size, v: np.asarray(np.full(size, v), a.dtype), result=g.dtype, grad=False,
                       exact=True)
    yield Case((g.array((3,)), (2,), 7), {"dtype": "float64"}, lambda a, size, v, dtype: np.full(size, v),
               result="float64", grad=False)
    yield Bad((g.array((3,)), (-1,), 1), "RuntimeError", NEGATIVE + "[-1]")
    if g.integer:
        yield Bad((g.array((3,)), (2,), 1e30), "RuntimeError", "cannot be converted to type")


# ---- more dimensions ----

@cases("atleast_1d", "atleast_2d", "atleast_3d", dtypes=EVERY)
def atleast(g):
    for shape in ((), (3,), (2, 3), (2, 3, 2), (0,), (1, 2, 1, 2)):
        yield Case((g.array(shape),), {}, getattr(np, g.op))


@cases("atleast_1d.Sequence", "atleast_2d.Sequence", "atleast_3d.Sequence", dtypes=EVERY)
def atleast_sequence(g):
    one = getattr(np, g.op.partition(".")[0])
    for shapes in (((), (3,), (2, 3)), ((2, 3, 2), (0,)), ((),)):
        yield Case(([g.array(shape) for shape in shapes],), {}, lambda arrays: [one(a) for a in arrays])


@cases("fliplr", "flipud", dtypes=EVERY, skip={"0-d": "an error, tried as such"})
def flips(g):
    for shape in ((3, 4), (0, 2), (2, 3, 2)):
        yield Case((g.array(shape),), {}, getattr(np, g.op))
    if g.op == "flipud":
        yield Case((g.array((3,)),), {}, np.flipud)
        yield Bad((g.array(()),), "RuntimeError", "Input must be >= 1-d.")
    else:
        yield Bad((g.array((3,)),), "RuntimeError", "Input must be >= 2-d.")


@cases("column_stack", dtypes=EVERY)
def column_stack(g):
    for shapes in (((3,), (3,)), ((3,), (3, 2)), ((), ()), ((0,), (0, 2)), ((2, 3),), ((2, 1, 2), (2, 3, 2))):
        yield Case(([g.array(shape) for shape in shapes],), {}, np.column_stack)
    yield Bad(([],), "RuntimeError", "column_stack expects a non-empty TensorList")
    yield Bad(([g.array((2,)), g.array((3,))],), "RuntimeError", "Sizes of tensors must match")


@cases("isclose", dtypes=ALL)
def isclose(g):
    def reference(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
        return np.isclose(np.asarray(a, float), np.asarray(b, float), rtol, atol, equal_nan)

    a = g.distinct((3, 4))
    b = a.copy()
    b[1] = ~b[1] if g.is_bool else b[1] + g.cast(1)
    for other in (a, b, b[:1].copy()):
        yield Case((a, other), {}, reference, grad=False)
    for rtol, atol in ((0.0, 0.0), (0.0, 1.5), (0.5, 0.0)):
        yield Case((a, b, rtol, atol), {}, reference, grad=False)
    for shape in ((), (0, 2)):
        yield Case((g.array(shape), g.array(shape)), {}, reference, grad=False)
    if g.floating:
        near = a * g.cast(1 + 1e-6)
        odd = g.cast([np.inf, -np.inf, np.nan, 1.0])
        yield Case((a, near), {}, reference, grad=False)
        for equal_nan in (False, True):
            yield Case((odd, odd.copy(), 1e-5, 1e-8, equal_nan), {}, reference, grad=False)
            yield Case((odd, odd[2:3].copy(), 1e-5, 1e-8, equal_nan), {}, reference, grad=False)
            yield Case((odd, odd[:1].copy(), 0.0, 0.0, equal_nan), {}, reference, grad=False)
        yield Bad((a, a.astype("float32" if g.dtype == "float64" else "float64")), "RuntimeError",
                  "did not match")
    yield Bad((a, a, -1.0), "RuntimeError", "rtol must be greater than or equal to zero, but got -1")
    yield Bad((a, a, 0.0, -1.0), "RuntimeError", "atol must be greater than or equal to zero, but got -1")
    yield Bad((g.array((2,)), g.array((3,))), "RuntimeError", "must match the size of tensor b (3)")


STACKS = {"hstack": np.hstack, "vstack": np.vstack, "row_stack": np.vstack, "dstack": np.dstack}


@cases(*STACKS, dtypes=EVERY)
def stacks(g):
    shapes = {
        "hstack": (((3,), (2,)), ((2, 3), (2, 1)), ((), (3,)), ((), ()), ((0,), (2,)),
                   ((2, 3, 1), (2, 1, 1))),
        "dstack": (((3,), (3,)), ((2, 3), (2, 3)), ((), ()), ((0, 2), (0, 2)), ((2, 3, 1), (2, 3, 2)))}
    below = (((3,), (3,)), ((2, 3), (1, 3)), ((), ()), ((0, 2), (2,)), ((2, 3, 1), (1, 3, 1)))
    for pair in shapes.get(g.op, below):
        yield Case(([g.array(shape) for shape in pair],), {}, STACKS[g.op])
    expects = "vstack" if g.op == "row_stack" else g.op
    yield Bad(([],), "RuntimeError", f"{expects} expects a non-empty TensorList")
    yield Bad(([g.array((2, 2)), g.array((3, 3))],), "RuntimeError", "Sizes of tensors must match")


@cases("meshgrid", dtypes=EVERY)
def meshgrid(g):
    def reference(arrays, indexing):
        return [np.array(a) for a in np.meshgrid(*arrays, indexing=indexing or "ij")]

    for shapes in (((3,), (2,)), ((3,),), ((), (2,)), ((0,), (2,)), ((2,), (3,), (4,)), ((1,),) * 8, ((),)):
        for indexing in (None, "ij", "xy"):
            yield Case(([g.array(shape) for shape in shapes],), {"indexing": indexing}, reference,
                       grad=len(shapes) < 8)
    yield Bad(([],), "RuntimeError", "meshgrid expects a non-empty TensorList")
    yield Bad(([g.array((2, 2))],), "RuntimeError", "Expected 0D or 1D tensor in the tensor list but got")
    yield Bad(([g.array((1,))] * 65,), "NotImplementedError", "meshgrid: 65 tensors are more than")
    yield Bad(([g.array((2,))],), "RuntimeError", "indexing must be one of \"xy\" or \"ij\", but received: a",
              {"indexing": "a"})
    if g.dtype != "int64":
        yield Bad(([g.array((2,)), g.other("int64", (2,))],), "RuntimeError",
                  "meshgrid expects all tensors to have the same dtype")
