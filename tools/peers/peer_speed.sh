#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Speed against torch's: the workloads of bench/bench_runtime, one thread each, in alternation. It shows
# ratios and judges nothing. MT_SPEED_MS and MT_SPEED_ROUNDS make it longer.
set -eu
. "$(dirname "$0")/peers.inc.sh"

build=${PEERS_BUILD:-build/release}
if [ ! -e "$build/build.ninja" ]; then
    timed "configure release" cmake --preset release || fail "cannot configure the release build"
fi
targets bench_runtime
work=$PWD/build/peers/torch # torch is there already
mkdir -p "$work"
environment tools/peers/packages_torch.txt
exec "$venv/bin/python" -W ignore tests/peers/torch_speed.py "$build/bench/bench_runtime" \
    --ms "${MT_SPEED_MS:-30}" --rounds "${MT_SPEED_ROUNDS:-2}"
