# SPDX-License-Identifier: Apache-2.0
"""The extensions start once: another interpreter of the process, or a second start, is refused and harms nothing."""
import importlib.util
import subprocess
import sys
import textwrap
import unittest


def child(program):
    """What a program prints, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True,
                          timeout=120, check=False)
    if done.returncode != 0:
        raise AssertionError(f"exit status {done.returncode}: {done.stderr}")
    return done.stdout


class Once(unittest.TestCase):
    def test_a_second_start(self):
        said = child("""
            import sys
            import mindtorch_v2 as torch, mtprof
            for name, package in (("mtprof._mtprof", mtprof), ("mindtorch_v2._C", torch)):
                first = sys.modules.pop(name)
                delattr(package, name.rpartition(".")[2])
                try:
                    __import__(name)
                except ImportError as error:
                    print(error)
                sys.modules[name] = first
            with torch.profiler.profile() as prof:
                torch.ones(2).add(1)
            print([e.name for e in prof.events() if e.name == "aten::add"])
        """)
        self.assertEqual(said.splitlines(), ["mtprof: one interpreter of a process may load it",
                                             "mindtorch_v2: one interpreter of a process may load it",
                                             "['aten::add']"])

    def test_another_interpreter(self):
        if importlib.util.find_spec("_xxsubinterpreters") is None:
            self.skipTest("this Python has no _xxsubinterpreters")
        said = child("""
            import mindtorch_v2 as torch
            import _xxsubinterpreters as interpreters
            for package in ("mtprof", "mindtorch_v2"):
                other = interpreters.create()
                try:
                    interpreters.run_string(other, f"import {package}")
                    print("it was imported")
                except interpreters.RunFailedError as error:
                    print(error)
                interpreters.destroy(other)
            print(torch.ones(2).sum().item())
        """).splitlines()
        self.assertEqual(len(said), 3)
        for line in said[:2]:
            self.assertRegex(line, "ImportError.*interpreter")
        self.assertEqual(said[2], "2.0")


if __name__ == "__main__":
    unittest.main()
