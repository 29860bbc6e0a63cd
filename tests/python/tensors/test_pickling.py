# SPDX-License-Identifier: Apache-2.0
"""Pickling and copying tensors: what is kept, what is dropped, what is shared."""
import copy
import gc
import io
import pickle
import pickletools
import unittest

import mindtorch_v2 as torch
from mindtorch_v2.nn.parameter import Parameter

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def again(x, protocol=pickle.HIGHEST_PROTOCOL):
    return pickle.loads(pickle.dumps(x, protocol))


class Named(torch.Tensor):
    """A subclass of the user's own."""


class Pickling(unittest.TestCase):
    def test_types_and_values(self):
        for dtype in (torch.bool, torch.uint8, torch.int32, torch.int64, torch.float16, torch.bfloat16,
                      torch.float32, torch.float64):
            x = torch.tensor([[0, 1], [1, 0]], dtype=dtype)
            for protocol in PROTOCOLS:
                y = again(x, protocol)
                self.assertEqual((y.dtype, y.tolist(), y.shape), (x.dtype, x.tolist(), x.shape))

    def test_layouts(self):
        x = torch.arange(24.0).view(2, 3, 4)
        for y in (x.t() if x.dim() == 2 else x.permute(2, 0, 1), x[:, 1:], x[:, ::2, 1], torch.tensor(5.0),
                  x[0, 0, 0],
                  torch.tensor([1.0]).expand(4), torch.zeros(0, 3), torch.zeros(3, 0).t(), x[1:1]):
            for protocol in (2, 4, 5):
                z = again(y, protocol)
                self.assertEqual((z.tolist(), z.shape), (y.tolist(), y.shape))
                if y.numel() > 1:
                    self.assertEqual(z.stride(), y.stride())

    def test_a_view_does_not_carry_its_base(self):
        big = torch.zeros(100_000)
        self.assertLess(len(pickle.dumps(big[10:20])), 2000)
        self.assertEqual(again(big[10:20]).tolist(), [0.0] * 10)

    def test_gradients_are_left_behind(self):
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        (w * 2).sum().backward()
        x = again(w)
        self.assertTrue(x.requires_grad and x.is_leaf)
        self.assertIsNone(x.grad)
        y = again(w * 2)
        self.assertTrue(y.requires_grad and y.is_leaf)

    def test_attributes_and_subclasses(self):
        x = torch.ones(2)
        x.name = "mine"
        self.assertEqual(again(x).name, "mine")
        named = torch.Tensor._make_subclass(Named, torch.ones(2), False)
        named.note = [1]
        y = again(named)
        self.assertEqual((type(y), y.note, y.tolist()), (Named, [1], [1.0, 1.0]))

    def test_parameters(self):
        p = Parameter(torch.tensor([1.0, 2.0]))
        p.tag = 5
        q = again(p)
        self.assertEqual((type(q), q.requires_grad, q.tolist(), q.tag), (Parameter, True, [1.0, 2.0], 5))
        frozen = again(Parameter(torch.ones(1), requires_grad=False))
        self.assertFalse(frozen.requires_grad)

    def test_the_same_tensor_twice(self):
        x = torch.ones(2)
        a, b = again((x, x))
        self.assertIs(a, b)

    def test_what_is_read_can_be_written(self):
        x = again(torch.zeros(3))
        x[0] = 5
        x += 1
        self.assertEqual(x.tolist(), [6.0, 1.0, 1.0])

    def test_out_of_band(self):
        x = torch.arange(1000.0)
        buffers = []
        data = pickle.dumps(x, 5, buffer_callback=buffers.append)
        self.assertEqual(len(buffers), 1)
        self.assertLess(len(data), 1000)
        self.assertEqual(buffers[0].raw().nbytes, 4000)
        y = pickle.loads(data, buffers=buffers)
        self.assertEqual(y.tolist(), x.tolist())
        y[0] = 9  # a copy
        self.assertEqual(x[0].item(), 0.0)

    def test_small_types(self):
        for thing in (torch.float32, torch.device("cpu"), torch.Size([2, 3])):
            self.assertEqual(again(thing), thing)
        self.assertIs(again(torch.float32), torch.float32)

    def test_stable(self):
        x = torch.arange(6.0).view(2, 3)
        self.assertEqual(pickle.dumps(x), pickle.dumps(x))
        names = {arg for op, arg, _ in pickletools.genops(pickle.dumps(x, 2)) if op.name == "GLOBAL"}
        self.assertIn("mindtorch_v2._tensor _made_from_bytes", names)

    def test_damaged(self):
        from mindtorch_v2._tensor import _made_from_bytes

        with self.assertRaises(ValueError):
            _made_from_bytes(b"123", torch.float32, (1,), None, "cpu", False)
        with self.assertRaises((ValueError, RuntimeError)):
            _made_from_bytes(bytes(16), torch.float32, (4, 4), (4, 1), "cpu", False)

    def test_files(self):
        out = io.BytesIO()
        pickle.dump({"w": torch.ones(2), "n": 1}, out)
        out.seek(0)
        self.assertEqual(pickle.load(out)["w"].tolist(), [1.0, 1.0])

    def test_nothing_is_kept(self):
        x = torch.arange(6.0).view(2, 3).t()

        def work():
            for _ in range(50):
                again(x)
                copy.deepcopy(x)
                copy.copy(x)

        work()
        gc.collect()
        before = torch._C._tensors_alive()
        work()
        gc.collect()
        self.assertEqual(torch._C._tensors_alive(), before)


class Copying(unittest.TestCase):
    def test_shallow(self):
        w = torch.tensor([1.0], requires_grad=True)
        w.tag = [1]
        w.grad = torch.ones(1)
        x = copy.copy(w)
        self.assertIsNot(x, w)
        self.assertEqual(x.data_ptr(), w.data_ptr())
        self.assertEqual((x.requires_grad, x.is_leaf, x.grad, x.tag), (True, True, None, [1]))
        self.assertIs(x.tag, w.tag)
        self.assertTrue(copy.copy(w * 2).is_leaf)
        self.assertIs(type(copy.copy(Parameter(torch.ones(1)))), Parameter)

    def test_deep(self):
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        w.tag = [1]
        w.grad = torch.ones(2)
        x = copy.deepcopy(w)
        self.assertNotEqual(x.data_ptr(), w.data_ptr())
        self.assertEqual((x.tolist(), x.requires_grad, x.grad.tolist(), x.tag), ([1.0, 2.0], True, [1.0,
                                                                                                    1.0],
                                                                                                    [1]))
        self.assertIsNot(x.grad, w.grad)
        self.assertIsNot(x.tag, w.tag)

    def test_leaves_only(self):
        with self.assertRaisesRegex(RuntimeError, "graph leaves. support the deepcopy protocol"):
            copy.deepcopy(torch.tensor([1.0], requires_grad=True) * 2)

    def test_sharing_stays_sharing(self):
        x = torch.arange(6.0).view(2, 3)
        a, row, same = copy.deepcopy([x, x[0], x])
        self.assertIs(a, same)
        row[0] = 9
        self.assertEqual(a[0, 0].item(), 9.0)
        self.assertEqual(x[0, 0].item(), 0.0)

    def test_layouts(self):
        x = torch.arange(6.0).view(2, 3)
        self.assertEqual(copy.deepcopy(x.t()).stride(), (1, 3))
        self.assertEqual(copy.deepcopy(x[:, 1:]).tolist(), x[:, 1:].tolist())
        self.assertEqual(copy.deepcopy(torch.zeros(0, 3)).shape, (0, 3))
        self.assertEqual(copy.deepcopy(torch.tensor(5)).item(), 5)

    def test_a_cycle(self):
        x = torch.ones(1)
        x.me = x
        y = copy.deepcopy(x)
        self.assertIs(y.me, y)
        del x.me, y.me

    def test_parameters_in_structures(self):
        p = Parameter(torch.ones(2))
        q = copy.deepcopy({"a": p, "b": p})
        self.assertIs(q["a"], q["b"])
        self.assertIs(type(q["a"]), Parameter)


if __name__ == "__main__":
    unittest.main()
