# SPDX-License-Identifier: Apache-2.0
"""torch's documented place of collate() and its table; see collating.py."""

import re

from ..collating import _collate_tensors as collate_tensor_fn  # noqa: F401
from ..collating import collate, default_collate, default_collate_fn_map, default_convert

np_str_obj_array_pattern = re.compile(r"[SaUO]")  # kinds of arrays that become no tensors

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]
