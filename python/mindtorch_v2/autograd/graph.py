# SPDX-License-Identifier: Apache-2.0
"""torch.autograd.graph: nodes, and a tensor's place in the graph."""
from collections import namedtuple

from .._C import _Node as Node

__all__ = ["Node", "GradientEdge", "get_gradient_edge", "register_multi_grad_hook"]

GradientEdge = namedtuple("GradientEdge", ["node", "output_nr"])


def get_gradient_edge(tensor):
    """The node that gets the tensor's gradient."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require "
                           "gradients")
    if tensor.grad_fn is None:
        # An op on the leaf leads to the node that accumulates for it.
        from .grad_mode import enable_grad

        with enable_grad():
            node, number = tensor.view_as(tensor).grad_fn.next_functions[0]
        return GradientEdge(node, number)
    return GradientEdge(tensor.grad_fn, 0)


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """fn(grads) when all tensors have got their gradients, or fn(grad) with the first one (mode="any").

    Gradients that a backward does not compute never arrive, and then neither does the call.
    """
    import threading

    from ..utils.hooks import RemovableHandle

    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = tuple(tensors)
    lock = threading.Lock()
    grads, seen = [None] * len(tensors), set()

    def hook_of(index):
        def hook(grad):
            with lock:
                first = not seen
                seen.add(index)
                grads[index] = grad
                done = len(seen) == len(tensors)
                given = list(grads)
                if done:
                    seen.clear()
                    grads[:] = [None] * len(tensors)
            if mode == "any" and first:
                fn(grad)
            elif mode == "all" and done:
                fn(given)

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
