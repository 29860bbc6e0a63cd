# SPDX-License-Identifier: Apache-2.0
"""The last tier, "itt": names and nesting through ITT, which torch reports ops to while emit_itt() is active.

torch asks for the name of a collector once, when it is imported: ours is libmtprof_itt.so, and prepare() names it
before. It is opened when it is first used.
"""
import ctypes
import os
import sys

from mtprof import _mtprof

TIER_VARIABLE = "MTPROF_TORCH_TIER"
COLLECTOR_VARIABLE = "INTEL_LIBITTNOTIFY64"
MISSING = "inputs, sequence numbers, allocations and other threads' ops are not reported through ITT"

_library = os.path.join(os.path.dirname(os.path.abspath(_mtprof.__file__)), "libmtprof_itt.so")
_ranges = []  # torch's emit_itt(), while a window records


def prepare():
    """Makes torch take our collector where the tier is asked for, it was not imported yet, and has no other one."""
    if os.environ.get(TIER_VARIABLE) == "itt" and "torch" not in sys.modules:
        os.environ.setdefault(COLLECTOR_VARIABLE, _library)


def is_loaded():
    """Whether torch has taken our collector."""
    import torch.profiler.itt
    if os.environ.get(COLLECTOR_VARIABLE) != _library or not torch.profiler.itt.is_available():
        return False
    torch.profiler.itt.range_push("mtprof")  # the first use
    torch.profiler.itt.range_pop()
    try:
        ctypes.CDLL(_library, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return False
    return True


def start():
    """Ops of this thread are reported from now on."""
    import torch
    ranges = torch.autograd.profiler.emit_itt()
    ranges.__enter__()
    _ranges.append(ranges)


def stop():
    """They are no longer."""
    while _ranges:
        _ranges.pop().__exit__(None, None, None)
