# SPDX-License-Identifier: Apache-2.0
"""torch.library: ops that a program writes in Python, called as torch.ops.NAMESPACE.NAME."""

from .._ops import ops
from ..autograd.function import Function

__all__ = ["CustomOpDef", "custom_op", "impl_abstract", "register_autograd", "register_fake", "register_kernel",
           "register_vmap"]

_OPS = {}  # by "namespace::name"


class CustomOpDef:
    """An op of the program: it calls the function, and the one for gradients where that was registered."""

    def __init__(self, name, function):
        self._qualname, self._function, self._differentiable = name, function, None
        self.__name__ = name.partition("::")[2]

    def __call__(self, *args, **kwargs):
        if self._differentiable is None:
            return self._function(*args, **kwargs)
        if kwargs:
            raise NotImplementedError(f"{self._qualname}: keyword arguments of an op with a gradient of its own")
        return self._differentiable.apply(*args)

    @property
    def default(self):
        """torch's name for the only overload."""
        return self

    def register_autograd(self, backward, /, *, setup_context=None):
        """Gives it a gradient: backward(ctx, *grads), setup_context(ctx, inputs, output)."""
        function = self._function

        class Differentiable(Function):
            """The op as torch.autograd.Function."""

            @staticmethod
            def forward(ctx, *args):
                result = function(*args)
                if setup_context is not None:
                    setup_context(ctx=ctx, inputs=args, output=result)
                return result
        Differentiable.backward = staticmethod(backward)
        Differentiable.__name__ = Differentiable.__qualname__ = self.__name__
        self._differentiable = Differentiable

    def register_fake(self, fn, /):
        """What compilers would use: nothing here."""
        return fn

    def register_kernel(self, device_types, fn=None, /):
        """Another function for a kind of device; the first one serves all."""
        return fn if fn is not None else lambda fn: fn

    register_vmap = register_fake


def _named(name):
    if not isinstance(name, str) or name.count("::") != 1:
        raise ValueError(f"library: an op is named NAMESPACE::NAME, not {name!r}")
    return name.split("::")


def custom_op(name, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    """Makes an op of a function; a decorator where none is given."""
    space, last = _named(name)

    def make(function):
        made = _OPS[name] = CustomOpDef(name, function)
        setattr(getattr(ops, space), last, made)
        return made
    return make if fn is None else make(fn)


def _op(op, what):
    if isinstance(op, CustomOpDef):
        return op
    if op in _OPS:
        return _OPS[op]
    _named(op)
    raise NotImplementedError(f"{what}: mindtorch_v2 has no op {op}")


def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """CustomOpDef.register_autograd() of an op by its name."""
    _op(op, "register_autograd").register_autograd(backward, setup_context=setup_context)


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1, allow_override=False):
    """What compilers would use: nothing here. A decorator where no function is given."""
    return func if func is not None else lambda func: func


impl_abstract = register_vmap = register_fake


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """Another function for a kind of device; the first one serves all."""
    return _op(op, "register_kernel").register_kernel(device_types, func)
