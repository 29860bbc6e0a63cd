# SPDX-License-Identifier: Apache-2.0
"""Inference mode: tensors made in it cannot be written outside, and no graph keeps them."""
import copy
import unittest

import mindtorch_v2 as torch
from support_autograd import leaf


def made_inside(*sizes):
    with torch.inference_mode():
        return torch.ones(*sizes)


class Tensors(unittest.TestCase):
    def test_which_tensors_they_are(self):
        outside = torch.ones(2)
        with torch.inference_mode():
            inside = torch.ones(2)
            view, own_view, result = outside.view(1, 2), inside.view(1, 2), outside + 1
        self.assertEqual([t.is_inference() for t in (outside, inside, view, own_view, result)],
                         [False, True, False, True, True])
        self.assertTrue(torch.is_inference(inside))
        self.assertTrue(inside.view(2, 1).is_inference())
        for copied in (inside.clone(), inside + 1, copy.deepcopy(inside)):
            self.assertFalse(copied.is_inference())
        for same in (inside.detach(), inside.data):
            self.assertTrue(same.is_inference())
        outside.data = inside
        self.assertTrue(outside.is_inference())

    def test_no_version(self):
        inside = made_inside(2)
        for tensor in (inside, inside[0]):
            with self.assertRaisesRegex(RuntimeError, "Inference tensors do not track version counter"):
                tensor._version
        self.assertEqual(inside.clone()._version, 0)

    def test_writes(self):
        inside, outside = made_inside(3), torch.zeros(3)
        writes = (lambda: inside.add_(1), lambda: inside.zero_(), lambda: inside.view(1, 3).mul_(2),
                  lambda: inside.__setitem__(0, 1.0), lambda: torch.add(outside, outside, out=inside),
                  lambda: inside.normal_(), lambda: torch.relu_(inside))
        for write in writes:
            with self.assertRaisesRegex(RuntimeError, "Inplace update to inference tensor outside InferenceMode"):
                write()
            with torch.no_grad(), self.assertRaisesRegex(RuntimeError, "Inplace update to inference tensor"):
                write()
        with torch.inference_mode():
            for write in writes:
                write()
            outside.add_(1)
        self.assertEqual((outside.tolist(), outside._version), ([1.0] * 3, 1))
        self.assertFalse(outside.copy_(inside).is_inference())

    def test_graphs_do_not_keep_them(self):
        class Keeps(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.save_for_backward(y)
                return x * y

            @staticmethod
            def backward(ctx, grad):
                return grad, None

        w, inside = leaf(1.0, 2.0), made_inside(2)
        for use in (lambda: w * inside, lambda: Keeps.apply(w, inside), lambda: torch.cat([w * inside, w])):
            with self.assertRaisesRegex(RuntimeError, "Inference tensors cannot be saved for backward"):
                use()
        (w + inside).sum().backward()  # the sum keeps nothing
        self.assertEqual(w.grad.tolist(), [1.0, 1.0])
        self.assertTrue((w * inside.clone()).requires_grad)

    def test_requires_grad(self):
        inside = made_inside(2)
        with self.assertRaisesRegex(RuntimeError, "Setting requires_grad=True on inference tensor outside"):
            inside.requires_grad_()
        with self.assertRaisesRegex(RuntimeError, "Setting requires_grad=True on inference tensor outside"):
            inside.requires_grad = True
        self.assertFalse(inside.requires_grad_(False).requires_grad)
        with torch.inference_mode():
            self.assertTrue(inside.requires_grad_().requires_grad)

    def test_views_made_inside(self):
        outside, w = torch.ones(2), leaf(1.0, 2.0)
        with torch.inference_mode():
            view = outside.view(1, 2)
        view.add_(1)
        with self.assertRaisesRegex(RuntimeError, "A view was created in inference mode and is being modified inplace "
                                                  "in normal mode"):
            view.add_(w)


class Mode(unittest.TestCase):
    def test_nothing_is_recorded_inside(self):
        w = leaf(1.0)
        with torch.inference_mode():
            self.assertFalse((w * 2).requires_grad)
            with torch.enable_grad():
                self.assertTrue(torch.is_grad_enabled())
                self.assertFalse((w * 2).requires_grad)
                with torch.no_grad():
                    self.assertFalse(torch.is_grad_enabled())
                self.assertTrue(torch.is_grad_enabled())
            self.assertFalse(torch.is_grad_enabled())
            with torch.inference_mode(False):
                self.assertTrue((w * 2).requires_grad)
                self.assertFalse(torch.ones(1).is_inference())
        self.assertTrue(torch.is_grad_enabled())

    def test_it_ends_with_an_exception(self):
        with self.assertRaises(KeyError), torch.inference_mode():
            raise KeyError
        self.assertFalse(torch.is_inference_mode_enabled())
        self.assertTrue(torch.is_grad_enabled())


if __name__ == "__main__":
    unittest.main()
