#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs what needs a GPU: usage: run_gpu.py BUILD PYTHON [--cost]. `./dev gpu` builds it first.

Each program ends with "N passed, N failed"; the last line here is the sum. A program that cannot run (status 77)
says why, and counts as failed: on a machine that this command is for there is a GPU.
"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    build, python = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    environment = dict(os.environ, PYTHONPATH=str(build / "python"), KINETO_LOG_LEVEL="99", PYTHONUNBUFFERED="1",
                       MTPROF_COMMAND=str(build / "cli/mtprof"),
                       MTPROF_CUPTI_FLOOR=str(build / "tests/libcupti_floor.so"))
    programs = [[build / "tests/test_cupti"], [build / "tests/test_cupti_graphs"],
                [build / "tests/test_cupti_layout"], [build / "tests/gpu_cuda"],
                [python, ROOT / "tests/gpu/gpu_torch.py"]]
    passed = failed = 0
    for program in programs:
        print(f"---- {pathlib.Path(program[-1]).name}", flush=True)
        done = subprocess.run(program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
        print(done.stdout, end="", flush=True)
        counts = re.findall(r"(\d+) passed, (\d+) failed", done.stdout)
        if done.returncode == 77 or not counts:
            failed += 1
            continue
        passed += int(counts[-1][0])
        failed += int(counts[-1][1]) + (done.returncode != 0 and counts[-1][1] == "0")
    if "--cost" in sys.argv:
        subprocess.run([python, ROOT / "tests/gpu/gpu_cost.py"], env=environment, check=False)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
