# SPDX-License-Identifier: Apache-2.0
"""torch.profiler's names for stock PyTorch: the same arguments and results, recorded by mtprof.

    from mtprof.torch import profile, record_function, schedule

    with profile(record_shapes=True) as prof:
        train_step()
    print(prof.key_averages().table(sort_by="self_cpu_time_total"))

patch() puts it behind `torch.profiler` for programs that nobody wants to edit. info() says how much of
torch's records can be read: tier "full", or "names" where torch's layout is not the known one. choose_tier() asks for
another: "compiled" finds the layout with torch's own headers.
"""
import sys

if "mindtorch_v2" in sys.modules and sys.modules.get("torch") is sys.modules["mindtorch_v2"]:
    raise ImportError("mtprof.torch records stock PyTorch; torch is mindtorch_v2 here, whose torch.profiler is mtprof's "
                      "already", name="mtprof.torch")

from mtprof import (DeviceType, EventList, FunctionEvent, FunctionEventAvg, KinetoStepTracker, ProfilerAction,
                    ProfilerActivity, RecordScope, explain, kineto_available, load, schedule, supported_activities,
                    tensorboard_trace_handler)
from mtprof.torch import _itt

_itt.prepare()  # before torch is imported

from mtprof.torch._cuda import CudaInfo, cuda_info  # noqa: E402
from mtprof.torch._flight import flight_recorder  # noqa: E402
from mtprof.torch._library import TorchHostError, choose_tier, info  # noqa: E402
from mtprof.torch._patch import patch, unpatch  # noqa: E402
from mtprof.torch._profiler import ExecutionTraceObserver, _ExperimentalConfig, _KinetoProfile, profile  # noqa: E402
from mtprof.torch._scopes import record_function  # noqa: E402

__all__ = [
    "profile", "schedule", "supported_activities", "tensorboard_trace_handler", "ProfilerAction",
    "ProfilerActivity", "kineto_available", "DeviceType", "record_function", "ExecutionTraceObserver",
    "EventList", "FunctionEvent", "FunctionEventAvg", "KinetoStepTracker", "RecordScope", "TorchHostError",
    "CudaInfo", "choose_tier", "cuda_info", "explain", "flight_recorder", "info", "load", "patch", "unpatch",
]
