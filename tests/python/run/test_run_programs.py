# SPDX-License-Identifier: Apache-2.0
"""Programs of other people's style under `mtprof run`: output, errors and exit status are those of `python`."""
import os
import signal
import sys
import unittest
import zipfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support_asan import UNDER_ASAN  # noqa: E402
from support_run import RunTest  # noqa: E402

# What a program can see of how it was started. Each line would differ if something of ours were left.
SEEN = """\
import gc, inspect, os, signal, sys, threading, traceback, warnings
def look():
    print("argv", sys.argv, sys.orig_argv[1:], sys.executable)
    print("path", sys.path)
    print("main", __name__, __file__ if "__file__" in globals() else None, __package__, __spec__ and __spec__.name,
          __doc__, sorted(globals()), sys.modules["__main__"].__dict__ is globals())
    print("flags", sys.flags, sys.warnoptions, warnings.filters)
    print("hooks", sys.getprofile(), sys.gettrace(), sys.meta_path, sys.path_hooks,
          sys.excepthook is sys.__excepthook__)
    print("environment", {k: v for k, v in os.environ.items() if "MTPROF" in k or "PYTHON" in k})
    print("threads", [t.name for t in threading.enumerate()], threading.active_count())
    print("stack", [(f.function, f.lineno) for f in inspect.stack()])
    print("signals", [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD)],
          signal.pthread_sigmask(signal.SIG_BLOCK, []))
    print("files", os.dup(0), os.pipe())
    print("cache", [p for p in sys.path_importer_cache if p.endswith("start")])
    print("site", "sitecustomize" in sys.modules, os.getcwd(), os.umask(0o22), sys.getrecursionlimit())
    traceback.print_stack(file=sys.stdout)
    warnings.warn("from the outermost frame and beyond", stacklevel=3)
"""

MAIN = """
import argparse, helper
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=3)
    parser.add_argument("rest", nargs="*")
    print(parser.prog, parser.parse_args(), helper.NAME, helper.__file__)
    look()
if __name__ == "__main__":
    main()
"""


class Script(RunTest):
    def test_a_script_with_a_main_function(self):
        self.write("helper.py", "NAME = 'helper'\n")
        self.write("script.py", SEEN + MAIN)
        status, output, _ = self.run_both("script.py", "--size", "7", "a b", "")
        self.assertEqual(status, 0)
        self.assertIn("size=7", output)
        self.run_both(self.path("script.py"), "--help")
        self.assertEqual(self.run_both("script.py", "--unknown")[0], 2)

    def test_argv_that_is_no_text(self):
        self.write("script.py", "import os, sys; print([os.fsencode(a) for a in sys.argv])\n")
        self.run_both("script.py", b"\xff\xfe", "é", "--", "-q", "-o")

    def test_code_of_the_command_line(self):
        self.run_both("-c", "import sys; print(sys.argv, sys.path[0], __name__, '__file__' in globals())", "-o", "x")
        self.assertEqual(self.run_both("-c", "1/0")[0], 1)

    def test_folders_and_archives(self):
        self.write("app/__main__.py", SEEN + "look()\n")
        self.run_both("app", "x")
        with zipfile.ZipFile(self.path("app.zip"), "w") as archive:
            archive.write(self.path("app/__main__.py"), "__main__.py")
        self.run_both("app.zip", "x")

    def test_its_own_sitecustomize(self):
        # The command itself is a Python program too, and not meant here.
        self.write("site/sitecustomize.py", "import sys\n"
                   "if 'mtprof' not in sys.orig_argv: print('mine', __name__, __file__)\n")
        self.write("site/usercustomize.py", "import sys\nif 'mtprof' not in sys.orig_argv: print('yours')\n")
        self.write("script.py", "import sys, sitecustomize; print(sitecustomize.__file__, sys.path)\n")
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join((self.path("site"), os.environ["PYTHONPATH"]))}
        _, output, _ = self.run_both("script.py", env=variables)
        self.assertIn("mine sitecustomize", output)

    def test_a_broken_sitecustomize(self):
        self.write("site/sitecustomize.py", "import sys\nif 'mtprof' not in sys.orig_argv: 1 / 0\n")
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join((self.path("site"), os.environ["PYTHONPATH"]))}
        self.assertIn("ZeroDivisionError", self.run_both("-c", "print(1)", env=variables)[2])


class Module(RunTest):
    def test_a_package_with_relative_imports(self):
        self.write("package/__init__.py", "print('package', __name__)\n")
        self.write("package/part.py", "from . import other\nNAME = other.__name__\n")
        self.write("package/other.py", "")
        self.write("package/__main__.py", "from .part import NAME\nprint(NAME)\n" + SEEN
                   + "look()\nraise SystemExit(4)\n")
        self.write("package/tool.py", "from .part import NAME\nimport sys\nprint(NAME, sys.argv, __package__)\n")
        self.assertEqual(self.run_both("-m", "package", "-x", "--calls")[0], 4)
        self.run_both("-mpackage.tool", "y")

    def test_a_module_of_the_library(self):
        self.run_both("-m", "json.tool", input=b'{"a": [1, 2]}')

    def test_a_module_that_is_not_there(self):
        self.assertEqual(self.run_both("-m", "no_such_module_here")[0], 1)


class Exits(RunTest):
    def test_statuses(self):
        for code, status in (("sys.exit()", 0), ("sys.exit(3)", 3), ("sys.exit('a message')", 1), ("sys.exit(-1)", 255),
                             ("raise SystemExit", 0), ("exit(2)", 2), ("sys.exit([1])", 1), ("sys.exit(1 << 70)", 255)):
            with self.subTest(code=code):
                self.write("script.py", f"import sys\nprint('before')\n{code}\nprint('never')\n")
                self.assertEqual(self.run_both("script.py", variants=[()])[0], status)

    def test_the_end_at_once(self):
        self.write("script.py", "import os, sys\nsys.stdout = open(1, 'w')\nprint('lost')\n"
                   "os.write(1, b'kept')\nos._exit(5)\n")
        self.assertEqual(self.run_both("script.py", whole=False)[:2], (5, "kept"))

    def test_what_the_program_reports_to_nvtx_is_asked_for(self):
        self.write("script.py", "import ctypes, os\nname = 'NVTX_INJECTION64_PATH'\nget = ctypes.CDLL(None).getenv\n"
                   "get.restype = ctypes.c_char_p\npath = get(name.encode()) or b''\n"
                   "print(os.path.basename(path.decode()), os.path.exists(path), os.environ.get(name))\n")
        ours = {k: v for k, v in os.environ.items() if k != "NVTX_INJECTION64_PATH"}
        self.assertEqual(self.run_mtprof("script.py", env=ours)[:2], (0, "libmtprof_nvtx.so True None\n"))
        theirs = {**ours, "NVTX_INJECTION64_PATH": "/opt/other.so"}
        self.assertEqual(self.run_mtprof("script.py", env=theirs)[:2], (0, "other.so False /opt/other.so\n"))

    def test_another_program_takes_over(self):
        self.write("script.py", "import os, sys\n"
                   "os.execv(sys.executable, [sys.executable, '-c', 'import os, sys; "
                   "print(\"mtprof\" in sys.modules, \"MTPROF_RUN\" in os.environ); sys.exit(6)'])\n")
        self.assertEqual(self.run_both("script.py", whole=False)[:2], (6, "False False\n"))

    def test_what_is_done_at_the_end(self):
        self.write("script.py", """\
            import atexit, threading, time, weakref
            class Noisy:
                def __del__(self): print("deleted")
            kept = Noisy()
            atexit.register(print, "first registered")
            atexit.register(print, "last registered")
            atexit.register(lambda: 1 / 0)
            threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
            print("main is done")
            """)
        _, output, errors = self.run_both("script.py")
        self.assertEqual(output.splitlines()[-1], "deleted")
        self.assertIn("ZeroDivisionError", errors)


class Exceptions(RunTest):
    def test_tracebacks(self):
        self.write("other.py", "def fail(x):\n    return {}[x]\n")
        for code in ("other.fail(1)", "raise ValueError('x') from KeyError('y')", "exec('1/0')",
                     "def f(): f()\nf()", "raise ExceptionGroup('g', [ValueError(1)])", "import no_such_module_here",
                     "raise KeyboardInterrupt", "assert 1 == 2, 'why'", "compile('1 +', 'file', 'exec')"):
            with self.subTest(code=code):
                self.write("script.py", f"import other\n{code}\n")
                status, _, errors = self.run_both("script.py", variants=[()])
                self.assertNotEqual(status, 0)
                self.assertIn("script.py", errors)

    def test_under_every_call(self):
        self.write("script.py", "def f(n):\n    return f(n - 1) if n else 1 / 0\nf(3)\n")
        self.run_both("script.py")

    def test_in_threads_and_hooks(self):
        self.write("script.py", """\
            import sys, threading
            t = threading.Thread(target=lambda: 1 / 0, name="worker")
            t.start(); t.join()
            def hook(kind, value, traceback):
                print("hook", kind, value, traceback.tb_frame.f_code.co_name, traceback.tb_next)
            sys.excepthook = hook
            1 / 0
            """)
        self.assertEqual(self.run_both("script.py")[0], 1)

    def test_a_script_that_is_none(self):
        self.write("script.py", "print('never')\nx = = 1\n")
        self.assertIn("SyntaxError", self.run_both("script.py", whole=False)[2])
        self.assertEqual(self.run_both("missing.py", whole=False)[0], 2)
        self.write("imports.py", "import script\n")
        self.assertIn("SyntaxError", self.run_both("imports.py")[2])
        self.assertFalse(os.path.exists(self.path("missing.mtt")))


class Input(RunTest):
    def test_a_program_that_reads(self):
        self.write("script.py", "import sys\nname = input('name? ')\nprint(name, [l.strip() for l in sys.stdin])\n"
                   "input()\n")
        self.assertIn("EOFError", self.run_both("script.py", input=b"me\na\nb\n")[2])

    def test_the_program_is_the_input(self):
        self.run_both("-", "x", input=b"import sys\nprint(sys.argv, __name__)\n1/0\n")

    def test_closed_output(self):
        self.write("script.py", """\
            import os, sys
            print(sys.stdout, sys.stderr)
            print("x" * 100000)
            for number in range(3):
                try:
                    os.fstat(number)
                except OSError as error:
                    print(number, error, file=sys.stdout or sys.stderr)
            """)
        for closing in (">&-", "2>&-", "<&-", "> /dev/full"):
            with self.subTest(closing=closing):
                plain = self.execute("sh", "-c", f'"$0" script.py {closing}', sys.executable)
                ours = self.execute("sh", "-c", f'"$0" -m mtprof run -q -o trace.mtt script.py {closing}',
                                    sys.executable)
                self.assertEqual(ours, plain)


class OpenFiles(RunTest):
    def test_a_program_that_closes_all_files(self):
        # As daemons do. What it opens then must not be taken for the recording.
        self.write("script.py", """\
            import os
            os.closerange(3, 1024)
            files = [open(f"file{n}", "w+") for n in range(40)]
            for file in files:
                print("x" * 99999, file=file, flush=True)
            print(max(file.fileno() for file in files))
            """)
        self.run_both("script.py", whole=False)
        for n in range(40):
            with open(self.path(f"file{n}"), encoding="utf-8") as file:
                self.assertEqual(file.read(), "x" * 99999 + "\n")


class Processes(RunTest):
    @unittest.skipIf(UNDER_ASAN, "a fork in a process with threads may find AddressSanitizer's allocator locked")
    def test_a_program_that_forks(self):
        self.write("script.py", """\
            import atexit, os, sys
            atexit.register(print, "exit")
            print("before", flush=True)
            child = os.fork()
            if child == 0:
                print("child", sys.getprofile(), flush=True)
                sys.exit(3)
            _, status = os.waitpid(child, 0)
            print("parent", os.waitstatus_to_exitcode(status), flush=True)
            for _ in range(3):
                if os.fork() == 0:
                    os._exit(0)
                os.wait()
            """)
        self.assertEqual(self.run_both("script.py")[0], 0)
        self.assertIn("4 forked processes not recorded", self.run_mtprof("script.py")[2])

    @unittest.skipIf(UNDER_ASAN, "a fork in a process with threads may find AddressSanitizer's allocator locked")
    def test_multiprocessing(self):
        self.write("script.py", """\
            import multiprocessing, sys
            from concurrent.futures import ProcessPoolExecutor
            def square(x):
                return x * x, __name__, sys.argv, sys.path[0]
            def fail(x):
                raise ValueError(x)
            def quit(x):
                sys.exit(x)
            if __name__ == "__main__":
                for method in ("fork", "spawn", "forkserver"):
                    context = multiprocessing.get_context(method)
                    with context.Pool(2) as pool:
                        print(method, sorted(pool.map(square, range(4))))
                    with ProcessPoolExecutor(1, mp_context=context) as pool:
                        print(pool.submit(square, 5).result(), repr(pool.submit(fail, 6).exception()))
                    process = context.Process(target=quit, args=(7,))
                    process.start()
                    process.join()
                    print(process.exitcode)
            """)
        _, output, errors = self.run_both("script.py", "x")
        self.assertIn("spawn [(0", output)
        self.assertEqual(errors, "")

    def test_subprocesses(self):
        self.write("script.py", "import subprocess, sys\n"
                   "print(subprocess.run([sys.executable, '-c', 'import os, sys; print(sys.path, \"mtprof\" in "
                   "sys.modules, os.environ.get(\"PYTHONPATH\"))'], capture_output=True, text=True))\n")
        self.run_both("script.py")


class Signals(RunTest):
    def test_an_interrupt(self):
        self.write("script.py", "import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
        status, _, errors = self.interrupt_both("script.py")
        self.assertEqual(status, -signal.SIGINT)
        self.assertIn("KeyboardInterrupt", errors)

    def test_an_interrupt_that_is_caught(self):
        self.write("script.py", "import time\ntry:\n    print('ready', flush=True)\n    time.sleep(60)\n"
                   "except KeyboardInterrupt:\n    print('caught')\n    raise SystemExit(9)\n")
        self.assertEqual(self.interrupt_both("script.py")[0], 9)

    def test_an_interrupt_of_asyncio(self):
        self.write("script.py", "import asyncio\nasync def main():\n    print('ready', flush=True)\n"
                   "    await asyncio.sleep(60)\nasyncio.run(main())\n")
        self.assertEqual(self.interrupt_both("script.py")[0], -signal.SIGINT)

    def test_other_signals(self):
        self.write("script.py", "import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, signal.SIGUSR1):
            self.assertEqual(self.interrupt_both("script.py", number=number)[0], -number)

    def test_a_handler(self):
        self.write("script.py", "import signal, sys, time\n"
                   "signal.signal(signal.SIGTERM, lambda *_: (print('handled'), sys.exit(8)))\n"
                   "print('ready', flush=True)\ntime.sleep(60)\n")
        self.assertEqual(self.interrupt_both("script.py", number=signal.SIGTERM)[0], 8)


if __name__ == "__main__":
    unittest.main()
