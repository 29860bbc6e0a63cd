# SPDX-License-Identifier: Apache-2.0
"""Reference counts under a debug build of Python (sys.gettotalrefcount): what comes goes again.

Every call is run often; the total of all reference counts may not follow. Without a debug build the one test is
skipped.
"""
import gc
import sys
import unittest

import mindtorch_v2 as torch
from mindtorch_v2 import profiler
from mindtorch_v2.nn import functional as F

X = torch.ones(2, 2)
V = torch.arange(6).reshape(2, 3)
W = torch.ones(2, 2, requires_grad=True)


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        ctx.saved_tensors
        return grad * 2


def profiled(**flags):
    with profiler.profile(**flags) as prof:
        with profiler.record_function("scope", "args"):
            X.mm(X)
    return prof


def results(**flags):
    prof = profiled(**flags)
    for event in prof.events():
        for name in ("name", "stack", "input_shapes", "concrete_inputs", "cpu_parent", "cpu_children", "time_range",
                     "kernels", "thread", "flops", "self_cpu_time_total", "device_type"):
            getattr(event, name)
        dict(event.items())
    prof.key_averages(group_by_input_shape=True, group_by_stack_n=2).table(sort_by="cpu_time_total")
    prof.events().total_average()


def hooked():
    x = torch.ones(2, requires_grad=True)
    handle = x.register_hook(lambda g: g * 2)
    (x * x).sum().backward()
    handle.remove()


CALLS = {
    "add": lambda: X + X, "add number": lambda: X + 1, "method": lambda: X.add(X, alpha=2),
    "function": lambda: torch.add(X, X), "keyword": lambda: torch.sum(X, dim=1, keepdim=True),
    "varargs": lambda: torch.zeros(2, 3), "named results": lambda: X.max(1), "list": lambda: X.split(1),
    "in place": lambda: X.clone().add_(1), "compare": lambda: X == X, "index": lambda: V[0, 1:],
    "index tensor": lambda: V[torch.tensor([0, 1])], "set": lambda: V.__setitem__(0, 1), "iterate": lambda: list(V),
    "item": lambda: X[0, 0].item(), "tolist": lambda: V.tolist(), "tensor": lambda: torch.tensor([[1.0, 2], [3, 4]]),
    "shape": lambda: V.shape, "dtype": lambda: V.dtype, "device": lambda: V.device, "repr": lambda: repr(V),
    "buffer": lambda: memoryview(V).tolist(), "dlpack": lambda: torch.from_dlpack(V),
    "backward": lambda: ((W * W).sum().backward(), setattr(W, "grad", None)), "hook": hooked,
    "grad": lambda: torch.autograd.grad((W * 2).sum(), W), "function class": lambda: Double.apply(W).sum().backward(),
    "grad_fn": lambda: (W * 2).grad_fn.next_functions, "no_grad": lambda: torch.no_grad()(lambda: W * 2)(),
    "softmax": lambda: F.softmax(X, dim=1), "cat": lambda: torch.cat([X, X]),
    "profile": profiled, "profile everything": lambda: profiled(record_shapes=True, profile_memory=True,
                                                                with_stack=True, with_flops=True),
    "results": lambda: results(record_shapes=True, profile_memory=True, with_stack=True, with_flops=True),
    "record_function": lambda: profiler.record_function("x").__enter__().__exit__(None, None, None),
    "decorator": lambda: profiler.record_function("x")(lambda: 1)(),
    "schedule": lambda: profiler.schedule(wait=1, warmup=1, active=1)(2),
}


@unittest.skipUnless(hasattr(sys, "gettotalrefcount"), "needs a debug build of Python (Debian: python3-dbg)")
class Refcounts(unittest.TestCase):
    def growth(self, call, count):
        for _ in range(30):
            call()
        gc.collect()
        before = sys.gettotalrefcount()
        for _ in range(count):
            call()
        gc.collect()
        return sys.gettotalrefcount() - before

    def test_calls(self):
        for name, call in CALLS.items():
            with self.subTest(name):
                # A leak occurs each time; caches that fill up stop growing.
                grown = min(self.growth(call, 100) for _ in range(3))
                self.assertLess(grown, 50, f"{name}: {grown} references more after 100 calls")


if __name__ == "__main__":
    unittest.main()
