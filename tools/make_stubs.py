# SPDX-License-Identifier: Apache-2.0
"""Writes the packages' type stubs from what they hold: make_stubs.py [--check]

Functions and methods that come from the op table have their schema as documentation; from it come parameters and
types. Run it on the dev build (./dev python tools/make_stubs.py) when a row or a method is new; --check only tells
whether the stubs are as they should be (a test does that).
"""
import inspect
import keyword
import pathlib
import re
import sys

import mindtorch_v2 as torch
import mtprof
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
HEAD = '''# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_stubs.py; do not edit.
'''


def name_of(text):
    return text + "_" if keyword.iskeyword(text) else text


def parameter(text, first):
    """One parameter of a schema as Python writes it."""
    kind, name, default = re.fullmatch(r"(\S+)\s+(\w+)(?:=(.+))?", text).groups()
    optional = kind.endswith("?")
    shown = TYPES.get(kind.removesuffix("?"), "Any") + (" | None" if optional else "")
    if first and name == "self":
        name = "input"
    return f"{name_of(name)}: {shown}" + ("" if default is None else " = ...")


def schema_signature(schema, method):
    """(parameters, result) of a row."""
    inside, result = re.fullmatch(r"[\w.:]+\((.*)\)\s*->\s*(.+)", schema).groups()
    parts = [p.strip() for p in re.split(r",\s*(?![^\[]*\])", inside)] if inside else []
    lead = ["self"] if method else []
    words, begun = [], False
    for index, part in enumerate(parts[1:] if method else parts):
        if part == "*":
            words.append("*")
            continue
        words.append(parameter(part, not method and index == 0))
        begun = begun or "= ..." in words[-1]
    if result.startswith("("):
        result = f"tuple[{', '.join('Tensor' for _ in result.split(','))}]"
    else:
        result = RESULTS.get(result.split()[0], "Any")
    # torch takes the sizes of a leading list one by one as well.
    plain = [w for w in words if w != "*"]
    if plain and plain[0].endswith(": int | Sequence[int]"):
        words[words.index(plain[0])] = "*" + plain[0]
        words = [w for w in words if w != "*"]
    if "FACTORY" in schema or re.match(r"(zeros|ones|full|empty|rand\w*|arange|linspace|eye)(_like)?\(", schema):
        words += ([] if "*" in words or any(w.startswith("*") for w in words) else ["*"]) + ["requires_grad: bool = ..."]
    return ", ".join(lead + words), result


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
    rows = (value.__doc__ or "").splitlines() if type(value) in (_C._op_method, type(torch.add)) else []
    rows = [row for row in rows if "->" in row]
    if not rows:
        text = python_signature(value)
        if method and not text.startswith("self"):
            text = "self" + (", " + text if text else "")
        return [f"{pad}def {name}({text}) -> Any: ..."]
    found = list(dict.fromkeys(schema_signature(row, method) for row in rows))
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
    names = [n for n in sorted(set(dir(torch))) if not n.startswith("_") and n.isidentifier() and not keyword.iskeyword(n)]
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


def profiler_stub():
    out = [HEAD, '"""The profiler\'s C half; import mtprof instead."""', "from typing import Any", ""]
    for name, value in sorted(vars(mtprof._mtprof).items()):
        if name.startswith("__"):
            continue
        if isinstance(value, type):
            out.append(f"class {name}:")
            out += ["    def __init__(self, *args: Any, **kwargs: Any) -> None: ..."]
            if hasattr(value, "__enter__"):
                out += [f"    def __enter__(self) -> {name}: ...", "    def __exit__(self, *exc: Any) -> None: ..."]
            if "__call__" in vars(value):
                out += ["    def __call__(self, *args: Any, **kwargs: Any) -> Any: ..."]
            out += ["    def __getattr__(self, name: str) -> Any: ...", ""]
        elif callable(value):
            out.append(f"def {name}(*args: Any, **kwargs: Any) -> Any: ...")
        else:
            out.append(f"{name}: Any")
    return "\n".join(out) + "\n"


def main():
    stubs = {PYTHON / "mindtorch_v2" / "__init__.pyi": tensors_stub(), PYTHON / "mtprof" / "_mtprof.pyi": profiler_stub()}
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
