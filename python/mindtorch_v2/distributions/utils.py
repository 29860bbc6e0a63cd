# SPDX-License-Identifier: Apache-2.0
"""What distributions share: broadcasting of parameters, probabilities and logits, lazy attributes."""

from functools import update_wrapper

import mindtorch_v2 as torch
from mindtorch_v2.nn.functional import softplus

euler_constant = 0.57721566490153286060

__all__ = ["broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits"]


def broadcast_all(*values):
    """Numbers and tensors as tensors of one shape."""
    tensors = [v for v in values if isinstance(v, torch.Tensor)]
    like = (
        {"dtype": tensors[0].dtype, "device": tensors[0].device} if tensors else {"dtype": torch.get_default_dtype()}
    )
    if tensors and not tensors[0].is_floating_point():
        like["dtype"] = torch.get_default_dtype()
    for value in values:
        if not isinstance(value, (torch.Tensor, int, float)):
            raise ValueError(
                "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
            )
    made = [v if isinstance(v, torch.Tensor) else torch.tensor(v, **like) for v in values]
    return torch.broadcast_tensors(*made)


def clamp_probs(probs):
    """Probabilities kept away from 0 and 1, so that their logarithms are finite."""
    eps = torch.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs, is_binary=False):
    """Logarithms of probabilities, or of their odds."""
    kept = clamp_probs(probs)
    return kept.log() - (-kept).log1p() if is_binary else kept.log()


def logits_to_probs(logits, is_binary=False):
    """Probabilities of logits."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def binary_cross_entropy(logits, value):
    """-log of the probability of a value of 0 or 1, element by element."""
    return softplus(logits) - value * logits


def sum_rightmost(value, n):
    """The sum over the last n dimensions."""
    return value if n == 0 else value.sum(tuple(range(-n, 0)))


_sum_rightmost = sum_rightmost  # the name in torch, which packages import


def _standard_normal(shape, dtype, device):
    """Normal numbers of mean 0 and deviation 1."""
    return torch.empty(shape, dtype=dtype, device=device).normal_()


class lazy_property:  # noqa: N801 torch's name
    """An attribute that is computed when it is first asked for."""

    def __init__(self, function):
        self._function = function
        update_wrapper(self, function)

    def __get__(self, instance, kind=None):
        if instance is None:
            return self
        with torch.enable_grad():
            value = self._function(instance)
        setattr(instance, self._function.__name__, value)
        return value
