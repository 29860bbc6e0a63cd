# SPDX-License-Identifier: Apache-2.0
"""`mtprof top` on a program that records: tables, JSON, and the screen in a terminal (tmux).

    test_top.py MTPROF LIVE_PROGRAM

What is waited for is a text on the screen; how long that takes decides nothing.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

MTPROF, PROGRAM = sys.argv[1:3]
LONG = 20  # seconds after which something that was waited for will not come


class Recorder:
    """The program that records, and does what it is told."""

    def __init__(self, folder, *more):
        self.path = os.path.join(folder, "trace.mtt")
        self.process = subprocess.Popen(
            [PROGRAM, self.path, *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self.process.pid
        line = self.process.stdout.readline()
        if line != "recording\n":
            raise RuntimeError(f"the program says {line!r}")

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ask(self, line):
        self.tell(line)
        return int(self.process.stdout.readline())

    def end(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait(LONG)
        self.process.stdout.close()
        if not self.process.stdin.closed:
            self.process.stdin.close()


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="mtprof-top-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def record(self, *more):
        recorder = Recorder(self.folder, *more)
        self.addCleanup(recorder.end)
        return recorder

    def top(self, *words, code=0, **environment):
        run = subprocess.run(
            [MTPROF, "top", *words], capture_output=True, text=True, timeout=LONG, env={**os.environ, **environment}
        )
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run.stdout if code == 0 else run.stderr


class Tables(Case):
    def rows(self, *words):
        table = json.loads(self.top("--json", "--window", "1000s", *words))
        return table, {row["name"]: row for row in table["rows"]}

    def test_counts_are_those_of_the_program(self):
        recorder = self.record("3")
        self.assertEqual(recorder.ask("run 500"), 7500)
        table, rows = self.rows(recorder.path)
        self.assertEqual(table["state"], "running")
        self.assertEqual(table["pid"], recorder.pid)
        self.assertEqual(table["lost"], 0)
        self.assertEqual(table["read_share"], 1)
        self.assertEqual(table["allocated_bytes"], 3 << 20)
        self.assertGreater(table["rss_bytes"], 0)
        self.assertEqual({name: row["calls"] for name, row in rows.items()},
                         {"train": 1500, "forward": 1500, "aten::mm": 1500, "aten::add": 1500})
        self.assertAlmostEqual(sum(row["share"] for row in rows.values()), 1)
        self.assertEqual(round(table["steps_per_second"] * table["window_seconds"]), 1500)
        # What came since.
        recorder.ask("run 100")
        self.assertEqual(self.rows(recorder.path)[1]["aten::mm"]["calls"], 1800)

    def test_groups_sort_and_filter(self):
        recorder = self.record("1")
        recorder.ask("run 10")
        table, _ = self.rows(recorder.path, "--group", "shapes", "--filter", "mm")
        self.assertEqual({(row["name"], row["shapes"]): row["calls"] for row in table["rows"]},
                         {("aten::mm", "[[8, 4]]"): 5, ("aten::mm", "[[16, 4]]"): 5})
        table, _ = self.rows(recorder.path, "--group", "module", "--filter", "aten::*")
        self.assertEqual({(row["name"], row["module"]) for row in table["rows"]},
                         {("aten::mm", "net.linear"), ("aten::add", "")})
        table, _ = self.rows(recorder.path, "--group", "thread", "--sort", "name", "--limit", "2")
        self.assertEqual([row["name"] for row in table["rows"]], ["aten::add", "aten::mm"])
        self.assertTrue(table["rows"][0]["thread"].endswith(" worker"))

    def test_what_is_open_has_its_time(self):
        recorder = self.record("1")
        recorder.ask("open a long wait")
        first = self.rows(recorder.path)[1]["a long wait"]["self_ns"]
        self.assertGreater(self.rows(recorder.path)[1]["a long wait"]["self_ns"], first)

    def test_a_process_is_named_by_its_number(self):
        recorder = self.record("1", "ring")
        recorder.ask("run 7")
        table, rows = self.rows(str(recorder.pid))
        self.assertEqual(os.path.realpath(table["trace"]), os.path.realpath(recorder.path))
        self.assertEqual(rows["train"]["calls"], 7)
        self.assertIn("records into no file", self.top(str(os.getpid()), "--once", code=1))
        self.assertIn("no such process", self.top("999999999", "--once", code=1))

    def test_ended_recordings(self):
        recorder = self.record("1")
        recorder.ask("run 5")
        recorder.ask("close")
        table, rows = self.rows(recorder.path)
        self.assertEqual((table["state"], rows["train"]["calls"]), ("closed", 5))
        text = self.top(recorder.path)  # not a terminal: one table, since it has ended
        self.assertIn("recording has ended", text)
        self.assertNotIn("\033", text)

    def test_killed_recordings(self):
        recorder = self.record("1")
        recorder.ask("run 5")
        recorder.tell("die")
        recorder.process.wait(LONG)
        table, rows = self.rows(recorder.path)
        self.assertEqual((table["state"], rows["train"]["calls"]), ("gone", 5))
        self.assertIn("process is gone", self.top(recorder.path, "--once"))

    def test_a_sample_says_what_was_read(self):
        recorder = self.record("1")
        recorder.ask("run 150000")  # more than a poll of 100 ms may read
        # Not a terminal, and running: table after table. The first one is enough.
        run = subprocess.Popen([MTPROF, "top", recorder.path, "--interval", "100ms", "--window", "1000s"],
                               stdout=subprocess.PIPE, text=True)
        lines = [run.stdout.readline() for _ in range(4)]
        run.kill()
        run.communicate()
        self.assertRegex(lines[3], r"read \d+(\.\d+)? % of the events")
        self.assertNotIn("% of the events", self.top(recorder.path, "--once", "--all", "--window", "1000s"))

    def test_lines_fit(self):
        recorder = self.record("2")
        recorder.ask("open a name that is much longer than any column of eighty characters has room for, truly")
        recorder.ask("run 10")
        for columns in (40, 80, 200):
            for group in ("op", "module", "thread", "shapes"):
                text = self.top(recorder.path, "--once", "--group", group, COLUMNS=str(columns))
                for line in text.splitlines():
                    self.assertLessEqual(len(line), columns, line)

    def test_misuse(self):
        for words, said in (
            (["x", "--interval", "1us"], "100ms to 1000s"),
            (["x", "--sort", "size"], "size"),
            (["x", "--filter", "y" * 64], "fewer than 64"),
            ([], "top"),
        ):
            self.assertIn(said, self.top(*words, code=2))
        self.assertIn("no such file", self.top(os.path.join(self.folder, "none.mtt"), "--once", code=1))
        text = os.path.join(self.folder, "text")
        with open(text, "w", encoding="ascii") as file:
            file.write("no trace\n" * 1000)
        self.assertIn("text", self.top(text, "--once", code=1))


class Terminal:
    """A terminal of a certain size that runs a shell."""

    made = 0

    def __init__(self, folder, columns, lines):
        Terminal.made += 1
        self.socket = os.path.join(folder, f"tmux{Terminal.made}")
        self.call("new-session", "-d", "-x", str(columns), "-y", str(lines), "env PS1='$ ' sh")
        self.call("set-option", "-g", "status", "off")

    def call(self, *words):
        run = subprocess.run(["tmux", "-S", self.socket, "-f", "/dev/null", *words], capture_output=True, text=True,
                             timeout=LONG, env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8"})
        if run.returncode != 0:
            raise RuntimeError(f"tmux {words}: {run.stderr}")
        return run.stdout

    def type(self, *keys):
        self.call("send-keys", *keys)

    def screen(self):
        return self.call("capture-pane", "-p").split("\n")[:-1]

    def is_alternate(self):
        return self.call("display-message", "-p", "#{alternate_on}").strip() == "1"

    def wait(self, what):
        """The screen, once what(lines) holds."""
        end = time.monotonic() + LONG
        while time.monotonic() < end:
            lines = self.screen()
            if what(lines):
                return lines
            time.sleep(0.02)
        raise AssertionError("not on the screen:\n" + "\n".join(lines))

    def wait_text(self, text):
        return self.wait(lambda lines: any(text in line for line in lines))

    def end(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True, check=False)


@unittest.skipUnless(shutil.which("tmux"), "tmux is missing: the screen is not tested")
class Screen(Case):
    def start(self, recorder, *options, columns=80, lines=24):
        terminal = Terminal(self.folder, columns, lines)
        self.addCleanup(terminal.end)
        terminal.wait(lambda lines: lines[0].startswith("$"))
        terminal.type(f"echo before; {MTPROF} top {recorder.path} -i 100ms -w 1000s {' '.join(options)}", "Enter")
        terminal.wait_text("q quit")
        return terminal

    def ended(self, terminal, code):
        """The screen after top has ended: the shell's, as it was."""
        terminal.wait(lambda lines: not terminal.is_alternate())
        terminal.type("echo code $?", "Enter")
        return terminal.wait_text(f"code {code}")

    def test_keys(self):
        recorder = self.record("2")
        recorder.ask("run 40")
        terminal = self.start(recorder)
        self.assertTrue(terminal.is_alternate())
        lines = terminal.wait_text("aten::mm")
        self.assertIn(f"pid {recorder.pid}", lines[0])
        self.assertIn("2 threads", lines[1])
        self.assertIn("3.0 MiB allocated", lines[2])
        self.assertEqual(len(lines), 24)
        self.assertTrue(lines[23].startswith("q quit"))
        for sort in ("total time", "calls", "mean time", "in order of names", "self time"):
            terminal.type("s")
            terminal.wait_text(sort)
        terminal.type("g")
        terminal.wait_text("net.linear")
        terminal.type("g")
        terminal.wait_text(" worker")
        terminal.type("g")
        terminal.wait_text("[[16, 4]]")
        terminal.type("g")
        terminal.type("/")
        terminal.type("forX", "BSpace")
        terminal.wait_text("filter: for_")
        terminal.type("Enter")
        lines = terminal.wait(lambda lines: not any("aten::" in line for line in lines))
        self.assertIn('names with "for"', lines[3])
        self.assertTrue(any(line.startswith("forward") for line in lines))
        terminal.type("/")
        terminal.wait_text("filter: _")
        terminal.type("Enter")
        terminal.wait_text("aten::mm")
        terminal.type("?")
        terminal.wait_text("Ctrl-C")
        terminal.type("x")
        terminal.wait_text("q quit")
        terminal.type("w")
        terminal.wait_text("last ")
        terminal.type("q")
        lines = self.ended(terminal, 0)
        self.assertIn("before", lines)

    def test_pause_stands_still(self):
        recorder = self.record("1")
        recorder.ask("run 3")
        terminal = self.start(recorder)
        terminal.wait_text("aten::mm")
        terminal.type("p")
        paused = terminal.wait_text("PAUSED")
        recorder.ask("open appears later")
        terminal.type("s")  # sorting works on what is there
        lines = terminal.wait_text("total time")
        self.assertFalse(any("appears later" in line for line in lines))
        self.assertEqual(lines[0], paused[0])
        terminal.type("p")
        terminal.wait_text("appears later")

    def test_resizing_and_scrolling(self):
        recorder = self.record("1")
        for i in range(60):
            recorder.ask(f"open scope {i:02}")
        terminal = self.start(recorder, "-s", "name")
        lines = terminal.wait_text("scope 17")
        self.assertIn("scope 00", lines[5])
        terminal.type("NPage")
        terminal.wait_text("scope 35")
        terminal.type("End")
        terminal.wait_text("scope 59")
        terminal.type("Home")
        terminal.wait_text("scope 00")
        terminal.type("Down")
        terminal.wait(lambda lines: "scope 01" in lines[5])
        terminal.type("Up")
        terminal.call("resize-window", "-x", "200", "-y", "50")
        lines = terminal.wait_text("scope 43")
        self.assertTrue(lines[49].startswith("q quit"))
        terminal.call("resize-window", "-x", "40", "-y", "10")
        terminal.wait(lambda lines: [line[:4] for line in lines][::9] == ["mtpr", "q qu"] and
                      lines[4].startswith("Name") and "scope 03" in lines[8])

    def test_the_end_of_the_target_is_shown(self):
        recorder = self.record("1")
        recorder.ask("run 9")
        terminal = self.start(recorder)
        terminal.wait_text("running")
        recorder.tell("die")
        recorder.process.wait(LONG)
        lines = terminal.wait_text("process is gone")
        self.assertTrue(any(line.startswith("aten::mm") for line in lines))
        self.assertTrue(terminal.is_alternate())
        terminal.type("q")
        self.ended(terminal, 0)

    def test_the_terminal_is_given_back_after_signals(self):
        recorder = self.record("1")
        recorder.ask("run 9")
        with open(MTPROF, "rb") as file:
            sanitized = b"__asan_init" in file.read()  # it has its own end for a crash
        crashes = () if sanitized else (signal.SIGSEGV, signal.SIGABRT)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, *crashes):
            terminal = self.start(recorder)
            pane = terminal.call("display-message", "-p", "#{pane_pid}").strip()
            children = subprocess.run(["ps", "-o", "pid=", "--ppid", pane], capture_output=True, text=True, check=True)
            os.kill(int(children.stdout.split()[0]), number)
            self.ended(terminal, 128 + number)
            terminal.type("stty -a", "Enter")
            terminal.wait(lambda lines: any(" icanon" in line for line in lines))
            terminal.wait(lambda lines: any(" echo " in line for line in lines))
            terminal.end()

    def test_stopped_and_continued(self):
        recorder = self.record("1")
        recorder.ask("run 9")
        terminal = self.start(recorder)
        terminal.type("C-z")
        terminal.wait(lambda lines: any("topped" in line for line in lines))
        self.assertFalse(terminal.is_alternate())
        terminal.type("fg", "Enter")
        terminal.wait_text("q quit")
        self.assertTrue(terminal.is_alternate())
        terminal.type("C-c")
        self.ended(terminal, 130)

    def test_colours(self):
        recorder = self.record("1")
        recorder.ask("run 9")
        terminal = self.start(recorder)
        self.assertIn("\033[1m", terminal.call("capture-pane", "-p", "-e"))
        terminal.end()
        terminal = self.start(recorder, "--color never")
        self.assertNotIn("\033[", terminal.call("capture-pane", "-p", "-e"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
