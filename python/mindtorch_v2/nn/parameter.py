# SPDX-License-Identifier: Apache-2.0
"""Parameter and Buffer: tensors that a Module takes into its own when they are assigned to it."""

import mindtorch_v2 as torch
from mindtorch_v2 import Tensor
from mindtorch_v2._C import _disabled_torch_function_impl as _disabled

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]


class _KnownByMark(type(Tensor)):
    """isinstance(x, cls) also holds for tensors of other classes that carry the mark of cls, an attribute."""

    def __instancecheck__(cls, instance):
        if super().__instancecheck__(instance):
            return True
        mark = cls.__dict__.get("_mark")  # a subclass has none: its instances are really of it
        return mark is not None and isinstance(instance, Tensor) and bool(getattr(instance, mark, False))


def _is_plain(cls):
    """Whether a subclass of Tensor does not override: what is computed with its objects is plain."""
    return cls.__torch_function__ is _disabled


class Parameter(Tensor, metaclass=_KnownByMark):
    """A tensor that is a module's parameter: it appears in parameters() and needs a gradient."""

    _mark = "_is_param"
    __torch_function__ = _disabled

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = torch.empty(0)
        elif not isinstance(data, Tensor):
            raise TypeError(f"Parameter data must be a tensor, not {type(data).__name__}")
        if cls is Parameter and type(data) not in (Tensor, Parameter) and not _is_plain(type(data)):
            parameter = data.detach().requires_grad_(requires_grad)  # of the class that overrides, with the mark
            if type(parameter) is not type(data):
                raise RuntimeError(f"Creating a Parameter from an instance of type {type(data).__name__} requires that "
                                   f"detach() returns an instance of the same type, but returned type "
                                   f"{type(parameter).__name__} was found instead")
            parameter._is_param = True
        else:
            parameter = Tensor._make_subclass(cls, data, requires_grad)
        parameter._mark_parameter()  # for profiles
        return parameter

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.data.clone(), self.requires_grad)
        memo[id(self)] = result
        return result

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    __str__ = __repr__

    def __reduce_ex__(self, protocol):
        state = {key: value for key, value in self.__dict__.items() if key != "_backward_hooks"}
        return _rebuild_parameter, (type(self), self.data, self.requires_grad, state)


def _rebuild_parameter(cls, data, requires_grad, state):
    parameter = cls(data, requires_grad)
    if state:
        parameter.__dict__.update(state)
    return parameter


def register_empty(module, name, shape, device, dtype):
    """Gives a module a parameter whose values are not set yet; shape None: the name, but no parameter."""
    empty = None if shape is None else Parameter(torch.empty(shape, device=device, dtype=dtype))
    module.register_parameter(name, empty)


class Buffer(Tensor, metaclass=_KnownByMark):
    """A tensor that a module registers as a buffer when it is assigned."""

    _mark = "_is_buffer"
    __torch_function__ = _disabled

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = torch.empty(0)
        buffer = data.detach().requires_grad_(data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer


def is_lazy(tensor):
    """Whether a parameter or buffer has no size yet."""
    return isinstance(tensor, _Uninitialized)


class _Uninitialized:
    """A tensor whose size is not known yet; materialize() gives it one."""

    _becomes: type

    def materialize(self, shape, device=None, dtype=None):
        """Memory of that shape, not initialised."""
        data = self.data
        self.__class__ = self._becomes
        self.data = torch.empty(shape, device=device or data.device, dtype=dtype or data.dtype)

    @property
    def shape(self):
        """There is none."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    def detach(self):
        """Itself: there is nothing to share."""
        return self

    def __repr__(self):
        return f"<{type(self).__name__}>"

    __str__ = __repr__


class UninitializedParameter(_Uninitialized, Parameter):
    """A parameter of a lazy module before its first input."""

    _becomes = Parameter
    _mark = None

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        parameter = Tensor._make_subclass(cls, torch.empty(0, device=device, dtype=dtype), requires_grad)
        parameter._mark_parameter()
        return parameter

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]


class _PlainBuffer(Tensor):
    """What an uninitialised buffer becomes."""

    __torch_function__ = _disabled


class UninitializedBuffer(_Uninitialized, _PlainBuffer):
    """A buffer of a lazy module before its first input."""

    _becomes = _PlainBuffer

    def __new__(cls, requires_grad=False, device=None, dtype=None):
        return Tensor._make_subclass(cls, torch.empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]
