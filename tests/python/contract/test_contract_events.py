# SPDX-License-Identifier: Apache-2.0
"""torch-contract 3: the events of programs that mindtorch_v2 runs.

What other tests have is not repeated: objects, attributes, pickling and lifetimes (test_events), tree
rules on made-up intervals and everything that list has (test_event_list), modules (test_modules).
"""
import collections
import threading
import unittest

from support_contract import ContractTest, profiled, torch
from mindtorch_v2.autograd.profiler_util import EventList, FunctionEvent, Interval
from mindtorch_v2.profiler import DeviceType, ProfilerActivity, profile, record_function

CPU = [ProfilerActivity.CPU]
EVERYTHING = dict(record_shapes=True, profile_memory=True, with_stack=True, with_flops=True,
                  with_modules=True)


def named(prof, name):
    """The events of a name."""
    return [e for e in prof.events() if e.name == name]


class Lists(ContractTest):
    """torch-contract 3.1."""

    def test_3_1_1(self):
        events = profiled().events()
        self.assertIs(type(events), EventList)
        self.assertIsInstance(events, list)
        self.assertEqual(str(events), events.table())
        order = [(e.time_range.start, -e.time_range.end) for e in events]
        self.assertEqual(order, sorted(order))

    def test_3_1_2_contents(self):
        kinds = collections.Counter(e["kind"] for e in profiled(**EVERYTHING).events())
        self.assertEqual(set(kinds), {"op", "scope", "memory"})

    def test_3_1_3_not_observed(self):
        x = torch.ones(2, requires_grad=True)
        with profile(activities=CPU) as prof:
            x.size(), x.shape, x.is_leaf, x._version, x.dim(), x.numel(), x.is_contiguous(), x.stride()
        with self.assertWarns(UserWarning):
            self.assertEqual(list(prof.events()), [])

    def test_3_1_4_once(self):
        prof = profiled()
        self.assertIs(prof.events(), prof.events())


class Attributes(ContractTest):
    """torch-contract 3.2."""

    def test_values_of_an_op(self):
        x = torch.ones(2, 3)
        with profile(activities=CPU, **EVERYTHING) as prof:
            torch.add(x, x, alpha=2)
        event = prof.events()[0]
        expected = {
            "name": "aten::add", "key": "aten::add", "trace_name": "aten::add", "overload_name": "",
            "node_id": -1, "is_remote": False, "thread": 1, "fwd_thread": 0, "kernels": [], "count": 1,
            "cpu_children": [], "cpu_parent": None, "input_shapes": [[2, 3], [2, 3], []],
            "concrete_inputs": [None, None, 2], "kwinputs": {}, "scope": 0, "use_device": None,
            "cpu_memory_usage": 24, "device_memory_usage": 0, "is_async": False,
            "device_type": DeviceType.CPU, "is_legacy": False, "flops": 6, "is_user_annotation": False,
            "self_cpu_percent": -1, "total_cpu_percent": -1, "total_device_percent": -1,
            "activity_type": "cpu_op", "is_python_function": False, "python_id": -1,
            "python_parent_id": -1, "python_module_id": -1, "flow_id": 0, "extra_meta": None,
            "structured_input_shapes": [[2, 3], [2, 3], []], "input_dtypes": ["float", "float", "Scalar"]}
        for name, value in expected.items():
            self.assertEqual(getattr(event, name), value, name)
        self.assertIsInstance(event.time_range, Interval)
        self.assertAlmostEqual(event.time_range.elapsed_us(), event.cpu_time_total, places=6)
        self.assertGreaterEqual(event.time_range.start, 0)  # relative to the trace's start
        self.assertLess(event.time_range.start, 60e6)
        import os
        self.assertEqual(event.device_index, os.getpid())
        self.assertEqual(event.device_resource_id, threading.get_native_id())

    def test_keyword_names(self):
        """kw inputs (torch: of fast scopes) are a dict; concrete inputs keep Python's types."""
        with profile(activities=CPU, record_shapes=True) as prof:
            torch.ones(2, 2).reshape(4).sum(0, True)
            torch.full((2,), 0.5)
        event = named(prof, "aten::sum")[0]
        self.assertEqual(event.concrete_inputs, [None, [0], True, None])
        self.assertEqual(named(prof, "aten::reshape")[0].concrete_inputs, [None, [4]])
        self.assertEqual(named(prof, "aten::full")[0].concrete_inputs[:2], [[2], 0.5])

    def test_long_lists_are_left_out(self):
        """concrete_inputs: scalar lists up to thirty items."""
        with profile(activities=CPU, record_shapes=True) as prof:
            torch.ones(30).split_with_sizes([1] * 30)
            torch.ones(31).split_with_sizes([1] * 31)
        self.assertEqual([e.concrete_inputs[1] for e in named(prof, "aten::split_with_sizes")],
                         [[1] * 30, None])

    def test_ids(self):
        first, second = profiled(), profiled()
        ids = [e.id for prof in (first, second) for e in prof.events()]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual(ids, sorted(ids))

    def test_threads_are_small_numbers(self):
        def run():
            torch.zeros(2)
        with profile(activities=CPU) as prof:
            torch.ones(2)
            for _ in range(3):
                thread = threading.Thread(target=run)
                thread.start()
                thread.join()
        self.assertEqual({e.thread for e in prof.events()}, {1, 2, 3, 4})
        self.assertEqual(named(prof, "aten::ones")[0].thread, 1)

    def test_3_2_1_methods(self):
        event = profiled().events()[0]
        for call in (lambda: event.append_cpu_child("x"), lambda: event.set_cpu_parent("x")):
            self.assertRaises(AssertionError, call)
        device = FunctionEvent(id=1, name="k", thread=0, start_us=0, end_us=1, device_type=DeviceType.CUDA)
        self.assertRaises(AssertionError, device.append_kernel, "k", 0, 1)
        self.assertRaises(AssertionError, event.append_cpu_child, device)
        self.assertRaises(AssertionError, event.set_cpu_parent, device)

    def test_3_2_3_repr(self):
        x = torch.ones(2)
        with profile(activities=CPU) as prof:
            x + x
        self.assertRegex(repr(prof.events()[0]),
                         r"^<FunctionEvent id=\d+ name=aten::add overload_name= "
                         r"device_type=DeviceType\.CPU node_id=-1 "
                         r"cpu_time=[\d.]+us start_us=[\d.]+ end_us=[\d.]+ "
                         r"cpu_children=\[\] None_time=0\.000us "
                         r"name=aten::add thread=1 input_shapes=\[\] cpu_memory_usage=0 None_memory_usage=0 "
                         r"is_async=False is_remote=False seq_nr=-?\d+ is_legacy=False>$")


class Trees(ContractTest):
    """torch-contract 3.3, 3.4, and invariants of our own."""

    def test_family(self):
        prof = profiled()
        for event in prof.events():
            for child in event.cpu_children:
                self.assertIs(child.cpu_parent, event)
                self.assertLessEqual(event.time_range.start, child.time_range.start)
                self.assertLessEqual(child.time_range.end, event.time_range.end)
                self.assertEqual(child.thread, event.thread)
            if event.cpu_parent is not None:
                self.assertEqual(sum(c is event for c in event.cpu_parent.cpu_children), 1)

    def test_time_invariants(self):
        def run():
            for _ in range(20):
                with record_function("theirs"):
                    torch.ones(2).sum()
        with profile(activities=CPU) as prof:
            threads = [threading.Thread(target=run) for _ in range(3)]
            for thread in threads:
                thread.start()
            run()
            for thread in threads:
                thread.join()
        totals, selves = collections.Counter(), collections.Counter()
        for event in prof.events():
            self.assertGreaterEqual(event.self_cpu_time_total, 0)
            self.assertLessEqual(event.self_cpu_time_total, event.cpu_time_total)
            selves[event.thread] += event.self_cpu_time_total
            totals[event.thread] += event.cpu_time_total if event.cpu_parent is None else 0
        self.assertEqual(set(totals), {1, 2, 3, 4})
        for thread, total in totals.items():
            self.assertAlmostEqual(selves[thread], total, places=2)
        self.assertEqual([e.device_time_total for e in prof.events() if e.device_time_total], [])

    def test_3_3_4_collapse(self):
        """torch's sum() and mean() have a child of their own name at times; ours shows one of it, too."""
        with profile(activities=CPU) as prof:
            with record_function("same"):
                with record_function("same"):
                    torch.ones(2)
        self.assertEqual([(e.name, e.cpu_parent) for e in prof.events()][0], ("same", None))
        self.assertEqual(len(named(prof, "same")), 1)
        self.assertIs(named(prof, "aten::ones")[0].cpu_parent, named(prof, "same")[0])


class Backward(ContractTest):
    """torch-contract 3.5."""

    def test_sequence_numbers(self):
        x = torch.ones(2, 2, requires_grad=True)
        with profile(activities=CPU) as prof:
            (x * 2).relu().sum().backward()
        for forward, node in (("aten::mul", "MulBackward0"), ("aten::relu", "ReluBackward0"),
                              ("aten::sum", "SumBackward0")):
            before, after = named(prof, forward)[0], named(prof, node)[0]
            wrapper = named(prof, f"autograd::engine::evaluate_function: {node}")[0]
            self.assertGreaterEqual(before.sequence_nr, 0)
            self.assertEqual((before.sequence_nr, before.fwd_thread), (after.sequence_nr, 0))
            self.assertEqual((after.fwd_thread, after.scope), (before.thread, 1))
            self.assertEqual((wrapper.sequence_nr, wrapper.fwd_thread), (after.sequence_nr, after.fwd_thread))
            self.assertEqual((before.flow_id, before.flow_type, before.flow_start), (after.flow_id, 1, True))
            self.assertIs(after.flow_start, False)
        grad = named(prof, "torch::autograd::AccumulateGrad")[0]
        self.assertEqual((grad.sequence_nr, grad.fwd_thread), (-1, 0))

    def test_without_gradients(self):
        x = torch.ones(2, requires_grad=True)
        with profile(activities=CPU) as prof:
            with torch.no_grad():
                x * 2
        self.assertEqual(named(prof, "aten::mul")[0].sequence_nr, -1)

    def test_3_5_2_forward_thread(self):
        x = torch.ones(2, requires_grad=True)
        made = []
        with profile(activities=CPU) as prof:
            torch.zeros(1)
            thread = threading.Thread(target=lambda: made.append((x * 2).sum()))
            thread.start()
            thread.join()
            made[0].backward()
        forward, node = named(prof, "aten::mul")[0], named(prof, "MulBackward0")[0]
        self.assertEqual((forward.thread, node.thread, node.fwd_thread), (2, 1, 2))

    def test_3_5_3_stacks(self):
        x = torch.ones(2, requires_grad=True)

        def forward_here():
            return (x * x).sum()
        with profile(activities=CPU, with_stack=True) as prof:
            forward_here().backward()
        forward, node = named(prof, "aten::mul")[0], named(prof, "MulBackward0")[0]
        self.assertEqual(node.stack, forward.stack)
        self.assertIn("forward_here", node.stack[0])
        self.assertEqual([c.stack for c in node.cpu_children], [forward.stack] * len(node.cpu_children))


class Memory(ContractTest):
    """torch-contract 3.6."""

    def test_3_6_1_and_3_6_5(self):
        with profile(activities=CPU, profile_memory=True) as prof:
            with record_function("scope"):
                x = torch.ones(256)
                x + x
        scope, made = named(prof, "scope")[0], named(prof, "aten::add")[0]
        self.assertEqual(made.cpu_memory_usage, 1024)
        self.assertEqual(scope.cpu_memory_usage, 1024)  # the sum was let go inside
        self.assertEqual(scope.self_cpu_memory_usage,
                         scope.cpu_memory_usage - sum(c.cpu_memory_usage for c in scope.cpu_children))
        del x

    def test_3_6_3_outside(self):
        x = torch.ones(256)
        with profile(activities=CPU, profile_memory=True) as prof:
            del x
        event = prof.events()[0]
        self.assertEqual((event.name, event.cpu_memory_usage, event.scope, event.trace_name, event.flops,
                          event.cpu_parent),
                         ("[memory]", -1024, 0, None, None, None))
        self.assertEqual(event.time_range.elapsed_us(), 0)

    def test_3_6_3_ids_are_above(self):
        with profile(activities=CPU, profile_memory=True) as prof:
            torch.ones(4)
        memory = [e.id for e in prof.events() if e.name == "[memory]"]
        self.assertTrue(memory)
        self.assertGreater(min(memory), max(e.id for e in prof.events() if e.name != "[memory]"))

    def test_spec_own_thread(self):
        """An allocation belongs to the scopes open on its own thread (torch: to all)."""
        kept = []
        with profile(activities=CPU, profile_memory=True) as prof:
            with record_function("mine"):
                thread = threading.Thread(target=lambda: kept.append(torch.ones(256)))
                thread.start()
                thread.join()
        self.assertEqual(named(prof, "mine")[0].cpu_memory_usage, 0)
        self.assertEqual(named(prof, "aten::ones")[0].cpu_memory_usage, 1024)

    def test_spec_counters(self):
        """Before and after are the allocator's own figures: they follow one another."""
        x = torch.ones(256)
        with profile(activities=CPU, profile_memory=True) as prof:
            y = x + x
            z = y + y
        first, second = named(prof, "aten::add")
        self.assertEqual(first["cpu_memory_allocated_after"], second["cpu_memory_allocated_before"])
        self.assertGreaterEqual(first["cpu_memory_allocated_before"], 1024)
        del z


class Flops(ContractTest):
    """torch-contract 3.7: goldens."""

    def flops(self, call):
        with profile(activities=CPU, with_flops=True, record_shapes=True) as prof:
            call()
        return {name: sum(e.flops or 0 for e in named(prof, name)) for name in {e.name for e in prof.events()}
                if any(e.flops for e in named(prof, name))}

    def test_goldens(self):
        ones = torch.ones
        self.assertEqual(self.flops(lambda: ones(4, 4) + ones(4, 4)), {"aten::add": 16})
        self.assertEqual(self.flops(lambda: ones(4, 4) * ones(1, 4)), {"aten::mul": 16})
        self.assertEqual(self.flops(lambda: ones(1, 4) * ones(4, 4)),
                         {"aten::mul": 4})  # broadcast is ignored
        self.assertEqual(self.flops(lambda: torch.mm(ones(2, 3), ones(3, 5))), {"aten::mm": 60})
        self.assertEqual(self.flops(lambda: torch.addmm(ones(5), ones(2, 3), ones(3, 5))),
                         {"aten::addmm": 60})
        self.assertEqual(self.flops(lambda: torch.bmm(ones(7, 2, 3), ones(7, 3, 5))), {"aten::bmm": 420})
        self.assertEqual(self.flops(lambda: torch.baddbmm(ones(7, 2, 5), ones(7, 2, 3), ones(7, 3, 5))),
                         {"aten::baddbmm": 420})
        self.assertEqual(self.flops(lambda: torch.mm(ones(2, 0), ones(0, 5))), {})  # 3.7.1
        self.assertEqual(self.flops(lambda: torch.bmm(ones(0, 2, 3), ones(0, 3, 5))), {})

    def test_linear(self):
        layer, x = torch.nn.Linear(4, 2), torch.ones(4, 4)
        self.assertEqual(self.flops(lambda: layer(x)), {"aten::addmm": 64})
        self.assertEqual(self.flops(lambda: layer(x).sum().backward()), {"aten::addmm": 64, "aten::mm": 64})

    def test_conv2d(self):
        x, weight = torch.ones(40, 16, 18, 260), torch.ones(33, 16, 18, 18)
        with torch.no_grad():
            found = self.flops(lambda: torch.nn.functional.conv2d(x, weight, stride=(2, 1), padding=(0, 0)))
        self.assertEqual(found["aten::conv2d"], 3325639680)

    def test_conv2d_groups(self):
        x, weight = torch.ones(2, 4, 8, 8), torch.ones(6, 2, 3, 3)
        found = self.flops(lambda: torch.nn.functional.conv2d(x, weight, stride=2, padding=1, dilation=1,
                                                              groups=2))
        self.assertEqual(found["aten::conv2d"], 2 * 2 * 4 * 4 * 3 * 3 * 4 * 6 // 2)


if __name__ == "__main__":
    unittest.main()
