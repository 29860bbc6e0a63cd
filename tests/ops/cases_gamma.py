# SPDX-License-Identifier: Apache-2.0
"""Cases of ops_gamma.def. References are sums and halvings, in NumPy."""
import math

import numpy as np
from cases_pointwise import INF, NAN, erf, floating, name
from opcases import ALL, Bad, Case, cases


def lgamma_of(x):
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return INF
    try:
        return math.lgamma(x)
    except OverflowError:
        return INF


def digamma(x):
    """The recurrence in 30 steps, then Stirling's series; below 0 the reflection."""
    x = np.asarray(x, np.float64)
    with np.errstate(all="ignore"):
        up = np.where(x < 0, 1 - x, x)
        steps = np.arange(30).reshape(-1, *([1] * x.ndim))
        below = -np.sum(1 / (up + steps), axis=0)
        end = up + 30
        value = below + np.log(end) - 1 / (2 * end) - 1 / (12 * end**2) + 1 / (120 * end**4) - 1 / (252 * end**6)
        part = x - np.rint(x)
        value = np.where(x < 0, np.where(part == 0, NAN, value - np.pi / np.tan(np.pi * part)), value)
    return np.where(x == 0, -np.copysign(INF, x), np.where(np.isinf(x), np.where(x > 0, INF, NAN), value))


lgamma = np.vectorize(lgamma_of, otypes=[np.float64])


def zeta(s, q):
    """Hurwitz' sum of 60 terms, with its tail by Euler and Maclaurin."""
    q = np.asarray(q, np.float64)
    k = np.arange(60).reshape(-1, *([1] * q.ndim))
    end = q + 60
    tail = end ** (1 - s) / (s - 1) + end**-s / 2 + s * end ** (-s - 1) / 12
    tail = tail - s * (s + 1) * (s + 2) * end ** (-s - 3) / 720
    with np.errstate(all="ignore"):
        return np.sum((q + k) ** -float(s), axis=0) + tail


def erfinv(y):
    """Where erf is y, by Newton's method from Winitzki's formula."""
    y = np.asarray(y, np.float64)
    with np.errstate(all="ignore"):
        kept = np.where(np.abs(y) < 1, y, 0.0)
        w = np.log1p(-kept * kept)
        t = 2 / (np.pi * 0.147) + w / 2
        x = np.sign(kept) * np.sqrt(np.sqrt(t * t - w / 0.147) - t)
        for _ in range(5):
            x = x - (erf(x) - kept) / (2 / math.sqrt(math.pi) * np.exp(-x * x))
        inside = np.where(np.abs(y) < 1, x, NAN)
        return np.where(np.abs(y) == 1, np.copysign(INF, y), inside)


@cases("lgamma", "digamma", dtypes=ALL)
def gamma_functions(g):
    function = {"lgamma": lgamma, "digamma": digamma}[name(g)]
    x = g.positive((3, 4)) if g.floating else g.array((3, 4), 1, 1 if g.is_bool else 9)
    if not g.floating:
        x = np.maximum(x, np.ones_like(x))
    yield Case((x,), {}, lambda a: function(floating(a)), double=True, rtol=1e-5 if not g.floating else None)
    if g.floating:
        yield Case((g.cast([0.0, -0.0, INF, NAN]),), {}, function, grad=False)
        yield Case((g.cast([-0.5, -1.25, -7.5]),), {}, function, grad=False)


@cases("polygamma", dtypes=ALL)
def polygamma(g):
    x = g.positive((3, 4)) if g.floating else np.maximum(g.array((3, 4), 1, 1 if g.is_bool else 9), 1).astype(g.dtype)
    yield Case((0, x), {}, lambda n, a: digamma(floating(a)), rtol=1e-5 if g.dtype != "float64" else None)
    for n in (1, 2, 3):
        yield Case((n, x), {}, lambda n, a: (-1) ** (n + 1) * math.factorial(n) * zeta(n + 1, floating(a)),
                   rtol=1e-5 if g.dtype != "float64" else 1e-10)
    yield Bad((-1, x), "RuntimeError", "polygamma(n, x) does not support negative n.")


@cases("erfinv", dtypes=ALL)
def erfinv_cases(g):
    if g.floating:
        yield Case((g.array((3, 4), -0.9, 0.9),), {}, lambda a: erfinv(floating(a)), double=True,
                   rtol=2e-6 if g.dtype == "float32" else None)
        yield Case((g.cast([1.0, -1.0, 2.0, NAN, 0.0]),), {}, lambda a: erfinv(floating(a)), grad=False)
    else:
        yield Case((np.zeros((3, 4), g.dtype),), {}, lambda a: erfinv(floating(a)))


@cases("xlogy", dtypes=ALL)
def xlogy(g):
    def reference(a, b):
        a, b = floating(a), floating(b)
        with np.errstate(all="ignore"):
            return np.where((a == 0) & ~np.isnan(b), 0, a * np.log(b))

    y = g.positive((4,)) if g.floating else np.ones((4,), g.dtype)
    yield Case((g.away((3, 4)), y), {}, reference, double=True)
    if g.floating:
        yield Case((g.cast([0.0, 0.0, 0.0, 1.0, 2.0]), g.cast([0.0, -1.0, NAN, 0.0, INF])), {}, reference, grad=False)


@cases("_standard_gamma_grad", skip={"extremes": {kind: "the sum of the reference is short" for kind in ("large", "mean")}})
def standard_gamma_grad(g):
    """Along a quantile: of shape 1 (1 - e^-x) the slope is known from the recurrence by differences."""

    def reference(a, x):
        a, x = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(x, np.float64))
        h = 1e-4

        def share(shape):
            term = np.exp(shape * np.log(x) - x - lgamma(shape + 1))
            total = np.zeros_like(term)
            for n in range(60):
                total, term = total + term, term * x / (shape + n + 1)
            return total

        by_shape = (share(a + h) - share(a - h)) / (2 * h)
        return -by_shape / np.exp((a - 1) * np.log(x) - x - lgamma(a))

    yield Case((g.positive((3, 4)), g.positive((4,))), {}, reference, grad=False, rtol=2e-5, atol=1e-6)
    yield Bad((g.other("int64", (2,)), g.other("int64", (2,))), "NotImplementedError", "'Long'")
