# SPDX-License-Identifier: Apache-2.0
"""Types of mtprof; tests/python/profiler/test_types.py compares names and parameters with what runs."""
from mtprof import itt as itt
from mtprof._mtprof import begin as begin
from mtprof._mtprof import counter as counter
from mtprof._mtprof import end as end
from mtprof._mtprof import flow as flow
from mtprof._mtprof import instant as instant
from mtprof._mtprof import name_thread as name_thread
from mtprof._mtprof import record_function as record_function
from mtprof.activities import ActivityError as ActivityError
from mtprof.activities import kineto_available as kineto_available
from mtprof.activities import supported_activities as supported_activities
from mtprof.enums import DeviceType as DeviceType
from mtprof.enums import ProfilerAction as ProfilerAction
from mtprof.enums import ProfilerActivity as ProfilerActivity
from mtprof.enums import RecordScope as RecordScope
from mtprof.events import EventList as EventList
from mtprof.events import FunctionEvent as FunctionEvent
from mtprof.events import FunctionEventAvg as FunctionEventAvg
from mtprof.handlers import tensorboard_trace_handler as tensorboard_trace_handler
from mtprof.observers import ExecutionTraceObserver as ExecutionTraceObserver
from mtprof.profiler import KinetoStepTracker as KinetoStepTracker
from mtprof.profiler import _ExperimentalConfig as _ExperimentalConfig
from mtprof.profiler import _KinetoProfile as _KinetoProfile
from mtprof.profiler import profile as profile
from mtprof.profiler import set_host as set_host
from mtprof.record_fast import _RecordFunctionFast as _RecordFunctionFast
from mtprof.results import load as load
from mtprof.schedules import ScheduleError as ScheduleError
from mtprof.schedules import schedule as schedule

__all__ = [
    "profile", "schedule", "supported_activities", "tensorboard_trace_handler", "ProfilerAction",
    "ProfilerActivity", "kineto_available", "DeviceType", "record_function", "ExecutionTraceObserver",
    "ActivityError", "EventList", "FunctionEvent", "FunctionEventAvg", "KinetoStepTracker", "RecordScope",
    "ScheduleError", "begin", "counter", "end", "flow", "instant", "itt", "load", "name_thread", "set_host",
]
