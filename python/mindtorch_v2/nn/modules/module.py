# SPDX-License-Identifier: Apache-2.0
"""nn.Module: a tree of parameters, buffers and other modules, with hooks and state_dict.

What a module owns lives in dicts of its instance dict, so that normal attribute lookup misses
and __getattr__ finds it:

    _parameters   name -> Parameter or None
    _buffers      name -> Tensor or None      (_non_persistent_buffers_set: not in state_dict)
    _modules      name -> Module or None

__call__ is one frame: the profiler's stack walker knows its code and shows the module for it.
"""

import itertools
from collections import OrderedDict
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2 import Tensor
from mtprof import modules as _scopes

from ...utils._grads import zero_gradient
from ...utils.hooks import add_hook
from ..parameter import Buffer, Parameter
from . import _call_hooks
from ._call_hooks import *  # noqa: F403
from ._call_hooks import AROUND_CALLS, call_with_hooks, registered
from ._state import StatefulModule, _IncompatibleKeys  # noqa: F401 - torch has it here

__all__ = ["Module", *_call_hooks.__all__]

_HOOKS = (  # a module's dicts of hooks, and of the ids of those that want something special
    "_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks_with_module", "_load_state_dict_post_hooks",
)  # fmt: skip

_scopes_active, _enter, _leave = _scopes.active, _scopes.enter, _scopes.leave


def _typename(value):
    """How torch names a value's class in errors: tensors by their type string."""
    if isinstance(value, Tensor):
        return value.type()
    cls = value if isinstance(value, type) else type(value)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


class Module(StatefulModule):
    """Base class of everything with parameters. Assigning Parameters and Modules registers them."""

    dump_patches = False
    training: bool

    def __init__(self):
        state = self.__dict__
        state["training"] = True
        state["_parameters"] = {}
        state["_buffers"] = {}
        state["_non_persistent_buffers_set"] = set()
        state["_is_full_backward_hook"] = None
        for name in _HOOKS:
            state[name] = OrderedDict()
        state["_modules"] = {}

    def forward(self, *input: Any) -> Any:
        """What the module computes; every subclass defines it."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    # ---- calling ----

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or AROUND_CALLS
        ):
            if not _scopes_active():
                return self.forward(*args, **kwargs)
            token = _enter(self)
            try:
                return self.forward(*args, **kwargs)
            finally:
                _leave(token)
        if not _scopes_active():
            return call_with_hooks(self, args, kwargs)
        token = _enter(self)
        try:
            return call_with_hooks(self, args, kwargs)
        finally:
            _leave(token)

    _call_impl = __call__

    # ---- attributes ----

    def __getattr__(self, name):
        state = self.__dict__
        try:
            owned = state["_parameters"]
            if name in owned:
                return owned[name]
            owned = state["_modules"]
            if name in owned:
                return owned[name]
            owned = state["_buffers"]
            if name in owned:
                return owned[name]
        except KeyError:  # Module.__init__ did not run yet
            pass
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name, value):
        state = self.__dict__
        parameters = state.get("_parameters")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            _remove_from(name, state, self._buffers, self._modules, self._non_persistent_buffers_set)
            self.register_parameter(name, value)
            return
        if parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as parameter '{name}' (torch.nn.Parameter or None "
                    "expected)"
                )
            self.register_parameter(name, value)
            return
        modules = state.get("_modules")
        if isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            _remove_from(name, state, self._parameters, self._buffers, self._non_persistent_buffers_set)
            self._set_module(modules, name, value)
            return
        if modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as child module '{name}' (torch.nn.Module or None "
                    "expected)"
                )
            self._set_module(modules, name, value)
            return
        buffers = state.get("_buffers")
        is_buffer = isinstance(value, Buffer)
        if is_buffer or buffers is not None and name in buffers:
            self._set_buffer(name, value, is_buffer)
        else:
            super().__setattr__(name, value)

    def _set_module(self, modules, name, value):
        modules[name] = registered("module", self, name, value)

    def _set_buffer(self, name, value, is_buffer):
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"cannot assign '{_typename(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or "
                "None expected)"
            )
        persistent = name not in self._non_persistent_buffers_set
        if is_buffer:
            persistent = value.persistent
            owners = (self.__dict__, self._parameters, self._modules, self._non_persistent_buffers_set)
            _remove_from(name, *owners)
        if name not in self._buffers:
            self.register_buffer(name, value, persistent)
            return
        self._buffers[name] = registered("buffer", self, name, value)

    def __delattr__(self, name):
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            super().__delattr__(name)

    def __dir__(self):
        names = itertools.chain(
            dir(type(self)), self.__dict__, self._parameters, self._modules, self._buffers
        )
        return sorted({name for name in names if not name[:1].isdigit()})

    def __setstate__(self, state):
        self.__dict__.update(state)
        # Modules pickled before one of these existed.
        for name in _HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    # ---- registration ----

    def _check_new_name(self, kind, name, owned):
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type(name).__name__}")
        if hasattr(self, name) and name not in owned:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            detail = f", got: {name}" if kind == "module" else ""
            raise KeyError(f'{kind} name can\'t contain "."{detail}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')

    def register_buffer(self, name, tensor, persistent=True):
        """Adds a tensor that belongs to the module but is no parameter; in state_dict if persistent."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_new_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{_typename(tensor)}' object to buffer '{name}' (torch Tensor or None "
                "required)"
            )
        self._buffers[name] = registered("buffer", self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name, param):
        """Adds a Parameter (or None: the name is kept, but there is none)."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_new_name("parameter", name, self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{_typename(param)}' object to parameter '{name}' (torch.nn.Parameter "
                    "or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
                    f"created explicitly. To express '{name}' as a function of another Tensor, compute the "
                    "value in the forward() method."
                )
            param = registered("parameter", self, name, param)
        self._parameters[name] = param

    def add_module(self, name, module):
        """Adds a child module (or None)."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_typename(module)} is not a Module subclass")
        self._check_new_name("module", name, self._modules)
        self._set_module(self._modules, name, module)

    def register_module(self, name, module):
        """Another name of add_module."""
        self.add_module(name, module)

    # ---- finding by path ----

    def get_submodule(self, target):
        """The module at a path such as "net.conv.0"; "" is this one."""
        module = self
        if target == "":
            return module
        for item in target.split("."):
            if not hasattr(module, item):
                raise AttributeError(f"{module._get_name()} has no attribute `{item}`")
            module = getattr(module, item)
            if not isinstance(module, Module):
                raise AttributeError(f"`{item}` is not an nn.Module")
        return module

    def set_submodule(self, target, module, strict=False):
        """Puts `module` at the path; strict: something must be there already."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        path, _, name = target.rpartition(".")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _at_path(self, target):
        """(module, name, value) of the attribute at a path."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        return module, name, getattr(module, name)

    def get_parameter(self, target):
        """The parameter at a path such as "net.conv.weight"."""
        _, name, parameter = self._at_path(target)
        if not isinstance(parameter, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return parameter

    def get_buffer(self, target):
        """The buffer at a path."""
        module, name, buffer = self._at_path(target)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return buffer

    # ---- walking ----

    def parameters(self, recurse=True):
        """This module's parameters, and with `recurse` those of all modules below it."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """(path, parameter) of each parameter."""
        yield from _owned_tensors(self, "_parameters", prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        """This module's buffers, and with `recurse` those of all modules below it."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """(path, buffer) of each buffer."""
        yield from _owned_tensors(self, "_buffers", prefix, recurse, remove_duplicate)

    def children(self):
        """The modules directly below."""
        for _, module in self.named_children():
            yield module

    def named_children(self):
        """(name, module) of those directly below; each module once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate=True):
        """This module and all below it, each once."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """(path, module) of this module and of all below it."""
        if memo is None:
            memo = set()
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = prefix + ("." if prefix else "") + name
                yield from module.named_modules(memo, path, remove_duplicate)

    def apply(self, fn):
        """fn(module) for every module, children first."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # ---- converting ----

    def _apply(self, fn, recurse=True):
        if recurse:
            for module in self.children():
                module._apply(fn)
        for parameter in self._parameters.values():
            if parameter is None:
                continue
            with torch.no_grad():
                parameter.data = fn(parameter)
            grad = parameter.grad
            if grad is not None:
                with torch.no_grad():
                    moved = fn(grad).requires_grad_(grad.requires_grad)
                parameter.grad = moved
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args, **kwargs):
        """to(device=None, dtype=None, non_blocking=False), to(dtype), to(tensor), to(memory_format=): in place."""
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )

        def convert(tensor):
            if tensor.is_meta and device is not None and torch.device(device).type != "meta":
                raise NotImplementedError(
                    "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of "
                    "torch.nn.Module.to() when moving module from meta to a different device."
                )
            wanted = dtype if tensor.is_floating_point() or tensor.is_complex() else None
            if memory_format is not None and tensor.dim() in (4, 5):
                return tensor.to(device, wanted, non_blocking, memory_format=memory_format)
            if wanted is None and device is None:
                return tensor
            if wanted is None:
                return tensor.to(device, non_blocking=non_blocking)
            if device is None:
                return tensor.to(wanted, non_blocking=non_blocking)
            return tensor.to(device, wanted, non_blocking)

        return self._apply(convert)

    def to_empty(self, *, device, recurse=True):
        """Moves to a device without copying: the values are whatever is there."""
        return self._apply(lambda tensor: torch.empty_like(tensor, device=device), recurse)

    def type(self, dst_type):
        """All parameters and buffers become this dtype."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def _float_to(self, dtype):
        return self._apply(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)

    def float(self):
        """Floating point members become float32."""
        return self._float_to(torch.float32)

    def double(self):
        """Floating point members become float64."""
        return self._float_to(torch.float64)

    def half(self):
        """Floating point members become float16."""
        return self._float_to(torch.float16)

    def bfloat16(self):
        """Floating point members become bfloat16."""
        return self._float_to(torch.bfloat16)

    def cpu(self):
        """Everything to the CPU."""
        return self._apply(lambda tensor: tensor.cpu())

    def npu(self, device=None):
        """Everything to the accelerator."""
        return self._apply(lambda tensor: tensor.npu(device) if device is not None else tensor.npu())

    def cuda(self, device=None):
        """Everything to the accelerator (torch's name for it)."""
        return self._apply(lambda tensor: tensor.cuda(device) if device is not None else tensor.cuda())

    def share_memory(self):
        """Not there: tensors of this runtime do not live in shared memory."""
        raise NotImplementedError(
            "Module.share_memory() is not supported: tensors do not live in shared memory"
        )

    def compile(self, *args, **kwargs):
        """Not there: this runtime is eager."""
        raise NotImplementedError("Module.compile() is not supported: this runtime is eager")

    def train(self, mode=True):
        """Training mode (or not) for this module and all below it."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        """train(False)."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        """Should autograd compute gradients of the parameters?"""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        """Drops the parameters' gradients, or fills them with zeros."""
        for parameter in self.parameters():
            grad = parameter.grad
            if grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                zero_gradient(grad)

    # ---- hooks ----

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """hook(module, args) before forward; may return new args."""
        notes = [(self._forward_pre_hooks_with_kwargs, with_kwargs)]
        return add_hook(self._forward_pre_hooks, hook, prepend, notes)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """hook(module, args, output) after forward; may return another output."""
        notes = [(self._forward_hooks_with_kwargs, with_kwargs), (self._forward_hooks_always_called, always_call)]
        return add_hook(self._forward_hooks, hook, prepend, notes)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """hook(module, grad_output) before the module's gradients; may return another grad_output."""
        return add_hook(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook, prepend=False):
        """hook(module, grad_input,
        grad_output) with the module's gradients; may return another grad_input."""
        self._is_full_backward_hook = True
        return add_hook(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook):
        """Torch's old, partly wrong kind of hook does not exist here."""
        if self._is_full_backward_hook:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. "
                "Please use only one of them."
            )
        raise NotImplementedError(
            "register_backward_hook() is not supported: use register_full_backward_hook()"
        )

    # ---- printing ----

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        """What stands between the brackets of the module's line; override."""
        return ""

    def __repr__(self):
        extra = self.extra_repr()
        if not self._modules and "\n" not in extra:
            return f"{self._get_name()}({extra})"
        lines = extra.split("\n") if extra else []
        lines += [f"({name}): {module!r}".replace("\n", "\n  ") for name, module in self._modules.items()]
        return "\n  ".join([self._get_name() + "(", *lines]) + "\n)"


def _owned_tensors(root, kind, prefix, recurse, once):
    """(path, tensor) of everything in the modules' dicts `kind`; `once`: a tensor at its first path only."""
    walk = root.named_modules(prefix=prefix, remove_duplicate=once) if recurse else ((prefix, root),)
    seen = {}  # by id, and kept: an id is only one tensor's as long as the tensor lives
    for path, module in walk:
        start = path + "." if path else ""
        for name, tensor in getattr(module, kind).items():
            if tensor is not None and id(tensor) not in seen:
                if once:
                    seen[id(tensor)] = tensor
                yield start + name, tensor


def _remove_from(name, *owners):
    for owner in owners:
        if name in owner:
            if isinstance(owner, dict):
                del owner[name]
            else:
                owner.discard(name)


def _parse_to(*args, **kwargs):
    """device, dtype, non_blocking, memory_format of Module.to in any of torch's spellings."""
    non_blocking = kwargs.pop("non_blocking", False)
    kwargs.pop("copy", None)
    memory_format = kwargs.pop("memory_format", None)
    device, dtype = kwargs.pop("device", None), kwargs.pop("dtype", None)
    rest = list(args)
    for name in ("tensor", "other"):
        if name in kwargs:
            rest.insert(0, kwargs.pop(name))
    if kwargs:
        raise TypeError(f"to() got an unexpected keyword argument '{next(iter(kwargs))}'")
    if rest and isinstance(rest[0], Tensor):
        other = rest.pop(0)
        device, dtype = other.device, other.dtype
    elif rest and isinstance(rest[0], torch.dtype):
        dtype = rest.pop(0)
    elif rest:
        device = rest.pop(0)
        if rest and (rest[0] is None or isinstance(rest[0], torch.dtype)):
            dtype = rest.pop(0)
    if rest and isinstance(rest[0], bool):
        non_blocking = rest.pop(0)
    if len(rest) > 1 or (rest and not isinstance(rest[0], bool)):
        raise TypeError(f"to() received an invalid combination of arguments: {rest[0]!r} is not expected")
    if device is not None:
        device = torch.device(device)
    return device, dtype, non_blocking, memory_format


_scopes.set_module_call(Module.__call__)
