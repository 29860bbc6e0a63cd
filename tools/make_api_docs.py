#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the API reference as Markdown: from public C headers, and from docstrings of the Python packages.

usage: make_api_docs.py [--check] [--headers FOLDER]... [FOLDER]

Writes FOLDER/<library>_<header>.md for each header and FOLDER/python_<module>.md for each module that can be
imported, and FOLDER/index.md. A comment before a declaration is its description; declarations that follow without
an empty line share it. With --check nothing is written: exits 1 and names each public function without a
description.
"""
import argparse
import importlib
import inspect
import pathlib
import re
import sys
import textwrap

SOURCE = pathlib.Path(__file__).resolve().parent.parent
MODULES = ("mtprof", "mtprof.events", "mindtorch_v2.profiler", "mindtorch_v2", "mindtorch_v2.nn", "mindtorch_v2.optim",
           "mindtorch_v2.autograd", "mindtorch_v2.npu", "mindtorch_v2.utils.data")
# What a header is made of, in turn: the first that fits.
PIECE = re.compile(r"""
    (?P<comment> /\*.*?\*/ )
  | (?P<directive> ^[ \t]*\#(?:[^\n]*\\\n)*[^\n]* )
  | (?P<blank> \n[ \t]*(?=\n) )
  | (?P<scope> (?:MTPROF|MT)_(?:BEGIN|END)_DECLS )
  | (?P<declaration> [A-Za-z_] (?: /\*.*?\*/ | [^;{}] | (?P<open>\{) )*? (?(open) .*?^\}[^;\n]*;? | ; ) )
  | (?P<space> \s )
""", re.X | re.S | re.M)
FUNCTION = re.compile(r"\b(?:MTPROF|MT)_API\b[^;(]*?\b(\w+)\s*\(")
NAME = (re.compile(r"^typedef\b[^({;]*\(\s*\*?\s*(\w+)\s*\)"),     # a pointer to a function
        FUNCTION,
        re.compile(r"^static inline [^(]*?(\w+)\("),
        re.compile(r"^(?:typedef )?(?:struct|enum|union) (\w+) *\{"),
        re.compile(r"^typedef\b[^(]*?(\w+)\s*\("),                      # a function's type
        re.compile(r"(\w+);\s*$"))
MACRO = re.compile(r"#\s*define\s+([A-Z]\w*)")


def prose(comment):
    """The text of a comment, without stars."""
    lines = re.sub(r"^/\*+<?|\*/$", "", comment.strip()).split("\n")
    return textwrap.dedent("\n".join(re.sub(r"^ \* ?", "", line) for line in lines)).strip()


def name_of(code):
    for pattern in NAME:
        found = pattern.search(code)
        if found:
            return found.group(1)
    return None


def read_header(path):
    """(introduction, [(description, names, code)]): groups of declarations that share a description."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"#ifdef __cplusplus.*?#\s*endif[^\n]*", "", text, flags=re.S)
    first = PIECE.match(text)
    intro = re.sub(r"^SPDX.*\n*", "", prose(first.group())) if first and first.lastgroup == "comment" else ""
    groups, described, open_group = [], None, False
    for piece in PIECE.finditer(text, first.end() if first else 0):
        kind, code = piece.lastgroup, piece.group()
        kind = "declaration" if kind == "open" else kind
        macro = MACRO.match(code) if kind == "directive" else None
        if kind == "blank":
            described, open_group = None, False
        elif kind == "comment":
            described, open_group = (prose(code) if code.startswith("/**") else None), False
        elif kind == "declaration" or (macro and described is not None and "_I_" not in macro.group(1)):
            name = macro.group(1) if macro else name_of(code)
            if name is None or "_i_" in name:
                continue
            if kind == "declaration" and "static inline" in code:
                code = code[:code.index("{")].rstrip() + ";"
            if open_group:
                groups[-1][1].append(name)
                groups[-1][2].append(code)
            else:
                groups.append((described or "", [name], [code]))
            open_group = True
    return intro, groups


def undocumented(header, groups):
    for description, names, codes in groups:
        for name, code in zip(names, codes):
            if FUNCTION.search(code) and not description:
                yield f"{header}: {name}() has no comment"


def write_header(name, intro, groups):
    out = [f"# <{name}>", "", "```text", intro, "```", ""]
    for description, names, codes in groups:
        out += ["### " + ", ".join(f"`{n}`" for n in names), ""]
        out += ["```c", "\n".join(codes), "```", ""] + ([description, ""] if description else [])
    return "\n".join(out)


def signature_of(value):
    try:
        return str(inspect.signature(value))
    except (TypeError, ValueError):
        return "(...)" if callable(value) else ""


def describe(name, value, level):
    """A Python name with its signature and docstring; a class with its methods."""
    shown = signature_of(value) if callable(value) else ""
    out = [f"{'#' * level} `{name}{shown}`", "", "```text", inspect.getdoc(value) or "", "```", ""]
    if inspect.isclass(value) and level == 3:
        for member, held in sorted(vars(value).items()):
            held = getattr(held, "__func__", held)
            if not member.startswith("_") and (callable(held) or isinstance(held, property)):
                out += describe(f"{name}.{member}", held, 4)
    return out


def write_module(module):
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    out = [f"# {module.__name__}", "", "```text", inspect.getdoc(module) or "", "```", ""]
    for name in sorted(names):
        value = getattr(module, name)
        if callable(value) and not inspect.ismodule(value):
            out += describe(name, value, 3)
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true", help="only look for functions without a comment")
    parser.add_argument("--headers", action="append", type=pathlib.Path, default=[], help="further headers, of a build")
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=SOURCE / "build/docs/api")
    options = parser.parse_args()
    pages, missing, functions = {}, [], 0
    for root in [SOURCE / "include", *options.headers]:
        for path in sorted(root.rglob("*.h")):
            name = path.relative_to(root).as_posix()
            intro, groups = read_header(path)
            missing += undocumented(name, groups)
            functions += sum(bool(FUNCTION.search(code)) for group in groups for code in group[2])
            pages[name.replace("/", "_").replace(".h", ".md")] = (f"<{name}>", write_header(name, intro, groups))
    if options.check:
        print("\n".join([*missing, f"make_api_docs: {functions} functions, {len(missing)} without a comment"]))
        return 1 if missing else 0
    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except ImportError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        pages[f"python_{name.replace('.', '_')}.md"] = (name, write_module(module))
    options.folder.mkdir(parents=True, exist_ok=True)
    for file, (_, text) in pages.items():
        (options.folder / file).write_text(text, encoding="utf-8")
    links = "\n".join(f"- [{title.strip('<>')}]({file})" for file, (title, _) in pages.items())
    (options.folder / "index.md").write_text(f"# API reference\n\n{links}\n", encoding="utf-8")
    print(f"{options.folder}: {len(pages)} pages, {functions} C functions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
