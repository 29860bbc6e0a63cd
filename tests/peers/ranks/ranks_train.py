# SPDX-License-Identifier: Apache-2.0
"""Jobs of stock torch with gloo under mtprof.torch, one after the other, one trace a rank.

    torchrun --nproc-per-node 4 ranks_train.py FOLDER

FOLDER/ddp: data-parallel training. FOLDER/pipeline: each rank is a stage and hands its activations to the next, then
all average a number. FOLDER/slow: ddp, but from step 4 on rank 2 sleeps 60 ms in its scope load_batch.
"""
import os
import sys
import time

import torch
import torch.distributed as dist
from mtprof.torch import profile, record_function, schedule

STEPS, SLOW_RANK, SLOW_FROM, SLOW_S = 12, 2, 4, 0.06


def load_batch(step, slow):
    with record_function("load_batch"):
        if slow and step >= SLOW_FROM:
            time.sleep(SLOW_S)
        return torch.randn(16, 64)


def ddp(step, batch, state):
    if not state:
        net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
        state["model"] = torch.nn.parallel.DistributedDataParallel(net)
        state["optimizer"] = torch.optim.SGD(net.parameters(), lr=0.1)
    state["optimizer"].zero_grad()
    state["model"](batch).square().mean().backward()
    state["optimizer"].step()


def pipeline(step, batch, state):
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    layer = state.setdefault("layer", torch.nn.Linear(64, 64))
    if rank > 0:
        dist.recv(batch, rank - 1)
    with torch.no_grad():
        batch = layer(batch)
    if rank < last:
        dist.send(batch, rank + 1)
    dist.all_reduce(batch.mean())


def record(run, folder, slow):
    """One job: every rank's trace in the folder."""
    rank, state = dist.get_rank(), {}
    os.makedirs(folder, exist_ok=True)
    run(0, torch.randn(16, 64), state)  # what is made once is not measured
    dist.barrier()
    with profile(schedule=schedule(wait=0, warmup=0, active=STEPS, repeat=1), record_shapes=True) as prof:
        for step in range(STEPS):
            run(step, load_batch(step, slow), state)
            dist.barrier()
            prof.step()
    prof.save(os.path.join(folder, f"rank{rank}.mtt"))
    prof.export_chrome_trace(os.path.join(folder, f"rank{rank}.json"))
    dist.barrier()


def main(folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    record(ddp, os.path.join(folder, "ddp"), False)
    record(pipeline, os.path.join(folder, "pipeline"), False)
    record(ddp, os.path.join(folder, "slow"), dist.get_rank() == SLOW_RANK)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
