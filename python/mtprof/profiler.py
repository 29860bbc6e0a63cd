# SPDX-License-Identifier: Apache-2.0
"""profile: torch.profiler's life cycle over libmtprof.

The state machine, schedules, windows and metadata are C's (mtprof/profile.h); here are torch's arguments,
attributes and messages. Names that begin with an underscore and are not torch's are what C calls back.
"""
import collections
import os
import weakref

from mtprof import _mtprof, activities as _activities
from mtprof._mtprof import (
    PROFILE_ACC_EVENTS as _ACC_EVENTS, PROFILE_DETAILS as _DETAILS, PROFILE_MEMORY as _MEMORY,
    PROFILE_OVERLOADS as _OVERLOADS, PROFILE_RECORD_SHAPES as _SHAPES, PROFILE_STRIDES as _STRIDES,
    PROFILE_TENSOR_IDS as _TENSOR_IDS, PROFILE_WITH_FLOPS as _FLOPS, PROFILE_WITH_MODULES as _MODULES,
    PROFILE_WITH_STACK as _STACK,
    RESULTS_NONE as _NONE, RESULTS_PREPARED as _PREPARED, RESULTS_READY as _READY,
    RESULTS_RECORDING as _RECORDING, TRACER_CALLS as _CALLS, TRACER_COLLECTIONS as _COLLECTIONS)
from mtprof._warnings import warn
from mtprof.backend import _Backend
from mtprof.config import (check_callable, check_timeout, KinetoStepTracker, parse_bytes, parse_rate, parse_share,
                           _ExperimentalConfig)
from mtprof.enums import ProfilerAction, ProfilerActivity
from mtprof.observers import ExecutionTraceObserver, _RecordsTensors
from mtprof.schedules import _Schedule, record_always

_POLICIES = {"spill": _mtprof.POLICY_SPILL, "ring": _mtprof.POLICY_RING, "stop": _mtprof.POLICY_STOP}
_PROFILER_STEP = "ProfilerStep"
_ACTIONS = tuple(ProfilerAction)

_Window = collections.namedtuple(
    "_Window", "results window first_window saved delivered first_step steps collecting sessions")

__all__ = ["profile", "set_host", "KinetoStepTracker", "_ExperimentalConfig", "_KinetoProfile"]

# Called with each profile that starts: a recording of the whole program gives way to it (mtprof.run).
_around = None
_on_optimizers = None  # a function of the module that has mindtorch_v2's optimizers, called when it is there

# What only the program around the profiler knows; see set_host().
_host = {"synchronize": None, "device": "npu", "tells_launches": False}


def set_host(*, synchronize=None, device=None, tells_launches=None):
    """Tells the profiler about the runtime it profiles: how to wait for its accelerator, and its name.

    tells_launches: each launch is recorded as it is made, so that a window without one need not wait.
    """
    if tells_launches is not None:
        _host["tells_launches"] = bool(tells_launches)
    if synchronize is not None:
        _host["synchronize"] = synchronize
    if device is not None:
        _host["device"] = device
        _activities.set_accelerator(device)


def _describe_place(backend, rank, world_size):
    """A process's place among its peers, as torch's traces have it (distributedInfo)."""
    group = {"pg_name": "0", "pg_desc": "default_pg", "pg_size": world_size}
    return {"backend": backend, "rank": rank, "world_size": world_size, "pg_count": 1, "pg_config": [group]}


def _place_among_peers(environ):
    """This process's place among its peers, from the environment that launchers set; None: alone."""
    try:
        rank, world_size = int(environ["RANK"]), int(environ["WORLD_SIZE"])
    except (KeyError, ValueError):
        return None
    return _describe_place(environ.get("MINDTORCH_BACKEND", "unknown"), rank, world_size)


def _job_id(environ):
    """What the ranks of one job have in common, from the environment that launchers set; None: it is not known."""
    job = environ.get("TORCHELASTIC_RUN_ID") or environ.get("SLURM_JOB_ID")
    return job if job and job != "none" else None  # torchrun's word for none


class _KinetoProfile(_mtprof.Profile):
    """A profiler without a schedule: start and stop, or prepare_trace, start_trace and stop_trace.

    Keyword arguments in addition to torch's: `with_calls` (every call of a Python or built-in
    function is an event; the same as with_stack=True and _ExperimentalConfig(verbose=True)), `path`
    (record into this .mtt file; the variable MTPROF_PATH does the same, for several processes: "%p"
    in it is the process's id, and where another process records to it already this one takes
    NAME.PID.mtt), `buffer_bytes` (of memory for events: a number, or a text such as "64M" or
    "1GiB"), `policy` (what happens when it is full: "spill" goes on in a file, "ring" lets the
    oldest go, "stop" keeps the oldest) and `overhead` (the most that recording may take of the
    processor time, such as "1%": what does not fit is left out, and counted), and
    `process_counters` (True: counters of the process, ten times a second).
    """

    def __init__(self, *, activities=None, record_shapes=False, profile_memory=False, with_stack=False,
                 with_flops=False, with_modules=False, experimental_config=None,
                 execution_trace_observer=None, acc_events=False, custom_trace_id_callback=None,
                 post_processing_timeout_s=None, path=None, buffer_bytes=None, policy="spill", with_calls=False,
                 overhead=None, process_counters=None):
        check_callable("custom_trace_id_callback", custom_trace_id_callback, "a function that returns the trace's id")
        if experimental_config is not None and not hasattr(experimental_config, "verbose"):
            raise TypeError(f"experimental_config must be an _ExperimentalConfig, or None, not {experimental_config!r}")
        for method in ("start", "stop"):
            if execution_trace_observer and not callable(getattr(execution_trace_observer, method, None)):
                raise TypeError("execution_trace_observer must have start() and stop(), as ExecutionTraceObserver has, "
                                f"not {execution_trace_observer!r}")
        with_stack = with_stack or bool(with_calls)
        self.activities, self.activity_filters = _activities.parse(activities)
        self.record_shapes = record_shapes
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        self.with_calls = bool(with_calls or (with_stack and getattr(experimental_config, "verbose", False)))
        self.experimental_config = experimental_config
        self.execution_trace_observer = (execution_trace_observer if execution_trace_observer
                                         else ExecutionTraceObserver.build_execution_trace_obs_from_env())
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.has_cudagraphs = False
        self.mem_tl = None
        self.preset_metadata = {}
        self._generation = 0     # grows with each window that opens or closes
        self._kept = (None, None)  # of which window, its results
        self._metadata_added = False  # since then
        self._view = None        # weak: prof.profiler
        self._open_profile(activities is None, path, buffer_bytes, policy, overhead, process_counters)

    # ---- setting up ----

    def _flags(self):
        flags = 0
        for on, flag in ((self.record_shapes, _SHAPES | _STRIDES), (self.profile_memory, _MEMORY),
                         (self.with_stack, _STACK), (self.with_flops, _FLOPS), (self.with_modules, _MODULES),
                         (self.acc_events, _ACC_EVENTS)):
            flags |= flag if on else 0
        if self.record_shapes and self.profile_memory and self.with_stack:
            flags |= _TENSOR_IDS  # which the memory timeline needs for its categories
        if isinstance(self.execution_trace_observer, (ExecutionTraceObserver, _RecordsTensors)):
            flags |= _TENSOR_IDS | _SHAPES | _STRIDES
        if self.with_calls or getattr(self.experimental_config, "verbose", False):
            flags |= _DETAILS
        if getattr(self.experimental_config, "capture_overload_names", False):
            flags |= _OVERLOADS
        return flags

    def _tracers(self):
        """Tracers of the interpreter that C switches with each window."""
        collections = getattr(self.experimental_config, "record_python_gc_info", False)
        return (_CALLS if self.with_calls else 0) | (_COLLECTIONS if collections else 0)

    def _open_profile(self, everything, path, buffer_bytes, policy, overhead, process_counters):
        bits = _activities.bits(self.activities)
        self._usable = bits != 0  # XPU and the like alone: start() says so, as torch's does
        shared = path is None  # the environment's is every child's as well
        if shared:
            path = os.environ.get("MTPROF_PATH") or None
        if policy not in _POLICIES:
            raise ValueError(f"policy must be one of {', '.join(map(repr, _POLICIES))}, not {policy!r}")
        size = 0 if buffer_bytes is None else parse_bytes("buffer_bytes", buffer_bytes)
        self._open(_activities.ALL_BITS if everything else bits or _activities.CPU_BIT, self._flags(),
                   policy=_POLICIES[policy], path=path, path_shared=shared, schedule=self._schedule_for_c(),
                   buffer_bytes=size, trace_id=bool(self.custom_trace_id_callback), tracers=self._tracers(),
                   muted=_activities.muted_bits(self.activity_filters),
                   overhead_ppm=parse_share("overhead", overhead),
                   counters_hz=parse_rate("process_counters", process_counters))
        for key, value in (("distributedInfo", _place_among_peers(os.environ)), ("job_id", _job_id(os.environ))):
            if value is not None:
                import json
                self._metadata(2, key, json.dumps(value))

    def _schedule_for_c(self):
        return None

    @property
    def use_device(self):
        """The accelerator's name where it is profiled and, once there are results, where they have work of it."""
        if not self._activity_bits & _activities.DEVICE_BIT:
            return None
        return _host["device"] if self._window_now().results == _NONE or self._device_work() else None

    # ---- what C calls ----

    def _warn(self, status, message):
        if not message.startswith("NPU is not available"):  # the constructor has said so, by its asked name
            warn(message)

    def _observe(self, event):
        self._generation += 1
        observer = self.execution_trace_observer
        if event == 0:
            self._work_before = self._device_work()
            if isinstance(observer, ExecutionTraceObserver):
                observer._start_driven()
            elif observer is not None:
                observer.start()
            return
        self._wait_for_device()
        if observer is not None:
            if isinstance(observer, ExecutionTraceObserver) and observer.is_running():
                self._unwritten = observer
            observer.stop()

    _work_before = 0  # for the device, when the window opened
    _failure = None   # of the device, when it was waited for: raised once the window is closed
    _raising = None   # what a with block is left by

    def _wait_for_device(self):
        """What was launched in the window is done before it closes."""
        if _host["synchronize"] is None or not self._activity_bits & _activities.DEVICE_BIT:
            return
        if _host["tells_launches"] and self._device_work() <= self._work_before:
            return  # nothing was launched: there is no wait, and no call in the trace that waits
        try:
            _host["synchronize"]()
        except Exception as error:  # the window closes, and is delivered, all the same
            self._failure = error

    def _raise_failure(self):
        """Raises what the device said when a window closed, once; not what the block is left by anyway."""
        error, self._failure = self._failure, None
        said = self._raising
        if error is not None and not (type(error) is type(said) and str(error) == str(said)):
            raise error

    def _trace_ready(self):
        self._write_execution_trace()

    def _custom_trace_id(self):
        return self.custom_trace_id_callback()

    _unwritten = None
    _flavor = None    # of exports, where neither the call nor the environment says it

    def _write_execution_trace(self):
        """The observer's file, once its window has closed."""
        observer, self._unwritten = self._unwritten, None
        if observer is not None:
            observer._write(self)

    # ---- life cycle ----

    def _check_start(self):
        if _around is not None:
            _around(self)
        check_timeout("post_processing_timeout_s", self.post_processing_timeout_s)
        if not self._usable:
            names = ", ".join(sorted(member.name for member in self.activities))
            raise AssertionError(f"No activities specified for the profiler that can be recorded here, only {names}")
        if self.with_stack or self.with_modules:
            _mtprof.install_language()  # done already, unless a recording ran when mtprof was imported

    def start(self):
        """Begins to record."""
        self.prepare_trace()
        self.start_trace()

    def stop(self):
        """Ends recording."""
        self.stop_trace()

    def prepare_trace(self):
        """The trace gets its id, earlier results go."""
        self._check_start()
        self._prepare_trace()

    def start_trace(self):
        """The window opens."""
        self._start_trace()

    def stop_trace(self):
        """The window closes. What the device reports is raised when that is done."""
        try:
            self._stop_trace()
            self._write_execution_trace()
        finally:
            self._raise_failure()

    def toggle_collection_dynamic(self, enable, activities):
        """Switches the collection of some activities off or on while a window is open."""
        bits = _activities.bits(_activities.members(activities), warned=False)
        if bits and self._window_now().results == _RECORDING:
            self._toggle(bool(enable), bits)

    # ---- metadata ----

    @staticmethod
    def _check_key(key):
        if not isinstance(key, str):
            raise TypeError(f"the key of metadata must be a str, not {key!r}")

    def add_metadata(self, key, value):
        """A text for the trace, under a top-level key."""
        self._check_key(key)
        if not isinstance(value, str):
            raise AttributeError(f"{type(value).__name__!r} object has no attribute 'replace': "
                                 f"the value of metadata {key!r} must be a str, not {value!r}")
        self._metadata(0, key, value)
        self._metadata_added = True

    def add_metadata_json(self, key, value):
        """A JSON value for the trace, as text."""
        self._check_key(key)
        if not isinstance(value, str):
            raise TypeError(f"the JSON of metadata {key!r} must be a str, not {value!r}")
        self._metadata(1, key, value)
        self._metadata_added = True

    def preset_metadata_json(self, key, value):
        """A JSON value for every trace from now on."""
        self._check_key(key)
        if not isinstance(value, str):
            raise TypeError(f"the JSON of metadata {key!r} must be a str, not {value!r}")
        self.preset_metadata[key] = value
        self._metadata(2, key, value)

    # ---- results ----

    def _window_now(self):
        return _Window(*self._window())

    def _results(self, what, fresh=False):
        """The results of the latest window, made once; while it is open, what is there so far."""
        window = self._window_now()
        if window.results == _NONE:
            raise self._nothing(what)  # no name here holds it: that would be a cycle with the traceback
        of = (self._generation, window)
        if self._kept[0] == of and not fresh:
            return self._kept[1]
        from mtprof.results import Results, has_device_work
        models = [self._model(number) for number in range(window.sessions, 0, -1)]
        if self.acc_events and window.window > max(window.first_window, 1):
            # torch shows the newest cycle first, and the trace it exports is the newest one's.
            models[:1] = [self._model(0, number) for number in range(window.window, window.first_window - 1, -1)]
        if getattr(self.experimental_config, "expose_kineto_event_metadata", False):
            for model in models:
                model.cache["exposed"] = True
        profiled = self._activity_bits & _activities.DEVICE_BIT
        device = _host["device"] if profiled and any(map(has_device_work, models)) else None
        results = Results(models, use_device=device, record_shapes=bool(self.record_shapes),
                          profile_memory=bool(self.profile_memory), with_stack=bool(self.with_stack),
                          with_flops=bool(self.with_flops), with_modules=bool(self.with_modules),
                          reason=self._reason_maker(), flavor=self._flavor)
        if window.results == _READY and not fresh:
            self._kept = (of, results)
            self._metadata_added = False
        return results

    def __repr__(self):
        try:
            window = self._window_now()
        except Exception:  # __init__ failed half-way
            return f"<{type(self).__name__}: not set up>"
        words = {_NONE: "not started", _PREPARED: "warming up", _RECORDING: "recording", _READY: "stopped"}
        text = words.get(window.results, "unknown")
        if self._step_num:
            text += f", step {self._step_num}"
        if window.results == _READY and self._kept[1] is not None:
            text += f"; {self._kept[1].health()}"
        return f"<{type(self).__name__}: {text}>"

    def _nothing(self, what):
        error = AssertionError(f"Profiler must be initialized before {what}")
        if hasattr(error, "add_note"):
            error.add_note(self._explain())  # shown with the traceback; the text is torch's
        return error

    def _reason_maker(self):
        # Explained now: later the profile may be in another window, or gone.
        text = self._explain()
        return lambda: text

    @property
    def profiler(self):
        """What torch calls the autograd profiler behind this one; None before a trace was prepared."""
        if self._window_now().results == _NONE:
            return None
        view = self._view() if self._view is not None else None
        if view is None:
            view = _Backend(self)
            self._view = weakref.ref(view)
        return view

    def events(self, *, marks=False):
        """The events of the latest window; marks: with instants, counters and flows among them.

        While the window is open these are the events so far. Their ids are provisional: the final ones are fixed
        when the window closes.
        """
        return self._results("accessing events").events(marks=marks)

    def marks(self, kind=None):
        """Instants, counters and flows of the latest window, see Results.marks()."""
        return self._results("accessing marks").marks(kind)

    def metadata(self):
        """Metadata of the latest trace, a dict: what add_metadata() added, and what the profiler did."""
        return self._results("accessing metadata", fresh=self._metadata_added).metadata()

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False,
                     include_python_functions=None):
        """Events grouped by name and, where asked, by shapes, stack and overload.

        include_python_functions: rows of Python's functions, too; None: where there are no ops.
        """
        return self._results("getting key averages").key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name, include_python_functions)

    def arrow(self, table="events"):
        """A table for pyarrow, polars and DuckDB: "events", "averages", "steps" …, see Results.arrow()."""
        return self._results("reading a table").arrow(table)

    def __arrow_c_stream__(self, requested_schema=None):
        """The events as a capsule of an ArrowArrayStream, see arrow()."""
        return self.arrow().__arrow_c_stream__(requested_schema)

    def export_chrome_trace(self, path, use_python_export=False, *, flavor=None):
        """Writes the trace as JSON for chrome://tracing, Perfetto, TensorBoard and HTA (.gz: compressed)."""
        del use_python_export  # torch's: an exporter of its own
        # Results that were made before metadata was added do not have it.
        results = self._results("exporting chrome trace", fresh=self._metadata_added)
        results.export_chrome_trace(path, flavor=flavor)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """A line per event with a stack, for flame graphs."""
        results = self._results("exporting stacks")
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        return results.export_stacks(path, metric)

    def export_memory_timeline(self, path, device=None):
        """Memory by category over time: .json, .json.gz, raw.json.gz or .html."""
        warn("`export_memory_timeline` is deprecated and will be removed in a future version.", FutureWarning)
        missing = [f"{flag}=True" for flag in ("record_shapes", "profile_memory", "with_stack")
                   if not getattr(self, flag)]
        if missing:
            raise ValueError(f"{', '.join(missing)} required for memory profiling.")
        self.mem_tl = self._results("exporting a memory timeline")._memory_timeline(path, device)

    def export(self, format, path, **options):
        """Writes the trace in any format of `mtprof export`: "perfetto", "speedscope", "folded", "pprof", "csv" …"""
        return self._results(f"exporting {format}", fresh=self._metadata_added).export(format, path, **options)

    def export_report(self, path, baseline=None):
        """Writes one HTML page that tells where the time went and why; it needs no network.

        baseline: an older trace that the page compares with: a path, or anything with results (a profile, a Trace).
        """
        from mtprof.results import baseline_options
        self.export("report", path, **baseline_options(baseline))

    def report(self, baseline=None):
        """The page of export_report() as an object that a notebook shows inline; baseline: as there."""
        return self._results("reporting it", fresh=self._metadata_added).report(baseline)

    def _repr_html_(self):
        try:
            if self._window_now().results != _READY:
                return None  # a notebook shows repr() then
        except Exception:  # __init__ failed half-way
            return None
        return self._results("showing it")._repr_html_()

    def save(self, path):
        """Writes the trace as a .mtt file, for mtprof.load() and the mtprof command."""
        self._save(path)

    def health(self):
        """What the recording knows about itself: how much it holds, what it lost, what it costs."""
        return self._results("reading its health").health()

    def explain(self, step=None):
        """Why the program is slow: findings with evidence and advice (docs/explain.md); print() shows them.

        step: only this one. Where nothing was recorded the text says why.
        """
        if self._window_now().results == _NONE:
            from mtprof.results import Explanation
            return Explanation.of_nothing(self._explain())
        return self._results("explaining it").explain(step)


class profile(_KinetoProfile):
    """Records what a program does, step by step where there is a schedule.

        with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=3),
                     on_trace_ready=tensorboard_trace_handler("log")) as prof:
            for batch in data:
                train(batch)
                prof.step()

    Without a schedule everything from start to stop is recorded. Results: key_averages(), events(),
    export_chrome_trace(), save(), health().

    Arguments, all by name; those up to post_processing_timeout_s are torch's:

        activities: what to record, ProfilerActivity members or their names ("cpu", "npu", "cuda" ...); None: all
            that is supported here.
        schedule: a function from the step's number to a ProfilerAction, see schedule(); None: record always.
        on_trace_ready: called with the profiler each time a window has been recorded.
        record_shapes: shapes, types and values of ops' inputs.
        profile_memory: allocations and releases, and the memory that ops allocate.
        with_stack: the Python stack of every op and scope.
        with_flops: floating-point operations of matrix products and convolutions.
        with_modules: the path of nn.Modules around each op.
        experimental_config: torch's further switches, an _ExperimentalConfig.
        execution_trace_observer: an ExecutionTraceObserver that writes each window as an execution trace.
        acc_events: keep the events of earlier windows; otherwise only the latest one's are there.
        use_cuda: deprecated, use activities.
        custom_trace_id_callback: makes the id of each trace; None: a random one.
        post_processing_timeout_s: accepted, and has no effect: results are made when they are asked for.
        path: record into this .mtt file, which survives a crash; also by the variable MTPROF_PATH. None: in memory.
        buffer_bytes: memory for events, a number of bytes or a text such as "64M"; None: chosen by what is free.
        policy: when the memory is full, "spill" goes on in a file, "ring" lets the oldest events go, "stop" keeps
            the oldest.
        with_calls: also every call of a Python function, at its own measured cost.
        overhead: the most that recording may take of the process's processor time, "1%" or 0.01; None: no limit. What
            does not fit is left out: payloads first, then of ops that come often most, then ops, then of scopes that
            come often most. health() and the tables say what was left out.
        process_counters: counters of the process as tracks of the trace, True (ten times a second) or how often a
            second: CPU cores in use, resident bytes, context switches, page faults and, where the kernel allows it,
            instructions, cycles, cache and branch misses.
    """

    def __init__(self, *, activities=None, schedule=None, on_trace_ready=None, record_shapes=False,
                 profile_memory=False, with_stack=False, with_flops=False, with_modules=False,
                 experimental_config=None, execution_trace_observer=None, acc_events=False, use_cuda=None,
                 custom_trace_id_callback=None, post_processing_timeout_s=None, path=None, buffer_bytes=None,
                 policy="spill", with_calls=False, overhead=None, process_counters=None):
        if schedule and not callable(schedule):
            raise TypeError(f"{type(schedule).__name__!r} object is not callable: schedule must be a function of "
                            f"the step's number, as schedule(wait=1, warmup=1, active=3) makes, not {schedule!r}")
        if use_cuda is not None:
            warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning)
            members, _ = _activities.parse(activities)
            if use_cuda:
                activities = members | {ProfilerActivity.CUDA}
        self.schedule = schedule if schedule else record_always
        self.record_steps = bool(schedule)
        self.on_trace_ready = on_trace_ready
        self.step_rec_fn = None
        self._made_up = None  # what a schedule answered that is no action
        super().__init__(activities=activities, record_shapes=record_shapes, profile_memory=profile_memory,
                         with_stack=with_stack, with_flops=with_flops, with_modules=with_modules,
                         experimental_config=experimental_config,
                         execution_trace_observer=execution_trace_observer, acc_events=acc_events,
                         custom_trace_id_callback=custom_trace_id_callback,
                         post_processing_timeout_s=post_processing_timeout_s, path=path,
                         buffer_bytes=buffer_bytes, policy=policy, with_calls=with_calls, overhead=overhead,
                         process_counters=process_counters)
        KinetoStepTracker.init_step_count(_PROFILER_STEP)

    def _schedule_for_c(self):
        if not self.record_steps:
            return None
        return self.schedule._numbers if type(self.schedule) is _Schedule else self.schedule

    def _schedule_action(self, step):
        answer = self.schedule(step)
        if isinstance(answer, ProfilerAction) or type(answer).__name__ == "ProfilerAction":  # ours, torch's
            return answer.value
        self._made_up = answer
        return -1

    def _trace_ready(self):
        self._write_execution_trace()
        if self.on_trace_ready:
            check_callable("on_trace_ready", self.on_trace_ready, "a function of the profiler")  # now, as torch does
            self.on_trace_ready(self)

    @property
    def step_num(self):
        """The number of the current step."""
        return self._step_num

    @property
    def current_action(self):
        """What the current step does."""
        action = self._action
        return _ACTIONS[action] if 0 <= action < len(_ACTIONS) else self._made_up

    @property
    def action_map(self):
        """What happens from one action to the next, as torch lists it. The recorder has its own."""
        prepare, start, stop, ready = self.prepare_trace, self.start_trace, self.stop_trace, self._trace_ready
        none, warmup, record, save = _ACTIONS

        def odd(previous, following):
            return lambda: warn(f"Incorrect schedule: {previous.name} followed by {following.name}")
        return {
            (none, none): [], (none, warmup): [prepare], (none, record): [prepare, start],
            (none, save): [prepare, start],
            (warmup, none): [odd(warmup, none), start, stop], (warmup, warmup): [],
            (warmup, record): [start], (warmup, save): [start],
            (record, none): [odd(record, none), stop], (record, warmup): [odd(record, warmup), stop],
            (record, record): [], (record, save): [],
            (save, none): [stop, ready], (save, warmup): [stop, ready, prepare],
            (save, record): [stop, ready, prepare, start], (save, save): [stop, ready, prepare, start],
            (warmup, None): [start, stop], (record, None): [stop, ready], (save, None): [stop, ready],
        }

    __enter__, __exit__ = _mtprof.Profile._enter, _mtprof.Profile._leave  # of start() and _exit()

    def _exit(self, exc_type, exc_value, traceback):
        self._raising = exc_value
        try:
            self.stop()
        finally:
            self._raising = None
            KinetoStepTracker.erase_step_count(_PROFILER_STEP)
            cleanup = getattr(self.execution_trace_observer, "cleanup", None)
            if cleanup is not None:
                cleanup()

    def start(self):
        """Begins: the first step starts."""
        self._check_start()
        self._start()

    def stop(self):
        """Ends: an open window is closed, and handed to on_trace_ready where its step records.

        A failure that the device reports when it is waited for is raised after that.
        """
        try:
            self._stop()
            self._write_execution_trace()
        finally:
            self._raise_failure()

    def step(self):
        """The step is over, the next one begins. A device's failure is raised when it has begun."""
        try:
            self._step()
            if self._unwritten is not None:
                self._write_execution_trace()
        finally:
            if self._failure is not None:
                self._raise_failure()
        if "KINETO_USE_DAEMON" in os.environ:
            KinetoStepTracker.increment_step(_PROFILER_STEP)

    def set_custom_trace_id_callback(self, callback):
        """Who makes trace ids, from the next window on; None: random ones."""
        self.custom_trace_id_callback = callback
        self._use_custom_trace_id(callback is not None)

    def get_trace_id(self):
        """The id of the latest trace; None before the first."""
        return self._trace_id()
