# SPDX-License-Identifier: Apache-2.0
"""schedule() from Python: actions, bounds, warnings, exception classes (torch-contract 1.5)."""
import copy
import pickle
import unittest
import warnings

import mtprof
from mtprof import ProfilerAction, ScheduleError, schedule

LETTERS = dict(zip(ProfilerAction, "nwrS"))


def quiet(**numbers):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return schedule(**numbers)


def text(steps, **numbers):
    plan = quiet(**numbers)
    return "".join(LETTERS[plan(step)] for step in range(steps))


def by_the_book(step, wait, warmup, active, repeat, skip_first, skip_first_wait):
    """torch-contract 1.5.5 in so many words."""
    if step < skip_first:
        return "n"
    step -= skip_first
    if skip_first_wait != 0:
        step += wait
    length = wait + warmup + active
    if repeat > 0 and step // length >= repeat:
        return "n"
    place = step % length
    if place < wait:
        return "n"
    if place < wait + warmup:
        return "w"
    return "S" if place == length - 1 else "r"


class Actions(unittest.TestCase):
    def test_golden_sequences(self):
        self.assertEqual(text(14, wait=1, warmup=1, active=2, repeat=2), "nwrSnwrSnnnnnn")
        self.assertEqual(text(14, wait=2, warmup=1, active=1, skip_first=3), "nnnnnwSnnwSnnw")
        self.assertEqual(text(14, wait=3, warmup=1, active=1, skip_first=2, skip_first_wait=1, repeat=2),
                         "nnwSnnnwSnnnnn")
        self.assertEqual(text(6, wait=0, warmup=0, active=2), "rSrSrS")

    def test_every_small_schedule(self):
        for n in range(4 ** 5 * 2):
            values = [n // 4 ** i % 4 for i in range(5)] + [n // 4 ** 5]
            if values[2] == 0:
                continue
            names = ("wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait")
            got = text(13, **dict(zip(names, values)))
            self.assertEqual(got, "".join(by_the_book(step, *values) for step in range(13)), values)

    def test_far_steps(self):
        plan = quiet(wait=1, warmup=1, active=1)
        self.assertIs(plan(3 * 10 ** 17 + 2), ProfilerAction.RECORD_AND_SAVE)

    def test_members(self):
        self.assertEqual([(a.name, a.value) for a in ProfilerAction],
                         [("NONE", 0), ("WARMUP", 1), ("RECORD", 2), ("RECORD_AND_SAVE", 3)])


class Refusals(unittest.TestCase):
    def test_bounds_name_every_value(self):
        for name, value in (("wait", -1), ("warmup", -2), ("active", 0), ("active", -1), ("repeat", -1),
                            ("skip_first", -7)):
            numbers = {"wait": 1, "warmup": 1, "active": 1, name: value}
            with self.assertRaises(ScheduleError) as caught:
                schedule(**numbers)
            said = str(caught.exception)
            self.assertTrue(said.startswith("Invalid profiler schedule arguments."), said)
            for part in ("wait=", "warmup=", "active=", "repeat=", "skip_first=", f"{name}={value}"):
                self.assertIn(part, said)

    def test_error_is_both(self):
        for kind in (ValueError, AssertionError):
            with self.assertRaises(kind):
                schedule(wait=-1, warmup=0, active=0)
            with self.assertRaises(kind):
                quiet(wait=1, warmup=1, active=1)(-1)

    def test_negative_step(self):
        with self.assertRaisesRegex(AssertionError, r"Step must be non-negative\. Got -3\."):
            quiet(wait=1, warmup=1, active=1)(-3)

    def test_not_integers(self):
        for value in (1.5, "2", None):
            with self.assertRaisesRegex(ScheduleError, "wait"):
                schedule(wait=value, warmup=1, active=1)

    def test_too_large(self):
        with self.assertRaises(ScheduleError):
            schedule(wait=2 ** 70, warmup=1, active=1)

    def test_keyword_only(self):
        with self.assertRaises(TypeError):
            schedule(1, 1, 1)
        with self.assertRaises(TypeError):
            schedule(wait=1, warmup=1)
        with self.assertRaises(TypeError):
            schedule(wait=1, warmup=1, active=1, other=1)


class Warning_(unittest.TestCase):
    def test_no_warmup_points_here(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            schedule(wait=1, warmup=0, active=1)
        self.assertEqual([str(w.message) for w in caught],
                         ["Profiler won't be using warmup, this can skew profiler results"])
        self.assertIs(caught[0].category, UserWarning)
        self.assertEqual(caught[0].filename, __file__)

    def test_silent_otherwise(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            schedule(wait=0, warmup=1, active=1)


class AsObject(unittest.TestCase):
    def test_numpy_like_integers(self):
        class Index:
            def __init__(self, n):
                self.n = n

            def __index__(self):
                return self.n

            def __lt__(self, other):
                return self.n < other

            def __le__(self, other):
                return self.n <= other

            def __eq__(self, other):
                return self.n == other
        plan = schedule(wait=Index(1), warmup=Index(1), active=Index(1))
        self.assertIs(plan(2), ProfilerAction.RECORD_AND_SAVE)

    def test_equal_copies(self):
        plan = quiet(wait=1, warmup=2, active=3)
        for other in (copy.copy(plan), copy.deepcopy(plan), pickle.loads(pickle.dumps(plan))):
            self.assertEqual(other, plan)
            self.assertEqual(hash(other), hash(plan))
        self.assertNotEqual(plan, quiet(wait=1, warmup=2, active=4))
        self.assertIn("wait=1", repr(plan))

    def test_used_by_two_profilers(self):
        plan = quiet(wait=0, warmup=1, active=1, repeat=1)
        for _ in range(2):
            calls = []
            with mtprof.profile(schedule=plan, on_trace_ready=calls.append) as prof:
                for _ in range(3):
                    prof.step()
            self.assertEqual(calls, [prof])


if __name__ == "__main__":
    unittest.main()
