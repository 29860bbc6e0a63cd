# SPDX-License-Identifier: Apache-2.0
"""mindtorch_v2.profiler and mindtorch_v2.autograd.profiler: torch's names where torch has them."""
import gc
import json
import os
import tempfile
import unittest
import warnings
import weakref

import mindtorch_v2 as torch
import mtprof
from mindtorch_v2.autograd import profiler as legacy
from mindtorch_v2.profiler import ProfilerActivity, profile, record_function


def op_names(events):
    return [event.name for event in events if event.name.startswith("aten::")]


class Names(unittest.TestCase):
    def test_where_torch_has_them(self):
        import mindtorch_v2.profiler.profiler as inner
        self.assertEqual(set(torch.profiler.__all__), {
            "profile", "schedule", "supported_activities", "tensorboard_trace_handler", "ProfilerAction",
            "ProfilerActivity", "kineto_available", "DeviceType", "record_function",
            "ExecutionTraceObserver"})
        for name in torch.profiler.__all__:
            self.assertIs(getattr(torch.profiler, name), getattr(mtprof, name), name)
            self.assertIs(getattr(inner, name), getattr(mtprof, name), name)
        for name in ("_KinetoProfile", "_ExperimentalConfig", "RecordScope", "KinetoStepTracker", "itt"):
            self.assertTrue(hasattr(torch.profiler, name), name)
        for name in ("profile", "record_function", "emit_itt", "emit_nvtx", "load_nvprof", "EnforceUnique",
                     "parse_nvprof_trace", "KinetoStepTracker", "EventList", "FunctionEvent",
                     "MemRecordsAcc"):
            self.assertTrue(hasattr(legacy, name), name)
        self.assertIs(legacy.record_function, record_function)

    def test_sources_name_no_other_framework(self):
        import mindtorch_v2.profiler.profiler as inner
        with open(inner.__file__, encoding="utf-8") as file:
            self.assertNotIn("mindspore", file.read())

    def test_itt_is_not_there(self):
        self.assertFalse(torch.profiler.itt.is_available())
        for call in (lambda: torch.profiler.itt.range_push("x"), torch.profiler.itt.range_pop,
                     lambda: torch.profiler.itt.mark("x"),
                     lambda: torch.profiler.itt.range("{}", 1).__enter__()):
            with self.assertRaises(RuntimeError):
                call()


class Ops(unittest.TestCase):
    def test_ops_and_scopes(self):
        a = torch.ones(2, 3)
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
            with record_function("mine"):
                torch.add(a, a)
        events = prof.events()
        add, = [event for event in events if event.name == "aten::add"]
        self.assertEqual(add.cpu_parent.name, "mine")
        self.assertEqual(add.input_shapes[:2], [[2, 3], [2, 3]])
        self.assertFalse(add.is_user_annotation)
        self.assertEqual(add.scope, 0)

    def test_no_tensor_is_kept_alive(self):
        with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
            a = torch.ones(4)
            b = a + a
            gone = weakref.ref(b)
            del b
            gc.collect()
            self.assertIsNone(gone())
        self.assertIn("aten::add", op_names(prof.events()))


class Legacy(unittest.TestCase):
    def test_block(self):
        with legacy.profile(record_shapes=True) as prof:
            torch.ones(2) + 1
        self.assertIn("aten::add", op_names(prof.function_events))
        self.assertIsInstance(prof.function_events, legacy.EventList)
        self.assertGreater(prof.self_cpu_time_total, 0)
        self.assertEqual(prof.total_average().key, "Total")
        self.assertIn("aten::add", [row.key for row in prof.key_averages(group_by_input_shape=True)])
        self.assertIn("Self CPU time total", prof.table(sort_by="cpu_time_total", row_limit=3))
        self.assertIn("aten::add", str(prof))
        self.assertRegex(repr(prof), r"^(\[<FunctionEvent|<EventList of \d+ events: )")
        self.assertTrue(prof.kineto_results.events())
        self.assertEqual(prof.health().lost, 0)

    def test_exports(self):
        with legacy.profile(with_stack=True) as prof:
            torch.ones(2) + 1
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.json")
            prof.export_chrome_trace(path, metadata={"key": [1, 2]})
            with open(path, encoding="utf-8") as file:
                trace = json.load(file)
            self.assertIn("aten::add", [event.get("name") for event in trace["traceEvents"]])
            self.assertEqual(trace["key"], [1, 2])
            prof.export_stacks(os.path.join(folder, "s"))
        with legacy.profile() as prof:
            pass
        with self.assertRaises(AssertionError):
            prof.export_stacks("s")

    def test_is_not_reentrant(self):
        prof = legacy.profile()
        with prof:
            with self.assertRaisesRegex(RuntimeError, "Profiler context manager is not reentrant"):
                prof.__enter__()
        with self.assertRaisesRegex(RuntimeError, "Profiler context manager is not reentrant"):
            prof.__enter__()

    def test_beside_another(self):
        with legacy.profile() as outer:
            with self.assertRaises(RuntimeError):
                with legacy.profile():
                    self.fail("entered")
            torch.ones(1)
        self.assertIn("aten::ones", op_names(outer.function_events))

    def test_before_the_block(self):
        prof = legacy.profile()
        unfinished = "<unfinished torch.autograd.profile>"
        self.assertEqual((len(prof.function_events), str(prof), repr(prof), prof.table()),
                         (0, unfinished, unfinished, ""))
        self.assertEqual((prof.self_cpu_time_total, len(prof.key_averages())), (0, 0))
        self.assertIsNone(prof.kineto_results)
        self.assertIsNone(prof.trace_id)
        self.assertIs(prof.__exit__(None, None, None), False)
        with self.assertRaises(AssertionError):
            prof.export_chrome_trace("x")

    def test_disabled(self):
        prof = legacy.profile(enabled=False)
        with prof as entered:
            self.assertIsNone(entered)
            with profile():  # nothing is active
                pass
        self.assertEqual(len(prof.function_events), 0)

    def test_devices(self):
        for options, said in (({"use_device": "foo"}, ["The foo is not a valid device option."]),
                              ({"use_device": "xpu"}, ["XPU is not available, disabling XPU profiling"]),
                              ({"use_cuda": True},
                               ["The attribute `use_cuda` will be deprecated soon, please use "
                                "``use_device = 'cuda'`` instead.",
                                "CUDA is not available, disabling CUDA profiling"])):
            if "use_cuda" in options and len(torch.profiler.supported_activities()) > 1:
                continue
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                self.assertIsNone(legacy.profile(**options).use_device)
            self.assertEqual([str(one.message) for one in caught], said)
        with self.assertRaisesRegex(AssertionError, "use_kineto=True"):
            legacy.profile(use_cpu=False)
        with self.assertRaisesRegex(AssertionError, "No activities specified"):
            legacy.profile(use_cpu=False, use_kineto=True)

    def test_toggle(self):
        with legacy.profile() as prof:
            prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
            torch.ones(1)
            prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
            torch.zeros(1)
        self.assertNotIn("aten::ones", op_names(prof.function_events))
        self.assertIn("aten::zeros", op_names(prof.function_events))

    def test_body_raises(self):
        with self.assertRaises(KeyError):
            with legacy.profile() as prof:
                torch.ones(1)
                raise KeyError("x")
        self.assertIn("aten::ones", op_names(prof.function_events))


class Others(unittest.TestCase):
    def test_emitters(self):
        with legacy.emit_itt(enabled=False), legacy.emit_nvtx(enabled=False):
            pass
        for kind, error, word in ((legacy.emit_itt, RuntimeError, "ITT"),
                                  (legacy.emit_nvtx, AssertionError, "NVTX")):
            emitter = kind()
            with self.assertRaises(error):
                emitter.__enter__()
            with self.assertRaisesRegex(RuntimeError, f"{word} annotation context manager is not reentrant"):
                emitter.__enter__()

    def test_nvprof_says_what_it_is(self):
        for call in (legacy.load_nvprof, legacy.parse_nvprof_trace):
            with self.assertRaisesRegex(NotImplementedError, "'file'"):
                call("file")

    def test_enforce_unique(self):
        unique = legacy.EnforceUnique()
        unique.see(1, 2)
        unique.see(1)
        with self.assertRaisesRegex(RuntimeError, r"duplicate key: \(1, 2\)"):
            unique.see(1, 2)


if __name__ == "__main__":
    unittest.main()
