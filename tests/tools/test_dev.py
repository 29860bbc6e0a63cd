#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The front door: its help, its refusals, and that it says what is missing instead of guessing."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
COMMANDS = "demo test bench lint docs fmt asan tsan fuzz peers gpu conformance python setup help".split()


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
        self.assertEqual(done.stdout.split(), [f"{SOURCE}/build/dev/python:{SOURCE}/tests/python:x"])

    def test_help_of_a_command_builds_nothing(self):
        for command, said in (("demo", "--steps"), ("test", "--case"), ("bench", "--quick"), ("lint", "clang-tidy")):
            done = dev(command, "--help")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(said, done.stdout)
            self.assertNotIn("configure", done.stdout)

    def test_ci_refuses_an_unknown_stage(self):
        done = subprocess.run([SOURCE / ".ci/run", "test", "frobnicate"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("usage: .ci/run [lint", done.stderr)

    def test_setup_refuses_an_unknown_group(self):
        done = dev("setup", "frobnicate")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no such group of packages: frobnicate", done.stderr)

    def test_pip_gets_its_metadata_without_a_build(self):
        sys.path.insert(0, str(SOURCE / "tools"))
        import wheel_backend
        with tempfile.TemporaryDirectory(prefix="mt_metadata.") as name, \
                unittest.mock.patch("subprocess.run", side_effect=AssertionError("something was built")):
            info = wheel_backend.prepare_metadata_for_build_wheel(name)
            text = (pathlib.Path(name) / info / "METADATA").read_text()
            self.assertRegex(info, r"^mindtorch-[\d.]+\.dist-info$")
            self.assertIn("Name: mindtorch\n", text)
            self.assertTrue((pathlib.Path(name) / info / "WHEEL").exists())

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

    def test_setup_as_root_leaves_nothing_that_is_roots(self):
        with tempfile.TemporaryDirectory(prefix="mt_dev.") as name:
            folder = pathlib.Path(name)
            (folder / "tools").mkdir()
            (folder / "bin").mkdir()
            shutil.copy(SOURCE / "dev", folder)
            (folder / "tools/apt-packages.txt").write_text("build no-such-package no-such-program\n")
            for program, text in (("apt-get", f"echo $* >>{folder}/asked"), ("id", "echo 0")):
                (folder / "bin" / program).write_text(f"#!/bin/sh\n{text}\n")
                (folder / "bin" / program).chmod(0o755)
            done = dev("setup", "build", folder=folder, PATH=f"{folder}/bin:{os.environ['PATH']}")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex((folder / "asked").read_text(), r"update -q\ninstall -y .* no-such-package\n$")
            self.assertEqual(sorted(path.name for path in folder.iterdir()), ["asked", "bin", "dev", "tools"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
