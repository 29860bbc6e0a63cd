# SPDX-License-Identifier: Apache-2.0
"""An op of the program: its schema, its functions by kind of device, its gradient."""

import inspect

from .. import _C
from ..autograd.function import Function

Tensor = _C.Tensor

_DEVICES = {"cpu": "CPU", "npu": "CUDA", "meta": "Meta"}


def _first_tensor(values):
    for value in values:
        if isinstance(value, Tensor):
            return value
        if isinstance(value, (list, tuple)):
            found = _first_tensor(value)
            if found is not None:
                return found
    return None


class _Schema:
    """What an op takes: names, which of them are keywords only, and which must be tensors."""

    def __init__(self, text):
        from .._signatures import Overload
        self.text = text
        plain = text[text.index("::") + 2:]
        self.parameters = Overload("op", plain, False, False).parameters
        self.positional = [each for each in self.parameters if not each.keyword_only]

    def __repr__(self):
        return self.text

    def check(self, name, args, kwargs):
        """RuntimeError in torch's words where arguments do not fit."""
        if len(args) > len(self.positional):
            raise RuntimeError(f"{name}() takes {len(self.positional)} positional argument(s) but {len(args)} was/were "
                               f"given.  Declaration: {self.text}")
        names = {each.name for each in self.parameters}
        for given in kwargs:
            if given not in names:
                raise RuntimeError(f"Unknown keyword argument '{given}' for operator '{name}'. Schema: {self.text}")
        bound = dict(zip((each.name for each in self.positional), args), **kwargs)
        for each in self.parameters:
            if each.name not in bound:
                if each.required:
                    raise RuntimeError(f"{name}() is missing value for argument '{each.name}'. Declaration: {self.text}")
            elif each.type.startswith("Tensor") and "[" not in each.type:
                value = bound[each.name]
                if not isinstance(value, Tensor) and not (value is None and each.optional):
                    raise RuntimeError(f"{name}() Expected a value of type 'Tensor' for argument '{each.name}' but "
                                       f"instead found type '{type(value).__name__}'.")


class OpDefinition:
    """An op with one schema; call it, or torch.ops.NAMESPACE.NAME."""

    def __init__(self, full_name, function, schema=None):
        self.full_name, self._function, self.kernels = full_name, function, {}
        self._schema = None if schema is None else _Schema(schema)
        self._differentiable = None
        self._qualname = full_name
        self.__name__ = full_name.partition("::")[2]

    def __repr__(self):
        space, _, last = self.full_name.partition("::")
        last, _, overload = last.partition(".")
        return f"<OpOverload(op='{space}.{last}', overload='{overload or 'default'}')>"

    def name(self):
        """NAMESPACE::NAME."""
        return self.full_name

    def _kernel(self, keys, what):
        for key in keys:
            found = self.kernels.get(key)
            if found is not None:
                return found
        if self._function is not None:
            return self._function
        raise NotImplementedError(f"Could not run '{self.full_name}' with arguments from the '{what}' backend. "
                                  f"It has functions for {sorted(self.kernels) or 'no backend'}")

    def __call__(self, *args, **kwargs):
        if self._schema is not None:
            self._schema.check(self.full_name, args, kwargs)
        first = _first_tensor([*args, *kwargs.values()])
        kind = _DEVICES.get(first.device.type if first is not None else "cpu", "CPU")
        above = self.kernels.get(f"Autograd{kind}")
        if above is not None:
            return above(*args, **kwargs)
        if self._differentiable is not None:
            return self._differentiable.apply(*self._positions(args, kwargs))
        if "Autograd" in self.kernels:
            return self.kernels["Autograd"](*args, **kwargs)
        return self._run(kind, args, kwargs)

    def _run(self, kind, args, kwargs):
        also = ("PrivateUse1",) if kind == "CUDA" else ()
        return self._kernel((kind, *also, "CompositeExplicitAutograd", "CompositeImplicitAutograd"), kind)(
            *args, **kwargs)

    def _positions(self, args, kwargs):
        """All arguments by position, for a Function."""
        if not kwargs:
            return args
        if self._schema is not None:
            defaults = {each.name: each.default for each in self._schema.parameters if not each.required}
            names = [each.name for each in self._schema.parameters]
            bound = {**defaults, **dict(zip(names, args)), **kwargs}
            return [bound[name] for name in names if name in bound]
        bound = inspect.signature(self._kernel(("CPU", *self.kernels), "CPU")).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise NotImplementedError(f"{self.full_name}: keyword-only arguments of an op with a gradient of its own")
        return bound.args

    @property
    def default(self):
        """torch's name for the only overload."""
        return self

    def register_autograd(self, backward, /, *, setup_context=None):
        """Gives it a gradient: backward(ctx, *grads), setup_context(ctx, inputs, output)."""
        definition = self

        class Differentiable(Function):
            """The op as torch.autograd.Function."""

            @staticmethod
            def forward(ctx, *args):
                first = _first_tensor(args)
                kind = _DEVICES.get(first.device.type if first is not None else "cpu", "CPU")
                result = definition._run(kind, args, {})
                if setup_context is not None:
                    setup_context(ctx=ctx, inputs=args, output=result)
                return result
        Differentiable.backward = staticmethod(backward)
        Differentiable.__name__ = Differentiable.__qualname__ = self.__name__
        self._differentiable = Differentiable

    def register_fake(self, fn, /):
        """The function for tensors on the device meta."""
        self.kernels.setdefault("Meta", fn)
        return fn

    def register_kernel(self, device_types, fn=None, /):
        """Another function for a kind of device ("cpu", "cuda"), or for several."""
        kinds = (device_types,) if isinstance(device_types, str) else device_types

        def keep(function):
            for kind in kinds or ("default",):
                key = {"cpu": "CPU", "cuda": "CUDA", "npu": "PrivateUse1", "meta": "Meta"}.get(
                    kind, "CompositeExplicitAutograd")
                self.kernels[key] = function
            return function
        return keep if fn is None else keep(fn)

    def register_vmap(self, fn, /):
        """Nothing: vmap is a loop over the slices here."""
        return fn


class OpPacket:
    """torch.ops.NAMESPACE.NAME: its overloads by name; a call takes the first whose schema fits."""

    def __init__(self, space, name):
        self.definitions = {}
        self.__name__ = name
        self._space = space

    def __str__(self):
        return f"{self._space}.{self.__name__}"

    def __repr__(self):
        return f"<OpOverloadPacket(op='{self}')>"

    def overloads(self):
        """Their names."""
        return list(self.definitions)

    def only(self, what):
        """The overload that the name alone means."""
        if "default" in self.definitions:
            return self.definitions["default"]
        raise NotImplementedError(f"{what}: {self} has overloads {self.overloads()}: name one of them")

    def __call__(self, *args, **kwargs):
        if len(self.definitions) == 1:
            return next(iter(self.definitions.values()))(*args, **kwargs)
        wrong = []
        for definition in self.definitions.values():
            if definition._schema is not None:
                try:
                    definition._schema.check(definition.full_name, args, kwargs)
                except RuntimeError as error:
                    wrong.append(str(error))
                    continue
                if not _fits(definition._schema, args):
                    wrong.append(f"{definition.full_name}: types differ")
                    continue
            return definition(*args, **kwargs)
        raise RuntimeError("\n".join(wrong) or f"{self} has no overload")

    def __getattr__(self, name):
        found = self.__dict__.get("definitions", {}).get(name)
        if found is None:
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{name}'")
        return found


def _fits(schema, args):
    """Whether tensors are where the schema has tensors, and nowhere else."""
    return all(isinstance(value, Tensor) == each.type.startswith("Tensor") or value is None or "[" in each.type
               for each, value in zip(schema.positional, args))
