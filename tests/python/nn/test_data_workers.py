# SPDX-License-Identifier: Apache-2.0
"""The loader with worker processes.

Order, seeds, exceptions, dead workers, time-outs, leaving early, exit of the interpreter, forks under
a running profiler. What ends a process runs in one of its own.
"""
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
import warnings

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import mindtorch_v2 as torch  # noqa: E402
from mindtorch_v2.utils import data  # noqa: E402
from mindtorch_v2.utils.data.loading import transport  # noqa: E402
from support_data import Numbers, Stream, values  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None


def children():
    return multiprocessing.active_children()


def run(code, timeout=60, **kwargs):
    """A program of its own; its output."""
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True,
                          timeout=timeout, **kwargs)


class WorkerCase(unittest.TestCase):
    """That nothing is leaked: processes, descriptors, mappings."""

    def setUp(self):
        warnings.filterwarnings("ignore", "This DataLoader will create")
        gc.collect()
        self.before = self.left()

    def tearDown(self):
        gc.collect()
        self.assertEqual(self.left(), self.before)

    def left(self):
        with open("/proc/self/maps") as maps:
            mapped = sum("memfd:loader" in line for line in maps)
        return len(children()), len(os.listdir("/proc/self/fd")), mapped


class Workers(WorkerCase):
    def test_same_as_without(self):
        for n in (1, 2, 3):
            for options in (dict(batch_size=4), dict(batch_size=4, drop_last=True), dict(batch_size=None),
                            dict(batch_sampler=[[1, 2], [3]]), dict(batch_size=100)):
                expected = values(data.DataLoader(Numbers(23), **options))
                self.assertEqual(values(data.DataLoader(Numbers(23), num_workers=n, **options)), expected)

    def test_order_with_uneven_workers(self):
        class Slow(Numbers):
            def __getitem__(self, i):
                if i % 2 == 0:
                    time.sleep(0.02)
                return i

        self.assertEqual(values(data.DataLoader(Slow(12), None, num_workers=2)), list(range(12)))
        free = values(data.DataLoader(Slow(12), None, num_workers=2, in_order=False))
        self.assertEqual(sorted(free), list(range(12)))

    def test_iterable(self):
        class Part(data.IterableDataset):
            def __iter__(self):
                info = data.get_worker_info()
                return iter(range(info.id * 3 + 1))

        self.assertEqual(values(data.DataLoader(Part(), 2, num_workers=3)),
                         [[0], [0, 1], [0, 1], [2, 3], [2, 3], [4, 5], [6]])
        self.assertEqual(values(data.DataLoader(Stream(0), 2, num_workers=2)), [])

    def test_info_and_init(self):
        class Who(Numbers):
            def __getitem__(self, i):
                info = data.get_worker_info()
                return info.id, info.num_workers, info.dataset is self, self.marked, info.seed

        def mark(worker_id):
            data.get_worker_info().dataset.marked = 10 + worker_id

        got = list(data.DataLoader(Who(4), None, num_workers=2, worker_init_fn=mark))
        self.assertEqual([tuple(g[:4]) for g in got], [(0, 2, True, 10), (1, 2, True, 11)] * 2)
        self.assertEqual(got[1][4], got[0][4] + 1)
        self.assertIsNone(data.get_worker_info())

    def test_info_is_fixed(self):
        class Change(Numbers):
            def __getitem__(self, i):
                info = data.get_worker_info()
                try:
                    info.id = 5
                except RuntimeError as error:
                    return str(error) + repr(info)[:17]

        self.assertEqual(list(data.DataLoader(Change(1), None, num_workers=1)),
                         ["Cannot assign attributes to WorkerInfo objectsWorkerInfo(id=0, "])

    def test_seeds(self):
        class Random(Numbers):
            def __getitem__(self, i):
                import random

                return torch.rand(1).item(), random.random()

        def draw():
            torch.manual_seed(5)
            return list(data.DataLoader(Random(4), None, num_workers=2))

        first = draw()
        self.assertEqual(draw(), first)
        self.assertEqual(len({tuple(pair) for pair in first}), 4)  # workers differ

    def test_all_kinds_of_data(self):
        class Mixed(Numbers):
            def __getitem__(self, i):
                return {
                    "large": torch.full((300, 300), float(i)),
                    "small": torch.tensor([i]),
                    "empty": torch.empty(0, 2),
                    "scalar": torch.tensor(float(i)),
                    "bf16": torch.full((5000,), float(i)).bfloat16(),
                    "half": torch.full((3,), float(i)).half(),
                    "flag": torch.tensor(i % 2 == 0),
                    "turned": torch.arange(6).view(2, 3).t(),
                    "text": "x" * 10_000,
                    "none": None,
                }

        for i, got in enumerate(data.DataLoader(Mixed(6), None, num_workers=2)):
            self.assertEqual((got["large"].shape, got["large"].sum().item()), ((300, 300), 90_000.0 * i))
            self.assertEqual((got["small"].tolist(), got["scalar"].item()), ([i], float(i)))
            self.assertEqual((got["empty"].shape, got["flag"].item()), ((0, 2), i % 2 == 0))
            self.assertEqual((got["bf16"].dtype, got["bf16"][-1].item()), (torch.bfloat16, float(i)))
            self.assertEqual((got["half"].dtype, got["half"].tolist()), (torch.float16, [float(i)] * 3))
            self.assertEqual(got["turned"].tolist(), [[0, 3], [1, 4], [2, 5]])
            self.assertEqual((len(got["text"]), got["none"]), (10_000, None))
            got["large"].add_(1)  # belongs to us
            got["small"].add_(1)

    def test_numpy_and_own_collation(self):
        if np is None:
            self.skipTest("NumPy is not installed")

        class Arrays(Numbers):
            def __getitem__(self, i):
                return np.full((100, 100), i)

        for i, got in enumerate(data.DataLoader(Arrays(4), 2, num_workers=2, collate_fn=np.stack)):
            self.assertEqual((got.shape, got[1, 5, 5]), ((2, 100, 100), 2 * i + 1))
            got[0] = 1

    def test_batches_outlive_the_loader(self):
        class Large(Numbers):
            def __getitem__(self, i):
                return torch.full((10_000,), float(i))

        kept = list(data.DataLoader(Large(8), 2, num_workers=2))
        self.assertEqual(children(), [])
        self.assertEqual([b[1, -1].item() for b in kept], [1.0, 3.0, 5.0, 7.0])
        del kept

    def test_gradients_do_not_cross(self):
        class Grad(Numbers):
            def __getitem__(self, i):
                x = torch.ones(2, requires_grad=True)
                return x * 2 if i else x

        got = iter(data.DataLoader(Grad(2), None, num_workers=1))
        self.assertTrue(next(got).requires_grad)
        with self.assertRaisesRegex(RuntimeError, "refusing to serialize non-leaf tensor which"):
            next(got)
        del got

    def test_parameters_cross(self):
        class Parameters(Numbers):
            def __getitem__(self, i):
                return torch.nn.Parameter(torch.ones(2) * i, requires_grad=False)

        got = list(data.DataLoader(Parameters(2), None, num_workers=1))
        self.assertIsInstance(got[1], torch.nn.Parameter)
        self.assertEqual((got[1].tolist(), got[1].requires_grad), ([1.0, 1.0], False))

    def test_much_prefetching(self):
        """More answers than a socket holds, and no reader: neither side may wait for the other."""
        class Large(Numbers):
            def __getitem__(self, i):
                return "y" * 3000 + str(i)

        loader = data.DataLoader(Large(3500), None, num_workers=2, prefetch_factor=1500)
        got = iter(loader)
        time.sleep(0.2)
        self.assertEqual([next(got)[3000:] for _ in range(3500)], [str(i) for i in range(3500)])
        del got

    def test_large_indices(self):
        """What is asked for does not fit into a packet either."""
        loader = data.DataLoader(Numbers(200_000), 100_000, num_workers=1, collate_fn=len)
        self.assertEqual(list(loader), [100_000, 100_000])

    def test_work_of_threads(self):
        """The runtime's threads are not in a forked child, and it does not wait for them."""
        before = torch.get_num_threads()
        torch.set_num_threads(2)
        x = torch.ones(700, 700)
        (x @ x).exp().sum()

        class Works(Numbers):
            def __getitem__(self, i):
                return (x @ x).mean().item(), torch.ones(400_000).sum().item(), torch.get_num_threads()

        try:
            got = list(data.DataLoader(Works(4), None, num_workers=2))
            self.assertEqual([tuple(g) for g in got], [(700.0, 400_000.0, 1)] * 4)
            self.assertEqual(torch.get_num_threads(), 2)
        finally:
            torch.set_num_threads(before)

    def test_spawn(self):
        code = """
            import mindtorch_v2 as torch
            from mindtorch_v2.utils import data
            if __name__ == "__main__":
                d = data.TensorDataset(torch.arange(6.0))
                loader = data.DataLoader(d, 4, num_workers=2, multiprocessing_context="spawn")
                print([b.tolist() for b, in loader])
        """
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.py")
            with open(path, "w") as out:
                out.write(textwrap.dedent(code))
            done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=100)
        self.assertEqual((done.stdout, done.stderr), ("[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0]]\n", ""))

    def test_threads(self):
        results = []

        def load():
            results.append(values(data.DataLoader(Numbers(40), 5, num_workers=1)))

        threads = [threading.Thread(target=load) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, [values(data.DataLoader(Numbers(40), 5))] * 3)


class Persistent(WorkerCase):
    def test_same_processes(self):
        class Pid(Numbers):
            def __getitem__(self, i):
                return os.getpid()

        loader = data.DataLoader(Pid(6), None, num_workers=2, persistent_workers=True)
        first, second = list(loader), list(loader)
        self.assertEqual(len(set(first)), 2)
        self.assertEqual(set(first), set(second))
        self.assertNotIn(os.getpid(), first)
        del loader

    def test_left_early(self):
        loader = data.DataLoader(Numbers(50), 2, num_workers=2, persistent_workers=True, prefetch_factor=4)
        for _ in range(3):
            self.assertEqual(next(iter(loader)).tolist(), [0, 1])
        self.assertEqual(len(values(loader)), 25)
        del loader

    def test_iterable_again(self):
        loader = data.DataLoader(Stream(5), 2, num_workers=1, persistent_workers=True)
        self.assertEqual(values(loader), values(loader))
        del loader

    def test_seeds_change(self):
        class Random(Numbers):
            def __getitem__(self, i):
                return torch.rand(1).item()

        loader = data.DataLoader(Random(2), None, num_workers=1, persistent_workers=True)
        self.assertNotEqual(list(loader), list(loader))
        del loader

    def test_goes_on_after_an_exception(self):
        class Bad(Numbers):
            def __getitem__(self, i):
                if i == 1:
                    raise ValueError("one")
                return i

        loader = data.DataLoader(Bad(4), None, num_workers=1, persistent_workers=True)
        for _ in range(2):
            got = iter(loader)
            self.assertEqual(next(got), 0)
            with self.assertRaisesRegex(ValueError, "one"):
                next(got)
            self.assertEqual([next(got), next(got)], [2, 3])
        del loader, got


class Ends(WorkerCase):
    def test_break(self):
        for _ in data.DataLoader(Numbers(1000), num_workers=2):
            break
        gc.collect()
        self.assertEqual(children(), [])

    def test_exception_in_the_loop(self):
        with self.assertRaises(ZeroDivisionError):
            for _ in data.DataLoader(Numbers(1000), num_workers=2):
                1 / 0

    def test_error_of_a_worker(self):
        class Bad(Numbers):
            def __getitem__(self, i):
                raise {0: KeyError, 1: ValueError, 2: StopIteration}[i](f"no such thing: {i}")

        got = iter(data.DataLoader(Bad(3), num_workers=2))
        with self.assertRaises(KeyError) as caught:
            next(got)
        text = str(caught.exception)
        self.assertRegex(text, "^Caught KeyError in DataLoader worker process 0.\nOriginal Traceback")
        self.assertIn("in __getitem__\n", text)
        self.assertIn("KeyError: 'no such thing: 0'", text)
        with self.assertRaisesRegex(ValueError, "Caught ValueError in DataLoader worker process 1"):
            next(got)
        with self.assertRaises((RuntimeError, StopIteration)):
            next(got)
        del got

    def test_odd_exceptions(self):
        class Picky(Exception):
            def __init__(self, a, b):
                super().__init__(a)

        class Bad(Numbers):
            def __getitem__(self, i):
                raise Picky(1, 2)

        class Unpicklable(Numbers):
            def __getitem__(self, i):
                return lambda: i

        with self.assertRaisesRegex(RuntimeError, "Caught Picky in .*Original Traceback.*Picky"):
            try:
                list(data.DataLoader(Bad(1), num_workers=1))
            except RuntimeError as error:
                raise RuntimeError(str(error).replace("\n", " ")) from None
        with self.assertRaisesRegex(Exception, "Can't (pickle|get local)"):
            list(data.DataLoader(Unpicklable(1), None, num_workers=1))

    def test_error_in_init(self):
        def fail(worker_id):
            raise OSError("no disk")

        with self.assertRaisesRegex(OSError, "no disk"):
            list(data.DataLoader(Numbers(2), num_workers=1, worker_init_fn=fail))

    def test_killed_worker(self):
        class Deadly(Numbers):
            def __getitem__(self, i):
                if i == 3:
                    os.kill(os.getpid(), signal.SIGKILL)
                return i

        with self.assertRaisesRegex(RuntimeError, r"worker \(pid \d+\) is killed by signal: Killed"):
            list(data.DataLoader(Deadly(), num_workers=2))

    def test_exiting_worker(self):
        class Leaves(Numbers):
            def __getitem__(self, i):
                os._exit(7)

        with self.assertRaisesRegex(RuntimeError, r"\(pid \d+\) exited unexpectedly with exit code 7"):
            list(data.DataLoader(Leaves(), num_workers=1))

    def test_timeout(self):
        class Sleeps(Numbers):
            def __getitem__(self, i):
                time.sleep(100)

        began = time.monotonic()
        from mindtorch_v2.utils.data.loading import crew

        patience, crew.CHECK_SECONDS = crew.CHECK_SECONDS, 0.2
        try:
            with self.assertRaisesRegex(RuntimeError, "DataLoader timed out after 0.3 seconds"):
                list(data.DataLoader(Sleeps(), num_workers=1, timeout=0.3))
        finally:
            crew.CHECK_SECONDS = patience
        self.assertLess(time.monotonic() - began, 50)

    def test_end_of_the_interpreter(self):
        for keep in ("it = iter(loader); next(it)", "loader_kept = loader; it = iter(loader); next(it)",
                     "import gc; gc.disable(); it = iter(loader); it.me = it; next(it)"):
            done = run(f"""
                from mindtorch_v2.utils import data
                loader = data.DataLoader(list(range(100)), num_workers=2, persistent_workers={'kept' in keep})
                {keep}
                print("end")
            """)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "end\n", ""), keep)

    def test_worker_goes_when_its_loader_is_killed(self):
        done = run("""
            import os, signal
            from mindtorch_v2.utils import data
            it = iter(data.DataLoader(list(range(1000)), num_workers=2, prefetch_factor=2))
            next(it)
            print(*[m.process.pid for m in it._crew.members], flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        """)
        self.assertEqual(done.returncode, -signal.SIGKILL)
        pids = [int(pid) for pid in done.stdout.split()]
        self.assertEqual(len(pids), 2)
        deadline = time.monotonic() + 30
        alive = pids
        while alive and time.monotonic() < deadline:
            alive = [pid for pid in alive if self.runs(pid)]
            time.sleep(0.05)
        self.assertEqual(alive, [])

    @staticmethod
    def runs(pid):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                return stat.read().rpartition(")")[2].split()[0] not in "ZX"
        except FileNotFoundError:
            return False

    def test_interrupt(self):
        done = run("""
            import os, signal, time
            from mindtorch_v2.utils import data
            class Slow(data.Dataset):
                def __len__(self): return 100
                def __getitem__(self, i): time.sleep(0.05); return i
            try:
                for i, batch in enumerate(data.DataLoader(Slow(), num_workers=2)):
                    if i == 2:
                        os.killpg(os.getpgrp(), signal.SIGINT)  # as a terminal does
                        time.sleep(5)
            except KeyboardInterrupt:
                print("interrupted")
        """, start_new_session=True)
        self.assertEqual((done.stdout, done.stderr), ("interrupted\n", ""))

    def test_workers_go_by_themselves(self):
        """Also while another loader's workers, forked later, would hold copies of their connection."""
        loaders = [data.DataLoader(Numbers(100), num_workers=2) for _ in range(2)]
        first, second = map(iter, loaders)
        next(first), next(second)
        for it in (first, second):
            it._crew.dismiss()
            self.assertEqual([member.exitcode for member in it._crew.members], [0, 0])  # no worker had to be killed
        del it, first, second

    def test_no_descriptors_of_others(self):
        class Descriptors(Numbers):
            def __getitem__(self, i):
                return sum(os.readlink(f"/proc/self/fd/{fd}").startswith("socket:")
                           for fd in os.listdir("/proc/self/fd") if os.path.islink(f"/proc/self/fd/{fd}"))

        here = Descriptors()[0]
        other = iter(data.DataLoader(Numbers(100), num_workers=2))
        got = list(data.DataLoader(Descriptors(4), None, num_workers=2))
        self.assertEqual(got, [here + 1] * 4)
        del other

    def test_persistent_workers_are_made_anew(self):
        class Deadly(Numbers):
            def __getitem__(self, i):
                if os.path.exists(self.path):
                    os._exit(3)
                return i

        with tempfile.NamedTemporaryFile() as file:
            dataset = Deadly(4)
            dataset.path = file.name
            loader = data.DataLoader(dataset, None, num_workers=1, persistent_workers=True)
            with self.assertRaisesRegex(RuntimeError, "exit code 3"):
                list(loader)
        self.assertEqual(list(loader), [0, 1, 2, 3])
        del loader

    def test_a_fork_leaves_the_parents_workers_alone(self):
        got = iter(data.DataLoader(Numbers(100), num_workers=1))
        next(got)
        pid = os.fork()
        if pid == 0:
            try:
                got._crew.dismiss()
            finally:
                os._exit(0)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertEqual(next(got).tolist(), [1])
        del got


class Windows(unittest.TestCase):
    def window(self, in_order):
        from mindtorch_v2.utils.data.loading.window import Window

        made = Window(in_order)
        self.assertEqual([made.ask() for _ in range(4)], [0, 1, 2, 3])
        return made

    def test_in_order(self):
        window = self.window(True)
        window.arrive(2, "c")
        window.arrive(1, "b")
        self.assertIsNone(window.ready())
        window.drop(0)
        self.assertEqual([window.give(window.ready()) for _ in range(2)], ["b", "c"])
        self.assertIsNone(window.ready())
        self.assertEqual(len(window), 1)
        self.assertEqual(window.ask(), 4)  # numbers are not used again
        window.arrive(3, None)
        self.assertEqual((window.ready(), window.give(3), len(window)), (3, None, 1))

    def test_as_they_come(self):
        window = self.window(False)
        self.assertIsNone(window.ready())
        for number in (3, 2, 0):
            window.arrive(number, str(number))
        self.assertEqual([window.give(window.ready()) for _ in range(3)], ["0", "3", "2"])
        self.assertEqual((window.ready(), len(window)), (None, 1))


class UnderTheProfiler(WorkerCase):
    def test_annotations(self):
        from mindtorch_v2.profiler import profile

        for n, name in ((0, "_SingleProcessDataLoaderIter"), (1, "_MultiProcessingDataLoaderIter")):
            with profile() as prof:
                values(data.DataLoader(Numbers(4), 2, num_workers=n))
            names = [e.name for e in prof.events()]
            # One for each batch, and one that finds the end.
            self.assertEqual(names.count(f"enumerate(DataLoader)#{name}.__next__"), 3, names)

    def test_fork_while_it_records(self):
        """Workers work, and record nothing into their parent's trace."""
        from mindtorch_v2.profiler import profile

        class Works(Numbers):
            def __getitem__(self, i):
                return torch.ones(8).mul(float(i)).sum()

        with profile() as prof:
            before = torch.ones(2).exp()
            got = values(data.DataLoader(Works(20), 4, num_workers=2))
            after = before.exp()
        self.assertEqual([x for batch in got for x in batch], [8.0 * i for i in range(20)])
        names = [e.name for e in prof.events()]
        self.assertEqual(names.count("aten::exp"), 2)
        self.assertEqual(names.count("aten::mul"), 0)
        self.assertEqual(after.shape, (2,))


    def test_fork_while_it_records_everything(self):
        from mindtorch_v2.profiler import profile

        class Works(Numbers):
            def __getitem__(self, i):
                return torch.ones(8).mul(float(i)).sum()

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.mtt")
            with profile(record_shapes=True, profile_memory=True, with_stack=True, path=path) as prof:
                got = values(data.DataLoader(Works(6), 2, num_workers=2, persistent_workers=True))
            self.assertEqual(got, [[0.0, 8.0], [16.0, 24.0], [32.0, 40.0]])
            self.assertEqual([e.name for e in prof.events()].count("aten::mul"), 0)
            del prof
            gc.collect()


class Transport(WorkerCase):
    def test_shared_memory_is_not_copied(self):
        a, b = transport.pair()
        sent = torch.arange(100_000.0)
        a.send({"x": sent})
        got = b.receive()["x"]
        with open("/proc/self/maps") as maps:
            spans = [line.split()[0] for line in maps if "memfd:loader" in line]
        address = got.data_ptr()
        inside = [s for s in spans if int(s.split("-")[0], 16) <= address < int(s.split("-")[1], 16)]
        self.assertEqual(len(inside), 1)
        self.assertEqual(address % 64, 0)
        self.assertTrue(torch.equal(got, sent))
        a.close()
        b.close()
        del got

    def test_closed(self):
        a, b = transport.pair()
        a.close()
        with self.assertRaises(transport.Closed):
            b.receive()
        with self.assertRaises(transport.Closed):
            b.send(1)
        b.close()

    def test_full(self):
        a, b = transport.pair()
        sent = 0
        while a.send("z" * 3000, wait=False):
            sent += 1
            self.assertLess(sent, 100_000)
        self.assertGreater(sent, 4)
        for _ in range(sent):
            self.assertEqual(len(b.receive()), 3000)
        self.assertFalse(b.poll(0))
        a.close()
        b.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)  # reasons of skipped tests are shown
