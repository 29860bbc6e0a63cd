# SPDX-License-Identifier: Apache-2.0
#
# npu_trace FILE [stacks]: a training run on the simulated accelerator, profiled; with stacks and modules.
npu_trace() {
    MINDTORCH_NPU=sim PYTHONPATH="$build/python" timed "train on sim" "$python" tests/peers/viewers/make_npu_trace.py "$@" ||
        fail "the training run did not come to its end"
    "$build/cli/mtprof" check -q "$1" || fail "mtprof check: $1 is wrong"
}
