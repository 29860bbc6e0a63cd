# SPDX-License-Identifier: Apache-2.0
"""Names of overloads under capture_overload_names, as torch 2.13 gives them: torch_overloads.py LIBRARY

Calls as programs write them, and the cases of the op table (tests/ops) through torch's functions and methods, are
profiled by both. Compared: each event that both have at the level of the call, name by name, and
key_averages(group_by_overload_name=True). The last line: N passed, N failed, N skipped.
"""
import argparse
import os
import sys
import warnings

os.environ.setdefault("KINETO_LOG_LEVEL", "99")
sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), part) for part in ("..", "../../ops")]
import layouts  # noqa: E402
import mt  # noqa: E402
import numpy as np  # noqa: E402
import opcases  # noqa: E402
import run_ops  # noqa: E402
import torch  # noqa: E402
import torch_twin as twin  # noqa: E402

import mindtorch_v2  # noqa: E402

# The call, or the row, whose name differs, and why (docs/differences.md).
WRAPPED = "the number in front is a tensor before the op"
DEFAULT = "what is given and equals the default counts as not given"
ONE_ITEM = "a list of one dimension is one dimension"
KNOWN = {
    "bitwise_and number first": WRAPPED,
    "bitwise_or number first": WRAPPED,
    "bitwise_xor number first": WRAPPED,
    "bitwise_left_shift number first": WRAPPED,
    "bitwise_right_shift number first": WRAPPED,
    "add out": "out= is the op and a copy",
    "unbiased": "unbiased is a correction",
    "repeat_interleave": "no row: made of others",
    "conv2d same": "padding in words is numbers before the op",
}
KNOWN_ROWS = {
    "arange": DEFAULT, "hann_window": DEFAULT, "hamming_window": DEFAULT, "blackman_window": DEFAULT,
    "bartlett_window": DEFAULT, "kaiser_window": DEFAULT, "randint": DEFAULT,
    "all": ONE_ITEM, "any": ONE_ITEM, "count_nonzero": ONE_ITEM,
}


def calls(t):
    """(what, a function) of a library; x, y, i, b, w are made before."""
    x, y = t.ones(2, 3) * 0.5, t.ones(2, 3) * 2
    i, b = t.ones(2, 3, dtype=t.int64), t.ones(2, 3) > 0
    w, image, kernel = t.ones(4, 3), t.ones(1, 2, 5, 5), t.ones(3, 2, 3, 3)
    index = t.tensor([0, 1])
    F = t.nn.functional
    for name in ("add", "sub", "mul", "div", "pow", "remainder", "fmod", "floor_divide", "true_divide", "rsub",
                 "float_power", "eq", "ne", "lt", "le", "gt", "ge", "copysign", "xlogy", "multiply", "subtract",
                 "divide", "greater", "less", "not_equal", "less_equal", "greater_equal"):
        function = getattr(t, name)
        yield f"{name} tensor", lambda f=function: f(x, y)
        yield f"{name} number", lambda f=function: f(x, 2)
        if hasattr(x, name + "_") and name != "rsub":
            method = name + "_"
            yield f"{method} tensor", lambda m=method: getattr(x.clone().double(), m)(y.double())
            yield f"{method} number", lambda m=method: getattr(x.clone().double(), m)(2)
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"):
        function = getattr(t, name)
        yield f"{name} tensor", lambda f=function: f(i, i)
        yield f"{name} number", lambda f=function: f(i, 2)
        yield f"{name} number first", lambda f=function: f(2, i)
    yield "add out", lambda: t.add(x, y, out=t.empty(2, 3))
    yield "operators", lambda: (x + 1, 1 + x, x - 1, 1 - x, x * 2, x / 2, 2 / x, x ** 2, 2 ** x, x % 2, x // 2, -x)
    yield "operators of tensors", lambda: (x + y, x - y, x * y, x / y, x ** y, x % y, x // y, x < y, x == y)
    yield "operators of integers", lambda: (i & 1, i | 1, i ^ 1, i << 1, i >> 1, i & i, i | i, i ^ i, ~b, b & b)
    yield "div mode", lambda: (t.div(x, y, rounding_mode="floor"), t.div(x, 2, rounding_mode="trunc"))
    for name in ("sum", "mean", "amax", "all", "any", "logsumexp", "argmax", "argmin", "prod", "max", "min", "median",
                 "std", "var", "cumsum", "cumprod", "softmax", "log_softmax", "sort", "argsort", "nansum", "std_mean",
                 "var_mean", "count_nonzero", "norm", "unbind", "squeeze", "mode", "nanmean", "nanmedian"):
        function = getattr(t, name)
        if name not in ("logsumexp", "cumsum", "cumprod", "softmax", "log_softmax"):
            yield f"{name}", lambda f=function: f(x)
        yield f"{name} dim", lambda f=function: f(x, dim=1)
        if name in ("sum", "mean", "std", "var", "max", "any", "all", "norm"):
            yield f"{name} dim keepdim", lambda f=function: f(x, dim=1, keepdim=True)
        if name in ("sum", "mean", "std", "var", "amax", "any", "all", "count_nonzero", "squeeze"):
            yield f"{name} dims", lambda f=function: f(x, dim=(0, 1))
    yield "std correction", lambda: (x.std(1, correction=0), x.var(correction=0), x.std(1), x.std())
    yield "unbiased", lambda: (x.var(1, unbiased=False), x.std(False))
    yield "max other", lambda: (t.max(x, y), t.min(x, y), t.maximum(x, y))
    yield "sum dtype", lambda: x.sum(dtype=t.float64)
    yield "clamp", lambda: (x.clamp(0, 1), x.clamp(min=x), t.clamp_min(x, 0), t.clamp_max(x, y), x.clone().clamp_(0, 1))
    yield "where", lambda: (t.where(b, x, y), t.where(b, x, 0.0), t.where(b, 0.0, x), t.where(b, 1.0, 0.0))
    yield "masked_fill", lambda: (x.masked_fill(b, 0.0), x.masked_fill(b, t.tensor(1.0)), x.clone().masked_fill_(b, 1))
    yield "fill", lambda: (x.clone().fill_(1), x.clone().fill_(t.tensor(1.0)), x.clone().zero_())
    yield "index", lambda: (x[index], x[0], x[:, 1:2], x[b], x[None], x[..., 0], x[0, 1], x[index, index])
    yield "index put", lambda: x.clone().__setitem__(index, 0.0)
    yield "set slice", lambda: x.clone().__setitem__((0, slice(1, 2)), 0.0)
    yield "index_fill", lambda: (x.index_fill(0, index, 1.0), x.index_add(0, index, y), x.index_select(0, index))
    yield "scatter", lambda: (x.scatter(1, i, y), x.scatter(1, i, 2.0), x.gather(1, i), x.scatter_add(1, i, y))
    yield "scatter_reduce", lambda: x.scatter_reduce(1, i, y, "sum")
    yield "join", lambda: (t.cat([x, y]), t.stack([x, y]), t.hstack([x, y]), t.vstack([x, y]))
    yield "split", lambda: (x.split(1), x.split([1, 1]), x.chunk(2), t.tensor_split(x, 2), x.unbind(0))
    yield "views", lambda: (x.view(6), x.view(t.int32), x.reshape(6), x.transpose(0, 1), x.t(), x.T, x.permute(1, 0))
    yield "more views", lambda: (x.flatten(), x.unsqueeze(0), x.expand(2, 3), x.select(0, 1), x.narrow(0, 0, 1))
    yield "movedim", lambda: (x.movedim(0, 1), x.unflatten(1, (3, 1)), x.diagonal())
    yield "repeat", lambda: (x.repeat(2, 2), x.flip(0), x.roll(1), x.tile((2,)))
    yield "repeat_interleave", lambda: x.repeat_interleave(2)
    yield "to", lambda: (x.to(t.float64), x.double(), x.to("cpu"), x.to(x), x.long(), x.float(), x.type_as(i))
    yield "to more", lambda: (x.to("cpu", t.float64), x.to(t.float64, copy=True), x.to(device="cpu", dtype=t.int64))
    yield "copy", lambda: (x.clone(), x.clone().copy_(y), x.contiguous(), x.detach(), x.sum().item())
    yield "arange", lambda: (t.arange(5), t.arange(1, 5), t.arange(1, 5, 2), t.arange(0, 6, 2), t.arange(3.0))
    yield "linspace", lambda: (t.linspace(0, 1, 3), t.logspace(0, 1, 3), t.eye(3), t.eye(3, 2))
    yield "zeros", lambda: (t.zeros(3), t.ones(3), t.empty(3), t.full((3,), 1.0), t.zeros_like(x), t.full_like(x, 1))
    yield "like", lambda: (t.empty_like(x), t.rand_like(x), t.randn_like(x), x.new_zeros(3), x.new_ones(3),
                           x.new_empty(3))
    yield "random", lambda: (t.rand(3), t.randn(3), t.randint(5, (3,)), t.randint(1, 5, (3,)), t.randperm(3))
    yield "random in place", lambda: (x.clone().normal_(), x.clone().uniform_(), x.clone().bernoulli_(0.5),
                                      t.bernoulli(x), x.clone().exponential_(), x.clone().random_(1, 5))
    for name, shape in (("rand", (3,)), ("randn", (3,)), ("randperm", 3)):
        yield f"{name} generator", lambda n=name, s=shape: getattr(t, n)(s, generator=t.Generator())
    yield "randint generator", lambda: (t.randint(5, (3,), generator=t.Generator()),
                                        t.randint(1, 5, (3,), generator=t.Generator()))
    for name in ("hann", "hamming", "blackman", "bartlett", "kaiser"):
        yield f"{name}_window", lambda n=name: (getattr(t, n + "_window")(5), getattr(t, n + "_window")(5, False))
    yield "window's numbers", lambda: (t.hamming_window(5, False, 0.5), t.hamming_window(5, True, 0.5, 0.4),
                                       t.kaiser_window(5, False, 10.0))
    yield "multinomial", lambda: (t.multinomial(x, 1), t.normal(x, y), t.normal(0.0, 1.0, (2,)))
    yield "products", lambda: (x @ w.t(), x.mm(w.t()), t.addmm(w[:2, :1].expand(2, 4), x, w.t()), x.mv(w[0]),
                               w[0].dot(w[0]))
    yield "batches", lambda: (t.bmm(image[0], image[0]), t.einsum("ij,kj->ik", x, w),
                              t.baddbmm(image[0], image[0], image[0]))
    yield "linear", lambda: (F.linear(x, w), F.linear(x, w, t.ones(4)))
    yield "conv2d", lambda: (F.conv2d(image, kernel), F.conv2d(image, kernel, padding=1), F.max_pool2d(image, 2))
    yield "conv2d same", lambda: F.conv2d(image, kernel, padding="same")
    yield "conv_transpose", lambda: F.conv_transpose2d(image, t.ones(2, 3, 3, 3))
    yield "norms", lambda: (F.layer_norm(x, (3,)), F.batch_norm(x, t.zeros(3), t.ones(3), training=True),
                            F.normalize(x))
    yield "activations", lambda: (F.relu(x), F.gelu(x), F.silu(x), t.sigmoid(x), t.tanh(x), F.leaky_relu(x), F.elu(x))
    yield "more activations", lambda: (F.softmax(x, -1), F.log_softmax(x, -1), F.softplus(x), F.relu_(x.clone()))
    yield "losses", lambda: (F.mse_loss(x, y), F.cross_entropy(x, index), F.nll_loss(x, index), F.l1_loss(x, y))
    yield "bce", lambda: (F.binary_cross_entropy(x, x), F.binary_cross_entropy_with_logits(x, x))
    yield "dropout", lambda: (F.dropout(x), F.embedding(index, w), F.one_hot(index), F.pad(x, (1, 1)))
    yield "attention", lambda: F.scaled_dot_product_attention(image, image, image)
    yield "interpolate", lambda: (F.interpolate(image, scale_factor=2),
                                  F.interpolate(image, size=(3, 3), mode="bilinear"))
    yield "unary", lambda: (x.exp(), x.log(), x.sqrt(), x.abs(), x.sin(), x.floor(), x.round(), x.round(decimals=1))
    yield "triangles", lambda: (t.tril(x), t.triu(x), x.cumsum(0), x.topk(2), t.bincount(index), x.nonzero(),
                                x.unique())
    yield "tests", lambda: (t.isnan(x), t.isfinite(x), t.allclose(x, y), t.equal(x, y), t.logical_and(b, b), x.any())
    yield "lerp", lambda: (t.lerp(x, y, 0.5), t.lerp(x, y, x), t.addcmul(x, x, y), t.addcdiv(x, x, y))
    yield "searchsorted", lambda: (t.searchsorted(w[0], x), t.searchsorted(w[0], 0.5), t.bucketize(x, w[0]))
    yield "quantile", lambda: (x.quantile(0.5), x.quantile(t.tensor([0.5])), x.quantile(0.5, 1))


def recorded(library, function):
    """Of the call's own level: (name, overload), and the rows of key_averages for these."""
    config = library.profiler._ExperimentalConfig if library is not torch else torch._C._profiler._ExperimentalConfig
    library.manual_seed(1)
    with library.profiler.profile(activities=[library.profiler.ProfilerActivity.CPU],
                                  experimental_config=config(capture_overload_names=True)) as prof:
        function()
    top = [(e.name, e.overload_name) for e in prof.events() if e.cpu_parent is None and e.name.startswith("aten::")]
    rows = {(r.key, r.overload_name) for r in prof.key_averages(group_by_overload_name=True)}
    return top, rows & set(top)


class Peer:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.used = set()
        self.uncalled, self.unlike = 0, 0  # cases that one of them does not take in Python; that have no such event
        self.unnamed = []  # rows that Python has under another name

    def compare(self, what, ours, theirs, known):
        if ours == theirs:
            self.passed += 1
        elif what in known:
            self.skipped += 1
            self.used.add(what)
            print(f"skip {what}: {known[what]}")
        else:
            self.failed += 1
            print(f"FAIL {what}\n    torch {theirs}\n    ours  {ours}")

    def run_calls(self):
        for (what, mine), (_, other) in zip(calls(mindtorch_v2), calls(torch)):
            theirs, rows = recorded(torch, other)
            try:
                ours, our_rows = recorded(mindtorch_v2, mine)
            except (TypeError, AttributeError) as error:
                self.skipped += 1
                print(f"skip {what}: {error}")
                continue
            if [n for n, _ in ours] != [n for n, _ in theirs]:  # other ops: those of both, in order
                both = {n for n, _ in ours} & {n for n, _ in theirs}
                ours, theirs = sorted({e for e in ours if e[0] in both}), sorted({e for e in theirs if e[0] in both})
                our_rows, rows = our_rows & set(ours), rows & set(theirs)
                if not both:
                    self.skipped += 1
                    print(f"skip {what}: no op in common")
                    continue
            self.compare(what, ours, theirs, KNOWN)
            if ours == theirs:
                self.compare(f"{what}: key_averages", our_rows, rows, KNOWN)

    def run_row(self, name):
        """The cases of a row, through a function or a method of that name in both."""
        op, short = mt.ops()[name], name.split(".")[0]
        registered, _ = run_ops.cases_of(name)
        dtype = next((d for d in ("float32", "int64", "bool", "complex64") if d in registered.dtypes), None)
        places = [(lambda t: t.Tensor)] if short.endswith("_") else [
            lambda t: t, lambda t: t.Tensor, lambda t: t.nn.functional, lambda t: t.linalg, lambda t: t.special]
        place = next((p for p in places if hasattr(p(torch), short) and hasattr(p(mindtorch_v2), short)), None)
        if dtype is None or place is None:
            self.skipped += 1
            self.unnamed.append(name)
            return
        said = set()
        for item in self.items(op, registered, dtype):
            found = []
            arrays = layouts.map_arrays((item.args, item.kwargs), layouts.strip)
            for library in (mindtorch_v2, torch):
                args, kwargs = placed(library, arrays)
                try:
                    found.append(recorded(library, lambda: getattr(place(library), short)(*args, **kwargs))[0])
                except Exception:  # noqa: BLE001: the row's Python form has other arguments; torch_ops.py compares
                    found.append(None)
            if None in found:
                self.uncalled += 1
                continue
            ours, theirs = ([e for e in events if e[0] == "aten::" + short][:1] for events in found)
            if not ours or not theirs:
                self.unlike += 1
                continue
            if ours != theirs and (ours[0], theirs[0]) in said:
                self.failed += name not in KNOWN_ROWS
                self.skipped += name in KNOWN_ROWS
                continue
            said.add((ours[0], theirs[0]))
            self.compare(name, ours, theirs, KNOWN_ROWS)

    def items(self, op, registered, dtype):
        cases = run_ops.Runner(argparse.Namespace(seed=1, device="cpu"))
        for item in cases.items(op, registered, dtype, False):
            if not isinstance(item, opcases.Bad) and getattr(item, "note", "") != "made: large":
                yield item


def placed(library, value):
    """The case's arguments as tensors of the library."""
    if isinstance(value, np.ndarray):
        return library.from_numpy(np.array(value))
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return type(value)(placed(library, item) for item in value)
    if isinstance(value, dict):
        return {key: placed(library, item) for key, item in value.items()}
    if isinstance(value, str) and value in ("float32", "float64", "int64", "int32", "bool", "complex64"):
        return getattr(library, value)
    return value


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library", help="libmindtorch.so, for the table's rows and their cases")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    mt.open_library(options.library)
    run_ops.load(run_ops.FAMILIES)
    peer = Peer()
    peer.run_calls()
    for name in mt.ops():
        if name not in twin.ABSENT:
            peer.run_row(name)
    for what in (set(KNOWN) | set(KNOWN_ROWS)) - peer.used:
        peer.failed += 1
        print(f"FAIL a difference that is no more: {what}")
    peer.skipped += peer.uncalled + peer.unlike
    print(f"skip rows that Python has under another name: {' '.join(peer.unnamed)}")
    print(f"skip {peer.uncalled} cases that a function of the row's name does not take in either, and {peer.unlike} "
          "that show no op of the row's name in both")
    print(f"{peer.passed} passed, {peer.failed} failed, {peer.skipped} skipped")
    return 1 if peer.failed else 0


if __name__ == "__main__":
    sys.exit(main())
