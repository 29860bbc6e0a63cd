# SPDX-License-Identifier: Apache-2.0
"""The folders of a data set: DIR/job=J/rank=R/start=S/TABLE.parquet, and _trace.json beside the tables.

A trace is written to a folder DIR/_new-… and renamed, so what is there under its name is complete. Names with a
leading _ are no data to Spark, DuckDB and others.
"""
import contextlib
import glob
import json
import os
import shutil
import urllib.parse

from mtprof.dataset.source import SCHEMA, TABLES, Refused

MANIFEST = "_trace.json"
NEW = "_new-"


def partition(source):
    """The folder of a trace in a data set."""
    job = urllib.parse.quote(source.job, safe="")
    return os.path.join(f"job={job}", f"rank={source.rank}", f"start={source.start}")


class Stored:
    """A trace that is in a data set."""

    def __init__(self, folder):
        self.folder = folder
        try:
            with open(os.path.join(folder, MANIFEST), encoding="utf-8") as file:
                self.manifest = json.load(file)
            names = [self.manifest[name] for name in ("schema", "identity", "job", "rank", "start", "source")]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Refused(f"its {MANIFEST} cannot be used: {error!r}") from None
        schema, self.identity, self.job, self.rank, self.start, self.source = names
        self.world_size = self.manifest.get("world_size")
        if schema != SCHEMA:
            raise Refused(f"its schema is {schema}, this version reads {SCHEMA}")
        missing = [table for table in TABLES if not os.path.isfile(self.file(table))]
        if missing:
            raise Refused(f"{missing[0]}.parquet is missing")

    def file(self, table):
        """The file of a table."""
        return os.path.join(self.folder, f"{table}.parquet")


def is_dataset(path):
    """Whether a path is a data set, or could become one: a folder with traces in it."""
    return os.path.isdir(path) and bool(glob.glob(os.path.join(glob.escape(path), "job=*")))


def folders(path):
    """The folders of traces in a data set, in order."""
    return sorted(glob.glob(os.path.join(glob.escape(path), "job=*", "rank=*", "start=*")))


def stored(path):
    """What is in a data set: (traces, {folder: why it is left out})."""
    found, left_out = [], {}
    for folder in folders(path):
        try:
            found.append(Stored(folder))
        except Refused as reason:
            left_out[folder] = str(reason)
    return found, left_out


def _sync(path):
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def new_trace(path, source, identity, replaced=None):
    """A folder to write a trace's tables to, and a dict that becomes its manifest; in its place when the block ends.

    replaced: the Stored trace whose place it takes. Nothing is left if the block fails.
    """
    target = os.path.join(path, partition(source))
    folder = os.path.join(path, f"{NEW}{os.getpid()}-{os.urandom(4).hex()}")
    os.makedirs(folder)
    try:
        manifest = {"schema": SCHEMA, "identity": identity, "job": source.job, "rank": source.rank,
                    "start": source.start, "source": os.path.basename(source.path), "world_size": source.world_size,
                    "uuid": source.uuid, "closed": source.info["closed"]}
        yield folder, manifest
        with open(os.path.join(folder, MANIFEST), "w", encoding="utf-8") as file:
            json.dump(manifest, file, indent=1)
            file.write("\n")
        for name in os.listdir(folder):
            _sync(os.path.join(folder, name))
        _sync(folder)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if replaced is not None:
            os.rename(replaced.folder, folder + "-old")
        try:
            os.rename(folder, target)
        except OSError:
            if replaced is not None:
                os.rename(folder + "-old", replaced.folder)
            raise
        _sync(os.path.dirname(target))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(folder + "-old", ignore_errors=True)


def remove_unfinished(path):
    """What runs that were killed left behind. Those of processes that live stay."""
    removed = 0
    for folder in glob.glob(os.path.join(glob.escape(path), NEW + "*")):
        owner = os.path.basename(folder)[len(NEW):].split("-")[0]
        if owner.isdecimal() and not os.path.exists(f"/proc/{owner}"):
            shutil.rmtree(folder, ignore_errors=True)
            removed += 1
    return removed
