# SPDX-License-Identifier: Apache-2.0
"""Timer: timeit with a warm-up, a number of threads, and runs that are long enough to be measured."""

import time
import timeit

import mindtorch_v2 as torch

from .measurement import Measurement, TaskSpec

timer = time.perf_counter


class Timer:
    """Measures a statement, as timeit.Timer does, with the given number of threads (1)."""

    def __init__(
        self,
        stmt="pass",
        setup="pass",
        global_setup="",
        timer=timer,
        globals=None,
        label=None,
        sub_label=None,
        description=None,
        env=None,
        num_threads=1,
        language="python",
    ):
        if str(getattr(language, "name", language)).lower() not in ("python", "py"):
            raise NotImplementedError(f"Timer: statements are Python, got language={language!r}")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved to `setup`."
            )
        self._globals = {"torch": torch, **(globals or {})}
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)
        self._timer = timeit.Timer(stmt, setup, timer=timer, globals=self._globals)

    def _measure(self, number):
        before = torch.get_num_threads()
        torch.set_num_threads(self._task_spec.num_threads)
        try:
            return self._timer.timeit(number)
        finally:
            torch.set_num_threads(before)

    def _made(self, number, times):
        return Measurement(number, times, self._task_spec)

    def timeit(self, number=1_000_000):
        """One run of `number` executions, after a short one."""
        self._measure(max(number // 100, 2))
        return self._made(number, [self._measure(number)])

    def repeat(self, repeat=-1, number=-1):
        """Not here, as in torch: blocked_autorange() repeats."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback=None):
        """Not here, as in torch: blocked_autorange() finds the number."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block_size(self, min_run_time):
        """How often the statement runs in a block, so that the clock costs little."""
        overhead = min(self._timer_cost() for _ in range(5))
        number = 1
        while True:
            taken = self._measure(number)
            if taken / number > 0 and overhead / max(taken, 1e-12) <= 1e-4 and taken >= min_run_time / 1000:
                return number
            if taken > min_run_time:
                return number
            number *= 10

    def _timer_cost(self):
        begin = time.perf_counter()
        time.perf_counter()
        return time.perf_counter() - begin

    def blocked_autorange(self, callback=None, min_run_time=0.2):
        """Blocks of executions until they took min_run_time seconds together."""
        number = self._block_size(min_run_time)
        times, total = [], 0.0
        while total < min_run_time or not times:
            times.append(self._measure(number))
            total += times[-1]
            if callback is not None:
                callback(number, times[-1])
        return self._made(number, times)

    def adaptive_autorange(self, threshold=0.1, *, min_run_time=0.01, max_run_time=10.0, callback=None):
        """Blocks until the middle half of the times is narrow enough, or max_run_time is over."""
        number = self._block_size(min_run_time)
        times, total = [], 0.0
        while total < max_run_time:
            times.append(self._measure(number))
            total += times[-1]
            if callback is not None:
                callback(number, times[-1])
            made = self._made(number, times)
            if total >= min_run_time and len(times) > 3 and made.meets_confidence(threshold):
                break
        return self._made(number, times)

    def collect_callgrind(self, *args, **kwargs):
        """Not here: it needs Valgrind around a build of torch."""
        raise NotImplementedError("Timer.collect_callgrind() is not there")
