# SPDX-License-Identifier: Apache-2.0
"""torch.cuda.nvtx: NVIDIA's ranges. This build has none; record_function gives ranges here."""
import contextlib

__all__ = ["range_push", "range_pop", "range_start", "range_end", "mark", "range"]


def _missing(*_args, **_kwargs):
    raise RuntimeError("NVTX functions not installed. Are you sure you have a CUDA build?")


def range_push(msg):
    """Begins a range that encloses what follows on this thread."""
    return _missing(msg)


def range_pop():
    """Ends the innermost range of this thread."""
    return _missing()


def range_start(msg):
    """Begins a range that any thread may end; returns its number."""
    return _missing(msg)


def range_end(range_id):
    """Ends it."""
    _missing(range_id)


def mark(msg):
    """A point in time."""
    return _missing(msg)


@contextlib.contextmanager
def range(msg, *args, **kwargs):  # noqa: A001 torch's name
    """A block as a range; the message is formatted with the arguments."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
