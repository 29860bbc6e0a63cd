# SPDX-License-Identifier: Apache-2.0
"""torch.onnx: nothing is exported."""

__all__ = ["is_in_onnx_export"]


def is_in_onnx_export():
    """No."""
    return False
