#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Order statistics and different elements as Python has them: names of results, out=, what is asked for."""
import sys
import unittest

import mindtorch_v2 as torch


class Order(unittest.TestCase):
    def test_results_have_names(self):
        x = torch.tensor([[3.0, 1.0, 2.0], [5.0, 4.0, 6.0]])
        found = x.median(dim=1)
        self.assertEqual((found.values.tolist(), found.indices.tolist()), ([2.0, 5.0], [2, 0]))
        self.assertEqual(x.kthvalue(3, dim=1).values.tolist(), [3.0, 6.0])
        self.assertEqual(torch.cummax(x, 1).indices.tolist(), [[0, 0, 0], [0, 0, 2]])
        extremes = torch.aminmax(x)
        self.assertEqual((extremes.min.item(), extremes.max.item()), (1.0, 6.0))

    def test_results_go_into_given_tensors(self):
        values, places = torch.empty(2), torch.empty(2, dtype=torch.int64)
        x = torch.tensor([[3.0, 1.0, 2.0], [5.0, 4.0, 6.0]])
        torch.median(x, 1, out=(values, places))
        self.assertEqual((values.tolist(), places.tolist()), ([2.0, 5.0], [2, 0]))
        into = torch.empty(3)
        torch.quantile(x, 0.5, dim=0, out=into)
        self.assertEqual(into.tolist(), [4.0, 2.5, 4.0])

    def test_unique_gives_what_is_asked_for(self):
        x = torch.tensor([[2, 1], [2, 1], [0, 3]])
        self.assertEqual(x.unique().tolist(), [0, 1, 2, 3])
        values, counts = torch.unique(x, return_counts=True)
        self.assertEqual((values.tolist(), counts.tolist()), ([0, 1, 2, 3], [1, 2, 2, 1]))
        rows, inverse = torch.unique(x, dim=0, return_inverse=True)
        self.assertEqual((rows.tolist(), inverse.tolist()), ([[0, 3], [2, 1]], [1, 1, 0]))
        values, inverse, counts = torch.unique_consecutive(torch.tensor([1, 1, 2]), True, True)
        self.assertEqual((values.tolist(), inverse.tolist(), counts.tolist()), ([1, 2], [0, 0, 1], [2, 1]))
        self.assertEqual(x.unique_consecutive(dim=0).tolist(), [[2, 1], [0, 3]])

    def test_quantiles_outside_are_refused(self):
        with self.assertRaisesRegex(RuntimeError, r"q values must be in the range \[0, 1\]"):
            torch.quantile(torch.ones(3), torch.tensor([0.5, 2.0]))

    def test_numbers_are_searched_for(self):
        edges = torch.tensor([1.0, 2.0, 3.0])
        self.assertEqual(torch.searchsorted(edges, 2.5).item(), 2)
        self.assertEqual(torch.bucketize(2, edges, right=True).item(), 2)
        with self.assertRaisesRegex(RuntimeError, "sorter index out of range"):
            torch.searchsorted(edges, 2.0, sorter=torch.tensor([0, 1, 5]))


if __name__ == "__main__":
    sys.exit(unittest.main())
