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
