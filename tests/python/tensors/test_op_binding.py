# SPDX-License-Identifier: Apache-2.0
"""Functions and methods made from the op table: reachability, arguments, errors, results, lifetimes.

Error texts are torch 2.13's, recorded by running it, unless a comment says otherwise.
"""

import copy
import ctypes
import gc
import pathlib
import pickle
import re
import sys
import threading
import unittest

import mindtorch_v2 as torch
from mindtorch_v2 import _C, _names

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "ops"))
import op_table  # noqa: E402


def rows():
    """(name, overload, schema) of every row of the op table, from the table itself."""
    found = []
    for schema in op_table.schemas().values():
        name, _, overload = schema.split("(")[0].partition(".")
        found.append((name, overload, schema))
    return found


class Table(unittest.TestCase):
    def setUp(self):
        if not op_table.TABLE.is_dir():
            self.skipTest("the op table is not in this checkout")

    def test_every_row_is_there(self):
        self.assertGreater(len(rows()), 250)
        for name, _, schema in rows():
            with self.subTest(row=schema):
                function = getattr(_C.ops, name)
                self.assertTrue(callable(function))
                self.assertEqual(function.__name__, name)
                self.assertIn(schema, function.__doc__)
                if _names.is_function(name):
                    self.assertTrue(callable(getattr(torch, name)))
                else:
                    self.assertFalse(hasattr(torch, name), name)
                is_self = "(Tensor self" in schema or "(Tensor|Scalar self" in schema
                if is_self and _names.is_method(name):
                    self.assertTrue(callable(getattr(torch.Tensor, name)))
                elif not is_self:
                    self.assertNotIsInstance(vars(torch.Tensor).get(name), _C._op_method)

    def test_unknown_names(self):
        for place in (_C.ops, torch, torch.zeros(1), torch.ops.aten):
            with self.subTest(place=place), self.assertRaisesRegex(AttributeError, "no_such_op"):
                place.no_such_op

    def test_ops_namespace(self):
        self.assertIs(torch.ops.aten.add, _C.ops.add)

    def test_functions_as_values(self):
        for function in (torch.add, torch.relu, torch.Tensor.add):
            self.assertIs(pickle.loads(pickle.dumps(function)), function)
            self.assertIs(copy.deepcopy(function), function)

        class Holder:
            act = torch.relu
        self.assertEqual(Holder().act(torch.ones(1)).item(), 1.0)  # does not bind
        self.assertEqual(repr(torch.add), "<built-in function add>")
        self.assertIn("method 'add'", repr(torch.Tensor.add))

    def test_methods_bind(self):
        x = torch.ones(2)
        add = x.add
        self.assertEqual(add(x).tolist(), [2.0, 2.0])
        self.assertEqual(torch.Tensor.add(x, x).tolist(), [2.0, 2.0])
        self.assertEqual(list(map(torch.Tensor.item, [torch.tensor(1), torch.tensor(2)])), [1, 2])
        with self.assertRaisesRegex(TypeError, "descriptor 'add' for 'Tensor' objects doesn't apply to a "
                                               "'int'"):
            torch.Tensor.add(1, x)
        with self.assertRaises(TypeError):
            torch.Tensor.add()


class Arguments(unittest.TestCase):
    def same(self, made, expected):
        self.assertEqual(made.tolist() if isinstance(made, torch.Tensor) else made, expected)

    def test_sizes(self):
        for made in (torch.zeros(2, 3), torch.zeros((2, 3)), torch.zeros([2, 3]),
                     torch.zeros(torch.Size([2, 3])),
                     torch.zeros(size=(2, 3)), torch.zeros(torch.tensor(2), 3),
                     torch.zeros([torch.tensor(2), 3])):
            self.assertEqual(made.shape, (2, 3))
        self.assertEqual(torch.zeros(()).shape, ())
        self.assertEqual(torch.zeros([]).shape, ())
        self.assertEqual(torch.zeros(2).shape, (2,))
        self.assertEqual(torch.zeros(*[2] * 16).dim(), 16)
        with self.assertRaises(RuntimeError):
            torch.zeros(*[1] * 17)
        with self.assertRaises(RuntimeError):
            torch.zeros([1] * 1000)
        with self.assertRaises(RuntimeError):
            torch.zeros(-1)

    def test_sizes_of_methods(self):
        x = torch.arange(6)
        for made in (x.view(2, 3), x.view((2, 3)), x.view([2, -1]), x.view(size=(2, 3)), x.reshape(2, 3),
                     x.reshape(shape=(2, 3)), x.view(-1, 3), torch.reshape(x, (2, 3))):
            self.same(made, [[0, 1, 2], [3, 4, 5]])
        y = x.view(2, 3)
        self.assertEqual(y.permute(1, 0).shape, (3, 2))
        self.assertEqual(y.permute((1, 0)).shape, (3, 2))
        self.assertEqual(torch.permute(y, (1, 0)).shape, (3, 2))
        self.assertEqual(y.repeat(2, 2).shape, (4, 6))
        self.assertEqual(y.repeat((2, 2)).shape, (4, 6))
        self.assertEqual(torch.ones(1, 3).expand(2, -1).shape, (2, 3))
        self.same(y.flip(0), [[3, 4, 5], [0, 1, 2]])
        self.same(y.flip(0, 1), [[5, 4, 3], [2, 1, 0]])

    def test_one_int_for_a_list(self):
        x = torch.arange(6.).view(2, 3)
        self.same(x.sum(1), [3.0, 12.0])
        self.same(x.sum(dim=1), [3.0, 12.0])
        self.same(x.sum((0, 1)), 15.0)
        self.same(torch.sum(x, [1], True), [[3.0], [12.0]])
        self.same(x.amax(-1), [2.0, 5.0])
        self.same(torch.roll(torch.arange(3), 1), [2, 0, 1])
        self.same(torch.roll(torch.arange(3), 1, 0), [2, 0, 1])
        image, weight = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2)
        self.assertEqual(torch.conv2d(image, weight, stride=2).shape, (1, 1, 2, 2))
        self.assertEqual(torch.conv2d(image, weight, padding=1).shape, (1, 1, 5, 5))
        self.assertEqual(torch.max_pool2d(image, 2).shape, (1, 1, 2, 2))

    def test_numpys_names(self):
        x = torch.arange(6.).view(2, 3)
        self.same(x.sum(axis=1), [3.0, 12.0])
        self.same(x.sum(1, keepdims=True), [[3.0], [12.0]])
        self.same(torch.sum(input=x), 15.0)
        self.same(torch.cat(tensors=[x, x], dim=1).shape, (2, 6))
        self.same(torch.add(input=x, other=1).sum(), 21.0)
        self.same(torch.add(x, other=x, alpha=2).sum(), 45.0)

    def test_numbers(self):
        x = torch.ones(2)
        self.same(x.add(2), [3.0, 3.0])
        self.same(x.add(True), [2.0, 2.0])
        self.same(x.add(2, alpha=torch.tensor(3)), [7.0, 7.0])
        self.same(x.mul(torch.tensor(3)), [3.0, 3.0])
        self.same(x.clamp(0, 0.5), [0.5, 0.5])
        self.same(x.clamp(max=torch.tensor([0.5, 2.0])), [0.5, 1.0])
        self.same(x.clamp(max=0.25), [0.25, 0.25])
        self.assertEqual(x.unsqueeze(torch.tensor(0)).shape, (1, 2))

        class Index:
            def __index__(self):
                return 1
        self.assertEqual(x.unsqueeze(Index()).shape, (2, 1))
        self.same(x.add(Index()), [2.0, 2.0])

        class Real:
            def __float__(self):
                return 2.5
        self.same(x.mul(Real()), [2.5, 2.5])
        from fractions import Fraction
        self.same(x.mul(Fraction(1, 2)), [0.5, 0.5])

    def test_numpys_numbers(self):
        try:
            import numpy as np
        except ImportError:
            self.skipTest("no NumPy")
        x = torch.ones(2)
        self.same(x.add(np.float32(1.5)), [2.5, 2.5])
        self.same(x.add(np.int64(2)), [3.0, 3.0])
        self.same(x.add(np.bool_(True)), [2.0, 2.0])
        self.assertIs((torch.ones(1, dtype=torch.int64) * np.bool_(True)).dtype, torch.int64)
        self.assertEqual(torch.zeros(np.int64(2), np.int32(3)).shape, (2, 3))
        self.assertEqual(x.unsqueeze(np.int64(0)).shape, (1, 2))
        self.same(torch.arange(np.int64(2)), [0, 1])

    def test_forms(self):
        self.same(torch.arange(3), [0, 1, 2])
        self.same(torch.arange(1, 3), [1, 2])
        self.same(torch.arange(1, 7, 3), [1, 4])
        self.same(torch.arange(end=2), [0, 1])
        self.same(torch.arange(0, 1, step=0.5), [0.0, 0.5])
        self.assertEqual(torch.randint(3, (2,)).shape, (2,))
        self.assertEqual(torch.randint(1, 3, (2,), dtype=torch.int32).dtype, torch.int32)
        self.assertEqual([len(part) for part in torch.arange(5).split(2)], [2, 2, 1])
        self.assertEqual([len(part) for part in torch.arange(5).split([1, 4])], [1, 4])
        self.assertEqual([len(part) for part in torch.split(torch.arange(5), (1, 4), dim=0)], [1, 4])
        x = torch.tensor([[1., 5.], [7., 2.]])
        self.same(x.max(), 7.0)
        self.same(x.max(1)[0], [5.0, 7.0])
        self.same(torch.max(x, dim=0, keepdim=True).indices, [[1, 0]])
        self.same(torch.max(x, torch.tensor(3.0)), [[3.0, 5.0], [7.0, 3.0]])
        self.same(x.min(x.t()), [[1.0, 5.0], [5.0, 2.0]])
        self.same(x.squeeze().shape, (2, 2))
        self.same(torch.zeros(1, 2, 1).squeeze(0).shape, (2, 1))
        self.same(torch.zeros(1, 2, 1).squeeze((0, 2)).shape, (2,))
        self.same(x.prod(), 70.0)
        self.same(x.prod(1), [5.0, 14.0])
        self.same(x.div(2, rounding_mode="floor"), [[0.0, 2.0], [3.0, 1.0]])
        self.same(x.std(1, unbiased=False), [2.0, 2.5])
        self.same(x.var(1, False), [4.0, 6.25])
        self.same(torch.std(x, dim=1, correction=0), [2.0, 2.5])
        self.same(x.var(unbiased=False, dim=1), [4.0, 6.25])
        self.same(x.std(False), torch.std(x, unbiased=False).item())
        self.same(x.norm(), x.pow(2).sum().sqrt().item())
        self.same(x.norm(1, dim=1), [6.0, 9.0])
        self.same(x.norm(p="fro", dim=1, keepdim=True).shape, (2, 1))

    def test_makers(self):
        self.assertTrue(torch.zeros(2, requires_grad=True).requires_grad)
        self.assertTrue(torch.ones_like(torch.zeros(2), requires_grad=True).requires_grad)
        self.assertFalse(torch.zeros(2, requires_grad=False).requires_grad)
        self.assertIs(torch.full((2,), 3).dtype, torch.int64)
        self.assertIs(torch.full((2,), 3, dtype=torch.float64).dtype, torch.float64)
        self.assertIs(torch.zeros(2, device=torch.device("cpu"), dtype=None).dtype, torch.float32)
        with self.assertRaisesRegex(RuntimeError, "^Only Tensors of floating point and complex dtype can "
                                                  "require "
                                                  "gradients$"):
            torch.zeros(2, dtype=torch.int64, requires_grad=True)

    def test_out(self):
        out = torch.zeros(2)
        self.assertIs(torch.add(torch.ones(2), 1, out=out), out)
        self.assertEqual(out.tolist(), [2.0, 2.0])
        self.assertEqual(torch.add(torch.ones(2), 1, out=None).tolist(), [2.0, 2.0])
        with self.assertRaisesRegex(RuntimeError, "can't be cast to the desired output type"):
            torch.add(torch.ones(2), 1, out=torch.zeros(2, dtype=torch.int64))
        with self.assertRaisesRegex(RuntimeError, "don't support automatic differentiation"):
            torch.add(torch.ones(2, requires_grad=True), 1, out=out)
        empty = torch.zeros(0, dtype=torch.float64)
        self.assertIs(torch.add(torch.ones(3), 1, out=empty), empty)
        self.assertEqual((empty.tolist(), empty.dtype), ([2.0] * 3, torch.float64))
        with self.assertWarnsRegex(UserWarning, r"resized since it had shape \[2\], .* output shape \[3\]"):
            torch.add(torch.ones(3), 1, out=out)
        self.assertEqual(out.tolist(), [2.0] * 3)
        with self.assertRaisesRegex(NotImplementedError, "out="):
            torch.max(torch.ones(2, 2), 1, out=out)
        with self.assertRaisesRegex(TypeError, "'out' must be Tensor, not int"):
            torch.add(torch.ones(2), 1, out=1)


class Errors(unittest.TestCase):
    x = torch.ones(2, 3)

    CASES = [
        ("x.add('a')", TypeError, "add(): argument 'other' (position 1) must be Tensor, not str"),
        ("torch.add(x, 'a')", TypeError, "add(): argument 'other' (position 2) must be Tensor, not str"),
        ("torch.add('a', x)", TypeError, "add(): argument 'input' (position 1) must be Tensor, not str"),
        ("x.add(x, foo=1)", TypeError, "add() got an unexpected keyword argument 'foo'"),
        ("torch.add(x, x, foo=1)", TypeError, "add() got an unexpected keyword argument 'foo'"),
        ("x.add(input=x, other=x)", TypeError, "add() got an unexpected keyword argument 'input'"),
        ("torch.add(x, x, other=x)", TypeError, "add() got multiple values for argument 'other'"),
        ("x.add(x, x)", TypeError, "add() takes 1 positional argument but 2 were given"),
        ("x.mul(2, 3)", TypeError, "mul() takes 1 positional argument but 2 were given"),
        ("torch.permute(x, 1, 0)", TypeError, "permute() takes 2 positional arguments but 3 were given"),
        ("torch.zeros('a')", TypeError, "zeros(): argument 'size' (position 1) must be tuple of ints, not "
                                        "str"),
        ("torch.zeros(2.5)", TypeError, "zeros(): argument 'size' (position 1) must be tuple of ints, not "
                                        "float"),
        ("torch.zeros(2, 'a')", TypeError, "zeros(): argument 'size' failed to unpack the object at pos 2 "
                                           "with error "
                                           "\"type must be tuple of ints,but got str\""),
        ("x.view(2, 'a')", TypeError, "view(): argument 'size' failed to unpack the object at pos 2 with "
                                      "error "
                                      "\"type must be tuple of ints,but got str\""),
        ("torch.zeros()", TypeError, "zeros() missing 1 required positional arguments: \"size\""),
        ("torch.zeros(2, dtype='a')", TypeError, "zeros(): argument 'dtype' must be torch.dtype, not str"),
        ("torch.zeros(2, device=3.5)", TypeError, "zeros(): argument 'device' must be torch.device, not "
                                                  "float"),
        ("torch.zeros(2, requires_grad=1)", TypeError, "zeros(): argument 'requires_grad' must be bool, "
                                                       "not int"),
        ("torch.mm(x, 2)", TypeError, "mm(): argument 'mat2' (position 2) must be Tensor, not int"),
        ("torch.exp(2)", TypeError, "exp(): argument 'input' (position 1) must be Tensor, not int"),
        ("torch.exp()", TypeError, "exp() missing 1 required positional arguments: \"input\""),
        ("torch.cat(x)", TypeError, "cat(): argument 'tensors' (position 1) must be tuple of Tensors, not "
                                    "Tensor"),
        ("torch.cat(1)", TypeError, "cat(): argument 'tensors' (position 1) must be tuple of Tensors, not "
                                    "int"),
        ("torch.cat([x, 1])", TypeError, "expected Tensor as element 1 in argument 0, but got int"),
        ("x.transpose(0)", TypeError, "transpose() missing 1 required positional arguments: \"dim1\""),
        ("x.transpose(0, 'a')", TypeError, "transpose(): argument 'dim1' (position 2) must be int, not str"),
        ("x.unsqueeze()", TypeError, "unsqueeze() missing 1 required positional arguments: \"dim\""),
        ("x.unsqueeze(1.5)", TypeError, "unsqueeze(): argument 'dim' (position 1) must be int, not float"),
        ("x.unsqueeze(True)", TypeError, "unsqueeze(): argument 'dim' (position 1) must be int, not bool"),
        ("torch.softmax(x)", TypeError, "softmax() missing 1 required positional arguments: \"dim\""),
        ("torch.full((2,), 'a')", TypeError, "full(): argument 'fill_value' (position 2) must be Number, "
                                             "not str"),
        ("torch.full((2,))", TypeError, "full() missing 1 required positional arguments: \"fill_value\""),
        ("torch.eye(2.5)", TypeError, "eye(): argument 'n' (position 1) must be int, not float"),
        ("torch.flip(x, 0)", TypeError, "flip(): argument 'dims' (position 2) must be tuple of ints, not "
                                        "int"),
        ("x.flip()", TypeError, "flip() missing 1 required positional arguments: \"dims\""),
        ("torch.tril(x, diagonal='a')", TypeError, "tril(): argument 'diagonal' must be int, not str"),
        ("x.requires_grad_('a')", TypeError, "requires_grad_(): argument 'requires_grad' (position 1) must "
                                             "be bool, "
                                             "not str"),
        ("x.size('a')", TypeError, "size(): argument 'dim' (position 1) must be int, not str"),
        ("x.size(5)", IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got 5)"),
        ("x.stride(-3)", IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got "
                                     "-3)"),
        ("x.item()", RuntimeError, "a Tensor with 6 elements cannot be converted to Scalar"),
        ("x.div(2, rounding_mode='bad')", RuntimeError, "div expected rounding_mode to be one of None, "
                                                        "'trunc', or "
                                                        "'floor' but found 'bad'"),
        ("x + 2**70", OverflowError, "int too big to convert"),
        ("x.sum(2**70)", ValueError, "Overflow when unpacking long long"),
        ("x.clamp()", RuntimeError, "torch.clamp: At least one of 'min' or 'max' must not be None"),
        # torch has more overloads for these: its text is longer, ours says the same.
        ("torch.add(x)", TypeError, "add() missing 1 required positional arguments: \"other\""),
        ("torch.add()", TypeError, "add() missing 2 required positional arguments: \"input\", \"other\""),
        ("x.sum(keepdim=1)", TypeError, "sum(): argument 'keepdim' must be bool, not int"),
        ("x.exp(1)", TypeError, "exp() takes 0 positional arguments but 1 was given"),
        ("x.sum(dim=1, axis=1)", TypeError, "sum() got an unexpected keyword argument 'axis'"),
    ]

    def test_recorded(self):
        for code, error, text in self.CASES:
            with self.subTest(code=code), self.assertRaises(error) as caught:
                eval(code, {"x": self.x, "torch": torch})
            self.assertEqual(str(caught.exception), text, code)

    def test_no_overload(self):
        with self.assertRaises(TypeError) as caught:
            self.x.max(self.x, 1, 2)
        self.assertEqual(str(caught.exception),
                         "max() received an invalid combination of arguments - got (Tensor, int, int), but "
                         "expected "
                         "one of:\n * ()\n * (Tensor other)\n * (int dim, bool keepdim = False)\n")
        with self.assertRaises(TypeError) as caught:
            self.x.clamp("a")
        self.assertEqual(str(caught.exception),
                         "clamp() received an invalid combination of arguments - got (str), but expected "
                         "one of:\n"
                         " * (Tensor min = None, Tensor max = None)\n * (Number min = None, Number max = "
                         "None)\n")
        with self.assertRaisesRegex(TypeError, r"got \(Tensor, dim=str\)"):
            torch.max(self.x, dim="a")
        with self.assertRaisesRegex(TypeError, r"max\(\) got an unexpected keyword argument 'foo'"):
            torch.max(self.x, foo=1)

    def test_an_argument_that_raises(self):
        class Bad:
            def __index__(self):
                raise KeyError("mine")
        for call in (lambda: self.x.unsqueeze(Bad()), lambda: torch.zeros(Bad()),
                     lambda: torch.zeros([2, Bad()]),
                     lambda: self.x.max(Bad()), lambda: self.x + Bad()):
            with self.assertRaisesRegex(KeyError, "mine"):
                call()

    def test_a_list_that_changes(self):
        sizes = []

        class Shrinks:
            def __index__(self):
                del sizes[1:]
                return 1
        sizes.extend([Shrinks(), 2, 3])
        with self.assertRaisesRegex(RuntimeError, "changed size"):
            torch.zeros(sizes)

    def test_nothing_is_left_behind(self):
        gc.collect()
        before = _C._tensors_alive()
        for _ in range(100):
            for code, error, _ in self.CASES:
                try:
                    eval(code, {"x": self.x, "torch": torch})
                except error:
                    pass
        self.assertEqual(_C._tensors_alive(), before)


class Results(unittest.TestCase):
    def test_named(self):
        x = torch.tensor([[3., 1.], [2., 4.]])
        result = x.max(1)
        self.assertEqual(result.values.tolist(), [3.0, 4.0])
        self.assertEqual(result.indices.tolist(), [0, 1])
        values, indices = result
        self.assertIs(values, result[0])
        self.assertIsInstance(result, tuple)
        self.assertIs(type(result), torch.return_types.max)
        self.assertEqual(repr(result), "torch.return_types.max(\nvalues=tensor([3., "
                                       "4.]),\nindices=tensor([0, 1]))")
        for call in (lambda: x.min(0), lambda: x.sort(), lambda: x.topk(1)):
            self.assertEqual(type(call()).__name__, call.__code__.co_names[0])
        again = pickle.loads(pickle.dumps(result))
        self.assertIs(type(again), torch.return_types.max)
        self.assertEqual(again.values.tolist(), [3.0, 4.0])

    def test_others(self):
        x = torch.tensor([1., 2.])
        self.assertIs(type(torch.var_mean(x)), tuple)
        self.assertIs(type(x.unbind()), tuple)
        self.assertIs(torch.equal(x, x), True)
        self.assertIs(torch.allclose(x, x + 1), False)
        self.assertIs(type(x.sum().item()), float)
        self.assertIs(type(torch.tensor(3).item()), int)
        self.assertIs(torch.tensor(True).item(), True)
        self.assertIsNone(_C.ops._fused_sgd_([], [], [], weight_decay=0, momentum=0, lr=1, dampening=0,
                                             nesterov=False, maximize=False, is_first_step=True))

    def test_same_tensor_same_object(self):
        x = torch.ones(2)
        for same in (x.add_(1), x.contiguous(), x.to(torch.float32), x.cpu(), x.float(), x.zero_(),
                     x.requires_grad_(False), torch.relu_(x), x.detach_()):
            self.assertIs(same, x)
        y = x
        y += 1
        self.assertIs(y, x)


class Lifetimes(unittest.TestCase):
    def test_flat(self):
        x, y = torch.ones(2, 2), torch.ones(2, 2)
        names = ("add", [x, y])

        def work(n):
            for _ in range(n):
                x + y
                x * 2
                torch.add(x, y, alpha=2)
                x.sum(dim=1, keepdim=True)
                torch.cat([x, y])
                x.max(1)
                x.view(4)
                x.split(1)
                try:
                    x.add("a")
                except TypeError:
                    pass
        work(100)
        gc.collect()
        alive, blocks = _C._tensors_alive(), sys.getallocatedblocks()
        counts = [sys.getrefcount(o) for o in (x, y, torch.Tensor, torch.add, None, True, names)]
        work(5000)
        gc.collect()
        self.assertEqual(_C._tensors_alive(), alive)
        self.assertLess(sys.getallocatedblocks() - blocks, 200)
        after = [sys.getrefcount(o) for o in (x, y, torch.Tensor, torch.add, None, True, names)]
        for a, b in zip(counts, after):
            self.assertLess(abs(a - b), 50)

    def test_long_lists(self):
        xs = [torch.ones(1) for _ in range(500)]
        self.assertEqual(torch.cat(xs).sum().item(), 500.0)
        self.assertEqual(torch.stack(tuple(xs)).shape, (500, 1))
        with self.assertRaises(TypeError):
            torch.cat(xs + [None])

    def test_lists_changed_by_another_thread(self):
        xs = [torch.ones(20000) for _ in range(4)]
        stop = threading.Event()

        def change():
            while not stop.is_set():
                xs[0] = torch.ones(20000)
                xs[3] = torch.ones(20000)
        thread = threading.Thread(target=change)
        thread.start()
        try:
            for _ in range(300):
                self.assertEqual(torch.cat(xs).sum().item(), 80000.0)
        finally:
            stop.set()
            thread.join()

    def test_threads(self):
        failed = []

        def work(seed):
            generator = torch.Generator().manual_seed(seed)
            for i in range(200):
                size = 300 if i % 20 == 0 else 3
                x = torch.rand(size, size, generator=generator)
                if not torch.equal((x + x) - x, x) or (x @ x).shape != x.shape:
                    failed.append(seed)
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])


class AnyArguments(unittest.TestCase):
    """Calls with arguments of the right kind and of any value: an answer or an exception, never more."""

    ERRORS = (TypeError, ValueError, RuntimeError, IndexError, OverflowError,
              MemoryError)  # NotImplementedError too

    def tensor(self, random):
        shape = [random.randrange(4) for _ in range(random.randrange(5))]
        kind = random.randrange(6)
        if kind == 0:
            return torch.randint(-2, 4, shape)
        if kind == 1:
            return torch.zeros(shape, dtype=random.choice([torch.bool, torch.float16, torch.uint8,
                                                           torch.float64]))
        x = torch.rand(shape, requires_grad=kind == 2)
        return x.t() if kind == 3 and x.dim() == 2 else x

    def argument(self, random, type_):
        if random.randrange(20) == 0:
            return random.choice([None, "a", 1.5, object(), [], (1,), b"", 2**62, 2**70, torch.ones(2)])
        number = random.choice([-3, -1, 0, 1, 2, 3, 5])
        if type_.startswith("Tensor?[]") or type_.startswith("Tensor[]"):
            return [self.tensor(random) for _ in range(random.randrange(4))]
        if type_.startswith("Tensor"):
            return number if "Scalar" in type_ and random.random() < 0.4 else self.tensor(random)
        if type_.startswith("int[]"):
            return random.choice([number, [random.randrange(-2, 4) for _ in range(random.randrange(5))]])
        return {"i": number, "S": random.choice([number, 0.5, True, float("nan"), float("inf")]),
                "f": random.choice([number, 0.5, -1.0]), "b": random.random() < 0.5,
                "s": random.choice(["floor", "trunc", "none", "tanh", "?"]),
                "d": torch.float32 if type_.startswith("dt") else "cpu", "G": torch.Generator()}[type_[0]]

    def test_no_crash(self):
        if not op_table.TABLE.is_dir():
            self.skipTest("the op table is not in this checkout")
        import random as random_module
        random = random_module.Random(5)
        answered = 0
        table = rows()
        gc.collect()
        before = _C._tensors_alive()
        for _ in range(15000):
            name, _, schema = random.choice(table)
            args, kwargs, keyword = [], {}, False
            inside = schema[schema.index("(") + 1:schema.rindex(") ->")]
            for part in re.split(r", (?![^\[]*\])", inside):
                if part == "*":
                    keyword = True
                    continue
                if "=" in part and random.random() < 0.5:
                    keyword = True
                    continue
                type_, parameter = part.split("=")[0].split()
                value = self.argument(random, type_)
                if keyword:
                    kwargs["input" if parameter == "self" else parameter] = value
                else:
                    args.append(value)
            try:
                getattr(_C.ops, name)(*args, **kwargs)
                answered += 1
            except self.ERRORS:
                pass
        del args, kwargs, value
        gc.collect()
        self.assertGreater(answered, 1500)
        self.assertLessEqual(_C._tensors_alive(), before + 5)


class UsersOps(unittest.TestCase):
    """An op that a C program registers is there without an import of its own."""

    def test_registered_later(self):
        path = None
        with open("/proc/self/maps", encoding="utf-8") as maps:
            for line in maps:
                if "libmindtorch" in line:
                    path = line.split()[-1]
        if path is None:
            self.skipTest("libmindtorch is linked into the extension")
        library = ctypes.CDLL(path)
        clone = library.mt_clone
        clone.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]

        class Value(ctypes.Structure):
            _fields_ = [("kind", ctypes.c_uint32), ("count", ctypes.c_uint32), ("tensor", ctypes.c_void_p)]

        @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Value), ctypes.POINTER(Value))
        def run(context, args, results):
            out = ctypes.c_void_p()
            status = clone(args[0].tensor, ctypes.byref(out))
            results[0].kind, results[0].tensor = 4, out.value
            return status

        with self.assertRaises(AttributeError):
            torch.ops.binder.copy_of
        number = ctypes.c_uint32()
        library.mt_op_register.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p,
                                           ctypes.c_void_p]
        status = library.mt_op_register(b"binder::copy_of(Tensor x, float factor=2) -> Tensor", run, None,
                                        None,
                                        ctypes.byref(number))
        self.assertEqual(status, 0)
        UsersOps.keep = run  # as long as the process
        x = torch.ones(2)
        made = torch.ops.binder.copy_of(x)
        self.assertEqual(made.tolist(), [1.0, 1.0])
        self.assertIsNot(made, x)
        with self.assertRaisesRegex(TypeError, "'factor' must be float, not str"):
            torch.ops.binder.copy_of(x, factor="a")
        self.assertFalse(hasattr(torch.Tensor, "copy_of"))


if __name__ == "__main__":
    unittest.main()
