#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# pyarrow, polars, DuckDB and pandas read our tables through the Arrow C data interface; what they say is what mtprof
# says.
set -eu
. "$(dirname "$0")/peers.inc.sh"
. tools/peers/npu.inc.sh

targets mtprof_command make_peer_trace make_cli_trace python_tree
environment tools/peers/packages_arrow.txt
rm -rf "$work/traces"
mkdir -p "$work/traces"
"$build/tests/make_peer_trace" "$work/traces"
"$build/tests/make_cli_trace" "$work/traces"
npu_trace "$work/traces/npu.mtt"

passed=0 failed=0 skipped=0
. tools/peers/compare.inc.sh

export PYTHONPATH="$build/python:tests/python"
compare tests/peers/viewers/arrow_compare.py "$build/cli/mtprof" "$work/traces/train.mtt" \
    "$work/traces/rank0.mtt" "$work/traces/odd.mtt" "$work/traces/empty.mtt" "$work/traces/npu.mtt"
compare tests/peers/types/unittest_counts.py tests/python/profiler/test_arrow_python.py
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
