#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains an MLP of stock torch under torch.profiler and under mtprof.torch, and writes the traces of both.

    make_host_traces.py FOLDER        (PYTHONPATH: the packages)

The batches come from a DataLoader with a worker, steps from a schedule, files from tensorboard_trace_handler(); there
are annotations, shapes, allocations. FOLDER/torch and FOLDER/ours have the traces of one, FOLDER/torch_stacks and
FOLDER/ours_stacks those with stacks as well.
"""
import pathlib
import sys
import warnings

warnings.simplefilter("ignore")

import torch  # noqa: E402
import torch.profiler  # noqa: E402

import mtprof.torch  # noqa: E402

WAIT, WARMUP, ACTIVE = 1, 1, 3


def train(profiler, folder, **flags):
    torch.manual_seed(1)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 4))
    optimizer = torch.optim.AdamW(model.parameters())
    rows = 8 * (WAIT + WARMUP + ACTIVE)
    data = torch.utils.data.TensorDataset(torch.randn(rows, 16), torch.randint(0, 4, (rows,)))
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU],
                          schedule=profiler.schedule(wait=WAIT, warmup=WARMUP, active=ACTIVE, repeat=1),
                          on_trace_ready=profiler.tensorboard_trace_handler(str(folder), worker_name="host_1"),
                          record_shapes=True, profile_memory=True, **flags) as prof:
        for x, y in torch.utils.data.DataLoader(data, batch_size=8, num_workers=1):
            with profiler.record_function("forward"):
                loss = nn.functional.cross_entropy(model(x), y)
            with profiler.record_function("backward"):
                loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            prof.step()


def main(folder):
    for name, profiler in (("torch", torch.profiler), ("ours", mtprof.torch)):
        train(profiler, pathlib.Path(folder) / name)
        train(profiler, pathlib.Path(folder) / f"{name}_stacks", with_stack=True)


if __name__ == "__main__":
    main(sys.argv[1])
