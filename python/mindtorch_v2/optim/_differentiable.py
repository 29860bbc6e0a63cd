# SPDX-License-Identifier: Apache-2.0
"""Steps with differentiable=True: the methods written with ops that have derivatives.

The fused ops of the other steps have none. Each function gives what is added to the parameter and
keeps new state in `state`; nothing of the old state is written, so a graph may hold it.
"""

import math

import mindtorch_v2 as torch

from .nadam import momentum_of
from .optimizer import _trained


def _adagrad(p, g, state, group, count):
    state["sum"] = state["sum"] + g * g
    rate = group["lr"] / (1 + (count - 1) * group["lr_decay"])
    return -rate * g / (state["sum"].sqrt() + group["eps"])


def _averages(g, state, group):
    beta1, beta2 = group["betas"]
    state["exp_avg"] = state["exp_avg"] + (1 - beta1) * (g - state["exp_avg"])
    state["exp_avg_sq"] = beta2 * state["exp_avg_sq"] + (1 - beta2) * g * g
    return state["exp_avg"], state["exp_avg_sq"]


def _adam(p, g, state, group, count):
    beta1, beta2 = group["betas"]
    average, square = _averages(g, state, group)
    if group["amsgrad"]:
        square = state["max_exp_avg_sq"] = torch.maximum(state["max_exp_avg_sq"], square)
    root = square.sqrt() / (1 - beta2**count) ** 0.5 + group["eps"]
    return -(group["lr"] / (1 - beta1**count)) * average / root


def _nadam(p, g, state, group, count):
    beta1, beta2 = group["betas"]
    average, square = _averages(g, state, group)
    mu = momentum_of(beta1, group["momentum_decay"], count)
    following = momentum_of(beta1, group["momentum_decay"], count + 1)
    product = state["mu_product"] = state["mu_product"] * mu
    root = (square / (1 - beta2**count)).sqrt() + group["eps"]
    of_grad = group["lr"] * (1 - mu) / (1 - product)
    of_average = group["lr"] * following / (1 - product * following)
    return -(of_grad * g + of_average * average) / root


def _radam(p, g, state, group, count):
    beta1, beta2 = group["betas"]
    average, square = _averages(g, state, group)
    average = average / (1 - beta1**count)
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * count * beta2**count / (1 - beta2**count)
    if length <= 5.0:
        return -group["lr"] * average
    inside = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
    return -group["lr"] * average * inside**0.5 * (1 - beta2**count) ** 0.5 / (square.sqrt() + group["eps"])


def _adamax(p, g, state, group, count):
    beta1, beta2 = group["betas"]
    state["exp_avg"] = state["exp_avg"] + (1 - beta1) * (g - state["exp_avg"])
    state["exp_inf"] = torch.maximum(state["exp_inf"] * beta2, g.abs() + group["eps"])
    return -(group["lr"] / (1 - beta1**count)) * state["exp_avg"] / state["exp_inf"]


def _adadelta(p, g, state, group, count):
    rho, eps = group["rho"], group["eps"]
    state["square_avg"] = rho * state["square_avg"] + (1 - rho) * g * g
    delta = (state["acc_delta"] + eps).sqrt() / (state["square_avg"] + eps).sqrt() * g
    state["acc_delta"] = rho * state["acc_delta"] + (1 - rho) * delta * delta
    return -group["lr"] * delta


def _asgd(p, g, state, group, count):
    eta, mu = state["eta"].item(), state["mu"].item()
    move = -(group["lambd"] * eta) * p - eta * g
    state["ax"] = p + move if mu == 1 else state["ax"] + mu * (p + move - state["ax"])
    return move


def _rprop(p, g, state, group, count):
    smallest, largest = group["step_sizes"]
    turned = (g * state["prev"]).sign()
    factor = torch.where(turned > 0, group["etas"][1], torch.where(turned < 0, group["etas"][0], 1.0))
    state["step_size"] = (state["step_size"] * factor).clamp(smallest, largest)
    state["prev"] = torch.where(turned < 0, torch.zeros_like(g), g)
    return -state["prev"].sign() * state["step_size"]


def _rmsprop(p, g, state, group, count):
    alpha = group["alpha"]
    square = state["square_avg"] = alpha * state["square_avg"] + (1 - alpha) * g * g
    if group["centered"]:
        state["grad_avg"] = state["grad_avg"] + (1 - alpha) * (g - state["grad_avg"])
        square = square - state["grad_avg"] * state["grad_avg"]
    move = g / (square.sqrt() + group["eps"])
    if group["momentum"] > 0:
        move = state["momentum_buffer"] = group["momentum"] * state["momentum_buffer"] + move
    return -group["lr"] * move


def _sgd(p, g, state, group, count):
    momentum = group["momentum"]
    if momentum != 0:
        before = state.get("momentum_buffer")
        # As in torch, no gradient passes through the first one.
        buffer = g.detach().clone() if before is None else momentum * before + (1 - group["dampening"]) * g
        state["momentum_buffer"] = buffer
        g = g + momentum * buffer if group["nesterov"] else buffer
    return -group["lr"] * g


_METHODS = {
    "SGD": _sgd,
    "Adam": _adam,
    "AdamW": _adam,
    "RMSprop": _rmsprop,
    "Adagrad": _adagrad,
    "Adadelta": _adadelta,
    "Adamax": _adamax,
    "NAdam": _nadam,
    "RAdam": _radam,
    "ASGD": _asgd,
    "Rprop": _rprop,
}


def _method_of(optimizer):
    for cls in type(optimizer).__mro__:
        if cls.__name__ in _METHODS:
            return _METHODS[cls.__name__]
    raise NotImplementedError(f"differentiable=True: {type(optimizer).__name__} has no step with derivatives")


def step_group(optimizer, group):
    """One step of the parameters of a group that have a gradient, recorded for backward."""
    method = _method_of(optimizer)
    for p, grad in _trained(group):
        state = optimizer._state_of(p, group)
        count = math.nan
        if "step" in state:
            with torch.no_grad():
                state["step"].add_(1)
            count = state["step"].item()
        g = -grad if group["maximize"] else grad
        decay = group.get("weight_decay", 0)
        if group.get("decoupled_weight_decay"):
            p.mul_(1 - group["lr"] * decay)
        elif decay != 0:
            g = g + decay * p
        p.add_(method(p, g, state, group, count))
        if method is _asgd:
            optimizer._after(state, group, count)
