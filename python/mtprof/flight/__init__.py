# SPDX-License-Identifier: Apache-2.0
"""The flight recorder: a ring that always records, and dumps of its last part (mtprof/flight.h, docs/flight.md).

    with mtprof.flight_recorder("/var/tmp/flight", keep="20 steps", name=f"rank{rank}") as recorder:
        for batch in batches:
            train(batch)
            recorder.step()
"""
import atexit
import json
import os
import re
import signal
import weakref

from mtprof import _mtprof
from mtprof._warnings import warn
from mtprof.config import check_callable, parse_bytes, parse_rate, parse_share
from mtprof.flight import hooks, thread_stacks

__all__ = ["flight_recorder", "read_steps"]

_UNITS = {"ns": 1, "us": 1000, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
_TIME = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ns|us|ms|s|min|h)\s*")
_STEPS = re.compile(r"\s*(\d+)\s*steps?\s*")
_IN_MEMORY, _NO_STEPS = 1, 2


def read_steps(path):
    """The step summaries of a file NAME.steps, one dict after the other: step, steps (how many share the summary),
    run, duration_ns, start_unix_ns, rows (dicts with name, self_ns, total_ns, calls: the 16 with most self time),
    devices, rss_bytes, lost …; bytes that are not known are -1. The job may run meanwhile: a later call reads more."""
    steps = _mtprof.steps_open(path)
    while (summary := _mtprof.steps_next(steps)) is not None:
        yield summary


def _parse_time(name, value):
    """Nanoseconds of a number of seconds, or of a text such as "60s", "500 ms", "5 min"."""
    match = _TIME.fullmatch(value) if isinstance(value, str) else None
    if match is not None:
        ns = int(float(match[1]) * _UNITS[match[2]])
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        ns = int(value * 10**9)
    else:
        raise ValueError(f'{name} must be a number of seconds or a text such as "60s" or "5 min", not {value!r}')
    if ns <= 0:
        raise ValueError(f"{name} must be positive, not {value!r}")
    return ns


def _parse_keep(keep):
    """What a dump has, as keep_ns, keep_steps or keep_bytes."""
    if keep is None:
        return {}
    if isinstance(keep, str):
        steps = _STEPS.fullmatch(keep)
        if steps is not None:
            if int(steps[1]) == 0:
                raise ValueError(f"keep must be positive, not {keep!r}")
            return {"keep_steps": int(steps[1])}
        if _TIME.fullmatch(keep):
            return {"keep_ns": _parse_time("keep", keep)}
        try:
            return {"keep_bytes": parse_bytes("keep", keep.strip().replace(" ", ""))}
        except ValueError:
            pass
    raise ValueError(f'keep must be a text such as "60s", "20 steps" or "256 MiB", not {keep!r}')


def _parse_signal(value):
    """The number of a signal that is given by a number or a name, with or without SIG."""
    if value is None:
        return 0
    if isinstance(value, str):
        found = getattr(signal, value if value.startswith("SIG") else "SIG" + value, None)
        if not isinstance(found, signal.Signals):
            raise ValueError(f"on_signal must be a signal or its name, not {value!r}")
        return int(found)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= signal.SIGRTMAX:
        raise ValueError(f"on_signal must be a signal or its name, not {value!r}")
    return int(value)


def _parse_factor(value):
    if value is None or value is False:
        return 0.0
    if value is True:
        return 3.0
    if not isinstance(value, (int, float)) or not 1.1 <= value <= 1e6:
        raise ValueError(f"slow_step must be True or a number from 1.1 to 1e6, not {value!r}")
    return float(value)


class flight_recorder(_mtprof.Flight):
    """Records all the time into a ring in `folder`; dump() writes its last part as a complete trace, while the
    recording goes on. A context manager, or start() and stop().

    keep: what a dump has: "60s", "20 steps" (which step() ends) or "256 MiB"; None: all that the ring has. name: begins
    the names of the files; ranks that share a folder need different ones (default: "pid" and the process's id).
    record_shapes, profile_memory, with_flops, with_modules: as in profile(). buffer_bytes: of the ring; by default
    64 MiB, or a quarter more than keep. dumps, dumps_bytes: older dumps are deleted beyond so many; distance: dumps
    that come earlier after the last one are refused. on_dump: called after each dump with a dict (path, reason, step,
    bytes …), on the thread that made it. in_memory: the ring is no file, and nothing of it survives a kill -9.
    steps: a summary of every step in NAME.steps (read_steps()), which is kept below steps_bytes.
    metadata: a dict of texts for every dump. overhead: the most that recording may take of the processor time ("1%"),
    as in profile(). process_counters: True or a number a second, as in profile().

    What makes it dump by itself (docs/flight.md); all of it keeps within the budget. on_signal: a signal (a number or
    its name). slow_step: a step that takes so many times the median (True: 3). hang: a step, or before the first one
    the time without an event, that takes so long ("5 min"); the dump has the stacks of all threads, native and
    Python's, as metadata "dump_stacks". on_exception: an exception that leaves the program, a thread or the with block.
    on_oom: memory that is refused. on_exit: the end. on_trigger: called with (kind, reason) after each of these dumps,
    on the thread that made it.

    One recorder or profiler is active at a time.
    """

    def __init__(self, folder, *, keep="60s", name=None, record_shapes=False, profile_memory=False, with_flops=False,
                 with_modules=False, buffer_bytes=None, dumps=16, dumps_bytes="4G", distance="10s", on_dump=None,
                 in_memory=False, metadata=None, on_signal=None, slow_step=None, hang=None, on_exception=False,
                 on_oom=False, on_exit=False, on_trigger=None, overhead=None, steps=True, steps_bytes="4G",
                 process_counters=None):
        check_callable("on_dump", on_dump, "a function of one dict")
        check_callable("on_trigger", on_trigger, "a function of a kind and a reason")
        wants = _mtprof.WANT_DEFAULT
        for on, bits in ((record_shapes or with_flops, _mtprof.WANT_INPUTS), (with_flops, _mtprof.WANT_FLOPS),
                         (profile_memory, _mtprof.WANT_MEMORY | _mtprof.WANT_ALLOCS),
                         (with_modules, _mtprof.WANT_MODULES)):
            wants |= bits if on else 0
        self._options = dict(
            folder=folder, name=name, flags=(_IN_MEMORY if in_memory else 0) | (0 if steps else _NO_STEPS),
            wants=wants, counters_hz=parse_rate("process_counters", process_counters),
            steps_bytes_max=parse_bytes("steps_bytes", steps_bytes),
            buffer_bytes=0 if buffer_bytes is None else parse_bytes("buffer_bytes", buffer_bytes), dumps_max=int(dumps),
            dumps_bytes_max=parse_bytes("dumps_bytes", dumps_bytes),
            overhead_ppm=parse_share("overhead", overhead),
            distance=1 if distance in (0, None) else _parse_time("distance", distance), **_parse_keep(keep),
            dump_signal=_parse_signal(on_signal), slow_step=_parse_factor(slow_step),
            hang_ns=0 if hang is None else _parse_time("hang", hang), dump_at_stop=1 if on_exit else 0)
        if self._options["dumps_max"] < 1:
            raise ValueError(f"dumps must be positive, not {dumps!r}")
        self._metadata = dict(metadata or {})
        self._on_dump = on_dump
        self._on_trigger = on_trigger
        self._on_exception, self._on_oom = bool(on_exception), bool(on_oom)

    def start(self):
        """Starts to record; returns the recorder."""
        if self._options["hang_ns"]:
            _mtprof.prepare_stacks(thread_stacks.describe)
        self._start(**self._options)
        if self._on_exception or self._on_oom:
            hooks.install(self, self._on_exception, self._on_oom)
        for key, value in self._metadata.items():
            self.add_metadata(key, value)
        atexit.register(_stop_at_exit, weakref.ref(self), os.getpid())
        return self

    def step(self):
        """Ends the running step and begins the next."""
        self._step()

    def dump(self, reason=None):
        """Writes the last part of the recording; a dict of what the dump is: path, reason, step, bytes, from_ns …

        RuntimeError: too early after the last one (distance), or not recording.
        """
        return self._dump(reason)

    def trigger(self, reason=None, kind="elsewhere"):
        """The same for a reason of a kind: "elsewhere", for another rank's trigger, or "asked", "signal", "slow step",
        "hang", "exception", "memory", "exit". on_trigger is called for all but "elsewhere"."""
        return self._trigger(kind, reason)

    def counts(self):
        """Numbers of steps and dumps so far: steps, dumps, refused, failed, deleted …"""
        return self._counts()

    def add_metadata(self, key, value):
        """A pair for every dump from now on; what is no text is kept as JSON."""
        is_text = isinstance(value, str)
        self._add_metadata(key, value if is_text else json.dumps(value), not is_text)

    def stop(self):
        """Ends the recording. The ring stays in the folder as a complete trace."""
        hooks.remove(self)
        try:
            self._stop()
        finally:
            if self._options["hang_ns"]:
                _mtprof.forget_stacks()

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, error, trace):
        hooks.unhandled(error)
        self.stop()

    # ---- what C calls ----

    def _dumped(self, info):
        if self._on_dump is not None:
            self._on_dump(info)

    def _triggered(self, kind, reason):
        self._on_trigger(kind, reason)

    def _warned(self, message):
        warn(message)


def _stop_at_exit(reference, pid):
    """Callbacks need the interpreter: what still records is stopped before it goes. A forked child has none."""
    recorder = reference()
    if recorder is not None and pid == os.getpid():
        recorder.stop()
