#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Plants one violation of each rule in a small tree and expects tools/check_layout.py to name it."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
CHECKER = SOURCE / "tools/check_layout.py"


def header(guard, body=""):
    return f"#ifndef {guard}\n#define {guard}\n\n{body}\n#endif /* {guard} */\n"


class Layout(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="mt_layout.")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "tools").mkdir()
        shutil.copy(SOURCE / "tools/layers.toml", self.root / "tools")
        self.plant("include/mtprof/trace.h", header("MTPROF_TRACE_H", "#include <stdint.h>\n"))
        self.plant("src/base/alloc.h", header("BASE_ALLOC_H"))
        self.plant("src/base/alloc.c", "#include \"base/alloc.h\"\nvoid *f(void) { return malloc(1); }\n")
        self.plant("src/mtprof/record/ring.h", header("MTPROF_RECORD_RING_H"))

    def plant(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def run_checker(self):
        done = subprocess.run([sys.executable, CHECKER, self.root], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout.splitlines()

    def refuses(self, expected):
        status, lines = self.run_checker()
        self.assertEqual(status, 1, lines)
        self.assertIn(expected, lines)
        self.assertEqual(len(lines), 2, lines)  # this violation, the sum, and nothing else

    def accepts(self):
        status, lines = self.run_checker()
        self.assertEqual((status, len(lines)), (0, 1), lines)

    def test_clean_tree(self):
        self.accepts()

    def test_allowed_direction(self):
        self.plant("src/mtprof/control/session.c",
                   '#include "mtprof/record/ring.h"\n#include "base/alloc.h"\n#include <mtprof/trace.h>\n')
        self.accepts()

    def test_wrong_direction(self):
        self.plant("src/mtprof/read/reader.c", '\n#include "mtprof/record/ring.h"\n')
        self.refuses("src/mtprof/read/reader.c:2: layer mtprof_read may not include "
                     "src/mtprof/record/ring.h (layer mtprof_record)")

    def test_user_of_the_library_looks_inside(self):
        self.plant("cli/cli_main.c", '#include "base/alloc.h"\n')
        self.refuses("cli/cli_main.c:1: layer cli may not include src/base/alloc.h (layer base)")

    def test_base_sees_nothing(self):
        self.plant("src/base/odd.c", "#include <mtprof/trace.h>\n")
        self.refuses("src/base/odd.c:1: layer base may not include include/mtprof/trace.h "
                     "(layer mtprof_api)")

    def test_no_layer(self):
        self.plant("src/stray/stray.c", "int x;\n")
        self.refuses("src/stray/stray.c:1: belongs to no layer of tools/layers.toml")

    def test_cycle(self):
        rules = self.root / "tools/layers.toml"
        rules.write_text(rules.read_text().replace('path = "src/base"\nsees = []',
                                                   'path = "src/base"\nsees = ["mtprof_format"]'))
        self.refuses("tools/layers.toml:1: layers form a cycle: base -> mtprof_format -> base")

    def test_long_file(self):
        self.plant("src/base/long.c", "\n" * 800)
        self.accepts()
        self.plant("src/base/long.c", "\n" * 801)
        self.refuses("src/base/long.c:1: 801 lines, the limit is 800")

    def test_long_script(self):
        self.plant("tools/long.py", "\n" * 801)
        self.refuses("tools/long.py:1: 801 lines, the limit is 800")

    def test_full_folder(self):
        for number in range(27):  # src/base has three more
            self.plant(f"src/base/part{number}.c", "int x;\n")
        self.plant("src/base/part.h", header("BASE_PART_H"))
        self.accepts()
        self.plant("src/base/more.c", "int x;\n")
        self.refuses("src/base:1: 31 files, the limit is 30")

    def test_wide_line(self):
        self.plant("src/base/wide.c", "/* " + "x" * 94 + " */\nconst char *s = \"" + "x" * 100 + "\";\n")
        self.accepts()
        self.plant("src/base/wide.c", "/* " + "x" * 95 + " */\n")
        self.refuses("src/base/wide.c:1: 101 columns, the limit is 100")

    def test_torn_banner(self):
        self.plant("src/base/banner.c", "/* ---- ends ---------- */\n")
        self.accepts()
        self.plant("src/base/banner.c", "int x;\n/* ---- ends\n * ---------- */\n")
        self.refuses("src/base/banner.c:2: a section banner is one line")

    def test_duplicate_name(self):
        self.plant("src/mtprof/record/alloc.c", "int x;\n")
        self.refuses("src/mtprof/record/alloc.c:1: file name also used by src/base/alloc.c")

    def test_internal_header_named_as_a_public_one(self):
        self.plant("src/mtprof/record/trace.h", header("MTPROF_RECORD_TRACE_H"))
        self.refuses("src/mtprof/record/trace.h:1: file name also used by include/mtprof/trace.h")

    def test_allocation_outside_base(self):
        self.plant("src/mtprof/record/ring.c", "\n\nvoid f(void *p) { free (p); }\n")
        self.refuses("src/mtprof/record/ring.c:3: free is banned here")

    def test_printing_library(self):
        self.plant("src/base/noisy.c", "void f(void)\n{\n    fprintf(stderr, \"x\");\n}\n")
        self.refuses("src/base/noisy.c:3: stderr is banned here")

    def test_ending_the_process(self):
        for call in ("exit(1)", "abort()", 'getenv("HOME")', "signal(1, 0)", 'printf("x")'):
            self.plant("src/base/rude.c", f"void f(void) {{ {call}; }}\n")
            self.refuses(f"src/base/rude.c:1: {call.split('(')[0]} is banned here")

    def test_bans_look_at_code_only(self):
        self.plant("src/base/calm.c", "/* exit(1) */ // abort()\nconst char *s = \"free(p) \\\" free(p)\";\n"
                   "char q = '\"'; void f(struct t *t) { t->free(t); my_exit(1); }\n")
        self.accepts()

    def test_programs_may(self):
        for folder in ("cli", "tests/unit", "bench", "fuzz", "examples"):
            self.plant(f"{folder}/{folder.replace('/', '_')}_x.c", "void f(void) { exit(printf(\"x\")); }\n")
        self.accepts()

    def test_profiler_behind_a_header(self):
        self.plant("src/mindtorch/trace/op_trace.h",
                   header("MINDTORCH_TRACE_OP_TRACE_H", "#include <mtprof/trace.h>\ntypedef mtprof_site mt__site;\n"))
        self.plant("src/mindtorch/core/launch.c",
                   '#include "mindtorch/trace/op_trace.h"\nmt__site *s; /* mtprof_site */\n')
        self.accepts()
        self.plant("src/mindtorch/core/launch.c", '#include "mindtorch/trace/op_trace.h"\nmtprof_site *s;\n')
        self.refuses("src/mindtorch/core/launch.c:2: mtprof_site is banned here")

    def test_python_header(self):
        self.plant("src/mtprof/record/py.c", "#include <Python.h>\n")
        self.refuses("src/mtprof/record/py.c:1: Python.h is banned here")

    def test_public_header_includes(self):
        self.plant("include/mtprof/model.h", header("MTPROF_MODEL_H", "#include <mtprof/trace.h>\n"
                                                    "#include <stdbool.h>\n#include <stdio.h>\n"))
        self.refuses("include/mtprof/model.h:6: a public header may not include stdio.h")

    def test_public_header_of_the_other_library(self):
        self.plant("include/mindtorch/tensor.h", header("MINDTORCH_TENSOR_H", "#include <mtprof/trace.h>\n"))
        status, lines = self.run_checker()
        self.assertEqual(status, 1)
        self.assertIn("include/mindtorch/tensor.h:4: a public header may not include mtprof/trace.h", lines)

    def test_guards(self):
        for path, guard in (("include/mtprof/model.h", "MTPROF_MODEL_H"),
                            ("src/mtprof/record/clock.h", "MTPROF_RECORD_CLOCK_H"),
                            ("tests/harness/mt_x.h", "TESTS_HARNESS_MT_X_H")):
            self.plant(path, header("WRONG_H"))
            self.refuses(f"{path}:1: include guard should be {guard}")
            self.plant(path, header(guard))
            self.accepts()

    def test_open_work(self):
        word = "TO" + "DO"
        self.plant("src/base/later.c", f"/* {word}(#12): with an issue */\nint x;\n")
        self.accepts()
        self.plant("src/base/later.c", f"int x;\n/* {word}: some day */\n")
        self.refuses(f"src/base/later.c:2: {word} without an issue: write {word}(#123)")

    def test_registry_host(self):
        host = "files." + "pythonhosted" + ".org"
        self.plant("docs/setup.md", f"get it from https://{host}/x\n")
        self.refuses(f"docs/setup.md:1: {host} names a package registry")

    def test_machine_path(self):
        place = "/" + "work"
        self.plant("tools/setup.txt", f"ok: ./work, a/work, $HOME/work, /workshop\ncd {place}/main\n")
        self.refuses(f"tools/setup.txt:2: {place} is a path of one machine")

    def test_wide_markdown(self):
        self.plant("docs/page.md", f"# Page\n\n| {'a row ' * 20} |\n\n{'word ' * 20}end\n")
        self.plant("CHANGELOG.md", f"- {'word ' * 20}end\n")
        self.refuses("docs/page.md:5: 103 columns, the limit is 100")

    def test_rules_are_unique(self):
        self.plant("src/base/one.c", "/* One.\n *   AB1  first\n *   AB2  second\n */\n")
        self.accepts()
        self.plant("src/base/two.c", "/* Two.\n *   AB1  other\n */\n")
        self.refuses("src/base/two.c:2: AB1: the rules AB are those of src/base/one.c")
        self.plant("src/base/two.c", "/* Two.\n *   CD1  first\n *   CD1  again\n */\n")
        self.refuses("src/base/two.c:3: CD1 is defined twice")
        self.plant("src/base/two.c", "/* Two.\n *   CD1  first\n *   CD3  third\n */\n")
        self.refuses("src/base/two.c:3: CD3 is defined, CD2 is not")

    def test_cited_rules_are_defined(self):
        self.plant("src/base/one.c", "/* One.\n *   AB1  first\n */\n")
        self.plant("docs/page.md", "- F1 a rule of a page\n")
        self.plant("python/mod.py", '"""Docstring.\n\n  PY1  first\n"""\nAB7 = 1\nNAME = "AB8"\n# PY1, AB1\n')
        self.plant("src/base/two.c", 'int AB9;\nconst char *text = "AB8";\n'
                   "/* AB1 and F1, (AB1), F1 of page.md, AB1 of one.c, F1, base/one.c AB1 */\n"
                   "/* C11, AVX2, F16C, a-AB5, v1.AB5 */\n")
        self.accepts()
        for comment, message in (("/* see AB2 */", "AB2 is not a rule of src/base/one.c"),
                                 ("// F2", "F2 is not a rule of docs/page.md"),
                                 ("/* (XY1) */", "XY1 is not a rule of any file"),
                                 ("/* XY1 of one.c */", "XY1 is not a rule of one.c"),
                                 ("/* AB1 of three.c */", "AB1 is not a rule of three.c"),
                                 ("/* three.c, AB1 */", "AB1 is not a rule of three.c")):
            with self.subTest(comment=comment):
                self.plant("src/base/two.c", f"int x;\n{comment}\n")
                self.refuses(f"src/base/two.c:2: {message}")
        self.plant("src/base/two.c", "int x;\n")
        self.plant("python/mod.py", "# AB1\n# AB2\n")
        self.refuses("python/mod.py:2: AB2 is not a rule of src/base/one.c")

    def test_the_contract_has_what_is_cited(self):
        self.plant("docs/torch-contract.md", "# Contract\n\n## 1. One\n\n### 1.1 Part\n\n- 1.1.1 item\n")
        self.plant("src/base/two.c", "/* torch-contract 1, 1.1 and\n * 1.1.1 */\n")
        self.accepts()
        self.plant("src/base/two.c", "/* x\n * torch-contract 1.1, 1.2 */\n")
        self.refuses("src/base/two.c:2: docs/torch-contract.md has no item 1.2")
        self.plant("src/base/two.c", "/* x\n * (" "TC 1.1) */\n")
        self.refuses("src/base/two.c:2: TC 1 is of no page here: cite torch-contract")

    def test_build_products_are_left_alone(self):
        self.plant("build/dev/generated.c", "void f(void) { exit(1); }\n")
        self.plant("tests/golden/bad.c", "/* TO" "DO */\n")
        self.accepts()


if __name__ == "__main__":
    unittest.main(verbosity=2)
