# SPDX-License-Identifier: Apache-2.0
"""Ranges and grids of numbers, slopes, parts of tensors and copies with other parts."""

import warnings

from .. import _C, _composed, _forms
from .._C import Tensor, ops as _ops
from .samples import _as_op


# ---- numbers and grids ----

range_ = range  # torch.range is below


def range(start=0, end=None, step=1, *, dtype=None, device=None, requires_grad=False, out=None):
    """arange() whose end is part of it (deprecated in torch)."""
    warnings.warn("torch.range is deprecated and will be removed in a future release because its behavior is "
                  "inconsistent with Python's range builtin. Instead, use torch.arange, which produces values in "
                  "[start, end).", stacklevel=2)
    if end is None:
        start, end = 0, start
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    count = int((end - start) / step) + 1
    dtype = dtype or (out.dtype if out is not None else _C.get_default_dtype())
    made = (_ops.arange(0, count, dtype=_C.float64, device=device) * step + start).to(dtype)
    made = made if out is None else _forms.into(made, out)
    return made.requires_grad_() if requires_grad else made


def logspace(start, end, steps, base=10.0, *, dtype=None, device=None, requires_grad=False, layout=None, out=None,
             pin_memory=False):
    """`steps` powers of the base, with exponents at equal distances from start to end."""
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    wanted = dtype or (out.dtype if out is not None else _C.get_default_dtype())

    def compute():
        powers = _ops.linspace(start, end, steps, dtype=_C.float64, device=device)
        return (_ops.pow(base, powers) if base else powers * 0.0).to(wanted)
    made = _as_op("logspace", (start, end, steps, base, dtype, layout, device, pin_memory), compute)
    made = made if out is None else _forms.into(made, out)
    return made.requires_grad_() if requires_grad else made


def vander(x, N=None, increasing=False):
    """A matrix whose columns are powers of a vector."""
    if x.dim() != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x.numel() if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    powers = _ops.arange(0, count, device=x.device)
    # Powers of integers are counted up as int64, as a product so far is.
    wide = x if x.is_floating_point() or x.is_complex() else x.to(_C.int64)
    matrix = _ops.pow(_ops.unsqueeze(wide, 1), powers)
    return matrix if increasing else _ops.flip(matrix, (1,))


def cartesian_prod(*tensors):
    """All ways to take one element of each vector, as rows."""
    vectors = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    for vector in vectors:
        if vector.dim() != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(vector.shape)}")
    if len(vectors) == 1:
        return vectors[0]

    def compute():
        grids = _ops.meshgrid(list(vectors), indexing="ij")
        return _ops.stack([_ops.reshape(grid, (-1,)) for grid in grids], 1)
    return _as_op("cartesian_prod", (list(vectors),), compute)


def combinations(input, r=2, with_replacement=False):
    """All ways to take r elements of a vector, in its order, as rows."""
    if input.dim() != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return _ops.empty((0,), dtype=input.dtype, device=input.device)

    def compute():
        places = _ops.arange(0, input.numel(), device=input.device)
        grids = [_ops.reshape(grid, (-1,)) for grid in _ops.meshgrid([places] * r, indexing="ij")]
        wanted = _ops.ones_like(grids[0], dtype=_C.bool)
        for before, after in zip(grids, grids[1:]):
            wanted = _ops.logical_and(wanted, before <= after if with_replacement else before < after)
        return _ops.stack([_ops.index_select(input, 0, _ops.masked_select(grid, wanted)) for grid in grids], 1)
    return _as_op("combinations", (input, r, with_replacement), compute)


def unravel_index(indices, shape):
    """Places in a flattened tensor of that shape as one tensor of indices for each dimension."""
    if indices.is_floating_point() or indices.is_complex() or indices.dtype is _C.bool:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(not isinstance(size, int) for size in shape):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    if any(size < 0 for size in shape):
        raise ValueError(f"'shape' cannot have negative values, but got {shape}")
    found, after = [], 1
    for size in reversed(shape):
        found.append(_ops.remainder(_ops.floor_divide(indices, after), size))
        after *= size
    return tuple(reversed(found))


def _slope(values, where, dim, edge_order):
    """Differences along a dimension: `where` is a distance, or the coordinates."""
    size = values.size(dim)
    def part(start, count):
        return _ops.narrow(values, dim, start, count)
    def shaped(numbers):
        return _ops.reshape(numbers, [-1 if i == dim % values.dim() else 1 for i in range_(values.dim())])
    if isinstance(where, Tensor):
        steps = where[1:] - where[:-1]
        left, right = shaped(steps[:-1]), shaped(steps[1:])
        middle = (part(2, size - 2) * (left / (right * (left + right)))
                  + part(1, size - 2) * ((right - left) / (left * right))
                  - part(0, size - 2) * (right / (left * (left + right))))
        first, second, last, before = steps[0], steps[1] if size > 2 else 0, steps[-1], steps[-2] if size > 2 else 0
    else:
        middle = (part(2, size - 2) - part(0, size - 2)) / (2 * where)
        first = second = last = before = where
    if edge_order == 1:
        start = (part(1, 1) - part(0, 1)) / first
        end = (part(size - 1, 1) - part(size - 2, 1)) / last
    else:
        start = (part(0, 1) * (-(2 * first + second) / (first * (first + second)))
                 + part(1, 1) * ((first + second) / (first * second))
                 - part(2, 1) * (first / (second * (first + second))))
        end = (part(size - 3, 1) * (last / (before * (last + before)))
               - part(size - 2, 1) * ((last + before) / (last * before))
               + part(size - 1, 1) * ((2 * last + before) / (last * (last + before))))
    return _ops.cat([start, middle, end], dim)


def gradient(input, *, spacing=1, dim=None, edge_order=1):
    """Slopes along dimensions: differences of neighbours, by the parabola through three points inside."""
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    dims = list(range_(input.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    given = isinstance(spacing, (list, tuple))
    if given and len(spacing) != len(dims):
        raise RuntimeError(f"torch.gradient expected spacing to be unspecified, a scalar or a list of length equal to "
                           f"'self.dim() = {len(dims)}', since dim argument was not given, but got a list of length "
                           f"{len(spacing)}")
    for each in dims:
        if input.size(each) < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    return tuple(_slope(input, spacing[i] if given else spacing, each, edge_order) for i, each in enumerate(dims))


# ---- parts ----

_DIRECTIONS = {"hsplit": "columns", "vsplit": "rows", "dsplit": "depth"}


def _split(name, least, dim_of):
    def function(input, indices_or_sections):
        if input.dim() < least:
            raise RuntimeError(f"torch.{name} requires a tensor with at least {least} dimension, but got "
                               f"a tensor with {input.dim()} dimensions!")
        dim = dim_of(input)
        if isinstance(indices_or_sections, int) and (indices_or_sections < 1 or input.size(dim) % indices_or_sections):
            raise RuntimeError(f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension "
                               f"{input.size(dim)} is not divisible by the split_size {indices_or_sections}!")
        return _as_op(name, (input, indices_or_sections), _composed.tensor_split, input, indices_or_sections, dim)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Parts along one dimension: tensor_split() by {_DIRECTIONS[name]}."
    return function


hsplit = _split("hsplit", 1, lambda input: 0 if input.dim() == 1 else 1)
vsplit = _split("vsplit", 2, lambda input: 0)
dsplit = _split("dsplit", 3, lambda input: 2)


def diagflat(input, offset=0):
    """A matrix with the elements of a tensor on its diagonal."""
    return _as_op("diagflat", (input, offset), lambda: _ops.diag_embed(_ops.reshape(input, (-1,)), offset))


def narrow_copy(input, dim, start, length):
    """A copy of narrow()."""
    return _ops.clone(_ops.narrow(input, dim, start, length))


def adjoint(input):
    """The transpose of the last two dimensions, conjugated."""
    if input.dim() == 1:
        raise RuntimeError("tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor.")
    turned = input if input.dim() == 0 else _ops.transpose(input, -2, -1)
    return _ops.conj(turned) if input.is_complex() else turned


def as_strided_scatter(input, src, size, stride, storage_offset=None):
    """A copy of the tensor in which a view of it has other elements."""
    copy = _ops.clone(input)
    _ops.copy_(_ops.as_strided(copy, size, stride, storage_offset), src)
    return copy


def put(input, index, source, accumulate=False):
    """A copy with other elements at places in the flattened tensor, or with these added there."""
    if index.dtype is not _C.int64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {_composed._title(index)}")
    if source.dtype is not input.dtype:
        raise RuntimeError("put_(): self and source expected to have the same dtype, but got self.dtype = "
                           f"{_composed._title(input)} and source.dtype = {_composed._title(source)}")
    if index.numel() != source.numel():
        raise IndexError("put_(): Expected source and index to have the same number of elements, but got "
                           f"source.numel() = {source.numel()}, index.numel() = {index.numel()}")
    flat = _ops.index_put(_ops.reshape(input, (-1,)), (_ops.reshape(index, (-1,)),), _ops.reshape(source, (-1,)),
                          accumulate)
    return _ops.reshape(flat, input.shape)


def empty_strided(size, stride, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Memory for a tensor of that shape whose elements are so far apart."""
    size, stride = tuple(size), tuple(stride)
    if len(size) != len(stride):
        raise RuntimeError(f"dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(stride)})")
    if any(step < 0 for step in stride):
        raise RuntimeError(f"empty_strided: strides must not be negative, got {stride}")

    def make():
        count = 0 if 0 in size else 1 + sum((n - 1) * step for n, step in zip(size, stride))
        return _ops.as_strided(_ops.empty((count,), dtype=dtype, device=device), size, stride)
    made = _as_op("empty_strided", (size, stride, dtype, layout, device, pin_memory), make)
    return made.requires_grad_() if requires_grad else made
