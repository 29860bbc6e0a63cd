#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pyarrow, polars, DuckDB and pandas read our tables without a file between, and say what mtprof's report says.

    arrow_compare.py MTPROF TRACE...

Also: nothing is copied, arrays outlive the trace and are released on other threads, and how long a million events take
(printed, not judged).
"""
import gc
import json
import subprocess
import sys
import threading
import time

import duckdb
import polars
import pyarrow
import pyarrow.compute

import mtprof

TABLES = ("events", "averages", "steps", "tracks", "frames", "marks", "allocations", "dataset", "parts")
SUMS = {"count": "count", "cpu_ns": "cpu_time_total_ns", "self_cpu_ns": "self_cpu_time_total_ns",
        "device_ns": "device_time_total_ns", "self_device_ns": "self_device_time_total_ns",
        "cpu_memory": "cpu_memory_usage", "self_cpu_memory": "self_cpu_memory_usage",
        "device_memory": "device_memory_usage", "self_device_memory": "self_device_memory_usage", "flops": "flops",
        "min_ns": "min_ns", "max_ns": "max_ns"}
MANY = 500_000  # pairs of scopes, of two events each


def sql(query, **tables):
    """Rows of a query over tables, by a connection of its own."""
    connection = duckdb.connect()
    for name, table in tables.items():
        connection.register(name, pyarrow.RecordBatchReader.from_stream(table))
    return connection.sql(query).fetchall()


class Suite:
    def __init__(self, command):
        self.command = command
        self.passed = self.failed = 0

    def check(self, what, ours, theirs):
        if ours == theirs:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED {what}: {ours!r:.300} is not {theirs!r:.300}")

    def report(self, path, *options):
        done = subprocess.run([self.command, "report", path, "--json", *options], check=True, capture_output=True)
        return json.loads(done.stdout)

    def run(self, path):
        trace = mtprof.load(path)
        self.readers(path, trace)
        self.averages(path, trace)
        self.events(path, trace)
        self.points(path, trace)
        self.picked(path, trace)

    def readers(self, path, trace):
        """Each engine accepts each table, and all have the same rows."""
        for name in TABLES:
            table = trace.arrow(name)
            arrow = pyarrow.table(table)
            arrow.validate(full=True)
            rows = arrow.to_pylist()
            self.check(f"{path} {name}: polars", polars.DataFrame(table).to_dicts(), rows)
            self.check(f"{path} {name}: DuckDB", sql("select * from t", t=table),
                       [tuple(row.values()) for row in rows])
            self.check(f"{path} {name}: DuckDB finds a variable",
                       duckdb.sql("select count(*) from \"table\"").fetchall(), [(len(rows),)])
            self.check(f"{path} {name}: pandas", len(arrow.to_pandas()), len(rows))

    def averages(self, path, trace):
        """The table of averages is the report."""
        report = self.report(path, "--sort", "none")["rows"]
        rows = pyarrow.table(trace.arrow("averages")).to_pylist()
        self.check(f"{path}: rows", [(row["name"], row["kind"], row["device_type"]) for row in rows],
                   [(row["key"], row["kind"], row["device_type"]) for row in report])
        for ours, theirs in SUMS.items():
            self.check(f"{path}: {ours}", [row[ours] for row in rows], [row[theirs] for row in report])
        listed = pyarrow.table(trace.key_averages().arrow()).to_pylist()
        self.check(f"{path}: a list of rows", [{**row, "device_type": ""} for row in listed],
                   [{**row, "device_type": ""} for row in rows])  # torch's word there: PrivateUse1 for NPU

    def events(self, path, trace):
        """Sums over events by SQL are those of the report, and joins find what belongs together."""
        report = self.report(path, "--sort", "none")["rows"]
        rows = sql("""select name, count(*), sum(end_ns - start_ns)::bigint, sum(self_ns)::bigint from events
                      where kind = 'op' group by name order by min(event)""", events=trace.arrow())
        self.check(f"{path}: ops by SQL", rows,
                   [(row["key"], row["count"], row["cpu_time_total_ns"], row["self_cpu_time_total_ns"])
                    for row in report if row["kind"] == "op"])
        listed = trace.events()
        parents = sql("select c.event, p.name from events c join parents p on c.parent = p.event order by c.event",
                      events=trace.arrow(), parents=trace.arrow())
        self.check(f"{path}: parents", [name for _, name in parents],
                   [event.cpu_parent.trace_name for event in listed if event.cpu_parent is not None
                    and event.trace_name is not None])
        self.check(f"{path}: names", pyarrow.table(trace)["name"].to_pylist(), [event.trace_name for event in listed])
        steps = pyarrow.table(trace.arrow("steps")).to_pylist()
        self.check(f"{path}: steps", [step["name"] for step in steps],
                   [row[0] for row in sql("select name from events where kind = 'step'", events=trace.arrow())])

    def points(self, path, trace):
        """Marks are those of marks(), and allocations add up to what the events have."""
        marks = pyarrow.table(trace.arrow("marks")).to_pylist()
        self.check(f"{path}: marks", [(mark["kind"], mark["name"], mark["time_ns"], mark["value"], mark["flow"])
                                      for mark in marks],
                   [(mark["kind"], mark.name, mark["start_ns"], mark.get("value"), mark.get("flow_id"))
                    for mark in trace.marks()])
        rows = pyarrow.table(trace.arrow("allocations")).to_pylist()
        total = sql("select coalesce(sum(bytes), 0)::bigint from a where device = 0 and scope is not null",
                    a=trace.arrow("allocations"))[0][0]
        columns = trace.events().columns() if len(trace.events()) else {}
        if "allocated_self_cpu" in columns:
            self.check(f"{path}: allocated bytes", total, int(sum(columns["allocated_self_cpu"])))
        elif not rows:
            self.check(f"{path}: no allocations", total, 0)

    def picked(self, path, trace):
        """A list that was filtered has those events, with their own numbers."""
        events = trace.events()
        every = pyarrow.table(trace).to_pylist()
        for kept in (events[::2], events[::-1], []):
            some = type(events)(kept)
            some._model = events._model
            rows = pyarrow.table(some.arrow()).to_pylist()
            self.check(f"{path}: {len(kept)} picked events", rows, [every[event._index] for event in kept])

    def memory(self, path):
        """Nothing is copied, and arrays live as long as someone has them."""
        trace = mtprof.load(path)
        table = pyarrow.table(trace)
        for name in ("start_ns", "end_ns", "self_ns", "parent", "name", "track", "step", "kind", "flags"):
            column = table[name].chunk(0)
            buffers = column.indices.buffers() if pyarrow.types.is_dictionary(column.type) else column.buffers()
            own = pyarrow.py_buffer(trace.events()._model.column(name))
            self.check(f"{path}: {name} is the trace's own memory", buffers[1].address, own.address)
        names, start = table["name"].to_pylist(), table["start_ns"].to_pylist()
        kept = [table["name"], table["start_ns"]]
        del trace, table, column, buffers, own
        gc.collect()
        self.check(f"{path}: arrays outlive the trace", [kept[0].to_pylist(), kept[1].to_pylist()], [names, start])
        thread = threading.Thread(target=kept.clear)
        thread.start()
        thread.join()
        self.check(f"{path}: released on another thread", kept, [])
        capsule = mtprof.load(path).__arrow_c_stream__()
        reader = pyarrow.RecordBatchReader._import_from_c_capsule(capsule)
        self.check(f"{path}: a capsule", reader.read_all().num_rows, len(names))
        try:
            pyarrow.RecordBatchReader._import_from_c_capsule(capsule)
            refused = False
        except (pyarrow.ArrowInvalid, ValueError):
            refused = True
        self.check(f"{path}: a capsule that was consumed", refused, True)

    def marks(self):
        """A profile with marks, as it is and from a file."""
        with mtprof.profile() as prof:
            with mtprof.record_function("scope"):
                mtprof.counter("queue", 7)
                mtprof.counter("loss", 0.25)
                mtprof.instant("here")
        self.points("a profile with marks", prof)
        table = pyarrow.table(prof.arrow("marks"))
        self.check("marks by kind", table["kind"].to_pylist(), ["counter", "counter", "instant"])
        self.check("values of counters", table["value"].to_pylist(), [7.0, 0.25, None])
        self.check("values of integers", table["integer"].to_pylist(), [7, None, None])
        self.check("the scope around", table["scope"].to_pylist(), pyarrow.table(prof)["correlation"].to_pylist() * 3)

    def speed(self):
        """A million events."""
        with mtprof.profile() as prof:
            for _ in range(MANY):
                mtprof.end(mtprof.begin("outer"))
                mtprof.end(mtprof.begin("inner"))
        pyarrow.table(prof)  # makes the columns
        times = []
        for _ in range(5):
            started = time.perf_counter()
            table = pyarrow.table(prof)
            times.append(time.perf_counter() - started)
        self.check("a million events", table.num_rows, 2 * MANY)
        self.check("their self time", pyarrow.compute.sum(table["self_ns"]).as_py(),
                   sql("select sum(self_ns)::bigint from t", t=prof.arrow())[0][0])
        print(f"pyarrow.table() of {table.num_rows} events: {min(times) * 1e3:.2f} ms")


def main(command, paths):
    suite = Suite(command)
    for path in paths:
        suite.run(path)
    suite.memory(paths[0])
    suite.marks()
    suite.speed()
    print(f"{suite.passed} passed, {suite.failed} failed, 0 skipped")
    return suite.failed != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
