# SPDX-License-Identifier: Apache-2.0
"""The accelerator: what torch.cuda offers, for whichever backend serves this one."""

from . import _C
from .random import get_rng_state, initial_seed, manual_seed, seed, set_rng_state  # noqa: F401 for users

_current = 0


def _checked(device):
    """A device of this kind as "npu:N"; None is the current one."""
    if device is None:
        return f"npu:{_current}"
    if isinstance(device, int):
        index = device
    else:
        device = _C.device(device)
        if device.type != "npu":
            raise ValueError(f"Expected an npu device, but got: {device}")
        index = _current if device.index is None else device.index
    if index < 0:
        raise ValueError(f"Invalid device index: {index}")
    return f"npu:{index}"


def device_count():
    """How many there are."""
    return _C._device_count()


def is_available():
    """Whether there is one."""
    return device_count() > 0


def is_initialized():
    """Whether one can be used now: there is nothing to wait for."""
    return is_available()


def init():
    """Does nothing: devices are ready when they are there."""


def current_device():
    """The index that None stands for."""
    return _current


def set_device(device):
    """Changes the current device of this module; "npu" in other calls remains the first one."""
    global _current
    index = int(_checked(device)[4:])
    if index >= max(device_count(), 1):
        raise RuntimeError(f"npu device {index} does not exist (there are {device_count()})")
    _current = index


def get_device_name(device=None):
    """"npu:0" and so on."""
    return _checked(device)


def synchronize(device=None):
    """Waits for everything that was started; returns at once where there is no device."""
    if device is not None or is_available():
        _C._device_synchronize(_checked(device))


def memory_stats(device=None):
    """The allocator's counters, by torch's names."""
    return _C._device_memory_stats(_checked(device))


def memory_allocated(device=None):
    """Bytes that tensors have now."""
    return memory_stats(device)["allocated_bytes.all.current"]


def max_memory_allocated(device=None):
    """The most bytes that tensors had since the start or the last reset."""
    return memory_stats(device)["allocated_bytes.all.peak"]


def memory_reserved(device=None):
    """Bytes taken from the device now, cached blocks included."""
    return memory_stats(device)["reserved_bytes.all.current"]


def max_memory_reserved(device=None):
    """The most bytes taken from the device since the start or the last reset."""
    return memory_stats(device)["reserved_bytes.all.peak"]


def reset_peak_memory_stats(device=None):
    """Peaks begin anew."""
    _C._device_reset_peaks(_checked(device))


def empty_cache():
    """Gives blocks that no tensor uses back to the device."""
    if is_available():
        _C._device_empty_cache(_checked(None))


manual_seed_all = manual_seed  # one generator serves all devices


class device:
    """`with npu.device(1)`: the current device inside."""

    def __init__(self, device):
        self.idx = int(_checked(device)[4:])
        self.prev_idx = -1

    def __enter__(self):
        self.prev_idx = _current
        set_device(self.idx)
        return self

    def __exit__(self, *error):
        set_device(self.prev_idx)
