# SPDX-License-Identifier: Apache-2.0
"""The accelerator's profile as a demanding user reads it: joins, sums, memory, windows, failures, files, commands.

Written from the contract and from what torch shows on a GPU, not from the code.
"""
import contextlib
import gc
import gzip
import io
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support_npu import in_thread, run_python, sim, torch  # noqa: E402
import mtprof  # noqa: E402
from mindtorch_v2.profiler import (DeviceType, ProfilerActivity, profile, record_function, schedule,  # noqa: E402
                                   tensorboard_trace_handler)

npu, nn = torch.npu, torch.nn
BOTH = [ProfilerActivity.CPU, ProfilerActivity.NPU]
WORK = ("kernel", "copy", "set")
KEYS = {f"{device}_memory_allocated_{what}" for device in ("cpu", "npu") for what in ("before", "after", "delta")}
COMMAND = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(torch._C.__file__))), "..", "cli", "mtprof")


def of(events, *kinds):
    return [event for event in events if event["kind"] in kinds]


def names(events, *kinds):
    return [event.name for event in of(events, *kinds)]


def device_us(events):
    return sum(event.time_range.elapsed_us() for event in of(events, *WORK))


@contextlib.contextmanager
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for index in range(2):
            self.addCleanup(sim.lose, index, False)
        self.x = torch.ones(32, 32, device="npu")
        npu.synchronize()

    def path(self, name):
        return os.path.join(self.folder, name)

    def trace(self, prof):
        prof.export_chrome_trace(self.path("trace.json"))
        with open(self.path("trace.json"), encoding="utf-8") as file:
            return json.load(file)["traceEvents"]

    def assertSums(self, results):
        """Every piece of work has its op, and its time appears once: in events, rows and the table's last line."""
        events = results.events()
        total = device_us(events)
        ops = {event.id: event for event in of(events, "op")}
        for event in of(events, *WORK):
            self.assertTrue(event.linked_correlation_id in ops, event.name)
            self.assertIn(event.name, [kernel.name for kernel in ops[event.linked_correlation_id].kernels])
        host = [event for event in events if event.device_type == DeviceType.CPU]
        self.assertAlmostEqual(sum(event.self_device_time_total for event in host), total, places=2)
        self.assertAlmostEqual(sum(kernel.duration for event in host for kernel in event.kernels), total, places=2)
        rows = results.key_averages()
        self.assertAlmostEqual(sum(row.self_device_time_total for row in rows
                                   if row.device_type == DeviceType.CPU), total, places=2)
        self.assertAlmostEqual(sum(row.self_device_time_total for row in rows if row.device_type != DeviceType.CPU
                                   and not row.is_user_annotation), total, places=2)
        if total > 0:
            last = "\n".join(rows.table(row_limit=-1).splitlines()[-2:])
            printed = re.search(r"^Self NPU time total: ([0-9.]+)(us|ms)$", last, re.MULTILINE)
            self.assertIsNotNone(printed, last)
            # The text is rounded to a thousandth of its unit; a sum of floats may fall on the other side of a half.
            unit = 1000.0 if printed.group(2) == "ms" else 1.0
            self.assertAlmostEqual(float(printed.group(1)) * unit, total, delta=0.00051 * unit + 1e-3)
        self.assertEqual(results.health().unmatched, 0)
        return total


class Joins(Case):
    """Work and ops, whatever the program did to start the work."""

    def test_whatever_python_does_with_a_tensor(self):
        x, host = self.x, torch.ones(8)
        model = nn.Linear(32, 4).npu()
        optimizer = torch.optim.Adam(model.parameters())

        def train():
            optimizer.zero_grad()
            model(x).sum().backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

        for number, work in enumerate((
                lambda: repr(x), lambda: x.tolist(), lambda: x[0, 0].item(), lambda: bool((x > 0).all()),
                lambda: pickle.loads(pickle.dumps(x)), lambda: torch.save(x, io.BytesIO()), lambda: list(x[0]),
                lambda: x.numpy(force=True), lambda: host.npu(), lambda: host.pin_memory().npu(non_blocking=True),
                lambda: x.to("npu:1"), lambda: x.t().cpu(), lambda: x[x > 0], lambda: x.__setitem__(0, 2.0),
                lambda: x.__setitem__((0, slice(0, 8)), host), lambda: torch.tensor([1.0, 2.0], device="npu"),
                lambda: torch.equal(x, x), lambda: torch.randn(4, device="npu:1"), lambda: x.to(torch.float64),
                lambda: torch.zeros(1000, device="npu"), lambda: x.zero_(), lambda: x.copy_(torch.ones(32, 32)),
                lambda: torch.empty(4).copy_(x[0, :4]), lambda: x.nonzero(), lambda: model.state_dict(), train,
                lambda: nn.Linear(4, 4).npu(), lambda: nn.Linear(4, 4, device="npu"))):
            with self.subTest(number):
                with profile(activities=BOTH) as prof:
                    work()
                self.assertSums(prof)

    def test_numbers_are_unique_and_joins_agree_in_the_trace(self):
        ids = []
        for _ in range(3):  # over sessions
            with profile(activities=BOTH) as prof:
                for _ in range(5):
                    (self.x @ self.x).relu().sum().item()
            ids += [event.id for event in of(prof.events(), "op", "scope", "runtime")]
            self.assertEqual([e["correlation_id"] for e in of(prof.events(), "op")],
                             sorted(e["correlation_id"] for e in of(prof.events(), "op")))
        self.assertEqual(len(set(ids)), len(ids))
        events = self.trace(prof)
        spans = [e for e in events if e["ph"] == "X"]
        ops = {e["args"]["External id"]: e for e in spans if e["cat"] == "cpu_op"}
        calls = {e["args"]["correlation"]: e for e in spans if e["cat"] == "privateuse1_runtime"}
        work = [e for e in spans if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
        self.assertEqual(len({e["args"]["correlation"] for e in work}), len(work))
        self.assertEqual(len(work), 5 * 4)
        for event in work:
            call, op = calls[event["args"]["correlation"]], ops[event["args"]["External id"]]
            self.assertEqual((call["pid"], call["tid"]), (op["pid"], op["tid"]))
            self.assertTrue(op["ts"] <= call["ts"] and call["ts"] + call["dur"] <= op["ts"] + op["dur"] + 0.002)
            self.assertGreaterEqual(event["ts"], call["ts"])  # nothing begins before it was asked for
        flows = {}
        for event in events:
            if event.get("cat") == "ac2g":
                flows.setdefault(event["id"], []).append(event["ph"])
        self.assertEqual(set(flows), {e["args"]["correlation"] for e in work})
        self.assertTrue(all(sorted(ends) == ["f", "s"] for ends in flows.values()))

    def test_what_waits_ends_after_what_it_waits_for(self):
        streams = [npu.Stream() for _ in range(3)]
        with profile(activities=BOTH) as prof:
            for number in range(30):
                with npu.stream(streams[number % 3]):
                    self.x.add(1)
            npu.synchronize()
            self.x.mul(2)
        events = prof.events()
        waited = next(e for e in events if e.name == "npuDeviceSynchronize")
        before = [e for e in of(events, "kernel") if e.name.startswith("binary_add")]
        self.assertEqual(len(before), 30)
        self.assertTrue(all(e["end_ns"] <= waited["end_ns"] for e in before))
        self.assertEqual(len({e.device_resource_id for e in before}), 3)

    def test_threads(self):
        gate = threading.Barrier(4)

        def work(number):
            gate.wait(60)
            npu.set_device(number % 2)
            x, s = torch.ones(8, device="npu"), npu.Stream()
            with record_function(f"thread {number}"), npu.stream(s):
                for _ in range(50):
                    x.add(1)
            s.synchronize()
            tracks[number] = (s.device_index, s.stream_id)

        tracks = {}
        with profile(activities=BOTH) as prof:
            threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
        self.assertSums(prof)
        events = prof.events()
        for number, track in tracks.items():
            span, = [e for e in of(events, "annotation") if e.name == f"thread {number}"]
            self.assertEqual((span.device_index, span.device_resource_id), track)
            adds = [e for e in of(events, "kernel") if (e.device_index, e.device_resource_id) == track]
            self.assertEqual(len(adds), 50)
        self.assertEqual(len({e["thread_id"] for e in of(events, "op") if e.kernels}), 4)

    def test_windows_over_threads_that_never_rest(self):
        """Whatever is under way when a window opens or closes: work has its launch, and launches have their work. Only
        an op that began before the window is not in it, and a launch that the window's end cuts off may be alone."""
        done, rounds, failures = threading.Event(), threading.Semaphore(0), []

        def work(number):
            try:
                with npu.stream(npu.Stream(number % 2)):
                    x = torch.ones(64, device="npu")
                    while not done.is_set():
                        for _ in range(10):
                            y = x.add(1)
                        y.cpu()
                        rounds.release()
            except BaseException as error:
                failures.append(error)
                rounds.release()

        threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        try:
            for number in range(10):
                with profile(activities=BOTH if number % 2 else ["npu"]) as prof:
                    while rounds.acquire(blocking=False):
                        pass
                    for _ in range(9):
                        self.assertTrue(rounds.acquire(timeout=60))
                events = prof.events()
                launches = {e.id: e for e in of(events, "runtime") if e.name in ("npuLaunchKernel", "npuMemcpy")}
                ops = {event.id for event in of(events, "op")}
                pieces = of(events, *WORK)
                self.assertTrue(all(event.id in launches for event in pieces))
                self.assertLessEqual(sum(event.linked_correlation_id not in ops for event in pieces), 3)  # one a thread
                alone = set(launches) - {event.id for event in pieces}
                end = max(event["end_ns"] for event in of(events, "op", "runtime"))
                self.assertTrue(all(launches[key]["end_ns"] == end for key in alone))
                self.assertEqual((prof.health().unmatched, prof.health().lost), (len(alone), 0))
                self.assertGreater(len(pieces), 9)
        finally:
            done.set()
            for thread in threads:
                thread.join(60)
        self.assertEqual(failures, [])

    def test_stopped_by_another_thread(self):
        prof = profile(activities=BOTH)
        prof.start()
        self.x.add(1)
        in_thread(prof.stop)
        self.assertEqual(names(prof.events(), "kernel"), ["binary_add_f32"])


class Scopes(Case):
    """record_function around device work."""

    def test_nested_on_streams(self):
        a, b = npu.Stream(), npu.Stream()
        with profile(activities=BOTH) as prof:
            with record_function("outer"):
                with npu.stream(a):
                    self.x.add(1)
                with record_function("inner"):
                    for s in (a, b):
                        with npu.stream(s):
                            self.x.mul(2)
                with record_function("host alone"):
                    torch.ones(2) + 1
                with self.assertRaises(KeyError), record_function("raises"), npu.stream(b):
                    self.x.sub(1)
                    raise KeyError
        spans = {(e.name, e.device_resource_id): e for e in of(prof.events(), "annotation")}
        self.assertEqual(set(spans), {("outer", a.stream_id), ("outer", b.stream_id), ("inner", a.stream_id),
                                      ("inner", b.stream_id), ("raises", b.stream_id)})
        for s in (a, b):
            outer, inner = spans["outer", s.stream_id], spans["inner", s.stream_id]
            self.assertTrue(outer["start_ns"] <= inner["start_ns"] <= inner["end_ns"] <= outer["end_ns"])
        scope, = [e for e in of(prof.events(), "scope") if e.name == "outer"]
        self.assertAlmostEqual(scope.device_time_total, self.assertSums(prof), places=2)
        self.assertEqual(scope.self_device_time_total, 0)
        categories = {e["name"]: e["cat"] for e in self.trace(prof) if e["ph"] == "X" and e["pid"] in (0, 1)}
        self.assertEqual(categories["inner"], "gpu_user_annotation")
        self.assertNotIn("host alone", categories)

    def test_many_of_one_name_queued_at_once(self):
        with profile(activities=BOTH) as prof:
            with sim.held():
                for _ in range(4):
                    with record_function("step"):
                        self.x.add(1)
                        self.x.mul(2)
        spans = sorted((e["start_ns"], e["end_ns"]) for e in of(prof.events(), "annotation"))
        self.assertEqual(len(spans), 4)
        self.assertTrue(all(first[1] <= second[0] for first, second in zip(spans, spans[1:])))
        host, device = sorted((row for row in prof.key_averages() if row.key == "step"),
                              key=lambda row: row.device_type != DeviceType.CPU)
        self.assertEqual((host.count, device.count, device.device_type), (4, 4, DeviceType.PrivateUse1))
        self.assertAlmostEqual(host.device_time_total, device_us(prof.events()), places=2)
        # A twin lasts from its first work to its last, so it may be longer than the work, and never shorter.
        self.assertGreaterEqual(device.device_time_total, host.device_time_total - 0.001)

    def test_open_when_it_stops(self):
        scope = record_function("open")
        with profile(activities=BOTH) as prof:
            scope.__enter__()
            self.x.add(1)
        self.x.mul(2)
        scope.__exit__(None, None, None)
        self.assertEqual(names(prof.events(), "annotation", "kernel"), ["open", "binary_add_f32"])
        self.assertEqual(prof.health().truncated, 1)
        self.assertSums(prof)


class Memory(Case):
    """The six keys, the columns, and when they are not there."""

    def ops(self, work, activities=BOTH):
        gc.collect()
        with profile(activities=activities, profile_memory=True) as prof:
            kept = work()
        del kept
        return {event.name: event for event in of(prof.events(), "op")}

    def assertMemory(self, event, device, delta):
        have = {key: event[key] for key in event.keys() if key in KEYS}
        self.assertEqual(set(have), {f"{device}_memory_allocated_{what}" for what in ("before", "after", "delta")})
        self.assertEqual(have[f"{device}_memory_allocated_delta"], delta)
        self.assertEqual(have[f"{device}_memory_allocated_after"] - have[f"{device}_memory_allocated_before"], delta)

    def test_each_device_has_its_own(self):
        before = npu.memory_allocated()
        x = self.x
        seen = self.ops(lambda: (x.add(1), torch.ones(5), x.new_zeros(3)))
        self.assertMemory(seen["aten::add"], "npu", 32 * 32 * 4)
        self.assertEqual(seen["aten::add"]["npu_memory_allocated_before"], before)
        self.assertMemory(seen["aten::ones"], "cpu", 20)
        self.assertMemory(self.ops(lambda: torch.zeros(9, device="npu:1"))["aten::zeros"], "npu", 36)

    def test_copies_count_where_they_go(self):
        x = self.x
        self.assertMemory(self.ops(lambda: torch.ones(6).npu())["aten::_to_copy"], "npu", 24)
        self.assertMemory(self.ops(lambda: x.to("npu:1"))["aten::_to_copy"], "npu", 32 * 32 * 4)
        self.assertMemory(self.ops(lambda: x.cpu())["aten::_to_copy"], "npu", 0)
        seen = self.ops(lambda: x.to("npu:1"))["aten::_to_copy"]
        self.assertEqual((seen.device_memory_usage, seen.cpu_memory_usage), (32 * 32 * 4, 0))
        seen = self.ops(lambda: x.cpu())["aten::_to_copy"]
        self.assertEqual((seen.device_memory_usage, seen.cpu_memory_usage), (0, 32 * 32 * 4))

    def test_activities_do_not_change_them(self):
        x = self.x
        for activities in ([ProfilerActivity.CPU], [ProfilerActivity.NPU], None):
            self.assertMemory(self.ops(lambda: x.add(1), activities)["aten::add"], "npu", 4096)

    def test_only_where_and_when_asked_for(self):
        windows = []
        for wanted in (True, False):
            with profile(activities=BOTH, profile_memory=wanted, on_trace_ready=lambda p: windows.append(p.events()),
                         schedule=schedule(wait=1, warmup=1, active=2, repeat=1)) as prof:
                for _ in range(5):
                    self.x.add(1)
                    prof.step()
            spans = [e for e in self.trace(prof) if e["ph"] == "X"]
            self.assertEqual(any(KEYS & set(e["args"]) for e in spans), wanted)
        with_memory, without = windows
        self.assertEqual([e["step"] for e in of(with_memory, "op")], [2, 3])
        for event in of(with_memory, "op"):
            self.assertMemory(event, "npu", 4096)
        for event in [e for e in with_memory if e["kind"] != "op"] + list(without):
            self.assertFalse(KEYS & set(event.keys()), event.name)
            self.assertNotIn("npu_memory_allocated_delta", event)
            self.assertIsNone(event.get("npu_memory_allocated_delta"))

    def test_columns(self):
        with profile(activities=BOTH, profile_memory=True) as prof:
            kept = self.x @ self.x
            gone = self.x + 1
            del gone
        rows = {row.key: row for row in prof.key_averages()}
        self.assertEqual((rows["aten::mm"].device_memory_usage, rows["aten::mm"].self_device_memory_usage),
                         (4096, 4096))
        self.assertEqual((rows["aten::matmul"].device_memory_usage, rows["aten::matmul"].self_device_memory_usage),
                         (4096, 0))
        self.assertEqual((rows["[memory]"].device_memory_usage, rows["[memory]"].cpu_memory_usage), (-4096, 0))
        for key in ("self_npu_memory_usage", "npu_memory_usage", "self_device_memory_usage", "self_cuda_memory_usage"):
            first = prof.key_averages().table(sort_by=key, row_limit=1).splitlines()[3]
            self.assertIn("4.00 KB", first)
        del kept


class Windows(Case):
    """Schedules, cycles, and devices that are not done when the host is."""

    def test_cycles_with_work_in_flight(self):
        seen = []
        with quiet(), profile(activities=BOTH, schedule=schedule(wait=1, warmup=0, active=1, repeat=3),
                              on_trace_ready=lambda p: seen.append(p.events())) as prof:
            for number in range(6):
                sim.hold(number + 1)  # so nothing of a step runs before all of it is queued
                for _ in range(number + 1):
                    self.x.add(1)
                prof.step()
        self.assertEqual([len(of(events, "kernel")) for events in seen], [2, 4, 6])
        self.assertEqual([{e["step"] for e in of(events, "kernel", "op")} for events in seen], [{1}, {3}, {5}])
        self.assertEqual(prof.health().unmatched, 0)

    def test_accumulated(self):
        with quiet(), profile(activities=BOTH, schedule=schedule(wait=0, warmup=0, active=1, repeat=3),
                              acc_events=True) as prof:
            for _ in range(3):
                self.x.add(1)
                prof.step()
        self.assertEqual(sorted(e["step"] for e in of(prof.events(), "kernel")), [0, 1, 2])
        self.assertEqual([len(e.kernels) for e in of(prof.events(), "op")], [1, 1, 1])
        self.assertSums(prof)

    def test_the_device_alone_with_a_schedule(self):
        seen = []
        with quiet(), profile(activities=["npu"], schedule=schedule(wait=1, warmup=1, active=1, repeat=1),
                              on_trace_ready=lambda p: seen.append(p.events())) as prof:
            for _ in range(4):
                with record_function("mine"):
                    torch.ones(2) + 1
                    self.x.add(1)
                prof.step()
        self.assertEqual([(e.name, e["step"]) for e in of(seen[0], "op")], [("aten::add", 2)])
        self.assertEqual(names(seen[0], "scope", "annotation"), [])

    def test_nothing_happened(self):
        with profile(activities=BOTH) as prof:
            pass
        self.assertEqual(of(prof.events(), "op", *WORK), [])
        self.assertNotIn("Self NPU time", prof.key_averages().table())
        self.assertTrue(prof.health().ok)
        prof.export_chrome_trace(self.path("empty.json"))
        with open(self.path("empty.json"), encoding="utf-8") as file:
            self.assertIn("traceEvents", json.load(file))

    def test_stop_waits_for_a_slow_device(self):
        """Half a second after it was asked the device begins: stop is there for it, without a hold or a wait."""
        out = run_python("""
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
x = torch.ones(4, device='npu:1')
torch.npu.synchronize(1)
with profile(activities=['CPU', 'NPU']) as prof:
    x.add(1)
kernels = [e for e in prof.events() if e['kind'] == 'kernel']
op, = [e for e in prof.events() if e['kind'] == 'op']
print(len(kernels), prof.health().unmatched, kernels[0]['start_ns'] - op['start_ns'] >= 500_000_000)
""", MINDTORCH_NPU_SIM_LATENCY_NS="500000000")
        self.assertEqual(out, "1 0 True\n")

    def test_a_live_look_and_a_later_one(self):
        with profile(activities=BOTH) as prof:
            with sim.held():
                self.x.add(1)
                self.assertEqual(names(prof.events(), "kernel"), [])
            npu.synchronize()
            self.assertEqual(names(prof.events(), "kernel"), ["binary_add_f32"])
            self.assertEqual(len(of(prof.events(), "op")[0].kernels), 1)
        self.assertSums(prof)


class Failures(Case):
    """One clear error; no host event is lost; the next profile is as good as any."""

    def assertWorks(self):
        with profile(activities=BOTH) as prof:
            self.x.add(1)
        self.assertEqual(names(prof.events(), "op", "kernel"), ["aten::add", "binary_add_f32"])
        self.assertSums(prof)

    def test_an_index_told_inside(self):
        far = torch.tensor([99], device="npu")
        with profile(activities=BOTH) as prof:
            self.x.add(1)
            self.x[far]
            self.x.mul(2)
            with self.assertRaises(IndexError):
                npu.synchronize()
        self.assertEqual(names(prof.events(), "op"), ["aten::add", "aten::index", "aten::mul"])
        self.assertSums(prof)  # the kernel that failed ran, too
        self.assertWorks()

    def test_an_index_told_at_the_end(self):
        far = torch.tensor([99], device="npu")
        with self.assertRaisesRegex(IndexError, "index 99"):
            with profile(activities=BOTH) as prof:
                self.x[far]
                self.x.mul(2)
        npu.synchronize()  # it was reported
        self.assertEqual(names(prof.events(), "op"), ["aten::index", "aten::mul"])
        self.assertSums(prof)
        prof.export_chrome_trace(self.path("t.json"))
        self.assertWorks()

    def test_the_program_s_own_exception(self):
        far = torch.tensor([99], device="npu")
        with self.assertRaises((KeyError, IndexError)) as caught:
            with profile(activities=BOTH) as prof:
                self.x[far]
                raise KeyError("mine")
        chain = caught.exception
        while chain is not None and not isinstance(chain, KeyError):
            chain = chain.__context__
        self.assertIsNotNone(chain)  # whichever comes first, the program's is not lost
        with contextlib.suppress(IndexError):
            npu.synchronize()
        self.assertEqual(names(prof.events(), "op"), ["aten::index"])
        self.assertWorks()

    def test_out_of_memory(self):
        with self.assertRaises(torch.OutOfMemoryError) as caught:
            with profile(activities=BOTH, profile_memory=True) as prof:
                self.x.add(1)
                torch.empty(1 << 30, device="npu")
        self.assertIsNone(caught.exception.__context__)
        self.assertEqual(names(prof.events(), "op"), ["aten::add", "aten::empty"])
        event, = [e for e in self.trace(prof) if e["name"] == "[OutOfMemory]"]
        self.assertEqual((event["args"]["Bytes"], event["args"]["Device Id"]), (1 << 32, 0))
        self.assertSums(prof)
        self.assertWorks()

    def test_a_lost_device(self):
        other = torch.ones(4, device="npu:1")
        npu.synchronize(1)
        with quiet(), self.assertRaises(torch.AcceleratorError):
            with profile(activities=BOTH) as prof:
                self.x.add(1)
                npu.synchronize()
                sim.lose(0)
                with self.assertRaisesRegex(torch.AcceleratorError, "npu:0"):
                    self.x.mul(2)
                torch.ones(2) + 1
                other.sub(1)  # the other device continues
        self.assertEqual(names(prof.events(), "op"), ["aten::add", "aten::mul", "aten::ones", "aten::add", "aten::sub"])
        self.assertEqual([(e.name, e.device_index) for e in of(prof.events(), "kernel")],
                         [("binary_add_f32", 0), ("binary_sub_f32", 1)])
        self.assertIn("1 launches unmatched", str(prof.health()))
        self.assertIn("unmatched", prof.key_averages().table())  # a loss is never silent
        sim.lose(0, False)
        self.assertWorks()

    def test_told_by_step(self):
        """The window is delivered, the step that follows has begun, and a program that catches the error continues."""
        far, seen = torch.tensor([99], device="npu"), []
        with profile(activities=BOTH, schedule=schedule(wait=0, warmup=1, active=1, repeat=1),
                     on_trace_ready=lambda p: seen.append(names(p.events(), "op"))) as prof:
            prof.step()
            self.x[far]
            self.x.mul(2)
            with self.assertRaises(IndexError):
                prof.step()
            self.assertEqual(prof.step_num, 2)
            self.x.add(1)
            prof.step()
        self.assertEqual(seen, [["aten::index", "aten::mul"]])
        self.assertEqual(names(prof.events(), "op"), seen[0])
        self.assertWorks()

    def test_lost_before_it_starts(self):
        other = torch.ones(4, device="npu:1")
        npu.synchronize(1)
        sim.lose(0)
        with self.assertRaisesRegex(torch.AcceleratorError, "npu:0"):
            with profile(activities=BOTH) as prof:
                torch.ones(2) + 1
                other.sub(1)
        self.assertEqual(names(prof.events(), "op"), ["aten::ones", "aten::add", "aten::sub"])
        self.assertEqual(names(prof.events(), "kernel"), ["binary_sub_f32"])
        self.assertSums(prof)
        sim.lose(0, False)
        self.assertWorks()

    def test_what_failed_before_it_started(self):
        self.x[torch.tensor([99], device="npu")]
        with self.assertRaisesRegex(IndexError, "index 99"):
            with profile(activities=BOTH) as prof:
                self.x.add(1)
        self.assertEqual(names(prof.events(), "op"), ["aten::add"])
        self.assertSums(prof)

    def test_a_failing_backward(self):
        w = torch.ones(4, device="npu", requires_grad=True)
        npu.synchronize()
        with profile(activities=BOTH) as prof:
            loss = (w * 2).sum()
            npu.synchronize()
            sim.fail("bad luck", after=1)
            with self.assertRaisesRegex(RuntimeError, "bad luck"):
                loss.backward()
                npu.synchronize()
        self.assertIn("MulBackward0", names(prof.events(), "op"))
        self.assertSums(prof)

    def test_a_fork_inside(self):
        with profile(activities=BOTH) as prof:
            self.x.add(1)
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    code = 0 if (torch.ones(2) + 1).tolist() == [2.0, 2.0] else 2
                finally:
                    os._exit(code)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.x.mul(2)
        self.assertEqual(names(prof.events(), "kernel"), ["binary_add_f32", "binary_mul_f32"])
        self.assertSums(prof)

    def test_a_callback_that_raises(self):
        def broken(_):
            raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError):
            with profile(activities=BOTH, on_trace_ready=broken) as prof:
                self.x.add(1)
        self.assertSums(prof)
        self.assertWorks()


class Files(Case):
    """What was recorded, written and read again."""

    @classmethod
    def setUpClass(cls):
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)).npu()
        side = npu.Stream()
        with profile(activities=BOTH, profile_memory=True, record_shapes=True, with_stack=True, with_modules=True,
                     with_flops=True) as prof:
            with record_function("train"):
                model(torch.ones(4, 8, device="npu")).sum().backward()
                with npu.stream(side):
                    torch.zeros(64, dtype=torch.uint8, device="npu")
            torch.ones(3, device="npu:1").cpu()
        cls.prof, cls.model = prof, model

    def test_everything_at_once(self):
        self.assertSums(self.prof)
        for options in ({"group_by_input_shape": True}, {"group_by_stack_n": 4}, {"group_by_overload_name": True}):
            rows = self.prof.key_averages(**options)
            self.assertAlmostEqual(sum(row.self_device_time_total for row in rows
                                       if row.device_type == DeviceType.CPU), device_us(self.prof.events()), places=2)
        addmm = next(e for e in self.prof.events() if e.name == "aten::addmm")
        self.assertGreater(len(addmm.stack), 0)
        self.assertEqual(addmm.flops, 2 * 4 * 8 * 16)
        self.assertEqual(addmm["input_shapes"][1:3], [[4, 8], [8, 16]])
        for event in of(self.prof.events(), *WORK):
            self.assertEqual((event.stack, event.cpu_time_total), ([], 0))

    def test_read_again(self):
        def shown(results):
            return [results.key_averages(**options).table(sort_by="self_npu_time_total", row_limit=-1)
                    for options in ({}, {"group_by_input_shape": True})]

        self.prof.save(self.path("t.mtt"))
        self.prof.export_chrome_trace(self.path("t.json"))
        self.prof.export_chrome_trace(self.path("t.json.gz"))
        with gzip.open(self.path("t.json.gz"), "rt", encoding="utf-8") as file:
            self.assertIn("deviceProperties", json.load(file))
        for name in ("t.mtt", "t.json", "t.json.gz"):
            loaded = mtprof.load(self.path(name))
            self.assertEqual(shown(loaded), shown(self.prof), name)
            self.assertSums(loaded)
            again = self.path("again.json")
            loaded.export_chrome_trace(again)  # and again
            self.assertEqual(shown(mtprof.load(again)), shown(self.prof), name)

    def test_handlers_and_stacks(self):
        with profile(activities=BOTH, with_stack=True, on_trace_ready=tensorboard_trace_handler(self.folder)) as prof:
            (self.x @ self.x).sum()
        name, = [n for n in os.listdir(self.folder) if n.endswith(".pt.trace.json")]
        self.assertEqual(len(of(mtprof.load(self.path(name)).events(), *WORK)), 2)
        for metric in ("self_npu_time_total", "self_cuda_time_total"):
            prof.export_stacks(self.path(metric), metric)
            with open(self.path(metric), encoding="utf-8") as file:
                self.assertGreater(len(file.read().splitlines()), 0)

    @unittest.skipUnless(os.path.exists(COMMAND), "the command is not built")
    def test_the_command_shows_the_device(self):
        self.prof.save(self.path("t.mtt"))
        self.prof.export_chrome_trace(self.path("t.json"))
        total = self.prof.key_averages().table(row_limit=-1, width=80).splitlines()[-1]
        self.assertRegex(total, r"^Self NPU time total: [\d.]+ [mun]?s$")
        for file in ("t.mtt", "t.json"):
            for command, wanted in (("report", ("Self NPU", "aten::addmm", total)),
                                    ("info", ("kernels", "NPU 0 queue 0", "NPU 1 queue 0")),
                                    ("check", (file,)), ("memory", ("NPU:0", "aten::addmm"))):
                with self.subTest(file=file, command=command):
                    done = subprocess.run([COMMAND, command, self.path(file)], capture_output=True, text=True,
                                          timeout=60)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    for text in wanted:
                        self.assertIn(text, done.stdout)
                    self.assertNotIn("error", done.stdout)

    def test_killed_in_the_midst(self):
        path = self.path("killed.mtt")
        done = subprocess.run([sys.executable, "-c", """
import os, signal, sys
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function
x = torch.ones(4, device='npu:1')
prof = profile(path=sys.argv[1], profile_memory=True)
prof.start()
with record_function('outer'):
    for _ in range(3): x.add(1)
    torch.npu.synchronize(1)
    with torch.npu.device(1):
        torch.npu._sim.hold(1000)
    x.mul(2)
    os.kill(os.getpid(), signal.SIGKILL)
""", path], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, -signal.SIGKILL, done.stderr)
        files = [path]
        if os.path.exists(COMMAND):
            files.append(self.path("recovered.mtt"))
            done = subprocess.run([COMMAND, "recover", path, "-o", files[1]], capture_output=True, text=True,
                                  timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
        for file in files:
            loaded = mtprof.load(file)
            self.assertEqual(names(loaded.events(), "op"), ["aten::add"] * 3 + ["aten::mul"])
            self.assertEqual([len(e.kernels) for e in of(loaded.events(), "op")], [1, 1, 1, 0])
            self.assertEqual((loaded.health().unmatched, loaded.health().truncated), (1, 1))
            self.assertEqual({e.device_index for e in of(loaded.events(), *WORK)}, {1})
            self.assertTrue(all(e["npu_memory_allocated_delta"] == 16 for e in of(loaded.events(), "op")))


if __name__ == "__main__":
    unittest.main()
