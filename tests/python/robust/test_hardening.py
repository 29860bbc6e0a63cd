# SPDX-License-Identifier: Apache-2.0
"""Code of the user's that runs in the middle of ours: __index__, __str__, __hash__, callbacks of the
collector that change what is being read; memory that is looked at when its tensor has other data; threads;
the interpreter's end.

Found with AddressSanitizer (./dev asan), where such a mistake shows for certain.
"""
import gc
import os
import stat
import subprocess
import sys
import tempfile
import threading
import unittest
import weakref

import mindtorch_v2 as torch
import mtprof
from mtprof import _mtprof
from mtprof.events import FunctionEventAvg
from support_asan import UNDER_ASAN

try:
    import numpy
except ImportError:
    numpy = None


class Index:
    """A number that does something when it is asked for."""

    def __init__(self, value, action):
        self.value = value
        self.action = action

    def __index__(self):
        self.action()
        return self.value


class Arguments(unittest.TestCase):
    def test_a_list_that_is_emptied_by_a_later_argument(self):
        given = [torch.full((100,), float(i)) for i in range(3)]

        def empty():
            given.clear()
            for _ in range(80):
                torch.zeros(7)
        self.assertEqual(torch.cat(given, Index(0, empty)).tolist(), [0.0] * 100 + [1.0] * 100 + [2.0] * 100)
        given.extend(torch.ones(4) for _ in range(60))
        self.assertEqual(torch.stack(given, dim=Index(0, given.clear)).shape, (60, 4))

    def test_references_of_lists(self):
        tensors = [torch.ones(2) for _ in range(3)]
        before = torch._C._tensors_alive()
        for _ in range(50):
            torch.cat(tensors)
            with self.assertRaises(TypeError):
                torch.cat([tensors[0], tensors[1], 5])
            with self.assertRaises(TypeError):
                torch.cat(tensors, nonsense=1)
        self.assertEqual(torch._C._tensors_alive(), before)

    def test_sizes_of_bytes(self):
        sizes = [1] * 8
        sizes[0] = Index(1, sizes.clear)
        with self.assertRaises(ValueError):
            torch._C._tensor_from_bytes(bytes(4), torch.float32, sizes)

    def test_data_that_is_given_away_while_it_is_indexed(self):
        for use in (lambda x, i: x[i:], lambda x, i: x[0, i:2, ..., None], lambda x, i: x.size(i),
                    lambda x, i: x.view(i, -1), lambda x, i: x.transpose(0, i), lambda x, i: x.stride(i),
                    lambda x, i: x.sum(i)):
            x = torch.ones(2, 3, 4, 5)

            def other(x=x):
                x.data = torch.zeros(1)
            try:
                use(x, Index(1, other))
            except (IndexError, RuntimeError):
                pass
            self.assertEqual(x.tolist(), [0.0])

    def test_no_type(self):
        with self.assertRaises(TypeError):
            torch.frombuffer(bytearray(8), dtype=None)
        with self.assertRaises(TypeError):
            torch._C._tensor_from_bytes(b"", None, [0])

    def test_ops_by_what_is_no_name(self):
        for name in (5, None, (1,)):
            with self.assertRaises(TypeError):
                torch._C.ops.__getattr__(name)

    def test_another_tensor_function(self):
        kept = torch.tensor
        try:
            torch.tensor = lambda *args, **kwargs: 5
            with self.assertRaisesRegex(TypeError, "gave 5"):
                torch.Tensor([1, 2])
        finally:
            torch.tensor = kept

    def test_more_bytes_than_there_can_be(self):
        x = torch.zeros(1).expand(2 ** 62)
        self.assertEqual(x.nbytes, 2 ** 64)
        for use in (lambda: x.tolist(), lambda: memoryview(x), lambda: torch._C._tensor_bytes(x)):
            with self.assertRaises(MemoryError):
                use()


class Memory(unittest.TestCase):
    """What others see of a tensor stays when the tensor gets other data."""

    def check(self, export, element):
        for swap in (self.by_data, self.by_out):
            x = torch.full((5000,), 3.0)
            seen = export(x)
            swap(x)
            others = [torch.full((5000,), 9.0) for _ in range(20)]  # the next owner of the memory writes to it
            self.assertEqual(float(element(seen)), 3.0)
            del seen, others

    def by_data(self, x):
        x.data = torch.zeros(3)

    def by_out(self, x):
        import warnings
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.add(torch.ones(2), 1, out=x)

    def test_memoryview(self):
        self.check(memoryview, lambda m: m[4999])

    def test_dlpack(self):
        self.check(lambda x: torch.from_dlpack(x), lambda y: y[4999])
        self.check(lambda x: x.__dlpack__(), lambda capsule: torch.from_dlpack(capsule)[4999])
        self.check(torch._C.to_dlpack, lambda capsule: torch.from_dlpack(capsule)[4999])

    @unittest.skipIf(numpy is None, "no numpy")
    def test_arrays(self):
        self.check(lambda x: x.numpy(), lambda a: a[4999])
        self.check(numpy.asarray, lambda a: a[4999])
        self.check(numpy.from_dlpack, lambda a: a[4999])

    def test_references(self):
        x = torch.ones(3)
        before = torch._C._tensors_alive()
        for _ in range(20):
            memoryview(x).release()
            x.__dlpack__()
            torch.from_dlpack(x)
            x.tolist()
        self.assertEqual(torch._C._tensors_alive(), before)

    def test_a_collection_in_the_middle_of_a_list(self):
        x = torch.ones(200, 200)

        def swap(phase, info):
            x.data = torch.zeros(1)
        threshold = gc.get_threshold()
        gc.callbacks.append(swap)
        gc.set_threshold(1)
        try:
            rows = x.tolist()
        finally:
            gc.set_threshold(*threshold)
            gc.callbacks.remove(swap)
        self.assertEqual(rows, [[1.0] * 200] * 200)

    def test_misaligned(self):
        """Our loops, compiled for aligned elements, would do anything with these."""
        memory = bytearray(8 * 100 + 1)
        for dtype in (torch.float32, torch.float64, torch.int64, torch.int32, torch.float16):
            with self.assertRaisesRegex(ValueError, "multiple of its element size"):
                torch.frombuffer(memory, dtype=dtype, offset=1, count=10)
        self.assertEqual(torch.frombuffer(memory, dtype=torch.uint8, offset=1, count=10).sum().item(), 0)

    @unittest.skipIf(numpy is None, "no numpy")
    def test_misaligned_arrays(self):
        array = numpy.frombuffer(bytearray(4 * 100 + 1), dtype=numpy.float32, offset=1)
        array[:] = 2
        with self.assertRaisesRegex(ValueError, "multiple of its element size"):
            torch.from_numpy(array)
        self.assertEqual(torch.tensor(array).sum().item(), 200.0)


class Scopes(unittest.TestCase):
    def test_init_of_subclasses(self):
        class Sub(mtprof.record_function):
            pass
        with self.assertRaisesRegex(TypeError, "missing 1 required"):
            Sub(args="x")
        with self.assertRaisesRegex(TypeError, "missing 1 required"):
            mtprof.record_function("a").__init__(args="x")
        with self.assertRaisesRegex(TypeError, "keywords must be strings"):
            Sub("x", **{1: 2})
        self.assertEqual(Sub("n", args="x").args, "x")

    def test_init_again_while_metadata_is_read(self):
        class Text(list):
            def __str__(self):
                scope.__init__("other")
                return "x" * 100
        scope = mtprof.record_function("a", k1=Text(), k2=Text([1]), k3="z")
        with mtprof.profile() as p:
            with scope:
                pass
        self.assertEqual([e.name for e in p.events()], ["a"])

    def test_a_name_that_is_replaced_while_it_is_hashed(self):
        class Name(str):
            asked = 0

            def __hash__(self):
                Name.asked += 1
                scope.name = "n" + "ew"
                return 5

            __eq__ = str.__eq__
        scope = mtprof.record_function(Name("q" * 50), "args")
        with mtprof.profile(record_shapes=True) as p:
            with scope:
                pass
            mtprof.counter(Name("counted"), 1)
        self.assertEqual([e.name for e in p.events()][:1], ["q" * 50])
        self.assertEqual(Name.asked, 0)

    def test_a_shape_that_is_emptied(self):
        shape = [3] * 60
        shape[0] = Index(3, shape.clear)
        tensor = type("T", (), {"shape": shape})()
        with mtprof.profile(record_shapes=True) as p:
            _mtprof.end(_mtprof.begin_inputs("x", (tensor,), None))
        self.assertEqual(p.events()[0].name, "x")

    def test_a_class_that_is_renamed_while_a_path_is_made(self):
        class Holder:
            @property
            def _modules(self):
                Called.__name__ = "Renamed" * 20
                Called.__name__ = "Again" * 20
                return {}

        class Called:
            pass
        holder, called = Holder(), Called()
        with mtprof.profile(with_modules=True):
            outer = _mtprof.module_enter(holder)
            inner = _mtprof.module_enter(called)
            self.assertIn("Again" * 20, _mtprof.module_path())
            _mtprof.module_leave(inner)
            _mtprof.module_leave(outer)


class Events(unittest.TestCase):
    def profiled(self, count):
        with mtprof.profile() as p:
            for _ in range(count):
                with mtprof.record_function("x"):
                    pass
        return p

    def test_an_event_is_made_again_while_it_dies(self):
        model = self.profiled(3000)._model(0)
        events = []
        model.fill(events)
        made = []
        weak = weakref.ref(events[5], lambda _, event=model.event: made.append(event(5)))
        events.clear()
        self.assertIsNone(weak())
        self.assertEqual([(e.name, e._index) for e in made], [("x", 5)])
        del model, weak
        gc.collect()
        self.assertEqual(made.pop().name, "x")

    def test_a_dictionary_that_is_replaced_while_it_is_searched(self):
        event = self.profiled(1).events()[0]

        class Key:
            def __hash__(self):
                return hash("name")

            def __eq__(self, other):
                event.__dict__ = {}
                return False
        event.__dict__[Key()] = 1
        self.assertEqual(event.name, "x")
        event.__dict__[Key()] = 1
        event.name = "y"
        event.__dict__[Key()] = 1
        event.cpu_time_total  # noqa: B018
        with self.assertRaises(AttributeError):
            del event.node_id


    def test_rows_whose_dictionary_is_replaced_while_it_is_read(self):
        with mtprof.profile() as p:
            with mtprof.record_function("x"):
                pass
        row = p.key_averages()[0]

        class Key:
            def __hash__(self):
                return hash("cpu_parent")

            def __eq__(self, other):
                row.__dict__ = {}
                return False
        row.__dict__[Key()] = 1
        self.assertIsNone(row.cpu_parent)
        self.assertEqual(p.key_averages()[0].key, "x")

    def test_rows_that_are_emptied_while_they_are_read(self):
        class Number:
            def __float__(self):
                rows.clear()
                stack.clear()
                return 1.0
        stack = ["frame %d" % i for i in range(50)]

        def row(us, key):
            row = FunctionEventAvg()
            row.key, row.cpu_time_total, row.self_cpu_time_total, row.stack = key * 40, us, 1.0, stack
            return row
        rows = [row(1.0, "a"), row(Number(), "b"), row(1.0, "c")]
        text = _mtprof.rows_table(rows, {"max_name_column_width": 100})[0]
        self.assertEqual([("a" * 40) in text, ("b" * 40) in text, ("c" * 40) in text], [True] * 3)


class Files(unittest.TestCase):
    def test_what_is_no_file_is_not_replaced(self):
        """Saving puts a finished file in place of the old one: a device would be gone."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "fifo")
            link = os.path.join(folder, "link")
            os.mkfifo(path)
            os.symlink(path, link)
            with mtprof.profile() as p:
                pass
            for name in (path, link):
                with self.assertRaises(OSError):
                    p._save(name)
            self.assertTrue(stat.S_ISFIFO(os.stat(path).st_mode))
            self.assertTrue(os.path.islink(link))
            self.assertEqual(sorted(os.listdir(folder)), ["fifo", "link"])


class Threads(unittest.TestCase):
    def test_profiles_come_and_go_over_large_ops(self):
        """Ops without the GIL, gradients, hooks, stacks on some threads; start, step and stop on another."""
        stop = threading.Event()
        failures = []

        def work(number):
            try:
                x = torch.ones(200, 200)
                w = torch.ones(200, 200, requires_grad=True)
                w.register_hook(lambda g: g * 1)
                while not stop.is_set():
                    with mtprof.record_function(f"work {number}", k=number):
                        y = (x @ w).relu()
                        y.sum().backward()
                        y.tolist()[:1]
                        memoryview(x).release()
                    w.grad = None
            except BaseException as error:  # noqa: BLE001
                failures.append(error)
        threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        try:
            for i in range(12):
                with mtprof.profile(with_stack=i % 2 == 0, record_shapes=i % 3 == 0, with_modules=True,
                                    profile_memory=i % 4 == 0,
                                    schedule=mtprof.schedule(wait=0, warmup=1, active=2)) as p:
                    for _ in range(4):
                        torch.ones(300, 300) @ torch.ones(300, 300)
                        p.step()
                p.events()
                _mtprof.release_code()
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(failures, [])

    def test_gradients_are_read_while_others_make_them(self):
        w = torch.ones(100, requires_grad=True)
        stop = threading.Event()

        def work():
            while not stop.is_set():
                (w * 2).sum().backward()
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(300):
            grad = w.grad
            if grad is not None:
                self.assertEqual(grad.shape, (100,))
        stop.set()
        for thread in threads:
            thread.join()


class End(unittest.TestCase):
    """The interpreter ends while something of ours is alive or runs."""

    def ends(self, script, code=0):
        head = "import mindtorch_v2 as torch, mtprof, threading, time, sys, gc\n"
        command = [sys.executable, "-X", "faulthandler", "-c", head + script]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, code, done.stdout[-500:] + done.stderr[-3000:])

    def test_daemons_that_compute_and_record(self):
        for options in ("", "with_stack=True, with_modules=True, record_shapes=True"):
            self.ends(f"""
p = mtprof.profile({options}); p.start()
def work():
    w = torch.ones(150, 150, requires_grad=True)
    w.register_hook(lambda g: g + 0)
    while True:
        with mtprof.record_function("x", k="v"):
            (w @ w).sum().backward()
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
""")

    def test_daemons_that_start_and_stop(self):
        self.ends("""
def work():
    while True:
        try:
            with mtprof.profile(with_stack=True) as p:
                torch.ones(200, 200) @ torch.ones(200, 200)
        except RuntimeError:
            pass
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
""")

    def test_memory_that_others_have(self):
        self.ends("""
x = torch.ones(1000)
capsule = x.__dlpack__(); view = memoryview(x); sys.kept = [capsule, view, torch.from_dlpack(x)]
try:
    import numpy
    ones = numpy.ones(9)
    sys.arrays = [x.numpy(), numpy.from_dlpack(x), torch.from_numpy(ones), torch.from_dlpack(ones)]
except ImportError:
    pass
class Late:
    def __del__(self):
        (torch.ones(3, requires_grad=True) * 2).sum().backward()
sys.late = Late(); cycle = [Late()]; cycle.append(cycle)
""")

    def test_graphs_and_hooks(self):
        self.ends("""
w = torch.ones(3, requires_grad=True)
w.register_hook(lambda g: print(g)); w.me = w
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a): ctx.save_for_backward(a); ctx.more = [ctx]; return a * 2
    @staticmethod
    def backward(ctx, g): return g
sys.kept = F.apply(w).sum(); sys.node = sys.kept.grad_fn; sys.nodes = sys.node.next_functions
""")

    @unittest.skipIf(UNDER_ASAN, "a fork in a process with threads may find AddressSanitizer's allocator locked")
    def test_fork_while_threads_record(self):
        self.ends("""
import os
p = mtprof.profile(with_stack=True); p.start()
stop = threading.Event()
def work():
    while not stop.is_set():
        with mtprof.record_function("x"):
            torch.ones(200, 200) @ torch.ones(200, 200)
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads: t.start()
codes = []
for i in range(8):
    pid = os.fork()
    if pid == 0:
        torch.ones(300, 300) @ torch.ones(300, 300)
        with mtprof.record_function("child"): pass
        (torch.ones(3, requires_grad=True) * 2).sum().backward()
        gc.collect()
        os._exit(0)
    codes.append(os.waitpid(pid, 0)[1])
stop.set()
for t in threads: t.join()
p.stop()
assert codes == [0] * 8, codes
""")


if __name__ == "__main__":
    unittest.main()
