# SPDX-License-Identifier: Apache-2.0
"""torch's place of pin_memory(); see loading/pinning.py."""

from ..loading.pinning import pinned as pin_memory

__all__ = ["pin_memory"]
