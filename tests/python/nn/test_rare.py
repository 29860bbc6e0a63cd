# SPDX-License-Identifier: Apache-2.0
"""AdaptiveLogSoftmaxWithLoss, fractional pools, orthogonal weights: what they promise, loops written out, gradients
against differences. tests/peers/nn/torch_rare.py compares values and errors with torch."""

import itertools
import unittest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2 import nn


class Differences(unittest.TestCase):
    def check_gradient(self, loss, x, step=1e-6):
        x.requires_grad_()
        x.grad = None
        loss(x).backward()
        flat = x.detach().reshape(-1)
        for i, got in enumerate(x.grad.reshape(-1).tolist()):
            sides = []
            for sign in (1, -1):
                moved = flat.clone()
                moved[i] += sign * step
                sides.append(loss(moved.reshape(x.shape)).item())
            self.assertAlmostEqual(got, (sides[0] - sides[1]) / (2 * step), 5)


class AdaptiveSoftmax(Differences):
    def setUp(self):
        torch.manual_seed(3)
        self.module = nn.AdaptiveLogSoftmaxWithLoss(6, 20, [4, 9, 15], 2.0, dtype=torch.float64)
        self.x = torch.randn(7, 6, dtype=torch.float64) * 4

    def test_parameters(self):  # a cluster so rare that its layers have no columns is torch's, too
        shapes = {name: tuple(value.shape) for name, value in self.module.state_dict().items()}
        self.assertEqual(shapes, {
            "head.weight": (7, 6), "tail.0.0.weight": (3, 6), "tail.0.1.weight": (5, 3), "tail.1.0.weight": (1, 6),
            "tail.1.1.weight": (6, 1), "tail.2.0.weight": (0, 6), "tail.2.1.weight": (5, 0)})

    def test_probabilities_have_the_sum_1(self):
        sums = self.module.log_prob(self.x).exp().sum(1)
        self.assertLess((sums - 1).abs().max().item(), 1e-12)

    def test_targets_have_their_log_probability(self):
        logs = self.module.log_prob(self.x)
        for low in range(0, 14):
            target = torch.arange(low, low + 7)
            output, loss = self.module(self.x, target)
            self.assertLess((output - logs[torch.arange(7), target]).abs().max().item(), 1e-12)
            self.assertAlmostEqual(loss.item(), -output.mean().item(), 12)
            self.assertAlmostEqual(self.module(self.x[2], target[2]).output.item(), output[2].item(), 12)

    def test_predictions(self):
        with torch.no_grad():
            self.module.head.weight[4:] *= 3
        found = self.module.predict(self.x)
        head = self.module.head(self.x).argmax(1)
        whole = self.module.log_prob(self.x).argmax(1)
        self.assertEqual(found.tolist(), [h if h < 4 else w for h, w in zip(head.tolist(), whole.tolist())])
        self.assertGreater((found >= 4).sum().item(), 0)

    def test_gradients(self):
        target = torch.tensor([0, 19, 5, 9, 14, 3, 8])
        self.check_gradient(lambda x: self.module(x, target).loss, self.x)
        x = self.x.detach()

        def of_weight(weight):
            return torch.func.functional_call(self.module, {"tail.0.0.weight": weight}, (x, target)).loss
        self.check_gradient(of_weight, self.module.tail[0][0].weight.detach().clone())

    def test_new_weights(self):
        before = self.module.tail[1][1].weight.clone(), self.module.head.weight.clone()
        self.module.reset_parameters()
        self.assertFalse(torch.equal(before[0], self.module.tail[1][1].weight))
        self.assertFalse(torch.equal(before[1], self.module.head.weight))

    def test_errors(self):
        for cutoffs in ([], [5, 5], [20], [5.5], [0, 5], [10, 5]):
            with self.assertRaisesRegex(ValueError, "cutoffs should be a sequence"):
                nn.AdaptiveLogSoftmaxWithLoss(6, 20, cutoffs)
        with self.assertRaisesRegex(RuntimeError, r"in \[0, 19\], but values in range \[0, 20\] were found"):
            self.module(self.x, torch.arange(0, 21, 3)[:7] + torch.tensor([0, 0, 0, 0, 0, 0, 2]))


def begins(sample, size, kernel, output):
    if output == 1:
        return [size - kernel]
    share = (size - kernel) / (output - 1)
    return [int((i + sample) * share) - int(sample * share) for i in range(output - 1)] + [size - kernel]


class FractionalPools(Differences):
    def test_loops_of_windows(self):
        torch.manual_seed(5)
        x, samples = torch.randn(2, 3, 6, 7, 9, dtype=torch.float64), torch.rand(2, 3, 3, dtype=torch.float64)
        kernel, output = (2, 3, 1), (4, 4, 8)
        found, places = F.fractional_max_pool3d(x, kernel, output, return_indices=True, _random_samples=samples)
        for n, c in itertools.product(range(2), range(3)):
            starts = [begins(samples[n, c, d].item(), *each)
                      for d, each in enumerate(zip(x.shape[2:], kernel, output))]
            for at in itertools.product(*map(range, output)):
                (t, h, w) = (starts[d][at[d]] for d in range(3))
                self.assertEqual(found[n, c][at], x[n, c, t:t + 2, h:h + 3, w:w + 1].max())
        self.assertTrue(torch.equal(x.flatten(2).gather(2, places.flatten(2)), found.flatten(2)))

    def test_images_take_the_width_first(self):
        x = torch.arange(48.0, dtype=torch.float64).reshape(1, 1, 6, 8)
        samples = torch.tensor([[[0.9, 0.1]]], dtype=torch.float64)
        rows, columns = begins(0.1, 6, 2, 4), begins(0.9, 8, 2, 5)
        found = F.fractional_max_pool2d(x, 2, (4, 5), _random_samples=samples)
        self.assertEqual(found[0, 0].tolist(), [[(r + 1) * 8 + c + 1 for c in columns] for r in rows])

    def test_nan_wins(self):
        x = torch.zeros(1, 1, 4, 4)
        x[0, 0, 1, 0] = float("nan")
        found = F.fractional_max_pool2d(x, 2, 2, _random_samples=torch.zeros(1, 1, 2))
        self.assertEqual(found.isnan().flatten().tolist(), [True, False, False, False])

    def test_gradients(self):
        torch.manual_seed(1)
        samples = torch.rand(1, 2, 2, dtype=torch.float64)
        self.check_gradient(lambda x: (F.fractional_max_pool2d(x, 3, 4, _random_samples=samples) ** 2).sum(),
                            torch.randn(2, 6, 7, dtype=torch.float64))
        samples = torch.rand(1, 2, 3, dtype=torch.float64)
        self.check_gradient(lambda x: (F.fractional_max_pool3d(x, 2, (2, 3, 3), _random_samples=samples) ** 2).sum(),
                            torch.randn(1, 2, 4, 5, 5, dtype=torch.float64))

    def test_modules(self):
        torch.manual_seed(0)
        x = torch.randn(2, 3, 11, 9)
        self.assertEqual(nn.FractionalMaxPool2d(2, output_ratio=0.5)(x).shape, (2, 3, 5, 4))
        self.assertEqual(nn.FractionalMaxPool3d(2, (1, 4, 3))(x).shape, (2, 1, 4, 3))
        module = nn.FractionalMaxPool2d(2, 8)
        results = [module(x) for _ in range(8)]
        self.assertTrue(any(not torch.equal(results[0], other) for other in results))  # random places
        module = nn.FractionalMaxPool2d(2, 8, _random_samples=torch.rand(2, 3, 2))
        self.assertTrue(torch.equal(module(x), module(x)))

    def test_errors(self):
        x = torch.zeros(1, 1, 7, 6)
        with self.assertRaisesRegex(RuntimeError, "pool width 2 too large relative to input width 6"):
            F.fractional_max_pool2d(x, 2, 6)
        with self.assertRaisesRegex(ValueError, "only one of output_size and output_ratio"):
            nn.FractionalMaxPool3d(2, 3, 0.5)
        with self.assertRaisesRegex(RuntimeError, "same dtype as input"):
            F.fractional_max_pool2d(x, 2, 3, _random_samples=torch.zeros(1, 1, 2, dtype=torch.float64))


class OrthogonalWeights(Differences):
    def each(self):
        for name in ("matrix_exp", "cayley", "householder"):
            for kept in (True, False):
                for sides in ((4, 4), (3, 5), (5, 3)):
                    torch.manual_seed(2)
                    layer = nn.Linear(*sides, dtype=torch.float64)
                    nn.utils.parametrizations.orthogonal(layer, orthogonal_map=name, use_trivialization=kept)
                    yield name, kept, layer

    def check(self, weight):
        tall = weight if weight.size(0) >= weight.size(1) else weight.T
        unit = torch.eye(tall.size(1), dtype=torch.float64)
        self.assertLess((tall.T @ tall - unit).abs().max().item(), 1e-12)

    def test_stay_orthogonal_while_training(self):
        for _, _, layer in self.each():
            self.check(layer.weight)
            before = layer.weight.detach().clone()
            optimizer = torch.optim.SGD(layer.parameters(), 0.1)
            x = torch.randn(8, layer.in_features, dtype=torch.float64)
            wanted = torch.randn(8, layer.out_features, dtype=torch.float64)
            for _ in range(3):
                optimizer.zero_grad()
                ((layer(x) - wanted) ** 2).mean().backward()  # a mean: large steps would cost the map's last digits
                optimizer.step()
                self.check(layer.weight)
            self.assertGreater((layer.weight - before).abs().max().item(), 1e-3)

    def test_assigned(self):
        for name, kept, layer in self.each():
            wanted = nn.init.orthogonal_(torch.empty(layer.weight.shape, dtype=torch.float64))
            if not kept and name != "householder":
                with self.assertRaisesRegex(NotImplementedError, "use_trivialization=False"):
                    layer.weight = wanted
                continue
            layer.weight = wanted
            self.assertLess((layer.weight - wanted).abs().max().item(), 1e-12)
            again = nn.Linear(layer.in_features, layer.out_features, dtype=torch.float64)
            nn.utils.parametrizations.orthogonal(again, orthogonal_map=name, use_trivialization=kept)
            again.load_state_dict(layer.state_dict())
            self.assertTrue(torch.equal(again.weight, layer.weight))

    def test_gradients(self):
        for _, _, layer in self.each():
            part = layer.parametrizations.weight
            factors = torch.randn(layer.weight.shape, dtype=torch.float64)
            start = part.original.detach() + torch.randn(part.original.shape, dtype=torch.float64).tril(-1) * 0.3
            free = 1 - torch.eye(*start.shape, dtype=torch.float64)  # householder has signs on the diagonal
            self.check_gradient(lambda X: (part[0](X * free + start.detach() * (1 - free)) * factors).sum(),
                                start.clone())

    def test_default_maps(self):
        for sides, name in (((3, 3), "matrix_exp"), ((3, 4), "householder")):
            layer = nn.utils.parametrizations.orthogonal(nn.Linear(*sides))
            self.assertEqual(layer.parametrizations.weight[0].orthogonal_map.name, name)

    def test_errors(self):
        orthogonal = nn.utils.parametrizations.orthogonal
        with self.assertRaisesRegex(ValueError, "Got: x"):
            orthogonal(nn.Linear(3, 3), orthogonal_map="x")
        with self.assertRaisesRegex(ValueError, "Got a tensor of 1 dimensions"):
            orthogonal(nn.Linear(3, 3), "bias")


if __name__ == "__main__":
    unittest.main()
