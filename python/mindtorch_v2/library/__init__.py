# SPDX-License-Identifier: Apache-2.0
"""torch.library: ops that a program writes in Python, called as torch.ops.NAMESPACE.NAME."""

from .._ops import ops
from ._definition import OpDefinition, OpPacket

__all__ = ["CustomOpDef", "Library", "custom_op", "define", "get_kernel", "impl", "impl_abstract", "register_autograd",
           "register_fake", "register_kernel", "register_vmap", "triton_op", "wrap_triton"]

CustomOpDef = OpDefinition
_OPS = {}        # packets by "namespace::name"
_DEFINED = set() # namespaces that a Library of kind DEF has


def _named(name):
    """namespace, name and overload of "namespace::name.overload"."""
    if not isinstance(name, str) or name.count("::") != 1:
        raise ValueError(f"library: an op is named NAMESPACE::NAME, not {name!r}")
    space, _, last = name.partition("::")
    last, _, overload = last.partition(".")
    return space, last, overload or "default"


def _packet(space, last):
    """The op with all its overloads, made where there is none."""
    full = f"{space}::{last}"
    if full not in _OPS:
        _OPS[full] = OpPacket(space, last)
        setattr(getattr(ops, space), last, _OPS[full])
    return _OPS[full]


def _forget(definition):
    space, last, overload = _named(definition.full_name)
    packet = _OPS.get(f"{space}::{last}")
    if packet is None or packet.definitions.get(overload) is not definition:
        return
    del packet.definitions[overload]
    if not packet.definitions:
        del _OPS[f"{space}::{last}"]
        vars(getattr(ops, space)).pop(last, None)


def _find(op, what):
    if isinstance(op, OpDefinition):
        return op
    if isinstance(op, OpPacket):
        return op.only(what)
    space, last, overload = _named(op)
    packet = _OPS.get(f"{space}::{last}")
    if packet is None or overload not in packet.definitions:
        raise NotImplementedError(f"{what}: mindtorch_v2 has no op {op}")
    return packet.definitions[overload]


class Library:
    """Ops of a namespace and functions that compute them for kinds of device. kind: DEF, FRAGMENT or IMPL."""

    def __init__(self, ns, kind, dispatch_key=""):
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError(f"Unsupported kind: {kind}")
        if kind == "DEF":
            if ns in _DEFINED:
                raise RuntimeError(f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}; please put "
                                   "all of your definitions in a single TORCH_LIBRARY block.")
            _DEFINED.add(ns)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._made, self._kernels = [], []

    def __repr__(self):
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema, alias_analysis="", *, tags=()):
        """An op by its schema, "scale(Tensor x, float by=2.0) -> Tensor"; its name."""
        if self.kind == "IMPL":
            raise RuntimeError(f"{schema}: a Library of kind IMPL defines no ops")
        name = schema[:schema.index("(")].strip()
        space, last, overload = _named(f"{self.ns}::{name}")
        packet = _packet(space, last)
        if overload in packet.definitions:
            raise RuntimeError(f"Tried to register an operator ({space}::{schema}) with the same name and overload name "
                               "multiple times. Each overload's schema should only be registered with a single call to "
                               "def().")
        made = OpDefinition(f"{space}::{name}", None, schema=f"{space}::{schema}")
        packet.definitions[overload] = made
        self._made.append(made)
        return name

    def impl(self, op_name, fn, dispatch_key="", *, with_keyset=False, allow_override=False):
        """The function that computes an op; of several the one for the device of its first tensor is called."""
        if with_keyset:
            raise NotImplementedError("Library.impl(): with_keyset: there are no sets of dispatch keys")
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        name = getattr(op_name, "full_name", op_name)
        name = name.partition("::")[2] if "::" in name else name
        if self.ns == "aten":
            raise NotImplementedError(f"Library.impl(): ops of aten cannot be replaced ({name})")
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        space, last, overload = _named(f"{self.ns}::{name}")
        definition = _packet(space, last).definitions.setdefault(overload, OpDefinition(f"{space}::{name}", None))
        definition.kernels[key] = fn
        self._kernels.append((definition, key, fn))

    def fallback(self, fn, dispatch_key="", *, with_keyset=False):
        """Not there: rows of the op table do not ask for one."""
        raise NotImplementedError("Library.fallback() is not implemented")

    def _destroy(self):
        """Takes back what it registered."""
        for definition, key, fn in self._kernels:
            if definition.kernels.get(key) is fn:
                del definition.kernels[key]
        for definition in self._made:
            _forget(definition)
        if self.kind == "DEF":
            _DEFINED.discard(self.ns)
        self._made, self._kernels = [], []


class _scoped_library:  # noqa: N801 torch's name
    """with _scoped_library("mylib", "FRAGMENT") as lib: a Library that is taken back at the end."""

    def __init__(self, *args, **kwargs):
        self._library = Library(*args, **kwargs)

    def __enter__(self):
        return self._library

    def __exit__(self, type, value, traceback):
        self._library._destroy()


_KEPT = {}  # libraries of define() and impl(), by namespace


def _kept(space):
    return _KEPT.setdefault(space, Library(space, "FRAGMENT"))


def define(qualname, schema, *, lib=None, tags=()):
    """An op by its name and the rest of its schema: define("mylib::scale", "(Tensor x) -> Tensor")."""
    space, _, name = qualname.partition("::")
    if not name:
        raise ValueError(f"define(): an op is named NAMESPACE::NAME, not {qualname!r}")
    (lib or _kept(space)).define(name + schema, tags=tags)


_KEYS = {"default": "CompositeExplicitAutograd", "cpu": "CPU", "cuda": "CUDA", "npu": "PrivateUse1", "meta": "Meta"}


def impl(qualname, types, func=None, *, lib=None):
    """A function for an op on kinds of device ("cpu", "default"); a decorator where none is given. Of a Library:
    impl(lib, "name", "CPU")."""
    if isinstance(qualname, Library):
        library, name, key = qualname, types, func or ""

        def keep_in(function):
            library.impl(name, function, key)
            return function
        return keep_in
    space, _, name = qualname.partition("::")
    kinds = (types,) if isinstance(types, str) else tuple(types)

    def keep(function):
        for kind in kinds:
            (lib or _kept(space)).impl(name, function, _KEYS.get(kind, kind))
        return function
    return keep if func is None else keep(func)


def custom_op(name, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    """Makes an op of a function; a decorator where none is given."""
    space, last, overload = _named(name)
    kinds = (device_types,) if isinstance(device_types, str) else device_types

    def make(function):
        packet = _packet(space, last)
        made = OpDefinition(name, function if kinds is None else None)
        made.kernels.update({_KEYS.get(kind, kind): function for kind in kinds or ()})
        before = packet.definitions.get(overload)
        if before is not None:  # kernels of a Library may come first
            made.kernels = {**before.kernels, **made.kernels}
        packet.definitions[overload] = made
        return made
    return make if fn is None else make(fn)


def triton_op(name, fn=None, /, *, mutates_args, schema=None):
    """custom_op(); what the function launches is its own business."""
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel, /):
    """The kernel."""
    return triton_kernel


def get_kernel(op, dispatch_key):
    """The function that Library.impl() got for a key; RuntimeError where there is none."""
    definition = _find(op, "get_kernel")
    if dispatch_key not in definition.kernels:
        raise RuntimeError(f"{definition.full_name} has no kernel for {dispatch_key}")
    return definition.kernels[dispatch_key]


def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """CustomOpDef.register_autograd() of an op by its name."""
    _find(op, "register_autograd").register_autograd(backward, setup_context=setup_context)


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1, allow_override=False):
    """What computes shapes on the device meta; a decorator where no function is given."""
    def keep(function):
        space, last, overload = _named(getattr(op, "full_name", op))
        packet = _OPS.get(f"{space}::{last}")
        if packet is not None and overload in packet.definitions:
            packet.definitions[overload].register_fake(function)
        return function
    return keep if func is None else keep(func)


def register_vmap(op, func=None, /, *, lib=None):
    """Nothing: vmap is a loop over the slices here. A decorator where no function is given."""
    return func if func is not None else lambda func: func


impl_abstract = register_fake


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """Another function for a kind of device."""
    return _find(op, "register_kernel").register_kernel(device_types, func)
