# SPDX-License-Identifier: Apache-2.0
"""torch.nn.functional: values and derivatives against formulas in NumPy, reductions, errors."""
import math
import sys
import unittest
import warnings

from support_nn import Compared, array, made, np

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional as F

if np is None:
    print("skip: NumPy is not installed; its formulas are what layers are compared with")
    sys.exit(77)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def log_softmax(x, axis):
    return x - x.max(axis,
                     keepdims=True) - np.log(np.exp(x - x.max(axis, keepdims=True)).sum(axis, keepdims=True))


def erf(x):
    return np.vectorize(math.erf)(x)


def softplus(x, beta=1.0):
    return np.log1p(np.exp(-np.abs(x * beta))) / beta + np.maximum(x, 0)


SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805
# name: (ours, formula)
ACTIVATIONS = {
    "relu": (F.relu, lambda x: np.maximum(x, 0)),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.2), lambda x: np.where(x > 0, x, 0.2 * x)),
    "elu": (lambda x: F.elu(x, 1.5), lambda x: np.where(x > 0, x, 1.5 * np.expm1(x))),
    "selu": (F.selu, lambda x: SELU_SCALE * np.where(x > 0, x, SELU_ALPHA * np.expm1(x))),
    "celu": (lambda x: F.celu(x, 1.3), lambda x: np.where(x > 0, x, 1.3 * np.expm1(x / 1.3))),
    "gelu": (F.gelu, lambda x: x * 0.5 * (1 + erf(x / math.sqrt(2)))),
    "gelu tanh": (lambda x: F.gelu(x, approximate="tanh"),
                  lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
    "silu": (F.silu, lambda x: x * sigmoid(x)),
    "mish": (F.mish, lambda x: x * np.tanh(softplus(x))),
    "sigmoid": (F.sigmoid, sigmoid),
    "tanh": (F.tanh, np.tanh),
    "logsigmoid": (F.logsigmoid, lambda x: -softplus(-x)),
    "softplus": (lambda x: F.softplus(x, 2), lambda x: softplus(x, 2.0)),
    "hardtanh": (lambda x: F.hardtanh(x, -0.5, 0.8), lambda x: np.clip(x, -0.5, 0.8)),
    "relu6": (lambda x: F.relu6(x * 5), lambda x: np.clip(x * 5, 0, 6)),
    "hardsigmoid": (F.hardsigmoid, lambda x: np.clip(x + 3, 0, 6) / 6),
    "hardswish": (F.hardswish, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "softsign": (F.softsign, lambda x: x / (1 + np.abs(x))),
    "tanhshrink": (F.tanhshrink, lambda x: x - np.tanh(x)),
    "threshold": (lambda x: F.threshold(x, 0.1, 7.0), lambda x: np.where(x > 0.1, x, 7.0)),
    "glu": (F.glu, lambda x: x[..., :3] * sigmoid(x[..., 3:])),
    "softmax": (lambda x: F.softmax(x, 0), lambda x: softmax(x, 0)),
    "softmin": (lambda x: F.softmin(x, -1), lambda x: softmax(-x, -1)),
    "log_softmax": (lambda x: F.log_softmax(x, 1), lambda x: log_softmax(x, 1)),
    "normalize": (F.normalize, lambda x: x / np.sqrt((x * x).sum(1, keepdims=True))),
    "rms_norm": (lambda x: F.rms_norm(x, (6,), eps=0.1),
                 lambda x: x / np.sqrt((x * x).mean(1, keepdims=True) + 0.1)),
}
IN_PLACE = {
    "relu": (lambda x: F.relu(x, inplace=True), ACTIVATIONS["relu"][1]),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.2, inplace=True), ACTIVATIONS["leaky_relu"][1]),
    "elu": (lambda x: F.elu(x, 1.5, inplace=True), ACTIVATIONS["elu"][1]),
    "selu": (lambda x: F.selu(x, inplace=True), ACTIVATIONS["selu"][1]),
    "celu": (lambda x: F.celu(x, 1.3, inplace=True), ACTIVATIONS["celu"][1]),
    "silu": (lambda x: F.silu(x, inplace=True), ACTIVATIONS["silu"][1]),
    "mish": (lambda x: F.mish(x, inplace=True), ACTIVATIONS["mish"][1]),
    "hardtanh": (lambda x: F.hardtanh(x, -0.5, 0.8, inplace=True), ACTIVATIONS["hardtanh"][1]),
    "hardsigmoid": (lambda x: F.hardsigmoid(x, inplace=True), ACTIVATIONS["hardsigmoid"][1]),
    "hardswish": (lambda x: F.hardswish(x, inplace=True), ACTIVATIONS["hardswish"][1]),
    "threshold": (lambda x: F.threshold(x, 0.1, 7.0, inplace=True), ACTIVATIONS["threshold"][1]),
    "relu6": (lambda x: F.relu6(x, inplace=True), lambda x: np.clip(x, 0, 6)),
}


class Activations(Compared):
    def test_values_and_derivatives(self):
        for name, (ours, formula) in ACTIVATIONS.items():
            with self.subTest(name):
                self.compare(ours, formula, self.randn(4, 6) * 2)

    def test_in_place(self):
        """The input itself changes, is what is given back, and has the right derivative."""
        for name, (ours, formula) in IN_PLACE.items():
            with self.subTest(name):
                def run(x, ours=ours):
                    changed = x * 1.0
                    result = ours(changed)
                    self.assertIs(result, changed)
                    return result

                self.compare(run, formula, self.randn(3, 4) * 2)

    def test_in_place_on_a_leaf_that_needs_a_gradient(self):
        for name, (ours, _) in IN_PLACE.items():
            with self.subTest(name), self.assertRaises(RuntimeError):
                ours(made(self.randn(2, 2)))

    def test_softmax_dtype_and_implicit_dim(self):
        x = made(self.randn(2, 3), torch.float32, grad=False)
        self.assertIs(F.softmax(x, 1, dtype=torch.float64).dtype, torch.float64)
        with self.assertWarnsRegex(UserWarning, "Implicit dimension choice for softmax"):
            self.close(F.softmax(x), softmax(array(x), 1), 1e-6)
        with self.assertWarnsRegex(UserWarning, "Implicit dimension choice for log_softmax"):
            self.close(F.log_softmax(x[0]), log_softmax(array(x[0]), 0), 1e-6)

    def test_prelu(self):
        formula = lambda x, w: np.where(x > 0, x, w.reshape(-1, 1) * x)  # noqa: E731
        self.compare(F.prelu, formula, self.randn(2, 3, 4), self.randn(3))
        self.compare(F.prelu, lambda x, w: np.where(x > 0, x, w * x), self.randn(5), self.randn(1))
        with self.assertRaisesRegex(RuntimeError, "parameter numbers = 2 and channel size = 3"):
            F.prelu(made(self.randn(4, 3)), made(self.randn(2)))

    def test_gumbel_softmax(self):
        x = made(self.randn(50, 4))
        hard = F.gumbel_softmax(x, hard=True)
        self.close(hard.sum(1), np.ones(50), 1e-6)
        self.assertEqual(sorted(set(np.round(array(hard), 6).ravel().tolist())), [0.0, 1.0])
        soft = F.gumbel_softmax(x, tau=0.5)
        self.close(soft.sum(1), np.ones(50), 1e-6)
        hard.sum().backward()
        self.assertIsNotNone(x.grad)

    def test_errors(self):
        x = torch.zeros(3)
        with self.assertRaisesRegex(ValueError, "min_val cannot be greater than max_val"):
            F.hardtanh(x, 2, 1)
        with self.assertRaisesRegex(RuntimeError,
                                    "Halving dimension must be even, but dimension 0 is size 3"):
            F.glu(x)
        with self.assertRaisesRegex(AttributeError, "'no_such_function'"):
            F.no_such_function  # noqa: B018 - asking is the test


def reduced(values, reduction):
    return values if reduction == "none" else values.mean() if reduction == "mean" else values.sum()


def huber(d, delta):
    return np.where(np.abs(d) <= delta, 0.5 * d * d, delta * (np.abs(d) - 0.5 * delta))


class Losses(Compared):
    def test_regression(self):
        for reduction in ("mean", "sum", "none"):
            formulas = {
                F.mse_loss: lambda d: d * d,
                F.l1_loss: np.abs,
                F.smooth_l1_loss: lambda d: huber(d, 1.0),
                F.huber_loss: lambda d: huber(d, 1.0),
                lambda *a, **k: F.smooth_l1_loss(*a, **k, beta=0.3): lambda d: huber(d, 0.3) / 0.3,
                lambda *a, **k: F.smooth_l1_loss(*a, **k, beta=0.0): np.abs,
                lambda *a, **k: F.huber_loss(*a, **k, delta=0.3): lambda d: huber(d, 0.3),
            }
            for ours, formula in formulas.items():
                with self.subTest(reduction=reduction, loss=getattr(ours, "__name__", "")):
                    self.compare(lambda x, y: ours(x, y, reduction=reduction),
                                 lambda x, y: reduced(formula(x - y), reduction), self.randn(3, 4),
                                 self.randn(3, 4))

    def test_broadcast_warns(self):
        x, y = made(self.randn(3, 1)), made(self.randn(3), grad=False)
        for loss in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss):
            with self.assertWarnsRegex(UserWarning, r"target size \(torch.Size\(\[3\]\)\) that is different"):
                found = loss(x, y, reduction="none")
            self.assertEqual(tuple(found.shape), (3, 3))

    def test_weights(self):
        x, y, w = self.randn(3, 4), self.randn(3, 4), self.rng.rand(3, 4) + 0.1
        d = x - y
        for loss, one in ((F.mse_loss, d * d), (F.l1_loss, np.abs(d)), (F.huber_loss, huber(d, 1.0))):
            args = made(x, grad=False), made(y, grad=False)
            weight = made(w, grad=False)
            self.close(loss(*args, weight=weight, reduction="none"), one * w)
            self.close(loss(*args, weight=weight, reduction="sum"), (one * w).sum())
            mean = (one * w).mean() if loss is F.huber_loss else (one * w).sum() / w.sum()
            self.close(loss(*args, weight=weight), mean)
            with self.assertRaisesRegex(ValueError, "Weights and input must have the same size"):
                loss(*args, weight=torch.ones(2))

    def cross_entropy(self, x, target, weight, reduction, ignore=-100, smoothing=0.0):
        logs = log_softmax(x, 1)
        n = np.arange(len(target))
        kept = target != ignore
        safe = np.where(kept, target, 0)
        per_class = weight[safe] * kept
        picked = -logs[n, safe] * per_class
        smooth = -(logs * weight).sum(1) * kept
        losses = (1 - smoothing) * picked + smoothing / x.shape[1] * smooth
        return losses.sum() / per_class.sum() if reduction == "mean" else reduced(losses, reduction)

    def test_cross_entropy(self):
        target = np.array([0, 3, 2, 2, 1, 4])
        weight = self.rng.rand(5) + 0.2
        ids = made(target, torch.int64)
        for reduction in ("mean", "sum", "none"):
            for ignore, smoothing in ((-100, 0.0), (2, 0.0), (-100, 0.1), (2, 0.3)):
                with self.subTest(reduction=reduction, ignore=ignore, smoothing=smoothing):
                    self.compare(
                        lambda x: F.cross_entropy(x, ids, made(weight, grad=False), ignore_index=ignore,
                                                  reduction=reduction, label_smoothing=smoothing),
                        lambda x: self.cross_entropy(x, target, weight, reduction, ignore, smoothing),
                        self.randn(6, 5))
                    self.compare(
                        lambda x: F.nll_loss(F.log_softmax(x, 1), ids, made(weight, grad=False),
                                             ignore_index=ignore, reduction=reduction),
                        lambda x: self.cross_entropy(x, target, weight, reduction, ignore),
                        self.randn(6, 5))

    def test_cross_entropy_of_probabilities(self):
        target = softmax(self.randn(6, 5), 1)
        for reduction in ("mean", "sum", "none"):
            def formula(x, reduction=reduction):
                losses = -(log_softmax(x, 1) * target).sum(1)
                return losses.sum() / 6 if reduction == "mean" else reduced(losses, reduction)

            self.compare(lambda x: F.cross_entropy(x, made(target, grad=False), reduction=reduction), formula,
                         self.randn(6, 5))

    def test_cross_entropy_over_pixels(self):
        target = self.rng.randint(0, 3, (2, 4, 2))

        def formula(x):
            logs = log_softmax(x, 1)
            n, h, w = np.ogrid[:2, :4, :2]
            return -logs[n, target, h, w].mean()

        self.compare(lambda x: F.cross_entropy(x, made(target, torch.int64)), formula, self.randn(2, 3, 4, 2))

    def test_binary(self):
        target = self.rng.rand(4, 3)
        weight, pos = self.rng.rand(3) + 0.1, self.rng.rand(3) + 0.1
        for reduction in ("mean", "sum", "none"):
            with self.subTest(reduction):
                self.compare(
                    lambda x: F.binary_cross_entropy(F.sigmoid(x), made(target, grad=False),
                                                     made(weight, grad=False), reduction=reduction),
                    lambda x: reduced(-weight * (target * np.log(sigmoid(x)) +
                                                 (1 - target) * np.log(1 - sigmoid(x))), reduction),
                    self.randn(4, 3))
                self.compare(
                    lambda x: F.binary_cross_entropy_with_logits(
                        x, made(target, grad=False), made(weight, grad=False), reduction=reduction,
                        pos_weight=made(pos, grad=False)),
                    lambda x: reduced(weight * (pos * target * softplus(-x) + (1 - target) * softplus(x)),
                                      reduction),
                    self.randn(4, 3))

    def test_kl_div(self):
        target = softmax(self.randn(4, 3), 1)
        for reduction in ("batchmean", "sum", "none"):
            def formula(x, reduction=reduction):
                losses = target * (np.log(target) - x)
                return losses.sum() / 4 if reduction == "batchmean" else reduced(losses, reduction)

            self.compare(lambda x: F.kl_div(x, made(target, grad=False), reduction=reduction), formula,
                         self.randn(4, 3))
            self.compare(lambda x: F.kl_div(x, made(np.log(target), grad=False), reduction=reduction,
                                            log_target=True), formula, self.randn(4, 3))
        with self.assertWarnsRegex(UserWarning, "'batchmean' divides only by the batch size"):
            F.kl_div(torch.zeros(2, 2), torch.ones(2, 2))

    def test_kl_div_of_zero_probabilities(self):
        """0 log 0 is 0, and nothing becomes NaN on the way back, not even in the target's gradient."""
        x, target = made(self.randn(1, 3)), made(np.array([[0.0, 0.25, 0.75]]))
        loss = F.kl_div(x, target, reduction="sum")
        self.close(loss, sum(p * (math.log(p) - float(v)) for p, v in zip([0.25, 0.75], array(x)[0][1:])))
        loss.backward()
        self.close(x.grad, [[0.0, -0.25, -0.75]])
        self.assertTrue(np.isfinite(array(target.grad)[0][1:]).all())

    def test_reduction_names(self):
        x = torch.zeros(2)
        with self.assertRaisesRegex(ValueError, "^foo is not a valid value for reduction$"):
            F.mse_loss(x, x, reduction="foo")
        with self.assertWarnsRegex(UserWarning, "please use reduction='sum' instead"):
            self.assertEqual(F.mse_loss(x, x + 1, size_average=False).item(), 2.0)
        with self.assertWarnsRegex(UserWarning, "please use reduction='none' instead"):
            self.assertEqual(F.l1_loss(x, x, reduce=False).tolist(), [0.0, 0.0])
        with self.assertWarnsRegex(UserWarning, "please use reduction='mean' instead"):
            F.cross_entropy(torch.zeros(2, 3), torch.tensor([0, 1]), size_average=True)

    def test_size_errors(self):
        Z = torch.zeros
        with self.assertRaisesRegex(ValueError, r"Using a target size \(torch.Size\(\[2, 2\]\)\)"):
            F.binary_cross_entropy(Z(2), Z(2, 2))
        with self.assertRaisesRegex(ValueError, r"must be the same as input size \(torch.Size\(\[2\]\)\)"):
            F.binary_cross_entropy_with_logits(Z(2), Z(2, 2))
        with self.assertRaisesRegex(ValueError,
                                    "Expected input batch_size .2. to match target batch_size .3."):
            F.cross_entropy(Z(2, 3), torch.tensor([0, 1, 2]))
        with self.assertRaisesRegex(RuntimeError, "label_smoothing must be between 0.0 and 1.0"):
            F.cross_entropy(Z(1, 3), torch.tensor([0]), label_smoothing=2.0)
        with self.assertRaisesRegex(RuntimeError, "non-positive values for delta"):
            F.huber_loss(Z(2), Z(2), delta=0)
        with self.assertRaisesRegex(RuntimeError, "negative values for beta"):
            F.smooth_l1_loss(Z(2), Z(2), beta=-1)


def conv(x, w, b, stride, pads, dilation, groups):
    """Any number of dimensions; pads: (before, after) each. Slow and plain."""
    n, c = x.shape[:2]
    x = np.pad(x, [(0, 0), (0, 0), *pads])
    spatial = [(x.shape[2 + i] - dilation[i] * (w.shape[2 + i] - 1) - 1) // stride[i] +
               1 for i in range(len(pads))]
    out = np.zeros((n, w.shape[0], *spatial))
    per_in, per_out = c // groups, w.shape[0] // groups
    for o in range(w.shape[0]):
        g = o // per_out
        for place in np.ndindex(*spatial):
            for tap in np.ndindex(*w.shape[2:]):
                at = tuple(p * s + t * d for p, s, t, d in zip(place, stride, tap, dilation))
                out[(slice(None), o, *place)] += x[(slice(None), slice(g * per_in, (g + 1) * per_in),
                                                    *at)] @ w[
                    (o, slice(None), *tap)]
    return out + b.reshape(1, -1, *[1] * len(pads))


class Layers(Compared):
    def test_linear(self):
        self.compare(F.linear, lambda x, w, b: x @ w.T + b, self.randn(2, 3, 4), self.randn(5, 4),
                     self.randn(5))
        self.compare(F.linear, lambda x, w: x @ w.T, self.randn(4), self.randn(5, 4))

    def test_bilinear(self):
        self.compare(F.bilinear, lambda a, c, w, b: np.einsum("ni,oij,nj->no", a, w, c) + b,
                     self.randn(3, 2), self.randn(3, 4), self.randn(5, 2, 4), self.randn(5))

    def test_conv(self):
        self.compare(lambda x, w, b: F.conv1d(x, w, b, 2, 1, 2, 2),
                     lambda x, w, b: conv(x, w, b, (2,), [(1, 1)], (2,), 2),
                     self.randn(2, 4, 8), self.randn(2, 2, 3), self.randn(2))
        self.compare(lambda x, w, b: F.conv2d(x, w, b, (1, 2), (1, 0)),
                     lambda x, w, b: conv(x, w, b, (1, 2), [(1, 1), (0, 0)], (1, 1), 1),
                     self.randn(1, 2, 4, 5), self.randn(3, 2, 3, 2), self.randn(3))

    def test_conv_same(self):
        """An odd total is padded by one more at the end, as torch does."""
        for kernel, dilation in ((4, 1), (3, 1), (2, 3), (3, 2), (1, 1)):
            total = dilation * (kernel - 1)
            with self.subTest(kernel=kernel, dilation=dilation):
                self.compare(
                    lambda x, w, b: F.conv1d(x, w, b, padding="same", dilation=dilation),
                    lambda x, w, b: conv(x, w, b, (1,), [(total // 2, total - total // 2)], (dilation,), 1),
                    self.randn(2, 2, 7), self.randn(3, 2, kernel), self.randn(3))
        self.compare(lambda x, w, b: F.conv2d(x, w, b, padding="same"),
                     lambda x, w, b: conv(x, w, b, (1, 1), [(1, 2), (1, 1)], (1, 1), 1),
                     self.randn(1, 1, 5, 4), self.randn(2, 1, 4, 3), self.randn(2))
        self.compare(lambda x, w, b: F.conv2d(x, w, b, stride=2, padding="valid"),
                     lambda x, w, b: conv(x, w, b, (2, 2), [(0, 0), (0, 0)], (1, 1), 1),
                     self.randn(1, 1, 5, 4), self.randn(2, 1, 2, 3), self.randn(2))
        with self.assertRaisesRegex(RuntimeError, "Invalid padding string: 'foo'"):
            F.conv1d(torch.zeros(1, 1, 4), torch.zeros(1, 1, 3), padding="foo")
        with self.assertRaisesRegex(RuntimeError, "not supported for strided convolutions"):
            F.conv2d(torch.zeros(1, 1, 4, 4), torch.zeros(1, 1, 3, 3), stride=(1, 2), padding="same")

    def test_pad(self):
        x = self.randn(2, 3, 4)
        self.compare(lambda x: F.pad(x, (1, 2)), lambda x: np.pad(x, [(0, 0), (0, 0), (1, 2)]), x)
        self.compare(lambda x: F.pad(x, (0, 1, 2, 0), value=5.0),
                     lambda x: np.pad(x, [(0, 0), (2, 0), (0, 1)], constant_values=5.0), x)
        self.compare(lambda x: F.pad(x, (-1, 2, 0, -1)),
                     lambda x: np.pad(x, [(0, 0), (0, 0), (0, 2)])[:, :-1, 1:], x)
        for mode, name in (("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")):
            with self.subTest(mode):
                self.compare(lambda x: F.pad(x, (2, 1, 1, 2), mode=mode),
                             lambda x: np.pad(x, [(0, 0), (0, 0), (1, 2), (2, 1)], mode=name),
                             self.randn(1, 2, 3, 4))
        ints = F.pad(torch.tensor([[1, 2]]), (1, 0))
        self.assertEqual((ints.tolist(), ints.dtype), ([[0, 1, 2]], torch.int64))
        self.assertEqual(F.pad(torch.tensor([True]), (1, 1)).tolist(), [False, True, False])
        for bad in ((1,), (1,) * 8):
            with self.assertRaises((ValueError, RuntimeError)):
                F.pad(torch.zeros(2, 3), bad)
        with self.assertRaises(NotImplementedError):
            F.pad(torch.zeros(2, 3), (1, 1), mode="foo")
        with self.assertRaises(RuntimeError):
            F.pad(torch.zeros(2, 3), (-2, -2))
        with self.assertRaises(RuntimeError):
            F.pad(torch.zeros(1, 2, 3), (3, 3), mode="reflect")

    def test_norms(self):
        def layer(x, w, b):
            return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * w + b

        self.compare(lambda x, w, b: F.layer_norm(x, (4,), w, b), layer, self.randn(3, 4), self.randn(4),
                     self.randn(4))

        def batch(x, w, b):
            centred = (x - x.mean((0, 2), keepdims=True)) / np.sqrt(x.var((0, 2), keepdims=True) + 1e-5)
            return centred * w.reshape(1, -1, 1) + b.reshape(1, -1, 1)

        self.compare(lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), batch,
                     self.randn(3, 2, 4), self.randn(2), self.randn(2))

        def group(x, w, b):
            parts = x.reshape(x.shape[0], 2, -1)
            parts = (parts - parts.mean(-1, keepdims=True)) / np.sqrt(parts.var(-1, keepdims=True) + 1e-5)
            return parts.reshape(x.shape) * w.reshape(1, -1, 1) + b.reshape(1, -1, 1)

        self.compare(lambda x, w, b: F.group_norm(x, 2, w, b), group, self.randn(2, 4, 3), self.randn(4),
                     self.randn(4))
        with self.assertRaisesRegex(ValueError,
                                    r"more than 1 value per channel when training, got input size"):
            F.batch_norm(torch.zeros(1, 2), None, None, training=True)
        with self.assertRaisesRegex(RuntimeError, "divisible by num_groups"):
            F.group_norm(torch.zeros(2, 4), 3)
        with self.assertRaisesRegex(RuntimeError,
                                    r"normalized_shape=\[3\], expected input with shape \[\*3\]"):
            F.rms_norm(torch.zeros(2, 4), (3,))

    def test_pooling(self):
        def windows(x, size, step):
            count = (x.shape[-1] - size) // step + 1
            return np.stack([x[..., i * step : i * step + size] for i in range(count)], -2)

        x = self.randn(2, 3, 8)
        self.compare(lambda x: F.max_pool1d(x, 3, 2), lambda x: windows(x, 3, 2).max(-1), x)
        self.compare(lambda x: F.avg_pool1d(x, 3, 2), lambda x: windows(x, 3, 2).mean(-1), x)
        self.compare(lambda x: F.avg_pool1d(x, 2), lambda x: windows(x, 2, 2).mean(-1), x)
        image = self.randn(2, 3, 4, 6)
        blocks = lambda x: x.reshape(2, 3, 2, 2, 3, 2)  # noqa: E731
        self.compare(lambda x: F.max_pool2d(x, 2), lambda x: blocks(x).max((3, 5)), image)
        self.compare(lambda x: F.avg_pool2d(x, 2), lambda x: blocks(x).mean((3, 5)), image)
        self.compare(lambda x: F.adaptive_avg_pool2d(x, (2, 3)), lambda x: blocks(x).mean((3, 5)), image)
        self.compare(lambda x: F.adaptive_avg_pool2d(x, (None, 3)),
                     lambda x: x.reshape(2, 3, 4, 3, 2).mean(4), image)
        self.compare(lambda x: F.adaptive_max_pool2d(x, (2, 3)), lambda x: blocks(x).max((3, 5)), image)
        values, indices = F.max_pool1d(made(x), 3, 2, return_indices=True)
        self.close(values, windows(x, 3, 2).max(-1))
        self.close(indices, windows(x, 3, 2).argmax(-1) + np.arange(3) * 2)
        values, indices = F.max_pool2d(made(image), 2, return_indices=True)
        flat = image.reshape(2, 3, 24)
        self.close(values, np.take_along_axis(flat, array(indices).astype(int).reshape(2, 3, 6),
                                              2).reshape(2, 3, 2, 3))
        with self.assertRaises(ValueError):
            F.adaptive_avg_pool2d(made(image), (1, 2, 3))

    def test_embedding(self):
        ids = np.array([[1, 0, 2], [2, 2, 1]])
        self.compare(lambda w: F.embedding(made(ids, torch.int64), w), lambda w: w[ids], self.randn(3, 2))
        weight = made(self.randn(3, 2))
        F.embedding(made(ids, torch.int64), weight, padding_idx=-1).sum().backward()
        self.close(weight.grad, [[1, 1], [2, 2], [0, 0]])
        for bad in (3, -4):
            with self.assertRaisesRegex(AssertionError, "Padding_idx must be within num_embeddings"):
                F.embedding(made(ids, torch.int64), weight, padding_idx=bad)
        with self.assertRaises(IndexError):
            F.embedding(torch.tensor([3]), weight)
        for name, value in (("max_norm", 1.0), ("scale_grad_by_freq", True), ("sparse", True)):
            with self.assertRaisesRegex(NotImplementedError, name):
                F.embedding(torch.tensor([1]), weight, **{name: value})

    def test_one_hot_and_pixels(self):
        self.assertEqual(F.one_hot(torch.tensor([1, 0]), 3).tolist(), [[0, 1, 0], [1, 0, 0]])
        self.compare(lambda x: F.pixel_shuffle(x, 2),
                     lambda x: x.reshape(1, 2, 2, 2, 3, 2).transpose(0, 1, 4, 2, 5, 3).reshape(1, 2, 6, 4),
                     self.randn(1, 8, 3, 2))
        with self.assertRaisesRegex(RuntimeError, "divisible by the square of upscale_factor"):
            F.pixel_shuffle(torch.zeros(1, 3, 2, 2), 2)

    def test_distances(self):
        def cosine(a, b):
            return (a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1))

        self.compare(F.cosine_similarity, cosine, self.randn(3, 4), self.randn(3, 4))
        self.compare(F.pairwise_distance, lambda a, b: np.sqrt(((a - b + 1e-6) ** 2).sum(1)),
                     self.randn(3, 4),
                     self.randn(3, 4))


class Dropouts(Compared):
    def test_share_and_scale(self):
        x = torch.ones(200, 100)
        y = F.dropout(x, 0.3)
        self.assertEqual(sorted(set(round(v, 5) for row in y.tolist() for v in row)),
                         [0.0, round(1 / 0.7, 5)])
        kept = float((y != 0).to(torch.float32).mean())
        self.assertAlmostEqual(kept, 0.7, delta=0.02)

    def test_the_gradient_has_the_same_mask(self):
        x = made(np.ones((20, 20)))
        y = F.dropout(x, 0.5)
        y.sum().backward()
        self.close(x.grad, array(y))

    def test_not_training(self):
        x = made(self.randn(3, 3))
        for function in (F.dropout, F.dropout1d):
            self.close(function(x, 0.5, training=False), array(x))

    def test_certain(self):
        x = torch.ones(3, 4, 5)
        for function in (F.dropout, F.dropout1d):
            self.assertEqual(float(function(x, 1.0).abs().sum()), 0.0)
            self.assertEqual(function(x, 0.0).tolist(), x.tolist())
            self.assertEqual(float(function(x.clone(), 1.0, inplace=True).abs().sum()), 0.0)

    def test_in_place(self):
        x = torch.ones(10, 10)
        self.assertIs(F.dropout(x, 0.5, inplace=True), x)
        self.assertTrue(set(v for row in x.tolist() for v in row) <= {0.0, 2.0})
        leaf = made(self.randn(3))
        changed = leaf * 1.0
        F.dropout(changed, 0.5, inplace=True).sum().backward()
        self.assertTrue(set(array(leaf.grad).tolist()) <= {0.0, 2.0})

    def test_channels(self):
        x = torch.ones(8, 6, 5, 4)
        y = F.dropout2d(x, 0.5)
        per_channel = y.reshape(8, 6, 20)
        self.assertTrue(all(len(set(c)) == 1 for row in per_channel.tolist() for c in row))
        self.assertEqual(set(v for row in per_channel[:, :, 0].tolist() for v in row), {0.0, 2.0})
        unbatched = F.dropout1d(torch.ones(64, 3), 0.5)
        self.assertTrue(all(len(set(row)) == 1 for row in unbatched.tolist()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with self.assertRaisesRegex(RuntimeError, "at least 2 dimensions"):
                F.dropout2d(torch.ones(3))
        with self.assertWarnsRegex(UserWarning, "please switch to using dropout1d"):
            F.dropout2d(torch.ones(2, 3, 4))
        with self.assertRaisesRegex(RuntimeError, "dropout1d: Expected 2D or 3D input, but received a 1D"):
            F.dropout1d(torch.ones(3))

    def test_probability(self):
        for function in (F.dropout, F.dropout1d, F.dropout2d):
            for p in (-0.1, 1.1):
                with self.assertRaisesRegex(ValueError, f"between 0 and 1, but got {p}"):
                    function(torch.ones(2, 2, 2), p)


class Attention(Compared):
    def formula(self, q, k, v, mask=0.0, scale=None):
        scores = q @ np.swapaxes(k, -1, -2) * (scale or 1 / math.sqrt(q.shape[-1])) + mask
        return softmax(scores, -1) @ v

    def test_scaled_dot_product(self):
        q, k, v = self.randn(1, 2, 3, 4), self.randn(1, 2, 5, 4), self.randn(1, 2, 5, 4)
        F_sdpa = F.scaled_dot_product_attention
        self.compare(F_sdpa, self.formula, q, k, v)
        self.compare(lambda q, k, v: F_sdpa(q, k, v, scale=0.3), lambda q, k,
                     v: self.formula(q, k, v, 0.0, 0.3), q, k, v)
        mask = self.randn(3, 5)
        self.compare(lambda q, k, v: F_sdpa(q, k, v, made(mask, grad=False)),
                     lambda q, k, v: self.formula(q, k, v, mask), q, k, v)
        causal = np.where(np.tril(np.ones((3, 3))) > 0, 0.0, -np.inf)
        self.compare(lambda q, k, v: F_sdpa(q, k, v, is_causal=True),
                     lambda q, k, v: self.formula(q, k, v, causal), q, k[:, :, :3], v[:, :, :3])

    def test_groups_of_heads(self):
        q, k, v = self.randn(1, 4, 3, 4), self.randn(1, 2, 5, 4), self.randn(1, 2, 5, 4)
        self.compare(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
                     lambda q, k, v: self.formula(q, k.repeat(2, 1), v.repeat(2, 1)), q, k, v)
        with self.assertRaisesRegex(RuntimeError, "must divide the number of heads in query"):
            F.scaled_dot_product_attention(*[torch.zeros(1, h, 2, 2) for h in (3, 2, 2)], enable_gqa=True)


class Bags(unittest.TestCase):
    """tests/peers/nn/torch_more.py compares them with torch's."""

    def test_modes(self):
        table = torch.arange(15.0).reshape(5, 3).requires_grad_()
        index, starts = torch.tensor([1, 2, 4]), torch.tensor([0, 2, 2])
        bag = torch.nn.functional.embedding_bag
        self.assertEqual(bag(index, table, starts, mode="sum").tolist(), [[9, 11, 13], [0, 0, 0], [12, 13, 14]])
        self.assertEqual(bag(index, table, starts).tolist(), [[4.5, 5.5, 6.5], [0, 0, 0], [12, 13, 14]])
        self.assertEqual(bag(index, table, starts, mode="max").tolist(), [[6, 7, 8], [0, 0, 0], [12, 13, 14]])
        self.assertEqual(bag(index, table, starts, padding_idx=1).tolist(), [[6, 7, 8], [0, 0, 0], [12, 13, 14]])
        bag(index, table, starts, mode="sum", per_sample_weights=torch.tensor([1.0, 2.0, 3.0])).sum().backward()
        self.assertEqual(table.grad[:, 0].tolist(), [0, 1, 2, 0, 3])
        with self.assertRaisesRegex(NotImplementedError, "max_norm=1.0"):
            torch.nn.EmbeddingBag(5, 3, max_norm=1.0)

    def test_rrelu(self):
        x = torch.tensor([-1.0, -2.0, 3.0])
        module = torch.nn.RReLU(0.2, 0.4)
        made = module(x) / x
        self.assertTrue(bool(((made[:2] >= 0.2) & (made[:2] <= 0.4)).all()), made)
        self.assertEqual(float(made[2]), 1.0)
        self.assertTrue(torch.allclose(module.eval()(x), torch.tensor([-0.3, -0.6, 3.0])))


if __name__ == "__main__":
    unittest.main()
