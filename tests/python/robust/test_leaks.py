# SPDX-License-Identifier: Apache-2.0
"""Memory stays flat: 10,000 profile cycles, a million ops, training steps, results that come and go.

MT_LEAK_SHARE (1 to 100, default 100) is the share of the rounds that is run.
"""
import gc
import os
import unittest

import mindtorch_v2 as torch
from mindtorch_v2 import _C
from mindtorch_v2.profiler import profile, record_function, schedule

SHARE = int(os.environ.get("MT_LEAK_SHARE", "100"))


def resident_kib():
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def rounds(count):
    return max(count * SHARE // 100, 20)


class Leaks(unittest.TestCase):
    def flat(self, work, count, allowed_kib):
        """Runs work `count` times; the second half may add next to nothing."""
        half = rounds(count) // 2
        for _ in range(half):
            work()
        middle = resident_kib()
        for _ in range(half):
            work()
        grown = resident_kib() - middle
        self.assertLessEqual(grown, allowed_kib, f"{grown} KiB more after {half} further rounds")

    def test_a_million_ops(self):
        x = torch.ones(2, 2)
        alive = _C._tensors_alive()

        def work():
            for _ in range(1000):
                x + x
                x.add(2.0)
                torch.mul(x, x)
        self.flat(work, 340, 512)
        self.assertEqual(_C._tensors_alive(), alive)

    def test_profile_cycles(self):
        x = torch.ones(2, 2)

        def work():
            with profile() as prof:
                with record_function("a"):
                    x + x
            return prof
        self.flat(work, 10_000, 2048)

    def test_profile_cycles_with_everything_and_results(self):
        x = torch.ones(2, 2)

        def work():
            with profile(record_shapes=True, profile_memory=True, with_stack=True, with_flops=True) as prof:
                x.mm(x)
            events = prof.events()
            self.assertTrue(events[0].name)
            str(prof.key_averages())
        self.flat(work, 2_000, 2048)

    def test_schedules(self):
        x = torch.ones(2, 2)
        seen = []

        def work():
            with profile(schedule=schedule(wait=0, warmup=1, active=1, repeat=2),
                         on_trace_ready=lambda p: seen.append(len(p.events()))) as prof:
                for _ in range(4):
                    x + x
                    prof.step()
            seen.clear()
        self.flat(work, 1_000, 2048)

    def test_training(self):
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
        optimizer = torch.optim.Adam(model.parameters())
        x, y = torch.ones(3, 4), torch.ones(3, 1)

        def work():
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        for _ in range(3):
            work()
        alive = _C._tensors_alive()
        self.flat(work, 2_000, 1024)
        self.assertLessEqual(_C._tensors_alive(), alive)

    def test_failing_calls(self):
        x = torch.ones(2, 2)

        def work():
            for call in (lambda: x + "a", lambda: x.mm(torch.ones(3)), lambda: x[5], lambda: x.nothing,
                         lambda: torch.tensor([[1], [1, 2]]), lambda: profile(activities=["?"])):
                try:
                    call()
                except Exception:  # every kind: this tests what is leaked
                    continue
                self.fail("it should have failed")
        self.flat(work, 5_000, 512)


if __name__ == "__main__":
    unittest.main()
