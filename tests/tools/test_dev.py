#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The front door: its help, its refusals, and that it says what is missing instead of guessing."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
COMMANDS = "demo test bench lint fmt asan tsan fuzz peers conformance python setup help".split()


def dev(*arguments, folder=SOURCE, **environment):
    return subprocess.run([folder / "dev", *arguments], capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})


class Dev(unittest.TestCase):
    def test_help_names_every_command(self):
        for arguments in ((), ("help",), ("--help",)):
            done = dev(*arguments)
            self.assertEqual(done.returncode, 0)
            self.assertEqual(re.findall(r"^  (\w+) ", done.stdout, re.M), COMMANDS)

    def test_unknown_command(self):
        done = dev("frobnicate")
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown command 'frobnicate'", done.stderr)
        self.assertIn("usage:", done.stderr)

    def test_python_sees_our_folders(self):
        done = dev("python", "-c", "import os; print(os.environ['PYTHONPATH'])", PYTHONPATH="x")
        self.assertEqual(done.stdout.split(), [f"{SOURCE}/build/dev/python:x"])

    def test_missing_packages_are_named(self):
        with tempfile.TemporaryDirectory(prefix="mt_dev.") as name:
            folder = pathlib.Path(name)
            (folder / "tools").mkdir()
            (folder / "bin").mkdir()
            shutil.copy(SOURCE / "dev", folder)
            (folder / "tools/apt-packages.txt").write_text("lint no-such-package no-such-program\n")
            for program in ("sh", "dirname", "id", "grep"):
                (folder / "bin" / program).symlink_to(shutil.which(program))
            done = dev("fmt", folder=folder, PATH=str(folder / "bin"))  # no apt-get there
            self.assertEqual(done.returncode, 1)
            self.assertIn("missing packages: no-such-package", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
