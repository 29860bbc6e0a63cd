# SPDX-License-Identifier: Apache-2.0
"""prof.profiler.kineto_results: events whose facts are methods and whose times are Unix nanoseconds, as the
objects of torch's C++ part have them."""
import enum
from types import SimpleNamespace

_SAME = ("activity_type", "device_index", "device_resource_id", "device_type", "flow_id", "flow_start",
         "flow_type", "is_async", "is_python_function", "is_user_annotation", "linked_correlation_id",
         "overload_name", "python_id", "python_module_id", "python_parent_id", "scope", "sequence_nr",
         "external_id")
_RENAMED = {"correlation_id": "id", "start_thread_id": "thread", "end_thread_id": "thread",
            "fwd_thread_id": "fwd_thread"}
_LISTS = {"shapes": "input_shapes", "dtypes": "input_dtypes", "stack": "stack",
          "concrete_inputs": "concrete_inputs",
          "structured_input_shapes": "structured_input_shapes",
          "structured_input_strides": "structured_input_strides"}
_DICTS = {"kwinputs": "kwinputs", "extra_meta": "extra_meta"}


class _KinetoEvent:
    """One event; see FunctionEvent for what the names mean."""

    __slots__ = ("_event",)

    def __init__(self, event):
        self._event = event

    def name(self):
        """The name, steps with their number."""
        return self._event.trace_name or self._event.name

    def start_ns(self):
        """When it began."""
        return self._event["start_ns"] + self._event._model.info["real_offset_ns"]

    def end_ns(self):
        """When it ended."""
        return self.start_ns() + self.duration_ns()

    def duration_ns(self):
        """How long it took."""
        return self._event["duration_ns"]

    def nbytes(self):
        """Bytes of an allocation, negative of a release; 0 of all else."""
        event = self._event
        return event.cpu_memory_usage + event.device_memory_usage if event["kind"] == "memory" else 0

    def flops(self):
        """Floating-point operations; 0: not known."""
        return self._event.flops or 0

    def metadata_json(self):
        """What the trace says beside, where it is exposed."""
        import warnings
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # the attribute is deprecated, this is not
            return self._event.metadata_json or ""

    def is_hidden_event(self):
        """Whether torch would leave it out of events(); nothing here is."""
        return False

    def cuda_elapsed_us(self):
        """Device time by a pair of events: -1, it is never taken so."""
        return -1

    privateuse1_elapsed_us = cuda_elapsed_us

    def __repr__(self):
        return f"<_KinetoEvent {self.name()!r}>"


def _method(name, attribute, empty):
    def read(self):
        value = getattr(self._event, attribute)
        return empty() if value is None and empty is not None else value
    read.__name__ = name
    read.__doc__ = f"FunctionEvent.{attribute}."
    setattr(_KinetoEvent, name, read)


for _name in _SAME:
    _method(_name, _name, None)
for _table, _empty in ((_RENAMED, None), (_LISTS, list), (_DICTS, dict)):
    for _name, _attribute in _table.items():
        _method(_name, _attribute, _empty)


class _EventType(enum.Enum):
    """What kind of event a node is; torch's members."""

    TorchOp = 0
    Backend = 1
    Vulkan = 2
    Allocation = 3
    OutOfMemory = 4
    PyCall = 5
    PyCCall = 6
    Kineto = 7
    PythonGC = 8


class _TensorMetadata(SimpleNamespace):
    """A tensor among an op's inputs: sizes, strides, dtype, dim."""


def _inputs(event):
    """One for each input: a tensor, a list of tensors, a number or None."""
    shapes, strides = event.structured_input_shapes or [], event.structured_input_strides or []
    values, types = event.concrete_inputs or [], event.input_dtypes or []
    found = []
    for i, shape in enumerate(shapes):
        value = values[i] if i < len(values) else None
        stride = strides[i] if i < len(strides) else []
        dtype = types[i] if i < len(types) else ""
        if value is not None:
            found.append(value)
        elif shape and isinstance(shape[0], list):
            found.append([_TensorMetadata(sizes=one, strides=[], dim=len(one), dtype=dtype) for one in shape])
        elif dtype in ("", "Scalar", "ScalarList", "None"):
            found.append(None)
        else:
            found.append(_TensorMetadata(sizes=list(shape), strides=list(stride), dim=len(shape), dtype=dtype))
    return found


class _ProfilerEvent:
    """A node: children and parent are nodes, times are Unix nanoseconds."""

    def __init__(self, event, tag, parent, offset_ns):
        self._event = event
        self.tag = tag
        self.parent = parent
        self.children = []
        self.name = event.trace_name or event.name
        self.overload_name = event.overload_name or ""
        self.start_time_ns = event["start_ns"] + offset_ns
        self.duration_time_ns = event["duration_ns"]
        self.end_time_ns = self.start_time_ns + self.duration_time_ns
        self.start_tid = event.thread
        self.correlation_id = event.id
        self.id = id(self)

    @property
    def extra_fields(self):
        """What only events of this kind have."""
        event = self._event
        if self.tag is _EventType.TorchOp:
            return SimpleNamespace(name=self.name, inputs=_inputs(event), scope=event.scope,
                                   sequence_number=event.sequence_nr, allow_tf32_cublas=False)
        if self.tag is _EventType.Allocation:
            return SimpleNamespace(alloc_size=event.cpu_memory_usage + event.device_memory_usage)
        return SimpleNamespace()

    @property
    def typed(self):
        """The kind and its fields."""
        return self.tag, self.extra_fields

    def __repr__(self):
        return f"<_ProfilerEvent {self.name!r}>"


_TAGS = {"op": _EventType.TorchOp, "scope": _EventType.TorchOp, "memory": _EventType.Allocation}


def _event_tree(events):
    """The roots, in order of start: ops and scopes, device work, and allocations outside of all of them."""
    roots, nodes = [], {}
    events = list(events)
    offset_ns = events[0]._model.info["real_offset_ns"] if events else 0
    for event in events:  # in order of start: parents come first
        tag = _TAGS.get(event["kind"], _EventType.Kineto)
        around = event.cpu_parent
        parent = None if around is None else nodes.get(around._index)
        node = _ProfilerEvent(event, tag, parent, offset_ns)
        nodes[event._index] = node
        (roots if parent is None else parent.children).append(node)
    return roots


class _KinetoResults:
    """The events, and the trace."""

    def __init__(self, results):
        self._held = results

    def events(self):
        """The events in order of start."""
        return [_KinetoEvent(event) for event in self._held.events()]

    def experimental_event_tree(self):
        """The events as a list of trees."""
        return _event_tree(self._held.events())

    def trace_start_ns(self):
        """When the trace began, Unix nanoseconds."""
        info = self._held._latest().info
        return info["start_ns"] + info["real_offset_ns"]

    def save(self, path):
        """Writes the Chrome trace."""
        self._held.export_chrome_trace(path)
