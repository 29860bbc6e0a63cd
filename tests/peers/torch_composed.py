#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions that Python makes of rows, with extreme input, against torch: values, types, shapes, errors.

Every name in mindtorch_v2._functions has a call here, or fails. Each call is tried with every type (pairs of them
where there are two tensors), with the numbers of tests/ops/extremes.py, with 0-d and empty tensors. In-place methods
that write their result back must refuse what they cannot hold. Special cases are in SINGLE.
PEERS_SEED chooses other numbers. The last line: N passed, N failed, N skipped.
"""
import os
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ops"))
import extremes  # noqa: E402
import mindtorch_v2  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from mindtorch_v2 import _composed, _functions, _further  # noqa: E402

SHOWN = 3  # failures of a function
INF, NAN = float("inf"), float("nan")
PAIR = "hypot copysign logaddexp atan2 fmod isclose".split()  # rows that were functions, and their kin

ONE = {
    "isposinf": lambda t, x: t.isposinf(x), "isneginf": lambda t, x: t.isneginf(x),
    "std": lambda t, x: t.std(x), "var": lambda t, x: t.var(x), "var_mean": lambda t, x: t.var_mean(x),
    "std_mean": lambda t, x: t.std_mean(x), "norm": lambda t, x: t.norm(x),
    "nonzero": lambda t, x: t.nonzero(x, as_tuple=True),
    "trace": lambda t, x: t.trace(x), "repeat_interleave": lambda t, x: t.repeat_interleave(x, 2),
    "diag": lambda t, x: t.diag(x), "nan_to_num": lambda t, x: t.nan_to_num(x), "positive": lambda t, x: t.positive(x),
    "unique": lambda t, x: t.unique(x), "diff": lambda t, x: t.diff(x), "exp2": lambda t, x: t.exp2(x),
    "frac": lambda t, x: t.frac(x), "logit": lambda t, x: t.logit(x), "erfinv": lambda t, x: t.erfinv(t.tanh(x) * 0.99),
    "deg2rad": lambda t, x: t.deg2rad(x),
    "rad2deg": lambda t, x: t.rad2deg(x), "sgn": lambda t, x: t.sgn(x), "nansum": lambda t, x: t.nansum(x),
    "fill": lambda t, x: t.fill(x, 1), "numel": lambda t, x: t.tensor(t.numel(x)),
    "_shape_as_tensor": lambda t, x: t._shape_as_tensor(x),
    "is_floating_point": lambda t, x: t.tensor(t.is_floating_point(x)),
    "tensor_split": lambda t, x: t.tensor_split(x, 2), "atleast_1d": lambda t, x: t.atleast_1d(x),
    "atleast_2d": lambda t, x: t.atleast_2d(x), "atleast_3d": lambda t, x: t.atleast_3d(x),
    "erfc": lambda t, x: t.erfc(x), "sinh": lambda t, x: t.sinh(x), "cosh": lambda t, x: t.cosh(x),
    "normalize": lambda t, x: t.nn.functional.normalize(x, dim=0),
}
TWO = {
    "dist": lambda t, x, y: t.dist(x, y), "where": lambda t, x, y: t.where(x == x, x, y),
    "inner": lambda t, x, y: t.inner(x, y), "tensordot": lambda t, x, y: t.tensordot(x, y, 1 if x.dim() else 0),
    "kron": lambda t, x, y: t.kron(x, y),
    "cdist": lambda t, x, y: t.cdist(t.tanh(x).reshape(1, -1), t.tanh(y).reshape(1, -1)),
    "vdot": lambda t, x, y: t.vdot(x.reshape(-1), y.reshape(-1)),
    "isin": lambda t, x, y: t.isin(x, y), "is_same_size": lambda t, x, y: t.tensor(t.is_same_size(x, y)),
    "broadcast_tensors": lambda t, x, y: t.broadcast_tensors(x, y), "meshgrid": lambda t, x, y: t.meshgrid(
        x.reshape(-1), y.reshape(-1), indexing="ij"),
    "pairwise_distance": lambda t, x, y: t.nn.functional.pairwise_distance(x, y),
    "cosine_similarity": lambda t, x, y: t.nn.functional.cosine_similarity(x, y, dim=0),
    **{name: (lambda t, x, y, n=name: getattr(t, n)(x, y)) for name in PAIR},
}
# Functions that no number of theirs can make extreme, or that are rows (batch_norm: torch_extremes.py).
ELSEWHERE = set("""
    is_tensor is_complex is_storage broadcast_shapes normal batch_norm layer_norm embedding addmv einsum bincount take
    take_along_dim tril_indices triu_indices randint_like unique_consecutive chain_matmul lu is_inference _assert_async
    stft istft
""".split())  # stft, istft: the rows with cases of their own; what Python adds to them is in SINGLE

SINGLE = {
    "stft": lambda t: _stft(t, 40),
    "stft of several signals": lambda t: _stft(t, 3, 40),
    "stft without a centre": lambda t: _stft(t, 40, center=False),
    "stft, constant padding": lambda t: _stft(t, 2, 40, pad_mode="constant", normalized=True),
    "stft, replicated padding": lambda t: _stft(t, 2, 40, pad_mode="replicate", onesided=False),
    "stft, unknown padding": lambda t: _stft(t, 40, pad_mode="none"),
    "stft aligned to the window": lambda t: _stft(t, 40, center=False, win_length=8, align_to_window=True),
    "stft, centred and aligned": lambda t: _stft(t, 40, align_to_window=True),
    "stft of too few points": lambda t: _stft(t, 5),
    "stft as pairs": lambda t: _digits(t.stft(_signal(t, 40), 16, return_complex=False)),
    "istft": lambda t: _istft(t, 40),
    "istft of several signals": lambda t: _istft(t, 3, 40, normalized=True),
    "istft without a centre": lambda t: _istft(t, 40, center=False, window=None),
    "istft of a length": lambda t: _istft(t, 40, length=33),
    "istft of a longer length": lambda t: _istft(t, 40, length=48),
    "inner without elements": lambda t: t.inner(t.ones(3, 0), t.ones(5, 0)),
    "tensordot without elements": lambda t: t.tensordot(t.ones(3, 0), t.ones(0, 4), 1),
    "tensordot without rows": lambda t: t.tensordot(t.ones(0, 2), t.ones(2, 4), 1),
    "diff of bool": lambda t: t.diff(t.tensor([True, True, False])),
    "nonzero of 0-d": lambda t: t.nonzero(t.tensor(5), as_tuple=True)[0],
    "nonzero of 0-d zero": lambda t: t.nonzero(t.tensor(0), as_tuple=True)[0],
    "take_along_dim broadcasts indices": lambda t: t.take_along_dim(t.arange(6).reshape(3, 2), t.tensor([[1]]), 1),
    "take_along_dim broadcasts input": lambda t: t.take_along_dim(t.tensor([[1, 2]]), t.tensor([[1], [0]]), 1),
    "take_along_dim, other sizes": lambda t: t.take_along_dim(t.ones(3, 2), t.zeros(2, 1, dtype=t.int64), 1),
    "take_along_dim, other dims": lambda t: t.take_along_dim(t.ones(3, 2), t.zeros(2, dtype=t.int64), 1),
    "take_along_dim of int32": lambda t: t.take_along_dim(t.ones(3), t.zeros(2, dtype=t.int32), 0),
    "erfc's tail": lambda t: t.erfc(t.linspace(-6, 26, 65, dtype=t.float64)),
    "erfc's tail, float": lambda t: t.erfc(t.linspace(-6, 9, 61)),
    "erf's ends": lambda t: t.erf(t.linspace(-6, 6, 61)),
    "expm1 near 0": lambda t: t.expm1(t.tensor([1e-30, -1e-30, 1e-10, -0.0, 88.7, -200.0])),
    "log1p near 0": lambda t: t.log1p(t.tensor([1e-30, -1e-30, 1e-10, -0.0, 1e30, -1.0])),
    "data has a version of its own": lambda t: _versions(t),
    "data is written behind autograd": lambda t: _behind(t),
    "cumsum_ of int32": lambda t: t.tensor([1, 2], dtype=t.int32).cumsum_(0),
    "cumsum_ to another type": lambda t: t.tensor([7, 8]).cumsum_(0, dtype=t.float32),
    "cumprod_ to another type": lambda t: t.tensor([7, 8]).cumprod_(0, dtype=t.float32),
    "nan_to_num_": lambda t: t.tensor([NAN, INF, 1.0]).nan_to_num_(),
    "nan_to_num_ of integers": lambda t: t.tensor([7, 8]).nan_to_num_(),
    "clamp_ by tensors": lambda t: t.tensor([1., 5., 9.]).clamp_(t.tensor([2., 2., 2.]), t.tensor([6., 6., 6.])),
    "clamp_min_ by a tensor": lambda t: t.tensor([1., 5., 9.]).clamp_min_(t.tensor([2., 2., NAN])),
    "clip_ by tensors": lambda t: t.tensor([1., 5., 9.]).clip_(max=t.tensor([2., 2., 2.])),
    "hypot_": lambda t: t.tensor([3.0, 1e30]).hypot_(t.tensor([4.0, 1e30])),
    "copysign_": lambda t: t.tensor([3.0, -1.0]).copysign_(t.tensor([-0.0, 0.0])),
}
# Methods that write what they cannot hold: x is int64, y float32.
WRITING = {name: (lambda t, n=name: getattr(t.tensor([7, 8, 9]), n)(t.tensor([2.5, 2.5, 2.5]))) for name in """
    atan2_ fmod_ remainder_ pow_ floor_divide_ div_ add_ mul_ sub_ hypot_ copysign_ bitwise_and_ bitwise_or_ clamp_
    clamp_min_ clamp_max_ true_divide_ logical_and_ logical_or_ eq_ ne_ lt_ le_ gt_ ge_ masked_scatter_
""".split()} | {name: (lambda t, n=name: getattr(t.tensor([7, 8, 9]), n)()) for name in """
    exp_ sqrt_ sigmoid_ tanh_ log_ reciprocal_ rsqrt_ sin_ cos_ tan_ erf_ erfc_ sinh_ cosh_ expm1_ log1p_ log2_ log10_
    floor_ ceil_ round_ trunc_ sign_ square_ abs_ neg_
""".split()}


def _signal(t, *shape):
    return t.sin(t.arange(np.prod(shape).item(), dtype=t.float64) * 1.3).reshape(shape)


def _digits(x):
    """Those on which two ways of transforming agree."""
    return (x * 1e9).round() + 0


def _stft(t, *shape, win_length=None, **options):
    window = t.hann_window(win_length or 16, dtype=t.float64)
    return _digits(t.view_as_real(t.stft(_signal(t, *shape), 16, 4, win_length, window, return_complex=True,
                                         **options)))


def _istft(t, *shape, window=True, **options):
    window = t.hann_window(16, dtype=t.float64) if window else None
    spectrum = t.stft(_signal(t, *shape), 16, 4, window=window, return_complex=True,
                      **{key: value for key, value in options.items() if key != "length"})
    return _digits(t.istft(spectrum, 16, 4, window=window, **options))


def _versions(t):
    x = t.ones(3, requires_grad=True) * 2
    x.data.add_(1)
    other = t.zeros(3)
    other.add_(1).add_(1)
    first = t.ones(3)
    first.add_(1)
    first.data = other
    versions = [x._version, x.data._version, first._version, other._version]
    first.add_(1)
    return t.tensor(versions + [first._version, other._version])


def _behind(t):
    w = t.ones(3, requires_grad=True)
    loss = (w * w).sum()
    w.data.add_(1)
    loss.backward()
    return w.grad


def attempt(call, *args):
    try:
        return call(*args), None
    except Exception as error:  # noqa: BLE001: whether there is one, is compared
        return None, error


def parts(value):
    if isinstance(value, (tuple, list)):
        return [part for item in value for part in parts(item)]
    return [value]


def plain(tensor):
    return np.asarray(tensor.detach().numpy(), np.float64 if "float" in str(tensor.dtype) else None)


def differs(mine, its, wide, exact):
    """What is not the same, or None. wide: torch's result in float64, for float32."""
    if len(mine) != len(its):
        return f"{len(mine)} results, torch has {len(its)}"
    for index, (a, b) in enumerate(zip(mine, its)):
        if (str(a.dtype), tuple(a.shape)) != (str(b.dtype), tuple(b.shape)):
            return f"{a.dtype}{list(a.shape)}, torch's {b.dtype}{list(b.shape)}"
        values, expected = plain(a), plain(b)
        if values.dtype.kind != "f":
            if not np.array_equal(values, expected):
                return f"{values.tolist()}, torch's {expected.tolist()}"
            continue
        rtol = (2.0 ** -20 if "float32" in str(a.dtype) else 2.0 ** -48) * (1 if exact else 64)
        with np.errstate(all="ignore"):
            same = np.isclose(values, expected, rtol, 1e-300, equal_nan=True)
            if not np.all(same) and wide is not None and len(wide) == len(its):
                truth = plain(wide[index]).astype(np.float32).astype(np.float64)
                if truth.shape == values.shape:
                    same |= np.isclose(values, truth, rtol, 1e-37, equal_nan=True)
        if not np.all(same):
            return f"{values.tolist()}, torch's {expected.tolist()}"
    return None


# Differences that are decisions: a function's name, words in the report, why.
REASONS = (
    ("", "overlap", "what is written is as if the operands had been copied"),
    ("unique", "nan", "NaN is not equal to itself: torch gives one or more"),
    ("inner tensordot kron vdot dist pairwise_distance cosine_similarity norm", "nan", "inf and NaN by order of the sum"),
    ("inner tensordot kron vdot dist pairwise_distance cosine_similarity norm normalize std var std_mean var_mean nansum",
     "ends", "partial sums overflow in another order"),
    ("std var std_mean var_mean nansum inner tensordot vdot norm dist pairwise_distance cosine_similarity normalize",
     "mixed", "partial sums overflow in another order"),
    ("std var std_mean var_mean inner tensordot vdot cosine_similarity", "mean",
     "differences of a large mean: torch's sums keep fewer digits"),
    ("pairwise_distance", "inf", "torch's squares overflow"),
    ("isin", "int", "torch turns the test elements into the elements' type, where they may overflow"),
    ("fmod", "nan", "torch's vector loop gives NaN for subnormal divisors"),
    ("std var std_mean var_mean", "special", "torch keeps a running mean, which infinities turn into NaN"),
)


class Peer:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.passed = self.failed = self.skipped = 0
        self.reasons, self.told = {}, {}

    def compare(self, name, what, call, arrays=(), exact=True):
        theirs, its_error = attempt(call, torch, *(torch.from_numpy(np.array(a)) for a in arrays))
        ours, my_error = attempt(call, mindtorch_v2, *(mindtorch_v2.tensor(np.array(a)) for a in arrays))
        text = None
        if (my_error is None) != (its_error is None):
            text = f"raised {my_error!r}, torch {its_error!r}"
        elif my_error is None:
            wide = None
            if any(a.dtype == np.float32 for a in arrays):
                wide = attempt(call, torch, *(torch.from_numpy(np.array(
                    a, np.float64 if a.dtype == np.float32 else None)) for a in arrays))[0]
            text = differs(parts(ours), parts(theirs), None if wide is None else parts(wide), exact)
        elif type(my_error) is not type(its_error) and not arrays:
            text = f"raised {my_error!r}, torch {its_error!r}"
        if text is None:
            self.passed += 1
            return
        for names, words, why in REASONS:
            if name in names.split() and words in f"{what} {text}":
                self.skipped += 1
                self.reasons[why] = self.reasons.get(why, 0) + 1
                return
        self.failed += 1
        self.told[name] = self.told.get(name, 0) + 1
        if self.told[name] <= SHOWN:
            print(f"FAIL {name} ({what}): {text[:300]}")

    def array(self, kind, dtype, shape):
        if dtype == "bool":
            return np.asarray(self.rng.integers(0, 2, shape), bool)
        make = extremes.of_float if "float" in dtype else extremes.of_integer
        with np.errstate(all="ignore"):
            return np.asarray(make(self.rng, kind, shape, dtype)).astype(dtype).reshape(shape)

    def run(self):
        known = (set(_functions.FUNCTIONS) | set(_composed.FUNCTIONS)) - set(_further.FUNCTIONS)  # torch_further.py
        for name in sorted(known - set(ONE) - set(TWO) - ELSEWHERE):
            self.failed += 1
            print(f"FAIL {name} has no call here")
        for name, call in SINGLE.items():
            self.compare(name, "single", call)
        for name, call in WRITING.items():
            self.compare(name, "writing", call)
        for name, call in ONE.items():
            exact = name not in "std var var_mean std_mean norm nansum normalize trace".split()
            for dtype in extremes.TYPES:
                for kind in extremes.KINDS:
                    for shape in ((3, 4), (5,), ()):
                        self.compare(name, f"{dtype} {kind} {shape}", call, [self.array(kind, dtype, shape)], exact)
                for shape in ((0,), (2, 0), (0, 3)):
                    self.compare(name, f"{dtype} {shape}", call, [self.array("small", dtype, shape)], exact)
        for name, call in TWO.items():
            exact = name in PAIR or name in ("where", "kron", "isin", "meshgrid", "broadcast_tensors")
            for first in extremes.TYPES:
                for second in extremes.TYPES:
                    kind = extremes.KINDS[self.rng.integers(len(extremes.KINDS))]
                    self.compare(name, f"{first} {second} {kind}", call,
                                 [self.array(kind, first, (4, 4)), self.array(kind, second, (4, 4))], exact)
            for dtype in ("float32", "float64"):
                for kind in extremes.KINDS:
                    self.compare(name, f"{dtype} {kind}", call,
                                 [self.array(kind, dtype, (4, 4)), self.array(kind, dtype, (4, 4))], exact)
                for shapes in (((), ()), ((0,), (0,)), ((3, 0), (0,)), ((1,), (1,)), ((), (3,))):
                    self.compare(name, f"{dtype} {shapes}", call,
                                 [self.array("small", dtype, shape) for shape in shapes], exact)


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    peer = Peer(int(os.environ.get("PEERS_SEED", "1")))
    peer.run()
    for why, count in peer.reasons.items():
        print(f"skip, {count} times: {why}")
    print(f"{peer.passed} passed, {peer.failed} failed, {peer.skipped} skipped")
    return 1 if peer.failed else 0


if __name__ == "__main__":
    sys.exit(main())
