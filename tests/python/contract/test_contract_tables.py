# SPDX-License-Identifier: Apache-2.0
"""torch-contract 4: averages and tables of programs that mindtorch_v2 runs.

What other tests have is not repeated: torch's tables byte for byte (test_tables_python, from golden rows),
rows added up by hand (test_averages).
"""
import inspect
import re
import unittest

from support_contract import ContractTest, profiled, torch
from mindtorch_v2.autograd.profiler_util import EventList, FunctionEventAvg
from mindtorch_v2.profiler import DeviceType, ProfilerActivity, profile, record_function

CPU = [ProfilerActivity.CPU]
EVERYTHING = dict(record_shapes=True, profile_memory=True, with_stack=True, with_flops=True)


def layout(table):
    """Headers, widths of the columns, lines of the body, footers."""
    lines = table.split("\n")
    rules = [i for i, line in enumerate(lines) if line.startswith("---")]
    widths = [len(dashes) for dashes in lines[rules[0]].split()]
    headers = [h.strip() for h in re.split(r"\s{2,}", lines[rules[0] + 1].strip())]
    return headers, widths, lines[rules[1] + 1:rules[2]], lines[rules[2] + 1:]


class Groups(ContractTest):
    """torch-contract 4.1."""

    def test_4_1_1_signatures(self):
        self.assertEqual(list(inspect.signature(profile.key_averages).parameters),
                         ["self", "group_by_input_shape", "group_by_stack_n", "group_by_overload_name",
                          "include_python_functions"])
        self.assertEqual(list(inspect.signature(EventList.key_averages).parameters),
                         ["self", "group_by_input_shapes", "group_by_stack_n", "group_by_overload_name",
                          "include_python_functions"])
        rows = profiled().key_averages()
        self.assertIs(type(rows), EventList)
        self.assertTrue(all(type(row) is FunctionEventAvg for row in rows))

    def test_4_1_2_keys(self):
        with profile(activities=CPU) as prof:
            with record_function("aten::ones"):
                torch.ones(2)
                torch.ones(2)
        self.assertEqual([(r.key,
                           r.is_user_annotation) for r in prof.key_averages() if r.key == "aten::ones"],
                         [("aten::ones", True), ("aten::ones", False)])

    def test_4_1_3_order_and_sums(self):
        prof = profiled(3, **EVERYTHING)
        rows = prof.key_averages()
        first = list(dict.fromkeys(e.key for e in prof.events()))
        self.assertEqual([r.key for r in rows], first)
        for row in rows:
            events = [e for e in prof.events() if e.key == row.key]
            self.assertEqual(row.count, len(events))
            for name in ("cpu_time_total", "self_cpu_time_total", "cpu_memory_usage",
                         "self_cpu_memory_usage"):
                self.assertAlmostEqual(getattr(row, name), sum(getattr(e, name) for e in events), places=3)
            self.assertEqual(row.flops, sum(e.flops or 0 for e in events))
            self.assertEqual((row.stack, row.input_shapes, row.overload_name), ([], "", ""))

    def test_4_1_3_cut_stacks(self):
        prof = profiled(with_stack=True)
        for n in (1, 2, 5):
            rows = prof.key_averages(group_by_stack_n=n)
            self.assertLessEqual(max(len(r.stack) for r in rows), n)
            self.assertEqual(sum(r.count for r in rows), len(prof.events()))
            keys = [(r.key, r.is_user_annotation, tuple(r.stack)) for r in rows]
            self.assertEqual(len(keys), len(set(keys)))

    def test_shapes(self):
        rows = profiled(2, record_shapes=True).key_averages(group_by_input_shape=True)
        shapes = [str(r.input_shapes) for r in rows if r.key == "aten::linear"]
        self.assertEqual(shapes, ["[[3, 4], [8, 4], [8]]", "[[3, 8], [2, 8], [2]]"])
        self.assertEqual([r.count for r in rows if r.key == "aten::linear"], [2, 2])


class Rows(ContractTest):
    """torch-contract 4.2."""

    def test_4_2_1_new(self):
        row = FunctionEventAvg()
        expected = {"key": None, "count": 0, "node_id": 0, "is_async": False, "is_remote": False,
                    "use_device": None,
                    "cpu_time_total": 0, "device_time_total": 0, "self_cpu_time_total": 0,
                    "self_device_time_total": 0,
                    "input_shapes": None, "overload_name": None, "stack": None, "scope": None,
                    "cpu_memory_usage": 0,
                    "device_memory_usage": 0, "self_cpu_memory_usage": 0, "self_device_memory_usage": 0,
                    "cpu_children": None,
                    "cpu_parent": None, "device_type": DeviceType.CPU, "is_legacy": False, "flops": 0,
                    "is_user_annotation": False}
        self.assertEqual({name: getattr(row, name) for name in expected}, expected)
        self.assertEqual((row.cpu_time, row.device_time), (0.0, 0.0))

    def test_4_2_2_add(self):
        first, second = profiled().key_averages()[:2]
        with self.assertRaisesRegex(AssertionError,
                                    f"Expected keys to match, but got {second.key} vs {first.key}"):
            first.add(second)
        with self.assertRaises(AssertionError):
            first.add("row")
        total = FunctionEventAvg()
        for event in [e for e in profiled(2).events() if e.name == "aten::linear"]:
            total += event
        self.assertEqual((total.key, total.count), ("aten::linear", 4))

    def test_4_2_5_repr(self):
        row = next(r for r in profiled().key_averages() if r.key == "aten::linear")
        self.assertRegex(repr(row),
                         r"^<FunctionEventAvg key=aten::linear self_cpu_time=\S+ cpu_time=\S+  "
                         r"self_cuda_time=0\.000us "
                         r"cuda_time=0\.000us input_shapes= cpu_memory_usage=0 cuda_memory_usage=0>$")

    def test_4_2_6_total(self):
        events = profiled().events()
        total = events.total_average()
        self.assertEqual((total.key, total.count), ("Total", len(events)))
        self.assertAlmostEqual(total.self_cpu_time_total, events.self_cpu_time_total, places=3)
        empty = EventList([]).total_average()
        self.assertEqual((empty.key, empty.count, empty.cpu_time_total), ("Total", 0, 0))


class Tables(ContractTest):
    """torch-contract 4.3."""

    PLAIN = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls"]

    def test_signature(self):
        parameters = inspect.signature(EventList.table).parameters
        given = {p.name: p.default for p in list(parameters.values())[1:]}
        self.assertEqual((given.pop("flavor"), given.pop("width")), (None, None))  # ours
        self.assertEqual(given,
                         {"sort_by": None, "row_limit": 100, "max_src_column_width": 75,
                          "max_name_column_width": 55,
                          "max_shapes_column_width": 80, "header": None, "top_level_events_only": False,
                          "time_unit": None})

    def test_4_3_1_empty(self):
        self.assertEqual(EventList([]).table(), "")

    def test_4_3_3_columns(self):
        self.assertEqual(layout(profiled().key_averages().table())[0], self.PLAIN)
        prof = profiled(**EVERYTHING)
        headers = layout(prof.key_averages(group_by_input_shape=True, group_by_stack_n=3).table())[0]
        self.assertEqual(headers[:-1], [*self.PLAIN[:-1], "CPU Mem", "Self CPU Mem", "# of Calls",
                                        "Input Shapes", "Source Location"])
        self.assertRegex(headers[-1], "^Total [KMGTP]?FLOPs$")

    def test_4_3_4_and_4_3_5_lines(self):
        rows = profiled().key_averages()
        lines = rows.table().split("\n")
        self.assertEqual(lines[-1], "")
        longest = max(len(r.key) for r in rows)
        _, widths, body, footers = layout(rows.table())
        self.assertEqual(widths, [min(longest + 4, 55)] + [12] * 6)
        for line in lines[:3] + body:
            self.assertTrue(line.endswith("  "))
            self.assertEqual(len(line), sum(widths) + 2 * len(widths))
        self.assertEqual(len(body), len(rows))
        self.assertEqual(len(footers), 2)
        self.assertRegex(footers[0], r"^Self CPU time total: [\d.]+(us|ms|s)$")

    def test_4_3_5_headers(self):
        rows = profiled().key_averages()
        lines = rows.table(header="MINE", top_level_events_only=True).split("\n")
        width = len(next(line for line in lines if line.startswith("---"))) - 2
        self.assertEqual(lines[:4], ["=" * width, "MINE", "=" * width,
                                     "This report only display top-level ops statistics"])

    def test_4_3_6_footer_sums_all_rows(self):
        rows = profiled().key_averages()
        self.assertEqual(layout(rows.table(row_limit=1))[3], layout(rows.table())[3])
        total = rows.self_cpu_time_total
        shown = layout(rows.table(time_unit="us"))[3][0].split(": ")[1]
        self.assertEqual(shown, f"{total:.3f}us")

    def test_4_3_2_sorting(self):
        rows = profiled(2, profile_memory=True).key_averages()
        for key in ("self_cpu_time_total", "cpu_time_total", "cpu_time", "count", "cpu_memory_usage",
                    "self_cpu_memory_usage",
                    "cpu_time_avg", "self_cpu_time"):
            attribute = {"cpu_time_avg": "cpu_time", "self_cpu_time": "self_cpu_time_total"}.get(key, key)
            shown = [line.strip().split("  ")[0] for line in layout(rows.table(sort_by=key,
                                                                               max_name_column_width=200))[2]]
            expected = [r.key for r in sorted(rows, key=lambda r: getattr(r, attribute), reverse=True)]
            self.assertEqual(shown, expected, key)
        for key in ("cuda_time_total", "self_cuda_time_total", "self_xpu_time_total",
                    "privateuse1_time_total", "npu_time_total",
                    "self_npu_time_total", "self_cuda_memory_usage", "npu_memory_usage"):
            self.assertTrue(rows.table(sort_by=key), key)
        with self.assertRaisesRegex(AttributeError, "'FunctionEventAvg' object has no attribute 'foo'"):
            rows.table(sort_by="foo")

    def test_4_3_8_units(self):
        rows = profiled().key_averages()
        for unit in ("s", "ms", "us"):
            for line in layout(rows.table(time_unit=unit))[2]:
                self.assertRegex(line.split()[-3], rf"^[\d.]+(?<![a-z]){unit}$")
        self.assertEqual(rows.table(time_unit="fortnights"), rows.table())

    def test_4_3_10_and_11_limits(self):
        rows = profiled().key_averages()
        self.assertEqual(len(layout(rows.table(row_limit=2))[2]), 2)
        self.assertEqual(len(layout(rows.table(row_limit=0))[2]), 0)
        for everything in (-1, None):
            self.assertEqual(len(layout(rows.table(row_limit=everything))[2]), len(rows))
        cut = layout(rows.table(max_name_column_width=20))
        self.assertEqual(cut[1][0], 20)
        long = [line[:20].strip() for line, row in zip(cut[2], rows) if len(row.key) >= 17]
        self.assertTrue(long)
        self.assertTrue(all(name.endswith("...") and len(name) == 20 for name in long))
        self.assertEqual(layout(rows.table(max_name_column_width=None))[1][0],
                         max(len(r.key) for r in rows) + 4)

    def test_4_3_12_top_level(self):
        prof = profiled()
        shown = layout(prof.key_averages().table(top_level_events_only=True, max_name_column_width=None))[2]
        names = [line.strip().split("  ")[0] for line in shown]
        tops = [r.key for r in prof.key_averages() if r.cpu_parent is None]
        self.assertEqual(names, tops)
        self.assertNotIn("aten::addmm", names)

    def test_4_3_13_sources(self):
        prof = profiled(with_stack=True)
        table = prof.key_averages(group_by_stack_n=2).table(max_src_column_width=40)
        headers, widths, body, _ = layout(table)
        self.assertEqual((headers[-1], widths[-1]), ("Source Location", 40))
        self.assertTrue(any("..." in line for line in body))
        self.assertTrue(any(not line.strip() for line in body))  # a blank line after each row

    def test_4_3_14_flops_and_sources(self):
        """torch swaps the two columns' cells; here a cell is below its header."""
        x = torch.ones(4, 4)
        with profile(activities=CPU, with_flops=True, with_stack=True) as prof:
            x + x
        lines = prof.key_averages(group_by_stack_n=1).table().split("\n")
        header = lines[1]
        row = lines[3]
        at = header.index("Total FLOPs")
        self.assertEqual(row[at - 2:at + 12].strip(), "16.000")
        self.assertIn("test_4_3_14", row)

    def test_4_3_15_raw_table(self):
        """torch raises TypeError where flops are None."""
        with profile(activities=CPU, with_flops=True, profile_memory=True) as prof:
            torch.ones(4) + 1
        self.assertIn("[memory]", prof.events().table())
        self.assertIn("aten::add", str(prof.events()))

    def test_4_3_9_memory(self):
        with profile(activities=CPU, profile_memory=True) as prof:
            x = [torch.ones(100), torch.zeros(1024), torch.full((1 << 20,), 1.0)]
        table = prof.key_averages().table()
        for text in ("400 B", "4.00 KB", "4.00 MB"):
            self.assertIn(text, table)
        del x

    def test_the_table_is_torchs_but_for_numbers(self):
        """The example of torch-contract 4.3."""
        with profile(activities=CPU) as prof:
            torch.ones(2) + 1
            torch.ones(2) + 1
        rows = EventList([r for r in prof.key_averages() if r.key == "aten::add"])
        rule = "-" * 13 + ("  " + "-" * 12) * 6 + "  "
        lines = rows.table(row_limit=1).split("\n")
        self.assertEqual([lines[0], lines[2], lines[4]], [rule] * 3)
        self.assertEqual(lines[1],
                         "         Name    Self CPU %      Self CPU   CPU total %     CPU total  "
                         "CPU time avg    # of Calls  ")
        self.assertRegex(lines[3],
                         r"^    aten::add       100\.00%  +[\d.]+us       100\.00%  +[\d.]+us  "
                         r"+[\d.]+us             2  $")


if __name__ == "__main__":
    unittest.main()
