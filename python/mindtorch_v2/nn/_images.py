# SPDX-License-Identifier: Apache-2.0
"""Functions of torch.nn.functional for images and volumes: other sizes, transposed and deep convolutions."""

import math
import warnings

from .._C import ops

_INTERPOLATING = ("linear", "bilinear", "bicubic", "trilinear")
_MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"
# mode -> the row for inputs of 3, 4 and 5 dimensions
_ROWS = {
    "nearest": ("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d"),
    "nearest-exact": ("_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d"),
    "linear": ("upsample_linear1d", None, None),
    "bilinear": (None, "upsample_bilinear2d", None),
    "bicubic": (None, "upsample_bicubic2d", None),
    "trilinear": (None, None, "upsample_trilinear3d"),
}
_SMOOTH_ROWS = {"bilinear": "_upsample_bilinear2d_aa", "bicubic": "_upsample_bicubic2d_aa"}


def _spread(value, dims, input, name, letter):
    """A number for all dimensions, or one for each."""
    if not isinstance(value, (list, tuple)):
        return [value] * dims
    if len(value) != dims:
        what = "output size" if name == "size" else name
        shown = f"output size of {value}" if name == "size" else f"scale_factor of shape {value}"
        other = "output" if name == "size" else name
        raise ValueError(
            f"Input and {other} must have the same number of spatial dimensions, but got input with spatial "
            f"dimensions of {list(input.shape[2:])} and {shown}. Please provide input tensor in (N, C, d1, d2, "
            f"...,dK) format and {what} in ({letter}1, {letter}2, ...,{letter}K) format."
        )
    return list(value)


def _check_mode(mode, align_corners, antialias, input):
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | bilinear | "
                "bicubic | trilinear"
            )
    if antialias and not (mode in _SMOOTH_ROWS and input.dim() == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor "
            "as input"
        )


def _row(mode, dim):
    """The row's name, or why there is none."""
    rows = _ROWS.get(mode, (None, None, None))
    if 3 <= dim <= 5 and rows[dim - 3] is not None:
        return rows[dim - 3]
    if 3 <= dim <= 5 and mode in _INTERPOLATING:
        needed = 3 + next(place for place, row in enumerate(rows) if row)
        raise NotImplementedError(f"Got {dim}D input, but {mode} mode needs {needed}D input")
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {dim}D) for the modes: {_MODES} (got {mode})"
    )


def interpolate(
    input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None,
    antialias=False,
):  # fmt: skip
    """The image in another size: `size`, or its own times `scale_factor`."""
    _check_mode(mode, align_corners, antialias, input)
    dims = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    scales = None
    if size is not None:
        size = _spread(size, dims, input, "size", "o")
    elif scale_factor is not None:
        scales = _spread(scale_factor, dims, input, "scale_factor", "s")
    else:
        raise ValueError("either size or scale_factor should be defined")
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if size is None:
        size = [int(math.floor(float(side) * scale)) for side, scale in zip(input.shape[2:], scales)]
        if recompute_scale_factor or mode == "area":
            scales = None
    scales = [None] * dims if scales is None else [float(scale) for scale in scales]
    if mode == "area" and 3 <= input.dim() <= 5:
        return getattr(ops, f"adaptive_avg_pool{dims}d")(input, size)
    row = _row(mode, input.dim())
    if antialias:
        row = _SMOOTH_ROWS[mode]
    corners = (bool(align_corners),) if mode in _INTERPOLATING else ()
    return getattr(ops, row)(input, [int(side) for side in size], *corners, *scales)


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """interpolate(), under its older name."""
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """interpolate() to the nearest element, under its older name."""
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """interpolate() with mode='bilinear' and align_corners, under its older name."""
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


# ---- convolutions ----

conv_transpose1d = ops.conv_transpose1d
conv_transpose2d = ops.conv_transpose2d
conv_transpose3d = ops.conv_transpose3d


# ---- pools of volumes, pools turned back ----


def _steps(stride):
    return [] if stride is None else stride


def avg_pool3d(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    """Means over windows of the last three dimensions."""
    return ops.avg_pool3d(
        input, kernel_size, _steps(stride), padding, ceil_mode, count_include_pad, divisor_override
    )


def max_pool3d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """Largest values over windows of the last three dimensions, and where they are."""
    return tuple(ops.max_pool3d_with_indices(input, kernel_size, _steps(stride), padding, dilation, ceil_mode))


def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Largest values over windows of the last three dimensions."""
    if return_indices:
        return max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return ops.max_pool3d(input, kernel_size, _steps(stride), padding, dilation, ceil_mode)


def _sides(input, output_size, count):
    """An int or a tuple with None where the input's size stays."""
    if isinstance(output_size, int) or output_size is None:
        output_size = (output_size,) * count
    return [size if wanted is None else wanted for wanted, size in zip(output_size, input.shape[-count:])]


def adaptive_avg_pool3d(input, output_size):
    """Means over windows chosen so that the last three dimensions become output_size."""
    return ops.adaptive_avg_pool3d(input, _sides(input, output_size, 3))


def adaptive_max_pool1d_with_indices(input, output_size, return_indices=False):
    """Largest values over windows chosen by the wanted length, and where they are."""
    return tuple(ops.adaptive_max_pool1d(input, output_size))


def adaptive_max_pool1d(input, output_size, return_indices=False):
    """Largest values over windows chosen so that the last dimension becomes output_size."""
    result = adaptive_max_pool1d_with_indices(input, output_size)
    return result if return_indices else result[0]


def adaptive_max_pool3d_with_indices(input, output_size, return_indices=False):
    """Largest values over windows chosen by the wanted sizes, and where they are."""
    return tuple(ops.adaptive_max_pool3d(input, _sides(input, output_size, 3)))


def adaptive_max_pool3d(input, output_size, return_indices=False):
    """Largest values over windows chosen so that the last three dimensions become output_size."""
    result = adaptive_max_pool3d_with_indices(input, output_size)
    return result if return_indices else result[0]


def _numbers(value, count):
    return (value,) * count if isinstance(value, int) else tuple(value)


def _unpooled_sides(input, kernel_size, stride, padding, output_size):
    """The sizes that max_unpool gives; `output_size` must be near those that follow from the kernel."""
    count = len(kernel_size)
    sides = input.shape[-count:]
    usual = [(side - 1) * s + k - 2 * p for side, s, k, p in zip(sides, stride, kernel_size, padding)]
    if output_size is None:
        return usual
    wanted = list(output_size)
    if len(wanted) == count + 2:
        wanted = wanted[2:]
    if len(wanted) != count:
        raise ValueError(
            f"output_size should be a sequence containing {count} or {count + 2} elements, but it has a length "
            f"of '{len(wanted)}'"
        )
    for size, base, step in zip(wanted, usual, stride):
        if not base - step < size < base + step:
            raise ValueError(
                f"invalid output_size '{wanted}' (dim 0 must be between {base - step} and {base + step})"
            )
    return wanted


def _unpool(count, input, indices, kernel_size, stride, padding, output_size):
    kernel_size = _numbers(kernel_size, count)
    stride = kernel_size if stride is None else _numbers(stride, count)
    padding = _numbers(padding, count)
    return stride, padding, _unpooled_sides(input, kernel_size, stride, padding, output_size)


def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """max_pool1d turned back: zeros where nothing was taken."""
    _, _, sides = _unpool(1, input, indices, kernel_size, stride, padding, output_size)
    return ops.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*sides, 1]).squeeze(-1)


def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """max_pool2d turned back: zeros where nothing was taken."""
    _, _, sides = _unpool(2, input, indices, kernel_size, stride, padding, output_size)
    return ops.max_unpool2d(input, indices, sides)


def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """max_pool3d turned back: zeros where nothing was taken."""
    steps, ends, sides = _unpool(3, input, indices, kernel_size, stride, padding, output_size)
    return ops.max_unpool3d(input, indices, sides, steps, ends)


def _power_mean(pool, input, norm_type, area, *rest):
    """(sum x^p)^(1/p) of windows: the mean of powers, times the number of elements."""
    out = pool(input.pow(norm_type), *rest)
    return (out.sign() * out.abs().relu()).mul(area).pow(1.0 / norm_type)


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """p-norms over windows of the last dimension."""
    return _power_mean(ops.avg_pool1d, input, norm_type, kernel_size, kernel_size, _steps(stride), 0, ceil_mode)


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """p-norms over windows of the last two dimensions."""
    sides = _numbers(kernel_size, 2)
    return _power_mean(
        ops.avg_pool2d, input, norm_type, math.prod(sides), sides, _steps(stride), 0, ceil_mode
    )


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """p-norms over windows of the last three dimensions."""
    sides = _numbers(kernel_size, 3)
    return _power_mean(
        ops.avg_pool3d, input, norm_type, math.prod(sides), sides, _steps(stride), 0, ceil_mode
    )


# ---- windows as columns, shuffles, norms ----


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """Windows of an image as columns."""
    return ops.im2col(input, *(_numbers(value, 2) for value in (kernel_size, dilation, padding, stride)))


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Columns as windows of an image, added where they meet."""
    lists = (output_size, kernel_size, dilation, padding, stride)
    return ops.col2im(input, *(_numbers(value, 2) for value in lists))


pixel_shuffle = ops.pixel_shuffle
pixel_unshuffle = ops.pixel_unshuffle
channel_shuffle = ops.channel_shuffle
native_channel_shuffle = ops.channel_shuffle


def instance_norm(
    input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5
):
    """batch_norm with statistics of each image."""
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {input.size()}"
        )
    return ops.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps)


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """Divides by sums of squares over neighbouring channels."""
    dim = input.dim()
    if dim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality                          input (got {dim} dimensions)")
    if input.numel() == 0:
        return input
    squares = input.mul(input)
    if dim == 3:
        padded = ops.pad(squares.unsqueeze(1), (0, 0, size // 2, (size - 1) // 2), "constant", None)
        sums = ops.avg_pool2d(padded, (size, 1), (1, 1)).squeeze(1)
    else:
        sizes = squares.size()
        apart = squares.view(sizes[0], 1, sizes[1], sizes[2], -1)
        padded = ops.pad(apart, (0, 0, 0, 0, size // 2, (size - 1) // 2), "constant", None)
        sums = ops.avg_pool3d(padded, (size, 1, 1), (1, 1, 1)).squeeze(1).view(sizes)
    return input / sums.mul(alpha).add(k).pow(beta)


# ---- images at places of a grid ----

_SAMPLING = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_GRID_PADDING = {"zeros": 0, "border": 1, "reflection": 2}


def affine_grid(theta, size, align_corners=None):
    """The grid of places that matrices [N, 2, 3] or [N, 3, 4] give, for grid_sample."""
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please "
            "specify align_corners=True if the old behavior is desired. See the documentation of grid_sample for "
            "details.",
            stacklevel=2,
        )
    return ops.affine_grid_generator(theta, list(size), bool(align_corners))


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """The image at the grid's places: x and y, of which -1 and 1 are the ends."""
    if mode not in _SAMPLING:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: "
            f"'{mode}'"
        )
    if padding_mode not in _GRID_PADDING:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please "
            "specify align_corners=True if the old behavior is desired. See the documentation of grid_sample for "
            "details.",
            stacklevel=2,
        )
    return ops.grid_sampler(input, grid, _SAMPLING[mode], _GRID_PADDING[padding_mode], bool(align_corners))
