#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Random profiler programs, each checked against an exact account of what it recorded.

    soak_profiler.py [--seconds N] [--seed S] [--only PROGRAM] [--first ROUND] [--rounds N]

A round is one program: a plain profile, a schedule, a ring, a full buffer, signals, interrupts, a fork, a process
that is killed while it records. Its random numbers follow from the seed and the round's number, so that
`--seed S --first ROUND --rounds 1` repeats it (kills and interrupts apart: they come when the clock says).
A line every 30 seconds says what was checked. Ends with status 1 at the first trace that says something wrong.
"""
import argparse
import asyncio
import collections
import contextlib
import faulthandler
import gc
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import mtprof  # noqa: E402
from mtprof import _ExperimentalConfig, profile, record_function, schedule  # noqa: E402
from mtprof.record_fast import _RecordFunctionFast  # noqa: E402
from soak_account import (Account, Mark, Op, Scope, Wrong, check_events, check_file, check_health,  # noqa: E402
                          check_marks, fresh, require)

try:
    import mindtorch_v2 as torch
except ImportError:
    torch = None

FORMATS = ("chrome", "csv", "perfetto", "speedscope", "stacks", "folded", "execution", "memory", "memory_raw",
           "memory_html")
COMMAND = os.environ.get("MTPROF_COMMAND") or shutil.which("mtprof")  # None: files are not checked with it
HANGS_S = 120  # a round takes milliseconds
counts = collections.Counter()


class Boom(BaseException):
    """What a signal's handler raises."""


# ---- ops ----

op_trees = {}   # of each function of OPS: the names of the events that it records
op_names = set()


def _train():
    layer = torch.nn.Linear(4, 2)
    layer(torch.ones(3, 4)).sum().backward()


def _ops():
    if torch is None:
        return {}
    x, y = torch.ones(4, 4), torch.ones(4, 4)
    return {"aten::add": lambda: torch.add(x, y), "aten::mm": lambda: torch.mm(x, y),
            "aten::relu": lambda: torch.relu(x), "aten::sum": lambda: torch.sum(x), "train": _train}


OPS = _ops()


def learn_ops():
    """Which events a call makes is the runtime's business; from here on it must be the same each time."""
    for name, function in OPS.items():
        function()
        with profile() as prof:
            function()
        op_trees[name] = [event.name for event in prof.events()]
        require(name == "train" or name in op_trees[name], name, "records", op_trees[name])
        op_names.update(op_trees[name])


# ---- what a program does ----


def leaf(x):
    return x + 1


class Worker:
    """Random work on one thread, or in one task of an event loop."""

    def __init__(self, account, rng, label, size=12):
        self.account, self.rng, self.label, self.left = account, rng, label, size
        self.stack = []
        self.others = []  # scopes of other tasks may be around ours, see Task

    def parents(self):
        return (self.stack[-1].name,) if self.stack else self.account.root_parents()

    def new(self, function, metadata=None):
        scope = Scope(fresh(self.label), self.parents(), self.label, metadata or {}, self.account.step, function)
        self.account.scopes.append(scope)
        return scope

    def metadata(self):
        keys = self.rng.sample(("id", "note", "ratio", "flag", fresh("key")), self.rng.randint(0, 3))
        values = {"id": self.rng.randrange(-9, 10**9), "note": "tëxt \"%d\"" % self.rng.randrange(99), "ratio": 0.25,
                  "flag": True}
        return {key: values.get(key, 7) for key in keys}

    def run(self, scope, depth):
        scope.sure = True
        self.stack.append(scope)
        try:
            self.work(depth + 1)
        finally:
            self.stack.pop()

    def with_scope(self, depth):
        scope = self.new("with_scope", self.metadata())
        with record_function(scope.name, **scope.metadata):
            self.run(scope, depth)
        scope.is_open = False

    def fast_scope(self, depth):
        scope = self.new("fast_scope", self.metadata())
        with _RecordFunctionFast(scope.name, [1, "two", 3.0], scope.metadata):
            self.run(scope, depth)
        scope.is_open = False

    def decorated_scope(self, depth):
        scope = self.new("decorated_scope")

        @record_function(scope.name)
        def function():
            self.run(scope, depth)
        function()
        scope.is_open = False

    def token_scope(self, depth):
        scope = self.new("token_scope", self.metadata())
        token = mtprof.begin(scope.name, **scope.metadata)
        self.run(scope, depth)
        mtprof.end(token)
        scope.is_open = False

    def raising_scope(self, depth):
        scope = self.new("raising_scope")
        with contextlib.suppress(KeyError):
            with record_function(scope.name):
                self.run(scope, depth)
                raise KeyError
        scope.is_open = False

    def open_scope(self, depth):
        """Is cut off by the end of the window. Only outside of others: what is open is around what follows."""
        if self.stack or self.account.scheduled:
            return
        scope = self.new("open_scope")
        mtprof.begin(scope.name)
        scope.sure = True
        self.stack.append(scope)

    def foreign_scope(self, depth):
        """Begun here and ended by another thread."""
        scope = self.new("foreign_scope")
        scope.is_async = None
        token = mtprof.begin(scope.name)
        scope.sure = True
        worker = Worker(self.account, self.rng, fresh("ender"), 2)

        def end():
            if self.rng.random() < 0.5:
                worker.work(3)
            mtprof.end(token)
        self.stack.append(scope)  # what a thread begins meanwhile is inside it
        run_thread(end)
        self.stack.pop()
        scope.is_async, scope.is_open = True, False

    def orphan_scope(self, depth):
        """Begun by a thread that is gone when another one, perhaps in its place, ends it."""
        scope = Scope(fresh("gone"), (None,), fresh("gone"), {}, self.account.step, None)
        scope.is_async = None
        self.account.scopes.append(scope)
        tokens = []
        run_thread(lambda: tokens.append(mtprof.begin(scope.name)))
        scope.sure = True
        ender = Worker(self.account, self.rng, fresh("ender"), 3)

        def end():
            if self.rng.random() < 0.5:
                ender.work(3)
            mtprof.end(tokens[0])
        run_thread(end)
        scope.is_async, scope.is_open = True, False

    def op(self):
        name = self.rng.choice(list(OPS))
        entry = Op(op_trees[name], self.parents()[0], self.account.step)
        self.account.ops.append(entry)
        OPS[name]()
        entry.sure = True

    def mark(self):
        kind = self.rng.choice(("instant", "counter", "counter", "flow"))
        value = {"instant": None, "counter": self.rng.choice((0.5, -3, 2**40)), "flow": self.rng.randrange(2**40)}[kind]
        mark = Mark(kind, fresh(kind), value, self.account.step)
        self.account.marks.append(mark)
        if kind == "instant":
            mtprof.instant(mark.name, n=1)
        elif kind == "counter":
            mtprof.counter(mark.name, value)
        else:
            mtprof.flow(mark.name, "start", value)
        mark.sure = True

    def work(self, depth=0):
        forms = (self.with_scope, self.fast_scope, self.decorated_scope, self.token_scope, self.raising_scope)
        for _ in range(self.rng.randint(1, 4)):
            self.left -= 1
            if self.left < 0:
                return
            pick = self.rng.random()
            if pick < 0.55 and depth < 6:
                self.rng.choice(forms)(depth)
            elif pick < 0.58 and depth < 3:
                self.rng.choice((self.foreign_scope, self.orphan_scope))(depth)
            elif pick < 0.60:
                self.open_scope(depth)
            elif pick < 0.75 and OPS:
                self.op()
            elif pick < 0.9:
                self.mark()
            else:
                leaf(1)
                self.account.leaf_calls.append(self.account.step)


begun = []  # threads that were made since an interrupt was last prepared


def run_thread(function):
    """Runs to its end in a thread; what it raises is raised here."""
    raised = []

    def body():
        try:
            function()
        except BaseException as error:
            raised.append(error)
    thread = threading.Thread(target=body)
    begun.append(thread)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


def run_threads(account, rng):
    """Some at once, some one after the other."""
    workers = [Worker(account, random.Random(rng.random()), fresh("thread")) for _ in range(rng.randint(1, 4))]
    threads = [threading.Thread(target=worker.work) for worker in workers]
    begun.extend(threads)
    together = rng.random() < 0.7
    for thread in threads:
        thread.start()
        if not together:
            thread.join()
    for thread in threads:
        thread.join()


def run_tasks(account, rng):
    """Tasks of an event loop: scopes that are open across an await, whatever runs meanwhile."""
    label = fresh("loop")
    live = []  # scopes of all tasks that are open: any of them may be around a new one

    async def task(worker, depth):
        for _ in range(worker.rng.randint(1, 3)):
            own = worker.stack[-1].name if worker.stack else None
            scope = Scope(fresh("task"), (), label, {}, account.step, "task")
            scope.parents = {own, *account.root_parents(), *(other.name for other in live)}
            scope.is_async = None
            account.scopes.append(scope)
            with record_function(scope.name):
                scope.sure = True
                worker.stack.append(scope)
                live.append(scope)
                if depth < 2:
                    await task(worker, depth + 1)
                await asyncio.sleep(0)
                live.remove(scope)
                worker.stack.pop()
            scope.is_open = False

    async def main():
        await asyncio.gather(*(task(Worker(account, random.Random(rng.random()), label), 0)
                               for _ in range(rng.randint(2, 4))))
    asyncio.run(main())


def do_work(account, rng, worker):
    """A piece of the main thread's work."""
    worker.left = rng.randint(3, 25)
    worker.work()
    if rng.random() < 0.3:
        run_threads(account, rng)
    if rng.random() < 0.2 and not worker.stack:
        run_thread(lambda: run_tasks(account, rng))


# ---- profiles and their results ----


def arguments(rng, folder, calls=True):
    given = {}
    for flag, chance in (("record_shapes", 0.4), ("profile_memory", 0.3), ("with_stack", 0.3), ("with_modules", 0.2),
                         ("with_flops", 0.2), ("acc_events", 0.1)):
        if rng.random() < chance:
            given[flag] = True
    if calls and rng.random() < 0.25:
        given["with_calls"] = True
    if rng.random() < 0.2:
        given["experimental_config"] = _ExperimentalConfig(record_python_gc_info=False)
    if rng.random() < 0.4:
        given["path"] = os.path.join(folder, "recording.mtt")
    return given


def check_results(results, account, given, **more):
    """Events, marks and health of a window."""
    calls = bool(given.get("with_calls"))
    names = more.pop("names_of_steps", ())
    steps = more.get("steps")
    events = results.events()
    counts["events"] += check_events(events, account, op_names, names_of_steps=names, calls=calls,
                                     stacks=bool(given.get("with_stack") or calls), **more)
    marks = results.marks()
    counts["marks"] += check_marks(marks, account, steps=steps)
    return events, marks


def check_files(prof, account, given, rng, folder, **more):
    """The trace saved and read again, and files in other formats."""
    saved = os.path.join(folder, "saved.mtt")
    prof.save(saved)
    trace = mtprof.load(saved)
    events, marks = check_results(trace, account, given, **more)
    for kind in formats(rng, given, rng.randint(0, 3)):
        path = os.path.join(folder, "out." + kind)
        trace.export(kind, path)
        check_file(kind, path, events, marks)
        counts["files"] += 1
        if kind == "chrome" and not given.get("with_calls") and not given.get("with_stack"):
            again = mtprof.load(path).events()  # marks are not read from JSON
            check_events(again, account, op_names, **more)
            if COMMAND and rng.random() < 0.2:
                run_command("check", path)


def formats(rng, given, n):
    """Some that a trace with these arguments can be written in."""
    has_stacks = given.get("with_stack") or given.get("with_calls")
    has_memory = has_stacks and given.get("record_shapes") and given.get("profile_memory")
    possible = [kind for kind in FORMATS if (has_stacks or kind != "stacks")
                and (has_memory or not kind.startswith("memory"))]
    return rng.sample(possible, n)


def run_command(*words):
    done = subprocess.run([COMMAND, *words], capture_output=True, text=True, check=False)
    require(done.returncode == 0, "mtprof", *words, "ended with", done.returncode, done.stdout, done.stderr)


def plain(rng, folder):
    """start, work, stop."""
    given = arguments(rng, folder)
    account = Account()
    worker = Worker(account, rng, fresh("main"))
    with profile(**given) as prof:
        for _ in range(rng.randint(1, 4)):
            do_work(account, rng, worker)
            if rng.random() < 0.1 and not given.get("with_calls"):  # a snapshot
                check_events(prof.events(), account, op_names)
    check_results(prof, account, given)
    check_health(prof.health(), account, calls=given.get("with_calls"))
    check_files(prof, account, given, rng, folder)


def scheduled(rng, folder):
    """Windows of a schedule, each as it is handed over and at the end."""
    given = arguments(rng, folder)
    given.pop("acc_events", None)
    numbers = {"wait": rng.randint(0, 2), "warmup": rng.randint(0, 2), "active": rng.randint(1, 3),
               "repeat": rng.randint(0, 2), "skip_first": rng.randint(0, 2)}
    steps = rng.randint(1, 12)
    account = Account(scheduled=True)
    worker = Worker(account, rng, fresh("main"))
    expected = windows_of(numbers, steps)
    handed = []

    def names(window):
        return [f"ProfilerStep#{step}" for step in window]

    def kept():
        """What the recording has: a file keeps its earlier windows, memory only the latest."""
        return sum(handed, []) if "path" in given else handed[-1]

    def ready(prof):
        window = expected[len(handed)]
        handed.append(window)
        check_results(prof, account, given, steps=set(window), names_of_steps=names(window))
        check_health(prof.health(), account, steps=set(kept()), annotations=len(kept()), calls=given.get("with_calls"))
    with profile(schedule=schedule(**numbers), on_trace_ready=ready, **given) as prof:
        for step in range(steps):
            account.step = step
            do_work(account, rng, worker)
            if step + 1 < steps:
                prof.step()
    require(handed == expected, "windows", handed, "and not", expected, numbers, steps)
    if handed and prof._window_now().steps == len(handed[-1]) and rng.random() < 0.5:
        check_files(prof, account, given, rng, folder, steps=set(kept()), names_of_steps=names(kept()))


def windows_of(numbers, steps):
    """The steps of each window that is handed over when a loop of so many steps has ended."""
    windows, window = [], []
    cycle = numbers["wait"] + numbers["warmup"] + numbers["active"]
    for step in range(steps):
        at = step - numbers["skip_first"]
        over = at < 0 or (numbers["repeat"] and at // cycle >= numbers["repeat"])
        place = at % cycle
        if not over and place >= numbers["wait"] + numbers["warmup"]:
            window.append(step)
            if place == cycle - 1:
                windows.append(window)
                window = []
    return windows + ([window] if window else [])


def ring(rng, folder):
    """A buffer that goes round: what is there is the newest, and the rest was counted."""
    account = Account()
    given = {"path": os.path.join(folder, "ring.mtt")} if rng.random() < 0.5 else {}
    n = rng.randint(100, 12000)
    first = next_number = None
    with profile(policy="ring", buffer_bytes=rng.choice(("64K", "256K", "1M")), **given) as prof:
        for _ in range(n):
            name = fresh("ring")
            first = first or name
            with record_function(name):
                pass
            next_number = name
    events, health = prof.events(), prof.health()
    del account
    numbers = [int(event.name.split(".")[1]) for event in events]
    last = int(next_number.split(".")[1])
    require(all(event.name.startswith("ring.") for event in events), "others are in the ring")
    require(numbers == list(range(last - len(numbers) + 1, last + 1)), "the ring has gaps, or not the newest")
    require(health.begins == n and health.lost == 0, "begins", health.begins, "of", n, health.lost_by)
    require(len(numbers) + health.evicted >= n, "evicted", health.evicted, "present", len(numbers), "of", n)
    counts["events"] += len(numbers)


def full(rng, folder):
    """A buffer that fills up. One that stops has the oldest, and the rest was counted."""
    n = rng.randint(100, 12000)
    names = []
    policy = rng.choice(("stop", "spill"))  # the one continues in a file, and has everything
    with profile(policy=policy, buffer_bytes=rng.choice(("64K", "256K", "1M"))) as prof:
        for _ in range(n):
            names.append(fresh("full"))
            with record_function(names[-1]):
                pass
    events, health = prof.events(), prof.health()
    require([event.name for event in events] == names[:len(events)], "not the oldest, or not in order")
    require(len(events) == health.begins and health.begins + health.lost >= n, len(events), health.begins, health.lost,
            n)
    require(health.lost == 0 if policy == "spill" else health.lost <= 3 * n, policy, "lost", health.lost)
    counts["events"] += len(events)


def signals(rng, folder):
    """Handlers that record, at any bytecode of the program."""
    given = arguments(rng, folder, calls=False)
    account = Account()
    worker = Worker(account, rng, fresh("main"))
    hits = 0

    def handler(number, frame):
        nonlocal hits
        hits += 1
        n = hits  # a handler may be interrupted by the next
        around = {scope.name for scope in account.scopes if scope.is_open and scope.label == worker.label}
        scope = Scope(fresh("handler"), {None, *around}, worker.label, {"n": n}, 0, "handler")
        account.scopes.append(scope)
        with record_function(scope.name, n=n):
            scope.sure = True
        scope.is_open = False
    before = signal.signal(signal.SIGALRM, handler)
    try:
        with profile(**given) as prof:
            signal.setitimer(signal.ITIMER_REAL, 1e-4, rng.uniform(1e-4, 2e-3))
            for _ in range(rng.randint(1, 6)):
                do_work(account, rng, worker)
            signal.setitimer(signal.ITIMER_REAL, 0)
            account.cut = True  # a handler may be inside something that was about to begin
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    counts["signals"] += hits
    # An op or a scope of the program may be inside none of its own: a handler's are ended by then.
    check_results(prof, account, given)
    check_health(prof.health(), account)


def wait_for_threads():
    """Those whose start() or join() was cut off. One that was never started is given up after a second."""
    for thread in begun:
        end = time.monotonic() + 1
        while not thread._started.is_set() and time.monotonic() < end:
            time.sleep(0.001)
        if thread._started.is_set():
            thread.join()


def interrupts(rng, folder):
    """An exception at any place of start, work, step, stop and export. Nothing wrong is in what is there."""
    given = arguments(rng, folder)
    with_schedule = rng.random() < 0.5
    account = Account(scheduled=with_schedule)
    account.cut = True
    worker = Worker(account, rng, fresh("main"))
    if with_schedule:
        given["schedule"] = schedule(wait=0, warmup=rng.randint(0, 1), active=rng.randint(1, 2))
    box, armed = [], [True]
    begun.clear()

    def handler(number, frame):
        if armed[0]:
            armed[0] = False
            counts["interrupts"] += 1
            raise Boom

    def body():
        prof = profile(**given)
        box.append(prof)
        with prof:
            for step in range(rng.randint(1, 4)):
                account.step = step
                worker.left = rng.randint(1, 20)
                worker.work()
                prof.step()
        for kind in formats(rng, {} if with_schedule else given, 2):  # a schedule may end before it records
            prof._results("exporting").export(kind, os.path.join(folder, "out." + kind))
        prof.key_averages().table()
    before = signal.signal(signal.SIGALRM, handler)
    completed = False
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 5e-3))
            body()
            completed = True
        finally:
            armed[0] = False  # within the outer try: the exception may come right before this line
    except Boom:
        pass
    except AssertionError as error:
        if isinstance(error, Wrong) or "must be initialized" not in str(error):
            raise
    except RuntimeError as error:
        if "unlocked lock" not in str(error) or not isinstance(error.__context__, Boom):
            raise  # Thread.start() of the standard library, cut off while it waits, says this
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    require(sys.getprofile() is None and threading.getprofile() is None, "the call tracer is on")
    if torch is not None:
        torch.set_grad_enabled(True)  # cut off inside a no_grad() that is Python, as torch's is
    left = set(os.listdir(folder)) - {"recording.mtt", "saved.mtt"} - {"out." + kind for kind in FORMATS}
    require(not left, "files are left:", left)
    if box and not with_schedule:
        require(not box[0]._running, "the with statement is over and the profiler runs")
        if box[0]._window_now().results != 0:
            events = box[0].events()
            counts["events"] += check_events(events, account, op_names, part=not completed)
    box.clear()
    gc.collect()
    wait_for_threads()
    account = Account()
    with profile() as prof:
        Worker(account, rng, fresh("after"), 6).work()
    check_results(prof, account, {})


def forks(rng, folder):
    """A child that records for itself while its parent records."""
    given = arguments(rng, folder, calls=False)
    account = Account()
    worker = Worker(account, rng, fresh("main"))
    with profile(**given) as prof:
        do_work(account, rng, worker)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            in_child(writer, lambda: forked(rng, folder))
        os.close(writer)
        do_work(account, rng, worker)
        finish_child(child, reader)
    check_results(prof, account, given)
    check_health(prof.health(), account)


def forked(rng, folder):
    account = Account()
    worker = Worker(account, rng, fresh("child"))
    worker.work()  # nothing records here
    account = Account()
    worker = Worker(account, rng, fresh("child"))
    path = os.path.join(folder, "child.mtt")
    with profile(path=path) as prof:
        worker.work()
    check_results(prof, account, {})
    del prof
    check_results(mtprof.load(path), account, {})


def in_child(writer, function):
    """Runs it in the child of a fork and ends the process; a failure goes to the parent as text."""
    try:
        function()
    except BaseException:
        os.write(writer, traceback.format_exc().encode()[-3000:])
    finally:
        os._exit(0)


def finish_child(child, reader):
    with os.fdopen(reader, "rb") as file:
        said = file.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    require(not said, "in the child:", said)
    require(status == 0, "the child ended with status", status)


def killed(rng, folder):
    """A process that is killed while it records: what it had reported before is in its file."""
    path = os.path.join(folder, "killed.mtt")
    policy = rng.choice(("spill", "spill", "ring"))
    threads = rng.choice((0, 0, 2))
    crowded = policy == "ring" and threads > 0
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        in_child(writer, lambda: record_until_killed(path, writer, policy, threads))
    os.close(writer)
    time.sleep(rng.uniform(0, 0.03) if rng.random() < 0.8 else rng.uniform(0, 0.3))
    os.kill(child, signal.SIGKILL)
    with os.fdopen(reader, "rb") as file:
        told = file.read()
    _, status = os.waitpid(child, 0)
    killed_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    require(killed_by == signal.SIGKILL, "the child ended with status", status, told[-3000:].decode(errors="replace"))
    require(len(told) % 8 == 0, "in the child:", told[-3000:].decode(errors="replace"))
    last = struct.unpack("<q", told[-8:])[0] if told else -1
    if not os.path.exists(path) or os.path.getsize(path) == 0:  # inside start()
        require(last < 0, "there is no file")
        return
    check_killed(mtprof.load(path), last, policy, crowded)
    if COMMAND and rng.random() < 0.3:
        recovered = os.path.join(folder, "recovered.mtt")
        run_command("recover", path, "-o", recovered)
        check_killed(mtprof.load(recovered), last, policy, crowded)
    counts["kills"] += 1


def record_until_killed(path, writer, policy, threads):
    def beside():
        while True:
            with record_function("beside"):
                pass
    with profile(path=path, policy=policy, buffer_bytes="1M" if policy == "ring" else None):
        for _ in range(threads):
            threading.Thread(target=beside, daemon=True).start()
        n = 0
        while True:
            with record_function(f"outer.{n}", n=n):
                with record_function(f"inner.{n}"):
                    mtprof.counter("count", n)
            os.write(writer, struct.pack("<q", n))
            n += 1


def check_killed(trace, last, policy, crowded):
    """What was reported before the kill is there, in order and complete; after it only what was
    about to be reported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        events = trace.events()
    outer = {int(event.name.split(".")[1]): event for event in events if event.name.startswith("outer.")}
    inner = {int(event.name.split(".")[1]): event for event in events if event.name.startswith("inner.")}
    require(len(outer) + len(inner) + sum(event.name == "beside" for event in events) == len(events),
            "others are in the trace, or something is there twice")
    most = max(outer, default=-1)
    # Threads beside it may have filled a ring since the last word of the one that tells.
    require(most <= last + 1 and (last <= most or crowded), "told up to", last, "and recorded up to", most)
    last = min(last, most)
    least = min(outer, default=0) if policy == "ring" else 0
    require(sorted(outer) == list(range(least, most + 1)), "there are gaps:", least, most, len(outer))
    require(set(range(least, last + 1)) <= set(inner) <= set(range(least - 1, most + 1)), "inner scopes are missing")
    for n, event in outer.items():
        if n <= last and n > least:
            require(event.metadata_json == f'"n": {n}', "metadata of", n, "is", event.metadata_json)
            require(inner[n].cpu_parent is event or inner[n].cpu_parent.name == event.name, "parent of", n)
    counts["recovered"] += len(events)


PROGRAMS = {"plain": plain, "scheduled": scheduled, "ring": ring, "full": full, "signals": signals,
            "interrupts": interrupts, "forks": forks, "killed": killed}
WEIGHTS = {"plain": 6, "scheduled": 5, "ring": 1, "full": 1, "signals": 3, "interrupts": 5, "forks": 1, "killed": 3}


# ---- the loop ----


def run_round(seed, number, only):
    rng = random.Random(f"{seed} {number}")
    faulthandler.dump_traceback_later(HANGS_S, exit=True)
    name = only or rng.choices(list(WEIGHTS), WEIGHTS.values())[0]
    with tempfile.TemporaryDirectory(prefix="soak") as folder:
        try:
            PROGRAMS[name](rng, folder)
        except Exception:
            print(f"round {number} of seed {seed} ({name}) failed; to repeat it: --seed {seed} --first {number} "
                  f"--rounds 1 --only {name}", flush=True)
            raise
    counts["rounds"] += 1
    counts["program " + name] += 1


def memory_kib():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * (os.sysconf("SC_PAGESIZE") // 1024)


def log(seed, began):
    shown = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    print(f"{time.monotonic() - began:7.0f} s, seed {seed}: {shown}; {memory_kib()} KiB, "
          f"{len(os.listdir('/proc/self/fd'))} files open", flush=True)


def leave():
    """Ends the process. An interrupt inside Thread.start() can leave a lock of CPython's held, for
    which the new thread, and with it a usual exit, waits forever; any other thread must end."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(60 if thread._started.is_set() else 5)
    left = [thread for thread in threading.enumerate() if thread is not threading.current_thread()]
    running = [thread.name for thread in left if thread._started.is_set()]
    if running:
        raise Wrong(f"threads that do not end: {running}")
    if left:
        print(f"{len(left)} threads were interrupted in their start and never ran")
    print("1 passed, 0 failed, 0 skipped", flush=True)
    if left:
        os._exit(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600 if os.environ.get("MT_LONG") else 5)
    parser.add_argument("--seed", default=os.environ.get("MT_SEED", "1"))
    parser.add_argument("--only", choices=list(PROGRAMS))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=0, help="0: until the time is over")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    faulthandler.enable()
    learn_ops()
    began = shown = time.monotonic()
    number = given.first
    while time.monotonic() - began < given.seconds and not (given.rounds and number >= given.first + given.rounds):
        run_round(given.seed, number, given.only)
        number += 1
        if time.monotonic() - shown >= 30:
            shown = time.monotonic()
            log(given.seed, began)
    log(given.seed, began)
    leave()


if __name__ == "__main__":
    main()
