# SPDX-License-Identifier: Apache-2.0
"""Convolutions of one to three dimensions, and transposed ones."""

import math

from .. import functional as F
from .. import init
from ..parameter import register_empty
from .module import Module

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
]  # fmt: skip

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
        sides = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        register_empty(self, "weight", (*sides, *kernel_size), device, dtype)
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
        if self.output_padding != (0,) * len(self.output_padding):
            text += f", output_padding={self.output_padding}"
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


class Conv3d(_ConvNd):
    """Convolution of (N, C, D, H, W) or (C, D, H, W)."""

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
        padding_mode="zeros", device=None, dtype=None,
    ):  # fmt: skip
        super().__init__(
            in_channels, out_channels, _tuple_of(kernel_size, 3), _tuple_of(stride, 3),
            padding if isinstance(padding, str) else _tuple_of(padding, 3), _tuple_of(dilation, 3), False,
            (0, 0, 0), groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def forward(self, input):
        return self._conv_forward(F.conv3d, input, self.weight, self.bias)


class _ConvTransposeNd(_ConvNd):
    _dims: int

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True,
        dilation=1, padding_mode="zeros", device=None, dtype=None,
    ):  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        lists = [_tuple_of(value, self._dims) for value in (kernel_size, stride, padding, dilation)]
        super().__init__(
            in_channels, out_channels, *lists, True, _tuple_of(output_padding, self._dims), groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip

    def _output_padding(self, input, output_size):
        """What makes the output `output_size` large."""
        if output_size is None:
            return self.output_padding
        dims = self._dims
        extra = input.dim() - dims
        if len(output_size) == extra + dims:
            output_size = output_size[extra:]
        if len(output_size) != dims:
            raise ValueError(
                f"ConvTranspose{dims}D: for {input.dim()}D input, output_size must have {dims} or {extra + dims} "
                f"elements (got {len(output_size)})"
            )
        least = [
            (side - 1) * step - 2 * pad + spread * (kernel - 1) + 1
            for side, step, pad, spread, kernel in zip(
                input.shape[extra:], self.stride, self.padding, self.dilation, self.kernel_size
            )
        ]
        most = [low + step - 1 for low, step in zip(least, self.stride)]
        if any(not low <= size <= high for low, size, high in zip(least, output_size, most)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {least} to {most} "
                f"(for an input of {input.size()[2:]})"
            )
        return tuple(size - low for size, low in zip(output_size, least))

    def _run(self, run, input, output_size):
        more = self._output_padding(input, output_size)
        return run(input, self.weight, self.bias, self.stride, self.padding, more, self.groups, self.dilation)


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution of (N, C, L) or (C, L)."""

    _dims = 1

    def forward(self, input, output_size=None):
        return self._run(F.conv_transpose1d, input, output_size)


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution of (N, C, H, W) or (C, H, W)."""

    _dims = 2

    def forward(self, input, output_size=None):
        return self._run(F.conv_transpose2d, input, output_size)


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution of (N, C, D, H, W) or (C, D, H, W)."""

    _dims = 3

    def forward(self, input, output_size=None):
        return self._run(F.conv_transpose3d, input, output_size)
