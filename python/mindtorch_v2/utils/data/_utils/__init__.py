# SPDX-License-Identifier: Apache-2.0
"""Only the path torch.utils.data._utils.collate, which torch documents."""

from . import collate

__all__ = ["collate"]
