# SPDX-License-Identifier: Apache-2.0
"""Types of several named results: torch.max(x, 1) gives a return_types.max(values, indices)."""

from . import _C

globals().update(_C._return_types)
__all__ = sorted(_C._return_types)
