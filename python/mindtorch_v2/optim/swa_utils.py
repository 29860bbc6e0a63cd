# SPDX-License-Identifier: Apache-2.0
"""Averages of weights: stochastic weight averaging (SWA) and exponential moving averages (EMA)."""

import math
from copy import deepcopy
from itertools import chain

import mindtorch_v2 as torch

from ..nn import Module
from ..nn.modules.batchnorm import _BatchNorm
from ._lr_base import LRScheduler, _one_each

__all__ = [
    "AveragedModel",
    "SWALR",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _check_decay(decay):
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_multi_avg_fn(decay=0.999):
    """A function of (averages, parameters, number) that moves each average by 1 - decay of the way."""
    _check_decay(decay)

    @torch.no_grad()
    def ema_update(ema_param_list, current_param_list, _):
        for average, current in zip(ema_param_list, current_param_list):
            if average.is_floating_point():
                average.lerp_(current, 1 - decay)
            else:
                average.copy_(average * decay + current * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn():
    """A function of (averages, parameters, number) that makes means of all parameters so far."""

    @torch.no_grad()
    def swa_update(averaged_param_list, current_param_list, num_averaged):
        for average, current in zip(averaged_param_list, current_param_list):
            average.copy_(average + (current - average) / (num_averaged + 1))  # also where it is an integer

    return swa_update


def get_ema_avg_fn(decay=0.999):
    """A function of (average, parameter, number) that gives the average moved by 1 - decay of the way."""
    _check_decay(decay)

    @torch.no_grad()
    def ema_update(ema_param, current_param, num_averaged):
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn():
    """A function of (average, parameter, number) that gives the mean of all parameters so far."""

    @torch.no_grad()
    def swa_update(averaged_param, current_param, num_averaged):
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's, taken by update_parameters().

    avg_fn(average, parameter, number) gives a new average; multi_avg_fn(averages, parameters, number)
    changes the averages of all parameters. use_buffers averages buffers too; otherwise they are copied.
    """

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", torch.tensor(0, dtype=torch.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs):
        """What the averaged model gives."""
        return self.module(*args, **kwargs)

    def _averaged(self, model):
        return chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters()

    def update_parameters(self, model):
        """Takes the model's present parameters into the averages."""
        averages = [t.detach() for t in self._averaged(self.module)]
        others = self._averaged(model)
        currents = [t.detach().to(a.device) for a, t in zip(averages, others)]
        with torch.no_grad():
            self._average(averages, currents)
            if not self.use_buffers:
                for mine, its in zip(self.module.buffers(), model.buffers()):
                    mine.copy_(its.to(mine.device))
            self.n_averaged.add_(1)

    def _average(self, averages, currents):
        count = self.n_averaged
        if count.item() == 0:
            for average, current in zip(averages, currents):
                average.copy_(current)
        elif self.multi_avg_fn is not None:
            self.multi_avg_fn(averages, currents, count)
        elif self.avg_fn is None:
            get_swa_multi_avg_fn()(averages, currents, count)
        else:
            for average, current in zip(averages, currents):
                average.copy_(self.avg_fn(average, current, count.to(average.device)))


@torch.no_grad()
def update_bn(loader, model, device=None):
    """Computes the statistics of a model's batch norms anew, from one pass over `loader`."""
    momenta = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None
    for batch in loader:
        if isinstance(batch, (list, tuple)):
            batch = batch[0]
        model(batch if device is None else batch.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


_PASSED = {"cos": lambda t: (1 - math.cos(math.pi * t)) / 2, "linear": lambda t: t}


class SWALR(LRScheduler):
    """From the present rates to swa_lr in anneal_epochs epochs, then constant."""

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        for group, rate in zip(optimizer.param_groups, _one_each("swa_lr", swa_lr, optimizer)):
            group["swa_lr"] = rate
        if anneal_strategy not in _PASSED:
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step):
        """How much of the way has passed."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return _PASSED[self._anneal_strategy](t)

    def get_lr(self):
        """The rate that the annealing started from is that which leads to the present one."""
        self._warn_outside_step()
        step = self.last_epoch
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            end, lr = group["swa_lr"], group["lr"]
            start = lr if before == 1 else (lr - before * end) / (1 - before)
            rates.append(end * now + start * (1 - now))
        return rates
