# SPDX-License-Identifier: Apache-2.0
"""types_check.py PROGRAM FOLDER: mypy --strict and pyright find in PROGRAM what ends in "# wrong", and nothing else.

Then mypy's stubtest compares the stubs with what runs. Left out: FunctionEvent's __new__, which is C's and
takes anything
(its __init__ has the parameters), attributes that are computed until they are set, and Health's further counters.
"""
import json
import os
import pathlib
import subprocess
import sys

STUBS = ("mtprof.profiler", "mtprof.results", "mtprof.events", "mtprof.schedules", "mtprof.handlers", "mtprof.config")
ALLOWED = (r"mtprof\.events\.FunctionEvent\.(__new__|flow_\w+|python_\w+)", r"mtprof\.results\.Health\.__getattr__")


def run(*command):
    """What a command printed, and its status."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    return done.returncode, done.stdout + done.stderr


def mypy(program):
    """Lines with an error."""
    _, text = run(sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", os.devnull, program)
    return {int(line.split(":")[1]) for line in text.splitlines() if ": error:" in line}, text


def pyright(program):
    """The same; None where it cannot run: it needs node."""
    command = os.path.join(os.path.dirname(sys.executable), "pyright")
    status, text = run(command, "--pythonpath", sys.executable, "--outputjson", program)
    if status not in (0, 1) or "{" not in text:
        return None, text
    found = json.loads(text[text.index("{"):])["generalDiagnostics"]
    return {item["range"]["start"]["line"] + 1 for item in found if item["severity"] == "error"}, text


def stubtest(folder):
    """What differs between stubs and modules."""
    config, allowed = folder / "stubtest.ini", folder / "stubtest.allowed"
    config.write_text("[mypy]\nignore_missing_imports = True\n[mypy-mtprof.*]\nignore_errors = True\n", encoding="utf-8")
    allowed.write_text("\n".join(ALLOWED) + "\n", encoding="utf-8")
    return run(sys.executable, "-m", "mypy.stubtest", *STUBS, "--concise", "--mypy-config-file", str(config),
               "--allowlist", str(allowed), "--ignore-unused-allowlist")


def main(program, folder):
    """Runs all of it."""
    lines = pathlib.Path(program).read_text(encoding="utf-8").splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    passed = failed = skipped = 0
    for name, checker in (("mypy --strict", mypy), ("pyright", pyright)):
        found, text = checker(program)
        if found is None:
            skipped += 1
            print(f"skipped: {name} does not run here (it needs node): {text.strip()[-200:]}")
            continue
        passed, failed = passed + (found == wrong), failed + (found != wrong)
        if found != wrong:
            print(f"FAILED {name}: errors in lines {sorted(found)}, expected in {sorted(wrong)}\n{text}")
    status, text = stubtest(pathlib.Path(folder))
    passed, failed = passed + (status == 0), failed + (status != 0)
    if status != 0:
        print("FAILED stubtest\n" + text)
    status, text = run(sys.executable, program)
    passed, failed = passed + (status == 0), failed + (status != 0)
    if status != 0:
        print("FAILED: the program does not run\n" + text)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
