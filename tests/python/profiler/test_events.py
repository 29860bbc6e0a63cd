# SPDX-License-Identifier: Apache-2.0
"""FunctionEvent: torch's attributes, MindTorch's mapping, identity, lifetimes, pickling."""
import copy
import gc
import json
import os
import pickle
import subprocess
import sys
import unittest
import weakref

from support_asan import UNDER_ASAN
from support_results import ResultsTest, environment, record, small_trace, span, warnings_of

import mtprof
from mtprof.enums import DeviceType
from mtprof.events import FormattedTimesMixin, FunctionEvent, Interval, Kernel

# As torch 2.13 lists them; the order is the constructor's.
TORCH_ARGUMENTS = (
    "id name thread start_us end_us overload_name fwd_thread input_shapes stack scope use_device cpu_memory_usage "
    "device_memory_usage is_async is_remote sequence_nr node_id device_type device_index device_resource_id is_legacy "
    "flops trace_name concrete_inputs kwinputs is_user_annotation is_python_function activity_type metadata_json "
    "flow_id flow_type flow_start external_id linked_correlation_id extra_meta structured_input_shapes "
    "structured_input_strides input_dtypes python_id python_parent_id python_module_id").split()
TORCH_NAMES = (
    "append_cpu_child append_kernel cpu_time cpu_time_str cpu_time_total cpu_time_total_str device_time "
    "device_time_str device_time_total device_time_total_str key self_cpu_memory_usage self_cpu_time_total "
    "self_cpu_time_total_str self_device_memory_usage self_device_time_total self_device_time_total_str set_cpu_parent "
    "time_range kernels count cpu_children cpu_parent event_metadata self_cpu_percent total_cpu_percent "
    "total_device_percent").split()


class Attributes(ResultsTest):
    def setUp(self):
        super().setUp()
        self.trace = self.load()
        self.events = self.trace.events()

    def test_every_name_of_torch_is_there(self):
        for event in self.events:
            for name in TORCH_NAMES + TORCH_ARGUMENTS[5:]:
                if name != "metadata_json":
                    getattr(event, name)

    def test_an_op(self):
        op = self.named(self.events, "aten::addmm")
        self.assertEqual((op.id, op.key, op.trace_name, op.overload_name),
                         (4, "aten::addmm", "aten::addmm", ""))
        self.assertEqual((op.thread, op.fwd_thread, op.sequence_nr, op.node_id, op.count), (1, 0, 5, -1, 1))
        self.assertEqual((op.time_range.start, op.time_range.end, op.time_range.elapsed_us()),
                         (40.0, 240.0, 200.0))
        self.assertEqual((op.cpu_time_total, op.self_cpu_time_total, op.cpu_time), (200.0, 180.0, 200.0))
        self.assertEqual((op.device_time_total, op.self_device_time_total, op.device_time),
                         (50.0, 50.0, 50.0))
        self.assertEqual(op.kernels, [Kernel("gemm", 0, 50.0)])
        self.assertEqual(op.input_shapes, [[2, 3], [3, 4], []])
        self.assertEqual(op.structured_input_strides, [[3, 1], [4, 1], []])
        self.assertEqual(op.input_dtypes, ["float", "float", "Scalar"])
        self.assertEqual(op.concrete_inputs, [None, None, 1])
        self.assertEqual(op.kwinputs, {})
        self.assertEqual(op.stack, ["model.py(20): forward", "main.py(10): train", "main.py(3): <module>"])
        self.assertEqual((op.scope, op.is_user_annotation, op.activity_type, op.flops),
                         (0, False, "cpu_op", 0))
        self.assertEqual((op.use_device, op.device_type, op.device_index, op.device_resource_id),
                         ("cuda", DeviceType.CPU, 70, 71))
        self.assertEqual((op.cpu_memory_usage, op.self_cpu_memory_usage), (512, 512))
        self.assertEqual((op.is_async, op.is_remote, op.is_legacy), (False, False, False))
        self.assertEqual((op.external_id, op.linked_correlation_id), (4, 0))
        self.assertEqual((op.flow_id, op.flow_type, op.flow_start), (1, 1, True))

    def test_device_work(self):
        kernel = self.named(self.events, "gemm")
        self.assertEqual((kernel.device_type, kernel.device_index, kernel.device_resource_id),
                         (DeviceType.CUDA, 0, 7))
        self.assertEqual((kernel.cpu_time_total, kernel.self_cpu_time_total), (0.0, 0.0))
        self.assertEqual((kernel.device_time_total, kernel.self_device_time_total), (50.0, 50.0))
        self.assertEqual((kernel.thread, kernel.cpu_parent, kernel.linked_correlation_id), (1, None, 4))
        self.assertEqual((kernel.flow_id, kernel.flow_type, kernel.flow_start), (900, 2, False))
        call = self.named(self.events, "cudaLaunchKernel")
        self.assertEqual((call.device_type, call.activity_type), (DeviceType.CPU, "cuda_runtime"))
        self.assertEqual((call.flow_id, call.flow_type, call.flow_start), (900, 2, True))

    def test_steps_share_a_name(self):
        step = self.events[0]
        self.assertEqual((step.name, step.trace_name, step.step), ("ProfilerStep*", "ProfilerStep#4", 4))
        self.assertEqual((step.scope, step.is_user_annotation), (7, True))

    def test_backward_names_its_forward_thread(self):
        backward = self.named(self.events, "AddmmBackward0")
        self.assertEqual((backward.thread, backward.fwd_thread, backward.sequence_nr), (2, 1, 5))
        self.assertEqual((backward.flow_id, backward.flow_type, backward.flow_start), (1, 1, False))

    def test_memory_outside_events_has_an_event(self):
        trace = small_trace()
        trace["traceEvents"][-1]["ts"] = 5000.0
        event = self.named(self.load(trace).events(), "[memory]")
        self.assertEqual((event.cpu_memory_usage, event.trace_name, event.flops, event.concrete_inputs),
                         (-512, None, None, None))
        self.assertEqual((event.fwd_thread, event.device_resource_id), (event.thread, event.thread))
        self.assertNotIn("correlation_id", event)

    def test_repr_is_torchs(self):
        self.assertEqual(repr(self.named(self.events, "aten::addmm")),
                         "<FunctionEvent id=4 name=aten::addmm overload_name= device_type=DeviceType.CPU node_id=-1 "
                         "cpu_time=200.000us start_us=40.0 end_us=240.0 cpu_children=[900] cuda_time=50.000us "
                         "name=aten::addmm thread=1 input_shapes=[[2, 3], [3, 4], []] cpu_memory_usage=512 "
                         "cuda_memory_usage=0 is_async=False is_remote=False seq_nr=5 is_legacy=False>")

    def test_deprecated_names_warn(self):
        event = self.named(self.events, "aten::addmm")
        for old, new in (("cuda_time", "device_time"), ("cuda_time_total", "device_time_total"),
                         ("self_cuda_time_total", "self_device_time_total"),
                         ("self_cuda_memory_usage", "self_device_memory_usage")):
            with warnings_of(FutureWarning) as caught:
                self.assertEqual(getattr(event, old), getattr(event, new))
            self.assertIn(f"`{old}` is deprecated", str(caught[0].message))
            self.assertEqual(caught[0].filename, __file__)
        with warnings_of(FutureWarning) as caught:
            self.assertEqual(event.npu_time_total, 50.0)
            self.assertEqual(event.self_npu_memory_usage, 0)
        self.assertEqual(caught, [])

    def test_texts(self):
        event = self.named(self.events, "aten::addmm")
        self.assertIsInstance(event, FormattedTimesMixin)
        self.assertEqual(event.cpu_time_str, "200.000us")
        event.time_range = Interval(0, 2.5e6)
        self.assertEqual((event.cpu_time_total_str, event.cpu_time_str), ("2.500s", "2.500s"))
        event.time_range = Interval(0, 1500)
        self.assertEqual(event.cpu_time_total_str, "1.500ms")

    def test_names_are_one_object(self):
        relus = [event for event in self.events if event.name == "aten::relu"]
        self.assertEqual(len(relus), 2)
        self.assertIs(relus[0].name, relus[1].name)

    def test_names_of_any_bytes(self):
        trace = small_trace()
        trace["traceEvents"] = [span('a"b\\\n\u2028\ud83d\ude00', 0, 1), span("", 5, 1)]
        self.assertEqual([event.name for event in self.load(trace).events()], ['a"b\\\n\u2028\U0001F600', ""])

    def test_lists_of_tensors_and_keywords(self):
        trace = small_trace()
        trace["traceEvents"] = [span("aten::cat", 0, 5, **{
            "External id": 1, "Input Dims": [[[3], [3]], [], [], []],
            "Input Strides": [[[1], [1]], [], [], []],
            "Input type": ["TensorList", "Scalar", "ScalarList", ""],
            "Concrete Inputs": ["", "0", "[2, 4]", ""]})]
        event = self.load(trace).events()[0]
        self.assertEqual(event.input_shapes, [[], [], [], []])
        self.assertEqual(event.structured_input_shapes, [[[3], [3]], [], [], []])
        self.assertEqual(event.structured_input_strides, [[[1], [1]], [], [], []])
        self.assertEqual(event.concrete_inputs, [None, 0, [2, 4], None])
        self.assertEqual(event.input_dtypes, ["TensorList", "Scalar", "ScalarList", ""])


class Recorded(unittest.TestCase):
    def test_what_an_annotation_was_given(self):
        with mtprof.profile(activities=[mtprof.ProfilerActivity.CPU], record_shapes=True) as prof:
            with mtprof.record_function("with args", "some text"):
                pass
            with mtprof.record_function("with metadata", number=5, half=0.5, on=True, text="t"):
                pass
        given, noted = prof.events()
        self.assertEqual((given.input_shapes, given.concrete_inputs, given.extra_meta),
                         ([[]], ["some text"], None))
        self.assertEqual(noted.extra_meta, {"number": 5, "half": 0.5, "on": True, "text": "t"})
        self.assertEqual((given.scope, given.is_user_annotation, given.activity_type),
                         (7, True, "user_annotation"))
        with warnings_of(FutureWarning):
            self.assertEqual(json.loads("{" + noted.metadata_json + "}"), noted.extra_meta)

    def test_threads_have_numbers_and_names(self):
        import threading

        def work():
            with mtprof.record_function("elsewhere"):
                pass

        with mtprof.profile(activities=[mtprof.ProfilerActivity.CPU]) as prof:
            with mtprof.record_function("here"):
                pass
            thread = threading.Thread(target=work)
            thread.start()
            ident = thread.ident
            thread.join()
        here, elsewhere = prof.events()
        self.assertNotEqual(here.thread, elsewhere.thread)
        self.assertEqual((here["thread_id"], elsewhere["thread_id"]), (threading.get_ident(), ident))
        self.assertEqual((here.device_index, here.device_resource_id),
                         (os.getpid(), threading.get_native_id()))

    def test_times_are_the_programs(self):
        import time
        before = time.perf_counter_ns()
        prof = record(1)
        after = time.perf_counter_ns()
        for event in prof.events():
            self.assertLessEqual(before, event["start_ns"])
            self.assertLessEqual(event["start_ns"], event["end_ns"])
            self.assertLessEqual(event["end_ns"], after)


class Tree(ResultsTest):
    def test_an_event_is_made_once(self):
        events = self.load().events()
        linear, addmm = self.named(events, "aten::linear"), self.named(events, "aten::addmm")
        self.assertIs(addmm.cpu_parent, linear)
        self.assertIs(linear.cpu_children[0], addmm)
        self.assertIs(linear.cpu_parent.cpu_parent, events[0])
        self.assertIsNone(events[0].cpu_parent)
        for event in events:
            for child in event.cpu_children:
                self.assertIs(child.cpu_parent, event)

    def test_a_relative_outlives_the_list(self):
        linear = self.named(self.load().events(), "aten::linear")
        gc.collect()
        addmm = linear.cpu_children[0]
        self.assertEqual(addmm.name, "aten::addmm")
        self.assertIs(addmm.cpu_parent, linear)
        self.assertIs(linear.cpu_children[0], addmm)

    def test_times_add_up(self):
        for event in record(50).events():
            inside = sum(child.cpu_time_total for child in event.cpu_children)
            self.assertAlmostEqual(event.self_cpu_time_total, event.cpu_time_total - inside, places=3)
            self.assertGreaterEqual(event.self_cpu_time_total, 0)


class Writing(ResultsTest):
    def setUp(self):
        super().setUp()
        self.events = self.load().events()
        self.op = self.named(self.events, "aten::addmm")

    def test_attributes_can_be_set_and_go_back(self):
        self.op.name = "mine"
        self.op.anything = [1]
        self.assertEqual((self.op.name, self.op.key, self.op.anything), ("mine", "mine", [1]))
        del self.op.name
        self.assertEqual(self.op.name, "aten::addmm")
        with self.assertRaises(AttributeError):
            del self.op.name
        del self.op.anything
        with self.assertRaises(AttributeError):
            self.op.anything

    def test_computed_ones_cannot(self):
        for name in ("key", "cpu_time_total", "self_cpu_time_total", "device_time_total",
                     "self_cpu_memory_usage"):
            with self.assertRaisesRegex(AttributeError,
                                        f"property '{name}' of 'FunctionEvent' object has no setter"):
                setattr(self.op, name, 1)

    def test_computed_ones_follow(self):
        self.op.time_range = Interval(0, 1000)
        self.assertEqual((self.op.cpu_time_total, self.op.self_cpu_time_total), (1000, 980.0))
        self.op.cpu_children = []
        self.assertEqual(self.op.self_cpu_time_total, 1000)
        self.op.append_kernel("extra", 0, 7.0)
        self.assertEqual((self.op.device_time_total, len(self.op.kernels)), (57.0, 2))
        self.op.is_async = True
        self.assertEqual((self.op.device_time_total, self.op.self_cpu_time_total), (0, 0))

    def test_what_is_set_stays_with_the_event(self):
        self.op.name = "mine"
        self.assertEqual(self.events[self.events.index(self.op)].name, "mine")
        self.assertEqual(self.op.cpu_parent.cpu_children[0].name, "mine")

    def test_cycles_are_collected(self):
        class Mark:
            pass

        mark = Mark()
        alive = weakref.ref(mark)
        event = weakref.ref(self.op)
        self.op.me, self.op.mark = self.op, mark
        self.op.others = self.events
        del mark
        self.op = self.events = None
        gc.collect()
        self.assertIsNone(alive())
        self.assertIsNone(event())

    def test_events_are_not_tracked_until_written_to(self):
        untouched = self.named(self.events, "gemm")
        self.assertFalse(gc.is_tracked(untouched))
        self.assertFalse(gc.is_tracked(self.op))
        self.op.x = 1
        self.assertTrue(gc.is_tracked(self.op))

    def test_the_dictionary(self):
        self.assertEqual(vars(self.op), {})
        self.op.x = 1
        self.assertEqual(vars(self.op), {"x": 1})
        self.op.__dict__["name"] = "by dict"
        self.assertEqual(self.op.name, "by dict")

    def test_weak_references_and_slots_used_again(self):
        prof = record(1000)  # enough for events in one piece of memory
        events = prof.events()
        seen = []
        reference = weakref.ref(events[7], seen.append)
        index = events[7]._index
        del events[7]
        self.assertEqual(len(seen), 1)
        self.assertIsNone(reference())
        again = events[0]._model.event(index)
        self.assertEqual(again.name, events[6].name if index % 4 not in (0, 3) else again.name)
        self.assertIs(events[0]._model.event(index), again)


class Mapping(ResultsTest):
    def setUp(self):
        super().setUp()
        self.events = self.load().events()

    def test_keys_of_an_op(self):
        op = self.named(self.events, "aten::addmm")
        self.assertEqual(list(op.keys()),
                         ["name", "kind", "device_type", "start_ns", "end_ns", "duration_ns", "step",
                                           "thread_id", "correlation_id", "runtime_name", "runtime_tid",
                                           "input_shapes", "stack"])
        self.assertEqual(op["kind"], "op")
        self.assertEqual((op["device_type"], type(op["device_type"])), ("CPU", str))
        self.assertEqual(op["duration_ns"], op["end_ns"] - op["start_ns"])
        self.assertEqual((op["correlation_id"], op["runtime_name"], op["runtime_tid"]),
                         (4, "dispatch_kernel", 71))
        self.assertEqual(dict(op), op.to_dict())
        self.assertEqual(dict(op.items()), op.to_dict())
        self.assertEqual(list(op.values())[0], "aten::addmm")

    def test_keys_of_others(self):
        scope = self.named(self.events, "forward")
        self.assertEqual(scope["kind"], "scope")
        self.assertNotIn("correlation_id", scope)
        self.assertNotIn("input_shapes", scope)
        self.assertIn("stack", scope)
        self.assertEqual(self.named(self.events, "gemm")["kind"], "kernel")
        self.assertEqual(self.named(self.events, "gemm")["device_type"], "CUDA")

    def test_keys_are_absent_when_flags_are_off(self):
        trace = small_trace()
        for flag in ("with_stack", "record_shapes", "profile_memory"):
            del trace[flag]
        for event in trace["traceEvents"]:
            for key in ("Call stack", "Input Dims", "Input Strides", "Input type", "Concrete Inputs"):
                event["args"].pop(key, None)
        op = self.named(self.load(trace).events(), "aten::addmm")
        for key in ("stack", "input_shapes", "cpu_memory_allocated_before", "npu_memory_allocated_delta"):
            self.assertNotIn(key, op)
        self.assertEqual((op.stack, op.input_shapes), ([], []))

    def test_missing_keys(self):
        op = self.events[3]
        with self.assertRaises(KeyError) as caught:
            op["nothing"]
        self.assertEqual(caught.exception.args, ("nothing",))
        with self.assertRaises(KeyError):
            op[1]
        self.assertNotIn(1, op)
        self.assertEqual((op.get("nothing"), op.get("nothing", 5), op.get("kind")), (None, 5, "op"))

    def test_it_is_read_only_true_and_itself(self):
        op = self.events[3]
        with self.assertRaises(TypeError):
            op["name"] = "x"
        with self.assertRaises(TypeError):
            del op["name"]
        with self.assertRaises(TypeError):
            iter(op)
        with self.assertRaises(TypeError):
            len(op)
        self.assertTrue(op)
        self.assertNotEqual(op, self.events[4])
        self.assertEqual(op, op)
        self.assertEqual(len({op, op, self.events[4]}), 2)


class ByHand(unittest.TestCase):
    def test_the_constructor(self):
        event = FunctionEvent(1, "a", 2, 1.0, 5.0)
        self.assertEqual((event.id, event.name, event.thread, event.device_resource_id), (1, "a", 2, 2))
        self.assertEqual((event.time_range.start, event.time_range.end), (1.0, 5.0))
        self.assertEqual((event.cpu_time_total, event.self_cpu_time_total, event.cpu_time_str),
                         (4.0, 4.0, "4.000us"))
        self.assertEqual((event.overload_name, event.trace_name, event.flops, event.stack),
                         (None, None, None, None))
        self.assertEqual((event.sequence_nr, event.node_id, event.scope, event.count), (-1, -1, 0, 1))
        self.assertIn("name=a", repr(event))
        with self.assertRaises(TypeError):
            FunctionEvent(1)
        with self.assertRaises(TypeError):
            FunctionEvent(1, "a", 0, 0, 1, nothing=1)

    def test_arguments_stand_in_torchs_order(self):
        values = list(range(len(TORCH_ARGUMENTS)))
        event = FunctionEvent(*values)
        for name, value in zip(TORCH_ARGUMENTS, values):
            if name not in ("start_us", "end_us", "metadata_json"):
                self.assertEqual(getattr(event, name), value, name)

    def test_family_and_kernels(self):
        parent, child = FunctionEvent(1, "a", 0, 0, 10, use_device="cuda"), FunctionEvent(2, "b", 0, 2, 5,
                                                                                          use_device="cuda")
        parent.append_cpu_child(child)
        child.set_cpu_parent(parent)
        child.append_kernel("k", 0, 7.0)
        self.assertEqual((parent.self_cpu_time_total, parent.device_time_total,
                          parent.self_device_time_total), (7, 7.0, 0))
        self.assertIs(parent.cpu_children[0].cpu_parent, parent)
        parent.is_legacy = True
        parent.append_kernel("q", 0, 1.0)
        self.assertEqual((parent.device_time_total, parent.self_device_time_total), (1.0, -6.0))

    def test_device_events(self):
        event = FunctionEvent(3, "k", 0, 1, 5, device_type=DeviceType.CUDA, use_device="cuda")
        self.assertEqual((event.device_time_total, event.cpu_time_total, event.self_cpu_time_total),
                         (4, 0, 0))
        host = FunctionEvent(4, "h", 0, 1, 5)
        for call, text in ((lambda: event.append_kernel("a", 0, 1), "Expected device_type to be CPU"),
                           (lambda: event.append_cpu_child(host), "Expected device_type to be CPU"),
                           (lambda: host.append_cpu_child(event), "Expected child device_type to be CPU"),
                           (lambda: host.append_cpu_child(3), "Expected child to be a FunctionEvent"),
                           (lambda: host.set_cpu_parent(3), "Expected parent to be a FunctionEvent"),
                           (lambda: host.set_cpu_parent(event), "Expected parent device_type to be CPU")):
            with self.assertRaises(AssertionError) as caught:
                call()
            self.assertEqual(str(caught.exception), text)

    def test_the_mapping(self):
        event = FunctionEvent(5, "a", 3, 1.5, 4.0)
        self.assertEqual(event["duration_ns"], 2500)
        self.assertEqual((event["kind"], event["correlation_id"], event["device_type"]), ("op", 5, "CPU"))
        self.assertNotIn("stack", event)

    def test_subclasses(self):
        class Mine(FunctionEvent):
            def __init__(self):
                super().__init__(1, "mine", 0, 0, 1)
                self.own = 5

        event = Mine()
        self.assertEqual((event.own, event.name), (5, "mine"))
        self.assertEqual(copy.copy(event).own, 5)
        self.assertIs(type(copy.copy(event)), Mine)

    def test_an_event_without_init_has_nothing(self):
        event = FunctionEvent.__new__(FunctionEvent)
        with self.assertRaises(AttributeError):
            event.name
        with self.assertRaises(AttributeError):
            event.flow_id

    def test_cycles_of_events_are_collected(self):
        parent, child = FunctionEvent(1, "a", 0, 0, 10), FunctionEvent(2, "b", 0, 2, 5)
        parent.append_cpu_child(child)
        child.set_cpu_parent(parent)
        alive = weakref.ref(parent)
        del parent, child
        gc.collect()
        self.assertIsNone(alive())


class Pickling(ResultsTest):
    def test_an_event_becomes_one_made_by_hand(self):
        events = self.load().events()
        event = self.named(events, "aten::addmm")
        event.extra = "mine"
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            other = pickle.loads(pickle.dumps(event, protocol))
            self.assertIsNone(other._model)
            for name in TORCH_NAMES + TORCH_ARGUMENTS + ["extra"]:
                if name in ("start_us", "end_us", "metadata_json", "time_range", "cpu_children",
                            "cpu_parent") \
                        or callable(getattr(event, name)):
                    continue
                self.assertEqual(getattr(other, name), getattr(event, name), name)
            self.assertEqual(other.cpu_parent.name, "aten::linear")
            self.assertIs(other.cpu_parent.cpu_children[0], other)
            self.assertEqual(repr(other), repr(event))

    def test_copies(self):
        event = self.load().events()[3]
        other = copy.deepcopy(event)
        self.assertIsNot(other, event)
        self.assertEqual(repr(other), repr(event))


class Lifetimes(ResultsTest):
    def test_reference_counts(self):
        events = record(20).events()
        event = events[5]
        model = event._model
        before = sys.getrefcount(event), sys.getrefcount(model)
        for _ in range(100):
            event.name, event.cpu_parent, event.cpu_children, event.stack, event.to_dict(), repr(event)
            event["name"], event.time_range, event.kernels, event.device_type, event.flow_id
            event.get("nothing")
        self.assertEqual((sys.getrefcount(event), sys.getrefcount(model)), before)

    def test_events_outlive_the_next_window_and_the_profiler(self):
        code = """
import gc, mtprof
def scopes(name, n):
    for _ in range(n):
        with mtprof.record_function(name):
            pass
prof = mtprof.profile(activities=[mtprof.ProfilerActivity.CPU])
with prof:
    scopes("first", 2000)
old = prof.events()
rows = prof.key_averages()
with prof:
    scopes("second", 3000)
new = prof.events()
del prof
gc.collect()
assert {e.name for e in old} == {"first"} and len(old) == 2000, len(old)
assert {e.name for e in new} == {"second"} and len(new) == 3000, len(new)
one = old[1999]
del old, new
gc.collect()
assert one.name == "first" and one.cpu_parent is None
assert rows[0].count == 2000 and rows[0].cpu_children == []
print("fine")
"""
        done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "fine\n"), done.stderr)

    def test_a_live_snapshot_stays_as_it_was(self):
        with mtprof.profile(activities=[mtprof.ProfilerActivity.CPU]) as prof:
            for _ in range(5):
                with mtprof.record_function("early"):
                    pass
            snapshot = prof.events()
            with mtprof.record_function("late"):
                pass
        self.assertEqual([event.name for event in snapshot], ["early"] * 5)
        self.assertEqual(len(prof.events()), 6)

    @unittest.skipUnless(hasattr(os, "fork"), "os.fork is not here")
    @unittest.skipIf(UNDER_ASAN, "a fork in a process with threads may find AddressSanitizer's allocator locked")
    def test_a_child_reads_its_parents_events(self):
        events = record(600).events()
        child = os.fork()
        if child == 0:
            try:
                fine = len(events) == 2400 and events[7].cpu_parent is events[4]
                fine = fine and events.key_averages()[0].count == 600
                os._exit(0 if fine else 1)
            finally:
                os._exit(2)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_events_at_the_interpreters_end(self):
        code = """
import mtprof, sys
with mtprof.profile(activities=[mtprof.ProfilerActivity.CPU]) as prof:
    for _ in range(3000):
        with mtprof.record_function("x"):
            pass
sys.kept = prof.events()
sys.kept[5].me = sys.kept
print("fine")
"""
        done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "fine\n"), done.stderr)

    def test_a_million_events_do_not_slow_the_collector(self):
        events = record(2000).events()
        self.assertEqual(sum(map(gc.is_tracked, events)), 0)
        self.assertLessEqual(sys.getsizeof(events[0]), 64)


class Threads(ResultsTest):
    def test_many_threads_read_one_model(self):
        import threading
        results = mtprof.load(self.write_trace())
        failures = []

        def read():
            try:
                for _ in range(50):
                    events = results.events()
                    for event in events:
                        event.to_dict(), event.cpu_children, event.kernels, event.device_time_total
                    results.key_averages(group_by_input_shape=True)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


if __name__ == "__main__":
    unittest.main()
