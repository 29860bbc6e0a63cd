# SPDX-License-Identifier: Apache-2.0
"""Answers as text: a table that fits a terminal, CSV, JSON."""
import csv
import datetime
import decimal
import json


LEAST = 6  # characters of a column of text that stay


def plain(value):
    """A value as JSON has it."""
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, (datetime.date, datetime.datetime, datetime.timedelta)):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def _cell(value):
    value = plain(value)
    if value is None:
        return "-"
    text = f"{value:g}" if isinstance(value, float) and value != round(value, 6) else str(value)
    return "".join(c if c.isprintable() else "?" for c in text)


def _cut(text, width):
    if len(text) <= width:
        return text
    return text[:width] if width < 2 else text[:(width - 1) // 2] + "…" + text[len(text) - width // 2:]


def table(answer, width=80):
    """(lines of a table, the columns for which there is no room): no wider than `width`. The widest columns of text are
    cut, in the middle of their values; where that is not enough the last columns are left out, all but the first."""
    names = [name for name, _ in answer.columns]
    cells = [[_cell(value) for value in row] for row in answer.rows]
    widths = [max([len(name), *(len(row[i]) for row in cells)]) for i, name in enumerate(names)]
    def too_wide():
        return sum(widths) + 2 * (len(widths) - 1) > width
    def is_cut(i):  # numbers never are: what is left of one would be another
        return not answer.columns[i][1] and widths[i] > LEAST
    while too_wide() and any(map(is_cut, range(len(widths)))):
        widths[max(filter(is_cut, range(len(widths))), key=lambda i: widths[i])] -= 1
    while too_wide() and len(widths) > 1:
        widths.pop()
    def line(row, fill=" "):
        parts = [_cut(text, w).rjust(w, fill) if number else _cut(text, w).ljust(w, fill)
                 for text, w, (_, number) in zip(row, widths, answer.columns)]
        return "  ".join(parts).rstrip()
    return [line(names), "  ".join("-" * w for w in widths), *map(line, cells)], names[len(widths):]


def write_csv(answer, file):
    """Comma-separated values, with a line of names."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([name for name, _ in answer.columns])
    writer.writerows([["" if value is None else plain(value) for value in row] for row in answer.rows])


def as_json(answer, traces, left_out):
    """One JSON object: columns, rows, how many traces answered and which were left out."""
    rows = [[plain(value) for value in row] for row in answer.rows]
    return json.dumps({"columns": [name for name, _ in answer.columns], "rows": rows, "traces": traces,
                       "left_out": [{"trace": path, "reason": why} for path, why in left_out.items()]})
