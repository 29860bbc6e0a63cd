# SPDX-License-Identifier: Apache-2.0
"""What a Python program does when it is told to record, or to stop, over its socket.

The functions run on the listener's thread. What they raise is the answer of the one who asked, never an exception in
the program.
"""
import _thread
import os
import shlex
import sys

from mtprof import _mtprof, profiler as _profiler

_SHAPES, _STACKS, _MEMORY, _CALLS = 1, 2, 4, 8  # enum mtprof_control_detail
_MAIN_S = 0.25  # so long the main thread may take


class _Profile(_profiler.profile):
    """A profile that the program did not ask for: what it warns of is no warning in the program. The trace has it."""

    def _warn(self, status, message):
        pass


def call_in_main(function):
    """Calls the function in the main thread, or here if that does not come to it soon; what it raises is raised here.

    What is open on a thread ends where it began.
    """
    claim, done = _thread.allocate_lock(), _thread.allocate_lock()
    done.acquire()
    raised = []

    def call():
        if claim.acquire(False):
            try:
                function()
            except BaseException as error:
                raised.append(error)
            done.release()
    if not _mtprof.call_in_main(call) or not done.acquire(timeout=_MAIN_S):
        call()  # unless the main thread is at it
        done.acquire()
    if raised:
        raise raised[0]


def _kind():
    """The class of profiles for this program: with torch's ops if it has torch."""
    torch = sys.modules.get("torch")
    if torch is None or torch.__name__ != "torch":  # mindtorch_v2 may be in its place
        return _Profile
    try:
        from mtprof.run.torch_program import profile_of_torch
        return profile_of_torch(_Profile, None)
    except Exception:  # a torch that is half imported, or one that cannot be observed
        return _Profile


class _Remote:
    """The recording that was started over the socket, if there is one."""

    def __init__(self):
        self.profile = None
        self.pid = 0
        self.around = None  # mtprof run's recording of the whole program, which may be stopped as well
        self.lock = _thread.RLock()

    def start(self, path, ring_bytes, details):
        """Begins to record."""
        with self.lock:
            made = _kind()(path=path, record_shapes=bool(details & _SHAPES), with_stack=bool(details & _STACKS),
                           profile_memory=bool(details & _MEMORY), with_calls=bool(details & _CALLS),
                           buffer_bytes=ring_bytes or None, policy="ring" if ring_bytes else "spill")
            made.start()
            made.add_metadata("command", shlex.join(sys.orig_argv).encode(errors="replace").decode())
            self.profile, self.pid = made, os.getpid()
            if _profiler._around is None:
                _profiler._around = self.give_way

    def stop(self):
        """Ends what start() began, or the recording of mtprof run; the program's own is left to it."""
        if self.profile is not None:
            call_in_main(self.end)
        elif self.around is not None and self.around.profile is not None:
            call_in_main(lambda: self.around.stop("it was told to, by 'mtprof stop'"))
        else:
            raise RuntimeError(f"process {os.getpid()} records by itself: it was not told to over this socket")

    def end(self):
        """Ends what start() began, if it still runs."""
        with self.lock:
            running, self.profile = self.profile, None
            if running is None or self.pid != os.getpid():
                return
            if _profiler._around == self.give_way:
                _profiler._around = None
            running.stop()

    def give_way(self, other=None):
        """The program starts a profile of its own, which cannot run beside this one."""
        if other is not self.profile and os.getpid() == self.pid:
            self.end()


remote = _Remote()
