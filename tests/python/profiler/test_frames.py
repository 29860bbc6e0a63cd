# SPDX-License-Identifier: Apache-2.0
"""to_pandas(): events and averages as frames of words, microseconds and bytes.

Debian's build machines have no pandas: tools/peers/peer_types.sh runs this file with one.
"""
import sys
import unittest
from unittest import mock

from support_results import ResultsTest

import mtprof
from mtprof import frames

try:
    import pandas
except ImportError:
    pandas = None

NEEDS_PANDAS = "pandas is not installed; tools/peers/peer_types.sh runs this test"


class WithoutPandas(ResultsTest):
    def test_what_is_missing_is_named(self):
        trace = self.load()
        with mock.patch.dict(sys.modules, {"pandas": None}):
            for items in (trace.events(), trace.key_averages(), mtprof.EventList(trace.events()[:2])):
                with self.assertRaisesRegex(ImportError, r"to_pandas\(\) needs pandas.*pip install pandas"):
                    items.to_pandas()


@unittest.skipIf(pandas is None, NEEDS_PANDAS)
class Frames(ResultsTest):
    def test_events(self):
        events = self.load().events()
        frame = events.to_pandas()
        self.assertEqual(len(frame), len(events))
        self.assertEqual(list(frame["name"]), [event.trace_name for event in events])
        self.assertEqual(list(frame["kind"]), [event["kind"] for event in events])
        self.assertEqual(set(frame["device"]), {"CPU", "CUDA:0"})
        self.assertEqual(set(frame["thread"]), {71, 72, 7})
        self.assertEqual(frame["self_cpu_time_us"].sum(), 1100.0)
        linear = frame[frame["name"] == "aten::linear"].iloc[0]
        self.assertEqual((linear["start_us"], linear["duration_us"], linear["device_time_us"]), (20.0, 300.0, 50.0))
        self.assertEqual(linear["input_shapes"], "[[2, 3], [3, 4], []]")
        self.assertEqual(linear["stack"], "model.py(20): forward;main.py(10): train;main.py(3): <module>")
        addmm = frame[frame["name"] == "aten::addmm"].iloc[0]
        self.assertEqual(frame.loc[addmm["parent"], "name"], "aten::linear")
        self.assertEqual((addmm["sequence_nr"], addmm["cpu_memory_bytes"]), (5, 512))
        self.assertTrue(frame.loc[0, "parent"] is pandas.NA)

    def test_no_numbers_that_stand_for_something(self):
        frame = self.load().events().to_pandas()
        for raw in ("track", "flags", "inputs", "scalars", "link", "index", "first_child", "record_scope"):
            self.assertNotIn(raw, frame.columns)
        for name in ("name", "kind", "device", "input_shapes", "stack"):
            self.assertEqual(str(frame[name].dtype), "category", name)

    def test_items_say_the_same_as_columns(self):
        events = self.load().events()
        fast, slow = events.to_pandas(), frames.item_frame(events)
        for name in slow.columns:
            left, right = fast[name].tolist(), slow[name].tolist()
            if name.endswith("_us"):
                for a, b in zip(left, right):
                    self.assertAlmostEqual(a, b, places=6, msg=name)
            else:
                self.assertEqual(str(left), str(right), name)

    def test_some_events_keep_their_numbers(self):
        events = self.load().events()
        some = mtprof.EventList(event for event in events if event.name == "aten::relu")
        frame = some.to_pandas()
        self.assertEqual(frame["duration_us"].tolist(), [100.0, 40.0])
        self.assertEqual(frame.index.tolist(), [event._index for event in some])

    def test_events_of_several_traces_and_by_hand(self):
        mixed = mtprof.EventList([*self.load().events()[:2], *self.load().events()[:1],
                                  mtprof.FunctionEvent(1, "a", 0, 0, 1)])
        frame = mixed.to_pandas()
        self.assertEqual(frame["name"].tolist(), ["ProfilerStep#4", "forward", "ProfilerStep#4", "a"])
        self.assertEqual(frame["kind"].tolist(), ["scope", "scope", "scope", "op"])
        self.assertEqual(len(mtprof.EventList().to_pandas()), 0)

    def test_marks(self):
        with mtprof.profile() as prof:
            mtprof.counter("queue", 7)
            mtprof.instant("now", rows=3)
            mtprof.flow("batch", "start", 5)
        frame = prof.marks().to_pandas()
        self.assertEqual(frame["kind"].tolist(), ["counter", "instant", "flow"])
        self.assertEqual(frame["value"].tolist()[0], 7)
        self.assertEqual(frame["flow_id"].tolist()[2], 5)
        self.assertEqual(frame["metadata"].tolist()[1], {"rows": 3})

    def test_averages(self):
        rows = self.load().key_averages(group_by_input_shape=True)
        frame = rows.to_pandas()
        self.assertEqual(frame["name"].tolist(), [row.key for row in rows])
        self.assertEqual(frame["count"].tolist(), [row.count for row in rows])
        self.assertEqual(frame["self_cpu_time_us"].sum(), 1100.0)
        self.assertEqual(set(frame["kind"]), {"scope", "op", "kernel", "runtime"})
        relu = frame[frame["name"] == "aten::relu"]
        self.assertEqual(relu["input_shapes"].tolist(), ["[[2, 4]]", "[[8, 4]]"])
        self.assertEqual(relu["cpu_time_avg_us"].tolist(), [100.0, 40.0])
        self.assertNotIn("overload", frame.columns)

    def test_what_was_not_recorded_has_no_column(self):
        with mtprof.profile() as prof:
            mtprof.end(mtprof.begin("a"))
        for frame in (prof.events().to_pandas(), prof.key_averages().to_pandas()):
            for name in ("flops", "cpu_memory_bytes", "device_time_us", "input_shapes", "stack", "metadata"):
                self.assertNotIn(name, frame.columns)
        self.assertEqual(len(prof.events()[:0]), 0)


if __name__ == "__main__":
    unittest.main()
