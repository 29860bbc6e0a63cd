# SPDX-License-Identifier: Apache-2.0
"""The type Tensor: objects and their lives, operators, attributes, functions made of ops.

Error texts are torch 2.13's, recorded by running it.
"""

import gc
import math
import subprocess
import sys
import threading
import unittest
import weakref

import mindtorch_v2 as torch
from mindtorch_v2 import _C
from support_asan import UNDER_ASAN

try:
    import numpy as np
except ImportError:
    np = None


class Sub(torch.Tensor):
    """A subclass with nothing of its own."""


class Objects(unittest.TestCase):
    def test_attributes_and_weak_references(self):
        x = torch.ones(2)
        x.mine = "a"
        self.assertEqual(x.__dict__, {"mine": "a"})
        gone = []
        reference = weakref.ref(x, gone.append)
        self.assertIs(reference(), x)
        del x
        self.assertEqual(len(gone), 1)
        self.assertIsNone(reference())

    def test_attributes_do_not_wander(self):
        x = torch.ones(2)
        x.mine = 1
        del x
        for _ in range(200):  # memory is used again
            self.assertFalse(hasattr(torch.ones(2), "mine"))

    def test_cycles_are_collected(self):
        gc.collect()
        before = _C._tensors_alive()
        for make in (lambda: torch.ones(2), lambda: torch.Tensor._make_subclass(Sub, torch.ones(2))):
            x = make()
            x.me = x
            y = make()
            y.__dict__["me"] = y
            z = make()
            z.__dict__ = {"me": z}
            del x, y, z
        self.assertGreater(_C._tensors_alive(), before)
        gc.collect()
        self.assertEqual(_C._tensors_alive(), before)

    def test_tracked_from_the_first_attribute(self):
        x = torch.ones(2)
        self.assertFalse(gc.is_tracked(x))
        x.mine = 1
        self.assertTrue(gc.is_tracked(x))
        self.assertTrue(gc.is_tracked(torch.Tensor._make_subclass(Sub, torch.ones(2))))

    def test_long_chains_go(self):
        for cls in (torch.Tensor, Sub):
            x = torch.Tensor._make_subclass(cls, torch.ones(1))
            for _ in range(100000):
                y = torch.Tensor._make_subclass(cls, torch.ones(1))
                y.before = x
                x = y
            del x, y

    def test_one_object_a_tensor(self):
        w = torch.ones(2, requires_grad=True)
        (w * 2).sum().backward()
        self.assertIs(w.grad, w.grad)
        grad = w.grad
        grad.mine = 1
        self.assertEqual(w.grad.mine, 1)
        number = id(grad)
        del grad
        self.assertIsInstance(number, int)
        self.assertEqual(w.grad.tolist(), [2.0, 2.0])  # a new object for a tensor that lived on

    def test_a_callback_that_asks_for_a_dying_tensor(self):
        w = torch.ones(1, requires_grad=True)
        grad = torch.Tensor._make_subclass(Sub, torch.ones(1))
        w.grad = grad
        seen = []
        reference = weakref.ref(grad, lambda _: seen.append(w.grad))
        del grad
        self.assertIsNone(reference())
        self.assertEqual(seen[0].tolist(), [1.0])
        self.assertIs(seen[0], w.grad)

    def test_hash_is_identity(self):
        x, y = torch.ones(2), torch.ones(2)
        self.assertEqual(len({x, y, x}), 2)
        self.assertEqual({x: 1}[x], 1)

    @unittest.skipIf(UNDER_ASAN, "AddressSanitizer keeps freed memory")
    def test_flat_memory(self):
        code = """if True:
            import resource, mindtorch_v2 as torch
            x = torch.ones(2, 2)
            def work():
                for _ in range(100000):
                    y = x + x
                    y.a = 1
                    z = y * 2
            work()
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            for _ in range(5):
                work()
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, torch._C._tensors_alive())
        """
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        grown_kib, alive = map(int, ran.stdout.split())
        self.assertLess(grown_kib, 1024)
        self.assertLess(alive, 10)

    @unittest.skipIf(UNDER_ASAN, "a fork in a process with threads may find AddressSanitizer's allocator locked")
    def test_fork_while_others_work(self):
        code = """if True:
            import mindtorch_v2 as torch, threading, os, sys
            x = torch.ones(300, 300)
            def work():
                while True:
                    x @ x
            threading.Thread(target=work, daemon=True).start()
            for _ in range(5):
                child = os.fork()
                if child == 0:
                    torch.set_num_threads(1)
                    y = torch.ones(3) + 1
                    sys.exit(0 if y.tolist() == [2.0] * 3 else 3)
                if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
                    sys.exit(4)
        """
        ran = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True,
                             timeout=60)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))

    def test_end_of_the_process(self):
        code = """if True:
            import mindtorch_v2 as torch, threading, sys
            x = torch.ones(300, 300)
            x.me = x
            class Late:
                def __del__(self):
                    self.x + self.x
            late = Late(); late.x = torch.ones(2); sys.late = late
            def work():
                while True:
                    x @ x
            threading.Thread(target=work, daemon=True).start()
        """
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))


class Subclasses(unittest.TestCase):
    def test_make_subclass(self):
        x = torch.ones(2)
        y = torch.Tensor._make_subclass(Sub, x, True)
        self.assertIs(type(y), Sub)
        self.assertTrue(y.requires_grad and y.is_leaf)
        self.assertFalse(x.requires_grad)
        self.assertEqual(y.data_ptr(), x.data_ptr())
        self.assertIs(type(y + 1), Sub)  # as in torch: Tensor's own __torch_function__ keeps the class
        self.assertIs(y.zero_() if not y.requires_grad else y, y)
        self.assertIsInstance(y, torch.Tensor)
        with self.assertRaises(TypeError):
            torch.Tensor._make_subclass(int, x)
        with self.assertRaises(TypeError):
            torch.Tensor._make_subclass(Sub, [1])
        with self.assertRaisesRegex(RuntimeError, "^Only Tensors of floating point and complex dtype can "
                                                  "require "
                                                  "gradients$"):
            torch.Tensor._make_subclass(Sub, torch.ones(2, dtype=torch.int64), True)

    def test_with_new_and_operators(self):
        class Scaled(torch.Tensor):
            def __new__(cls, data, scale):
                self = torch.Tensor._make_subclass(cls, data)
                self.scale = scale
                return self

            def __add__(self, other):
                return "mine"

            def __radd__(self, other):
                return "mine too"
        x = Scaled(torch.ones(2), 3)
        self.assertEqual(x.scale, 3)
        self.assertEqual(x + 1, "mine")
        self.assertEqual(torch.ones(2) + x, "mine too")  # a subclass's method comes first
        self.assertEqual(torch.add(x, 1).tolist(), [2.0, 2.0])

    def test_old_constructor(self):
        self.assertEqual(torch.Tensor().shape, (0,))
        self.assertEqual(torch.Tensor(2, 3).shape, (2, 3))
        self.assertEqual(torch.Tensor(torch.Size([2, 3])).shape, (2, 3))
        self.assertEqual(torch.Tensor([1, 2]).tolist(), [1.0, 2.0])
        x = torch.ones(2)
        self.assertIsNot(torch.Tensor(x), x)
        self.assertEqual(torch.Tensor(x).data_ptr(), x.data_ptr())
        self.assertIs(type(Sub(2, 3)), Sub)
        self.assertIs(type(Sub([1, 2])), Sub)
        for bad in ("a", 1.5, None):
            with self.subTest(bad=bad), self.assertRaises(TypeError):
                torch.Tensor(bad)
        with self.assertRaises(ValueError):
            torch.Tensor(*[1] * 100)

    def test_type(self):
        self.assertEqual(torch.Tensor.__name__, "Tensor")
        self.assertEqual(torch.Tensor.__module__, "mindtorch_v2")


class Operators(unittest.TestCase):
    x = torch.tensor([[1., 2.], [3., 4.]])
    i = torch.tensor([5, 6, -7])

    def test_values(self):
        x, i = self.x, self.i
        for made, expected in [
                (x + x, [[2., 4.], [6., 8.]]), (x + 1, [[2., 3.], [4., 5.]]), (1 + x, [[2., 3.], [4., 5.]]),
                (x - 1, [[0., 1.], [2., 3.]]), (1 - x, [[0., -1.], [-2., -3.]]),
                (2 * x, [[2., 4.], [6., 8.]]),
                (x / 2, [[.5, 1.], [1.5, 2.]]), (12 / x, [[12., 6.], [4., 3.]]),
                (x // 2, [[0., 1.], [1., 2.]]),
                (7 // x, [[7., 3.], [2., 1.]]), (x % 2, [[1., 0.], [1., 0.]]), (7 % x, [[0., 1.], [1., 3.]]),
                (x ** 2, [[1., 4.], [9., 16.]]), (2 ** x, [[2., 4.], [8., 16.]]),
                (x @ x, [[7., 10.], [15., 22.]]),
                (-x, [[-1., -2.], [-3., -4.]]), (abs(-x), [[1., 2.], [3., 4.]]), (+x, [[1., 2.], [3., 4.]]),
                (i & 4, [4, 4, 0]), (4 & i, [4, 4, 0]), (i | 1, [5, 7, -7]), (i ^ i, [0, 0, 0]),
                (~i, [-6, -7, 6]),
                (i // 2, [2, 3, -4]), (20 // i, [4, 3, -3]), (i % 4, [1, 2, 1]), (2.5 // torch.tensor([1, 2]),
                                                                                 [2.0, 1.0]),
                (x > 2, [[False, False], [True, True]]), (2 < x, [[False, False], [True, True]]),
                (x >= x, [[True, True], [True, True]]), (x == 1, [[True, False], [False, False]]),
                (x != x, [[False, False], [False, False]]), (x <= 1, [[True, False], [False, False]]),
                ((x > 1) & (x < 4), [[False, True], [True, False]]),
                (~(x > 1), [[True, False], [False, False]])]:
            self.assertEqual(made.tolist(), expected)

    def test_types(self):
        self.assertIs((2.5 // torch.tensor([1, 2])).dtype, torch.float32)
        self.assertIs((2.5 % self.x.double()).dtype, torch.float64)
        self.assertIs((2 // self.x).dtype, torch.float32)
        self.assertIs((7 // torch.tensor(3, dtype=torch.int32)).dtype, torch.int32)
        self.assertIs((7.5 % torch.tensor(3.)).dtype, torch.float32)
        self.assertIs((True % torch.tensor(3, dtype=torch.uint8)).dtype, torch.uint8)
        self.assertIs((self.i / 2).dtype, torch.float32)
        self.assertIs((self.i * 1.5).dtype, torch.float32)
        self.assertIs((self.i + True).dtype, torch.int64)
        self.assertIs((torch.tensor(True) + torch.tensor(True)).dtype, torch.bool)

    def test_in_place(self):
        i = torch.tensor([5, 6])
        x = torch.tensor([4., 9.])
        views = i, x
        i += 1
        i *= 2
        i -= 3
        i //= 2
        i %= 3
        i |= 4
        i &= 6
        i ^= 1
        x /= 2
        x **= 2
        self.assertEqual(i.tolist(), [5, 7])
        self.assertEqual(x.tolist(), [4.0, 20.25])
        self.assertIs(i, views[0])
        self.assertIs(x, views[1])
        y = self.x.clone()
        y @= self.x  # no op in place: a new tensor, as in torch
        self.assertEqual(y.tolist(), [[7., 10.], [15., 22.]])
        with self.assertRaisesRegex(RuntimeError, "a leaf Variable that requires grad is being used in an "
                                                  "in-place"):
            w = torch.ones(2, requires_grad=True)
            w += 1
        version = x._version
        x += 1
        self.assertEqual(x._version, version + 1)

    def test_foreign_types_are_asked(self):
        class Other:
            def __radd__(self, other):
                return "radd"

            def __rmatmul__(self, other):
                return "rmatmul"

            def __rpow__(self, other):
                return "rpow"

            def __gt__(self, other):
                return "gt"

            def __eq__(self, other):
                return "eq"
            __hash__ = None
        x = self.x
        self.assertEqual(x + Other(), "radd")
        self.assertEqual(x @ Other(), "rmatmul")
        self.assertEqual(x ** Other(), "rpow")
        self.assertEqual(x < Other(), "gt")
        self.assertEqual(x == Other(), "eq")
        y = x
        y += Other()
        self.assertEqual(y, "radd")

    def test_refused(self):
        x = self.x
        for code, error, text in [
                ("x + 'a'", TypeError, "unsupported operand type(s) for +: 'Tensor' and 'str'"),
                ("'a' + x", TypeError, "can only concatenate str (not \"Tensor\") to str"),
                ("x + None", TypeError, "unsupported operand type(s) for +: 'Tensor' and 'NoneType'"),
                ("x @ 2", TypeError, "unsupported operand type(s) for @: 'Tensor' and 'int'"),
                ("2 @ x", TypeError, "unsupported operand type(s) for @: 'int' and 'Tensor'"),
                ("x + [1]", TypeError, "unsupported operand type(s) for +: 'Tensor' and 'list'"),
                ("x ** 'a'", TypeError, "unsupported operand type(s) for ** or pow(): 'Tensor' and 'str'"),
                ("x < 'a'", TypeError, "'<' not supported between instances of 'Tensor' and 'str'"),
                ("divmod(x, 2)", TypeError, "unsupported operand type(s) for divmod(): 'Tensor' and 'int'"),
                ("~x", TypeError, "~ (operator.invert) is only implemented on integer and Boolean-type "
                                  "tensors"),
                ("pow(x, 2, 3)", TypeError, None), ("x << 1", NotImplementedError, None),
                ("x & 1", NotImplementedError, "\"bitwise_and_cpu\" not implemented for 'Float'")]:
            with self.subTest(code=code), self.assertRaises(error) as caught:
                eval(code, {"x": x})
            if text is not None:
                self.assertEqual(str(caught.exception), text)
        self.assertIs(x == "a", False)
        self.assertIs(x != "a", True)
        self.assertIs(x == None, False)  # noqa: E711 that is the test

    @unittest.skipIf(np is None, "no NumPy")
    def test_numpy_beside_tensors(self):
        x = self.x
        for made in (np.float64(2) * x, x * np.float64(2), np.float32(2) * x, np.int64(2) * x,
                     x * np.int64(2)):
            self.assertIsInstance(made, torch.Tensor)
            self.assertEqual(made.tolist(), [[2., 4.], [6., 8.]])
        for made in (x + np.ones(2), np.ones(2) + x):
            self.assertIsInstance(made, torch.Tensor)
            self.assertIs(made.dtype, torch.float64)
        self.assertEqual((x == np.ones(2)).tolist(), [[True, False], [False, False]])
        self.assertIsInstance(np.float64(2) < x, torch.Tensor)
        self.assertEqual((x @ torch.eye(2)).tolist(), x.tolist())
        with self.assertRaises((TypeError, ValueError)):
            x + np.array(["a"])

    def test_sum_of_python(self):
        self.assertEqual(sum([self.x, self.x]).tolist(), [[2., 4.], [6., 8.]])


class Numbers(unittest.TestCase):
    def test_one_element(self):
        x = torch.tensor([[3.7]])
        self.assertEqual(int(x), 3)
        self.assertEqual(float(x), x.item())
        self.assertIs(bool(x), True)
        self.assertIs(bool(torch.tensor(0)), False)
        self.assertIs(type(int(torch.tensor(True))), int)
        self.assertEqual(complex(torch.tensor(2.)), 2 + 0j)
        self.assertEqual([10, 20, 30][torch.tensor(1)], 20)
        self.assertEqual(list(range(torch.tensor(2))), [0, 1])
        self.assertEqual(math.sqrt(torch.tensor(9.)), 3.0)
        self.assertEqual(round(float(torch.tensor(2.5)), 1), 2.5)

    def test_refused(self):
        x = torch.ones(2, 3)
        for call, error, text in [
                (lambda: bool(x), RuntimeError, "Boolean value of Tensor with more than one value is "
                                                "ambiguous"),
                (lambda: bool(torch.tensor([])), RuntimeError,
                 "Boolean value of Tensor with no values is ambiguous"),
                (lambda: int(x), ValueError, "only one element tensors can be converted to Python scalars"),
                (lambda: float(x), ValueError, "only one element tensors can be converted to Python scalars"),
                (lambda: len(torch.tensor(1)), TypeError, "len() of a 0-d tensor"),
                (lambda: torch.tensor(3.).__index__(), TypeError,
                 "only integer tensors of a single element can be converted to an index"),
                (lambda: "a" in x, RuntimeError, "Tensor.__contains__ only supports Tensor or scalar, but "
                                                 "you passed "
                                                 "in a <class 'str'>.")]:
            with self.assertRaises(error) as caught:
                call()
            self.assertEqual(str(caught.exception), text)
        with self.assertRaises((ValueError, OverflowError)):
            int(torch.tensor(math.inf))

    def test_contains_and_length(self):
        x = torch.tensor([[1, 2], [3, 4]])
        self.assertIn(3, x)
        self.assertNotIn(5, x)
        self.assertIn(x, x)
        self.assertEqual(len(x), 2)
        self.assertEqual(len(torch.zeros(0, 3)), 0)


class Attributes(unittest.TestCase):
    def test_facts(self):
        x = torch.zeros(2, 3, dtype=torch.float64)[:, 1:]
        self.assertEqual((x.shape, x.size(), x.size(1), x.size(dim=-1)), ((2, 2), (2, 2), 2, 2))
        self.assertEqual((x.ndim, x.dim(), x.ndimension(), x.numel(), x.nelement()), (2, 2, 2, 4, 4))
        self.assertEqual((x.stride(), x.stride(0), x.storage_offset(), x.element_size()), ((3, 1), 3, 1, 8))
        self.assertEqual((x.itemsize, x.nbytes, x.is_contiguous(), x.is_floating_point()),
                         (8, 32, False, True))
        self.assertEqual((x.layout, x.is_sparse, x.is_leaf, x.requires_grad, x.grad, x.grad_fn),
                         (torch.strided, False, True, False, None, None))
        self.assertEqual(x.data_ptr() - torch.zeros(0).data_ptr(), x.data_ptr())
        self.assertTrue(x.is_signed() and not x.is_complex())
        self.assertTrue(x.is_same_size(torch.zeros(2, 2)) and not x.is_same_size(torch.zeros(4)))
        with self.assertRaises(IndexError):
            torch.tensor(1).size(0)
        for name in ("shape", "dtype", "device", "ndim", "grad_fn", "is_leaf", "T"):
            with self.subTest(name=name), self.assertRaises(AttributeError):
                setattr(x, name, 1)

    def test_transposed(self):
        x = torch.arange(6).view(2, 3)
        self.assertEqual(x.T.tolist(), [[0, 3], [1, 4], [2, 5]])
        self.assertEqual(x.mT.tolist(), x.T.tolist())
        self.assertEqual(torch.zeros(2, 3, 4).T.shape, (4, 3, 2))
        self.assertEqual(torch.zeros(2, 3, 4).mT.shape, (2, 4, 3))
        self.assertEqual(torch.zeros(()).T.shape, ())
        with self.assertRaisesRegex(RuntimeError, r"tensor.mT is only supported on matrices .*Got 1-D "
                                                  r"tensor."):
            torch.zeros(2).mT

    def test_requires_grad(self):
        x = torch.ones(2)
        x.requires_grad = True
        self.assertTrue(x.requires_grad)
        y = x * 2
        self.assertFalse(y.is_leaf)
        self.assertIsNotNone(y.grad_fn)
        for change in (lambda: setattr(y, "requires_grad", False), lambda: y.requires_grad_(False)):
            with self.assertRaisesRegex(RuntimeError, "you can only change requires_grad flags of leaf "
                                                      "variables."):
                change()
        with self.assertRaisesRegex(RuntimeError, "only Tensors of floating point dtype can require "
                                                  "gradients"):
            torch.ones(2, dtype=torch.int64).requires_grad_()
        with self.assertRaises(RuntimeError):
            x.requires_grad = 1
        with self.assertRaises(RuntimeError):
            del x.requires_grad
        with self.assertRaisesRegex(RuntimeError, "can't retain_grad on Tensor that has requires_grad=False"):
            torch.ones(1).retain_grad()

    def test_grad(self):
        x = torch.ones(2, requires_grad=True)
        grad = torch.tensor([1., 2.])
        x.grad = grad
        self.assertIs(x.grad, grad)
        del x.grad
        self.assertIsNone(x.grad)
        x.grad = grad
        x.grad = None
        self.assertIsNone(x.grad)
        for bad, error, text in [
                (1, TypeError, "assigned grad expected to be a Tensor or None but got grad of type int"),
                (x, RuntimeError, "can't assign Variable as its own grad"),
                (torch.ones(3), RuntimeError, "attempting to assign a gradient of size '\\[3\\]' to a "
                                              "tensor of size "
                                              "'\\[2\\]'"),
                (torch.ones(2).double(), RuntimeError, "attempting to assign a gradient with dtype")]:
            with self.assertRaisesRegex(error, text):
                x.grad = bad
        del x.grad
        self.assertIsNone(x.grad)

    def test_data(self):
        x = torch.ones(2, requires_grad=True)
        data = x.data
        self.assertFalse(data.requires_grad)
        self.assertEqual(data.data_ptr(), x.data_ptr())
        data.add_(1)
        self.assertEqual(x.tolist(), [2.0, 2.0])
        new = torch.zeros(3)
        x.data = new
        self.assertEqual((x.shape, x.data_ptr(), x.requires_grad), ((3,), new.data_ptr(), True))
        with self.assertRaisesRegex(TypeError, "Variable data has to be a tensor, but got int"):
            x.data = 1
        with self.assertRaises(TypeError):
            del x.data
        with self.assertRaises(RuntimeError):
            x.data = torch.zeros(3, dtype=torch.int64)

    def test_data_shows_no_op(self):
        import mtprof
        x = torch.ones(2)
        with mtprof.profile() as profile:
            x.data
            x + x
        self.assertEqual([event.name for event in profile.events() if event.name.startswith("aten")],
                         ["aten::add"])


class Conversions(unittest.TestCase):
    x = torch.tensor([1.5, 2.5])

    def test_assert_async(self):
        self.assertIsNone(torch._assert_async(torch.tensor(2.0), "not told"))
        for message, told in ((None, "Expected Tensor with single nonzero value, but got zero"), ("told", "told")):
            with self.assertRaisesRegex(RuntimeError, told):
                torch._assert_async(torch.tensor(False), message)

    def test_types(self):
        names = {"float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16",
                 "char": "int8", "short": "int16", "int": "int32",
                 "long": "int64", "byte": "uint8", "bool": "bool"}
        for method, dtype in names.items():
            self.assertIs(getattr(self.x, method)().dtype, getattr(torch, dtype))
        self.assertEqual(self.x.long().tolist(), [1, 2])

    def test_to(self):
        x = self.x
        for made in (x.to(torch.float64), x.to(dtype=torch.float64), x.to("cpu", torch.float64),
                     x.to(torch.device("cpu"), dtype=torch.float64), x.to(x.double()), x.to(float),
                     x.to(torch.float64, non_blocking=True), x.to(torch.float64, True, True),
                     x.to("cpu", torch.float64, False, True),
                     x.to(device="cpu", dtype=torch.float64, copy=True)):
            self.assertIs(made.dtype, torch.float64)
            self.assertEqual(made.tolist(), [1.5, 2.5])
        for same in (x.to(), x.to(torch.float32), x.to("cpu"), x.to(x), x.to(None), x.to(device=None)):
            self.assertIs(same, x)
        copied = x.to(torch.float32, copy=True)
        self.assertIsNot(copied, x)
        self.assertNotEqual(copied.data_ptr(), x.data_ptr())
        for call, error in [(lambda: x.to("foo"), RuntimeError), (lambda: x.to([]), TypeError),
                            (lambda: x.to(dtype="a"), TypeError), (lambda: x.to(foo=1), TypeError),
                            (lambda: x.to(torch.float32, "cpu"), TypeError),
                            (lambda: x.to(x, copy=1), TypeError),
                            (lambda: x.to("cpu", torch.float32, True, True, True), TypeError),
                            (lambda: x.to(memory_format=torch.channels_last), RuntimeError)]:
            with self.assertRaises(error):
                call()

    def test_type(self):
        self.assertEqual(self.x.type(), "torch.FloatTensor")
        self.assertIs(self.x.type("torch.DoubleTensor").dtype, torch.float64)
        self.assertIs(self.x.type(torch.int32).dtype, torch.int32)
        self.assertIs(self.x.type_as(torch.ones(1).double()).dtype, torch.float64)
        with self.assertRaisesRegex(ValueError, "invalid type: 'foo'"):
            self.x.type("foo")

    def test_new(self):
        x = torch.ones(2, dtype=torch.float64)
        for made, expected in [(x.new_zeros(2), [0., 0.]), (x.new_ones((1, 2)), [[1., 1.]]),
                               (x.new_full((2,), 3), [3., 3.]), (x.new_tensor([1, 2]), [1., 2.])]:
            self.assertIs(made.dtype, torch.float64)
            self.assertEqual(made.tolist(), expected)
        self.assertEqual(x.new_empty(2, 3).shape, (2, 3))
        self.assertIs(x.new_zeros(1, dtype=torch.int32).dtype, torch.int32)
        self.assertTrue(x.new_zeros(1, requires_grad=True).requires_grad)


class Functions(unittest.TestCase):
    """What _functions.py makes of ops."""

    def same(self, made, expected):
        self.assertEqual(made.tolist(), expected)

    def test_questions(self):
        x = torch.ones(2, 3)
        self.assertTrue(torch.is_tensor(x) and not torch.is_tensor([1]))
        self.assertEqual(torch.numel(x), 6)
        self.assertTrue(torch.is_floating_point(x) and not torch.is_complex(x))
        self.assertTrue(torch.is_nonzero(torch.tensor(1)))
        inf, nan = math.inf, math.nan
        self.same(torch.isclose(torch.tensor([1., 1., inf, nan, inf]),
                                torch.tensor([1., 1.1, inf, nan, -inf])),
                  [True, False, True, False, False])
        self.same(torch.isclose(torch.tensor([nan]), torch.tensor([nan]), equal_nan=True), [True])
        self.same(torch.isclose(torch.tensor([1]), torch.tensor([1])), [True])

    def test_where(self):
        x = torch.tensor([[1., -1.], [0., 2.]])
        self.same(torch.where(x > 0, x, 0), [[1., 0.], [0., 2.]])
        self.same(x.where(x > 0, torch.zeros(())), [[1., 0.], [0., 2.]])
        rows, columns = torch.where(x > 0)
        self.assertEqual((rows.tolist(), columns.tolist()), ([0, 1], [0, 1]))
        self.assertEqual([part.tolist() for part in x.nonzero(as_tuple=True)], [[0, 0, 1], [0, 1, 1]])
        self.same(torch.argwhere(x > 0), [[0, 0], [1, 1]])

    def test_shapes(self):
        a, b = torch.arange(3), torch.arange(2)
        self.assertEqual(torch.broadcast_shapes((2, 1), (3,), 1), (2, 3))
        with self.assertRaisesRegex(RuntimeError, "Attempting to broadcast a dimension of length 3 at -1!"):
            torch.broadcast_shapes((2,), (3,))
        wide, long = torch.broadcast_tensors(a.view(1, 3), b.view(2, 1))
        self.assertEqual((wide.shape, long.shape), ((2, 3), (2, 3)))
        self.same(torch.vstack([a, a]), [[0, 1, 2], [0, 1, 2]])
        self.same(torch.hstack([a, b]), [0, 1, 2, 0, 1])
        self.same(torch.column_stack([b, b]), [[0, 0], [1, 1]])
        self.assertEqual(torch.dstack([b, b]).shape, (1, 2, 2))
        self.assertEqual([x.shape for x in torch.atleast_2d(a, torch.tensor(1))], [(1, 3), (1, 1)])
        self.same(torch.tile(b, (2,)), [0, 1, 0, 1])
        self.assertEqual(b.tile(2, 2).shape, (2, 4))
        self.assertEqual(torch.zeros(2, 3).tile(2).shape, (2, 6))
        self.same(b.repeat_interleave(2), [0, 0, 1, 1])
        self.same(torch.repeat_interleave(torch.tensor([[1, 2]]), 2, dim=1), [[1, 1, 2, 2]])
        self.same(torch.diag(b), [[0, 0], [0, 1]])
        self.same(torch.diag(b, -1), [[0, 0, 0], [0, 0, 0], [0, 1, 0]])
        self.same(torch.diag(torch.tensor([[1, 2], [3, 4]])), [1, 4])
        x, y = torch.meshgrid(a, b, indexing="ij")
        self.assertEqual((x.shape, y.shape), ((3, 2), (3, 2)))
        x, y = torch.meshgrid(a, b, indexing="xy")
        self.assertEqual((x.tolist(), y.tolist()), ([[0, 1, 2], [0, 1, 2]], [[0, 0, 0], [1, 1, 1]]))
        with self.assertRaisesRegex(RuntimeError, "indexing must be one of"):
            torch.meshgrid(a, indexing="yx")
        self.same(torch.fliplr(torch.tensor([[1, 2]])), [[2, 1]])
        self.same(torch.ravel(torch.tensor([[1, 2]])), [1, 2])
        self.assertEqual(torch.zeros(2, 3).view_as(torch.zeros(6)).shape, (6,))
        self.assertEqual(torch.zeros(1, 3).expand_as(torch.zeros(2, 3)).shape, (2, 3))
        self.assertEqual(torch.zeros(2, 3).reshape_as(torch.zeros(6)).shape, (6,))
        self.assertEqual(torch.swapaxes(torch.zeros(2, 3), 0, 1).shape, (3, 2))

    def test_shapes_in_place(self):
        x = torch.arange(3)
        pointer = x.data_ptr()
        self.assertIs(x.unsqueeze_(0), x)
        self.assertEqual((x.shape, x.data_ptr()), ((1, 3), pointer))
        self.assertEqual(x.t_().shape, (3, 1))
        self.assertEqual(x.squeeze_(1).shape, (3,))
        self.assertEqual(torch.zeros(2, 3).transpose_(0, 1).shape, (3, 2))

    def test_other_names(self):
        x = torch.tensor([-1., 4.])
        for made, expected in [(torch.absolute(x), [1., 4.]), (x.negative(), [1., -4.]),
                               (x.multiply(2), [-2., 8.]),
                               (torch.divide(x, 2), [-.5, 2.]), (x.true_divide(2), [-.5, 2.]),
                               (torch.subtract(x, 1), [-2., 3.]), (x.clip(0, 1), [0., 1.]),
                               (torch.greater(x, 0), [False, True]), (x.less_equal(0), [True, False]),
                               (torch.concat([x, x]), [-1., 4., -1., 4.]), (x.not_equal(4), [True, False]),
                               (torch.nan_to_num(torch.tensor([math.nan, math.inf]), posinf=1.), [0., 1.])]:
            self.same(made, expected)

    def test_random(self):
        torch.manual_seed(0)
        x = torch.normal(5., 0.1, (1000,))
        self.assertAlmostEqual(x.mean().item(), 5.0, delta=0.05)
        self.assertEqual(torch.normal(torch.zeros(3), 1.).shape, (3,))
        y = torch.zeros(100)
        self.assertTrue(0 <= y.random_(3).min().item() and y.max().item() < 3)
        self.assertTrue(5 <= y.random_(5, 7).min().item() and y.max().item() < 7)
        self.assertIs(y.random_(), y)
        with self.assertRaises(TypeError):
            torch.normal(0., 1.)

    def test_products(self):
        a, b = torch.arange(6.).view(2, 3), torch.arange(12.).view(3, 4)
        self.assertEqual(torch.tensordot(a, b, 1).tolist(), (a @ b).tolist())
        self.assertEqual(torch.tensordot(a, a, ([1], [1])).tolist(), (a @ a.t()).tolist())
        self.assertEqual(torch.inner(a, a).tolist(), (a @ a.t()).tolist())
        self.same(torch.addmv(torch.ones(2), a, torch.ones(3)), [4., 13.])
        self.same(torch.trace(torch.eye(3)), 3.0)

    def test_sets_and_counts(self):
        x = torch.tensor([3, 1, 3, 2, 1, 3])
        values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
        self.assertEqual((values.tolist(), counts.tolist()), ([1, 2, 3], [2, 1, 3]))
        self.same(values[inverse], x.tolist())
        self.same(torch.zeros(0).unique(), [])
        self.same(torch.bincount(x), [0, 2, 1, 3])
        self.same(torch.bincount(x, minlength=6), [0, 2, 1, 3, 0, 0])
        self.same(torch.bincount(x[:2], weights=torch.tensor([.5, 2.])), [0., 2., 0., .5])
        with self.assertRaises(RuntimeError):
            torch.bincount(torch.tensor([-1]))
        self.same(torch.isin(x, torch.tensor([1, 2])), [False, True, False, True, True, False])
        self.same(torch.take(torch.tensor([[1, 2], [3, 4]]), torch.tensor([[0], [-1]])), [[1], [4]])
        self.assertEqual([part.tolist() for part in torch.tensor_split(torch.arange(5), 3)],
                         [[0, 1], [2, 3], [4]])
        self.assertEqual([part.tolist() for part in torch.arange(5).tensor_split((1, -1))],
                         [[0], [1, 2, 3], [4]])
        self.same(torch.diff(torch.tensor([1, 4, 9])), [3, 5])
        self.same(torch.tril_indices(2, 2), [[0, 1, 1], [0, 0, 1]])

    def test_written_back(self):
        x = torch.tensor([1.5, -2.5])
        self.assertIs(x.floor_(), x)
        self.same(x, [1., -3.])
        w = torch.tensor([1., 2.], requires_grad=True)
        y = w * 1
        y.sin_()
        y.sum().backward()
        self.assertAlmostEqual(w.grad[0].item(), math.cos(1.0), places=6)
        m = torch.zeros(2, 2)
        self.same(m.fill_diagonal_(1), [[1., 0.], [0., 1.]])

    def test_assert_close(self):
        close = torch.testing.assert_close
        x = torch.tensor([1., 2.])
        close(x, x + 1e-7)
        close({"a": [x, 1.0]}, {"a": [x.clone(), 1.0]})
        close(x, torch.tensor([1., 3.]), rtol=1, atol=0)
        close(torch.tensor(math.nan), torch.tensor(math.nan), equal_nan=True)
        for actual, expected, text in [
                (x, x + 1, "Mismatched elements: 2 / 2"), (x, x.double(), "'dtype' do not match"),
                (x, x[:1], "'shape' do not match"), ([x], [x, x], "length of the sequences"),
                ({"a": x}, {"b": x}, "keys of the mappings"), ({"a": x}, {"a": x + 1}, r"item \['a'\]"),
                (torch.tensor(math.nan), torch.tensor(math.nan), "not close")]:
            with self.subTest(text=text), self.assertRaisesRegex(AssertionError, text):
                close(actual, expected)
        with self.assertRaisesRegex(AssertionError, "^mine$"):
            close(x, x + 1, msg="mine")
        with self.assertRaises(ValueError):
            close(x, x, rtol=1)

    @unittest.skipIf(np is None, "no NumPy")
    def test_einsum(self):
        torch.manual_seed(1)
        sizes = dict(zip("abcdef", (2, 3, 4, 5, 2, 3)))
        for equation in ("ab,bc->ac", "ab,bc", "abc,acd->abd", "ab->ba", "ab->", "ab->a", "a,b->ab",
                         "ab,ab->ab",
                         "ab,ab->", "abc,bd,dc->a", "abc->cb", "ab,cd->abcd", "abc,cd->abd", "a,a->",
                         "ab,b->a",
                         "...ab,...bc->...ac", "a...->...", "ab...,b->a...", "bcd,ade->bcae"):
            operands = []
            for term in equation.split("->")[0].split(","):
                shape = [sizes[c] for c in term.replace("...", "ef" if term.startswith("...") else "")]
                if term.endswith("..."):
                    shape = [sizes[c] for c in term.replace("...", "")] + [2, 3]
                operands.append(torch.rand(*shape))
            with self.subTest(equation=equation):
                made = torch.einsum(equation, *operands)
                expected = np.einsum(equation, *[x.numpy() for x in operands])
                self.assertEqual(made.shape, expected.shape)
                np.testing.assert_allclose(made.numpy(), expected, rtol=1e-5)
        x = torch.ones(2, 2)
        for bad, error in (("ab,bc->ad", ValueError), ("ab,bc", ValueError), ("abc->a", ValueError),
                           ("aaa->a", ValueError), ("a1->a", ValueError), ("ab->aa", ValueError)):
            with self.subTest(bad=bad), self.assertRaises(error):
                torch.einsum(bad, x)
        with self.assertRaises(RuntimeError):
            torch.einsum("ab,bc->ac", x, torch.ones(3, 2))


class Gil(unittest.TestCase):
    def test_large_work_lets_others_run_and_small_does_not(self):
        small, large = torch.ones(2, 2), torch.ones(500, 500)
        seen = []
        lock = threading.Lock()
        lock.acquire()

        def wait():
            with lock:
                seen.append(1)
        thread = threading.Thread(target=wait)
        thread.start()
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1000)  # no thread is made to release the GIL
        try:
            lock.release()
            for _ in range(20000):
                small + small
            kept = not seen
            for _ in range(1000):
                if seen:
                    break
                large @ large
            let_go = bool(seen)
        finally:
            sys.setswitchinterval(interval)
        thread.join()
        self.assertTrue(kept)
        self.assertTrue(let_go)

    def test_work_without_the_gil_has_its_python_stack(self):
        import mtprof
        large = torch.ones(300, 300)

        def caller_of_large_work():
            return large @ large
        with mtprof.profile(with_stack=True) as profile:
            caller_of_large_work()
        stacks = {event.name: event.stack for event in profile.events()}
        self.assertIn("caller_of_large_work", "".join(stacks["aten::matmul"]))
        self.assertIn("caller_of_large_work", "".join(stacks["aten::mm"]))


if __name__ == "__main__":
    unittest.main()
