#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""tools/release.sh in a small repository: what it refuses, that trying tags nothing and notes what is missing, that
--tag tags."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent.parent / "tools/release.sh"
HEADER = "#define MTPROF_VERSION_MAJOR 1\n#define MTPROF_VERSION_MINOR 2\n#define MTPROF_VERSION_PATCH 3\n"
BACKEND = '''import pathlib
STEM = "mindtorch-{version}"


def _make(folder, name):
    (pathlib.Path(folder) / name).write_text("")
    return name


def build_sdist(folder):
    return _make(folder, STEM + ".tar.gz")


def build_wheel(folder):
    return _make(folder, STEM + ".whl")
'''
CHANGES = "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-11-16\n\n- one thing\n"


class Release(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="mt_release.")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ("tools", "include/mtprof"):
            (self.root / name).mkdir(parents=True)
        shutil.copy(SCRIPT, self.root / "tools")
        self.write("include/mtprof/version.h", HEADER)
        self.write("tools/wheel_backend.py", BACKEND.format(version="1.2.3"))
        self.write("CHANGELOG.md", CHANGES)
        self.write(".gitignore", "dist/\n__pycache__/\n")
        self.git("init", "-q")
        self.commit()

    def write(self, name, text):
        (self.root / name).write_text(text)

    def git(self, *arguments):
        done = subprocess.run(["git", "-C", self.root, "-c", "user.name=n", "-c", "user.email=e@example.com",
                               *arguments], capture_output=True, text=True, check=True)
        return done.stdout

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")

    def release(self, *arguments):
        who = {"GIT_COMMITTER_NAME": "n", "GIT_COMMITTER_EMAIL": "e@example.com", "PYTHON": sys.executable,
               "PATH": "/usr/bin:/bin", "HOME": str(self.root)}
        return subprocess.run([self.root / "tools/release.sh", *arguments], capture_output=True, text=True,
                              check=False, env=who)

    def refused(self, words):
        done = self.release("--tag")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(words, done.stderr)
        self.assertFalse((self.root / "dist").exists())

    def test_trying_tags_nothing(self):
        done = self.release()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(path.name for path in (self.root / "dist").iterdir()),
                         ["mindtorch-1.2.3.tar.gz", "mindtorch-1.2.3.whl"])
        self.assertEqual(self.git("tag"), "")

    def test_tag(self):
        done = self.release("--tag")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.git("tag"), "v1.2.3\n")
        shutil.rmtree(self.root / "dist")
        self.refused("the tag v1.2.3 exists already")

    def test_changes(self):
        self.write("new.txt", "")
        self.refused("changes that are not committed")

    def test_versions_differ(self):
        self.write("tools/wheel_backend.py", BACKEND.format(version="1.2.4"))
        self.commit()
        self.refused("include/mtprof/version.h says 1.2.3, the wheel 1.2.4")

    def test_changelog(self):
        self.write("CHANGELOG.md", CHANGES.replace(" - 2026-11-16", ""))
        self.commit()
        self.refused("no section '## [1.2.3] - YYYY-MM-DD'")
        tried = self.release()
        self.assertEqual(tried.returncode, 0, tried.stderr)
        self.assertIn("not ready: CHANGELOG.md has no section", tried.stdout)
        self.assertIn("--tag' would refuse", tried.stdout)
        shutil.rmtree(self.root / "dist")
        self.write("CHANGELOG.md", CHANGES.replace("[Unreleased]\n", "[Unreleased]\n\n- another thing\n"))
        self.commit()
        self.refused("1 entries that are still 'Unreleased'")

    def test_usage(self):
        self.assertEqual(self.release("--frobnicate").returncode, 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
