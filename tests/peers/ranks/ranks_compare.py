#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mtprof merge and mtprof stragglers on jobs of stock torch, and HolisticTraceAnalysis on the same traces.

    ranks_compare.py FOLDER MTPROF [hta]

FOLDER has the jobs ddp, pipeline and slow (rank 2 is late) of ranks_train.py, all on one machine: its clocks are one,
so that what merge says of them is known. With hta, how long each rank was in each kind of collective by HTA.
"""
import collections
import json
import os
import subprocess
import sys
from pathlib import Path

SLOW_RANK, SLOW_FROM, RANKS = 2, 4, 4


class Suite:
    def __init__(self):
        self.passed = self.failed = 0

    def check(self, what, holds, seen=""):
        self.passed += bool(holds)
        self.failed += not holds
        if not holds:
            print(f"FAILED {what}: {str(seen)[:600]}")


def ask(mtprof, *words):
    done = subprocess.run([mtprof, *map(str, words), "--json"], stdout=subprocess.PIPE, text=True)
    return done.returncode, json.loads(done.stdout)


def clocks(suite, mtprof, folder, kind, ending):
    traces = sorted(folder.glob(f"rank*.{ending}"))
    merged = folder / "merged.json"
    code, answer = ask(mtprof, "merge", *traces, "-o", merged)
    what = f"{kind} {ending}"
    suite.check(f"{what}: exit status", code == 0, code)
    suite.check(f"{what}: ranks", [rank["rank"] for rank in answer["ranks"]] == list(range(RANKS)), answer["ranks"])
    clock = answer["clock"]
    suite.check(f"{what}: method", clock["method"] == "collectives", clock)
    for rank in answer["ranks"]:  # one machine, one clock: whatever is found must be within the bound
        length = rank["end_ns"] - rank["start_ns"]
        off = [rank["offset_ns"], rank["offset_ns"] + rank["drift_ppm"] * 1e-6 * length]
        if ending == "mtt":
            suite.check(f"{what}: clock of rank {rank['rank']}", max(map(abs, off)) <= rank["bound_ns"] + 1000,
                        (off, rank["bound_ns"]))
    done = subprocess.run([mtprof, "check", "-q", merged], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    suite.check(f"{what}: merged file", done.returncode == 0, done.stdout)
    print(f"{what}: {clock['shared_collectives']} collectives, residual {clock['residual_ns']} ns, "
          f"bound {clock['bound_ns']} ns")
    return answer


def stragglers(suite, mtprof, folder):
    code, answer = ask(mtprof, "stragglers", *sorted(folder.glob("rank*.mtt")))
    found = answer["stragglers"]
    suite.check("slow: the straggler", code == 3 and found and found[0]["rank"] == SLOW_RANK, found)
    suite.check("slow: since", found and found[0]["since_step"] == SLOW_FROM, found)
    causes = [cause["name"] for one in found[:1] for cause in one["causes"][:1]]
    suite.check("slow: the cause", causes == ["load_batch"], found)


def hta(suite, folder, answer):
    from hta.trace_analysis import TraceAnalysis
    traces = {rank: str(folder / f"rank{rank}.json") for rank in range(RANKS)}
    analysis = TraceAnalysis(trace_files=traces, trace_dir=str(folder), include_last_profiler_step=True)
    texts = analysis.t.symbol_table.get_sym_table()
    ours = collections.Counter()
    for collective in answer["collectives"]:
        for part in collective["ranks"]:
            ours[part["rank"], collective["name"]] += part["wait_ns"] + part["transfer_ns"]
    theirs = collections.Counter()
    for rank in range(RANKS):
        frame = analysis.t.get_trace(rank)
        for name, length in zip(frame["name"], frame["dur"]):
            if (rank, texts[name]) in ours:
                theirs[rank, texts[name]] += float(length) * 1000
    for key, ns in ours.items():
        suite.check(f"HTA: time of rank {key[0]} in {key[1]}", abs(ns - theirs[key]) <= 0.01 * ns + 50000,
                    (ns, theirs[key]))


def main(folder, mtprof, *words):
    os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
    suite, folder = Suite(), Path(folder)
    answers = {}
    for kind in ("ddp", "pipeline", "slow"):
        for ending in ("json", "mtt"):
            answers[kind] = clocks(suite, mtprof, folder / kind, kind, ending)
    stragglers(suite, mtprof, folder / "slow")
    if "hta" in words:
        hta(suite, folder / "ddp", answers["ddp"])
    print(f"{suite.passed} passed, {suite.failed} failed, 0 skipped")
    return 1 if suite.failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
