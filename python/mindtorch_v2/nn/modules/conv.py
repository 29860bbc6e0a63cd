# SPDX-License-Identifier: Apache-2.0
"""Conv1d, Conv2d."""

import math

from .. import functional as F
from .. import init
from ..parameter import register_empty
from .module import Module

__all__ = ["Conv1d", "Conv2d"]

_PADDING_STRINGS = ("same", "valid")
_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


def _tuple_of(value, count):
    return (value,) * count if not isinstance(value, (tuple, list)) else tuple(value)


class _ConvNd(Module):
    __constants__ = [
        "stride", "padding", "dilation", "groups", "padding_mode", "output_padding", "in_channels",
        "out_channels",
        "kernel_size",
    ]

    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, dilation, transposed,
        output_padding, groups,
        bias, padding_mode, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in _PADDING_STRINGS:
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
            if padding == "same" and any(step != 1 for step in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(
                "padding_mode must be one of {'zeros', 'reflect', 'replicate', 'circular'}, "
                f"but got padding_mode='{padding_mode}'"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._both_sides()
        register_empty(self, "weight", (out_channels, in_channels // groups, *kernel_size), device, dtype)
        register_empty(self, "bias", out_channels if bias else None, device, dtype)
        self.reset_parameters()

    def _both_sides(self):
        """The padding as F.pad takes it, last dimension first."""
        if not isinstance(self.padding, str):
            return [value for value in reversed(self.padding) for _ in range(2)]
        both = [0, 0] * len(self.kernel_size)
        if self.padding == "same":
            places = range(len(self.kernel_size) - 1, -1, -1)
            for d, k, place in zip(self.dilation, self.kernel_size, places):
                total = d * (k - 1)
                both[2 * place] = total // 2
                both[2 * place + 1] = total - total // 2
        return both

    def reset_parameters(self):
        """Gives the parameters their first values again."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def _conv_forward(self, run, input, weight, bias):
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = (0,) * len(self.kernel_size)
        return run(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def extra_repr(self):
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"
        text += f", stride={self.stride}"
        if self.padding != (0,) * len(self.padding):
            text += f", padding={self.padding}"
        if self.dilation != (1,) * len(self.dilation):
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class Conv1d(_ConvNd):
    """Convolution of (N, C, L) or (C, L)."""

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
        padding_mode="zeros", device=None, dtype=None,
    ):  # fmt: skip
        super().__init__(
            in_channels, out_channels, _tuple_of(kernel_size, 1), _tuple_of(stride, 1),
            padding if isinstance(padding, str) else _tuple_of(padding, 1), _tuple_of(dilation, 1), False,
            (0,), groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def forward(self, input):
        return self._conv_forward(F.conv1d, input, self.weight, self.bias)


class Conv2d(_ConvNd):
    """Convolution of (N, C, H, W) or (C, H, W)."""

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
        padding_mode="zeros", device=None, dtype=None,
    ):  # fmt: skip
        super().__init__(
            in_channels, out_channels, _tuple_of(kernel_size, 2), _tuple_of(stride, 2),
            padding if isinstance(padding, str) else _tuple_of(padding, 2), _tuple_of(dilation, 2), False,
            (0, 0), groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def forward(self, input):
        return self._conv_forward(F.conv2d, input, self.weight, self.bias)
