# SPDX-License-Identifier: Apache-2.0
"""torch.profiler.profiler: the profiler's classes, with the runtime's accelerator to wait for."""
import os
import sys

from mtprof import (DeviceType, ExecutionTraceObserver, ProfilerAction, ProfilerActivity, kineto_available,
                    record_function, schedule, set_host, supported_activities, tensorboard_trace_handler)
from mtprof._warnings import own_folder
from mtprof.profiler import _ExperimentalConfig, _KinetoProfile, profile

__all__ = [
    "profile", "schedule", "supported_activities", "tensorboard_trace_handler", "ProfilerAction",
    "ProfilerActivity", "kineto_available", "DeviceType", "record_function", "ExecutionTraceObserver",
]


def _synchronize():
    """Waits for what was started on the accelerator: its events belong to the window that closes."""
    npu = getattr(sys.modules.get("mindtorch_v2"), "npu", None)
    if npu is not None:
        npu.synchronize()


set_host(synchronize=_synchronize, device="npu", tells_launches=True)
own_folder(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
