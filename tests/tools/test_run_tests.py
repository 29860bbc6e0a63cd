#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Gives tools/run_tests.py build folders of small shell programs and looks at how it counts them."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

RUNNER = pathlib.Path(__file__).resolve().parent.parent.parent / "tools/run_tests.py"


class RunTests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="mt_runner.")
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)

    def run_with(self, tests, *options):
        """tests: name -> shell text, or (labels, timeout, shell text)."""
        lines = []
        for name, spec in tests.items():
            labels, timeout_s, text = spec if isinstance(spec, tuple) else ("", 0, spec)
            lines.append("\t".join((name, labels, str(timeout_s), "sh", "-c", text)) + "\n")
        (self.build / "tests.txt").write_text("".join(lines))
        done = subprocess.run([sys.executable, RUNNER, self.build, *options], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def last(self, *arguments):
        status, text = self.run_with(*arguments)
        return status, text.splitlines()[-1]

    def test_sum(self):
        status, text = self.run_with({"a": "echo 3 passed, 0 failed, 1 skipped", "b": "true"})
        self.assertEqual((status, text.splitlines()[-1]), (0, "4 passed, 0 failed, 1 skipped"))
        self.assertIn("[ok] a (3 passed, 1 skipped, ", text)

    def test_output_is_shown_for_failures_only(self):
        status, text = self.run_with({"good": "echo quiet", "bad": "echo loud; exit 1"})
        self.assertEqual(status, 1)
        self.assertIn("loud\n[FAIL] bad (1 failed, ", text)
        self.assertNotIn("quiet", text)
        self.assertIn("\nfailed: bad\n1 passed, 1 failed, 0 skipped\n", text)
        self.assertIn("quiet", self.run_with({"good": "echo quiet"}, "-v")[1])

    def test_nothing_ran(self):
        self.assertEqual(self.last({}), (1, "0 passed, 0 failed, 0 skipped"))
        self.assertEqual(self.last({"a": "true"}, "other")[0], 1)

    def test_exact_names(self):
        tests = {"a": "true", "ab": "false", "c": "echo no reason; exit 77"}
        self.assertEqual(self.last(tests, "a"), (1, "1 passed, 1 failed, 0 skipped"))
        self.assertEqual(self.last(tests, "a", "--exact"), (0, "1 passed, 0 failed, 0 skipped"))
        self.assertEqual(self.last(tests, "-j2", "--exact", "a"), (0, "1 passed, 0 failed, 0 skipped"))
        self.assertEqual(self.last(tests, "c", "--exact"), (77, "0 passed, 0 failed, 1 skipped"))

    @unittest.skipUnless("MT_BINARY_DIR" in os.environ, "not run on a build folder")
    def test_ctest_knows_every_test(self):
        build = pathlib.Path(os.environ["MT_BINARY_DIR"])
        ours = [line.split("\t")[0] for line in (build / "tests.txt").read_text().splitlines()]
        listed = subprocess.run(["ctest", "--test-dir", build, "-N"], capture_output=True, text=True, check=True)
        self.assertEqual(re.findall(r"^ +Test +#\d+: (\S+)$", listed.stdout, re.M), ours)
        one = subprocess.run(["ctest", "--test-dir", build, "-R", "^example_hello$"], capture_output=True, text=True,
                             check=False)
        self.assertIn("100% tests passed, 0 tests failed out of 1", one.stdout)

    def test_exit_status_without_a_counted_failure(self):
        self.assertEqual(self.last({"a": "echo 2 passed, 0 failed, 0 skipped; exit 23"}),
                         (1, "2 passed, 1 failed, 0 skipped"))
        self.assertEqual(self.last({"a": "kill -SEGV $$"})[0], 1)

    def test_missing_program(self):
        (self.build / "tests.txt").write_text("a\t\t0\t/no/such/program\n")
        done = subprocess.run([sys.executable, RUNNER, self.build], capture_output=True, check=False)
        self.assertEqual(done.returncode, 1)

    def test_timeout(self):
        status, text = self.run_with({"slow": ("", 1, "sleep 100")})
        self.assertEqual(status, 1)
        self.assertIn("timeout after 1 s", text)

    def test_skips_give_their_reason(self):
        status, text = self.run_with({"a": "echo no device; exit 77",
                                      "b": "echo skip case: no room; echo 0 passed, 0 failed, 1 skipped"})
        self.assertEqual((status, text.splitlines()[-1]), (0, "0 passed, 0 failed, 2 skipped"))
        self.assertIn("no device", text)
        self.assertIn("skip case: no room", text)

    def test_unittest_and_pytest_are_understood(self):
        said = "printf 'Ran 5 tests in 0.1s\\n\\nFAILED (failures=1, errors=1, skipped=1)\\n'; exit 1"
        self.assertEqual(self.last({"a": said}), (1, "2 passed, 2 failed, 1 skipped"))
        self.assertEqual(self.last({"a": "printf 'Ran 2 tests in 0.1s\\n\\nOK\\n'"}),
                         (0, "2 passed, 0 failed, 0 skipped"))
        said = "printf 'Ran 0 tests in 0.1s\\n\\nNO TESTS RAN (skipped=2)\\n'; exit 5"
        self.assertEqual(self.last({"a": said}), (0, "0 passed, 0 failed, 2 skipped"))
        self.assertEqual(self.last({"a": "printf 'Ran 0 tests in 0.1s\\n\\nNO TESTS RAN\\n'; exit 5"})[0], 1)
        self.assertEqual(self.last({"a": "echo '== 3 passed, 1 skipped in 0.12s =='"}),
                         (0, "3 passed, 0 failed, 1 skipped"))

    def test_choice(self):
        tests = {"ring": "true", "reader": ("slow", 0, "true"), "alone": ("serial", 0, "true")}
        self.assertEqual(self.last(tests)[1], "3 passed, 0 failed, 0 skipped")
        self.assertEqual(self.last(tests, "ri")[1], "1 passed, 0 failed, 0 skipped")
        self.assertEqual(self.last(tests, "--label", "slow")[1], "1 passed, 0 failed, 0 skipped")
        self.assertEqual(self.last(tests, "--no-label", "slow")[1], "2 passed, 0 failed, 0 skipped")

    def test_folder_and_environment(self):
        self.assertEqual(self.last({"a": 'test -z "$(ls)" && test -f "$MT_SOURCE_DIR/dev" && '
                                         'test -f "$MT_BINARY_DIR/tests.txt" && test "$MT_LONG" = 1'},
                                   "--long")[0], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
