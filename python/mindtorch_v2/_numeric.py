# SPDX-License-Identifier: Apache-2.0
"""Facts about element types: finfo, iinfo, promotion."""

from . import _C
from ._C import Tensor, dtype as _dtype_type, promote_types

_FLOATS = {  # bits, eps, max, smallest normal, resolution
    "float64": (64, 2.220446049250313e-16, 1.7976931348623157e308, 2.2250738585072014e-308, 1e-15),
    "float32": (32, 1.1920928955078125e-07, 3.4028234663852886e38, 1.1754943508222875e-38, 1e-06),
    "float16": (16, 0.0009765625, 65504.0, 6.103515625e-05, 0.001),
    "bfloat16": (16, 0.0078125, 3.3895313892515355e38, 1.1754943508222875e-38, 0.01),
}
_INTS = {f"int{bits}": (bits, -2**(bits - 1), 2**(bits - 1) - 1) for bits in (8, 16, 32, 64)}
_INTS.update((f"uint{bits}", (bits, 0, 2**bits - 1)) for bits in (8, 16, 32, 64))


def _name(dtype):
    return repr(dtype).removeprefix("torch.")


class _Limits:
    """Of a type: equal to those of the same type."""

    def __eq__(self, other):
        return isinstance(other, type(self)) and self.dtype == other.dtype

    def __hash__(self):
        return hash((type(self).__name__, self.dtype))


# Types that mindtorch_v2 has not, but whose limits programs ask for when they are imported.
_MISSING_FLOATS = {"torch.float8_e4m3fn": (8, 0.125, 448.0, 0.015625, 1.0),
                   "torch.float8_e5m2": (8, 0.25, 57344.0, 6.103515625e-05, 1.0),
                   "torch.float8_e4m3fnuz": (8, 0.125, 240.0, 0.0078125, 1.0),
                   "torch.float8_e5m2fnuz": (8, 0.125, 57344.0, 3.0517578125e-05, 1.0)}


class finfo(_Limits):
    """Limits of a floating-point type, the default one where none is given."""

    def __init__(self, type=None):
        dtype = _C.get_default_dtype() if type is None else type
        stands_for = getattr(dtype, "_torch_name", None)  # a placeholder in torch's place
        if stands_for in _MISSING_FLOATS:
            dtype = stands_for
        elif not isinstance(dtype, _dtype_type):
            raise TypeError(f"finfo(): argument 'type' must be torch.dtype, not {dtype.__class__.__name__}")
        limits = _MISSING_FLOATS.get(stands_for) or _FLOATS.get(_name(dtype))
        if limits is None:
            raise TypeError("torch.finfo() requires a floating point input type. Use torch.iinfo to handle "
                            "'torch.finfo'")
        self.dtype = _name(dtype)
        self.bits, self.eps, self.max, self.tiny, self.resolution = limits
        self.min, self.smallest_normal = -self.max, self.tiny

    def __repr__(self):
        return (f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
                f"eps={self.eps:g}, "
                f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})")


class iinfo(_Limits):
    """Limits of an integer type."""

    def __init__(self, type):
        if not isinstance(type, _dtype_type):
            raise TypeError(f"iinfo(): argument 'type' must be torch.dtype, not {type.__class__.__name__}")
        if _name(type) not in _INTS:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle "
                            "'torch.iinfo'")
        self.dtype = _name(type)
        self.bits, self.min, self.max = _INTS[self.dtype]

    def __repr__(self):
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


def _category(dtype):
    return 2 if dtype.is_floating_point else 0 if dtype is _C.bool else 1


def _number_dtype(number):
    """What a Python number is in promotion."""
    if isinstance(number, bool):
        return _C.bool
    return _C.int64 if isinstance(number, int) else _C.get_default_dtype()


def result_type(tensor1, tensor2):
    """The type of an arithmetic op on both: dimensions count before none, and those before numbers."""
    ranks = {}
    for operand in (tensor1, tensor2):
        if isinstance(operand, Tensor):
            rank, dtype = (2 if operand.dim() else 1), operand.dtype
        elif isinstance(operand, (bool, int, float)):
            rank, dtype = 0, _number_dtype(operand)
        else:
            raise TypeError(f"result_type(): argument must be Tensor or Number, not {type(operand).__name__}")
        ranks[rank] = promote_types(ranks[rank], dtype) if rank in ranks else dtype
    result = None
    for rank in sorted(ranks, reverse=True):
        if result is None:
            result = ranks[rank]
        elif _category(ranks[rank]) > _category(result):
            result = promote_types(result, ranks[rank])
    return result


def can_cast(from_, to):
    """Whether promotion would go from one to the other: float to int does not, int to bool neither."""
    return _category(from_) <= _category(to)
