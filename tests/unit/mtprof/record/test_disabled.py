"""test_disabled.py OFF.o ON.o: with MTPROF_DISABLE nothing of the library is left in an object file.

Both are made from the same source (tests/support/programs/disabled_scopes.c); the one that was compiled
without the switch shows
that this test can see what it looks for.
"""
import subprocess
import sys
import unittest

OFF, ON = sys.argv[1:3]


def symbols(path, *options):
    out = subprocess.run(["nm", *options, path], check=True, capture_output=True, text=True).stdout
    return [line.split()[-1] for line in out.splitlines() if line.strip()]


def names(path):
    with open(path, "rb") as file:
        return file.read().count(b"name of a")


class Disabled(unittest.TestCase):
    def test_no_symbol_of_the_library_is_left(self):
        self.assertEqual([s for s in symbols(OFF) if "mtprof" in s], [])
        self.assertIn("mtprof_i_begin", symbols(ON, "-u"))

    def test_no_name_is_left(self):
        self.assertEqual(names(OFF), 0)
        self.assertGreaterEqual(names(ON), 6)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
