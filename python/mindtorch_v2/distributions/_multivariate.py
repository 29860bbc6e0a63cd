# SPDX-License-Identifier: Apache-2.0
"""Distributions of vectors: Dirichlet and the multivariate normal distribution, also with a factor of low rank."""

import math

import mindtorch_v2 as torch

from . import constraints
from ._matrix import cholesky, inverse_lower, solve_lower
from .distribution import Distribution, ExponentialFamily
from .utils import lazy_property


class Dirichlet(ExponentialFamily):
    """Shares of gamma samples with the shapes `concentration`."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration, validate_args=None):
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        batch_shape = torch.Size(batch_shape)
        concentration = self.concentration.expand(batch_shape + self.event_shape)
        return self._expanded(Dirichlet, _instance, batch_shape, concentration=concentration)

    mean = property(lambda self: self.concentration / self.concentration.sum(-1, True))

    @property
    def mode(self):
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        none = (self.concentration < 1).all(dim=-1)
        highest = torch.nn.functional.one_hot(mode.argmax(dim=-1), self.concentration.shape[-1]).to(mode)
        return torch.where(none.unsqueeze(-1), highest, mode)

    @property
    def variance(self):
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        parts = torch._C.ops._standard_gamma(self.concentration.expand(shape))
        return parts / parts.sum(-1, True)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        a = self.concentration
        return torch.xlogy(a - 1.0, value).sum(-1) + torch.lgamma(a.sum(-1)) - torch.lgamma(a).sum(-1)

    def entropy(self):
        k = self.concentration.size(-1)
        a0 = self.concentration.sum(-1)
        a = self.concentration
        return (
            torch.lgamma(a).sum(-1)
            - torch.lgamma(a0)
            - (k - a0) * torch.digamma(a0)
            - ((a - 1.0) * torch.digamma(a)).sum(-1)
        )


class MultivariateNormal(Distribution):
    """The normal distribution of vectors; one of covariance, precision and scale_tril is given."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        given = {name: value for name, value in given.items() if value is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = torch.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(batch_shape + matrix.shape[-2:]))
        self.loc = loc.expand(batch_shape + loc.shape[-1:])
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        matrix = self.__dict__[name]
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = cholesky(matrix)
        else:  # the factor of the inverse, from that of the precision read backwards
            turned = cholesky(matrix.flip((-2, -1))).flip((-2, -1)).mT
            self._unbroadcasted_scale_tril = inverse_lower(turned)

    def expand(self, batch_shape, _instance=None):
        batch_shape = torch.Size(batch_shape)
        whole = batch_shape + self.event_shape
        names = ("covariance_matrix", "precision_matrix", "scale_tril", "_unbroadcasted_scale_tril")
        values = {n: self.__dict__[n].expand(whole + self.event_shape) for n in names if n in self.__dict__}
        return self._expanded(MultivariateNormal, _instance, batch_shape, loc=self.loc.expand(whole), **values)

    @lazy_property
    def scale_tril(self):
        return self._unbroadcasted_scale_tril

    @lazy_property
    def covariance_matrix(self):
        return self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT

    @lazy_property
    def precision_matrix(self):
        inverse = inverse_lower(self._unbroadcasted_scale_tril)
        return inverse.mT @ inverse

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)
    variance = property(lambda self: self._unbroadcasted_scale_tril.pow(2).sum(-1))

    def rsample(self, sample_shape=torch.Size()):
        shape = self._extended_shape(sample_shape)
        noise = torch.empty(shape, dtype=self.loc.dtype, device=self.loc.device).normal_()
        return self.loc + (self._unbroadcasted_scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def _half_log_det(self):
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        whitened = solve_lower(self._unbroadcasted_scale_tril, value - self.loc)
        n = self._event_shape[0]
        return -0.5 * (n * math.log(2 * math.pi) + whitened.pow(2).sum(-1)) - self._half_log_det()

    def entropy(self):
        n = self._event_shape[0]
        return 0.5 * n * (1.0 + math.log(2 * math.pi)) + self._half_log_det()


class LowRankMultivariateNormal(Distribution):
    """The normal distribution of vectors whose covariance is cov_factor @ cov_factor.mT + diag(cov_diag)."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        size = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != size:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {size[0]} x m")
        if cov_diag.shape[-1:] != size:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {size}")
        batch_shape = torch.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc = loc.expand(batch_shape + size)
        self.cov_factor = cov_factor.expand(batch_shape + cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(batch_shape + size)
        super().__init__(batch_shape, size, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        batch_shape = torch.Size(batch_shape)
        whole = batch_shape + self.event_shape
        return self._expanded(LowRankMultivariateNormal, _instance, batch_shape, loc=self.loc.expand(whole),
                              cov_factor=self.cov_factor.expand(whole + self.cov_factor.shape[-1:]),
                              cov_diag=self.cov_diag.expand(whole))

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)
    variance = property(lambda self: self.cov_factor.pow(2).sum(-1) + self.cov_diag)

    @lazy_property
    def covariance_matrix(self):
        return self.cov_factor @ self.cov_factor.mT + torch.diag_embed(self.cov_diag)

    @lazy_property
    def scale_tril(self):
        return cholesky(self.covariance_matrix)

    @lazy_property
    def precision_matrix(self):
        inverse = inverse_lower(self.scale_tril)
        return inverse.mT @ inverse

    def rsample(self, sample_shape=torch.Size()):
        shape = self._extended_shape(sample_shape)
        like = {"dtype": self.loc.dtype, "device": self.loc.device}
        low = torch.empty(shape[:-1] + self.cov_factor.shape[-1:], **like).normal_()
        own = torch.empty(shape, **like).normal_()
        return self.loc + (self.cov_factor @ low.unsqueeze(-1)).squeeze(-1) + self.cov_diag.sqrt() * own

    def _capacitance(self):
        """The Cholesky factor of 1 + factor.mT @ diag^-1 @ factor, a matrix of the rank's size."""
        weighted = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        inner = weighted @ self.cov_factor
        return cholesky(inner + torch.eye(inner.shape[-1], dtype=inner.dtype, device=inner.device)), weighted

    def _log_det(self, inner):
        return 2 * inner.diagonal(dim1=-2, dim2=-1).log().sum(-1) + self.cov_diag.log().sum(-1)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        inner, weighted = self._capacitance()
        away = value - self.loc
        solved = solve_lower(inner, (weighted @ away.unsqueeze(-1)).squeeze(-1))
        square = (away.pow(2) / self.cov_diag).sum(-1) - solved.pow(2).sum(-1)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det(inner) + square)

    def entropy(self):
        inner, _ = self._capacitance()
        return 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det(inner))
