# SPDX-License-Identifier: Apache-2.0
"""svd_lowrank and pca_lowrank: what they promise of matrices of low rank, and of others near to one.
tests/peers/functions/torch_rare_functions.py compares them with torch."""

import unittest

import mindtorch_v2 as torch


def made(*shape, rank):
    return torch.randn(*shape[:-1], rank, dtype=torch.float64) @ torch.randn(
        *shape[:-2], rank, shape[-1], dtype=torch.float64)


class LowRank(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def near(self, a, b, limit=1e-10):
        self.assertEqual(a.shape, b.shape)
        self.assertLess((a - b).abs().max().item(), limit)

    def check(self, U, S, V, A, limit=1e-10):
        self.near(U @ torch.diag_embed(S) @ V.mT, A, limit)
        unit = torch.eye(S.size(-1), dtype=torch.float64).expand(*S.shape, S.size(-1))
        self.near(U.mT @ U, unit)
        self.near(V.mT @ V, unit)
        self.assertTrue(bool((S[..., :-1] >= S[..., 1:]).all()))

    def test_matrices_of_that_rank(self):
        for shape in ((20, 9), (9, 20), (3, 12, 7), (2, 2, 5, 8)):
            A = made(*shape, rank=3)
            for q in (3, 5):
                U, S, V = torch.svd_lowrank(A, q)
                self.check(U, S, V, A)
                self.near(S, torch.linalg.svdvals(A)[..., :q])
            M = A.mean(-2, keepdim=True)
            self.check(*torch.svd_lowrank(A, 4, M=M), A - M)
            self.check(*torch.pca_lowrank(A, 4), A - M)
            self.check(*torch.pca_lowrank(A, 4, center=False), A)

    def test_near_to_the_best(self):
        A = made(60, 40, rank=4) + 1e-3 * torch.randn(60, 40, dtype=torch.float64)
        U, S, V = torch.svd_lowrank(A, 6)
        best = torch.linalg.svdvals(A)
        rest = torch.linalg.matrix_norm(A - U @ torch.diag(S) @ V.T, 2).item()
        self.assertLess(rest, 1.5 * best[6].item())
        self.near(S[:4], best[:4], 1e-6)

    def test_components(self):
        direction = torch.tensor([3.0, 4.0, 0.0], dtype=torch.float64)
        rows = torch.randn(50, 1, dtype=torch.float64) * direction + torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
        _, S, V = torch.pca_lowrank(rows, 2)
        self.near(V[:, 0].abs(), direction / 5)
        self.assertLess(S[1].item(), 1e-10)

    def test_gradient(self):
        A = made(8, 5, rank=2).requires_grad_()
        U, S, V = torch.svd_lowrank(A, 2)
        S.sum().backward()
        self.near(A.grad, (U @ V.mT).detach())  # that of the nuclear norm

    def test_sizes_and_errors(self):
        A = made(7, 5, rank=5)
        self.assertEqual([tuple(each.shape) for each in torch.svd_lowrank(A)], [(7, 5), (5,), (5, 5)])
        self.assertEqual([tuple(each.shape) for each in torch.pca_lowrank(A, 0)], [(7, 0), (0,), (5, 0)])
        for q in (6, -1):
            with self.assertRaisesRegex(ValueError, f"q\\(={q}\\) must be non-negative integer"):
                torch.pca_lowrank(A, q)
        with self.assertRaisesRegex(ValueError, r"niter\(=-2\)"):
            torch.pca_lowrank(A, 2, niter=-2)


if __name__ == "__main__":
    unittest.main()
