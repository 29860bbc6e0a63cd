# SPDX-License-Identifier: Apache-2.0
"""torch.cuda.amp: the older names of torch.amp, for the accelerator."""
from ... import amp as _amp

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(_amp.autocast):  # noqa: N801 torch's name
    """torch.amp.autocast("cuda")."""

    def __init__(self, enabled=True, dtype=None, cache_enabled=True):
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(_amp.GradScaler):
    """torch.amp.GradScaler("cuda")."""

    def __init__(self, *args, **kwargs):
        super().__init__("cuda", *args, **kwargs)


def custom_fwd(fwd=None, *, cast_inputs=None):
    """torch.amp.custom_fwd(device_type="cuda")."""
    return _amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd=None):
    """torch.amp.custom_bwd(device_type="cuda")."""
    return _amp.custom_bwd(bwd, device_type="cuda")
