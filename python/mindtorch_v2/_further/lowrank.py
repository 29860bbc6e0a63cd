# SPDX-License-Identifier: Apache-2.0
"""Singular values and vectors of large matrices, as far as the first few: by random projections (Halko, Martinsson
and Tropp, "Finding structure with randomness", 2009, algorithms 4.4 and 5.1).
"""

from .. import _C
from .._C import ops as _ops


def _adjoint(A):
    return _ops.transpose(A, -2, -1)


def _orthonormal(A):
    return _ops.linalg_qr(A)[0]


def _range(A, q, niter):
    """Orthonormal columns that A's range is near to: that of q random vectors after steps of the power method."""
    dtype = A.dtype if A.is_floating_point() else _C.get_default_dtype()
    found = _orthonormal(_ops.matmul(A, _ops.randn((A.shape[-1], q), dtype=dtype, device=A.device)))
    for _ in range(niter):
        found = _orthonormal(_ops.matmul(_adjoint(A), found))
        found = _orthonormal(_ops.matmul(A, found))
    return found


def svd_lowrank(A, q=6, niter=2, M=None):
    """(U, S, V) with A - M near to U diag(S) V^T, of at most q singular values."""
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    m, n = A.shape[-2:]
    if M is not None:
        A = A - M
    if m < n:
        V, S, U = _svd(_adjoint(A), q, niter)
        return U, S, V
    return _svd(A, q, niter)


def _svd(A, q, niter):
    Q = _range(A, q, niter)
    U, S, Vh = _ops.linalg_svd(_ops.matmul(_adjoint(Q), A), False)
    return _ops.matmul(Q, U), S, _adjoint(Vh)


def pca_lowrank(A, q=None, center=True, niter=2):
    """svd_lowrank() of rows from which their mean is subtracted: principal components in V's columns."""
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - _ops.mean(A, (-2,), True) if center else A, q, niter)
