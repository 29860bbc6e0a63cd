# SPDX-License-Identifier: Apache-2.0
"""torch.ops: ops by namespace, `ops.aten.add` and, once registered, `ops.mylib.scale`."""

import sys

from . import _C


class _Packet:
    """An op of torch.ops.aten in torch's place, with overloads: packages keep tables of `aten.clone.default`.

    A row of ours covers several of torch's overloads, so that each of them is the op itself.
    """

    def __init__(self, name, op):
        self._name, self._op = name, op
        self.__name__ = name

    def __call__(self, *args, **kwargs):
        if self._op is None:
            raise NotImplementedError(f"mindtorch_v2 has no torch.ops.aten.{self._name}")
        return self._op(*args, **kwargs)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(f"'{self._name}' has no overload '{name}'")
        found = _Packet(f"{self._name}.{name}", self._op)
        setattr(self, name, found)
        return found

    def __repr__(self):
        return f"<op aten.{self._name}>"


class _Namespace:
    """Ops of one namespace."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        found = getattr(_C.ops, name if self._name == "aten" else f"{self._name}::{name}", None)
        if self._name == "aten" and not name.startswith("__") and _is_in_place():
            found = _Packet(name, found)
        if found is None:
            raise AttributeError(f"'{self._name}' has no op '{name}'")
        setattr(self, name, found)
        return found

    def __repr__(self):
        return f"<ops of '{self._name}'>"


class _Ops:
    """Namespaces by name."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        space = _Namespace(name)
        setattr(self, name, space)
        return space


def _is_in_place():
    """Whether `import torch` means this library."""
    return getattr(sys.modules.get("torch"), "_C", None) is _C


ops = _Ops()
