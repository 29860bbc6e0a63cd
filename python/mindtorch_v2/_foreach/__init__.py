# SPDX-License-Identifier: Apache-2.0
"""torch._foreach_*: an op on each tensor of a list. Optimizers of other people's packages are written with them.

A profile shows one op around those of the tensors; gradients are those of the ops.
"""

from .._C import Tensor, _call_as_op

_UNARY = """
    abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round
    rsqrt sigmoid sign sin sinh sqrt tan tanh trunc
""".split()
_BINARY = {"add": "add", "sub": "sub", "mul": "mul", "div": "div", "clamp_max": "clamp_max", "clamp_min": "clamp_min",
           "maximum": "clamp_min", "minimum": "clamp_max", "pow": "pow"}


def _tensors(self):
    """The list, which torch wants to have at least one tensor."""
    self = list(self)
    if not self:
        raise RuntimeError("Tensor list must have at least one tensor.")
    return self


def _of_each(value, count):
    """A value for each tensor: of a list of numbers or tensors, or the same one."""
    if not isinstance(value, (tuple, list)):
        return [value] * count
    if len(value) != count:
        if value and isinstance(value[0], Tensor):
            raise RuntimeError(f"Tensor lists must have the same number of tensors, got {count} and {len(value)}")
        raise RuntimeError("Tensor list must have same number of elements as scalar list.")
    return value


def _unary(name):
    def call(self):
        self = _tensors(self)
        return _call_as_op(f"aten::_foreach_{name}", (self,), lambda: tuple(getattr(x, name)() for x in self))

    def call_(self):
        self = _tensors(self)
        return _call_as_op(f"aten::_foreach_{name}_", (self,), lambda: [getattr(x, name + "_")() for x in self])
    return call, call_


def _binary(name, method):
    def with_alpha(alpha):
        return {} if alpha is None else {"alpha": alpha}

    def call(self, other, *, alpha=None):
        if name == "pow" and not isinstance(self, (tuple, list)):  # a number to the power of each
            return _call_as_op("aten::_foreach_pow", (self, other), lambda: tuple(self ** x for x in _tensors(other)))
        self, more = _tensors(self), with_alpha(alpha)
        others = _of_each(other, len(self))
        return _call_as_op(f"aten::_foreach_{name}", (self, other),
                           lambda: tuple(getattr(x, method)(y, **more) for x, y in zip(self, others)))

    def call_(self, other, *, alpha=None):
        self, more = _tensors(self), with_alpha(alpha)
        others = _of_each(other, len(self))
        return _call_as_op(f"aten::_foreach_{name}_", (self, other),
                           lambda: [getattr(x, method + "_")(y, **more) for x, y in zip(self, others)])
    return call, call_


def _lerp(in_place):
    def call(self, tensors1, weight):
        self = _tensors(self)
        values = zip(self, _of_each(tensors1, len(self)), _of_each(weight, len(self)))
        if in_place:
            return _call_as_op("aten::_foreach_lerp_", (self, tensors1, weight), lambda: [x.lerp_(y, w) for x, y, w
                                                                                         in values])
        return _call_as_op("aten::_foreach_lerp", (self, tensors1, weight), lambda: tuple(x.lerp(y, w) for x, y, w
                                                                                         in values))
    return call


def _fused(name, in_place):
    """addcmul and addcdiv."""
    full, method = f"aten::_foreach_{name}{'_' * in_place}", name + "_" * in_place

    def call(self, tensor1, tensor2, value=1, *, scalars=None):
        self = _tensors(self)
        values = value if scalars is None else scalars
        numbers = values.tolist() if isinstance(values, Tensor) and values.dim() == 1 else values
        each = zip(self, _of_each(tensor1, len(self)), _of_each(tensor2, len(self)), _of_each(numbers, len(self)))
        made = _call_as_op(full, (self, tensor1, tensor2, values),
                           lambda: [getattr(x, method)(a, b, value=v) for x, a, b, v in each])
        return made if in_place else tuple(made)
    return call


def _copy_(self, src, non_blocking=False):
    self = _tensors(self)
    sources = _of_each(src, len(self))
    return _call_as_op("aten::_foreach_copy_", (self, src, non_blocking),
                       lambda: [x.copy_(y, non_blocking) for x, y in zip(self, sources)])


def _zero_(self):
    self = _tensors(self)
    return _call_as_op("aten::_foreach_zero_", (self,), lambda: [x.zero_() for x in self])


def _clone(self, *, memory_format=None):
    self = _tensors(self)
    more = {} if memory_format is None else {"memory_format": memory_format}
    return _call_as_op("aten::_foreach_clone", (self, memory_format), lambda: tuple(x.clone(**more) for x in self))


def _norm(self, ord=2, dtype=None):
    from ..linalg import vector_norm
    self = _tensors(self)
    return _call_as_op("aten::_foreach_norm", (self, ord, dtype), lambda: tuple(vector_norm(x, ord, dtype=dtype)
                                                                                for x in self))


def _max(self):
    self = _tensors(self)
    return _call_as_op("aten::_foreach_max", (self,), lambda: tuple(x.max() for x in self))


def _all():
    """The functions by torch's names."""
    found = {"_foreach_lerp": _lerp(False), "_foreach_lerp_": _lerp(True), "_foreach_copy_": _copy_,
             "_foreach_zero_": _zero_, "_foreach_clone": _clone, "_foreach_norm": _norm, "_foreach_max": _max}
    pairs = {name: _unary(name) for name in _UNARY}
    pairs.update({name: _binary(name, method) for name, method in _BINARY.items()})
    pairs.update({name: (_fused(name, False), _fused(name, True)) for name in ("addcmul", "addcdiv")})
    for name, (call, call_) in pairs.items():
        found[f"_foreach_{name}"], found[f"_foreach_{name}_"] = call, call_
    for name, function in found.items():
        function.__name__ = function.__qualname__ = name
        function.__doc__ = f"{name[len('_foreach_'):]}() of each tensor of a list."
    return found


FUNCTIONS = _all()
globals().update(FUNCTIONS)
