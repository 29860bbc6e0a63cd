#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The man page and the shell completions against the command itself.

usage: test_cli_docs.py MTPROF
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
MTPROF = pathlib.Path(sys.argv.pop(1)).resolve()

BASH = r"""
source "$1"; shift
COMP_WORDS=("$@")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_mtprof
printf '%s\n' "${COMPREPLY[@]}"
"""


def complete(*words):
    """What the command says may come next, without descriptions."""
    done = subprocess.run([MTPROF, "__complete", *words], stdout=subprocess.PIPE, text=True, check=True)
    return [line.split("\t")[0] for line in done.stdout.splitlines()]


def commands():
    return [word for word in complete("") if not word.startswith("-") and word not in ("help", *programs())]


def need_programs(test):
    """Skips where none of them can run."""
    if not programs():
        test.skipTest("mtprof-run was not built")
    if b"__asan_init" in MTPROF.read_bytes():
        test.skipTest("Python loads extensions with AddressSanitizer only where its library was loaded first")


def programs():
    """Programs of ours that were built: not where Python's part is left out."""
    return [name for name in ("run", "view", "query", "parquet") if (MTPROF.parent / f"mtprof-{name}").exists()]


def sections():
    """The man page's text by subsection, as written."""
    found, name = {}, ""
    for line in (SOURCE / "docs/mtprof.1").read_text(encoding="utf-8").splitlines():
        if line.startswith(".Ss "):
            name = line[4:]
        elif line.startswith(".Sh "):
            name = line[4:]
        found[name] = found.get(name, "") + line + "\n"
    return found


class ManPage(unittest.TestCase):
    def documented(self, section):
        text = sections()[section]
        return {"--" + name for name in re.findall(r"^\.It.* Fl Fl ([\w-]+)", text, re.M)}

    def test_every_command_has_a_section(self):
        for name in commands():
            self.assertIn(name, sections())

    def test_every_option_is_documented_and_every_documented_one_exists(self):
        everywhere = self.documented("Options of every command")
        traces = self.documented("Options of commands that read a trace")
        for name in commands():
            with self.subTest(command=name):
                options = set(complete(name, "--")) - everywhere
                self.assertLessEqual(everywhere, set(complete(name, "--")))
                if name not in ("check", "recover", "ps", "status", "start", "stop", "dump", "attach",
                                "top", "steps", "merge", "stragglers"):
                    self.assertLessEqual(traces, options)
                    options -= traces
                self.assertEqual(options, self.documented(name))

    def test_letters_agree(self):
        for name in commands():
            shown = subprocess.run([MTPROF, "help", name], stdout=subprocess.PIPE, text=True, check=True).stdout
            letters = dict(re.findall(r"^  -(\w), --([\w-]+)", shown, re.M))
            text = sections()[name] + sections()["Options of every command"]
            documented = dict(re.findall(r"^\.It Fl (\w) , Fl Fl ([\w-]+)", text, re.M))
            self.assertEqual(letters, documented, name)

    def test_programs(self):
        need_programs(self)
        for name in programs():
            with self.subTest(program=name):
                shown = subprocess.run([MTPROF, "help", name], stdout=subprocess.PIPE, text=True, check=True).stdout
                options = re.findall(r"^  (-\w,|   ) (--[\w-]+)", shown, re.M)
                self.assertEqual([option for _, option in options], complete(name, "--"))
                self.assertEqual({option for _, option in options}, self.documented(name))
                documented = re.findall(r"^\.It Fl (\w) , Fl Fl ([\w-]+)", sections()[name], re.M)
                self.assertEqual([(letter[1], option[2:]) for letter, option in options if letter.strip()], documented)
                self.assertLessEqual(max(map(len, shown.splitlines())), 80)

    def test_every_export_format_is_listed(self):
        formats = [word for word in complete("export", "") if word != ":files"]
        listed = re.findall(r"^\.It (\w+) Ta", sections()["export"], re.M)
        self.assertEqual(formats, listed)

    def test_it_renders_without_complaint(self):
        groff = shutil.which("groff")
        if groff is None:
            self.skipTest("groff is not here")
        done = subprocess.run([groff, "-mdoc", "-Tutf8", "-ww", SOURCE / "docs/mtprof.1"], check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.stderr.decode(), "")
        text = re.sub(".\b|\x1b\\[\\d*m", "", done.stdout.decode())  # bold is letters struck over, or escapes
        self.assertTrue("EXIT STATUS" in text)


class Help(unittest.TestCase):
    def test_nothing_is_wider_than_a_terminal(self):
        for name in ["", *commands()]:
            arguments = ["help", name] if name else ["help"]
            shown = subprocess.run([MTPROF, *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout
            for line in shown.splitlines():
                self.assertLessEqual(len(line), 80, line)


class Bash(unittest.TestCase):
    def setUp(self):
        self.bash = shutil.which("bash")
        if self.bash is None:
            self.skipTest("bash is not here")
        folder = tempfile.TemporaryDirectory(prefix="mt_cli.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("run.mtt", "other.json"):
            (self.folder / name).touch()

    def replies(self, *words):
        done = subprocess.run([self.bash, "-c", BASH, "bash", SOURCE / "cli/completion/mtprof.bash", MTPROF, *words],
                              cwd=self.folder, stdout=subprocess.PIPE, text=True, check=True)
        return sorted(filter(None, done.stdout.splitlines()))

    def test_commands(self):
        self.assertEqual(self.replies("re"), ["recover", "report"])
        self.assertEqual(self.replies("help", "di"), ["diff"])

    def test_programs(self):
        need_programs(self)
        self.assertEqual(self.replies("ru"), ["run"])
        self.assertEqual(self.replies("run", "--re"), ["--repeat"])
        self.assertEqual(self.replies("run", "--calls", "r"), ["run.mtt"])
        self.assertEqual(self.replies("run", "-o", "o"), ["other.json"])
        self.assertEqual(self.replies("run", "script.py", "--re"), [])

    def test_options_and_their_values(self):
        self.assertEqual(self.replies("report", "--time"), ["--time-unit"])
        self.assertEqual(self.replies("report", "--format", "t"), ["table", "torch"])
        self.assertEqual(self.replies("report", "-f", "c"), ["csv"])
        self.assertEqual(self.replies("report", "--format", "=", "m"), ["markdown"])
        self.assertEqual(self.replies("report", "--group", "shapes,st"), ["shapes,stack:5", "shapes,step"])

    def test_files(self):
        self.assertEqual(self.replies("report", "r"), ["run.mtt"])
        self.assertEqual(self.replies("report", "--format", "csv", ""), ["other.json", "run.mtt"])
        self.assertEqual(self.replies("export", "chrome", "-o", "o"), ["other.json"])
        self.assertIn("chrome", self.replies("export", "c"))


class Zsh(unittest.TestCase):
    def test_it_parses(self):
        zsh = shutil.which("zsh")
        if zsh is None:
            self.skipTest("zsh is not here")
        subprocess.run([zsh, "-n", SOURCE / "cli/completion/_mtprof"], check=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
