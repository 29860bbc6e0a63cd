# SPDX-License-Identifier: Apache-2.0
"""torch.backends.cuda: its switches. There is no CUDA; attention has one implementation, whatever is switched."""

import contextlib
from types import SimpleNamespace as _Settings

matmul = _Settings(allow_tf32=False, allow_fp16_reduced_precision_reduction=True, fp32_precision="none",
                   allow_bf16_reduced_precision_reduction=True, allow_fp16_accumulation=False)
cufft_plan_cache = _Settings(size=0, max_size=0)
_sdp = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def is_built():
    """No."""
    return False


def preferred_linalg_library(backend=None):
    """The host's."""
    return "default"


def enable_flash_sdp(enabled):
    """A switch."""
    _sdp["flash"] = bool(enabled)


def enable_mem_efficient_sdp(enabled):
    """A switch."""
    _sdp["mem_efficient"] = bool(enabled)


def enable_math_sdp(enabled):
    """A switch."""
    _sdp["math"] = bool(enabled)


def enable_cudnn_sdp(enabled):
    """A switch."""
    _sdp["cudnn"] = bool(enabled)


def flash_sdp_enabled():
    """What was switched."""
    return _sdp["flash"]


def mem_efficient_sdp_enabled():
    """What was switched."""
    return _sdp["mem_efficient"]


def math_sdp_enabled():
    """What was switched."""
    return _sdp["math"]


def cudnn_sdp_enabled():
    """What was switched."""
    return _sdp["cudnn"]


def is_flash_attention_available():
    """No."""
    return False


@contextlib.contextmanager
def sdp_kernel(enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True):
    """The switches of attention, within a block."""
    before = dict(_sdp)
    _sdp.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield
    finally:
        _sdp.update(before)
