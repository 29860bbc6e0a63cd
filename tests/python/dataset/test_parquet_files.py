# SPDX-License-Identifier: Apache-2.0
"""Files of Parquet as libmtprof writes them, read back by a reader of the tests' own; what engines read of them is in
tools/peers/peer_query.sh."""
import os
import random
import unittest

import support_parquet
from support_results import ResultsTest, small_trace

import mtprof
from mtprof import _mtprof
from mtprof.dataset import folder
from mtprof.dataset.source import TABLES, Source
from mtprof.dataset.writer import write_trace

GROUP = 131072  # rows of a row group


def hash_of(data):
    """What content_hash() is defined to be."""
    seeds = (0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F, 0xE7037ED1A0B428DB)

    def fold(a, b):
        return (a * b ^ a * b >> 64) & 2**64 - 1

    lanes, padded = list(seeds), data + bytes(-len(data) % 32)
    for at in range(0, len(padded), 8):
        word, lane = int.from_bytes(padded[at:at + 8], "little"), at // 8 % 4
        lanes[lane] = (fold(lanes[lane] ^ word, seeds[lane]) + word) % 2**64
    both = fold(lanes[0] ^ len(data), lanes[1] ^ seeds[0])
    first = fold(both ^ lanes[2], lanes[3] ^ seeds[1])
    return f"{first:016x}{fold(first ^ lanes[3] ^ seeds[2], lanes[2] ^ both ^ seeds[3]):016x}"


class Files(ResultsTest):
    def written(self, columns, rows):
        """Rows through a file: {column: values}, row groups. columns: {name: Arrow's format}."""
        path = self.path("made.parquet")
        capsule = _mtprof.cells_arrow_stream(list(columns), "".join(columns.values()), rows)
        self.assertEqual(_mtprof.write_parquet(capsule, path), len(rows))
        with self.assertRaisesRegex(ValueError, "has been read already"):
            _mtprof.write_parquet(capsule, path)
        return support_parquet.read(path)

    def same(self, columns, rows):
        made, _ = self.written(columns, rows)
        for i, name in enumerate(columns):
            self.assertEqual(made[name], [row[i] for row in rows], name)

    def test_values_of_each_type(self):
        columns = {"number": "l", "narrow": "i", "real": "g", "text": "U", "bit": "b"}
        self.same(columns, [])
        self.same(columns, [[1, 2, 0.5, "a", True]])
        self.same(columns, [[None] * 5])
        self.same(columns, [[-2**63, -2**31, -1e300, "", False], [2**63 - 1, 2**31 - 1, 1e-300, "é\0x", True],
                            [None] * 5, [0, 0, 0.0, "long " * 100, True]])

    def test_numbers(self):
        """Few distinct ones and many, in runs and not, up and down, with nulls and without, of every width."""
        make = random.Random(20)
        for n in (1, 2, 7, 8, 9, 31, 32, 33, 127, 128, 129, 130, 256, 257, 1000, 4001):
            for width in (0, 1, 2, 3, 8, 9, 31, 32, 33, 47, 62, 63):
                values, last = [], 0
                while len(values) < n:
                    last = make.choice((last, make.getrandbits(width) - (1 << width >> 1)))
                    values += [make.choice((last, last, last, None if n % 2 else last))] * make.randrange(1, 20)
                values = values[:n]
                self.same({"number": "l"}, [[value] for value in values])
                narrow = [None if value is None else (value + 2**31) % 2**32 - 2**31 for value in values]
                self.same({"number": "i"}, [[value] for value in narrow])

    def test_row_groups(self):
        n = 2 * GROUP + 77
        rows = [[i * 1000 + i % 7, None if i % 3 else i, i // GROUP] for i in range(n)]
        made, groups = self.written({"time": "l", "some": "i", "group": "i"}, rows)
        self.assertEqual([group[3] for group in groups], [GROUP, GROUP, 77])
        self.assertEqual([made["time"], made["some"], made["group"]], [list(column) for column in zip(*rows)])
        for i, group in enumerate(groups):
            least, most = group[1][2][3][12][6], group[1][2][3][12][5]
            self.assertEqual((int.from_bytes(least, "little"), int.from_bytes(most, "little")), (i, i))
            nulls = sum(value is None for value in made["some"][i * GROUP:(i + 1) * GROUP])
            self.assertEqual(group[1][1][3][12][3], nulls)

    def test_what_is_refused(self):
        path = self.path("made.parquet")
        for columns, rows, text in (({"a": "x"}, [], "column a of cells has format 'x'"),
                                    ({str(i): "l" for i in range(17)}, [], "17 columns of cells, at most 16")):
            with self.assertRaisesRegex(ValueError, text):
                _mtprof.cells_arrow_stream(list(columns), "".join(columns.values()), rows)
        with self.assertRaisesRegex(ValueError, "a row must be a list of 1 values"):
            _mtprof.cells_arrow_stream(["a"], "l", [[1, 2]])
        with self.assertRaises(TypeError):
            _mtprof.cells_arrow_stream(["a"], "U", [[1]])
        with self.assertRaisesRegex(FileNotFoundError, "nowhere"):
            _mtprof.write_parquet(_mtprof.cells_arrow_stream(["a"], "l", [[1]]), self.path("nowhere/x"))
        self.assertFalse(os.path.exists(path))

    def test_a_trace(self):
        """Every table of the data set, and the events' columns against those of the model."""
        path = self.write_trace(small_trace())
        source = Source(path)
        manifest = write_trace(self.path("set"), source, "x")
        (one,) = folder.stored(self.path("set"))[0]
        for table in TABLES:
            made, _ = support_parquet.read(one.file(table))
            self.assertEqual(len(next(iter(made.values()))), manifest["tables"][table]["rows"], table)
        made, _ = support_parquet.read(one.file("events"))
        start, end = (list(memoryview(source.model.column(name))) for name in ("start_ns", "end_ns"))
        self.assertGreater(len(start), 0)
        self.assertEqual(made["event"], list(range(len(start))))
        self.assertEqual(made["start_ns"], start)
        self.assertEqual(made["dur_ns"], [b - a for a, b in zip(start, end)])
        self.assertEqual(made["self_ns"], list(memoryview(source.model.column("self_ns"))))
        self.assertEqual([name.replace("Step#4", "Step*") for name in made["name"]],
                         [event.name for event in mtprof.load(path).events()])
        (rank,) = zip(*support_parquet.read(one.file("ranks"))[0].values())
        self.assertEqual(list(rank), list(source.rank_row().values()))


class Hashes(ResultsTest):
    def test_every_byte_counts(self):
        make = random.Random(3)
        data = bytearray(make.randbytes((1 << 20) + 100))
        path = self.path("bytes")
        seen = set()
        for change in (None, 0, 31, 32, 5000, (1 << 20) - 1, 1 << 20, len(data) - 1):
            if change is not None:
                data[change] ^= 1
            with open(path, "wb") as file:
                file.write(data)
            seen.add(_mtprof.content_hash(path))
        for length in (0, 1, 2, 31, 32, 33, 64):
            with open(path, "wb") as file:
                file.write(bytes(length))
            seen.add(_mtprof.content_hash(path))
        self.assertEqual(len(seen), 15)
        self.assertTrue(all(len(one) == 32 for one in seen))

    def test_it_is_the_same_in_every_version(self):
        """Data sets have it: a file that was added by one version is known to the next."""
        make = random.Random(4)
        path = self.path("bytes")
        for length in (0, 5, 32, 33, 1000):
            data = make.randbytes(length)
            with open(path, "wb") as file:
                file.write(data)
            self.assertEqual(_mtprof.content_hash(path), hash_of(data))
        with self.assertRaises(FileNotFoundError):
            _mtprof.content_hash(self.path("gone"))


if __name__ == "__main__":
    unittest.main()
