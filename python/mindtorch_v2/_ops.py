# SPDX-License-Identifier: Apache-2.0
"""torch.ops: ops by namespace, `ops.aten.add` and, once registered, `ops.mylib.scale`."""

from . import _C


class _Namespace:
    """Ops of one namespace."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        found = getattr(_C.ops, name if self._name == "aten" else f"{self._name}::{name}", None)
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


ops = _Ops()
