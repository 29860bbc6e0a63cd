# SPDX-License-Identifier: Apache-2.0
"""A program of a user's, for type checkers: mypy --strict and pyright find nothing in it; it runs, too.

Lines that end in "# wrong" are what a checker must find; they are under a condition that is false.
"""
import os
import sys
import tempfile

import mtprof
from mtprof import EventList, FunctionEvent, FunctionEventAvg, ProfilerActivity, profile, record_function, schedule
from mtprof.results import Health, Trace


@record_function("load", rows=3)
def load(path: str, limit: int = 3) -> list[str]:
    """Decorated functions keep their types."""
    mtprof.counter("rows", limit)
    mtprof.instant("loaded", path=path)
    return [path] * limit


def ready(prof: profile) -> None:
    """What on_trace_ready is called with."""
    print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=5, max_name_column_width=30))


def longest(events: EventList[FunctionEvent]) -> FunctionEvent:
    """Events are objects and mappings."""
    return max(events, key=lambda event: event.time_range.elapsed_us())


def look(rows: EventList[FunctionEventAvg]) -> dict[str, float]:
    """Rows have numbers."""
    return {row.key: row.self_cpu_time_total / max(row.count, 1) for row in rows}


def main() -> int:
    """Records, saves, loads."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.mtt")
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True, path=path, buffer_bytes="8M",
                     schedule=schedule(wait=0, warmup=1, active=2, repeat=1), on_trace_ready=ready) as prof:
            for _ in range(3):
                names: list[str] = load("a.csv", limit=2)
                token: int = mtprof.begin("inner", n=len(names))
                mtprof.flow("batch", "start", 7)
                mtprof.end(token)
                prof.step()
        health: Health = prof.health()
        trace: Trace = mtprof.load(path)
        event = longest(trace.events())
        kind: str = event["kind"]
        means: dict[str, float] = look(trace.key_averages(group_by_stack_n=2))
        print(health.ok, health.lost_by, event.name, kind, len(means), [mark["name"] for mark in prof.marks("counter")])
        if len(sys.argv) > 99:
            profile(record_shape=True)  # wrong
            prof.setp()  # wrong
            load(3)  # wrong
            mtprof.counter("a", "b")  # wrong
            health.reason.upper()  # wrong
            schedule(wait=0, warmup=1)  # wrong
    return 0 if health.ok and means else 1


if __name__ == "__main__":
    sys.exit(main())
