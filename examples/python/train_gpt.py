# SPDX-License-Identifier: Apache-2.0
"""Trains a small GPT on this repository's own documentation, under the profiler.

    train_gpt.py [FOLDER] [--steps N] [--device npu] [--torch]      traces go to FOLDER (default: build/demo)

It is what a user of torch would write; --torch runs the very same file on torch. MINDTORCH_NPU=sim and
--device npu train on the simulated accelerator.
"""
import argparse
import math
import os
import pathlib
import sys
import textwrap
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("folder", nargs="?", default=os.path.relpath(ROOT / "build" / "demo"),
                    help="where the traces go (%(default)s)")
parser.add_argument("--steps", type=int, default=200, help="training steps (%(default)s)")
parser.add_argument("--device", default="cpu", help="cpu, or npu: the accelerator")
parser.add_argument("--torch", action="store_true", help="use torch instead of mindtorch_v2")
options = parser.parse_args()
if options.steps < 10:
    parser.error(f"--steps {options.steps}: the profiler's schedule needs at least 10 steps")

if options.torch:
    import torch
else:
    import mindtorch_v2 as torch
nn, F = torch.nn, torch.nn.functional

CONTEXT, WIDTH, HEADS, LAYERS, BATCH = 48, 96, 4, 2, 32


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.grow, self.shrink = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def attention(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.shrink(F.gelu(self.grow(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, letters):
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, letters)

    def forward(self, x):
        x = self.letters(x) + self.places(torch.arange(x.shape[1], device=x.device))
        return self.head(self.norm(self.blocks(x)))


def read_text():
    files = sorted(ROOT.glob("docs/*.md")) + [ROOT / "README.md"]
    return "".join(path.read_text(encoding="utf-8") for path in files)


def write(model, letters, numbers, start, count):
    """What the model would go on with."""
    text = [numbers[c] for c in start]
    with torch.no_grad():
        for _ in range(count):
            logits = model(torch.tensor([text[-CONTEXT:]], device=options.device))[0, -1]
            text.append(int(torch.multinomial(F.softmax(logits / 0.7, dim=-1), 1)))
    return "".join(letters[i] for i in text)


def show(step, loss, seconds):
    """A line that is written over on a terminal, and now and then a line elsewhere."""
    step += 1
    done = step * 24 // options.steps
    line = f"  step {step:3}/{options.steps}  [{'#' * done}{'.' * (24 - done)}]  loss {loss:.3f}  {seconds * 1e3:5.1f} ms"
    if sys.stdout.isatty():
        print(line, end="\n" if step == options.steps else "\r", flush=True)
    elif step % 25 == 0 or step == options.steps:
        print(line, flush=True)


def main():
    torch.manual_seed(1)
    text = read_text()
    letters = sorted(set(text))
    numbers = {c: i for i, c in enumerate(letters)}
    data = torch.tensor([numbers[c] for c in text])
    model = GPT(len(letters)).to(options.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=8e-3, betas=(0.9, 0.98))
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, 8e-3, total_steps=options.steps, pct_start=0.15,
                                               cycle_momentum=False)
    folder = pathlib.Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    size = sum(p.numel() for p in model.parameters())
    print(f"A GPT of {size:,} parameters learns {len(text):,} letters of our own documentation\n"
          f"({torch.__name__}, untrained loss about {math.log(len(letters)):.2f}).")

    def batch():
        at = torch.randint(0, len(data) - CONTEXT - 1, (BATCH,)).tolist()
        return (torch.stack([data[i:i + CONTEXT] for i in at]).to(options.device),
                torch.stack([data[i + 1:i + CONTEXT + 1] for i in at]).to(options.device))

    plan = torch.profiler.schedule(wait=options.steps // 3, warmup=2, active=5, repeat=1)
    with torch.profiler.profile(schedule=plan, record_shapes=True, profile_memory=True, with_stack=True,
                                with_flops=True) as prof:
        for step in range(options.steps):
            began = time.perf_counter()
            with torch.profiler.record_function("batch"):
                x, y = batch()
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rate.step()
            prof.step()
            show(step, loss.item(), time.perf_counter() - began)

    print()
    layout = {} if options.torch else {"width": 80}  # torch's layout is twice as wide as a terminal
    print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=12, **layout))
    began = time.perf_counter()
    prof.export_chrome_trace(str(folder / "trace.json.gz"))
    print(f"{folder / 'trace.json.gz'}: {len(prof.events()):,} events, written in "
          f"{(time.perf_counter() - began) * 1e3:.0f} ms\n  open it in ui.perfetto.dev or chrome://tracing")
    if not options.torch:
        prof.save(str(folder / "trace.mtt"))
        print(f"{folder / 'trace.mtt'}: the same in our own format\n  for mtprof report, stacks, memory, diff")
        print(textwrap.fill(f"health: {prof.health()}", 80, subsequent_indent="  "))
    print("\nIt now writes:")
    print(textwrap.fill(repr(write(model, letters, numbers, "The ", 120)), 78, initial_indent="  ", subsequent_indent="  "))


if __name__ == "__main__":
    main()
