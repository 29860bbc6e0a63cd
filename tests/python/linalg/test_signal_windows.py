# SPDX-License-Identifier: Apache-2.0
"""torch.signal.windows against their formulas, weight by weight. tests/peers/functions/torch_rare_functions.py compares
them, and their errors, with torch."""

import math
import unittest

import mindtorch_v2 as torch
from mindtorch_v2.signal import windows


def cosines(*shares):
    return lambda n, last, M: sum((-1) ** i * a * math.cos(2 * math.pi * i * n / last) for i, a in enumerate(shares))


def bessel(x):
    return sum((x / 2) ** (2 * k) / math.factorial(k) ** 2 for k in range(60))


FORMULAS = {  # of the n-th weight, of M; last is the place of the end of the symmetric window
    "bartlett": lambda n, last, M: 1 - abs(2 * n / last - 1),
    "blackman": cosines(0.42, 0.5, 0.08), "hamming": cosines(0.54, 0.46), "hann": cosines(0.5, 0.5),
    "nuttall": cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "cosine": lambda n, last, M: math.sin(math.pi * (n + 0.5) / (last + 1)),
    "exponential": lambda n, last, M: math.exp(-abs(n - last / 2)),
    "gaussian": lambda n, last, M: math.exp(-((n - last / 2) ** 2) / 2),
    "kaiser": lambda n, last, M: bessel(12 * math.sqrt(1 - (2 * n / last - 1) ** 2)) / bessel(12),
    "general_hamming": cosines(0.54, 0.46),
}


class Windows(unittest.TestCase):
    def near(self, found, wanted):
        self.assertEqual(len(found), len(wanted))
        for a, b in zip(found.tolist(), wanted):
            self.assertAlmostEqual(a, b, 12)

    def test_formulas(self):
        self.assertEqual(sorted([*FORMULAS, "general_cosine"]), sorted(windows.__all__))
        for name, formula in FORMULAS.items():
            for M in (2, 3, 8, 33):
                for sym in (True, False):
                    last = M - 1 if sym else M
                    with self.subTest(name=name, M=M, sym=sym):
                        found = getattr(windows, name)(M, sym=sym, dtype=torch.float64)
                        self.near(found, [formula(n, last, M) for n in range(M)])

    def test_periodic_ones_are_the_first_of_one_more(self):
        for name in FORMULAS:
            found = getattr(windows, name)(9, sym=False, dtype=torch.float64)
            self.near(found, getattr(windows, name)(10, dtype=torch.float64)[:9].tolist())

    def test_options(self):
        double = {"dtype": torch.float64}
        self.near(windows.general_cosine(7, a=[0.5, 0.3, 0.2], **double),
                  [cosines(0.5, 0.3, 0.2)(n, 6, 7) for n in range(7)])
        self.near(windows.general_hamming(5, alpha=0.7, **double), [cosines(0.7, 0.3)(n, 4, 5) for n in range(5)])
        self.near(windows.gaussian(4, std=2.0, **double), [math.exp(-((n - 1.5) / 2) ** 2 / 2) for n in range(4)])
        self.near(windows.exponential(4, center=1, tau=2, sym=False, **double),
                  [math.exp(-abs(n - 1) / 2) for n in range(4)])
        self.near(windows.kaiser(5, beta=0.0, **double), [1.0] * 5)
        for M in (0, 1):
            for name in FORMULAS:
                self.assertEqual(getattr(windows, name)(M).tolist(), [1.0] * M)
        self.assertIs(windows.hann(3).dtype, torch.float32)
        self.assertTrue(windows.hann(3, requires_grad=True).requires_grad)
        self.assertIs(torch.signal.windows, windows)

    def test_errors(self):
        for call, words in ((lambda: windows.cosine(-1), "cosine requires non-negative window length, got M=-1"),
                            (lambda: windows.hann(3, dtype=torch.int64), "float32 or float64 dtypes, got: torch.int64"),
                            (lambda: windows.gaussian(3, std=0), "must be positive, got: 0"),
                            (lambda: windows.exponential(3, center=1), "Center must be None"),
                            (lambda: windows.kaiser(3, beta=-2), "got: -2"),
                            (lambda: windows.general_cosine(3, a=[]), "cannot be empty")):
            with self.assertRaisesRegex(ValueError, words):
                call()


if __name__ == "__main__":
    unittest.main()
