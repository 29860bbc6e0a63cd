# SPDX-License-Identifier: Apache-2.0
"""Fractional max pooling: windows that overlap at random places, so that the output may have any smaller size.

Of a dimension of n elements pooled by k to m, the windows begin at int((i + r) a) - int(r a) with a = (n - k) / (m - 1)
and a random number r in [0, 1) for each channel; the last begins at n - k.
"""

import math

import mindtorch_v2 as torch

from .._C import _call_as_op

__all__ = ["fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
           "fractional_max_pool3d_with_indices"]

_SIDES = {2: ("height", "width"), 3: ("time", "height", "width")}
_SAMPLE_OF = {2: (1, 0), 3: (0, 1, 2)}  # torch gives the width the first number of images, the time that of volumes


def _whole_numbers(name, what, value, count):
    value = (value,) if isinstance(value, int) else tuple(value)
    if len(value) not in (1, count):
        words = {2: "tuple of Ints", 3: "tuple of three Ints"}[count]
        raise RuntimeError(f"{name}: {what} must either be a single Int or {words}")
    return value * count if len(value) == 1 else value


def _begins(sample, size, kernel, output):
    """Where the windows of a dimension begin: [images, channels, output]"""
    last = torch.full((*sample.shape, min(output, 1)), size - kernel, dtype=torch.int64, device=sample.device)
    if output <= 1:
        return last
    share = torch.tensor(size - kernel, dtype=sample.dtype, device=sample.device) / (output - 1)
    sample = sample.unsqueeze(-1)
    steps = torch.arange(output - 1, dtype=sample.dtype, device=sample.device)
    return torch.cat(((((steps + sample) * share).long() - (sample * share).long()), last), -1)


def _pool(input, kernel, output, samples):
    """(largest elements, their places in the image) of [images, channels, ...]"""
    count, sides = len(kernel), input.shape[2:]
    lead = input.shape[:2]
    places = None
    for d, number in enumerate(_SAMPLE_OF[count]):
        of_window = torch.arange(kernel[d], device=input.device)
        along = _begins(samples[..., number], sides[d], kernel[d], output[d]).unsqueeze(-1) + of_window
        shape = [1] * (2 * count)
        shape[d], shape[count + d] = output[d], kernel[d]
        along = along.reshape(*lead, *shape) * math.prod(sides[d + 1:])
        places = along if places is None else places + along
    places = places.reshape(*lead, math.prod(output), math.prod(kernel))
    flat = input.reshape(*lead, math.prod(sides))
    with torch.no_grad():
        windows = flat.gather(2, places.flatten(2)).view(places.shape)
        order = torch.arange(places.size(-1), device=input.device)
        last_nan = torch.where(windows.isnan(), order, -1).amax(-1)
        best = torch.where(last_nan < 0, windows.argmax(-1), last_nan)
    best = places.gather(3, best.unsqueeze(3)).squeeze(3)
    return flat.gather(2, best).view(*lead, *output), best.view(*lead, *output)


def _fractional(count, input, kernel_size, output_size, output_ratio, samples):
    name = f"fractional_max_pool{count}d"
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if output_size is None:
        ratio = (output_ratio,) * count if isinstance(output_ratio, (int, float)) else tuple(output_ratio)
        output_size = [int(input.size(d - count) * ratio[d]) for d in range(count)]
    images = 1 if input.dim() == count + 1 else input.size(0)
    if samples is None:
        samples = torch.rand(images, input.size(-count - 1), count, dtype=input.dtype, device=input.device)
    kernel = _whole_numbers(name, "kernel_size", kernel_size, count)
    output = _whole_numbers(name, "output_size", output_size, count)
    if input.dim() not in (count + 1, count + 2):
        raise RuntimeError(f"{name}(): Expected {count + 1}D or {count + 2}D tensor, but got {list(input.shape)}")
    for d in range(1 if input.dim() == count + 2 else 0, input.dim()):
        if input.size(d) == 0:
            raise RuntimeError(f"{name}(): Expected input to have non-zero size for non-batch dimensions, but got"
                               f"{list(input.shape)} with dimension {d} being empty.")
    if samples.dim() != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {samples.dim()}")
    if samples.size(0) < images:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if samples.size(1) != input.size(-count - 1):
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if samples.size(2) != count:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {count}; got {samples.size(2)}.")
    if samples.dtype is not input.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    for side, size, k, n in zip(_SIDES[count], input.shape[-count:], kernel, output):
        if n + k - 1 > size - (count == 3):  # torch refuses volumes that would need every begin
            place = name if count == 2 else f"{name}_out"
            raise RuntimeError(f"{place}(): pool {side} {k} too large relative to input {side} {size}")
        if k < 1 or n < 0:
            raise RuntimeError(f"{name}(): a pool {side} of {k} and an output {side} of {n} are not possible")

    def compute():
        single = input.dim() == count + 1
        found = _pool(input.unsqueeze(0) if single else input, kernel, output, samples[:images].detach())
        return tuple(each.squeeze(0) for each in found) if single else found
    return _call_as_op(f"aten::{name}", (input, list(kernel), list(output), samples), compute)


def fractional_max_pool2d_with_indices(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """fractional_max_pool2d(), and where the elements are."""
    return _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool2d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """Largest elements over windows of images at random places, so many that the output has the wanted size."""
    result = fractional_max_pool2d_with_indices(input, kernel_size, output_size, output_ratio, True, _random_samples)
    return result if return_indices else result[0]


def fractional_max_pool3d_with_indices(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """fractional_max_pool3d(), and where the elements are."""
    return _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """Largest elements over windows of volumes at random places, so many that the output has the wanted size."""
    result = fractional_max_pool3d_with_indices(input, kernel_size, output_size, output_ratio, True, _random_samples)
    return result if return_indices else result[0]
