# SPDX-License-Identifier: Apache-2.0
"""In torch's place: while it is installed, `import torch` and everything under it mean mindtorch_v2.

The modules are the same objects under two names, not copies, so that classes, flags and pickles agree. What
torch has and we have not is a placeholder that can be imported, named in annotations and asked about with
isinstance(), and raises NotImplementedError with its name when it is used (missing.py).
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import os
import sys
import types
from email.message import Message

from . import missing

OURS = __name__.partition(".")[0]
LIKE = "2.13.0"  # the version of torch whose names and semantics these are

_finder = None


def _our_name(name):
    return OURS + name[len("torch"):]


class _Distribution(importlib.metadata.Distribution):
    """What importlib.metadata says of torch."""

    def __init__(self, version):
        self._message = Message()
        for key, value in (("Metadata-Version", "2.1"), ("Name", "torch"), ("Version", version),
                           ("Summary", "mindtorch_v2 in torch's place")):
            self._message[key] = value

    @property
    def metadata(self):
        return self._message

    def read_text(self, filename):
        return str(self._message) if filename in ("METADATA", "PKG-INFO") else None

    def locate_file(self, path):
        return os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), path)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds torch.NAME: the module mindtorch_v2.NAME, or a placeholder of the same name."""

    def __init__(self, version):
        self.version = version
        self.changed = []  # (module, its __getattr__ before or None)
        self.specs = {}    # by our module's name, while torch's name for it is being imported

    def find_spec(self, name, path=None, target=None):
        """A spec for names under torch alone."""
        if not name.startswith("torch."):
            return None
        ours = _our_name(name)
        try:
            found = ours in sys.modules or importlib.util.find_spec(ours) is not None
        except ModuleNotFoundError:  # its parent is a placeholder
            found = False
        if not found and not missing.is_module(name):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def find_distributions(self, context=importlib.metadata.DistributionFinder.Context()):
        """The one of torch."""
        return [_Distribution(self.version)] if context.name == "torch" else []

    def create_module(self, spec):
        """The module itself; importlib then gives it a spec, which exec_module() takes back."""
        try:
            module = importlib.import_module(_our_name(spec.name))
        except ModuleNotFoundError as error:
            if error.name is None or not f"{_our_name(spec.name)}.".startswith(f"{error.name}."):
                raise
            return missing.module(spec.name)
        self.specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module):
        """Nothing to run: it was when it was imported under our name."""
        if module.__name__.startswith("torch."):
            return  # a placeholder
        module.__spec__ = self.specs.pop("torch" + module.__name__[len(OURS):])
        self.alias_loaded()

    def alias_loaded(self):
        """Modules of ours that have been imported so far get torch's names.

        importlib binds a module that it imports in its package. Of one that was imported before that would
        replace what the package has under the name since (the function torch.autograd.gradcheck).
        """
        for name, module in list(sys.modules.items()):
            if name == OURS or name.startswith(OURS + "."):
                theirs = "torch" + name[len(OURS):]
                if module is not None and sys.modules.setdefault(theirs, module) is module:
                    self.offer_missing(module, theirs)

    def offer_missing(self, module, name):
        """Gives a module placeholders for what torch's has in addition."""
        before = vars(module).get("__getattr__")
        if before is not None and hasattr(before, "_of_torch"):
            return

        def find(attribute):
            if name == attribute == "torch":  # torch.torch is torch
                return module
            try:
                if before is None:
                    raise AttributeError(f"module {module.__name__!r} has no attribute {attribute!r}")
                found = before(attribute)
            except AttributeError:
                found = missing.find(name, attribute)
                if found is None:
                    raise
            if isinstance(found, types.ModuleType):
                self.alias_loaded()
            return found

        find._of_torch = True
        module.__getattr__ = find
        self.changed.append((module, before))

    def undo(self):
        """Modules are as they were."""
        for module, before in self.changed:
            if before is None:
                del module.__getattr__
            else:
                module.__getattr__ = before


def install_as_torch():
    """From now on `import torch` means mindtorch_v2, in this process, for packages too.

    torch.__version__ is then the version that mindtorch_v2 follows. RuntimeError where torch itself has been
    imported already: two libraries under one name would mix their tensors.
    """
    global _finder
    ours = sys.modules[OURS]
    other = sys.modules.get("torch")
    if other is ours:
        return
    if other is not None:
        raise RuntimeError(f"install_as_torch: torch {getattr(other, '__version__', '')} is imported already, from "
                           f"{getattr(other, '__file__', None)}; call it before the first import of torch")
    from ..version import TorchVersion
    version = TorchVersion(f"{LIKE}+{OURS.replace('_', '.')}")
    _finder = _Finder(version)
    _finder.own_version = ours.__version__
    sys.meta_path.insert(0, _finder)
    ours.__version__ = ours.version.__version__ = version
    ours.__name__ = "torch"  # packages look for their way to a name of torch from there
    sys.modules["torch"] = ours
    _finder.alias_loaded()


def uninstall_as_torch():
    """`import torch` means torch again. Modules that have imported ours meanwhile keep it."""
    global _finder
    if _finder is None:
        return
    finder, _finder = _finder, None
    sys.meta_path.remove(finder)
    finder.undo()
    ours = sys.modules[OURS]
    ours.__version__ = ours.version.__version__ = finder.own_version
    ours.__name__ = OURS
    for name, module in list(sys.modules.items()):
        if name == "torch" or name.startswith("torch."):
            if sys.modules.get(_our_name(name)) is module or missing.is_placeholder(module):
                del sys.modules[name]
