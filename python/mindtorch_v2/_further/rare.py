# SPDX-License-Identifier: Apache-2.0
"""Names of torch that few programs use: rrelu, parts that share memory, a fixed number of places, order of dimensions."""

from .. import _C
from .._C import ops as _ops
from .samples import _as_op


# ---- rrelu ----

def _rrelu(name, input, lower, upper, training, generator, inplace):
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")

    def compute():
        if not training:
            slope = (lower + upper) / 2
            return _ops.leaky_relu_(input, slope) if inplace else _ops.leaky_relu(input, slope)
        slopes = _ops.uniform_(_ops.empty_like(input.detach()), lower, upper, generator=generator)
        slopes.masked_fill_(input > 0, 1)
        return input.mul_(slopes) if inplace else input * slopes
    return _as_op(name, (input, lower, upper, training), compute)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, generator=None):
    """x where positive, elsewhere x times a slope between lower and upper: random in training, else their mean."""
    return _rrelu("rrelu", input, lower, upper, training, generator, False)


def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False, generator=None):
    """rrelu() in place."""
    return _rrelu("rrelu_", input, lower, upper, training, generator, True)


# ---- parts ----

def unsafe_split(input, split_size, dim=0):
    """split() into parts of one size. The parts are views, as split()'s."""
    if not isinstance(split_size, int):
        raise TypeError("unsafe_split(): argument 'split_size' (position 2) must be int, not "
                        f"{type(split_size).__name__}")
    return _as_op("unsafe_split", (input, split_size, dim), lambda: _ops.split(input, split_size, dim))


def unsafe_split_with_sizes(input, split_sizes, dim=0):
    """split_with_sizes(). The parts are views."""
    return _as_op("unsafe_split_with_sizes", (input, list(split_sizes), dim),
                  lambda: _ops.split_with_sizes(input, list(split_sizes), dim))


def unsafe_chunk(input, chunks, dim=0):
    """chunk(). The parts are views."""
    return _as_op("unsafe_chunk", (input, chunks, dim), lambda: _ops.chunk(input, chunks, dim))


# ---- places ----

def nonzero_static(input, *, size, fill_value=-1, out=None):
    """The first `size` rows of nonzero(), with rows of fill_value where there are fewer."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")

    def compute():
        found = _ops.nonzero(input)[:size]
        missing = _ops.full((size - found.shape[0], input.dim()), fill_value, dtype=_C.int64, device=input.device)
        return _ops.cat((found, missing), 0)
    result = _as_op("nonzero_static", (input, size, fill_value), compute)
    return result if out is None else out.resize_(tuple(result.shape)).copy_(result)


# ---- order of dimensions ----

def _order(input):
    """Sorted by strides; dimensions of size 1 or stride 0, which may be anywhere, keep their places."""
    strides = input.stride()
    sorts = [dim for dim in range(input.dim()) if input.shape[dim] != 1 and strides[dim] != 0]
    sorted_ones = iter(sorted(sorts, key=lambda dim: -strides[dim]))
    return tuple(next(sorted_ones) if dim in sorts else dim for dim in range(input.dim()))


def _dim_order(self, *, ambiguity_check=False):
    """Dimensions from the outermost in memory to the innermost. ambiguity_check=True raises where several orders are
    right (sizes of 1, strides of 0); with a list, unless the tensor has exactly one of these memory formats."""
    listed = isinstance(ambiguity_check, (list, tuple))
    if not isinstance(ambiguity_check, bool) and not (
            listed and all(isinstance(each, type(_C.contiguous_format)) for each in ambiguity_check)):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    strides = self.stride()
    repeated = any(step == 0 for step in strides)
    if ambiguity_check and repeated:
        raise RuntimeError("The tensor does not have unique dim order.")
    ambiguous = not repeated and (1 in self.shape or len(set(strides)) < len(strides))
    if ambiguity_check is not False and ambiguous:
        formats = [_C.contiguous_format]
        formats += {4: [_C.channels_last], 5: [_C.channels_last_3d]}.get(self.dim(), [])
        matching = [each for each in formats if self.is_contiguous(memory_format=each)]
        if not listed or len([each for each in matching if each in ambiguity_check]) != 1:
            raise RuntimeError("The tensor does not have unique dim order, or cannot map to exact one of the given "
                               "memory formats.")
        if len(matching) != 1:
            raise RuntimeError("The tensor does not have unique dim order.")
    return _order(self)
