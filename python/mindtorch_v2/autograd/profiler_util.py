# SPDX-License-Identifier: Apache-2.0
"""torch.autograd.profiler_util's names: the profiler's events, rows and lists."""
import bisect
import collections

from mtprof.events import EventList, FormattedTimesMixin, FunctionEvent, FunctionEventAvg, Interval, Kernel
from mtprof.function_events import EventMetadata

__all__ = ["EventList", "EventMetadata", "FormattedTimesMixin", "Interval", "Kernel", "FunctionEvent",
           "FunctionEventAvg", "StringTable", "MemRecordsAcc"]


class StringTable(collections.defaultdict):
    """A name for a name. torch demangles C++ names here; ours are shown as they were given."""

    def __missing__(self, key):
        self[key] = key
        return key


class MemRecordsAcc:
    """Finds allocation records, (record, …) tuples whose record has start_ns(), by their time."""

    def __init__(self, mem_records):
        self._mem_records = mem_records
        order = sorted((record[0].start_ns(), place) for place, record in enumerate(mem_records))
        self._start_nses = [start for start, _ in order]
        self._indices = [place for _, place in order]

    def in_interval(self, start_ns, end_ns):
        """Those that began from start_ns to end_ns, in order."""
        first = bisect.bisect_left(self._start_nses, start_ns)
        last = bisect.bisect_right(self._start_nses, end_ns)
        for place in self._indices[first:last]:
            yield self._mem_records[place]
