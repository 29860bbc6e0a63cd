#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every row of the op table with extreme input, against real torch: torch_extremes.py LIBRARY [--seed N]
[--op NAME] [--long] [-v]

The cases are those of tests/ops, changed by tests/ops/extremes.py: extreme numbers, all pairs of types, 0-d and
empty operands, in a random layout. For each call both raise or neither does, and then types, shapes and elements
are the same: NaN where torch has NaN, the same infinities, numbers within a few units in the last place, zeros of
the same sign where the row works element by element. Gradients of value cases are compared in the same way.

Where a float32 result is not torch's, torch itself computes the call in float64. A result that is as near to that
as torch's is (or nearer: torch overflows where we do not) is right, and counted. Every other difference fails,
unless torch_exceptions.py has a reason for it. A row without such cases fails, unless NONE says why.

Without --long the seed picks a sample of each row's cases. The last line: N passed, N failed, N skipped.
"""
import argparse
import os
import re
import sys
import time
import warnings
from collections import Counter

import torch_twin as twin  # first: it finds tests/ops
from torch_exceptions import DECISIONS, EXTREMES
from torch_ops import UNDEFINED, attempt, brief, call_both, derive, floating, signature, tie

import extremes  # noqa: E402
import layouts  # noqa: E402
import mt  # noqa: E402
import numpy as np  # noqa: E402
import opcases  # noqa: E402
import run_ops  # noqa: E402
import torch  # noqa: E402

SHOWN = 3  # failures of a row
SAMPLE = 8  # cases of one sort for each row and type
ULPS = {"POINTWISE": 16, "other": 200}  # of the result's type
# What a mean of 1e6 takes of the digits: for float64 more units; float32 keeps one digit.
LARGE_MEAN = {"float64": 5e5, "float32": 1e4}
SMALLEST = {"float32": 2.0 ** -126, "float64": 2.0 ** -1022, "float16": 2.0 ** -14, "bfloat16": 2.0 ** -126}
NONE = {  # rows that have no such cases
}

# Rows that are not tried, a regular expression, and why.
LEFT_OUT = {
    "_standard_gamma|poisson|binomial": "torch draws for minutes where a parameter is huge; test_gamma.c tries ours",
    "(gcd|lcm)_?": "torch's process ends where the smallest integer meets -1; test_pointwise_binary.c tries ours",
    r"(lstm|gru|rnn_(tanh|relu))(_cell|\.data)?": "torch's process ends for sizes of 0",
    "_?fft_.*|i?stft|complex|polar|view_as_complex": "another FFT rounds and overflows in another order; "
                                                     "torch_complex.py compares",
    "grid_sampler.*": "torch's process ends for places that no integer holds; cases_grid.py tries ours",
}


def left_out(name):
    if run_ops.cases_of(name)[0].module in ("cases_linalg", "cases_eig"):
        return "numbers at the ends of a type pass another LAPACK, and torch's process ended in lu_unpack"
    return next((why for rows, why in LEFT_OUT.items() if re.fullmatch(rows, name)), None)


class Difference(Exception):
    pass


def tolerance(exact, dtype):
    units = ULPS["POINTWISE" if exact else "other"]
    eps = {"float32": 2.0 ** -23, "float64": 2.0 ** -52, "float16": 2.0 ** -10, "bfloat16": 2.0 ** -7}[dtype]
    return units * eps, {"float64": 1e-307, "float16": 1e-4}.get(dtype, 1e-37) * units * eps


def near(a, b, dtype, exact, cancels=False):
    """Which elements are the same. exact: the row's own, element by element; what is added up on the way (and
    gradients are) has the error of its largest part. cancels: a large mean goes out of the result."""
    rtol, atol = tolerance(exact, dtype)
    if not exact:
        rtol *= LARGE_MEAN.get(dtype, 1) if cancels else 1
        sizes = np.abs(b[np.isfinite(b)])
        atol += rtol * (sizes.max() if sizes.size else 0) + SMALLEST[dtype]
    with np.errstate(all="ignore"):
        same = np.isclose(a, b, rtol, atol, equal_nan=True)
        if exact:
            same &= (a != 0) | (b != 0) | (np.signbit(a) == np.signbit(b))
    return same


class Comparer:
    """Results of one call. truth() gives torch's in float64, for float32 calls."""

    def __init__(self, op, truth, exact, note, narrow=None):
        self.op, self.truth, self.exact = op, truth, exact
        self.cancels = re.search("mean|any|mixed", note) is not None
        self.narrow = narrow  # the type that results may have been computed in
        self.nearer = False

    def tensor(self, ours, theirs, what, place):
        if ours is None and theirs is not None and what.startswith("gradient") and not torch.any(theirs != 0):
            return  # a gradient of zeros
        if (ours is None) != (theirs is None):
            raise Difference(f"{what} is {ours!r}, torch has {theirs!r}")
        if ours is None:
            return
        mine, its = (ours.dtype, ours.shape), (twin.dtype_name(theirs), tuple(theirs.shape))
        if mine != its:
            raise Difference(f"{what} is {mine}, torch's {its}")
        if ours.numel == 0 or self.op.name in UNDEFINED or "RANDOM" in self.op.flags:
            return
        a, b = np.asarray(ours.numpy()), np.asarray(twin.elements(theirs))
        if a.dtype.kind != "f":
            same = a == b
        else:
            a, b = a.astype(np.float64), b.astype(np.float64)
            same = near(a, b, self.narrow or ours.dtype, self.exact, self.cancels and ours.dtype == "float64")
            if not np.all(same) and ours.dtype == "float32" and self.truth is not None:
                same = same | self.is_truer(a, b, place)
        if not np.all(same):
            at = tuple(int(i) for i in np.argwhere(~np.atleast_1d(same))[0]) if np.ndim(same) else ()
            raise Difference(f"{what} at {at} is {a[at]!r}, torch's {b[at]!r} "
                             f"({int(np.size(same) - np.sum(same))} of {np.size(same)} differ)")

    def is_truer(self, a, b, place):
        """Which elements are as near to the float64 result as torch's are."""
        truth = self.truth(place)
        if truth is None or truth.shape != a.shape:
            return np.zeros(a.shape, bool)
        self.nearer = True
        with np.errstate(all="ignore"):
            rounded = truth.astype(np.float32).astype(np.float64)
            right = near(a, rounded, "float32", self.exact, self.cancels)
            return right | (np.abs(a - truth) <= 4 * np.abs(b - truth))

    def value(self, ours, theirs, what="result", place=()):
        if isinstance(ours, (list, tuple)) != isinstance(theirs, (list, tuple)):
            raise Difference(f"{what} is {type(ours).__name__}, torch's {type(theirs).__name__}")
        if isinstance(ours, mt.Tensor) or isinstance(theirs, torch.Tensor) or ours is None:
            self.tensor(ours, theirs, what, place)
        elif isinstance(ours, (list, tuple)):
            if len(ours) != len(theirs):
                raise Difference(f"{len(ours)} results, torch has {len(theirs)}")
            for index, (a, b) in enumerate(zip(ours, theirs)):
                self.value(a, b, f"{what} {index}", (*place, index))
        elif ours != theirs and not (ours != ours and theirs != theirs):
            raise Difference(f"{what} is {ours!r}, torch's {theirs!r}")


def widen(value):
    """The arguments with float64 in the place of float32."""
    return layouts.map_arrays(value, lambda a: opcases.Fixed(np.asarray(layouts.strip(a), np.float64))
                              if isinstance(a, opcases.Fixed) and a.array.dtype == np.float32
                              else np.asarray(a, np.float64) if isinstance(a, np.ndarray) and a.dtype == np.float32
                              else a)


def has_float32(value):
    arrays = [layouts.strip(a) for a in layouts.collect(value, (np.ndarray, opcases.Fixed))]
    return any(a.dtype == np.float32 and not isinstance(a, mt.BFloat16) for a in arrays)


def pick(value, place):
    for index in place:
        value = value[index]
    return value


def truth_of(op, value, layout):
    """A function that computes the call in float64, once, when it is first asked."""
    if not has_float32(value):
        return None
    known = []

    def truth(place):
        if not known:
            args, kwargs = twin.pairs(widen(value), layout)
            known.append(attempt(twin.call_theirs, op, twin.side(args, "theirs"), twin.side(kwargs, "theirs"))[0])
        found = pick(known[0], place) if known[0] is not None else None
        return None if found is None or not found.is_floating_point() else twin.elements(found).astype(np.float64)

    return truth


def laid_out(op, case, layout):
    value = (case.args, case.kwargs)
    if layout == "broadcast":
        value = layouts.map_arrays(value, lambda a: a if isinstance(a, opcases.Fixed) else layouts.repeat(a))
    return value


def run_value(op, case, layout, sort):
    """True: it is right, but not torch's number."""
    value = laid_out(op, case, layout)
    placed = twin.pairs(value, layout, "INPLACE" in op.flags, dense="OPTIMIZER" in op.flags)
    (ours, my_error), (theirs, its_error) = call_both(op, placed)
    if (my_error is None) != (its_error is None):
        raise Difference(f"raised {brief(my_error)}; torch {brief(its_error)}")
    if my_error is not None:
        return False
    types = {mt.dtype_of(layouts.strip(a)) for a in layouts.collect(value, (np.ndarray, opcases.Fixed))}
    narrow = next((t for t in ("bfloat16", "float16", "float32") if t in types), None) if sort == "types" else None
    comparer = Comparer(op, truth_of(op, value, layout), "POINTWISE" in op.flags, case.note, narrow)
    if op.name == "topk":
        comparer.value(ours[0], theirs[0], "result 0", (0,))
    else:
        comparer.value(ours, theirs)
    if "OPTIMIZER" in op.flags:
        comparer.truth = None
        for index, pair in enumerate(layouts.collect(placed, twin.Pair)):
            comparer.tensor(pair.ours, pair.theirs, f"input {index} after it", ())
    return comparer.nearer


def gradients_of(op, placed, dtype):
    """(gradients of ours, error), (of torch's, error), or None where there is nothing to derive."""
    pairs = [p for p in layouts.collect(placed, twin.Pair) if p.ours.dtype == dtype]
    for pair in pairs:
        pair.ours.requires_grad = True
        pair.theirs.requires_grad_()
    leaves = [(pair.ours, pair.theirs) for pair in pairs]
    if "INPLACE" in op.flags and placed[0] and isinstance(placed[0][0], twin.Pair):
        first = placed[0][0]
        first.ours, first.theirs = mt.call("clone", first.ours), first.theirs.clone()
    (ours, my_error), (theirs, its_error) = call_both(op, placed)
    if my_error or its_error:
        return None
    mine, its = floating(ours, mt.Tensor), floating(theirs, torch.Tensor)
    both = {i for _, i in tie(mine)} & {i for _, i in tie(its)}
    if not both:
        return None
    weights = [np.asarray(np.random.default_rng(1).normal(size=t.shape)).astype(t.dtype) for t in mine]
    tied = [(t, i) for t, i in tie(mine) if i in both], [(t, i) for t, i in tie(its) if i in both]
    return derive(tied, leaves, weights)


def run_gradient(op, case, layout, dtype):
    found = gradients_of(op, twin.pairs((case.args, case.kwargs), layout), dtype)
    if found is None:
        return False
    (ours, my_error), (theirs, its_error) = found
    if (my_error is None) != (its_error is None):
        raise Difference(f"backward raised {brief(my_error)}; torch {brief(its_error)}")
    if my_error is not None:
        return False

    def truth(place):
        wide = gradients_of(op, twin.pairs(widen((case.args, case.kwargs)), layout), "float64")
        if wide is None or wide[1][0] is None or wide[1][0][place[0]] is None:
            return None
        return twin.elements(wide[1][0][place[0]])

    comparer = Comparer(op, truth if dtype == "float32" else None, False, case.note)
    for index, (a, b) in enumerate(zip(ours, theirs)):
        comparer.value(a, b, f"gradient {index}", (index,))
    return comparer.nearer


class Peer:
    def __init__(self, options):
        self.options = options
        self.passed = self.failed = self.skipped = 0
        self.nearer = Counter()
        self.used = Counter()
        self.sorts = Counter()

    def try_one(self, op, where, function, *args):
        try:
            if function(*args):
                self.nearer[op.name] += 1
            self.passed += 1
        except Difference as difference:
            self.differs(op, where, str(difference))

    def differs(self, op, where, text):
        for number, (rows, pattern, _) in enumerate(EXTREMES):
            if re.fullmatch(rows, op.name) and re.search(pattern, f"{where}: {text}"):
                self.used[number] += 1
                self.skipped += 1
                return
        kind = "gradient" if where.startswith("gradient") else "error" if "raised" in text else "value"
        for rows, kinds, pattern, _ in DECISIONS:  # those of torch_ops.py, which prints the reasons
            if re.fullmatch(rows, op.name) and kind in kinds.split() and re.search(pattern, f"{where}: {text}"):
                self.skipped += 1
                return
        self.failed += 1
        self.row_failed += 1
        if self.row_failed <= SHOWN or self.options.verbose:
            print(f"FAIL {where}: {text}", flush=True)

    def sample(self, rng, made):
        made = list(made)
        if self.options.long or len(made) <= SAMPLE:
            return made
        return [made[i] for i in sorted(rng.choice(len(made), SAMPLE, replace=False))]

    def layout(self, op, case, rng):
        arrays = layouts.collect((case.args, case.kwargs), (np.ndarray, opcases.Fixed))
        fit = [name for name in case.layouts if layouts.matters(name, arrays)
               and not (name == "broadcast" and ("INPLACE" in op.flags or "OPTIMIZER" in op.flags))]
        return fit[rng.integers(len(fit))] if fit else "contiguous"

    def run(self, op, case, sort, dtype, rng):
        layout = self.layout(op, case, rng)
        where = f"{sort} {case.note}, {dtype} {signature(op, case)}, {layout}"
        if self.options.trace:
            print(where, flush=True)
        self.sorts[sort] += 1
        self.try_one(op, where, run_value, op, case, layout, sort)
        if sort == "values" and dtype in opcases.FLOATS and case.grad is not False and layout != "broadcast" and (
                op.differentiable or "COMPOSITE" in op.flags) and "RANDOM" not in op.flags:
            self.sorts["gradients"] += 1
            self.try_one(op, f"gradient of {where}", run_gradient, op, case, layout, dtype)

    def base_cases(self, op, registered, dtype, derived):
        maker = opcases.Maker(op.name, dtype, self.options.seed)
        try:
            for item in registered.function(maker):
                if isinstance(item, opcases.Bad) or (derived and not (
                        item.inplace and item.args and isinstance(item.args[0], np.ndarray))):
                    continue
                yield maker, item
        except (KeyError, OverflowError) as error:  # a case that the type cannot hold
            if dtype in registered.dtypes or dtype not in str(error):
                raise

    def sampled(self, registered, rng):
        """One of the types that rows of int32 take and their cases do not name."""
        if "int32" not in registered.dtypes:
            return ()
        return ((opcases.SHORTS + opcases.UNSIGNED)[rng.integers(5)],)

    def run_row(self, name):
        op = mt.ops()[name]
        self.row_failed = 0
        registered, derived = run_ops.cases_of(name)
        unchecked = twin.unchecked(name)
        rng = np.random.default_rng([self.options.seed] + list(name.encode()))
        before = self.sorts.total()
        typed = None
        for dtype in registered.dtypes + self.sampled(registered, rng):
            cases = list(self.base_cases(op, registered, dtype, derived))
            for sort, made in (
                    ("values", (c for maker, case in cases for c in extremes.value_cases(op, case, maker, rng))),
                    ("numbers", (c for _, case in cases for c in extremes.number_cases(op, case, rng))),
                    ("shapes", () if unchecked else (c for _, case in cases[:None if self.options.long else 2]
                                                     for c in extremes.shape_cases(op, case)))):
                for case in self.sample(rng, made):
                    self.run(op, case, sort, dtype, rng)
            sizes = [(len(extremes.data_places(op, case)), case) for _, case in cases]
            best = max(sizes, key=lambda pair: pair[0], default=None)
            if typed is None or (best and best[0] > typed[0]):
                typed = best
        if typed and not unchecked:
            made = list(extremes.type_cases(op, typed[1]))
            for case in made:
                self.run(op, case, "types", "any", rng)
        takes = any("Tensor" in p.type for p in op.parameters)
        if takes and self.sorts.total() == before and name not in NONE:
            self.failed += 1
            print(f"FAIL row {name} has no cases with extreme input")
        if self.row_failed > SHOWN and not self.options.verbose:
            print(f"FAIL {name}: {self.row_failed} in all (-v shows them)")

    def report(self, whole):
        for number, (rows, pattern, reason) in enumerate(EXTREMES):
            if self.used[number]:
                print(f"skip {rows} ({pattern}), {self.used[number]} times: {reason}")
            elif whole and not reason.endswith("(some seeds)"):
                self.failed += 1
                print(f"FAIL a difference that is no more, {rows} ({pattern}): {reason}")
        print("as near to float64 as torch's, or nearer: " + ", ".join(f"{n} {c}" for n, c in self.nearer.items()))
        print(", ".join(f"{count} of {sort}" for sort, count in self.sorts.items()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--op", action="append", help="only these rows")
    parser.add_argument("--long", action="store_true", default=bool(os.environ.get("PEERS_LONG")),
                        help="every case, not a sample; also PEERS_LONG=1")
    parser.add_argument("--trace", action="store_true", help="print every call before it is made")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    torch.set_num_threads(1)
    mt.open_library(options.library)
    run_ops.load(run_ops.FAMILIES)
    peer = Peer(options)
    began = time.process_time()
    rows = 0
    for name in mt.ops():
        if (options.op and name not in options.op) or name in twin.ABSENT:
            continue
        if left_out(name):
            peer.skipped += 1
            print(f"skip {name}: {left_out(name)}")
            continue
        rows += 1
        peer.run_row(name)
    peer.report(whole=not options.op and options.long)
    print(f"{rows} rows, torch {torch.__version__}, seed {options.seed}, "
          f"{time.process_time() - began:.1f} s of processor time")
    print(f"{peer.passed} passed, {peer.failed} failed, {peer.skipped} skipped")
    return 1 if peer.failed else 0


if __name__ == "__main__":
    sys.exit(main())
