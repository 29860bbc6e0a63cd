"""A second reader of `.mtt` traces, written from docs/format.md alone.

It shares no code with the recorder: where the two disagree, one of them or the document is wrong. Section numbers in
the docstrings are those of docs/format.md. It reads the whole file into memory and favours clarity over speed.
mtt_records.py holds the records, mtt_spans.py pairs begins and ends.
"""
import bisect
import struct
from collections import namedtuple
from dataclasses import dataclass

from mtt_records import *  # noqa: F403 - the record kinds and helpers are part of this module's interface
from mtt_spans import Span, mtt_spans  # noqa: F401 - likewise

PAGE = 4096
CLOSED = 0x444E4543
RING = 1

HEADER = struct.Struct("<8sHHIQ16sQQQQQIIQQII")
HEADER_FIELDS = ("magic major minor header_bytes features uuid pid tick_period start_ticks start_mono_ns "
                 "start_real_ns clock policy budget_bytes ring_ns begin_cost_ticks header_crc").split()
CHUNK = struct.Struct("<4sIBBHIQQQIIQII")

Meta = namedtuple("Meta", "value is_json window")
Frame = namedtuple("Frame", "function file line address")
ThreadDef = namedtuple("ThreadDef", "os_tid pthread name")
Source = namedtuple("Source", "name device_type")
Module = namedtuple("Module", "start end file_offset path")


class TraceError(Exception):
    """The file is refused as a whole; `offset` says where."""

    def __init__(self, offset, message):
        super().__init__(f"offset {offset}: {message}")
        self.offset = offset


@dataclass(slots=True)
class Chunk:
    """A chunk whose header holds (section 2); `readable` is how many bytes of records are believed."""
    offset: int
    size: int
    stream: Stream
    sequence: int
    base_ticks: int
    first_ordinal: int
    epoch: int
    thread: int
    committed: int
    data_crc: int
    state: int
    readable: int = 0
    damaged: bool = False


@dataclass(slots=True)
class Epoch:
    """3.5: what WINDOW_OPEN and WINDOW_CLOSE say; None where the record is missing."""
    number: int
    open_ticks: int = None
    gate: int = None
    window: int = None
    step: int = None
    close_ticks: int = None
    close_action: int = None


class Trace:
    """One trace, from a path or from bytes. verify=False leaves out the checksums of the records."""

    def __init__(self, source, verify=True):
        if isinstance(source, (bytes, bytearray, memoryview)):
            self.data = bytes(source)
        else:
            with open(source, "rb") as file:
                self.data = file.read()
        self.verify, self.chunks, self._problems = verify, [], {}
        self.strings, self.locations, self.inputs, self.frames, self.stacks = {}, {}, {}, {}, {}
        self.threads, self.sources, self.modules, self.epochs, self.metadata = {}, {}, [], {}, {}
        self.warnings, self.steps, self.ignored_ends = [], [], 0
        self._last_ticks, self._pairs = None, {}
        self._read_header()
        self._scan_chunks()
        told = self.health[28] if self.closed else 0  # section 7
        if told and told != len(self.chunks):
            self._problem(1024 + 28 * 8, f"{told} chunks told, {len(self.chunks)} found")
        self._order_streams()
        self._read_definitions()
        self._read_control()

    @property
    def problems(self):
        """[(offset, message)] by offset; complete once every stream was read."""
        return sorted(self._problems)

    def _problem(self, offset, message):
        self._problems[offset, message] = True

    def _read_header(self):
        """Section 1. Another magic, major or unknown feature refuses the file; a bad checksum is a problem."""
        data = self.data
        if data[:8] != b"MTTRACE\n":
            raise TraceError(0, "not a trace")
        if len(data) < PAGE:
            raise TraceError(len(data), "the header page is cut off")
        self.header = dict(zip(HEADER_FIELDS, HEADER.unpack_from(data)))
        if self.header["major"] != 1:
            raise TraceError(8, f"major version {self.header['major']}")
        if self.header["features"] & M32:
            raise TraceError(16, f"unknown features {self.header['features'] & M32:#x}")
        if crc32c(data[:108]) != self.header["header_crc"]:
            self._problem(0, "file header checksum")
        first = self.header["header_bytes"]
        if first < PAGE or first % PAGE:
            self._problem(12, f"header_bytes {first}")
        self._first_chunk = PAGE if first < PAGE or first % PAGE else first
        self.health = list(struct.unpack_from("<32Q", data, 1024))
        mark, closed_crc, self.end_ticks, self.file_bytes, final_crc = struct.unpack_from("<IIQQI", data, 1280)
        self.closed = mark == CLOSED
        self.end_told = self.closed and crc32c(data[1288:1304]) == final_crc
        if not self.closed:
            if mark:
                self._problem(1280, f"closed is {mark:#x}")
            return
        if crc32c(data[1024:1284]) != closed_crc:
            self._problem(1024, "checksum of the health counters")
        if not self.end_told:
            self._problem(1288, "checksum of end_ticks and file_bytes")
        elif self.file_bytes != len(data):
            self._problem(1296, f"file_bytes {self.file_bytes}, the file has {len(data)}")

    def _scan_chunks(self):
        """Section 2: every chunk whose header holds, in file order; other pages are stepped over one by one."""
        at = self._first_chunk
        while at < len(self.data):
            page, size = self.data[at:at + PAGE], PAGE
            if page[:4] == b"MTCK":
                size = self._read_chunk(at, page)
            elif self.closed and page.strip(b"\0"):
                self._problem(at, "a page outside the chunks is not zero")
            at += size

    def _read_chunk(self, at, page):
        """Section 2: note the chunk at this offset and return the distance to the next."""
        if len(page) < 64 or crc32c(self.header["uuid"] + page[:12] + page[16:48]) != CHUNK.unpack_from(page)[5]:
            self._problem(at, "chunk header checksum")
            return PAGE
        _, size, kind, _, slot, _, *rest = CHUNK.unpack_from(page)
        if not size or size % PAGE or size > 1 << 30:
            self._problem(at, f"chunk size {size}")
            return PAGE
        if kind in BODY_WORDS:
            chunk = Chunk(at, size, Stream(kind, slot), *rest)
            self.chunks.append(chunk)
            fault = self._believe(chunk)
            if fault:
                chunk.damaged, chunk.readable = True, 0
                self._problem(at, fault)
        return size

    def _believe(self, chunk):
        """Section 2: how many bytes of the chunk's records are believed; a message where it is damaged."""
        room = min(chunk.size, len(self.data) - chunk.offset) - 64
        if room + 64 < chunk.size:
            self._problem(chunk.offset, "the chunk is cut off by the end of the file")
        fits = chunk.committed <= chunk.size - 64 and chunk.committed % 8 == 0
        if chunk.state > 2 or (self.closed and chunk.state != 2):
            return f"chunk state {chunk.state}"
        if not fits:
            return f"committed {chunk.committed} is impossible"
        chunk.readable = min(chunk.committed, room)
        if chunk.state == 2:
            at = chunk.offset
            if chunk.readable < chunk.committed:
                return "records are cut off by the end of the file"
            if self.verify and chunk.data_crc != crc32c(
                    self.data[at + 48:at + 56] + self.data[at + 64:at + 64 + chunk.readable]):
                return "checksum of the chunk's records"
        return None

    def _order_streams(self):
        """F5: the chunks of each stream by sequence; duplicates are left out, gaps reported where none may be."""
        self._streams = {}
        for chunk in self.chunks:
            same = self._streams.setdefault(chunk.stream, {})
            if chunk.sequence in same:
                self._problem(chunk.offset, f"sequence {chunk.sequence} occurs twice")
            else:
                same[chunk.sequence] = chunk
        for stream, by_sequence in self._streams.items():
            ordered = [by_sequence[s] for s in sorted(by_sequence)]
            self._streams[stream] = ordered
            may_gap = self.header["policy"] == RING and stream.kind in (THREAD_STREAM, SOURCE_STREAM)
            expected = 0
            for chunk in ordered:
                if chunk.sequence != expected and not may_gap:
                    self._problem(chunk.offset, f"sequence {chunk.sequence} where {expected} should be")
                expected = chunk.sequence + 1

    def streams(self):
        """The streams (kind, slot) that have a chunk, in order."""
        return sorted(self._streams)

    def records(self, stream):
        """The records of a stream in order, with what the stream's state says about each (3.1, 3.2)."""
        expected, owner, gap = 0, None, False
        for chunk in self._streams.get(Stream(*stream), ()):
            gap = gap or chunk.sequence != expected
            expected = chunk.sequence + 1
            decoder = Decoder(chunk, None if gap else owner)
            words = struct.unpack_from(f"<{chunk.readable // 8}Q", self.data, chunk.offset + 64)
            at = 0
            while at < len(words):
                offset = chunk.offset + 64 + 8 * at
                try:
                    body, end = extent(words, at)
                    record = decoder.decode(offset, words[at], words[body:end])
                except Impossible as fault:
                    self._problem(offset, str(fault))
                    break
                record.gap, gap, at = gap, False, end
                yield record
            gap = gap or chunk.damaged or at < len(words)
            owner = decoder.owner

    def _all(self, kind):
        for stream in self.streams():
            if stream.kind == kind:
                yield from self.records(stream)

    def _read_definitions(self):
        """Section 4. The first definition of an id counts, except for threads, where the last one does."""
        for r in self._all(DEFINITIONS):
            w = r.words
            if r.kind == DEF_MODULE:
                self.modules.append(Module(w[0], w[1], w[2], w[3] & M32))
            elif r.kind == DEF_SOURCE:
                self.sources.setdefault(r.arg, Source(w[0] & M32, w[0] >> 32))
            elif not r.arg:
                continue
            elif r.kind == DEF_STRING:
                located = r.aux & 1
                self.strings.setdefault(r.arg, text_of(w, 1 + located, w[0] & M32))
                if located:
                    self.locations.setdefault(r.arg, (w[1] & M32, w[1] >> 32))
            elif r.kind == DEF_INPUTS:
                self.inputs.setdefault(r.arg, decode_inputs(w))
            elif r.kind == DEF_FRAME:
                self.frames.setdefault(r.arg, Frame(w[0] & M32, w[0] >> 32, w[1], w[2]))
            elif r.kind == DEF_STACK:
                self.stacks.setdefault(r.arg, (w[0] & M32, w[0] >> 32))
            elif r.kind == DEF_THREAD:
                self.threads[r.arg] = ThreadDef(*w[:3])

    def _read_control(self):
        """Section 3.5, and the anchors that 3.1 keeps."""
        header = self.header
        anchors = [(header["start_ticks"], header["start_mono_ns"], header["start_real_ns"])]
        for r in self._all(CONTROL):
            w = r.words
            if r.kind == ANCHOR:
                anchors.append(w[:3])
            elif r.kind == WINDOW_OPEN:
                e = self._epoch(r.arg)
                e.open_ticks, e.gate, e.window, e.step = w[0], w[1], w[2] & M32, w[2] >> 32
            elif r.kind == WINDOW_CLOSE:
                e = self._epoch(r.arg)
                e.close_ticks, e.close_action = w[0], r.aux
            elif r.kind == STEP:
                self.steps.append((w[0], r.aux, w[1]))
            elif r.kind == TRACE_META:
                key_bytes, value_bytes = w[0] & M32, w[0] >> 32
                value = text_of(w, 1 + (key_bytes + 7) // 8, value_bytes)
                self.metadata[text_of(w, 1, key_bytes)] = Meta(value, r.aux == 1, r.arg)
            elif r.kind == WARNING:
                self.warnings.append((w[0], text_of(w, 2, w[1])))
        self.anchors = []
        for anchor in sorted(anchors, key=lambda a: a[0]):
            if self.anchors:
                ticks, mono, _ = self.anchors[-1]
                if (anchor[0] - ticks) * header["tick_period"] < 10**8 << 56 or anchor[1] <= mono:
                    continue
            self.anchors.append(anchor)
        self._anchor_ticks = [a[0] for a in self.anchors]

    def _epoch(self, number):
        return self.epochs.setdefault(number, Epoch(number))

    def ns(self, ticks):
        """3.1: CLOCK_MONOTONIC nanoseconds of a tick, exact."""
        after = bisect.bisect_right(self._anchor_ticks, ticks)
        if 0 < after < len(self.anchors):
            (t0, m0, _), (t1, m1, _) = self.anchors[after - 1:after + 1]
            return m0 + (ticks - t0) * (m1 - m0) // (t1 - t0)
        t0, m0, _ = self.anchors[max(after - 1, 0)]
        return m0 + ((ticks - t0) * self.header["tick_period"] >> 56)

    def real_ns(self, ticks):
        """3.1: CLOCK_REALTIME nanoseconds of a tick."""
        return self.ns(ticks) + self.anchors[0][2] - self.anchors[0][1]

    def clock_pairs(self, source):
        """3.4: the (time, ticks) pairs of a source that count."""
        if source not in self._pairs:
            kept = self._pairs[source] = []
            for r in self.records((SOURCE_STREAM, source)):
                if r.kind == CLOCK_PAIR and (not kept or (r.words[0] > kept[-1][0] and r.words[1] > kept[-1][1])):
                    kept.append(r.words[:2])
        return self._pairs[source]

    def source_ticks(self, source, time):
        """3.4: ticks of a time on the source's clock, rounded down; None where the source has no pair."""
        pairs = self.clock_pairs(source)
        if len(pairs) < 2:
            if not pairs or not self.header["tick_period"]:
                return None
            return pairs[0][1] + ((time - pairs[0][0]) << 56) // self.header["tick_period"]
        after = bisect.bisect_right([p[0] for p in pairs], time)
        first = min(max(after - 1, 0), len(pairs) - 2)
        (s0, t0), (s1, t1) = pairs[first:first + 2]
        return t0 + (time - s0) * (t1 - t0) // (s1 - s0)

    def last_ticks(self):
        """3.5: the last time seen in the trace: the latest that a control or thread record carries itself."""
        if self._last_ticks is None:
            self._last_ticks = max((r.ticks for kind in (CONTROL, THREAD_STREAM) for r in self._all(kind) if r.timed),
                                   default=self.header["start_ticks"])
        return self._last_ticks

    def epoch_end(self, number):
        """3.5: the tick at which an epoch ends."""
        epoch = self.epochs.get(number)
        if epoch is not None and epoch.close_ticks is not None:
            return epoch.close_ticks
        return self.end_ticks if self.end_told else self.last_ticks()

    def stack(self, node):
        """Section 4: the frame ids of a stack, innermost first."""
        frames, seen = [], set()
        while node in self.stacks and node not in seen:
            seen.add(node)
            node, frame = self.stacks[node]
            frames.append(frame)
        return frames
