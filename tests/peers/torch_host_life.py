# SPDX-License-Identifier: Apache-2.0
"""mtprof.torch in the middle of real programs: torch_host_life.py FOLDER

Programs that are killed, fork, raise and are interrupted (also in a step), nest profilers, run torch.profiler before,
inside and after ours, run ops on eight threads, or start and stop ten thousand times. Nothing may crash or be lost
without a word.
"""
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

KILLED = """
    import os, torch, mtprof.torch
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with mtprof.torch.profile(path=PATH, record_shapes=True,
                              schedule=mtprof.torch.schedule(wait=0, warmup=0, active=1000000)) as prof:
        step = 0
        while True:
            model(torch.ones(4, 8)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            with mtprof.torch.record_function(f"finished {step}"):
                pass
            print(step, flush=True)
            step += 1
            prof.step()
"""

THREADS = """
    import threading, torch, mtprof.torch
    x = torch.ones(4)
    def work():
        for _ in range(3000):
            x + x
    with mtprof.torch.profile(record_shapes=True, profile_memory=True) as prof:
        threads = [threading.Thread(target=work) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    rows = {row.key: row.count for row in prof.key_averages()}
    health = prof.health()
    assert rows["aten::add"] == 24000, rows
    assert health.lost == 0 and health.truncated == 0, health
"""

FORKED = """
    import os, torch, mtprof.torch
    class Squares(torch.utils.data.Dataset):
        def __len__(self): return 12
        def __getitem__(self, index): return torch.full((2,), float(index)) ** 2
    total = 0
    with mtprof.torch.profile(path=PATH, profile_memory=True) as prof:
        for batch in torch.utils.data.DataLoader(Squares(), batch_size=3, num_workers=2):
            total += batch.sum().item()
        child = os.fork()
        if child == 0:  # a child may record for itself
            with mtprof.torch.profile() as mine:
                torch.ones(3) * 2
            os._exit(0 if any(row.key == "aten::mul" for row in mine.key_averages()) else 9)
        _, status = os.waitpid(child, 0)
        assert status == 0, status
    assert total == 2 * sum(index * index for index in range(12)), total
    keys = {row.key for row in prof.key_averages()}
    assert "aten::sum" in keys and "aten::mul" not in keys, keys
    assert any("DataLoader" in key for key in keys), keys
    assert prof.health().lost == 0
"""

RAISES = """
    import torch, mtprof.torch
    try:
        with mtprof.torch.profile(record_shapes=True) as prof:
            with mtprof.torch.record_function("scope"):
                torch.ones(2, 3) @ torch.ones(2, 3)
    except RuntimeError as error:
        assert "mat1 and mat2" in str(error), error
    else:
        raise AssertionError("no error")
    assert {"scope", "aten::matmul"} <= {row.key for row in prof.key_averages()}
    assert prof.health().truncated == 0, prof.health()
    with mtprof.torch.profile() as again:
        torch.ones(1) + 1
    assert any(row.key == "aten::add" for row in again.key_averages())
    assert not torch.autograd.profiler._is_profiler_enabled
"""

INTERRUPTED = """
    import os, signal, time, torch, mtprof.torch
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background lets it be ignored
    prof, end = mtprof.torch.profile(), time.monotonic() + 60
    try:
        with prof:
            torch.ones(2) + 1
            os.kill(os.getpid(), signal.SIGINT)
            while time.monotonic() < end:
                torch.ones(2) * 2
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("not interrupted")
    assert any(row.key == "aten::add" for row in prof.key_averages())
"""

IN_A_STEP = """
    import os, signal, torch, torch.profiler, mtprof.torch
    signal.signal(signal.SIGINT, signal.default_int_handler)
    def train(profiler, how):
        model, ready = torch.nn.Linear(4, 4), []
        def tell(prof):
            ready.append(sorted((row.key, row.count) for row in prof.key_averages()))
        steps = profiler.schedule(wait=1, warmup=1, active=3, repeat=2)
        profile = profiler.profile(schedule=steps, on_trace_ready=tell)
        try:
            with profile as prof:
                for step in range(20):
                    with profiler.record_function("forward"):
                        loss = model(torch.ones(2, 4)).sum()
                        if step == 8 and how == "raise":
                            raise ValueError(step)
                        if step == 8:
                            os.kill(os.getpid(), signal.SIGINT)
                            model(torch.ones(2, 4)), model(torch.ones(2, 4))
                    loss.backward()
                    prof.step()
        except (ValueError, KeyboardInterrupt) as error:
            stopped = type(error).__name__
        return stopped, len(ready), ready[0], dict(ready[-1])["forward"], dict(ready[-1])["ProfilerStep*"]
    for how in ("raise", "interrupt"):
        ours, theirs = train(mtprof.torch, how), train(torch.profiler, how)
        assert ours == theirs, (ours, theirs)
        assert ours[1] == 2 and ours[3:] == (2, 2), ours  # the window that was open has its two steps
"""

NESTED = """
    import torch, mtprof.torch
    with mtprof.torch.profile() as outer:
        torch.ones(1) + 1
        try:
            with mtprof.torch.profile():
                pass
        except RuntimeError as error:
            assert "active" in str(error) or "already" in str(error), error
        else:
            raise AssertionError("two at a time")
        torch.ones(1) * 2
    keys = {row.key for row in outer.key_averages()}
    assert {"aten::add", "aten::mul"} <= keys, keys
"""

BESIDE = """
    import torch, mtprof.torch
    def work():
        torch.ones(3) + 1
    def names(prof):
        return sorted(event.name for event in prof.events() if event.name.startswith("aten"))
    with torch.profiler.profile() as before:
        work()
    with mtprof.torch.profile(profile_memory=True) as ours:
        work()
    with torch.profiler.profile(profile_memory=True) as after:
        work()
    assert names(before) == names(ours) == names(after), (names(before), names(ours), names(after))
    with torch.profiler.profile() as outer:  # theirs is first: both see everything but our allocations
        with mtprof.torch.profile(profile_memory=True) as inner:
            work()
    assert names(inner) == names(outer) == names(before), (names(inner), names(outer))
    assert mtprof.torch.info().threads_refused == 1, mtprof.torch.info()
    with mtprof.torch.profile() as outer:  # ours is first: torch's says that it is
        try:
            with torch.profiler.profile():
                work()
        except RuntimeError as error:
            assert "already enabled" in str(error), error
        work()
    assert "aten::add" in names(outer)
    with torch.profiler.profile() as last:  # and is as before
        work()
    assert names(last) == names(before)
"""

PATCHED = """
    import torch, torch.profiler
    import mtprof.torch
    def names():
        return {name: getattr(torch.profiler, name) for name in dir(torch.profiler) if not name.startswith("__")}
    before = names()
    mtprof.torch.patch()
    mtprof.torch.patch()
    from torch.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler
    assert profile is mtprof.torch.profile
    ready = []
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
                 on_trace_ready=ready.append, record_shapes=True) as prof:
        for _ in range(5):
            with record_function("user"):
                torch.ones(2) + 1
            prof.step()
    assert ready == [prof]
    rows = {row.key: row.count for row in prof.key_averages()}
    assert rows["aten::add"] == rows["user"] == 2, rows
    mtprof.torch.unpatch()
    now = names()  # torch imports further modules by itself
    assert before == {name: now.get(name) for name in before}
"""

COMPILED = """
    import torch, torch._dynamo, mtprof.torch
    from mtprof.torch import profile, record_function
    @record_function("decorated")
    def inner(a):
        return a.sin()
    def function(a):
        with record_function("scope", size=3):
            return inner(a) * 2
    explained = torch._dynamo.explain(function)(torch.ones(3))
    assert explained.graph_break_count == 0 and explained.graph_count == 1, explained
    compiled = torch.compile(function, backend="eager")
    x = torch.ones(3)
    compiled(x)
    before = dict(torch._dynamo.utils.counters["stats"])
    with profile(record_shapes=True, with_stack=True, with_modules=True) as prof:
        compiled(x)
        function(x)
    assert before == dict(torch._dynamo.utils.counters["stats"])
    rows = {row.key: row.count for row in prof.key_averages()}
    assert rows["scope"] == rows["decorated"] == 1, rows  # of the call that is not compiled
    assert rows["aten::sin"] == 2 and any(key.startswith("Torch-Compiled Region") for key in rows), rows
"""

CYCLES = """
    import resource, torch, mtprof.torch
    x = torch.ones(2)
    def cycles(count):
        for _ in range(count):
            with mtprof.torch.profile(record_shapes=True, profile_memory=True):
                x + x
    def pages():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1])
    cycles(500)
    before = pages()
    cycles(CYCLES)
    grown = (pages() - before) * 4
    assert grown < 4096, f"{grown} KiB more after CYCLES recordings"
    print(f"{grown} KiB more after CYCLES recordings")
"""


def run(text, folder, name, **options):
    program = folder / f"{name}.py"
    path = folder / f"{name}.mtt"
    text = textwrap.dedent(text).replace("PATH", repr(str(path))).replace("CYCLES", os.environ.get("CYCLES", "600"))
    program.write_text(text)
    return path, subprocess.Popen([sys.executable, "-X", "dev", "-W", "ignore", str(program)], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, **options)


def check_killed(folder):
    """The trace of a killed program opens, and its last whole step is in it."""
    path, program = run(KILLED, folder, "killed")
    last, deadline = -1, time.monotonic() + 60
    while last < 20 and time.monotonic() < deadline:
        last = int(program.stdout.readline() or -1)
    program.send_signal(signal.SIGKILL)
    rest, errors = program.communicate()
    last = max([last] + [int(line) for line in rest.split()])
    if last < 20:
        return f"it did not get to step 20: {errors[-500:]}"
    import mtprof
    import warnings
    warnings.simplefilter("ignore")
    trace = mtprof.load(str(path))
    names = {row.key for row in trace.key_averages()}
    if f"finished {last}" not in names:
        return f"step {last} is missing"
    return "" if trace.health().lost == 0 else str(trace.health())


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    passed = failed = 0
    for name, text in (("killed", None), ("threads", THREADS), ("forked", FORKED), ("raises", RAISES),
                       ("interrupted", INTERRUPTED), ("in a step", IN_A_STEP), ("nested", NESTED),
                       ("beside", BESIDE), ("patched", PATCHED),
                       ("compiled", COMPILED), ("cycles", CYCLES)):
        problem = ""
        if text is None:
            problem = check_killed(folder)
        else:
            _, program = run(text, folder, name)
            try:
                _, errors = program.communicate(timeout=300)
            except subprocess.TimeoutExpired:
                program.kill()
                errors = program.communicate()[1] + "\nit hangs"
            if program.returncode != 0:
                problem = f"status {program.returncode}: {errors[-1500:]}"
        passed, failed = passed + (not problem), failed + bool(problem)
        print(f"{name}: {problem or 'ok'}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
