# SPDX-License-Identifier: Apache-2.0
"""Python stacks where they are hard to have: no GIL, unknown threads, depth, races, forks, the end."""
import ctypes
import faulthandler
import os
import sys
import textwrap
import threading
import unittest
import warnings

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import mtprof._mtprof as _mtprof  # noqa: E402
from mtprof import modules, profile, record_function  # noqa: E402
from support_stacks import (Marks, Site, expected_stack, language, op, run_script, scope,  # noqa: E402
                            stacks_by_name, without_gil)


class quick_switching:
    """Threads take turns at once: a thread that waits for the GIL of a busy one does not wait 5 ms."""

    def __enter__(self):
        self.interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)

    def __exit__(self, *arguments):
        sys.setswitchinterval(self.interval)


class WithoutTheLock(unittest.TestCase):
    """Stacks that were held (py_language.h); the others are in test_stacks_nogil."""

    def test_held(self):
        python = language()
        self.assertEqual(python.version, 1)
        with profile(with_stack=True) as prof:
            before = python.hold()
            stack = expected_stack(sys._getframe())
            scope("held", without_gil)
            scope("held too", without_gil)
            python.drop(before)
            scope("dropped", without_gil)
        self.assertEqual(before, 0)
        stacks = stacks_by_name(prof)
        # Where it was held, not where it is used.
        self.assertIn("test_held", stacks["held"][0])
        self.assertEqual(stacks["held"], stacks["held too"])
        self.assertEqual(stacks["held"][1:], stack[1:])
        self.assertIn("scope", stacks["dropped"][0])

    def test_held_stacks_nest(self):
        python = language()

        def inner():
            before = python.hold()
            scope("inner", without_gil)
            python.drop(before)
        with profile(with_stack=True) as prof:
            outer = python.hold()
            inner()
            scope("outer", without_gil)
            python.drop(outer)
        stacks = stacks_by_name(prof)
        self.assertIn("inner", stacks["inner"][0])
        self.assertIn("test_held_stacks_nest", stacks["outer"][0])
        self.assertNotIn("inner", stacks["outer"][0])

    def test_a_held_stack_is_of_one_recording(self):
        python = language()
        with profile(with_stack=True):
            before = python.hold()
        with profile(with_stack=True) as prof:
            scope("late", without_gil)
        python.drop(before)
        with profile(with_stack=True) as again:
            scope("later", without_gil)
        self.assertIn("scope", stacks_by_name(prof)["late"][0])
        self.assertIn("scope", stacks_by_name(again)["later"][0])

    def test_nothing_records(self):
        python = language()
        python.drop(python.hold())
        self.assertEqual(_mtprof.stack_node(), 0)
        self.assertEqual(_mtprof.stack_cost(10)[1], 0)

    def test_other_threads_do_not_disturb(self):
        """One thread without the GIL while others run Python: never one of their stacks."""
        stop = threading.Event()

        def busy():
            while not stop.is_set():
                with record_function("busy"):
                    pass
        with quick_switching(), profile(with_stack=True) as prof:
            threads = [threading.Thread(target=busy) for _ in range(3)]
            for thread in threads:
                thread.start()
            for _ in range(1000):
                scope("bare", without_gil)
            stop.set()
            for thread in threads:
                thread.join()
        seen = 0
        for e in prof.events():
            if e.name == "bare":
                seen += 1
                self.assertIn("test_other_threads_do_not_disturb", e.stack[1])
            else:
                self.assertIn("busy", e.stack[0])
        self.assertEqual(seen, 1000)
        self.assertEqual(prof.health().stacks_missed, 0)


class UnknownThreads(unittest.TestCase):
    def test_a_thread_that_python_does_not_know(self):
        site = Site(flags=0, name=b"native", file=None)
        libc = ctypes.CDLL(None)
        libc.pthread_create.argtypes = [ctypes.POINTER(ctypes.c_ulong), ctypes.c_void_p, ctypes.c_void_p,
                                        ctypes.c_void_p]
        libc.pthread_join.argtypes = [ctypes.c_ulong, ctypes.c_void_p]
        begin = ctypes.cast(without_gil.mtprof_i_begin, ctypes.c_void_p).value
        with profile(with_stack=True) as prof:
            for _ in range(10):
                thread = ctypes.c_ulong()
                self.assertEqual(libc.pthread_create(thread, None, begin, ctypes.addressof(site)), 0)
                libc.pthread_join(thread, None)
            scope("here")
        natives = [e for e in prof.events() if e.name == "native"]
        self.assertEqual(len(natives), 10)
        self.assertFalse(any(e.stack for e in natives))
        self.assertEqual(prof.health().stacks_missed, 0)  # there is none to miss

    def test_callbacks_in_foreign_threads(self):
        """A native thread that calls Python has that call's stack, again and again a new one."""
        mark = Marks()
        call = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)

        def callback(argument):
            mark("foreign")
            return None
        entry = call(callback)
        libc = ctypes.CDLL(None)
        libc.pthread_create.argtypes = [ctypes.POINTER(ctypes.c_ulong), ctypes.c_void_p, ctypes.c_void_p,
                                        ctypes.c_void_p]
        libc.pthread_join.argtypes = [ctypes.c_ulong, ctypes.c_void_p]
        with profile(with_stack=True) as prof:
            for _ in range(20):
                thread = ctypes.c_ulong()
                start = ctypes.cast(entry, ctypes.c_void_p)
                self.assertEqual(libc.pthread_create(thread, None, start, None), 0)
                libc.pthread_join(thread, None)
        mark.check(self, prof)
        self.assertEqual(len(mark.expected), 20)

    def test_subinterpreters_do_not_unlock_anything(self):
        """Once there was one, CPython's own check says that everybody has the GIL."""
        done = run_script("""
            import sys
            sys.path.insert(0, %r)
            try:
                import _xxsubinterpreters as interpreters
            except ImportError:
                print("skip"); sys.exit()
            from mtprof import profile
            from support_stacks import scope, without_gil, stacks_by_name
            import threading
            sys.setswitchinterval(1e-5)
            other = interpreters.create()
            interpreters.run_string(other, "x = 1")
            stop = threading.Event()
            def busy():
                while not stop.is_set():
                    pass
            thread = threading.Thread(target=busy)
            thread.start()
            with profile(with_stack=True) as prof:
                for i in range(1000):
                    scope("bare", without_gil)
                scope("locked")
            stop.set(); thread.join()
            stacks = stacks_by_name(prof)
            assert not stacks["bare"], stacks
            assert stacks["locked"], stacks
            assert prof.health().stacks_missed == 1000
            interpreters.destroy(other)
            print("fine")
        """ % os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        self.assertEqual(done.returncode, 0, done.stderr)
        if done.stdout.strip() == "skip":
            self.skipTest("this Python has no _xxsubinterpreters")
        self.assertEqual(done.stdout.strip(), "fine")


class Depth(unittest.TestCase):
    def fall(self, n, function):
        if n > 0:
            return self.fall(n - 1, function)
        return function()

    def with_limit(self, limit, function):
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(limit)
        try:
            return function()
        finally:
            sys.setrecursionlimit(before)

    def test_ten_thousand(self):
        def mark():
            with record_function("deep"):
                pass

        def record():
            with profile(with_stack=True) as prof:
                self.fall(10000, mark)
                self.fall(9990, mark)
                mark()
            return prof
        prof = self.with_limit(15000, record)
        self.assertEqual(prof.health().stacks_missed, 0)
        self.assertEqual(prof.health().lost, 0)
        deep, less, shallow = [e.stack for e in prof.events() if e.name == "deep"]
        self.assertIn("mark", deep[0])
        self.assertEqual(sum("Depth.fall" in line for line in deep) + 1, len(deep))  # the innermost ones
        self.assertGreaterEqual(len(deep), 1000)
        self.assertEqual(deep[1:900], less[1:900])
        self.assertFalse(any("Depth.fall" in line for line in shallow))

    def test_too_deep_is_counted(self):
        def mark():
            with record_function("too deep"):
                pass

        def record():
            with profile(with_stack=True) as prof:
                self.fall(20000, mark)
                mark()
            return prof
        prof = self.with_limit(25000, record)
        first, second = [e.stack for e in prof.events() if e.name == "too deep"]
        self.assertFalse(first)
        self.assertTrue(second)
        self.assertEqual(prof.health().stacks_missed, 1)

    def test_recursion_error(self):
        def forever():
            with record_function("down"):
                forever()
        with profile(with_stack=True) as prof:
            with self.assertRaises(RecursionError):
                forever()
            with record_function("after"):
                pass
        self.assertIn("test_recursion_error", stacks_by_name(prof)["after"][0])

    def test_many_different_stacks(self):
        """Every leaf of a tree of calls has its own."""
        mark = Marks()

        def branch(path):
            if len(path) == 6:
                mark(path)
            elif path.endswith("0"):
                branch(path + "0")
                branch(path + "1")
            else:
                branch(path + "0"), branch(path + "1")
        with profile(with_stack=True) as prof:
            branch("")
            branch("")
        mark.check(self, prof)
        self.assertEqual(len(mark.expected), 128)


class Races(unittest.TestCase):
    def test_recordings_come_and_go_under_threads(self):
        """Threads record all the time while profiles start and stop: each stack is its thread's."""
        stop = threading.Event()
        source = textwrap.dedent("""
            def leaf_{0}():
                with record_function("thread {0}"):
                    pass
            def run_{0}():
                while not stop.is_set():
                    leaf_{0}()
        """)
        threads = []
        for i in range(4):
            space = {"record_function": record_function, "stop": stop}
            exec(compile(source.format(i), f"thread{i}.py", "exec"), space)
            threads.append(threading.Thread(target=space[f"run_{i}"]))
        for thread in threads:
            thread.start()
        kept = []
        with quick_switching():
            try:
                for i in range(30):
                    with profile(with_stack=True) as prof:
                        stop.wait(0.001)
                    kept.append(prof)
                    if i % 4 == 0:
                        _mtprof.release_code()
            finally:
                stop.set()
                for thread in threads:
                    thread.join()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # windows in which no thread had its turn
            seen = {(e.name, tuple(e.stack[:2])) for prof in kept for e in prof.events() if e.stack}
        self.assertLessEqual(seen, {
            (f"thread {i}", (f"thread{i}.py(3): leaf_{i}", f"thread{i}.py(7): run_{i}")) for i in range(4)})
        self.assertTrue(seen)

    def test_modules_that_come_and_go_in_threads(self):
        """What one thread remembers of a module may be another module by now, made by another thread."""
        class Layer:
            def __call__(self, name):
                op(name)
        modules.set_module_call(Layer.__call__)
        wrong = []

        def work(i):
            for n in range(1500):
                Layer()(f"layer {i}")
                if n % 100 == i:
                    _mtprof.release_code()
        with quick_switching(), profile(with_stack=True) as prof:
            threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        for e in prof.events():
            if not e.stack[1].startswith("nn.Module: Layer_") or "work" not in e.stack[2]:
                wrong.append(e.stack[:3])
        self.assertEqual(wrong, [])
        self.assertEqual(len(prof.events()), 4500)

    def test_everything_at_once(self):
        """Scopes with and without the GIL, held stacks, generators, made code, depth, short threads, code
        let go: under recordings of all kinds that come and go. It must simply not crash."""
        script = """
            import random, sys, threading, time, warnings
            sys.path.insert(0, %r)
            import mtprof._mtprof as _mtprof
            from mtprof import modules, profile, record_function
            from mtprof.profiler import _ExperimentalConfig
            from support_stacks import language, op, scope, without_gil
            warnings.simplefilter("ignore")
            sys.setswitchinterval(1e-5)
            stop, python = threading.Event(), language()
            class Layer:
                def __init__(self, **children):
                    self._modules = children
                def __call__(self, n=0):
                    token = modules.enter(self)
                    try:
                        op("layer")
                        return Layer(inner=self)(n - 1) if n > 0 else None
                    finally:
                        modules.leave(token)
            modules.set_module_call(Layer.__call__)
            def numbers(n):
                for i in range(n):
                    with record_function("generator"):
                        yield i
            def fall(n):
                return fall(n - 1) if n else op("deep")
            def held():
                before = python.hold()
                scope("held", without_gil)
                python.drop(before)
            def made(i):
                exec(f"def made_{i}():\\n  with record_function('made'): pass\\nmade_{i}()",
                     {"record_function": record_function})
            def short():
                thread = threading.Thread(target=op, args=("short",))
                thread.start()
                thread.join()
            def worker(seed):
                dice = random.Random(seed)
                things = [lambda: list(numbers(3)), lambda: made(dice.randrange(50)),
                          lambda: Layer()(dice.randrange(4)), lambda: scope("bare", without_gil), held, short,
                          _mtprof.release_code, lambda: fall(dice.randrange(300))]
                while not stop.is_set():
                    dice.choice(things)()
            threads = [threading.Thread(target=worker, args=(i,)) for i in range(4)]
            for thread in threads:
                thread.start()
            dice = random.Random(7)
            for _ in range(60):
                config = _ExperimentalConfig(verbose=dice.random() < 0.4,
                                             record_python_gc_info=dice.random() < 0.4)
                with profile(with_stack=dice.random() < 0.9, with_modules=dice.random() < 0.5,
                             experimental_config=config) as prof:
                    time.sleep(0.005)
                if dice.random() < 0.2:
                    prof.events()
            stop.set()
            for thread in threads:
                thread.join()
            print("fine")
        """ % os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        done = run_script(script)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "fine"), done.stderr[-2000:])

    def test_threads_that_come_and_go(self):
        mark = Marks()
        lock = threading.Lock()

        def once():
            with lock:
                mark("short")
        with profile(with_stack=True) as prof:
            for _ in range(50):
                threads = [threading.Thread(target=once) for _ in range(4)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
        mark.check(self, prof)
        self.assertEqual(len(mark.expected), 200)


class Fork(unittest.TestCase):
    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_child_profiles_for_itself(self):
        def inner():
            with record_function("both"):
                pass
        with profile(with_stack=True) as prof:
            inner()
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    with profile(with_stack=True) as own:
                        inner()
                    stacks = stacks_by_name(own)
                    os.write(writer, stacks["both"][0].encode())
                    status = 0
                finally:
                    os._exit(status)
            os.close(writer)
            inner()
        with os.fdopen(reader) as answers:
            answer = answers.read()
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertIn("inner", answer)
        both = [e.stack for e in prof.events() if e.name == "both"]
        self.assertEqual(len(both), 2)
        self.assertEqual(both[0][0], answer)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_fork_while_others_look(self):
        done = run_script("""
            import os, sys, threading
            from mtprof import profile, record_function
            sys.setswitchinterval(1e-5)
            stop = threading.Event()
            def busy():
                while not stop.is_set():
                    with record_function("busy"):
                        pass
            threads = [threading.Thread(target=busy) for _ in range(3)]
            with profile(with_stack=True) as prof:
                for t in threads: t.start()
                for _ in range(10):
                    child = os.fork()
                    if child == 0:
                        with profile(with_stack=True) as own:
                            with record_function("child"):
                                pass
                        ok = "<module>" in own.events()[0].stack[0]
                        os._exit(0 if ok else 3)
                    assert os.waitpid(child, 0)[1] == 0
            stop.set()
            for t in threads: t.join()
            print("fine")
        """)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "fine"), done.stderr)


class TheEnd(unittest.TestCase):
    """The interpreter goes down while something records."""

    def check(self, script, out):
        done = run_script(script)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.strip(), out, done.stderr)

    def test_atexit_and_module_teardown(self):
        self.check("""
            import atexit, sys
            from mtprof import profile, record_function
            prof = profile(with_stack=True)
            prof.start()
            class Late:
                def __del__(self, record_function=record_function):
                    with record_function("late"):
                        pass
            keep = Late()
            sys.keep = Late()
            def last():
                with record_function("at exit"):
                    pass
            atexit.register(last)
            print("done")
        """, "done")

    def test_daemon_threads(self):
        self.check("""
            import sys, threading, time
            from mtprof import profile, record_function
            sys.setswitchinterval(1e-5)
            prof = profile(with_stack=True)
            prof.start()
            def busy():
                while True:
                    with record_function("busy"):
                        pass
            for _ in range(4):
                threading.Thread(target=busy, daemon=True).start()
            time.sleep(0.05)
            print("done")
        """, "done")

    def test_without_gil_until_the_end(self):
        self.check("""
            import sys, threading, time
            sys.path.insert(0, %r)
            from mtprof import profile
            from support_stacks import scope, without_gil
            prof = profile(with_stack=True)
            prof.start()
            def busy():
                while True:
                    scope("bare", without_gil)
            threading.Thread(target=busy, daemon=True).start()
            time.sleep(0.05)
            print("done")
        """ % os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "done")

    def test_code_that_is_still_held(self):
        self.check("""
            import weakref
            from mtprof import profile, record_function
            space = {"record_function": record_function}
            prof = profile(with_stack=True)
            prof.start()
            exec("def f():\\n  with record_function('x'): pass\\nf()", space)
            watch = weakref.ref(space["f"].__code__, lambda r: None)
            print("done")
        """, "done")


class Arguments(unittest.TestCase):
    def test_bad_values(self):
        for call, bad in ((_mtprof.set_module_call, 3), (_mtprof.set_module_call, None),
                          (_mtprof.stack_cost, "x"), (_mtprof.add_own_path, None)):
            with self.assertRaises(TypeError):
                call(bad)

    def test_state(self):
        state = _mtprof.stack_state()
        self.assertIn(state["frames"], ("3.11", "3.12", "3.13", "public"))
        self.assertTrue(_mtprof.install_language())

    def test_current_exception_is_left_alone(self):
        class Odd(Exception):
            pass
        with profile(with_stack=True):
            try:
                raise Odd("mine")
            except Odd:
                with record_function("x"):
                    pass
                self.assertIs(sys.exc_info()[0], Odd)


if __name__ == "__main__":
    faulthandler.dump_traceback_later(240, exit=True)
    unittest.main(verbosity=2)  # a test that hangs has a name
