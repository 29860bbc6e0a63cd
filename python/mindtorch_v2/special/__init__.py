# SPDX-License-Identifier: Apache-2.0
"""torch.special: functions of probability and physics. Rows of the op table whose names begin with special_."""

from .. import _overriding
from .._C import Tensor, ops as _ops

_ROWS = """
    bessel_j0 bessel_j1 bessel_y0 bessel_y1 digamma entr erf erfc erfcx erfinv exp2 expit expm1 gammainc gammaincc
    gammaln i0 i0e i1 i1e log1p log_ndtr logit logsumexp modified_bessel_i0 modified_bessel_i1 modified_bessel_k0
    modified_bessel_k1 multigammaln ndtr ndtri polygamma psi scaled_modified_bessel_k0 scaled_modified_bessel_k1 sinc
    spherical_bessel_j0
""".split()

for _name in _ROWS:
    globals()[_name] = getattr(_ops, f"special_{_name}")


def _of_numbers(name):
    row = getattr(_ops, f"special_{name}")

    def function(input, other, *, out=None):
        operands = [each if isinstance(each, Tensor) else _ops.scalar_tensor(each, device=place.device)
                    for each, place in ((input, other), (other, input))]
        return row(*operands, out=out)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = row.__doc__
    return function


xlog1py, xlogy, zeta = _of_numbers("xlog1py"), _of_numbers("xlogy"), _of_numbers("zeta")


def round(input, *, decimals=0, out=None):
    """Rounded to the nearest whole number, or to a digit after the point."""
    return _ops.round(input, decimals=decimals, out=out) if decimals else _ops.round(input, out=out)


def softmax(input, dim, *, dtype=None):
    """torch.softmax() under this name."""
    return _ops.softmax(input, dim, dtype=dtype)


def log_softmax(input, dim, *, dtype=None):
    """torch.log_softmax() under this name."""
    return _ops.log_softmax(input, dim, dtype=dtype)


__all__ = sorted([*_ROWS, "log_softmax", "round", "softmax", "xlog1py", "xlogy", "zeta"])


_overriding.offer_all(globals())
