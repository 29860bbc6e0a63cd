#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the rules no compiler checks: length, include direction, names, banned calls, guards, open
to-dos, citations, and what must not be in a file at all (registry hosts, paths of one machine).

usage: check_layout.py [ROOT]

Reads ROOT/tools/layers.toml. Prints one line per violation as path:line: message; exits 1 if any.
"""
import collections
import pathlib
import re
import subprocess
import sys
import tomllib

import check_citations

CODE = {".c", ".h", ".def", ".cu", ".cuh", ".py", ".js", ".sh", ".cmake"}
C_CODE = {".c", ".h", ".cu", ".cuh"}
C_TEXT = C_CODE | {".def"}
SKIPPED = {"build", ".git", ".venv", ".cache", "__pycache__", "dist"}
DATA = {"golden", "corpus"}  # under tests/: inputs, not ours to judge
LAYERED = ("src/", "include/", "cli/", "python/ext/")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(["<])([^">]+)[">]', re.M)
NOISE = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.S)
BANNER = re.compile(r"\s*/\* ?--")
LITERAL_LAST = re.compile(r"\"[\s,;)}\]\\]*$")
OPEN = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX)\b(?!\(#\d+\))")
# Written in pieces, because this file is checked as well.
HOSTS = [".".join(parts) for parts in (
    ("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("npmjs", "com"), ("yarnpkg", "com"),
    ("crates", "io"), ("proxy", "golang", "org"), ("rubygems", "org"), ("anaconda", "org"),
    ("repo1", "maven", "org"), ("maven", "apache", "org"), ("deb", "debian", "org"),
    ("security", "debian", "org"), ("archive", "ubuntu", "com"), ("download", "pytorch", "org"),
    ("docker", "io"), ("ghcr", "io"), ("quay", "io"))]
HOST = re.compile(r"(?<![\w-])(?:[\w-]+\.)*(?:" + "|".join(map(re.escape, HOSTS)) + r")(?![\w-])")
MACHINE = re.compile(r"(?<![\w.}>)~/-])/(?:work|root|home/\w+)(?![\w-])")


class Checker:
    def __init__(self, root):
        self.root = root
        self.rules = tomllib.loads((root / "tools/layers.toml").read_text())
        self.layers = self.rules["layer"]
        self.seen = {}  # file name -> first path that has it
        self.citations = check_citations.Citations()

    def files(self):
        """Every file git would commit; outside a repository, every file that is not a build product."""
        listed = subprocess.run(["git", "-C", self.root, "ls-files", "-co", "--exclude-standard", "-z"],
                                capture_output=True, check=False)
        if listed.returncode == 0 and (self.root / ".git").exists():
            names = map(pathlib.Path, filter(None, listed.stdout.decode().split("\0")))
        else:
            names = (p.relative_to(self.root) for p in self.root.rglob("*"))
        return sorted(n for n in names if not SKIPPED & set(n.parts) and (self.root / n).is_file())

    def layer_of(self, path):
        """The layer with the longest matching path prefix, or None outside every layer."""
        hits = [(len(spec["path"]), name) for name, spec in self.layers.items()
                if path.as_posix().startswith(spec["path"] + "/")]
        return max(hits)[1] if hits else None

    def resolve(self, target, source):
        """The file of ours that an include names: next to the includer, or under an include
        folder."""
        for base in (source.parent, *map(pathlib.Path, ("include", "src", "python/ext", "."))):
            if (self.root / base / target).is_file():
                return base / target
        return None

    def table(self):
        """Mistakes in the layer table itself: unknown names, and cycles."""
        def reach(name, path):
            if name in path:
                return path[path.index(name):] + [name]
            return next(filter(None, (reach(n, path + [name])
                                      for n in self.layers[name]["sees"])), None)
        for name, spec in self.layers.items():
            for other in spec["sees"]:
                if other not in self.layers:
                    yield 1, f"layer {name} sees {other}, which does not exist"
                    return
        loop = next(filter(None, (reach(n, []) for n in self.layers)), None)
        if loop:
            yield 1, "layers form a cycle: " + " -> ".join(loop)

    def full_folders(self, paths):
        """Folders with more files than a reader takes in at a glance."""
        count = collections.Counter(p.parent for p in paths
                                    if p.parts[0] != "tests" or not DATA & set(p.parts))
        for folder, n in sorted(count.items()):
            if n > self.rules["max_files"]:
                yield folder, 1, f"{n} files, the limit is {self.rules['max_files']}"

    def check(self, path):
        """Yields (line, message) for each violation in one file."""
        raw = (self.root / path).read_bytes()
        if b"\0" in raw or (path.parts[0] == "tests" and DATA & set(path.parts)):
            return
        text = raw.decode(errors="replace")
        for pattern, what in ((HOST, "names a package registry"), (MACHINE, "is a path of one machine")):
            for match in pattern.finditer(text):
                yield line_of(text, match), f"{match.group(0)} {what}"
        if path.suffix in check_citations.TEXT and path.name != "CHANGELOG.md":
            self.citations.read(path, text)
        if path.suffix == ".md" and path.name != "CHANGELOG.md":
            yield from self.check_columns(path, text)
        if path.suffix not in CODE and path.name != "dev":
            return
        lines = text.count("\n")
        if lines > self.rules["max_lines"]:
            yield 1, f"{lines} lines, the limit is {self.rules['max_lines']}"
        for match in OPEN.finditer(text):
            yield line_of(text, match), f"{match.group(0)} without an issue: write {match.group(0)}(#123)"
        yield from self.check_columns(path, text)
        if path.suffix in C_CODE:
            yield from self.check_c(path, text)

    def check_columns(self, path, text):
        """Wide lines, but for literals that do not fit and rows of Markdown tables, which cannot be broken;
        section banners that are not one line."""
        limit = self.rules["max_columns"].get(path.suffix[1:])
        for number, line in enumerate(text.split("\n"), 1):
            table = path.suffix == ".md" and line.startswith("|")
            if limit and len(line) > limit and not table and not LITERAL_LAST.search(line):
                yield number, f"{len(line)} columns, the limit is {limit}"
            if path.suffix in C_TEXT and BANNER.match(line) and not line.endswith("*/"):
                yield number, "a section banner is one line"

    def check_c(self, path, text):
        public = path.parts[0] == "include"
        yield from self.check_name(path, public)
        yield from self.check_includes(path, text, public)
        yield from self.check_bans(path, text)
        if path.suffix == ".h":
            parts = path.parts[1:] if path.parts[0] in ("include", "src") else path.parts
            guard = re.sub(r"\W", "_", "_".join(parts)).upper()
            if not re.search(rf"^#ifndef {guard}\n#\s*define {guard}\n", text, re.M):
                yield 1, f"include guard should be {guard}"

    def check_name(self, path, public):
        """Names are unique in the repository; public headers within their library."""
        key = path.as_posix() if public else path.name
        clash = self.seen.setdefault(key, path)
        if clash == path and not public:
            clash = next((p.relative_to(self.root)
                          for p in (self.root / "include").rglob(path.name)), path)
        if clash != path:
            yield 1, f"file name also used by {clash}"

    def check_includes(self, path, text, public):
        mine = self.layer_of(path)
        if mine is None and path.as_posix().startswith(LAYERED):
            yield 1, "belongs to no layer of tools/layers.toml"
        for match in INCLUDE.finditer(text):
            quote, target = match.groups()
            found = self.resolve(target, path)
            theirs = self.layer_of(found) if found else None
            if mine and theirs and theirs != mine and theirs not in self.layers[mine]["sees"]:
                yield line_of(text, match), f"layer {mine} may not include {found} (layer {theirs})"
            if public and (quote != "<" or not (target in self.rules["public"]["headers"]
                                                or target.startswith(path.parts[1] + "/"))):
                yield line_of(text, match), f"a public header may not include {target}"

    def check_bans(self, path, text):
        bare = NOISE.sub(blank, text)
        for ban in self.rules["ban"]:
            if any(path.as_posix() == a or path.as_posix().startswith(a + "/") for a in ban["only_in"]):
                continue
            for match in INCLUDE.finditer(text):
                if match.group(2) in ban.get("headers", ()):
                    yield line_of(text, match), f"{match.group(2)} is banned here"
            patterns = []
            if "calls" in ban:
                patterns.append(rf"(?<![\w.>])(?:{'|'.join(ban['calls'])})(?=\s*\()")
            if "words" in ban:
                patterns.append(rf"(?<![\w.>])(?:{'|'.join(ban['words'])})(?!\w)")
            for pattern in patterns:
                for match in re.finditer(pattern, bare):
                    yield line_of(bare, match), f"{match.group(0)} is banned here"


def blank(match):
    """Comments and literals become blanks, so that lines and columns stay."""
    return re.sub(r"[^\n]", " ", match.group(0))


def line_of(text, match):
    return text.count("\n", 0, match.end()) + 1


def main():
    checker = Checker(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve())
    paths = checker.files()
    bad = [("tools/layers.toml", *v) for v in checker.table()]
    bad += checker.full_folders(paths)
    bad += [(path, *v) for path in paths for v in checker.check(path)]
    bad += checker.citations.violations()
    for path, line, message in bad:
        print(f"{path}:{line}: {message}")
    print(f"check_layout: {len(paths)} files, {len(bad)} violations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
