# SPDX-License-Identifier: Apache-2.0
"""Names that packages around torch use: _foreach ops, torch._utils, multiprocessing, checks, less common functions."""
import os
import signal
import subprocess
import sys
import unittest

import mindtorch_v2 as torch
from mindtorch_v2 import multiprocessing


def _works(index, folder):
    with open(os.path.join(folder, str(index)), "w", encoding="utf-8") as file:
        file.write("done")


def _raises(index):
    raise ValueError(f"in process {index}")


def _dies(index):
    os.kill(os.getpid(), signal.SIGKILL)


class Foreach(unittest.TestCase):
    def setUp(self):
        self.x = [torch.tensor([1.0, 4.0]), torch.tensor([[9.0]])]

    def same(self, found, wanted):
        self.assertEqual([t.tolist() for t in found], wanted)

    def test_forms(self):
        self.same(torch._foreach_add(self.x, 1), [[2.0, 5.0], [[10.0]]])
        self.same(torch._foreach_add(self.x, self.x, alpha=2), [[3.0, 12.0], [[27.0]]])
        self.same(torch._foreach_mul(self.x, [2, 3]), [[2.0, 8.0], [[27.0]]])
        self.same(torch._foreach_sub(self.x, 1), [[0.0, 3.0], [[8.0]]])
        self.same(torch._foreach_mul(self.x, torch.tensor(2.0)), [[2.0, 8.0], [[18.0]]])
        self.same(torch._foreach_sqrt(self.x), [[1.0, 2.0], [[3.0]]])
        self.same(torch._foreach_pow(2, self.x), [[2.0, 16.0], [[512.0]]])
        self.same(torch._foreach_maximum(self.x, 3), [[3.0, 4.0], [[9.0]]])
        self.same(torch._foreach_minimum(self.x, 3), [[1.0, 3.0], [[3.0]]])
        self.same(torch._foreach_lerp(self.x, [t * 3 for t in self.x], 0.5), [[2.0, 8.0], [[18.0]]])
        self.same(torch._foreach_addcmul(self.x, self.x, self.x, [1, 2]), [[2.0, 20.0], [[171.0]]])
        self.same(torch._foreach_addcdiv(self.x, self.x, self.x, 2), [[3.0, 6.0], [[11.0]]])
        self.same(torch._foreach_norm([torch.tensor([3.0, 4.0])]), [5.0])
        self.same(torch._foreach_max(self.x), [4.0, 9.0])

    def test_in_place(self):
        self.assertIs(torch._foreach_neg_(self.x)[0], self.x[0])
        torch._foreach_add_(self.x, self.x)
        self.same(self.x, [[-2.0, -8.0], [[-18.0]]])
        torch._foreach_copy_(self.x, [torch.ones(2), torch.ones(1, 1)])
        torch._foreach_lerp_(self.x, [t * 3 for t in self.x], [0.5, 1.0])
        self.same(self.x, [[2.0, 2.0], [[3.0]]])
        torch._foreach_zero_(self.x)
        self.same(self.x, [[0.0, 0.0], [[0.0]]])

    def test_refusals(self):
        with self.assertRaisesRegex(RuntimeError, "at least one tensor"):
            torch._foreach_add([], 1)
        with self.assertRaisesRegex(RuntimeError, "same number of tensors, got 2 and 1"):
            torch._foreach_add(self.x, self.x[:1])
        with self.assertRaisesRegex(RuntimeError, "same number of elements as scalar list"):
            torch._foreach_mul(self.x, [1.0])
        with self.assertRaises(AttributeError):
            torch._foreach_nothing

    def test_gradient_and_profile(self):
        x = torch.ones(3, requires_grad=True)
        with torch.profiler.profile() as prof:
            (made,) = torch._foreach_mul([x], 3)
        made.sum().backward()
        self.assertEqual(x.grad.tolist(), [3.0] * 3)
        self.assertEqual([e.name for e in prof.events() if e.cpu_parent is None], ["aten::_foreach_mul"])


class Functions(unittest.TestCase):
    def test_products_and_places(self):
        self.assertEqual(torch.cartesian_prod(torch.arange(2), torch.arange(2)).tolist(),
                         [[0, 0], [0, 1], [1, 0], [1, 1]])
        self.assertEqual(torch.cartesian_prod(torch.arange(2)).tolist(), [0, 1])
        self.assertEqual(torch.combinations(torch.arange(3)).tolist(), [[0, 1], [0, 2], [1, 2]])
        self.assertEqual(torch.combinations(torch.arange(2), with_replacement=True).tolist(), [[0, 0], [0, 1], [1, 1]])
        self.assertEqual(torch.combinations(torch.arange(2), 0).shape, (0,))
        with self.assertRaisesRegex(RuntimeError, "Expect a 1D vector"):
            torch.cartesian_prod(torch.ones(2, 2))
        rows, columns = torch.unravel_index(torch.tensor([5, 3, -1]), (2, 3))
        self.assertEqual((rows.tolist(), columns.tolist()), ([1, 1, 1], [2, 0, 2]))
        with self.assertRaisesRegex(TypeError, "integer dtype"):
            torch.unravel_index(torch.ones(1), (2, 3))

    def test_made(self):
        self.assertEqual(torch.logspace(0, 2, 3).tolist(), [1.0, 10.0, 100.0])
        self.assertEqual(torch.logspace(0, 2, 5, base=2, dtype=torch.int64).tolist(), [1, 1, 2, 2, 4])
        self.assertEqual(torch.logspace(0, 2, 3, out=torch.empty(3)).tolist(), [1.0, 10.0, 100.0])
        with self.assertRaisesRegex(RuntimeError, "non-negative"):
            torch.logspace(0, 1, -1)
        made = torch.empty_strided((2, 3), (1, 2), dtype=torch.int64)
        self.assertEqual((made.shape, made.stride(), made.dtype), ((2, 3), (1, 2), torch.int64))
        self.assertEqual(torch.empty_strided((2, 0), (1, 1)).shape, (2, 0))
        with self.assertRaisesRegex(RuntimeError, "dimensionality of sizes"):
            torch.empty_strided((2,), (1, 2))

    def test_arguments_by_name(self):
        made = torch.zeros(2, 3).scatter_(dim=1, index=torch.tensor([[1], [2]]), value=1)
        self.assertEqual(made.tolist(), [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
        self.assertEqual(torch.scatter(torch.zeros(2), 0, torch.tensor([1]), value=3).tolist(), [0.0, 3.0])

    def test_one_op_of_a_profile(self):
        layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2))
        calls = {"aten::diag": lambda: torch.diag(x), "aten::triu_indices": lambda: torch.triu_indices(2, 2),
                 "aten::_weight_norm": lambda: layer.weight}
        x = torch.ones(2, 2)
        for name, call in calls.items():
            with torch.profiler.profile() as prof:
                call()
            self.assertEqual([e.name for e in prof.events() if e.cpu_parent is None and "aten" in e.name], [name])

    def test_checks_and_names(self):
        torch._check(True)
        with self.assertRaisesRegex(RuntimeError, "too small"):
            torch._check(False, lambda: "too small")
        with self.assertRaisesRegex(ValueError, "Expected cond to be True"):
            torch._check_value(False)
        with self.assertRaises(TypeError):
            torch._check(1)
        self.assertEqual(torch.typename(torch.ones(1)), "torch.FloatTensor")
        self.assertEqual(torch.typename(torch.nn.Linear(1, 1)), "torch.nn.modules.linear.Linear")
        self.assertEqual(torch.typename(3), "int")
        self.assertIs(torch.get_device_module("cpu"), torch.cpu)
        self.assertIn("USE_MKL=OFF", torch.__config__.show())

    def test_dense_tensors(self):
        from mindtorch_v2 import _utils
        parts = [torch.ones(2, 2), torch.zeros(3)]
        flat = _utils._flatten_dense_tensors(parts)
        self.assertEqual(flat.tolist(), [1.0] * 4 + [0.0] * 3)
        self.assertEqual([t.shape for t in _utils._unflatten_dense_tensors(flat, parts)], [(2, 2), (3,)])
        with self.assertRaisesRegex(ValueError, "non cpu device"):
            _utils._get_device_index("cpu")


class Place(unittest.TestCase):
    def test_overloads_of_ops(self):
        program = ("import torch; a = torch.ops.aten; print(a.add.Tensor(torch.ones(1), 2).item());\n"
                   "try: a.no_such_op.default(1)\nexcept NotImplementedError as error: print(error)")
        said = subprocess.run([sys.executable, "-m", "mindtorch_v2", "-c", program], capture_output=True, text=True,
                              check=True).stdout
        self.assertEqual(said, "3.0\nmindtorch_v2 has no torch.ops.aten.no_such_op.default\n")


class Transforms(unittest.TestCase):
    def test_inverse_is_the_name_that_subclasses_define(self):
        class Shift(torch.distributions.Transform):
            bijective = True

            def _call(self, x):
                return x + 1

            def _inverse(self, y):
                return y - 1

            def log_abs_det_jacobian(self, x, y):
                return torch.zeros_like(x)
        self.assertEqual(Shift().inv(torch.tensor(3.0)).item(), 2.0)
        normal = torch.distributions.Normal(0.0, 1.0)
        made = torch.distributions.TransformedDistribution(normal, [Shift()])
        self.assertEqual(made.log_prob(torch.tensor(1.0)), normal.log_prob(torch.tensor(0.0)))

    def test_from_real_numbers_to_constraints(self):
        from mindtorch_v2.distributions import biject_to, constraints, transform_to
        x = torch.tensor([[0.3, -0.2], [0.1, 0.4]], dtype=torch.float64)
        for registry in (biject_to, transform_to):
            for constraint in (constraints.positive, constraints.unit_interval, constraints.interval(-1.0, 2.0),
                               constraints.less_than(1.0), constraints.greater_than(2.0), constraints.real):
                transform = registry(constraint)
                y = transform(x)
                self.assertTrue(constraint.check(y).all(), constraint)
                self.assertTrue(torch.allclose(transform.inv(y), x), constraint)
        factor = transform_to(constraints.lower_cholesky)(x)
        self.assertTrue(constraints.lower_cholesky.check(factor).all())
        self.assertTrue(constraints.positive_definite.check(transform_to(constraints.positive_definite)(x)).all())
        corr = biject_to(constraints.corr_cholesky)
        vector = torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64)
        made = corr(vector)
        self.assertTrue(constraints.corr_cholesky.check(made).all())
        self.assertTrue(torch.allclose(corr.inv(made), vector))
        with self.assertRaises(NotImplementedError):
            transform_to(constraints.boolean)

    def test_low_rank_is_the_whole_normal_distribution(self):
        loc, factor = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([[0.5], [0.1], [-0.4]])
        low = torch.distributions.LowRankMultivariateNormal(loc, factor, torch.tensor([1.0, 2.0, 0.5]))
        whole = torch.distributions.MultivariateNormal(loc, low.covariance_matrix)
        x = torch.tensor([[0.5, -1.0, 2.0], [0.0, 0.0, 0.0]])
        self.assertTrue(torch.allclose(low.log_prob(x), whole.log_prob(x), atol=1e-5))
        self.assertTrue(torch.allclose(low.entropy(), whole.entropy(), atol=1e-5))
        self.assertEqual(low.expand((4,)).rsample((2,)).shape, (2, 4, 3))


class Processes(unittest.TestCase):
    def test_names(self):
        self.assertTrue(issubclass(multiprocessing.Process, object))
        self.assertEqual(multiprocessing.get_sharing_strategy(), "file_descriptor")
        with self.assertRaises(AssertionError):
            multiprocessing.set_sharing_strategy("none")

    def test_spawn(self):
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            self.assertIsNone(multiprocessing.spawn(_works, (folder,), nprocs=2))
            self.assertEqual(sorted(os.listdir(folder)), ["0", "1"])
        with self.assertRaisesRegex(multiprocessing.ProcessRaisedException, "ValueError: in process 0"):
            multiprocessing.spawn(_raises)
        with self.assertRaisesRegex(multiprocessing.ProcessExitedException, "signal SIGKILL"):
            multiprocessing.start_processes(_dies, start_method="fork")


if __name__ == "__main__":
    unittest.main()
