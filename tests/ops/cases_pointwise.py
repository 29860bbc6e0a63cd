# SPDX-License-Identifier: Apache-2.0
"""Cases of ops_pointwise.def. References are NumPy; what NumPy lacks is written out here."""
import math

import numpy as np
from opcases import ALL, FLOATS, NUMBERS, TITLES, Bad, Case, Fixed, cases

NAN, INF = float("nan"), float("inf")
CORNERS = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e30, -1e30, 1e-30, 3.0, 100.0]
erf = np.vectorize(math.erf, otypes=[np.float64])
erfc = np.vectorize(math.erfc, otypes=[np.float64])


def corners(g):
    """Numbers at which functions do unusual things."""
    return g.cast(np.asarray(CORNERS))


def name(g):
    """The row without the underscore of its in-place form."""
    return g.op.rstrip("_")


def floating(values):
    """Integers as the float32 that ops convert them to first."""
    values = np.asarray(values)
    return values if values.dtype.kind == "f" else values.astype(np.float32).astype(np.float64)


# ---- two operands ----


def with_alpha(sign):
    def reference(a, b, alpha=1):
        if np.asarray(a).dtype == bool and np.asarray(b).dtype == bool:
            return np.logical_or(a, np.logical_and(b, alpha != 0))
        if a.dtype != b.dtype:
            return a + sign * alpha * b
        term = np.asarray(abs(alpha)).astype(a.dtype) * b
        return (a + term if sign * alpha > 0 else a - term).astype(a.dtype)

    return reference


@cases("add", dtypes=ALL)
def add(g):
    reference = with_alpha(1)
    yield Case((g.array((3, 4)), g.array((3, 4))), {}, reference, double=True)
    yield Case((g.array((3, 4)), g.array((4,))), {}, reference, double=True)
    yield Case((g.array((3, 1)), g.array((1, 4))), {"alpha": 2 if not g.is_bool else True},
               reference)
    yield Case((g.array((2, 3)), g.array(())), {}, reference)
    yield Case((g.array((2, 3)), True if g.is_bool else 2), {}, lambda a, b: a + np.asarray(b, a.dtype))
    if g.floating:
        yield Case((g.array((3,)), g.array((2, 3))), {"alpha": -0.5}, reference)
        yield Case((corners(g), 1.0), {}, lambda a, b: a + b, grad=False)
        yield Case((g.array((3,)), g.other("int64", (3,))), {}, lambda a, b: a + b, result=g.dtype)
        yield Case((g.array((3,)), Fixed(np.float64(2.0).reshape(()))), {}, lambda a, b: a + b,
                   result=g.dtype, grad=False)
    else:
        yield Case((g.array((3,)), 1.5), {}, lambda a, b: a + b, result="float32")
        yield Case((g.array((3,)), g.other("float64", (3,))), {}, lambda a, b: a + b,
                   result="float64", grad=False)
        yield Bad((g.array((3,)), g.array((3,))), "RuntimeError",
                  "argument alpha must not be a floating point number", {"alpha": 1.5})
    if g.integer:
        top = np.iinfo(g.dtype).max
        yield Case((np.full((3,), top, g.dtype), g.positive((3,))), {}, lambda a, b: a + b,
                   note="wraps around")
        yield Bad((g.array((3,)), g.array((3,))), "RuntimeError",
                  "Boolean alpha only supported for Boolean results", {"alpha": True})
    yield Bad((g.array((2,)), g.array((3,))), "RuntimeError",
              "The size of tensor a (2) must match the size of tensor b (3) at non-singleton "
              "dimension 0")


@cases("sub", dtypes=ALL)
def sub(g):
    if g.is_bool:
        yield Bad((g.array((2,)), g.array((2,))), "RuntimeError", "with two bool tensors")
        yield Bad((g.array((2,)), 1), "RuntimeError", "with a bool tensor is not supported")
        return
    reference = with_alpha(-1)
    yield Case((g.array((3, 4)), g.array((3, 4))), {}, reference, double=True)
    yield Case((g.array((3, 4)), g.array((3, 1))), {"alpha": 3}, reference)
    yield Case((g.array((3, 4)), 2), {}, lambda a, b: a - np.asarray(b, a.dtype))
    yield Bad((g.array((2,)), g.mask((2,))), "RuntimeError", "with a bool tensor is not supported")


@cases("rsub", dtypes=ALL)
def rsub(g):
    if g.is_bool:
        yield Bad((g.array((2,)), g.array((2,))), "RuntimeError", "with two bool tensors")
        return
    yield Case((g.array((3, 4)), g.array((4,))), {"alpha": 2},
               lambda a, b, alpha: (b - np.asarray(alpha, a.dtype) * a).astype(a.dtype),
               double=True)
    yield Case((g.array((3, 4)), 2), {}, lambda a, b: np.asarray(b, a.dtype) - a)


@cases("mul", dtypes=ALL)
def mul(g):
    yield Case((g.array((3, 4)), g.array((3, 4))), {}, lambda a, b: a * b, double=True)
    yield Case((g.array((3, 1)), g.array((2, 1, 4))), {}, lambda a, b: a * b, double=True)
    yield Case((g.array((2, 3)), True if g.is_bool else 3), {}, lambda a, b: a * np.asarray(b, a.dtype))
    if g.floating:
        yield Case((corners(g), corners(g)[::-1].copy()), {}, lambda a, b: a * b, grad=False)
        yield Case((g.array((3,)), g.other("int32", (3,))), {}, lambda a, b: a * b, result=g.dtype)
    else:
        yield Case((g.array((3,)), 0.5), {}, lambda a, b: a * b, result="float32")


@cases("div", dtypes=ALL)
def div(g):
    yield Case((g.array((3, 4)), g.positive((3, 4))), {}, lambda a, b: floating(a) / floating(b),
               double=True)
    yield Case((g.array((3, 4)), g.positive((4,))), {}, lambda a, b: floating(a) / floating(b))
    yield Case((g.array((3, 4)), 4), {}, lambda a, b: floating(a) / b)
    if g.floating:
        yield Case((corners(g), 0.0), {}, lambda a, b: a / b, grad=False)
    if g.is_bool:
        yield Bad((g.array((2,)), g.array((2,))), "NotImplementedError",
                  "\"div_floor_cpu\" not implemented for 'Bool'", {"rounding_mode": "floor"})
        return
    away = g.array((3, 4)) if g.integer else g.cast(g.rng.integers(-9, 9, (3, 4)) + 0.5)
    for mode, rounded in (("floor", np.floor), ("trunc", np.trunc)):
        yield Case((away, g.cast(np.full((4,), 2))), {"rounding_mode": mode},
                   lambda a, b, rounding_mode, r=rounded: r(a / b).astype(a.dtype))
    if g.integer:
        yield Bad((g.array((2,)), 0), "RuntimeError", "ZeroDivisionError", {"rounding_mode": "floor"})
        yield Bad((g.array((2,)), 0), "RuntimeError", "ZeroDivisionError", {"rounding_mode": "trunc"})
    yield Bad((g.array((2,)), 2), "RuntimeError", "to be one of None, 'trunc', or 'floor' but "
              "found 'up'", {"rounding_mode": "up"})


@cases("floor_divide", "remainder", "fmod", dtypes=ALL)
def modulo(g):
    reference = {"floor_divide": np.floor_divide, "remainder": np.mod, "fmod": np.fmod}[name(g)]
    kernel = {"floor_divide": "div_floor_cpu", "remainder": "remainder_cpu", "fmod": "fmod_cpu"}[name(g)]
    if g.is_bool:
        yield Bad((g.array((2,)), g.array((2,))), "NotImplementedError",
                  f"\"{kernel}\" not implemented for 'Bool'")
        return
    # Quotients keep away from whole numbers, where the derivative by the divisor jumps.
    a = g.array((3, 4)) if g.integer else g.cast(g.rng.integers(-9, 9, (3, 4)) + 0.5)
    b = g.cast([2, 3, 4, 5] if g.dtype == "uint8" else [2, -3, 4, -5])
    yield Case((a, b), {}, reference, grad=None if name(g) != "floor_divide" else False)
    yield Case((a, 2), {}, lambda x, y: reference(x, np.asarray(y, x.dtype)),
               grad=None if name(g) != "floor_divide" else False)
    if g.integer:
        yield Case((a, 2.5), {}, lambda x, y: reference(floating(x), y), result="float32")
        yield Bad((a, g.cast([1, 0, 1, 1])), "RuntimeError", "ZeroDivisionError")
        if g.dtype != "uint8":
            low = np.iinfo(g.dtype).min
            yield Case((np.full((2,), low, g.dtype), g.cast([1, -1])), {},
                       lambda x, y: np.array([low, low]).astype(x.dtype) if name(g) == "floor_divide"
                       else np.zeros(2, x.dtype), note="the one quotient that overflows",
                       layouts=("contiguous", "sliced"))
    else:
        with np.errstate(all="ignore"):
            zero = reference(np.float64(1), np.float64(0))
        yield Case((g.cast([1.0]), g.cast([0.0])), {}, lambda x, y: np.array([zero]), grad=False)


@cases("pow", dtypes=ALL)
def power(g):
    if g.is_bool:
        yield Bad((g.array((2,)), g.array((2,))), "NotImplementedError",
                  "\"pow\" not implemented for 'Bool'")
        yield Case((g.array((3,)), 2), {}, lambda a, e: a.astype(np.int64) ** e)
        return
    if g.integer:
        yield Case((g.array((3, 4)), g.array((4,), 0, 5)), {}, lambda a, e: a ** e)
        yield Case((g.array((3, 4)), 3), {}, lambda a, e: a ** np.asarray(e, a.dtype))
        yield Case((2, g.array((3,), 0, 6)), {}, lambda b, e: np.asarray(b, e.dtype) ** e)
        yield Case((g.positive((3,)), 0.5), {}, lambda a, e: floating(a) ** e, result="float32")
        yield Bad((g.array((3,)), -1), "RuntimeError",
                  "Integers to negative integer powers are not allowed.")
        return
    yield Case((g.positive((3, 4)), g.array((4,))), {}, np.power, double=True)
    for exponent in (0, 1, 2, 3, -1, 0.5, -2.5):
        yield Case((g.positive((5,)), exponent), {}, np.power, double=exponent not in (0, 1))
    yield Case((g.away((5,)), 3), {}, np.power, double=True)
    yield Case((2.5, g.array((2, 3))), {}, np.power, double=True)
    yield Case((corners(g), 2), {}, np.power, grad=False)
    yield Case((corners(g), g.cast(np.full(len(CORNERS), -1.5))), {}, np.power, grad=False)


@cases("atan2", dtypes=ALL)
def atan2(g):
    yield Case((g.away((3, 4)), g.away((4,))), {}, lambda a, b: np.arctan2(floating(a), floating(b)),
               double=True)
    if g.floating:
        signs = g.cast([0.0, -0.0, 0.0, -0.0, INF, -INF, NAN])
        yield Case((signs, g.cast([0.0, 0.0, -0.0, -0.0, INF, -INF, 1.0])), {}, np.arctan2, grad=False)


TWO_REALS = {"hypot": np.hypot, "copysign": np.copysign, "logaddexp": np.logaddexp}


@cases(*TWO_REALS, dtypes=ALL)
def two_reals(g):
    """Integers are computed in floating point, and nothing overflows on the way."""
    reference = TWO_REALS[name(g)]
    takes = g.floating or name(g) == "copysign"
    if takes:
        yield Case((g.away((3, 4)), g.away((4,))), {}, lambda a, b: reference(floating(a), floating(b)),
                   double=name(g) != "copysign")
    else:
        title = TITLES[g.dtype]
        yield Bad((g.array((3, 4)), g.array((4,))), "NotImplementedError",
                  f"\"{name(g)}_cpu\" not implemented for '{title}'")
    # In floating point, not in the integer's type: 200 * 200 is no byte.
    first = g.array((3,), 0, 100 if g.dtype == "int8" else 200) if g.integer else g.positive((3,))
    yield Case((first, g.other("float64", (3,))), {},
               lambda a, b: reference(a.astype(np.float64), b), result="float64", grad=False)
    if g.floating:
        values = corners(g)
        pairs = np.asarray(np.meshgrid(values, values)).reshape(2, -1).astype(g.dtype)
        yield Case((pairs[0].copy(), pairs[1].copy()), {}, reference, grad=False)
    if g.integer and takes:
        ends = np.array([np.iinfo(g.dtype).min, np.iinfo(g.dtype).max, 0, 1], g.dtype)
        yield Case((ends, ends[::-1].copy()), {}, lambda a, b: reference(floating(a), floating(b)))
    if name(g) == "copysign":
        yield Case((g.away((3, 4)), -2.0), {}, lambda a, b: np.copysign(floating(a), b))


@cases("maximum", "minimum", dtypes=ALL)
def extremes(g):
    reference = np.maximum if name(g) == "maximum" else np.minimum
    a = g.distinct((3, 4))
    yield Case((a, a[::-1].copy() + (g.cast(0.0625) if g.floating else g.cast(0))), {}, reference,
               double=g.floating)
    yield Case((g.distinct((3, 4)), g.cast(0.0625 if g.floating else 1)), {}, reference)
    if g.floating:
        yield Case((corners(g), corners(g)[::-1].copy()), {}, reference, grad=False)


# ---- comparisons and logic ----

COMPARISONS = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
               "gt": np.greater, "ge": np.greater_equal}


@cases(*COMPARISONS, dtypes=ALL)
def compare(g):
    reference = COMPARISONS[name(g)]
    yield Case((g.array((3, 4), *((0, 2) if g.integer else ())), g.array((3, 4),
               *((0, 2) if g.integer else ()))), {}, reference)
    yield Case((g.array((3, 4)), g.array((4,))), {}, reference)
    yield Case((g.array((3, 4)), 1), {}, reference)
    yield Case((g.array((3, 4)), 0.5), {}, reference)
    yield Case((g.array((3,)), g.other("float64", (3,))), {}, reference)
    if g.floating:
        yield Case((corners(g), corners(g)[::-1].copy()), {}, reference)
        yield Case((corners(g), NAN), {}, reference)
    yield Bad((g.array((2,)), g.array((3,))), "RuntimeError", "must match the size of tensor b (3)")


@cases("logical_and", "logical_or", "logical_xor", dtypes=ALL)
def logical(g):
    reference = getattr(np, name(g))
    low = (0, 1) if g.integer else ()
    yield Case((g.array((3, 4), *low), g.array((4,), *low)), {}, reference)
    yield Case((g.array((3, 4), *low), g.other("int64", (3, 4), 0, 1)), {}, reference)
    if g.floating:
        yield Case((corners(g), corners(g)[::-1].copy()), {}, reference)


@cases("bitwise_and", "bitwise_or", "bitwise_xor", dtypes=ALL)
def bitwise(g):
    reference = getattr(np, name(g))
    if g.floating:
        yield Bad((g.array((2,)), g.array((2,))), "NotImplementedError",
                  f"\"{name(g)}_cpu\" not implemented for '{'Float' if g.dtype == 'float32' else 'Double'}'")
        return
    yield Case((g.array((3, 4)), g.array((4,))), {}, reference)
    yield Case((g.array((3, 4)), True if g.is_bool else 6), {},
               lambda a, b: reference(a, np.asarray(b, a.dtype)))
    yield Case((g.mask((3,)), g.array((3,))), {}, reference)


SHIFTS = "bitwise_left_shift", "bitwise_right_shift", "__lshift__", "__rshift__", "__ilshift__", "__irshift__"


@cases(*SHIFTS, dtypes=ALL)
def shifts(g):
    left = "_l" in g.op or "_il" in g.op
    if not g.integer:
        yield Bad((g.array((2,)), g.array((2,))), "NotImplementedError",
                  f"\"{'l' if left else 'r'}shift_cpu\" not implemented for")
        return
    reference = np.left_shift if left else np.right_shift
    yield Case((g.array((3, 4)), g.array((4,), 0, 5)), {}, reference)
    yield Case((g.array((3, 4)), 2), {}, lambda a, b: reference(a, np.asarray(b, a.dtype)))
    bits = np.iinfo(g.dtype).bits
    too_far = g.cast([bits, bits + 1, 100] if g.dtype == "uint8" else [bits, -1, 100])
    values = g.cast([5, 200, 255] if g.dtype == "uint8" else [5, -8, -1])
    yield Case((values, too_far), {}, lambda a, b: np.zeros_like(a) if left else np.where(a < 0, -1, 0).astype(a.dtype),
               note="by all bits or less than 0")


@cases("gcd", "lcm", dtypes=ALL)
def divisors(g):
    if not g.integer:
        yield Bad((g.array((2,)), g.array((2,))), "NotImplementedError", f"\"{name(g)}_cpu\" not implemented for")
        return
    reference = getattr(np, name(g))
    yield Case((g.array((3, 4), 0, 9), g.array((4,), 0, 9)), {}, reference)
    if g.dtype != "uint8":
        yield Case((g.cast([-4, 0, 12, 0, -7]), g.cast([6, -3, -18, 0, 7])), {}, reference)


@cases("fmax", "fmin", dtypes=ALL)
def extreme_but_nan(g):
    reference = getattr(np, name(g))
    yield Case((g.array((3, 4)), g.array((4,))), {}, reference)
    yield Case((g.array((3, 1)), g.array((1, 4))), {}, reference)
    if g.floating:
        a, b = [NAN, 1.0, NAN, INF, -INF], [2.0, NAN, NAN, 1.0, 1.0]
        yield Case((g.cast(a), g.cast(b)), {}, reference, grad=False)


@cases("heaviside", dtypes=ALL)
def heaviside(g):
    yield Case((g.array((3, 4), *((-1, 1) if g.integer and g.dtype != "uint8" else (0, 1) if g.integer else ())),
                g.array((4,))), {}, lambda a, b: np.where(a == 0, b, (a > 0).astype(b.dtype)), grad=False)
    if g.floating:
        yield Case((g.cast([NAN, 0.0, -0.0, -1.0, 2.0]), g.cast([5.0, 6.0, 7.0, 8.0, 9.0])), {},
                   lambda a, b: np.where(a == 0, b, (a > 0).astype(b.dtype)), grad=False)
        yield Bad((g.array((2,)), g.other("int64", (2,))), "RuntimeError", "tensors with different dtypes")


@cases("nextafter", "logaddexp2", dtypes=ALL)
def neighbours(g):
    if not g.floating:
        yield Bad((g.array((2,)), g.array((2,))), "NotImplementedError", f"\"{name(g)}_cpu\" not implemented for")
        return
    reference = getattr(np, name(g))
    smooth = name(g) == "logaddexp2"
    yield Case((g.array((3, 4)), g.array((4,))), {}, reference, grad=smooth, double=smooth)
    corner = g.cast([1.0, -1.0, 0.0, INF, NAN, 1.0])
    yield Case((corner, g.cast([2.0, -3.0, 1.0, INF, 1.0, NAN])), {}, reference, grad=False)


@cases("ldexp")
def ldexp(g):
    for shape, other in (((3, 4), (4,)), ((0, 3), (3,)), ((), ())):
        yield Case((g.array(shape), g.array(other)), {}, lambda a, b: a * np.exp2(b))
    yield Case((g.array((3,)), g.other("int64", (3,), -3, 9)), {}, lambda a, b: a * np.exp2(b.astype(a.dtype)))


@cases("float_power")
def float_power(g):
    def reference(a, b):
        return np.float_power(a, b)

    if g.op.endswith("_") and g.dtype != "float64":
        yield Bad((g.array((2,)), 2), "RuntimeError", "but the operation's result requires dtype Double")
        return
    for shape, other in (((3, 4), (4,)), ((0, 3), (3,)), ((), ())):
        yield Case((g.positive(shape), g.array(other)), {}, reference, result="float64")
    yield Case((g.positive((3, 4)), 2), {}, reference, result="float64")
    if not g.op.endswith("_"):
        yield Case((2, g.array((3,))), {}, reference, result="float64")


@cases("frac", dtypes=ALL)
def frac(g):
    if not g.floating:
        yield Bad((g.array((2,)),), "NotImplementedError", "\"frac_cpu\" not implemented for")
        return
    yield Case((g.cast(g.rng.integers(-9, 9, (3, 4)) + 0.25),), {}, lambda a: a - np.trunc(a))


@cases("sinc", dtypes=ALL, skip={"extremes": {kind: "pi x is rounded, which of large x leaves no angle"
                                               for kind in ("large", "mean")}})
def sinc(g):
    yield Case((g.away((3, 4)),), {}, lambda a: np.sinc(floating(a)), double=True, atol=1e-6 if g.integer else None)
    if g.floating:
        yield Case((g.cast([0.0, -0.0, NAN, INF, -INF, 0.5]),), {}, np.sinc, grad=False)


@cases("sgn", dtypes=ALL)
def sgn(g):
    yield Case((g.away((3, 4)),), {}, (lambda a: a) if g.is_bool else np.sign)


@cases("signbit", dtypes=ALL)
def signbit(g):
    yield Case((g.array((3, 4)),), {}, (lambda a: a < 0) if not g.floating else np.signbit)
    if g.floating:
        yield Case((corners(g),), {}, np.signbit)


@cases("logical_not", "isnan", "isinf", "isfinite", dtypes=ALL)
def classify(g):
    reference = getattr(np, name(g))
    yield Case((g.array((3, 4)),), {}, reference)
    if g.floating:
        yield Case((corners(g),), {}, reference)


@cases("bitwise_not", dtypes=ALL)
def bitwise_not(g):
    if g.floating:
        yield Bad((g.array((2,)),), "NotImplementedError", "\"bitwise_not_cpu\" not implemented")
        return
    yield Case((g.array((3, 4)),), {}, np.invert)


# ---- one operand ----


@cases("abs", "neg", "sign", dtypes=ALL)
def signs(g):
    reference = {"abs": np.abs, "neg": np.negative, "sign": np.sign}[name(g)]
    if g.is_bool and name(g) != "sign":
        kind = "NotImplementedError" if name(g) == "abs" else "RuntimeError"
        words = "\"abs_cpu\" not implemented for 'Bool'" if name(g) == "abs" else "on a bool tensor"
        yield Bad((g.array((2,)),), kind, words)
        return
    yield Case((g.away((3, 4)),), {}, (lambda a: a) if g.is_bool else reference, double=name(g) != "sign")
    if g.floating:
        finite = g.cast([INF, -INF, 0.0, -0.0, 2.5])
        yield Case((finite,), {}, reference, grad=False)
    elif g.integer and g.dtype != "uint8":
        yield Case((np.array([np.iinfo(g.dtype).min], g.dtype),), {}, reference)


@cases("square", dtypes=ALL)
def square(g):
    yield Case((g.array((3, 4)),), {}, lambda a: a * a if not g.is_bool else a.astype(np.int64),
               double=True)
    yield Case((g.array(()),), {}, lambda a: a * a if not g.is_bool else a.astype(np.int64))
    yield Case((g.array((0, 2)),), {}, lambda a: a * a if not g.is_bool else a.astype(np.int64))


# name: (reference, where it is tried, whether its own derivative is smooth there)
ANYWHERE, ABOVE_0, ABOVE_MINUS_1, NOT_0, INSIDE_1, ABOVE_1 = range(6)
FUNCTIONS = {
    "reciprocal": (np.reciprocal, NOT_0), "sqrt": (np.sqrt, ABOVE_0),
    "rsqrt": (lambda a: 1 / np.sqrt(a), ABOVE_0), "exp": (np.exp, ANYWHERE),
    "expm1": (np.expm1, ANYWHERE), "log": (np.log, ABOVE_0), "log1p": (np.log1p, ABOVE_MINUS_1),
    "log2": (np.log2, ABOVE_0), "log10": (np.log10, ABOVE_0), "sin": (np.sin, ANYWHERE),
    "cos": (np.cos, ANYWHERE), "tan": (np.tan, ABOVE_MINUS_1), "tanh": (np.tanh, ANYWHERE),
    "sigmoid": (lambda a: 1 / (1 + np.exp(-a)), ANYWHERE), "erf": (erf, ANYWHERE),
    "asin": (np.arcsin, INSIDE_1), "acos": (np.arccos, INSIDE_1), "atan": (np.arctan, ANYWHERE),
    "asinh": (np.arcsinh, ANYWHERE), "acosh": (np.arccosh, ABOVE_1), "atanh": (np.arctanh, INSIDE_1),
    "exp2": (np.exp2, ANYWHERE),
    "erfc": (erfc, ANYWHERE), "sinh": (np.sinh, ANYWHERE), "cosh": (np.cosh, ANYWHERE),
}


@cases(*FUNCTIONS, dtypes=ALL)
def functions(g):
    function, domain = FUNCTIONS[name(g)]
    if domain == ABOVE_0:
        x = g.positive((3, 4))
    elif domain == ABOVE_MINUS_1:
        x = g.array((3, 4), *((-0.7, 1.3) if g.floating else (0, 9)))
    elif domain == INSIDE_1:
        x = g.array((3, 4), *((-0.8, 0.8) if g.floating else (0, 0)))
    elif domain == ABOVE_1:
        x = g.array((3, 4), *((1.2, 9.0) if g.floating else (1, 9)))
        x = np.ones_like(x) if g.is_bool else x
    else:
        x = g.away((3, 4)) if domain == NOT_0 else g.array((3, 4))
    yield Case((x,), {}, lambda a: function(floating(a)), double=True, rtol=1e-4 if not g.floating
               and name(g) == "tan" else None)
    if g.floating:
        values = corners(g)
        if name(g) in ("sin", "cos", "tan"):
            values = values[np.abs(np.asarray(values, np.float64)) < 1000]  # 1e30 rad means little
        if name(g) in ("erf", "erfc"):
            values = values[np.isfinite(values)]
        yield Case((values,), {}, function, grad=False)
        yield Case((g.cast(g.rng.uniform(-20, 20, (50,))),), {}, function, grad=False,
                   rtol=1e-3 if name(g) == "tan" and g.dtype == "float32" else None)
        if name(g) == "erfc":
            tail = np.linspace(0.5, 26 if g.dtype == "float64" else 9, 60)
            yield Case((g.cast(tail),), {}, function, grad=False, atol=1e-300 if g.dtype == "float64" else 1e-38,
                       rtol=1e-13 if g.dtype == "float64" else 2e-6)
        if name(g) in ("sinh", "cosh"):  # e^x is infinite there, half of it is not
            yield Case((g.cast([89.0, -89.0] if g.dtype == "float32" else [710.0, -710.0]),), {}, function, grad=False)


def gelu_of(a, approximate="none"):
    if approximate == "tanh":
        return 0.5 * a * (1 + np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a ** 3)))
    return 0.5 * a * (1 + erf(a / math.sqrt(2)))


def softplus_of(a, beta=1, threshold=20):
    return np.where(a * beta > threshold, a, np.log1p(np.exp(np.minimum(a * beta, threshold))) / beta)


ACTIVATIONS = {
    "log_sigmoid": (lambda a: -np.logaddexp(0, -a), "log_sigmoid_cpu", ((),)),
    "silu": (lambda a: a / (1 + np.exp(-a)), "silu_cpu", ((),)),
    "leaky_relu": (lambda a, s=0.01: np.where(a > 0, a, a * s), "leaky_relu_cpu", ((), (0.3,))),
    "elu": (lambda a, s=1: np.where(a > 0, a, s * np.expm1(a)), "elu_cpu", ((), (1.7,))),
    "softplus": (softplus_of, "softplus_cpu", ((), (2.0, 1.5))),
}


@cases(*ACTIVATIONS, dtypes=NUMBERS)
def activations(g):
    reference, kernel, parameters = ACTIVATIONS[name(g)]
    if g.integer:
        yield Bad((g.array((2,)),), "NotImplementedError", f"\"{kernel}\" not implemented for")
        return
    for more in parameters:
        for shape in ((3, 4), (0, 3), ()):
            yield Case((g.away(shape), *more), {}, reference, double=name(g) not in ("leaky_relu", "elu"))
    yield Case((g.cast([INF, -30.0, 30.0, 0.0]), *parameters[-1]), {}, reference, grad=False)


@cases("log_sigmoid_forward")
def log_sigmoid_forward(g):
    for shape in ((3, 4), (0, 3), ()):
        yield Case((g.array(shape),), {}, lambda a: (-np.logaddexp(0, -a), np.exp(-np.abs(a))),
                   grad=False)  # log_sigmoid's cases have it


@cases("gelu", dtypes=NUMBERS)
def gelu(g):
    if g.integer:
        yield Bad((g.array((2,)),), "NotImplementedError", "not implemented for")
        return
    yield Case((g.array((3, 4)),), {}, gelu_of, double=True)
    yield Case((g.array((3, 4)),), {"approximate": "tanh"}, gelu_of, double=True)
    yield Bad((g.array((2,)),), "RuntimeError", "must be either none or tanh", {"approximate": "no"})


@cases("relu", dtypes=ALL)
def relu(g):
    if g.is_bool:
        yield Bad((g.array((2,)),), "RuntimeError", "Boolean inputs not supported for relu")
        return
    yield Case((g.away((3, 4)),), {}, lambda a: np.maximum(a, np.zeros((), a.dtype)))
    if g.floating:
        yield Case((corners(g),), {}, lambda a: np.maximum(a, 0), grad=False)


@cases("hardtanh", dtypes=NUMBERS)
def hardtanh(g):
    if g.dtype == "uint8":
        yield Bad((g.array((2,)),), "RuntimeError", "on an unsigned type with negative limits")
        yield Case((g.array((3, 4)), 2, 5), {}, lambda a, low, high: np.clip(a, low, high).astype(a.dtype))
        return
    yield Case((g.cast(g.rng.integers(-3, 3, (3, 4)) + (0.5 if g.floating else 0)),), {},
               lambda a: np.clip(a, -1, 1).astype(a.dtype))
    yield Case((g.cast(g.rng.integers(-3, 3, (3, 4)) + (0.5 if g.floating else 0)), -2, 1), {},
               lambda a, low, high: np.clip(a, low, high).astype(a.dtype))
    yield Bad((g.array((2,)), 2, -2), "ValueError", "min_val cannot be greater than max_val")


@cases("floor", "ceil", "round", "trunc", dtypes=ALL)
def rounding(g):
    if g.is_bool:
        yield Bad((g.array((2,)),), "NotImplementedError", f"\"{name(g)}_vml_cpu\" not implemented")
        return
    reference = getattr(np, name(g))
    x = g.array((3, 4)) if g.integer else g.cast(g.rng.integers(-9, 9, (3, 4)) + 0.25)
    yield Case((x,), {}, (lambda a: a) if g.integer else reference)
    if g.floating:
        yield Case((g.cast([0.5, 1.5, 2.5, -0.5, -1.5, INF, -INF, NAN, 1e20]),), {}, reference,
                   grad=False)


# ---- bounds ----


@cases("clamp", dtypes=ALL)
def clamp(g):
    def reference(a, low=None, high=None):
        kind = np.result_type(a, *[type(b) for b in (low, high) if b is not None])
        kind = a.dtype if a.dtype.kind == "f" else np.int64 if kind.kind == "i" and g.is_bool else \
            a.dtype if kind.kind in "iu" else kind
        a = a.astype(kind)
        a = a if low is None else np.maximum(a, np.asarray(low, kind))
        return a if high is None else np.minimum(a, np.asarray(high, kind))

    x = g.distinct((3, 4)) if not g.floating else g.cast(g.rng.integers(-9, 9, (3, 4)) / 4 + 0.125)
    yield Case((x, 1, 3), {}, reference)
    yield Case((x, None, 2), {}, reference)
    yield Case((x, 1, None), {}, reference)
    yield Case((x, 3, 1), {}, reference, note="the upper bound wins")
    yield Bad((x,), "RuntimeError", "At least one of 'min' or 'max' must not be None")
    if g.is_bool:
        yield Bad((x, False, True), "NotImplementedError", "not implemented for 'Bool'")
    elif g.integer:
        yield Case((x, 1.5, None), {}, lambda a, low, high: np.maximum(a, 1.5), result="float32")
    else:
        yield Case((corners(g), -1, 1.5), {}, reference, grad=False)
        yield Case((x, NAN, None), {}, lambda a, low, high: np.full(a.shape, NAN), grad=False)
    if g.dtype == "uint8":
        yield Bad((x, 0, 300), "RuntimeError",
                  "value cannot be converted to type uint8_t without overflow")


@cases("clamp_min", "clamp_max", dtypes=NUMBERS)
def clamp_one(g):
    reference = np.maximum if name(g) == "clamp_min" else np.minimum
    x = g.distinct((3, 4)) if g.integer else g.cast(g.rng.integers(-9, 9, (3, 4)) / 4 + 0.125)
    yield Case((x, 2), {}, lambda a, b: reference(a, np.asarray(b, a.dtype)))
    if g.floating:
        yield Case((corners(g), 0.5), {}, reference, grad=False)
    else:
        yield Case((x, 1.5), {}, reference, result="float32")


@cases("clamp_min.Tensor", "clamp_max.Tensor", dtypes=ALL)
def clamp_one_tensor(g):
    reference = np.maximum if "min" in g.op else np.minimum
    a = g.distinct((3, 4))
    yield Case((a, a[::-1].copy() + (g.cast(0.0625) if g.floating else g.cast(0))), {}, reference)
    yield Case((a, a[0].copy()), {}, reference, grad=False)
    yield Case((g.array((3,)), g.other("float64", (3,))), {}, reference, result="float64", grad=False)
    if g.floating:
        yield Case((corners(g), corners(g)[::-1].copy()), {}, reference, grad=False)


@cases("clamp.Tensor", dtypes=NUMBERS)
def clamp_tensor(g):
    def reference(a, low=None, high=None):
        a = a if low is None else np.maximum(a, low)
        return a if high is None else np.minimum(a, high)

    half = g.cast(0.0625 if g.floating else 0)
    a = g.distinct((3, 4))
    low = g.distinct((3, 4)) + half
    high = low + g.cast(3)
    yield Case((a, low, high), {}, reference)
    yield Case((a, low[:, :1].copy(), None), {}, reference)
    yield Case((a, None, high[0].copy()), {}, reference)
    yield Bad((a,), "RuntimeError", "At least one of 'min' or 'max' must not be None")
    if g.floating:
        yield Case((corners(g), g.cast(np.zeros(len(CORNERS))), g.cast(np.ones(len(CORNERS)))), {},
                   reference, grad=False)


# ---- three operands ----


@cases("where", dtypes=ALL)
def where(g):
    yield Case((g.mask((3, 4)), g.array((3, 4)), g.array((4,))), {}, np.where, double=True)
    yield Case((g.mask((3, 1)), g.array((4,)), g.array((2, 1, 1))), {}, np.where)
    yield Case((g.mask((3, 4)), g.array((3, 4)), True if g.is_bool else 2), {},
               lambda c, a, b: np.where(c, a, np.asarray(b, a.dtype)))
    yield Case((g.mask((3, 4)), True if g.is_bool else 2, g.array((3, 4))), {},
               lambda c, a, b: np.where(c, np.asarray(a, b.dtype), b))
    yield Case((Fixed(g.mask((3,))), 1, 2), {}, np.where)
    yield Case((g.mask((3,)), 1.5, False), {}, lambda c, a, b: np.where(c, 1.5, 0.0))
    yield Case((g.other("uint8", (3,), 0, 1), g.array((3,)), g.array((3,))), {},
               lambda c, a, b: np.where(c != 0, a, b))
    yield Bad((g.other("int64", (3,)), g.array((3,)), g.array((3,))), "RuntimeError",
              "where expected condition to be a boolean tensor, but got a tensor with dtype Long")
    if g.dtype == "uint8":
        yield Bad((g.mask((3,)), g.array((3,)), 300), "RuntimeError", "without overflow")


@cases("lerp", dtypes=FLOATS + ("int64",))
def lerp(g):
    if g.integer:
        yield Bad((g.array((2,)), g.array((2,)), 0.5), "NotImplementedError",
                  "\"lerp_kernel_scalar\" not implemented for 'Long'")
        return

    def reference(a, b, w):
        return a + w * (b - a)

    yield Case((g.array((3, 4)), g.array((4,)), 0.3), {}, reference, double=True)
    yield Case((g.array((3, 4)), g.array((3, 4)), g.array((3, 1))), {}, reference, double=True)
    yield Case((g.array((3, 4)), g.array((3, 4)), 1), {}, reference)
    other = "float64" if g.dtype == "float32" else "float32"
    yield Bad((g.array((2,)), g.other(other, (2,)), 0.5), "RuntimeError", "for `end` but got dtype")
    yield Bad((g.array((2,)), g.array((2,)), g.other(other, (2,))), "RuntimeError",
              "for `weight` but got dtype")


@cases("addcmul", dtypes=NUMBERS)
def addcmul(g):
    yield Case((g.array((3, 4)), g.array((4,)), g.array((3, 1))), {"value": 2},
               lambda a, b, c, value: a + np.asarray(value, a.dtype) * b * c, double=True)
    yield Case((g.array((3, 4)), g.array((3, 4)), g.array((3, 4))), {}, lambda a, b, c: a + b * c)
    yield Bad((g.mask((2,)), g.mask((2,)), g.mask((2,))), "NotImplementedError",
              "\"addcmul_cpu_out\" not implemented for 'Bool'")


@cases("addcdiv", dtypes=NUMBERS)
def addcdiv(g):
    if g.integer:
        yield Bad((g.array((2,)), g.array((2,)), g.positive((2,))), "RuntimeError",
                  "Integer division with addcdiv is no longer supported")
        return
    yield Case((g.array((3, 4)), g.array((4,)), g.positive((3, 1))), {"value": -1.5},
               lambda a, b, c, value: a + value * b / c, double=True)
    yield Case((g.array((3, 4)), g.array((3, 4)), g.positive((3, 4))), {}, lambda a, b, c: a + b / c)


@cases("masked_fill", dtypes=ALL)
def masked_fill(g):
    def reference(a, mask, value):
        return np.where(mask, np.asarray(value).astype(a.dtype), a)

    yield Case((g.array((3, 4)), g.mask((3, 4)), 1), {}, reference, double=True)
    yield Case((g.array((3, 4)), g.mask((4,)), 1.5 if g.floating else 1), {}, reference)
    yield Case((g.array((3, 1)), g.mask((3, 4)), 1), {}, reference)
    yield Case((g.array((3, 4)), g.mask((3, 4)), g.array(())), {}, reference)
    yield Bad((g.array((3,)), g.other("int64", (3,)), 1), "RuntimeError",
              "masked_fill_ only supports boolean masks, but got mask with dtype long int")
    yield Bad((g.array((3,)), g.mask((3,)), g.array((3,))), "RuntimeError",
              "only supports a 0-dimensional value tensor, but got tensor with 1 dimension(s)")
    if g.dtype == "uint8":
        yield Bad((g.array((3,)), g.mask((3,)), 300), "RuntimeError", "without overflow")


# ---- derivatives ----


def density(x):
    return np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def gelu_slope(x):
    return 0.5 * (1 + erf(x / math.sqrt(2))) + x * density(x)


def gelu_tanh_slope(x):
    k = math.sqrt(2 / math.pi)
    t = np.tanh(k * (x + 0.044715 * x ** 3))
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * k * (1 + 3 * 0.044715 * x * x)


@cases("sigmoid_backward", "tanh_backward", "silu_backward")
def backwards(g):
    s = lambda x: 1 / (1 + np.exp(-x))
    reference = {"sigmoid_backward": lambda d, y: d * y * (1 - y),
                 "tanh_backward": lambda d, y: d * (1 - y * y),
                 "silu_backward": lambda d, x: d * s(x) * (1 + x * (1 - s(x)))}[name(g)]
    yield Case((g.array((3, 4)), g.array((3, 4))), {}, reference, double=True)
    yield Case((g.array((3, 4)), g.array((4,))), {}, reference)


@cases("gelu_backward")
def gelu_backward(g):
    yield Case((g.array((3, 4)), g.array((3, 4))), {}, lambda d, x: d * gelu_slope(x), double=True)
    yield Case((g.array((3, 4)), g.array((3, 4))), {"approximate": "tanh"},
               lambda d, x, approximate: d * gelu_tanh_slope(x), double=True)
    yield Bad((g.array((3,)), g.array((3,))), "RuntimeError", "either none or tanh",
              {"approximate": "no"})


@cases("threshold_backward", dtypes=NUMBERS)
def threshold_backward(g):
    yield Case((g.array((3, 4)), g.away((3, 4)), 0), {},
               lambda d, x, t: np.where(x > t, d, np.zeros((), d.dtype)))
    yield Case((g.array((3, 4)), g.away((3, 4), 1.0), 1), {},
               lambda d, x, t: np.where(x > t, d, np.zeros((), d.dtype)))
