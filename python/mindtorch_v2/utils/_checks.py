# SPDX-License-Identifier: Apache-2.0
"""torch._check and its like, torch.typename, torch.get_device_module."""

import mindtorch_v2 as torch


def _check_with(error, cond, message):
    """Raises the error, with what message() gives, unless the condition holds."""
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is None:
        raise error("Expected cond to be True, but got False. (Could this error message be improved? If so, please "
                    "report an enhancement request to PyTorch.)")
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error(str(message()))


def _check(cond, message=None):
    """RuntimeError unless the condition holds."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond, message=None):
    """IndexError unless the condition holds."""
    _check_with(IndexError, cond, message)


def _check_value(cond, message=None):
    """ValueError unless the condition holds."""
    _check_with(ValueError, cond, message)


def _check_type(cond, message=None):
    """TypeError unless the condition holds."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond, message=None):
    """NotImplementedError unless the condition holds."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i, message=None, *, max=None):
    """RuntimeError for a number that is no size."""
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_tensor_all(cond, message=None):
    """RuntimeError unless all elements are true."""
    if not isinstance(cond, torch.Tensor) or cond.dtype is not torch.bool:
        raise TypeError(f"cond must be a bool tensor, but got {getattr(cond, 'dtype', type(cond))}")
    _check(bool(cond.all()), message)


def typename(obj, /):
    """The name of a tensor's type, or of an object's class with its module."""
    if isinstance(obj, torch.Tensor):
        return obj.type()
    module = getattr(obj, "__module__", None) or ""
    name = getattr(obj, "__qualname__", None)
    if name is None:
        module, name = type(obj).__module__ or "", type(obj).__qualname__
    if module in ("", "builtins"):
        return name
    ours = torch.__package__
    if module == ours or module.startswith(ours + "."):
        module = "torch" + module[len(ours):]
    return f"{module}.{name}"


def get_device_module(device=None):
    """The package of a device: torch.cpu, torch.cuda and so on."""
    if isinstance(device, torch.device):
        kind = device.type
    elif isinstance(device, str):
        kind = torch.device(device).type
    elif device is None:
        kind = torch.device("npu").type if torch.cuda.is_available() else "cpu"
    else:
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    found = getattr(torch, kind, None)
    if found is None:
        raise RuntimeError(f"Device '{device}' does not have a corresponding module registered as 'torch.{kind}'.")
    return found
