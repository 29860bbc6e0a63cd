# SPDX-License-Identifier: Apache-2.0
"""torch.cpu.amp: the older names of torch.amp, for the host."""
from ...amp import GradScaler as _GradScaler, autocast as _autocast

__all__ = ["GradScaler", "autocast"]


class autocast(_autocast):  # noqa: N801 torch's name
    """torch.amp.autocast("cpu")."""

    def __init__(self, enabled=True, dtype=None, cache_enabled=True):
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(_GradScaler):
    """torch.amp.GradScaler("cpu")."""

    def __init__(self, *args, **kwargs):
        super().__init__("cpu", *args, **kwargs)
