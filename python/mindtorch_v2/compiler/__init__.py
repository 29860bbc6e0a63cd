# SPDX-License-Identifier: Apache-2.0
"""torch.compiler: nothing is compiled. A program that asks for it runs as it is written."""

import contextlib

__all__ = ["compile", "disable", "is_compiling", "is_dynamo_compiling", "is_exporting", "reset", "allow_in_graph",
           "assume_constant_result", "cudagraph_mark_step_begin", "set_stance", "list_backends"]


def compile(model=None, *, fullgraph=False, dynamic=None, backend="inductor", mode=None, options=None, disable=False,
            **more):
    """The function or module itself; without one, a decorator that returns what it decorates."""
    if model is None:
        return lambda model: model
    if not callable(model):
        raise TypeError(f"compile: a function or a module is needed, not {type(model).__name__}")
    return model


def disable(fn=None, recursive=True, *, reason=None):
    """The function itself, or a decorator."""
    return fn if fn is not None else lambda fn: fn


def allow_in_graph(fn):
    """The function itself."""
    return fn


assume_constant_result = allow_in_graph


def is_compiling():
    """No."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def reset():
    """Forgets what was compiled: nothing was."""


def cudagraph_mark_step_begin():
    """There are no graphs to tell it."""


def list_backends(exclude_tags=()):
    """None."""
    return []


@contextlib.contextmanager
def set_stance(stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
    """Nothing is compiled under any stance."""
    yield
