#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""repr() of random tensors against torch's, character for character.

Run by a Python that has torch, with our packages on PYTHONPATH. Prints "N passed, N failed, N skipped".
"""
import random
import sys

import numpy
import torch

import mindtorch_v2

INTEGERS = ("int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64")
DTYPES = ("float32", "float64", "float16", "bool") + INTEGERS
OPTIONS = (
    {}, {"precision": 2}, {"precision": 8}, {"threshold": 5}, {"threshold": 5, "edgeitems": 1},
    {"linewidth": 40},
    {"linewidth": 120, "precision": 6}, {"sci_mode": True}, {"sci_mode": False}, {"profile": "short"},
    {"profile": "full"}, {"threshold": 3, "edgeitems": 0},
)


def random_shape(rng):
    dims = rng.choice((0, 1, 1, 1, 2, 2, 3, 4))
    return tuple(rng.choice((0, 1, 1, 2, 3, 3, 5, 7, 8, 13, 40)) if dims < 3 else rng.randrange(1, 9)
                 for _ in range(dims))


def random_values(rng, shape, dtype):
    count = int(numpy.prod(shape))
    if dtype == "bool":
        values = [rng.random() < 0.5 for _ in range(count)]
    elif dtype in INTEGERS:
        info = numpy.iinfo(dtype)
        low, high = rng.choice(((0, 2), (-9, 9), (-1000, 100), (-2 ** 31, 2 ** 31), (0, 2 ** 64)))
        low, high = max(low, info.min), min(high, info.max + 1)
        values = [rng.randrange(low, high) for _ in range(count)]
    else:
        kind = rng.randrange(7)
        draw = (lambda: rng.gauss(0, 1), lambda: float(rng.randrange(-9, 9)),
                lambda: rng.gauss(0, 1) * 10 ** rng.randrange(-8, 9),
                lambda: float(rng.randrange(-10 ** 6, 10 ** 6)), lambda: rng.gauss(0, 1e-6),
                lambda: rng.choice((0.0, -0.0, 1.0)),
                lambda: rng.choice((0.1, 0.25, 100.5)))[kind]
        values = [draw() for _ in range(count)]
        if rng.random() < 0.25:
            values = [rng.choice((float("nan"), float("inf"), -float("inf"), 0.0, v)) for v in values]
    with numpy.errstate(over="ignore"):
        return numpy.array(values, dtype=dtype).reshape(shape)


def text(library, array, requires_grad, made):
    tensor = library.from_numpy(array.copy())
    if requires_grad:
        tensor.requires_grad_()
    if made:
        tensor = tensor * 1
    return repr(tensor)


def compare(rng, options):
    array = random_values(rng, random_shape(rng), rng.choice(DTYPES))
    floating = array.dtype.kind == "f" and array.dtype != numpy.float16
    requires_grad = floating and rng.random() < 0.3
    made = requires_grad and rng.random() < 0.5
    want = text(torch, array, requires_grad, made)
    got = text(mindtorch_v2, array, requires_grad, made)
    if want == got:
        return True
    print(f"different with {options}:\n{want}\n--- ours\n{got}")
    return False


def main():
    from mindtorch_v2._tensor_str import set_printoptions

    rng = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    passed = failed = 0
    for options in OPTIONS:
        torch.set_printoptions(profile="default")
        set_printoptions(profile="default")
        torch.set_printoptions(**options)
        set_printoptions(**options)
        for _ in range(150):
            if compare(rng, options):
                passed += 1
            else:
                failed += 1
                if failed > 20:
                    break
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
