# SPDX-License-Identifier: Apache-2.0
"""Sums of products, statistics of samples, distances."""

import math
import warnings

from .. import _C, _composed, _forms
from .._C import Tensor, ops as _ops


def _as_op(name, inputs, function, *args):
    return _C._call_as_op("aten::" + name, inputs, function, *args)


def _named(name, *values):
    """Results with names, made at the first use: the module of named results is heavy to import."""
    from .. import return_types

    return getattr(return_types, name)(*values)


# ---- products ----

def _scaled(input, factor):
    return input if factor == 1 else input * factor


def addr(input, vec1, vec2, *, beta=1, alpha=1, out=None):
    """beta * input + alpha * (the outer product of two vectors)."""
    for number, vector in ((1, vec1), (2, vec2)):
        if vector.dim() != 1:
            raise RuntimeError(f"addr: Expected 1-D argument vec{number}, but got {vector.dim()}-D")

    def compute():
        product = _scaled(_ops.outer(vec1, vec2), alpha)
        if beta == 0:  # NaN in the input is not looked at
            return product
        return _scaled(_ops.expand(input, product.shape), beta) + product
    result = _as_op("addr", (input, vec1, vec2, beta, alpha), compute)
    return result if out is None else _forms.into(result, out)


def addbmm(input, batch1, batch2, *, beta=1, alpha=1, out=None):
    """beta * input + alpha * (the sum of products of matrices)."""
    for number, batch in ((1, batch1), (2, batch2)):
        if batch.dim() != 3:
            raise RuntimeError(f"batch{number} must be a 3D tensor")
    if batch1.size(0) != batch2.size(0):
        raise RuntimeError("batch1 and batch2 must have same number of batches, got "
                           f"{batch1.size(0)} and {batch2.size(0)}")
    if batch1.size(2) != batch2.size(1):
        raise RuntimeError(f"Incompatible matrix sizes for bmm ({batch1.size(1)}x{batch1.size(2)} and "
                           f"{batch2.size(1)}x{batch2.size(2)})")

    def compute():
        inner = batch1.size(0) * batch1.size(2)
        left = _ops.reshape(_ops.permute(batch1, (1, 0, 2)), (batch1.size(1), inner))
        return _ops.addmm(input, left, _ops.reshape(batch2, (inner, batch2.size(2))), beta=beta, alpha=alpha)
    result = _as_op("addbmm", (input, batch1, batch2, beta, alpha), compute)
    return result if out is None else _forms.into(result, out)


def block_diag(*tensors):
    """A matrix with these matrices on its diagonal, and 0 elsewhere."""
    matrices = []
    for i, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(tensor).__name__}")
        if tensor.dim() > 2:
            raise RuntimeError("torch.block_diag: Input tensors must have 2 or fewer dimensions. Input "
                               f"{i} has {tensor.dim()} dimensions")
        matrices.append(_ops.atleast_2d(tensor))
    if not matrices:
        return _ops.empty((1, 0))
    dtype = matrices[0].dtype
    for matrix in matrices:
        dtype = _C.promote_types(dtype, matrix.dtype)

    def compute():
        width, before, rows = sum(matrix.size(1) for matrix in matrices), 0, []
        for matrix in matrices:
            after = width - before - matrix.size(1)
            rows.append(_ops.constant_pad_nd(matrix.to(dtype), (before, after), 0))
            before += matrix.size(1)
        return _ops.cat(rows, 0)
    return _as_op("block_diag", (list(tensors),), compute)


# ---- samples ----

def _weights(name, weights, count, whole):
    """Checks weights of observations: one for each, none below 0."""
    if weights.dim() > 1:
        raise RuntimeError(f"cov(): expected {name} to have one or fewer dimensions but got {name} with "
                           f"{weights.dim()} dimensions")
    if whole != (not weights.is_floating_point()):
        raise RuntimeError(f"cov(): expected {name} to have {'integral' if whole else 'floating point'} dtype but got "
                           f"{name} with {_composed._title(weights)} dtype")
    if weights.numel() != count:
        raise RuntimeError(f"cov(): expected {name} to have the same numel as there are observations in the input but "
                           f"got {weights.numel()} != {count}")
    if weights.numel() and bool(_ops.any(weights < 0)):
        raise RuntimeError(f"cov(): {name} cannot be negative")


def cov(input, *, correction=1, fweights=None, aweights=None):
    """Covariances of variables, which are the rows of a matrix whose columns are observations."""
    if input.dim() > 2:
        raise RuntimeError("cov(): expected input to have two or fewer dimensions but got an input with "
                           f"{input.dim()} dimensions")
    if input.dtype is _C.bool:
        raise RuntimeError("cov(): bool dtype is not supported for input")

    def compute():
        rows = input if input.dim() == 2 else _ops.reshape(input, (1, input.numel()))
        count, weights = rows.size(1), None
        if fweights is not None:
            _weights("fweights", fweights, count, True)
            weights = fweights
        if aweights is not None:
            _weights("aweights", aweights, count, False)
            weights = aweights if weights is None else weights * aweights
        total = count if weights is None else _ops.sum(weights)
        if weights is not None and weights.numel() and bool(total == 0):
            raise RuntimeError("cov(): weights sum to zero, can't be normalized")
        mean = _ops.sum(rows if weights is None else rows * weights, 1) / total
        if aweights is not None and correction != 0:
            freedom = total - correction * _ops.sum(weights * aweights) / total
        else:
            freedom = total - correction
        if bool(freedom <= 0):
            warnings.warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of "
                          "observations.", stacklevel=4)
            freedom = 0
        off = rows - _ops.unsqueeze(mean, 1)
        product = _ops.mm(off, (off if weights is None else off * weights).t())
        return _ops.squeeze(product / freedom)
    return _as_op("cov", (input, correction, fweights, aweights), compute)


def corrcoef(input):
    """Correlations of variables, the rows of a matrix: covariances divided by both deviations, from -1 to 1."""
    if input.dim() > 2:
        raise RuntimeError("corrcoef(): expected input to have two or fewer dimensions but got an input with "
                           f"{input.dim()} dimensions")

    def compute():
        shared = cov(input)
        if shared.dim() == 0:
            return shared / shared
        deviations = _ops.sqrt(_ops.diagonal(shared))
        return _ops.clamp(shared / _ops.unsqueeze(deviations, 1) / _ops.unsqueeze(deviations, 0), -1, 1)
    return _as_op("corrcoef", (input,), compute)


def _edges(values, bins, bounds):
    """The edges of `bins` equal parts of `bounds`, or of what the values cover."""
    if bins <= 0:
        raise RuntimeError(f"torch.histogramdd(): bins must be > 0, but got {bins} for dimension 0")
    if bounds is None:
        low, high = (0.0, 1.0) if not values.numel() else (float(values.min()), float(values.max()))
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(f"torch.histogramdd: dimension 0's range [{low:g}, {high:g}] is not finite")
    else:
        low, high = bounds
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(f"torch.histogramdd: dimension 0's range [{low:g}, {high:g}] is not finite")
        if low > high:
            raise RuntimeError(f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g} for "
                               "dimension 0")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return _ops.linspace(low, high, bins + 1, dtype=values.dtype, device=values.device)


def _places(values, edges):
    """Which part each value is in, and whether it is in one: the last edge belongs to the last part."""
    place = _ops.searchsorted(edges, values, right=True) - 1
    inside = _ops.logical_and(values >= edges[0], values <= edges[-1])
    return _ops.clamp(place, 0, edges.numel() - 2), inside


def _count(columns, edges, weight, density):
    index, inside = None, None
    for column, edge in zip(columns, edges):
        place, ok = _places(column.contiguous(), edge)
        index = place if index is None else index * (edge.numel() - 1) + place
        inside = ok if inside is None else _ops.logical_and(inside, ok)
    sizes = [edge.numel() - 1 for edge in edges]
    some = columns[0]
    weight = _ops.ones_like(some) if weight is None else _ops.reshape(weight, (-1,))
    weight = _ops.where(inside, weight, 0.0)
    counts = _ops.zeros((math.prod(sizes),), dtype=some.dtype, device=some.device)
    counts = _ops.reshape(_ops.index_add(counts, 0, index, weight), sizes)
    if density:
        counts = counts / _ops.sum(counts)
        for i, edge in enumerate(edges):
            shape = [1] * len(sizes)
            shape[i] = sizes[i]
            counts = counts / _ops.reshape(edge[1:] - edge[:-1], shape)
    return counts


def _check_histogram(input, weight, count):
    if not input.is_floating_point():
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{_composed._title(input)}'")
    if weight is not None and weight.dtype is not input.dtype:
        raise RuntimeError("torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have "
                           f"the same dtype, but got input(input.dtype={input.dtype}), and weight({weight.dtype})")
    if weight is not None and weight.numel() != count:
        raise RuntimeError("torch.histogramdd: if weight tensor is provided it should have one element for each of "
                           f"{count}, but it has {weight.numel()}")


def histogram(input, bins, *, range=None, weight=None, density=False):
    """How many elements are in each part of a range, and the edges of the parts; or the sum of their weights."""
    _check_histogram(input, weight, input.numel())

    def compute():
        flat = _ops.reshape(input.detach(), (-1,))
        edges = bins if isinstance(bins, Tensor) else _edges(flat, bins, range)
        return _count([flat], [edges], weight, density), edges
    return _named("histogram", *_as_op("histogram", (input, bins, range, weight, density), compute))


def histogramdd(input, bins, *, range=None, weight=None, density=False):
    """histogram() of points: the last dimension has their coordinates. The second result has the edges of each."""
    if input.dim() < 2:
        raise RuntimeError(f"torch.histogramdd: input tensor should have at least 2 dimensions, but got {input.dim()}")
    dims = input.size(-1)
    bins = [bins] * dims if isinstance(bins, int) else list(bins)
    if len(bins) != dims:
        raise RuntimeError(f"torch.histogramdd: expected {dims} sequences of bin edges for a {dims}-dimensional "
                           f"histogram but got {len(bins)}")
    if range is not None and len(range) != 2 * dims:
        raise RuntimeError(f"torch.histogramdd: for a {dims}-dimensional histogram range should have {2 * dims} "
                           f"elements, but got {len(range)}")
    _check_histogram(input, weight, input.numel() // dims if dims else 0)

    def compute():
        columns = _ops.unbind(_ops.reshape(input.detach(), (-1, dims)), 1)
        edges = [each if isinstance(each, Tensor) else
                 _edges(column, each, None if range is None else range[2 * i:2 * i + 2])
                 for i, (column, each) in enumerate(zip(columns, bins))]
        return _count(columns, edges, weight, density), *edges
    hist, *edges = _as_op("histogramdd", (input, range, weight, density), compute)
    return _named("histogramdd", hist, tuple(edges))


def pdist(input, p=2.0):
    """The p-norms of the differences of all pairs of rows: cdist() above its diagonal."""
    if input.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.dim()}D")
    if not input.is_floating_point():
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")

    def compute():
        rows, columns = _composed.triu_indices(input.size(0), input.size(0), 1, device=input.device)
        off = _ops.index_select(input, 0, rows) - _ops.index_select(input, 0, columns)
        return _ops.linalg_vector_norm(off, p, (-1,))
    return _as_op("pdist", (input, p), compute)


def renorm(input, p, dim, maxnorm):
    """Slices along a dimension whose p-norm is larger than maxnorm are scaled to it."""
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if input.dim() < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.dim()} dimensions")
    if not input.is_floating_point():
        raise RuntimeError("renorm: only floating point and complex dtypes are supported, got "
                           f"{_composed._title(input)}")

    def compute():
        place = dim + input.dim() if dim < 0 else dim
        others = [i for i in range(input.dim()) if i != place]
        length = _ops.linalg_vector_norm(input, p, others, True)
        return input * _ops.where(length > maxnorm, maxnorm / (length + 1e-7), 1.0)
    return _as_op("renorm", (input, p, dim, maxnorm), compute)
