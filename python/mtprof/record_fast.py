# SPDX-License-Identifier: Apache-2.0
"""Scopes with inputs: torch's low-level relatives of record_function."""
from typing import Any

from mtprof import _mtprof


class _RecordFunctionFast:
    """A scope with inputs (tensors of any library, numbers, texts, lists) and keyword values."""

    __slots__ = ("name", "input_values", "keyword_values", "_open")

    def __init__(self, name: str, input_values: "list[Any] | tuple[Any, ...] | None" = None,
                 keyword_values: "dict[str, Any] | None" = None) -> None:
        if not isinstance(name, str):
            raise RuntimeError(f"The name passed to RecordFunctionFast must be a string, not {name!r}")
        if input_values is not None and not isinstance(input_values, (list, tuple)):
            raise RuntimeError(f"input_values must be a list or tuple, not {input_values!r}")
        if keyword_values is not None and not isinstance(keyword_values, dict):
            raise RuntimeError(f"keyword_values must be a dict, not {keyword_values!r}")
        self.name = name
        self.input_values = input_values
        self.keyword_values = keyword_values
        self._open: list[int] = []

    def __enter__(self) -> None:
        inputs = tuple(self.input_values or ())
        self._open.append(_mtprof.begin_inputs(self.name, inputs, self.keyword_values))
        return None

    def __exit__(self, *_: object) -> None:
        if self._open:
            _mtprof.end(self._open.pop())


def _record_function_with_args_enter(name, *args):
    """Begins a scope with inputs and returns what _record_function_with_args_exit() takes."""
    return _mtprof.begin_inputs(name, args, None)


def _record_function_with_args_exit(handle):
    """Ends it."""
    _mtprof.end(handle)
