# SPDX-License-Identifier: Apache-2.0
"""The tensor runtime: every feature it promises exists.

Whether results are right is tested elsewhere: test_tensor, test_indexing, test_interop,
test_autograd_python, test_nn_modules, test_optim, test_serialization, and against torch by
tests/peers.
"""
import os
import unittest

from support_contract import ContractTest, torch
from mindtorch_v2.profiler import ProfilerActivity, profile

CPU = [ProfilerActivity.CPU]


class Tensors(ContractTest):
    """Tensors, indexing, in-place ops, interchange, repr, files."""

    def test_dtypes(self):
        for name in ("float32", "float64", "int32", "int64", "uint8", "bool", "float16", "bfloat16"):
            dtype = getattr(torch, name)
            x = torch.ones(3, dtype=dtype)
            self.assertEqual((x.dtype, x.tolist()), (dtype, [True] * 3 if name == "bool" else [1] * 3))

    def test_promotion_views_and_indexing(self):
        x = torch.arange(6).reshape(2, 3)
        self.assertIs((x + 1.5).dtype, torch.float32)
        self.assertEqual(x.t()[1:].tolist(), [[1, 4], [2, 5]])
        self.assertEqual(x[:, [2, 0]].tolist(), [[2, 0], [5, 3]])
        self.assertEqual(x[x > 3].tolist(), [4, 5])
        self.assertEqual((x + torch.tensor([[10], [20]])).tolist(), [[10, 11, 12], [23, 24, 25]])

    def test_version_counters(self):
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        z = y.exp()
        before = z._version
        z.add_(1)
        self.assertEqual(z._version, before + 1)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            z.sum().backward()

    def test_numpy_and_dlpack_share_memory(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("NumPy is not installed")
        x = torch.zeros(3)
        x.numpy()[0] = 5
        self.assertEqual(x[0].item(), 5)
        array = numpy.zeros(3, dtype=numpy.float32)
        torch.from_numpy(array).add_(2)
        self.assertEqual(array.tolist(), [2, 2, 2])
        torch.from_dlpack(x).fill_(7)
        self.assertEqual(x.tolist(), [7, 7, 7])

    def test_repr_and_files(self):
        self.assertEqual(repr(torch.tensor([1.0, 2.5])), "tensor([1.0000, 2.5000])")
        torch.save({"x": torch.arange(3)}, self.path("t.pt"))
        self.assertEqual(torch.load(self.path("t.pt"))["x"].tolist(), [0, 1, 2])

    def test_what_is_not_there_is_named(self):
        for call, name in ((lambda: torch.no_such_function, "no_such_function"),
                           (lambda: torch.ones(2).no_such_method(), "no_such_method"),
                           (lambda: torch.nn.NoSuchLayer, "NoSuchLayer"),
                           (lambda: torch.optim.NoSuchOptimizer, "NoSuchOptimizer"),
                           (lambda: torch.nn.functional.no_such, "no_such")):
            with self.assertRaises((AttributeError, NotImplementedError)) as caught:
                call()
            self.assertIn(name, str(caught.exception))

    def test_every_op_passes_the_hook(self):
        """One dispatcher: whatever computes is recorded."""
        x = torch.ones(2, 2)
        calls = (lambda: x + x, lambda: x @ x, lambda: x[0], lambda: x[x > 0], lambda: torch.cat([x, x]),
                 lambda: x.clone(), lambda: x.add_(1), lambda: x.to(torch.float64), lambda: torch.empty(2),
                 lambda: torch.nn.functional.softmax(x, 0), lambda: x.sum().item(),
                 lambda: torch.tensor([1.0]), lambda: -x, lambda: x == x)
        for number, call in enumerate(calls):
            with profile(activities=CPU) as prof:
                call()
            self.assertTrue([e for e in prof.events() if e["kind"] == "op"], number)


class Autograd(ContractTest):
    """backward, grad, hooks, Function, modes."""

    def test_all(self):
        x = torch.ones(2, requires_grad=True)
        unused = torch.ones(2, requires_grad=True)
        y = (x * 3)
        y.retain_grad()
        seen = []
        y.register_hook(lambda grad: seen.append(grad.tolist()))
        y.backward(gradient=torch.tensor([1.0, 2.0]), retain_graph=True)
        self.assertEqual((x.grad.tolist(), y.grad.tolist(), seen), ([3, 6], [1, 2], [[1, 2]]))
        self.assertIsNone(torch.autograd.grad(y.sum(), [x, unused], allow_unused=True)[1])
        self.assertFalse(y.detach().requires_grad)
        y.detach_()
        self.assertIsNone(y.grad_fn)
        with torch.no_grad():
            self.assertFalse((x * 2).requires_grad)
            with torch.enable_grad():
                self.assertTrue((x * 2).requires_grad)

    def test_function(self):
        class Triple(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 3

            @staticmethod
            def backward(ctx, grad):
                return grad * 3
        x = torch.ones(2, requires_grad=True)
        with profile(activities=CPU) as prof:
            Triple.apply(x).sum().backward()
        self.assertEqual(x.grad.tolist(), [3, 3])
        named = {e.name: e for e in prof.events()}
        self.assertEqual(named["Triple"].sequence_nr, named["TripleBackward"].sequence_nr)


class Networks(ContractTest):
    """nn, functional, optim."""

    def test_names(self):
        for name in ("Module Parameter Linear Conv1d Conv2d Embedding LayerNorm BatchNorm1d BatchNorm2d "
                     "Dropout ReLU GELU Sigmoid Tanh Softmax MSELoss CrossEntropyLoss NLLLoss L1Loss "
                     "BCEWithLogitsLoss MultiheadAttention Sequential ModuleList ModuleDict ParameterList "
                     "init functional").split():
            self.assertTrue(hasattr(torch.nn, name), name)
        for name in ("SGD Adam AdamW RMSprop Adagrad lr_scheduler Optimizer").split():
            self.assertTrue(hasattr(torch.optim, name), name)
        for name in ("StepLR MultiStepLR ExponentialLR CosineAnnealingLR LambdaLR LinearLR OneCycleLR "
                     "ReduceLROnPlateau").split():
            self.assertTrue(hasattr(torch.optim.lr_scheduler, name), name)

    def test_every_optimizer_learns(self):
        for name, rate in (("SGD", 0.1), ("Adam", 0.05), ("AdamW", 0.05), ("RMSprop", 0.02),
                           ("Adagrad", 0.2)):
            torch.manual_seed(1)
            net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
            optimizer = getattr(torch.optim, name)(net.parameters(), lr=rate)
            x = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
            y = torch.tensor([[0.0], [1.0], [1.0], [0.0]])
            losses = []
            for _ in range(200):
                loss = torch.nn.functional.mse_loss(net(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            self.assertLess(losses[-1], 0.6 * losses[0], name)

    def test_accelerators_tell_the_truth(self):
        """is_available() says what is there; without an accelerator, using one is an error."""
        for name in ("is_available device_count current_device set_device synchronize memory_allocated "
                     "max_memory_allocated memory_reserved reset_peak_memory_stats empty_cache "
                     "get_device_name").split():
            self.assertTrue(callable(getattr(torch.npu, name)), name)
            self.assertTrue(callable(getattr(torch.cuda, name)), name)
        if not torch.npu.is_available():
            self.assertEqual(torch.npu.device_count(), 0)
            for device in ("npu", "cuda"):
                with self.assertRaises(RuntimeError):
                    torch.ones(2, device=device)

    def test_state_survives(self):
        net = torch.nn.Linear(2, 2)
        torch.save(net.state_dict(), self.path("n.pt"))
        other = torch.nn.Linear(2, 2)
        other.load_state_dict(torch.load(self.path("n.pt")))
        self.assertEqual(other.weight.tolist(), net.weight.tolist())
        self.assertTrue(os.path.getsize(self.path("n.pt")) > 0)


if __name__ == "__main__":
    unittest.main()
