# SPDX-License-Identifier: Apache-2.0
"""What the flight recorder costs a training step of a small GPT: pairs of runs with and without it, in random order.

    PYTHONPATH=build/release/python python3 tools/measure_flight.py [--pairs 40] [--size small]
    PYTHONPATH=build/release/python build/peers/torch/venv/bin/python tools/measure_flight.py --host torch

Processor time of all threads of the process. Before a run with the recorder is measured, the ring is filled once: a job
of days does that in its first minutes, and then touches no new page (--first-pass leaves it out). A JSON line for each
kind of recording: the pairs' ratios in percent, as median and mean with 95 % intervals (of the median by bootstrap: a
run that was disturbed does not move it), and microseconds a step by thread: "program" is the difference of the pairs,
"mtprof" and "mtprof steps" are the recorder's own threads.
"""
import argparse
import importlib
import json
import math
import os
import random
import statistics
import tempfile
import time

import mtprof

SIZES = {"small": {"width": 128, "layers": 4, "heads": 4, "length": 64, "batch": 4},
         "medium": {"width": 384, "layers": 6, "heads": 6, "length": 128, "batch": 8}}
KINDS = {"scopes": ("ops and scopes", {}),
         "no-summaries": ("ops and scopes, no summaries", {"steps": False}),
         "memory": ("with shapes and memory", {"record_shapes": True, "profile_memory": True})}
OWN = ("mtprof", "mtprof steps")
WORDS = 512
SCOPE_BYTES = 24  # of a begin and its end


def gpt(torch, width, layers, heads, length):
    """A GPT of the host's own modules."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            n, t, _ = x.shape
            parts = self.qkv(self.first(x)).reshape(n, t, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            y = nn.functional.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
            x = x + self.out(y.permute(0, 2, 1, 3).reshape(n, t, width))
            return x + self.down(nn.functional.gelu(self.up(self.second(x))))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(WORDS, width), nn.Embedding(length, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, WORDS)

        def forward(self, ids):
            x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    return GPT()


def trainer(torch, width, layers, heads, length, batch):
    torch.manual_seed(0)
    model = gpt(torch, width, layers, heads, length)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    ids = torch.randint(0, WORDS, (batch, length))

    def step():
        optimizer.zero_grad()
        logits = model(ids)
        torch.nn.functional.cross_entropy(logits.reshape(-1, WORDS), ids.reshape(-1)).backward()
        optimizer.step()
    return step


def own_threads():
    """Processor time of the recorder's threads by name, in nanoseconds."""
    times = dict.fromkeys(OWN, 0)
    for thread in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{thread}/comm") as name, open(f"/proc/self/task/{thread}/schedstat") as stat:
                name = name.read().strip()
                if name in times:
                    times[name] += int(stat.read().split()[0])
        except OSError:  # it has ended
            pass
    return times


def measure(step, steps, recorder):
    """Nanoseconds of processor time a step: of the process, and of the recorder's threads."""
    own = own_threads()
    begin = time.process_time_ns()
    for _ in range(steps):
        step()
        if recorder is not None:
            recorder.step()
    all_ns = time.process_time_ns() - begin
    return all_ns / steps, {name: (ns - own[name]) / steps for name, ns in own_threads().items()}


def fill(recorder, buffer_mib):
    """Goes through the ring once, and waits until its summaries have caught up."""
    for _ in range(buffer_mib):
        for _ in range((1 << 20) // SCOPE_BYTES):
            mtprof.end(mtprof.begin("fill"))
        recorder.step()
    time.sleep(0.3)


def run(step, given, options):
    if options is None:
        return measure(step, given.steps, None)
    recorder_of = mtprof.flight_recorder if given.host != "torch" else importlib.import_module(
        "mtprof.torch").flight_recorder
    with tempfile.TemporaryDirectory(dir=given.folder) as folder, \
            recorder_of(folder, name="bench", buffer_bytes=f"{given.buffer_mib}M", **options) as recorder:
        if not given.first_pass:
            fill(recorder, given.buffer_mib)
        measure(step, 2, recorder)  # names and threads are made once in a job's life
        return measure(step, given.steps, recorder)


def bootstrap(values, rounds=10000):
    medians = sorted(statistics.median(random.choices(values, k=len(values))) for _ in range(rounds))
    return medians[rounds * 25 // 1000], medians[rounds * 975 // 1000]


def compare(step, given, options):
    ratios, base, own, program = [], [], {name: [] for name in OWN}, []
    for _ in range(given.pairs):
        order = [None, options]
        random.shuffle(order)
        found = {choice is None: run(step, given, choice) for choice in order}
        (off, _), (on, threads) = found[True], found[False]
        ratios.append(100 * (on / off - 1))
        base.append(off)
        program.append((on - off - sum(threads.values())) / 1e3)
        for name in OWN:
            own[name].append(threads[name] / 1e3)
    mean = statistics.fmean(ratios)
    half = 1.96 * statistics.stdev(ratios) / math.sqrt(given.pairs)
    low, high = bootstrap(ratios)
    return {"pairs": given.pairs, "steps": given.steps, "step_cpu_ms": round(statistics.median(base) / 1e6, 3),
            "median_percent": round(statistics.median(ratios), 3), "median_95": [round(low, 3), round(high, 3)],
            "mean_percent": round(mean, 3), "mean_95": [round(mean - half, 3), round(mean + half, 3)],
            "us_a_step": {"program": round(statistics.median(program), 1),
                          **{name: round(statistics.median(own[name]), 1) for name in OWN}}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--steps", type=int, default=40, help="of each run")
    parser.add_argument("--host", choices=("mindtorch", "torch"), default="mindtorch")
    parser.add_argument("--size", choices=sorted(SIZES), default="small")
    parser.add_argument("--kinds", nargs="+", choices=sorted(KINDS), default=list(KINDS))
    parser.add_argument("--first-pass", action="store_true", help="measure while the ring touches its pages first")
    parser.add_argument("--buffer-mib", type=int, default=16, help="of the ring")
    parser.add_argument("--folder", help="where the rings are; default: that of temporary files")
    parser.add_argument("--threads", type=int, default=1, help="of the host's ops")
    given = parser.parse_args()
    if given.pairs < 2 or given.steps < 1:
        parser.error(f"--pairs {given.pairs} --steps {given.steps}: at least 2 pairs of 1 step are needed")
    torch = importlib.import_module("torch" if given.host == "torch" else "mindtorch_v2")
    torch.set_num_threads(given.threads)
    step = trainer(torch, **SIZES[given.size])
    measure(step, 10, None)
    for kind in given.kinds:
        name, options = KINDS[kind]
        print(json.dumps({"recording": name, "host": given.host, "size": given.size,
                          **compare(step, given, options)}), flush=True)


if __name__ == "__main__":
    main()
