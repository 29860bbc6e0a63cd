# SPDX-License-Identifier: Apache-2.0
"""What the tests of gradients share."""
import mindtorch_v2 as torch
from mindtorch_v2.autograd import Function


def leaf(*values, dtype=torch.float32):
    """A vector that wants a gradient."""
    return torch.tensor(values, dtype=dtype, requires_grad=True)


class Mine(Exception):
    """An exception of the user's."""


class Scale(Function):
    """x * factor, with x saved."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        assert x is not None
        return grad * ctx.factor, None
