# SPDX-License-Identifier: Apache-2.0
"""torch.multiprocessing: Python's multiprocessing, and processes that are started together.

A tensor that is sent to another process arrives as a copy. Sharing strategies can be set and change nothing.
"""

import multiprocessing as _base
import signal as _signal
import time as _time
import traceback as _traceback
from multiprocessing import *  # noqa: F403 torch's module has all of its names
from multiprocessing import connection as _connection

__all__ = [*_base.__all__, "ProcessContext", "ProcessExitedException", "ProcessRaisedException", "SpawnContext",
           "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", "spawn", "start_processes"]

_strategy = "file_descriptor"


def get_all_sharing_strategies():
    """The names that torch has on Linux."""
    return {"file_descriptor", "file_system"}


def set_sharing_strategy(new_strategy):
    """Keeps the name: tensors are copied between processes whatever it is."""
    global _strategy
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}, expected one of "
                             f"{sorted(get_all_sharing_strategies())}")
    _strategy = new_strategy


def get_sharing_strategy():
    """The name that was set."""
    return _strategy


class ProcessException(Exception):
    """A process that spawn() started failed."""

    def __init__(self, msg, error_index, pid):
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """It raised; the message has its traceback."""


class ProcessExitedException(ProcessException):
    """It ended by a signal, or with a status other than 0."""

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(fn, index, args, failures):
    """What a started process does."""
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        failures.send(_traceback.format_exc())
        raise SystemExit(1)


class ProcessContext:
    """Processes that were started together."""

    def __init__(self, processes, failures):
        self.processes, self._failures = processes, failures
        self._left = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self):
        """Their ids."""
        return [process.pid for process in self.processes]

    def _end_all(self, grace_period):
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        until = _time.monotonic() + (30 if grace_period is None else grace_period)
        for process in self.processes:
            process.join(max(0.0, until - _time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()

    def join(self, timeout=None, grace_period=None):
        """Waits for one or more to end: True when all have. Where one failed the others are ended and it raises."""
        if not self._left:
            return True
        failed = None
        for sentinel in _connection.wait(list(self._left), timeout=timeout):
            index = self._left.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode != 0 and failed is None:
                failed = index
        if failed is None:
            return not self._left
        self._end_all(grace_period)
        process = self.processes[failed]
        try:
            text = self._failures[failed].recv()
        except EOFError:  # it ended without a word
            text = None
        if text is not None:
            raise ProcessRaisedException(f"\n\n-- Process {failed} terminated with the following error:\n{text}",
                                         failed, process.pid)
        if process.exitcode < 0:
            name = _signal.Signals(-process.exitcode).name
            raise ProcessExitedException(f"process {failed} terminated with signal {name}", failed, process.pid,
                                         process.exitcode, name)
        raise ProcessExitedException(f"process {failed} terminated with exit code {process.exitcode}", failed,
                                     process.pid, process.exitcode)


SpawnContext = ProcessContext


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Starts fn(index, *args) in nprocs processes, and waits for them."""
    context = _base.get_context(start_method)
    processes, failures = [], []
    for i in range(nprocs):
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, i, args, there), daemon=daemon)
        process.start()
        there.close()
        processes.append(process)
        failures.append(here)
    made = ProcessContext(processes, failures)
    if not join:
        return made
    while not made.join():
        pass
    return None


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """start_processes() with the method that torch allows here."""
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn" if start_method is None
                           else start_method)
