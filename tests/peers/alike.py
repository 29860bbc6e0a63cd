# SPDX-License-Identifier: Apache-2.0
"""Values that two programs found, compared: texts and counts are the same, times as close as the caller says."""


def alike(a, b, close):
    """Whether a and b are equal, floating-point numbers in them up to `close`."""
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= close
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[key], b[key], close) for key in b)
    if isinstance(a, (list, tuple)) and type(a) is type(b):
        return len(a) == len(b) and all(alike(x, y, close) for x, y in zip(a, b))
    return type(a) is type(b) and a == b
