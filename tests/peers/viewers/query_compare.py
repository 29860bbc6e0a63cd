#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`mtprof export parquet` and `mtprof query` beside mtprof's own report, and Spark beside DuckDB, row by row.

    query_compare.py WORK MASTER MTPROF TRACE...
    query_compare.py --random WORK COUNT MTPROF MAKE_RANDOM_TRACES

MASTER: of a Spark cluster that sees WORK, where the data set is written; "none": without Spark. --random: every number
of the report by SQL, over COUNT random programs, from the traces and from the files of a data set.
"""
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import duckdb
import pyarrow.parquet

from mtprof.dataset.duckdb_engine import DuckdbEngine
from mtprof.dataset.engine import QueryError, questions
from mtprof.dataset.folder import stored
from mtprof.dataset.parquet_command import add_traces
from mtprof.dataset.source import TABLES, Source

DOCS = pathlib.Path(__file__).resolve().parent.parent.parent.parent / "docs/dataset.md"
SUMS = {"calls": "count", "cpu_ns": "cpu_time_total_ns", "self_cpu_ns": "self_cpu_time_total_ns",
        "device_ns": "device_time_total_ns", "self_device_ns": "self_device_time_total_ns",
        "cpu_memory": "cpu_memory_usage", "self_cpu_memory": "self_cpu_memory_usage",
        "device_memory": "device_memory_usage", "self_device_memory": "self_device_memory_usage", "flops": "flops",
        "min_ns": "min_ns", "max_ns": "max_ns"}


class Suite:
    passed = failed = 0

    def check(self, what, ours, theirs):
        if ours == theirs:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED {what}: {ours!r:.400} is not {theirs!r:.400}")

    def same_rows(self, what, ours, theirs):
        """Columns and rows are equal; numbers that were divided to the last digits."""
        self.check(f"{what}: columns", [name for name, _ in ours.columns], [name for name, _ in theirs.columns])
        self.check(f"{what}: number of rows", len(ours.rows), len(theirs.rows))
        for number, (mine, other) in enumerate(zip(ours.rows, theirs.rows)):
            if not all(same_value(a, b) for a, b in zip(mine, other)):
                self.check(f"{what}: row {number}", mine, other)
        self.passed += 1


def same_value(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) or a == b or (math.isnan(a) and math.isnan(b))
    return a == b


def names_of_ops(engine, report):
    """Names that only ops have, in one row of the report: rows are by name, whatever else has it, and step by step."""
    listed = [row["key"] for row in report]
    only = {row[0] for row in engine.ask("SELECT name FROM events GROUP BY name HAVING min(kind) = 'op' "
                                         "AND max(kind) = 'op'").rows}
    return {name for name in only if listed.count(name) == 1}


def reports(suite, command, path, engine, names=None):
    """Every number of the report, by SQL: from the rows and, for ops, from the events themselves. names: a function
    that says of which of them; None: all. How many ops."""
    done = subprocess.run([command, "report", path, "--json", "--sort", "none"], check=True, capture_output=True)
    report = json.loads(done.stdout)["rows"]
    for mine, theirs in SUMS.items():
        rows = engine.ask(f"SELECT name, kind, {mine} FROM averages").rows
        suite.check(f"{path}: averages.{mine}", sorted(rows, key=str),
                    sorted(((row["key"], row["kind"], row[theirs]) for row in report), key=str))
    rows = engine.ask("""SELECT name, count(*), sum(dur_ns), sum(self_ns), sum(device_ns), sum(self_device_ns),
                                min(dur_ns), max(dur_ns) FROM ops GROUP BY name ORDER BY name""").rows
    ops = [row for row in report if row["kind"] == "op"]
    if names is not None:
        kept = names(engine, report)
        rows = [row for row in rows if row[0] in kept]
        ops = [row for row in ops if row["key"] in kept]
    suite.check(f"{path}: ops", [tuple(row) for row in rows],
                sorted((row["key"], row["count"], row["cpu_time_total_ns"], row["self_cpu_time_total_ns"],
                        row["device_time_total_ns"], row["self_device_time_total_ns"], row["min_ns"], row["max_ns"])
                       for row in ops))
    done = subprocess.run([command, "explain", path, "--json"], check=True, capture_output=True)
    parts = json.loads(done.stdout)["parts"]
    rows = dict(engine.ask("SELECT part, sum(ns) FROM parts GROUP BY part").rows)
    suite.check(f"{path}: parts", {name: round(ns / 1e9, 6) for name, ns in rows.items()},
                {name: round(seconds, 6) for name, seconds in parts.items() if seconds})
    return len(ops)


def refusals(suite, engine, work):
    """Nothing but one SELECT over the views."""
    secret = os.path.join(work, "secret.csv")
    made = os.path.join(work, "made_by_a_query")
    pathlib.Path(secret).write_text("a,b\n1,2\n", encoding="utf-8")
    for text in (f"SELECT * FROM read_csv('{secret}')", f"SELECT * FROM '{secret}'", f"SELECT * FROM read_text('{secret}')",
                 f"SELECT * FROM glob('{work}/*')", f"COPY ranks TO '{made}'", f"ATTACH '{made}'", "INSTALL httpfs",
                 "LOAD httpfs", "PRAGMA version", "SET threads = 1", "SET enable_external_access = true",
                 "CREATE TABLE x AS SELECT 1", "DROP VIEW events", f"EXPORT DATABASE '{made}'", "SELECT 1; SELECT 2", "",
                 "CALL pragma_version()", "INSERT INTO ranks VALUES (1)", "SELECT * FROM secret_variable",
                 f"SELECT * FROM query('COPY (SELECT 1) TO ''{made}''')",
                 f"SELECT * FROM read_csv('{secret}/../secret.csv')"):
        secret_variable = pyarrow.table({"a": [1]})  # what DuckDB would find in its caller
        try:
            rows = engine.ask(text).rows
            suite.check(f"refused: {text}", rows, "an error")
        except QueryError:
            suite.passed += 1
        del secret_variable
    suite.check("nothing was written", os.path.exists(made), False)
    for text, word in (("SELECT nam FROM events", "'name'"), ("SELECT * FROM evnts", "events")):
        try:
            engine.ask(text)
            suite.check(text, "an answer", "an error")
        except QueryError as error:
            suite.check(f"{text}: {error.hint}", word in str(error.hint), True)


def documented():
    """The tables of docs/dataset.md: {table: [(column, type)]}."""
    found, table = {}, None
    for line in DOCS.read_text(encoding="utf-8").splitlines():
        head = re.match(r"### (\w+)\.parquet", line)
        table = head.group(1) if head else None if line.startswith("#") else table
        row = re.match(r"\| `(\w+)` \| (\w+) \|", line)
        if table and row:
            found.setdefault(table, []).append(row.groups())
    return found


def schemas(suite, traces):
    """What the page says is what the files have, whoever wrote them."""
    pages = documented()
    suite.check("tables of the page", sorted(pages), sorted(TABLES))
    for one in traces:
        for table in TABLES:
            schema = pyarrow.parquet.read_schema(one.file(table))
            written = [(field.name, str(field.type).replace("large_", "")) for field in schema]
            suite.check(f"{one.folder} {table}", written, pages.get(table))


def spark(suite, master, traces, engine):
    """Every canned question, and what is refused."""
    from mtprof.dataset.spark_engine import SparkEngine
    other = SparkEngine(traces, master)
    try:
        for name, (_, text) in questions().items():
            started = time.monotonic()
            suite.same_rows(f"Spark: {name}", other.ask(text), engine.ask(text))
            print(f"Spark: {name}: {time.monotonic() - started:.1f} s")
        suite.check("Spark: views", {view: [name for name, _ in columns] for view, columns in other.schema().items()},
                    {view: [name for name, _ in columns] for view, columns in engine.schema().items()})
        file = traces[0].file("ranks")
        for text in ("DROP VIEW events", "SELECT 1; SELECT 2", f"SELECT * FROM parquet.`{file}`", "SHOW TABLES", "SET a=b",
                     "SELECT java_method('java.lang.System', 'getProperty', 'user.home')", "INSERT INTO x VALUES (1)",
                     "SELECT * FROM (SELECT 1) AS a) AS b; DROP VIEW events; SELECT * FROM (SELECT 1"):
            try:
                suite.check(f"Spark refuses: {text}", other.ask(text).rows, "an error")
            except QueryError:
                suite.passed += 1
        try:
            other.ask("SELECT nam FROM events")
            suite.check("Spark: nam", "an answer", "an error")
        except QueryError as error:
            suite.check(f"Spark: {error.hint}", "'name'" in str(error.hint), True)
        suite.check("Spark: events are still there", other.ask("SELECT count(*) FROM events").rows,
                    engine.ask("SELECT count(*) FROM events").rows)
    finally:
        other.close()


def job_of(path):
    """Traces that a test made begin at the same time: only those of a rank are of one job."""
    name = pathlib.Path(path).stem
    return "peers" if name.startswith("rank") else name


def add_all(folder, paths):
    return [what for path in paths for _, what, _ in add_traces(folder, [path], job=job_of(path))]


def files(suite, path, traces):
    """Every value of every table: pyarrow reads from the file what the trace itself gives."""
    source = Source(path, job=job_of(path))
    (one,) = (one for one in traces if (one.job, one.rank, one.start) == (source.job, source.rank, source.start))
    for table in TABLES:
        given = pyarrow.table(source.arrow(table))
        made = pyarrow.parquet.ParquetFile(one.file(table)).read()
        for name in given.column_names:
            wanted = given[name]
            if pyarrow.types.is_dictionary(wanted.type):
                wanted = wanted.cast(wanted.type.value_type)
            suite.check(f"{path}: {table}.{name}", made[name].equals(wanted.cast(made[name].type)), True)


def points(suite, path, source):
    """Marks and allocations are the same before the columns are made, when they cost a pass, and after."""
    def read():
        return {table: pyarrow.table(source.arrow(table)) for table in ("marks", "allocations")}
    before = read()
    pyarrow.table(source.arrow("events"))
    after = read()
    for table, rows in before.items():
        suite.check(f"{path}: {table} when the columns are there", after[table].equals(rows), True)
    return sum(rows.num_rows for rows in before.values())


def random_programs(work, count, command, make):
    suite, marks, ops = Suite(), 0, 0
    folder, traces = os.path.join(work, "dataset_random"), os.path.join(work, "random")
    for place in (folder, traces):
        shutil.rmtree(place, ignore_errors=True)
    os.makedirs(traces)
    subprocess.run([make, traces, "1", str(count)], check=True)
    for seed in range(1, count + 1):
        path = os.path.join(traces, f"r{seed}.mtt")
        marks += points(suite, path, Source(path, keep_damaged=True))
        what = [what for _, what, _ in add_traces(folder, [path], job=f"r{seed}", keep_damaged=True)]
        suite.check(f"{path}: added", what, ["added"])
        ops += reports(suite, command, path, DuckdbEngine([Source(path, keep_damaged=True)], []), names_of_ops)
        kept = [one for one in stored(folder)[0] if one.job == f"r{seed}"]
        ops += reports(suite, command, path, DuckdbEngine([], kept), names_of_ops)
        os.unlink(path)
    suite.check("some programs have marks, and ops", (marks > 0, ops > count), (True, True))
    shutil.rmtree(folder)
    print(f"{count} random programs, {ops} ops from the events, {marks} marks and allocations")
    print(f"{suite.passed} passed, {suite.failed} failed, 0 skipped")
    return suite.failed != 0


def main(work, master, command, paths):
    suite = Suite()
    folder = os.path.join(work, "dataset")
    shutil.rmtree(folder, ignore_errors=True)
    suite.check("all added", add_all(folder, paths), ["added"] * len(paths))
    suite.check("a second run", add_all(folder, paths), ["skipped"] * len(paths))
    suite.check("nothing else is left", [name for name in os.listdir(folder) if name[0] == "_"], [])
    traces = stored(folder)[0]
    schemas(suite, traces)
    for path in paths:
        reports(suite, command, path, DuckdbEngine([Source(path)], []))
        files(suite, path, traces)
    open_ones = DuckdbEngine([Source(path, job=job_of(path)) for path in paths], [])
    engine = DuckdbEngine([], traces)
    for name, (_, text) in questions().items():
        suite.same_rows(name, engine.ask(text), open_ones.ask(text))
    text = "SELECT * FROM events ORDER BY job, rank, start, event"  # every column of every event
    suite.same_rows("events", engine.ask(text), open_ones.ask(text))
    refusals(suite, engine, work)
    refusals(suite, open_ones, work)
    if master != "none":
        spark(suite, master, traces, engine)
    print(f"DuckDB {duckdb.__version__}, pyarrow {pyarrow.__version__}")
    print(f"{suite.passed} passed, {suite.failed} failed, {int(master == 'none')} skipped"
          + (": Spark was not asked for" if master == "none" else ""))
    return suite.failed != 0


if __name__ == "__main__":
    if sys.argv[1] == "--random":
        sys.exit(random_programs(sys.argv[2], int(sys.argv[3]), *sys.argv[4:]))
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]))
