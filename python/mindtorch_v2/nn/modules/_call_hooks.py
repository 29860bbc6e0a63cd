# SPDX-License-Identifier: Apache-2.0
"""Hooks around modules' calls: those of all modules, and how one call runs them."""

import warnings
from collections import OrderedDict

from mindtorch_v2 import Tensor

from ...utils.hooks import RemovableHandle
from ._backward_hooks import BackwardHook

__all__ = [
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

_global_forward_pre_hooks = OrderedDict()
_global_forward_hooks = OrderedDict()
_global_forward_hooks_always_called = OrderedDict()
_global_forward_hooks_with_kwargs = OrderedDict()
_global_backward_pre_hooks = OrderedDict()
_global_backward_hooks = OrderedDict()
_global_buffer_registration_hooks = OrderedDict()
_global_module_registration_hooks = OrderedDict()
_global_parameter_registration_hooks = OrderedDict()


def _add_global(hooks, hook):
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_module_buffer_registration_hook(hook):
    """hook(module, name, buffer) runs at every register_buffer; what it returns replaces the buffer."""
    return _add_global(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook):
    """hook(module, name, submodule) runs at every add_module."""
    return _add_global(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook):
    """hook(module, name, parameter) runs at every register_parameter."""
    return _add_global(_global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook):
    """hook(module, args) runs before every module's forward."""
    return _add_global(_global_forward_pre_hooks, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """hook(module, args, output) runs after every module's forward."""
    handle = RemovableHandle(
        _global_forward_hooks,
        extra_dict=[_global_forward_hooks_with_kwargs, _global_forward_hooks_always_called],
    )
    _global_forward_hooks[handle.id] = hook
    if with_kwargs:
        _global_forward_hooks_with_kwargs[handle.id] = True
    if always_call:
        _global_forward_hooks_always_called[handle.id] = True
    return handle


def register_module_full_backward_pre_hook(hook):
    """hook(module, grad_output) runs before every module's gradients are computed."""
    return _add_global(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook):
    """hook(module, grad_input, grad_output) runs when every module's gradients are known."""
    return _add_global(_global_backward_hooks, hook)


def _run_forward_hook(module, hook, with_kwargs, args, kwargs, result):
    changed = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
    return result if changed is None else changed


def call_with_hooks(module, args, kwargs):
    """forward with all hooks around it; those of all modules first."""
    called = set()  # ids of forward hooks that ran: always_call runs the others if one fails
    result = None
    try:
        for hook_id, hook in (*_global_forward_pre_hooks.items(), *module._forward_pre_hooks.items()):
            if hook_id in module._forward_pre_hooks_with_kwargs:  # ids are unique in the process
                changed = hook(module, args, kwargs)
                if changed is not None:
                    if not isinstance(changed, tuple) or len(changed) != 2:
                        raise RuntimeError(
                            "forward pre-hook must return None or a tuple of (new_args, new_kwargs), but "
                            f"got {changed}."
                        )
                    args, kwargs = changed
            else:
                changed = hook(module, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        backward = None
        after = (*_global_backward_hooks.values(), *module._backward_hooks.values())
        before = (*_global_backward_pre_hooks.values(), *module._backward_pre_hooks.values())
        if after or before:
            backward = BackwardHook(module, after, before)
            args = backward.watch_inputs(args)
        result = module.forward(*args, **kwargs)
        for hook_id, hook in tuple(_global_forward_hooks.items()):
            called.add(hook_id)
            with_kwargs = hook_id in _global_forward_hooks_with_kwargs
            result = _run_forward_hook(module, hook, with_kwargs, args, kwargs, result)
        for hook_id, hook in tuple(module._forward_hooks.items()):
            called.add(hook_id)
            with_kwargs = hook_id in module._forward_hooks_with_kwargs
            result = _run_forward_hook(module, hook, with_kwargs, args, kwargs, result)
        if backward is not None:
            if not isinstance(result, (Tensor, tuple)):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a tuple of "
                    f"Tensors but received {type(result)}",
                    stacklevel=3,
                )
            result = backward.watch_outputs(result)
        return result
    except Exception:
        _run_always_called(module, called, args, kwargs, result)
        raise


def _run_always_called(module, called, args, kwargs, result):
    """After an exception: hooks with always_call that did not run. Their own exceptions are warnings."""
    for hooks, wanted, with_kwargs in (
        (_global_forward_hooks, _global_forward_hooks_always_called, _global_forward_hooks_with_kwargs),
        (module._forward_hooks, module._forward_hooks_always_called, module._forward_hooks_with_kwargs),
    ):
        for hook_id, hook in tuple(hooks.items()):
            if hook_id in wanted and hook_id not in called:
                try:
                    result = _run_forward_hook(module, hook, hook_id in with_kwargs, args, kwargs, result)
                except Exception as error:  # noqa: BLE001 - the first exception is the one to raise
                    kind = "global module" if hooks is _global_forward_hooks else "module"
                    warnings.warn(
                        f"{kind} forward hook with ``always_call=True`` raised an exception that was "
                        f"silenced as another error was raised in forward: {error}",
                        stacklevel=3,
                    )
