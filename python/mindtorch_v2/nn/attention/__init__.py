# SPDX-License-Identifier: Apache-2.0
"""torch.nn.attention: which implementation scaled_dot_product_attention takes. There is one here, so that the
choice is kept for code that reads it, and has no effect."""

import contextlib
import enum

__all__ = ["SDPBackend", "WARN_FOR_UNFUSED_KERNELS", "sdpa_kernel"]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.IntEnum):
    """torch's implementations."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    __str__ = enum.Enum.__str__


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    """Checks what is asked for; the implementation stays the same."""
    chosen = [backends] if isinstance(backends, SDPBackend) else list(backends)
    for backend in chosen:
        if not isinstance(backend, SDPBackend):
            raise AssertionError(f"Backend must be an instance of SDPBackend, got {type(backend)}")
    yield {}
