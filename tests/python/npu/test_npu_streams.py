# SPDX-License-Identifier: Apache-2.0
"""Streams and events: order, waiting, measuring, threads; a waiting thread releases the GIL."""
import os
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support_npu import in_thread, run_python, sim  # noqa: E402
import mindtorch_v2 as torch  # noqa: E402

npu = torch.npu


class Streams(unittest.TestCase):
    def tearDown(self):
        npu.set_stream(npu.default_stream(1))
        npu.set_stream(npu.default_stream(0))

    def test_what_they_are(self):
        s, high = npu.Stream(), npu.Stream("npu:1", priority=-1)
        self.assertEqual((s.device, s.device_index, s.priority), (torch.device("npu:0"), 0, 0))
        self.assertEqual((high.device_index, high.priority), (1, -1))
        self.assertEqual(s.npu_stream, s.stream_id)
        self.assertNotEqual(s.stream_id, 0)
        self.assertEqual(npu.default_stream().stream_id, 0)
        self.assertEqual(repr(npu.default_stream()), "<torch.npu.Stream device=npu:0 npu_stream=0x0>")
        self.assertEqual(npu.current_stream(), npu.default_stream())
        self.assertEqual(hash(npu.current_stream()), hash(npu.default_stream()))
        self.assertNotEqual(s, npu.default_stream())
        self.assertNotEqual(npu.default_stream(0), npu.default_stream(1))
        self.assertNotEqual(s, 5)
        self.assertEqual(npu.Stream.priority_range(), (0, -1))
        with npu.device(1):
            self.assertEqual(npu.Stream().device_index, 1)
        self.assertEqual(len({npu.Stream() for _ in range(40)}), 32)  # then handed out again
        with self.assertRaises(TypeError):
            npu.Stream() < npu.Stream()

    def test_blocks(self):
        s, other = npu.Stream(), npu.Stream(1)
        with npu.stream(s) as nothing:
            self.assertIsNone(nothing)
            self.assertEqual(npu.current_stream(), s)
            with npu.stream(other):
                self.assertEqual((npu.current_stream(), npu.current_device()), (other, 1))
                self.assertEqual(npu.current_stream(0), s)
            self.assertEqual((npu.current_stream(), npu.current_device()), (s, 0))
            self.assertEqual(npu.current_stream(1), npu.default_stream(1))
            with npu.stream(None):
                self.assertEqual(npu.current_stream(), s)
            with other as entered:
                self.assertIs(entered, other)
                self.assertEqual((npu.current_stream(), npu.current_device()), (other, 1))
                with other, s:
                    self.assertEqual(npu.current_stream(), s)
            self.assertEqual((npu.current_stream(), npu.current_device()), (s, 0))
        self.assertEqual(npu.current_stream(), npu.default_stream())
        with self.assertRaises(KeyError), npu.stream(s):
            raise KeyError
        self.assertEqual(npu.current_stream(), npu.default_stream())
        npu.set_stream(other)
        self.assertEqual(npu.current_device(), 1)
        self.assertEqual(in_thread(lambda: (npu.current_device(), npu.current_stream(1).stream_id)), (0, 0))
        with self.assertRaisesRegex(RuntimeError, "without __enter__"):
            s.__exit__(None, None, None)
        with self.assertRaises(AttributeError):
            npu.stream(5).__enter__()
        with self.assertRaisesRegex(RuntimeError, "expected stream to be"):
            npu.set_stream(5)

    def test_asynchronous(self):
        s = npu.Stream()
        x = torch.ones(8, device="npu")
        npu.synchronize()
        sim.reset_counts(s)
        with sim.held(s), npu.stream(s):
            for _ in range(50):
                x = x + 1
            self.assertFalse(s.query())
            self.assertTrue(npu.default_stream().query())
            self.assertGreaterEqual(sim.counts(s)["waiting"], 50)
        s.synchronize()
        self.assertTrue(s.query())
        counts = sim.counts(s)
        self.assertEqual((counts["waiting"], counts["gave_up"]), (0, 0))
        self.assertGreaterEqual(counts["most"], 50)
        self.assertEqual(x.tolist(), [51.0] * 8)

    def test_waiting_for_each_other(self):
        a, b = npu.Stream(), npu.Stream()
        for wait in (lambda: b.wait_stream(a), lambda: b.wait_event(a.record_event()),
                     lambda: a.record_event().wait(b)):
            x = torch.zeros(4, device="npu")
            npu.synchronize()
            with sim.held(a):
                with npu.stream(a):
                    x.add_(1)
                wait()
                with npu.stream(b):
                    y = x * 10
                self.assertFalse(b.query())
            b.synchronize()
            self.assertEqual(y.tolist(), [10.0] * 4)

    def test_streams_do_not_wait_unasked(self):
        a, b = npu.Stream(), npu.Stream()
        x = torch.zeros(4, device="npu")
        npu.synchronize()
        with sim.held(a):
            with npu.stream(a):
                x.add_(1)
            with npu.stream(b):
                y = x + 5
            b.synchronize()  # would give up the hold if it waited for a
            self.assertEqual(sim.counts(a)["gave_up"], 0)
            with npu.stream(b):
                self.assertEqual(y.tolist(), [5.0] * 4)
        a.synchronize()

    def test_record_stream(self):
        s = npu.Stream()
        x = torch.ones(1 << 18, device="npu")
        npu.synchronize()
        place = x.data_ptr()
        with sim.held(s):
            with npu.stream(s):
                y = x + 1
            x.record_stream(s)
            del x
            z = torch.zeros(1 << 18, device="npu")  # must not take the memory that s still reads
            self.assertNotEqual(z.data_ptr(), place)
        s.synchronize()
        self.assertEqual(y.sum().item(), 2.0 * (1 << 18))
        with self.assertRaisesRegex(NotImplementedError, "aten::record_stream"):
            torch.ones(1).record_stream(s)
        for bad in (None, 5, "s"):
            with self.assertRaisesRegex(RuntimeError, "expected stream to be"):
                y.record_stream(bad)


class Events(unittest.TestCase):
    def test_life(self):
        event = npu.Event()
        self.assertEqual(repr(event), "<torch.npu.Event uninitialized>")
        self.assertTrue(event.query())
        event.synchronize()
        event.wait()
        self.assertIsNone(event.device)
        s = npu.Stream()
        with sim.held(s), npu.stream(s):
            torch.ones(2, device="npu")
            event.record()
            self.assertFalse(event.query())
        event.synchronize()
        self.assertTrue(event.query())
        self.assertEqual(event.device, torch.device("npu:0"))
        self.assertRegex(repr(event), "<torch.npu.Event 0x")
        with self.assertRaisesRegex(RuntimeError, "does not match"):
            event.record(npu.default_stream(1))
        with self.assertRaisesRegex(RuntimeError, "expected stream to be"):
            event.record(5)
        for bad in (None, 5):
            with self.assertRaisesRegex(TypeError, "must be torch.Event"):
                s.wait_event(bad)
        with self.assertRaises(NotImplementedError):
            npu.Event(interprocess=True)

    def test_time(self):
        for make in (lambda: npu.Event(enable_timing=True), lambda: npu.Event(True),
                     lambda: torch.Event("npu", enable_timing=True)):
            begin, end = make(), make()
            with self.assertRaisesRegex(ValueError, "Both events must be recorded before calculating elapsed time"):
                begin.elapsed_time(end)
            begin.record()
            x = torch.ones(1000, device="npu").sum()
            end.record()
            end.synchronize()
            first = begin.elapsed_time(end)
            self.assertIsInstance(first, float)
            self.assertGreater(first, 0.0)
            self.assertLess(first, 60000.0)
            self.assertEqual(begin.elapsed_time(end), first)
            self.assertEqual(begin.elapsed_time(begin), 0.0)
            del x
        with self.assertRaisesRegex(ValueError, "'enable_timing=True'"):
            npu.Event().elapsed_time(begin)
        s = npu.Stream()
        with sim.held(s):
            end.record(s)
            with self.assertRaises(RuntimeError):
                begin.elapsed_time(end)
        end.synchronize()

    def test_threads(self):
        """Events and streams are everybody's."""
        event, s = npu.Event(), npu.Stream()
        x = torch.zeros(16, device="npu")
        npu.synchronize()
        failures = []

        def work():
            try:
                with npu.stream(s):
                    for _ in range(200):
                        x.add_(1)
                        event.record()
                        event.query()
                    event.synchronize()
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        s.synchronize()
        self.assertEqual(x.tolist(), [800.0] * 16)


# A thread that counts runs only where another lets the GIL go (switches are switched off), so what it has counted
# meanwhile says whether a call did. Work starts late here, so there is something to wait for. The counting thread may
# be kept from running by the machine: a call has many tries, and one is enough.
COUNTING = """
import sys, threading, time
import mindtorch_v2 as torch
npu = torch.npu
sys.setswitchinterval(1000.0)
count, going = 0, True

def count_on():
    global count
    while going:
        count += 1
        time.sleep(0)

helper = threading.Thread(target=count_on)
helper.start()
%s
going = False
helper.join()
"""

WAITING = """
x = torch.ones(64, device='npu')
pinned = torch.empty(64).pin_memory()
event = npu.Event()
calls = {
    'synchronize': lambda y: npu.synchronize(),
    'stream': lambda y: npu.current_stream().synchronize(),
    'event': lambda y: event.synchronize(),
    'item': lambda y: y[0].item(),
    'cpu': lambda y: y.cpu(),
    'to': lambda y: y.to('cpu', torch.float64),
    'copy_': lambda y: pinned.copy_(y),
    'tolist': lambda y: y.tolist(),
    'bytes': lambda y: torch._C._tensor_bytes(y),
    'nonzero': lambda y: y.nonzero(),
    'mask': lambda y: y[y > 1],
    'bool': lambda y: bool(y[0] == 2),
    'index': lambda y: [0, 1, 2][y[0].long()],
    'equal': lambda y: torch.equal(y, y),
    'repr': repr,
    'empty_cache': lambda y: npu.empty_cache(),
}
for name, call in calls.items():
    for _ in range(50):
        y = x + 1
        event.record()
        before = count
        call(y)
        if count > before:
            break
    else:
        print(name, 'keeps the GIL')
def kept():
    before = count
    for _ in range(100):
        x.view(8, 8), x[1:], x.shape, x.device, event.query(), npu.current_stream()
    return count == before
print('views keep it', kept())
"""

A_FULL_QUEUE = """
x = torch.zeros(4, device='npu')
for _ in range(100000):
    stalled, before = npu._sim.counts()['stalled'], count
    x.add_(1)
    if npu._sim.counts()['stalled'] > stalled and count > before:
        print('a launch that waits for room lets go')
        break
"""


class Gil(unittest.TestCase):
    def test_who_waits_lets_others_run(self):
        self.assertEqual(run_python(COUNTING % WAITING, MINDTORCH_NPU_SIM_LATENCY_NS="5000000"),
                         "views keep it True\n")
        self.assertEqual(run_python(COUNTING % A_FULL_QUEUE, MINDTORCH_NPU_SIM_LATENCY_NS="1000000000"),
                         "a launch that waits for room lets go\n")

    def test_a_full_queue(self):
        """Launches that find no room wait for it; a hold cannot last then, and gives up."""
        s = npu.Stream()
        x = torch.zeros(4, device="npu")
        npu.synchronize()
        sim.reset_counts(s)
        sim.hold(2**31, s)
        with npu.stream(s):
            for _ in range(6000):
                x.add_(1)
        s.synchronize()
        self.assertEqual(sim.counts(s)["gave_up"], 1)
        self.assertGreater(sim.counts(s)["stalled"], 0)
        self.assertEqual(x.tolist(), [6000.0] * 4)


class Objects(unittest.TestCase):
    def test_references(self):
        def work():
            s, event = npu.Stream(), npu.Event(enable_timing=True)
            with s, npu.stream(npu.Stream()), torch.device("npu"), npu.device(1):
                event.record(s)
                s.record_event().wait()
                npu.current_stream(), npu.default_stream(), torch.get_default_device(), event.device, s.device
            for bad in (lambda: npu.Stream("cpu"), lambda: npu.Event(5.5), lambda: event.record(5),
                        lambda: s.wait_event(s), lambda: torch.ones(1).record_stream(s)):
                with self.assertRaises((ValueError, TypeError, RuntimeError)):
                    bad()

        work()
        kinds = (npu.Stream, npu.Event, torch.device, type(None))
        before = [sys.getrefcount(kind) for kind in kinds]
        total = getattr(sys, "gettotalrefcount", lambda: 0)  # a Python that counts them all
        all_before = total()
        for _ in range(200):
            work()
        self.assertLess(total() - all_before, 200)
        for kind, count in zip(kinds, before):
            self.assertLess(abs(sys.getrefcount(kind) - count), 20, kind)

    def test_any_arguments(self):
        """Whatever is given, nothing worse than an exception happens."""
        from mindtorch_v2 import _C

        class Odd:
            def __index__(self):
                raise KeyError("odd")

        s, event = npu.Stream(), npu.Event()
        things = (None, 0, -1, 2**70, 1.5, True, "npu", "npu:9", "x", b"x", [], {}, Odd(), s, event,
                  torch.device("cpu"), torch.ones(1), torch.ones(1, device="npu"))
        kinds = ("_device_", "_sim_", "_current_", "_default_")
        called = [getattr(_C, name) for name in dir(_C) if name.startswith(kinds)
                  and name not in ("_sim_lose", "_sim_fail", "_sim_hold")]
        called += [npu.Stream, npu.Event, torch.Event, s.wait_event, s.wait_stream, s.record_event, event.record,
                   event.wait, event.elapsed_time, torch.ones(1).record_stream, torch.ones(1).pin_memory,
                   torch.ones(1).is_pinned, torch.ones(1).npu, torch.set_default_device, npu.set_device, npu.device,
                   npu.memory_stats, npu.get_rng_state]
        tries = 0
        for call in called:
            for arguments in ((), *((thing,) for thing in things), *((a, b) for a in things for b in things)):
                try:
                    call(*arguments)
                except (TypeError, ValueError, RuntimeError, KeyError, OverflowError, NotImplementedError):
                    pass
                finally:
                    torch.set_default_device(None)
                    npu.set_device(0)
                tries += 1
        self.assertGreater(tries, 5000)


if __name__ == "__main__":
    unittest.main()
