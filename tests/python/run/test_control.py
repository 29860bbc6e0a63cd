# SPDX-License-Identifier: Apache-2.0
"""Programs that listen on their control socket: the protocol as docs/control.md has it, and the command."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

import mtprof
from support_asan import UNDER_ASAN
from support_run import PYTHON, RUN, RunTest, TIMEOUT_S

ROUNDS = 1000 if os.environ.get("MT_LONG") == "1" else 50
MTPROF = [os.path.join(os.path.dirname(mtprof.__file__), "../../cli/mtprof")]  # of the build tree

# Does a line of its standard input after the other, and answers with a line.
PROGRAM = """
    import os, sys, threading, time
    import mtprof
    def work():
        with mtprof.record_function("work"):
            pass
    print("ready", flush=True)
    for line in sys.stdin:
        exec(line)
        print("done", flush=True)
"""


class ControlTest(RunTest):
    """Has a folder for sockets, whose path is short, and programs that listen there."""

    def setUp(self):
        super().setUp()
        sockets = tempfile.TemporaryDirectory(prefix="mt_ctl.", dir="/tmp")
        self.addCleanup(sockets.cleanup)
        self.sockets = os.path.join(sockets.name, "s")
        self.environment = {**os.environ, "MTPROF_CONTROL": self.sockets}
        self.write("program.py", PROGRAM)

    @contextlib.contextmanager
    def program(self, *words, environment=None, errors=""):
        """A process that listens; it has ended when the block has, with status 0."""
        process = subprocess.Popen(words or [*PYTHON, "program.py"], cwd=self.folder, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=environment or self.environment)
        try:
            self.assertEqual(process.stdout.readline(), "ready\n")
            yield process
            _, said = process.communicate(timeout=TIMEOUT_S)
            self.assertEqual(process.returncode, 0, said)
            if errors is not None:
                self.assertEqual(said, errors)
            self.said = said
        finally:
            process.kill()
            process.communicate()

    def do(self, process, line):
        process.stdin.write(line + "\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), "done\n")

    @contextlib.contextmanager
    def connection(self, pid):
        """ask(request) -> answer"""
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(TIMEOUT_S)
            peer.connect(f"{self.sockets}/{pid}.sock")
            file = peer.makefile("rw")
            hello = json.loads(file.readline())
            self.assertEqual((hello["mtprof"], hello["control"], hello["pid"]), (mtprof.__version__, 1, pid))

            def ask(do, **members):
                file.write(json.dumps({"do": do, **members}) + "\n")
                file.flush()
                return json.loads(file.readline())
            yield ask

    def names(self, name):
        """{name: count} of a trace."""
        return {row.key: row.count for row in mtprof.load(self.path(name)).key_averages()}

    def command(self, *words, status=0):
        done = subprocess.run([*MTPROF, *map(str, words)], cwd=self.folder, capture_output=True, text=True,
                              env=self.environment, timeout=TIMEOUT_S, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    # ---- the protocol ----

    def test_start_and_stop(self):
        with self.program() as process, self.connection(process.pid) as ask:
            state = ask("status")
            self.assertEqual((state["ok"], state["recording"], state["pid"]), (True, 0, process.pid))
            self.assertTrue(state["program"].endswith("program.py"), state)
            self.do(process, "work()")
            state = ask("start", path=self.path("a.mtt"))
            self.assertEqual((state["ok"], state["recording"], state["by_control"]), (True, 1, True), state)
            self.do(process, "work(); work()")
            self.assertEqual(ask("status")["begins"], 2)
            refused = ask("start", path=self.path("b.mtt"))
            self.assertEqual((refused["ok"], refused["status"]), (False, "EBUSY"))
            self.assertIn("a.mtt", refused["error"])
            stopped = ask("stop")
            self.assertEqual((stopped["ok"], stopped["recording"], stopped["path"]), (True, 0, self.path("a.mtt")))
            self.assertEqual(ask("stop")["status"], "ESTATE")
        self.assertEqual(self.names("a.mtt"), {"work": 2})
        self.assertIn("program.py", mtprof.load(self.path("a.mtt")).metadata()["command"])
        self.assertEqual(os.listdir(self.sockets), [])

    def test_details(self):
        with self.program() as process, self.connection(process.pid) as ask:
            self.assertTrue(ask("start", path=self.path("a.mtt"), calls=True, stacks=True)["ok"])
            self.do(process, "work()")
            self.assertTrue(ask("stop")["ok"])
            self.assertTrue(ask("start", path=self.path("ring.mtt"), ring_bytes=1 << 20)["ok"])
            self.assertTrue(ask("stop")["ok"])
            refused = ask("start", path=self.path("nowhere/a.mtt"))
            self.assertEqual(refused["status"], "EIO", refused)
            self.assertEqual(ask("start", path="a.mtt")["status"], "EINVAL")
        self.assertTrue(any("program.py" in name and "work" in name for name in self.names("a.mtt")))

    def test_the_programs_own_recording_stays_its_own(self):
        with self.program() as process, self.connection(process.pid) as ask:
            self.do(process, "p = mtprof.profile(path='own.mtt'); p.start()")
            self.assertIn("by itself", ask("stop")["error"])
            self.assertEqual(ask("start", path=self.path("a.mtt"))["status"], "EBUSY")
            self.do(process, "work(); p.stop()")
            # One that was started from outside gives way to it.
            self.assertTrue(ask("start", path=self.path("a.mtt"))["ok"])
            self.do(process, "work()")
            self.do(process, "p = mtprof.profile(path='own2.mtt'); p.start(); work(); p.stop()")
            self.assertEqual(ask("status")["recording"], 0)
        self.assertEqual(self.names("own.mtt"), {"work": 1})
        self.assertEqual(self.names("own2.mtt"), {"work": 1})
        self.assertEqual(self.names("a.mtt"), {"work": 1})

    def test_a_program_that_ends_while_it_records(self):
        with self.program() as process, self.connection(process.pid) as ask:
            self.assertTrue(ask("start", path=self.path("a.mtt"))["ok"])
            self.do(process, "work()")
        self.assertTrue(mtprof.load(self.path("a.mtt")).health().ok)
        self.assertEqual(self.names("a.mtt"), {"work": 1})

    def test_a_main_thread_that_is_busy_elsewhere(self):
        with self.program() as process, self.connection(process.pid) as ask:
            process.stdin.write("sys.stdin.readline()\n")  # outside the interpreter
            process.stdin.flush()
            self.assertTrue(ask("start", path=self.path("a.mtt"))["ok"])
            self.assertTrue(ask("stop")["ok"])
            process.stdin.write("go on\n")
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), "done\n")

    def test_rounds_leak_nothing(self):
        path = self.path("a.mtt")
        # AddressSanitizer keeps what was freed; without that the memory is what is in use.
        sanitizer = f"{os.environ.get('ASAN_OPTIONS', '')}:quarantine_size_mb=0:thread_local_quarantine_size_kb=0"
        with self.program(environment={**self.environment, "ASAN_OPTIONS": sanitizer}) as process:
            process.stdin.write("while not os.path.exists('end'): work(); time.sleep(0.001)\n")
            process.stdin.flush()
            for number in range(ROUNDS):
                with self.connection(process.pid) as ask:
                    self.assertTrue(ask("start", path=path)["ok"])
                    self.assertTrue(ask("stop")["ok"])
                if number == 9:
                    files, threads, kib = self.uses(process.pid)
            after = self.uses(process.pid)
            self.assertEqual(after[:2], (files, threads))
            self.assertLess(after[2], kib + 16 * 1024)
            self.write("end", "")
            self.assertEqual(process.stdout.readline(), "done\n")
        self.assertTrue(mtprof.load(path).health().ok)

    def uses(self, pid):
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            kib = int(re.search(r"VmRSS:\s*(\d+)", file.read())[1])
        return len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task")), kib

    @unittest.skipIf(UNDER_ASAN, "a fork in a process with threads may find AddressSanitizer's allocator locked")
    def test_fork_and_api(self):
        with self.program() as process, self.connection(process.pid) as ask:
            self.do(process, "import mtprof.control as c; assert c.path() == c.listen()")
            self.do(process, "pid = os.fork(); os._exit(3 if c.path() else 0) if pid == 0 else None; "
                             "assert os.waitpid(pid, 0)[1] == 0")
            self.assertTrue(ask("status")["ok"])
            self.do(process, "c.close(); assert c.path() is None; c.close()")
            self.assertEqual(os.listdir(self.sockets), [])
            self.do(process, f"assert c.listen({self.sockets!r}) == c.path()")

    def test_nothing_listens_by_default(self):
        for value in (None, "", "0"):
            environment = {**os.environ}
            environment.pop("MTPROF_CONTROL", None)
            if value is not None:
                environment["MTPROF_CONTROL"] = value
            with self.program(environment=environment) as process:
                self.do(process, "from mtprof import _mtprof; assert _mtprof.control_path() is None")
                self.do(process, "assert 'mtprof.control' not in sys.modules")

    def test_a_variable_that_is_wrong_is_a_warning(self):
        status, _, errors = self.execute(*PYTHON, "-c", "import mtprof", env={**os.environ, "MTPROF_CONTROL": "yes"})
        self.assertEqual(status, 0)
        self.assertIn("MTPROF_CONTROL=yes: it must be 1, 0 or an absolute path", errors)

    # ---- the command ----

    def test_commands(self):
        self.assertIn("No process listens.", self.command("ps").stdout)
        with self.program() as process:
            pid = process.pid
            shown = self.command("ps").stdout
            self.assertRegex(shown, rf"\n +{pid}  off +- +- +- +")
            self.assertLess(max(map(len, shown.splitlines())), 81)
            self.assertIn("recording  off", self.command("status", pid).stdout)
            done = self.command("start", pid, "-o", "a.mtt", "--shapes")
            self.assertIn(f"Process {pid} records to {self.path('a.mtt')}", done.stdout)
            self.do(process, "work()")
            self.assertRegex(self.command("status", pid).stdout, r"events +1 event of 1 thread, none lost")
            listed = json.loads(self.command("ps", "--json").stdout)["processes"]
            self.assertEqual([(row["pid"], row["recording"], row["begins"]) for row in listed], [(pid, "on", 1)])
            self.assertIn("d.mtt: what process", self.command("dump", pid, "-o", "d.mtt", "--reason", "test").stdout)
            self.assertIn("a.mtt: 1 event in ", self.command("stop", pid).stdout)
            self.assertIn("does not record", self.command("stop", pid, status=1).stderr)
            self.assertIn("a.mtt", self.command("attach", pid, "--duration", "10ms", "-o", "a.mtt").stdout)
            self.assertIn(str(pid), self.command("__complete", "stop", "").stdout.split())
        self.assertEqual(self.names("d.mtt"), {"work": 1})
        self.assertEqual(mtprof.load(self.path("d.mtt")).metadata()["dump_reason"], "test")
        self.assertIn(f"there is no process {pid}", self.command("status", pid, status=1).stderr)
        self.assertIn("'x' is not the number of a process", self.command("status", "x", status=2).stderr)

    def test_attach_until_it_is_interrupted(self):
        with self.program() as process:
            attach = subprocess.Popen([*MTPROF, "attach", str(process.pid), "-o", "a.mtt"], cwd=self.folder,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment)
            self.assertIn("records to", attach.stderr.readline())
            self.do(process, "work()")
            attach.send_signal(signal.SIGINT)
            output, _ = attach.communicate(timeout=TIMEOUT_S)
            self.assertEqual(attach.returncode, 0)
            self.assertIn("a.mtt: 1 event in ", output)
        self.assertEqual(self.names("a.mtt"), {"work": 1})

    def test_attach_says_what_would_be_needed(self):
        with subprocess.Popen(["sleep", "100"]) as sleeper:
            try:
                said = self.command("attach", sleeper.pid, status=1).stderr
            finally:
                sleeper.kill()
        self.assertIn("is no Python program", said)
        if sys.version_info >= (3, 14):
            self.skipTest("this Python can be told to listen")
        environment = {**os.environ, "MTPROF_CONTROL": "0"}
        with self.program(environment=environment) as process:
            said = self.command("attach", process.pid, status=1).stderr
            self.assertIn("cannot be told to from outside (3.14 can): start it with MTPROF_CONTROL=1", said)

    def test_attach_to_a_program_that_does_not_listen(self):
        python = shutil.which("python3.14")
        if python is None:
            self.skipTest("there is no Python 3.14 here, whose sys.remote_exec() this needs")
        if sys.version_info[:2] != (3, 14):
            self.skipTest("the extension was built for another Python than 3.14")
        with self.program(python, "program.py", environment={**os.environ, "MTPROF_CONTROL": "0"}) as process:
            self.command("attach", process.pid, "--duration", "10ms", "-o", "a.mtt", "--folder", self.sockets)

    # ---- mtprof run ----

    def test_mtprof_run_can_be_stopped(self):
        words = [*RUN, "-o", "run.mtt", "program.py"]
        with self.program(*words, errors=None) as process, self.connection(process.pid) as ask:
            state = ask("status")
            self.assertEqual((state["recording"], state["by_control"]), (1, False))
            self.assertEqual(os.path.basename(state["path"]), "run.mtt")
            self.do(process, "work()")
            self.assertTrue(ask("stop")["ok"])
            self.do(process, "work()")
            self.assertTrue(ask("start", path=self.path("more.mtt"))["ok"])
            self.do(process, "work(); work(); work()")
        self.assertIn("Recording stopped early: it was told to, by 'mtprof stop'.", self.said)
        self.assertEqual(self.names("run.mtt"), {"work": 1})
        self.assertEqual(self.names("more.mtt"), {"work": 3})


if __name__ == "__main__":
    unittest.main()
