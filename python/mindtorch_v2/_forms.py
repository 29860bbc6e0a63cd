# SPDX-License-Identifier: Apache-2.0
"""Forms of calls that rows of the op table do not take by themselves.

The binding asks here when the arguments of a call fit none of an op's rows, so that calls that fit cost nothing more.
A form gets the arguments as they were given, self first, and returns NotImplemented where they are not its own: the
binding then says what is wrong with them.
"""

from . import _C
from ._C import Tensor, ops as _ops

FORMS = {}  # by the op's name


def _form(*names):
    def keep(function):
        for name in names:
            FORMS[name] = function(name) if function.__code__.co_varnames[:1] == ("name",) else function
        return function
    return keep


def into(result, out):
    """Writes results into the tensors that were given for them; those."""
    if isinstance(out, Tensor):
        return _ops.clone(result, out=out)
    if len(out) != len(result) or not all(isinstance(each, Tensor) for each in out):
        raise TypeError(f"out= must be {len(result)} tensors")
    return type(result)(tuple(_ops.clone(each, out=to) for each, to in zip(result, out)))


@_form("max", "min", "topk", "median", "nanmedian", "mode", "kthvalue", "cummax", "cummin", "aminmax",
       "linalg_cholesky_ex", "linalg_eigh", "linalg_inv_ex", "linalg_lu", "linalg_lu_factor", "linalg_lu_factor_ex",
       "linalg_qr", "linalg_slogdet", "linalg_solve_ex", "linalg_svd", "geqrf", "lu_unpack", "qr", "slogdet", "svd")
def _several_out(name):
    """out=(values, indices)."""
    def call(*args, out=None, **kwargs):
        if not isinstance(out, (tuple, list)):
            return NotImplemented
        return into(getattr(_ops, name)(*args, **kwargs), out)
    return call


@_form("sort", "argsort")
def _stable_sort(name):
    """stable=: sorting is stable here in any case."""
    def call(input, *args, stable=None, out=None, **kwargs):
        if args and isinstance(args[0], bool):  # sort(stable, dim, descending), torch's second row
            return NotImplemented
        if stable is None and not isinstance(out, (tuple, list)):
            return NotImplemented
        result = getattr(_ops, name)(input, *args, **kwargs)
        return result if out is None else into(result, out)
    return call


@_form("movedim", "moveaxis")
def _movedim(input, source, destination):
    """Several dimensions at once."""
    if not isinstance(source, (tuple, list)) or not isinstance(destination, (tuple, list)):
        return NotImplemented
    count = input.dim()
    if len(source) != len(destination):
        raise RuntimeError(f"movedim: Invalid source or destination dims: source ({list(source)} dims) should contain "
                           f"the same number of dims as destination ({list(destination)} dims)")
    pairs = []
    for dims in (source, destination):
        for dim in dims:
            if not -count <= dim < count:
                raise IndexError(f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got "
                                 f"{dim})")
        dims = [dim % count for dim in dims]
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in ({dims})")
        pairs.append(dims)
    goes = dict(zip(pairs[1], pairs[0]))
    rest = iter(dim for dim in range(count) if dim not in pairs[0])
    return _ops.permute(input, [goes[place] if place in goes else next(rest) for place in range(count)])


@_form("gather")
def _gather(input, dim, index, *, sparse_grad=False, out=None):
    """sparse_grad=False."""
    if sparse_grad:
        raise NotImplementedError("gather(): sparse_grad=True: there are no sparse tensors")
    return _ops.gather(input, dim, index, out=out)


@_form("scatter", "scatter_")
def _scatter(name):
    """A number by the name of value=; reduce="add" or "multiply"."""
    def call(input, dim, index, src=None, *, value=None, reduce=None):
        if src is None and value is not None and reduce is None:
            return getattr(_ops, name)(input, dim, index, value)
        src = value if src is None else src
        if reduce is None or src is None:
            return NotImplemented
        if reduce not in ("add", "multiply"):
            raise RuntimeError("reduce argument must be either add or multiply.")
        if isinstance(src, Tensor):
            from ._functions import _warn_once
            _warn_once("The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a "
                       "future PyTorch release. Use torch.scatter_reduce instead for more reduction options.")
        result = input if name == "scatter_" else _ops.clone(input)
        # One element of the index along dim at a time: of those, no two go to the same place.
        for place in range(index.size(dim) if index.dim() else 1):
            part = _ops.narrow(index, dim, place, 1) if index.dim() else index
            more = src
            if isinstance(src, Tensor):
                more = src[tuple(slice(size) for size in index.shape)]
                more = _ops.narrow(more, dim, place, 1) if index.dim() else more
            before = _ops.gather(result, dim, part)
            result.scatter_(dim, part, before + more if reduce == "add" else before * more)
        return result
    return call


@_form("bernoulli_")
def _bernoulli_(input, p, *, generator=None):
    """A probability for each element."""
    if not isinstance(p, Tensor):
        return NotImplemented
    return input.copy_(_ops.bernoulli(_ops.expand_as(p, input).clone(), generator=generator))


@_form("bernoulli")
def _bernoulli(input, p, *, generator=None):
    """One probability for all: the input gives the shape and the type alone."""
    if not isinstance(p, (int, float)) or isinstance(p, bool):
        return NotImplemented
    return _ops.bernoulli_(_ops.empty_like(input), float(p), generator=generator)


@_form("add", "sub", "mul", "div", "multiply", "subtract", "divide", "true_divide", "remainder",
       "floor_divide", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift")
def _number_first(name):
    """torch.div(1.0, x); and add(x, 2, y), which stands for x + 2 * y."""
    def call(input, other, *rest, **kwargs):
        if rest and name in ("add", "sub") and len(rest) == 1 and isinstance(rest[0], Tensor) \
                and isinstance(other, (int, float)):
            return getattr(_ops, name)(input, rest[0], alpha=other, **kwargs)
        if rest or isinstance(input, Tensor) or not isinstance(input, (int, float)) or not isinstance(other, Tensor):
            return NotImplemented
        kind = (_C.bool if isinstance(input, bool) else _C.int64 if isinstance(input, int) else _C.get_default_dtype())
        if other.dtype.is_floating_point or (kind is _C.int64 and other.dtype is not _C.bool):
            kind = other.dtype  # as a number, it does not decide the type
        return getattr(_ops, name)(_C.tensor(input, dtype=kind, device=other.device), other, **kwargs)
    return call


@_form("add_", "sub_")
def _scaled_in_place(name):
    """x.add_(2, y), which stands for x += 2 * y."""
    def call(input, alpha, *rest):
        if len(rest) != 1 or not isinstance(rest[0], Tensor) or not isinstance(alpha, (int, float)):
            return NotImplemented
        return getattr(_ops, name)(input, rest[0], alpha=alpha)
    return call


@_form("addcmul", "addcmul_", "addcdiv", "addcdiv_")
def _scaled_product(name):
    """x.addcmul_(2, y, z), which stands for x += 2 * y * z."""
    def call(input, value, *tensors, out=None):
        if len(tensors) != 2 or not isinstance(value, (int, float)):
            return NotImplemented
        more = {} if out is None else {"out": out}
        return getattr(_ops, name)(input, *tensors, value=value, **more)
    return call


@_form("full", "full_like", "new_full")
def _full(name):
    """A complex number."""
    def call(*args, fill_value=None, dtype=None, device=None, requires_grad=False, out=None, size=None, **rest):
        args = list(args)
        first = args.pop(0) if args else rest.pop("input", None) if name == "full_like" else size
        if name == "new_full":
            size = args.pop(0) if args else size
        value = args.pop(0) if args else fill_value
        if isinstance(value, Tensor) and value.dim() == 0 and value.is_complex():
            value = value.item()
        layout = rest.pop("layout", None)
        rest = {key: each for key, each in rest.items() if key != "pin_memory" or each}
        if args or rest or type(value) is not complex or layout not in (None, _C.strided):
            return NotImplemented
        if name == "full":
            kind = _C.complex128 if _C.get_default_dtype() is _C.float64 else _C.complex64
            made = {"dtype": dtype or kind, **({} if device is None else {"device": device})}
            empty = (lambda: _ops.empty(first, **made)) if out is None else (lambda: out.resize_(first))
        else:
            made = {"dtype": dtype or first.dtype, "device": device or first.device}
            empty = ((lambda: _ops.empty_like(first, **made)) if name == "full_like"
                     else (lambda: _ops.empty(size, **made)))
        if not made["dtype"].is_complex and value.imag == 0:
            value = value.real
        given = (first, value) if name != "new_full" else (first, size, value)
        result = _C._call_as_op("aten::" + name, given, lambda: empty().fill_(value))
        return result.requires_grad_() if requires_grad else result
    return call


_C._set_forms(FORMS)
