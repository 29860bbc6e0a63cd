# SPDX-License-Identifier: Apache-2.0
"""Adagrad: gradients divided by the root of the sum of all their squares so far."""

import mindtorch_v2 as torch

from .optimizer import _Batches, _check_forms, _check_lr, _check_not_negative, _GroupOptimizer, _trained

__all__ = ["Adagrad"]


class Adagrad(_GroupOptimizer):
    """Its state exists from the beginning, not from the first step on."""

    def __init__(
        self,
        params,
        lr=1e-2,
        lr_decay=0,
        weight_decay=0,
        initial_accumulator_value=0,
        eps=1e-10,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        fused=None,
    ):
        _check_lr(lr)
        _check_not_negative(
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            epsilon=eps,
        )
        _check_forms(differentiable, foreach, fused)
        super().__init__(
            params,
            dict(
                lr=lr,
                lr_decay=lr_decay,
                eps=eps,
                weight_decay=weight_decay,
                initial_accumulator_value=initial_accumulator_value,
                foreach=foreach,
                maximize=maximize,
                differentiable=differentiable,
                fused=fused,
            ),
        )

    def __setstate__(self, state):
        super().__setstate__(state)
        self._setdefaults(foreach=None, maximize=False, differentiable=False, fused=None)
        self._tensor_steps()

    def add_param_group(self, param_group):
        """Adds a group, and makes its state."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        with torch.no_grad():
            for p in group["params"]:
                self.state[p] = {
                    "step": self._tensor_step(),
                    "sum": torch.full_like(p, float(group["initial_accumulator_value"])),
                }

    def share_memory(self):
        """Not here: tensors are handed to other processes by copying."""
        raise NotImplementedError("Adagrad.share_memory(): tensors cannot be put into shared memory")

    def _state_of(self, p, group):
        return self.state[p]

    def _step_group(self, group):
        batches = _Batches()
        for p, grad in _trained(group):
            state = self.state[p]
            step = state["step"]
            batches.add((p.device, int(step.item()) + 1), p, grad, state["sum"], step)
        for (_, count), (params, grads, sums, steps) in batches:
            torch._C.ops._fused_adagrad_(
                params,
                grads,
                sums,
                count,
                lr=float(group["lr"]),
                lr_decay=float(group["lr_decay"]),
                weight_decay=float(group["weight_decay"]),
                eps=float(group["eps"]),
                maximize=group["maximize"],
            )
            for step in steps:
                step.add_(1)
