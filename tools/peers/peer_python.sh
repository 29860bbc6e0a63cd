#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The Python packages against real torch: bound ops, modules, optimizers, reprs, training curves, schedules, and
# the profiles of the same scripts. PEERS_SEED chooses other numbers.
set -eu
. "$(dirname "$0")/peers.inc.sh"

targets python_tree
environment tools/peers/packages_torch.txt
export KINETO_LOG_LEVEL=99 TORCH_CPP_LOG_LEVEL=ERROR OMP_NUM_THREADS=1
export PYTHONPATH="$build/python"

passed=0 failed=0 skipped=0
. tools/peers/compare.inc.sh

compare tests/peers/torch_ops.py "$build/libmindtorch.so" --python --seed "${PEERS_SEED:-1}"
for subject in binding composed repr nn optim data loading training schedules indexing event_lists; do
    compare "tests/peers/torch_$subject.py"
done
for type in float16 bfloat16 int8 int16 uint16 uint32 uint64; do
    compare tests/peers/torch_ops.py "$build/libmindtorch.so" --type "$type" --seed "${PEERS_SEED:-1}"
done
compare tests/peers/functions/torch_further.py
compare tests/peers/functions/torch_rare_functions.py
compare tests/peers/functions/torch_function.py
compare tests/peers/functions/torch_overloads.py "$build/libmindtorch.so"
compare tests/peers/dtypes/torch_types.py
compare tests/peers/dtypes/torch_complex.py
compare tests/peers/dtypes/torch_amp.py "$build/libmindtorch.so"
compare tests/peers/nn/torch_formats.py
compare tests/peers/nn/torch_images.py
compare tests/peers/nn/torch_lazy.py
compare tests/peers/nn/torch_more.py
compare tests/peers/nn/torch_rare.py
compare tests/peers/nn/torch_recurrent.py
compare tests/peers/nn/torch_weights.py
compare tests/peers/distributions/torch_distributions.py
compare tests/peers/linalg/torch_linalg.py
compare tests/peers/torch_profiles.py "$work"
compare tests/peers/torch_memory.py "$work/memory"
# The same programs on the simulated accelerator.
export MINDTORCH_NPU=sim
compare tests/peers/torch_training.py --device npu sgd adamw
compare tests/peers/torch_profiles.py "$work" --device npu
compare tests/peers/linalg/torch_linalg.py --device npu
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
