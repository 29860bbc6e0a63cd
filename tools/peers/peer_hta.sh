#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# HolisticTraceAnalysis reads Chrome traces of ours: two made-up ranks, a training run on the simulated accelerator,
# and one of stock torch.
set -eu
. "$(dirname "$0")/peers.inc.sh"
. tools/peers/npu.inc.sh

targets mtprof_command make_peer_trace python_tree
rm -rf "$work/traces" "$work/host"
mkdir -p "$work/traces"
host_traces "$work/host"
environment tools/peers/packages_hta.txt
"$build/tests/make_peer_trace" "$work/traces"
npu_trace "$work/traces/npu.mtt"

passed=0 failed=0 skipped=0
. tools/peers/compare.inc.sh

for subject in compare npu; do
    compare "tests/peers/viewers/hta_$subject.py" "$work/traces" "$build/cli/mtprof"
done
compare tests/peers/viewers/hta_host.py "$work/host"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
