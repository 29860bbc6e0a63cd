# SPDX-License-Identifier: Apache-2.0
"""Adafactor (Shazeer and Stern): squares of gradients are kept as a row and a column of means, not as a matrix."""

import mindtorch_v2 as torch

from .optimizer import _GroupOptimizer, _trained

__all__ = ["Adafactor"]


def _rms(tensor):
    return float(tensor.norm(2)) / tensor.numel() ** 0.5


class Adafactor(_GroupOptimizer):
    """lr bounds the relative step; beta2_decay: how fast old squares fade; d: the largest RMS of an update."""

    def __init__(
        self,
        params,
        lr=1e-2,
        beta2_decay=-0.8,
        eps=(None, 1e-3),
        d=1.0,
        weight_decay=0.0,
        *,
        foreach=None,
        maximize=False,
    ):
        if isinstance(lr, torch.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not 0.0 >= beta2_decay:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not 0.0 <= eps[0]:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not 0.0 <= eps[1]:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not 1.0 <= d:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(
            params,
            dict(
                lr=lr,
                beta2_decay=beta2_decay,
                eps=eps,
                d=d,
                weight_decay=weight_decay,
                foreach=foreach,
                maximize=maximize,
            ),
        )

    def __setstate__(self, state):
        super().__setstate__(state)
        self._setdefaults(foreach=None)
        self._tensor_steps()

    def _state_of(self, p):
        state = self.state[p]
        if not state:
            state["step"] = self._tensor_step()
            if p.dim() > 1:
                rows, columns = list(p.shape), list(p.shape)
                rows[-1] = columns[-2] = 1
                state["row_var"] = p.grad.new_zeros(rows)
                state["col_var"] = p.grad.new_zeros(columns)
            else:
                state["variance"] = torch.zeros_like(p.grad)
        return state

    def _variance(self, state, grad, keep, least):
        """The estimated squares, from the state that takes this gradient in."""
        if grad.dim() < 2:
            return state["variance"].lerp_(grad * grad, 1 - keep).clone()
        rows, columns = state["row_var"], state["col_var"]
        squares = grad * grad
        rows.lerp_(squares.mean(-1, keepdim=True), 1 - keep)
        columns.lerp_(squares.mean(-2, keepdim=True), 1 - keep)
        return (rows @ columns).div_(rows.mean(-2, keepdim=True).clamp_(min=least))

    def _step_group(self, group):
        lr, (least, smallest) = float(group["lr"]), group["eps"]
        for p, grad in _trained(group):
            state = self._state_of(p)
            grad = -grad if group["maximize"] else grad
            state["step"] += 1
            count = float(state["step"])
            least = torch.finfo(p.dtype).eps if group["eps"][0] is None else least
            step = max(smallest, _rms(p)) * min(lr, count**-0.5)
            if group["weight_decay"] != 0:
                p.mul_(1 - lr * group["weight_decay"])
            keep = 1 - count ** group["beta2_decay"]
            update = self._variance(state, grad, keep, least).clamp_(min=least * least).rsqrt_().mul_(grad)
            p.add_(update, alpha=-step / max(1.0, _rms(update) / group["d"]))
