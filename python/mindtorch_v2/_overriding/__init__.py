# SPDX-License-Identifier: Apache-2.0
"""__torch_function__ on Tensor: what subclasses inherit, and what is prepared when one appears.

While no object of an overriding subclass exists, methods and properties of Tensor are what they were. begin() then
puts forms in their place that ask the tensor first; the class still shows the originals (override.h has the rules).
"""
import sys
import types

from .. import _C

Tensor = _C.Tensor
_PACKAGE = __name__.partition(".")[0] + "."

# What torch leaves out: the language's own, and what says what an object is.
PLAIN = frozenset("""
    __class__ __dict__ __dir__ __doc__ __hash__ __init__ __init_subclass__ __module__ __new__ __torch_function__
    __weakref__ as_subclass _make_subclass __copy__ __str__ __array_priority__
""".split())
_PRIVATE = frozenset("_version _base _backward_hooks".split())
# Operators of the language, which ask in C.
OPERATORS = frozenset("""
    __add__ __and__ __bool__ __contains__ __eq__ __float__ __floordiv__ __ge__ __getitem__ __gt__ __iadd__ __iand__
    __ifloordiv__ __ilshift__ __imod__ __imul__ __index__ __int__ __invert__ __ior__ __ipow__ __irshift__ __isub__
    __itruediv__ __ixor__ __iter__ __le__ __len__ __lshift__ __lt__ __matmul__ __mod__ __mul__ __ne__ __neg__ __or__
    __pos__ __pow__ __radd__ __rand__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rmul__ __ror__ __rpow__
    __rrshift__ __rshift__ __rsub__ __rtruediv__ __rxor__ __setitem__ __sub__ __truediv__ __xor__ __abs__
""".split())
_NOT_WRAPPED = []  # functions whose result stays as it is, made by begin()


def offer(function):
    """A function of Python as one that asks its arguments first; its module has it under its name from then on."""
    made = _C._overridable(function)
    home = vars(sys.modules[function.__module__])
    if home.get(function.__name__) is function:
        home[function.__name__] = made
    return made


def offer_all(names):
    """The same for the functions of a module of this package, given its globals."""
    for name, value in list(names.items()):
        if type(value) is types.FunctionType and not name.startswith("_") and value.__module__.startswith(_PACKAGE):
            names[name] = offer(value)


class DisableTorchFunctionSubclass:
    """Until it is left, nobody is asked for __torch_function__ on this thread; modes are."""

    def __enter__(self):
        _C._disable_torch_function(False, 1)

    def __exit__(self, type, value, traceback):
        _C._disable_torch_function(False, -1)


class DisableTorchFunction:
    """The same, modes included."""

    def __enter__(self):
        _C._disable_torch_function(True, 1)

    def __exit__(self, type, value, traceback):
        _C._disable_torch_function(True, -1)


def _as_class(result, cls):
    """Tensors of a result as objects of a class; in tuples and lists too."""
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        made = [_as_class(each, cls) for each in result]
        return type(result)(made) if type(result) in (tuple, list) or not hasattr(result, "_fields") \
            else type(result)(*made)
    return result


def _torch_function(cls, func, types, args=(), kwargs=None):
    """What a subclass inherits: the function itself, with results of the subclass."""
    if not all(issubclass(cls, each) for each in types):
        return NotImplemented
    _C._disable_torch_function(False, 1)
    try:
        result = func(*args, **(kwargs or {}))
        if cls is Tensor or func in _NOT_WRAPPED:
            return result
        return _as_class(result, cls)
    finally:
        _C._disable_torch_function(False, -1)


function_type = type(_C._overridable(offer))
Tensor.__torch_function__ = classmethod(_torch_function)
Tensor.__rdiv__ = Tensor.__rtruediv__  # torch's name for it, which handlers compare with


def begin():
    """Called once, when the first object of an overriding class is made or a mode is entered."""
    for name, value in list(vars(Tensor).items()):
        if name in PLAIN or name.startswith("_") and not name.startswith("__") and name not in _PRIVATE:
            continue
        if isinstance(value, types.GetSetDescriptorType):
            setattr(Tensor, name, _C._overriding_property(value))
        elif isinstance(value, (types.MethodDescriptorType, types.FunctionType)):
            setattr(Tensor, name, _C._overridable(value, True))
    _NOT_WRAPPED.extend(vars(Tensor)[name].__get__(None, Tensor).__get__ for name in ("grad", "_base"))
