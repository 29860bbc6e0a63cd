# SPDX-License-Identifier: Apache-2.0
"""Stacks and module paths of torch's ops under mtprof.torch, against the interpreter's own frames.

torch releases the GIL before an op begins. A function mode sees every call of torch in Python: it notes the frames
there, then makes the call inside a scope. The ops below the scope must have these frames and modules.
"""
import sys
import threading

import torch
from torch.overrides import TorchFunctionMode

import mtprof.torch

CALL = torch.nn.Module.__call__.__code__


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(16)
        self.attention = torch.nn.MultiheadAttention(16, 2, batch_first=True)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 16))

    def forward(self, x):
        y = self.norm(x)
        return self.mlp(x + self.attention(y, y, y)[0])


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(3))
        self.head = torch.nn.Linear(16, 4)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Notes(TorchFunctionMode):
    """What each call of torch should have: (frames, modules), by the name of its scope."""
    expected = {}
    lock = threading.Lock()

    def __torch_function__(self, function, types, arguments=(), options=None):
        frames, modules = [], []
        frame = sys._getframe(1)
        while frame is not None:
            is_call = frame.f_code is CALL
            if is_call:
                modules.append(frame.f_locals["self"])
            frames.append(f"nn.Module: {type(modules[-1]).__name__}_" if is_call else
                          f"{frame.f_code.co_filename}({frame.f_lineno}): {frame.f_code.co_qualname}")
            frame = frame.f_back
        with Notes.lock:
            name = f"call {len(Notes.expected)}"
            Notes.expected[name] = frames, modules[::-1]
        with mtprof.torch.record_function(name):
            return function(*arguments, **(options or {}))


def path_of(modules):
    """TOP(Net)::forward.blocks.0(Block)::forward."""
    text = ""
    for above, module in zip([None, *modules], modules):
        name = "TOP" if above is None else next(n for n, m in above.named_modules() if m is module)
        text += f"{name}({type(module).__name__})::forward."
    return text


def same_frames(stack, frames):
    """Innermost first. Numbers of modules are ours."""
    return len(stack) == len(frames) and all(
        line == frame or (frame.startswith("nn.Module: ") and line.startswith(frame))
        for line, frame in zip(stack, frames))


def main():
    net, x = Net(), torch.randn(2, 5, 16)
    forward = torch.nn.functional.relu  # a call outside of modules

    def work():
        with Notes():
            for _ in range(3):
                net(forward(x)).sum()
    with mtprof.torch.profile(with_stack=True, with_modules=True) as prof:
        work()
        threads = [threading.Thread(target=work) for _ in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    ops = wrong = 0
    for event in prof.events():
        call = event.cpu_parent.name if event.cpu_parent is not None else ""
        if not event.name.startswith("aten::") or call not in Notes.expected:
            continue
        frames, modules = Notes.expected[call]
        ops += 1
        outer = event.stack[-len(frames):]
        if not same_frames(outer, frames) or "Notes.__torch_function__" not in event.stack[-len(frames) - 1]:
            wrong += 1
            print(f"{event.name}: stack\n  " + "\n  ".join(event.stack) + "\nbut\n  " + "\n  ".join(frames))
        if event.module != path_of(modules):
            wrong += 1
            print(f"{event.name}: module {event.module!r}, not {path_of(modules)!r}")
    missed = prof.health().stacks_missed
    fine = wrong == 0 and missed == 0 and ops > 500
    print(f"{ops} ops, {wrong} of them wrong, {missed} without a stack")
    print(f"{int(fine)} passed, {int(not fine)} failed, 0 skipped")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
