# SPDX-License-Identifier: Apache-2.0
"""What makes mtprof.flight_recorder dump by itself, each in a program of its own. Waits are long: they only tell what
happens from what never does."""
import glob
import os
import signal
import subprocess
import sys
import textwrap
import time
import unittest

import mtprof
from support_asan import UNDER_ASAN
from support_folder import FolderTest

MTPROF = os.path.join(os.path.dirname(mtprof.__file__), "../../cli/mtprof")  # of the build tree
WAIT_S = 120
ROUNDS = 50 if os.environ.get("MT_LONG") == "1" else 2

HEAD = """
    import collections, itertools, os, signal, sys, threading, time
    import mtprof
    recorder = mtprof.flight_recorder(sys.argv[1], name="job", distance=0, %s)
"""


class Triggers(FolderTest):
    def start(self, arguments, text):
        code = textwrap.dedent(HEAD % arguments) + textwrap.dedent(text)
        return subprocess.Popen([sys.executable, "-c", code, self.folder], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def run_program(self, arguments, text):
        """The exit status and the standard error of a program that ends."""
        with self.start(arguments, text) as program:
            _, errors = program.communicate(timeout=WAIT_S)
            return program.returncode, errors.decode(errors="replace")

    def dumps(self):
        """The metadata of the dumps, in their order."""
        paths = sorted(glob.glob(self.path("job-*.mtt")))
        return [mtprof.load(path).metadata() for path in paths]

    def wait_for_dump(self, program):
        end = time.monotonic() + WAIT_S
        while not glob.glob(self.path("job-*.mtt")):
            if program.poll() is not None or time.monotonic() > end:
                program.kill()
                self.fail("no dump: %r" % (program.communicate(),))
            time.sleep(0.01)

    def test_exception(self):
        code, errors = self.run_program("on_exception=True", """
            recorder.start()
            raise ValueError("the loss is gone")
        """)
        self.assertEqual(code, 1)
        self.assertIn("ValueError: the loss is gone", errors)
        self.assertEqual([(d["dump_trigger"], d["dump_reason"]) for d in self.dumps()],
                         [("exception", "ValueError: the loss is gone")])

    def test_exception_in_the_block_and_in_a_thread(self):
        code, errors = self.run_program("on_exception=True", """
            try:
                with recorder:
                    def fail():
                        raise KeyError("thread")
                    thread = threading.Thread(target=fail)
                    thread.start()
                    thread.join()
                    raise OSError("block")
            except OSError:
                print(sys.excepthook is sys.__excepthook__, threading.excepthook is threading.__excepthook__,
                      file=sys.stderr)
        """)
        self.assertEqual(code, 0, errors)
        self.assertIn("KeyError", errors)
        self.assertIn("True True", errors)
        self.assertEqual([d["dump_reason"] for d in self.dumps()], ["KeyError: 'thread'", "OSError: block"])

    def test_other_hooks_are_called(self):
        code, errors = self.run_program("on_exception=True, on_oom=True", """
            def users(kind, error, trace):
                print("the program's own hook", file=sys.stderr)
            sys.excepthook = users
            recorder.start()
            raise MemoryError("no room")
        """)
        self.assertIn("the program's own hook", errors)
        self.assertEqual([d["dump_trigger"] for d in self.dumps()], ["memory"])

    def test_out_of_memory_before_the_exception_leaves(self):
        code, errors = self.run_program("on_oom=True", """
            import mindtorch_v2 as torch
            with recorder:
                try:
                    torch.empty(1 << 55)
                except (MemoryError, RuntimeError) as error:
                    print("dumped:", recorder.counts()["dumps"], file=sys.stderr)
                    raise SystemExit(0)
        """)
        self.assertEqual(code, 0, errors)
        self.assertIn("dumped: 1", errors)
        (dump,) = self.dumps()
        self.assertEqual(dump["dump_trigger"], "memory")
        self.assertIn("memory", dump["dump_reason"])

    def test_exit(self):
        code, errors = self.run_program("on_exit=True, on_trigger=lambda *what: print(what, file=sys.stderr)", """
            recorder.start()
            with mtprof.record_function("last"):
                pass
        """)
        self.assertEqual(code, 0, errors)
        self.assertIn("('exit', 'exit')", errors)
        self.assertEqual([d["dump_trigger"] for d in self.dumps()], ["exit"])

    def test_signal(self):
        code, errors = self.run_program("on_signal='USR1', on_trigger=lambda *what: came.set()", """
            came = threading.Event()
            recorder.start()
            os.kill(os.getpid(), signal.SIGUSR1)
            print("came:", came.wait(%d), file=sys.stderr)
        """ % WAIT_S)
        self.assertEqual(code, 0, errors)
        self.assertIn("came: True", errors)
        self.assertEqual([d["dump_trigger"] for d in self.dumps()], ["signal"])

    def test_sigterm_still_ends_the_program(self):
        code, errors = self.run_program("on_signal=signal.SIGTERM", """
            recorder.start()
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(%d)
        """ % WAIT_S)
        self.assertEqual(code, -signal.SIGTERM, errors)
        self.assertEqual([d["dump_trigger"] for d in self.dumps()], ["signal"])

    @unittest.skipIf(UNDER_ASAN, "a fork in a process with threads may find AddressSanitizer's allocator locked")
    def test_a_forked_child_ends_quietly(self):
        code, errors = self.run_program("on_signal='TERM', hang='1h', on_exception=True, on_exit=True", """
            recorder.start()
            child = os.fork()
            if child == 0:
                sys.exit(3)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=sys.stderr)
        """)
        self.assertEqual((code, errors), (0, "3\n"))
        self.assertEqual([d["dump_trigger"] for d in self.dumps()], ["exit"])

    def test_slow_step(self):
        code, errors = self.run_program("slow_step=True, on_trigger=lambda *what: came.set()", """
            came = threading.Event()
            with recorder:
                for round in range(20):
                    for _ in range(40):
                        time.sleep(0.001)
                        recorder.step()
                    time.sleep(0.1 * 2 ** min(round, 5))
                    recorder.step()
                    if came.wait(1):
                        break
        """)
        self.assertEqual(code, 0, errors)
        self.assertIn("slow step", [d["dump_trigger"] for d in self.dumps()])

    def test_another_ranks_trigger(self):
        told = []
        with mtprof.flight_recorder(self.folder, name="job", distance=0,
                                    on_trigger=lambda *what: told.append(what)) as recorder:
            recorder.trigger("rank 3: slow step")
            recorder.trigger("mine", kind="asked")
            with self.assertRaisesRegex(ValueError, "no kind of trigger"):
                recorder.trigger("x", kind="nothing")
        self.assertEqual(told, [("asked", "mine")])
        self.assertEqual([d["dump_trigger"] for d in self.dumps()], ["elsewhere", "asked"])

    def test_wrong_arguments(self):
        for arguments in ({"on_signal": "NOSUCH"}, {"on_signal": -1}, {"on_signal": 2.5}, {"slow_step": 1},
                          {"slow_step": "x"}, {"hang": 0}, {"hang": "soon"}):
            with self.subTest(arguments), self.assertRaisesRegex(ValueError, next(iter(arguments))):
                mtprof.flight_recorder(self.folder, **arguments)
        with self.assertRaises(TypeError):
            mtprof.flight_recorder(self.folder, on_trigger=3)

    # ---- hangs ----

    def hang(self, text, *wanted):
        for _ in range(ROUNDS):
            for old in glob.glob(self.path("job-*.mtt")):
                os.unlink(old)
            program = self.start("hang='100ms'", text)
            self.wait_for_dump(program)
            program.kill()
            program.communicate()
            dump = self.dumps()[0]
            self.assertEqual(dump["dump_trigger"], "hang")
            for part in wanted:
                self.assertIn(part, dump["dump_stacks"])
        shown = subprocess.run([MTPROF, "info", *glob.glob(self.path("job-*.mtt"))], check=True,
                               stdout=subprocess.PIPE, timeout=WAIT_S).stdout.decode()
        self.assertIn("\nstacks      thread ", shown)

    def test_deadlock_of_two_threads(self):
        self.hang("""
            first, second, both = threading.Lock(), threading.Lock(), threading.Barrier(2)
            def wait_for_second():
                with first:
                    both.wait()
                    second.acquire()
            def wait_for_first():
                with second:
                    both.wait()
                    first.acquire()
            threads = [threading.Thread(target=f, name=f.__name__) for f in (wait_for_second, wait_for_first)]
            recorder.start()
            recorder.step()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        """, '"wait_for_second" (most recent', "in wait_for_second", "in wait_for_first", "in join", "in futex (")

    def test_loop_in_c_that_holds_the_lock(self):
        self.hang("""
            def spin():
                all(itertools.repeat(1))
            recorder.start()
            recorder.step()
            spin()
        """, "its holder is in C code", "in spin", ", running (")

    @unittest.skipIf(UNDER_ASAN, "AddressSanitizer's interceptors are in place of read")
    def test_blocked_read(self):
        self.hang("""
            ours, _ = os.pipe()
            def read_batch():
                os.read(ours, 1)
            recorder.start()
            recorder.step()
            read_batch()
        """, "in read_batch", "sleeping in read (", "#0  read+0x")

    def test_sleep_in_c(self):
        self.hang("""
            def wait_for_file_system():
                time.sleep(1000)
            recorder.start()
            recorder.step()
            wait_for_file_system()
        """, "in wait_for_file_system", "sleeping in ", "nanosleep")


if __name__ == "__main__":
    unittest.main()
