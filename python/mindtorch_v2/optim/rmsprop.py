# SPDX-License-Identifier: Apache-2.0
"""RMSprop: gradients divided by the root of the average of their squares."""

import mindtorch_v2 as torch

from .optimizer import (
    _Batches,
    _check_capturable,
    _check_forms,
    _check_lr,
    _check_not_negative,
    _GroupOptimizer,
    _trained,
)

__all__ = ["RMSprop"]


class RMSprop(_GroupOptimizer):
    """`centered` takes the variance instead of the mean square; `momentum` averages the steps."""

    def __init__(
        self,
        params,
        lr=1e-2,
        alpha=0.99,
        eps=1e-8,
        weight_decay=0,
        momentum=0,
        centered=False,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        _check_lr(lr)
        _check_not_negative(epsilon=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        _check_forms(differentiable)
        super().__init__(
            params,
            dict(
                lr=lr,
                momentum=momentum,
                alpha=alpha,
                eps=eps,
                centered=centered,
                weight_decay=weight_decay,
                capturable=capturable,
                foreach=foreach,
                maximize=maximize,
                differentiable=differentiable,
            ),
        )

    def __setstate__(self, state):
        super().__setstate__(state)
        self._setdefaults(
            momentum=0, centered=False, foreach=None, maximize=False, differentiable=False, capturable=False
        )
        self._tensor_steps()

    def _state_of(self, p, group):
        state, momentum, centered = self.state[p], group["momentum"], group["centered"]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32, device="cpu")
            state["square_avg"] = torch.zeros_like(p)
        if momentum > 0 and "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(p)
        if centered and "grad_avg" not in state:
            state["grad_avg"] = torch.zeros_like(p)
        return state

    def _step_group(self, group):
        momentum, centered = float(group["momentum"]), group["centered"]
        batches = _Batches()
        for p, grad in _trained(group):
            _check_capturable(group, p)
            state = self._state_of(p, group)
            batches.add(
                p.device,
                p,
                grad,
                state["square_avg"],
                state.get("momentum_buffer"),
                state.get("grad_avg"),
                state["step"],
            )
        for _, (params, grads, squares, buffers, averages, steps) in batches:
            torch._C.ops._fused_rmsprop_(
                params,
                grads,
                squares,
                buffers if momentum > 0 else [],
                averages if centered else [],
                lr=float(group["lr"]),
                alpha=float(group["alpha"]),
                eps=float(group["eps"]),
                weight_decay=float(group["weight_decay"]),
                momentum=momentum,
                centered=centered,
                maximize=group["maximize"],
            )
            for step in steps:
                step.add_(1)
