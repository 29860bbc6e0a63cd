# SPDX-License-Identifier: Apache-2.0
"""Files from Python: formats, flavours, failures; nothing that was there is lost."""
import errno
import gzip
import json
import os
import threading
import unittest

from support_results import ResultsTest, record, warnings_of

import mtprof
from mtprof import _mtprof
from mtprof.events import EventList, FunctionEvent


def read(path):
    """A JSON file, gzipped or not."""
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        return json.load(file)


class Chrome(ResultsTest):
    def test_it_is_complete_and_can_be_repeated(self):
        prof = record(20)
        for name in ("a.json", "b.json.gz", "c.json"):
            self.assertIsNone(prof.export_chrome_trace(self.path(name)))
            trace = read(self.path(name))
            spans = [event for event in trace["traceEvents"] if event.get("cat") == "user_annotation"]
            self.assertEqual(len(spans), 80)
            self.assertEqual({span["pid"] for span in spans}, {os.getpid()})
        self.assertEqual(read(self.path("a.json"))["schemaVersion"], 1)

    def test_round_trip(self):
        trace = self.load()
        trace.export_chrome_trace(self.path("again.json"))
        again = mtprof.load(self.path("again.json"))
        self.assertEqual(again.key_averages(group_by_input_shape=True).table(),
                         trace.key_averages(group_by_input_shape=True).table())

    def test_flavours(self):
        trace = self.load()
        trace.export_chrome_trace(self.path("t.json"))
        trace.export_chrome_trace(self.path("m.json"), flavor="mindtorch")

        def categories(name):
            return {event.get("cat") for event in read(self.path(name))["traceEvents"]}

        self.assertIn("cpu_op", categories("t.json"))
        self.assertTrue({"op", "scope", "runtime"} <= categories("m.json"))
        trace.export_chrome_trace(self.path("l.json"), flavor="lean")
        self.assertEqual(categories("l.json"), categories("t.json"))
        keys = {key for event in read(self.path("l.json"))["traceEvents"] for key in event.get("args", ())}
        self.assertFalse(keys & {"runtime_name", "runtime_tid", "correlation_id", "device_type", "input_shapes", "stack"})
        os.environ["MINDTORCH_PROFILER_FLAVOR"] = "MindTorch"
        self.addCleanup(os.environ.pop, "MINDTORCH_PROFILER_FLAVOR")
        trace.export_chrome_trace(self.path("e.json"))
        self.assertIn("scope", categories("e.json"))
        with self.assertRaises(ValueError):
            trace.export_chrome_trace(self.path("x.json"), flavor="nonsense")
        self.assertFalse(os.path.exists(self.path("x.json")))

    def test_paths_that_cannot_be_written(self):
        trace = self.load()
        rows, events = trace.key_averages(), trace.events()
        missing = self.path("no/such/folder/x.json")
        calls = (trace.export_chrome_trace, rows.export_chrome_trace, events.export_chrome_trace,
                 trace.export_stacks,
                 events.export_stacks)
        for call in calls:
            with self.assertRaises(FileNotFoundError) as caught:
                call(missing)
            self.assertEqual((caught.exception.errno, caught.exception.filename), (errno.ENOENT, missing))
            with self.assertRaises(OSError):
                call(self.folder)
        for bad in (None, 3, "", "a\0b"):
            for call in calls:
                with self.assertRaises((TypeError, ValueError, OSError)):
                    call(bad)

    @unittest.skipUnless(os.path.exists("/dev/full"), "/dev/full is not here")
    def test_a_full_disk(self):
        with self.assertRaises(OSError) as caught:
            self.load().export_chrome_trace("/dev/full")
        self.assertEqual((caught.exception.errno, caught.exception.filename), (errno.ENOSPC, "/dev/full"))

    def test_a_failing_export_leaves_the_old_file(self):
        path = self.path("kept.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write("old")
        trace = self.load()

        def fail(what, done, total):
            raise InterruptedError("enough")

        large = record(30000)
        with self.assertRaisesRegex(InterruptedError, "enough"):
            large._results("testing").export_chrome_trace(path, progress=fail)
        broken = EventList([FunctionEvent(1, "a", 0, 0, 1, trace_name="a")])
        broken[0].thread = object()
        with self.assertRaises(TypeError):
            broken.export_chrome_trace(path)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "old")
        self.assertEqual(sorted(os.listdir(self.folder)), ["kept.json", "small.json"])
        trace.export_chrome_trace(path)
        self.assertIn("traceEvents", read(path))

    def test_others_run_meanwhile(self):
        prof = record(50000)
        turns = []
        done = threading.Event()

        def count():
            while not done.is_set():
                turns.append(1)

        thread = threading.Thread(target=count)
        thread.start()
        before = len(turns)
        prof.export_chrome_trace(self.path("large.json"))
        after = len(turns)
        done.set()
        thread.join()
        self.assertGreater(after, before)


class Lists(ResultsTest):
    def test_torchs_array(self):
        events = self.load().events()
        events.export_chrome_trace(self.path("array.json"))
        spans = read(self.path("array.json"))
        self.assertEqual(spans[1], {"name": "forward", "ph": "X", "ts": 10.0, "dur": 500.0, "tid": 1,
                                    "pid": "CPU functions", "args": {}})
        flows = [span for span in spans if span["ph"] == "s"]
        self.assertEqual(flows,
                         [{"name": "aten::addmm", "ph": "s", "ts": 40.0, "tid": 1, "pid": "CPU functions",
                                  "id": 0, "cat": "cpu_to_cuda", "args": {}}])
        self.assertEqual(len(spans), len(events) + 1)

    def test_of_nothing(self):
        EventList().export_chrome_trace(self.path("none.json"))
        self.assertEqual(read(self.path("none.json")), [])
        EventList().key_averages().export_chrome_trace(self.path("none.json"))
        self.assertEqual(read(self.path("none.json")), {"traceEvents": []})

    def test_links_and_permissions_stay(self):
        target, link = self.path("target.json"), self.path("link.json")
        with open(target, "w", encoding="utf-8") as file:
            file.write("old")
        os.chmod(target, 0o600)
        os.symlink(target, link)
        EventList().export_chrome_trace(link)
        self.assertTrue(os.path.islink(link))
        self.assertEqual(read(target), [])
        self.assertEqual(os.stat(target).st_mode & 0o777, 0o600)
        self.assertEqual(sorted(os.listdir(self.folder)), ["link.json", "target.json"])

    def test_any_name(self):
        event = FunctionEvent(1, "x", 0, 0.5, 2, trace_name='"\\\n\u2028\U0001F600')
        EventList([event, FunctionEvent(2, "untold", 0, 0, 1)]).export_chrome_trace(self.path("odd.json"))
        self.assertEqual([span["name"] for span in read(self.path("odd.json"))], ['"\\\n\u2028\U0001F600'])

    def test_rows(self):
        rows = self.load().key_averages()
        rows.export_chrome_trace(self.path("rows.json"))
        with open(self.path("rows.json"), "rb") as file:
            first = file.read()
        rows.export_chrome_trace(self.path("rows.json"))
        with open(self.path("rows.json"), "rb") as file:
            self.assertEqual(file.read(), first)
        spans = read(self.path("rows.json"))["traceEvents"]
        self.assertEqual([span["name"] for span in spans], [row.key for row in rows])
        for span, row in zip(spans, rows):
            self.assertEqual(set(span), {"name", "ph", "ts", "dur", "pid", "tid", "cat", "args"})
            self.assertEqual(span["args"]["count"], row.count)
            self.assertAlmostEqual(span["args"]["self_cpu_time_total"], row.self_cpu_time_total)
            self.assertAlmostEqual(span["args"]["cpu_time_total"], row.cpu_time_total)
        rows[0].key = 'mine "here"'
        rows.export_chrome_trace(self.path("rows.json.gz"))
        self.assertEqual(read(self.path("rows.json.gz"))["traceEvents"][0]["name"], 'mine "here"')


class Stacks(ResultsTest):
    def lines(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read().splitlines()

    def test_from_the_outermost_on(self):
        trace = self.load()
        trace.export_stacks(self.path("s"))
        frames = "main.py(3):_<module>;main.py(10):_train;model.py(20):_forward"
        self.assertEqual(self.lines("s"), [frames + " 100", frames + " 180", frames + " 100"])
        trace.export_stacks(self.path("d"), "self_cuda_time_total")
        self.assertEqual(self.lines("d"), [frames + " 50"])
        for metric in trace.events().supported_export_stacks_metrics()[1:]:
            trace.events().export_stacks(self.path("d2"), metric)
            self.assertEqual(self.lines("d2"), self.lines("d"))

    def test_the_librarys_file_is_the_same(self):
        trace = self.load()
        trace.export_stacks(self.path("s"))
        trace.export("stacks", self.path("c"))
        self.assertEqual(self.lines("s"), self.lines("c"))

    def test_failures(self):
        with self.assertRaisesRegex(ValueError,
                                    "metric should be one of: \\['self_cpu_time_total', 'self_cuda"):
            self.load().export_stacks(self.path("x"), "nonsense")
        with self.assertRaisesRegex(AssertionError, "export_stacks\\(\\) requires with_stack=True"):
            record(3)._results("testing").export_stacks(self.path("x"))
        self.assertFalse(os.path.exists(self.path("x")))


class Memory(ResultsTest):
    def test_what_is_missing_is_told(self):
        results = record(3)._results("testing")
        with warnings_of(FutureWarning) as caught, self.assertRaises(ValueError) as error:
            results.export_memory_timeline(self.path("m.json"))
        self.assertEqual(str(error.exception),
                         "record_shapes=True, profile_memory=True, with_stack=True required for memory profiling.")
        self.assertIn("`export_memory_timeline` is deprecated", str(caught[0].message))

    def test_forms(self):
        try:
            import mindtorch_v2 as torch
        except ImportError as error:
            self.skipTest(f"mindtorch_v2 is not here: {error}")
        with torch.profiler.profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
            x = torch.ones(64, 64)
            for _ in range(3):
                x = x + x
        with warnings_of(FutureWarning):
            for name in ("m.json", "m.json.gz", "m.raw.json.gz", "m.html"):
                prof.export_memory_timeline(self.path(name), device="cpu")
        times, sizes = read(self.path("m.json"))
        self.assertEqual(len(times), len(sizes))
        self.assertTrue(all(len(size) == 9 for size in sizes))
        self.assertGreaterEqual(max(sum(size) for size in sizes), 2 * 64 * 64 * 4)
        self.assertEqual(read(self.path("m.json.gz")), [times, sizes])
        self.assertTrue(all(len(item) == 4 for item in read(self.path("m.raw.json.gz"))))
        with open(self.path("m.html"), encoding="utf-8") as file:
            self.assertIn("<html", file.read().lower())

    def test_a_trace_without_tensors(self):
        with warnings_of(FutureWarning), self.assertRaisesRegex(NotImplementedError, "memory timeline"):
            self.load().export_memory_timeline(self.path("m.json"))


class Formats(ResultsTest):
    def test_all_of_them(self):
        model = _mtprof.Model.open(self.write_trace())
        for name in ("chrome", "perfetto", "stacks", "folded", "speedscope", "csv", "execution"):
            report = model.export(name, self.path("out." + name))
            self.assertEqual((report["files"], report["bytes"] > 0), (1, True), name)
            self.assertEqual(os.path.getsize(self.path("out." + name)), report["bytes_written"])
        with self.assertRaisesRegex(ValueError, "nonsense"):
            model.export("nonsense", self.path("x"))
        with self.assertRaises(ValueError):
            model.export("chrome", self.path("x"), gzip_level=99)
        with self.assertRaises(TypeError):
            model.export("chrome")

    def test_of_a_profile(self):
        prof = record(20)
        report = prof.export("pprof", self.path("t.pb.gz"))
        self.assertEqual(report["events"], 80)
        with gzip.open(self.path("t.pb.gz"), "rb") as file:
            self.assertIn(b"alloc_space", file.read())
        with self.assertRaisesRegex(ValueError, "zebra"):
            prof.export("zebra", self.path("t.zebra"))

    def test_an_execution_trace(self):
        self.load().export_execution(self.path("et.json"))
        self.assertIn("nodes", read(self.path("et.json")))


if __name__ == "__main__":
    unittest.main()
