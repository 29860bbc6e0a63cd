# SPDX-License-Identifier: Apache-2.0
"""Columns: the trace's own memory, read-only, alive as long as a view exists."""
import gc
import unittest

from support_results import ResultsTest, record

import mtprof
from mtprof import _mtprof

try:
    import numpy
except ImportError:
    numpy = None


class Buffers(ResultsTest):
    def setUp(self):
        super().setUp()
        self.model = _mtprof.Model.open(self.write_trace())

    def test_a_column_is_a_buffer(self):
        view = memoryview(self.model.column("start_ns"))
        self.assertEqual((view.format, view.itemsize, view.ndim, view.readonly, view.c_contiguous),
                         ("q", 8, 1, True, True))
        self.assertEqual(view.tolist()[:4], [0, 10000, 20000, 40000])
        with self.assertRaises(TypeError):
            view[0] = 1

    def test_every_column(self):
        recorded = 0
        for name in self.model.column_names():
            try:
                column = self.model.column(name)
            except NotImplementedError as error:
                self.assertEqual(str(error), f"column '{name}' was not recorded")
                continue
            recorded += 1
            view = memoryview(column)
            self.assertEqual(len(view), 9)
            self.assertEqual([column[i] for i in range(len(column))], view.tolist())
        self.assertGreater(recorded, 20)

    def test_plain_bytes(self):
        column = self.model.column("kind")
        self.assertEqual(list(bytes(column)), memoryview(column).tolist())

    def test_bad_names(self):
        for name in ("nothing", "", 3, None):
            with self.assertRaises(KeyError) as caught:
                self.model.column(name)
            self.assertEqual(caught.exception.args[0], name)
        with self.assertRaises(IndexError):
            self.model.column("kind")[9]

    def test_it_keeps_the_model(self):
        view = memoryview(self.model.column("end_ns"))
        values = view.tolist()
        self.model = None
        gc.collect()
        self.assertEqual(view.tolist(), values)

    def test_it_cannot_be_made(self):
        for kind in (_mtprof.Model, type(self.model.column("kind"))):
            with self.assertRaises(TypeError):
                kind()


class Lookups(ResultsTest):
    def test_by_number(self):
        model = _mtprof.Model.open(self.write_trace())
        self.assertEqual(model.device(0), ("CPU", -1))
        self.assertEqual(model.device(1), ("CUDA", 0))
        self.assertEqual(model.track(0)["tid"] in (71, 72, 7), True)
        self.assertEqual(model.name(memoryview(model.column("name"))[1]), "forward")
        self.assertEqual(model.event(1).name, "forward")
        for call in (model.event, model.name, model.track, model.device):
            for bad in (-1, 10**6, 2**40):
                with self.assertRaises(IndexError):
                    call(bad)
            with self.assertRaises(TypeError):
                call("x")
        with self.assertRaises(TypeError):
            model.use_device = 3
        with self.assertRaises(TypeError):
            model.fill(())


class OfLists(ResultsTest):
    @unittest.skipIf(numpy is None, "NumPy is not installed")
    def test_arrays_without_copies(self):
        events = record(100).events()
        columns = events.columns()
        model = events._model
        start = columns["start_ns"]
        self.assertIs(columns["start_ns"], start)
        self.assertFalse(start.flags.writeable)
        self.assertFalse(start.flags.owndata)
        self.assertEqual(start.ctypes.data, numpy.asarray(model.column("start_ns")).ctypes.data)
        self.assertEqual(len(start), len(events))
        self.assertEqual(int(columns["end_ns"][5] - start[5]), events[5]["duration_ns"])
        names = columns.names
        self.assertEqual([names[i] for i in columns["name"]], [event.trace_name for event in events])
        del events, columns, model
        gc.collect()
        self.assertGreater(int(start[0]), 0)

    @unittest.skipIf(numpy is None, "NumPy is not installed")
    def test_a_mapping(self):
        columns = self.load().events().columns()
        self.assertIn("start_ns", columns)
        self.assertNotIn("nothing", columns)
        self.assertNotIn("overload", columns)
        self.assertIsNone(columns.get("overload"))
        with self.assertRaises(KeyError):
            columns["overload"]
        self.assertEqual(len(columns), len(list(columns)))
        self.assertEqual(set(dict(columns)), set(columns.keys()))
        self.assertIn("start_ns", repr(columns))

    @unittest.skipIf(numpy is None, "NumPy is not installed")
    def test_of_some_events(self):
        events = self.load().events()
        some = mtprof.EventList(event for event in events if event.name == "aten::relu")
        self.assertEqual(some.columns()["start_ns"].tolist(), [330000, 600000])
        self.assertFalse(some.columns()["start_ns"].flags.writeable)
        events.reverse()
        self.assertEqual(events.columns()["start_ns"].tolist()[-1], 0)

    def test_of_others(self):
        events = self.load().events()
        for other in (events.key_averages(), mtprof.EventList(),
                      mtprof.EventList([mtprof.FunctionEvent(1, "a", 0, 0, 1)]),
                      mtprof.EventList([*events, *self.load().events()])):
            with self.assertRaises(TypeError):
                other.columns()

    def test_without_numpy(self):
        import sys
        from unittest import mock
        events = self.load().events()
        with mock.patch.dict(sys.modules, {"numpy": None}):
            columns = events.columns()
            self.assertIsInstance(columns["start_ns"], memoryview)
            self.assertEqual(columns["start_ns"][1], 10000)
            events.reverse()
            some = events.columns()["start_ns"]
            self.assertEqual((some[-1], some.readonly, len(some)), (0, True, 9))


if __name__ == "__main__":
    unittest.main()
