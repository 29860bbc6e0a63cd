# SPDX-License-Identifier: Apache-2.0
"""What recording costs a launch-bound program on a GPU: x + x, 2 x 2. It measures and judges nothing.

Each side is a process of its own (torch.profiler keeps CUPTI once it has run). In it, stretches with and without the
profiler alternate; the figures are medians over the stretches.
"""
import os
import statistics
import subprocess
import sys
import time

ROUNDS, LAUNCHES = 15, 3000


def stretch(x):
    import torch
    torch.cuda.synchronize()
    began = time.perf_counter_ns()
    for _ in range(LAUNCHES):
        x + x
    took = (time.perf_counter_ns() - began) / LAUNCHES
    torch.cuda.synchronize()
    return took


def side(name):
    import torch
    x = torch.ones(2, 2, device="cuda")
    if name == "torch":
        from torch.profiler import ProfilerActivity, profile
    else:
        from mtprof.torch import ProfilerActivity, profile
    activities = {"ours": [ProfilerActivity.CPU, ProfilerActivity.CUDA], "ours_gpu": [ProfilerActivity.CUDA],
                  "ours_cpu": [ProfilerActivity.CPU], "torch": [ProfilerActivity.CPU, ProfilerActivity.CUDA]}[name]
    for _ in range(5):
        stretch(x)
    before, during, after, starts, stops = [], [], [], [], []
    for _ in range(ROUNDS):
        before.append(stretch(x))
        prof = profile(activities=activities)
        t0 = time.perf_counter()
        prof.start()
        t1 = time.perf_counter()
        during.append(stretch(x))
        t2 = time.perf_counter()
        prof.stop()
        t3 = time.perf_counter()
        after.append(stretch(x))
        starts.append(t1 - t0)
        stops.append(t3 - t2)
    middle = statistics.median
    print(f"{name:9} launch {middle(before):7.0f} ns without, +{middle(during) - middle(before):6.0f} with, "
          f"{middle(after) - middle(before):+6.0f} after; first stretch {before[0]:7.0f}; "
          f"start {middle(starts) * 1e3:.1f} ms, stop {middle(stops) * 1e3:.1f} ms", flush=True)


def many():
    """How long stop() takes with a million kernels recorded."""
    import torch
    from mtprof.torch import ProfilerActivity, cuda_info, profile
    x = torch.ones(2, 2, device="cuda")
    prof = profile(activities=[ProfilerActivity.CUDA])
    prof.start()
    for _ in range(1_000_000):
        x + x
    began = time.perf_counter()
    torch.cuda.synchronize()
    waited = time.perf_counter()
    prof.stop()
    ended = time.perf_counter()
    print(f"a million kernels: the GPU was done after {(waited - began) * 1e3:.1f} ms, stop() took "
          f"{(ended - waited) * 1e3:.1f} ms; {prof.health()}; "
          f"{cuda_info().records} records, {cuda_info().dropped} dropped")


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--side":
        many() if sys.argv[2] == "many" else side(sys.argv[2])
        sys.exit(0)
    for name in ("ours", "torch", "ours", "torch", "ours_gpu", "ours_cpu", "many"):
        subprocess.run([sys.executable, __file__, "--side", name], check=True,
                       env=dict(os.environ, KINETO_LOG_LEVEL="99", TEARDOWN_CUPTI="1"))
