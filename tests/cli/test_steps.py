# SPDX-License-Identifier: Apache-2.0
"""`mtprof steps` on files of step summaries: the table, JSON, csv, folders, files that a kill or a fault left.

    test_steps.py MTPROF FILE_OF_TWELVE_STEPS
"""
import csv
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

MTPROF = pathlib.Path(sys.argv.pop(1)).resolve()
SEED = pathlib.Path(sys.argv.pop(1)).resolve()
DAMAGED = 4


class Steps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "rank0.steps"
        shutil.copy(SEED, self.file)

    def steps(self, *words, code=0):
        done = subprocess.run([MTPROF, "steps", *words], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "COLUMNS": "80"}, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def read(self, *words, code=0):
        return json.loads(self.steps(*words, "--json", code=code))["files"]

    def test_table(self):
        shown = self.steps(self.file)
        self.assertLessEqual(max(map(len, shown.splitlines()[2:])), 80)
        self.assertIn("12 steps, median 4.504 ms", shown)
        self.assertIn("slowest 50.12 ms (step 7)", shown)
        rows = [line.split() for line in shown.splitlines()[4:]]
        self.assertEqual([int(row[0]) for row in rows], list(range(12)))
        self.assertEqual(rows[7][3:5], ["50.12", "ms"])
        self.assertEqual(rows[7][-2:], ["data", "100%"])

    def test_slowest_first(self):
        shown = self.steps(self.file, "--slow", "--limit", "3")
        rows = [line.split() for line in shown.splitlines()[4:7]]
        self.assertEqual([int(row[0]) for row in rows], [7, 8, 2])
        self.assertIn("9 more rows", shown)

    def test_json_and_csv_have_all(self):
        [file] = self.read(self.folder)
        self.assertEqual(file["steps"], 12)
        self.assertEqual([one["step"] for one in file["summaries_shown"]], list(range(12)))
        slow = file["summaries_shown"][7]
        self.assertEqual([row["name"] for row in slow["rows"]],
                         ["data", "train_with_a_rather_long_name_of_a_scope"])
        self.assertLessEqual(sum(row["self_ns"] for row in slow["rows"]), slow["duration_ns"])
        table = list(csv.DictReader(io.StringIO(self.steps(self.folder, "--format", "csv"))))
        self.assertEqual([int(row["duration_ns"]) for row in table],
                         [one["duration_ns"] for one in file["summaries_shown"]])

    def test_several_files(self):
        shutil.copy(SEED, self.folder / "rank1.steps")
        shutil.copy(SEED, self.folder / "rank1.steps.old")
        self.assertEqual([(pathlib.Path(file["file"]).name, file["runs"], file["steps"])
                          for file in self.read(self.folder)], [("rank0.steps", 1, 12), ("rank1.steps", 2, 24)])

    def test_what_a_kill_left(self):
        whole = self.file.read_bytes()
        self.file.write_bytes(whole[:-50])
        [file] = self.read(self.file)
        self.assertEqual(file["steps"], 11)
        self.assertGreater(file["tail_bytes"], 0)
        self.assertIn("not complete", self.steps(self.file))

    def test_damage(self):
        changed = bytearray(self.file.read_bytes())
        changed[700] ^= 1
        self.file.write_bytes(changed)
        [file] = self.read(self.file, code=DAMAGED)
        self.assertEqual((file["steps"], file["damaged"], file["without_summary"]), (11, 1, 1))

    def test_what_is_something_else(self):
        self.file.write_text("step 1\n", encoding="utf-8")
        self.steps(self.file, code=1)
        self.steps(self.folder / "nowhere", code=1)
        os.remove(self.file)
        self.steps(self.folder, code=1)


if __name__ == "__main__":
    unittest.main()
