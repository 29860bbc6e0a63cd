# SPDX-License-Identifier: Apache-2.0
"""What notebooks show: pieces of HTML with the numbers of the tables, and without anything that a name could run."""
import html.parser
import re
import unittest

from support_results import ResultsTest

import mtprof
from mtprof.event_lists import EventList

NASTY = ("</td></table><script>stolen()</script>", "<img src=x onerror=stolen()>", "a\"b'c&d", "x" * 400)
INERT = {"div", "span", "b", "br", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "svg", "path", "title"}


class Tags(html.parser.HTMLParser):
    """The elements of a piece, their attributes, its text, and whether every element is closed."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.open, self.text = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text.append(data)


class Notebook(ResultsTest):
    def program(self, names=("forward", "backward"), steps=6):
        prof = mtprof.profile()
        prof.start()
        for _ in range(steps):
            for name in names:
                with mtprof.record_function(name):
                    sum(range(3000))
            prof.step()
        prof.stop()
        return prof

    def checked(self, text):
        tags = Tags(text)
        self.assertEqual(tags.open, [])
        self.assertLessEqual(set(tags.tags), INERT)
        self.assertLessEqual({name for name, _ in tags.attributes},
                             {"style", "title", "viewbox", "preserveaspectratio", "role", "aria-label", "d", "fill"})
        for name, value in tags.attributes:
            self.assertNotIn("url(", value, name)
        return tags

    def test_averages_and_events(self):
        prof = self.program()
        rows = prof.key_averages()
        tags = self.checked(rows._repr_html_())
        self.assertEqual(tags.tags.count("tr"), 1 + len(rows))
        for row in rows:
            self.assertIn(row.key, tags.text)
            self.assertIn(str(row.count), tags.text)
        events = prof.events()
        shown = self.checked(events._repr_html_())
        self.assertEqual(shown.tags.count("tr"), 1 + min(len(events), 20))
        part = EventList(events[:3])
        self.assertEqual(self.checked(part._repr_html_()).tags.count("tr"), 4)
        many = mtprof.profile()
        with many:
            for i in range(50):
                with mtprof.record_function(f"scope {i}"):
                    pass
        text = many.key_averages()._repr_html_()
        self.assertEqual(self.checked(text).tags.count("tr"), 21)
        self.assertIn("30 more rows", text)
        self.assertIn("No events", EventList()._repr_html_())
        self.assertIsNone(EventList(["something else"])._repr_html_())

    def test_a_profile_shows_where_the_time_went(self):
        prof = self.program(steps=300)
        tags = self.checked(prof._repr_html_())
        self.assertIn("svg", tags.tags)
        self.assertRegex("".join(tags.text), "a bar is the longest of 3")
        for value in (value for name, value in tags.attributes if name == "d"):
            for x, y, wide, high in re.findall(r"M(\d+) (\d+)h(\d+)v-(\d+)h-\d+z", value):
                self.assertTrue(int(x) + int(wide) <= 6000 and int(y) <= 1000 and int(y) - int(high) >= -1)
        self.assertIsNone(mtprof.profile()._repr_html_())
        prof.save(self.path("t.mtt"))
        self.checked(mtprof.load(self.path("t.mtt"))._repr_html_())
        with mtprof.profile() as empty:
            pass
        self.checked(empty._repr_html_())

    def test_names_are_inert(self):
        prof = self.program(NASTY)
        for piece in (prof._repr_html_(), prof.key_averages()._repr_html_(), prof.events()._repr_html_(),
                      prof.explain()._repr_html_()):
            self.checked(piece)
            self.assertNotIn("<script", piece)
        frame = Tags(prof.report()._repr_html_())
        self.assertEqual(frame.tags, ["iframe"])
        values = dict(frame.attributes)
        self.assertEqual(values["sandbox"], "allow-scripts")
        self.assertEqual(set(values), {"title", "sandbox", "srcdoc", "style"})

    def test_the_report(self):
        prof = self.program()
        report = prof.report(baseline=prof)
        path = self.path("page.html")
        report.save(path)
        with open(path, encoding="utf-8", newline="") as file:
            self.assertEqual(file.read(), str(report))
        self.assertTrue(str(report).startswith("<!DOCTYPE html>"))
        self.assertIn('"baseline": {', str(report))
        self.assertEqual(dict(Tags(report._repr_html_()).attributes)["srcdoc"], str(report))
        self.assertLess(len(repr(report)), 100)
        with self.assertRaises(TypeError):
            prof.report(baseline=3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
