#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Draws README's table of costs as docs/pictures/costs.svg: a pair of bars per row, on a logarithmic scale.

usage: make_chart.py [--check]     --check writes nothing and fails if the picture is not what the table says
"""
import html
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs/pictures/costs.svg"
ROW = re.compile(r"^\| ([^|]+) \| ([\d.]+ [nm]?s) \| ([\d.]+ [nm]?s) \|$", re.M)
SECONDS = {"ns": 1e-9, "ms": 1e-3, "s": 1.0}
LOWEST, HIGHEST = -8, 2  # powers of ten of the scale's ends, in seconds
LEFT, RIGHT, TOP, ROW_HEIGHT, BAR = 320, 100, 56, 40, 13
SCALE_WIDTH = 480
COLORS = {"mtprof": "#2a7f62", "torch.profiler": "#b8682f"}


def position(seconds):
    """Where a duration is on the scale, in pixels from its left end."""
    return (math.log10(seconds) - LOWEST) / (HIGHEST - LOWEST) * SCALE_WIDTH


def text(x, y, words, anchor="start", color="#222"):
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="{color}">{html.escape(words)}</text>'


def bar(y, words, color):
    number, unit = words.split()
    width = position(float(number) * SECONDS[unit])
    if not 0 < width <= SCALE_WIDTH:
        sys.exit(f"make_chart.py: {words} is outside of the scale, 1e{LOWEST} to 1e{HIGHEST} s")
    return [f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{color}"/>',
            text(LEFT + width + 5, y + BAR - 2, words)]


def scale(bottom):
    names = {-8: "10 ns", -6: "1 us", -4: "100 us", -2: "10 ms", 0: "1 s", 2: "100 s"}
    for power in range(LOWEST, HIGHEST + 1):
        x = LEFT + position(10.0 ** power)
        yield f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{bottom}" stroke="#ddd"/>'
        if power in names:
            yield text(x, bottom + 16, names[power], "middle", "#666")


def chart(table):
    rows = ROW.findall(table)
    if not rows:
        sys.exit("make_chart.py: README.md has no table of costs")
    bottom = TOP + len(rows) * ROW_HEIGHT
    width, height = LEFT + SCALE_WIDTH + RIGHT, bottom + 26
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
             "<title>What recording and its results cost, logarithmic scale</title>",
             f'<rect width="{width}" height="{height}" fill="white"/>']
    lines += scale(bottom)
    for i, (name, color) in enumerate(COLORS.items()):
        lines += [f'<rect x="{LEFT + 130 * i}" y="20" width="12" height="12" fill="{color}"/>',
                  text(LEFT + 130 * i + 18, 30, name)]
    for i, (what, *costs) in enumerate(rows):
        y = TOP + i * ROW_HEIGHT
        lines.append(text(LEFT - 10, y + BAR + 4, what.replace("`", ""), "end"))
        for j, (words, color) in enumerate(zip(costs, COLORS.values())):
            lines += bar(y + j * (BAR + 1), words, color)
    return "\n".join(lines + ["</svg>", ""])


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    drawn = chart((ROOT / "README.md").read_text(encoding="utf-8"))
    if sys.argv[1:]:
        if not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != drawn:
            sys.exit("docs/pictures/costs.svg is not what README's table says: python3 tools/make_chart.py")
    else:
        PICTURE.write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
