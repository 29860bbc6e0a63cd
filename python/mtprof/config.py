# SPDX-License-Identifier: Apache-2.0
"""torch's experimental switches, and its count of steps."""
import collections

from mtprof._warnings import warn


class _ExperimentalConfig:
    """torch's experimental switches. verbose traces every Python call; what has no meaning here is kept."""

    def __init__(self, profiler_metrics=(), profiler_measure_per_kernel=False, verbose=False,
                 performance_events=(), enable_cuda_sync_events=False, adjust_profiler_step=False,
                 disable_external_correlation=False, profile_all_threads=False, capture_overload_names=False,
                 record_python_gc_info=False, expose_kineto_event_metadata=False, custom_profiler_config="",
                 adjust_timestamps=False, trace_only=False):
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

    def __repr__(self):
        given = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if value)
        return f"_ExperimentalConfig({given})"


class KinetoStepTracker:
    """One step count for everybody who counts steps: the largest of theirs."""

    _current_step = 0
    _step_dict = collections.defaultdict(int)

    @classmethod
    def init_step_count(cls, requester):
        """A requester begins to count, at the common step."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester):
        """A requester no longer counts. Whether it did."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester):
        """A requester is a step further; the common step follows where it is ahead."""
        if requester not in cls._step_dict:
            cls.init_step_count(requester)
        cls._step_dict[requester] += 1
        new = max(cls._step_dict.values())
        if new > cls._current_step:
            if new - cls._current_step > 1:
                warn("Profiler step count has increased more than 1 - "
                     f"current_step = {cls._current_step} step dict =  {dict(cls._step_dict)}")
            cls._current_step = new
        return cls._current_step

    @classmethod
    def current_step(cls):
        """The common step."""
        return cls._current_step
