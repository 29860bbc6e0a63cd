# SPDX-License-Identifier: Apache-2.0
"""A program that uses tensors, for type checkers; as typed_program.py."""
import sys

import mindtorch_v2 as torch


def mix(n: int) -> torch.Tensor:
    """Functions, methods, overloads, sizes one by one and as lists."""
    x = torch.zeros(2, 3, dtype=torch.float32)
    y = torch.zeros((2, 3)) + torch.ones([2, 3], requires_grad=False) * 2
    z = torch.arange(n).to(torch.float32).view(-1, 1)
    rows = torch.cat([x, y], dim=0).sum(dim=1, keepdim=True)
    values, indices = torch.max(rows, 0)
    picked: torch.Tensor = torch.where(rows > 0, rows, torch.zeros_like(rows))
    size: torch.Size = x.permute(1, 0).reshape((3, 2)).shape
    count: int = x.numel() + size[0] + int(indices.item()) + z.dim()
    scaled: torch.Tensor = torch.matmul(x, y.t()).mean() + x.std() + count
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
        with torch.profiler.record_function("mix"):
            scaled = scaled + 1
    times: list[float] = [row.self_cpu_time_total for row in prof.key_averages()]
    if len(sys.argv) > 99:
        prof.key_averages()[0].no_such_field  # wrong
        torch.add(x, "y")  # wrong
        x.view("a")  # wrong
        torch.zeros(2, dtyp=torch.float32)  # wrong
    return picked + values + scaled * len(times)


if __name__ == "__main__":
    sys.exit(0 if tuple(mix(4).shape) == (4, 1) else 1)
