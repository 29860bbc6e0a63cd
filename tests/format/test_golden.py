"""test_golden.py MTT_DUMP_C: both readers still see in the golden traces what they saw when these were made."""
import gzip
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import mtt_dump

DUMP = sys.argv[1]
GOLDEN = sorted((HERE.parent / "golden").glob("*.mtt.gz"))


class Golden(unittest.TestCase):
    def test_there_are_some(self):
        self.assertGreaterEqual(len(GOLDEN), 2)

    def test_both_readers_give_the_recorded_dump(self):
        for packed in GOLDEN:
            wanted = gzip.decompress(packed.with_name(packed.name.replace(".mtt.gz", ".dump.gz")).read_bytes()).decode()
            self.assertGreater(wanted.count("\n"), 100, packed.name)
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "golden.mtt")
                pathlib.Path(path).write_bytes(gzip.decompress(packed.read_bytes()))
                by_c = subprocess.run([DUMP, path], capture_output=True, text=True, check=True).stdout
                out = io.StringIO()
                mtt_dump.dump(path, out.write)
            self.assertEqual(by_c, wanted, f"{packed.name}: the library's reader")
            self.assertEqual(out.getvalue(), wanted, f"{packed.name}: the second reader")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
