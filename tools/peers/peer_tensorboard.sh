#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# TensorBoard's profiler plugin reads Chrome traces of ours.
set -eu
. "$(dirname "$0")/peers.inc.sh"
. tools/peers/npu.inc.sh

targets mtprof_command make_peer_trace python_tree
environment tools/peers/packages_tensorboard.txt
rm -rf "$work/traces"
mkdir -p "$work/traces"
"$build/tests/make_peer_trace" "$work/traces"
npu_trace "$work/traces/npu.mtt"
npu_trace "$work/traces/stacks.mtt" stacks
exec "$venv/bin/python" -W ignore tests/peers/viewers/tensorboard_compare.py "$work/traces" \
    "$build/cli/mtprof"
