#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How `mtprof export parquet` and `mtprof query` grow with the number of ranks: a synthetic job, JSON lines.

    PYTHONPATH=build/release/python bench_dataset.py MAKE_RANKS WORK [--ranks 10,100,1000] [--events 1000000]
                                                     [--copies 1] [--jobs 2] [--memory 4GB] [--keep]

MAKE_RANKS is tests/make_ranks of a build, the interpreter one that has pyarrow and DuckDB. The ranks are made, exported
and deleted some at a time, so WORK needs room for the data set and for GROUP traces. Where the number of ranks reaches
one of --ranks, every question is asked; --copies N asks them again over a data set in which each rank is there N times,
as links under other numbers, for more events than there is time to make. Times are wall seconds and processor seconds
of the command and its children, memory is that of its largest process. A thousand ranks take an hour on two busy cores:
it is no part of ./dev bench.
"""
import argparse
import glob
import json
import os
import shutil
import subprocess
import sys
import time

GROUP = 20  # ranks that are made and exported at a time
SELECTS = {  # beside the canned questions
    "sum": "select count(*), sum(dur_ns) from events",
    "by_name": "select name, count(*), sum(dur_ns), sum(self_ns) from ops group by name order by name",
    "by_rank": "select rank, max(dur_ns) from ops where name = 'aten::mm' group by rank order by 2 desc limit 5",
    "one_step": "select rank, sum(self_ns) from ops where step = 3 group by rank order by 2 desc limit 5",
}


def measure(command):
    """(standard output, {"wall_s", "cpu_s", "rss_mib"}) of a command that must succeed."""
    started = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{' '.join(command[:6])} … ended with {child.returncode}")
    return output, {"wall_s": round(time.monotonic() - started, 2), "rss_mib": usage.ru_maxrss // 1024,
                    "cpu_s": round(usage.ru_utime + usage.ru_stime, 2)}


def say(**fields):
    print(json.dumps(fields), flush=True)


class Export:
    """Ranks into a data set, and what that has cost so far."""

    def __init__(self, given, dataset):
        self.given, self.dataset, self.done = given, dataset, 0
        self.sums = {"events": 0, "bytes": 0, "wall_s": 0, "cpu_s": 0, "rss_mib": 0}

    def some(self, count):
        """The next ranks."""
        traces = os.path.join(self.given.work, "traces")
        os.makedirs(traces)
        subprocess.run([self.given.make_ranks, traces, "--ranks", str(max(self.given.ranks)), "--events",
                        str(self.given.events), "--steps", str(self.given.steps), "--first", str(self.done), "--count",
                        str(count)], check=True)
        paths = sorted(os.path.join(traces, name) for name in os.listdir(traces) if name.endswith(".mtt"))
        output, cost = measure([sys.executable, "-m", "mtprof", "export", "parquet", *paths, "-o", self.dataset,
                                "--json", "--jobs", str(self.given.jobs)])
        made = json.loads(output)
        shutil.rmtree(traces)
        if len(made["added"]) != count:
            sys.exit(f"{len(made['added'])} of {count} ranks were added")
        for name in ("events", "bytes"):
            self.sums[name] += made[name]
        for name in ("wall_s", "cpu_s"):
            self.sums[name] += cost[name]
        self.sums["rss_mib"] = max(self.sums["rss_mib"], cost["rss_mib"])
        self.done += count

    def until(self, ranks):
        while self.done < ranks:
            self.some(min(GROUP, ranks - self.done))
        events = self.sums["events"]
        say(what="export", ranks=ranks, **{name: round(value, 2) for name, value in self.sums.items()},
            bytes_per_event=round(self.sums["bytes"] / events, 2),
            ns_per_event=round(self.sums["cpu_s"] / events * 1e9, 1))


def link_copies(dataset, copies):
    """Each rank N times: its files are links, its manifest has the new number."""
    folders = [os.path.dirname(path) for path in glob.glob(os.path.join(dataset, "job=*/rank=*/start=*/_trace.json"))]
    for number, folder in enumerate(folders * (copies - 1)):
        rank = len(folders) + number
        job, _, start = folder.split(os.sep)[-3:]
        made = os.path.join(dataset, job, f"rank={rank}", start)
        os.makedirs(made)
        for name in os.listdir(folder):
            if name.endswith(".parquet"):
                os.link(os.path.join(folder, name), os.path.join(made, name))
        with open(os.path.join(folder, "_trace.json"), encoding="utf-8") as file:
            manifest = json.load(file)
        with open(os.path.join(made, "_trace.json"), "w", encoding="utf-8") as file:
            json.dump({**manifest, "rank": rank, "identity": f"copy {rank}"}, file)


def ask(given, dataset, ranks, events):
    """Every question twice: the first run finds what the second has in the page cache."""
    listed = subprocess.run([sys.executable, "-m", "mtprof", "query", "--list"], check=True, stdout=subprocess.PIPE)
    questions = {**SELECTS, **{line.split()[0]: line.split()[0] for line in listed.stdout.decode().splitlines()}}
    for name, text in questions.items():
        for run in ("first", "second"):
            output, cost = measure([sys.executable, "-m", "mtprof", "query", text, dataset, "--json", "--memory",
                                    given.memory])
            answer = json.loads(output)
            say(what="query", question=name, run=run, ranks=ranks, events=events, **cost, rows=len(answer["rows"]),
                traces=answer["traces"], ns_per_event=round(cost["cpu_s"] / events * 1e9, 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("make_ranks")
    parser.add_argument("work")
    parser.add_argument("--ranks", default="10,100,1000", type=lambda text: sorted(map(int, text.split(","))))
    parser.add_argument("--events", default=1_000_000, type=int)
    parser.add_argument("--steps", default=500, type=int)
    parser.add_argument("--copies", default=1, type=int)
    parser.add_argument("--jobs", default=2, type=int)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--keep", action="store_true", help="keep the data set")
    given = parser.parse_args()
    dataset = os.path.join(given.work, "dataset")
    if os.path.exists(dataset):
        sys.exit(f"{dataset} is there already")
    export = Export(given, dataset)
    try:
        for ranks in given.ranks:
            export.until(ranks)
            ask(given, dataset, ranks, export.sums["events"])
        if given.copies > 1:
            link_copies(dataset, given.copies)
            ask(given, dataset, ranks * given.copies, export.sums["events"] * given.copies)
    finally:
        shutil.rmtree(os.path.join(given.work, "traces"), ignore_errors=True)
        if not given.keep:
            shutil.rmtree(dataset, ignore_errors=True)


if __name__ == "__main__":
    main()
