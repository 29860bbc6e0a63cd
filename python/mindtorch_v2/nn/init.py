# SPDX-License-Identifier: Apache-2.0
"""torch.nn.init: first values for parameters. All of them write in place, without autograd."""

import math
import warnings

import mindtorch_v2 as torch

__all__ = [
    "calculate_gain", "constant_", "dirac_", "eye_", "kaiming_normal_", "kaiming_uniform_", "normal_",
    "ones_",
    "orthogonal_", "sparse_", "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_", "zeros_",
]  # fmt: skip

_CONVOLUTIONS = [f"conv{kind}{dims}d" for kind in ("", "_transpose") for dims in (1, 2, 3)]
_GAINS = {
    **dict.fromkeys(["linear", "sigmoid", *_CONVOLUTIONS], 1),
    "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4,
}  # fmt: skip


def calculate_gain(nonlinearity, param=None):
    """By how much a nonlinearity shrinks the deviation, as the factor that makes up for it."""
    if nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    if nonlinearity != "leaky_relu":
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    slope = 0.01 if param is None else param
    if isinstance(slope, bool) or not isinstance(slope, (int, float)):
        raise ValueError(f"negative_slope {param} not a valid number")
    return math.sqrt(2.0 / (1 + slope**2))


def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Values from [a, b)."""
    with torch.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Values of the normal distribution."""
    with torch.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Values of the normal distribution, drawn again where they are outside of [a, b]."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may "
            "be incorrect.",
            stacklevel=2,
        )
    if a > b:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={a:g} > to={b:g}")
    with torch.no_grad():
        if std == 0 or a == b:
            return tensor.fill_(min(max(mean, a), b))
        inside = _normal_cdf((b - mean) / std) - _normal_cdf((a - mean) / std)
        if inside < 0.1:
            return _trunc_normal_far(tensor, mean, std, a, b, generator)
        tensor.normal_(mean, std, generator=generator)
        outside = (tensor < a) | (tensor > b)
        while outside.any():
            again = torch.empty_like(tensor).normal_(mean, std, generator=generator)
            tensor.copy_(torch.where(outside, again, tensor))
            outside = (tensor < a) | (tensor > b)
        return tensor


def _normal_cdf(x):
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


def _trunc_normal_far(tensor, mean, std, a, b, generator):
    """Where few normal values fall into [a, b]: uniform ones, kept with the density's probability. The
    density there is nearly an exponential, so the window is first cut to where it is not negligible."""
    nearest = min(max(mean, a), b)
    distance = abs(nearest - mean) / std
    reach = std * 40.0 / max(distance, 1.0)  # the density falls by more than exp(-40) beyond it
    low, high = max(a, nearest - reach), min(b, nearest + reach)
    top = (nearest - mean) ** 2

    def draw():
        values = torch.empty_like(tensor).uniform_(low, high, generator=generator)
        chance = torch.exp(((values - mean) ** 2 - top) / (-2.0 * std * std))
        return values, torch.empty_like(tensor).uniform_(0.0, 1.0, generator=generator) < chance

    values, kept = draw()
    while not kept.all():
        again, now = draw()
        values = torch.where(kept, values, again)
        kept = kept | now
    return tensor.copy_(values)


def constant_(tensor, val):
    """Fills with a value."""
    with torch.no_grad():
        return tensor.fill_(val)


def ones_(tensor):
    """Fills with 1."""
    with torch.no_grad():
        return tensor.fill_(1.0)


def zeros_(tensor):
    """Fills with 0."""
    with torch.no_grad():
        return tensor.zero_()


def eye_(tensor):
    """The identity matrix."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with torch.no_grad():
        return tensor.copy_(torch.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor, groups=1):
    """A convolution that gives back as many channels as it can."""
    dims = tensor.dim()
    if dims not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    sizes = tensor.size()
    if sizes[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = sizes[0] // groups
    centre = tuple(size // 2 for size in sizes[2:])
    with torch.no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, sizes[1])):
                tensor[(group * per_group + channel, channel, *centre)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor):
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = 1
    for size in tensor.shape[2:]:
        field *= size
    return tensor.size(1) * field, tensor.size(0) * field


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Uniform, with the deviation gain * sqrt(2 / (fan_in + fan_out))."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Normal, with the deviation gain * sqrt(2 / (fan_in + fan_out))."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def _kaiming_deviation(tensor, slope, mode, nonlinearity):
    """gain / sqrt(fan), with the fan that the mode names."""
    fans = dict(zip(("fan_in", "fan_out"), _calculate_fan_in_and_fan_out(tensor)))
    if mode.lower() not in fans:
        raise ValueError(f"Mode {mode} not supported, please use one of {list(fans)}")
    return calculate_gain(nonlinearity, slope) / math.sqrt(fans[mode.lower()])


def _nothing_to_do(tensor):
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return True
    return False


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Uniform, with the deviation gain / sqrt(fan)."""
    if _nothing_to_do(tensor):
        return tensor
    bound = math.sqrt(3.0) * _kaiming_deviation(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Normal, with the deviation gain / sqrt(fan)."""
    if _nothing_to_do(tensor):
        return tensor
    return normal_(tensor, 0.0, _kaiming_deviation(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor, gain=1, generator=None):
    """A (semi-)orthogonal matrix, uniformly distributed; all but the first dimension are one.

    By Gram-Schmidt in float64, each column twice: the second pass removes what rounding left of the
    others in it. The distances to the others are positive, as in a QR whose R has a positive diagonal.
    """
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    columns = tensor.numel() // rows
    with torch.no_grad():
        count, length = min(rows, columns), max(rows, columns)
        basis = torch.zeros(count, length, dtype=torch.float64)
        for place in range(count):
            norm = 0.0
            while norm < 1e-8:  # a column that depends on the others is drawn again
                vector = torch.empty(length, dtype=torch.float64).normal_(0, 1, generator=generator)
                start = float(vector.norm())
                for _ in range(2):
                    if place:
                        known = basis[:place]
                        vector = vector - torch.mv(known.t(), torch.mv(known, vector))
                norm = float(vector.norm()) / start
            basis[place] = vector / vector.norm()
        matrix = basis if rows <= columns else basis.t()
        return tensor.copy_(matrix.reshape(tensor.shape)).mul_(gain)


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Normal, with a share of zeros in each column."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = int(math.ceil(sparsity * rows))
    with torch.no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[torch.randperm(rows, generator=generator, device=tensor.device)[:zeros], column] = 0
    return tensor


def _deprecated(new):
    old = new.__name__[:-1]

    def deprecated(*args, **kwargs):
        warnings.warn(
            f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new.__name__}`.",
            FutureWarning,
            stacklevel=2,
        )
        return new(*args, **kwargs)

    deprecated.__name__ = deprecated.__qualname__ = old
    deprecated.__doc__ = f"The old name of {new.__name__}."
    return deprecated


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
