# SPDX-License-Identifier: Apache-2.0
"""libmtprof_cupti: what the GPU did for stock PyTorch (mtprof/cupti.h)."""
import collections
import ctypes
import os

import torch
from mtprof import _mtprof

WAITS, DEPENDENCIES = 1, 2  # enum mtprof_cupti_option

CudaInfo = collections.namedtuple(
    "CudaInfo", "version library missing running records unreadable dropped unjoined waits_failed replayed "
    "replayed_unknown nodes_lost dependencies_lost")
CudaInfo.__doc__ = """How GPUs are observed.

version: of libcupti, as it counts. library: its file. missing: why GPUs are not in the profile, or what is
missing there, "" when nothing is. running: CUPTI is in use now. Then counts: records read, unreadable ones,
those that CUPTI dropped, those without their call, waits for the GPU that took all their time, records of replays
of CUDA graphs, those of them without the op that captured them, nodes of graphs that were not remembered, and nodes
whose dependencies are not known where they were asked for.
"""


class _Info(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("version", ctypes.c_uint32), ("library", ctypes.c_char_p),
                ("missing", ctypes.c_char_p), ("running", ctypes.c_bool), ("reserved", ctypes.c_bool * 7),
                ("records", ctypes.c_uint64), ("unreadable", ctypes.c_uint64), ("dropped", ctypes.c_uint64),
                ("unjoined", ctypes.c_uint64), ("waits_failed", ctypes.c_uint64), ("replayed", ctypes.c_uint64),
                ("replayed_unknown", ctypes.c_uint64), ("nodes_lost", ctypes.c_uint64),
                ("dependencies_lost", ctypes.c_uint64)]


_library = None  # torch has no CUDA


def attach():
    """Attaches where torch was built with CUDA. Without a driver profiles are those of the CPU; cuda_info() says why."""
    global _library
    if torch.version.cuda is None:
        return
    folder = os.path.dirname(os.path.abspath(_mtprof.__file__))
    _library = ctypes.CDLL(os.path.join(folder, "libmtprof_cupti.so.0"))
    _library.mtprof_cupti_attach.argtypes = [ctypes.POINTER(_Info)]
    _library.mtprof_cupti_attach.restype = ctypes.c_int
    _library.mtprof_cupti_set_options.argtypes = [ctypes.c_uint32]
    _library.mtprof_cupti_set_options.restype = None
    _library.mtprof_cupti_attach(None)


def cuda_info():
    """How GPUs are observed in this process, a CudaInfo; None where torch was built without CUDA."""
    if _library is None:
        return None
    answer = _Info(struct_size=ctypes.sizeof(_Info))
    _library.mtprof_cupti_attach(ctypes.byref(answer))
    return CudaInfo(answer.version, answer.library.decode(), answer.missing.decode(), answer.running, answer.records,
                    answer.unreadable, answer.dropped, answer.unjoined, answer.waits_failed, answer.replayed,
                    answer.replayed_unknown, answer.nodes_lost, answer.dependencies_lost)


def begin_window(config):
    """What the next window shows beyond launches, copies and sets: by an _ExperimentalConfig, ours or torch's."""
    if _library is not None:
        waits = getattr(config, "enable_cuda_sync_events", False)
        dependencies = getattr(config, "enable_cuda_graph_dependencies", False)
        _library.mtprof_cupti_set_options((WAITS if waits else 0) | (DEPENDENCIES if dependencies else 0))
