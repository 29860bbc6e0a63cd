# SPDX-License-Identifier: Apache-2.0
"""torch.autograd: gradients of tensors, and functions whose gradient the user writes."""
from .. import _C, _overriding
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .function import Function
from .grad_mode import (enable_grad, inference_mode, is_inference_mode_enabled, no_grad,  # noqa: F401
                        set_grad_enabled)

__all__ = ["Function", "Variable", "backward", "grad", "gradcheck", "gradgradcheck", "no_grad",
           "enable_grad", "set_grad_enabled", "inference_mode", "detect_anomaly", "set_detect_anomaly", "anomaly_mode",
           "function", "functional", "grad_mode", "graph", "profiler", "profiler_util"]

_Tensor = _C.Tensor


def _as_tuple(given, what):
    """One tensor, or a sequence of them, as a tuple."""
    if isinstance(given, _Tensor):
        return (given,)
    try:
        return tuple(given)
    except TypeError:
        raise TypeError(f"{what} must be a Tensor or a sequence of them, "
                        f"not {type(given).__name__}") from None


def _gradients(given, count, what):
    """Gradients for so many tensors; None stands for 1."""
    if given is None:
        return (None,) * count
    grads = _as_tuple(given, what)
    if len(grads) != count:
        raise RuntimeError(f"got {count} tensors and {len(grads)} gradients")
    return grads


def _flags(retain_graph, create_graph):
    retain = create_graph if retain_graph is None else retain_graph
    return (_C._RETAIN_GRAPH if retain else 0) | (_C._CREATE_GRAPH if create_graph else 0)


def _accumulate(tensor, grad, create_graph):
    if grad is None:
        return
    if tensor.grad is None:
        tensor.grad = grad if create_graph else grad.detach()
    elif create_graph:
        tensor.grad = tensor.grad + grad
    else:
        with no_grad():
            tensor.grad += grad


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None,
             inputs=None):
    """Adds d tensors / d leaf to the gradient of every leaf, or of `inputs` alone."""
    if grad_variables is not None:
        import warnings

        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning,
                      stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                               "`backward()`. Please only use `grad_tensors`.")
        grad_tensors = grad_variables
    roots = _as_tuple(tensors, "tensors")
    grads = _gradients(grad_tensors, len(roots), "grad_tensors")
    flags = _flags(retain_graph, create_graph)
    if create_graph:
        from .._functions import _warn_once

        _warn_once("Using backward() with create_graph=True will create a reference cycle between the parameter and "
                   "its gradient which can cause a memory leak. We recommend using autograd.grad when creating the "
                   "graph to avoid this. If you have to use this function, make sure to reset the .grad fields of your "
                   "parameters to None after use to break the cycle and avoid the leak.")
    if inputs is None:
        if roots:
            _C._run_backward(roots, grads, flags)
        return
    inputs = _as_tuple(inputs, "inputs")
    if not inputs:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    for tensor in inputs:
        if not tensor.requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    found = _C._run_grad(roots, grads, inputs, flags | _C._ALLOW_UNUSED)
    for tensor, gradient in zip(inputs, found):
        _accumulate(tensor, gradient, create_graph)


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True,
         allow_unused=None, is_grads_batched=False, materialize_grads=False):
    """The gradients of outputs with respect to inputs, as a tuple; leaves are not touched."""
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, "
                         "but got: allow_unused=False.")
    if is_grads_batched:
        return _batched_grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused=allow_unused,
                             materialize_grads=materialize_grads)
    names = None
    if isinstance(inputs, dict):
        names, inputs = tuple(inputs), tuple(inputs.values())
    roots = _as_tuple(outputs, "outputs")
    inputs = _as_tuple(inputs, "inputs")
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    for tensor in inputs:
        if not tensor.requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    grads = _gradients(grad_outputs, len(roots), "grad_outputs")
    flags = _flags(retain_graph, create_graph)
    if allow_unused or materialize_grads:
        flags |= _C._ALLOW_UNUSED
    found = _C._run_grad(roots, grads, inputs, flags)
    if materialize_grads:
        found = tuple(_C.ops.zeros_like(tensor) if gradient is None else gradient
                      for tensor, gradient in zip(inputs, found))
    return found if names is None else dict(zip(names, found))


def _batched_grad(outputs, inputs, grad_outputs, retain_graph, create_graph, **options):
    """grad() for each slice of grad_outputs, one after the other, and the results stacked."""
    roots = _as_tuple(outputs, "outputs")
    batches = _gradients(grad_outputs, len(roots), "grad_outputs")
    sizes = {batch.shape[0] for batch in batches if batch is not None}
    if len(sizes) != 1:
        raise ValueError(f"grad(): is_grads_batched=True needs grad_outputs with one first dimension, not {sizes}")
    count = sizes.pop()
    found = []
    for place in range(count):
        slices = [None if batch is None else batch[place] for batch in batches]
        keep = True if place < count - 1 else retain_graph
        found.append(grad(roots, inputs, slices, keep, create_graph, **options))
    if isinstance(inputs, dict):
        return {name: None if found[0][name] is None else _C.ops.stack([each[name] for each in found])
                for name in inputs}
    return tuple(None if each[0] is None else _C.ops.stack(each) for each in zip(*found))


grad = _overriding.offer(grad)
backward = _overriding.offer(backward)


class _VariableMeta(type):
    def __instancecheck__(cls, other):
        return isinstance(other, _Tensor)


class Variable(metaclass=_VariableMeta):
    """torch's old name of Tensor: isinstance() works, and a call gives the tensor itself."""

    def __new__(cls, data, requires_grad=False):
        return data.detach().requires_grad_(requires_grad)


def __getattr__(name):
    """Submodules that are imported when they are first used."""
    if name in ("function", "functional", "grad_mode", "graph", "profiler", "profiler_util"):
        import importlib

        return importlib.import_module("." + name, __name__)
    if name in ("_record_function_with_args_enter", "_record_function_with_args_exit"):
        from mtprof import record_fast

        return getattr(record_fast, name)
    if name == "_profiler_enabled":
        return _C._profiler_enabled
    if name in ("DeviceType", "ProfilerActivity", "kineto_available"):
        from mindtorch_v2 import profiler

        return getattr(profiler, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# The functions replace their module's name, as in torch.
from .gradcheck import gradcheck, gradgradcheck  # noqa: E402, F401
