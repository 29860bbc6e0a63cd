# SPDX-License-Identifier: Apache-2.0
"""Gradients of eigenvalues and eigenvectors of any square matrix, against differences. Values are in tests/ops."""

import unittest

import mindtorch_v2 as torch


def matrix(*shape, dtype=torch.float64, seed=0):
    torch.manual_seed(seed)
    return torch.randn(*shape, dtype=dtype)


def values_loss(a):
    values = torch.linalg.eigvals(a)
    return (values * values * values).real.sum() + values.abs().sum()


def lengths_loss(a):
    """What does not depend on the vectors' phases."""
    values, vectors = torch.linalg.eig(a)
    sizes = vectors.abs()
    weights = torch.arange(1.0, sizes.size(-2) + 1, dtype=torch.float64).unsqueeze(-1)
    return (sizes * sizes * sizes * weights).sum() + values.abs().sum()


class Eig(unittest.TestCase):
    def check(self, loss, a, step=1e-6):
        a.requires_grad_()
        loss(a).backward()
        self.assertIs(a.grad.dtype, a.dtype)
        flat = a.detach().reshape(-1)
        for i, got in enumerate(a.grad.reshape(-1).tolist()):
            want = 0
            for unit in (1, 1j) if a.is_complex() else (1,):
                sides = []
                for sign in (1, -1):
                    moved = flat.clone()
                    moved[i] += sign * step * unit
                    sides.append(loss(moved.reshape(a.shape)).item())
                want += (sides[0] - sides[1]) / (2 * step) * unit
            self.assertAlmostEqual(abs(got - want), 0, 4)

    def test_gradients(self):
        rotation = torch.tensor([[0.3, -1.0], [1.2, 0.1]], dtype=torch.float64)
        for loss in (values_loss, lengths_loss):
            self.check(loss, matrix(3, 3))
            self.check(loss, matrix(2, 3, 3, seed=1))
            self.check(loss, rotation.clone())
            self.check(loss, matrix(3, 3, dtype=torch.complex128, seed=2))

    def test_phases_have_none(self):
        a = torch.tensor([[0.0, -1.0], [1.0, 0.5]], dtype=torch.float64, requires_grad=True)
        loss = torch.linalg.eig(a)[1].imag.pow(2).sum()
        with self.assertRaisesRegex(RuntimeError, "specified up to multiplication by e"):
            loss.backward()

    def test_what_is_no_number(self):
        for wrong in ("nan", "inf"):
            with self.assertRaisesRegex(RuntimeError, "input tensor should not contain infs or NaNs"):
                torch.linalg.eigvals(torch.full((2, 2), float(wrong)))

    def test_names(self):
        a = matrix(3, 3).requires_grad_()
        found = torch.linalg.eig(a)
        self.assertEqual(found.eigenvalues.grad_fn.name(), "LinalgEigBackward0")
        self.assertEqual(found.eigenvectors.dtype, torch.complex128)
        self.assertEqual(torch.linalg.eigvals(a).grad_fn.name(), "LinalgEigBackward0")
        self.assertIsNone(torch.linalg.eigvals(a.detach()).grad_fn)


if __name__ == "__main__":
    unittest.main()
