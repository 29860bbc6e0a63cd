# SPDX-License-Identifier: Apache-2.0
"""Rprop: each element has its own step size; of its gradient only the sign counts."""

import mindtorch_v2 as torch

from .optimizer import _AlikeOptimizer, _check_lr

__all__ = ["Rprop"]


class Rprop(_AlikeOptimizer):
    """etas: factors of a step size where the gradient's sign turned, and where it stayed."""

    _alike = ("prev", "step_size")

    def __init__(
        self,
        params,
        lr=1e-2,
        etas=(0.5, 1.2),
        step_sizes=(1e-6, 50),
        *,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        _check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(
            params,
            dict(
                lr=lr,
                etas=etas,
                step_sizes=step_sizes,
                foreach=foreach,
                maximize=maximize,
                differentiable=differentiable,
                capturable=capturable,
            ),
        )

    def _fill(self, name, group):
        return float(group["lr"]) if name == "step_size" else 0.0

    def _fused(self, group, count, numbers, *lists):
        torch._C.ops._fused_rprop_(
            *lists,
            etaminus=float(group["etas"][0]),
            etaplus=float(group["etas"][1]),
            step_size_min=float(group["step_sizes"][0]),
            step_size_max=float(group["step_sizes"][1]),
            maximize=group["maximize"],
        )
