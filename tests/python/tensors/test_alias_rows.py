#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch's other names, operators' rows and small composites from Python: what profiles show of them, objects
that stay themselves in place, gradients through them."""
import unittest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import ProfilerActivity, profile


def shown(call):
    """Names of what a call records, nested: [("__and__", [("bitwise_and", [])])]."""
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        call()

    def tree(events):
        return [(event.name.removeprefix("aten::"), tree(event.cpu_children)) for event in events]
    return tree([event for event in prof.events() if event.cpu_parent is None])


def chain(*names):
    return [(names[0], chain(*names[1:]))] if names else []


class Shown(unittest.TestCase):
    def test_chains(self):
        x, i, s = torch.ones(2, 3), torch.tensor([1, 2]), torch.tensor(1.0)
        for call, names in (
                (lambda: bool(s), ("is_nonzero", "item", "_local_scalar_dense")),
                (lambda: i & i, ("__and__", "bitwise_and")), (lambda: i | 1, ("__or__", "bitwise_or")),
                (lambda: 1 ^ i, ("bitwise_xor",)), (lambda: i.__iand__(i), ("__iand__", "bitwise_and_")),
                (lambda: x.T, ("numpy_T", "permute")), (lambda: x.mT, ("mT", "transpose")),
                (lambda: torch.max(x, x), ("max", "maximum")), (lambda: x.min(x), ("min", "minimum")),
                (lambda: torch.multiply(x, 2), ("multiply", "mul")),
                (lambda: x.subtract_(x), ("subtract_", "sub_")),
                (lambda: torch.clip(x, 0, 1), ("clip", "clamp")),
                (lambda: torch.concat([x, x]), ("concat", "cat")),
                (lambda: x.new_empty(2), ("new_empty", "empty")),
                (lambda: x.reshape_as(x), ("reshape_as", "reshape", "view")),
                (lambda: i.floor_divide_(2), ("floor_divide_",)), (lambda: i.remainder_(2), ("remainder_",)),
                (lambda: torch.fliplr(x), ("fliplr", "flip"))):
            self.assertEqual(shown(call), chain(*names))

    def test_trees(self):
        x, i = torch.ones(2, 3), torch.tensor([1, 2])
        self.assertEqual(shown(lambda: x.new_zeros(2)), [("new_zeros", [*chain("new_empty", "empty"),
                                                                        ("zero_", [])])])
        self.assertEqual(shown(lambda: x.new_full((2,), 3)), [("new_full", [*chain("new_empty", "empty"),
                                                                            ("fill_", [])])])
        self.assertEqual(shown(lambda: torch.vstack([i, i])),
                         [("vstack", [("atleast_2d", [("unsqueeze", []), ("unsqueeze", [])]), ("cat", [])])])
        self.assertEqual(shown(lambda: torch.meshgrid(i, i)),
                         [("meshgrid", [("view", []), ("expand", [])] * 2)])
        (name, children), = shown(lambda: torch.allclose(x, x))
        self.assertEqual((name, [child[0] for child in children]), ("allclose", ["isclose", "all", "item"]))


class InPlace(unittest.TestCase):
    def test_the_same_object(self):
        for operation in ("__iand__", "__ior__", "__ixor__", "bitwise_and_", "floor_divide_", "remainder_",
                          "multiply_", "subtract_", "clip_"):
            x = torch.tensor([5, 6])
            version = x._version
            self.assertIs(getattr(x, operation)(3), x, operation)
            self.assertEqual(x._version, version + 1, operation)
        x = y = torch.tensor([5, 6])
        x &= 4
        self.assertIs(x, y)
        self.assertEqual(y.tolist(), [4, 4])
        x //= 3
        x %= 2
        self.assertIs(x, y)
        self.assertEqual(y.tolist(), [1, 1])

    def test_refused(self):
        leaf = torch.ones(2, requires_grad=True)
        for operation in ("multiply_", "remainder_", "true_divide_", "floor_divide_"):
            with self.assertRaisesRegex(RuntimeError, "a leaf Variable that requires grad"):
                getattr(leaf, operation)(2)
        with self.assertRaisesRegex(RuntimeError, "result type Float can't be cast to the desired"):
            torch.tensor([1]).floor_divide_(torch.ones(1))
        with self.assertRaisesRegex(NotImplementedError, "\"bitwise_and_cpu\" not implemented for 'Float'"):
            torch.ones(2).__iand__(torch.ones(2))
        with self.assertRaises(TypeError):
            torch.tensor([1]) & "a"

    def test_remainder_keeps_what_it_needs(self):
        x = torch.tensor([7.0, 8.0], requires_grad=True)
        other = torch.tensor([2.0, 3.0], requires_grad=True)
        (x * 1).remainder_(other).sum().backward()
        self.assertEqual((x.grad.tolist(), other.grad.tolist()), ([1.0, 1.0], [-3.0, -2.0]))


    def test_a_saved_result_stays_valid(self):
        x = torch.tensor([0.5, 2.0], requires_grad=True)
        torch.nn.functional.relu6(x * 1, inplace=True).clip_(0, 1).exp().sum().backward()
        self.assertAlmostEqual(x.grad.tolist()[0], 1.6487213, 5)
        self.assertEqual(x.grad.tolist()[1], 0.0)


class Calls(unittest.TestCase):
    def test_a_tensor_is_no_dimension(self):
        a, b = torch.tensor(1), torch.tensor(0)
        self.assertEqual((torch.max(a, b).item(), torch.min(a, other=b).item()), (1, 0))
        values, indices = torch.max(torch.tensor([3, 4]), 0)
        self.assertEqual((values.item(), indices.item()), (4, 1))

    def test_new(self):
        x = torch.ones(2, dtype=torch.float64)
        made = x.new_zeros(2, 3, dtype=torch.float32, requires_grad=True)
        self.assertEqual((made.shape, made.dtype, made.requires_grad, made.is_leaf),
                         ((2, 3), torch.float32, True, True))
        self.assertEqual(x.new_ones([]).shape, ())
        self.assertEqual(x.new_full((1,), True).dtype, torch.float64)
        self.assertFalse(torch.ones(1, requires_grad=True).new_zeros(1).requires_grad)
        with self.assertRaisesRegex(TypeError, "missing 1 required positional arguments: \"size\""):
            x.new_zeros()

    def test_names_where_torch_has_them(self):
        for name in ("new_zeros", "reshape_as", "bitwise_and_", "bitwise_not_", "multiply_", "numpy_T"):
            self.assertFalse(hasattr(torch, name), name)
        for name in ("vstack", "concat", "atleast_2d", "meshgrid", "numpy_T"):
            self.assertFalse(hasattr(torch.Tensor, name), name)

    def test_sequences(self):
        i = torch.tensor([1, 2])
        self.assertEqual([x.shape for x in torch.atleast_2d(i, torch.tensor(3))], [(1, 2), (1, 1)])
        self.assertEqual(torch.atleast_3d(i).shape, (1, 2, 1))
        self.assertEqual((torch.atleast_1d(), torch.atleast_1d([])), ((), ()))
        grids = torch.meshgrid([i, torch.tensor([1])], indexing="xy")
        self.assertEqual([x.shape for x in grids], [(1, 2)] * 2)
        with self.assertRaisesRegex(RuntimeError, "meshgrid expects a non-empty TensorList"):
            torch.meshgrid()

    def test_gradients_come_through(self):
        x = torch.tensor([[1.0, 2.0]], requires_grad=True)
        y = torch.hstack([x.T.tile(2), torch.multiply(x.reshape_as(torch.ones(2, 1)), 3)])
        torch.max(y, y.new_zeros(1)).sum().backward()
        self.assertEqual(x.grad.tolist(), [[5.0, 5.0]])

    def test_truth(self):
        self.assertIs(torch.is_nonzero(torch.tensor([0.5])), True)
        self.assertIs(torch.tensor(float("nan")).is_nonzero(), True)
        self.assertFalse(torch.tensor(-0.0))
        for x, words in ((torch.ones(2), "more than one value"), (torch.ones(0), "no values")):
            for ask in (bool, torch.is_nonzero):
                with self.assertRaisesRegex(RuntimeError, f"value of Tensor with {words} is ambiguous"):
                    ask(x)


if __name__ == "__main__":
    unittest.main()
