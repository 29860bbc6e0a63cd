# SPDX-License-Identifier: Apache-2.0
"""torch.xpu, a kind of device that mindtorch_v2 never has; torch.mps answers the same.

Questions have an answer and seeds go nowhere, as in a torch that was built without it; the rest is missing.
"""

__all__ = ["is_available", "is_bf16_supported", "device_count", "empty_cache", "manual_seed", "manual_seed_all",
           "is_initialized"]


def is_available():
    """No."""
    return False


def is_bf16_supported(including_emulation=True):
    """No."""
    return False


def is_initialized():
    """No."""
    return False


def device_count():
    """0."""
    return 0


def empty_cache():
    """There is none."""


def manual_seed(seed):
    """There is no generator to seed; as torch, a seed that is set for a device that may be there is ignored."""


manual_seed_all = manual_seed
