# SPDX-License-Identifier: Apache-2.0
"""torch.nn.utils.fusion: a BatchNorm in evaluation is a factor and a shift, which the layer before can take over."""

import copy

import mindtorch_v2 as torch

from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _check(layer, bn, name):
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError(f"{name}: the BatchNorm has no running statistics")


def _fused(weight, bias, shape, mean, var, eps, factor, shift):
    bias = torch.zeros_like(mean) if bias is None else bias
    factor = torch.ones_like(mean) if factor is None else factor
    shift = torch.zeros_like(mean) if shift is None else shift
    scale = factor * torch.rsqrt(var + eps)
    made = weight * scale.reshape(shape), (bias - mean) * scale + shift
    return tuple(Parameter(part.detach(), weight.requires_grad) for part in made)


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """(weight, bias) of the convolution that does both."""
    shape = [1, -1] if transpose else [-1, 1]
    return _fused(conv_w, conv_b, shape + [1] * (conv_w.dim() - 2), bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """A copy of the convolution that does what both do in evaluation."""
    _check(conv, bn, "fuse_conv_bn_eval")
    made = copy.deepcopy(conv)
    made.weight, made.bias = fuse_conv_bn_weights(
        made.weight, made.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return made


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """(weight, bias) of the linear layer that does both."""
    return _fused(linear_w, linear_b, [-1, 1], bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_linear_bn_eval(linear, bn):
    """A copy of the linear layer that does what both do in evaluation."""
    _check(linear, bn, "fuse_linear_bn_eval")
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    made = copy.deepcopy(linear)
    made.weight, made.bias = fuse_linear_bn_weights(
        made.weight, made.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return made
