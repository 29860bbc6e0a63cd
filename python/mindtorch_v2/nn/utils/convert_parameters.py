# SPDX-License-Identifier: Apache-2.0
"""Parameters as one vector, and back."""

import mindtorch_v2 as torch
from mindtorch_v2 import Tensor


def _one_device(device, tensor):
    if device is not None and tensor.device != device:
        raise TypeError(
            f"Found two parameters on different devices, this is currently not supported: {device} and "
            f"{tensor.device}"
        )
    return tensor.device


def parameters_to_vector(parameters):
    """All elements of all parameters in one vector."""
    device, parts = None, []
    for parameter in parameters:
        device = _one_device(device, parameter)
        parts.append(parameter.view(-1))
    return torch.cat(parts)


def vector_to_parameters(vec, parameters):
    """Makes the parameters views of a vector's parts."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    device, place = None, 0
    for parameter in parameters:
        device = _one_device(device, parameter)
        count = parameter.numel()
        parameter.data = vec[place : place + count].view_as(parameter).data
        place += count
