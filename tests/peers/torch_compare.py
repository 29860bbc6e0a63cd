#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares tables that torch printed (torch_programs.py) with those that mtprof makes of torch's
trace files.

    torch_compare.py FOLDER LIBMTPROF MTPROF

For every table in FOLDER/cases.json:
  1. the library reads the trace and prints the same table: lines, columns, widths, order, every cell;
  2. where the command has the options, `mtprof report --format torch` prints what the library does.
For every trace:
  3. what `mtprof export chrome` writes of it (plain and packed, both flavours) is JSON by Python's
     reading and passes `mtprof check`;
  4. torch's flavour, read again, gives the same tables to the byte.

torch adds floating-point microseconds and we add whole nanoseconds. So the last printed digit of a
time or a share may differ by one, and rows whose times are equal may be the other way round when
they are sorted by time. Everything else is exact.

What is left out, and why:
"""
import gzip
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from mtprof_tables import Failed, Library  # noqa: E402

LEFT_OUT = """
  FLOPs            the file does not carry them, and torch counts them from values that are not in it
  is_async         nor this: scopes that a future ends look like any other
  acc_events       nor events of earlier cycles (torch-contract 5.1.1)
  names            kineto writes "unknown" for a name with bytes outside printable ASCII, "/" for a
                   backslash, and drops line ends (torch-contract 5.4.3): programs use plain names
  functions        torch 2.13 mixes Python functions into the rows and gets negative self times; we
                   list them separately (torch-contract 3.1.2). torch's rows here are those of its
                   other events
  [memory]         torch 2.13 gives memory freed outside every op to the Python function around it,
                   so with stacks this row is not compared
  memory, threads  torch gives an allocation to the events of all threads (torch-contract 3.6.2
                   and 9.3)
""".strip("\n")
__doc__ += LEFT_OUT + "\n"

TIME_SORTS = {"cpu_time_total": "CPU total", "self_cpu_time_total": "Self CPU", "cpu_time": "CPU time avg"}
NUMBER = re.compile(r"(-?\d+)\.(\d+)(us|ms|s|%)$")


# ---- tables ----------------------------------------------------------------------------------

class Table:
    """A printed table in pieces: lines above, widths, headers, rows (each a list of lines, each a
    list of cells), lines below."""

    def __init__(self, text):
        lines = text.split("\n")
        rules = [i for i, line in enumerate(lines) if re.fullmatch(r"(-+  )+", line)]
        if len(rules) != 3:
            self.above, self.widths, self.headers, self.rows, self.below = lines, [], [], [], []
            return
        self.above = lines[:rules[0]]
        self.widths = [len(dashes) for dashes in lines[rules[0]].split()]
        self.headers = [cell.strip() for cell in self.cells(lines[rules[0] + 1])]
        self.rows = []
        for line in lines[rules[1] + 1:rules[2]]:
            cells = self.cells(line)
            if cells[0].strip() or not self.rows:
                self.rows.append([cells])
            else:
                self.rows[-1].append(cells)  # a stack continues
        self.below = lines[rules[2] + 1:]

    def cells(self, line):
        found, at = [], 0
        for width in self.widths:
            found.append(line[at:at + width])
            at += width + 2
        return found + ([line[at:]] if line[at:] else [])

    def cell(self, row, header):
        return row[0][self.headers.index(header)].strip()


def near(a, b):
    """Equal but for one in the last digit."""
    a, b = NUMBER.fullmatch(a.strip()), NUMBER.fullmatch(b.strip())
    if not a or not b or a[3] != b[3] or len(a[2]) != len(b[2]):
        return False
    return abs(int(a[1] + a[2]) - int(b[1] + b[2])) <= 1


def microseconds(text):
    number = NUMBER.fullmatch(text)
    return float(number[1] + "." + number[2]) * {"us": 1, "ms": 1000, "s": 1000000}[number[3]]


def identity(row):
    """What a row is, without its times and shares."""
    return [[cell for cell in line if not NUMBER.fullmatch(cell.strip())] for line in row]


def order_rows(torch, ours, case):
    """Puts the rows of ours into torch's order where they differ by what sorting by equal times
    leaves open. What is wrong beyond that, or None."""
    header, rows = TIME_SORTS.get(case["table"].get("sort_by")), list(torch.rows)
    if header is None or header not in torch.headers:
        return None
    placed, last = [None] * len(rows), None
    for row in ours.rows:
        key, value = identity(row), ours.cell(row, header)
        at = next((i for i, other in enumerate(rows) if placed[i] is None and identity(other) == key), None)
        if at is None:
            # Which of rows with equal times a limit lets in is open as well.
            if len(rows) == case["table"].get("row_limit", 100) and near(value, torch.cell(rows[-1], header)):
                continue
            return "%s is not among torch's rows" % ours.cell(row, "Name")
        shown = torch.cell(rows[at], header)
        if last is not None and microseconds(shown) > microseconds(last) and not near(shown, last):
            return "%s with %s comes after %s" % (ours.cell(row, "Name"), shown, last)
        placed[at], last = row, shown
    torch.rows = [row for row, other in zip(rows, placed) if other is not None]
    ours.rows = [other for other in placed if other is not None]
    return None


class Comparer:
    def __init__(self):
        self.rounded = self.cells = 0

    def line(self, table, torch, ours):
        """The first cell that differs, or None."""
        if len(torch) != len(ours):
            return "%d cells, not %d" % (len(ours), len(torch))
        for header, a, b in zip(table.headers + [""], torch, ours):
            self.cells += 1
            if a == b:
                continue
            if not near(a, b):
                return "%s: %s is %r, torch has %r" % (torch[0].strip(), header, b.strip(), a.strip())
            self.rounded += 1
        return None

    def tables(self, case, text):
        """What differs, or None."""
        torch, ours = Table(case["text"]), Table(text)
        for table in (torch, ours) if case["with_stack"] else ():
            table.rows = [row for row in table.rows if table.cell(row, "Name") != "[memory]"]
        for what in ("above", "widths", "headers"):
            if getattr(torch, what) != getattr(ours, what):
                return "%s: %s, torch has %s" % (what, getattr(ours, what), getattr(torch, what))
        if len(torch.rows) != len(ours.rows):
            return "%d rows, torch has %d" % (len(ours.rows), len(torch.rows))
        problem = order_rows(torch, ours, case)
        if problem:
            return problem
        for a, b in zip(torch.rows, ours.rows):
            if len(a) != len(b):
                return "%s: %d lines, torch has %d" % (torch.cell(a, "Name"), len(b), len(a))
            for of_torch, of_us in zip(a, b):
                found = self.line(torch, of_torch, of_us)
                if found:
                    return found
        return self.footers(torch.below, ours.below)

    def footers(self, torch, ours):
        if len(torch) != len(ours):
            return "footer %s, torch has %s" % (ours, torch)
        for a, b in zip(torch, ours):
            if a != b and not (a.rsplit(" ", 1)[0] == b.rsplit(" ", 1)[0] and
                               near(a.rsplit(" ", 1)[1], b.rsplit(" ", 1)[1])):
                return "footer %r, torch has %r" % (b, a)
        return None


# ---- the command -----------------------------------------------------------------------------

def report_options(case):
    """Options of `mtprof report` for this table, or None if it has none."""
    table, group = dict(case["table"]), case["group"]
    options = ["--sort", table.pop("sort_by", "none")]
    limit = table.pop("row_limit", 100)
    if limit == 0:
        return None
    options += ["--limit", "all" if limit < 0 else str(limit)]
    if "time_unit" in table:
        options += ["--time-unit", table.pop("time_unit")]
    groups = [name for key, name in (("group_by_input_shape", "shapes"),
                                     ("group_by_overload_name", "overload")) if group.get(key)]
    if group.get("group_by_stack_n"):
        groups.append("stack:%d" % group["group_by_stack_n"])
    if groups:
        options += ["--group", ",".join(groups)]
    if case["events"]:
        options.append("--events")
    return None if table else options


class Suite:
    def __init__(self, folder, library, command):
        self.folder, self.library, self.command = Path(folder), Library(library), command
        self.cases = json.loads((self.folder / "cases.json").read_text())
        self.comparer = Comparer()
        self.passed, self.failed = 0, 0
        self.kinds = Counter()

    def tell(self, kind, name, problem):
        self.kinds[kind] += 1
        if problem is None:
            self.passed += 1
        else:
            self.failed += 1
            print("FAILED %s, %s: %s" % (kind, name, problem))

    def mtprof(self, *arguments):
        return subprocess.run([self.command, *map(str, arguments)], capture_output=True, timeout=120)

    def compare(self, trace, cases):
        """1 and 2. The tables of this trace, as the library prints them."""
        texts = []
        with self.library.open(self.folder / trace) as model:
            for case in cases:
                name = "%s %s %s" % (case["program"], case["group"] or "", case["table"] or "")
                name += " events" if case["events"] else ""
                text = model.table(case["group"], case["table"], case["events"])
                texts.append(text)
                self.tell("table", name, self.comparer.tables(case, text))
                options = report_options(case)
                if options is not None:
                    run = self.mtprof("report", "--format", "torch", *options, self.folder / trace)
                    same = run.stdout.decode() == text
                    self.tell("report", name, None if same and run.returncode == 0 else
                              "the command prints another table than the library: mtprof report %s (%d) %s"
                              % (" ".join(options), run.returncode, run.stderr.decode().strip()))
        return texts

    def round_trip(self, trace, cases, texts):
        """3 and 4."""
        for suffix, flavor in ((".json", "torch"), (".json.gz", "torch"), (".json", "mindtorch")):
            out = self.folder / ("again.%s%s" % (flavor, suffix))
            name = "%s to %s%s" % (trace, flavor, suffix)
            run = self.mtprof("export", "-q", "--flavor", flavor, "-o", out, "chrome", self.folder / trace)
            if run.returncode != 0:
                self.tell("export", name, run.stderr.decode().strip())
                continue
            self.tell("json", name, json_problem(out))
            checked = self.mtprof("check", "-q", out)
            self.tell("check", name, None if checked.returncode == 0 else
                      (checked.stdout + checked.stderr).decode().strip()[:600])
            if flavor == "torch":
                self.again(name, out, cases, texts)
            out.unlink()

    def again(self, name, out, cases, texts):
        problem = None
        with self.library.open(out) as model:
            for case, text in zip(cases, texts):
                if model.table(case["group"], case["table"], case["events"]) != text:
                    problem = "another table after export and import: %s %s" % (case["group"], case["table"])
                    break
        self.tell("again", name, problem)

    def run(self):
        for trace in sorted({case["trace"] for case in self.cases}):
            cases = [case for case in self.cases if case["trace"] == trace]
            try:
                self.round_trip(trace, cases, self.compare(trace, cases))
            except Failed as error:
                self.tell("open", trace, error)
        print(", ".join("%d %s" % (n, kind) for kind, n in self.kinds.items()))
        print("%d cells, %d of them one off in the last digit" % (self.comparer.cells, self.comparer.rounded))


def json_problem(path):
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as file:
            document = json.loads(file.read().decode("utf-8"))
    except (ValueError, OSError) as error:
        return str(error)
    return None if isinstance(document.get("traceEvents"), list) else "no traceEvents"


def main(folder, library, command):
    print("left out:\n" + LEFT_OUT)
    suite = Suite(folder, library, command)
    suite.run()
    print("%d passed, %d failed, 0 skipped" % (suite.passed, suite.failed))
    return 1 if suite.failed or not suite.passed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
