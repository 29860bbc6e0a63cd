#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""x[key] and x[key] = value against torch: random keys of all sorts; values, shapes, errors, gradients, and
the ops that a profile shows at the user's level.

Run by a Python that has torch, with our packages on PYTHONPATH. Prints "N passed, N failed, N skipped".
"""
import random
import sys
import warnings

import numpy
import torch

import mindtorch_v2

SHAPES = ((4, 5, 6), (4, 5), (7,), (), (1, 3), (2, 0, 3), (3, 1, 2, 2))


class Same:
    """A key's entry for both libraries: tensors are made by each."""

    def __init__(self, array):
        self.array = array

    def of(self, library):
        return library.from_numpy(numpy.array(self.array))

    def __repr__(self):
        return f"tensor({self.array.tolist()}, {self.array.dtype})"


def entry(rng, size):
    """One entry for a dimension of this size; sometimes wrong."""
    kind = rng.randrange(14)
    number = rng.randrange(-size - 1, size + 1) if size else rng.randrange(-1, 2)
    inside = [rng.randrange(-size, size) for _ in range(rng.randrange(0, 4))] if size else []
    if kind < 3:
        return number
    if kind < 6:
        ends = [rng.choice((None, None, rng.randrange(-size - 2, size + 3))) for _ in range(2)]
        return slice(*ends, rng.choice((None, None, 1, 2, 3, -1)))
    return (None, Ellipsis, rng.random() < 0.5, inside, Same(numpy.array(inside, dtype="int64")),
            Same(numpy.array([rng.random() < 0.5 for _ in range(max(0, size - (rng.random() < 0.1)))],
                             dtype="bool")),
            Same(numpy.array(number)), Same(numpy.array(inside, dtype="int32").reshape(-1, 1)))[kind - 6]


def key(rng, shape):
    if shape and rng.random() < 0.1:
        dims = rng.randrange(1, len(shape) + 1)
        return Same(numpy.array(numpy.random.RandomState(rng.randrange(10 ** 6)).rand(*shape[:dims]) < 0.5))
    count = rng.randrange(0, len(shape) + 2)
    entries = [entry(rng, shape[min(i, len(shape) - 1)] if shape else 1) for i in range(count)]
    # A second ellipsis has no defined meaning; torch ignores it most of the time.
    dots = [i for i, item in enumerate(entries) if item is Ellipsis]
    entries = [item for i, item in enumerate(entries) if i not in dots[1:]]
    if len(entries) == 1 and rng.random() < 0.7:
        return entries[0]
    return tuple(entries)


def made(item, library):
    if isinstance(item, Same):
        return item.of(library)
    return tuple(made(i, library) for i in item) if isinstance(item, tuple) else item


def outcome(library, array, item, value=None):
    """What came of it: ("ok", result, gradient or changed tensor) or ("error", type)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            x = library.from_numpy(array.copy())
            if value is None:
                x.requires_grad_()
                y = x[made(item, library)]
                y.sum().backward()
                return "ok", y.detach().numpy(), x.grad.numpy(), tuple(y.shape)
            x[made(item, library)] = made(value, library)
            return "ok", x.numpy(), x.numpy(), ()
        except (IndexError, ValueError, TypeError, RuntimeError) as error:
            return "error", type(error).__name__, str(error)


def agree(a, b):
    if a[0] != b[0]:
        return False
    if a[0] == "error":
        return a[1] == b[1]
    return a[3] == b[3] and all(numpy.array_equal(p, q) for p, q in zip(a[1:3], b[1:3]))


def random_value(rng, array, item):
    """A number, or a tensor that fits the place more often than not."""
    if rng.random() < 0.4:
        return rng.choice((1, 2.5, True, Same(numpy.array(3.0, dtype="float32"))))
    try:
        place = torch.from_numpy(array)[made(item, torch)]
    except Exception:
        return 1.0
    shape = list(place.shape)
    while shape and rng.random() < 0.3:
        shape.pop(0)
    shape = [1 if rng.random() < 0.2 else size for size in shape]
    if rng.random() < 0.2:
        shape = [1] + shape
    if rng.random() < 0.1 and shape:
        shape[0] += 1
    return Same(numpy.array(numpy.random.RandomState(rng.randrange(10 ** 6)).rand(*shape), dtype="float32"))


# ---- ops a profile shows ----

def plain_keys():
    index = Same(numpy.array([0, 2]))
    mask = Same(numpy.array([True, False, True, True]))
    whole = Same(numpy.arange(120).reshape(4, 5, 6) % 3 == 0)
    return [0, -1, slice(1, 3), slice(None), (slice(None), 0), (Ellipsis, 0), Ellipsis, None, True, False,
            whole, mask,
            index, [0, 1], [True, False, True, False], (index, index), (slice(None), index), (index,
                                                                                              slice(None),
                                                                                              index),
            (0, index), (index, 0), (index, 0, index), Same(numpy.array(2)), (0, slice(1, 3), None), (), (0,
                                                                                                          0,
                                                                                                          0),
            (0, slice(0, 5)), (Ellipsis, None), (mask, 0), (True, 0), range(2), (index, slice(1, 3))]


def assignments():
    index = Same(numpy.array([0, 2]))
    ones = [Same(numpy.ones(s, dtype="float32")) for s in ((5, 6), (1, 6), (6,), (1,), (), (2, 5, 6), (1, 2,
                                                                                                       5, 6))]
    cases = [(item, 1) for item in plain_keys() if item is not False]
    return cases + [(0, ones[0]), (0, ones[1]), (0, ones[2]), (0, ones[3]), (0, ones[4]), (slice(0, 2),
                                                                                           ones[5]),
                    (slice(0, 2), ones[6]), (index, ones[5]), (index, ones[6]), (index, ones[4]), ((0, 0,
                                                                                                    0),
                                                                                                    ones[3])]


def top_level(library, action):
    """Names of the ops that no other op called."""
    profiler = library.profiler
    action()
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as prof:
        action()
    return [e.name for e in prof.events() if e.cpu_parent is None and e.name.startswith("aten::")]


def compare_profiles():
    passed = failed = 0
    array = numpy.random.RandomState(0).rand(4, 5, 6).astype("float32")
    for item, value in [(item, None) for item in plain_keys()] + assignments():
        shown = []
        for library in (torch, mindtorch_v2):
            x, place = library.from_numpy(array.copy()), made(item, library)
            given = None if value is None else made(value, library)
            shown.append(top_level(library, (lambda: x[place]) if value is None else
                                   (lambda: x.__setitem__(place, given))))
        if shown[0] == shown[1]:
            passed += 1
        else:
            failed += 1
            assigned = "" if value is None else f" = {value}"
            print(f"x[{item}]{assigned}: torch {shown[0]}, ours {shown[1]}")
    return passed, failed


def main():
    rng = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    passed = failed = 0
    for _ in range(4000):
        shape = rng.choice(SHAPES)
        array = numpy.array(numpy.random.RandomState(rng.randrange(10 ** 6)).rand(*shape), dtype="float32")
        item = key(rng, shape)
        value = random_value(rng, array, item) if rng.random() < 0.5 else None
        results = [outcome(library, array, item, value) for library in (torch, mindtorch_v2)]
        if agree(*results):
            passed += 1
        else:
            failed += 1
            if failed < 12:
                print(f"shape {shape} key {item} value {value}\n  torch {results[0]}\n  ours  {results[1]}")
    more = compare_profiles()
    print(f"{passed + more[0]} passed, {failed + more[1]} failed, 0 skipped")
    return 1 if failed or more[1] else 0


if __name__ == "__main__":
    sys.exit(main())
