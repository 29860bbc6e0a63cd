# SPDX-License-Identifier: Apache-2.0
"""record_function for programs that torch.compile may trace: inside compiled code a scope is nothing, as torch's."""
import contextlib
import functools
import inspect

import mtprof
from torch.compiler import is_dynamo_compiling

_NOT_PLAIN = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)


class _Scope(mtprof.record_function):
    """mtprof.record_function, whose decorator torch.compile can look through."""

    def __call__(self, function):
        recorded = super().__call__(function)
        if not inspect.isfunction(function) or any(test(function) for test in _NOT_PLAIN):
            return recorded

        @functools.wraps(function)
        def either(*args, **kwargs):
            if is_dynamo_compiling():
                return function(*args, **kwargs)
            return recorded(*args, **kwargs)
        return either


def record_function(name, args=None, **metadata):
    """A scope with a name, as a context manager or a decorator; `metadata` are values shown with it."""
    if is_dynamo_compiling():
        return contextlib.nullcontext()
    return _Scope(name, args, **metadata)
