# SPDX-License-Identifier: Apache-2.0
"""Random sequences of API calls, by hypothesis: whatever they do, the interpreter lives and errors are errors.

A sequence is drawn, then run in a child, so that a crash fails the test with the sequence that made it.
MT_FUZZ_EXAMPLES sets the number of sequences (default 60), MT_FUZZ_SEED another seed.
"""
import os
import subprocess
import sys
import unittest

try:
    from hypothesis import HealthCheck, given, seed, settings
    from hypothesis import strategies as st
except ImportError:
    print("skip test_api_fuzz: hypothesis is not installed (Debian: python3-hypothesis)")
    sys.exit(77)

EXAMPLES = int(os.environ.get("MT_FUZZ_EXAMPLES", "60"))
BATCH = 25  # sequences a child runs

PRELUDE = """
import gc, sys, threading, warnings, faulthandler
faulthandler.enable()
warnings.simplefilter("ignore")
import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.profiler import *
from mindtorch_v2.profiler import profile, record_function, schedule
import mtprof
F = nn.functional
def fresh():
    return dict(torch=torch, nn=nn, F=F, mtprof=mtprof, profile=profile, record_function=record_function,
                schedule=schedule, gc=gc, threading=threading, x=torch.ones(2, 3), y=torch.arange(6).reshape(2, 3),
                w=torch.ones(3, 2, requires_grad=True), z=torch.zeros(0, 3), prof=None, rf=None, events=None, keep=[])
def run(lines):
    scope = fresh()
    for line in lines:
        try:
            exec(line, scope)
        except MemoryError:
            raise
        except Exception:
            pass
    p = scope.get("prof")
    try:
        if p is not None: p.stop()
    except Exception:
        pass
    scope.clear()
"""

TENSORS = ["x", "y", "w", "z", "x[0]", "x.t()", "torch.tensor(2.0)", "torch.ones(3)", "None", "1", "'a'", "[1, 2]"]
NUMBERS = ["0", "1", "-1", "2", "3.5", "True", "None", "10**30", "float('nan')", "'dim'", "x"]
METHODS = ["add", "mul", "matmul", "sum", "mean", "view", "reshape", "transpose", "permute", "unsqueeze", "squeeze", "to",
           "expand", "split", "chunk", "index_select", "gather", "scatter_", "masked_fill", "clamp", "softmax", "max", "sort",
           "topk", "cumsum", "backward", "detach", "detach_", "requires_grad_", "retain_grad", "register_hook", "numpy",
           "tolist", "item", "clone", "copy_", "fill_", "zero_", "size", "stride", "repeat", "flatten", "narrow", "unbind",
           "as_strided", "unfold", "norm", "std", "var", "argmax", "__len__", "__bool__", "__getitem__", "__dlpack__"]
PROFILER = [
    "prof = profile()", "prof = profile(with_stack=True, record_shapes=True, profile_memory=True, with_flops=True)",
    "prof = profile(schedule=schedule(wait=1, warmup=1, active=1), on_trace_ready=keep.append)",
    "prof = profile(schedule=lambda n: 7)", "prof = profile(schedule=lambda n: 1/0)",
    "prof = profile(on_trace_ready=lambda p: 1/0)", "prof = profile(on_trace_ready=lambda p: p.stop())",
    "prof.start()", "prof.stop()", "prof.step()", "prof.__enter__()", "prof.__exit__(None, None, None)",
    "prof.prepare_trace()", "prof.start_trace()", "prof.stop_trace()", "events = prof.events()", "events = list(prof.events())",
    "events.clear()", "events.append(None)", "events.sort(key=lambda e: e.name)", "del events[0]", "str(events)",
    "events.table(sort_by='nothing')", "events.table(row_limit=-1)", "prof.key_averages(group_by_stack_n=3).table()",
    "[(e.name, e.stack, e.cpu_parent, e.cpu_children, e.input_shapes, dict(e.items())) for e in prof.events()]",
    "keep.append(events[-1].cpu_parent)", "events[0].name = 'other'", "events[0].foo = events", "del prof", "prof = None",
    "prof.export_chrome_trace('/nonexistent/x.json')", "prof.export_stacks('/dev/null')", "prof.health()",
    "prof.add_metadata('a', 'b')", "prof.add_metadata_json('a', 5)", "prof.toggle_collection_dynamic(False, [])",
    "rf = record_function('a')", "rf.__enter__()", "rf.__exit__(None, None, None)", "record_function(5).__enter__()",
    "token = mtprof.begin('b')", "mtprof.end(token)", "mtprof.end(12345)", "mtprof.counter('c', 1)", "mtprof.instant('i')",
    "threading.Thread(target=lambda: x + x).start()", "gc.collect()", "mtprof.begin(None)", "prof.save('/nonexistent')",
]
OTHERS = ["(w.sum() * 2).backward()", "torch.autograd.grad(w.sum(), w)", "nn.Linear(3, 2)(x)", "F.cross_entropy(x, y[:, 0])",
          "x[y > 2] = 1", "x[5]", "y[None, ..., 1:]", "y[[0, 1], [1, 2]]", "x += w", "x.data = y", "w.grad = x", "del w.grad",
          "torch.cat([x, y])", "torch.stack([])", "torch.tensor(keep)", "x.foo = x", "del x", "keep.append(x)", "repr(x)"]


def lines():
    argument = st.sampled_from(TENSORS + NUMBERS)
    call = st.builds(lambda t, m, a: f"r = {t}.{m}({', '.join(a)}); keep.append(r)", st.sampled_from(TENSORS[:6]),
                     st.sampled_from(METHODS), st.lists(argument, max_size=3))
    return st.lists(st.one_of(call, st.sampled_from(PROFILER), st.sampled_from(OTHERS)), min_size=1, max_size=25)


class Fuzz(unittest.TestCase):
    def run_child(self, sequences):
        text = PRELUDE + "".join(f"run({s!r})\n" for s in sequences) + "print('alive')\n"
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=240)
        return done

    def test_sequences(self):
        collected = []

        @seed(int(os.environ.get("MT_FUZZ_SEED", "1")))
        @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(lines())
        def collect(sequence):
            collected.append(sequence)
        collect()
        for at in range(0, len(collected), BATCH):
            batch = collected[at:at + BATCH]
            if self.run_child(batch).stdout.strip().endswith("alive"):
                continue
            for sequence in batch:  # which one was it?
                done = self.run_child([sequence])
                self.assertTrue(done.stdout.strip().endswith("alive"),
                                "this sequence ends the interpreter:\n"
                                + "\n".join(sequence) + "\n" + done.stderr[-3000:])
            self.fail("a batch ends the interpreter, none of its sequences alone does")


if __name__ == "__main__":
    unittest.main()
