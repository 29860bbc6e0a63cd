#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs small programs under torch.profiler and keeps what torch says about them.

    torch_programs.py FOLDER

writes FOLDER/<program>.json or .json.gz (torch's own Chrome trace) and FOLDER/cases.json: a list of
tables, each with the text that torch printed, the trace it belongs to, how the rows were grouped
and the arguments of table(). torch_compare.py asks libmtprof for the same tables.

What is not asked for here, because the file does not carry it (reasons in torch_compare.py): FLOPs,
futures that end a scope, events of earlier cycles (acc_events).
"""
import asyncio
import json
import sys
import threading
import warnings
from pathlib import Path

import torch
from torch.autograd.profiler_util import EventList
from torch.profiler import (ProfilerActivity, profile, record_function, schedule,
                            tensorboard_trace_handler)

CPU = [ProfilerActivity.CPU]
NO_CAP = -1  # stands for None, a column as wide as its cells, in cases.json


# ---- programs --------------------------------------------------------------------------------

def nested():
    with record_function("outer"):
        a = torch.ones(64, 64)
        for _ in range(3):
            with record_function("inner"):
                a = torch.nn.functional.linear(a, torch.ones(64, 64)).relu()
        torch.stack([a, a]).sum().item()
    with record_function("twin"):
        with record_function("twin"):  # collapses into one
            torch.add(a, 1)
    (a @ a).softmax(-1).argmax()


def network():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.LayerNorm(64),
                               torch.nn.Linear(64, 8))


def train(steps=2, optimizer=torch.optim.SGD, between=None):
    model = network()
    optim = optimizer(model.parameters(), lr=0.01)
    for _ in range(steps):
        x, y = torch.randn(16, 32), torch.randint(0, 8, (16,))
        with record_function("forward"):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        optim.zero_grad()
        loss.backward()
        optim.step()
        if between is not None:
            between()


def convolve():
    x = torch.randn(2, 3, 16, 16, requires_grad=True)
    conv = torch.nn.Conv2d(3, 4, 3)
    torch.nn.functional.max_pool2d(conv(x), 2).sum().backward()
    torch.cat([torch.ones(2, 3), torch.zeros(1, 3)]).index_select(0, torch.tensor([0, 2]))
    torch.ones(3, 3, dtype=torch.float64).to(torch.float32).t().contiguous()


def load_data():
    data = torch.utils.data.TensorDataset(torch.randn(12, 4))
    for (x,) in torch.utils.data.DataLoader(data, batch_size=4):
        x.mean().item()


def threads():
    def work(name):
        with record_function(name):
            for _ in range(5):
                torch.randn(32, 32).mm(torch.randn(32, 32))

    others = [threading.Thread(target=work, args=("worker %d" % i,)) for i in range(2)]
    for t in others:
        t.start()
    work("main")
    for t in others:
        t.join()


def names():
    for name in ("x" * 90, "a::b<c, d>(e)", "100% {} [] <b> & 'q'", "semi;colon", " blank ", "a.b", ".", "#1"):
        with record_function(name):
            torch.ones(2)


async def coroutine(name, n):
    with record_function(name):
        for _ in range(n):
            torch.ones(8).add(1)
            await asyncio.sleep(0)


def overlap():
    async def both():
        await asyncio.gather(coroutine("A", 2), coroutine("B", 4))
    asyncio.run(both())


def free_outside():
    kept = []
    with record_function("make"):
        kept.append(torch.empty(1000))
        torch.ones(64, 64).mul(2)
    kept.clear()  # freed outside every event: [memory]


# ---- tables ----------------------------------------------------------------------------------

SORTS = (None, "cpu_time_total", "self_cpu_time_total", "cpu_time", "count")
MEMORY_SORTS = ("cpu_memory_usage", "self_cpu_memory_usage")


def tables(shapes=False, memory=False, stacks=False, overload=False):
    """Arguments of key_averages() and of table(), pair by pair."""
    for sort in SORTS + (MEMORY_SORTS if memory else ()):
        yield {}, {"sort_by": sort}
        yield {}, {"sort_by": sort, "row_limit": -1, "max_name_column_width": None}
    yield {}, {"sort_by": "cpu_time_total", "row_limit": 5}
    yield {}, {"row_limit": 0}
    yield {}, {"top_level_events_only": True}
    yield {}, {"top_level_events_only": True, "sort_by": "cpu_time_total", "row_limit": 3}
    yield {}, {"max_name_column_width": 20}
    yield {}, {"header": "A header", "time_unit": "us"}
    yield {}, {"time_unit": "ms"}
    yield {}, {"time_unit": "s", "row_limit": 10}
    if shapes:
        by = {"group_by_input_shape": True}
        yield by, {}
        yield by, {"sort_by": "self_cpu_time_total", "max_shapes_column_width": 30}
        yield by, {"max_shapes_column_width": None, "row_limit": -1}
    if stacks:
        for n in (1, 5):
            yield {"group_by_stack_n": n}, {"row_limit": -1}
        yield {"group_by_stack_n": 3}, {"sort_by": "cpu_time_total", "max_src_column_width": 40}
        yield {"group_by_stack_n": 2}, {"max_src_column_width": None, "row_limit": -1}
    if overload:
        yield {"group_by_overload_name": True}, {"row_limit": -1}
        yield {"group_by_overload_name": True, "group_by_input_shape": shapes}, {}


def without_functions(prof):
    """torch's events without Python functions, and the tree that torch makes of these
    (torch-contract 3.1.2: 2.11 had no functions in the list)."""
    events = prof.events()
    kept = [event for event in events if not event.is_python_function]
    if len(kept) == len(events):
        return events
    for event in kept:
        event.cpu_children, event.cpu_parent = [], None
    rest = EventList(kept, use_device=None, profile_memory=prof.profile_memory, with_flops=False)
    rest._build_tree()
    return rest


def average(prof, events, group):
    if not prof.with_stack:
        return prof.key_averages(**group)
    group = {key + "s" if key == "group_by_input_shape" else key: value for key, value in group.items()}
    return events.key_averages(**group)


class Keeper:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.cases = []

    def keep(self, program, trace, prof, **what):
        events = without_functions(prof)
        for group, table in tables(**what):
            rows = average(prof, events, group)
            self.add(program, trace, rows.table(**table), group, table, with_stack=prof.with_stack)
        self.add(program, trace, events.table(row_limit=-1), {}, {"row_limit": -1}, events=True,
                 with_stack=prof.with_stack)

    def add(self, program, trace, text, group, table, **more):
        table = {k: NO_CAP if v is None and k.startswith("max_") else v
                 for k, v in table.items() if not (k == "sort_by" and v is None)}
        self.cases.append({"program": program, "trace": trace, "group": group, "table": table,
                           "events": False, "text": text, **more})

    def run(self, program, function, suffix=".json", what=None, **settings):
        trace = program + suffix
        with profile(activities=CPU, **settings) as prof:
            function()
        prof.export_chrome_trace(str(self.folder / trace))
        self.keep(program, trace, prof, **(what or {}))

    def steps(self):
        """A schedule and torch's own handler, which names and packs the file."""
        target = self.folder / "steps"
        kept = []

        def ready(prof):
            tensorboard_trace_handler(str(target), worker_name="peer", use_gzip=True)(prof)
            trace = max(target.iterdir(), key=lambda path: int(path.name.split(".")[1]))
            program = "steps %d" % len(kept)
            kept.append(trace)
            self.keep(program, str(trace.relative_to(self.folder)), prof, shapes=True)

        with profile(activities=CPU, record_shapes=True, on_trace_ready=ready,
                     schedule=schedule(wait=1, warmup=1, active=2, repeat=2)) as prof:
            train(steps=8, between=prof.step)
        if len(kept) != 2:
            raise SystemExit("torch_programs: the schedule gave %d traces, not 2" % len(kept))


def main(folder):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    keeper = Keeper(folder)
    config = torch._C._profiler._ExperimentalConfig
    train(1)  # once before, so that first calls do not fill the traces
    keeper.run("nested", nested)
    keeper.run("nothing", lambda: None)
    keeper.run("train", train, ".json.gz", {"shapes": True}, record_shapes=True)
    keeper.run("adam", lambda: train(3, torch.optim.Adam), what={"shapes": True}, record_shapes=True)
    keeper.run("convolve", convolve, what={"shapes": True, "overload": True}, record_shapes=True,
               experimental_config=config(capture_overload_names=True))
    keeper.run("load_data", load_data, ".json.gz")
    keeper.run("memory", train, what={"memory": True}, profile_memory=True)
    keeper.run("free_outside", free_outside, what={"memory": True, "shapes": True},
               profile_memory=True, record_shapes=True)
    keeper.run("stacks", train, what={"stacks": True}, with_stack=True,
               experimental_config=config(verbose=True))
    keeper.run("quiet_stacks", nested, with_stack=True)
    keeper.run("threads", threads, experimental_config=config(profile_all_threads=True))
    keeper.run("names", names)
    keeper.run("overlap", overlap)
    keeper.run("everything", train, ".json.gz",
               {"shapes": True, "memory": True, "stacks": True, "overload": True},
               record_shapes=True, profile_memory=True, with_stack=True, with_modules=True,
               experimental_config=config(verbose=True, capture_overload_names=True))
    keeper.steps()
    (keeper.folder / "cases.json").write_text(json.dumps(keeper.cases))
    print("torch %s: %d tables of %d traces" % (torch.__version__, len(keeper.cases),
                                               len({c["trace"] for c in keeper.cases})))


if __name__ == "__main__":
    main(sys.argv[1])
