# SPDX-License-Identifier: Apache-2.0
"""Coroutines: scopes of asyncio tasks stay with their task, although all of them run on one thread.

    coroutines.py [FOLDER]             the trace goes to FOLDER (default: the current one)

In the trace each task has a track of its own. A scope may be open while its task waits; its time then counts
as waiting, not as work of the thread.
"""
import asyncio
import os
import sys

import mtprof

folder = sys.argv[1] if len(sys.argv) > 1 else "."


@mtprof.record_function("fetch")
async def fetch(number):
    await asyncio.sleep(0.001 * number)
    return number


async def serve(number):
    with mtprof.record_function(f"request {number}"):
        return await fetch(number)


async def main():
    token = mtprof.begin("all requests")  # a token may end anywhere: in another task or thread
    served = await asyncio.gather(*[serve(number) for number in range(1, 4)])
    mtprof.end(token)
    return served


with mtprof.profile() as prof:
    asyncio.run(main())

path = os.path.join(folder, "coroutines.json")
prof.export_chrome_trace(path)
names = sorted(event.name for event in prof.events())
print(f"{len(names)} scopes in {path}:", ", ".join(names))
sys.exit(0 if names.count("fetch") == 3 and "all requests" in names else f"not what was recorded: {names}")
