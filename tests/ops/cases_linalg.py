# SPDX-License-Identifier: Apache-2.0
"""Cases of ops_linalg.def. What is unique up to signs is multiplied together and compared with the input."""
from functools import partial

import numpy as np
from opcases import FLOATS, HALVES, Bad, Case, cases

NO_0D = {"0-d": "takes matrices"}
SKIP = {**NO_0D, "extremes": {"nan": "all of a matrix's results are NaN, or an error", "inf": "the same",
                              "large": "squares do not fit", "small": "squares vanish"}}
PLACES = ("contiguous", "transposed", "sliced", "mixed")  # broadcast ones have equal rows
LOOSE = {"rtol": 2e-3, "atol": 2e-4}
SHAPES = ((3, 3), (2, 4, 2), (2, 3), (0, 3, 3), (2, 0, 3), (3, 0), (2, 2, 3, 3))


def refuse(kernel):
    return "NotImplementedError", f"\"{kernel}\" not implemented for 'Half'"


LU, TRIANGLE, CHOLESKY = refuse("lu_cpu"), refuse("triangular_solve_cpu"), refuse("cholesky_cpu")
GEQRF, EIGH, SVD = refuse("geqrf_cpu"), refuse("linalg_eigh_cpu"), refuse("linalg_svd_cpu")
LOW = ("RuntimeError", "Low precision dtypes not supported. Got Half")
OTHER = ("RuntimeError", "This function doesn't handle types other than float and double")
PINV = ("RuntimeError", "linalg.pinv(")


def precise(*names, half, dtypes=FLOATS, skip=SKIP):
    """Cases of rows that take float32 and float64 alone: `half` is the answer to float16 in the first of them."""
    def register(function):
        def both(g):
            for item in function(g):
                if g.dtype not in HALVES:
                    yield item
                elif isinstance(item, Case):
                    words = half[1] if g.dtype == "float16" else half[1].replace("Half", "BFloat16")
                    yield Bad(item.args, half[0], words, item.kwargs)
                    return
        both.__module__ = function.__module__
        cases(*names, dtypes=dtypes + ("float16",), skip=skip)(both)
        return function
    return register


def square(g, shape=(3, 3)):
    """Far from singular."""
    n = shape[-1]
    return g.cast(g.array(shape, -1.0, 1.0).astype(np.float64) + 3.0 * np.eye(n))


def definite(g, shape=(3, 3)):
    a = g.array(shape, -1.0, 1.0).astype(np.float64)
    return g.cast(a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1]))


def apart(g, shape):
    """Singular values that are well apart: a unit stays a unit under small steps."""
    a = g.array(shape, -1.0, 1.0).astype(np.float64)
    k = min(shape[-2:])
    if a.size:
        u, _, vh = np.linalg.svd(a, full_matrices=False)
        a = (u * (1.0 + np.arange(k))) @ vh
    return g.cast(a)


def turned(a):
    return np.swapaxes(a, -1, -2)


def array_of(tensor):
    return tensor.numpy().astype(np.float64)


def near(got, want, dtype):
    tolerance = 1e-4 if dtype == "float32" else 1e-10
    assert got.shape == want.shape, (got.shape, want.shape)
    assert np.allclose(got, want, rtol=tolerance, atol=tolerance), np.abs(got - want).max()


def solve_of(a, b):
    """np.linalg.solve of matrices: for b of fewer dimensions NumPy's versions differ."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return np.linalg.solve(np.broadcast_to(a, batch + a.shape[-2:]), np.broadcast_to(b, batch + b.shape[-2:]))


def not_square(g, words, error="RuntimeError"):
    yield Bad((g.array((2, 3)),), error, f"{words}: A must be batches of square matrices, but they are 2 by 3 matrices")
    yield Bad((g.array((3,)),), error, f"{words}: The input tensor A must have at least 2 dimensions.")


# ---- LU ----

def multiplied(got, args, given):
    p, lower, upper = map(array_of, got)
    near(p @ lower @ upper, array_of(args[0]), args[0].dtype)
    assert np.all(np.tril(lower) == lower) and np.all(np.triu(upper) == upper) and np.all(p.sum(-1) == 1)


@precise("linalg_lu", half=LU)
def linalg_lu(g):
    for shape in SHAPES:
        yield Case((g.array(shape),), {}, check=multiplied, layouts=PLACES)
    yield Bad((g.array((3,)),), "RuntimeError", "Expected tensor with 2 or more dimensions. Got size: [3] instead")
    yield Bad((g.array((3, 3)),), "RuntimeError", "LU without pivoting is not implemented on the CPU", {"pivot": False})


@precise("_linalg_lu_parts", half=LU)
def linalg_lu_parts(g):
    def check(got, args, given):
        near(array_of(got[0]) @ array_of(got[1]), moved(array_of(args[0]), got[2].numpy()), args[0].dtype)
    for shape in ((3, 3), (3, 2), (3, 5), (0, 3)):
        yield Case((g.array(shape),), {}, check=check, layouts=PLACES, double=shape == (3, 3))


def packed(got, args, given):
    factors, pivots = (t.numpy() for t in got[:2])
    a = array_of(args[0])
    k = min(a.shape[-2:])
    lower = np.tril(factors[..., :k], -1) + np.eye(a.shape[-2], k)
    near((lower @ np.triu(factors[..., :k, :])).astype(np.float64), moved(a, pivots), args[0].dtype)


def moved(a, pivots):
    """Rows as the pivots exchange them."""
    out = a.copy()
    for place in np.ndindex(pivots.shape[:-1]):
        for i, other in enumerate(pivots[place]):
            out[place][[i, other - 1]] = out[place][[other - 1, i]]
    return out


@precise("linalg_lu_factor_ex", "linalg_lu_factor", "_lu_with_info", half=LU)
def linalg_lu_factor(g):
    for shape in SHAPES:
        yield Case((g.array(shape),), {}, check=packed, layouts=PLACES)
    yield Bad((g.array((3,)),), "RuntimeError", "torch.lu_factor: Expected tensor with 2 or more dimensions")
    if g.op == "linalg_lu_factor_ex":
        yield Case((square(g),), {"check_errors": True}, check=packed, layouts=PLACES)
        yield Bad((g.cast(np.zeros((2, 2))),), "RuntimeError", "U[1,1] is zero", {"check_errors": True})
    if g.op == "linalg_lu_factor":
        yield Bad((g.cast(np.zeros((2, 2, 2))),), "RuntimeError",
                  "torch.linalg.lu_factor: (Batch element 0): U[1,1] is zero and using it on lu_solve")


def parts(factors):
    k = min(factors.shape[-2:])
    lower = np.tril(factors[..., :k], -1)
    return lower + np.eye(factors.shape[-2], k), np.triu(factors[..., :k, :])


@cases("_lu_unpack_data", skip=SKIP)
def lu_unpack_data(g):
    for shape in SHAPES:
        yield Case((g.array(shape),), {}, parts, double=shape == (3, 3))
    yield Bad((g.array((3,)),), "RuntimeError", "must have at least 2 dimensions")


@cases("lu_unpack", skip=SKIP)
def lu_unpack(g):
    pivots = np.array([2, 3, 3], np.int32)
    p = np.eye(3)[[1, 2, 0]]
    yield Case((g.array((3, 3)), pivots), {}, lambda a, q: (turned(p), *parts(a)))
    yield Case((g.array((2, 3, 3)), np.stack([pivots, pivots])), {},
               lambda a, q: (np.stack([turned(p)] * 2), *parts(a)))
    yield Case((g.array((0, 3)), np.zeros((0,), np.int32)), {}, lambda a, q: (np.zeros((0, 0)), *parts(a)))
    yield Bad((g.array((3, 3)), pivots + 5), "RuntimeError", "pivots")
    yield Bad((g.array((3, 3)), pivots.astype(np.int64)), "RuntimeError",
              "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.")


@cases("_lu_permutation", skip=SKIP)
def lu_permutation(g):
    yield Case((np.array([2, 3, 3], np.int32), 3, g.dtype), {}, lambda q, n, t: turned(np.eye(3)[[1, 2, 0]]),
               result=g.dtype)
    yield Case((np.zeros((0,), np.int32), 2, g.dtype), {}, lambda q, n, t: np.eye(2), result=g.dtype)
    yield Bad((np.array([2, 3, 4], np.int32), 3, g.dtype), "RuntimeError", "4 is not a row of the matrix")
    yield Bad((np.array([1, 2, 3], np.int32), 2, g.dtype), "RuntimeError", "3 pivots for a matrix with 2 rows")
    yield Bad((np.array([1, 2]), 2, g.dtype), "RuntimeError", "pivots must be int32")


def whole(factors, pivots):
    lower, upper = parts(factors)
    back = lower @ upper
    for place in np.ndindex(pivots.shape[:-1]):
        for i in reversed(range(pivots.shape[-1])):
            other = pivots[place][i] - 1
            back[place][[i, other]] = back[place][[other, i]]
    return back


@precise("linalg_lu_solve", half=refuse("linalg.lu_solve_cpu"))
def linalg_lu_solve(g):
    pivots = np.array([2, 3, 3], np.int32)

    def solved(f, q, b, left=True, adjoint=False):
        a = whole(f, q)
        a = turned(a) if adjoint else a
        return solve_of(a, b) if left else turned(solve_of(turned(a), turned(b)))
    for left in (True, False):
        for adjoint in (True, False):
            b = g.array((3, 2) if left else (2, 3))
            yield Case((square(g), pivots, b), {"left": left, "adjoint": adjoint}, solved, layouts=PLACES, **LOOSE,
                       double=left)
    yield Case((square(g, (2, 3, 3)), np.stack([pivots] * 2), g.array((3, 2))), {}, solved, layouts=PLACES, **LOOSE)
    yield Case((g.array((0, 0)), np.zeros((0,), np.int32), g.array((0, 2))), {}, lambda f, q, b: b, layouts=PLACES)
    yield Bad((square(g), pivots, g.array((4, 2))), "RuntimeError",
              "linalg.lu_solve: Incompatible shapes of A and B for the equation AX = B (3x3 and 4x2)")
    yield Bad((square(g), pivots[:2], g.array((3, 2))), "RuntimeError", "Number of pivots per batch should be same")
    yield Bad((square(g), pivots + 9, g.array((3, 2))), "RuntimeError", "ivots")
    yield Bad((square(g), pivots - 9, g.array((3, 2))), "RuntimeError", "-7 is not a row of the matrix")


@precise("lu_solve", half=refuse("linalg.lu_solve_cpu"))
def lu_solve(g):
    pivots = np.array([2, 3, 3], np.int32)
    yield Case((g.array((3, 2)), square(g), pivots), {}, lambda b, f, q: solve_of(whole(f, q), b),
               layouts=PLACES, **LOOSE)
    yield Case((g.array((0, 2)), g.array((0, 0)), np.zeros((0,), np.int32)), {}, lambda b, f, q: b, layouts=PLACES)


# ---- determinants, inverses, equations ----

def det_of(a):
    return np.linalg.det(a) if a.size else np.ones(a.shape[:-2])


@precise("linalg_det", "det", half=LU)
def linalg_det(g):
    for shape in ((3, 3), (2, 2, 2), (1, 1), (0, 3, 3), (2, 0, 0)):
        yield Case((g.array(shape),), {}, det_of, layouts=PLACES, **LOOSE, double=shape == (3, 3))
    yield Case((g.cast([[1.0, 2.0], [2.0, 4.0]]),), {}, det_of, layouts=PLACES, atol=1e-5, note="singular")
    yield Case((g.cast(np.zeros((1, 1))),), {}, det_of, layouts=PLACES, note="a zero has a gradient")
    yield from not_square(g, "linalg.det")


@precise("_linalg_det", half=LU)
@precise("_linalg_slogdet", half=LOW)
def linalg_det_parts(g):
    def check(got, args, given):
        a, sign = array_of(args[0]), array_of(got[0])
        near(sign if g.op == "_linalg_det" else sign * np.exp(array_of(got[1])), det_of(a), args[0].dtype)
    for a in (square(g), g.array((0, 0))):
        yield Case((a,), {}, check=check, layouts=PLACES, grad=False)


def slogdet_of(a):
    return tuple(np.linalg.slogdet(a)) if a.size else (np.ones(a.shape[:-2]), np.zeros(a.shape[:-2]))


@precise("linalg_slogdet", "slogdet", half=LOW)
def linalg_slogdet(g):
    for shape in ((3, 3), (2, 2, 2), (0, 3, 3), (0, 0)):
        yield Case((g.array(shape),), {}, slogdet_of, layouts=PLACES, **LOOSE, double=shape == (3, 3))
    yield from not_square(g, "linalg.slogdet")


@precise("logdet", half=LOW)
def logdet(g):
    for shape in ((3, 3), (2, 2, 2), (0, 3, 3)):
        yield Case((definite(g, shape) if 0 not in shape else g.array(shape),), {}, lambda a: slogdet_of(a)[1],
                   layouts=PLACES, **LOOSE, double=shape == (3, 3))
    yield Case((g.cast([[-1.0]]),), {}, lambda a: np.array(np.nan), grad=False)
    yield Case((g.cast([[0.0]]),), {}, lambda a: np.array(-np.inf), grad=False)
    yield from not_square(g, "logdet")


@precise("linalg_inv", "inverse", half=LOW)
def linalg_inv(g):
    for shape in ((3, 3), (2, 2, 2), (1, 1), (0, 3, 3), (0, 0)):
        yield Case((square(g, shape),), {}, np.linalg.inv, layouts=PLACES, **LOOSE, double=shape == (3, 3))
    yield Bad((g.cast(np.zeros((2, 3, 3))),), "_LinAlgError",
              "linalg.inv: (Batch element 0): The diagonal element 1 is zero, the inversion could not be completed "
              "because the input matrix is singular.")
    yield from not_square(g, "linalg.inv")


@precise("linalg_inv_ex", half=LOW)
def linalg_inv_ex(g):
    def inverted(a, check_errors=False):
        return np.linalg.inv(a), np.zeros(a.shape[:-2], np.int32)
    for shape in ((3, 3), (2, 2, 2), (0, 3, 3), (0, 0)):
        yield Case((square(g, shape),), {"check_errors": shape == (3, 3)}, inverted, layouts=PLACES, **LOOSE,
                   result=(g.dtype, "int32"))
    yield Bad((g.cast(np.zeros((3, 3))),), "_LinAlgError", "linalg.inv_ex: The diagonal element 1 is zero",
              {"check_errors": True})
    yield from not_square(g, "linalg.inv")


def solved(a, b, left=True):
    vector = b.ndim == 1 or b.shape == a.shape[:-1]
    b = b[..., None] if vector else b
    x = solve_of(a, b) if left else turned(solve_of(turned(a), turned(b)))
    return x[..., 0] if vector else x


@precise("linalg_solve", half=LU)
def linalg_solve(g):
    for first, second, left in (((3, 3), (3, 2), True), ((3, 3), (3,), True), ((3, 3), (2, 3), False),
                                ((2, 3, 3), (2, 3), True), ((2, 3, 3), (3, 2), True), ((2, 2), (2, 2, 1), True),
                                ((0, 0), (0, 2), True), ((0, 2, 2), (0, 2, 1), True), ((2, 2, 2), (1, 3, 2), False)):
        yield Case((square(g, first), g.array(second)), {"left": left}, solved, layouts=PLACES, **LOOSE,
                   double=first == (3, 3))
    yield Bad((square(g), g.array((4, 2))), "RuntimeError",
              "linalg.solve: Incompatible shapes of A and B for the equation AX = B (3x3 and 4x2)")
    yield Bad((square(g), g.array((3, 2))), "RuntimeError", "XA = B (3x3 and 3x2)", {"left": False})
    yield Bad((g.cast(np.zeros((2, 3, 3))), g.array((3, 1))), "_LinAlgError",
              "torch.linalg.solve: (Batch element 0): The solver failed because the input matrix is singular.")
    yield Bad((g.array((2, 3)), g.array((2, 3))), "RuntimeError", "linalg.solve: A must be batches of square matrices")


@precise("linalg_solve_ex", half=LU)
def linalg_solve_ex(g):
    yield Case((square(g, (2, 3, 3)), g.array((2, 3, 1))), {"check_errors": True},
               lambda a, b, check_errors: (solved(a, b), np.zeros((2,), np.int32)), layouts=PLACES, **LOOSE,
               result=(g.dtype, "int32"))
    yield Case((g.array((0, 0)), g.array((0, 2))), {}, lambda a, b: (b, np.zeros((), np.int32)), layouts=PLACES,
               result=(g.dtype, "int32"))
    yield Bad((g.cast(np.zeros((3, 3))), g.array((3, 1))), "_LinAlgError", "torch.linalg.solve_ex: The solver failed",
              {"check_errors": True})


@precise("_linalg_solve_ex", half=LU)
def linalg_solve_parts(g):
    def check(got, args, given):
        near(array_of(got[0]), solved(array_of(args[0]), array_of(args[1])), args[0].dtype)
    for a, b in ((square(g), g.array((3, 1))), (g.array((0, 0)), g.array((0, 1)))):
        yield Case((a, b), {"check_errors": True}, check=check, layouts=PLACES, grad=False)


def triangle_of(a, upper, unit):
    a = np.triu(a) if upper else np.tril(a)
    n = a.shape[-1]
    return a * (1 - np.eye(n)) + np.eye(n) if unit else a


@precise("linalg_solve_triangular", half=TRIANGLE)
def linalg_solve_triangular(g):
    def triangular(a, b, upper=False, left=True, unitriangular=False):
        a = triangle_of(a, upper, unitriangular)
        return solve_of(a, b) if left else turned(solve_of(turned(a), turned(b)))
    for upper in (True, False):
        for left in (True, False):
            kwargs = {"upper": upper, "left": left, "unitriangular": upper != left}
            yield Case((square(g), g.array((3, 2) if left else (2, 3))), kwargs, triangular, layouts=PLACES, **LOOSE,
                       double=True)
    yield Case((square(g, (2, 3, 3)), g.array((3, 2))), {"upper": True}, triangular, layouts=PLACES, **LOOSE)
    yield Case((g.array((0, 0)), g.array((0, 2))), {"upper": True}, lambda a, b, upper: b, layouts=PLACES)
    yield Bad((square(g), g.array((3,))), "RuntimeError",
              "linalg.solve_triangular: The input tensor B must have at least 2 dimensions.", {"upper": True})
    yield Bad((square(g), g.array((3, 2))), "RuntimeError", "XA = B (3x3 and 3x2)", {"left": False, "upper": True})


@precise("triangular_solve", half=TRIANGLE)
def triangular_solve(g):
    def triangular(b, a, upper=True, transpose=False, unitriangular=False):
        t = triangle_of(a, upper, unitriangular)
        return solve_of(turned(t) if transpose else t, b), np.broadcast_to(a, b.shape[:-2] + a.shape[-2:])
    for transpose in (True, False):
        yield Case((g.array((2, 3, 2)), square(g)), {"transpose": transpose, "upper": not transpose}, triangular,
                   layouts=PLACES, **LOOSE)
    yield Case((g.array((0, 2)), g.array((0, 0))), {}, lambda b, a: (b, a), layouts=PLACES)
    yield Bad((g.array((4, 2)), square(g)), "RuntimeError", "Incompatible matrix sizes for triangular_solve")


@precise("linalg_lstsq", half=OTHER)
def linalg_lstsq(g):
    def check(driver, got, args, given):
        a, b = map(array_of, args[:2])
        vector = b.ndim + 1 == a.ndim
        b = b[..., None] if vector else b
        want = np.linalg.pinv(a) @ b
        near(array_of(got[0]), want[..., 0] if vector else want, args[0].dtype)
        if a.shape[-2] > a.shape[-1] and driver in ("gels", "gelsd", "gelss"):
            near(array_of(got[1]), ((a @ want - b) ** 2).sum(-2), args[0].dtype)
        else:
            assert got[1].shape == (0,)
        if driver != "gels":
            assert np.all(got[2].numpy() == min(a.shape[-2:]))
        if driver in ("gelsd", "gelss"):
            near(array_of(got[3]), np.linalg.svd(a, compute_uv=False), args[0].dtype)
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        yield Case((apart(g, (4, 3)), g.array((4, 2))), {"driver": driver}, layouts=PLACES,
                   check=partial(check, driver), grad=driver in ("gels", "gelsy"))
        yield Case((apart(g, (2, 3, 4)), g.array((2, 3, 1))), {"driver": driver}, layouts=PLACES,
                   check=partial(check, driver), grad=driver in ("gels", "gelsy"))
    yield Case((apart(g, (4, 3)), g.array((4,))), {}, check=partial(check, None), layouts=PLACES)
    yield Case((g.array((0, 3)), g.array((0, 2))), {}, layouts=PLACES, grad=False,
               check=lambda got, args, given: near(array_of(got[0]), np.zeros((3, 2)), "float64"))
    yield Bad((g.array((4, 3)), g.array((3, 2))), "RuntimeError", "input.size(-2) should match other.size(-2)")
    yield Bad((g.array((4, 3)), g.array((4, 2))), "RuntimeError",
              "parameter `driver` should be one of (gels, gelsy, gelsd, gelss)", {"driver": "x"})
    yield Bad((g.cast(np.eye(4, 3) * [1, 0, 1]), g.array((4, 2))), "_LinAlgError", "does not have full rank",
              {"driver": "gels"})


@precise("linalg_pinv.atol_rtol_float", half=("RuntimeError", "float"))
@precise("linalg_pinv.atol_rtol_tensor", half=PINV)
def linalg_pinv(g):
    for shape in ((3, 3), (4, 2), (2, 2, 3), (0, 3), (2, 3, 0)):
        yield Case((apart(g, shape),), {}, np.linalg.pinv, layouts=PLACES, **LOOSE, double=shape == (3, 3))
    yield Case((definite(g),), {"hermitian": True}, lambda a, hermitian: np.linalg.pinv(a), layouts=PLACES, **LOOSE,
               grad=False)
    number = float if g.op.endswith("float") else g.cast
    for kwargs in ({"rtol": number(0.5)}, {"atol": number(1.5)}):  # the largest singular value is 3
        yield Case((apart(g, (3, 3)),), kwargs, lambda a, **limit: np.linalg.pinv(a, 0.5), layouts=PLACES, **LOOSE,
                   grad=False)
    if g.op.endswith("tensor"):
        yield Bad((g.array((3,)),), *PINV)


@precise("linalg_pinv", "pinverse", half=PINV)
def pinverse(g):
    for shape in ((3, 3), (4, 2), (0, 3)):
        yield Case((apart(g, shape), 1e-6), {}, np.linalg.pinv, layouts=PLACES, **LOOSE)
    yield Bad((g.array((3,)), 0.1), *PINV)


# ---- Cholesky ----

def cholesky_of(a, upper=False):
    lower = np.linalg.cholesky(a)
    return turned(lower) if upper else lower


@precise("linalg_cholesky", "cholesky", half=CHOLESKY)
def linalg_cholesky(g):
    for upper in (False, True):
        for shape in ((3, 3), (2, 2, 2), (0, 3, 3), (0, 0)):
            yield Case((definite(g, shape),), {"upper": upper}, cholesky_of, layouts=PLACES, **LOOSE, grad=False,
                       note="gradients: test_linalg.py, with symmetric steps")
    words = "linalg.cholesky" if g.op.startswith("linalg") else "cholesky"
    yield Bad((g.cast(-np.eye(2)),), "_LinAlgError",
              f"{words}: The factorization could not be completed because the input is not positive-definite (the "
              "leading minor of order 1 is not positive-definite).")
    yield from not_square(g, words)


@precise("linalg_cholesky_ex", half=CHOLESKY)
def linalg_cholesky_ex(g):
    for shape in ((3, 3), (2, 2, 2), (0, 3, 3), (0, 0)):
        yield Case((definite(g, shape),), {"check_errors": shape == (3, 3)}, layouts=PLACES, **LOOSE, grad=False,
                   reference=lambda a, check_errors: (np.linalg.cholesky(a), np.zeros(a.shape[:-2], np.int32)),
                   result=(g.dtype, "int32"))
    yield Bad((g.cast(-np.eye(2)),), "_LinAlgError", "linalg.cholesky_ex: The factorization could not be completed",
              {"check_errors": True})


@precise("cholesky_solve", half=refuse("cholesky_solve_cpu"))
def cholesky_solve(g):
    def solve(b, a, upper=False):
        t = np.triu(a) if upper else np.tril(a)
        return solve_of(turned(t) @ t if upper else t @ turned(t), b)
    for upper, shape in ((False, (3, 2)), (True, (3, 2)), (False, (2, 3, 2)), (True, (2, 3, 2))):
        yield Case((g.array(shape), square(g)), {"upper": upper}, solve, layouts=PLACES, **LOOSE, grad_args=(0,))
    yield Case((g.array((0, 2)), g.array((0, 0))), {}, lambda b, a: b, layouts=PLACES)
    yield Bad((g.array((4, 2)), square(g)), "RuntimeError", "Incompatible matrix sizes for cholesky_solve: each A "
              "matrix is 3 by 3 but each b matrix is 4 by 2")


@precise("cholesky_inverse", half=refuse("cholesky_inverse_out_cpu"))
def cholesky_inverse(g):
    def inverse(a, upper=False):
        t = np.triu(a) if upper else np.tril(a)
        return np.linalg.inv(turned(t) @ t if upper else t @ turned(t))
    for upper in (False, True):
        for shape in ((3, 3), (2, 2, 2), (0, 3, 3), (0, 0)):
            yield Case((square(g, shape),), {"upper": upper}, inverse, layouts=PLACES, **LOOSE, grad=False,
                       note="gradients: test_linalg.py")
    yield Bad((g.cast(np.zeros((2, 2))),), "_LinAlgError", "cholesky_inverse: The diagonal element 1 is zero")
    yield from not_square(g, "cholesky_inverse")


# ---- orthogonal factors ----

def orthogonal(q, dtype):
    near(turned(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), q.shape[:-2] + (q.shape[-1],) * 2), dtype)


@precise("linalg_qr", "qr", half=GEQRF)
def linalg_qr(g):
    def check(complete, got, args, given):
        q, r = map(array_of, got)
        near(q @ r, array_of(args[0]), args[0].dtype)
        orthogonal(q, args[0].dtype)
        assert np.all(np.triu(r) == r)
        m, n = array_of(args[0]).shape[-2:]
        assert q.shape[-1] == (m if complete else min(m, n))
    whole = {"some": False} if g.op == "qr" else {"mode": "complete"}
    for shape in SHAPES:
        yield Case((apart(g, shape),), {}, check=partial(check, False), layouts=PLACES, double=shape == (3, 3))
        yield Case((apart(g, shape),), whole, check=partial(check, True), layouts=PLACES, grad=shape[-2] <= shape[-1])
    if g.op == "linalg_qr":
        yield Case((apart(g, (4, 3)),), {"mode": "r"}, layouts=PLACES, grad=False, check=lambda got, args, given: near(
            turned(array_of(got[1])) @ array_of(got[1]), turned(array_of(args[0])) @ array_of(args[0]),
            args[0].dtype))
        yield Bad((g.array((2, 2)),), "RuntimeError", "qr received unrecognized mode 'x' but expected one of 'reduced' "
                  "(default), 'r', or 'complete'", {"mode": "x"})
    yield Bad((g.array((2,)),), "RuntimeError", "linalg.qr: The input tensor A must have at least 2 dimensions.")


def reflected(a, tau):
    m, n = a.shape[-2:]
    out = np.broadcast_to(np.eye(m), a.shape[:-2] + (m, m)).copy()
    for i in range(tau.shape[-1]):
        v = np.tril(a[..., i:i + 1], -i - 1)
        v[..., i, :] = 1
        out = out @ (np.eye(m) - tau[..., i, None, None] * (v @ turned(v)))
    return out[..., :n]


@precise("geqrf", half=GEQRF)
def geqrf(g):
    def check(got, args, given):
        a, tau = map(array_of, got)
        m, n = a.shape[-2:]
        q = reflected(np.concatenate([a, np.zeros(a.shape[:-1] + (max(m - n, 0),))], -1)[..., :m], tau)
        near(q @ np.triu(a), array_of(args[0]), args[0].dtype)
    for shape in ((3, 3), (2, 4, 2), (2, 3), (0, 3), (3, 0)):
        yield Case((g.array(shape),), {}, check=check, layouts=PLACES, grad=False)
    yield Bad((g.array((2,)),), "RuntimeError", "torch.geqrf: input must have at least 2 dimensions.")


@precise("linalg_householder_product", "orgqr", half=refuse("orgqr_cpu"))
def linalg_householder_product(g):
    for shape, k in (((3, 3), 3), ((2, 4, 2), 2), ((4, 3), 2), ((3, 0), 0), ((0, 0), 0), ((4, 3), 0)):
        yield Case((g.array(shape, -0.5, 0.5), g.positive(shape[:-2] + (k,), 0.2, 0.7)), {}, reflected, layouts=PLACES,
                   **LOOSE, double=shape == (3, 3))
    yield Bad((g.array((2, 3)), g.array((2,))), "RuntimeError",
              "input.shape[-2] must be greater than or equal to input.shape[-1]")
    yield Bad((g.array((3, 2)), g.array((3,))), "RuntimeError",
              "input.shape[-1] must be greater than or equal to tau.shape[-1]")
    yield Bad((g.array((3, 2)), g.array((2, 2))), "RuntimeError",
              "Expected tau to have one dimension less than input, but got tau.ndim equal to 2")


def symmetric(g, shape):
    """Eigenvalues that are well apart."""
    a = g.array(shape, -1.0, 1.0).astype(np.float64)
    if a.size:
        q, _ = np.linalg.qr(a)
        a = (q * (1.0 + np.arange(shape[-1]))) @ turned(q)
        a = (a + turned(a)) / 2
    return g.cast(a)


@precise("linalg_eigh", "_linalg_eigh", half=EIGH)
def linalg_eigh(g):
    def check(got, args, given):
        a = array_of(args[0])
        values, vectors = map(array_of, got)
        near((vectors * values[..., None, :]) @ turned(vectors), a, args[0].dtype)
        orthogonal(vectors, args[0].dtype)
        assert np.all(np.diff(values, axis=-1) >= 0)
    for shape in ((3, 3), (2, 2, 2), (0, 3, 3), (0, 0)):
        for half in ("L", "U"):
            yield Case((symmetric(g, shape),), {"UPLO": half}, check=check, layouts=PLACES, grad=False,
                       note="gradients: test_linalg.py, with symmetric steps")
    if g.op == "_linalg_eigh":
        yield Case((symmetric(g, (3, 3)), "L", False), {}, grad=False, layouts=PLACES,
                   check=lambda got, args, given: near(array_of(got[0]), np.arange(1.0, 4.0), args[0].dtype))
    yield Bad((symmetric(g, (3, 3)),), "RuntimeError", "Expected UPLO argument to be 'L' or 'U', but got X",
              {"UPLO": "X"})
    yield from not_square(g, "linalg.eigh")


@precise("linalg_eigvalsh", half=EIGH)
def linalg_eigvalsh(g):
    for shape in ((3, 3), (2, 2, 2), (0, 3, 3), (0, 0)):
        yield Case((symmetric(g, shape),), {}, np.linalg.eigvalsh, layouts=PLACES, **LOOSE, grad=False)
    yield from not_square(g, "linalg.eigh")


@precise("linalg_svd", "_linalg_svd", "svd", half=SVD)
def linalg_svd(g):
    def check(got, args, given):
        u, s, v = map(array_of, got)
        v = turned(v) if g.op == "svd" else v
        k = s.shape[-1]
        near((u[..., :k] * s[..., None, :]) @ v[..., :k, :], array_of(args[0]), args[0].dtype)
        orthogonal(u, args[0].dtype)
        orthogonal(turned(v), args[0].dtype)
        assert np.all(np.diff(s, axis=-1) <= 0)
    some = {"some": True} if g.op == "svd" else {"full_matrices": False}
    full = {"some": False} if g.op == "svd" else {"full_matrices": True}
    for shape in SHAPES:
        yield Case((apart(g, shape),), some, check=check, layouts=PLACES, double=shape == (3, 3))
        yield Case((apart(g, shape),), full, check=check, layouts=PLACES, grad=False)
    values = {"compute_uv": False}
    if g.op != "linalg_svd":
        yield Case((apart(g, (3, 2)),), values, grad=g.op == "svd", layouts=PLACES,
                   check=lambda got, args, given: near(array_of(got[1]), np.array([2.0, 1.0]), args[0].dtype))
    yield Bad((g.cast(np.full((2, 2, 2), np.nan)),), "_LinAlgError", "linalg.svd: (Batch element 0): The algorithm "
              "failed to converge because the input matrix contained non-finite values.")
    yield Bad((g.array((2,)),), "RuntimeError", "at least 2 dimensions")


@precise("linalg_svdvals", half=SVD)
def linalg_svdvals(g):
    for shape in SHAPES:
        yield Case((apart(g, shape),), {}, lambda a: np.linalg.svd(a, compute_uv=False), layouts=PLACES, **LOOSE,
                   double=shape == (3, 3))
    yield Bad((g.array((2,)),), "RuntimeError", "linalg.svd: The input tensor A must have at least 2 dimensions.")


# ---- norms ----

ORDERS = (2, -2, 1, -1, np.inf, -np.inf)


def matrix_norm_of(a, ord="fro", dim=(-2, -1), keepdim=False, **kwargs):
    return np.linalg.norm(a, ord, tuple(dim), keepdim)


@precise("linalg_matrix_norm", "linalg_matrix_norm.str_ord", half=LOW)
def linalg_matrix_norm(g):
    for ord in (("nuc", "fro") if g.op.endswith("str_ord") else ORDERS):
        yield Case((apart(g, (3, 4)), ord), {}, matrix_norm_of, layouts=PLACES, **LOOSE)
        yield Case((apart(g, (2, 3, 3)), ord, [2, 0], True), {}, matrix_norm_of, layouts=PLACES, **LOOSE,
                   grad=ord not in (2, -2, "nuc"))
    for shape in ((0, 3, 3), (2, 0, 3)):
        yield Case((g.array(shape), "fro" if g.op.endswith("str_ord") else 2), {}, lambda a, ord: np.zeros(len(a)))
    name = "x" if g.op.endswith("str_ord") else 3
    yield Bad((g.array((3, 3)), name), "RuntimeError", f"linalg.matrix_norm: Order {name} not supported.")
    right = "fro" if g.op.endswith("str_ord") else 1
    yield Bad((g.array((3,)), right), "RuntimeError", "The input tensor A must have at least 2 dimensions.")


@precise("linalg_norm", "linalg_norm.ord_str", half=LOW)
def linalg_norm(g):
    if g.op == "linalg_norm.ord_str":
        for ord in ("nuc", "fro"):
            yield Case((apart(g, (3, 4)), ord), {}, lambda a, ord: np.linalg.norm(a, ord), layouts=PLACES, **LOOSE)
        yield Case((g.array((0, 3)), "fro"), {}, lambda a, ord: np.zeros(()))
        yield Bad((g.array((3,)), "fro"), "RuntimeError", "must have at least 2 dimensions")
        return
    for ord in ORDERS:
        yield Case((apart(g, (3, 4)), ord), {}, lambda a, ord: np.linalg.norm(a, ord), layouts=PLACES, **LOOSE)
        yield Case((g.away((4,)), ord), {}, lambda a, ord: np.linalg.norm(a, ord), layouts=PLACES, **LOOSE)
        yield Case((g.away((3, 4)), ord, [1], True), {}, lambda a, ord, dim, keep: np.linalg.norm(a, ord, 1, True),
                   layouts=PLACES, **LOOSE)
    yield Case((g.away((3, 4)),), {}, np.linalg.norm, layouts=PLACES, **LOOSE)
    yield Case((g.away((2, 3, 2)),), {}, lambda a: np.sqrt((a * a).sum()), layouts=PLACES, **LOOSE)
    yield Case((g.array((0, 3)),), {}, lambda a: np.zeros(()))
    yield Case((g.away(()),), {}, np.abs)
    yield Case((g.away((3, 2)), 2, [0, 1]), {"dtype": "float64"}, lambda a, ord, dim, dtype: np.linalg.norm(a, 2),
               layouts=PLACES, result="float64", **LOOSE)
    yield Bad((g.array((2, 3, 4)), 2), "RuntimeError", "but ord is, the input must be 1D or 2D. Got 3D.")
    yield Bad((g.array((2, 3, 4)), 2, [0, 1, 2]), "RuntimeError",
              "linalg.norm: If dim is specified, it must be of length 1 or 2. Got [0, 1, 2]")


@precise("linalg_cond", half=SVD)
@precise("linalg_cond.p_str", half=LOW)
def linalg_cond(g):
    for p in (("fro", "nuc") if g.op.endswith("p_str") else ORDERS):
        yield Case((square(g), p), {}, lambda a, p: np.linalg.cond(a, p), layouts=PLACES, **LOOSE)
        yield Case((square(g, (2, 3, 3)), p), {}, lambda a, p: np.stack([np.linalg.cond(x, p) for x in a]),
                   layouts=PLACES, **LOOSE)
    first = "fro" if g.op.endswith("p_str") else 1
    yield Case((g.array((2, 0, 0)), first), {}, lambda a, p: np.zeros((2,)))
    yield Bad((g.array((2, 3)), first), "RuntimeError",
              f"linalg.cond(ord={first}): A must be batches of square matrices, but they are 2 by 3 matrices")
    wrong = "x" if g.op.endswith("p_str") else 3
    yield Bad((square(g), wrong), "RuntimeError", f"linalg.cond got an invalid norm type: {wrong}")
    yield Bad((g.array((3,)), first), "RuntimeError", "must have at least 2 dimensions.")


@precise("linalg_matrix_rank", half=SVD)
@precise("linalg_matrix_rank.atol_rtol_float", "linalg_matrix_rank.atol_rtol_tensor", half=OTHER)
def linalg_matrix_rank(g):
    number = (lambda x: x) if not g.op.endswith("tensor") else g.cast
    low = g.cast([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]])
    if g.op == "linalg_matrix_rank":
        yield Case((apart(g, (3, 3)), 1.5), {}, lambda a, tol: np.array(2), layouts=PLACES, grad=False)
        yield Case((g.array((0, 3)), 1.5), {}, lambda a, tol: np.array(0), grad=False)
        return
    for a, kwargs, rank in ((low, {}, np.array(2)), (apart(g, (2, 3, 4)), {}, np.full((2,), 3)),
                            (definite(g), {"hermitian": True}, np.array(3)), (g.array((2, 0, 3)), {}, np.array([0, 0])),
                            (apart(g, (3, 3)), {"atol": number(1.5)}, np.array(2)),
                            (apart(g, (3, 3)), {"rtol": number(0.9)}, np.array(1))):
        yield Case((a,), kwargs, lambda a, rank=rank, **k: rank, layouts=PLACES, grad=False)
    yield Bad((g.array((3,)),), "RuntimeError", "The input tensor input must have at least 2 dimensions.")


# ---- functions of a matrix, chains of products ----

def exponential(a):
    out = np.broadcast_to(np.eye(a.shape[-1]), a.shape).copy()
    term = out
    for k in range(1, 40):
        term = term @ (a / 16) / k
        out = out + term
    for _ in range(4):
        out = out @ out
    return out


@cases("linalg_matrix_exp", "matrix_exp", skip=SKIP)
def linalg_matrix_exp(g):
    for shape in ((3, 3), (2, 2, 2), (1, 1), (0, 3, 3), (0, 0)):
        yield Case((g.array(shape),), {}, exponential, layouts=PLACES, **LOOSE, double=shape == (3, 3))
    yield Case((g.array((2, 2), -9.0, 9.0),), {}, exponential, layouts=PLACES, rtol=1e-3, atol=1e-3, grad=False)
    yield from not_square(g, "linalg.matrix_exp")


@cases("linalg_matrix_power", "matrix_power", skip=SKIP)
def linalg_matrix_power(g):
    for n in (0, 1, 2, 3, 5, -1, -2) if g.dtype in FLOATS else (0, 1, 2):
        yield Case((square(g), n), {}, np.linalg.matrix_power, layouts=PLACES, **LOOSE, grad=n != 0)
        yield Case((square(g, (2, 2, 2)), n), {}, np.linalg.matrix_power, layouts=PLACES, **LOOSE, grad=n != 0)
    yield Case((g.array((0, 2, 2)), 3), {}, lambda a, n: a)
    yield Bad((g.array((2, 3)), 2), "RuntimeError", "linalg.matrix_power: A must be batches of square matrices")


@cases("linalg_multi_dot", skip=SKIP)
def linalg_multi_dot(g):
    for shapes in (((2, 3), (3, 4)), ((2, 3), (3, 4), (4, 1), (1, 5)), ((3,), (3, 4), (4,)), ((0, 3), (3, 4))):
        yield Case(([g.array(shape) for shape in shapes],), {}, np.linalg.multi_dot, layouts=PLACES, **LOOSE)
    yield Bad(([g.array((2, 3))],), "RuntimeError", "multi_dot(): expected at least 2 tensors but got 1")
    yield Bad(([g.array((2, 3)), g.array((2, 3))],), "RuntimeError",
              "multi_dot(): tensors 0 and 1 with shapes [2, 3] and [2, 3] cannot be multiplied")
    yield Bad(([g.array((2, 3)), g.array((1, 3, 3)), g.array((3,))],), "RuntimeError",
              "multi_dot(): tensor 1 must be 2D but got 3D")


@cases("chain_matmul", skip=SKIP)
def chain_matmul(g):
    yield Case(([g.array((2, 3)), g.array((3, 4)), g.array((4, 1))],), {}, lambda t: t[0] @ t[1] @ t[2],
               layouts=PLACES, **LOOSE)
    yield Case(([g.array((2, 3))],), {}, lambda t: t[0], layouts=PLACES)
    yield Case(([g.array((0, 3)), g.array((3, 4))],), {}, lambda t: t[0] @ t[1])
    yield Bad(([g.array((2,)), g.array((2, 3))],), "RuntimeError", "Tensor dimension is 1, expected 2 instead.")


@cases("linalg_matmul", skip=SKIP)
def linalg_matmul(g):
    for first, second in (((2, 3), (3, 4)), ((2, 2, 3), (3,)), ((0, 3), (3, 4))):
        yield Case((g.array(first), g.array(second)), {}, np.matmul)
    yield Bad((g.array((2, 3)), g.array((2, 3))), "RuntimeError", "cannot be multiplied (2x3 and 2x3)")


@cases("linalg_vecdot", skip={"0-d": "takes vectors"})
def linalg_vecdot(g):
    yield Case((g.array((3,)), g.array((3,))), {}, np.dot, **LOOSE)
    yield Case((g.array((2, 3)), g.array((3,))), {}, lambda x, y: (x * y).sum(-1), **LOOSE)
    yield Case((g.array((2, 3)), g.array((2, 3))), {"dim": 0}, lambda x, y, dim: (x * y).sum(0), **LOOSE)
    yield Case((g.array((2, 0)), g.array((2, 0))), {}, lambda x, y: (x * y).sum(-1))
    yield Bad((g.array((2, 3)), g.array((2, 2))), "RuntimeError", "must match the size of tensor b (2)")


@cases("linalg_cross", "cross", skip={"0-d": "takes vectors of 3"})
def linalg_cross(g):
    for first, second in (((3,), (3,)), ((2, 3), (1, 3)), ((0, 3), (0, 3))):
        yield Case((g.array(first), g.array(second)), {}, np.cross, double=first == (3,))
    yield Case((g.array((3, 2)), g.array((3, 2))), {"dim": 0}, lambda a, b, dim: np.cross(a, b, axis=0))
    if g.op == "cross":
        yield Case((g.array((2, 3, 4)), g.array((2, 3, 4))), {}, lambda a, b: np.cross(a, b, axis=1))
        yield Bad((g.array((2, 2)), g.array((2, 2))), "RuntimeError", "no dimension of size 3 in input")
        return
    yield Bad((g.array((2,)), g.array((2,))), "RuntimeError", "inputs dimension -1 must have length 3. Got 2 and 2")
    yield Bad((g.array((2, 3)), g.array((3,))), "RuntimeError", "inputs must have the same number of dimensions.")


@cases("linalg_diagonal", skip=NO_0D)
def linalg_diagonal(g):
    for shape in ((2, 3, 4), (2, 3), (0, 3)):
        yield Case((g.array(shape),), {"offset": 1}, lambda a, offset: np.diagonal(a, 1, -2, -1))
    yield Bad((g.array((2,)),), "IndexError", "Dimension out of range")


@precise("linalg_vander", dtypes=("int64", "float32", "float64"), skip={"0-d": "needs two elements"},
         half=("RuntimeError", "linalg.vander supports floating point, complex, and integer tensors, but got Half"))
def linalg_vander(g):
    powers = lambda x, N=None: x[..., None] ** np.arange(N if N is not None else x.shape[-1])
    for shape, kwargs in (((3,), {}), ((2, 2), {"N": 4}), ((0, 3), {})):
        yield Case((g.away(shape),), kwargs, powers, **LOOSE)
    yield Bad((g.array((3,)),), "RuntimeError", "N must be greater than 1.", {"N": 1})


@precise("linalg_tensorinv", half=LOW)
def linalg_tensorinv(g):
    def inverse(a, ind):
        n = int(np.prod(a.shape[:ind]))
        return np.linalg.inv(a.reshape(n, n)).reshape(a.shape[ind:] + a.shape[:ind])
    yield Case((square(g, (4, 4)).reshape(2, 2, 4), 2), {}, inverse, layouts=PLACES, **LOOSE)
    yield Case((square(g, (4, 4)).reshape(4, 2, 2), 1), {}, inverse, layouts=PLACES, **LOOSE)
    yield Case((g.array((0, 0)), 1), {}, inverse)
    yield Bad((g.array((2, 3)), 1), "RuntimeError", "prod(self.shape[ind:]) == prod(self.shape[:ind]), but got 3 != 2")
    yield Bad((g.array((2, 2)), 0), "RuntimeError", "Expected a strictly positive integer for 'ind', but got 0")


@precise("linalg_tensorsolve", half=LU)
def linalg_tensorsolve(g):
    def solve(a, b, dims=None):
        return np.linalg.tensorsolve(a, b, dims)
    yield Case((square(g, (4, 4)).reshape(2, 2, 4), g.array((2, 2))), {}, solve, layouts=PLACES, **LOOSE)
    yield Case((np.swapaxes(square(g, (4, 4)).reshape(2, 2, 4), 1, 2).copy(), g.array((2, 2))), {"dims": [1]},
               lambda a, b, dims: np.linalg.solve(np.swapaxes(a, 1, 2).reshape(4, 4), b.reshape(4)), layouts=PLACES,
               **LOOSE)
    yield Case((g.array((0, 0)), g.array((0,))), {}, lambda a, b: b)
    yield Bad((g.array((2, 2, 3)), g.array((2, 2))), "RuntimeError", "but got 3 != 4")
