# SPDX-License-Identifier: Apache-2.0
"""torch's documented place of collate() and its table; see collating.py."""

from ..collating import collate, default_collate, default_collate_fn_map, default_convert

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]
