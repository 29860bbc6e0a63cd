# SPDX-License-Identifier: Apache-2.0
"""Cases of ops_gamma.def. References are sums and halvings, in NumPy."""
import math

import numpy as np
from cases_pointwise import INF, NAN, erf, floating, name
from opcases import ALL, Bad, Case, cases


lgamma = np.vectorize(math.lgamma, otypes=[np.float64])


def digamma(x):
    """The recurrence up to 30, then Stirling's series."""
    x, below = np.asarray(x, np.float64), 0.0
    while np.any(x < 30):
        below = below - np.where(x < 30, 1 / x, 0)
        x = np.where(x < 30, x + 1, x)
    return below + np.log(x) - 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4) - 1 / (252 * x**6)


def zeta(s, q):
    """Hurwitz' sum, with its tail as an integral and two corrections."""
    k = np.arange(4000).reshape(-1, *([1] * np.ndim(q)))
    end = np.asarray(q, np.float64) + 4000
    tail = end ** (1 - s) / (s - 1) + end**-s / 2 + s * end ** (-s - 1) / 12
    return np.sum((np.asarray(q, np.float64) + k) ** -s, axis=0) + tail


def erfinv(y):
    """Where erf is y, by halving."""
    low, high = np.full(np.shape(y), -7.0), np.full(np.shape(y), 7.0)
    for _ in range(200):
        middle = (low + high) / 2
        less = erf(middle) < y
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    return (low + high) / 2


@cases("lgamma", "digamma", dtypes=ALL)
def gamma_functions(g):
    function = {"lgamma": lgamma, "digamma": digamma}[name(g)]
    x = g.positive((3, 4)) if g.floating else g.array((3, 4), 1, 1 if g.is_bool else 9)
    if not g.floating:
        x = np.maximum(x, np.ones_like(x))
    yield Case((x,), {}, lambda a: function(floating(a)), double=True, rtol=1e-5 if not g.floating else None)
    if g.floating:
        yield Case((g.cast([0.0, -0.0, INF, NAN]),), {}, grad=False, check=at_corners(name(g)))
        below = g.cast([-0.5, -1.25, -7.5])
        if name(g) == "lgamma":
            yield Case((below,), {}, lgamma, grad=False)
        else:  # reflection: digamma(1 - x) - digamma(x) = pi / tan(pi x)
            yield Case((below,), {}, lambda a: digamma(1 - np.asarray(a, np.float64))
                       - np.pi / np.tan(np.pi * np.asarray(a, np.float64)), grad=False)


def at_corners(which):
    def check(got, tensors, arrays):
        del tensors, arrays
        values = got.numpy()
        expected = [INF, INF, INF, NAN] if which == "lgamma" else [-INF, INF, INF, NAN]
        np.testing.assert_array_equal(np.asarray(values, np.float64), expected)

    return check


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
        yield Case((g.cast([1.0, -1.0, 2.0, NAN, 0.0]),), {}, lambda a: np.array([INF, -INF, NAN, NAN, 0.0], a.dtype),
                   grad=False)
    else:
        yield Case((np.zeros((3, 4), g.dtype),), {}, lambda a: np.zeros((3, 4), np.float32))


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


@cases("_standard_gamma_grad")
def standard_gamma_grad(g):
    """Along a quantile: of shape 1 (1 - e^-x) the slope is known from the recurrence by differences."""

    def reference(a, x):
        a, x = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(x, np.float64))
        h = 1e-4

        def share(shape):
            n = np.arange(400).reshape(-1, *([1] * np.ndim(x)))
            return np.sum(np.exp((shape + n) * np.log(x) - x - lgamma(shape + n + 1)), axis=0)

        by_shape = (share(a + h) - share(a - h)) / (2 * h)
        return -by_shape / np.exp((a - 1) * np.log(x) - x - lgamma(a))

    yield Case((g.positive((3, 4)), g.positive((4,))), {}, reference, grad=False, rtol=2e-5, atol=1e-6)
    yield Bad((g.other("int64", (2,)), g.other("int64", (2,))), "NotImplementedError", "'Long'")
