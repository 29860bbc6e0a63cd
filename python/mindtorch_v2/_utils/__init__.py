# SPDX-License-Identifier: Apache-2.0
"""torch._utils' names that packages use although they are private."""

import mindtorch_v2 as _torch

from ..serialization import (_rebuild_meta_tensor_no_storage, _rebuild_parameter, _rebuild_tensor_v2,  # noqa: F401
                             _rebuild_tensor_v3)


def _flatten_dense_tensors(tensors):
    """Tensors one after the other, as a vector."""
    return _torch.cat([tensor.contiguous().view(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat, tensors):
    """The parts of such a vector, in the tensors' shapes."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple(part.view(tensor.shape) for part, tensor in zip(parts, tensors))


def _element_size(dtype):
    """Bytes of an element."""
    return dtype.itemsize


def _get_available_device_type():
    """The accelerator's kind, or None."""
    return "cuda" if _torch.cuda.is_available() else None


def _get_device_module(device_type):
    """The package of a kind of device."""
    return _torch.get_device_module(device_type)


def _get_device_index(device, optional=False, allow_cpu=False):
    """The number of a device that is given as a number, a text or a device."""
    if isinstance(device, int):
        return device
    if device is None:
        if not optional:
            raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
        return _torch.cuda.current_device()
    device = _torch.device(device)
    if device.type == "cpu":
        if not allow_cpu:
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        return -1
    if device.index is None:
        if not optional:
            raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
        return _torch.cuda.current_device()
    return device.index
