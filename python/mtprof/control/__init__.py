# SPDX-License-Identifier: Apache-2.0
"""Control of this process from outside: `mtprof ps`, and `mtprof status|start|stop|dump|attach PID`.

    import mtprof.control

    mtprof.control.listen()     # or the variable MTPROF_CONTROL=1; `mtprof run` listens by itself

Nothing listens unless it is asked to. The socket is in a folder that its owner alone can enter, and only the process's
own user and root are answered. docs/control.md has the protocol.
"""
import atexit
import os

from mtprof import _mtprof
from mtprof.control._remote import remote

__all__ = ["close", "listen", "path"]

_VARIABLE = "MTPROF_CONTROL"
_registered = False


def listen(folder: "str | os.PathLike[str] | None" = None) -> str:
    """Begins to listen; returns the socket's path.

    folder: where the socket is, made with mode 0700 if it is missing; by default mtprof in XDG_RUNTIME_DIR, or
    /tmp/mtprof-UID. Does nothing where this process listens already. A forked child does not listen; it may begin to.
    """
    global _registered
    already = _mtprof.control_path()
    if already is not None:
        return already
    where = _folder() if folder is None else os.path.abspath(os.fspath(folder))
    _mtprof.control_listen(where, os.environ.get("RANK"), remote.start, remote.stop)
    if not _registered:  # the helper's thread must not call into an interpreter that is ending
        _registered = True
        atexit.register(close)
    return _mtprof.control_path()


def close() -> None:
    """Listens no more. Ends a recording that was started over the socket."""
    _mtprof.control_close()
    remote.end()


def path() -> "str | None":
    """The socket's path; None: this process does not listen."""
    return _mtprof.control_path()


def _folder():
    asked = os.environ.get(_VARIABLE, "")
    if asked.startswith("/"):
        return asked
    return _mtprof.control_folder(os.environ.get("XDG_RUNTIME_DIR"), os.geteuid())


def _listen_if_asked():
    """At the import of mtprof: MTPROF_CONTROL is 1, or the folder for the socket."""
    asked = os.environ[_VARIABLE]
    try:
        if asked != "1" and not asked.startswith("/"):
            raise ValueError("it must be 1, 0 or an absolute path")
        listen()
    except (OSError, ValueError, RuntimeError, MemoryError) as error:
        from mtprof._warnings import warn
        warn(f"{_VARIABLE}={asked}: {error}")
