# SPDX-License-Identifier: Apache-2.0
"""torch.profiler's names: mtprof with this runtime as its host."""
from mtprof.enums import RecordScope
from mtprof.config import KinetoStepTracker

from mindtorch_v2.profiler import itt
from mindtorch_v2.profiler.profiler import (
    DeviceType, ExecutionTraceObserver, ProfilerAction, ProfilerActivity, _ExperimentalConfig, _KinetoProfile,
    kineto_available, profile, record_function, schedule, supported_activities, tensorboard_trace_handler)

__all__ = [
    "profile", "schedule", "supported_activities", "tensorboard_trace_handler", "ProfilerAction",
    "ProfilerActivity", "kineto_available", "DeviceType", "record_function", "ExecutionTraceObserver",
]
