# SPDX-License-Identifier: Apache-2.0
"""What a row of the op table is tested with. One cases_*.py for each ops_*.def.

    @cases("add", dtypes=ALL)
    def add(g):
        yield Case((g.array((3, 4)), g.array((4,))), {"alpha": 2},
                   lambda a, b, alpha: a + alpha * b)
        yield Bad((g.array((2,)), g.array((3,))), "RuntimeError", "must match the size")

The function runs once for each dtype; run_ops.py tries every case in several layouts. See
Case for what is compared and how.
"""
import dataclasses
import typing

import mt
import numpy as np

FLOATS = ("float32", "float64")
HALVES = ("float16", "bfloat16")
INTEGERS = ("uint8", "int32", "int64")
SHORTS = ("int8", "int16")
UNSIGNED = ("uint16", "uint32", "uint64")  # torch calls them barebones: they have few ops
NUMBERS = INTEGERS + FLOATS
ALL = ("bool",) + NUMBERS
EVERY = ALL + HALVES  # data movers

# What torch's messages call integer types.
TITLES = {"bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long",
          "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64"}

LAYOUTS = ("contiguous", "transposed", "sliced", "mixed", "broadcast")


@dataclasses.dataclass
class Case:
    """One call. NumPy arrays among the arguments (in lists too) become tensors.

    reference(*args, **kwargs) gives the expected result: an array (or number), a tuple for several
    results, a list for Tensor[]. It sees floating-point arrays as float64; with exact=True it sees
    them in their own type. The result's type: `result` (a name, or a tuple of names) where given;
    else a reference that gives floating point means the widest floating type among the tensors
    (float32 if there is none), and any other reference means its own type, exactly.

    check(got, args, kwargs) may replace or accompany a reference: for random ops and for
    what else must hold. It gets tensors and raises AssertionError.
    """

    args: tuple
    kwargs: dict = dataclasses.field(default_factory=dict)
    reference: typing.Optional[typing.Callable] = None
    result: typing.Any = None
    check: typing.Optional[typing.Callable] = None
    exact: bool = False
    # Gradients, in float64: None = for every differentiable row. grad_args: which flat tensor
    # arguments (in order of appearance, floating-point ones) are differentiated; None = all.
    grad: typing.Optional[bool] = None
    grad_args: typing.Optional[tuple] = None
    double: bool = False  # double backward too
    rtol: typing.Optional[float] = None
    atol: typing.Optional[float] = None
    layouts: tuple = LAYOUTS
    equal_nan: bool = True
    inplace: bool = True  # row X's case is tried with row X_ as well
    note: str = ""


@dataclasses.dataclass
class Bad:
    """A call that must fail with this exception (its name) and these words in the message."""

    args: tuple
    error: str
    words: str
    kwargs: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Fixed:
    """An array that keeps its values and stays contiguous in every layout."""

    array: typing.Any


@dataclasses.dataclass
class Registered:
    function: typing.Callable
    dtypes: tuple
    skip: dict  # {"empty": why, "0-d": why, "extremes": {kind: why}}
    module: str


REGISTRY = {}


def cases(*names, dtypes=FLOATS, skip=None):
    """Registers a function of cases for rows. Every row needs a case with an empty tensor and one
    with a 0-d tensor (POINTWISE rows get theirs made), or `skip` says why not:
    skip={"0-d": "needs a matrix"}. skip={"extremes": {"large": why}}: kinds of extremes.TRUE that the
    reference is not true for. A function for several rows finds the name in g.op."""

    def register(function):
        for name in names:
            if name in REGISTRY:
                raise AssertionError(f"cases for {name} twice")
            REGISTRY[name] = Registered(function, tuple(dtypes), skip or {}, function.__module__)
        return function

    return register


class Maker:
    """Makes arrays of the dtype under test, the same ones in every run with the same seed."""

    def __init__(self, op, dtype, seed):
        self.op = op
        self.dtype = dtype
        self.rng = np.random.default_rng([seed] + list(f"{op} {dtype}".encode()))
        self.floating = dtype in FLOATS + HALVES
        self.is_bool = dtype == "bool"
        self.integer = dtype in INTEGERS + SHORTS + UNSIGNED
        self.unsigned = dtype in ("uint8",) + UNSIGNED

    def cast(self, array):
        """Numbers as the dtype under test."""
        if self.dtype == "bfloat16":
            return mt.bfloat16(array)
        return np.asarray(array).astype(self.dtype)

    def array(self, shape=(), low=None, high=None):
        """Uniform numbers: floats in [-2, 2), integers in [-9, 9] (unsigned: [0, 9]), bools."""
        if self.is_bool:
            return np.asarray(self.rng.integers(0, 2, shape), bool)
        if self.integer:
            low = (0 if self.unsigned else -9) if low is None else low
            high = 9 if high is None else high
            return np.asarray(self.rng.integers(low, high + 1, shape), self.dtype)
        low = -2.0 if low is None else low
        high = 2.0 if high is None else high
        return self.cast(self.rng.uniform(low, high, shape))

    def positive(self, shape=(), low=None, high=None):
        """> 0: floats in [0.5, 2), integers in [1, 9]."""
        if self.is_bool:
            return np.ones(shape, bool)
        return self.array(shape, (0.5 if self.floating else 1) if low is None else low, high)

    def away(self, shape=(), centre=0.0, by=0.25):
        """Floats that keep away from a kink, so that finite differences work there; as array()
        for other types."""
        if not self.floating:
            return self.array(shape)
        sign = np.where(self.rng.integers(0, 2, shape) == 1, 1.0, -1.0)
        return self.cast(centre + sign * self.rng.uniform(by, by + 2.0, shape))

    def distinct(self, shape=()):
        """All different and well apart, in random order; for max, sort, topk. Up to 200 elements."""
        count = int(np.prod(shape))
        if self.is_bool:
            return self.array(shape)
        start = 0 if self.unsigned else -(count // 2)
        values = self.rng.permutation(np.arange(start, start + count)).reshape(shape)
        return self.cast(values * 0.125 if self.floating else values)

    def indices(self, shape, below, low=0):
        """int64 in [low, below)."""
        return np.asarray(self.rng.integers(low, below, shape), np.int64)

    def mask(self, shape):
        return np.asarray(self.rng.integers(0, 2, shape), bool)

    def other(self, dtype, shape=(), low=None, high=None):
        """As array(), of another dtype."""
        maker = Maker(self.op, dtype, 0)
        maker.rng = self.rng
        return maker.array(shape, low, high)
