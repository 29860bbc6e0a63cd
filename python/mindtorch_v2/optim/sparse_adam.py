# SPDX-License-Identifier: Apache-2.0
"""SparseAdam: Adam for sparse gradients. There are no sparse tensors here, so a step is refused."""

import mindtorch_v2 as torch

from .optimizer import Optimizer, _check_betas, _check_lr, _trained

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """It can be made, saved and loaded; a step with a gradient fails, as torch's does with a dense one."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        if isinstance(lr, torch.Tensor):
            _check_lr(lr)
        if not 0.0 < lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not 0.0 < eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        _check_betas(betas)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, maximize=maximize))

    def step(self, closure=None):
        """Refused where a parameter has a gradient: gradients are dense here."""
        loss = self._closure_loss(closure)
        if any(_trained(group) for group in self.param_groups):
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        return loss
