#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What mypy and pyright make of mtprof's types; stubs against what runs; to_pandas() with a real pandas.
set -eu
. "$(dirname "$0")/peers.inc.sh"

targets python_tree
environment tools/peers/packages_types.txt
# A checker sees the packages as it sees installed ones: in the environment, not in its own search path.
echo "$build/python" >"$("$venv/bin/python" -c 'import site; print(site.getsitepackages()[0])')/mtprof_build.pth"

passed=0 failed=0 skipped=0
. tools/peers/compare.inc.sh

for program in program tensors; do
    compare tests/peers/types/types_check.py "tests/peers/types/typed_$program.py" "$work"
done
export PYTHONPATH="$build/python:tests/python"
compare tests/peers/types/unittest_counts.py tests/python/profiler/test_frames.py
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
