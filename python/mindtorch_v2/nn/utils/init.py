# SPDX-License-Identifier: Apache-2.0
"""torch.nn.utils.init: modules whose parameters are not initialised."""

__all__ = ["skip_init"]


def skip_init(module_cls, *args, **kwargs):
    """module_cls(*args, **kwargs) on `device`, its parameters and buffers whatever is in the memory."""
    import inspect

    import mindtorch_v2 as torch

    if not isinstance(module_cls, type) or not issubclass(module_cls, torch.nn.Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=device)
