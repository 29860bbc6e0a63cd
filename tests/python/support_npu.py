# SPDX-License-Identifier: Apache-2.0
"""For tests on the simulated accelerator: imported before mindtorch_v2, it asks for two devices of it."""
import os
import subprocess
import sys
import unittest

os.environ.setdefault("MINDTORCH_NPU", "sim")
os.environ.setdefault("MINDTORCH_NPU_SIM_DEVICES", "2")
os.environ.setdefault("MINDTORCH_NPU_SIM_MEMORY", "256M")

import mindtorch_v2 as torch  # noqa: E402

sim = torch.npu._sim


def run_python(text, **environment):
    """What a Python of its own prints; None takes a variable away. A failure shows what it wrote."""
    settings = dict(os.environ)
    for name, value in environment.items():
        settings.pop(name, None)
        if value is not None:
            settings[name] = value
    done = subprocess.run([sys.executable, "-X", "dev", "-c", text], env=settings, capture_output=True, text=True,
                          timeout=60)
    if done.returncode != 0:
        raise AssertionError(f"exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def in_thread(function):
    """What the function gives, or raises, on a thread of its own."""
    import threading

    result = []

    def work():
        try:
            result.append((True, function()))
        except BaseException as error:
            result.append((False, error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    if not result:
        raise AssertionError("the thread has not ended")
    good, value = result[0]
    if not good:
        raise value
    return value


def same(a, b):
    """Bit for bit, wherever the tensors are."""
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.detach().cpu(), b.detach().cpu())


class NpuCase(unittest.TestCase):
    """Whatever a test does to its thread and to the devices is undone."""

    def tearDown(self):
        torch.set_default_device(None)
        for index in (1, 0):
            torch.npu.set_stream(torch.npu.default_stream(index))
            sim.lose(index, False)

    def assertWhere(self, tensor, device):
        self.assertEqual(tensor.device, torch.device(device))
