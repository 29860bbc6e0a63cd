# SPDX-License-Identifier: Apache-2.0
"""mtprof behind the names of torch.profiler, for programs that nobody wants to edit."""
import torch.profiler
import torch.profiler.profiler

_MODULES = (torch.profiler, torch.profiler.profiler)
_NAMES = ("profile", "_KinetoProfile", "ExecutionTraceObserver", "_ExperimentalConfig")

_before = []  # (module, name, torch's object); empty: not patched


def patch():
    """torch.profiler.profile and its relatives are mtprof's from now on. Repeated calls change nothing.

    Programs that import a name (`from torch.profiler import profile`) do it after this call. Enumerations,
    schedule(), record_function() and tensorboard_trace_handler() stay torch's: they work with both.
    """
    from mtprof.torch import _profiler
    if _before:
        return
    for module in _MODULES:
        for name in _NAMES:
            if hasattr(module, name):
                _before.append((module, name, getattr(module, name)))
                setattr(module, name, getattr(_profiler, name))


def unpatch():
    """Everything is torch's again."""
    while _before:
        module, name, value = _before.pop()
        setattr(module, name, value)
