#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Real users of NVTX and ITT under mtprof run: NVIDIA's nvtx and Intel's ittapi and pyitt packages, and torch.
set -eu
. "$(dirname "$0")/peers.inc.sh"

targets python_tree mtprof_command
environment tools/peers/packages_torch.txt
torch=$venv/bin/python
environment tools/peers/packages_collectors.txt
export KINETO_LOG_LEVEL=99 TORCH_CPP_LOG_LEVEL=ERROR OMP_NUM_THREADS=1

passed=0 failed=0 skipped=0
. tools/peers/compare.inc.sh

compare tests/peers/collectors/users_of_collectors.py "$build/cli/mtprof" "$torch"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
