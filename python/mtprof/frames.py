# SPDX-License-Identifier: Apache-2.0
"""Events and rows as pandas.DataFrames: words, microseconds and bytes instead of numbers that stand for something.

A list of one trace's events is made from its columns, any other from the items' attributes; both give the same.
"""
from . import _mtprof
from .enums import DeviceType

_TRUNCATED, _ASYNC = _mtprof.EVENT_FLAG_TRUNCATED, _mtprof.EVENT_FLAG_ASYNC
_NO_EVENT = 0xFFFFFFFF


def _pandas():
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_pandas() needs pandas, which is not installed (pip install pandas); "
                          "columns() gives NumPy arrays or memoryviews without it") from error
    return pandas


def _device_text(device, index):
    return device if index is None or index < 0 else f"{device}:{index}"


def _texts(pandas, numbers, text_of):
    """A categorical of texts from numbers; several numbers may have the same text, None is missing."""
    import numpy
    distinct = numpy.flatnonzero(numpy.bincount(numbers)) if len(numbers) else []
    return _categorical(pandas, {int(number): text_of(int(number)) for number in distinct}, numbers)


def _categorical(pandas, texts, numbers):
    """Texts by number: a table, no sorting of what may be millions of numbers."""
    import numpy
    words = sorted({text for text in texts.values() if text is not None})
    codes = {text: code for code, text in enumerate(words)}
    table = numpy.full(max(texts, default=0) + 1, -1, dtype="int64")
    for number, text in texts.items():
        table[number] = codes.get(text, -1)
    return pandas.Categorical.from_codes(table[numbers], words)


def _of_words(pandas, texts):
    """A categorical of texts, one an item."""
    return pandas.Categorical(texts, categories=sorted({text for text in texts if text is not None}))


def _whole(pandas, numbers, missing):
    """Whole numbers, <NA> where they say that there is none."""
    import numpy
    numbers = numpy.asarray(numbers)
    mask = numbers == missing
    return pandas.arrays.IntegerArray(numpy.where(mask, 0, numbers).astype("int64"), mask)


# ---- events ----


class _FromColumns:
    """The fields of events of one model, from its columns."""

    def __init__(self, pandas, model, columns, indices):
        self._pandas, self._model, self._columns, self._indices = pandas, model, columns, indices

    def _column(self, name):
        return self._columns.get(name)

    def _looked_up(self, column, read):
        """Texts of a column of ids, each id asked of one event that has it; id 0 is none."""
        import numpy
        ids = self._column(column)
        if ids is None:
            return None
        if not ids.any():
            return None
        first = numpy.full(int(ids.max()) + 1, -1, dtype="int64")
        first[ids[::-1]] = self._indices[::-1]  # of several the one that is written last stays: the first
        texts = {number: read(self._model.event(at)) if number else None
                 for number, at in enumerate(first.tolist()) if at >= 0}
        return _categorical(self._pandas, texts, ids)

    def _number(self, column):
        import numpy
        values = self._column(column)
        return numpy.zeros(len(self._indices), "int64") if values is None else values.astype("int64")

    def _metadata(self):
        ids = self._column("metadata")
        if ids is None or not ids.any():
            return None
        return [self._model.event(int(at)).extra_meta if number else None for number, at in zip(ids, self._indices)]

    def fields(self):
        """(name, values) in the order of the frame; values None: there is no such column."""
        pandas, model = self._pandas, self._model
        names = self._columns.names
        start = self._column("start_ns")
        base, flags = model.info["start_ns"], self._column("flags")
        devices = {}

        def device(number):
            if number not in devices:
                devices[number] = _device_text(*model.device(number))
            return devices[number]

        yield "name", _texts(pandas, self._column("name"), names.__getitem__)
        yield "kind", _texts(pandas, self._column("kind"), _mtprof.kind_name)
        yield "device", _texts(pandas, self._column("device"), device)
        yield "thread", _by_track(self._column("track"), lambda number: model.track(number)["tid"])
        yield "thread_name", _texts(pandas, self._column("track"), lambda number: model.track(number)["name"] or None)
        yield "step", _whole(pandas, self._column("step"), -1)
        yield "start_us", (start - base) / 1e3
        yield "duration_us", (self._column("end_ns") - start) / 1e3
        yield "self_cpu_time_us", self._column("self_ns") / 1e3
        yield "device_time_us", self._column("device_ns") / 1e3
        yield "self_device_time_us", self._column("self_device_ns") / 1e3
        yield "parent", _whole(pandas, self._column("parent"), _NO_EVENT)
        yield "correlation_id", _whole(pandas, self._column("correlation").astype("int64"), 0)
        yield "input_shapes", self._looked_up("inputs", lambda event: str(event.input_shapes))
        yield "input_dtypes", self._looked_up("inputs", lambda event: str(event.input_dtypes))
        yield "overload", self._looked_up("overload", lambda event: event.overload_name or None)
        yield "module", self._looked_up("module", lambda event: event.module or None)
        yield "sequence_nr", None if self._column("sequence") is None else _whole(pandas, self._column("sequence"), -1)
        yield "flops", self._number("flops")
        yield "cpu_memory_bytes", self._number("allocated_cpu")
        yield "self_cpu_memory_bytes", self._number("allocated_self_cpu")
        yield "device_memory_bytes", self._number("allocated_device")
        yield "self_device_memory_bytes", self._number("allocated_self_device")
        yield "is_async", (flags & _ASYNC) != 0
        yield "is_truncated", (flags & _TRUNCATED) != 0
        yield "stack", self._looked_up("stack", lambda event: ";".join(event.stack) or None)
        yield "metadata", self._metadata()


def _by_track(track, value_of):
    import numpy
    table = numpy.zeros(int(track.max()) + 1 if len(track) else 1, dtype="int64")
    for number in numpy.flatnonzero(numpy.bincount(track)) if len(track) else ():
        table[number] = value_of(int(number))
    return table[track]


def event_frame(events, model, columns, indices):
    """A row an event of one model, the event's number as index: `parent` names a row."""
    pandas = _pandas()
    import numpy
    numbers = numpy.arange(len(events)) if indices is None else numpy.asarray(indices, dtype="int64")
    fields = dict(_FromColumns(pandas, model, columns, numbers).fields())
    frame = _frame(pandas, events, {name: values for name, values in fields.items() if values is not None})
    frame.index = pandas.Index(numbers, name="event")
    return frame


def item_frame(events):
    """A row an event, of any events; there is no `parent`, since they need not be of one trace."""
    pandas = _pandas()
    steps = [getattr(event, "step", -1) for event in events]
    fields = {
        "name": _of_words(pandas, [event.trace_name or event.name for event in events]),
        "kind": _of_words(pandas, [event["kind"] for event in events]),
        "device": _of_words(pandas, [_device_of(event) for event in events]),
        "thread": [event.device_resource_id for event in events],
        "step": _whole(pandas, [-1 if step is None else step for step in steps], -1),
        "start_us": [event.time_range.start for event in events],
        "duration_us": [event.time_range.elapsed_us() for event in events],
        "self_cpu_time_us": [event.self_cpu_time_total for event in events],
        "device_time_us": [event.device_time_total for event in events],
        "self_device_time_us": [event.self_device_time_total for event in events],
        "correlation_id": _whole(pandas, [event.id for event in events], 0),
        "input_shapes": _of_words(pandas, [str(event.input_shapes) if event.input_shapes else None
                                           for event in events]),
        "input_dtypes": _of_words(pandas, [str(event.input_dtypes) if getattr(event, "input_dtypes", None) else None
                                           for event in events]),
        "overload": _of_words(pandas, [event.overload_name or None for event in events]),
        "module": _of_words(pandas, [getattr(event, "module", None) or None for event in events]),
        "sequence_nr": _whole(pandas, [event.sequence_nr for event in events], -1),
        "flops": [event.flops or 0 for event in events],
        "cpu_memory_bytes": [event.cpu_memory_usage for event in events],
        "self_cpu_memory_bytes": [event.self_cpu_memory_usage for event in events],
        "device_memory_bytes": [event.device_memory_usage for event in events],
        "self_device_memory_bytes": [event.self_device_memory_usage for event in events],
        "is_async": [bool(event.is_async) for event in events],
        "value": [getattr(event, "value", None) for event in events],
        "flow_id": [event["flow_id"] if "flow_id" in event else None for event in events],
        "flow_phase": [event["flow_phase"] if "flow_phase" in event else None for event in events],
        "stack": _of_words(pandas, [";".join(event.stack) if event.stack else None for event in events]),
        "metadata": [getattr(event, "extra_meta", None) for event in events],
    }
    return _frame(pandas, events, fields)


def _device_of(event):
    kind = getattr(event.device_type, "name", str(event.device_type))
    return kind if event.device_type == DeviceType.CPU else _device_text(event["device_type"], event.device_index)


# Columns that are there only where something is in them.
_WHERE_ANY = ("thread_name", "input_shapes", "input_dtypes", "overload", "module", "sequence_nr", "value", "flow_id",
              "flow_phase", "stack",
              "metadata")


def _frame(pandas, events, fields):
    """The frame without what was not recorded, by the list's facts; of texts, without what none has."""
    frame = pandas.DataFrame(fields)
    gone = [name for name in _WHERE_ANY if name in frame and bool(frame[name].isna().all())]
    if not events._use_device:
        gone += [name for name in frame if "device_" in name]
    if not events._profile_memory:
        gone += [name for name in frame if "memory" in name and name not in gone]
    if not events._with_flops and "flops" in frame:
        gone.append("flops")
    return frame.drop(columns=gone)


# ---- rows ----


def row_frame(rows):
    """A row a group of key_averages(); columns of what was not recorded are left out."""
    pandas = _pandas()
    fields = {
        "name": [row.key for row in rows],
        "kind": _of_words(pandas, [_mtprof.kind_name(row._kind) for row in rows]),
        "device": _of_words(pandas, [getattr(row.device_type, "name", str(row.device_type)) for row in rows]),
        "count": [row.count for row in rows],
        "self_cpu_time_us": [float(row.self_cpu_time_total) for row in rows],
        "cpu_time_us": [float(row.cpu_time_total) for row in rows],
        "cpu_time_avg_us": [float(row.cpu_time) for row in rows],
        "self_device_time_us": [float(row.self_device_time_total) for row in rows],
        "device_time_us": [float(row.device_time_total) for row in rows],
        "device_time_avg_us": [float(row.device_time) for row in rows],
        "self_cpu_memory_bytes": [row.self_cpu_memory_usage for row in rows],
        "cpu_memory_bytes": [row.cpu_memory_usage for row in rows],
        "self_device_memory_bytes": [row.self_device_memory_usage for row in rows],
        "device_memory_bytes": [row.device_memory_usage for row in rows],
        "flops": [row.flops or 0 for row in rows],
        "input_shapes": [str(row.input_shapes) if row.input_shapes else None for row in rows],
        "overload": [row.overload_name or None for row in rows],
        "stack": [";".join(row.stack) if row.stack else None for row in rows],
        "is_async": [bool(row.is_async) for row in rows],
    }
    return _frame(pandas, rows, fields)
