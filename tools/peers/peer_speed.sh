#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Speed against torch's: what recording costs a torch program, ours and torch.profiler's; then the workloads of
# bench/bench_runtime, one thread each, in alternation. It shows ratios and judges nothing. MT_SPEED_MS and
# MT_SPEED_ROUNDS make it longer.
set -eu
. "$(dirname "$0")/peers.inc.sh"

build=${PEERS_BUILD:-build/release}
if [ ! -e "$build/build.ninja" ]; then
    timed "configure release" cmake --preset release || fail "cannot configure the release build"
fi
targets bench_runtime python_tree
environment tools/peers/packages_torch.txt
export KINETO_LOG_LEVEL=99
PYTHONPATH="$build/python" "$venv/bin/python" -W ignore tests/peers/host/torch_host_speed.py \
    --rounds "${MT_SPEED_ROUNDS:-2}" 2>/dev/null
exec "$venv/bin/python" -W ignore tests/peers/torch_speed.py "$build/bench/bench_runtime" \
    --ms "${MT_SPEED_MS:-30}" --rounds "${MT_SPEED_ROUNDS:-2}"
