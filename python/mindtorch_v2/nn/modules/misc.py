# SPDX-License-Identifier: Apache-2.0
"""Small modules around functions: distances, padding, pixels."""

from .. import functional as F
from .module import Module

__all__ = [
    "ConstantPad1d", "ConstantPad2d", "CosineSimilarity", "PairwiseDistance", "PixelShuffle", "ZeroPad1d",
    "ZeroPad2d",
]  # fmt: skip


class CosineSimilarity(Module):
    """x1 . x2 / (|x1| |x2|) along dim."""

    __constants__ = ["dim", "eps"]

    def __init__(self, dim=1, eps=1e-8):
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1, x2):
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """Norm of x1 - x2 along the last dimension."""

    __constants__ = ["norm", "eps", "keepdim"]

    def __init__(self, p=2.0, eps=1e-6, keepdim=False):
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1, x2):
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class PixelShuffle(Module):
    """(*, C r^2, H, W) to (*, C, H r, W r)."""

    __constants__ = ["upscale_factor"]

    def __init__(self, upscale_factor):
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input):
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self):
        return f"upscale_factor={self.upscale_factor}"


class _Frame(Module):
    """A value around the last `_dims` dimensions. padding: one width, or one for each end, the last
    dimension's first."""

    __constants__ = ["padding", "value"]
    _dims: int

    def __init__(self, padding, value):
        super().__init__()
        self.padding = (padding,) * (2 * self._dims) if isinstance(padding, int) else tuple(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class _ZeroFrame:
    """A frame of zeros: the value is not for the caller to choose."""

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        """The padding."""
        return str(self.padding)


class ConstantPad1d(_Frame):
    """Adds a value on both ends of the last dimension."""

    _dims = 1


class ConstantPad2d(_Frame):
    """Adds a value around the last two dimensions."""

    _dims = 2


class ZeroPad1d(_ZeroFrame, ConstantPad1d):
    """Adds zeros on both ends of the last dimension."""


class ZeroPad2d(_ZeroFrame, ConstantPad2d):
    """Adds zeros around the last two dimensions."""
