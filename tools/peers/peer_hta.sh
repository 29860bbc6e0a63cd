#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# HolisticTraceAnalysis reads Chrome traces of ours: two made-up ranks, a training run on the simulated accelerator,
# and one of stock torch.
set -eu
. "$(dirname "$0")/peers.inc.sh"
. tools/peers/npu.inc.sh

targets mtprof_command make_peer_trace python_tree
rm -rf "$work/traces" "$work/host" "$work/ranks"
mkdir -p "$work/traces"
host_traces "$work/host"
KINETO_LOG_LEVEL=99 OMP_NUM_THREADS=1 PYTHONPATH="$build/python" timed "train with 4 ranks" \
    "$venv/bin/python" -m torch.distributed.run --standalone --nproc-per-node 4 \
    tests/peers/ranks/ranks_train.py "$work/ranks" || fail "the jobs of 4 ranks did not come to their end"
environment tools/peers/packages_hta.txt
"$build/tests/make_peer_trace" "$work/traces"
npu_trace "$work/traces/npu.mtt"

passed=0 failed=0 skipped=0
. tools/peers/compare.inc.sh

for subject in compare npu; do
    compare "tests/peers/viewers/hta_$subject.py" "$work/traces" "$build/cli/mtprof"
done
compare tests/peers/viewers/hta_host.py "$work/host"
compare tests/peers/ranks/ranks_compare.py "$work/ranks" "$build/cli/mtprof" hta
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
