# SPDX-License-Identifier: Apache-2.0
"""Data sets, samplers, batches, and the loader without workers (with them: test_data_workers.py)."""
import collections
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import mindtorch_v2 as torch  # noqa: E402
from mindtorch_v2.utils import data  # noqa: E402
from support_data import Numbers, SizedStream, Stream, values  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None


class Datasets(unittest.TestCase):
    def test_concat(self):
        both = Numbers(3) + Numbers(2)
        self.assertEqual((list(both), len(both), both[-1], both[-5]), ([0, 1, 2, 0, 1], 5, 1, 0))
        self.assertEqual(both.cumulative_sizes, [3, 5])
        with self.assertWarns(FutureWarning):
            self.assertEqual(both.cummulative_sizes, [3, 5])
        with self.assertRaisesRegex(ValueError, "absolute value of index should not exceed dataset length"):
            both[-6]
        with self.assertRaises(IndexError):
            both[5]
        with self.assertRaisesRegex(AssertionError, "datasets should not be an empty iterable"):
            data.ConcatDataset([])
        with self.assertRaisesRegex(AssertionError, "does not support IterableDataset"):
            data.ConcatDataset([Stream()])

    def test_chain(self):
        self.assertEqual(list(Stream(2) + Stream(3)), [0, 1, 0, 1, 2])
        self.assertEqual(len(SizedStream() + SizedStream()), 8)
        with self.assertRaisesRegex(AssertionError, "ChainDataset only supports IterableDataset"):
            list(data.ChainDataset([Numbers()]))

    def test_tensors(self):
        x, y = torch.arange(6).view(3, 2), torch.arange(3)
        dataset = data.TensorDataset(x, y)
        self.assertEqual(len(dataset), 3)
        a, b = dataset[1]
        self.assertEqual((a.tolist(), b.item()), ([2, 3], 1))
        self.assertEqual([t.tolist() for t in dataset[1:]], [[[2, 3], [4, 5]], [1, 2]])
        with self.assertRaisesRegex(AssertionError, "Size mismatch between tensors"):
            data.TensorDataset(x, torch.arange(4))

    def test_stack(self):
        a, b = Numbers(), data.Subset(Numbers(), range(10))
        self.assertEqual(data.StackDataset(a, b)[1], (1, 1))
        self.assertEqual(data.StackDataset(x=a, y=b).__getitems__([1, 2]),
                         [{"x": 1, "y": 1}, {"x": 2, "y": 2}])
        for text, make in (("At least one dataset", lambda: data.StackDataset()),
                           ("both types are given", lambda: data.StackDataset(a, b=b)),
                           ("Size mismatch between datasets", lambda: data.StackDataset(a, Numbers(3)))):
            with self.assertRaisesRegex(ValueError, text):
                make()

        class Short(Numbers):
            def __getitems__(self, indices):
                return indices[:1]

        with self.assertRaisesRegex(ValueError, "output size mismatch. Expected 2, got 1"):
            data.StackDataset(Short()).__getitems__([1, 2])

    def test_split(self):
        parts = data.random_split(Numbers(), [0.3, 0.33, 0.37])
        self.assertEqual([len(p) for p in parts], [4, 3, 3])
        self.assertEqual(sorted(i for p in parts for i in p), list(range(10)))
        with self.assertRaisesRegex(ValueError, "Sum of input lengths does not equal"):
            data.random_split(Numbers(), [3, 8])
        with self.assertRaisesRegex(ValueError, "Fraction at index 0 is not between 0 and 1"):
            data.random_split(Numbers(), [-0.3, 1.3])
        with self.assertWarnsRegex(UserWarning, "Length of split at index 2 is 0"):
            data.random_split(Numbers(2), [0.3, 0.3, 0.4])

        def split(seed):
            made = data.random_split(Numbers(), [5, 5], torch.Generator().manual_seed(seed))
            return list(made[0])

        self.assertEqual(split(1), split(1))
        self.assertNotEqual(split(1), split(2))

    def test_not_implemented(self):
        with self.assertRaisesRegex(NotImplementedError, "Dataset should implement __getitem__"):
            data.Dataset()[0]
        with self.assertRaises(TypeError):
            len(data.Dataset())
        self.assertTrue(data.Dataset[int])  # can be parametrised


class Samplers(unittest.TestCase):
    def test_random(self):
        sampler = data.RandomSampler(Numbers(50))
        first, second = list(sampler), list(sampler)
        self.assertEqual(sorted(first), list(range(50)))
        self.assertNotEqual(first, second)
        torch.manual_seed(7)
        a = list(sampler)
        torch.manual_seed(7)
        self.assertEqual(list(sampler), a)
        self.assertEqual(len(list(data.RandomSampler(Numbers(10), num_samples=25))), 25)
        drawn = list(data.RandomSampler(Numbers(3), True, 70))
        self.assertEqual((len(drawn), set(drawn)), (70, {0, 1, 2}))

    def test_own_generator(self):
        def order():
            generator = torch.Generator()
            generator.manual_seed(3)
            return list(data.RandomSampler(Numbers(30), generator=generator))

        self.assertEqual(order(), order())

    def test_subset_and_weights(self):
        self.assertEqual(sorted(data.SubsetRandomSampler([1, 5, 7])), [1, 5, 7])
        self.assertEqual(list(data.WeightedRandomSampler([0, 1.0, 0], 3)), [1, 1, 1])
        drawn = list(data.WeightedRandomSampler([1.0, 0.0, 3.0], 400))
        self.assertEqual(set(drawn), {0, 2})
        self.assertGreater(drawn.count(2), 200)
        self.assertEqual(sorted(data.WeightedRandomSampler([1.0, 2.0, 3.0], 3, False)), [0, 1, 2])

    def test_batches(self):
        for drop, batches in ((False, [[0, 1, 2], [3, 4, 5], [6]]), (True, [[0, 1, 2], [3, 4, 5]])):
            sampler = data.BatchSampler(range(7), 3, drop)
            self.assertEqual((list(sampler), len(sampler)), (batches, len(batches)))

    def test_distributed(self):
        def parts(n, ranks, **options):
            return [list(data.DistributedSampler(Numbers(n), ranks, r, **options)) for r in range(ranks)]

        self.assertEqual(parts(10, 3, shuffle=False), [[0, 3, 6, 9], [1, 4, 7, 0], [2, 5, 8, 1]])
        self.assertEqual(parts(10, 3, shuffle=False, drop_last=True), [[0, 3, 6], [1, 4, 7], [2, 5, 8]])
        self.assertEqual(parts(2, 5, shuffle=False), [[0], [1], [0], [1], [0]])
        shuffled = parts(12, 3, seed=5)
        self.assertEqual(sorted(i for part in shuffled for i in part), list(range(12)))
        sampler = data.DistributedSampler(Numbers(12), 3, 0, seed=4)
        sampler.set_epoch(1)
        self.assertEqual(list(sampler), shuffled[0])  # seed + epoch decide
        for n in range(1, 20):
            for drop in (False, True):
                sampler = data.DistributedSampler(Numbers(n), 3, 1, drop_last=drop)
                self.assertEqual(len(sampler), len(list(sampler)), n)

    def test_refused(self):
        cases = [
            (TypeError, "replacement should be a boolean value", lambda: data.RandomSampler(Numbers(), 5)),
            (ValueError, "num_samples should be a positive integer value, but got num_samples=0",
             lambda: data.RandomSampler([])),
            (ValueError, "but got num_samples=True", lambda: data.WeightedRandomSampler([1], True)),
            (ValueError, "weights should be a 1d sequence but given weights have shape \\(1, 2\\)",
             lambda: data.WeightedRandomSampler([[1, 2]], 1)),
            (ValueError, "but got batch_size=True", lambda: data.BatchSampler(range(3), True, False)),
            (ValueError, "but got drop_last=5", lambda: data.BatchSampler(range(3), 2, 5)),
            (ValueError, "Invalid rank 3, rank should be in the interval \\[0, 2\\]",
             lambda: data.DistributedSampler(Numbers(), 3, 3)),
            (ValueError, "group has not been initialized", lambda: data.DistributedSampler(Numbers())),
        ]
        for kind, text, make in cases:
            with self.subTest(text), self.assertRaisesRegex(kind, text):
                make()


class Collating(unittest.TestCase):
    def test_numbers_and_texts(self):
        made = data.default_collate([1, 2])
        self.assertEqual((made.dtype, made.tolist()), (torch.int64, [1, 2]))
        self.assertEqual(data.default_collate([1.0, 2.0]).dtype, torch.float64)
        self.assertEqual(data.default_collate([True, False]).dtype, torch.bool)
        self.assertEqual(data.default_collate(["a", "b"]), ["a", "b"])
        self.assertEqual(data.default_collate([b"a"]), [b"a"])

    def test_containers(self):
        pair = collections.namedtuple("pair", "a b")
        made = data.default_collate([pair(1, [2, 3]), pair(4, [5, 6])])
        self.assertIsInstance(made, pair)
        self.assertEqual((made.a.tolist(), [t.tolist() for t in made.b]), ([1, 4], [[2, 5], [3, 6]]))
        made = data.default_collate([collections.OrderedDict(a=1), collections.OrderedDict(a=2)])
        self.assertEqual((type(made), made["a"].tolist()), (collections.OrderedDict, [1, 2]))
        self.assertEqual([t.tolist() for t in data.default_collate([(1, 2), (3, 4)])], [[1, 3], [2, 4]])

    def test_numpy(self):
        if np is None:
            self.skipTest("NumPy is not installed")
        made = data.default_collate([np.ones(2, np.float32), np.zeros(2, np.float32)])
        self.assertEqual((made.dtype, made.tolist()), (torch.float32, [[1, 1], [0, 0]]))
        self.assertEqual(data.default_collate([np.float32(1)]).dtype, torch.float32)
        self.assertEqual(data.default_collate([np.array(1), np.array(2)]).tolist(), [1, 2])
        with self.assertRaisesRegex(TypeError, "found <U1"):
            data.default_collate([np.array("a")])
        converted = data.default_convert({"a": np.ones(1), "b": ("x", np.ones(1))})
        self.assertIsInstance(converted["a"], torch.Tensor)
        self.assertIsInstance(converted["b"][1], torch.Tensor)

    def test_refused(self):
        with self.assertRaisesRegex(TypeError, "found <class 'NoneType'>"):
            data.default_collate([None])
        with self.assertRaisesRegex(RuntimeError, "each element in list of batch should be of equal size"):
            data.default_collate([(1, 2), (3,)])
        with self.assertRaisesRegex(RuntimeError, "stack expects each tensor to be equal size"):
            data.default_collate([torch.ones(2), torch.ones(3)])

    def test_own_function_for_a_type(self):
        from mindtorch_v2.utils.data._utils.collate import collate

        class Odd:
            pass

        made = collate([{"a": Odd()}, {"a": Odd()}],
                       collate_fn_map={Odd: lambda batch, *, collate_fn_map=None: len(batch)})
        self.assertEqual(made, {"a": 2})


class Loading(unittest.TestCase):
    """In this process."""

    def test_batches(self):
        self.assertEqual(values(data.DataLoader(Numbers(), 4)), [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]])
        self.assertEqual(values(data.DataLoader(Numbers(), 4, drop_last=True)), [[0, 1, 2, 3], [4, 5, 6, 7]])
        self.assertEqual(values(data.DataLoader(Numbers(3), None)), [0, 1, 2])
        self.assertEqual(values(data.DataLoader(Stream(), 4)), [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]])
        self.assertEqual(values(data.DataLoader(Stream(), 4, drop_last=True)), [[0, 1, 2, 3], [4, 5, 6, 7]])
        self.assertEqual(values(data.DataLoader(Stream(3), None)), [0, 1, 2])
        self.assertEqual(values(data.DataLoader(Numbers(), batch_sampler=[[1, 2], [3]])), [[1, 2], [3]])
        self.assertEqual(values(data.DataLoader(Numbers(), 2, collate_fn=sum, sampler=[1, 2, 7])), [3, 7])
        self.assertEqual(values(data.DataLoader([])), [])

    def test_getitems(self):
        class Whole(Numbers):
            def __getitems__(self, indices):
                return [10 * i for i in indices]

        self.assertEqual(values(data.DataLoader(Whole(3), 2)), [[0, 10], [20]])

    def test_lengths(self):
        self.assertEqual(len(data.DataLoader(Numbers(), 3)), 4)
        self.assertEqual(len(data.DataLoader(Numbers(), 3, drop_last=True)), 3)
        self.assertEqual(len(data.DataLoader(SizedStream(), 3)), 2)
        with self.assertRaisesRegex(TypeError, "object of type 'Stream' has no len"):
            len(data.DataLoader(Stream()))
        loader = data.DataLoader(SizedStream(), 1)
        len(loader)
        with self.assertWarnsRegex(UserWarning, "Length of IterableDataset was reported to be 4"):
            list(loader)

    def test_shuffle(self):
        loader = data.DataLoader(Numbers(100), 100, shuffle=True)
        torch.manual_seed(1)
        a, b = values(loader)[0], values(loader)[0]
        torch.manual_seed(1)
        self.assertEqual(values(loader)[0], a)
        self.assertNotEqual(a, b)
        self.assertEqual(sorted(a), list(range(100)))

    def test_refused(self):
        numbers, stream = Numbers(), Stream()
        cases = [
            (dict(num_workers=-1), "num_workers option should be non-negative"),
            (dict(timeout=-1), "timeout option should be non-negative"),
            (dict(prefetch_factor=2), "prefetch_factor option could only be specified in multiprocessing"),
            (dict(num_workers=1, prefetch_factor=-2), "prefetch_factor option should be non-negative"),
            (dict(persistent_workers=True), "persistent_workers option needs num_workers > 0"),
            (dict(sampler=range(3), shuffle=True), "sampler option is mutually exclusive with shuffle"),
            (dict(batch_sampler=[[1]], batch_size=3), "batch_sampler option is mutually exclusive"),
            (dict(batch_sampler=[[1]], drop_last=True), "batch_sampler option is mutually exclusive"),
            (dict(batch_size=None, drop_last=True), "batch_size=None option disables auto-batching"),
            (dict(batch_size=0), "batch_size should be a positive integer value, but got batch_size=0"),
            (dict(multiprocessing_context="fork"), "can only be used with multi-process loading"),
            (dict(num_workers=1, multiprocessing_context="foo"), "but got multiprocessing_context='foo'"),
        ]
        for options, text in cases:
            with self.subTest(text), self.assertRaisesRegex(ValueError, text):
                data.DataLoader(numbers, **options)
        for options in (dict(shuffle=True), dict(sampler=range(3)), dict(batch_sampler=[[1]])):
            with self.assertRaisesRegex(ValueError, "DataLoader with IterableDataset: expected unspecified"):
                data.DataLoader(stream, **options)
        with self.assertRaisesRegex(TypeError, "but got multiprocessing_context=5"):
            data.DataLoader(numbers, num_workers=1, multiprocessing_context=5)
        loader = data.DataLoader(numbers)
        for name in ("batch_size", "dataset", "sampler", "drop_last"):
            with self.assertRaisesRegex(ValueError, f"{name} attribute should not be set after DataLoader"):
                setattr(loader, name, 3)

    def test_warnings(self):
        with self.assertWarnsRegex(UserWarning, "'pin_memory' argument is set as true"):
            values(data.DataLoader(Numbers(), pin_memory=True))
        with self.assertWarnsRegex(UserWarning, "will create 4096 worker processes in total"):
            data.DataLoader(Numbers(), num_workers=4096)

    def test_no_pickle_of_iterators(self):
        import pickle

        with self.assertRaises(NotImplementedError):
            pickle.dumps(iter(data.DataLoader(Numbers())))


if __name__ == "__main__":
    unittest.main(verbosity=2)  # reasons of skipped tests are shown
