# SPDX-License-Identifier: Apache-2.0
"""Every schedule of up to six steps over the four actions gives torch's callbacks, windows and warnings.

tests/golden/python/schedules.json.gz holds what torch did (tests/peers/torch_schedules.py). Where torch
crashes we must not, and something sensible has to happen.
"""
import gzip
import json
import unittest
from pathlib import Path

import mtprof
from support_schedules import LETTERS, run, sequences

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "python" / "schedules.json.gz"


class Schedules(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.golden = json.loads(gzip.decompress(GOLDEN.read_bytes()))

    def test_the_file_is_complete(self):
        self.assertEqual(set(self.golden), set(sequences(6)))
        self.assertEqual(len(self.golden), sum(4 ** n for n in range(1, 7)))

    def test_torch_crashes_only_where_nothing_is_prepared(self):
        """After RECORD, WARMUP it starts a trace that it has not prepared: in the next step, or at stop()."""
        for letters, answer in self.golden.items():
            self.assertEqual(answer == "crash", "rw" in letters, letters)

    def test_equal(self):
        wrong, compared = [], 0
        for letters, answer in self.golden.items():
            if answer == "crash":
                continue
            compared += 1
            got = run(mtprof, letters)
            if got != answer:
                wrong.append(f"{letters}: {got}, torch {answer}")
        self.assertEqual(wrong[:5], [], f"{len(wrong)} of {compared} differ")
        self.assertGreater(compared, 3000)

    def test_where_torch_crashes(self):
        for letters, answer in self.golden.items():
            if answer != "crash":
                continue
            got = run(mtprof, letters)
            # One callback for each window that was saved, and each holds steps that were recorded.
            for number, _, names in got["ready"]:
                steps = [int(name[1:]) for name in names if name[0] == "s"]
                self.assertTrue(steps, letters)
                for step in steps:
                    self.assertIn(letters[step], "rS", letters)
                    self.assertLessEqual(step, number)
            self.assertEqual(len([w for w in got["warnings"] if "RECORD followed by WARMUP" in w]),
                             letters.count("rw"), letters)
            self.assertNotIsInstance(got["end"], str, letters)

    def test_letters_are_the_actions(self):
        self.assertEqual(len(LETTERS), len(mtprof.ProfilerAction))


if __name__ == "__main__":
    unittest.main()
