# SPDX-License-Identifier: Apache-2.0
"""A Chrome trace of the accelerator against torch's of CUDA: the same categories, keys and types.

SHAPES was taken down from traces of torch 2.11 on an H200 (record_shapes, profile_memory; keys alone, of every
category, "?" where not every event has it). WITHOUT and MORE say where ours differs, and why; whatever else does
fails. torch also ends a flow (ac2g) at calls that launched nothing; ours come in pairs.
"""
import json
import os
import tempfile
import unittest

from support_npu import torch
from mindtorch_v2.profiler import ProfilerActivity, profile, record_function, schedule

SPAN = "cat:str dur:float name:str ph:str pid:int tid:int ts:float"
NAMED = "name:str ph:str pid:int tid:int ts:float"
FLOW = "cat:str id:int name:str ph:str pid:int tid:int ts:float"
COPY = "External id:int,bytes:int,context:int,correlation:int,device:int,memory bandwidth (GB/s):float,stream:int"
SHAPES = {  # category and phase: (keys of the event, keys of its args)
    "Trace X": (SPAN.replace("id:int", "id:str"), "Op count:int"),
    "instant i": ("name:str ph:str pid:str s:str tid:str ts:float", ""),
    "cpu_op X": (SPAN, "External id:int,Record function id:int,Ev Idx:int,Concrete Inputs:list?,Input type:list?,"
                       "Input Strides:list?,Input Dims:list?,Sequence number:int?,Fwd thread id:int?"),
    "user_annotation X": (SPAN, "External id:int,Record function id:int,Ev Idx:int"),
    "cuda_runtime X": (SPAN, "External id:int?,cbid:int,correlation:int"),
    "kernel X": (SPAN, "External id:int,queued:int,device:int,context:int,stream:int,correlation:int,"
                       "registers per thread:int,shared memory:int,blocks per SM:float,warps per SM:float,grid:list,"
                       "block:list,est. achieved occupancy %:int"),
    "gpu_memcpy X": (SPAN, COPY),
    "gpu_memset X": (SPAN, COPY),
    "gpu_user_annotation X": (SPAN, "External id:int"),
    "cpu_instant_event i": ("cat:str name:str ph:str pid:int s:str tid:int ts:float",
                            "Total Reserved:int,Total Allocated:int,Bytes:int,Device Id:int,Device Type:int,Addr:int?,"
                            "finished:bool,Ev Idx:int"),
    "ac2g s": (FLOW, ""),
    "ac2g f": (FLOW + " bp:str", ""),
    "fwdbwd s": (FLOW, ""),
    "fwdbwd f": (FLOW + " bp:str", ""),
    "process_name M": (NAMED, "name:str"),
    "process_labels M": (NAMED, "labels:str"),
    "process_sort_index M": (NAMED.replace("pid:int", "pid:int/str"), "sort_index:int"),
    "thread_name M": (NAMED, "name:str"),
    "thread_sort_index M": (NAMED, "sort_index:int"),
}
TOP = ("schemaVersion:int deviceProperties:list trace_id:str record_shapes:int profile_memory:int displayTimeUnit:str "
       "baseTimeNanoseconds:int traceEvents:list traceName:str cuda_driver_version:int cuda_runtime_version:int "
       "cupti_version:int")
PROPERTIES = ("id:int name:str totalGlobalMem:int computeMajor:int computeMinor:int maxThreadsPerBlock:int "
              "maxThreadsPerMultiprocessor:int regsPerBlock:int warpSize:int sharedMemPerBlock:int numSms:int "
              "regsPerMultiprocessor:int sharedMemPerBlockOptin:int sharedMemPerMultiprocessor:int")

NAMES = {"privateuse1_runtime": "cuda_runtime"}  # as torch calls the runtime of other accelerators
WITHOUT = {
    # A simulated device has no threads, registers and multiprocessors.
    "kernel X": {"registers per thread", "shared memory", "blocks per SM", "warps per SM", "grid", "block",
                 "est. achieved occupancy %"},
    "properties": {"computeMajor", "computeMinor", "maxThreadsPerBlock", "maxThreadsPerMultiprocessor", "regsPerBlock",
                   "warpSize", "sharedMemPerBlock", "numSms", "regsPerMultiprocessor", "sharedMemPerBlockOptin",
                   "sharedMemPerMultiprocessor"},
    "cuda_runtime X": {"cbid"},  # CUPTI's number of the call
    "top": {"cuda_driver_version", "cuda_runtime_version", "cupti_version"},
    "cpu_instant_event i": {"finished"},  # always false
}
# Of MindTorch's mapping; and where a span was before it was moved, so that its track nests or its times differ.
EVERYWHERE = {"step": int, "device_type": str, "correlation_id": int, "recorded_ts": float, "recorded_dur": float}
MEMORY = {f"{device}_memory_allocated_{when}": int for device in ("cpu", "npu") for when in ("before", "after", "delta")}
MORE = {
    "cpu_op X": {"input_shapes": list, "runtime_name": str, "runtime_tid": int, "record_scope": int, **MEMORY},
    "cuda_runtime X": {"Ev Idx": int},  # ours are in events() as well, and the number says where
    "top": {"process_name": str, "host_name": str, "mtprof_health": dict, "mtprof_version": str},
}


def program():
    """Training with all that the categories need: two streams, copies both ways, a set, annotations, steps."""
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4)).to("npu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    side = torch.npu.Stream()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.NPU], record_shapes=True, profile_memory=True,
                 schedule=schedule(wait=0, warmup=1, active=1, repeat=1)) as prof:
        for _ in range(2):
            with record_function("load"), torch.npu.stream(side):
                x = torch.randn(32, 64).pin_memory().to("npu", non_blocking=True)
                torch.zeros(4096, dtype=torch.uint8, device="npu")
            torch.npu.current_stream().wait_stream(side)
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            loss.item()
            prof.step()
    return prof


def fits(value, wanted):
    """Whether a value of JSON has the type; a number without fraction is a number."""
    return type(value).__name__ in wanted or ("float" in wanted and type(value) is int)


class Schema(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            program().export_chrome_trace(path)
            with open(path, encoding="utf-8") as file:
                cls.trace = json.load(file)
        cls.events = {}
        for event in cls.trace["traceEvents"]:
            category = event.get("cat") or (event["name"] if event["ph"] == "M" else "instant")
            cls.events.setdefault(f"{NAMES.get(category, category)} {event['ph']}", []).append(event)

    def check(self, what, objects, shape, more):
        """The objects have what the shape says, and nothing else but what is listed."""
        wanted, seen = {}, set()
        for entry in filter(None, shape):
            key, kind = entry.rsplit(":", 1)
            wanted[key] = (kind.rstrip("?").split("/"), kind.endswith("?"))
        for one in objects:
            for key, (kinds, optional) in wanted.items():
                if key in WITHOUT.get(what, ()):
                    self.assertNotIn(key, one, f"{what} has it: it is no exception any more")
                elif not optional or key in one:
                    self.assertIn(key, one, what)
                    self.assertTrue(fits(one[key], kinds), f"{what}, {key}: {one[key]!r} is none of {kinds}")
            for key in one.keys() - wanted.keys():
                self.assertIn(key, more, f"{what}: torch has no such key")
                self.assertIs(type(one[key]), more[key], f"{what}, {key}: {one[key]!r}")
            seen |= one.keys()
        missing = wanted.keys() - seen - WITHOUT.get(what, set())
        self.assertFalse(missing, f"{what}: no event has {missing}")

    def test_categories(self):
        self.assertEqual(set(self.events), set(SHAPES))

    def test_events(self):
        for what, events in self.events.items():
            with self.subTest(what):
                plain = [{key: value for key, value in event.items() if key != "args"} for event in events]
                self.check(f"event {what}", plain, SHAPES[what][0].split(), {})

    def test_args(self):
        for what, events in self.events.items():
            with self.subTest(what):
                for event in events:
                    self.assertEqual("args" in event, SHAPES[what][1] != "")
                self.check(what, [event.get("args", {}) for event in events], SHAPES[what][1].split(","),
                           {**EVERYWHERE, **MORE.get(what, {})})

    def test_top(self):
        self.check("top", [self.trace], TOP.split(), MORE["top"])
        self.check("properties", self.trace["deviceProperties"], PROPERTIES.split(), {})


if __name__ == "__main__":
    unittest.main()
