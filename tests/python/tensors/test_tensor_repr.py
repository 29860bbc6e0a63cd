# SPDX-License-Identifier: Apache-2.0
"""repr() of tensors: texts recorded from torch 2.13, to the character. tests/peers/torch_repr.py compares
thousands of random ones with torch itself."""
import unittest

import mindtorch_v2 as torch
from mindtorch_v2._tensor_str import get_printoptions, printoptions, set_printoptions

inf, nan = float("inf"), float("nan")

GOLDENS = [
    ("torch.tensor([])", {},
     "tensor([])"),
    ("torch.tensor(1.0)", {},
     "tensor(1.)"),
    ("torch.tensor(5)", {},
     "tensor(5)"),
    ("torch.tensor(True)", {},
     "tensor(True)"),
    ("torch.tensor([1.0, 2.0])", {},
     "tensor([1., 2.])"),
    ("torch.tensor([1.5, -2.25])", {},
     "tensor([ 1.5000, -2.2500])"),
    ("torch.tensor([[1, -20], [300, 4]])", {},
     "tensor([[  1, -20],\n        [300,   4]])"),
    ("torch.tensor([True, False])", {},
     "tensor([ True, False])"),
    ("torch.tensor([0.0, -0.0])", {},
     "tensor([0., -0.])"),
    ("torch.tensor([nan, inf, -inf, 1.0])", {},
     "tensor([nan, inf, -inf, 1.])"),
    ("torch.tensor([1e-5, 1.0])", {},
     "tensor([1.0000e-05, 1.0000e+00])"),
    ("torch.tensor([1e9, 1.0])", {},
     "tensor([1.0000e+09, 1.0000e+00])"),
    ("torch.tensor([1e9])", {},
     "tensor([1.0000e+09])"),
    ("torch.tensor([100.5, 0.001])", {},
     "tensor([1.0050e+02, 1.0000e-03])"),
    ("torch.tensor([12345.0, 1.0])", {},
     "tensor([1.2345e+04, 1.0000e+00])"),
    ("torch.tensor([1.0, 1e4, 0.5])", {},
     "tensor([1.0000e+00, 1.0000e+04, 5.0000e-01])"),
    ("torch.zeros(0, 3)", {},
     "tensor([], size=(0, 3))"),
    ("torch.zeros(2, 0, dtype=torch.int64)", {},
     "tensor([], size=(2, 0), dtype=torch.int64)"),
    ("torch.zeros(0, dtype=torch.bool)", {},
     "tensor([], dtype=torch.bool)"),
    ("torch.zeros(0, dtype=torch.int64)", {},
     "tensor([], dtype=torch.int64)"),
    ("torch.ones(2, 2, dtype=torch.float64)", {},
     "tensor([[1., 1.],\n        [1., 1.]], dtype=torch.float64)"),
    ("torch.ones(3, dtype=torch.int32)", {},
     "tensor([1, 1, 1], dtype=torch.int32)"),
    ("torch.ones(3, dtype=torch.uint8)", {},
     "tensor([1, 1, 1], dtype=torch.uint8)"),
    ("torch.arange(0, 1001)", {},
     "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
    ("torch.zeros(40, 40)", {},
     "tensor([[0., 0., 0.,  ..., 0., 0., 0.],\n"
      "        [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "        [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "        ...,\n        [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "        [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "        [0., 0., 0.,  ..., 0., 0., 0.]])"),
    ("torch.zeros(11, 11, 11)", {},
     "tensor([[[0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         ...,\n         [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         [0., 0., 0.,  ..., 0., 0., 0.]],\n"
      "\n        [[0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         ...,\n         [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         [0., 0., 0.,  ..., 0., 0., 0.]],\n"
      "\n        [[0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         ...,\n         [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         [0., 0., 0.,  ..., 0., 0., 0.]],\n"
      "\n        ...,\n\n        [[0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         ...,\n         [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         [0., 0., 0.,  ..., 0., 0., 0.]],\n"
      "\n        [[0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         ...,\n         [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         [0., 0., 0.,  ..., 0., 0., 0.]],\n"
      "\n        [[0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         ...,\n         [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
      "         [0., 0., 0.,  ..., 0., 0., 0.]]])"),
    ("torch.ones(2, 2, 2)", {},
     "tensor([[[1., 1.],\n         [1., 1.]],\n\n        [[1., 1.],\n         [1., 1.]]])"),
    ("torch.ones(30)", {},
     "tensor([1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.,\n"
      "        1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.])"),
    ("torch.arange(0, 30) * 1000", {},
     "tensor([    0,  1000,  2000,  3000,  4000,  5000,  6000,  7000,  8000,  9000,\n"
      "        10000, 11000, 12000, 13000, 14000, 15000, 16000, 17000, 18000, 19000,\n"
      "        20000, 21000, 22000, 23000, 24000, 25000, 26000, 27000, 28000, 29000])"),
    ("torch.ones(2, requires_grad=True)", {},
     "tensor([1., 1.], requires_grad=True)"),
    ("torch.ones(2, requires_grad=True) * 2", {},
     "tensor([2., 2.], grad_fn=<MulBackward0>)"),
    ("(torch.ones(2, 12, requires_grad=True) * 2.5).exp()", {},
     "tensor([[12.1825, 12.1825, 12.1825, 12.1825, 12.1825, 12.1825, 12.1825, 12.1825,\n"
      "         12.1825, 12.1825, 12.1825, 12.1825],\n"
      "        [12.1825, 12.1825, 12.1825, 12.1825, 12.1825, 12.1825, 12.1825, 12.1825,\n"
      "         12.1825, 12.1825, 12.1825, 12.1825]], grad_fn=<ExpBackward0>)"),
    ("torch.ones(2, 3, dtype=torch.float64, requires_grad=True).sum()", {},
     "tensor(6., dtype=torch.float64, grad_fn=<SumBackward0>)"),
    ("torch.tensor([[[1.0]]])", {},
     "tensor([[[1.]]])"),
    ("torch.tensor([0.1, 0.123456789])", {},
     "tensor([0.1000, 0.1235])"),
    ("torch.tensor([1234567.0, 1.0])", {},
     "tensor([1.2346e+06, 1.0000e+00])"),
    ("torch.tensor([nan])", {},
     "tensor([nan])"),
    ("torch.tensor(inf)", {},
     "tensor(inf)"),
    ("torch.tensor(-0.0)", {},
     "tensor(-0.)"),
    ("torch.tensor([[nan, 1.5], [2.5, 100.25]])", {},
     "tensor([[     nan,   1.5000],\n        [  2.5000, 100.2500]])"),
    ("torch.ones(13, 13)", {},
     "tensor([[1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.],\n"
      "        [1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.],\n"
      "        [1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.],\n"
      "        [1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.],\n"
      "        [1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.],\n"
      "        [1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.],\n"
      "        [1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.],\n"
      "        [1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.],\n"
      "        [1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.],\n"
      "        [1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.],\n"
      "        [1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.],\n"
      "        [1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.],\n"
      "        [1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.]])"),
    ("torch.tensor([-1, 10])", {},
     "tensor([-1, 10])"),
    ("torch.ones(1, 1, 1, 2)", {},
     "tensor([[[[1., 1.]]]])"),
    ("torch.ones(2, 1, 2)", {},
     "tensor([[[1., 1.]],\n\n        [[1., 1.]]])"),
    ("torch.full((7,), 123456789.0)", {},
     "tensor([1.2346e+08, 1.2346e+08, 1.2346e+08, 1.2346e+08, 1.2346e+08, 1.2346e+08,\n        1.2346e+08])"),
    ("torch.ones(20, dtype=torch.float64, requires_grad=True) * 1.5", {},
     "tensor([1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000,\n"
      "        1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000,\n"
      "        1.5000, 1.5000], dtype=torch.float64, grad_fn=<MulBackward0>)"),
    ("torch.tensor([1.5, -2.25])", {"precision": 2},
     "tensor([ 1.50, -2.25])"),
    ("torch.tensor([1e-5, 1.0])", {"precision": 2},
     "tensor([1.00e-05, 1.00e+00])"),
    ("torch.tensor([1.5, -2.25])", {"sci_mode": True},
     "tensor([ 1.5000e+00, -2.2500e+00])"),
    ("torch.tensor([1.0])", {"sci_mode": True},
     "tensor([1.0000e+00])"),
    ("torch.tensor([0.0])", {"sci_mode": True},
     "tensor([0.])"),
    ("torch.tensor([1e-5, 1.0])", {"sci_mode": False},
     "tensor([0.0000, 1.0000])"),
    ("torch.tensor([1e9, 1.0])", {"sci_mode": False},
     "tensor([1000000000.,          1.])"),
    ("torch.arange(0, 10)", {"threshold": 5, "edgeitems": 1},
     "tensor([0,  ..., 9])"),
    ("torch.ones(3, 4)", {"threshold": 5, "edgeitems": 1},
     "tensor([[1.,  ..., 1.],\n        ...,\n        [1.,  ..., 1.]])"),
    ("torch.ones(20)", {"linewidth": 40},
     "tensor([1., 1., 1., 1., 1., 1., 1., 1.,\n"
      "        1., 1., 1., 1., 1., 1., 1., 1.,\n"
      "        1., 1., 1., 1.])"),
    ("torch.ones(2, dtype=torch.float64, requires_grad=True) * 1.5", {"linewidth": 40},
     "tensor([1.5000, 1.5000],\n       dtype=torch.float64,\n       grad_fn=<MulBackward0>)"),
    ("torch.ones(40, 40) * 1.5", {"profile": "short"},
     "tensor([[1.50, 1.50,  ..., 1.50, 1.50],\n"
      "        [1.50, 1.50,  ..., 1.50, 1.50],\n"
      "        ...,\n        [1.50, 1.50,  ..., 1.50, 1.50],\n"
      "        [1.50, 1.50,  ..., 1.50, 1.50]])"),
    ("torch.ones(5)", {"threshold": 3, "edgeitems": 0},
     "tensor([...], size=(5,))"),
    ("torch.ones(2)", {"threshold": 3, "edgeitems": 0},
     "tensor([1., 1.], size=(2,))"),
    ("torch.zeros(0)", {"threshold": 3, "edgeitems": 0},
     "tensor([])"),
]


class Goldens(unittest.TestCase):
    def test_texts(self):
        for source, options, text in GOLDENS:
            with self.subTest(source=source, options=options):
                set_printoptions(profile="default")
                set_printoptions(**options)
                try:
                    self.assertEqual(repr(eval(source, globals())), text)
                finally:
                    set_printoptions(profile="default")


class Texts(unittest.TestCase):
    def test_str_and_format(self):
        x = torch.tensor([1.0, 2.0])
        self.assertEqual(str(x), repr(x))
        self.assertEqual(f"{x}", repr(x))
        self.assertEqual(f"{torch.tensor(1.25):.1f} {torch.tensor(7):03d}", "1.2 007")
        with self.assertRaisesRegex(TypeError, "unsupported format string"):
            format(x, ".2f")

    def test_printing_leaves_no_trace(self):
        x = torch.ones(2000, requires_grad=True)
        before = x._version
        repr(x)
        repr(x * 2)
        self.assertEqual((x._version, x.grad), (before, None))

    def test_half_types(self):
        self.assertEqual(repr(torch.tensor([1.5, 2.0], dtype=torch.bfloat16)),
                         "tensor([1.5000, 2.0000], dtype=torch.bfloat16)")
        self.assertEqual(repr(torch.tensor([1.0], dtype=torch.float16)), "tensor([1.], dtype=torch.float16)")

    def test_large_half_is_summarised(self):
        text = repr(torch.zeros(2000, dtype=torch.bfloat16))
        self.assertTrue(text.startswith("tensor([0., 0., 0.,  ..., 0.,"), text)


class Options(unittest.TestCase):
    def tearDown(self):
        set_printoptions(profile="default")

    def test_set(self):
        set_printoptions(precision=2, threshold=7, edgeitems=1, linewidth=60, sci_mode=True)
        self.assertEqual(get_printoptions(), {"precision": 2, "threshold": 7, "edgeitems": 1, "linewidth": 60,
                                              "sci_mode": True})
        set_printoptions(precision=3)  # as torch: sci_mode is what the last call said
        self.assertIsNone(get_printoptions()["sci_mode"])
        set_printoptions(profile="full")
        self.assertEqual(get_printoptions()["threshold"], inf)
        with self.assertRaisesRegex(ValueError, "'huge'"):
            set_printoptions(profile="huge")

    def test_block(self):
        with printoptions(precision=1):
            self.assertEqual(repr(torch.tensor([0.25])), "tensor([0.2])")
        self.assertEqual(repr(torch.tensor([0.25])), "tensor([0.2500])")

    def test_default_dtype(self):
        torch.set_default_dtype(torch.float64)
        self.addCleanup(torch.set_default_dtype, torch.float32)
        self.assertEqual(repr(torch.tensor([1.0])), "tensor([1.])")
        self.assertEqual(repr(torch.tensor([1.0], dtype=torch.float32)), "tensor([1.], dtype=torch.float32)")


if __name__ == "__main__":
    unittest.main()
