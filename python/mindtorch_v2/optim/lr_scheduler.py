# SPDX-License-Identifier: Apache-2.0
"""Learning rate schedulers.

Most of them are curves: a rate is a function of the epoch, given in two ways. _next() computes it
from the rate of the epoch before, so that several schedulers can act on one optimizer; _at() from
the initial rate, for calls that name the epoch. Both are functions of their arguments and the
options alone. The state of a scheduler is its attributes, under torch's names.
"""

import math
import types
from collections import Counter

from ._lr_base import EPOCH_DEPRECATION_WARNING, LRScheduler, _check_optimizer, _LRScheduler  # noqa: F401
from ._lr_combine import ChainedScheduler, ReduceLROnPlateau, SequentialLR
from ._lr_cycle import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]


class _Lambdas(LRScheduler):
    """One function for each group. Functions are not part of the state, callable objects are."""

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        _check_optimizer(optimizer)
        groups = len(optimizer.param_groups)
        several = isinstance(lr_lambda, (list, tuple))
        if several and len(lr_lambda) != groups:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(lr_lambda)}")
        self.lr_lambdas = list(lr_lambda) if several else [lr_lambda] * groups
        self._check_lambdas()
        super().__init__(optimizer, last_epoch)

    def _check_lambdas(self):
        pass

    def state_dict(self):
        def attributes(fn):
            return None if isinstance(fn, types.FunctionType) else fn.__dict__.copy()

        state = super().state_dict()
        del state["lr_lambdas"]  # to the end
        return {**state, "lr_lambdas": [attributes(fn) for fn in self.lr_lambdas]}

    def load_state_dict(self, state_dict):
        saved = dict(state_dict)
        for fn, attributes in zip(self.lr_lambdas, saved.pop("lr_lambdas")):
            if attributes is not None:
                fn.__dict__.update(attributes)
        super().load_state_dict(saved)


class LambdaLR(_Lambdas):
    """initial rate * lr_lambda(epoch)."""

    def get_lr(self):
        self._warn_outside_step()
        return [base * fn(self.last_epoch) for fn, base in zip(self.lr_lambdas, self.base_lrs)]


class MultiplicativeLR(_Lambdas):
    """rate * lr_lambda(epoch), from the first step on."""

    def _check_lambdas(self):
        for fn in self.lr_lambdas:
            if not callable(fn):
                raise TypeError(f"lr_lambda should be a function, but got {type(fn).__name__}")

    def get_lr(self):
        self._warn_outside_step()
        rates = [group["lr"] for group in self.optimizer.param_groups]
        if self._is_initial:
            return rates
        return [rate * fn(self.last_epoch) for fn, rate in zip(self.lr_lambdas, rates)]


class _Curve(LRScheduler):
    """A rate that is a function of the epoch: see the module's text."""

    _rests_from = 0  # the scheduler's first step sets nothing if it is at this epoch or a later one

    def _next(self, epoch, lr, base):
        raise NotImplementedError

    def _at(self, epoch, base):
        raise NotImplementedError

    def get_lr(self):
        self._warn_outside_step()
        epoch, groups = self.last_epoch, self.optimizer.param_groups
        if self._is_initial and epoch >= self._rests_from:
            return [group["lr"] for group in groups]
        return [self._next(epoch, group["lr"], base) for group, base in zip(groups, self.base_lrs)]

    def _get_closed_form_lr(self):
        return [self._at(self.last_epoch, base) for base in self.base_lrs]


class StepLR(_Curve):
    """Times gamma every step_size epochs."""

    _rests_from = math.inf

    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1):
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _next(self, epoch, lr, base):
        falls = epoch != 0 and epoch % self.step_size == 0
        return lr * self.gamma if falls else lr

    def _at(self, epoch, base):
        return base * self.gamma ** (epoch // self.step_size)


class MultiStepLR(_Curve):
    """Times gamma at each milestone."""

    _rests_from = math.inf

    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1):
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _next(self, epoch, lr, base):
        times = self.milestones.get(epoch, 0)
        return lr * self.gamma**times if times else lr

    def _at(self, epoch, base):
        passed = sum(times for milestone, times in self.milestones.items() if milestone <= epoch)
        return base * self.gamma**passed


class ConstantLR(_Curve):
    """Times factor for the first total_iters epochs."""

    _rests_from = math.inf

    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1):
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _next(self, epoch, lr, base):
        if epoch == 0:
            return lr * self.factor
        return lr * (1.0 / self.factor) if epoch == self.total_iters else lr

    def _at(self, epoch, base):
        return base * self.factor if epoch < self.total_iters else base


class LinearLR(_Curve):
    """A factor that goes from start_factor to end_factor in total_iters epochs."""

    _rests_from = 1

    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5, last_epoch=-1):
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal to 1."
            )
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _next(self, epoch, lr, base):
        if epoch == 0:
            return lr * self.start_factor
        if epoch > self.total_iters:
            return lr
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (epoch - 1) * rise
        return lr * (1.0 + rise / before)

    def _at(self, epoch, base):
        rise = self.end_factor - self.start_factor
        return base * (self.start_factor + rise * min(self.total_iters, epoch) / self.total_iters)


class ExponentialLR(_Curve):
    """Times gamma every epoch."""

    def __init__(self, optimizer, gamma, last_epoch=-1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _next(self, epoch, lr, base):
        return lr * self.gamma

    def _at(self, epoch, base):
        return base * self.gamma**epoch


class PolynomialLR(_Curve):
    """initial rate * (1 - epoch / total_iters) ** power, then 0."""

    def __init__(self, optimizer, total_iters=5, power=1.0, last_epoch=-1):
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _left(self, epoch):
        return 1.0 - epoch / self.total_iters

    def _next(self, epoch, lr, base):
        if epoch > self.total_iters:
            return lr
        return lr * (self._left(epoch) / self._left(epoch - 1)) ** self.power

    def _at(self, epoch, base):
        return base * self._left(min(self.total_iters, epoch)) ** self.power


class CosineAnnealingLR(_Curve):
    """Half a cosine from the initial rate to eta_min in T_max epochs, and back."""

    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1):
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def _height(self, epoch):
        """From 2 at the initial rate to 0 at eta_min."""
        return 1 + math.cos(math.pi * epoch / self.T_max)

    def _next(self, epoch, lr, base):
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # The rate before is eta_min: no quotient of heights leads away from it.
            return lr + (base - self.eta_min) * (1 - math.cos(math.pi / self.T_max)) / 2
        return self._height(epoch) / self._height(epoch - 1) * (lr - self.eta_min) + self.eta_min

    def _at(self, epoch, base):
        return self.eta_min + (base - self.eta_min) * self._height(epoch) / 2
