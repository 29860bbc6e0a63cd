# SPDX-License-Identifier: Apache-2.0
"""torch.autograd.profiler: the older face of the profiler, and what it shares with the newer one."""
from mtprof import ProfilerActivity, kineto_available, record_function
from mtprof._warnings import warn
from mtprof.backend import _Faces
from mtprof.config import KinetoStepTracker, _ExperimentalConfig
from mtprof.enums import DeviceType
from mtprof.profiler import _KinetoProfile
from mtprof.record_fast import _record_function_with_args_enter, _record_function_with_args_exit

from mindtorch_v2.autograd.profiler_util import EventList, FunctionEvent, MemRecordsAcc
from mindtorch_v2.profiler import profiler as _host  # registers this runtime with mtprof

__all__ = [
    "profile", "record_function", "emit_itt", "emit_nvtx", "load_nvprof", "EnforceUnique",
    "parse_nvprof_trace", "KinetoStepTracker", "EventList", "FunctionEvent", "MemRecordsAcc",
]

_DEVICES = {"cuda": ProfilerActivity.CUDA, "npu": ProfilerActivity.PrivateUse1,
            "privateuseone": ProfilerActivity.PrivateUse1, "xpu": ProfilerActivity.XPU,
            "mtia": ProfilerActivity.MTIA, "hpu": ProfilerActivity.HPU}


class profile(_Faces):
    """A context manager that records its block once; afterwards it has the events' own methods.

        with torch.autograd.profiler.profile() as prof:
            model(x)
        print(prof.key_averages().table(sort_by="self_cpu_time_total"))
    """

    def __init__(self, enabled=True, *, use_cuda=False, use_device=None, record_shapes=False,
                 with_flops=False, profile_memory=False, with_stack=False, with_modules=False,
                 use_kineto=False, use_cpu=True,
                 experimental_config=None, acc_events=False, custom_trace_id_callback=None,
                 post_processing_timeout_s=None, activity_filters=None):
        self.enabled = enabled
        self.entered = False
        self.use_cuda = use_cuda
        if use_cuda:
            warn("The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` "
                 "instead.", FutureWarning)
            use_device = "cuda"
        self.record_shapes = record_shapes or with_flops
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        self.use_cpu = use_cpu
        self.experimental_config = experimental_config or _ExperimentalConfig()
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.activity_filters = activity_filters or {}
        self.kineto_activities = set()
        self._prof = None
        if not enabled:
            self.use_device = use_device
            return
        if not use_cpu and not use_kineto:
            raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
        if use_cpu:
            self.kineto_activities.add(ProfilerActivity.CPU)
        self.use_device = self._choose_device(use_device)
        if not self.kineto_activities:
            raise AssertionError("No activities specified for the profiler")

    def _choose_device(self, name):
        activity = _DEVICES.get(name)
        if name is not None and activity is None:
            warn(f"The {name} is not a valid device option.")
        if activity is None:
            return None
        if activity in (ProfilerActivity.CUDA, ProfilerActivity.PrivateUse1):
            from mtprof import supported_activities
            if len(supported_activities()) > 1:
                self.kineto_activities.add(activity)
                return "npu"
        shown = name.upper()
        warn(f"{shown} is not available, disabling {shown} profiling")
        return None

    def __enter__(self):
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        prof = _KinetoProfile(
            activities=self.kineto_activities, record_shapes=self.record_shapes, with_flops=self.with_flops,
            profile_memory=self.profile_memory, with_stack=self.with_stack, with_modules=self.with_modules,
            experimental_config=self.experimental_config, acc_events=self.acc_events,
            custom_trace_id_callback=self.custom_trace_id_callback,
            post_processing_timeout_s=self.post_processing_timeout_s)
        prof.start()
        self.entered = True
        self._prof = prof
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        if self.enabled and self._prof is not None:
            self._prof.stop()
        return False

    def _face_results(self, what):
        if self._prof is None:
            raise AssertionError(f"Profiler must be initialized before {what}")
        return self._prof._results(what)

    def _face_events(self):
        if self._prof is None:
            return EventList(use_device=self.use_device, profile_memory=self.profile_memory,
                             with_flops=self.with_flops)
        return self._prof.events()

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False,
                     include_python_functions=None):
        """Events grouped by name and, where asked, by shapes, stack and overload.

        include_python_functions: rows of Python's functions, too; None: where there are no ops.
        """
        how = (group_by_input_shape, group_by_stack_n, group_by_overload_name, include_python_functions)
        return self._face_events().key_averages(*how) if self._prof is None else super().key_averages(*how)

    def export_chrome_trace(self, path, metadata=None, use_python_export=False):
        """Writes the trace as JSON; `metadata`, a dict, becomes top-level keys."""
        if self._prof is None:
            raise AssertionError("Profiler must be initialized before exporting chrome trace")
        if metadata:
            import json
            for key, value in metadata.items():
                self._prof.add_metadata_json(str(key), json.dumps(value))
        self._prof.export_chrome_trace(path, use_python_export)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """A line per event with a stack, for flame graphs."""
        if self._prof is not None and not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        return super().export_stacks(path, metric)

    def toggle_collection_dynamic(self, enabled, activities):
        """Switches the collection of some activities off or on inside the block."""
        if self._prof is not None:
            self._prof.toggle_collection_dynamic(enabled, activities)

    @property
    def kineto_results(self):
        """The results as torch's C++ object has them; None before the block."""
        from mtprof.kineto_events import _KinetoResults
        return None if self._prof is None else _KinetoResults(self._prof._results("accessing events"))

    @property
    def trace_id(self):
        """The id of the trace; None before the block."""
        return None if self._prof is None else self._prof._trace_id()

    def health(self):
        """What the recording knows about itself."""
        return self._face_results("reading its health").health()

    def __str__(self):
        return "<unfinished torch.autograd.profile>" if self._prof is None else str(self._face_events())

    def __repr__(self):
        return "<unfinished torch.autograd.profile>" if self._prof is None else repr(self._face_events())


class _Emitter:
    """Ranges of every op for another tool: none is built in, so entering one that is enabled says so."""

    _kind = ""
    _why = ""

    def __init__(self, enabled=True, record_shapes=False):
        self.enabled = enabled
        self.entered = False
        self.record_shapes = record_shapes

    def __enter__(self):
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError(f"{self._kind} annotation context manager is not reentrant")
        self.entered = True
        raise self._error()

    def _error(self):
        return RuntimeError(self._why)

    def __exit__(self, exc_type, exc_value, traceback):
        return False


class emit_itt(_Emitter):
    """Every op as an ITT range. This build has no ITT."""

    _kind = "ITT"
    _why = "ITT functions not installed. Are you sure you have a ITT build?"


class emit_nvtx(_Emitter):
    """Every op as an NVTX range. This build has no CUDA, and says so as torch's CPU build does."""

    _kind = "NVTX"
    _why = "mindtorch_v2 not compiled with CUDA enabled"

    def _error(self):
        return AssertionError(self._why)


class EnforceUnique:
    """Raises when a key is seen a second time."""

    def __init__(self):
        self._seen = set()

    def see(self, *key):
        """Notes a key."""
        if key in self._seen:
            raise RuntimeError("duplicate key: " + str(key))
        self._seen.add(key)


def parse_nvprof_trace(path):
    """nvprof's files are not read here."""
    raise NotImplementedError(f"parse_nvprof_trace: nvprof traces are not supported: {path!r}")


def load_nvprof(path):
    """nvprof's files are not read here."""
    raise NotImplementedError(f"load_nvprof: nvprof traces are not supported: {path!r}")


def __getattr__(name):
    """_is_profiler_enabled: whether a profile records now."""
    if name == "_is_profiler_enabled":
        from mindtorch_v2 import _C
        return _C._profiler_enabled()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
