# SPDX-License-Identifier: Apache-2.0
"""EventList: a list of events or of rows, with torch's tables, averages and exports.

It is a list in every respect. One that still holds just what a model gave is worked on in C; any other
is looked at item by item, with the same results.
"""
import os
import re

from . import _mtprof
from ._new_file import is_special, new_file
from .averages import FunctionEventAvg, rows_of_items, rows_of_model, total_of
from .enums import DeviceType
from .function_events import FunctionEvent, format_time, restore, state_of

_METRICS = ("self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total",
            "self_privateuse1_time_total")
_METRICS_TOO = ("self_npu_time_total",)  # accepted; torch's list does not have it
_DEVICE_WORD = re.compile("cuda|xpu|privateuse1|(?<![a-z])(?:npu|gpu)(?![a-z])")
_NO_ROWS = -2
_SHOWN = 8  # items that repr() names


def flavor_of(flavor, default=None):
    """"torch", "mindtorch" or "lean": the argument, what MINDTORCH_PROFILER_FLAVOR says, or the default."""
    if flavor is None:
        flavor = os.environ.get("MINDTORCH_PROFILER_FLAVOR") or default or "torch"
    if not isinstance(flavor, str) or flavor.lower() not in ("torch", "mindtorch", "lean"):
        raise ValueError(f"flavor must be 'torch', 'mindtorch' or 'lean', not {flavor!r}")
    return flavor.lower()


def write_file(path, pieces):
    """Writes texts to the path; a pipe or a device is written as it is, a folder says what it is."""
    path = os.fsdecode(path)
    how = open if is_special(path) else new_file
    with how(path, "w", encoding="utf-8", errors="replace", newline="") as file:
        file.writelines(pieces)


def _is_event(item):
    return isinstance(item, FunctionEvent)


class Columns:
    """The columns of a list of events, by name: NumPy arrays over the trace's own memory.

    A list that is not just what was recorded (filtered, sorted, sliced) gets copies of its events' rows.
    Without NumPy the arrays are memoryviews. Names of events are numbers: see `names`.
    """

    def __init__(self, model, indices):
        self._model = model
        self._indices = indices
        self._made = {}

    def keys(self):
        """Columns that were recorded."""
        return [name for name in self._model.column_names() if name in self]

    def __contains__(self, name):
        try:
            self[name]
        except KeyError:
            return False
        return True

    def __getitem__(self, name):
        if name not in self._made:
            try:
                column = self._model.column(name)
            except NotImplementedError as error:
                raise KeyError(name) from error
            self._made[name] = self._array(column)
        return self._made[name]

    def _array(self, column):
        try:
            import numpy
        except ImportError:
            view = memoryview(column)
            if self._indices is None:
                return view
            import array
            return memoryview(array.array(view.format, [view[i] for i in self._indices])).toreadonly()
        array = numpy.asarray(column)
        if self._indices is not None:
            array = array[self._indices]
            array.flags.writeable = False
        return array

    def __iter__(self):
        return iter(self.keys())

    def __len__(self):
        return len(self.keys())

    def values(self):
        """The arrays."""
        return [self[name] for name in self.keys()]

    def items(self):
        """Names and arrays."""
        return [(name, self[name]) for name in self.keys()]

    def get(self, name, default=None):
        """An array, or the default where the column was not recorded."""
        return self[name] if name in self else default

    @property
    def names(self):
        """The texts that the column `name` numbers."""
        return [self._model.name(i) for i in range(self._model.info["names"])]

    def __repr__(self):
        return f"Columns({', '.join(self.keys())})"


class ArrowTable:
    """A table of a trace: `pyarrow.table(t)`, `polars.DataFrame(t)`, `duckdb.sql("select … from t")` read it.

    It holds the trace, and each reader gets a stream of its own (docs/arrow.md).
    """

    def __init__(self, table, make):
        self._table = table
        self._make = make

    def __arrow_c_stream__(self, requested_schema=None):
        """A capsule of an ArrowArrayStream. requested_schema: not looked at, as the protocol allows."""
        del requested_schema
        return self._make()

    def __repr__(self):
        return f"<ArrowTable of {self._table}>"


class EventList(list):
    """Events, or rows of key_averages()."""

    def __init__(self, *args, **kwargs):
        self._use_device = kwargs.pop("use_device", None)
        self._profile_memory = kwargs.pop("profile_memory", False)
        self._with_flops = kwargs.pop("with_flops", False)
        super().__init__(*args, **kwargs)
        self._tree_built = False
        self._model = None  # whose events these were
        self._regroup = None  # rows: a callable that groups their events in another way
        self._flavor = None

    # ---- what it was made from ----

    @classmethod
    def _of_rows(cls, rows, regroup, source):
        averages = cls(rows, use_device=source._use_device, profile_memory=source._profile_memory,
                       with_flops=source._with_flops)
        averages._model = source._model
        averages._regroup = regroup
        averages._flavor = source._flavor
        return averages

    def _is_whole(self):
        """Whether it is still just what its model gave."""
        return self._regroup is None and self._model is not None and self._model.covers(self)

    def _is_rows(self):
        return isinstance(self[0], FunctionEventAvg) if self else self._regroup is not None

    # ---- averages ----

    def key_averages(self, group_by_input_shapes=False, group_by_stack_n=0, group_by_overload_name=False,
                     include_python_functions=None):
        """Rows of events that are alike; of rows, the same events in other groups.

        include_python_functions: rows of Python's functions, too; None: where there are no ops.
        """
        how = (group_by_input_shapes, group_by_stack_n, group_by_overload_name, include_python_functions)
        if self._regroup is not None:
            return self._regroup(*how)

        def group(*how):
            make = rows_of_model if self._is_whole() else rows_of_items
            items = self._model if make is rows_of_model else self
            return EventList._of_rows(make(items, *how), group, self)

        return group(*how)

    def total_average(self):
        """One row over all of it."""
        return total_of(self, rows_of_model(self._model) if self._is_whole() else None)

    @property
    def self_cpu_time_total(self):
        """Sum of self times on the host, microseconds."""
        return sum(item.self_cpu_time_total for item in self)

    def _build_rows(self):
        """MindTorch's rows: dicts with nanoseconds."""
        return [row._row for row in (self if self._is_rows() else self.key_averages())]

    # ---- tables ----

    def __str__(self):
        return self.table()

    def __repr__(self):
        """Short, since an interactive prompt shows it: what is in it, and of rows the largest."""
        if len(self) <= 1 or not all(isinstance(item, (FunctionEvent, FunctionEventAvg)) for item in self):
            return super().__repr__()
        if not self._is_rows():
            names = ", ".join(_middle(item.trace_name or item.name, 32) for item in self[:_SHOWN])
            return f"<EventList of {len(self)} events: {names}{', …' if len(self) > _SHOWN else ''}>"
        total = sum(item.self_cpu_time_total for item in self)
        largest = sorted(self, key=lambda row: row.self_cpu_time_total, reverse=True)[:_SHOWN]
        lines = [f"  {_middle(row.key, 44):<44} {row.self_cpu_time_total_str:>10} "
                 f"{_share(row.self_cpu_time_total, total):>8} {row.count:>8}" for row in largest]
        more = [f"  … {len(self) - _SHOWN} more; table() prints them"] if len(self) > _SHOWN else []
        head = [f"<EventList of {len(self)} rows, {format_time(total)} of self CPU time",
                f"  {'Name':<44} {'Self CPU':>10} {'Share':>8} {'Calls':>8}"]
        return "\n".join(head + lines + more) + ">"

    def _repr_html_(self):
        if not all(isinstance(item, (FunctionEvent, FunctionEventAvg)) for item in self):
            return None  # a list of something else: the notebook shows its repr()
        from .notebook import list_html
        return list_html(self)

    def table(self, sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55,
              max_shapes_column_width=80, header=None, top_level_events_only=False, time_unit=None, *,
              width=None, flavor=None):
        """A table, laid out as torch's.

        sort_by: an attribute, largest first (cuda, xpu, npu and privateuse1 read as device).
        row_limit: rows to print; -1 or None: all. max_name_column_width, max_src_column_width (of stacks) and
        max_shapes_column_width: longer texts are cut; None: as wide as needed. header: a title above it.
        top_level_events_only: only events that are in no other.
        time_unit: "s", "ms" or "us" for all times; otherwise each its own.
        width: no line is longer: columns are narrowed, then left out, those first that follow from others.
        flavor: "mindtorch" adds the columns Total(us) and Count.
        """
        if len(self) == 0:
            return ""
        if sort_by is not None and not isinstance(sort_by, str):
            raise TypeError(f"sort_by must be the name of an attribute, as 'self_cpu_time_total', not {sort_by!r}")
        if header is not None and not isinstance(header, str):
            raise TypeError(f"header must be a str, or None, not {header!r}")
        if sort_by is not None:
            sort_by = _DEVICE_WORD.sub("device", sort_by)
        options = {"row_limit": _limit(row_limit), "header": header,
                   "top_level_only": bool(top_level_events_only),
                   "max_src_column_width": _width("max_src_column_width", max_src_column_width),
                   "max_name_column_width": _width("max_name_column_width", max_name_column_width),
                   "max_shapes_column_width": _width("max_shapes_column_width", max_shapes_column_width),
                   "time_unit": time_unit if time_unit in ("s", "ms", "us") else None,
                   **_fitted(width),
                   "mindtorch": flavor_of(flavor, self._flavor) == "mindtorch"}
        return self._table(sort_by, options)

    def _table(self, sort_by, options):
        if self._is_whole() and (sort_by is None or not hasattr(list, sort_by)):
            return self._model.table(sort_by, options)
        return self._item_table(sort_by, options)

    def _item_table(self, sort_by, options):
        items = self
        if sort_by is not None:
            items = sorted(self, key=lambda item: getattr(item, sort_by), reverse=True)
        device = self._use_device
        text, *sums = _mtprof.rows_table(items, options, device_type=device.upper() if device else None,
                                         memory=self._profile_memory, flops=self._with_flops,
                                         events=not self._is_rows(), model=self._model)
        _keep_shares(items, options["row_limit"], options["top_level_only"], *sums)
        return text

    # ---- files ----

    def export_chrome_trace(self, path):
        """Events: torch's short array of spans. Rows: {"traceEvents": […]}, a span a row."""
        if self._is_rows():
            device = self._use_device
            mindtorch = flavor_of(None, self._flavor) == "mindtorch"
            _mtprof.rows_export(self, path, device.upper() if device else None, mindtorch)
        else:
            write_file(path, self._spans())

    def _spans(self):
        import json
        category = f"cpu_to_{self._use_device or 'cuda'}"
        number, between = 0, "["
        for event in self:
            name = event.trace_name
            if name is None:
                continue
            place = {"tid": event.thread, "pid": "CPU functions"}
            start = event.time_range.start
            yield between + json.dumps({"name": name, "ph": "X", "ts": start,
                                        "dur": event.time_range.elapsed_us(), **place, "args": {}})
            between = ", "
            for _ in event.kernels:
                yield between + json.dumps({"name": name, "ph": "s", "ts": start, **place, "id": number,
                                            "cat": category, "args": {}})
                number += 1
        yield "]" if between == ", " else "[]"

    def supported_export_stacks_metrics(self):
        """What export_stacks() can count."""
        return list(_METRICS)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """A line per event with a stack: frames from the outermost on, a blank, whole microseconds."""
        if metric not in _METRICS + _METRICS_TOO:
            raise ValueError(f"metric should be one of: {list(_METRICS)}, not {metric!r}")
        attribute = _DEVICE_WORD.sub("device", metric)
        write_file(path, self._stack_lines(attribute))

    def _stack_lines(self, attribute):
        clean = str.maketrans(" ;\t\n", "____")
        for event in self:
            if not event.stack:
                continue
            value = int(getattr(event, attribute))
            if value > 0:
                yield ";".join(frame.translate(clean) for frame in reversed(event.stack)) + f" {value}\n"

    # ---- columns ----

    def _source(self):
        """(model, indices) where it is recorded events of one trace, indices None: all of them; or None."""
        model = self._model
        if model is not None and self._is_whole() and len(self) == model.findings()["events"]:
            return model, None
        models = {id(event._model): event._model for event in self if _is_event(event)}
        if model is not None:
            models[id(model)] = model
        if self._is_rows() or None in models.values() or len(models) != 1:
            return None
        return next(iter(models.values())), [event._index for event in self]

    def _recorded(self, who):
        """What _source() gives, which must be there."""
        source = self._source()
        if source is None:
            what = "rows of averages" if self._is_rows() else "events made by hand, of several traces, or none"
            raise TypeError(f"{who}() needs recorded events of one trace, not {what}; to_pandas() takes any")
        return source

    def columns(self):
        """The events' columns by name, as NumPy arrays (see Columns). Rows have none."""
        return Columns(*self._recorded("columns"))

    def arrow(self):
        """The events, or the rows, as a table for pyarrow, polars and DuckDB (see ArrowTable).

        All events of a trace are not copied; those of a list that was filtered or sorted are.
        """
        if self._is_rows():
            return ArrowTable("averages", self.__arrow_c_stream__)
        self._recorded("arrow")
        return ArrowTable("events", self.__arrow_c_stream__)

    def __arrow_c_stream__(self, requested_schema=None):
        """A capsule of an ArrowArrayStream; most engines take a list for a list, so give them arrow()."""
        del requested_schema
        if self._is_rows():
            return _mtprof.rows_arrow_stream(self, self._use_device.upper() if self._use_device else None)
        model, rows = self._recorded("arrow")
        return model.arrow_stream("events", rows)

    def to_pandas(self):
        """A pandas.DataFrame: a line an event, or a line a row of key_averages().

        Names, kinds, devices and shapes are texts, times microseconds, memory bytes; what was not recorded has no
        column. Events of one trace are numbered by the index, and `parent` is the number of the event around.
        """
        from . import frames
        if self._is_rows():
            return frames.row_frame(self)
        source = self._source()
        if source is None:
            return frames.item_frame(self)
        return frames.event_frame(self, source[0], Columns(*source), source[1])

    # ---- copies ----

    def __copy__(self):
        other = EventList(self)
        other.__dict__.update(self.__dict__)
        return other

    def __reduce_ex__(self, protocol):
        del protocol
        facts = {name: value for name, value in self.__dict__.items() if name not in ("_model", "_regroup")}
        if not self or not all(_is_event(item) for item in self):
            return (_restore_items, (type(self), facts, self._is_rows(), list(self)))
        places = {id(event): place for place, event in enumerate(self)}
        states, links = [], []
        for event in self:
            parent = event.cpu_parent
            states.append((type(event), state_of(event)))
            links.append((_link(parent, places), [_link(child, places) for child in event.cpu_children]))
        return (_restore_events, (type(self), facts, states, links))

    # ---- for lists made by hand ----

    def _build_tree(self):
        """Finds out which event is inside which; recorded events know it."""
        from .event_trees import build_tree
        build_tree(self)
        self._tree_built = True


EventList.__module__ = "mtprof.events"


def _middle(text, width):
    """A text that fits, with both its ends."""
    if len(text) <= width:
        return text
    return f"{text[:width // 2]}…{text[len(text) - (width - 1 - width // 2):]}"


def _share(part, whole):
    return f"{part * 100.0 / whole:.2f}%" if whole else "NaN"


def _keep_shares(items, limit, top_level_only, cpu, device):
    """torch leaves the shares of a printed row at the row."""
    shown = items if not top_level_only else [item for item in items if item.cpu_parent is None]
    for item in shown[:max(limit, 0) if limit != -1 else None]:
        item.self_cpu_percent = _share(item.self_cpu_time_total, cpu)
        item.total_cpu_percent = 0 if item.is_async else _share(item.cpu_time_total - item._loose, cpu)
        if device is not None:
            item.total_device_percent = _share(item.self_device_time_total, device)


def _limit(row_limit):
    if row_limit is not None and not hasattr(row_limit, "__index__"):
        raise TypeError(f"row_limit must be a number of rows, or None for all, not {row_limit!r}")
    if row_limit is None or row_limit < 0:
        return -1
    return row_limit or _NO_ROWS


def _fitted(width):
    """Options of a table that fits a terminal of that width; None: torch's layout."""
    if width is None:
        return {}
    if not isinstance(width, int) or width < 1:
        raise ValueError(f"width is {width!r}; expected a number of columns, or None for torch's layout")
    return {"format": _mtprof.TABLE_FIT, "width": width}


def _width(name, width):
    if width is not None and not hasattr(width, "__index__"):
        raise TypeError(f"{name} must be a number of characters, or None for as many as needed, not {width!r}")
    return -1 if width is None else max(width, 1)


def _link(event, places):
    """Where a relative is in the list; one that is not goes along itself."""
    return places.get(id(event), event) if event is not None else None


def _restore_items(cls, facts, is_rows, items):
    made = cls(items)
    made.__dict__.update(facts)
    if is_rows:
        made._regroup = lambda *how: EventList._of_rows(rows_of_items(made, *how), made._regroup, made)
    return made


def _restore_events(cls, facts, states, links):
    made = cls([restore(kind, state) for kind, state in states])
    made.__dict__.update(facts)
    for event, (parent, children) in zip(made, links):
        event.cpu_parent = made[parent] if isinstance(parent, int) else parent
        event.cpu_children = [made[child] if isinstance(child, int) else child for child in children]
    return made
