# SPDX-License-Identifier: Apache-2.0
"""Ranges for Intel's ITT, which this build does not have: torch.profiler.itt as torch without ITT has it."""
from typing import NoReturn

__all__ = ["is_available", "range_push", "range_pop", "mark", "range"]


def is_available() -> bool:
    """Whether ranges go anywhere. They do not."""
    return False


def _missing(*_: object) -> NoReturn:
    raise RuntimeError("ITT functions not installed. Are you sure you have a ITT build?")


def range_push(msg: str) -> int:
    """Begins a range."""
    _missing(msg)


def range_pop() -> int:
    """Ends the innermost range."""
    _missing()


def mark(msg: str) -> None:
    """Marks a point in time."""
    _missing(msg)


class range:
    """A range around a block, named by msg.format(*args, **kwargs)."""

    def __init__(self, msg: str, *args: object, **kwargs: object) -> None:
        self._name = msg.format(*args, **kwargs)

    def __enter__(self) -> None:
        range_push(self._name)

    def __exit__(self, *_: object) -> None:
        range_pop()
