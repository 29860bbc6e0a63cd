# SPDX-License-Identifier: Apache-2.0
"""What of torch.Tensor is Python: backward and hooks, printing, copying, pickling.

Importing this module adds the methods to the C type.
"""
from . import _C, _overriding

Tensor = _C.Tensor


# ---- gradients ----


def _backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    """Adds d self / d leaf to the gradient of every leaf, or of `inputs` alone."""
    if inputs is None and not create_graph and (gradient is None or isinstance(gradient, Tensor)):
        _C._run_backward((self,), (gradient,), _C._RETAIN_GRAPH if retain_graph else 0)
        return
    from .autograd import backward

    backward(self, gradient, retain_graph, create_graph, inputs=inputs)


_handle_class = None


def _hook_handle(tensor, hooks, number):
    """A handle that takes the hook away; it does not keep the tensor or its hooks alive."""
    global _handle_class
    import weakref

    if _handle_class is None:
        from .utils.hooks import RemovableHandle

        class _TensorHookHandle(RemovableHandle):
            """Of a hook on a tensor."""

            def __init__(self, tensor, hooks, number):
                self.id = number
                self._tensor = weakref.ref(tensor)
                self._hooks = weakref.ref(hooks)

            def remove(self):
                """Takes the hook away; a second call does nothing."""
                hooks = self._hooks()
                if hooks is not None:
                    _C._remove_hook(hooks, self.id, self._tensor())

        _handle_class = _TensorHookHandle
    return _handle_class(tensor, hooks, number)


def _register_hook(self, hook):
    """hook(grad) whenever the tensor's gradient is computed; what it returns replaces the gradient."""
    return _hook_handle(self, *_C._add_hook(self, hook))


def _register_post_accumulate_grad_hook(self, hook):
    """hook(tensor) after the gradient of this leaf was accumulated."""
    return _hook_handle(self, *_C._add_accumulate_hook(self, hook))


# ---- hooks of nodes ----


class _NodeHookHandle:
    """Takes a node's hook away; it holds the node."""

    def __init__(self, node, hook, before):
        self.node = node
        self.id = _C._add_node_hook(node, hook, before)

    def remove(self):
        """Takes the hook away; a second call does nothing."""
        _C._remove_node_hook(self.node, self.id)

    def __enter__(self):
        return self

    def __exit__(self, type, value, traceback):
        self.remove()


def _node_register_hook(self, fn):
    """fn(grad_inputs, grad_outputs) after the node has run; a tuple that it returns replaces grad_inputs."""
    return _NodeHookHandle(self, fn, False)


def _node_register_prehook(self, fn):
    """fn(grad_outputs) before the node runs; a tuple that it returns replaces them."""
    return _NodeHookHandle(self, fn, True)


_C._Node.register_hook = _node_register_hook
_C._Node.register_prehook = _node_register_prehook


# ---- printing ----


def _repr(self, *, tensor_contents=None):
    from ._tensor_str import text_of

    return text_of(self)


def _format(self, spec):
    if self.dim() == 0 and type(self) is Tensor and not self.is_meta:
        return self.item().__format__(spec)
    return object.__format__(self, spec)


def _dir(self):
    return sorted({*dir(type(self)), *getattr(self, "__dict__", ())})


# ---- copies ----


_OWN = ("_backward_hooks", "_backward_function")  # what belongs to the one tensor, and is not copied


def _attributes(tensor):
    """The attributes a user has set, or None."""
    attributes = {name: value for name, value in tensor.__dict__.items() if name not in _OWN}
    return attributes or None


def _as_type(tensor, cls):
    """A plain leaf as a subclass's object."""
    return tensor if cls is Tensor else Tensor._make_subclass(cls, tensor, tensor.requires_grad)


def _copy(self):
    """copy.copy(): the same elements, a leaf of its own."""
    made = self.detach()
    if self.requires_grad:
        made.requires_grad_()
    made = _as_type(made, type(self))
    attributes = _attributes(self)
    if attributes:
        made.__dict__.update(attributes)
    return made


def _copied_storage(tensor, memo):
    """A copy of a tensor's whole storage, once in a deepcopy."""
    key = ("storage", _C._storage_key(tensor), tensor.dtype)
    flat = memo.get(key)
    if flat is None:
        flat = memo[key] = _C._storage_tensor(tensor).clone()
    return flat


def _deepcopy(self, memo):
    """copy.deepcopy(): tensors that share memory share it in the copy too."""
    known = memo.get(id(self))
    if known is not None:
        return known
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
            "moment.  If you were attempting to deepcopy a module, this may be because of a "
            "torch.nn.utils.weight_norm usage, see https://github.com/pytorch/pytorch/pull/103001")
    from .autograd.grad_mode import no_grad

    with no_grad():
        flat = _copied_storage(self, memo)
        made = flat.as_strided(self.size(), self.stride(), self.storage_offset()).detach()
    if self.requires_grad:
        made.requires_grad_()
    made = _as_type(made, type(self))
    memo[id(self)] = made
    if self.grad is not None:
        made.grad = _deepcopy(self.grad, memo)
    attributes = _attributes(self)
    if attributes:
        import copy

        made.__dict__.update(copy.deepcopy(attributes, memo))
    return made


# ---- pickling ----


def _span(tensor):
    """How many elements of memory lie between the first and the last, both included."""
    if tensor.numel() == 0:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))


def _made_from_bytes(data, dtype, sizes, strides, device, requires_grad):
    """The way back of pickling. `strides` None: contiguous."""
    if strides is None:
        made = _C._tensor_from_bytes(data, dtype, sizes)
    else:
        count = memoryview(data).nbytes // dtype.itemsize
        made = _C._tensor_from_bytes(data, dtype, (count,)).as_strided(sizes, strides).detach()
    if device != "cpu":
        made = made.to(device)
    return made.requires_grad_() if requires_grad else made


def _made_as(cls, attributes, *args):
    """The same for subclasses and tensors with attributes."""
    made = _as_type(_made_from_bytes(*args), cls)
    if attributes:
        made.__dict__.update(attributes)
    return made


def _reduce_ex(self, protocol):
    """Keeps type, device, strides, requires_grad and attributes; the graph and .grad are dropped."""
    if self.is_meta:
        from .serialization import _rebuild_meta_tensor_no_storage

        place = (self.dtype, tuple(self.shape), tuple(self.stride()))
        return _rebuild_meta_tensor_no_storage, (*place, self.requires_grad)
    plain = self.detach()
    strides = None
    if not plain.is_contiguous():
        strides = tuple(plain.stride())
        if plain.device.type != "cpu":
            plain, strides = plain.contiguous(), None
        elif _span(plain) == 0:
            strides = None
        else:
            plain = plain.as_strided((_span(plain),), (1,), plain.storage_offset())
    if protocol >= 5 and plain.device.type == "cpu" and plain.dtype is not _C.bfloat16 and plain.numel():
        import pickle

        data = pickle.PickleBuffer(plain)
    else:
        data = _C._tensor_bytes(plain)
    args = (data, self.dtype, tuple(self.shape), strides, str(self.device), self.requires_grad)
    attributes = _attributes(self)
    if type(self) is Tensor and not attributes:
        return _made_from_bytes, args
    return _made_as, (type(self), attributes, *args)


# ---- other ways through, other ways in ----


def _reversed(self):
    """reversed(x): a tensor, the first dimension turned round."""
    return self.flip(0) if self.dim() else self



def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    """A tensor over obj's memory where it has some of the right type, else a copy."""
    if isinstance(obj, Tensor):
        made = obj.to(dtype=dtype, device=device, copy=bool(copy))
        if copy is False and made.data_ptr() != obj.data_ptr():
            raise ValueError("can't alias a tensor with another type or device: copy=False")
        if requires_grad != made.requires_grad:
            made = made.detach()
            if requires_grad:
                made.requires_grad_()
        return made
    if hasattr(obj, "_tensor"):  # a storage
        return asarray(obj._tensor, dtype=dtype, device=device, copy=copy, requires_grad=requires_grad)
    if copy:
        return _C.tensor(obj, dtype=dtype, device=device, requires_grad=requires_grad)
    made = _C.as_tensor(obj, dtype=dtype, device=device)
    return made.requires_grad_() if requires_grad else made


for _name, _method in {
    "backward": _backward,
    "register_hook": _register_hook,
    "register_post_accumulate_grad_hook": _register_post_accumulate_grad_hook,
    "__repr__": _repr,
    "__str__": _repr,
    "__format__": _format,
    "__dir__": _dir,
    "__reversed__": _reversed,
    "__copy__": _copy,
    "__deepcopy__": _deepcopy,
    "__reduce_ex__": _reduce_ex,
}.items():
    _method.__name__ = _name
    _method.__qualname__ = f"Tensor.{_name}"
    setattr(Tensor, _name, _method)
del _name, _method
