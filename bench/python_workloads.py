# SPDX-License-Identifier: Apache-2.0
"""What bench_python.py measures, in one process with one library: python_workloads.py torch|mindtorch_v2.

Prints one JSON object: nanoseconds (the best of many short boxes) and seconds. What recording an op costs is
the difference of two loops in the same process, boxes taken in turn.
"""
import gc
import importlib
import json
import os
import sys
import time
import warnings

BOX = 2000  # ops in a box: well under a time slice
MILLION = 1_000_000


def best(functions, rounds):
    """The best time of a call of each function, boxes in rotation."""
    found = [float("inf")] * len(functions)
    for turn in range(rounds):
        for k in range(len(functions)):
            at = (turn + k) % len(functions)
            began = time.perf_counter_ns()
            functions[at]()
            found[at] = min(found[at], time.perf_counter_ns() - began)
    return found


def boxes(body, times=BOX):
    """A function that runs `body` (source text) `times` times in a plain loop."""
    scope = dict(body[1])
    exec(f"def box():\n for _ in range({times}):\n  {body[0]}\n", scope)
    return scope["box"]


def deep(box, depth):
    """Calls box() `depth` Python frames further in."""
    return box() if depth == 0 else deep(box, depth - 1)


def recording(torch, box, flags, rounds):
    """Nanoseconds an op takes while it is recorded: the best box of several short sessions."""
    found = float("inf")
    for _ in range(rounds):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **flags):
            for _ in range(5):
                began = time.perf_counter_ns()
                box()
                found = min(found, time.perf_counter_ns() - began)
    return found / BOX


def costs(torch, quick):
    rounds = 4 if quick else 12
    x = torch.ones(2, 2)
    names = {"x": x, "torch": torch, "rf": torch.profiler.record_function}
    add = boxes(("x + x", names))
    off = boxes(("\n  ".join(["with rf('work'):", " pass"]), names))
    plain, marks = (t / BOX for t in best([add, off], 20 * rounds))
    out = {"add_2x2": plain, "record_function_off": marks}
    # Runs with and without recording alternate, so that both have the same conditions.
    kinds = {"plain": {}, "shapes": {"record_shapes": True}, "memory": {"profile_memory": True},
             "all": {"record_shapes": True, "profile_memory": True, "with_flops": True, "with_modules": True}}
    for kind, flags in kinds.items():
        on = recording(torch, add, flags, rounds)
        bare = best([add], 20)[0] / BOX
        out[f"record_{kind}"] = on - min(bare, plain)
    on = recording(torch, off, {}, rounds)
    out["record_function_on"] = on
    shallow = recording(torch, add, {"with_stack": True}, rounds)
    further = recording(torch, lambda: deep(add, 40), {"with_stack": True}, rounds)
    out["record_stack_8"] = shallow - plain
    out["record_per_frame"] = (further - shallow) / 40
    return out


def large(torch, events):
    """What happens after `events` ops."""
    x = torch.ones(2, 2)
    run = boxes(("x + x", {"x": x}), events)
    out = {}

    def timed(name, function):
        began = time.perf_counter()
        result = function()
        out[name] = time.perf_counter() - began
        return result

    prof = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], acc_events=True)
    prof.start()
    run()
    timed("stop_s", prof.stop)
    timed("key_averages_s", prof.key_averages)
    path = f"bench_python.{os.getpid()}.json"
    try:
        timed("export_chrome_s", lambda: prof.export_chrome_trace(path))
    finally:
        if os.path.exists(path):
            os.remove(path)
    listed = timed("first_event_s", lambda: prof.events()[events // 2] and prof.events())

    def walk():
        total = 0
        for event in listed:
            total += event.self_cpu_time_total if event.name else 0
        return total
    timed("iterate_s", walk)
    out["events"] = len(listed)
    return out


def main():
    name, events, quick = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "quick"
    warnings.simplefilter("ignore")
    torch = importlib.import_module(name)
    torch.set_num_threads(1)
    gc.disable()
    out = costs(torch, quick)
    gc.enable()
    out.update(large(torch, events))
    # From the op to its event in Python's hands: recording, stop() and events(), shared out.
    after_s = out["stop_s"] + out["key_averages_s"] + out["first_event_s"]
    out["whole_op"] = out["record_plain"] + after_s * 1e9 / events
    print(json.dumps(out))


if __name__ == "__main__":
    main()
