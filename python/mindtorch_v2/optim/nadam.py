# SPDX-License-Identifier: Apache-2.0
"""NAdam: Adam with Nesterov's momentum, which grows from step to step."""

import mindtorch_v2 as torch

from .optimizer import _AlikeOptimizer, _averaging, _check_averaging

__all__ = ["NAdam"]


def momentum_of(beta1, momentum_decay, count):
    """The momentum of a step."""
    return beta1 * (1.0 - 0.5 * 0.96 ** (count * momentum_decay))


class NAdam(_AlikeOptimizer):
    """mu_product of a state is the product of the momentums of all its steps."""

    _alike = ("exp_avg", "exp_avg_sq")
    _later = {"decoupled_weight_decay": False}
    _counted = "params, mu_products and state_steps"

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        momentum_decay=4e-3,
        decoupled_weight_decay=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
    ):
        _check_averaging(lr, betas, eps, weight_decay=weight_decay, momentum_decay=momentum_decay)
        super().__init__(
            params,
            dict(
                lr=lr,
                betas=betas,
                eps=eps,
                weight_decay=weight_decay,
                momentum_decay=momentum_decay,
                decoupled_weight_decay=decoupled_weight_decay,
                maximize=maximize,
                foreach=foreach,
                capturable=capturable,
                differentiable=differentiable,
            ),
        )

    def __setstate__(self, state):
        super().__setstate__(state)
        for kept in self.state.values():
            if "mu_product" in kept and not isinstance(kept["mu_product"], torch.Tensor):
                kept["mu_product"] = self._tensor_step(kept["mu_product"])

    def _begin_numbers(self, state, group):
        state["mu_product"] = self._tensor_step(1.0)

    def _numbers(self, state, group, count):
        mu = momentum_of(float(group["betas"][0]), float(group["momentum_decay"]), count)
        return (state["mu_product"] * mu).item()

    def _after(self, state, group, count):
        state["mu_product"].mul_(momentum_of(float(group["betas"][0]), float(group["momentum_decay"]), count))

    def _fused(self, group, count, numbers, *lists):
        torch._C.ops._fused_nadam_(
            *lists,
            count,
            momentum_decay=float(group["momentum_decay"]),
            mu_product=numbers,
            decoupled_weight_decay=group["decoupled_weight_decay"],
            **_averaging(group),
        )
