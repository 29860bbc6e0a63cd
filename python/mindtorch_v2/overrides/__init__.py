# SPDX-License-Identifier: Apache-2.0
"""torch.overrides: __torch_function__, and modes that see every call."""
import functools
import types

from .. import _C, _overriding
from .._C import Tensor
from .._overriding import DisableTorchFunction, DisableTorchFunctionSubclass

__all__ = ["BaseTorchFunctionMode", "DisableTorchFunction", "DisableTorchFunctionSubclass", "TorchFunctionMode",
           "enable_reentrant_dispatch", "get_default_nowrap_functions", "get_ignored_functions",
           "get_overridable_functions", "get_testing_overrides", "handle_torch_function", "has_torch_function",
           "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like", "is_tensor_method_or_property",
           "resolve_name", "wrap_torch_function"]


# ---- for functions that want to be overridable ----


def has_torch_function(relevant_args):
    """Whether one of them overrides: a subclass of Tensor, or anything else with __torch_function__; or a mode is on."""
    return _C._has_torch_function(*relevant_args)


has_torch_function_variadic = _C._has_torch_function


def has_torch_function_unary(obj):
    """The same for one object."""
    return _C._has_torch_function(obj)


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """What the first handler says that does not return NotImplemented; subclasses are asked before their bases."""
    return _C._handle_torch_function(public_api, tuple(relevant_args), args, kwargs)


def wrap_torch_function(dispatcher):
    """Makes a function overridable; dispatcher(*its arguments) gives those that are asked."""
    def make(func):
        @functools.wraps(func)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)
        return wrapped
    return make


def is_tensor_like(inp):
    """Whether it is a tensor, or has __torch_function__."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


# ---- what can be overridden ----


def _module_names():
    from .. import fft, linalg, nn, special
    import mindtorch_v2 as torch
    return {"torch": torch, "torch.nn.functional": nn.functional, "torch.linalg": linalg, "torch.special": special,
            "torch.fft": fft}


def _is_overridable(value):
    kind = type(value)
    return kind is _C._op_function or kind is _overriding.function_type


@functools.lru_cache(None)
def get_overridable_functions():
    """Functions that ask for __torch_function__, by the module or class that has them."""
    found = {}
    for module in _module_names().values():
        names = getattr(module, "__all__", None) or dir(module)
        found[module] = [value for name in names if not name.startswith("_")
                         for value in (getattr(module, name, None),) if _is_overridable(value)]
    methods = found[Tensor] = []
    for name in dir(Tensor):
        value = getattr(Tensor, name)
        if name in _overriding.PLAIN or name.startswith("_") and not name.startswith("__"):
            continue
        if isinstance(value, types.GetSetDescriptorType):
            methods.append(value.__get__)
        elif type(value) in (_C._op_method, types.MethodDescriptorType, types.FunctionType) \
                or name in _overriding.OPERATORS:
            methods.append(value)
    return found


@functools.lru_cache(None)
def get_ignored_functions():
    """Functions of torch that never ask: they make tensors of what is none, or are about modes and settings."""
    import mindtorch_v2 as torch
    names = """as_tensor from_numpy from_dlpack frombuffer tensor is_tensor is_storage is_grad_enabled manual_seed seed
        initial_seed get_rng_state set_rng_state set_default_dtype get_default_dtype get_num_threads set_num_threads
        no_grad enable_grad set_grad_enabled promote_types result_type can_cast save load typename compile vmap
        broadcast_shapes get_device_module finfo iinfo""".split()
    return {getattr(torch, name) for name in names} | {torch.nn.Parameter, Tensor.as_subclass, Tensor.__new__}


def get_testing_overrides():
    """A function that does nothing for each one that can be overridden, by it."""
    def nothing(*args, **kwargs):
        return -1
    return {function: nothing for functions in get_overridable_functions().values() for function in functions}


def get_default_nowrap_functions():
    """Those whose results Tensor's own __torch_function__ leaves as they are."""
    return {vars(Tensor)[name].__get__(None, Tensor).__get__ for name in ("grad", "_base")}


def _name_of(function):
    """As messages have it: torch.add, torch.Tensor.add, mymodule.f."""
    if is_tensor_method_or_property(function):
        owner = getattr(function, "__self__", None)
        if owner is not None and not isinstance(owner, type):
            return f"torch.Tensor.{owner.__name__}.{function.__name__}"
        return f"torch.Tensor.{function.__name__}"
    if _is_overridable(function):
        for prefix, module in _module_names().items():
            name = getattr(function, "__name__", "")
            for each in (name, name.removeprefix("linalg_"), name.removeprefix("fft_"), name.removeprefix("special_")):
                if getattr(module, each, None) is function:
                    return f"{prefix}.{each}"
    return f"{getattr(function, '__module__', None)}.{getattr(function, '__name__', repr(function))}"


def resolve_name(f):
    """The name by which a program reaches an overridable function; None for any other."""
    if _is_overridable(f) or is_tensor_method_or_property(f):
        return _name_of(f)
    return None


def is_tensor_method_or_property(func):
    """Whether it belongs to Tensor: a method, or the __get__ of a property."""
    owner = getattr(func, "__self__", None)
    if isinstance(owner, types.GetSetDescriptorType):
        return owner.__objclass__ is Tensor
    return getattr(Tensor, getattr(func, "__name__", ""), None) is func


# ---- modes ----


class TorchFunctionMode:
    """Sees every call while it is entered: define __torch_function__(self, func,
    types, args=(), kwargs=None). While it runs, calls go to the mode around it."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        _C._push_torch_function_mode(self)
        return self

    def __exit__(self, type, value, traceback):
        _C._pop_torch_function_mode()


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class _Reentrant:
    """enable_reentrant_dispatch(): nothing is dispatched below __torch_function__ here."""

    def __enter__(self):
        return None

    def __exit__(self, type, value, traceback):
        return None


def enable_reentrant_dispatch():
    """A context that does nothing: there is no __torch_dispatch__."""
    return _Reentrant()
