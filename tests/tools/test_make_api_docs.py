#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The API reference: a declaration's comment reaches its page, and what has no comment is listed."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

MAKER = pathlib.Path(__file__).resolve().parent.parent.parent / "tools/make_api_docs.py"
HEADER = """/* SPDX-License-Identifier: Apache-2.0
 *
 * What the header is for.
 */
#ifndef LIB_X_H
#define LIB_X_H

/** A thing. */
typedef struct lib_x {
    int a; /**< its number; not more */
    union {
        int b;
    } of;
} lib_x;

/** Does it. */
static inline int lib_inline(int a)
{
    return a;
}

/** Opens; fails with EIO. */
MT_API int lib_open(const char *path,
                    lib_x **out);
MT_API void lib_close(lib_x *x);

/* Not for users. */
MT_API int lib_i_hidden(void);
@
#endif
"""


class Maker(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="mt_api.")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "include/lib").mkdir(parents=True)

    def run_maker(self, more, *options):
        (self.root / "include/lib/x.h").write_text(HEADER.replace("@", more))
        return subprocess.run([sys.executable, MAKER, *options, "--headers", self.root / "include", self.root / "api"],
                              capture_output=True, text=True, check=False)

    def test_pages(self):
        done = self.run_maker("")
        self.assertEqual(done.returncode, 0, done.stderr)
        page = (self.root / "api/lib_x.md").read_text()
        self.assertIn("# <lib/x.h>\n\n```text\nWhat the header is for.\n```", page)
        self.assertIn("### `lib_x`\n", page)
        self.assertIn("    } of;\n} lib_x;\n```\n\nA thing.\n", page)
        self.assertIn("static inline int lib_inline(int a);\n```\n\nDoes it.\n", page)
        self.assertIn("### `lib_open`, `lib_close`\n", page)
        self.assertIn("Opens; fails with EIO.", page)
        self.assertNotIn("hidden", page)
        session = (self.root / "api/mtprof_session.md").read_text()  # ours come first
        self.assertIn("### `mtprof_session_start`\n", session)
        self.assertIn("- [lib/x.h](lib_x.md)", (self.root / "api/index.md").read_text())

    def test_what_has_no_comment_is_named(self):
        self.assertEqual(self.run_maker("", "--check").returncode, 0)
        done = self.run_maker("\nMT_API int lib_bare(void);\n", "--check")
        self.assertEqual(done.returncode, 1)
        self.assertIn("lib/x.h: lib_bare() has no comment\n", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
