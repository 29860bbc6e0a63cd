# SPDX-License-Identifier: Apache-2.0
"""torch.nn: modules, parameters, functional, init, utils."""

from . import attention, functional, init, utils
from .modules import *  # noqa: F403
from .modules import __all__ as _modules
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "attention", "functional", "init",
    "utils", *_modules,
]  # fmt: skip


def __getattr__(name):
    if name in ("DataParallel", "parallel"):
        import importlib

        parallel = importlib.import_module(__name__ + ".parallel")
        return parallel if name == "parallel" else parallel.DataParallel
    raise AttributeError(f"mindtorch_v2.nn has no '{name}'")
