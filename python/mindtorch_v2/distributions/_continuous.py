# SPDX-License-Identifier: Apache-2.0
"""Distributions of real numbers: each element is an event of its own."""

import math

import mindtorch_v2 as torch

from . import constraints
from .distribution import Distribution, ExponentialFamily
from .utils import broadcast_all

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


class _Elementwise(Distribution):
    """Distributions whose parameters, named in _parameters, broadcast to the batch shape."""

    _parameters = ()

    def _set(self, values, validate_args):
        made = broadcast_all(*values)
        for name, value in zip(self._parameters, made):
            setattr(self, name, value)
        plain = all(isinstance(value, (int, float)) for value in values)
        super().__init__(torch.Size() if plain else made[0].size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        batch_shape = torch.Size(batch_shape)
        values = {name: self.__dict__[name].expand(batch_shape) for name in self._parameters if name in self.__dict__}
        return self._expanded(_Elementwise, _instance, batch_shape, **values)

    def _noise(self, sample_shape):
        """An empty tensor of the shape of samples."""
        first = getattr(self, self._parameters[0])
        return torch.empty(self._extended_shape(sample_shape), dtype=first.dtype, device=first.device)

    def _checked(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return value


class Normal(_Elementwise, ExponentialFamily):
    """The normal distribution of mean loc and deviation scale."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _parameters = ("loc", "scale")

    def __init__(self, loc, scale, validate_args=None):
        self._set((loc, scale), validate_args)

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.stddev**2)

    def sample(self, sample_shape=torch.Size()):
        with torch.no_grad():
            return self.loc + self._noise(sample_shape).normal_() * self.scale

    def rsample(self, sample_shape=torch.Size()):
        return self.loc + self._noise(sample_shape).normal_() * self.scale

    def log_prob(self, value):
        self._checked(value)
        return -((value - self.loc) ** 2) / (2 * self.variance) - self.scale.log() - _HALF_LOG_TAU

    def cdf(self, value):
        self._checked(value)
        return 0.5 * (1 + torch.erf((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)))

    def icdf(self, value):
        return self.loc + self.scale * torch.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self):
        return 0.5 + _HALF_LOG_TAU + self.scale.log()


class Uniform(_Elementwise):
    """The uniform distribution of [low, high)."""

    has_rsample = True
    _parameters = ("low", "high")
    arg_constraints = {"low": constraints.dependent, "high": constraints.dependent}

    def __init__(self, low, high, validate_args=None):
        self._set((low, high), validate_args)
        if self._validate_args:
            self._check_parameter("low", constraints.less_than(self.high))

    @constraints.dependent_property
    def support(self):
        return constraints.interval(self.low, self.high)

    mean = property(lambda self: (self.high + self.low) / 2)
    mode = property(lambda self: math.nan * self.high)
    stddev = property(lambda self: (self.high - self.low) / 12**0.5)
    variance = property(lambda self: (self.high - self.low).pow(2) / 12)

    def rsample(self, sample_shape=torch.Size()):
        return self.low + self._noise(sample_shape).uniform_() * (self.high - self.low)

    def log_prob(self, value):
        self._checked(value)
        inside = (self.low <= value) & (value < self.high)
        return inside.type_as(self.low).log() - (self.high - self.low).log()

    def cdf(self, value):
        self._checked(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value):
        return value * (self.high - self.low) + self.low

    def entropy(self):
        return (self.high - self.low).log()


class Gamma(_Elementwise, ExponentialFamily):
    """The gamma distribution of shape `concentration` and a rate."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _parameters = ("concentration", "rate")

    def __init__(self, concentration, rate, validate_args=None):
        self._set((concentration, rate), validate_args)

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = property(lambda self: self.concentration / self.rate.pow(2))

    def rsample(self, sample_shape=torch.Size()):
        shape = self._extended_shape(sample_shape)
        value = torch._C.ops._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=torch.finfo(value.dtype).tiny)
        return value

    def log_prob(self, value):
        value = torch.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._checked(value)
        a, b = self.concentration, self.rate
        return torch.xlogy(a, b) + torch.xlogy(a - 1, value) - b * value - torch.lgamma(a)

    def cdf(self, value):
        self._checked(value)
        return torch.special.gammainc(self.concentration, self.rate * value)

    def entropy(self):
        a = self.concentration
        return a - self.rate.log() + torch.lgamma(a) + (1.0 - a) * torch.digamma(a)


class Chi2(Gamma):
    """The distribution of the sum of df squares of normal numbers."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df, validate_args=None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self):
        """Degrees of freedom."""
        return self.concentration * 2


class Exponential(_Elementwise, ExponentialFamily):
    """The exponential distribution of a rate."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _parameters = ("rate",)

    def __init__(self, rate, validate_args=None):
        self._set((rate,), validate_args)

    mean = property(lambda self: self.rate.reciprocal())
    mode = property(lambda self: torch.zeros_like(self.rate))
    stddev = property(lambda self: self.rate.reciprocal())
    variance = property(lambda self: self.rate.pow(-2))

    def rsample(self, sample_shape=torch.Size()):
        return self._noise(sample_shape).exponential_() / self.rate

    def log_prob(self, value):
        self._checked(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value):
        self._checked(value)
        return 1 - torch.exp(-self.rate * value)

    def icdf(self, value):
        return -torch.log1p(-value) / self.rate

    def entropy(self):
        return 1.0 - self.rate.log()


class Laplace(_Elementwise):
    """The Laplace distribution: two exponential ones, back to back."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _parameters = ("loc", "scale")

    def __init__(self, loc, scale, validate_args=None):
        self._set((loc, scale), validate_args)

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)
    variance = property(lambda self: 2 * self.scale.pow(2))
    stddev = property(lambda self: 2**0.5 * self.scale)

    def rsample(self, sample_shape=torch.Size()):
        eps = torch.finfo(self.loc.dtype).eps
        u = self._noise(sample_shape).uniform_(eps - 1, 1)
        return self.loc - self.scale * u.sign() * torch.log1p(-u.abs().clamp(min=torch.finfo(u.dtype).tiny))

    def log_prob(self, value):
        self._checked(value)
        return -torch.log(2 * self.scale) - (value - self.loc).abs() / self.scale

    def cdf(self, value):
        self._checked(value)
        off = value - self.loc
        return 0.5 - 0.5 * off.sign() * torch.expm1(-off.abs() / self.scale)

    def icdf(self, value):
        term = value - 0.5
        return self.loc - self.scale * term.sign() * torch.log1p(-2 * term.abs())

    def entropy(self):
        return 1 + torch.log(2 * self.scale)


class Cauchy(_Elementwise):
    """The Cauchy distribution: no mean, no variance."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _parameters = ("loc", "scale")

    def __init__(self, loc, scale, validate_args=None):
        self._set((loc, scale), validate_args)

    mean = property(lambda self: torch.full_like(self.loc, math.nan))
    mode = property(lambda self: self.loc)
    variance = property(lambda self: torch.full_like(self.loc, math.inf))

    def rsample(self, sample_shape=torch.Size()):
        u = self._noise(sample_shape).uniform_()
        return self.loc + self.scale * torch.tan(math.pi * (u - 0.5))

    def log_prob(self, value):
        self._checked(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value):
        self._checked(value)
        return torch.atan2(value - self.loc, self.scale) / math.pi + 0.5

    def icdf(self, value):
        return torch.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self):
        return math.log(4 * math.pi) + self.scale.log()


class StudentT(_Elementwise):
    """Student's t distribution of df degrees of freedom."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _parameters = ("df", "loc", "scale")

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        self._set((df, loc, scale), validate_args)

    mean = property(lambda self: torch.where(self.df <= 1, math.nan, self.loc))
    mode = property(lambda self: self.loc)

    @property
    def variance(self):
        wide = self.scale**2 * self.df / (self.df - 2)
        known = torch.where(self.df > 2, wide, torch.full_like(wide, math.inf))
        return torch.where(self.df <= 1, torch.full_like(wide, math.nan), known)

    def rsample(self, sample_shape=torch.Size()):
        x = self._noise(sample_shape).normal_()
        z = 2 * torch._C.ops._standard_gamma((self.df / 2).expand(x.shape))
        return self.loc + self.scale * x * torch.rsqrt(z / self.df)

    def log_prob(self, value):
        self._checked(value)
        y = (value - self.loc) / self.scale
        z = self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi)
        z = z + torch.lgamma(0.5 * self.df) - torch.lgamma(0.5 * (self.df + 1.0))
        return -0.5 * (self.df + 1.0) * torch.log1p(y**2.0 / self.df) - z

    def entropy(self):
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        beta = torch.lgamma(half) + math.lgamma(0.5) - torch.lgamma(more)
        return self.scale.log() + more * (torch.digamma(more) - torch.digamma(half)) + 0.5 * self.df.log() + beta


class Beta(Distribution):
    """The beta distribution: shares of two gamma samples."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        from ._multivariate import Dirichlet

        first, second = broadcast_all(concentration1, concentration0)
        self._dirichlet = Dirichlet(torch.stack([first, second], -1), validate_args=validate_args)
        super().__init__(self._dirichlet.batch_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        batch_shape = torch.Size(batch_shape)
        return self._expanded(Beta, _instance, batch_shape, _dirichlet=self._dirichlet.expand(batch_shape))

    concentration1 = property(lambda self: self._dirichlet.concentration[..., 0])
    concentration0 = property(lambda self: self._dirichlet.concentration[..., 1])
    mean = property(lambda self: self.concentration1 / (self.concentration1 + self.concentration0))
    mode = property(lambda self: self._dirichlet.mode[..., 0])

    @property
    def variance(self):
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape=torch.Size()):
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return self._dirichlet.log_prob(torch.stack([value, 1.0 - value], -1))

    def entropy(self):
        return self._dirichlet.entropy()


def _shown(value):
    return value if value.numel() == 1 else value.size()
