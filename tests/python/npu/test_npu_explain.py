# SPDX-License-Identifier: Apache-2.0
"""Explanations of programs on the simulated accelerator: a planted fault comes first, clean programs are clean.

What the programs wait for is simulated: sleeps, latencies of the device, and holds, which keep it busy until the
next step is queued. They last many times as long as what the programs do besides, so the answers do not depend on
how fast the machine is. Exact times: test_explain_faults.c and test_explain_imported.py.
"""
import os
import re
import threading
import time
import unittest

from support_npu import run_python, sim, torch

import mtprof
from mindtorch_v2.profiler import profile, record_function, schedule
from mindtorch_v2.utils.data import DataLoader, Dataset

STEPS = 4  # five would be compared, and the machine may interrupt one of them
LONG = 0.02  # seconds: what a fault takes in a step
MIB = 1 << 20


class Slow(Dataset):
    """A data set that takes its time."""

    def __len__(self):
        return 12 * (STEPS + 3)

    def __getitem__(self, index):
        time.sleep(LONG / 4)
        return torch.ones(4)


def run(step, steps=STEPS, only=None, **options):
    """Calls step(number) in a profile, once before it; the explanation, of one step alone if only says so."""
    step(0)
    torch.npu.synchronize()
    with profile(schedule=schedule(wait=0, warmup=1, active=steps, repeat=1), **options) as prof:
        for number in range(steps + 1):
            step(number)
            prof.step()
    torch.npu.synchronize()
    return prof.explain(only)


class Busy:
    """A step that keeps the device busy: its hold ends when the hold of the next step is queued."""

    def __init__(self, ops=20, rest=0.01):
        self.x, self.ops, self.rest = torch.ones(16, 16, device="npu"), ops, rest

    def __call__(self, number):
        token = mtprof.begin("hold")
        sim.hold(self.ops + 1, token=token)
        mtprof.end(token)
        for _ in range(self.ops):
            self.x.add_(1)
        time.sleep(self.rest)


class PlantedFaults(unittest.TestCase):
    def setUp(self):
        self.x = torch.ones(16, 16, device="npu")

    def tearDown(self):
        sim.release()
        torch.npu.synchronize()

    def check(self, found, cause, no_gain=False):
        if no_gain:  # causes that cost no time come after the others, what a busy machine does among them
            found.findings = [one for one in found.findings if one.gain_s == 0]
        self.assertEqual([one.id for one in found.findings[:1]], [cause], str(found))
        self.assertAlmostEqual(sum(found.parts.values()), found.trace["wall_s"], delta=1e-3 * found.trace["wall_s"])
        return found.findings[0]

    def small_work(self):
        for _ in range(5):
            self.x.add_(1)

    def test_data_wait(self):
        batches = iter(DataLoader(Slow(), batch_size=4))

        def step(number):
            next(batches).to("npu")
            self.small_work()

        first = self.check(run(step, with_stack=True), "data-wait")
        self.assertGreaterEqual(first.gain_s, STEPS * LONG)
        self.assertTrue(first.evidence[0]["file"].endswith("test_npu_explain.py"))

    def test_host_bound(self):
        a = torch.randn(700, 700)

        def step(number):
            for _ in range(4):
                a.mm(a)
            self.small_work()

        self.check(run(step), "host-bound")

    def test_copy(self):
        data = torch.ones(8 * MIB)

        def step(number):
            self.kept = data.to("npu"), data.to("npu")

        self.check(run(step), "copy")

    def test_slow_steps(self):
        busy = Busy()

        def step(number):
            busy(number)
            if number == 5:
                with record_function("evaluate"):
                    sim.release()
                    time.sleep(15 * LONG)

        first = self.check(run(step, steps=10), "slow-steps")
        self.assertIn("evaluate", " ".join(item["text"] for item in first.evidence))

    def test_warm_up(self):
        busy = Busy()

        def step(number):
            busy(number)
            if number == 1:  # the first that is recorded
                sim.release()
                time.sleep(15 * LONG)

        self.check(run(step, steps=8), "warm-up")

    def test_memory_growth(self):
        busy, kept = Busy(ops=1), []

        def step(number):
            busy(number)
            kept.append(torch.empty(MIB, device="npu"))

        found = run(step, steps=6, profile_memory=True)
        first = self.check(found, "memory-growth", no_gain=True)
        self.assertIn("aten::empty", first.evidence[1]["name"])

    def test_memory_peak(self):
        busy = Busy(ops=1)

        def step(number):
            busy(number)
            torch.empty(24 * MIB, device="npu")

        self.check(run(step, profile_memory=True), "memory-peak", no_gain=True)

    def test_python_overhead(self):
        def step(number):
            for _ in range(5):
                self.x.add_(1)
                time.sleep(LONG / 5)

        self.check(run(step), "python-overhead")

    def test_lock_or_gil_wait(self):
        lock, stop, held = threading.Lock(), threading.Event(), threading.Event()

        def hog():
            while not stop.is_set():
                with lock:
                    held.set()
                    time.sleep(LONG)
                held.clear()
                time.sleep(LONG / 10)

        other = threading.Thread(target=hog)
        other.start()

        def step(number):
            self.small_work()
            held.wait()
            with record_function("wait for lock"):
                lock.acquire()
            lock.release()

        try:
            self.check(run(step), "lock-or-gil-wait")
        finally:
            stop.set()
            other.join()

    def test_recompile(self):
        busy = Busy()

        def step(number):
            busy(number)
            if number in (2, 4):
                sim.release()
                with record_function("recompile forward"):
                    time.sleep(5 * LONG)

        self.check(run(step), "recompile")

    def test_imbalance(self):
        with torch.npu.device(1):
            second = torch.npu.current_stream()

        def step(number):
            first = mtprof.begin("hold")
            with sim.held(token=first):
                mtprof.end(first)
                other = mtprof.begin("hold")
                with sim.held(second, token=other):
                    mtprof.end(other)
                    time.sleep(LONG / 4)
                time.sleep(LONG)

        self.check(run(step), "imbalance")

    def test_profiler(self):
        busy = Busy(ops=2000)
        self.check(run(busy, policy="stop", buffer_bytes=1 << 19), "profiler")


PROGRAM = """
import mindtorch_v2 as torch
import mtprof
from mindtorch_v2.profiler import profile, schedule
x = torch.ones(16, device="npu")
with profile(schedule=schedule(wait=0, warmup=1, active=4, repeat=1)) as prof:
    for number in range(5):
        for _ in range(5):
            x.add_(1)
            %s
        prof.step()
found = prof.explain()
print(found.findings[0].id if found.findings else "clean")
print(found)
"""


class Latencies(unittest.TestCase):
    """Settings of the device are read once, so these are programs of their own."""

    def test_sync(self):
        out = run_python(PROGRAM % "x.sum().item()", MINDTORCH_NPU_SIM_LATENCY_NS="2000000")
        self.assertTrue(out.startswith("sync\n"), out)

    def test_launch_bound(self):
        out = run_python(PROGRAM % "pass", MINDTORCH_NPU_SIM_LATENCY_NS="2000000", MINDTORCH_NPU_LAUNCH_BLOCKING="1")
        self.assertTrue(out.startswith("launch-bound\n"), out)


    def test_small_kernels(self):
        out = run_python(SMALL, MINDTORCH_NPU_SIM_KERNEL_NS="9000")
        self.assertTrue(out.startswith("small-kernels\n"), out)


# A hold keeps the device from starting before the host has queued all kernels of a step.
SMALL = """
import mindtorch_v2 as torch
import mtprof
from mindtorch_v2.profiler import profile, schedule
sim = torch.npu._sim
x = torch.ones(16, device="npu")
with profile(schedule=schedule(wait=0, warmup=1, active=4, repeat=1)) as prof:
    for number in range(5):
        token = mtprof.begin("hold")
        sim.hold(1000, token=token)
        mtprof.end(token)
        for _ in range(1000):
            x.add_(1)
        torch.npu.synchronize()
        prof.step()
found = prof.explain()
print(found.findings[0].id if found.findings else "clean")
print(found)
"""


class Suite(unittest.TestCase):
    def test_every_cause_is_planted(self):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../src/mtprof/analyze/explain/causes.def")
        with open(path, encoding="utf-8") as rows:
            causes = re.findall(r'^X\(\w+, "([a-z-]+)"', rows.read(), re.MULTILINE)
        planted = set(dir(PlantedFaults)) | set(dir(Latencies))
        self.assertEqual([one for one in causes if "test_" + one.replace("-", "_") not in planted], [])
        self.assertEqual(len(causes), 15)


class CleanPrograms(unittest.TestCase):
    """One step is looked at: in the first the device still has work from before the recording."""

    def tearDown(self):
        sim.release()
        torch.npu.synchronize()

    def check(self, step, **options):
        for _ in range(3):  # the device is a thread: a machine with much to do may take it away for a while
            found = run(step, only=3, **options)
            if found.clean:
                break
        self.assertTrue(found.clean, str(found))

    def test_a_busy_device(self):
        self.check(Busy())

    def test_with_everything_recorded(self):
        self.check(Busy(), with_stack=True, record_shapes=True, profile_memory=True, with_modules=True)

    def test_a_loader_that_is_hidden(self):
        busy = Busy(rest=0)
        batches = iter(DataLoader(Slow(), batch_size=4))

        def step(number):
            busy(number)
            next(batches)

        self.check(step)

    def test_memory_that_comes_and_goes(self):
        busy = Busy(ops=1)

        def step(number):
            busy(number)
            self.kept = [torch.empty(MIB // 4, device="npu") for _ in range(8)]

        self.assertNotIn("memory", " ".join(one.id for one in run(step, steps=6, profile_memory=True).findings))


if __name__ == "__main__":
    unittest.main()
