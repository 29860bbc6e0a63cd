# SPDX-License-Identifier: Apache-2.0
"""Programs that end while the simulated accelerator has work and a profile runs: none hangs, none crashes.

MT_LONG=1 runs each of them fifty times."""
import os
import subprocess
import sys
import unittest

import support_npu  # its settings are the programs' too

BEGIN = """
import atexit, os, sys, threading, time
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
npu = torch.npu

def launch(x, count=50):
    for _ in range(count):
        x = x + 1
    return x

def for_ever():
    with npu.stream(npu.Stream()):
        x = torch.ones(1000, device="npu")
        event = npu.Event()
        while True:
            x = launch(x, 10)
            event.record()
            event.synchronize()
            npu.empty_cache()

def threads(count=4):
    for _ in range(count):
        threading.Thread(target=for_ever, daemon=True).start()

x = torch.ones(1000, device="npu")
running = profile(profile_memory=True)
running.start()
y = launch(x)
npu._sim.hold(1 << 20)
z = launch(x)
"""

# What a program does last, and the exit status that it then has.
ENDINGS = {
    "the last line": ("", 0),
    "sys.exit": ("sys.exit(7)", 7),
    "os._exit": ("os._exit(7)", 7),
    "an exception": ("raise ValueError('on purpose')", 1),
    "daemon threads": ("threads()", 0),
    "daemon threads and sys.exit": ("threads()\nsys.exit(7)", 7),
    "daemon threads and os._exit": ("threads()\nos._exit(7)", 7),
    "sys.exit on a thread": ("t = threading.Thread(target=sys.exit)\nt.start()\nt.join()", 0),
    "an atexit handler": ("atexit.register(lambda: (launch(x), npu.synchronize(), running.stop()))", 0),
    "an atexit handler that fails": ("npu._sim.lose()\natexit.register(lambda: launch(x))", 0),
    "a tensor that is freed last": ("sys.kept = launch(x)\nsys.stream = npu.Stream()\nsys.event = npu.Event()\n"
                                    "sys.event.record()", 0),
    "pinned copies": ("h = torch.ones(100000).pin_memory()\nd = h.to('npu', non_blocking=True)\n"
                      "h.copy_(d, non_blocking=True)\ndel h, d", 0),
    "a child": ("pid = os.fork()\nif pid == 0:\n    del x, y, z\n    sys.exit(3)\n"
                "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3", 0),
    "a child of a threaded process": ("threads()\npid = os.fork()\nif pid == 0:\n    del x, y, z\n    os._exit(3)\n"
                                      "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3", 0),
    "a signal": ("import signal\nthreads()\nsignal.raise_signal(signal.SIGTERM)", -15),
    "an interrupt": ("import signal\nthreads()\nsignal.raise_signal(signal.SIGINT)", -2),
}
if "libasan" in os.environ.get("LD_PRELOAD", ""):  # its heap is locked in a child where another thread was in it
    del ENDINGS["a child"], ENDINGS["a child of a threaded process"]
TIMES = 50 if os.environ.get("MT_LONG") == "1" else 1


class Exits(unittest.TestCase):
    def test_every_ending(self):
        self.assertTrue(support_npu.torch.npu.is_available())
        for name, (ending, status) in ENDINGS.items():
            for _ in range(TIMES):
                with self.subTest(name):
                    done = subprocess.run([sys.executable, "-c", BEGIN + ending], capture_output=True, text=True,
                                          timeout=100)
                    self.assertEqual(done.returncode, status, done.stdout + done.stderr)
                    if "fails" not in name and "exception" not in name and status >= 0:
                        self.assertNotIn("Error", done.stderr)
                    self.assertNotIn("Sanitizer", done.stderr)


if __name__ == "__main__":
    unittest.main()
