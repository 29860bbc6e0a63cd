# SPDX-License-Identifier: Apache-2.0
"""torch-contract 2, record_function and its relatives around ops of mindtorch_v2.

What other tests have is not repeated: instances that are re-entered, decorators, generators, futures, free
lists and odd inputs of the fast scopes (test_record_function), stacks of scopes (test_stacks).
"""
import asyncio
import threading
import unittest

from support_contract import ContractTest, Net, profiled, torch
from mindtorch_v2.profiler import ProfilerActivity, profile, record_function, schedule

CPU = [ProfilerActivity.CPU]


def tree(prof):
    """Names with their parents' names."""
    return [(e.name, e.cpu_parent.name if e.cpu_parent is not None else None) for e in prof.events()]


class Scopes(ContractTest):
    """torch-contract 2.1 to 2.10, 2.14."""

    def test_2_1_decorator(self):
        @record_function("decorated")
        def double(x):
            """Doubles."""
            return x + x
        self.assertEqual((double.__name__, double.__doc__), ("double", "Doubles."))
        x = torch.ones(2)
        with profile(activities=CPU) as prof:
            double(x)
            double(x)
        self.assertEqual(tree(prof), [("decorated", None), ("aten::add", "decorated")] * 2)

    def test_2_2_bad_arguments(self):
        for bad in (lambda: record_function(5), lambda: record_function(None),
                    lambda: record_function("name", 5), lambda: record_function("name", ["a"])):
            with self.assertRaises(RuntimeError):
                with bad():
                    pass
        with self.assertRaisesRegex(AssertionError, "Expected record to be set"):
            record_function("name").__exit__(None, None, None)

    def test_2_3_what_it_is(self):
        with profile(activities=CPU) as prof:
            with record_function("here") as scope:
                self.assertIsInstance(scope, record_function)
        event = prof.events()[0]
        self.assertEqual((event.scope, event.is_user_annotation, event.activity_type, event["kind"]),
                         (7, True, "user_annotation", "scope"))
        self.assertEqual(self.spans(self.trace(prof), name="here")[0]["cat"], "user_annotation")

    def test_2_4_args(self):
        with profile(activities=CPU, record_shapes=True) as prof:
            with record_function("with", "text"):
                pass
            with record_function("without"):
                pass
        given, without = prof.events()
        self.assertEqual((given.input_shapes, given.concrete_inputs), ([[]], ["text"]))
        self.assertEqual((without.input_shapes, without.concrete_inputs), ([], []))

    def test_2_5_exceptions(self):
        with profile(activities=CPU) as prof:
            with self.assertRaises(RuntimeError):
                with record_function("outer"):
                    with record_function("inner"):
                        torch.ones(2) + torch.ones(3)
            torch.ones(2)
        names = [name for name, parent in tree(prof) if parent is None]
        self.assertEqual(names, ["outer", "aten::ones"])
        self.assertIn(("inner", "outer"), tree(prof))

    def test_2_6_inactive(self):
        with record_function("nothing"):
            torch.ones(2)
        with profile(activities=CPU, schedule=schedule(wait=1, warmup=1, active=1)) as prof:
            with record_function("waiting"):
                prof.step()
            with record_function("warming"):
                prof.step()
            with record_function("active"):
                pass
        self.assertEqual([e.name for e in prof.events() if e.is_user_annotation], ["ProfilerStep*", "active"])

    def test_2_7_recursion(self):
        @record_function("again")
        def fall(n):
            return fall(n - 1) if n else torch.ones(1)
        with profile(activities=CPU) as prof:
            fall(3)
        scopes = [e for e in prof.events() if e.name == "again"]
        # torch-contract 3.3.4: a chain of one name with one child each is shown once; the trace
        # has all four.
        self.assertEqual(len(self.spans(self.trace(prof), name="again")), 4)
        self.assertEqual(len(scopes), 1)
        self.assertEqual([e.name for e in scopes[0].cpu_children], ["aten::ones"])

    def test_2_8_borders(self):
        early, late = record_function("early"), record_function("late")
        with early:
            prof = profile(activities=CPU)
            prof.start()
            torch.ones(2)
            late.__enter__()
            torch.zeros(2)
            prof.stop()
        late.__exit__(None, None, None)
        names = [name for name, _ in tree(prof)]
        self.assertNotIn("early", names)
        self.assertIn(("aten::zeros", "late"), tree(prof))
        scope = next(e for e in prof.events() if e.name == "late")
        self.assertEqual(scope.time_range.end, max(e.time_range.end for e in prof.events()))

    def test_2_9_threads(self):
        """Every thread is recorded, and has its own nesting (torch: only the profiling thread)."""
        def run():
            with record_function("theirs"):
                torch.zeros(2)
        with profile(activities=CPU) as prof:
            with record_function("mine"):
                thread = threading.Thread(target=run)
                thread.start()
                thread.join()
        self.assertEqual(dict(tree(prof))["theirs"], None)
        self.assertEqual(dict(tree(prof))["aten::zeros"], "theirs")
        self.assertEqual(len({e.thread for e in prof.events()}), 2)

    def test_2_10_coroutines(self):
        async def one(name, first, second):
            with record_function(name):
                await first.wait()
                torch.ones(2)
                second.set()
                await asyncio.sleep(0)

        async def both():
            a, b = asyncio.Event(), asyncio.Event()
            a.set()
            await asyncio.gather(one("A", a, b), one("B", b, a))
        with profile(activities=CPU) as prof:
            asyncio.run(both())
        self.assertEqual(sorted(name for name, _ in tree(prof) if len(name) == 1), ["A", "B"])
        for event in prof.events():
            self.assertGreaterEqual(event.self_cpu_time_total, 0)

    def test_2_14_names_stay(self):
        with profile(activities=CPU) as prof:
            for name in ("re", "i", "_Z3foov", "aten::add"):
                with record_function(name):
                    pass
        self.assertEqual([e.name for e in prof.events()], ["re", "i", "_Z3foov", "aten::add"])

    def test_2_12_relatives(self):
        x = torch.ones(2, 3)
        with profile(activities=CPU, record_shapes=True) as prof:
            with torch._C._profiler._RecordFunctionFast("fast", [x, 4],
                                                        {"size": 2, "name": "n", "flag": True, "f": 0.5}):
                pass
            handle = torch.autograd._record_function_with_args_enter("args", x, 1.5)
            torch.autograd._record_function_with_args_exit(handle)
        fast, args = prof.events()
        self.assertEqual(fast.input_shapes, [[2, 3], []])
        self.assertEqual(args.input_shapes, [[2, 3], []])
        shown = self.spans(self.trace(prof), name="fast")[0]["args"]
        self.assertEqual((shown["size"], shown["name"], shown["flag"], shown["f"]), (2, "n", True, 0.5))

    def test_spec_metadata(self):
        with profile(activities=CPU) as prof:
            with record_function("with", batch=3, kind="n"):
                pass
        args = self.spans(self.trace(prof), name="with")[0]["args"]
        self.assertEqual((args["batch"], args["kind"]), (3, "n"))


class Annotations(ContractTest):
    """torch-contract 2.13: scopes that the packages themselves record."""

    def test_optimizers(self):
        for kind in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad"):
            net = Net()
            optimizer = getattr(torch.optim, kind)(net.parameters(), lr=0.1)
            with profile(activities=CPU) as prof:
                optimizer.zero_grad()
                net(torch.ones(2, 4)).sum().backward()
                optimizer.step()
            scopes = [e.name for e in prof.events() if e.is_user_annotation]
            self.assertEqual(scopes, [f"Optimizer.zero_grad#{kind}.zero_grad", f"Optimizer.step#{kind}.step"])
            step = next(e for e in prof.events() if e.name == scopes[1])
            self.assertTrue(step.cpu_children)

    def test_loaders(self):
        data = torch.utils.data.TensorDataset(torch.ones(4, 2))
        loader = torch.utils.data.DataLoader(data, batch_size=2)
        with profile(activities=CPU) as prof:
            for _ in loader:
                pass
        names = {e.name for e in prof.events() if e.is_user_annotation}
        self.assertEqual(names, {"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"})

    def test_backward(self):
        x = torch.ones(2, requires_grad=True)
        with profile(activities=CPU) as prof:
            (x * x).sum().backward()
        named = {e.name: e for e in prof.events()}
        for node in ("SumBackward0", "MulBackward0"):
            self.assertEqual(named[node].scope, 1)
            wrapper = named[f"autograd::engine::evaluate_function: {node}"]
            self.assertEqual(wrapper.scope, 0)
            self.assertIs(named[node].cpu_parent, wrapper)
        self.assertIn("torch::autograd::AccumulateGrad", named)

    def test_order_of_a_step(self):
        prof = profiled()
        tops = [e.name for e in prof.events() if e.cpu_parent is None and e.is_user_annotation]
        self.assertEqual(tops, ["forward", "Optimizer.zero_grad#SGD.zero_grad", "Optimizer.step#SGD.step"])


if __name__ == "__main__":
    unittest.main()
