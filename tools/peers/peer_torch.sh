#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Real torch: small programs under torch.profiler, its tables against ours of its trace files.
set -eu
. "$(dirname "$0")/peers.inc.sh"

targets mtprof mtprof_command
environment tools/peers/packages_torch.txt
rm -rf "$work/traces"
mkdir -p "$work/traces"
KINETO_LOG_LEVEL=99 timed "run programs" \
    "$venv/bin/python" -W ignore tests/peers/torch_programs.py "$work/traces" ||
    fail "the programs did not run"
cat "$work/log"
exec "$python" tests/peers/torch_compare.py "$work/traces" "$build/libmtprof.so" "$build/cli/mtprof"
