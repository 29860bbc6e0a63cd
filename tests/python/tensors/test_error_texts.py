# SPDX-License-Identifier: Apache-2.0
"""What is refused is named, and so is what would be accepted."""
import unittest
import warnings

from support_results import ResultsTest, record

import mtprof
from mtprof import EventList, FunctionEvent, profile, schedule


class Texts(ResultsTest):
    def refused(self, exception, pattern, call, *args, **kwargs):
        with warnings.catch_warnings(), self.assertRaisesRegex(exception, pattern):
            warnings.simplefilter("ignore")
            call(*args, **kwargs)

    def test_arguments_of_profile(self):
        for arguments, exception, pattern in (
                ({"activities": 3}, TypeError, "iterable of ProfilerActivity, got 3; accepted are CPU, NPU"),
                ({"activities": "cpu"}, ValueError, r"got 'cpu'; write \['cpu'\]"),
                ({"activities": ["cpux"]}, ValueError, "got 'cpux'; accepted are CPU, NPU"),
                ({"activities": []}, AssertionError, r"No valid profiler activities found in \[\]; accepted are CPU"),
                ({"activities": [{"cpu": 1}]}, TypeError, "the types of ProfilerActivity.CPU must be a list.* not 1"),
                ({"policy": "x"}, ValueError, "policy must be one of 'spill', 'ring', 'stop', not 'x'"),
                ({"custom_trace_id_callback": 3}, TypeError, "custom_trace_id_callback must be a function.* not 3"),
                ({"experimental_config": 3}, TypeError, "must be an _ExperimentalConfig, or None, not 3"),
                ({"execution_trace_observer": 3}, TypeError, r"must have start\(\) and stop\(\).* not 3")):
            with self.subTest(**arguments):
                self.refused(exception, pattern, profile, **arguments)
        for value, exception, pattern in ((-1, ValueError, "must be non-negative, not -1"),
                                          ("x", TypeError, "a number of seconds, or None, not 'x'")):
            self.refused(exception, pattern, profile(post_processing_timeout_s=value).start)
        prof = profile(on_trace_ready=3)
        prof.start()
        self.refused(TypeError, "on_trace_ready must be a function of the profiler, or None, not 3", prof.stop)
        self.refused(AssertionError, "No activities specified .* only XPU",
                     profile(activities=[mtprof.ProfilerActivity.XPU]).start)
        self.refused(ValueError, "Step must be an integer. Got 'x'", schedule(wait=1, warmup=1, active=1), "x")

    def test_false_values_mean_none(self):
        for nothing in (None, 0, False, ()):
            profile(on_trace_ready=nothing, custom_trace_id_callback=nothing, execution_trace_observer=nothing)

    def test_marks(self):
        for call, arguments, exception, pattern in (
                (mtprof.end, ("x",), TypeError, r"end: the token must be what begin\(\) returned, not 'x'"),
                (mtprof.end, (-1,), OverflowError, r"the token must be what begin\(\) returned, not -1"),
                (mtprof.flow, ("a", "start", -1), OverflowError, r"the id must be an int from 0 to 2\*\*64 - 1, not -1"),
                (mtprof.flow, ("a", "start", "x"), TypeError, "the id must be an int.* not 'x'"),
                (mtprof.flow, ("a", "b", 1), ValueError, "'start', 'step' or 'end', not 'b'"),
                (mtprof.counter, ("a", "b"), TypeError, "the value must be a number, not 'b'"),
                (mtprof.counter, ("a",), TypeError, "takes 2 positional arguments but 1 was given"),
                (mtprof.begin, (3,), TypeError, "the name must be a str, not 3")):
            with self.subTest(call=call.__name__, arguments=arguments):
                self.refused(exception, pattern, call, *arguments)

    def test_results(self):
        trace, prof = self.load(), record(1)
        rows = trace.key_averages()
        for call, arguments, exception, pattern in (
                (rows.table, {"sort_by": 3}, TypeError, "sort_by must be the name of an attribute.* not 3"),
                (rows.table, {"row_limit": "x"}, TypeError, "row_limit must be a number of rows.* not 'x'"),
                (rows.table, {"max_name_column_width": "x"}, TypeError, "max_name_column_width must be .* not 'x'"),
                (rows.table, {"header": 3}, TypeError, "header must be a str, or None, not 3"),
                (rows.table, {"flavor": 3}, ValueError, "'torch', 'mindtorch' or 'lean', not 3"),
                (rows.columns, {}, TypeError, r"recorded events of one trace, not rows .* to_pandas\(\) takes any"),
                (EventList([FunctionEvent(1, "a", 0, 0, 1)]).columns, {}, TypeError, "not events made by hand"),
                (rows[0].add, {"other": 3}, AssertionError, "Expected other to be a FunctionEvent.* not 3"),
                (trace.key_averages, {"group_by_stack_n": "x"}, TypeError, "a number of frames, 0 for none, not 'x'"),
                (trace.events().key_averages, {"group_by_stack_n": None}, TypeError, "group_by_stack_n .* not None"),
                (trace.export_stacks, {"path": self.path("x"), "metric": "foo"}, ValueError, "one of: .*, not 'foo'"),
                (prof.marks, {"kind": 3}, ValueError, "'instant', 'counter' or 'flow', not 3"),
                (prof.add_metadata, {"key": 3, "value": "x"}, TypeError, "the key of metadata must be a str, not 3"),
                (prof.add_metadata_json, {"key": "x", "value": 3}, TypeError, "metadata 'x' must be a str, not 3"),
                (prof.toggle_collection_dynamic, {"enable": True, "activities": 3}, TypeError, "got 3; accepted are")):
            with self.subTest(call=getattr(call, "__name__", call), **arguments):
                self.refused(exception, pattern, call, **arguments)


if __name__ == "__main__":
    unittest.main()
