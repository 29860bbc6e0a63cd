#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds every row of the op table against real torch: torch_ops.py LIBRARY [--seed N] [--op NAME] [--type TYPE]

The cases are those of tests/ops. For each row and dtype every case runs contiguous and in one other
layout, which the seed picks, in our library and in torch:
  value     results and inputs after the call: type, shape, elements; strides and offsets of views
  error     a call that fails in one fails in the other, with the same exception
  words     what the case says of the message is in torch's message too
  gradient  float64: the same gradient comes in, the same gradients come out
  second    the same for gradients of these gradients, where the case has them
  node      results' grad_fn.name()
--type float16 runs every row that takes float32 in that type, gradients included; --type int8 those that take int32.
Random rows: type, shape, no NaN or inf (tests/ops looks at the numbers). Rows that torch has not,
input that torch does not check, and differences that are decisions (torch_exceptions.py) are listed
and counted as skipped. The last line: N passed, N failed, N skipped.
"""
import argparse
import re
import sys
import time
import warnings
from collections import Counter

import torch_twin as twin  # first: it finds tests/ops
from torch_exceptions import DECISIONS, HALVES, SHORT_INTEGERS

import layouts  # noqa: E402
import mt  # noqa: E402
import numpy as np  # noqa: E402
import opcases  # noqa: E402
import run_ops  # noqa: E402
import torch  # noqa: E402

SHOWN = 3  # failures of a row
UNDEFINED = {"empty", "empty_like", "new_empty"}  # their elements are anything


class Difference(Exception):
    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


# ---- comparing --------------------------------------------------------------------------------


def close(case, dtype):
    rtol, atol = run_ops.TOLERANCES.get(dtype, (0, 0))
    return (max(getattr(case, "rtol", None) or 0, rtol), max(getattr(case, "atol", None) or 0, atol))


def compare_tensor(ours, theirs, case, what, kind="value", how="all"):
    """how: "all", "type" (and shape), or "range" (random numbers)."""
    if (ours is None) != (theirs is None):
        raise Difference(kind, f"{what} is {ours!r}, torch has {theirs!r}")
    if ours is None:
        return
    mine, its = (ours.dtype, ours.shape), (twin.dtype_name(theirs), tuple(theirs.shape))
    if mine != its:
        raise Difference(kind, f"{what} is {mine}, torch's {its}")
    if how == "type" or ours.numel == 0:
        return
    a, b = np.asarray(ours.numpy(), copy=True), twin.elements(theirs)
    dtype = ours.dtype
    if a.dtype.kind == "c":  # part by part: a NaN in one says nothing of the other
        dtype = {"complex64": "float32", "complex128": "float64"}[dtype]
        a, b = (np.stack([x.real, x.imag], -1) for x in (a, b))
    if how == "range":
        if not np.all(np.isfinite(a) if a.dtype.kind == "f" else True):
            raise Difference(kind, f"{what} has numbers that are not finite")
        return
    if a.dtype.kind != "f":
        same = a == b
    else:
        rtol, atol = close(case, dtype)
        if kind == "second":  # formulas of several terms, another order in each
            rtol, atol = max(rtol, 1e-9), max(atol, 1e-10)
        with np.errstate(all="ignore"):
            same = np.isclose(a, b, rtol, atol, equal_nan=True)
    if not np.all(same):
        at = tuple(int(i) for i in np.argwhere(~np.atleast_1d(same))[0]) if np.ndim(same) else ()
        raise Difference(kind, f"{what} at {at} is {a[at]!r}, torch's {b[at]!r} "
                               f"({int(np.size(same) - np.sum(same))} of {np.size(same)} differ)")


def compare_value(ours, theirs, case, what, how="all"):
    if isinstance(ours, (list, tuple)) != isinstance(theirs, (list, tuple)):
        raise Difference("value", f"{what} is {type(ours).__name__}, torch's {type(theirs).__name__}")
    if isinstance(ours, mt.Tensor) or isinstance(theirs, torch.Tensor) or ours is None:
        compare_tensor(ours, theirs, case, what, how=how)
    elif isinstance(ours, (list, tuple)):
        if len(ours) != len(theirs):
            raise Difference("value", f"{len(ours)} results, torch has {len(theirs)}")
        for index, (a, b) in enumerate(zip(ours, theirs)):
            compare_value(a, b, case, f"{what} {index}", how)
    else:
        same = ours == theirs or (ours != ours and theirs != theirs)
        if type(ours) is not type(theirs) or not same:
            raise Difference("value", f"{what} is {ours!r}, torch's {theirs!r}")


def compare_views(ours, theirs):
    """Strides where they matter: along dimensions with more than one element."""
    for a, b in zip(layouts.collect(ours, mt.Tensor), layouts.collect(theirs, torch.Tensor)):
        if a.numel == 0:
            continue
        mine = [s for n, s in zip(a.shape, a.strides) if n > 1]
        its = [s for n, s in zip(b.shape, b.stride()) if n > 1]
        if (mine, a.offset) != (its, b.storage_offset()):
            raise Difference("value", f"view has strides {mine}, offset {a.offset}; torch's {its}, "
                                      f"{b.storage_offset()}")


def compare_topk(given, ours, theirs, case):
    """Of equal numbers any may be taken: the indices must be those of the values."""
    compare_value(ours[0], theirs[0], case, "result 0")
    compare_value(ours[1], theirs[1], case, "result 1", "type")
    source, values, indices = (np.atleast_1d(t.numpy()) for t in (given[0].ours, *ours))
    taken = np.take_along_axis(source, indices, given[2] if len(given) > 2 else -1)
    if not np.array_equal(taken, values, equal_nan=taken.dtype.kind == "f"):
        raise Difference("value", "the indices are not those of the values")


# ---- one call in both -------------------------------------------------------------------------


def attempt(function, *args, **kwargs):
    """(result, None) or (None, exception)."""
    try:
        return function(*args, **kwargs), None
    except AssertionError:
        raise  # a mistake in the case
    except Exception as error:  # noqa: BLE001: which one it is, is compared
        return None, error


def call_both(op, placed):
    args, kwargs = placed
    mt.manual_seed(1234)
    torch.manual_seed(1234)
    ours = attempt(mt.call, op.name, *twin.side(args, "ours"), **twin.side(kwargs, "ours"))
    theirs = attempt(twin.call_theirs, op, twin.side(args, "theirs"), twin.side(kwargs, "theirs"))
    return ours, theirs


def kind_of(error):
    """Its type by name: exceptions of torch's own have a class in either."""
    return type(error).__name__


def brief(error):
    return "nothing" if error is None else f"{type(error).__name__}: {str(error).splitlines()[0][:150]}"


def signature(op, item):
    """The call in short: sub(float32[3,4], 2, alpha=1.5)."""

    def short(value):
        if isinstance(value, (np.ndarray, opcases.Fixed)):
            array = layouts.strip(value)
            return f"{mt.dtype_of(array)}[{','.join(map(str, array.shape))}]"
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(map(short, value))}]"
        return repr(value)

    words = [short(value) for value in item.args]
    words += [f"{key}={short(value)}" for key, value in item.kwargs.items()]
    return f"{op.name}({', '.join(words)})"


def run_value(op, case, layout):
    value = (case.args, case.kwargs)
    if layout == "broadcast":
        value = layouts.map_arrays(value, lambda a: a if isinstance(a, opcases.Fixed)
                                   else layouts.repeat(a))
    placed = twin.pairs(value, layout, "INPLACE" in op.flags and layout == "broadcast",
                        dense="OPTIMIZER" in op.flags)  # torch's step over the elements in memory
    (ours, my_error), (theirs, its_error) = call_both(op, placed)
    if kind_of(my_error) != kind_of(its_error):
        raise Difference("error", f"raised {brief(my_error)}; torch {brief(its_error)}")
    if my_error is not None:
        return
    how = "range" if "RANDOM" in op.flags else "type" if op.name in UNDEFINED else "all"
    if op.name == "topk":
        compare_topk(op.bind(*placed), ours, theirs, case)
    else:
        compare_value(ours, theirs, case, "result", how)
    for index, pair in enumerate(layouts.collect(placed, twin.Pair)):
        compare_tensor(pair.ours, pair.theirs, case, f"input {index} after it",
                       how="type" if index == 0 and how == "range" else "all")
    if "VIEW" in op.flags:
        compare_views(ours, theirs)


def run_bad(op, bad):
    (_, my_error), (_, its_error) = call_both(op, twin.pairs((bad.args, bad.kwargs), "contiguous"))
    if kind_of(my_error) != kind_of(its_error):
        raise Difference("error", f"raised {brief(my_error)}; torch {brief(its_error)}")
    if its_error is None:
        raise Difference("error", "neither library refuses it")
    if bad.words not in str(its_error):
        raise Difference("words", f"ours has {bad.words!r}; torch says {brief(its_error)}")


# ---- gradients --------------------------------------------------------------------------------


def floating(results, kind):
    return [t for t in layouts.collect(results, kind) if "float" in str(t.dtype)]


def derive(tied, leaves, weights, create_graph=False):
    """(gradients of ours, error), (gradients of torch's, error); tied: a list of each library's."""
    flags = mt.ALLOW_UNUSED | (mt.CREATE_GRAPH if create_graph else 0)
    return (attempt(mt.grad, [t for t, _ in tied[0]], [a for a, _ in leaves],
                    [mt.call("to", mt.tensor(weights[i]), dtype=t.dtype) for t, i in tied[0]], flags),
            attempt(torch.autograd.grad, [t for t, _ in tied[1]], [b for _, b in leaves],
                    [torch.from_numpy(weights[i]).to(t.dtype) for t, i in tied[1]], allow_unused=True,
                    create_graph=create_graph))


def tie(tensors):
    """Those that have a graph, with their places."""
    return [(t, i) for i, t in enumerate(tensors) if t is not None and t.requires_grad]


def run_second(grads, leaves, case, rng):
    """Gradients of gradients. What one library knows to be constant may be zero in the other."""
    tied = tie(grads[0]), tie(grads[1])
    weights = [np.asarray(rng.normal(size=() if g is None else g.shape)) for g in grads[0]]
    empty = [None] * len(leaves), None
    (ours, error), (theirs, its_error) = derive(tied, leaves, weights)
    (ours, error) = (ours, error) if tied[0] else empty
    (theirs, its_error) = (theirs, its_error) if tied[1] else empty
    if error or its_error:
        raise Difference("second", f"raised {brief(error)}; torch {brief(its_error)}")
    for index, (a, b) in enumerate(zip(ours, theirs)):
        if a is None and b is None:
            continue
        a = mt.call("zeros_like", leaves[index][0]) if a is None else a
        b = torch.zeros_like(leaves[index][1]) if b is None else b
        compare_tensor(a, b, case, f"second gradient {index}", "second")


def make_leaves(op, case, layout):
    """Arguments as pairs, and [(ours, torch's)] of those that are differentiated."""
    placed = twin.pairs((case.args, case.kwargs), layout)
    found = [p for p in layouts.collect(placed, twin.Pair) if p.ours.dtype in ("float64", *opcases.HALVES)]
    if case.grad_args is not None:
        found = [found[i] for i in case.grad_args]
    for pair in found:
        pair.ours.requires_grad = True
        pair.theirs.requires_grad_()
    leaves = [(pair.ours, pair.theirs) for pair in found]
    if "INPLACE" in op.flags:  # a leaf cannot be written
        first = placed[0][0]
        first.ours, first.theirs = mt.call("clone", first.ours), first.theirs.clone()
    return placed, leaves


def run_gradient(op, case, layout, seed):
    """Both get the same gradients of their results."""
    placed, leaves = make_leaves(op, case, layout)
    (ours, my_error), (theirs, its_error) = call_both(op, placed)
    if my_error or its_error:
        raise Difference("gradient", f"raised {brief(my_error)}; torch {brief(its_error)}")
    mine, its = floating(ours, mt.Tensor), floating(theirs, torch.Tensor)
    names = [(a.grad_fn, b.grad_fn.name() if b.grad_fn else None) for a, b in zip(mine, its)]
    both = {i for _, i in tie(mine)} & {i for _, i in tie(its)}
    if not both and (tie(mine) or tie(its)):
        raise Difference("gradient", f"nodes {names}: only one of them has a graph")
    if not both:
        return
    rng = np.random.default_rng(seed)
    weights = [np.asarray(rng.normal(size=t.shape)) for t in mine]
    tied = [(t, i) for t, i in tie(mine) if i in both], [(t, i) for t, i in tie(its) if i in both]
    double = case.double and leaves[0][0].dtype == "float64"
    (grads, error), (its_grads, its_error) = derive(tied, leaves, weights, double)
    if kind_of(error) != kind_of(its_error):
        raise Difference("gradient", f"backward raised {brief(error)}; torch {brief(its_error)}")
    if error is None:
        for index, (a, b) in enumerate(zip(grads, its_grads)):
            compare_tensor(a, b, case, f"gradient {index}", "gradient")
        if double:
            run_second((grads, its_grads), leaves, case, rng)
    for a, b in names:
        if a != b and leaves[0][0].dtype == "float64":  # nodes do not depend on the type
            raise Difference("node", f"node {a}, torch's {b}")


# ---- all rows ---------------------------------------------------------------------------------


class Peer:
    def __init__(self, options):
        self.options = options
        self.cases = run_ops.Runner(argparse.Namespace(seed=options.seed, device="cpu"))
        self.passed = self.failed = self.skipped = 0
        self.used = Counter()
        self.decisions = DECISIONS if options.type is None else DECISIONS + (
            HALVES if options.type in opcases.HALVES else SHORT_INTEGERS)

    def try_one(self, op, where, function, *args):
        try:
            function(*args)
            self.passed += 1
        except Difference as difference:
            self.differs(op, where, difference.kind, str(difference))
        except AssertionError as error:
            self.differs(op, where, "case", str(error))

    def differs(self, op, where, kind, text):
        for number, (rows, kinds, pattern, _) in enumerate(self.decisions):
            if re.fullmatch(rows, op.name) and kind in kinds.split() and re.search(
                    pattern, f"{where}: {text}"):
                self.used[number] += 1
                self.skipped += 1
                return
        self.failed += 1
        self.row_failed += 1
        if self.row_failed <= SHOWN or self.options.verbose:
            print(f"FAIL {kind}: {where}: {text}", flush=True)

    def layouts_for(self, case, arrays, rng):
        """Contiguous, and one other that differs from it."""
        other = [name for name in case.layouts if name != "contiguous" and layouts.matters(name, arrays)]
        chosen = ["contiguous"] if "contiguous" in case.layouts else []
        return chosen + ([other[rng.integers(len(other))]] if other else [])

    def run_case(self, op, case, dtype, where, rng):
        arrays = layouts.collect((case.args, case.kwargs), (np.ndarray, opcases.Fixed))
        chosen = self.layouts_for(case, arrays, rng)
        for layout in chosen:
            self.try_one(op, f"{where}, {layout}", run_value, op, case, layout)
        sizes = [layouts.strip(a).size for a in arrays]
        if case.grad is not False and dtype in ("float64", *opcases.HALVES) and all(sizes) and (
                op.differentiable or "COMPOSITE" in op.flags) and "RANDOM" not in op.flags and any(
                    mt.dtype_of(layouts.strip(a)) == dtype for a in arrays):
            layout = chosen[-1] if chosen[-1] != "broadcast" else chosen[0]
            self.try_one(op, f"{where}, {layout}", run_gradient, op, case, layout, self.options.seed)

    def dtypes_of(self, registered):
        """Those of the cases, or the one that was asked for where the row takes a type of its kind."""
        if self.options.type is None:
            return registered.dtypes
        like = "float32" if self.options.type in opcases.HALVES else "int32"
        return (self.options.type,) if like in registered.dtypes else ()

    def items_of(self, op, registered, dtype, derived):
        """The cases. In a type that they are not written for without bad input, whose words name types, and up to the
        one whose arrays the type cannot hold."""
        if self.options.type is None:
            yield from self.cases.items(op, registered, dtype, derived)
            return
        try:
            yield from (item for item in self.cases.items(op, registered, dtype, derived)
                        if not isinstance(item, opcases.Bad))
        except (TypeError, KeyError, OverflowError) as error:
            if self.options.type not in str(error):
                raise
            self.skipped += 1

    def run_row(self, name):
        op = mt.ops()[name]
        self.row_failed = 0
        registered, derived = run_ops.cases_of(name)
        unchecked, untried = twin.unchecked(name), 0
        rng = np.random.default_rng([self.options.seed] + list(name.encode()))
        for dtype in self.dtypes_of(registered):
            for number, item in enumerate(self.items_of(op, registered, dtype, derived)):
                if getattr(item, "note", "") == "made: large":
                    continue
                where = f"{dtype} case {number}, {signature(op, item)}"
                if isinstance(item, opcases.Bad) and unchecked:
                    untried += 1
                elif isinstance(item, opcases.Bad):
                    self.try_one(op, where, run_bad, op, item)
                else:
                    self.run_case(op, item, dtype, where, rng)
        if untried:
            self.skipped += untried
            print(f"skip bad input of {name}, {untried} times: {unchecked}")
        if self.row_failed > SHOWN and not self.options.verbose:
            print(f"FAIL {name}: {self.row_failed} in all (-v shows them)")

    def skip_row(self, name):
        self.skipped += 1
        print(f"skip row {name}: {twin.ABSENT[name]}")

    def report_decisions(self, whole):
        for number, (rows, kinds, _, reason) in enumerate(self.decisions):
            if self.used[number]:
                print(f"skip {rows} ({kinds}), {self.used[number]} times: {reason}")
            elif whole:
                self.failed += 1
                print(f"FAIL a difference that is no more, {rows} ({kinds}): {reason}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--type", choices=opcases.HALVES + opcases.SHORTS + opcases.UNSIGNED,
                        help="in this type, every row that takes float32 or int32")
    parser.add_argument("--op", action="append", help="only these rows")
    parser.add_argument("--python", action="store_true", help="through the package mindtorch_v2 instead of ctypes")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    mt.open_library(options.library)
    if options.python:
        import mt_face
        mt_face.install()
    run_ops.load(run_ops.FAMILIES)
    peer = Peer(options)
    began = time.process_time()
    rows = 0
    for name in mt.ops():
        if options.op and name not in options.op:
            continue
        rows += 1
        if name in twin.ABSENT:
            peer.skip_row(name)
        else:
            peer.run_row(name)
    peer.report_decisions(whole=not options.op and options.seed == 1 and options.type is None)
    print(f"{rows} rows, torch {torch.__version__}, seed {options.seed}, "
          f"{time.process_time() - began:.1f} s of processor time")
    print(f"{peer.passed} passed, {peer.failed} failed, {peer.skipped} skipped")
    return 1 if peer.failed else 0


if __name__ == "__main__":
    sys.exit(main())
