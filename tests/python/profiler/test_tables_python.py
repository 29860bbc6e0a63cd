# SPDX-License-Identifier: Apache-2.0
"""Tables from Python: torch's own output byte for byte, from rows made by hand and from traces."""
import copy
import gzip
import os
import re
import unittest
import urllib.parse

from support_results import ResultsTest, record

import mtprof
from mtprof.enums import DeviceType
from mtprof.events import EventList, FunctionEvent, FunctionEventAvg

GOLDEN = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "golden")


def read(name):
    """A file of tests/golden as text."""
    path = os.path.join(GOLDEN, name)
    opener = gzip.open if name.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8", newline="") as file:
        return file.read()


def parts(line):
    """The name=value parts of a line, decoded."""
    found = {}
    for part in line.split(" ")[1:]:
        name, equal, value = part.partition("=")
        if equal:
            unquote = urllib.parse.unquote
            found[name] = [unquote(item) for item in value.split(";")] if name == "stack" else unquote(value)
    return found


def cases(name):
    """(name, facts, options, rows, table) of a file of tables that torch printed."""
    data = read("torch/" + name).encode()
    at = 0
    facts = options = rows = title = None
    while at < len(data):
        end = data.index(b"\n", at)
        line = data[at:end].decode()
        at = end + 1
        if line.startswith("case "):
            title, rows = line[5:], []
        elif line.startswith("facts"):
            facts = parts(line)
        elif line.startswith("options"):
            options = parts(line)
        elif line.startswith("row "):
            rows.append(parts(line))
        elif line.startswith("table "):
            length = int(line[6:])
            yield title, facts, options, rows, data[at:at + length].decode()
            at += length + 1


class Parent:
    """Stands for some parent."""


def row_of(values, device):
    """A row as its golden file has it."""
    row = FunctionEventAvg()
    row.key = values["key"]
    row.node_id = int(values.get("node", -1))
    row.count = int(values.get("count", 1))
    row.input_shapes = values.get("shapes", "")
    row.overload_name = values.get("overload", "")
    row.stack = values.get("stack", [])
    for name, attribute in (("cpu", "cpu_time_total"), ("self", "self_cpu_time_total"),
                            ("dev", "device_time_total"),
                            ("selfdev", "self_device_time_total")):
        setattr(row, attribute, int(values.get(name, 0)) / 1000)
    for name, attribute in (("cpumem", "cpu_memory_usage"), ("selfcpumem", "self_cpu_memory_usage"),
                            ("devmem", "device_memory_usage"), ("selfdevmem", "self_device_memory_usage")):
        setattr(row, attribute, int(values.get(name, 0)))
    row.flops = int(values.get("flops", 0))
    row.is_async = values.get("async") == "1"
    row.is_user_annotation = values.get("annotation") == "1"
    row.device_type = DeviceType.CUDA if values.get("device") == "1" else DeviceType.CPU
    row.use_device = device
    row.cpu_parent = Parent() if values.get("parent") == "1" else None
    return row


def option(name, value):
    """An option's value as Python has it."""
    if value == "None":
        return None
    if name in ("sort_by", "header", "time_unit"):
        return value
    return value in ("1", "True") if name == "top_level_events_only" else int(value)


class Golden(unittest.TestCase):
    def compare(self, name):
        compared = 0
        for title, facts, options, rows, expected in cases(name):
            with self.subTest(case=title):
                device = facts.get("device", "").lower() or None
                events = EventList([row_of(row, device) for row in rows], use_device=device,
                                   profile_memory=facts.get("memory") == "1",
                                   with_flops=facts.get("flops") == "1")
                ours = events.table(**{name: option(name, value) for name, value in options.items()})
                self.assertEqual(ours, expected)
                compared += 1
        return compared

    def test_made_up_rows(self):
        self.assertGreaterEqual(self.compare("tables.txt"), 90)

    def test_rows_of_real_programs(self):
        self.assertGreaterEqual(self.compare("evidence.txt"), 5)


class Traces(ResultsTest):
    def setUp(self):
        super().setUp()
        self.trace = self.load()
        self.events = self.trace.events()

    def test_given_rows_and_the_library_agree(self):
        for sort_by in (None, "cpu_time_total", "self_cuda_time_total", "count", "self_npu_time_total"):
            whole = self.events.table(sort_by=sort_by)
            self.assertTrue(self.events._is_whole())
            other = copy.copy(self.events)
            other._model = None
            self.assertFalse(other._is_whole())
            self.assertEqual(other.table(sort_by=sort_by), whole)

    def test_averages_of_c_and_of_python_look_the_same(self):
        for options in ({}, {"group_by_input_shapes": True}, {"group_by_stack_n": 2},
                        {"group_by_overload_name": True}):
            other = EventList(self.events, use_device="cuda", profile_memory=True, with_flops=True)
            self.assertEqual(other.key_averages(**options).table(),
                             self.events.key_averages(**options).table())

    def test_empty(self):
        self.assertEqual(EventList().table(), "")
        self.assertEqual(EventList([]).key_averages().table(), "")

    def test_row_limits(self):
        rows = self.events.key_averages()

        def lines(**options):
            return len(rows.table(**options).splitlines())

        around = 3 + 1 + 2  # two rules and headers, a rule, two sums
        self.assertEqual(lines(row_limit=2), around + 2)
        self.assertEqual(lines(row_limit=0), around)
        for every in (-1, None, 1000):
            self.assertEqual(lines(row_limit=every), around + len(rows))
        self.assertEqual(len(self.events.table(row_limit=0).splitlines()), around)

    def test_unknown_sort_keys(self):
        with self.assertRaisesRegex(AttributeError, "'FunctionEventAvg' object has no attribute 'foo'"):
            self.events.key_averages().table(sort_by="foo")
        with self.assertRaisesRegex(AttributeError, "'FunctionEvent' object has no attribute 'foo'"):
            self.events.table(sort_by="foo")
        with self.assertRaisesRegex(AttributeError, "no attribute 'foo'"):
            EventList(self.events).table(sort_by="foo")

    def test_sort_aliases(self):
        rows = self.events.key_averages()
        for key, same in (("cpu_time_avg", "cpu_time"), ("self_cpu_time", "self_cpu_time_total"),
                          ("self_cuda_memory_usage", "self_device_memory_usage"),
                          ("npu_time_total", "device_time_total"), ("privateuse1_time", "device_time")):
            self.assertEqual(rows.table(sort_by=key), rows.table(sort_by=same))
        self.assertEqual(rows.table(sort_by="input_shapes"), rows.table())  # "npu" in it is no device

    def test_width_fits_a_terminal(self):
        rows = self.events.key_averages()
        for items in (rows, self.events):
            self.assertGreater(max(map(len, items.table().splitlines())), 80)
            for width in (60, 80, 120):
                table = items.table(width=width)
                self.assertLessEqual(max(map(len, table.splitlines())), width)
                self.assertRegex(table, "Name .*Self CPU")
        for width in (0, -1, "80"):
            with self.assertRaisesRegex(ValueError, f"width is {width!r}"):
                rows.table(width=width)

    def test_sorting_is_stable_and_leaves_the_list(self):
        rows = self.events.key_averages()
        before = list(rows)
        table = rows.table(sort_by="node_id")
        self.assertEqual(list(rows), before)
        names = re.findall(r"^ *(\S+) +[\d.]+%", table, re.MULTILINE)
        self.assertEqual(names, [row.key for row in rows])

    def test_sorting_by_a_users_attribute(self):
        rows = self.events.key_averages()
        for number, row in enumerate(rows):
            row.mine = number
        first = rows.table(sort_by="mine", row_limit=1).splitlines()[3]
        self.assertIn(rows[-1].key, first)

    def test_changes_are_seen(self):
        rows = self.events.key_averages()
        rows[0].key = "renamed"
        rows[0].cpu_time_total = 1e6
        self.assertIn("renamed", rows.table())
        self.assertIn("1.000s", rows.table())
        self.events[0].name = "changed"
        self.assertIn("changed", self.events.table())
        self.assertIn("changed", self.trace.key_averages().table())

    def test_mindtorchs_columns(self):
        rows = self.events.key_averages()
        self.assertNotIn("Total(us)", rows.table())
        for table in (rows.table(flavor="mindtorch"), self.events.table(flavor="mindtorch")):
            header = table.splitlines()[1]
            self.assertIn("Total(us)", header)
            self.assertRegex(header, r"Total\(us\) +Count  $")
        os.environ["MINDTORCH_PROFILER_FLAVOR"] = "mindtorch"
        self.addCleanup(os.environ.pop, "MINDTORCH_PROFILER_FLAVOR")
        self.assertIn("Total(us)", rows.table())
        self.assertNotIn("Total(us)", rows.table(flavor="torch"))
        with self.assertRaisesRegex(ValueError, "flavor must be 'torch', 'mindtorch' or 'lean', not 'other'"):
            rows.table(flavor="other")

    def test_device_times_without_a_device(self):
        rows = EventList(self.events.key_averages())
        with self.assertRaisesRegex(RuntimeError,
                                    "use_device is None, but there is device performance data."):
            rows.table()

    def test_items_that_are_no_rows(self):
        with self.assertRaisesRegex(AttributeError, "'int' object has no attribute 'self_device_time_total'"):
            EventList([1]).table()

    def test_odd_values(self):
        row = FunctionEventAvg()
        row.key, row.cpu_time_total, row.self_cpu_time_total, row.count = "a\nb\udc80", float("nan"), float("inf"), 3
        row.input_shapes, row.flops, row.stack, row.device_type = [[1]], None, ["\udfff"], "CPU"
        self.assertIn("a\\nb?", EventList([row]).table())
        event = FunctionEvent(1, "a", 0, 1.0, 5.0)
        self.assertIn("4.000us", EventList([event], with_flops=True).table())

    def test_rows_keep_their_shares(self):
        rows = self.events.key_averages()
        self.assertFalse(hasattr(rows[0], "self_cpu_percent"))
        rows.table(row_limit=4)
        self.assertEqual((rows[3].self_cpu_percent, rows[3].total_cpu_percent, rows[3].total_device_percent),
                         ("16.36%", "18.18%", "100.00%"))
        self.assertFalse(hasattr(rows[4], "self_cpu_percent"))
        self.assertEqual(self.events[0].self_cpu_percent, -1)
        EventList(self.events, use_device="cuda").table(row_limit=1)
        self.assertEqual((self.events[0].self_cpu_percent, self.events[1].self_cpu_percent), ("41.82%", -1))
        self.assertTrue(self.events._is_whole())
        rows = EventList([FunctionEvent(1, "a", 0, 1.0, 1.0, is_async=True)])
        rows.table()
        self.assertEqual((rows[0].self_cpu_percent, rows[0].total_cpu_percent), ("NaN", 0))

    def test_time_units(self):
        rows = self.events.key_averages()
        self.assertIn("1.000ms", rows.table(time_unit="nonsense"))
        self.assertIn("1000.000us", rows.table(time_unit="us"))
        self.assertIn("0.001s", rows.table(time_unit="s"))

    def test_header_and_top_level(self):
        rows = self.events.key_averages()
        table = rows.table(header="What it did", top_level_events_only=True).splitlines()
        self.assertEqual(table[1], "What it did")
        self.assertEqual(table[3], "This report only display top-level ops statistics")
        self.assertEqual(len([line for line in table if "%  " in line]) > 0, True)
        self.assertNotIn("aten::addmm", "\n".join(table))

    def test_losses_are_told(self):
        with mtprof.profile(activities=[mtprof.ProfilerActivity.CPU]) as prof:
            mtprof.begin("left open")
        self.assertIn("1 scopes truncated", prof.key_averages().table())
        self.assertNotIn("truncated", record(3).key_averages().table())


if __name__ == "__main__":
    unittest.main()
