# SPDX-License-Identifier: Apache-2.0
"""More functions of torch as compositions of ops: sets and counts, less common arithmetic, ops in place."""

import math
import os
import warnings

from . import _C, _forms
from ._C import Tensor, ops as _ops


# ---- sets and counts ----

def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The different elements in ascending order, with where each element went and how often it was there."""
    if dim is None:
        values, inverse, counts = _ops._unique2(input, sorted, return_inverse, return_counts)
    else:
        values, inverse, counts = _ops.unique_dim(input, dim, sorted, return_inverse, return_counts)
    return _asked(values, inverse if return_inverse else None, counts if return_counts else None)


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The elements without those that equal the one before them, as unique() gives them."""
    values, inverse, counts = _ops.unique_consecutive(input, return_inverse, return_counts, dim)
    return _asked(values, inverse if return_inverse else None, counts if return_counts else None)


def _torch():
    import mindtorch_v2
    return mindtorch_v2


def _asked(values, *more):
    results = (values, *(each for each in more if each is not None))
    return results if len(results) > 1 else values


def isin(elements, test_elements, *, assume_unique=False, invert=False):
    """Which elements are among the others."""
    if not isinstance(elements, Tensor):
        elements = _C.tensor(elements, device=getattr(test_elements, "device", None))
    if not isinstance(test_elements, Tensor):
        test_elements = _C.tensor(test_elements, device=elements.device)
    for tensor in (elements, test_elements):
        if tensor.dtype is _C.bool:
            raise RuntimeError("Unsupported input type encountered for isin(): Bool")
    def find():
        found = _ops.any(_ops.unsqueeze(elements, -1) == _ops.reshape(test_elements, (-1,)), -1)
        return _ops.logical_not(found) if invert else found
    return _C._call_as_op("aten::isin", (elements, test_elements, assume_unique, invert), find)


def _assert_async(input, assert_msg=None):
    """Raises unless the only element of a tensor is not zero. It waits for a device."""
    def check():
        if not input:
            raise RuntimeError("Expected Tensor with single nonzero value, but got zero" if assert_msg is None
                               else assert_msg or "Assertion is failed")
    _C._call_as_op("aten::_assert_async", (input,) if assert_msg is None else (input, assert_msg), check)


def take(input, index):
    """Elements by their place in the flattened tensor."""
    return _ops.index(_ops.reshape(input, (-1,)), (index,))


def take_along_dim(input, indices, dim=None):
    """gather(), with the indices of argsort() and its like; without a dimension, of the flattened tensor."""
    if dim is None:
        return _ops.gather(_ops.reshape(input, (-1,)), 0, _ops.reshape(indices, (-1,)))
    if input.dim() != indices.dim():
        raise RuntimeError("torch.take_along_dim(): input and indices should have the same number of dimensions, "
                           f"but got {input.dim()} dimensions for input, and {indices.dim()} dimensions for indices")
    if indices.dtype is not _C.int64:
        raise RuntimeError("torch.take_along_dim(): dtype of indices should be Long but got "
                           f"{_title(indices)}")
    # The other dimensions broadcast.
    place = dim + input.dim() if dim < 0 else dim
    mine, its = list(input.shape), list(indices.shape)
    for i, (a, b) in enumerate(zip(input.shape, indices.shape)):
        if i != place and 1 in (a, b):
            mine[i] = its[i] = b if a == 1 else a
        elif i != place and a != b:
            raise RuntimeError(f"The size of tensor a ({b}) must match the size of tensor b ({a}) at non-singleton "
                               f"dimension {i}")
    return _ops.gather(_ops.expand(input, mine), dim, _ops.expand(indices, its))


def _check_fits(name, count):
    """Refuses to make more tensors than memory has room for, before the first is made."""
    least = 128  # bytes of one, without its elements
    if count > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // least:
        raise MemoryError(f"{name}(): {count} tensors do not fit into memory")


def tensor_split(input, indices_or_sections, dim=0):
    """Parts of nearly equal length, or parts that end at the given places."""
    size = input.size(dim)
    if isinstance(indices_or_sections, Tensor):
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, int):
        if indices_or_sections < 1:
            raise RuntimeError(f"number of sections must be larger than 0, got {indices_or_sections}")
        _check_fits("tensor_split", indices_or_sections)
        small, rest = divmod(size, indices_or_sections)
        ends, at = [], 0
        for i in range(indices_or_sections - 1):
            at += small + (i < rest)
            ends.append(at)
    else:
        ends = [int(end) for end in indices_or_sections]
    ends = [0, *(min(max(end + size if end < 0 else end, 0), size) for end in ends), size]
    return tuple(_ops.narrow(input, dim, start, max(end - start, 0)) for start, end in zip(ends, ends[1:]))


def diff(input, n=1, dim=-1, prepend=None, append=None):
    """Each element less the one before it, with more elements at the ends where they are given."""
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    more = [each for each in (prepend, input, append) if each is not None]
    if len(more) > 1 and n:
        input = _ops.cat(more, dim)
    for _ in range(min(n, input.size(dim))):  # after that there is nothing left
        size = input.size(dim)
        later = _ops.narrow(input, dim, min(1, size), max(size - 1, 0))
        before = _ops.narrow(input, dim, 0, max(size - 1, 0))
        input = _ops.logical_xor(later, before) if input.dtype is _C.bool else later - before
    return input


def _indices(triangle, row, col, offset, dtype, device):
    def find():
        inside = _ops.nonzero(triangle(_ops.ones((row, col), device=device), offset))
        return inside.t().contiguous().to(dtype or _C.int64)
    name = "aten::tril_indices" if triangle is _ops.tril else "aten::triu_indices"
    return _C._call_as_op(name, (row, col, offset, dtype, None, device, None), find)


def tril_indices(row, col, offset=0, *, dtype=None, device=None):
    """Rows and columns of a matrix's lower triangle."""
    return _indices(_ops.tril, row, col, offset, dtype, device)


def triu_indices(row, col, offset=0, *, dtype=None, device=None):
    """Rows and columns of a matrix's upper triangle."""
    return _indices(_ops.triu, row, col, offset, dtype, device)


def _shape_as_tensor(input):
    """The sizes."""
    return _C._call_as_op("aten::_shape_as_tensor", (input,), lambda: _C.tensor(list(input.shape), dtype=_C.int64))


def randint_like(input, low, high=None, *, dtype=None, device=None):
    """randint() of another tensor's shape, type and device."""
    low, high = (0, low) if high is None else (low, high)
    return _ops.randint(low, high, input.shape, dtype=dtype or input.dtype, device=device or input.device)


# ---- arithmetic ----

def _real(input):
    return input if input.is_floating_point() else input.to(_C.get_default_dtype())


def deg2rad(input):
    """Degrees as radians."""
    return _real(input) * (math.pi / 180)


def rad2deg(input):
    """Radians as degrees."""
    return _real(input) * (180 / math.pi)


def vdot(input, other):
    """The product of two vectors."""
    return _ops.dot(input, other)


def kron(input, other):
    """The Kronecker product."""
    dims = max(input.dim(), other.dim())
    a = _ops.reshape(input, (1,) * (dims - input.dim()) + tuple(input.shape))
    b = _ops.reshape(other, (1,) * (dims - other.dim()) + tuple(other.shape))
    shape = [m * n for m, n in zip(a.shape, b.shape)]
    a = _ops.reshape(a, [size for pair in zip(a.shape, [1] * dims) for size in pair])
    b = _ops.reshape(b, [size for pair in zip([1] * dims, b.shape) for size in pair])
    return _ops.reshape(a * b, shape)


def fill(input, value):
    """A tensor of that shape with one value."""
    return _ops.fill_(_ops.empty_like(input), value)


# ---- in place: ops without such a row write their result back ----

_IN_PLACE = """
    eq ne lt le gt ge greater greater_equal less less_equal not_equal
    bitwise_not logical_and logical_or logical_xor logical_not tril triu addmm baddbmm
""".split()


def _category(dtype):
    return 0 if dtype is _C.bool else 2 if dtype.is_floating_point else 1


def _title(tensor):
    return tensor.type().rpartition(".")[2][:-6]


def write_back(self, result):
    """Writes what an op gave into its operand, which must be able to hold it."""
    if _category(result.dtype) > _category(self.dtype):
        raise RuntimeError(f"result type {_title(result)} can't be cast to the desired output type {_title(self)}")
    if result.shape != self.shape:
        raise RuntimeError(f"output with shape {list(self.shape)} doesn't match the broadcast shape "
                           f"{list(result.shape)}")
    return _ops.copy_(self, result)


def _in_place(name):
    row = getattr(_ops, name)

    def method(self, *args, **kwargs):
        # What the derivative looks at must not be what is written.
        input = _ops.clone(self) if self.requires_grad and _C.is_grad_enabled() else self
        return write_back(self, row(input, *args, **kwargs))
    method.__name__ = method.__qualname__ = name + "_"
    method.__doc__ = f"{name}() in place."
    return method


def _running_in_place(name):
    row, write = getattr(_ops, name), _in_place(name)

    def method(self, dim, *, dtype=None):
        if dtype is not None and dtype is not self.dtype:
            raise RuntimeError(f"Bad in-place call: input tensor dtype {_C_NAMES[str(self.dtype)[6:]]} and output tensor "
                               f"dtype {_C_NAMES[str(dtype)[6:]]} should match")
        return write(self, dim) if self.is_floating_point() else _ops.copy_(self, row(self, dim, dtype=self.dtype))
    method.__name__ = method.__qualname__ = name + "_"
    method.__doc__ = f"{name}() in place."
    return method


_C_NAMES = {"bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short int", "uint16": "short "
            "unsigned int", "uint32": "unsigned int", "uint64": "long unsigned int", "int32": "int", "int64": "long int", "float16": "c10::Half",
            "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double"}


def _fill_diagonal_(self, fill_value, wrap=False):
    """Writes the main diagonal."""
    if wrap or self.dim() != 2:
        raise NotImplementedError("fill_diagonal_(): only for matrices, without wrap")
    _C._call_as_op("aten::fill_diagonal_", (self, fill_value, wrap),
                   lambda: _ops.fill_(_ops.diagonal(self), fill_value))
    return self


def _get_device(self):
    """The accelerator's index, -1 on other devices."""
    return self.device.index if self.device.type == "npu" else -1


def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """The p-norm of each row's difference from each row of the other."""
    for name, x in (("X1", x1), ("X2", x2)):
        if x.dim() < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.dim()}D")
    if x1.size(-1) != x2.size(-1):
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.size(-1)} X2: {x2.size(-1)}")
    if x1.dtype is not x2.dtype:
        raise RuntimeError(f"expected scalar type {_title(x1)} but found {_title(x2)}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    return _C._call_as_op("aten::cdist", (x1, x2, p, None), lambda: _ops.linalg_vector_norm(
        _ops.unsqueeze(x1, -2) - _ops.unsqueeze(x2, -3), p, (-1,)))


# ---- matrices ----

def lu(input, pivot=True, get_infos=False):
    """The LU factors of matrices in one tensor, with the pivots and, if asked for, LAPACK's answers."""
    factors, pivots, info = _ops._lu_with_info(input, pivot, False)
    return (factors, pivots, info) if get_infos else (factors, pivots)


# ---- signals: the ends of the signal, and warnings; the rest is in C ----

def stft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect",
         normalized=False, onesided=None, return_complex=None, align_to_window=None):
    """Fourier transforms of short stretches of a signal, (..., frequencies, stretches)."""
    if center:
        from .nn.functional import pad
        if align_to_window is not None:
            raise RuntimeError("stft align_to_window should only be set when center = false")
        rows = input.view([1] * (3 - input.dim()) + list(input.shape))
        rows = pad(rows, (n_fft // 2, n_fft // 2), pad_mode)
        input = rows.view(rows.shape[3 - input.dim():])
    if window is None:
        warnings.warn("A window was not provided. A rectangular window will be applied,"
                      "which is known to cause spectral leakage. Other windows such as torch.hann_window or "
                      "torch.hamming_window are recommended to reduce spectral leakage.To suppress this warning and "
                      "use a rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`.",
                      stacklevel=2)
    if return_complex is False:
        warnings.warn("stft with return_complex=False is deprecated. In a future pytorch release, stft will return "
                      "complex tensors for all inputs, and return_complex=False will raise an error.", stacklevel=2)
    return _ops.stft(input, n_fft, hop_length, win_length, window, normalized, onesided, return_complex,
                     align_to_window)


def istft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None,
          length=None, return_complex=False):
    """The signal whose stft() this is, from overlapping stretches."""
    result = _ops.istft(input, n_fft, hop_length, win_length, window, center, normalized, onesided, length,
                        return_complex)
    if window is None:
        warnings.warn("A window was not provided. A rectangular window will be applied.Please provide the same window "
                      "used by stft to make the inversion lossless.To suppress this warning and use a rectangular "
                      "window, explicitly set `window=torch.ones(n_fft, device=<device>)`.", stacklevel=2)
    hop = n_fft // 4 if hop_length is None else hop_length
    if length is not None and length > n_fft + hop * (input.size(-1) - 1) - (n_fft // 2 if center else 0):
        warnings.warn("The length of signal is shorter than the length parameter. Result is being padded with zeros in "
                      "the tail. Please check your center and hop_length settings.", stacklevel=2)
    return result


FUNCTIONS = {function.__name__: function for function in (
    cdist, unique, unique_consecutive, isin, _assert_async, take, take_along_dim, tensor_split, diff,
    tril_indices, triu_indices, randint_like, _shape_as_tensor, deg2rad, rad2deg, vdot,
    kron, fill, lu, stft, istft)}
METHODS = {name: FUNCTIONS[name] for name in """
    unique unique_consecutive take take_along_dim tensor_split diff deg2rad rad2deg vdot kron lu stft istft
""".split()}
METHODS.update({f"{name}_": _in_place(name) for name in _IN_PLACE})
METHODS.update({f"{name}_": _running_in_place(name) for name in ("cumsum", "cumprod")})
METHODS.update({"fill_diagonal_": _fill_diagonal_, "get_device": _get_device})
