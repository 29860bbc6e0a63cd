# SPDX-License-Identifier: Apache-2.0
"""Programs as `python` runs them and as `mtprof run` does, side by side."""
import os
import re
import signal
import subprocess
import sys
import textwrap
import time

import mtprof
from support_folder import FolderTest

TIMEOUT_S = 120
ADDRESS = re.compile(r"0x[0-9a-f]+")
PYTHON = [sys.executable]
RUN = [sys.executable, "-m", "mtprof", "run"]


class RunTest(FolderTest):
    """Runs programs in the test's folder."""

    def write(self, name, text):
        """A file of the folder; its name."""
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))
        return name

    def execute(self, *words, **options):
        """(exit status, standard output, standard error) of a command."""
        if "input" not in options:
            options.setdefault("stdin", subprocess.DEVNULL)
        done = subprocess.run(words, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=TIMEOUT_S, check=False, **options)
        output, errors = (ADDRESS.sub("0x", text.decode(errors="replace")) for text in (done.stdout, done.stderr))
        return done.returncode, output, errors

    def run_mtprof(self, *words, **options):
        """The same of `mtprof run`."""
        return self.execute(*RUN, *words, **options)

    def run_both(self, *program, variants=((), ("--calls", "--stacks")), whole=True, **options):
        """A program's (exit status, output, errors), which are the same without us and with us.

        whole: the traces are whole, and their programs ended.
        """
        expected = self.execute(*PYTHON, *program, **options)
        for variant in variants:
            with self.subTest(program=program, options=variant):
                found = self.run_mtprof("-q", "-o", "trace.mtt", *variant, *program, **options)
                self.assertEqual(found, expected)
                if whole:
                    self.assertTrue(mtprof.load(self.path("trace.mtt")).health().ok)
                    os.unlink(self.path("trace.mtt"))
        return expected

    def interrupt_both(self, *program, number=signal.SIGINT, variants=((), ("--calls",))):
        """The same for a program that prints a line and then gets a signal."""
        expected = self.interrupt(PYTHON, program, number)
        for variant in variants:
            with self.subTest(program=program, options=variant):
                found = self.interrupt([*RUN, "-q", "-o", "trace.mtt", *variant], program, number)
                self.assertEqual(found, expected)
                self.assertIsNotNone(mtprof.load(self.path("trace.mtt")).health())
        return expected

    def interrupt(self, prefix, program, number):
        """(exit status, output, errors) of a program that gets a signal after its first line."""
        with subprocess.Popen([*prefix, *program], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as process:
            try:
                first = process.stdout.readline()
                time.sleep(0.5)  # it is in the call that is to be interrupted
                process.send_signal(number)
                output, errors = process.communicate(timeout=TIMEOUT_S)
            finally:
                process.kill()
        return process.returncode, first + output, errors
