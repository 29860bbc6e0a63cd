#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs with NVTX or ITT in them under `mtprof run -- PROGRAM`: usage: users_of_collectors.py MTPROF TORCH_PYTHON

The interpreter that runs this has the packages nvtx, ittapi and pyitt; TORCH_PYTHON has torch. The programs know
nothing of mtprof.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

MTPROF, TORCH = sys.argv[1:3]
passed = failed = skipped = 0

NVTX = """
import threading, nvtx
@nvtx.annotate("decorated", domain="app", category="work", payload=7)
def function():
    pass
with nvtx.annotate("outer", color="red"):
    for _ in range(3):
        function()
    nvtx.mark("here", domain="app")
across = nvtx.start_range("across", domain="app")
thread = threading.Thread(target=nvtx.end_range, args=(across,))
thread.start()
thread.join()
nvtx.push_range("pushed")
nvtx.pop_range()
"""

ITT = """
import ittapi, pyitt
pyitt.thread_set_name("the main one")
with pyitt.task("outer", domain="app"):
    with ittapi.task("inner"):
        pass
queue = pyitt.Counter("queue", "app")
queue.set(5)
queue.inc(3)
queue.dec(1)
frame = pyitt.Frame(domain="frames")
frame.begin()
frame.end()
event = ittapi.event("an event")
event.begin()
event.end()
task = pyitt.OverlappedTask("overlapped", "app")
task.begin()
task.end()
pyitt.pause()
with pyitt.task("left out"):
    pass
pyitt.resume()
with pyitt.task("after"):
    pass
"""

TORCH_ITT = """
import torch
x = torch.randn(8, 8)
with torch.autograd.profiler.emit_itt():
    (x @ x).relu().sum()
torch.profiler.itt.range_push("user's")
torch.profiler.itt.range_pop()
"""

TORCH_NVTX = """
import torch
x = torch.randn(8, 8)
with torch.autograd.profiler.emit_nvtx():
    x + x
"""


def check(name, holds, detail=""):
    global passed, failed
    passed, failed = passed + bool(holds), failed + (not holds)
    if not holds:
        print(f"FAIL {name}: {detail}")


def run(folder, python, program):
    """(what mtprof run did, the events of the trace)."""
    script, trace = folder / "program.py", folder / "trace.json"
    script.write_text(program, encoding="utf-8")
    trace.unlink(missing_ok=True)
    done = subprocess.run([MTPROF, "run", "-o", trace, "--", python, script], capture_output=True, text=True,
                          check=False, timeout=120)
    return done, json.loads(trace.read_text(encoding="utf-8"))["traceEvents"] if trace.exists() else []


def spans(events):
    """{name: [arguments]} of scopes and ops."""
    found = {}
    for event in events:
        if event.get("ph") in ("X", "b") and event.get("cat") in ("user_annotation", "cpu_op"):
            found.setdefault(event["name"], []).append(event["args"])
    return found


def of_nvtx(folder):
    done, events = run(folder, sys.executable, NVTX)
    found = spans(events)
    check("nvtx ran", done.returncode == 0 and "none lost" in done.stderr, done.stderr)
    counts = {name: len(rows) for name, rows in found.items()}
    check("nvtx: ranges", counts == {"decorated": 3, "outer": 1, "across": 1, "pushed": 1}, found)
    details = [(a.get("domain"), a.get("category"), a.get("payload")) for a in found.get("decorated", [])]
    check("nvtx: domain, category, payload", details == [("app", "work", 7)] * 3, details)
    check("nvtx: a mark", any(e.get("ph") == "i" and e["name"] == "here" for e in events))
    check("nvtx: a range that another thread ends", any(e.get("ph") == "e" and e["name"] == "across" for e in events))


def of_itt(folder):
    done, events = run(folder, sys.executable, ITT)
    found = spans(events)
    check("itt ran", done.returncode == 0 and "none lost" in done.stderr, done.stderr)
    check("itt: tasks, frames, events", {n: len(a) for n, a in found.items()} ==
          {"outer": 1, "inner": 1, "frames": 1, "an event": 1, "overlapped": 1, "after": 1}, found)
    values = [next(iter(e["args"].values())) for e in events if e.get("ph") == "C" and e["name"] == "queue"]
    check("itt: a counter", values[-3:] == [5, 8, 7], values)
    names = [e["args"]["name"] for e in events if e.get("ph") == "M" and e["name"] == "thread_name"]
    check("itt: a thread's name", any("the main one" in name for name in names), names)


def of_torch(folder):
    global skipped
    done, events = run(folder, TORCH, TORCH_ITT)
    found = spans(events)
    ops = {"aten::matmul", "aten::mm", "aten::relu", "aten::sum"}
    check("torch's emit_itt", done.returncode == 0 and ops <= set(found) and "user's" in found, (done.stderr, found))
    kinds = {e["cat"] for e in events if e.get("name") in ops}
    check("torch's ops are ops", kinds == {"cpu_op"}, kinds)
    done, events = run(folder, TORCH, TORCH_NVTX)
    if "not compiled with CUDA" in done.stderr:
        print("skipped: torch's emit_nvtx, this torch is built without CUDA")
        skipped += 1
    else:
        check("torch's emit_nvtx", any("aten::add" in name for name in spans(events)), (done.stderr, events))


def main():
    with tempfile.TemporaryDirectory(prefix="mt_collectors.") as made:
        folder = pathlib.Path(made)
        of_nvtx(folder)
        of_itt(folder)
        of_torch(folder)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
