"""Tests of mtt_reader on traces built by hand from docs/format.md: python3 tests/format/test_mtt_reader.py"""
import os
import struct
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import mtt_dump
import mtt_reader as m
from mtt_reader import crc32c

UUID = bytes(range(16))
NS = 1 << 56  # tick_period of one nanosecond
ALL_ONES = (1 << 64) - 1
DEFS, CTRL, EVENTS, SRC = 1, 2, 3, 4


def rec(kind, *words, aux=0, arg=0, extended=False):
    """A record as words; body words may be negative."""
    words = [w & ALL_ONES for w in words]
    if kind & 0x80:
        return [kind | aux << 16 | arg << 32]
    if extended:
        return [kind | 255 << 8 | aux << 16 | arg << 32, 2 + len(words), *words]
    return [kind | (1 + len(words)) << 8 | aux << 16 | arg << 32, *words]


def end(d, ticks):
    return [0x80 | d << 8 | (ticks & (1 << 40) - 1) << 24]


def text(data):
    data = data.encode() if isinstance(data, str) else data
    data += bytes(-len(data) % 8)
    return list(struct.unpack(f"<{len(data) // 8}Q", data))


def string(ident, name):
    return rec(0x20, len(name), *text(name), arg=ident)


def window(epoch, opened, closed=None, action=0):
    words = rec(0x41, opened, 0xFF, 1 | 7 << 32, arg=epoch)
    return words if closed is None else words + rec(0x42, closed, arg=epoch, aux=action)


class Builder:
    """Puts a file together chunk by chunk."""

    def __init__(self, policy=0, period=NS, start=(0, 0, 0), minor=0, features=0, major=1):
        self.head = bytearray(4096)
        struct.pack_into("<8sHHIQ16sQQQQQIIQQI", self.head, 0, b"MTTRACE\n", major, minor, 4096, features, UUID, 77,
                         period, *start, 0, policy, 0, 0, 256)
        struct.pack_into("<I", self.head, 108, crc32c(self.head[:108]))
        self.pages = bytearray()
        self.next = {}

    def add(self, stream, slot, words, *, seq=None, base=0, first=0, epoch=1, thread=1, state=2, size=None,
            committed=None):
        """Append a chunk and return its offset."""
        offset = 4096 + len(self.pages)
        body = struct.pack(f"<{len(words)}Q", *words)
        size = -(-(64 + len(body)) // 4096) * 4096 if size is None else size
        seq = self.next.get((stream, slot), 0) if seq is None else seq
        self.next[stream, slot] = seq + 1
        tail = struct.pack("<QQQII", seq, base, first, epoch, thread)
        start = struct.pack("<4sIBBH", b"MTCK", size, stream, 0, slot)
        count = struct.pack("<Q", len(body) if committed is None else committed)
        chunk = start + struct.pack("<I", crc32c(UUID + start + tail)) + tail + count
        chunk += struct.pack("<II", crc32c(count + body) if state == 2 else 0, state) + body
        self.pages += chunk + bytes(-len(chunk) % 4096)
        return offset

    def bytes(self, closed=True, health=()):
        head = bytearray(self.head)
        struct.pack_into(f"<{len(health)}Q", head, 1024, *health)
        if closed:
            struct.pack_into("<I", head, 1280, 0x444E4543)
            struct.pack_into("<I", head, 1284, crc32c(head[1024:1284]))
            struct.pack_into("<QQ", head, 1288, 999, 4096 + len(self.pages))
            struct.pack_into("<I", head, 1304, crc32c(head[1288:1304]))
        return bytes(head + self.pages)

    def trace(self, closed=True, **options):
        return m.Trace(self.bytes(closed), **options)


def one_stream(words, kind=EVENTS, slot=2, closed=True, **chunk):
    """A trace with a single chunk, and its records."""
    b = Builder()
    b.add(kind, slot, words, **chunk)
    trace = b.trace(closed)
    return trace, list(trace.records((kind, slot)))


def offsets(trace):
    """The offsets with a problem, once everything was read."""
    for stream in trace.streams():
        for _ in trace.records(stream):
            pass
    return sorted({offset for offset, _ in trace.problems})


def spans_of(trace):
    return list(m.mtt_spans(trace))


class Checksum(unittest.TestCase):
    def test_check_value(self):
        self.assertEqual(crc32c(b"123456789"), 0xE3069283)
        self.assertEqual(crc32c(b""), 0)
        self.assertEqual(crc32c(bytes(32)), 0x8A9136AA)  # RFC 3720 B.4


class FileHeader(unittest.TestCase):
    def test_fields(self):
        trace = m.Trace(Builder(policy=2, start=(5, 6, 7)).bytes(health=[1, 2, 3]))
        self.assertEqual((trace.header["pid"], trace.header["policy"], trace.header["uuid"]), (77, 2, UUID))
        self.assertEqual((trace.header["start_ticks"], trace.header["start_mono_ns"]), (5, 6))
        self.assertEqual((trace.header["start_real_ns"], trace.header["begin_cost_ticks"]), (7, 256))
        self.assertEqual(trace.health, [1, 2, 3] + [0] * 29)
        self.assertTrue(trace.closed)
        self.assertEqual((trace.end_ticks, trace.file_bytes), (999, 4096))
        self.assertEqual((trace.problems, trace.streams()), ([], []))

    def test_refusals(self):
        for data, offset in ((b"", 0), (b"MTTRACE\r" + bytes(5000), 0), (Builder().bytes()[:4000], 4000),
                             (Builder(major=2).bytes(), 8), (Builder(features=1 << 31).bytes(), 16)):
            with self.assertRaises(m.TraceError) as caught:
                m.Trace(data)
            self.assertEqual(caught.exception.offset, offset)

    def test_later_minor_and_optional_features(self):
        self.assertEqual(Builder(minor=9, features=1 << 32).trace().problems, [])

    def test_torn_header_page_is_reported_and_the_rest_read(self):
        b = Builder()
        b.add(EVENTS, 0, rec(0x09, 5))
        b.head[100] ^= 1
        trace = b.trace()
        self.assertEqual(offsets(trace), [0])
        self.assertEqual(len(list(trace.records((EVENTS, 0)))), 1)

    def test_close_checks(self):
        data = bytearray(Builder().bytes())
        data[1030] ^= 1
        data[1290] ^= 1
        self.assertEqual(offsets(m.Trace(data)), [1024, 1288])
        self.assertEqual(offsets(m.Trace(Builder().bytes() + bytes(4096))), [1296])
        data = bytearray(Builder().bytes(closed=False))
        self.assertFalse(m.Trace(data).closed)
        data[1280] = 1
        self.assertEqual(offsets(m.Trace(data)), [1280])

    def test_path(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(Builder().bytes())
            file.flush()
            self.assertTrue(m.Trace(file.name).closed)


class Chunks(unittest.TestCase):
    def test_streams_in_order_of_sequence(self):
        b = Builder()
        b.add(EVENTS, 3, rec(0x09, 20), seq=1)
        b.add(EVENTS, 1, rec(0x09, 1))
        b.add(EVENTS, 3, rec(0x09, 10), seq=0)
        b.add(DEFS, 0, string(1, "a"))
        trace = b.trace()
        self.assertEqual(trace.streams(), [(1, 0), (3, 1), (3, 3)])
        self.assertEqual([r.ticks for r in trace.records((3, 3))], [10, 20])
        self.assertEqual(offsets(trace), [])

    def test_header_fields(self):
        trace, _ = one_stream(rec(0x09, 1), base=11, first=12, epoch=13, thread=14, size=12288)
        chunk = trace.chunks[0]
        self.assertEqual((chunk.offset, chunk.size, chunk.stream, chunk.sequence), (4096, 12288, (3, 2), 0))
        self.assertEqual((chunk.base_ticks, chunk.first_ordinal, chunk.epoch, chunk.thread), (11, 12, 13, 14))
        self.assertEqual((chunk.committed, chunk.state, chunk.readable), (16, 2, 16))

    def test_damaged_records(self):
        b = Builder()
        first = b.add(EVENTS, 0, rec(0x09, 1))
        b.add(EVENTS, 0, rec(0x09, 2), first=9)
        data = bytearray(b.bytes())
        data[first + 72] ^= 4
        trace = m.Trace(data)
        records = list(trace.records((3, 0)))
        self.assertEqual([(r.ticks, r.gap) for r in records], [(2, True)])
        self.assertEqual(offsets(trace), [first])
        self.assertEqual([r.ticks for r in m.Trace(data, verify=False).records((3, 0))], [5, 2])

    def test_data_crc_covers_committed(self):
        b = Builder()
        at = b.add(EVENTS, 0, rec(0x09, 1) + rec(0x09, 2))
        data = bytearray(b.bytes())
        data[at + 48] = 16
        self.assertEqual(offsets(m.Trace(data)), [at])

    def test_torn_chunk_header(self):
        b = Builder(policy=1)
        first = b.add(EVENTS, 0, rec(0x09, 1), size=4096)
        b.add(EVENTS, 0, rec(0x09, 2))
        data = bytearray(b.bytes())
        data[first + 24] ^= 1
        trace = m.Trace(data)
        self.assertEqual([r.ticks for r in trace.records((3, 0))], [2])
        self.assertEqual(offsets(trace), [first])

    def test_header_is_salted_with_the_uuid(self):
        b = Builder()
        at = b.add(EVENTS, 0, rec(0x09, 1))
        data = bytearray(b.bytes())
        data[24] ^= 1
        self.assertEqual(offsets(m.Trace(data)), [0, at])

    def test_page_without_magic(self):
        b = Builder()
        at = b.add(EVENTS, 0, rec(0x09, 1), size=8192)
        b.pages += bytes(-len(b.pages) % 8192)
        b.add(EVENTS, 1, rec(0x09, 2))
        for closed, problems in ((False, []), (True, [at])):
            data = bytearray(b.bytes(closed))
            data[at:at + 4] = bytes(4)
            trace = m.Trace(data)
            self.assertEqual([r.ticks for r in trace.records((3, 1))], [2])
            self.assertEqual(offsets(trace), problems)

    def test_zero_pages_and_a_partial_page(self):
        b = Builder()
        b.pages += bytes(8192)
        b.add(EVENTS, 0, rec(0x09, 1))
        b.pages += bytes(100)
        self.assertEqual(offsets(b.trace()), [])
        b.pages[-1] = 1
        self.assertEqual(offsets(b.trace()), [4096 + 3 * 4096])
        b.pages[-100:] = b"MTCK"
        self.assertEqual(offsets(b.trace()), [4096 + 3 * 4096])

    def test_impossible_sizes(self):
        for size in (0, 64, 4100, (1 << 30) + 4096):
            b = Builder()
            at = b.add(EVENTS, 0, rec(0x09, 1), size=size)
            b.add(EVENTS, 1, rec(0x09, 2))
            trace = b.trace()
            self.assertEqual(offsets(trace), [at])
            self.assertEqual(trace.streams(), [(3, 1)])

    def test_other_stream_kind_is_skipped_whole(self):
        b = Builder()
        b.add(9, 0, rec(0x09, 1) + [1] * 600, size=8192)
        b.add(EVENTS, 1, rec(0x09, 2))
        trace = b.trace()
        self.assertEqual((trace.streams(), offsets(trace)), ([(3, 1)], []))

    def test_states(self):
        for state, closed, count, problems in ((0, False, 1, []), (1, False, 1, []), (2, False, 1, []),
                                               (0, True, 0, [4096]), (1, True, 0, [4096]), (3, False, 0, [4096])):
            trace, records = one_stream(rec(0x09, 1), state=state, closed=closed)
            self.assertEqual((len(records), offsets(trace)), (count, problems), (state, closed))

    def test_committed(self):
        words = rec(0x09, 1) + rec(0x09, 2)
        for committed, state, count, problems in (
                (0, 0, 0, []), (16, 0, 1, []), (24, 0, 1, [4096 + 64 + 16]), (20, 0, 0, [4096]),
                (8192, 0, 0, [4096]), (8192, 2, 0, [4096]), (20, 2, 0, [4096])):
            trace, records = one_stream(words, state=state, closed=False, committed=committed)
            self.assertEqual((len(records), offsets(trace)), (count, problems), (committed, state))

    def test_cut_off_by_the_end_of_the_file(self):
        b = Builder()
        at = b.add(EVENTS, 0, rec(0x09, 1) + rec(0x09, 2), size=8192)
        data = b.bytes(closed=False)
        trace = m.Trace(data)
        self.assertEqual((len(list(trace.records((3, 0)))), offsets(trace)), (2, [at]))
        trace = m.Trace(data[:at + 64 + 16])
        self.assertEqual((len(list(trace.records((3, 0)))), offsets(trace)), (0, [at]))
        b = Builder()
        b.add(EVENTS, 0, rec(0x09, 1) + rec(0x09, 2), state=1)
        trace = m.Trace(b.bytes(closed=False)[:at + 64 + 16])
        self.assertEqual((len(list(trace.records((3, 0)))), offsets(trace)), (1, [at]))

    def test_sequence_twice(self):
        b = Builder()
        b.add(EVENTS, 0, rec(0x09, 1), seq=0)
        second = b.add(EVENTS, 0, rec(0x09, 2), seq=0)
        trace = b.trace()
        self.assertEqual([r.ticks for r in trace.records((3, 0))], [1])
        self.assertEqual(offsets(trace), [second])

    def test_gap(self):
        for policy, stream, reported in ((1, EVENTS, False), (1, SRC, False), (0, EVENTS, True), (1, CTRL, True),
                                         (1, DEFS, True), (2, SRC, True)):
            b = Builder(policy=policy)
            b.add(stream, 0, rec(0x7F, 1), seq=0)
            at = b.add(stream, 0, rec(0x7F, 2), seq=2)
            trace = b.trace()
            self.assertEqual([r.gap for r in trace.records((stream, 0))], [False, True])
            self.assertEqual(offsets(trace), [at] if reported else [])


class RecordLengths(unittest.TestCase):
    def test_extended(self):
        _, records = one_stream(rec(0x01, 50, aux=3, arg=9, extended=True) + rec(0x7E, extended=True) + rec(0x09, 60))
        self.assertEqual([(r.kind, r.aux, r.arg, r.words, r.ticks) for r in records],
                         [(1, 3, 9, (50,), 50), (0x7E, 0, 0, (), 50), (9, 0, 0, (60,), 60)])
        self.assertEqual([r.offset for r in records], [4160, 4184, 4200])

    def test_extended_and_long(self):
        name = "x" * 3000
        trace, records = one_stream(rec(0x20, 3000, *text(name), arg=4, extended=True) + string(5, "y"), DEFS, 0)
        self.assertEqual(trace.strings, {4: name, 5: "y"})
        self.assertEqual(len(records[0].words), 376)

    def test_unknown_kinds(self):
        words = rec(0x09, 5) + rec(0x6A, 1, 2, 3, aux=4, arg=5) + rec(0x8F, aux=6, arg=7) + rec(0x7B) + rec(0, 8)
        trace, records = one_stream(words)
        self.assertEqual([(r.kind, r.aux, r.arg, r.words, r.ticks) for r in records[1:]],
                         [(0x6A, 4, 5, (1, 2, 3), 5), (0x8F, 6, 7, (), 5), (0x7B, 0, 0, (), 5), (0, 0, 0, (8,), 5)])
        self.assertEqual(offsets(trace), [])

    def test_more_words_than_known(self):
        trace, records = one_stream(rec(0x01, 5, 6, 7) + rec(0x20, 1, *text("a"), 3, arg=1))
        self.assertEqual((records[0].words, offsets(trace)), ((5, 6, 7), []))

    def test_impossible_lengths(self):
        for bad in ([0], [0x01], [0x01 | 9 << 8, 1], [0x01 | 255 << 8], [0x7F | 255 << 8, 1], [0x7F | 255 << 8, 0],
                    [0x7F | 255 << 8, 1 << 63], [0x7F | 255 << 8, 4, 1]):
            for state in (0, 2):
                trace, records = one_stream(rec(0x09, 1) + bad, closed=False, state=state)
                self.assertEqual((len(records), offsets(trace)), (1, [4096 + 64 + 16]), bad)

    def test_reading_goes_on_in_the_next_chunk(self):
        b = Builder()
        at = b.add(EVENTS, 0, rec(0x09, 1) + [0] + rec(0x09, 2), state=1)
        b.add(EVENTS, 0, rec(0x09, 3), state=0)
        trace = b.trace(closed=False)
        self.assertEqual([(r.ticks, r.gap) for r in trace.records((3, 0))], [(1, False), (3, True)])
        self.assertEqual(offsets(trace), [at + 80])

    def test_too_short_for_the_kind(self):
        shortest = {EVENTS: {1: 1, 2: 3, 3: 2, 4: 1, 5: 2, 6: 2, 7: 2, 8: 3, 9: 1, 10: 1, 11: 1, 12: 1, 13: 1, 14: 1,
                             15: 1, 20: 1}, SRC: {0x30: 6, 0x31: 2, 13: 1, 5: 2, 4: 1, 14: 1},
                    CTRL: {0x40: 3, 0x41: 3, 0x42: 1, 0x43: 2, 0x44: 1, 0x45: 2, 0x46: 4, 0x47: 3},
                    DEFS: {0x20: 1, 0x21: 0, 0x22: 3, 0x23: 1, 0x24: 3, 0x25: 1, 0x26: 4}}
        for stream, kinds in shortest.items():
            for kind, count in kinds.items():
                trace, records = one_stream(rec(kind, *[0] * count), stream, 0)
                self.assertEqual((len(records), offsets(trace)), (1, []), (stream, kind))
                if count:
                    trace, records = one_stream(rec(kind, *[0] * (count - 1)), stream, 0)
                    self.assertEqual((len(records), offsets(trace)), (0, [4160]), (stream, kind))

    def test_what_is_announced_must_fit(self):
        good = [(EVENTS, rec(0x0E, 9, 1, 2, aux=5)), (EVENTS, rec(0x0F, 8, 1)), (EVENTS, rec(0x11, 1, 2, aux=2)),
                (EVENTS, rec(0x12, 1, 2, 3, 4)), (EVENTS, rec(0x13, 1, 2, aux=0b1000001)), (CTRL, rec(0x45, 1, 8, 3)),
                (CTRL, rec(0x44, 3 | 4 << 32, 1, 2)), (DEFS, rec(0x20, 8, 1)), (DEFS, rec(0x20, 1, 5, 6, aux=1)),
                (DEFS, rec(0x21, 1 | 1 << 8, 6)), (EVENTS, rec(0x10, 3, 3)), (EVENTS, end(1, 5))]
        bad = [(EVENTS, rec(0x0E, 9, 1, aux=5)), (EVENTS, rec(0x0F, 9, 1)), (EVENTS, rec(0x11, 1, 2, aux=3)),
               (EVENTS, rec(0x12, 1, 2, 3)), (EVENTS, rec(0x13, 1, 2, aux=0b111)), (CTRL, rec(0x45, 1, 9, 3)),
               (CTRL, rec(0x44, 3 | 4 << 32, 1)), (DEFS, rec(0x20, 1 << 31, 1)), (DEFS, rec(0x20, 1, 5, aux=1)),
               (DEFS, rec(0x21, 1 | 2 << 8, 6)), (EVENTS, rec(0x10, 2 | 2 << 32, 3)), (EVENTS, rec(0x10, 7)),
               (EVENTS, rec(0x10, 99)), (EVENTS, rec(0x0F, ALL_ONES)), (EVENTS, end(0, 5)), (EVENTS, end(2, 5))]
        for cases, count, problems in ((good, 1, []), (bad, 0, [4160])):
            for stream, words in cases:
                trace, records = one_stream(words, stream, 0, first=1)
                self.assertEqual((len(records), offsets(trace)), (count, problems), words)


class Times(unittest.TestCase):
    def test_reference_and_short_times(self):
        base = 7 << 40
        words = rec(0x08, 1, 2, 3, arg=5) + end(1, base + 9) + rec(0x0C, 1) + rec(0x01, base + 20) + end(1, base + 30)
        words += rec(0x81, arg=1) + rec(0x08, 0, -1, 3, arg=1) + rec(0x0D, 4, aux=2)
        trace, records = one_stream(words, base=base, first=3)
        self.assertEqual([r.ticks - base for r in records], [5, 9, 0, 20, 30, 20, 21, 20])
        self.assertEqual(offsets(trace), [])

    def test_wrap_around(self):
        wrap = 1 << 40
        for start, stop in ((wrap - 1, wrap), (wrap - 5, 2 * wrap - 6), (3 * wrap + 7, 4 * wrap + 6), (0, wrap - 1),
                            (5 * wrap, 5 * wrap)):
            _, records = one_stream(rec(0x01, start) + end(1, stop))
            self.assertEqual([r.ticks for r in records], [start, stop])

    def test_an_end_does_not_move_the_reference(self):
        wrap = 1 << 40
        _, records = one_stream(rec(0x01, 0) + end(1, wrap - 1) + end(1, 5))
        self.assertEqual([r.ticks for r in records], [0, wrap - 1, 5])

    def test_each_chunk_starts_at_its_base(self):
        b = Builder()
        b.add(EVENTS, 0, rec(0x09, 100))
        b.add(EVENTS, 0, rec(0x0C, 1), base=90)
        self.assertEqual([r.ticks for r in b.trace().records((3, 0))], [100, 90])

    def test_kinds_with_full_ticks(self):
        for stream, kinds in ((EVENTS, (1, 2, 3, 4, 5, 6, 7, 9, 10, 11)),
                              (CTRL, (0x40, 0x41, 0x42, 0x43, 0x45, 0x47))):
            for kind in kinds:
                _, records = one_stream(rec(kind, 50, 0, 0) + rec(0x7F), stream, 0, base=10)
                self.assertEqual([r.ticks for r in records], [50, 50], kind)
        for stream, kinds, start in ((DEFS, range(0x20, 0x27), 10), (CTRL, (0x44,), 10), (SRC, (13, 14), 0)):
            for kind in kinds:
                _, records = one_stream(rec(kind, 0, 0, 0, 0) + rec(0x7F), stream, 0, base=10)
                self.assertEqual([r.ticks for r in records], [start, start], kind)
        for kind in (0x30, 0x31, 5, 4):
            _, records = one_stream(rec(kind, 50, 0, 0, 0, 0, 0) + rec(0x7F), SRC, 0, base=10)
            self.assertEqual([r.ticks for r in records], [50, 50], kind)

    def test_extrapolation_is_exact(self):
        period = (NS * 10 + 2) // 3  # 3.33 ns
        trace = Builder(period=period, start=(1000, 5000, 9000)).trace()
        self.assertEqual([trace.ns(t) for t in (1000, 1003, 1004, 999, 997)], [5000, 5010, 5013, 4996, 4989])
        far = 1000 + (1 << 60)
        self.assertEqual(trace.ns(far), 5000 + (1 << 60) * period // (1 << 56))
        self.assertEqual(trace.real_ns(1003), 9010)

    def test_anchors(self):
        b = Builder(start=(0, 10**9, 5 * 10**9))
        far = 2 * 10**8
        b.add(CTRL, 0, rec(0x40, far, 10**9 + far + 100, 1) + rec(0x40, 10**8 - 1, 10**9 + 5, 2)  # too near
              + rec(0x40, far + 10**8, 10**9 + far + 100, 3)  # does not grow
              + rec(0x40, far + 10**8 + 1, 10**9 + far + 101, 4))
        trace = b.trace()
        self.assertEqual([a[2] for a in trace.anchors], [5 * 10**9, 1, 4])
        self.assertEqual(trace.ns(0), 10**9)
        self.assertEqual(trace.ns(far), 10**9 + far + 100)
        self.assertEqual(trace.ns(far // 2), 10**9 + far // 2 + 50)
        self.assertEqual(trace.ns(far - 1), 10**9 + far + 98)
        self.assertEqual(trace.ns(far + 10**8), 10**9 + far + 100)  # rounded down between the two last
        self.assertEqual(trace.ns(far + 10**8 + 11), 10**9 + far + 111)
        self.assertEqual(trace.ns(-7), 10**9 - 7)
        self.assertEqual(trace.real_ns(0), 5 * 10**9)

    def test_hundred_milliseconds_is_enough(self):
        b = Builder(start=(0, 1, 0))
        b.add(CTRL, 0, rec(0x40, 10**8, 2, 0))
        self.assertEqual(len(b.trace().anchors), 2)


class Sources(unittest.TestCase):
    def trace(self, *pairs, period=NS):
        b = Builder(period=period)
        b.add(SRC, 3, [w for p in pairs for w in rec(0x31, *p)] + rec(0x7F))
        return b.trace()

    def test_no_pair(self):
        self.assertIsNone(self.trace().source_ticks(3, 5))
        self.assertIsNone(self.trace((1, 2)).source_ticks(4, 5))

    def test_single_pair_counts_nanoseconds(self):
        trace = self.trace((100, 5000), period=NS // 4)  # four ticks are a nanosecond
        self.assertEqual([trace.source_ticks(3, t) for t in (100, 101, 99)], [5000, 5004, 4996])

    def test_pairs(self):
        trace = self.trace((100, 1000), (200, 3000), (150, 9000), (300, 2999), (201, 3000), (300, 3100))
        self.assertEqual(trace.clock_pairs(3), [(100, 1000), (200, 3000), (300, 3100)])
        self.assertEqual([trace.source_ticks(3, t) for t in (90, 100, 150, 200, 250, 300, 301)],
                         [800, 1000, 2000, 3000, 3050, 3100, 3101])

    def test_rounds_down(self):
        trace = self.trace((0, 100), (3, 110))
        self.assertEqual([trace.source_ticks(3, t) for t in (1, 2, 3, 4, -1)], [103, 106, 110, 113, 96])

    def test_records(self):
        words = (rec(0x30, 500, 600, 2 << 40 | 7, 1 | 5 << 32, 42, 4096, aux=1, arg=9) + rec(0x0E, 3, arg=4)
                 + rec(0x0D, 8, aux=6) + rec(0x05, 700, -3, arg=1) + rec(0x04, 800, arg=1) + rec(0x0E, 1, arg=4))
        trace, r = one_stream(words, SRC, 3, base=50, epoch=4, thread=6)
        self.assertEqual([x.ticks for x in r], [500, 500, 500, 700, 800, 800])
        self.assertEqual({(x.epoch, x.thread, x.key) for x in r}, {(0, 0, 0)})
        self.assertEqual([x.owner for x in r], [None, r[0], None, None, None, r[4]])


class Events(unittest.TestCase):
    def test_keys(self):
        slot, explicit = 2, 2 << 40 | 1 << 39 | 5
        words = (rec(0x01, 10) + rec(0x02, 11, 0, ALL_ONES) + rec(0x02, 12, explicit, 0) + rec(0x07, 13, 1)
                 + end(1, 14) + end(2, 15) + end(3, 16) + rec(0x03, 17, explicit) + rec(0x04, 18) + end(100, 20))
        _, records = one_stream(words, first=100)
        ordinals = [100, 101, 1 << 39 | 5, 102, 102, 101, 100, 1 << 39 | 5]
        self.assertEqual([r.key for r in records[:8]], [slot << 40 | o for o in ordinals])
        self.assertEqual([r.key for r in records[8:]], [0, slot << 40 | 3])
        self.assertEqual([(r.aux, r.arg) for r in records if r.kind == 0x80], [(0, 0)] * 4)

    def test_ordinals_restart_at_each_chunk(self):
        b = Builder(policy=1)
        b.add(EVENTS, 1, rec(0x01, 1) + rec(0x01, 1), first=5, seq=4)
        b.add(EVENTS, 1, rec(0x01, 1), first=50, seq=9)
        self.assertEqual([r.key & m.M40 for r in b.trace().records((3, 1))], [5, 6, 50])

    def test_epoch_and_thread(self):
        words = rec(0x09, 1) + rec(0x0A, 2, arg=8) + rec(0x09, 3) + rec(0x0B, 4, arg=9) + rec(0x09, 5)
        _, records = one_stream(words, epoch=3, thread=4)
        self.assertEqual([(r.epoch, r.thread) for r in records], [(3, 4), (8, 4), (8, 4), (8, 9), (8, 9)])

    def test_payloads(self):
        words = (rec(0x0E, 1) + rec(0x01, 1) + rec(0x81, arg=3) + rec(0x82, arg=4) + rec(0x13, 5, aux=1)
                 + rec(0x70, 1) + rec(0x83) + rec(0x84) + end(1, 2) + rec(0x12, 1, 2, 3, 4, aux=1) + rec(0x84)
                 + rec(0x0E, 1) + rec(0x04, 3) + rec(0x0F, 2, *text("ab")) + rec(0x09, 4) + rec(0x0E, 1)
                 + rec(0x07, 5, 6) + rec(0x10, 3) + rec(0x11, 8, aux=1) + rec(0x12, aux=0))
        trace, records = one_stream(words)
        owners = [None if r.owner is None else r.owner.kind for r in records]
        self.assertEqual(owners, [None, None, 1, 1, 1, None, 1, None, None, 0x80, 0x80, None, None, 4, None, None, None,
                                  7, 7, 7])
        self.assertEqual(offsets(trace), [])

    def test_attached_payloads(self):
        words = rec(0x09, 5) + rec(0x14, 3 << 40 | 9) + rec(0x82, arg=1) + rec(0x84) + rec(0x09, 6) + rec(0x82, arg=1)
        _, records = one_stream(words)
        self.assertEqual([r.owner_key for r in records], [0, 0, 3 << 40 | 9, 3 << 40 | 9, 0, 0])
        self.assertEqual((records[1].ticks, records[1].key), (5, 0))

    def test_payload_in_the_next_chunk(self):
        for seq, owned in ((1, True), (2, False)):
            b = Builder(policy=1)
            b.add(EVENTS, 0, rec(0x01, 1))
            b.add(EVENTS, 0, rec(0x82, arg=4), seq=seq)
            records = list(b.trace().records((3, 0)))
            self.assertEqual(records[1].owner is records[0], owned)


class Control(unittest.TestCase):
    def test_all(self):
        words = window(1, 10, 20, action=2) + window(2, 30) + rec(0x43, 35, 6, aux=2)
        words += rec(0x44, 3 | 5 << 32, *text("key"), *text("first"), arg=1)
        words += rec(0x44, 3 | 9 << 32, *text("key"), *text('{"a": 10}'), arg=2, aux=1)
        words += rec(0x44, 1, *text("e")) + rec(0x45, 36, 4, *text("oops"))
        trace, records = one_stream(words, CTRL, 0, epoch=5, thread=5)
        self.assertEqual({(r.epoch, r.thread) for r in records}, {(0, 0)})
        one, two = trace.epochs[1], trace.epochs[2]
        self.assertEqual((one.open_ticks, one.gate, one.window, one.step), (10, 0xFF, 1, 7))
        self.assertEqual((one.close_ticks, one.close_action), (20, 2))
        self.assertEqual((two.open_ticks, two.close_ticks), (30, None))
        self.assertEqual((trace.epoch_end(1), trace.epoch_end(2)), (20, 999))
        self.assertEqual(trace.metadata, {"key": ('{"a": 10}', True, 2), "e": ("", False, 0)})
        self.assertEqual((trace.warnings, trace.steps), ([(36, "oops")], [(35, 2, 6)]))
        self.assertEqual(offsets(trace), [])

    def test_the_last_time_seen(self):
        b = Builder()
        b.add(CTRL, 0, window(1, 10))
        b.add(EVENTS, 0, rec(0x01, 20, arg=1) + end(1, 70), base=500)
        b.add(SRC, 0, rec(0x30, 900, 901, 0, 0, 0, 0))
        self.assertEqual(b.trace(closed=False).epoch_end(1), 70)
        self.assertEqual(Builder(start=(5, 0, 0)).trace(closed=False).epoch_end(1), 5)
        self.assertEqual(b.trace().epoch_end(1), 999)
        data = bytearray(b.bytes())
        data[1288] ^= 1  # what a closed file says of its end counts where its checksum holds
        self.assertEqual(m.Trace(bytes(data)).epoch_end(1), 70)


class Definitions(unittest.TestCase):
    def test_all(self):
        words = string(1, "main") + rec(0x20, 3, 1 | 40 << 32, *text(b"\xff\0z"), aux=1, arg=2) + rec(0x20, 0, arg=3)
        words += rec(0x22, 1 | 2 << 32, 12, 0xABC, arg=1) + rec(0x23, 1 << 32, arg=5) + rec(0x23, 5 | 9 << 32, arg=6)
        words += rec(0x24, 111, 222, 0, arg=1) + rec(0x24, 111, 222, 1, arg=1) + rec(0x25, 1 | 2 << 32, arg=0)
        words += rec(0x26, 1, 2, 3, 1) + rec(0x21, 3, arg=7) + string(1, "again") + string(0, "none")
        trace, records = one_stream(words, DEFS, 0, base=33)
        self.assertEqual({r.ticks for r in records}, {33})
        self.assertEqual(trace.strings[1], "main")
        self.assertEqual(trace.strings[2].encode("utf-8", "surrogateescape"), b"\xff\0z")
        self.assertEqual((trace.strings[3], trace.locations), ("", {2: (1, 40)}))
        self.assertNotIn(0, trace.strings)
        self.assertEqual(trace.frames, {1: (1, 2, 12, 0xABC)})
        self.assertEqual((trace.stacks, trace.stack(6), trace.stack(0)), ({5: (0, 1), 6: (5, 9)}, [9, 1], []))
        self.assertEqual((trace.threads, trace.sources), ({1: (111, 222, 1)}, {0: (1, 2)}))
        self.assertEqual((trace.modules, trace.inputs), ([(1, 2, 3, 1)], {7: [("int", 0)]}))
        self.assertEqual(offsets(trace), [])

    def test_a_stack_that_bites_its_tail(self):
        trace, _ = one_stream(rec(0x23, 2 | 8 << 32, arg=1) + rec(0x23, 1 | 9 << 32, arg=2), DEFS, 0)
        self.assertEqual(trace.stack(1), [8, 9])

    def test_input_list(self):
        words = [0, 1 | 2 << 8 | 4 << 32, 6, 7, 1 | 2 << 8 | 1 << 16 | 4 << 32, 6, 7, 7, ALL_ONES, 2 | 2 << 32, 3,
                 2 | 1 << 32, 4 | 5 << 32, 2, 5, 7 | 9 << 32, 2 | 1 << 32, 6, 7 | 9 << 32, 7 | 8 << 32, 3]
        values = m.decode_inputs(words)
        self.assertEqual(values, [
            ("none", 0), ("tensor", 4, [6, 7], None), ("tensor", 4, [6, 7], [7, -1]), [("int", 0), [("double", 5)]], [],
            ("bool", 0), ("keyword", 9, [("string", 0)]), ("keyword", 9, ("keyword", 8, ("int", 0)))])
        half = struct.unpack("<Q", struct.pack("<d", 0.5))[0]
        self.assertEqual(m.bind_scalars(values[3:], [ALL_ONES, half, 1, 44, 6]), [
            [("int", 0, -1), [("double", 5, 0.5)]], [], ("bool", 0, True), ("keyword", 9, [("string", 0, 44)]),
            ("keyword", 9, ("keyword", 8, ("int", 0, 6)))])
        with self.assertRaises(ValueError):
            m.bind_scalars(values, [1])
        self.assertEqual(m.decode_inputs([]), [])
        self.assertEqual(len(m.decode_inputs([2 | 1 << 32] * 100000 + [0])), 1)


class Spans(unittest.TestCase):
    def build(self, *slots, control=None, policy=0, closed=True):
        """A trace with one chunk of events for each slot 1, 2 ..."""
        b = Builder(policy=policy)
        b.add(DEFS, 0, string(1, "outer") + string(2, "inner"))
        b.add(CTRL, 0, window(1, 0, 1000) + window(2, 2000, 3000) if control is None else control)
        for slot, words in enumerate(slots, 1):
            b.add(EVENTS, slot, words)
        return b.trace(closed)

    @staticmethod
    def key(slot, ordinal):
        return slot << 40 | ordinal

    def test_nesting(self):
        trace = self.build(rec(0x01, 10, arg=1) + rec(0x01, 20, arg=2) + end(1, 30) + rec(0x01, 40, arg=2) + end(1, 50)
                           + end(3, 60) + rec(0x01, 70, arg=9) + end(1, 80))
        k = self.key
        self.assertEqual([(s.name, s.start_ticks, s.end_ticks, s.key, s.parent, s.truncated) for s in spans_of(trace)],
                         [("outer", 10, 60, k(1, 0), 0, False), ("inner", 20, 30, k(1, 1), k(1, 0), False),
                          ("inner", 40, 50, k(1, 2), k(1, 0), False), (None, 70, 80, k(1, 3), 0, False)])
        self.assertEqual({(s.thread, s.epoch, s.slot) for s in spans_of(trace)}, {(1, 1, 1)})
        self.assertEqual(trace.ignored_ends, 0)

    def test_an_outer_scope_may_end_first(self):
        trace = self.build(rec(0x01, 10) + rec(0x01, 20) + end(2, 30) + rec(0x01, 40) + end(1, 50) + end(2, 60))
        self.assertEqual([(s.end_ticks, s.parent) for s in spans_of(trace)],
                         [(30, 0), (60, self.key(1, 0)), (50, self.key(1, 1))])

    def test_given_parents(self):
        other = self.key(5, 77)
        trace = self.build(rec(0x01, 1) + rec(0x02, 2, 0, 0) + rec(0x02, 3, 0, ALL_ONES) + rec(0x02, 4, 0, other))
        self.assertEqual([s.parent for s in spans_of(trace)], [0, 0, self.key(1, 1), other])

    def test_names_in_full(self):
        trace = self.build(rec(0x01, 1, aux=1 << 6) + rec(0x82, arg=1) + rec(0x0F, 4, *text("long")) + rec(0x04, 2)
                           + rec(0x0F, 1, *text("x")) + end(1, 3))
        self.assertEqual([(s.name, s.flags) for s in spans_of(trace)], [("long", 64)])

    def test_names_attached_from_another_slot(self):
        trace = self.build(rec(0x01, 1) + end(1, 2), rec(0x14, self.key(1, 0)) + rec(0x0F, 4, *text("late")))
        self.assertEqual([s.name for s in spans_of(trace)], ["late"])

    def test_launches_take_ordinals_but_are_no_scopes(self):
        trace = self.build(rec(0x01, 1) + rec(0x07, 2, 3) + rec(0x01, 3) + end(1, 4) + end(2, 5) + end(3, 6))
        self.assertEqual([(s.end_ticks, s.parent) for s in spans_of(trace)], [(6, 0), (4, self.key(1, 0))])
        self.assertEqual(trace.ignored_ends, 1)

    def test_end_across_slots(self):
        key, explicit = self.key(1, 0), self.key(1, 1 << 39 | 3)
        trace = self.build(rec(0x01, 10, aux=1 << 7) + rec(0x02, 15, explicit, 0) + rec(0x01, 20) + end(1, 22)
                           + rec(0x01, 30) + end(1, 32),
                           rec(0x01, 12) + rec(0x03, 24, explicit) + rec(0x03, 25, key) + rec(0x01, 30) + end(1, 31)
                           + end(2, 40))
        self.assertEqual([(s.slot, s.start_ticks, s.end_ticks, s.parent, s.truncated) for s in spans_of(trace)],
                         [(1, 10, 25, 0, False), (1, 15, 24, 0, False), (1, 20, 22, explicit, False),
                          (1, 30, 32, 0, False), (2, 12, 40, 0, False), (2, 30, 31, self.key(2, 0), False)])
        self.assertEqual(trace.ignored_ends, 0)

    def test_end_in_a_lower_slot_and_in_the_own_slot(self):
        trace = self.build(rec(0x03, 50, self.key(2, 0)),
                           rec(0x01, 10) + rec(0x01, 20) + rec(0x03, 30, self.key(2, 1)))
        self.assertEqual([(s.end_ticks, s.truncated) for s in spans_of(trace)], [(50, False), (30, False)])
        self.assertEqual(trace.ignored_ends, 0)

    def test_ends_of_nothing_are_counted(self):
        trace = self.build(rec(0x03, 5, self.key(9, 9)) + rec(0x01, 6) + end(1, 7) + end(1, 8)
                           + rec(0x03, 9, self.key(1, 0)))
        self.assertEqual([s.end_ticks for s in spans_of(trace)], [7])
        self.assertEqual(trace.ignored_ends, 3)

    def test_epoch_truncates(self):
        trace = self.build(rec(0x01, 10) + rec(0x01, 20) + end(1, 30) + rec(0x0A, 2010, arg=2) + end(2, 2020)
                           + rec(0x01, 2030))
        self.assertEqual([(s.epoch, s.end_ticks, s.parent, s.truncated) for s in spans_of(trace)],
                         [(1, 1000, 0, True), (1, 30, self.key(1, 0), False), (2, 3000, 0, True)])
        self.assertEqual(trace.ignored_ends, 1)

    def test_epoch_in_a_chunk_header_truncates(self):
        b = Builder()
        b.add(CTRL, 0, window(1, 0, 1000) + window(2, 2000))
        b.add(EVENTS, 1, rec(0x01, 10))
        b.add(EVENTS, 1, rec(0x01, 2005) + end(2, 2010) + rec(0x09, 2500), first=1, epoch=2)
        trace = b.trace(closed=False)
        self.assertEqual([(s.epoch, s.end_ticks, s.parent, s.truncated) for s in spans_of(trace)],
                         [(1, 1000, 0, True), (2, 2500, 0, True)])
        self.assertEqual(trace.ignored_ends, 1)

    def test_ends_supplied_by_the_recorder(self):
        trace = self.build(rec(0x01, 10) + rec(0x01, 11) + rec(0x03, 1000, self.key(1, 1), aux=1)
                           + rec(0x0A, 2000, arg=2) + rec(0x03, 1000, self.key(1, 0), aux=1))
        self.assertEqual([(s.end_ticks, s.truncated) for s in spans_of(trace)], [(1000, True), (1000, True)])
        self.assertEqual(trace.ignored_ends, 0)

    def test_foreign_end_in_another_epoch(self):
        trace = self.build(rec(0x01, 10), rec(0x0A, 2000, arg=2) + rec(0x03, 2010, self.key(1, 0)))
        self.assertEqual([(s.end_ticks, s.truncated) for s in spans_of(trace)], [(1000, True)])
        self.assertEqual(trace.ignored_ends, 1)

    def test_epoch_without_close(self):
        trace = self.build(rec(0x01, 10), rec(0x09, 555), control=window(1, 0), closed=False)
        self.assertEqual([(s.end_ticks, s.truncated) for s in spans_of(trace)], [(555, True)])

    def test_begin_behind_the_close(self):
        trace = self.build(rec(0x01, 1005))
        self.assertEqual([(s.end_ticks, s.truncated) for s in spans_of(trace)], [(1005, True)])

    def test_another_thread_in_the_slot_is_no_child(self):
        trace = self.build(rec(0x01, 10) + rec(0x0B, 15, arg=2) + rec(0x01, 20) + end(1, 30))
        self.assertEqual([(s.thread, s.parent) for s in spans_of(trace)], [(1, 0), (2, 0)])

    def test_ring_gap(self):
        b = Builder(policy=1)
        b.add(CTRL, 0, window(1, 0, 1000))
        b.add(EVENTS, 1, rec(0x01, 10) + rec(0x01, 11) + end(1, 12) + rec(0x01, 13), seq=3, first=20)
        b.add(EVENTS, 1, end(5, 60) + rec(0x01, 70) + end(1, 71) + end(21, 80), seq=7, first=40)
        trace = b.trace()
        self.assertEqual([(s.key & m.M40, s.end_ticks, s.parent & m.M40, s.truncated) for s in spans_of(trace)],
                         [(20, 13, 0, True), (21, 12, 20, False), (22, 13, 20, True), (40, 71, 0, False)])
        self.assertEqual(trace.ignored_ends, 2)

    def test_a_key_taken_twice(self):
        key = self.key(1, 1 << 39)
        trace = self.build(rec(0x02, 10, key, 0) + rec(0x02, 20, key, 0) + rec(0x03, 30, key))
        self.assertEqual([(s.end_ticks, s.truncated) for s in spans_of(trace)], [(1000, True), (30, False)])


class Dump(unittest.TestCase):
    def sample(self):
        b = Builder()
        b.add(EVENTS, 2, rec(0x01, 1 << 40, aux=65, arg=3) + rec(0x81, arg=12, aux=1) + end(1, (1 << 40) + 5)
              + rec(0x08, 0xABC, -16, 0, aux=0x102, arg=2) + [0] + rec(0x09, 1), first=7, epoch=3, thread=4, state=1)
        b.add(DEFS, 0, string(3, "ab"), base=9)
        b.add(SRC, 1, rec(0x31, 77, 88, extended=True), state=0)
        b.add(9, 1, [1])
        return b.bytes(closed=False)

    EXPECTED = f"""r 1 0 8256 20 0 3 0 0 9 0 2 6261
r 3 2 4160 01 65 3 3 4 1099511627776 {2 << 40 | 7} 10000000000
r 3 2 4176 81 1 12 3 4 1099511627776 0
r 3 2 4184 80 0 0 3 4 1099511627781 {2 << 40 | 7}
r 3 2 4192 08 258 2 3 4 1099511627778 0 abc fffffffffffffff0 0
r 4 1 12352 31 0 0 0 0 77 0 4d 58
problem 4224
"""

    def test_dump(self):
        lines = []
        self.assertEqual(mtt_dump.dump(self.sample(), lines.append), 0)
        self.assertEqual("".join(lines), self.EXPECTED)

    def test_program(self):
        with tempfile.NamedTemporaryFile() as file:
            for data, status, output in ((self.sample(), 0, self.EXPECTED), (b"no trace", 1, "problem 0\n")):
                file.seek(0)
                file.truncate()
                file.write(data)
                file.flush()
                done = subprocess.run([sys.executable, os.path.join(HERE, "mtt_dump.py"), file.name],
                                      capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stdout), (status, output))


class AnyBytes(unittest.TestCase):
    def test_flipped_bytes_never_raise(self):
        """Damage anywhere is reported or has no effect; the reader gets to the end."""
        b = Builder()
        b.add(DEFS, 0, string(1, "a") + rec(0x21, 2 | 1 << 32, 3, arg=1), state=0)
        b.add(CTRL, 0, window(1, 0, 100) + rec(0x44, 1 | 1 << 32, 65, 66) + rec(0x40, 1, 2, 3), state=0)
        b.add(EVENTS, 1, rec(0x01, 10, arg=1) + rec(0x0F, 1, 65) + rec(0x12, 1, 2, 3, 4) + end(1, 20)
              + rec(0x02, 30, 0, ALL_ONES) + rec(0x03, 40, 1 << 40 | 1), state=0)
        b.add(SRC, 1, rec(0x31, 1, 2) + rec(0x31, 2, 4), state=0)
        data = b.bytes(closed=False)
        places = [*range(0, 112), *range(1280, 1310)]
        places += [page + i for page in range(4096, len(data), 4096) for i in range(0, 240)]
        for place in places:
            for flip in (1, 0x80, 0xFF):
                damaged = bytearray(data)
                damaged[place] ^= flip
                try:
                    trace = m.Trace(damaged)
                except m.TraceError:
                    continue
                offsets(trace)
                spans_of(trace)
                trace.ns(12345)
                trace.source_ticks(1, 7)


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    skipped = len(result.skipped)
    sys.stderr.flush()
    print(f"{result.testsRun - failed - skipped} passed, {failed} failed, {skipped} skipped", flush=True)
    sys.exit(bool(failed))
