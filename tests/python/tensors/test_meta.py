# SPDX-License-Identifier: Apache-2.0
"""The device meta: shapes, types and strides without elements. The rows' results are compared in tests/ops."""
import copy
import io
import pickle
import unittest
import warnings

import mindtorch_v2 as torch
from mindtorch_v2 import nn


class Tensors(unittest.TestCase):
    def test_made_on_it(self):
        for tensor in (torch.empty(2, device="meta"), torch.randn(2, device="meta"), torch.tensor([1.0], device="meta"),
                       torch.arange(5, device="meta"), torch.zeros_like(torch.ones(2), device="meta"),
                       torch.ones(2).to("meta"), torch.empty(2, device="meta").new_zeros(3)):
            self.assertTrue(tensor.is_meta)
            self.assertEqual((tensor.device, tensor.is_cpu, tensor.is_npu, tensor.get_device(), tensor.data_ptr()),
                             (torch.device("meta"), False, False, -1, 0))
        with torch.device("meta"):
            self.assertTrue(torch.ones(2).is_meta)
            self.assertTrue(torch.tensor([1, 2]).is_meta)
            self.assertFalse(torch.ones(2, device="cpu").is_meta)
        self.assertFalse(torch.ones(2).is_meta)
        self.assertEqual(torch.empty(10 ** 6, 10 ** 6, device="meta").sum(0).shape, (10 ** 6,))

    def test_printed(self):
        self.assertEqual(repr(torch.ones(2, 3, device="meta")), "tensor(..., device='meta', size=(2, 3))")
        self.assertEqual(repr(torch.zeros(3, dtype=torch.int64, device="meta")),
                         "tensor(..., device='meta', size=(3,), dtype=torch.int64)")
        self.assertEqual(f"{torch.ones((), device='meta')}", "tensor(..., device='meta', size=())")
        self.assertIn("grad_fn=<MulBackward0>", repr(torch.ones(2, device="meta", requires_grad=True) * 2))

    def test_no_elements(self):
        tensor, number = torch.ones(2, device="meta"), torch.ones((), device="meta")
        for read in (tensor.tolist, number.tolist, tensor.cpu, lambda: tensor.to("cpu"), tensor.nonzero,
                     lambda: torch.ones(2).copy_(tensor), lambda: tensor[tensor > 0]):
            with self.assertRaisesRegex(NotImplementedError, "Cannot copy out of meta tensor; no data!"):
                read()
        for read in (number.item, lambda: bool(number), lambda: float(number)):
            with self.assertRaisesRegex(RuntimeError, r"Tensor.item\(\) cannot be called on meta tensors"):
                read()
        with self.assertRaisesRegex(TypeError, "can't convert meta device type tensor to numpy"):
            tensor.numpy()
        self.assertTrue(tensor.copy_(torch.zeros(2)).is_meta)

    def test_devices_do_not_meet(self):
        tensor = torch.ones(2, device="meta")
        with self.assertRaisesRegex(RuntimeError, "Tensor on device cpu is not on the expected device meta!"):
            tensor + torch.ones(2)
        with self.assertRaisesRegex(RuntimeError, "Tensor on device meta is not on the expected device cpu!"):
            torch.ones(2) + torch.ones((), device="meta")
        self.assertTrue((tensor + torch.ones(())).is_meta)  # a number

    def test_writes_and_overlaps(self):
        tensor, other = torch.ones(4, device="meta"), torch.ones(4, device="meta")
        self.assertTrue(tensor.add_(other).is_meta)  # not the same memory, although both have none
        tensor[0] = 1.0
        tensor[1:] = other[:3]
        self.assertEqual(tensor[1:].add_(tensor[:3]).shape, (3,))
        self.assertEqual(tensor.view(2, 2).t().contiguous().stride(), (2, 1))

    def test_gradients_and_optimizers(self):
        w = torch.ones(2, 3, device="meta", requires_grad=True)
        (w * w).sum().backward()
        self.assertEqual((w.grad.shape, w.grad.device.type), ((2, 3), "meta"))
        for kind in (torch.optim.SGD, torch.optim.Adam):
            kind([w], lr=0.1).step()

    def test_copied_and_saved(self):
        tensor = torch.ones(2, 3, device="meta", requires_grad=True).t()
        parameter = nn.Parameter(torch.ones(2, device="meta"))
        file = io.BytesIO()
        torch.save({"t": tensor.detach(), "p": parameter}, file)
        file.seek(0)
        loaded = torch.load(file)
        self.assertEqual((loaded["t"].shape, loaded["t"].stride(), loaded["t"].is_meta), ((3, 2), (1, 3), True))
        self.assertIsInstance(loaded["p"], nn.Parameter)
        for made in (copy.deepcopy(tensor.detach()), pickle.loads(pickle.dumps(tensor.detach())), tensor.clone()):
            self.assertEqual((made.shape, made.is_meta), ((3, 2), True))
        file = io.BytesIO()
        torch.save(torch.ones(2), file)
        file.seek(0)
        self.assertTrue(torch.load(file, map_location="meta").is_meta)


class Modules(unittest.TestCase):
    def test_moved(self):
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).to("meta")
        self.assertTrue(all(value.is_meta for value in model.state_dict().values()))
        self.assertEqual(model(torch.ones(2, 3, device="meta")).shape, (2, 4))
        with self.assertRaisesRegex(NotImplementedError, r"no data! Please use torch.nn.Module.to_empty\(\)"):
            model.to("cpu")
        self.assertEqual(model.to_empty(device="cpu")[0].weight.device.type, "cpu")

    def test_filled_from_a_state_dict(self):
        state = nn.Linear(3, 4).state_dict()
        with torch.device("meta"):
            model = nn.Linear(3, 4)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.load_state_dict(state)
        self.assertIn("which is a no-op", str(caught[0].message))
        self.assertTrue(model.weight.is_meta)
        model.load_state_dict(state, assign=True)
        self.assertIsInstance(model.weight, nn.Parameter)
        self.assertEqual(model.weight.tolist(), state["weight"].tolist())

    def test_skip_init_and_stateless(self):
        self.assertEqual(nn.utils.skip_init(nn.Linear, 3, 4).weight.device.type, "cpu")
        with self.assertRaisesRegex(RuntimeError, "must support a 'device' arg"):
            nn.utils.skip_init(nn.ReLU)
        given = {"weight": torch.ones(4, 3), "bias": torch.zeros(4)}
        with self.assertWarns(FutureWarning):
            result = nn.utils.stateless.functional_call(nn.Linear(3, 4, device="meta"), given, (torch.ones(1, 3),))
        self.assertEqual(result.tolist(), [[3.0] * 4])


if __name__ == "__main__":
    unittest.main()
