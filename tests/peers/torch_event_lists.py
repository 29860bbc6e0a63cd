# SPDX-License-Identifier: Apache-2.0
"""Lists of events made by hand: torch's and ours, from the same random numbers, must say the same.

    PYTHONPATH=<tree with mtprof> python torch_event_lists.py [LISTS [SEED]]      (a Python that has torch)

Compared are trees, reprs, averages in every grouping, tables with random options, totals, and both exports.
What torch gets wrong is left out: FLOPs under "Source Location" (torch-contract 4.3.14), kernels
lost when duplicates collapse (3.3.4), shares of no time at all (it asserts), a trace of nothing
(it raises).
Times are eighths of a microsecond, so that sums are exact in both.
"""
import os
import random
import sys
import tempfile

import torch.autograd.profiler_util as theirs
from torch.autograd import DeviceType as TheirDeviceType

import mtprof.events as ours
from mtprof.enums import DeviceType

ROW = ("key count node_id is_async scope input_shapes overload_name stack cpu_memory_usage self_cpu_memory_usage "
       "device_memory_usage flops is_user_annotation use_device cpu_time_str self_device_time_total").split()
SORT = ("cpu_time_total self_cpu_time_total cuda_time_total count self_cuda_memory_usage cpu_memory_usage flops "
        "no_such_attribute").split()


def make_event(library, devices, choose, number, device):
    """An event with random facts; the same choices give the same event in both libraries."""
    start = choose.randrange(0, 200000) / 8
    length = choose.choice((0, choose.randrange(0, 100000) / 8, choose.randrange(1, 5) * 1000.0, 2e6))
    on_host = choose.random() < 0.8 or device is None
    event = library.FunctionEvent(
        number, choose.choice(("aten::add", "aten::mul", "a" * choose.randrange(1, 70), "ProfilerStep*")),
        choose.randrange(2), start, start + length, overload_name=choose.choice(("", "Tensor")),
        fwd_thread=choose.randrange(2),
        input_shapes=choose.choice(([], [[2, 3], []], [[choose.randrange(3)]] * choose.randrange(1, 30))),
        stack=choose.choice(([], ["a.py(1): f", "b.py(2): g"], ["x" * choose.randrange(1, 100)])),
        scope=choose.choice((0, 1, 7)), use_device=device,
        cpu_memory_usage=choose.choice((0, choose.randrange(-10**6, 10**10))),
        device_memory_usage=choose.choice((0, choose.randrange(-10**6, 10**6))) if device else 0,
        is_async=choose.random() < 0.1, sequence_nr=choose.randrange(-1, 3),
        device_type=devices.CPU if on_host else devices.CUDA,
        flops=choose.choice((0, 0, choose.randrange(10**12))),
        is_user_annotation=choose.random() < 0.2, trace_name=choose.choice((None, f"t{number}")))
    if on_host and device and choose.random() < 0.3:
        event.append_kernel("k", 0, choose.randrange(1, 50000) / 8)
    return event


def make_list(library, devices, seed, device):
    """A list of up to 40 such events."""
    choose = random.Random(seed)
    n = choose.randrange(1, 40)
    events = [make_event(library, devices, choose, number, device) for number in range(n)]
    return library.EventList(events, use_device=device, profile_memory=choose.random() < 0.5,
                             with_flops=choose.random() < 0.3)


def outcome(call, *args, **options):
    """What a call returns, or the text of what it raises."""
    try:
        return call(*args, **options)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def table_options(choose):
    """Random options of table()."""
    options = {}
    for name, chance, values in (("sort_by", 0.5, SORT), ("row_limit", 0.3, (0, 1, 3, -1)),
                                 ("time_unit", 0.2, ("s", "ms", "us", "x")),
                                 ("top_level_events_only", 0.2, (True,)),
                                 ("header", 0.2, ("HELLO",)), ("max_name_column_width", 0.2, (20, None, 55)),
                                 ("max_shapes_column_width", 0.2, (20, None))):
        if choose.random() < chance:
            options[name] = choose.choice(values)
    return options


class Comparison:
    """Counts what is equal, shows the first differences."""

    def __init__(self):
        self.compared = self.different = 0

    def same(self, seed, what, their, our):
        self.compared += 1
        if their == our or "Expected time_us == 0" in str(their):
            return
        self.different += 1
        if self.different <= 5:
            lines = [(a, b) for a, b in zip(str(their).splitlines(), str(our).splitlines()) if a != b]
            a, b = lines[0] if lines else (their, our)
            print(f"list {seed}, {what}:\n  torch: {a}\n  ours:  {b}")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def compare_exports(check, seed, their, our, folder):
    paths = os.path.join(folder, "their"), os.path.join(folder, "our")
    if any(event.trace_name is not None for event in their):
        their.export_chrome_trace(paths[0])
        our.export_chrome_trace(paths[1])
        check.same(seed, "export_chrome_trace", read(paths[0]), read(paths[1]))
    for metric in their.supported_export_stacks_metrics():
        their.export_stacks(paths[0], metric)
        our.export_stacks(paths[1], metric)
        check.same(seed, f"export_stacks {metric}", read(paths[0]), read(paths[1]))


def compare(check, seed, folder):
    choose = random.Random(seed + 10**6)
    device = choose.choice((None, None, "cuda"))
    their, our = make_list(theirs, TheirDeviceType, seed, device), make_list(ours, DeviceType, seed, device)
    before = len(their)
    check.same(seed, "tree", outcome(their._build_tree), outcome(our._build_tree))
    if device and len(their) != before:
        return  # torch lost kernels
    check.same(seed, "events", "\n".join(map(repr, their)), "\n".join(map(repr, our)))
    options = table_options(choose)
    groups = {"group_by_input_shapes": choose.random() < 0.5, "group_by_stack_n": choose.choice((0, 0, 1, 2)),
              "group_by_overload_name": choose.random() < 0.3}
    their_rows, our_rows = their.key_averages(**groups), our.key_averages(**groups)
    check.same(seed, "rows", "\n".join(map(repr, their_rows)), "\n".join(map(repr, our_rows)))
    for one, other in ((their, our), (their_rows, our_rows)):
        if not (one._with_flops and any(item.stack for item in one)):
            check.same(seed, f"table {options} {groups}", outcome(one.table, **options),
                       outcome(other.table, **options))
        check.same(seed, "total", repr(one.total_average()), repr(other.total_average()))
    for one, other in zip(their_rows, our_rows):
        for name in ROW:
            check.same(seed, name, getattr(one, name), getattr(other, name))
    compare_exports(check, seed, their, our, folder)


def main():
    lists = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    check = Comparison()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + lists):
            compare(check, seed, folder)
    print(f"{lists} lists")
    print(f"{check.compared - check.different} passed, {check.different} failed, 0 skipped")
    return 1 if check.different else 0


if __name__ == "__main__":
    sys.exit(main())
