# SPDX-License-Identifier: Apache-2.0
"""check_exports.py EXPORT_SAMPLE [SEEDS]: what the exporters wrote is what the model's columns say.

Runs tests/support/programs/export_sample.c for some seeds (MT_SEED and the numbers after it) and compares
each file with
events.jsonl, by readers that are written from the formats' descriptions: Perfetto (pftrace_decode.py), speedscope,
folded
stacks, torch's export_stacks, CSV.
"""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections import Counter, defaultdict

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pftrace_decode
import pprof_decode

SAMPLE = sys.argv[1]
SEEDS = int(sys.argv[2]) if len(sys.argv) > 2 else 2
SEED = int(os.environ.get("MT_SEED", "20240607"), 0)

ASYNC, MATCHED = 1, 64
SCOPE, OP, RUNTIME, FUNCTION, STEP, LAUNCH, KERNEL, COPY, ANNOTATION = 0, 1, 2, 3, 4, 5, 8, 9, 13
KINDS = {0: "scope", 1: "op", 2: "runtime", 3: "function", 4: "step", 5: "launch", 8: "kernel", 9: "copy",
         13: "annotation", 16: "memory"}
MARKS = ("instant", "counter", "flow")
HOST = (SCOPE, OP, RUNTIME, FUNCTION, STEP)


def text(hexed):
    return bytes.fromhex(hexed).decode("utf-8", "replace")


def folded(name):
    if name == "":
        return "_"
    return "".join("_" if c <= " " or c in ";\x7f" else c for c in name)


class Run:
    """One run of the sample."""

    def __init__(self, seed):
        self.folder = tempfile.mkdtemp(prefix="mtprof_exports_")
        done = subprocess.run([SAMPLE, self.folder, str(seed)], capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(f"seed {seed}: {done.stderr}")
        self.reports = {}
        for line in done.stdout.splitlines():
            name, rest = line.split(": ")
            self.reports[name] = [int(part.split()[0]) for part in rest.split(", ")]
        with open(self.path("info.json")) as file:
            self.info = json.load(file)
        self.events = []
        with open(self.path("events.jsonl")) as file:
            for line in file:
                event = json.loads(line)
                event["name"] = text(event["name"])
                event["stack"] = [f"{text(f['file'])}({f['line']}): {text(f['function'])}" for f in event["stack"]]
                self.events.append(event)
        self.nested = [e for e in self.events if e["kind"] in HOST and not e["flags"] & ASYNC]
        self.work = [e for e in self.events if e["kind"] in (KERNEL, COPY)]

    def path(self, name):
        return os.path.join(self.folder, name)

    def close(self):
        if os.environ.get("MT_KEEP") != "1":
            shutil.rmtree(self.folder)


def place(e):
    return (e["tid"], e["name"], e["start"], e["end"], e["id"])


class Exports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.runs = [(seed, Run(seed)) for seed in range(SEED, SEED + SEEDS)]

    @classmethod
    def tearDownClass(cls):
        for _, run in cls.runs:
            run.close()

    def each(self, check):
        for seed, run in self.runs:
            with self.subTest(seed=seed, folder=run.folder):
                check(run)

    def same(self, expected, found, what):
        """Equal as multisets."""
        expected, found = Counter(expected), Counter(found)
        missing, extra = list((expected - found).elements()), list((found - expected).elements())
        self.assertFalse(missing or extra, f"{what}: not found {len(missing)} {missing[:3]}, "
                                           f"found instead {len(extra)} {extra[:3]}")

    def test_perfetto(self):
        self.each(self.check_perfetto)

    def check_perfetto(self, run):
        trace = pftrace_decode.load(run.path("t.pftrace"))
        threads = {uuid: t["thread"]["tid"] for uuid, t in trace.tracks.items() if "thread" in t}
        slices = [s for s in trace.slices if s["track"] in threads and "sampled" not in s["args"]]
        self.check_frames(slices)
        self.same([place(e) for e in run.nested],
                      [(threads[s["track"]], s["name"], s["time"], s["end"], s["args"]["correlation_id"])
                       for s in slices], "slices of threads")
        work = [s for s in trace.slices if s["categories"] in (["kernel"], ["gpu_memcpy"])]
        self.same([place(e)[1:] for e in run.work],
                      [(s["name"], s["time"], s["end"], s["args"]["correlation_id"]) for s in work],
                      "device work")
        self.check_tracks(run, trace, threads)
        self.check_flows(run, trace, work)
        # The first event of a thread is at its real time.
        self.assertEqual(trace.primary, pftrace_decode.MONOTONIC)
        self.assertEqual(trace.clocks[pftrace_decode.REALTIME] - trace.clocks[pftrace_decode.MONOTONIC],
                         run.info["real_offset"])

    def check_frames(self, slices):
        """The functions drawn around a slice are those of its stack, callers outside. Stacks of what is inside each
        other are made up here and need not fit: the outermost are compared."""
        compared = 0
        for s in slices:
            around, found, outermost = s["around"], [], True
            while around is not None:
                found += [around["name"]] if "sampled" in around["args"] else []
                outermost, around = outermost and "sampled" in around["args"], around["around"]
            if "stack" in s["args"] and outermost:  # lines of callers move on
                compared += 1
                self.assertEqual(*(re.sub(r"\(\d+\)", "", text) for text in (";".join(found), s["args"]["stack"])))
        self.assertGreater(compared, 0)

    def check_tracks(self, run, trace, threads):
        process = [t for t in trace.tracks.values() if "process" in t]
        self.assertGreater(len(process[0]["process"]["process_name"]), 0)
        self.assertEqual([t["process"]["pid"] for t in process], [run.info["pid"]])
        for uuid in threads:
            self.assertEqual(trace.tracks[uuid]["parent_uuid"], process[0]["uuid"])
            self.assertRegex(trace.tracks[uuid]["thread"]["thread_name"], r'^worker "\d"$')
        self.assertEqual(len(threads), 3)
        queues = {t["name"] for t in trace.tracks.values() if trace.tracks.get(t.get("parent_uuid"), {}).get(
            "name", "").startswith("NPU")}
        self.assertLessEqual({"queue 0", "queue 1"}, queues)
        values = defaultdict(list)
        for _, uuid, value in trace.counters:
            values[trace.tracks[uuid]["name"]].append(value)
        self.assertEqual(Counter(values["mark"]), Counter(3 * list(range(-30, 30))))
        self.assertEqual(Counter(values["train step"]), Counter(3 * [0.25 * i for i in range(60)]))
        self.assertGreater(len(values["memory allocated (CPU)"]), 0)
        metadata = [e for e in trace.instants if e["name"] == "trace metadata"]
        self.assertEqual(metadata[0]["args"]["host"], 'a"b')
        hosts = sum(e["kind"] in HOST + (LAUNCH,) for e in run.events)
        self.assertEqual(metadata[0]["args"]["mtprof_begins"], hosts)
        self.assertFalse([key for key in metadata[0]["args"] if "lost" in key])

    def check_flows(self, run, trace, work):
        launches = {s["args"]["correlation_id"]: s for s in trace.slices if s["name"] == "launchKernel"}
        for s in work:
            launch = launches[s["args"]["correlation_id"]]
            self.assertTrue(set(s["flows"]) & set(launch["flows"]), "kernel without an arrow from its launch")
        for (name, _), ends in trace.arrows.items():
            self.assertTrue(all(s["end"] > s["time"] for _, s in ends), name)
        ops = [s for s in trace.slices if s["name"] == "aten::add"]
        self.assertGreater(len(ops), 0)
        stacks = {e["id"]: ";".join(e["stack"]) for e in run.nested if e["stack"]}
        for s in ops:
            self.assertRegex(s["args"]["input_dims"], r"^\[\[\d, 3\], \[\]\]$")
            self.assertEqual(s["args"]["input_types"], '["float", "Scalar"]')
            self.assertEqual(s["args"]["concrete_inputs"], '["", "0.5"]')
            self.assertEqual(s["args"].get("stack", ""), stacks.get(s["args"]["correlation_id"], ""))
            self.assertEqual((s["args"]["flops"], s["args"]["memory_before"]), (1234, 1 << 20))
        self.assertTrue(any(s["args"].get("memory_after") == 2 << 20 for s in ops))
        self.assertTrue(any(s["args"].get("answer") == -42 for s in trace.slices))

    def test_trace_processor(self):
        tool = shutil.which("trace_processor_shell") or shutil.which("trace_processor")
        if tool is None:
            self.skipTest("no trace_processor_shell in PATH: the file was checked by pftrace_decode.py only")
        for _, run in self.runs:
            trace = pftrace_decode.load(run.path("t.pftrace"))
            with open(run.path("query.sql"), "w") as file:
                file.write("select 'slices', count(*) from slice;\n")
            done = subprocess.run([tool, "-q", run.path("query.sql"), run.path("t.pftrace")], capture_output=True,
                                  text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f'"slices",{len(trace.slices) + len(trace.instants)}', done.stdout.replace(" ", ""))

    def test_csv(self):
        self.each(self.check_csv)

    def check_csv(self, run):
        with open(run.path("t.csv"), encoding="utf-8", newline="") as file:
            data = file.read()
        self.assertTrue(data.endswith("\r\n"))
        rows = list(csv.DictReader(data.splitlines(keepends=True), strict=True))
        for row in rows:
            self.assertNotIn(None, row)
            self.assertEqual(int(row["duration_ns"]), int(row["end_ns"]) - int(row["start_ns"]))
        def key(e):
            name = e["name"].replace("\0", "\ufffd")
            return (KINDS[e["kind"]], name, e["tid"], e["start"], e["end"], e["self"], e["id"])
        expected = [key(e) for e in run.events]
        marks = [r for r in rows if r["kind"] in MARKS]
        rows = [r for r in rows if r["kind"] not in MARKS]
        self.same_counters(marks)
        self.assertEqual(sum(r["kind"] == "instant" for r in marks), 3 * 60)
        self.assertEqual(Counter(r["phase"] for r in marks if r["kind"] == "flow"),
                         {"start": 60, "step": 60, "end": 60})
        self.assertTrue(any('"answer": -42' in r["metadata"] for r in rows))
        found = [(r["kind"], r["name"], int(r["thread"]), int(r["start_ns"]), int(r["end_ns"]), int(r["self_ns"]),
                  int(r["correlation_id"] or 0)) for r in rows]
        self.same(expected, found, "lines of CSV")
        stacks = {e["id"]: ";".join(e["stack"]) for e in run.nested}
        for row in rows:
            if row["kind"] in ("op", "scope") and row["correlation_id"]:
                self.assertEqual(row["stack"], stacks.get(int(row["correlation_id"]), ""))

    def same_counters(self, marks):
        values = defaultdict(list)
        for row in marks:
            values[row["name"]] += [float(row["value"])] if row["kind"] == "counter" else []
        self.assertEqual(Counter(values["mark"]), Counter(3 * list(range(-30, 30))))
        self.assertEqual(Counter(values["train step"]), Counter(3 * [0.25 * i for i in range(60)]))

    def test_speedscope(self):
        self.each(self.check_speedscope)

    def check_speedscope(self, run):
        for name, events in (("cpu", run.nested), ("device", run.work)):
            with open(run.path(f"{name}.speedscope.json"), encoding="utf-8") as file:
                data = json.load(file)
            self.assertEqual(data["$schema"], "https://www.speedscope.app/file-format-schema.json")
            frames = [f["name"] for f in data["shared"]["frames"]]
            self.assertEqual(len(frames), len(set(frames)) if "\ufffd" not in "".join(frames) else len(frames))
            found = []
            for profile in data["profiles"]:
                self.assertEqual((profile["type"], profile["unit"]), ("evented", "nanoseconds"))
                last, stack = profile["startValue"], []
                for event in profile["events"]:
                    self.assertGreaterEqual(event["at"], last)
                    last = event["at"]
                    if event["type"] == "O":
                        stack.append(event)
                    else:
                        begin = stack.pop()
                        self.assertEqual(begin["frame"], event["frame"])
                        start = run.info["start"]
                        found.append((frames[event["frame"]], begin["at"] + start, event["at"] + start))
                self.assertEqual(stack, [])
                self.assertEqual(last, profile["endValue"])
            report = run.reports[f"{name}.speedscope.json"]
            self.assertEqual(report[0], len(found))
            self.same([place(e)[1:4] for e in events], found, f"{name}: speedscope")

    def test_stacks(self):
        self.each(self.check_stacks)

    def check_stacks(self, run):
        for name, metric in (("cpu", "self"), ("device", "self_device")):
            expected = [";".join(folded(f) for f in reversed(e["stack"])) + f" {e[metric] // 1000}"
                        for e in run.events if e["stack"] and e[metric] >= 1000]
            with open(run.path(f"{name}.stacks"), encoding="utf-8", newline="\n") as file:
                self.assertEqual(file.read().split("\n")[:-1], expected)
            self.assertGreater(len(expected), 10)

    def test_folded(self):
        self.each(self.check_folded)

    def sums_of_paths(self, run, metric):
        """{path: what was spent there and not deeper}"""
        paths = {}  # where an event's children go on; asynchronous scopes are around nothing
        sums = Counter()
        for i, e in enumerate(run.events):
            base = ()
            if e["stack"]:
                base = tuple(reversed(e["stack"]))
            elif 0 <= e["parent"] < i:
                base = paths[e["parent"]]
            own = base + (e["name"],)
            paths[i] = base if e["flags"] & ASYNC else own
            if e["kind"] in HOST + (LAUNCH,) or not e["flags"] & MATCHED and e["kind"] != ANNOTATION:
                sums[own] += e[metric]
        return sums

    def test_pprof(self):
        self.each(self.check_pprof)

    def check_pprof(self, run):
        with open(run.path("t.pb"), "rb") as file:
            profile = pprof_decode.decode(file.read())
        types = [name for name, _ in profile["types"]]
        self.assertEqual(types[:3], ["events", "cpu", "device"])
        self.assertEqual(profile["default"], "cpu")
        self.assertEqual(dict(profile["types"])["cpu"], "nanoseconds")
        paths = [tuple(f"{file}({line}): {name}" if file else name for name, file, line in path)
                 for path, _ in profile["samples"]]
        self.assertEqual(len(set(paths)), len(paths))
        for column, metric in ((1, "self"), (2, "self_device")):
            found = Counter({path: values[column] for path, (_, values) in zip(paths, profile["samples"])})
            self.assertEqual(+found, +Counter(self.sums_of_paths(run, metric)))
        hosts = sum(e["kind"] in HOST and not e["flags"] & ASYNC for e in run.events)
        self.assertEqual(sum(values[0] for _, values in profile["samples"]), hosts)

    def check_folded(self, run):
        for name, metric in (("cpu", "self"), ("device", "self_device")):
            expected, found = Counter(), Counter()
            for path, value in self.sums_of_paths(run, metric).items():
                expected[";".join(map(folded, path))] += value
            with open(run.path(f"{name}.folded"), encoding="utf-8", newline="\n") as file:
                lines = file.read().split("\n")[:-1]
            for line in lines:
                stack, value = line.rsplit(" ", 1)
                found[stack] += int(value)
            self.assertEqual(+found, +expected)


if __name__ == "__main__":
    print(f"MT_SEED={SEED}")
    unittest.main(argv=sys.argv[:1], verbosity=2)
