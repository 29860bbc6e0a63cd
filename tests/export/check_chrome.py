# SPDX-License-Identifier: Apache-2.0
"""check_chrome.py MAKE_CHROME [RUNS]: what the Chrome exporter writes, read by Python's json
and by the rules of its readers.

Runs tests/support/programs/make_chrome.c, which records names, keys and values of any bytes,
for MT_SEED and the numbers after it.
"""

import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from collections import Counter, defaultdict

MAKE = sys.argv[1]
RUNS = int(sys.argv[2]) if len(sys.argv) > 2 else 2
SEED = int(os.environ.get("MT_SEED", "20240811"), 0)
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
INTEGERS = ("External id", "Ev Idx", "Sequence number", "Fwd thread id", "correlation", "stream", "device", "context",
            "queued", "bytes", "correlation_id", "runtime_tid", "step", "parent_id", "Record function id")


def no_constant(text):
    raise ValueError(f"{text} is no JSON")


class Trace:
    def __init__(self, seed):
        self.seed = seed
        with tempfile.TemporaryDirectory(prefix="mtprof_chrome_") as folder:
            done = subprocess.run([MAKE, folder, str(seed)], capture_output=True, text=True)
            if done.returncode != 0:
                raise AssertionError(f"seed {seed}: {done.stderr}")
            self.report = done.stdout
            self.text = self.read(folder, "torch.json")
            self.doc = json.loads(self.text, parse_constant=no_constant)
            self.mindtorch = json.loads(self.read(folder, "mindtorch.json"), parse_constant=no_constant)
            self.packed = None
            path = os.path.join(folder, "torch.json.gz")
            if os.path.exists(path):
                with gzip.open(path, "rt", encoding="utf-8") as file:
                    self.packed = json.load(file)
            with open(os.path.join(folder, "names.txt")) as file:
                self.names = [bytes.fromhex(line.strip()).decode("utf-8", "replace") for line in file]
        self.events = self.doc["traceEvents"]
        self.spans = [e for e in self.events if e["ph"] == "X" and e.get("cat") != "Trace"]

    @staticmethod
    def read(folder, name):
        with open(os.path.join(folder, name), encoding="utf-8") as file:  # strict: not UTF-8 is an error
            return file.read()


def ns(microseconds):
    return round(microseconds * 1000)


class CheckChrome(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.traces = [Trace(SEED + i) for i in range(RUNS)]
        print(f"check_chrome: seeds {SEED}..{SEED + RUNS - 1}\n{cls.traces[0].report}", end="", file=sys.stderr)

    def each(self):
        for trace in self.traces:
            self.seed = trace.seed
            yield trace

    def _formatMessage(self, msg, standard):
        return super()._formatMessage(f"seed {getattr(self, 'seed', SEED)}: {msg}", standard)

    def test_top_level(self):
        for t in self.each():
            keys = list(t.doc)
            self.assertEqual(t.doc["schemaVersion"], 1)
            self.assertEqual(keys[-1], "traceName")
            self.assertEqual(keys[-2], "traceEvents")
            for key in ("deviceProperties", "trace_id", "distributedInfo", "displayTimeUnit", "baseTimeNanoseconds",
                        "mtprof_health", "mtprof_version"):
                self.assertIn(key, keys)
            for flag in ("profile_memory", "with_stack", "record_shapes", "with_modules", "with_flops"):
                self.assertEqual(t.doc[flag], 1)
            self.assertEqual(re.findall(r'"rank":\s+(\d+)', t.text), ["3"])  # how HTA looks for it
            self.assertEqual(t.doc["baseTimeNanoseconds"] % (7889238 * 10**9), 0)
            for key, value in zip(t.names, reversed(t.names)):
                self.assertEqual(t.doc[key], value)
            self.assertEqual(t.doc["mtprof_health"]["lost"], 0)

    def test_gzip_is_the_same(self):
        for t in self.each():
            if t.packed is None:
                self.assertIn("neither", t.report)
            else:
                self.assertEqual(t.packed["traceEvents"], t.doc["traceEvents"])

    def test_first_and_last(self):
        for t in self.each():
            self.assertEqual(t.events[0]["ph"], "X")
            self.assertIn(t.events[0]["cat"], ("cpu_op", "user_annotation"))
            self.assertEqual(t.events[-1]["name"], "Record Window End")
            self.assertIn("op", {e.get("cat") for e in t.mindtorch["traceEvents"]})

    def test_numbers(self):
        for t in self.each():
            for e in t.spans:
                for key in ("ts", "dur", "pid", "tid"):
                    self.assertIn(type(e[key]), (int, float), e)
                self.assertGreaterEqual(e["ts"], 0)
                self.assertGreaterEqual(e["dur"], 0)
                for key in INTEGERS:
                    if key in e.get("args", {}):
                        self.assertIs(type(e["args"][key]), int, (key, e))
                        self.assertLess(e["args"][key], 2**53)
            for match in re.findall(r'"(?:ts|dur)": ([^,}]*)', t.text):
                self.assertRegex(match, r"^\d+\.\d{3}$")

    def test_names_come_back(self):
        for t in self.each():
            scopes = {e["name"] for e in t.spans if e["cat"] == "user_annotation"}
            self.assertLessEqual(scopes - {"mark", "task"}, set(t.names))
            self.assertGreater(len(scopes), 10)
            self.assertIn("\ufffd", "".join(scopes))

    def test_tracks_nest(self):
        for t in self.each():
            tracks = defaultdict(list)
            for e in t.spans:
                if e["cat"] != "gpu_user_annotation":  # 1 ns wider on purpose
                    start = ns(e["ts"])
                    tracks[e["pid"], e["tid"]].append((start, -(start + ns(e["dur"])), e["name"]))
            self.assertGreater(len(tracks), 4)
            for key, spans in tracks.items():
                stack = []
                for start, end, name in sorted(spans):
                    while stack and stack[-1] <= start:
                        stack.pop()
                    if stack:
                        self.assertLessEqual(-end, stack[-1], (key, name))
                    stack.append(-end)

    def test_ids_join(self):
        for t in self.each():
            ops = {e["args"]["External id"]: e for e in t.spans if e["cat"] in ("cpu_op", "user_annotation")}
            calls = {e["args"]["correlation"]: e for e in t.spans if e["cat"] == "privateuse1_runtime"}
            work = [e for e in t.spans if e["cat"] in DEVICE]
            self.assertGreater(len(work), 50)
            for e in work:
                args = e["args"]
                self.assertEqual((e["pid"], e["tid"]), (args["device"], args["stream"]))
                self.assertEqual(args["context"], 1)
                self.assertIn(args["External id"], ops)
                self.assertEqual(calls[args["correlation"]]["args"]["External id"], args["External id"])
            indices = [e["args"]["Ev Idx"] for e in t.events if "Ev Idx" in e.get("args", {})]
            self.assertEqual(len(indices), len(set(indices)))
            self.assertEqual(sorted(indices), list(range(len(indices))))

    def test_flows_bind(self):
        for t in self.each():
            places = Counter((e["pid"], e["tid"], e["ts"]) for e in t.spans)
            starts, ends = {}, {}
            for e in t.events:
                if e.get("cat") in ("ac2g", "fwdbwd"):
                    self.assertIn((e["pid"], e["tid"], e["ts"]), places, e)
                    (starts if e["ph"] == "s" else ends)[e["cat"], e["id"]] = e
            self.assertEqual(set(starts), set(ends))
            kinds = Counter(cat for cat, _ in starts)
            self.assertEqual(kinds["ac2g"], sum(e["cat"] in DEVICE for e in t.spans))
            self.assertEqual(kinds["fwdbwd"], 3 * 150)

    def test_ops_have_their_args(self):
        for t in self.each():
            ops = [e["args"] for e in t.spans if e["cat"] == "cpu_op"]
            self.assertEqual(len(ops), 3 * 150 * 3)
            for args in ops:
                self.assertEqual(args["runtime_name"], "dispatch_kernel")
                self.assertEqual(args["correlation_id"], args["External id"])
                self.assertEqual(args["device_type"], "NPU")
                self.assertEqual(len(args["Input Dims"]), 3)
                self.assertEqual(args["input_shapes"], args["Input Dims"])
                self.assertEqual(args["Input Strides"], [[3, 1], [], []])
                self.assertEqual(args["Input type"][1:], ["Scalar", ""])
                self.assertIn(args["Input type"][0], t.names)
                self.assertIn(args["Concrete Inputs"][2], t.names)
                self.assertIn(args["Module Hierarchy"], t.names)
                self.assertIn(args["overload_name"], t.names)
                if "cpu_memory_allocated_after" in args:
                    self.assertEqual(args["cpu_memory_allocated_delta"],
                                     args["cpu_memory_allocated_after"] - args["cpu_memory_allocated_before"])
                if "stack" in args:
                    self.assertEqual(args["Call stack"].count(";"), len(args["stack"]))
            self.assertTrue(any("stack" in args for args in ops))

    def test_python_spans(self):
        for t in self.each():
            spans = [e for e in t.spans if e["cat"] == "python_function"]
            self.assertGreater(len(spans), 100)
            ids = {e["args"]["Python id"]: e for e in spans}
            self.assertEqual(len(ids), len(spans))
            for e in spans:
                self.assertEqual(e["args"]["sampled"], 1)
                parent = e["args"]["Python parent id"]
                if parent is not None:
                    around = ids[parent]
                    self.assertLessEqual(ns(around["ts"]), ns(e["ts"]))
                    self.assertGreaterEqual(ns(around["ts"]) + ns(around["dur"]), ns(e["ts"]) + ns(e["dur"]))

    def test_async_pairs(self):
        for t in self.each():
            begins = {e["id"]: e for e in t.events if e["ph"] == "b"}
            ends = {e["id"]: e for e in t.events if e["ph"] == "e"}
            self.assertEqual(set(begins), set(ends))
            self.assertEqual(len(begins), 3 * 150)
            for key, e in begins.items():
                self.assertGreaterEqual(ends[key]["ts"], e["ts"])
                self.assertEqual(e["args"]["async"], 1)

    def test_metadata_events(self):
        for t in self.each():
            named = {(e["pid"], e["tid"]) for e in t.events if e["name"] == "thread_name"}
            used = {(e["pid"], e["tid"]) for e in t.spans}
            self.assertLessEqual(used, named)
            labels = {e["pid"]: e["args"]["labels"] for e in t.events if e["name"] == "process_labels"}
            self.assertEqual(set(labels), {pid for pid, _ in used})
            self.assertEqual(labels[0], "NPU 0")

    def test_flavor_mindtorch(self):
        for t in self.each():
            events = t.mindtorch["traceEvents"]
            cats = Counter(e.get("cat") for e in events)
            self.assertEqual(cats["op"], 3 * 150 * 3)
            self.assertNotIn("cpu_op", cats)
            self.assertGreater(cats["metadata"], 0)
            calls = {e["args"]["correlation_id"]: e for e in events if e.get("cat") == "runtime" and "op_name" in e["args"]}
            for e in events:
                if e.get("cat") == "op":
                    call = calls[e["args"]["correlation_id"]]
                    self.assertEqual((call["ts"], call["dur"], call["tid"]), (e["ts"], e["dur"], e["tid"]))
                    self.assertEqual(call["args"]["op_name"], e["name"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
