#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""mtprof run -- PROGRAM: usage: test_run_program.py MTPROF CUDA_CLIENT FAKE_CUDA [CLIENT]

CUDA_CLIENT is tests/support/programs/cuda_client.c, which uses FAKE_CUDA, a libcuda and libcupti of our own. CLIENT is
tests/support/programs/nvtx_client.c, compiled with NVIDIA's headers; without it the cases that need it are skipped.
"""
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

MTPROF = pathlib.Path(sys.argv.pop(1)).resolve()
TREE = MTPROF.parent.parent / "python"
CUDA_CLIENT, FAKE_CUDA = pathlib.Path(sys.argv.pop(1)).resolve(), pathlib.Path(sys.argv.pop(1)).resolve()
CLIENT = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None


def need_client(function):
    return unittest.skipIf(CLIENT is None, "NVTX's headers were not there when this was built")(function)


class Run(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mt_run."))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def mtprof(self, *words, status=0, command=MTPROF, **environment):
        done = subprocess.run([command, *map(str, words)], cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, **environment}, check=False, timeout=60)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def names(self, trace):
        """{name: count} of a trace's table."""
        shown = self.mtprof("report", "--json", "--limit", "all", trace).stdout
        return {row["key"]: row["count"] for row in json.loads(shown)["rows"]}

    def test_it_can_be_stopped_and_started(self):
        program = ("import ctypes, os, sys\n"
                   "collector = ctypes.CDLL(os.environ['INTEL_LIBITTNOTIFY64'])\n"
                   "getattr(collector, '__itt_api_init')(ctypes.create_string_buffer(4096), 0)\n"
                   "print('ready', flush=True)\n"
                   "sys.stdin.read()\n")
        sockets = self.folder / "s"
        run = subprocess.Popen([MTPROF, "run", "-q", "-o", "t.mtt", "--", sys.executable, "-c", program], text=True,
                               cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={**os.environ, "MTPROF_CONTROL": str(sockets)})
        try:
            self.assertEqual(run.stdout.readline(), "ready\n")
            listed = json.loads(self.mtprof("ps", "--json", "--folder", sockets).stdout)["processes"]
            self.assertEqual([row["recording"] for row in listed], ["on"])
            self.assertTrue(listed[0]["path"].endswith("t.mtt"))
            pid = listed[0]["pid"]
            self.assertIn("t.mtt: ", self.mtprof("stop", pid, "--folder", sockets).stdout)
            self.mtprof("start", pid, "--folder", sockets, "-o", "more.mtt")
        finally:
            _, said = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 0, said)
        self.assertEqual(os.listdir(sockets), [])
        for trace in ("t.mtt", "more.mtt"):
            self.mtprof("check", trace)

    @need_client
    def test_ranges_of_a_program(self):
        done = self.mtprof("run", "-o", "t.mtt", "--", CLIENT, "5")
        self.assertEqual(done.stdout, "")
        self.assertIn("mtprof: t.mtt, ", done.stderr)
        self.assertIn("none lost", done.stderr)
        self.assertIn("  mtprof report t.mtt\n", done.stderr)
        self.assertEqual(self.names("t.mtt"), {"outer": 1, "load": 1, "elsewhere": 1, "again": 5})
        self.mtprof("check", "t.mtt")
        self.assertIn(str(CLIENT), self.mtprof("info", "t.mtt").stdout)
        self.mtprof("export", "t.mtt", "-o", "t.json")
        events = json.loads((self.folder / "t.json").read_text())["traceEvents"]
        load = [e for e in events if e.get("name") == "load" and e["ph"] == "X"][0]["args"]
        self.assertEqual((load["domain"], load["category"], load["payload"]), ("client", "loading", 42))
        self.assertTrue(any(e.get("name") == "mark é" for e in events))

    @need_client
    def test_the_summary_can_be_left_out(self):
        self.assertEqual(self.mtprof("run", "-q", "-o", "t.mtt", "--", CLIENT).stderr, "")
        self.assertTrue((self.folder / "t.mtt").exists())
        self.assertNotIn("Self CPU", self.mtprof("run", "-n", "0", "-o", "t.mtt", "--", CLIENT).stderr)

    @need_client
    def test_other_formats_and_folders(self):
        done = self.mtprof("run", "--path", "a/b", "-o", "t.json.gz", "--", CLIENT)
        self.assertEqual([p.name for p in (self.folder / "a/b").iterdir()], ["t.json.gz"])
        self.assertIn("mtprof: a/b/t.json.gz, ", done.stderr)
        self.assertEqual(self.names("a/b/t.json.gz")["outer"], 1)

    @need_client
    def test_a_ring_keeps_the_latest(self):
        self.mtprof("run", "--ring", "64K", "-o", "t.mtt", "--", CLIENT, "100000")
        self.assertLess(self.names("t.mtt")["again"], 100000)
        self.assertLess((self.folder / "t.mtt").stat().st_size, 1 << 20)

    @need_client
    def test_a_program_that_is_killed(self):
        done = self.mtprof("run", "-o", "t.mtt", "--", CLIENT, "kill", status=-signal.SIGKILL)
        self.assertIn("killed by signal 9", done.stderr)
        self.assertEqual(self.names("t.mtt"), {"outer": 1, "load": 1, "elsewhere": 1, "unfinished": 1})
        self.assertIn("copy", self.mtprof("recover", "t.mtt", "-o", "u.mtt").stdout)  # it was recovered already

    @need_client
    def test_processes_have_files_of_their_own(self):
        done = self.mtprof("run", "-o", "t.mtt", "--", CLIENT, "fork", "7", status=7)
        others = [p.name for p in self.folder.glob("t.*.mtt")]
        self.assertEqual(len(others), 1)
        self.assertIn(others[0], done.stderr)
        self.assertEqual(self.names(others[0]), {"child": 1, "in child": 1})
        self.assertEqual(self.names("t.mtt"), {"outer": 1, "load": 1, "elsewhere": 1})
        done = self.mtprof("run", "-o", "s.mtt", "--", "sh", "-c", f"'{CLIENT}'; exit 3", status=3)
        self.assertEqual(len(list(self.folder.glob("s.*.mtt"))), 1)
        self.assertIn("Another process: ", done.stderr)

    @need_client
    def test_a_collector_of_another_tool_is_replaced(self):
        done = self.mtprof("run", "-o", "t.mtt", "--", CLIENT, NVTX_INJECTION64_PATH="/opt/other.so")
        self.assertIn("NVTX_INJECTION64_PATH was /opt/other.so", done.stderr)
        self.assertEqual(self.names("t.mtt")["outer"], 1)

    @need_client
    def test_collectors_are_found_from_the_command(self):
        for i, where in enumerate(("lib", "lib/python3.12/site-packages/mtprof")):  # a prefix, a wheel
            (self.folder / f"{i}/bin").mkdir(parents=True)
            (self.folder / f"{i}" / where).mkdir(parents=True)
            command = shutil.copy(MTPROF, self.folder / f"{i}/bin")
            for name in ("libmtprof.so.0", "libmtprof_cupti.so.0", "libmtprof_nvtx.so", "libmtprof_itt.so",
                         "libmtprof_cuda.so"):
                shutil.copy(MTPROF.parent.parent / name, self.folder / f"{i}" / where)
            self.mtprof("run", "-o", f"{i}.mtt", "--", CLIENT, command=command)
            self.assertEqual(self.names(f"{i}.mtt")["outer"], 1)
        lonely = shutil.copy(MTPROF, self.folder / "mtprof")
        self.assertIn("libmtprof_nvtx.so was not found",
                      self.mtprof("run", "--", "true", command=lonely, status=1).stderr)

    @unittest.skipIf(platform.machine() != "x86_64", "libcupti of our own is for x86-64")
    def test_work_of_a_gpu(self):
        """Every kernel is there with its call, those that are in flight at the exit included."""
        done = self.mtprof("run", "-o", "t.mtt", "--", CUDA_CLIENT, FAKE_CUDA, 1000, CUPTI_LIBRARY=str(FAKE_CUDA))
        self.assertEqual(done.stdout, "")
        self.assertIn("1,000 events, none lost\n", done.stderr)
        self.assertLess(done.stderr.index("fill(float*, int)"), done.stderr.index("cudaLaunchKernel"))
        self.assertLess(max(map(len, done.stderr.splitlines())), 81)
        self.assertEqual(self.names("t.mtt"), {"cudaLaunchKernel": 1000, "fill(float*, int)": 1000})
        self.mtprof("check", "t.mtt")
        self.mtprof("export", "t.mtt", "-o", "t.json")
        events = json.loads((self.folder / "t.json").read_text())["traceEvents"]
        calls = [e["args"]["correlation"] for e in events if e.get("cat") == "cuda_runtime"]
        work = [e["args"]["correlation"] for e in events if e.get("cat") == "kernel"]
        self.assertEqual(sorted(calls), sorted(work))

    @unittest.skipIf(platform.machine() != "x86_64", "libcupti of our own is for x86-64")
    def test_dependencies_of_a_graph(self):
        """Arrows between the work of a replay, on request, through all formats and back."""
        environment = {"CUPTI_LIBRARY": str(FAKE_CUDA)}
        self.mtprof("run", "-q", "-o", "plain.json", "--", CUDA_CLIENT, FAKE_CUDA, 0, 5, **environment)
        self.assertNotIn("graph_dependency", (self.folder / "plain.json").read_text())
        self.mtprof("run", "-q", "-o", "t.mtt", "--", CUDA_CLIENT, FAKE_CUDA, 0, 5, MTPROF_CUPTI="dependencies",
                    **environment)
        self.mtprof("export", "t.mtt", "-o", "t.json")
        self.mtprof("export", "t.json", "-o", "again.json")
        self.mtprof("export", "t.mtt", "-o", "t.pftrace")
        flows = (self.folder / "t.pftrace").read_bytes()  # fields 47 and 48 of a TrackEvent
        begun = {flows[at.end():at.end() + 8] for at in re.finditer(b"\xf9\x02", flows)}
        ended = [flows[at.end():at.end() + 8] for at in re.finditer(b"\x81\x03", flows)]
        self.assertEqual(sum(flow in begun for flow in ended), 5 * 4)
        for trace in ("t.json", "again.json"):
            self.mtprof("check", trace)
            events = json.loads((self.folder / trace).read_text())["traceEvents"]
            nodes = {(e["tid"], e["ts"]): e["args"] for e in events if e.get("cat") == "kernel"}
            ends = {phase: {e["id"]: nodes[e["tid"], e["ts"]] for e in events
                            if e.get("cat") == "graph_dependency" and e["ph"] == phase} for phase in "sf"}
            self.assertEqual(len(ends["s"]), 5 * 4)
            for number, to in ends["f"].items():
                origin = ends["s"][number]
                self.assertEqual(origin["correlation"], to["correlation"])
                self.assertIn(origin["graph node id"], to["graph dependencies"])
        said = self.mtprof("run", "-o", "u.mtt", "--", CUDA_CLIENT, FAKE_CUDA, 0, MTPROF_CUPTI="arrows",
                           **environment).stderr
        self.assertIn("GPUs: cupti: MTPROF_CUPTI: 'arrows' is neither waits nor dependencies", said)

    @unittest.skipIf(platform.machine() != "x86_64", "libcupti of our own is for x86-64")
    def test_a_gpu_that_cannot_be_recorded(self):
        done = self.mtprof("run", "-o", "t.mtt", "--", CUDA_CLIENT, FAKE_CUDA, 1, CUPTI_LIBRARY="/nothing.so")
        self.assertIn("mtprof: run: GPUs: cupti: CUPTI_LIBRARY=/nothing.so cannot be opened", done.stderr)
        self.assertIn("0 events, none lost\n", done.stderr)
        self.assertNotIn("mtprof report", done.stderr)

    def test_a_program_without_either(self):
        done = self.mtprof("run", "--", "sh", "-c", "echo out; exit 5", status=5)
        self.assertEqual(done.stdout, "out\n")
        self.assertIn("nothing recorded: sh did not use CUDA\n", done.stderr)
        self.assertLess(max(map(len, done.stderr.splitlines())), 81)
        self.assertEqual(list(self.folder.iterdir()), [])
        self.assertIn("killed by signal 11",
                      self.mtprof("run", "--", "sh", "-c", "kill -SEGV $$", status=-signal.SIGSEGV).stderr)
        self.assertEqual(self.mtprof("run", "-q", "--", "true").stderr, "")

    def test_arguments_and_input_are_the_programs(self):
        done = self.mtprof("run", "-q", "--", "printf", "%s|", "-o", "--", "a b", "")
        self.assertEqual(done.stdout, "-o|--|a b||")
        done = subprocess.run([MTPROF, "run", "-q", "--", "cat"], input=b"input", stdout=subprocess.PIPE, check=True)
        self.assertEqual(done.stdout, b"input")

    def test_what_cannot_be_run(self):
        (self.folder / "plain").write_text("")
        self.assertIn("no such program", self.mtprof("run", "--", "./nothing", status=127).stderr)
        self.assertIn("without '--'", self.mtprof("run", "--", "nothing.py", status=127).stderr)
        self.mtprof("run", "--", "./plain/x", status=127)
        self.assertIn("Permission denied", self.mtprof("run", "--", self.folder, status=126).stderr)
        if os.geteuid() != 0:
            self.mtprof("run", "--", "./plain", status=126)

    def test_what_cannot_be_recorded(self):
        self.mtprof("run", "-o", "no/t.mtt", "--", "true", status=1)
        self.mtprof("run", "-o", ".", "--", "true", status=2)
        (self.folder / "t.mtt").mkdir()
        self.mtprof("run", "-o", "t.mtt", "--", "true", status=1)
        for words in (["-o", "t.foo"], ["--ring", "1"], ["--ring", "x"], ["--overhead", "3"],
                      ["--rows", "x"], ["--json"], ["--calls"]):
            self.mtprof("run", *words, "--", "true", status=2)
        self.mtprof("run", "--", status=2)
        self.assertIn("-- PROGRAM", self.mtprof("run", "--help", "--").stdout)

    @unittest.skipUnless(TREE.is_dir(), "the Python packages were not built")
    def test_options_for_python_are_told_from_programs(self):
        environment = {"PYTHONPATH": str(TREE), "PATH": f"{MTPROF.parent}:{os.environ['PATH']}"}
        listed = subprocess.run([sys.executable, "-c", "from mtprof.run.run_command import OPTIONS\n"
                                 "print(*('--' + option.name for option in OPTIONS if option.value))"],
                                env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True, check=True)
        self.assertIn("--duration", listed.stdout.split())
        for option in listed.stdout.split():
            if option not in ("--output", "--overhead", "--path", "--ring", "--rows"):
                done = self.mtprof("run", option, "3", "--", "true", status=2)
                self.assertIn(f"unknown option '{option}'", done.stderr)
        done = self.mtprof("-m", "mtprof", "run", "-q", "--", "printf", "%s", "-c", command=sys.executable,
                           **environment)
        self.assertEqual(done.stdout, "-c")

    def test_ignored_signals_stay_ignored(self):
        for number in (signal.SIGCHLD, signal.SIGHUP):
            done = subprocess.run([MTPROF, "run", "-q", "--", sys.executable, "-c", "import signal, sys\n"
                                   f"sys.exit(3 + (signal.getsignal({int(number)}) is signal.SIG_IGN))"], check=False,
                                  preexec_fn=lambda n=number: signal.signal(n, signal.SIG_IGN))
            self.assertEqual(done.returncode, 4)

    def test_signals_are_passed_on(self):
        script = "trap 'echo got; exit 4' TERM; echo ready; while :; do sleep 0.02; done"
        with subprocess.Popen([MTPROF, "run", "--", "sh", "-c", script], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True) as running:
            self.assertEqual(running.stdout.readline(), "ready\n")
            running.terminate()
            self.assertEqual(running.stdout.readline(), "got\n")
            self.assertEqual(running.wait(30), 4)


if __name__ == "__main__":
    unittest.main(verbosity=0)
