# SPDX-License-Identifier: Apache-2.0
"""torch.jit: functions and modules run as they are written; nothing is scripted, traced or stored as a script."""

import contextlib
from typing import Final

__all__ = ["Final", "annotate", "export", "fork", "ignore", "interface", "is_scripting", "is_tracing", "isinstance",
           "optimized_execution", "script", "script_if_tracing", "set_fusion_strategy", "strict_fusion", "unused",
           "wait"]

_isinstance = isinstance


def script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """The function, class or module itself."""
    return obj


def script_if_tracing(fn):
    """The function itself."""
    return fn


script_method = unused = export = interface = script_if_tracing


def ignore(drop=False, **kwargs):
    """The function itself, or a decorator."""
    return drop if callable(drop) else lambda fn: fn


def _overload(func):
    return func


_overload_method = _overload


def is_scripting():
    """No."""
    return False


def is_tracing():
    """No."""
    return False


def annotate(the_type, the_value):
    """The value."""
    return the_value


def isinstance(obj, target_type):  # noqa: A001 torch's name
    """Python's, which also takes typing's containers by their kind."""
    kinds = target_type if _isinstance(target_type, tuple) else (target_type,)
    return any(_isinstance(obj, getattr(kind, "__origin__", kind)) for kind in kinds)


def set_fusion_strategy(strategy):
    """Nothing is fused; an empty strategy was there before."""
    return []


@contextlib.contextmanager
def optimized_execution(should_optimize):
    """Changes nothing."""
    yield


strict_fusion = contextlib.nullcontext


class Future:
    """What fork() returns: the call was made, and this holds its result."""

    def __init__(self, value):
        self._value = value

    def value(self):
        """The result."""
        return self._value

    wait = value


def fork(func, *args, **kwargs):
    """Calls the function now."""
    return Future(func(*args, **kwargs))


def wait(future):
    """What the call returned."""
    return future.wait()
