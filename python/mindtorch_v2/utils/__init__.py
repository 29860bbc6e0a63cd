# SPDX-License-Identifier: Apache-2.0
"""torch.utils: data loading, benchmarks, TensorBoard's files, the handles of hooks."""

from . import dlpack, hooks
from ._swap import swap_tensors

__all__ = ["benchmark", "checkpoint", "data", "dlpack", "hooks", "swap_tensors"]  # tensorboard needs a package


def __getattr__(name):
    """Imports packages when they are first used: utils.data brings multiprocessing's machinery with it."""
    if name in ("_pytree", "benchmark", "checkpoint", "data", "tensorboard"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
