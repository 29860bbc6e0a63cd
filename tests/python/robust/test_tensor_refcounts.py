# SPDX-License-Identifier: Apache-2.0
"""No kind of call leaks. References are counted by a debug build of Python
(sys.gettotalrefcount), memory blocks and tensors by any."""

import copy
import gc
import pickle
import sys
import unittest
import warnings

import mindtorch_v2 as torch
from mindtorch_v2 import _C


class Sub(torch.Tensor):
    """A subclass with nothing of its own."""


STATEMENTS = """
x + y; x * 2; 2 - x; 2 / x; 2 // x; x // 2; x % 2; x ** 2; 2 ** x; x @ y.t(); -x; +x; abs(x); ~i; i & 1
x > 0; x == 'a'; x == None; x + 'a'; x @ 2; x.add(y); torch.add(x, y, alpha=2); x.sum(dim=1, keepdim=True)
x.sum(axis=1); x.view(3, 2); x.view((3, 2)); x.max(1); repr(x.max(1)); x.max(y); x.split(1)
torch.cat([x, y]); torch.cat((x, y), dim=1); torch.zeros(2, 3, requires_grad=True)
torch.zeros(2, device='cpu', dtype=torch.float64); torch.rand(2, generator=g); x.add('a'); x.add()
x.add(y, foo=1); x.max('a', 'b'); torch.zeros('a'); torch.zeros(2, 'a'); torch.cat([x, 1]); torch.cat(1)
torch.add(x, y, other=y); x.to(torch.float64); x.to('cpu', torch.float64); x.to(3.5); x.to(foo=1); x.shape
x.dtype; x.device; x.T; x.mT; x.data; w.grad_fn; (w * 2).grad_fn; x.stride(); x.size(0); x.size(9); x.numel()
x.data_ptr(); x.is_contiguous(); x.requires_grad_(True).requires_grad_(False); torch.Tensor(2, 3)
torch.Tensor([1, 2]); torch.Tensor._make_subclass(Sub, x); torch.Tensor._make_subclass(Sub, i, True)
Sub([1, 2]); x.item(); i[0].item(); bool(x); bool(i[0]); int(i[0]); float(i[0]); [1, 2, 3][i[0]]; 1 in x
'a' in x; len(x); hash(x); torch.device('cpu'); torch.device('npu:1'); torch.device('foo'); torch.device(1.5)
torch.Size([2, 3]); torch.Size(['a']); torch.Size([1]) + torch.Size([2]); (1,) + torch.Size([2])
torch.Size([1])[:1]; torch.Size([1, 2]) * 2; torch.Size([2, 3]).numel(); pickle.dumps(torch.Size([1]))
torch.Generator().manual_seed(1).get_state(); g.set_state(g.get_state()); g.manual_seed('a'); g.seed()
torch.clamp(x, 0, 1); x.clamp(max=torch.tensor(1.)); torch.arange(3); torch.where(x > 0, x, 0)
torch.where(x > 0); x.std(1); torch.einsum('ab,cb->ac', x, y); torch.add(x, y, out=torch.zeros(2, 3))
torch.add(x, y, out=torch.zeros(3)); torch.add(x, y, out=torch.zeros(0).double()); setattr(x, 'foo', 1)
x.__dict__; setattr(w, 'grad', torch.ones(2, 3)); setattr(w, 'grad', 1); setattr(w, 'data', w.data)
x.add_(1); exec('x += 1'); exec('i //= 2'); copy.deepcopy(torch.add); pickle.dumps(torch.Tensor.add)
torch.ops.aten.add; _C.ops.nope; torch.nope; torch.zeros(2, memory_format=torch.channels_last)
x.clone(memory_format=torch.contiguous_format); x + 2**70; x.sum(2**70); _C._device_memory_stats('cpu')
x.add; x.add.__name__; torch.add.__doc__; torch.promote_types(torch.int32, torch.float32)
torch.set_num_threads(0); x.unsqueeze(i[0]); x.new_zeros(2); x.type(); x.unbind(); x.t().contiguous()
reversed(x)
"""


class References(unittest.TestCase):
    def test_every_statement(self):
        names = {"torch": torch, "_C": _C, "copy": copy, "pickle": pickle, "Sub": Sub, "x": torch.ones(2, 3),
                 "y": torch.ones(2, 3), "w": torch.ones(2, 3, requires_grad=True), "i": torch.tensor([1, 2]),
                 "g": torch.Generator()}
        total = getattr(sys, "gettotalrefcount", lambda: 0)

        def run(code, count):
            for _ in range(count):
                try:
                    eval(code, names)
                except Exception:
                    pass

        def measure():
            gc.collect()
            return total(), sys.getallocatedblocks(), _C._tensors_alive()

        for statement in [part for line in STATEMENTS.strip().splitlines() for part in line.split("; ")]:
            code = compile(statement, "statement", "eval")
            with self.subTest(statement=statement), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for _ in range(3):  # caches and free lists grow, but not without end
                    run(code, 30)
                    before = measure()
                    run(code, 200)
                    references, blocks, tensors = (b - a for a, b in zip(before, measure()))
                    if references < 180 and blocks < 180:
                        break
                # A leak is at least one for each of the 200 runs.
                self.assertLess(references, 180)
                self.assertLess(blocks, 180)
                self.assertLessEqual(tensors, 1)


if __name__ == "__main__":
    unittest.main()
