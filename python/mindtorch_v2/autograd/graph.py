# SPDX-License-Identifier: Apache-2.0
"""torch.autograd.graph: nodes, a tensor's place in the graph, and what graphs save."""
import contextlib
from collections import namedtuple

from .. import _C
from .._C import _Node as Node

__all__ = ["Node", "GradientEdge", "get_gradient_edge", "register_multi_grad_hook", "saved_tensors_hooks",
           "save_on_cpu", "disable_saved_tensors_hooks", "allow_mutation_on_saved_tensors", "increment_version"]

GradientEdge = namedtuple("GradientEdge", ["node", "output_nr", "ownership_token"], defaults=[None])

_disabled = []  # messages of disable_saved_tensors_hooks(), the innermost last


def get_gradient_edge(tensor):
    """The node that gets the tensor's gradient."""
    return GradientEdge(*_C._gradient_edge(tensor))


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """fn(grads) when all tensors that a backward reaches have their gradients, None for the others; or fn(grad)
    with the first one (mode="any")."""
    import threading
    import weakref

    from ..utils.hooks import RemovableHandle

    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = tuple(tensors)
    # A leaf's node is the leaf, and hooks that hold it would never be freed.
    held = [weakref.ref(tensor) if tensor.grad_fn is None else tensor.grad_fn for tensor in tensors]
    lock = threading.Lock()
    runs = {}  # number of a backward -> [gradients, how many have come, how many will]

    def is_reached(place):
        if isinstance(place, Node):
            return _C._will_engine_execute_node(place)
        leaf = place()
        return leaf is not None and _C._will_engine_execute_node(_C._gradient_edge(leaf)[0])

    def hook_of(index):
        def hook(grad):
            number = _C._current_run()
            with lock:
                run = runs.get(number)
                if run is None:
                    expected = sum(map(is_reached, held)) if mode == "all" else len(held)
                    run = runs[number] = [[None] * len(held), 0, expected]
                run[0][index] = grad
                run[1] += 1
                first, done = run[1] == 1, run[1] == run[2]
                if done:
                    del runs[number]
                if mode == "any":
                    for other in [n for n in runs if n < number]:
                        del runs[other]
            if mode == "any" and first:
                fn(grad)
            elif mode == "all" and done:
                fn(run[0])

        return hook

    handles = [tensor.register_hook(hook_of(i)) for i, tensor in enumerate(tensors)]

    class _Handles(RemovableHandle):
        """All of them at once."""

        def __init__(self):
            pass

        def remove(self):
            for handle in handles:
                handle.remove()

    return _Handles()


class saved_tensors_hooks:  # noqa: N801, torch's name
    """Inside, pack(tensor) is kept instead of each tensor that an op saves; backward calls unpack() of it."""

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook
        self._before = []

    def __enter__(self):
        if _disabled:
            raise RuntimeError(_disabled[-1])
        self._before.append(_C._set_saved_hooks((self.pack_hook, self.unpack_hook)))

    def __exit__(self, *exception):
        _C._set_saved_hooks(self._before.pop())


class save_on_cpu(saved_tensors_hooks):  # noqa: N801, torch's name
    """Inside, saved tensors are kept in the memory of the host, and go back to their device for backward."""

    def __init__(self, pin_memory=False, device_type="cuda"):
        def pack(tensor):
            if not pin_memory or tensor.device.type != "npu":
                return tensor.device, tensor.cpu()
            return tensor.device, tensor.cpu().pin_memory()

        super().__init__(pack, lambda packed: packed[1].to(packed[0], non_blocking=pin_memory))


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message):
    """Inside, saved_tensors_hooks() raises a RuntimeError with this message."""
    before = _C._set_saved_hooks(None)
    if before is not None:
        _C._set_saved_hooks(before)
        raise RuntimeError(error_message)
    _disabled.append(error_message)
    try:
        yield
    finally:
        _disabled.remove(error_message)


@contextlib.contextmanager
def allow_mutation_on_saved_tensors():
    """Inside, ops save copies: tensors may be changed in place before backward."""
    with saved_tensors_hooks(lambda tensor: tensor.detach().clone(), lambda packed: packed):
        yield


def increment_version(tensor):
    """Tells autograd that a tensor, or each of several, was changed by something it does not know of."""
    for one in (tensor,) if isinstance(tensor, _C.Tensor) else tensor:
        one._raise_version()
