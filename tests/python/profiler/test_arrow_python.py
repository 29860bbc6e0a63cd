# SPDX-License-Identifier: Apache-2.0
"""Arrow streams from Python: capsules, who holds the trace, which lists have one. What is in them: test_arrow.c, and
with pyarrow, polars and DuckDB tools/peers/peer_arrow.sh."""
import gc
import sys
import unittest

from support_results import ResultsTest, record

import mtprof
from mtprof import _mtprof
from mtprof.events import EventList

try:
    import pyarrow
except ImportError:
    pyarrow = None

TABLES = ("events", "averages", "steps", "tracks", "frames", "marks", "allocations", "dataset", "parts")


class Capsules(ResultsTest):
    def assert_stream(self, capsule):
        self.assertEqual(type(capsule).__name__, "PyCapsule")
        self.assertIn('"arrow_array_stream"', repr(capsule))

    def test_every_table(self):
        trace = self.load()
        for table in TABLES:
            made = trace.arrow(table)
            self.assertEqual(repr(made), f"<ArrowTable of {table}>")
            self.assert_stream(made.__arrow_c_stream__())
            self.assert_stream(made.__arrow_c_stream__(requested_schema=None))  # each reader has its own
        self.assert_stream(trace.__arrow_c_stream__())

    def test_unknown_tables(self):
        trace = self.load()
        for bad in ("rows", "", None, 3):
            with self.assertRaisesRegex(ValueError, f"arrow: the table must be one of 'events', .*, not {bad!r}"):
                trace.arrow(bad)
        with self.assertRaisesRegex(ValueError, "there is no table 'rows'"):
            trace.events()._model.arrow_stream("rows")

    def test_a_capsule_holds_the_trace(self):
        model = _mtprof.Model.open(self.write_trace())
        self.assertEqual(tuple(model.arrow_tables()), TABLES)
        before = sys.getrefcount(model)
        capsules = [model.arrow_stream(table) for table in TABLES]
        self.assertEqual(sys.getrefcount(model), before + len(TABLES))
        del capsules
        gc.collect()
        self.assertEqual(sys.getrefcount(model), before)

    def test_wrong_rows(self):
        model = _mtprof.Model.open(self.write_trace())
        before = sys.getrefcount(model)
        with self.assertRaisesRegex(ValueError, "row 1 is event 9 of 9"):
            model.arrow_stream("events", [0, 9])
        with self.assertRaisesRegex(ValueError, "row 0 is event 4294967295 of 9"):
            model.arrow_stream("events", [2**40])
        for bad in ((0,), [None], ["x"]):
            with self.assertRaises(TypeError):
                model.arrow_stream("events", bad)
        with self.assertRaises(OverflowError):
            model.arrow_stream("events", [-1])
        self.assertEqual(sys.getrefcount(model), before)  # failures keep nothing

    def test_a_trace_without_events(self):
        for table in TABLES:
            self.assert_stream(self.load({"traceEvents": []}).arrow(table).__arrow_c_stream__())

    def test_a_profile(self):
        prof = record(3)
        self.assert_stream(prof.__arrow_c_stream__())
        self.assert_stream(prof.arrow("averages").__arrow_c_stream__())
        with self.assertRaisesRegex(AssertionError, "Profiler must be initialized before reading a table"):
            mtprof.profile().arrow()

    def test_lists(self):
        events = self.load().events()
        for made in (events, EventList(events[2:5]), events.key_averages()):
            self.assert_stream(made.__arrow_c_stream__())
            self.assert_stream(made.arrow().__arrow_c_stream__())
        self.assertEqual(repr(events.arrow()), "<ArrowTable of events>")
        self.assertEqual(repr(events.key_averages().arrow()), "<ArrowTable of averages>")
        for mixed in (EventList([*events, *record(1).events()]), EventList()):
            with self.assertRaisesRegex(TypeError, "arrow\\(\\) needs recorded events of one trace"):
                mixed.arrow()


@unittest.skipIf(pyarrow is None, "pyarrow is not installed; peer_arrow.sh has it")
class Contents(ResultsTest):
    def test_events(self):
        trace = self.load()
        table = pyarrow.table(trace)
        table.validate(full=True)
        self.assertEqual(table["name"].to_pylist(), [event.trace_name for event in trace.events()])

    def test_arrays_outlive_the_trace(self):
        start = pyarrow.table(self.load())["start_ns"]
        gc.collect()
        self.assertEqual(start.to_pylist()[:4], [0, 10000, 20000, 40000])


if __name__ == "__main__":
    unittest.main()
