#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Stock torch as a host: the same programs under torch.profiler and under mtprof.torch, and scripts of torch under
# mtprof run.
set -eu
. "$(dirname "$0")/peers.inc.sh"

targets python_tree mtprof_command
environment tools/peers/packages_torch.txt
export KINETO_LOG_LEVEL=99 TORCH_CPP_LOG_LEVEL=ERROR OMP_NUM_THREADS=1
export PYTHONPATH="$build/python"

passed=0 failed=0 skipped=0
. tools/peers/compare.inc.sh

compare tests/peers/torch_host.py "$work"
compare tests/peers/torch_memory.py "$work/memory" --host
compare tests/peers/torch_run.py
compare tests/peers/torch_host_life.py "$work"
compare tests/peers/host/torch_host_stacks.py
compare tests/peers/host/torch_host_tiers.py "$work/tiers"
compare tests/peers/host/torch_host_explain.py "$work/explain"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
