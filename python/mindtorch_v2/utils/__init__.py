# SPDX-License-Identifier: Apache-2.0
"""torch.utils: data loading and the handles of hooks."""

from . import dlpack, hooks

__all__ = ["data", "dlpack", "hooks"]


def __getattr__(name):
    """Imports utils.data when it is first used: it brings multiprocessing's machinery with it."""
    if name == "data":
        import importlib

        return importlib.import_module(__name__ + ".data")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
