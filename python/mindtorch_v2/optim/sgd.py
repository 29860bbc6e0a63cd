# SPDX-License-Identifier: Apache-2.0
"""Stochastic gradient descent, with momentum."""

import mindtorch_v2 as torch

from .optimizer import _Batches, _check_forms, _check_lr, _check_not_negative, _GroupOptimizer, _trained

__all__ = ["SGD"]


class SGD(_GroupOptimizer):
    """p -= lr * g, where g may have weight decay, momentum and Nesterov's look ahead in it."""

    def __init__(
        self,
        params,
        lr=1e-3,
        momentum=0,
        dampening=0,
        weight_decay=0,
        nesterov=False,
        *,
        maximize=False,
        foreach=None,
        differentiable=False,
        fused=None,
    ):
        _check_lr(lr)
        _check_not_negative(momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        _check_forms(differentiable, foreach, fused)
        super().__init__(
            params,
            dict(
                lr=lr,
                momentum=momentum,
                dampening=dampening,
                weight_decay=weight_decay,
                nesterov=nesterov,
                maximize=maximize,
                foreach=foreach,
                differentiable=differentiable,
                fused=fused,
            ),
        )

    def __setstate__(self, state):
        super().__setstate__(state)
        self._setdefaults(nesterov=False, maximize=False, foreach=None, differentiable=False, fused=False)

    def _state_of(self, p, group):
        return self.state[p]

    def _step_group(self, group):
        momentum = float(group["momentum"])
        batches = _Batches()
        for p, grad in _trained(group):
            if not momentum:
                batches.add((p.device, False), p, grad)
                continue
            buffer = self.state[p].get("momentum_buffer")
            first = buffer is None
            batches.add((p.device, first), p, grad, torch.empty_like(grad) if first else buffer)
        for (_, first), (params, grads, *buffers) in batches:
            buffers = buffers[0] if buffers else []
            torch._C.ops._fused_sgd_(
                params,
                grads,
                buffers,
                weight_decay=float(group["weight_decay"]),
                momentum=momentum,
                lr=float(group["lr"]),
                dampening=float(group["dampening"]),
                nesterov=group["nesterov"],
                maximize=group["maximize"],
                is_first_step=first,
            )
            if first:
                for p, buffer in zip(params, buffers):
                    self.state[p]["momentum_buffer"] = buffer
