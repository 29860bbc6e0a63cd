"""compare_readers.py MAKE_TRACE MTT_DUMP_C: both readers see the same in what the recorder writes.

Records traces in every form (tests/support/programs/make_trace.c), dumps each with
the library's reader (mtt_dump_c) and with the
one that was written from docs/format.md alone (mtt_dump.py), and compares byte for byte. Then it bends bytes of the
traces and compares again: of a closed file both must return the same records and say that something is wrong; at which
offset they notice is their own business.
"""
import bisect
import io
import os
import random
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mtt_dump
import mtt_reader

MAKE, DUMP = sys.argv[1:3]
FORMS = ("memory", "file", "ring", "ringfile", "crash")
TURNS = {"ring": 2500, "ringfile": 2500}
# What every trace must hold for the comparison to mean something; nothing writes LOST of threads yet.
THREAD_KINDS = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x0A, 0x0C, 0x0E, 0x11, 0x12, 0x13, 0x14, 0x80, 0x81,
                0x82, 0x83, 0x84}
ONCE_KINDS = {0x09, 0x0B, 0x0F, 0x10}
OTHER_KINDS = {0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x30, 0x31, 0x0D, 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46,
               0x47}


def by_c(path):
    """(exit status, dump) of the library's reader."""
    run = subprocess.run([DUMP, path], capture_output=True, text=True)
    if run.stderr:
        raise AssertionError(f"mtt_dump_c: {run.stderr}")
    return run.returncode, run.stdout


def by_python(path):
    out = io.StringIO()
    return mtt_dump.dump(path, out.write), out.getvalue()


def first_difference(a, b):
    a, b = a.splitlines(), b.splitlines()
    for line, (x, y) in enumerate(zip(a, b)):
        if x != y:
            return f"line {line + 1}:\n  C      {x[:200]}\n  Python {y[:200]}"
    return f"the C dump has {len(a)} lines, Python's {len(b)}; the next is {(a + b)[min(len(a), len(b)):][:1]}"


def records(dump):
    return [line for line in dump.splitlines() if line.startswith("r")]


class CompareReaders(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.paths = {}
        for form in FORMS:
            path = cls.paths[form] = os.path.join(cls.folder.name, f"{form}.mtt")
            run = subprocess.run([MAKE, form, path, str(TURNS.get(form, 300))], capture_output=True, text=True)
            if run.returncode != (-9 if form == "crash" else 0):
                raise AssertionError(f"make_trace {form}: {run.returncode} {run.stderr}")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def compare(self, path, what):
        c, python = by_c(path), by_python(path)
        if c != python:
            self.fail(f"{what}: exit {c[0]} and {python[0]}, {first_difference(c[1], python[1])}")
        return c

    def compare_damaged(self, path, whole, trace):
        (c_status, c_dump), (python_status, python_dump) = by_c(path), by_python(path)
        self.assertEqual(c_status, python_status)
        c, python = records(c_dump), records(python_dump)
        if trace.closed:
            if c != python:
                self.fail(first_difference("\n".join(c), "\n".join(python)))
            if c != whole:
                self.assertTrue("problem" in c_dump, "the C reader says nothing of the damage")
                self.assertTrue("problem" in python_dump, "the Python reader says nothing of the damage")
        else:  # a changed value may be just another value; how much of a chunk is lost with a bad one may differ
            self.check_left_out(trace, set(c) - set(python), python_dump, "Python")
            self.check_left_out(trace, set(python) - set(c), c_dump, "C")

    def check_left_out(self, trace, lines, dump, reader):
        """What a reader leaves out lies in a chunk about which it complains."""
        starts = [chunk.offset for chunk in trace.chunks]
        problems = [int(line.split()[1]) for line in dump.splitlines() if line.startswith("problem")]
        complained = {bisect.bisect_right(starts, offset) for offset in problems}
        for line in lines:
            if bisect.bisect_right(starts, int(line.split()[3])) not in complained:
                self.fail(f"the {reader} reader leaves out without a word: {line[:200]}")

    def test_every_form_reads_alike_and_without_a_problem(self):
        for form in FORMS:
            with self.subTest(form):
                status, text = self.compare(self.paths[form], form)
                self.assertEqual(status, 0)
                self.assertEqual([line for line in text.splitlines() if line.startswith("problem")], [])
                self.assertGreater(len(text.splitlines()), 1000)

    def test_the_traces_hold_every_kind_of_record(self):
        for form in FORMS:
            with self.subTest(form):
                trace = mtt_reader.Trace(self.paths[form])
                kinds = {r.kind for s in trace.streams() for r in trace.records(s)}
                wanted = THREAD_KINDS | OTHER_KINDS
                wanted |= ONCE_KINDS if not form.startswith("ring") else {0x09}
                self.assertEqual(sorted(hex(k) for k in wanted - kinds), [])

    def test_rings_have_gaps_and_only_where_they_may(self):
        for form in ("ring", "ringfile"):
            trace = mtt_reader.Trace(self.paths[form])
            self.assertTrue(any(r.gap for s in trace.streams() for r in trace.records(s)))
            self.assertGreater(trace.health[17], 0)

    def test_spans_are_whole(self):
        for form in ("memory", "file"):
            trace = mtt_reader.Trace(self.paths[form])
            spans = list(mtt_reader.mtt_spans(trace))
            self.assertEqual(trace.ignored_ends, 0)
            self.assertEqual(sum(s.truncated for s in spans), trace.health[21])
            self.assertEqual(len(spans) + sum(r.kind == mtt_reader.LAUNCH for s in trace.streams()
                                              for r in trace.records(s)), trace.health[22])

    def test_closed_files_are_complete(self):
        for form in FORMS:
            trace = mtt_reader.Trace(self.paths[form])
            self.assertEqual(trace.closed, form != "crash")
            if trace.closed:
                self.assertEqual(trace.file_bytes, os.path.getsize(self.paths[form]))
                self.assertEqual({c.state for c in trace.chunks}, {2})

    def test_damage_reads_alike(self):
        seed = int(os.environ.get("MT_SEED", "20"), 0)
        rng = random.Random(seed)
        rounds = 200 if os.environ.get("MT_LONG") else 12
        for form in ("memory", "crash"):
            with open(self.paths[form], "rb") as file:
                data = file.read()
            trace, whole = mtt_reader.Trace(data), records(by_python(self.paths[form])[1])
            for turn in range(rounds):
                bent = bytearray(data)
                chunk = rng.choice(trace.chunks)
                place = rng.choice(("header", "records", "anywhere", "cut"))
                if place == "header":
                    at = chunk.offset + rng.randrange(64)
                elif place == "records":
                    at = chunk.offset + 64 + rng.randrange(max(chunk.readable, 1))
                else:
                    at = rng.randrange(4096 if place == "cut" else 0, len(data))
                if place == "cut":
                    del bent[at:]
                else:
                    bent[at] ^= 1 << rng.randrange(8)
                path = os.path.join(self.folder.name, "bent.mtt")
                with open(path, "wb") as file:
                    file.write(bent)
                with self.subTest(form=form, turn=turn, place=place, at=at, seed=seed):
                    self.compare_damaged(path, whole, trace)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
