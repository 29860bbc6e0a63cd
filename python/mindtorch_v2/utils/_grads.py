# SPDX-License-Identifier: Apache-2.0
"""What modules and optimizers both do with gradients."""


def zero_gradient(grad):
    """Fills a gradient with zeros, after it has left the graph it may be part of."""
    if grad.grad_fn is not None:
        grad.detach_()
    else:
        grad.requires_grad_(False)
    grad.zero_()
