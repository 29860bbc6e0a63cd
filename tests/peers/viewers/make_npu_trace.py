#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains an MLP on the simulated accelerator under the profiler, and saves what was recorded.

    make_npu_trace.py FILE.mtt [stacks]         (PYTHONPATH: the packages; MINDTORCH_NPU=sim)

Batches are pinned and travel on a stream of their own, parallel to the work on the default stream; there are copies
both ways, sets, annotations that nest, and steps. With `stacks`: stacks and modules too.
"""
import sys

import mindtorch_v2 as torch
from mindtorch_v2.profiler import ProfilerActivity, profile, record_function, schedule

STEPS, BATCH, WIDTH, CLASSES = 3, 256, 128, 16


def train(prof, steps):
    torch.manual_seed(1)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)).to("npu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    copies, main = torch.npu.Stream(), torch.npu.current_stream()
    for _ in range(steps):
        with record_function("load"):
            pinned = torch.randn(BATCH, WIDTH).pin_memory(), torch.randint(0, CLASSES, (BATCH,)).pin_memory()
            with torch.npu.stream(copies):
                x, y = (tensor.to("npu", non_blocking=True) for tensor in pinned)
            main.wait_stream(copies)
            for tensor in (x, y):
                tensor.record_stream(main)
        with record_function("learn"):
            with record_function("forward"):
                loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.npu.stream(copies):
            torch.zeros(1 << 18, dtype=torch.uint8, device="npu")
        loss.item()
        torch.npu.synchronize()  # what a step has launched, it ends
        prof.step()


def main(path, stacks=""):
    plan = schedule(wait=0, warmup=1, active=STEPS, repeat=1)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.NPU], schedule=plan, record_shapes=True,
                 profile_memory=True, with_stack=bool(stacks), with_modules=bool(stacks)) as prof:
        train(prof, 1 + STEPS)
    prof.save(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
