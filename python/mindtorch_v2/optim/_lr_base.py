# SPDX-License-Identifier: Apache-2.0
"""What all learning rate schedulers have in common; see lr_scheduler.py."""

import contextlib
import functools
import warnings

import mindtorch_v2 as torch

from .optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. "
    "Please use `scheduler.step()` to step the scheduler. During the deprecation, if epoch is different "
    "from None, the closed form is used instead of the new chainable form, where available. Please open an "
    "issue if you are unable to replicate your use case: "
    "https://github.com/pytorch/pytorch/issues/new/choose."
)

_HOW_TO = "See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"

_NO_INITIAL_LR = (
    "param 'initial_lr' is not specified in param_groups[{}] when resuming scheduler with last_epoch >= 0.\n"
    "This typically happens when:\n"
    "1. You're trying to resume training from a checkpoint but haven't properly loaded the optimizer state\n"
    "2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
)


def _is_tensor(value):
    return isinstance(value, torch.Tensor)


def _copied(value):
    """A rate that later changes of the group's do not change."""
    return value.clone() if _is_tensor(value) else value


def _set(group, key, value):
    """group[key] = value; a tensor keeps its identity."""
    if _is_tensor(group[key]):
        group[key].fill_(float(value))
    else:
        group[key] = float(value) if _is_tensor(value) else value


def _rates(optimizer):
    return [_copied(group["lr"]) for group in optimizer.param_groups]


def _check_optimizer(optimizer):
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def _one_each(name, value, optimizer):
    """An option that may be given once or for each group: a list of it."""
    groups = len(optimizer.param_groups)
    if isinstance(value, (list, tuple)):
        if len(value) != groups:
            raise ValueError(
                f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} "
                f"values, param_groups has {groups}."
            )
        return list(value)
    return [value] * groups


def _watch_steps(optimizer):
    """From here on optimizer._opt_called says whether step() was called; see profile_hook_step."""
    optimizer._opt_called = False
    if getattr(optimizer.step, "hooked", False):
        return
    step = optimizer.step  # it was replaced on the instance

    @functools.wraps(step)
    def watched(*args, **kwargs):
        optimizer._opt_called = True
        return step(*args, **kwargs)

    watched.hooked = True
    optimizer.step = watched


def _advice(optimizer):
    """The warning for a scheduler's second step if its optimizer made none: a text, or None."""
    if not getattr(optimizer.step, "hooked", False):
        return (
            "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
            "initialization. Please, make sure to call `optimizer.step()` before "
            "`lr_scheduler.step()`. " + _HOW_TO
        )
    if not getattr(optimizer, "_opt_called", False):
        return (
            "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and "
            "later, you should call them in the opposite order: `optimizer.step()` before "
            "`lr_scheduler.step()`.  Failure to do this will result in PyTorch skipping the first "
            "value of the learning rate schedule. " + _HOW_TO
        )
    return None


@contextlib.contextmanager
def _marked(scheduler, mark):
    """While it lasts, the scheduler's attribute `mark` is True."""
    setattr(scheduler, mark, True)
    try:
        yield
    finally:
        setattr(scheduler, mark, False)


class LRScheduler:
    """Sets the learning rates of an optimizer's groups once at its start and at each step().

    A scheduler is a place, last_epoch, and a rule, get_lr(), which computes the rates of that place
    from the current ones. A class whose rates do not depend on those of the epoch before has a
    second rule, _get_closed_form_lr(), for calls that name the epoch. Both marks below are part of
    torch's state_dict(), and users' rules read them.
    """

    _is_initial = False  # the first step is being made
    _get_lr_called_within_step = False  # a rule is asked by the scheduler itself

    def __init__(self, optimizer, last_epoch=-1):
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        fresh = last_epoch == -1
        for i, group in enumerate(optimizer.param_groups):
            if fresh:
                group.setdefault("initial_lr", _copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(_NO_INITIAL_LR.format(i))
        self.base_lrs = [_copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        _watch_steps(optimizer)
        self._start()

    def _start(self):
        """The first step, which sets the rates of the epoch to begin with."""
        self._step_count = 0
        with _marked(self, "_is_initial"):
            self.step()

    def state_dict(self):
        """All attributes but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict):
        """Takes over what state_dict() of such a scheduler gave."""
        self.__dict__.update(state_dict)

    def get_last_lr(self):
        """The rates that were set last, one for each group."""
        return self._last_lr

    def get_lr(self):
        """The rates of the present epoch, from those of the one before."""
        raise NotImplementedError

    def _warn_outside_step(self):
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def step(self, epoch=None):
        """Goes on by one epoch, or to the epoch named."""
        self._step_count += 1
        advice = _advice(self.optimizer) if self._step_count == 2 else None
        if advice is not None:
            warnings.warn(advice, UserWarning, stacklevel=2)
        if epoch is None:
            self._go_to(self.last_epoch + 1, self.get_lr)
        else:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
            self._jump_to(epoch)

    def _jump_to(self, epoch):
        """To an epoch from anywhere: by the second rule, where there is one."""
        self._go_to(epoch, getattr(self, "_get_closed_form_lr", self.get_lr))

    def _go_to(self, epoch, rule):
        """To an epoch, with the rates that a rule gives there."""
        self.last_epoch = epoch
        with _marked(self, "_get_lr_called_within_step"):
            rates = rule()
        for group, rate in zip(self.optimizer.param_groups, rates):
            _set(group, "lr", rate)
        self._last_lr = _rates(self.optimizer)


_LRScheduler = LRScheduler
