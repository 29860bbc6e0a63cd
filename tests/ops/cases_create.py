# SPDX-License-Identifier: Apache-2.0
"""Cases of ops_create.def: creation, random numbers, copies. Random rows are held to what must be
true of their numbers: range, moments, the same numbers for the same seed and in every layout."""
import mt
import numpy as np
from opcases import ALL, EVERY, FLOATS, HALVES, INTEGERS, NUMBERS, Bad, Case, Fixed, cases

NAN, INF = float("nan"), float("inf")
SHAPES = ([3, 4], [], [0], [2, 0, 3], [2, 1, 3])
LIKE = ((3, 4), (), (0, 2), (2, 3, 2))


def default(dtype):
    return "float32" if dtype is None else dtype


def filled(value):
    def reference(size, *_, dtype=None, **__):
        return np.full(size, value, default(dtype) if dtype != "bfloat16" else "float32")

    return reference


# ---- from nothing ----


@cases("zeros", "ones", dtypes=EVERY)
def constant(g):
    value = 0 if g.op == "zeros" else 1
    for size in SHAPES:
        yield Case((size,), {"dtype": g.dtype}, filled(value), result=g.dtype)
    yield Case(([2],), {}, filled(value), result="float32")
    yield Bad(([2, -1],), "RuntimeError", "")
    yield Bad(([2 ** 40, 2 ** 40],), "RuntimeError", "")


def has(dtype, shape):
    def check(got, *_):
        assert got.dtype == dtype and got.shape == tuple(shape), (got, dtype, shape)
        assert got.is_contiguous

    return check


@cases("empty", dtypes=EVERY)
def empty(g):
    for size in SHAPES:
        yield Case((size,), {"dtype": g.dtype}, check=has(g.dtype, size))
    yield Case(([2],), {}, check=has("float32", [2]))
    yield Bad(([-1],), "RuntimeError", "")


@cases("full", dtypes=ALL)
def full(g):
    for size in SHAPES:
        yield Case((size, 1), {"dtype": g.dtype},
                   lambda size, value, dtype: np.full(size, value, dtype), result=g.dtype)
    for value, dtype in ((True, "bool"), (3, "int64"), (2.5, "float32")):
        yield Case(([2], value), {}, lambda size, v, d=dtype: np.full(size, v, d), result=dtype)
    if g.integer:
        yield Case(([2], 2.75), {"dtype": g.dtype}, lambda size, v, dtype: np.full(size, 2, dtype),
                   result=g.dtype)
        yield Bad(([2], NAN), "RuntimeError", "without overflow", {"dtype": g.dtype})
    if g.dtype in ("uint8", "int32"):
        yield Bad(([2], 2 ** 40), "RuntimeError", "value cannot be converted to type", {"dtype": g.dtype})
    if g.dtype == "uint8":
        yield Case(([2], -1), {"dtype": "uint8"}, lambda size, v, dtype: np.full(size, 255, np.uint8),
                   result="uint8")
    if g.dtype == "float32":
        yield Bad(([2], 1e300), "RuntimeError", "to type float without overflow", {"dtype": "float32"})
        yield Case(([2], INF), {"dtype": "float32"}, lambda size, v, dtype: np.full(size, INF))


@cases("scalar_tensor", dtypes=ALL)
def scalar_tensor(g):
    yield Case((1,), {"dtype": g.dtype}, lambda s, dtype: np.asarray(s).astype(dtype), result=g.dtype)
    yield Case((3,), {}, lambda s: np.float64(s), result="float32")
    yield Case((True,), {}, lambda s: np.float64(1), result="float32")


def arange_of(start, end, step=1, dtype=None):
    if dtype is not None and "float" not in dtype:
        return np.arange(int(start), int(end), int(step)).astype(dtype)
    count = int(np.ceil((end - start) / step))
    return start + np.arange(count) * step


@cases("arange", dtypes=NUMBERS)
def arange(g):
    for bounds in ((0, 5), (2, 11, 3), (10, 0, -4), (3, 3)):
        yield Case(bounds, {"dtype": g.dtype}, arange_of, result=g.dtype)
        yield Case(bounds, {}, lambda *b: np.arange(*b), result="int64")
    yield Case((0, 1, 0.1), {}, lambda *b: arange_of(*b), result="float32")
    yield Case((0, 1.05, 0.1), {}, lambda *b: arange_of(*b), result="float32")
    if g.floating:
        yield Case((-1.5, 2.0, 0.25), {"dtype": g.dtype}, arange_of, result=g.dtype)
    else:  # only int64 counts in integers
        yield Case((0, 5.5), {"dtype": g.dtype}, lambda a, b, dtype: np.arange(
            5 if dtype == "int64" else 6).astype(dtype), result=g.dtype)
    yield Bad((0, 5, 0), "RuntimeError", "step must be nonzero")
    yield Bad((0, 5, -1), "RuntimeError", "upper bound and lower bound inconsistent with step sign")
    yield Bad((0, INF), "RuntimeError", "unsupported range: 0 -> inf")
    yield Bad((0, 5), "NotImplementedError", "\"arange_cpu\" not implemented for 'Bool'",
              {"dtype": "bool"})


def linspace_of(start, end, steps, dtype=None):
    if dtype is not None and "float" not in dtype:
        start, end = int(start), int(end)
        step = (end - start) / (steps - 1) if steps > 1 else 0
        return np.trunc([start + step * i if i < steps // 2 or steps == 1 else end - step * (
            steps - 1 - i) for i in range(steps)]).astype(dtype)
    return np.linspace(start, end, steps)


@cases("linspace", dtypes=NUMBERS)
def linspace(g):
    for start, end, steps in ((0, 1, 5), (3, 10, 5), (10, 3, 5), (2, 2, 3), (1, 9, 1), (0, 1, 0),
                              (0, 100, 33)):
        yield Case((start, end, steps), {"dtype": g.dtype}, linspace_of, result=g.dtype)
    yield Case((-1.5, 2.5, 7), {}, linspace_of, result="float32")
    yield Bad((0, 1, -1), "RuntimeError", "number of steps must be non-negative")


@cases("eye", dtypes=ALL)
def eye(g):
    for n, m in ((3, None), (2, 4), (4, 2), (0, None), (3, 0)):
        yield Case((n, m), {"dtype": g.dtype}, lambda n, m, dtype: np.eye(n, m),
                   result=g.dtype)
    yield Case((2,), {}, lambda n: np.eye(n), result="float32")
    yield Bad((-1,), "RuntimeError", "n must be greater or equal to 0, got -1")
    yield Bad((2, -3), "RuntimeError", "m must be greater or equal to 0, got -3")


def keeps_layout(got, tensors, *_):
    """Results of dense tensors have their strides."""
    given = tensors[0]
    if given.numel > 1 and sorted(given.strides) == sorted(_row_major(given)):
        assert got.strides == given.strides, (got.strides, given.strides)


def _row_major(tensor):
    order = sorted(range(len(tensor.shape)), key=lambda d: -tensor.strides[d])
    strides, step = [], 1
    for dim in reversed(order):
        strides.append(step)
        step *= max(tensor.shape[dim], 1)
    return strides


@cases("empty_like", "zeros_like", "ones_like", "full_like", dtypes=EVERY)
def like(g):
    more = (1,) if g.op == "full_like" else ()
    value = 0 if g.op == "zeros_like" else 1
    kind = np.float32 if g.dtype == "bfloat16" else g.dtype

    def reference(a, *_, dtype=None):
        return np.full(a.shape, value, dtype or kind)

    for shape in LIKE:
        x = g.array(shape)
        if g.op == "empty_like":
            yield Case((x,), check=lambda got, *_, s=shape: has_shape(got, g.dtype, s))
            yield Case((x,), {"dtype": "int64"}, check=lambda got, *_, s=shape: has_shape(got, "int64", s))
        else:
            yield Case((x, *more), {}, reference, result=g.dtype, check=keeps_layout)
            yield Case((x, *more), {"dtype": "int64"}, reference, result="int64")


def has_shape(got, dtype, shape):
    assert got.dtype == dtype and got.shape == tuple(shape), (got, dtype, shape)


# ---- random ----


def random_check(low, high, mean=None, deviation=None):
    """Numbers in [low, high], of these moments; with the same seed again the same ones."""

    def check(got, tensors, args):
        values = np.asarray(got.numpy(), np.float64)
        assert np.all((values >= low) & (values <= high)), (values.min(), values.max())
        if values.size >= 1000:
            error = 5 / np.sqrt(values.size)
            if mean is not None:
                assert abs(values.mean() - mean) <= error * deviation, (values.mean(), mean)
            if deviation is not None:
                assert abs(values.std() - deviation) <= 2 * error * deviation, (values.std(), deviation)
            assert len(np.unique(values)) > 1

    return check


def again(name, *more, **kwargs):
    """Whether a seed repeats the numbers, and the next call has others."""

    def check(got, tensors, args):
        mt.manual_seed(1234)
        first = mt.call(name, *args, **kwargs).numpy()
        second = mt.call(name, *args, **kwargs).numpy()
        assert np.array_equal(first, got.numpy())
        assert not np.array_equal(first, second)
        generator = mt.Generator(1234)
        third = mt.call(name, *args, **kwargs, generator=generator).numpy()
        assert np.array_equal(first, third)

    return check


@cases("rand", "randn")
def rand(g):
    normal = g.op == "randn"
    moments = (-8, 8, 0, 1) if normal else (0, np.nextafter(1, 0), 0.5, 12 ** -0.5)
    for size in SHAPES:
        yield Case((size,), {"dtype": g.dtype}, check=random_check(*moments[:2]))
    yield Case(([50, 100],), {"dtype": g.dtype}, check=random_check(*moments))
    yield Case(([20],), {"dtype": g.dtype}, check=again(g.op, dtype=g.dtype))
    yield Case(([2, 3],), {}, check=has("float32", [2, 3]))
    kernel = "normal_kernel_cpu" if normal else "check_uniform_bounds"
    yield Bad(([2],), "NotImplementedError", f"\"{kernel}\" not implemented for 'Long'",
              {"dtype": "int64"})


@cases("rand_like", "randn_like")
def rand_like(g):
    moments = (-8, 8, 0, 1) if g.op == "randn_like" else (0, 1, 0.5, 12 ** -0.5)
    for shape in LIKE + ((40, 50),):
        yield Case((g.array(shape),), {}, check=random_check(*moments), grad=False)
    yield Case((g.other("int64", (3,)),), {"dtype": g.dtype}, check=has(g.dtype, [3]), grad=False)
    yield Bad((g.other("int64", (3,)),), "NotImplementedError", "not implemented for 'Long'")


@cases("randint", dtypes=ALL)
def randint(g):
    high = 2 if g.is_bool else 7
    for size in SHAPES + ([2000],):
        yield Case((0, high, size), {"dtype": g.dtype},
                   check=random_check(0, high - 1, (high - 1) / 2, ((high ** 2 - 1) / 12) ** 0.5))
    if g.dtype in ("int32", "int64", "float32", "float64"):
        yield Case((-3, 4, [2000]), {"dtype": g.dtype}, check=random_check(-3, 3, 0, 2))
    yield Case((0, 5, [2, 3]), {}, check=has("int64", [2, 3]))
    yield Bad((5, 5, [2]), "RuntimeError",
              "random_ expects 'from' to be less than 'to', but got from=5 >= to=5")
    if g.dtype in ("uint8", "bool"):
        name = "unsigned char" if g.dtype == "uint8" else "bool"
        yield Bad((0, 300, [2]), "RuntimeError", f"to - 1 is out of bounds for {name}", {"dtype": g.dtype})
        yield Bad((-5, 2, [2]), "RuntimeError", f"from is out of bounds for {name}", {"dtype": g.dtype})


@cases("randperm", dtypes=INTEGERS + FLOATS)
def randperm(g):
    def permutes(n):
        def check(got, *_):
            assert got.dtype == g.dtype and sorted(got.numpy().tolist()) == list(range(n))

        return check

    for n in (0, 1, 2, 7, 200):
        yield Case((n,), {"dtype": g.dtype}, check=permutes(n))
    yield Case((50,), {"dtype": g.dtype}, check=again("randperm", dtype=g.dtype))
    yield Bad((-1,), "RuntimeError", "Trying to create tensor with negative dimension -1: [-1]")
    if g.dtype == "uint8":
        yield Bad((300,), "RuntimeError", "without overflow", {"dtype": "uint8"})
    yield Bad((3,), "NotImplementedError", "\"randperm\" not implemented for 'Bool'", {"dtype": "bool"})


IN_PLACE = ((40, 50), (3, 4), (), (0, 2))
ONE_BY_ONE = ("contiguous", "transposed", "sliced")  # every element is there once


@cases("uniform_")
def uniform(g):
    for shape in IN_PLACE:
        yield Case((g.array(shape),), {}, check=random_check(0, 1, 0.5, 12 ** -0.5), layouts=ONE_BY_ONE)
        yield Case((g.array(shape), -2.0, 4.0), {}, check=random_check(-2, 4, 1, 6 * 12 ** -0.5),
                   layouts=ONE_BY_ONE)
    yield Bad((g.array((2,)), 2.0, 1.0), "RuntimeError",
              "uniform_ expects to return a [from, to) range, but found from=2 > to=1")
    yield Bad((g.array((2,)), 0.0, INF), "RuntimeError", "to is out of bounds for")
    yield Bad((g.other("int64", (2,)),), "NotImplementedError", "not implemented for 'Long'")


@cases("normal_")
def normal(g):
    for shape in IN_PLACE:
        yield Case((g.array(shape),), {}, check=random_check(-8, 8, 0, 1), layouts=ONE_BY_ONE)
        yield Case((g.array(shape), 3.0, 0.5), {}, check=random_check(-1, 7, 3, 0.5), layouts=ONE_BY_ONE)
    yield Bad((g.array((2,)), 0.0, -1.0), "RuntimeError",
              "normal expects std >= 0.0, but found std -1")
    yield Bad((g.other("int64", (2,)),), "NotImplementedError",
              "\"normal_kernel_cpu\" not implemented for 'Long'")


@cases("bernoulli_", dtypes=ALL)
def bernoulli_in_place(g):
    for shape in IN_PLACE:
        yield Case((g.array(shape), 0.25), {}, check=random_check(0, 1, 0.25, (0.25 * 0.75) ** 0.5),
                   layouts=ONE_BY_ONE)
    yield Case((g.array((5,)), 1.0), {}, lambda a, p: np.ones(5, a.dtype), layouts=ONE_BY_ONE, grad=False)
    yield Case((g.array((5,)), 0.0), {}, lambda a, p: np.zeros(5, a.dtype), layouts=ONE_BY_ONE, grad=False)
    yield Bad((g.array((2,)), 2.0), "RuntimeError",
              "bernoulli_ expects p to be in [0, 1], but got p=2")


@cases("bernoulli")
def bernoulli(g):
    for shape in IN_PLACE:
        yield Case((g.array(shape, 0.3, 0.3000001),), {}, check=random_check(0, 1, 0.3, 0.21 ** 0.5),
                   grad=False)
    yield Case((g.cast([0.0, 1.0, 0.0, 1.0]),), {}, lambda p: p, grad=False)
    yield Bad((g.cast([0.5, 1.5]),), "RuntimeError", "Expected p_in >= 0 && p_in <= 1 to be true")
    yield Bad((g.cast([NAN]),), "RuntimeError", "Expected p_in >= 0 && p_in <= 1 to be true")
    yield Bad((g.other("int64", (2,)),), "NotImplementedError",
              "\"bernoulli_tensor_cpu_p_\" not implemented for 'Long'")


@cases("exponential_")
def exponential(g):
    for shape in IN_PLACE:
        yield Case((g.array(shape), 2.0), {}, check=random_check(0, 40, 0.5, 0.5), layouts=ONE_BY_ONE)
    yield Bad((g.array((2,)), 0.0), "RuntimeError",
              "exponential_ expects lambda > 0.0, but found lambda=0")
    yield Bad((g.other("int64", (2,)),), "RuntimeError", "you specified Long")


@cases("_standard_gamma")
def standard_gamma(g):
    """The gradient of a sample is that of another row, by its numbers."""
    for shape in IN_PLACE:
        yield Case((g.array(shape, 3.0, 3.0000001),), {}, check=random_check(0, 60, 3.0, 3.0**0.5), grad=False)
    yield Bad((g.other("int64", (2,)),), "NotImplementedError", "'Long'")


@cases("poisson")
def poisson(g):
    for shape in IN_PLACE:
        for rate in (2.0, 30.0):
            yield Case((g.array(shape, rate, rate + 1e-6),), {}, grad=False,
                       check=random_check(0, rate * 10, rate, rate**0.5))
    yield Bad((g.cast([1.0, -1.0]),), "RuntimeError", "invalid Poisson rate, expected rate to be non-negative")
    yield Bad((g.other("int64", (2,)),), "NotImplementedError", "'Long'")


@cases("binomial")
def binomial(g):
    for shape in IN_PLACE:
        for count in (4.0, 60.0):
            yield Case((g.array(shape, count, count + 1e-6), g.array(shape, 0.25, 0.2500001)), {}, grad=False,
                       check=random_check(0, count, count * 0.25, (count * 0.1875) ** 0.5))
    yield Case((g.cast([0.0, 3.0, 3.0]), g.cast([0.5, 0.0, 1.0])), {}, lambda n, p: n * p.round(), grad=False)


@cases("random_", dtypes=ALL)
def random_in_place(g):
    high = 2 if g.is_bool else 5
    for shape in IN_PLACE:
        yield Case((g.array(shape), 0, high), {}, layouts=ONE_BY_ONE,
                   check=random_check(0, high - 1, (high - 1) / 2, ((high ** 2 - 1) / 12) ** 0.5))
    yield Bad((g.array((2,)), 3, 3), "RuntimeError", "but got from=3 >= to=3")


@cases("multinomial", skip={"0-d": "takes vectors and matrices"})
def multinomial(g):
    def shares(probabilities):
        def check(got, *_):
            counts = np.bincount(got.numpy().ravel(), minlength=len(probabilities)) / got.numel
            assert np.all(np.abs(counts - probabilities) < 0.05), counts

        return check

    def distinct(rows, width, samples):
        def check(got, *_):
            values = got.numpy().reshape(-1, samples)
            assert values.shape[0] == rows and got.dtype == "int64"
            assert all(len(set(row)) == samples for row in values.tolist())
            assert values.min() >= 0 and values.max() < width

        return check

    yield Case((g.cast([0.1, 0.0, 0.6, 0.3]), 4000, True), {}, check=shares([0.1, 0, 0.6, 0.3]),
               layouts=("contiguous", "sliced"))
    yield Case((g.cast([[1.0, 0.0, 0.0], [0.0, 0.0, 5.0]]), 3, True), {},
               lambda p, n, r: np.array([[0, 0, 0], [2, 2, 2]]), layouts=("contiguous", "transposed"))
    yield Case((g.positive((4, 6)), 6), {}, check=distinct(4, 6, 6))
    yield Case((g.positive((9,)), 3), {}, check=distinct(1, 9, 3))
    yield Case((g.array((0, 3)), 2), {}, lambda p, n: np.zeros((0, 2), np.int64))
    yield Case((g.cast([0.0, 1.0, 0.0]), 1), {}, lambda p, n: np.array([1]), layouts=("contiguous",))
    yield Bad((g.positive((3,)), 5), "RuntimeError",
              "cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    yield Bad((g.positive((3,)), 0), "RuntimeError", "cannot sample n_sample <= 0 samples")
    yield Bad((g.cast([0.0, 0.0]), 1), "RuntimeError", "sum of probabilities <= 0")
    yield Bad((g.cast([-1.0, 2.0]), 1), "RuntimeError", "contains either `inf`, `nan` or element < 0")
    yield Bad((g.positive((2, 2, 2)), 1), "RuntimeError", "prob_dist must be 1 or 2 dim")
    yield Bad((g.other("int64", (3,)), 1), "RuntimeError",
              "multinomial only supports floating-point dtypes for input, got: Long")


# ---- copies ----


@cases("fill_", dtypes=EVERY)
def fill(g):
    kind = np.float32 if g.dtype == "bfloat16" else g.dtype
    for shape in ((3, 4), (), (0, 2)):
        yield Case((g.array(shape), 1), {}, lambda a, v: np.full(a.shape, v, kind), result=g.dtype)
        if g.dtype not in HALVES:
            yield Case((g.array(shape), Fixed(g.array(()))), {},
                       lambda a, v: np.full(a.shape, v, kind), result=g.dtype)
    yield Bad((g.array((3,)), g.array((1,))), "RuntimeError",
              "fill_ only supports 0-dimension value tensor but got tensor with 1 dimensions.")
    if g.dtype == "uint8":
        yield Bad((g.array((3,)), 300), "RuntimeError", "without overflow")


@cases("zero_", dtypes=EVERY)
def zero(g):
    kind = np.float32 if g.dtype == "bfloat16" else g.dtype
    for shape in ((3, 4), (), (0, 2)):
        yield Case((g.array(shape),), {}, lambda a: np.zeros(a.shape, kind), result=g.dtype)


def rounded(values, dtype):
    if dtype == "bfloat16":
        return np.asarray(mt.bfloat16(np.asarray(values, np.float32)), np.float64)
    return np.asarray(values).astype(dtype)


@cases("copy_", dtypes=EVERY)
def copy(g):
    for shape, source in (((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 4), (1, 1)), ((3, 4), ()), ((), ()),
                          ((0, 2), (2,))):
        yield Case((g.array(shape), g.array(source)), {},
                   lambda a, b: np.broadcast_to(b, a.shape), result=g.dtype, layouts=ONE_BY_ONE)
    for other in EVERY:
        if other != g.dtype:
            source = g.other(other, (3, 4), *((0, 3) if "int" in other else (0, 3.0)
                                              if "float" in other else ()))
            yield Case((g.array((3, 4)), source), {}, lambda a, b: rounded(b, g.dtype), result=g.dtype,
                       layouts=ONE_BY_ONE, grad=False)
    yield Bad((g.array((2,)), g.array((3,))), "RuntimeError", "must match the size of tensor b (3)")
    yield Bad((g.array((2,)), g.array((2, 2))), "RuntimeError",
              "output with shape [2] doesn't match the broadcast shape [2, 2]")


def channels_last(got, *_):
    step, places = 1, (1, *range(len(got.shape) - 1, 1, -1), 0)
    for place in places:
        assert got.strides[place] == step, got.strides
        step *= got.shape[place]


@cases("clone", dtypes=EVERY)
def clone(g):
    for shape in LIKE:
        yield Case((g.array(shape),), {}, lambda a: a, result=g.dtype, check=keeps_layout, double=False)
        yield Case((g.array(shape),), {"memory_format": 0}, lambda a, memory_format: a, result=g.dtype,
                   check=lambda got, *_: has(got.dtype, got.shape)(got))
    for format, shape in ((2, (2, 3, 4, 2)), (3, (2, 3, 2, 1, 2))):
        yield Case((g.array(shape),), {"memory_format": format}, lambda a, memory_format: a, result=g.dtype,
                   check=channels_last)
    yield Bad((g.array((2,)),), "RuntimeError", "memory_format 5", {"memory_format": 5})
    yield Bad((g.array((2,)),), "RuntimeError", "required rank 4 tensor", {"memory_format": 2})


@cases("contiguous", dtypes=EVERY)
def contiguous(g):
    for shape in LIKE:
        yield Case((g.array(shape),), {}, lambda a: a, result=g.dtype,
                   check=lambda got, *_: has(got.dtype, got.shape)(got))


@cases("to", "_to_copy", dtypes=EVERY)
def to(g):
    low = (0, 3) if g.integer else (0, 3.0) if g.floating else ()
    for dtype in EVERY:
        yield Case((g.array((3, 4), *low),), {"dtype": dtype}, lambda a, dtype: rounded(a, dtype),
                   result=dtype, check=keeps_layout, grad=None if dtype == "float64" else False)
    for shape in ((), (0, 2)):
        yield Case((g.array(shape, *low),), {"dtype": "int64"}, lambda a, dtype: a.astype(np.int64),
                   result="int64", grad=False)
    yield Case((g.array((2, 3)),), {}, lambda a: a, result=g.dtype)
    if g.op == "to":
        def is_other(got, tensors, args):
            assert got.storage != tensors[0].storage

        yield Case((g.array((2, 3)),), {"copy": True}, lambda a, copy: a, result=g.dtype, check=is_other)
    if g.dtype == "float64":
        odd = np.array([NAN, INF, -INF, 1e300, -0.0])
        for dtype in ("float32", "float16", "bfloat16"):
            with np.errstate(all="ignore"):
                yield Case((odd,), {"dtype": dtype}, lambda a, dtype: rounded(a, dtype), result=dtype,
                           grad=False)


@cases("item", "_local_scalar_dense", dtypes=EVERY, skip={"empty": "an error, tried as such"})
def item(g):
    for shape in ((), (1,), (1, 1, 1)):
        yield Case((g.array(shape),), {}, lambda a: a.reshape(()).item(), grad=False)
    yield Bad((g.array((2,)),), "RuntimeError", "a Tensor with 2 elements cannot be converted to Scalar")
    yield Bad((g.array((0,)),), "RuntimeError", "a Tensor with 0 elements cannot be converted to Scalar")
