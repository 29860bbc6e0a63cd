# SPDX-License-Identifier: Apache-2.0
"""Cases of ops/complex/ops_complex.def and ops/signal/ops_signal.def: against NumPy.

Complex results are compared here (`close`), since the runner's references are of real numbers. Gradients are
compared with differences in tests/python/tensors/test_complex.py.
"""
import numpy as np
from opcases import FLOATS, Bad, Case, cases


def close(expected):
    """A check: the result is expected(*args), in the precision of its type."""
    def check(got, tensors, args):
        result = got.numpy()
        want = np.asarray(expected(*args))
        assert result.shape == want.shape, (result.shape, want.shape)
        single = result.dtype in (np.dtype("complex64"), np.dtype("float32"))
        limit = 2e-5 if single else 1e-12
        assert np.allclose(result, want, rtol=limit, atol=limit * max(1, np.abs(want).max(initial=0))), (result, want)
    return check


def pairs(g, shape):
    """Complex numbers of the generator's type."""
    real = np.asarray(g.array(shape))
    imag = np.asarray(g.array(shape))
    return np.array(real + 1j * imag, np.complex64 if real.dtype == np.float32 else np.complex128)


def case(args, expected, **kwargs):
    return Case(args, kwargs, check=close(expected), grad=False, inplace=False)


@cases("complex", dtypes=FLOATS)
def complex_(g):
    for shape in ((3, 4), (), (0, 2)):
        yield case((g.array(shape), g.array(shape)), lambda a, b: a + 1j * b)
    yield Bad((pairs(g, (2,)), g.array((2,))), "RuntimeError", "Expected both inputs to be Half, Float or Double")


@cases("polar", dtypes=FLOATS)
def polar(g):
    for shape in ((3, 4), (), (0, 2)):
        yield case((g.array(shape), g.array(shape)), lambda a, b: a * np.cos(b) + 1j * a * np.sin(b))


@cases("view_as_real", dtypes=FLOATS)
def view_as_real(g):
    for shape in ((3, 4), (), (0, 2)):
        yield case((pairs(g, shape),), lambda a: np.stack([a.real, a.imag], -1))
    yield Bad((g.array((2,)),), "RuntimeError", "view_as_real is only supported for complex tensors")


@cases("view_as_complex", dtypes=FLOATS, skip={"0-d": "an error, tried as such"})
def view_as_complex(g):
    for shape in ((3, 4, 2), (0, 2)):
        yield Case((g.array(shape),), {}, check=close(lambda a: a[..., 0] + 1j * a[..., 1]), grad=False,
                   layouts=("contiguous",))
    yield Bad((g.array(()),), "RuntimeError", "Input tensor must have one or more dimensions")
    yield Bad((g.array((3, 3)),), "RuntimeError", "Tensor must have a last dimension of size 2")


@cases("real.part", dtypes=FLOATS)
def real(g):
    for shape in ((3, 4), (), (0, 2)):
        yield case((pairs(g, shape),), lambda a: a.real)
    yield case((g.array((3, 4)),), lambda a: a)


@cases("imag", dtypes=FLOATS)
def imag(g):
    for shape in ((3, 4), (), (0, 2)):
        yield case((pairs(g, shape),), lambda a: a.imag)
    yield Bad((g.array((2,)),), "RuntimeError", "imag is not implemented for tensors with non-complex dtypes")


@cases("conj", dtypes=FLOATS)
def conj(g):
    for shape in ((3, 4), (), (0, 2)):
        yield case((pairs(g, shape),), np.conj)
    yield case((g.array((3, 4)),), np.conj)


@cases("conj_physical", dtypes=FLOATS)
def conj_physical(g):
    for shape in ((3, 4), (), (0, 2)):
        yield case((pairs(g, shape),), np.conj)
    yield case((g.array((3, 4)),), np.conj)


@cases("angle", dtypes=FLOATS)
def angle(g):
    for shape in ((3, 4), (), (0, 2)):
        yield case((pairs(g, shape),), np.angle)
    yield case((g.array((3, 4)),), np.angle)


# ---- transforms ----

LENGTHS = (1, 2, 5, 12, 17, 30)
NORMS = (None, "backward", "forward", "ortho")


def lines(name, function, real_input):
    @cases(name, dtypes=FLOATS, skip={"0-d": "an error, tried as such"})
    def rows(g):
        yield Bad((g.array(()),), "IndexError", "but tensor has no dimensions")
        yield case((g.array((0, 5)) if real_input else pairs(g, (0, 5)),), lambda a: function(a))
        for n in LENGTHS:
            array = g.array((3, n)) if real_input else pairs(g, (3, n))
            if name in ("fft_irfft", "fft_hfft") and n == 1:
                yield Bad((array,), "RuntimeError", "Invalid number of data points (0) specified")
                continue
            yield case((array,), lambda a: function(a))
        array = g.array((4, 6, 2)) if real_input else pairs(g, (4, 6, 2))
        for norm in NORMS:
            yield case((array, 5, 1, norm), lambda a, n, dim, norm: function(a, n, dim, norm))
            yield case((array, 9, -2, norm), lambda a, n, dim, norm: function(a, n, dim, norm))
        yield Bad((array, 0), "RuntimeError", "Invalid number of data points (0) specified")
        yield Bad((array, None, 3), "IndexError", "Dimension out of range")
        yield Bad((array, None, 0, "x"), "RuntimeError", 'Invalid normalization mode: "x"')
    return rows


for _name, _real in (("fft", False), ("ifft", False), ("rfft", True), ("irfft", False), ("hfft", False),
                     ("ihfft", True)):
    lines("fft_" + _name, getattr(np.fft, _name), _real)


def spaces(name, function, real_input):
    two = name.endswith("2")

    @cases(name, dtypes=FLOATS, skip={"0-d": "has no dimension to transform"})
    def rows(g):
        yield case((g.array((0, 4, 5)) if real_input else pairs(g, (0, 4, 5)), None, (1, 2)),
                   lambda a, s, dim: function(a, s, dim))
        array = g.array((4, 6, 5)) if real_input else pairs(g, (4, 6, 5))
        yield case((array,), lambda a: function(a))
        for norm in NORMS:
            yield case((array, (3, 8), (0, 2), norm), lambda a, s, dim, norm: function(a, s, dim, norm))
        if not two:
            yield case((array, (4, 5)), lambda a, s: function(a, s, (1, 2)))
        yield Bad((array, None, (0, 0)), "RuntimeError", "FFT dims must be unique")
        yield Bad((array, (2, 2, 2), (0, 1)), "RuntimeError", "dim and shape arguments must have the same length")
    return rows


for _name, _real in (("fft2", False), ("ifft2", False), ("rfft2", True), ("irfft2", False), ("fftn", False),
                     ("ifftn", False), ("rfftn", True), ("irfftn", False)):
    spaces("fft_" + _name, getattr(np.fft, _name), _real)


@cases("_fft_c2c", dtypes=FLOATS, skip={"0-d": "has no dimension to transform"})
def fft_c2c(g):
    yield case((pairs(g, (0, 6)), (1,), 0, True), lambda a, *rest: np.fft.fft(a))
    yield case((pairs(g, (4, 6)), (0, 1), 0, True), lambda a, dim, norm, forward: np.fft.fft2(a))
    yield case((pairs(g, (4, 6)), (1,), 2, False), lambda a, dim, norm, forward: np.fft.ifft(a))
    yield Bad((g.array((4, 6)), (1,), 0, True), "RuntimeError", "_fft_c2c expects a complex tensor")


@cases("_fft_r2c", dtypes=FLOATS, skip={"0-d": "has no dimension to transform"})
def fft_r2c(g):
    yield case((g.array((0, 6)), (1,), 0, True), lambda a, *rest: np.fft.rfft(a))
    yield case((g.array((4, 6)), (0, 1), 0, True), lambda a, dim, norm, half: np.fft.rfft2(a))
    yield case((g.array((4, 6)), (1,), 1, False), lambda a, dim, norm, half: np.fft.fft(a, norm="ortho"))


@cases("_fft_c2r", dtypes=FLOATS, skip={"0-d": "has no dimension to transform"})
def fft_c2r(g):
    yield case((pairs(g, (0, 6)), (1,), 2, 10), lambda a, *rest: np.fft.irfft(a))
    yield case((pairs(g, (4, 6)), (0, 1), 2, 10), lambda a, dim, norm, n: np.fft.irfft2(a))
    yield case((pairs(g, (4, 6)), (1,), 2, 11), lambda a, dim, norm, n: np.fft.irfft(a, 11))


@cases("fft_fftshift", dtypes=FLOATS)
def fft_fftshift(g):
    for shape in ((), (0, 2)):
        yield case((g.array(shape),), lambda a: np.fft.fftshift(a) if a.ndim else a)
    yield case((g.array((4, 5)),), lambda a: np.fft.fftshift(a))
    yield case((pairs(g, (4, 5)), (1,)), lambda a, dim: np.fft.fftshift(a, dim))


@cases("fft_ifftshift", dtypes=FLOATS)
def fft_ifftshift(g):
    for shape in ((), (0, 2)):
        yield case((g.array(shape),), lambda a: np.fft.ifftshift(a) if a.ndim else a)
    yield case((g.array((4, 5)),), lambda a: np.fft.ifftshift(a))
    yield case((pairs(g, (4, 5)), (1,)), lambda a, dim: np.fft.ifftshift(a, dim))


@cases("fft_fftfreq", skip={"empty": "takes no tensor", "0-d": "takes no tensor"})
def fft_fftfreq(g):
    for n in (1, 2, 7, 8):
        yield case((n, 0.5), lambda n, d: np.fft.fftfreq(n, d))
    yield Bad((-1,), "RuntimeError", "the number of points must be positive, got -1")


@cases("fft_rfftfreq", skip={"empty": "takes no tensor", "0-d": "takes no tensor"})
def fft_rfftfreq(g):
    for n in (1, 2, 7, 8):
        yield case((n, 0.5), lambda n, d: np.fft.rfftfreq(n, d))
