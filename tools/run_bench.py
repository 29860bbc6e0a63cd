#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmarks of a build folder and shows their figures.

usage: run_bench.py BUILD [NAME...] [options]

Reads BUILD/bench.txt (written by CMake, see cmake/targets.cmake). NAME chooses benchmarks whose name holds
it, and single figures whose name holds it. Each figure is one JSON line; the table at the end sets them
against their limits. docs/measuring.md says what they mean. Exits with 1 when a benchmark fails, with
--check also when a limit is missed.
"""
import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

TIMEOUT_S = 600


def read_benches(build):
    """(name, program) of each benchmark, in the order of the build folder's list."""
    for line in (build / "bench.txt").read_text().splitlines():
        name, program = line.split("\t")
        yield name, program


def figures_of(output):
    """The figures among the lines a benchmark has printed."""
    for line in output.splitlines():
        if line.startswith("{"):
            yield json.loads(line)


def run(name, program, options, folder):
    """(figures, reason of failure or None). Prints the figures as they are."""
    command = [program, "--dir", folder] + (["--quick"] if options.quick else [])
    if options.names and not any(n in name for n in options.names):
        command += options.names
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, timeout=TIMEOUT_S, check=False, text=True)
        output = done.stdout
        why = f"exit status {done.returncode}" if done.returncode else None
    except subprocess.TimeoutExpired as error:
        output = (error.stdout or b"").decode(errors="replace")
        why = f"timeout after {TIMEOUT_S} s"
    except OSError as error:
        output, why = "", str(error)
    sys.stdout.write(output)
    sys.stdout.flush()
    return list(figures_of(output)), why


def machine():
    """The processor and the kernel, in words."""
    model = platform.machine()
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    return f"{model}, {len(os.sched_getaffinity(0))} cores, Linux {platform.release()}"


def limit_of(figure):
    if "limit" in figure:
        return f"<= {figure['limit']:.2f}"
    return f">= {figure['at_least']:.2f}" if "at_least" in figure else ""


def table(figures):
    """One line a figure, at most 100 columns."""
    def number(figure, key):
        return f"{figure[key]:.2f}" if key in figure else ""
    rows = [("figure", "value", "unit", "median", "floor", "limit", "")]
    rows += [(f["bench"], number(f, "value"), f["unit"], number(f, "median"), number(f, "floor"),
              limit_of(f), {True: "ok", False: "MISSED"}.get(f.get("ok"), "")) for f in figures]
    for name, value, unit, median, floor, limit, mark in rows:
        yield f"{name:<34} {value:>9} {unit:<8} {median:>9} {floor:>8} {limit:>11}  {mark}".rstrip()


def options_parse():
    parser = argparse.ArgumentParser(prog="run_bench.py", description="Runs the benchmarks of a build.")
    parser.add_argument("build", type=pathlib.Path, help="build folder; ./dev gives it")
    parser.add_argument("names", nargs="*", help="only benchmarks or figures whose name holds one of these")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: about 10 seconds")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a limit is missed")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the figures to a file, too")
    parser.add_argument("--dir", type=pathlib.Path, help="folder for trace files (the build folder)")
    parser.add_argument("--list", action="store_true", help="print the benchmarks' names and stop")
    return parser.parse_intermixed_args()


def main():
    options = options_parse()
    build = options.build.resolve()
    benches = list(read_benches(build))
    if options.list:
        print("\n".join(name for name, _ in benches))
        return 0
    figures, failures = [], []
    start = time.monotonic()
    # Next to the build, because a folder for temporary files is often memory and no disk.
    with tempfile.TemporaryDirectory(prefix="bench.", dir=options.dir or build) as folder:
        for name, program in benches:
            found, why = run(name, program, options, folder)
            figures += found
            if why:
                failures.append(f"{name}: {why}")
    if options.json:
        options.json.write_text("".join(json.dumps(f) + "\n" for f in figures))
    print(f"\n{machine()}; load {os.getloadavg()[0]:.1f}, {time.monotonic() - start:.0f} s"
          f"{', quick' if options.quick else ''}\n")
    print("\n".join(table(figures)))
    missed = [f["bench"] for f in figures if f.get("ok") is False]
    limits = sum("ok" in f for f in figures)
    print(f"\n{len(figures)} figures, {limits - len(missed)} of {limits} limits met"
          + (": missed " + " ".join(missed) if missed else ""))
    for failure in failures:
        print(f"FAILED {failure}")
    return 1 if failures or not figures or (options.check and missed) else 0


if __name__ == "__main__":
    sys.exit(main())
