# SPDX-License-Identifier: Apache-2.0
"""torch.overrides: no function looks for __torch_function__, so that no argument has one that counts."""

from .._C import Tensor

__all__ = ["has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like",
           "is_tensor_method_or_property"]


def has_torch_function(relevant_args):
    """No."""
    return False


def has_torch_function_unary(obj):
    """No."""
    return False


def has_torch_function_variadic(*args):
    """No."""
    return False


def is_tensor_like(inp):
    """Whether it is a tensor, or has __torch_function__."""
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


def is_tensor_method_or_property(func):
    """Whether it belongs to Tensor."""
    return getattr(Tensor, getattr(func, "__name__", ""), None) is func
