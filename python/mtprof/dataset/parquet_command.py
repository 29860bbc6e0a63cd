# SPDX-License-Identifier: Apache-2.0
"""`mtprof export parquet TRACE... -o DIR`: traces into one data set of Parquet files (docs/dataset.md)."""
import json
import os
import sys
import time

from mtprof.command_line import CommandLine, Misuse, Option
from mtprof.dataset.folder import Stored, partition, remove_unfinished, stored
from mtprof.dataset.source import Refused, Source, content_identity
from mtprof.dataset.writer import write_trace

FAILED, MISUSE, LEFT_OUT = 1, 2, 4  # exit codes, as those of the command


def _count(text):
    if not text.isdecimal() or int(text) < 1:
        raise ValueError("a number from 1")
    return int(text)


COMMAND = CommandLine("export parquet", "mtprof export parquet [OPTIONS] TRACE... -o DIR",
                      "Add traces to a data set of Parquet files, for SQL.", """\
The data set has a folder for each trace (job=, rank=, start=) and in it a file for each table; docs/dataset.md has \
the columns. A trace is in it completely or not at all: what is already there is skipped, so that a run that was \
interrupted can be repeated. Traces that are damaged, missing or unreadable are named and left out; the exit status is \
4 then, and 1 where none is left.""", (
    Option("output", "o", "FOLDER", "the data set; it is made where it does not exist"),
    Option("job", None, "NAME", "job of the traces, instead of the one that they name"),
    Option("jobs", "j", "N", "processes to use (default: 1)", _count),
    Option("keep-damaged", help="take what is left of damaged traces"),
    Option("json", help="print JSON"),
    Option("quiet", "q", help="print no summary"),
    Option("help", "h", help="this text"),
))


def parse_anywhere(command, words):
    """Options and operands in any order; behind -- only operands."""
    given, operands, rest = {}, [], list(words)
    while rest:
        some, rest = command.parse(rest)
        given.update(some)
        if rest[:1] == ["--"]:
            operands += rest[1:]
            break
        operands += rest[:1]
        rest = rest[1:]
    return given, operands


def _taken(folder, source, identity):
    """The trace that lies where this one belongs. None: there is none. Refused: it is not this one, unfinished."""
    place = os.path.join(folder, partition(source))
    if not os.path.exists(place):
        return None
    old = Stored(place)
    was_open = not old.manifest.get("closed") and source.uuid is not None and old.manifest.get("uuid") == source.uuid
    if old.identity != identity and not was_open:
        raise Refused(f"{partition(source)} has been written from {old.source}")
    return old


def add_trace(folder, path, job, keep_damaged, known):
    """(what was done, manifest or reason): "added", "skipped" or "left out"."""
    try:
        identity = content_identity(path) if os.path.isfile(path) else None
        if identity in known:
            return "skipped", known[identity]
        source = Source(path, job, keep_damaged)
        old = _taken(folder, source, identity)
        if old is not None and old.identity == identity:
            return "skipped", old.manifest
        return "added", write_trace(folder, source, identity, old)
    except Refused as reason:
        return "left out", str(reason)
    except (OSError, RuntimeError, ValueError, MemoryError) as error:
        return "left out", str(error) or type(error).__name__


def add_traces(folder, paths, job=None, jobs=1, keep_damaged=False):
    """Adds traces to a data set; yields (path, what was done, manifest or reason) in order."""
    os.makedirs(folder, exist_ok=True)
    remove_unfinished(folder)
    known = {one.identity: one.manifest for one in stored(folder)[0]}
    fixed = (job, keep_damaged, known)
    if jobs == 1 or len(paths) == 1:
        for path in paths:
            yield path, *add_trace(folder, path, *fixed)
        return
    from concurrent.futures import ProcessPoolExecutor  # imported here: that takes as long as a small trace
    from multiprocessing import get_context
    with ProcessPoolExecutor(min(jobs, len(paths)), get_context("spawn")) as pool:
        waiting = [pool.submit(add_trace, folder, path, *fixed) for path in paths]
        for path, one in zip(paths, waiting):
            yield path, *one.result()


def _size(size):
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.3g} {unit}" if unit != "B" else f"{size} B"
        size /= 1024
    return f"{size:.3g} GiB"


def _export(given, paths):
    started = time.monotonic()
    folder, quiet = given["output"], "quiet" in given or "json" in given
    done = {"added": [], "skipped": [], "left out": []}
    for path, what, about in add_traces(folder, paths, given.get("job"), given.get("jobs", 1),
                                        "keep-damaged" in given):
        done[what].append((path, about))
        if what == "left out":
            print(f"mtprof: export: {path}: left out: {about}", file=sys.stderr)
    added = [about for _, about in done["added"]]
    events = sum(one["tables"]["events"]["rows"] for one in added)
    size = sum(table["bytes"] for one in added for table in one["tables"].values())
    if "json" in given:
        print(json.dumps({
            "output": folder, "added": [path for path, _ in done["added"]],
            "skipped": [path for path, _ in done["skipped"]], "events": events, "bytes": size,
            "seconds": round(time.monotonic() - started, 3),
            "left_out": [{"trace": path, "reason": about} for path, about in done["left out"]]}))
    elif not quiet:
        skipped = f", {len(done['skipped'])} already there" if done["skipped"] else ""
        print(f"{folder}: {len(added)} trace{'' if len(added) == 1 else 's'} added{skipped}, {events} events, "
              f"{_size(size)}")
    if not done["left out"]:
        return 0
    return LEFT_OUT if added or done["skipped"] else FAILED


def main(words=None):
    """Writes a data set: an exit status."""
    words = sys.argv[1:] if words is None else words
    if words[:1] == ["__complete"]:
        COMMAND.complete(words[1:])
        return 0
    try:
        given, paths = parse_anywhere(COMMAND, words)
        if given.get("help"):
            COMMAND.print_help()
            return 0
        if not paths or "output" not in given:
            raise COMMAND.misuse("traces are needed" if not paths else "the data set's folder is needed (-o)",
                                 f"usage: {COMMAND.usage}")
        return _export(given, paths)
    except Misuse as error:
        print(f"mtprof: export: {error}\n  hint: {error.hint}", file=sys.stderr)
        return MISUSE
    except (Refused, OSError) as problem:
        print(f"mtprof: export: {problem}", file=sys.stderr)
        return FAILED


if __name__ == "__main__":
    sys.exit(main())
