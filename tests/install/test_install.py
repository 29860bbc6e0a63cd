#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Installs a build into an empty folder, moves it, and uses it as a stranger would: with pkg-config
(shared and static), from C++, and with find_package(). The argument is the build folder."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else SOURCE / "build/dev")

PROGRAM = """\
#include <mtprof/version.h>
#include <stdio.h>
int main(void)
{
    return puts(mtprof_version_string()) < 0;
}
"""

TENSORS = """\
#include <mindtorch/mindtorch.h>
#include <stdio.h>
int main(void)
{
    mt_tensor *x, *y;
    mt_scalar sum;
    const int64_t size = 3;
    if (mt_full(&size, 1, mt_real(2), &x) || mt_mul(x, x, &y) || mt_sum(y, NULL, 0, false, &x) ||
        mt_item(x, &sum)) {
        puts(mt_last_error()->message);
        return 1;
    }
    return printf("%g\\n", sum.of.real) < 0;
}
"""

PROJECT = """\
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package(mtprof %s REQUIRED)
add_executable(use_shared main.c)
target_link_libraries(use_shared PRIVATE mtprof::mtprof)
add_executable(use_static main.c)
target_link_libraries(use_static PRIVATE mtprof::mtprof_static)
"""


def output(*command, **options):
    """What a command prints; its whole output is in the error if it fails."""
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}")
    return done.stdout.strip()


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="mt_install.")
        cls.addClassCleanup(cls.folder.cleanup)
        top = pathlib.Path(cls.folder.name)
        output("cmake", "--install", BUILD, "--prefix", top / "first")
        cls.prefix = top / "moved"
        (top / "first").rename(cls.prefix)  # nothing may remember where it was installed
        cls.work = top / "work"
        cls.work.mkdir()
        (cls.work / "main.c").write_text(PROGRAM)
        cls.environment = dict(os.environ, PKG_CONFIG_PATH=str(cls.prefix / "lib/pkgconfig"))
        cls.version = cls.pkg_config("--modversion")[0]

    @classmethod
    def pkg_config(cls, *arguments):
        return output("pkg-config", *arguments, "mtprof", env=cls.environment).split()

    def says_version(self, program, **environment):
        self.assertEqual(output(program, env=dict(os.environ, **environment)), self.version)

    def test_files(self):
        for name in ("lib/libmtprof.so", "lib/libmtprof.so.0", "lib/libmtprof.a",
                     "lib/pkgconfig/mtprof.pc", "include/mtprof/version.h",
                     "lib/cmake/mtprof/mtprofConfig.cmake", "bin/mtprof",
                     "share/man/man1/mtprof.1", "share/bash-completion/completions/mtprof"):
            self.assertTrue((self.prefix / name).exists(), name)

    def test_every_include_of_a_header_is_installed(self):
        for header in (self.prefix / "include").rglob("*.h"):
            for name in re.findall(r"^\s*#\s*include <((?:mtprof|mindtorch)/[^>]+)>", header.read_text(), re.M):
                self.assertTrue((self.prefix / "include" / name).exists(),
                                f"{header.name} includes {name}, which is not in "
                                "the PUBLIC_HEADERS of a sources.cmake")

    def test_nothing_remembers_the_folders_of_the_build(self):
        for path in self.prefix.rglob("*"):
            if path.suffix in (".pc", ".cmake", ".h"):
                for place in (SOURCE, BUILD.resolve(), self.folder.name):
                    self.assertNotIn(str(place), path.read_text(), path.name)

    def test_soname_and_flags(self):
        shown = output("readelf", "-dW", self.prefix / "lib/libmtprof.so")
        self.assertIn("[libmtprof.so.0]", shown)
        self.assertIn("NODELETE", shown)
        needed = set(re.findall(r"NEEDED.*\[([\w.-]+)\]", shown))
        self.assertLessEqual(needed, {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2",
                                      "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"})

    def test_pkg_config_shared(self):
        output("cc", "main.c", "-o", "shared", *self.pkg_config("--cflags", "--libs"), cwd=self.work)
        self.says_version(self.work / "shared", LD_LIBRARY_PATH=str(self.prefix / "lib"))

    def test_pkg_config_shared_cxx(self):
        (self.work / "main.cpp").write_text(PROGRAM)
        output("c++", "-std=c++17", "main.cpp", "-o", "cxx", *self.pkg_config("--cflags", "--libs"),
               cwd=self.work)
        self.says_version(self.work / "cxx", LD_LIBRARY_PATH=str(self.prefix / "lib"))

    def test_pkg_config_static(self):
        libs = self.pkg_config("--static", "--libs")
        libs[libs.index("-lmtprof")] = "-l:libmtprof.a"
        output("cc", "main.c", "-o", "static", *self.pkg_config("--cflags"), *libs, cwd=self.work)
        self.says_version(self.work / "static")
        self.assertNotIn("libmtprof", output("readelf", "-d", self.work / "static"))

    def configure(self, version, name):
        project = self.work / name
        project.mkdir()
        (project / "main.c").write_text(PROGRAM)
        (project / "CMakeLists.txt").write_text(PROJECT % version)
        output("cmake", "-G", "Ninja", "-S", project, "-B", project / "build",
               f"-DCMAKE_PREFIX_PATH={self.prefix}")
        return project / "build"

    def test_find_package(self):
        build = self.configure(self.version, "user")
        output("cmake", "--build", build)
        self.says_version(build / "use_shared")
        self.says_version(build / "use_static")

    def test_tensors(self):
        """libmindtorch, with pkg-config and find_package."""
        self.assertTrue((self.prefix / "include/mindtorch/ops.h").exists())
        (self.work / "tensors.c").write_text(TENSORS)
        flags = output("pkg-config", "--cflags", "--libs", "mindtorch", env=self.environment).split()
        output("cc", "tensors.c", "-o", "tensors", *flags, cwd=self.work)
        environment = dict(os.environ, LD_LIBRARY_PATH=str(self.prefix / "lib"))
        self.assertEqual(output(self.work / "tensors", env=environment), "12")
        project = self.work / "tensors_project"
        project.mkdir()
        (project / "main.c").write_text(TENSORS)
        (project / "CMakeLists.txt").write_text(
            PROJECT.replace("mtprof", "mindtorch") % self.version)
        output("cmake", "-G", "Ninja", "-S", project, "-B", project / "build",
               f"-DCMAKE_PREFIX_PATH={self.prefix}")
        output("cmake", "--build", project / "build")
        self.assertEqual(output(project / "build/use_shared"), "12")
        self.assertEqual(output(project / "build/use_static"), "12")

    def test_find_package_refuses_another_minor_version(self):
        with self.assertRaises(AssertionError):
            self.configure("0.99", "stranger")


if __name__ == "__main__":
    unittest.main(verbosity=2)
