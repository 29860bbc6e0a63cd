# SPDX-License-Identifier: Apache-2.0
"""memory_check.py MEMORY_DEMO: the memory timeline's files as another program reads them.

The demo records a run whose memory is known (support/fake_training.h); the three forms must agree with it and with
each other. The page's script is run by node where there is one.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

DEMO = sys.argv[1]
CATEGORIES = ["Parameters", "Optimizer state", "Inputs", "Temporaries", "Activations", "Gradients", "Autograd detail",
              "Unknown"]
# A page for node: elements that take anything, a canvas that counts what is drawn on it.
STUB = """
const calls = {};
const any = () => new Proxy(function () {}, {
  get: (target, key) => key === Symbol.toPrimitive ? () => 0 : key in target ? target[key] : any(),
  set: (target, key, value) => { target[key] = value; return true; },
  apply: () => any(),
});
const context = new Proxy({}, {
  get: (target, key) => key === 'measureText' ? () => ({width: 40})
    : (...values) => {
      calls[key] = (calls[key] || 0) + 1;
      for (const v of values) { if (typeof v === 'number' && !Number.isFinite(v)) {
        throw new Error(key + ' gets ' + values); } }
    },
  set: () => true,
});
const handlers = {};
const element = () => ({style: {}, clientWidth: 1000, clientHeight: 460, offsetWidth: 150, children: [],
  querySelector: () => canvas, getBoundingClientRect: () => ({left: 0}), getContext: () => context,
  addEventListener: (name, f) => { handlers[name] = f; }, setPointerCapture() {},
  append(...c) { this.children.push(...c); },
  prepend() {}, replaceChildren(...c) { this.children = c; }, setAttribute() {}, insertRow() { return element(); }});
const canvas = element();
const elements = {chart: element(), tip: element(), legend: element(), note: element()};
globalThis.window = {devicePixelRatio: 2, addEventListener() {}};
globalThis.document = {getElementById: id => elements[id], createElement: element};
"""
DRIVE = """
handlers.pointermove({clientX: 500});
if (elements.tip.style.display !== 'block') { throw new Error('no values under the pointer'); }
handlers.pointerdown({clientX: 300, pointerId: 1});
handlers.pointermove({clientX: 600});
handlers.pointerup({});
handlers.wheel({ctrlKey: true, clientX: 400, deltaY: -1, preventDefault() {}});
handlers.dblclick({});
console.log(JSON.stringify({calls, legend: elements.legend.children.length}));
"""


def states(raw):
    """The sizes after each row, and the time of the row."""
    sizes = [0] * 8
    for time_ns, action, count, category in raw:
        sizes[category] += count
        yield time_ns, action, count, list(sizes)


class Timeline(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        out = subprocess.run([DEMO, cls.folder.name, "4", "3"], capture_output=True, text=True, check=True).stdout
        cls.layers, cls.steps, cls.batch, cls.width = map(int, out.split())
        with open(os.path.join(cls.folder.name, "timeline.raw.json"), encoding="utf-8") as file:
            cls.raw_text = file.read()
        with open(os.path.join(cls.folder.name, "timeline.memory.json"), encoding="utf-8") as file:
            cls.plot_text = file.read()
        with open(os.path.join(cls.folder.name, "timeline.html"), encoding="utf-8") as file:
            cls.page = file.read()
        cls.raw = json.loads(cls.raw_text)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_raw_rows(self):
        self.assertEqual(json.dumps(self.raw), self.raw_text)  # as Python itself writes it
        live = [r for r in self.raw if r[1] != 1]
        self.assertEqual(self.raw[:self.layers], [[-1, 1, self.width * self.width * 4, 0]] * self.layers)
        self.assertEqual([r[0] for r in live], sorted(r[0] for r in live))
        for time_ns, action, count, _ in live:
            self.assertGreater(time_ns, 10**18)
            self.assertIn((action, count > 0), [(2, True), (3, True), (3, False), (4, False)])
        changes = [r for r in live if r[1] == 3]
        for old, new in zip(changes[::2], changes[1::2]):
            self.assertEqual((old[0], old[2]), (new[0], -new[2]))
        for *_, sizes in states(self.raw):
            self.assertGreaterEqual(min(sizes), 0)

    def test_known_peaks(self):
        activation, parameter = self.batch * self.width * 4, self.width * self.width * 4
        peaks = [max(sizes[k] for *_, sizes in states(self.raw)) for k in range(8)]
        self.assertEqual(peaks, [self.layers * parameter, self.layers * parameter, activation, activation,
                                 2 * self.layers * activation + 4 + activation, self.layers * parameter,
                                 2 * activation, 0])

    def test_plot_is_the_sum_of_the_rows(self):
        # Allocations of a microsecond are one row, releases another: no peak falls between two rows.
        rows, way = [], 0
        for (time_ns, action, size, sizes), (*_, category) in zip(states(self.raw), self.raw):
            if action == 3 and size < 0:
                before = category
                continue
            mine = {1: 0, 2: 1, 3: 2 if action == 3 and before != category else 0, 4: -1}[action]
            time_us = -1 if time_ns == -1 else time_ns // 1000
            if not rows or rows[-1][0] != time_us or (mine and way and mine != way):
                rows.append([time_us, None])
                way = 0
            rows[-1][1] = [0] + sizes
            way = mine or way
        self.assertEqual(rows[0][0], -1)
        rows[0][0] = rows[1][0]
        self.assertEqual(json.dumps([[t for t, _ in rows], [s for _, s in rows]]), self.plot_text)
        self.assertEqual([max(s[k + 1] for _, s in rows) for k in range(8)],
                         [max(sizes[k] for *_, sizes in states(self.raw)) for k in range(8)])

    def data(self):
        """What the page gives to its script."""
        found = re.search(r"const DATA = \{labels: (.*?),\nwhole: (.*?), states: (\d+), stride: (\d+),\npeak: (.*?),\nsteps: (.*?),\n"
                          r"rows: (.*?)\};\n", self.page, re.S)
        return [json.loads(part) for part in found.groups()]

    def test_page_shows_the_same(self):
        labels, whole, count, stride, peak, steps, rows = self.data()
        self.assertEqual(stride, 1)
        self.assertEqual(labels, CATEGORIES)
        self.assertTrue(whole)
        self.assertEqual(count, len(rows))
        self.assertEqual([name for _, name in steps], [f"ProfilerStep#{i}" for i in range(self.steps)])
        shown = [s for _, action, size, s in states(self.raw) if action != 1 and not (action == 3 and size < 0)]
        self.assertEqual([row[1:] for row in rows[1:]], shown)
        self.assertEqual(sum(peak[1:]), max(map(sum, shown)))
        self.assertIn(f"peak <b>{sum(peak[1:]) / 1024:.2f} KiB</b>" if sum(peak[1:]) < 2**20
                      else f"peak <b>{sum(peak[1:]) / 2**20:.2f} MiB</b>", self.page)

    def test_page_asks_for_nothing(self):
        for word in ("http:", "https:", "src=", "href=", "@import", "url(", "fetch(", "XMLHttpRequest", "localStorage"):
            self.assertNotIn(word, self.page)

    def test_script_runs(self):
        node = shutil.which("node")
        if node is None:
            self.skipTest("no node here: the page's script was not run")
        script = re.search(r"<script>\n(.*)</script>", self.page, re.S).group(1)
        done = subprocess.run([node, "-"], input=STUB + script + DRIVE, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertGreater(result["calls"]["rect"], 1000)
        self.assertGreater(result["calls"]["fillText"], 10)
        self.assertEqual(result["legend"], 7)  # all but Unknown


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
