# SPDX-License-Identifier: Apache-2.0
"""torch.cuda's name for the accelerator: everything is npu's."""

from ..npu import *  # noqa: F403 the same names


def __getattr__(name):
    if name == "amp":
        import importlib
        return importlib.import_module(f"{__name__}.amp")
    if name == "nvtx":
        from .. import _nvtx
        return _nvtx
    from .._legacy_types import CUDA
    if name in CUDA:
        return CUDA[name]
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
