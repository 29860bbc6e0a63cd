# SPDX-License-Identifier: Apache-2.0
"""torch's experimental switches, its count of steps, and sizes as people write them."""
import operator
import re

from collections.abc import Iterable

from mtprof._warnings import warn

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMG]?)(?:i?B)?\s*", re.IGNORECASE)
_SHARE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_bytes(name, value):
    """A number of bytes: an int, or a text such as "64M", "64MiB", "1.5G"; K, M and G are powers of 1,024."""
    if isinstance(value, str):
        match = _SIZE.fullmatch(value)
        if match is None:
            raise ValueError(f"{name} must be a number of bytes, as in 67108864, \"64M\", \"64MiB\" or \"1G\", "
                             f"not {value!r}")
        size = int(float(match[1]) * _UNITS[match[2].upper()])
    else:
        try:
            size = operator.index(value)
        except TypeError:
            raise TypeError(f"{name} must be an int or a text such as \"64M\", not {value!r}") from None
    if size <= 0:
        raise ValueError(f"{name} must be positive, not {value!r}")
    return size


def parse_rate(name, value):
    """How often a second: True is 10, None and False 0, or a whole number up to 1000."""
    if value is None or isinstance(value, bool):
        return 10 if value else 0
    if not isinstance(value, int) or not 0 <= value <= 1000:
        raise ValueError(f"{name} must be True, False or a whole number a second up to 1000, not {value!r}")
    return value


def parse_share(name, value):
    """Millionths of a part: of a text such as "1%" or "0.5 %", or of a number (0.01). None and 0: 0, no limit."""
    if value is None:
        return 0
    match = _SHARE.fullmatch(value) if isinstance(value, str) else None
    if match is not None:
        share = float(match[1]) / 100
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        share = value
    else:
        raise ValueError(f'{name} must be a part of the processor time, as in "1%" or 0.01, not {value!r}')
    ppm = round(share * 1e6) if share == share and abs(share) < 10 else -1
    if not 0 <= ppm <= 1000000 or (share > 0 and ppm == 0):
        raise ValueError(f"{name} must be between 0.0001% and 100%, not {value!r}")
    return ppm


def check_callable(name, value, what):
    """Refuses early what would fail when it is called; None and other false values mean that there is none."""
    if value and not callable(value):
        raise TypeError(f"{name} must be {what}, or None, not {value!r}")


def check_timeout(name, value):
    """A number of seconds, or None."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number of seconds, or None, not {value!r}")
    if value < 0:
        raise ValueError(f"{name} must be non-negative, not {value!r}")


class _ExperimentalConfig:
    """torch's experimental switches. verbose traces every Python call; what has no meaning here is kept.

    enable_cuda_graph_dependencies is ours: arrows between the nodes of a replayed CUDA graph.
    """

    def __init__(self, profiler_metrics: Iterable[str] = (), profiler_measure_per_kernel: bool = False,
                 verbose: bool = False, performance_events: Iterable[str] = (),
                 enable_cuda_sync_events: bool = False, adjust_profiler_step: bool = False,
                 disable_external_correlation: bool = False, profile_all_threads: bool = False,
                 capture_overload_names: bool = False, record_python_gc_info: bool = False,
                 expose_kineto_event_metadata: bool = False, custom_profiler_config: str = "",
                 adjust_timestamps: bool = False, trace_only: bool = False,
                 enable_cuda_graph_dependencies: bool = False) -> None:
        self.profiler_metrics = list(profiler_metrics)
        self.profiler_measure_per_kernel = profiler_measure_per_kernel
        self.verbose = verbose
        self.performance_events = list(performance_events)
        self.enable_cuda_sync_events = enable_cuda_sync_events
        self.adjust_profiler_step = adjust_profiler_step
        self.disable_external_correlation = disable_external_correlation
        self.profile_all_threads = profile_all_threads
        self.capture_overload_names = capture_overload_names
        self.record_python_gc_info = record_python_gc_info
        self.expose_kineto_event_metadata = expose_kineto_event_metadata
        self.custom_profiler_config = custom_profiler_config
        self.adjust_timestamps = adjust_timestamps
        self.trace_only = trace_only
        self.enable_cuda_graph_dependencies = enable_cuda_graph_dependencies

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if value)
        return f"_ExperimentalConfig({given})"


class KinetoStepTracker:
    """One step count for everybody who counts steps: the largest of theirs."""

    _counts: dict[str, int] = {}  # of each requester
    _common = 0

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """A requester begins to count, at the common step."""
        cls._counts[requester] = cls._common

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """A requester no longer counts. Whether it did."""
        return cls._counts.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """A requester is a step further; the common step follows where it is ahead."""
        cls._counts[requester] = cls._counts.get(requester, cls._common) + 1
        furthest = max(cls._counts.values())
        if furthest > cls._common + 1:
            warn("Profiler step count has increased more than 1 - "
                 f"current_step = {cls._common} step dict =  {cls._counts}")
        cls._common = max(cls._common, furthest)
        return cls._common

    @classmethod
    def current_step(cls) -> int:
        """The common step."""
        return cls._common
