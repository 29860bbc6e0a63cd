# SPDX-License-Identifier: Apache-2.0
"""Parameter and Buffer: tensors that a Module takes into its own when they are assigned to it."""

import mindtorch_v2 as torch
from mindtorch_v2 import Tensor

__all__ = ["Parameter", "Buffer"]


class _ParameterMeta(type(Tensor)):
    """isinstance(x, Parameter) also holds for tensors of other classes that say so by `_is_param`."""

    def __instancecheck__(cls, instance):
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that is a module's parameter: it appears in parameters() and needs a gradient."""

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = torch.empty(0)
        elif not isinstance(data, Tensor):
            raise TypeError(f"Parameter data must be a tensor, not {type(data).__name__}")
        return Tensor._make_subclass(cls, data, requires_grad)

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.data.clone(), self.requires_grad)
        memo[id(self)] = result
        return result

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol):
        state = {key: value for key, value in self.__dict__.items() if key != "_backward_hooks"}
        return _rebuild_parameter, (type(self), self.data, self.requires_grad, state)


def _rebuild_parameter(cls, data, requires_grad, state):
    parameter = cls(data, requires_grad)
    if state:
        parameter.__dict__.update(state)
    return parameter


class _BufferMeta(type(Tensor)):
    def __instancecheck__(cls, instance):
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Buffer and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that a module registers as a buffer when it is assigned."""

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = torch.empty(0)
        buffer = data.detach().requires_grad_(data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer
