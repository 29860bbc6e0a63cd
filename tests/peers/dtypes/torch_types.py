#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Types against torch: each expression gives the same text, or the same class of exception, in both; each library
reads the other's files.

Run by a Python that has torch, with our packages on PYTHONPATH. Prints "N passed, N failed, N skipped"; skipped are
the differences that DECISIONS names.
"""
import io
import sys
import warnings

import numpy
import torch

import mindtorch_v2

LEGACY = """
torch.FloatTensor
torch.FloatTensor.__module__, torch.cuda.LongTensor.__module__, torch.FloatTensor.dtype, torch.FloatTensor.layout
torch.FloatTensor.is_cuda, torch.cuda.FloatTensor.is_cuda, torch.FloatTensor.is_sparse
torch.FloatTensor(2, 3).shape, torch.LongTensor(3).shape, torch.FloatTensor(size=(2,)).shape
torch.FloatTensor([1, 2]), torch.FloatTensor((1, 2)), torch.LongTensor([1.5]), torch.ByteTensor([1])
torch.BoolTensor([0, 2]), torch.IntTensor([2]), torch.HalfTensor([1]), torch.BFloat16Tensor([1])
torch.DoubleTensor([[1], [2]])
torch.FloatTensor(torch.Size([2, 1])).shape, torch.FloatTensor()
torch.FloatTensor(x).data_ptr() == x.data_ptr()
torch.FloatTensor(i)
torch.LongTensor(x)
torch.FloatTensor(3.0)
torch.FloatTensor('ab')
torch.FloatTensor(numpy.ones(3)), torch.FloatTensor(numpy.int64(3)).shape
torch.FloatTensor([[1], [2, 3]])
torch.FloatTensor(2, device='cpu').shape
torch.FloatTensor([1.], dtype=torch.int)
isinstance(x, torch.FloatTensor), isinstance(i, torch.FloatTensor), isinstance(3, torch.FloatTensor)
isinstance(torch.nn.Parameter(x), (torch.FloatTensor, torch.LongTensor)), isinstance(x, torch.cuda.FloatTensor)
issubclass(torch.FloatTensor, torch.Tensor), isinstance(torch.FloatTensor, type)
x.type(), i.type(), x.half().type(), x.type(torch.LongTensor), x.type('torch.LongTensor'), x.type(torch.int64)
x.type(torch.FloatTensor) is x, x.type(torch.Tensor) is x, x.type(dtype=torch.int32), x.type(i.type())
x.type('FloatTensor')
x.type(int)
x.type(torch.cuda.FloatTensor)
torch.cuda.FloatTensor(3)
x.new(2, 3).shape, x.new([1, 2]), x.new((1, 2)), x.new(x), x.new(), x.new(torch.Size([4])).shape
x.new(i)
x.new(3.0)
i.new([1.5]), x.new(device='cpu'), i.new(2).dtype, x.new_tensor([1, 2]), x.new(x.storage())
torch.set_default_tensor_type(torch.DoubleTensor), torch.tensor(1.).dtype
torch.set_default_tensor_type('torch.FloatTensor'), torch.tensor(1.).dtype
torch.set_default_tensor_type(torch.LongTensor)
torch.set_default_tensor_type(torch.float64)
torch.set_default_tensor_type('torch.FooTensor')
torch.set_default_tensor_type(torch.cuda.FloatTensor)
x.storage(), x.untyped_storage(), y.storage().data_ptr() == x.data_ptr()
x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr(), x.untyped_storage() == y.untyped_storage()
x.storage().size(), len(x.storage()), x.storage().nbytes(), x.storage().dtype, x.storage().device
x.untyped_storage().size(), len(x.untyped_storage()), x.untyped_storage().nbytes(), x.untyped_storage().device
x.storage().tolist(), x.untyped_storage().tolist(), x.storage()[1], x.untyped_storage()[6]
x.storage()[1:3]
x.storage().element_size(), x.untyped_storage().element_size(), x.storage().is_shared(), x.storage().is_pinned()
x.untyped_storage()._cdata == y.untyped_storage()._cdata, type(x.storage()).__module__
torch.is_storage(x.storage()), torch.is_storage(x.untyped_storage()), torch.is_storage(x), x.storage_type()
torch.FloatStorage, torch.FloatStorage([1, 2]), torch.FloatStorage(3).size(), torch.UntypedStorage(8).size()
isinstance(x.storage(), torch.FloatStorage), isinstance(x.storage(), torch.LongStorage)
x.storage().clone(), x.storage().type(), x.untyped_storage().type(), x.storage().untyped(), x.storage().long()
x.clone().storage().fill_(1), x.clone().storage().copy_(x.storage()), x.clone().untyped_storage().fill_(0)
torch.empty(0).set_(x.untyped_storage()), torch.empty(0).set_(x.storage(), 1, (2,), (1,)), torch.empty(3).set_()
torch.empty(0).set_(x, 1, (2, 2), (3, 1)), torch.empty(0).set_(y)
torch.empty(0).set_(i)
w[1]._base is w, w._base, w[1].t()._base is w, w[1].detach()._base, (w + 1)._base
"""

VIEWS = """
torch.tensor(1.).view(torch.int32), x.view(torch.int32), x.view(torch.uint8), x.view(torch.float64)
torch.tensor(1.).view(torch.uint8)
x.t().view(torch.uint8)
w[:, ::2].view(torch.float64)
w[:, :3].view(torch.float64)
w[1:, 1:3].view(torch.float64)
w.as_strided((3, 2), (3, 1)).view(torch.float64)
torch.ones(3, 2, dtype=torch.bool).view(torch.uint8), x.view(torch.bool), x.view(dtype=torch.int32).stride()
w.clone().requires_grad_().view(torch.float64), torch.empty(0, 3).view(torch.uint8).shape
"""

# c: int8, s: int16, u: uint64 with a number of more than 63 bits, h: uint16, k: uint32
INTEGERS = """
torch.iinfo(torch.int8), torch.iinfo(torch.int16)
torch.iinfo(torch.uint16), torch.iinfo(torch.uint64).max, torch.short
c, s, u, h, k, c.type(), s.type(), h.type(), u.type()
c.is_signed(), h.is_signed(), k.dtype.is_signed, k.dtype.itemsize
torch.CharTensor([1, 2]), torch.ShortTensor([[3]]), c.char(), c.short(), x.char(), c.type('torch.UInt16Tensor')
c.storage_type(), h.storage_type(), s.storage(), h.storage()
c.storage().type(), h.storage().type(), s.storage().char()
c.new([1]), h.new([1]), c.numpy(), u.numpy(), torch.tensor(numpy.uint16(5)), torch.tensor([numpy.int8(5)])
torch.tensor(numpy.array([1, 2], dtype='uint32')), torch.from_numpy(numpy.array([2**64 - 1], dtype='uint64'))
c + c, c + 200, c - 129, c * 100, -c, abs(c), c ** 2, c // 3
c % 3, c / 2, ~c, c << 3, c >> 1, c << 9, c >> 9, 200 - c
c & 15, c | 1, c ^ 3, c == 100, c == 356, c != s, c < s, c.sum(), c.prod(), c.cumsum(0), c.max(), c.min(0), c.sort()
c.unique(), c.topk(2), c.argsort(), c.clamp(-5, 5), c.sign(), c.float(), c.bool(), c.sum(dtype=torch.int8), c.any()
c.mean()
c.std()
c.view(torch.uint8), s.view(torch.int8), c[None] @ c[:, None], torch.outer(c, c)
torch.tensor([1], dtype=torch.uint8) + c, c + s, c + 1.5, c + True, s + torch.tensor(70000), c.cumprod(0), c.tolist()
torch.tensor([300], dtype=torch.int8)
torch.tensor([-1], dtype=torch.uint16)
torch.tensor([2**64 - 1], dtype=torch.uint64), torch.tensor(1.5, dtype=torch.int8)
torch.tensor([-1], dtype=torch.uint64)
torch.tensor([2**64], dtype=torch.uint64)
torch.tensor([70000], dtype=torch.uint16)
torch.full((2,), 200, dtype=torch.int8)
torch.full((2,), -1, dtype=torch.uint32), torch.full((2,), 2**64 - 1, dtype=torch.uint64)
torch.full((2,), -1.5, dtype=torch.uint32)
torch.full((2,), 2**32, dtype=torch.uint32)
torch.zeros(2, dtype=torch.int64).fill_(2**63)
torch.zeros(2).fill_(2**63), torch.zeros(2, dtype=torch.int64) + 2**63
torch.zeros(1, dtype=torch.uint64).fill_(2**63)
s.clamp(max=70000)
c.masked_fill(c == 0, 300)
u[0].item(), float(u[0]), u.tolist(), u * u, u & 3, u == u, u / 2, u.double(), u.float(), u.sum(), u.prod(), u.sort()
u.unique(), u.cumsum(0), u.all(), u.isnan(), u.floor()
u.signbit(), torch.isclose(u, u), torch.equal(u, u), u.argsort()
u.mean(dtype=torch.float64), torch.where(u == u, u, u)
torch.cat([u, u]), u[[1, 0]], u.roll(1), u.exp(), u.to(torch.int8)
u == 2**63 + 5, u * (2**63 + 1), k * -1, k == -1, k * 2.5, k * True, h * h, h | 1, h.sum(), h / 3, h.sqrt(), h.sort()
h + 1
h + h
h < 3
h.max()
h * torch.tensor([1, 2, 3])
h == k
torch.cat([h, k])
h.bool() * h
torch.tensor([1, 2, 3]) + h[0], torch.result_type(h, 1), torch.promote_types(h.dtype, torch.float16), h + x[0]
torch.promote_types(torch.uint16, torch.int32)
torch.result_type(h.bool(), h[0])
torch.promote_types(torch.uint8, torch.int8)
torch.can_cast(torch.uint16, torch.int8), torch.can_cast(torch.float, h.dtype)
torch.zeros(3)[c.clamp(0, 1)]
x[0][torch.tensor(1, dtype=torch.uint16)], x[0][torch.tensor(1, dtype=torch.int8)]
x[0].index_select(0, s)
torch.nn.functional.embedding(s, x)
torch.randint(0, 300, (3,), dtype=torch.int8)
torch.randint(-1, 3, (3,), dtype=torch.uint16)
torch.randint(0, 70000, (3,), dtype=torch.uint16)
torch.randperm(300, dtype=torch.int8)
torch.randint(0, 1, (3,), dtype=torch.uint64), torch.empty(9, dtype=torch.int8).random_().min() >= 0
h.random_()
torch.arange(5, dtype=torch.int8), torch.arange(200, dtype=torch.int8)[-1], torch.linspace(0, 9, 4, dtype=torch.int16)
torch.eye(2, dtype=torch.int8), torch.ones(2, 2, dtype=torch.int16).tril(), torch.zeros(2, dtype=torch.uint64)
c // torch.zeros(3, dtype=torch.int8)
h.requires_grad_()
torch.tensor([1e10, -1e10, 300.7, float('nan'), -1.5]).to(torch.int8)
torch.tensor([1e19, -1., 2e19]).to(torch.uint64)
torch.tensor([70000, -1]).to(torch.int16)
torch.tensor([70000, -1]).to(torch.uint16), torch.tensor([2**40]).to(torch.uint32)
"""

SUBJECTS = {"legacy": LEGACY, "views": VIEWS, "integers": INTEGERS}

# (expression, why the answers differ)
DECISIONS = ()


def text_of(value):
    """A result as text without the library's name."""
    return repr(value).replace("mindtorch_v2", "torch")


def outcome(library, expression):
    """What the expression gives in a library."""
    x = library.arange(6.).reshape(2, 3).clone()
    names = {"torch": library, "numpy": numpy, "x": x, "y": x[1], "i": library.arange(3),
             "w": library.arange(12.).reshape(3, 4).clone(),
             "c": library.tensor([100, -128, 7], dtype=library.int8),
             "s": library.tensor([3000, -2, 1], dtype=library.int16),
             "h": library.tensor([3, 65535, 1], dtype=library.uint16),
             "k": library.tensor([7, 2**32 - 1], dtype=library.uint32),
             "u": library.tensor([2**63 + 5, 1, 2**64 - 1], dtype=library.uint64)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return text_of(eval(expression, names))
    except Exception as error:
        return f"raises {type(error).__name__}"


def file_differences():
    """Types whose tensors, and a view of them, are not the same in a file of one library that the other reads."""
    for name in "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64".split():
        for writer, reader in ((torch, mindtorch_v2), (mindtorch_v2, torch)):
            made = writer.tensor([0, 1, 100], dtype=getattr(writer, name))
            for weights_only in (True, False):
                file = io.BytesIO()
                writer.save({"all": made, "part": made[1:], "type": made.dtype}, file)
                file.seek(0)
                read = reader.load(file, weights_only=weights_only)
                same = (read["all"].tolist() == made.tolist() and read["part"].tolist() == made[1:].tolist()
                        and read["all"].dtype is read["type"] is getattr(reader, name)
                        and read["all"].data_ptr() + made.element_size() == read["part"].data_ptr())
                yield None if same else f"file: {name} of {writer.__name__}, weights_only={weights_only}: {read}"


def main():
    passed = failed = skipped = 0
    for difference in file_differences():
        passed += difference is None
        failed += difference is not None
        if difference:
            print(difference)
    known = dict(DECISIONS)
    for subject, expressions in SUBJECTS.items():
        for expression in expressions.strip().splitlines():
            theirs, mine = outcome(torch, expression), outcome(mindtorch_v2, expression)
            if theirs == mine:
                passed += 1
            elif expression in known:
                skipped += 1
            else:
                failed += 1
                print(f"{subject}: {expression}\n  torch: {theirs}\n  ours:  {mine}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
