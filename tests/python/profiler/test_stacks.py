# SPDX-License-Identifier: Apache-2.0
"""Python stacks of scopes and ops: what they say, against the interpreter's own frames."""
import asyncio
import contextlib
import functools
import gc
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import types
import unittest
import weakref

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import mtprof  # noqa: E402
import mtprof._mtprof as _mtprof  # noqa: E402
from mtprof import profile, record_function  # noqa: E402
from support_asan import UNDER_ASAN  # noqa: E402
from support_stacks import Marks, expected_stack, stacks_by_name  # noqa: E402


class Contents(unittest.TestCase):
    """Each case marks places; their stacks must be the interpreter's."""

    def setUp(self):
        self.mark = Marks()

    def record(self, function, *arguments):
        with profile(with_stack=True) as prof:
            function(*arguments)
        self.mark.check(self, prof)
        self.assertEqual(prof.health().stacks_missed, 0)
        return prof

    def test_form(self):
        def outer():
            with record_function("form"):
                return expected_stack(sys._getframe())[0]
        with profile(with_stack=True) as prof:
            first = outer()
        stack = stacks_by_name(prof)["form"]
        here = os.path.abspath(__file__)
        self.assertRegex(stack[0], r"^.*test_stacks\.py\(\d+\): Contents\.test_form\.<locals>\.outer$")
        self.assertTrue(stack[0].startswith(__file__) or stack[0].startswith(here))
        line = int(stack[0].split("(")[1].split(")")[0])
        self.assertEqual(line, int(first.split("(")[1].split(")")[0]) - 1)
        self.assertIn("Contents.test_form", stack[1])
        self.assertNotIn("outer", stack[1])

    def test_lines_move_on(self):
        def lines():
            self.mark("a")
            self.mark("b")
            for _ in range(3):
                self.mark("c")
            self.mark("d"), self.mark("e")
        self.record(lines)

    def test_one_call_site_from_many_callers(self):
        def leaf():
            self.mark("leaf")

        def one():
            leaf()

        def two():
            one()
            leaf()

        def all_of_them():
            for _ in range(4):
                one()
                two()
                leaf()
        self.record(all_of_them)

    def test_recursion(self):
        def fall(n):
            self.mark("down")
            if n > 0:
                fall(n - 1)
            self.mark("up")
        self.record(fall, 30)

    def test_methods_lambdas_comprehensions(self):
        class Thing:
            def __init__(thing):
                self.mark("init")

            def __enter__(thing):
                self.mark("enter")

            def __exit__(thing, *arguments):
                self.mark("exit")

            @property
            def value(thing):
                self.mark("property")

            @classmethod
            def make(cls):
                self.mark("classmethod")
                return cls()

        def use():
            with Thing.make() as _:
                pass
            Thing().value
            (lambda: self.mark("lambda"))()
            [self.mark("list") for _ in range(2)]
            list(self.mark("generator") for _ in range(2))
            {self.mark("dict"): 1 for _ in range(1)}

            class Body:
                self.mark("class body")
        self.record(use)

    def test_called_by_c(self):
        def use():
            sorted([2, 1], key=lambda x: self.mark("key") or x)
            list(map(lambda x: self.mark("map"), [1, 2]))
            functools.reduce(lambda a, b: self.mark("reduce"), [1, 2, 3])
            functools.partial(self.mark, "partial")()
        self.record(use)

    def test_exceptions(self):
        def use():
            try:
                raise ValueError
            except ValueError:
                self.mark("handler")
            finally:
                self.mark("finally")
            self.mark("after")
        self.record(use)

    def test_generators(self):
        def inner():
            self.mark("inner 1")
            yield 1
            self.mark("inner 2")

        def outer():
            self.mark("outer")
            yield from inner()
            self.mark("outer end")

        def use():
            made = outer()
            next(made)
            self.mark("between")
            list(made)

        def close():
            def guarded():
                try:
                    yield 1
                finally:
                    self.mark("closing")
            made = guarded()
            next(made)
            made.close()

            def thrown():
                try:
                    yield 1
                except KeyError:
                    self.mark("thrown into")
                    yield 2
            made = thrown()
            next(made)
            made.throw(KeyError)
        self.record(use)
        self.mark = Marks()
        self.record(close)

    def test_two_threads_resume_one_generator(self):
        def made():
            while True:
                self.mark("in turn")
                yield

        def use():
            generator = made()
            next(generator)
            thread = threading.Thread(target=lambda: next(generator))
            thread.start()
            thread.join()
            next(generator)
        self.record(use)

    def test_coroutines(self):
        async def leaf(n):
            self.mark("leaf")
            await asyncio.sleep(0)
            self.mark("leaf again")

        async def numbers():
            for i in range(2):
                self.mark("async generator")
                yield i

        async def main():
            await asyncio.gather(*(leaf(n) for n in range(3)))
            async for _ in numbers():
                self.mark("async for")
        self.record(lambda: asyncio.run(main()))

    def test_context_managers_and_decorators(self):
        @contextlib.contextmanager
        def managed():
            self.mark("managed in")
            yield
            self.mark("managed out")

        def decorate(function):
            @functools.wraps(function)
            def wrapper(*arguments):
                self.mark("wrapper")
                return function(*arguments)
            return wrapper

        @decorate
        def decorated():
            self.mark("decorated")

        def use():
            with managed():
                decorated()
        self.record(use)

    def test_executed_code(self):
        space = {"mark": self.mark}

        def use():
            exec("mark('exec')\ndef made():\n    mark('in made')\nmade()", space)
            eval("mark('eval')", space)
            exec(compile("\n\n\nmark('compiled')", "a file that is not there.py", "exec"), space)
        prof = self.record(use)
        stacks = [e.stack[1] for e in prof.events() if e.name.startswith("compiled")]
        self.assertEqual(stacks, ["a file that is not there.py(4): <module>"])

    def test_code_without_lines(self):
        def plain():
            self.mark("no table")
        code = plain.__code__.replace(co_linetable=b"", co_filename="none.py")
        bare = types.FunctionType(code, globals(), "bare", None, plain.__closure__)
        with profile(with_stack=True) as prof:
            bare()
        stack = [e.stack for e in prof.events() if e.name.startswith("no table")][0]
        self.assertRegex(stack[1], r"^none\.py\(\d+\): .*plain$")

    def test_odd_names(self):
        odd = "naïve-\N{SNOWMAN}.py"
        space = {"mark": self.mark}
        self.record(lambda: exec(compile("mark('odd')", odd, "exec"), space))
        # A file name that is no text: its bytes are there, shown as U+FFFD.
        broken = os.fsdecode(b"dir/\xff\xfe.py")
        name = "\ud800 lone"
        with profile(with_stack=True) as prof:
            code = compile("with record_function('broken'): pass", broken, "exec")
            exec(code, {"record_function": record_function})
            code = compile("with record_function('lone'): pass", "x.py", "exec").replace(co_qualname=name)
            exec(code, {"record_function": record_function})
        stacks = stacks_by_name(prof)
        self.assertRegex(stacks["broken"][0], r"^dir/.*\.py\(1\): <module>$")
        self.assertIn("lone", stacks["lone"][0])

    def test_threads(self):
        def work(depth):
            if depth > 0:
                return work(depth - 1)
            for _ in range(5):
                self.mark("in a thread")

        def use():
            threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        lock = threading.Lock()
        plain = self.mark.__class__.__call__

        class Locked(Marks):
            def __call__(marks, name="mark"):
                with lock:
                    plain(marks, name)
        self.mark = Locked()
        self.record(use)

    def test_tracing_and_profiling_functions(self):
        def traced():
            self.mark("traced")

        def tracer(frame, event, argument):
            return tracer
        before = sys.gettrace()

        def use():
            sys.settrace(tracer)
            try:
                traced()
            finally:
                sys.settrace(before)
            sys.setprofile(lambda *arguments: None)
            try:
                traced()
            finally:
                sys.setprofile(None)
        self.record(use)

    def test_scopes_of_a_tracing_function(self):
        def tracer(frame, event, argument):
            if event == "call" and frame.f_code.co_name == "watched":
                self.mark("tracer")

        def watched():
            pass
        before = sys.gettrace()

        def use():
            sys.settrace(tracer)
            try:
                watched()
            finally:
                sys.settrace(before)
        self.record(use)

    def test_finalizers(self):
        class Dying:
            def __del__(dying):
                self.mark("del")

        def use():
            thing = Dying()
            del thing
            cycle = Dying()
            cycle.me = cycle
            del cycle
            gc.collect()
            weak = Dying()
            reference = weakref.ref(weak, lambda r: self.mark("weak"))
            del weak
            self.assertIsNone(reference())
        self.record(use)

    def test_signal_handlers_of_python(self):
        def use():
            before = signal.signal(signal.SIGUSR1, lambda *arguments: self.mark("handler"))
            try:
                os.kill(os.getpid(), signal.SIGUSR1)
                for _ in range(100):
                    pass
            finally:
                signal.signal(signal.SIGUSR1, before)
        self.record(use)

    def test_a_second_window_tells_the_same(self):
        def use():
            self.mark("again")
        for _ in range(3):
            self.mark = Marks()
            self.record(use)

    def test_schedule(self):
        kept = []
        with profile(with_stack=True, schedule=mtprof.schedule(wait=1, warmup=1, active=2, repeat=3),
                     on_trace_ready=lambda p: kept.append(stacks_by_name(p))) as prof:
            for _ in range(12):
                with record_function("work"):
                    pass
                prof.step()
        self.assertEqual(len(kept), 3)
        for stacks in kept:
            self.assertIn("Contents.test_schedule", stacks["work"][0])


class Ours(unittest.TestCase):
    def test_frames_of_the_packages_are_left_out(self):
        @record_function("decorated")
        def function():
            with mtprof.record_function("inside"):
                pass
        with profile(with_stack=True) as prof:
            function()
        package = os.path.dirname(os.path.abspath(mtprof.__file__))
        stacks = stacks_by_name(prof)
        self.assertLessEqual({"decorated", "inside"}, set(stacks))
        for stack in stacks.values():
            self.assertTrue(stack)
            for line in stack:
                self.assertFalse(line.startswith(package + "/"), line)
        self.assertIn("test_frames_of_the_packages", stacks["decorated"][0])

    def test_a_folder_of_ones_own(self):
        source = "def run(record_function):\n    with record_function('own'):\n        pass\n"
        space = {}
        exec(compile(source, "/nowhere/own/x.py", "exec"), space)
        _mtprof.add_own_path("/nowhere/own/")
        other = {}
        exec(compile(source, "/nowhere/owned/x.py", "exec"), other)
        with profile(with_stack=True) as prof:
            space["run"](record_function)
        self.assertIn("test_a_folder", stacks_by_name(prof)["own"][0])
        with profile(with_stack=True) as prof:
            other["run"](record_function)
        self.assertIn("/nowhere/owned/x.py(2): run", stacks_by_name(prof)["own"][0])

    def test_bad_paths(self):
        for bad in ("/nowhere/own", "", "relative"):
            with self.assertRaisesRegex(ValueError, "ends in '/'"):
                _mtprof.add_own_path(bad)
        with self.assertRaises(TypeError):
            _mtprof.add_own_path(3)
        with self.assertRaises(ValueError):
            _mtprof.add_own_path("/a\0b/")


class Lifetime(unittest.TestCase):
    """Code objects are held until results are let go, frames and what they hold never."""

    def run_code(self):
        """Runs code that only its recorded stack holds afterwards; returns a weak reference to it."""
        space = {"record_function": record_function}
        exec(compile("def made():\n    with record_function('made'):\n        pass\nmade()", "m.py", "exec"),
             space)
        return weakref.ref(space.pop("made").__code__)

    def test_frames_and_locals_are_not_kept(self):
        class Thing:
            pass

        def use():
            thing = Thing()
            with record_function("x"):
                pass
            return weakref.ref(thing)
        with profile(with_stack=True) as prof:
            gone = use()
            self.assertIsNone(gone())  # while it records
        prof.events()
        self.assertIsNone(gone())

    def test_code_lives_until_results_go(self):
        with profile(with_stack=True) as prof:
            reference = self.run_code()
            self.assertIsNotNone(reference())  # held: its address must stay its own
        self.assertEqual(stacks_by_name(prof)["made"][0], "m.py(2): made")
        del prof
        gc.collect()
        self.assertIsNone(reference())

    def test_code_lives_at_most_until_the_next_recording(self):
        with profile(with_stack=True) as prof:
            reference = self.run_code()
        with profile(with_stack=True) as second:
            with record_function("second"):
                pass
            for _ in range(1000):  # a pending call runs between two instructions
                if reference() is None:
                    break
            self.assertIsNone(reference())
        self.assertEqual(stacks_by_name(prof)["made"][0], "m.py(2): made")
        self.assertIn("test_code_lives_at_most", stacks_by_name(second)["second"][0])

    def test_release_while_recording(self):
        with profile(with_stack=True) as prof:
            for i in range(100):
                with record_function(f"r{i}"):
                    pass
                _mtprof.release_code()
        stacks = stacks_by_name(prof)
        for i in range(100):
            self.assertIn("test_release_while_recording", stacks[f"r{i}"][0])

    @unittest.skipIf(UNDER_ASAN, "addresses are not used again under AddressSanitizer")
    def test_an_address_that_is_used_again_gives_no_wrong_name(self):
        source = "def f_{0}():\n    with record_function('call {0}'):\n        pass\nf_{0}()"
        addresses = set()
        for recording in range(20):
            with profile(with_stack=True) as prof:
                for i in range(50):
                    space = {"record_function": record_function}
                    exec(compile(source.format(i), f"f{recording}.py", "exec"), space)
                    addresses.add(id(space[f"f_{i}"].__code__))
                    del space
                    if i % 10 == 9:
                        _mtprof.release_code()
            for name, stack in stacks_by_name(prof).items():
                i = name.split()[1]
                self.assertEqual(stack[0], f"f{recording}.py(2): f_{i}")
                self.assertEqual(stack[1], f"f{recording}.py(4): <module>")
        self.assertLess(len(addresses), 1000)  # some were used again, or this tests nothing

    def test_a_callback_of_dying_code_may_record(self):
        calls = []
        space = {"record_function": record_function}
        with profile(with_stack=True) as first:
            source = "def made():\n    with record_function('made'):\n        pass\nmade()"
            exec(compile(source, "m.py", "exec"), space)
            code = space.pop("made").__code__

            def dead(reference):
                with record_function("in the callback"):
                    calls.append(1)
            reference = weakref.ref(code, dead)
            del code
        with profile(with_stack=True) as prof:
            for _ in range(1000):
                with record_function("later"):
                    pass
                if calls:
                    break
        self.assertEqual(calls, [1])
        self.assertIsNone(reference())
        self.assertIn("in the callback", stacks_by_name(prof))
        self.assertIn("made", stacks_by_name(first))

    def test_counts_are_flat(self):
        def once():
            with profile(with_stack=True) as prof:
                with record_function("x"):
                    pass
            prof.events()
        once()
        before = None
        for i in range(500):
            once()
            if i == 100:
                gc.collect()
                before = sys.getallocatedblocks()
        gc.collect()
        self.assertLess(sys.getallocatedblocks() - before, 200)  # not one in each of 399 rounds
        _mtprof.release_code()
        state = _mtprof.stack_state()
        self.assertEqual((state["codes"], state["places"], state["aside"]), (0, 0, 0))

    def test_reference_counts_of_code(self):
        def counted():
            with record_function("x"):
                pass
        code = counted.__code__
        _mtprof.release_code()
        before = sys.getrefcount(code)
        with profile(with_stack=True) as prof:
            for _ in range(10):
                counted()
            self.assertEqual(sys.getrefcount(code), before + 1)
        del prof
        _mtprof.release_code()
        self.assertEqual(sys.getrefcount(code), before)


class Crash(unittest.TestCase):
    def test_stacks_survive_being_killed(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "killed.mtt")
            script = textwrap.dedent(f"""
                import os, signal
                from mtprof import profile, record_function
                def inner():
                    with record_function("killed"):
                        os.kill(os.getpid(), signal.SIGKILL)
                def outer():
                    inner()
                prof = profile(with_stack=True, path={path!r})
                prof.start()
                with record_function("whole"):
                    pass
                outer()
            """)
            name = os.path.join(folder, "victim.py")
            with open(name, "w", encoding="utf-8") as file:
                file.write(script)
            done = subprocess.run([sys.executable, name], check=False)
            self.assertEqual(done.returncode, -signal.SIGKILL)
            trace = mtprof.load(path)
            stacks = {e.name: e.stack for e in trace.events()}
            self.assertEqual(stacks["whole"], [f"{name}(11): <module>"])
            self.assertEqual(stacks["killed"],
                             [f"{name}(5): inner", f"{name}(8): outer", f"{name}(13): <module>"])


if __name__ == "__main__":
    unittest.main()
