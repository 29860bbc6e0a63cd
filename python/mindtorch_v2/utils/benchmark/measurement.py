# SPDX-License-Identifier: Apache-2.0
"""What a Timer measured: times of repeated runs, and the numbers that describe them."""

import dataclasses
import math
import statistics

_UNITS = ((1e-9, "ns"), (1e-6, "us"), (1e-3, "ms"), (1.0, "s"))


def select_unit(t):
    """(unit, seconds in it) in which a time is easy to read."""
    seconds, name = next(((s, n) for s, n in reversed(_UNITS) if t >= s), _UNITS[0])
    return name, seconds


def trim_sigfig(x, n):
    """x rounded to n significant figures."""
    if x == 0 or not math.isfinite(x):
        return x
    magnitude = math.floor(math.log10(abs(x))) + 1
    return float(round(x, n - magnitude))


def _quantile(ordered, share):
    """The value below which a share of the ordered values lies, interpolated."""
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


@dataclasses.dataclass(frozen=True)
class TaskSpec:
    """What was measured, in words."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self):
        """The label, or the statement."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        return self.stmt

    def setup_str(self):
        """The setup, if there is one."""
        return "" if self.setup in ("", "pass") else f"setup: {self.setup}"

    def summarize(self):
        """Title, description and setup."""
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join(part for part in parts if part)


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """Times of runs: raw_times are of number_per_run executions each."""

    number_per_run: int
    raw_times: list
    task_spec: TaskSpec
    metadata: dict | None = None

    @property
    def times(self):
        """Seconds of one execution, of each run."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def mean(self):
        """Mean of the times."""
        return statistics.fmean(self.times)

    @property
    def median(self):
        """Median of the times."""
        return statistics.median(self.times)

    @property
    def iqr(self):
        """Width of the middle half of the times."""
        ordered = sorted(self.times)
        return _quantile(ordered, 0.75) - _quantile(ordered, 0.25)

    @property
    def significant_figures(self):
        """How many figures of the median mean something, from the spread of the times: 1 to 5."""
        n = len(self.raw_times)
        low, high = self.median, self.median
        if n >= 2:  # half the middle half, as of a normal distribution, of the mean of n
            spread = self.iqr / 1.349 / math.sqrt(n) * 1.645
            low, high = self.median - spread, self.median + spread
        relative = (high - low) / 2 / self.median if self.median else 0.0
        figures = -math.log10(max(relative, 1e-9)) if relative else 5.0
        return min(max(math.floor(figures), 1), 5) if n >= 2 else 3

    @property
    def has_warnings(self):
        """Whether the times differ so much that they mean little."""
        return len(self.raw_times) > 1 and self.iqr / self.median > 0.25

    def meets_confidence(self, threshold=0.1):
        """Whether the middle half is narrower than a share of the median."""
        return self.iqr / self.median < threshold

    def __getattr__(self, name):
        if name in ("title", "env", "label", "sub_label", "description", "stmt", "num_threads", "as_row_name"):
            spec = self.__dict__["task_spec"]
            return (spec.sub_label or spec.stmt or "[Unknown]") if name == "as_row_name" else getattr(spec, name)
        raise AttributeError(name)

    @staticmethod
    def merge(measurements):
        """One measurement for each task, with the runs of all of its own."""
        grouped = {}
        for one in measurements:
            grouped.setdefault(one.task_spec, []).append(one)
        merged = []
        for spec, group in grouped.items():
            number = group[0].number_per_run
            merged.append(Measurement(number, [t * number for one in group for t in one.times], spec))
        return merged

    def __repr__(self):
        unit, scale = select_unit(self.median)
        n = len(self.raw_times)
        lines = [
            f"<{type(self).__module__}.{type(self).__name__} object at {id(self):#x}>",
            self.task_spec.summarize(),
        ]
        value = trim_sigfig(self.median / scale, max(self.significant_figures, 4 if n == 1 else 1))
        lines.append(f"  {'Median: ' if n > 1 else ''}{value:g} {unit}")
        if n > 1:
            ordered = sorted(self.times)
            ends = [_quantile(ordered, share) / scale for share in (0.25, 0.75)]
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({ends[0]:.2f} to {ends[1]:.2f})")
        threads = self.task_spec.num_threads
        runs = f"{self.number_per_run} run{'s' if self.number_per_run > 1 else ''} " + (
            "per measurement" if n > 1 else ""
        )
        lines.append(f"  {n} measurement{'s' if n > 1 else ''}, {runs}, {threads} thread{'s' if threads > 1 else ''}")
        if self.has_warnings:
            lines.append("  WARNING: Interquartile range is more than a quarter of the median measurement.")
        return "\n".join(lines)
