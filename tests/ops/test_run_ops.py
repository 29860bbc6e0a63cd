# SPDX-License-Identifier: Apache-2.0
"""The runner itself: what is wrong must be seen. test_run_ops.py LIBRARY"""
import argparse
import contextlib
import io
import sys

import gradients
import mt
import numpy as np
import opcases
import run_ops
from opcases import Bad, Case

FAILURES = []
KEPT = []


def run(name, function, dtypes=("float32", "float64"), skip=None):
    """Failures and what was printed when a row is tested with these cases alone."""
    options = argparse.Namespace(device="cpu", seed=1, dtype=None, layout=None,
                                 verbose=False, share=1)
    runner = run_ops.Runner(options)
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        runner.run_row(name, opcases.Registered(function, dtypes, skip or {}, "test"))
    return runner.failed, text.getvalue()


def expect(what, found, words):
    """words None: nothing fails; else something does, and says this."""
    failed, text = found
    if (failed == 0) != (words is None) or (words or "") not in text:
        FAILURES.append(what)
        print(f"FAIL {what}: {failed} failures, expected {words!r}\n{text}")


def change_first(got, tensors, arrays):
    mt.call("add_", tensors[0], 1)


def keep_result(got, tensors, arrays):
    KEPT.append(got)


def check_rows():
    def good(g):
        yield Case((g.array((3, 4)), g.array((4,))), {}, lambda a, b: a + b, double=True)

    def one(*args, **kwargs):
        def function(g):
            yield Case((g.array((3, 4)), g.array((3, 4))), *args, **kwargs)
        return function

    expect("a right case", run("add", good), None)
    expect("a wrong value", run("add", one({}, lambda a, b: a - b)), "expected")
    expect("a wrong value in one place",
           run("add", one({}, lambda a, b: a + b + (np.arange(12).reshape(3, 4) == 7) * 1e-3)),
           "at (1, 3) is")
    expect("a wrong type", run("add", one({}, lambda a, b: a + b, result="int64")), "has type")
    expect("a wrong shape", run("add", one({}, lambda a, b: (a + b).reshape(12))), "has shape")
    expect("a changed input", run("add", one({}, lambda a, b: a + b, check=change_first)),
           "input 0 was changed")
    expect("a tensor that is kept", run("add", one({}, lambda a, b: a + b, check=keep_result)),
           "not given back")
    KEPT.clear()
    expect("no case", run("add", lambda g: iter(())), "there are none")
    expect("no empty and no 0-d case",
           run("mm", one({}, lambda a, b: a @ b, layouts=("contiguous",))), "raised RuntimeError")


def check_bad():
    def bad(error, words):
        def function(g):
            yield Bad((g.array((2,)), g.array((3,))), error, words)
        return function

    everything = {"empty": "not asked", "0-d": "not asked"}
    expect("the right failure", run("add", bad("RuntimeError", "must match"), skip=everything), None)
    expect("another exception", run("add", bad("IndexError", "must match"), skip=everything),
           "expected IndexError")
    expect("other words", run("add", bad("RuntimeError", "banana"), skip=everything), "banana")

    def fine(g):
        yield Bad((g.array((2,)), g.array((2,))), "RuntimeError", "")

    expect("a failure that does not come", run("add", fine, skip=everything), "expected Runtime")


def check_gradients():
    """A graph that forgets one of two factors gives half of the gradient."""
    def half(args, kwargs):
        return mt.call("mul", mt.call("detach", args[0]), args[0])

    def whole(args, kwargs):
        return mt.call("mul", args[0], args[0])

    array = np.array([0.5, -1.5, 2.0])
    for name, call, good in (("half", half, False), ("whole", whole, True)):
        problem = gradients.Problem(call, (array,), {}, None, "contiguous", "cpu",
                                    np.random.default_rng(1))
        try:
            gradients.check_gradient(problem)
            gradients.check_double(problem)
            seen = False
        except AssertionError:
            seen = True
        if seen == good:
            FAILURES.append(name)
            print(f"FAIL the {name} gradient: {'refused' if seen else 'not seen'}")


def main():
    mt.open_library(sys.argv[1])
    check_rows()
    check_bad()
    check_gradients()
    print(f"{len(FAILURES)} failed")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
