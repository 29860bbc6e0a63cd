# SPDX-License-Identifier: Apache-2.0
"""key_averages(): groups, rows, totals; in C and item by item with the same results."""
import copy
import gc
import pickle
import random
import unittest
import weakref

from support_results import ResultsTest, record, small_trace, span, warnings_of

from mtprof import _mtprof
from mtprof.averages import rows_of_items, rows_of_model
from mtprof.enums import DeviceType
from mtprof.events import EventList, FunctionEvent, FunctionEventAvg
from mtprof.results import Results

NAMES = ("key", "count", "node_id", "is_async", "is_remote", "use_device", "input_shapes", "overload_name",
         "stack",
         "scope", "device_type", "is_legacy", "is_user_annotation", "cpu_memory_usage", "device_memory_usage",
         "self_cpu_memory_usage", "self_device_memory_usage", "flops", "cpu_parent", "cpu_children")
TIMES = ("cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total", "cpu_time",
         "device_time")


class Groups(ResultsTest):
    def setUp(self):
        super().setUp()
        self.trace = self.load()

    def keys(self, **options):
        return [(row.key, row.count) for row in self.trace.key_averages(**options)]

    def test_by_name_in_order_of_appearance(self):
        self.assertEqual(self.keys(),
                         [("ProfilerStep*", 1), ("forward", 1), ("aten::linear", 1), ("aten::addmm", 1),
                                       ("cudaLaunchKernel", 1), ("gemm", 1), ("aten::relu", 2),
                                       ("AddmmBackward0", 1)])

    def test_by_shapes(self):
        rows = [row for row in self.trace.key_averages(group_by_input_shape=True) if row.key == "aten::relu"]
        self.assertEqual([(row.input_shapes, row.count) for row in rows], [([[2, 4]], 1), ([[8, 4]], 1)])
        self.assertTrue(all(row.input_shapes == "" for row in self.trace.key_averages()))

    def test_by_stack(self):
        rows = {row.key: row.stack for row in self.trace.key_averages(group_by_stack_n=2)}
        self.assertEqual(rows["aten::addmm"], ["model.py(20): forward", "main.py(10): train"])
        self.assertEqual(rows["forward"], [])
        self.assertTrue(all(row.stack == [] for row in self.trace.key_averages()))

    def test_python_functions(self):
        trace = small_trace()
        trace["traceEvents"].append(span("main.py(1): train", 0, 900, category="python_function"))
        trace = self.load(trace)
        ops = [row.key for row in self.trace.key_averages()]
        for name, results in (("all", trace), ("list", trace.events()), ("items", EventList(trace.events()))):
            with self.subTest(of=name):
                self.assertEqual([row.key for row in results.key_averages()], ops)
                self.assertEqual([row.key for row in results.key_averages(include_python_functions=False)], ops)
                with_them = results.key_averages(include_python_functions=True)
                self.assertEqual(sorted(row.key for row in with_them), sorted(ops + ["main.py(1): train"]))
                self.assertEqual([row.key for row in with_them.key_averages()], ops)
        rows = pickle.loads(pickle.dumps(trace.key_averages(include_python_functions=True)))
        self.assertEqual([row.key for row in rows.key_averages(include_python_functions=False)], ops)
        both = Results([trace._latest(), self.trace._latest()])
        self.assertNotIn("main.py(1): train", [row.key for row in both.key_averages()])
        self.assertIn("main.py(1): train", [row.key for row in both.key_averages(include_python_functions=True)])

    def test_python_functions_where_there_are_no_ops(self):
        trace = self.load({"traceEvents": [span("main.py(1): train", 0, 90, category="python_function"),
                                           span("mine", 1, 20, category="user_annotation")]})
        for results in (trace, trace.events(), EventList(trace.events())):
            self.assertEqual([row.key for row in results.key_averages()], ["main.py(1): train", "mine"])
            self.assertEqual([row.key for row in results.key_averages(include_python_functions=False)], ["mine"])

    def test_odd_numbers_of_frames(self):
        many = self.trace.key_averages(group_by_stack_n=10**12)
        self.assertEqual(len(many.table()), len(self.trace.key_averages(group_by_stack_n=3).table()))
        self.assertEqual(len(self.trace.key_averages(group_by_stack_n=-5)), len(self.trace.key_averages()))
        self.assertEqual(len(EventList(self.trace.events()).key_averages(group_by_stack_n=10**12)), len(many))
        with self.assertRaises((TypeError, ValueError)):
            self.trace.key_averages(group_by_stack_n="x")

    def test_an_annotation_and_an_op_of_one_name_are_two(self):
        trace = small_trace()
        trace["traceEvents"] = [span("same", 0, 5, **{"External id": 1}),
                                span("same", 10, 5, "user_annotation"),
                                span("same", 20, 5, "kernel", thread=7, process=0, device=0, stream=7,
                                     correlation=5)]
        rows = self.load(trace).key_averages()
        self.assertEqual([(row.is_user_annotation, row.device_type) for row in rows],
                         [(False, DeviceType.CPU), (True, DeviceType.CPU), (False, DeviceType.CUDA)])

    def test_regrouping(self):
        rows = self.trace.key_averages()
        self.assertEqual(len(rows.key_averages(group_by_input_shapes=True)), len(rows) + 1)
        self.assertEqual(len(rows.key_averages(group_by_input_shapes=True).key_averages()), len(rows))
        by_events = self.trace.events().key_averages(group_by_input_shapes=True)
        self.assertEqual(len(by_events.key_averages()), len(rows))
        by_hand = EventList(list(by_events), use_device="cuda")
        self.assertEqual([row.count for row in by_hand.key_averages()], [row.count for row in rows])

    def test_rows_have_their_first_events_family(self):
        rows = {row.key: row for row in self.trace.key_averages()}
        events = self.trace.events()
        self.assertIs(rows["aten::addmm"].cpu_parent, self.named(events, "aten::linear"))
        self.assertEqual([child.name for child in rows["forward"].cpu_children],
                         ["aten::linear", "aten::relu"])
        self.assertIsNone(rows["gemm"].cpu_parent)

    def test_c_and_python_agree(self):
        events = self.trace.events()
        model = events[0]._model
        for shapes in (False, True):
            for stack_n in (0, 1, 5):
                for overload in (False, True):
                    fast = rows_of_model(model, shapes, stack_n, overload)
                    slow = rows_of_items(events, shapes, stack_n, overload)
                    self.same(fast, slow)

    def test_c_and_python_agree_on_recorded_scopes(self):
        events = record(40).events()
        self.same(rows_of_model(events[0]._model), rows_of_items(events))

    def same(self, fast, slow):
        self.assertEqual(len(fast), len(slow))
        for ours, theirs in zip(fast, slow):
            for name in NAMES:
                self.assertEqual(getattr(ours, name), getattr(theirs, name), (name, ours.key))
            for name in TIMES:
                self.assertAlmostEqual(getattr(ours, name), getattr(theirs, name), places=3)

    def test_changed_events_change_the_averages(self):
        events = self.trace.events()
        relu = [event for event in events if event.name == "aten::relu"]
        relu[0].name = "mine"
        self.assertIn(("mine", 1), self.keys())
        self.assertIn(("aten::relu", 1), self.keys())
        events.remove(relu[0])
        self.assertNotIn(("mine", 1), self.keys())

    def test_random_lists(self):
        choose = random.Random(3)
        for _ in range(20):
            events = EventList()
            for i in range(60):
                start = choose.randrange(1000)
                event = FunctionEvent(i, choose.choice("abc"), choose.randrange(2), start,
                                      start + choose.randrange(50),
                                      input_shapes=[[choose.randrange(2)]], stack=[], overload_name="",
                                      cpu_memory_usage=choose.randrange(100), flops=choose.choice((None, 5)))
                events.append(event)
            rows = events.key_averages(group_by_input_shapes=True)
            self.assertEqual(sum(row.count for row in rows), 60)
            self.assertAlmostEqual(sum(row.cpu_time_total for row in rows),
                                   sum(e.cpu_time_total for e in events))
            self.assertEqual(sum(row.flops or 0 for row in rows), sum(e.flops or 0 for e in events))


class Rows(unittest.TestCase):
    def test_a_new_row(self):
        row = FunctionEventAvg()
        expected = dict(key=None, count=0, node_id=0, is_async=False, is_remote=False, use_device=None,
                        cpu_time_total=0,
                        device_time_total=0, self_cpu_time_total=0, self_device_time_total=0,
                        input_shapes=None,
                        overload_name=None, stack=None, scope=None, cpu_memory_usage=0, device_memory_usage=0,
                        self_cpu_memory_usage=0, self_device_memory_usage=0, cpu_children=None,
                        cpu_parent=None,
                        device_type=DeviceType.CPU, is_legacy=False, flops=0, is_user_annotation=False)
        for name, value in expected.items():
            self.assertEqual(getattr(row, name), value, name)
        self.assertEqual((row.cpu_time, row.device_time, row.cpu_time_str), (0.0, 0.0, "0.000us"))

    def test_adding(self):
        row = FunctionEventAvg()
        event = FunctionEvent(1, "a", 3, 0, 5, input_shapes=[[2]], stack=["s"], flops=7, scope=7,
                              is_user_annotation=True,
                              cpu_memory_usage=10)
        self.assertIs(row.add(event), row)
        before = row
        row += event
        self.assertIs(row, before)
        self.assertEqual((row.key, row.count, row.cpu_time_total, row.cpu_time, row.flops),
                         ("a", 2, 10, 5.0, 14))
        self.assertEqual((row.input_shapes, row.stack, row.scope, row.is_user_annotation),
                         ([[2]], ["s"], 7, True))
        self.assertEqual((row.cpu_memory_usage, row.node_id), (20, -1))
        row.add(row)
        self.assertEqual(row.count, 4)

    def test_adding_others(self):
        row = FunctionEventAvg().add(FunctionEvent(1, "a", 0, 0, 1))
        with self.assertRaisesRegex(AssertionError, "Expected keys to match, but got b vs a"):
            row.add(FunctionEvent(1, "b", 0, 0, 1))
        with self.assertRaisesRegex(AssertionError,
                                    "Expected other to be a FunctionEvent or FunctionEventAvg"):
            row.add([])
        self.assertEqual(row.count, 1)

    def test_flops_of_none(self):
        row = FunctionEventAvg().add(FunctionEvent(1, "a", 0, 0, 1, flops=None))
        self.assertEqual(row.add(FunctionEvent(1, "a", 0, 0, 1, flops=3)).flops, 3)

    def test_not_subscriptable(self):
        row = FunctionEventAvg()
        with self.assertRaisesRegex(TypeError, "'FunctionEventAvg' object is not subscriptable"):
            row["key"]
        with self.assertRaises(TypeError):
            "key" in row

    def test_names(self):
        row = FunctionEventAvg().add(FunctionEvent(1, "a", 0, 0, 5))
        self.assertEqual((row.cpu_time_avg, row.self_cpu_time, row.npu_time, row.self_npu_time_total),
                         (5.0, 5, 0.0, 0))
        with warnings_of(FutureWarning) as caught:
            self.assertEqual(row.cuda_time, 0.0)
        self.assertEqual(str(caught[0].message),
                         "`cuda_time` is deprecated, please use `device_time` instead.")
        with self.assertRaises(AttributeError):
            row.cuda_time_total

    def test_repr_is_torchs(self):
        row = FunctionEventAvg().add(FunctionEvent(1, "a", 0, 0, 5))
        self.assertEqual(repr(row), "<FunctionEventAvg key=a self_cpu_time=5.000us cpu_time=5.000us  "
                                    "self_cuda_time=0.000us cuda_time=0.000us input_shapes=None cpu_memory_usage=0 "
                                    "cuda_memory_usage=0>")
        row.use_device = "npu"
        self.assertIn("self_npu_time=0.000us npu_time=", repr(row))

    def test_mindtorchs_dict(self):
        row = FunctionEventAvg({"name": "add", "count": 2, "total_time_ns": 3000, "self_time_ns": 1000})
        self.assertEqual((row.key, row.count, row.cpu_time_total, row.self_cpu_time_total),
                         ("add", 2, 3.0, 1.0))
        self.assertEqual((row.device_type, row.input_shapes, row.stack, row.scope, row.flops),
                         ("CPU", "", [], 0, 0))
        self.assertEqual(row._row["total_time_ns"], 3000)
        again = row.__class__(row._row)
        self.assertEqual(again._row, row._row)
        self.assertEqual(FunctionEventAvg({"name": "x", "device_type": "NPU"}).device_type,
                         DeviceType.PrivateUse1)

    def test_copies(self):
        row = FunctionEventAvg().add(FunctionEvent(1, "a", 0, 0, 5))
        for other in (copy.copy(row), copy.deepcopy(row), pickle.loads(pickle.dumps(row))):
            self.assertEqual(repr(other), repr(row))


class RecordedRows(ResultsTest):
    """Rows over the library's averages: computed when they are read, a user's from the moment they are set."""

    def setUp(self):
        super().setUp()
        self.rows = self.load().key_averages(group_by_input_shape=True, group_by_stack_n=2)
        self.row = next(row for row in self.rows if row.key == "aten::addmm")

    def test_every_attribute_can_be_set(self):
        for name in NAMES + TIMES[:4]:
            mine = object()
            setattr(self.row, name, mine)
            self.assertIs(getattr(self.row, name), mine)
            delattr(self.row, name)
            self.assertIsNot(getattr(self.row, name, None), mine)
        with self.assertRaisesRegex(AttributeError, "'FunctionEventAvg' object has no attribute 'nothing'"):
            self.row.nothing

    def test_names_made_at_run_time(self):
        self.assertEqual(getattr(self.row, "".join(["k", "ey"])), "aten::addmm")

    def test_their_lists_can_be_changed(self):
        self.row.stack.append("mine.py(1): more")
        self.row.input_shapes.append([77])
        self.assertEqual((self.row.stack[-1], self.row.input_shapes[-1]), ("mine.py(1): more", [77]))
        table = self.rows.table(row_limit=-1)
        self.assertIn("mine.py(1): more", table)
        self.assertIn("[77]]", table)

    def test_their_dictionary_has_all_of_it(self):
        self.row.count = 5
        values = vars(self.row)
        self.assertEqual((values["key"], values["count"], values["is_legacy"]), ("aten::addmm", 5, False))
        self.assertEqual(set(NAMES + TIMES[:4]) - set(values), {"cpu_parent", "cpu_children"})
        values["key"] = "renamed"
        self.assertEqual(self.row.key, "renamed")
        self.assertIn("renamed", self.rows.table())
        self.row.__dict__ = {}
        self.assertEqual(self.row.count, 0)
        with self.assertRaisesRegex(AttributeError, "'FunctionEventAvg' object has no attribute 'key'"):
            self.row.key
        with self.assertRaises(AttributeError):
            self.rows.table()

    def test_copies_stand_alone(self):
        self.assertIsNotNone(self.row.cpu_parent)
        for other in (copy.copy(self.row), copy.deepcopy(self.row), pickle.loads(pickle.dumps(self.row))):
            self.assertEqual(repr(other), repr(self.row))
            self.assertEqual((other.cpu_parent, other.cpu_children, other.stack), (None, None, self.row.stack))

    def test_they_outlive_their_list_and_profile(self):
        row = record(5).key_averages()[0]
        gc.collect()
        self.assertEqual((type(row.key), row.count > 0, row.cpu_time_total > 0), (str, True, True))

    def test_cycles_are_collected(self):
        rows = record(5).key_averages()
        gone = weakref.ref(rows[0])
        rows[0].mine = rows
        del rows
        gc.collect()
        self.assertIsNone(gone())

    def test_changed_and_unchanged_rows_in_one_table(self):
        whole = self.rows.table(row_limit=-1)
        others = EventList([pickle.loads(pickle.dumps(row)) if i % 2 else row for i, row in enumerate(self.rows)],
                           use_device="cuda", profile_memory=True, with_flops=True)
        self.assertEqual(others.table(row_limit=-1), whole)

    def test_values_that_are_no_numbers(self):
        for name, value in (("count", "x"), ("cpu_time_total", "x"), ("cpu_memory_usage", 2**70),
                            ("node_id", 2**70), ("stack", 3)):
            rows = self.load().key_averages()
            setattr(rows[0], name, value)
            with self.assertRaises((TypeError, ValueError, OverflowError), msg=name):
                rows.table()
        with self.assertRaisesRegex(TypeError, "type must be made of Row"):
            self.rows._model.averages(int)


class Totals(ResultsTest):
    def test_total_average(self):
        trace = self.load()
        events, rows = trace.events(), trace.key_averages()
        for items in (events, EventList(events), rows):
            total = items.total_average()
            self.assertEqual((total.key, total.count), ("Total", 9))
            self.assertAlmostEqual(total.self_cpu_time_total, 1100.0)
            self.assertAlmostEqual(items.self_cpu_time_total, 1100.0)
            self.assertEqual(total.node_id, -1)
            self.assertEqual(total.is_user_annotation, items[-1].is_user_annotation)
            self.assertEqual(total.cpu_memory_usage, sum(item.cpu_memory_usage for item in items))

    def test_of_nothing(self):
        total = EventList().total_average()
        self.assertEqual((total.key, total.count, total.cpu_time_total, total.node_id), ("Total", 0, 0, 0))
        self.assertEqual(EventList().self_cpu_time_total, 0)

    def test_of_something_else(self):
        with self.assertRaises(AssertionError):
            EventList([3]).total_average()

    def test_mindtorchs_rows(self):
        rows = self.load().key_averages()._build_rows()
        self.assertEqual(rows[3]["name"], "aten::addmm")
        self.assertEqual((rows[3]["self_time_ns"], rows[3]["total_time_ns"]), (180000, 200000))


class SeveralSessions(ResultsTest):
    """Results of several models, as acc_events makes them."""

    def test_they_are_added_up(self):
        path = self.write_trace()
        results = Results([_mtprof.Model.open(path) for _ in range(2)], use_device="cuda",
                          profile_memory=True)
        events, rows = results.events(), results.key_averages()
        self.assertEqual(len(events), 18)
        self.assertEqual([event.name for event in events[:9]], [event.name for event in events[9:]])
        self.assertIsNot(events[0], events[9])
        once = self.load().key_averages()
        self.assertEqual([(row.key, row.count) for row in rows], [(row.key, 2 * row.count) for row in once])
        self.assertEqual(results.total_average().count, 18)
        self.assertEqual(len(rows.key_averages(group_by_input_shapes=True)), len(rows) + 1)
        self.assertEqual([row.count for row in events.key_averages()], [row.count for row in rows])
        self.assertIn("aten::relu", rows.table())
        self.assertEqual(results.health().events, 18)
        results.export_chrome_trace(self.path("latest.json"))

    def test_of_none(self):
        results = Results([], reason=lambda: "nothing was recorded")
        with warnings_of(UserWarning) as caught:
            self.assertEqual(results.events(), [])
            self.assertEqual(results.key_averages(), [])
        self.assertEqual([str(warning.message) for warning in caught], ["nothing was recorded"])
        self.assertEqual(results.health().reason, "nothing was recorded")
        self.assertIn("nothing was recorded", str(results.health()))
        with self.assertRaises(RuntimeError):
            results.export_chrome_trace(self.path("x.json"))


if __name__ == "__main__":
    unittest.main()
