# SPDX-License-Identifier: Apache-2.0
"""The accelerator in the profile: events, joins, memory, tables, activities, schedules, failures.

The device is the simulated one; what its traces look like in files is test_npu_profile_trace's.
"""
import os
import signal
import subprocess
import sys
import tempfile
import unittest
import warnings

from support_npu import run_python, sim, torch
import mtprof
from mindtorch_v2.profiler import (DeviceType, ProfilerActivity, profile, record_function, schedule,
                                   supported_activities)

CPU, NPU = ProfilerActivity.CPU, ProfilerActivity.NPU
BOTH = [CPU, NPU]
WORK = ("kernel", "copy", "set")
MEMORY = {f"{device}_memory_allocated_{what}" for device in ("cpu", "npu") for what in ("before", "after", "delta")}


def kinds(events, *wanted):
    return [event for event in events if event["kind"] in wanted]


def named(events, name, kind="op"):
    return [event for event in events if event.name == name and event["kind"] == kind]


def mixed():
    """Ops on both devices under a scope; what is made is let go at the end."""
    with record_function("mine"):
        a = torch.ones(16, 16, device="npu")
        b = a @ a
        c = torch.ones(4) + 1
        d = torch.zeros(8, device="npu:1") + 1
        host = b.cpu()
    return host, c, d


class Joined(unittest.TestCase):
    """Device work and the ops it came from."""

    @classmethod
    def setUpClass(cls):
        mixed()
        with profile(activities=BOTH, profile_memory=True, record_shapes=True) as prof:
            mixed()
        cls.prof = prof
        cls.events = prof.events()

    def test_where_an_op_was_dispatched(self):
        mm, = named(self.events, "aten::mm")
        self.assertEqual(mm["device_type"], "NPU")
        self.assertIs(mm.device_type, DeviceType.CPU)
        on_host = [e for e in named(self.events, "aten::ones") if e["device_type"] == "CPU"]
        self.assertEqual(len(on_host), 1)
        self.assertEqual({e["device_type"] for e in named(self.events, "aten::add")}, {"CPU", "NPU"})
        scope, = named(self.events, "mine", "scope")
        self.assertEqual(scope["device_type"], "CPU")
        for event in kinds(self.events, *WORK):
            self.assertEqual((event["device_type"], event.device_type), ("NPU", DeviceType.PrivateUse1))

    def test_every_launch_has_its_work_and_every_work_its_op(self):
        health = self.prof.health()
        self.assertEqual((health.unmatched, health.lost, health.ok), (0, 0, True))
        work = kinds(self.events, *WORK)
        calls = [e for e in kinds(self.events, "runtime") if e.name in
                 ("npuLaunchKernel", "npuMemcpy", "npuMemcpyAsync", "npuMemsetAsync")]
        self.assertEqual(len(work), len(calls))
        self.assertGreater(len(work), 3)
        by_id = {e.id: e for e in kinds(self.events, "op")}
        for event in work:
            op = by_id[event.linked_correlation_id]
            self.assertEqual(op["device_type"], "NPU")
            self.assertIn((event.name, event.device_index), [(k.name, k.device) for k in op.kernels])
        self.assertEqual(sum(len(e.kernels) for e in by_id.values()), len(work))

    def test_device_times_are_the_works_own(self):
        host = [e for e in self.events if e.device_type == DeviceType.CPU]
        total = sum(e.time_range.elapsed_us() for e in kinds(self.events, *WORK))
        self.assertGreater(total, 0)
        self.assertAlmostEqual(sum(e.self_device_time_total for e in host), total, places=3)
        mm, = named(self.events, "aten::mm")
        matmul, = named(self.events, "aten::matmul")
        self.assertAlmostEqual(mm.device_time_total, sum(k.duration for k in mm.kernels), places=3)
        self.assertEqual(matmul.device_time_total, mm.device_time_total)
        self.assertEqual(matmul.self_device_time_total, 0)
        scope, = named(self.events, "mine", "scope")
        self.assertAlmostEqual(scope.device_time_total, total, places=3)
        rows = self.prof.key_averages()
        self.assertAlmostEqual(sum(row.self_device_time_total for row in rows
                                   if row.device_type != DeviceType.CPU and not row.is_user_annotation),
                               total, places=3)

    def test_metadata_of_work(self):
        for event in self.events:
            told = event.metadata
            self.assertEqual(event.event_metadata, told)
            if event["kind"] not in WORK:
                self.assertIsNone(told, event.name)
                continue
            self.assertEqual((told.stream, told.registers_per_thread), (event.device_resource_id, None))
            if event["kind"] == "kernel":
                self.assertIsNone(told.bytes)
            else:
                self.assertGreater(told.bytes, 0)
                self.assertAlmostEqual(told.bandwidth_gb_s, told.bytes / (event["end_ns"] - event["start_ns"]))

    def test_work_is_on_its_own_track(self):
        places = {(e.device_index, e.device_resource_id) for e in kinds(self.events, *WORK)}
        self.assertEqual(places, {(0, 0), (1, 0)})
        starts = {}
        for event in kinds(self.events, *WORK):
            call = next(e for e in kinds(self.events, "runtime") if e.id == event.id)
            self.assertGreaterEqual(event["end_ns"], event["start_ns"])
            starts[event.id] = event["start_ns"] - call["start_ns"]
        self.assertTrue(starts)

    def test_memory_of_ops(self):
        ops = kinds(self.events, "op")
        for event in ops:
            device = event["device_type"].lower()
            have = MEMORY & set(event.keys())
            if not have:  # nodes of the graph are no ops of a device
                continue
            self.assertEqual(have, {key for key in MEMORY if key.startswith(device)}, event.name)
            self.assertEqual(event[f"{device}_memory_allocated_delta"],
                             event[f"{device}_memory_allocated_after"] - event[f"{device}_memory_allocated_before"])
        mm, = named(self.events, "aten::mm")
        self.assertEqual(mm["npu_memory_allocated_delta"], 16 * 16 * 4)
        self.assertEqual((mm.device_memory_usage, mm.self_device_memory_usage, mm.cpu_memory_usage), (1024, 1024, 0))
        matmul, = named(self.events, "aten::matmul")
        self.assertEqual((matmul.device_memory_usage, matmul.self_device_memory_usage), (1024, 0))
        self.assertEqual(matmul.npu_memory_usage, 1024)
        for event in kinds(self.events, *WORK, "runtime", "scope"):
            self.assertFalse(MEMORY & set(event.keys()))

    def test_the_table(self):
        text = self.prof.key_averages().table(sort_by="self_npu_time_total", row_limit=-1)
        header = text.splitlines()[1].split("  ")
        names = [name.strip() for name in header if name.strip()]
        self.assertEqual(names, ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg",
                                 "Self NPU", "Self NPU %", "NPU total", "NPU time avg", "CPU Mem", "Self CPU Mem",
                                 "NPU Mem", "Self NPU Mem", "# of Calls"])
        self.assertRegex(text.splitlines()[-1], r"^Self NPU time total: [\d.]+[mu]?s$")
        self.assertEqual(self.prof.use_device, "npu")
        rows = self.prof.key_averages()
        for key in ("npu_time_total", "cuda_time_total", "device_time_total", "self_cuda_memory_usage"):
            rows.table(sort_by=key)
        mm = next(row for row in rows if row.key == "aten::mm")
        self.assertEqual(mm.npu_time_total, mm.device_time_total)

    def test_work_of_a_scope_shows_on_the_device_too(self):
        spans = named(self.events, "mine", "annotation")
        self.assertEqual(sorted(span.device_index for span in spans), [0, 1])
        for span in spans:
            inside = [e for e in kinds(self.events, *WORK) if e.device_index == span.device_index]
            self.assertEqual(span["start_ns"], min(e["start_ns"] for e in inside))
            self.assertEqual(span["end_ns"], max(e["end_ns"] for e in inside))
            self.assertTrue(span.is_user_annotation)
            self.assertEqual(span.device_type, DeviceType.PrivateUse1)

    def test_training_on_the_device(self):
        net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)).to("npu")
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        x = torch.ones(4, 8, device="npu")
        with profile(activities=BOTH) as prof:
            for _ in range(3):
                optimizer.zero_grad()
                net(x).sum().backward()
                optimizer.step()
        events = prof.events()
        self.assertEqual(prof.health().unmatched, 0)
        total = sum(e.time_range.elapsed_us() for e in kinds(events, *WORK))
        own = sum(e.self_device_time_total for e in events if e.device_type == DeviceType.CPU)
        self.assertAlmostEqual(own, total, places=3)
        node = next(e for e in events if e.name == "AddmmBackward0")
        self.assertGreater(node.device_time_total, 0)
        self.assertFalse(any(MEMORY & set(event.keys()) for event in events))


class Activities(unittest.TestCase):
    """What each choice records."""

    def run_with(self, activities):
        with profile(activities=activities, profile_memory=True) as prof:
            mixed()
        events = prof.events()
        return prof, events, {event["kind"] for event in events}

    def test_the_device_alone(self):
        for activities in ([NPU], [ProfilerActivity.CUDA], ["npu"], ["GPU"], ["torch.ProfilerActivity.cuda"]):
            with self.subTest(activities):
                prof, events, found = self.run_with(activities)
                self.assertFalse(found & {"scope", "annotation"})
                self.assertTrue({"op", "runtime", "kernel", "copy"} <= found)
                self.assertEqual({e["device_type"] for e in kinds(events, "op")}, {"NPU"})
                self.assertEqual(prof.use_device, "npu")
                self.assertEqual(prof.health().unmatched, 0)
                self.assertFalse([e for e in kinds(events, "memory") if e.cpu_memory_usage])

    def test_the_host_alone(self):
        prof, events, found = self.run_with([CPU])
        self.assertFalse(found & {"runtime", "kernel", "copy", "set", "annotation"})
        self.assertTrue({"op", "scope"} <= found)
        self.assertEqual({e["device_type"] for e in kinds(events, "op")}, {"CPU", "NPU"})
        self.assertIsNone(prof.use_device)
        self.assertNotIn("NPU", prof.key_averages().table().splitlines()[1])
        self.assertTrue(all(e.device_time_total == 0 for e in events))
        self.assertEqual(prof.health().unmatched, 0)

    def test_a_program_without_device_work(self):
        """Whether there is an accelerator or not: no call that waits for it, no columns of it."""
        x = torch.ones(3)
        y = torch.ones(3, device="npu")
        torch.npu.synchronize()
        with profile() as prof:
            torch.add(x, x)
        self.assertEqual([event.name for event in prof.events()], ["aten::add"])
        self.assertIsNone(prof.use_device)
        self.assertIsNone(prof.events()[0].use_device)
        self.assertNotIn("NPU", prof.key_averages().table())
        with tempfile.TemporaryDirectory() as folder:
            prof.save(os.path.join(folder, "t.mtt"))
            trace = mtprof.load(os.path.join(folder, "t.mtt"))
            self.assertIsNone(trace.use_device)
            self.assertIsNone(trace.events()[0].use_device)
        with profile() as prof:
            torch.add(y, y)
        self.assertIn("npuDeviceSynchronize", [event.name for event in prof.events()])
        self.assertEqual((prof.use_device, prof.events()[0].use_device), ("npu", "npu"))

    def test_both_and_none(self):
        self.assertEqual(supported_activities(), {CPU, NPU})
        for activities in (BOTH, None, [CPU, "cuda"]):
            with self.subTest(activities):
                prof, _, found = self.run_with(activities)
                self.assertTrue({"op", "scope", "runtime", "kernel", "copy", "annotation"} <= found)
                self.assertEqual(prof.use_device, "npu")

    def test_collection_of_the_device_can_be_switched(self):
        x = torch.ones(4, device="npu")
        with profile(activities=BOTH) as prof:
            x.add(1)
            prof.toggle_collection_dynamic(False, [NPU])
            x.mul(2)
            prof.toggle_collection_dynamic(True, [NPU])
            x.sub(3)
        events = prof.events()
        self.assertTrue({"aten::add", "aten::mul", "aten::sub"} <= {e.name for e in kinds(events, "op")})
        with_work = {e.name for e in kinds(events, "op") if e.kernels}
        self.assertEqual(with_work, {"aten::add", "aten::sub"})
        self.assertEqual((prof.health().unmatched, len(kinds(events, "kernel"))), (0, 2))

    def test_where_no_accelerator_is(self):
        text = run_python("import warnings, mindtorch_v2 as torch\n"
                          "from mindtorch_v2.profiler import *\n"
                          "print(supported_activities())\n"
                          "with warnings.catch_warnings(record=True) as caught:\n"
                          "    warnings.simplefilter('always')\n"
                          "    with profile(activities=[ProfilerActivity.NPU]) as prof: torch.ones(2)\n"
                          "print(len(caught), prof.use_device, len(prof.events()))\n", MINDTORCH_NPU=None)
        self.assertEqual(text.splitlines(), ["{<ProfilerActivity.CPU: 0>}", "1 None 1"])


class Steps(unittest.TestCase):
    """Schedules: work belongs to the step that launched it."""

    def test_only_what_recorded_steps_launch(self):
        seen = []
        x = torch.ones(4, device="npu")
        with profile(activities=BOTH, profile_memory=True,
                     schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
                     on_trace_ready=lambda p: seen.append(p.events())) as prof:
            for step in range(6):
                for _ in range(step + 1):
                    x.add(1)
                prof.step()
        events, = seen
        self.assertEqual([e["step"] for e in kinds(events, "kernel")], [2] * 3 + [3] * 4)
        self.assertEqual(prof.health().unmatched, 0)
        spans = kinds(events, "annotation")
        self.assertEqual(sorted(e.trace_name for e in spans), ["ProfilerStep#2", "ProfilerStep#3"])
        self.assertTrue(all("npu_memory_allocated_delta" in e for e in kinds(events, "op")))

    def test_work_that_runs_after_its_step(self):
        x = torch.ones(4, device="npu")
        with profile(activities=BOTH, schedule=schedule(wait=0, warmup=1, active=2, repeat=1)) as prof:
            with sim.held():
                x.add(1)  # of the warm-up: it runs in the window, and is none of its business
                prof.step()
                x.mul(2)
                prof.step()
                x.sub(3)
            prof.step()
        kernels = kinds(prof.events(), "kernel")
        ops = {e.id: e.name for e in kinds(prof.events(), "op")}
        self.assertEqual([(ops[e.linked_correlation_id], e["step"]) for e in kernels],
                         [("aten::mul", 1), ("aten::sub", 2)])
        first, second = (next(e for e in prof.events() if e.trace_name == f"ProfilerStep#{n}" and
                              e["kind"] == "scope") for n in (1, 2))
        self.assertGreaterEqual(kernels[0]["start_ns"], first["end_ns"])
        spans = {e.trace_name: e for e in kinds(prof.events(), "annotation")}
        self.assertEqual(spans["ProfilerStep#1"]["start_ns"], kernels[0]["start_ns"])
        self.assertGreater(second["end_ns"], second["start_ns"])
        self.assertEqual(prof.health().unmatched, 0)

    def test_stop_waits_for_what_is_queued(self):
        x = torch.ones(64, 64, device="npu")
        torch.npu.synchronize()
        sim.reset_counts()
        with profile(activities=BOTH) as prof:
            sim.hold(50)
            for _ in range(50):
                x.add(1)
            self.assertGreaterEqual(sim.counts()["most"], 50)  # recording does not wait for the device
        self.assertEqual(len([e for e in kinds(prof.events(), "kernel") if e.name != "sim_hold"]), 50)
        self.assertEqual(prof.health().unmatched, 0)

    def test_a_live_look_while_work_is_in_flight(self):
        x = torch.ones(4, device="npu")
        with profile(activities=BOTH) as prof:
            with sim.held():
                x.add(1)
                live = prof.events()
                self.assertEqual(len(named(live, "aten::add")), 1)
                self.assertEqual(kinds(live, "kernel"), [])
                self.assertEqual(prof.health().unmatched, 1)  # so far
            torch.npu.synchronize()
            self.assertEqual(len(kinds(prof.events(), "kernel")), 1)
        self.assertEqual(prof.health().unmatched, 0)


class Failures(unittest.TestCase):
    """A device that fails: one error, no host event lost, a profiler that works."""

    def tearDown(self):
        for device in range(2):
            try:
                sim.lose(device, False)
                torch.npu.synchronize(device)
            except RuntimeError:
                pass

    def test_a_kernel_that_fails_in_the_last_step(self):
        x = torch.ones(4, device="npu")
        ready = []
        prof = profile(activities=BOTH, on_trace_ready=ready.append)
        prof.start()
        sim.fail("kernel is broken", after=1)
        x.add(1)
        x.mul(2)
        x.sub(3)
        with self.assertRaisesRegex(RuntimeError, "kernel is broken"):
            prof.stop()
        self.assertEqual(ready, [prof])
        self.assertEqual([e.name for e in kinds(prof.events(), "op")], ["aten::add", "aten::mul", "aten::sub"])
        self.assertEqual((len(kinds(prof.events(), "kernel")), prof.health().unmatched), (3, 0))
        torch.npu.synchronize()  # it was reported once
        with profile(activities=BOTH) as again:
            x.add(1)
        self.assertEqual(len(kinds(again.events(), "kernel")), 1)

    def test_a_failure_does_not_end_a_schedule(self):
        x = torch.ones(4, device="npu")
        ready = []
        with profile(activities=BOTH, schedule=schedule(wait=0, warmup=0, active=1, repeat=2),
                     on_trace_ready=lambda p: ready.append(len(kinds(p.events(), "kernel")))) as prof:
            sim.fail("kernel is broken")
            x.add(1)
            with self.assertRaisesRegex(RuntimeError, "kernel is broken"):
                prof.step()
            x.add(1)
            x.add(1)
            prof.step()
        self.assertEqual(ready, [1, 2])

    def test_the_error_of_a_block_is_not_told_twice(self):
        x = torch.ones(4, device="npu")
        with self.assertRaisesRegex(torch.AcceleratorError, "lost") as caught:
            with profile(activities=BOTH) as prof:
                x.add(1)
                torch.npu.synchronize()
                sim.lose()
                x.mul(2)
        self.assertIsNone(caught.exception.__context__)
        self.assertEqual([e.name for e in kinds(prof.events(), "op")], ["aten::add", "aten::mul"])
        self.assertEqual(len(kinds(prof.events(), "kernel")), 1)
        calls = kinds(prof.events(), "runtime")
        refused = sum(e.name == "npuLaunchKernel" for e in calls) - 1
        self.assertEqual(prof.health().unmatched, refused)  # the program got the error
        sim.lose(lost=False)
        with profile(activities=BOTH) as again:
            x.sub(3)
        self.assertEqual((len(kinds(again.events(), "kernel")), again.health().unmatched), (1, 0))

    def test_work_that_a_lost_device_drops(self):
        x = torch.ones(4, device="npu")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with self.assertRaises(torch.AcceleratorError):
                with profile(activities=BOTH) as prof:
                    sim.hold(1000)
                    for _ in range(5):
                        x.add(1)
                    sim.lose()
        self.assertEqual(len(kinds(prof.events(), "op")), 5)
        self.assertEqual(prof.health().unmatched, 0)


class Killed(unittest.TestCase):
    """A process that dies while its device works."""

    def test_what_was_told_is_in_the_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "killed.mtt")
            text = ("import os, signal, sys\n"
                    "import mindtorch_v2 as torch\n"
                    "from mindtorch_v2.npu import _sim as sim\n"
                    "from mindtorch_v2.profiler import profile\n"
                    "x = torch.ones(4, device='npu')\n"
                    "prof = profile(path=sys.argv[1])\n"
                    "prof.start()\n"
                    "for _ in range(3): x.add(1)\n"
                    "torch.npu.synchronize()\n"
                    "sim.hold(1000)\n"
                    "x.mul(2)\n"
                    "os.kill(os.getpid(), signal.SIGKILL)\n")
            done = subprocess.run([sys.executable, "-c", text, path], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, -signal.SIGKILL, done.stderr)
            loaded = mtprof.load(path)
            self.assertEqual([e.name for e in kinds(loaded.events(), "op")], ["aten::add"] * 3 + ["aten::mul"])
            self.assertEqual([len(e.kernels) for e in kinds(loaded.events(), "op")], [1, 1, 1, 0])
            self.assertEqual(loaded.health().unmatched, 1)


if __name__ == "__main__":
    unittest.main()
