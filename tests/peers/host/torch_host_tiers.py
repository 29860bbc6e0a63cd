# SPDX-License-Identifier: Apache-2.0
"""The tiers of stock torch that are asked for: torch_host_tiers.py FOLDER

The shim of tier "compiled" is built here, with the compiler and torch's headers; FOLDER is its cache.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import warnings

import torch

import mtprof.torch
from mtprof.torch import _shim

PROGRAM = """
import warnings
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    import mtprof.torch
print(mtprof.torch.info().tier)
print(*[w.message for w in said], sep="\\n")
"""
NAMES = """
import mtprof.torch, torch
x = torch.ones(3, 5, requires_grad=True)
with mtprof.torch.profile() as prof:
    with mtprof.torch.record_function("mine"):
        (x @ x.t()).add(2.5).sum().backward()
for event in prof.events():
    print(event.name, event.cpu_parent.name if event.cpu_parent else "")
"""
passed = failed = skipped = 0


def check(what, good, detail=""):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print(f"FAILED {what} {detail}")


def events():
    x = torch.ones(3, 5, requires_grad=True)
    with mtprof.torch.profile(record_shapes=True, profile_memory=True) as prof:
        (x @ x.t()).add(2.5).sum().backward()
        torch.cat([x, x], dim=0)
    rows = [(e.name, e.input_shapes, e.concrete_inputs, e.cpu_memory_usage) for e in prof.events()]
    numbers = [e.sequence_nr for e in prof.events()]
    return rows, [n - max(numbers) if n >= 0 else None for n in numbers]


def choose(tier, **variables):
    """The answer, and what was warned of."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            answer = mtprof.torch.choose_tier(tier)
    finally:
        os.environ.clear()
        os.environ.update(before)
    return answer, [str(w.message) for w in said]


def run(program, tier, **variables):
    """What a fresh process prints, in lines; none where it fails."""
    environment = {**os.environ, "MTPROF_TORCH_TIER": tier, **variables}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stderr)
    return done.stdout.splitlines() if done.returncode == 0 else []


def of_program(tier, **variables):
    """Tier and warnings of a fresh process."""
    lines = run(PROGRAM, tier, **variables) or [""]
    return lines[0], "\n".join(lines[1:])


def through_itt():
    global skipped
    if not torch.profiler.itt.is_available():
        print("skipped: tier itt, this torch has no ITT")
        skipped += 1
        return
    full, itt = run(NAMES, "full"), run(NAMES, "itt")
    check("tier itt has the names and the nesting of tier full", len(full) > 20 and itt == full, itt)
    check("it is asked for without a warning", of_program("itt") == ("itt", ""))
    answer, said = choose("itt")
    check("torch looks for a collector once", answer.tier == "full" and "before torch" in said[0], said)


def compiled(full):
    global skipped
    if not any(map(shutil.which, _shim._COMPILERS)):
        print("skipped: tier compiled, there is no C++ compiler")
        skipped += 1
        return
    answer, said = choose("compiled")
    check("tier compiled", answer.tier == "compiled" and said == [], (answer, said))
    rows = events()
    check("tier compiled has the events of tier full", rows == full, rows)
    cached = pathlib.Path(_shim.build())
    before = cached.stat().st_mtime_ns
    check("one shim is kept", [p.name for p in cached.parent.iterdir()] == [cached.name], list(cached.parent.iterdir()))
    check("nobody else writes to it", cached.parent.stat().st_mode & 0o077 == 0, oct(cached.parent.stat().st_mode))
    began = time.monotonic()
    check("another process takes it", of_program("compiled", CXX="/no/such/compiler") == ("compiled", ""))
    print(f"with a kept shim: {time.monotonic() - began:.1f} s for a whole program")
    check("and leaves it as it is", cached.stat().st_mtime_ns == before)


def refused(folder):
    empty = folder / "empty"
    answer, said = choose("compiled", CXX="/no/such/compiler", XDG_CACHE_HOME=str(empty))
    check("without a compiler the tier is full", answer.tier == "full", answer)
    check("one sentence says so", len(said) == 1 and "C++ compiler is missing" in said[0], said)
    (empty / "mtprof").chmod(0o777)
    answer, said = choose("compiled", XDG_CACHE_HOME=str(empty))
    check("a folder of everybody is not used", answer.tier == "full" and "others may write to it" in said[0], said)
    broken = folder / "c++"
    broken.write_text("#!/bin/sh\necho 'x.cpp:1: error: no luck' >&2\nexit 1\n")
    broken.chmod(0o755)
    answer, said = choose("compiled", CXX=str(broken), XDG_CACHE_HOME=str(folder / "other"))
    check("a compiler's error is told", answer.tier == "full" and "no luck" in said[0], said)
    check("nothing is left of it", list((folder / "other" / "mtprof").iterdir()) == [])
    tier, told = of_program("fastest")
    check("an unknown tier is told", tier == "full" and "'fastest'" in told, (tier, told))


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    full = events()
    answer, said = choose("names")
    check("names were asked for", answer.tier == "names" and said == [], (answer, said))
    rows, _ = events()
    check("they are the same names", [row[0] for row in rows] == [row[0] for row in full[0]], rows)
    check("they have no shapes", not any(row[1] for row in rows), rows)
    with mtprof.torch.profile() as prof:
        torch.ones(1)
    prof.export_chrome_trace(str(folder / "names.json"))
    told = json.loads((folder / "names.json").read_text()).get("mtprof_host", {})
    check("the trace says so", told.get("tier") == "names", told)
    compiled(full)
    answer, said = choose("full")
    check("and back", answer.tier == "full" and said == [] and events() == full, (answer, said))
    with mtprof.torch.profile():
        try:
            choose("names")
            check("not while something records", False)
        except mtprof.torch.TorchHostError as error:
            check("not while something records", "while something records" in str(error), error)
    through_itt()
    refused(folder)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
