# SPDX-License-Identifier: Apache-2.0
"""The contract with MindTorch v2's users: each batch of torch-contract 7.1, the keys of 7.2,
the names of 7.3 and the settled disagreements of 7.4 (D1 to D35), from their side.

What other tests cover is not repeated: activities
(test_activities), the schedule's values (test_schedule_python), list behaviour (test_event_list)."""
import json
import os
import subprocess
import sys
import threading
import time
import unittest

from support_contract import ContractTest, profiled, read_trace, torch
from mindtorch_v2.profiler import (DeviceType, ProfilerAction, ProfilerActivity, profile, record_function,
                                   schedule)

CPU = [ProfilerActivity.CPU]


def add_profile(**arguments):
    """An op below a scope."""
    x = torch.ones(2, 3)
    with profile(activities=CPU, **arguments) as prof:
        with record_function("scope"):
            x + x
    return prof


def one(rows, name):
    """The first of a name."""
    return next(row for row in rows if row.name == name)


class FirstBatches(ContractTest):
    """torch-contract 7.1: MVP, 1, 2."""

    def test_mvp(self):
        prof = add_profile()
        names = [event["name"] for event in prof.events()]
        self.assertEqual(names, ["scope", "aten::add"])
        self.assertIn("aten::add", prof.key_averages().table())
        self.assertGreater(len(self.trace(prof)["traceEvents"]), 2)

    def test_mvp_sources_name_no_other_framework(self):
        source = sys.modules["mindtorch_v2.profiler.profiler"].__file__
        with open(source, encoding="utf-8") as file:
            self.assertNotIn("mindspore", file.read().lower())

    def test_batch_1_strings_of_any_case(self):
        for text in ("cpu", "CPU", "ProfilerActivity.CPU", "torch.profiler.ProfilerActivity.Cpu"):
            self.assertEqual(profile(activities=[text]).activities, set(CPU), text)

    def test_batch_1_unknown_activity(self):
        for bad in ("TPU", "", 7, None, "cpu "):
            for error in (ValueError, TypeError):
                with self.subTest(bad=bad), self.assertRaises(error):
                    profile(activities=[bad])

    def test_batch_1_callback(self):
        seen = []
        with profile(activities=CPU, on_trace_ready=seen.append) as prof:
            torch.ones(2)
        self.assertEqual(seen, [prof])
        with self.assertRaisesRegex(ZeroDivisionError, "mine"):
            with profile(activities=CPU,
                         on_trace_ready=lambda p: (_ for _ in ()).throw(ZeroDivisionError("mine"))):
                torch.ones(2)
        self.assertEqual(len(add_profile().events()), 2)

    def test_batch_1_real_pid(self):
        for flavor in (None, "mindtorch"):
            first = self.trace(add_profile(), flavor=flavor)["traceEvents"][0]
            self.assertEqual((first["ph"], first["pid"]), ("X", os.getpid()))

    def test_batch_1_step_outside(self):
        prof = profile(activities=CPU)
        self.assertRaises(RuntimeError, prof.step)
        with prof:
            prof.step()
        self.assertRaises(RuntimeError, prof.step)

    def test_batch_2_records_in_active_steps_only(self):
        with profile(activities=CPU, schedule=schedule(wait=1, warmup=1, active=2, repeat=1), acc_events=True,
                     profile_memory=True) as prof:
            for step in range(6):
                with record_function(f"step {step}"):
                    torch.ones(2)
                prof.step()
        names = {e.name for e in prof.events() if e.name.startswith("step ")}
        self.assertEqual(names, {"step 2", "step 3"})
        self.assertEqual({e["step"] for e in prof.events() if e.name == "aten::ones"}, {2, 3})
        # Memory outside the window is not collected either.
        self.assertEqual({e["step"] for e in prof.events() if "step" in e}, {2, 3})

    def test_batch_2_errors(self):
        for bad in (dict(wait=-1, warmup=0, active=1), dict(wait=0, warmup=-1, active=1),
                    dict(wait=0, warmup=0, active=0), dict(wait=0, warmup=1, active=1, repeat=-1),
                    dict(wait=0, warmup=1, active=1, skip_first=-1)):
            with self.subTest(bad=bad):
                self.assertRaises(ValueError, schedule, **bad)
        self.assertRaises(TypeError, profile, activities=CPU, schedule=7)
        self.assertEqual([a.name for a in ProfilerAction], ["NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"])


class RecordedThings(ContractTest):
    """torch-contract 7.1: 3, 6, 7, 8, 9; torch-contract 7.2."""

    def test_7_2_keys_of_an_op(self):
        event = one(add_profile().events(), "aten::add")
        self.assertEqual(set(event.keys()), {"name", "kind", "device_type", "start_ns", "end_ns",
                                             "duration_ns",
                                             "step", "thread_id", "correlation_id", "runtime_name",
                                             "runtime_tid"})
        self.assertEqual(event["kind"], "op")
        self.assertIs(type(event["device_type"]), str)
        self.assertEqual(event["device_type"], "CPU")
        self.assertEqual(event["duration_ns"], event["end_ns"] - event["start_ns"])
        self.assertEqual(event["step"], 0)
        self.assertEqual(event["thread_id"], threading.get_ident())
        self.assertEqual(event["runtime_name"], "dispatch_kernel")
        self.assertEqual(event["runtime_tid"], threading.get_native_id())
        for key in ("start_ns", "end_ns", "duration_ns", "correlation_id", "thread_id", "step"):
            self.assertIs(type(event[key]), int, key)

    def test_7_2_keys_of_a_scope(self):
        event = one(add_profile().events(), "scope")
        self.assertEqual(set(event.keys()), {"name", "kind", "device_type", "start_ns", "end_ns",
                                             "duration_ns",
                                             "step", "thread_id"})
        self.assertEqual(event["kind"], "scope")

    def test_7_2_times_are_perf_counters(self):
        before = time.perf_counter_ns()
        prof = add_profile()
        after = time.perf_counter_ns()
        for event in prof.events():
            self.assertLessEqual(before, event["start_ns"])
            self.assertLessEqual(event["start_ns"], event["end_ns"])
            self.assertLessEqual(event["end_ns"], after)

    def test_7_2_steps_without_a_schedule(self):
        with profile(activities=CPU) as prof:
            for _ in range(3):
                torch.ones(2)
                prof.step()
        self.assertEqual([e["step"] for e in prof.events() if e.name == "aten::ones"], [0, 1, 2])
        self.assertEqual([e.step for e in prof.events() if e.name == "aten::ones"], [0, 1, 2])
        # torch-contract 7.4 D10
        self.assertFalse([e for e in prof.events() if "ProfilerStep" in e.name])

    def test_batch_3_shapes(self):
        event = one(add_profile(record_shapes=True).events(), "aten::add")
        self.assertEqual(event["input_shapes"], event.input_shapes)
        self.assertEqual(event["input_shapes"][:2], [[2, 3], [2, 3]])
        self.assertNotIn("stack", event)

    def test_batch_3_stack(self):
        prof = add_profile(with_stack=True)
        for name in ("aten::add", "scope"):
            event = one(prof.events(), name)
            self.assertEqual(event["stack"], event.stack)
            self.assertIn("add_profile", event["stack"][0])
            self.assertRegex(event["stack"][0], r"test_contract_mindtorch\.py\(\d+\): add_profile$")
            self.assertFalse([f for f in event["stack"] if "/mtprof/" in f or "/mindtorch_v2/" in f])
            self.assertNotIn("input_shapes", event)

    def test_batch_3_in_the_trace(self):
        prof = add_profile(record_shapes=True, with_stack=True)
        for flavor in (None, "mindtorch"):
            span = self.spans(self.trace(prof, flavor=flavor), name="aten::add")[0]
            event = one(prof.events(), "aten::add")
            self.assertEqual(span["args"]["input_shapes"], event["input_shapes"])
            self.assertEqual(span["args"]["stack"], event["stack"])
            plain = self.spans(self.trace(add_profile(), flavor=flavor), name="aten::add")[0]
            self.assertFalse({"input_shapes", "stack", "Input Dims", "Call stack"} & set(plain["args"]))

    def test_batches_6_7_memory(self):
        prof = add_profile(profile_memory=True)
        event = one(prof.events(), "aten::add")
        keys = [f"cpu_memory_allocated_{which}" for which in ("before", "after", "delta")]
        before, after, delta = (event[key] for key in keys)
        self.assertEqual(delta, after - before)
        self.assertEqual(delta, 24)
        self.assertFalse([k for k in event.keys() if k.startswith("npu_")])
        self.assertNotIn(keys[0], one(prof.events(), "scope"))
        for flavor in (None, "mindtorch"):
            span = self.spans(self.trace(prof, flavor=flavor), name="aten::add")[0]
            self.assertEqual([span["args"][key] for key in keys], [before, after, delta])
        self.assertFalse([k for k in one(add_profile().events(), "aten::add").keys() if "memory" in k])

    def test_batch_8_self_time(self):
        prof = profiled(2)
        for event in prof.events():
            self.assertGreaterEqual(event.self_cpu_time_total, 0)
            self.assertLessEqual(event.self_cpu_time_total, event.cpu_time_total)
            inside = sum(child.cpu_time_total for child in event.cpu_children)
            self.assertAlmostEqual(event.self_cpu_time_total, event.cpu_time_total - inside, places=3)
        tops = sum(e.cpu_time_total for e in prof.events() if e.cpu_parent is None)
        self.assertAlmostEqual(sum(e.self_cpu_time_total for e in prof.events()), tops, places=3)

    def test_batch_9_correlation_ids(self):
        seen = []
        for _ in range(5):
            ops = [e for e in profiled().events() if e["kind"] == "op"]
            ids = [e["correlation_id"] for e in ops]
            self.assertEqual(ids, sorted(ids))
            seen += ids
        self.assertEqual(len(seen), len(set(seen)))
        self.assertEqual(seen, sorted(seen))
        self.assertLess(seen[-1], 2 ** 32)

    def test_batch_9_in_the_trace(self):
        prof = add_profile()
        event = one(prof.events(), "aten::add")
        args = self.spans(self.trace(prof), name="aten::add")[0]["args"]
        self.assertEqual((args["correlation_id"], args["runtime_name"], args["runtime_tid"], args["step"],
                          args["device_type"]),
                         (event["correlation_id"], "dispatch_kernel", event["runtime_tid"], 0, "CPU"))


class Rows(ContractTest):
    """torch-contract 7.1: 4, 10, 12 to 15, 17 to 20; torch-contract 7.3."""

    def test_batch_4_groups(self):
        with profile(activities=CPU, record_shapes=True, with_stack=True) as prof:
            for size in (2, 3, 2):
                x = torch.ones(size)
                x + x
            x + x
        self.assertEqual([r.count for r in prof.key_averages() if r.key == "aten::add"], [4])
        by_shape = [(r.count, r.input_shapes[:2]) for r in prof.key_averages(group_by_input_shape=True)
                    if r.key == "aten::add"]
        self.assertEqual(by_shape, [(3, [[2], [2]]), (1, [[3], [3]])])
        by_stack = [r for r in prof.key_averages(group_by_stack_n=1) if r.key == "aten::add"]
        self.assertEqual([r.count for r in by_stack], [3, 1])
        self.assertEqual([len(r.stack) for r in by_stack], [1, 1])
        with self.assertRaisesRegex(AttributeError, "no_such_key"):
            prof.key_averages().table(sort_by="no_such_key")

    def test_batch_10_table(self):
        rows = add_profile().key_averages()
        table = rows.table()
        for word in ("Name", "Self CPU", "CPU total", "CPU time avg", "# of Calls"):
            self.assertIn(word, table)
        for key in ("self_cpu_time", "cpu_time", "cpu_time_avg", "self_cpu_time_total", "cpu_time_total",
                    "count"):
            rows.table(sort_by=key)

    def test_batch_10_flavour(self):
        """torch-contract 7.4 D22: the words Total and Count are there in MindTorch's flavour."""
        code = ("import mindtorch_v2 as torch\n"
                "from mindtorch_v2.profiler import profile\n"
                "with profile() as prof: torch.ones(2)\n"
                "table = prof.key_averages().table()\n"
                "assert 'Total(us)' in table and 'Count' in table, table\n"
                "rows = prof.key_averages()\n"
                "print(table)\n"
                "prof.export_chrome_trace('%s')\n" % self.path("m.json"))
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "MINDTORCH_PROFILER_FLAVOR": "mindtorch",
                                   "PYTHONPATH": os.pathsep.join(sys.path)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(self.spans(read_trace(self.path("m.json")), "op"))
        self.assertNotIn("Total(us)", add_profile().key_averages().table())

    def test_batches_12_14_rows_are_objects(self):
        rows = add_profile().key_averages()
        self.assertEqual([row.key for row in rows], ["scope", "aten::add"])
        row = rows[1]
        with self.assertRaises(TypeError):
            row["key"]
        self.assertEqual((row.device_type, row.input_shapes, row.stack, row.cpu_memory_usage, row.flops,
                          row.is_async, row.scope, row.use_device, row.is_user_annotation),
                         ("CPU", "", [], 0, 0, False, 0, None, False))
        self.assertEqual(row.device_memory_usage + row.self_cpu_memory_usage + row.self_device_memory_usage,
                         0)
        self.assertIs(rows[0].is_user_annotation, True)

    def test_batch_13_totals(self):
        rows = add_profile().key_averages()
        self.assertAlmostEqual(rows.self_cpu_time_total, sum(r.self_cpu_time_total for r in rows), places=6)
        total = rows.total_average()
        self.assertEqual((total.key, total.count), ("Total", 2))
        with profile(activities=CPU, schedule=schedule(wait=0, warmup=1, active=1)) as prof:
            pass
        with self.assertWarnsRegex(UserWarning, "0 steps recorded"):
            empty = prof.key_averages()
        self.assertEqual((len(empty), empty.self_cpu_time_total, empty.total_average().count), (0, 0, 0))

    def test_batch_15_stacks(self):
        metrics = add_profile().events().supported_export_stacks_metrics()
        self.assertEqual(metrics, ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total",
                                   "self_privateuse1_time_total"])
        rows = profiled(with_stack=True).key_averages(group_by_stack_n=5)
        self.assertEqual(rows.supported_export_stacks_metrics(), metrics)
        rows.export_stacks(self.path("stacks.txt"), "self_cpu_time_total")
        with open(self.path("stacks.txt"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertTrue(lines)
        for line in lines:
            self.assertRegex(line, r"^\S+ [1-9]\d*$")

    def test_batches_17_18_lists(self):
        rows = profiled().key_averages()
        names = [r.key for r in rows]
        copy = rows.copy()
        self.assertEqual([r.key for r in copy], names)
        copy.sort(key=lambda r: r.key)
        self.assertEqual([r.key for r in copy], sorted(names))
        last = copy.pop()
        copy.append(last)
        copy.insert(0, last)
        self.assertEqual((copy.count(last), copy.index(last)), (2, 0))
        copy.remove(last)
        copy.extend([last])
        copy.reverse()
        copy.clear()
        self.assertEqual(len(copy), 0)
        self.assertEqual([r.key for r in rows], names)

    def test_batch_18_regroups(self):
        """torch-contract 7.4 D16: rows group again, finer than before too."""
        with profile(activities=CPU, record_shapes=True, with_stack=True) as prof:
            for size in (2, 3, 2):
                torch.ones(size).sum()
        rows = prof.key_averages()
        self.assertEqual([r.count for r in rows.key_averages() if r.key == "aten::sum"], [3])
        again = rows.key_averages(group_by_input_shapes=True, group_by_stack_n=2, group_by_overload_name=True)
        self.assertEqual([r.count for r in again if r.key == "aten::sum"], [2, 1])

    def test_batch_19_rows(self):
        rows = profiled().key_averages()
        row = one_row(rows, "aten::linear")
        self.assertEqual((row.node_id, row.is_legacy, row.is_remote, row.overload_name),
                         (-1, False, False, ""))
        self.assertTrue(row.cpu_children)
        self.assertIsNotNone(row.cpu_parent)
        for name in ("cpu_time_str", "cpu_time_total_str", "self_cpu_time_total_str", "device_time_str",
                     "device_time_total_str", "self_device_time_total_str"):
            self.assertRegex(getattr(row, name), r"^\d+\.\d{3}(us|ms|s)$", name)
        with self.assertWarns(FutureWarning):
            self.assertEqual(row.cuda_time, 0)
        other = one_row(profiled().key_averages(), "aten::linear")
        count = row.count + other.count
        self.assertIs(row.add(other), row)
        self.assertEqual(row.count, count)

    def test_batch_20_rows_as_a_trace(self):
        rows = add_profile().key_averages()
        rows.export_chrome_trace(self.path("rows.json"))
        trace = read_trace(self.path("rows.json"))
        self.assertEqual([e["name"] for e in trace["traceEvents"]], ["scope", "aten::add"])
        for event, row in zip(trace["traceEvents"], rows):
            self.assertLessEqual({"name", "ph", "ts", "dur", "pid", "tid", "cat", "args"}, set(event))
            self.assertEqual(event["args"]["count"], row.count)
            self.assertAlmostEqual(event["args"]["self_cpu_time_total"], row.self_cpu_time_total, places=3)
            self.assertAlmostEqual(event["args"]["cpu_time_total"], row.cpu_time_total, places=3)
        with open(self.path("rows.json"), "rb") as file:
            first = file.read()
        rows.export_chrome_trace(self.path("rows.json"))
        with open(self.path("rows.json"), "rb") as file:
            self.assertEqual(file.read(), first)

    def test_7_3_private_names(self):
        """torch-contract 7.4 D21, D25."""
        rows = add_profile().key_averages()
        built = rows._build_rows()
        self.assertEqual([r["name"] for r in built], ["scope", "aten::add"])
        for entry in built:
            self.assertIs(type(entry["self_time_ns"]), int)
            self.assertLessEqual(entry["self_time_ns"], entry["total_time_ns"])
        again = rows[1].__class__(rows[1]._row)
        self.assertEqual((again.key, again.count), ("aten::add", 1))


def one_row(rows, key):
    """The first row of a key."""
    return next(row for row in rows if row.key == key)


class TraceAndTheRest(ContractTest):
    """torch-contract 7.1: 11, 16, 21; 7.4 D27."""

    def test_batch_11_flavour(self):
        trace = self.trace(add_profile(), flavor="mindtorch")
        self.assertLessEqual({e["cat"] for e in trace["traceEvents"] if "cat" in e},
                             {"op", "scope", "runtime", "metadata", "Trace"})
        ops, runtime = self.spans(trace, "op"), self.spans(trace, "runtime")
        self.assertEqual([e["name"] for e in ops], ["aten::add"])
        self.assertEqual([e["name"] for e in self.spans(trace, "scope")], ["scope"])
        self.assertEqual(len(runtime), 1)
        self.assertEqual(runtime[0]["args"]["op_name"], "aten::add")
        self.assertEqual(runtime[0]["args"]["correlation_id"], ops[0]["args"]["correlation_id"])
        meta = [e for e in trace["traceEvents"] if e["ph"] == "M"]
        self.assertIn("process_name", {e["name"] for e in meta})
        self.assertIn("thread_name", {e["name"] for e in meta})

    def test_batch_11_user_metadata_as_events(self):
        """torch-contract 7.4 D27: MindTorch has the user's metadata as M events, too."""
        with profile(activities=CPU) as prof:
            prof.add_metadata("who", "me")
            prof.add_metadata_json("n", "[1, 2]")
        trace = self.trace(prof, flavor="mindtorch")
        self.assertEqual((trace["who"], trace["n"]), ("me", [1, 2]))
        found = {e["name"]: e["args"] for e in trace["traceEvents"] if e["ph"] == "M"}
        self.assertIn("me", json.dumps(found))

    def test_flavours_are_refused_by_name(self):
        with self.assertRaisesRegex(ValueError, "brown"):
            add_profile().export_chrome_trace(self.path("x.json"), flavor="brown")
        self.assertFalse(os.path.exists(self.path("x.json")))

    def test_batch_16(self):
        prof = profile(activities=CPU, acc_events=True)
        prof.preset_metadata_json("preset", "3")
        with prof:
            prof.add_metadata("text", "a \"quoted\" \\ one")
            prof.add_metadata_json("bad", "notjson")
            torch.ones(2)
            prof.toggle_collection_dynamic(False, CPU)
            torch.zeros(2)
            prof.toggle_collection_dynamic(True, CPU)
            torch.ones(2)
        names = [e.name for e in prof.events() if e.cpu_parent is None]
        self.assertEqual(names, ["aten::ones", "aten::ones"])
        trace = self.trace(prof)
        self.assertEqual((trace["preset"], trace["text"], trace["bad"]),
                         (3, "a \"quoted\" \\ one", "notjson"))
        with self.assertRaisesRegex(ValueError, "^record_shapes=True, profile_memory=True, with_stack=True "
                                                "required for memory profiling.$"), \
                self.assertWarns(FutureWarning):
            prof.export_memory_timeline(self.path("m.json"))

    def test_batch_21(self):
        prof = profile(activities=CPU)
        self.assertIsNone(prof.get_trace_id())
        self.assertIs(prof.has_cudagraphs, False)
        prof.set_custom_trace_id_callback(lambda: "mine")
        prof.prepare_trace()
        self.assertEqual(prof.get_trace_id(), "mine")
        prof.start_trace()
        torch.ones(2)
        prof.stop_trace()
        self.assertEqual(self.trace(prof)["trace_id"], "mine")
        other = profile(activities=CPU)
        with self.assertRaisesRegex(AssertionError, "Profiler must be initialized before starting trace"):
            other.start_trace()

    def test_d1_mapping(self):
        event = one(add_profile().events(), "aten::add")
        self.assertEqual(event.to_dict(), dict(event.items()))
        self.assertEqual(list(event.values()), [event[key] for key in event.keys()])
        self.assertEqual(event.get("nothing", 7), 7)
        self.assertTrue(event)
        with self.assertRaises(TypeError):
            event["name"] = "other"
        with self.assertRaises(KeyError):
            event["nothing"]

    def test_d2_device_types(self):
        event = one(add_profile().events(), "aten::add")
        self.assertEqual(event.device_type, "CPU")
        self.assertIs(event.device_type, DeviceType.CPU)
        self.assertEqual({event.device_type: 1}["CPU"], 1)
        self.assertEqual(DeviceType.PrivateUse1, "NPU")

    def test_d14_every_thread(self):
        with profile(activities=CPU) as prof:
            thread = threading.Thread(target=lambda: torch.ones(3))
            thread.start()
            thread.join()
        event = one(prof.events(), "aten::ones")
        self.assertNotEqual(event["thread_id"], threading.get_ident())
        self.assertNotEqual(event["runtime_tid"], threading.get_native_id())

    def test_d32_threads(self):
        event = one(add_profile().events(), "aten::add")
        self.assertEqual((event.thread, event["thread_id"]), (1, threading.get_ident()))

    def test_d33(self):
        prof = profile(activities=CPU)
        other = profile(activities=CPU)
        with prof:
            with self.assertRaisesRegex(RuntimeError, "(?i)already"):
                other.start()
            self.assertRaises(RuntimeError, prof.start)
            torch.ones(2)
        self.assertTrue(prof.events())
        with self.assertWarns(UserWarning):
            prof.stop()
        self.assertTrue(prof.events())

    def test_nothing_is_kept_alive(self):
        """Recording shapes, stacks and memory never keeps a tensor alive."""
        import gc
        import weakref
        with profile(activities=CPU, record_shapes=True, with_stack=True, profile_memory=True) as prof:
            x = torch.ones(100)
            y = x * 2
            seen = [weakref.ref(x), weakref.ref(y)]
            del x, y
            gc.collect()
            self.assertEqual([ref() for ref in seen], [None, None])
        frees = [e for e in prof.events() if e.name == "[memory]"]
        self.assertEqual(sum(e.cpu_memory_usage for e in frees), -800)


if __name__ == "__main__":
    unittest.main()
