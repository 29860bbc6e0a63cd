# SPDX-License-Identifier: Apache-2.0
"""Programs to profile and traces to read, for the tests that go through the contract item by item.

"torch-contract n.n" is an item of docs/torch-contract.md; a test names the items it covers.
"""
import gzip
import json
import os
import sys
import tempfile
import unittest
import warnings

import mindtorch_v2 as torch
from mindtorch_v2.profiler import ProfilerActivity, profile, record_function


class Net(torch.nn.Module):
    """Two layers with a rectifier between them."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 8)
        self.second = torch.nn.Linear(8, 2)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


def train(steps=1, prof=None):
    """A few steps of training; calls prof.step() after each."""
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        with record_function("forward"):
            loss = net(torch.ones(3, 4)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if prof is not None:
            prof.step()
    return net


def profiled(steps=1, **arguments):
    """The profile of a training; every event of a CPU."""
    arguments.setdefault("activities", [ProfilerActivity.CPU])
    with profile(**arguments) as prof:
        train(steps, prof if arguments.get("schedule") else None)
    return prof


def read_trace(path):
    """A Chrome trace as Python objects; constants that JSON does not have are refused."""
    def refuse(text):
        raise ValueError(f"not JSON: {text}")
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        return json.load(file, parse_constant=refuse)


class ContractTest(unittest.TestCase):
    """Has a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        kept = warnings.catch_warnings()
        kept.__enter__()
        self.addCleanup(kept.__exit__, None, None, None)
        warnings.filterwarnings("ignore", message="Profiler clears events")
        warnings.filterwarnings("ignore", message="Profiler won't be using warmup")

    def path(self, name):
        """A path in the test's folder."""
        return os.path.join(self.folder, name)

    def trace(self, prof, name="trace.json", **arguments):
        """What the profiler writes, parsed."""
        prof.export_chrome_trace(self.path(name), **arguments)
        return read_trace(self.path(name))

    def spans(self, trace, category=None, name=None):
        """The complete events of a trace."""
        return [e for e in trace["traceEvents"] if e["ph"] == "X"
                and (category is None or e["cat"] == category) and (name is None or e["name"] == name)]


if __name__ == "__main__":
    sys.exit("support for other tests")
