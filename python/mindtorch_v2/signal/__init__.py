# SPDX-License-Identifier: Apache-2.0
"""torch.signal: windows for signals."""

from . import windows

__all__ = ["windows"]
