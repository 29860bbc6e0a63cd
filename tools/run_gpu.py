#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs what needs a GPU: usage: run_gpu.py BUILD PYTHON [--cost] [--limit SECONDS]. `./dev gpu` builds it first.

Each program ends with "N passed, N failed"; the last line here is the sum. A program that cannot run (status 77)
says why, and counts as failed: on a machine that this command is for there is a GPU. No program waits without a
limit: each has one of its own, and all of them together have --limit (480 s; with MT_LONG=1 none). What is ended, or
not begun, for want of time counts as failed and is named.
"""
import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(words, environment, seconds):
    """The status of a program, or None where it took too long: then all that it started is ended."""
    child = subprocess.Popen([str(word) for word in words], env=environment, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        output, _ = child.communicate(timeout=seconds)
        return child.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        try:
            output, _ = child.communicate(timeout=10)
        except subprocess.TimeoutExpired:  # it cannot be ended while the driver holds it
            output = ""
        return None, output


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("python")
    parser.add_argument("--cost", action="store_true", help="measure what recording costs, too")
    parser.add_argument("--limit", type=float, help="seconds for all programs together")
    asked = parser.parse_args()
    build = asked.build.resolve()
    long = os.environ.get("MT_LONG") == "1"
    until = time.time() + (asked.limit or (1e9 if long else 480))
    environment = dict(os.environ, PYTHONPATH=str(build / "python"), KINETO_LOG_LEVEL="99", PYTHONUNBUFFERED="1",
                       MTPROF_COMMAND=str(build / "cli/mtprof"), MT_GPU_UNTIL=str(until),
                       MTPROF_CUPTI_FLOOR=str(build / "tests/libcupti_floor.so"))
    tests = ["test_cupti", "test_cupti_edges", "test_cupti_floor", "test_cupti_graphs", "test_cupti_layout",
             "test_cupti_trouble"]
    # gpu_torch.py limits its cases itself, and ends before the time is over.
    programs = [([build / "tests" / name], 60) for name in [*tests, "gpu_cuda"]]
    programs += [([asked.python, ROOT / "tests/gpu/gpu_torch.py"], 1e9)]
    passed = failed = 0
    for words, seconds in programs:
        name = pathlib.Path(words[-1]).name
        print(f"---- {name}", flush=True)
        began = time.time()
        status, output = run(words, environment, max(min(seconds, until - began), 1))
        print(output, end="", flush=True)
        print(f"     {time.time() - began:.1f} s", flush=True)
        counts = re.findall(r"(\d+) passed, (\d+) failed", output)
        if status is None:
            print(f"FAIL {name}: it took longer than {time.time() - began:.0f} s and was ended")
        if status in (None, 77) or not counts:
            failed += 1
            continue
        passed += int(counts[-1][0])
        failed += int(counts[-1][1]) + (status != 0 and counts[-1][1] == "0")
    print(f"{passed} passed, {failed} failed", flush=True)
    if asked.cost:  # it judges nothing; its own time comes on top
        subprocess.run([asked.python, ROOT / "tests/gpu/gpu_cost.py"], env=environment, check=False)
        print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
