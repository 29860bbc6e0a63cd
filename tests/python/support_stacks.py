# SPDX-License-Identifier: Apache-2.0
"""What the tests of Python stacks share: an oracle for stacks, and libmtprof by its C functions."""
import ctypes
import os
import subprocess
import sys
import textwrap

import mtprof._mtprof as _mtprof
from mtprof import record_function


def expected_stack(frame):
    """The stack according to the interpreter, in the form of e.stack: innermost first."""
    lines = []
    while frame is not None:
        code = frame.f_code
        lines.append(f"{code.co_filename}({frame.f_lineno}): {code.co_qualname}")
        frame = frame.f_back
    return lines


class Marks:
    """Records scopes and remembers, by name, which stack each should have."""

    def __init__(self):
        self.expected = {}

    def __call__(self, name="mark"):
        name = f"{name} {len(self.expected)}"
        with record_function(name): self.expected[name] = expected_stack(sys._getframe())  # noqa: E701

    def check(self, test, prof):
        """Every scope has the stack it should have, but for frames of the profiler's own."""
        seen = {e.name: e.stack for e in prof.events() if e.name in self.expected}
        test.assertEqual(set(seen), set(self.expected))
        test.assertGreater(len(seen), 0)
        for name, stack in seen.items():
            test.assertEqual(stack, self.expected[name], name)


def run_script(script):
    """Runs a script in an interpreter of its own, with this one's path. One that hangs says where."""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
    watch = "import faulthandler; faulthandler.dump_traceback_later(60, exit=True)\n"
    return subprocess.run([sys.executable, "-X", "faulthandler", "-c", watch + textwrap.dedent(script)],
                          capture_output=True, text=True, env=environment, timeout=90, check=False)


# ---- libmtprof itself ----

def library_path():
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return next(line.split()[-1] for line in maps if "libmtprof" in line)


class Site(ctypes.Structure):
    _fields_ = [("word", ctypes.c_uint64), ("flags", ctypes.c_uint16), ("wants", ctypes.c_uint16),
                ("line", ctypes.c_uint32, 24), ("struct_size", ctypes.c_uint32, 8),
                ("name", ctypes.c_char_p), ("file", ctypes.c_char_p)]

    def __init__(self, **fields):
        super().__init__(struct_size=ctypes.sizeof(type(self)), **fields)


def _declare(library):
    library.mtprof_i_begin.restype = ctypes.c_uint64
    library.mtprof_i_begin.argtypes = [ctypes.POINTER(Site)]
    library.mtprof_i_op_begin.restype = ctypes.c_uint64
    library.mtprof_i_op_begin.argtypes = [ctypes.POINTER(Site), ctypes.c_void_p]
    library.mtprof_begin_named.restype = ctypes.c_uint64
    library.mtprof_begin_named.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint32]
    library.mtprof_i_end.restype = None
    library.mtprof_i_end.argtypes = [ctypes.c_uint64]
    return library


with_gil = _declare(ctypes.PyDLL(library_path()))     # calls keep the GIL
without_gil = _declare(ctypes.CDLL(library_path()))   # calls let it go

MAY_WAIT = 0x100  # trace.h


def scope(name, library=with_gil, flags=MAY_WAIT):
    """A scope begun by C code that knows nothing of Python."""
    text = name.encode()
    library.mtprof_i_end(library.mtprof_begin_named(text, len(text), flags))


_sites = {}


def op(name, library=with_gil, flags=MAY_WAIT):
    """The same for an op."""
    site = _sites.setdefault((name, flags), Site(flags=1 | flags, name=name.encode()))
    details = (ctypes.c_uint32 * 64)(96)  # struct mtprof_op: its size, and nothing else
    library.mtprof_i_end(library.mtprof_i_op_begin(site, details))


class Language(ctypes.Structure):
    """python/ext/common/py_language.h"""
    _fields_ = [("version", ctypes.c_uint32), ("hold", ctypes.PYFUNCTYPE(ctypes.c_uint32)),
                ("drop", ctypes.PYFUNCTYPE(None, ctypes.c_uint32))]


def language():
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype = ctypes.c_void_p
    get.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return Language.from_address(get(_mtprof.language, b"mtprof._mtprof.language"))


def stacks_by_name(prof):
    """Names of events with their stacks; of equal names the last."""
    return {e.name: e.stack for e in prof.events()}
