# SPDX-License-Identifier: Apache-2.0
"""The memory timeline of the same training by torch and by ours: torch_memory.py FOLDER [--host] [--show] [--only TEXT]

Ours is mindtorch_v2; with --host it is stock torch under mtprof.torch.
An MLP, a CNN and a GPT with 4 to 200 parameter tensors, three optimizers, and windows that begin before the
optimizer has a state, after it has one, and between a backward pass and the next. Both libraries write
export_memory_timeline as JSON and raw; then are equal, byte for byte:

  - every category at the end of every step;
  - the most that parameters, optimizer state, gradients and inputs ever have, in the raw form and in the JSON;
  - each piece of memory that is a parameter, optimizer state, a gradient or an input: how many bytes, and
    whether it was there before, made, or freed.

What may differ, and why:

  - the most of temporaries, activations, autograd's own and the unknown: what an op needs inside itself depends
    on how it is computed. torch's mse_loss keeps the squares before it sums them, its convolution (oneDNN)
    re-orders weights and images, its sum over an expanded gradient makes that gradient whole; ours do not.
    What ops give to each other is compared: what is alive at the end of a step.
  - torch is asked for fused optimizers, as ours are. Its other forms compute with temporaries.
  - a step ends with zero_grad(): torch does not see reliably what becomes of gradients that are older than the
    window and freed in it (PRECEDING below shows that ours does).

With --host the ops are the same ones, so activations and the most of autograd's own memory are compared as well.
Temporaries and the unknown are not: memory that no op has as an input, as oneDNN's, is unknown to torch. To us it is a
temporary where one op allocates and frees it, and autograd's where the backward pass does.
"""
import argparse
import collections
import gzip
import json
import pathlib
import sys
import warnings

import torch

warnings.simplefilter("ignore")
CATEGORIES = ["parameter", "optimizer_state", "input", "temporary", "activation", "gradient", "autograd_detail",
              "unknown"]
EXACT = ["parameter", "optimizer_state", "input", "gradient"]
PREEXISTING, CREATE, CHANGE, DESTROY = 1, 2, 3, 4
MARK = 77773  # bytes of a tensor that nothing else has: where it comes and goes, a step ends
STEPS = 3


# ---- programs

def mlp(lib, layers):
    nn = lib.nn
    parts = []
    for _ in range(layers):
        parts += [nn.Linear(24, 24), nn.ReLU()]
    model = nn.Sequential(*parts)
    x, y = lib.randn(16, 24), lib.randn(16, 24)
    return model, lambda: nn.functional.mse_loss(model(x), y)


def cnn(lib, blocks):
    nn = lib.nn
    parts = []
    for i in range(blocks):
        parts += [nn.Conv2d(3 if i == 0 else 6, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU()]
    model = nn.Sequential(*parts, nn.Flatten(), nn.Linear(6 * 8 * 8, 10))
    x, y = lib.randn(4, 3, 8, 8), lib.arange(4)
    return model, lambda: nn.functional.cross_entropy(model(x), y)


def gpt(lib, layers, width=32, heads=4, length=12, words=50):
    nn, functional = lib.nn, lib.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attention, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            n = x.shape[0]
            parts = self.attention(self.norm_1(x)).split(width, dim=2)
            q, k, v = (p.view(n, length, heads, width // heads).transpose(1, 2) for p in parts)
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.project(y.transpose(1, 2).contiguous().view(n, length, width))
            return x + self.down(functional.gelu(self.up(self.norm_2(x))))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.word, self.place = nn.Embedding(words, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

        def forward(self, tokens):
            x = self.word(tokens) + self.place(lib.arange(length))
            return self.head(self.norm(self.blocks(x)))

    model = Gpt()
    tokens = lib.arange(2 * length).reshape(2, length)
    return model, lambda: functional.cross_entropy(model(tokens).view(-1, words), tokens.view(-1))


OPTIMIZERS = {"sgd": ("SGD", dict(lr=0.01, momentum=0.9)), "adamw": ("AdamW", dict(lr=0.001)),
              "amsgrad": ("Adam", dict(lr=0.001, amsgrad=True))}
WINDOWS = ("first", "later", "scheduled")
SIZES = {mlp: (2, 5, 20, 100), cnn: (1, 4, 12, 49), gpt: (1, 3, 16)}


def cases(host):
    """Every window and optimizer with the smallest models, one of each with the others: a step with 200 tensors
    and stacks takes torch seconds. With --host one optimizer with the smallest model of a kind."""
    turn = 0
    for program, sizes in SIZES.items():
        for size in sizes[:1] if host else sizes:
            for window in WINDOWS:
                turn += 1
                all_of_them = size == sizes[0] and not host
                for optimizer in list(OPTIMIZERS) if all_of_them else [list(OPTIMIZERS)[turn % len(OPTIMIZERS)]]:
                    if all_of_them or host or size < sizes[-1] or window == WINDOWS[1]:
                        yield program, size, optimizer, window


# ---- what is compared

class Timeline:
    """What the raw form says: states at the end of steps, the most of each category, pieces of memory."""

    def __init__(self, raw):
        now = [0] * len(CATEGORIES)
        self.most = [0] * len(CATEGORIES)
        self.ends, self.pieces = [], collections.Counter()
        for _time, action, size, category in raw:
            if abs(size) == MARK:
                if action == CREATE:
                    self.ends.append(dict(zip(CATEGORIES, now)))
                continue
            now[category] += size
            if action != CHANGE or size > 0:
                self.most = [max(a, b) for a, b in zip(self.most, now)]
            if action != CHANGE:
                self.pieces[(action, size, CATEGORIES[category])] += 1
        self.last = dict(zip(CATEGORIES, now))

    def most_of(self, names):
        return {name: self.most[CATEGORIES.index(name)] for name in names}

    def pieces_of(self, names):
        return {piece: n for piece, n in sorted(self.pieces.items()) if piece[2] in names}


def mark(lib):
    lib.empty(MARK, dtype=lib.uint8)


def profile(profiler, body, schedule=None):
    kw = {} if schedule is None else {"schedule": schedule}
    activities = [profiler.ProfilerActivity.CPU]
    with profiler.profile(activities=activities, record_shapes=True, profile_memory=True, with_stack=True,
                          **kw) as p:
        body(p)
    return p


def export(p, folder, name):
    plot, raw = folder / f"{name}.json", folder / f"{name}.raw.json.gz"
    p.export_memory_timeline(str(plot), device="cpu")
    p.export_memory_timeline(str(raw), device="cpu")
    with gzip.open(raw) as f:
        return Timeline(json.load(f)), json.loads(plot.read_text())


def train(lib, profiler, program, size, optimizer, window):
    """Returns the profile and the bytes of the parameters."""
    lib.manual_seed(0)
    model, forward = program(lib, size)
    name, settings = OPTIMIZERS[optimizer]
    opt = getattr(lib.optim, name)(model.parameters(), fused=True, **settings)

    def step():
        loss = forward()
        loss.backward()
        opt.step()
        opt.zero_grad()
        del loss
        mark(lib)

    if window != "first":
        step()
    schedule = None
    if window == "scheduled":
        schedule = profiler.schedule(wait=1, warmup=1, active=STEPS, repeat=1)

    def body(p):
        for _ in range(STEPS + (2 if schedule is not None else 0)):
            step()
            p.step()

    p = profile(profiler, body, schedule)
    parameters = list(model.parameters())
    return p, sum(q.numel() * 4 for q in parameters), len(parameters)


class Score:
    def __init__(self, show):
        self.passed = self.failed = 0
        self.show = show

    def check(self, what, ours, theirs):
        if ours == theirs:
            self.passed += 1
            if self.show:
                print(f"equal {what}: {ours}")
            return
        self.failed += 1
        print(f"FAILED {what}\n    torch {theirs!r}\n    ours  {ours!r}")


def sides(host):
    """Who runs the program, and who records it."""
    if host:
        import mtprof.torch
        return {"torch": (torch, torch.profiler), "ours": (torch, mtprof.torch)}
    import mindtorch_v2
    return {"torch": (torch, torch.profiler), "ours": (mindtorch_v2, mindtorch_v2.profiler)}


def compare(score, folder, both, exact, program, size, optimizer, window):
    found = {}
    for name, (lib, profiler) in both.items():
        p, total, tensors = train(lib, profiler, program, size, optimizer, window)
        found[name] = export(p, folder, name)
        cut = name == "ours" and "cut" in str(p.health())
    what = f"{program.__name__} {tensors} tensors, {optimizer}, {window}"
    (theirs, theirs_plot), (ours, ours_plot) = found["torch"], found["ours"]
    score.check(f"{what}: nothing was cut", cut, False)
    score.check(f"{what}: parameters are parameters", ours.most_of(["parameter"]), {"parameter": total})
    score.check(f"{what}: steps", len(ours.ends), STEPS)
    for i in range(STEPS):
        score.check(f"{what}: end of step {i}", ours.ends[i], theirs.ends[i])
    score.check(f"{what}: most", ours.most_of(exact), theirs.most_of(exact))
    pieces = [category for category in exact if category != "autograd_detail"]
    score.check(f"{what}: pieces", ours.pieces_of(pieces), theirs.pieces_of(pieces))
    for category in exact:
        column = CATEGORIES.index(category) + 1
        score.check(f"{what}: most {category} in the JSON", max(row[column] for row in ours_plot[1]),
                    max(row[column] for row in theirs_plot[1]))
    peaks = [max(row[i + 1] for row in ours_plot[1]) for i in range(len(CATEGORIES) - 1)]  # the marks are unknown
    score.check(f"{what}: the JSON has the raw form's peaks", peaks, ours.most[:-1])


def preceding(score, folder, lib, profiler):
    """Gradients that are older than the window and freed in it: what they are, and that they end."""
    for layers in (2, 100):
        lib.manual_seed(0)
        model, forward = mlp(lib, layers)
        opt = lib.optim.AdamW(model.parameters(), lr=0.001, fused=True)

        def step():
            loss = forward()
            opt.zero_grad()
            loss.backward()
            opt.step()

        step()
        p = profile(profiler, lambda p: step())
        timeline, _ = export(p, folder, "preceding")
        total = sum(q.numel() * 4 for q in model.parameters())
        state = 2 * total + 4 * 2 * layers
        what = f"mlp {2 * layers} tensors, gradients from before"
        score.check(f"{what}: most", timeline.most_of(EXACT),
                    {"parameter": total, "optimizer_state": state, "input": 2 * 16 * 24 * 4, "gradient": total})
        score.check(f"{what}: at the end", timeline.last,
                    {"parameter": total, "optimizer_state": state, "input": 2 * 16 * 24 * 4, "temporary": 0,
                     "activation": 0, "gradient": total, "autograd_detail": 0, "unknown": 0})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--host", action="store_true", help="ours is stock torch under mtprof.torch")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--only", default="", help='a part of "mlp 20 adamw later"')
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    score = Score(arguments.show)
    both = sides(arguments.host)
    exact = EXACT + ["activation", "autograd_detail"] if arguments.host else EXACT
    for program, size, optimizer, window in cases(arguments.host):
        if arguments.only in f"{program.__name__} {size} {optimizer} {window}":
            compare(score, arguments.folder, both, exact, program, size, optimizer, window)
    preceding(score, arguments.folder, *both["ours"])
    print(f"{score.passed} passed, {score.failed} failed, 0 skipped")
    return 1 if score.failed else 0


if __name__ == "__main__":
    sys.exit(main())
