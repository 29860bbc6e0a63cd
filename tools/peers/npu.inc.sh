# SPDX-License-Identifier: Apache-2.0
#
# npu_trace FILE [stacks]: a training run on the simulated accelerator, profiled; with stacks and modules.
npu_trace() {
    MINDTORCH_NPU=sim PYTHONPATH="$build/python" timed "train on sim" "$python" tests/peers/viewers/make_npu_trace.py "$@" ||
        fail "the training run did not come to its end"
    "$build/cli/mtprof" check -q "$1" || fail "mtprof check: $1 is wrong"
}

# host_traces FOLDER: the same training run of stock torch under torch.profiler and under mtprof.torch. It needs the
# environment with torch; the caller chooses its own afterwards.
host_traces() {
    environment tools/peers/packages_torch.txt
    KINETO_LOG_LEVEL=99 OMP_NUM_THREADS=1 PYTHONPATH="$build/python" timed "train on stock torch" \
        "$venv/bin/python" tests/peers/viewers/make_host_traces.py "$1" || fail "the run of torch did not come to its end"
    for trace in "$1"/ours*/*.json; do
        "$build/cli/mtprof" check -q "$trace" || fail "mtprof check: $trace is wrong"
    done
}
