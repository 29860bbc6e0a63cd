# SPDX-License-Identifier: Apache-2.0
"""torch.autograd.Function: operations whose derivative the user writes.

    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            (y,) = ctx.saved_tensors
            return grad * y

    y = Exp.apply(x)
"""
import functools

from .. import _C

__all__ = ["Function", "FunctionCtx", "FunctionMeta", "BackwardCFunction", "once_differentiable"]

FunctionCtx = _C._FunctionBase


class BackwardCFunction(FunctionCtx):
    """What ctx is: one class a Function, called by its name and Backward."""

    _forward_cls = None

    def __repr__(self):
        return f"<torch.autograd.function.{type(self).__name__} object at {id(self):#x}>"


def _refuse_both(ctx, *grads):
    raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                       "implement one of them.")


class FunctionMeta(type):
    """Gives each Function the class of its ctx."""

    def __init__(cls, name, bases, attrs):
        super().__init__(name, bases, attrs)
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls})
        owner = next((base for base in cls.__mro__ if "setup_context" in vars(base)), None)
        ways = [way for way in ("backward", "vjp")
                if any(way in vars(base) for base in cls.__mro__ if getattr(base, "__module__", None) != __name__)]
        if len(ways) == 2:
            cls.backward = staticmethod(_refuse_both)
        cls._has_setup_context = owner is not None and getattr(owner, "__module__", None) != __name__


class Function(metaclass=FunctionMeta):
    """Derive from it, define forward and backward as static methods, and call apply()."""

    def __init__(self, *args, **kwargs):
        name = type(self).__name__
        raise RuntimeError(f"{name} should not be instantiated. Methods on autograd functions are all "
                           f"static, so you should invoke them on the class itself: {name}.apply(...)")

    @staticmethod
    def forward(*args, **kwargs):
        """forward(ctx, *args), or forward(*args) where setup_context is defined."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Where it is defined, forward gets no ctx, and this fills it in afterwards."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """A gradient for each argument of forward, None for those that have none."""
        raise NotImplementedError("You must implement either the backward or vjp method for your custom "
                                  "autograd.Function to use it with backward mode AD.")

    @classmethod
    def apply(cls, *args, **kwargs):
        """Runs forward, and records one node for it where a gradient may be needed."""
        if kwargs or cls._has_setup_context:
            args = _bind(cls, args, kwargs)
        return _C._function_apply(cls, args)


def _bind(cls, args, kwargs):
    """The arguments of forward by place, defaults filled in."""
    import inspect

    front = () if cls._has_setup_context else (None,)  # ctx's place
    bound = inspect.signature(cls.forward).bind(*front, *args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(f"{cls.__name__}.apply(): forward must not have keyword-only arguments "
                        f"({', '.join(bound.kwargs)})")
    return bound.args[len(front):]


class _Error(Function):
    """Lets tensors pass, and refuses to be differentiated."""

    @staticmethod
    def forward(ctx, message, *tensors):
        ctx.message = message
        outputs = tuple(tensor.detach() for tensor in tensors[1:])
        return outputs[0] if len(outputs) == 1 else outputs

    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError(ctx.message)


def once_differentiable(fn):
    """For backward functions that are no graph themselves: their results cannot be differentiated."""

    @functools.wraps(fn)
    def wrapper(ctx, *args):
        from .grad_mode import no_grad

        with no_grad():
            outputs = fn(ctx, *args)
        if not _C.is_grad_enabled():
            return outputs
        needing = next((arg for arg in args if isinstance(arg, _C.Tensor) and arg.requires_grad), None)
        if needing is None:
            return outputs
        single = not isinstance(outputs, tuple)
        results = [outputs] if single else list(outputs)
        places = [i for i, result in enumerate(results) if isinstance(result, _C.Tensor)]
        if places:
            passed = _Error.apply("trying to differentiate twice a function that was marked with "
                                  "@once_differentiable", needing, *(results[i] for i in places))
            passed = passed if isinstance(passed, tuple) else (passed,)
            for i, result in zip(places, passed):
                results[i] = result
        return results[0] if single else tuple(results)

    return wrapper
