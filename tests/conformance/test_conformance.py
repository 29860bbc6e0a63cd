#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The conformance test can fail: for each promise that the broken backend breaks (broken_rows.def) the check that
looks at it must say so, and where it breaks none all must pass.

usage: test_conformance.py PROGRAM BROKEN_BACKEND
"""
import functools
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROWS = re.compile(r'^X\((\w+), "(.*)"\)$', re.M)
HERE = pathlib.Path(__file__).resolve().parent
PROGRAM, BACKEND = sys.argv[1:3]


def run(*arguments, broken="none", **more):
    """(exit status, output) of the program with that promise broken."""
    environment = dict(os.environ, MINDTORCH_NPU_BREAK=broken, **more)
    done = subprocess.run([PROGRAM, *arguments], env=environment, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


@functools.lru_cache(maxsize=None)
def run_whole():
    """What the program says of the backend that breaks nothing."""
    return run("--strict", BACKEND)


class Conformance(unittest.TestCase):
    def test_nothing_broken(self):
        status, output = run_whole()
        self.assertEqual(status, 0, output)
        self.assertRegex(output, r"\n\d+ passed, 0 failed, \d+ skipped\n$")

    def test_without_holds(self):
        status, output = run("--strict", BACKEND, MINDTORCH_NPU_NO_HOLD="1")
        self.assertEqual(status, 0, output)
        self.assertIn("cannot hold a stream back", output)

    def test_each_promise(self):
        rows = ROWS.findall((HERE / "broken_rows.def").read_text())
        self.assertGreater(len(rows), 40)
        _, fine = run_whole()
        for name, check in rows:
            with self.subTest(promise=name):
                only = re.sub(": (crashes|does not end)$", "", check)
                self.assertTrue("pass  " + only in fine, "fails without a broken promise too")
                seconds = "1" if "does not end" in check else "100"
                status, output = run("--strict", "--only", only, "--seconds", seconds, BACKEND, broken=name)
                self.assertEqual(status, 1, output)
                self.assertIn("FAIL  " + check, output)

    def test_wrong_use(self):
        self.assertEqual(run()[0], 2)
        self.assertEqual(run("--what", BACKEND)[0], 2)
        self.assertEqual(run(BACKEND, BACKEND)[0], 2)
        self.assertEqual(run("--only", "no such check", BACKEND)[0], 1)

    def test_no_backend(self):
        status, output = run("./nothing.so")
        self.assertEqual(status, 1)
        self.assertIn("./nothing.so cannot be opened", output)
        status, output = run(BACKEND, broken="what")
        self.assertEqual(status, 1)
        self.assertIn("names no promise", output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
