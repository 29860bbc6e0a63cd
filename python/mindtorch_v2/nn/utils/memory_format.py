# SPDX-License-Identifier: Apache-2.0
"""torch.nn.utils.memory_format: weights of convolutions in another order of strides."""

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module, classes, memory_format):
    for inner in module.modules():
        if isinstance(inner, classes):
            inner.weight.data = inner.weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module, memory_format):
    """The module, with the weights of its Conv2d and ConvTranspose2d in this memory format."""
    from mindtorch_v2 import nn

    return _convert(module, (nn.Conv2d, nn.ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module, memory_format):
    """The module, with the weights of its Conv3d and ConvTranspose3d in this memory format."""
    from mindtorch_v2 import nn

    return _convert(module, (nn.Conv3d, nn.ConvTranspose3d), memory_format)
