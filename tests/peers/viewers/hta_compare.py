#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HolisticTraceAnalysis reads Chrome traces that mtprof writes, and finds what mtprof has.

    hta_compare.py FOLDER MTPROF

FOLDER has rank0.mtt and rank1.mtt (make_peer_trace). What HTA says about the exported files is
compared with `mtprof report --json` and with the intervals of `mtprof export csv`, which know
nothing of the Chrome format. HTA works in whole microseconds; the traces have no others.
"""
import csv
import io
import json
import logging
import subprocess
import sys
from pathlib import Path

from hta.trace_analysis import TraceAnalysis

from measures import common, length

RANKS = (0, 1)
LAUNCHES = ("cudaLaunchKernel", "cudaMemcpyAsync", "cudaMemsetAsync")


class Ours:
    """What mtprof says of one rank."""

    def __init__(self, command, path):
        def run(*arguments):
            return subprocess.run([command, *arguments, str(path)], check=True, capture_output=True,
                                  timeout=120).stdout.decode()

        self.rows = json.loads(run("report", "--json"))["rows"]
        self.events = list(csv.DictReader(io.StringIO(run("export", "-q", "-o", "-", "csv"))))

    def row(self, key, device):
        found = [r for r in self.rows if r["key"] == key and (r["device_type"] != "CPU") == device]
        return found[0] if len(found) == 1 else None

    def work(self):
        """Rows of work on the device, annotations aside."""
        return [r for r in self.rows if r["device_type"] != "CPU" and not r["is_user_annotation"]]

    def spans(self, *kinds, names=lambda name: True):
        return [(int(e["start_ns"]), int(e["end_ns"])) for e in self.events
                if e["kind"] in kinds and names(e["name"])]

    def durations(self, kind, name):
        """In microseconds."""
        return sorted(int(e["duration_ns"]) / 1000 for e in self.events
                      if e["kind"] == kind and e["name"] == name and e["device"] != "CPU")


def is_communication(name):
    return name.startswith("nccl")


class Suite:
    def __init__(self, folder, command):
        self.passed = self.failed = 0
        folder = Path(folder)
        self.ours = {rank: Ours(command, folder / ("rank%d.mtt" % rank)) for rank in RANKS}
        target = folder / "hta"
        target.mkdir(exist_ok=True)
        for rank in RANKS:
            subprocess.run([command, "export", "-q", "-o", str(target / ("rank%d.json.gz" % rank)), "chrome",
                            str(folder / ("rank%d.mtt" % rank))], check=True, timeout=120)
        self.analysis = TraceAnalysis(trace_dir=str(target), include_last_profiler_step=True)

    def equal(self, what, theirs, ours):
        if theirs == ours and ours not in (None, [], {}):
            self.passed += 1
        else:
            self.failed += 1
            print("FAILED %s: HTA has %s, mtprof has %s" % (what, theirs, ours))

    def kernels(self):
        """Sums, means and extremes of every kernel, copy and set."""
        kinds, kernels = self.analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=100,
                                                                duration_ratio=1.0)
        for rank in RANKS:
            of_rank = kernels[kernels["rank"] == rank]
            theirs = {r["name"]: tuple(float(r[c]) for c in ("sum (us)", "mean (us)", "min (us)", "max (us)"))
                      for _, r in of_rank.iterrows()}
            ours = {r["key"]: (r["self_device_time_total_ns"] / 1000, r["device_time_ns"] / 1000,
                               r["min_ns"] / 1000, r["max_ns"] / 1000) for r in self.ours[rank].work()}
            self.equal("kernels of rank %d" % rank, theirs, ours)
        memory = float(kinds[kinds["kernel_type"] == "MEMORY"]["sum"].iloc[0])
        self.equal("time of copies and sets", memory,
                   sum(length(self.ours[rank].spans("copy", "set")) for rank in RANKS))

    def busy(self):
        """How the device's time divides into idle, computing and other."""
        table = self.analysis.get_temporal_breakdown(visualize=False)
        for _, row in table.iterrows():
            ours = self.ours[int(row["rank"])]
            compute = ours.spans("kernel", names=lambda name: not is_communication(name))
            every = ours.spans("kernel", "copy", "set")
            whole = (max(e for _, e in every) - min(s for s, _ in every)) / 1000
            theirs = [float(row[c]) for c in ("compute_time(us)", "non_compute_time(us)", "idle_time(us)",
                                              "kernel_time(us)")]
            self.equal("times of rank %d" % row["rank"], theirs,
                       [length(compute), length(every) - length(compute), whole - length(every), whole])
        self.equal("ranks with times", sorted(int(r) for r in table["rank"]), list(RANKS))
        for _, row in self.analysis.get_comm_comp_overlap(visualize=False).iterrows():
            ours = self.ours[int(row["rank"])]
            compute = ours.spans("kernel", names=lambda name: not is_communication(name))
            talk = ours.spans("kernel", names=is_communication)
            self.equal("overlap of rank %d" % row["rank"], round(float(row["comp_comm_overlap_pctg"]), 2),
                       round(100 * common(compute, talk) / length(talk), 2))

    def annotations(self):
        """Annotations on the host, and their twins on the device."""
        for device in (False, True):
            table = self.analysis.get_gpu_user_annotation_breakdown(
                use_gpu_annotation=device, visualize=False, num_kernels=100, duration_ratio=1.0)
            for rank in RANKS:
                sums = {}
                for _, row in table[table["rank"] == rank].iterrows():
                    key = "ProfilerStep*" if row["name"].startswith("ProfilerStep#") else row["name"]
                    sums[key] = sums.get(key, 0) + float(row["sum (us)"])
                of = "self_device_time_total_ns" if device else "cpu_time_total_ns"
                ours = {r["key"]: r[of] / 1000 for r in self.ours[rank].rows
                        if r["is_user_annotation"] and (r["device_type"] != "CPU") == device}
                self.equal("annotations of rank %d, %s" % (rank, "device" if device else "host"), sums, ours)

    def launches(self):
        """Runtime calls, each with its work: counts, sums, delays; queues."""
        stats = self.analysis.get_cuda_kernel_launch_stats(ranks=list(RANKS), visualize=False)
        for rank in RANKS:
            ours, table = self.ours[rank], stats[rank]
            self.equal("launches of rank %d" % rank,
                       [len(table), float(table["cpu_duration"].sum()), float(table["gpu_duration"].sum())],
                       [sum(ours.row(name, False)["count"] for name in LAUNCHES),
                        sum(ours.row(name, False)["cpu_time_total_ns"] for name in LAUNCHES) / 1000,
                        sum(r["self_device_time_total_ns"] for r in ours.work()) / 1000])
            calls = {e["correlation_id"]: int(e["end_ns"]) for e in ours.events if e["name"] in LAUNCHES}
            delays = {int(e["correlation_id"]): (int(e["start_ns"]) - calls[e["correlation_id"]]) / 1000
                      for e in ours.events if e["kind"] in ("kernel", "copy", "set")}
            self.equal("delays of rank %d" % rank,
                       {int(r["correlation"]): float(r["launch_delay"]) for _, r in table.iterrows()}, delays)
        series = self.analysis.get_queue_length_time_series(ranks=list(RANKS))
        for rank in RANKS:
            self.equal("queues of rank %d" % rank,
                       {int(s): (len(g), int(g["queue_length"].iloc[-1])) for s, g in series[rank].groupby("stream")},
                       self.queues(rank))

    def queues(self, rank):
        """Of each queue: how often its length changes (a launch, a start), and what it ends with."""
        counts = {}
        for e in self.ours[rank].events:
            if e["kind"] in ("kernel", "copy", "set"):
                counts[int(e["thread"])] = counts.get(int(e["thread"]), 0) + 2
        return {queue: (n, 0) for queue, n in counts.items()}

    def rest(self):
        steps = sorted({int(e["step"]) for e in self.ours[0].events if e["kind"] == "step"})
        self.equal("steps", [int(s) for s in self.analysis.get_profiler_steps()], steps)
        table = self.analysis.get_memory_bw_summary(ranks=list(RANKS))["memory_bw_gbps"]
        for rank in RANKS:
            for kind, name in (("copy", "Memcpy HtoD"), ("set", "Memset")):
                of = [e for e in self.ours[rank].events if e["kind"] == kind]
                self.equal("bandwidth of %s, rank %d" % (name, rank),
                           [int(table.loc[(rank, name), "count"]), round(float(table.loc[(rank, name), "mean"]), 6)],
                           [len(of), round(sum(int(e["bytes"]) / int(e["duration_ns"]) for e in of) / len(of), 6)])
        delays = self.analysis.get_aten_op_kernels_and_delay(ranks=[0])[0]
        owners = {e["correlation_id"]: e["name"] for e in self.ours[0].events if e["kind"] == "op"}
        pairs = {}
        for e in self.ours[0].events:
            if e["kind"] == "kernel" and owners[e["owner_id"]].startswith("aten::"):
                pair = (owners[e["owner_id"]], e["name"])
                pairs[pair] = pairs.get(pair, 0) + 1
        self.equal("kernels of ops", {(r["aten_op_name"], r["kernel_sequence"]): int(r["occurrence_count"])
                                      for _, r in delays.iterrows()}, pairs)
        _, found = self.analysis.critical_path_analysis(rank=0, annotation="ProfilerStep", instance_id=1)
        self.equal("critical path", bool(found), True)


def main(folder, command):
    logging.disable(logging.WARNING)
    suite = Suite(folder, command)
    for part in (suite.kernels, suite.busy, suite.annotations, suite.launches, suite.rest):
        part()
    print("%d passed, %d failed, 0 skipped" % (suite.passed, suite.failed))
    return 1 if suite.failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
