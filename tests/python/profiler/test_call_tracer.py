# SPDX-License-Identifier: Apache-2.0
"""Every Python call as a span (_ExperimentalConfig(verbose=True)), and garbage collections."""
import cProfile
import gc
import json
import os
import pstats
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import mtprof._mtprof as _mtprof  # noqa: E402
from mtprof import modules, profile, record_function, schedule  # noqa: E402
from mtprof.profiler import _ExperimentalConfig  # noqa: E402
from support_asan import UNDER_ASAN  # noqa: E402


def leaf(x):
    return len([x])


def branch(x):
    return leaf(x) + leaf(x)


def counter():
    yield leaf(1)
    yield leaf(2)


def raises():
    raise KeyError("x")


class Trace:
    """The python_function spans of a trace, as a tree."""

    def __init__(self, prof):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            prof.export_chrome_trace(path)
            with open(path, encoding="utf-8") as file:
                self.events = json.load(file)["traceEvents"]
        self.spans = [e for e in self.events if e.get("cat") == "python_function"]
        self.by_id = {e["args"]["Python id"]: e for e in self.spans if "Python id" in e["args"]}

    def names(self, tid=None):
        return [short(e["name"]) for e in sorted(self.spans, key=lambda e: (e["ts"], -e["dur"]))
                if tid is None or e["tid"] == tid]

    def find(self, name):
        return [e for e in self.spans if short(e["name"]) == name]

    def parent(self, span):
        number = span["args"]["Python parent id"]
        return self.by_id[number] if number is not None else None

    def chain(self, span):
        names = []
        while span is not None:
            names.append(short(span["name"]))
            span = self.parent(span)
        return names

    def check(self, test):
        """Ids are unique, parents are there, and spans nest on their track."""
        test.assertEqual(len(self.by_id), sum("Python id" in e["args"] for e in self.spans))
        for span in self.spans:
            test.assertNotIn("sampled", span["args"])
            above = self.parent(span) if "Python id" in span["args"] else None
            if above is not None:
                test.assertEqual(above["tid"], span["tid"])
                test.assertLessEqual(above["ts"], span["ts"] + 1e-3)
                test.assertGreaterEqual(above["ts"] + above["dur"], span["ts"] + span["dur"] - 2e-3)


def short(name):
    """"path/file.py(12): function" -> "function"."""
    return name.split(": ", 1)[1] if "): " in name else name


VERBOSE = _ExperimentalConfig(verbose=True)


def traced(function, **arguments):
    with profile(with_stack=True, experimental_config=VERBOSE, **arguments) as prof:
        function()
    return prof


class Calls(unittest.TestCase):
    def tearDown(self):
        self.assertIsNone(sys.getprofile())
        self.assertIsNone(threading.getprofile())

    def test_names_and_nesting(self):
        trace = Trace(traced(lambda: branch(1)))
        trace.check(self)
        self.assertEqual(len(trace.find("leaf")), 2)
        self.assertEqual(len(trace.find("branch")), 1)
        lens = trace.find("<built-in function len>")
        self.assertEqual(len(lens), 2)
        self.assertEqual(trace.chain(lens[0])[:4], ["<built-in function len>", "leaf", "branch", "<lambda>"])
        name = trace.find("leaf")[0]["name"]
        self.assertEqual(name, f"test_call_tracer.py({leaf.__code__.co_firstlineno}): leaf")

    def test_frames_that_are_open_at_the_start(self):
        def inside():
            prof = traced(lambda: branch(1))
            return Trace(prof)
        trace = inside()
        span = trace.find("branch")[0]
        chain = trace.chain(span)
        self.assertEqual(chain[1:4], ["<lambda>", "traced", "inside"])
        self.assertEqual(chain[-1], "<module>")
        outermost = trace.spans[[short(e["name"]) for e in trace.spans].index("<module>")]
        self.assertLessEqual(outermost["ts"], min(e["ts"] for e in trace.spans))

    def test_our_own_calls_are_left_out(self):
        def use():
            with record_function("mine"):
                leaf(1)
        prof = traced(use)
        names = Trace(prof).names()
        for name in ("__enter__", "__exit__", "start", "stop", "_opened",
                     "<built-in function stop_call_tracer>",
                     "<built-in method __enter__ of mtprof.record_function object>"):
            self.assertNotIn(name, names)
        self.assertFalse([n for n in names if "mtprof" in n], names)
        mine = next(e for e in prof.events() if e.name == "mine")
        self.assertIn("use", mine.stack[0])

    def test_generators_and_exceptions(self):
        def use():
            self.assertEqual(list(counter()), [1, 1])
            made = counter()
            next(made)
            made.close()
            for _ in range(2):
                try:
                    raises()
                except KeyError:
                    pass
            try:
                int("x")
            except ValueError:
                pass
            leaf("after")
        trace = Trace(traced(use))
        trace.check(self)
        self.assertGreaterEqual(len(trace.find("counter")), 4)  # each time it runs
        self.assertEqual(len(trace.find("raises")), 2)
        for span in trace.find("leaf")[:2]:
            self.assertEqual(trace.chain(span)[1], "counter")
        self.assertEqual(trace.chain(trace.find("leaf")[-1])[1], "use")
        self.assertEqual(trace.chain(trace.find("raises")[-1])[1], "use")

    def test_built_in_methods(self):
        def use():
            items = []
            items.append(1)
            "a".upper()
            dict.fromkeys("ab")
            try:
                [].pop()
            except IndexError:
                pass
            sorted([2, 1], key=leaf)
        trace = Trace(traced(use))
        trace.check(self)
        names = trace.names()
        for name in ("<built-in method append of list object>", "<built-in method upper of str object>",
                     "<built-in method fromkeys of type object>", "<built-in method pop of list object>",
                     "<built-in function sorted>"):
            self.assertIn(name, names)
        self.assertEqual(trace.chain(trace.find("leaf")[0])[1], "<built-in function sorted>")

    def test_ops_and_scopes_lie_inside(self):
        def use():
            with record_function("mine"):
                leaf(1)
        trace = Trace(traced(use))
        mine = next(e for e in trace.events if e.get("name") == "mine" and e["ph"] == "X")
        around, inside = trace.find("use")[0], trace.find("leaf")[0]
        self.assertLessEqual(around["ts"], mine["ts"])
        self.assertGreaterEqual(around["ts"] + around["dur"], mine["ts"] + mine["dur"])
        self.assertLessEqual(mine["ts"], inside["ts"])
        self.assertGreaterEqual(mine["ts"] + mine["dur"], inside["ts"] + inside["dur"] - 1e-3)

    def test_functions_are_events(self):
        """As torch has them since 2.12: in events(), distinguished by is_python_function."""
        def use():
            with record_function("mine"):
                leaf(1)
        events = traced(use).events()
        kinds = {short(e.name): e.is_python_function for e in events}
        self.assertIs(kinds["leaf"], True)
        self.assertIs(kinds["<built-in function len>"], True)
        self.assertIs(kinds["mine"], False)

    def test_health(self):
        health = traced(lambda: branch(1)).health()
        self.assertEqual((health.lost, health.truncated, health.stacks_missed), (0, 0, 0))

    def test_modules(self):
        class Layer:
            def __call__(self):
                return self.forward()

            def forward(self):
                return leaf(1)
        modules.set_module_call(Layer.__call__)
        one, two = Layer(), Layer()

        def use():
            two()
            one()
            two()
        trace = Trace(traced(use))
        spans = [e for e in trace.spans if e["name"].startswith("nn.Module: ")]
        spans.sort(key=lambda e: e["ts"])
        self.assertEqual([e["name"] for e in spans],
                         ["nn.Module: Layer_0", "nn.Module: Layer_1", "nn.Module: Layer_0"])
        self.assertEqual([e["args"]["Python module id"] for e in spans], [0, 1, 0])
        self.assertEqual(trace.chain(trace.find("leaf")[0])[:4],
                         ["leaf", "forward", "nn.Module: Layer_0", "use"])

    def test_off_without_verbose_or_stacks(self):
        with profile(with_stack=True) as prof:
            with record_function("x"):
                leaf(1)
        self.assertTrue(all(e["args"]["sampled"] == 1 for e in Trace(prof).spans))
        with profile(experimental_config=VERBOSE) as prof:
            leaf(1)
            with record_function("x"):
                pass
        self.assertEqual(Trace(prof).spans, [])

    def test_recursion_error(self):
        def forever():
            forever()

        def use():
            with self.assertRaises(RecursionError):
                forever()
            leaf("after")
        trace = Trace(traced(use))
        self.assertGreater(len(trace.find("forever")), 500)
        self.assertEqual(trace.chain(trace.find("leaf")[-1])[1], "use")

    def test_schedule(self):
        traces = []
        with profile(with_stack=True, experimental_config=VERBOSE, acc_events=True,
                     schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
                     on_trace_ready=lambda p: traces.append(Trace(p))) as prof:
            for i in range(8):
                branch(i)
                prof.step()
        self.assertEqual(len(traces), 2)
        for trace in traces:
            trace.check(self)
        self.assertEqual(len(traces[0].find("branch")), 2)  # only inside the windows
        self.assertEqual(prof.health().truncated, 0)
        chains = {tuple(traces[0].chain(span)) for span in traces[0].find("branch")}
        self.assertEqual({chain[-1] for chain in chains}, {"<module>"})

    def test_many_windows(self):
        for _ in range(50):
            prof = traced(lambda: branch(1))
        self.assertEqual(len(Trace(prof).find("leaf")), 2)


class Threads(unittest.TestCase):
    def test_threads_before_and_after(self):
        ready, go = threading.Event(), threading.Event()

        def early():
            ready.set()
            go.wait()
            branch("early")

        def late():
            branch("late")
        first = threading.Thread(target=early)
        first.start()
        ready.wait()

        def use():
            second = threading.Thread(target=late)
            second.start()
            second.join()
            go.set()
            first.join()
        prof = traced(use)
        trace = Trace(prof)
        trace.check(self)
        for name in ("early", "late"):
            span = trace.find(name)[0]
            inside = [s for s in trace.find("branch") if trace.parent(s) is span]
            self.assertEqual(len(inside), 1)
            self.assertEqual(trace.chain(span)[1], "run")
        self.assertEqual(len({s["tid"] for s in trace.find("branch")}), 2)
        self.assertEqual(prof.health().truncated, 0)

    def test_threads_that_outlive_the_window(self):
        stop, seen = threading.Event(), threading.Event()

        def busy():
            while not stop.is_set():
                branch(1)
                seen.set()
        threads = [threading.Thread(target=busy) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(5):
                with profile(with_stack=True, experimental_config=VERBOSE) as prof:
                    seen.clear()
                    seen.wait(10)
                # What is open when a window closes ends there, on every thread.
                self.assertEqual(prof.health().truncated, 0)
                self.assertEqual(prof.health().lost, 0)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertIsNone(sys.getprofile())
        Trace(prof).check(self)

    def test_another_thread_stops_it(self):
        prof = profile(with_stack=True, experimental_config=VERBOSE)
        prof.start()
        branch(1)
        thread = threading.Thread(target=prof.stop)
        thread.start()
        thread.join()
        self.assertIsNone(sys.getprofile())
        self.assertEqual(len(Trace(prof).find("branch")), 1)


class Others(unittest.TestCase):
    """Who had a profile function before has it again afterwards."""

    def test_sys_setprofile(self):
        calls = []

        def mine(frame, event, argument):
            calls.append(event)
        sys.setprofile(mine)
        try:
            traced(lambda: branch(1))
            self.assertIs(sys.getprofile(), mine)
            calls.clear()
            leaf(1)
            self.assertIn("call", calls)
        finally:
            sys.setprofile(None)

    def test_threading_setprofile(self):
        def mine(frame, event, argument):
            pass
        threading.setprofile(mine)
        try:
            traced(lambda: branch(1))
            self.assertIs(threading.getprofile(), mine)
        finally:
            threading.setprofile(None)

    def test_replaced_meanwhile(self):
        def mine(frame, event, argument):
            pass

        def use():
            branch(1)
            sys.setprofile(mine)
            threading.setprofile(mine)
            branch(2)
        try:
            trace = Trace(traced(use))
            self.assertIs(sys.getprofile(), mine)
            self.assertIs(threading.getprofile(), mine)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        self.assertEqual(len(trace.find("branch")), 1)

    def test_cprofile_around(self):
        outer = cProfile.Profile()
        outer.enable()
        traced(lambda: branch(1))
        branch(2)
        outer.disable()
        functions = {key[2]: value[0] for key, value in pstats.Stats(outer).stats.items()}
        # Up to 3.11 there is one profile function a thread: the first call was ours. From 3.12 on cProfile
        # is independent of it (sys.monitoring) and sees both.
        self.assertEqual(functions.get("branch"), 2 if sys.version_info >= (3, 12) else 1)

    def test_with_calls(self):
        """The public name of the tracer: the same events as with_stack and verbose."""
        def work():
            branch(1)
        with profile(with_calls=True) as prof:
            work()
        def names(prof):
            return [event.name for event in prof.events()]
        self.assertEqual(names(prof)[-6:], names(traced(work))[-6:])
        self.assertIn("<built-in function len>", names(prof))
        self.assertEqual((prof.with_calls, prof.with_stack), (True, True))
        self.assertTrue(traced(work).with_calls)
        self.assertFalse(profile(with_stack=True).with_calls)
        self.assertFalse(profile(experimental_config=VERBOSE).with_calls)

    def test_start_and_stop_by_hand(self):
        _mtprof.stop_call_tracer()
        _mtprof.start_call_tracer()
        _mtprof.start_call_tracer()
        branch(1)  # nothing records
        _mtprof.stop_call_tracer()
        _mtprof.stop_call_tracer()
        self.assertIsNone(sys.getprofile())
        with self.assertRaises(TypeError):
            _mtprof.trace_thread()
        with self.assertRaises(TypeError):
            _mtprof.trace_thread(1, 2, 3)

    def test_reference_counts(self):
        _mtprof.release_code()  # what the tests before this one have left
        gc.collect()
        before = sys.getrefcount(leaf.__code__), sys.getrefcount(len), sys.getrefcount(None)
        for _ in range(20):
            prof = traced(lambda: branch(1))
        del prof
        _mtprof.release_code()
        gc.collect()
        after = sys.getrefcount(leaf.__code__), sys.getrefcount(len)
        self.assertEqual(after, before[:2])
        self.assertLess(abs(sys.getrefcount(None) - before[2]), 100)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    @unittest.skipIf(UNDER_ASAN, "a fork in a process with threads may find AddressSanitizer's allocator locked")
    def test_fork_while_tracing(self):
        """The child has no hook, and a profile of its own works."""
        def use():
            branch(1)
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    branch(2)
                    own = Trace(traced(lambda: branch(3)))
                    own.check(self)
                    status = 0 if len(own.find("branch")) == 1 and sys.getprofile() is None else 2
                finally:
                    os._exit(status)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
        trace = Trace(traced(use))
        trace.check(self)
        self.assertEqual(len(trace.find("branch")), 1)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    @unittest.skipIf(UNDER_ASAN, "a fork in a process with threads may find AddressSanitizer's allocator locked")
    def test_child_ends_without_tracers(self):
        """The interpreter of a child ends with no tracer of its parent's in it, and quietly."""
        script = textwrap.dedent("""
            import gc, os, sys, threading
            from mtprof import profile
            from mtprof.profiler import _ExperimentalConfig
            sys.setprofile(lambda frame, event, argument: None)  # what the program had before
            mine = sys.getprofile()
            prof = profile(with_stack=True, experimental_config=_ExperimentalConfig(verbose=True,
                           record_python_gc_info=True))
            prof.start()
            child = os.fork()
            if child == 0:
                print(sys.getprofile() is mine, threading.getprofile(), gc.callbacks, flush=True)
                sys.exit(3)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            prof.stop()
        """)
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
        done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", script], capture_output=True, text=True,
                              env=environment, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "True None []\n3\n", ""))

    def test_interpreter_ends_while_tracing(self):
        script = textwrap.dedent("""
            import threading, time
            from mtprof import profile
            from mtprof.profiler import _ExperimentalConfig
            prof = profile(with_stack=True, experimental_config=_ExperimentalConfig(verbose=True,
                           record_python_gc_info=True))
            prof.start()
            def busy():
                while True:
                    len([])
            threading.Thread(target=busy, daemon=True).start()
            time.sleep(0.02)
            print("done")
        """)
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
        done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", script], capture_output=True,
                              text=True, env=environment, timeout=120, check=False)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "done"), done.stderr)


class Collections(unittest.TestCase):
    CONFIG = _ExperimentalConfig(record_python_gc_info=True)

    def test_a_profile_that_is_freed_cannot_end_them(self):
        """What stopping raises is told, and the profile is freed once."""
        told = []
        hook, callbacks = sys.unraisablehook, gc.callbacks
        prof = profile(experimental_config=self.CONFIG)
        prof.start()
        sys.unraisablehook = lambda about: told.append((about.exc_type, about.object))
        gc.callbacks = None
        try:
            kind = type(prof)
            del prof
        finally:
            sys.unraisablehook, gc.callbacks = hook, callbacks
            callbacks.clear()
        self.assertEqual(told, [(TypeError, kind)])

    def test_spans(self):
        with profile(with_stack=True, experimental_config=self.CONFIG) as prof:
            with record_function("before"):
                gc.collect()
            gc.collect()
        trace = Trace(prof)
        spans = trace.find("Python GC")
        self.assertEqual(len(spans), 2)
        before = next(e for e in trace.events if e.get("name") == "before" and e["ph"] == "X")
        self.assertLessEqual(before["ts"], spans[0]["ts"])
        self.assertGreaterEqual(before["ts"] + before["dur"] + 1e-3, spans[0]["ts"] + spans[0]["dur"])
        for span in spans:
            self.assertGreater(span["dur"], 0)
            self.assertNotIn("Python id", span["args"])
        # A collection does not mean that calls were traced: frames are rebuilt all the same.
        rebuilt = [e for e in trace.spans if e["args"].get("sampled") == 1]
        self.assertIn("Collections.test_spans", [short(e["name"]) for e in rebuilt])

    def test_off(self):
        with profile(with_stack=True) as prof:
            with record_function("x"):
                gc.collect()
        self.assertEqual(Trace(prof).find("Python GC"), [])

    def test_with_traced_calls(self):
        config = _ExperimentalConfig(verbose=True, record_python_gc_info=True)
        with profile(with_stack=True, experimental_config=config) as prof:
            gc.collect()
            branch(1)
        trace = Trace(prof)
        trace.check(self)
        collect = trace.find("<built-in function collect>")[0]
        span = trace.find("Python GC")[0]
        self.assertLessEqual(collect["ts"], span["ts"])
        self.assertGreaterEqual(collect["ts"] + collect["dur"], span["ts"] + span["dur"])
        self.assertEqual(trace.chain(trace.find("branch")[0])[1], "test_with_traced_calls")

    def test_callbacks_are_taken_back(self):
        before = list(gc.callbacks)
        with profile(with_stack=True, experimental_config=self.CONFIG):
            self.assertEqual(len(gc.callbacks), len(before) + 1)
        self.assertEqual(gc.callbacks, before)
        _mtprof.stop_gc_spans()
        _mtprof.start_gc_spans()
        _mtprof.start_gc_spans()
        self.assertEqual(len(gc.callbacks), len(before) + 1)
        gc.callbacks.clear()
        _mtprof.stop_gc_spans()  # the list was emptied
        gc.callbacks[:] = before

    def test_callback_with_odd_arguments(self):
        _mtprof.gc_collection()
        _mtprof.gc_collection(3)
        _mtprof.gc_collection("stop", {})
        _mtprof.gc_collection("start", {})
        _mtprof.gc_collection("stop", {})


if __name__ == "__main__":
    unittest.main()
