# SPDX-License-Identifier: Apache-2.0
"""A trace that a data set or a query takes: opened, checked, and whose it is (job, rank, start)."""
import json
import os
import time

from mtprof import _mtprof

SCHEMA = 2  # docs/dataset.md; a change of columns or of their meaning makes it grow
ARROW_TABLES = {  # files of a trace: libmtprof's table
    "events": "dataset", "averages": "averages", "steps": "steps", "parts": "parts", "tracks": "tracks",
    "frames": "frames", "marks": "marks", "allocations": "allocations"}
RANK_COLUMNS = {  # the table `ranks`: a row a trace; formats are Arrow's
    "world_size": "l", "backend": "U", "source": "U", "uuid": "U", "pid": "l", "events": "l", "start_ns": "l",
    "end_ns": "l", "real_offset_ns": "l", "device_type": "U", "closed": "b", "pair_cost_ns": "g", "schema": "i"}
HEALTH_COLUMNS = {"counter": "U", "value": "l"}  # the table `health`: a row a counter
TABLES = (*ARROW_TABLES, "ranks", "health")
NO_JOB = "none"
JOB_KEY = "job_id"  # metadata of traces, see profiler.py


class Refused(Exception):
    """Why a trace is left out, in a few words."""


def _metadatum(metadata, key):
    """A value of the trace's metadata; what is JSON comes as text."""
    value = metadata.get(key)
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _number(value):
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None


def start_text(unix_ns):
    """Unix time as a name that sorts: 20261116T190000.000000000Z."""
    seconds, rest = divmod(max(unix_ns, 0), 10**9)
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime(seconds)) + f".{rest:09}Z"


def content_identity(path):
    """What tells a file from others: a hash of its bytes. Copies that were edited have the id of their recording."""
    return "mtprof:" + _mtprof.content_hash(path)


def _cells(columns, rows):
    return _mtprof.cells_arrow_stream(list(columns), "".join(columns.values()),
                                      [[row[name] for name in columns] for row in rows])


class Source:
    """An open trace. job: instead of the one that it names itself. Refused: it cannot be taken."""

    def __init__(self, path, job=None, keep_damaged=False):
        self.path = path
        if not os.path.exists(path):
            raise Refused("no such file")
        try:
            self.model = _mtprof.Model.open(path)
            damage = self.model.damage()
        except (OSError, RuntimeError, ValueError) as error:
            raise Refused(str(error).removeprefix(f"{path}: ")) from None
        if damage["problems"] and not keep_damaged:
            places = "1 place" if damage["problems"] == 1 else f"{damage['problems']} places"
            raise Refused(f"damaged in {places}, the first at byte {damage['offset']}")
        info = self.info = self.model.info
        self.uuid = info["uuid"] if not info["foreign"] else None
        metadata = self.model.metadata()
        place = _metadatum(metadata, "distributedInfo")  # of torch's traces and of ours
        place = place if isinstance(place, dict) else {}
        self.rank = _number(place.get("rank")) or 0
        self.world_size = _number(place.get("world_size"))
        self.backend = place.get("backend") if isinstance(place.get("backend"), str) else None
        self.job = job or str(_metadatum(metadata, JOB_KEY) or NO_JOB)
        self.start = start_text(info["start_ns"] + info["real_offset_ns"])

    def arrow(self, table):
        """A table of the trace, with __arrow_c_stream__."""
        from mtprof.event_lists import ArrowTable
        if table == "ranks":
            return ArrowTable(table, lambda: _cells(RANK_COLUMNS, [self.rank_row()]))
        if table == "health":
            return ArrowTable(table, lambda: _cells(HEALTH_COLUMNS, self.health_rows()))
        return ArrowTable(table, lambda: self.model.arrow_stream(ARROW_TABLES[table]))

    def rank_row(self):
        """The row of the table `ranks`."""
        info = self.info
        return {"world_size": self.world_size, "backend": self.backend, "source": os.path.basename(self.path),
                "uuid": self.uuid, "pid": info["pid"],
                "events": self.model.findings()["events"], "start_ns": info["start_ns"], "end_ns": info["end_ns"],
                "real_offset_ns": info["real_offset_ns"], "device_type": info["device_type"],
                "closed": info["closed"], "pair_cost_ns": float(self.model.health()["pair_cost_ns"]),
                "schema": SCHEMA}

    def health_rows(self):
        """Rows of the table `health`: the recorder's counters, losses by cause, and what analysing found."""
        counters = dict(self.model.findings())
        for name, value in self.model.health().items():
            if name == "lost_by":
                counters.update({f"lost_by_{cause}": lost for cause, lost in value.items()})
            elif name != "pair_cost_ns" and value is not None:
                counters.setdefault(name, int(value))
        return [{"counter": name, "value": value} for name, value in sorted(counters.items())]


def other_jobs(sources):
    """Of several sources those that are of another job than most: {source: why}."""
    def key(source):
        return source.job, source.world_size
    counts = {}
    for source in sources:
        counts[key(source)] = counts.get(key(source), 0) + 1
    if len(counts) < 2:
        return {}
    (job, size) = max(counts, key=lambda one: counts[one])  # of equals the first
    said = f"job {job}" + (f" of {size} ranks" if size is not None else "")
    return {source: f"of another job: {source.job}"
                    + (f" of {source.world_size} ranks" if source.world_size is not None else "")
                    + f", the others are {said}"
            for source in sources if key(source) != (job, size)}
