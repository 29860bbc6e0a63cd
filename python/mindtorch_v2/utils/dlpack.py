# SPDX-License-Identifier: Apache-2.0
"""Tensors to and from other libraries without a copy, by DLPack."""

from mindtorch_v2._C import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
