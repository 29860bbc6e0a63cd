# SPDX-License-Identifier: Apache-2.0
"""Explanations of programs of stock torch: torch_host_explain.py FOLDER

Programs with a planted fault, recorded by torch.profiler (its JSON is imported) and by mtprof.torch: the cause comes
first. What a program waits for lasts many times as long as what it does besides.
"""
import os
import sys
import threading
import time
import warnings

import torch
import torch.profiler
from torch.utils.data import DataLoader, Dataset

import mtprof
import mtprof.torch

warnings.simplefilter("ignore")
torch.set_num_threads(1)
STEPS, LONG = 6, 0.02
folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
a, x = torch.randn(600, 600), torch.ones(8)


class Slow(Dataset):
    def __len__(self):
        return 4 * (STEPS + 2)

    def __getitem__(self, index):
        time.sleep(LONG / 4)
        return torch.ones(4)


def data_wait():
    batches = iter(DataLoader(Slow(), batch_size=4))
    return lambda number: [next(batches), *(x + 1 for _ in range(5))]


def copy():
    data = torch.ones(2048, 2048)
    return lambda number: [data.t().contiguous() for _ in range(3)]


def python_overhead():
    def step(number):
        for _ in range(5):
            x.add(1)
            time.sleep(LONG / 5)
    return step


def slow_steps():
    def step(number):
        a.mm(a)
        if number == 4:
            with torch.profiler.record_function("evaluate"):
                time.sleep(30 * LONG)
    return step


def warm_up():
    def step(number):
        a.mm(a)
        if number == 1:  # the first that is recorded
            time.sleep(30 * LONG)
    return step


def lock_or_gil_wait():
    lock = threading.Lock()

    def step(number):
        a.mm(a)
        lock.acquire()
        threading.Timer(2 * LONG, lock.release).start()
        with torch.profiler.record_function("wait for lock"):
            lock.acquire()
        lock.release()
    return step


def memory_growth():
    kept = []

    def step(number):
        a.mm(a)
        kept.append(torch.ones(1 << 18))
    return step


PROGRAMS = {"data-wait": data_wait, "copy": copy, "python-overhead": python_overhead, "slow-steps": slow_steps,
            "warm-up": warm_up, "lock-or-gil-wait": lock_or_gil_wait, "memory-growth": memory_growth}
TIMELESS = ("slow-steps", "warm-up")  # beside a cause that costs no time: the machine may interrupt a step


def record(module, step):
    schedule = module.schedule(wait=0, warmup=1, active=STEPS, repeat=1)
    with module.profile(schedule=schedule, profile_memory=True, with_stack=True) as prof:
        for number in range(STEPS + 1):
            step(number)
            prof.step()
    return prof


failed = 0
for cause, make in PROGRAMS.items():
    path = os.path.join(folder, f"{cause}.json")
    record(torch.profiler, make()).export_chrome_trace(path)
    for who, found in (("torch.profiler", mtprof.explain(path)),
                       ("mtprof.torch", record(mtprof.torch, make()).explain())):
        ids = [one.id for one in found.findings if cause != "memory-growth" or one.id not in TIMELESS]
        if ids[:1] != [cause]:
            failed += 1
            print(f"{cause}, recorded by {who}: {ids}\n{found}")
print(f"{2 * len(PROGRAMS) - failed} passed, {failed} failed, 0 skipped")
sys.exit(failed > 0)
