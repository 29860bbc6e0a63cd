# SPDX-License-Identifier: Apache-2.0
"""Types of several named results: torch.max(x, 1) gives a return_types.max(values, indices)."""

from collections import namedtuple

from . import _C

globals().update(_C._return_types)


# Of functions that are no rows of the op table:

class histogram(namedtuple("histogram", ("hist", "bin_edges"))):
    """What torch.histogram() gives."""

    __slots__ = ()

    def __repr__(self):
        shown = ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self))
        return f"torch.return_types.{type(self).__name__}(\n{shown})"


class histogramdd(histogram):
    """What torch.histogramdd() gives."""

    __slots__ = ()


__all__ = sorted((*_C._return_types, "histogram", "histogramdd"))
