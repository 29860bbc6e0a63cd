#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traces of the kinds that a Python program writes and no other program of the peers does.

    make_kinds.py FOLDER                        (PYTHONPATH: the packages)

FOLDER/flight.mtt is a dump of the flight recorder; FOLDER/marks.mtt has counters, flows, instants, named threads and
tasks; FOLDER/calls.mtt every call of a function.
"""
import asyncio
import os
import sys
import threading

import mtprof


def work(name):
    mtprof.name_thread(name)
    for i in range(20):
        with mtprof.record_function("piece"):
            mtprof.counter("pieces", i)
            mtprof.counter("load", i / 4)


async def task(number):
    with mtprof.record_function(f"task {number}"):
        await asyncio.sleep(0)
        with mtprof.record_function("inside"):
            await asyncio.sleep(0)


async def tasks():
    await asyncio.gather(*(task(i) for i in range(3)))


def marks(path):
    with mtprof.profile(record_shapes=True) as prof:
        threads = [threading.Thread(target=work, args=(name,)) for name in ("reader", "writer \"2\"")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for i in range(10):
            with mtprof.record_function("send"):
                mtprof.flow("message", "start", i)
            with mtprof.record_function("receive"):
                mtprof.flow("message", "end", i)
            mtprof.instant("between")
        asyncio.run(tasks())
    prof.save(path)


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def calls(path):
    with mtprof.profile(with_calls=True) as prof:
        fibonacci(9)
    prof.save(path)


def flight(folder, path):
    with mtprof.flight_recorder(os.path.join(folder, "flight"), keep=None, distance=0, name="job") as recorder:
        for _ in range(30):
            with mtprof.record_function("step of the job"):
                mtprof.counter("loss", 0.5)
            recorder.step()
        os.replace(recorder.dump("the peers asked")["path"], path)


def main(folder):
    flight(folder, os.path.join(folder, "flight.mtt"))
    marks(os.path.join(folder, "marks.mtt"))
    calls(os.path.join(folder, "calls.mtt"))


if __name__ == "__main__":
    main(sys.argv[1])
