#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch.FloatTensor and its like, Tensor.new, storages, _base; tests/peers/torch_types.py compares them with torch."""
import copy
import unittest
import warnings

import mindtorch_v2 as torch


class LegacyTypes(unittest.TestCase):
    def test_each_type_makes_tensors_of_its_dtype(self):
        for name, dtype in {"Float": torch.float32, "Double": torch.float64, "Half": torch.float16,
                            "BFloat16": torch.bfloat16, "Int": torch.int32, "Long": torch.int64,
                            "Byte": torch.uint8, "Bool": torch.bool}.items():
            kind = getattr(torch, f"{name}Tensor")
            made = kind([1, 0])
            self.assertIs(made.dtype, dtype)
            self.assertEqual(made.tolist(), [1, 0])
            self.assertIsInstance(made, kind)
            self.assertEqual(made.type(), f"torch.{name}Tensor")
            self.assertIs(torch.ones(2).type(kind).dtype, dtype)
            self.assertIs(kind(2, 3).dtype, dtype)
            self.assertEqual(kind(2, 3).shape, (2, 3))

    def test_isinstance_asks_type_and_device(self):
        x = torch.ones(2)
        self.assertIsInstance(torch.nn.Parameter(x), torch.FloatTensor)
        self.assertNotIsInstance(x, torch.LongTensor)
        self.assertNotIsInstance(x, torch.cuda.FloatTensor)
        self.assertNotIsInstance(3, torch.FloatTensor)

    def test_refused(self):
        for make, words in ((lambda: torch.LongTensor(torch.ones(2)), "expected a tensor of torch.int64"),
                            (lambda: torch.FloatTensor(3.0), "data must be a sequence"),
                            (lambda: torch.FloatTensor("ab"), "invalid data type 'str'"),
                            (lambda: torch.FloatTensor([1], dtype=torch.int), "unexpected keyword argument 'dtype'")):
            with self.assertRaisesRegex(TypeError, words):
                make()
        with self.assertRaisesRegex(ValueError, "invalid type: 'FloatTensor'"):
            torch.ones(1).type("FloatTensor")

    def test_new(self):
        i = torch.arange(3)
        self.assertEqual((i.new([1.5]).tolist(), i.new(2, 2).shape, i.new().numel()), ([1], (2, 2), 0))
        shared = i.new(i)
        shared[0] = 7
        self.assertEqual(i[0].item(), 7)

    def test_default_tensor_type(self):
        try:
            torch.set_default_tensor_type(torch.DoubleTensor)
            self.assertIs(torch.tensor(1.5).dtype, torch.float64)
        finally:
            torch.set_default_tensor_type("torch.FloatTensor")
        self.assertIs(torch.tensor(1.5).dtype, torch.float32)
        with self.assertRaisesRegex(TypeError, "only floating-point types"):
            torch.set_default_tensor_type(torch.LongTensor)


class Storages(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")
        self.x = torch.arange(6.0).reshape(2, 3)

    def test_views_share_it(self):
        x, row = self.x, self.x[1]
        self.assertEqual(row.untyped_storage().data_ptr(), x.untyped_storage().data_ptr())
        self.assertEqual(row.untyped_storage(), x.untyped_storage())
        self.assertNotEqual(x.clone().untyped_storage(), x.untyped_storage())
        self.assertEqual((row.storage().size(), row.storage().nbytes(), row.untyped_storage().size()), (6, 24, 24))

    def test_writes_reach_the_tensor(self):
        self.x.storage()[4] = 9
        self.assertEqual(self.x[1, 1].item(), 9)
        version = self.x._version
        self.x.untyped_storage().fill_(0)
        self.assertEqual(self.x.sum().item(), 0)
        self.assertGreater(self.x._version, version)

    def test_it_outlives_its_tensor(self):
        held = torch.ones(1000).storage()
        self.assertEqual(sum(held.tolist()), 1000)

    def test_copies(self):
        store = self.x.storage()
        other = copy.deepcopy(store)
        other.fill_(5)
        self.assertEqual(self.x.sum().item(), 15)
        self.assertEqual(store.long().tolist(), [0, 1, 2, 3, 4, 5])
        self.assertIsInstance(store, torch.FloatStorage)

    def test_resize_says_that_it_cannot(self):
        store = self.x.untyped_storage()
        self.assertIs(store.resize_(24), store)
        with self.assertRaisesRegex(RuntimeError, "a storage of 24 cannot get the size 48"):
            store.resize_(48)

    def test_set(self):
        y = torch.empty(0).set_(self.x.storage(), 1, (2, 2), (3, 1))
        self.assertEqual(y.tolist(), [[1, 2], [4, 5]])
        y[0, 0] = 8
        self.assertEqual(self.x[0, 1].item(), 8)

    def test_base(self):
        x = torch.ones(2, 3)
        self.assertIs(x[0]._base, x)
        self.assertIs(x[0][1:]._base, x)
        self.assertIsNone(x._base)
        self.assertIsNone(x[0].detach()._base)


if __name__ == "__main__":
    unittest.main()
