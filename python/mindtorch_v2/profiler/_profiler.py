# SPDX-License-Identifier: Apache-2.0
"""What torch has in torch._C._profiler: the profiler's low-level names, there as mindtorch_v2._C._profiler."""
from mtprof.config import _ExperimentalConfig
from mtprof.enums import ProfilerActivity, RecordScope
from mtprof.record_fast import _RecordFunctionFast

__all__ = ["ProfilerActivity", "RecordScope", "_ExperimentalConfig", "_RecordFunctionFast"]
