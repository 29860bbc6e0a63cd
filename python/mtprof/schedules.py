# SPDX-License-Identifier: Apache-2.0
"""Schedules: which steps of a loop are recorded."""
import operator
from collections.abc import Callable

from mtprof import _mtprof
from mtprof._warnings import warn
from mtprof.enums import ProfilerAction

_ACTIONS = tuple(ProfilerAction)


class ScheduleError(ValueError, AssertionError):
    """A schedule's numbers are out of their bounds, or a step is."""


class _Schedule:
    """A cycle of steps; called with a step's number it answers with its action."""

    def __init__(self, numbers: tuple[int, ...]) -> None:
        self._numbers = numbers

    def __call__(self, step: int) -> ProfilerAction:
        if not hasattr(step, "__index__"):
            raise ScheduleError(f"Step must be an integer. Got {step!r}.")
        if step < 0:
            raise ScheduleError(f"Step must be non-negative. Got {step}.")
        return _ACTIONS[_mtprof.schedule_action(self._numbers, step)]

    def __repr__(self) -> str:
        names = ("wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait")
        return "schedule(" + ", ".join(f"{n}={v}" for n, v in zip(names, self._numbers)) + ")"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Schedule) and self._numbers == other._numbers

    def __hash__(self) -> int:
        return hash(self._numbers)


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0,
             skip_first_wait: int = 0) -> Callable[[int], ProfilerAction]:
    """A callable for profile(schedule=...): skip, wait, warm up, record, and so on.

    After `skip_first` steps cycles of `wait` idle, `warmup` warming and `active` recorded steps follow,
    `repeat` of them (0: without end). `skip_first_wait` other than 0 leaves out the first wait.
    """
    given = {"wait": wait, "warmup": warmup, "active": active, "repeat": repeat, "skip_first": skip_first,
             "skip_first_wait": skip_first_wait}
    numbers = []
    for name, value in given.items():
        try:
            numbers.append(operator.index(value))
        except TypeError:
            raise ScheduleError(f"Invalid profiler schedule arguments. Got {name}={value!r} "
                                f"(need an integer).") from None
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise ScheduleError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0).")
    try:
        _mtprof.schedule_check(tuple(numbers))
    except (ValueError, OverflowError) as error:
        raise ScheduleError(f"Invalid profiler schedule arguments. {error}") from None
    if warmup == 0:
        warn("Profiler won't be using warmup, this can skew profiler results")
    return _Schedule(tuple(numbers))


def record_always(_: int) -> ProfilerAction:
    """Every step is recorded."""
    return ProfilerAction.RECORD
