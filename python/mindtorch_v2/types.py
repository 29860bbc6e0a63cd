# SPDX-License-Identifier: Apache-2.0
"""Names for annotations, as torch.types has them."""

from typing import Union

from . import _C

_int, _float, _bool = int, float, bool
_dtype, _device, _layout, _size = _C.dtype, _C.device, _C.layout, Union[_C.Size, list[int], tuple[int, ...]]
Number = Union[int, float, bool]
Device = Union[_C.device, str, int, None]
