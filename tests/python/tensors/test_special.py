#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch.special as Python has it: every name, numbers as operands, out=, the profile's names."""
import math
import sys
import unittest

import mindtorch_v2 as torch


class Special(unittest.TestCase):
    def test_every_name_is_there(self):
        for name in torch.special.__all__:
            self.assertTrue(callable(getattr(torch.special, name)), name)
            self.assertTrue(getattr(torch.special, name).__doc__, name)
        self.assertFalse(hasattr(torch, "special_erf"))
        self.assertFalse(hasattr(torch.Tensor, "special_erf"))

    def test_numbers_are_operands(self):
        x = torch.tensor([1.0, 2.0], dtype=torch.float64)
        self.assertAlmostEqual(torch.special.xlog1py(2, x)[1].item(), 2 * math.log(3), 14)
        self.assertAlmostEqual(torch.special.zeta(2, x)[0].item(), math.pi**2 / 6, 14)
        self.assertEqual(torch.special.xlogy(x, 1).tolist(), [0.0, 0.0])
        half = torch.special.zeta(torch.tensor([2.0], dtype=torch.float16), 1)
        self.assertEqual(half.dtype, torch.float16)

    def test_results_go_into_a_given_tensor(self):
        into = torch.empty(2)
        torch.special.expit(torch.tensor([0.0, 100.0]), out=into)
        self.assertEqual(into.tolist(), [0.5, 1.0])

    def test_rounding_to_digits(self):
        x = torch.tensor([1.26, 155.0])
        self.assertEqual(torch.special.round(x, decimals=-1).tolist(), [0.0, 160.0])
        self.assertEqual(x.round(decimals=1)[0].item(), torch.tensor(1.3).item())
        self.assertEqual(torch.special.round(x).tolist(), [1.0, 155.0])

    def test_an_unknown_derivative_is_named(self):
        a = torch.tensor([2.0], requires_grad=True)
        with self.assertRaisesRegex(NotImplementedError, "the derivative for 'igamma: input' is not implemented"):
            torch.igamma(a, torch.tensor([1.0])).sum().backward()

    def test_a_profile_has_both_names(self):
        with torch.profiler.profile() as profile:
            torch.special.gammaln(torch.tensor([2.0]))
        names = [event.name for event in profile.events()]
        self.assertLessEqual({"aten::special_gammaln", "aten::lgamma"}, set(names))


if __name__ == "__main__":
    sys.exit(unittest.main())
