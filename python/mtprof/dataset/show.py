# SPDX-License-Identifier: Apache-2.0
"""Answers as text: a table that fits a terminal, CSV, JSON."""
import csv
import datetime
import decimal
import json


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
    """Lines of a table no wider than `width`: the widest columns of text are cut, in the middle of their values."""
    names = [name for name, _ in answer.columns]
    cells = [[_cell(value) for value in row] for row in answer.rows]
    widths = [max([len(name), *(len(row[i]) for row in cells)]) for i, name in enumerate(names)]
    while sum(widths) + 2 * (len(widths) - 1) > width and max(widths, default=0) > 6:
        texts = [i for i, (_, number) in enumerate(answer.columns) if not number and widths[i] > 6]
        widest = max(texts or range(len(widths)), key=lambda i: widths[i])
        widths[widest] -= 1
    def line(row, fill=" "):
        parts = [_cut(text, w).rjust(w, fill) if number else _cut(text, w).ljust(w, fill)
                 for text, w, (_, number) in zip(row, widths, answer.columns)]
        return "  ".join(parts).rstrip()
    return [line(names), "  ".join("-" * w for w in widths), *map(line, cells)]


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
