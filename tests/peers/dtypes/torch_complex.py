#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Complex numbers and torch.fft against torch: the same values, types and gradients from the same input, or an error
in both. What torch computes and we refuse is counted as skipped: every row that we have and torch takes is tried.

Run by a Python that has torch, with our packages on PYTHONPATH. Prints "N passed, N failed, N skipped".
"""
import sys
import warnings

import numpy
import torch

import mindtorch_v2

EXPRESSIONS = """
a + b
a - 2 * b
a * b
a / b
a * x
a * 2j
1j / a
a ** 2
a ** 3
-a
a.conj()
a.abs()
a.angle()
a.exp()
a.log()
a.sqrt()
a.sin()
a.cos()
a.tan()
a.sinh()
a.cosh()
a.sgn()
a.mv(b[0])
t.mv(a, b[0])
t.dot(a[0], b[0])
t.outer(a[0], b[0])
a.reciprocal()
a.square()
a.real * a.imag
t.complex(x, x * 2)
t.polar(x.abs(), x)
t.view_as_real(a)
a.sum()
a.sum(0)
a.mean(1, keepdim=True)
a @ b.t()
t.bmm(a[None], b.t()[None])
t.cat([a, b], -1)
t.stack([a, b])[:, :, 1:]
t.where(x > 0, a, b)
a.flip(0).roll(1, 1)
a.t().reshape(-1)
t.fft.fft(a)
t.fft.fft(a, 3)
t.fft.fft(a, 9, 0, "ortho")
t.fft.fft(x)
t.fft.ifft(a, norm="forward")
t.fft.ifft(x)
t.fft.rfft(x)
t.fft.rfft(x, 5)
t.fft.irfft(a)
t.fft.irfft(a, 7)
t.fft.irfft(a, 3)
t.fft.hfft(a)
t.fft.ihfft(x)
t.fft.hfft2(a)
t.fft.hfft2(a, (3, 7), norm="ortho")
t.fft.ihfft2(x)
t.fft.ihfft2(x, (3, 8), norm="forward")
t.fft.hfftn(a)
t.fft.hfftn(a, (5, 4), (1, 0))
t.fft.ihfftn(x)
t.fft.ihfftn(x, (7,), (0,), "ortho")
t.fft.fft2(a)
t.fft.ifft2(a, (3, 5))
t.fft.rfft2(x)
t.fft.irfft2(a)
t.fft.fftn(a, dim=(1, 0), norm="ortho")
t.fft.ifftn(a)
t.fft.rfftn(x, (3, 4))
t.fft.irfftn(a, (3, 4), norm="forward")
t.fft.fftshift(a)
t.fft.ifftshift(a, 0)
""".split("\n")[1:-1]

TEXTS = """
t.tensor([1 + 2j, 3.5 - 1e-3j])
t.tensor([[1e10 + 1j, 2]])
t.tensor([complex("nan"), 1j, complex(0, -float("inf"))])
t.zeros(2, 3, dtype=t.complex128)
t.arange(2000) * 1j
t.tensor(1j), t.tensor([]).to(t.complex64)
[t.promote_types(t.complex64, d) for d in (t.bool, t.uint8, t.int64, t.float16, t.float32, t.float64, t.complex128)]
(t.ones(1) * 1j).dtype, (t.ones(1, dtype=t.float64) * 1j).dtype, (t.ones(1, dtype=t.int64) * 1j).dtype
t.fft.fftfreq(5, 0.5), t.fft.rfftfreq(4), t.fft.fftfreq(3, dtype=t.float64)
t.fft.fft(t.zeros(0))
t.fft.fft(t.ones(3), 0)
t.fft.fft(t.tensor(1.0))
t.fft.fft(t.ones(3), dim=2)
t.fft.fft(t.ones(3), norm="x")
t.fft.rfft(t.tensor([1j]))
t.fft.ihfftn(t.tensor([1j]))
t.fft.hfftn(t.tensor(1j))
t.zeros(2, dtype=t.complex64).normal_(1, 0), t.zeros(3, dtype=t.complex128).normal_(0, 2).abs().gt(0)
t.zeros(2, dtype=t.complex64).normal_(0, -1)
t.zeros(2, dtype=t.complex64).uniform_(1, 1), t.zeros(3, dtype=t.complex64).uniform_(2, 3).real.gt(2)
t.zeros(2, dtype=t.complex64).random_()
t.tensor([0j, 3 + 4j], requires_grad=True).sgn()
t.fft.fft(t.ones(3, dtype=t.float16))
t.view_as_complex(t.zeros(3))
t.view_as_complex(t.zeros(2, 2).t())
t.view_as_real(t.zeros(3))
t.imag(t.zeros(3))
t.ones(2).mul_(1j)
t.tensor([1j]) < t.tensor([1j])
t.tensor([1j], requires_grad=True).sum().backward()
""".split("\n")[1:-1]


def compute(t, expression, arrays):
    """Value and gradients as arrays, or the exception's class."""
    tensors = {name: t.from_numpy(array.copy()).requires_grad_() for name, array in arrays.items()}
    result = eval(expression, {"t": t}, tensors)  # noqa: S307 our own text
    loss = (result.abs() if result.is_complex() else result * result).sum()
    if result.is_complex():
        loss = loss + (result.real * 0.5).sum()
    loss.backward()
    parts = [result.detach()] + [tensor.grad for tensor in tensors.values() if tensor.grad is not None]
    return [(str(part.dtype), part.resolve_conj().numpy()) for part in parts]


def main():
    warnings.simplefilter("ignore")
    passed, failed = 0, 0
    random = numpy.random.default_rng(1)
    for single in (True, False):
        real, pair, limit = ("float32", "complex64", 2e-4) if single else ("float64", "complex128", 1e-11)
        arrays = {"x": random.standard_normal((4, 6)).astype(real)}
        for name in "ab":
            parts = random.standard_normal((2, 4, 6))
            arrays[name] = (parts[0] + 1j * parts[1]).astype(pair)
        for expression in EXPRESSIONS:
            want, got = (compute(t, expression, arrays) for t in (torch, mindtorch_v2))
            same = len(want) == len(got) and all(
                w[0] == g[0] and w[1].shape == g[1].shape and numpy.allclose(w[1], g[1], rtol=limit, atol=limit)
                for w, g in zip(want, got))
            passed, failed = passed + same, failed + (not same)
            if not same:
                print(f"FAIL {expression} ({pair}): torch {want}, ours {got}")
    for expression in TEXTS:
        texts = []
        for t in (torch, mindtorch_v2):
            try:
                texts.append(repr(eval(expression, {"t": t})))  # noqa: S307 our own text
            except Exception as error:  # noqa: BLE001 whatever it is, both must have it
                texts.append(type(error).__name__)
        same = texts[0] == texts[1]
        passed, failed = passed + same, failed + (not same)
        if not same:
            print(f"FAIL {expression}: torch {texts[0]}, ours {texts[1]}")
    n = 1 << 16
    for name in ("float32", "float64"):
        array = random.standard_normal(n).astype(name)
        want = numpy.fft.fft(array)
        errors = [numpy.abs(t.fft.fft(t.from_numpy(array)).numpy() - want).max() for t in (torch, mindtorch_v2)]
        same = errors[1] <= 4 * errors[0] + 1e-12
        passed, failed = passed + same, failed + (not same)
        if not same:
            print(f"FAIL error of fft of {n} {name}: torch {errors[0]}, ours {errors[1]}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
