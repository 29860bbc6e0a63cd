# SPDX-License-Identifier: Apache-2.0
"""FunctionEventAvg: the events of a group, added up; and how lists of events become such rows."""
from . import _mtprof
from .enums import DeviceType
from .function_events import FormattedTimesMixin, FunctionEvent, alias

# enum mtprof_event_kind by category.
_KINDS = {"user_annotation": _mtprof.EVENT_KIND_SCOPE, "cpu_op": _mtprof.EVENT_KIND_OP,
          "cuda_runtime": _mtprof.EVENT_KIND_RUNTIME, "privateuse1_runtime": _mtprof.EVENT_KIND_RUNTIME,
          "python_function": _mtprof.EVENT_KIND_FUNCTION, "kernel": _mtprof.EVENT_KIND_KERNEL,
          "gpu_memcpy": _mtprof.EVENT_KIND_COPY, "gpu_memset": _mtprof.EVENT_KIND_SET,
          "cuda_sync": _mtprof.EVENT_KIND_SYNC, "gpu_user_annotation": _mtprof.EVENT_KIND_ANNOTATION,
          "other": _mtprof.EVENT_KIND_OTHER, "overhead": _mtprof.EVENT_KIND_OVERHEAD}

_IDENTITY = ("node_id", "is_async", "is_remote", "cpu_parent", "cpu_children", "overload_name",
             "input_shapes", "stack", "scope", "device_type", "is_legacy", "use_device", "is_user_annotation")
_SUMS = ("cpu_time_total", "device_time_total", "self_cpu_time_total", "self_device_time_total",
         "cpu_memory_usage", "device_memory_usage", "self_cpu_memory_usage", "self_device_memory_usage",
         "count")

# What MindTorch's dict of a row calls its times, and what it calls as we do.
_NANOSECONDS = {"total_time_ns": "cpu_time_total", "self_time_ns": "self_cpu_time_total",
                "device_time_ns": "device_time_total", "self_device_time_ns": "self_device_time_total"}
_SAME = ("count", "input_shapes", "stack", "overload_name", "cpu_memory_usage", "device_memory_usage",
         "self_cpu_memory_usage", "self_device_memory_usage", "flops", "is_async", "scope", "use_device",
         "is_user_annotation")

_FRAMES = 1024  # more than any stack that is shown has


class _Kind:
    """The kind of an event, or of a row made by hand, as libmtprof numbers them."""

    def __get__(self, item, owner=None):
        kind = _KINDS.get(getattr(item, "activity_type", None))
        if kind is not None or item is None:
            return kind
        if item.device_type != DeviceType.CPU:
            return _KINDS["gpu_user_annotation" if item.is_user_annotation else "kernel"]
        return _KINDS["user_annotation" if item.is_user_annotation else "cpu_op"]


FormattedTimesMixin._kind = _Kind()


class FunctionEventAvg(_mtprof.Row):
    """A row of key_averages(): sums over the events of a group. Times are microseconds.

    What was recorded is computed when it is read (python/ext/profiler/results/average_rows.c), until it is set.
    """

    use_device = input_shapes = cpu_parent = cpu_children = None
    count = node_id = flops = 0
    cpu_time_total = device_time_total = self_cpu_time_total = self_device_time_total = 0
    cpu_memory_usage = device_memory_usage = self_cpu_memory_usage = self_device_memory_usage = 0
    is_async = is_remote = is_legacy = is_user_annotation = False
    device_type = DeviceType.CPU
    cpu_time_avg = alias("cpu_time")
    device_time_avg = alias("device_time")
    self_cpu_time = alias("self_cpu_time_total")
    self_device_time = alias("self_device_time_total")

    def __init__(self, row=None):
        self.key = self.overload_name = self.stack = self.scope = None  # until there is something to add
        if row is not None:
            self._take_row(row)

    def _take_row(self, row):
        """MindTorch's way to make a row: from a dict as _row has it."""
        self.node_id, self.scope, self.input_shapes, self.overload_name, self.stack = -1, 0, "", "", []
        for name, value in dict(row).items():
            if name in _NANOSECONDS:
                setattr(self, _NANOSECONDS[name], value / 1000)
            elif name in ("name", "key"):
                self.key = value
            elif name == "device_type":
                known = DeviceType.__members__ if isinstance(value, str) else {}
                self.device_type = known.get(value, value)
            elif name not in ("avg_time_ns", "device"):
                setattr(self, name, value)

    @property
    def _row(self):
        """The row as MindTorch's dict: nanoseconds, names."""
        row = {"name": self.key, "device_type": getattr(self.device_type, "name", self.device_type)}
        row.update((name, round(getattr(self, attribute) * 1000)) for name, attribute in _NANOSECONDS.items())
        row["avg_time_ns"] = row["total_time_ns"] // self.count if self.count else 0
        row.update((name, getattr(self, name)) for name in _SAME)
        return row

    def add(self, other):
        """Adds an event, or another row with the same key; the first one says who this is."""
        if not isinstance(other, (FunctionEvent, FunctionEventAvg)):
            raise AssertionError(f"Expected other to be a FunctionEvent or FunctionEventAvg, not {other!r}")
        if self.key is None:
            self.key = other.key
            for name in _IDENTITY:
                setattr(self, name, getattr(other, name))
            self._kind = other._kind
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if self.flops is None:
            self.flops = other.flops
        elif other.flops is not None:
            self.flops += other.flops
        return self

    def __iadd__(self, other):
        return self.add(other)

    def __repr__(self):
        device = self.use_device or "cuda"
        return (f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
                f"cpu_time={self.cpu_time_str}  self_{device}_time={self.self_device_time_total_str} "
                f"{device}_time={self.device_time_str} input_shapes={str(self.input_shapes)} "
                f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage}>")

    def __getstate__(self):
        return {"cpu_parent": None, "cpu_children": None, **self.__dict__}  # a model stays where it is


FunctionEventAvg.__module__ = "mtprof.events"


def _frames(stack_n):
    """The number of frames that rows are grouped by."""
    try:
        return min(max(int(stack_n), 0), _FRAMES)
    except (TypeError, ValueError):
        raise TypeError(f"group_by_stack_n must be a number of frames, 0 for none, not {stack_n!r}") from None


def rows_of_model(model, shapes=False, stack_n=0, overload=False, functions=True):
    """Rows of all events of a model, grouped in C. functions: those of Python, too; None: where there are no ops."""
    stack_n = _frames(stack_n)
    return model.averages(FunctionEventAvg, bool(shapes), bool(overload), stack_n, functions)


def rows_of_items(items, shapes=False, stack_n=0, overload=False, functions=True):
    """Rows of any events or rows, one by one; functions: see rows_of_model()."""
    stack_n = _frames(stack_n)
    if functions is None:
        functions = not any(item._kind == _KINDS["cpu_op"] for item in items)
    groups = {}
    for item in items:
        if not functions and item._kind == _KINDS["python_function"]:
            continue
        key = (item.key, item.node_id, item.device_type, item.is_legacy, item.is_user_annotation,
               item.overload_name if overload else None, str(item.input_shapes) if shapes else None,
               tuple((item.stack or ())[:stack_n]))
        row = groups.get(key)
        if row is None:
            row = groups[key] = FunctionEventAvg()
        row.add(item)
    for row in groups.values():
        row.stack = (row.stack or [])[:stack_n]
        if not shapes:
            row.input_shapes = ""
        if not overload:
            row.overload_name = ""
    return list(groups.values())


def total_of(items, rows=None):
    """One row over everything (or over its rows); who it is, the last item says."""
    total, last = FunctionEventAvg(), None
    for last in items if rows is None else rows:
        if not isinstance(last, (FunctionEvent, FunctionEventAvg)):
            raise AssertionError(f"Expected other to be a FunctionEvent or FunctionEventAvg, not {last!r}")
        for name in _SUMS:
            setattr(total, name, getattr(total, name) + getattr(last, name))
        total.flops += last.flops or 0
    if last is not None:
        for name in _IDENTITY:
            setattr(total, name, getattr(items[-1], name))
    total.key = "Total"
    return total
