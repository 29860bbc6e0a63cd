#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""tools/run_gpu.py without a GPU: what hangs is ended with all that it started, and counts as failed."""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
TOOL = SOURCE / "tools/run_gpu.py"
TESTS = ("test_cupti", "test_cupti_edges", "test_cupti_floor", "test_cupti_graphs", "test_cupti_layout",
         "test_cupti_trouble", "gpu_cuda")


def load():
    spec = importlib.util.spec_from_file_location("run_gpu", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class RunGpu(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "tests").mkdir()

    def program(self, name, script):
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    @staticmethod
    def has_ended(child):
        """A signal that kills takes effect some time after it was sent."""
        try:
            if child.read_text().split(")")[1].split()[0] in "ZX":
                return True
        except OSError:
            return True
        time.sleep(0.01)
        return False

    def test_a_program_that_hangs_is_ended_with_its_children(self):
        path = self.program("hangs", "sleep 1000 &\necho $!\nwait")
        status, output = load().run([path], dict(os.environ), 2)
        self.assertIsNone(status)
        child = pathlib.Path(f"/proc/{int(output)}/stat")
        self.assertTrue(any(self.has_ended(child) for _ in range(3000)), f"{child} is there after 30 s")

    def test_a_program_that_ends_has_its_status(self):
        path = self.program("ends", "echo words; exit 3")
        self.assertEqual(load().run([path], dict(os.environ), 30), (3, "words\n"))

    def check_all(self, limit):
        done = subprocess.run([sys.executable, TOOL, self.folder, self.program("python", "echo 2 passed, 0 failed"),
                               "--limit", str(limit)], capture_output=True, text=True, timeout=100, check=False)
        return done.returncode, done.stdout

    def test_the_sum(self):
        for name in TESTS:
            self.program(f"tests/{name}", "echo 3 passed, 0 failed")
        self.assertEqual(self.check_all(60)[1].splitlines()[-1], "23 passed, 0 failed")
        self.program("tests/test_cupti", "echo 3 passed, 1 failed; exit 1")
        self.program("tests/test_cupti_graphs", "echo 3 passed, 0 failed; exit 1")  # at its very end
        self.program("tests/gpu_cuda", "echo no GPU; exit 77")
        status, output = self.check_all(60)
        self.assertEqual(output.splitlines()[-1], "20 passed, 3 failed")
        self.assertEqual(status, 1)

    def test_time_that_is_over(self):
        for name in TESTS:
            self.program(f"tests/{name}", "echo 3 passed, 0 failed")
        self.program("tests/test_cupti", "sleep 1000")
        status, output = self.check_all(2)
        self.assertEqual(status, 1)
        self.assertIn("FAIL test_cupti: it took longer than", output)
        self.assertRegex(output.splitlines()[-1], r"^\d+ passed, [1-9]\d* failed$")


if __name__ == "__main__":
    unittest.main(verbosity=0)
