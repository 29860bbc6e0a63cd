# SPDX-License-Identifier: Apache-2.0
"""In the place of torchvision, in both libraries: packages import transforms and data sets from it that no component
here uses. Its wheels are built for a torch with CUDA, so that it cannot be imported beside torch's CPU build.

Every module and every name exists; a name is a class of which nothing can be made.
"""
import importlib.abc
import importlib.machinery
import sys
import types

__version__ = "0.28.0"


class _Name(type):
    def __getattr__(cls, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return f"{cls.__name__}.{name}"  # a member of an enumeration

    def __call__(cls, *args, **kwargs):
        raise NotImplementedError(f"torchvision is not here: {cls.__name__}")


class _Module(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, _Name(name, (), {}))
        return getattr(self, name)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.startswith("torchvision.") else None

    def create_module(self, spec):
        return _Module(spec.name)

    def exec_module(self, module):
        pass


sys.meta_path.append(_Finder())
sys.modules[__name__].__class__ = _Module
