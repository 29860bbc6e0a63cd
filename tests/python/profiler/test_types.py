# SPDX-License-Identifier: Apache-2.0
"""Stubs say what runs: names, parameters, defaults. What a type checker makes of them: tools/peers/peer_types.sh."""
import ast
import importlib
import inspect
import pathlib
import unittest

import mtprof
from mtprof import _mtprof

FOLDER = pathlib.Path(mtprof.__file__).parent
STUBS = ("_mtprof", "events", "profiler")


def parameters_of(function):
    """(name, kind, whether there is a default) of a stub's function."""
    args = function.args
    plain = args.posonlyargs + args.args
    late = len(plain) - len(args.defaults)
    out = [(a.arg, "positional", i >= late) for i, a in enumerate(plain)]
    out += [(args.vararg.arg, "*", False)] if args.vararg else []
    out += [(a.arg, "keyword", default is not None) for a, default in zip(args.kwonlyargs, args.kw_defaults)]
    return out + ([(args.kwarg.arg, "**", False)] if args.kwarg else [])


def parameters_of_value(value):
    """The same of what runs; None: it does not say."""
    try:
        found = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return None
    kinds = {"POSITIONAL_ONLY": "positional", "POSITIONAL_OR_KEYWORD": "positional", "VAR_POSITIONAL": "*",
             "KEYWORD_ONLY": "keyword", "VAR_KEYWORD": "**"}
    return [(p.name, kinds[p.kind.name], p.default is not p.empty) for p in found]


class Stubs(unittest.TestCase):
    def each(self):
        for name in STUBS:
            module = importlib.import_module(f"mtprof.{name}")
            yield name, module, ast.parse((FOLDER / f"{name}.pyi").read_text(encoding="utf-8"))

    def check_function(self, where, node, value):
        declared, found = parameters_of(node), parameters_of_value(value)
        loose = [kind for _, kind, _ in declared] in (["*", "**"], ["positional", "*", "**"])
        if found is not None and not loose:
            self.assertEqual(declared, found, where)

    def check_class(self, where, node, cls):
        for item in node.body:
            if isinstance(item, ast.FunctionDef):
                value = inspect.getattr_static(cls, item.name, None)
                decorators = [d.id for d in item.decorator_list if isinstance(d, ast.Name)]
                if item.name == "__getattr__":
                    continue
                self.assertIsNotNone(value, f"{where}.{item.name}: there is no such thing")
                if "property" not in decorators and inspect.isfunction(value):
                    self.check_function(f"{where}.{item.name}", item, value)

    def test_what_they_say_is_there(self):
        for name, module, tree in self.each():
            for node in tree.body:
                where = f"{name}.{getattr(node, 'name', '')}"
                if isinstance(node, ast.FunctionDef):
                    self.check_function(where, node, getattr(module, node.name))
                elif isinstance(node, ast.ClassDef) and not node.name.startswith(("_Observer", "_Interval")):
                    self.check_class(where, node, getattr(module, node.name))

    def test_what_is_there_they_say(self):
        for name, module, tree in self.each():
            declared = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
            declared.update({alias.asname or alias.name: None for node in tree.body
                         if isinstance(node, ast.ImportFrom) for alias in node.names})
            public = getattr(module, "__all__", None) or [key for key in vars(module) if not key.startswith("_")]
            names = {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
            self.assertEqual(sorted(set(public) - set(declared) - names), [], name)
            for key, node in declared.items():
                cls = getattr(module, key, None)
                if not isinstance(node, ast.ClassDef) or not isinstance(cls, type):
                    continue
                known = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
                known |= {item.target.id for item in node.body if isinstance(item, ast.AnnAssign)}
                own = {item for item in vars(cls) if not item.startswith("_")}
                if "__getattr__" not in known and not issubclass(cls, tuple):
                    self.assertEqual(sorted(own - known), [], f"{name}.{key}")

    def test_fields_of_objects(self):
        """Attributes that instances have are in the stub of their class."""
        with mtprof.profile() as prof:
            mtprof.end(mtprof.begin("a"))
        trees = {name: tree for name, _, tree in self.each()}
        for stub, key, instance in (("events", "FunctionEventAvg", prof.key_averages()[0]),
                                    ("profiler", "profile", prof)):
            known = set()
            for node in trees[stub].body:
                if isinstance(node, ast.ClassDef) and node.name in (key, "_KinetoProfile"):
                    known |= {item.target.id for item in node.body if isinstance(item, ast.AnnAssign)}
            there = {name for name in vars(instance) if not name.startswith("_")}
            self.assertEqual(sorted(there - known), [], key)

    def test_events_have_the_fields_with_their_types(self):
        with mtprof.profile(record_shapes=True) as prof:
            with mtprof.record_function("a", rows=1):
                pass
        event = prof.events()[0]
        tree = ast.parse((FOLDER / "_mtprof.pyi").read_text(encoding="utf-8"))
        cls = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "FunctionEvent")
        simple = {"int": int, "float": (int, float), "str": str, "bool": bool, "list[str]": list, "list[Any]": list}
        seen = 0
        for item in cls.body:
            if isinstance(item, ast.AnnAssign) and ast.unparse(item.annotation) in simple:
                value = getattr(event, item.target.id)
                self.assertIsInstance(value, simple[ast.unparse(item.annotation)], item.target.id)
                seen += 1
        self.assertGreater(seen, 30)

    def test_the_package_says_that_it_is_typed(self):
        self.assertTrue((FOLDER / "py.typed").exists())
        self.assertIs(_mtprof.FunctionEvent, mtprof.FunctionEvent)


if __name__ == "__main__":
    unittest.main()
