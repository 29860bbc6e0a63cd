# SPDX-License-Identifier: Apache-2.0
"""What the flight recorder costs a training step of a small GPT on mindtorch_v2: pairs of runs with and without it,
interleaved in random order, each of some steps; processor time of the whole process, its recorder's threads included.

    PYTHONPATH=build/release/python python3 tools/measure_flight.py [--pairs 40] [--steps 8]

Prints a JSON line for each kind of recording: the mean of the pairs' ratios in percent, and its 95 % interval.
"""
import argparse
import json
import math
import random
import statistics
import tempfile
import time

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
import mtprof
from mindtorch_v2 import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, t, width = x.shape
        parts = self.qkv(self.first(x)).reshape(n, t, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
        x = x + self.out(y.permute(0, 2, 1, 3).reshape(n, t, width))
        return x + self.down(F.gelu(self.up(self.second(x))))


class GPT(nn.Module):
    def __init__(self, words=512, width=128, layers=4, heads=4, length=64):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words)

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def trainer():
    torch.manual_seed(0)
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    ids = torch.randint(0, 512, (4, 64))

    def step():
        optimizer.zero_grad()
        logits = model(ids)
        F.cross_entropy(logits.reshape(-1, 512), ids.reshape(-1)).backward()
        optimizer.step()
    return step


def measure(step, steps, recorder):
    begin = time.process_time_ns()
    for _ in range(steps):
        step()
        if recorder is not None:
            recorder.step()
    return (time.process_time_ns() - begin) / steps


def one(step, steps, options):
    if options is None:
        return measure(step, steps, None)
    with tempfile.TemporaryDirectory() as folder, mtprof.flight_recorder(folder, name="bench", **options) as recorder:
        measure(step, 1, recorder)  # chunks, names and threads are made once in a job's life
        return measure(step, steps, recorder)


def compare(step, options, pairs, steps):
    ratios, base = [], []
    for _ in range(pairs):
        order = [None, options]
        random.shuffle(order)
        times = {index is None: one(step, steps, index) for index in order}
        ratios.append(times[False] / times[True] - 1)
        base.append(times[True])
    mean = statistics.fmean(ratios)
    half = 1.96 * statistics.stdev(ratios) / math.sqrt(pairs)
    return {"pairs": pairs, "steps": steps, "step_ms": round(statistics.median(base) / 1e6, 3),
            "percent": round(100 * mean, 3), "low": round(100 * (mean - half), 3),
            "high": round(100 * (mean + half), 3), "median": round(100 * statistics.median(ratios), 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--steps", type=int, default=8)
    given = parser.parse_args()
    step = trainer()
    measure(step, 10, None)
    for name, options in (("ops and scopes", {}), ("ops and scopes, no summaries", {"steps": False}),
                          ("with shapes and memory", {"record_shapes": True, "profile_memory": True})):
        print(json.dumps({"recording": name, **compare(step, options, given.pairs, given.steps)}), flush=True)


if __name__ == "__main__":
    main()
