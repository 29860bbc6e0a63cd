# SPDX-License-Identifier: Apache-2.0
"""torch.linalg: factorisations, equations, norms. The rows of the op table, under the names that torch has here."""

from . import _C, _overriding
from ._C import Tensor, ops as _ops
from ._C import _LinAlgError as LinAlgError

_ROWS = """
    cholesky cholesky_ex cross cond det diagonal eig eigh eigvals eigvalsh
    householder_product inv inv_ex lstsq lu lu_factor
    lu_factor_ex lu_solve matmul matrix_exp matrix_norm matrix_power multi_dot qr slogdet solve solve_ex svd svdvals
    tensorinv tensorsolve vander vecdot
""".split()

globals().update({name: getattr(_ops, f"linalg_{name}") for name in _ROWS})

__all__ = sorted(_ROWS + """
    LinAlgError matrix_rank norm pinv solve_triangular vector_norm
""".split())


def _dims(dim):
    return [dim] if isinstance(dim, int) else dim


def _given(out):
    return {} if out is None else {"out": out}


def norm(A, ord=None, dim=None, keepdim=False, *, out=None, dtype=None):
    """The norm of a vector or a matrix: which one, ord says by its name or number."""
    return _ops.linalg_norm(A, ord, _dims(dim), keepdim, dtype=dtype, **_given(out))


def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None, out=None):
    """The norm over the given dimensions, or over all elements."""
    if dtype is not None and x.dtype is not dtype:
        if not dtype.is_floating_point or _C.promote_types(x.dtype, dtype) is not dtype:
            raise RuntimeError(f"linalg.vector_norm: the dtype of the input ({x.dtype}) should be convertible without "
                               f"narrowing to the specified dtype ({dtype})")
        x = x.to(dtype)
    return _ops.linalg_vector_norm(x, ord, _dims(dim), keepdim, **_given(out))


def _tolerances(input, atol, rtol):
    """Both as tensors where one of them is one."""
    if isinstance(atol, Tensor) or isinstance(rtol, Tensor):
        return [value if value is None or isinstance(value, Tensor)
                else _C.tensor(value, dtype=input.dtype, device=input.device) for value in (atol, rtol)]
    return atol, rtol


def matrix_rank(A, tol=None, hermitian=False, *, atol=None, rtol=None, out=None):
    """How many singular values are above max(atol, rtol * the largest one)."""
    if tol is not None:
        atol, rtol = tol, 0.0
    atol, rtol = _tolerances(A, atol, rtol)
    return _ops.linalg_matrix_rank(A, atol=atol, rtol=rtol, hermitian=hermitian, **_given(out))


def pinv(A, rcond=None, hermitian=False, *, atol=None, rtol=None, out=None):
    """The pseudoinverse; singular values up to max(atol, rtol * the largest one) count as 0."""
    if rcond is not None:
        rtol = rcond
    atol, rtol = _tolerances(A, atol, rtol)
    return _ops.linalg_pinv(A, atol=atol, rtol=rtol, hermitian=hermitian, **_given(out))


def solve_triangular(A, B, *, upper, left=True, unitriangular=False, out=None):
    """X of AX = B, or of XA = B without left; A is a triangle, its other half is not read."""
    return _ops.linalg_solve_triangular(A, B, upper=upper, left=left, unitriangular=unitriangular, **_given(out))


_overriding.offer_all(globals())
