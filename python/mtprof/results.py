# SPDX-License-Identifier: Apache-2.0
"""Results: what a window, or a trace from a file, says; events, averages, files, health, explanations."""
from __future__ import annotations

import functools
import os

from . import _mtprof
from ._mtprof import (
    WANT_ALLOCS as _ALLOCS, WANT_FLOPS as _FLOPS, WANT_INPUTS as _INPUTS, WANT_MEMORY as _MEMORY,
    WANT_MODULES as _MODULES, WANT_STACKS as _STACKS)
from ._warnings import warn
from .averages import rows_of_items, rows_of_model
from .event_lists import flavor_of
from .function_events import MARKS, format_time, mark_event

HOST_KEY = "mtprof_host"  # trace metadata of mtprof.torch

TYPE_CHECKING = False  # typing's, which takes longer to import than this module
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from os import PathLike
    from typing import Any, Literal

    from ._mtprof import FunctionEvent, Model
    from .events import ArrowTable, Columns, EventList, FunctionEventAvg
    from .notebook import Report

    _Path = str | bytes | PathLike[str] | PathLike[bytes]
    _Progress = Callable[[str, int, int], object]
else:
    from .event_lists import ArrowTable, EventList


def _damage_text(problems, size, offset):
    places = "1 place" if problems == 1 else f"{problems} places"
    return f"damaged in {places}, {size} bytes unreadable, the first at byte {offset}"


def has_device_work(model: Model) -> bool:
    """Whether a recording of ours has launches or device work; for other tools' files only their events can say."""
    counted = model.health()
    return model.info["foreign"] or counted["launches"] + counted["activities"] > 0


class Health:
    """What a recording knows about itself: how much it holds, what it lost and why, what it costs.

    events, begins, others, launches, activities, threads: recorded. lost, lost_by: a number, and a dict
    by cause. unmatched: launches without device work. truncated: scopes cut off. pair_cost_ns: own cost of
    a scope. problems, problem_bytes, problem_offset: damaged places of the trace, bytes in them, the first.
    reason: why there is nothing, where there is nothing. findings: what analysing found. host: of a program of stock
    torch a dict with its version, the tier at which it was observed, and what is missing (docs/torch-host.md).
    """

    lost_by: dict[str, int]
    findings: dict[str, int]
    reason: str | None
    host: dict[str, str] | None
    problem_offset: int | None
    written_behind: bool
    unlocked: bool
    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> int: ...  # the recorder's further counters

    def __init__(self, models: Iterable[Model], reason: str | None = None, host: dict[str, str] | None = None) -> None:
        self.lost_by, self.findings = {}, {}
        self.lost = self.unmatched = self.truncated = self.begins = self.problems = self.problem_bytes = 0
        self.problem_offset = None
        self.pair_cost_ns = 0.0
        for model in models:
            self._add(model.health(), model.findings())
        self.reason = reason
        self.host = host

    def _add(self, counters, findings):
        for name, value in counters.items():
            if name == "lost_by":
                for cause, lost in value.items():
                    self.lost_by[cause] = self.lost_by.get(cause, 0) + lost
            elif name == "problem_offset":
                if counters["problems"] and self.problem_offset is None:
                    self.problem_offset = value
            elif name in ("pair_cost_ns", "written_behind", "unlocked", "threads", "limit_ppm", "limit_level"):
                setattr(self, name, max(getattr(self, name, 0), value))
            else:
                setattr(self, name, getattr(self, name, 0) + value)
        for name, value in findings.items():
            self.findings[name] = self.findings.get(name, 0) + value

    @property
    def events(self) -> int:
        """Events that the results have."""
        return self.findings.get("events", 0)

    @property
    def cut(self) -> int:
        """Details that did not fit a bound (docs/bounds.md): texts, payloads, stacks, entries of other tools' files."""
        found = self.findings
        return (getattr(self, "texts_cut", 0) + getattr(self, "stacks_missed", 0) + found.get("left_out", 0)
                + found.get("skipped", 0))

    @property
    def ok(self) -> bool:
        """Whether nothing was lost, damaged, cut off, left out or left unanswered."""
        return not (self.lost or self.unmatched or self.truncated or self.problems or self.cut
                    or getattr(self, "unrecorded", 0) or getattr(self, "without_payload", 0))

    def __str__(self):
        if self.lost:
            causes = ", ".join(f"{cause} {lost}" for cause, lost in self.lost_by.items())
            lost = f"{self.lost} lost ({causes})"
        else:
            lost = "none lost"
        text = (f"{self.events} event{'' if self.events == 1 else 's'}, {lost}, {self.unmatched} launches unmatched, "
                f"{self.truncated} scopes truncated, {self.pair_cost_ns:.1f} ns a scope")
        if self.cut:
            text += f", {self.cut} detail{'' if self.cut == 1 else 's'} cut"
        if getattr(self, "unrecorded", 0):
            text += f", {self.unrecorded} left out to keep the overhead below {self.limit_ppm / 1e4:g} %"
        if self.problems:
            text += f"; {_damage_text(self.problems, self.problem_bytes, self.problem_offset)}"
        if self.host:
            text += f"; {self.host['name']} {self.host['version']}, tier {self.host['tier']}"
            text += f" ({self.host['missing']})" if self.host["missing"] else ""
        return f"{text}; {self.reason}" if self.reason else text

    def __repr__(self):
        return f"<Health {self}>"


class _MemoryTimeline:
    """Memory by category over time (prof.mem_tl): written again, in any form and for any device."""

    def __init__(self, model):
        self._model = model

    def __repr__(self):
        return f"<memory timeline of {self._model!r}>"

    def _export(self, kind, path, device):
        self._model.export(kind, path, device=str(device) if device is not None else None)

    def export_memory_timeline(self, path, device_str=None):
        """torch's [times, sizes]."""
        self._export("memory", path, device_str)

    def export_memory_timeline_raw(self, path, device_str=None):
        """Every change: [time, action, bytes, category]."""
        self._export("memory_raw", path, device_str)

    def export_memory_timeline_html(self, path, device_str=None):
        """A chart."""
        self._export("memory_html", path, device_str)


class Finding:
    """One finding: `id` ("data-wait" …), `title`, `share` of the wall time, `gain_s` (seconds that it costs at most),
    `confidence` ("high" or "medium"), `evidence` (a list of dicts, each with a `text`) and `advice`."""

    id: str
    title: str
    share: float
    gain_s: float
    confidence: str
    evidence: list[dict[str, Any]]
    advice: str

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)

    def __repr__(self):
        return f"<Finding {self.id}: {100 * self.share:.1f} %, {self.gain_s:.6f} s>"


class Explanation(str):
    """Why a program is slow. It is the text itself, so print() shows it.

    findings: a list of Finding, the most important first. clean: whether there is none. parts: seconds of the wall
    time by what they went to; they add up to trace["wall_s"]. trace: what is true of the trace as a whole.
    """

    findings: list[Finding]
    clean: bool
    parts: dict[str, float]
    trace: dict[str, Any]
    _texts: tuple[str, str, str, str, str]

    @classmethod
    def of_model(cls, model: Model, step: int | None = None) -> Explanation:
        """Explains a model, or one of its steps."""
        import json  # not where nobody asks: it takes longer than this module
        texts = model.explain(step)
        made = cls(texts[0])
        values = json.loads(texts[3])
        made.findings = [Finding(one) for one in values["findings"]]
        made.clean, made.parts, made.trace = values["clean"], values["parts"], values["trace"]
        made._texts = texts
        return made

    @classmethod
    def of_nothing(cls, reason: str) -> Explanation:
        """Where there are no events: why."""
        import html
        import json
        made = cls(reason)
        made.findings, made.clean, made.parts, made.trace = [], True, {}, {"events": 0}
        text = json.dumps({"schema": 1, "trace": made.trace, "parts": {}, "findings": [], "clean": True,
                           "reason": reason})
        made._texts = (reason, reason, text, text, f"<div>{html.escape(reason)}</div>")
        return made

    def to_json(self, limit: bool = True) -> str:
        """Schema 1 of docs/explain.md as text; limit: at most 4 kB, what is left out is counted."""
        return self._texts[2 if limit else 3]

    def to_markdown(self) -> str:
        """The text as Markdown."""
        return self._texts[1]

    def _repr_markdown_(self) -> str:
        return self._texts[1]

    def _repr_html_(self) -> str:
        return self._texts[4]

    def __repr__(self):
        return f"<Explanation: {', '.join(one.id for one in self.findings) or 'clean'}>"


class Results:
    """The results of one window (or, with several models, of several sessions, the latest first)."""

    def __init__(self, models: Iterable[Model], *, use_device: str | None = None, record_shapes: bool = False,
                 profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False,
                 with_modules: bool = False, reason: Callable[[], str] | None = None,
                 flavor: str | None = None) -> None:
        self._models = list(models)
        self._facts = {"use_device": use_device, "profile_memory": profile_memory, "with_flops": with_flops}
        self._flags = {"record_shapes": record_shapes, "profile_memory": profile_memory,
                       "with_stack": with_stack}
        self.with_modules = with_modules
        self._reason = reason
        self._warned = False
        self._flavor = flavor
        self._events = None
        for model in self._models:
            model.use_device = use_device

    # ---- events and averages ----

    def events(self, *, marks: bool = False) -> EventList[FunctionEvent]:
        """All events in order of start: an EventList, the same one each time.

        marks: with instants, counters and flows among them, see marks(); a new list.
        """
        if marks:
            merged = [*self._event_list(), *self.marks()]
            merged.sort(key=lambda event: event["start_ns"])
            self._tell_why_empty(len(merged))
            return EventList(merged, **self._facts)
        events = self._event_list()
        self._tell_why_empty(len(events))
        return events

    def _new_list(self):
        made = EventList(**self._facts)
        made._model = self._models[0] if len(self._models) == 1 else None
        made._flavor = self._flavor
        return made

    def _event_list(self):
        if self._events is None:
            events = self._new_list()
            for model in self._models:
                model.fill(events)
            events._tree_built = True
            self._events = events
        return self._events

    def marks(self, kind: Literal["instant", "counter", "flow"] | None = None) -> EventList[FunctionEvent]:
        """What was recorded by instant(), counter() and flow(), in order of time: an EventList.

        The marks are events without duration; their mapping has `kind` ("instant", "counter" or "flow") and
        `value` (of a counter), `flow_id` and `flow_phase` (of a flow), `metadata` (of an instant). They are in no
        table and no average. kind: only these.
        """
        if kind not in (None, *MARKS):
            raise ValueError(f"marks: kind must be 'instant', 'counter' or 'flow', not {kind!r}")
        made = [mark_event(model, values) for model in self._models for values in model.marks()
                if kind is None or values[0] == kind]
        return EventList(made, **self._facts)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False,
                     include_python_functions: bool | None = None) -> EventList[FunctionEventAvg]:
        """Rows of events that are alike, an EventList of FunctionEventAvg.

        include_python_functions: rows of Python's functions, too; None: where there are no ops.
        """
        how = (group_by_input_shape, group_by_stack_n, group_by_overload_name, include_python_functions)
        if self._events is not None and not self._events._is_whole():
            return self._events.key_averages(*how)
        return self._group(*how)

    def _group(self, shapes=False, stack_n=0, overload=False, functions=None):
        single = len(self._models) == 1
        rows = [row for model in self._models
                for row in rows_of_model(model, shapes, stack_n, overload, functions if single else True)]
        if not single:
            rows = rows_of_items(rows, shapes, stack_n, overload, functions)
        self._tell_why_empty(len(rows))
        return EventList._of_rows(rows, self._group, self._new_list())

    def total_average(self) -> FunctionEventAvg:
        """One row over all events."""
        return self.events().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Sum of self times on the host, microseconds."""
        return self.events().self_cpu_time_total

    def table(self, *args: Any, **kwargs: Any) -> str:
        """The events as a table, see EventList.table()."""
        return self.events().table(*args, **kwargs)

    def columns(self) -> Columns:
        """The events' columns, see EventList.columns()."""
        return self.events().columns()

    def arrow(self, table: str = "events") -> ArrowTable:
        """A table for pyarrow, polars and DuckDB, see docs/arrow.md: of several windows the latest's.

        table: "events" (all of them, not copied), "averages" (as key_averages()), "steps", "tracks" (threads and
        queues), "frames" (of stacks), "marks" (instants, counters and flows) or "allocations".
        """
        model = self._latest()
        if table not in model.arrow_tables():
            known = ", ".join(map(repr, model.arrow_tables()))
            raise ValueError(f"arrow: the table must be one of {known}, not {table!r}")
        return ArrowTable(table, functools.partial(model.arrow_stream, table))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The events as a capsule of an ArrowArrayStream, see arrow()."""
        return self.arrow().__arrow_c_stream__(requested_schema)

    def _tell_why_empty(self, n):
        if n == 0 and not self._warned and self._reason is not None:
            self._warned = True
            text = self._reason()
            if text:
                warn(text)

    # ---- files ----

    def _latest(self):
        if not self._models:
            raise RuntimeError("there is no trace to export")
        return self._models[0]

    def export(self, format: str, path: _Path, **options: Any) -> Any:
        """Writes a file in any format of libmtprof ("chrome", "perfetto", "speedscope", "csv" …)."""
        return self._latest().export(format, path, **options)

    def export_report(self, path: _Path, baseline: Any = None) -> None:
        """One HTML page that tells where the time went and why; it needs no network.

        baseline: an older trace that the page compares with: a path, or anything with results (a profile, a Trace).
        """
        self.export("report", path, **baseline_options(baseline))

    def report(self, baseline: Any = None) -> Report:
        """The page of export_report() as an object that a notebook shows inline."""
        from .notebook import Report
        return Report(self._latest().report_text(**baseline_options(baseline)))

    def _repr_html_(self) -> str | None:
        if not self._models:
            return None
        from .notebook import results_html
        return results_html(self)

    def export_chrome_trace(self, path: _Path, flavor: str | None = None,
                            progress: _Progress | None = None) -> None:
        """kineto's JSON, gzipped where the path ends in .gz."""
        flavor = flavor_of(flavor, self._flavor)
        self._latest().export("chrome", path, flavor=flavor, progress=progress)

    def export_stacks(self, path: _Path, metric: str = "self_cpu_time_total") -> None:
        """A line per event with a stack, for flame graphs."""
        if not self._flags["with_stack"]:
            raise AssertionError("export_stacks() requires with_stack=True")
        return self.events().export_stacks(path, metric)

    def export_memory_timeline(self, path: _Path, device: str | None = None) -> Any:
        """Memory by category over time.

        A path in .html gives a chart, raw.json.gz every change, any other torch's [times, sizes].
        """
        warn("`export_memory_timeline` is deprecated and will be removed in a future version.", FutureWarning)
        missing = [f"{flag}=True" for flag, is_on in self._flags.items() if not is_on]
        if missing:
            raise ValueError(f"{', '.join(missing)} required for memory profiling.")
        return self._memory_timeline(path, device)

    def _memory_timeline(self, path, device):
        text = os.fspath(path)
        if text.endswith(".html"):
            kind = "memory_html"
        elif text.endswith("raw.json.gz"):
            kind = "memory_raw"
        else:
            kind = "memory"
        timeline = _MemoryTimeline(self._latest())
        timeline._export(kind, path, device)
        return timeline

    def export_execution(self, path: _Path) -> None:
        """An execution trace (Chakra), as ExecutionTraceObserver writes."""
        self._latest().export("execution", path)

    # ---- about itself ----

    def health(self) -> Health:
        """What was recorded and what was lost, see Health."""
        reason = None
        if self._reason is not None and all(model.findings()["events"] == 0 for model in self._models):
            reason = self._reason() or None
        return Health(self._models, reason, self._host())

    def explain(self, step: int | None = None) -> Explanation:
        """Why the program is slow: findings with evidence and advice (docs/explain.md); print() shows them.

        step: only this one. Of several windows the latest is explained.
        """
        if not self._models or self._models[0].findings()["events"] == 0:
            reason = self._reason() if self._reason is not None else None
            return Explanation.of_nothing(reason or "There are no events to explain.")
        return Explanation.of_model(self._models[0], step)

    def _host(self):
        """What mtprof.torch says about the program, None without it. A file may say anything."""
        if not self._models:
            return None
        import json  # not where nobody asks: it takes longer than this module
        try:
            host = json.loads(self.metadata().get(HOST_KEY, "null"))
        except ValueError:
            return None
        wanted = ("name", "version", "tier", "missing")
        if not isinstance(host, dict) or not all(isinstance(host.get(name), str) for name in wanted):
            return None
        return {name: host[name] for name in wanted}

    def metadata(self) -> dict[str, Any]:
        """Metadata of the trace, a dict."""
        return self._latest().metadata()

    def __repr__(self):
        return f"<Results of {len(self._models)} window{'' if len(self._models) == 1 else 's'}>"


class Trace(Results):
    """A trace from a file, with the results API of a profile."""

    record_shapes: bool
    profile_memory: bool
    with_stack: bool
    with_flops: bool

    def __init__(self, path: str | bytes, model: Model) -> None:
        wants = model.info["wants"]
        device = model.use_device if has_device_work(model) else None
        super().__init__([model], use_device=device, record_shapes=bool(wants & _INPUTS),
                         profile_memory=bool(wants & (_MEMORY | _ALLOCS)), with_stack=bool(wants & _STACKS),
                         with_flops=bool(wants & _FLOPS), with_modules=bool(wants & _MODULES))
        self.path = path
        self.use_device = device
        for flag, value in self._flags.items():
            setattr(self, flag, value)
        self.with_flops = self._facts["with_flops"]

    @property
    def info(self) -> dict[str, Any]:
        """Who recorded it, when and what."""
        return self._latest().info

    @property
    def profiler(self) -> Trace:
        """Itself: torch's prof.profiler has these methods too."""
        return self

    @property
    def function_events(self) -> EventList[FunctionEvent]:
        """The events, under the name that torch's prof.profiler has."""
        return self.events()

    def get_trace_id(self) -> str | None:
        """The trace's id, where it has one."""
        return self.metadata().get("trace_id")

    def __repr__(self):
        info = self.info
        tracks = f"{info['tracks']} track{'' if info['tracks'] == 1 else 's'}"
        lasted = format_time((info["end_ns"] - info["start_ns"]) / 1000)
        return f"<Trace {self.path!r}: {lasted} of process {info['pid']}, {tracks}>"


def load(path: _Path, *, discarded: bool = False, keep_duplicates: bool = False,
         progress: _Progress | None = None) -> Trace:
    """A trace from a file: .mtt, or Chrome JSON (also gzipped) of any tool. It has a profile's results API.

    path: the file; its content says what it is. discarded: also windows that were not kept. keep_duplicates: only
    children of their parent's name stay. progress: called now and then with what is done and how much of it.
    A damaged trace gives what is left of it, and a warning that says how much is missing (health() has it too).
    """
    model = _mtprof.Model.open(path, discarded=discarded, keep_duplicates=keep_duplicates, progress=progress)
    damage = model.damage()
    if damage["problems"]:
        text = _damage_text(damage["problems"], damage["bytes"], damage["offset"])
        warn(f"{os.fspath(path)}: {text}: events are missing")
    return Trace(os.fspath(path), model)


def baseline_options(baseline: Any) -> dict[str, Any]:
    """A baseline as the options of an export: a path is opened, results and profiles give their latest model."""
    if baseline is None:
        return {}
    if isinstance(baseline, (str, bytes, os.PathLike)):
        baseline = load(baseline)
    results = baseline if isinstance(baseline, Results) else getattr(baseline, "_results", None)
    if callable(results):
        results = results("comparing with it")
    if not isinstance(results, Results):
        raise TypeError(f"baseline must be a path, a Trace or a profile, not {type(baseline).__name__}")
    options = {"baseline": results._latest()}
    path = getattr(baseline, "path", None)
    if path is not None:
        options["baseline_name"] = os.path.basename(os.fsdecode(path))
    return options


def explain(path: _Path, step: int | None = None) -> Explanation:
    """Why the program of a trace was slow: a .mtt file, or Chrome JSON (also gzipped) of any tool.

    step: only this one. The same as load(path).explain(step), and as the command `mtprof explain`.
    """
    return load(path).explain(step)
