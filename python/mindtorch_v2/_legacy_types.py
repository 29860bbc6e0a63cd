# SPDX-License-Identifier: Apache-2.0
"""torch.FloatTensor and its like: names for a type and a device, from before torch had dtypes.

    torch.LongTensor([1, 2])                  a tensor of int64
    isinstance(x, torch.cuda.FloatTensor)     by type and device
    x.type(torch.DoubleTensor)                x.to(torch.float64)
    x.new([1, 2])                             the constructor of x's type and device
"""
import operator

from . import _C

TENSOR_TYPES = {"FloatTensor": "float32", "DoubleTensor": "float64", "HalfTensor": "float16",
                "BFloat16Tensor": "bfloat16", "CharTensor": "int8", "ShortTensor": "int16", "IntTensor": "int32",
                "LongTensor": "int64", "ByteTensor": "uint8", "BoolTensor": "bool"}
LATER_TYPES = {"UInt16Tensor": "uint16", "UInt32Tensor": "uint32", "UInt64Tensor": "uint64"}  # names for type() only

_NAMES = {getattr(_C, dtype): name for name, dtype in {**TENSOR_TYPES, **LATER_TYPES}.items()}


class tensortype(type):  # noqa: N801 torch's name
    """The type of torch.FloatTensor: its instances are no classes of objects, but ask for type and device."""

    __module__ = "torch"

    def __instancecheck__(cls, instance):
        return (isinstance(instance, _C.Tensor) and instance.dtype is cls.dtype
                and instance.is_cuda is cls.is_cuda)

    def __call__(cls, *args, **kwargs):
        if cls.is_cuda:
            _need_device(f"torch.cuda.{cls.__name__}")
        return _constructed(cls.dtype, "npu" if cls.is_cuda else "cpu", args, kwargs)


def _type_object(name, place):
    return tensortype(name, (), {
        "__module__": place, "dtype": getattr(_C, TENSOR_TYPES[name]), "layout": _C.strided, "is_sparse": False,
        "is_cuda": place != "torch", "__doc__": f"Tensors of {TENSOR_TYPES[name]}, see torch.Tensor."})


CPU = {name: _type_object(name, "torch") for name in TENSOR_TYPES}
CUDA = {name: _type_object(name, "torch.cuda") for name in TENSOR_TYPES}


def _is_size(value):
    """Whether it is an integer: NumPy's too, and tensors of one integer."""
    if isinstance(value, bool):
        return False
    try:
        operator.index(value)
    except TypeError:
        return False
    return not (isinstance(value, _C.Tensor) and value.dim())


def _need_device(name):
    if _C._device_count() == 0:
        raise TypeError(f"type {name} not available: no backend serves the accelerator")


def _constructed(dtype, device, args, kwargs):
    """The old constructor: of sizes, of data, of another tensor of the same type."""
    device = kwargs.pop("device", None) or device
    sizes = kwargs.pop("size", None)
    if kwargs:
        raise TypeError(f"new() got an unexpected keyword argument '{next(iter(kwargs))}'")
    if sizes is not None:
        return _C.ops.empty(tuple(sizes), dtype=dtype, device=device)
    if not args:
        return _C.ops.empty((0,), dtype=dtype, device=device)
    first = args[0]
    if isinstance(first, _C.Tensor) and len(args) == 1 and not _is_size(first):
        if first.dtype is not dtype or first.device.type != _C.device(device).type:
            raise TypeError(f"new(): expected a tensor of {dtype} on {device}, got one of {first.dtype} on "
                            f"{first.device}")
        return first.detach()
    if isinstance(first, _C.Size) or all(_is_size(value) for value in args):
        return _C.ops.empty(tuple(first) if isinstance(first, _C.Size) else args, dtype=dtype, device=device)
    if type(first).__name__ in ("TypedStorage", "UntypedStorage"):
        return _C._storage_tensor(first._tensor, dtype)
    if isinstance(first, str):
        raise TypeError("new(): invalid data type 'str'")
    if not hasattr(first, "__len__") or len(args) > 1:
        raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
    return _C.as_tensor(first, dtype=dtype, device=device)


def new(self, *args, **kwargs):
    """A tensor of this one's type and device, by the old constructor: of sizes, data or another tensor."""
    return _constructed(self.dtype, self.device, args, kwargs)


def type_name(tensor):
    """ "torch.FloatTensor"; types from after that time have the name of the dtype."""
    place = "torch." if tensor.device.type == "cpu" else f"torch.{tensor.device.type}."
    return place + _NAMES[tensor.dtype]


def type_of(self, dtype=None, non_blocking=False, **kwargs):
    """The name of the type, or the tensor in another one: a dtype, torch.DoubleTensor or its name."""
    if dtype is None:
        return type_name(self)
    device = self.device
    if isinstance(dtype, _C.dtype):
        return self.to(dtype=dtype, non_blocking=non_blocking)
    if dtype is _C.Tensor:
        return self.to(device="cpu", dtype=_C.get_default_dtype(), non_blocking=non_blocking)
    dtype, on_device = resolve(dtype)
    if not on_device:
        device = "cpu"
    elif device.type == "cpu":
        device = "npu"
    return self.to(device=device, dtype=dtype, non_blocking=non_blocking)


def resolve(which):
    """(dtype, whether on the accelerator) of torch.FloatTensor or "torch.cuda.FloatTensor"."""
    if isinstance(which, tensortype):
        return which.dtype, which.is_cuda
    text = which if isinstance(which, str) else getattr(which, "__name__", str(which))
    place, _, name = text.rpartition(".")
    known = {**TENSOR_TYPES, **LATER_TYPES}
    if place not in ("torch", "torch.npu", "torch.cuda") or name not in known:
        raise ValueError(f"invalid type: '{text}'")
    return getattr(_C, known[name]), place != "torch"


_default_on_device = False  # set_default_tensor_type() has set the default device


def set_default_tensor_type(t, /):
    """The dtype of torch.DoubleTensor (or its name) becomes the default, its device the default device."""
    if isinstance(t, _C.dtype):
        raise TypeError("invalid type object: only floating-point types are supported as the default type")
    try:
        dtype, on_device = resolve(t)
    except ValueError as error:
        raise AttributeError(str(error)) from None
    if not dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    _C.set_default_dtype(dtype)
    if on_device:
        _need_device(f"torch.cuda.{_NAMES[dtype]}")
    global _default_on_device
    if on_device or _default_on_device:
        _C.set_default_device("npu" if on_device else None)
    _default_on_device = on_device


def _storage(self):
    """Its memory as elements of its type."""
    from . import storage

    return storage.typed_storage_of(self)


def _untyped_storage(self):
    """Its memory as bytes."""
    from . import storage

    return storage.untyped_storage_of(self)


def _storage_type(self):
    """torch.FloatStorage and so on; None for types from after that time."""
    from . import storage

    return storage.LEGACY.get(_NAMES[self.dtype].replace("Tensor", "Storage"))


def _set(self, source=None, storage_offset=0, size=None, stride=None):
    """Takes over the memory of a storage or of a tensor, from storage_offset on; without a source, nothing's."""
    if source is None:
        row = _C.ops.empty((0,), dtype=self.dtype, device=self.device)
    elif isinstance(source, _C.Tensor):
        row = source.detach()
    else:
        row = _C._storage_tensor(source._tensor, self.dtype)
    if row.dtype is not self.dtype:
        raise RuntimeError(f"Could not set tensor of type {row.dtype} to a tensor of type {self.dtype}")
    if size is not None:
        if isinstance(size, int):
            size = (size,)
        if stride is None:
            stride = _C.ops.empty(tuple(size)).stride()
        row = _C._storage_tensor(row).as_strided(tuple(size), tuple(stride), storage_offset).detach()
    self.data = row
    return self


METHODS = {"set_": _set, "new": new, "type": type_of, "storage": _storage, "untyped_storage": _untyped_storage,
           "_typed_storage": _storage, "storage_type": _storage_type}
