# SPDX-License-Identifier: Apache-2.0
"""torch.cuda's name for the accelerator: everything is npu's."""

from .npu import (current_device, device, device_count, empty_cache, get_device_name, get_rng_state,  # noqa: F401
                  init, initial_seed, is_available, is_initialized, manual_seed, manual_seed_all,
                  max_memory_allocated, max_memory_reserved, memory_allocated, memory_reserved, memory_stats,
                  reset_peak_memory_stats, seed, set_device, set_rng_state, synchronize)


def __getattr__(name):
    if name == "nvtx":
        from . import _nvtx
        return _nvtx
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
