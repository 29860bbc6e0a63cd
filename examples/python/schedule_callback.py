# SPDX-License-Identifier: Apache-2.0
"""A schedule with a callback: of a long loop, two windows of three steps are recorded and reported.

    schedule_callback.py [FOLDER]      traces go to FOLDER (default: the current one)

Each cycle waits one step, warms up for one and records three; after each cycle on_trace_ready is called with
the window that is complete. Recording costs nothing in the other steps. As in torch a warning says that only
the last window's events stay in memory; acc_events=True keeps them all.
"""
import math
import os
import sys

import mtprof

folder = sys.argv[1] if len(sys.argv) > 1 else "."
windows = []


def report(prof):
    path = os.path.join(folder, f"window{len(windows)}.json.gz")
    prof.export_chrome_trace(path)
    windows.append(path)
    print(f"the window before step {prof.step_num} is in {path}")
    print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=3, width=80))


with mtprof.profile(schedule=mtprof.schedule(wait=1, warmup=1, active=3, repeat=2),
                    on_trace_ready=report) as prof:
    for step in range(12):
        with mtprof.record_function("load"):
            rows = list(range(10_000))
        with mtprof.record_function("compute", rows=len(rows)):
            total = sum(math.sqrt(row) for row in rows)
        prof.step()

sys.exit(0 if len(windows) == 2 else f"{len(windows)} windows, 2 were expected")
