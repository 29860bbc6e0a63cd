"""The records of a `.mtt` trace: their layout, their checks and what a stream's state says about each.

Written from docs/format.md alone, as part of the second reader (mtt_reader.py). Section numbers are those of the
document.
"""
import struct
from collections import namedtuple
from dataclasses import dataclass, field

M32, M40, M64 = (1 << 32) - 1, (1 << 40) - 1, (1 << 64) - 1
DEFINITIONS, CONTROL, THREAD_STREAM, SOURCE_STREAM = 1, 2, 3, 4

BEGIN, BEGIN_X, END_X, INSTANT, COUNTER, FLOW, LAUNCH, ALLOC, TIME, EPOCH, THREAD = range(0x01, 0x0C)
RESERVED, LOST, META, NAME, INPUTS_INLINE, SCALARS, TENSORS, OPINFO, ATTACH, OUT_OF_MEMORY = range(0x0C, 0x16)
END, INPUTS, STACK, MEM_BEFORE, MEM_AFTER = range(0x80, 0x85)
DEF_STRING, DEF_INPUTS, DEF_FRAME, DEF_STACK, DEF_THREAD, DEF_SOURCE, DEF_MODULE = range(0x20, 0x27)
ACTIVITY, CLOCK_PAIR = 0x30, 0x31
ANCHOR, WINDOW_OPEN, WINDOW_CLOSE, STEP, TRACE_META, WARNING, LIMIT, UNRECORDED = range(0x40, 0x48)

# Fewest body words (w1 on) of each kind, per stream; a kind that is not here is unknown in that stream.
BODY_WORDS = {
    DEFINITIONS: {DEF_STRING: 1, DEF_INPUTS: 0, DEF_FRAME: 3, DEF_STACK: 1, DEF_THREAD: 3, DEF_SOURCE: 1,
                  DEF_MODULE: 4},
    CONTROL: {ANCHOR: 3, WINDOW_OPEN: 3, WINDOW_CLOSE: 1, STEP: 2, TRACE_META: 1, WARNING: 2, LIMIT: 4,
              UNRECORDED: 3},
    THREAD_STREAM: {BEGIN: 1, BEGIN_X: 3, END_X: 2, INSTANT: 1, COUNTER: 2, FLOW: 2, LAUNCH: 2, ALLOC: 3, TIME: 1,
                    EPOCH: 1, THREAD: 1, RESERVED: 1, LOST: 1, META: 1, NAME: 1, INPUTS_INLINE: 0, SCALARS: 0,
                    TENSORS: 0, OPINFO: 0, ATTACH: 1, OUT_OF_MEMORY: 3, END: 0, INPUTS: 0, STACK: 0,
                    MEM_BEFORE: 0, MEM_AFTER: 0},
    SOURCE_STREAM: {ACTIVITY: 6, CLOCK_PAIR: 2, LOST: 1, COUNTER: 2, INSTANT: 1, META: 1, NAME: 1},
}
# Kinds marked T: w1 is full ticks and becomes the stream's reference (3.1).
FULL_TICKS = {
    DEFINITIONS: frozenset(),
    CONTROL: frozenset((ANCHOR, WINDOW_OPEN, WINDOW_CLOSE, STEP, WARNING, LIMIT, UNRECORDED)),
    THREAD_STREAM: frozenset((BEGIN, BEGIN_X, END_X, INSTANT, COUNTER, FLOW, LAUNCH, TIME, EPOCH, THREAD,
                              OUT_OF_MEMORY)),
    SOURCE_STREAM: frozenset(),
}
SOURCE_TIMED = frozenset((ACTIVITY, CLOCK_PAIR, COUNTER, INSTANT))
PAYLOADS = frozenset((META, NAME, INPUTS_INLINE, SCALARS, TENSORS, OPINFO, INPUTS, STACK, MEM_BEFORE, MEM_AFTER))
EVENTS_WITH_PAYLOADS = frozenset((BEGIN, BEGIN_X, LAUNCH, INSTANT, ATTACH, ACTIVITY))

Stream = namedtuple("Stream", "kind slot")


class Impossible(Exception):
    """A record that no writer may have written."""


def _crc_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC_TABLE = _crc_table()


def crc32c(data):
    """CRC32C as section 1 defines it."""
    crc, table = M32, _CRC_TABLE
    for byte in data:
        crc = (crc >> 8) ^ table[(crc ^ byte) & 255]
    return crc ^ M32


def signed(word):
    """The word as a two's complement number."""
    return word - (1 << 64) if word >> 63 else word


def text_of(words, at, n):
    """Section 3: the text of n bytes that starts at words[at]. Bytes that are not UTF-8 become surrogates."""
    count = (n + 7) // 8
    return struct.pack(f"<{count}Q", *words[at:at + count])[:n].decode("utf-8", "surrogateescape")


def decode_inputs(words):
    """Section 5: an input list as nested Python lists whose leaves are tuples: ("none", type), ("tensor", type, sizes,
    strides or None), ("int", type), ("double", type), ("bool", type), ("string", type), ("keyword", name, value)."""
    top, at = [], 0
    unfinished = [[top, None, None]]  # items, values still to come, keyword's name
    while at < len(words):
        word, at = words[at], at + 1
        kind, dims, flags, high = word & 255, word >> 8 & 255, word >> 16 & 0xFFFF, word >> 32
        if kind == 7 or (kind == 2 and high):
            unfinished.append([[], 1, high] if kind == 7 else [[], high, None])
            continue
        if kind == 1:
            need = dims * (2 if flags & 1 else 1)
            if at + need > len(words):
                raise Impossible("input list: a tensor's shape is cut off")
            shape, at = [signed(w) for w in words[at:at + need]], at + need
            value = ("tensor", high, shape[:dims], shape[dims:] if flags & 1 else None)
        elif kind == 2:
            value = []
        elif kind < 7:
            value = ({0: "none", 3: "int", 4: "double", 5: "bool", 6: "string"}[kind], high)
        else:
            raise Impossible(f"input list: unknown kind {kind}")
        while True:  # put the value into the innermost unfinished list; that may finish it
            innermost = unfinished[-1]
            innermost[0].append(value)
            if innermost[1] is None:
                break
            innermost[1] -= 1
            if innermost[1]:
                break
            items, _, name = unfinished.pop()
            value = items if name is None else ("keyword", name, items[0])
    if len(unfinished) > 1:
        raise Impossible("input list: values are missing at its end")
    return top


def bind_scalars(values, words):
    """SCALARS (3.2): the decoded list with each scalar's value appended to its tuple; strings get their string id."""
    supply = iter(words)

    def bind(value):
        if isinstance(value, list):
            return [bind(v) for v in value]
        if value[0] == "keyword":
            return (*value[:2], bind(value[2]))
        convert = {"int": signed, "double": lambda w: struct.unpack("<d", struct.pack("<Q", w))[0],
                   "bool": bool, "string": int}.get(value[0])
        if convert is None:
            return value
        word = next(supply, None)
        if word is None:
            raise ValueError("SCALARS holds fewer values than the list has scalars")
        return (*value, convert(word))
    return bind(values)


def check_body(stream, kind, aux, words):
    """Raise Impossible unless the body holds what the tables of 3.2 to 4 lay out; more words are a later minor's."""
    def padded(n):
        return (n + 7) // 8

    need = BODY_WORDS[stream][kind]
    if len(words) < need:
        raise Impossible(f"kind {kind:#04x} is too short")
    if kind in (INPUTS_INLINE, DEF_INPUTS):
        decode_inputs(words)
    elif kind == TENSORS and len(words) % 4:
        raise Impossible("TENSORS: not four words each")
    elif kind in (NAME, WARNING) or (kind == META and aux == 5):
        need += padded(words[need - 1])
    elif kind == DEF_STRING:
        need += (aux & 1) + padded(words[0] & M32)
    elif kind == TRACE_META:
        need += padded(words[0] & M32) + padded(words[0] >> 32)
    elif kind in (SCALARS, OPINFO):
        need = aux if kind == SCALARS else bin(aux).count("1")
    if len(words) < need:
        raise Impossible(f"kind {kind:#04x}: what it announces does not fit in it")


def extent(words, at):
    """Section 3: (index of w1, index after the record) of the record at words[at]."""
    first = words[at]
    if first & 0x80:
        return at + 1, at + 1
    length, body = first >> 8 & 255, at + 1
    if length == 255:
        if at + 1 >= len(words):
            raise Impossible("the length word is missing")
        length, body = words[at + 1], at + 2
    if length < body - at or at + length > len(words):
        raise Impossible(f"length {length} is impossible")
    return body, at + length


@dataclass(slots=True)
class Record:
    """One record. `owner` is the event a payload belongs to; `gap` says that records before it are missing."""
    stream: Stream
    offset: int
    word0: int
    kind: int
    aux: int
    arg: int
    words: tuple
    epoch: int = 0
    thread: int = 0
    ticks: int = 0
    key: int = 0
    timed: bool = False  # the ticks are its own, not only the reference
    owner: object = field(default=None, repr=False)
    gap: bool = False

    @property
    def owner_key(self):
        """The key of the begin that a payload belongs to, 0 where there is none."""
        if self.owner is None:
            return 0
        return self.owner.words[0] if self.owner.kind == ATTACH else self.owner.key


class Decoder:
    """The state of a stream within a chunk (3.1, 3.2): reference, next ordinal, epoch, thread, payload owner."""

    def __init__(self, chunk, owner):
        source = chunk.stream.kind == SOURCE_STREAM  # whose times are on another clock (3.4)
        self.stream, self.reference, self.ordinal = chunk.stream, 0 if source else chunk.base_ticks, chunk.first_ordinal
        in_slot = chunk.stream.kind == THREAD_STREAM
        self.epoch, self.thread = (chunk.epoch, chunk.thread) if in_slot else (0, 0)
        self.owner = owner

    def decode(self, offset, word0, words):
        """The record, after the state was moved on by it."""
        kind, aux, arg, stream = word0 & 255, word0 >> 16 & 0xFFFF, word0 >> 32, self.stream.kind
        if kind == END:  # its bits mean something else
            aux, arg = 0, 0
        record = Record(self.stream, offset, word0, kind, aux, arg, words)
        known = kind in BODY_WORDS[stream]
        if known:
            check_body(stream, kind, aux, words)
            if stream == THREAD_STREAM:
                self._decode_event(record)
            record.timed = kind in FULL_TICKS[stream]
            if record.timed:
                self.reference = words[0]
        record.epoch, record.thread, record.ticks = self.epoch, self.thread, self.reference
        if known:
            self._own_time(record)
            self._payload(record)
        return record

    def _decode_event(self, record):
        """3.2: ordinals, keys, epoch and thread."""
        kind, words, slot = record.kind, record.words, self.stream.slot
        if kind in (BEGIN, LAUNCH) or (kind == BEGIN_X and not words[1]):
            record.key = slot << 40 | self.ordinal
            self.ordinal += 1
        elif kind in (BEGIN_X, END_X):
            record.key = words[1]
        elif kind == END:
            back = record.word0 >> 8 & 0xFFFF
            if not 1 <= back <= self.ordinal:
                raise Impossible(f"END of {back} begins back")
            record.key = slot << 40 | self.ordinal - back
        elif kind == EPOCH:
            self.epoch = record.arg
        elif kind == THREAD:
            self.thread = record.arg

    def _own_time(self, record):
        """3.1, 3.2, 3.4: the times that are not full ticks."""
        if self.stream.kind == SOURCE_STREAM and record.kind in SOURCE_TIMED:
            record.ticks = self.reference = record.words[0]
        elif self.stream.kind == THREAD_STREAM and record.kind == END:
            record.ticks, record.timed = self.reference + ((record.word0 >> 24) - self.reference & M40) & M64, True
        elif self.stream.kind == THREAD_STREAM and record.kind == ALLOC:
            record.ticks, record.timed = self.reference + record.arg & M64, True

    def _payload(self, record):
        """3.2: a payload follows its event or another payload of it; any other known record ends the row."""
        kind, owner = record.kind, self.owner
        if kind not in PAYLOADS:
            self.owner = record if kind in EVENTS_WITH_PAYLOADS or kind in (END, END_X) else None
            return
        if owner is not None and owner.kind in (END, END_X):
            fits = kind == MEM_AFTER or (kind == TENSORS and record.aux == 1)
        else:
            fits = kind != MEM_AFTER or (owner is not None and owner.kind == ATTACH)
        record.owner = owner if fits else None
