# SPDX-License-Identifier: Apache-2.0
"""Instants, counters, flows and metadata in the results: prof.marks(), events(marks=True), CSV, mappings, reprs."""
import copy
import csv
import pickle
import unittest

from support_results import ResultsTest

import mtprof


def marked(**arguments):
    """A profile with a mark of each kind, and metadata."""
    with mtprof.profile(**arguments) as prof:
        mtprof.counter("queue", 7)
        mtprof.counter("load", 0.5)
        with mtprof.record_function("work", rows=3, file="a.csv"):
            mtprof.instant("now", why="test")
            mtprof.flow("batch", "start", 12)
        with mtprof.record_function("use"):
            mtprof.flow("batch", "end", 12)
        prof.add_metadata("run", "seven")
    return prof


class Marks(ResultsTest):
    def test_what_they_say(self):
        prof = marked()
        marks = [dict(mark.to_dict()) for mark in prof.marks()]
        for values in marks:
            self.assertEqual((values["device_type"], values["duration_ns"]), ("CPU", 0))
            self.assertGreater(values["start_ns"], 0)
        self.assertEqual([(values["name"], values["kind"]) for values in marks],
                         [("queue", "counter"), ("load", "counter"), ("now", "instant"), ("batch", "flow"),
                          ("batch", "flow")])
        self.assertEqual([values.get("value") for values in marks], [7, 0.5, None, None, None])
        self.assertEqual([(v.get("flow_id"), v.get("flow_phase")) for v in marks[3:]], [(12, "start"), (12, "end")])
        self.assertEqual(marks[2]["metadata"], {"why": "test"})
        self.assertEqual([mark["name"] for mark in prof.marks("counter")], ["queue", "load"])
        with self.assertRaisesRegex(ValueError, "'instant', 'counter' or 'flow', not 'scope'"):
            prof.marks("scope")

    def test_they_are_events_where_asked_for(self):
        prof = marked()
        self.assertEqual([event.name for event in prof.events()], ["work", "use"])
        self.assertEqual([event.name for event in prof.events(marks=True)],
                         ["queue", "load", "work", "now", "batch", "use", "batch"])
        self.assertEqual({row.key for row in prof.key_averages()}, {"work", "use"})
        self.assertIs(prof.events(), prof.events())

    def test_they_can_be_copied(self):
        mark = marked().marks()[0]
        for other in (copy.copy(mark), pickle.loads(pickle.dumps(mark))):
            self.assertEqual(other.to_dict(), mark.to_dict())

    def test_a_file_says_the_same(self):
        prof = marked()
        prof.save(self.path("t.mtt"))
        prof.export_chrome_trace(self.path("t.json"))
        expected = [mark.to_dict() for mark in prof.marks()]
        self.assertEqual([mark.to_dict() for mark in mtprof.load(self.path("t.mtt")).marks()], expected)
        foreign = [mark.to_dict() for mark in mtprof.load(self.path("t.json")).marks()]
        for key in ("name", "kind", "value", "flow_id", "flow_phase"):
            self.assertEqual([values.get(key) for values in foreign], [values.get(key) for values in expected], key)

    def test_metadata(self):
        prof = marked()
        work, use = prof.events()
        self.assertEqual(work["metadata"], {"rows": 3, "file": "a.csv"})
        self.assertIn("metadata", work.to_dict())
        self.assertNotIn("metadata", use)
        self.assertEqual(prof.metadata()["run"], "seven")

    def test_csv(self):
        prof = marked()
        prof.save(self.path("t.mtt"))
        mtprof.load(self.path("t.mtt")).export("csv", self.path("t.csv"))
        with open(self.path("t.csv"), newline="", encoding="utf-8") as file:
            rows = {(row["name"], row["phase"]): row for row in csv.DictReader(file)}
        self.assertEqual((rows["queue", ""]["kind"], rows["queue", ""]["value"]), ("counter", "7"))
        self.assertEqual(rows["load", ""]["value"], "0.5")
        self.assertEqual((rows["batch", "start"]["kind"], rows["batch", "end"]["value"]), ("flow", "12"))
        self.assertEqual(rows["now", ""]["metadata"], '{"why": "test"}')
        self.assertEqual(rows["work", ""]["metadata"], '{"rows": 3, "file": "a.csv"}')


class Reprs(ResultsTest):
    def test_a_profile_says_where_it_is(self):
        prof = mtprof.profile()
        self.assertEqual(repr(prof), "<profile: not started>")
        with prof:
            self.assertEqual(repr(prof), "<profile: recording>")
            mtprof.end(mtprof.begin("a"))
            prof.step()
            self.assertEqual(repr(prof), "<profile: recording, step 1>")
        self.assertEqual(repr(prof), "<profile: stopped, step 1>")
        prof.events()
        self.assertRegex(repr(prof), "^<profile: stopped, step 1; 1 event, none lost, .*>$")
        self.assertRegex(repr(prof.profiler), "^<profiler of <profile: .*>>$")

    def test_others(self):
        trace = self.load()
        self.assertRegex(repr(trace), r"^<Trace '.*small.json': 1.000ms of process 70, 3 tracks>$")
        self.assertEqual(repr(trace._models[0]), "<Model of process 70: 1.000 ms, 3 tracks>")
        self.assertEqual(repr(trace._models[0].column("name")), "<Column of 9 items of 4 bytes>")
        self.assertEqual(repr(mtprof.record_function("x")), "record_function('x')")
        self.assertEqual(repr(mtprof.record_function("x", "in", rows=3)), "record_function('x', 'in', rows=3)")
        self.assertEqual(repr(mtprof.ExecutionTraceObserver()), "<ExecutionTraceObserver without a file>")
        self.assertRegex(repr(trace.health()), "^<Health 9 events, none lost, .*>$")


if __name__ == "__main__":
    unittest.main()
