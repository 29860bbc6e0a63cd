# SPDX-License-Identifier: Apache-2.0
"""Torch's warnings for uses that it advises against, and what x.data and full backward hooks leave alone."""

import unittest
import warnings
from collections import namedtuple

import mindtorch_v2 as torch
from mindtorch_v2 import _functions


class Warnings(unittest.TestCase):
    def setUp(self):
        _functions._warned.clear()

    def said(self, function):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function()
        return [str(one.message) for one in caught]

    def test_masks_of_bytes(self):
        x, mask = torch.arange(4.0), torch.tensor([1, 0, 1, 0], dtype=torch.uint8)
        self.assertIn("indexing with dtype torch.uint8 is now deprecated", self.said(lambda: x[mask])[0])
        self.assertEqual(self.said(lambda: x[mask.bool()]), [])
        self.assertIn("where received a uint8 condition", self.said(lambda: torch.where(mask, x, x))[0])
        self.assertEqual(self.said(lambda: torch.where(mask, x, x)), [])  # once

    def test_meshgrid_without_indexing(self):
        x = torch.arange(2.0)
        self.assertIn("required to pass the indexing argument", self.said(lambda: torch.meshgrid(x, x))[0])
        self.assertEqual(self.said(lambda: torch.meshgrid(x, x, indexing="ij")), [])

    def test_gradient_of_a_result(self):
        leaf = torch.ones(2, requires_grad=True)
        result = leaf * 2
        self.assertIn("The .grad attribute of a Tensor that is not a leaf", self.said(lambda: result.grad)[0])
        self.assertEqual(self.said(lambda: leaf.grad), [])
        self.assertFalse(result.retains_grad)
        result.retain_grad()
        self.assertTrue(result.retains_grad)
        self.assertEqual(self.said(lambda: result.grad), [])
        leaf.retain_grad()
        self.assertFalse(leaf.retains_grad)

    def test_create_graph(self):
        leaf = torch.ones(2, requires_grad=True)
        text = self.said(lambda: (leaf**2).sum().backward(create_graph=True))[0]
        self.assertIn("create_graph=True will create a reference cycle", text)
        self.assertTrue(leaf.grad.requires_grad)
        self.assertEqual(self.said(lambda: torch.autograd.grad((leaf**2).sum(), leaf, create_graph=True)), [])

    def test_t_of_other_than_matrices(self):
        """Each once in a process, so the two texts are asked for in one place."""
        said = self.said(lambda: (torch.ones(2, 3, 4).T, torch.ones(()).T, torch.ones(2, 3, 4).T))
        self.assertEqual(len(said), 2)
        self.assertIn("on tensors of dimension other than 2", said[0])
        self.assertIn("deprecated on 0-D tensors", said[1])
        self.assertEqual(self.said(lambda: (torch.ones(2).T, torch.ones(2, 3).T)), [])


class LeftAlone(unittest.TestCase):
    def test_data_has_its_own_version(self):
        w = torch.ones(2, requires_grad=True)
        y = torch.ones(2) * w
        w.data.add_(1)
        y.sum().backward()
        self.assertEqual((w.grad.tolist(), w.tolist(), w._version), ([1.0, 1.0], [2.0, 2.0], 0))

    def test_full_backward_hooks(self):
        seen, pair = [], namedtuple("pair", "a b")

        class Both(torch.nn.Module):
            def forward(self, a, b):
                seen.append((a.requires_grad, b.requires_grad))
                return pair(a * b, a)

        module = Both()
        grads = []
        module.register_full_backward_hook(lambda _, given, got: grads.append((given, got)))
        out = module(torch.ones(2, requires_grad=True), torch.full((2,), 3.0))
        self.assertEqual(seen, [(True, False)])
        self.assertIsInstance(out, pair)
        out.a.sum().backward()
        self.assertEqual(grads[0][0][0].tolist(), [3.0, 3.0])
        self.assertIsNone(grads[0][0][1])


if __name__ == "__main__":
    unittest.main()
