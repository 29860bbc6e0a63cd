# SPDX-License-Identifier: Apache-2.0
"""Cases of ops_special.def. References are integrals and sums, in NumPy."""
import math
import sys

import cases_gamma
import cases_pointwise
import cases_reduce
import numpy as np
from cases_alias import same_as
from cases_gamma import erfinv, lgamma, zeta
from cases_pointwise import INF, NAN, floating
from opcases import ALL, FLOATS, HALVES, Bad, Case, cases

# What is made of the numbers that a case has must be in the range of the reference.
NEAR = {"extremes": {kind: "the reference is true near 0" for kind in ("large", "small", "mean")}}
ANGLES = np.linspace(0, np.pi, 401)


def once(function):
    """Computes each different operand, or pair of operands, once: large cases repeat a few."""

    def of_different(*args, **more):
        arrays = np.broadcast_arrays(*(floating(np.asarray(a)) for a in args))
        pairs = arrays[0] + 1j * arrays[1] if len(arrays) == 2 else arrays[0]
        rows, places = np.unique(pairs.ravel(), return_inverse=True)
        found = function(rows.real, rows.imag, **more) if len(arrays) == 2 else function(rows, **more)
        return found[places.ravel()].reshape(arrays[0].shape)

    return of_different


def integral(values, points):
    """Simpson's rule; the number of points is odd."""
    ends, inside = values[..., 0] + values[..., -1], 4 * values[..., 1:-1:2].sum(-1) + 2 * values[..., 2:-1:2].sum(-1)
    return (ends + inside) * (points[1] - points[0]) / 3


def modified_i(order, x, scaled=False):
    x = x[..., None]
    shift = np.abs(x) if scaled else 0
    return integral(np.exp(x * np.cos(ANGLES) - shift) * np.cos(order * ANGLES), ANGLES) / np.pi


def modified_k(order, x, scaled=False):
    x = x[..., None]
    t = np.linspace(0, 8, 4001)
    with np.errstate(all="ignore"):
        return integral(np.exp(-x * (np.cosh(t) - (1 if scaled else 0))) * np.cosh(order * t), t)


def bessel_j(order, x):
    x = x[..., None]
    return integral(np.cos(order * ANGLES - x * np.sin(ANGLES)), ANGLES) / np.pi


def bessel_y(order, x):
    x = x[..., None]
    t = np.linspace(0, 12, 12001)
    with np.errstate(all="ignore"):
        smooth = np.linspace(0, np.pi, 2001)
        first = integral(np.sin(x * np.sin(smooth) - order * smooth), smooth)
        second = integral((np.exp(order * t) + (-1) ** order * np.exp(-order * t)) * np.exp(-x * np.sinh(t)), t)
    return (first - second) / np.pi


def erfcx(x):
    """For x > 0 the integral of exp(-t t - 2 x t); below, by reflection."""
    x = floating(x)
    t = np.linspace(0, 12, 6001)
    above = 2 / math.sqrt(math.pi) * integral(np.exp(-t * t - 2 * np.abs(x)[..., None] * t), t)
    return np.where(x < 0, 2 * np.exp(x * x) - above, above)


def ndtr(x):
    x = floating(x)
    return np.exp(-x * x / 2) * erfcx(-x / math.sqrt(2)) / 2


@once
def ndtri(p):
    return math.sqrt(2) * erfinv(2 * p - 1)


def entr(x):
    x = floating(x)
    with np.errstate(all="ignore"):
        return np.where(x > 0, -x * np.log(np.where(x > 0, x, 1)), np.where(x == 0, 0.0, np.where(x < 0, -INF, NAN)))


FUNCTIONS = {
    "i0": lambda x: modified_i(0, x), "special_i1": lambda x: modified_i(1, x),
    "special_i0e": lambda x: modified_i(0, x, True), "special_i1e": lambda x: modified_i(1, x, True),
    "special_modified_bessel_i0": lambda x: modified_i(0, x), "special_modified_bessel_i1": lambda x: modified_i(1, x),
    "special_bessel_j0": lambda x: bessel_j(0, x), "special_bessel_j1": lambda x: bessel_j(1, x),
    "special_spherical_bessel_j0": lambda x: np.sinc(floating(x) / np.pi),
    "special_erfcx": erfcx, "special_ndtr": ndtr, "special_log_ndtr": lambda x: np.log(ndtr(x)), "special_entr": entr,
}
POSITIVE = {
    "special_bessel_y0": lambda x: bessel_y(0, x), "special_bessel_y1": lambda x: bessel_y(1, x),
    "special_modified_bessel_k0": lambda x: modified_k(0, x), "special_modified_bessel_k1": lambda x: modified_k(1, x),
    "special_scaled_modified_bessel_k0": lambda x: modified_k(0, x, True),
    "special_scaled_modified_bessel_k1": lambda x: modified_k(1, x, True),
}
ENDS = {  # at inf, -inf, 0
    "i0": (INF, INF, 1), "special_i1": (INF, -INF, 0), "special_i0e": (0, 0, 1), "special_i1e": (0, 0, 0),
    "special_erfcx": (0, INF, 1), "special_ndtr": (1, 0, 0.5), "special_log_ndtr": (0, -INF, math.log(0.5)),
    "special_entr": (-INF, -INF, 0), "special_spherical_bessel_j0": (0, 0, 1), "special_bessel_j0": (0, 0, 1),
    "special_bessel_j1": (0, 0, 0),
}


FUNCTIONS = {name: once(function) for name, function in FUNCTIONS.items()}
POSITIVE = {name: once(function) for name, function in POSITIVE.items()}


def tolerance(g):
    return {"rtol": 1e-5 if g.dtype != "float64" else 1e-9, "atol": 1e-6 if g.dtype != "float64" else 1e-9}


@cases(*FUNCTIONS, dtypes=("bool", "int64") + FLOATS, skip=NEAR)
def everywhere(g):
    name = g.op.removesuffix("_") if g.op != "i0_" else "i0"
    function = FUNCTIONS[name]
    x = g.positive((3, 4)) if name == "special_entr" else g.array((3, 4), *(() if g.floating else (0, 3)))
    yield Case((x,), {}, function, double=name in ("i0", "special_erfcx", "special_entr"), **tolerance(g))
    if name == "special_ndtr":  # composed: no cases are made
        yield Case((g.array(()),), {}, function, **tolerance(g))
        yield Case((g.array((0, 3)),), {}, function)
    if g.floating:
        far = g.cast([-7.5, -3.0, 0.01, 4.0, 7.9, 8.5, 12.0])
        if name not in ("special_entr", "special_erfcx", "special_ndtr", "special_log_ndtr"):
            yield Case((far,), {}, function, grad=False, **tolerance(g))
        if name in ENDS:
            yield Case((g.cast([INF, -INF, 0.0, NAN]),), {}, lambda a: np.resize(np.array([*ENDS[name], NAN]), a.shape),
                       grad=False, layouts=("contiguous", "sliced"))


@cases(*POSITIVE, dtypes=("bool", "int64") + FLOATS, skip=NEAR)
def above_zero(g):
    x = g.positive((3, 4)) if g.floating else np.maximum(g.array((3, 4), 1, 1 if g.is_bool else 9), 1).astype(g.dtype)
    yield Case((x,), {}, POSITIVE[g.op], grad=False, **tolerance(g))
    if g.floating:
        yield Case((g.cast([0.25, 1.9, 2.1, 5.0, 9.0]),), {}, POSITIVE[g.op], grad=False, **tolerance(g))
        yield Case((g.cast([-1.0, NAN]),), {}, lambda a: np.full(a.shape, NAN), grad=False)
        at_zero = -INF if "_y" in g.op else INF
        yield Case((g.cast([0.0]),), {}, lambda a: np.full(a.shape, at_zero), grad=False)


@cases("special_ndtri", dtypes=ALL, skip=NEAR)
def ndtri_cases(g):
    if not g.floating:
        yield Case((np.zeros((3, 4), g.dtype),), {}, lambda a: np.full(a.shape, -INF))
        return
    yield Case((g.array((3, 4), 0.02, 0.98),), {}, ndtri, rtol=1e-5 if g.dtype != "float64" else 1e-10, atol=1e-6)
    yield Case((g.cast([0.0, 1.0, -1.0, 2.0, NAN]),), {}, lambda a: np.resize([-INF, INF, NAN, NAN, NAN], a.shape),
               grad=False, layouts=("contiguous",))


@cases("logit", dtypes=ALL, skip=NEAR)
def logit(g):
    def reference(a, eps=None):
        a = floating(a)
        a = a if eps is None else np.clip(a, eps, 1 - eps)
        with np.errstate(all="ignore"):
            return np.log(a / (1 - a))

    if not g.floating:
        yield Case((np.zeros((3, 4), g.dtype),), {}, reference)
        return
    yield Case((g.array((3, 4), 0.1, 0.9),), {}, reference, double=True)
    yield Case((g.cast([-1.0, 0.05, 0.3, 0.8, 3.0]), 0.1), {}, reference)
    yield Case((g.cast([-1.0, 0.0, 1.0, 2.0, NAN]),), {}, reference, grad=False)


@once
def lower_share(a, x):
    """The sum over n of x^(a + n) e^-x / gamma(a + n + 1)."""
    term = np.exp(a * np.log(x) - x - lgamma(a + 1))
    total = np.zeros_like(term)
    for n in range(200):
        total, term = total + term, term * x / (a + n + 1)
    return total


@cases("igamma", "igammac", dtypes=FLOATS, skip=NEAR)
def incomplete_gamma(g):
    upper = g.op.startswith("igammac")

    def reference(a, x):
        return 1 - lower_share(a, x) if upper else lower_share(a, x)

    more = {"rtol": 2e-5 if g.dtype != "float64" else 1e-9, "atol": 1e-6 if g.dtype != "float64" else 1e-11}
    yield Case((g.positive((3, 4)), g.positive((4,))), {}, reference, grad_args=(1,), **more)
    shapes, at = g.cast([0.1, 3.0, 30.0, 30.0, 90.0]), g.cast([2.0, 8.0, 20.0, 40.0, 95.0])
    yield Case((shapes, at), {}, reference, grad_args=(1,), **more)
    ends = (1.0, 0.0, 1.0, 0.0, NAN, NAN, NAN)
    edges = (g.cast([2.0, 2.0, 0.0, INF, 0.0, -1.0, INF]), g.cast([INF, 0.0, 3.0, 3.0, 0.0, 1.0, INF]))
    yield Case(edges, {}, lambda a, x: np.resize([1 - e if upper else e for e in ends], a.shape), grad=False,
               layouts=("contiguous",))
    yield Bad((np.array([3]), np.array([3])), "NotImplementedError", f"\"{g.op.rstrip('_')}_cpu\" not implemented for 'Long'")


@cases("special_zeta", dtypes=FLOATS, skip=NEAR)
def zeta_cases(g):
    @once
    def reference(s, q):
        return np.array([zeta(a, b) for a, b in zip(s, q)])

    more = {"rtol": 1e-5 if g.dtype != "float64" else 1e-9}
    yield Case((g.positive((3, 4), 1.5, 6.0), g.positive((4,))), {}, reference, grad_args=(1,), **more)
    yield Case((g.cast([1.0, 0.5, 2.0, 2.5]), g.cast([2.0, 2.0, -1.0, -0.5])), {},
               lambda s, q: np.resize([INF, NAN, INF, NAN], s.shape), grad=False, layouts=("contiguous",))


@cases("special_xlog1py", dtypes=ALL)
def xlog1py(g):
    def reference(a, b):
        a, b = floating(np.asarray(a)), floating(np.asarray(b))
        with np.errstate(all="ignore"):
            return np.where((a == 0) & ~np.isnan(b), 0, a * np.log1p(b))

    y = g.positive((4,)) if g.floating else np.ones((4,), g.dtype)
    yield Case((g.away((3, 4)), y), {}, reference, double=True)
    if g.floating:
        yield Case((g.cast([0.0, 0.0, 0.0, 1.0, 2.0]), g.cast([-1.0, -2.0, NAN, -1.0, INF])), {}, reference, grad=False)


@cases("mvlgamma", dtypes=ALL, skip=NEAR)
def mvlgamma(g):
    def reference(a, p):
        a = floating(a)
        return sum(lgamma(a - j / 2) for j in range(p)) + p * (p - 1) / 4 * math.log(math.pi)

    if g.is_bool:
        yield Bad((g.mask((3,)), 1), "RuntimeError", "The input tensor may not be a boolean tensor.")
        return
    x = g.positive((3, 4), 3, 9)
    for p in (1, 2, 3):
        yield Case((x, p), {}, reference, rtol=1e-4 if g.dtype != "float64" else None)
    yield Case((g.positive((), 3, 9), 1), {}, reference, rtol=1e-4 if g.dtype != "float64" else None)
    yield Case((g.positive((0, 3)), 2), {}, reference)
    yield Bad((g.positive((3,)), 0), "RuntimeError", "p has to be greater than or equal to 1")


@cases("round.decimals", skip=NEAR)
def round_decimals(g):
    def reference(a, decimals):
        scale = 10.0 ** abs(decimals)
        return np.rint(a * scale) / scale if decimals >= 0 else np.rint(a / scale) * scale

    x = g.cast([[1.2345, -0.555, 12.5], [99.9, 0.0, 7.25]])
    for decimals in (0, 1, 2, -1):
        yield Case((x,), {"decimals": decimals}, reference, grad=False)
    yield Case((g.array(()),), {"decimals": 1}, reference, grad=False)
    yield Case((g.array((0, 3)),), {"decimals": 1}, reference, grad=False)
    yield Bad((np.array([3]),), "NotImplementedError", "\"round_cpu\" not implemented for 'Long'", {"decimals": 1})


@cases("frexp", dtypes=FLOATS + HALVES)
def frexp(g):
    def reference(a):
        parts = np.frexp(np.where(np.isfinite(a), a, 0.0))
        return np.where(np.isfinite(a), parts[0], a), parts[1].astype(np.int32)

    yield Case((g.away((3, 4)),), {}, reference, result=(g.dtype, "int32"))
    yield Case((g.cast([0.0, -0.0, INF, -INF, NAN]),), {}, reference, grad=False, result=(g.dtype, "int32"))
    yield Case((g.array(()),), {}, reference, result=(g.dtype, "int32"))
    yield Case((g.array((0, 3)),), {}, reference, result=(g.dtype, "int32"))
    yield Bad((np.array([3]),), "RuntimeError", "torch.frexp() only supports floating-point dtypes")


ALIASES = {
    "gammainc": "igamma", "gammaincc": "igammac", "gammaln": "lgamma", "digamma": "digamma", "psi": "digamma",
    "polygamma": "polygamma", "multigammaln": "mvlgamma", "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "exp2": "exp2",
    "expit": "sigmoid", "expm1": "expm1", "log1p": "log1p", "logit": "logit", "i0": "i0", "sinc": "sinc",
    "xlogy": "xlogy", "logsumexp": "logsumexp",
}
for alias, row in ALIASES.items():
    same_as(f"special_{alias}", row, (cases_gamma, cases_pointwise, cases_reduce, sys.modules[__name__]))
