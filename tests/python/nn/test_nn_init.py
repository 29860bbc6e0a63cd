# SPDX-License-Identifier: Apache-2.0
"""nn.init: bounds, deviations, exact forms, distributions, errors; and what layers begin with."""
import math
import unittest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.nn import init


def facts(tensor):
    """Smallest, largest, mean, deviation."""
    flat = tensor.detach().reshape(-1)
    return flat.min().item(), flat.max().item(), flat.mean().item(), flat.std().item()


class Values(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(11)

    def test_constants(self):
        for call, value in ((init.ones_, 1.0), (init.zeros_, 0.0), (lambda t: init.constant_(t, 2.5), 2.5)):
            t = torch.empty(3, 2)
            self.assertIs(call(t), t)
            self.assertEqual(t.tolist(), [[value] * 2] * 3)

    def test_without_autograd(self):
        p = nn.Parameter(torch.empty(4, 4))
        for call in (init.uniform_, init.normal_, init.zeros_, init.ones_, init.eye_, init.xavier_uniform_,
                     init.xavier_normal_,
                     init.kaiming_uniform_, init.kaiming_normal_, init.orthogonal_, init.trunc_normal_,
                     lambda t: init.constant_(t, 1), lambda t: init.sparse_(t, 0.5)):
            self.assertIs(call(p), p)
            self.assertTrue(p.is_leaf and p.requires_grad)
        self.assertTrue(torch.is_grad_enabled())

    def test_uniform_and_normal(self):
        low, high, mean, _ = facts(init.uniform_(torch.empty(20000), -2, 3))
        self.assertTrue(-2 <= low < -1.9 and 2.9 < high < 3)
        self.assertAlmostEqual(mean, 0.5, delta=0.05)
        _, _, mean, std = facts(init.normal_(torch.empty(20000), 1.0, 2.0))
        self.assertAlmostEqual(mean, 1.0, delta=0.06)
        self.assertAlmostEqual(std, 2.0, delta=0.06)

    def test_generator(self):
        def drawn(call):
            generator = torch.Generator()
            generator.manual_seed(3)
            return call(torch.empty(4, 4), generator=generator).tolist()

        for call in (init.uniform_, init.normal_, init.trunc_normal_, init.xavier_uniform_,
                     init.xavier_normal_,
                     init.kaiming_uniform_, init.kaiming_normal_, init.orthogonal_,
                     lambda t, generator: init.sparse_(t, 0.5, generator=generator),
                     lambda t, generator: init.trunc_normal_(t, 5.0, 1.0, -2.0, 2.0, generator)):
            self.assertEqual(drawn(call), drawn(call))

    def test_fans(self):
        self.assertEqual(init._calculate_fan_in_and_fan_out(torch.empty(3, 5)), (5, 3))
        self.assertEqual(init._calculate_fan_in_and_fan_out(torch.empty(3, 5, 2, 4)), (40, 24))
        self.assertRaisesRegex(ValueError, "fewer than 2 dimensions", init._calculate_fan_in_and_fan_out,
                               torch.empty(3))
        self.assertRaisesRegex(ValueError, r"Mode x not supported, please use one of \['fan_in', 'fan_out'\]",
                               init.kaiming_normal_, torch.empty(2, 2), mode="x")

    def test_gains(self):
        for name, gain in (("linear", 1), ("conv2d", 1), ("sigmoid", 1), ("tanh", 5 / 3),
                           ("relu", math.sqrt(2)), ("selu", 0.75)):
            self.assertEqual(init.calculate_gain(name), gain)
        self.assertAlmostEqual(init.calculate_gain("leaky_relu"), math.sqrt(2 / 1.0001))
        self.assertAlmostEqual(init.calculate_gain("leaky_relu", 0.2), math.sqrt(2 / 1.04))
        self.assertRaisesRegex(ValueError, "Unsupported nonlinearity foo", init.calculate_gain, "foo")
        for bad in ("a", True):
            self.assertRaisesRegex(ValueError, f"negative_slope {bad} not a valid number",
                                   init.calculate_gain, "leaky_relu", bad)

    def test_xavier_and_kaiming(self):
        for call, std in (
            (lambda t: init.xavier_uniform_(t, 2.0), 2 * math.sqrt(2 / 300)),
            (lambda t: init.xavier_normal_(t, 2.0), 2 * math.sqrt(2 / 300)),
            (lambda t: init.kaiming_uniform_(t, nonlinearity="relu"), math.sqrt(2 / 100)),
            (lambda t: init.kaiming_normal_(t, nonlinearity="relu"), math.sqrt(2 / 100)),
            (lambda t: init.kaiming_normal_(t, mode="fan_out", nonlinearity="linear"), math.sqrt(1 / 200)),
            (lambda t: init.kaiming_uniform_(t, a=math.sqrt(5)), math.sqrt(1 / 300)),
        ):
            low, high, mean, found = facts(call(torch.empty(200, 100)))
            self.assertAlmostEqual(found / std, 1.0, delta=0.03)
            self.assertAlmostEqual(mean / std, 0.0, delta=0.05)
        low, high, _, _ = facts(init.kaiming_uniform_(torch.empty(200, 100), a=math.sqrt(5)))
        self.assertTrue(-0.1 <= low < -0.0999 and 0.0999 < high <= 0.1)
        with self.assertWarnsRegex(UserWarning, "Initializing zero-element tensors is a no-op"):
            init.kaiming_uniform_(torch.empty(0, 2))
        with self.assertWarns(UserWarning):
            init.kaiming_normal_(torch.empty(0, 2))

    def test_eye_and_dirac(self):
        self.assertEqual(init.eye_(torch.empty(2, 3)).tolist(), [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
        self.assertRaisesRegex(ValueError, "Only tensors with 2 dimensions", init.eye_, torch.empty(2))
        conv = nn.Conv2d(3, 3, 3, padding=1, bias=False)
        init.dirac_(conv.weight)
        x = torch.randn(2, 3, 4, 4)
        self.assertTrue(torch.equal(conv(x), x))
        grouped = nn.Conv1d(4, 4, 3, padding=1, groups=2, bias=False)
        init.dirac_(grouped.weight, groups=2)
        x = torch.randn(2, 4, 5)
        self.assertTrue(torch.equal(grouped(x), x))
        self.assertRaisesRegex(ValueError, "3, 4, or 5 dimensions", init.dirac_, torch.empty(2, 2))
        self.assertRaisesRegex(ValueError, "dim 0 must be divisible by groups", init.dirac_,
                               torch.empty(3, 2, 2), 2)

    def test_orthogonal(self):
        for shape in ((5, 5), (3, 7), (7, 3), (4, 2, 3), (1, 4), (4, 1)):
            for gain in (1, 2.0):
                t = init.orthogonal_(torch.empty(shape, dtype=torch.float64), gain)
                flat = t.reshape(shape[0], -1)
                product = flat @ flat.t() if flat.shape[0] <= flat.shape[1] else flat.t() @ flat
                expected = torch.eye(product.shape[0], dtype=torch.float64) * gain * gain
                self.assertTrue(torch.allclose(product, expected, atol=1e-12), (shape, product))
        single = init.orthogonal_(torch.empty(40, 40))
        self.assertTrue(torch.allclose(single @ single.t(), torch.eye(40), atol=1e-5))
        self.assertEqual(tuple(init.orthogonal_(torch.empty(0, 2)).shape), (0, 2))
        self.assertRaisesRegex(ValueError, "2 or more dimensions", init.orthogonal_, torch.empty(2))
        signs = [init.orthogonal_(torch.empty(1, 1)).item() for _ in range(40)]
        self.assertEqual({round(s) for s in signs}, {-1, 1})  # all of the group, not half of it

    def test_trunc_normal(self):
        low, high, mean, std = facts(init.trunc_normal_(torch.empty(20000), 0.0, 1.0, -2.0, 2.0))
        self.assertTrue(-2 <= low < -1.9 and 1.9 < high <= 2)
        self.assertAlmostEqual(mean, 0.0, delta=0.03)
        self.assertAlmostEqual(std, 0.8796, delta=0.02)
        low, high, mean, _ = facts(init.trunc_normal_(torch.empty(20000), 0.0, 1.0, 0.5, 1.0))
        self.assertTrue(0.5 <= low and high <= 1.0)
        self.assertAlmostEqual(mean, 0.7353, delta=0.01)

    def test_trunc_normal_far_away(self):
        """Where hardly any normal value falls into the window: mean + phi/Q of the tail, near 1/distance."""
        with self.assertWarnsRegex(UserWarning, "mean is more than 2 std from"):
            low, high, mean, _ = facts(init.trunc_normal_(torch.empty(20000), 0.0, 1.0, 6.0, 50.0))
        self.assertTrue(6.0 <= low < 6.01)
        self.assertAlmostEqual(mean, 6.1585, delta=0.005)
        with self.assertWarns(UserWarning):
            low, high, mean, _ = facts(init.trunc_normal_(torch.empty(20000), 10.0, 1.0, -2.0, 2.0))
        self.assertTrue(1.99 < high <= 2.0)
        self.assertAlmostEqual(mean, 1.8787, delta=0.005)

    def test_trunc_normal_edges(self):
        self.assertEqual(init.trunc_normal_(torch.empty(2), std=0.0).tolist(), [0.0, 0.0])
        self.assertEqual(init.trunc_normal_(torch.empty(2), a=1.0, b=1.0).tolist(), [1.0, 1.0])
        self.assertRaises(RuntimeError, init.trunc_normal_, torch.empty(2), a=2.0, b=1.0)

    def test_sparse(self):
        t = init.sparse_(torch.empty(10, 6), 0.25)
        self.assertEqual((t == 0).sum(0).tolist(), [3] * 6)
        self.assertRaisesRegex(ValueError, "Only tensors with 2 dimensions", init.sparse_, torch.empty(2),
                               0.1)

    def test_old_names(self):
        for name in ("uniform", "normal", "eye", "xavier_uniform", "xavier_normal", "kaiming_uniform",
                     "kaiming_normal", "orthogonal"):
            with self.assertWarnsRegex(FutureWarning,
                                       f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`"):
                getattr(init, name)(torch.empty(2, 2))


class Beginnings(unittest.TestCase):
    """What layers begin with: torch's distributions, and the order in which numbers are drawn."""

    def setUp(self):
        torch.manual_seed(2)

    def bounded(self, tensor, bound):
        low, high, _, std = facts(tensor)
        self.assertLessEqual(max(-low, high), bound * 1.000001)
        self.assertGreater(high, bound * 0.9)
        self.assertAlmostEqual(std / (bound / math.sqrt(3)), 1.0, delta=0.1)

    def test_layers(self):
        linear = nn.Linear(64, 500)
        self.bounded(linear.weight, 1 / 8)
        self.bounded(linear.bias, 1 / 8)
        conv = nn.Conv2d(8, 64, (2, 4), groups=2)
        self.bounded(conv.weight, 1 / math.sqrt(32))
        attention = nn.MultiheadAttention(64, 4)
        self.bounded(attention.in_proj_weight, math.sqrt(6 / (64 + 192)))
        self.assertEqual(attention.in_proj_bias.abs().sum().item(), 0.0)
        self.assertEqual(attention.out_proj.bias.abs().sum().item(), 0.0)
        self.bounded(attention.out_proj.weight, 1 / 8)
        _, _, mean, std = facts(nn.Embedding(200, 50).weight)
        self.assertAlmostEqual(mean, 0.0, delta=0.05)
        self.assertAlmostEqual(std, 1.0, delta=0.05)
        for norm in (nn.LayerNorm(3), nn.BatchNorm1d(3), nn.GroupNorm(1, 3)):
            self.assertEqual((norm.weight.tolist(), norm.bias.tolist()), ([1.0] * 3, [0.0] * 3))
        self.assertEqual(nn.PReLU().weight.tolist(), [0.25])
        self.bounded(nn.Bilinear(16, 50, 50).weight, 0.25)

    def test_order_of_drawing(self):
        """The weight, then the bias: seeds mean the same network as in torch's order of calls."""
        linear = nn.Linear(3, 2)
        torch.manual_seed(2)
        weight = torch.empty(2, 3).uniform_(-1 / math.sqrt(3), 1 / math.sqrt(3))
        bias = torch.empty(2).uniform_(-1 / math.sqrt(3), 1 / math.sqrt(3))
        self.assertTrue(torch.allclose(linear.weight, weight) and torch.allclose(linear.bias, bias))
        torch.manual_seed(2)
        first = [p.tolist() for p in nn.TransformerEncoderLayer(8, 2, 16).parameters()]
        torch.manual_seed(2)
        self.assertEqual([p.tolist() for p in nn.TransformerEncoderLayer(8, 2, 16).parameters()], first)

    def test_reset(self):
        m = nn.Linear(3, 2)
        before = m.weight.tolist()
        weight = m.weight
        m.reset_parameters()
        self.assertIs(m.weight, weight)
        self.assertNotEqual(m.weight.tolist(), before)

    def test_empty_layers(self):
        with self.assertWarns(UserWarning):
            m = nn.Linear(0, 2)
        self.assertEqual(m(torch.zeros(3, 0)).tolist(), [[0.0, 0.0]] * 3)


if __name__ == "__main__":
    unittest.main()
