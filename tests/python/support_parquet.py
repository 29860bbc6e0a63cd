# SPDX-License-Identifier: Apache-2.0
"""A reader of Parquet in plain Python, written from the format's definition: flat columns, no compression, the
encodings that our files have. For tests where no engine is installed."""
import struct

PLAIN, RLE, DELTA, DICTIONARY = 0, 3, 5, 8
FORMATS = {1: ("<i", 4), 2: ("<q", 8), 5: ("<d", 8)}  # of Parquet's types
TEXTS, BOOLS, UNSIGNED = 6, 0, (11, 12, 13, 14)


class Bytes:
    """A place in bytes, and what Thrift's compact protocol has there."""

    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def take(self, n):
        self.at += n
        return self.data[self.at - n:self.at]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def zigzag(self):
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def value(self, kind):
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self.byte()
        if kind in (4, 5, 6):
            return self.zigzag()
        if kind == 8:
            return bytes(self.take(self.varint()))
        if kind == 9:
            head = self.byte()
            n = self.varint() if head >> 4 == 15 else head >> 4
            return [self.value(head & 15) for _ in range(n)]
        if kind == 12:
            return self.struct()
        raise ValueError(f"a Thrift type {kind} at {self.at}")

    def struct(self):
        """{field's number: value}"""
        found, number = {}, 0
        while head := self.byte():
            number = number + (head >> 4) if head >> 4 else self.zigzag()
            found[number] = self.value(head & 15)
        return found


def runs(place, width, n):
    """n numbers of runs and packed groups."""
    found = []
    while len(found) < n:
        head = place.varint()
        if head & 1:
            bits = int.from_bytes(place.take((head >> 1) * width), "little")
            found += [bits >> i * width & (1 << width) - 1 for i in range((head >> 1) * 8)]
        else:
            found += [int.from_bytes(place.take((width + 7) // 8), "little")] * (head >> 1)
    return found[:n]


def deltas(place, bits):
    """Numbers as blocks of differences."""
    block, groups, n, value = place.varint(), place.varint(), place.varint(), place.zigzag()
    found, group = [value], block // groups
    while len(found) < n:
        least, widths = place.zigzag(), place.take(groups)
        for width in widths:
            if len(found) >= n:
                break
            packed = int.from_bytes(place.take(group * width // 8), "little")
            for i in range(group):
                value += least + (packed >> i * width & (1 << width) - 1)
                value = (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
                found.append(value)
    return found[:n]


def plain(place, kind, n):
    if kind == TEXTS:
        return [place.take(struct.unpack("<I", place.take(4))[0]).decode() for _ in range(n)]
    if kind == BOOLS:
        bits = int.from_bytes(place.take((n + 7) // 8), "little")
        return [bool(bits >> i & 1) for i in range(n)]
    code, size = FORMATS[kind]
    return [struct.unpack(code, place.take(size))[0] for _ in range(n)]


def page(data, at, kind, optional, dictionary):
    """(the values of a data page, or a dictionary, where the next page is)."""
    place = Bytes(data, at)
    head = place.struct()
    end = place.at + head[3]
    if head[1] == 2:
        return plain(place, kind, head[7][1]), end
    n, encoding = head[5][1], head[5][2]
    levels = [1] * n
    if optional:
        length = struct.unpack("<I", place.take(4))[0]
        levels = runs(Bytes(data, place.at), 1, n)
        place.at += length
    present = sum(levels)
    if present == 0:
        values = []
    elif encoding == DICTIONARY:
        values = [dictionary[i] for i in runs(place, place.byte(), present)]
    elif encoding == DELTA:
        values = deltas(place, 32 if kind == 1 else 64)
    else:
        values = plain(place, kind, present)
    if len(values) != present or place.at > end:
        raise ValueError(f"{len(values)} values of {present}, at {place.at} of {end}")
    values = iter(values)
    return [next(values) if level else None for level in levels], end


def read(path):
    """({column: values}, the row groups' descriptions)."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:4] != b"PAR1" or data[-4:] != b"PAR1":
        raise ValueError("no Parquet")
    length = struct.unpack("<I", data[-8:-4])[0]
    about = Bytes(data, len(data) - 8 - length).struct()
    schema = about[2][1:]
    columns = {one[4].decode(): [] for one in schema}
    for group in about[4]:
        for one, chunk in zip(schema, group[1]):
            meta, dictionary = chunk[3], None
            if 11 in meta:
                dictionary, at = page(data, meta[11], meta[1], one[3], None)
                assert at == meta[9]
            values, _ = page(data, meta[9], meta[1], one[3], dictionary)
            bits = 32 if meta[1] == 1 else 64
            if one.get(6) in UNSIGNED:
                values = [None if value is None else value % (1 << bits) for value in values]
            assert len(values) == group[3] == meta[5], (one, len(values), group[3])
            columns[one[4].decode()] += values
    assert all(len(values) == about[3] for values in columns.values())
    return columns, about[4]
