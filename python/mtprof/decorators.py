# SPDX-License-Identifier: Apache-2.0
"""record_function as a decorator: what it wraps decides what a scope lasts for.

A function's scope is its call. A coroutine's or a generator's lasts from its first step to its end, with
whatever else runs in between: the scopes of several of them overlap.
"""
import functools
import inspect

from mtprof import _mtprof


def decorate(scope, function):
    """The function with a scope around each call. Called by record_function.__call__."""
    if not callable(function):
        raise TypeError(f"record_function: expected a function to decorate, got {function!r}")
    if type(scope) is _mtprof.record_function:
        name, args, metadata = scope.name, scope.args, scope.metadata
        plain = args is None and not metadata

        def new():
            return _mtprof.record_function(name) if plain else _mtprof.record_function(name, args, **metadata)
    else:
        def new():
            return scope

    if inspect.iscoroutinefunction(function):
        async def wrapper(*args, **kwargs):
            with new():
                return await function(*args, **kwargs)
    elif inspect.isasyncgenfunction(function):
        async def wrapper(*args, **kwargs):
            with new():
                inner = function(*args, **kwargs)
                try:
                    sent, raised = None, None
                    while True:
                        try:
                            if raised is not None:
                                item = await inner.athrow(raised)
                            else:
                                item = await inner.asend(sent)
                        except StopAsyncIteration:
                            return
                        sent, raised = None, None
                        try:
                            sent = yield item
                        except GeneratorExit:
                            raise
                        except BaseException as error:
                            raised = error
                finally:
                    await inner.aclose()
    elif inspect.isgeneratorfunction(function):
        def wrapper(*args, **kwargs):
            with new():
                return (yield from function(*args, **kwargs))
    else:
        def wrapper(*args, **kwargs):
            with new():
                return function(*args, **kwargs)
    return functools.wraps(function)(wrapper)
