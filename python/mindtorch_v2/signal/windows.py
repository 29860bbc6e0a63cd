# SPDX-License-Identifier: Apache-2.0
"""torch.signal.windows: M weights, 1 in the middle. Symmetric ones end as they begin (`sym`); without, they are the
first M of M + 1, which repeat without a seam."""

import math

from .. import _C
from .._C import ops as _ops

__all__ = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming",
           "hann", "kaiser", "nuttall"]


def _check(name, M, dtype, layout):
    dtype = dtype or _C.get_default_dtype()
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not _C.strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype not in (_C.float32, _C.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return dtype


def _ramp(first, last, M, dtype, device, requires_grad):
    ramp = _ops.linspace(first, last, M, dtype=dtype, device=device)
    return ramp.requires_grad_() if requires_grad else ramp


def _empty(dtype, device, requires_grad):
    made = _ops.empty((0,), dtype=dtype, device=device)
    return made.requires_grad_() if requires_grad else made


def _steps(M, sym):
    """How many steps of a period, or of the way from end to end; 1 where there is but one weight."""
    return max(M - 1 if sym else M, 1)


def exponential(M, *, center=None, tau=1.0, sym=True, dtype=None, layout=_C.strided, device=None, requires_grad=False):
    """exp(-|n - center| / tau)"""
    dtype = _check("exponential", M, dtype, layout)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M == 0:
        return _empty(dtype, device, requires_grad)
    if center is None:
        center = (M - 1 if sym or M == 1 else M) / 2
    ramp = _ramp(-center / tau, (M - 1 - center) / tau, M, dtype, device, requires_grad)
    return _ops.exp(-_ops.abs(ramp))


def cosine(M, *, sym=True, dtype=None, layout=_C.strided, device=None, requires_grad=False):
    """sin(pi (n + 1/2) / M), half a wave."""
    dtype = _check("cosine", M, dtype, layout)
    if M == 0:
        return _empty(dtype, device, requires_grad)
    step = math.pi / (M if sym or M == 1 else M + 1)
    return _ops.sin(_ramp(step / 2, step / 2 + (M - 1) * step, M, dtype, device, requires_grad))


def gaussian(M, *, std=1.0, sym=True, dtype=None, layout=_C.strided, device=None, requires_grad=False):
    """exp(-(n / std)^2 / 2) around the middle."""
    dtype = _check("gaussian", M, dtype, layout)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M == 0:
        return _empty(dtype, device, requires_grad)
    first, scale = -(M - 1 if sym or M == 1 else M) / 2, 1 / (std * math.sqrt(2))
    ramp = _ramp(first * scale, (first + M - 1) * scale, M, dtype, device, requires_grad)
    return _ops.exp(-(ramp * ramp))


def kaiser(M, *, beta=12.0, sym=True, dtype=None, layout=_C.strided, device=None, requires_grad=False):
    """i0(beta sqrt(1 - x^2)) / i0(beta), x from -1 to 1."""
    dtype = _check("kaiser", M, dtype, layout)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M == 0:
        return _empty(dtype, device, requires_grad)
    if M == 1:
        made = _ops.ones((1,), dtype=dtype, device=device)
        return made.requires_grad_() if requires_grad else made
    beta = float(beta)
    last = -beta + (M - 1) * 2 * beta / _steps(M, sym)
    ramp = _ramp(-beta, min(last, beta), M, dtype, device, requires_grad)
    height = _ops.sqrt(_ops.clamp(beta * beta - ramp * ramp, 0))  # rounding may give less than 0 at the end
    return _ops.i0(height) / _ops.i0(_C.tensor(beta, dtype=dtype, device=device))


def bartlett(M, *, sym=True, dtype=None, layout=_C.strided, device=None, requires_grad=False):
    """A triangle, 0 at its ends."""
    dtype = _check("bartlett", M, dtype, layout)
    if M == 0:
        return _empty(dtype, device, requires_grad)
    if M == 1:
        made = _ops.ones((1,), dtype=dtype, device=device)
        return made.requires_grad_() if requires_grad else made
    ramp = _ramp(-1, -1 + 2 * (M - 1) / _steps(M, sym), M, dtype, device, requires_grad)
    return 1 - _ops.abs(ramp)


def general_cosine(M, *, a, sym=True, dtype=None, layout=_C.strided, device=None, requires_grad=False):
    """The sum of (-1)^i a[i] cos(2 pi i n / (M - 1))."""
    dtype = _check("general_cosine", M, dtype, layout)
    if M == 0:
        return _empty(dtype, device, requires_grad)
    if M == 1:
        made = _ops.ones((1,), dtype=dtype, device=device)
        return made.requires_grad_() if requires_grad else made
    if not isinstance(a, (list, tuple)):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    ramp = _ramp(0, (M - 1) * 2 * math.pi / _steps(M, sym), M, dtype, device, requires_grad)
    shares = _C.tensor([(-1) ** i * each for i, each in enumerate(a)], dtype=dtype, device=device)
    waves = _ops.arange(len(a), dtype=dtype, device=device)
    return _ops.sum(_ops.unsqueeze(shares, -1) * _ops.cos(_ops.unsqueeze(waves, -1) * ramp), 0)


def general_hamming(M, *, alpha=0.54, sym=True, dtype=None, layout=_C.strided, device=None, requires_grad=False):
    """alpha - (1 - alpha) cos(2 pi n / (M - 1))"""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device,
                          requires_grad=requires_grad)


def hamming(M, *, sym=True, dtype=None, layout=_C.strided, device=None, requires_grad=False):
    """0.54 - 0.46 cos: small at its ends."""
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(M, *, sym=True, dtype=None, layout=_C.strided, device=None, requires_grad=False):
    """0.5 - 0.5 cos: 0 at its ends."""
    return general_hamming(M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device,
                           requires_grad=requires_grad)


def blackman(M, *, sym=True, dtype=None, layout=_C.strided, device=None, requires_grad=False):
    """0.42 - 0.5 cos + 0.08 cos of the double."""
    _check("blackman", M, dtype, layout)
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout, device=device,
                          requires_grad=requires_grad)


def nuttall(M, *, sym=True, dtype=None, layout=_C.strided, device=None, requires_grad=False):
    """Four terms of cosines, with small side lobes."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, dtype=dtype, layout=layout,
                          device=device, requires_grad=requires_grad)
