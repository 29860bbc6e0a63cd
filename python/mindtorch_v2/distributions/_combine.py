# SPDX-License-Identifier: Apache-2.0
"""Distributions made of others: transformed ones, independent dimensions, mixtures."""

import math

import mindtorch_v2 as torch

from . import constraints
from ._continuous import Cauchy, Normal, Uniform, _shown
from ._discrete import Categorical
from .distribution import Distribution
from .transforms import AbsTransform, AffineTransform, ComposeTransform, ExpTransform, Transform
from .utils import broadcast_all, euler_constant, sum_rightmost


class Independent(Distribution):
    """Takes the last dimensions of the batch as a part of the event."""

    arg_constraints = {}

    def __init__(self, base_distribution, reinterpreted_batch_ndims, validate_args=None):
        n = reinterpreted_batch_ndims
        if n > len(base_distribution.batch_shape):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                f"{n} vs {len(base_distribution.batch_shape)}"
            )
        shape = base_distribution.batch_shape + base_distribution.event_shape
        event_dim = n + len(base_distribution.event_shape)
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = n
        super().__init__(
            shape[: len(shape) - event_dim], shape[len(shape) - event_dim :], validate_args=validate_args
        )

    def expand(self, batch_shape, _instance=None):
        batch_shape = torch.Size(batch_shape)
        base = self.base_dist.expand(batch_shape + self.event_shape[: self.reinterpreted_batch_ndims])
        return self._expanded(
            Independent,
            _instance,
            batch_shape,
            base_dist=base,
            reinterpreted_batch_ndims=self.reinterpreted_batch_ndims,
        )

    has_rsample = property(lambda self: self.base_dist.has_rsample)
    has_enumerate_support = property(
        lambda self: self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support
    )
    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    @constraints.dependent_property
    def support(self):
        n = self.reinterpreted_batch_ndims
        return constraints.independent(self.base_dist.support, n) if n else self.base_dist.support

    def sample(self, sample_shape=torch.Size()):
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=torch.Size()):
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value):
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self):
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def __repr__(self):
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """The distribution of what transforms make of samples of another one."""

    arg_constraints = {}

    def __init__(self, base_distribution, transforms, validate_args=None):
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(one, Transform) for one in self.transforms):
            raise ValueError(f"transforms must be a Transform or a list of Transforms, but was {transforms}")
        shape = base_distribution.batch_shape + base_distribution.event_shape
        base_event = len(base_distribution.event_shape)
        whole = ComposeTransform(self.transforms)
        need = whole.domain.event_dim
        if len(shape) < need:
            raise ValueError(f"base_distribution needs to have shape with size at least {need}, but got {shape}.")
        forward = whole.forward_shape(shape)
        base_distribution = base_distribution.expand(whole.inverse_shape(forward)[: len(shape) - base_event])
        if need > base_event:
            base_distribution = Independent(base_distribution, need - base_event)
        self.base_dist = base_distribution
        event_dim = whole.codomain.event_dim + max(base_event - need, 0)
        cut = len(forward) - event_dim
        super().__init__(forward[:cut], forward[cut:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        batch_shape = torch.Size(batch_shape)
        inner = ComposeTransform(self.transforms).inverse_shape(batch_shape + self.event_shape)
        base = self.base_dist.expand(inner[: len(inner) - len(self.base_dist.event_shape)])
        return self._expanded(
            TransformedDistribution, _instance, batch_shape, base_dist=base, transforms=self.transforms
        )

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        codomain = self.transforms[-1].codomain
        more = len(self.event_shape) - codomain.event_dim
        return constraints.independent(codomain, more) if more > 0 else codomain

    def sample(self, sample_shape=torch.Size()):
        with torch.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=torch.Size()):
        return self._forward(self.base_dist.rsample(sample_shape))

    def _forward(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        event_dim = len(self.event_shape)
        total, y = 0.0, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            total = total - sum_rightmost(
                transform.log_abs_det_jacobian(x, y), event_dim - transform.domain.event_dim
            )
            y = x
        return total + sum_rightmost(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))

    def _sign(self):
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return sign

    def _turned(self, value):
        """A cumulated probability, seen from the other end where the transforms fall."""
        sign = self._sign()
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value):
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._turned(self.base_dist.cdf(value))

    def icdf(self, value):
        return self._forward(self.base_dist.icdf(self._turned(value)))

    def __repr__(self):
        return f"{type(self).__name__}()"


class LogNormal(TransformedDistribution):
    """e to the power of normal numbers."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    loc = property(lambda self: self.base_dist.loc)
    scale = property(lambda self: self.base_dist.scale)
    mean = property(lambda self: (self.loc + self.scale.pow(2) / 2).exp())
    mode = property(lambda self: (self.loc - self.scale.square()).exp())

    @property
    def variance(self):
        square = self.scale.pow(2)
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self):
        return self.base_dist.entropy() + self.loc


class HalfNormal(TransformedDistribution):
    """The absolute value of normal numbers of mean 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale, validate_args=None):
        super().__init__(Normal(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    scale = property(lambda self: self.base_dist.scale)
    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    mode = property(lambda self: torch.zeros_like(self.scale))
    variance = property(lambda self: self.scale.pow(2) * (1 - 2 / math.pi))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value = torch.as_tensor(value, dtype=self.scale.dtype)
        inside = self.base_dist.log_prob(value) + math.log(2)
        return torch.where(value >= 0, inside, torch.full_like(inside, -math.inf))

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob):
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self):
        return self.base_dist.entropy() - math.log(2)


class HalfCauchy(HalfNormal):
    """The absolute value of Cauchy numbers of median 0."""

    def __init__(self, scale, validate_args=None):
        TransformedDistribution.__init__(
            self, Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args
        )

    mean = property(lambda self: torch.full_like(self.scale, math.inf))
    variance = property(lambda self: self.base_dist.variance)


class Gumbel(TransformedDistribution):
    """The distribution of the largest of many numbers."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        info = torch.finfo(self.loc.dtype)
        low, high = torch.full_like(self.loc, info.tiny), torch.full_like(self.loc, 1 - info.eps)
        base = Uniform(low, high, validate_args=validate_args)
        ones = torch.ones_like(self.scale)
        parts = [
            ExpTransform().inv,
            AffineTransform(0, -ones),
            ExpTransform().inv,
            AffineTransform(self.loc, -self.scale),
        ]
        super().__init__(base, parts, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return Gumbel(self.loc.expand(batch_shape), self.scale.expand(batch_shape), validate_args=False)

    mean = property(lambda self: self.loc + self.scale * euler_constant)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: (math.pi / math.sqrt(6)) * self.scale)
    variance = property(lambda self: self.stddev.pow(2))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    def entropy(self):
        return self.scale.log() + (1 + euler_constant)

    def __repr__(self):
        return f"Gumbel(loc: {_shown(self.loc)}, scale: {_shown(self.scale)})"


class MixtureSameFamily(Distribution):
    """One of the components (the last dimension of a distribution's batch), chosen by a Categorical."""

    arg_constraints = {}
    has_rsample = False

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution need to be an instance of torch.distributions.Distribution")
        components = component_distribution.batch_shape
        chosen = mixture_distribution.batch_shape
        for one, other in zip(reversed(chosen), reversed(components[:-1])):
            if one != 1 and other != 1 and one != other:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({chosen}) is not compatible with "
                    f"`component_distribution.batch_shape`({components[:-1]})"
                )
        if mixture_distribution.param_shape[-1] != components[-1]:
            raise ValueError(
                f"`mixture_distribution component` ({mixture_distribution.param_shape[-1]}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({components[-1]})"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._event_dims = len(component_distribution.event_shape)
        super().__init__(components[:-1], component_distribution.event_shape, validate_args=validate_args)

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)

    def expand(self, batch_shape, _instance=None):
        batch_shape = torch.Size(batch_shape)
        components = self.component_distribution.expand((*batch_shape, self.component_distribution.batch_shape[-1]))
        return self._expanded(
            MixtureSameFamily,
            _instance,
            batch_shape,
            _component_distribution=components,
            _mixture_distribution=self.mixture_distribution.expand(batch_shape),
            _event_dims=self._event_dims,
        )

    @constraints.dependent_property
    def support(self):
        return constraints.MixtureSameFamilyConstraint(self.component_distribution.support)

    def _weights(self):
        probs = self.mixture_distribution.probs
        return probs.reshape(probs.shape + (1,) * self._event_dims)

    @property
    def mean(self):
        return (self._weights() * self.component_distribution.mean).sum(-1 - self._event_dims)

    @property
    def variance(self):
        weights, dim = self._weights(), -1 - self._event_dims
        inside = (weights * self.component_distribution.variance).sum(dim)
        off = self.component_distribution.mean - self.mean.unsqueeze(dim)
        return inside + (weights * off.pow(2)).sum(dim)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        each = self.component_distribution.log_prob(value.unsqueeze(-1 - self._event_dims))
        return torch.logsumexp(each + self.mixture_distribution.logits, dim=-1)

    def cdf(self, x):
        each = self.component_distribution.cdf(x.unsqueeze(-1 - self._event_dims))
        return (each * self.mixture_distribution.probs).sum(-1)

    def sample(self, sample_shape=torch.Size()):
        with torch.no_grad():
            dim = len(sample_shape) + len(self.batch_shape)
            chosen = self.mixture_distribution.expand(self.batch_shape).sample(sample_shape)
            samples = self.component_distribution.sample(sample_shape)
            index = chosen.reshape(chosen.shape + (1,) * (self._event_dims + 1))
            index = index.expand((*chosen.shape, 1, *self.event_shape))
            return samples.gather(dim, index).squeeze(dim)

    def __repr__(self):
        _ = self.mixture_distribution.logits  # shown too, as by torch
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
