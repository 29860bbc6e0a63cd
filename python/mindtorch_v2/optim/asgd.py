# SPDX-License-Identifier: Apache-2.0
"""ASGD: gradient descent, and the average of the parameters it passes."""

import mindtorch_v2 as torch

from .optimizer import _AlikeOptimizer, _check_lr, _check_not_negative

__all__ = ["ASGD"]


class ASGD(_AlikeOptimizer):
    """state: eta, the rate of the next step; mu, its share of the average; ax, the average."""

    _alike = ("ax",)
    _counted = "params, mus, etas, and state_steps"

    def __init__(
        self,
        params,
        lr=1e-2,
        lambd=1e-4,
        alpha=0.75,
        t0=1e6,
        weight_decay=0,
        foreach=None,
        maximize=False,
        differentiable=False,
        capturable=False,
    ):
        _check_lr(lr)
        _check_not_negative(weight_decay=weight_decay)
        super().__init__(
            params,
            dict(
                lr=lr,
                lambd=lambd,
                alpha=alpha,
                t0=t0,
                weight_decay=weight_decay,
                foreach=foreach,
                maximize=maximize,
                differentiable=differentiable,
                capturable=capturable,
            ),
        )

    def __setstate__(self, state):
        super().__setstate__(state)
        for kept in self.state.values():
            for name in ("eta", "mu"):
                if name in kept and not isinstance(kept[name], torch.Tensor):
                    kept[name] = self._tensor_step(kept[name])

    def _begin_numbers(self, state, group):
        state["eta"] = self._tensor_step(float(group["lr"]))
        state["mu"] = self._tensor_step(1.0)

    def _numbers(self, state, group, count):
        return state["eta"].item(), state["mu"].item()

    def _after(self, state, group, count):
        lr, lambd = float(group["lr"]), float(group["lambd"])
        state["eta"] = self._tensor_step(lr / (1 + lambd * lr * count) ** float(group["alpha"]))
        state["mu"] = self._tensor_step(1 / max(1.0, count - float(group["t0"])))

    def _fused(self, group, count, numbers, *lists):
        torch._C.ops._fused_asgd_(
            *lists,
            lambd=float(group["lambd"]),
            eta=numbers[0],
            mu=numbers[1],
            weight_decay=float(group["weight_decay"]),
            maximize=group["maximize"],
        )
