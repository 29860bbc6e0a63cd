#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the same models in our library and in real torch: torch_models.py LIBRARY MTPROF FOLDER

An MLP, a CNN and a GPT of two layers begin with the same weights in float64 and are trained for some
steps with each optimizer. Losses, clipped norms, parameters and buffers must agree to 1e-9.
Then one step of each is profiled by both: the scopes that users know must nest in the same way and have the
same FLOPs; the trace of ours is FOLDER/<model>.mtt. Plumbing (PLUMBING) and the insides of some ops
(OPAQUE) are not compared. The last line: N passed, N failed, N skipped.
"""
import ctypes as c
import itertools
import json
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

import torch_twin as twin  # first: it finds tests/ops

import mt  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

STEPS = 5
TOLERANCE = dict(rtol=1e-9, atol=1e-11)
ALLOCATING = {"aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty_strided",
              "aten::zeros", "aten::zeros_like", "aten::zero_", "aten::fill_", "aten::ones_like",
              "aten::full_like", "aten::new_zeros", "aten::resize_"}
VIEWS = {"aten::t", "aten::transpose", "aten::as_strided", "aten::view", "aten::reshape",
         "aten::_reshape_alias", "aten::expand", "aten::detach", "detach", "aten::unsqueeze",
         "aten::squeeze", "aten::resolve_conj", "aten::resolve_neg", "aten::alias"}
COPIES = {"aten::copy_", "aten::clone", "aten::contiguous", "aten::to", "aten::_to_copy"}
PLUMBING = ALLOCATING | VIEWS | COPIES | {
    "PyTorch Profiler (0)", "aten::_batch_norm_impl_index", "aten::embedding_backward",
    "aten::_unsafe_view"}
# What happens inside is each library's own affair.
OPAQUE = {"aten::relu", "aten::convolution", "aten::convolution_backward", "aten::_adaptive_avg_pool2d",
          "aten::embedding", "aten::split"}
ENGINE = "autograd::engine::evaluate_function: "


# ---- one program text for both ----------------------------------------------------------------


class Ours:
    name = "ours"

    @staticmethod
    def tensor(array, parameter=False):
        made = mt.tensor(array)
        made.requires_grad = parameter
        return made

    @staticmethod
    def call(name, *args, **kwargs):
        return mt.call(name, *args, **kwargs)

    @staticmethod
    def numpy(tensor):
        return tensor.numpy()


class Theirs:
    name = "torch"

    @staticmethod
    def tensor(array, parameter=False):
        return torch.from_numpy(array.copy()).requires_grad_(parameter)

    @staticmethod
    def call(name, *args, **kwargs):
        return twin.call_theirs(mt.ops()[name], args, kwargs)

    @staticmethod
    def numpy(tensor):
        return tensor.detach().numpy()


class Model:
    """Shapes of parameters, data, and loss(call, parameters, data, buffers)."""

    def __init__(self, shapes, loss, data, buffers=()):
        self.shapes, self.loss, self.data, self.buffers = shapes, loss, data, buffers

    def arrays(self, seed):
        rng = np.random.default_rng(seed)
        parameters = [rng.normal(size=shape) * (0.3 if len(shape) > 1 else 0.1)
                      for shape in self.shapes]
        return parameters, self.data(rng), [np.full(shape, value) for shape, value in self.buffers]


def mlp_loss(call, p, data, buffers):
    del buffers
    x = call("relu", call("linear", data[0], p[0], p[1]))
    x = call("relu", call("linear", x, p[2], p[3]))
    return call("cross_entropy_loss", call("linear", x, p[4], p[5]), data[1])


def cnn_loss(call, p, data, buffers):
    x = call("conv2d", data[0], p[0], p[1], [1, 1], [1, 1])
    x = call("batch_norm", x, p[2], p[3], buffers[0], buffers[1], True, 0.1, 1e-5)
    x = call("max_pool2d", call("relu", x), [2, 2])
    x = call("relu", call("conv2d", x, p[4], p[5], [2, 1], [1, 0], [1, 1], 2))
    x = call("flatten", call("adaptive_avg_pool2d", x, [2, 1]), 1)
    return call("cross_entropy_loss", call("linear", x, p[6], p[7]), data[1])


BATCH, LENGTH, WIDTH, HEADS, VOCABULARY = 2, 5, 8, 2, 11


def block(call, p, x):
    """Attention and an MLP, each after a norm; p: 12 parameters."""

    def heads(t):
        t = call("view", t, [BATCH, LENGTH, HEADS, WIDTH // HEADS])
        return call("transpose", t, 1, 2)

    y = call("layer_norm", x, [WIDTH], p[0], p[1])
    q, k, v = call("split", call("linear", y, p[2], p[3]), WIDTH, 2)
    y = call("scaled_dot_product_attention", heads(q), heads(k), heads(v), is_causal=True)
    y = call("reshape", call("transpose", y, 1, 2), [BATCH, LENGTH, WIDTH])
    x = call("add", x, call("linear", y, p[4], p[5]))
    y = call("layer_norm", x, [WIDTH], p[6], p[7])
    y = call("gelu", call("linear", y, p[8], p[9]), approximate="tanh")
    return call("add", x, call("linear", y, p[10], p[11]))


BLOCK = ((WIDTH,), (WIDTH,), (3 * WIDTH, WIDTH), (3 * WIDTH,), (WIDTH, WIDTH), (WIDTH,),
         (WIDTH,), (WIDTH,), (4 * WIDTH, WIDTH), (4 * WIDTH,), (WIDTH, 4 * WIDTH), (WIDTH,))


def gpt_loss(call, p, data, buffers):
    """The first parameter is the embedding of tokens and the last layer."""
    del buffers
    x = call("add", call("embedding", p[0], data[0]), p[1])
    x = block(call, p[2:14], x)
    x = block(call, p[14:26], x)
    x = call("linear", call("layer_norm", x, [WIDTH], p[26], p[27]), p[0])
    return call("cross_entropy_loss", call("view", x, [BATCH * LENGTH, VOCABULARY]),
                call("view", data[1], [BATCH * LENGTH]))


def tokens(rng):
    return [rng.integers(0, VOCABULARY, (BATCH, LENGTH)) for _ in range(2)]


MODELS = {
    "mlp": Model(((16, 6), (16,), (12, 16), (12,), (4, 12), (4,)), mlp_loss,
                 lambda rng: [rng.normal(size=(10, 6)), rng.integers(0, 4, 10)]),
    "cnn": Model(((4, 3, 3, 3), (4,), (4,), (4,), (6, 2, 3, 2), (6,), (5, 12), (5,)), cnn_loss,
                 lambda rng: [rng.normal(size=(3, 3, 8, 8)), rng.integers(0, 5, 3)],
                 (((4,), 0.0), ((4,), 1.0))),
    "gpt": Model(((VOCABULARY, WIDTH), (LENGTH, WIDTH)) + 2 * BLOCK + ((WIDTH,), (WIDTH,)), gpt_loss,
                 tokens),
}


# ---- optimizers -------------------------------------------------------------------------------


class Options(c.Structure):
    _fields_ = [("struct_size", c.c_uint32), ("kind", c.c_uint32)] + [
        (name, c.c_double) for name in ("lr", "weight_decay", "momentum", "dampening", "beta1", "beta2",
                                        "alpha", "eps", "lr_decay", "initial_accumulator")] + [
        (name, c.c_bool) for name in ("nesterov", "amsgrad", "centered", "maximize")]


KINDS = ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad")  # mt_optimizer_kind
OPTIMIZERS = {
    "SGD, momentum": ("SGD", dict(lr=0.05, momentum=0.9, weight_decay=0.01, nesterov=True)),
    "AdamW": ("AdamW", dict(lr=0.01, betas=(0.8, 0.95), weight_decay=0.1)),
    "RMSprop": ("RMSprop", dict(lr=0.005, alpha=0.9, momentum=0.5, centered=True)),
    "Adagrad": ("Adagrad", dict(lr=0.05, lr_decay=0.1, weight_decay=0.01,
                                initial_accumulator_value=0.2)),
    "Adam, amsgrad": ("Adam", dict(lr=0.01, weight_decay=0.02, amsgrad=True)),
}


class OurOptimizer:
    def __init__(self, kind, parameters, options):
        lib = mt.library()
        lib.mt_optimizer_new.argtypes = [c.POINTER(Options), c.POINTER(c.c_void_p), c.c_size_t,
                                         c.POINTER(c.c_void_p)]
        for name in ("free", "step", "zero_grad"):
            getattr(lib, f"mt_optimizer_{name}").argtypes = [c.c_void_p]
        lib.mt_clip_grad_norm.argtypes = [c.POINTER(c.c_void_p), c.c_size_t, c.c_double, c.c_double,
                                          c.POINTER(c.c_double)]
        given = Options(struct_size=c.sizeof(Options))
        lib.mt_optimizer_get_defaults(KINDS.index(kind), c.byref(given))
        for name, value in options.items():
            if name == "betas":
                given.beta1, given.beta2 = value
            else:
                setattr(given, name.removesuffix("_value"), value)
        self.handles = (c.c_void_p * len(parameters))(*[p.handle for p in parameters])
        self.handle = c.c_void_p()
        mt.check(lib.mt_optimizer_new(c.byref(given), self.handles, len(parameters),
                                      c.byref(self.handle)))

    def zero_grad(self):
        mt.check(mt.library().mt_optimizer_zero_grad(self.handle))

    def step(self):
        mt.check(mt.library().mt_optimizer_step(self.handle))

    def clip(self, norm):
        total = c.c_double()
        mt.check(mt.library().mt_clip_grad_norm(self.handles, len(self.handles), norm, 2.0,
                                                c.byref(total)))
        return total.value

    def __del__(self):
        mt.library().mt_optimizer_free(self.handle)


class TheirOptimizer:
    def __init__(self, kind, parameters, options):
        self.parameters = parameters
        self.optimizer = getattr(torch.optim, kind)(parameters, **options)
        self.zero_grad, self.step = self.optimizer.zero_grad, self.optimizer.step

    def clip(self, norm):
        return torch.nn.utils.clip_grad_norm_(self.parameters, norm).item()


def open_model(side, model, seed):
    parameters, data, buffers = model.arrays(seed)
    return ([side.tensor(a, True) for a in parameters], [side.tensor(a) for a in data],
            [side.tensor(a) for a in buffers])


def train(side, model, kind, options, seed):
    """All numbers that must agree: losses, norms, parameters, buffers."""
    parameters, data, buffers = open_model(side, model, seed)
    optimizer = (OurOptimizer if side is Ours else TheirOptimizer)(kind, parameters, options)
    numbers = []
    for _ in range(STEPS):
        loss = model.loss(side.call, parameters, data, buffers)
        optimizer.zero_grad()
        loss.backward()
        numbers += [side.numpy(loss), np.asarray(optimizer.clip(1.0))]
        optimizer.step()
    return numbers + [side.numpy(t) for t in parameters + buffers]


def check_training(name, model, seed):
    """Yields (what, None or how it differs)."""
    for title, (kind, options) in OPTIMIZERS.items():
        ours = train(Ours, model, kind, options, seed)
        theirs = train(Theirs, model, kind, options, seed)
        wrong = [i for i, (a, b) in enumerate(zip(ours, theirs))
                 if not np.allclose(a, b, **TOLERANCE)]
        text = None
        if wrong or len(ours) != len(theirs) or not ours[0] > ours[2 * STEPS - 2]:
            text = (f"numbers {wrong} of {len(ours)} (loss and norm of each step, parameters, buffers) "
                    f"differ; losses {[float(a) for a in ours[:2 * STEPS:2]]}, "
                    f"torch's {[float(a) for a in theirs[:2 * STEPS:2]]}")
        yield f"{name}, {title}", text


# ---- profiles ---------------------------------------------------------------------------------


class Config(c.Structure):
    _fields_ = [("struct_size", c.c_uint32), ("policy", c.c_uint32), ("path", c.c_char_p),
                ("buffer_bytes", c.c_uint64), ("ring_ns", c.c_uint64), ("wants", c.c_uint64),
                ("paused", c.c_uint32), ("reserved", c.c_uint32), ("on_warning", c.c_void_p),
                ("user", c.c_void_p), ("spill_directory", c.c_char_p)]


WANTS = 1 << 0 | 1 << 1 | 1 << 4 | 1 << 9  # ops, scopes, inputs, FLOPs


def one_step(side, model, optimizer_class, options):
    parameters, data, buffers = open_model(side, model, 1)
    optimizer = optimizer_class("SGD", parameters, dict(lr=0.1, momentum=0.9, **options))

    def step():
        loss = model.loss(side.call, parameters, data, buffers)
        loss.backward()
        optimizer.step()

    step()  # momentum buffers are there now
    optimizer.zero_grad()
    return step


def nest(spans):
    """Paths "outer > inner" of spans (start, end, name), in order, without what is not compared."""
    paths, stack = [], []  # of (end, path)
    for start, end, name in sorted(spans, key=lambda s: (s[0], -s[1])):
        while stack and start >= stack[-1][0]:
            stack.pop()
        outer = stack[-1][1] if stack else ()
        if name in PLUMBING or (outer and outer[-1] in OPAQUE):
            continue
        name = name.replace("UnsafeViewBackward0", "ViewBackward0")  # a view by either name
        if outer and outer[0].startswith(ENGINE):
            if name == "aten::sum":  # of what was broadcast: torch next to the node, ours in it
                outer = outer[:1]
            elif name == "aten::add_" and len(outer) == 1:  # gradients that meet
                name = "aten::add"
        paths.append(" > ".join(outer + (name,)))
        stack.append((end, outer + (name,)))
    return paths


def profile_ours(library, mtprof, path, step):
    lib = c.CDLL(str(library))
    lib.mtprof_session_start.argtypes = [c.POINTER(Config), c.POINTER(c.c_void_p)]
    for name in ("stop", "close"):
        getattr(lib, f"mtprof_session_{name}").argtypes = [c.c_void_p]
    config = Config(struct_size=c.sizeof(Config), path=str(path).encode(), wants=WANTS)
    session = c.c_void_p()
    assert lib.mtprof_session_start(c.byref(config), c.byref(session)) == 0
    step()
    assert lib.mtprof_session_stop(session) == 0
    assert lib.mtprof_session_close(session) == 0

    trace = path.with_suffix(".json")
    subprocess.run([mtprof, "export", "chrome", "-o", trace, path], check=True, capture_output=True)
    events = [e for e in json.loads(trace.read_text())["traceEvents"] if e.get("ph") == "X"]
    spans = [(e["ts"], e["ts"] + e["dur"], e["name"]) for e in events]
    report = subprocess.run([mtprof, "report", "--format", "json", path], check=True,
                            capture_output=True).stdout
    return nest(spans), {row["key"]: row["flops"] for row in json.loads(report)["rows"] if row["flops"]}


def profile_theirs(step):
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_flops=True) as prof:
        step()
    events = [e for e in prof.events() if not e.name.startswith("ProfilerStep")]
    spans = [(e.time_range.start, e.time_range.end, e.name) for e in events]
    return nest(spans), {e.key: e.flops for e in prof.key_averages() if e.flops}


def check_profile(name, library, mtprof, folder):
    """Yields (what, None or how it differs)."""
    ours, flops = profile_ours(Path(library).with_name("libmtprof.so"), mtprof,
                               Path(folder) / f"{name}.mtt",
                               one_step(Ours, MODELS[name], OurOptimizer, {}))
    theirs, their_flops = profile_theirs(one_step(Theirs, MODELS[name], TheirOptimizer,
                                                  dict(fused=True)))
    a, b = Counter(ours), Counter(theirs)
    text = None
    if a != b:
        text = "".join(f"\n  only ours, {n} times: {path}" for path, n in (a - b).items())
        text += "".join(f"\n  only torch, {n} times: {path}" for path, n in (b - a).items())
    yield f"scopes of {name}, {len(ours)}", text
    tops = [[path for path in paths if " > " not in path and path != ENGINE + "ViewBackward0"]
            for paths in (ours, theirs)]
    yield f"order of {name}", None if tops[0] == tops[1] else f"{tops[0]}, torch's {tops[1]}"
    if name == "gpt":  # gradients that meet: torch's new tensor counts, our in-place addition does not
        flops["aten::add"] = their_flops["aten::add"] = 0
    yield f"FLOPs of {name}", None if flops == their_flops else f"{flops}, torch's {their_flops}"


def main():
    library, mtprof, folder = sys.argv[1:4]
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    mt.open_library(library)
    passed = failed = 0
    checks = [check_training(name, model, 1) for name, model in MODELS.items()]
    checks += [check_profile(name, library, mtprof, folder) for name in MODELS]
    for what, text in itertools.chain(*checks):
        if text is None:
            passed += 1
        else:
            failed += 1
            print(f"FAIL {what}: {text}", flush=True)
    if mt.tensors_alive() != 0:
        failed += 1
        print(f"FAIL {mt.tensors_alive()} tensors were not given back")
    print(f"{len(MODELS)} models, {len(OPTIMIZERS)} optimizers, {STEPS} steps each")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
