# SPDX-License-Identifier: Apache-2.0
"""mindtorch_v2: tensors with torch's names and semantics, and a profiler that costs nanoseconds.

    import mindtorch_v2 as torch

Ops come from the op table (_C.ops), functions made of ops from _functions.py; packages (nn, optim, utils,
profiler and so on) are imported when they are first used.
"""

import importlib as _importlib
import math as _math
import os as _os

import mtprof as _mtprof  # first: it brings the process's one libmtprof

from . import _C, _functions, _legacy_types, _names, _overriding
from ._C import (AcceleratorError, Event, Generator, OutOfMemoryError, Size, Stream, Tensor, channels_last,
                 channels_last_3d, contiguous_format, default_generator, device, dtype, get_default_device,
                 get_default_dtype, get_num_threads, layout, memory_format, preserve_format, promote_types,
                 set_default_device, set_default_dtype, set_num_threads, strided)
from ._C import bfloat16, bool, float16, float32, float64, uint8, uint16, uint32, uint64  # noqa: A004 torch's names
from ._C import complex64, complex128, int8, int16, int32, int64
from ._C import (autocast_decrement_nesting, autocast_increment_nesting, clear_autocast_cache,
                 is_autocast_cache_enabled, set_autocast_cache_enabled)
from ._C import as_tensor, from_dlpack, from_numpy, frombuffer, is_grad_enabled, tensor, to_dlpack
from ._legacy_types import set_default_tensor_type
from ._numeric import can_cast, finfo, iinfo, result_type
from ._ops import ops
from .random import fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from .version import __version__

globals().update(_legacy_types.CPU)  # FloatTensor, LongTensor and so on
half, float, double, short, int, long = float16, float32, float64, int16, int32, int64
cfloat, cdouble = complex64, complex128
inf, nan, pi, e = _math.inf, _math.nan, _math.pi, _math.e
newaxis = None


def _publish():
    """Functions of the op table and of _functions.py here, and methods on Tensor."""
    here = globals()
    for name, function in vars(_C.ops).items():
        if _names.is_function(name):
            here.setdefault(name, function)
        if not _names.is_method(name) and type(vars(Tensor).get(name)) is _C._op_method:
            delattr(Tensor, name)
    rows = vars(_C.ops)
    for name, function in _functions.FUNCTIONS.items():
        if name not in rows or name not in _functions.ROWS_FIRST:
            here[name] = function if name in _names.NEVER_ASKING else _overriding.offer(function)
    for name, function in _functions.METHODS.items():
        if name not in rows or name not in _functions.ROWS_FIRST:
            setattr(Tensor, name, function)


_publish()

from ._tensor import asarray  # noqa: E402 the module puts Python's methods on Tensor
from .autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled  # noqa: E402
from ._C import is_anomaly_check_nan_enabled, is_anomaly_enabled  # noqa: E402
from .autograd.grad_mode import is_inference_mode_enabled  # noqa: E402

_PACKAGES = frozenset("""
    __config__ _dynamo _foreach _jit_internal _utils accelerator amp autograd backends compiler cpu cuda
    distributed distributions fft func fx hub jit library linalg mps multiprocessing nn npu onnx optim overrides
    profiler random return_types serialization signal special storage testing types utils version xpu
""".split())

# Names that live in a package which is imported only for them.
_ELSEWHERE = {"save": "serialization", "load": "serialization", "set_printoptions": "_tensor_str",
              "get_printoptions": "_tensor_str", "printoptions": "_tensor_str", "compile": "compiler",
              "install_as_torch": "_as_torch", "uninstall_as_torch": "_as_torch",
              "vmap": "func", "GradScaler": "amp"}
_ELSEWHERE.update(dict.fromkeys("""
    use_deterministic_algorithms are_deterministic_algorithms_enabled is_deterministic_algorithms_warn_only_enabled
    set_deterministic_debug_mode get_deterministic_debug_mode set_float32_matmul_precision
    get_float32_matmul_precision set_warn_always is_warn_always_enabled set_num_interop_threads
    get_num_interop_threads _assert
""".split(), "backends._settings"))
_ELSEWHERE.update({name.replace("Tensor", "Storage"): "storage" for name in _legacy_types.TENSOR_TYPES},
                  TypedStorage="storage", UntypedStorage="storage")
_ELSEWHERE.update(dict.fromkeys("""
    autocast get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype is_autocast_cpu_enabled
    is_autocast_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled
    set_autocast_gpu_dtype
""".split(), "amp.autocast_mode"))


_ELSEWHERE["vmap"] = "func"
_ELSEWHERE.update(dict.fromkeys("_check _check_index _check_is_size _check_not_implemented _check_tensor_all _check_type "
                                "_check_value get_device_module typename".split(), "utils._checks"))


def __getattr__(name):
    if name.startswith("_foreach_"):
        return getattr(_importlib.import_module(f"{__name__}._foreach"), name)
    if name in _PACKAGES:
        return _importlib.import_module(f"{__name__}.{name}")
    if name in _ELSEWHERE:
        found = getattr(_importlib.import_module(f"{__name__}.{_ELSEWHERE[name]}"), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def _name_of_c(name):
    """Names of torch's C part that programs use: torch._C._profiler, a call that reports to nobody, those that ask for
    transforms of torch.func and for a trace, which are plain calls here, and the one that reads to()'s arguments."""
    if name == "_profiler":
        return _importlib.import_module(f"{__name__}.profiler._profiler")
    if name == "_log_api_usage_once":
        return lambda event: None
    if name == "_are_functorch_transforms_active":
        return lambda: False
    if name in ("DisableTorchFunction", "DisableTorchFunctionSubclass"):
        return getattr(_overriding, name)
    if name == "_get_tracing_state":
        return lambda: None
    if name == "_nn":
        return _importlib.import_module("types").SimpleNamespace(
            _parse_to=_importlib.import_module(f"{__name__}.nn.modules.module")._parse_to)
    raise AttributeError(f"module '{_C.__name__}' has no attribute '{name}'")


_C.__getattr__ = _name_of_c

if _os.environ.get("MINDTORCH_NPU"):
    _C._device_count()  # opens the backend, so that a profile of the accelerator finds its source


def __dir__():
    return sorted(set(globals()) | _PACKAGES | set(_ELSEWHERE))
