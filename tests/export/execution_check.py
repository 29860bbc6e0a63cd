# SPDX-License-Identifier: Apache-2.0
"""execution_check.py MEMORY_DEMO: an execution trace as another program reads it, against the structure of torch's.

TOP, NODE, SIDE and ATTRS are what torch 2.11 wrote (schema 1.1.1-chakra.0.0.4):
the keys, their order and the types of the values.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

DEMO = sys.argv[1]
TOP = {"schema": str, "pid": int, "time": str, "start_ts": int, "nodes": list, "finish_ts": int}
NODE = {"id": int, "name": str, "ctrl_deps": int, "inputs": dict, "outputs": dict, "attrs": list}
SIDE = ["values", "shapes", "types", "strides"]
ATTRS = [("rf_id", "uint64"), ("fw_parent", "uint64"), ("seq_id", "int64"), ("scope", "uint64"), ("tid", "uint64"),
         ("fw_tid", "uint64"), ("op_schema", "string"), ("kernel_backend", "string"), ("kernel_file", "string"),
         ("tensor_range", "string")]
PROCESS = "[pytorch|profiler|execution_trace|process]"
THREAD = "[pytorch|profiler|execution_trace|thread]"


class Execution(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            out = subprocess.run([DEMO, folder, "3", "2"], capture_output=True, text=True, check=True).stdout
            with open(os.path.join(folder, "trace.et.json"), encoding="utf-8") as file:
                cls.trace = json.load(file)
        cls.layers, cls.steps, cls.batch, cls.width = map(int, out.split())
        cls.nodes = {node["id"]: node for node in cls.trace["nodes"]}

    def attr(self, node, name):
        return next(a["value"] for a in node["attrs"] if a["name"] == name)

    def test_structure_is_torchs(self):
        self.assertEqual([(k, type(v)) for k, v in self.trace.items()], list(TOP.items()))
        self.assertEqual(self.trace["schema"], "1.1.1-chakra.0.0.4")
        self.assertRegex(self.trace["time"], r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$")
        self.assertLessEqual(self.trace["start_ts"], self.trace["finish_ts"])
        for node in self.trace["nodes"]:
            self.assertEqual([(k, type(v)) for k, v in node.items()], list(NODE.items()))
            for side in (node["inputs"], node["outputs"]):
                self.assertEqual(list(side), SIDE)
                self.assertEqual(len({len(values) for values in side.values()}), 1)
            self.assertEqual([(a["name"], a["type"]) for a in node["attrs"]], ATTRS)
            for a in node["attrs"]:
                self.assertEqual(list(a), ["name", "type", "value"])
                self.assertIs(type(a["value"]), str if a["type"] == "string" else int)

    def test_nodes_are_a_tree(self):
        self.assertEqual(len(self.nodes), len(self.trace["nodes"]))
        self.assertEqual(sorted(self.nodes), list(range(1, len(self.nodes) + 1)))
        self.assertEqual(self.nodes[1]["name"], PROCESS)
        self.assertEqual([n["id"] for n in self.trace["nodes"] if n["name"] == THREAD], [2])
        for number, node in self.nodes.items():
            self.assertIn(node["ctrl_deps"], self.nodes)
            self.assertLess(node["ctrl_deps"], number + (number == 1))
        ids = [self.attr(n, "rf_id") for n in self.nodes.values() if n["name"] not in (PROCESS, THREAD)]
        self.assertEqual(len(set(ids)), len(ids))
        self.assertEqual([self.attr(self.nodes[i], "rf_id") for i in sorted(self.nodes) if self.attr(self.nodes[i], "rf_id")],
                         sorted(ids))

    def test_ops_know_their_tensors(self):
        steps = [n for n in self.nodes.values() if n["name"].startswith("ProfilerStep#")]
        self.assertEqual(len(steps), self.steps)
        self.assertEqual({n["ctrl_deps"] for n in steps}, {2})
        forward = [n for n in self.trace["nodes"] if n["name"] == "aten::mm" and self.attr(n, "seq_id") >= 0]
        self.assertEqual(len(forward), self.layers * self.steps)
        made = {}
        for node in self.trace["nodes"]:
            for value in node["outputs"]["values"]:
                made.setdefault(value[0], node["id"])
        for node in forward:
            x, w = node["inputs"]["values"]
            self.assertEqual(node["inputs"]["shapes"], [[self.batch, self.width], [self.width, self.width]])
            self.assertEqual(node["inputs"]["types"], ["Tensor(float)", "Tensor(float)"])
            self.assertEqual((x[3:], w[3:]), ([self.batch * self.width, 4, "npu:0"], [self.width ** 2, 4, "npu:0"]))
            self.assertIn(x[0], made)
            self.assertEqual(len(node["outputs"]["values"][0]), 6)
        backward = [n for n in self.trace["nodes"] if n["name"] == "MmBackward0"]
        self.assertEqual({self.attr(n, "scope") for n in backward}, {1})
        self.assertEqual(sorted(self.attr(n, "seq_id") for n in backward),
                         sorted(self.attr(n, "seq_id") for n in forward))
        for node in backward:
            self.assertEqual(self.attr(node, "fw_parent"), node["ctrl_deps"])  # as torch: the wrapper on that thread


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
