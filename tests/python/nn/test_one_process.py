# SPDX-License-Identifier: Apache-2.0
"""What torch has for several processes and devices, with one of each; utils.benchmark, tensorboard, swap_tensors."""

import importlib.util
import os
import tempfile
import unittest

import mindtorch_v2 as torch
from mindtorch_v2 import distributed as dist


class Distributed(unittest.TestCase):
    def tearDown(self):
        if dist.is_initialized():
            dist.destroy_process_group()

    def begin(self):
        dist.init_process_group("gloo", init_method="tcp://127.0.0.1:1", rank=0, world_size=1)

    def test_needs_a_group(self):
        self.assertTrue(dist.is_available())
        self.assertFalse(dist.is_initialized())
        for call in (dist.get_rank, dist.get_world_size, dist.barrier, lambda: dist.all_reduce(torch.ones(1))):
            with self.assertRaisesRegex(ValueError, "Default process group has not been initialized"):
                call()

    def test_collectives_give_what_they_got(self):
        self.begin()
        self.assertEqual((dist.get_rank(), dist.get_world_size(), dist.get_backend()), (0, 1, "gloo"))
        x, out = torch.arange(3.0), torch.zeros(3)
        self.assertIsNone(dist.all_reduce(x, op=dist.ReduceOp.AVG))
        self.assertTrue(dist.all_reduce(x, async_op=True).wait())
        dist.all_gather([out], x)
        self.assertEqual(out.tolist(), x.tolist())
        objects = [None]
        dist.all_gather_object(objects, {"a": 1})
        self.assertEqual(objects, [{"a": 1}])
        with self.assertRaisesRegex(RuntimeError, "invalid rank 1"):
            dist.broadcast(x, 1)
        with self.assertRaisesRegex(ValueError, "Invalid destination rank"):
            dist.send(x, 0)
        with self.assertRaisesRegex(ValueError, "twice"):
            self.begin()

    def test_more_processes_are_refused(self):
        with self.assertRaisesRegex(NotImplementedError, "world size 4, rank 1"):
            dist.init_process_group("gloo", init_method="tcp://127.0.0.1:1", rank=1, world_size=4)
        with self.assertRaisesRegex(ValueError, "environment variable RANK expected"):
            dist.init_process_group("gloo")

    def test_parallel_modules(self):
        model = torch.nn.Linear(2, 3)
        wrapped = torch.nn.DataParallel(model)
        x = torch.randn(4, 2)
        self.assertEqual(wrapped(x).tolist(), model(x).tolist())
        self.assertEqual(list(wrapped.state_dict()), ["module.weight", "module.bias"])
        with self.assertRaisesRegex(ValueError, "process group has not been initialized"):
            torch.nn.parallel.DistributedDataParallel(model)
        self.begin()
        wrapped = torch.nn.parallel.DistributedDataParallel(model)
        with torch.profiler.profile() as prof, wrapped.no_sync():
            wrapped(x).sum().backward()
        self.assertIn("DistributedDataParallel.forward", {event.name for event in prof.events()})
        self.assertIsNotNone(model.weight.grad)


class Utils(unittest.TestCase):
    def test_timer_and_table(self):
        from mindtorch_v2.utils.benchmark import Compare, Measurement, Timer

        one = Timer(
            "x + y", globals={"x": torch.ones(3), "y": 1}, label="add", sub_label="small", description="ours"
        ).timeit(50)
        self.assertEqual((one.number_per_run, len(one.times)), (50, 1))
        self.assertGreater(one.mean, 0)
        self.assertIn("add: small", repr(one))
        other = Timer("x * 2", setup="x = torch.ones(3)", label="add", sub_label="small", description="other")
        text = str(Compare([one, other.blocked_autorange(min_run_time=0.002)]))
        for word in ("add", "ours", "other", "small", "1 threads", "Times are in"):
            self.assertIn(word, text)
        made = Measurement(10, [1.0, 2.0, 3.0, 4.0], one.task_spec)
        self.assertAlmostEqual(made.median, 0.25)
        self.assertAlmostEqual(made.iqr, 0.15)
        self.assertTrue(made.has_warnings)

    def test_swap_tensors(self):
        a, b = torch.nn.Parameter(torch.ones(2)), torch.zeros(3, dtype=torch.float64)
        a.grad, b.mark = torch.full((2,), 5.0), "b"
        before = id(a)
        torch.utils.swap_tensors(a, b)
        self.assertEqual(
            (a.shape, a.dtype, a.requires_grad, a.mark, id(a)), ((3,), torch.float64, False, "b", before)
        )
        self.assertEqual((b.tolist(), b.grad.tolist(), b.requires_grad), ([1.0, 1.0], [5.0, 5.0], True))
        self.assertEqual((type(a), type(b)), (torch.Tensor, torch.nn.Parameter))
        with self.assertRaisesRegex(RuntimeError, "t2 is a view or a result"):
            torch.utils.swap_tensors(a, b * 2)

    @unittest.skipIf(importlib.util.find_spec("tensorboard"), "the package tensorboard is installed")
    def test_tensorboard_says_what_is_missing(self):
        with self.assertRaisesRegex(ImportError, "pip install tensorboard"):
            torch.utils.tensorboard.SummaryWriter

    @unittest.skipUnless(importlib.util.find_spec("tensorboard"), "the package tensorboard is not installed")
    def test_tensorboard_writes(self):
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        with tempfile.TemporaryDirectory() as folder:
            with torch.utils.tensorboard.SummaryWriter(os.path.join(folder, "run")) as writer:
                for step in range(3):
                    writer.add_scalar("loss", torch.tensor(1.0 / (step + 1)), step)
                writer.add_histogram("weights", torch.randn(100), 1)
                writer.add_text("note", "text", 0)
                writer.add_scalars("both", {"a": 1.0, "b": 2.0}, 0)
            read = EventAccumulator(os.path.join(folder, "run")).Reload()
            self.assertEqual([round(e.value, 4) for e in read.Scalars("loss")], [1.0, 0.5, 0.3333])
            self.assertEqual(read.Histograms("weights")[0].histogram_value.num, 100)
            self.assertTrue(os.path.isdir(os.path.join(folder, "run", "both_a")))


if __name__ == "__main__":
    unittest.main()
