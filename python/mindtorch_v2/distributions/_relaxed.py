# SPDX-License-Identifier: Apache-2.0
"""Relaxed categories (Gumbel softmax), the logistic normal, and distributions of matrices: LKJ and Wishart."""

import math

import mindtorch_v2 as torch

from . import constraints
from ._combine import TransformedDistribution
from ._continuous import Beta, Normal
from ._discrete import Categorical, _Binary
from ._matrix import cholesky, inverse_lower, solve_lower
from .distribution import Distribution
from .transforms import ExpTransform, SigmoidTransform, StickBreakingTransform
from .utils import broadcast_all, clamp_probs, lazy_property


class LogitRelaxedBernoulli(_Binary):
    """The logits of RelaxedBernoulli's samples."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self.temperature = temperature
        self._set_binary(probs, logits, validate_args)

    def expand(self, batch_shape, _instance=None):
        new = super().expand(batch_shape, _instance)
        new.temperature = self.temperature
        return new

    def rsample(self, sample_shape=torch.Size()):
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        noise = clamp_probs(torch.rand(shape, dtype=probs.dtype, device=probs.device))
        return (noise.log() - (-noise).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value):
        self._checked(value)
        logits, value = broadcast_all(self.logits, value)
        away = logits - value.mul(self.temperature)
        temperature = torch.as_tensor(self.temperature, dtype=away.dtype, device=away.device)
        return temperature.log() + away - 2 * away.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """Numbers between 0 and 1 that tend to one of them as the temperature falls; with gradients."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(),
                         validate_args=validate_args)

    temperature = property(lambda self: self.base_dist.temperature)
    logits = property(lambda self: self.base_dist.logits)
    probs = property(lambda self: self.base_dist.probs)


class ExpRelaxedCategorical(Distribution):
    """The logarithms of RelaxedOneHotCategorical's samples."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:],
                         validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        batch_shape = torch.Size(batch_shape)
        return self._expanded(ExpRelaxedCategorical, _instance, batch_shape, temperature=self.temperature,
                              _categorical=self._categorical.expand(batch_shape))

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(lambda self: self._categorical.param_shape)

    def rsample(self, sample_shape=torch.Size()):
        shape = self._extended_shape(sample_shape)
        noise = clamp_probs(torch.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-noise.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        count = self._event_shape[0]
        logits, value = broadcast_all(self.logits, value)
        temperature = torch.as_tensor(self.temperature, dtype=logits.dtype, device=logits.device)
        score = logits - value * temperature
        score = (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1)
        return score + math.lgamma(count) + temperature.log() * (count - 1)


class RelaxedOneHotCategorical(TransformedDistribution):
    """Shares that tend to one of several categories as the temperature falls; with gradients."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    temperature = property(lambda self: self.base_dist.temperature)
    logits = property(lambda self: self.base_dist.logits)
    probs = property(lambda self: self.base_dist.probs)


class LogisticNormal(TransformedDistribution):
    """Shares made of normal numbers by stick breaking."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    loc = property(lambda self: self.base_dist.base_dist.loc)
    scale = property(lambda self: self.base_dist.base_dist.scale)


class LKJCholesky(Distribution):
    """Factors of correlation matrices whose density is a power of their determinant."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim, concentration=1.0, validate_args=None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        shape = self.concentration.size()
        # The square of each row's length left of the diagonal, row by row.
        row = torch.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        rest = self.concentration + 0.5 * (dim - 2)
        self._beta = Beta((row + 1) / 2 * torch.ones_like(rest).unsqueeze(-1), rest.unsqueeze(-1) - 0.5 * row)
        super().__init__(shape, torch.Size((dim, dim)), validate_args)

    def expand(self, batch_shape, _instance=None):
        batch_shape = torch.Size(batch_shape)
        return self._expanded(LKJCholesky, _instance, batch_shape, dim=self.dim,
                              concentration=self.concentration.expand(batch_shape),
                              _beta=self._beta.expand((*batch_shape, self.dim - 1)))

    def sample(self, sample_shape=torch.Size()):
        """Row by row: a random direction, of a length that leaves the rest to the diagonal."""
        with torch.no_grad():
            square = self._beta.sample(sample_shape).unsqueeze(-1)
            shape = self._extended_shape(sample_shape)
            noise = torch.empty(shape, dtype=square.dtype, device=square.device).normal_().tril(-1)[..., 1:, :]
            rows = square.sqrt() * noise / noise.norm(dim=-1, keepdim=True)
            made = torch.nn.functional.pad(rows, (0, 0, 1, 0))
            tiny = torch.finfo(made.dtype).tiny
            return made + torch.diag_embed((1 - (made**2).sum(-1)).clamp(min=tiny).sqrt())

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        dim, eta = self.dim, self.concentration
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = torch.arange(2, dim + 1, dtype=eta.dtype, device=eta.device)
        order = 2 * (eta - 1).unsqueeze(-1) + dim - order
        plain = (order * diagonal.log()).sum(-1)
        alpha = eta + 0.5 * (dim - 1)
        scale = (0.5 * (dim - 1) * math.log(math.pi) + torch.mvlgamma(alpha - 0.5, dim - 1)
                 - torch.lgamma(alpha) * (dim - 1))
        return plain - scale


def _mvdigamma(x, p):
    """The derivative of mvlgamma()."""
    return torch.digamma(x.unsqueeze(-1) - torch.arange(p, dtype=x.dtype, device=x.device) / 2).sum(-1)


class Wishart(Distribution):
    """Sums of df outer products of normal vectors; one of covariance, precision and scale_tril is given."""

    arg_constraints = {
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
        "df": constraints.greater_than(0),
    }
    support = constraints.positive_definite
    has_rsample = True

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix,
                 "scale_tril": scale_tril}
        given = {name: value for name, value in given.items() if value is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        df = df if isinstance(df, torch.Tensor) else torch.tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch_shape = torch.broadcast_shapes(matrix.shape[:-2], df.shape)
        self.df = df.expand(batch_shape)
        setattr(self, name, matrix.expand(batch_shape + matrix.shape[-2:]))
        size = matrix.shape[-1]
        if self.df.le(size - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {size - 1}.")
        super().__init__(batch_shape, matrix.shape[-2:], validate_args=validate_args)
        matrix = self.__dict__[name]
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = cholesky(matrix)
        else:
            turned = cholesky(matrix.flip((-2, -1))).flip((-2, -1)).mT
            self._unbroadcasted_scale_tril = inverse_lower(turned)

    def expand(self, batch_shape, _instance=None):
        batch_shape = torch.Size(batch_shape)
        whole = batch_shape + self.event_shape
        names = ("covariance_matrix", "precision_matrix", "scale_tril", "_unbroadcasted_scale_tril")
        values = {n: self.__dict__[n].expand(whole) for n in names if n in self.__dict__}
        return self._expanded(Wishart, _instance, batch_shape, df=self.df.expand(batch_shape), **values)

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

    _df = property(lambda self: self.df.unsqueeze(-1).unsqueeze(-1))
    mean = property(lambda self: self._df * self.covariance_matrix)

    @property
    def mode(self):
        factor = self._df - self.covariance_matrix.shape[-1] - 1
        return torch.where(factor <= 0, torch.full_like(factor, math.nan), factor) * self.covariance_matrix

    @property
    def variance(self):
        diagonal = self.covariance_matrix.diagonal(dim1=-2, dim2=-1)
        return self._df * (self.covariance_matrix.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def rsample(self, sample_shape=torch.Size(), max_try_correction=None):
        """Bartlett's decomposition. max_try_correction: nothing needs to be tried again."""
        shape = self._extended_shape(sample_shape)
        size = self._event_shape[-1]
        df = self.df.expand(shape[:-2]).unsqueeze(-1)
        steps = torch.arange(size, dtype=df.dtype, device=df.device)
        square = 2 * torch._C.ops._standard_gamma((df - steps) / 2)
        noise = torch.empty(shape, dtype=square.dtype, device=square.device).normal_().tril(-1)
        factor = self._unbroadcasted_scale_tril @ (noise + torch.diag_embed(square.sqrt()))
        return factor @ factor.mT

    def _half_log_det(self):
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        size, df = self._event_shape[-1], self.df
        lower = self._unbroadcasted_scale_tril
        root = cholesky(value)
        lower = lower.expand(torch.broadcast_shapes(lower.shape, root.shape))
        whitened = solve_lower(lower.unsqueeze(-3), root.expand(lower.shape).mT)
        return (-df * (size * math.log(2.0) / 2 + self._half_log_det()) - torch.mvlgamma(df / 2, p=size)
                + (df - size - 1) * root.diagonal(dim1=-2, dim2=-1).log().sum(-1) - whitened.pow(2).sum((-2, -1)) / 2)

    def entropy(self):
        size, df = self._event_shape[-1], self.df
        return ((size + 1) * (size * math.log(2.0) / 2 + self._half_log_det()) + torch.mvlgamma(df / 2, p=size)
                - (df - size - 1) / 2 * _mvdigamma(df / 2, p=size) + df * size / 2)
