# SPDX-License-Identifier: Apache-2.0
"""torch.npu: devices, memory, the default device, errors, and what there is without an accelerator."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support_npu import in_thread, run_python, sim  # noqa: E402
import mindtorch_v2 as torch  # noqa: E402

npu = torch.npu


class Devices(unittest.TestCase):
    def tearDown(self):
        npu.set_device(0)

    def test_there_are_two(self):
        self.assertTrue(npu.is_available() and npu.is_initialized())
        self.assertEqual((npu.device_count(), npu.current_device()), (2, 0))
        self.assertIsNone(npu.init())
        self.assertIs(torch.cuda.Stream, npu.Stream)
        for name in dir(npu):
            if not name.startswith("_"):
                self.assertIs(getattr(torch.cuda, name), getattr(npu, name), name)

    def test_current(self):
        npu.set_device(1)
        self.assertEqual(npu.current_device(), 1)
        self.assertEqual(torch.ones(1, device="npu").device, torch.device("npu:1"))
        self.assertEqual(torch.ones(1).npu().device, torch.device("npu:1"))
        self.assertEqual(torch.ones(1).to("cuda").device, torch.device("npu:1"))
        self.assertEqual(torch.ones(1, device="npu:0").device.index, 0)
        self.assertEqual(in_thread(npu.current_device), 0)  # threads have their own
        npu.set_device("npu:0")
        npu.set_device(-1)
        npu.set_device(torch.device("npu"))
        self.assertEqual(npu.current_device(), 0)

    def test_blocks(self):
        with npu.device(1) as nothing:
            self.assertIsNone(nothing)
            self.assertEqual(npu.current_device(), 1)
            with npu.device_of(torch.ones(1, device="npu:0")):
                self.assertEqual(npu.current_device(), 0)
            with npu.device_of(torch.ones(1)), npu.device(-1), npu.device(None):
                self.assertEqual(npu.current_device(), 1)
        self.assertEqual(npu.current_device(), 0)
        with self.assertRaises(KeyError), npu.device("npu:1"):
            raise KeyError
        self.assertEqual(npu.current_device(), 0)

    def test_no_such_device(self):
        for call in (lambda: torch.ones(1, device="npu:2"), lambda: torch.ones(1).to("npu:2"),
                     lambda: torch.ones(1).npu(2), lambda: npu.set_device(2), lambda: npu.synchronize(2),
                     lambda: npu.mem_get_info("npu:2"), lambda: npu.get_device_name(2),
                     lambda: npu.Stream("npu:2"), lambda: npu.current_stream(2)):
            with self.assertRaisesRegex(RuntimeError, "npu:2.*there are 2"):
                call()
        for call in (lambda: npu.synchronize("cpu"), lambda: npu.set_device("cpu"), lambda: npu.Stream("cpu"),
                     lambda: npu.memory_allocated(torch.device("cpu"))):
            with self.assertRaisesRegex(ValueError, "Expected an npu device, but got: cpu"):
                call()
        with self.assertRaisesRegex(RuntimeError, "Invalid device, must be npu device"):
            torch.ones(1).npu("cpu")
        self.assertEqual(npu.current_device(), 0)

    def test_what_it_is(self):
        self.assertEqual(npu.get_device_name(), "Simulated NPU")
        seen = npu.get_device_properties(1)
        self.assertEqual(seen.name, "Simulated NPU")
        self.assertEqual(seen.total_memory, npu.mem_get_info(1)[1])
        self.assertRegex(repr(seen), r"_NpuDeviceProperties\(name='Simulated NPU', total_memory=\d+MB\)")
        self.assertTrue(npu.can_device_access_peer(0, 1))
        self.assertEqual((npu.get_device_capability("npu:1"), seen.major, seen.minor), ((0, 0), 0, 0))
        self.assertLess(torch.cuda.get_device_capability(0), (7, 5))  # how programs ask

    def test_accelerator(self):
        found = torch.accelerator
        self.assertTrue(found.is_available())
        self.assertEqual((found.device_count(), found.current_device_index()), (2, 0))
        self.assertEqual(found.current_accelerator(), torch.device("npu"))
        with found.device_index(1):
            self.assertEqual(found.current_device_index(), 1)
            self.assertEqual(found.current_stream(), npu.default_stream(1))
        found.set_device_index(1)
        self.assertEqual(npu.current_device(), 1)
        found.synchronize()
        found.set_stream(npu.default_stream(0))
        self.assertEqual(npu.current_device(), 0)

    def test_seeds(self):
        npu.manual_seed_all(7)
        self.assertEqual(npu.initial_seed(), 7)
        state = npu.get_rng_state()
        a = torch.randn(5, device="npu")
        npu.set_rng_state(state)
        b = torch.randn(5)  # the numbers do not depend on the device
        self.assertEqual(a.tolist(), b.tolist())
        npu.set_rng_state_all(npu.get_rng_state_all())
        self.assertEqual(len(npu.get_rng_state_all()), 2)
        self.assertEqual(torch.Generator(device="npu").device, torch.device("npu:0"))


class Memory(unittest.TestCase):
    def test_counts(self):
        npu.empty_cache()
        before = npu.memory_allocated()
        npu.reset_peak_memory_stats()
        x = torch.empty(1 << 20, device="npu")
        self.assertEqual(npu.memory_allocated() - before, 4 << 20)
        self.assertGreaterEqual(npu.memory_reserved(), npu.memory_allocated())
        self.assertEqual(npu.memory_allocated(1), 0)
        free, total = npu.mem_get_info()
        self.assertLess(free, total)
        stats = npu.memory_stats()
        self.assertEqual(stats["allocated_bytes.all.current"], npu.memory_allocated())
        self.assertEqual(stats["allocation.all.current"],
                         stats["allocation.all.allocated"] - stats["allocation.all.freed"])
        del x
        self.assertEqual(npu.memory_allocated(), before)
        self.assertEqual(npu.max_memory_allocated(), before + (4 << 20))
        self.assertGreaterEqual(npu.max_memory_reserved(), 4 << 20)
        npu.reset_peak_memory_stats("npu:0")
        self.assertEqual(npu.max_memory_allocated(), before)
        npu.empty_cache()
        self.assertLess(npu.memory_reserved(), 4 << 20)

    def test_summary(self):
        x = torch.empty(1 << 20, device="npu")
        text = npu.memory_summary()
        self.assertIn("npu:0", text)
        self.assertIn("Allocated memory", text)
        self.assertEqual(len({len(line) for line in text.splitlines()}), 1)
        del x

    def test_too_much(self):
        self.assertTrue(issubclass(torch.OutOfMemoryError, RuntimeError))
        self.assertIs(torch.OutOfMemoryError, npu.OutOfMemoryError)
        self.assertIs(torch.OutOfMemoryError, torch.cuda.OutOfMemoryError)
        with self.assertRaisesRegex(torch.OutOfMemoryError, r"NPU out of memory\. Tried to allocate 4\.00 GiB"):
            torch.empty(1 << 30, device="npu")
        self.assertEqual(torch.ones(2, device="npu").sum().item(), 2)


class DefaultDevice(unittest.TestCase):
    def tearDown(self):
        torch.set_default_device(None)

    def test_set(self):
        self.assertEqual(torch.get_default_device(), torch.device("cpu"))
        torch.set_default_device("npu")
        self.assertEqual(torch.get_default_device(), torch.device("npu:0"))
        for made in (torch.zeros(1), torch.tensor([1.0]), torch.as_tensor([1]), torch.arange(3), torch.randn(2),
                     torch.asarray([1.0]), torch.eye(2), torch.nn.Linear(2, 2).weight, torch.full((2,), 1.0)):
            self.assertEqual(made.device, torch.device("npu:0"))
        for made in (torch.zeros(1, device="cpu"), torch.zeros_like(torch.zeros(1, device="cpu")),
                     torch.zeros(1, device="cpu").new_ones(2)):
            self.assertEqual(made.device, torch.device("cpu"))
        self.assertEqual(in_thread(torch.get_default_device), torch.device("cpu"))
        with npu.device(1):
            self.assertEqual(torch.zeros(1).device.index, 1)  # "npu" is the current one
        torch.set_default_device(None)
        self.assertTrue(torch.zeros(1).is_cpu)
        with self.assertRaises(RuntimeError):
            torch.set_default_device("nothing")

    def test_block(self):
        with torch.device("npu:1") as entered:
            self.assertEqual(entered, torch.device("npu:1"))
            self.assertEqual(torch.zeros(1).device.index, 1)
            self.assertEqual(npu.current_device(), 0)
            with torch.device("cpu"):
                self.assertTrue(torch.zeros(1).is_cpu)
            self.assertTrue(torch.zeros(1).is_npu)
        self.assertTrue(torch.zeros(1).is_cpu)
        with self.assertRaises(KeyError), torch.device("npu"):
            raise KeyError
        self.assertTrue(torch.zeros(1).is_cpu)
        with self.assertRaisesRegex(RuntimeError, "without __enter__"):
            torch.device("npu").__exit__(None, None, None)


class Failures(unittest.TestCase):
    def tearDown(self):
        for index in range(2):
            sim.lose(index, False)

    def test_a_kernel(self):
        x = torch.ones(4, device="npu")
        npu.synchronize()
        sim.fail("bad luck", error=IndexError)
        y = x + 1  # nothing is said here
        with self.assertRaisesRegex(IndexError, "bad luck"):
            npu.synchronize()
        npu.synchronize()  # once
        self.assertEqual((x + 1).tolist(), [2.0] * 4)
        del y

    def test_told_where_values_are_wanted(self):
        x = torch.ones(4, device="npu")
        for wants in (lambda t: t.tolist(), lambda t: t.cpu(), lambda t: t[0].item(), repr,
                      lambda t: bool(t[0] > 0)):
            npu.synchronize()
            sim.fail("bad luck")
            y = x + 1
            with self.assertRaisesRegex(RuntimeError, "bad luck"):
                wants(y)
            npu.synchronize()

    def test_a_lost_device(self):
        self.assertTrue(issubclass(torch.AcceleratorError, RuntimeError))
        x = torch.ones(4, device="npu:1")
        sim.lose(1)
        with self.assertRaises(torch.AcceleratorError):
            (x + 1).tolist()
        with self.assertRaises(torch.AcceleratorError):
            npu.synchronize(1)
        self.assertEqual(torch.ones(4, device="npu:0").sum().item(), 4)  # the others go on
        sim.lose(1, False)
        self.assertEqual(torch.ones(2, device="npu:1").sum().item(), 2)


class Elsewhere(unittest.TestCase):
    def test_without_an_accelerator(self):
        run_python("""
import mindtorch_v2 as torch
npu = torch.npu
assert not npu.is_available() and npu.device_count() == 0 and not npu.is_initialized()
assert torch.accelerator.current_accelerator() is None
npu.synchronize(); npu.empty_cache(); npu.manual_seed(1)
def refused(call, text, kind=RuntimeError):
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)
refused(lambda: torch.ones(1, device='npu'), 'npu:0 is not available')
refused(lambda: torch.ones(1).npu(), 'npu:0 is not available')
refused(lambda: npu.Stream(), 'npu:0 is not available')
refused(lambda: npu.set_device(0), 'npu:0 is not available')
refused(lambda: npu.get_device_name(), 'npu:0 is not available')
refused(lambda: npu.get_device_capability(), 'npu:0 is not available')
refused(lambda: torch.accelerator.synchronize(), 'none is available')
refused(lambda: torch.ones(1).pin_memory(), 'Cannot access accelerator device when none is available.')
refused(lambda: torch.empty(1, pin_memory=True), 'pin_memory=True requires a CUDA or other accelerator')
refused(lambda: torch.tensor([1], pin_memory=True), 'pin_memory=True requires a CUDA or other accelerator')
refused(lambda: npu._sim.hold(1), 'MINDTORCH_NPU=sim')
assert not torch.ones(1).is_pinned()
torch.set_default_device('npu')
refused(lambda: torch.ones(1), 'npu:0 is not available')
""", MINDTORCH_NPU=None)

    def test_a_backend_that_is_not_there(self):
        run_python("""
import mindtorch_v2 as torch
assert not torch.npu.is_available()
try:
    torch.ones(1, device='npu')
except RuntimeError as error:
    assert 'MINDTORCH_NPU=nowhere' in str(error), error
else:
    raise AssertionError
""", MINDTORCH_NPU="nowhere")

    def test_opened_by_import(self):
        out = run_python("""
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, ProfilerActivity
with profile(activities=[ProfilerActivity.CPU]):
    pass
print(open('/proc/self/maps').read().count('libmindtorch_sim') > 0)
""")
        self.assertEqual(out, "True\n")

    def test_exit_with_work_and_threads(self):
        for ending in ("", "npu._sim.hold(100)\ny = x + 1", "import os; os._exit(0)", "raise SystemExit(0)"):
            run_python(f"import mindtorch_v2 as torch\nnpu = torch.npu\nx = torch.ones(1000, device='npu')\n"
                       f"for _ in range(100): x = x + 1\n{ending}\n")


if __name__ == "__main__":
    unittest.main()
