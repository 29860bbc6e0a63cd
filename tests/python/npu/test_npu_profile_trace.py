# SPDX-License-Identifier: Apache-2.0
"""The accelerator in files: Chrome traces item by item (torch-contract 5), and every other format
with device work in it."""
import csv
import json
import os
import tempfile
import unittest
import warnings

from support_npu import torch
import mtprof
from mindtorch_v2.profiler import ProfilerActivity, profile, record_function, schedule

BOTH = [ProfilerActivity.CPU, ProfilerActivity.NPU]
DEVICE_CATEGORIES = {"kernel", "gpu_memcpy", "gpu_memset"}


def program():
    """Work on two streams of one device and on another device."""
    side = torch.npu.Stream()
    with record_function("outer"):
        a = torch.ones(64, 64, device="npu")
        b = a @ a
        with record_function("inner"), torch.npu.stream(side):
            side.wait_stream(torch.npu.default_stream())
            c = a + 1
        side.synchronize()
        d = torch.zeros(1024, dtype=torch.uint8, device="npu:1")
        host = b.cpu()
        e = torch.ones(3) + 1
    return side, (c, d, e, host)


class Case(unittest.TestCase):
    """A folder for files."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def trace(self, prof, **options):
        path = self.path("t.json")
        prof.export_chrome_trace(path, **options)
        with open(path, encoding="utf-8") as file:
            return json.load(file)


class Chrome(Case):
    """Kineto's format."""

    @classmethod
    def setUpClass(cls):
        program()
        with profile(activities=BOTH, profile_memory=True, record_shapes=True) as prof:
            cls.side, cls.kept = program()
        cls.prof = prof

    def setUp(self):
        super().setUp()
        self.whole = self.trace(self.prof)
        self.spans = [e for e in self.whole["traceEvents"] if e["ph"] == "X"]

    def of(self, *categories):
        return [e for e in self.spans if e["cat"] in categories]

    def test_categories(self):
        self.assertTrue({"cpu_op", "user_annotation", "privateuse1_runtime", "kernel", "gpu_memcpy",
                         "gpu_user_annotation"} <= {e["cat"] for e in self.spans})
        self.assertTrue({"npuLaunchKernel", "npuMemcpy", "npuStreamSynchronize", "npuEventRecord",
                         "npuStreamWaitEvent", "npuDeviceSynchronize"} <=
                        {e["name"] for e in self.of("privateuse1_runtime")})
        self.assertIn("Memcpy DtoH (Device -> Pageable)", {e["name"] for e in self.of("gpu_memcpy")})

    def test_tracks(self):
        places = {(e["pid"], e["tid"]) for e in self.of(*DEVICE_CATEGORIES)}
        number = next(tid for pid, tid in places if pid == 0 and tid != 0)
        self.assertEqual(places, {(0, 0), (0, number), (1, 0)})
        for event in self.of(*DEVICE_CATEGORIES):
            self.assertEqual((event["args"]["device"], event["args"]["stream"]), (event["pid"], event["tid"]))
        for event in self.of("cpu_op", "user_annotation", "privateuse1_runtime"):
            self.assertEqual(event["pid"], os.getpid())
            self.assertNotIn("stream", event["args"])
        by_track = {}
        for event in self.of(*DEVICE_CATEGORIES):
            by_track.setdefault((event["pid"], event["tid"]), []).append(event)
        for events in by_track.values():
            events.sort(key=lambda e: e["ts"])
            for first, second in zip(events, events[1:]):
                self.assertLessEqual(first["ts"] + first["dur"], second["ts"] + 0.0011)

    def test_names_of_tracks(self):
        names = {(e["pid"], e["tid"], e["name"]): next(iter(e["args"].values()))
                 for e in self.whole["traceEvents"] if e["ph"] == "M"}
        for device in (0, 1):
            self.assertEqual(names[device, 0, "process_labels"], f"NPU {device}")
            self.assertEqual(names[device, 0, "process_sort_index"], 5000000 + device)
        for pid, tid in {(e["pid"], e["tid"]) for e in self.of(*DEVICE_CATEGORIES)}:
            self.assertEqual(names[pid, tid, "thread_name"], f"stream {tid} ")

    def test_what_devices_are(self):
        properties = self.whole["deviceProperties"]
        self.assertEqual([p["id"] for p in properties], [0, 1])
        for index, one in enumerate(properties):
            self.assertEqual(one["name"], torch.npu.get_device_name(index))
            self.assertEqual(one["totalGlobalMem"], torch.npu.mem_get_info(index)[1])

    def test_args(self):
        ops = {e["args"]["External id"]: e for e in self.of("cpu_op")}
        calls = {e["args"]["correlation"]: e for e in self.of("privateuse1_runtime")}
        for event in self.of(*DEVICE_CATEGORIES):
            args = event["args"]
            self.assertEqual(args["device_type"], "NPU")
            self.assertEqual(ops[args["External id"]]["args"]["device_type"], "NPU")
            self.assertEqual(calls[args["correlation"]]["args"]["External id"], args["External id"])
            if event["cat"] != "kernel":
                self.assertGreater(args["bytes"], 0)
                if event["dur"] > 0:
                    self.assertAlmostEqual(args["memory bandwidth (GB/s)"], args["bytes"] / (event["dur"] * 1000),
                                           places=6)
        mm, = [e for e in self.of("cpu_op") if e["name"] == "aten::mm"]
        self.assertEqual(mm["args"]["npu_memory_allocated_delta"], 64 * 64 * 4)
        self.assertEqual(mm["args"]["npu_memory_allocated_after"] - mm["args"]["npu_memory_allocated_before"],
                         64 * 64 * 4)
        self.assertNotIn("cpu_memory_allocated_delta", mm["args"])
        add, = [e for e in self.of("cpu_op") if e["name"] == "aten::add" and e["args"]["device_type"] == "CPU"]
        self.assertEqual(add["args"]["cpu_memory_allocated_delta"], 12)

    def test_flows(self):
        starts = {e["id"]: e for e in self.whole["traceEvents"] if e.get("cat") == "ac2g" and e["ph"] == "s"}
        ends = {e["id"]: e for e in self.whole["traceEvents"] if e.get("cat") == "ac2g" and e["ph"] == "f"}
        work = {e["args"]["correlation"]: e for e in self.of(*DEVICE_CATEGORIES)}
        calls = {e["args"]["correlation"]: e for e in self.of("privateuse1_runtime")}
        self.assertEqual(set(starts), set(work))
        self.assertEqual(set(ends), set(work))
        for key, event in work.items():
            self.assertEqual([starts[key][k] for k in ("pid", "tid", "ts")],
                             [calls[key][k] for k in ("pid", "tid", "ts")])
            self.assertEqual([ends[key][k] for k in ("pid", "tid", "ts")], [event[k] for k in ("pid", "tid", "ts")])
            self.assertEqual(ends[key]["bp"], "e")

    def test_annotations(self):
        places = {(e["name"], e["pid"], e["tid"]) for e in self.of("gpu_user_annotation")}
        number = next(tid for _, pid, tid in places if pid == 0 and tid != 0)
        self.assertEqual(places, {("outer", 0, 0), ("outer", 0, number), ("inner", 0, number), ("outer", 1, 0)})
        scopes = {e["name"]: e["args"]["External id"] for e in self.of("user_annotation")}
        for event in self.of("gpu_user_annotation"):
            self.assertEqual(event["args"]["External id"], scopes[event["name"]])

    def test_steps_on_the_device(self):
        with profile(activities=BOTH, schedule=schedule(wait=0, warmup=1, active=2, repeat=1)) as prof:
            for _ in range(3):
                torch.ones(4, device="npu")
                prof.step()
        spans = [e for e in self.trace(prof)["traceEvents"] if e.get("cat") == "gpu_user_annotation"]
        self.assertEqual(sorted(e["name"] for e in spans), ["ProfilerStep#1", "ProfilerStep#2"])

    def test_health(self):
        self.assertEqual(self.whole["mtprof_health"]["unmatched"], 0)
        self.assertEqual(self.whole["mtprof_health"]["launches"], len(self.of(*DEVICE_CATEGORIES)))

    def test_a_trace_that_is_read_again(self):
        path = self.path("again.json")
        self.prof.export_chrome_trace(path)
        loaded = mtprof.load(path)
        def table(results):
            return results.key_averages().table(sort_by="self_device_time_total", row_limit=-1)
        self.assertEqual(table(loaded), table(self.prof))
        saved = self.path("saved.mtt")
        self.prof.save(saved)
        self.assertEqual(table(mtprof.load(saved)), table(self.prof))

    def test_mindtorch_flavor(self):
        events = [e for e in self.trace(self.prof, flavor="mindtorch")["traceEvents"] if e["ph"] == "X"]
        ops = [e for e in events if e["cat"] == "op"]
        mm, = [e for e in ops if e["name"] == "aten::mm"]
        self.assertEqual(mm["args"]["device_type"], "NPU")
        runtime = {}
        for event in events:
            if event["cat"] == "runtime":
                runtime.setdefault(event["args"].get("correlation_id"), []).append(event)
        for op in ops:
            self.assertTrue(runtime.get(op["args"]["correlation_id"]), op["name"])
        launch, = [e for e in runtime[mm["args"]["correlation_id"]] if e["name"] == "dispatch_kernel"]
        self.assertEqual(launch["args"]["op_name"], "aten::mm")
        self.assertEqual({e["args"]["device_type"] for e in ops if e["name"] == "aten::add"}, {"CPU", "NPU"})


class OtherFormats(Case):
    """Exports other than Chrome's."""

    @classmethod
    def setUpClass(cls):
        with profile(activities=BOTH, profile_memory=True, record_shapes=True, with_stack=True) as prof:
            cls.side, cls.kept = program()
        cls.prof = prof

    def loaded(self):
        path = self.path("t.mtt")
        self.prof.save(path)
        return mtprof.load(path)

    def test_csv(self):
        path = self.path("t.csv")
        self.loaded().export("csv", path)
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        devices = {row["device"] for row in rows if row["kind"] in ("kernel", "copy", "set")}
        self.assertEqual(devices, {"NPU:0", "NPU:1"})

    def test_every_format_takes_device_work(self):
        loaded = self.loaded()
        for name in ("chrome", "perfetto", "stacks", "folded", "speedscope", "csv", "execution", "memory",
                     "memory_raw"):
            with self.subTest(name):
                path = self.path("out." + name)
                loaded.export(name, path)
                self.assertGreater(os.path.getsize(path), 0)

    def test_speedscope_has_the_tracks(self):
        path = self.path("t.speedscope.json")
        self.loaded().export("speedscope", path, metric="self_npu_time_total")
        with open(path, encoding="utf-8") as file:
            whole = json.load(file)
        self.assertEqual(len(whole["profiles"]), 3)  # two streams, and another device
        names = {frame["name"] for frame in whole["shared"]["frames"]}
        self.assertIn("Memcpy DtoH (Device -> Pageable)", names)

    def test_stacks_of_device_time(self):
        for metric in ("self_npu_time_total", "self_cuda_time_total", "self_cpu_time_total"):
            path = self.path(metric)
            self.prof.export_stacks(path, metric)
            with open(path, encoding="utf-8") as file:
                lines = file.read().splitlines()
            self.assertTrue(lines)
            for line in lines:
                self.assertGreater(int(line.rpartition(" ")[2]), 0)

    def test_memory_timeline_of_a_device(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            self.prof.export_memory_timeline(self.path("raw.json.gz"), device="npu:0")
            self.prof.export_memory_timeline(self.path("default.json"))
            self.prof.export_memory_timeline(self.path("npu.json"), device="npu:0")
            self.prof.export_memory_timeline(self.path("other.json"), device="npu:1")
            self.prof.export_memory_timeline(self.path("cpu.json"), device="cpu")
        def read(name):
            with open(self.path(name), encoding="utf-8") as file:
                return json.load(file)
        self.assertEqual(read("default.json"), read("npu.json"))  # the device is what torch shows
        def most(name):
            return max(sum(row) for row in read(name)[1])
        self.assertGreaterEqual(most("npu.json"), 3 * 64 * 64 * 4)
        self.assertEqual(most("other.json"), 1024)
        self.assertNotEqual(read("cpu.json"), read("npu.json"))


if __name__ == "__main__":
    unittest.main()
