# SPDX-License-Identifier: Apache-2.0
"""Distributions: known values, shapes, gradients of samples; tests/peers/torch_distributions.py compares all with torch."""

import math
import unittest

import mindtorch_v2 as torch
from mindtorch_v2 import distributions as D


def t(*values):
    return torch.tensor(values, dtype=torch.float64)


class Values(unittest.TestCase):
    def near(self, got, *expected):
        flat = got.reshape(-1).tolist()
        self.assertEqual(len(flat), len(expected))
        for x, y in zip(flat, expected):
            self.assertTrue(math.isclose(x, y, rel_tol=1e-9, abs_tol=1e-12), (flat, expected))

    def test_densities(self):
        half_log_tau = 0.5 * math.log(2 * math.pi)
        self.near(D.Normal(t(0.0), t(2.0)).log_prob(t(2.0)), -0.5 - math.log(2) - half_log_tau)
        self.near(D.Gamma(t(3.0), t(2.0)).log_prob(t(1.0)), math.log(8) - 2 - math.lgamma(3))
        self.near(D.Gamma(t(3.0), t(2.0)).cdf(t(1.0)), 1 - 5 * math.exp(-2))
        self.near(D.Beta(t(2.0), t(3.0)).log_prob(t(0.5)), math.log(12 * 0.5 * 0.25))
        self.near(D.StudentT(t(1.0)).log_prob(t(1.0)), -math.log(2 * math.pi))
        self.near(D.Poisson(t(2.0)).log_prob(t(3.0)), 3 * math.log(2) - 2 - math.log(6))
        self.near(D.Binomial(4, t(0.25)).log_prob(t(1.0)), math.log(4 * 0.25 * 0.75**3))
        self.near(D.Categorical(t(1.0, 3.0)).log_prob(torch.tensor(1)), math.log(0.75))
        self.near(D.Multinomial(3, t(0.5, 0.5)).log_prob(t(1.0, 2.0)), math.log(3 / 8))
        self.near(D.Dirichlet(t(1.0, 1.0, 1.0)).log_prob(t(0.2, 0.3, 0.5)), math.log(2))
        covariance = torch.tensor([[4.0, 2.0], [2.0, 2.0]], dtype=torch.float64)
        log_det = math.log(4.0)
        for one in (
            D.MultivariateNormal(t(0.0, 0.0), covariance),
            D.MultivariateNormal(t(0.0, 0.0), precision_matrix=torch.tensor([[0.5, -0.5], [-0.5, 1.0]]).double()),
        ):
            self.near(one.log_prob(t(2.0, 0.0)), -2 * half_log_tau - log_det / 2 - 1.0)
            self.near(one.covariance_matrix, 4.0, 2.0, 2.0, 2.0)

    def test_quantiles_are_inverses(self):
        p = t(0.1, 0.5, 0.8)
        for one in (
            D.Normal(0.5, 2.0),
            D.Uniform(-1.0, 3.0),
            D.Exponential(0.7),
            D.Laplace(0.2, 1.5),
            D.Cauchy(0.2, 1.5),
            D.LogNormal(0.2, 0.5),
            D.HalfNormal(2.0),
            D.Gumbel(0.3, 2.0),
        ):
            one = one.expand((3,))
            got = one.cdf(one.icdf(p))
            self.assertTrue((got - p).abs().max().item() < 1e-6, (one, got))

    def test_divergences(self):
        p, q = D.Normal(t(0.0), t(1.0)), D.Normal(t(1.0), t(2.0))
        self.near(D.kl_divergence(p, q), math.log(2) + 2 / 8 - 0.5)
        self.near(D.kl_divergence(D.Independent(p, 1), D.Independent(q, 1)), math.log(2) + 2 / 8 - 0.5)
        self.near(
            D.kl_divergence(D.Categorical(t(0.5, 0.5)), D.Categorical(t(0.25, 0.75))),
            0.5 * math.log(2) + 0.5 * math.log(2 / 3),
        )
        with self.assertRaisesRegex(NotImplementedError, "No KL.* for p type Normal and q type Categorical"):
            D.kl_divergence(p, D.Categorical(t(0.5, 0.5)))

    def test_gradients_pass_through_samples(self):
        torch.manual_seed(0)
        a = t(3.0).requires_grad_()
        D.Gamma(a, t(1.0)).rsample((20000,)).mean().backward()
        self.assertAlmostEqual(a.grad.item(), 1.0, delta=0.05)  # the mean is the shape
        probs = t(0.3, 0.7).requires_grad_()
        D.Categorical(probs).log_prob(torch.tensor(0)).backward()
        self.near(probs.grad, 1 / 0.3 - 1, -1.0)
        sample = D.Normal(t(0.0).requires_grad_(), t(1.0)).sample()
        self.assertFalse(sample.requires_grad)

    def test_shapes_and_validation(self):
        one = D.Normal(torch.zeros(3, 1), torch.ones(2))
        self.assertEqual((one.batch_shape, one.event_shape, one.sample((5,)).shape), ((3, 2), (), (5, 3, 2)))
        mixture = D.MixtureSameFamily(D.Categorical(t(0.3, 0.7)), D.Independent(D.Normal(torch.zeros(2, 3), 1.0), 1))
        self.assertEqual(mixture.sample((4,)).shape, (4, 3))
        with self.assertRaisesRegex(ValueError, "Expected parameter scale .* to satisfy the constraint GreaterThan"):
            D.Normal(0.0, t(-1.0))
        D.Normal(0.0, t(-1.0), validate_args=False)
        with self.assertRaisesRegex(ValueError, "within the support .Boolean"):
            D.Bernoulli(t(0.5)).log_prob(t(0.3))
        from mindtorch_v2.distributions.normal import Normal

        self.assertIs(Normal, D.Normal)

    def test_transforms(self):
        x = t(-1.0, 0.3, 2.0)
        for one in (
            D.ExpTransform(),
            D.SigmoidTransform(),
            D.TanhTransform(),
            D.SoftplusTransform(),
            D.AffineTransform(1.0, -2.0),
            D.ComposeTransform([D.AffineTransform(0.0, 0.5), D.ExpTransform()]),
        ):
            leaf = x.clone().requires_grad_()
            y = one(leaf)
            (slope,) = torch.autograd.grad(y.sum(), leaf)
            self.assertLess((one.inv(y) - leaf).abs().max().item(), 1e-9)
            self.assertLess((one.log_abs_det_jacobian(leaf, y) - slope.abs().log()).abs().max().item(), 1e-9)
        stick = D.StickBreakingTransform()
        shares = stick(x)
        self.assertAlmostEqual(shares.sum().item(), 1.0)
        self.assertLess((stick.inv(shares) - x).abs().max().item(), 1e-9)


class Further(unittest.TestCase):
    def test_generalized_pareto(self):
        """torch 2.13 computes it in float32 alone; these are the formulas."""
        one = D.GeneralizedPareto(t(0.5, 1.0, 0.0), t(1.5, 2.0, 2.0), t(0.2, -0.4, 0.0))
        x = t(2.0, 3.0, 1.0)
        z = [1.0, 1.0, 0.5]
        expected = [-math.log(1.5) - 6 * math.log1p(0.2), -math.log(2) + 1.5 * math.log1p(-0.4), -math.log(2) - 0.5]
        for got, value in zip(one.log_prob(x).tolist(), expected):
            self.assertAlmostEqual(got, value, 12)
        survival = [1.2 ** -5, 0.6 ** 2.5, math.exp(-z[2])]
        for got, value in zip(one.cdf(x).tolist(), survival):
            self.assertAlmostEqual(got, 1 - value, 12)
        self.assertLess((one.icdf(one.cdf(x)) - x).abs().max().item(), 1e-12)
        self.assertAlmostEqual(one.mean[0].item(), 0.5 + 1.5 / 0.8)
        with self.assertRaisesRegex(ValueError, "to be within the support"):
            one.log_prob(t(7.0, 7.0, 7.0))  # beyond the end of the second, 1 + 2 / 0.4
        torch.manual_seed(1)
        drawn = one.sample((20000,))
        self.assertLess((drawn.mean(0) - one.mean).abs().max().item(), 0.1)

    def test_angles(self):
        torch.manual_seed(1)
        one = D.VonMises(t(0.5, -1.0), t(1.5, 90.0))
        drawn = one.sample((20000,))
        self.assertTrue((drawn.abs() <= math.pi).all())
        sine, cosine = drawn.sin().mean(0), drawn.cos().mean(0)
        self.assertLess((torch.atan2(sine, cosine) - one.loc).abs().max().item(), 0.05)
        self.assertLess((1 - (sine**2 + cosine**2).sqrt() - one.variance).abs().max().item(), 0.02)

    def test_factors_of_correlations(self):
        torch.manual_seed(1)
        factors = D.LKJCholesky(4, t(2.0)).sample((5000,)).squeeze(1)
        self.assertTrue(D.constraints.corr_cholesky.check(factors).all())
        products = factors @ factors.mT
        off = products[:, 1:, 0]
        self.assertLess(off.mean(0).abs().max().item(), 0.03)
        # The marginal of a correlation is a Beta of a = concentration - 1 + dim / 2 on (-1, 1): variance 1 / (2 a + 1).
        self.assertLess((off.var(0) - 1 / 7).abs().max().item(), 0.015)

    def test_matrices(self):
        torch.manual_seed(1)
        one = D.Wishart(torch.tensor(5.0, dtype=torch.float64), torch.eye(2, dtype=torch.float64) * 2)
        drawn = one.rsample((20000,))
        self.assertLess((drawn.mean(0) - one.mean).abs().max().item(), 0.2)
        lower = D.Wishart(one.df, scale_tril=one.scale_tril)
        self.assertAlmostEqual(lower.log_prob(one.mean).item(), one.log_prob(one.mean).item(), 12)


if __name__ == "__main__":
    unittest.main()
