# SPDX-License-Identifier: Apache-2.0
"""Stacks and module paths of ops that begin on a Python thread without the GIL, as those of a host do that
releases it first: without_gil's functions are called so."""
import asyncio
import ctypes
import faulthandler
import os
import random
import sys
import textwrap
import threading
import time
import tracemalloc
import unittest
import weakref

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import mtprof._mtprof as _mtprof  # noqa: E402
from mtprof import modules, profile  # noqa: E402
from mtprof.profiler import _ExperimentalConfig  # noqa: E402
from support_asan import UNDER_ASAN  # noqa: E402
from support_stacks import (MAY_WAIT, expected_stack, op, run_script, scope, stacks_by_name,  # noqa: E402
                            without_gil)

NEEDS_GIL = _mtprof.stack_state()["frames"] == "public"
WHY_IT_NEEDS = "frames of the public API are objects: they need the GIL"
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Marks:
    """Ops without the GIL, and the stack that each should have. Every mark is made twice: the second time
    its frames are known."""

    def __init__(self):
        self.expected = {}
        self.lock = threading.Lock()

    def __call__(self, name="mark"):
        with self.lock:
            name = f"{name} {len(self.expected)}"
            self.expected[name] = expected_stack(sys._getframe())[1:]
        for _ in range(2):
            op(name, without_gil)

    def check(self, test, prof):
        count = 0
        for e in prof.events():
            if e.name in self.expected:
                count += 1
                test.assertIn("support_stacks.py", e.stack[0])
                test.assertIn("Marks.__call__", e.stack[1])
                test.assertEqual(e.stack[2:], self.expected[e.name], e.name)
        test.assertEqual(count, 2 * len(self.expected))
        test.assertGreater(count, 0)
        test.assertEqual(prof.health().stacks_missed, 0)


class Contents(unittest.TestCase):
    def record(self, function, *arguments, **options):
        mark = Marks()
        with profile(with_stack=True, **options) as prof:
            function(mark, *arguments)
        mark.check(self, prof)
        return prof

    def test_lines_and_callers(self):
        def leaf(mark):
            mark("leaf")

        def one(mark):
            leaf(mark)
            leaf(mark)

        def all_of_them(mark):
            for _ in range(3):
                one(mark)
                leaf(mark), leaf(mark)
        self.record(all_of_them)

    def test_recursion(self):
        def fall(mark, n):
            mark("down")
            if n > 0:
                fall(mark, n - 1)
            mark("up")
        self.record(fall, 40)

    def test_deep(self):
        """The arrays of a walk grow, and shrink again."""
        def fall(mark, n):
            return fall(mark, n - 1) if n else mark("deep")

        def use(mark):
            for depth in (1, 300, 5, 700, 699, 1):
                fall(mark, depth)
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(2000)
        try:
            self.record(use)
        finally:
            sys.setrecursionlimit(limit)

    def test_too_deep_is_counted(self):
        def fall(n):
            return fall(n - 1) if n else [scope("too deep", without_gil) for _ in range(3)]
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(25000)
        try:
            with profile(with_stack=True) as prof:
                fall(20000)
                scope("flat", without_gil)
        finally:
            sys.setrecursionlimit(limit)
        stacks = stacks_by_name(prof)
        self.assertFalse(stacks["too deep"])
        self.assertTrue(stacks["flat"])
        self.assertEqual(prof.health().stacks_missed, 3)

    def test_generators_and_coroutines(self):
        def inner(mark):
            mark("inner")
            yield 1
            mark("inner again")

        def outer(mark):
            yield from inner(mark)
            mark("outer")

        async def leaf(mark):
            mark("leaf")
            await asyncio.sleep(0)
            mark("leaf again")

        async def main(mark):
            await asyncio.gather(leaf(mark), leaf(mark))

        def use(mark):
            made = outer(mark)
            next(made)
            mark("between")
            thread = threading.Thread(target=lambda: list(made))  # resumed on another thread
            thread.start()
            thread.join()
            list(mark("expression") for _ in range(2))
            asyncio.run(main(mark))
        self.record(use)

    def test_exceptions(self):
        class Odd(Exception):
            pass

        def use(mark):
            try:
                raise Odd("mine")
            except Odd as odd:
                mark("handler")
                self.assertIs(sys.exc_info()[1], odd)
            finally:
                mark("finally")

            class Leaves:
                def __exit__(leaves, *arguments):
                    mark("exit")
                    return True

                def __enter__(leaves):
                    mark("enter")
            with Leaves():
                raise Odd
            mark("after")
        self.record(use)

    def test_called_by_c(self):
        def use(mark):
            sorted([2, 1], key=lambda x: mark("key") or x)
            list(map(lambda x: mark("map"), [1, 2]))

            class Dying:
                def __del__(dying):
                    mark("del")
            Dying()
            exec("mark('exec')\ndef made():\n    mark('in made')\nmade()", {"mark": mark})
        self.record(use)

    def test_threads(self):
        def work(mark, depth):
            if depth > 0:
                return work(mark, depth - 1)
            for _ in range(20):
                mark("in a thread")

        def use(mark):
            threads = [threading.Thread(target=work, args=(mark, n)) for n in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.record(use)

    def test_with_every_call_traced(self):
        def use(mark):
            mark("traced")
            thread = threading.Thread(target=mark, args=("in a new thread",))
            thread.start()
            thread.join()
        self.record(use, experimental_config=_ExperimentalConfig(verbose=True))

    def test_windows(self):
        for _ in range(3):
            self.record(lambda mark: mark("again"))

    def test_with_tracemalloc(self):
        """Its allocator hooks take the GIL."""
        tracemalloc.start()
        try:
            self.record(lambda mark: [mark("hooked") for _ in range(3)])
        finally:
            tracemalloc.stop()

    @unittest.skipIf(NEEDS_GIL, WHY_IT_NEEDS)
    def test_what_must_not_wait(self):
        """It may be in a signal handler: it has its stack where that is known, and never takes the GIL."""
        def both(name):
            for flags in (0, MAY_WAIT, 0):
                op(f"{name} {flags:#x}", without_gil, flags)
        with profile(with_stack=True) as prof:
            op("first", without_gil, 0)  # nothing is known of this recording
            for _ in range(2):
                both("x")
            thread = threading.Thread(target=op, args=("other", without_gil, 0))  # nor of this thread
            thread.start()
            thread.join()
        stacks = [(e.name, bool(e.stack)) for e in prof.events()]
        told = [("x 0x0", True), ("x 0x100", True), ("x 0x0", True)]
        self.assertEqual(stacks, [("first", False), ("x 0x0", False), *told[1:], *told, ("other", False)])
        self.assertEqual(prof.health().stacks_missed, 3)

    def test_frames_of_the_package_alone_are_no_stack(self):
        own = {"scope": scope, "library": without_gil}
        exec(compile("def run():\n    scope('own', library)", "/nowhere/nogil/x.py", "exec"), own)
        _mtprof.add_own_path("/nowhere/nogil/")
        with profile(with_stack=True) as prof:
            own["run"]()
        self.assertIn("support_stacks.py", stacks_by_name(prof)["own"][0])
        self.assertIn("test_frames_of_the_package", stacks_by_name(prof)["own"][1])


class Lifetime(unittest.TestCase):
    SOURCE = "def f_{0}():\n    op('call {0}', library)\n    op('call {0}', library)\nf_{0}()"

    def run_code(self, i, file="m.py"):
        space = {"op": op, "library": without_gil}
        exec(compile(self.SOURCE.format(i), file, "exec"), space)
        return space.pop(f"f_{i}").__code__

    def test_code_is_held_while_it_is_known(self):
        _mtprof.release_code()
        with profile(with_stack=True) as prof:
            reference = weakref.ref(self.run_code(1))
            self.assertIsNotNone(reference())
            _mtprof.release_code()
            self.assertIsNone(reference())
        self.assertEqual(stacks_by_name(prof)["call 1"][1], "m.py(3): f_1")

    @unittest.skipIf(UNDER_ASAN, "addresses are not used again under AddressSanitizer")
    def test_an_address_that_is_used_again_gives_no_wrong_name(self):
        addresses = set()
        for recording in range(10):
            with profile(with_stack=True) as prof:
                for i in range(50):
                    addresses.add(id(self.run_code(i, f"f{recording}.py")))
                    if i % 10 == 9:
                        _mtprof.release_code()
            for name, stack in stacks_by_name(prof).items():
                self.assertEqual(stack[1], f"f{recording}.py(3): f_{name.split()[1]}")
        self.assertLess(len(addresses), 500)  # some were used again, or this tests nothing

    def test_code_let_go_by_others(self):
        """A thread looks at its stack, again and again, while others let all code go."""
        stop = threading.Event()

        def let_go():
            while not stop.is_set():
                _mtprof.release_code()
        threads = [threading.Thread(target=let_go) for _ in range(2)]
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            with profile(with_stack=True) as prof:
                for thread in threads:
                    thread.start()
                for i in range(300):
                    self.run_code(i)
                stop.set()
                for thread in threads:
                    thread.join()
        finally:
            stop.set()
            sys.setswitchinterval(interval)
        self.assertEqual(prof.health().stacks_missed, 0)
        events = [e for e in prof.events() if e.name.startswith("call ")]
        self.assertEqual(len(events), 600)
        for e in events:
            self.assertIn(e.stack[1], [f"m.py({line}): f_{e.name.split()[1]}" for line in (2, 3)])


class Cost(unittest.TestCase):
    def look(self, of_path):
        """Looks at a known stack while another thread has the GIL and keeps it for 400 ms; returns how long that
        took, in milliseconds."""
        keep = ctypes.PyDLL(None).usleep  # with the GIL
        found = []

        class Asks(Layer):
            def forward(self):
                for rounds in (2, 50000):
                    found.append((rounds, *_mtprof.stack_cost(rounds, False, of_path)))
        thread = threading.Thread(target=Asks())
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1000)  # nobody has to give it up
        try:
            thread.start()
            while len(found) < 1:
                time.sleep(0)
            keep(400000)
        finally:
            sys.setswitchinterval(interval)
            thread.join()
        rounds, ns, told = found[1]
        self.assertEqual(told, rounds)
        return ns / 1e6

    @unittest.skipIf(NEEDS_GIL, WHY_IT_NEEDS)
    def test_what_is_known_needs_no_gil(self):
        modules.set_module_call(Layer.__call__)
        modules.set_paths_from_frames(True)
        self.addCleanup(modules.set_paths_from_frames, False)
        with profile(with_stack=True, with_modules=True):
            for of_path in (False, True):
                # 50,000 looks are 5 ms of work; the best of some, since this thread may have to wait for a core.
                self.assertLess(min(self.look(of_path) for _ in range(4)), 200)


class Layer:
    """A framework's module that reports nothing."""

    def __init__(self, **children):
        self._modules = children

    def __call__(self, *arguments):
        return self.forward(*arguments)

    def forward(self, *arguments):
        for child in self._modules.values():
            child(*arguments)
        if not self._modules:
            op("leaf", without_gil)


class List(Layer):
    def __init__(self, *children):
        super().__init__(**{str(i): child for i, child in enumerate(children)})

    def __iter__(self):
        return iter(self._modules.values())


class Block(Layer):
    pass


class Net(Layer):
    def forward(self, *arguments):
        for child in self._modules["h"]:
            child(*arguments)


class ModulesInFrames(unittest.TestCase):
    def setUp(self):
        modules.set_module_call(Layer.__call__)
        modules.set_paths_from_frames(True)
        self.addCleanup(modules.set_paths_from_frames, False)

    def paths(self, function, **options):
        with profile(with_modules=True, **options) as prof:
            function()
        return [e.module for e in prof.events() if e.name in ("leaf", "other")]

    def test_form(self):
        net = Net(h=List(Block(attn=Layer()), Block(mlp=Layer())))
        top = "TOP(Net)::forward."
        expected = [top + "h.0(Block)::forward.attn(Layer)::forward.",
                    top + "h.1(Block)::forward.mlp(Layer)::forward."]
        for stacks in (False, True):
            self.assertEqual(self.paths(net, with_stack=stacks), expected)

        def again():
            for _ in range(5):
                net()
        self.assertEqual(self.paths(again), expected * 5)

    def test_the_same_as_reported(self):
        class Reported(Layer):
            def __call__(self, *arguments):
                token = modules.enter(self)
                try:
                    return self.forward(*arguments)
                finally:
                    modules.leave(token)

        def build(kind):
            inner = type("Inner", (kind,), {})
            return type("Outer", (kind,), {})(a=inner(x=inner()), b=inner(), c=inner(y=inner(z=inner())))
        found = self.paths(build(Layer))
        modules.set_paths_from_frames(False)
        self.assertEqual(self.paths(build(Layer)), [""] * 3)
        self.assertEqual(self.paths(build(Reported)), found)
        modules.set_paths_from_frames(True)
        self.assertEqual(self.paths(build(Reported)), found)  # who reports is believed

    def test_outside_and_after(self):
        def use():
            op("other", without_gil)
            Block(a=Layer())()
            op("other", without_gil)
        self.assertEqual(self.paths(use), ["", "TOP(Block)::forward.a(Layer)::forward.", ""])

    def test_with_and_without_the_gil(self):
        class Both(Layer):
            def forward(self):
                op("other")
                op("other", without_gil)
                op("other")
        self.assertEqual(self.paths(Block(b=Both())), ["TOP(Block)::forward.b(Both)::forward."] * 3)

    def test_shared_and_recursive(self):
        shared = Layer()
        both = List(Block(left=shared), Block(right=shared))
        expected = ["TOP(List)::forward.0(Block)::forward.left(Layer)::forward.",
                    "TOP(List)::forward.1(Block)::forward.right(Layer)::forward."]
        self.assertEqual(self.paths(lambda: [both() for _ in range(4)]), expected * 4)

        class Self(Layer):
            def forward(self, n):
                return self(n - 1) if n else op("leaf", without_gil)
        made = Self()
        made._modules["me"] = made
        two = self.paths(lambda: made(2))
        self.assertEqual(two, ["TOP(Self)::forward.me(Self)::forward.me(Self)::forward."])
        deep = self.paths(lambda: made(200))[0]
        self.assertEqual(deep.count("(Self)"), 64)  # MP4 of module_path.c

    def test_exceptions(self):
        class Raises(Layer):
            def forward(self):
                try:
                    raise KeyError("mine")
                except KeyError:
                    op("leaf", without_gil)
                    raise

        def use():
            try:
                Block(r=Raises())()
            except KeyError:
                op("other", without_gil)
        self.assertEqual(self.paths(use), ["TOP(Block)::forward.r(Raises)::forward.", ""])

    def test_threads_have_their_own(self):
        net = List(*(type(f"Part{i}", (Layer,), {})() for i in range(4)))

        def use():
            threads = [threading.Thread(target=lambda part=part: [part() for _ in range(50)]) for part in net]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        seen = self.paths(use)
        self.assertEqual(sorted(seen), sorted([f"TOP(Part{i})::forward." for i in range(4)] * 50))

    def test_modules_that_come_and_go(self):
        def use():
            for i in range(200):
                name = "ab"[i % 2]
                type(f"Made{i % 3}", (Layer,), {})(**{name: Layer()})()
        expected = [f"TOP(Made{i % 3})::forward.{'ab'[i % 2]}(Layer)::forward." for i in range(200)]
        for stacks in (False, True):
            self.assertEqual(self.paths(use, with_stack=stacks), expected)

    def test_renamed_between_recordings(self):
        layer, net = Layer(), Block()
        for name in ("one", "two"):
            net._modules = {name: layer}
            self.assertEqual(self.paths(lambda: [net(), net()]),
                             [f"TOP(Block)::forward.{name}(Layer)::forward."] * 2)

    def test_modules_that_are_odd(self):
        class Slots:
            __slots__ = ("_modules",)
            __call__ = Layer.__call__
            forward = Layer.forward

            def __init__(self):
                self._modules = {}
        self.assertEqual(self.paths(Slots()), ["TOP(Slots)::forward."])  # cannot be held weakly

        class Hidden(Layer):
            def __getattribute__(self, name):
                if name == "_modules" and sys._getframe(1).f_code is not Layer.forward.__code__:
                    op("other")
                    raise RuntimeError("not yours")
                return super().__getattribute__(name)
        self.assertIn("TOP(Hidden)::forward.Layer(Layer)::forward.",
                      self.paths(Hidden(a=Layer())))

        class Forgets(Layer):
            def forward(self):
                Layer.__call__(self.keep) if hasattr(self, "keep") else op("leaf", without_gil)
        self.assertEqual(self.paths(Forgets()), ["TOP(Forgets)::forward."])

    def test_no_exception_is_lost_or_left(self):
        class Broken(Layer):
            @property
            def _modules(self):
                raise MemoryError("a property's own")

            @_modules.setter
            def _modules(self, value):
                pass

            def forward(self):
                Layer()()
        self.assertEqual(self.paths(Broken()), ["TOP(Broken)::forward.Layer(Layer)::forward."])

    def test_path_as_text(self):
        said = []

        class Says(Layer):
            def forward(self):
                said.append(modules.path())
        self.assertIsNone(modules.path())
        Block(s=Says())()
        self.assertEqual(said, ["TOP(Block)::forward.s(Says)::forward."])

    def test_frames_and_modules_are_not_kept(self):
        net = Block(a=Layer())
        gone = weakref.ref(net)
        with profile(with_modules=True, with_stack=True):
            net()
            del net
            self.assertIsNone(gone())

    def test_stacks_show_modules(self):
        net = Block(a=Layer(), b=Layer())
        with profile(with_stack=True) as prof:
            net()
            net()
        leaves = [e.stack for e in prof.events() if e.name == "leaf"]
        self.assertEqual(len(leaves), 4)
        for i, stack in enumerate(leaves):
            shown = [line for line in stack if line.startswith("nn.Module: ")]
            self.assertEqual(shown, [f"nn.Module: Layer_{i % 2}", "nn.Module: Block_0"])


class Stress(unittest.TestCase):
    def test_four_threads(self):
        """Ops with and without the GIL, made code, modules, code let go, recordings that come and go. What has
        a stack or a path has its own."""
        stop = threading.Event()
        interval = sys.getswitchinterval()
        modules.set_module_call(Layer.__call__)
        modules.set_paths_from_frames(True)
        source = textwrap.dedent("""
            def leaf_{0}(library):
                op("thread {0}", library)
            def run_{0}(dice):
                while not stop.is_set():
                    what = dice.random()
                    if what < 0.05:
                        release_code()
                    elif what < 0.1:
                        exec("def made():\\n op('thread {0}', library)\\nmade()", dict(op=op, library=libraries[0]))
                    else:
                        part(lambda: leaf_{0}(dice.choice(libraries)))
        """)
        threads = []
        for i in range(4):
            kind = type(f"Part{i}", (Layer,), {"forward": lambda self, function: function()})
            space = {"op": op, "stop": stop, "release_code": _mtprof.release_code, "part": kind(),
                     "libraries": [without_gil, without_gil, sys.modules["support_stacks"].with_gil]}
            exec(compile(source.format(i), f"thread{i}.py", "exec"), space)
            threads.append(threading.Thread(target=space[f"run_{i}"], args=(random.Random(i),)))
        kept = []
        sys.setswitchinterval(1e-5)
        try:
            for thread in threads:
                thread.start()
            for _ in range(40):
                with profile(with_stack=True, with_modules=True) as prof:
                    stop.wait(0.005)
                kept.append(prof)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
            sys.setswitchinterval(interval)
            modules.set_paths_from_frames(False)
        seen = 0
        for prof in kept:
            for e in prof.events():
                i = e.name.split()[1]
                if not e.stack:
                    continue
                seen += 1
                self.assertIn(f"run_{i}", " ".join(e.stack))
                if e.stack[1].endswith(f"leaf_{i}"):
                    self.assertIn("nn.Module: Part%s_0" % i, e.stack)
                    self.assertEqual(e.module, f"TOP(Part{i})::forward.")
        self.assertGreater(seen, 100)


class TheEnd(unittest.TestCase):
    def check(self, script, out="done"):
        done = run_script("import sys\nsys.path.insert(0, %r)\n" % TESTS + textwrap.dedent(script))
        self.assertEqual((done.returncode, done.stdout.strip()), (0, out), done.stderr[-2000:])

    def test_threads_record_while_python_ends(self):
        self.check("""
            import threading, time
            from mtprof import modules, profile
            from support_stacks import op, without_gil
            sys.setswitchinterval(1e-5)
            class Layer:
                def __call__(self):
                    op("bare", without_gil)
            modules.set_module_call(Layer.__call__)
            modules.set_paths_from_frames(True)
            prof = profile(with_stack=True, with_modules=True)
            prof.start()
            def busy(n):
                while True:
                    Layer()()
                    exec("op('made', library)", dict(op=op, library=without_gil))
            for n in range(4):
                threading.Thread(target=busy, args=(n,), daemon=True).start()
            time.sleep(0.05)
            print("done")
        """)

    def test_after_the_end(self):
        """At exit, in finalizers, and by C's own exit handlers."""
        self.check("""
            import atexit, ctypes
            from mtprof import profile
            from support_stacks import Site, op, scope, without_gil
            site = Site(flags=1, name=b"late")
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(site))     # longer than Python
            ctypes.CDLL(None).__cxa_atexit(without_gil.mtprof_i_begin, ctypes.byref(site), None)
            class Late:
                def __del__(self, scope=scope, library=without_gil):
                    scope("late", library)
            sys.keep = Late()
            def last():
                with profile(with_stack=True) as prof:
                    scope("at exit", without_gil)
                print("at exit" in prof.events()[0].name, end=" ")
            atexit.register(last)
            prof = profile(with_stack=True)
            prof.start()
            scope("bare", without_gil)
            prof.stop()
            print("done", end=" ")
        """, "done True")

    def test_no_more_stacks_after_stacks_end(self):
        self.check("""
            import mtprof._mtprof as _mtprof
            from mtprof import profile
            from support_stacks import scope, stacks_by_name, without_gil
            with profile(with_stack=True) as prof:
                scope("before", without_gil)
                _mtprof.stacks_end()
                scope("after", without_gil)
                scope("locked")
            stacks = stacks_by_name(prof)
            assert stacks["before"] and stacks["locked"] and not stacks["after"], stacks
            assert prof.health().stacks_missed == 1
            print("done")
        """)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_fork_while_others_look(self):
        self.check("""
            import os, threading
            from mtprof import profile
            from support_stacks import op, without_gil
            stop = threading.Event()
            def busy():
                while not stop.is_set():
                    op("busy", without_gil)
            threads = [threading.Thread(target=busy) for _ in range(3)]
            with profile(with_stack=True) as prof:
                for t in threads: t.start()
                for _ in range(10):
                    child = os.fork()
                    if child == 0:
                        with profile(with_stack=True) as own:
                            op("child", without_gil)
                        fine = "support_stacks.py" in own.events()[0].stack[0]
                        import atexit
                        atexit._run_exitfuncs()
                        os._exit(0 if fine else 3)
                    assert os.waitpid(child, 0)[1] == 0
                stop.set()
                for t in threads: t.join()
            print("done")
        """)


if __name__ == "__main__":
    faulthandler.dump_traceback_later(240, exit=True)
    unittest.main(verbosity=2)  # a test that hangs has a name
