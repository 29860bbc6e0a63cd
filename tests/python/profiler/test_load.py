# SPDX-License-Identifier: Apache-2.0
"""mtprof.load: results of files, ours and other tools', good and bad."""
import gzip
import json
import os
import unittest
import warnings

from support_results import ResultsTest, record, small_trace

import mtprof
from mtprof import _mtprof


class Load(ResultsTest):
    def test_chrome_json(self):
        trace = self.load()
        self.assertEqual((trace.record_shapes, trace.with_stack, trace.profile_memory, trace.with_flops),
                         (True, True, True, True))
        self.assertEqual((trace.use_device, trace.info["pid"], trace.info["foreign"]), ("cuda", 70, True))
        self.assertEqual(trace.metadata()['user "key"'], "value")
        self.assertEqual(trace.get_trace_id(), "ABC")
        self.assertIs(trace.function_events, trace.events())
        self.assertIs(trace.profiler, trace)
        self.assertIn("small.json", repr(trace))
        self.assertTrue(trace.health().ok)

    def test_host(self):
        """What mtprof.torch wrote into the trace is part of its health; anything else there is not."""
        host = {"name": "torch", "version": "2.13.0", "tier": "names", "missing": "inputs"}
        for given, wanted in ((host, host), ({**host, "tier": 7}, None), ("text", None), (None, None)):
            trace = {**small_trace(), "mtprof_host": json.dumps(given)}
            self.assertEqual(self.load(trace).health().host, wanted)
        trace = self.load({**small_trace(), "mtprof_host": json.dumps(host)})
        self.assertIn("; torch 2.13.0, tier names (inputs)", str(trace.health()))
        self.assertIsNone(self.load().health().host)

    def test_typed_metadata(self):
        trace = small_trace()
        kernel = next(event for event in trace["traceEvents"] if event["name"] == "gemm")
        kernel["args"].update({"registers per thread": 32, "grid": [64, 2, 1], "block": "what?", "blocks per SM": 0.5,
                               "Collective name": "allreduce", "Group size": 8, "unknown": 1})
        told = {event.name: event.metadata for event in self.load(trace).events()}
        known = {key: value for key, value in told.pop("gemm")._asdict().items() if value is not None}
        self.assertEqual(known, {"registers_per_thread": 32, "grid": [64, 2, 1], "block": [], "blocks_per_sm": 0.5,
                                 "collective_name": "allreduce", "group_size": 8, "stream": 7, "context": 1})
        self.assertEqual(set(told.values()), {None})

    def test_gzip_and_paths(self):
        import pathlib
        path = pathlib.Path(self.path("small.json.gz"))
        path.write_bytes(gzip.compress(json.dumps(small_trace()).encode()))
        for given in (path, str(path), os.fsencode(path)):
            self.assertEqual(len(mtprof.load(given).events()), 9)

    def test_our_own_files(self):
        path = self.path("own.mtt")
        prof = record(25, path=path)
        trace = mtprof.load(path)
        self.assertEqual([event.name for event in trace.events()], [event.name for event in prof.events()])
        self.assertEqual([event.id for event in trace.events()], [event.id for event in prof.events()])
        self.assertEqual(trace.key_averages().table(), prof.key_averages().table())
        self.assertEqual(trace.health().begins, 100)
        self.assertFalse(trace.info["foreign"])
        self.assertNotEqual(trace.info["uuid"], "0" * 32)

    def test_a_saved_profile(self):
        prof = record(5)
        if not hasattr(prof, "save"):
            self.skipTest("profile.save is not there")
        prof.save(self.path("saved.mtt"))
        self.assertEqual(len(mtprof.load(self.path("saved.mtt")).events()), 20)

    def test_the_file_may_go(self):
        path = self.write_trace()
        trace = mtprof.load(path)
        os.unlink(path)
        self.assertEqual(len(trace.events()), 9)

    def test_bad_files(self):
        with self.assertRaises(FileNotFoundError) as caught:
            mtprof.load(self.path("nothing"))
        self.assertEqual(caught.exception.filename, self.path("nothing"))
        with self.assertRaises(OSError):
            mtprof.load(self.folder)
        for number, content in enumerate((b"", b"MTTRACE\n", b"hello", b"[", b'{"traceEvents": 3}',
                                          b"\x1f\x8b\x00",
                                          b'{"traceEvents": [{"ph": "X"', bytes(range(256)) * 40)):
            path = self.path(f"bad{number}")
            with open(path, "wb") as file:
                file.write(content)
            with self.subTest(content=content[:20]):
                try:
                    trace = mtprof.load(path)
                except (ValueError, OSError):
                    continue
                self.assertEqual(len(trace.events()), 0)
        for bad in (None, 3, "a\0b"):
            with self.assertRaises((TypeError, ValueError)):
                mtprof.load(bad)

    def test_progress(self):
        seen = []
        path = self.path("large.json")
        trace = small_trace()
        trace["traceEvents"] *= 500
        self.write_trace(trace, "large.json")
        mtprof.load(path, progress=lambda what, done, total: seen.append((what, done, total))).events()
        self.assertEqual(seen[0][0], "reading")
        self.assertEqual(seen[0][2], os.path.getsize(path))

        def fail(what, done, total):
            raise KeyError("enough")

        with self.assertRaisesRegex(KeyError, "enough"):
            mtprof.load(path, progress=fail).events()

    def check_damaged(self, path, most):
        with self.assertWarnsRegex(UserWarning, "damaged in 1 place, .* at byte [1-9]"):
            trace = mtprof.load(path)
        health = trace.health()
        self.assertFalse(health.ok)
        self.assertEqual((health.problems, health.findings["problems"]), (1, 1))
        self.assertGreater(health.problem_offset, 0)
        self.assertIn("damaged in 1 place", str(health))
        self.assertIn("1 damaged place", trace.key_averages().table())
        self.assertTrue(0 < len(trace.events()) < most, len(trace.events()))
        return trace

    def test_a_cut_file(self):
        path = self.path("cut.mtt")
        record(2000, path=path)
        with open(path, "r+b") as file:
            file.truncate(os.path.getsize(path) // 2)
        with self.assertWarns(UserWarning):
            trace = mtprof.load(path)
        self.assertLess(len(trace.events()), 8000)
        self.assertFalse(trace.health().ok)

    def test_a_hole(self):
        # One chunk's checksum does not hold: what was open before it ends there, marked, and what follows is no child.
        path = self.path("hole.mtt")
        with mtprof.profile(path=path):
            with mtprof.record_function("outer"):
                for _ in range(40000):
                    with mtprof.record_function("inner"):
                        pass
        with open(path, "r+b") as file:
            data = file.read()
            chunks = [at for at in range(4096, len(data), 4096) if data[at:at + 4] == b"MTCK" and data[at + 8] == 3]
            self.assertGreater(len(chunks), 3)
            file.seek(chunks[-2] + 1000)
            file.write(b"\xff\xff\xff\xff")
        trace = self.check_damaged(path, 40001)
        self.assertEqual(trace.health().findings["problem_bytes"], trace.health().problem_bytes)
        self.assertGreater(trace.health().problem_bytes, 1000)
        events = trace.events()
        outer = next(event for event in events if event.name == "outer")
        inside = [event for event in events if event.name == "inner" and event.cpu_parent is outer]
        later = [event for event in events if event.name == "inner" and event.cpu_parent is None]
        self.assertEqual(len(inside) + len(later) + 1, len(events))
        self.assertTrue(inside and later)
        self.assertLessEqual(max(event.time_range.end for event in inside), outer.time_range.end)
        self.assertLess(outer.time_range.end, min(event.time_range.start for event in later))
        self.assertGreater(trace.health().findings["truncated_in_gaps"], 0)
        self.assertGreater(trace.health().findings["ends_without_begin"], 0)

    def test_cut_json(self):
        text = json.dumps(small_trace()).encode()
        for name, data in (("cut.json", text[:-200]), ("cut.json.gz", gzip.compress(text[:-200])),
                           ("half.json.gz", gzip.compress(text)[:-300]), ("tail.json.gz", gzip.compress(text)[:-8])):
            with self.subTest(name):
                path = self.path(name)
                with open(path, "wb") as file:
                    file.write(data)
                self.check_damaged(path, 10)

    def test_whole_files_do_not_warn(self):
        path = self.path("own.mtt")
        record(25, path=path)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertTrue(mtprof.load(path).health().ok)
            self.assertIsNone(mtprof.load(path).health().problem_offset)
            self.load()


class Health(ResultsTest):
    def test_nothing_lost(self):
        health = record(10).health()
        self.assertEqual((health.events, health.begins, health.lost, health.lost_by, health.truncated),
                         (40, 40, 0, {}, 0))
        self.assertTrue(health.ok)
        self.assertIn("40 events, none lost", str(health))
        self.assertIn(str(health), repr(health))
        self.assertGreater(health.pair_cost_ns, 0)

    def test_a_scope_cut_off(self):
        with mtprof.profile(activities=[mtprof.ProfilerActivity.CPU]) as prof:
            mtprof.begin("open")
        health = prof.health()
        self.assertEqual(health.truncated, 1)
        self.assertFalse(health.ok)

    def test_every_counter_is_there(self):
        model = _mtprof.Model.open(self.write_trace())
        for name, value in model.health().items():
            self.assertIsNotNone(value, name)
        self.assertEqual(model.findings()["events"], 9)


if __name__ == "__main__":
    unittest.main()
