#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# TensorBoard's profiler plugin reads Chrome traces of ours.
set -eu
. "$(dirname "$0")/peers.inc.sh"
. tools/peers/npu.inc.sh

targets mtprof_command make_peer_trace python_tree
rm -rf "$work/traces" "$work/host"
mkdir -p "$work/traces"
host_traces "$work/host"
environment tools/peers/packages_tensorboard.txt
"$build/tests/make_peer_trace" "$work/traces"
npu_trace "$work/traces/npu.mtt"
npu_trace "$work/traces/stacks.mtt" stacks

passed=0 failed=0 skipped=0
. tools/peers/compare.inc.sh

compare tests/peers/viewers/tensorboard_compare.py "$work/traces" "$build/cli/mtprof"
compare tests/peers/viewers/tensorboard_host.py "$work/host"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
