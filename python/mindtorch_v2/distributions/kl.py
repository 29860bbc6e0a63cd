# SPDX-License-Identifier: Apache-2.0
"""kl_divergence(p, q): functions by the classes of both, registered with register_kl."""

import math

import mindtorch_v2 as torch

from ._combine import HalfNormal, Independent, LogNormal, TransformedDistribution
from ._continuous import Beta, Cauchy, Exponential, Gamma, Laplace, Normal, Uniform
from ._discrete import Bernoulli, Binomial, Categorical, Geometric, OneHotCategorical, Poisson
from ._matrix import solve_lower
from ._multivariate import Dirichlet, MultivariateNormal
from .utils import sum_rightmost

__all__ = ["kl_divergence", "register_kl"]

_TABLE = {}


def register_kl(type_p, type_q):
    """A decorator: the function computes the divergence of two classes and of those derived from them."""

    def register(function):
        _TABLE[type_p, type_q] = function
        return function

    return register


def _find(type_p, type_q):
    fitting = [pair for pair in _TABLE if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])]
    if not fitting:
        return None
    closest = min(fitting, key=lambda pair: (type_p.__mro__.index(pair[0]), type_q.__mro__.index(pair[1])))
    return _TABLE[closest]


def kl_divergence(p, q):
    """The expectation, under p, of log p - log q."""
    function = _find(type(p), type(q))
    if function is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {p.__class__.__name__} and q type {q.__class__.__name__}"
        )
    return function(p, q)


def _infinite_where(mask, value):
    return torch.where(mask, torch.full_like(value, math.inf), value)


@register_kl(Normal, Normal)
def _normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(LogNormal, LogNormal)
@register_kl(HalfNormal, HalfNormal)
def _same_transform(p, q):
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("kl_divergence(): the transforms differ")
    extra = len(p.event_shape) - len(p.base_dist.event_shape)
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), extra)


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    soft = torch.nn.functional.softplus
    first = p.probs * (soft(-q.logits) - soft(-p.logits))
    first = torch.where(p.probs == 0, torch.zeros_like(first), _infinite_where(q.probs == 0, first))
    second = (1 - p.probs) * (soft(q.logits) - soft(p.logits))
    second = torch.where(p.probs == 1, torch.zeros_like(second), _infinite_where(q.probs == 1, second))
    return first + second


@register_kl(Binomial, Binomial)
def _binomial(p, q):
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return _infinite_where(p.total_count > q.total_count, kl)


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    each = p.probs * (p.logits - q.logits)
    each = _infinite_where((q.probs == 0).expand(each.shape), each)
    return torch.where((p.probs == 0).expand(each.shape), torch.zeros_like(each), each).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p, q):
    return _categorical(p._categorical, q._categorical)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p, q):
    a, b = p.concentration, q.concentration
    total = torch.lgamma(a.sum(-1)) - torch.lgamma(b.sum(-1)) + (torch.lgamma(b) - torch.lgamma(a)).sum(-1)
    return total + ((a - b) * (torch.digamma(a) - torch.digamma(a.sum(-1)).unsqueeze(-1))).sum(-1)


@register_kl(Beta, Beta)
def _beta(p, q):
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Gamma, Gamma)
def _gamma(p, q):
    a, b = p.concentration, q.concentration
    first = b * (p.rate / q.rate).log() + torch.lgamma(b) - torch.lgamma(a)
    return first + (a - b) * torch.digamma(a) + (q.rate - p.rate) * (a / p.rate)


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    ratio = p.scale / q.scale
    off = (p.loc - q.loc).abs()
    return -ratio.log() + off / q.scale + ratio * torch.exp(-off / p.scale) - 1


@register_kl(Cauchy, Cauchy)
def _cauchy(p, q):
    top = ((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2).log()
    return top - (4 * p.scale * q.scale).log()


@register_kl(Geometric, Geometric)
def _geometric(p, q):
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return _infinite_where((q.low > p.low) | (q.high < p.high), result)


@register_kl(Uniform, Normal)
def _uniform_normal(p, q):
    width = p.high - p.low
    first = (math.sqrt(math.pi * 2) * q.scale / width).log()
    return first + (width**2 / 12 + ((p.high + p.low - 2 * q.loc) / 2) ** 2) / (2 * q.scale**2)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Multivariate Normals with different event shapes cannot be computed"
        )
    lower = q._unbroadcasted_scale_tril
    columns = solve_lower(lower.unsqueeze(-3), p._unbroadcasted_scale_tril.mT)
    trace = columns.pow(2).sum((-1, -2))
    off = solve_lower(lower, q.loc - p.loc).pow(2).sum(-1)
    return q._half_log_det() - p._half_log_det() + 0.5 * (trace + off - p.event_shape[0])
