#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The pages are true: links lead somewhere, samples compile and run, figures are those of benchmarks.md.

MT_CC names the compiler and MT_INCLUDES the folders of public headers, PYTHONPATH the packages' tree."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGES = sorted(page for where in ("*.md", "docs/**/*.md", "examples/*.md", ".github/**/*.md")
               for page in ROOT.glob(where))
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
# README's rows and the figures of benchmarks.md (ours, then torch's) that they show.
FIGURES = {
    "record an op": "torch_host_plain_ns",
    "record an op with shapes": "torch_host_shapes_ns",
    "record an op and its allocations": "torch_host_memory_ns",
    "record an op with its stack": "torch_host_stacks_ns",
    "`stop()` after a million ops": "torch_host_stop_1000k_ms",
    "`key_averages()` of a million ops": "torch_host_key_averages_1000k_s",
    "`export_chrome_trace()` of a million ops": "torch_host_export_1000k_s",
    "memory an op while recording": "torch_host_recording_bytes",
    "memory an op with its results": "torch_host_events_bytes",
}


def text_of(path):
    return path.read_text(encoding="utf-8")


def samples(path, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text_of(path), re.M | re.S)


def anchors(text):
    """What a heading can be linked by, as code hosts make it."""
    for title in re.findall(r"^#+ (.*)$", text, re.M):
        yield re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


class Links(unittest.TestCase):
    def test_each_leads_somewhere(self):
        count = 0
        for page in PAGES:
            for target in LINK.findall(re.sub(r"^```.*?^```$", "", text_of(page), flags=re.M | re.S)):
                if re.match(r"\w+:", target):
                    continue
                file, _, anchor = target.partition("#")
                to = (page.parent / file).resolve() if file else page
                with self.subTest(page=str(page.relative_to(ROOT)), link=target):
                    self.assertTrue(to.exists())
                    if anchor:
                        self.assertIn(anchor, set(anchors(text_of(to))))
                count += 1
        self.assertGreater(count, 100)

    def test_the_index_has_every_page(self):
        index = LINK.findall(text_of(ROOT / "docs/index.md"))
        for page in ROOT.glob("docs/*.md"):
            if page.name != "index.md":
                self.assertIn(page.name, index)


class Samples(unittest.TestCase):
    def test_c_compiles(self):
        compiler, includes = os.environ["MT_CC"], os.environ["MT_INCLUDES"].split(":")
        count = 0
        for page in PAGES:
            for sample in samples(page, "c"):
                if "#include" not in sample or "..." in sample:
                    continue  # a piece of a file
                done = subprocess.run([compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c",
                                       *(f"-I{folder}" for folder in includes), "-"],
                                      input=sample, capture_output=True, text=True, check=False)
                with self.subTest(page=page.name):
                    self.assertEqual(done.returncode, 0, done.stderr)
                count += 1
        self.assertGreaterEqual(count, 2)

    def test_the_first_c_sample_is_an_example(self):
        self.assertIn(samples(ROOT / "docs/guide-c.md", "c")[0], text_of(ROOT / "examples/hello.c"))

    def run_python(self, sample, **environment):
        with tempfile.TemporaryDirectory(prefix="mt_docs.") as folder:
            done = subprocess.run([sys.executable, "-c", sample], cwd=folder, capture_output=True, text=True,
                                  check=False, env={**os.environ, **environment})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_python_runs(self):
        out = self.run_python(samples(ROOT / "docs/guide-python.md", "python")[0])
        self.assertGreaterEqual(out.count("inner"), 3)  # two tables and an event
        out = self.run_python(samples(ROOT / "docs/from-torch.md", "python")[0])
        self.assertIn("aten::matmul", out)
        # README's is of stock torch, which torch_run.py (./dev peers host) runs; here it is of ours.
        sample = samples(ROOT / "README.md", "python")[0]
        for theirs, ours in (("import torch\n", "import mindtorch_v2 as torch\n"),
                             ("from mtprof.torch import", "from mindtorch_v2.profiler import")):
            self.assertEqual(sample.count(theirs), 1)
            sample = sample.replace(theirs, ours)
        self.assertIn("AddmmBackward0", self.run_python(sample))
        out = self.run_python(samples(ROOT / "docs/guide-npu.md", "python")[0], MINDTORCH_NPU="sim")
        self.assertIn("npuLaunchKernel", out)


class Readme(unittest.TestCase):
    def test_figures_are_those_of_the_benchmarks(self):
        measured = {name: (ours, torch) for name, ours, torch in
                    re.findall(r"^\| `(torch_host_\w+)` \|[^|]+\| ([\d.]+) \w+ \| ([\d.]+) \w+ \|",
                               text_of(ROOT / "docs/benchmarks.md"), re.M)}
        rows = re.findall(r"^\| ([^|]+) \| ([\d.]+) (?:n?m?s|B) \| ([\d.]+) (?:n?m?s|B) \|$",
                          text_of(ROOT / "README.md"), re.M)
        self.assertEqual([row[0] for row in rows], list(FIGURES))
        for name, *shown in rows:
            for here, there in zip(shown, measured[FIGURES[name]]):
                digits = len(here.partition(".")[2])
                self.assertEqual(here, f"{float(there):.{digits}f}", name)

    def test_the_chart_shows_the_table(self):
        done = subprocess.run([sys.executable, ROOT / "tools/make_chart.py", "--check"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_it_stays_a_front_door(self):
        self.assertLess(text_of(ROOT / "README.md").count("\n"), 120)
        for picture in (ROOT / "docs/pictures").iterdir():
            self.assertLess(picture.stat().st_size, 200_000, picture)


if __name__ == "__main__":
    unittest.main(verbosity=2)
