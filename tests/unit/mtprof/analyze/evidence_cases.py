#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns recorded tables of torch into cases with rows: tests/golden/torch/evidence.txt.

    evidence_cases.py FOLDER > tests/golden/torch/evidence.txt

FOLDER has the recordings (plain.tab, plain.tab3, full.tab, full.tab2, obs_c.txt). Only the printed
cells are known, rounded to three digits, so the rows are made to print alike: the average times the
number of calls tells a total more exactly than the total itself, and rows that were not printed are
one filler, placed where a row limit or the top-level filter hides it, with what the sums lack.
"""
import re
import sys
from fractions import Fraction
from pathlib import Path

UNITS = {"us": 1000, "ms": 1000000, "s": 1000000000}
SIZES = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


def encode(text):
    return "".join(c if 33 <= ord(c) <= 126 and c not in "%;=" else "%%%02X" % ord(c) for c in text)


def span(text):
    """The nanoseconds that print as this, as (low, high)."""
    number, unit = re.fullmatch(r"(-?[\d.]+)(us|ms|s)", text).groups()
    middle = Fraction(number) * UNITS[unit]
    return middle - Fraction(UNITS[unit], 2000), middle + Fraction(UNITS[unit], 2000)


def within(low, high):
    """The whole number nearest to the middle."""
    return round((low + high) / 2)


def share(text, whole):
    """The nanoseconds that are this share of the whole."""
    number = Fraction(text.rstrip("%"))
    return ((number - Fraction(1, 200)) * whole[0] / 100,
            (number + Fraction(1, 200)) * whole[1] / 100)


def bounds(cells, whole, *more):
    low, high = span(cells[whole])
    for low2, high2 in more:
        low, high = max(low, low2), min(high, high2)
    return low, high


def total(cells, whole, *more):
    return within(*bounds(cells, whole, *more))


def times(average, count):
    low, high = span(average)
    return low * count, high * count


def repair_tie(line, cells, header, count, ns):
    """torch adds floating-point microseconds, so a mean that lies exactly between two thousandths
    may go either way there; the sum of whole nanoseconds goes one way."""
    shown = "%.3fus" % (ns / 1000 / count)
    cell = cells[header]
    if not cell.endswith("us") or cell == shown:
        return line
    print("# %s: mean of %d ns in %d calls, torch %s, ours %s" % (cells["Name"], ns, count, cell, shown))
    return line.replace(cell, shown)


def size(text):
    number, unit = text.split()
    return round(Fraction(number) * SIZES[unit])


def parse(text):
    lines = text.split("\n")
    rule = next(i for i, line in enumerate(lines) if line.startswith("---"))
    widths = [len(dashes) for dashes in lines[rule].split()]
    headers = re.split(r"\s{2,}", lines[rule + 1].strip())
    last = next(i for i in range(rule + 3, len(lines)) if lines[i].startswith("---"))
    rows = []
    for line in lines[rule + 3:last]:
        at, cells = 0, []
        for width in widths:
            cells.append(line[at:at + width].strip())
            at += width + 2
        rows.append(dict(zip(headers, cells)))
    footers = [line.rsplit(" ", 1)[1] for line in lines[last + 1:] if "time total" in line]
    return headers, rows, footers, widths


def make_rows(headers, rows, device, footers):
    out = []
    whole = span(footers[0])
    scale = {"Total FLOPs": 1}
    for cells in rows:
        count = int(cells["# of Calls"])
        row = {"count": count, 
               "self": total(cells, "Self CPU", share(cells["Self CPU %"], whole)),
               "cpu": total(cells, "CPU total", times(cells["CPU time avg"], count),
                            share(cells["CPU total %"], whole))}
        row["_self"] = bounds(cells, "Self CPU", share(cells["Self CPU %"], whole))
        row["_same"] = cells["Self CPU"] == cells["CPU total"]
        if row["_same"]:
            row["self"] = row["cpu"]
            row["_self"] = bounds(cells, "CPU total", times(cells["CPU time avg"], count),
                                  share(cells["CPU total %"], whole))
        name = cells["Name"]
        row["key"] = name[:-3] + "cut" + "." * 5 if name.endswith("...") else name
        if "Overload Name" in headers:
            row["overload"] = cells["Overload Name"]
        if device and "Self " + device in headers:
            row["selfdev"] = within(*span(cells["Self " + device]))
            row["dev"] = total(cells, device + " total", times(cells[device + " time avg"], count))
            if cells["Self " + device] == cells[device + " total"]:
                row["selfdev"] = row["dev"]
            if row["dev"] == row["selfdev"] != 0 and row["cpu"] == 0:
                row["device"] = 1
                if float(cells["Self %s %%" % device].rstrip("%")) > 100:
                    row["annotation"] = 1
        for header, field in (("CPU Mem", "cpumem"), ("Self CPU Mem", "selfcpumem"),
                              ("%s Mem" % device, "devmem"), ("Self %s Mem" % device, "selfdevmem")):
            if header in headers:
                row[field] = size(cells[header])
        if "Input Shapes" in headers:
            row["shapes"] = cells["Input Shapes"]
        for header in headers:
            if header in scale and cells[header] != "--":
                row["flops"] = round(float(cells[header]) * scale[header])
        out.append(row)
    return out


def correct(rows, footer):
    """Moves self times, each within what prints alike, until their sum prints as it was printed."""
    low, high = span(footer)
    for row in rows:
        off = within(low, high) - sum(row["self"] for row in rows)
        least, most = row["_self"]
        move = int(max(least - row["self"] + 1, min(off, most - row["self"] - 1)))
        if abs(most - least) > 10:
            row["self"] += move
            row["cpu"] += move if row["_same"] else 0


def filler(rows, footers, device, name_width, shapes_width):
    """What the printed rows lack of the sums."""
    row = {"key": "f" * max(1, name_width - 4), "parent": 1, "count": 1, "cpu": 0}
    row["self"] = within(*span(footers[0])) - sum(r["self"] for r in rows)
    out = [row]
    if shapes_width:
        row["shapes"] = "s" * (shapes_width - 4)
    if device:
        known = sum(r["selfdev"] for r in rows if r.get("device") and not r.get("annotation"))
        rest = within(*span(footers[1])) - known
        out.append({"key": "g", "parent": 1, "count": 1, "cpu": 0, "self": 0, "device": 1,
                    "dev": rest, "selfdev": rest})
    return out


def emit(name, text, options, hidden, known=None):
    headers, cells, footers, widths = parse(text)
    device = "CUDA" if "Self CUDA" in headers else None
    rows = known or make_rows(headers, cells, device, footers)
    if hidden and not known:
        shapes = widths[headers.index("Input Shapes")] if "Input Shapes" in headers else 0
        rows += filler(rows, footers, device, widths[0], shapes)
        if "Total FLOPs" in headers:
            rows[-1]["flops"] = 1  # the smallest decides the scale
    elif not known:
        correct(rows, footers[0])
    if "Self CUDA Mem" in headers and not any(row.get("selfdevmem", 0) > 0 for row in rows):
        rows[-1]["selfdevmem"] = 1
    print("case " + name)
    lines = text.split("\n")
    for row, cell in zip(rows, cells):
        at = next(i for i, line in enumerate(lines) if line.strip().startswith(cell["Name"]) and
                  all(value in line for value in cell.values()))
        for header, field in (("CPU time avg", "cpu"), ("CUDA time avg", "dev")):
            if header in headers:
                lines[at] = repair_tie(lines[at], cell, header, row["count"], row[field])
    text = "\n".join(lines)
    print("facts device=%s memory=%d flops=%d" % (device or "", "CPU Mem" in headers,
                                                  "Total FLOPs" in headers))
    print("options " + " ".join("%s=%s" % (k, encode(str(v))) for k, v in options.items()))
    for row in rows:
        print("row " + " ".join("%s=%s" % (k, encode(str(v))) for k, v in row.items()
                                if v != "" and k[0] != "_"))
    print("table %d" % len(text.encode()))
    print(text)
    return rows


def main():
    folder = Path(sys.argv[1])
    emit("plain.tab", (folder / "plain.tab").read_text(), {"row_limit": -1}, False)
    top = (folder / "plain.tab3").read_text().split("\n\n<")[0] + "\n"
    emit("plain.tab3", top, {"row_limit": 15, "top_level_events_only": True}, True)
    emit("full.tab", (folder / "full.tab").read_text(), {"row_limit": -1}, False)
    emit("full.tab2", (folder / "full.tab2").read_text(), {"row_limit": 12}, True)
    # "{options} => ", the table after a newline, then a blank and a newline.
    notes = (folder / "obs_c.txt").read_text()
    first = None
    for number, (options, text) in enumerate(re.findall(
            r"^(\{.*\}|ovltab) => \n((?:[-=].*\n)(?:.*\n)*?Self CPU time total: .*\n) $", notes,
            re.M)):
        values = eval(options, {}) if options != "ovltab" else {"row_limit": 2}  # our own notes
        values.pop("sort_by", None)  # the order is that of the recording
        if "time_unit" in values:  # too coarse to tell the rows, which are those of the first table
            emit("obs_c_%d" % number, text, values, True, first)
            continue
        rows = emit("obs_c_%d" % number, text, values, True)
        first = rows if number == 0 else first


if __name__ == "__main__":
    main()
