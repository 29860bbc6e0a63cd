#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Types against torch: each expression gives the same text, or the same class of exception, in both.

Run by a Python that has torch, with our packages on PYTHONPATH. Prints "N passed, N failed, N skipped"; skipped are
the differences that DECISIONS names.
"""
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

SUBJECTS = {"legacy": LEGACY, "views": VIEWS}

# (expression, why the answers differ)
DECISIONS = ()


def text_of(value):
    """A result as text without the library's name."""
    return repr(value).replace("mindtorch_v2", "torch")


def outcome(library, expression):
    """What the expression gives in a library."""
    x = library.arange(6.).reshape(2, 3).clone()
    names = {"torch": library, "numpy": numpy, "x": x, "y": x[1], "i": library.arange(3),
             "w": library.arange(12.).reshape(3, 4).clone()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return text_of(eval(expression, names))
    except Exception as error:
        return f"raises {type(error).__name__}"


def main():
    passed = failed = skipped = 0
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
