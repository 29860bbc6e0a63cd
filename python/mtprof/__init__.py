# SPDX-License-Identifier: Apache-2.0
"""mtprof: a profiler that costs nanoseconds. torch.profiler's face, for any Python program.

    import mtprof

    with mtprof.profile() as prof:
        with mtprof.record_function("work", size=3):
            mtprof.counter("queue", 7)
    print(prof.key_averages().table())
    prof.save("work.mtt")

Around a few lines of hot code, begin and end are cheaper than a `with`:

    token = mtprof.begin("inner")
    mtprof.end(token)
"""
import atexit as _atexit
import os as _os

TYPE_CHECKING = False  # typing's, whose import takes longer than the rest of this package's
if TYPE_CHECKING:  # at run time: __getattr__() below
    from mtprof.events import EventList, FunctionEvent, FunctionEventAvg
    from mtprof.flight import flight_recorder
    from mtprof.results import explain, load

from mtprof import _mtprof
from mtprof import itt
from mtprof._mtprof import (begin, counter, end, flow, instant, name_thread,
                            record_function)
from mtprof.activities import ActivityError, kineto_available, supported_activities
from mtprof.enums import DeviceType, ProfilerAction, ProfilerActivity, RecordScope
from mtprof.handlers import tensorboard_trace_handler
from mtprof.observers import ExecutionTraceObserver
from mtprof.profiler import KinetoStepTracker, profile, set_host
from mtprof.profiler import _ExperimentalConfig as _ExperimentalConfig, _KinetoProfile as _KinetoProfile
from mtprof.record_fast import _RecordFunctionFast as _RecordFunctionFast
from mtprof.schedules import ScheduleError, schedule

__version__ = _mtprof.version

__all__ = [
    "profile", "schedule", "supported_activities", "tensorboard_trace_handler", "ProfilerAction",
    "ProfilerActivity", "kineto_available", "DeviceType", "record_function", "ExecutionTraceObserver",
    "ActivityError", "EventList", "FunctionEvent", "FunctionEventAvg", "KinetoStepTracker", "RecordScope",
    "ScheduleError", "begin", "counter", "end", "explain", "flight_recorder", "flow", "instant", "itt", "load", "name_thread",
    "set_host",
]

# A session that still runs when the interpreter ends is ended then, and its file finished. After that (last
# in, first out) threads without the GIL no longer look at frames, which are about to be freed.
_atexit.register(_mtprof.stacks_end)
_atexit.register(_mtprof.close_all)
_os.register_at_fork(after_in_child=_mtprof.leave_tracers)

if _os.environ.get("MTPROF_CONTROL", "0") not in ("", "0"):
    from mtprof.control import _listen_if_asked
    _listen_if_asked()
    del _listen_if_asked

_LATER = {"load": "results", "explain": "results", "flight_recorder": "flight", "EventList": "events",
          "FunctionEvent": "events", "FunctionEventAvg": "events"}


if not TYPE_CHECKING:  # a checker would take it for any name
    def __getattr__(name):
        # Results are loaded when first asked for: recording does not need them.
        module = _LATER.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib
        value = getattr(importlib.import_module("mtprof." + module), name)
        globals()[name] = value
        return value


def __dir__():
    return sorted(set(globals()) | set(_LATER))


del TYPE_CHECKING
