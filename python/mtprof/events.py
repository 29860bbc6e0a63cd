# SPDX-License-Identifier: Apache-2.0
"""Events, rows and lists of them, under one name."""
from .averages import FunctionEventAvg
from .event_lists import ArrowTable, Columns, EventList
from .function_events import FormattedTimesMixin, FunctionEvent, Interval, Kernel

__all__ = ["ArrowTable", "Columns", "EventList", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg",
           "Interval", "Kernel"]
