# SPDX-License-Identifier: Apache-2.0
"""mtprof's profile with stock PyTorch as its host."""
import json
import os
import sys

import torch
from torch.autograd import profiler as _torch_profiler
from mtprof import ExecutionTraceObserver, modules as _modules, profiler as _profiler, set_host
from mtprof._warnings import own_folder, warn
from mtprof.config import _ExperimentalConfig
from mtprof.results import HOST_KEY
from mtprof.torch import _cuda, _itt, _library

__all__ = ["ExecutionTraceObserver", "_ExperimentalConfig", "_KinetoProfile", "profile"]


def _synchronize():
    """Waits for what was started on the GPU: its events belong to the window that closes."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def _config(given):
    """Ours for torch's own _ExperimentalConfig, whose switches cannot be read."""
    if given is None or hasattr(given, "verbose"):
        return given
    if type(given).__name__ == "_ExperimentalConfig":
        warn("the switches of torch's _ExperimentalConfig cannot be read: take _ExperimentalConfig from mtprof.torch")
        return _ExperimentalConfig()
    return given


def _distributed():
    """What torch writes into traces of several ranks; None: there is one."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return _profiler._describe_place(distributed.get_backend(), distributed.get_rank(), distributed.get_world_size())


class _OfTorch:
    """What a profile does for this host, before and after a window."""

    _enabled_torch = False
    _flavor = "lean"

    def __init__(self, **arguments):
        arguments["experimental_config"] = _config(arguments.get("experimental_config"))
        super().__init__(**arguments)
        self._add_host()

    def _add_host(self):
        about = _library.info()
        self.add_metadata_json(HOST_KEY, json.dumps({
            "name": "torch", "version": torch.__version__, "tier": about.tier, "missing": about.missing}))

    def _observe(self, event):
        if event == 0:
            overloads = getattr(self.experimental_config, "capture_overload_names", False)
            # Only torch.compile makes annotations that need it; it costs every allocation some nanoseconds.
            annotations = "torch._dynamo" in sys.modules
            _library.set_options((_library.ANNOTATIONS if annotations else 0)
                                 | (_library.OVERLOADS if overloads else 0))
            _cuda.begin_window(self.experimental_config)
            place = _distributed()
            if place is not None:
                self.add_metadata_json("distributedInfo", json.dumps(place))
            # Parts of torch that are written in Python annotate only while a profiler runs.
            self._enabled_torch = not _torch_profiler._is_profiler_enabled
            if self._enabled_torch:
                _torch_profiler._run_on_profiler_start()
            if _library.uses_itt():
                _itt.start()
        else:
            _itt.stop()
            _library.set_options(0)
            if self._enabled_torch:
                self._enabled_torch = False
                _torch_profiler._run_on_profiler_stop()
        super()._observe(event)


class _KinetoProfile(_OfTorch, _profiler._KinetoProfile):
    __doc__ = _profiler._KinetoProfile.__doc__


class profile(_OfTorch, _profiler.profile):
    __doc__ = _profiler.profile.__doc__


_library.attach()
_cuda.attach()
set_host(synchronize=_synchronize, device="cuda", tells_launches=False)
own_folder(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_modules.set_module_call(torch.nn.Module.__call__)
_modules.set_paths_from_frames(True)
