# SPDX-License-Identifier: Apache-2.0
"""Questions about tensors, and methods that change them: sizes, random numbers, Python functions of elements."""

import math

from .. import _C, _composed
from .._C import ops as _ops
from .grids import empty_strided
from .samples import _as_op


# ---- questions ----

def isreal(input):
    """Which elements have no imaginary part."""
    return _ops.eq(_ops.imag(input), 0) if input.is_complex() else _ops.ones_like(input, dtype=_C.bool)


def is_signed(input):
    """Whether its type has numbers below 0."""
    return input.dtype.is_signed


def is_conj(input):
    """Whether a conjugate is not computed yet: never here."""
    return False


def is_neg(input):
    """Whether a negation is not computed yet: never here."""
    return False


def get_device(input):
    """The accelerator's index, -1 on other devices."""
    return input.get_device()


# ---- methods that change a tensor ----

def _writes(name, function):
    def method(self, *args, **kwargs):
        # What the derivative looks at must not be what is written.
        input = _ops.clone(self) if self.requires_grad and _C.is_grad_enabled() else self
        return _composed.write_back(self, function(input, *args, **kwargs))
    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"{name[:-1]}() in place."
    return method


def _resize_(self, *size, memory_format=None):
    """Another shape, row by row; where memory is larger it is new, with the elements that were there."""
    size = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)
    if self.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    if any(n < 0 for n in size):
        raise RuntimeError("numel: integer multiplication overflow")
    if tuple(self.shape) == size:
        return self
    strides, count = [], 1
    for n in reversed(size):
        strides.insert(0, count)
        count *= max(n, 1)
    count = math.prod(size)
    held = self.untyped_storage().nbytes() // self.element_size() - self.storage_offset()

    def resize():
        if count <= held:
            return _ops.as_strided(self.detach(), size, strides, self.storage_offset())
        larger = _ops.empty((count,), dtype=self.dtype, device=self.device)
        if held > 0:
            _ops.copy_(larger[:held], _ops.as_strided(self.detach(), (held,), (1,), self.storage_offset()))
        return _ops.reshape(larger, size)
    self.data = _as_op("resize_", (self, list(size), memory_format), resize)
    self._raise_version()
    return self


def _resize_as_(self, the_template, *, memory_format=None):
    """The shape of another tensor, as resize_() gives it."""
    return _resize_(self, tuple(the_template.shape), memory_format=memory_format)


def _new_empty_strided(self, size, stride, dtype=None, device=None, requires_grad=False):
    """empty_strided() of this tensor's type and device."""
    return empty_strided(size, stride, dtype=dtype or self.dtype, device=device or self.device,
                         requires_grad=requires_grad)


def _uniform(self, generator):
    """Numbers of (0, 1], whose logarithm is finite."""
    wide = self.dtype if self.dtype is _C.float64 else _C.float32
    made = _ops.empty(tuple(self.shape), dtype=wide, device=self.device)
    return 1 - _ops.uniform_(made, 0.0, 1.0, generator=generator)


def _cauchy_(self, median=0, sigma=1, *, generator=None):
    """Numbers of the Cauchy distribution."""
    if not self.is_floating_point():
        raise RuntimeError(f"Cauchy distribution is a continuous probability distribution. dtype must be a floating point "
                           f"but you specified {_C_TYPES.get(str(self.dtype), self.dtype)}")
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    return _ops.copy_(self, _ops.tan((_uniform(self, generator) - 0.5) * math.pi) * sigma + median)


def _log_normal_(self, mean=1, std=2, *, generator=None):
    """Numbers whose logarithm is normal."""
    if not self.is_floating_point():
        raise NotImplementedError(f"\"log_normal_cpu\" not implemented for '{_composed._title(self)}'")
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    return _ops.copy_(self, _ops.exp(_ops.normal_(_ops.empty_like(self), mean, std, generator=generator)))


def _geometric_(self, p, *, generator=None):
    """How many trials the first success of probability p takes."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    trials = _ops.ceil(_ops.log(_uniform(self, generator)) / math.log1p(-p))
    return _ops.copy_(self, _ops.clamp(trials, min=1))


_C_TYPES = {f"torch.{name}": text for name, text in _composed._C_NAMES.items()}


def _on_host(self, name):
    if self.device.type != "cpu":
        raise TypeError(f"{name}() is only implemented on CPU tensors")
    if self.requires_grad:
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")


def _apply_(self, callable):
    """Each element as a Python function makes it."""
    _on_host(self, "apply_")
    made = [callable(number) for number in _ops.reshape(self, (-1,)).tolist()]
    return _ops.copy_(self, _ops.reshape(_C.tensor(made, dtype=self.dtype), tuple(self.shape)))


def _map_(self, tensor, callable):
    """Each element as a Python function makes it of this one and that of another tensor."""
    _on_host(self, "map_")
    other = _ops.reshape(_ops.expand(tensor, tuple(self.shape)), (-1,)).tolist()
    made = [callable(a, b) for a, b in zip(_ops.reshape(self, (-1,)).tolist(), other)]
    return _ops.copy_(self, _ops.reshape(_C.tensor(made, dtype=self.dtype), tuple(self.shape)))


def _cfloat(self):
    """The tensor in complex64."""
    return self.to(_C.complex64)


def _cdouble(self):
    """The tensor in complex128."""
    return self.to(_C.complex128)
