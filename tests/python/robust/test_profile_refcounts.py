# SPDX-License-Identifier: Apache-2.0
"""No call leaks a reference, on its good and on its bad ways. Debug builds of Python count them."""
import gc
import sys
import unittest
import warnings

import mtprof
from mtprof import ProfilerAction, _mtprof, profile, record_function

SAVE = ProfilerAction.RECORD_AND_SAVE


def refused(call, *errors):
    try:
        call()
    except errors:
        return
    raise AssertionError("not refused")


def bad(*_):
    raise KeyError("x")


class Observer:
    def start(self):
        pass

    stop = start


@unittest.skipUnless(hasattr(sys, "gettotalrefcount"), "only debug builds of Python count references")
class References(unittest.TestCase):
    def flat(self, *calls, rounds=60):
        with warnings.catch_warnings(action="ignore"):
            for call in calls:
                for _ in range(20):
                    call()
                gc.collect()
                before = sys.gettotalrefcount()
                for _ in range(rounds):
                    call()
                gc.collect()
                grown = sys.gettotalrefcount() - before
                self.assertLess(grown, rounds, f"{call.__code__.co_firstlineno}: {grown} in {rounds} rounds")

    def test_sessions(self):
        def plain():
            with profile():
                pass

        def steps():
            with profile(schedule=lambda step: SAVE, on_trace_ready=lambda p: p.get_trace_id(),
                         custom_trace_id_callback=lambda: "id", execution_trace_observer=Observer()) as prof:
                prof.step()
                prof.toggle_collection_dynamic(False, ["CPU"])
                prof.add_metadata("a", "b")
                prof.preset_metadata_json("c", "1")
                prof.explain()

        def dropped():
            profile(on_trace_ready=lambda p: None).start()
        self.flat(plain, steps, dropped)

    def test_failures(self):
        prof = profile()

        def with_(**options):
            with profile(**options):
                pass
        self.flat(lambda: refused(prof.step, RuntimeError), lambda: refused(prof.stop, AssertionError),
                  lambda: refused(lambda: prof.save("/no/such"), AssertionError),
                  lambda: refused(lambda: profile(activities=["x"]), ValueError),
                  lambda: refused(lambda: profile(policy="x"), ValueError),
                  lambda: refused(lambda: with_(on_trace_ready=bad), KeyError),
                  lambda: refused(lambda: with_(schedule=bad), KeyError),
                  lambda: refused(lambda: with_(custom_trace_id_callback=bad), KeyError),
                  lambda: refused(lambda: with_(custom_trace_id_callback=lambda: 5), TypeError),
                  lambda: refused(lambda: with_(path="/no/such/folder/x"), OSError),
                  lambda: refused(lambda: _mtprof.Profile()._start(), RuntimeError),
                  lambda: refused(lambda: _mtprof.Profile()._open(1, 0, path=3), TypeError),
                  lambda: refused(lambda: _mtprof.Profile()._open(1, 0, schedule=(1,)), TypeError))
        with prof:
            pass
        self.flat(lambda: refused(lambda: prof.save("/no/such/folder/x"), OSError))

    def marks(self):
        def one():
            with record_function("a"):
                pass

        def more():
            with record_function("a", "b", text="t", n=1, real=0.5, items=[1]):
                pass

        def again():
            scope = record_function("a")
            for _ in range(6):
                scope.__enter__()
            for _ in range(6):
                scope.__exit__(None, None, None)

        @record_function("decorated")
        def decorated():
            pass

        def functions():
            mtprof.end(mtprof.begin("a", key="b"))
            mtprof.counter("c", 1)
            mtprof.counter("c", 1.5)
            mtprof.instant("i", key="b")
            mtprof.flow("f", "start", 1)
            mtprof.name_thread("x")

        def inputs():
            with mtprof._RecordFunctionFast("fast", [1, 2.5, "x", [None, [True]], object()], {"k": 1}):
                pass
        self.flat(one, more, again, decorated, functions, inputs,
                  lambda: refused(record_function(3).__enter__, RuntimeError),
                  lambda: refused(record_function("a").__exit__, AssertionError),
                  lambda: refused(lambda: record_function("a", key=object()), TypeError),
                  lambda: refused(lambda: record_function("a", "b", "c"), TypeError),
                  lambda: refused(lambda: record_function(args="c"), TypeError),
                  lambda: refused(lambda: mtprof.begin(3), TypeError),
                  lambda: refused(lambda: mtprof.begin("a", key=object()), TypeError),
                  lambda: refused(lambda: mtprof.flow("a", "x", 1), ValueError))

    def test_marks_off(self):
        self.marks()

    def test_marks_on(self):
        with profile(record_shapes=True):
            self.marks()


if __name__ == "__main__":
    unittest.main()
