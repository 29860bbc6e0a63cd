# SPDX-License-Identifier: Apache-2.0
"""An exception between any two bytecodes of start, step and stop leaves nothing switched on.

A signal's handler may raise there (KeyboardInterrupt). A trace function puts the exception at the first, second,
third ... bytecode of our own and of threading's code, so that each place is met, every time.
"""
import gc
import os
import sys
import tempfile
import threading
import unittest

import mtprof
from mtprof import _ExperimentalConfig, profile, record_function, schedule

WATCHED = (os.path.dirname(mtprof.__file__), threading.__file__)


class Interrupt(BaseException):
    pass


class Interrupter:
    """Raises at the n-th bytecode of the watched files; `met` says whether there was one."""

    def __init__(self, n):
        self.left, self.met = n, False

    def __call__(self, frame, event, _):
        if not frame.f_code.co_filename.startswith(WATCHED):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.left -= 1
            if self.left == 0:
                self.met = True
                raise Interrupt
        return self

    def run(self, function):
        """What function raised, or None. The exception is kept, with all that its traceback holds."""
        before = sys.gettrace()
        sys.settrace(self)
        try:
            function()
        except Interrupt as error:
            return error
        finally:
            sys.settrace(before)
        return None


def work():
    with record_function("x"):
        pass


class Interrupts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def arguments(self):
        return {"with_calls": True, "experimental_config": _ExperimentalConfig(record_python_gc_info=True),
                "path": os.path.join(self.folder, "t.mtt")}

    def check(self, n):
        self.assertIsNone(sys.getprofile(), n)
        self.assertIsNone(threading.getprofile(), n)
        self.assertNotIn(mtprof._mtprof.gc_collection, gc.callbacks, n)
        with profile() as prof:
            work()
        self.assertEqual([event.name for event in prof.events()], ["x"], n)
        self.assertLessEqual(set(os.listdir(self.folder)), {"t.mtt", "trace.json"}, n)

    def everywhere(self, run, ends, stride=1):
        """Interrupts `run` at every place, or at each stride-th; `ends` is what a program does afterwards."""
        n, kept = 1 - stride, None
        while True:
            n += stride
            interrupter = Interrupter(n)
            box = []
            kept = interrupter.run(lambda: run(box))
            ends(box, kept)
            self.check(n)
            if not interrupter.met:
                return n

    def test_a_with_statement(self):
        """It is over when the block is left, although the exception and the profiler are kept."""
        def run(box):
            box.append(profile(**self.arguments()))
            with box[0] as prof:
                work()
                prof.step()
        self.assertGreater(self.everywhere(run, lambda box, kept: None), 100)

    def test_a_schedule(self):
        def ready(prof):
            prof.export_chrome_trace(os.path.join(self.folder, "trace.json"))

        def run(box):
            plan = schedule(wait=0, warmup=1, active=1, repeat=2)
            with profile(schedule=plan, on_trace_ready=ready, **self.arguments()) as prof:
                for _ in range(4):
                    work()
                    prof.step()
        self.everywhere(run, lambda box, kept: None, stride=5)

    def test_stopped_once_more(self):
        """start() and stop() by hand: after an interrupt in one of them a stop() ends it."""
        def run(box):
            box.append(profile(**self.arguments()))
            box[0].start()
            work()
            box[0].stop()

        def ends(box, kept):
            if box:
                try:
                    box[0].stop()
                except AssertionError as error:
                    self.assertIn("must be initialized before stopping", str(error))
        self.everywhere(run, ends)

    def test_forgotten(self):
        """The same without a stop(): the object's end ends it."""
        def run(box):
            prof = profile(**self.arguments())
            prof.start()
            work()
            prof.stop()

        def ends(box, kept):
            if kept is not None:
                kept.__traceback__ = None
        self.everywhere(run, ends)


if __name__ == "__main__":
    unittest.main()
