# SPDX-License-Identifier: Apache-2.0
"""Layers as modules: parameters, values against NumPy formulas, modes, printed forms, nn.utils."""
import copy
import math
import unittest
import warnings

from support_nn import Compared, array, made, module_of, np
from test_nn_functional import conv, softmax

import mindtorch_v2 as torch
from mindtorch_v2 import nn

PRINTED = {
    "Linear(in_features=2, out_features=3, bias=True)": lambda: nn.Linear(2, 3),
    "Linear(in_features=2, out_features=3, bias=False)": lambda: nn.Linear(2, 3, bias=False),
    "Bilinear(in1_features=2, in2_features=3, out_features=4, bias=True)": lambda: nn.Bilinear(2, 3, 4),
    "Identity()": lambda: nn.Identity(3, a=2),
    "Conv2d(4, 4, kernel_size=(3, 2), stride=(2, 2), padding=(1, 1), dilation=(2, 2), groups=2, bias=False)":
        lambda: nn.Conv2d(4, 4, (3, 2), stride=2, padding=1, dilation=2, groups=2, bias=False),
    "Conv1d(4, 4, kernel_size=(3,), stride=(1,), padding=same, padding_mode=circular)":
        lambda: nn.Conv1d(4, 4, 3, padding="same", padding_mode="circular"),
    "Conv1d(1, 1, kernel_size=(1,), stride=(1,))": lambda: nn.Conv1d(1, 1, 1),
    "Embedding(3, 2, padding_idx=1)": lambda: nn.Embedding(3, 2, padding_idx=-2),
    "LayerNorm((3, 4), eps=1e-05, elementwise_affine=True, bias=True)": lambda: nn.LayerNorm((3, 4)),
    "LayerNorm((2,), eps=1e-05, elementwise_affine=False, bias=False)":
        lambda: nn.LayerNorm(2, elementwise_affine=False),
    "RMSNorm((3,), eps=None, elementwise_affine=True)": lambda: nn.RMSNorm(3),
    "GroupNorm(2, 4, eps=1e-05, affine=True, bias=True)": lambda: nn.GroupNorm(2, 4),
    "BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)":
        lambda: nn.BatchNorm1d(3),
    "BatchNorm2d(2, eps=1e-05, momentum=0.1, affine=False, bias=False, track_running_stats=False)":
        lambda: nn.BatchNorm2d(2, affine=False, track_running_stats=False),
    "Dropout(p=0.1, inplace=False)": lambda: nn.Dropout(0.1),
    "Flatten(start_dim=1, end_dim=-1)": lambda: nn.Flatten(),
    "Unflatten(dim=1, unflattened_size=(2, 2))": lambda: nn.Unflatten(1, (2, 2)),
    "MaxPool1d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)": lambda: nn.MaxPool1d(2),
    "MaxPool2d(kernel_size=(2, 3), stride=1, padding=1, dilation=1, ceil_mode=True)":
        lambda: nn.MaxPool2d((2, 3), stride=1, padding=1, ceil_mode=True),
    "AvgPool1d(kernel_size=(2,), stride=(2,), padding=(0,))": lambda: nn.AvgPool1d(2),
    "AvgPool2d(kernel_size=2, stride=2, padding=0)": lambda: nn.AvgPool2d(2),
    "AdaptiveAvgPool2d(output_size=(1, None))": lambda: nn.AdaptiveAvgPool2d((1, None)),
    "ReLU()": lambda: nn.ReLU(), "ReLU(inplace=True)": lambda: nn.ReLU(True), "ReLU6()": lambda: nn.ReLU6(),
    "LeakyReLU(negative_slope=0.2, inplace=True)": lambda: nn.LeakyReLU(0.2, True),
    "ELU(alpha=2.0)": lambda: nn.ELU(2.0), "GELU(approximate='tanh')": lambda: nn.GELU("tanh"),
    "SiLU()": lambda: nn.SiLU(), "Softmax(dim=1)": lambda: nn.Softmax(1),
    "Softplus(beta=1.0, threshold=20.0)": lambda: nn.Softplus(), "Sigmoid()": lambda: nn.Sigmoid(),
    "Hardtanh(min_val=-1.0, max_val=1.0)": lambda: nn.Hardtanh(),
    "PReLU(num_parameters=1)": lambda: nn.PReLU(),
    "CrossEntropyLoss()": lambda: nn.CrossEntropyLoss(torch.ones(3)), "MSELoss()": lambda: nn.MSELoss(),
    "ZeroPad2d((2, 2, 2, 2))": lambda: nn.ZeroPad2d(2),
    "ConstantPad1d(padding=(1, 2), value=3.0)": lambda: nn.ConstantPad1d((1, 2), 3.0),
    "MultiheadAttention(\n  (out_proj): NonDynamicallyQuantizableLinear(in_features=4, out_features=4, "
    "bias=True)\n)":
        lambda: nn.MultiheadAttention(4, 2),
}  # fmt: skip


class Printing(unittest.TestCase):
    def test_forms(self):
        for text, make in PRINTED.items():
            self.assertEqual(repr(make()), text)

    def test_every_module_is_made_and_exported(self):
        """What __all__ names exists, is a class with a docstring, and is where torch has it."""
        for name in nn.modules.__all__:
            self.assertTrue(issubclass(getattr(nn, name), nn.Module), name)
            self.assertTrue(getattr(nn, name).__doc__, name)
            self.assertTrue(getattr(nn, name).__module__.startswith("mindtorch_v2.nn.modules."), name)


ATTENDS = "linear unflatten unsqueeze transpose squeeze contiguous select select select "
ATTENDS += "view transpose " * 3
# What torch 2.13's profiler shows of a call, at the level of the caller.
PROFILES = {
    "Linear()": (lambda: nn.Linear(3, 4), "empty detach empty detach uniform_ uniform_"),
    "Conv2d()": (lambda: nn.Conv2d(3, 4, 3), "empty detach empty detach uniform_ uniform_"),
    "Embedding()": (lambda: nn.Embedding(3, 4, padding_idx=1), "empty detach normal_ select fill_"),
    "LayerNorm()": (lambda: nn.LayerNorm(3), "empty detach empty detach fill_ zero_"),
    "MultiheadAttention()": (lambda: nn.MultiheadAttention(8, 2),
                             "empty detach " * 4 + "uniform_ uniform_ uniform_ fill_ fill_"),
    "Linear": (lambda m, x: m(x), "linear", lambda: (nn.Linear(3, 4), torch.ones(2, 3))),
    "Dropout": (lambda m, x: m(x), "dropout", lambda: (nn.Dropout(), torch.ones(2, 3))),
    "Embedding": (lambda m, x: m(x), "embedding", lambda: (nn.Embedding(5, 2), torch.tensor([1, 2]))),
    "LayerNorm": (lambda m, x: m(x), "layer_norm", lambda: (nn.LayerNorm(3), torch.ones(2, 3))),
    "BatchNorm": (lambda m, x: m(x), "add_ batch_norm", lambda: (nn.BatchNorm1d(3), torch.ones(2, 3))),
    "BatchNorm cumulative": (lambda m, x: m(x), "add_ item batch_norm",
                             lambda: (nn.BatchNorm1d(3, momentum=None), torch.ones(2, 3))),
    "BatchNorm eval": (lambda m, x: m(x), "batch_norm", lambda: (nn.BatchNorm1d(3).eval(), torch.ones(2, 3))),
    "Conv2d same": (lambda m, x: m(x), "conv2d",
                    lambda: (nn.Conv2d(1, 2, 3, padding="same"), torch.ones(1, 1, 4, 4))),
    "CrossEntropyLoss": (lambda m, x: m(x, torch.ones(2, 3)), "ones cross_entropy_loss",
                         lambda: (nn.CrossEntropyLoss(), torch.ones(2, 3))),
    "attention": (lambda m, x: m(x, x, x),
                  ATTENDS + "mul transpose bmm softmax bmm transpose reshape linear view view mean",
                  lambda: (nn.MultiheadAttention(8, 2), torch.ones(5, 2, 8))),
    "attention, no weights": (lambda m, x: m(x, x, x, need_weights=False),
                              ATTENDS +
                              "view view view scaled_dot_product_attention permute reshape linear view",
                              lambda: (nn.MultiheadAttention(8, 2), torch.ones(5, 2, 8))),
    "encoder layer": (lambda m, x: m(x),
                      ATTENDS + "view view view scaled_dot_product_attention permute reshape linear view "
                      "dropout add layer_norm linear relu dropout linear dropout add layer_norm",
                      lambda: (nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), torch.ones(5, 2, 8))),
    "state_dict": (lambda m: m.state_dict(), "detach detach", lambda: (nn.Linear(2, 2),)),
    "load_state_dict": (lambda m, state: m.load_state_dict(state), "copy_ copy_",
                        lambda: (nn.Linear(2, 2), nn.Linear(2, 2).state_dict())),
    "deepcopy": (copy.deepcopy, "clone detach clone detach", lambda: (nn.Linear(2, 2),)),
    "Parameter": (nn.Parameter, "detach", lambda: (torch.ones(2),)),
}


class Profiles(unittest.TestCase):
    def shown(self, call, *args):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
            call(*args)
        events = [e for e in prof.events() if e.cpu_parent is None]
        return [e.name.replace("aten::", "") for e in sorted(events, key=lambda e: e.time_range.start)]

    def test_ops_at_the_caller_s_level(self):
        for name, (call, expected, *make) in PROFILES.items():
            with self.subTest(name):
                self.assertEqual(self.shown(call, *(make[0]() if make else ())), expected.split())

    def test_hooks_show_their_functions(self):
        m = nn.Linear(2, 2)
        m.register_full_backward_hook(lambda *args: None)
        x = torch.ones(1, 2).requires_grad_()
        self.assertEqual(self.shown(m, x), ["BackwardHookFunction", "linear", "BackwardHookFunction"])


class Layers(Compared):
    def test_linear(self):
        w, b = self.randn(3, 4), self.randn(3)
        m = module_of(nn.Linear(4, 3), weight=w, bias=b)
        self.compare(m, lambda x: x @ w.T + b, self.randn(2, 4))
        x = self.randn(5, 4)
        m.zero_grad()
        m(made(x)).sum().backward()
        self.close(m.weight.grad, np.tile(x.sum(0), (3, 1)))
        self.close(m.bias.grad, [5.0] * 3)
        self.assertIsNone(nn.Linear(1, 1, bias=False).bias)
        self.assertRaises(RuntimeError, nn.Linear(3, 2), torch.ones(2, 4))

    def test_factory_arguments(self):
        for make in (lambda **k: nn.Linear(2, 3, **k), lambda **k: nn.Conv2d(1, 2, 3, **k),
                     lambda **k: nn.Embedding(3, 2, **k), lambda **k: nn.LayerNorm(3, **k),
                     lambda **k: nn.BatchNorm1d(3, **k), lambda **k: nn.MultiheadAttention(4, 2, **k),
                     lambda **k: nn.GroupNorm(1, 2, **k),
                     lambda **k: nn.TransformerEncoderLayer(4, 2, 8, **k)):
            m = make(dtype=torch.float64, device="cpu")
            self.assertEqual({p.dtype for p in m.parameters()}, {torch.float64})

    def test_conv(self):
        w, b = self.randn(4, 1, 3, 2), self.randn(4)
        m = module_of(nn.Conv2d(2, 4, (3, 2), stride=2, padding=1, groups=2), weight=w, bias=b)
        self.compare(m, lambda x: conv(x, w, b, (2, 2), [(1, 1), (1, 1)], (1, 1), 2), self.randn(1, 2, 5, 4))
        w, b = self.randn(3, 2, 3), self.randn(3)
        for mode, name in (("circular", "wrap"), ("reflect", "reflect"), ("replicate", "edge")):
            m = module_of(nn.Conv1d(2, 3, 3, padding=2, padding_mode=mode), weight=w, bias=b)
            self.compare(m, lambda x: conv(np.pad(x, [(0, 0), (0, 0), (2, 2)], mode=name), w, b, (1,),
                                           [(0, 0)], (1,), 1),
                         self.randn(1, 2, 5))
        w = self.randn(3, 2, 4)
        m = module_of(nn.Conv1d(2, 3, 4, padding="same", padding_mode="circular"), weight=w, bias=b)
        self.compare(m, lambda x: conv(np.pad(x, [(0, 0), (0, 0), (1, 2)], mode="wrap"), w, b, (1,), [(0, 0)],
                                       (1,), 1),
                     self.randn(1, 2, 5))
        unbatched = nn.Conv2d(2, 3, 2)(torch.ones(2, 4, 4))
        self.assertEqual(tuple(unbatched.shape), (3, 3, 3))

    def test_conv_refuses(self):
        for words, make in {
            "groups must be a positive integer": lambda: nn.Conv1d(1, 1, 1, groups=0),
            "in_channels must be divisible by groups": lambda: nn.Conv1d(3, 2, 1, groups=2),
            "out_channels must be divisible by groups": lambda: nn.Conv1d(2, 3, 1, groups=2),
            "Invalid padding string 'x'": lambda: nn.Conv1d(1, 1, 1, padding="x"),
            "padding='same' is not supported for strided": lambda: nn.Conv1d(1, 1, 1, stride=2,
                                                                             padding="same"),
            "padding_mode must be one of": lambda: nn.Conv1d(1, 1, 1, padding_mode="x"),
        }.items():
            self.assertRaisesRegex(ValueError, words, make)
        self.assertRaisesRegex(RuntimeError, "to have 4 channels, but got 3 channels", nn.Conv2d(4, 4, 3),
                               torch.zeros(1, 3, 5, 5))

    def test_embedding(self):
        m = nn.Embedding(5, 3, padding_idx=-1)
        self.assertEqual((m.padding_idx, m.weight[4].tolist()), (4, [0.0] * 3))
        self.assertEqual(tuple(m(torch.tensor([[1, 2]])).shape), (1, 2, 3))
        table = torch.ones(2, 3)
        frozen = nn.Embedding.from_pretrained(table)
        self.assertFalse(frozen.weight.requires_grad)
        self.assertTrue(nn.Embedding.from_pretrained(table, freeze=False).weight.requires_grad)
        self.assertEqual(frozen(torch.tensor([1])).tolist(), [[1.0] * 3])
        self.assertRaisesRegex(AssertionError, "Padding_idx must be within", nn.Embedding, 3, 2,
                               padding_idx=3)
        self.assertRaisesRegex(AssertionError, "Shape of weight does not match", nn.Embedding, 3, 2,
                               _weight=table)
        self.assertRaisesRegex(AssertionError, "2-dimensional", nn.Embedding.from_pretrained, torch.ones(2))
        for name, value in (("max_norm", 1.0), ("scale_grad_by_freq", True), ("sparse", True)):
            self.assertRaisesRegex(NotImplementedError, name, nn.Embedding, 3, 2, **{name: value})

    def test_layer_norms(self):
        x = self.randn(3, 4)
        w, b = self.randn(4), self.randn(4)
        normal = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
        self.close(module_of(nn.LayerNorm(4), weight=w, bias=b)(made(x)), normal * w + b)
        self.close(nn.LayerNorm(4, elementwise_affine=False)(made(x)), normal)
        self.assertIsNone(nn.LayerNorm(4, bias=False).bias)
        self.close(module_of(nn.RMSNorm(4, eps=0.5), weight=w)(made(x)),
                   x / np.sqrt((x * x).mean(1, keepdims=True) + 0.5) * w)
        eps = 2.0**-52
        self.close(nn.RMSNorm(4, elementwise_affine=False)(made(x)),
                   x / np.sqrt((x * x).mean(1, keepdims=True) + eps))
        grouped = x.reshape(3, 2, 2)
        grouped = (grouped - grouped.mean(2, keepdims=True)) / np.sqrt(grouped.var(2, keepdims=True) + 1e-5)
        self.close(module_of(nn.GroupNorm(2, 4), weight=w, bias=b)(made(x)), grouped.reshape(3, 4) * w + b)
        self.assertRaisesRegex(ValueError, "must be divisible by num_groups", nn.GroupNorm, 3, 4)
        self.assertRaisesRegex(RuntimeError, "expected input with shape", nn.LayerNorm(3), torch.zeros(2, 4))


class BatchNorms(Compared):
    def test_running_statistics(self):
        m = nn.BatchNorm1d(2).double()
        mean, var = np.zeros(2), np.ones(2)
        for step in range(1, 4):
            x = self.randn(6, 2) * 3 + 1
            out = m(made(x))
            self.close(out, (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5))
            mean = 0.9 * mean + 0.1 * x.mean(0)
            var = 0.9 * var + 0.1 * x.var(0, ddof=1)
            self.assertEqual(m.num_batches_tracked.item(), step)
        self.close(m.running_mean, mean)
        self.close(m.running_var, var)
        m.eval()
        x = self.randn(4, 2)
        self.close(m(made(x)), (x - mean) / np.sqrt(var + 1e-5))
        self.assertEqual(m.num_batches_tracked.item(), 3)
        m.reset_running_stats()
        self.assertEqual((m.running_mean.tolist(), m.running_var.tolist(), m.num_batches_tracked.item()),
                         ([0, 0], [1, 1], 0))

    def test_cumulative_momentum(self):
        m = nn.BatchNorm1d(2, momentum=None).double()
        seen = [self.randn(5, 2) for _ in range(3)]
        for x in seen:
            m(made(x))
        self.close(m.running_mean, np.mean([x.mean(0) for x in seen], 0))
        self.close(m.running_var, np.mean([x.var(0, ddof=1) for x in seen], 0))

    def test_untracked(self):
        m = nn.BatchNorm1d(2, track_running_stats=False).double().eval()
        x = self.randn(5, 2)
        self.close(m(made(x)), (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5))  # by the batch, in eval too
        self.assertEqual(list(m.state_dict()), ["weight", "bias"])

    def test_images_and_gradients(self):
        m = nn.BatchNorm2d(3).double()
        self.compare(m, lambda x: (x - x.mean((0, 2, 3), keepdims=True)) /
                     np.sqrt(x.var((0, 2, 3), keepdims=True) + 1e-5),
                     self.randn(2, 3, 2, 2))
        m.eval()
        mean, var = array(m.running_mean).reshape(1, 3, 1, 1), array(m.running_var).reshape(1, 3, 1, 1)
        self.compare(m, lambda x: (x - mean) / np.sqrt(var + 1e-5), self.randn(2, 3, 2, 2))

    def test_refuses(self):
        self.assertRaisesRegex(ValueError, r"expected 2D or 3D input \(got 1D input\)", nn.BatchNorm1d(2),
                               torch.zeros(2))
        self.assertRaisesRegex(ValueError, r"expected 4D input \(got 2D input\)", nn.BatchNorm2d(2),
                               torch.zeros(2, 2))
        self.assertRaisesRegex(ValueError, "more than 1 value per channel", nn.BatchNorm1d(2),
                               torch.zeros(1, 2))
        self.assertRaisesRegex(RuntimeError, "running_mean should contain 4 elements not 2",
                               nn.BatchNorm1d(2), torch.zeros(3, 4))


class Small(Compared):
    def test_flatten(self):
        x = torch.zeros(2, 3, 4, 5)
        self.assertEqual(tuple(nn.Flatten()(x).shape), (2, 60))
        self.assertEqual(tuple(nn.Flatten(0, 2)(x).shape), (24, 5))
        self.assertEqual(tuple(nn.Unflatten(1, (3, -1))(torch.zeros(2, 6)).shape), (2, 3, 2))
        self.assertRaisesRegex(TypeError, "tuple of ints, but found type int", nn.Unflatten, 1, 3)
        self.assertRaisesRegex(TypeError, "element of type str at pos 1", nn.Unflatten, 1, (2, "a"))
        self.assertRaisesRegex(NotImplementedError, "named dimensions", nn.Unflatten, "a", (2, 2))

    def test_dropout_follows_the_mode(self):
        for m, x in ((nn.Dropout(0.5), torch.ones(1000)), (nn.Dropout1d(0.5), torch.ones(50, 20, 1)),
                     (nn.Dropout2d(0.5), torch.ones(50, 20, 1, 1))):
            self.assertEqual(set(m(x).reshape(-1).tolist()), {0.0, 2.0})
            self.assertEqual(m.eval()(x).reshape(-1).tolist(), [1.0] * 1000)
        self.assertRaisesRegex(ValueError, "between 0 and 1, but got 1.5", nn.Dropout, 1.5)
        x = torch.ones(100)
        self.assertIs(nn.Dropout(0.5, inplace=True)(x), x)

    def test_dropout_repeats_with_the_seed(self):
        m, x = nn.Dropout(0.5), torch.ones(64)
        torch.manual_seed(5)
        first = m(x).tolist()
        second = m(x).tolist()
        torch.manual_seed(5)
        self.assertEqual(m(x).tolist(), first)
        self.assertNotEqual(first, second)

    def test_pools(self):
        x = made(self.randn(1, 2, 6, 6), grad=False)
        self.assertEqual(tuple(nn.MaxPool2d(3, 2, 1)(x).shape), (1, 2, 3, 3))
        self.assertEqual(tuple(nn.AvgPool2d((2, 3))(x).shape), (1, 2, 3, 2))
        self.assertEqual(tuple(nn.AdaptiveAvgPool2d((1, None))(x).shape), (1, 2, 1, 6))
        values, places = nn.AdaptiveMaxPool2d(2, return_indices=True)(x)
        self.assertEqual((tuple(values.shape), places.dtype), ((1, 2, 2, 2), torch.int64))
        self.assertEqual(len(nn.MaxPool1d(2, return_indices=True)(x[0])), 2)
        self.close(nn.AvgPool2d(6, divisor_override=4)(x)[0, :, 0, 0], array(x).sum((0, 2, 3)) / 4)
        self.assertEqual(tuple(nn.AdaptiveAvgPool1d(3)(x[0]).shape), (2, 6, 3))

    def test_activations_call_their_functions(self):
        from mindtorch_v2.nn import functional as F

        x = made(self.randn(2, 4, 2, 2) * 3, grad=False)
        for m, expected in ((nn.LeakyReLU(0.3), F.leaky_relu(x, 0.3)), (nn.ELU(2.0), F.elu(x, 2.0)),
                            (nn.GELU("tanh"), F.gelu(x, approximate="tanh")),
                            (nn.Softplus(2.0, 1.0), F.softplus(x, 2.0, 1.0)),
                            (nn.Hardtanh(-2, 2), F.hardtanh(x, -2, 2)), (nn.ReLU6(), F.relu6(x)),
                            (nn.CELU(2.0), F.celu(x, 2.0)),
                            (nn.Softmax(1), F.softmax(x, 1)), (nn.LogSoftmax(1), F.log_softmax(x, 1)),
                            (nn.SELU(), F.selu(x)),
                            (nn.Softmin(1), F.softmin(x, 1)), (nn.Softmax2d(), F.softmax(x, -3)),
                            (nn.GLU(1), F.glu(x, 1)),
                            (nn.Threshold(0.1, 2.0), F.threshold(x, 0.1, 2.0)), (nn.Mish(), F.mish(x)),
                            (nn.SiLU(), F.silu(x)),
                            (nn.LogSigmoid(), F.logsigmoid(x)), (nn.Softsign(), F.softsign(x)),
                            (nn.Tanh(), F.tanh(x)),
                            (nn.Sigmoid(), F.sigmoid(x)), (nn.Tanhshrink(), F.tanhshrink(x)),
                            (nn.Hardswish(), F.hardswish(x)),
                            (nn.Hardsigmoid(), F.hardsigmoid(x))):
            self.close(m(x), array(expected), what=repr(m))
        self.assertRaisesRegex(ValueError, "expected input to be 3D or 4D, got 1D", nn.Softmax2d(),
                               torch.zeros(2))
        self.assertRaises(AssertionError, nn.Hardtanh, 2.0, 1.0)
        with self.assertWarnsRegex(FutureWarning, "min_value"):
            nn.Hardtanh(min_value=-3.0)
        with self.assertWarnsRegex(UserWarning, "Implicit dimension"):
            nn.Softmax()(x)

    def test_losses_pass_their_arguments(self):
        x, y = self.randn(4, 3), self.randn(4, 3)
        d = x - y
        for m, expected in ((nn.MSELoss(reduction="sum"), (d * d).sum()), (nn.L1Loss(), np.abs(d).mean()),
                            (nn.HuberLoss(reduction="none", delta=9.0), d * d / 2),
                            (nn.SmoothL1Loss(beta=0.0), np.abs(d).mean())):
            self.close(m(made(x), made(y)), expected, what=repr(m))
        ids = torch.tensor([0, 2, 1, 2])
        weight = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
        m = nn.CrossEntropyLoss(weight=weight, ignore_index=0, reduction="sum")
        logs = np.log(softmax(x, 1))
        self.close(m(made(x), ids), -(logs[1, 2] * 3 + logs[2, 1] * 2 + logs[3, 2] * 3))
        self.close(nn.NLLLoss(weight, ignore_index=0, reduction="sum")(made(logs), ids),
                   -(logs[1, 2] * 3 + logs[2, 1] * 2 + logs[3, 2] * 3))
        self.assertEqual(list(m.state_dict()), ["weight"])
        self.assertEqual(list(nn.BCEWithLogitsLoss(pos_weight=weight).state_dict()), ["pos_weight"])
        with self.assertWarnsRegex(UserWarning, "reduction='sum'"):
            self.assertEqual(nn.MSELoss(size_average=False).reduction, "sum")
        p = softmax(x, 1)
        self.close(nn.BCELoss()(made(p), made(p, grad=False)),
                   -(p * np.log(p) + (1 - p) * np.log(1 - p)).mean())
        self.close(nn.BCEWithLogitsLoss()(made(x), made(p, grad=False)),
                   (np.logaddexp(0, x) - p * x).mean())
        self.close(nn.KLDivLoss(reduction="batchmean")(made(x), made(p, grad=False)),
                   (p * (np.log(p) - x)).sum() / 4)

    def test_padding_and_distances(self):
        x = self.randn(1, 2, 3)
        self.close(nn.ConstantPad1d(1, 2.0)(made(x)),
                   np.pad(x, [(0, 0), (0, 0), (1, 1)], constant_values=2.0))
        self.close(nn.ZeroPad1d((0, 2))(made(x)), np.pad(x, [(0, 0), (0, 0), (0, 2)]))
        a, b = self.randn(3, 4), self.randn(3, 4)
        self.close(nn.PairwiseDistance(p=1.0, eps=0.0)(made(a), made(b)), np.abs(a - b).sum(1))
        self.close(nn.CosineSimilarity(dim=0)(made(a), made(b)),
                   (a * b).sum(0) / np.sqrt((a * a).sum(0) * (b * b).sum(0)))


class Attention(Compared):
    def formula(self, m, q, k, v, mask=0.0):
        """(L, N, E) each; the output and the weights of every head."""
        state = {name: array(p) for name, p in m.named_parameters()}
        heads, size = m.num_heads, m.head_dim
        if "in_proj_weight" in state:
            wq, wk, wv = np.split(state["in_proj_weight"], 3)
        else:
            wq, wk, wv = (state[f"{n}_proj_weight"] for n in "qkv")
        bq, bk, bv = np.split(state["in_proj_bias"], 3) if "in_proj_bias" in state else (0, 0, 0)
        q, k, v = q @ wq.T + bq, k @ wk.T + bk, v @ wv.T + bv
        if "bias_k" in state:
            n = k.shape[1]
            k = np.concatenate([k, np.repeat(state["bias_k"], n, 1)])
            v = np.concatenate([v, np.repeat(state["bias_v"], n, 1)])

        def parted(x):
            return x.reshape(x.shape[0], x.shape[1], heads, size).transpose(1, 2, 0, 3)

        q, k, v = parted(q), parted(k), parted(v)
        if m.add_zero_attn:
            zeros = np.zeros((*k.shape[:2], 1, size))
            k, v = np.concatenate([k, zeros], 2), np.concatenate([v, zeros], 2)
        weights = softmax(q @ k.transpose(0, 1, 3, 2) / math.sqrt(size) + mask, -1)
        out = (weights @ v).transpose(2, 0, 1, 3).reshape(q.shape[2], q.shape[0], -1)
        return out @ state["out_proj.weight"].T + state.get("out_proj.bias", 0), weights

    def check(self, m, *inputs, mask=0.0, **call):
        m = m.double()
        with torch.no_grad():
            for p in m.parameters():
                p.normal_()
        tensors = [made(x, grad=False) for x in inputs]
        if len(inputs) == 1:
            inputs, tensors = inputs * 3, tensors * 3
        elif len(inputs) == 2:
            inputs, tensors = (*inputs, inputs[1]), (*tensors, tensors[1])
        expected, weights = self.formula(m, *inputs, mask)
        for need in (True, False):
            out, found = m(*tensors, need_weights=need, **call)
            self.close(out, expected)
            if need:
                self.close(found, weights.mean(1))
            else:
                self.assertIsNone(found)
        self.close(m(*tensors, average_attn_weights=False, **call)[1], weights)

    def test_plain(self):
        q, k, v = self.randn(3, 2, 8), self.randn(5, 2, 8), self.randn(5, 2, 8)
        self.check(nn.MultiheadAttention(8, 2), q)
        self.check(nn.MultiheadAttention(8, 4, bias=False), q, k)
        self.check(nn.MultiheadAttention(8, 4), q, k, v)
        self.check(nn.MultiheadAttention(8, 2, kdim=3, vdim=4), q, self.randn(5, 2, 3), self.randn(5, 2, 4))
        self.check(nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True), q, k, v)

    def test_masks(self):
        q = self.randn(4, 2, 8)
        causal = np.triu(np.ones((4, 4), dtype=bool), 1)
        as_float = np.where(causal, -np.inf, 0.0)
        self.check(nn.MultiheadAttention(8, 2), q, mask=as_float, attn_mask=torch.tensor(causal.tolist()))
        self.check(nn.MultiheadAttention(8, 2), q, mask=as_float, attn_mask=made(as_float, grad=False),
                   is_causal=True)
        each = self.randn(4, 4, 4)
        self.check(nn.MultiheadAttention(8, 2), q, mask=each.reshape(2, 2, 4, 4),
                   attn_mask=made(each, grad=False))
        padding = np.array([[False] * 4, [False, False, True, True]])
        as_float = np.where(padding, -np.inf, 0.0)[:, None, None, :]
        self.check(nn.MultiheadAttention(8, 2), q, mask=as_float,
                   key_padding_mask=torch.tensor(padding.tolist()))
        both = as_float + np.where(causal, -np.inf, 0.0)
        self.check(nn.MultiheadAttention(8, 2), q, mask=both, key_padding_mask=torch.tensor(padding.tolist()),
                   attn_mask=torch.tensor(causal.tolist()))

    def test_batch_first_and_unbatched(self):
        q, k = self.randn(2, 3, 8), self.randn(2, 5, 8)
        m = nn.MultiheadAttention(8, 2, batch_first=True).double()
        turned = lambda x: x.transpose(1, 0, 2)  # noqa: E731
        expected, weights = self.formula(m, turned(q), turned(k), turned(k))
        out, found = m(made(q), made(k), made(k))
        self.close(out, turned(expected))
        self.close(found, weights.mean(1))
        out, found = m(made(q[0]), made(k[0]), made(k[0]))
        self.close(out, expected[:, 0])
        self.close(found, weights.mean(1)[0])

    def test_gradients(self):
        m = nn.MultiheadAttention(4, 2).double()
        self.compare(lambda x: m(x, x, x)[0], lambda x: self.formula(m, x, x, x)[0], self.randn(3, 1, 4))
        self.compare(lambda x, y: m(x, y, y, need_weights=False)[0], lambda x, y: self.formula(m, x, y, y)[0],
                     self.randn(2, 1, 4), self.randn(3, 1, 4))
        self.assertTrue(all(p.grad is not None for p in m.parameters()))

    def test_dropout_of_weights(self):
        m = nn.MultiheadAttention(4, 2, dropout=0.5)
        x = torch.ones(6, 1, 4)
        weights = m(x, x, x, average_attn_weights=False)[1]
        self.assertIn(0.0, weights.reshape(-1).tolist())
        self.assertNotIn(0.0, m.eval()(x, x, x)[1].reshape(-1).tolist())

    def test_refuses(self):
        m, q, Z = nn.MultiheadAttention(8, 2), torch.zeros(5, 2, 8), torch.zeros
        for kind, words, call in (
            (AssertionError, "expected `key` and `value` to be 3-D but found 2-D and 3-D",
             lambda: m(q, q[0], q)),
            (AssertionError, "received 1-D query tensor", lambda: m(q[0, 0], q, q)),
            (AssertionError, "expecting|was expecting embedding dimension of 8, but got 6",
             lambda: m(Z(5, 2, 6), q, q)),
            (AssertionError, "Expected key_padded_mask.shape\\[0\\] to be 2, but got 3",
             lambda: m(q, q, q, key_padding_mask=Z(3, 5))),
            (RuntimeError, r"shape of the 2D attn_mask is torch.Size\(\[3, 5\]\), but should be \(5, 5\)",
             lambda: m(q, q, q, attn_mask=Z(3, 5))),
            (RuntimeError,
             r"shape of the 3D attn_mask is torch.Size\(\[2, 5, 5\]\), but should be \(4, 5, 5\)",
             lambda: m(q, q, q, attn_mask=Z(2, 5, 5))),
            (AssertionError, "only bool and floating types of attn_mask",
             lambda: m(q, q, q, attn_mask=Z(5, 5, dtype=torch.int32))),
            (RuntimeError, "Need attn_mask if specifying the is_causal hint",
             lambda: m(q, q, q, is_causal=True)),
            (AssertionError, "does not match value shape", lambda: m(q, q, Z(4, 2, 8))),
            (AssertionError, "embed_dim must be divisible by num_heads", lambda: nn.MultiheadAttention(5, 2)),
            (ValueError, "must be greater than 0", lambda: nn.MultiheadAttention(0, 2)),
        ):
            self.assertRaisesRegex(kind, words, call)
        weight, one, static = Z(24, 8), Z(1, 1, 8), Z(4, 7, 4)

        def called(bias_k=None, bias_v=None, weight=weight, **given):
            return nn.functional.multi_head_attention_forward(
                q, q, q, 8, 2, weight, None, bias_k, bias_v, False, 0.0, Z(8, 8), None, **given)

        self.assertEqual(called(static_k=static, static_v=static)[1].shape, (2, 5, 7))
        for words, call in (
            ("bias_k is set but bias_v is None", lambda: called(one)),
            ("bias_v is set but bias_k is None", lambda: called(None, one)),
            ("bias cannot be added to static key", lambda: called(one, one, static_k=static)),
            ("bias cannot be added to static value", lambda: called(one, one, static_v=static)),
            (r"expecting static_k.size\(0\) of 4, but got 3", lambda: called(static_k=static[:3])),
            (r"expecting static_v.size\(2\) of 4, but got 3", lambda: called(static_v=static[:, :, :3])),
            (r"key_padded_mask.shape\[1\] to be 6, but got 7",
             lambda: called(one, one, key_padding_mask=Z(2, 6))),
            ("use_separate_proj_weight is False but in_proj_weight is None", lambda: called(weight=None)),
            ("use_separate_proj_weight is True but q_proj_weight is None",
             lambda: called(use_separate_proj_weight=True)),
            (r"expecting key weights shape of \(8, 8\), but got torch.Size\(\[8, 7\]\)",
             lambda: called(use_separate_proj_weight=True, q_proj_weight=Z(8, 8), k_proj_weight=Z(8, 7))),
        ):
            self.assertRaisesRegex(AssertionError, words, call)
        with self.assertWarnsRegex(UserWarning, "mismatched key_padding_mask and attn_mask"):
            m(q, q, q, attn_mask=Z(5, 5), key_padding_mask=Z(2, 5, dtype=torch.bool))


class Transformers(Compared):
    def norm(self, x):
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)

    def formula(self, layer, x):
        def attend(y):
            return array(layer.self_attn(made(y), made(y), made(y))[0])

        def feed(y):
            y = np.maximum(y @ array(layer.linear1.weight).T + array(layer.linear1.bias), 0)
            return y @ array(layer.linear2.weight).T + array(layer.linear2.bias)

        if layer.norm_first:
            x = x + attend(self.norm(x))
            return x + feed(self.norm(x))
        x = self.norm(x + attend(x))
        return self.norm(x + feed(x))

    def test_layer(self):
        x = self.randn(5, 2, 8)
        for norm_first in (False, True):
            layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, norm_first=norm_first).double()
            self.close(layer(made(x)), self.formula(layer, x))

    def test_encoder(self):
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0).double()
        encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8, dtype=torch.float64))
        self.assertIsNot(encoder.layers[0].linear1.weight, encoder.layers[1].linear1.weight)
        x = self.randn(5, 2, 8)
        expected = self.norm(self.formula(encoder.layers[1], self.formula(encoder.layers[0], x)))
        self.close(encoder(made(x)), expected)

    def test_causal_masks(self):
        """Later tokens do not change earlier results, however the mask is given."""
        encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
                                        2)
        x = torch.randn(1, 5, 8)
        y = x.clone()
        y[:, 3:] = 0
        mask = torch.triu(torch.full((5, 5), float("-inf")), diagonal=1)
        results = []
        for call in ({"mask": mask}, {"mask": mask, "is_causal": True}, {"mask": mask, "is_causal": False},
                     {"mask": mask == float("-inf")}):
            results.append(encoder(x, **call)[:, :3])
            self.assertTrue(torch.allclose(results[-1], encoder(y, **call)[:, :3], atol=1e-5), call)
        for other in results[1:]:
            self.assertTrue(torch.allclose(results[0], other, atol=1e-5))

    def test_padding(self):
        encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), 1)
        x = torch.randn(5, 1, 8)
        padding = torch.tensor([[False, False, False, True, True]])
        short = encoder(x[:3])
        self.assertTrue(torch.allclose(encoder(x, src_key_padding_mask=padding)[:3], short, atol=1e-5))

    def test_options(self):
        self.assertRaisesRegex(RuntimeError, "activation should be relu/gelu, not foo",
                               nn.TransformerEncoderLayer, 8, 2,
                               activation="foo")
        layer = nn.TransformerEncoderLayer(8, 2, 16, activation=nn.SiLU(), bias=False)
        self.assertEqual([n for n, _ in layer.named_parameters() if "bias" in n], [])
        self.assertIn("activation", layer._modules)
        layer.train()
        self.assertNotEqual(layer(torch.ones(3, 1, 8)).tolist(),
                            layer(torch.ones(3, 1, 8)).tolist())  # dropout


class Utils(Compared):
    def model(self):
        m = nn.Linear(3, 2).double()
        m.weight.grad = made(self.randn(2, 3) * 5, grad=False)
        m.bias.grad = made(self.randn(2) * 5, grad=False)
        return m, np.concatenate([array(m.weight.grad).ravel(), array(m.bias.grad)])

    def test_clip_by_norm(self):
        for kind, formula in ((2.0, lambda g: np.sqrt((g * g).sum())), (1.0, lambda g: np.abs(g).sum()),
                              (math.inf, lambda g: np.abs(g).max())):
            for foreach in (None, True, False):
                m, grads = self.model()
                total = nn.utils.clip_grad_norm_(m.parameters(), 0.5, kind, foreach=foreach)
                self.close(total, formula(grads))
                self.close(m.weight.grad, (grads * 0.5 / (formula(grads) + 1e-6))[:6].reshape(2, 3))
        m, grads = self.model()
        nn.utils.clip_grad_norm_(m.parameters(), 1e9)  # small enough already
        self.close(m.bias.grad, grads[6:])

    def test_clip_special(self):
        self.assertEqual(nn.utils.clip_grad_norm_([], 1.0).item(), 0.0)
        self.assertEqual(nn.utils.clip_grad_norm_(nn.Linear(1, 1).parameters(), 1.0).item(), 0.0)
        with self.assertWarnsRegex(UserWarning, "empty generator"):
            nn.utils.clip_grad_norm_((p for p in []), 1.0)
        p = nn.Parameter(torch.zeros(2))
        p.grad = torch.tensor([3.0, 4.0])
        self.assertEqual(nn.utils.clip_grad_norm_(p, 100.0).item(), 5.0)
        p.grad = torch.tensor([math.nan, 1.0])
        self.assertRaisesRegex(RuntimeError,
                               "The total norm of order 2.0 for gradients from `parameters` is non-finite",
                               nn.utils.clip_grad_norm_, p, 1.0, error_if_nonfinite=True)
        self.assertTrue(math.isnan(nn.utils.clip_grad_norm_(p, 1.0).item()))
        with self.assertWarnsRegex(FutureWarning, "clip_grad_norm_"):
            nn.utils.clip_grad_norm(p, 1.0)
        self.assertEqual(nn.utils.get_total_norm([torch.tensor([3.0]), torch.tensor([4.0])]).item(), 5.0)

    def test_clip_of_different_types(self):
        single, double = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1, dtype=torch.float64))
        for foreach in (None, False):
            single.grad, double.grad = torch.tensor([3.0]), torch.tensor([4.0], dtype=torch.float64)
            total = nn.utils.clip_grad_norm_([single, double], 1.0, foreach=foreach)
            self.assertAlmostEqual(total.item(), 5.0, places=5)
            self.assertAlmostEqual(single.grad.item(), 0.6, places=5)
            self.assertAlmostEqual(double.grad.item(), 0.8, places=5)

    def test_clip_by_value(self):
        for foreach in (None, True, False):
            m, grads = self.model()
            nn.utils.clip_grad_value_(m.parameters(), 1.5, foreach=foreach)
            self.close(m.bias.grad, np.clip(grads[6:], -1.5, 1.5))
        nn.utils.clip_grad_value_(m.weight, 0.5)
        self.close(m.weight.grad, np.clip(grads[:6], -0.5, 0.5).reshape(2, 3))

    def test_vectors(self):
        m, _ = self.model()
        values = np.concatenate([array(m.weight).ravel(), array(m.bias)])
        vector = nn.utils.parameters_to_vector(m.parameters())
        self.close(vector, values)
        weight = m.weight
        nn.utils.vector_to_parameters(vector.detach() * 2, m.parameters())
        self.assertIs(m.weight, weight)
        self.close(m.weight, values[:6].reshape(2, 3) * 2)
        self.assertRaisesRegex(TypeError, "expected torch.Tensor, but got: list",
                               nn.utils.vector_to_parameters, [1], [weight])
        with self.assertRaises(RuntimeError):
            nn.utils.vector_to_parameters(torch.zeros(1), [weight])


class Training(Compared):
    def test_a_network_learns(self):
        """Two moons' worth of nonlinearity: XOR, by hand-written gradient descent."""
        torch.manual_seed(1)
        x = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        y = torch.tensor([0, 1, 1, 0])
        m = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
        loss_of = nn.CrossEntropyLoss()
        first = loss_of(m(x), y).item()
        for _ in range(300):
            m.zero_grad()
            loss = loss_of(m(x), y)
            loss.backward()
            with torch.no_grad():
                for p in m.parameters():
                    p.sub_(p.grad, alpha=0.5)
        self.assertLess(loss.item(), 0.1 * first)
        self.assertEqual(m(x).argmax(1).tolist(), y.tolist())


if __name__ == "__main__":
    warnings.simplefilter("default")
    unittest.main()
