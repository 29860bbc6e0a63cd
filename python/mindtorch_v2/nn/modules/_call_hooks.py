# SPDX-License-Identifier: Apache-2.0
"""Hooks around modules' calls: those of all modules, and how one call runs them.

Hooks of all modules are in two tables: AROUND_CALLS, which Module.__call__ looks at first, and
AT_REGISTRATION. Both are id -> (moment, hook, with_kwargs, always): when it runs, whether it is given the
keyword arguments too, and whether it runs even if the call fails. A module's own are in dicts of
the module that are named after the moment, `_forward_pre_hooks` and so on.
"""

import warnings
from collections import OrderedDict

from mindtorch_v2 import Tensor

from ...utils.hooks import add_hook
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

AROUND_CALLS = OrderedDict()  # moments: forward_pre, forward, backward_pre, backward
AT_REGISTRATION = OrderedDict()  # moments: parameter, buffer, module


# Where a module keeps its own hooks of a moment, and the ids of those that want something special.
_OWN = {
    moment: (f"_{moment}_hooks", f"_{moment}_hooks_with_kwargs", f"_{moment}_hooks_always_called")
    for moment in ("forward_pre", "forward", "backward_pre", "backward")
}


def _add(table, moment, hook, with_kwargs=False, always=False):
    return add_hook(table, (moment, hook, with_kwargs, always))


def register_module_buffer_registration_hook(hook):
    """hook(module, name, buffer) runs at every register_buffer; what it returns replaces the buffer."""
    return _add(AT_REGISTRATION, "buffer", hook)


def register_module_module_registration_hook(hook):
    """hook(module, name, submodule) runs at every add_module."""
    return _add(AT_REGISTRATION, "module", hook)


def register_module_parameter_registration_hook(hook):
    """hook(module, name, parameter) runs at every register_parameter."""
    return _add(AT_REGISTRATION, "parameter", hook)


def register_module_forward_pre_hook(hook):
    """hook(module, args) runs before every module's forward."""
    return _add(AROUND_CALLS, "forward_pre", hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """hook(module, args, output) runs after every module's forward."""
    return _add(AROUND_CALLS, "forward", hook, with_kwargs, always_call)


def register_module_full_backward_pre_hook(hook):
    """hook(module, grad_output) runs before every module's gradients are computed."""
    return _add(AROUND_CALLS, "backward_pre", hook)


def register_module_full_backward_hook(hook):
    """hook(module, grad_input, grad_output) runs when every module's gradients are known."""
    return _add(AROUND_CALLS, "backward", hook)


def registered(kind, module, name, value):
    """What the hooks make of a value that is about to become the module's."""
    for moment, hook, *_ in tuple(AT_REGISTRATION.values()):
        if moment == kind:
            changed = hook(module, name, value)
            value = value if changed is None else changed
    return value


def _hooks_at(wanted, module):
    """(id, hook, with_kwargs, always) of a moment as they are now: of all modules, then the module's own."""
    found = []
    if AROUND_CALLS:
        found = [(key, *rest) for key, (moment, *rest) in AROUND_CALLS.items() if moment == wanted]
    owned, (hooks, with_kwargs, always) = module.__dict__, _OWN[wanted]
    if owned[hooks]:
        with_kwargs, always = owned.get(with_kwargs, ()), owned.get(always, ())
        found += [(key, hook, key in with_kwargs, key in always) for key, hook in owned[hooks].items()]
    return found


class _Call:
    """The state of one call of a module."""

    __slots__ = ("args", "kwargs", "module", "ran", "result")

    def __init__(self, module, args, kwargs):
        self.module, self.args, self.kwargs = module, args, kwargs
        self.result = None
        self.ran = set()  # ids of the forward hooks that began

    def before(self):
        """Forward pre-hooks: what they return are new arguments."""
        for _, hook, with_kwargs, _ in _hooks_at("forward_pre", self.module):
            if not with_kwargs:
                changed = hook(self.module, self.args)
                if changed is not None:
                    self.args = changed if isinstance(changed, tuple) else (changed,)
                continue
            changed = hook(self.module, self.args, self.kwargs)
            if changed is None:
                continue
            if not isinstance(changed, tuple) or len(changed) != 2:
                raise RuntimeError(
                    "forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got "
                    f"{changed}."
                )
            self.args, self.kwargs = changed

    def watch_inputs(self):
        """Puts the backward hooks into the graph; None if there are none."""
        after, before = _hooks_at("backward", self.module), _hooks_at("backward_pre", self.module)
        if not after and not before:
            return None
        watch = BackwardHook(self.module, [hook for _, hook, *_ in after], [hook for _, hook, *_ in before])
        self.args = watch.watch_inputs(self.args)
        return watch

    def show_result(self, key, hook, with_kwargs):
        """Runs a forward hook: what it returns is the new result."""
        self.ran.add(key)
        given = (self.args, self.kwargs) if with_kwargs else (self.args,)
        changed = hook(self.module, *given, self.result)
        if changed is not None:
            self.result = changed

    def failed(self):
        """Forward hooks with always_call that did not run yet. Their own exceptions are warnings."""
        for key, hook, with_kwargs, always in _hooks_at("forward", self.module):
            if not always or key in self.ran:
                continue
            try:
                self.show_result(key, hook, with_kwargs)
            except Exception as error:  # noqa: BLE001 - the first exception is the one to raise
                kind = "global module" if key in AROUND_CALLS else "module"
                warnings.warn(
                    f"{kind} forward hook with ``always_call=True`` raised an exception that was silenced "
                    f"as another error was raised in forward: {error}",
                    stacklevel=3,
                )


def call_with_hooks(module, args, kwargs):
    """forward with all hooks around it."""
    call = _Call(module, args, kwargs)
    try:
        watch = None
        if AROUND_CALLS or module._forward_pre_hooks:
            call.before()
        if AROUND_CALLS or module._backward_hooks or module._backward_pre_hooks:
            watch = call.watch_inputs()
        call.result = module.forward(*call.args, **call.kwargs)
        for key, hook, with_kwargs, _ in _hooks_at("forward", module):
            call.show_result(key, hook, with_kwargs)
        if watch is None:
            return call.result
        if not isinstance(call.result, (Tensor, tuple)):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but "
                f"received {type(call.result)}",
                stacklevel=3,
            )
        return watch.watch_outputs(call.result)
    except Exception:
        call.failed()
        raise
