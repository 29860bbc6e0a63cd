# SPDX-License-Identifier: Apache-2.0
"""autocast, custom_fwd and custom_bwd, and the functions that ask for and set autocast's state."""
import functools
import warnings

from .. import _C

_TYPES = {"cpu": 0, "npu": 1, "cuda": 1}  # mt_device_type
_OTHERS = ("hpu", "mps", "xla", "xpu")  # torch's types of devices that are not there: autocast is off
_LOWER = {0: (_C.bfloat16, _C.float16), 1: (_C.float16, _C.bfloat16)}


def _number(device_type):
    """mt_device_type of "cpu", "cuda:0" and so on."""
    return _TYPES[_C.device(device_type).type]


def is_autocast_available(device_type):
    """Whether autocast knows the device: it does, with or without one."""
    return _C.device(device_type).type in _TYPES


def is_autocast_enabled(device_type=None):
    """Whether ops cast on devices of this type; without one, on the accelerator."""
    if device_type in _OTHERS:
        return False
    return _C._autocast_enabled(1 if device_type is None else _number(device_type))


def set_autocast_enabled(device_type, enabled=None):
    """Whether ops cast on devices of this type; without one, on the accelerator."""
    if enabled is None:
        device_type, enabled = "cuda", device_type
    _C._autocast_set_enabled(_number(device_type), enabled)


def get_autocast_dtype(device_type):
    """The type to which ops cast on devices of this type."""
    return _C._autocast_dtype(_number(device_type))


def set_autocast_dtype(device_type, dtype):
    """The type to which ops cast on devices of this type."""
    _C._autocast_set_dtype(_number(device_type), dtype)


def is_autocast_cpu_enabled():
    """is_autocast_enabled("cpu")."""
    return _C._autocast_enabled(0)


def set_autocast_cpu_enabled(enabled):
    """set_autocast_enabled("cpu", enabled)."""
    _C._autocast_set_enabled(0, enabled)


def get_autocast_cpu_dtype():
    """get_autocast_dtype("cpu")."""
    return _C._autocast_dtype(0)


def get_autocast_gpu_dtype():
    """get_autocast_dtype("cuda")."""
    return _C._autocast_dtype(1)


def set_autocast_cpu_dtype(dtype):
    """set_autocast_dtype("cpu", dtype)."""
    _C._autocast_set_dtype(0, dtype)


def set_autocast_gpu_dtype(dtype):
    """set_autocast_dtype("cuda", dtype)."""
    _C._autocast_set_dtype(1, dtype)


class autocast:  # noqa: N801 torch's name
    """Inside `with autocast("cpu"):` matrix products and convolutions compute in bfloat16 (on the accelerator in
    float16) and losses in float32; `dtype` chooses another lower type. It is a decorator as well."""

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device_type
        self._type = _number(device_type)
        self.fast_dtype = _C._autocast_dtype(self._type) if dtype is None else dtype
        self._cache_enabled = _C.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        if enabled and self._type == 1 and _C._device_count() == 0:
            warnings.warn(f"User provided device_type of '{device_type}', but the accelerator is not available. "
                          "Disabling", stacklevel=2)
            enabled = False
        if enabled and self.fast_dtype not in _LOWER[self._type]:
            if self.fast_dtype is not _C.float32 or self._type == 0:
                names = " and ".join(str(lower) for lower in _LOWER[self._type])
                warnings.warn(f"In {device_type} autocast, but the target dtype {self.fast_dtype} is not supported. "
                              f"Disabling autocast.\n{device_type} Autocast only supports dtype of {names} currently.",
                              stacklevel=2)
            enabled = False
        self._enabled = enabled
        self._before = []

    def __enter__(self):
        self._before.append((_C.is_autocast_cache_enabled(), _C._autocast_enabled(self._type),
                             _C._autocast_dtype(self._type)))
        _C._autocast_set_enabled(self._type, self._enabled)
        if self._enabled:
            _C._autocast_set_dtype(self._type, self.fast_dtype)
        _C.autocast_increment_nesting()
        _C.set_autocast_cache_enabled(self._cache_enabled)
        return self

    def __exit__(self, *_):
        cache, enabled, dtype = self._before.pop()
        _C.autocast_decrement_nesting()  # the outermost drops what was kept
        _C._autocast_set_enabled(self._type, enabled)
        _C._autocast_set_dtype(self._type, dtype)
        _C.set_autocast_cache_enabled(cache)
        return False

    def __call__(self, func):
        @functools.wraps(func)
        def decorated(*args, **kwargs):
            with self:
                return func(*args, **kwargs)

        return decorated


def _cast(value, number, dtype):
    """Floating-point tensors in `value` as `dtype`; float64 and other devices' are left alone."""
    if isinstance(value, _C.Tensor):
        here = _TYPES.get(value.device.type) == number
        fits = value.is_floating_point() and value.dtype is not _C.float64 and here
        return value.to(dtype) if fits else value
    if isinstance(value, dict):
        return {_cast(key, number, dtype): _cast(item, number, dtype) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(item, number, dtype) for item in value)
    return value


def custom_fwd(fwd=None, *, device_type=None, cast_inputs=None):
    """For forward() of a custom Function: with cast_inputs arguments are cast, and autocast is off inside."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(*args, **kwargs):
        number = _number(device_type)
        context = args[0]
        context._dtype = _C._autocast_dtype(number)
        context._fwd_used_autocast = _C._autocast_enabled(number) if cast_inputs is None else False
        if cast_inputs is None or not _C._autocast_enabled(number):
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*_cast(args, number, cast_inputs), **_cast(kwargs, number, cast_inputs))

    return decorated


def custom_bwd(bwd=None, *, device_type=None):
    """For backward() of a custom Function: it runs with autocast as forward() did."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(*args, **kwargs):
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return decorated
