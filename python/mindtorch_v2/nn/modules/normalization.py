# SPDX-License-Identifier: Apache-2.0
"""LayerNorm, RMSNorm, GroupNorm."""

from .. import functional as F
from .. import init
from ..parameter import register_empty
from .module import Module

__all__ = ["GroupNorm", "LayerNorm", "RMSNorm"]


def _shape_of(normalized_shape):
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)


def ones_and_zeros(weight, bias):
    """Where scale and shift begin: they change nothing."""
    init.ones_(weight)
    if bias is not None:
        init.zeros_(bias)


class LayerNorm(Module):
    """Mean 0 and variance 1 over the last dimensions, then weight and bias."""

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None
    ):
        super().__init__()
        self.normalized_shape = _shape_of(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        shape = self.normalized_shape
        register_empty(self, "weight", shape if elementwise_affine else None, device, dtype)
        register_empty(self, "bias", shape if elementwise_affine and bias else None, device, dtype)
        self.reset_parameters()

    def reset_parameters(self):
        """Gives the parameters their first values again."""
        if self.elementwise_affine:
            ones_and_zeros(self.weight, self.bias)

    def forward(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """x / sqrt(mean(x^2) + eps) over the last dimensions, then weight."""

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape = _shape_of(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        register_empty(self, "weight", self.normalized_shape if elementwise_affine else None, device, dtype)
        self.reset_parameters()

    def reset_parameters(self):
        """Gives the parameters their first values again."""
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, x):
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Mean 0 and variance 1 over groups of channels, then weight and bias per channel."""

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]

    def __init__(
        self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None, *, bias=True
    ):
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        register_empty(self, "weight", num_channels if affine else None, device, dtype)
        register_empty(self, "bias", num_channels if affine and bias else None, device, dtype)
        self.reset_parameters()

    def reset_parameters(self):
        """Gives the parameters their first values again."""
        if self.affine:
            ones_and_zeros(self.weight, self.bias)

    def forward(self, input):
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )
