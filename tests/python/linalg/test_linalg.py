#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch.linalg from Python: names, results with names, errors, gradients of symmetric matrices (whose cases in
tests/ops cannot step by single elements), what profiles show."""
import math
import pickle
import unittest
import warnings

import mindtorch_v2 as torch
from mindtorch_v2.autograd import gradcheck, gradgradcheck
from mindtorch_v2.profiler import ProfilerActivity, profile

L = torch.linalg
F64 = torch.float64


def matrix(*shape, seed=1, diagonal=0.0):
    g = torch.Generator().manual_seed(seed)
    a = torch.rand(*shape, dtype=F64, generator=g) - 0.5
    return a + diagonal * torch.eye(shape[-1], dtype=F64) if diagonal else a


def both(x):
    """A symmetric matrix of any."""
    return (x + x.mT) / 2


def definite(x):
    return x @ x.mT + torch.eye(x.size(-1), dtype=F64)


class Names(unittest.TestCase):
    def test_rows_are_in_their_module(self):
        self.assertIs(torch.linalg, __import__("mindtorch_v2.linalg", fromlist=["x"]))
        for name in L.__all__:
            self.assertTrue(hasattr(L, name), name)
        self.assertFalse(hasattr(torch, "linalg_inv"))
        self.assertFalse(hasattr(torch.Tensor, "linalg_inv"))

    def test_older_names(self):
        a = matrix(3, 3, diagonal=2.0)
        for name in "det logdet slogdet inverse pinverse qr svd matrix_exp geqrf".split():
            function, method = getattr(torch, name), getattr(torch.Tensor, name)
            ones, others = function(a), method(a)
            for one, other in zip(ones, others) if isinstance(ones, tuple) else ((ones, others),):
                self.assertTrue(torch.equal(one, other), name)
        self.assertTrue(torch.allclose(a.matrix_power(2), a @ a))
        self.assertTrue(torch.allclose(torch.chain_matmul(a, a, a), a @ a @ a))
        self.assertEqual(a.lu()[1].dtype, torch.int32)
        self.assertEqual(len(torch.lu(a, get_infos=True)), 3)
        self.assertTrue(torch.allclose(torch.norm(a, "nuc"), L.svdvals(a).sum()))

    def test_results_have_names(self):
        a = matrix(3, 3, diagonal=2.0)
        self.assertEqual(type(L.qr(a)).__name__, "linalg_qr")
        self.assertTrue(torch.allclose(L.qr(a).Q @ L.qr(a).R, a))
        u, s, vh = L.svd(a)
        self.assertTrue(torch.equal(L.svd(a).S, s))
        self.assertEqual(type(torch.svd(a)).__name__, "svd")
        self.assertTrue(torch.allclose(torch.svd(a).V, vh.mT))
        self.assertTrue(repr(L.slogdet(a)).startswith("torch.return_types.linalg_slogdet(\nsign=tensor("))
        self.assertEqual(L.lstsq(a, a).rank.item(), 3)

    def test_out(self):
        a, out = matrix(3, 3, diagonal=2.0), torch.empty(3, 3, dtype=F64)
        self.assertIs(L.inv(a, out=out), out)
        self.assertTrue(torch.equal(out, L.inv(a)))
        q, r = torch.empty(3, 3, dtype=F64), torch.empty(3, 3, dtype=F64)
        self.assertIs(L.qr(a, out=(q, r)).Q, q)
        self.assertTrue(torch.allclose(q @ r, a))

    def test_strides(self):
        a = matrix(2, 3, 3, diagonal=2.0)
        self.assertEqual(L.inv(a).stride(), (9, 1, 3))
        self.assertEqual(L.solve(a, matrix(2, 3, 2)).stride(), (6, 1, 3))
        self.assertEqual(L.solve(a, matrix(2, 2, 3), left=False).stride(), (6, 3, 1))
        self.assertIsNone(L.inv(a)._base)


class Errors(unittest.TestCase):
    def test_linalg_error(self):
        self.assertTrue(issubclass(L.LinAlgError, RuntimeError))
        with self.assertRaisesRegex(L.LinAlgError, r"^linalg.inv: \(Batch element 1\): The diagonal element 2 is zero, "
                                                   "the inversion could not be completed"):
            L.inv(torch.stack([torch.eye(2), torch.tensor([[1.0, 2.0], [2.0, 4.0]])]))
        with self.assertRaises(L.LinAlgError) as caught:
            L.cholesky(-torch.eye(3))
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((type(again), str(again)), (L.LinAlgError, str(caught.exception)))

    def test_numbers_that_are_not_finite(self):
        for value in (math.nan, math.inf):
            a = torch.full((3, 3), value)
            for function in (L.svd, L.svdvals, L.eigh, L.pinv, lambda a: L.matrix_norm(a, 2), L.cond):
                self.assertRaisesRegex(L.LinAlgError, "failed to converge", function, a)
            self.assertRaises(L.LinAlgError, L.cholesky, torch.full((3, 3), math.nan))
            self.assertTrue(L.matrix_exp(a).isnan().all())
        self.assertTrue(L.inv(torch.full((3, 3), math.nan)).isnan().all())

    def test_half_types(self):
        for dtype in (torch.float16, torch.bfloat16):
            a = torch.eye(3).to(dtype)
            for function in (L.inv, L.det, L.qr, L.svd, L.eigh, L.cholesky, L.lu, L.pinv, torch.logdet):
                self.assertRaises(RuntimeError, function, a)
            self.assertEqual(L.matrix_exp(a).dtype, dtype)

    def test_wrong_uses(self):
        a = torch.eye(3)
        with self.assertRaisesRegex(TypeError, "upper"):
            L.solve_triangular(a, a)
        with self.assertRaisesRegex(RuntimeError, "narrowing"):
            L.vector_norm(a.double(), dtype=torch.float32)
        with self.assertRaisesRegex(RuntimeError, "not differentiable when mode='complete' and nrows > ncols"):
            L.qr(torch.rand(3, 2, requires_grad=True), "complete").Q.sum().backward()
        with self.assertRaisesRegex(NotImplementedError, "singular values of 'linalg_lstsq'"):
            L.lstsq(torch.rand(3, 2, requires_grad=True), torch.rand(3, 1),
                    driver="gelsd").singular_values.sum().backward()


class Gradients(unittest.TestCase):
    def check(self, function, *shape, second=True):
        x = matrix(*shape).requires_grad_()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertTrue(gradcheck(function, (x,)))
            if second:
                self.assertTrue(gradgradcheck(function, (x,)))

    def test_symmetric(self):
        self.check(lambda x: L.cholesky(definite(x)), 2, 3, 3)
        self.check(lambda x: L.cholesky(definite(x), upper=True), 3, 3)
        self.check(lambda x: torch.cholesky(definite(x)), 3, 3)
        self.check(lambda x: L.eigvalsh(both(x)), 2, 3, 3)
        self.check(lambda x: L.eigh(both(x))[1] ** 2, 3, 3)
        self.check(lambda x: L.pinv(both(x), hermitian=True), 3, 3)
        self.check(lambda x: torch.logdet(definite(x)), 3, 3)

    def test_triangles(self):
        b = matrix(3, 2, seed=2)
        for upper in (False, True):
            part = torch.triu if upper else torch.tril
            self.check(lambda x: torch.cholesky_inverse(part(x + torch.eye(3, dtype=F64)), upper=upper), 3, 3)
            self.check(lambda x: torch.cholesky_solve(b, part(x + torch.eye(3, dtype=F64)), upper=upper), 3, 3)

    def test_full_matrices(self):
        self.check(lambda x: L.svd(x).U[:, :2] ** 2, 3, 2)
        self.check(lambda x: L.svd(x).Vh[:2] ** 2, 2, 3)

    def test_norms(self):
        for ord in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
            self.check(lambda x: L.matrix_norm(x, ord), 2, 3, 4, second=ord in ("fro", "nuc"))
            self.check(lambda x: L.cond(x, ord), 3, 3, second=False)

    def test_a_singular_matrix_has_a_determinant(self):
        for a in (torch.zeros(2, 2, dtype=F64), torch.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=F64)):
            a.requires_grad_()
            grad, = torch.autograd.grad(L.det(a), a)
            (p, q), (r, s) = a.tolist()
            self.assertTrue(torch.allclose(grad, torch.tensor([[s, -r], [-q, p]], dtype=F64)))

    def test_nodes(self):
        a = matrix(3, 3, diagonal=2.0).requires_grad_()
        self.assertEqual(L.solve(a, a).grad_fn.name(), "LinalgSolveExBackward0")
        p, lower, upper = L.lu(a)
        self.assertFalse(p.requires_grad)
        self.assertEqual(upper.grad_fn.name(), "LinalgLuBackward0")
        self.assertFalse(torch.lu_unpack(*L.lu_factor(a)).P.requires_grad)
        with torch.no_grad():
            self.assertEqual(torch._C.ops._linalg_svd(a, False, False)[0].numel(), 0)


class Shown(unittest.TestCase):
    def test_profiles(self):
        a = matrix(3, 3, diagonal=2.0)
        for function, name in ((L.inv, "linalg_inv"), (torch.inverse, "inverse"), (torch.det, "det"), (L.qr, "linalg_qr"),
                               (L.norm, "linalg_norm"), (torch.logdet, "logdet"), (L.pinv, "linalg_pinv"),
                               (torch.lu, "_lu_with_info"), (L.svdvals, "linalg_svdvals"),
                               (lambda a: L.solve(a, a), "linalg_solve")):
            with profile(activities=[ProfilerActivity.CPU]) as prof:
                function(a)
            outer = [event.name for event in prof.events() if event.cpu_parent is None]
            self.assertEqual(outer, [f"aten::{name}"])


if __name__ == "__main__":
    unittest.main()
