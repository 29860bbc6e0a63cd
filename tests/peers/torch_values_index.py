# SPDX-License-Identifier: Apache-2.0
"""Views, indexing, joining and sorting against torch: random calls in both libraries.

usage: torch_values_index.py LIBMINDTORCH_SO [--seed N] [--count N] [-v]

Types, shapes (empty and 0-d ones too), layouts (the same random views in both) and arguments are
random, some of them bad. Values, types, shapes, strides and offsets of views must be the same; where
one library raises, the other raises the same exception. What torch leaves open is left out: the order
of writes to one place, which of equal numbers topk takes. KNOWN lists what differs by decision.
"""
import argparse
import random
import re
import sys
import warnings
from collections import Counter

import torch_twin as twin  # first: it finds tests/ops
from torch_ops import Difference, attempt, brief, compare_topk, compare_value, compare_views

import mt  # noqa: E402
import numpy as np  # noqa: E402
import opcases  # noqa: E402
import torch  # noqa: E402

KNOWN = [  # row, in the report, why
    ("index_add", r"torch nothing", "an index into a dimension of size 0 is out of range"),
    ("index_add", r"Number of indices.*torch IndexError", "torch asks a number for its dimension"),
    ("index_add", r"out of bounds for dimension.*torch IndexError",
     "torch raises either exception for a bad index, by the index's type"),
    ("roll", r"torch nothing", "a bad dimension is bad for an empty tensor too"),
    ("index_select", r"(Index|Runtime)Error.*torch (Index|Runtime)Error",
     "torch raises either exception for a bad index, by layout"),
]


class Maker:
    """Random arguments; tensors as pairs."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.rng = np.random.default_rng(seed)

    def some(self, *choices):
        return self.random.choice(choices)

    def chance(self, p):
        return self.random.random() < p

    def between(self, low, high):
        return self.random.randint(low, high)

    def shape(self, most=4):
        return tuple(self.some(0, 1, 1, 2, 2, 3, 3, 4) for _ in range(self.between(0, most)))

    def array(self, shape, dtype):
        if dtype == "bool":
            return np.asarray(self.rng.integers(0, 2, shape), bool)
        if not dtype.startswith("float"):
            return np.asarray(self.rng.integers(0, 9, shape), dtype)
        array = np.asarray(self.rng.integers(-4, 5, shape) / 2, dtype)
        if array.size and self.chance(0.2):
            array.reshape(-1)[self.rng.integers(array.size)] = np.nan
        return array

    def plain(self, array):
        ours = mt.tensor(array)
        return twin.Pair(ours, twin.mirror(ours, array))

    def viewed(self, array):
        """The same few views on both."""
        pair = self.plain(array)
        for _ in range(self.between(0, 2)):
            n = pair.theirs.dim()
            if n == 0:
                break
            d, e = self.between(0, n - 1), self.between(0, n - 1)
            call = self.some(("transpose", d, e), ("slice", d, self.some(None, 0, 1, -2),
                                                   self.some(None, 2, 3, -1), self.some(1, 2)))
            if pair.theirs.shape[d] == 1 and self.chance(0.5):
                call = ("expand", [3 if i == d else -1 for i in range(n)])
            pair = twin.Pair(mt.call(call[0], pair.ours, *call[1:]),
                             getattr(twin.aten, call[0])(pair.theirs, *call[1:]))
        return pair

    def tensor(self, shape=None, dtype=None):
        return self.viewed(self.array(self.shape() if shape is None else shape,
                                      dtype or self.some(*opcases.ALL)))

    def dim(self, n):
        """A dimension, now and then a bad one."""
        n = max(n, 1)
        return self.some(-n - 1, n) if self.chance(0.08) else self.between(-n, n - 1)

    def indices(self, shape, below, negative=False):
        below = max(below, 1)
        high = below + self.chance(0.05)
        low = -below if negative else -1 if self.chance(0.03) else 0
        return np.asarray(self.rng.integers(low, high, shape), self.some("int64", "int64", "int32"))

    def sizes(self, count):
        """Sizes whose product is count, mostly."""
        if self.chance(0.2):
            return [self.between(-1, 4) for _ in range(self.between(0, 3))]
        sizes = []
        while count > 1 and len(sizes) < 4:
            sizes.append(self.some(*[q for q in range(1, count + 1) if count % q == 0]))
            count //= sizes[-1]
        sizes.append(count)
        self.random.shuffle(sizes)
        if self.chance(0.3):
            sizes[self.random.randrange(len(sizes))] = -1
        return sizes


def dims_of(x):
    return x.theirs.dim()


def size_at(x, dim):
    n = dims_of(x)
    return x.theirs.shape[dim] if n and -n <= dim < n else 1


def name_of(x):
    return twin.dtype_name(x.theirs)


# ---- arguments of each row --------------------------------------------------------------------


def permuted(m, x):
    dims = list(range(dims_of(x)))
    m.random.shuffle(dims)
    return [x, [d - len(dims) if m.chance(0.3) else d for d in dims]]


def expanded(m, x):
    sizes = [m.some(-1, n if n != 1 else m.between(0, 3)) for n in x.theirs.shape]
    return [x, [m.between(0, 3) for _ in range(m.between(0, 2))] + sizes]


def strided(m, x):
    n = m.between(0, 3)
    return [x, [m.between(0, 3) for _ in range(n)], [m.between(0, 4) for _ in range(n)],
            m.some(None, 0, 1, 3)]


def pieces(m, x):
    dim = m.dim(dims_of(x))
    left, sizes = size_at(x, dim), []
    while left > 0:
        sizes.append(m.between(0, left))
        left -= sizes[-1]
    return [x, sizes if m.chance(0.8) else sizes + [m.between(0, 2)], dim]


def joined(m, x, grows):
    dim, shape = m.dim(dims_of(x)), list(x.theirs.shape)
    tensors = [x]
    for _ in range(m.between(0, 3)):
        other = list(shape)
        if grows and shape and -len(shape) <= dim < len(shape):
            other[dim] = m.between(0, 3)
        if m.chance(0.1):
            other = [0]
        tensors.append(m.tensor(tuple(other), m.some(name_of(x), name_of(x), *opcases.ALL)))
    return [tensors, dim]


def selected(m, x):
    dim = m.dim(dims_of(x))
    shape = (m.between(0, 4),) if m.chance(0.9) else ()
    return [x, dim, m.viewed(m.indices(shape, size_at(x, dim)))]


def added(m, x):
    dim = m.dim(dims_of(x))
    index = m.viewed(m.indices((m.between(0, 4),), size_at(x, dim)))
    shape = list(x.theirs.shape)
    if shape and -len(shape) <= dim < len(shape):
        shape[dim] = index.theirs.numel()
    return [x, dim, index, m.tensor(tuple(shape), name_of(x))]


def gathered(m, x):
    dim = m.dim(dims_of(x))
    shape = [m.between(0 if m.chance(0.1) else 1, max(n, 1)) for n in x.theirs.shape]
    if shape and -len(shape) <= dim < len(shape):
        shape[dim] = m.between(0, 4)
    return [x, dim, m.viewed(m.indices(tuple(shape), size_at(x, dim)))]


def scattered(m, x):
    """Numbers: which of several is written last is open."""
    return gathered(m, x) + [1]


def scatter_added(m, x):
    args = gathered(m, x)
    shape = tuple(n + m.between(0, 1) for n in args[2].theirs.shape)
    return args + [m.tensor(shape, name_of(x))]


def indexed(m, x):
    shape, given, at = list(x.theirs.shape), [], 0
    common = [m.some(1, 2, 3) for _ in range(m.between(0, 2))]
    while at < len(shape) and m.chance(0.8):
        kind = m.random.random()
        if kind < 0.25:
            given.append(None)
            at += 1
        elif kind < 0.4:
            n = m.between(1, len(shape) - at)
            given.append(m.plain(m.array(shape[at:at + n], "bool")))
            at += n
        else:
            given.append(m.plain(m.indices([n if m.chance(0.8) else 1 for n in common], shape[at], True)))
            at += 1
    return [x, given] if any(g is not None for g in given) else None


def put(m, x):
    """Sums, or one number: the order of writes is open."""
    args = indexed(m, x)
    if args is None:
        return None
    accumulate = m.chance(0.5)
    got, error = attempt(twin.call_theirs, mt.ops()["index"], twin.side(args, "theirs"), {})
    shape = list(got.shape) if error is None and accumulate else []
    shape = [n if m.chance(0.8) else 1 for n in shape]
    return args + [m.plain(m.array(shape, name_of(x))), accumulate]


def masked(m, x, *rest):
    shape = [n if m.chance(0.8) else 1 for n in x.theirs.shape]
    return [x, m.plain(m.array(shape[m.between(0, len(shape)):], "bool")), *rest]


ROWS = {
    "view": lambda m, x: [x, m.sizes(x.theirs.numel())],
    "reshape": lambda m, x: [x, m.sizes(x.theirs.numel())],
    "permute": permuted,
    "transpose": lambda m, x: [x, m.dim(dims_of(x)), m.dim(dims_of(x))],
    "movedim": lambda m, x: [x, m.dim(dims_of(x)), m.dim(dims_of(x))],
    "t": lambda m, x: [x],
    "expand": expanded,
    "squeeze": lambda m, x: [x],
    "squeeze.dim": lambda m, x: [x, m.dim(dims_of(x))],
    "squeeze.dims": lambda m, x: [x, [m.dim(dims_of(x)) for _ in range(m.between(0, 2))]],
    "unsqueeze": lambda m, x: [x, m.dim(dims_of(x) + 1)],
    "select": lambda m, x: [x, m.dim(dims_of(x)), m.between(-4, 4)],
    "slice": lambda m, x: [x, m.dim(dims_of(x)), m.some(None, -9, -2, 0, 1, 9),
                           m.some(None, -9, -2, 0, 1, 9), m.between(0 if m.chance(0.1) else 1, 3)],
    "narrow": lambda m, x: [x, m.dim(dims_of(x)), m.between(-3, 4), m.between(0, 3)],
    "diagonal": lambda m, x: [x, m.between(-3, 3), m.dim(dims_of(x)), m.dim(dims_of(x))],
    "as_strided": strided,
    "unbind": lambda m, x: [x, m.dim(dims_of(x))],
    "split": lambda m, x: [x, m.between(0, 4), m.dim(dims_of(x))],
    "split_with_sizes": pieces,
    "chunk": lambda m, x: [x, m.between(0, 5), m.dim(dims_of(x))],
    "unfold": lambda m, x: [x, m.dim(dims_of(x)), m.between(0, 4), m.between(1, 3)],
    "flatten": lambda m, x: [x, m.dim(dims_of(x)), m.dim(dims_of(x))],
    "unflatten": lambda m, x: [x, m.dim(dims_of(x)), [m.some(-1, 1, 2, 3) for _ in range(m.between(1, 2))]],
    "cat": lambda m, x: joined(m, x, True),
    "stack": lambda m, x: joined(m, x, False),
    "repeat": lambda m, x: [x, [m.between(0, 3) for _ in range(dims_of(x) + m.between(0, 1))]],
    "roll": lambda m, x: [x, [m.between(-7, 7), m.between(-7, 7)], [m.dim(dims_of(x)), m.dim(dims_of(x))]],
    "flip": lambda m, x: [x, [m.dim(dims_of(x)) for _ in range(m.between(0, dims_of(x)))]],
    "tril": lambda m, x: [x, m.between(-4, 4)],
    "triu": lambda m, x: [x, m.between(-4, 4)],
    "index_select": selected,
    "index_add": added,
    "gather": gathered,
    "scatter": scattered,
    "scatter_add": scatter_added,
    "index": indexed,
    "index_put": put,
    "masked_select": masked,
    "masked_scatter": lambda m, x: masked(m, x, m.tensor((m.between(0, 12), 3), name_of(x))),
    "nonzero": lambda m, x: [x],
    "sort": lambda m, x: [x, m.dim(dims_of(x)), m.chance(0.5)],
    "argsort": lambda m, x: [x, m.dim(dims_of(x)), m.chance(0.5)],
    "topk": lambda m, x: [x, m.between(0, 4), m.dim(dims_of(x)), m.chance(0.5)],
}


# ---- running ----------------------------------------------------------------------------------


def describe(value):
    if isinstance(value, twin.Pair):
        t = value.theirs
        return f"{twin.dtype_name(t)}{list(t.shape)}/{list(t.stride())}+{t.storage_offset()}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(describe, value))}]"
    return repr(value)


def run_one(op, args):
    ours, error = attempt(mt.call, op.name, *twin.side(args, "ours"))
    theirs, its_error = attempt(twin.call_theirs, op, twin.side(args, "theirs"), {})
    if type(error) is not type(its_error):
        raise Difference("error", f"raised {brief(error)}; torch {brief(its_error)}")
    if error is not None:
        return
    theirs = list(theirs) if isinstance(ours, list) else theirs
    if op.name == "topk":
        compare_topk(args, ours, theirs, None)
    else:
        compare_value(ours, theirs, None, "result")
    if "VIEW" in op.flags:
        compare_views(ours, theirs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=150, help="calls of each row")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    mt.open_library(options.library)
    counts, shown, reasons = Counter(), Counter(), Counter()
    for number, (name, make) in enumerate(ROWS.items()):
        maker = Maker(options.seed * len(ROWS) + number)
        for _ in range(options.count):
            args = make(maker, maker.tensor())
            if args is None:
                continue
            try:
                run_one(mt.ops()[name], args)
                counts["passed"] += 1
            except Difference as difference:
                known = [why for row, pattern, why in KNOWN
                         if re.fullmatch(row, name) and re.search(pattern, str(difference))]
                counts["skipped" if known else "failed"] += 1
                reasons.update([f"{name}: {known[0]}"] if known else [])
                shown[name] += not known
                if not known and (shown[name] <= 3 or options.verbose):
                    print(f"FAIL {name}({', '.join(map(describe, args))}): {difference}", flush=True)
    for reason, times in reasons.items():
        print(f"skip {times} times, {reason}")
    print(f"{len(ROWS)} rows, seed {options.seed}")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
