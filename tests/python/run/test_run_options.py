# SPDX-License-Identifier: Apache-2.0
"""What `mtprof run` records, where to, and what it says: its options, its summary, its mistakes."""
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import mtprof  # noqa: E402
from mtprof.run import run_command  # noqa: E402
from support_run import PYTHON, RUN, RunTest  # noqa: E402

SCOPES = """
    import mtprof, sys, time
    def work():
        with mtprof.record_function("work"):
            time.sleep(0.01)
    for _ in range(int(sys.argv[1])):
        work()
    """
TRAIN = """
    import mindtorch_v2 as torch
    model, other = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
    first = torch.optim.SGD(model.parameters(), lr=0.1)
    second = torch.optim.Adam(other.parameters(), lr=0.1)
    for _ in range(20):
        for m, optimizer in ((model, first), (other, second)):
            optimizer.zero_grad()
            m(torch.ones(2, 4)).sum().backward()
            optimizer.step()
    print("trained")
    """

# What the recording needs of mtprof.torch; tests/peers/torch_run.py has the real one.
STAND_IN = """\
from types import SimpleNamespace
class OfTorch:
    def _add_host(self):
        self.add_metadata("host", "stand-in")
_library = SimpleNamespace(ANNOTATIONS=2, set_options=lambda options: None)
_profiler = SimpleNamespace(_OfTorch=OfTorch, _torch_profiler=SimpleNamespace(_is_profiler_enabled=True))
"""


class OptionsTest(RunTest):
    def record(self, *words, status=0, **options):
        """What is on standard error of a run that ends with this status."""
        found = self.run_mtprof(*words, **options)
        self.assertEqual(found[0], status, found)
        return found[2]

    def load(self, name="trace.mtt"):
        return mtprof.load(self.path(name))

    def names(self, name="trace.mtt"):
        return [event.name for event in self.load(name).events()]


class What(OptionsTest):
    def test_scopes(self):
        self.write("script.py", SCOPES)
        said = self.record("-o", "trace.mtt", "script.py", "3")
        self.assertEqual(self.names(), ["work"] * 3)
        self.assertTrue(self.load().health().ok)
        self.assertRegex(said, r"(?m)^work +\S+% +\S+ ms")
        self.assertEqual(self.load().metadata()["command"], f"{sys.executable} script.py 3")

    def test_calls(self):
        self.write("script.py", "def inner(x):\n    return len(x)\ndef outer():\n    return inner('ab')\nouter()\n")
        said = self.record("--calls", "-o", "trace.mtt", "script.py")
        self.assertEqual(self.names()[:4], ["script.py(1): <module>", "script.py(3): outer", "script.py(1): inner",
                                            "<built-in function len>"])
        self.assertIn("script.py(1): inner", said)
        self.assertIn("mtprof report --functions trace.mtt", said)

    def test_calls_of_a_module(self):
        self.write("package/__init__.py", "")
        self.write("package/__main__.py", "def f(): pass\nf()\n")
        self.record("--calls", "-o", "trace.mtt", "-m", "package")
        names = self.names()
        self.assertIn("package/__main__.py(1): f", names)
        self.assertFalse([name for name in names if "mtprof" in name or "sitecustomize" in name], names)

    def test_stacks_shapes_and_memory(self):
        self.write("script.py", "import mindtorch_v2 as torch\ndef f():\n    return torch.ones(3, 4) @ torch.ones(4, 5)\n"
                   "f()\n")
        self.record("--stacks", "--shapes", "--memory", "-o", "trace.mtt", "script.py")
        product = next(event for event in self.load().events() if event.name == "aten::mm")
        self.assertEqual(product.input_shapes, [[3, 4], [4, 5]])
        self.assertEqual([frame.split("/")[-1] for frame in product.stack], ["script.py(3): f", "script.py(4): <module>"])
        self.assertEqual(product.self_cpu_memory_usage, 3 * 5 * 4)
        self.record("-o", "plain.mtt", "script.py")
        plain = next(event for event in self.load("plain.mtt").events() if event.name == "aten::mm")
        self.assertFalse(plain.stack or plain.input_shapes)

    def test_every_thread(self):
        self.write("script.py", "import mtprof, threading\ndef work():\n    with mtprof.record_function('here'): pass\n"
                   "threads = [threading.Thread(target=work) for _ in range(4)]\n"
                   "[t.start() for t in threads]\n[t.join() for t in threads]\n")
        self.record("-o", "trace.mtt", "script.py")
        self.assertEqual(self.names(), ["here"] * 4)

    def test_ring(self):
        said = self.record("--calls", "--ring", "256K", "-o", "trace.mtt", "-c",
                           "for i in range(100000): len('a')\nprint('last')")
        self.assertLess(os.path.getsize(self.path("trace.mtt")), 600_000)
        self.assertIn("<built-in function print>", self.names())
        self.assertRegex(said, r"\d+ older events let go")

    def test_a_program_that_profiles_itself(self):
        self.write("script.py", "import mtprof\nwith mtprof.record_function('before'): pass\n"
                   "with mtprof.profile() as prof:\n    with mtprof.record_function('mine'): pass\n"
                   "print([event.name for event in prof.events()])\n")
        expected = self.execute(*PYTHON, "script.py")
        found = self.run_mtprof("-o", "trace.mtt", "script.py")
        self.assertEqual(found[:2], expected[:2])
        self.assertEqual(expected[1], "['mine']\n")
        self.assertIn("the program started a profile of its own", found[2])
        self.assertEqual(self.names(), ["before"])


class Schedules(OptionsTest):
    def test_steps(self):
        self.write("script.py", TRAIN)
        said = self.record("--wait", "2", "--warmup", "1", "--active", "3", "--repeat", "2", "-o", "trace.mtt",
                           "script.py")
        # Two optimizers: the first one's steps count. Windows end outside of its scope: nothing is cut off.
        self.assertEqual([event["step"] for event in self.load().events() if event.name == "ProfilerStep*"],
                         [3, 4, 5, 9, 10, 11])
        self.assertEqual(self.names().count("Optimizer.step#SGD.step"), 6)
        self.assertIn("script.py", self.load().metadata()["command"])
        self.assertTrue(self.load().health().ok, self.load().health())
        self.assertNotIn("Warning", said)

    def test_steps_without_a_schedule(self):
        self.write("script.py", TRAIN)
        self.record("-o", "trace.mtt", "script.py")
        # No events of their own, but every event knows its step; the program's start is none.
        self.assertEqual({event["step"] for event in self.load().events() if event.name == "Optimizer.step#SGD.step"},
                         set(range(20)))
        self.assertIn(mtprof.explain(self.path("trace.mtt")).trace["steps"], (19, 20))
        self.assertNotIn("ProfilerStep*", self.names())

    def test_a_device_that_appears_later(self):
        self.write("script.py", """
            import mindtorch_v2 as torch
            x = torch.ones(4, device="npu")
            print(float((x + x).sum()))
            """)
        self.record("-o", "trace.mtt", "script.py", env={**os.environ, "MINDTORCH_NPU": "sim"})
        kernels = [event for event in self.load().events() if event.activity_type == "kernel"]
        self.assertGreaterEqual(len(kernels), 2)
        self.assertEqual(self.load().health().unmatched, 0)

    def test_steps_under_every_call(self):
        self.write("script.py", TRAIN)
        self.record("--calls", "--wait", "2", "--active", "1", "--repeat", "1", "-o", "trace.mtt", "script.py")
        self.assertTrue(self.load().health().ok, self.load().health())
        self.assertEqual(self.names().count("Optimizer.step#SGD.step"), 1)

    def test_a_program_without_steps(self):
        said = self.record("--wait=1", "--active=1", "-o", "trace.mtt", "-c", "pass")
        self.assertIn("Nothing recorded: the program made no steps", said)

    def test_a_program_with_too_few_steps(self):
        self.write("script.py", TRAIN)
        said = self.record("--wait=100", "--active=1", "-o", "trace.mtt", "script.py")
        self.assertRegex(said, "Nothing recorded: 0 steps recorded: .*20")

    def test_seconds(self):
        self.write("script.py", SCOPES)
        self.record("--delay", "0.3", "--duration", "0.3", "-o", "trace.mtt", "script.py", "150")
        info = self.load().info
        lasted = (info["end_ns"] - info["start_ns"]) / 1e9
        self.assertGreater(lasted, 0.25)
        self.assertLess(lasted, 5)  # of a busy machine
        self.assertGreater(len(self.names()), 1)
        self.assertLess(len(self.names()), 120)

    def test_a_program_that_waits(self):
        # The main thread runs no Python code: the recording is stopped by another thread.
        self.record("--duration", "0.1", "-o", "trace.mtt", "-c", "import time; time.sleep(3)")
        info = self.load().info
        self.assertLess(info["end_ns"] - info["start_ns"], 2e9)

    def test_a_program_that_ends_before(self):
        said = self.record("--delay", "60", "-o", "trace.mtt", "-c", "pass")
        self.assertIn("nothing recorded: the program ended after", said)
        self.assertFalse(os.path.exists(self.path("trace.mtt")))


class Files(OptionsTest):
    def test_the_name(self):
        self.write("script.py", "import os; print(os.getpid())\n")
        self.write("package/__main__.py", "import os; print(os.getpid())\n")
        for program, name in ((["script.py"], "script"), (["-m", "package"], "package"), (["package"], "package"),
                              (["-c", "import os; print(os.getpid())"], "command")):
            status, output, said = self.run_mtprof(*program)
            self.assertEqual(status, 0)
            path = f"{name}-{output.strip()}.mtt"
            self.assertIn(f"mtprof: {path}, ", said)
            self.assertTrue(os.path.exists(self.path(path)))

    def test_a_folder(self):
        self.record("--path", "a/b", "-o", "trace.mtt", "-c", "pass")
        self.record("--path=a/b", "-c", "pass")
        self.assertEqual([re.sub(r"\d+", "N", name) for name in sorted(os.listdir(self.path("a/b")))],
                         ["command-N.mtt", "trace.mtt"])

    def test_a_program_that_changes_the_folder(self):
        self.record("-o", "trace.mtt", "-c", "import os; os.chdir('/')")
        self.assertTrue(os.path.exists(self.path("trace.mtt")))

    def test_exports(self):
        self.write("script.py", SCOPES)
        for name in ("trace.json", "trace.json.gz", "trace.pftrace", "trace.speedscope.json"):
            said = self.record("-o", name, "script.py", "2")
            self.assertIn(f"mtprof: {name}, ", said)
            self.assertEqual("mtprof report" in said, ".json" in name)
        with gzip.open(self.path("trace.json.gz")) as file:
            self.assertEqual([e["name"] for e in json.load(file)["traceEvents"]].count("work"), 2)
        self.assertFalse([name for name in os.listdir(self.folder) if name.endswith(".mtt")])

    def test_it_survives(self):
        self.write("script.py", "import mtprof, time\nwith mtprof.record_function('done'): pass\n"
                   "mtprof.begin('open')\nprint('ready', flush=True)\ntime.sleep(60)\n")
        for name in ("trace.mtt", "trace.json"):
            status, _, errors = self.interrupt([*RUN, "-o", name], ["script.py"], signal.SIGKILL)
            self.assertEqual((status, errors), (-signal.SIGKILL, ""))
            self.assertEqual(self.names(name.removesuffix(".mtt") + ".mtt"), ["done", "open"])

    def test_after_os_exit(self):
        self.record("-o", "trace.mtt", "-c", "import mtprof, os\nwith mtprof.record_function('x'): pass\nos._exit(3)",
                    status=3)
        self.assertEqual(self.names(), ["x"])


class Mistakes(OptionsTest):
    def refuse(self, *words, status=2):
        """What is said about a command line that is wrong."""
        status_, output, errors = self.run_mtprof(*words)
        self.assertEqual((status_, output), (status, ""), errors)
        self.assertTrue(errors.startswith("mtprof: run: "), errors)
        self.assertNotIn("Traceback", errors)
        return errors

    def test_command_lines(self):
        for words, said in (
                ([], "a script, -m MODULE or -c CODE is needed"), (["--cals", "x.py"], "did you mean '--calls'?"),
                (["-z", "x.py"], "unknown option '-z'"), (["--wait"], "needs a value, N"),
                (["--wait", "x", "x.py"], "'x' is not a number of steps, 0 or more"),
                (["--active", "0", "x.py"], "'0' is not a number of steps, 1 or more"),
                (["--wait", "1", "x.py"], "--wait needs --active"),
                (["--active", "1", "--delay", "2", "x.py"], "only one of them"),
                (["--delay", "-1", "x.py"], "'-1' is not a number of seconds"),
                (["--duration", "nan", "x.py"], "'nan' is not a number of seconds"),
                (["--ring", "3X", "x.py"], "'3X' is not a number of bytes"),
                (["--ring", "3", "x.py"], "64K or more"), (["--calls=1", "x.py"], "takes no value, got '1'"),
                (["-o", "x.xyz", "x.py"], "the ending of 'x.xyz'"), (["-m"], "option '-m' needs a module"),
                (["-c"], "option '-c' needs code")):
            with self.subTest(words=words):
                self.assertIn(said, self.refuse(*words))

    def test_folders(self):
        self.write("file", "")
        self.assertIn("missing: no such folder", self.refuse("-o", "missing/trace.mtt", "x.py", status=1))
        os.mkdir(self.path("folder.mtt"))
        self.assertIn("it is a folder", self.refuse("-o", "folder.mtt", "x.py", status=1))
        self.assertIn("file", self.refuse("--path", "file", "x.py", status=1))

    def test_a_folder_that_cannot_be_written(self):
        with mock.patch("os.access", return_value=False) as access, mock.patch("sys.stderr", io.StringIO()) as said:
            self.assertEqual(run_command.main(["--path", self.folder, "-o", "trace.mtt", "x.py"]), 1)
        access.assert_called_with(self.folder, os.W_OK | os.X_OK)
        self.assertEqual(said.getvalue(), f"mtprof: run: {self.path('trace.mtt')}: cannot be written\n")

    def test_a_file_that_cannot_be_written(self):
        # Found only when the recording begins: the program is not started.
        self.write("script.py", "print('never')\n")
        errors = self.refuse("-o", "/proc/trace.mtt", "script.py", status=1)
        self.assertIn("/proc/trace.mtt", errors)
        self.refuse("--delay", "5", "-o", "/proc/trace.mtt", "script.py", status=1)

    def test_options_of_python_that_keep_us_out(self):
        for option in ("-I", "-E", "-S"):
            with self.subTest(option=option):
                done = subprocess.run([sys.executable, option, "-c", f"import sys; sys.path[:0] = {sys.path!r}; "
                                       "from mtprof.run.run_command import main; sys.exit(main(['-c', 'pass']))"],
                                      capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 2)
                self.assertIn(f"Python's option {option} keeps the profiler from starting", done.stderr)

    def test_options_of_python(self):
        words = ["-X", "utf8=0", "-W", "error", "-O"]
        code = "import sys; print(sys.orig_argv, sys.flags, sys.warnoptions)"
        plain = self.execute(*PYTHON, *words, "-c", code)
        ours = self.execute(sys.executable, *words, "-m", "mtprof", "run", "-q", "-o", "trace.mtt", "-c", code)
        self.assertEqual(ours, plain)
        self.assertEqual(self.execute(sys.executable, "-Om", "mtprof", "run", "-q", "-c", "print(__debug__)")[1], "False\n")



class Torch(OptionsTest):
    """--patch-torch, on a folder that is called torch."""

    def setUp(self):
        super().setUp()
        self.write("torch/__init__.py", "from torch import profiler\nprint('torch')\n")
        self.write("torch/profiler.py", "name = 'torch'\n")
        self.write("script.py", "print('before')\nimport torch\nprint(torch.profiler.name)\n")

    def test_a_torch_that_is_none(self):
        expected = self.execute(*PYTHON, "script.py")
        status, output, errors = self.run_mtprof("-q", "-o", "trace.mtt", "script.py")
        self.assertEqual((status, output), expected[:2])
        self.assertRegex(errors, r"\Amtprof: run: torch: .*\n\Z")
        self.assertIn("torch is not observed", self.run_mtprof("-o", "trace.mtt", "script.py")[2])

    def test_a_torch_that_is_found_later(self):
        self.write("later/script.py", f"import sys\nsys.path.append({self.folder!r})\nimport torch\n")
        self.assertIn("torch is not observed", self.run_mtprof("-o", "trace.mtt", "later/script.py")[2])

    def patched(self, text):
        """A run with a module mtprof.torch of this text, which a sitecustomize puts in place."""
        self.write("stand_in.py", STAND_IN + text)
        self.write("site/sitecustomize.py", f"""\
            import sys
            sys.path.insert(0, {self.folder!r})
            import mtprof, stand_in
            del sys.path[0]
            mtprof.torch = sys.modules["mtprof.torch"] = stand_in
            stand_in.__spec__.name = "mtprof.torch"
            """)
        path = os.pathsep.join((self.path("site"), os.environ["PYTHONPATH"]))
        return self.run_mtprof("--patch-torch", "-o", "trace.mtt", "-q", "script.py",
                               env={**os.environ, "PYTHONPATH": path})

    def test_it_is_called_when_torch_is_there(self):
        found = self.patched("def patch():\n    import torch\n    torch.profiler.name = 'ours'\n")
        self.assertEqual(found, (0, "before\ntorch\nours\n", ""))
        self.assertEqual(self.load().metadata()["host"], "stand-in")

    def test_a_patch_that_fails_is_told(self):
        found = self.patched("def patch():\n    raise RuntimeError('another torch')\n")
        self.assertEqual(found, (0, "before\ntorch\ntorch\n", "mtprof: run: torch: another torch\n"))

    def test_an_import_that_fails_is_the_programs(self):
        self.write("torch/profiler.py", "raise OSError('no library')\n")
        expected = self.execute(*PYTHON, "script.py")
        self.assertEqual(self.patched("def patch():\n    print('never')\n"), expected)
        self.assertIn("OSError: no library", expected[2])


class Help(OptionsTest):
    def test_it_lists_every_option_in_80_columns(self):
        status, output, _ = self.run_mtprof("--help")
        self.assertEqual(status, 0)
        for option in run_command.OPTIONS:
            self.assertRegex(output, rf"(?m)^  (-{option.letter},|   ) --{option.name}\b")
        self.assertLessEqual(max(map(len, output.splitlines())), 80)

    def test_a_reader_that_goes_away_is_no_failure(self):
        for module in ("mtprof.run.run_command", "mtprof.view", "mtprof.dataset.query_command"):
            reader, writer = os.pipe()
            os.close(reader)
            with self.subTest(module), os.fdopen(writer, "wb") as pipe:
                done = subprocess.run([*PYTHON, "-m", module, "--help"], stdout=pipe, stderr=subprocess.PIPE,
                                      check=False)
                self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_the_summary_is_narrow(self):
        self.write("script.py", "import json, re\n" + "x" * 50 + " = json.loads('[1]')\n")
        said = self.record("--calls", "-o", "trace.mtt", "script.py")
        self.assertLessEqual(max(map(len, said.splitlines())), 82)
        self.assertLessEqual(len(said.splitlines()), 24)
        self.assertNotIn("Name", self.record("-n", "0", "--calls", "-o", "trace.mtt", "script.py"))
        self.assertEqual(self.record("-q", "--calls", "-o", "trace.mtt", "script.py"), "")

    def test_nothing_recorded(self):
        self.assertIn("--calls records every Python function", self.record("-o", "trace.mtt", "-c", "pass"))


if __name__ == "__main__":
    unittest.main()
