# SPDX-License-Identifier: Apache-2.0
"""Compare: a table of measurements, a row for each sub label and a column for each description."""

from .measurement import Measurement, select_unit, trim_sigfig


class Compare:
    """compare = Compare(measurements); compare.print()"""

    def __init__(self, results):
        self._results = []
        self._trim = False
        self._colorize = False
        self._warn = False
        self.extend_results(results)

    def extend_results(self, results):
        """Adds measurements."""
        for one in results:
            if not isinstance(one, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, but got {type(one)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self):
        """Shows no more figures than the spread of the times allows."""
        self._trim = True

    def colorize(self, rowwise=False):
        """Colours the fastest of each row, or of each column."""
        self._colorize = "row" if rowwise else "column"

    def highlight_warnings(self):
        """Marks measurements that vary much."""
        self._warn = True

    def print(self):
        """Prints the table."""
        print(str(self))

    def __str__(self):
        merged = Measurement.merge(self._results)
        labels = list(dict.fromkeys(one.task_spec.label for one in merged))
        return "\n".join(
            self._table([one for one in merged if one.task_spec.label == label], label) for label in labels
        )

    def _text(self, one, scale, best):
        value = one.median / scale
        if self._trim:
            value = trim_sigfig(value, one.significant_figures)
            text = f"{value:.0f}" if value >= 10**one.significant_figures / 10 else f"{value:g}"
        else:
            text = f"{value:.1f}"
        if self._warn and one.has_warnings:
            text = "(! " + text
        if self._colorize and one is best:
            text = f"\033[92m\033[1m{text}\033[0m\033[0m"
        return text

    def _best(self, cells, key):
        """The fastest of the cells that share what is coloured together."""
        if not self._colorize:
            return None
        place = 0 if self._colorize == "row" else 1
        alike = [
            one for other, one in cells.items() if other[0][place] == key[0][place] or other[place] == key[place]
        ]
        return min(alike, key=lambda one: one.median)

    def _table(self, results, label):
        unit, scale = select_unit(min(one.median for one in results))
        words = {"s": "seconds (s)", "ms": "milliseconds (ms)", "us": "microseconds (us)", "ns": "nanoseconds (ns)"}
        columns = list(dict.fromkeys(one.task_spec.description or "" for one in results))
        threads = sorted({one.task_spec.num_threads for one in results})
        cells = {
            ((one.task_spec.num_threads, one.as_row_name), one.task_spec.description or ""): one for one in results
        }
        texts = {key: self._text(one, scale, self._best(cells, key)) for key, one in cells.items()}
        rows = list(dict.fromkeys(key[0] for key in cells))
        first = max(len(row[1]) for row in rows) + 6
        widths = {c: max(len(c), *(len(t) for key, t in texts.items() if key[1] == c)) for c in columns}
        lines = [" " * first + "".join(f"  |  {c:^{widths[c]}}" for c in columns)]
        for count in threads:
            lines.append(f"{count} threads: " + "-" * max(len(lines[0]) - len(f"{count} threads: "), 3))
            for row in (row for row in rows if row[0] == count):
                cell = "".join(f"  |  {texts.get((row, c), ''):>{widths[c]}}" for c in columns)
                lines.append(f"{row[1]:>{first}}" + cell)
        title = f" {label or ''} "
        width = max(len(line) for line in lines) - 2
        return "\n".join([f"[{title:-^{width}}]", *lines, "", f"Times are in {words[unit]}.", ""])
