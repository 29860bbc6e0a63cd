# SPDX-License-Identifier: Apache-2.0
"""An installed wheel at work: both packages, one libmtprof in the process, the command, files that it reads."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import mindtorch_v2 as torch
import mtprof


class Wheel(unittest.TestCase):
    def test_it_is_the_installed_one(self):
        for module in (torch, mtprof):
            self.assertTrue(module.__file__.startswith(sys.prefix), module.__file__)

    def test_one_library_a_process(self):
        with open("/proc/self/maps", encoding="utf-8") as file:
            paths = {line.split()[-1] for line in file if "libmtprof" in line or "libmindtorch" in line}
        self.assertEqual(sorted(os.path.basename(p) for p in paths), ["libmindtorch.so.0", "libmtprof.so.0"])
        self.assertTrue(all(p.startswith(sys.prefix) for p in paths), paths)

    def test_numpy_is_not_needed(self):
        self.assertNotIn("numpy", sys.modules)

    def test_train_and_profile(self):
        model = torch.nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.mtt")
            with torch.profiler.profile(record_shapes=True, path=path) as prof:
                model(torch.ones(4, 3)).sum().backward()
                optimizer.step()
            names = {event.name for event in prof.events()}
            self.assertLessEqual({"aten::linear", "AddmmBackward0", "Optimizer.step#SGD.step"}, names)
            prof.export_chrome_trace(os.path.join(folder, "run.json"))
            with open(os.path.join(folder, "run.json"), encoding="utf-8") as file:
                self.assertTrue(json.load(file)["traceEvents"])
            said = subprocess.run(["mtprof", "report", path], capture_output=True, text=True, check=True).stdout
            self.assertIn("aten::linear", said)

    def test_a_program_is_run(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "program.py")
            with open(program, "w", encoding="utf-8") as file:
                file.write("import sys\ndef f(): return 3\nsys.exit(f())\n")
            for command in (["mtprof", "run"], ["mtprof-run"], [sys.executable, "-m", "mtprof", "run"]):
                path = os.path.join(folder, "run.mtt")
                done = subprocess.run([*command, "--calls", "-o", path, program], capture_output=True, text=True,
                                      check=False)
                self.assertEqual((done.returncode, done.stdout), (3, ""), done.stderr)
                self.assertIn("program.py(2): f", {event.name for event in mtprof.load(path).events()})
                os.unlink(path)

    def test_any_program_is_run(self):
        for command in (["mtprof", "run"], ["mtprof-run"], [sys.executable, "-m", "mtprof", "run"]):
            done = subprocess.run([*command, "--", "sh", "-c", "exit 3"], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn("nothing recorded", done.stderr)

    def test_the_command_is_the_same_version(self):
        said = subprocess.run(["mtprof", "--version"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(said.split()[-1], torch.__version__.split("+")[0])


if __name__ == "__main__":
    unittest.main()
