# SPDX-License-Identifier: Apache-2.0
"""A program under `mtprof run` has imported torch, and may be recorded already."""
import warnings

from mtprof import _mtprof
from mtprof.profiler import _RECORDING


def profile_of_torch(kind, running):
    """The class of profiles for a program with torch: `kind`, with torch as its host. `running`, which may be None,
    becomes one of it."""
    with warnings.catch_warnings(record=True):  # what is missing is in the trace: mtprof info shows it
        warnings.simplefilter("always")
        from mtprof.torch import _library, _profiler as host

    class TorchProfile(host._OfTorch, kind):
        """A profile of a program with torch."""

    if running is not None:
        running.__class__ = TorchProfile
        running._add_host()
        if running._window_now().results == _RECORDING:  # as _observe() does when a window opens
            _library.set_options(_library.ANNOTATIONS)
            running._enabled_torch = not host._torch_profiler._is_profiler_enabled
            if running._enabled_torch:
                host._torch_profiler._run_on_profiler_start()
    return TorchProfile


def wrap_torch_start(before):
    """Calls `before` when the program starts a profiler of torch's. Both can run, but torch reports allocations to one
    profiler only, and raises where there is another one."""
    from torch.autograd import profiler
    profiler._enable_profiler = _mtprof.wrap_call(profiler._enable_profiler, before, None)
