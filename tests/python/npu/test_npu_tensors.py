# SPDX-License-Identifier: Apache-2.0
"""Tensors on the accelerator: moving, pinning, printing, copying, saving, indexing; modules and optimizers."""
import copy
import io
import os
import pickle
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support_npu import run_python, same, sim  # noqa: E402
import mindtorch_v2 as torch  # noqa: E402

npu = torch.npu
DEVICE = torch.device("npu:0")

try:
    import numpy as np
except ImportError:
    np = None


class Moving(unittest.TestCase):
    def test_all_ways(self):
        x = torch.arange(6.0).view(2, 3)
        for move in (lambda t: t.to("npu"), lambda t: t.to(0), lambda t: t.to(DEVICE), lambda t: t.npu(),
                     lambda t: t.cuda(), lambda t: t.npu(0), lambda t: t.npu(device="npu:0", non_blocking=True),
                     lambda t: t.cuda("cuda:0", True), lambda t: t.to(device="npu", non_blocking=True),
                     lambda t: t.to("npu", torch.float32), lambda t: t.to("npu", torch.float32, True, True),
                     lambda t: t.to("npu", non_blocking=True, copy=True),
                     lambda t: t.to(torch.ones(1, device="npu")), lambda t: t.to(other=torch.ones(1, device="npu")),
                     lambda t: torch.empty_like(t, device="npu").copy_(t), lambda t: torch.as_tensor(t, device="npu"),
                     lambda t: torch.asarray(t, device="npu")):
            moved = move(x)
            self.assertEqual(moved.device, DEVICE)
            self.assertTrue(moved.is_npu and moved.is_cuda and not moved.is_cpu)
            self.assertTrue(same(moved, x))
            for back in (moved.cpu(), moved.to("cpu"), moved.to("cpu", non_blocking=True), moved.to(x),
                         torch.empty(2, 3).copy_(moved)):
                npu.synchronize()
                self.assertTrue(back.is_cpu)
                self.assertTrue(same(back, x))
        y = x.npu()
        self.assertIs(y.npu(), y)
        self.assertIs(y.to("npu"), y)
        self.assertIsNot(y.to("npu", copy=True), y)
        self.assertEqual((x.get_device(), y.get_device(), y.to("npu:1").get_device()), (-1, 0, 1))
        self.assertEqual(y.to("npu", torch.float64).dtype, torch.float64)
        self.assertEqual(y.type(), "torch.npu.FloatTensor")

    def test_strided(self):
        x = torch.arange(24.0).view(2, 3, 4)
        for view in (lambda t: t.transpose(0, 2), lambda t: t[:, ::2], lambda t: t[1, :, 1:3].t(),
                     lambda t: t[0, 0, 0].expand(5)):
            self.assertTrue(same(view(x).npu(), view(x)))
            self.assertTrue(same(view(x.npu()), view(x)))
            self.assertTrue(same(view(x.npu()).cpu(), view(x)))
        y = x.npu()
        y[:, 1] = torch.full((2, 4), -1.0)  # from the host into a part
        self.assertEqual(y[:, 1].tolist(), [[-1.0] * 4] * 2)

    def test_between_devices(self):
        x = torch.arange(1000.0, device="npu:0")
        y = x.to("npu:1")
        self.assertEqual(y.device, torch.device("npu:1"))
        self.assertEqual((y + 1).sum().item(), (x + 1).sum().item())
        z = torch.zeros(1000, device="npu:0").copy_(y * 2)
        self.assertTrue(same(z, x * 2))
        with self.assertRaisesRegex(RuntimeError, "Expected all tensors to be on the same device"):
            x + y
        with self.assertRaisesRegex(RuntimeError, "Expected all tensors to be on the same device"):
            x + torch.arange(1000.0)

    def test_gradients_pass(self):
        x = torch.arange(4.0, requires_grad=True)
        (x.npu() * 3).to("npu:1").cpu().sum().backward()
        self.assertEqual(x.grad.tolist(), [3.0] * 4)
        w = torch.ones(3, device="npu", requires_grad=True)
        self.assertTrue(w.is_leaf and not w.npu(1).is_leaf)
        (w * torch.arange(3.0, device="npu")).sum().backward()
        self.assertEqual(w.grad.device, DEVICE)
        self.assertEqual(w.grad.tolist(), [0.0, 1.0, 2.0])

    def test_pinned(self):
        x = torch.arange(1000.0)
        p = x.pin_memory()
        self.assertTrue(p.is_pinned() and not x.is_pinned() and not p.npu().is_pinned())
        self.assertIs(p.pin_memory(), p)
        self.assertTrue(p[10:20].is_pinned() and not p.clone().is_pinned())
        self.assertTrue(same(p, x))
        for made in (torch.empty(3, pin_memory=True), torch.zeros(2, 3, pin_memory=True),
                     torch.tensor([1, 2], pin_memory=True), torch.randn(2, pin_memory=True, requires_grad=True),
                     torch.zeros_like(x, pin_memory=True)):
            self.assertTrue(made.is_pinned())
        self.assertEqual(torch.full((3,), 7.0, pin_memory=True).tolist(), [7.0] * 3)
        self.assertFalse(torch.empty(3, pin_memory=False).is_pinned())
        with self.assertRaisesRegex(RuntimeError, "cannot pin 'torch.npu.FloatTensor' only dense CPU tensors"):
            p.npu().pin_memory()
        with self.assertRaisesRegex(RuntimeError, "Only dense CPU tensors can be pinned"):
            torch.empty(3, device="npu", pin_memory=True)
        with torch.device("npu"):
            self.assertTrue(torch.empty(3, pin_memory=True).is_pinned())

    def test_copies_that_do_not_wait(self):
        s = npu.Stream()
        p = torch.arange(1000.0).pin_memory()
        back = torch.zeros(1000).pin_memory()
        npu.synchronize()
        with sim.held(s), npu.stream(s):
            x = p.to("npu", non_blocking=True)
            back.copy_(x * 2, non_blocking=True)
            self.assertGreaterEqual(sim.counts(s)["waiting"], 3)
            self.assertEqual(back.sum().item(), 0)  # not there yet
            del p, x  # kept as long as the stream needs them
            q = torch.full((1000,), -1.0).pin_memory()
        s.synchronize()
        self.assertEqual(sim.counts(s)["gave_up"], 0)
        self.assertTrue(same(back, torch.arange(1000.0) * 2))
        del q


class Showing(unittest.TestCase):
    def test_repr(self):
        self.assertEqual(repr(torch.ones(4, device="npu")), "tensor([1., 1., 1., 1.], device='npu:0')")
        self.assertEqual(repr(torch.ones(1, device="npu:1", requires_grad=True)),
                         "tensor([1.], device='npu:1', requires_grad=True)")
        self.assertEqual(str(torch.tensor(3, device="npu")), "tensor(3, device='npu:0')")
        self.assertEqual(f"{torch.tensor(2.5, device='npu'):.2f}", "2.50")
        self.assertIn("device='npu:0'", repr(torch.zeros(5000, device="npu")))

    @unittest.skipIf(np is None, "numpy is not installed")
    def test_numpy(self):
        text = (r"can't convert npu:0 device type tensor to numpy. Use Tensor.cpu\(\) to copy the tensor to host "
                "memory first.")
        x = torch.ones(4, device="npu")
        with self.assertRaisesRegex(TypeError, text):
            x.numpy()
        with self.assertRaisesRegex(TypeError, text):
            np.asarray(x)
        self.assertEqual(x.cpu().numpy().tolist(), [1.0] * 4)
        self.assertTrue(same(torch.as_tensor(np.ones(4, dtype="float32"), device="npu"), x))
        self.assertTrue(same(torch.tensor(np.ones(4, dtype="float32"), device="npu"), x))
        self.assertTrue(same(torch.from_numpy(np.ones(4, dtype="float32")).npu(), x))

    def test_no_way_to_the_memory(self):
        x = torch.ones(4, device="npu")
        with self.assertRaises(BufferError):
            memoryview(x)
        with self.assertRaises(BufferError):
            x.__dlpack__()
        self.assertNotEqual(x.data_ptr(), 0)

    def test_numbers(self):
        x = torch.tensor([3], device="npu")
        self.assertEqual((x.item(), int(x), float(x), bool(x), [0, 1, 2, 3, 4][x], x.tolist()),
                         (3, 3, 3.0, True, 3, [3]))
        self.assertIn(3, x)
        self.assertEqual(len(torch.ones(3, device="npu")), 3)
        self.assertEqual([t.item() for t in torch.arange(3, device="npu")], [0, 1, 2])
        self.assertEqual(torch.tensor([torch.tensor(1.5, device="npu"), 2]).tolist(), [1.5, 2.0])


class Copies(unittest.TestCase):
    def test_deepcopy(self):
        x = torch.arange(6.0, device="npu:1").requires_grad_()
        y = x.detach()
        a, b, c = copy.deepcopy([x, y, y[2:4]])
        self.assertEqual((a.device, a.requires_grad, b.requires_grad), (x.device, True, False))
        self.assertTrue(same(a, x))
        b[2] = -1
        self.assertEqual((c[0].item(), a[2].item(), x[2].item()), (-1.0, -1.0, 2.0))
        self.assertEqual(copy.copy(x).data_ptr(), x.data_ptr())

    def test_pickle(self):
        x = torch.arange(6.0).view(2, 3)
        for sent in (x.npu(), x.npu(1), x.npu().t(), x.npu()[:, 1:], x.npu().to(torch.bfloat16),
                     torch.nn.Parameter(x.npu())):
            for protocol in (2, 4, 5):
                got = pickle.loads(pickle.dumps(sent, protocol))
                self.assertEqual((got.device, type(got), got.requires_grad),
                                 (sent.device, type(sent), sent.requires_grad))
                self.assertTrue(same(got.to(torch.float32), sent.to(torch.float32)))

    def stored(self, value):
        file = io.BytesIO()
        torch.save(value, file)
        return file

    def load(self, file, **options):
        file.seek(0)
        return torch.load(file, **options)

    def test_save(self):
        x = torch.arange(6.0, device="npu:1")
        file = self.stored({"x": x, "part": x[2:], "host": torch.ones(1)})
        got = self.load(file)
        self.assertEqual([str(got[k].device) for k in ("x", "part", "host")], ["npu:1", "npu:1", "cpu"])
        got["part"][0] = 9
        self.assertEqual(got["x"][2].item(), 9.0)
        for where, wanted in (("cpu", "cpu"), (torch.device("cpu"), "cpu"), ("npu:0", "npu:0"), ("cuda", "npu:0"),
                              ({"npu:1": "npu:0"}, "npu:0"), ({"cuda:1": "cpu"}, "cpu"),
                              (lambda storage, place: storage, "cpu")):
            self.assertEqual(str(self.load(file, map_location=where)["x"].device), wanted)
        with self.assertRaisesRegex(RuntimeError, r"Attempting to deserialize object on NPU device 5 but "
                                                  r"torch\.npu\.device_count\(\) is 2"):
            self.load(file, map_location="npu:5")

    def test_load_elsewhere(self):
        path = os.path.join(self.enterContext(__import__("tempfile").TemporaryDirectory()), "x.pt")
        torch.save(torch.ones(3, device="npu:1"), path)
        run_python(f"""
import mindtorch_v2 as torch
try:
    torch.load({path!r})
except RuntimeError as error:
    assert 'torch.npu.is_available() is False' in str(error), error
else:
    raise AssertionError
assert torch.load({path!r}, map_location='cpu').tolist() == [1.0] * 3
""", MINDTORCH_NPU=None)


class Indexing(unittest.TestCase):
    def test_host_indices(self):
        x = torch.arange(12.0).view(3, 4)
        y = x.npu()
        rows, mask = torch.tensor([2, 0]), x > 4
        self.assertTrue(same(y[rows], x[rows]))
        self.assertTrue(same(y[mask], x[mask]))
        self.assertTrue(same(y[rows.npu()], x[rows]))
        self.assertTrue(same(y[mask.npu()], x[mask]))
        self.assertTrue(same(y[[0, 2], [1, 3]], x[[0, 2], [1, 3]]))
        self.assertTrue(same(y[1, ..., None, ::2], x[1, ..., None, ::2]))
        y[mask] = 0
        y[rows, 0] = torch.tensor(7.0)
        x[mask] = 0
        x[rows, 0] = 7.0
        self.assertTrue(same(y, x))
        y[0, 0], y[1] = 5, 6.5
        y[2, 1:] = torch.tensor(8.0, device="npu")
        y[True], x[0, 0], x[1], x[2, 1:] = y[True] * 1, 5, 6.5, 8.0
        self.assertTrue(same(y, x))
        self.assertEqual((y[True].shape, y[False].shape), (x[True].shape, x[False].shape))
        self.assertEqual(y[torch.tensor(1)].tolist(), x[1].tolist())
        self.assertEqual(y[torch.tensor(1, device="npu")].tolist(), x[1].tolist())
        with self.assertRaisesRegex(RuntimeError, "indices should be either on cpu or on the same device"):
            x[rows.npu()]

    def test_compositions(self):
        x = torch.tensor([3, 1, 3, 2, 1])
        y = x.npu()
        for call in (lambda t: t.unique(), lambda t: t.unique(return_inverse=True, return_counts=True)[1],
                     lambda t: t.unique(return_counts=True)[1], lambda t: torch.bincount(t),
                     lambda t: torch.isin(t, 3), lambda t: torch.nn.functional.one_hot(t, 4),
                     lambda t: torch.diag(t), lambda t: t.repeat_interleave(2), lambda t: torch.where(t > 1)[0],
                     lambda t: torch.nn.functional.pad(t.float()[None, None], (1, 1), mode="reflect")):
            self.assertEqual(call(y).device, DEVICE)
            self.assertTrue(same(call(y), call(x)))


class Modules(unittest.TestCase):
    def test_moves(self):
        for move, wanted in ((lambda m: m.npu(), "npu:0"), (lambda m: m.cuda(1), "npu:1"),
                             (lambda m: m.to("npu"), "npu:0"), (lambda m: m.cpu(), "cpu"),
                             (lambda m: m.to("npu:1", torch.float64, True), "npu:1")):
            model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).npu()
            weight = model[0].weight
            model(torch.randn(5, 3, device="npu")).sum().backward()
            self.assertIs(move(model), model)
            self.assertIs(model[0].weight, weight)
            for tensor in (*model.parameters(), *model.buffers(), weight.grad):
                self.assertEqual(str(tensor.device), wanted)
        self.assertEqual(torch.nn.Linear(2, 2, device="npu:1").bias.device.index, 1)
        model.npu().load_state_dict(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).state_dict())
        self.assertEqual(model[0].weight.device, DEVICE)
        with self.assertRaisesRegex(RuntimeError, "same device"):
            model(torch.ones(2, 3))

    def test_optimizers(self):
        makers = {"sgd": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01),
                  "adam": lambda p: torch.optim.Adam(p, 0.01, amsgrad=True),
                  "adamw": lambda p: torch.optim.AdamW(p, 0.01),
                  "rmsprop": lambda p: torch.optim.RMSprop(p, 0.01, momentum=0.5, centered=True),
                  "adagrad": lambda p: torch.optim.Adagrad(p, 0.1)}
        start = torch.randn(20)
        grads = [torch.randn(20) for _ in range(4)]
        for name, make in makers.items():
            ends = []
            for device in ("cpu", "npu"):
                p = torch.nn.Parameter(start.to(device, copy=True))
                optimizer = make([p])
                for i, grad in enumerate(grads):
                    p.grad = grad.to(device)
                    optimizer.step()
                    if i == 1:  # through a file, and to the other device and back
                        saved = io.BytesIO()
                        torch.save(optimizer.state_dict(), saved)
                        saved.seek(0)
                        optimizer = make([p])
                        optimizer.load_state_dict(torch.load(saved, map_location="cpu"))
                for state in optimizer.state.values():
                    for key, value in state.items():
                        if key != "step":
                            self.assertEqual(value.device, p.device, (name, key))
                ends.append(p)
            self.assertTrue(same(*ends), name)

    def test_clipping(self):
        p = torch.nn.Parameter(torch.ones(10, device="npu"))
        p.grad = torch.full((10,), 3.0, device="npu")
        norm = torch.nn.utils.clip_grad_norm_([p], 1.0)
        self.assertEqual(norm.device, DEVICE)
        self.assertAlmostEqual(p.grad.norm().item(), 1.0, places=4)


if __name__ == "__main__":
    unittest.main()
