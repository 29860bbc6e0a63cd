# SPDX-License-Identifier: Apache-2.0
"""The path of nn.Modules while they are called, for profile(with_modules=True).

Code that calls modules (mindtorch_v2.nn.Module.__call__, or another framework's) reports it:

    if modules.active():
        token = modules.enter(self)
        try:
            return self.forward(*args, **kwargs)
        finally:
            modules.leave(token)

Ops that begin in between carry the path, "TOP(GPT)::forward.h.0(Block)::forward.", and so do the ops
of their backward pass. With with_stack=True a call is also shown in stacks, as "nn.Module: Block_0",
once the function that makes it is known: set_module_call(Module.__call__).

For a framework that reports nothing, set_paths_from_frames(True) finds the modules where such calls are
in the stack; set_module_call() says which they are.
"""
from ._mtprof import module_active as active
from ._mtprof import module_enter as enter
from ._mtprof import module_leave as leave
from ._mtprof import module_path as path
from ._mtprof import set_paths_from_frames
from . import _mtprof

__all__ = ["active", "enter", "leave", "path", "set_module_call", "set_paths_from_frames"]


def set_module_call(function):
    """Shows calls of a function (its first argument is the module) as "nn.Module: Linear_0"."""
    _mtprof.set_module_call(getattr(function, "__code__", function))
