# SPDX-License-Identifier: Apache-2.0
"""Modules that add a frame: a value, or elements of the input itself."""

from .. import functional as F
from .module import Module

_KINDS = ("Circular", "Constant", "Reflection", "Replication", "Zero")
__all__ = [f"{kind}Pad{dims}d" for kind in _KINDS for dims in (1, 2, 3)]


class _Frame(Module):
    """padding: one width, or one for each end, the last dimension's first."""

    __constants__ = ["padding"]
    _dims: int
    _mode: str

    def __init__(self, padding):
        super().__init__()
        self.padding = (padding,) * (2 * self._dims) if isinstance(padding, int) else tuple(padding)

    def forward(self, input):
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self):
        return f"{self.padding}"


class _ConstantFrame(_Frame):
    __constants__ = ["padding", "value"]

    def __init__(self, padding, value):
        super().__init__(padding)
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
        return f"{self.padding}"


class _CircularFrame(_Frame):
    _mode = "circular"

    def forward(self, input):
        if input.dim() not in (self._dims + 1, self._dims + 2):
            raise ValueError(f"expected {self._dims + 1}D or {self._dims + 2}D input (got {input.dim()}D input)")
        return super().forward(input)


class _ReflectionFrame(_Frame):
    _mode = "reflect"


class _ReplicationFrame(_Frame):
    _mode = "replicate"


class ConstantPad1d(_ConstantFrame):
    """Adds a value on both ends of the last dimension."""

    _dims = 1


class ConstantPad2d(_ConstantFrame):
    """Adds a value around the last two dimensions."""

    _dims = 2


class ConstantPad3d(_ConstantFrame):
    """Adds a value around the last three dimensions."""

    _dims = 3


class ZeroPad1d(_ZeroFrame, ConstantPad1d):
    """Adds zeros on both ends of the last dimension."""


class ZeroPad2d(_ZeroFrame, ConstantPad2d):
    """Adds zeros around the last two dimensions."""


class ZeroPad3d(_ZeroFrame, ConstantPad3d):
    """Adds zeros around the last three dimensions."""


class CircularPad1d(_CircularFrame):
    """Adds the other end's elements to the last dimension."""

    _dims = 1


class CircularPad2d(_CircularFrame):
    """Adds the other ends' elements to the last two dimensions."""

    _dims = 2


class CircularPad3d(_CircularFrame):
    """Adds the other ends' elements to the last three dimensions."""

    _dims = 3


class ReflectionPad1d(_ReflectionFrame):
    """Adds the mirrored input to the last dimension."""

    _dims = 1


class ReflectionPad2d(_ReflectionFrame):
    """Adds the mirrored input to the last two dimensions."""

    _dims = 2


class ReflectionPad3d(_ReflectionFrame):
    """Adds the mirrored input to the last three dimensions."""

    _dims = 3


class ReplicationPad1d(_ReplicationFrame):
    """Adds the outermost elements to the last dimension."""

    _dims = 1


class ReplicationPad2d(_ReplicationFrame):
    """Adds the outermost elements to the last two dimensions."""

    _dims = 2


class ReplicationPad3d(_ReplicationFrame):
    """Adds the outermost elements to the last three dimensions."""

    _dims = 3
