# SPDX-License-Identifier: Apache-2.0
"""Adamax: Adam with the largest gradient instead of the average of squares."""

import mindtorch_v2 as torch

from .optimizer import _AlikeOptimizer, _averaging, _check_averaging

__all__ = ["Adamax"]


class Adamax(_AlikeOptimizer):
    """Divides by the largest gradient so far, of which a part is forgotten in each step."""

    _alike = ("exp_avg", "exp_inf")

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        capturable=False,
    ):
        _check_averaging(lr, betas, eps, weight_decay=weight_decay)
        super().__init__(
            params,
            dict(
                lr=lr,
                betas=betas,
                eps=eps,
                weight_decay=weight_decay,
                foreach=foreach,
                maximize=maximize,
                differentiable=differentiable,
                capturable=capturable,
            ),
        )

    def _fused(self, group, count, numbers, *lists):
        torch._C.ops._fused_adamax_(*lists, count, **_averaging(group))
