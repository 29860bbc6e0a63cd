# SPDX-License-Identifier: Apache-2.0
"""save() and load(): objects with tensors in them, in files that torch reads and writes as well.

    NAME.pt, a zip archive without compression
      archive/data.pkl    the object, pickled; storages in it are ("storage", type, key, place, elements)
      archive/data/KEY    a storage's bytes, at a multiple of 64 in the file, so that it can be mapped
      archive/byteorder   "little"
      archive/version     "3"

  SV1  Tensors that share a storage share it again after loading: views stay views.
  SV2  A file is written under a temporary name and renamed, so a half-written one is never seen.
  SV3  What load() makes by default (weights_only=True) is data alone. Names in a pickle are looked
       up in a table, never imported; a name that is not in it is refused by name, and what a name
       stands for is not changed (_weights_only.py).
  SV4  Nothing in a file is trusted: sizes, strides and lengths are checked against the bytes that
       are there, and what is loaded is not larger than the file.
"""

import codecs
import io
import math
import os
import pickle
import struct
import zipfile
from collections import Counter, OrderedDict, defaultdict
from typing import BinaryIO, Callable, Optional, Union

import mindtorch_v2 as torch
from mindtorch_v2 import _weights_only
from mtprof._new_file import is_special, new_file

__all__ = [
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "load",
    "safe_globals",
    "save",
]

DEFAULT_PROTOCOL = 2
MAP_LOCATION = Optional[Union[Callable, torch.device, str, dict]]  # for annotations, as FILE_LIKE
FILE_LIKE = Union[str, os.PathLike, BinaryIO]

_ALIGN = 64
_PADDING = 0x4246  # "FB", an extra field of zip that others skip
_LARGE = 1 << 31  # bytes from which a zip entry needs the wide form
_CHUNK = 1 << 24

# torch's name of a type of storage, and our type's name.
_STORAGES = {
    "BoolStorage": "bool",
    "ByteStorage": "uint8",
    "CharStorage": "int8",
    "ShortStorage": "int16",
    "IntStorage": "int32",
    "LongStorage": "int64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
}


# Types without a type of storage of their own: their storages are written as bytes, and the type beside them.
_BYTES = "UntypedStorage"
_TYPES_AS_BYTES = ("uint16", "uint32", "uint64")


class _StorageType:
    """Stands for a type of storage in a pickle."""

    def __init__(self, name):
        self.name = name

    def __reduce__(self):
        return self.name  # a global of this module: see below

    @property
    def dtype(self):
        return torch.uint8 if self.name == _BYTES else getattr(torch, _STORAGES[self.name])


for _name in (*_STORAGES, _BYTES):
    globals()[_name] = _StorageType(_name)
_STORAGE_OF = {dtype: name for name, dtype in _STORAGES.items()}


def _dtype_name(dtype):
    return str(dtype).rpartition(".")[2]


# ---- writing -------------------------------------------------------------------------------------


class _Stored:
    """A tensor's storage, as a pickle refers to it."""

    def __init__(self, key, tensor, count):
        self.key, self.tensor, self.count = key, tensor, count

    def identity(self):
        name = _STORAGE_OF.get(_dtype_name(self.tensor.dtype), _BYTES)
        count = self.count * self.tensor.element_size() if name == _BYTES else self.count
        return ("storage", globals()[name], self.key, str(self.tensor.device), count)

    def data(self):
        """The bytes of the whole storage."""
        if not self.count:
            return b""
        whole = self.tensor.detach().as_strided((self.count,), (1,), 0).cpu()
        if whole.dtype == torch.bfloat16:  # no buffer format knows it
            return torch._C._tensor_bytes(whole)
        if whole.is_complex():  # a memoryview casts no pairs
            whole = torch.view_as_real(whole)
        return memoryview(whole).cast("B")


class _Pickler(pickle.Pickler):
    """Tensors become a reference to their storage and where in it they are."""

    def __init__(self, file, protocol):
        super().__init__(file, protocol)
        self.storages = {}

    def persistent_id(self, value):
        return value.identity() if type(value) is _Stored else None

    def reducer_override(self, value):
        if isinstance(value, torch.Tensor):
            return self._reduce_tensor(value)
        kind = type(value)
        if kind is torch.Size:
            return torch.Size, (tuple(value),)
        if kind is torch.device:
            return torch.device, ((value.type,) if value.index is None else (value.type, value.index))
        if kind is torch.dtype:
            return _dtype_name(value)
        if isinstance(value, OrderedDict) and kind.__module__.startswith("mindtorch_v2."):
            # A module's state_dict(): torch's is an OrderedDict with an attribute.
            return OrderedDict, (), dict(value.__dict__), None, iter(value.items())
        return NotImplemented

    def _stored(self, tensor):
        address, size = tensor._storage()
        count = size // tensor.element_size()
        if not count:
            address = None, len(self.storages)  # storages without bytes have no address
        key = address, str(tensor.device)
        if key not in self.storages:
            self.storages[key] = _Stored(str(len(self.storages)), tensor, count)
        return self.storages[key]

    def _reduce_tensor(self, tensor):
        if type(tensor) is not torch.Tensor and isinstance(tensor, torch.nn.Parameter):
            return _rebuild_parameter, (tensor.detach(), tensor.requires_grad, OrderedDict())
        if tensor.is_meta:
            place = (tensor.dtype, tuple(tensor.shape), tuple(tensor.stride()))
            return _rebuild_meta_tensor_no_storage, (*place, tensor.requires_grad)
        plain = tensor.detach()
        stored = self._stored(plain)
        place = (stored, plain.storage_offset(), tuple(plain.shape), tuple(plain.stride()))
        if _dtype_name(plain.dtype) in _TYPES_AS_BYTES:
            return _rebuild_tensor_v3, (*place, tensor.requires_grad, OrderedDict(), plain.dtype)
        return _rebuild_tensor_v2, (*place, tensor.requires_grad, OrderedDict())


def _torch_names(data):
    """The pickle with torch's names for what this module and torch both know.

    A pickle names an object by the module it is imported from, which differs here. Only opcodes
    that name something are touched, never the object's own text.
    """
    import pickletools

    out, copied = io.BytesIO(), 0
    for opcode, argument, position in pickletools.genops(data):
        if opcode.name != "GLOBAL":
            continue
        module, _, name = argument.partition(" ")
        theirs = _THEIR_MODULE.get((module, name))
        if theirs is None:
            continue
        out.write(data[copied:position])
        out.write(f"c{theirs}\n{name}\n".encode())
        copied = position + 1 + len(f"{module}\n{name}\n".encode())
    out.write(data[copied:])
    return out.getvalue()


_FUNCTIONS = ("_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_parameter", "_rebuild_meta_tensor_no_storage")
_THEIR_MODULE = {(__name__, name): "torch._utils" for name in _FUNCTIONS}
_THEIR_MODULE.update({(__name__, name): "torch" for name in _STORAGES})
_THEIR_MODULE[(__name__, _BYTES)] = "torch.storage"
_DTYPES = (*_STORAGES.values(), *_TYPES_AS_BYTES)
for _name in ("Size", "device", "dtype", *_DTYPES):
    for _module in ("mindtorch_v2", "mindtorch_v2._C", "torch"):
        _THEIR_MODULE[(_module, _name)] = "torch"


def _write_entry(archive, name, data):
    """An entry whose bytes begin at a multiple of _ALIGN: header, name, an extra field as padding, bytes."""
    info = zipfile.ZipInfo(name)  # the same date always: the same object makes the same file
    wide = len(data) >= _LARGE
    head = archive.fp.tell() + 30 + len(name.encode()) + (20 if wide else 0) + 4
    pad = -head % _ALIGN
    info.extra = struct.pack("<HH", _PADDING, pad) + b"Z" * pad
    info.external_attr = 0o644 << 16
    view = memoryview(data)
    with archive.open(info, "w", force_zip64=wide) as entry:
        for begin in range(0, len(view), _CHUNK):
            entry.write(view[begin : begin + _CHUNK])


def _write(value, file, root):
    out = io.BytesIO()
    pickler = _Pickler(out, 2)
    pickler.dump(value)
    # archive.open() needs a seekable file; callers provide one.
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        _write_entry(archive, f"{root}/data.pkl", _torch_names(out.getvalue()))
        _write_entry(archive, f"{root}/byteorder", b"little")
        for stored in pickler.storages.values():
            _write_entry(archive, f"{root}/data/{stored.key}", stored.data())
        _write_entry(archive, f"{root}/version", b"3\n")


def _save_path(value, path):
    path = os.path.realpath(os.fspath(path))
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    folder, name = os.path.split(path)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    root = name.split(".")[0] or "archive"
    if is_special(path):  # a folder is refused by open()
        with open(path, "wb") as file:
            _save_file(value, file)
        return
    with new_file(path, "wb") as file:
        _write(value, file, root)


def _save_file(value, file):
    # Into memory first: a stream may not be seekable, and a failure writes nothing.
    memory = io.BytesIO()
    _write(value, memory, "archive")
    file.write(memory.getbuffer())


def save(obj, f, pickle_module=pickle, pickle_protocol=DEFAULT_PROTOCOL, _use_new_zipfile_serialization=True):
    """Writes an object to a path or a binary file; torch.load() reads it as well.

    Tensors are written with their whole storage, once for all that share it. The pickle in the file is
    of protocol 2, as torch's, whichever is asked for.
    """
    if not _use_new_zipfile_serialization:
        raise NotImplementedError("save(): the format that is no zip file cannot be written")
    if pickle_module is not pickle:
        raise NotImplementedError("save(): another pickle module is not supported")
    if not isinstance(pickle_protocol, int) or pickle_protocol < 2:
        raise ValueError(f"save(): pickle_protocol must be 2 or more, got {pickle_protocol!r}")
    if isinstance(f, (str, bytes, os.PathLike)):
        _save_path(obj, f)
    elif hasattr(f, "write"):
        _save_file(obj, f)
    else:
        raise AttributeError(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
        )


# ---- names that a file may use ---------------------------------------------------------------------

_safe = {}


def _name_of(thing):
    if isinstance(thing, tuple):
        return thing[1], thing[0]
    return f"{thing.__module__}.{thing.__qualname__}", thing


def add_safe_globals(safe_globals):
    """Lets load(weights_only=True) make these classes, or call these functions."""
    _safe.update(map(_name_of, safe_globals))


def get_safe_globals():
    """What add_safe_globals() was given."""
    return list(_safe.values())


def clear_safe_globals():
    """Takes all of it back."""
    _safe.clear()


class safe_globals:  # noqa: N801, torch's name
    """add_safe_globals() for the time of a with statement."""

    def __init__(self, safe_globals):
        self.globals = safe_globals

    def __enter__(self):
        self.before = dict(_safe)
        add_safe_globals(self.globals)

    def __exit__(self, *exception):
        _safe.clear()
        _safe.update(self.before)


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None):
    if not isinstance(storage, _Loaded):
        raise pickle.UnpicklingError(f"a tensor needs a storage, the file has {type(storage).__name__}")
    tensor = storage.view(storage_offset, size, stride)
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    if not isinstance(dtype, torch.dtype):
        raise pickle.UnpicklingError(f"a tensor needs a type, the file has {type(dtype).__name__}")
    everything = _Loaded(torch.empty(((1 << 62) // dtype.itemsize,), dtype=dtype, device="meta"))
    tensor = everything.view(0, size, stride)
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild_tensor_v3(storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None):
    """Of a storage of bytes: the offset counts elements all the same."""
    if not isinstance(storage, _Loaded) or not isinstance(dtype, torch.dtype):
        raise pickle.UnpicklingError(f"a tensor needs a storage and a type, the file has {type(storage).__name__} and "
                                     f"{type(dtype).__name__}")
    return _rebuild_tensor_v2(storage.of(dtype), storage_offset, size, stride, requires_grad, backward_hooks)


def _rebuild_parameter(data, requires_grad, backward_hooks):
    if not isinstance(data, torch.Tensor):
        raise pickle.UnpicklingError(f"a Parameter needs a tensor, the file has {type(data).__name__}")
    return torch.nn.Parameter(data, requires_grad)


def _allowed(module, name):
    """What a name in a file means with weights_only; None: not allowed."""
    if module in ("torch._utils", __name__) and name in _FUNCTIONS:
        return globals()[name]
    if module in ("torch", __name__) and name in _STORAGES or module in ("torch.storage", __name__) and name == _BYTES:
        return globals()[name]
    if module in ("torch", "mindtorch_v2", "mindtorch_v2._C"):
        if name in ("Size", "device") or name in _DTYPES:
            return getattr(torch, name)
    plain = {
        ("collections", "OrderedDict"): OrderedDict,
        ("collections", "Counter"): Counter,
        ("collections", "defaultdict"): defaultdict,
        ("_codecs", "encode"): codecs.encode,
    }
    if (module, name) in plain:
        return plain[(module, name)]
    if module in ("builtins", "__builtin__"):
        kinds = (set, frozenset, bytearray, complex, dict, list, int, float, tuple)
        found = {k.__name__: k for k in kinds}.get(name)
        if found is not None:
            return found
    return _safe.get(f"{module}.{name}")


def _make_size(reader, *arguments):
    reader.spend(sum(len(a) for a in arguments if isinstance(a, (list, tuple))))
    return torch.Size(*arguments)


def _maker(found):
    """How an untrusted file may call what a name stands for; None: not at all."""
    if any(found is thing for thing in _safe.values()):
        return lambda reader, *arguments: found(*arguments)
    if isinstance(found, type) and found in _weights_only.PLAIN:
        return _weights_only.PLAIN[found]
    if found is codecs.encode:
        return _weights_only.make_encoded
    if found is torch.Size:
        return _make_size
    if found is torch.device or found in (_rebuild_tensor_v2, _rebuild_tensor_v3, _rebuild_parameter,
                                          _rebuild_meta_tensor_no_storage):
        return lambda reader, *arguments: found(*arguments)
    return None


# ---- reading ---------------------------------------------------------------------------------------


class _Loaded:
    """A storage of a file: its elements as a tensor of one dimension, which all others are views of."""

    def __init__(self, elements):
        self.elements = elements
        self.others = {}

    def of(self, dtype):
        """The same bytes as elements of another type."""
        if dtype not in self.others:
            elements, size = self.elements, dtype.itemsize
            if elements.nbytes % size:
                raise pickle.UnpicklingError(f"a storage of {elements.nbytes} bytes has no whole elements of {dtype}")
            if elements.data_ptr() % size:
                elements = elements.clone()
            self.others[dtype] = _Loaded(elements.view(dtype))
        return self.others[dtype]

    def view(self, offset, size, stride):
        show = _weights_only.show
        plain = type(size) in (tuple, list, torch.Size) and type(stride) in (tuple, list, torch.Size)
        numbers = [offset, *size, *stride] if plain and len(size) == len(stride) else [None]
        if not all(type(n) is int and 0 <= n < 1 << 63 for n in numbers) or math.prod(size) >= 1 << 63:
            raise pickle.UnpicklingError(
                f"a tensor of size {show(size)}, stride {show(stride)} and offset {show(offset)} is not possible"
            )
        # SV4: the last element that the tensor reaches must be in the storage.
        reach = offset + sum((n - 1) * step for n, step in zip(size, stride)) + 1
        if 0 not in size and reach > self.elements.numel():
            raise pickle.UnpicklingError(
                f"a tensor of size {show(size)} reaches {reach} elements, its storage has {self.elements.numel()}"
            )
        if 0 in size:
            return torch.empty(size, dtype=self.elements.dtype, device=self.elements.device)
        return self.elements.as_strided(size, stride, offset)


def _place(elements, location, map_location):
    """The elements on the device that they belong on."""
    if callable(map_location):
        moved = map_location(elements, location)
        if moved is not None:
            return moved
    elif isinstance(map_location, dict):
        other = location.replace(*(("npu", "cuda") if location.startswith("npu") else ("cuda", "npu")))
        location = map_location.get(location, map_location.get(other, location))
    elif map_location is not None:
        location = map_location
    device = torch.device(location)
    if device.type != "npu":
        return elements.to(device)
    if not torch.npu.is_available():
        raise RuntimeError(
            f"Attempting to deserialize object on an NPU device ({location}) but torch.npu.is_available() is "
            "False. If you are running on a CPU-only machine, please use torch.load with "
            "map_location=torch.device('cpu') to map your storages to the CPU."
        )
    count = torch.npu.device_count()
    if device.index is not None and device.index >= count:
        raise RuntimeError(
            f"Attempting to deserialize object on NPU device {device.index} but torch.npu.device_count() is "
            f"{count}. Please use torch.load with map_location to map your storages to an existing device."
        )
    return elements.to(device)


class _Storages:
    """The storages of a file, as its pickle refers to them."""

    def __init__(self, archive, map_location):
        self.archive = archive
        self.map_location = map_location
        self.loaded = {}

    def __call__(self, identity):
        kinds = (str, _StorageType, str, str, int)
        if type(identity) is not tuple or tuple(map(type, identity)) != kinds or identity[0] != "storage":
            raise pickle.UnpicklingError(f"the file refers to {_weights_only.show(identity)}, which is no storage")
        _, kind, key, location, count = identity
        if count < 0:
            raise pickle.UnpicklingError(f"the file refers to {_weights_only.show(identity)}, which is no storage")
        place = (key, kind.name)
        if place not in self.loaded:
            elements = self.archive.elements(f"data/{key}", kind.dtype, count)
            self.loaded[place] = _Loaded(_place(elements, location, self.map_location))
        return self.loaded[place]


class _Unpickler(pickle.Unpickler):
    """Of a file that the user trusts: names are imported."""

    def __init__(self, data, storages, encoding):
        super().__init__(io.BytesIO(data), encoding=encoding)
        self.persistent_load = storages

    def find_class(self, module, name):
        found = _allowed(module, name)
        return super().find_class(module, name) if found is None else found


def _find_allowed(module, name):
    found = _allowed(module, name)
    if found is None:
        _weights_only.refuse(
            "The file asks for something that is not data: "
            f"Unsupported global: GLOBAL {module}.{name} was not an allowed global by default. If you trust "
            f"the file, load it with weights_only=False, or allow it with "
            f"`mindtorch_v2.serialization.add_safe_globals([{module}.{name}])`."
        )
    return found, _maker(found)


def _read_data(data, storages, encoding):
    """SV3: an object of data alone."""
    classes = {thing for thing in _safe.values() if isinstance(thing, type)}
    return _weights_only.Reader(data, _find_allowed, classes, storages, encoding).load()


class _Archive:
    """A zip file's entries below its one folder."""

    def __init__(self, file, what, mapped):
        self.what = what
        self.file = file
        self.mapped = mapped
        try:
            self.zip = zipfile.ZipFile(file)
        except zipfile.BadZipFile as error:
            raise self.broken(f"it begins like a zip archive, but its end is missing ({error})") from None
        names = [name for name in self.zip.namelist() if name.endswith("/data.pkl")]
        if len(names) != 1:
            raise self.broken(f"it is a zip archive with {len(names)} data.pkl in it, not one")
        self.root = names[0][: -len("data.pkl")]
        file.seek(0, os.SEEK_END)
        self.left = file.tell()  # bytes that storages may have
        order = self.read("byteorder", b"little")
        if order.strip() != b"little":
            raise self.broken(f"its byte order is {order!r}, only little is known")

    def broken(self, why):
        return RuntimeError(f"load(): {self.what} cannot be read: {why}")

    def info(self, name):
        try:
            info = self.zip.getinfo(self.root + name)
        except KeyError:
            raise self.broken(f"{name} is missing in it") from None
        if info.compress_type != zipfile.ZIP_STORED:
            raise self.broken(f"{name} in it is compressed")
        return info

    def read(self, name, otherwise=None):
        if otherwise is not None and self.root + name not in self.zip.namelist():
            return otherwise
        try:
            return self.zip.read(self.info(name))
        except (zipfile.BadZipFile, EOFError, ValueError) as error:
            raise self.broken(f"{name} in it is damaged ({error})") from None

    def elements(self, name, dtype, count):
        """`count` elements of an entry; in the mapped file, or in memory of their own."""
        info = self.info(name)
        size = count * dtype.itemsize
        if info.file_size < size:
            raise self.broken(f"{name} has {info.file_size} bytes, {size} are needed")
        self.left -= size
        if self.left < 0:  # entries that overlap, or one entry as several types
            raise self.broken("its storages are larger than the file")
        if not count:
            return torch.empty(0, dtype=dtype, device="cpu")
        if self.mapped is not None:
            begin = self.begin_of(info)
            if begin + size > len(self.mapped):
                raise self.broken(f"{name} ends behind the file's end")
            if begin % dtype.itemsize == 0:
                return torch.frombuffer(self.mapped, dtype=dtype, count=count, offset=begin)
        if dtype == torch.bfloat16:
            return torch._C._tensor_from_bytes(self.read(name)[:size], dtype, (count,))
        elements = torch.empty(count, dtype=dtype, device="cpu")
        self.fill(memoryview(elements).cast("B"), info)
        return elements

    def fill(self, view, info):
        try:
            with self.zip.open(info) as entry:
                while len(view):
                    got = entry.readinto(view[:_CHUNK])
                    if not got:
                        raise EOFError("it ends early")
                    view = view[got:]
                entry.read()  # what is left, and the check sum
        except (zipfile.BadZipFile, EOFError) as error:
            raise self.broken(f"{info.filename} in it is damaged ({error})") from None

    def begin_of(self, info):
        """Where an entry's bytes begin in the file: after a header that says its own size."""
        head = self.mapped[info.header_offset : info.header_offset + 30]
        if len(head) != 30 or head[:4] != b"PK\x03\x04":
            raise self.broken(f"{info.filename} in it has no header")
        name, extra = struct.unpack_from("<HH", head, 26)
        return info.header_offset + 30 + name + extra


def _load_file(file, what, mapped, weights_only, map_location, encoding):
    start = file.tell()
    magic = file.read(4)
    file.seek(start)
    if not magic:
        raise EOFError(f"load(): {what} is empty")
    if magic[:2] == b"\x80\x02":
        raise RuntimeError(
            f"load(): {what} is a pickle, not a zip archive: torch wrote such files before version 1.6 (or "
            "with _use_new_zipfile_serialization=False). Load and save it again with torch."
        )
    if magic != b"PK\x03\x04":
        raise RuntimeError(f"load(): {what} is not a file of save(): it begins with {magic!r}")
    archive = _Archive(file, what, mapped)
    data, storages = archive.read("data.pkl"), _Storages(archive, map_location)
    try:
        if weights_only:
            return _read_data(data, storages, encoding)
        return _Unpickler(data, storages, encoding).load()
    except (EOFError, IndexError, ValueError) as error:
        raise pickle.UnpicklingError(f"load(): the pickle in {what} is damaged: {error}") from error
    except (TypeError, AttributeError, OverflowError, RecursionError) as error:
        if not weights_only:
            raise  # the file's own code
        raise pickle.UnpicklingError(f"load(): the pickle in {what} is damaged: {error}") from error


def load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, encoding="utf-8"):
    """Reads what save(), or torch.save(), wrote.

    map_location: a device, a dict from places to devices, or a function of (elements, place).
    weights_only: False lets the file import anything and so run any code; the default does not.
    mmap: tensors are views of the mapped file, read when they are used; changes stay in memory.
    """
    weights_only = True if weights_only is None else weights_only
    if pickle_module is not None and pickle_module is not pickle:
        if weights_only:
            raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
        raise NotImplementedError("load(): another pickle module is not supported")
    arguments = (weights_only, map_location, encoding)
    if isinstance(f, (str, bytes, os.PathLike)):
        with open(f, "rb") as file:
            mapped = None
            if mmap:
                import mmap as mapping

                if os.fstat(file.fileno()).st_size:
                    mapped = mapping.mmap(file.fileno(), 0, access=mapping.ACCESS_COPY)
            return _load_file(file, repr(os.fsdecode(f)), mapped, *arguments)
    if mmap:
        raise ValueError("f must be a file name in order to use the mmap argument")
    if not hasattr(f, "seek") or not hasattr(f, "read"):
        raise AttributeError(
            f"'{type(f).__name__}' object has no attribute 'seek'. You can only torch.load from a file that "
            "is seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from it "
            "instead."
        )
    return _load_file(f, getattr(f, "name", None) and repr(f.name) or "the file", None, *arguments)
