# SPDX-License-Identifier: Apache-2.0
"""torch.amp: ops that choose the type they compute in, and scaled losses.

The casts are the library's (mindtorch/autocast.h, dispatch/autocast_ops.def); here are torch's names for them.
"""
from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
