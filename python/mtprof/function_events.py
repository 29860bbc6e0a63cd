# SPDX-License-Identifier: Apache-2.0
"""FunctionEvent: what one recorded event says, and everything about it that needs no C.

The type is C's (python/ext/profiler/results/event_object.c): a recorded event is a model and an index, and its
attributes are computed when they are read. This file adds to the type: texts, deprecated names,
the mapping's methods, events made by hand, pickling.
"""
import collections
import re
import warnings

from . import _mtprof
from .enums import DeviceType

FunctionEvent = _mtprof.FunctionEvent
FormattedTimesMixin = _mtprof.FormattedTimesMixin

Kernel = collections.namedtuple("Kernel", ["name", "device", "duration"])

EventMetadata = collections.namedtuple("EventMetadata", [
    "registers_per_thread", "shared_memory", "grid", "block", "priority", "blocks_per_sm", "warps_per_sm",
    "occupancy", "est_occupancy_pct", "queued", "graph_id", "graph_node_id", "stream", "context", "channel",
    "channel_type", "hsa_queue", "bytes", "bandwidth_gb_s", "collective_name", "dtype", "in_msg_nelems",
    "out_msg_nelems", "in_split_size", "out_split_size", "global_rank_start", "global_rank_stride", "group_size",
    "process_group_name", "process_group_desc", "group_ranks", "rank", "src_rank", "dst_rank",
    "seq", "is_async"], defaults=[None] * 36)


class Interval:
    """From when to when, in microseconds."""

    __slots__ = ("start", "end")

    def __init__(self, start, end):
        self.start = start
        self.end = end

    def elapsed_us(self):
        """Its length."""
        return self.end - self.start

    def __repr__(self):
        return f"Interval(start={self.start}, end={self.end})"

    def __reduce__(self):
        return (Interval, (self.start, self.end))


def format_time(us):
    """A time in the unit that fits: 12.345us, 1.200ms, 3.000s."""
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    if us >= 1e3:
        return f"{us / 1e3:.3f}ms"
    return f"{us:.3f}us"


def deprecated(old, new, text="`{0}` is deprecated. Use `{1}` instead."):
    """A property under an old name, which warns."""

    def read(self):
        warnings.warn(text.format(old, new), FutureWarning, stacklevel=2)
        return getattr(self, new)

    return property(read, doc=f"Deprecated: {new}.")


def alias(name):
    """A property under another name."""
    return property(lambda self: getattr(self, name), doc=f"The same as {name}.")


def _time_text(name):
    return property(lambda self: format_time(getattr(self, name)), doc=f"{name} as a text.")


def _per_call(name):
    def read(self):
        return 0.0 if self.count == 0 else 1.0 * getattr(self, name) / self.count

    return property(read, doc=f"{name} per call, microseconds.")


def _complete_mixin():
    """The texts and averages that events and rows share."""
    for name in ("cpu_time", "device_time"):
        setattr(FormattedTimesMixin, name, _per_call(name + "_total"))
        setattr(FormattedTimesMixin, name + "_str", _time_text(name))
        for prefix in ("", "self_"):
            setattr(FormattedTimesMixin, f"{prefix}{name}_total_str", _time_text(f"{prefix}{name}_total"))
    FormattedTimesMixin.cuda_time = deprecated(
        "cuda_time", "device_time", "`{0}` is deprecated, please use `{1}` instead.")
    FormattedTimesMixin.npu_time = alias("device_time")
    FormattedTimesMixin._unrecorded = 0  # calls that the limit of the overhead left out
    FormattedTimesMixin._loose = 0.0  # microseconds of cpu_time_total that are no part of the thread's time
    for prefix in ("", "self_"):
        for what in ("time_total", "memory_usage"):
            setattr(FormattedTimesMixin, f"{prefix}npu_{what}", alias(f"{prefix}device_{what}"))


# ---- attributes by torch's rules, for events made by hand or changed ----


def _on_host(event):
    return event.device_type == DeviceType.CPU


def _cpu_time_total(event):
    return event.time_range.elapsed_us() if _on_host(event) else 0


def _self_cpu_time_total(event):
    if event.is_async or not _on_host(event):
        return 0
    return event.cpu_time_total - sum(child.cpu_time_total for child in event.cpu_children)


def _device_time_total(event):
    if event.is_async or not event.use_device:
        return 0
    if not _on_host(event):
        return event.time_range.elapsed_us()
    own = sum(kernel.duration for kernel in event.kernels)
    if event.is_legacy:
        return own
    return own + sum(child.device_time_total for child in event.cpu_children)


def _self_device_time_total(event):
    if event.is_async or not event.use_device:
        return 0
    if not _on_host(event):
        return event.device_time_total
    return event.device_time_total - sum(child.device_time_total for child in event.cpu_children)


def _less_children(name):
    def compute(event):
        if event.is_async or not _on_host(event):
            return 0
        return getattr(event, name) - sum(getattr(child, name) for child in event.cpu_children)

    return compute


def _mapping(event):
    """The mapping of an event made by hand, from its attributes."""
    start, end = event.time_range.start * 1000, event.time_range.end * 1000
    start, end = round(start), round(end)
    told = event.__dict__.get("_mark")
    if told is not None:
        return dict(told)
    kind = "scope" if event.is_user_annotation else "op"
    values = {"name": event.trace_name or event.name, "kind": kind,
              "device_type": getattr(event.device_type, "name", str(event.device_type)),
              "start_ns": start, "end_ns": end, "duration_ns": end - start,
              "step": getattr(event, "step", -1), "thread_id": event.thread}
    if kind == "op":
        values.update(correlation_id=event.id, runtime_name="dispatch_kernel",
                      runtime_tid=event.device_resource_id)
    if event.input_shapes:
        values["input_shapes"] = event.input_shapes
    if event.stack:
        values["stack"] = event.stack
    return values


MARKS = ("instant", "counter", "flow")


def mark_event(model, values):
    """A FunctionEvent of what model.marks() says of an instant, a counter or a flow."""
    kind, name, time_ns, track, step, value, phase, _parent, metadata = values
    thread = model.track(track)
    at = (time_ns - model.info["start_ns"]) / 1000
    event = FunctionEvent(0, name, thread["number"], at, at, trace_name=name, device_resource_id=thread["tid"],
                          is_user_annotation=True, activity_type="cpu_instant_event", extra_meta=metadata,
                          use_device=model.use_device, flow_id=value if kind == "flow" else None,
                          flow_start=phase == "start" if kind == "flow" else None)
    told = {"name": name, "kind": kind, "device_type": "CPU", "start_ns": time_ns, "end_ns": time_ns,
            "duration_ns": 0, "step": step, "thread_id": thread["thread_id"]}
    if kind == "counter":
        told["value"] = value
    elif kind == "flow":
        told.update(flow_id=value, flow_phase=phase)
    if metadata:
        told["metadata"] = metadata
    event.step, event.value, event._mark = step, value if kind == "counter" else None, told
    return event


_RULES = {
    "cpu_time_total": _cpu_time_total,
    "self_cpu_time_total": _self_cpu_time_total,
    "device_time_total": _device_time_total,
    "self_device_time_total": _self_device_time_total,
    "self_cpu_memory_usage": _less_children("cpu_memory_usage"),
    "self_device_memory_usage": _less_children("device_memory_usage"),
    "mapping": _mapping,
}


def _derive(event, name):
    return _RULES[name](event)


def _device_types():
    """DeviceType members by the names that traces have."""
    types = {name.upper(): member for name, member in DeviceType.__members__.items()}
    types.update(DeviceType.__members__)
    return types


# ---- flows: which events arrows join ----


_RUNTIME, _CALL = _mtprof.EVENT_KIND_RUNTIME, _mtprof.EVENT_KIND_CALL
_KERNEL, _SET = _mtprof.EVENT_KIND_KERNEL, _mtprof.EVENT_KIND_SET
_NO_EVENT = 0xFFFFFFFF


def _find_flows(model):
    """(id, type, is start) by event: type 2 from a launch to its device work, 1 from forward to backward."""
    flows = {}
    kind, ids = memoryview(model.column("kind")), _column(model, "correlation")
    if model.info["device_type"] is not None and ids is not None:
        work = [index for index, value in enumerate(kind) if _KERNEL <= value <= _SET]
        launched = {ids[index] for index in work}
        flows.update((index, (ids[index], 2, False)) for index in work)
        flows.update((index, (ids[index], 2, True)) for index, value in enumerate(kind)
                     if value in (_RUNTIME, _CALL) and ids[index] in launched)
    forward, end = _column(model, "forward"), memoryview(model.column("end_ns"))
    backward = [index for index, value in enumerate(forward or ()) if value != _NO_EVENT]
    for number, index in enumerate(sorted(backward, key=lambda index: (end[index], -index)), 1):
        flows[forward[index]] = (number, 1, True)
        flows[index] = (number, 1, False)
    return flows


def _column(model, name):
    """A column, or None where it was not recorded."""
    try:
        return memoryview(model.column(name))
    except NotImplementedError:
        return None


def _flow(event):
    model = event._model
    if "flows" not in model.cache:
        model.cache["flows"] = _find_flows(model)
    return model.cache["flows"].get(event._index, (0, 0, False))


class _Lazy:
    """An attribute that is computed until it is set."""

    def __init__(self, compute, doc):
        self._compute = compute
        self.__doc__ = doc

    def __set_name__(self, owner, name):
        self._name = name

    def __get__(self, event, owner=None):
        if event is None:
            return self
        if event._model is None:
            raise AttributeError(f"'FunctionEvent' object has no attribute '{self._name}'")
        return self._compute(event)


# What Chrome traces call the fields of EventMetadata.
_KEYS = {"registers per thread": "registers_per_thread", "shared memory": "shared_memory", "grid": "grid",
         "block": "block", "priority": "priority", "blocks per SM": "blocks_per_sm", "warps per SM": "warps_per_sm",
         "est. achieved occupancy %": "est_occupancy_pct", "queued": "queued", "graph id": "graph_id",
         "graph node id": "graph_node_id", "context": "context", "memory bandwidth (GB/s)": "bandwidth_gb_s",
         "Collective name": "collective_name", "dtype": "dtype", "In msg nelems": "in_msg_nelems",
         "Out msg nelems": "out_msg_nelems", "In split size": "in_split_size", "Out split size": "out_split_size",
         "Global rank start": "global_rank_start", "Global rank stride": "global_rank_stride",
         "Group size": "group_size", "Process Group Name": "process_group_name",
         "Process Group Description": "process_group_desc", "Process Group Ranks": "group_ranks", "Rank": "rank",
         "Src Rank": "src_rank", "Dst Rank": "dst_rank", "Seq": "seq"}


def _metadata(event):
    """An EventMetadata of work on a device, None of other events. What was not recorded is None."""
    kind = event._kind
    if not _KERNEL <= kind <= _SET:
        return None
    told = {_KEYS[key]: value for key, value in (event.extra_meta or {}).items() if key in _KEYS}
    for name in ("grid", "block"):
        if isinstance(told.get(name), str):  # a list in a trace is kept as its text
            told[name] = [int(number) for number in re.findall(r"-?\d+", told[name])]
    told["stream"] = event.device_resource_id
    if kind != _KERNEL:
        told["bytes"] = memoryview(event._model.column("bytes"))[event._index]
        time_us = event.time_range.elapsed_us()
        if time_us > 0:
            told.setdefault("bandwidth_gb_s", told["bytes"] / time_us / 1000)
    return EventMetadata(**told)


def _python_parent(event):
    parent = event.cpu_parent
    return parent._index if event.is_python_function and parent is not None else -1


_LAZY = {
    "flow_id": (lambda event: _flow(event)[0], "Number of the arrow at it; 0: none."),
    "flow_type": (lambda event: _flow(event)[1], "1: forward to backward, 2: launch to device."),
    "flow_start": (lambda event: _flow(event)[2], "Whether the arrow begins at it."),
    "python_id": (lambda event: event._index if event.is_python_function else -1, "Number of the call."),
    "python_parent_id": (_python_parent, "Number of the call around it."),
    "metadata": (_metadata, "Of work on a device an EventMetadata: stream, bytes, grid and the like; else None."),
    "event_metadata": (_metadata, "The same as metadata, as torch calls it before 2.14."),
}
_CONSTANT = {"python_module_id": -1, "self_cpu_percent": -1, "total_cpu_percent": -1,
             "total_device_percent": -1, "_metadata_json": ""}


def _metadata_json(event):
    warnings.warn("`metadata_json` is deprecated. Use `event_metadata` instead.", FutureWarning, stacklevel=2)
    if event._metadata_json or event._model is None:
        return event._metadata_json
    told = {}
    if "exposed" in event._model.cache:  # _ExperimentalConfig(expose_kineto_event_metadata=True)
        index = memoryview(event._model.column("index"))[event._index]
        told = {"Ev Idx": index} if index != 0xFFFFFFFF else {}
    told.update(event.extra_meta or {})
    if not told:
        return event._metadata_json
    import json
    return json.dumps(told)[1:-1]


# ---- methods ----


def _init(self, id, name, thread, start_us, end_us, overload_name=None, fwd_thread=None, input_shapes=None,
          stack=None, scope=0, use_device=None, cpu_memory_usage=0, device_memory_usage=0, is_async=False,
          is_remote=False, sequence_nr=-1, node_id=-1, device_type=DeviceType.CPU, device_index=0,
          device_resource_id=None, is_legacy=False, flops=None, trace_name=None, concrete_inputs=None,
          kwinputs=None, is_user_annotation=False, is_python_function=False, activity_type=None,
          metadata_json=None, flow_id=None, flow_type=None, flow_start=None, external_id=0,
          linked_correlation_id=0, extra_meta=None, structured_input_shapes=None,
          structured_input_strides=None, input_dtypes=None, python_id=-1, python_parent_id=-1,
          python_module_id=-1, typed_metadata=None):
    if self._model is not None:
        raise TypeError("a recorded FunctionEvent cannot be initialised again")
    values = locals()
    del values["self"], values["metadata_json"], values["typed_metadata"]
    values["time_range"] = Interval(values.pop("start_us"), values.pop("end_us"))
    if device_resource_id is None:
        values["device_resource_id"] = thread
    values.update(_metadata_json=metadata_json, kernels=[], cpu_children=[], cpu_parent=None, count=1,
                  metadata=typed_metadata, event_metadata=typed_metadata, self_cpu_percent=-1,
                  total_cpu_percent=-1, total_device_percent=-1)
    self.__dict__.update(values)


def _append(event, name, item):
    """Adds to a list of an event; a recorded one gets a list of its own first."""
    if event._model is not None:
        setattr(event, name, getattr(event, name))
    getattr(event, name).append(item)


def _append_kernel(self, name, device, duration):
    """Adds device work that this host event launched."""
    assert _on_host(self), "Expected device_type to be CPU"
    _append(self, "kernels", Kernel(name, device, duration))


def _append_cpu_child(self, child):
    """Adds a host event inside this one."""
    assert _on_host(self), "Expected device_type to be CPU"
    assert isinstance(child, FunctionEvent), "Expected child to be a FunctionEvent"
    assert _on_host(child), "Expected child device_type to be CPU"
    _append(self, "cpu_children", child)


def _set_cpu_parent(self, parent):
    """Tells the host event around this one."""
    assert _on_host(self), "Expected device_type to be CPU"
    assert isinstance(parent, FunctionEvent), "Expected parent to be a FunctionEvent"
    assert _on_host(parent), "Expected parent device_type to be CPU"
    self.cpu_parent = parent


def _repr(self):
    device = self.use_device
    return (f"<{type(self).__name__} id={self.id} name={self.name} overload_name={self.overload_name} "
            f"device_type={self.device_type} node_id={self.node_id} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={str([child.id for child in self.cpu_children])} "
            f"{device}_time={self.device_time_str} name={self.name} thread={self.thread} "
            f"input_shapes={str(self.input_shapes)} cpu_memory_usage={self.cpu_memory_usage} "
            f"{device}_memory_usage={self.device_memory_usage} is_async={self.is_async} "
            f"is_remote={self.is_remote} seq_nr={self.sequence_nr} is_legacy={self.is_legacy}>")


def _get(self, key, default=None):
    """The mapping's value of a key, or the default."""
    return self[key] if key in self else default


_FIELDS = ("id", "name", "trace_name", "overload_name", "node_id", "is_remote", "is_legacy", "count",
           "time_range", "thread", "fwd_thread", "sequence_nr", "kernels", "input_shapes",
           "concrete_inputs", "kwinputs", "structured_input_shapes", "structured_input_strides",
           "input_dtypes", "stack", "scope", "use_device", "cpu_memory_usage", "device_memory_usage",
           "is_async", "device_type", "device_index", "device_resource_id", "flops", "is_user_annotation",
           "is_python_function", "activity_type", "external_id", "linked_correlation_id", "extra_meta",
           "module", "step", "flow_id", "flow_type", "flow_start", "python_id", "python_parent_id",
           "python_module_id", "metadata", "event_metadata", "_metadata_json", "self_cpu_percent",
           "total_cpu_percent", "total_device_percent")


def state_of(event):
    """Everything an event says except its family, as a dict: with it, it can be made by hand."""
    if event._model is None:
        state = dict(event.__dict__)
    else:
        written = event._written
        state = {name: getattr(event, name) for name in _FIELDS}
        if written:
            state.update(event.__dict__)
    state.pop("cpu_children", None)
    state.pop("cpu_parent", None)
    return state


def restore(cls, state):
    """An event made by hand from a state."""
    event = cls.__new__(cls)
    event.__dict__.update(state)
    return event


def _reduce(self, protocol):
    del protocol
    family = {"cpu_children": self.cpu_children, "cpu_parent": self.cpu_parent}
    return (_blank, (type(self),), {**state_of(self), **family})


def _blank(cls):
    return cls.__new__(cls)


def _set_state(self, state):
    self.__dict__.update(state)


def _complete_event():
    methods = {"__init__": _init, "__repr__": _repr, "__reduce_ex__": _reduce, "__setstate__": _set_state,
               "append_kernel": _append_kernel, "append_cpu_child": _append_cpu_child,
               "set_cpu_parent": _set_cpu_parent, "get": _get,
               "keys": lambda self: self.to_dict().keys(), "values": lambda self: self.to_dict().values(),
               "items": lambda self: self.to_dict().items()}
    for name, method in methods.items():
        if method.__name__ == "<lambda>":
            method.__doc__ = f"The mapping's {name}."
        method.__name__ = name
        method.__qualname__ = "FunctionEvent." + name
        setattr(FunctionEvent, name, method)
    FunctionEvent.key = property(lambda self: self.name, doc="What it is grouped by: its name.")
    FunctionEvent.key.__set_name__(FunctionEvent, "key")
    FunctionEvent.metadata_json = property(_metadata_json, doc="Deprecated: event_metadata.")
    for what in ("time_total", "memory_usage"):
        setattr(FunctionEvent, f"self_cuda_{what}", deprecated(f"self_cuda_{what}", f"self_device_{what}"))
    FunctionEvent.cuda_time_total = deprecated("cuda_time_total", "device_time_total")
    for name, (compute, doc) in _LAZY.items():
        lazy = _Lazy(compute, doc)
        lazy.__set_name__(FunctionEvent, name)
        setattr(FunctionEvent, name, lazy)
    for name, value in _CONSTANT.items():
        setattr(FunctionEvent, name, value)
    FunctionEvent.__name__ = "FunctionEvent"  # messages then say it without the module
    FunctionEvent.__module__ = FormattedTimesMixin.__module__ = "mtprof.events"


_mtprof.set_event_rules(device_types=_device_types(), interval=Interval, kernel=Kernel, derive=_derive)
_complete_mixin()
_complete_event()
