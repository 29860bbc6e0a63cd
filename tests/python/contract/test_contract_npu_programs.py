# SPDX-License-Identifier: Apache-2.0
"""Programs on the accelerator: models, memory, lost devices, threads, and a new user's first hour.

Written from the contract and from what torch answers on a GPU, not from the code.
"""
import copy
import gc
import io
import os
import pickle
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support_npu import NpuCase, run_python, same, sim  # noqa: E402
import mindtorch_v2 as torch  # noqa: E402
from mindtorch_v2.utils.data import DataLoader, TensorDataset  # noqa: E402

npu, nn, F = torch.npu, torch.nn, torch.nn.functional


class Models(NpuCase):
    """Modules, optimizers and their states on the move."""

    def train(self, model, optimizer, device, steps=3):
        torch.manual_seed(5)
        losses = []
        for _ in range(steps):
            x = torch.randn(8, 4).to(device)
            optimizer.zero_grad()
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    def make(self):
        torch.manual_seed(1)
        return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))

    def test_moved_before_or_after_the_optimizer(self):
        for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad):
            host = self.make()
            expected = self.train(host, kind(host.parameters(), lr=0.05), "cpu")
            before = self.make().npu()
            self.assertEqual(self.train(before, kind(before.parameters(), lr=0.05), "npu"), expected)
            if kind is torch.optim.Adagrad:  # its state is made with it, where the parameters were
                continue
            after = self.make()
            parameters = list(after.parameters())
            optimizer = kind(parameters, lr=0.05)
            self.assertIs(after.to("npu:1"), after)
            self.assertTrue(all(a is b and a.is_leaf for a, b in zip(parameters, after.parameters())))
            self.assertEqual(self.train(after, optimizer, "npu:1"), expected)
            for tensor in (*after.parameters(), *after.buffers()):
                self.assertWhere(tensor, "npu:1")

    def test_training_goes_on_elsewhere(self):
        """Half on the host, half on a device, from saved states: as if it had never moved."""
        whole = self.make()
        expected = self.train(whole, torch.optim.Adam(whole.parameters()), "cpu", 6)
        model = self.make()
        optimizer = torch.optim.Adam(model.parameters())
        torch.manual_seed(5)
        batches = [torch.randn(8, 4) for _ in range(6)]
        losses = []

        def steps(some, device):
            for x in some:
                optimizer.zero_grad()
                loss = model(x.to(device)).pow(2).mean()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())

        steps(batches[:3], "cpu")
        file = io.BytesIO()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
        file.seek(0)
        state = torch.load(file, map_location="cuda:1")
        self.assertWhere(state["model"]["0.weight"], "npu:1")
        model = self.make().to("npu:1")
        optimizer = torch.optim.Adam(model.parameters())
        self.assertEqual(str(model.load_state_dict(state["model"])), "<All keys matched successfully>")
        optimizer.load_state_dict(state["optimizer"])
        steps(batches[3:], "npu:1")
        self.assertEqual(losses, expected)
        host = self.make()
        host.load_state_dict(model.state_dict())  # across devices
        self.assertTrue(all(same(a, b) for a, b in zip(host.state_dict().values(), model.state_dict().values())))
        self.assertWhere(host[0].weight, "cpu")

    def test_copies_keep_the_device(self):
        model = self.make().to("npu:1")
        model(torch.ones(4, 4, device="npu:1")).sum().backward()
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            for ours, theirs in zip(model.state_dict().values(), other.state_dict().values()):
                self.assertWhere(theirs, "npu:1")
                self.assertTrue(same(ours, theirs))
                self.assertNotEqual(ours.data_ptr(), theirs.data_ptr())
        self.assertWhere(model[0].weight.grad, "npu:1")
        self.assertWhere(model.cpu()[0].weight.grad, "cpu")

    def test_mistakes(self):
        model = nn.Linear(2, 2).npu()
        with self.assertRaisesRegex(RuntimeError, "npu:0"):
            model(torch.ones(1, 2))
        with self.assertRaisesRegex(RuntimeError, "npu:7"):
            model.to("npu:7")
        self.assertWhere(model.weight, "npu:0")
        with self.assertRaises(TypeError):
            model.npu(1, 2, 3)


class DefaultDevice(NpuCase):
    """A program that only says torch.set_default_device("npu:1")."""

    def test_a_whole_program(self):
        torch.set_default_device("cuda:1")
        torch.manual_seed(2)
        model = nn.Sequential(nn.Embedding(10, 4), nn.LayerNorm(4), nn.Linear(4, 2))
        optimizer = torch.optim.Adam(model.parameters())
        data = TensorDataset(torch.arange(8), torch.randn(8, 2))
        for tokens, target in DataLoader(data, batch_size=4, shuffle=True):
            optimizer.zero_grad()
            F.mse_loss(model(tokens), target).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        for tensor in (*model.parameters(), model[0].weight.grad, torch.tensor(3), torch.randperm(3)):
            self.assertWhere(tensor, "npu:1")
        file = io.BytesIO()
        host = {"some": torch.ones(2, device="cpu"), "none": torch.empty(0, device="cpu")}
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), **host}, file)
        file.seek(0)
        state = torch.load(file)
        self.assertWhere(state["model"]["0.weight"], "npu:1")
        self.assertWhere(state["some"], "cpu")
        self.assertWhere(state["none"], "cpu")
        optimizer.load_state_dict(state["optimizer"])
        model.load_state_dict(state["model"])
        self.assertWhere(pickle.loads(pickle.dumps(torch.ones(2, device="cpu"))), "cpu")
        self.assertWhere(copy.deepcopy(torch.ones(2, device="cpu")), "cpu")
        torch.set_rng_state(torch.get_rng_state())
        self.assertWhere(nn.init.sparse_(torch.empty(4, 4, device="cpu"), 0.5), "cpu")

    def test_workers_do_not_inherit_it(self):
        torch.set_default_device("npu")
        batches = list(DataLoader(TensorDataset(torch.ones(8, 1, device="cpu"), torch.empty(8, 0, device="cpu")),
                                  batch_size=4, num_workers=2))
        for batch in batches:
            for tensor in batch:
                self.assertWhere(tensor, "cpu")
        self.assertEqual(len(batches), 2)


class Memory(NpuCase):
    """Counters, limits, and what the host cannot do."""

    def test_everything_comes_back(self):
        gc.collect()
        before = [npu.memory_allocated(i) for i in range(2)]
        model = nn.Linear(64, 64).npu()
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(3):
            model(torch.ones(8, 64, device="npu")).sum().backward()
            optimizer.step()
        kept = model.weight.detach().to("npu:1")
        self.assertGreater(npu.memory_allocated(), before[0])
        self.assertEqual(npu.memory_allocated(1) - before[1], 64 * 64 * 4)
        del model, optimizer, kept
        gc.collect()
        self.assertEqual([npu.memory_allocated(i) for i in range(2)], before)

    def test_the_limit(self):
        gc.collect()
        npu.empty_cache()
        before = npu.memory_allocated()
        blocks = []
        with self.assertRaises(torch.OutOfMemoryError) as caught:
            for _ in range(300):
                blocks.append(torch.empty(8 << 20, dtype=torch.uint8, device="npu"))
        text = str(caught.exception)
        self.assertRegex(text, r"NPU out of memory\. Tried to allocate 8\.00 MiB\. NPU 0 has a total capacity of "
                               r"256\.00 MiB of which .* is free")
        self.assertEqual(npu.memory_allocated() - before, len(blocks) * (8 << 20))
        self.assertWhere(torch.empty(8 << 20, dtype=torch.uint8, device="npu:1"), "npu:1")  # the other has its own
        blocks.pop()
        blocks.append(torch.empty(8 << 20, dtype=torch.uint8, device="npu"))  # what was freed is used again
        blocks.clear()
        # Other sizes need what the cache holds: it gives that back by itself.
        self.assertEqual(torch.empty(200 << 20, dtype=torch.uint8, device="npu").numel(), 200 << 20)
        self.assertEqual(npu.memory_allocated(), before)
        self.assertGreaterEqual(npu.memory_reserved(), 200 << 20)
        npu.empty_cache()
        self.assertLess(npu.memory_reserved(), 8 << 20)
        for wrong in (-1, 1 << 62):
            with self.assertRaises(RuntimeError):
                torch.empty(wrong, device="npu")

    def test_the_host_cannot_look_inside(self):
        x = torch.ones(3, device="npu")
        for look in (memoryview, bytes, lambda t: t.numpy(), lambda t: t.__array__()):
            with self.assertRaises((TypeError, BufferError)):
                look(x)
        self.assertEqual(x.numpy(force=True).tolist(), [1.0] * 3)
        out = run_python("""
import ctypes, signal, mindtorch_v2 as torch
x = torch.ones(3, device='npu')
torch.npu.synchronize()
import os
child = os.fork()
if child == 0:
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    ctypes.string_at(x.data_ptr(), 4)
    os._exit(0)
print(os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGSEGV)
""")
        self.assertEqual(out, "True\n")


class Lost(NpuCase):
    """Every call on a device that is gone says so; nothing crashes, and the others go on."""

    def test_every_call(self):
        x = torch.ones(100, device="npu:1")
        near = torch.ones(2, device="npu:0")
        event = npu.default_stream(1).record_event()
        npu.synchronize(1)
        sim.lose(1)
        for call in (lambda: npu.synchronize(1), lambda: x + 1, lambda: x.cpu(), lambda: x.tolist(), lambda: repr(x),
                     lambda: torch.ones(3, device="npu:1"), lambda: x.to("npu:0"), lambda: near.to("npu:1"),
                     lambda: npu.default_stream(1).synchronize(), lambda: event.record(npu.default_stream(1)),
                     lambda: bool(x[0] > 0), lambda: x.add_(1), lambda: nn.Linear(2, 2).to("npu:1"),
                     lambda: pickle.dumps(x), lambda: torch.ones(3).pin_memory().to("npu:1", non_blocking=True)):
            with self.assertRaisesRegex(torch.AcceleratorError, "npu:1.*lost"):
                call()
        self.assertEqual((npu.device_count(), npu.memory_allocated(1) >= 400), (2, True))
        self.assertTrue(torch.ones(3).pin_memory().is_pinned())
        self.assertEqual((near + 1).tolist(), [2.0, 2.0])
        x = None  # memory of a device that is gone can be given back
        gc.collect()
        sim.lose(1, False)
        self.assertEqual(torch.ones(3, device="npu:1").sum().item(), 3.0)


class Threads(NpuCase):
    """Several threads with devices of their own."""

    def test_a_device_and_a_stream_each(self):
        failures, results = [], {}

        def work(number):
            try:
                device = number % 2
                npu.set_device(device)
                with npu.stream(npu.Stream()):
                    x = torch.zeros(16, device="npu")
                    for _ in range(100):
                        x = x + number
                    w = torch.ones(16, device="npu", requires_grad=True)
                    (w * x).sum().backward()
                    results[number] = (x.tolist(), w.grad.tolist(), x.device.index, w.grad.device.index)
                if npu.current_device() != device:
                    raise AssertionError("the thread's device has changed")
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(failures, [])
        for number, result in results.items():
            values = [100.0 * number] * 16
            self.assertEqual(result, (values, values, number % 2, number % 2))
        self.assertEqual(len(results), 6)


class FirstHour(NpuCase):
    """What a new user tries, and what the answers say."""

    TRY = ("import mindtorch_v2 as torch\n"
           "print(torch.npu.is_available(), torch.npu.device_count())\n"
           "try:\n    print(torch.ones(2, device='npu').sum().item())\n"
           "except RuntimeError as error: print(error)\n")

    def test_the_guide(self):
        here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        with open(os.path.join(here, "..", "..", "docs", "guide-npu.md"), encoding="utf-8") as file:
            section = file.read()
        example = section.split("```python\n")[1].split("```")[0]
        out = run_python("import mindtorch_v2 as torch\n" + example)
        for name in ("aten::mm", "aten::relu", "NPU total", "NPU Mem", "Self NPU time total"):
            self.assertIn(name, out)

    def test_without_the_variable(self):
        for value in (None, ""):
            out = run_python(self.TRY, MINDTORCH_NPU=value).splitlines()
            self.assertEqual(out[0], "False 0")
            self.assertIn("npu:0 is not available", out[1])
            self.assertIn("MINDTORCH_NPU=sim", out[1])  # what to do about it

    def test_a_misspelt_one(self):
        for value in ("smi", "SIM", "/nowhere/lib.so"):
            out = run_python(self.TRY, MINDTORCH_NPU=value).splitlines()
            self.assertEqual(out[0], "False 0")
            self.assertIn(f"MINDTORCH_NPU={value}", out[1])
            self.assertIn("cannot be opened", out[1])

    def test_bad_settings_are_named(self):
        for name, value, says in (("SIM_DEVICES", "0", "1 to 16"), ("SIM_DEVICES", "two", "1 to 16"),
                                  ("SIM_DEVICES", "17", "1 to 16"), ("SIM_MEMORY", "64MB", "K, M or G"),
                                  ("SIM_MEMORY", "1K", "4K at least"), ("SIM_LATENCY_NS", "-3", "nanoseconds"),
                                  ("LAUNCH_BLOCKING", "yes", "0 or 1")):
            with self.subTest(name=name, value=value):
                out = run_python(self.TRY, **{"MINDTORCH_NPU_" + name: value}).splitlines()
                self.assertEqual(out[0], "False 0")
                self.assertIn(f"MINDTORCH_NPU_{name}={value}", out[1])
                self.assertIn(says, out[1])

    def test_one_small_device(self):
        out = run_python(self.TRY + "try: torch.empty(1 << 22, device='npu')\n"
                         "except torch.OutOfMemoryError as error: print(error)\n"
                         "try: torch.ones(1, device='npu:1')\n"
                         "except RuntimeError as error: print(error)\n",
                         MINDTORCH_NPU_SIM_DEVICES="1", MINDTORCH_NPU_SIM_MEMORY="8M").splitlines()
        self.assertEqual(out[:2], ["True 1", "2.0"])
        self.assertIn("total capacity of 8.00 MiB", out[2])
        self.assertIn("npu:1 is not available: there is 1", out[3])


if __name__ == "__main__":
    unittest.main()
