# SPDX-License-Identifier: Apache-2.0
"""What every engine answers with: the views, in SQL that DuckDB and Spark both understand, and the canned questions.

An engine brings the tables of the data set as t_events, t_steps … with the columns job, rank and start in front; the
views are made of them. Numbers in them are signed, since Spark has no others.
"""
import difflib
import os

PLACE = "job, CAST(rank AS INTEGER) AS rank, start"


def _big(*names):
    return ", ".join(f"CAST({name} AS BIGINT) AS {name}" for name in names)


EVENTS = (f"SELECT {PLACE}, {_big('event')}, start_ns, start_ns + dur_ns AS end_ns, dur_ns, "
          f"self_ns, {_big('parent')}, name, kind, "
          f"{_big('track')}, step, CAST(device AS INTEGER) AS device, CAST(flags AS INTEGER) AS flags, correlation, "
          f"{_big('link')}, coalesce(device_ns, 0) AS device_ns, coalesce(self_device_ns, 0) AS self_device_ns, "
          f"input_shapes, {_big('stack')}, module, overload, sequence, {_big('forward')}, flops, bytes, "
          "self_cpu_memory, self_device_memory FROM t_events")
# Where a collective is seen: the program's call, the library on the host, the device.
LAYER = ("CASE WHEN kind = 'kernel' AND (lower(name) LIKE 'nccl%' OR lower(name) LIKE 'hccl%' "
         "OR lower(name) LIKE 'rccl%') THEN 'device' "
         "WHEN kind <> 'kernel' AND (name LIKE 'gloo:%' OR name LIKE 'nccl:%' OR name LIKE 'hccl:%' "
         "OR name LIKE 'mpi:%' OR name LIKE 'ucc:%') THEN 'library' "
         "WHEN kind <> 'kernel' AND name LIKE 'c10d::%' THEN 'call' END")
VIEWS = {  # in this order: later ones use earlier ones
    "events": EVENTS,
    "ops": "SELECT * FROM events WHERE kind = 'op'",
    "kernels": "SELECT * FROM events WHERE kind = 'kernel'",
    "collectives": f"SELECT * FROM (SELECT {LAYER} AS layer, events.* FROM events) AS found WHERE layer IS NOT NULL",
    "steps": f"SELECT {PLACE}, step, {_big('event')}, name, {_big('track')}, start_ns, end_ns, "
             "end_ns - start_ns AS dur_ns, self_ns FROM t_steps",
    "parts": f"SELECT {PLACE}, {_big('place')}, step, start_ns, end_ns, state, part, ns FROM t_parts",
    "averages": f"SELECT {PLACE}, name, kind, CAST(device AS INTEGER) AS device, device_type, overload, input_shapes, "
                "module, is_async, is_user_annotation, CAST(count AS BIGINT) AS calls, cpu_ns, self_cpu_ns, "
                "device_ns, self_device_ns, min_ns, max_ns, cpu_memory, self_cpu_memory, device_memory, "
                f"self_device_memory, {_big('flops')} FROM t_averages",
    "memory": f"SELECT {PLACE}, time_ns, CAST(device AS INTEGER) AS device, {_big('track')}, step, {_big('address')}, "
              f"bytes, allocated_bytes, reserved_bytes, {_big('scope')} FROM t_allocations",
    "marks": f"SELECT {PLACE}, time_ns, kind, name, {_big('track')}, step, value, integer, {_big('flow')}, "
             f"flow_phase, {_big('scope')} FROM t_marks",
    "tracks": f"SELECT {PLACE}, {_big('track')}, name, process_name, {_big('device')}, device_type, device_index, "
              f"{_big('number')}, pid, tid FROM t_tracks",
    "frames": f"SELECT {PLACE}, {_big('stack', 'parent')}, function, file, {_big('line')} FROM t_frames",
    "ranks": f"SELECT {PLACE}, world_size, backend, source, uuid, pid, events, start_ns, end_ns, real_offset_ns, "
             "device_type, closed, pair_cost_ns, schema FROM t_ranks",
    "health": f"SELECT {PLACE}, counter, value FROM t_health",
}
QUESTIONS = os.path.join(os.path.dirname(__file__), "questions")


class QueryError(Exception):
    """A query that cannot be answered, and what was meant perhaps."""

    def __init__(self, text, hint=None):
        super().__init__(text)
        self.hint = hint


class Answer:
    """Rows of a query. columns: (name, whether it is a number)."""

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows


def questions():
    """The canned questions: {name: (what it answers, SQL)}."""
    found = {}
    for name in sorted(os.listdir(QUESTIONS)):
        if name.endswith(".sql"):
            with open(os.path.join(QUESTIONS, name), encoding="utf-8") as file:
                text = file.read()
            lines = [line[3:] for line in text.splitlines() if line.startswith("-- ")]
            found[name[:-4]] = lines[0], text
    return found


def question(word):
    """The SQL of a query: the word itself, or the canned question of that name."""
    known = questions()
    if word in known:
        return known[word][1]
    if len(word.split()) == 1:
        if os.path.exists(word):
            raise QueryError(f"'{word}' is no question", "the query comes first, then the traces")
        near = difflib.get_close_matches(word, known, 1)
        raise QueryError(f"there is no question '{word}'",
                         f"did you mean '{near[0]}'?" if near else "'mtprof query --list' lists them")
    return word
