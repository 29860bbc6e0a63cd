# SPDX-License-Identifier: Apache-2.0
"""torch.fft: discrete Fourier transforms and what belongs to them.

`norm` is "backward" (the inverse transform is divided by the number of elements; the default),
"forward" (the forward one is) or "ortho" (each is divided by its root).
"""
from . import _overriding
from ._C import ops as _ops

__all__ = [
    "fft", "ifft", "fft2", "ifft2", "fftn", "ifftn", "rfft", "irfft", "rfft2", "irfft2", "rfftn", "irfftn",
    "hfft", "ihfft", "hfft2", "ihfft2", "hfftn", "ihfftn", "fftfreq", "rfftfreq", "fftshift", "ifftshift",
]


def _ints(value):
    return (value,) if isinstance(value, int) else value


def _of_line(name, doc):
    row = getattr(_ops, "fft_" + name)

    def function(input, n=None, dim=-1, norm=None, *, out=None):
        return row(input, n, dim, norm) if out is None else row(input, n, dim, norm, out=out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _of_space(name, doc, dims):
    row = getattr(_ops, "fft_" + name)

    def function(input, s=None, dim=dims, norm=None, *, out=None):
        s, dim = _ints(s), _ints(dim)
        return row(input, s, dim, norm) if out is None else row(input, s, dim, norm, out=out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


fft = _of_line("fft", "The transform of one dimension, of n elements: cut, or filled up with zeros.")
ifft = _of_line("ifft", "The inverse of fft().")
rfft = _of_line("rfft", "The transform of a real signal, without the second half: its conjugates.")
irfft = _of_line("irfft", "The inverse of rfft(): n real elements, 2 (m - 1) of m by default.")
hfft = _of_line("hfft", "The transform of a signal given by half of its symmetric elements: real.")
ihfft = _of_line("ihfft", "The inverse of hfft().")
fft2 = _of_space("fft2", "The transform of two dimensions.", (-2, -1))
ifft2 = _of_space("ifft2", "The inverse of fft2().", (-2, -1))
rfft2 = _of_space("rfft2", "rfft() of the last of two dimensions, fft() of the other.", (-2, -1))
irfft2 = _of_space("irfft2", "The inverse of rfft2().", (-2, -1))
fftn = _of_space("fftn", "The transform of several dimensions; all of them by default.", None)
ifftn = _of_space("ifftn", "The inverse of fftn().", None)
rfftn = _of_space("rfftn", "rfft() of the last dimension, fft() of the others.", None)
irfftn = _of_space("irfftn", "The inverse of rfftn().", None)

hfft2 = _of_space("hfft2", "fft() of one of two dimensions, hfft() of the last: real.", (-2, -1))
ihfft2 = _of_space("ihfft2", "The inverse of hfft2().", (-2, -1))
hfftn = _of_space("hfftn", "fft() of several dimensions, hfft() of the last: real.", None)
ihfftn = _of_space("ihfftn", "The inverse of hfftn().", None)


def _frequencies(row, n, d, out, dtype, device, requires_grad):
    options = {"dtype": dtype, "device": device} | ({} if out is None else {"out": out})
    return row(n, d, **options).requires_grad_(requires_grad)


def fftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """The frequencies of fft() of n points that are d apart."""
    return _frequencies(_ops.fft_fftfreq, n, d, out, dtype, device, requires_grad)


def rfftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """The frequencies of rfft() of n points that are d apart."""
    return _frequencies(_ops.fft_rfftfreq, n, d, out, dtype, device, requires_grad)


def fftshift(input, dim=None):
    """The elements with the frequency 0 moved to the middle of the dimensions."""
    return _ops.fft_fftshift(input, _ints(dim))


def ifftshift(input, dim=None):
    """What fftshift() did, undone."""
    return _ops.fft_ifftshift(input, _ints(dim))


_overriding.offer_all(globals())
