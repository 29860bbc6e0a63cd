# SPDX-License-Identifier: Apache-2.0
"""DataLoader and the accelerator: pinned batches, and workers that have no device."""
import collections
import os
import sys
import unittest
import warnings

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support_npu import run_python, same  # noqa: E402
import mindtorch_v2 as torch  # noqa: E402
from mindtorch_v2.utils import data  # noqa: E402

Pair = collections.namedtuple("Pair", "x y")


class Own:
    """A batch of a class of its own."""

    def __init__(self, batch):
        self.x = torch.stack(batch)
        self.calls = 0

    def pin_memory(self):
        self.x = self.x.pin_memory()
        self.calls += 1
        return self


class Items(data.Dataset):
    def __init__(self, make):
        self.make = make

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return self.make(torch.full((3,), float(index)))


def on_the_device(x):
    return x.npu()


def with_default_device(x):
    return x + torch.ones(3)


class Pinning(unittest.TestCase):
    def batches(self, make, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return list(data.DataLoader(Items(make), batch_size=4, pin_memory=True, **options))

    def test_containers(self):
        first = self.batches(lambda x: x)[0]
        self.assertTrue(first.is_pinned())
        self.assertEqual(first[:, 0].tolist(), [0.0, 1.0, 2.0, 3.0])
        found = self.batches(lambda x: {"x": x, "pair": Pair(x, 1), "list": [x, x], "text": "a", "number": 2.0})[1]
        self.assertIsInstance(found["pair"], Pair)
        self.assertEqual(found["text"], ["a"] * 4)
        for tensor in (found["x"], found["pair"].x, found["pair"].y, *found["list"], found["number"]):
            self.assertTrue(tensor.is_pinned())
        self.assertEqual([type(b) for b in self.batches(lambda x: (x, x))], [list, list])

    def test_own_batches(self):
        for batch in self.batches(lambda x: x, collate_fn=Own):
            self.assertEqual(batch.calls, 1)
            self.assertTrue(batch.x.is_pinned())

    def test_workers(self):
        got = self.batches(torch.neg, num_workers=2)
        self.assertTrue(all(batch.is_pinned() for batch in got))
        self.assertEqual([batch[0, 0].item() for batch in got], [0.0, -4.0])
        moved = [batch.to("npu", non_blocking=True) for batch in got]
        self.assertTrue(same(moved[1], got[1]))

    def test_unpinned(self):
        self.assertFalse(any(b.is_pinned() for b in data.DataLoader(Items(torch.neg))))

    def test_without_an_accelerator(self):
        run_python("""
import warnings
import mindtorch_v2 as torch
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter('always')
    batch, = torch.utils.data.DataLoader([1, 2], batch_size=2, pin_memory=True)
assert not batch.is_pinned()
assert ["'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
        "used."] == [str(w.message) for w in seen], seen
""", MINDTORCH_NPU=None)


class Workers(unittest.TestCase):
    def test_must_not_touch_the_device(self):
        torch.ones(1, device="npu").item()
        loader = data.DataLoader(Items(on_the_device), num_workers=1)
        with self.assertRaisesRegex(torch.AcceleratorError, "Caught AcceleratorError in DataLoader worker process 0"
                                                            r"[\s\S]*forked process cannot use the device"):
            list(loader)
        self.assertEqual(torch.ones(2, device="npu").sum().item(), 2.0)  # nothing happened to ours

    def test_default_device_stays_here(self):
        with torch.device("npu"):
            loader = data.DataLoader(Items(with_default_device), batch_size=8, num_workers=1)
            batch, = loader
        self.assertEqual(batch[:, 0].tolist(), [i + 1.0 for i in range(8)])

    def test_fork(self):
        x = torch.ones(100, device="npu")
        child = os.fork()
        if child == 0:
            status = 1
            try:
                x.sum()
            except torch.AcceleratorError:
                del x  # what it has may be freed
                status = 0
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(x.sum().item(), 100.0)


if __name__ == "__main__":
    unittest.main()
