# SPDX-License-Identifier: Apache-2.0
"""Forms of calls that rows of the op table do not take by themselves; values are those that torch gave."""
import contextlib
import os
import sys
import tempfile
import unittest
import warnings

import mindtorch_v2 as torch

X = torch.arange(12.).reshape(3, 4)
ROWS = torch.tensor([[0], [1], [2]])


def ints(*sizes):
    return torch.empty(*sizes or (0,), dtype=torch.int64)


class Forms(unittest.TestCase):
    def same(self, found, expected):
        self.assertEqual(found.tolist(), expected)

    def test_sort_takes_stable(self):
        for result in (torch.sort(X, stable=True, dim=1, descending=True), X.sort(dim=1, descending=True, stable=True)):
            self.same(result.indices, [[3, 2, 1, 0]] * 3)
        self.same(torch.argsort(torch.tensor([3, 1, 1, 2]), stable=True), [1, 2, 3, 0])
        with self.assertRaisesRegex(TypeError, "unexpected keyword argument 'steady'"):
            X.sort(steady=True)

    def test_tuples_as_out(self):
        for op, values, indices in ((torch.max, [3, 7, 11], [3, 3, 3]), (torch.min, [0, 4, 8], [0] * 3),
                                    (torch.topk, [[3], [7], [11]], [[3]] * 3)):
            out = (torch.empty(0), ints())
            result = op(X, 1, out=out)
            self.assertIs(result[0], out[0])
            self.same(out[0], values)
            self.same(out[1], indices)
        with self.assertRaises(TypeError):
            torch.max(X, 1, out=(torch.empty(0),))

    def test_out_of_functions_made_of_ops(self):
        self.same(torch.var(X, 1, unbiased=False, out=torch.empty(0)), [1.25] * 3)
        self.same(torch.std(torch.zeros(2, 2), axis=1, keepdims=True), [[0], [0]])
        self.same(torch.nonzero(torch.tensor([0, 2]), out=ints()), [[1]])
        self.same(torch.diag(X, out=torch.empty(0)), [0, 5, 10])
        self.assertEqual(torch.normal(torch.zeros(2), torch.ones(2), out=torch.empty(0)).shape, (2,))
        self.same(torch.eye(2, out=ints()), [[1, 0], [0, 1]])
        self.same(torch.full((2,), 3.5, out=ints()), [3, 3])
        with self.assertRaisesRegex(RuntimeError, "can't be cast"):
            torch.add(X, X, out=ints())

    def test_several_dimensions(self):
        self.assertEqual(torch.movedim(torch.zeros(2, 3, 4), (0, 1), (2, 0)).shape, (3, 4, 2))
        self.assertEqual(torch.zeros(2, 3, 4).moveaxis((0, -1), (1, 2)).shape, (3, 2, 4))
        with self.assertRaisesRegex(RuntimeError, "repeated dim"):
            torch.movedim(torch.zeros(2, 3), (0, 0), (0, 1))
        with self.assertRaisesRegex(IndexError, "out of range"):
            torch.movedim(torch.zeros(2, 3), (0, 5), (0, 1))
        self.assertEqual([part.shape[1] for part in torch.tensor_split(X, torch.tensor([1, 3]), dim=1)], [1, 2, 1])
        self.assertEqual(len(X.tensor_split(torch.tensor(2), dim=1)), 2)

    def test_differences_with_more_at_the_ends(self):
        found = torch.diff(X, prepend=torch.zeros(3, 1), append=torch.zeros(3, 2))
        self.same(found[0], [0, 1, 1, 1, -3, 0])

    def test_numbers_in_front(self):
        i, x = torch.tensor([1, 2, 3]), torch.tensor([1.5, -2.0, 4.0])
        for found, expected in ((torch.remainder(7, i), [0, 1, 1]), (torch.remainder(5, x), [0.5, -1.0, 1.0]),
                                (torch.floor_divide(7, i), [7, 3, 2]), (torch.floor_divide(7.0, x), [4.0, -4.0, 1.0]),
                                (torch.bitwise_and(6, i), [0, 2, 2]), (torch.bitwise_or(4, i), [5, 6, 7]),
                                (torch.bitwise_xor(7, i), [6, 5, 4]), (torch.bitwise_left_shift(1, i), [2, 4, 8]),
                                (torch.bitwise_right_shift(16, i), [8, 4, 2]), (7 % i, [0, 1, 1]), (7 // i, [7, 3, 2]),
                                (6 & i, [0, 2, 2]), (4 | i, [5, 6, 7]), (7 ^ i, [6, 5, 4]), (1 << i, [2, 4, 8]),
                                (16 >> i, [8, 4, 2])):
            self.same(found, expected)
        self.assertEqual((torch.remainder(7, i).dtype, torch.remainder(7.5, i).dtype), (torch.int64, torch.float32))
        with self.assertRaisesRegex(NotImplementedError, '"bitwise_and_cpu" not implemented for \'Float\''):
            torch.bitwise_and(1.5, i)
        for name in ("remainder", "floor_divide", "bitwise_and", "bitwise_left_shift"):
            with self.assertRaisesRegex(TypeError, rf"^{name}\(\).*(int|must be a tensor)"):
                getattr(torch, name)(7, 2)

    def test_bernoulli_of_a_probability(self):
        """One for all elements: what the tensor holds does not count, its type does."""
        x, i = torch.tensor([1.5, -2.0, 4.0]), torch.tensor([1, 2, 3])
        self.same(torch.bernoulli(x, 0.0), [0, 0, 0])
        self.same(torch.bernoulli(x, 1.0), [1, 1, 1])
        self.same(x, [1.5, -2.0, 4.0])
        self.same(torch.bernoulli(i, p=1), [1, 1, 1])
        self.assertIs(torch.bernoulli(i, p=1).dtype, torch.int64)
        torch.manual_seed(1)
        drawn = torch.bernoulli(torch.zeros(10000), 0.25)
        self.assertEqual(set(drawn.tolist()), {0.0, 1.0})
        self.assertLess(abs(drawn.mean().item() - 0.25), 0.03)
        for p in (1.5, -1.0):
            with self.assertRaisesRegex(RuntimeError, r"to be in \[0, 1\], but got p=" + f"{p:g}"):
                torch.bernoulli(x, p)

    def test_gather_and_scatter(self):
        self.same(torch.gather(X, 1, ROWS, sparse_grad=False), [[0], [5], [10]])
        with self.assertRaises(NotImplementedError):
            torch.gather(X, 1, ROWS, sparse_grad=True)
        self.same(torch.scatter(X, 1, ROWS, torch.ones(3, 1), reduce="add")[:, :3], [[1, 1, 2], [4, 6, 6], [8, 9, 11]])
        self.same(X.clone().scatter_(1, torch.tensor([[3, 3]]), 2., reduce="multiply")[0], [0, 1, 2, 12])
        with self.assertRaisesRegex(RuntimeError, "add or multiply"):
            X.clone().scatter_(1, ROWS, 1., reduce="max")

    def test_numbers_first(self):
        x = torch.tensor([1., 2.])
        self.same(torch.div(1.0, x), [1, 0.5])
        self.same(torch.sub(2, x), [1, 0])
        self.assertIs(torch.mul(2.5, torch.tensor([1])).dtype, torch.float32)
        self.assertIs(torch.add(2, torch.tensor([1], dtype=torch.int32)).dtype, torch.int32)
        self.same(x.clone().add_(2., x), [3, 6])
        self.same(x.clone().addcmul_(2., x, x), [3, 10])
        self.same(torch.addcdiv(x, 2., x, x), [3, 4])
        with self.assertRaisesRegex(TypeError, "must be Tensor, not str"):
            torch.div("a", x)

    def test_random_numbers(self):
        self.same(torch.zeros(2).bernoulli_(torch.tensor([0., 1.])), [0, 1])
        with self.assertRaisesRegex(RuntimeError, "normal expects all elements of std >= 0.0"):
            torch.normal(torch.zeros(2), torch.tensor([1., -1.]))

    def test_repeats(self):
        self.same(torch.repeat_interleave(torch.tensor([1, 2, 3]), torch.tensor([1, 0, 2])), [1, 3, 3])
        self.same(X.repeat_interleave(torch.tensor([1, 2, 0]), dim=0)[:, 0], [0, 4, 4])
        self.same(torch.repeat_interleave(torch.tensor([0, 1, 0, 2])), [1, 3, 3])
        self.same(torch.repeat_interleave(torch.tensor([0, 0])), [])
        with self.assertRaisesRegex(RuntimeError, "negative"):
            torch.repeat_interleave(torch.tensor([-1, 2]))
        with self.assertRaisesRegex(RuntimeError, "same size"):
            torch.repeat_interleave(torch.tensor([1, 2, 3]), torch.tensor([1, 2]))

    def test_einsum(self):
        self.same(torch.einsum("ii->i", torch.ones(3, 3)), [1, 1, 1])
        self.same(torch.einsum("ii", torch.ones(3, 3)), 3)
        self.same(torch.einsum("bii->b", torch.ones(2, 3, 3)), [3, 3])
        self.same(torch.einsum(X, [0, 1], X, [0, 1], [0]), [14, 126, 366])
        with torch.profiler.profile() as prof:
            torch.einsum("ij,kj->ik", X, X)
        parents = {event.name: event.cpu_parent and event.cpu_parent.name for event in prof.events()}
        self.assertIsNone(parents.pop("aten::einsum"))
        self.assertTrue(parents)
        self.assertNotIn(None, parents.values())

    def test_functions_of_compositions(self):
        x = torch.tensor([-0.5, 0.0, 0.25, 0.999], dtype=torch.float64, requires_grad=True)
        self.assertLess(float((torch.erf(x.erfinv()) - x).detach().abs().max()), 1e-14)
        self.assertTrue(torch.autograd.gradcheck(torch.erfinv, (x.detach()[:3].requires_grad_(),)))
        self.same(torch.tensor([1., -1.]).erfinv_(), [float("inf"), float("-inf")])
        self.same(torch.cdist(X, X), [[0, 8, 16], [8, 0, 8], [16, 8, 0]])


class Modes(unittest.TestCase):
    def test_no_grad_on_a_class(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")

            @torch.no_grad()
            class Made:
                def __init__(self):
                    self.enabled = torch.is_grad_enabled()

                def later(self):
                    return torch.is_grad_enabled()
        self.assertIs(caught[0].category, FutureWarning)
        self.assertFalse(Made().enabled)
        self.assertTrue(Made().later())

    def test_backward_and_vjp(self):
        class Both(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return grad

            vjp = backward
        result = Both.apply(torch.ones(1, requires_grad=True))
        with self.assertRaisesRegex(RuntimeError, "Implementing both 'backward' and 'vjp'"):
            result.sum().backward()

    def test_transposed_batches(self):
        for dims in (1, 3):
            with self.assertRaisesRegex(RuntimeError, f"Got {dims}-D tensor"):
                torch.zeros((2,) * dims).H
        self.assertEqual(torch.zeros(2, 3).H.shape, (3, 2))

    def test_activity_types(self):
        CPU = torch.profiler.ProfilerActivity.CPU
        torch.profiler.profile(activities=[{CPU: ["CPU_OP", "cpu_op"]}])
        with self.assertRaisesRegex(RuntimeError, "Unknown or non-member activity type name: 'foo'"):
            torch.profiler.profile(activities=[{CPU: ["foo"]}])

    def test_settings_are_kept(self):
        torch.use_deterministic_algorithms(True, warn_only=True)
        self.assertTrue(torch.are_deterministic_algorithms_enabled())
        self.assertEqual(torch.get_deterministic_debug_mode(), 1)
        torch.set_deterministic_debug_mode("default")
        self.assertFalse(torch.are_deterministic_algorithms_enabled())
        with self.assertRaises(RuntimeError):
            torch.set_float32_matmul_precision("low")
        with self.assertRaisesRegex(AssertionError, "wrong"):
            torch._assert(False, "wrong")

    def test_the_device_meta_is_a_name(self):
        self.assertNotEqual(torch.device("meta"), X.device)
        self.assertEqual(str(torch.device("meta")), "meta")
        with torch.device("meta"):
            self.assertEqual(torch.zeros(1).device.type, "meta")
        self.assertEqual(torch.zeros(1).device.type, "cpu")


class Tools(unittest.TestCase):
    def test_checkpoint(self):
        from mindtorch_v2.utils.checkpoint import checkpoint, checkpoint_sequential
        layer = torch.nn.Linear(4, 4)
        calls = []

        def part(x, scale, flag=True):
            calls.append(torch.is_grad_enabled())
            return torch.nn.functional.dropout(layer(x).sin(), 0.5) * scale, x.sum()

        x = torch.randn(3, 4, requires_grad=True)
        torch.manual_seed(3)
        plain, _ = part(x * 2, 3.)
        wanted = torch.autograd.grad(plain.sum(), (x, layer.weight))
        torch.manual_seed(3)
        kept, total = checkpoint(part, x * 2, 3., use_reentrant=False, flag=False)
        self.assertTrue(torch.equal(kept, plain))
        kept.sum().backward()
        self.assertEqual(calls, [True, True, True])
        self.assertTrue(torch.equal(x.grad, wanted[0]))
        self.assertTrue(torch.equal(layer.weight.grad, wanted[1]))
        # Input without a gradient: the parameters have one.
        layer.zero_grad()
        checkpoint(layer, torch.ones(1, 4), use_reentrant=True).sum().backward()
        self.same_list(layer.bias.grad, [1] * 4)
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 4))
        self.assertTrue(torch.equal(checkpoint_sequential(model, 2, x, use_reentrant=False), model(x)))
        with torch.no_grad():
            self.assertFalse(checkpoint(layer, x, use_reentrant=False).requires_grad)

    def same_list(self, found, expected):
        self.assertEqual(found.tolist(), expected)

    def test_pytrees(self):
        import collections
        from mindtorch_v2.utils import _pytree as trees
        Pair = collections.namedtuple("Pair", "left right")
        tree = {"a": [1, (2, None)], "b": Pair(3, collections.OrderedDict(z=4))}
        leaves, spec = trees.tree_flatten(tree)
        self.assertEqual(leaves, [1, 2, None, 3, 4])
        self.assertEqual(trees.tree_unflatten(leaves, spec), tree)
        self.assertEqual(spec, trees.tree_structure(tree))
        self.assertEqual(trees.tree_map_only(int, lambda x: x * 2, tree)["b"], Pair(6, {"z": 8}))
        self.assertEqual(trees.tree_map(lambda a, b: a + b, [1, {"x": 2}], [10, {"x": 20}]), [11, {"x": 22}])
        paths = [trees.keystr(path) for path, _ in trees.tree_leaves_with_path(tree)]
        self.assertEqual(paths, ["['a'][0]", "['a'][1][0]", "['a'][1][1]", "['b'].left", "['b'].right['z']"])
        self.assertTrue(trees.tree_any(lambda x: x == 4, tree))
        with self.assertRaises(ValueError):
            trees.tree_unflatten([1], spec)
        with self.assertRaises(ValueError):
            trees.tree_map(lambda a, b: a, [1, 2], [1])

    def test_ops_of_a_program(self):
        from mindtorch_v2 import library

        @library.custom_op("forms_test::twice", mutates_args=())
        def twice(x):
            return x * 2

        library.register_autograd("forms_test::twice", lambda ctx, grad: grad * ctx.factor,
                                  setup_context=lambda ctx, inputs, output: setattr(ctx, "factor", 7))
        x = torch.ones(2, requires_grad=True)
        torch.ops.forms_test.twice(x).sum().backward()
        self.same_list(x.grad, [7, 7])
        with self.assertRaises(ValueError):
            library.custom_op("twice", mutates_args=())
        with self.assertRaisesRegex(NotImplementedError, "no op forms_test::other"):
            library.register_autograd("forms_test::other", lambda: None)

    def test_storage_of_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "bytes")
            with open(path, "wb") as file:
                file.write(bytes(range(16)))
            storage = torch.UntypedStorage.from_file(path, False, 16)
            self.same_list(torch.asarray(storage[4:8], dtype=torch.uint8), [4, 5, 6, 7])
            torch.UntypedStorage.from_file(path, True, 16)[0] = 9
            with contextlib.closing(open(path, "rb")) as file:
                self.assertEqual(file.read(1), b"\x09")
            self.assertEqual(storage[1], 1)


if __name__ == "__main__":
    sys.exit(unittest.main())
