# SPDX-License-Identifier: Apache-2.0
"""What recording costs a program of stock torch, ours beside torch.profiler in one run: torch_host_speed.py

Figures are the best of several rounds in turn, nanoseconds an op (x + x of 2 by 2) beyond the op itself, so that a
busy machine spoils all of them alike. `empty` is an observer that does nothing: what torch asks for any of them.
Times decide nothing; the last line counts the figures.
"""
import argparse
import ctypes
import gc
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch  # noqa: E402
import torch.profiler  # noqa: E402

import mtprof.torch  # noqa: E402

EMPTY = r"""
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
typedef struct { void **(*start)(void **, const void *); void (*end)(const void *, void *); double probability;
                 bool scopes[10], needs[3]; } observer;
static uint64_t (*add)(observer);
static void (*take_away)(uint64_t);
static void **start(void **context, const void *record) { (void)record; *context = 0; return context; }
static void end(const void *record, void *context) { (void)record; (void)context; }
uint64_t on(void)
{
    void *torch = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_NOW);
    *(void **)&add = dlsym(torch, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
    *(void **)&take_away = dlsym(torch, "_ZN2at14removeCallbackEm");
    observer empty = {start, end, 1.0, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {0}};
    return add(empty);
}
void off(uint64_t handle) { take_away(handle); }
"""
KINDS = {"plain": {}, "shapes": {"record_shapes": True}, "memory": {"profile_memory": True},
         "stacks": {"with_stack": True}}


def empty_observer(folder):
    """An observer that does nothing; None where there is no compiler."""
    source, library = folder / "empty.c", folder / "empty.so"
    source.write_text(EMPTY)
    try:
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    loaded = ctypes.CDLL(str(library))
    loaded.on.restype, loaded.off.argtypes = ctypes.c_uint64, [ctypes.c_uint64]
    return loaded


def loop(x, count):
    before = time.perf_counter_ns()
    for _ in range(count):
        x + x
    return (time.perf_counter_ns() - before) / count


def profiled(profile, flags, x, count):
    with profile(activities=[torch.profiler.ProfilerActivity.CPU], **flags):
        return loop(x, count)


def recording(options, folder, emit):
    x = torch.ones(2, 2)
    cases = {"base": lambda: loop(x, options.ops)}
    empty = empty_observer(folder)
    if empty is not None:
        def with_empty():
            handle = empty.on()
            try:
                return loop(x, options.ops)
            finally:
                empty.off(handle)
        cases["empty"] = with_empty
    for kind, flags in KINDS.items():
        for who, profile in (("ours", mtprof.torch.profile), ("torch", torch.profiler.profile)):
            cases[f"{who} {kind}"] = lambda profile=profile, flags=flags: profiled(profile, flags, x, options.ops)
    best = dict.fromkeys(cases, float("inf"))
    for _ in range(options.rounds):
        for name, case in cases.items():
            gc.collect()
            gc.disable()
            best[name] = min(best[name], case())
            gc.enable()
    base = best.pop("base")
    emit("torch_host_op_ns", base)
    if "empty" in best:
        emit("torch_host_empty_ns", best["empty"] - base)
    for kind in KINDS:
        emit(f"torch_host_{kind}_ns", best[f"ours {kind}"] - base, best[f"torch {kind}"] - base)


def results(options, folder, emit):
    x, seconds = torch.ones(2, 2), {}
    for who, profile in (("ours", mtprof.torch.profile), ("torch", torch.profiler.profile)):
        prof = profile(activities=[torch.profiler.ProfilerActivity.CPU])
        prof.start()
        loop(x, options.many)
        marks = [time.perf_counter()]
        prof.stop()
        marks.append(time.perf_counter())
        prof.key_averages()
        marks.append(time.perf_counter())
        prof.export_chrome_trace(str(folder / f"{who}.json"))
        marks.append(time.perf_counter())
        seconds[who] = [later - earlier for earlier, later in zip(marks, marks[1:])]
    for name, ours, theirs in zip(("stop", "key_averages", "export"), seconds["ours"], seconds["torch"]):
        emit(f"torch_host_{name}_{options.many // 1000}k_s", ours, theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", type=int, default=20000)
    parser.add_argument("--many", type=int, default=100000)
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    torch.set_num_threads(1)
    count = 0

    def emit(name, ours, theirs=None):
        nonlocal count
        count += 1
        beside = f"  torch.profiler {theirs:12.4f}  {theirs / ours:8.1f} times as much" if theirs is not None else ""
        print(f"{name:28} {ours:12.4f}{beside}")
        print(json.dumps({"bench": name, "value": ours, "torch": theirs}), file=sys.stderr)

    with tempfile.TemporaryDirectory() as folder:
        recording(options, pathlib.Path(folder), emit)
        results(options, pathlib.Path(folder), emit)
    print(f"{count} passed, 0 failed, 0 skipped")


if __name__ == "__main__":
    main()
