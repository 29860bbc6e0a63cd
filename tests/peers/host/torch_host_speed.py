# SPDX-License-Identifier: Apache-2.0
"""What recording costs a program of stock torch, ours beside torch.profiler in one run: torch_host_speed.py

Figures are the best of several rounds in turn, nanoseconds an op (x + x of 2 by 2) beyond the op itself, so that a
busy machine spoils all of them alike. `empty` are observers that do nothing: what torch itself asks for being
observed, for copying inputs to an observer (`empty_shapes`), and for reporting allocations (`empty_memory`).
Results (`--many` ops; 1000000 takes torch.profiler minutes) and the memory that they take, bytes an op, are those of
a process for each profiler. Times decide nothing; the last line counts the figures.
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
#include <stddef.h>
#include <stdint.h>
typedef struct { void **(*start)(void **, const void *); void (*end)(const void *, void *); double probability;
                 bool scopes[10], needs[3]; } observer;
static void (*take_away)(uint64_t);
static void (*pop)(void *, uint64_t);
static void *table[64];
static struct { void *const *table; uint64_t zeros[511]; } info = {&table[2], {0}};
static uint64_t kind;
static void **start(void **context, const void *record) { (void)record; *context = 0; return context; }
static void end(const void *record, void *context) { (void)record; (void)context; }
static void nothing(void *self) { (void)self; }
static bool enabled(const void *self) { (void)self; return true; }
static void report(void *self, void *memory, int64_t bytes, size_t allocated, size_t reserved, uint16_t device)
{
    (void)self; (void)memory; (void)bytes; (void)allocated; (void)reserved; (void)device;
}
static void take_place(void *torch)
{
    const uint64_t *named = dlsym(torch, "_ZN3c1013DebugInfoKind14PROFILER_STATEE");
    void (*push)(uint64_t, void *) = dlsym(torch,
        "_ZN3c1020ThreadLocalDebugInfo5_pushENS_13DebugInfoKindESt10shared_ptrINS_13DebugInfoBaseEE");
    void *shared[2] = {&info, 0};
    for (int i = 2; i < 64; i++) table[i] = (void *)nothing;
    table[4] = (void *)report;
    table[6] = (void *)enabled;
    kind = named ? *named : 2;
    pop = dlsym(torch, "_ZN3c1020ThreadLocalDebugInfo4_popENS_13DebugInfoKindE");
    push(kind, shared);
}
uint64_t on(bool inputs, bool memory)
{
    void *torch = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_NOW);
    uint64_t (*add)(observer) = dlsym(torch, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
    take_away = dlsym(torch, "_ZN2at14removeCallbackEm");
    observer empty = {start, end, 1.0, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {inputs}};
    if (memory) take_place(torch);
    return add(empty);
}
void off(uint64_t handle)
{
    void *shared[2] = {0, 0};
    take_away(handle);
    if (pop) pop(shared, kind);
    pop = 0;
}
"""
PROFILES = {"ours": mtprof.torch.profile, "torch": torch.profiler.profile}
FLOORS = {"empty": (False, False), "empty_shapes": (True, False), "empty_memory": (False, True)}
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
    loaded.on.argtypes = [ctypes.c_bool, ctypes.c_bool]
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
        def with_empty(inputs, memory):
            handle = empty.on(inputs, memory)
            try:
                return loop(x, options.ops)
            finally:
                empty.off(handle)
        for floor, arguments in FLOORS.items():
            cases[floor] = lambda arguments=arguments: with_empty(*arguments)
    for kind, flags in KINDS.items():
        for who, profile in PROFILES.items():
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
    for floor in FLOORS:
        if floor in best:
            emit(f"torch_host_{floor}_ns", best[floor] - base)
    for kind in KINDS:
        emit(f"torch_host_{kind}_ns", best[f"ours {kind}"] - base, best[f"torch {kind}"] - base)


def resident():
    """Bytes of this process that are in memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def one_process(who, count, folder):
    """What a profile of `count` ops takes, in seconds and bytes, as a line of JSON: this process does nothing else."""
    profile, x, figures = PROFILES[who], torch.ones(2, 2), {}
    with profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        x + x  # what is made once
    prof = profile(activities=[torch.profiler.ProfilerActivity.CPU])
    before = resident()

    def measure(name, work):
        start = time.perf_counter()
        kept = work()
        figures[name] = time.perf_counter() - start, (resident() - before) / count
        return kept

    prof.start()
    measure("recording", lambda: loop(x, count))
    measure("stop", prof.stop)
    rows = measure("key_averages", prof.key_averages)
    measure("export", lambda: prof.export_chrome_trace(str(pathlib.Path(folder) / f"{who}.json")))
    events = measure("events", prof.events)
    figures["events in all"] = len(events), len(rows)
    print(json.dumps(figures))


def results(options, folder, emit):
    """Results of many ops: times, and memory an op."""
    found = {}
    for who in PROFILES:
        done = subprocess.run([sys.executable, "-W", "ignore", __file__, "--one", who, "--many", str(options.many),
                               "--folder", str(folder)], stdout=subprocess.PIPE, check=True, text=True)
        found[who] = json.loads(done.stdout.splitlines()[-1])
    assert found["ours"].pop("events in all") == found["torch"].pop("events in all"), found
    many = f"{options.many // 1000}k"
    emit(f"torch_host_stop_{many}_ms", *(found[who]["stop"][0] * 1000 for who in PROFILES))
    for name in ("key_averages", "export"):
        emit(f"torch_host_{name}_{many}_s", *(found[who][name][0] for who in PROFILES))
    emit(f"torch_host_results_{many}_s", *(sum(found[who][name][0] for name in ("stop", "key_averages", "events"))
                                           for who in PROFILES))
    for name in ("recording", "key_averages", "events"):
        emit(f"torch_host_{name}_bytes", *(found[who][name][1] for who in PROFILES))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", type=int, default=20000)
    parser.add_argument("--many", type=int, default=100000)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--one", choices=PROFILES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.one:
        one_process(options.one, options.many, options.folder)
        return
    count = 0

    def emit(name, ours, theirs=None):
        nonlocal count
        count += 1
        beside = f"  torch.profiler {theirs:12.4f}  {theirs / ours:8.1f} times as much" if theirs is not None else ""
        print(f"{name:32} {ours:12.4f}{beside}")
        print(json.dumps({"bench": name, "value": ours, "torch": theirs}), file=sys.stderr)

    with tempfile.TemporaryDirectory() as folder:
        recording(options, pathlib.Path(folder), emit)
        results(options, pathlib.Path(folder), emit)
    print(f"{count} passed, 0 failed, 0 skipped")


if __name__ == "__main__":
    main()
