# SPDX-License-Identifier: Apache-2.0
"""record_function and its relatives: names, nesting, decorators, futures, threads, references
(torch-contract 2)."""
import asyncio
import concurrent.futures
import contextlib
import gc
import inspect
import json
import os
import sys
import tempfile
import threading
import unittest
import warnings
import weakref

import mtprof
from mtprof import _mtprof, profile, record_function


def recorded(function, **options):
    """The events of a call."""
    with profile(activities=["CPU"], **options) as prof:
        function()
    with warnings.catch_warnings(action="ignore"):  # of nothing recorded
        return prof.events()


def names(events):
    return [event.name for event in events]


def tree(events):
    """Names with the names of their parents, in order of beginning."""
    return [(event.name, event.cpu_parent.name if event.cpu_parent is not None else None) for event in events]


def chrome(function, **options):
    """The trace events of a call, by name (spans and instants)."""
    with profile(activities=["CPU"], **options) as prof:
        function()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        prof.export_chrome_trace(path)
        with open(path, encoding="utf-8") as file:
            return json.load(file)["traceEvents"]


class Scopes(unittest.TestCase):
    def test_nesting(self):
        def work():
            with record_function("outer"):
                with record_function("inner"):
                    pass
                with record_function("inner"):
                    pass
            with record_function("after"):
                pass
        self.assertEqual(tree(recorded(work)), [("outer", None), ("inner", "outer"), ("inner", "outer"),
                                                ("after", None)])

    def test_enter_returns_itself(self):
        scope = record_function("x")
        with scope as entered:
            self.assertIs(entered, scope)

    def test_is_user_annotation(self):
        event, = recorded(lambda: record_function("x").__enter__().__exit__(None, None, None))
        self.assertTrue(event.is_user_annotation)
        self.assertEqual(event.scope, 7)

    def test_exception_ends_the_scope_and_passes(self):
        def work():
            with self.assertRaises(KeyError):
                with record_function("broken"):
                    raise KeyError("x")
            with record_function("after"):
                pass
        self.assertEqual(tree(recorded(work)), [("broken", None), ("after", None)])

    def test_exit_swallows_nothing(self):
        scope = record_function("x").__enter__()
        self.assertIsNone(scope.__exit__(ValueError, ValueError("x"), None))

    def test_nothing_without_a_profiler(self):
        for _ in range(3):
            with record_function("off", "args", key=1):
                pass
        self.assertEqual(names(recorded(lambda: None)), [])

    def test_opened_before_the_start_is_not_recorded(self):
        scope = record_function("early").__enter__()

        def work():
            scope.__exit__(None, None, None)
            with record_function("x"):
                pass
        self.assertEqual(names(recorded(work)), ["x"])

    def test_open_at_stop_ends_there(self):
        scope = record_function("late")
        events = recorded(lambda: scope.__enter__())
        scope.__exit__(None, None, None)
        self.assertEqual(names(events), ["late"])
        self.assertGreaterEqual(events[0].cpu_time_total, 0)

    def test_forgotten_ends_with_its_object(self):
        def work():
            scope = record_function("forgotten")
            scope.__enter__()
            scope.__enter__()
            del scope
            with record_function("after"):
                pass
        self.assertEqual(tree(recorded(work)), [("forgotten", None), ("after", None)])

    def test_any_text_is_a_name(self):
        for name in ("", "ümlaut ☃", "a\0b", "quote\" back\\slash\n", "\ud800lone", "x" * 5000, "re"):
            events = recorded(lambda: record_function(name).__enter__().__exit__(None, None, None))
            self.assertEqual(len(events), 1, ascii(name))
            if "\ud800" not in name:
                self.assertEqual(events[0].name, name)

    def test_a_str_of_ones_own_class(self):
        class Name(str):
            pass
        self.assertEqual(names(recorded(lambda: record_function(Name("mine")).__enter__())), ["mine"])

    def test_many_names(self):
        def work():
            for i in range(3000):
                with record_function(f"batch {i}"):
                    pass
        self.assertEqual(names(recorded(work)), [f"batch {i}" for i in range(3000)])

    def test_more_names_than_sites(self):
        """Names that come back get a site of their own, up to a limit; beyond it they are recorded too."""
        kept = [f"kept {i}" for i in range(17000)]

        def work():
            for name in kept:
                for _ in range(3):
                    with record_function(name):
                        pass
        events = recorded(work)
        self.assertEqual(len(events), 3 * len(kept))
        self.assertEqual(names(events)[::3], kept)


class Types(unittest.TestCase):
    def test_name_is_looked_at_when_entered(self):
        for bad in (3, None, 1.5, object()):
            scope = record_function(bad)
            with self.assertRaisesRegex(RuntimeError, "'name'"):
                scope.__enter__()
        events = recorded(lambda: self.assertRaises(RuntimeError, record_function(3).__enter__))
        self.assertEqual(names(events), [])

    def test_args_too(self):
        with self.assertRaisesRegex(RuntimeError, "'args'"):
            record_function("x", 5).__enter__()

    def test_arguments(self):
        for call in (lambda: record_function(), lambda: record_function("a", "b", "c"),
                     lambda: record_function("a", name="b"), lambda: record_function("a", "b", args="c"),
                     lambda: record_function("a", key=object()), lambda: record_function("a", key={1: 2})):
            with self.assertRaises(TypeError):
                call()
        self.assertEqual(record_function(name="n", args="a").name, "n")
        self.assertEqual(record_function("n", None).args, None)
        self.assertEqual(record_function("n", args="a").args, "a")

    def test_exit_without_enter(self):
        with self.assertRaisesRegex(AssertionError, "Expected record to be set"):
            record_function("x").__exit__(None, None, None)
        scope = record_function("x")
        with scope:
            self.assertIsNotNone(scope.record)
        self.assertIsNone(scope.record)
        with self.assertRaises(AssertionError):
            scope.__exit__(None, None, None)

    def test_without_init(self):
        scope = record_function.__new__(record_function)
        with self.assertRaises(RuntimeError):
            scope.__enter__()
        scope = record_function("x")
        del scope.name
        with self.assertRaises(RuntimeError):
            scope.__enter__()


class Inputs(unittest.TestCase):
    def scope(self, *args, **metadata):
        def work():
            with record_function(*args, **metadata):
                pass
        return work

    def test_args_count_as_an_input(self):
        event, = recorded(self.scope("x", "shown"), record_shapes=True)
        self.assertEqual(event.input_shapes, [[]])
        self.assertEqual(event.concrete_inputs, ["shown"])
        event, = recorded(self.scope("x"), record_shapes=True)
        self.assertEqual(event.input_shapes, [])
        event, = recorded(self.scope("x", "hidden"))
        self.assertEqual(event.input_shapes, [])

    def test_metadata_in_the_trace(self):
        big = 10 ** 30
        found, = [e for e in chrome(self.scope("x", text="a\"b", n=-3, real=0.5, yes=True, no=False, big=big,
                                               items=[1, "b"], none=None)) if e.get("name") == "x"]
        args = found["args"]
        self.assertEqual((args["text"], args["n"], args["real"], args["yes"], args["no"]),
                         ("a\"b", -3, 0.5, True, False))
        self.assertEqual((args["big"], args["items"], args["none"]), (str(big), str([1, "b"]), "None"))

    def test_fast_scopes_see_shapes(self):
        class Tensor:
            shape, dtype = (2, 3), "library.float32"

            def stride(self):
                return (3, 1)

        def work():
            inputs = [Tensor(), 5, 2.5, True, "text", None, [1, [2]]]
            with mtprof._RecordFunctionFast("fast", inputs, {"k": 3}):
                pass
        event, = recorded(work, record_shapes=True)
        self.assertEqual(event.input_shapes[0], [2, 3])
        self.assertEqual(len(event.input_shapes), 7)
        found, = [e for e in chrome(work, record_shapes=True) if e.get("name") == "fast"]
        self.assertEqual(found["args"]["k"], 3)
        self.assertEqual(found["args"]["Input type"][0], "float")
        self.assertEqual(found["args"]["Input Strides"][0], [3, 1])

    def test_fast_scopes_survive_odd_inputs(self):
        deep = []
        for _ in range(100):
            deep = [deep]
        loop = []
        loop.append(loop)

        class Odd:
            @property
            def shape(self):
                raise ValueError("no shape for you")

        class Odder:
            shape = ["a", "b"]
            dtype = property(lambda self: 1 / 0)
        for inputs in ([deep], [loop], [Odd()], [Odder()], [range(10)], list(range(1000)), [[0] * 5000],
                       [10 ** 40], ["\ud800"], ["y" * 5000]):
            def work(inputs=inputs):
                with mtprof._RecordFunctionFast("odd", inputs):
                    pass
            self.assertEqual(names(recorded(work, record_shapes=True)), ["odd"])

    def test_fast_scopes_keep_the_users_dict(self):
        values = {"a": 1}

        class Item:
            def __str__(self):
                values.clear()
                values.update((str(i), i) for i in range(1000))
                return "item"
        values["list"] = [Item()]
        values["b"] = 2

        class List(list):
            def __str__(self):
                return str(self[0])
        values["list"] = List([Item()])

        def work():
            with mtprof._RecordFunctionFast("fast", [], values):
                pass
        found, = [e for e in chrome(work) if e.get("name") == "fast"]
        self.assertEqual((found["args"]["a"], found["args"]["list"], found["args"]["b"]), (1, "item", 2))

    def test_fast_scopes_refuse(self):
        for call in (lambda: mtprof._RecordFunctionFast(3), lambda: mtprof._RecordFunctionFast("x", 5),
                     lambda: mtprof._RecordFunctionFast("x", [], [])):
            with self.assertRaises(RuntimeError):
                call()
        with self.assertRaises(TypeError):
            mtprof._RecordFunctionFast()


class Reentry(unittest.TestCase):
    def test_nests(self):
        scope = record_function("again")

        def work():
            with scope:
                with scope:
                    with record_function("inside"):
                        pass
                with scope:
                    pass
        events = recorded(work)
        self.assertEqual(tree(events), [("again", None), ("again", "again"), ("inside", "again"),
                                        ("again", "again")])
        self.assertIs(events[2].cpu_parent, events[1])

    def test_deep(self):
        scope = record_function("deep")
        for _ in range(1000):
            scope.__enter__()
        for _ in range(1000):
            scope.__exit__(None, None, None)
        with self.assertRaises(AssertionError):
            scope.__exit__(None, None, None)

    def test_shared_by_threads(self):
        """An exit ends what its own thread has opened, in whichever order the threads come and go."""
        scope = record_function("shared")
        first_in, second_in, first_out = (threading.Event() for _ in range(3))

        def first():
            with scope:
                first_in.set()
                second_in.wait(10)
            first_out.set()

        def second():
            first_in.wait(10)
            with scope:
                second_in.set()
                first_out.wait(10)
                with record_function("in second"):
                    pass

        def work():
            threads = [threading.Thread(target=first), threading.Thread(target=second)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        events = recorded(work)
        inner, = [e for e in events if e.name == "in second"]
        self.assertEqual(inner.cpu_parent.name, "shared")
        self.assertEqual(inner.cpu_parent.thread, inner.thread)
        self.assertFalse(any(e.is_async for e in events))

    def test_ended_by_another_thread(self):
        def work():
            scope = record_function("handed over").__enter__()
            thread = threading.Thread(target=scope.__exit__, args=(None, None, None))
            thread.start()
            thread.join()
        event, = recorded(work)
        self.assertTrue(event.is_async)


class Decorator(unittest.TestCase):
    def test_function(self):
        @record_function("f")
        def function(a, b=2):
            """Says what it does."""
            return a + b
        self.assertEqual((function.__name__, function.__doc__), ("function", "Says what it does."))
        self.assertEqual(names(recorded(lambda: self.assertEqual(function(1, b=4), 5))), ["f"])
        self.assertEqual(function(1), 3)

    def test_method_and_recursion(self):
        class Thing:
            @record_function("down")
            def down(self, n):
                with record_function("leaf"):  # an only child of its parent's name would be folded into it
                    pass
                return n if n == 0 else self.down(n - 1)
        self.assertEqual(tree(recorded(lambda: Thing().down(2))),
                         [("down", None), ("leaf", "down"), ("down", "down"), ("leaf", "down"),
                          ("down", "down"), ("leaf", "down")])

    def test_raises(self):
        @record_function("f")
        def function():
            raise KeyError("x")

        def work():
            with self.assertRaises(KeyError):
                function()
            with record_function("after"):
                pass
        self.assertEqual(tree(recorded(work)), [("f", None), ("after", None)])

    def test_metadata_goes_along(self):
        @record_function("f", "args", key="value")
        def function():
            pass
        found, = [e for e in chrome(function) if e.get("name") == "f"]
        self.assertEqual(found["args"]["key"], "value")

    def test_generator(self):
        @record_function("g")
        def count(n):
            for i in range(n):
                yield i
            return "end"

        def work():
            self.assertEqual(list(count(3)), [0, 1, 2])
            left = count(3)
            next(left)
            left.close()
        self.assertEqual(names(recorded(work)), ["g", "g"])

    def test_coroutines_overlap(self):
        async def task(event, other):
            event.set()
            await other.wait()
            return 7
        a, b = record_function("a")(task), record_function("b")(task)

        async def main():
            self.assertTrue(inspect.iscoroutinefunction(a))
            one, two = asyncio.Event(), asyncio.Event()
            return await asyncio.gather(a(one, two), b(two, one))
        events = recorded(lambda: self.assertEqual(asyncio.run(main()), [7, 7]))
        self.assertEqual(names(events), ["a", "b"])
        self.assertLess(events[1].time_range.start, events[0].time_range.end)

    def test_async_generator(self):
        seen = []

        @record_function("ag")
        async def numbers():
            try:
                while True:
                    try:
                        seen.append((yield len(seen)))
                    except ValueError:
                        seen.append("raised")
            finally:
                seen.append("closed")

        async def main():
            gen = numbers()
            self.assertEqual(await gen.asend(None), 0)
            self.assertEqual(await gen.asend("x"), 1)
            self.assertEqual(await gen.athrow(ValueError("v")), 2)
            await gen.aclose()
        self.assertEqual(names(recorded(lambda: asyncio.run(main()))), ["ag"])
        self.assertEqual(seen, ["x", "raised", "closed"])

    def test_from_many_threads(self):
        @record_function("f")
        def function():
            with record_function("inside"):
                pass

        def work():
            threads = [threading.Thread(target=lambda: [function() for _ in range(200)]) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        events = recorded(work)
        self.assertEqual(len(events), 1600)
        for event in events:
            self.assertFalse(event.is_async)
            if event.name == "inside":
                self.assertEqual((event.cpu_parent.name, event.cpu_parent.thread), ("f", event.thread))

    def test_refuses(self):
        for call in (lambda: record_function("x")(3), lambda: record_function("x")(),
                     lambda: record_function("x")(print, print)):
            with self.assertRaises(TypeError):
                call()


class Methods(unittest.TestCase):
    """__enter__ and __exit__ are methods of a kind of their own (scope_method.c): they must not show it."""

    def test_unbound(self):
        scope = record_function("x")
        self.assertIs(record_function.__enter__(scope), scope)
        self.assertIsNone(record_function.__exit__(scope, None, None, None))
        for call in (lambda: record_function.__enter__(), lambda: record_function.__enter__(3),
                     lambda: record_function.__exit__("x", None, None, None), lambda: scope.__enter__(1),
                     lambda: scope.__enter__(key=1), lambda: record_function.__enter__(scope, key=1)):
            with self.assertRaises(TypeError):
                call()

    def test_exit_stack(self):
        def work():
            with contextlib.ExitStack() as stack:
                for name in "ab":
                    stack.enter_context(record_function(name))
        self.assertEqual(tree(recorded(work)), [("a", None), ("b", "a")])

    def test_bound(self):
        scope = record_function("x")
        enter, leave = scope.__enter__, scope.__exit__
        self.assertEqual((enter.__name__, leave.__name__, enter.__self__), ("__enter__", "__exit__", scope))
        self.assertEqual((enter, hash(enter)), (scope.__enter__, hash(scope.__enter__)))
        self.assertNotEqual(enter, leave)
        self.assertNotEqual(enter, record_function("x").__enter__)
        self.assertFalse(enter == 3)
        self.assertIn("__enter__", repr(enter))
        self.assertIn("scope", record_function.__enter__.__doc__)
        self.assertTrue(callable(enter) and callable(record_function.__exit__))
        with self.assertRaises(TypeError):
            type(enter)()
        with self.assertRaises(TypeError):
            type(record_function.__enter__)()
        kept = [record_function("y").__enter__ for _ in range(100)]  # more than the free list
        for one in kept:
            one()

    def test_bound_to_a_subclass_is_collected(self):
        class Mine(record_function):
            pass
        scope = Mine("x")
        scope.enter = scope.__enter__
        gone = weakref.ref(scope)
        del scope
        gc.collect()
        self.assertIsNone(gone())


class Subclass(unittest.TestCase):
    def test_with_its_own_init(self):
        class Mine(record_function):
            def __init__(self, number):
                super().__init__(f"mine {number}", key=number)
                self.number = number

            def __exit__(self, *details):
                self.left = True
                return super().__exit__(*details)
        kept = []

        def work():
            with Mine(3) as scope:
                kept.append(scope)
        self.assertEqual(names(recorded(work)), ["mine 3"])
        self.assertTrue(kept[0].left)

        @Mine(4)
        def function():
            return 1
        self.assertEqual(names(recorded(lambda: self.assertEqual(function(), 1))), ["mine 4"])

    def test_is_collected(self):
        class Mine(record_function):
            pass
        scope = Mine("x")
        scope.cycle = scope
        gone = weakref.ref(scope)
        del scope
        gc.collect()
        self.assertIsNone(gone())


class Futures(unittest.TestCase):
    def test_the_future_ends_it(self):
        def work():
            future = concurrent.futures.Future()
            with record_function("waits") as scope:
                self.assertIs(scope._call_end_callbacks_on_future(future), future)
                with self.assertRaisesRegex(RuntimeError, "can only be called once"):
                    scope._call_end_callbacks_on_future(future)
            with record_function("meanwhile"):
                pass
            thread = threading.Thread(target=future.set_result, args=(1,))
            thread.start()
            thread.join()
        events = recorded(work)
        waits, = [e for e in events if e.name == "waits"]
        meanwhile, = [e for e in events if e.name == "meanwhile"]
        self.assertTrue(waits.is_async)
        self.assertGreaterEqual(waits.time_range.end, meanwhile.time_range.end)

    def test_torch_style_future(self):
        class Future:
            def __init__(self):
                self.callbacks = []

            def then(self, callback):
                following = Future()
                self.callbacks.append(lambda: following.finish(callback(self)))
                return following

            def value(self):
                return self._value

            def finish(self, value):
                self._value = value
                for callback in self.callbacks:
                    callback()
        future = Future()
        with record_function("x") as scope:
            following = scope._call_end_callbacks_on_future(future)
        self.assertIsNot(following, future)
        future.finish(5)
        self.assertEqual(following.value(), 5)

    def test_misuse(self):
        with self.assertRaises(AssertionError):
            record_function("x")._call_end_callbacks_on_future(concurrent.futures.Future())
        with record_function("x") as scope:
            with self.assertRaises(AttributeError):
                scope._call_end_callbacks_on_future(object())
            self.assertTrue(scope.run_callbacks_on_exit)


class Functions(unittest.TestCase):
    def test_begin_and_end(self):
        def work():
            outer = mtprof.begin("outer")
            inner = mtprof.begin("inner", key=1)
            self.assertNotEqual(inner, outer)
            mtprof.end(inner)
            mtprof.end(outer)
            mtprof.end(outer)  # once is enough: ignored
            mtprof.end(0)
        self.assertEqual(tree(recorded(work)), [("outer", None), ("inner", "outer")])
        self.assertEqual(mtprof.begin("off"), 0)

    def test_end_of_an_earlier_session(self):
        tokens = []
        recorded(lambda: tokens.append(mtprof.begin("x")))

        def work():
            mtprof.end(tokens[0])
            with record_function("y"):
                pass
        self.assertEqual(names(recorded(work)), ["y"])

    def test_marks_in_the_trace(self):
        def work():
            with record_function("s"):
                mtprof.counter("c", 3)
                mtprof.counter("c", 2.5)
                mtprof.counter("c", 10 ** 25)
                mtprof.instant("i", text="t", n=1)
                mtprof.flow("f", "start", 9)
            with record_function("t"):
                mtprof.flow("f", "end", 9)
        events = chrome(work)
        counters = [list(e["args"].values())[0] for e in events if e.get("ph") == "C" and e["name"] == "c"]
        self.assertEqual(counters, [3, 2.5, 1e25])
        instant, = [e for e in events if e.get("name") == "i"]
        self.assertEqual((instant["ph"], instant["args"]["text"], instant["args"]["n"]), ("i", "t", 1))
        self.assertEqual(sorted(e["ph"] for e in events if e.get("name") == "f"), ["f", "s"])

    def test_types(self):
        for call in (lambda: mtprof.begin(3), lambda: mtprof.begin(), lambda: mtprof.begin("a", "b"),
                     lambda: mtprof.begin("a", key=object()), lambda: mtprof.end("x"), lambda: mtprof.end(),
                     lambda: mtprof.counter("a", "b"), lambda: mtprof.counter("a"),
                     lambda: mtprof.counter(1, 2), lambda: mtprof.instant(1), lambda: mtprof.instant("a", "b"),
                     lambda: mtprof.flow("a", "start"),
                     lambda: mtprof.flow("a", "start", "x"), lambda: mtprof.name_thread(3)):
            with self.assertRaises(TypeError):
                call()
        with self.assertRaisesRegex(ValueError, "'middle'"):
            mtprof.flow("a", "middle", 1)
        for number in (-1, 2 ** 64):
            with self.assertRaises(OverflowError):
                mtprof.end(number)

    def test_thread_names(self):
        def work():
            def run():
                mtprof.name_thread("worker ☃")
                with record_function("x"):
                    pass
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
        shown = [e["args"]["name"] for e in chrome(work) if e.get("name") == "thread_name"]
        self.assertTrue(any("worker ☃" in name for name in shown), shown)
        mtprof.name_thread(None)


class References(unittest.TestCase):
    def test_names_are_held_once(self):
        name = "".join(["a name ", "of its own"])
        before = sys.getrefcount(name)
        recorded(lambda: [record_function(name).__enter__() for _ in range(1000)])
        for _ in range(1000):
            with record_function(name, "args"):
                pass
        self.assertLessEqual(sys.getrefcount(name) - before, 3)  # the caches

    def test_free_list_gives_clean_objects(self):
        scopes = [record_function("a", "b", key=1) for _ in range(200)]
        for scope in scopes:
            scope.__enter__()
            scope.__enter__()
        del scopes, scope
        scope = record_function("c")
        self.assertEqual((scope.name, scope.args, scope.metadata, scope.record), ("c", None, {}, None))
        with self.assertRaises(AssertionError):
            scope.__exit__(None, None, None)

    def test_memory_is_flat(self):
        def blocks():
            gc.collect()
            return sys.getallocatedblocks()

        def work():
            for i in range(2000):
                with record_function("x", "y", key=i):
                    pass
                try:
                    with record_function(3):
                        pass
                except RuntimeError:
                    pass
        work()
        before = blocks()
        for _ in range(5):
            work()
        self.assertLess(blocks() - before, 50)

    def test_type_is_not_leaked(self):
        before = sys.getrefcount(record_function)
        for _ in range(1000):
            with record_function("x"):
                pass
        self.assertLess(abs(sys.getrefcount(record_function) - before), 100)

    def test_not_tracked(self):
        self.assertFalse(gc.is_tracked(record_function("x")))
        self.assertIs(type(record_function("x")), _mtprof.record_function)


class Kept(unittest.TestCase):
    """What is made at run time belongs to the recording."""

    def definitions(self, function):
        """The texts that the trace of a window has."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.mtt")
            with mtprof.profile(record_shapes=True) as prof:
                function()
            prof.save(path)
            with open(path, "rb") as file:
                return file.read()

    def test_keys_texts_and_names_of_marks_go_with_their_window(self):
        def work():
            with record_function("x", "the text of an input", **{"the key of metadata": 1}):
                mtprof.counter("".join(("the name of", " a counter")), 0.5)
                mtprof.flow("".join(("the name of", " a flow")), "start", 1)
            thread = threading.Thread(target=lambda: (mtprof.name_thread("the name of a thread"), mtprof.instant("i")))
            thread.start()
            thread.join()
        texts = (b"the text of an input", b"the key of metadata", b"the name of a counter", b"the name of a flow",
                 b"the name of a thread")
        first, second = self.definitions(work), self.definitions(lambda: None)
        for text in texts:
            self.assertIn(text, first)
            self.assertNotIn(text, second)

    def test_more_names_than_sites(self):
        """Counters of any number of names keep them."""
        names = [f"counter {i}" for i in range(20000)]
        with mtprof.profile() as prof:
            for name in names:
                mtprof.counter(name, 0.5)
                mtprof.counter(name, 1)
        marks = [(mark.name, mark["value"]) for mark in prof.marks("counter")]
        self.assertEqual(marks, [(name, value) for name in names for value in (0.5, 1)])

    def test_more_names_with_inputs_than_sites(self):
        names = [f"inputs {i}" for i in range(17000)]
        with mtprof.profile(record_shapes=True) as prof:
            for i, name in enumerate(names):
                with record_function(name, f"text {i}"):
                    pass
        events = prof.events()
        self.assertEqual([event.name for event in events], names)
        self.assertEqual([event.concrete_inputs for event in events], [[f"text {i}"] for i in range(17000)])
        self.assertEqual(prof.health().texts_cut, 0)

    def test_a_small_ring_starts_after_many_keys(self):
        for start in range(0, 140000, 70000):
            with mtprof.profile() as prof:
                for i in range(start, start + 70000):
                    with record_function("x", **{f"key {i}": i}):
                        pass
            health = prof.health()
            self.assertEqual((health.lost, health.texts_cut), (0, 70000 - 65536))
        with mtprof.profile(policy="ring", buffer_bytes="64K") as prof:
            with record_function("y"):
                pass
        self.assertEqual([event.name for event in prof.events()], ["y"])
        self.assertLess(prof.health().bytes, 1 << 20)


if __name__ == "__main__":
    unittest.main()
