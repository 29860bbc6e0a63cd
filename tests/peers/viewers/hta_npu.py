#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HolisticTraceAnalysis reads the Chrome trace of a real training run on the simulated accelerator.

    hta_npu.py FOLDER MTPROF

FOLDER has npu.mtt (make_npu_trace.py). As in hta_compare.py, what HTA says is compared with what mtprof's report
and its csv have. Real kernels do not last whole microseconds, so HTA is told not to round; it keeps times as
floating-point microseconds since a date months ago, which costs it up to a nanosecond a time (CLOSE_US of a sum
over a hundred intervals, EXACT_US of one).

HTA knows launches by their names, cuda* and hip* alone. So there are two runs: the file as it is, of which
everything but launches is compared; and a copy with CUDA's names, of which launches, delays and queues are.
"""
import gzip
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"  # read when hta is imported

from hta_compare import Ours, TraceAnalysis  # noqa: E402
from measures import alike, length  # noqa: E402

CLOSE_US, EXACT_US = 0.2, 0.005
WORK = ("kernel", "copy", "set")
AS_CUDA = {"npuLaunchKernel": "cudaLaunchKernel", "npuMemcpyAsync": "cudaMemcpyAsync", "npuMemcpy": "cudaMemcpyAsync",
           "npuMemsetAsync": "cudaMemsetAsync"}


def with_names_of_cuda(source, target):
    with gzip.open(source, "rt") as file:
        document = json.load(file)
    for event in document["traceEvents"]:
        if event.get("cat") == "privateuse1_runtime":
            event["cat"] = "cuda_runtime"
            event["name"] = AS_CUDA.get(event["name"], event["name"])
    with gzip.open(target, "wt") as file:
        json.dump(document, file)


class Suite:
    def __init__(self, folder, command):
        self.passed = self.failed = 0
        folder = Path(folder)
        self.ours = Ours(command, folder / "npu.mtt")
        for run in ("npu", "cuda"):
            (folder / run).mkdir(exist_ok=True)
        subprocess.run([command, "export", "-q", "-o", str(folder / "npu" / "rank0.json.gz"), "chrome",
                        str(folder / "npu.mtt")], check=True, timeout=120)
        with_names_of_cuda(folder / "npu" / "rank0.json.gz", folder / "cuda" / "rank0.json.gz")
        self.analysis, self.renamed = (TraceAnalysis(trace_dir=str(folder / run), include_last_profiler_step=True)
                                       for run in ("npu", "cuda"))

    def equal(self, what, theirs, ours, close=EXACT_US):
        """Texts and counts are the same, times (floating-point numbers) as close as HTA keeps them."""
        self.tell(what, theirs, ours, ours not in (None, [], {}) and alike(theirs, ours, close))

    def tell(self, what, theirs, ours, good):
        if good:
            self.passed += 1
        else:
            self.failed += 1
            print("FAILED %s: HTA has %s, mtprof has %s" % (what, theirs, ours))

    def work(self, *kinds):
        return [e for e in self.ours.events if e["kind"] in (kinds or WORK)]

    def kernels(self):
        """Sums, means and extremes of every kernel, copy and set."""
        _, kernels = self.analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=100, duration_ratio=1.0)
        columns = ("sum (us)", "mean (us)", "min (us)", "max (us)")
        self.equal("kernels", {r["name"]: [float(r[c]) for c in columns] for _, r in kernels.iterrows()},
                   {r["key"]: [r["self_device_time_total_ns"] / 1000, r["device_time_ns"] / 1000, r["min_ns"] / 1000,
                               r["max_ns"] / 1000] for r in self.ours.work()})
        self.equal("sorts of kernels", {r["name"]: r["kernel_type"] for _, r in kernels.iterrows()},
                   {e["name"]: "COMPUTATION" if e["kind"] == "kernel" else "MEMORY" for e in self.work()})

    def busy(self):
        """How the device's time divides into idle, computing and other."""
        row = self.analysis.get_temporal_breakdown(visualize=False).iloc[0]
        compute, every = self.ours.spans("kernel"), self.ours.spans(*WORK)
        whole = (max(e for _, e in every) - min(s for s, _ in every)) / 1000
        self.equal("times", [float(row[c]) for c in ("compute_time(us)", "non_compute_time(us)", "idle_time(us)",
                                                     "kernel_time(us)")],
                   [length(compute), length(every) - length(compute), whole - length(every), whole], CLOSE_US)

    def annotations(self):
        """Annotations on the host, and their twins on the device."""
        for device in (False, True):
            table = self.analysis.get_gpu_user_annotation_breakdown(
                use_gpu_annotation=device, visualize=False, num_kernels=100, duration_ratio=1.0)
            sums = {}
            for _, row in table.iterrows():
                key = "ProfilerStep*" if row["name"].startswith("ProfilerStep#") else row["name"]
                sums[key] = sums.get(key, 0) + float(row["sum (us)"])
            of = "self_device_time_total_ns" if device else "cpu_time_total_ns"
            self.equal("annotations, %s" % ("device" if device else "host"), sums,
                       {r["key"]: r[of] / 1000 for r in self.ours.rows
                        if r["is_user_annotation"] and (r["device_type"] != "CPU") == device},
                       # On the device they begin and end a nanosecond outside of what they hold, as torch's do.
                       CLOSE_US if device else EXACT_US)

    def copies(self):
        table = self.analysis.get_memory_bw_summary(ranks=[0])["memory_bw_gbps"]
        ours = {}
        for event in self.work("copy", "set"):
            ours.setdefault(event["name"].split(" (")[0], []).append(int(event["bytes"]) / int(event["duration_ns"]))
        for name, of in ours.items():
            self.tell("bandwidth of " + name, [int(table.loc[(0, name), c]) for c in ("count",)] +
                      [float(table.loc[(0, name), "mean"])], [len(of), sum(of) / len(of)],
                      int(table.loc[(0, name), "count"]) == len(of) and
                      abs(float(table.loc[(0, name), "mean"]) / (sum(of) / len(of)) - 1) < 1e-5)
        self.equal("ways of copies", sorted(ours), ["Memcpy DtoH", "Memcpy HtoD", "Memset"])

    def steps(self):
        self.equal("steps", [int(s) for s in self.analysis.get_profiler_steps()],
                   sorted({int(e["step"]) for e in self.ours.events if e["kind"] == "step"}))

    def launches(self):
        """Each call with its work, how long it waited, and the queues: two streams."""
        table = self.renamed.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)[0]
        calls = {e["correlation_id"]: e for e in self.ours.events if e["name"] in AS_CUDA}
        ours = {int(e["correlation_id"]): [int(calls[e["correlation_id"]]["duration_ns"]) / 1000,
                                           int(e["duration_ns"]) / 1000,
                                           (int(e["start_ns"]) - int(calls[e["correlation_id"]]["end_ns"])) / 1000]
                for e in self.work()}
        self.equal("launches", {int(r["correlation"]): [float(r["cpu_duration"]), float(r["gpu_duration"]),
                                                        float(r["launch_delay"])] for _, r in table.iterrows()},
                   # HTA has no negative delay: a worker may begin before the call has returned.
                   {key: [call, work, max(0.0, delay)] for key, (call, work, delay) in ours.items()})
        series = self.renamed.get_queue_length_time_series(ranks=[0])[0]
        counts = {}
        for event in self.work():
            counts[int(event["thread"])] = counts.get(int(event["thread"]), 0) + 2
        self.equal("queues", {int(s): [len(g), int(g["queue_length"].iloc[-1])] for s, g in series.groupby("stream")},
                   {stream: [n, 0] for stream, n in counts.items()})
        self.tell("streams", sorted(counts), "two", len(counts) == 2)


def main(folder, command):
    logging.disable(logging.WARNING)
    suite = Suite(folder, command)
    for part in (suite.kernels, suite.busy, suite.annotations, suite.copies, suite.steps, suite.launches):
        part()
    print("%d passed, %d failed, 0 skipped" % (suite.passed, suite.failed))
    return 1 if suite.failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
