#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The runtime against real torch: every row of the op table with the cases of tests/ops, random calls,
# whole models. PEERS_SEED chooses other layouts and numbers, PEERS_LONG=1 takes every extreme case.
set -eu
. "$(dirname "$0")/peers.inc.sh"

targets mindtorch mtprof mtprof_command
environment tools/peers/packages_torch.txt
export KINETO_LOG_LEVEL=99 TORCH_CPP_LOG_LEVEL=ERROR OMP_NUM_THREADS=1

passed=0 failed=0 skipped=0
. tools/peers/compare.inc.sh

compare tests/peers/torch_ops.py "$build/libmindtorch.so" --seed "${PEERS_SEED:-1}"
compare tests/peers/torch_extremes.py "$build/libmindtorch.so" --seed "${PEERS_SEED:-1}" # PEERS_LONG=1: all of it
for family in index pointwise; do
    compare "tests/peers/torch_values_$family.py" "$build/libmindtorch.so" --seed "${PEERS_SEED:-1}"
done
compare tests/peers/torch_models.py "$build/libmindtorch.so" "$build/cli/mtprof" "$work"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
