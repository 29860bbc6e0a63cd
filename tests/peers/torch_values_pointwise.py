# SPDX-License-Identifier: Apache-2.0
"""Creation, pointwise and reducing ops against torch: values, types, shapes, errors, derivatives.

usage: torch_values_pointwise.py LIBMINDTORCH_SO [--seed N] [--count N] [-v]

Random calls with random types, layouts (permuted, sliced, expanded), broadcasts, empty and 0-d tensors,
numbers and odd values go to both libraries. Where torch raises, we raise the same exception with the same
words, unless the call has more than one fault. Gradients and their gradients are compared in float64, and
the nodes have torch's names. Known differences are left out where the calls are made, with the reason.
"""
import argparse
import math
import pathlib
import random
import sys
import warnings

import numpy as np
import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "ops"))
import mt  # noqa: E402

NAN, INF = math.nan, math.inf
TYPES = {name: getattr(torch, name) for name in ("bool", "uint8", "int32", "int64", "float32", "float64")}
SHAPES = ((), (1,), (3,), (2, 3), (3, 1), (1, 3), (4, 2, 3), (2, 3, 1), (0,), (0, 3), (2, 0), (1, 1))
ODD = (NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.7, 1e10, -1e10, 1e-10, 100.0, 20.0, -104.0)
EXTREME = {"uint8": (0, 255), "int32": (-2 ** 31, 2 ** 31 - 1), "int64": (-2 ** 63, 2 ** 63 - 1)}
# Faults that may occur together in a random call: which one is reported first is not compared.
FAULTS = ("must match the size", "broadcast shape", "more than one element", "can't be cast", "masked_fill_ only",
          "Integer division with", "out of range", "multiple times", "does not support bool")
aten = torch.ops.aten


class Differs(Exception):
    """What is not the same."""


class Maker:
    """Random arguments."""

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def values(self, dtype, count, odd):
        rng = self.rng
        if dtype == "bool":
            return [rng.random() < 0.5 for _ in range(count)]
        if "int" in dtype:
            ends = EXTREME[dtype] if odd and rng.random() < 0.1 else ()
            return [rng.choice(ends) if ends and rng.random() < 0.2 else
                    rng.randint(0 if dtype == "uint8" else -12, 12) for _ in range(count)]
        return [rng.choice(ODD) if odd and rng.random() < 0.3 else rng.uniform(-3, 3) for _ in range(count)]

    def tensor(self, dtype=None, shape=None, odd=True):
        rng = self.rng
        dtype = dtype or rng.choice(list(TYPES))
        shape = rng.choice(SHAPES) if shape is None else shape
        made = torch.tensor(self.values(dtype, math.prod(shape), odd), dtype=TYPES[dtype]).reshape(shape)
        way = rng.random()
        if made.dim() >= 2 and way < 0.35:
            order = list(range(made.dim()))
            rng.shuffle(order)
            return made.permute(order).contiguous().permute([order.index(d) for d in range(made.dim())])
        if made.dim() >= 1 and way < 0.5:
            large = torch.zeros([2 * size + 1 for size in shape], dtype=made.dtype)
            view = large[tuple(slice(1, None, 2) for _ in shape)]
            view.copy_(made)
            return view
        if made.dim() >= 1 and way < 0.6:
            dim = rng.randrange(made.dim())
            return made.narrow(dim, 0, 1).expand(made.shape) if made.shape[dim] > 0 else made
        return made

    def number(self):
        return self.rng.choice([True, False, 0, 1, 2, -1, -3, 7, 0.5, 2.0, -1.5, 1.5, 3, -2.0, 0.0])

    def operand(self):
        return self.number() if self.rng.random() < 0.3 else self.tensor()

    def dtype(self, *without):
        return self.rng.choice([None] * 3 + [TYPES[name] for name in TYPES if name not in without])

    def dims(self, tensor):
        """A list of dimensions, now and then a wrong one; None: all."""
        rng, n = self.rng, max(tensor.dim(), 1)
        if rng.random() < 0.25:
            return None
        dims = [d - n if rng.random() < 0.3 else d for d in rng.sample(range(n), rng.randint(1, n))]
        return dims + [dims[0]] if rng.random() < 0.03 else [n + 1] if rng.random() < 0.03 else dims

    def dim(self, tensor):
        n = max(tensor.dim(), 1)
        return self.rng.randrange(-n, n) if self.rng.random() < 0.95 else n

    def flag(self):
        return self.rng.random() < 0.5


# ---- both sides -----------------------------------------------------------------------------------------


def storage_copy(tensor):
    """The same view of a storage of its own."""
    count = tensor.untyped_storage().nbytes() // tensor.element_size()
    flat = torch.as_strided(tensor.detach(), (count,), (1,), 0).clone()
    return torch.as_strided(flat, tensor.shape, tensor.stride(), tensor.storage_offset()), flat


def ours(value):
    """An argument for our library: tensors have the same layout there."""
    if isinstance(value, torch.Tensor):
        base = mt.tensor(storage_copy(value)[1].numpy())
        with mt.no_grad():
            return mt.call("detach", mt.call("as_strided", base, list(value.shape), list(value.stride()),
                                             value.storage_offset()))
    return str(value)[6:] if isinstance(value, torch.dtype) else value


def attempt(function):
    try:
        return function(), None
    except Exception as error:  # noqa: BLE001: which one it is, is compared
        return None, error


def tell(value):
    if not isinstance(value, torch.Tensor):
        return repr(value)
    return f"{str(value.dtype)[6:]}{list(value.shape)}{value.tolist() if value.numel() < 7 else ''}"


def compare_errors(theirs, our):
    if our is None or theirs is None:
        raise Differs(f"torch: {theirs!r}, ours: {our!r}")
    if any(word in str(error) for error in (theirs, our) for word in FAULTS):
        return
    words = [str(error).split("\n")[0].strip(". ").replace(" because", "because") for error in (theirs, our)]
    if type(theirs) is not type(our) or words[0] != words[1]:
        raise Differs(f"torch: {theirs!r}, ours: {our!r}")


def compare_values(theirs, our, tolerance=None):
    if str(theirs.dtype)[6:] != our.dtype or tuple(theirs.shape) != our.shape:
        raise Differs(f"torch: {theirs.dtype}{list(theirs.shape)}, ours: {our}")
    a, b = theirs.detach().numpy(force=True), our.numpy()
    if "float" in our.dtype:
        close = tolerance or {"float32": 2e-5, "float64": 1e-11}[our.dtype]
        same = np.isclose(a.astype(np.float64), b.astype(np.float64), close, close / 10, equal_nan=True)
    else:
        same = a == b
    if not np.all(same):
        at = tuple(np.argwhere(~np.atleast_1d(same))[0]) if a.ndim else ()
        raise Differs(f"at {[int(i) for i in at]} torch: {a[at]!r}, ours: {b[at]!r}")


def steps(tensor_strides, shape):
    return [stride for stride, size in zip(tensor_strides, shape) if size > 1]


class Runner:
    def __init__(self, verbose):
        self.verbose = verbose
        self.passed = self.failed = 0
        self.told = {}

    def note(self, name, arguments, check):
        try:
            check()
            self.passed += 1
        except Differs as difference:
            self.failed += 1
            self.told[name] = self.told.get(name, 0) + 1
            if self.told[name] <= 3 or self.verbose:
                print(f"FAIL {name}({', '.join(tell(a) for a in arguments)}): {difference}")

    def value(self, name, arguments, keywords=None, function=None, layout=False):
        """One call of both; in-place ops write a copy."""
        keywords = keywords or {}
        function = function or getattr(aten, name.split(".")[0])
        mine = [ours(a) for a in arguments]
        written = list(arguments)
        if name.split(".")[0].endswith("_"):
            written[0] = storage_copy(arguments[0])[0]

        def check():
            theirs, their_error = attempt(lambda: function(*written, **keywords))
            our, our_error = attempt(
                lambda: mt.call(name, *mine, **{key: ours(value) for key, value in keywords.items()}))
            if their_error is not None or our_error is not None:
                compare_errors(their_error, our_error)
                return
            pairs = zip(theirs, our) if isinstance(theirs, tuple) else [(theirs, our)]
            for a, b in pairs:
                if not isinstance(a, torch.Tensor):
                    if a != b and not (a != a and b != b):
                        raise Differs(f"torch: {a!r}, ours: {b!r}")
                    continue
                compare_values(a, b)
                if layout and steps(a.stride(), a.shape) != steps(b.strides, b.shape) and a.numel() > 1:
                    raise Differs(f"torch's strides {a.stride()}, ours {b.strides}")

        self.note(name, list(arguments) + list(keywords.items()), check)

    def gradient(self, name, arguments, keywords=None, function=None, twice=True):
        keywords = keywords or {}
        function = function or getattr(torch, name)
        chosen = [i for i, a in enumerate(arguments) if isinstance(a, torch.Tensor) and a.is_floating_point()]
        theirs = [a.detach().requires_grad_() if i in chosen else a for i, a in enumerate(arguments)]
        mine = [ours(a) for a in arguments]
        for i in chosen:
            mine[i].requires_grad = True
        results, error = attempt(lambda: function(*theirs, **keywords))
        if error is not None:
            return
        results = [r for r in (results if isinstance(results, tuple) else (results,)) if r.is_floating_point()]

        def check():
            our = mt.call(name, *mine, **{key: ours(value) for key, value in keywords.items()})
            our = [r for r in (our if isinstance(our, tuple) else (our,)) if "float" in r.dtype]
            if results[0].grad_fn is not None and results[0].grad_fn.name() != our[0].grad_fn:
                raise Differs(f"torch's node {results[0].grad_fn.name()}, ours {our[0].grad_fn}")
            inputs, our_inputs = [theirs[i] for i in chosen], [mine[i] for i in chosen]
            first, our_first = self.derive(results, our, inputs, our_inputs, True)
            single = any(a.dtype == torch.float32 for a in inputs)
            self.same(first, our_first, 1e-5 if single else 1e-9)
            kept = [(a, b) for a, b in zip(first, our_first) if a is not None and a.requires_grad]
            if not twice or not kept or not all(b is not None and b.requires_grad for _, b in kept):
                return
            second, our_second = self.derive([a for a, _ in kept], [b for _, b in kept], inputs, our_inputs, False)
            self.same(second, our_second, 1e-5 if single else 1e-7)

        self.note(name, list(arguments) + list(keywords.items()), check)

    @staticmethod
    def derive(results, our, inputs, our_inputs, again):
        weights = [torch.rand_like(r) + 0.5 for r in results]
        flags = mt.ALLOW_UNUSED | (mt.CREATE_GRAPH if again else 0)
        return (torch.autograd.grad(results, inputs, weights, create_graph=again, allow_unused=True),
                mt.grad(our, our_inputs, [ours(w) for w in weights], flags))

    @staticmethod
    def same(theirs, our, tolerance):
        for a, b in zip(theirs, our):
            if a is None and b is None:
                continue
            if a is None or b is None:
                there = b.numpy() if a is None else a.detach().numpy(force=True)
                if np.any(there != 0):
                    raise Differs(f"a gradient is missing: torch {a is not None}, ours {b is not None}")
                continue
            compare_values(a, b, 1e-4 if b.dtype == "float32" else tolerance)


# ---- the calls ------------------------------------------------------------------------------------------

TWO = ("add sub mul div rsub floor_divide remainder fmod pow eq ne lt le gt ge bitwise_and bitwise_or "
       "bitwise_xor").split()
TENSORS = "maximum minimum atan2 logical_and logical_or logical_xor".split()
ONE = ("logical_not bitwise_not isnan isinf isfinite abs neg sign square reciprocal sqrt rsqrt exp expm1 log log1p "
       "log2 log10 sin cos tan tanh sigmoid erf silu relu leaky_relu elu softplus hardtanh floor ceil round "
       "trunc").split()
WRITING = "abs_ neg_ reciprocal_ sqrt_ rsqrt_ exp_ log_ tanh_ sigmoid_ relu_".split()
FUNCTIONS = {"isinf": torch.isinf, "isfinite": torch.isfinite, "square": torch.square, "leaky_relu": F.leaky_relu,
             "rsub": torch.rsub, "remainder": torch.remainder, "fmod": torch.fmod, "pow": torch.pow}


def pointwise_values(run, make):
    rng = make.rng
    for name in TWO:
        run.value(name, (make.tensor(), make.operand()), function=FUNCTIONS.get(name))
    for name in ("add", "sub"):
        run.value(name, (make.tensor(), make.operand()), {"alpha": make.number()})
    run.value("div", (make.tensor(), make.operand()), {"rounding_mode": rng.choice(["floor", "trunc", "up"])})
    run.value("pow", (make.number(), make.tensor()), function=torch.pow)
    for name in TENSORS:
        run.value(name, (make.tensor(), make.tensor()))
    for name in ONE:
        run.value(name, (make.tensor(),), function=FUNCTIONS.get(name), layout=True)
    # gelu(inf) is NaN in torch's vector loop and inf in its scalar one; ours is inf.
    run.value("gelu", (make.tensor(odd=False),), {"approximate": rng.choice(["none", "tanh", "no"])})
    run.value("log_sigmoid", (make.tensor(),), function=F.logsigmoid)
    for name in ("clamp", "clamp_"):
        run.value(name, (make.tensor(), rng.choice([None, make.number()]), make.number()),
                  function=getattr(torch, name))
    for name in ("clamp_min", "clamp_max"):
        run.value(name, (make.tensor(), make.number()), function=getattr(torch, name))
    run.value("clamp.Tensor", (make.tensor(), rng.choice([None, make.tensor()]), rng.choice([None, make.tensor()])),
              function=torch.clamp)
    run.value("where", (make.tensor(rng.choice(["bool"] * 3 + ["uint8", "int64"])), make.operand(), make.operand()),
              function=torch.where)
    kind = rng.choice(["float32", "float64", "int64"])
    # Weights below -0.5 count from the other end in torch: that is seen at infinities alone.
    run.value("lerp", (make.tensor(kind, odd=False), make.tensor(rng.choice([kind] * 3 + ["float32"]), odd=False),
                       rng.choice([make.number(), make.tensor(kind, odd=False)])), function=torch.lerp)
    for name in ("addcmul", "addcdiv", "addcmul_", "addcdiv_"):
        run.value(name, (make.tensor(), make.tensor(), make.tensor()), {"value": make.number()},
                  function=getattr(torch, name, None) or getattr(torch.Tensor, name))
    run.value("masked_fill", (make.tensor(), make.tensor("bool"), make.number()), function=torch.masked_fill)
    for name in ("add_", "sub_", "mul_", "div_", "pow_"):
        run.value(name, (make.tensor(), make.operand()), function=getattr(torch.Tensor, name))
    for name in WRITING:
        run.value(name, (make.tensor(),), function=getattr(torch.Tensor, name))
    for name in ("sigmoid_backward", "tanh_backward", "silu_backward"):
        run.value(name, (make.tensor("float64"), make.tensor("float64")))


def reduce_values(run, make):
    rng = make.rng
    for name in ("sum", "mean"):
        x = make.tensor(odd=False)
        run.value(name, (x, make.dims(x), make.flag()), {"dtype": make.dtype()},
                  lambda x, d, k, dtype, n=name: getattr(torch, n)(x, d if d is not None else list(
                      range(x.dim())), k, dtype=dtype))
    x = make.tensor(odd=False)
    run.value("prod", (x,), {"dtype": make.dtype()}, torch.prod)
    run.value("prod.dim_int", (x, make.dim(x), make.flag()), {"dtype": make.dtype()}, torch.prod)
    for name in ("var", "std", "var_mean"):
        x = make.tensor(rng.choice(["float32", "float64", "int64"]), odd=False)
        run.value(name, (x, make.dims(x), make.flag()), {"correction": rng.choice([0, 1, 2, 1.5, 5])},
                  lambda x, d, k, correction, n=name: getattr(aten, n).correction(x, d, keepdim=k,
                                                                                 correction=correction))
    for name in ("max", "min"):
        run.value(name, (make.tensor(),))
        x = make.tensor()
        run.value(f"{name}.dim", (x, make.dim(x), make.flag()), function=getattr(torch, name))
        run.value(f"a{name}", (x, make.dims(x) or [], make.flag()), function=getattr(torch, f"a{name}"))
        run.value(f"arg{name}", (x, rng.choice([None, make.dim(x)]), make.flag()),
                  function=getattr(torch, f"arg{name}"))
    for name in ("all", "any"):
        x = make.tensor()
        run.value(name, (x, make.dims(x), make.flag()), function=getattr(aten, name).dims)
    x = make.tensor()
    run.value("count_nonzero", (x, make.dims(x)), function=torch.count_nonzero)
    x = make.tensor(rng.choice(["float32", "float64", "int64"]), odd=make.flag())
    run.value("linalg_vector_norm", (x, rng.choice([0, 1, 2, 3, INF, -INF, 0.5, -1, 2.5]), make.dims(x), make.flag()),
              function=torch.linalg.vector_norm)
    x = make.tensor()
    run.value("logsumexp", (x, make.dims(x) or [0], make.flag()), function=torch.logsumexp)
    for name in ("cumsum", "cumprod"):  # of type bool torch makes an exception of empty tensors
        x = make.tensor(odd=False)
        run.value(name, (x, make.dim(x)), {"dtype": make.dtype("bool")}, getattr(torch, name))
    run.value("sum_to_size", (make.tensor(), list(rng.choice(SHAPES))), function=lambda x, size: x.sum_to_size(size))
    a = make.tensor()
    run.value("equal", (a, rng.choice([make.tensor(), a.clone(), make.tensor(shape=a.shape)])), function=torch.equal)
    run.value("allclose", (a, rng.choice([a.clone(), make.tensor(str(a.dtype)[6:])]), rng.choice([1e-5, 0.0, -1.0]),
                           1e-8, make.flag()), function=torch.allclose)


def create_values(run, make):
    rng = make.rng
    ends = [rng.choice([rng.randint(-5, 20), rng.uniform(-5, 20), 0, 1]) for _ in range(2)]
    run.value("arange", (*ends, rng.choice([1, 2, -1, 0.5, -0.7, 3, 0.1, 0, 1.5, 2.7])), {"dtype": make.dtype()},
              torch.arange)
    # Integers between the ends are cut off: the last bit decides at whole numbers, and torch's is a fused one.
    run.value("linspace", (*ends, rng.randint(-1, 12)), {"dtype": make.dtype("bool", "uint8", "int32", "int64")},
              torch.linspace)
    run.value("full", (list(rng.choice(SHAPES)), make.number()), {"dtype": make.dtype()}, torch.full)
    run.value("eye", (rng.randint(-1, 4), rng.randint(-1, 4)), {"dtype": make.dtype()}, torch.eye)
    for name in ("zeros_like", "ones_like"):
        run.value(name, (make.tensor(),), {"dtype": make.dtype()}, getattr(torch, name), layout=True)
    run.value("full_like", (make.tensor(), make.number()), {"dtype": make.dtype()}, torch.full_like, layout=True)
    run.value("clone", (make.tensor(),), layout=True)
    run.value("contiguous", (make.tensor(),), function=torch.Tensor.contiguous, layout=True)
    run.value("to", (make.tensor(odd=False),), {"dtype": make.dtype() or torch.float32}, torch.Tensor.to, layout=True)
    run.value("item", (make.tensor(),), function=torch.Tensor.item)
    run.value("copy_", (make.tensor(), make.tensor(odd=False)))
    run.value("fill_", (make.tensor(), rng.choice([make.number(), make.tensor(odd=False)])),
              function=torch.Tensor.fill_)


def gradients(run, make):
    rng = make.rng

    def x(shape=None, odd=None):
        odd = rng.random() < 0.3 if odd is None else odd
        return make.tensor("float64", rng.choice([(), (3,), (2, 3), (3, 1), (1, 3), (4, 2, 3)]) if shape is None
                           else shape, odd)

    for name in "add sub mul div maximum minimum atan2 remainder fmod rsub".split():
        run.gradient(name, (x(), x()))
    for name in "add sub mul div remainder fmod rsub".split():
        run.gradient(name, (x(), rng.choice([2, 0.5, -3])))
    run.gradient("add", (x(), make.tensor("float32", (2, 3))), {"alpha": 2.5})
    run.gradient("mul", (make.tensor("float32", ()), x()))
    run.gradient("div", (x(), x()), {"rounding_mode": "floor"})
    run.gradient("pow", (x(odd=False).abs() + 0.3, x(odd=False)))
    run.gradient("pow", (x(), rng.choice([0, 1, 2, 3, -1, 0.5, 2.5, -2])))
    run.gradient("pow", (rng.choice([2, 0.5, 3.0]), x()))
    for name in ("abs neg sign reciprocal sqrt rsqrt exp expm1 log log1p log2 log10 sin cos tan tanh sigmoid erf relu "
                 "floor square").split():
        run.gradient(name, (x(),))
    for name, function in (("log_sigmoid", F.logsigmoid), ("silu", F.silu), ("leaky_relu", F.leaky_relu)):
        run.gradient(name, (x(),), function=function)
    run.gradient("hardtanh", (x(odd=False),), function=F.hardtanh)  # NaN: 0 or 1, by torch's loop
    run.gradient("gelu", (x(odd=False),), {"approximate": rng.choice(["none", "tanh"])}, F.gelu)
    run.gradient("elu", (x(odd=False), 1.7), function=F.elu)
    run.gradient("softplus", (x(odd=False), 2.0, 1.0), function=F.softplus)
    for low, high in ((0, 1), (None, 1), (-1, None), (1, 0)):
        run.gradient("clamp", (x(), low, high))
    # torch itself fails where a bound is larger than self.
    run.gradient("clamp.Tensor", (x((2, 3)), x((2, 3)), x((2, 3))), function=torch.clamp)
    condition = make.tensor("bool", (2, 3))
    run.gradient("where", (condition, x(), rng.choice([x(), 1.5])))
    run.gradient("lerp", (x(odd=False), x(odd=False), rng.choice([0.3, x(odd=False)])))
    run.gradient("addcmul", (x(), x(), x()), {"value": 1.5})
    run.gradient("addcdiv", (x(), x(), x(odd=False).abs() + 0.3), {"value": -2})
    run.gradient("masked_fill", (x(), condition, rng.choice([1.5, x(())])))
    reduced_gradients(run, make, x)


def reduced_gradients(run, make, x):
    rng = make.rng
    a, b = x(), x(odd=False)
    n = max(a.dim(), 1)
    dims, dim, kept = sorted(rng.sample(range(n), rng.randint(1, n))), rng.randrange(-n, n), make.flag()
    for name in ("sum", "mean"):
        run.gradient(name, (a,))
        run.gradient(name, (a, dims, kept))
    # Infinities: torch divides by the element, ours are products of the others and stay finite.
    zeros = torch.where(torch.rand(b.shape) < 0.3, 0.0, b)
    m = max(b.dim(), 1)
    for tensor in (b, zeros):
        run.gradient("prod", (tensor,))
        run.gradient("prod.dim_int", (tensor, dim % m, kept), function=torch.prod)
        run.gradient("cumprod", (tensor, dim % m))
    run.gradient("cumsum", (a, dim))
    for name in ("var", "std", "var_mean"):
        if b.numel() > 1 and all(b.stride(d) != 0 for d in range(b.dim())):
            run.gradient(name, (b, None, kept), {"correction": rng.choice([0, 1])},
                         lambda t, d, k, correction, n=name: getattr(aten, n).correction(t, d, keepdim=k,
                                                                                        correction=correction))
    for name in ("max", "min"):
        run.gradient(name, (rng.choice([a, a.round()]),))
        run.gradient(f"{name}.dim", (a, dim, kept), function=getattr(torch, name))
        run.gradient(f"a{name}", (rng.choice([a, a.round()]), dims, kept))
    for p in (0, 1, 2, 3, 0.5, 1.5, INF, -INF):
        run.gradient("linalg_vector_norm", (zeros, p), function=torch.linalg.vector_norm)
    run.gradient("logsumexp", (a, dims, kept))
    run.gradient("clone", (a,))
    run.gradient("to", (a,), {"dtype": torch.float32}, torch.Tensor.to)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=25, help="rounds over all ops")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    mt.open_library(options.library)
    run, make = Runner(options.verbose), Maker(options.seed)
    for _ in range(options.count):
        for part in (pointwise_values, reduce_values, create_values, gradients):
            part(run, make)
    print(f"seed {options.seed}")
    print(f"{run.passed} passed, {run.failed} failed, 0 skipped")
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
