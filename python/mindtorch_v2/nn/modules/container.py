# SPDX-License-Identifier: Apache-2.0
"""Modules that hold others, and lists and dicts of parameters."""

import operator
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from itertools import islice

from mindtorch_v2 import Tensor

from ..parameter import Parameter
from .module import Module, _typename

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


def _absolute(index, count):
    """An index of 0 to count - 1; negative ones count from the end."""
    index = operator.index(index)
    if not -count <= index < count:
        raise IndexError(f"index {index} is out of range")
    return index + count if index < 0 else index


class _Numbered(Module):
    """A module whose attributes 0, 1, 2 ... are its items."""

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]


class _ModuleSequence(_Numbered):
    """Modules in an order."""

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def pop(self, key):
        """Takes the module at an index away and gives it."""
        module = self[key]
        del self[key]
        return module

    def append(self, module):
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def _put(self, modules):
        """These modules instead, under the names 0, 1, 2 ..."""
        self._modules.clear()
        self._modules.update((str(place), value) for place, value in enumerate(modules))

    def _put_before(self, index, module):
        modules = list(self)
        modules.insert(index, module)
        self._put(modules)


class Sequential(_ModuleSequence):
    """Modules called one after the other, each with what the one before gave."""

    def __init__(self, *args):
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for place, module in enumerate(args):
                self.add_module(str(place), module)

    def _name_at(self, index):
        return next(islice(self._modules, _absolute(index, len(self)), None))

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._name_at(index)]

    def __setitem__(self, index, module):
        setattr(self, self._name_at(index), module)

    def __delitem__(self, index):
        if isinstance(index, slice):
            for name in list(self._modules)[index]:
                delattr(self, name)
        else:
            delattr(self, self._name_at(index))
        self._put(list(self))

    def _check_added(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(
                f"add operator supports only objects of Sequential class, but {type(other)} is given."
            )

    def __add__(self, other):
        self._check_added(other)
        return Sequential(*self, *other)

    def __iadd__(self, other):
        self._check_added(other)
        return self.extend(list(other))

    def _check_factor(self, other):
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")

    def __mul__(self, other):
        self._check_factor(other)
        return Sequential(*(list(self) * other))

    __rmul__ = __mul__

    def __imul__(self, other):
        self._check_factor(other)
        return self.extend(list(self) * (other - 1))

    def insert(self, index, module):
        """Adds a module before the index."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        count = len(self)
        if not -count <= index <= count:
            raise IndexError(f"Index out of range: {index}")
        self._put_before(index, module)
        return self

    def extend(self, sequential):
        """Adds modules at the end."""
        for module in list(sequential):
            self.append(module)
        return self

    def forward(self, input):
        for module in self._modules.values():
            input = module(input)
        return input


class ModuleList(_ModuleSequence):
    """A list of modules."""

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self += modules

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[str(_absolute(index, len(self)))]

    def __setitem__(self, index, module):
        setattr(self, str(_absolute(index, len(self))), module)

    def __delitem__(self, index):
        if isinstance(index, slice):
            for place in range(len(self))[index]:
                delattr(self, str(place))
        else:
            delattr(self, str(_absolute(index, len(self))))
        self._put(list(self))

    def __iadd__(self, modules):
        return self.extend(modules)

    def __add__(self, other):
        combined = ModuleList()
        for place, module in enumerate([*self, *other]):
            combined.add_module(str(place), module)
        return combined

    def __repr__(self):
        """Equal modules in a row are one line: (0-3): 4 x Linear(...)."""
        if not len(self):
            return self._get_name() + "()"
        runs = []  # [first, last, text]
        for place, text in enumerate(repr(module) for module in self):
            if runs and runs[-1][2] == text:
                runs[-1][1] = place
            else:
                runs.append([place, place, text])
        lines = []
        for first, last, text in runs:
            head = f"({first}): " if first == last else f"({first}-{last}): {last - first + 1} x "
            lines.append((head + text).replace("\n", "\n  "))
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"

    def insert(self, index, module):
        """Adds a module before the index, as a list does."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_typename(module)} is not a Module subclass")
        self._put_before(index, module)

    def extend(self, modules):
        """Adds modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self


def _pairs(kind, written, given):
    """(key, value) of a mapping or of a sequence of pairs."""
    if not isinstance(given, Iterable):
        raise TypeError(
            f"{written}.update should be called with an iterable of key/value pairs, but got "
            f"{type(given).__name__}"
        )
    if isinstance(given, (Mapping, ModuleDict, ParameterDict)):
        return list(given.items())
    pairs = []
    for place, pair in enumerate(given):
        if not isinstance(pair, Iterable):
            raise TypeError(
                f"{kind} update sequence element #{place} should be Iterable; is{type(pair).__name__}"
            )
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(f"{kind} update sequence element #{place} has length {len(pair)}; 2 is required")
        pairs.append(pair)
    return pairs


class ModuleDict(Module):
    """A dict of modules."""

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key):
        return self._modules[key]

    def __setitem__(self, key, module):
        self.add_module(key, module)

    def __delitem__(self, key):
        del self._modules[key]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key):
        return key in self._modules

    def clear(self):
        """Takes all modules away."""
        self._modules.clear()

    def pop(self, key):
        """Takes a module away and gives it."""
        return self._modules.pop(key)

    def keys(self):
        """The names."""
        return self._modules.keys()

    def items(self):
        """(name, module) of each."""
        return self._modules.items()

    def values(self):
        """The modules."""
        return self._modules.values()

    def update(self, modules):
        """Adds what a mapping or a sequence of pairs holds."""
        for key, module in _pairs("ModuleDict", "ModuleDict", modules):
            self[key] = module


def _parameter_of(value):
    """Tensors become parameters; everything else stays what it is."""
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _parameter_line(key, value, type_name):
    if not isinstance(value, Tensor):
        return f"  ({key}): Object of type: {type(value).__name__}"
    size = "x".join(str(extent) for extent in value.size())
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    device = "" if value.device.type == "cpu" else f" ({value.device})"
    return f"  ({key}): {kind} containing: [{type_name(value)} of size {size}{device}]"


class ParameterList(_Numbered):
    """A list of parameters; tensors become parameters, other values are kept as they are."""

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)([getattr(self, str(place)) for place in range(len(self))[index]])
        return getattr(self, str(_absolute(index, len(self))))

    def __setitem__(self, index, value):
        setattr(self, str(_absolute(index, len(self))), _parameter_of(value))

    def __len__(self):
        return self._size

    def __iter__(self):
        return iter(self[place] for place in range(len(self)))

    def __iadd__(self, values):
        return self.extend(values)

    def append(self, value):
        """Adds a value at the end."""
        place = len(self)
        self._size += 1
        try:
            self[place] = value
        except BaseException:
            self._size = place
            raise
        return self

    def extend(self, values):
        """Adds values at the end."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(
                f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}"
            )
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self):
        return "\n".join(_parameter_line(place, value, lambda v: v.dtype) for place, value in enumerate(self))

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dict of parameters; tensors become parameters, other values are kept as they are."""

    def __init__(self, parameters=None):
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    def _attribute(self, key):
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                f"'{type(key).__name__}'). Open an issue on github if you need non-string keys."
            )
        return key

    def __getitem__(self, key):
        return getattr(self, self._attribute(key))

    def __setitem__(self, key, value):
        name = self._attribute(key)
        if name not in self._keys and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        setattr(self, name, _parameter_of(value))
        self._keys[key] = None

    def __delitem__(self, key):
        del self._keys[key]
        delattr(self, self._attribute(key))

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(list(self._keys))

    def __contains__(self, key):
        return key in self._keys

    def copy(self):
        """Another dict with the same parameters."""
        return ParameterDict(OrderedDict((key, self[key]) for key in self._keys))

    def setdefault(self, key, default=None):
        """The value of key, which becomes default if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self):
        """Takes everything away."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key):
        """Takes a value away and gives it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self):
        """Takes the last (key, value) away and gives it."""
        if not self._keys:
            raise KeyError("popitem(): dictionary is empty")
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key, default=None):
        """The value of key, or default."""
        return self[key] if key in self else default

    def fromkeys(self, keys, default=None):
        """A new ParameterDict with these keys and one value."""
        return ParameterDict(OrderedDict((key, default) for key in keys))

    def keys(self):
        """The keys."""
        return self._keys.keys()

    def items(self):
        """(key, value) of each."""
        return ((key, self[key]) for key in self._keys)

    def values(self):
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters):
        """Adds what a mapping (plain dicts by sorted key) or a sequence of pairs holds."""
        pairs = _pairs("ParameterDict", "ParametersDict", parameters)
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            pairs.sort(key=lambda pair: pair[0])
        for key, value in pairs:
            self[key] = value

    def extra_repr(self):
        return "\n".join(_parameter_line(key, value, _typename) for key, value in self.items())

    def __call__(self, input):
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other):
        result = self.copy()
        result.update(other)
        return result

    def __ror__(self, other):
        result = other.copy()
        result.update(self)
        return result

    def __ior__(self, other):
        self.update(other)
        return self
