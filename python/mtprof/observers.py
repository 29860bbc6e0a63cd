# SPDX-License-Identifier: Apache-2.0
"""Trace observers: notified when a window opens and closes. One of them writes execution traces.

Any object with start() and stop() is one; cleanup() is called where there is one.
"""
import os
from typing import Any

_ON = ("1", "y", "yes", "t", "true", "on")


class ExecutionTraceObserver:
    """Writes what was recorded as an execution trace (Chakra) to a file.

    Given to profile(execution_trace_observer=...) it follows the profiler's windows: the file holds the
    latest one. Started by hand it records by itself, which needs that no profiler is active.
    """

    def __init__(self) -> None:
        self._registered = False
        self._running = False
        self._path: str | None = None
        self._extras = False
        self._own: Any = None  # the profiler of an observer that was started by hand

    def __del__(self):
        try:
            self.unregister_callback()
        except Exception:  # the interpreter may be at its end
            pass

    def __repr__(self) -> str:
        state = "running" if self._running else "registered" if self._registered else "without a file"
        return f"<ExecutionTraceObserver {state}{f': {self._path}' if self._path else ''}>"

    @staticmethod
    def build_execution_trace_obs_from_env() -> "ExecutionTraceObserver | None":
        """An observer with a temporary file where ENABLE_PYTORCH_EXECUTION_TRACE=1 asks for one, or None."""
        if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE", "0").lower() not in _ON:
            return None
        import tempfile
        with tempfile.NamedTemporaryFile("w", prefix="execution_trace_", suffix=".et.json",
                                         delete=False) as file:
            path = file.name
        observer = ExecutionTraceObserver()
        observer.set_extra_resource_collection(
            os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS", "0").lower() in _ON)
        return observer.register_callback(path)

    def set_extra_resource_collection(self, val: bool) -> None:
        """Whether a folder for resources is made beside the file."""
        self._extras = bool(val)

    def register_callback(self, output_file_path: "str | os.PathLike[str]") -> "ExecutionTraceObserver":
        """Names the file; a path ending in .gz is compressed. Repeated calls change nothing."""
        if not self._registered:
            path = os.fspath(output_file_path)
            with open(path, "ab"):  # that it can be written is known now rather than at the end
                pass
            self._path = path
            self._registered = True
            if self._extras:
                self.get_resources_dir(can_create=True)
        return self

    @property
    def is_registered(self) -> bool:
        """Whether there is a file."""
        return self._registered

    def is_running(self) -> bool:
        """Whether it records."""
        return self._running

    def get_output_file_path(self) -> str | None:
        """The file, or None."""
        return self._path

    @staticmethod
    def get_resources_dir_for_et_path(trace_path: str, create_dir: bool = False) -> str | None:
        """The folder beside an execution trace, or None where there is none."""
        stem, _ = os.path.splitext(trace_path)
        folder = stem + "_resources"
        if not os.path.isdir(folder):
            if not create_dir:
                return None
            os.makedirs(folder, exist_ok=True)
        return folder

    def get_resources_dir(self, can_create: bool = False) -> str | None:
        """The folder for resources; None before register_callback() or without extras."""
        if not self._registered or not self._extras:
            return None
        return self.get_resources_dir_for_et_path(self._path, can_create)

    def start(self) -> None:
        """Begins. Without a file nothing happens."""
        if not self._registered or self._running:
            return
        from mtprof.profiler import _KinetoProfile
        own = _KinetoProfile(record_shapes=True, execution_trace_observer=_RecordsTensors())
        own.start()
        self._own = own
        self._running = True

    def _start_driven(self):
        """Begins as part of a profiler that records, and that writes the file."""
        self._running = self._running or self._registered

    def stop(self) -> None:
        """Ends, and writes the file where it recorded by itself."""
        if not self._running:
            return
        self._running = False
        own, self._own = self._own, None
        if own is not None:
            own.stop()
            self._write(own)

    def _write(self, prof):
        prof._results("exporting an execution trace").export_execution(self._path)

    def unregister_callback(self) -> None:
        """Stops where needed and forgets the file, which stays."""
        self.stop()
        self._registered = False

    def cleanup(self) -> None:
        """What profile.__exit__ calls: the same."""
        self.unregister_callback()


class _RecordsTensors:
    """Stands for "record which tensors ops work on" and does nothing else."""

    def start(self):
        """Nothing."""

    def stop(self):
        """Nothing."""
