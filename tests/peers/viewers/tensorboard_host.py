#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorBoard's profiler plugin shows traces of stock torch: of mtprof.torch's the same as of torch.profiler's.

    tensorboard_host.py FOLDER

FOLDER has the traces of make_host_traces.py, each a run. Compared: the views; the operators and their calls, by name
and by name with shapes; allocations of operators, and what was allocated over time; steps; modules. Times are left
out, as are stacks of operators: ours has them, torch's traces have not had them for long.
"""
import logging
import multiprocessing
import os
import sys
from pathlib import Path

from tensorboard_compare import Plugin

WORKER = "host_1"
MEBIBYTE = 1 << 20
COLUMNS = 4  # of the memory view: name, calls, what they allocated, and they themselves


class Suite:
    def __init__(self, folder):
        self.passed = self.failed = 0
        self.plugin = Plugin(folder)
        self.plugin.wait(4)

    def get(self, page, run, **more):
        return self.plugin.get(page, run=run, worker=WORKER, span="1", **more)

    def equal(self, what, find, kind):
        """What `find` says of a run of ours and of torch's."""
        ours, theirs = (find(who + kind) for who in ("ours", "torch"))
        if ours == theirs and theirs:
            self.passed += 1
        else:
            self.failed += 1
            print("FAILED %s%s: the plugin has %s of ours, %s of torch's" % (what, kind, str(ours)[:1500],
                                                                             str(theirs)[:1500]))

    def operators(self, run, by):
        rows = self.get("/operation/table", run, group_by=by)["data"]
        return sorted((row["name"], row["calls"], str(row.get("input_shape"))) for row in rows)

    def steps(self, run):
        return [row[0] for row in self.get("/overview", run)["steps"]["rows"]]

    def memory(self, run):
        return sorted(tuple(row[:COLUMNS]) for row in self.get("/memory", run)["rows"]["CPU"])

    def allocations(self, run):
        """Bytes over time. torch's allocator counts from the first profile of the process on, so the first is 0."""
        curve = [round(row[1] * MEBIBYTE) for row in self.get("/memory_curve", run)["rows"]["CPU"] if row[1]]
        return [size - curve[0] for size in curve]

    def modules(self, run):
        def tree(rows):
            return [(row["name"], row["occurences"], row["operators"], tree(row["children"])) for row in rows]
        return tree(self.get("/module", run)["data"])

    def run(self):
        for kind in ("", "_stacks"):
            self.equal("views", lambda run: self.plugin.get("/views", run=run), kind)
            for by in ("Operation", "OperationAndInputShape"):
                self.equal("operators by " + by, lambda run, by=by: self.operators(run, by), kind)
            self.equal("steps", self.steps, kind)
            self.equal("memory", self.memory, kind)
            self.equal("allocations", self.allocations, kind)
        self.equal("modules", self.modules, "_stacks")


def main(folder):
    logging.disable(logging.WARNING)
    suite = Suite(Path(folder))
    suite.run()
    print("%d passed, %d failed, 0 skipped" % (suite.passed, suite.failed))
    return 1 if suite.failed else 0


if __name__ == "__main__":
    code = 1
    try:
        code = main(*sys.argv[1:])
    except RuntimeError as error:
        print("FAILED %s" % error)
    sys.stdout.flush()
    for child in multiprocessing.active_children():  # the plugin does not end them
        child.terminate()
    os._exit(code)
