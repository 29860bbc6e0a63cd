# SPDX-License-Identifier: Apache-2.0
"""torch._jit_internal: marks for a compiler that is not there; each returns the function as it is."""

from ..jit import export, ignore, is_scripting, unused

__all__ = ["export", "ignore", "is_scripting", "unused"]


def _copy_to_script_wrapper(fn):
    """The function."""
    return fn


def _overload_method(func):
    """The method."""
    return func


_overload = _overload_method
