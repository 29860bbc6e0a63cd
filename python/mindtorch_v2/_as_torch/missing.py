# SPDX-License-Identifier: Apache-2.0
"""Placeholders for what torch has and mindtorch_v2 has not.

A program that imports a name and never uses it is not stopped by it. A placeholder is a class: it can be named in
an annotation, asked about with isinstance() (nothing is one), subclassed, compared and hashed. To call it, to make
an object of a subclass or to ask for an attribute raises NotImplementedError with torch's name of it. Only objects
that describe how a model is distributed can be made; to ask them for anything raises.
"""

import abc
import functools
import importlib
import sys
import types

_KINDS = ("__origin__", "__args__", "__wrapped__", "_is_protocol")  # what typing and inspect ask of any class


# Objects that say how a model would be distributed. Libraries make tables of them when they are imported.
_DESCRIPTIONS = ("torch.distributed.tensor.", "torch.distributed.fsdp.")


class NotThere(NotImplementedError, AttributeError):
    """Something of torch that mindtorch_v2 has not was used. An AttributeError too, so that hasattr() is False."""


def refuse(name):
    """Raises what a use of torch's name raises."""
    raise NotThere(f"mindtorch_v2 has no {name}")


class Missing(abc.ABCMeta):
    """The class of placeholders, and of classes that a program derives from one."""

    def __call__(cls, *args, **kwargs):
        if not cls._torch_name.startswith(_DESCRIPTIONS):
            refuse(cls._torch_name)
        made = object.__new__(cls)
        made.__init__(*args, **kwargs)
        return made

    def __getattr__(cls, name):
        if (name.startswith("__") and name.endswith("__")) or name in _KINDS:
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        refuse(f"{type.__getattribute__(cls, '_torch_name')}.{name}")

    def __repr__(cls):
        return f"<{cls._torch_name}, which mindtorch_v2 has not>"

    def _use(cls, *args):
        refuse(cls._torch_name)

    # A value is never taken for something that it is not.
    __bool__ = __iter__ = __len__ = __int__ = __float__ = __index__ = _use
    __enter__ = __exit__ = __lt__ = __le__ = __gt__ = __ge__ = _use

    def __getitem__(cls, item):
        return cls  # an annotation: torch.futures.Future[int]


@functools.lru_cache(None)
def placeholder(name):
    """The one for a name of torch, as torch.fx.Graph."""
    package, _, last = name.rpartition(".")
    def attribute(self, asked):
        if asked.startswith("__"):
            raise AttributeError(f"{name!r} object has no attribute {asked!r}")
        refuse(f"{name}.{asked}")
    return Missing(last, (), {"_torch_name": name, "__module__": package, "__doc__": f"mindtorch_v2 has no {name}.",
                              "__getattr__": attribute, "__init__": lambda self, *args, **kwargs: None})


@functools.lru_cache(None)
def _table():
    """Names by module, as torch 2.13 has them."""
    from .names import NAMES
    from .names_distributed import NAMES as DISTRIBUTED
    modules = {}
    for word in (NAMES + DISTRIBUTED).split():
        if word.endswith(":"):
            names = modules.setdefault(f"torch.{word[:-1]}".rstrip("."), set())
        else:
            names.add(word)
    return modules


def is_module(name):
    """Whether torch has such a module."""
    table = _table()
    return name in table or any(known.startswith(name + ".") for known in table)


def is_placeholder(module):
    """Whether a module of sys.modules is one of ours for something that is not there."""
    return isinstance(module, _Module)


class _Module(types.ModuleType):
    """A module of torch of which mindtorch_v2 has nothing."""

    def __getattr__(self, name):
        found = find(self.__name__, name)
        if found is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return found


def module(name):
    """A module of placeholders."""
    made = _Module(name, f"mindtorch_v2 has no {name}.")
    made.__path__ = []
    return made


def find(name, attribute):
    """What torch's module `name` has under `attribute`: a placeholder, a module, or None where torch has nothing."""
    full = f"{name}.{attribute}"
    table = _table()
    if attribute in table.get(name, ()):
        return placeholder(full)
    if not attribute.startswith("__") and is_module(full):
        return sys.modules.get(full) or importlib.import_module(full)
    return None
