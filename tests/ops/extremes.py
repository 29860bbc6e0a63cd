# SPDX-License-Identifier: Apache-2.0
"""Cases with extreme input, made from the cases that a row has: so every row gets them, a new one too.

    values   the same shapes and types, other numbers: 1e30, 1e-30, the ends of the type, subnormal ones, a
             large mean with small differences, infinities, NaN, zeros of both signs; the ends of integer types
    numbers  the same for numbers among the arguments of pointwise rows
    types    every pair of types for the first tensor and the others, for the last and the others
    shapes   each tensor as a 0-d one, all of them; each size as 0

What is left alone: arrays that say where (index, indices, target, mask ...), and Fixed ones.
"""
import itertools

import numpy as np
import opcases
from layouts import map_arrays, strip

KINDS = ("large", "small", "ends", "subnormal", "mean", "special", "mixed")
TRUE = ("large", "small", "mean")  # kinds at which NumPy's float64 is the truth for float32
TYPES = ("bool", "uint8", "int32", "int64", "float32", "float64")
SHORT_PAIRS = (("bool", "int8"), ("uint8", "int8"), ("int8", "uint8"), ("int8", "int16"), ("int16", "int32"),
               ("int64", "int8"), ("int16", "float32"), ("float64", "int8"))
HALVES = ("float16", "bfloat16")
NUMBERS = (float("inf"), -float("inf"), float("nan"), 1e30, -1e30, 1e-30, 0, -0.0, -1, 2, 0.5, 2 ** 40, 255, True)
# Parameters that say where: other numbers there are another call, not another value.
PLACES = frozenset("""
    index indices target targets input_lengths target_lengths mask condition repeats batch_list output_mask
""".split())
# What must go with the other arguments of its row.
KEPT = {
    "_ctc_loss_backward": ("neg_log_likelihood", "log_alpha"),
    "_scaled_dot_product_flash_attention_for_cpu_backward": ("query", "key", "value", "out", "logsumexp"),
    "native_batch_norm_backward": ("save_mean", "save_invstd"),
    "native_layer_norm_backward": ("mean", "rstd"),
}
# Rows whose first tensor says where.
PLACES_FIRST = {"one_hot": "the largest number is the result's size"}
SPECIAL = (float("inf"), -float("inf"), float("nan"), 0.0, -0.0, 1.0, -1.0, 0.5, -2.0)


def of_float(rng, kind, shape, dtype):
    """Numbers of one kind."""
    info = np.finfo(np.float32 if dtype != "float64" else np.float64)
    sign = np.where(rng.integers(0, 2, shape) == 1, 1.0, -1.0)
    unit = rng.uniform(0.5, 2.0, shape)
    made = {
        "large": lambda: sign * unit * 1e30,
        "small": lambda: sign * unit * 1e-30,
        "ends": lambda: sign * unit * 0.5 * float(info.max),
        "subnormal": lambda: sign * unit * 0.25 * float(info.tiny),
        "mean": lambda: 1e6 + sign * unit,
        "special": lambda: rng.choice(SPECIAL, shape),
    }
    if kind != "mixed":
        return np.asarray(made[kind]())
    every = np.stack([np.asarray(made[name]()) for name in KINDS[:-1]] + [sign * unit])
    chosen = rng.integers(0, len(every), shape)
    return np.asarray(np.take_along_axis(every, chosen[None], 0)[0])


def of_integer(rng, kind, shape, dtype):
    """Integers near the ends of their type; `mean` and `small`: next to each other, near zero."""
    info = np.iinfo(dtype)
    if kind == "small":
        return rng.integers(-1 if info.min < 0 else 0, 3, shape).astype(dtype)
    if kind == "mean":
        return (rng.integers(0, 3, shape) + min(10 ** 6, info.max // 5 * 4)).astype(dtype)
    pool = np.array([info.min, info.max, info.min + 1, info.max - 1, 0, 1, info.max // 2, 7], dtype)
    return rng.choice(pool, shape)


def fill(rng, kind, array, maker):
    """An array of the same shape and type with numbers of a kind."""
    if array.dtype == bool:
        return np.asarray(rng.integers(0, 2, array.shape), bool)
    if array.dtype.kind in "iu":
        return np.asarray(of_integer(rng, kind, array.shape, array.dtype.name)).reshape(array.shape)
    with np.errstate(all="ignore"):
        values = of_float(rng, kind, array.shape, array.dtype.name)
        if isinstance(array, type(maker.cast(0.0))) and maker.dtype == "bfloat16":
            return maker.cast(values)
        return np.asarray(values.astype(array.dtype)).reshape(array.shape)


def data_places(op, case):
    """Numbers, in order of appearance, of the arrays that are data."""
    places, count = [], 0
    plain = [p for p in op.parameters if not p.keyword]
    named = {p.name: p for p in op.parameters}

    def visit(value, keep):
        nonlocal count
        if isinstance(value, (np.ndarray, opcases.Fixed)):
            if not keep and isinstance(value, np.ndarray):
                places.append(count)
            count += 1
        elif isinstance(value, (list, tuple)):
            for item in value:
                visit(item, keep)

    def holds_places(parameter, value, first):
        if parameter is None or (first and op.name in PLACES_FIRST) or parameter.name in KEPT.get(op.name, ()):
            return True
        return parameter.name in PLACES and not (
            isinstance(value, np.ndarray) and value.dtype.kind == "f")

    for number, value in enumerate(case.args):
        visit(value, holds_places(plain[number] if number < len(plain) else None, value, number == 0))
    for key, value in case.kwargs.items():
        visit(value, holds_places(named.get(key), value, False))
    return places


def change(case, change_one, note):
    """The case with change_one(number, array) in the place of each array."""
    numbers = itertools.count()
    args, kwargs = map_arrays((case.args, case.kwargs), lambda a: change_one(next(numbers), a))
    return opcases.Case(**{**case.__dict__, "args": args, "kwargs": kwargs, "note": note})


def value_cases(op, case, maker, rng):
    """All data of one kind, each array alone of a kind, all of random ones."""
    places = data_places(op, case)
    if not places:
        return
    for kind in KINDS:
        yield change(case, lambda i, a, k=kind: fill(rng, k, a, maker) if i in places else a, f"all {kind}")
    if len(places) == 1:
        return
    for place in places:
        kind = KINDS[rng.integers(len(KINDS))]
        yield change(case, lambda i, a, k=kind, p=place: fill(rng, k, a, maker) if i == p else a,
                     f"{kind} at {place}")
    yield change(case, lambda i, a: fill(rng, KINDS[rng.integers(len(KINDS))], a, maker) if i in places else a,
                 "any")


def number_cases(op, case, rng):
    """Other numbers in the places of numbers, for pointwise rows."""
    if "POINTWISE" not in op.flags:
        return
    plain = [p for p in op.parameters if not p.keyword]
    for place, (parameter, value) in enumerate(zip(plain, case.args)):
        if "Scalar" in parameter.type and isinstance(value, (bool, int, float)):
            number = NUMBERS[rng.integers(len(NUMBERS))]
            args = (*case.args[:place], number, *case.args[place + 1:])
            yield opcases.Case(**{**case.__dict__, "args": args, "note": f"{parameter.name}={number!r}"})
    for key, value in case.kwargs.items():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            number = NUMBERS[rng.integers(len(NUMBERS))]
            yield opcases.Case(**{**case.__dict__, "kwargs": {**case.kwargs, key: number},
                                  "note": f"{key}={number!r}"})


def as_type(array, name):
    maker = opcases.Maker("", name, 0)
    with np.errstate(all="ignore"):
        return maker.cast(np.asarray(array, np.float64) if array.dtype.kind == "f" else np.asarray(array))


def type_cases(op, case):
    """Every pair of types: the first array and the others, all and the last; one array: every type."""
    places = data_places(op, case)
    if not places:
        return
    if len(places) == 1:
        for name in TYPES + HALVES + opcases.SHORTS + opcases.UNSIGNED:
            yield change(case, lambda i, a, n=name: as_type(a, n) if i in places else a, f"types {name}")
        return
    pairs = list(itertools.product(TYPES, TYPES)) + [("float32", half) for half in HALVES] + [
        (half, "float32") for half in HALVES] + [("float16", "bfloat16"), *SHORT_PAIRS] + [
        pair for name in opcases.UNSIGNED for pair in ((name, name), (name, "float32"))] + [("int64", "uint16")]
    splits = {frozenset(places[:1]), frozenset(places[:-1])}
    for left, (first, second) in itertools.product(sorted(splits, key=len), pairs):
        yield change(case, lambda i, a, f=first, s=second, x=left:
                     as_type(a, f if i in x else s) if i in places else a, f"types {first} {second}")


def to_0d(array):
    flat = strip(array).reshape(-1)[:1]
    return flat.reshape(()) if flat.size else array


def shape_cases(op, case):
    """0-d and empty operands. Sizes that are arguments stay: then both refuse, or both do not."""
    places = data_places(op, case)
    arrays = []
    change(case, lambda i, a: arrays.append(strip(a)) or a, "")
    for place in places if len(places) > 1 else []:
        if arrays[place].ndim:
            yield change(case, lambda i, a, p=place: to_0d(a) if i == p else a, f"0-d at {place}")
    if any(arrays[place].ndim for place in places):
        yield change(case, lambda i, a: to_0d(a) if i in places else a, "all 0-d")
    for size in sorted({n for a in arrays for n in a.shape if n > 0}):
        def empty(array, n=size):
            array = strip(array)
            return array[tuple(slice(0) if m == n else slice(None) for m in array.shape) + (...,)]

        yield change(case, lambda i, a: empty(a), f"size {size} as 0")
    for place in places if len(places) > 1 else []:
        if arrays[place].ndim and arrays[place].shape[0]:
            yield change(case, lambda i, a, p=place: strip(a)[:0] if i == p else a, f"empty at {place}")
