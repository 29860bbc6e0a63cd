#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The mtprof command, ended by signals at random moments, and past the limit on a file's size: it ends by the
signal or is done, at once, and leaves no partial file. Arguments: the command, a program that makes a
trace (make_trace)."""
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM, MAKER = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
del sys.argv[1:3]

FORMATS = ("chrome", "perfetto", "stacks", "folded", "speedscope", "csv", "execution", "averages")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# A file system without files that have no name.
NAMED = """\
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>
int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    int mode = va_arg(rest, int);
    va_end(rest);
    if ((flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
int open64(const char *path, int flags, ...) __attribute__((alias("open")));
"""


class Interrupted(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="mt_interrupted.")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.trace = cls.folder / "t.mtt"
        subprocess.run([MAKER, "file", cls.trace, "8000"], check=True, stdout=subprocess.DEVNULL)
        (cls.folder / "named.c").write_text(NAMED)
        subprocess.run(["cc", "-shared", "-fPIC", "named.c", "-o", "named.so"], cwd=cls.folder, check=True)
        cls.rng = random.Random(int(os.environ.get("MT_SEED", "7")))

    def setUp(self):
        self.out = self.folder / "out"
        self.out.mkdir()

    def tearDown(self):
        for path in self.out.iterdir():
            path.unlink()
        self.out.rmdir()

    def start(self, *words, named=False, **options):
        environment = dict(os.environ)
        if named:
            environment["LD_PRELOAD"] = str(self.folder / "named.so")
        return subprocess.Popen([PROGRAM, *map(str, words)], cwd=self.folder, env=environment,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)

    def kill_often(self, words, output, rounds, named):
        begin = time.perf_counter()
        self.assertIn(self.start(*words, named=named).wait(), (0, 1))  # 1: the trace has none of it
        whole = time.perf_counter() - begin
        for _ in range(rounds):
            number = self.rng.choice(SIGNALS)
            process = self.start(*words, named=named)
            time.sleep(self.rng.random() * whole)
            process.send_signal(number)
            self.assertIn(process.wait(timeout=60), (0, 1, -number), words)
            left = {path.name for path in self.out.iterdir()}
            self.assertLessEqual(left, {output}, words)

    def test_exports(self):
        for named in (False, True):
            for form in FORMATS:
                with self.subTest(form, named=named):
                    path = self.out / "x.gz"
                    self.kill_often(("export", form, self.trace, "-o", path), path.name, 4, named)
                    path.unlink(missing_ok=True)

    def test_recover(self):
        for named in (False, True):
            path = self.out / "x.mtt"
            self.kill_often(("recover", self.trace, "-o", path), path.name, 6, named)

    def test_reading(self):
        for command in ("report", "info", "check", "memory"):
            self.kill_often((command, self.trace), "", 4, False)

    def test_ignored_signals_stay_ignored(self):
        """nohup"""
        process = self.start("export", "csv", self.trace, "-o", self.out / "x.csv",
                             preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.send_signal(signal.SIGHUP)
        self.assertEqual(process.wait(timeout=60), 0)

    def test_limit_on_sizes(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

        for words in (("export", "csv", self.trace, "-o", self.out / "x.csv"),
                      ("export", "chrome", self.trace, "-o", self.out / "x.json.gz"),
                      ("recover", self.trace, "-o", self.out / "x.mtt")):
            for named in (False, True):
                done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, preexec_fn=limit,
                                      env=dict(os.environ, LD_PRELOAD=str(self.folder / "named.so") if named else ""))
                self.assertEqual(done.returncode, 1, done)
                self.assertIn("File too large", done.stderr)
                self.assertEqual(list(self.out.iterdir()), [])
        with open(self.out / "stdout", "wb") as file:
            done = subprocess.run([PROGRAM, "export", "csv", self.trace, "-o", "-"], stdout=file, text=True,
                                  stderr=subprocess.PIPE, preexec_fn=limit)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("File too large", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
