# SPDX-License-Identifier: Apache-2.0
"""int8 and int16, which wrap at their width, and uint16, uint32 and uint64, which few ops take. Numbers and
refusals were recorded from torch 2.13."""

import copy
import io
import pickle
import unittest
from pathlib import Path

import mindtorch_v2 as torch

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "python" / "torch_2_13_integers.pt"
UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
DTYPES = (torch.int8, torch.int16, *UNSIGNED)


def ends(dtype):
    info = torch.iinfo(dtype)
    return [0, 1, info.max, info.min]


class Shorts(unittest.TestCase):
    """int8 and int16."""

    a = torch.tensor([100, -128, 7, -3], dtype=torch.int8)

    def test_arithmetic_wraps(self):
        a = self.a
        for got, expected in ((a + a, [-56, 0, 14, -6]), (a + 200, [44, 72, -49, -59]), (a * a, [16, 0, 49, 9]),
                              (-a, [-100, -128, -7, 3]), (a.abs(), [100, -128, 7, 3]), (a << 1, [-56, 0, 14, -6]),
                              (a << 9, [0, 0, 0, 0]), (a >> 9, [0, -1, 0, -1]), (~a, [-101, 127, -8, 2]),
                              (a ** 3, [64, 0, 87, -27]), (a // -1, [-100, -128, -7, 3]), (a % 5, [0, 2, 2, 2]),
                              (a.clamp(-5, 50), [50, -5, 7, -3]), (a.sum(dtype=torch.int8), -24)):
            self.assertIs(got.dtype, torch.int8)
            self.assertEqual(got.tolist(), expected)
        b = a.short() * 1000
        self.assertIs(b.dtype, torch.int16)
        self.assertEqual(b.tolist(), [-31072, 3072, 7000, -3000])

    def test_other_results(self):
        a = self.a
        for got, dtype, expected in ((a.sum(), torch.int64, -24), (a.prod(), torch.int64, 268800),
                                     (a.cumsum(0), torch.int64, [100, -28, -21, -24]),
                                     (a / 4, torch.float32, [25.0, -32.0, 1.75, -0.75]),
                                     (a.max(), torch.int8, 100), (a.argmin(), torch.int64, 1),
                                     (a > 0, torch.bool, [True, False, True, False]),
                                     (a == 200, torch.bool, [False] * 4),
                                     (a.sort().values, torch.int8, [-128, -3, 7, 100]),
                                     (a.unique(), torch.int8, [-128, -3, 7, 100]),
                                     (a[[2, 0]], torch.int8, [7, 100]), (a.view(torch.uint8), torch.uint8,
                                                                        [100, 128, 7, 253]),
                                     (torch.tensor([1], dtype=torch.uint8) + a[:1], torch.int16, [101])):
            self.assertIs(got.dtype, dtype)
            self.assertEqual(got.tolist(), expected)

    def test_products(self):
        a = torch.full((2, 3), 100, dtype=torch.int8)
        self.assertEqual((a @ a.t()).tolist(), [[48, 48], [48, 48]])
        self.assertEqual(torch.nn.functional.conv1d(a[None, :1], a[:1, None, :2]).tolist(), [[[32, 32]]])

    def test_writing(self):
        a = torch.zeros(4, dtype=torch.int16)
        a[1:3] = torch.tensor([70000, -1])
        a.index_add_(0, torch.tensor([3, 3]), torch.tensor([32767, 1], dtype=torch.int16))
        self.assertEqual(a.tolist(), [0, 4464, -1, -32768])
        a.scatter_add_(0, torch.tensor([0]), torch.tensor([5], dtype=torch.int16))
        self.assertEqual(a[0].item(), 5)
        for value in (40000, -32769, 1e9):
            with self.assertRaisesRegex(RuntimeError, "cannot be converted to type int16_t without overflow"):
                a.fill_(value)
            with self.assertRaisesRegex(RuntimeError, "cannot be converted to type int16 without overflow"):
                torch.tensor([value], dtype=torch.int16)

    def test_random(self):
        x = torch.randint(-128, 128, (2000,), dtype=torch.int8)
        self.assertLess(x.min().item(), -100)
        self.assertGreater(x.max().item(), 100)
        self.assertGreaterEqual(torch.empty(500, dtype=torch.int16).random_().min().item(), 0)
        self.assertEqual(torch.randperm(5, dtype=torch.int8).sort().values.tolist(), [0, 1, 2, 3, 4])
        with self.assertRaisesRegex(RuntimeError, "to - 1 is out of bounds for signed char"):
            torch.randint(0, 300, (3,), dtype=torch.int8)
        with self.assertRaisesRegex(RuntimeError, "without overflow"):
            torch.randperm(300, dtype=torch.int8)

    def test_not_for_indices(self):
        index = torch.tensor([1], dtype=torch.int16)
        with self.assertRaisesRegex(IndexError, "must be long, int, byte or bool"):
            _ = torch.zeros(3)[index]
        with self.assertRaisesRegex(RuntimeError, "ShortTensor"):
            torch.nn.functional.embedding(index, torch.zeros(3, 2))
        self.assertEqual(torch.arange(3)[index[0]].item(), 1)

    def test_legacy_names(self):
        self.assertEqual(self.a.type(), "torch.CharTensor")
        self.assertIsInstance(self.a.short(), torch.ShortTensor)
        self.assertIs(torch.CharTensor([1, 2]).dtype, torch.int8)
        self.assertIs(torch.ShortStorage(3).dtype, torch.int16)
        self.assertEqual(self.a.storage_type().__name__, "CharStorage")
        self.assertIs(torch.short, torch.int16)


class Unsigned(unittest.TestCase):
    """uint16, uint32 and uint64."""

    def test_what_is_there(self):
        for dtype in UNSIGNED:
            top = torch.iinfo(dtype).max
            x = torch.tensor([top, 0, 3], dtype=dtype)
            same = {"mul": x * 2, "and": x & 6, "or": x | 1, "xor": x ^ x, "where": torch.where(x == 3, x, 1), "cat":
                    torch.cat([x[:1], x]), "sort": x.sort().values, "index": x[torch.tensor([2, 0])], "flip": x.flip(0),
                    "floor": x.floor(), "pad": torch.nn.functional.pad(x, (0, 1), value=9), "unique": x.unique()}
            expected = {"mul": [top - 1, 0, 6], "and": [6, 0, 2], "or": [top, 1, 3], "xor": [0, 0, 0],
                        "where": [1, 1, 3], "cat": [top, top, 0, 3], "sort": [0, 3, top], "index": [3, top],
                        "flip": [3, 0, top], "floor": [top, 0, 3], "pad": [top, 0, 3, 9], "unique": [0, 3, top]}
            for name, got in same.items():
                with self.subTest(dtype=dtype, name=name):
                    self.assertIs(got.dtype, dtype)
                    self.assertEqual(got.tolist(), expected[name])
            self.assertEqual((x == x).tolist(), [True] * 3)
            self.assertEqual((bool(x.all()), bool(x.any())), (False, True))
            self.assertIs(x.sum().dtype, torch.int64)
            self.assertEqual(x.sum().item(), top + 3 if dtype is not torch.uint64 else 2)
            self.assertEqual((x / 1).tolist()[1:], [0.0, 3.0])
            self.assertEqual(x.double().tolist(), [float(top), 0.0, 3.0])
            self.assertEqual(x.signbit().tolist(), [False] * 3)
            self.assertFalse(x.is_signed())
            self.assertEqual(x[0].item(), top)

    def test_what_is_refused(self):
        for dtype in UNSIGNED:
            x = torch.ones(2, 2, dtype=dtype)
            for name, call in {"add": lambda x=x: x + 1, "sub": lambda x=x: x - x, "neg": lambda x=x: -x,
                               "lt": lambda x=x: x < 2, "max": lambda x=x: x.max(), "argmax": lambda x=x: x.argmax(),
                               "mm": lambda x=x: x @ x, "cumsum": lambda x=x: x.cumsum(0, dtype=x.dtype), "sum":
                               lambda x=x: x.sum(dtype=x.dtype), "floor_divide": lambda x=x: x // 2,
                               "index_add": lambda x=x: x.index_add(0, torch.tensor([0]), x[:1])}.items():
                title = str(dtype).removeprefix("torch.").replace("uint", "UInt")
                with self.subTest(dtype=dtype, name=name), self.assertRaisesRegex(
                        NotImplementedError, f"not implemented for '{title}'"):
                    call()

    def test_promotion(self):
        x = torch.ones(2, dtype=torch.uint16)
        for other in (torch.ones(2, dtype=torch.bool), torch.ones(2, dtype=torch.uint32), torch.ones(2).long()):
            for call in (lambda y=other: x * y, lambda y=other: y == x, lambda y=other: torch.cat([x, y])):
                with self.assertRaisesRegex(RuntimeError, "Promotion for uint16, uint32, uint64 types"):
                    call()
        self.assertIs((x * 2.5).dtype, torch.float32)
        self.assertIs((x * torch.ones(2, dtype=torch.float16)).dtype, torch.float16)
        self.assertIs((torch.ones(2).long() + x[0]).dtype, torch.int64)

    def test_large_numbers(self):
        large = 2**63 + 5
        x = torch.full((2,), large, dtype=torch.uint64)
        self.assertEqual((x.tolist(), x[0].item(), int(x[0]), bool(x[0])), ([large] * 2, large, large, True))
        self.assertEqual(torch.tensor([2**64 - 1], dtype=torch.uint64).tolist(), [2**64 - 1])
        self.assertEqual(torch.zeros(1, dtype=torch.uint64).fill_(-1).tolist(), [2**64 - 1])
        self.assertEqual(torch.zeros(1).fill_(2**63).tolist(), [2.0**63])
        self.assertEqual((x * 3).tolist(), [(large * 3) % 2**64] * 2)
        self.assertEqual((x == large).tolist(), [True, True])
        for dtype, value in ((torch.int64, 2**63), (torch.uint32, 2**32), (torch.uint64, -1.0), (torch.uint16, -65536)):
            with self.assertRaisesRegex(RuntimeError, "without overflow"):
                torch.zeros(1, dtype=dtype).fill_(value)
        with self.assertRaises(OverflowError):
            torch.tensor([2**64], dtype=torch.uint64)
        with self.assertRaises(OverflowError):
            torch.tensor([-1], dtype=torch.uint64)
        self.assertEqual(torch.tensor([-1], dtype=torch.uint16).tolist(), [65535])


class Files(unittest.TestCase):
    def test_torch_wrote_it(self):
        for options in ({}, {"mmap": True}, {"weights_only": False}):
            got = torch.load(GOLDEN, **options)
            for dtype in DTYPES:
                tensor = got["types"][str(dtype).removeprefix("torch.")]
                self.assertIs(tensor.dtype, dtype)
                self.assertEqual(tensor.tolist(), ends(dtype))
            self.assertEqual(got["part"].tolist(), ends(torch.uint32)[1:3])
            got["part"][0] = 77
            self.assertEqual(got["types"]["uint32"][1].item(), 77)  # a view
            self.assertIs(got["dtype"], torch.uint16)

    def test_copies(self):
        for dtype in DTYPES:
            x = torch.tensor(ends(dtype), dtype=dtype)
            file = io.BytesIO()
            torch.save([x, x[1:]], file)
            file.seek(0)
            whole, part = torch.load(file)
            self.assertEqual((whole.tolist(), part.tolist()), (ends(dtype), ends(dtype)[1:]))
            self.assertEqual(whole.storage().data_ptr(), part.storage().data_ptr())
            for again in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), torch.from_dlpack(x),
                          torch.frombuffer(bytearray(memoryview(x)), dtype=dtype)):
                self.assertIs(again.dtype, dtype)
                self.assertEqual(again.tolist(), ends(dtype))


if __name__ == "__main__":
    unittest.main()
