# SPDX-License-Identifier: Apache-2.0
"""Data in and out: torch.tensor, as_tensor, tolist, buffers, NumPy, DLPack; who keeps what alive, on which
thread it is given back, and what happens at the end of the process."""
import array
import gc
import hashlib
import os
import pickle
import subprocess
import sys
import threading
import unittest
import warnings
import weakref

import mindtorch_v2 as torch

try:
    import numpy
except ImportError:
    numpy = None

needs_numpy = unittest.skipIf(numpy is None, "numpy is not installed")


def run(code, expect=0):
    """The code in a process of its own; its output."""
    done = subprocess.run([sys.executable, "-W", "error::DeprecationWarning", "-c", code],
                          capture_output=True,
                          text=True, timeout=60, env=dict(os.environ))
    if done.returncode != expect:
        raise AssertionError(f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout.strip()


class FromPython(unittest.TestCase):
    def test_types_are_inferred(self):
        for data, dtype, values in (
                ([1, 2], torch.int64, [1, 2]), ([1, 2.5], torch.float32, [1.0, 2.5]), ([True, False],
                                                                                       torch.bool,
                                                                                       [True, False]),
                ([True, 1], torch.int64, [1, 1]), ([True, 1.5], torch.float32, [1.0, 1.5]), ([],
                                                                                             torch.float32,
                                                                                             []),
                ([[], []], torch.float32, [[], []]), (5, torch.int64, 5), (2.5, torch.float32, 2.5),
                (True, torch.bool, True), ((1, (2, 3)[0]), torch.int64, [1, 2]), (range(3), torch.int64, [0,
                                                                                                          1,
                                                                                                          2]),
                ([(1, 2), [3, 4]], torch.int64, [[1, 2], [3, 4]]), (bytearray(b"ab"), torch.int64, [97, 98]),
                (array.array("d", [1.5]), torch.float32, [1.5]), (2 ** 62, torch.int64, 2 ** 62)):
            with self.subTest(data=data):
                x = torch.tensor(data)
                self.assertEqual((x.dtype, x.tolist()), (dtype, values))

    def test_default_dtype(self):
        torch.set_default_dtype(torch.float64)
        self.addCleanup(torch.set_default_dtype, torch.float32)
        self.assertIs(torch.tensor([1.0]).dtype, torch.float64)
        self.assertIs(torch.tensor([]).dtype, torch.float64)

    def test_dtype_is_given(self):
        for data, dtype, values in (
                ([1.5, -1.5], torch.int64, [1, -1]), ([1.5, 0], torch.bool, [True, False]),
                ([-1], torch.uint8, [255]), ([1, 2], torch.float64, [1.0, 2.0]), ([True], torch.float32,
                                                                                  [1.0]),
                ([1e40], torch.float32, [float("inf")]), ([0.1], torch.float16, [0.0999755859375]),
                ([70000.0], torch.float16, [float("inf")]), ([65519.0], torch.float16, [65504.0]),
                ([1.00390625], torch.bfloat16, [1.0]), ([1.01171875], torch.bfloat16, [1.015625]),
                ([3.39e38], torch.bfloat16, [3.3895313892515355e38]), ([3.4e38], torch.bfloat16,
                                                                       [float("inf")]), ([-0.0],
                                                                                         torch.bfloat16,
                                                                                         [-0.0])):
            with self.subTest(data=data, dtype=dtype):
                self.assertEqual(torch.tensor(data, dtype=dtype).tolist(), values)
        self.assertTrue(torch.isnan(torch.tensor(float("nan"), dtype=torch.bfloat16).float()).item())

    def test_refused(self):
        cases = [
            ([[1, 2], [3]], ValueError, r"expected sequence of length 2 at dim 1 \(got 1\)"),
            ([[1, 2], [3, 4, 5]], ValueError, r"expected sequence of length 2 at dim 1 \(got 3\)"),
            ([[1, 2], 3], TypeError, "not a sequence"), ([1, [2]], TypeError, "interpreted as an integer"),
            ([1.0, [2]], TypeError, "must be real number, not list"), ("a", TypeError,
                                                                       "invalid data type 'str'"),
            (["a"], ValueError, "too many dimensions 'str'"), (None, RuntimeError, "infer dtype of NoneType"),
            ([1, None], RuntimeError, "infer dtype of NoneType"), ({1}, RuntimeError, "infer dtype of set"),
            (2 ** 63, ValueError, "Overflow when unpacking long long"), ([2 ** 63], ValueError, "Overflow"),
            (b"ab", TypeError, "invalid data type 'bytes'"),
            ([torch.ones(2)], ValueError, "only one element tensors"),
            ([torch.ones(2, dtype=torch.int64)], TypeError, "only integer tensors of a single element"),
            (iter([1]), RuntimeError, "infer dtype of list_iterator"), (object(), RuntimeError,
                                                                        "infer dtype of object")]
        for data, kind, words in cases:
            with self.subTest(data=data):
                with self.assertRaisesRegex(kind, words):
                    torch.tensor(data)
        for data, dtype in (([300], torch.uint8), ([2 ** 40], torch.int32), ([float("nan")], torch.int64),
                            ([float("inf")], torch.int32), ([-256], torch.uint8)):
            with self.assertRaisesRegex(RuntimeError, "without overflow"):
                torch.tensor(data, dtype=dtype)
        with self.assertRaisesRegex(TypeError, 'missing 1 required positional arguments: "data"'):
            torch.tensor()
        with self.assertRaisesRegex(TypeError, "takes 1 positional argument but 2 were given"):
            torch.tensor([1], torch.float32)
        with self.assertRaisesRegex(TypeError, "argument 'dtype' must be torch.dtype, not str"):
            torch.tensor([1], dtype="float32")
        with self.assertRaisesRegex(RuntimeError, "floating point"):
            torch.tensor([1], requires_grad=True)

    def test_deep_lists_are_refused_not_followed(self):
        deep = 1
        for _ in range(17):
            deep = [deep]
        with self.assertRaisesRegex(ValueError, "too many dimensions 'list'"):
            torch.tensor(deep)
        loop = []
        loop.append(loop)
        with self.assertRaisesRegex(ValueError, "too many dimensions"):
            torch.tensor(loop)

    def test_requires_grad(self):
        x = torch.tensor([1.0], requires_grad=True)
        self.assertTrue(x.requires_grad and x.is_leaf)

    def test_of_a_tensor(self):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        with self.assertWarnsRegex(UserWarning, "To copy construct from a tensor"):
            y = torch.tensor(x)
        self.assertFalse(y.requires_grad)
        self.assertNotEqual(y.data_ptr(), x.data_ptr())
        self.assertIs(torch.as_tensor(x), x)
        self.assertIs(torch.as_tensor(x, dtype=torch.float32), x)
        z = torch.as_tensor(x, dtype=torch.float64)
        self.assertIs(z.dtype, torch.float64)
        self.assertTrue(z.requires_grad)

    def test_tensors_in_a_list(self):
        self.assertEqual(torch.tensor([torch.tensor(1.0), 2]).tolist(), [1.0, 2.0])
        self.assertEqual(torch.tensor([[torch.tensor([1])]]).tolist(), [[1]])
        self.assertIs(torch.tensor([torch.tensor(1, dtype=torch.int32)]).dtype, torch.int32)
        with self.assertWarnsRegex(UserWarning, "requires_grad=True to a scalar"):
            torch.tensor([torch.ones(1, requires_grad=True)])

    def test_lists_that_change_meanwhile(self):
        class Shrinks:
            def __float__(self):
                items.clear()
                return 1.0

        items = [Shrinks(), 1.0, 2.0]
        with self.assertRaises((RuntimeError, ValueError)):
            torch.tensor(items, dtype=torch.float32)

    def test_errors_of_elements_arrive(self):
        class Bad:
            def __index__(self):
                raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            torch.tensor([Bad()], dtype=torch.int64)

        class BadLength(list):
            def __len__(self):
                raise KeyError("length")

        with self.assertRaises((KeyError, ValueError)):
            torch.tensor(BadLength([1]), dtype=torch.int64)

    def test_long_lists(self):
        n = 200_000
        self.assertEqual(torch.tensor(list(range(n))).sum().item(), n * (n - 1) // 2)
        self.assertEqual(torch.tensor([0.5] * n).sum().item(), n / 2)

    def test_references_are_flat(self):
        item = 123456789.25
        data = [item] * 10
        bad = [item, None]

        def work():
            for _ in range(300):
                torch.tensor(data).tolist()
                try:
                    torch.tensor(bad)
                except RuntimeError:
                    pass

        work()
        before = (sys.getrefcount(item), sys.getrefcount(data), torch._C._tensors_alive())
        work()
        self.assertEqual((sys.getrefcount(item), sys.getrefcount(data), torch._C._tensors_alive()), before)


class ToPython(unittest.TestCase):
    def test_tolist(self):
        self.assertEqual(torch.tensor([[1, 2], [3, 4]]).t().tolist(), [[1, 3], [2, 4]])
        self.assertEqual(torch.zeros(0, 3).tolist(), [])
        self.assertEqual(torch.zeros(2, 0).tolist(), [[], []])
        self.assertEqual(torch.tensor(True).tolist(), True)
        self.assertIs(type(torch.tensor([1.0]).tolist()[0]), float)
        self.assertIs(type(torch.tensor([1]).tolist()[0]), int)
        self.assertEqual(torch.tensor([1, 2], dtype=torch.int32).expand(2, 2).tolist(), [[1, 2], [1, 2]])
        self.assertEqual(torch.tensor([1.5], requires_grad=True).tolist(), [1.5])
        for dtype in (torch.float16, torch.bfloat16, torch.uint8, torch.int32, torch.bool):
            self.assertEqual(torch.tensor([0, 1], dtype=dtype).tolist(), [0, 1])
        with self.assertRaises(TypeError):
            torch.ones(1).tolist(1)

    def test_bytes(self):
        x = torch.tensor([[1, 2], [3, 4]], dtype=torch.int32)
        raw = torch._C._tensor_bytes(x.t())
        self.assertEqual(array.array("i", raw).tolist(), [1, 3, 2, 4])
        y = torch._C._tensor_from_bytes(raw, torch.int32, (2, 2))
        self.assertEqual(y.tolist(), [[1, 3], [2, 4]])
        for sizes in ((3, 2), (-1,), (2 ** 62, 8), (2,) * 17):
            with self.assertRaises(ValueError):
                torch._C._tensor_from_bytes(raw, torch.int32, sizes)
        self.assertEqual(torch._C._tensor_from_bytes(b"", torch.float32, (0, 3)).shape, (0, 3))
        with self.assertRaises(TypeError):
            torch._C._tensor_bytes(5)


class Buffers(unittest.TestCase):
    def test_memoryview(self):
        x = torch.tensor([[1, 2, 3], [4, 5, 6]], dtype=torch.int32)
        view = memoryview(x)
        self.assertEqual((view.format, view.shape, view.strides, view.readonly), ("i", (2, 3), (12, 4),
                                                                                  False))
        self.assertEqual(view.tolist(), x.tolist())
        self.assertEqual(memoryview(x.t()).strides, (4, 12))
        self.assertEqual(memoryview(x.t()).tolist(), x.t().tolist())
        flat = memoryview(torch.zeros(4, dtype=torch.uint8))
        flat[1] = 7
        self.assertEqual(flat.obj.tolist(), [0, 7, 0, 0])
        self.assertEqual(memoryview(torch.zeros(0, 3)).shape, (0, 3))
        scalar = memoryview(torch.tensor(5.0))
        self.assertEqual((scalar.tolist(), scalar.shape, scalar.strides), (5.0, (), ()))

    def test_layouts(self):
        x = torch.arange(6.0).view(2, 3)
        self.assertTrue(memoryview(x.t()).f_contiguous)
        self.assertEqual(pickle.PickleBuffer(x.t()).raw().nbytes, 24)  # rows or columns, whichever it is
        self.assertEqual(pickle.PickleBuffer(torch.tensor(5.0)).raw().nbytes, 4)
        with self.assertRaises(BufferError):
            pickle.PickleBuffer(x[:, ::2]).raw()

    def test_formats(self):
        for dtype, letter in ((torch.bool, "?"), (torch.uint8, "B"), (torch.int32, "i"), (torch.int64, "l"),
                              (torch.float16, "e"), (torch.float32, "f"), (torch.float64, "d")):
            self.assertEqual(memoryview(torch.zeros(1, dtype=dtype)).format, letter)

    def test_refused(self):
        with self.assertRaisesRegex(BufferError, "bfloat16"):
            memoryview(torch.zeros(1, dtype=torch.bfloat16))
        with self.assertRaisesRegex(BufferError, "requires grad"):
            memoryview(torch.ones(1, requires_grad=True))
        with self.assertRaisesRegex(BufferError, "not contiguous"):
            hashlib.sha256(torch.zeros(2, 3).t())
        self.assertEqual(hashlib.sha256(torch.zeros(2, 3)).digest(), hashlib.sha256(bytes(24)).digest())

    def test_a_view_keeps_the_tensor(self):
        x = torch.tensor([1.0, 2.0])
        there = weakref.ref(x)
        view = memoryview(x)
        del x
        gc.collect()
        self.assertIsNotNone(there())
        self.assertEqual(view.tolist(), [1.0, 2.0])
        del view
        gc.collect()
        self.assertIsNone(there())

    def test_frombuffer(self):
        data = bytearray(array.array("f", [1, 2, 3, 4]).tobytes())
        x = torch.frombuffer(data, dtype=torch.float32)
        self.assertEqual(x.tolist(), [1.0, 2.0, 3.0, 4.0])
        data[:4] = array.array("f", [9]).tobytes()
        self.assertEqual(x[0].item(), 9.0)
        self.assertEqual(torch.frombuffer(data, dtype=torch.float32, offset=8).tolist(), [3.0, 4.0])
        self.assertEqual(torch.frombuffer(data, dtype=torch.float32, count=1, offset=4).tolist(), [2.0])
        with self.assertRaises(BufferError):
            data.append(1)  # exported
        del x
        gc.collect()
        data.append(1)

    def test_frombuffer_refuses(self):
        cases = [
            ((bytearray(7),), {"dtype": torch.float32}, "must be a multiple of element size"),
            ((bytearray(8),), {"dtype": torch.float32, "count": 3},
             "must not be greater than actual buffer length"),
            ((bytearray(8),), {"dtype": torch.float32, "offset": 8}, "offset .8 bytes. must be non-negative"),
            ((bytearray(8),), {"dtype": torch.float32, "offset": -1}, "must be non-negative"),
            ((bytearray(0),), {"dtype": torch.float32},
             r"both buffer length \(0\) and count \(-1\) must not be 0"),
            ((bytearray(8),), {"dtype": torch.float32, "count": 0}, "must not be 0"),
            (([1],), {"dtype": torch.float32}, "does not implement Python buffer protocol")]
        for args, options, words in cases:
            with self.assertRaisesRegex(ValueError, words):
                torch.frombuffer(*args, **options)
        with self.assertRaisesRegex(TypeError, "dtype"):
            torch.frombuffer(bytearray(8))
        with self.assertRaises(RuntimeError):
            torch.frombuffer(bytearray(8), dtype=torch.int64, requires_grad=True)

    def test_read_only_warns_once(self):
        out = run("""if True:
            import warnings, mindtorch_v2 as torch
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                torch.frombuffer(b"abcd", dtype=torch.uint8); torch.frombuffer(b"abcd", dtype=torch.uint8)
            print(len(caught), caught[0].category.__name__, "not writable" in str(caught[0].message))""")
        self.assertEqual(out, "1 UserWarning True")


@needs_numpy
class Numpy(unittest.TestCase):
    def test_no_copies(self):
        a = numpy.arange(6, dtype="float32").reshape(2, 3)
        x = torch.from_numpy(a)
        a[0, 0] = 50
        self.assertEqual(x[0, 0].item(), 50.0)
        x[1, 1] = -1
        self.assertEqual(a[1, 1], -1.0)
        b = x.numpy()
        b[0, 1] = 8
        self.assertEqual((a[0, 1], x[0, 1].item()), (8.0, 8.0))
        self.assertEqual(torch.as_tensor(a).data_ptr(), a.ctypes.data)
        self.assertNotEqual(torch.tensor(a).data_ptr(), a.ctypes.data)
        self.assertEqual(x.t().numpy().strides, (4, 12))
        self.assertEqual(torch.from_numpy(a.T).stride(), (1, 3))
        self.assertEqual(torch.from_numpy(a[:, ::2]).tolist(), a[:, ::2].tolist())

    def test_types(self):
        for name in ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "float32",
                     "float64"):
            a = numpy.array([[0, 1], [1, 0]], dtype=name)
            x = torch.from_numpy(a)
            self.assertEqual(str(x.dtype), f"torch.{name}")
            self.assertEqual(x.numpy().dtype, a.dtype)
            self.assertEqual(x.numpy().tolist(), a.tolist())
            self.assertEqual(torch.tensor(a.flat[1]).tolist(), a.flat[1].item())
            self.assertIs(torch.tensor([a.flat[1]]).dtype, x.dtype)
        self.assertEqual(torch.from_numpy(numpy.array(5)).shape, ())
        self.assertEqual(torch.from_numpy(numpy.zeros((0, 3))).shape, (0, 3))
        self.assertEqual(torch.zeros(0, 3).numpy().shape, (0, 3))
        self.assertEqual(torch.tensor(5.0).numpy().shape, ())

    def test_refused(self):
        supported = "float64, float32, float16, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool"
        for a in (numpy.array(["a"]), numpy.array([1], dtype="clongdouble"),
                  numpy.array([object()]), numpy.array(["2020-01-01"], dtype="datetime64[D]"),
                  numpy.zeros(2, dtype=[("x", "f4")])):
            with self.subTest(dtype=a.dtype):
                with self.assertRaisesRegex(TypeError,
                                            f"can't convert np.ndarray of type numpy.*{supported}"):
                    torch.from_numpy(a)
        with self.assertRaisesRegex(ValueError, "byte order"):
            torch.from_numpy(numpy.ones(2, dtype=">f4"))
        with self.assertRaisesRegex(ValueError, "stride in the given numpy array is negative"):
            torch.from_numpy(numpy.ones(2)[::-1])
        odd = numpy.zeros(2, dtype=[("a", "u1"), ("x", "f4")])["x"]
        with self.assertRaisesRegex(ValueError, "not a multiple of the element byte size"):
            torch.from_numpy(odd)
        with self.assertRaisesRegex(TypeError, r"expected np.ndarray \(got list\)"):
            torch.from_numpy([1])
        with self.assertRaisesRegex(RuntimeError, "Can't call numpy.. on Tensor that requires grad"):
            torch.ones(1, requires_grad=True).numpy()
        with self.assertRaisesRegex(TypeError, "unsupported ScalarType BFloat16"):
            torch.ones(1).bfloat16().numpy()
        with self.assertRaises(RuntimeError):
            numpy.asarray(torch.ones(1, requires_grad=True))

    def test_array_protocol(self):
        x = torch.tensor([1.5, 2.5])
        a = numpy.asarray(x)
        a[0] = 7
        self.assertEqual(x[0].item(), 7.0)
        self.assertEqual(numpy.array(x, dtype="int32").tolist(), [7, 2])
        self.assertEqual(x.__array__("float64").dtype, "float64")
        copied = x.__array__(copy=True)
        copied[0] = 0
        self.assertEqual(x[0].item(), 7.0)
        self.assertEqual(torch.ones(2, requires_grad=True).numpy(force=True).tolist(), [1.0, 1.0])
        self.assertEqual(numpy.stack([x, x]).shape, (2, 2))

    def test_list_of_arrays_warns(self):
        with self.assertWarnsRegex(UserWarning, "extremely slow"):
            x = torch.tensor([numpy.array([1.0, 2.0]), numpy.array([3.0, 4.0])])
        self.assertEqual((x.tolist(), x.dtype), ([[1.0, 2.0], [3.0, 4.0]], torch.float64))
        self.assertEqual(torch.tensor([numpy.array(1.5)]).tolist(), [1.5])

    def test_the_array_lives_as_long_as_a_view(self):
        class Array(numpy.ndarray):
            """Arrays themselves have no weak references that outlive them in older versions."""

        a = numpy.arange(4.0).view(Array)
        there = weakref.ref(a)
        view = torch.from_numpy(a)[1:3]
        del a
        gc.collect()
        self.assertIsNotNone(there())
        self.assertEqual(view.tolist(), [1.0, 2.0])
        del view
        gc.collect()
        self.assertIsNone(there())

    def test_the_tensor_lives_as_long_as_its_array(self):
        before = torch._C._tensors_alive()
        a = torch.tensor([1.0, 2.0]).numpy()
        gc.collect()
        self.assertGreater(torch._C._tensors_alive(), before)
        self.assertEqual(a.tolist(), [1.0, 2.0])
        del a
        gc.collect()
        self.assertEqual(torch._C._tensors_alive(), before)

    def test_given_back_without_the_gil(self):
        # The graph's saved tensors go while backward runs without the GIL: the array must go all the same.
        class Array(numpy.ndarray):
            pass

        a = numpy.arange(4, dtype="float32").view(Array)
        there = weakref.ref(a)
        w = torch.ones(4, requires_grad=True)
        loss = (w * torch.from_numpy(a)).sum()
        del a
        loss.backward()
        del loss
        gc.collect()
        torch._C._tensors_alive()  # empties what waits
        self.assertIsNone(there())
        self.assertEqual(w.grad.tolist(), [0.0, 1.0, 2.0, 3.0])

    def test_given_back_on_other_threads(self):
        class Array(numpy.ndarray):
            pass

        made = []

        def work():
            for i in range(50):
                a = numpy.full(8, float(i), dtype="float32").view(Array)
                made.append(weakref.ref(a))
                w = torch.ones(8, requires_grad=True)
                (w * torch.from_numpy(a)).sum().backward()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        gc.collect()
        torch._C._tensors_alive()
        self.assertEqual([ref for ref in made if ref() is not None], [])

    def test_numpy_is_not_imported_by_us(self):
        out = run("import sys, mindtorch_v2 as torch; torch.tensor([1.0])[0]; repr(torch.ones(2)); "
                  "torch.tensor([[1, 2]]).tolist(); print('numpy' in sys.modules)")
        self.assertEqual(out, "False")

    def test_end_of_the_process(self):
        for code in ("import numpy, mindtorch_v2 as torch\n"
                     "x = torch.from_numpy(numpy.ones(3))\ny = x.numpy()",
                     "import numpy, mindtorch_v2 as torch, sys\nsys.keep = torch.from_dlpack(numpy.ones(3))",
                     "import numpy, mindtorch_v2 as torch\na = numpy.from_dlpack(torch.ones(3))",
                     "import mindtorch_v2 as torch, threading, numpy\n"
                     "def work():\n    for _ in range(1000):\n        torch.from_numpy(numpy.ones(3))\n"
                     "t = threading.Thread(target=work, daemon=True)\nt.start()"):
            run(code)


class FakeProducer:
    """What from_dlpack() asks of a producer; knows no versions."""

    def __init__(self, tensor):
        self.tensor = tensor
        self.asked = []

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **options):
        self.asked.append(options)
        if options:
            raise TypeError("old producers know no keywords")
        return self.tensor.__dlpack__()


class DLPack(unittest.TestCase):
    def test_round_trip(self):
        x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        for source in (x, x.__dlpack__(), x.__dlpack__(max_version=(1, 0)), FakeProducer(x),
                       torch._C.to_dlpack(x)):
            y = torch.from_dlpack(source)
            self.assertEqual(y.tolist(), x.tolist())
            self.assertEqual(y.data_ptr(), x.data_ptr())
        self.assertEqual(torch.from_dlpack(x.t()).stride(), (1, 2))
        for dtype in (torch.bool, torch.uint8, torch.int32, torch.int64, torch.float16, torch.bfloat16,
                      torch.float32, torch.float64):
            self.assertIs(torch.from_dlpack(torch.ones(2, dtype=dtype)).dtype, dtype)
        self.assertEqual(torch.from_dlpack(torch.tensor(5.0)).item(), 5.0)
        self.assertEqual(torch.from_dlpack(torch.zeros(0, 3)).shape, (0, 3))

    def test_names_of_capsules(self):
        x = torch.ones(2)
        self.assertIn('"dltensor"', repr(x.__dlpack__()))
        self.assertIn('"dltensor"', repr(x.__dlpack__(max_version=(0, 8))))
        capsule = x.__dlpack__(max_version=(1, 1))
        self.assertIn('"dltensor_versioned"', repr(capsule))
        torch.from_dlpack(capsule)
        self.assertIn('"used_dltensor_versioned"', repr(capsule))
        with self.assertRaisesRegex(RuntimeError, "consumed only once"):
            torch.from_dlpack(capsule)
        self.assertEqual(tuple(x.__dlpack_device__()), (1, 0))

    def test_copy(self):
        x = torch.ones(2)
        self.assertNotEqual(torch.from_dlpack(x.__dlpack__(copy=True)).data_ptr(), x.data_ptr())
        self.assertNotEqual(torch.from_dlpack(x, copy=True).data_ptr(), x.data_ptr())

    def test_refused(self):
        with self.assertRaisesRegex(BufferError, "require gradient"):
            torch.ones(1, requires_grad=True).__dlpack__()
        for source in (5, object(), None):
            with self.assertRaisesRegex(RuntimeError, "invalid capsule"):
                torch.from_dlpack(source)
        with self.assertRaises(BufferError):
            torch.ones(1).__dlpack__(dl_device=(2, 0))
        for bad in ({"max_version": 5}, {"dl_device": 5}, {"dl_device": ("a", 0)}, {"max_version": (1,)}):
            with self.assertRaises(TypeError):
                torch.ones(1).__dlpack__(**bad)

    def test_who_keeps_what(self):
        before = torch._C._tensors_alive()
        x = torch.ones(3)
        capsule = x.__dlpack__()
        del x
        y = torch.from_dlpack(capsule)
        del capsule
        gc.collect()
        self.assertEqual(y.tolist(), [1.0] * 3)
        del y
        torch.ones(3).__dlpack__()  # never consumed
        torch.ones(3).__dlpack__(max_version=(1, 0))
        gc.collect()
        self.assertEqual(torch._C._tensors_alive(), before)

    @needs_numpy
    def test_with_numpy(self):
        x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        a = numpy.from_dlpack(x)
        self.assertEqual(a.tolist(), x.tolist())
        self.assertEqual(a.ctypes.data, x.data_ptr())
        b = numpy.arange(6.0).reshape(2, 3)
        y = torch.from_dlpack(b.T)
        b[0, 1] = 9
        self.assertEqual(y[1, 0].item(), 9.0)
        c = numpy.arange(3.0)
        there = weakref.ref(c)
        y = torch.from_dlpack(c)[1:]
        del c
        self.assertIsNotNone(there())
        self.assertEqual(y.tolist(), [1.0, 2.0])
        del y
        gc.collect()
        self.assertIsNone(there())
        with self.assertRaisesRegex(ValueError, "negative strides"):
            torch.from_dlpack(numpy.ones(3)[::-1])
        with self.assertRaises(BufferError):
            torch.from_dlpack(numpy.ones(3, dtype="clongdouble"))

    def test_with_torch(self):
        try:
            import torch as peer
        except ImportError:
            self.skipTest("torch is not installed")
        x = torch.tensor([1.0, 2.0])
        y = peer.from_dlpack(x)
        y[0] = 5
        self.assertEqual(x[0].item(), 5.0)
        z = torch.from_dlpack(peer.arange(3))
        self.assertEqual(z.tolist(), [0, 1, 2])


class Asarray(unittest.TestCase):
    def test_alias_or_copy(self):
        x = torch.ones(2)
        self.assertIs(torch.asarray(x), x)
        self.assertNotEqual(torch.asarray(x, copy=True).data_ptr(), x.data_ptr())
        self.assertIs(torch.asarray(x, dtype=torch.float64).dtype, torch.float64)
        with self.assertRaises(ValueError):
            torch.asarray(x, dtype=torch.float64, copy=False)
        self.assertEqual(torch.asarray([1, 2]).tolist(), [1, 2])
        self.assertTrue(torch.asarray([1.0], requires_grad=True).requires_grad)


if __name__ == "__main__":
    warnings.simplefilter("default")
    unittest.main()
