#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# speedscope's own schema accepts our files, and what they say is what mtprof says.
set -eu
. "$(dirname "$0")/peers.inc.sh"
. tools/peers/npu.inc.sh

targets mtprof_command make_peer_trace make_cli_trace python_tree
node_packages speedscope@1.25.0 ajv@8.17.1
rm -rf "$work/traces"
mkdir -p "$work/traces"
"$build/tests/make_peer_trace" "$work/traces"
"$build/tests/make_cli_trace" "$work/traces"
npu_trace "$work/traces/npu.mtt"
exec node tests/peers/viewers/speedscope_check.js "$modules" "$build/cli/mtprof" \
    "$work/traces/rank0.mtt" "$work/traces/train.mtt" "$work/traces/odd.mtt" "$work/traces/npu.mtt"
