# SPDX-License-Identifier: Apache-2.0
"""torch.utils: data loading and the handles of hooks."""

from . import dlpack, hooks

__all__ = ["checkpoint", "data", "dlpack", "hooks"]


def __getattr__(name):
    """Imports packages when they are first used: utils.data brings multiprocessing's machinery with it."""
    if name in ("_pytree", "checkpoint", "data"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
