# SPDX-License-Identifier: Apache-2.0
"""The recording around a program that `mtprof run` started: when it begins and ends, and what is told of it.

This runs in the program's own process, so it must not be noticed: no frame of ours is on its stack, nothing is
raised into it, and what we import and install is little.
"""
import _thread
import atexit
import contextlib
import importlib.machinery
import os
import resource
import shlex
import sys
import time

import mtprof
from mtprof import _mtprof, profiler as _profiler
from mtprof.control._remote import call_in_main
from mtprof.run.imports import Imports, Steps
from mtprof.schedules import _Schedule

# What the program reports to NVTX and does with NVIDIA's GPUs is recorded, too.
COLLECTORS = {"NVTX_INJECTION64_PATH": "libmtprof_nvtx.so", "CUDA_INJECTION64_PATH": "libmtprof_cuda.so"}
_TABLE_BYTES = 1 << 27  # a larger trace is not read for the summary: the program's end would wait for it


def say(text):
    """A text on the program's first standard error, if that is still there."""
    try:
        sys.stderr.flush()
        if sys.stdout.isatty():
            sys.stdout.flush()  # what the program printed comes first; elsewhere the interpreter does it soon
    except Exception:
        pass  # they are the program's, and may be anything
    try:
        sys.__stderr__.write(text)
        sys.__stderr__.flush()
    except Exception:
        pass  # it was closed


def give_up(text):
    """Nothing can be recorded: said before the program has begun, which then does not begin."""
    say(f"mtprof: run: {text}\n")
    os._exit(1)


def arm(settings):
    """Begins to record with the program's first frame."""
    recording = Recording(**settings)
    # The interpreter has no other hook between its own start and the program; this one goes with its first use.
    sys.setprofile(recording.look_for_main)
    atexit.register(recording.finish)  # before all of the program's, so it is called after them


class _Profile(_profiler.profile):
    """A profile that the program does not see: what it warns of is no warning in the program. It begins before the
    program has a tensor library, and a device."""

    def _flags(self):
        return super()._flags() | _mtprof.PROFILE_LATE_DEVICES

    def _warn(self, status, message):
        if not message.startswith(("Profiler won't be using warmup", "NPU is not available")):
            say(f"mtprof: run: {message}\n")


class Recording:
    """A profile of the whole program, or of some seconds or steps of it."""

    def __init__(self, *, path, shown, schedule, delay, duration, ring, rows, overhead=None, calls=False, stacks=False,
                 shapes=False, memory=False, patch_torch=False, quiet=False, counters=False):
        self.output, self.shown = path, shown
        self.file = path if path.endswith(".mtt") else path + ".mtt"  # what is recorded into
        self.schedule, self.delay, self.duration = schedule, delay, duration
        self.rows, self.quiet, self.patch_torch = rows, quiet, patch_torch
        self.options = {"path": self.file, "with_calls": calls, "with_stack": stacks, "record_shapes": shapes,
                        "profile_memory": memory, "buffer_bytes": ring, "policy": "ring" if ring else "spill",
                        "overhead": overhead, "process_counters": counters}
        if schedule:
            self.options |= {"schedule": _Schedule((*schedule, 0, 0)), "acc_events": True}
        self.pid = os.getpid()
        self.kind = _Profile
        self.profile = None   # while it records
        self.recorded = False
        self.began = None     # the program
        self.stopped = None   # why, where it was not the program's end
        self.explained = None  # by the profile
        self.forks, self.forked = 0, False  # forked: while there was a recorder
        self.steps = Steps(self.step)
        self.lock = _thread.RLock()  # of starting and stopping; the main thread may be called in between
        self.ended = _thread.allocate_lock()  # free: the program has ended

    # ---- the program's begin ----

    def look_for_main(self, frame, event, _):
        """A profile function: waits for the frame that runs the program."""
        if event != "call" or frame.f_back is not None:
            return
        name = frame.f_code.co_name
        if name == "_run_module_as_main" or (name == "<module>" and frame.f_globals.get("__name__") == "__main__"):
            sys.setprofile(None)
            try:
                self.begin()
            except BaseException as error:
                give_up(f"{self.shown}: {error}")

    def begin(self):
        """The program begins."""
        self.began = time.monotonic()
        self.ended.acquire()
        os.register_at_fork(before=self.count_fork)
        self.listen()
        for variable, library in COLLECTORS.items():
            if variable not in os.environ:
                os.putenv(variable, os.path.join(os.path.dirname(_mtprof.__file__), library))
        ours = sys.modules.get("mindtorch_v2.optim.optimizer")
        if ours is not None:
            self.steps.watch(ours)
        _profiler._on_optimizers = self.steps.watch
        # mindtorch_v2 may be in torch's place (python -m mindtorch_v2).
        if "torch" not in sys.modules and importlib.machinery.PathFinder.find_spec("torch") is not None:
            actions = {"torch": self.join_torch, "torch.optim.optimizer": self.steps.watch}
            sys.meta_path.insert(0, Imports(actions, self.failed))
        if self.delay:
            self.check_path()
        else:
            self.start()
        if self.delay or self.duration is not None:
            start_quiet_thread(self.keep_time)

    def listen(self):
        """`mtprof status|start|stop|dump` can ask this process; unless MTPROF_CONTROL is 0."""
        if os.environ.get("MTPROF_CONTROL") == "0":
            return
        from mtprof import control
        control._remote.remote.around = self
        try:
            with files_get_high_numbers():
                control.listen()
        except Exception:
            pass  # a folder of another user's, say: the recording does not need it

    def check_path(self):
        """A recording that begins later shall not fail then."""
        with open(self.file, "ab"):
            pass
        if os.path.getsize(self.file) == 0:
            os.unlink(self.file)

    def count_fork(self):
        """The program forks."""
        if os.getpid() != self.pid:
            return
        self.forks += 1
        if sys.version_info >= (3, 12) and (self.recorded or _mtprof.control_path()) and not self.forked:
            self.forked = True
            # Python counts the threads of the recorder and of the socket, which take care of forks themselves.
            import warnings
            warnings.filterwarnings("ignore", r"This process \(pid=\d+\) is multi-threaded", DeprecationWarning)

    # ---- seconds ----

    def keep_time(self):
        """A thread of its own: starts and stops by the clock."""
        if self.delay and self.ended.acquire(timeout=self.delay):
            return
        try:
            if self.delay:
                self.start()
            if self.duration is None or self.ended.acquire(timeout=self.duration):
                return
            call_in_main(self.stop)
        except BaseException as error:
            say(f"mtprof: run: {self.shown}: {error}\n")

    # ---- steps and torch ----

    def step(self):
        """An optimizer has made a step."""
        running = self.profile
        if running is not None and os.getpid() == self.pid:
            running.step()

    def join_torch(self, _):
        """torch is there: its ops are recorded from now on, and its profiler becomes ours where that is asked for."""
        with self.lock:
            from mtprof.run.torch_program import profile_of_torch, wrap_torch_start
            self.kind = profile_of_torch(_Profile, self.profile)
        if self.options["profile_memory"]:
            wrap_torch_start(self.give_way)
        if self.patch_torch:
            import mtprof.torch
            mtprof.torch.patch()

    # ---- recording ----

    def start(self):
        """Begins to record."""
        with self.lock:
            made = self.kind(**self.options)
            with files_get_high_numbers():
                made.start()
            made.add_metadata("command", shlex.join(sys.orig_argv).encode(errors="replace").decode())
            self.profile, self.recorded = made, True
            _profiler._around = self.give_way

    def stop(self, why=None):
        """Ends recording; why: where it is not the program's end."""
        with self.lock:
            running, self.profile = self.profile, None
            if running is not None:
                _profiler._around = None
                self.stopped = why
                running.stop()
                self.explained = running._explain()

    def failed(self, name, error):
        """What we do when a module was imported has failed."""
        say(f"mtprof: run: {name}: {error}\n")

    def give_way(self, other=None):
        """The program starts a profile of its own, which cannot run beside this one."""
        if other is not self.profile and os.getpid() == self.pid:
            self.stop("the program started a profile of its own")

    # ---- the program's end ----

    def finish(self):
        """The program has ended, and its atexit functions have been called."""
        if os.getpid() != self.pid or self.began is None:
            return  # of a process that was forked; or there was no program to run
        self.ended.release()
        try:
            self.stop()
            self.report()
        except BaseException as error:
            say(f"mtprof: run: {self.shown}: {error}\n")

    def report(self):
        """Writes the file that was asked for, and tells what was recorded."""
        if not self.recorded:
            lasted = time.monotonic() - self.began
            self.tell(f"nothing recorded: the program ended after {lasted:.1f} s, --delay is {self.delay:g}")
            return
        trace = None
        if self.output != self.file:
            trace = mtprof.load(self.file)
            trace.export(_mtprof.export_format(self.output), self.output)
            os.unlink(self.file)
        elif not self.quiet and os.path.getsize(self.file) <= _TABLE_BYTES:
            trace = mtprof.load(self.file)
        if not self.quiet:
            from mtprof.run.summary import summary
            self.tell(*summary(trace, shown=self.shown, size=os.path.getsize(self.output), rows=self.rows,
                               calls=self.options["with_calls"], recorded_here=self.output == self.file,
                               notes=self.notes(trace)))

    def notes(self, trace):
        """What there is to be said about the recording."""
        if self.kind is _Profile and "torch" in sys.modules:
            yield "torch is not observed: its ops are not recorded."
        if self.stopped:
            yield f"Recording stopped early: {self.stopped}."
        if self.forks:
            yield f"{self.forks} forked process{'' if self.forks == 1 else 'es'} not recorded."
        evicted = getattr(trace.health(), "evicted", 0) if trace is not None else 0
        if evicted:
            yield f"{evicted} older events let go: --ring keeps the latest."
        if trace is None or trace.health().events:
            return
        if self.schedule and self.steps.count == 0:
            yield "Nothing recorded: the program made no steps; those of optimizers of torch and mindtorch_v2 count."
        elif self.schedule:
            yield f"Nothing recorded: {self.explained}."
        elif self.options["with_calls"]:
            yield "Nothing recorded."
        else:
            yield "Nothing recorded: no scopes and ops were run; --calls records every Python function."

    def tell(self, *lines):
        """Lines for the summary."""
        if not self.quiet:
            say("\n".join(("", f"mtprof: {lines[0]}", *lines[1:], "")))


@contextlib.contextmanager
def files_get_high_numbers():
    """Files that are opened now get numbers from 128 on. The program's files have the numbers that they have without
    us; none of ours is standard output where that is closed, nor what a program that closes all files opens next."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    least = 128 if soft == resource.RLIM_INFINITY else min(128, soft // 2)
    taken = [os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)]
    try:
        while taken[-1] < least:
            taken.append(os.dup(taken[0]))
        os.close(taken.pop())
        yield
    finally:
        for number in taken:
            os.close(number)


def start_quiet_thread(function):
    """A thread that takes no signals, and that threading does not know: the program would wait for it, or count it."""
    import signal
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        _thread.start_new_thread(function, ())
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
