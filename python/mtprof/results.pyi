# SPDX-License-Identifier: Apache-2.0
"""Types of results.py; tests/python/test_types.py compares names and parameters with what runs."""
from collections.abc import Callable, Iterable
from os import PathLike
from typing import Any, Literal

from mtprof._mtprof import FunctionEvent, Model
from mtprof.events import Columns, EventList, FunctionEventAvg

_Path = str | bytes | PathLike[str] | PathLike[bytes]
_Progress = Callable[[str, int, int], object]

class Health:
    lost: int
    lost_by: dict[str, int]
    unmatched: int
    truncated: int
    begins: int
    others: int
    launches: int
    activities: int
    threads: int
    evicted: int
    stalls: int
    busy_at_stop: int
    texts_cut: int
    clock_back: int
    stacks_missed: int
    bytes: int
    written_behind: bool
    pair_cost_ns: float
    reason: str | None
    findings: dict[str, int]
    def __init__(self, models: Iterable[Model], reason: str | None = None) -> None: ...
    @property
    def events(self) -> int: ...
    @property
    def ok(self) -> bool: ...
    def __getattr__(self, name: str) -> int: ...  # the recorder's further counters

class Results:
    with_modules: bool
    def __init__(self, models: Iterable[Model], *, use_device: str | None = None, record_shapes: bool = False,
                 profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False,
                 with_modules: bool = False, reason: Callable[[], str] | None = None,
                 flavor: str | None = None) -> None: ...
    def events(self, *, marks: bool = False) -> EventList[FunctionEvent]: ...
    def marks(self, kind: Literal["instant", "counter", "flow"] | None = None) -> EventList[FunctionEvent]: ...
    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> EventList[FunctionEventAvg]: ...
    def total_average(self) -> FunctionEventAvg: ...
    @property
    def self_cpu_time_total(self) -> float: ...
    def table(self, *args: Any, **kwargs: Any) -> str: ...
    def columns(self) -> Columns: ...
    def export(self, format: str, path: _Path, **options: Any) -> Any: ...
    def export_chrome_trace(self, path: _Path, flavor: str | None = None,
                            progress: _Progress | None = None) -> None: ...
    def export_stacks(self, path: _Path, metric: str = "self_cpu_time_total") -> None: ...
    def export_memory_timeline(self, path: _Path, device: str | None = None) -> Any: ...
    def export_execution(self, path: _Path) -> None: ...
    def health(self) -> Health: ...
    def metadata(self) -> dict[str, Any]: ...

class Trace(Results):
    path: str | bytes
    use_device: str | None
    record_shapes: bool
    profile_memory: bool
    with_stack: bool
    with_flops: bool
    def __init__(self, path: str | bytes, model: Model) -> None: ...
    @property
    def info(self) -> dict[str, Any]: ...
    @property
    def profiler(self) -> Trace: ...
    @property
    def function_events(self) -> EventList[FunctionEvent]: ...
    def get_trace_id(self) -> str | None: ...

def load(path: _Path, *, discarded: bool = False, keep_duplicates: bool = False,
         progress: _Progress | None = None) -> Trace: ...
