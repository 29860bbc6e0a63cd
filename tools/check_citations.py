# SPDX-License-Identifier: Apache-2.0
"""Checks what comments and pages cite. Part of check_layout.py.

The head of a file lists its rules, one "WR1  text" each: a tag of one to four capitals, a number, two
blanks. A page lists them as "- F1 text" or as "| D1 | text". A tag belongs to one file, its numbers are
consecutive, and an id is defined once. A cited id whose tag is known must be defined. So must one that is
cited in brackets or with its file: (WR1), "WR1 of writer.h", "writer.h, WR1". "torch-contract 3.5.3" must
be an item of docs/torch-contract.md.
"""
import bisect
import io
import re
import tokenize

C_TEXT = {".c", ".h", ".def", ".cu", ".cuh"}
TEXT = C_TEXT | {".py", ".md"}
PAGE = "docs/torch-contract.md"
NAME = r"([A-Z]{1,4})(\d{1,2})"
FILE = r"`?([\w/]+\.(?:[ch]|def|py|md))`?"
STRING = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.S)
RULE = re.compile(rf"^[ \t]*[*#]?[ \t]+{NAME}  +\S", re.M)
PAGE_RULE = re.compile(rf"^[-|] {NAME} \S", re.M)
CITED = re.compile(rf"(?<![\w.%$-]){NAME}(?!\w|\.\w)")
IN_BRACKETS = re.compile(rf"\({NAME}\)")
OF_FILE = re.compile(rf"\b{NAME} of {FILE}")
FILE_THEN = re.compile(rf"(?<!of )(?<!of `)(?<![\w/]){FILE},? {NAME}(?!\w|\.\w| of )")
STANDARDS = {"C11", "C17"}
ITEM = re.compile(r"^(?:#+|-) (\d+(?:\.\d+)*)\.? ", re.M)
NUMBER = r"\d+(?:\.\d+)*"
ITEMS = re.compile(rf"torch-contract(?:\.md)?,?[\s*#]+({NUMBER}(?:(?:,|,? and| to)[\s*#]+{NUMBER})*)")
OTHERS = re.compile(r"\bTC \d|(?<![-\w])[Cc]ontract \d+\.\d|\bSPEC (?:section )?\d")


def prose(path, text):
    """Yields (offset, piece): the comments and docstrings of a source, a page as it is."""
    if path.suffix in C_TEXT:
        yield from ((m.start(), m[0]) for m in STRING.finditer(text) if m[0][0] == "/")
    elif path.suffix == ".py":
        starts = [0]
        for line in text.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT or token.string.startswith(('"""', 'r"""')):
                yield starts[token.start[0] - 1] + token.start[1], token.string
    else:
        yield 0, text


class Citations:
    def __init__(self):
        self.rules = {}   # (tag, number) -> path
        self.homes = {}   # tag -> path
        self.cited = []   # (path, line, tag, number, file that must have it, whether its tag may be unknown)
        self.items = []   # (path, line, item of the page)
        self.page = set()
        self.bad = []

    def read(self, path, text):
        """Takes what one file defines and cites."""
        ends = [m.end() for m in re.finditer("\n", text)]
        if path.as_posix() == PAGE:
            self.page = set(ITEM.findall(text))
        try:
            pieces = list(prose(path, text))
        except (tokenize.TokenError, SyntaxError):
            return  # other tools say so
        for start, piece in pieces:
            def line(match, start=start):
                return bisect.bisect_right(ends, start + match.start(1)) + 1
            for m in (PAGE_RULE if path.suffix == ".md" else RULE).finditer(piece):
                self.define(path, line(m), m[1], int(m[2]))
            self.cited += ((path, line(m), m[1], m[2], None, True) for m in CITED.finditer(piece)
                           if m[0] not in STANDARDS)
            self.cited += ((path, line(m), m[1], m[2], None, False) for m in IN_BRACKETS.finditer(piece))
            self.cited += ((path, line(m), m[1], m[2], m[3], False) for m in OF_FILE.finditer(piece))
            self.cited += ((path, line(m), m[2], m[3], m[1], False) for m in FILE_THEN.finditer(piece)
                           if m[2] + m[3] not in STANDARDS)
            self.items += ((path, line(m), n) for m in ITEMS.finditer(piece) for n in re.findall(NUMBER, m[1]))
            for m in OTHERS.finditer(piece):
                self.bad.append((path, bisect.bisect_right(ends, start + m.start()) + 1,
                                 f"{m[0]} is of no page here: cite torch-contract"))

    def define(self, path, line, tag, number):
        home = self.homes.setdefault(tag, path)
        if home != path:
            self.bad.append((path, line, f"{tag}{number}: the rules {tag} are those of {home}"))
        elif (tag, number) in self.rules:
            self.bad.append((path, line, f"{tag}{number} is defined twice"))
        elif number > 1 and (tag, number - 1) not in self.rules:
            self.bad.append((path, line, f"{tag}{number} is defined, {tag}{number - 1} is not"))
        self.rules.setdefault((tag, number), path)

    def violations(self):
        """Yields (path, line, message)."""
        yield from self.bad
        said = set()
        for path, line, tag, number, file, unknown in self.cited:
            home = self.rules.get((tag, int(number)))
            wrong = home is None and not (unknown and tag not in self.homes)
            if file and home and not f"/{home.as_posix()}".endswith(f"/{file}"):
                wrong = True
            if wrong and (path, line, tag, number) not in said:
                said.add((path, line, tag, number))
                yield path, line, f"{tag}{number} is not a rule of {file or self.homes.get(tag, 'any file')}"
        for path, line, item in self.items:
            if item not in self.page:
                yield path, line, f"{PAGE} has no item {item}"
