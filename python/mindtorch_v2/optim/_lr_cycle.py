# SPDX-License-Identifier: Apache-2.0
"""Schedulers that go up and down: cosine with restarts, one cycle, many cycles; see lr_scheduler.py."""

import math
import types
from bisect import bisect_left

from ._lr_base import LRScheduler, _check_optimizer, _one_each, _set


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine over T_0 epochs, then over T_0 * T_mult, and so on."""

    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1):
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._warn_outside_step()
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    def _enter(self, epoch):
        """Where in which period an epoch is."""
        length, inside = self.T_0, epoch
        if self.T_mult == 1:
            inside %= length
        while inside >= length:
            inside -= length
            length *= self.T_mult
        self.T_i, self.T_cur = length, inside

    def _go_on(self):
        """To the next epoch, from wherever in an epoch we are."""
        self.T_cur += 1
        if self.T_cur >= self.T_i:
            self.T_cur %= self.T_i
            self.T_i *= self.T_mult

    def step(self, epoch=None):
        """Goes on by one epoch, or to the epoch named, which may have a fraction."""
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self._go_on()
        else:
            epoch = 0 if epoch is None else epoch
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self._enter(epoch)
        self._go_to(math.floor(epoch), self.get_lr)


class _Momentum:
    """Where an optimizer keeps its momentum: "momentum", or the first of "betas"."""

    @staticmethod
    def start(scheduler, base_momentum, max_momentum, last_epoch):
        """The momentums of each group, (bases, tops), which a new cycle gives to the groups."""
        optimizer = scheduler.optimizer
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        scheduler.use_beta1 = "betas" in optimizer.defaults
        tops = _one_each("max_momentum", max_momentum, optimizer)
        bases = _one_each("base_momentum", base_momentum, optimizer)
        for group, top, base in zip(optimizer.param_groups, tops, bases) if last_epoch == -1 else ():
            _Momentum.set(scheduler, group, top)
            group["max_momentum"] = top
            group["base_momentum"] = base
        return bases, tops

    @staticmethod
    def set(scheduler, group, value):
        if scheduler.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


_BETWEEN = {  # a value on the way from a to b, of which the share s has passed
    "cos": lambda a, b, s: b + (a - b) / 2.0 * (math.cos(math.pi * s) + 1),
    "linear": lambda a, b, s: (b - a) * s + a,
}


class OneCycleLR(LRScheduler):
    """Up to max_lr and down far below the start, in one cycle of total_steps."""

    def __init__(
        self,
        optimizer,
        max_lr,
        total_steps=None,
        epochs=None,
        steps_per_epoch=None,
        pct_start=0.3,
        anneal_strategy="cos",
        cycle_momentum=True,
        base_momentum=0.85,
        max_momentum=0.95,
        div_factor=25.0,
        final_div_factor=1e4,
        three_phase=False,
        last_epoch=-1,
    ):
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = self._count_steps(total_steps, epochs, steps_per_epoch)
        self._schedule_phases = self._plan(pct_start, three_phase)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in _BETWEEN:
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_func_type = anneal_strategy
        max_lrs = _one_each("max_lr", max_lr, optimizer)
        if last_epoch == -1:
            for group, top in zip(optimizer.param_groups, max_lrs):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            _Momentum.start(self, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _count_steps(total_steps, epochs, steps_per_epoch):
        def positive(name, value):
            if value <= 0 or not isinstance(value, int):
                raise ValueError(f"Expected positive integer {name}, but got {value}")
            return value

        if total_steps is not None:
            return positive("total_steps", total_steps)
        if epochs is None or steps_per_epoch is None:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        return positive("epochs", epochs) * positive("steps_per_epoch", steps_per_epoch)

    def _plan(self, pct_start, three_phase):
        """Phases: where each ends, and the options of a group that it goes from and to."""
        total = self.total_steps
        rows = [(float(pct_start * total) - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")]
        if three_phase:
            turned = float(2 * pct_start * total) - 2
            rows += [
                (turned, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
                (total - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
            ]
        else:
            rows += [(total - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
        return [dict(zip(names, row)) for row in rows]

    def _place(self, step):
        """The phase of a step, and how much of it has passed."""
        phases = self._schedule_phases
        ends = [phase["end_step"] for phase in phases]
        i = min(bisect_left(ends, step), len(ends) - 1)
        start = ends[i - 1] if i else 0.0
        return phases[i], (step - start) / (ends[i] - start)

    def get_lr(self):
        self._warn_outside_step()
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"Tried to step {self.last_epoch} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        phase, passed = self._place(self.last_epoch)
        between = _BETWEEN[self._anneal_func_type]
        groups = self.optimizer.param_groups
        for group in groups if self.cycle_momentum else ():
            from_, to = group[phase["start_momentum"]], group[phase["end_momentum"]]
            _Momentum.set(self, group, between(from_, to, passed))
        return [between(group[phase["start_lr"]], group[phase["end_lr"]], passed) for group in groups]


class CyclicLR(LRScheduler):
    """Up from base_lr to max_lr and down again, over and over."""

    def __init__(
        self,
        optimizer,
        base_lr,
        max_lr,
        step_size_up=2000,
        step_size_down=None,
        mode="triangular",
        gamma=1.0,
        scale_fn=None,
        scale_mode="cycle",
        cycle_momentum=True,
        base_momentum=0.8,
        max_momentum=0.9,
        last_epoch=-1,
    ):
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = _one_each("base_lr", base_lr, optimizer)
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, base_lrs):
                _set(group, "lr", lr)
        self.max_lrs = _one_each("max_lr", max_lr, optimizer)
        up = float(step_size_up)
        down = up if step_size_down is None else float(step_size_down)
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None or mode != "exp_range" else "iterations"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            momentums = _Momentum.start(self, base_momentum, max_momentum, last_epoch)
            self.base_momentums, self.max_momentums = momentums
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x):
        """What the height of a cycle is multiplied by: x is its number, or that of the epoch."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        if self.mode == "triangular2":
            return 1 / (2.0 ** (x - 1))
        return self.gamma**x

    def _height(self):
        """How far up from base to top a cycle is, and what its height is multiplied by."""
        passed = 1.0 + self.last_epoch / self.total_size
        cycle = math.floor(passed)
        x, turn = passed - cycle, self.step_ratio
        height = x / turn if x <= turn else (x - 1) / (turn - 1)
        return height, self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)

    def get_lr(self):
        self._warn_outside_step()
        height, scale = self._height()
        if self.cycle_momentum:
            ranges = zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums)
            for group, base, top in ranges:
                _Momentum.set(self, group, top - (top - base) * height * scale)
        return [base + (top - base) * height * scale for base, top in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self):
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_scale_fn_custom")}
        fn = self._scale_fn_custom
        plain = fn is None or isinstance(fn, types.FunctionType)
        state["_scale_fn_custom"] = None if plain else fn.__dict__.copy()
        return state

    def load_state_dict(self, state_dict):
        state = dict(state_dict)
        attributes = state.pop("_scale_fn_custom", None)
        self.__dict__.update(state)
        if attributes is not None:
            self._scale_fn_custom.__dict__.update(attributes)
