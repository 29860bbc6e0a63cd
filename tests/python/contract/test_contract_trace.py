# SPDX-License-Identifier: Apache-2.0
"""torch-contract 5, the Chrome trace in kineto's format, item by item, of programs that
mindtorch_v2 runs.

What other tests have is not repeated: metadata and trace ids (test_profile_lifecycle), flavours, full disks
and what an aborted export leaves (test_exports_python), frames and modules (test_call_tracer, test_modules).
"""
import gzip
import json
import os
import re
import threading
import time
import unittest

from support_contract import ContractTest, profiled, read_trace, torch, train
from mindtorch_v2.profiler import ProfilerActivity, _ExperimentalConfig, profile, record_function, schedule

CPU = [ProfilerActivity.CPU]
SLOT = 7889238


class File(ContractTest):
    """torch-contract 5.1, 5.2."""

    def test_5_1_1_before_any_run(self):
        with self.assertRaisesRegex(AssertionError,
                                    "^Profiler must be initialized before exporting chrome trace$"):
            profile(activities=CPU).export_chrome_trace(self.path("t.json"))
        self.assertEqual(os.listdir(self.folder), [])
        self.assertIsNone(profiled().export_chrome_trace(self.path("t.json")))

    def test_5_1_1_only_the_last_cycle(self):
        paths = []

        def ready(prof):
            paths.append(self.path(f"{prof.step_num}.json"))
            prof.export_chrome_trace(paths[-1])
        with profile(activities=CPU, schedule=schedule(wait=1, warmup=1, active=2, repeat=3),
                     on_trace_ready=ready) as prof:
            train(18, prof)
        self.assertEqual(len(paths), 3)  # torch-contract 9.1.11
        steps = [sorted(e["name"] for e in read_trace(path)["traceEvents"]
                        if e["name"].startswith("ProfilerStep#") and e["ph"] == "X") for path in paths]
        self.assertEqual(steps, [["ProfilerStep#2", "ProfilerStep#3"], ["ProfilerStep#6", "ProfilerStep#7"],
                                 ["ProfilerStep#10", "ProfilerStep#11"]])

    def test_5_1_2_gz(self):
        prof = profiled()
        prof.export_chrome_trace(self.path("t.json.gz"))
        with open(self.path("t.json.gz"), "rb") as file:
            self.assertEqual(file.read(2), b"\x1f\x8b")
        packed, plain = read_trace(self.path("t.json.gz")), self.trace(prof)
        self.assertEqual(packed["traceEvents"], plain["traceEvents"])
        with gzip.open(self.path("t.json.gz")) as file:
            self.assertTrue(file.read().endswith(b"}\n"))

    def test_5_1_3_unwritable(self):
        prof = profiled()
        for bad in (self.path("none/t.json"), self.folder, self.path("none/t.json.gz")):
            with self.subTest(bad=bad), self.assertRaises(OSError) as caught:
                prof.export_chrome_trace(bad)
            self.assertEqual(caught.exception.filename, bad)
        self.assertEqual(os.listdir(self.folder), [])
        self.assertTrue(self.trace(prof)["traceEvents"])

    def test_5_1_4_empty_trace(self):
        for flavor in (None, "mindtorch"):
            with profile(activities=CPU) as prof:
                pass
            trace = self.trace(prof, flavor=flavor)
            self.assertEqual(trace["traceEvents"][-1]["name"], "Record Window End")
            names = {(e["name"], e["pid"]) for e in trace["traceEvents"] if e["ph"] == "M"}
            self.assertIn(("process_name", os.getpid()), names)  # 5.5.1, as torch's empty traces have it
            self.assertIn(("thread_name", os.getpid()), names)

    def test_5_1_4_and_1_7_exports_are_repeated(self):
        prof = profiled(record_shapes=True, with_stack=True, profile_memory=True)
        first = self.trace(prof, "same.json")
        prof.key_averages().table()
        self.trace(prof, flavor="mindtorch")
        self.assertEqual(self.trace(prof, "same.json"), first)
        self.assertEqual(sorted(os.listdir(self.folder)), ["same.json", "trace.json"])

    def test_5_2_top_level(self):
        prof = profiled(record_shapes=True, profile_memory=True, with_stack=True, with_flops=True,
                        with_modules=True)
        trace = self.trace(prof)
        keys = list(trace)
        self.assertEqual(trace["schemaVersion"], 1)
        self.assertEqual(trace["deviceProperties"], [])
        self.assertRegex(trace["trace_id"], "^[0-9A-F]{32}$")
        self.assertEqual(trace["trace_id"], prof.get_trace_id())
        for flag in ("profile_memory", "with_stack", "record_shapes", "with_modules", "with_flops"):
            self.assertIs(type(trace[flag]), int, flag)
            self.assertEqual(trace[flag], 1, flag)
        self.assertEqual(trace["displayTimeUnit"], "ms")
        self.assertEqual(trace["traceName"], self.path("trace.json"))
        self.assertEqual(keys[-2:], ["traceEvents", "traceName"])  # streaming readers stop there
        plain = self.trace(profiled())
        self.assertFalse({"profile_memory", "with_stack", "record_shapes", "with_modules",
                          "with_flops"} & set(plain))

    def test_5_8_1_a_key_a_line(self):
        """HTA finds the rank by a line with a blank after the colon."""
        with profile(activities=CPU) as prof:
            prof.add_metadata_json("distributedInfo", json.dumps({"backend": "nccl", "rank": 3,
                                                                  "world_size": 8}))
            torch.ones(2)
        prof.export_chrome_trace(self.path("t.json"))
        with open(self.path("t.json"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        keys = [m.group(1) for line in lines for m in [re.match(r'^  "([^"]+)": ', line)] if m]
        self.assertEqual(keys, list(read_trace(self.path("t.json"))))
        self.assertEqual([m.group(1) for line in lines for m in [re.search(r'"rank":\s+(\d+)', line)] if m],
                         ["3"])


class Time(ContractTest):
    """torch-contract 5.3."""

    def test_5_3_1_unix_time(self):
        before = time.time_ns()
        with profile(activities=CPU) as prof:
            opened = time.time_ns()
            with record_function("here"):
                time.sleep(0.002)
            closed = time.time_ns()
        after = time.time_ns()
        trace = self.trace(prof)
        span = self.spans(trace, name="here")[0]
        base = trace["baseTimeNanoseconds"]
        start = round(span["ts"] * 1000) + base
        end = start + round(span["dur"] * 1000)
        slack = 5_000_000  # two clocks, and how one follows from the other
        self.assertLess(before - slack, start)
        self.assertLessEqual(opened - slack, start)
        self.assertLess(end, closed + slack)
        self.assertGreaterEqual(end - start, 2_000_000)
        self.assertLess(end, after + slack)

    def test_5_3_1_three_digits(self):
        prof = profiled()
        prof.export_chrome_trace(self.path("t.json"))
        with open(self.path("t.json"), encoding="utf-8") as file:
            text = file.read()
        numbers = re.findall(r'"(?:ts|dur)":([^,}]+)', text)
        self.assertGreater(len(numbers), 50)
        self.assertEqual([n for n in numbers if not re.fullmatch(r"\d+\.\d{3}", n)], [])

    def test_5_3_1_events_and_trace_agree(self):
        prof = profiled()
        spans = {e["args"]["External id"]: e for e in self.spans(self.trace(prof), "cpu_op")}
        events = [e for e in prof.events() if e["kind"] == "op"]
        self.assertEqual(len(spans), len(events))
        first = min(events, key=lambda e: e.time_range.start)
        for event in events:
            # What ends in the same nanosecond as something inside it is shown a nanosecond wider.
            wider_ns = round(1000 * (spans[event.id]["dur"] - event.time_range.elapsed_us()))
            self.assertIn(wider_ns, (0, 1))
            offset = spans[event.id]["ts"] - spans[first.id]["ts"]
            self.assertAlmostEqual(offset, event.time_range.start - first.time_range.start, delta=0.002)

    def test_5_3_2_base(self):
        now = int(time.time())
        self.assertEqual(self.trace(profiled())["baseTimeNanoseconds"], now // SLOT * SLOT * 10 ** 9)


class Shapes(ContractTest):
    """torch-contract 5.4, 5.5."""

    FIELDS = {"X": {"ph", "cat", "name", "pid", "tid", "ts", "dur"}, "M": {"name", "ph", "ts", "pid", "tid",
                                                                           "args"},
              "s": {"ph", "id", "pid", "tid", "ts", "cat", "name"},
              "f": {"ph", "id", "pid", "tid", "ts", "cat", "name", "bp"}}

    def test_5_4_fields(self):
        trace = self.trace(profiled(2, record_shapes=True, profile_memory=True, with_stack=True))
        seen = set()
        for event in trace["traceEvents"]:
            seen.add(event["ph"])
            fields = set(event) - {"args"} if event["ph"] == "X" else set(event)
            if event["ph"] in self.FIELDS:
                self.assertEqual(fields, self.FIELDS[event["ph"]], event)
            for key in ("ts", "dur"):
                if key in event:
                    self.assertIn(type(event[key]), (int, float), event)
                    self.assertGreaterEqual(event[key], 0)
            if event["ph"] == "i" and event["s"] == "t":
                self.assertEqual(set(event), {"ph", "cat", "s", "name", "pid", "tid", "ts", "args"})
            self.assertNotEqual(event.get("args"), {}, event)
        self.assertEqual(seen, {"X", "i", "M", "s", "f"})

    def test_5_4_1_order(self):
        events = self.trace(profiled())["traceEvents"]
        self.assertEqual((events[0]["ph"], events[0]["cat"], events[0]["pid"]), ("X", "cpu_op", os.getpid()))
        kinds = [e["ph"] for e in events]
        first_meta = kinds.index("M")
        self.assertEqual(set(kinds[first_meta:-4]), {"M"})
        self.assertNotIn("M", kinds[:first_meta])
        self.assertEqual(kinds[-4:], ["X", "M", "i", "i"])

    def test_5_4_2_trace_span(self):
        trace = self.trace(profiled())
        span, sort, start, end = trace["traceEvents"][-4:]
        self.assertEqual((span["cat"], span["name"], span["pid"], span["tid"], span["args"]),
                         ("Trace", "PyTorch Profiler (0)", "Spans", "PyTorch Profiler", {"Op count": 0}))
        self.assertEqual((sort["name"], sort["pid"], sort["args"]),
                         ("process_sort_index", "Spans", {"sort_index": 536870912}))
        self.assertEqual((start["name"], start["s"], start["pid"], start["tid"], "cat" in start),
                         ("Iteration Start: PyTorch Profiler", "g", "Traces", "Trace PyTorch Profiler",
                          False))
        self.assertEqual((end["name"], end["s"], end["pid"], end["tid"], "cat" in end),
                         ("Record Window End", "g", "", "", False))
        for event in self.spans(trace):
            self.assertLessEqual(span["ts"], event["ts"])
            self.assertLessEqual(event["ts"] + event["dur"], end["ts"] + 0.0011)

    def test_5_4_3_nasty_names(self):
        """Any name gives valid JSON: it is escaped, not cleaned."""
        names = ['quote " here', "back\\slash", "new\nline", "tab\t", "nul\0inside", "\x01\x1f\x7f",
                 "ünï – 漢字 🙂",
                 "</script>", "kernel", "", " ", "a" * 3000, "line sep  ", "re", "{}[],:", '"', "\\", "\\\"",
                 "%s%n", "\ufeff"]
        with profile(activities=CPU) as prof:
            for name in names:
                with record_function(name):
                    pass
            prof.add_metadata('key "with" quotes\\', 'value "with"\nall\x00')
        self.assertEqual([e.name for e in prof.events()], names)
        for flavor in (None, "mindtorch"):
            trace = self.trace(prof, flavor=flavor)
            category = "user_annotation" if flavor is None else "scope"
            shown = [e["name"] for e in sorted(self.spans(trace, category), key=lambda e: e["ts"])]
            self.assertEqual(shown, names)
            self.assertEqual(trace['key "with" quotes\\'], 'value "with"\nall\x00')
        path = self.path('a "quoted" näme\\.json')
        prof.export_chrome_trace(path)
        self.assertEqual(read_trace(path)["traceName"], path)

    def test_5_4_3_lone_surrogates(self):
        with profile(activities=CPU) as prof:
            with record_function("lone \udc80 surrogate"):
                pass
        prof.export_chrome_trace(self.path("t.json"))
        with open(self.path("t.json"), "rb") as file:
            file.read().decode("utf-8")
        self.assertIn("lone ", self.spans(self.trace(prof), "user_annotation")[0]["name"])

    def test_5_5_1_process(self):
        trace = self.trace(profiled())
        pid = os.getpid()
        mine = {e["name"]: e["args"] for e in trace["traceEvents"] if e["ph"] == "M" and e["pid"] == pid}
        with open("/proc/self/comm", encoding="utf-8") as file:
            program = file.read().strip()
        self.assertEqual(mine["process_name"], {"name": program})
        self.assertEqual(mine["process_labels"], {"labels": "CPU"})
        self.assertEqual(mine["process_sort_index"], {"sort_index": pid})

    def test_5_5_3_threads(self):
        with profile(activities=CPU) as prof:
            torch.ones(2)
            tids = [threading.get_native_id()]

            def run():
                tids.append(threading.get_native_id())
                torch.ones(2)
            thread = threading.Thread(target=run, name="worker bee")
            thread.start()
            thread.join()
        trace = self.trace(prof)
        self.assertEqual({e["tid"] for e in self.spans(trace, "cpu_op")}, set(tids))
        names = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
        for tid in tids:
            self.assertRegex(names[tid], rf"^thread {tid} \(.+\)$")
        order = {e["tid"]: e["args"]["sort_index"] for e in trace["traceEvents"]
                 if e["name"] == "thread_sort_index"}
        self.assertEqual(order, {tid: tid for tid in tids})


class Arguments(ContractTest):
    """torch-contract 5.6."""

    def test_5_6_cpu_op(self):
        x = torch.ones(2, 3, requires_grad=True)
        with profile(activities=CPU, record_shapes=True) as prof:
            torch.cat([x, x.detach()], 1).sum().backward()
        trace = self.trace(prof)
        args = self.spans(trace, name="aten::cat")[0]["args"]
        self.assertEqual(args["Input Dims"], [[[2, 3], [2, 3]], []])
        self.assertEqual(args["Input Strides"], [[[3, 1], [3, 1]], []])
        self.assertEqual(args["Input type"], ["TensorList", "Scalar"])
        self.assertEqual(args["Concrete Inputs"], ["", "1"])
        for event in self.spans(trace, "cpu_op"):
            args = event["args"]
            for key in ("External id", "Ev Idx", "Record function id"):
                self.assertIs(type(args[key]), int)
            self.assertEqual("Sequence number" in args, "Fwd thread id" in args)
            if "Sequence number" in args:
                self.assertGreaterEqual(args["Sequence number"], 0)
            dims = [len(args[key]) for key in ("Input Dims", "Input Strides", "Input type", "Concrete Inputs")
                    if key in args]
            self.assertEqual(len(set(dims)), min(1, len(dims)), event)
            self.assertTrue(all(isinstance(text, str) for text in args.get("Concrete Inputs", [])))

    def test_5_6_input_types(self):
        kinds = {torch.float32: "float", torch.float64: "double", torch.int64: "long int", torch.int32: "int",
                 torch.uint8: "unsigned char", torch.bool: "bool", torch.float16: "c10::Half",
                 torch.bfloat16: "c10::BFloat16"}
        tensors = {kind: torch.ones(2, dtype=kind) for kind in kinds}
        with profile(activities=CPU, record_shapes=True) as prof:
            for tensor in tensors.values():
                tensor.clone()
            torch.ones(2).reshape([2, 1])
        trace = self.trace(prof)
        clones = sorted(self.spans(trace, name="aten::clone"), key=lambda e: e["ts"])
        self.assertEqual([e["args"]["Input type"][0] for e in clones], list(kinds.values()))
        reshape = self.spans(trace, name="aten::reshape")[0]["args"]
        self.assertEqual(reshape["Input type"], ["float", "ScalarList"])
        self.assertEqual(reshape["Concrete Inputs"], ["", "[2, 1]"])

    def test_5_6_long_lists_of_tensors(self):
        """More than thirty tensors are not written out."""
        few, many = [torch.ones(1)] * 30, [torch.ones(1)] * 31
        with profile(activities=CPU, record_shapes=True) as prof:
            torch.cat(few)
            torch.cat(many)
        shown = [e["args"]["Input Dims"][0] for e in
                 sorted(self.spans(self.trace(prof), name="aten::cat"), key=lambda e: e["ts"])]
        self.assertEqual([len(lengths) for lengths in shown], [30, 0])

    def test_5_6_1_external_ids(self):
        prof = profiled()
        trace = self.trace(prof)
        ids = [e["args"]["External id"] for e in self.spans(trace) if e["cat"] in ("cpu_op",
                                                                                   "user_annotation")]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual(set(ids), {e.id for e in prof.events()})

    def test_5_6_2_event_indices(self):
        trace = self.trace(profiled(profile_memory=True))
        numbers = [e["args"]["Ev Idx"] for e in trace["traceEvents"] if "Ev Idx" in e.get("args", {})]
        wanted = [e for e in trace["traceEvents"] if e.get("cat") in ("cpu_op", "user_annotation",
                                                                      "cpu_instant_event")]
        self.assertEqual(len(numbers), len(wanted))
        self.assertEqual(len(numbers), len(set(numbers)))
        self.assertEqual(min(numbers), 0)

    def test_5_6_annotations(self):
        with profile(activities=CPU, record_shapes=True) as prof:
            with record_function("plain"):
                pass
            with record_function("with", "some text"):
                pass
        trace = self.trace(prof)
        plain = self.spans(trace, "user_annotation", "plain")[0]["args"]
        self.assertLessEqual({"External id", "Record function id", "Ev Idx"}, set(plain))
        self.assertNotIn("Input Dims", plain)
        self.assertEqual(self.spans(trace, "user_annotation", "with")[0]["args"]["Concrete Inputs"],
                         ["some text"])

    def test_5_6_memory(self):
        with profile(activities=CPU, profile_memory=True) as prof:
            x = torch.ones(1024)
            del x
        memory = [e for e in self.trace(prof)["traceEvents"] if e["ph"] == "i" and e["name"] == "[memory]"]
        self.assertEqual([e["args"]["Bytes"] for e in memory], [4096, -4096])
        self.assertEqual(memory[0]["args"]["Addr"], memory[1]["args"]["Addr"])
        for event in memory:
            args = event["args"]
            self.assertEqual(event["cat"], "cpu_instant_event")
            self.assertEqual((args["Device Type"], args["Device Id"]), (0, -1))
            for key in ("Addr", "Bytes", "Total Allocated", "Total Reserved", "Ev Idx"):
                self.assertIs(type(args[key]), int, key)
        self.assertEqual(memory[0]["args"]["Total Allocated"] - memory[1]["args"]["Total Allocated"], 4096)

    def test_5_6_4_functions(self):
        for verbose in (False, True):
            with profile(activities=CPU, with_stack=True,
                         experimental_config=_ExperimentalConfig(verbose=verbose)) as prof:
                train()
            functions = self.spans(self.trace(prof), "python_function")
            names = {e["name"] for e in functions}
            self.assertIn("nn.Module: Net_0", names)
            self.assertLessEqual({"nn.Module: Linear_0", "nn.Module: Linear_1"}, names)
            self.assertTrue([n for n in names if re.search(r"support_contract\.py\(\d+\): train$", n)], names)
            ids = [e["args"]["Python id"] for e in functions]
            self.assertEqual(len(ids), len(set(ids)))
            for event in functions:
                parent = event["args"]["Python parent id"]
                self.assertTrue(parent is None or parent in ids)
                self.assertEqual("sampled" in event["args"], not verbose)
                self.assertEqual(event["args"].get("Python thread"), 0 if verbose else None)
                self.assertEqual("Python module id" in event["args"], event["name"].startswith("nn.Module: "))
        self.assertEqual(self.spans(self.trace(profiled()), "python_function"), [])

    def test_5_6_4_relative_names(self):
        """Traced calls name files relative to sys.path; rebuilt ones are the frames of the stacks."""
        with profile(activities=CPU, with_stack=True,
                     experimental_config=_ExperimentalConfig(verbose=True)) as prof:
            train()
        names = {e["name"] for e in self.spans(self.trace(prof), "python_function")}
        mine = {n for n in names if "support_contract.py" in n}
        self.assertIn("train", {n.split(": ")[1] for n in mine})
        self.assertEqual({n for n in mine if not n.startswith("support_contract.py(")}, set())
        prof = profiled(with_stack=True)
        names = {e["name"] for e in self.spans(self.trace(prof), "python_function")}
        # A frame's span goes by the line it was first seen at.
        frames = {frame for e in prof.events() for frame in e.stack}
        self.assertEqual({n for n in names if not n.startswith("nn.Module: ")} - frames, set())

    def test_5_6_call_stacks(self):
        trace = self.trace(profiled(with_stack=True))
        for event in self.spans(trace, "cpu_op"):
            text = event["args"]["Call stack"]
            self.assertTrue(text.endswith(";"))
            self.assertEqual(text[:-1].split(";"), event["args"]["stack"])


class Flows(ContractTest):
    """torch-contract 5.7."""

    def test_9_1_10_two_pairs(self):
        x = torch.ones(2, 2, requires_grad=True)
        with profile(activities=CPU) as prof:
            torch.add(x, 1.0).sum().backward()
        trace = self.trace(prof)
        flows = [e for e in trace["traceEvents"] if e.get("cat") == "fwdbwd"]
        bound = {}
        for flow in flows:
            self.assertEqual(flow["name"], "fwdbwd")
            found = [e["name"] for e in self.spans(trace, "cpu_op")
                     if (e["pid"], e["tid"], e["ts"]) == (flow["pid"], flow["tid"], flow["ts"])]
            bound.setdefault(flow["id"], {})[flow["ph"]] = found
            self.assertEqual(flow.get("bp"), "e" if flow["ph"] == "f" else None)
        self.assertEqual(bound, {1: {"s": ["aten::sum"], "f": ["SumBackward0"]},
                                 2: {"s": ["aten::add"], "f": ["AddBackward0"]}})

    def test_5_7_3_and_5_7_4_of_a_training(self):
        trace = self.trace(profiled(3))
        flows = [e for e in trace["traceEvents"] if e.get("cat") == "fwdbwd"]
        starts = {e["id"]: e for e in flows if e["ph"] == "s"}
        ends = {e["id"]: e for e in flows if e["ph"] == "f"}
        self.assertEqual(set(starts), set(ends))
        self.assertEqual(sorted(starts), list(range(1, len(starts) + 1)))
        spans = {}
        for event in self.spans(trace, "cpu_op"):
            spans.setdefault((event["pid"], event["tid"], event["ts"]), []).append(event)
        for number, start in starts.items():
            forward = spans[start["pid"], start["tid"], start["ts"]]
            backward = spans[ends[number]["pid"], ends[number]["tid"], ends[number]["ts"]]
            self.assertTrue(any("Backward" in e["name"] and "evaluate_function" not in e["name"]
                                for e in backward))
            numbers = {e["args"].get("Sequence number") for e in forward}
            self.assertTrue(numbers & {e["args"].get("Sequence number") for e in backward})

    def test_5_8_spans_nest(self):
        """Perfetto: spans of a thread nest or are apart."""
        trace = self.trace(profiled(2, with_stack=True))
        lanes = {}
        for event in self.spans(trace):
            if event["cat"] != "Trace":
                lanes.setdefault((event["pid"], event["tid"]), []).append(event)
        for lane in lanes.values():
            ends = []
            for event in sorted(lane, key=lambda e: (e["ts"], -e["dur"])):
                start, end = round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)
                while ends and ends[-1] <= start:
                    ends.pop()
                if ends:
                    self.assertLessEqual(end, ends[-1] + 1, event)  # a double has a nanosecond to give
                ends.append(end)


if __name__ == "__main__":
    unittest.main()
