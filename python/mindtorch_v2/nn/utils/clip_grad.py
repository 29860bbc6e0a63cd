# SPDX-License-Identifier: Apache-2.0
"""Gradients clipped by their norm or by value, a list at a time; foreach=False: one tensor at a time."""

import types
import warnings

import mindtorch_v2 as torch
from mindtorch_v2 import Tensor

from ..._C import ops


def _gradients(parameters, told=False):
    """The gradients that exist; `told`: warn of a generator without parameters."""
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    known = list(parameters)
    if told and not known and isinstance(parameters, types.GeneratorType):
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=3)
    return [parameter.grad for parameter in known if parameter.grad is not None]


def _by_kind(tensors):
    """Lists of tensors of one device and type."""
    kinds = {}
    for tensor in tensors:
        kinds.setdefault((tensor.device, tensor.dtype), []).append(tensor)
    return kinds.values()


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of all the tensors' elements together."""
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return torch.tensor(0.0)
    device = tensors[0].device
    with torch.no_grad():
        if foreach is False:
            norms = [ops.linalg_vector_norm(tensor, norm_type) for tensor in tensors]
        else:
            norms = [norm for same in _by_kind(tensors) for norm in ops._foreach_norm(same, norm_type)]
        total = ops.linalg_vector_norm(torch.stack([norm.to(device) for norm in norms]), norm_type)
        if error_if_nonfinite and not bool(torch.isfinite(total)):
            raise RuntimeError(
                f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it "
                "cannot be clipped. To disable this error and scale the gradients by the non-finite norm "
                "anyway, set `error_if_nonfinite=False`"
            )
    return total


def _scale(grads, max_norm, total_norm, foreach):
    if not grads:
        return
    with torch.no_grad():
        # Always multiplied, without asking whether it is needed: asking would wait for the device.
        factor = ((total_norm + 1e-6).reciprocal() * float(max_norm)).clamp(max=1.0)
        for same in _by_kind(grads):
            here = factor.to(same[0].device)
            if foreach is not False:
                ops._foreach_mul_(same, here)
                continue
            for grad in same:
                grad.mul_(here)


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scales the gradients by max_norm / total_norm where that is below one."""
    _scale(_gradients(parameters), max_norm, total_norm, foreach)


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scales all gradients so that their norm together is at most max_norm; gives the norm before."""
    grads = _gradients(parameters, told=True)
    total = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    _scale(grads, max_norm, total, foreach)
    return total


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The old name of clip_grad_norm_."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Cuts every gradient's elements to [-clip_value, clip_value]."""
    clip_value = float(clip_value)
    with torch.no_grad():
        for same in _by_kind(_gradients(parameters, told=True)):
            if foreach is not False:
                ops._foreach_clamp_min_(same, -clip_value)
                ops._foreach_clamp_max_(same, clip_value)
                continue
            for grad in same:
                grad.clamp_(-clip_value, clip_value)
