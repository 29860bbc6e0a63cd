# SPDX-License-Identifier: Apache-2.0
"""Schemas of ops as Python writes them: for inspect.signature(), help() and the stubs (tools/make_stubs.py)."""
import ast
import keyword
import re

_BARE = object()  # no default


class Parameter:
    """A parameter of a schema: its type as the schema has it, its name as Python can have it."""

    def __init__(self, text, keyword_only, method, first):
        kind, name, default = re.fullmatch(r"(\S+)\s+(\w+)(?:=(.+))?", text).groups()
        if name == "self" and not (first and method):
            name = "input"
        self.type = kind.removesuffix("?")
        self.optional = kind.endswith("?")
        self.name = name + "_" if keyword.iskeyword(name) else name
        self.default = _BARE if default is None else _value(default)
        self.keyword_only = keyword_only
        self.spread = False  # sizes may be given one by one

    @property
    def required(self):
        """Whether there is no default."""
        return self.default is _BARE


class Overload:
    """One row: parameters in order, results as the schema has them."""

    def __init__(self, name, schema, method, makes):
        inside, self.result = re.fullmatch(r"[\w.:]+\((.*)\)\s*->\s*(.+)", schema).groups()
        self.name, self.method, self.parameters = name, method, []
        keyword_only = False
        for text in (part.strip() for part in re.split(r",\s*(?![^\[]*\])", inside) if part.strip()):
            if text == "*":
                keyword_only = True
            else:
                self.parameters.append(Parameter(text, keyword_only, method, not self.parameters))
        # torch takes the sizes of a leading list one by one as well.
        at = 1 if method else 0
        if len(self.parameters) > at and self.parameters[at].type == "int[]" and (
                self.parameters[at].required and not self.parameters[at].optional):
            self.parameters[at].spread = True
        self.makes = makes
        self.results = [part.split()[0] for part in self.result.strip("()").split(",") if part.strip()]

    def extras(self):
        """Keywords that the binding takes in addition to the row's, with their types and defaults."""
        told = []
        if self.makes:
            told += [("requires_grad", "bool", False), ("pin_memory", "bool", False)]
        if not self.method and self.results == ["Tensor"] and not self.name.endswith("_"):
            told.append(("out", "Tensor?", None))
        return told

    def result_text(self):
        """Tensor, tuple of 2 Tensors …"""
        if not self.results:
            return "None"
        if len(self.results) > 1:
            return f"({', '.join(part.strip() for part in self.result.strip('()').split(','))})"
        return "tuple of Tensors" if self.results == ["Tensor[]"] else self.results[0]


def _value(text):
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def overloads(name, schemas, method, makes):
    """The overloads of an op, from its schemas, one a line. makes: it makes a tensor where there was none."""
    return [Overload(name, line, method, makes) for line in schemas.splitlines() if "->" in line]


def _parameters(overload):
    import inspect
    kinds = inspect.Parameter
    spread = any(p.spread for p in overload.parameters)
    for p in overload.parameters:
        if p.spread:
            yield kinds(p.name, kinds.VAR_POSITIONAL)
        else:
            # After *size nothing can be given by position.
            by_name = p.keyword_only or spread and p is not overload.parameters[0]
            yield kinds(p.name, kinds.KEYWORD_ONLY if by_name else kinds.POSITIONAL_OR_KEYWORD,
                        default=kinds.empty if p.required else p.default)
    for name, _, default in overload.extras():
        yield kinds(name, kinds.KEYWORD_ONLY, default=default)


def signature(name, schemas, method, makes):
    """inspect's signature. Of several overloads: what they have in common, and *args, **kwargs."""
    import inspect
    found = [inspect.Signature(list(_parameters(each))) for each in overloads(name, schemas, method, makes)]
    if not found:
        return inspect.Signature([inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
                                  inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)])
    if len(found) == 1:
        return found[0]
    common = []
    for several in zip(*(each.parameters.values() for each in found)):
        if any(p.name != several[0].name or p.kind is not p.POSITIONAL_OR_KEYWORD for p in several):
            break
        defaults = [p.default for p in several if p.default is not p.empty]
        if len(defaults) not in (0, len(several)):
            break
        common.append(several[0].replace(default=defaults[0] if defaults else several[0].empty))
    return inspect.Signature(common + [inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
                                       inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)])


def document(name, schemas, method, makes):
    """What help() shows: how the op is called, what it does, its rows."""
    import inspect
    from ._op_sentences import sentence
    calls = []
    for each in overloads(name, schemas, method, makes):
        calls.append(f"{name}{inspect.Signature(list(_parameters(each)))} -> {each.result_text()}")
    rows = schemas.strip().splitlines()
    told = sentence(name) or ("An op that the program registered." if "::" in name else "")
    parts = ["\n".join(calls), told, "\n".join(["Schema:"] + [f"    {row}" for row in rows if row])]
    return "\n\n".join(part for part in parts if part)
