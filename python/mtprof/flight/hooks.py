# SPDX-License-Identifier: Apache-2.0
"""Exceptions that nobody handles, and memory that is refused: both make the active recorder dump.

The hooks are chained: what was there before is called as well, and put back at the end unless somebody else has
replaced ours.
"""
import sys
import threading

_active = None  # (recorder, wants exceptions, wants out of memory)
_before = None  # (sys.excepthook, threading.excepthook)
_told = None  # the text of the last refusal that was dumped


def is_out_of_memory(error):
    """MemoryError, torch's and our OutOfMemoryError, and what torch raises where the host has no memory."""
    return (isinstance(error, MemoryError)
            or any(kind.__name__ == "OutOfMemoryError" for kind in type(error).__mro__)
            or isinstance(error, RuntimeError) and "can't allocate memory" in str(error))


def _trigger(kind, reason):
    try:
        _active[0].trigger(reason, kind=kind)
    except Exception:  # too early after the last one, or a full disk: the program's own exception is what counts
        pass


def unhandled(error):
    """An exception leaves the program, a thread, or the recorder's with block."""
    if _active is None or error is None or isinstance(error, (SystemExit, GeneratorExit)):
        return
    text = str(error)
    memory = is_out_of_memory(error)
    if memory and _active[2]:
        if text != _told:  # else it was dumped when it was raised
            _trigger("memory", f"{type(error).__name__}: {text}")
    elif _active[1]:
        _trigger("exception", f"{type(error).__name__}: {text}")


def out_of_memory(text):
    """Memory is refused, and the exception has not left yet: mindtorch_v2 calls this, if the module is loaded."""
    global _told
    if _active is not None and _active[2]:
        _told = text
        _trigger("memory", text)


def _on_exception(kind, error, trace):
    unhandled(error)
    _before[0](kind, error, trace)


def _on_thread_exception(args):
    unhandled(args.exc_value)
    _before[1](args)


def install(recorder, exceptions, memory):
    global _active, _before, _told
    _told = None
    _active = recorder, exceptions, memory
    if sys.excepthook is not _on_exception and threading.excepthook is not _on_thread_exception:
        _before = sys.excepthook, threading.excepthook
        sys.excepthook, threading.excepthook = _on_exception, _on_thread_exception


def remove(recorder):
    global _active
    if _active is None or _active[0] is not recorder:
        return
    _active = None
    if sys.excepthook is _on_exception:
        sys.excepthook = _before[0]
    if threading.excepthook is _on_thread_exception:
        threading.excepthook = _before[1]
