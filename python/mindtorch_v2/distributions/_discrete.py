# SPDX-License-Identifier: Apache-2.0
"""Distributions of whole numbers and categories. Probabilities are given as such or as logits."""

import math

import mindtorch_v2 as torch

from . import constraints
from ._continuous import _Elementwise
from .distribution import Distribution, ExponentialFamily
from .utils import binary_cross_entropy, broadcast_all, lazy_property, logits_to_probs, probs_to_logits


def _one_of(probs, logits):
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class _Binary(_Elementwise):
    """Probabilities of each element, as `probs` or `logits`."""

    _parameters = ("probs", "logits")

    def _set_binary(self, probs, logits, validate_args):
        _one_of(probs, logits)
        given = probs if logits is None else logits
        name = "probs" if logits is None else "logits"
        (value,) = broadcast_all(given)
        setattr(self, name, value)
        self._param = value
        shape = torch.Size() if isinstance(given, (int, float)) else value.size()
        Distribution.__init__(self, shape, validate_args=validate_args)

    @lazy_property
    def logits(self):
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self):
        return logits_to_probs(self.logits, is_binary=True)

    param_shape = property(lambda self: self._param.size())

    def expand(self, batch_shape, _instance=None):
        batch_shape = torch.Size(batch_shape)
        names = [name for name in (*self._parameters, "total_count", "_param") if name in self.__dict__]
        values = {name: self.__dict__[name].expand(batch_shape) for name in names}
        return self._expanded(_Elementwise, _instance, batch_shape, **values)


class Bernoulli(_Binary, ExponentialFamily):
    """1 with probability probs, 0 otherwise."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._set_binary(probs, logits, validate_args)

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    @property
    def mode(self):
        made = (self.probs >= 0.5).to(self.probs)
        return torch.where(self.probs == 0.5, torch.full_like(made, math.nan), made)

    def sample(self, sample_shape=torch.Size()):
        with torch.no_grad():
            return torch.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        self._checked(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy(logits, value)

    def entropy(self):
        return binary_cross_entropy(self.logits, self.probs)

    def enumerate_support(self, expand=True):
        values = torch.arange(2, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values


class Geometric(_Binary):
    """How many trials fail before one succeeds."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._set_binary(probs, logits, validate_args)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            raise ValueError(
                "Expected parameter probs "
                f"({type(self.probs).__name__} of shape {tuple(self.probs.shape)}) of distribution {self!r} to be "
                f"positive but found invalid values:\n{self.probs[~(self.probs > 0)]}"
            )

    mean = property(lambda self: 1.0 / self.probs - 1.0)
    mode = property(lambda self: torch.zeros_like(self.probs))
    variance = property(lambda self: (1.0 / self.probs - 1.0) / self.probs)

    def sample(self, sample_shape=torch.Size()):
        with torch.no_grad():
            u = torch.empty(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device)
            u.uniform_().clamp_(min=torch.finfo(u.dtype).tiny)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value):
        self._checked(value)
        value, probs = broadcast_all(value, self.probs)
        none = (probs == 1) & (value == 0)
        return value * (-torch.where(none, torch.zeros_like(probs), probs)).log1p() + self.probs.log()

    def entropy(self):
        return binary_cross_entropy(self.logits, self.probs) / self.probs


class Binomial(_Binary):
    """How many of total_count trials succeed."""

    has_enumerate_support = True
    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        _one_of(probs, logits)
        count, given = broadcast_all(total_count, probs if logits is None else logits)
        self.total_count = count.to(given.dtype)
        self._set_binary(given if logits is None else None, None if logits is None else given, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    mean = property(lambda self: self.total_count * self.probs)
    mode = property(lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count))
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape=torch.Size()):
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            return torch.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value):
        self._checked(value)
        n, logits = self.total_count, self.logits
        ways = torch.lgamma(n + 1) - torch.lgamma(value + 1) - torch.lgamma(n - value + 1)
        return ways + value * logits - n * torch.nn.functional.softplus(logits)

    def enumerate_support(self, expand=True):
        total = int(self.total_count.max())
        if not self.total_count.min() == total:
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = torch.arange(1 + total, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    def entropy(self):
        total = int(self.total_count.max())
        if not self.total_count.min() == total:
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)


class Poisson(_Elementwise, ExponentialFamily):
    """How many events happen at a rate."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _parameters = ("rate",)

    def __init__(self, rate, validate_args=None):
        self._set((rate,), validate_args)

    mean = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())
    variance = property(lambda self: self.rate)

    def sample(self, sample_shape=torch.Size()):
        with torch.no_grad():
            return torch.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        self._checked(value)
        rate, value = broadcast_all(self.rate, value)
        return torch.xlogy(value, rate) - rate - torch.lgamma(value + 1)


class Categorical(Distribution):
    """One of several categories, by its number; the last dimension has the probabilities."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        _one_of(probs, logits)
        given = probs if logits is None else logits
        if given.dim() < 1:
            raise ValueError(
                f"`{'probs' if logits is None else 'logits'}` parameter must be at least one-dimensional."
            )
        if logits is None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._param = self.probs if logits is None else self.logits
        self._num_events = self._param.size()[-1]
        super().__init__(self._param.size()[:-1], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        batch_shape = torch.Size(batch_shape)
        names = [name for name in ("probs", "logits", "_param") if name in self.__dict__]
        values = {name: self.__dict__[name].expand((*batch_shape, self._num_events)) for name in names}
        return self._expanded(Categorical, _instance, batch_shape, _num_events=self._num_events, **values)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self):
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self):
        return logits_to_probs(self.logits)

    param_shape = property(lambda self: self._param.size())
    mode = property(lambda self: self.probs.argmax(dim=-1))

    @property
    def mean(self):
        return torch.full(self._extended_shape(), math.nan, dtype=self.probs.dtype, device=self.probs.device)

    variance = property(lambda self: self.mean)

    def sample(self, sample_shape=torch.Size()):
        sample_shape = torch.Size(sample_shape)
        with torch.no_grad():
            flat = self.probs.reshape(-1, self._num_events)
            drawn = torch.multinomial(flat, max(sample_shape.numel(), 1) if sample_shape else 1, True).T
            return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value = value.long().unsqueeze(-1)
        value, logits = torch.broadcast_tensors(value, self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self):
        lowest = torch.finfo(self.logits.dtype).min
        return -(self.logits.clamp(min=lowest) * self.probs).sum(-1)

    def enumerate_support(self, expand=True):
        values = torch.arange(self._num_events, dtype=torch.long, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values


class OneHotCategorical(Distribution):
    """One of several categories, as a vector with a one in its place."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        super().__init__(
            self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args
        )

    def expand(self, batch_shape, _instance=None):
        batch_shape = torch.Size(batch_shape)
        return self._expanded(
            OneHotCategorical, _instance, batch_shape, _categorical=self._categorical.expand(batch_shape)
        )

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(lambda self: self._categorical.param_shape)
    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    def _one_hot(self, numbers):
        return torch.nn.functional.one_hot(numbers, self._event_shape[0]).to(self.probs)

    mode = property(lambda self: self._one_hot(self.probs.argmax(-1)))

    def sample(self, sample_shape=torch.Size()):
        return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self):
        return self._categorical.entropy()

    def enumerate_support(self, expand=True):
        n = self._event_shape[0]
        values = torch.eye(n, dtype=self.probs.dtype, device=self.probs.device)
        values = values.view((n,) + (1,) * len(self._batch_shape) + (n,))
        return values.expand((n, *self._batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """Samples have the gradient of the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape=torch.Size()):
        samples = self.sample(sample_shape)
        probs = self.probs
        return samples + (probs - probs.detach())


class Multinomial(Distribution):
    """How often each category was drawn in total_count draws."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        batch_shape = torch.Size(batch_shape)
        return self._expanded(
            Multinomial,
            _instance,
            batch_shape,
            total_count=self.total_count,
            _categorical=self._categorical.expand(batch_shape),
        )

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        return constraints.multinomial(self.total_count)

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(lambda self: self._categorical.param_shape)
    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape=torch.Size()):
        drawn = self._categorical.sample((self.total_count, *torch.Size(sample_shape)))
        counts = torch.nn.functional.one_hot(drawn, self._event_shape[0]).sum(0)
        return counts.to(self.probs)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        ways = torch.lgamma(value.sum(-1) + 1) - torch.lgamma(value + 1).sum(-1)
        never = (value == 0) & (logits == -math.inf)
        return ways + (torch.where(never, torch.zeros_like(logits), logits) * value).sum(-1)

    def entropy(self):
        n = torch.tensor(float(self.total_count), dtype=self.probs.dtype)
        one = Binomial(self.total_count, self.probs)
        counts = one.enumerate_support(False)[1:]
        weighted = one.log_prob(counts).exp() * torch.lgamma(counts + 1)
        return n * self._categorical.entropy() - torch.lgamma(n + 1) + weighted.sum((0, -1))


class NegativeBinomial(_Binary):
    """How many trials succeed before total_count of them have failed."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        _one_of(probs, logits)
        count, given = broadcast_all(total_count, probs if logits is None else logits)
        self.total_count = count.to(given.dtype)
        self._set_binary(given if logits is None else None, None if logits is None else given, validate_args)

    mean = property(lambda self: self.total_count * self.logits.exp())
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0))
    variance = property(lambda self: self.mean / (-self.logits).sigmoid())

    def sample(self, sample_shape=torch.Size()):
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            return torch.poisson(torch._C.ops._standard_gamma(self.total_count.expand(shape)) * self.logits.exp())

    def log_prob(self, value):
        self._checked(value)
        n = self.total_count
        plain = n * torch.nn.functional.logsigmoid(-self.logits) + value * torch.nn.functional.logsigmoid(self.logits)
        ways = torch.lgamma(n + value) - torch.lgamma(1.0 + value) - torch.lgamma(n)
        return plain + torch.where(n + value == 0.0, torch.zeros_like(ways), ways)
