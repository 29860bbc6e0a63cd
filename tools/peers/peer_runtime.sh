#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The runtime beside real torch: every row of the op table with the cases of tests/ops, random calls,
# whole models. PEERS_SEED chooses other layouts and numbers.
set -eu
. "$(dirname "$0")/peers.inc.sh"

targets mindtorch mtprof mtprof_command
work=$PWD/build/peers/torch # torch is there already
mkdir -p "$work/runtime"
environment tools/peers/packages_torch.txt
export KINETO_LOG_LEVEL=99 TORCH_CPP_LOG_LEVEL=ERROR OMP_NUM_THREADS=1

# compare PROGRAM ARGUMENTS...: shows what it prints, adds its last line up.
passed=0 failed=0 skipped=0
compare() {
    "$venv/bin/python" -W ignore "$@" >"$work/runtime/log" 2>&1 || true
    cat "$work/runtime/log"
    counts=$(tail -n 1 "$work/runtime/log" |
        sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p')
    [ -n "$counts" ] || fail "$1 did not come to its end"
    # shellcheck disable=SC2086 # three numbers
    set -- $counts
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

compare tests/peers/torch_ops.py "$build/libmindtorch.so" --seed "${PEERS_SEED:-1}"
for family in index pointwise; do
    compare "tests/peers/torch_values_$family.py" "$build/libmindtorch.so" --seed "${PEERS_SEED:-1}"
done
compare tests/peers/torch_models.py "$build/libmindtorch.so" "$build/cli/mtprof" "$work/runtime"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
