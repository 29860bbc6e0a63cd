# SPDX-License-Identifier: Apache-2.0
"""Explanations of torch's JSON: programs with a planted fault, and clean ones, of exact times.

Entries are as torch writes them: cpu_op, cuda_runtime, kernel, gpu_memcpy, user_annotation, python_function and
[memory]. tests/unit/mtprof/analyze/explain/test_explain_faults.c has more of them as traces of ours.
"""
import gzip
import json
import os
import re
import unittest

from support_folder import FolderTest

import mtprof

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
STEPS = 8
MIB = 1 << 20


class Program:
    """A main thread with a clock in microseconds, and CUDA streams that work off what it launches."""

    def __init__(self, steps=True):
        self.entries, self.now, self.free, self.ids, self.step_start, self.number = [], 1000.0, {}, 0, None, 0
        self.has_steps, self.live = steps, 0

    def add(self, category, name, start, length, tid=100, **args):
        self.entries.append({"ph": "X", "cat": category, "name": name, "pid": 100, "tid": tid, "ts": start,
                             "dur": length, "args": args})

    def step(self):
        if self.step_start is not None and self.has_steps:
            self.add("user_annotation", f"ProfilerStep#{self.number}", self.step_start, self.now - self.step_start)
            self.number += 1
        self.step_start = self.now

    def run(self, name, length, category="cpu_op"):
        self.add(category, name, self.now, length)
        self.now += length

    def launch(self, name, length, kernel, work, stream=7, kind="kernel", **args):
        self.ids += 1
        self.add("cpu_op", name, self.now, length, **{"External id": self.ids})
        self.add("cuda_runtime", "cudaLaunchKernel", self.now + length / 4, length / 2,
                 **{"correlation": self.ids, "External id": self.ids})
        self.now += length
        start = max(self.now, self.free.get(stream, 0.0))
        self.entries.append({"ph": "X", "cat": kind, "name": kernel, "pid": 0, "tid": stream, "ts": start, "dur": work,
                             "args": {"device": 0, "stream": stream, "correlation": self.ids, "External id": self.ids,
                                      **args}})
        self.free[stream] = start + work

    def wait(self, op, more=0.0):
        start, self.now = self.now, max(self.now, self.free.get(7, 0.0)) + more
        self.add("cpu_op", op, start, self.now - start + 1)
        self.add("cuda_runtime", "cudaStreamSynchronize", start + 0.5, self.now - start)
        self.now += 1

    def alloc(self, address, size):
        self.live += size
        self.entries.append({"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 100,
                             "tid": 100, "ts": self.now,
                             "args": {"Addr": address, "Bytes": size, "Total Allocated": self.live,
                                      "Total Reserved": 0, "Device Type": 0, "Device Id": -1}})

    def train(self, launches=10, work=400.0):
        """The good part of a step: the device is busy, and the host goes on shortly before it is done."""
        for _ in range(launches):
            self.launch("aten::mm", 6.0, "ampere_sgemm", work)
        self.launch("aten::add", max(self.free[7] - 300.0 - self.now, 6.0), "add_kernel", 20.0)

    def compute(self):
        for _ in range(10):
            self.run("aten::mm", 400.0)
            self.now += 4.0


# Each is called once a step with the program and the number of the step.
def data_wait(p, step):
    p.now = max(p.now, p.free.get(7, 0.0))
    p.run("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 2500.0, "user_annotation")
    p.train()


def data_wait_python(p, step):
    p.run("torch/utils/data/dataloader.py(708): __next__", 2000.0, "python_function")
    p.compute()


def host_bound(p, step):
    p.train()
    p.now = max(p.now, p.free[7])
    p.run("aten::nms", 1500.0)


def launch_bound(p, step):
    for _ in range(150):
        p.launch("aten::add_", 9.0, "vectorized_elementwise_kernel", 2.0)


def sync(p, step):
    for _ in range(10):
        p.launch("aten::mm", 10.0, "ampere_sgemm", 150.0)
        p.wait("aten::item", 20.0)


def copy(p, step):
    p.launch("aten::to", 9.0, "Memcpy HtoD (Pageable -> Device)", 1500.0, kind="gpu_memcpy", bytes=64 * MIB)
    p.train()


def copy_cpu(p, step):
    p.run("aten::contiguous", 1500.0)
    p.compute()


def small_kernels(p, step):
    for _ in range(300):
        p.launch("aten::add_", 1.0, "vectorized_elementwise_kernel", 4.0)
    p.launch("aten::add", max(p.free[7] - 100.0 - p.now, 6.0), "add_kernel", 20.0)


def small_ops(p, step):
    for _ in range(500):
        p.run("aten::add", 3.0)


def slow_steps(p, step):
    p.compute()
    if step == 5:
        p.run("evaluate", 30000.0, "user_annotation")


def memory_growth(p, step):
    p.add("cpu_op", "aten::stack", p.now, 10.0)
    p.now += 5
    p.alloc(0x1000 + 64 * step, 3 * MIB)
    p.now += 5
    p.compute()


def memory_peak(p, step):
    p.compute()
    p.add("cpu_op", "aten::bmm", p.now, 500.0)
    p.now += 10
    p.alloc(0x5000, 300 * MIB)
    p.now += 490
    p.alloc(0x5000, -300 * MIB)


def python_overhead(p, step):
    for _ in range(40):
        p.run("aten::add", 20.0)
        p.now += 40.0


def lock_wait(p, step):
    p.compute()
    p.run("<built-in method acquire of _thread.lock object at 0x7f30>", 1200.0, "python_function")


def recompile(p, step):
    if step in (2, 5):
        p.run("_compile.compile_inner (dynamo_timed)", 9000.0, "user_annotation")
    p.compute()


def warm_up(p, step):
    p.run("aten::cudnn_convolution", 25000.0 if step == 0 else 3000.0)


def imbalance(p, step):
    p.now = max(p.now, *p.free.values()) if p.free else p.now
    for _ in range(5):
        p.launch("aten::mm", 2.0, "ampere_sgemm", 800.0, stream=7)
        p.launch("aten::mm", 2.0, "ampere_sgemm", 150.0, stream=20)


def profiler(p, step):
    p.compute()
    p.entries.append({"ph": "X", "cat": "overhead", "name": "Activity Buffer Request", "pid": -1, "tid": 0,
                      "ts": p.now, "dur": 900.0, "args": {}})
    p.now += 900.0


def clean_training(p, step):
    p.train()


def clean_cpu(p, step):
    p.compute()


def clean_hidden_loader(p, step):
    p.train(launches=10)
    p.run("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 150.0, "user_annotation")


def clean_one_item(p, step):
    p.train(launches=20)
    p.wait("aten::item")


def clean_backward(p, step):
    p.run("aten::mm", 2000.0)
    p.add("cpu_op", "autograd::engine::evaluate_function: MmBackward0", p.now, 3000.0, tid=101)
    p.now += 3000.0


FAULTS = {"data-wait": (data_wait, data_wait_python), "host-bound": (host_bound,), "launch-bound": (launch_bound,),
          "sync": (sync,), "copy": (copy, copy_cpu), "small-kernels": (small_kernels, small_ops),
          "slow-steps": (slow_steps,), "memory-growth": (memory_growth,), "memory-peak": (memory_peak,),
          "python-overhead": (python_overhead,), "lock-or-gil-wait": (lock_wait,), "recompile": (recompile,),
          "warm-up": (warm_up,), "imbalance": (imbalance,), "profiler": (profiler,)}
CLEAN = (clean_training, clean_cpu, clean_hidden_loader, clean_one_item, clean_backward)


def make(body, steps=True):
    program = Program(steps)
    program.step()
    for number in range(STEPS):
        body(program, number)
        program.step()
    return {"schemaVersion": 1, "deviceProperties": [], "traceEvents": program.entries}


class ImportedTraces(FolderTest):
    def explain(self, document, name="trace.json", **options):
        path = self.path(name)
        with (gzip.open if name.endswith(".gz") else open)(path, "wt", encoding="utf-8") as out:
            json.dump(document, out)
        return mtprof.explain(path, **options)

    def check_sums(self, found):
        self.assertAlmostEqual(sum(found.parts.values()), found.trace["wall_s"], delta=1e-3 * found.trace["wall_s"])
        self.assertLessEqual(sum(one.gain_s for one in found.findings), found.trace["wall_s"] * 1.000001)

    def test_planted_faults_come_first(self):
        for cause, programs in FAULTS.items():
            for body in programs:
                with self.subTest(body.__name__):
                    found = self.explain(make(body))
                    self.assertEqual([one.id for one in found.findings[:1]], [cause], str(found))
                    self.assertFalse(found.clean)
                    self.check_sums(found)

    def test_clean_programs_are_clean(self):
        for body in CLEAN:
            for steps in (True, False):
                with self.subTest(body.__name__, steps=steps):
                    found = self.explain(make(body, steps))
                    self.assertTrue(found.clean, str(found))
                    self.assertEqual(found.trace["steps"], STEPS if steps else 0)
                    self.check_sums(found)

    def test_every_cause_is_planted_and_documented(self):
        with open(os.path.join(ROOT, "src", "mtprof", "analyze", "explain", "causes.def"), encoding="utf-8") as rows:
            causes = dict(re.findall(r'^X\(\w+, "([a-z-]+)", "[^"]+", ([0-9.]+),', rows.read(), re.MULTILINE))
        with open(os.path.join(ROOT, "docs", "explain.md"), encoding="utf-8") as page:
            text = page.read()
        self.assertEqual(len(causes), 15)
        self.assertEqual(sorted(causes), sorted(FAULTS))
        self.assertEqual(re.findall(r"^### (\S+)$", text, re.MULTILINE), list(causes))
        shares = dict(re.findall(r"^\| `([a-z-]+)` \| (?:(\d+) %)? ?\| ", text, re.MULTILINE))
        for cause, share in causes.items():
            self.assertEqual(float(shares[cause] or 0) / 100, float(share), cause)

    def test_objects_and_texts(self):
        found = self.explain(make(data_wait), "trace.json.gz")
        self.assertIsInstance(found, str)
        self.assertIn("[data-wait]", found)
        self.assertIn("(`data-wait`)", found.to_markdown())
        self.assertEqual(found._repr_markdown_(), found.to_markdown())
        self.assertLessEqual(max(map(len, found.splitlines())), 80)
        short, whole = found.to_json(), found.to_json(limit=False)
        self.assertLessEqual(len(short.encode()), 4096)
        values = json.loads(whole)
        self.assertEqual(values["schema"], 1)
        self.assertEqual(set(values), {"schema", "trace", "parts", "findings", "clean", "left_out"})
        self.assertEqual(set(values["findings"][0]),
                         {"id", "title", "share", "gain_s", "confidence", "evidence", "advice"})
        first = found.findings[0]
        self.assertAlmostEqual(first.gain_s, STEPS * 2.5e-3, places=9)
        self.assertAlmostEqual(first.share, first.gain_s / found.trace["wall_s"], places=3)
        self.assertEqual(first.evidence[0]["count"], STEPS)
        self.assertEqual(repr(found), "<Explanation: data-wait>")
        self.assertIn("data-wait", repr(first))

    def test_memory_names_who_keeps_it(self):
        found = self.explain(make(memory_growth)).findings[0]
        kept = [item for item in found.evidence if item["kind"] == "memory"]
        self.assertEqual((kept[0]["name"], kept[0]["bytes"]), ("aten::stack", (STEPS - 2) * 3 * MIB))

    def test_memory_that_the_end_of_the_program_frees(self):
        document, kept = make(memory_growth), {}
        for entry in [one for one in document["traceEvents"] if one["name"] == "[memory]"]:
            args = dict(entry["args"], Bytes=-entry["args"]["Bytes"])
            args["Total Allocated"] = (STEPS - 1 - len(kept)) * 3 * MIB
            kept[args["Addr"]] = dict(entry, ts=1e6 + len(kept), args=args)
        document["traceEvents"] += kept.values()
        found = self.explain(document).findings[0]
        self.assertEqual(found.id, "memory-growth")
        self.assertIn("aten::stack", [item["name"] for item in found.evidence if item["kind"] == "memory"])

    def test_one_step(self):
        found = self.explain(make(data_wait), step=3)
        self.assertEqual(found.trace["steps"], 1)
        self.assertAlmostEqual(found.findings[0].gain_s, 2.5e-3, places=9)
        with self.assertRaisesRegex(ValueError, "no step 99; the trace has 0 to 7"):
            self.explain(make(data_wait), step=99)
        with self.assertRaisesRegex(ValueError, "no step 1; the trace has no steps"):
            self.explain(make(data_wait, steps=False), step=1)
        for bad in (-1, 1 << 40):
            with self.assertRaisesRegex(ValueError, "step must be 0 to"):
                self.explain(make(data_wait), step=bad)
        with self.assertRaises(TypeError):
            self.explain(make(data_wait), step="one")

    def test_no_events(self):
        found = self.explain({"traceEvents": []})
        self.assertTrue(found.clean)
        self.assertEqual(found.findings, [])
        self.assertEqual(json.loads(found.to_json())["schema"], 1)
        with self.assertRaises(OSError):
            mtprof.explain(self.path("none.json"))


if __name__ == "__main__":
    unittest.main()
