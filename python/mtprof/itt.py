# SPDX-License-Identifier: Apache-2.0
"""Ranges for Intel's ITT, which this build does not have: torch.profiler.itt as torch without ITT has it."""
__all__ = ["is_available", "range_push", "range_pop", "mark", "range"]


def is_available():
    """Whether ranges go anywhere. They do not."""
    return False


def _missing(*_):
    raise RuntimeError("ITT functions not installed. Are you sure you have a ITT build?")


def range_push(msg):
    """Begins a range."""
    return _missing(msg)


def range_pop():
    """Ends the innermost range."""
    return _missing()


def mark(msg):
    """Marks a point in time."""
    return _missing(msg)


class range:
    """A range around a block, named by msg.format(*args, **kwargs)."""

    def __init__(self, msg, *args, **kwargs):
        self._name = msg.format(*args, **kwargs)

    def __enter__(self):
        range_push(self._name)

    def __exit__(self, *_):
        range_pop()
