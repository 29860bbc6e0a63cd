# SPDX-License-Identifier: Apache-2.0
"""Profiles and threads: everybody is recorded, anybody may stop, races never crash."""
import os
import random
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

import mtprof
from mtprof import ProfilerAction, profile, record_function

NONE, WARMUP, RECORD, SAVE = ProfilerAction


def scope(name):
    with record_function(name):
        pass


def run_all(*functions):
    """Calls functions on threads of their own, together; what one raises is raised here."""
    errors = []
    barrier = threading.Barrier(len(functions))

    def call(function):
        try:
            barrier.wait(20)
            function()
        except BaseException as error:
            errors.append(error)
    threads = [threading.Thread(target=call, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


class Recording(unittest.TestCase):
    def test_every_thread_from_its_first_event(self):
        go = threading.Event()

        def early():
            go.wait(20)
            scope("started before")
        thread = threading.Thread(target=early)
        thread.start()
        with profile() as prof:
            go.set()
            thread.join()
            run_all(*[lambda: scope("started inside")] * 3)
            scope("main")
        found = sorted(event.name for event in prof.events())
        self.assertEqual(found, ["main"] + ["started before"] + ["started inside"] * 3)
        self.assertEqual(len({event.thread for event in prof.events()}), 5)

    def test_many_threads_lose_nothing(self):
        def work():
            for _ in range(2000):
                with record_function("a"):
                    scope("b")
        with profile() as prof:
            run_all(*[work] * 6)
        rows = {row.key: row.count for row in prof.key_averages()}
        self.assertEqual(rows, {"a": 12000, "b": 12000})
        self.assertEqual(prof.health().lost, 0)

    def test_another_thread_stops(self):
        calls = []
        prof = profile(on_trace_ready=lambda p: calls.append(threading.get_ident()))
        prof.start()
        scope("x")
        run_all(prof.stop)
        self.assertEqual([event.name for event in prof.events()], ["x"])
        self.assertNotEqual(calls, [threading.get_ident()])

    def test_another_thread_steps(self):
        prof = profile(schedule=lambda step: RECORD)
        prof.start()
        run_all(prof.step)
        scope("x")
        run_all(prof.step)
        prof.stop()
        self.assertEqual(prof.step_num, 2)
        self.assertIn("x", [event.name for event in prof.events()])

    def test_stop_under_load(self):
        for _ in range(10):
            over = threading.Event()

            def work():
                while not over.is_set():
                    with record_function("a", key=1):
                        mtprof.counter("c", 1)
                        mtprof.end(mtprof.begin("b"))
            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()
            with profile() as prof:
                scope("main")
            over.set()
            for thread in threads:
                thread.join()
            self.assertIn("main", {event.name for event in prof.events()})


class Callbacks(unittest.TestCase):
    def test_others_are_turned_away_meanwhile(self):
        for with_stack in (False, True):  # with stacks some calls keep the interpreter's lock
            with self.subTest(with_stack=with_stack):
                self.check_turned_away(with_stack)

    def check_turned_away(self, with_stack):
        inside, over = threading.Event(), threading.Event()
        said = []

        def ready(prof):
            inside.set()
            over.wait(20)

        def other():
            inside.wait(20)
            for call in (prof.step, prof.stop, prof.start):
                try:
                    call()
                    said.append("allowed")
                except RuntimeError as error:
                    said.append(type(error).__name__)
            said.append(len(prof.events()))  # looking is allowed
            prof.add_metadata("a", "b")
            over.set()
        prof = profile(on_trace_ready=ready, with_stack=with_stack)
        prof.start()
        scope("x")
        run_all(prof.stop, other)
        self.assertEqual(said, ["RuntimeError"] * 3 + [1])

    def test_callback_waits_for_a_thread_that_wants_in(self):
        def ready(prof):
            def other():
                try:
                    prof.stop()
                except RuntimeError:
                    pass
            thread = threading.Thread(target=other)
            thread.start()
            thread.join(20)
            self.assertFalse(thread.is_alive())
        with profile(on_trace_ready=ready):
            scope("x")

    def test_exceptions_do_not_change_threads(self):
        class Mine(Exception):
            pass

        def ready(prof):
            raise Mine(threading.get_ident())
        caught = []

        def stop():
            try:
                prof.stop()
            except Mine as error:
                caught.append(error.args[0] == threading.get_ident())
        for _ in range(20):
            prof = profile(on_trace_ready=ready)
            prof.start()
            run_all(stop)
            with profile():
                pass
        self.assertEqual(caught, [True] * 20)


class Races(unittest.TestCase):
    def test_start_and_stop_from_everywhere(self):
        profs = [profile(on_trace_ready=lambda p: p.events()), profile(schedule=lambda s: SAVE),
                 profile(acc_events=True), profile(schedule=lambda s: SAVE, with_stack=True,
                                                   on_trace_ready=lambda p: p.key_averages())]
        seeds = random.Random(7)

        def work(seed):
            pick = random.Random(seed)
            for _ in range(150):
                prof = pick.choice(profs)
                call = pick.choice(("start", "stop", "step", "events", "prepare_trace", "start_trace",
                                    "stop_trace", "key_averages", "explain", "get_trace_id", "metadata", "toggle", "save"))
                try:
                    if call == "metadata":
                        prof.add_metadata("k", "v")
                    elif call == "toggle":
                        prof.toggle_collection_dynamic(pick.random() < 0.5, ["CPU"])
                    elif call == "save":
                        prof.save(os.path.join(folder, f"{seed}.mtt"))
                    else:
                        getattr(prof, call)()
                except (RuntimeError, AssertionError):
                    pass
                scope("x")
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
            run_all(*[lambda seed=seeds.random(): work(seed) for _ in range(4)])
            for prof in profs:
                try:
                    prof.stop()
                except (RuntimeError, AssertionError):
                    pass
        with profile() as prof:
            scope("after")
        self.assertEqual([event.name for event in prof.events()], ["after"])

    def test_results_while_another_window_opens(self):
        with warnings.catch_warnings(action="ignore"):
            prof = profile(schedule=lambda step: SAVE)
            prof.start()
            over = threading.Event()

            def read():
                while not over.is_set():
                    for event in prof.events():
                        self.assertIn(event.name, ("ProfilerStep*", "x"))

            def step():
                for _ in range(100):
                    scope("x")
                    prof.step()
                over.set()
            run_all(read, step)
            prof.stop()

    def test_random_calls(self):
        """Any order of calls on one thread: exceptions perhaps, never a crash, and never a stuck session."""
        for seed in range(60):
            pick = random.Random(seed)
            letters = [pick.choice(list(ProfilerAction)) for _ in range(40)]
            prof = profile(schedule=lambda step: letters[step % 40],
                           on_trace_ready=lambda p: p.key_averages(), acc_events=pick.random() < 0.3,
                           record_shapes=pick.random() < 0.5, with_stack=pick.random() < 0.3)
            open_scopes = []
            with warnings.catch_warnings(action="ignore"):
                for _ in range(60):
                    call = pick.choice(("start", "stop", "step", "step", "step", "events", "key_averages",
                                        "prepare_trace", "start_trace", "stop_trace", "enter", "exit",
                                        "explain", "health"))
                    try:
                        if call == "enter":
                            open_scopes.append(record_function("x").__enter__())
                        elif call == "exit" and open_scopes:
                            open_scopes.pop(pick.randrange(len(open_scopes))).__exit__(None, None, None)
                        elif call != "exit":
                            getattr(prof, call)()
                    except (RuntimeError, AssertionError):
                        pass
                del prof
                with profile() as after:
                    scope("y")
            self.assertIn("y", [event.name for event in after.events()], seed)


class EndedElsewhere(unittest.TestCase):
    """A scope that another thread ends is asynchronous, whatever slot of the recorder that thread has."""

    def ended_by(self, ender):
        with profile() as prof:
            tokens = []

            def begin():
                tokens.append(mtprof.begin("outer"))
                tokens.append(mtprof.begin("x"))
                scope("in x")
            self.run_thread(begin)

            def end():
                with record_function("y"):
                    mtprof.end(tokens[1])
                mtprof.end(tokens[0])
            ender(end)
        return {event.name: event for event in prof.events()}

    @staticmethod
    def run_thread(function):
        thread = threading.Thread(target=function)
        thread.start()
        thread.join()

    def test_a_later_thread_in_the_same_slot(self):
        for ender in (lambda end: end(), self.run_thread):
            events = self.ended_by(ender)
            self.assertEqual([name for name in ("outer", "x", "in x", "y") if events[name].is_async], ["outer", "x"])
            self.assertEqual(events["x"].self_cpu_time_total, 0)
            self.assertEqual(events["outer"].self_cpu_time_total, 0)
            self.assertEqual(events["in x"].cpu_parent.name, "x")
            self.assertIsNone(events["y"].cpu_parent)
            self.assertNotEqual(events["x"].thread, events["y"].thread)


class Exit(unittest.TestCase):
    def run_code(self, code):
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False,
                              timeout=60)

    def test_daemons_record_to_the_end(self):
        done = self.run_code(
            "import mtprof, threading\n"
            "def work():\n"
            "    while True:\n"
            "        with mtprof.record_function('x'): pass\n"
            "for _ in range(3): threading.Thread(target=work, daemon=True).start()\n"
            "p = mtprof.profile(with_stack=True)\n"
            "p.start()\n"
            "import time; time.sleep(0.05)\n")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_daemon_in_a_callback(self):
        done = self.run_code(
            "import mtprof, threading\n"
            "inside = threading.Event()\n"
            "def ready(p):\n"
            "    inside.set()\n"
            "    threading.Event().wait()\n"
            "p = mtprof.profile(on_trace_ready=ready)\n"
            "p.start()\n"
            "threading.Thread(target=p.stop, daemon=True).start()\n"
            "inside.wait()\n")
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
