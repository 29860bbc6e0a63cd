# SPDX-License-Identifier: Apache-2.0
"""RAdam: Adam that does not divide by averages of squares before they are good ones."""

import mindtorch_v2 as torch

from .optimizer import _AlikeOptimizer, _averaging, _check_averaging

__all__ = ["RAdam"]


class RAdam(_AlikeOptimizer):
    """The first steps are those of momentum alone; later ones are shortened by their uncertainty."""

    _alike = ("exp_avg", "exp_avg_sq")
    _later = {"decoupled_weight_decay": False}

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        decoupled_weight_decay=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
    ):
        _check_averaging(lr, betas, eps, weight_decay=weight_decay)
        super().__init__(
            params,
            dict(
                lr=lr,
                betas=betas,
                eps=eps,
                weight_decay=weight_decay,
                maximize=maximize,
                foreach=foreach,
                capturable=capturable,
                decoupled_weight_decay=decoupled_weight_decay,
                differentiable=differentiable,
            ),
        )

    def _fused(self, group, count, numbers, *lists):
        torch._C.ops._fused_radam_(
            *lists, count, decoupled_weight_decay=group["decoupled_weight_decay"], **_averaging(group)
        )
