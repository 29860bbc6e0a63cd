# SPDX-License-Identifier: Apache-2.0
"""torch.amp where mindtorch_v2 has none: what is switched off, or asks for a device that is not there, does nothing,
as in torch; what is switched on says that it is missing."""

import functools

from . import missing


class autocast:
    """A block, or a decorator, in which nothing is cast."""

    def __init__(self, device_type="cuda", dtype=None, enabled=True, cache_enabled=None):
        if enabled and device_type == "cpu":
            missing.refuse("torch.amp.autocast on the CPU")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    def __call__(self, function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            return function(*args, **kwargs)
        return call


def _no(*_):
    return False


def _same(function=None, **_):
    return function if callable(function) else lambda function: function


# By torch's module: what is answered there.
ANSWERS = {
    "torch": {"autocast": autocast, "is_autocast_enabled": _no, "is_autocast_cpu_enabled": _no,
              "is_autocast_cache_enabled": _no},
    "torch.amp": {"autocast": autocast, "custom_fwd": _same, "custom_bwd": _same, "is_autocast_available": _no},
    "torch.amp.autocast_mode": {"autocast": autocast, "custom_fwd": _same, "custom_bwd": _same},
    "torch.cuda.amp": {"autocast": autocast, "custom_fwd": _same, "custom_bwd": _same},
    "torch.cuda.amp.autocast_mode": {"autocast": autocast},
}
