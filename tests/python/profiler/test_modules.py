# SPDX-License-Identifier: Apache-2.0
"""with_modules: paths of nn.Modules on ops, forward and backward; modules' names in stacks."""
import gc
import json
import os
import sys
import tempfile
import threading
import unittest
import weakref

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from mtprof import modules, profile  # noqa: E402
from support_asan import UNDER_ASAN  # noqa: E402
from support_stacks import op, without_gil  # noqa: E402


class Module:
    """What mtprof.modules knows of a module: it has _modules, and says when it is called."""

    def __init__(self, **children):
        self._modules = dict(children)

    def __getattr__(self, name):
        try:
            return self.__dict__["_modules"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __call__(self, *arguments):
        if not modules.active():
            return self.forward(*arguments)
        token = modules.enter(self)
        try:
            return self.forward(*arguments)
        finally:
            modules.leave(token)


class Leaf(Module):
    def forward(self, name="op"):
        op(name)


class Pair(Module):
    def __init__(self):
        super().__init__(first=Leaf(), second=Leaf())

    def forward(self, name="op"):
        self.first(name + " 1")
        self.second(name + " 2")


class List(Module):
    pass


class Net(Module):
    def __init__(self):
        super().__init__(h=List(**{"0": Pair(), "1": Pair()}), head=Leaf())

    def forward(self, name="op"):
        for i, block in enumerate(self.h._modules.values()):
            block(f"{name} h{i}")
        self.head(name + " head")
        op(name + " own")


def trace_of(prof):
    """The events of the Chrome trace."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        prof.export_chrome_trace(path)
        with open(path, encoding="utf-8") as file:
            return json.load(file)["traceEvents"]


def paths_of(prof):
    """Names of ops with the module they have."""
    return {e["name"]: e["args"].get("Module Hierarchy") for e in trace_of(prof) if e.get("cat") == "cpu_op"}


class Paths(unittest.TestCase):
    def test_form(self):
        net = Net()
        with profile(with_modules=True) as prof:
            net("a")
            op("outside")
        paths = paths_of(prof)
        self.assertEqual(paths["a own"], "TOP(Net)::forward.")
        self.assertEqual(paths["a head"], "TOP(Net)::forward.head(Leaf)::forward.")
        self.assertEqual(paths["a h0 1"], "TOP(Net)::forward.h.0(Pair)::forward.first(Leaf)::forward.")
        self.assertEqual(paths["a h1 2"], "TOP(Net)::forward.h.1(Pair)::forward.second(Leaf)::forward.")
        self.assertIsNone(paths["outside"])

    def test_off(self):
        with profile(with_stack=True) as prof:
            self.assertFalse(modules.active())
            Net()("a")
        self.assertFalse(modules.active())
        self.assertEqual(set(paths_of(prof).values()), {None})

    def test_active_only_while_recording(self):
        self.assertFalse(modules.active())
        with profile(with_modules=True):
            self.assertTrue(modules.active())
        self.assertFalse(modules.active())

    def test_without_the_gil(self):
        """A path needs no GIL: the kernel's threads have let it go."""
        leaf = Leaf()
        with profile(with_modules=True) as prof:
            token = modules.enter(leaf)
            op("unlocked", without_gil)
            modules.leave(token)
        self.assertEqual(paths_of(prof)["unlocked"], "TOP(Leaf)::forward.")

    def test_exceptions_unwind(self):
        class Broken(Module):
            def __init__(self):
                super().__init__(inner=Leaf())

            def forward(self):
                self.inner("before")
                raise ValueError("broken")

        class Around(Module):
            def __init__(self):
                super().__init__(broken=Broken(), leaf=Leaf())

            def forward(self):
                try:
                    self.broken()
                except ValueError:
                    pass
                self.leaf("after")
        with profile(with_modules=True) as prof:
            Around()()
            with self.assertRaises(ValueError):
                Broken()()
            self.assertIsNone(modules.path())
        paths = paths_of(prof)
        self.assertEqual(paths["after"], "TOP(Around)::forward.leaf(Leaf)::forward.")

    def test_leaving_takes_off_what_was_entered_since(self):
        outer, inner = Leaf(), Leaf()
        token = modules.enter(outer)
        modules.enter(inner)
        modules.enter(inner)
        modules.leave(token)
        self.assertIsNone(modules.path())
        modules.leave(token)  # again: nothing
        modules.leave(100)

    def test_references(self):
        leaf = Leaf()
        before = sys.getrefcount(leaf)
        token = modules.enter(leaf)
        self.assertEqual(sys.getrefcount(leaf), before + 1)
        modules.leave(token)
        self.assertEqual(sys.getrefcount(leaf), before)
        gone = weakref.ref(leaf)
        del leaf
        gc.collect()
        self.assertIsNone(gone())

    def test_bad_tokens(self):
        for bad in (None, "0", 1.5):
            with self.assertRaises(TypeError):
                modules.leave(bad)
        for bad in (-1, 1 << 80):
            with self.assertRaises(OverflowError):
                modules.leave(bad)

    def test_not_held_by_its_caller(self):
        class Loose(Module):
            def forward(self):
                Leaf()("loose")
        with profile(with_modules=True) as prof:
            Loose()()
        self.assertEqual(paths_of(prof)["loose"], "TOP(Loose)::forward.Leaf(Leaf)::forward.")

    def test_shared_by_two(self):
        shared = Leaf()

        class Left(Module):
            def forward(self):
                self.left("left")

        class Right(Module):
            def forward(self):
                self.right("right")
        one, other = Left(left=shared), Right(right=shared)
        with profile(with_modules=True) as prof:
            for _ in range(2):
                one()
                other()
        paths = paths_of(prof)
        self.assertEqual(paths["left"], "TOP(Left)::forward.left(Leaf)::forward.")
        self.assertEqual(paths["right"], "TOP(Right)::forward.right(Leaf)::forward.")

    def test_things_that_are_no_modules(self):
        class Plain:
            pass

        class Slots:
            __slots__ = ()

        class Odd(Module):
            @property
            def _modules(self):
                raise RuntimeError("no modules for you")

            @_modules.setter
            def _modules(self, value):
                pass
        for thing, name in ((Plain(), "Plain"), (Slots(), "Slots"), (object(), "object"), (Odd(), "Odd"),
                            (3, "int")):
            token = modules.enter(thing)
            inner = modules.enter(Leaf())
            self.assertEqual(modules.path(), f"TOP({name})::forward.Leaf(Leaf)::forward.")
            modules.leave(inner)
            modules.leave(token)

    def test_odd_names(self):
        odd = Leaf()
        holder = Module(**{"naïve ☃": odd})
        holder._modules[3] = Leaf()
        holder._modules["none"] = None
        holder._modules["\ud800"] = Leaf()
        token = modules.enter(holder)
        for child, name in ((odd, "naïve ☃"), (holder._modules[3], "Leaf")):
            inner = modules.enter(child)
            self.assertEqual(modules.path(), f"TOP(Module)::forward.{name}(Leaf)::forward.")
            modules.leave(inner)
        inner = modules.enter(holder._modules["\ud800"])
        self.assertIn("(Leaf)::forward.", modules.path())
        modules.leave(token)

    def test_rings(self):
        """Modules that hold each other, and one that calls itself: bounded work, bounded strings."""
        a, b = Module(), Module()
        a._modules.update({f"x{i}": b for i in range(5)})
        b._modules.update({f"y{i}": a for i in range(5)})
        token = modules.enter(a)
        inner = modules.enter(Leaf())  # searched for in vain
        modules.leave(inner)
        modules.leave(token)
        tokens = [modules.enter(a) for _ in range(200)]
        self.assertLess(len(modules.path()), 4097)
        deepest = modules.path()
        modules.enter(a)
        self.assertEqual(modules.path(), deepest)
        modules.leave(tokens[0])
        self.assertIsNone(modules.path())

    def test_long_paths_are_cut(self):
        holder = Module()
        child = holder._modules["n" * 10000] = Leaf()
        token = modules.enter(holder)
        modules.enter(child)
        self.assertLessEqual(len(modules.path()), 4096)
        modules.leave(token)

    def test_a_lookup_that_calls_modules(self):
        leaf = Leaf()

        class Calls(Module):
            @property
            def _modules(self):
                Leaf()("in the lookup")
                return {"leaf": leaf}

            @_modules.setter
            def _modules(self, value):
                pass

            def forward(self):
                leaf("from there")
        with profile(with_modules=True) as prof:
            Calls()()
        self.assertEqual(paths_of(prof)["from there"], "TOP(Calls)::forward.leaf(Leaf)::forward.")

    def test_threads_have_their_own(self):
        net = Net()
        barrier = threading.Barrier(3)
        errors = []

        def work(n):
            barrier.wait()
            for i in range(20):
                net(f"t{n}.{i}")
                if modules.path() is not None:
                    errors.append(modules.path())
        with profile(with_modules=True) as prof:
            threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(errors, [])
        paths = paths_of(prof)
        for n in range(3):
            for i in range(20):
                self.assertEqual(paths[f"t{n}.{i} h1 1"],
                                 "TOP(Net)::forward.h.1(Pair)::forward.first(Leaf)::forward.")

    def test_window_that_opens_inside(self):
        class Opens(Module):
            def __init__(self, prof):
                super().__init__(leaf=Leaf())
                self.prof = prof

            def forward(self):
                self.prof.start()
                self.leaf("inside")
                self.prof.stop()
        prof = profile(with_modules=True)
        Opens(prof)()
        self.assertEqual(paths_of(prof)["inside"], "TOP(Leaf)::forward.")
        self.assertIsNone(modules.path())


class Names(unittest.TestCase):
    """Modules' calls in stacks: "nn.Module: Leaf_0"."""

    def setUp(self):
        modules.set_module_call(Module.__call__)

    def record(self, *functions):
        with profile(with_stack=True) as prof:
            for function in functions:
                function()
        return {e.name: [s for s in e.stack if s.startswith("nn.Module: ")] for e in prof.events()}

    def test_numbers_by_first_call(self):
        one, two, pair = Leaf(), Leaf(), Pair()
        names = self.record(lambda: two("two"), lambda: one("one"), lambda: pair("pair"),
                            lambda: one("again"))
        self.assertEqual(names["two"], ["nn.Module: Leaf_0"])
        self.assertEqual(names["one"], ["nn.Module: Leaf_1"])
        self.assertEqual(names["pair 1"], ["nn.Module: Leaf_2", "nn.Module: Pair_0"])
        self.assertEqual(names["pair 2"], ["nn.Module: Leaf_3", "nn.Module: Pair_0"])
        self.assertEqual(names["again"], ["nn.Module: Leaf_1"])
        names = self.record(lambda: one("one"), lambda: two("two"))
        self.assertEqual(names["one"], ["nn.Module: Leaf_0"])  # each recording counts from 0
        self.assertEqual(names["two"], ["nn.Module: Leaf_1"])

    def test_a_stack_is_innermost_first(self):
        with profile(with_stack=True) as prof:
            Net()("x")
        stack = next(e.stack for e in prof.events() if e.name == "x h1 2")
        named = [line if line.startswith("nn.Module") else line.split(": ")[1] for line in stack[:8]]
        self.assertEqual(named[:7], ["op", "Leaf.forward", "nn.Module: Leaf_3", "Pair.forward",
                                     "nn.Module: Pair_1", "Net.forward", "nn.Module: Net_0"])

    def test_same_place_other_module(self):
        """The instruction is the same, the object is not."""
        leaves = [Leaf() for _ in range(5)]

        def use():
            for _ in range(2):
                for i, leaf in enumerate(leaves):
                    leaf(f"leaf {i}")
        names = self.record(use)
        self.assertEqual([names[f"leaf {i}"] for i in range(5)], [[f"nn.Module: Leaf_{i}"] for i in range(5)])

    @unittest.skipIf(UNDER_ASAN, "addresses are not used again under AddressSanitizer")
    def test_dead_modules(self):
        """An address that is used again is another module."""
        addresses = set()

        def use():
            for i in range(300):
                leaf = Leaf()
                addresses.add(id(leaf))
                leaf(f"leaf {i % 10}.{i}")
                del leaf
                gc.collect(0)
        names = self.record(use)
        self.assertLess(len(addresses), 300)  # or this tests nothing
        for name, modules_of in names.items():
            self.assertEqual(modules_of, [f"nn.Module: Leaf_{name.split('.')[1]}"])

    def test_modules_are_not_kept(self):
        def use():
            leaf = Leaf()
            leaf("x")
            return weakref.ref(leaf)
        with profile(with_stack=True, with_modules=True):
            reference = use()
            self.assertIsNone(reference())

    def test_classes_of_one_name(self):
        def make():
            class Same(Leaf):
                pass
            return Same()
        one, two = make(), make()
        names = self.record(lambda: one("one"), lambda: two("two"))
        self.assertEqual((names["one"], names["two"]), (["nn.Module: Same_0"], ["nn.Module: Same_1"]))

    def test_self_that_is_gone_or_odd(self):
        class Odd:
            __slots__ = ()

        def call(self, name):
            op(name)
            del self
            op(name + " without self")

        def cell(self, name):
            op(name)
            return lambda: self
        try:
            modules.set_module_call(call)
            names = self.record(lambda: call(Leaf(), "a"), lambda: call(Odd(), "odd"))
            self.assertEqual(names["a"], ["nn.Module: Leaf_0"])
            self.assertEqual(names["a without self"], [])
            self.assertEqual(names["odd"], [])  # it cannot be held weakly
            modules.set_module_call(cell)
            names = self.record(lambda: cell(Leaf(), "in a cell"))
            self.assertEqual(names["in a cell"], ["nn.Module: Leaf_0"])
        finally:
            modules.set_module_call(Module.__call__)

    def test_deep(self):
        class Deep(Module):
            def forward(self, n):
                if n > 0:
                    Deep()(n - 1)
                else:
                    op("deep")
        names = self.record(lambda: Deep()(99))
        self.assertEqual(names["deep"], [f"nn.Module: Deep_{i}" for i in reversed(range(100))])

    def test_spans_of_the_trace(self):
        net = Net()
        with profile(with_stack=True) as prof:
            net("x")
        spans = [e for e in trace_of(prof) if e.get("cat") == "python_function"]
        self.assertTrue(all(e["args"]["sampled"] == 1 for e in spans))
        by_id = {e["args"]["Python id"]: e for e in spans}
        self.assertEqual(len(by_id), len(spans))
        leaf = next(e for e in spans if e["name"] == "nn.Module: Leaf_3")
        self.assertEqual(leaf["args"]["Python module id"], 3)
        chain = []
        while leaf is not None:
            chain.append(leaf["name"])
            parent = leaf["args"]["Python parent id"]
            above = by_id[parent] if parent is not None else None
            if above is not None:
                self.assertLessEqual(above["ts"], leaf["ts"])
                self.assertGreaterEqual(above["ts"] + above["dur"] + 1e-3, leaf["ts"] + leaf["dur"])
            leaf = above
        self.assertEqual([n for n in chain if n.startswith("nn.")],
                         ["nn.Module: Leaf_3", "nn.Module: Pair_1", "nn.Module: Net_0"])
        self.assertTrue(chain[-1].endswith("<module>"), chain[-1])


class Runtime(unittest.TestCase):
    """The same with mindtorch_v2's modules, forward and backward."""

    @classmethod
    def setUpClass(cls):
        try:
            import mindtorch_v2 as torch
            torch.nn.Linear
        except (ImportError, AttributeError) as error:
            raise unittest.SkipTest(f"no mindtorch_v2.nn here: {error}")
        cls.torch = torch
        modules.set_module_call(cls.module_call(torch))

    @staticmethod
    def module_call(torch):
        kind = torch.nn.Module
        return kind._call_impl if hasattr(kind, "_call_impl") else kind.__call__

    def model(self):
        nn = self.torch.nn

        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 4)

            def forward(self, x):
                return self.torch_relu(self.fc(x))

            torch_relu = staticmethod(self.torch.relu)

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.blocks = nn.ModuleList([Block(), Block()])
                self.out = nn.Sequential(nn.Linear(4, 2), nn.ReLU())

            def forward(self, x):
                for block in self.blocks:
                    x = block(x)
                return self.out(x)
        return Net()

    def test_paths_forward_and_backward(self):
        net = self.model()
        x = self.torch.ones(3, 4)
        with profile(with_modules=True) as prof:
            net(x).sum().backward()
        paths = {}
        for e in trace_of(prof):
            if e.get("cat") == "cpu_op":
                paths.setdefault(e["name"], []).append(e["args"].get("Module Hierarchy"))
        linear = paths["aten::linear"]
        self.assertIn("TOP(Net)::forward.blocks.0(Block)::forward.fc(Linear)::forward.", linear)
        self.assertIn("TOP(Net)::forward.out(Sequential)::forward.0(Linear)::forward.", linear)
        self.assertIn("TOP(Net)::forward.blocks.1(Block)::forward.", paths["aten::relu"])
        blocks = {f"TOP(Net)::forward.blocks.{i}(Block)::forward.fc(Linear)::forward." for i in range(2)}
        out = "TOP(Net)::forward.out(Sequential)::forward.0(Linear)::forward."
        self.assertEqual(set(paths["AddmmBackward0"]), blocks | {out})
        self.assertLessEqual(blocks, set(paths["aten::mm"]))  # inside the nodes
        self.assertEqual(set(paths["autograd::engine::evaluate_function: AddmmBackward0"]), {None})
        # The columns know what the backward ops belong to, as numbers of texts.
        events = prof.events()
        module = [int(m) for m in events.columns()["module"]]
        forward = {e.sequence_nr: m for e, m in zip(events, module) if e.name == "aten::addmm"}
        backward = [(e.sequence_nr, m) for e, m in zip(events, module) if e.name == "AddmmBackward0"]
        self.assertEqual(len(backward), 3)
        self.assertEqual(len(set(forward.values())), 3)
        for sequence, number in backward:
            self.assertNotEqual(number, 0)
            self.assertEqual(number, forward[sequence])

    def test_names_in_stacks(self):
        net = self.model()
        x = self.torch.ones(3, 4)
        with profile(with_stack=True) as prof:
            net(x).sum().backward()
        for e in prof.events():
            if e.name in ("aten::addmm", "AddmmBackward0"):
                named = [line for line in e.stack if line.startswith("nn.Module: ")]
                self.assertRegex(named[0], r"^nn\.Module: Linear_[012]$")
                self.assertEqual(named[-1], "nn.Module: Net_0")
                self.assertFalse([line for line in e.stack if "/mindtorch_v2/" in line])


if __name__ == "__main__":
    unittest.main()
