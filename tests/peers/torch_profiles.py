# SPDX-License-Identifier: Apache-2.0
"""The same scripts profiled by torch and by mindtorch_v2: torch_profiles.py FOLDER [--show] [--device npu]

For an MLP, a CNN and a GPT: forward, backward and optimizer under the same schedule and flags. Compared at the
level of what user code or autograd calls: names, order, counts, nesting, shapes, concrete inputs, types, FLOPs,
sequence numbers, memory; then annotations, key_averages in every grouping, tables' layout and the Chrome
trace's structure. The inside of a composite op and of an optimizer's step may differ
(docs/differences.md); a missing, renamed or re-nested op at the user's level fails.

With --device npu ours trains on the simulated accelerator, torch on the CPU all the same. Then ours has more:
  - work of the device and runtime calls (npuLaunchKernel ...), among events and rows: left out, as are twins of
    annotations on the device;
  - memory is listed under the device: host's and device's are added up;
  - the table has torch's columns for a device (DEVICE_COLUMNS, as its CUDA tables have them) and a second total;
  - the trace has categories of its own; those that torch's has are compared.
"""
import argparse
import collections
import gzip
import json
import pathlib
import re
import sys
import warnings

import numpy
import torch

import mindtorch_v2
import models_v2

warnings.simplefilter("ignore")
LIBRARIES = {"torch": torch, "ours": mindtorch_v2}
ENGINE = re.compile(r"^(autograd::engine::evaluate_function: .*|torch::autograd::.*|\w+Backward\d*)$")
SCOPE = re.compile(r"^(ProfilerStep|Optimizer\.|enumerate\(DataLoader\)|user:)")
# After which column torch puts those of a device.
DEVICE_COLUMNS = {"CPU time avg": ["Self NPU", "Self NPU %", "NPU total", "NPU time avg"],
                  "Self CPU Mem": ["NPU Mem", "Self NPU Mem"]}
RUNTIME = re.compile(r"^npu[A-Z]")
FLAGS = {"record_shapes": True, "profile_memory": True, "with_flops": True}

Op = collections.namedtuple("Op", "path name shapes inputs dtypes flops sequence memory")


class Score:
    def __init__(self, show):
        self.passed = self.failed = self.skipped = 0
        self.show = show

    def check(self, what, ours, theirs):
        if ours == theirs:
            self.passed += 1
            return True
        self.failed += 1
        if self.failed <= 60 or self.show:
            print(f"FAILED {what}\n    torch {theirs!r}\n    ours  {ours!r}")
        return False

    def end(self):
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        return 1 if self.failed else 0


def is_container(event):
    """Whether what it calls is called by the user or by autograd."""
    return event is None or bool(SCOPE.match(event.name) or ENGINE.match(event.name))


def of_host(events, name="name"):
    """Without the device's work and the calls that launch it."""
    return [e for e in events if str(e.device_type).endswith("CPU") and not RUNTIME.match(getattr(e, name))]


def user_level(events):
    """What user code or autograd calls, in order, except the inside of optimizers' steps."""
    out = []
    first = min((e.sequence_nr for e in events if e.sequence_nr >= 0), default=0)
    for event in of_host(events):
        path, parent, outside = [], event.cpu_parent, False
        while parent is not None:
            outside |= not is_container(parent) or parent.name.startswith("Optimizer.step")
            path.append(re.sub(r"#\d+$", "", parent.name))
            parent = parent.cpu_parent
        if outside or event.name == "[memory]":
            continue
        node = bool(ENGINE.match(event.name) or SCOPE.match(event.name))
        out.append(Op("/".join(reversed(path)), event.name,
                      None if node else event.input_shapes, None if node else event.concrete_inputs,
                      None if node else list(getattr(event, "input_dtypes", None) or []),
                      event.flops, event.sequence_nr - first if event.sequence_nr >= 0 else -1,
                      None if node else event.cpu_memory_usage + event.device_memory_usage))
    return out


def train(library, name, device, **flags):
    """Four steps under wait 1, warmup 1, active 2; gives the profiler."""
    library.manual_seed(3)
    made = models_v2.build(library, name, device=device)
    activities = [library.profiler.ProfilerActivity.CPU]
    if device != "cpu":
        activities.append(library.profiler.ProfilerActivity.NPU)
    model, optimizer, batch, loss_of = made.model, made.optimizer, made.batch, made.loss
    plan = library.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    kept = []
    with library.profiler.profile(activities=activities, schedule=plan, on_trace_ready=kept.append, **flags) as prof:
        for _ in range(4):
            with library.profiler.record_function("user: forward"):
                loss = loss_of(model, *batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            prof.step()
    assert len(kept) == 1, f"{len(kept)} windows"
    return prof


def compare_ops(score, name, profs):
    found = {who: user_level(prof.events()) for who, prof in profs.items()}
    ours, theirs = found["ours"], found["torch"]
    same = score.check(f"{name}: ops at the user's level", [(o.path, o.name) for o in ours],
                       [(o.path, o.name) for o in theirs])
    if not same:
        import difflib
        lines = difflib.unified_diff([f"{o.path} | {o.name}" for o in theirs], [f"{o.path} | {o.name}" for o in ours],
                                     "torch", "ours", lineterm="", n=1)
        print("\n".join(list(lines)[:80]))
        return
    for mine, other in zip(ours, theirs):
        where = f"{name}: {other.path}/{other.name}"
        for field in ("shapes", "inputs", "dtypes", "flops", "sequence", "memory"):
            score.check(f"{where}: {field}", getattr(mine, field), getattr(other, field))


def compare_averages(score, name, profs):
    """Groupings: which rows there are, how often, with which shapes and FLOPs."""
    for options in ({}, {"group_by_input_shape": True}, {"group_by_overload_name": True}):
        rows = {}
        for who, prof in profs.items():
            shown = {op.name for op in user_level(prof.events())}
            rows[who] = [(r.key, str(r.input_shapes), r.flops, r.is_user_annotation)
                         for r in of_host(prof.key_averages(**options), "key")
                         if r.key in shown and not r.key.startswith("aten::")]
        score.check(f"{name}: rows of key_averages({options})", rows["ours"], rows["torch"])


def layout_of(text):
    """A table without its names, numbers and widths of the two columns that hold names and shapes."""
    lines = text.rstrip().splitlines()
    headers = [h.strip() for h in re.split(r"  +", lines[1].strip())]
    widths = [len(dashes) for dashes in lines[0].split()]
    flexible = {i for i, h in enumerate(headers) if h in ("Name", "Input Shapes", "Overload Name")}
    headers = [re.sub(r"^Total [KMGTP]?FLOPs", "Total FLOPs", h) for h in headers]
    totals = [re.sub(r"[\d.]+\w+", "N", line) for line in lines if line.startswith("Self ")]
    return headers, [w for i, w in enumerate(widths) if i not in flexible], totals


def with_device(layout):
    """What torch's layout becomes with a device."""
    headers, widths, totals = layout
    more = [h for header in headers for h in [header] + DEVICE_COLUMNS.get(header, [])]
    return more, widths + widths[:1] * (len(more) - len(headers)), totals + [totals[0].replace("CPU", "NPU")]


def compare_tables(score, name, profs, device):
    for options in ({}, {"group_by_input_shape": True}):
        shown = {who: layout_of(prof.key_averages(**options).table(sort_by="cpu_time_total", row_limit=-1))
                 for who, prof in profs.items()}
        wanted = shown["torch"] if device == "cpu" else with_device(shown["torch"])
        score.check(f"{name}: layout of the table {options}", shown["ours"], wanted)


def structure_of(path):
    """Categories, phases, args' keys and types of a Chrome trace, by category."""
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        trace = json.load(file)
    kinds = {}
    for event in trace["traceEvents"]:
        cat = event.get("cat", "")
        # An arg of ours begins with a small letter: harmless to every consumer.
        args = {k: type(v).__name__ for k, v in (event.get("args") or {}).items() if k[:1].isupper()}
        keys = frozenset(k for k in event if k != "args")
        kinds.setdefault((cat, event["ph"]), [set(), {}])
        kinds[cat, event["ph"]][0].add(keys)
        kinds[cat, event["ph"]][1].update(args)
    top = {k for k in trace if k not in ("traceEvents",)}
    return trace, kinds, top


def compare_traces(score, name, profs, folder):
    found = {}
    for who, prof in profs.items():
        path = folder / f"{name}.{who}.json"
        prof.export_chrome_trace(str(path))
        found[who] = structure_of(path)
    _, theirs, top_theirs = found["torch"]
    trace, ours, top_ours = found["ours"]
    score.check(f"{name}: top-level keys of the trace missing", sorted(top_theirs - top_ours), [])
    for kind in sorted(theirs):
        if not score.check(f"{name}: trace has {kind}", kind in ours, True):
            continue
        score.check(f"{name}: keys of {kind}", sorted(map(sorted, ours[kind][0])), sorted(map(sorted, theirs[kind][0])))
        missing = {k: t for k, t in theirs[kind][1].items() if ours[kind][1].get(k) != t}
        score.check(f"{name}: args of {kind}", missing, {})
    flows = {who: collections.Counter(e["ph"] for e in found[who][0]["traceEvents"] if e.get("cat") == "fwdbwd")
             for who in found}
    score.check(f"{name}: flows forward to backward", flows["ours"], flows["torch"])
    bound = {(e["ts"], e["pid"], e["tid"]) for e in trace["traceEvents"] if e["ph"] == "X"}
    loose = [e for e in trace["traceEvents"] if e["ph"] in "sf" and (e["ts"], e["pid"], e["tid"]) not in bound]
    score.check(f"{name}: flows that bind to no span", loose, [])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--model", action="append")
    parser.add_argument("--device", default="cpu", help="where ours trains: npu needs MINDTORCH_NPU=sim")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    score = Score(options.show)
    for name in options.model or models_v2.NAMES:
        profs = {who: train(library, name, options.device if who == "ours" else "cpu", **FLAGS)
                 for who, library in LIBRARIES.items()}
        if options.device != "cpu":
            work = [e for e in profs["ours"].events() if not str(e.device_type).endswith("CPU")]
            score.check(f"{name}: there is work on the device", len(work) > 50, True)
        compare_ops(score, name, profs)
        compare_averages(score, name, profs)
        compare_tables(score, name, profs, options.device)
        compare_traces(score, name, profs, options.folder)
    return score.end()


if __name__ == "__main__":
    numpy.random.seed(1)
    sys.exit(main())
