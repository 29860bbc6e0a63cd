# SPDX-License-Identifier: Apache-2.0
"""torch-contract 5.9 and 6: stacks, memory timelines, TensorBoard's files, execution traces, ITT
and NVTX, of programs that mindtorch_v2 runs.

What other tests have is not repeated: every format of export() and failures while writing
(test_exports_python), observers without files, and by hand (test_profile_lifecycle), categories of
memory (C: test_memory_categories).
"""
import gzip
import json
import os
import re
import socket
import time
import unittest

from support_contract import ContractTest, Net, profiled, read_trace, torch, train
from mindtorch_v2.profiler import (ExecutionTraceObserver, ProfilerActivity, profile, record_function,
                                   schedule,
                                   tensorboard_trace_handler)

CPU = [ProfilerActivity.CPU]
MEMORY = dict(record_shapes=True, profile_memory=True, with_stack=True)


class Stacks(ContractTest):
    """torch-contract 6.1."""

    def test_6_1_1_asserts(self):
        with self.assertRaisesRegex(AssertionError, "^export_stacks\\(\\) requires with_stack=True$"):
            profiled().export_stacks(self.path("s.txt"))
        with self.assertRaisesRegex(AssertionError, "^Profiler must be initialized before exporting stacks$"):
            profile(activities=CPU, with_stack=True).export_stacks(self.path("s.txt"))
        self.assertEqual(os.listdir(self.folder), [])

    def test_6_1_2_metrics(self):
        prof = profiled(with_stack=True)
        with self.assertRaisesRegex(ValueError, r"metric should be one of: \['self_cpu_time_total'"):
            prof.export_stacks(self.path("s.txt"), "cpu_time_total")
        for metric in ("self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total",
                       "self_npu_time_total"):
            prof.export_stacks(self.path("s.txt"), metric)
            self.assertEqual(os.path.getsize(self.path("s.txt")), 0, metric)  # no device was there

    def test_6_1_3_lines(self):
        def slow_inner():
            with record_function("a scope; with\ttabs"):
                time.sleep(0.001)

        def outer_one():
            slow_inner()
            slow_inner()
        with profile(activities=CPU, with_stack=True) as prof:
            outer_one()
        prof.export_stacks(self.path("s.txt"))
        with open(self.path("s.txt"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertEqual(len(lines), 2)  # events are not merged
        for line, event in zip(lines, prof.events()):
            frames, value = line.rsplit(" ", 1)
            self.assertEqual(int(value), int(event.self_cpu_time_total))
            wanted = [re.sub(r"[ ;\t\n]", "_", frame) for frame in reversed(event.stack)]
            self.assertEqual(frames.split(";"), wanted)
            self.assertLess(frames.index("outer_one"), frames.index("slow_inner"))
            self.assertNotIn("a_scope", frames)

    def test_only_positive(self):
        """torch-contract 9.1.14: every line ends in a positive integer."""
        prof = profiled(3, with_stack=True)
        prof.export_stacks(self.path("s.txt"))
        with open(self.path("s.txt"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertEqual(len(lines),
                         sum(1 for e in prof.events() if e.stack and int(e.self_cpu_time_total) > 0))
        self.assertTrue(all(re.search(r" [1-9]\d*$", line) for line in lines))


class MemoryTimeline(ContractTest):
    """torch-contract 6.2."""

    def timeline(self, prof, name):
        with self.assertWarns(FutureWarning):
            prof.export_memory_timeline(self.path(name), device="cpu")
        opener = gzip.open if name.endswith(".gz") else open
        with opener(self.path(name), "rt", encoding="utf-8") as file:
            return file.read()

    def test_6_2_1_flags(self):
        for given, missing in ((("record_shapes",), "profile_memory=True, with_stack=True"),
                               (("profile_memory", "with_stack"), "record_shapes=True"),
                               ((), "record_shapes=True, profile_memory=True, with_stack=True")):
            prof = profiled(**{flag: True for flag in given})
            with self.assertWarns(FutureWarning), \
                    self.assertRaisesRegex(ValueError, f"^{missing} required for memory profiling.$"):
                prof.export_memory_timeline(self.path("m.json"))

    def test_6_2_4_plot_data(self):
        start = time.time_ns() // 1000
        prof = profiled(2, **MEMORY)
        end = time.time_ns() // 1000
        times, sizes = json.loads(self.timeline(prof, "m.json"))
        self.assertEqual(len(times), len(sizes))
        self.assertGreater(len(times), 10)
        self.assertEqual(times, sorted(times))
        self.assertTrue(all(type(t) is int for t in times))
        self.assertLessEqual(start - 1000, times[0])
        self.assertLessEqual(times[-1], end + 1000)
        for row in sizes:
            self.assertEqual((len(row), row[0]), (9, 0))
            self.assertTrue(all(value >= 0 for value in row))
        parameters = max(row[1] for row in sizes)
        self.assertEqual(parameters, 4 * sum(p.numel() for p in Net().parameters()))
        self.assertTrue(any(row[6] for row in sizes))  # gradients
        self.assertEqual(json.loads(self.timeline(prof, "m.json.gz")), [times, sizes])

    def test_6_2_5_raw(self):
        raw = json.loads(self.timeline(profiled(**MEMORY), "m.raw.json.gz"))
        self.assertTrue(raw)
        live = 0
        for when, action, size, category in raw:
            self.assertTrue(when == -1 or when > 10 ** 18)
            self.assertIn(action, (1, 2, 3, 4))
            self.assertIn(category, range(8))
            self.assertEqual(when == -1, action == 1)
            live += size if action != 3 else 0
        self.assertGreaterEqual(live, 0)

    def test_6_2_3_html(self):
        text = self.timeline(profiled(**MEMORY), "m.html")
        self.assertTrue(text.lstrip().lower().startswith("<!doctype html>"))
        self.assertIn("<title>Memory timeline of cpu", text)
        self.assertNotIn("http://", text.replace("http://www.w3.org/", ""))  # stands alone

    def test_6_2_7_kept(self):
        prof = profiled(**MEMORY)
        self.assertIsNone(prof.mem_tl)
        self.timeline(prof, "m.json")
        with open(self.path("m.json"), encoding="utf-8") as file:
            first = file.read()
        prof.mem_tl.export_memory_timeline(self.path("again.json"), "cpu")
        with open(self.path("again.json"), encoding="utf-8") as file:
            self.assertEqual(file.read(), first)

    def test_6_2_2_default_device(self):
        prof = profiled(**MEMORY)
        with self.assertWarns(FutureWarning):
            prof.export_memory_timeline(self.path("m.json"))
        if not torch.npu.is_available():
            with open(self.path("m.json"), encoding="utf-8") as file:
                default = file.read()
            self.assertEqual(default, self.timeline(prof, "c.json"))


class TensorBoard(ContractTest):
    """torch-contract 6.3."""

    NAME = re.compile(r"^(.*?)(?:\.(\d+))?\.pt\.trace\.json(\.gz)?$")  # what the plugin looks for

    def run_with(self, handler, steps=8):
        with profile(activities=CPU, schedule=schedule(wait=1, warmup=1, active=2),
                     on_trace_ready=handler) as prof:
            train(steps, prof)

    def test_files(self):
        before = time.time_ns()
        self.run_with(tensorboard_trace_handler(self.path("new/log")))
        files = sorted(os.listdir(self.path("new/log")))
        self.assertEqual(len(files), 2)
        for name in files:
            worker, number, packed = self.NAME.match(name).groups()
            self.assertEqual((worker, packed), (f"{socket.gethostname()}_{os.getpid()}", None))
            self.assertTrue(before <= int(number) <= time.time_ns())
            self.assertTrue(read_trace(self.path("new/log/" + name))["traceEvents"])

    def test_worker_and_gzip(self):
        self.run_with(tensorboard_trace_handler(self.folder, "me", use_gzip=True), 4)
        name, = os.listdir(self.folder)
        self.assertEqual(self.NAME.match(name).group(1, 3), ("me", ".gz"))
        self.assertTrue(read_trace(self.path(name))["traceEvents"])

    def test_no_directory(self):
        with open(self.path("file"), "w", encoding="utf-8"):
            pass
        with self.assertRaisesRegex(RuntimeError,
                                    "^Can't create directory: " + re.escape(self.path("file/log"))):
            with profile(activities=CPU, on_trace_ready=tensorboard_trace_handler(self.path("file/log"))):
                torch.ones(2)


class Execution(ContractTest):
    """torch-contract 6.4."""

    def run_observed(self, path):
        observer = ExecutionTraceObserver().register_callback(path)
        with profile(activities=CPU, execution_trace_observer=observer, record_shapes=True) as prof:
            train()
        with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
            return prof, json.load(file)

    def test_6_4_3_file(self):
        prof, trace = self.run_observed(self.path("et.json"))
        self.assertEqual(set(trace) - {"schema", "pid", "time", "start_ts", "nodes", "finish_ts"}, set())
        self.assertEqual(trace["schema"], "1.1.1-chakra.0.0.4")
        self.assertEqual(trace["pid"], os.getpid())
        nodes = {node["id"]: node for node in trace["nodes"]}
        self.assertEqual(len(nodes), len(trace["nodes"]))
        self.assertEqual(nodes[1]["name"], "[pytorch|profiler|execution_trace|process]")
        self.assertIn("[pytorch|profiler|execution_trace|thread]", {n["name"] for n in trace["nodes"]})
        for node in trace["nodes"]:
            self.assertTrue(node["id"] == 1 or node["ctrl_deps"] in nodes)
            for side in ("inputs", "outputs"):
                lengths = {len(node[side][part]) for part in ("values", "shapes", "types")}
                self.assertEqual(len(lengths), 1)
            if "execution_trace" not in node["name"]:
                self.assertLessEqual({"rf_id", "fw_parent", "seq_id", "scope", "tid", "fw_tid", "op_schema"},
                                     {a["name"] for a in node["attrs"]})
        linear = next(n for n in trace["nodes"] if n["name"] == "aten::linear")
        self.assertEqual(linear["inputs"]["shapes"], [[3, 4], [8, 4], [8]])
        tensor = linear["inputs"]["values"][0]
        self.assertEqual((len(tensor), tensor[3], tensor[4], tensor[5]), (6, 12, 4, "cpu"))
        relu = next(n for n in trace["nodes"] if n["name"] == "aten::relu")
        self.assertEqual(linear["outputs"]["values"][0][:2], relu["inputs"]["values"][0][:2])  # data flow

    def test_6_4_3_joined_by_record_function_ids(self):
        prof, trace = self.run_observed(self.path("et.json"))
        ids = {attr["value"]: node["name"] for node in trace["nodes"] for attr in node["attrs"]
               if attr["name"] == "rf_id"}
        spans = [e for e in self.spans(self.trace(prof), "cpu_op")]
        joined = [e for e in spans if ids.get(e["args"]["Record function id"]) == e["name"]]
        self.assertEqual(len(joined), len(spans))

    def test_6_4_1_gz(self):
        _, trace = self.run_observed(self.path("et.json.gz"))
        self.assertTrue(trace["nodes"])

    def test_6_4_1_methods(self):
        observer = ExecutionTraceObserver()
        self.assertIsNone(observer.get_output_file_path())
        self.assertFalse(observer.is_registered)
        self.assertIs(observer.register_callback(self.path("et.json")), observer)
        observer.register_callback(self.path("other.json"))  # ignored
        self.assertEqual(observer.get_output_file_path(), self.path("et.json"))
        self.assertTrue(observer.is_registered)
        self.assertFalse(observer.is_running())
        observer.start()
        self.assertTrue(observer.is_running())
        observer.stop()
        observer.set_extra_resource_collection(True)
        self.assertEqual(observer.get_resources_dir(can_create=True), self.path("et_resources"))  # 6.4.4
        observer.cleanup()
        observer.unregister_callback()
        self.assertFalse(observer.is_registered)


class Ranges(ContractTest):
    """torch-contract 6.5."""

    def test_6_5_1_itt(self):
        itt = torch.profiler.itt
        self.assertIs(itt.is_available(), False)
        for call in (lambda: itt.range_push("a"), itt.range_pop, lambda: itt.mark("a")):
            self.assertRaises(RuntimeError, call)
        with self.assertRaises(RuntimeError):
            with itt.range("a {}", 1):
                pass

    def test_6_5_1_nvtx(self):
        nvtx = torch.cuda.nvtx
        for name in ("range_push", "range_pop", "range_start", "range_end", "mark", "range"):
            self.assertTrue(callable(getattr(nvtx, name)), name)
        for call in (lambda: nvtx.range_push("a"), nvtx.range_pop, lambda: nvtx.range("a").__enter__()):
            with self.assertRaisesRegex(RuntimeError, "NVTX functions not installed"):
                call()

    def test_6_5_2_emitters(self):
        for name in ("emit_nvtx", "emit_itt"):
            emitter = getattr(torch.autograd.profiler, name)
            with emitter(enabled=False):
                torch.ones(2)


class Lists(ContractTest):
    """torch-contract 5.9."""

    def test_5_9_array(self):
        prof = profiled()
        prof.events().export_chrome_trace(self.path("t.json"))
        with open(self.path("t.json"), encoding="utf-8") as file:
            array = json.load(file)
        self.assertIsInstance(array, list)
        self.assertEqual([e["name"] for e in array], [e.trace_name for e in prof.events()])
        for entry, event in zip(array, prof.events()):
            self.assertEqual((entry["ph"], entry["pid"], entry["tid"], entry["args"]),
                             ("X", "CPU functions", event.thread, {}))
            self.assertAlmostEqual(entry["ts"], event.time_range.start, places=3)
            self.assertAlmostEqual(entry["dur"], event.time_range.elapsed_us(), places=3)


if __name__ == "__main__":
    unittest.main()
