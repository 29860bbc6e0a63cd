# SPDX-License-Identifier: Apache-2.0
"""libmindtorch through ctypes: boxed calls by schema, tensors as handles, torch's exceptions.

    lib = mt.open_library("build/dev/libmindtorch.so")
    x = mt.tensor(numpy_array)
    y = mt.call("add", x, 2, alpha=3)
    y.numpy()

Everything passes mt_call(), the way that all users of the library end in. Nothing here knows an op.
"""
import builtins
import ctypes as c
import re

import numpy as np

KINDS = ("NONE BOOL INT REAL TENSOR INTS TENSORS TEXT DTYPE DEVICE GENERATOR").split()
NONE, BOOL, INT, REAL, TENSOR, INTS, TENSORS, TEXT, DTYPE, DEVICE, GENERATOR = range(len(KINDS))

DTYPES = ("bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "int8", "int16", "uint16",
          "uint32", "uint64", "complex64", "complex128")
FLAGS = ("COMPOSITE INPLACE VIEW RANDOM SYNC USER FACTORY POINTWISE REDUCTION OPTIMIZER "
         "ANY_DEVICE PRODUCT FUSED LIKE").split()
RETAIN_GRAPH, CREATE_GRAPH, ALLOW_UNUSED = 1, 2, 4


class BFloat16(np.ndarray):
    """float32 numbers that stand for bfloat16 ones: NumPy has no such type."""


def bfloat16(values):
    """Rounds to bfloat16 (to nearest, ties to even)."""
    numbers = np.array(values, np.float32, order="C").reshape(-1)
    bits = numbers.view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16
    rounded = np.where(np.isnan(numbers), 0x7FC00000, rounded).astype(np.uint32)
    return rounded.view(np.float32).reshape(np.shape(values)).view(BFloat16)


def dtype_of(array):
    """torch's name of an array's type."""
    return "bfloat16" if isinstance(array, BFloat16) else np.asarray(array).dtype.name


class _Union(c.Union):
    _fields_ = [("integer", c.c_int64), ("real", c.c_double), ("pointer", c.c_void_p)]


class Value(c.Structure):
    _fields_ = [("kind", c.c_uint32), ("count", c.c_uint32), ("of", _Union)]


class OpInfo(c.Structure):
    _fields_ = [("struct_size", c.c_uint32), ("flags", c.c_uint32), ("name", c.c_char_p),
                ("overload", c.c_char_p), ("trace_name", c.c_char_p), ("schema", c.c_char_p),
                ("n_params", c.c_uint32), ("n_results", c.c_uint32), ("differentiable", c.c_bool)]


class MemoryStats(c.Structure):
    _fields_ = [("struct_size", c.c_uint32), ("reserved", c.c_uint32)] + [
        (name, c.c_uint64) for name in ("allocated_bytes", "peak_allocated_bytes", "reserved_bytes",
                                        "peak_reserved_bytes", "allocations", "releases")]


class SimCounts(c.Structure):
    _fields_ = [("struct_size", c.c_uint32), ("waiting", c.c_uint32), ("most", c.c_uint32),
                ("gave_up", c.c_uint32), ("launches", c.c_uint64), ("done", c.c_uint64)]


class Sim(c.Structure):
    """Controls of the simulated accelerator (sim.h), those that are used here."""
    _fields_ = [("struct_size", c.c_uint32), ("reserved", c.c_uint32),
                ("hold", c.CFUNCTYPE(c.c_int, c.c_uint32, c.c_uint32, c.c_uint32, c.c_uint64)),
                ("release", c.CFUNCTYPE(c.c_int, c.c_uint32, c.c_uint32)),
                ("counts", c.CFUNCTYPE(c.c_int, c.c_uint32, c.c_uint32, c.POINTER(SimCounts)))]


class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("system_error", c.c_int32), ("offset", c.c_int64),
                ("message", c.c_char * 496)]


_lib = None
_sim = None
_ops = {}

_SIGNATURES = {
    "mt_status_exception": (c.c_char_p, [c.c_int]),
    "mt_last_error": (c.POINTER(Error), []),
    "mt_op_count": (c.c_uint32, []),
    "mt_op_get_info": (c.c_int, [c.c_uint32, c.POINTER(OpInfo)]),
    "mt_call": (c.c_int, [c.c_uint32, c.POINTER(Value), c.c_uint32, c.POINTER(Value), c.c_uint32]),
    "mt_value_clear": (None, [c.POINTER(Value)]),
    "mt_tensor_from_data": (c.c_int, [c.c_void_p, c.c_int, c.POINTER(c.c_int64), c.c_size_t,
                                      c.c_int32, c.POINTER(c.c_void_p)]),
    "mt_tensor_retain": (c.c_void_p, [c.c_void_p]),
    "mt_tensor_release": (None, [c.c_void_p]),
    "mt_tensor_read": (c.c_int, [c.c_void_p, c.c_void_p, c.c_size_t]),
    "mt_tensor_dtype": (c.c_int, [c.c_void_p]),
    "mt_tensor_device": (c.c_int32, [c.c_void_p]),
    "mt_tensor_n_dims": (c.c_uint32, [c.c_void_p]),
    "mt_tensor_sizes": (c.POINTER(c.c_int64), [c.c_void_p]),
    "mt_tensor_strides": (c.POINTER(c.c_int64), [c.c_void_p]),
    "mt_tensor_offset": (c.c_int64, [c.c_void_p]),
    "mt_tensor_numel": (c.c_int64, [c.c_void_p]),
    "mt_tensor_is_contiguous": (c.c_bool, [c.c_void_p]),
    "mt_tensor_version": (c.c_uint32, [c.c_void_p]),
    "mt_tensor_storage_address": (c.c_uint64, [c.c_void_p]),
    "mt_tensor_requires_grad": (c.c_bool, [c.c_void_p]),
    "mt_tensor_set_requires_grad": (c.c_int, [c.c_void_p, c.c_bool]),
    "mt_tensor_is_leaf": (c.c_bool, [c.c_void_p]),
    "mt_tensor_is_view": (c.c_bool, [c.c_void_p]),
    "mt_tensor_grad": (c.c_void_p, [c.c_void_p]),
    "mt_tensor_set_grad": (c.c_int, [c.c_void_p, c.c_void_p]),
    "mt_tensor_grad_fn": (c.c_void_p, [c.c_void_p]),
    "mt_node_name": (c.c_char_p, [c.c_void_p]),
    "mt_tensors_alive": (c.c_uint64, []),
    "mt_set_grad_enabled": (c.c_bool, [c.c_bool]),
    "mt_backward": (c.c_int, [c.c_void_p, c.c_void_p, c.c_uint32]),
    "mt_grad": (c.c_int, [c.POINTER(c.c_void_p), c.POINTER(c.c_void_p), c.c_size_t,
                          c.POINTER(c.c_void_p), c.c_size_t, c.c_uint32, c.POINTER(c.c_void_p)]),
    "mt_generator_new": (c.c_int, [c.c_uint64, c.POINTER(c.c_void_p)]),
    "mt_generator_free": (None, [c.c_void_p]),
    "mt_manual_seed": (None, [c.c_uint64]),
    "mt_generator_offset": (c.c_uint64, [c.c_void_p]),
    "mt_device_parse": (c.c_int, [c.c_char_p, c.POINTER(c.c_int32)]),
    "mt_device_name": (c.c_char_p, [c.c_int32]),
    "mt_device_count": (c.c_uint32, [c.c_int]),
    "mt_device_synchronize": (c.c_int, [c.c_int32]),
    "mt_backend_load": (c.c_int, [c.c_char_p]),
    "mt_backend_extension": (c.c_void_p, [c.c_int, c.c_char_p]),
    "mt_device_get_memory_stats": (c.c_int, [c.c_int32, c.POINTER(MemoryStats)]),
    "mt_set_num_threads": (c.c_int, [c.c_uint32]),
    "mt_set_default_dtype": (c.c_int, [c.c_int]),
}


class OutOfMemoryError(RuntimeError):
    """A device has no memory left."""


class _LinAlgError(RuntimeError):
    """A matrix cannot be factorised."""


OWN_ERRORS = {"OutOfMemoryError": OutOfMemoryError, "_LinAlgError": _LinAlgError}


def open_library(path):
    """Loads the shared library and learns its ops."""
    global _lib
    _lib = c.CDLL(str(path))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(_lib, name)
        function.restype = result
        function.argtypes = arguments
    _ops.clear()
    for number in range(_lib.mt_op_count()):
        op = Op(number)
        _ops[op.name] = op
    return _lib


def library():
    return _lib


def check(status):
    """Raises what torch would raise for a status."""
    if status != 0:
        name = _lib.mt_status_exception(status).decode()
        kind = OWN_ERRORS.get(name) or getattr(builtins, name)
        raise kind(_lib.mt_last_error().contents.message.decode("utf-8", "replace"))


def ops():
    """All ops by name ("max.dim")."""
    return _ops


def tensors_alive():
    return _lib.mt_tensors_alive()


def memory_stats(device="cpu"):
    stats = MemoryStats(struct_size=c.sizeof(MemoryStats))
    check(_lib.mt_device_get_memory_stats(device_number(device), c.byref(stats)))
    return stats


def device_number(text):
    number = c.c_int32()
    check(_lib.mt_device_parse(text.encode(), c.byref(number)))
    return number.value


def synchronize(device):
    """Waits for a device; raises what failed there."""
    check(_lib.mt_device_synchronize(device_number(device)))


def load_backend(name):
    global _sim
    check(_lib.mt_backend_load(name.encode()))
    found = _lib.mt_backend_extension(1, b"sim")
    _sim = c.cast(found, c.POINTER(Sim)).contents if found else None


class held:
    """Holds the default stream of the simulated accelerator npu:0. `waited` is then whether somebody
    waited for it meanwhile; False everywhere else."""

    FOREVER = 2 ** 31

    def __init__(self):
        self.sim = _sim
        self.waited = False

    def _gave_up(self):
        counts = SimCounts(struct_size=c.sizeof(SimCounts))
        check(self.sim.counts(0, 0, c.byref(counts)))
        return counts.gave_up

    def __enter__(self):
        if self.sim:
            self.before = self._gave_up()
            check(self.sim.hold(0, 0, self.FOREVER, 0))
        return self

    def __exit__(self, *_):
        if self.sim:
            check(self.sim.release(0, 0))
            self.waited = self._gave_up() != self.before


def manual_seed(seed):
    _lib.mt_manual_seed(seed)


class Generator:
    def __init__(self, seed):
        handle = c.c_void_p()
        check(_lib.mt_generator_new(seed, c.byref(handle)))
        self.handle = handle.value

    def __del__(self):
        _lib.mt_generator_free(self.handle)


class no_grad:
    def __enter__(self):
        self.before = _lib.mt_set_grad_enabled(False)

    def __exit__(self, *_):
        _lib.mt_set_grad_enabled(self.before)


# ---- tensors -------------------------------------------------------------------------------------


class Tensor:
    """One reference to a tensor."""

    __slots__ = ("handle", "__weakref__")

    def __init__(self, handle):
        self.handle = handle

    def __del__(self):
        if _lib is not None:
            _lib.mt_tensor_release(self.handle)

    @property
    def dtype(self):
        return DTYPES[_lib.mt_tensor_dtype(self.handle)]

    @property
    def device(self):
        return _lib.mt_device_name(_lib.mt_tensor_device(self.handle)).decode()

    @property
    def shape(self):
        return tuple(_lib.mt_tensor_sizes(self.handle)[:_lib.mt_tensor_n_dims(self.handle)])

    @property
    def strides(self):
        return tuple(_lib.mt_tensor_strides(self.handle)[:_lib.mt_tensor_n_dims(self.handle)])

    @property
    def offset(self):
        return _lib.mt_tensor_offset(self.handle)

    @property
    def numel(self):
        return _lib.mt_tensor_numel(self.handle)

    @property
    def version(self):
        return _lib.mt_tensor_version(self.handle)

    @property
    def storage(self):
        return _lib.mt_tensor_storage_address(self.handle)

    @property
    def requires_grad(self):
        return _lib.mt_tensor_requires_grad(self.handle)

    @requires_grad.setter
    def requires_grad(self, value):
        check(_lib.mt_tensor_set_requires_grad(self.handle, value))

    @property
    def is_contiguous(self):
        return _lib.mt_tensor_is_contiguous(self.handle)

    @property
    def is_leaf(self):
        return _lib.mt_tensor_is_leaf(self.handle)

    @property
    def is_view(self):
        return _lib.mt_tensor_is_view(self.handle)

    @property
    def grad(self):
        grad = _lib.mt_tensor_grad(self.handle)
        return Tensor(_lib.mt_tensor_retain(grad)) if grad else None

    @property
    def grad_fn(self):
        """Name of the node that made it, or None."""
        node = _lib.mt_tensor_grad_fn(self.handle)
        return _lib.mt_node_name(node).decode() if node else None

    def backward(self, gradient=None, flags=0):
        check(_lib.mt_backward(self.handle, gradient.handle if gradient else None, flags))

    def numpy(self):
        """A copy of the elements; bfloat16 as BFloat16, which holds float32 numbers."""
        dtype = self.dtype
        raw = np.empty(self.shape, np.uint16 if dtype == "bfloat16" else dtype)
        check(_lib.mt_tensor_read(self.handle, raw.ctypes.data, raw.nbytes))
        if dtype == "bfloat16":
            bits = np.left_shift(raw.astype(np.uint32), np.uint32(16), dtype=np.uint32)
            return np.asarray(bits, np.uint32).view(np.float32).view(BFloat16)
        return raw

    def __repr__(self):
        return f"Tensor({self.dtype}, {list(self.shape)}, {self.device})"


def tensor(array, device="cpu"):
    """A contiguous tensor of an array's elements and type."""
    name = dtype_of(array)
    if name == "bfloat16":
        bits = np.array(array, np.float32, order="C").view(np.uint32)
        raw = np.asarray(bits >> np.uint32(16), np.uint16)
    else:
        raw = np.asarray(array)
    raw = np.ascontiguousarray(raw).reshape(np.shape(array))  # the first makes 0-d 1-d
    sizes = (c.c_int64 * max(raw.ndim, 1))(*raw.shape)
    handle = c.c_void_p()
    check(_lib.mt_tensor_from_data(raw.ctypes.data, DTYPES.index(name), sizes, raw.ndim,
                                   device_number(device), c.byref(handle)))
    return Tensor(handle.value)


def _handles(tensors):
    return (c.c_void_p * max(len(tensors), 1))(*[t.handle if t is not None else None
                                                 for t in tensors])


def grad(outputs, inputs, gradients=None, flags=0):
    """mt_grad(): gradients for `inputs`, None where nothing depended on one (ALLOW_UNUSED)."""
    found = (c.c_void_p * max(len(inputs), 1))()
    check(_lib.mt_grad(_handles(outputs), _handles(gradients or [None] * len(outputs)),
                       len(outputs), _handles(inputs), len(inputs), flags, found))
    return [Tensor(handle) if handle else None for handle in found[:len(inputs)]]


# ---- calls ---------------------------------------------------------------------------------------


class Parameter:
    __slots__ = ("name", "type", "optional", "keyword", "has_default", "default")

    def __init__(self, text, keyword):
        match = re.fullmatch(r"(\S+)\s+(\w+)(?:=(.+))?", text)
        self.type, self.name, default = match.groups()
        self.optional = self.type.endswith("?")
        self.type = self.type.removesuffix("?")
        self.keyword = keyword
        self.has_default = default is not None
        self.default = _parse_default(default) if self.has_default else None


def _parse_default(text):
    words = {"None": None, "True": True, "False": False}
    if text in words:
        return words[text]
    if text.startswith("["):
        return [int(word) for word in text[1:-1].split(",") if word.strip()]
    if text[0] in "\"'":
        return text[1:-1]
    return int(text) if re.fullmatch(r"-?\d+", text) else float(text)


class Op:
    """A row of the op table."""

    def __init__(self, number):
        info = OpInfo(struct_size=c.sizeof(OpInfo))
        check(_lib.mt_op_get_info(number, c.byref(info)))
        self.number = number
        overload = info.overload.decode()
        self.name = info.name.decode() + ("." + overload if overload else "")
        self.schema = info.schema.decode()
        self.trace_name = info.trace_name.decode()
        self.flags = {name for bit, name in enumerate(FLAGS) if info.flags >> bit & 1}
        self.n_results = info.n_results
        self.differentiable = info.differentiable
        self.parameters = []
        inside = re.match(r"[^(]*\((.*)\)\s*->", self.schema).group(1)
        keyword = False
        for text in re.split(r",\s*(?![^\[]*\])", inside) if inside else []:
            if text.strip() == "*":
                keyword = True
            else:
                self.parameters.append(Parameter(text.strip(), keyword))

    def bind(self, args, kwargs):
        """Python arguments in the schema's order; what is left out at the end stays away."""
        kwargs = dict(kwargs)
        given = []
        last = 0
        plain = [p for p in self.parameters if not p.keyword]
        if len(args) > len(plain):
            raise AssertionError(f"{self.name}: {len(args)} arguments for {self.schema}")
        for index, parameter in enumerate(self.parameters):
            if index < len(args):
                value = args[index]
            elif parameter.name in kwargs:
                value = kwargs.pop(parameter.name)
            elif parameter.has_default:
                given.append(parameter.default)
                continue
            else:
                break
            given.append(value)
            last = index + 1
        if kwargs:
            raise AssertionError(f"{self.name}: unknown arguments {sorted(kwargs)}")
        return given[:last]


def _scalar(value):
    if isinstance(value, (bool, np.bool_)):
        return Value(BOOL, 0, _Union(integer=int(value)))
    if isinstance(value, (int, np.integer)):
        return Value(INT, 0, _Union(integer=int(value)))
    return Value(REAL, 0, _Union(real=float(value)))


def _box_list(value, keep):
    if len(value) != 0 and all(isinstance(v, (int, np.integer)) for v in value):
        array = (c.c_int64 * len(value))(*[int(v) for v in value])
        kind = INTS
    else:
        array = _handles(value)
        kind = TENSORS
    keep.append(array)
    return Value(kind, len(value), _Union(pointer=c.addressof(array)))


def _box(value, parameter, keep):
    if value is None:
        return Value(NONE)
    if isinstance(value, Tensor):
        return Value(TENSOR, 0, _Union(pointer=value.handle))
    if isinstance(value, Generator):
        return Value(GENERATOR, 0, _Union(pointer=value.handle))
    if isinstance(value, (list, tuple)):
        boxed = _box_list(value, keep)
        if len(value) == 0 and parameter.type == "int[]":
            boxed.kind = INTS
        return boxed
    if isinstance(value, str):
        if parameter.type == "dtype":
            return Value(DTYPE, 0, _Union(integer=DTYPES.index(value)))
        if parameter.type == "device":
            return Value(DEVICE, 0, _Union(integer=device_number(value)))
        text = c.create_string_buffer(value.encode())
        keep.append(text)
        return Value(TEXT, 0, _Union(pointer=c.addressof(text)))
    if parameter.type == "float" and not isinstance(value, (bool, np.bool_)):
        return Value(REAL, 0, _Union(real=float(value)))
    return _scalar(value)


def _unbox(value):
    if value.kind == TENSOR:
        return Tensor(_lib.mt_tensor_retain(value.of.pointer))
    if value.kind == TENSORS:
        handles = c.cast(value.of.pointer, c.POINTER(c.c_void_p))[:value.count]
        return [Tensor(_lib.mt_tensor_retain(handle)) if handle else None for handle in handles]
    if value.kind == BOOL:
        return bool(value.of.integer)
    if value.kind == INT:
        return value.of.integer
    if value.kind == REAL:
        return value.of.real
    if value.kind == NONE:
        return None
    raise AssertionError(f"result of kind {KINDS[value.kind]}")


def call(name, *args, **kwargs):
    """Calls an op; gives a Tensor, a list, a number, a tuple of results, or None."""
    op = _ops[name]
    keep = []
    given = op.bind(args, kwargs)
    boxed = (Value * max(len(given), 1))()
    for index, value in enumerate(given):
        boxed[index] = _box(value, op.parameters[index], keep)
    results = (Value * max(op.n_results, 1))()
    status = _lib.mt_call(op.number, boxed, len(given), results, op.n_results)
    if status != 0:
        if any(result.kind != NONE for result in results):
            raise AssertionError(f"{name}: failed and left results")
        check(status)
    unboxed = tuple(_unbox(result) for result in results[:op.n_results])
    for index in range(op.n_results):
        _lib.mt_value_clear(c.byref(results[index]))
    return unboxed[0] if op.n_results == 1 else unboxed if op.n_results else None
