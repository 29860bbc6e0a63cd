# SPDX-License-Identifier: Apache-2.0
"""torch.nn.utils.parametrize: parameters that are computed from others by modules.

A module whose parameter is parametrized gets a class of its own, in which the parameter is a property:

    module.weight  ->  parametrizations.weight()  ->  the modules of the list, applied to `original`
"""

import contextlib
import copy

import mindtorch_v2 as torch

from ..modules.container import ModuleDict, ModuleList
from ..parameter import Parameter

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "transfer_parametrizations_and_params", "type_before_parametrizations",
]  # fmt: skip

_cache_depth = 0
_cache = {}


@contextlib.contextmanager
def cached():
    """Inside, a parametrized parameter is computed once."""
    global _cache_depth
    _cache_depth += 1
    try:
        yield
    finally:
        _cache_depth -= 1
        if _cache_depth == 0:
            _cache.clear()


def _kept(value, original):
    """A Parameter where the original was one, else a tensor."""
    if isinstance(original, Parameter):
        return Parameter(value.detach(), original.requires_grad)
    return value


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and what they are applied to: `original`, or `original0` and so on
    where the last right_inverse gives several."""

    def __init__(self, modules, original, unsafe=False):
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        made = original.detach() if isinstance(original, Parameter) else original
        with torch.no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with contextlib.suppress(NotImplementedError):
                        made = module.right_inverse(made)
        self.is_tensor = isinstance(made, torch.Tensor)
        self.ntensors = 1 if self.is_tensor else len(made)
        for name, value in zip(self._names(), [made] if self.is_tensor else made):
            kept = original if value is original else _kept(value, original)
            if isinstance(kept, Parameter):
                self.register_parameter(name, kept)
            else:
                self.register_buffer(name, kept)
        if not unsafe:
            self._check(original)

    def _names(self):
        return ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]

    def _check(self, original):
        made = self()
        if not isinstance(made, torch.Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(made).__name__}.")
        for what, have, want in (("dtype", made.dtype, original.dtype), ("shape", made.shape, original.shape)):
            if have != want:
                raise ValueError(
                    f"Registering a parametrization may not change the {what} of the tensor, unless `unsafe` flag is "
                    f"enabled.\nunparametrized {what}: {want}\nparametrized {what}: {have}"
                )

    def right_inverse(self, value):
        """Sets the originals so that the parametrized tensor becomes `value`."""
        with torch.no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                value = module.right_inverse(value)
            for name, part in zip(self._names(), [value] if self.is_tensor else value):
                getattr(self, name).copy_(part)

    def forward(self):
        made = [getattr(self, name) for name in self._names()]
        for module in self:
            made = [module(*made)]
        return made[0]


def _property(name):
    def read(self):
        if _cache_depth == 0:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def write(self, value):
        self.parametrizations[name].right_inverse(value)

    return property(read, write)


def _new_class(module):
    base = type(module)

    def no_pickle(self):
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). See:\n"
            "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
            "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
        )

    def deep_copy(self, memo):
        made = memo.get(id(self))
        if made is None:
            made = self.__new__(type(self))
            memo[id(self)] = made
            made.__dict__ = copy.deepcopy(self.__dict__, memo)
        return made

    body = {"__getstate__": no_pickle, "__deepcopy__": deep_copy, "__module__": __name__}
    module.__class__ = type(f"Parametrized{base.__name__}", (base,), body)


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """From now on module.tensor_name is what `parametrization` makes of the tensor."""
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        parts = module.parametrizations[tensor_name]
        value = getattr(module, tensor_name)
        made = parametrization(value)
        if not unsafe and (made.shape != value.shape or made.dtype != value.dtype):
            raise ValueError(
                "Registering a parametrization may not change the shape or dtype of the tensor, unless `unsafe` flag "
                f"is enabled. {tuple(value.shape)} {value.dtype} became {tuple(made.shape)} {made.dtype}"
            )
        parts.append(parametrization)
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    original = getattr(module, tensor_name)
    parts = ParametrizationList([parametrization], original, unsafe=unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _new_class(module)
        module.parametrizations = ModuleDict()
    setattr(type(module), tensor_name, _property(tensor_name))
    module.parametrizations[tensor_name] = parts
    return module


def is_parametrized(module, tensor_name=None):
    """Whether the module (or this tensor of it) has parametrizations."""
    found = getattr(module, "parametrizations", None)
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """The tensor is a plain one again: what it was computed to be, or its original."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parts = module.parametrizations[tensor_name]
    original = getattr(parts, parts._names()[0])
    if leave_parametrized:
        with torch.no_grad():
            value = getattr(module, tensor_name)
        kept = Parameter(value.detach(), original.requires_grad) if isinstance(original, Parameter) else value
    elif parts.is_tensor:
        kept = original
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if isinstance(kept, Parameter):
        module.register_parameter(tensor_name, kept)
    else:
        module.register_buffer(tensor_name, kept)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module):
    """The module's class without parametrizations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None):
    """Gives to_module the parametrizations of from_module and the values of their tensors."""
    if not is_parametrized(from_module):
        return to_module
    names = list(from_module.parametrizations) if tensor_name is None else [tensor_name]
    for name in names:
        parts = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach().clone()))
        for part in parts:
            register_parametrization(to_module, name, part, unsafe=parts.unsafe)
        with torch.no_grad():
            for own in parts._names():
                getattr(to_module.parametrizations[name], own).copy_(getattr(parts, own))
    return to_module


