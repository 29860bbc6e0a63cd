# SPDX-License-Identifier: Apache-2.0
"""Transforms of matrices and of parts of a value: Cholesky factors, shapes, concatenations. transforms.py has them."""

import math

import mindtorch_v2 as torch
from mindtorch_v2.nn.functional import softplus

from . import constraints
from .transforms import Transform


class LowerCholeskyTransform(Transform):
    """Any square matrix to a lower triangular one with a positive diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x):
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Any square matrix to a positive definite one."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x):
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(torch.linalg.cholesky(y))


def _strictly_lower(vector):
    """The matrix that has a vector's elements, row by row, below its diagonal."""
    count = vector.shape[-1]
    size = int((1 + math.sqrt(1 + 8 * count)) / 2)
    if size * (size - 1) // 2 != count:
        raise ValueError(f"The size of last dimension is {count} which cannot be expressed as the lower triangular "
                         "part of a square D x D matrix.")
    made = torch.zeros(vector.shape[:-1] + (size, size), dtype=vector.dtype, device=vector.device)
    rows, columns = torch.tril_indices(size, size, -1)
    made[..., rows, columns] = vector
    return made


class CorrCholeskyTransform(Transform):
    """A vector of n (n - 1) / 2 numbers to the Cholesky factor of a correlation matrix of n rows."""

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x):
        x = torch.tanh(x)
        eps = torch.finfo(x.dtype).eps
        x = x.clamp(min=-1 + eps, max=1 - eps)
        lower = _strictly_lower(x)
        left = (1 - lower ** 2).sqrt().cumprod(-1)
        lower = lower + torch.eye(lower.shape[-1], dtype=lower.dtype, device=lower.device)
        before = torch.nn.functional.pad(left[..., :-1], [1, 0], value=1)
        return lower * before

    def _inverse(self, y):
        left = 1 - torch.cumsum(y * y, dim=-1)
        before = torch.nn.functional.pad(left[..., :-1], [1, 0], value=1)
        rows, columns = torch.tril_indices(y.shape[-1], y.shape[-1], -1)
        ratio = y[..., rows, columns] / before[..., rows, columns].sqrt()
        return (ratio.log1p() - ratio.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x, y, intermediates=None):
        left = 1 - (y * y).cumsum(dim=-1)
        rows, columns = torch.tril_indices(y.shape[-1], y.shape[-1], -2)
        stretched = 0.5 * left[..., rows, columns].log().sum(-1)
        return stretched - 2 * (x + softplus(-2 * x) - math.log(2.0)).sum(dim=-1)

    def forward_shape(self, shape):
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        size = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return torch.Size(shape[:-1]) + (size, size)

    def inverse_shape(self, shape):
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return torch.Size(shape[:-2]) + (shape[-1] * (shape[-1] - 1) // 2,)


class ReshapeTransform(Transform):
    """The last dimensions of a value in another shape."""

    bijective = True

    def __init__(self, in_shape, out_shape, cache_size=0):
        self.in_shape, self.out_shape = torch.Size(in_shape), torch.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self):
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self):
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x):
        return x.reshape(x.shape[:x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y):
        return y.reshape(y.shape[:y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x, y):
        return x.new_zeros(x.shape[:x.dim() - len(self.in_shape)])

    def forward_shape(self, shape):
        return self._replaced(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        return self._replaced(shape, self.out_shape, self.in_shape)

    @staticmethod
    def _replaced(shape, before, after):
        if len(shape) < len(before):
            raise ValueError("Too few dimensions on input")
        cut = len(shape) - len(before)
        if tuple(shape[cut:]) != tuple(before):
            raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {before}")
        return torch.Size(shape[:cut]) + after


class _Parts(Transform):
    """Transforms of parts of a value along a dimension."""

    def __init__(self, tseq, dim=0, cache_size=0):
        if not all(isinstance(each, Transform) for each in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size=cache_size)
        self.transforms, self.dim = list(tseq), dim

    bijective = property(lambda self: all(each.bijective for each in self.transforms))


class CatTransform(_Parts):
    """Transforms of stretches of a dimension, as torch.cat joins them."""

    def __init__(self, tseq, dim=0, lengths=None, cache_size=0):
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths length ({len(self.lengths)}) must match transforms length "
                                 f"({len(self.transforms)})")

    length = property(lambda self: sum(self.lengths))

    @constraints.dependent_property
    def domain(self):
        return constraints.cat([each.domain for each in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self):
        return constraints.cat([each.codomain for each in self.transforms], self.dim, self.lengths)

    def _call(self, x):
        return torch.cat([each(part) for each, part in zip(self.transforms, x.split(self.lengths, self.dim))], self.dim)

    def _inverse(self, y):
        return torch.cat([each.inv(part) for each, part in zip(self.transforms, y.split(self.lengths, self.dim))],
                         self.dim)

    def log_abs_det_jacobian(self, x, y):
        found, event_dim = [], self.domain.event_dim
        for each, a, b in zip(self.transforms, x.split(self.lengths, self.dim), y.split(self.lengths, self.dim)):
            part = each.log_abs_det_jacobian(a, b)
            more = event_dim - each.domain.event_dim
            found.append(part.sum(tuple(range(-more, 0))) if more else part)
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += event_dim
        if dim < 0:
            return torch.cat(found, dim=dim)
        return sum(found)


class StackTransform(_Parts):
    """A transform for each slice along a dimension."""

    @constraints.dependent_property
    def domain(self):
        return constraints.stack([each.domain for each in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self):
        return constraints.stack([each.codomain for each in self.transforms], self.dim)

    def _slices(self, value):
        return [value.select(self.dim, i) for i in range(value.size(self.dim))]

    def _call(self, x):
        return torch.stack([each(part) for each, part in zip(self.transforms, self._slices(x))], self.dim)

    def _inverse(self, y):
        return torch.stack([each.inv(part) for each, part in zip(self.transforms, self._slices(y))], self.dim)

    def log_abs_det_jacobian(self, x, y):
        return torch.stack([each.log_abs_det_jacobian(a, b)
                            for each, a, b in zip(self.transforms, self._slices(x), self._slices(y))], self.dim)


class CumulativeDistributionTransform(Transform):
    """The cumulated probabilities of a distribution."""

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        return self.distribution.log_prob(x)
