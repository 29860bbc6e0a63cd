# SPDX-License-Identifier: Apache-2.0
"""Writes the packages' type stubs from what they hold: make_stubs.py [--check]

Parameters and types of functions and methods that come from the op table are made of their schemas
(mindtorch_v2/_signatures.py). Run it on the dev build (./dev python tools/make_stubs.py)
when a row or a method is new; --check only
says whether the stubs are up to date (a test does that).
"""
import inspect
import keyword
import pathlib
import re
import sys

import mindtorch_v2 as torch
import mtprof
import mtprof.events  # completes what C has begun
from mindtorch_v2 import _C

PYTHON = pathlib.Path(__file__).resolve().parent.parent / "python"
TYPES = {"Tensor": "Tensor", "Tensor|Scalar": "Tensor | Number", "Scalar": "Number", "int": "int", "float": "float",
         "bool": "bool", "str": "str", "int[]": "int | Sequence[int]", "Tensor[]": "Sequence[Tensor]",
         "Tensor?[]": "Sequence[Tensor | None]", "dtype": "_dtype", "device": "DeviceLike", "Generator": "Generator"}
PROPERTIES = {"shape": "Size", "dtype": "_dtype", "device": "_device", "grad": "Tensor | None", "data": "Tensor", "T": "Tensor",
              "mT": "Tensor", "H": "Tensor", "mH": "Tensor", "ndim": "int", "requires_grad": "bool", "is_leaf": "bool",
              "itemsize": "int", "nbytes": "int", "_version": "int", "is_cuda": "bool", "is_npu": "bool", "is_cpu": "bool",
              "output_nr": "int", "layout": "_layout", "retains_grad": "bool"}
RESULTS = {"Tensor": "Tensor", "Tensor[]": "tuple[Tensor, ...]", "Scalar": "Number", "bool": "bool", "int": "int", "float": "float"}
OPERATORS = {**{f"__{n}__": "Tensor" for n in
                ("add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul rmatmul and rand or ror "
                 "xor rxor lshift rshift rlshift rrshift iadd isub imul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift "
                 "imatmul").split()}}
PLAIN = {"__len__": "(self) -> int", "__bool__": "(self) -> bool", "__int__": "(self) -> int", "__float__": "(self) -> float",
         "__index__": "(self) -> int", "__neg__": "(self) -> Tensor", "__pos__": "(self) -> Tensor", "__abs__": "(self) -> Tensor",
         "__invert__": "(self) -> Tensor", "__iter__": "(self) -> Iterator[Tensor]", "__hash__": "(self) -> int",
         "__getitem__": "(self, key: Any) -> Tensor", "__setitem__": "(self, key: Any, value: Any) -> None"}
COMPARE = ("__lt__", "__le__", "__gt__", "__ge__")
RETURNS = {**dict.fromkeys("bfloat16 bool byte char cpu cuda npu detach_ double float half int long short to pin_memory requires_grad_ "
                           "tensor as_tensor from_numpy from_dlpack frombuffer".split(), "Tensor"),
           **dict.fromkeys("dim ndimension numel nelement storage_offset element_size data_ptr get_num_threads".split(), "int"),
           **dict.fromkeys("is_contiguous is_floating_point is_signed is_complex is_same_size is_pinned is_grad_enabled "
                           "is_inference is_shared".split(), "bool"),
           **dict.fromkeys("retain_grad record_stream set_num_threads set_default_dtype set_default_device".split(), "None"),
           **dict.fromkeys("get_default_dtype promote_types".split(), "_dtype"), "get_default_device": "_device"}
HEAD = '''# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_stubs.py; do not edit.
'''


def type_of(parameter):
    """A parameter's type as Python writes it."""
    return TYPES.get(parameter.type, "Any") + (" | None" if parameter.optional else "")


def schema_signatures(overload):
    """(parameters, result) of a row; two where sizes may be given as a list or one by one."""
    ways = [False, True] if any(p.spread for p in overload.parameters) else [False]
    for spread in ways:
        words, star = (["self"] if overload.method else []), False
        for p in overload.parameters[1:] if overload.method else overload.parameters:
            if p.spread and spread:
                words.append(f"*{p.name}: int")
                star = True
                continue
            if p.keyword_only and not star:
                words.append("*")
                star = True
            words.append(f"{p.name}: {type_of(p)}" + ("" if p.required else " = ..."))
        extras = [(name, TYPES[kind.removesuffix("?")] + (" | None" if kind.endswith("?") else ""))
                  for name, kind, _ in overload.extras()]
        words += ["*"] if extras and not star else []
        words += [f"{name}: {kind} = ..." for name, kind in extras]
        if len(overload.results) > 1:
            result = f"tuple[{', '.join('Tensor' for _ in overload.results)}]"
        else:
            result = RESULTS.get(overload.results[0], "Any") if overload.results else "None"
        yield ", ".join(words), result


def python_signature(function):
    """What inspect knows, without defaults' values."""
    try:
        sign = inspect.signature(function)
    except (TypeError, ValueError):
        return "*args: Any, **kwargs: Any"
    words, star = [], False
    for p in sign.parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            words.append(f"*{p.name}: Any")
            star = True
        elif p.kind is p.VAR_KEYWORD:
            words.append(f"**{p.name}: Any")
        else:
            if p.kind is p.KEYWORD_ONLY and not star:
                words.append("*")
                star = True
            words.append(p.name if p.name == "self" else f"{p.name}: Any" + ("" if p.default is p.empty else " = ..."))
    return ", ".join(words)


def definitions(name, value, method, indent):
    """Lines that declare a function."""
    pad = "    " * indent
    rows = value._overloads if type(value) in (_C._op_method, _C._op_function) else []
    if not rows:
        text = python_signature(value)
        first, _, rest = text.partition(", ")
        if method and inspect.isfunction(value) and not first.startswith("*"):
            text = "self" + (", " + rest if rest else "")  # a function of _functions.py, whatever it calls its tensor
        elif method and first != "self":
            text = "self" + (", " + text if text else "")
        return [f"{pad}def {name}({text}) -> {RETURNS.get(name, 'Any')}: ..."]
    found = list(dict.fromkeys(way for row in rows for way in schema_signatures(row)))
    out = []
    for text, result in found:
        if len(found) > 1:
            out.append(f"{pad}@overload")
        out.append(f"{pad}def {name}({text}) -> {result}: ...")
    return out


def tensor_class():
    out = ["class Tensor:"]
    held = vars(torch.Tensor)
    for name in sorted(held):
        value = held[name]
        if name in OPERATORS:
            out.append(f"    def {name}(self, other: Any) -> Tensor: ...")
        elif name in PLAIN:
            out.append(f"    def {name}{PLAIN[name]}: ...")
        elif name in COMPARE:
            out.append(f"    def {name}(self, other: Any) -> Tensor: ...")
        elif name.startswith("__") or name.startswith("_") and name not in PROPERTIES:
            continue
        elif inspect.isgetsetdescriptor(value) or isinstance(value, property):
            kind = PROPERTIES.get(name, "Any")
            out += ["    @property", f"    def {name}(self) -> {kind}: ..."]
            if name in ("grad", "data", "requires_grad"):
                out += [f"    @{name}.setter", f"    def {name}(self, value: Any) -> None: ..."]
        elif isinstance(value, staticmethod):
            continue
        elif callable(value) and name.isidentifier() and not keyword.iskeyword(name):
            out += definitions(name, value, True, 1)
    out += ["    def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]",
            "    def __ne__(self, other: Any) -> Tensor: ...  # type: ignore[override]",
            "    def __getattr__(self, name: str) -> Any: ...", ""]
    return out


def tensors_stub():
    names = [n for n in sorted(set(dir(torch))) if not n.startswith("_")
             and n.isidentifier() and not keyword.iskeyword(n)]
    out = [HEAD, '"""mindtorch_v2: tensors with torch\'s names and semantics."""',
           "from collections.abc import Iterator, Sequence", "from typing import Any, overload", "",
           "import builtins as _b", "", "Number = _b.int | _b.float | _b.bool", "",
           "class dtype:", "    is_floating_point: _b.bool", "    is_signed: _b.bool", "    itemsize: _b.int",
           "    def to_complex(self) -> dtype: ..." if hasattr(torch.dtype, "to_complex") else "", "",
           "class device:", "    type: str", "    index: _b.int | None",
           "    def __init__(self, type: str | device | _b.int = ..., index: _b.int | None = ...) -> None: ...",
           "    def __enter__(self) -> device: ...", "    def __exit__(self, *exc: Any) -> None: ...", "",
           "class layout: ...", "class memory_format: ...", "",
           "# For where a property or a parameter has the name of the type.", "_dtype = dtype", "_device = device", "_layout = layout",
           "DeviceLike = _device | str | _b.int", "",
           "class Size(tuple[_b.int, ...]):", "    def numel(self) -> _b.int: ...", "",
           "class Generator:", "    def manual_seed(self, seed: _b.int) -> Generator: ...", "    def seed(self) -> _b.int: ...",
           "    def initial_seed(self) -> _b.int: ...", "    def __getattr__(self, name: str) -> Any: ...", ""]
    out += tensor_class()
    classes = {"dtype", "device", "layout", "memory_format", "Size", "Generator", "Tensor"}
    for name in names:
        if name in classes:
            continue
        try:
            value = getattr(torch, name)
        except (ImportError, AttributeError):
            continue
        if inspect.ismodule(value):
            if value.__name__.startswith("mindtorch_v2."):
                out.append(f"from . import {name} as {name}")
        elif isinstance(value, type) and issubclass(value, BaseException):
            out.append(f"class {name}({value.__base__.__name__}): ...")
        elif isinstance(value, type):
            out.append(f"{name}: type[Any]")
        elif isinstance(value, torch.dtype):
            out.append(f"{name}: dtype")
        elif callable(value):
            out += definitions(name, value, False, 0)
        else:
            out.append(f"{name}: Any")
    text = "\n".join(out) + "\n"
    # bool, int and float are dtypes here, as in torch; the types are the builtins.
    body = text.split("Number = ", 1)
    return body[0] + "Number = " + re.sub(r"(?<![\w.])(int|float|bool)(?=[\s,)\]|:=.]|$)(?!: dtype)",
                                          r"_b.\1", body[1], flags=re.M).replace("_b._b.", "_b.")


# ---- the profiler's C half ----

_NUMBER = {"float": "cpu_time_total device_time_total self_cpu_time_total self_device_time_total",
           "int": "id thread fwd_thread sequence_nr node_id count scope cpu_memory_usage device_memory_usage "
                  "self_cpu_memory_usage self_device_memory_usage device_index device_resource_id step flow_id flow_type external_id "
                  "linked_correlation_id python_id python_parent_id python_module_id",
           "bool": "is_async is_remote is_legacy is_user_annotation is_python_function flow_start",
           "str": "name key overload_name module", "str | None": "trace_name use_device activity_type", "int | None": "flops",
           "list[str]": "stack", "list[FunctionEvent]": "cpu_children", "FunctionEvent | None": "cpu_parent",
           "DeviceType": "device_type", "dict[str, Any] | None": "extra_meta kwinputs",
           "list[str] | None": "input_dtypes", "list[Any]": "input_shapes kernels", "_Interval": "time_range",
           "list[Any] | None": "concrete_inputs structured_input_shapes structured_input_strides"}
FIELDS = {name: kind for kind, names in _NUMBER.items() for name in names.split()}
CALLS = {"begin": "(name: str, /, **metadata: Any) -> int", "end": "(token: int, /) -> None",
         "instant": "(name: str, /, **metadata: Any) -> None", "counter": "(name: str, value: float, /) -> None",
         "flow": "(name: str, phase: Literal['start', 'step', 'end'], id: int, /) -> None",
         "name_thread": "(name: str | None, /) -> None", "kind_name": "(number: int, /) -> str"}
PROFILER_HEAD = '''"""The profiler's C half; import mtprof instead."""
from collections.abc import Callable, ItemsView, KeysView, ValuesView
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, type_check_only

from mtprof.enums import DeviceType

_Function = TypeVar("_Function", bound=Callable[..., Any])

@type_check_only
class _Interval:
    start: float
    end: float
    def elapsed_us(self) -> float: ...
'''
RECORD_FUNCTION = '''class record_function:
    name: str
    @property
    def args(self) -> str | None: ...
    @property
    def metadata(self) -> dict[str, Any]: ...
    @property
    def record(self) -> int | None: ...
    @property
    def run_callbacks_on_exit(self) -> bool: ...
    def __init__(self, name: str, args: str | None = None, **metadata: Any) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, exc_type: type[BaseException] | None, exc_value: BaseException | None,
                 traceback: TracebackType | None, /) -> None: ...
    def __call__(self, function: _Function, /) -> _Function: ...
'''
EVENT_METHODS = '''    def append_kernel(self, name: str, device: int, duration: float) -> None: ...
    def append_cpu_child(self, child: FunctionEvent) -> None: ...
    def set_cpu_parent(self, parent: FunctionEvent) -> None: ...
    def to_dict(self) -> dict[str, Any]: ...
    def get(self, key: str, default: Any = None) -> Any: ...
    def keys(self) -> KeysView[str]: ...
    def values(self) -> ValuesView[Any]: ...
    def items(self) -> ItemsView[str, Any]: ...
    def __getitem__(self, key: str) -> Any: ...
    def __contains__(self, key: object) -> bool: ...
'''


def own_fields(cls):
    """Properties that a class has of its own, with their types."""
    out = []
    for name, value in sorted(vars(cls).items()):
        if name.startswith("_") or (inspect.isroutine(value) and not hasattr(value, "_compute")):
            continue
        kind = FIELDS.get(name) or ("str" if name.endswith("_str") else "int" if name.endswith("memory_usage") else
                                    "float" if "time" in name else "Any")
        if isinstance(value, property) and value.fset is None:
            out += ["    @property", f"    def {name}(self) -> {kind}: ..."]
        else:
            out.append(f"    {name}: {kind}")
    return out


def profiler_stub():
    out = [HEAD, PROFILER_HEAD]
    for name, value in sorted(vars(mtprof._mtprof).items()):
        if name.startswith("__"):
            continue
        if name == "record_function":
            out.append(RECORD_FUNCTION)
        elif name == "FormattedTimesMixin":
            out += [f"class {name}:", *own_fields(value), ""]
        elif name == "FunctionEvent":
            out += [f"class {name}(FormattedTimesMixin):", *own_fields(value),
                    f"    def __init__({python_signature(value.__init__)}) -> None: ...", EVENT_METHODS]
        elif name == "Profile":
            out += [f"class {name}: ...", ""]
        elif isinstance(value, type):
            out += [f"class {name}:", "    def __getattr__(self, name: str) -> Any: ...", ""]
        elif callable(value):
            out.append(f"def {name}{CALLS.get(name, '(*args: Any, **kwargs: Any) -> Any')}: ...")
        else:
            out.append(f"{name}: Any")
    return "\n".join(out) + "\n"


def main():
    stubs = {PYTHON / "mindtorch_v2" / "__init__.pyi": tensors_stub(),
             PYTHON / "mtprof" / "_mtprof.pyi": profiler_stub()}
    stale = [path for path, text in stubs.items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.relative_to(PYTHON)} is not what tools/make_stubs.py writes")
        return 1 if stale else 0
    for path in stale:
        path.write_text(stubs[path])
        print(f"wrote {path.relative_to(PYTHON)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
