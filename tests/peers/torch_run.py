# SPDX-License-Identifier: Apache-2.0
"""A training script of stock PyTorch, unchanged, under `mtprof run`.

Compared with mtprof.torch.profile() around the same loop: the rows and their counts, in a run of the whole and in a
schedule of steps. With `python`: output and exit status, also where the script uses torch.profiler itself.
"""
import collections
import os
import re
import subprocess
import sys
import tempfile
import unittest

import mtprof

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOOP = """\
import torch
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(48, 8)), batch_size=4)
def train():
    for batch, in data:
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        scheduler.step()
    return loss.item()
"""
PLAIN = LOOP + "print(train())\n"
PROFILED = LOOP + """\
from mtprof.torch import profile
import sys
with profile(record_shapes=True, profile_memory=True, path=sys.argv[1]):
    train()
"""
PROFILES_ITSELF = LOOP + """\
import torch.profiler
with torch.profiler.profile(profile_memory=True) as prof:
    train()
print(sorted((row.key, row.count) for row in prof.key_averages()), type(prof).__module__.split(".")[0])
raise SystemExit(5)
"""


# A package: a guard, relative imports, arguments, input, forked workers, an exit status.
PACKAGE = {
    "__init__.py": "",
    "model.py": """\
import torch
def train(batches):
    model = torch.nn.Linear(2, 2)
    for batch, in batches:
        model(batch).sum().backward()
    return sum(p.grad.numel() for p in model.parameters())
""",
    "__main__.py": """\
import os, sys
import torch
from .model import train
if __name__ == "__main__":
    rows = [[float(word) for word in line.split()] for line in sys.stdin]
    data = torch.utils.data.TensorDataset(torch.tensor(rows))
    print(__package__, sys.argv[1:], train(torch.utils.data.DataLoader(data, batch_size=2, num_workers=2)), flush=True)
    child = os.fork()
    if child == 0:
        print("child", torch.ones(2).sum().item(), flush=True)
        os._exit(4)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) + 3)
"""}


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def python(self, *words, text=PLAIN, given=""):
        with open(os.path.join(self.folder, "train.py"), "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run([sys.executable, *words], cwd=self.folder, input=given, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def trace(self):
        return mtprof.load(os.path.join(self.folder, "trace.mtt"))

    def record(self, *options, text=PLAIN):
        return self.python("-m", "mtprof", "run", "-o", "trace.mtt", *options, "train.py", text=text)

    def counts(self):
        return collections.Counter(event.name for event in self.trace().events())

    def test_the_whole(self):
        expected = self.python("train.py")
        self.assertEqual(self.record("--shapes", "--memory")[:2], expected[:2])
        self.assertTrue(self.trace().health().ok, self.trace().health())
        ours = self.counts()
        self.assertEqual(self.python("train.py", "trace.mtt", text=PROFILED)[0], 0)
        around = self.counts()
        self.assertIn("Optimizer.step#Adam.step", around)
        # The script makes its model and data too: nothing of the loop is missing, and the ops of the loop agree.
        self.assertEqual({name: n - ours[name] for name, n in around.items() if n > ours[name]}, {})
        self.assertEqual({name: ours[name] for name in around if "Backward" in name or "Optimizer" in name},
                         {name: around[name] for name in around if "Backward" in name or "Optimizer" in name})

    def test_steps(self):
        status, _, said = self.record("--wait", "2", "--warmup", "1", "--active", "2", "--repeat", "2")
        self.assertEqual(status, 0, said)
        self.assertTrue(self.trace().health().ok, self.trace().health())
        self.assertEqual([event["step"] for event in self.trace().events() if event.name == "ProfilerStep*"],
                         [3, 4, 8, 9])
        counts = self.counts()
        self.assertEqual((counts["Optimizer.step#Adam.step"], counts["MseLossBackward0"] + counts["MeanBackward0"]),
                         (4, 4))

    def test_a_package_that_reads_forks_and_exits(self):
        os.mkdir(os.path.join(self.folder, "pack"))
        for name, text in PACKAGE.items():
            with open(os.path.join(self.folder, "pack", name), "w", encoding="utf-8") as file:
                file.write(text)
        expected = self.python("-m", "pack", "a", "--b", given="1 2\n3 4\n5 6\n7 8\n")
        self.assertEqual(expected[0], 7, expected)
        found = self.python("-m", "mtprof", "run", "-o", "trace.mtt", "-m", "pack", "a", "--b",
                            given="1 2\n3 4\n5 6\n7 8\n")
        self.assertEqual(found[:2], expected[:2], found[2])
        self.assertTrue(self.trace().health().ok, self.trace().health())
        counts = self.counts()
        self.assertEqual(counts["AddmmBackward0"], 2)
        self.assertGreaterEqual(counts["enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"], 2)

    def test_calls_and_stacks(self):
        self.assertEqual(self.record("--calls", "--stacks", "--delay", "0")[0], 0)
        self.assertTrue(self.trace().health().ok, self.trace().health())
        product = next(event for event in self.trace().events() if event.name == "aten::addmm")
        self.assertIn("train.py(10): train", "\n".join(product.stack))

    def test_a_script_with_torch_profiler(self):
        expected = self.python("train.py", text=PROFILES_ITSELF)
        self.assertEqual(expected[0], 5)
        for options in ((), ("--memory",)):
            with self.subTest(options=options):
                found = self.record(*options, text=PROFILES_ITSELF)
                self.assertEqual(found[:2], expected[:2], found[2])

    def test_the_front_page(self):
        """README's example."""
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            sample = re.search(r"^```python\n(.*?)^```$", file.read(), re.M | re.S)[1]
        status, output, said = self.python("train.py", text=sample)
        self.assertEqual((status, said), (0, ""))
        self.assertIn("AddmmBackward0", output)
        self.assertIn("trace.json.gz", os.listdir(self.folder))

    def test_the_patch(self):
        status, output, said = self.record("--patch-torch", text=PROFILES_ITSELF)
        self.assertEqual(status, 5, said)
        self.assertTrue(output.endswith(" mtprof\n"), output)
        self.assertIn("the program started a profile of its own", said)


def main():
    done = unittest.TextTestRunner(stream=sys.stdout).run(unittest.defaultTestLoader.loadTestsFromTestCase(Run))
    failed = len(done.failures) + len(done.errors)
    print(f"{done.testsRun - failed} passed, {failed} failed, {len(done.skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
