# SPDX-License-Identifier: Apache-2.0
"""torch.utils.swap_tensors."""

import mindtorch_v2 as torch


def swap_tensors(t1, t2):
    """Swaps the contents of two tensors: elements, gradients, attributes and class; both stay the objects they are.

    Both must be leaves: a result of an op is tied to its graph.
    """
    for number, tensor in enumerate((t1, t2), 1):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"swap_tensors(): t{number} is {type(tensor).__name__}, not a tensor")
        if not tensor.is_leaf or tensor._is_view():
            raise RuntimeError(f"swap_tensors(): t{number} is a view or a result of an op; leaves can be swapped")
    if t1 is t2:
        return
    needs, grads, classes = (t1.requires_grad, t2.requires_grad), (t1.grad, t2.grad), (type(t1), type(t2))
    first = t1.data
    for tensor in (t1, t2):
        tensor.grad = None
        tensor.requires_grad_(False)
    t1.data, t2.data = t2.data, first
    for tensor, other in ((t1, 1), (t2, 0)):
        tensor.requires_grad_(needs[other])
        tensor.grad = grads[other]
    t1.__dict__, t2.__dict__ = dict(t2.__dict__), dict(t1.__dict__)
    if classes[0] is not classes[1]:
        t1.__class__, t2.__class__ = classes[1], classes[0]
