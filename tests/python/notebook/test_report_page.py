# SPDX-License-Identifier: Apache-2.0
"""The report as a page: its numbers are those of the library, and nothing that a trace holds is markup or script."""
import html.parser
import json
import os
import re
import unittest

from support_results import ResultsTest

import mtprof

NASTY = ("</script><script>stolen()</script>", "<img src=x onerror=stolen()>", "a\"b'c&d\\e\u2028\u0000", "<!--", "]]>",
         "${stolen()}", "`;stolen();`", "\ud7ff\U0001f600" * 200)


class Tags(html.parser.HTMLParser):
    """The elements of a page, and its scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts, self.attributes, self._inside = [], [], set(), None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self._inside = tag

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts.append(data)


class Page(ResultsTest):
    def page(self, results, **options):
        path = self.path("t.report.html")
        results.export_report(path, **options)
        with open(path, encoding="utf-8") as file:
            return file.read()

    def data(self, text):
        found = re.search(r"^const DATA = (\{.*?\"schema\": 1\});$", text, re.MULTILINE | re.DOTALL)
        return json.loads(found.group(1))

    def program(self, names=("forward", "backward")):
        prof = mtprof.profile(profile_memory=True)
        prof.start()
        for _ in range(6):
            for name in names:
                with mtprof.record_function(name):
                    with mtprof.record_function("inside"):
                        pass
            prof.step()
        prof.stop()
        return prof

    def test_numbers(self):
        prof = self.program()
        data = self.data(self.page(prof))
        self.assertEqual(sum(part[1] for part in data["parts"]), data["wall"])
        for step in data["steps"]:
            self.assertEqual(sum(step[4:]), step[2])
        self.assertEqual(data["wall"], sum(step[2] for step in data["steps"]))
        rows = {row.key: row for row in prof.key_averages()}
        self.assertEqual({row[0] for row in data["rows"]}, set(rows))
        for name, _, _, _, count, self_ns, ns, *_ in data["rows"]:
            self.assertEqual(count, rows[name].count)
            self.assertAlmostEqual(self_ns / 1000, rows[name].self_cpu_time_total, places=3)
            self.assertAlmostEqual(ns / 1000, rows[name].cpu_time_total, places=3)
        names = data["flame_names"]
        nodes = [data["flame_nodes"][i:i + 6] for i in range(0, len(data["flame_nodes"]), 6)]
        self.assertEqual(nodes[0][3], data["self_cpu"])
        self.assertEqual(sum(node[2] for node in nodes if names[node[1]] == "inside"), rows["inside"].count)

    def test_timelines_are_of_steps(self):
        data = self.data(self.page(self.program()))
        of = {step[0]: step for step in data["steps"]}
        self.assertTrue(data["timelines"])
        for timeline in data["timelines"]:
            self.assertEqual(timeline["span"], of[timeline["step"]][2])
            events = timeline["events"]
            self.assertEqual(len(events), 6 * timeline["kept"])
            self.assertIn("forward", {data["names"][events[i]] for i in range(3, len(events), 6)})
            for i in range(0, len(events), 6):
                self.assertTrue(0 <= events[i + 1] <= timeline["span"])

    def test_without_steps_and_without_events(self):
        with mtprof.profile() as prof:
            with mtprof.record_function("once"):
                pass
        data = self.data(self.page(prof))
        self.assertEqual([step[0] for step in data["steps"]], [-1])
        self.assertEqual(data["memory"], [])
        with mtprof.profile() as prof:
            pass
        self.assertEqual(self.data(self.page(prof))["rows"], [])

    def test_of_an_imported_trace(self):
        data = self.data(self.page(self.load()))
        self.assertTrue(data["rows"])
        self.assertTrue(data["memory"])
        # Ops and annotations have the time of the work below them, which counts once.
        self.assertEqual(data["self_device"], sum(row[7] for row in data["rows"] if row[3] == 1))
        for timeline in data["timelines"]:
            self.assertLessEqual(timeline["kept"] + timeline["apart"], data["events"])

    def test_names_are_inert(self):
        plain = Tags(self.page(self.program()))
        text = self.page(self.program(NASTY))
        nasty = Tags(text)
        self.assertEqual(nasty.tags, plain.tags)
        self.assertEqual(nasty.attributes, plain.attributes)
        self.assertEqual(nasty.tags.count("script"), 1)
        self.assertNotIn("<", "".join(nasty.scripts).split("\n(() => {")[0])
        names = {row[0] for row in self.data(text)["rows"]}
        self.assertTrue(set(NASTY[:2]) <= names)
        self.assertTrue(any(name.endswith("…") for name in names))
        self.assertIn("default-src 'none'", text)

    def test_the_page_is_small(self):
        with mtprof.profile() as prof:
            for i in range(20000):
                with mtprof.record_function(f"scope number {i}"):
                    pass
        page = self.page(prof)
        self.assertLess(len(page), 3 << 20)
        data = self.data(page)
        self.assertEqual((data["rows_seen"], len(data["rows"])), (20000, 600))
        self.assertGreaterEqual(data["left_out"], 19400)
        self.assertLessEqual(max(t["kept"] for t in data["timelines"]), 5000)
        self.assertLessEqual(len(data["flame_nodes"]), 6 * 6001)

    def test_the_page_is_small_whatever_the_names_are(self):
        """Names that escapes make six times as long, each once."""
        with mtprof.profile(with_stack=True) as prof:
            for i in range(20000):
                with mtprof.record_function(f"{i}" + 300 * "<"):
                    pass
        page = self.page(prof)
        self.assertLess(len(page), 3 << 20)
        data = self.data(page)
        self.assertEqual(len(data["rows"][0][0]), 241)
        self.assertLess(len(data["names"][-1]), 42)
        self.assertGreaterEqual(data["left_out"], 25000)

    def test_a_baseline(self):
        before, now = self.program(("forward", "old", NASTY[0])), self.program(("forward", "fresh", NASTY[1]))
        self.assertIsNone(self.data(self.page(now))["baseline"])
        before.save(self.path("before.mtt"))
        for baseline, name in ((before, "the baseline"), (mtprof.load(self.path("before.mtt")), "before.mtt"),
                               (self.path("before.mtt"), "before.mtt")):
            text = self.page(now, baseline=baseline)
            data = self.data(text)["baseline"]
            self.assertEqual(data["name"], name)
            rows = {row[0]: row for row in data["rows"]}
            self.assertEqual(len(rows), data["rows_seen"])
            self.assertEqual([rows[key][3] for key in ("old", "fresh", NASTY[0], NASTY[1])],
                             ["gone", "new", "gone", "new"])
            self.assertIn(rows["forward"][3], ("same", "slower", "faster"))
            self.assertEqual(sum(data["counts"].values()), len(rows))
            self.assertLessEqual(data["steps"][0], data["steps_a"])
            self.assertEqual(sum(data["parts"]), data["wall"])
            self.assertEqual(Tags(text).tags, Tags(self.page(now)).tags)
        same = self.data(self.page(now, baseline=now))["baseline"]
        self.assertEqual({row[3] for row in same["rows"]}, {"same"})
        self.assertEqual((same["new"], same["gone"]), ([], []))
        with self.assertRaises(TypeError):
            now.export_report(self.path("x.html"), baseline=7)
        with self.assertRaises(OSError):
            now.export_report(self.path("x.html"), baseline=self.path("none.mtt"))

    def test_a_path_that_cannot_be_written(self):
        with self.assertRaises(OSError):
            self.program().export_report(self.path("no/such/x.html"))
        self.assertFalse(os.path.exists(self.path("no")))


if __name__ == "__main__":
    unittest.main(verbosity=2)
