# SPDX-License-Identifier: Apache-2.0
"""unittest_counts.py FILE: runs a test of tests/python with this interpreter, and counts as peers do."""
import importlib.util
import sys
import unittest


def main(path):
    """Runs the file's cases; a skipped one counts as such."""
    spec = importlib.util.spec_from_file_location("test_here", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["test_here"] = module
    spec.loader.exec_module(module)
    result = unittest.TextTestRunner(verbosity=1).run(unittest.defaultTestLoader.loadTestsFromModule(module))
    failed = len(result.failures) + len(result.errors)
    skipped = len(result.skipped)
    print(f"{result.testsRun - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
