# SPDX-License-Identifier: Apache-2.0
"""Complex numbers in torch.full, rrelu, unsafe_split, nonzero_static, dim_order.
tests/peers/functions/torch_rare_functions.py compares them with torch."""

import itertools
import unittest

import mindtorch_v2 as torch


class ComplexFills(unittest.TestCase):
    def test_full(self):
        made = torch.full((2, 3), 1 + 2j)
        self.assertIs(made.dtype, torch.complex64)
        self.assertEqual(made.tolist(), [[1 + 2j] * 3] * 2)
        self.assertIs(torch.full((), 1j, dtype=torch.complex128).dtype, torch.complex128)
        self.assertEqual(torch.full_like(made, 3j)[0, 0].item(), 3j)
        self.assertEqual(made.new_full((2,), -1j).tolist(), [-1j, -1j])
        self.assertEqual(torch.full((1,), 2 + 0j, dtype=torch.float32).tolist(), [2.0])
        self.assertTrue(torch.full((1,), 1j, requires_grad=True).requires_grad)
        self.assertEqual(torch.full(size=(1,), fill_value=5j).tolist(), [5j])

    def test_errors(self):
        for call in (lambda: torch.full((2,), 1j, dtype=torch.float32), lambda: torch.full_like(torch.zeros(2), 1j)):
            with self.assertRaisesRegex(RuntimeError, "cannot be converted to type float"):
                call()


class Functions(unittest.TestCase):
    def test_rrelu(self):
        torch.manual_seed(0)
        x = torch.randn(200, dtype=torch.float64).requires_grad_()
        y = torch.rrelu(x, 0.2, 0.3, True)
        y.sum().backward()
        slopes = (y / x).detach()
        self.assertTrue(bool((slopes[x > 0] == 1).all()))
        below = slopes[x < 0]
        self.assertTrue(bool(((below >= 0.2 - 1e-12) & (below <= 0.3 + 1e-12)).all()))
        self.assertGreater((below.max() - below.min()).item(), 0.05)
        self.assertLess((x.grad - slopes).abs().max().item(), 1e-12)
        same = [torch.rrelu(x, training=True, generator=torch.Generator().manual_seed(4)) for _ in range(2)]
        self.assertTrue(torch.equal(*same))
        self.assertTrue(torch.equal(torch.rrelu(x, 0.1, 0.3), torch.nn.functional.leaky_relu(x, 0.2)))
        with self.assertRaisesRegex(RuntimeError, "Lower bound"):
            torch.rrelu(x, 0.5, 0.1)

    def test_parts(self):
        x = torch.arange(15.0).reshape(5, 3)
        for mine, usual in ((torch.unsafe_split(x, 2), x.split(2)), (x.unsafe_chunk(2, 1), x.chunk(2, 1)),
                            (torch.unsafe_split_with_sizes(x, [4, 1]), x.split([4, 1]))):
            self.assertEqual([each.tolist() for each in mine], [each.tolist() for each in usual])
        with self.assertRaisesRegex(TypeError, "must be int, not list"):
            torch.unsafe_split(x, [2, 3])

    def test_nonzero_static(self):
        x = torch.tensor([[0, 1], [2, 0], [0, 3]])
        self.assertEqual(torch.nonzero_static(x, size=2).tolist(), [[0, 1], [1, 0]])
        self.assertEqual(x.nonzero_static(size=4, fill_value=9).tolist(), [[0, 1], [1, 0], [2, 1], [9, 9]])
        self.assertEqual(torch.nonzero_static(torch.tensor(1), size=2).shape, (2, 0))
        with self.assertRaisesRegex(RuntimeError, "non-negative"):
            torch.nonzero_static(x, size=-1)

    def test_dim_order(self):
        x = torch.zeros(2, 3, 4, 5)
        for order in itertools.permutations(range(4)):
            found = x.permute(order)
            self.assertEqual([order[dim] for dim in found.dim_order(ambiguity_check=True)], [0, 1, 2, 3])
        self.assertEqual(x.to(memory_format=torch.channels_last).dim_order(), (0, 2, 3, 1))
        self.assertEqual(torch.zeros(2, 1).dim_order(ambiguity_check=[torch.contiguous_format]), (0, 1))
        with self.assertRaisesRegex(RuntimeError, "does not have unique dim order"):
            torch.zeros(2, 1).dim_order(ambiguity_check=True)
        with self.assertRaisesRegex(TypeError, "bool or a list"):
            x.dim_order(ambiguity_check="x")


if __name__ == "__main__":
    unittest.main()
