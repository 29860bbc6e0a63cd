# SPDX-License-Identifier: Apache-2.0
"""Every public name says what it is: a docstring, and a signature where it can be called."""
import enum
import importlib
import inspect
import re
import unittest

import mindtorch_v2 as torch
import mtprof
from mindtorch_v2 import _C
from mindtorch_v2._op_sentences import SENTENCES, sentence

MODULES = ("mtprof", "mtprof.events", "mtprof.itt", "mtprof.results", "mindtorch_v2", "mindtorch_v2.nn",
           "mindtorch_v2.nn.functional", "mindtorch_v2.nn.init", "mindtorch_v2.nn.utils", "mindtorch_v2.optim",
           "mindtorch_v2.optim.lr_scheduler", "mindtorch_v2.autograd", "mindtorch_v2.autograd.profiler",
           "mindtorch_v2.autograd.profiler_util", "mindtorch_v2.autograd.function", "mindtorch_v2.autograd.graph",
           "mindtorch_v2.accelerator", "mindtorch_v2.cuda", "mindtorch_v2.utils", "mindtorch_v2.utils.hooks",
           "mindtorch_v2.nn.parameter", "mtprof.schedules", "mtprof.observers", "mtprof.backend", "mtprof.kineto_events",
           "mindtorch_v2.npu", "mindtorch_v2.profiler", "mindtorch_v2.random", "mindtorch_v2.serialization",
           "mindtorch_v2.testing", "mindtorch_v2.utils.data")
# Types without a constructor of their own: they are made by other calls, or are exceptions.
NO_CONSTRUCTOR = (_C.layout, _C.memory_format, torch.dtype) if hasattr(_C, "layout") else (torch.dtype,)


def public(owner):
    """(name, value) of what an object shows."""
    listed = getattr(owner, "__all__", None) if inspect.ismodule(owner) else None
    for name in listed if listed is not None else dir(owner):
        if not name.startswith("_"):
            yield name, inspect.getattr_static(owner, name) if isinstance(owner, type) else getattr(owner, name)


def is_ours(value):
    """Whether it was made here, or by C of ours."""
    module = getattr(value, "__module__", None) or ""
    return module.split(".")[0] in ("mtprof", "mindtorch_v2", "_C", "_mtprof", "")


def is_inherited(cls, *names):
    """Whether what a class has under these names comes from Python's own classes."""
    owner = next((base for base in cls.__mro__ if any(name in vars(base) for name in names)), object)
    return owner.__module__.split(".")[0] not in ("mtprof", "mindtorch_v2")


def has_signature(value):
    """Whether inspect knows how it is called."""
    try:
        inspect.signature(value)
    except (TypeError, ValueError):
        return False
    return True


class Names(unittest.TestCase):
    def check_value(self, where, value, found):
        value = getattr(value, "__func__", value)
        if not (inspect.getdoc(value) or "").strip():  # of what it overrides, where it has none
            found.append(f"{where}: no docstring")
        needs = callable(value) and not isinstance(value, property) and not (
            isinstance(value, type) and (issubclass(value, (BaseException, enum.Enum)) or value in NO_CONSTRUCTOR or
                                         is_inherited(value, "__init__", "__new__")))
        if needs and not has_signature(value):
            found.append(f"{where}: no signature")

    def check_class(self, where, cls, found):
        for name, value in public(cls):
            kinds = (property, staticmethod, classmethod)
            known = inspect.isroutine(value) or inspect.isgetsetdescriptor(value) or isinstance(value, kinds)
            if known and not is_inherited(cls, name) and is_ours(getattr(value, "__func__", value)):
                self.check_value(f"{where}.{name}", value, found)

    def walk(self, module):
        found = []
        for name, value in public(importlib.import_module(module)):
            if inspect.ismodule(value) or not callable(value) or not is_ours(value):
                continue
            self.check_value(f"{module}.{name}", value, found)
            if isinstance(value, type) and not issubclass(value, (BaseException, enum.Enum)):
                self.check_class(f"{module}.{name}", value, found)
        self.assertEqual(found, [])

    def test_modules(self):
        for module in MODULES:
            with self.subTest(module):
                self.walk(module)


class Ops(unittest.TestCase):
    def setUp(self):
        self.names = [name for name in dir(_C.ops) if not name.startswith("__") and "::" not in name]
        self.assertGreater(len(self.names), 300)

    def test_each_has_a_sentence_a_call_and_a_schema(self):
        missing = [name for name in self.names if not sentence(name)]
        self.assertEqual(missing, [], "python/mindtorch_v2/_op_sentences.py says what each op does")
        for name in self.names:
            document = getattr(_C.ops, name).__doc__
            self.assertTrue(document.startswith(name + "("), document)
            self.assertIn(sentence(name), document)
            self.assertIn("\nSchema:\n    ", document)
        for text in SENTENCES.values():
            self.assertTrue(text.endswith(".") and text[0] != " ", text)

    def test_signatures(self):
        def shown(value):
            return str(inspect.signature(value))
        self.assertEqual(shown(torch.add), "(input, other, *, alpha=1, out=None)")
        self.assertEqual(shown(torch.Tensor.add), "(self, other, *, alpha=1)")
        self.assertEqual(shown(torch.ones(1).add), "(other, *, alpha=1)")
        self.assertEqual(shown(torch.Tensor.expand), "(self, *size)")
        self.assertEqual(shown(torch.Tensor.sum), "(self, dim=None, keepdim=False, *, dtype=None)")
        self.assertEqual(shown(torch.Tensor.max), "(self, *args, **kwargs)")
        self.assertEqual(shown(torch.Tensor.uniform_), "(self, from_=0, to=1, *, generator=None)")
        self.assertEqual(shown(torch.zeros), "(*size, dtype=None, device=None, requires_grad=False, "
                                             "pin_memory=False, out=None)")
        self.assertEqual(shown(torch.Tensor.numel), "(self, /)")
        self.assertIn("arange(end, step=1, *, dtype", torch.arange.__doc__)

    def test_a_signature_is_what_can_be_called(self):
        """Each parameter of a row is a name that the binding takes."""
        for name in self.names:
            for parameter in inspect.signature(getattr(_C.ops, name)).parameters.values():
                if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                    continue
                keyword = parameter.name.removesuffix("_") if parameter.name == "from_" else parameter.name
                with self.assertRaises(Exception) as caught:
                    getattr(_C.ops, name)(**{keyword: object()})
                self.assertNotRegex(str(caught.exception), "unexpected keyword", f"{name} {keyword}")

    def test_help(self):
        import pydoc
        text = pydoc.plain(pydoc.render_doc(torch.add))
        self.assertIn("add(input, other, *, alpha=1, out=None) -> Tensor", text)
        self.assertIn("Adds other, times alpha, to input.", text)


class Arguments(unittest.TestCase):
    def test_every_argument_of_profile_is_explained(self):
        for cls in (mtprof.profile, mtprof._KinetoProfile):
            for name in inspect.signature(cls).parameters:
                with self.subTest(cls=cls.__name__, argument=name):
                    self.assertRegex(inspect.getdoc(mtprof.profile), rf"(?m)^\s+{re.escape(name)}:")

    def test_and_of_other_calls(self):
        for call in (mtprof.schedule, mtprof.load, mtprof.tensorboard_trace_handler, mtprof.EventList.table,
                     mtprof.record_function):
            for name in inspect.signature(call).parameters:
                if name not in ("self", "args", "kwargs"):
                    self.assertIn(name, inspect.getdoc(call), f"{call.__name__}: {name}")


if __name__ == "__main__":
    unittest.main()
