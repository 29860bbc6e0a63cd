# SPDX-License-Identifier: Apache-2.0
"""Stock PyTorch profiled by torch.profiler and by mtprof.torch: torch_host.py FOLDER [--show]

The same programs run under both, one after the other: an MLP, a CNN and a GPT with optimizers, a model of many
small autograd nodes and custom Functions, ops with every kind of input, a DataLoader with a worker, several
threads, and a compiled function where a C++ compiler is there. Compared for each event in its order on its
thread: name, depth, scope, shapes, concrete inputs, sequence number, forward thread, FLOPs, memory; in the
Chrome traces categories, dtypes, strides and the arrows from forward to backward; then the rows of
key_averages() and their memory.

What is left out, and why:
  times            they differ from run to run
  no strides       where no tensor of an op has strides (sparse ones) torch's trace has empty ones, ours has none;
                   torch 2.7 and 2.8 have no function that tells whether a batch of vmap has any: none in ours
  ids              sequence numbers and threads are compared as differences from the run's first one: torch
                   counts on from program to program
  texts            ours has them in the concrete inputs, torch has none: shown as None here
  optional tensors a list of them is a TensorList with its shapes in ours, nothing in torch's (aten::index)
  keywords         torch.compile marks "## Call CompiledFxGraph" as a user's scope by a keyword value, which is not
                   among the inputs that an observer can read: an op in ours, an annotation in torch's
  memory, threads  torch knows the allocations of the thread that started it and of autograd's alone
  memory, old ones events() of torch 2.7 to 2.10 gives some allocations to another op than torch's own trace does,
                   to another one in each run: where the two differ ours is compared with the trace
  cudaDeviceSynchronize and other events of torch's own tracer, "PyTorch Profiler (0)": they are not the program's
"""
import argparse
import collections
import gzip
import json
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import warnings

warnings.simplefilter("ignore")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch  # noqa: E402
import torch.profiler  # noqa: E402

import mtprof.torch  # noqa: E402

OWN = {"PyTorch Profiler (0)", "cudaDeviceSynchronize", "Activity Buffer Request"}
MARKED = "## Call CompiledFxGraph"
TELLS_LAYOUT = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 9)
FLAGS = {"record_shapes": True, "profile_memory": True, "with_flops": True}


class Score:
    def __init__(self, show):
        self.passed = self.failed = self.skipped = 0
        self.show = show

    def check(self, what, ours, theirs):
        if ours == theirs:
            self.passed += 1
            return True
        self.failed += 1
        if self.failed <= 40 or self.show:
            print(f"FAILED {what}\n    torch {theirs!r}\n    ours  {ours!r}")
        return False

    def note(self, text):
        print(f"note {text}")

    def skip(self, what, why):
        self.skipped += 1
        print(f"skipped {what}: {why}")


# ---- programs: a function that makes what is trained, and one step of it ----


def mlp():
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Dropout(0.1),
                                torch.nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, y = torch.randn(8, 16), torch.randint(0, 4, (8,))

    def step():
        with torch.profiler.record_function("forward pass"):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return step


def cnn():
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1, stride=2), torch.nn.BatchNorm2d(8),
                                torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.AdaptiveAvgPool2d(1),
                                torch.nn.Flatten(), torch.nn.Linear(8, 5))
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    x, y = torch.randn(2, 3, 16, 16), torch.randint(0, 5, (2,))

    def step():
        torch.nn.functional.nll_loss(torch.log_softmax(model(x), -1), y).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
    return step


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(width, heads, batch_first=True)
        self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(),
                                       torch.nn.Linear(4 * width, width))

    def forward(self, x):
        normed = self.first(x)
        x = x + self.attention(normed, normed, normed, need_weights=False)[0]
        return x + self.mlp(self.second(x))


def gpt():
    words, width = 50, 32
    embedding, head = torch.nn.Embedding(words, width), torch.nn.Linear(width, words, bias=False)
    model = torch.nn.Sequential(embedding, Block(width, 4), Block(width, 4), torch.nn.LayerNorm(width), head)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    tokens = torch.randint(0, words, (2, 9))

    def step():
        logits = model(tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, words), tokens[:, 1:].reshape(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return step


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3

    @staticmethod
    def backward(ctx, grad):
        return 3 * grad * ctx.saved_tensors[0] ** 2


def autograd():
    x = torch.randn(5, 7, requires_grad=True)

    def step():
        total = x
        for index in range(6):
            total = torch.sin(total) * (index + 1.5) + Cube.apply(total)
        total.sum().backward(retain_graph=True)
        torch.autograd.grad((total * total).mean(), x, create_graph=True)[0].sum().backward()
    return step


def inputs():
    x = torch.arange(24.0).reshape(4, 6)
    pieces = [torch.ones(2, 3, dtype=kind) for kind in (
        torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.int16, torch.int32, torch.uint8, torch.bool,
        torch.complex64, torch.complex128)]
    many = [torch.ones(2) for _ in range(40)]

    def step():
        torch.cat([x, x, x], 1)
        torch.stack(many)
        torch._foreach_add(many, 1.0)
        torch.div(x, 2.5, rounding_mode="trunc")
        torch.einsum("ij,kj->ik", x, x)
        x.t()[1:, ::2].contiguous().view(-1)
        torch.clamp(x, min=0.5, max=2)
        x.to(torch.float64, non_blocking=True)
        torch.ones(2, dtype=torch.complex64) * (1 + 2j)
        torch.nn.functional.interpolate(x.reshape(1, 1, 4, 6), scale_factor=2.0)
        x[[0, 1], ...]
        x[None, :, 2]
        torch.randn(3, generator=torch.Generator())
        torch.full((2, 2), 7)
        torch.add(x, x, alpha=3)
        torch.arange(0, 10, 3)
        torch.nn.functional.pad(x, (1, 2, 0, 1), value=3.5)
        torch.topk(x, 2, dim=1, largest=False)
        torch.zeros(0, 3).sum()
        torch.tensor(3.5).item()
        for piece in pieces:
            piece.clone()
    return step


def classes():
    """Tensors that keep no strides or no sizes in themselves."""
    x = torch.ones(2, 3)
    quantized = torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)
    kinds = [x.to_sparse_csr(), x.to_sparse(), x.to_mkldnn(), torch.nested.nested_tensor([x, x[:1]]), quantized,
             x.to("meta"), torch.nn.Parameter(x)]

    def step():
        for kind in kinds:
            kind.clone()
        if TELLS_LAYOUT:
            torch.vmap(torch.sin)(x)
    return step


def loader():
    data = torch.utils.data.TensorDataset(torch.arange(12.0).reshape(6, 2))
    # One worker: of two, either may be first.
    batches = torch.utils.data.DataLoader(data, batch_size=2, num_workers=1)

    def step():
        for (batch,) in batches:
            batch.sum()
    return step


def threads():
    x = torch.randn(6, 6, requires_grad=True)

    def work():
        (x @ x).sum().backward()

    def step():
        for _ in range(3):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
    return step


def compiled():
    @torch.compile
    def function(a, b):
        return torch.sin(a) * b + a

    a, b = torch.randn(8, 8), torch.randn(8, 8)
    function(a, b)  # compiled now, not under a profiler

    def step():
        function(a, b)
    return step


PROGRAMS = [mlp, cnn, gpt, autograd, inputs, classes, loader, threads, compiled]
# torch.profiler shows the ops of the thread that started it and of its autograd threads alone, unless told so.
ALL_THREADS = {"threads"}


# ---- what is compared ----


def without_texts(values):
    return [None if isinstance(value, str) else value for value in values]


def own_events(prof):
    return [event for event in prof.events() if event.name not in OWN and not event.name.startswith("[")]


def memory_by_events(prof):
    """What each event of a profile allocated: in all and itself."""
    return [(event.cpu_memory_usage, event.self_cpu_memory_usage) for event in own_events(prof)]


def nanoseconds(microseconds):
    return round(float(microseconds) * 1000)


def memory_by_trace(prof, found):
    """The same from the times of the allocations in the profile's Chrome trace."""
    threads, allocations = {}, collections.defaultdict(list)
    for event in found:
        if event.get("ph") == "X" and event.get("cat") in ("cpu_op", "user_annotation") and event["name"] not in OWN:
            threads[event["name"], nanoseconds(event["ts"])] = event["tid"]
        elif event.get("name") == "[memory]" and event["args"]["Device Type"] == 0:
            allocations[event["tid"]].append((nanoseconds(event["ts"]), event["args"]["Bytes"]))
    listed, totals = own_events(prof), {}
    if listed:
        base = min(time for _, time in threads) - min(nanoseconds(event.time_range.start) for event in listed)
    for event in listed:
        start, end = (nanoseconds(time) + base for time in (event.time_range.start, event.time_range.end))
        mine = allocations[threads.get((event.name, start))]
        totals[id(event)] = sum(size for time, size in mine if start <= time <= end)
    return [(totals[id(event)], totals[id(event)] - sum(totals.get(id(child), 0) for child in event.cpu_children))
            for event in listed]


def memory_of(name, prof, found, score):
    """What torch says of the memory of its events: what it says in its trace where the two differ."""
    said, traced = memory_by_events(prof), memory_by_trace(prof, found)
    different = sum(one != two for one, two in zip(said, traced))
    if different and name not in ALL_THREADS:
        score.note(f"{name}: torch's events() and its trace differ in the memory of {different} events: "
                   "compared with the trace")
        return traced
    return said


def events(prof, memory):
    """The events of a profile by thread, in order: what can be compared of each."""
    by_thread = collections.defaultdict(list)
    listed = own_events(prof)
    numbers = [event.sequence_nr for event in listed if event.sequence_nr >= 0]
    first = min(numbers) if numbers else 0
    for event, used in sorted(zip(listed, memory), key=lambda pair: (pair[0].time_range.start,
                                                                    -pair[0].time_range.end)):
        depth, parent = 0, event.cpu_parent
        while parent is not None:
            depth, parent = depth + 1, parent.cpu_parent
        by_thread[event.thread].append({
            "name": event.name, "depth": depth, "scope": 0 if event.name.startswith(MARKED) else event.scope,
            "shapes": event.input_shapes, "inputs": without_texts(event.concrete_inputs),
            "sequence": event.sequence_nr - first if event.sequence_nr >= 0 else -1,
            "has forward": event.fwd_thread not in (None, 0), "flops": event.flops or 0,
            "memory": used[0], "self memory": used[1],
            "async": event.is_async})
    return [found for _, found in sorted(by_thread.items(), key=lambda item: (-len(item[1]), item[0]))]


def trace(prof, path):
    prof.export_chrome_trace(str(path))
    opened = gzip.open(path, "rt") if path.suffix == ".gz" else open(path)
    with opened as file:
        return json.load(file)["traceEvents"]


def trace_ops(found):
    """Ops of a Chrome trace in order: name, category and what it says of inputs that torch's trace has, too."""
    ops = []
    for event in sorted((event for event in found if event.get("ph") == "X" and event["name"] not in OWN),
                        key=lambda event: (float(event["ts"]), -float(event.get("dur", 0)))):
        if event["cat"] not in ("cpu_op", "user_annotation"):
            continue
        args = event.get("args", {})
        said = [args.get(key) for key in ("Input type", "Input Dims", "Input Strides", "Concrete Inputs")]
        if said[2] is not None and not any(said[2]):
            said[2] = None
        if said[3]:  # no texts: neither has a type
            said[3] = ["" if kind == "" else value for kind, value in zip(said[0], said[3])]
        if event["name"] == "aten::index" and said[0]:
            said = [value[:1] for value in said]
        ops.append((event["name"], "cpu_op" if event["name"].startswith(MARKED) else event["cat"], *said))
    return ops


def arrows(found):
    return sum(event.get("ph") == "s" and event.get("cat") == "fwdbwd" for event in found)


def averages(prof, grouping, with_memory):
    return {(row.key, str(row.input_shapes) if grouping else ""):
            (row.count, row.flops or 0) + ((row.cpu_memory_usage, row.self_cpu_memory_usage) if with_memory else ())
            for row in prof.key_averages(**grouping) if row.key not in OWN and not row.key.startswith("[")}


def run(program, profile, **flags):
    torch.manual_seed(1)
    step = program()
    step()  # state of optimizers, caches: once, before either profiler looks
    with profile(activities=[torch.profiler.ProfilerActivity.CPU], **FLAGS, **flags) as prof:
        step()
    return prof


def compare(program, folder, score):
    name = program.__name__
    flags = {}
    if name in ALL_THREADS:
        flags["experimental_config"] = torch.profiler._ExperimentalConfig(profile_all_threads=True)
    if program is compiled:
        run(program, torch.profiler.profile)  # the second time torch takes the code from its cache
    theirs = run(program, torch.profiler.profile, **flags)
    ours = run(program, mtprof.torch.profile)
    found = trace(ours, folder / f"{name}-ours.json"), trace(theirs, folder / f"{name}-torch.json")
    memory = memory_by_events(ours), memory_of(name, theirs, found[1], score)
    lists = events(ours, memory[0]), events(theirs, memory[1])
    score.check(f"{name}: events of each thread", *([len(found) for found in both] for both in lists))
    for thread, (mine, other) in enumerate(zip(*lists)):
        if not score.check(f"{name}: names of thread {thread}", [e["name"] for e in mine], [e["name"] for e in other]):
            continue
        for index, (one, two) in enumerate(zip(mine, other)):
            for key in one:
                if "memory" in key and name in ALL_THREADS:
                    continue
                score.check(f"{name}: {key} of {one['name']} ({index})", one[key], two[key])
    for index, (one, two) in enumerate(zip(trace_ops(found[0]), trace_ops(found[1]))):
        score.check(f"{name}: {one[0]} ({index}) in the trace", one, two)
    score.check(f"{name}: forward-backward arrows", arrows(found[0]), arrows(found[1]))
    for grouping in ({}, {"group_by_input_shape": True}):
        rows = [averages(prof, grouping, name not in ALL_THREADS) for prof in (ours, theirs)]
        if memory[1] != memory_by_events(theirs):
            sums = collections.defaultdict(lambda: [0, 0])
            for event, used in zip(own_events(theirs), memory[1]):
                total = sums[event.name, str(event.input_shapes) if grouping else ""]
                total[0], total[1] = total[0] + used[0], total[1] + used[1]
            rows[1] = {key: (*row[:2], *sums[key]) for key, row in rows[1].items()}
        score.check(f"{name}: keys of averages {grouping}", sorted(rows[0]), sorted(rows[1]))
        for key in rows[1]:
            score.check(f"{name}: averages of {key}", rows[0].get(key), rows[1][key])


def check_dynamic(score):
    """A function that is compiled for any sizes stays so when it is compiled under ours.

    Its tensors have no numbers for sizes yet. To ask for them would fix them, and each size would be compiled anew.
    """
    graphs = []

    def backend(graph, _):
        graphs.append(graph)
        return graph.forward

    function = torch.compile(lambda a, b: torch.sin(a) * b + a.sum(0), dynamic=True, backend=backend)
    with mtprof.torch.profile(**FLAGS) as prof:
        function(torch.ones(5, 7), torch.ones(5, 7))
    score.check("dynamic: ops were seen", any(event.name == "aten::sin" for event in prof.events()), True)
    for size in ((6, 9), (3, 4)):
        function(torch.ones(size), torch.ones(size))
    score.check("dynamic: graphs for three sizes", len(graphs), 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--only")
    options = parser.parse_args()
    score = Score(options.show)
    folder = pathlib.Path(options.folder or tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    print(f"torch {torch.__version__}: {mtprof.torch.info()}")
    score.check("tier", mtprof.torch.info().tier, "full")
    for program in PROGRAMS:
        if options.only and program.__name__ != options.only:
            continue
        if program is compiled and shutil.which("c++") is None and shutil.which("g++") is None:
            score.skip("compiled", "torch.compile needs a C++ compiler")
            continue
        if program is classes and not TELLS_LAYOUT:
            score.skip("vmap in classes", "strides of its tensors are not known with this torch")
        before = score.failed
        compare(program, folder, score)
        print(f"{program.__name__}: {'ok' if score.failed == before else f'{score.failed - before} failed'}")
    if options.only in (None, "dynamic"):
        check_dynamic(score)
    print(f"{score.passed} passed, {score.failed} failed, {score.skipped} skipped")
    return 1 if score.failed else 0


if __name__ == "__main__":
    sys.exit(main())
