# SPDX-License-Identifier: Apache-2.0
"""Storages: the memory behind tensors, as bytes (UntypedStorage) and as elements (TypedStorage).

A storage here holds a tensor of one dimension over the same memory (C: mt_tensor_storage_row()), and reads and
writes through it. It cannot be resized: resize_() raises where the size would change.
"""
from . import _C
from ._legacy_types import TENSOR_TYPES

_DTYPES = {name.replace("Tensor", "Storage"): getattr(_C, dtype) for name, dtype in TENSOR_TYPES.items()}


def _row(size_or_data, dtype, device):
    """A tensor of one dimension: of a length, or of data."""
    if isinstance(size_or_data, int):
        return _C.ops.zeros((size_or_data,), dtype=dtype, device=device)
    return _C.tensor(list(size_or_data), dtype=dtype, device=device)


class _Storage:
    """What both kinds have. `_tensor` is the row of elements."""

    @property
    def device(self):
        """Where it is."""
        return self._tensor.device

    @property
    def is_cuda(self):
        """Whether it is on the accelerator."""
        return self._tensor.is_cuda

    @property
    def is_sparse(self):
        """False: there are none."""
        return False

    @property
    def _cdata(self):
        return _C._storage_key(self._tensor)

    def data_ptr(self):
        """The address of the first byte."""
        return _C._storage_key(self._tensor)

    def __len__(self):
        return self._tensor.numel()

    def size(self):
        """How many elements it has."""
        return self._tensor.numel()

    def nbytes(self):
        """How many bytes it has."""
        return self._tensor.nbytes

    def element_size(self):
        """Bytes of an element."""
        return self._tensor.element_size()

    def tolist(self):
        """The elements as Python's numbers."""
        return self._tensor.tolist()

    def __iter__(self):
        return iter(self._tensor.tolist())

    def is_pinned(self, device="cuda"):
        """Whether accelerators read and write its memory by themselves."""
        return self._tensor.is_pinned()

    def is_shared(self):
        """Whether other processes see it: they do not."""
        return False

    def fill_(self, value):
        """Sets all elements."""
        self._tensor.fill_(value)
        return self

    def copy_(self, source, non_blocking=None):
        """Takes over the elements of another storage of the same length."""
        self._tensor.copy_(source._tensor, non_blocking=bool(non_blocking))
        return self

    def resize_(self, size):
        """Accepts the size that it has."""
        if size != self.size():
            raise RuntimeError(f"resize_(): a storage of {self.size()} cannot get the size {size}: memory of tensors "
                               "has one size here")
        return self

    def _like(self, tensor):
        raise NotImplementedError

    def clone(self):
        """A copy in memory of its own."""
        return self._like(self._tensor.clone())

    def cpu(self):
        """In the memory of the host."""
        return self if self.device.type == "cpu" else self._like(self._tensor.cpu())

    def cuda(self, device=None, non_blocking=False):
        """In the memory of the accelerator."""
        return self._like(self._tensor.npu(device, non_blocking=non_blocking))

    def pin_memory(self, device=None):
        """A copy in host memory that accelerators read and write by themselves."""
        return self._like(self._tensor.pin_memory())

    def __copy__(self):
        return self.clone()

    def __deepcopy__(self, memo):
        key = ("storage", self._cdata, self._tensor.dtype)
        if key not in memo:
            memo[key] = self._tensor.clone()
        return self._like(memo[key])

    def __repr__(self):
        return "\n".join([f" {element}" for element in self.tolist()] + [self._title()])


class UntypedStorage(_Storage):
    """The memory of a tensor as bytes."""

    __module__ = "torch.storage"

    def __init__(self, size=0, *, device=None):
        self._tensor = _row(size, _C.uint8, device)

    @classmethod
    def _of(cls, tensor):
        made = cls.__new__(cls)
        made._tensor = _C._storage_tensor(tensor, _C.uint8)
        return made

    @classmethod
    def from_file(cls, filename, shared=False, nbytes=0):
        """The bytes of a file, mapped: shared ones are written back."""
        import mmap

        with open(filename, "r+b" if shared else "rb") as file:
            if nbytes > 0 and shared:
                file.truncate(max(nbytes, file.seek(0, 2)))
            mapped = mmap.mmap(file.fileno(), nbytes, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
        made = cls.__new__(cls)
        made._tensor = _C.frombuffer(mapped, dtype=_C.uint8)
        made.filename = str(filename)
        return made

    def _like(self, tensor):
        return UntypedStorage._of(tensor)

    def _title(self):
        return f"[torch.storage.UntypedStorage(device={self.device}) of size {self.size()}]"

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self._like(self._tensor[index].clone())
        return self._tensor[index].item()

    def __setitem__(self, index, value):
        self._tensor[index] = value

    def __eq__(self, other):
        return isinstance(other, UntypedStorage) and self._cdata == other._cdata and len(self) == len(other)

    def __hash__(self):
        return hash((self._cdata, len(self)))

    def untyped(self):
        """Itself."""
        return self

    def type(self, dtype=None):
        """The name of its type."""
        return "torch.storage.UntypedStorage"


class TypedStorage(_Storage):
    """The memory of a tensor as elements of one type."""

    __module__ = "torch.storage"

    def __init__(self, *args, dtype=None, device=None, wrap_storage=None, _internal=None):
        dtype = _C.get_default_dtype() if dtype is None else dtype
        if wrap_storage is not None:
            self._tensor = _C._storage_tensor(wrap_storage._tensor, dtype)
        else:
            self._tensor = _row(args[0] if args else 0, dtype, device)

    @classmethod
    def _of(cls, tensor):
        made = TypedStorage.__new__(TypedStorage)
        made._tensor = _C._storage_tensor(tensor)
        return made

    def _like(self, tensor):
        return TypedStorage._of(tensor)

    def _title(self):
        return f"[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}]"

    @property
    def dtype(self):
        """The type of its elements."""
        return self._tensor.dtype

    def __getitem__(self, index):
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._tensor[index].item()

    def __setitem__(self, index, value):
        self._tensor[index] = value

    def untyped(self):
        """The same memory as bytes."""
        return UntypedStorage._of(self._tensor)

    _untyped_storage = property(untyped)

    def type(self, dtype=None):
        """The name of its type, "torch.FloatStorage" and so on, or its elements in another."""
        if dtype is not None:
            name = (dtype if isinstance(dtype, str) else dtype.__name__).rpartition(".")[2]
            if name not in _DTYPES:
                raise ValueError(f"type(): {dtype!r} is not a type of storage")
            return self._like(self._tensor.to(_DTYPES[name]))
        name = next((name for name, dtype in _DTYPES.items() if dtype is self.dtype), "storage.TypedStorage")
        return f"torch.{name}" if self.device.type == "cpu" else f"torch.{self.device.type}.{name}"


def _conversion(name, dtype):
    def convert(self):
        return self if self.dtype is dtype else self._like(self._tensor.to(dtype))

    convert.__name__ = name
    convert.__doc__ = f"Its elements as {dtype}."
    return convert


for _name, _dtype in {"float": _C.float32, "double": _C.float64, "half": _C.float16, "bfloat16": _C.bfloat16,
                      "char": _C.int8, "short": _C.int16, "int": _C.int32, "long": _C.int64, "byte": _C.uint8,
                      "bool": _C.bool}.items():
    setattr(TypedStorage, _name, _conversion(_name, _dtype))


class _LegacyStorageMeta(type):
    """torch.FloatStorage and so on: a TypedStorage of that type is an instance."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype


def _legacy_storage(name):
    def make(cls, *args, device=None, wrap_storage=None):
        return TypedStorage(*args, dtype=cls.dtype, device=device, wrap_storage=wrap_storage)

    return _LegacyStorageMeta(name, (), {"__module__": "torch", "__new__": make, "dtype": _DTYPES[name],
                                         "__doc__": f"A TypedStorage of {_DTYPES[name]}."})


LEGACY = {name: _legacy_storage(name) for name in _DTYPES}
globals().update(LEGACY)


def typed_storage_of(tensor):
    """Tensor.storage()."""
    return TypedStorage._of(tensor)


def untyped_storage_of(tensor):
    """Tensor.untyped_storage()."""
    return UntypedStorage._of(tensor)
