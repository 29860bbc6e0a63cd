# SPDX-License-Identifier: Apache-2.0
"""Further distributions of real numbers: ratios, powers and tails, angles, and the continuous Bernoulli."""

import math

import mindtorch_v2 as torch

from . import constraints
from ._combine import TransformedDistribution
from ._continuous import Exponential, Gamma, Uniform, _Elementwise
from ._discrete import _Binary
from .distribution import Distribution
from .transforms import AffineTransform, ExpTransform, PowerTransform
from .utils import binary_cross_entropy, broadcast_all, clamp_probs, euler_constant


def _where_or(condition, value, other):
    return torch.where(condition, value, torch.full_like(value, other))


class FisherSnedecor(_Elementwise):
    """The ratio of two chi-squared variables, each divided by its degrees of freedom."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _parameters = ("df1", "df2")

    def __init__(self, df1, df2, validate_args=None):
        self._set((df1, df2), validate_args)

    @property
    def mean(self):
        return _where_or(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self):
        return _where_or(self.df1 > 2, (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2), math.nan)

    @property
    def variance(self):
        a, b = self.df1, self.df2
        return _where_or(b > 4, 2 * b.pow(2) * (a + b - 2) / (a * (b - 2).pow(2) * (b - 4)), math.nan)

    def rsample(self, sample_shape=torch.Size()):
        shape = self._extended_shape(sample_shape)
        tiny = torch.finfo(self.df1.dtype).tiny
        top, bottom = (torch._C.ops._standard_gamma((df / 2).expand(shape)) / (df / 2) for df in (self.df1, self.df2))
        return (top / bottom.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value):
        self._checked(value)
        a, b = self.df1 / 2, self.df2 / 2
        ratio = self.df1 / self.df2
        ways = torch.lgamma(a + b) - torch.lgamma(a) - torch.lgamma(b)
        return ways + a * ratio.log() + (a - 1) * value.log() - (a + b) * torch.log1p(ratio * value)


class GeneralizedPareto(_Elementwise):
    """Exceedances over a threshold loc; the tail is heavy where concentration is positive."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True
    _parameters = ("loc", "scale", "concentration")

    def __init__(self, loc, scale, concentration, validate_args=None):
        self._set((loc, scale, concentration), validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        upper = torch.where(self.concentration < 0, self.loc - self.scale / self.concentration, math.inf)
        return constraints.interval(self.loc, upper)

    @property
    def mean(self):
        return _where_or(self.concentration < 1, self.loc + self.scale / (1 - self.concentration), math.inf)

    mode = property(lambda self: self.loc)

    @property
    def variance(self):
        k = self.concentration
        return _where_or(k < 0.5, self.scale**2 / ((1 - k) ** 2 * (1 - 2 * k)), math.inf)

    def _is_exponential(self):
        return torch.isclose(self.concentration, torch.zeros_like(self.concentration))

    def rsample(self, sample_shape=torch.Size()):
        return self.icdf(self._noise(sample_shape).uniform_())

    def _log_survival(self, value):
        z = (value - self.loc) / self.scale
        none = self._is_exponential()
        k = torch.where(none, torch.ones_like(self.concentration), self.concentration)
        bent = torch.log1p(k * z)
        return torch.where(none, -z, -bent / k), torch.where(none, torch.zeros_like(z), bent)

    def log_prob(self, value):
        self._checked(value)
        rest, change = self._log_survival(value)
        return -self.scale.log() + rest - change

    def log_survival_function(self, value):
        """The logarithm of the probability of larger values."""
        self._checked(value)
        return self._log_survival(value)[0]

    def log_cdf(self, value):
        """The logarithm of cdf()."""
        return torch.log1p(-torch.exp(self.log_survival_function(value)))

    def cdf(self, value):
        return torch.exp(self.log_cdf(value))

    def icdf(self, value):
        none = self._is_exponential()
        k = torch.where(none, torch.ones_like(self.concentration), self.concentration)
        left = torch.log1p(-value)
        return self.loc + self.scale * torch.where(none, -left, torch.expm1(-k * left) / k)

    def entropy(self):
        return (self.scale.log() + self.concentration + 1).expand(self._batch_shape)


class InverseGamma(TransformedDistribution):
    """The reciprocal of gamma variables."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration, rate, validate_args=None):
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args=validate_args)

    concentration = property(lambda self: self.base_dist.concentration)
    rate = property(lambda self: self.base_dist.rate)
    mode = property(lambda self: self.rate / (self.concentration + 1))

    @property
    def mean(self):
        return _where_or(self.concentration > 1, self.rate / (self.concentration - 1), math.inf)

    @property
    def variance(self):
        a = self.concentration
        return _where_or(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), math.inf)

    def entropy(self):
        a = self.concentration
        return a + self.rate.log() + torch.lgamma(a) - (1 + a) * torch.digamma(a)


class Kumaraswamy(TransformedDistribution):
    """On the unit interval, with the distribution function 1 - (1 - x^a)^b."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(torch.full_like(self.concentration0, 0), torch.full_like(self.concentration0, 1),
                       validate_args=validate_args)
        parts = [PowerTransform(self.concentration0.reciprocal()), AffineTransform(1.0, -1.0),
                 PowerTransform(self.concentration1.reciprocal())]
        super().__init__(base, parts, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return Kumaraswamy(self.concentration1.expand(batch_shape), self.concentration0.expand(batch_shape),
                           validate_args=False)

    def _moment(self, n):
        first = 1 + n / self.concentration1
        return self.concentration0 * torch.exp(torch.lgamma(first) + torch.lgamma(self.concentration0)
                                               - torch.lgamma(first + self.concentration0))

    mean = property(lambda self: self._moment(1))
    variance = property(lambda self: self._moment(2) - self._moment(1).pow(2))

    @property
    def mode(self):
        a, b = self.concentration1, self.concentration0
        inside = ((a - 1) / (a * b - 1)).pow(a.reciprocal())
        return _where_or(~((a < 1) | (b < 1)), inside, math.nan)

    __repr__ = Distribution.__repr__

    def entropy(self):
        a, b = self.concentration1, self.concentration0
        harmonic = torch.digamma(b + 1) + euler_constant
        return 1 - b.reciprocal() + (1 - a.reciprocal()) * harmonic - a.log() - b.log()


class Pareto(TransformedDistribution):
    """Values from scale on, with a tail of power alpha."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale, alpha, validate_args=None):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        super().__init__(base, [ExpTransform(), AffineTransform(loc=0, scale=self.scale)], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return Pareto(self.scale.expand(batch_shape), self.alpha.expand(batch_shape), validate_args=False)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self):
        return _where_or(self.alpha > 1, self.alpha * self.scale / (self.alpha - 1), math.inf)

    mode = property(lambda self: self.scale)

    @property
    def variance(self):
        a = self.alpha
        return _where_or(a > 2, self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2)), math.inf)

    __repr__ = Distribution.__repr__

    def entropy(self):
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class Weibull(TransformedDistribution):
    """Times to failure; the rate of failures is a power of the time."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale, concentration, validate_args=None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(torch.ones_like(self.scale), validate_args=validate_args)
        parts = [PowerTransform(exponent=self.concentration_reciprocal), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, parts, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return Weibull(self.scale.expand(batch_shape), self.concentration.expand(batch_shape), validate_args=False)

    def _moment(self, n):
        return torch.exp(torch.lgamma(1 + n * self.concentration_reciprocal))

    mean = property(lambda self: self.scale * self._moment(1))
    variance = property(lambda self: self.scale.pow(2) * (self._moment(2) - self._moment(1).pow(2)))

    @property
    def mode(self):
        return self.scale * ((self.concentration - 1) / self.concentration) ** self.concentration.reciprocal()

    __repr__ = Distribution.__repr__

    def entropy(self):
        turned = self.concentration_reciprocal
        return euler_constant * (1 - turned) + torch.log(self.scale * turned) + 1


class VonMises(_Elementwise):
    """Angles around loc; the larger concentration, the closer."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False
    _parameters = ("loc", "concentration")

    def __init__(self, loc, concentration, validate_args=None):
        self._set((loc, concentration), validate_args)

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)

    @property
    def variance(self):
        """The circular variance."""
        k = self.concentration
        return 1 - torch.special.i1e(k) / torch.special.i0e(k)

    def log_prob(self, value):
        self._checked(value)
        k = self.concentration
        return k * (torch.cos(value - self.loc) - 1) - math.log(2 * math.pi) - torch.special.i0e(k).log()

    def sample(self, sample_shape=torch.Size()):
        """Best's and Fisher's rejection from a wrapped Cauchy distribution, in float64."""
        with torch.no_grad():
            shape = self._extended_shape(sample_shape)
            loc, k = (each.double().expand(shape) for each in (self.loc, self.concentration))
            tau = 1 + (1 + 4 * k**2).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * k)
            r = torch.where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho))
            angle, done = torch.zeros_like(loc), torch.zeros_like(loc, dtype=torch.bool)
            while not done.all():
                u1, u2, u3 = (torch.empty_like(loc).uniform_() for _ in range(3))
                z = torch.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                good = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
                angle = torch.where(~done & good, (u3 - 0.5).sign() * f.clamp(-1, 1).acos(), angle)
                done = done | good
            return ((angle + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)


class ContinuousBernoulli(_Binary):
    """On the unit interval, with a density in proportion to probs^x (1 - probs)^(1 - x)."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        self._lims = lims
        self._set_binary(probs, logits, None if validate_args is None else validate_args)
        if "probs" in self.__dict__:
            self.probs = clamp_probs(self.probs)
            self._param = self.probs

    def expand(self, batch_shape, _instance=None):
        new = super().expand(batch_shape, _instance)
        new._lims = self._lims
        return new

    def _outside(self):
        """Where probs is far enough from 1/2 for the plain formulas."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self):
        return torch.where(self._outside(), self.probs, self._lims[0] * torch.ones_like(self.probs))

    def _log_normaliser(self):
        cut = self._cut_probs()
        odds = torch.log1p(-cut) - cut.log()  # 2 atanh(1 - 2 p)
        plain = (odds / (1 - 2 * cut)).log()
        x = (self.probs - 0.5).pow(2)
        return torch.where(self._outside(), plain, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self):
        cut = self._cut_probs()
        plain = cut / (2 * cut - 1) + 1 / (torch.log1p(-cut) - cut.log())
        x = self.probs - 0.5
        return torch.where(self._outside(), plain, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x)

    @property
    def variance(self):
        cut = self._cut_probs()
        plain = cut * (cut - 1) / (1 - 2 * cut).pow(2) + 1 / (torch.log1p(-cut) - cut.log()).pow(2)
        x = (self.probs - 0.5).pow(2)
        return torch.where(self._outside(), plain, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    stddev = property(lambda self: self.variance.sqrt())

    def rsample(self, sample_shape=torch.Size()):
        noise = torch.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device)
        return self.icdf(noise)

    def log_prob(self, value):
        self._checked(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy(logits, value) + self._log_normaliser()

    def cdf(self, value):
        self._checked(value)
        cut = self._cut_probs()
        inside = (cut.pow(value) * (1 - cut).pow(1 - value) + cut - 1) / (2 * cut - 1)
        inside = torch.where(self._outside(), inside, value)
        inside = torch.where(value <= 0, torch.zeros_like(value), inside)
        return torch.where(value >= 1, torch.ones_like(value), inside)

    def icdf(self, value):
        cut = self._cut_probs()
        plain = (torch.log1p(-cut + value * (2 * cut - 1)) - torch.log1p(-cut)) / (cut.log() - torch.log1p(-cut))
        return torch.where(self._outside(), plain, value)

    def entropy(self):
        low, high = torch.log1p(-self.probs), self.probs.log()
        return self.mean * (low - high) - self._log_normaliser() - low
