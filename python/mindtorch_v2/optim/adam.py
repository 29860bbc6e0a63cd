# SPDX-License-Identifier: Apache-2.0
"""Adam, and what AdamW shares with it."""

import mindtorch_v2 as torch

from .optimizer import (
    _Batches,
    _check_betas,
    _check_capturable,
    _check_forms,
    _check_lr,
    _check_not_negative,
    _GroupOptimizer,
    _trained,
)

__all__ = ["Adam"]


class Adam(_GroupOptimizer):
    """Steps by averages of gradients and of their squares, corrected for their start at zero."""

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        amsgrad=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
        fused=None,
        decoupled_weight_decay=False,
    ):
        if isinstance(lr, torch.Tensor) and foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        _check_lr(lr)
        _check_not_negative(epsilon=eps)
        if isinstance(betas[0], torch.Tensor) != isinstance(betas[1], torch.Tensor):
            raise ValueError("betas must be either both floats or both Tensors")
        _check_betas(betas)
        _check_not_negative(weight_decay=weight_decay)
        _check_forms(differentiable, foreach, fused)
        super().__init__(
            params,
            dict(
                lr=lr,
                betas=betas,
                eps=eps,
                weight_decay=weight_decay,
                amsgrad=amsgrad,
                maximize=maximize,
                foreach=foreach,
                capturable=capturable,
                differentiable=differentiable,
                fused=fused,
                decoupled_weight_decay=decoupled_weight_decay,
            ),
        )

    def __setstate__(self, state):
        super().__setstate__(state)
        self._setdefaults(
            amsgrad=False,
            maximize=False,
            foreach=None,
            capturable=False,
            differentiable=False,
            fused=None,
            decoupled_weight_decay=False,
        )
        self._tensor_steps()

    def _state_of(self, p, group):
        state, amsgrad, fused = self.state[p], group["amsgrad"], group["fused"]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32, device="cpu") if fused else self._tensor_step()
            state["exp_avg"] = torch.zeros_like(p)
            state["exp_avg_sq"] = torch.zeros_like(p)
        if amsgrad and "max_exp_avg_sq" not in state:
            state["max_exp_avg_sq"] = torch.zeros_like(p)
        return state

    def _step_group(self, group):
        amsgrad = group["amsgrad"]
        batches = _Batches()
        for p, grad in _trained(group):
            _check_capturable(group, p)
            state = self._state_of(p, group)
            step = state["step"]
            members = [p, grad, state["exp_avg"], state["exp_avg_sq"], step]
            if amsgrad:
                members.append(state["max_exp_avg_sq"])
            batches.add((p.device, int(step.item()) + 1), *members)
        beta1, beta2 = map(float, group["betas"])
        fused = torch._C.ops._fused_adamw_ if group["decoupled_weight_decay"] else torch._C.ops._fused_adam_
        for (_, count), (params, grads, averages, squares, steps, *largest) in batches:
            fused(
                params,
                grads,
                averages,
                squares,
                largest[0] if largest else [],
                count,
                lr=float(group["lr"]),
                beta1=beta1,
                beta2=beta2,
                weight_decay=float(group["weight_decay"]),
                eps=float(group["eps"]),
                amsgrad=amsgrad,
                maximize=group["maximize"],
            )
            for step in steps:
                step.add_(1)
