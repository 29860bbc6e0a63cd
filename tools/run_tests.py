#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of a build folder and counts them.

usage: run_tests.py BUILD [NAME...] [options]

Reads BUILD/tests.txt (written by CMake, see cmake/targets.cmake). A test is a program; what it counted is
taken from its last lines: ours ("N passed, N failed, N skipped"), unittest's or pytest's. A program that
counts nothing is one test: exit status 0 passed, 77 skipped (its last line is the reason), else failed.
Each runs in an empty folder of its own with MT_SOURCE_DIR and MT_BINARY_DIR set. Ends with the sum.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent
OURS = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", re.M)
UNITTEST = re.compile(r"^Ran (\d+) tests? in .*\n\n(?:OK|FAILED|NO TESTS RAN)(?: \((.*)\))?$", re.M)
PYTEST = re.compile(r"^=* ?((?:\d+ \w+(?:, )?)+) in [\d.]+s.*$", re.M)
SKIP = re.compile(r"^skip .*$|^.* \.\.\. skipped .*$|^SKIPPED .*$", re.M)
EXIT_SKIPPED = 77
EXIT_NO_TESTS = 5  # of unittest since 3.12: none ran, perhaps because all were skipped
SANITIZERS = {"ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1",
              "UBSAN_OPTIONS": "print_stacktrace=1",
              "TSAN_OPTIONS": "second_deadlock_stack=1"}  # the user's own settings win

Test = collections.namedtuple("Test", "name labels timeout_s command")
Result = collections.namedtuple("Result", "test passed failed skipped reasons output took_s why")


def read_tests(build):
    """The tests that the build folder lists, in its order."""
    for line in (build / "tests.txt").read_text().splitlines():
        name, labels, timeout_s, *command = line.split("\t")
        yield Test(name, set(filter(None, labels.split(","))), int(timeout_s), command)


def count(output):
    """(passed, failed, skipped) a program reports, or None where it does not count."""
    ours = OURS.findall(output)
    if ours:
        return tuple(map(int, ours[-1]))
    found = UNITTEST.search(output)
    if found:
        said = {k: int(v) for k, v in re.findall(r"([\w ]+)=(\d+)", found.group(2) or "")}
        failed = said.get("failures", 0) + said.get("errors", 0) + said.get(" errors", 0)
        skipped = said.get("skipped", 0) + said.get(" skipped", 0)
        return max(int(found.group(1)) - failed - skipped, 0), failed, skipped
    found = PYTEST.findall(output)
    if found:
        said = {k.rstrip("s"): int(v) for v, k in re.findall(r"(\d+) (\w+)", found[-1])}
        return (said.get("passed", 0) + said.get("xfailed", 0),
                said.get("failed", 0) + said.get("error", 0), said.get("skipped", 0))
    return None


def stop(process):
    """Asks a test and its children to end, then insists."""
    for number, wait_s in ((signal.SIGTERM, 3), (signal.SIGKILL, 10)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        try:
            return process.communicate(timeout=wait_s)[0]
        except subprocess.TimeoutExpired:
            continue
    return b""


def run(test, build, options):
    command = list(test.command)
    if options.case and pathlib.Path(command[0]).name == test.name:
        command += ["--filter", options.case]
    environment = {**SANITIZERS, **os.environ, "MT_SOURCE_DIR": str(SOURCE), "MT_BINARY_DIR": str(build)}
    if options.long:
        environment["MT_LONG"] = "1"
    limit_s = options.timeout or test.timeout_s or (7200 if options.long else 600)
    start = time.monotonic()
    why = ""
    with tempfile.TemporaryDirectory(prefix="mt_run.", ignore_cleanup_errors=True) as folder:
        environment["TMPDIR"] = folder
        try:
            process = subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT)
        except OSError as error:
            return Result(test, 0, 1, 0, [], str(error), 0.0, "cannot start")
        try:
            raw = process.communicate(timeout=limit_s)[0]
        except subprocess.TimeoutExpired:
            raw = stop(process)
            why = f"timeout after {limit_s} s"
    output = raw.decode(errors="replace")
    took_s = time.monotonic() - start
    status = process.returncode
    reasons = SKIP.findall(output)
    passed, failed, skipped = count(output) or (
        (0, 0, 1) if status == EXIT_SKIPPED else (int(status == 0), int(status != 0), 0))
    if status == EXIT_NO_TESTS and skipped and not passed + failed:
        status = EXIT_SKIPPED
    if status == EXIT_SKIPPED and not reasons:
        reasons = output.strip().splitlines()[-1:] or ["no reason given"]
    elif status not in (0, EXIT_SKIPPED) and not failed and not why:
        # It counted no failure and yet left unhappily: a leak report, a crash after the last case.
        why = f"signal {-status}" if status < 0 else f"exit status {status}"
    if why:
        failed = max(failed, 1)
    return Result(test, passed, failed, skipped, reasons, output, took_s, why)


def report(result, verbose):
    name, bad = result.test.name, result.failed > 0
    if bad or verbose:
        print(result.output.rstrip("\n"))
    counts = [f"{n} {word}" for n, word in ((result.passed, "passed"), (result.failed, "failed"),
                                            (result.skipped, "skipped")) if n]
    counts = (counts or ["nothing ran"]) + ([result.why] if result.why else [])
    print(f"[{'FAIL' if bad else 'ok'}] {name} ({', '.join(counts)}, {result.took_s:.1f} s)")
    if not verbose:
        for reason in result.reasons:
            print(f"     {reason}")
    sys.stdout.flush()


def options_parse():
    parser = argparse.ArgumentParser(prog="run_tests.py", description="Runs the tests of a build.")
    parser.add_argument("build", type=pathlib.Path, help="build folder; ./dev gives it")
    parser.add_argument("names", nargs="*", help="only tests whose name holds one of these")
    parser.add_argument("--exact", action="store_true", help="names are whole names; exits 77 where all is skipped")
    parser.add_argument("--case", help="only cases whose name holds this (C tests)")
    parser.add_argument("--label", action="append", default=[], help="only tests with this label")
    parser.add_argument("--no-label", action="append", default=[], help="not tests with this label")
    parser.add_argument("--jobs", "-j", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--timeout", type=int, help="seconds per program")
    parser.add_argument("--long", action="store_true", help="soaks run their full length")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("-v", "--verbose", action="store_true", help="show all output")
    return parser.parse_intermixed_args()


def choose(tests, options):
    return [t for t in tests
            if (not options.names or any(n == t.name if options.exact else n in t.name for n in options.names))
            and (not options.label or t.labels & set(options.label))
            and not t.labels & set(options.no_label)]


def main():
    options = options_parse()
    build = options.build.resolve()
    tests = choose(read_tests(build), options)
    if options.list:
        print("\n".join(t.name for t in tests))
        return 0
    results = []
    groups = ([t for t in tests if "serial" not in t.labels], max(options.jobs, 1)), \
             ([t for t in tests if "serial" in t.labels], 1)
    for group, jobs in groups:
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for done in concurrent.futures.as_completed(
                    [pool.submit(run, t, build, options) for t in group]):
                results.append(done.result())
                report(results[-1], options.verbose)
    bad = sorted(r.test.name for r in results if r.failed)
    if bad:
        print("failed: " + " ".join(bad))
    passed, failed, skipped = (sum(getattr(r, f) for r in results)
                               for f in ("passed", "failed", "skipped"))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    if options.exact and skipped and not passed + failed:
        return EXIT_SKIPPED  # CTest's sign as well (cmake/targets.cmake)
    return 1 if failed or not passed + failed + skipped else 0


if __name__ == "__main__":
    sys.exit(main())
