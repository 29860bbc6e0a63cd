# SPDX-License-Identifier: Apache-2.0
"""`mtprof query QUERY TRACE|FOLDER...`: one SELECT, or a canned question, over traces and data sets."""
import glob
import os
import shutil
import sys

from mtprof.command_line import CommandLine, Misuse, Option, reader_left
from mtprof.dataset.engine import QueryError, question, questions
from mtprof.dataset.folder import is_dataset, stored
from mtprof.dataset.parquet_command import FAILED, LEFT_OUT, MISUSE, parse_anywhere
from mtprof.dataset.show import as_json, table, write_csv
from mtprof.dataset.source import Refused, Source, other_jobs

FORMATS = ("table", "csv", "json", "parquet")


def _count(text):
    if not text.isdecimal():
        raise ValueError("a number")
    return int(text)


def _choice(*words):
    def parse(text):
        if text not in words:
            raise ValueError("one of " + ", ".join(words))
        return text
    return parse


COMMAND = CommandLine("query", "mtprof query [OPTIONS] QUERY TRACE|FOLDER...",
                      "Ask one trace or many in SQL.", """\
QUERY is one SELECT, or the name of a canned question (--list). Views: events, ops, kernels, collectives, steps, \
parts, averages, memory, marks, tracks, frames, ranks, health; --schema shows their columns, docs/dataset.md what they \
mean. A FOLDER is a data set of 'mtprof export parquet'.

A query reads what was named and nothing else: no file, no network, and it changes nothing. Traces that are damaged, \
missing or of another job than most are named and left out; the exit status is 4 then, and 1 where none is left.""", (
    Option("list", "l", help="list the canned questions"),
    Option("schema", help="show the views' columns"),
    Option("sql", help="print the SQL of QUERY, and run nothing"),
    Option("format", "f", "FORMAT", "table (default), csv, json or parquet", _choice(*FORMATS)),
    Option("json", help="the same as --format json"),
    Option("output", "o", "FILE", "write to this file"),
    Option("rows", "n", "N", "most rows of a table; the default is 100, 0 is all", _count),
    Option("job", None, "NAME", "only traces of this job; 'any': of all jobs"),
    Option("keep-damaged", help="take what is left of damaged traces"),
    Option("memory", None, "SIZE", "most memory DuckDB uses, such as 4GB"),
    Option("engine", None, "NAME", "duckdb (default) or spark, for data sets", _choice("duckdb", "spark")),
    Option("master", None, "URL", "spark: the cluster's master (default: local[*])"),
    Option("help", "h", help="this text"),
))


def _expand(paths):
    for path in paths:
        found = sorted(glob.glob(path)) if not os.path.exists(path) and glob.has_magic(path) else []
        yield from found or [path]


def gather(paths, job=None, keep_damaged=False):
    """(open traces, stored ones, {path: why it is left out})."""
    sources, kept, left_out = [], [], {}
    for path in dict.fromkeys(_expand(paths)):
        if "://" in path:
            continue  # Spark's to read
        if is_dataset(path):
            found, refused = stored(path)
            kept += found
            left_out.update(refused)
        elif os.path.isdir(path):
            left_out[path] = f"a folder, but no data set; the traces in it can be named: {os.path.join(path, '*.mtt')}"
        else:
            try:
                sources.append(Source(path, keep_damaged=keep_damaged))
            except Refused as reason:
                left_out[path] = str(reason)
    if job is None:
        others = other_jobs(sources)  # a data set may hold many jobs; its column tells them apart
    else:
        others = {one: f"of job {one.job}" for one in [*sources, *kept] if job not in ("any", one.job)}
    left_out.update({one.path if one in sources else one.folder: why for one, why in others.items()})
    return [one for one in sources if one not in others], [one for one in kept if one not in others], left_out


def make_engine(given, sources, kept, addresses=()):
    """The engine that was asked for. addresses: of data sets that are no folders here."""
    if given.get("engine") == "spark":
        from mtprof.dataset.spark_engine import SparkEngine
        if sources:
            raise Refused(f"Spark reads data sets, {sources[0].path} is a trace: 'mtprof export parquet' writes one")
        return SparkEngine(kept, given.get("master", "local[*]"), addresses)
    if addresses:
        raise Refused(f"{addresses[0]}: DuckDB reads data sets of this machine here; use --engine spark")
    from mtprof.dataset.duckdb_engine import DuckdbEngine
    return DuckdbEngine(sources, kept, given.get("memory"))


def _print_schema(engine):
    for view, columns in engine.schema().items():
        print(view)
        for name, kind in columns:
            print(f"  {name:20} {kind.lower()}")


def _answer(engine, text, given, n_traces, left_out):
    kind = "json" if "json" in given else given.get("format", "table")
    output = given.get("output")
    if kind == "parquet":
        if output is None:
            raise COMMAND.misuse("Parquet needs a file (-o)")
        from pyarrow import parquet
        parquet.write_table(engine.arrow(text), output, compression="zstd")
        return
    most = given.get("rows", 100 if kind == "table" and output is None else 0)
    answer = engine.ask(text, most + 1 if most else None)
    cut = most and len(answer.rows) > most
    if cut:
        answer.rows = answer.rows[:most]
    try:
        file = open(output, "w", encoding="utf-8", newline="") if output else sys.stdout
    except OSError as error:
        raise Refused(f"cannot write {output}: {error.strerror}") from None
    try:
        if kind == "csv":
            write_csv(answer, file)
        elif kind == "json":
            print(as_json(answer, n_traces, left_out), file=file)
        else:
            width = shutil.get_terminal_size((80, 24)).columns
            lines, no_room = table(answer, 10**6 if output else width)
            print(*lines, sep="\n", file=file)
            if no_room:
                print(f"mtprof: query: no room for {len(no_room)} columns: {', '.join(no_room)}; --format csv has them",
                      file=sys.stderr)
    finally:
        if output:
            file.close()
    if cut:
        print(f"mtprof: query: only the first {most} rows are shown (--rows)", file=sys.stderr)


def _query(given, words):
    if "list" in given:
        for name, (about, _) in questions().items():
            print(f"{name:14} {about}")
        return 0
    if not words or ("schema" not in given and "sql" not in given and len(words) < 2):
        raise COMMAND.misuse("a query is needed" if not words else "a trace or a data set is needed",
                             f"usage: {COMMAND.usage}")
    text = question(words[0]) if "schema" not in given else None
    if "sql" in given:
        print(text.rstrip())
        return 0
    paths = words if text is None else words[1:]
    sources, kept, left_out = gather(paths, given.get("job"), "keep-damaged" in given)
    for path, why in left_out.items():
        print(f"mtprof: query: {path}: left out: {why}", file=sys.stderr)
    addresses = [path for path in paths if "://" in path]
    if not sources and not kept and not addresses:
        raise Refused("no trace is left to ask")
    engine = make_engine(given, sources, kept, addresses)
    if text is None:
        _print_schema(engine)
    else:
        _answer(engine, text, given, len(sources) + len(kept), left_out)
    return LEFT_OUT if left_out else 0


def main(words=None):
    """Answers a query: an exit status."""
    words = sys.argv[1:] if words is None else words
    if words[:1] == ["__complete"]:
        COMMAND.complete(words[1:])
        return 0
    try:
        given, rest = parse_anywhere(COMMAND, words)
        if given.get("help"):
            COMMAND.print_help()
            return 0
        return _query(given, rest)
    except (Misuse, QueryError) as error:
        print(f"mtprof: query: {error}", file=sys.stderr)
        if error.hint:
            print(f"  hint: {error.hint}", file=sys.stderr)
        return MISUSE if isinstance(error, Misuse) else FAILED
    except BrokenPipeError:
        reader_left()
        return 0
    except (Refused, OSError, RuntimeError, ValueError) as problem:
        print(f"mtprof: query: {problem}", file=sys.stderr)
        return FAILED


if __name__ == "__main__":
    sys.exit(main())
