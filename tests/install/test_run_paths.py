#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""No code is taken from the current directory: where the loader looks for the libraries of each program
and library of the build tree, of an installed tree and of a wheel, and what is loaded in a folder full
of libraries by the names that ours are looked up by. The argument is the build folder."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else SOURCE / "build/dev").resolve()

STRANGER = """\
#include <unistd.h>
__attribute__((constructor)) static void run(void)
{
    (void)!write(2, "STRANGER\\n", 9);
}
"""

# Everything that is opened by name: products, convolutions, gzip (ours and the command's), the accelerator.
PROGRAM = """\
import os, sys
os.chdir(sys.argv[1])
import mindtorch_v2 as torch
(torch.ones(300, 300) @ torch.ones(300, 300)).sum().item()
torch.nn.functional.conv2d(torch.ones(1, 3, 64, 64), torch.ones(8, 3, 3, 3)).sum().item()
assert torch.npu.is_available(), "no accelerator"
with torch.profiler.profile() as prof:
    torch.ones(3).sum()
prof.export_chrome_trace("trace.json.gz")
prof.save("trace.mtt")
"""

LEAVES = """\
#include <mindtorch/backend.h>
#include <mindtorch/mindtorch.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    if (argc != 2 || chdir(argv[1]) != 0 || mt_backend_load("sim") != MT_OK) {
        puts(mt_last_error()->message);
        return 1;
    }
    puts("loaded");
    return 0;
}
"""


def output(*command, **options):
    """What a command prints; its whole output is in the error if it fails."""
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


def binaries(folder):
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.suffix not in (".o", ".a"):
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def run_paths(folder):
    """[(file, "/a:$ORIGIN")] of those that have one."""
    files = list(binaries(folder))
    shown = output("readelf", "-dW", *files) if files else ""
    found, name = [], str(files[0]) if len(files) == 1 else None
    for line in shown.splitlines():
        name = line.removeprefix("File: ") if line.startswith("File: ") else name
        path = re.search(r"\((?:RPATH|RUNPATH)\)\s+.*\[(.*)\]", line)
        if path:
            found.append((name, path.group(1)))
    return files, found


class RunPaths(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="mt_run_paths.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def holds(self, folder, only=None):
        files, found = run_paths(folder)
        self.assertTrue(files)
        for name, path in found:
            for entry in path.split(":"):
                self.assertTrue(entry.startswith(("/", "$ORIGIN")), f"{name}: {path!r}")
                self.assertTrue(only is None or entry == only, f"{name}: {path!r}")
        return found

    def test_build_tree(self):
        found = self.holds(BUILD)
        self.assertTrue(any("libmindtorch.so" in name for name, _ in found), "nothing was looked at")

    def test_installed_tree(self):
        output("cmake", "--install", BUILD, "--prefix", self.folder)
        self.holds(self.folder, only="$ORIGIN")

    def test_wheel(self):
        output("cmake", "--install", BUILD, "--component", "python", "--prefix", self.folder)
        self.assertEqual(len(self.holds(self.folder, only="$ORIGIN")), 8)

    def test_nothing_of_the_current_directory_is_loaded(self):
        (self.folder / "stranger.c").write_text(STRANGER)
        names = ("libopenblas.so.0", "libdnnl.so.2", "libisal.so.2", "libz.so.1", "libmtprof.so.0",
                 "libmindtorch.so.0", "libmindtorch_sim.so")
        output("cc", "-shared", "-fPIC", "stranger.c", "-o", names[0], cwd=self.folder)
        for name in names[1:]:
            os.link(self.folder / names[0], self.folder / name)
        environment = dict(os.environ, PYTHONPATH=str(BUILD / "python"), MINDTORCH_NPU="sim")
        said = output(sys.executable, "-c", PROGRAM, self.folder, env=environment)
        self.assertNotIn("STRANGER", said)
        said = output(BUILD / "cli/mtprof", "export", "chrome", "trace.mtt", "-o", "again.json.gz",
                      cwd=self.folder)
        self.assertNotIn("STRANGER", said)

    def test_a_program_that_has_left_its_folder(self):
        """Its accelerator is next to it, not in the folder that its relative name means by now."""
        output("cmake", "--install", BUILD, "--prefix", self.folder)
        libraries = self.folder / "lib"
        elsewhere = self.folder / "elsewhere" / "lib"
        elsewhere.mkdir(parents=True)
        (elsewhere / "stranger.c").write_text(STRANGER)
        output("cc", "-shared", "-fPIC", "stranger.c", "-o", "libmindtorch_sim.so", cwd=elsewhere)
        (libraries / "leaves.c").write_text(LEAVES)
        output("cc", "leaves.c", "-o", "leaves", "-I../include", "-L.", "-l:libmindtorch.a", "-l:libmtprof.a",
               "-lm", "-lpthread", "-ldl", cwd=libraries)
        for name in ("./leaves", "lib/leaves"):
            said = output("sh", "-c", f"exec {name} {elsewhere if name[0] == '.' else elsewhere.parent}",
                          cwd=libraries if name[0] == "." else self.folder)
            self.assertEqual(said, "loaded\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
