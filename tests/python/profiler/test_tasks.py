# SPDX-License-Identifier: Apache-2.0
"""Scopes of asyncio tasks: tasks of a thread take turns, so their scopes do not nest there. Each task has a track."""
import asyncio
import collections
import json
import os
import tempfile
import unittest

import mtprof
from mtprof import record_function

TASKS, PARTS = 3, 2


async def job(number):
    with record_function(f"task {number}"):
        for part in range(PARTS):
            with record_function(f"part {part}"):
                await asyncio.sleep(0)  # all the others have their turn


async def jobs():
    await asyncio.gather(*[job(number) for number in range(TASKS)])


async def alone():
    with record_function("alone"):
        with record_function("inner"):
            await asyncio.sleep(0)


def record(coroutine):
    with mtprof.profile() as prof:
        asyncio.run(coroutine)
    return prof


class Tasks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def spans(self, prof):
        prof.export_chrome_trace(self.path("trace.json"))
        with open(self.path("trace.json"), encoding="utf-8") as file:
            return [e for e in json.load(file)["traceEvents"] if e.get("cat") == "user_annotation"]

    def test_each_task_has_a_track(self):
        tracks = collections.defaultdict(list)
        for span in self.spans(record(jobs())):
            self.assertIn(span["ph"], "be")
            tracks[span["id"]].append(span)
        self.assertEqual(len(tracks), TASKS)
        for spans in tracks.values():
            tasks = {span["args"]["task"] for span in spans if span["ph"] == "b"}
            self.assertEqual(len(tasks), 1)
            stack, seen = [], []
            for span in sorted(spans, key=lambda span: span["ts"]):  # they nest on their track
                if span["ph"] == "b":
                    stack.append(span["name"])
                    seen.append((len(stack), span["name"]))
                else:
                    self.assertEqual(stack.pop(), span["name"])
            self.assertEqual([depth for depth, _ in seen], [1] + [2] * PARTS)
            self.assertRegex(seen[0][1], "^task ")

    def test_a_single_task_stays_on_its_thread(self):
        spans = self.spans(record(alone()))
        self.assertEqual([span["ph"] for span in spans], ["X", "X"])
        self.assertEqual(len({span["args"]["task"] for span in spans}), 1)

    def test_without_a_loop_there_is_no_task(self):
        with mtprof.profile() as prof:
            with record_function("plain"):
                pass
        self.assertNotIn("task", self.spans(prof)[0]["args"])

    def test_what_the_program_says_of_a_task_wins(self):
        async def named():
            with record_function("named", task="mine"):
                pass
        self.assertEqual([span["args"]["task"] for span in self.spans(record(named()))], ["mine"])

    def test_shares_of_the_thread_s_time(self):
        prof = record(jobs())
        for row in prof.key_averages().table().splitlines():
            if row.strip().startswith(("task", "part")):
                share = float(row.split("%")[1].split()[-1])
                self.assertLessEqual(share, 100.0)
        prof.save(self.path("trace.mtt"))
        prof.export_chrome_trace(self.path("trace.json"))
        tables = [mtprof.load(self.path(name)).key_averages().table() for name in ("trace.mtt", "trace.json")]
        self.assertEqual(*tables)


if __name__ == "__main__":
    unittest.main()
