# SPDX-License-Identifier: Apache-2.0
"""What recording costs a launch-bound program on a GPU: x + x, 2 x 2. It measures and judges nothing.

Each side is a process of its own (torch.profiler keeps CUPTI once it has run). In it, stretches with and without the
profiler alternate; the figures are medians over the stretches. Arguments choose what is measured, and its order.
"""
import os
import statistics
import subprocess
import sys
import time

ROUNDS, LAUNCHES = 15, 3000
SIDE_S = 150  # for one process, which takes 10 to 60


def stretch(x, launches=LAUNCHES):
    import torch
    torch.cuda.synchronize()
    began = time.perf_counter_ns()
    for _ in range(launches):
        x + x
    took = (time.perf_counter_ns() - began) / launches
    torch.cuda.synchronize()
    return took


def side(name):
    import torch
    x = torch.ones(2, 2, device="cuda")
    if name == "cupti":
        def profile(activities):
            return Floor()
    elif name == "torch":
        from torch.profiler import profile
    else:
        from mtprof.torch import profile
    from torch.profiler import ProfilerActivity
    activities = {"ours_gpu": [ProfilerActivity.CUDA], "ours_cpu": [ProfilerActivity.CPU]}.get(
        name, [ProfilerActivity.CPU, ProfilerActivity.CUDA])
    for _ in range(5):
        stretch(x)
    never = [stretch(x) for _ in range(ROUNDS)]
    before, during, at_once, after, starts, stops = [], [], [], [], [], []
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
        at_once.append(stretch(x, 300))
        starts.append(t1 - t0)
        stops.append(t3 - t2)
    after = [stretch(x) for _ in range(ROUNDS)]
    middle = statistics.median
    print(f"{name:9} launch {middle(before):7.0f} ns without, +{middle(during) - middle(before):6.0f} with, "
          f"{middle(at_once) - middle(before):+6.0f} in the 300 launches after, "
          f"{middle(after) - middle(never):+6.0f} from then on (least {min(after) - min(never):+.0f}); "
          f"start {middle(starts) * 1e3:.1f} ms, stop {middle(stops) * 1e3:.1f} ms", flush=True)


class Floor:
    """What every profiler with CUPTI needs: records of kernels, and callbacks of launches, which do nothing here."""

    def __init__(self, variant="all"):
        import ctypes
        self.library, self.variant = ctypes.CDLL(os.environ["MTPROF_CUPTI_FLOOR"]), variant
        self.library.floor_variant.restype = ctypes.c_char_p

    def names(self):
        numbers = range(1000)
        return [name.decode() for name in iter(map(self.library.floor_variant, numbers).__next__, None)]

    def start(self):
        if self.library.floor_start(self.variant.encode()) != 0:
            raise RuntimeError(f"CUPTI cannot be had, or not for {self.variant}")

    def stop(self):
        self.library.floor_stop()


def in_flight():
    """How long stop() takes with a million kernels in flight: replays of a graph, since CUDA queues few launches."""
    import torch
    from mtprof.torch import ProfilerActivity, cuda_info, profile
    x = torch.ones(2, 2, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(1000):
            x + x
    for recorded in (False, True):
        prof = profile(activities=[ProfilerActivity.CUDA]) if recorded else None
        if recorded:
            prof.start()
        began = time.perf_counter()
        for _ in range(1000):
            graph.replay()
        launched = time.perf_counter()
        if recorded:
            prof.stop()
        else:
            torch.cuda.synchronize()
        ended = time.perf_counter()
        print(f"a million kernels in 1000 replays, {'recorded' if recorded else 'without a profiler'}: launched in "
              f"{launched - began:.2f} s, {'stop()' if recorded else 'the GPU'} took {ended - launched:.2f} s more",
              flush=True)
    print(f"{prof.health()}; {cuda_info().records} records, {cuda_info().dropped} dropped")


def together():
    """All but torch.profiler in one process, in turn: the same memory and clock for all of them."""
    import torch
    from mtprof.torch import ProfilerActivity, profile
    x = torch.ones(2, 2, device="cuda")
    cpu, gpu = ProfilerActivity.CPU, ProfilerActivity.CUDA
    sides = {"cupti": Floor, "ours_cpu": lambda: profile(activities=[cpu]),
             "ours_gpu": lambda: profile(activities=[gpu]), "ours": lambda: profile(activities=[cpu, gpu])}
    for _ in range(5):
        stretch(x)
    added = {name: [] for name in sides}
    bases = []
    for _ in range(2 * ROUNDS):
        for name, make in sides.items():
            bases.append(stretch(x))
            prof = make()
            prof.start()
            stretch(x, 300)
            added[name].append(stretch(x) - bases[-1])
            prof.stop()
            stretch(x, 300)
    print(f"in one process: launch {statistics.median(bases):.0f} ns; " + ", ".join(
        "{} {:+.0f} ({:+.0f} to {:+.0f})".format(name, statistics.median(times), *statistics.quantiles(times)[::2])
        for name, times in added.items()), flush=True)


def variants():
    """Each variant of CUPTI alone (cupti_floor.c) and ours, in turn in one process: what of it costs what."""
    import torch
    from mtprof.torch import ProfilerActivity, profile
    x = torch.ones(2, 2, device="cuda")
    sides = {name: (lambda name=name: Floor(name)) for name in Floor().names()}
    sides["ours, CUDA alone"] = lambda: profile(activities=[ProfilerActivity.CUDA])
    added, bases, missing = {name: [] for name in sides}, [], set()
    for _ in range(5):
        stretch(x)
    for _ in range(ROUNDS):
        for name, make in sides.items():
            bases.append(stretch(x))
            try:
                prof = make()
                prof.start()
            except RuntimeError:
                missing.add(name)
                continue
            stretch(x, 300)
            added[name].append(stretch(x) - bases[-1])
            prof.stop()
            stretch(x, 300)
    print(f"variants of CUPTI alone: a launch takes {statistics.median(bases):.0f} ns; with")
    for name, times in added.items():
        if len(times) > 1:
            low, _, high = statistics.quantiles(times)
            print(f"    {name:18} {statistics.median(times):+6.0f} ns ({low:+.0f} to {high:+.0f})", flush=True)
    if missing:
        print(f"    not to be had here: {', '.join(sorted(missing))}")


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
        calls = {"many": many, "in_flight": in_flight, "together": together, "variants": variants}
        calls.get(sys.argv[2], lambda: side(sys.argv[2]))()
        sys.exit(0)
    for name in sys.argv[1:] or ("ours", "torch", "cupti", "ours_gpu", "ours_cpu", "ours", "torch", "together",
                                 "together", "variants", "many", "in_flight"):
        try:
            done = subprocess.run([sys.executable, __file__, "--side", name], timeout=SIDE_S,
                                  env=dict(os.environ, KINETO_LOG_LEVEL="99", TEARDOWN_CUPTI="1"))
            if done.returncode != 0:
                print(f"{name}: failed with status {done.returncode}", flush=True)
        except subprocess.TimeoutExpired:
            print(f"{name}: took longer than {SIDE_S} s and was ended", flush=True)
