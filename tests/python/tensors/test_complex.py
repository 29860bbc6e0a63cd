# SPDX-License-Identifier: Apache-2.0
"""Complex tensors and torch.fft. Numbers, texts and refusals were recorded from torch 2.13; gradients are
compared with differences over real and imaginary parts."""

import cmath
import io
import unittest
import warnings

import mindtorch_v2 as torch
from mindtorch_v2 import _C

TYPES = (torch.complex64, torch.complex128)


def numbers(*shape, dtype=torch.complex128, seed=0):
    torch.manual_seed(seed)
    return torch.randn(*shape, dtype=dtype)


class Values(unittest.TestCase):
    """Making, taking apart, arithmetic."""

    def near(self, got, expected, places=5):
        got = got.flatten().tolist() if isinstance(got, torch.Tensor) else [got]
        self.assertEqual(len(got), len(expected))
        for a, b in zip(got, expected):
            self.assertAlmostEqual(abs(a - b), 0, places)

    def test_made(self):
        x = torch.tensor([1 + 2j, 3 - 1j])
        self.assertIs(x.dtype, torch.complex64)
        self.assertTrue(x.is_complex() and torch.is_complex(x) and x.dtype.is_complex)
        self.assertFalse(x.is_floating_point() or x.is_conj())
        self.assertEqual(x.tolist(), [1 + 2j, 3 - 1j])
        self.assertEqual(x[1].item(), 3 - 1j)
        self.assertIs(torch.tensor([1j], dtype=torch.complex128).dtype, torch.complex128)
        self.assertEqual(torch.zeros(2, dtype=torch.complex128).tolist(), [0j, 0j])
        self.assertEqual(torch.full((2,), 2.0, dtype=torch.complex64).tolist(), [2, 2])
        self.assertEqual(torch.ones(1, dtype=torch.complex64).fill_(1 - 3j).tolist(), [1 - 3j])
        self.assertEqual(torch.complex(torch.tensor([1.0]), torch.tensor([2.0])).tolist(), [1 + 2j])
        self.near(torch.polar(torch.tensor([2.0]), torch.tensor([0.5])), [cmath.rect(2, 0.5)])
        self.assertEqual(tuple(torch.rand(3, 2, dtype=torch.complex64).shape), (3, 2))

    def test_random_fills(self):
        """Both parts have the mean and half of the variance, and both ends of a range."""
        torch.manual_seed(3)
        for dtype in TYPES:
            x = torch.zeros(20000, dtype=dtype)
            version = x._version
            self.assertIs(x.normal_(2, 3), x)
            self.assertEqual(x._version, version + 1)
            for part in (x.real, x.imag):
                self.assertAlmostEqual(part.mean().item(), 2, delta=0.1)
                self.assertAlmostEqual(part.var().item(), 4.5, delta=0.3)
            self.assertAlmostEqual(((x.real - 2) * (x.imag - 2)).mean().item(), 0, delta=0.2)
            x.uniform_(-1, 3)
            for part in (x.real, x.imag):
                self.assertTrue(-1 <= part.min().item() < -0.9 and 2.9 < part.max().item() <= 3)
        self.assertEqual(torch.zeros(2, dtype=torch.complex64).normal_(1, 0).tolist(), [1 + 1j] * 2)
        with self.assertRaisesRegex(RuntimeError, "normal expects std >= 0.0, but found std -1"):
            torch.zeros(2, dtype=torch.complex64).normal_(0, -1)

    def test_parts_are_views(self):
        for dtype in TYPES:
            x = torch.tensor([[1 + 2j, 3 - 1j]], dtype=dtype)
            x.real[0, 0] = 5
            x.imag.mul_(2)
            self.assertEqual(x.tolist(), [[5 + 4j, 3 - 2j]])
            pairs = torch.view_as_real(x)
            self.assertEqual((tuple(pairs.shape), pairs.stride()), ((1, 2, 2), (4, 2, 1)))
            pairs[0, 1, 0] = -1
            self.assertEqual(torch.view_as_complex(pairs).tolist(), [[5 + 4j, -1 - 2j]])
            self.assertEqual(x.data_ptr(), pairs.data_ptr())
            x.real = torch.tensor([[0.0, 0.0]])
            self.assertEqual(x.tolist(), [[4j, -2j]])

    def test_arithmetic(self):
        for dtype in TYPES:
            x = torch.tensor([1 + 2j, 3 - 1j], dtype=dtype)
            y = torch.tensor([0.5 - 1j, 2j], dtype=dtype)
            a, b = x.tolist(), y.tolist()
            for got, expected in ((x + y, [p + q for p, q in zip(a, b)]),
                                  (x - 2 * y, [p - 2 * q for p, q in zip(a, b)]),
                                  (x * y, [p * q for p, q in zip(a, b)]), (x / y, [p / q for p, q in zip(a, b)]),
                                  (-x, [-p for p in a]), (x * 2j, [p * 2j for p in a]), (1j - x, [1j - p for p in a]),
                                  (1 / x, [1 / p for p in a]), (x ** 2, [p * p for p in a]),
                                  (x ** 3, [p ** 3 for p in a]), (x.reciprocal(), [1 / p for p in a]),
                                  (x.sqrt(), [cmath.sqrt(p) for p in a]), (x.exp(), [cmath.exp(p) for p in a]),
                                  (x.log(), [cmath.log(p) for p in a]), (x.sin(), [cmath.sin(p) for p in a]),
                                  (x.cos(), [cmath.cos(p) for p in a]), (x.tanh(), [cmath.tanh(p) for p in a]),
                                  (x.conj(), [p.conjugate() for p in a]), (x.sgn(), [p / abs(p) for p in a])):
                self.assertIs(got.dtype, dtype)
                self.near(got, expected)
            for got, expected in ((x.abs(), [abs(p) for p in a]), (x.angle(), [cmath.phase(p) for p in a])):
                self.assertFalse(got.is_complex())
                self.near(got, expected)
            self.near(x.sum(), [sum(a)])
            self.near(x.mean(), [sum(a) / 2])
            self.near(x.prod(), [a[0] * a[1]])
            self.assertEqual((x == x).tolist(), [True, True])
            self.assertEqual((x != y).tolist(), [True, True])
            self.assertTrue(torch.allclose(x, x + 1e-9j) and torch.equal(x, x.clone()))
            x += 1j
            self.near(x, [p + 1j for p in a])
        nan = torch.tensor([complex("nan"), complex(0, float("inf")), 1j])
        self.assertEqual((nan.isnan().tolist(), nan.isinf().tolist(), nan.isfinite().tolist()),
                         ([True, False, False], [False, True, False], [False, False, True]))

    def test_promotion(self):
        c64, c128 = TYPES
        for other, expected in ((torch.float64, c128), (torch.float32, c64), (torch.int64, c64), (torch.bool, c64),
                                (torch.float16, c64), (c128, c128)):
            self.assertIs(torch.promote_types(c64, other), expected)
        for dtype, expected in ((torch.float32, c64), (torch.float64, c128), (torch.int32, c64), (c128, c128)):
            self.assertIs((torch.ones(2, dtype=dtype) * 1j).dtype, expected)
        exact = torch.ones(1, dtype=torch.float64) * (0.1 + 0.2j)
        self.assertEqual(exact.tolist(), [0.1 + 0.2j])
        with self.assertRaisesRegex(RuntimeError, "type ComplexFloat can't be cast to the desired output type Float"):
            torch.ones(2).mul_(1j)

    def test_matrices(self):
        for dtype in TYPES:
            a, b = numbers(3, 4, dtype=dtype), numbers(4, 2, dtype=dtype, seed=1)
            expected = [sum(a[i, k].item() * b[k, j].item() for k in range(4)) for i in range(3) for j in range(2)]
            self.near(a @ b, expected)
            self.near(a.t().conj() @ a, [sum(a[k, i].item().conjugate() * a[k, j].item() for k in range(3))
                                         for i in range(4) for j in range(4)])
            self.assertEqual(tuple(torch.bmm(a[None], b[None]).shape), (1, 3, 2))

    def test_moves(self):
        for dtype in TYPES:
            x = numbers(2, 3, dtype=dtype)
            rows = x.tolist()
            self.assertEqual(torch.cat([x, x], -1).tolist(), [row + row for row in rows])
            self.assertEqual(torch.stack([x, x], 1)[:, 1].tolist(), rows)
            self.assertEqual(x.t().contiguous().tolist(), [list(column) for column in zip(*rows)])
            self.assertEqual(x.flip(-1).tolist(), [row[::-1] for row in rows])
            self.assertEqual(x.roll(1, 0).tolist(), rows[::-1])
            self.assertEqual(x[torch.tensor([1, 0])].tolist(), rows[::-1])
            self.assertEqual(x[:, torch.tensor([True, False, True])].tolist(), [[row[0], row[2]] for row in rows])
            self.assertEqual(torch.where(torch.tensor([True, False, True]), x, 0).tolist(),
                             [[row[0], 0, row[2]] for row in rows])
            y = x.clone()
            y[0, 1:] = 1j
            self.assertEqual(y.tolist(), [[rows[0][0], 1j, 1j], rows[1]])
            self.assertEqual(x.permute(1, 0).reshape(-1).tolist(), [row[i] for i in range(3) for row in rows])

    def test_conversions(self):
        x = torch.tensor([1 + 2j, 0j, 3j])
        self.assertEqual(x.to(torch.complex128).tolist(), [1 + 2j, 0, 3j])
        self.assertEqual(x.bool().tolist(), [True, False, True])
        self.assertEqual(torch.tensor([1, 2]).to(torch.complex64).tolist(), [1, 2])
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            self.assertEqual(x.float().tolist(), [1, 0, 0])
        self.assertTrue(all("discards the imaginary part" in str(warning.message) for warning in seen))

    def test_printed(self):
        for tensor, text in (
                (torch.tensor([1 + 2j, 3.5 - 1e-3j]), "tensor([1.0000+2.0000e+00j, 3.5000-1.0000e-03j])"),
                (torch.tensor([[1 + 2j, 3 - 1j]]), "tensor([[1.+2.j, 3.-1.j]])"),
                (torch.tensor([1e10 + 1j]), "tensor([1.0000e+10+1.j])"),
                (torch.tensor([complex("nan"), 1j]), "tensor([nan+0.j, 0.+1.j])"),
                (torch.zeros(1, 2, dtype=torch.complex128), "tensor([[0.+0.j, 0.+0.j]], dtype=torch.complex128)"),
                (torch.tensor(1j), "tensor(0.+1.j)")):
            self.assertEqual(repr(tensor), text)

    def test_exchanged(self):
        for dtype in TYPES:
            x = numbers(2, 3, dtype=dtype)
            file = io.BytesIO()
            torch.save({"x": x}, file)
            file.seek(0)
            y = torch.load(file)["x"]
            self.assertIs(y.dtype, dtype)
            self.assertEqual(y.tolist(), x.tolist())
            self.assertEqual(torch.from_dlpack(x).tolist(), x.tolist())
            try:
                import numpy
            except ImportError:
                continue
            array = x.numpy()
            self.assertEqual(array.dtype.name, str(dtype).rpartition(".")[2])
            self.assertEqual(torch.from_numpy(numpy.ascontiguousarray(array)).tolist(), x.tolist())


class Refusals(unittest.TestCase):
    """Ops that do not know complex numbers refuse them; none computes with them as if they were others."""

    def test_words(self):
        x = torch.tensor([1j])
        for name in ("max", "sort", "floor", "relu", "argmax", "sigmoid", "erf"):
            with self.assertRaisesRegex(NotImplementedError, f"\"{name}\" not implemented for 'ComplexFloat'"):
                getattr(x, name)()
        with self.assertRaisesRegex(NotImplementedError, "\"lt\" not implemented for 'ComplexFloat'"):
            x < x  # noqa: B015
        with self.assertRaisesRegex(RuntimeError, "value cannot be converted to type float without overflow"):
            torch.ones(2).fill_(1j)
        with self.assertRaisesRegex(RuntimeError, "view_as_real is only supported for complex tensors"):
            torch.view_as_real(torch.ones(2))
        for shape, why in (((3,), "last dimension of size 2"), ((), "one or more dimensions")):
            with self.assertRaisesRegex(RuntimeError, why):
                torch.view_as_complex(torch.zeros(shape))
        with self.assertRaisesRegex(RuntimeError, "last dimension with stride 1"):
            torch.view_as_complex(torch.zeros(2, 2).t())
        with self.assertRaisesRegex(RuntimeError, "imag is not implemented for tensors with non-complex dtypes"):
            torch.imag(torch.ones(2))
        with self.assertRaisesRegex(RuntimeError, "only for real scalar outputs but got torch.complex64"):
            torch.ones(1, dtype=torch.complex64, requires_grad=True).sum().backward()

    def test_every_row_knows_or_refuses(self):
        """Rows of one tensor: the result of z with no imaginary part is that of the real tensor, or an error."""
        z, x = torch.tensor([[0.5 + 0j, 0.25], [0.125, 0.75]]), torch.tensor([[0.5, 0.25], [0.125, 0.75]])
        made, refused = 0, 0
        for name, row in vars(_C.ops).items():
            if name.startswith("_") or name.endswith("_") or "rand" in name or "view_as" in name or "empty" in name:
                continue
            try:
                got = row(z)
            except (RuntimeError, TypeError, ValueError, IndexError):
                refused += 1
                continue
            if not isinstance(got, torch.Tensor):
                continue
            expected = row(x) if name != "imag" else torch.zeros(2, 2)
            got = torch.view_as_real(got) if got.is_complex() else got
            if got.dim() == expected.dim() + 1 and not expected.is_complex():
                expected = torch.stack([expected, torch.zeros_like(expected)], -1)
            elif expected.is_complex():
                expected = torch.view_as_real(expected)
            self.assertTrue(torch.allclose(got.to(expected.dtype), expected, atol=1e-5, equal_nan=True), name)
            made += 1
        self.assertGreater(made, 30)
        self.assertGreater(refused, 100)

    def test_gradients_that_are_missing(self):
        x = torch.tensor([1 + 1j, 2j], requires_grad=True)
        for function in (torch.prod, torch.tanh, lambda a: a[torch.tensor([0])]):
            with self.assertRaisesRegex(RuntimeError, "of complex tensors is not implemented"):
                function(x)
        y = x * 1
        with self.assertRaisesRegex(RuntimeError, "another element type than its base"):
            y.real.mul_(2)


def differences(function, inputs, step=1e-6):
    """d function / d input by differences: dL/dx + i dL/dy for complex inputs."""
    grads = []
    for index, x in enumerate(inputs):
        flat = x.detach().reshape(-1)
        grad = []
        for i in range(flat.numel()):
            total = 0
            for unit in ((1, 1j) if x.is_complex() else (1,)):
                sides = []
                for sign in (1, -1):
                    moved = flat.clone()
                    moved[i] += sign * step * unit
                    values = [moved.reshape(x.shape) if k == index else y.detach() for k, y in enumerate(inputs)]
                    sides.append(function(*values).item())
                total += (sides[0] - sides[1]) / (2 * step) * unit
            grad.append(total)
        grads.append(grad)
    return grads


class Gradients(unittest.TestCase):
    """torch's convention: the gradient of a real loss is dL/dx + i dL/dy."""

    def check(self, function, *inputs):
        inputs = [x.clone().requires_grad_() for x in inputs]

        def loss(*values):
            result = function(*values)
            weights = torch.arange(1, result.numel() + 1, dtype=torch.float64).reshape(result.shape)
            if result.is_complex():
                result = result * (0.5 - 1.5j)
                return (result.real * weights + result.imag.abs() * 0.25).sum()
            return (result * weights).sum()

        loss(*inputs).backward()
        for x, expected in zip(inputs, differences(loss, inputs)):
            self.assertIs(x.grad.dtype, x.dtype)
            for got, want in zip(x.grad.reshape(-1).tolist(), expected):
                self.assertAlmostEqual(abs(got - want), 0, 5)

    def test_pointwise(self):
        z, w, x = numbers(4), numbers(4, seed=1), numbers(4, seed=2).real.clone()
        for function in (torch.mul, torch.add, torch.sub, torch.div, torch.complex):
            if function is not torch.complex:
                self.check(function, z, w)
                self.check(function, x, w)
            else:
                self.check(function, x, z.imag.clone())
        for function in (torch.neg, torch.conj, torch.exp, torch.log, torch.sqrt, torch.sin, torch.cos, torch.abs,
                         torch.tan, torch.sinh, torch.cosh, torch.sgn,
                         torch.angle, torch.real, torch.imag, torch.reciprocal, torch.view_as_real, torch.square,
                         lambda a: a ** 3, lambda a: a * 2j, torch.sum, torch.mean):
            self.check(function, z)
        self.check(lambda a: torch.view_as_complex(a.reshape(2, 2)), x)
        self.check(torch.polar, x.abs(), x)

    def test_matrices_and_moves(self):
        a, b = numbers(2, 3), numbers(3, 2, seed=1)
        self.check(torch.matmul, a, b)
        self.check(lambda p, q: torch.bmm(p[None], q[None]), a, b)
        self.check(lambda p: torch.cat([p, p * 2], 1)[:, 1:4].t(), a)
        self.check(lambda p: torch.where(torch.tensor([True, False, True]), p, 0), a)
        self.check(torch.mv, a, b[:, 0].clone())
        self.check(torch.dot, a[0].clone(), b[:, 1].clone())
        self.check(torch.outer, a[0].clone(), b[:, 1].clone())
        x = torch.tensor([0j, 3 + 4j], requires_grad=True)
        x.sgn().real.sum().backward()
        self.assertEqual(x.grad[0].item(), 0)  # as torch has it

    def test_transforms(self):
        z, x = numbers(2, 5), numbers(2, 6).real.clone()
        fft = torch.fft
        for function in (fft.fft, fft.ifft, fft.hfft, fft.irfft, fft.fft2, fft.fftn, fft.fftshift,
                         fft.hfft2, fft.hfftn, lambda a: fft.hfft2(a, (3, 4), norm="ortho"),
                         lambda a: fft.irfft(a, 7, norm="ortho"), lambda a: fft.fft(a, 3, 0),
                         lambda a: fft.irfft2(a), lambda a: fft.irfft(a, 4)):
            self.check(function, z)
        for function in (fft.rfft, fft.ihfft, fft.ihfft2, fft.ihfftn, fft.rfft2, fft.fft, fft.ifft,
                         lambda a: fft.rfft(a, 5), lambda a: fft.rfftn(a, norm="forward")):
            self.check(function, x)


class Transforms(unittest.TestCase):
    """torch.fft against the sum that defines it."""

    def test_lengths(self):
        for dtype, limit in ((torch.complex64, 2e-6), (torch.complex128, 1e-14)):
            for n in (1, 2, 3, 7, 16, 17, 60, 97, 128, 300):
                z = numbers(2, n, dtype=dtype, seed=n)
                roots = [cmath.exp(-2j * cmath.pi * k / n) for k in range(n)]
                turns = torch.tensor([[roots[j * k % n] for k in range(n)] for j in range(n)], dtype=torch.complex128)
                expected = z.to(torch.complex128) @ turns
                got = torch.fft.fft(z)
                self.assertIs(got.dtype, dtype)
                self.assertLess((got - expected).abs().max().item(), limit * n)
                self.assertLess((torch.fft.ifft(got) - z).abs().max().item(), limit * 10)
                self.assertLess((torch.fft.fft(z.t(), dim=0) - got.t()).abs().max().item(), limit * n)
                x = z.real.clone()
                half = torch.fft.rfft(x)
                self.assertLess((half - torch.fft.fft(x)[:, :n // 2 + 1]).abs().max().item(), limit * n)
                self.assertLess((torch.fft.irfft(half, n) - x).abs().max().item(), limit * 10)

    def test_large(self):
        for n in (1 << 17, 100003, 3 * 5 * 7 * 11 * 13 * 4):
            x = numbers(n, dtype=torch.complex64)
            back = torch.fft.ifft(torch.fft.fft(x))
            self.assertLess((back - x).abs().max().item(), 1e-5)

    def test_words(self):
        x = torch.ones(4)
        for call, error, why in ((lambda: torch.fft.fft(torch.zeros(0)), RuntimeError, r"data points \(0\) specified"),
                                 (lambda: torch.fft.fft(x, 0), RuntimeError, r"data points \(0\) specified"),
                                 (lambda: torch.fft.fft(torch.tensor(1.0)), IndexError, "tensor has no dimensions"),
                                 (lambda: torch.fft.fft(x, dim=1), IndexError, "Dimension out of range"),
                                 (lambda: torch.fft.fft(x, norm="no"), RuntimeError, "Invalid normalization mode"),
                                 (lambda: torch.fft.rfft(x * 1j), RuntimeError, "rfft expects a real input tensor"),
                                 (lambda: torch.fft.fft(x.half()), RuntimeError, "Unsupported dtype Half")):
            with self.assertRaisesRegex(error, why):
                call()
        self.assertEqual(torch.fft.fftfreq(4).tolist(), [0, 0.25, -0.5, -0.25])
        out = torch.empty(0, dtype=torch.complex64)
        self.assertIs(torch.fft.fft(x, out=out), out)
        self.assertEqual(out.tolist(), [4, 0, 0, 0])


if __name__ == "__main__":
    unittest.main()
