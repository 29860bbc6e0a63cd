# SPDX-License-Identifier: Apache-2.0
"""Adadelta: steps as long as the average of those before, whatever the gradients' size."""

import mindtorch_v2 as torch

from .optimizer import _AlikeOptimizer, _check_lr, _check_not_negative

__all__ = ["Adadelta"]


class Adadelta(_AlikeOptimizer):
    """Divides by the root of averaged squares, multiplies by the root of averaged squares of steps."""

    _alike = ("square_avg", "acc_delta")

    def __init__(
        self,
        params,
        lr=1.0,
        rho=0.9,
        eps=1e-6,
        weight_decay=0,
        foreach=None,
        *,
        capturable=False,
        maximize=False,
        differentiable=False,
    ):
        _check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        _check_not_negative(epsilon=eps, weight_decay=weight_decay)
        super().__init__(
            params,
            dict(
                lr=lr,
                rho=rho,
                eps=eps,
                weight_decay=weight_decay,
                maximize=maximize,
                capturable=capturable,
                foreach=foreach,
                differentiable=differentiable,
            ),
        )

    def _fused(self, group, count, numbers, *lists):
        torch._C.ops._fused_adadelta_(
            *lists,
            lr=float(group["lr"]),
            rho=float(group["rho"]),
            eps=float(group["eps"]),
            weight_decay=float(group["weight_decay"]),
            maximize=group["maximize"],
        )
