# SPDX-License-Identifier: Apache-2.0
"""Values that two programs found, compared; and intervals, pairs of nanoseconds, measured in microseconds."""


def alike(a, b, close):
    """Whether a and b are equal, floating-point numbers in them up to `close`."""
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= close
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[key], b[key], close) for key in b)
    if isinstance(a, (list, tuple)) and type(a) is type(b):
        return len(a) == len(b) and all(alike(x, y, close) for x, y in zip(a, b))
    return type(a) is type(b) and a == b


def union(spans):
    """Merged intervals, in order."""
    merged = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


def length(spans):
    """How long at least one of them runs."""
    return sum(end - start for start, end in union(spans)) / 1000


def common(a, b):
    """How long one of a and one of b run together."""
    return sum(max(0, min(e, f) - max(s, t)) for s, e in union(a) for t, f in union(b)) / 1000
