#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorBoard's profiler plugin reads Chrome traces that mtprof writes, and shows what mtprof has.

    tensorboard_compare.py FOLDER MTPROF

FOLDER has rank0.mtt and rank1.mtt (make_peer_trace), npu.mtt, a real run on the simulated accelerator
(make_npu_trace.py), and stacks.mtt, such a run with stacks and modules. The plugin runs without
TensorBoard's server: its pages are asked for as the browser would.
Nothing may be warned of.

The last plugin that was published (0.4.3) is older than today's traces, torch's own as well:
  - it does not know the categories cuda_runtime and privateuse1_runtime, only runtime, so no op has kernels;
  - it takes steps on the device's tracks (gpu_user_annotation) for further steps.
  - of devices' memory it knows CUDA's (type 1).
So there are two runs of each: the files as they are, of which the views that do not need this are compared;
and a copy with these things as the plugin knows them, of which everything is compared.
"""
import csv
import gzip
import io
import json
import logging
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

from measures import alike, common, length

WORKERS = ("peerhost_100", "peerhost_101")
NPU, NPU_WORKER = 2, "npuhost_102"  # its place next to the two ranks
STACKS, STACKS_WORKER = 3, "stackhost_103"
CUDA, PRIVATE_USE_1 = 1, 20  # types of devices
LOAD_S = 300  # a busy machine takes long to start the plugin
CLOSE_US, ROUNDED_US = 0.05, 0.51  # real times are no whole microseconds; the plugin shows some of them rounded


# ---- the plugin ------------------------------------------------------------------------------

class Plugin:
    def __init__(self, folder):
        from tensorboard.plugins.base_plugin import TBContext
        from torch_tb_profiler.plugin import TorchProfilerPlugin
        flags = types.SimpleNamespace(logdir=str(folder))
        self.pages = TorchProfilerPlugin(TBContext(logdir=str(folder), flags=flags)).get_plugin_apps()

    def get(self, page, **query):
        from werkzeug.test import Client
        from werkzeug.wrappers import Response
        response = Client(self.pages[page], Response).get("/", query_string=query)
        data = response.get_data()
        if response.status_code != 200:
            raise RuntimeError("%s %s: %d %s" % (page, query, response.status_code, data[:200]))
        return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)

    def wait(self, n):
        """Until the runs are loaded."""
        end = time.monotonic() + LOAD_S
        while time.monotonic() < end:
            found = self.get("/runs")
            if len(found["runs"]) == n and not found["loading"]:
                return
            time.sleep(0.1)
        raise RuntimeError("the plugin did not load %d runs in %d s: %s" % (n, LOAD_S, self.get("/runs")))


# ---- what mtprof has -------------------------------------------------------------------------

class Ours:
    def __init__(self, command, path):
        run = subprocess.run([command, "report", "--json", str(path)], check=True, capture_output=True,
                             timeout=120)
        self.rows = json.loads(run.stdout)["rows"]
        run = subprocess.run([command, "report", "--json", "--group", "step", str(path)], check=True,
                             capture_output=True, timeout=120)
        self.by_step = json.loads(run.stdout)["rows"]
        self.command, self.path = command, path

    def ops(self):
        return [r for r in self.rows if r["kind"] == "op"]

    def kernels(self):
        return [r for r in self.rows if r["kind"] == "kernel"]

    def steps(self):
        """Per step: its length, and time of copies and of sets."""
        found = {}
        for row in self.by_step:
            step = found.setdefault(str(row["step"]), [0, 0, 0])
            for place, kind, of in ((0, "step", "cpu_time_total_ns"), (1, "copy", "device_time_total_ns"),
                                    (2, "set", "device_time_total_ns")):
                if row["kind"] == kind:
                    step[place] += row[of] / 1000
        return found

    def events(self):
        run = subprocess.run([self.command, "export", "-q", "-o", "-", "csv", str(self.path)], check=True,
                             capture_output=True, timeout=120)
        return list(csv.DictReader(io.StringIO(run.stdout.decode())))

    def calls_outside_of_ops(self):
        """Runtime calls in no op and not in a step itself."""
        events = self.events()
        owners = {event["correlation_id"] for event in events if event["kind"] in ("op", "step")}
        return sum(event["kind"] == "runtime" and event["owner_id"] not in owners for event in events)

    def spans_of_steps(self):
        """Per step: intervals of the step itself, of kernels, copies and sets."""
        found = {}
        for event in self.events():
            if event["kind"] in ("step", "kernel", "copy", "set"):
                spans = found.setdefault(event["step"], {"step": [], "kernel": [], "copy": [], "set": []})
                spans[event["kind"]].append((int(event["start_ns"]), int(event["end_ns"])))
        return found


def as_plugin_knows(source, target):
    with gzip.open(source, "rt") as file:
        document = json.load(file)
    events = [e for e in document["traceEvents"] if not (
        e.get("cat") == "gpu_user_annotation" and e["name"].startswith("ProfilerStep#"))]
    for e in events:
        if e.get("cat") in ("cuda_runtime", "privateuse1_runtime"):
            e["cat"] = "runtime"
        if e.get("cat") == "cpu_instant_event":
            if e["args"]["Device Type"] == PRIVATE_USE_1:
                e["args"]["Device Type"] = CUDA
    document["traceEvents"] = events
    with gzip.open(target, "wt") as file:
        json.dump(document, file)


class Suite:
    def __init__(self, folder, command):
        self.passed = self.failed = 0
        self.folder, self.ours, self.workers = folder / "tensorboard", [], WORKERS + (NPU_WORKER,)
        for rank, worker in enumerate(self.workers):
            trace = folder / ("npu.mtt" if rank == NPU else "rank%d.mtt" % rank)
            self.ours.append(Ours(command, trace))
            name = "%s.176732304500000000%d.pt.trace.json.gz" % (worker, rank)
            plain, renamed = (self.folder / ("npu_" + run if rank == NPU else run) for run in ("plain", "renamed"))
            for run in (plain, renamed):
                run.mkdir(parents=True, exist_ok=True)
            subprocess.run([command, "export", "-q", "-o", str(plain / name), "chrome", str(trace)], check=True,
                           timeout=120)
            as_plugin_knows(plain / name, renamed / name)
        self.workers += (STACKS_WORKER,)
        self.ours.append(Ours(command, folder / "stacks.mtt"))
        (self.folder / "stacks").mkdir()
        subprocess.run([command, "export", "-q", "-o",
                        str(self.folder / "stacks" / ("%s.1767323045000000003.pt.trace.json.gz" % STACKS_WORKER)), "chrome",
                        str(folder / "stacks.mtt")], check=True, timeout=120)
        self.plugin = Plugin(self.folder)
        self.plugin.wait(5)

    def equal(self, what, theirs, ours, close=CLOSE_US):
        if alike(theirs, ours, close) and ours not in (None, [], {}):
            self.passed += 1
        else:
            self.failed += 1
            print("FAILED %s: the plugin has %s, mtprof has %s" % (what, theirs, ours))

    def page(self, page, run, rank, **more):
        return self.plugin.get(page, run=run, worker=self.workers[rank], span="1", **more)

    def views(self, run, wanted, workers=WORKERS):
        found = self.plugin.get("/views", run=run)
        self.equal("views of " + run, [view for view in wanted if view in found], wanted)
        for view in ("Overview", "Operator", "Kernel", "Memory", "Trace"):
            self.equal("workers of " + view, self.plugin.get("/workers", run=run, view=view), list(workers))

    def kernel_pie(self, run, rank):
        rows = self.page("/kernel", run, rank, group_by="Kernel")["total"]["rows"]
        self.equal("kernels of %s %d" % (run, rank), {name: us for name, us in rows},
                   {r["key"]: r["self_device_time_total_ns"] / 1000 for r in self.ours[rank].kernels()})

    def operators(self, run, rank, fields):
        rows = self.page("/operation/table", run, rank, group_by="Operation")["data"]
        self.equal("operators of %s %d" % (run, rank),
                   {r["name"]: [r["calls"]] + [float(r[theirs]) for theirs, _ in fields] for r in rows},
                   {r["key"]: [r["count"]] + [r[ours] / 1000 for _, ours in fields]
                    for r in self.ours[rank].ops()}, ROUNDED_US if rank >= NPU else CLOSE_US)

    def memory(self, run, rank, device="CPU", usage="cpu_memory_usage"):
        rows = self.page("/memory", run, rank)["rows"][device]
        self.equal("memory of %s %d, %s" % (run, rank, device), {r[0]: r[1:4] for r in rows},
                   {r["key"]: [r["count"], r[usage] / 1024, r["self_" + usage] / 1024]
                    for r in self.ours[rank].ops() if r[usage] != 0})

    def steps(self, run, rank):
        """Steps with their length (shown in the tooltip), copies and sets."""
        found = {}
        for row in self.page("/overview", run, rank)["steps"]["rows"]:
            total = float(re.search(r"Total: ([\d.]+)us", row[2])[1])
            found[row[0]] = [total, float(row[3]), float(row[5])]
        self.equal("steps of %d" % rank, found, self.ours[rank].steps())

    def npu_steps(self):
        """Steps of a real run: the plugin counts every moment once, for kernels first, then copies, then sets."""
        found = {}
        for row in self.page("/overview", "npu_renamed", NPU)["steps"]["rows"]:
            found[row[0]] = [float(re.search(r"Total: ([\d.]+)us", row[2])[1])] + [float(row[i]) for i in (1, 3, 5)]
        ours = {}
        for step, spans in self.ours[NPU].spans_of_steps().items():
            kernels, copies, sets = (spans[kind] for kind in ("kernel", "copy", "set"))
            ours[step] = [length(spans["step"]), length(kernels), length(copies) - common(copies, kernels),
                          length(sets) - common(sets, kernels + copies)]
        self.equal("steps of npu", found, ours)

    def kernel_table(self, run, rank, registers=None):
        table = self.page("/kernel/table", run, rank, group_by="KernelNameAndOpName")["data"]
        columns = [c["name"] for c in table["columns"]]
        sums = {}
        for row in table["rows"]:
            row = dict(zip(columns, row))
            of = sums.setdefault(row["Name"], [0, 0.0, 0.0, 1e9])
            of[0] += row["Calls"]
            of[1] += row["Total Duration (us)"]
            of[2] = max(of[2], row["Max Duration (us)"])
            of[3] = min(of[3], row["Min Duration (us)"])
            if registers:
                self.equal("registers of " + row["Name"], [row["Register Per Thread"], row["Mean Blocks Per SM"],
                                                           row["Mean Est. Achieved Occupancy (%)"]], registers)
        self.equal("kernel table of %d" % rank, sums,
                   {r["key"]: [r["count"], r["self_device_time_total_ns"] / 1000, r["max_ns"] / 1000,
                               r["min_ns"] / 1000] for r in self.ours[rank].kernels()})

    def distributed(self):
        """Kernels of communication, over all workers."""
        data = self.plugin.get("/distributed/overlap", run="renamed", worker="All", span="1")["data"]
        for rank, worker in enumerate(WORKERS):
            device = sum(r["self_device_time_total_ns"] for r in self.ours[rank].kernels()) / 1000
            shared = [sum(data[step][worker][:3]) for step in data if step != "all"]
            # Computing, both, communicating: what runs at the same time counts once.
            both = sum(data[step][worker][1] for step in data if step != "all")
            talk_op = [r for r in self.ours[rank].ops() if r["key"].startswith("nccl")][0]
            compute = device - talk_op["self_device_time_total_ns"] / 1000
            computing = sum(data[step][worker][0] for step in data if step != "all")
            self.equal("steps of " + worker, len(shared), len(self.ours[rank].steps()))
            self.equal("computing of " + worker, computing + both, compute)

    def run(self):
        self.views("plain", ["Overview", "Operator", "Kernel", "Trace", "Memory"])
        self.views("renamed", ["Overview", "Operator", "Kernel", "Trace", "Distributed", "Memory"])
        host = [("host_total_duration", "cpu_time_total_ns")]
        device = [("host_self_duration", "self_cpu_time_total_ns"),
                  ("device_total_duration", "device_time_total_ns"),
                  ("device_self_duration", "self_device_time_total_ns")]
        for rank in (0, 1):
            self.kernel_pie("plain", rank)
            self.operators("plain", rank, host)
            self.memory("plain", rank)
            self.kernel_pie("renamed", rank)
            self.operators("renamed", rank, host + device)
            self.memory("renamed", rank)
            self.steps("renamed", rank)
            self.kernel_table("renamed", rank, ["32", 1.5, 40.0])
        self.distributed()
        self.views("npu_plain", ["Overview", "Operator", "Kernel", "Trace", "Memory"], [NPU_WORKER])
        self.operators("npu_plain", NPU, host)
        self.operators("npu_renamed", NPU, host + device)
        for run in ("npu_plain", "npu_renamed"):
            self.kernel_pie(run, NPU)
        self.memory("npu_renamed", NPU)
        self.memory("npu_renamed", NPU, "GPU0", "device_memory_usage")
        self.npu_steps()
        self.kernel_table("npu_renamed", NPU)
        self.views("stacks", ["Overview", "Operator", "Kernel", "Trace", "Memory", "Module"], [STACKS_WORKER])
        self.operators("stacks", STACKS, host)
        self.kernel_pie("stacks", STACKS)


def main(folder, command):
    # The plugin loads in processes of its own: what it and they warn of is kept in a file.
    with tempfile.TemporaryFile("w+b") as log:
        kept = os.dup(2)
        os.dup2(log.fileno(), 2)
        logging.basicConfig(level=logging.WARNING, stream=os.fdopen(os.dup(log.fileno()), "w"))
        try:
            suite = Suite(Path(folder), command)
            suite.run()
        finally:
            logging.shutdown()
            os.dup2(kept, 2)
            log.seek(0)
            said = "\n".join(line for line in log.read().decode(errors="replace").splitlines()
                             if line.strip() and not line.startswith("INFO:"))
            if sys.exc_info()[0] is not None:
                print(said, file=sys.stderr)
    # It says so of calls outside of ops as well, such as the cudaDeviceSynchronize that ends every profile of torch's.
    outside = [int(n) for n in re.findall(r"(\d+) Runtime with external id \w+ don't correlate", said)]
    suite.equal("runtime calls outside of ops", sum(outside), suite.ours[NPU].calls_outside_of_ops())
    said = "\n".join(line for line in said.splitlines()
                     if "don't correlate" not in line and "Logging before" not in line)
    suite.equal("warnings", said or "none", "none")
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
