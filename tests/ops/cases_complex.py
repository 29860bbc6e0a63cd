# SPDX-License-Identifier: Apache-2.0
"""Cases of ops/complex/ops_complex.def and ops/signal/ops_signal.def: against NumPy.

Complex results are compared here (`close`), since the runner's references are of real numbers. Gradients are
compared with differences in tests/python/tensors/test_complex.py.
"""
import numpy as np
from opcases import FLOATS, Bad, Case, Fixed, cases


def close(expected):
    """A check: the result is expected(*args), in the precision of its type."""
    def check(got, tensors, args):
        result = got.numpy()
        want = np.asarray(expected(*(each.array if isinstance(each, Fixed) else each for each in args)))
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
            # Sums of up to 58 numbers of both signs: some results are small next to what they are made of.
            made = case((array,), lambda a: function(a))
            made.atol = 1e-5 if g.dtype == "float32" else None
            yield made
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


def hfftn_of(a, s=None, dim=None, norm=None):
    """NumPy has hfft() of one dimension."""
    dim = tuple(range(a.ndim))[-len(s) if s else 0:] if dim is None else dim
    s = (*(a.shape[d] for d in dim[:-1]), None) if s is None else s
    others = np.fft.fftn(a, s[:-1], dim[:-1], norm) if len(dim) > 1 else a
    return np.fft.hfft(others, s[-1], dim[-1], norm)


def ihfftn_of(a, s=None, dim=None, norm=None):
    dim = tuple(range(a.ndim))[-len(s) if s else 0:] if dim is None else dim
    s = tuple(a.shape[d] for d in dim) if s is None else s
    for d, n in zip(dim[:-1], s[:-1]):
        a = np.take(a, range(min(n, a.shape[d])), d)
        a = np.pad(a, [(0, n - a.shape[d] if axis == d % a.ndim else 0) for axis in range(a.ndim)])
    line = np.fft.ihfft(a, s[-1], dim[-1], norm)
    return np.fft.ifftn(line, None, dim[:-1], norm) if len(dim) > 1 else line


def of_two(function):
    return lambda a, s=None, dim=(-2, -1), norm=None: function(a, s, dim, norm)


for _name, _function, _real in (("hfft2", of_two(hfftn_of), False), ("ihfft2", of_two(ihfftn_of), True),
                                ("hfftn", hfftn_of, False), ("ihfftn", ihfftn_of, True)):
    spaces("fft_" + _name, _function, _real)


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


# ---- windows, and transforms of stretches ----

NO_TENSOR = {"empty": "takes no tensor", "0-d": "takes no tensor"}


def window_cases(formula):
    """A case for each kind; formula(i, last) of the points' numbers and the last one's."""
    for n in (0, 1, 2, 5, 8):
        for periodic in (True, False):
            def expected(n, periodic, *_):
                if n < 2:
                    return np.ones(n)
                last = n - 1 + periodic
                return formula(np.arange(n), last)
            yield case((n, periodic), expected)
    yield Bad((-1,), "RuntimeError", "requires non-negative window_length, got window_length=-1")
    yield Bad((4,), "RuntimeError", "expects floating point dtypes, got: ", {"dtype": "int64"})


@cases("hann_window", skip=NO_TENSOR)
def hann_window(g):
    yield from window_cases(lambda i, last: 0.5 - 0.5 * np.cos(2 * np.pi * i / last))


@cases("hamming_window", skip=NO_TENSOR)
def hamming_window(g):
    yield from window_cases(lambda i, last: 0.54 - 0.46 * np.cos(2 * np.pi * i / last))
    yield case((6, False, 0.6, 0.3), lambda *_: 0.6 - 0.3 * np.cos(2 * np.pi * np.arange(6) / 5))


@cases("blackman_window", skip=NO_TENSOR)
def blackman_window(g):
    yield from window_cases(lambda i, last: 0.42 - 0.5 * np.cos(2 * np.pi * i / last)
                            + 0.08 * np.cos(4 * np.pi * i / last))


@cases("bartlett_window", skip=NO_TENSOR)
def bartlett_window(g):
    yield from window_cases(lambda i, last: 1 - np.abs(2 * i / last - 1))


@cases("kaiser_window", skip=NO_TENSOR)
def kaiser_window(g):
    yield from window_cases(lambda i, last: np.i0(12 * np.sqrt(1 - (2 * i / last - 1) ** 2)) / np.i0(12))
    yield case((6, False, 3.0), lambda *_: np.kaiser(6, 3.0))


def frames(signal, n_fft, hop, window):
    """(..., stretches, n_fft), times the window with zeros around it."""
    full = np.zeros(n_fft)
    start = (n_fft - len(window)) // 2
    full[start:start + len(window)] = window
    count = 1 + (signal.shape[-1] - n_fft) // hop
    return np.stack([signal[..., k * hop:k * hop + n_fft] for k in range(count)], -2) * full


def np_stft(signal, n_fft, hop, length, window, normalized, onesided, *_):
    hop, length = hop or n_fft // 4, length or n_fft
    parts = frames(signal, n_fft, hop, np.ones(length) if window is None else window)
    transform = np.fft.rfft if onesided and not np.iscomplexobj(signal) else np.fft.fft
    return np.swapaxes(transform(parts, norm="ortho" if normalized else "backward"), -1, -2)


@cases("stft", dtypes=FLOATS, skip={"empty": "a signal has at least n_fft points", "0-d": "a signal has a dimension"})
def stft(g):
    signal = g.array((2, 40))
    for args in ((16, None, None, None, False, True, True), (16, 5, 10, None, False, True, True),
                 (16, 5, 10, g.array((10,)), True, False, True), (15, 4, 15, g.array((15,)), False, True, True)):
        yield case((signal, *args), np_stft)
    yield case((Fixed(g.array((16,))), 16, 3, None, None, False, True, True), np_stft)
    yield case((pairs(g, (30,)), 8, 3, None, None, False, False, True), np_stft)
    yield case((Fixed(g.array((40,))), 16, 4, None, None, False, True, False), lambda *a: np.stack(
        [np_stft(*a).real, np_stft(*a).imag], -1))
    yield case((Fixed(g.array((40,))), 16, 4, 8, None, False, True, True, True), lambda signal, *a: np_stft(
        np.pad(signal, 4), *a))
    yield Bad((signal, 16), "RuntimeError", "stft requires the return_complex parameter be given for real inputs")
    yield Bad((signal, 50, None, None, None, False, None, True), "RuntimeError",
              "expected 0 < n_fft < 40, but got n_fft=50")
    yield Bad((signal, 16, 0, None, None, False, None, True), "RuntimeError",
              "expected hop_length > 0, but got hop_length=0")
    yield Bad((signal, 16, 4, 20, None, False, None, True), "RuntimeError",
              "expected 0 < win_length <= n_fft, but got win_length=20")
    yield Bad((signal, 16, 4, 8, g.array((9,)), False, None, True), "RuntimeError",
              "expected a 1D window tensor of size equal to win_length=8, but got window with size [9]")
    yield Bad((pairs(g, (30,)), 8, None, None, None, False, True, True), "RuntimeError",
              "Cannot have onesided output if window or input is complex")
    yield Bad((g.array((2, 2, 40)), 16, None, None, None, False, None, True), "RuntimeError",
              "expected a 1D or 2D tensor")


@cases("istft", dtypes=FLOATS, skip={"empty": "is refused", "0-d": "transforms have two dimensions"})
def istft(g):
    window = np.abs(np.asarray(g.array((16,)))) + 0.5
    signal = np.asarray(g.array((2, 48)))
    window = window.astype(signal.dtype)
    spectra = np_stft(signal, 16, 4, 16, window, False, True)
    spectra = spectra.astype(np.complex64 if signal.dtype == np.float32 else np.complex128)
    yield case((Fixed(spectra), 16, 4, 16, Fixed(window), False), lambda *_: signal)
    yield case((Fixed(spectra[0]), 16, 4, 16, Fixed(window), True), lambda *_: signal[0, 8:40])
    yield case((Fixed(spectra), 16, 4, 16, Fixed(window), True, False, None, 20), lambda *_: signal[:, 8:28])
    yield case((Fixed(spectra), 16, 4, 16, Fixed(window), False, False, None, 50),
               lambda *_: np.pad(signal, ((0, 0), (0, 2))))
    whole = np_stft(signal, 16, 4, 16, window, True, False).astype(spectra.dtype)
    yield case((Fixed(whole), 16, 4, 16, Fixed(window), False, True, False), lambda *_: signal)
    yield case((Fixed(whole), 16, 4, 16, Fixed(window), False, True, False, None, True), lambda *_: signal + 0j)
    yield Bad((signal, 16), "RuntimeError", "istft requires a complex-valued input tensor")
    yield Bad((spectra, 20), "RuntimeError", "to match n_fft / 2 + 1 when onesided=True, but got 9")
    yield Bad((spectra, 16, 20), "RuntimeError", "expected 0 < hop_length <= win_length")
    yield Bad((spectra, 16, 4, 20), "RuntimeError", "expected 0 < win_length <= n_fft")
    yield Bad((spectra, 16, 4, 16, window * 0), "RuntimeError", "window overlap add min: 1")
    yield Bad((spectra, 16, 4, 8, window), "RuntimeError", "Invalid window shape")
    yield Bad((spectra[:, :0], 16), "RuntimeError", "input tensor cannot be empty")
    yield Bad((spectra, 16, 4, 16, window, False, False, True, None, True), "RuntimeError",
              "Cannot have onesided output if window or input is complex")
