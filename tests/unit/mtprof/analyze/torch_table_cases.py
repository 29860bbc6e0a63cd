#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what torch prints for rows of averages: the expectations of test_table_torch.c.

Run where torch is installed:  torch_table_cases.py > tests/golden/torch/tables.txt

Rows are made up here (times in whole nanoseconds), torch lays them out; both go into the file, so
the C test feeds the same rows to our own code and compares bytes. Cases touched by torch's bugs
(torch-contract 9.3: FLOPs and Source Location together) are left out; the C test says what we
print.

The file: "case NAME", "facts k=v…", "options k=v…", one "row k=v…" a row, "table BYTES", the bytes,
an empty line. Values are percent-encoded; stack entries are separated by ';'.
"""
import random
import sys

import torch
from torch.autograd import DeviceType
from torch.autograd.profiler_util import EventList, FunctionEventAvg


def encode(text):
    out = []
    for byte in str(text).encode("utf-8", "surrogateescape"):
        plain = 33 <= byte <= 126 and chr(byte) not in "%;="
        out.append(chr(byte) if plain else "%%%02X" % byte)
    return "".join(out)


NUMBERS = ("count", "cpu", "self", "dev", "selfdev", "cpumem", "selfcpumem", "devmem", "selfdevmem",
           "flops", "node", "device", "async", "annotation", "parent")


def make(row):
    avg = FunctionEventAvg()
    avg.key = row["key"]
    avg.count = row["count"]
    avg.node_id = row["node"]
    avg.is_async = bool(row["async"])
    avg.cpu_time_total = row["cpu"] / 1000
    avg.self_cpu_time_total = row["self"] / 1000
    avg.device_time_total = row["dev"] / 1000
    avg.self_device_time_total = row["selfdev"] / 1000
    avg.cpu_memory_usage = row["cpumem"]
    avg.self_cpu_memory_usage = row["selfcpumem"]
    avg.device_memory_usage = row["devmem"]
    avg.self_device_memory_usage = row["selfdevmem"]
    avg.flops = row["flops"]
    avg.input_shapes = row["shapes"]
    avg.overload_name = row["overload"]
    avg.stack = row["stack"]
    avg.device_type = DeviceType.CUDA if row["device"] else DeviceType.CPU
    avg.is_user_annotation = bool(row["annotation"])
    avg.cpu_parent = avg if row["parent"] else None
    avg.scope = 0
    avg.cpu_children = []
    return avg


def blank(key, **changes):
    row = {name: 0 for name in NUMBERS}
    row.update(key=key, overload="", shapes="", stack=[], count=1, node=-1)
    row.update(changes)
    return row


def emit(name, rows, facts, options):
    events = EventList([make(row) for row in rows], use_device=facts["device"],
                       profile_memory=facts["memory"], with_flops=facts["flops"])
    for event in events:
        event.use_device = facts["device"]
    try:
        text = events.table(**options).encode("utf-8", "surrogateescape")
    except (AssertionError, TypeError) as error:  # a share of nothing; None beside a number
        sys.stderr.write("%s: left out: %s\n" % (name, error))
        return
    out = ["case " + name]
    out.append("facts device=%s memory=%d flops=%d" % (facts["device"] or "", facts["memory"],
                                                       facts["flops"]))
    out.append("options " + " ".join("%s=%s" % (k, encode(v)) for k, v in options.items()))
    for row in rows:
        fields = ["key=" + encode(row["key"])]
        for field in ("overload", "shapes"):
            if row[field]:
                fields.append("%s=%s" % (field, encode(row[field])))
        if row["stack"]:
            fields.append("stack=" + ";".join(encode(entry) for entry in row["stack"]))
        fields += ["%s=%d" % (n, row[n]) for n in NUMBERS if row[n] != blank("")[n]]
        out.append("row " + " ".join(fields))
    out.append("table %d" % len(text))
    sys.stdout.buffer.write("\n".join(out).encode() + b"\n" + text + b"\n")


CPU = {"device": None, "memory": False, "flops": False}
NAMES = ["aten::add", "aten::mm", "fwd", "ProfilerStep*", "Optimizer.step#SGD.step", "x", "",
         "Größe µs", "日本語の名前", "void at::native::vectorized_elementwise_kernel<4, at::native::X>(int)",
         "n" * 51, "n" * 52, "n" * 53, "n" * 55, "n" * 59, "autograd::engine::evaluate_function: AddmmBackward0"]
SHAPES = ["", "[]", "[[2, 3], []]", "[[4, 3, 8, 8], [8, 3, 3, 3], [8], [], [], [], []]",
          "[" + ", ".join(["[128, 64, 32]"] * 9) + "]"]
FRAMES = ["<string>(13): op", "torch/nn/modules/linear.py(96): __init__", "a.py(1): f",
          "/very/long/path/" + "d/" * 40 + "file.py(7): deep"]
SORTS = ["cpu_time_total", "self_cpu_time_total", "cpu_time", "cuda_time_total", "count", "flops",
         "self_device_time_total", "device_time", "key", "cpu_memory_usage", "xpu_time",
         "self_cuda_memory_usage", "input_shapes", "overload_name", "node_id", "is_async",
         "privateuse1_time_total", "device_memory_usage", "self_cpu_memory_usage"]


def spread(rng):
    return int(10 ** rng.uniform(0, 10.5)) if rng.random() < 0.9 else 0


def random_rows(rng, facts):
    rows = []
    stacks = rng.random() < 0.3 and not facts["flops"]
    shapes, overloads, nodes = (rng.random() < p for p in (0.4, 0.2, 0.1))
    for _ in range(rng.randint(1, 6)):
        row = blank(rng.choice(NAMES), count=rng.choice([1, 2, 3, 7, 40, 123456789]))
        if facts["device"] and rng.random() < 0.4:
            row.update(device=1, annotation=int(rng.random() < 0.3))
            row["dev"] = row["selfdev"] = spread(rng)
        else:
            row["cpu"] = spread(rng)
            row["self"] = rng.choice([row["cpu"], row["cpu"] // 3, 0])
            row["async"] = int(rng.random() < 0.15)
            row["annotation"] = int(rng.random() < 0.2)
            if facts["device"]:
                row["dev"] = spread(rng)
                row["selfdev"] = row["dev"] // 2
        if facts["memory"]:
            for field in ("cpumem", "selfcpumem", "devmem", "selfdevmem"):
                row[field] = rng.choice([0, 1, -1]) * spread(rng) * rng.choice([1, 1024])
        if facts["flops"]:
            row["flops"] = rng.choice([0, spread(rng), spread(rng) * 1000000])
        row["shapes"] = rng.choice(SHAPES) if shapes else ""
        row["overload"] = rng.choice(["", "Tensor", "out", "o" * 60]) if overloads else ""
        row["stack"] = rng.choices(FRAMES, k=rng.randint(0, 3)) if stacks else []
        row["node"] = rng.choice([-1, 0, 3]) if nodes else -1
        row["parent"] = int(rng.random() < 0.4)
        rows.append(row)
    return rows


def random_options(rng):
    options = {}
    for name, chance, values in (
            ("sort_by", 0.5, SORTS), ("row_limit", 0.4, [-1, 0, 1, 2, 3, None]),
            ("max_src_column_width", 0.3, [5, 20, 40, None, 1]),
            ("max_name_column_width", 0.3, [12, 30, None, 3, 2, 1]),
            ("max_shapes_column_width", 0.3, [4, 20, None]), ("header", 0.2, ["HDR", "two words"]),
            ("top_level_events_only", 0.2, [True]), ("time_unit", 0.3, ["s", "ms", "us", "min"])):
        if rng.random() < chance:
            options[name] = rng.choice(values)
    return options


def main():
    sys.stdout.write("# torch %s, torch_table_cases.py\n" % torch.__version__)
    sys.stdout.flush()
    edges = [999, 1000, 999499, 999500, 999999, 1000000, 1000500, 2500500, 1234500, 999999499,
             999999500, 999999999, 1000000000, 1000500000, 61234567890123]
    emit("times", [blank("t%d" % ns, cpu=ns, self=ns, count=3) for ns in edges], CPU, {})
    for unit in ("s", "ms", "us"):
        emit("times_" + unit, [blank("t%d" % ns, cpu=ns, self=ns) for ns in edges], CPU,
             {"time_unit": unit})
    emit("nothing", [blank("zero", count=2)], CPU, {})
    emit("async", [blank("a", **{"async": 1}, cpu=5000), blank("b", cpu=7000, self=7000)], CPU, {})
    emit("async_nothing", [blank("a", **{"async": 1}, cpu=5000)], CPU, {})
    sizes = [0, 1, -1, 1023, 1024, -1024, 1029, 1030, 1048575, 1048576, 1073741823, 1073741824,
             -1073741824, 5 * 1024**4, 1043333, 2621440 + 1311]
    emit("memory", [blank("m", cpumem=n, selfcpumem=-n, devmem=n, selfdevmem=n) for n in sizes],
         {"device": "cuda", "memory": True, "flops": False}, {})
    emit("memory_no_device", [blank("m", cpumem=5, devmem=7, selfdevmem=7)],
         {"device": None, "memory": True, "flops": False}, {})
    for i, least in enumerate([1, 999, 1000, 1234500, 999999, 2500500, 10**9, 10**12, 10**15, 10**18]):
        emit("flops_%d" % i, [blank("f", flops=n) for n in (least, least * 2 + 5, least + 1, 0)],
             {"device": None, "memory": False, "flops": True}, {})
    ties = [blank("f", flops=1000000 + 500 * (2 * k + 1)) for k in range(40)]
    emit("flops_ties", ties, {"device": None, "memory": False, "flops": True}, {})
    emit("percent_ties", [blank("p", cpu=k, self=k) for k in (1, 5, 15, 25, 35, 45, 55, 65, 19754)],
         CPU, {})
    emit("npu", [blank("op", cpu=3000, self=3000, dev=5000, selfdev=5000),
                 blank("k", device=1, dev=5000, selfdev=5000)],
         {"device": "privateuseone", "memory": True, "flops": False}, {})
    rng = random.Random(20261115)
    for number in range(100):
        facts = {"device": rng.choice([None, "cuda", "npu"]), "memory": rng.random() < 0.4,
                 "flops": rng.random() < 0.3}
        emit("random_%d" % number, random_rows(rng, facts), facts, random_options(rng))


if __name__ == "__main__":
    main()
