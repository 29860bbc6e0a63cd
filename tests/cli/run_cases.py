#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the mtprof command against expectation files.

usage: run_cases.py MTPROF MAKE_TRACE [--update] [--filter TEXT] [FILE...]

MAKE_TRACE (tests/support/programs/make_cli_trace.c) fills an empty folder with traces; every case file (tests/cli/
cases/*.case) gets such a folder of its own and runs its commands there one after the other, so that a command
may use what one before it wrote. `mtprof` on a command line is a copy of MTPROF in a folder of its own, so that no
program beside it (mtprof-run) is found. A case file is made of blocks:

    $ mtprof info train.mtt | head -n 1     a command line for sh
    @ env NO_COLOR=1                        set for this command
    @ tty 80                                run it on a terminal of 80 columns (stdout and stderr are one then)
    @ json events.total == 36               standard output is JSON, and this holds: a path, == or !=, JSON;
    @ json                                  or only that it is JSON. No "> " lines then.
    > recorded    {*} for 1.2 s             a line of standard output
    ! mtprof: x: cannot                     a line of standard error
    = 2                                     the exit status, 0 if not said

Masks in expected lines: {*} is any text, {#} a number; a line {...} is any lines. Escape is written \\e,
carriage return as \\r. Lines that begin with #
and empty lines between blocks are comments. --update writes what came out where it differs; lines whose mask
still fits stay.
"""
import argparse
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios

HERE = pathlib.Path(__file__).resolve().parent
MARKS = {">": "out", "!": "err"}
TIMEOUT_S = 60


class Case:
    """One command and what is expected of it."""

    def __init__(self, line, number):
        self.line, self.number = line, number
        self.before = []  # comments above it
        self.settings = []
        self.out, self.err, self.status = [], [], 0

    def setting(self, name):
        return [rest for key, _, rest in (s.partition(" ") for s in self.settings) if key == name]

    def text(self):
        lines = self.before + ["$ " + self.line] + ["@ " + s for s in self.settings]
        lines += [("> " + line).rstrip() for line in self.out] + [("! " + line).rstrip() for line in self.err]
        return lines + ([f"= {self.status}"] if self.status else [])


def read_cases(path):
    cases, comments = [], []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        mark, rest = line[:1], line[2:]
        if mark == "$":
            cases.append(Case(rest, number))
            cases[-1].before, comments = comments, []
        elif mark in ("#", ""):
            comments.append(line)
        elif not cases or comments and any(comments):
            raise SystemExit(f"{path}:{number}: '{line}' belongs to no command")
        elif mark in MARKS:
            getattr(cases[-1], MARKS[mark]).append(rest)
        elif mark == "=":
            cases[-1].status = int(rest)
        elif mark == "@":
            cases[-1].settings.append(rest)
        else:
            raise SystemExit(f"{path}:{number}: what is '{line}'?")
    return cases, comments


def pattern(line):
    """An expected line as a regular expression. Blanks at its end do not count: editors eat them."""
    parts = re.split(r"(\{\*\}|\{#\})", line.rstrip())
    return "".join({"{*}": ".*", "{#}": r"-?[\d.,]+"}.get(p, re.escape(p)) for p in parts)


def matches(expected, actual):
    """Do all lines match? {...} stands for any number of lines."""
    if not expected:
        return not actual
    if expected[0] == "{...}":
        return any(matches(expected[1:], actual[i:]) for i in range(len(actual) + 1))
    return bool(actual) and re.fullmatch(pattern(expected[0]), actual[0].rstrip()) is not None and \
        matches(expected[1:], actual[1:])


def run_on_terminal(line, columns, **options):
    """Runs it with a terminal for stdout and stderr; what came out, as one text."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    with subprocess.Popen(["sh", "-c", line], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
                          **options) as process:
        os.close(theirs)
        text = b""
        while select.select([ours], [], [], TIMEOUT_S)[0]:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            text += piece
        os.close(ours)
        return process.wait(TIMEOUT_S), text.replace(b"\r\n", b"\n"), b""


def run(case, folder, environment):
    variables = dict(environment)
    for setting in case.setting("env"):
        key, _, value = setting.partition("=")
        variables[key] = value
    options = {"cwd": folder, "env": variables}
    if case.setting("tty"):
        variables.pop("COLUMNS", None)
        return run_on_terminal(case.line, int(case.setting("tty")[0]), **options)
    done = subprocess.run(["sh", "-c", case.line], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=TIMEOUT_S, check=False, **options)
    return done.returncode, done.stdout, done.stderr


def look_up(value, path):
    for step in filter(None, path.split(".")):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def check_json(case, text):
    """Complaints about standard output as JSON."""
    def no_constant(name):
        raise ValueError(f"{name} is no JSON")
    try:
        value = json.loads(text, parse_constant=no_constant)
    except ValueError as error:
        return [f"standard output is no JSON: {error}\n{text}"]
    bad = []
    for claim in filter(None, case.setting("json")):
        path, operator, wanted = re.fullmatch(r"(\S*) (==|!=) (.*)", claim).groups()
        try:
            found = look_up(value, path)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            bad.append(f"json {path}: not there ({error!r})")
            continue
        if (found == json.loads(wanted)) != (operator == "=="):
            bad.append(f"json {path} is {json.dumps(found)}, expected {operator} {wanted}")
    return bad


def lines_of(text):
    """What came out, as the lines of a case file."""
    shown = text.decode(errors="replace").replace("\x1b", "\\e").replace("\r", "\\r")
    return shown.removesuffix("\n").split("\n") if shown else []


def show(name, expected, actual):
    return f"{name} is\n" + "".join(f"    {line}\n" for line in actual) + "expected\n" + \
        "".join(f"    {line}\n" for line in expected)


def check(case, result):
    """What differs, as texts."""
    status, out, err = result
    bad = []
    if status != case.status:
        bad.append(f"exit status is {status}, expected {case.status}")
    if case.setting("json"):
        bad += check_json(case, out.decode(errors="strict"))
    streams = {"standard output": (case.out, out), "standard error": (case.err, err)}
    for name, (expected, text) in streams.items():
        actual = lines_of(text)
        if not (case.setting("json") and name == "standard output") and not matches(expected, actual):
            bad.append(show(name, expected, actual))
    return bad


def update(case, result):
    """What came out becomes what is expected; a line whose mask fits keeps it."""
    status, out, err = result
    case.status = status
    if not matches(case.out, lines_of(out)) and not case.setting("json"):
        case.out = keep_masks(case.out, out)
    if not matches(case.err, lines_of(err)):
        case.err = keep_masks(case.err, err)


def keep_masks(expected, text):
    masked = [line for line in expected if "{*}" in line or "{#}" in line]
    return [next((m for m in masked if re.fullmatch(pattern(m), line.rstrip())), line)
            for line in lines_of(text)]


def run_file(path, arguments, environment):
    """(passed, failed) of one case file."""
    cases, rest = read_cases(path)
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="mt_cli.") as folder:
        subprocess.run([arguments.make_trace, folder], check=True)
        for case in cases:
            result = run(case, folder, environment)
            bad = check(case, result)
            if bad and arguments.update:
                update(case, result)
            elif bad:
                print(f"{path.relative_to(HERE.parent.parent)}:{case.number}: $ {case.line}\n" + "\n".join(bad))
            failed += bool(bad)
            passed += not bad
    if arguments.update and failed:
        blocks = [line for case in cases for line in case.text()] + rest
        path.write_text("\n".join(blocks) + "\n", encoding="utf-8")
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("mtprof", type=pathlib.Path)
    parser.add_argument("make_trace", type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--filter", default="")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.make_trace = arguments.make_trace.resolve()
    environment = {"LC_ALL": "C.UTF-8", "TERM": "xterm", "MT_SOURCE_DIR": str(HERE.parent.parent)}
    environment.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
    files = arguments.files or sorted((HERE / "cases").glob("*.case"))
    with tempfile.TemporaryDirectory(prefix="mt_cli_bin.") as folder:
        shutil.copy2(arguments.mtprof, os.path.join(folder, "mtprof"))
        environment["PATH"] = f"{folder}:{os.environ['PATH']}"
        totals = [run_file(path.resolve(), arguments, environment) for path in files
                  if arguments.filter in path.name]
    passed, failed = (sum(column) for column in zip(*totals)) if totals else (0, 0)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not totals else 0


if __name__ == "__main__":
    sys.exit(main())
