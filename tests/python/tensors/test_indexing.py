# SPDX-License-Identifier: Apache-2.0
"""x[key], x[key] = value, iteration: values against plain Python, torch's error messages, and the
ops a profile shows. tests/peers/torch_indexing.py holds random keys against torch itself."""
import gc
import sys
import threading
import unittest
import warnings

import mindtorch_v2 as torch


def numbers(*shape):
    count = 1
    for size in shape:
        count *= size
    return torch.tensor([float(i) for i in range(count)]).view(*shape)


class Views(unittest.TestCase):
    def test_integers_and_slices_share_memory(self):
        x = numbers(4, 5)
        for key in (1, -1, slice(1, 3), (slice(None), 2), (Ellipsis, 0), None, Ellipsis, (), (0, slice(None,
                                                                                                       None,
                                                                                                       2))):
            with self.subTest(key=key):
                y = x[key]
                self.assertIsNot(y, x)
                before = y.clone()
                x += 1
                self.assertTrue(torch.equal(y, before + 1))

    def test_values(self):
        x = numbers(3, 4)
        rows = [[float(4 * i + k) for k in range(4)] for i in range(3)]
        self.assertEqual(x[1].tolist(), rows[1])
        self.assertEqual(x[-1, -1].item(), 11.0)
        self.assertEqual(x[1:].tolist(), rows[1:])
        self.assertEqual(x[:, 1].tolist(), [1.0, 5.0, 9.0])
        self.assertEqual(x[::2, 1::2].tolist(), [[1.0, 3.0], [9.0, 11.0]])
        self.assertEqual(x[..., -1].tolist(), [3.0, 7.0, 11.0])
        self.assertEqual(x[-100:100].tolist(), rows)
        self.assertEqual(x[2:1].shape, (0, 4))

    def test_new_dimensions(self):
        x = numbers(2, 3)
        self.assertEqual(x[None].shape, (1, 2, 3))
        self.assertEqual(x[:, None].shape, (2, 1, 3))
        self.assertEqual(x[..., None].shape, (2, 3, 1))
        self.assertEqual(x[None, 0, None].shape, (1, 1, 3))
        self.assertEqual(torch.tensor(5.0)[None].shape, (1,))
        self.assertEqual(torch.tensor(5.0)[...].shape, ())

    def test_a_gradient_flows_through(self):
        x = numbers(3, 4).requires_grad_()
        (x[1] * 2).sum().backward()
        self.assertEqual(x.grad.tolist(), [[0.0] * 4, [2.0] * 4, [0.0] * 4])

    def test_things_with_index(self):
        class Two:
            def __index__(self):
                return 2

        with self.assertRaises(IndexError):
            numbers(4)[Two()]  # torch takes int only, though slices take __index__
        self.assertEqual(numbers(4)[Two():].tolist(), [2.0, 3.0])
        self.assertEqual(numbers(4)[torch.tensor(2):].tolist(), [2.0, 3.0])


class Picks(unittest.TestCase):
    def test_masks(self):
        x = numbers(2, 3)
        self.assertEqual(x[x > 2].tolist(), [3.0, 4.0, 5.0])
        self.assertEqual(x[torch.tensor([False, True])].tolist(), [[3.0, 4.0, 5.0]])
        self.assertEqual(x[:, torch.tensor([True, False, True])].tolist(), [[0.0, 2.0], [3.0, 5.0]])
        self.assertEqual(x[[True, False]].tolist(), [[0.0, 1.0, 2.0]])
        self.assertEqual(x[True].shape, (1, 2, 3))
        self.assertEqual(x[False].shape, (0, 2, 3))
        self.assertEqual(x[torch.tensor(True)].shape, (1, 2, 3))
        self.assertEqual(x[torch.zeros(2, 3, dtype=torch.bool)].shape, (0,))

    def test_indices(self):
        x = numbers(3, 4)
        i = torch.tensor([2, 0])
        self.assertEqual(x[i].tolist(), [x[2].tolist(), x[0].tolist()])
        self.assertEqual(x[i.int()].tolist(), x[i].tolist())
        self.assertEqual(x[[2, 0]].tolist(), x[i].tolist())
        self.assertEqual(x[range(2)].tolist(), x[:2].tolist())
        self.assertEqual(x[i, torch.tensor([1, 3])].tolist(), [9.0, 3.0])
        self.assertEqual(x[i, 1].tolist(), [9.0, 1.0])
        self.assertEqual(x[:, i].shape, (3, 2))
        self.assertEqual(x[i[:, None], torch.tensor([1, 3])].tolist(), [[9.0, 11.0], [1.0, 3.0]])
        self.assertEqual(x[torch.tensor(1)].tolist(), x[1].tolist())
        self.assertEqual(x[[]].shape, (0, 4))

    def test_indices_apart_stand_in_front(self):
        x = numbers(2, 3, 4)
        i = torch.tensor([0, 1, 1])
        self.assertEqual(x[i, :, i].shape, (3, 3))
        self.assertEqual(x[:, i, i].shape, (2, 3))
        self.assertEqual(x[i, None, :, i].shape[0], 3)

    def test_a_list_of_sequences_is_a_tuple_with_a_warning(self):
        x = numbers(3, 4)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.assertEqual(x[[[0, 1], [1, 2]]].tolist(), [1.0, 6.0])
        self.assertIn("non-tuple sequence", str(caught[0].message))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with self.assertRaises(UserWarning):
                x[[[0, 1], [1, 2]]]

    def test_numpy(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not installed")
        x = numbers(3, 4)
        self.assertEqual(x[numpy.int64(1)].tolist(), x[1].tolist())
        self.assertEqual(x[numpy.array([2, 0])].tolist(), x[[2, 0]].tolist())
        self.assertEqual(x[numpy.array([True, False, True])].tolist(), x[[0, 2]].tolist())
        self.assertEqual(x[numpy.array([2, 0], dtype="int32")].tolist(), x[[2, 0]].tolist())
        self.assertEqual(x[:, numpy.array([3])].shape, (3, 1))
        x[numpy.array([0])] = 7
        self.assertEqual(x[0].tolist(), [7.0] * 4)

    def test_gradients_add_up(self):
        x = numbers(3).requires_grad_()
        x[torch.tensor([0, 0, 2])].sum().backward()
        self.assertEqual(x.grad.tolist(), [2.0, 0.0, 1.0])


class Assignments(unittest.TestCase):
    def test_numbers(self):
        x = numbers(2, 3)
        x[0] = 9
        x[1, 1] = 2.5
        x[:, 2] = True
        self.assertEqual(x.tolist(), [[9.0, 9.0, 1.0], [3.0, 2.5, 1.0]])
        x[...] = 0
        x[None] = 1
        self.assertEqual(x.tolist(), [[1.0] * 3] * 2)
        i = torch.tensor([1, 2, 3])
        i[0] = 7.9
        self.assertEqual(i.tolist(), [7, 2, 3])

    def test_tensors_are_broadcast(self):
        x = numbers(2, 3)
        x[0] = torch.tensor([1.0, 2.0, 3.0])
        x[1] = torch.tensor([5.0])
        self.assertEqual(x.tolist(), [[1.0, 2.0, 3.0], [5.0] * 3])
        x[:] = torch.ones(1, 1, 2, 3)
        self.assertEqual(x.tolist(), [[1.0] * 3] * 2)
        x[0] = torch.tensor([1, 2, 3])  # another type is converted
        self.assertEqual(x[0].tolist(), [1.0, 2.0, 3.0])

    def test_masks_and_indices(self):
        x = numbers(2, 3)
        x[x > 3] = -1
        self.assertEqual(x.tolist(), [[0.0, 1.0, 2.0], [3.0, -1.0, -1.0]])
        x[torch.tensor([0, 1]), torch.tensor([0, 2])] = torch.tensor([10.0, 20.0])
        self.assertEqual(x.tolist(), [[10.0, 1.0, 2.0], [3.0, -1.0, 20.0]])
        x[[1]] = torch.zeros(1, 3)
        self.assertEqual(x[1].tolist(), [0.0] * 3)
        x[True] = 4
        x[False] = 5
        self.assertEqual(x.tolist(), [[4.0] * 3] * 2)

    def test_overlap_with_itself(self):
        x = numbers(4)
        x[1:] = x[:-1].clone()
        self.assertEqual(x.tolist(), [0.0, 0.0, 1.0, 2.0])

    def test_version_and_graph(self):
        x = numbers(3)
        before = x._version
        x[0] = 1
        self.assertGreater(x._version, before)
        w = numbers(3).requires_grad_()
        y = w * 2
        y[0] = 0
        y.sum().backward()
        self.assertEqual(w.grad.tolist(), [0.0, 2.0, 2.0])
        leaf = torch.tensor([1.0, 2.0], requires_grad=True)
        with self.assertRaisesRegex(RuntimeError, "view of a leaf"):
            leaf[0] = 1

    def test_refused(self):
        x = numbers(2, 3)
        for value, name in (("a", "str"), (None, "NoneType"), ([1.0], "list"), ((1,), "tuple")):
            with self.assertRaisesRegex(TypeError, f"can't assign a {name} to a torch.FloatTensor"):
                x[0] = value
        with self.assertRaisesRegex(RuntimeError, "expanded size of the tensor"):
            x[0] = torch.ones(7)
        with self.assertRaisesRegex(RuntimeError, "shape mismatch"):
            x[torch.tensor([0])] = torch.ones(7)
        with self.assertRaisesRegex(RuntimeError, "dtypes match"):
            x[torch.tensor([0])] = torch.ones(3, dtype=torch.float64)
        with self.assertRaisesRegex(TypeError, "does not support deleting items"):
            del x[0]
        with self.assertRaisesRegex(RuntimeError, "type uint8 without overflow"):
            torch.zeros(2, dtype=torch.uint8)[0] = 300
        self.assertEqual(x.tolist(), [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])


class Errors(unittest.TestCase):
    def test_words(self):
        x = torch.zeros(4, 5, 6)
        scalar = torch.tensor(3.0)
        cases = [
            (x, 4, IndexError, "index 4 is out of bounds for dimension 0 with size 4"),
            (x, -5, IndexError, "index -5 is out of bounds for dimension 0 with size 4"),
            (x, (0, 7), IndexError, "index 7 is out of bounds for dimension 1 with size 5"),
            (x, (None, 9), IndexError, "index 9 is out of bounds for dimension 1 with size 4"),
            (x, (0, 0, 0, 0), IndexError, "too many indices for tensor of dimension 3"),
            (x, slice(None, None, -1), ValueError, "step must be greater than zero"),
            (x, slice(None, None, 0), ValueError, "slice step cannot be zero"),
            (x, 1.5, IndexError, "only integers, slices .* are valid indices .got float."),
            (x, {}, IndexError, "got dict"),
            (x, object(), IndexError, "got object"),
            (x, "a", TypeError, "invalid data type 'str'"),
            (x, torch.tensor([0.5]), IndexError, "must be long, int, byte or bool"),
            (x, torch.tensor([9]), IndexError, "index 9 is out of bounds for dimension 0 with size 4"),
            (x, torch.tensor([True, False]), IndexError,
             r"shape of the mask \[2\] at index 0 does not match"),
            (x, (torch.tensor([0, 1]), torch.tensor([0, 1, 2])), IndexError, "could not be broadcast"),
            (x, slice(1, "a"), TypeError, "slice indices must be integers"),
            (scalar, 0, IndexError, "invalid index of a 0-dim tensor"),
            (scalar, slice(None), IndexError, "cannot be applied to a 0-dim tensor"),
            (x, 2 ** 70, IndexError, "cannot fit"),
        ]
        for tensor, key, kind, words in cases:
            with self.subTest(key=key):
                with self.assertRaisesRegex(kind, words):
                    tensor[key]

    def test_nothing_is_kept_by_errors(self):
        x = torch.zeros(3, 4)
        keys = [(0, "a"), (torch.tensor([1]), 9), (torch.tensor([7]),), [0, 9], [1, None, "b"], (0, 0, 0)]
        warnings.simplefilter("ignore")
        self.addCleanup(warnings.resetwarnings)
        for key in keys:
            with self.assertRaises((IndexError, TypeError, ValueError)):
                x[key]
        gc.collect()
        before = torch._C._tensors_alive()
        for _ in range(200):
            for key in keys:
                try:
                    x[key]
                except (IndexError, TypeError, ValueError):
                    pass
                try:
                    x[key] = 1
                except (IndexError, TypeError, ValueError):
                    pass
        gc.collect()
        self.assertEqual(torch._C._tensors_alive(), before)


class Iteration(unittest.TestCase):
    def test_rows(self):
        x = numbers(3, 2)
        rows = list(x)
        self.assertEqual([row.tolist() for row in rows], [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
        rows[0][0] = 9
        self.assertEqual(x[0, 0].item(), 9.0)
        a, b, c = x
        self.assertEqual(c.tolist(), [4.0, 5.0])
        self.assertEqual(reversed(numbers(3)).tolist(), [2.0, 1.0, 0.0])  # a tensor, as torch has it
        self.assertEqual(list(torch.zeros(0, 3)), [])

    def test_no_dimensions(self):
        with self.assertRaisesRegex(TypeError, "iteration over a 0-d tensor"):
            iter(torch.tensor(1.0))
        with self.assertRaisesRegex(TypeError, "len.. of a 0-d tensor"):
            len(torch.tensor(1.0))

    def test_a_list_that_changes_itself(self):
        class Nasty(list):
            pass

        items = Nasty([0, 1])

        class Index:
            def __index__(self):
                items.clear()
                return 0

        items.append(Index())
        with self.assertRaises((IndexError, RuntimeError, ValueError, TypeError)):
            numbers(4)[items]


class Profile(unittest.TestCase):
    """The rows torch shows, in its order; recorded from torch 2.13."""

    GET = [
        (0, "select"), (slice(1, 3), "slice"), (slice(None), "slice"), ((slice(None), 0), "select"),
        ((Ellipsis, 0), "select"), (Ellipsis, "alias"), ((), "alias"), (None, "unsqueeze"),
        (True, "unsqueeze empty fill_ index"), (False, "unsqueeze empty index"),
        ([0, 1], "empty to lift_fresh index"),
        ((0, slice(1, 3), None), "select slice unsqueeze"), ((0, slice(0, 5)), "select"),
        ((0, [1, 2]), "select empty to lift_fresh index"),
    ]
    SET = [
        (0, 1, "lift_fresh select fill_"), (slice(None), 1, "lift_fresh fill_"), (Ellipsis, 1,
                                                                                  "lift_fresh fill_"),
        ((0, 0, 0), 1, "lift_fresh select select select copy_"), (None, 1, "lift_fresh unsqueeze fill_"),
        (True, 1, "lift_fresh unsqueeze fill_"), ([0], 1, "lift_fresh empty to lift_fresh index_put_"),
    ]

    def shown(self, action):
        try:
            from mindtorch_v2.profiler import ProfilerActivity, profile
        except ImportError as error:
            self.skipTest(f"no profiler: {error}")
        with profile(activities=[ProfilerActivity.CPU]) as prof:
            action()
        return " ".join(e.name.removeprefix("aten::") for e in prof.events() if e.cpu_parent is None)

    def test_get(self):
        x = torch.zeros(4, 5, 6)
        for key, names in self.GET:
            with self.subTest(key=key):
                self.assertEqual(self.shown(lambda: x[key]), names)
        index, mask = torch.tensor([0, 2]), torch.tensor([True, False, True, True])
        self.assertEqual(self.shown(lambda: x[index]), "index")
        self.assertEqual(self.shown(lambda: x[mask]), "index")
        self.assertEqual(self.shown(lambda: x[0, index]), "select index")
        self.assertEqual(self.shown(lambda: list(x)), "unbind")
        two = torch.tensor(2)
        self.assertEqual(self.shown(lambda: x[two]), "item select")

    def test_set(self):
        x = torch.zeros(4, 5, 6)
        for key, value, names in self.SET:
            with self.subTest(key=key):
                self.assertEqual(self.shown(lambda: x.__setitem__(key, value)), names)
        row, index = torch.ones(5, 6), torch.tensor([0, 2])
        self.assertEqual(self.shown(lambda: x.__setitem__(0, row)), "select copy_")
        self.assertEqual(self.shown(lambda: x.__setitem__(0, row[0])), "select select view expand copy_")
        self.assertEqual(self.shown(lambda: x.__setitem__(index, row)), "index_put_")


class Threads(unittest.TestCase):
    def test_many_read_one_tensor(self):
        x = numbers(64, 64)
        index = torch.tensor(list(range(0, 64, 3)))
        want = x[index].tolist()
        wrong = []

        def read():
            for _ in range(200):
                if x[index].tolist() != want or x[3, 5].item() != 197.0:
                    wrong.append(1)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class References(unittest.TestCase):
    def test_flat(self):
        x = numbers(8, 8)
        key = (torch.tensor([1, 2]), slice(1, 3))
        value = torch.ones(2, 2)

        def work():
            for _ in range(300):
                x[0], x[1:3], x[key], x[[0, 1]], x[None, ..., True]
                x[key] = value
                x[0] = 1
                list(x)

        work()
        gc.collect()
        before = (torch._C._tensors_alive(), sys.getrefcount(x), sys.getrefcount(key[0]),
                  sys.getrefcount(value),
                  sys.getrefcount(torch.Tensor))
        work()
        gc.collect()
        after = (torch._C._tensors_alive(), sys.getrefcount(x), sys.getrefcount(key[0]),
                 sys.getrefcount(value),
                 sys.getrefcount(torch.Tensor))
        self.assertEqual(after, before)


if __name__ == "__main__":
    unittest.main()
