# SPDX-License-Identifier: Apache-2.0
"""Traces to look at: a small one written by hand in kineto's format, and recorded ones."""
import contextlib
import json
import os
import sys

from support_folder import FolderTest


def tree():
    """The folder with the packages, for subprocesses."""
    import mtprof
    return os.path.dirname(os.path.dirname(mtprof.__file__))


def environment():
    """An environment in which subprocesses find the packages."""
    return {**os.environ, "PYTHONPATH": tree() + os.pathsep + os.environ.get("PYTHONPATH", "")}


def span(name, start, duration, category="cpu_op", thread=71, process=70, **args):
    """A span of a Chrome trace; times are microseconds."""
    return {"ph": "X", "cat": category, "name": name, "pid": process, "tid": thread, "ts": float(start),
            "dur": float(duration), "args": args}


def small_trace():
    """An annotation with a linear layer in it (on a GPU), a step, a second thread, an allocation."""
    shapes = {"Input Dims": [[2, 3], [3, 4], []], "Input Strides": [[3, 1], [4, 1], []],
              "Input type": ["float", "float", "Scalar"], "Concrete Inputs": ["", "", "1"]}
    stack = "model.py(20): forward;main.py(10): train;main.py(3): <module>;"
    memory = {"Device Type": 0, "Device Id": -1, "Total Reserved": 0}
    device = {"device": 0, "stream": 7, "context": 1}
    events = [
        span("ProfilerStep#4", 0, 1000, "user_annotation", **{"External id": 1, "Ev Idx": 0}),
        span("forward", 10, 500, "user_annotation", **{"External id": 2, "Ev Idx": 1}),
        span("aten::linear", 20, 300,
             **{"External id": 3, "Ev Idx": 2, "Sequence number": 5, "Fwd thread id": 0,
                                         "Call stack": stack, **shapes}),
        span("aten::addmm", 40, 200,
             **{"External id": 4, "Ev Idx": 3, "Sequence number": 5, "Fwd thread id": 0,
                                        "Call stack": stack, **shapes}),
        span("cudaLaunchKernel", 60, 20, "cuda_runtime",
             **{"External id": 4, "correlation": 900, "cbid": 211}),
        span("gemm", 100, 50, "kernel", thread=7, process=0,
             **{"External id": 4, "correlation": 900, **device}),
        span("aten::relu", 330, 100, **{"External id": 5, "Ev Idx": 4, "Input Dims": [[2, 4]],
                                        "Input type": ["float"], "Concrete Inputs": [""]}),
        span("aten::relu", 600, 40, **{"External id": 6, "Ev Idx": 5, "Input Dims": [[8, 4]],
                                       "Input type": ["float"], "Concrete Inputs": [""]}),
        span("AddmmBackward0", 700, 100, thread=72, **{"External id": 7, "Ev Idx": 6, "Sequence number": 5,
                                                       "Fwd thread id": 1}),
        {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 70, "tid": 71,
         "ts": 50.0,
         "args": {**memory, "Addr": 4096, "Bytes": 512, "Total Allocated": 512, "Ev Idx": 7}},
        {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 70, "tid": 71,
         "ts": 900.0,
         "args": {**memory, "Addr": 4096, "Bytes": -512, "Total Allocated": 0, "Ev Idx": 8}},
    ]
    flags = {"with_stack": 1, "record_shapes": 1, "profile_memory": 1, "with_flops": 1}
    return {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "a GPU"}], "trace_id": "ABC", **flags,
            "user \"key\"": "value", "displayTimeUnit": "ms", "baseTimeNanoseconds": 1000000000,
            "traceEvents": events, "traceName": "small.json"}


class ResultsTest(FolderTest):
    """Has a folder of its own and the small trace in it."""

    def write_trace(self, trace=None, name="small.json"):
        """Writes a trace and returns its path."""
        with open(self.path(name), "w", encoding="utf-8") as file:
            json.dump(small_trace() if trace is None else trace, file)
        return self.path(name)

    def load(self, trace=None):
        """The small trace (or another) with its results."""
        import mtprof
        return mtprof.load(self.write_trace(trace))

    def named(self, events, name):
        """The only event of a name."""
        found = [event for event in events if event.name == name]
        self.assertEqual(len(found), 1, name)
        return found[0]


@contextlib.contextmanager
def warnings_of(category):
    """Collects warnings of a category."""
    import warnings
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kept = []
        yield kept
        kept.extend(w for w in caught if issubclass(w.category, category))


def record(n=10, **arguments):
    """A profile with n outer scopes of three inner ones each."""
    import mtprof
    with mtprof.profile(activities=[mtprof.ProfilerActivity.CPU], **arguments) as prof:
        for i in range(n):
            with mtprof.record_function("outer"):
                for _ in range(3):
                    mtprof.end(mtprof.begin("inner"))
            del i
    return prof


if __name__ == "__main__":
    sys.exit("support for other tests")
