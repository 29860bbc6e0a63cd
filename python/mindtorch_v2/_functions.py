# SPDX-License-Identifier: Apache-2.0
"""Functions of torch that are no rows of the op table: made of rows, in Python.

What is listed in METHODS is a method of Tensor too.
"""

from . import _C, _composed, _forms, _further, _legacy_types
from ._C import Tensor, ops as _ops
from ._einsum import einsum

_builtin_max = max


def _tensors(name, tensors):
    """Accepts f(a, b) and f([a, b])."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tensors[0]
    for i, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(tensor).__name__}")
    return tensors


# ---- questions ----

def is_tensor(obj):
    """Whether it is a Tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input):
    """Whether its elements are floating-point numbers."""
    return input.is_floating_point()


def is_complex(input):
    """Whether its elements are complex numbers."""
    return input.is_complex()


def is_inference(input):
    """Whether a tensor was made in inference mode."""
    return input.is_inference()


def is_storage(obj):
    """Whether it is the memory of a tensor (torch.storage)."""
    return type(obj).__name__ in ("TypedStorage", "UntypedStorage") and hasattr(obj, "_tensor")


def numel(input):
    """The number of elements."""
    return input.numel()


def is_same_size(input, other):
    """Whether both have the same shape."""
    return input.is_same_size(other)


def isposinf(input):
    """Which elements are +inf."""
    return _ops.eq(input, float("inf"))


def isneginf(input):
    """Which elements are -inf."""
    return _ops.eq(input, float("-inf"))


# ---- reductions with other arguments than their rows ----

def _correction(dim, unbiased, correction):
    """std(True), std(1, True) and std(1, correction=1) as dim and correction."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    return dim, correction


def _numpy_names(dim, keepdim, names):
    """NumPy's names of parameters."""
    for name in names:
        if name not in ("axis", "keepdims"):
            raise TypeError(f"got an unexpected keyword argument {name!r}")
    return names.get("axis", dim), names.get("keepdims", keepdim)


def std(input, dim=None, unbiased=None, keepdim=False, *, correction=None, out=None, **names):
    """The standard deviation."""
    dim, keepdim = _numpy_names(dim, keepdim, names) if names else (dim, keepdim)
    dim, correction = _correction(dim, unbiased, correction)
    return _ops.std(input, dim, keepdim, correction=correction, out=out)


def var(input, dim=None, unbiased=None, keepdim=False, *, correction=None, out=None, **names):
    """The variance."""
    dim, keepdim = _numpy_names(dim, keepdim, names) if names else (dim, keepdim)
    dim, correction = _correction(dim, unbiased, correction)
    return _ops.var(input, dim, keepdim, correction=correction, out=out)


def var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """Variance and mean."""
    dim, correction = _correction(dim, unbiased, correction)
    return _ops.var_mean(input, dim, keepdim, correction=correction)


def std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """Standard deviation and mean."""
    # The root of the variance would overflow where the deviation does not.
    _, mean = var_mean(input, dim, unbiased, keepdim, correction=correction)
    return std(input, dim, unbiased, keepdim, correction=correction), mean


def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """The p-norm over the given dimensions, or over all elements."""
    if out is not None:
        raise NotImplementedError("norm(): out= is not implemented")
    if dtype is not None:
        input = input.to(dtype)
    if p is None or p == "fro":
        p = 2
    elif isinstance(p, str):
        dims = (-2, -1) if dim is None else dim
        return _ops.linalg_matrix_norm(input, p, dims, keepdim)
    return _ops.linalg_vector_norm(input, p, dim, keepdim)


def dist(input, other, p=2):
    """The p-norm of the difference."""
    return norm(input - other, p)


def chain_matmul(*matrices, out=None):
    """The product of matrices, in the order of fewest multiplications."""
    return _ops.chain_matmul(matrices, **({} if out is None else {"out": out}))


def nonzero(input, *, out=None, as_tuple=False):
    """Where elements are not zero: a row for each, or with as_tuple a tensor for each dimension."""
    if as_tuple and input.dim() == 0:
        input = _ops.reshape(input, (1,))
    found = _ops.nonzero(input, out=out)
    return _ops.unbind(found, 1) if as_tuple else found


def _places(condition):
    return nonzero(condition, as_tuple=True)


_warned = set()


def _warn_once(text):
    """Warns the caller of the function that calls this, the first time in a process, as torch does."""
    if text not in _warned:
        import warnings

        _warned.add(text)
        warnings.warn(text, UserWarning, stacklevel=3)


def where(condition, input=None, other=None):
    """input where the condition holds and other elsewhere; alone, the places where it holds."""
    if input is None and other is None:
        return _C._call_as_op("aten::where", (condition,), _places, condition)
    if condition.dtype is _C.uint8:
        _warn_once("where received a uint8 condition tensor. This behavior is deprecated and will be removed in a "
                   "future version of PyTorch. Use a boolean condition instead.")
    return _ops.where(condition, input, other)


def _polygamma(self, n):
    """The n-th derivative of digamma() of each element."""
    return _ops.polygamma(n, self)


def _where_method(self, condition, other):
    """self where the condition holds, other elsewhere."""
    return _ops.where(condition, self, other)


def trace(input):
    """The sum of a matrix's diagonal."""
    if input.dim() != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.dim()}")
    if input.dtype is _C.bool:
        raise NotImplementedError("\"trace\" not implemented for 'Bool'")
    return _ops.sum(_ops.diagonal(input))


# ---- shapes ----

def broadcast_shapes(*shapes):
    """The shape that all of these broadcast to."""
    shapes = [(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes]
    result = [1] * _builtin_max((len(shape) for shape in shapes), default=0)
    for number, shape in enumerate(shapes):
        for i in range(-1, -1 - len(shape), -1):
            if shape[i] < 0:
                raise RuntimeError(f"Trying to create tensor with negative dimension ({shape[i]}): "
                                   f"({shape[i]})")
            if shape[i] == 1 or shape[i] == result[i]:
                continue
            if result[i] != 1:
                raise RuntimeError(f"Attempting to broadcast a dimension of length {shape[i]} at {i}! "
                                   f"Mismatching argument at index {number} had {shape}; but expected shape "
                                   f"should be broadcastable to {result}")
            result[i] = shape[i]
    return _C.Size(result)


def broadcast_tensors(*tensors):
    """All tensors, expanded to one shape."""
    tensors = _tensors("broadcast_tensors", tensors)
    return _ops.broadcast_tensors(list(tensors))


def _at_least(name):
    row = getattr(_ops, name)

    def function(*tensors):
        if len(tensors) == 1:
            return row(tensors[0])
        return row(list(_tensors(name, tensors)))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Tensors of fewer than {name[-2]} dimensions get more of size 1."
    return function


atleast_1d, atleast_2d, atleast_3d = (_at_least(f"atleast_{n}d") for n in (1, 2, 3))


def _repeated_places(repeats, size=None):
    """0 so often as the first number says, then 1 ..."""
    if repeats.dim() > 1 or repeats.is_floating_point() or repeats.dtype is _C.bool:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor" if repeats.dim() > 1 else
                           "repeats has to be Long or Int tensor")
    if repeats.numel() and int(repeats.min()) < 0:
        raise RuntimeError("repeats can not be negative")
    if size is not None and repeats.numel() != size:
        raise RuntimeError("repeats must have the same size as input along dim, but got repeats.size(0) = "
                           f"{repeats.numel()} and input.size(dim) = {size}")
    ends = _ops.cumsum(repeats.to(_C.int64), 0)
    total = int(ends[-1]) if ends.numel() else 0
    marks = _ops.zeros((total + 1,), dtype=_C.int64, device=repeats.device)
    return _ops.cumsum(_ops.scatter_add(marks, 0, ends, _ops.ones_like(ends)), 0)[:total]


def repeat_interleave(input, repeats=None, dim=None, *, output_size=None):
    """Each element `repeats` times in a row; of one tensor, its numbers say how often each place is repeated."""
    return _C._call_as_op("aten::repeat_interleave", (input, repeats, dim, output_size), _repeat_interleave, input,
                          repeats, dim)


def _repeat_interleave(input, repeats, dim):
    if repeats is None:
        return _repeated_places(input)
    if isinstance(repeats, Tensor):
        if repeats.numel() != 1:
            if dim is None:
                input, dim = _ops.reshape(input, (-1,)), 0
            return _ops.index_select(input, dim, _repeated_places(repeats, input.size(dim)))
        repeats = int(repeats)
    if dim is None:
        input, dim = _ops.reshape(input, (-1,)), 0
    dim = dim + input.dim() if dim < 0 else dim
    sizes = list(input.shape)
    wide = _ops.expand(_ops.unsqueeze(input, dim + 1), (*sizes[:dim + 1], repeats, *sizes[dim + 1:]))
    sizes[dim] *= repeats
    return _ops.reshape(wide, sizes)


def diag(input, diagonal=0, *, out=None):
    """A matrix with this vector on its diagonal, or the diagonal of a matrix."""
    if out is not None:
        return _forms.into(diag(input, diagonal), out)
    if input.dim() not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.dim()}D")
    return _C._call_as_op("aten::diag", (input, diagonal), _diag, input, diagonal)


def _diag(input, diagonal):
    if input.dim() == 2:
        return _ops.diagonal(input, diagonal).clone()
    size = input.numel() + abs(diagonal)
    places = _ops.arange(0, input.numel(), device=input.device)
    rows, columns = places + _builtin_max(-diagonal, 0), places + _builtin_max(diagonal, 0)
    return _ops.index_put(_ops.zeros((size, size), dtype=input.dtype, device=input.device), (rows, columns),
                          input)


def meshgrid(*tensors, indexing=None):
    """Coordinates of a grid: "ij" by rows (the default), "xy" by columns."""
    if indexing is None:
        _warn_once("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.")
    return _ops.meshgrid(list(_tensors("meshgrid", tensors)), indexing=indexing)


# ---- numbers ----

def normal(mean, std=1.0, size=None, *, generator=None, dtype=None, device=None, requires_grad=False, out=None):
    """Normal random numbers: of a shape, or with a mean or a deviation for each element."""
    if out is not None:
        return _forms.into(normal(mean, std, size, generator=generator, dtype=dtype, device=device), out)
    if isinstance(std, Tensor) and std.numel() and not bool((std >= 0).all()):
        raise RuntimeError("normal expects all elements of std >= 0.0")
    if isinstance(mean, Tensor) or isinstance(std, Tensor):
        like = mean if isinstance(mean, Tensor) else std
        if isinstance(mean, Tensor) and isinstance(std, Tensor) and std.numel() > like.numel():
            like = std
        return _ops.randn_like(like, generator=generator) * std + mean
    if size is None:
        raise TypeError("normal() missing 1 required positional arguments: \"size\"")
    made = _ops.empty(size, dtype=dtype, device=device).normal_(mean, std, generator=generator)
    return made.requires_grad_() if requires_grad else made


def nan_to_num(input, nan=0.0, posinf=None, neginf=None):
    """NaN and infinities as numbers."""
    if not input.is_floating_point():
        return input.clone()
    from ._numeric import finfo
    info = finfo(input.dtype)
    input = _ops.where(_ops.isnan(input), nan or 0.0, input)
    input = _ops.where(isposinf(input), info.max if posinf is None else posinf, input)
    return _ops.where(isneginf(input), info.min if neginf is None else neginf, input)


def _nan_to_num_(self, nan=0.0, posinf=None, neginf=None):
    """nan_to_num() in place."""
    return self if not self.is_floating_point() else _ops.copy_(self, nan_to_num(self, nan, posinf, neginf))


def positive(input):
    """The tensor itself."""
    if input.dtype is _C.bool:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


# Arguments that only cuDNN, or sparse gradients, would look at.

def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled=False):
    """The row, with torch's last argument."""
    return _ops.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enable=True):
    """The row, with torch's last argument."""
    return _ops.layer_norm(input, normalized_shape, weight, bias, eps)


def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    """The row, with torch's last arguments."""
    if scale_grad_by_freq or sparse:
        raise NotImplementedError("embedding(): scale_grad_by_freq and sparse are not implemented")
    return _ops.embedding(weight, indices, padding_idx)


def addmv(input, mat, vec, *, beta=1, alpha=1):
    """beta * input + alpha * (mat @ vec)."""
    return _ops.add(input if beta == 1 else input * beta, _ops.mv(mat, vec), alpha=alpha)


def _rows(input, width):
    """A matrix of rows; -1 would not say how many there are of width 0."""
    rows = 1
    for size in input.shape[:-1]:
        rows *= size
    return _ops.reshape(input, (rows, width))


def inner(input, other):
    """The product over the last dimensions."""
    if input.dim() == 0 or other.dim() == 0:
        return input * other
    if input.dim() == other.dim() == 1:
        return _ops.dot(input, other)
    flat = _ops.mm(_rows(input, input.shape[-1]), _rows(other, other.shape[-1]).t())
    return _ops.reshape(flat, (*input.shape[:-1], *other.shape[:-1]))


def tensordot(a, b, dims=2):
    """The product over some dimensions of both."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims_a, dims_b = list(range(a.dim() - dims, a.dim())), list(range(dims))
    else:
        dims_a, dims_b = ([d + a.dim() if d < 0 else d for d in dims[0]],
                          [d + b.dim() if d < 0 else d for d in dims[1]])
    rest_a = [d for d in range(a.dim()) if d not in dims_a]
    rest_b = [d for d in range(b.dim()) if d not in dims_b]
    for i, k in zip(dims_a, dims_b):
        if a.shape[i] != b.shape[k]:
            raise RuntimeError("contracted dimensions need to match, but first has size "
                               f"{a.shape[i]} in dim {i} and second has size {b.shape[k]} in dim {k}")
    def product(sizes):
        total = 1
        for size in sizes:
            total *= size
        return total

    inner_size = product(a.shape[d] for d in dims_a)
    left = _ops.reshape(_ops.permute(a, rest_a + dims_a), (product(a.shape[d] for d in rest_a), inner_size))
    right = _ops.reshape(_ops.permute(b, dims_b + rest_b), (inner_size, product(b.shape[d] for d in rest_b)))
    return _ops.reshape(_ops.mm(left, right), [a.shape[d] for d in rest_a] + [b.shape[d] for d in rest_b])


# ---- methods that are no functions ----

def _like(self, dtype, device):
    return {"dtype": self.dtype if dtype is None else dtype,
            "device": self.device if device is None else device}


def _new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
    """torch.tensor() with this tensor's type and device."""
    return _C.tensor(data, requires_grad=requires_grad, **_like(self, dtype, device))


def _is_set_to(self, tensor):
    """Whether both see the same elements in the same way."""
    return (self._storage() == tensor._storage() and self.storage_offset() == tensor.storage_offset()
            and self.shape == tensor.shape and self.stride() == tensor.stride())


def _random_(self, from_=0, to=None, *, generator=None):
    """Whole numbers from [from, to), [0, to) or all that the type can tell apart."""
    if to is None and from_:
        from_, to = 0, from_
    if to is None:
        name = str(self.dtype)[6:]
        to = {"bool": 2, "uint8": 256, "int8": 2**7, "int16": 2**15, "int32": 2**31 - 1, "int64": 2**63 - 1,
              "float16": 2**11 + 1, "bfloat16": 2**8 + 1, "float32": 2**24 + 1, "float64": 2**53 + 1}.get(name)
        if to is None:  # as in torch
            raise NotImplementedError(f"random_() without bounds is not implemented for {name}")
    return _ops.random_(self, from_, to, generator=generator)


def _in_place(view, name):
    """A view that takes the tensor's place: its shape changes, its elements stay."""
    def method(self, *args, **kwargs):
        if self.requires_grad:
            raise NotImplementedError(f"{name}(): not implemented for tensors that require grad")
        self.data = view(self, *args, **kwargs)
        self._raise_version()
        return self
    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"{name.rstrip('_')}() in place."
    return method


def _false(self):
    """False: there are no such tensors here."""
    return False


def _reversed(self):
    """The rows from the last to the first."""
    return _ops.flip(self, (0,)) if self.dim() else self


FUNCTIONS = {function.__name__: function for function in (
    is_tensor, is_floating_point, is_complex, is_inference, is_storage, numel, is_same_size, isposinf, isneginf,
    std, var, var_mean, std_mean, norm, dist, nonzero, where, trace, broadcast_shapes, broadcast_tensors, atleast_1d,
    atleast_2d, atleast_3d, repeat_interleave, diag, meshgrid, normal, nan_to_num, positive, batch_norm,
    layer_norm, embedding, addmv, inner, tensordot, einsum, chain_matmul)}
FUNCTIONS.update(_composed.FUNCTIONS)
FUNCTIONS.update(_further.FUNCTIONS)

METHODS = {function.__name__: function for function in (
    isposinf, isneginf, std, var, norm, dist, nonzero, trace, repeat_interleave, diag, nan_to_num, positive,
    addmv, inner)}
METHODS.update(_composed.METHODS)
METHODS.update(_further.METHODS)
METHODS.update(_legacy_types.METHODS)
METHODS.update({
    "where": _where_method, "polygamma": _polygamma, "nan_to_num_": _nan_to_num_, "is_set_to": _is_set_to,
    "random_": _random_, "new_tensor": _new_tensor, "unsqueeze_": _in_place(_ops.unsqueeze, "unsqueeze_"),
    "squeeze_": _in_place(_ops.squeeze, "squeeze_"), "t_": _in_place(_ops.t, "t_"),
    "transpose_": _in_place(_ops.transpose, "transpose_"),
    "swapaxes_": _in_place(_ops.transpose, "swapaxes_"),
    "swapdims_": _in_place(_ops.transpose, "swapdims_"),
    "is_shared": _false, "is_conj": _false, "is_neg": _false,
    "__reversed__": _reversed,
})

# For these names rows of the op table come first: they show in profiles.
ROWS_FIRST = frozenset("""
    unsqueeze_ squeeze_ t_ transpose_ trace repeat_interleave
""".split()) | (set(_composed.FUNCTIONS) | set(_composed.METHODS)) - {"unique_consecutive", "stft", "istft"}
