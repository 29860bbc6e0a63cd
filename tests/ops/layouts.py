# SPDX-License-Identifier: Apache-2.0
"""Tensors of one and the same array, laid out in memory in different ways, on any device."""
import mt
import numpy as np
from opcases import Fixed


def map_arrays(value, function):
    """Applies a function to every array (or Fixed one) in arguments; the rest stays."""
    if isinstance(value, (np.ndarray, Fixed)):
        return function(value)
    if isinstance(value, (list, tuple)):
        return type(value)(map_arrays(item, function) for item in value)
    if isinstance(value, dict):
        return {key: map_arrays(item, function) for key, item in value.items()}
    return value


def collect(value, kinds):
    """All parts of arguments or results that are of some kinds, in order."""
    if isinstance(value, kinds):
        return [value]
    if isinstance(value, (list, tuple)):
        return [part for item in value for part in collect(item, kinds)]
    if isinstance(value, dict):
        return [part for item in value.values() for part in collect(item, kinds)]
    return []


def strip(array):
    return array.array if isinstance(array, Fixed) else array


def repeated_dim(array):
    """The dimension along which the broadcast layout repeats an array; None: there is none."""
    for dim, size in enumerate(np.shape(array)):
        if size > 1:
            return dim
    return None


def repeat(array):
    """An array with the values that its broadcast layout can have."""
    dim = repeated_dim(array)
    if dim is None:
        return array
    return np.repeat(array.take([0], dim), array.shape[dim], axis=dim)


def _strided(base, shape, strides, offset):
    with mt.no_grad():
        view = mt.call("as_strided", base, list(shape), list(strides), offset)
        return mt.call("detach", view)


def _row_major(shape):
    strides = []
    step = 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(size, 1)
    return strides


def _transposed(array, device):
    base = mt.tensor(np.array(array.transpose(), order="C", subok=True), device)
    return _strided(base, array.shape, _row_major(array.shape[::-1])[::-1], 0)


def _sliced(array, device):
    """Every second element of a larger tensor, whose others must not be read."""
    shape = [2 * size + 1 for size in array.shape] or [3]
    if array.dtype.kind == "f":
        large = np.full(shape, np.nan, array.dtype)
    else:
        large = np.full(shape, 1 if array.dtype.kind == "b" else 113, array.dtype)
    if isinstance(array, mt.BFloat16):
        large = large.view(mt.BFloat16)
    large[(slice(1, None, 2),) * max(array.ndim, 1)] = array
    strides = _row_major(shape)
    offset = sum(strides)
    return _strided(mt.tensor(large, device), array.shape, [2 * s for s in strides][:array.ndim],
                    offset)


def _broadcast(array, device):
    dim = repeated_dim(array)
    if dim is None:
        return mt.tensor(array, device)
    base = mt.tensor(array.take([0], dim), device)
    strides = _row_major([1 if d == dim else size for d, size in enumerate(array.shape)])
    strides[dim] = 0
    return _strided(base, array.shape, strides, 0)


def place(array, layout, device="cpu"):
    """A tensor with an array's elements in a layout. Fixed arrays are contiguous in all."""
    if isinstance(array, Fixed) or layout == "contiguous":
        return mt.tensor(strip(array), device)
    if layout == "transposed":
        return _transposed(array, device) if array.ndim > 1 else mt.tensor(array, device)
    if layout == "sliced":
        return _sliced(array, device)
    return _broadcast(array, device)


def matters(layout, arrays):
    """Whether a layout differs from the contiguous one for at least one of the arrays."""
    arrays = [a for a in arrays if not isinstance(a, Fixed)]
    if layout == "contiguous":
        return True
    if layout == "sliced":
        return any(a.size > 0 for a in arrays)
    if layout == "broadcast":
        return any(a.size > 0 and repeated_dim(a) is not None for a in arrays)
    if layout == "mixed":
        return sum(a.ndim > 1 for a in arrays) > 0 and len(arrays) > 1
    return any(a.ndim > 1 for a in arrays)


def place_all(value, layout, device, keep_first=False):
    """Tensors for the arrays in arguments. mixed: the first contiguous, the next transposed, and so
    on. keep_first: the first one is contiguous (it is written)."""
    count = 0

    def one(array):
        nonlocal count
        count += 1
        here = layout
        if layout == "mixed":
            here = "contiguous" if count % 2 == 1 else "transposed"
        if count == 1 and keep_first:
            here = "contiguous"
        return place(array, here, device)

    return map_arrays(value, one)
