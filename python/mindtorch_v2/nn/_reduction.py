# SPDX-License-Identifier: Apache-2.0
"""'none', 'mean' and 'sum' as the numbers that rows take, and torch's old way to say them."""

import warnings

_NUMBERS = {"none": 0, "mean": 1, "sum": 2}


def get_enum(reduction):
    """0 none, 1 mean, 2 sum."""
    number = _NUMBERS.get(reduction) if isinstance(reduction, str) else None
    if number is None:
        if reduction == "elementwise_mean":
            warnings.warn(
                "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.",
                stacklevel=3
            )
            return 1
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return number


def legacy_get_string(size_average, reduce, emit_warning=True):
    """What size_average and reduce mean as a reduction."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    reduction = "none" if not reduce else "mean" if size_average else "sum"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            stacklevel=4,
        )
    return reduction


def legacy_get_enum(size_average, reduce, emit_warning=True):
    """The same as a number."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
