# SPDX-License-Identifier: Apache-2.0
"""torch.accelerator: the accelerator without its name."""

from . import _C, npu as _npu
from .npu import (device_count, empty_cache, is_available, max_memory_allocated,  # noqa: F401 for users
                  max_memory_reserved, memory_allocated, memory_reserved, memory_stats, reset_peak_memory_stats,
                  set_stream)
from .npu import mem_get_info as get_memory_info  # noqa: F401


def _needed():
    if not is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")


def current_accelerator(check_available=False):
    """Its device without a number; None where there is none."""
    return _C.device("npu") if is_available() else None


def current_device_index():
    """The current device of this thread."""
    _needed()
    return _npu.current_device()


def set_device_index(device):
    """Makes it the current device of this thread."""
    _needed()
    _npu.set_device(device)


current_device_idx, set_device_idx = current_device_index, set_device_index


def current_stream(device=None):
    """This thread's stream on the device."""
    _needed()
    return _npu.current_stream(device)


def synchronize(device=None):
    """Waits for everything that was started on the device."""
    _needed()
    _npu.synchronize(device)


class device_index(_npu.device):
    """`with accelerator.device_index(1)`: the current device inside."""

    def __enter__(self):
        _needed()
        super().__enter__()
