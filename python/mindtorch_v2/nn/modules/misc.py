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


class _ConstantPadNd(Module):
    __constants__ = ["padding", "value"]
    _sides = 0

    def __init__(self, padding, value):
        super().__init__()
        self.padding = (padding,) * self._sides if isinstance(padding, int) else tuple(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Adds a value on both ends of the last dimension."""

    _sides = 2


class ConstantPad2d(_ConstantPadNd):
    """Adds a value around the last two dimensions."""

    _sides = 4


class ZeroPad1d(ConstantPad1d):
    """Adds zeros on both ends of the last dimension."""

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Adds zeros around the last two dimensions."""

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"
