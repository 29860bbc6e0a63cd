# SPDX-License-Identifier: Apache-2.0
"""Controls of the simulated accelerator (MINDTORCH_NPU=sim; include/mindtorch/sim.h), for tests: npu._sim.

All of these raise RuntimeError where another accelerator, or none, is there. A stream of None is the current one.
"""

import contextlib

from . import _C


def hold(launches, stream=None, token=0):
    """Later work on the stream waits until so many pieces of work are queued after this, or release().

    token: of an open scope (mtprof.begin()); the hold is recorded as a kernel that the scope launched.
    """
    _C._sim_hold(launches, stream, token & 0x00FFFFFFFFFFFFFF)  # mtprof_launch_key()


def release(stream=None):
    """Ends hold()."""
    _C._sim_release(stream)


@contextlib.contextmanager
def held(stream=None, token=0):
    """Nothing on the stream begins inside the block. token: see hold()."""
    if stream is None:
        stream = _C._current_stream(None)
    hold(2**32 - 1, stream, token)
    try:
        yield
    finally:
        release(stream)


def counts(stream=None):
    """waiting, most, gave_up, launches, done, stalled (found it full), holding (now): of the stream, since reset_counts()."""
    return _C._sim_counts(stream)


def reset_counts(stream=None):
    """Resets counts()."""
    _C._sim_reset_counts(stream)


def fail(message="the kernel failed", after=0, error=RuntimeError, device=None):
    """After `after` more launches the next one on the device fails; the next wait for it raises the error."""
    _C._sim_fail(device, after, error.__name__, message)


def lose(device=None, lost=True):
    """The device is gone: every call fails with torch.AcceleratorError. With lost=False it is back."""
    _C._sim_lose(device, lost)
