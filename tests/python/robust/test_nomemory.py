# SPDX-License-Identifier: Apache-2.0
"""Python allocations that fail: the Nth one of a call, or all from the Nth on, for many N.

A call may succeed or raise MemoryError, and nothing else may happen. Each call runs in a child, so that a
crash names it. MT_NOMEMORY_MOST sets the largest N (default 120).
"""
import os
import subprocess
import sys
import unittest

try:
    import _testcapi
except ImportError:
    _testcapi = None

MOST = int(os.environ.get("MT_NOMEMORY_MOST", "120"))

# Calls by name: what is there before, a line of dashes, the call. Functions are made before: CPython 3.12 and 3.13
# crash where one cannot be made (`f = lambda: 0` alone under set_nomemory).
CALLS = {
    "add": """x = torch.ones(2, 3)
---
x + x""",
    "method": """x = torch.ones(2, 3)
---
x.sum(dim=1, keepdim=True)""",
    "several results": """x = torch.ones(2, 3)
---
x.max(0); x.split(1); x.sort()""",
    "list of tensors": """x = [torch.ones(2)] * 50
---
torch.cat(x, dim=0)""",
    "wrong arguments": """x = torch.ones(2)
add = lambda: x.add('a', beta=3)
cat = lambda: torch.cat(5, 6)
---
refused(add)
refused(cat)""",
    "attributes": """x = torch.ones(2)
---
x.shape, x.stride(), x.device, x.nbytes, x.dtype, repr(x.device), x.T""",
    "own attributes": """---
x = torch.ones(2)
x.name = 'x'; x.__dict__; x.other = x
del x.name, x.other""",
    "indexing": """x = torch.ones(4, 5)
---
x[1], x[1:3, None], x[[0, 1]], x[x > 0], x[..., 0]
x[0] = 1
x[[1], 2] = 3.0""",
    "from data": """---
torch.tensor([[1, 2], [3, 4]]), torch.tensor([1.5] * 9), torch.tensor(True), torch.as_tensor((1, 2))""",
    "lists and bytes": """x = torch.ones(3, 4)
---
x.tolist(), bytes(x), memoryview(x).shape, torch.frombuffer(bytearray(8), dtype=torch.int64)""",
    "dlpack": """x = torch.ones(3)
---
torch.from_dlpack(x), x.__dlpack__(max_version=(1, 0)), torch.from_dlpack(x.__dlpack__())""",
    "iteration": """x = torch.ones(3, 2)
---
list(x), x in [x], 1.0 in x""",
    "backward": """w = torch.ones(3, requires_grad=True)
---
(w * 2).sum().backward()
w.grad
w.grad = None""",
    "nodes": """w = torch.ones(3, requires_grad=True)
---
n = (w * 2).sum().grad_fn
n.next_functions[0][0].next_functions, n.name(), repr(n), n.metadata""",
    "hooks": """w = torch.ones(3, requires_grad=True)
double = lambda g: g * 2
---
h = w.register_hook(double)
(w * 3).sum().backward()
h.remove()
w.grad = None""",
    "function": """
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a, None)
        return a * 2
    @staticmethod
    def backward(ctx, g):
        ctx.saved_tensors
        return g * 2
w = torch.ones(3, requires_grad=True)
---
F.apply(w).sum().backward()
w.grad = None""",
    "module": """m = torch.nn.Linear(3, 2); x = torch.ones(1, 3)
---
m(x).sum().backward()
m.zero_grad()""",
    "generator": """---
g = torch.Generator()
g.manual_seed(1)
torch.rand(2, generator=g)
g.set_state(g.get_state())""",
    "pickle": """import pickle; x = torch.ones(3)
---
pickle.loads(pickle.dumps([x, x.dtype, x.shape, x.device]))""",
    "scopes, nothing records": """---
with mtprof.record_function('a', 'b', k=1): pass
mtprof.end(mtprof.begin('x', n=1))""",
    "scopes": """p = mtprof.profile(record_shapes=True); p.start()
---
with mtprof.record_function('a' * 3, 'b', k=[1], j=2.5): pass
mtprof.end(mtprof.begin('x' + 'y', n=1))
mtprof.instant('i', s='t')
mtprof.counter('c', 1.5)""",
    "profile": """---
with mtprof.profile() as p:
    with mtprof.record_function('a'): pass""",
    # (CPython 3.11's own compiler does not survive this: code is compiled before.)
    "stacks": """x = torch.ones(2); m = torch.nn.Linear(2, 2); other = compile('x + x', 'other', 'eval')
p = mtprof.profile(with_stack=True, with_modules=True); p.start()
---
m(x)
eval(other)""",
    "events": """
p = mtprof.profile(record_shapes=True, with_stack=True)
with p:
    for i in range(30):
        with mtprof.record_function('a', k=1): torch.ones(2) + 1
---
for v in p.events():
    v.name, v.input_shapes, v.stack, v.cpu_children, v.extra_meta, v['kind'], v.to_dict()
for r in p.key_averages(True, 2):
    r.key, r.input_shapes, r.stack, r.cpu_parent, r.device_type, vars(r)""",
    "tables": """
p = mtprof.profile()
with p:
    with mtprof.record_function('a'): pass
---
p.key_averages().table(), p.key_averages()[0].key""",
    "columns": """
p = mtprof.profile()
with p:
    with mtprof.record_function('a'): pass
m = p._model(0)
---
list(m.column('start_ns')), memoryview(m.column('name')), m.info, m.health(), m.findings()""",
    # Blocks are functions of their own: CPython 3.11 needs memory to leave a block that ends beyond byte 256.
    "npu streams": """s = torch.npu.Stream()
def on_stream():
    with s:
        e = s.record_event()
        e.wait(torch.npu.Stream()), e.synchronize(), repr(e), e.device
def on_devices():
    with torch.device('npu'), torch.npu.device(1):
        torch.get_default_device(), torch.npu.memory_stats()
def on_context():
    with torch.npu.stream(s):
        torch.npu.mem_get_info(), torch.npu.default_stream()
---
on_stream(), on_devices(), on_context()
repr(s), s.device, s == torch.npu.current_stream()""",
    "npu tensors": """x = torch.ones(4)
---
y = x.npu()
x.pin_memory().npu(non_blocking=True)
(y + 1).tolist(), y[[0, 2]], y[0].item(), y.to('npu:1').cpu(), torch.zeros(3, pin_memory=True)
y[0] = 5
y.record_stream(torch.npu.current_stream())""",
}

CHILD = """
import _testcapi, gc, sys, warnings, faulthandler
faulthandler.enable()
warnings.simplefilter("ignore")
import mindtorch_v2 as torch
import mtprof
def refused(call):
    try:
        call()
    except TypeError:
        pass
def pythons_own(error):
    # What CPython 3.11 itself makes of a failed allocation; a mistake of ours would say "returned NULL".
    return str(error) == "error return without exception set" or type(error).__name__ == "PicklingError"
{before}
code = compile({source!r}, "<call>", "exec")
scope = globals()
exec(code, scope)  # imports and caches are there
gc.disable()  # a finaliser that finds no memory is reported, not raised
seen = set()
for first in range(1, {most}):
    for last in (first + 1, 0):
        outcome = None
        _testcapi.set_nomemory(first, last)
        try:
            exec(code, scope)
        except MemoryError:
            outcome = 1
        except BaseException as error:
            outcome = error
        finally:
            _testcapi.remove_mem_hooks()
        if outcome is not None and outcome != 1 and not pythons_own(outcome):
            print(first, last, type(outcome).__name__, outcome, file=sys.stderr)
            seen.add(type(outcome).__name__)
        outcome = None
exec(code, scope)  # still works
print("done", sorted(seen))
"""


@unittest.skipIf(_testcapi is None, "no module _testcapi (Debian: python3-dbg or libpython3-testsuite)")
class NoMemory(unittest.TestCase):
    def run_call(self, name):
        before, call = CALLS[name].split("---\n")
        script = CHILD.format(before=before, source=call, most=MOST)
        device = {"MINDTORCH_NPU": "sim", "MINDTORCH_NPU_SIM_DEVICES": "2"} if name.startswith("npu") else {}
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600,
                              check=False, env={**os.environ, **device})
        self.assertEqual(done.returncode, 0, f"{name}:\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}")
        self.assertIn("done []", done.stdout, f"{name}: not MemoryError alone\n{done.stderr[-2000:]}")


def add(name):
    def test(self):
        self.run_call(name)
    setattr(NoMemory, "test_" + "".join(c if c.isalnum() else "_" for c in name), test)


for each in CALLS:
    add(each)

if __name__ == "__main__":
    unittest.main()
