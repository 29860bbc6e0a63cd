# SPDX-License-Identifier: Apache-2.0
"""What a random program did, and whether a trace says the same. The soak's own account; see soak_profiler.py.

Names of scopes and marks are never used twice in a process, so an event that is missing, there twice, of another
window or of another process is told from the right one. An entry is `sure` once the call that records it has
returned: where an exception cut the program off, one that is not sure may be in the trace or not.
"""
import collections
import csv
import itertools
import json
import threading

_numbers = itertools.count()


class Wrong(AssertionError):
    """The trace does not say what the program did."""


def fresh(stem):
    """A name that was not used before."""
    return f"{stem}.{next(_numbers)}"


def require(holds, *said):
    """Wrong unless it holds."""
    if not holds:
        raise Wrong(" ".join(map(str, said)))


class Scope:
    """One scope of the program."""

    __slots__ = ("name", "parents", "label", "metadata", "is_async", "sure", "is_open", "function", "step")

    def __init__(self, name, parents, label, metadata, step, function):
        self.name, self.parents, self.label, self.metadata, self.step = name, parents, label, metadata, step
        self.is_async = self.sure = False
        self.is_open = True
        self.function = function


class Mark:
    """An instant, a counter or a flow."""

    __slots__ = ("kind", "name", "value", "sure", "step")

    def __init__(self, kind, name, value, step):
        self.kind, self.name, self.value, self.step, self.sure = kind, name, value, step, False


class Op:
    """A call that records ops: `names` are all of them, in the scope `parent` (None: outside of any)."""

    __slots__ = ("names", "parent", "sure", "step")

    def __init__(self, names, parent, step):
        self.names, self.parent, self.step, self.sure = names, parent, step, False


class Account:
    """Appends are atomic under the GIL: every thread and signal handler writes here."""

    def __init__(self, scheduled=False):
        self.scopes, self.marks, self.ops = [], [], []
        self.leaf_calls = []      # steps, one for each call of leaf()
        self.step = 0
        self.scheduled = scheduled  # main's scopes are inside "ProfilerStep#N"
        self.cut = False          # an exception came at a random place
        self.main = threading.get_ident()

    def root_parents(self):
        """What may be around a scope that is inside no other of ours."""
        if self.scheduled and threading.get_ident() == self.main:
            return (f"ProfilerStep#{self.step}",)
        return (None,)

    def of_steps(self, steps):
        """The part that was recorded in these steps; None: all of it."""
        if steps is None:
            return self
        part = Account(self.scheduled)
        part.cut = self.cut
        for kind in ("scopes", "marks", "ops"):
            setattr(part, kind, [entry for entry in getattr(self, kind) if entry.step in steps])
        part.leaf_calls = [step for step in self.leaf_calls if step in steps]
        return part


# ---- comparing ----


def _kept(event):
    return not event.is_python_function and event.name != "[memory]"


def ancestor(event, op_names):
    """The name of the nearest scope or step around an event, or None."""
    above = event.cpu_parent
    while above is not None and (above.is_python_function or above.name in op_names):
        above = above.cpu_parent
    return above.trace_name if above is not None else None  # of a step: with its number


def compare_counts(what, found, sure, maybe):
    """Each is there as often as it surely was recorded, and not more often than it may have been."""
    for name in set(found) | set(sure):
        low, high = sure[name], sure[name] + maybe[name]
        require(low <= found[name] <= high, what, name, "is there", found[name], "times, recorded", low, "to", high)


def split(entries, key):
    """Counters of what is sure and of what is not."""
    sure, maybe = collections.Counter(), collections.Counter()
    for entry in entries:
        for name in key(entry):
            (sure if entry.sure else maybe)[name] += 1
    return sure, maybe


def check_scope(scope, event, op_names):
    """One event against what the program did."""
    above = ancestor(event, op_names)
    require(above in scope.parents, scope.name, "is inside of", above, "and not of", scope.parents)
    if scope.is_async is not None:
        require(event.is_async == scope.is_async, scope.name, "is_async is", event.is_async)
    text = event.metadata_json or ""
    told = json.loads("{" + text + "}") if text else {}
    told.pop("truncated", None)
    if scope.label.startswith("loop"):
        require("task" in told, scope.name, "does not say which task it is of")
        del told["task"]
    if scope.sure:
        require(told == scope.metadata, scope.name, "has metadata", told, "and not", scope.metadata)
    span, around = event.time_range, event.cpu_parent
    require(span.start <= span.end, scope.name, "ends before it begins")
    if around is not None and not scope.is_open and scope.is_async is False and not around.is_async:
        outer = around.time_range
        require(outer.start <= span.start + 0.01 and span.end <= outer.end + 0.01, scope.name, "is not within",
                around.name, span, outer)


def check_threads(scopes, events):
    """A thread of the program is a thread of the trace, and two are two."""
    thread_of = {}
    for scope in scopes:
        if scope.name in events:
            number = events[scope.name].thread
            require(thread_of.setdefault(scope.label, number) == number, scope.label, "is on two threads")
    require(len(set(thread_of.values())) == len(thread_of), "threads are mixed up:", thread_of)


def check_events(events, account, op_names, *, steps=None, names_of_steps=(), part=False, stacks=False, calls=False):
    """All events of a window. part: the trace need not have everything (a ring, a snapshot, a kill)."""
    of_window = account.of_steps(steps)
    scopes = {scope.name: scope for scope in of_window.scopes}
    found, ops, leafs = {}, collections.Counter(), 0
    annotations = collections.Counter()
    for event in events:
        if event.is_python_function and event.name.endswith(": leaf"):
            leafs += 1
        if not _kept(event):
            continue
        if event.name in scopes:
            require(event.name not in found, event.name, "is there twice")
            found[event.name] = event
        elif event.name in op_names:
            ops[ancestor(event, op_names), event.name] += 1
        else:
            require(event.name == "ProfilerStep*", "nobody recorded", event.name)
            annotations[event.trace_name] += 1
    if not part:
        missing = [scope.name for scope in of_window.scopes if scope.sure and scope.name not in found]
        require(not missing, len(missing), "scopes are missing:", missing[:5])
        compare_counts("op", ops, *split(of_window.ops, lambda op: [(op.parent, name) for name in op.names]))
        if not account.cut:
            require(annotations == collections.Counter(names_of_steps), "steps are", annotations)
            require(not calls or leafs == len(of_window.leaf_calls), "calls of leaf:", leafs, "and not",
                    len(of_window.leaf_calls))
    for name, event in found.items():
        if not part or event.cpu_parent is not None:
            check_scope(scopes[name], event, op_names)
        if stacks and scopes[name].function and event.stack:
            require(any(frame.endswith((": " + scopes[name].function, "." + scopes[name].function))
                        for frame in event.stack), name,
                    "was begun in", scopes[name].function, "and not in", event.stack)
    check_threads(of_window.scopes, found)
    return len(found) + sum(ops.values())


def check_marks(marks, account, *, steps=None, part=False):
    """All instants, counters and flows of a window."""
    of_window = account.of_steps(steps)
    found = collections.Counter()
    for mark in marks:
        value = mark["value"] if mark["kind"] == "counter" else mark["flow_id"] if mark["kind"] == "flow" else None
        found[mark["kind"], mark.name, value] += 1
    sure, maybe = split(of_window.marks, lambda mark: [(mark.kind, mark.name, mark.value)])
    compare_counts("mark", found, collections.Counter() if part else sure, sure + maybe if part else maybe)
    return sum(found.values())


def check_health(health, account, *, steps=None, annotations=0, calls=False):
    """Nothing was lost, and the recorder counted what the program did."""
    of_window = account.of_steps(steps)
    require(health.lost == 0, "lost:", health.lost_by)
    for name in ("unmatched", "busy_at_stop", "clock_back", "texts_cut"):
        require(getattr(health, name) == 0, name, "is", getattr(health, name))
    for name in ("orphans", "ends_without_begin", "problems", "skipped"):
        require(health.findings[name] == 0, name, "is", health.findings[name])
    if account.cut:
        return
    require(health.truncated == sum(scope.is_open for scope in of_window.scopes) or calls, "truncated:",
            health.truncated)
    if not calls:
        begins = len(of_window.scopes) + sum(len(op.names) for op in of_window.ops) + annotations
        require(health.begins == begins, "begins:", health.begins, "and not", begins)


# ---- files ----


def check_file(kind, path, events, marks):
    """An exported file has every event."""
    names = collections.Counter(event.trace_name for event in events if _kept(event))
    if kind == "chrome":
        with open(path, encoding="utf-8") as file:
            written = json.load(file)["traceEvents"]
        found = collections.Counter(event["name"] for event in written if event["ph"] in "Xb")
        for name, count in names.items():
            require(found[name] == count, "chrome:", name, "is there", found[name], "times, not", count)
        instants = sum(event["ph"] == "i" and event.get("cat") == "cpu_instant_event" and event["name"] != "[memory]"
                       for event in written)
        require(instants == sum(mark["kind"] == "instant" for mark in marks), "chrome: instants", instants)
    elif kind == "csv":
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        found = collections.Counter(row["name"] for row in rows)
        for name, count in names.items():
            require(found[name] == count, "csv:", name, "is there", found[name], "times, not", count)
    elif kind == "speedscope":
        with open(path, encoding="utf-8") as file:
            frames = {frame["name"] for frame in json.load(file)["shared"]["frames"]}
        require(set(names) <= frames, "speedscope lacks", set(names) - frames)
    elif kind == "perfetto":
        with open(path, "rb") as file:
            data = file.read()
        lacks = [name for name in names if name.encode() not in data]
        require(not lacks, "perfetto lacks", lacks[:5])
    elif kind in ("execution", "memory", "memory_raw"):
        with open(path, encoding="utf-8") as file:
            json.load(file)
