# SPDX-License-Identifier: Apache-2.0
"""libmtprof_torch: attaching to the libtorch of this process (mtprof/torch.h)."""
import collections
import ctypes
import os

import torch
from mtprof import _mtprof
from mtprof._warnings import warn
from mtprof.torch import _itt

OVERLOADS, ANNOTATIONS = 1, 2  # enum mtprof_torch_option
TIERS = {"names": 1, "full": 2, "compiled": 3, "itt": 0}  # enum mtprof_torch_tier; 0: without libmtprof_torch

Info = collections.namedtuple("Info", "tier memory missing threads_refused inputs_unreadable")
Info.__doc__ = """How torch is observed.

tier: "full", "compiled", "names" (names, nesting, threads and scopes only) or "itt" (names and nesting of the thread
that starts a recording). memory: whether allocations are reported.
missing: what is missing and why, "" when nothing is. threads_refused: threads whose allocations another
profiler held. inputs_unreadable: inputs that were not what torch's layout says, shown as none.
"""


class TorchHostError(RuntimeError):
    """torch cannot be observed; the text says why."""


class _Info(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("tier", ctypes.c_uint32), ("memory", ctypes.c_bool),
                ("reserved", ctypes.c_bool * 7), ("missing", ctypes.c_char_p), ("refused", ctypes.c_uint64),
                ("unreadable", ctypes.c_uint64)]


def _load():
    folder = os.path.dirname(os.path.abspath(_mtprof.__file__))
    library = ctypes.CDLL(os.path.join(folder, "libmtprof_torch.so.0"))
    library.mtprof_torch_attach.argtypes = [ctypes.POINTER(_Info)]
    library.mtprof_torch_attach.restype = ctypes.c_int
    library.mtprof_torch_tier_name.argtypes = [ctypes.c_uint32]
    library.mtprof_torch_tier_name.restype = ctypes.c_char_p
    library.mtprof_torch_choose.argtypes = [ctypes.c_uint32, ctypes.c_char_p]
    library.mtprof_torch_choose.restype = ctypes.c_int
    library.mtprof_torch_set_options.argtypes = [ctypes.c_uint32]
    library.mtprof_torch_set_options.restype = None
    return library


_library = _load()
_uses_itt = False


def uses_itt():
    """Whether ops are reported through ITT."""
    return _uses_itt


def info():
    """How torch is observed in this process, an Info. Attaches where nobody has."""
    if _uses_itt:
        return Info("itt", False, _itt.MISSING, 0, 0)
    answer = _Info(struct_size=ctypes.sizeof(_Info))
    if _library.mtprof_torch_attach(ctypes.byref(answer)) != 0:
        raise TorchHostError(f"torch {torch.__version__} cannot be observed: {answer.missing.decode()}")
    tier = _library.mtprof_torch_tier_name(answer.tier).decode()
    return Info(tier, answer.memory, answer.missing.decode(), answer.refused, answer.unreadable)


def set_options(options):
    """OVERLOADS, ANNOTATIONS: what is recorded from the next window on."""
    _library.mtprof_torch_set_options(options)


def _choose(tier):
    """Why it is another tier than the one that was asked for, or ""."""
    global _uses_itt
    path, problem = None, ""
    if tier == "compiled":
        from mtprof.torch import _shim
        try:
            path = _shim.build().encode()
        except _shim.ShimError as error:
            problem = str(error)
    elif tier == "itt" and not _itt.is_loaded():
        problem = f"set {_itt.TIER_VARIABLE}=itt and import mtprof.torch before torch, which looks for a collector once"
    number = TIERS["full" if problem else tier]
    if _library.mtprof_torch_choose(number or TIERS["full"], path) != 0:
        raise TorchHostError(f"choose_tier: tier {tier!r} cannot be chosen while something records")
    _uses_itt = number == 0
    return problem


def _attach(tier, problem):
    """Attaches, through ITT where nothing else works, and warns of what is missing."""
    global _uses_itt
    try:
        answer = info()
    except TorchHostError as error:
        if not _itt.is_loaded():
            raise
        problem, _uses_itt = str(error), True  # the last resort
        answer = info()
    missing = "; ".join(filter(None, [problem, answer.missing]))
    if missing and not tier == answer.tier == "itt":
        warn(f"mtprof: torch {torch.__version__} is observed in tier {answer.tier!r}: {missing}")
    return answer._replace(missing=missing)


def choose_tier(tier):
    """Observes torch in another tier from now on: "full" (the default), "names", "compiled", whose shim is built
    with a C++ compiler and torch's headers and kept for this version of torch, or "itt". Returns the new Info; a
    warning says why it is another tier than the one that was asked for. The environment variable MTPROF_TORCH_TIER
    does the same; "itt" needs it.
    """
    if tier not in TIERS:
        raise ValueError(f"choose_tier: {tier!r} is no tier; there are {', '.join(TIERS)}")
    return _attach(tier, _choose(tier))


def attach():
    """Attaches once, in the tier that the environment asks for, and warns of what is missing."""
    tier = os.environ.get(_itt.TIER_VARIABLE, "")
    if tier and tier not in TIERS:
        warn(f"mtprof: {_itt.TIER_VARIABLE} is {tier!r}; there are {', '.join(TIERS)}")
        tier = ""
    return choose_tier(tier) if tier else _attach("full", "")
