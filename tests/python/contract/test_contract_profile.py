# SPDX-License-Identifier: Apache-2.0
"""torch-contract 0 and 1: names, arguments and the life cycle, as users of mindtorch_v2 meet them.

What other tests have is not repeated: all schedules up to six steps against torch (test_schedule_goldens),
callbacks that raise or call back in (test_profile_misuse), threads (test_profile_threads), ids of traces,
observers and metadata (test_profile_lifecycle), an accelerator of one's own (test_activities).
"""
import inspect
import os
import subprocess
import sys
import threading
import time
import unittest
import warnings

from support_contract import ContractTest, profiled, torch, train
from mindtorch_v2.profiler import (ProfilerAction, ProfilerActivity, _ExperimentalConfig, _KinetoProfile,
                                   kineto_available, profile, record_function, schedule, supported_activities)

CPU = [ProfilerActivity.CPU]
LETTERS = {"n": ProfilerAction.NONE, "w": ProfilerAction.WARMUP, "r": ProfilerAction.RECORD,
           "s": ProfilerAction.RECORD_AND_SAVE}


class Names(ContractTest):
    """torch-contract 0.1."""

    def test_profiler_module(self):
        module = torch.profiler
        self.assertEqual(set(module.__all__),
                         {"profile", "schedule", "supported_activities", "tensorboard_trace_handler",
                          "ProfilerAction",
                          "ProfilerActivity", "kineto_available", "DeviceType", "record_function",
                          "ExecutionTraceObserver"})
        for name in ["_KinetoProfile", "_ExperimentalConfig", "RecordScope", "KinetoStepTracker", "itt",
                     *module.__all__]:
            self.assertTrue(hasattr(module, name), name)
        for name in ("profile", "schedule", "record_function", "ProfilerActivity", "ProfilerAction"):
            self.assertIs(getattr(module.profiler, name), getattr(module, name), name)

    def test_autograd_modules(self):
        for name in ("profile", "record_function", "emit_itt", "emit_nvtx", "load_nvprof", "EnforceUnique",
                     "parse_nvprof_trace", "KinetoStepTracker", "EventList", "FunctionEvent",
                     "MemRecordsAcc"):
            self.assertTrue(hasattr(torch.autograd.profiler, name), name)
        for name in ("EventList", "FormattedTimesMixin", "Interval", "Kernel", "FunctionEvent",
                     "FunctionEventAvg",
                     "StringTable", "MemRecordsAcc"):
            self.assertTrue(hasattr(torch.autograd.profiler_util, name), name)
        self.assertIs(torch.autograd.profiler.record_function, record_function)
        self.assertIsInstance(profiled().events(), torch.autograd.profiler_util.EventList)
        self.assertIsInstance(profiled().events()[0], torch.autograd.profiler_util.FunctionEvent)
        self.assertIsInstance(profiled().key_averages()[0], torch.autograd.profiler_util.FunctionEventAvg)

    def test_supported(self):
        self.assertIsInstance(supported_activities(), set)
        self.assertIn(ProfilerActivity.CPU, supported_activities())
        self.assertEqual(ProfilerActivity.NPU in supported_activities(), torch.npu.is_available())
        self.assertIs(type(kineto_available()), bool)

    def test_nothing_depends_on_mindspore(self):
        """Nothing depends on it."""
        done = subprocess.run([sys.executable, "-c", "import sys; sys.modules['mindspore'] = None\n"
                               "import mindtorch_v2 as torch\n"
                               "with torch.profiler.profile() as p: torch.ones(2)\n"
                               "assert p.events()"], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        self.assertEqual(done.returncode, 0, done.stderr)


class Arguments(ContractTest):
    """torch-contract 1.1."""

    DEFAULTS = {"activities": None, "schedule": None, "on_trace_ready": None, "record_shapes": False,
                "profile_memory": False, "with_stack": False, "with_flops": False, "with_modules": False,
                "experimental_config": None, "execution_trace_observer": None, "acc_events": False,
                "use_cuda": None,
                "custom_trace_id_callback": None, "post_processing_timeout_s": None,
                "path": None, "buffer_bytes": None, "policy": "spill", "with_calls": False, "overhead": None,
                "process_counters": None}

    def test_signature(self):
        parameters = inspect.signature(profile).parameters
        self.assertEqual({p.name: p.default for p in parameters.values()}, self.DEFAULTS)
        self.assertEqual({p.kind for p in parameters.values()}, {inspect.Parameter.KEYWORD_ONLY})
        self.assertRaises(TypeError, profile, CPU)
        with self.assertRaisesRegex(TypeError, "no_such"):
            profile(no_such=1)

    def test_1_1_3_attributes(self):
        prof = profile(activities=CPU, record_shapes=True)
        expected = {"activities": set(CPU), "record_shapes": True, "with_flops": False,
                    "profile_memory": False,
                    "with_stack": False, "with_modules": False, "experimental_config": None,
                    "execution_trace_observer": None,
                    "acc_events": False, "custom_trace_id_callback": None, "post_processing_timeout_s": None,
                    "profiler": None, "has_cudagraphs": False, "mem_tl": None, "use_device": None,
                    "preset_metadata": {},
                    "record_steps": False, "on_trace_ready": None, "step_num": 0,
                    "current_action": ProfilerAction.RECORD, "step_rec_fn": None}
        self.assertEqual({name: getattr(prof, name) for name in expected}, expected)
        self.assertTrue(callable(prof.schedule))
        self.assertTrue(prof.action_map)
        self.assertEqual(list(prof.activity_filters), [])

    def test_flops_record_shapes(self):
        """with_flops turns shapes on inside; the attribute stays as it was given."""
        x = torch.ones(4, 4)
        with profile(activities=CPU, with_flops=True) as prof:
            x + x
        self.assertIs(prof.record_shapes, False)
        self.assertEqual(prof.events()[0].flops, 16)

    def test_falsy_schedules(self):
        for nothing in (None, 0):
            prof = profile(activities=CPU, schedule=nothing)
            self.assertIs(prof.record_steps, False)  # 1.1.4
            self.assertIs(prof.schedule(100), ProfilerAction.RECORD)
        self.assertIs(profile(activities=CPU, schedule=lambda step: ProfilerAction.NONE).record_steps, True)

    def test_spec_aliases_without_an_accelerator(self):
        if torch.npu.is_available():
            self.skipTest("an accelerator is there")
        for name in ("NPU", "cuda", "gpu", "privateuse1", ProfilerActivity.CUDA, ProfilerActivity.NPU):
            with self.subTest(name=name), self.assertWarnsRegex(UserWarning, "is not available"):
                prof = profile(activities=["cpu", name])
            with prof:
                torch.ones(2)
            self.assertTrue(prof.events())
            self.assertIsNone(prof.use_device)

    def test_spec_unknown_names_the_value(self):
        with self.assertRaisesRegex(ValueError, "TPU.*CPU.*NPU.*CUDA.*GPU"):
            profile(activities=["TPU"])
        self.assertRaises(AssertionError, profile, activities=[])
        self.assertRaises(TypeError, profile, activities=ProfilerActivity.CPU)

    def test_1_1_dict_items(self):
        prof = profile(activities=[{ProfilerActivity.CPU: ["cpu_op"]}])
        self.assertEqual(prof.activities, set(CPU))
        with self.assertRaisesRegex(ValueError, "CPU specified more than once"):
            profile(activities=[ProfilerActivity.CPU, {ProfilerActivity.CPU: []}])
        with profile(activities=[{ProfilerActivity.CPU: []}]) as prof:
            torch.ones(2)
        with self.assertWarnsRegex(UserWarning, "without an event"):
            self.assertEqual(len(prof.events()), 0)


class Cycle(ContractTest):
    """torch-contract 1.2, 1.3, 1.4, 1.6, 1.10."""

    def run_letters(self, letters):
        """One step per letter; returns the callbacks' steps, the warnings and the profiler."""
        calls = []

        def ready(p):
            steps = [e for e in p.events() if e.name == "ProfilerStep*"]
            calls.append((p.step_num, p.current_action.name,
                          [child.name for step in steps for child in step.cpu_children]))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with profile(activities=CPU, schedule=lambda step: LETTERS[letters[min(step, len(letters) - 1)]],
                         on_trace_ready=ready) as prof:
                for step in range(len(letters)):
                    if step:
                        prof.step()
                    (torch.zeros if step % 2 else torch.ones)(2)
        texts = [str(w.message) for w in caught if "Incorrect schedule" in str(w.message)]
        return calls, texts, prof

    def test_1_4_every_transition(self):
        one, zero = "aten::ones", "aten::zeros"
        table = {
            "nn": ([], []), "nw": ([], []), "nr": ([(1, "RECORD", [zero])], []),
            "ns": ([(1, "RECORD_AND_SAVE", [zero])], []),
            "wn": ([], ["WARMUP followed by NONE"]), "ww": ([], []), "wr": ([(1, "RECORD", [zero])], []),
            "ws": ([(1, "RECORD_AND_SAVE", [zero])], []),
            "rn": ([], ["RECORD followed by NONE"]), "rw": ([], ["RECORD followed by WARMUP"]),
            "rr": ([(1, "RECORD", [one, zero])], []), "rs": ([(1, "RECORD_AND_SAVE", [one, zero])], []),
            "sn": ([(1, "NONE", [one])], []), "sw": ([(1, "WARMUP", [one])], []),
            "sr": ([(1, "RECORD", [one]), (1, "RECORD", [zero])], []),
            "ss": ([(1, "RECORD_AND_SAVE", [one]), (1, "RECORD_AND_SAVE", [zero])], []),
            "rwr": ([(2, "RECORD", [one])], ["RECORD followed by WARMUP"]),  # 1.4.2: torch crashes
        }
        for letters, (calls, texts) in table.items():
            with self.subTest(letters=letters):
                seen, warned, _ = self.run_letters(letters)
                self.assertEqual(seen, calls)
                self.assertEqual([t.split(": ")[1] for t in warned], texts)

    def test_1_4_3_lost_windows_can_be_read(self):
        _, _, prof = self.run_letters("rn")
        self.assertIn("aten::ones", [e.name for e in prof.events()])

    def test_1_4_4_never_prepared(self):
        _, _, prof = self.run_letters("nnnn")
        with self.assertRaisesRegex(AssertionError, "^Profiler must be initialized before accessing events$"):
            prof.events()
        with self.assertRaisesRegex(AssertionError,
                                    "^Profiler must be initialized before getting key averages$"):
            prof.key_averages()
        _, _, prof = self.run_letters("nwww")
        with self.assertWarnsRegex(UserWarning, "0 steps recorded"):
            self.assertEqual(list(prof.events()), [])

    def test_spec_warning_points_at_the_caller(self):
        _, _, prof = self.run_letters("ww")
        with self.assertWarns(UserWarning) as caught:
            prof.events()
        self.assertEqual(caught.filename, __file__)

    def test_1_4_1_schedule_of_nothing(self):
        with profile(activities=CPU, schedule=lambda step: None) as prof:
            prof.step()
        self.assertEqual(prof.step_num, 1)

    def test_9_1_12_two_callbacks(self):
        calls = []
        with profile(activities=CPU, schedule=schedule(wait=1, warmup=1, active=2),
                     on_trace_ready=calls.append) as prof:
            train(8, prof)
        self.assertEqual(len(calls), 2)

    def test_1_2_6_again(self):
        prof = profile(activities=CPU)
        with prof:
            torch.ones(2)
        first = prof.events()
        with prof:
            torch.zeros(2)
            torch.zeros(2)
        self.assertEqual([e.name for e in prof.events() if e.cpu_parent is None], ["aten::zeros"] * 2)
        self.assertEqual([e.name for e in first if e.cpu_parent is None], ["aten::ones"])

    def test_1_2_7_base_class(self):
        prof = _KinetoProfile(activities=CPU)
        prof.start()
        torch.ones(2)
        prof.stop()
        self.assertEqual(prof.events()[0].name, "aten::ones")
        self.assertFalse(hasattr(prof, "step"))
        self.assertFalse(hasattr(prof, "schedule"))

    def test_1_6_2_acc_events(self):
        seen = []
        with profile(activities=CPU, schedule=schedule(wait=1, warmup=1, active=1), acc_events=True,
                     on_trace_ready=lambda p: seen.append([e.name for e in p.events()
                                                           if e.name.startswith("step ")])) as prof:
            for step in range(6):
                with record_function(f"step {step}"):
                    pass
                prof.step()
        self.assertEqual([set(names) for names in seen], [{"step 2"}, {"step 2", "step 5"}])
        self.assertEqual(seen[1], ["step 5", "step 2"])  # the new cycle's events first

    def test_1_6_5_everything_works_in_the_callback(self):
        done = []

        def ready(prof):
            prof.export_chrome_trace(self.path("t.json"))
            prof.export_stacks(self.path("s.txt"))
            done.append((len(prof.events()), len(prof.key_averages()), prof.get_trace_id()))
        with profile(activities=CPU, on_trace_ready=ready, with_stack=True):
            train()
        self.assertEqual(len(done), 1)
        self.assertTrue(all(done[0]))
        self.assertEqual(sorted(os.listdir(self.folder)), ["s.txt", "t.json"])

    def test_1_10_steps(self):
        with profile(activities=CPU, schedule=schedule(wait=1, warmup=1, active=2, repeat=1)) as prof:
            train(4, prof)
        steps = [e for e in prof.events() if e.name == "ProfilerStep*"]
        self.assertEqual([e.trace_name for e in steps], ["ProfilerStep#2", "ProfilerStep#3"])
        self.assertEqual([r.count for r in prof.key_averages() if r.key == "ProfilerStep*"], [2])
        self.assertTrue(all(e.is_user_annotation and e.scope == 7 for e in steps))
        for event in prof.events():  # whatever the loop did lies in a step
            top = event
            while top.cpu_parent is not None:
                top = top.cpu_parent
            self.assertEqual(top.name, "ProfilerStep*")

    def test_1_2_3_callbacks_are_in_no_step(self):
        with profile(activities=CPU, schedule=lambda step: ProfilerAction.RECORD_AND_SAVE, acc_events=True,
                     on_trace_ready=lambda p: torch.full((2,), 7.0)) as prof:
            torch.ones(2)
            prof.step()
        self.assertNotIn("aten::full", [e.name for e in prof.events()])


class Misuse(ContractTest):
    """torch-contract 1.7."""

    def test_table(self):
        for call, text in (("events", "accessing events"), ("key_averages", "getting key averages"),
                           ("stop", "stopping trace")):
            with self.assertRaisesRegex(AssertionError, f"^Profiler must be initialized before {text}$"):
                getattr(profile(activities=CPU), call)()
        prof = profile(activities=CPU)
        self.assertIsNone(prof.get_trace_id())
        self.assertIsNone(prof.toggle_collection_dynamic(False, CPU))
        self.assertRaises(RuntimeError, prof.step)
        prof.add_metadata("early", "yes")  # stored and written
        with prof:
            torch.ones(2)
        self.assertEqual(self.trace(prof)["early"], "yes")

    def test_second_sessions(self):
        prof, other = profile(activities=CPU), profile(activities=CPU)
        with prof:
            torch.ones(2)
            for intruder in (prof, other, torch.autograd.profiler.profile()):
                with self.assertRaisesRegex(RuntimeError, "already"):
                    intruder.__enter__()
            torch.ones(2)
        self.assertEqual([e.name for e in prof.events() if e.cpu_parent is None], ["aten::ones"] * 2)
        with other:
            torch.zeros(2)
        self.assertTrue(other.events())

    def test_live_snapshot(self):
        """events() works while recording (torch: empty)."""
        with profile(activities=CPU) as prof:
            torch.ones(2)
            first = [e.name for e in prof.events() if e.cpu_parent is None]
            torch.zeros(2)
            second = [e.name for e in prof.events() if e.cpu_parent is None]
            self.assertIn("aten::ones", prof.key_averages().table())
        self.assertEqual((first, second), (["aten::ones"], ["aten::ones", "aten::zeros"]))

    def test_any_thread_stops(self):
        prof = profile(activities=CPU)
        prof.start()
        torch.ones(2)
        thread = threading.Thread(target=prof.stop)
        thread.start()
        thread.join()
        self.assertEqual(prof.events()[0].name, "aten::ones")


class Config(ContractTest):
    """torch-contract 1.9."""

    def test_keywords_and_defaults(self):
        config = _ExperimentalConfig()
        expected = {"profiler_metrics": [], "profiler_measure_per_kernel": False, "verbose": False,
                    "performance_events": [], "enable_cuda_sync_events": False, "adjust_profiler_step": False,
                    "disable_external_correlation": False, "profile_all_threads": False,
                    "capture_overload_names": False,
                    "record_python_gc_info": False, "expose_kineto_event_metadata": False,
                    "custom_profiler_config": "",
                    "adjust_timestamps": False}
        self.assertEqual({name: getattr(config, name) for name in expected}, expected)
        _ExperimentalConfig(**expected)
        self.assertRaises(TypeError, _ExperimentalConfig, no_such=1)

    def test_1_9_1_stacks_without_verbose(self):
        for event in profiled(with_stack=True).events():
            top = event
            while top is not None and top.scope != 1:
                top = top.cpu_parent
            # torch-contract 3.5.3: those have no forward op
            if top is None or "AccumulateGrad" not in top.name:
                self.assertTrue(event.stack, event.name)

    def overloads(self, function, **flags):
        """(name, overload) of what a function's own calls are, and the profile."""
        with profile(activities=CPU, experimental_config=_ExperimentalConfig(capture_overload_names=True),
                     **flags) as prof:
            function()
        return [(e.name.removeprefix("aten::"), e.overload_name) for e in prof.events()
                if e.cpu_parent is None and e.name.startswith("aten::")], prof

    def test_1_9_3_overloads(self):
        """The names in the JSON stay as they are: the overload is an argument (docs/differences.md)."""
        x = torch.ones(2)
        names, prof = self.overloads(lambda: x + x)
        self.assertEqual(names, [("add", "Tensor")])
        spans = self.spans(self.trace(prof), "cpu_op")
        self.assertEqual([(e["name"], e["args"]["overload_name"]) for e in spans], [("aten::add", "Tensor")])

    def test_1_9_3_overloads_by_argument(self):
        """A row has the names of torch's overloads for the kinds of its arguments, with other details or without."""
        x, flag = torch.ones(2, 2), torch.ones(2, 2) > 0
        cases = (
            (lambda: (x < 1, x < x), [("lt", "Scalar"), ("lt", "Tensor")]),
            (lambda: (x ** 2, 2 ** x, x ** x), [("pow", "Tensor_Scalar"), ("pow", "Scalar"), ("pow", "Tensor_Tensor")]),
            (lambda: (x.sum(), x.sum(0)), [("sum", ""), ("sum", "dim_IntList")]),
            (lambda: (x.all(), x.all(0), x.all((0, 1))), [("all", ""), ("all", "dim"), ("all", "dims")]),
            (lambda: (x.std(), x.std(0), x.std(0, correction=0)),
             [("std", "correction"), ("std", "dim"), ("std", "correction")]),
            (lambda: (torch.where(flag, x, x), torch.where(flag, 1., x), torch.where(flag, x, 1.),
                      torch.where(flag, 1., 0.)),
             [("where", "self"), ("where", "ScalarSelf"), ("where", "ScalarOther"), ("where", "Scalar")]),
            (lambda: (torch.arange(3), torch.arange(1, 3), torch.arange(1, 5, 2)),
             [("arange", ""), ("arange", "start"), ("arange", "start_step")]),
            (lambda: (x.to(torch.float64), x.to("cpu"), x.to("cpu", torch.int64)),
             [("to", "dtype"), ("to", "dtype_layout"), ("to", "device")]),
            (lambda: (torch.div(x, x), torch.div(x, x, rounding_mode="floor")),
             [("div", "Tensor"), ("div", "Tensor_mode")]),
            (lambda: (torch.rand(2), torch.rand(2, generator=torch.Generator())),
             [("rand", ""), ("rand", "generator")]),
            (lambda: (torch.randint(3, (2,)), torch.randint(1, 3, (2,)),
                      torch.randint(3, (2,), generator=torch.Generator())),
             [("randint", ""), ("randint", "low"), ("randint", "generator")]),
            (lambda: (x.max(0), x.exp(), torch.cat([x, x])), [("max", "dim"), ("exp", ""), ("cat", "")]),
        )
        for function, expected in cases:
            self.assertEqual(self.overloads(function)[0], expected)
            self.assertEqual(self.overloads(function, record_shapes=True, profile_memory=True, with_flops=True)[0],
                             expected)

    def test_1_9_3_rows_by_overload(self):
        x = torch.ones(2)
        _, prof = self.overloads(lambda: (x < 1, x < x, x < 2))
        rows = {(row.key, row.overload_name): row.count for row in prof.key_averages(group_by_overload_name=True)}
        self.assertEqual(rows, {("aten::lt", "Scalar"): 2, ("aten::lt", "Tensor"): 1})
        self.assertEqual([row.count for row in prof.key_averages()], [3])

    def test_1_9_3_no_overloads(self):
        self.assertEqual({e.overload_name for e in profiled().events()}, {""})

    def test_1_9_4_metadata(self):
        with profile(activities=CPU, profile_memory=True,
                     experimental_config=_ExperimentalConfig(expose_kineto_event_metadata=True)) as prof:
            with record_function("mine", batch=3):
                torch.ones(2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # deprecated in torch 2.13
            shown = [e.metadata_json for e in prof.events()]
            self.assertEqual(shown[0], '"Ev Idx": 0, "batch": 3')
            self.assertEqual(shown[1], '"Ev Idx": 1')
            indices = {e["args"]["Ev Idx"] for e in self.spans(self.trace(prof), "cpu_op")}
            self.assertLessEqual(indices, {int(text.split(": ")[1].split(",")[0]) for text in shown if text})
            self.assertEqual({e.metadata_json for e in profiled().events()}, {""})


class Extras(ContractTest):
    """What we have beyond torch."""

    def test_save_and_load(self):
        import mtprof
        prof = profiled(record_shapes=True, with_stack=True, profile_memory=True)
        prof.save(self.path("t.mtt"))
        loaded = mtprof.load(self.path("t.mtt"))
        self.assertEqual([(e.name, e.id, e.input_shapes, e.stack) for e in loaded.events()],
                         [(e.name, e.id, e.input_shapes, e.stack) for e in prof.events()])
        self.assertEqual(loaded.key_averages().table(), prof.key_averages().table())

    def test_path(self):
        import mtprof
        with profile(activities=CPU, path=self.path("t.mtt")) as prof:
            train()
        self.assertEqual(len(mtprof.load(self.path("t.mtt")).events()), len(prof.events()))

    def test_profiler_attribute(self):
        prof = profiled()
        inner = prof.profiler
        self.assertEqual(len(inner.function_events), len(prof.events()))
        self.assertEqual(len(inner.kineto_results.events()), len(prof.events()))
        self.assertEqual(inner.total_average().count, len(prof.events()))
        self.assertIs(type(inner.kineto_results.events()), list)
        self.assertIn("aten::linear", inner.key_averages().table())

    def test_kineto_events(self):
        """torch's C++ events: facts are methods, times are Unix nanoseconds."""
        before = time.time_ns()
        with profile(activities=CPU, record_shapes=True, with_flops=True, profile_memory=True,
                     schedule=lambda step: ProfilerAction.RECORD) as prof:
            torch.ones(4, 4) + 1
        after = time.time_ns()
        results = prof.profiler.kineto_results
        events = {event.name(): event for event in results.events()}
        self.assertIn("ProfilerStep#0", events)
        add = events["aten::add"]
        same = next(e for e in prof.events() if e.name == "aten::add")
        self.assertEqual((add.shapes(), add.dtypes(), add.flops(), add.correlation_id(), add.scope()),
                         (same.input_shapes, same.input_dtypes, 16, same.id, 0))
        self.assertEqual((add.stack(), add.start_thread_id(), add.device_index(), add.is_user_annotation(),
                          add.extra_meta()), ([], 1, os.getpid(), False, {}))
        slack = 5_000_000  # two clocks
        self.assertLess(before - slack, results.trace_start_ns())
        self.assertLess(results.trace_start_ns(), add.start_ns())
        self.assertEqual(add.end_ns() - add.start_ns(), add.duration_ns())
        self.assertLess(add.end_ns(), after + slack)
        names = [name for name in dir(add) if not name.startswith("_")]
        self.assertGreater(len(names), 35)
        for name in names:
            getattr(add, name)()
        with profile(activities=CPU, profile_memory=True) as prof:
            torch.ones(4)
        memory = prof.profiler.kineto_results.events()[-1]
        self.assertEqual((memory.name(), memory.nbytes(), memory.flops()), ("[memory]", -16, 0))

    def test_event_tree(self):
        with profile(activities=CPU, record_shapes=True, profile_memory=True) as prof:
            x = torch.ones(4, 4, requires_grad=True)
            with torch.profiler.record_function("mine"):
                y = (x @ x).sum()
            y.backward()
            del y
        roots = prof.profiler.kineto_results.experimental_event_tree()
        mine = next(node for node in roots if node.name == "mine")
        self.assertEqual([node.name for node in mine.children], ["aten::matmul", "aten::sum"])
        product = mine.children[0].children[0]
        self.assertEqual((product.name, product.tag.name, product.parent.parent), ("aten::mm", "TorchOp", mine))
        self.assertEqual([tensor.sizes for tensor in product.extra_fields.inputs], [[4, 4], [4, 4]])
        self.assertEqual((product.typed[0], product.end_time_ns - product.start_time_ns, product.start_tid),
                         (product.tag, product.duration_time_ns, 1))
        self.assertGreaterEqual(product.start_time_ns, mine.start_time_ns)
        forward = [e for e in prof.events() if e.name == "MmBackward0"]
        backward = next(node for node in roots if node.name.endswith("MmBackward0")).children[0]
        self.assertEqual(backward.extra_fields.sequence_number, forward[0].sequence_nr)
        self.assertEqual({node.tag.name for node in roots if node.name == "[memory]"}, {"Allocation"})

        def count(nodes):
            return sum(1 + count(node.children) for node in nodes)

        self.assertEqual(count(roots), len(prof.events()))

    def test_whether_a_profile_records(self):
        from mindtorch_v2.autograd import profiler
        self.assertFalse(profiler._is_profiler_enabled)
        with profile(activities=CPU):
            self.assertTrue(profiler._is_profiler_enabled)
            self.assertTrue(torch.autograd._profiler_enabled())
        self.assertFalse(profiler._is_profiler_enabled)

    def test_unfinished(self):
        self.assertEqual(str(torch.autograd.profiler.profile()), "<unfinished torch.autograd.profile>")

    def test_distributed_info(self):
        code = ("import mindtorch_v2 as torch\n"
                "with torch.profiler.profile() as p: torch.ones(2)\n"
                "p.export_chrome_trace(%r)\n" % self.path("t.json"))
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60,
                       env={**os.environ, "RANK": "3", "WORLD_SIZE": "8",
                            "PYTHONPATH": os.pathsep.join(sys.path)})
        from support_contract import read_trace
        info = read_trace(self.path("t.json"))["distributedInfo"]
        self.assertEqual((info["rank"], info["world_size"]), (3, 8))

    def test_health(self):
        """Every result has it; zero losses is the normal case."""
        health = profiled(3, record_shapes=True, with_stack=True, profile_memory=True).health()
        self.assertEqual((health.lost, health.unmatched, health.truncated), (0, 0, 0))
        self.assertGreater(health.events, 0)
        self.assertGreater(health.pair_cost_ns, 0)


if __name__ == "__main__":
    unittest.main()
