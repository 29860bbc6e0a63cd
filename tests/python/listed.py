# SPDX-License-Identifier: Apache-2.0
"""listed.py NAME...: fails where tests/python has a test that the build does not know, or the other way round."""
import pathlib
import sys

there = {f"{path.parent.name}/{path.stem}" for path in pathlib.Path(__file__).parent.glob("*/test_*.py")}
listed = set(sys.argv[1:])
for name in sorted(there ^ listed):
    print(f"{name}: {'not listed in tests/python.cmake' if name in there else 'listed, but there is no such file'}")
sys.exit(1 if there != listed else 0)
