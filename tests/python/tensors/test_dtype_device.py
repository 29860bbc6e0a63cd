# SPDX-License-Identifier: Apache-2.0
"""dtypes, devices, sizes, generators, and what a process has one of."""

import copy
import gc
import pickle
import sys
import unittest

import mindtorch_v2 as torch

UNSIGNED = ["uint16", "uint32", "uint64"]
DTYPES = ["bool", "uint8", *UNSIGNED, "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]


class Dtypes(unittest.TestCase):
    def test_names_and_aliases(self):
        for name in DTYPES:
            self.assertEqual(repr(getattr(torch, name)), f"torch.{name}")
            self.assertEqual(str(getattr(torch, name)), f"torch.{name}")
        for alias, name in {"float": "float32", "double": "float64", "half": "float16", "short": "int16", "int": "int32",
                            "long": "int64"}.items():
            self.assertIs(getattr(torch, alias), getattr(torch, name))

    def test_facts(self):
        self.assertEqual([getattr(torch, n).itemsize for n in DTYPES], [1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8])
        self.assertEqual([getattr(torch, n).is_floating_point for n in DTYPES], [False] * 9 + [True] * 4)
        self.assertEqual([getattr(torch, n).is_signed for n in DTYPES], [False] * 5 + [True] * 8)
        self.assertFalse(any(getattr(torch, n).is_complex for n in DTYPES))

    def test_one_object_each(self):
        for name in DTYPES:
            dtype = getattr(torch, name)
            self.assertIs(torch.zeros(1, dtype=dtype).dtype, dtype)
            self.assertIs(pickle.loads(pickle.dumps(dtype)), dtype)
            self.assertIs(copy.deepcopy(dtype), dtype)
            self.assertEqual(len({dtype, torch.zeros(1, dtype=dtype).dtype}), 1)

    def test_cannot_be_made(self):
        with self.assertRaises(TypeError):
            torch.dtype()
        with self.assertRaises(TypeError):
            type(torch.float32)("float32")
        with self.assertRaises(AttributeError):
            torch.float32.name = "x"

    def test_python_types_stand_for_dtypes(self):
        self.assertIs(torch.zeros(1, dtype=float).dtype, torch.float64)
        self.assertIs(torch.zeros(1, dtype=int).dtype, torch.int64)
        self.assertIs(torch.zeros(1, dtype=bool).dtype, torch.bool)

    def test_references_stay_level(self):
        x = torch.zeros(1)
        before = sys.getrefcount(torch.float32)
        for _ in range(1000):
            _ = x.dtype
        self.assertLessEqual(abs(sys.getrefcount(torch.float32) - before), 2)

    def test_default(self):
        self.assertIs(torch.get_default_dtype(), torch.float32)
        torch.set_default_dtype(torch.float64)
        try:
            self.assertIs(torch.zeros(1).dtype, torch.float64)
            self.assertIs(torch.finfo().__class__, torch.finfo)
            self.assertEqual(torch.finfo().bits, 64)
        finally:
            torch.set_default_dtype(torch.float32)
        with self.assertRaisesRegex(TypeError, "only floating-point types are supported as the default type"):
            torch.set_default_dtype(torch.int32)
        with self.assertRaisesRegex(TypeError, "invalid dtype object"):
            torch.set_default_dtype("float32")

    def test_limits(self):
        # Recorded from torch 2.13.
        self.assertEqual(repr(torch.finfo(torch.float32)),
                         "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, "
                         "smallest_normal=1.17549e-38, tiny=1.17549e-38, dtype=float32)")
        self.assertEqual(repr(torch.iinfo(torch.int32)),
                         "iinfo(min=-2.14748e+09, max=2.14748e+09, dtype=int32)")
        self.assertEqual(torch.iinfo(torch.int64).max, 2**63 - 1)
        self.assertEqual(torch.finfo(torch.bfloat16).eps, 0.0078125)
        with self.assertRaisesRegex(TypeError, "requires a floating point input type"):
            torch.finfo(torch.int32)
        with self.assertRaisesRegex(TypeError, "requires an integer input type"):
            torch.iinfo(torch.float32)
        with self.assertRaisesRegex(TypeError, "must be torch.dtype, not str"):
            torch.finfo("float32")

    def test_promotion(self):
        self.assertIs(torch.promote_types(torch.int32, torch.float16), torch.float16)
        self.assertIs(torch.promote_types(torch.uint8, torch.int32), torch.int32)
        self.assertIs(torch.promote_types(torch.float16, torch.bfloat16), torch.float32)
        x, y = torch.ones(2, dtype=torch.int32), torch.ones((), dtype=torch.int64)
        self.assertIs(torch.result_type(x, y), torch.int32)
        self.assertIs(torch.result_type(x, 1.5), torch.float32)
        self.assertIs(torch.result_type(x, True), torch.int32)
        for a in DTYPES:
            for b in DTYPES:
                a_, b_ = torch.ones(2, dtype=getattr(torch, a)), torch.ones((), dtype=getattr(torch, b))
                with self.subTest(a=a, b=b):
                    try:
                        expected = torch.result_type(a_, b_)
                    except RuntimeError as error:  # integers of no common type
                        self.assertIn("Promotion for uint16, uint32, uint64 types is not supported", str(error))
                        self.assertTrue({a, b} & set(UNSIGNED) and a != b)
                        with self.assertRaisesRegex(RuntimeError, "Promotion for uint16"):
                            _ = a_ * b_
                        continue
                    self.assertIs((a_ * b_).dtype, expected)
        self.assertFalse(torch.can_cast(torch.float32, torch.int32))
        self.assertTrue(torch.can_cast(torch.int64, torch.uint8))
        self.assertFalse(torch.can_cast(torch.int64, torch.bool))


class Devices(unittest.TestCase):
    def test_spellings(self):
        self.assertEqual(repr(torch.device("cpu")), "device(type='cpu')")
        self.assertEqual(repr(torch.device("cpu:0")), "device(type='cpu', index=0)")
        self.assertEqual(repr(torch.device("npu", 1)), "device(type='npu', index=1)")
        self.assertEqual(repr(torch.device(type="npu", index=2)), "device(type='npu', index=2)")
        self.assertEqual(str(torch.device("npu:1")), "npu:1")
        self.assertEqual(torch.device("cuda:1"), torch.device("npu:1"))
        self.assertEqual(torch.device(0), torch.device("npu:0"))
        cpu = torch.device("cpu")
        self.assertEqual(torch.device(cpu), cpu)
        self.assertEqual((cpu.type, cpu.index), ("cpu", None))
        self.assertEqual(torch.device("npu:1").index, 1)

    def test_compare_and_hash(self):
        self.assertNotEqual(torch.device("cpu"), torch.device("cpu:0"))
        self.assertNotEqual(torch.device("cpu"), "cpu")
        self.assertEqual(len({torch.device("npu:0"), torch.device("npu:0"), torch.device("npu")}), 2)
        with self.assertRaises(TypeError):
            torch.device("cpu") < torch.device("npu")

    def test_refused(self):
        for bad, error in (("foo", RuntimeError), ("cpu:a", RuntimeError), ("", RuntimeError),
                           (1.5, TypeError),
                           (None, TypeError), (True, TypeError), (-1, RuntimeError), (1000, RuntimeError)):
            with self.subTest(bad=bad), self.assertRaises(error):
                torch.device(bad)
        with self.assertRaisesRegex(RuntimeError, "must not include an index"):
            torch.device("npu:1", 1)
        with self.assertRaises(TypeError):
            torch.device()
        with self.assertRaises(TypeError):
            torch.zeros(1, device=3.5)

    def test_pickle_and_copy(self):
        for text in ("cpu", "cpu:0", "npu:3"):
            device = torch.device(text)
            self.assertEqual(pickle.loads(pickle.dumps(device)), device)
            self.assertEqual(copy.deepcopy(device), device)

    def test_of_tensors(self):
        x = torch.zeros(1, device="cpu")
        self.assertEqual(x.device, torch.device("cpu"))
        self.assertTrue(x.is_cpu)
        self.assertFalse(x.is_npu or x.is_cuda)
        if torch.npu.is_available():
            self.skipTest("an accelerator is here: what it does without one cannot be seen")
        with self.assertRaises(RuntimeError):
            x.to("npu")

    def test_npu_module(self):
        self.assertIs(torch.cuda.synchronize, torch.npu.synchronize)
        self.assertEqual(torch.npu.is_available(), torch.npu.device_count() > 0)
        torch.npu.synchronize()
        torch.npu.empty_cache()
        with self.assertRaises(ValueError):
            torch.npu.synchronize("cpu")
        with self.assertRaises(RuntimeError):
            torch.npu.set_device(100)

    def test_memory_of_the_host(self):
        stats = torch._C._device_memory_stats("cpu")
        x = torch.zeros(1000)
        more = torch._C._device_memory_stats("cpu")
        self.assertGreaterEqual(more["allocated_bytes.all.current"] - stats["allocated_bytes.all.current"],
                                4000)
        del x
        torch._C._device_reset_peaks("cpu")
        torch._C._device_empty_cache("cpu")

    def test_threads(self):
        before = torch.get_num_threads()
        try:
            torch.set_num_threads(1)
            self.assertEqual(torch.get_num_threads(), 1)
        finally:
            torch.set_num_threads(before)
        with self.assertRaisesRegex(RuntimeError, "positive integer"):
            torch.set_num_threads(0)
        with self.assertRaises(TypeError):
            torch.set_num_threads("1")


class Sizes(unittest.TestCase):
    def test_is_a_tuple(self):
        size = torch.Size([2, 3])
        self.assertEqual(repr(size), "torch.Size([2, 3])")
        self.assertEqual(size, (2, 3))
        self.assertEqual(hash(size), hash((2, 3)))
        self.assertEqual(size.numel(), 6)
        self.assertEqual(torch.Size().numel(), 1)
        self.assertEqual(list(size), [2, 3])
        self.assertEqual({(2, 3): 1}[size], 1)

    def test_stays_a_size(self):
        size = torch.Size([2, 3])
        for made, expected in ((size + size, (2, 3, 2, 3)), (size + (1,), (2, 3, 1)),
                               ((1,) + size, (1, 2, 3)),
                               (size * 2, (2, 3, 2, 3)), (2 * size, (2, 3, 2, 3)), (size[:1], (2,)),
                               (size[::-1], (3, 2)), (() + size, (2, 3)), (size + (), (2, 3))):
            self.assertIs(type(made), torch.Size)
            self.assertEqual(made, expected)
        self.assertEqual(size[-1], 3)
        with self.assertRaises(IndexError):
            size[2]
        with self.assertRaises(TypeError):
            size + [1]

    def test_refused(self):
        with self.assertRaisesRegex(TypeError, r"torch.Size\(\) takes an iterable of 'int' \(item 0 is "
                                               r"'str'\)"):
            torch.Size(["a"])
        with self.assertRaisesRegex(TypeError, r"\(item 1 is 'float'\)"):
            torch.Size([1, 1.5])
        with self.assertRaises(TypeError):
            torch.Size(3)

    def test_pickle_and_copy(self):
        size = torch.Size([2, 3])
        for made in (pickle.loads(pickle.dumps(size)), copy.deepcopy(size), copy.copy(size)):
            self.assertIs(type(made), torch.Size)
            self.assertEqual(made, size)

    def test_of_tensors(self):
        self.assertEqual(torch.zeros(2, 3).shape, torch.Size([2, 3]))
        self.assertEqual(torch.zeros(()).shape, torch.Size([]))
        self.assertIs(type(torch.zeros(2, 3).size()), torch.Size)


class Generators(unittest.TestCase):
    def test_seeds(self):
        a, b = torch.Generator().manual_seed(5), torch.Generator("cpu")
        self.assertEqual(a.initial_seed(), 5)
        self.assertIs(b.manual_seed(5), b)
        self.assertTrue(torch.equal(torch.rand(3, generator=a), torch.rand(3, generator=b)))
        self.assertFalse(torch.equal(torch.rand(3, generator=a), torch.rand(3)))
        self.assertEqual(a.manual_seed(-1).initial_seed(), 2**64 - 1)
        self.assertEqual(a.manual_seed(2**64 - 1).initial_seed(), 2**64 - 1)
        with self.assertRaises(RuntimeError):
            a.manual_seed(2**64)
        with self.assertRaises(TypeError):
            a.manual_seed("1")
        self.assertNotEqual(a.seed(), a.seed())
        self.assertEqual(a.device, torch.device("cpu"))

    def test_state(self):
        generator = torch.Generator().manual_seed(3)
        torch.rand(5, generator=generator)
        state = generator.get_state()
        self.assertIs(state.dtype, torch.uint8)
        first = torch.rand(5, generator=generator)
        generator.set_state(state)
        self.assertTrue(torch.equal(first, torch.rand(5, generator=generator)))
        with self.assertRaises(TypeError):
            generator.set_state(torch.zeros(16))
        with self.assertRaises(RuntimeError):
            generator.set_state(torch.zeros(3, dtype=torch.uint8))
        with self.assertRaises(TypeError):
            generator.set_state([1])

    def test_default_one(self):
        torch.manual_seed(7)
        self.assertEqual(torch.initial_seed(), 7)
        state = torch.get_rng_state()
        first = torch.randn(4)
        torch.set_rng_state(state)
        self.assertTrue(torch.equal(first, torch.randn(4)))
        with torch.random.fork_rng():
            torch.manual_seed(1)
        self.assertEqual(torch.initial_seed(), 7)
        torch.set_rng_state(state)
        self.assertTrue(torch.equal(first, torch.randn(4, generator=torch.default_generator)))

    def test_wrong_generator(self):
        with self.assertRaisesRegex(TypeError, "'generator' must be torch.Generator, not int"):
            torch.rand(2, generator=3)

    def test_goes(self):
        for _ in range(1000):
            torch.Generator().manual_seed(1)
        gc.collect()


class Formats(unittest.TestCase):
    def test_names(self):
        self.assertEqual(repr(torch.strided), "torch.strided")
        self.assertEqual(repr(torch.contiguous_format), "torch.contiguous_format")
        self.assertIs(torch.zeros(1).layout, torch.strided)
        self.assertIs(pickle.loads(pickle.dumps(torch.strided)), torch.strided)
        self.assertIs(pickle.loads(pickle.dumps(torch.preserve_format)), torch.preserve_format)

    def test_as_arguments(self):
        x = torch.zeros(2, 3)
        for format in (torch.contiguous_format, torch.preserve_format, None):
            self.assertEqual(torch.empty_like(x, memory_format=format).shape, x.shape)
            self.assertEqual(x.clone(memory_format=format).shape, x.shape)
        self.assertIs(x.contiguous(memory_format=torch.contiguous_format), x)
        self.assertEqual(torch.zeros(2, layout=torch.strided, pin_memory=False).shape, (2,))
        with self.assertRaisesRegex(RuntimeError, "required rank 4 tensor to use channels_last format"):
            x.clone(memory_format=torch.channels_last)
        for refused in (x.contiguous, x.is_contiguous):
            with self.assertRaisesRegex(RuntimeError, "preserve memory format is unsupported"):
                refused(memory_format=torch.preserve_format)
        with self.assertRaisesRegex(TypeError, "must be torch.memory_format, not int"):
            x.to(memory_format=1)
        with self.assertRaisesRegex(TypeError, "'layout' must be torch.layout, not int"):
            torch.zeros(2, layout=1)

    def test_channels_last(self):
        """tests/peers/nn/torch_formats.py compares strides with torch's."""
        x = torch.arange(120.0).reshape(2, 3, 4, 5)
        last = x.to(memory_format=torch.channels_last)
        self.assertEqual(last.stride(), (60, 1, 15, 3))
        self.assertTrue(torch.equal(last, x))
        self.assertTrue(last.is_contiguous(memory_format=torch.channels_last))
        self.assertFalse(last.is_contiguous())
        self.assertIs(last.to(memory_format=torch.channels_last), last)
        self.assertEqual(torch.zeros_like(last, memory_format=torch.contiguous_format).stride(), x.stride())
        self.assertEqual(torch.empty((2, 3, 4, 5), memory_format=torch.channels_last).stride(), last.stride())
        volume = torch.zeros(1, 2, 3, 4, 5).contiguous(memory_format=torch.channels_last_3d)
        self.assertEqual(volume.stride(), (120, 1, 40, 10, 2))

    def test_channels_last_results(self):
        x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.ReLU(),
                                    torch.nn.MaxPool2d(2))
        plain = model(x.contiguous())
        model = model.to(memory_format=torch.channels_last)
        self.assertTrue(model[0].weight.is_contiguous(memory_format=torch.channels_last))
        made = model(x)
        self.assertTrue(made.is_contiguous(memory_format=torch.channels_last))
        self.assertTrue(torch.allclose(made, plain, atol=1e-5))
        made.sum().backward()
        self.assertEqual(model[0].weight.grad.stride(), model[0].weight.stride())


if __name__ == "__main__":
    unittest.main()
