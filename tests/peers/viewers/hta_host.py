#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HolisticTraceAnalysis reads traces of stock torch: those of mtprof.torch and torch.profiler's say the same.

    hta_host.py FOLDER

FOLDER has the traces of make_host_traces.py. Compared: steps; the events in their order with name, category,
iteration, shapes, types, strides and how deep they are called; annotations and their counts; and HTA's own
comparison of two traces, which must find every op as often in both. Times are left out, as are Python's functions:
torch has every call of them, ours those that the stacks of ops have.
"""
import logging
import os
import sys
from pathlib import Path

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"  # read when hta is imported; ops begin within a microsecond

from hta.common.call_stack import CallGraph  # noqa: E402
from hta.trace_analysis import TraceAnalysis  # noqa: E402
from hta.trace_diff import TraceDiff  # noqa: E402

SHOWN = ("cpu_op", "user_annotation")


def events(analysis):
    """The trace as HTA has it: what can be compared of each event."""
    texts = analysis.t.symbol_table.get_sym_table()
    frame = analysis.t.get_trace(0)
    frame = frame[[texts[category] in SHOWN for category in frame["cat"]]]
    frame = frame.sort_values(["ts", "end"], ascending=[True, False], kind="stable")
    return [(texts[row["name"]], texts[row["cat"]], int(row["iteration"]), str(row["input_dims"]),
             str(row["input_type"]), str(row["input_strides"]).replace("nan", ""))
            for _, row in frame.iterrows()]


def depths(analysis):
    """How deep HTA finds each op and annotation, in the order of the events."""
    texts = analysis.t.symbol_table.get_sym_table()
    CallGraph(analysis.t, ranks=[0])
    frame = analysis.t.get_trace(0)
    frame = frame[[texts[category] in SHOWN for category in frame["cat"]]]
    frame = frame.sort_values(["ts", "end"], ascending=[True, False], kind="stable")
    return [(texts[row["name"]], int(row["depth"])) for _, row in frame.iterrows()]


def annotations(analysis):
    table = analysis.get_gpu_user_annotation_breakdown(use_gpu_annotation=False, visualize=False, num_kernels=100,
                                                       duration_ratio=1.0)
    return sorted(table["name"])


class Suite:
    def __init__(self):
        self.passed = self.failed = 0

    def equal(self, what, ours, theirs):
        if ours == theirs and theirs:
            self.passed += 1
            return
        self.failed += 1
        print("FAILED %s: of ours HTA has %s, of torch's %s" % (what, str(ours)[:1000], str(theirs)[:1000]))

    def events(self, what, ours, theirs):
        self.equal("number of " + what, len(ours), len(theirs))
        for place, (mine, other) in enumerate(zip(ours, theirs)):
            self.equal("%s %d" % (what, place), mine, other)


def main(folder):
    logging.disable(logging.WARNING)
    suite = Suite()
    for kind in ("", "_stacks"):
        paths = [str(Path(folder) / (who + kind)) for who in ("ours", "torch")]
        ours, theirs = (TraceAnalysis(trace_dir=path, include_last_profiler_step=True) for path in paths)
        suite.equal("steps" + kind, *([int(step) for step in of.get_profiler_steps()] for of in (ours, theirs)))
        suite.equal("annotations" + kind, annotations(ours), annotations(theirs))
        suite.events("event" + kind, events(ours), events(theirs))
        if not kind:
            suite.events("depth", depths(ours), depths(theirs))
            different = TraceDiff.ops_diff(*paths[::-1])
            suite.equal("ops that differ", {key: list(value) for key, value in different.items()
                                            if key != "unchanged" and len(value)} or "none", "none")
            names = {name.split("#")[0] if name.startswith("ProfilerStep#") else name for name, *_ in events(theirs)}
            suite.equal("ops", len(different["unchanged"]), len(names))
    print("%d passed, %d failed, 0 skipped" % (suite.passed, suite.failed))
    return 1 if suite.failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
