# SPDX-License-Identifier: Apache-2.0
"""mtprof.flight_recorder: what it records, its arguments, its end."""
import os
import subprocess
import sys
import tempfile
import time
import unittest
import warnings

import mtprof
import mtprof.flight


def work(recorder, steps):
    for _ in range(steps):
        with mtprof.record_function("forward"):
            with mtprof.record_function("matmul"):
                sum(range(100))
        recorder.step()


class Flight(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_every_step_has_a_summary(self):
        with mtprof.flight_recorder(self.folder, name="rank0") as recorder:
            for _ in range(5):
                work(recorder, 1)
                time.sleep(0.003)
            time.sleep(0.003)
            recorder.step()
        self.assertEqual(recorder.counts()["summaries"], 6)
        path = os.path.join(self.folder, "rank0.steps")
        steps = list(mtprof.flight.read_steps(path))
        self.assertEqual(sum(step["steps"] for step in steps), 6)
        self.assertEqual(steps[0]["step"], 0)
        calls = sum(row["calls"] for step in steps for row in step["rows"] if row["name"] == "matmul")
        self.assertEqual(calls, 5)
        self.assertEqual(steps[-1]["devices"], [])
        self.assertGreater(steps[-1]["rss_bytes"], 0)
        with open(os.path.join(self.folder, "other"), "w", encoding="utf-8") as file:
            file.write("something else")
        with self.assertRaises(ValueError):
            list(mtprof.flight.read_steps(file.name))
        with self.assertRaises(FileNotFoundError):
            list(mtprof.flight.read_steps(os.path.join(self.folder, "nowhere")))
        os.remove(path)
        with mtprof.flight_recorder(self.folder, name="rank0", steps=False) as recorder:
            work(recorder, 3)
        self.assertFalse(os.path.exists(path))

    def test_dumps_are_traces(self):
        seen = []
        with mtprof.flight_recorder(self.folder, keep="3 steps", name="rank0", on_dump=seen.append, distance=0,
                                    metadata={"job": "test", "sizes": [1, 2]}) as recorder:
            work(recorder, 10)
            dump = recorder.dump("loss is NaN")
            self.assertEqual(dump["step"], 10)
            self.assertEqual(dump["reason"], "loss is NaN")
            self.assertIn("-0001-loss_is_NaN.mtt", dump["path"])
            work(recorder, 5)
            self.assertEqual(recorder.dump()["sequence"], 2)
            self.assertEqual(recorder.counts()["steps"], 15)
        self.assertEqual([one["path"] for one in seen][0], dump["path"])
        trace = mtprof.load(dump["path"])
        names = {row.key for row in trace.key_averages()}
        self.assertLessEqual({"forward", "matmul"}, names)
        ring = mtprof.load(os.path.join(self.folder, "rank0.ring.mtt"))
        self.assertEqual({row.key: row.count for row in ring.key_averages()}["matmul"], 15)

    def test_start_and_stop(self):
        recorder = mtprof.flight_recorder(self.folder, keep="256 KiB", in_memory=True)
        with self.assertRaisesRegex(RuntimeError, "not been started"):
            recorder.step()
        recorder.start()
        with self.assertRaisesRegex(RuntimeError, "already active|has been started"):
            mtprof.flight_recorder(self.folder).start()
        work(recorder, 2)
        recorder.dump("one")
        with self.assertRaisesRegex(RuntimeError, "least distance"):
            recorder.dump("two")
        self.assertEqual(recorder.counts()["refused"], 1)
        recorder.stop()
        recorder.stop()
        with self.assertRaisesRegex(RuntimeError, "stopped"):
            recorder.step()

    def test_bad_arguments(self):
        for keep in ("", "0 steps", "5 parsecs", 12, "-1s", "0s"):
            with self.subTest(keep=keep), self.assertRaises(ValueError):
                mtprof.flight_recorder(self.folder, keep=keep)
        for bad in ({"dumps": 0}, {"distance": "soon"}, {"dumps_bytes": "much"}, {"buffer_bytes": -1}):
            with self.subTest(bad=bad), self.assertRaises(ValueError):
                mtprof.flight_recorder(self.folder, **bad)
        with self.assertRaises(TypeError):
            mtprof.flight_recorder(self.folder, on_dump=7)
        with self.assertRaises(ValueError):
            mtprof.flight_recorder(self.folder, name="a/b").start()
        with self.assertRaises(OSError):
            mtprof.flight_recorder("/nowhere/at/all").start()

    def test_a_callback_that_raises_does_not_reach_the_program(self):
        said = []
        hook, sys.unraisablehook = sys.unraisablehook, lambda what: said.append(str(what.exc_value))
        try:
            with mtprof.flight_recorder(self.folder, on_dump=lambda info: 1 / 0) as recorder:
                work(recorder, 1)
                recorder.dump()
        finally:
            sys.unraisablehook = hook
        self.assertEqual(said, ["division by zero"])

    def test_the_interpreter_ends_while_it_records(self):
        program = ("import mtprof, sys\n"
                   "recorder = mtprof.flight_recorder(sys.argv[1], name='end').start()\n"
                   "with mtprof.record_function('last'): pass\n")
        done = subprocess.run([sys.executable, "-c", program, self.folder], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # that the trace was not closed
            ring = mtprof.load(os.path.join(self.folder, "end.ring.mtt"))
        self.assertEqual([row.key for row in ring.key_averages()], ["last"])


if __name__ == "__main__":
    unittest.main()
