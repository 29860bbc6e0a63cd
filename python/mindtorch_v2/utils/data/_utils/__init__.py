# SPDX-License-Identifier: Apache-2.0
"""Only the paths torch.utils.data._utils.collate, which torch documents, and pin_memory."""

from . import collate, pin_memory

__all__ = ["collate", "pin_memory"]
