# SPDX-License-Identifier: Apache-2.0
"""torch.nn.utils.parametrizations: weights by direction and length, with a spectral norm of 1, or orthogonal."""

import enum

import mindtorch_v2 as torch

from .. import functional as F
from ..modules.module import Module
from . import parametrize
from ..._C import _call_as_op, ops

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def norm_except_dim(v, dim):
    """Norms over all dimensions but one, kept for broadcasting; -1: over all."""
    if dim == -1:
        return v.norm()
    others = [d for d in range(v.dim()) if d != dim % v.dim()]
    return ops.linalg_vector_norm(v, 2, others, True) if others else v.abs()


def scaled_direction(v, g, dim):
    """v with norms g; one op of a profile, as torch's is."""
    return _call_as_op("aten::_weight_norm", (v, g, dim), lambda: v * (g / norm_except_dim(v, dim)))


class _WeightNorm(Module):
    def __init__(self, dim=0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        return scaled_direction(weight_v, weight_g, self.dim)

    def right_inverse(self, weight):
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module, name="weight", dim=0):
    """The weight as length times direction."""
    return parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


def as_matrix(weight, dim):
    """[size of dim, the rest]"""
    if dim != 0:
        weight = weight.permute(dim, *(d for d in range(weight.dim()) if d != dim))
    return weight.reshape(weight.size(0), -1)


def power_iterations(matrix, u, v, count, eps):
    """Improves the first singular vectors, in place."""
    for _ in range(count):
        u.copy_(F.normalize(torch.mv(matrix, v), dim=0, eps=eps))
        v.copy_(F.normalize(torch.mv(matrix.t(), u), dim=0, eps=eps))


class _SpectralNorm(Module):
    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + weight.dim()
        self.eps = eps
        if weight.dim() > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight.detach(), self.dim)
            rows, columns = matrix.size()
            u = matrix.new_empty(rows).normal_(0, 1)
            v = matrix.new_empty(columns).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            with torch.no_grad():
                power_iterations(matrix, self._u, self._v, 15, eps)

    def forward(self, weight):
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            with torch.no_grad():
                power_iterations(matrix.detach(), self._u, self._v, self.n_power_iterations, self.eps)
        u, v = self._u.clone(), self._v.clone()  # a second forward may change them
        return weight / torch.dot(u, torch.mv(matrix, v))

    def right_inverse(self, value):
        return value


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """The weight divided by its largest singular value."""
    weight = getattr(module, name)
    if dim is None:
        kind = type(module).__name__
        dim = 1 if kind.startswith("ConvTranspose") else 0
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return parametrize.register_parametrization(module, name, made)


class _OrthMaps(enum.Enum):
    matrix_exp = enum.auto()
    cayley = enum.auto()
    householder = enum.auto()


def _is_orthogonal(matrix):
    """Whether the columns are orthogonal to each other and of length 1, within the type's precision."""
    unit = torch.eye(matrix.size(-1), dtype=matrix.dtype, device=matrix.device)
    allowed = 10 * matrix.size(-2) * torch.finfo(matrix.dtype).eps
    return bool(((matrix.mT @ matrix - unit).abs() <= allowed).all())


def _all_columns(matrix):
    """The matrix with further columns, so that it is square: the rest of an orthogonal basis."""
    more = torch.linalg.qr(matrix, mode="complete")[0][..., matrix.size(-1):]
    return torch.cat((matrix, more), -1)


class _Orthogonal(Module):
    """The first columns of an orthogonal matrix Q(X), of base @ Q(X) with trivialization; transposed where the weight
    is wide. `base` is the weight as it was set last, and X then is -1 on the diagonal, which gives the unit matrix."""

    def __init__(self, weight, orthogonal_map, *, use_trivialization=True):
        super().__init__()
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X):
        wide = X.size(-2) < X.size(-1)
        X = X.mT if wide else X
        rows, columns = X.shape[-2:]
        if self.orthogonal_map is _OrthMaps.householder:
            # Reflections along the columns below the diagonal; the diagonal has signs.
            below = X.tril(-1)
            Q = torch.linalg.householder_product(below, 2.0 / (1.0 + (below * below).sum(-2)))
            Q = Q * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            lower = X.tril()
            if rows != columns:
                lower = torch.cat((lower, X.new_zeros((*X.shape[:-1], rows - columns))), -1)
            skew = lower - lower.mT
            if self.orthogonal_map is _OrthMaps.matrix_exp:
                Q = torch.linalg.matrix_exp(skew)
            else:
                unit = torch.eye(rows, dtype=X.dtype, device=X.device)
                Q = torch.linalg.solve(torch.add(unit, skew, alpha=-0.5), torch.add(unit, skew, alpha=0.5))
            Q = Q[..., :columns] if rows != columns else Q
        if "base" in self._buffers:
            Q = self.base @ Q
        return Q.mT if wide else Q

    def right_inverse(self, Q):
        if Q.shape != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. "
                             f"Got a tensor of shape {Q.shape}.")
        wide = Q.size(-2) < Q.size(-1)
        Q = Q.mT if wide else Q
        if "base" not in self._buffers:
            if self.orthogonal_map is not _OrthMaps.householder:
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                    "use_trivialization=False."
                )
            X, tau = torch.geqrf(Q)
            diagonal = X.diagonal(dim1=-2, dim2=-1)
            signs = diagonal.sign()
            diagonal.copy_(torch.where(tau == 0, -signs, signs))  # forward() reflects where LAPACK did not
            return X.mT if wide else X
        if _is_orthogonal(Q):
            Q = Q.clone()
        else:
            Q, R = torch.linalg.qr(Q)
            Q = Q * R.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)
        self.base = Q if Q.size(-2) == Q.size(-1) else _all_columns(Q)
        unit = torch.zeros_like(Q)
        unit.diagonal(dim1=-2, dim2=-1).fill_(-1)
        return unit.mT if wide else unit


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """The weight as a matrix whose columns (rows, if it is wide) are orthogonal to each other and of length 1."""
    weight = getattr(module, name, None)
    if not isinstance(weight, torch.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.dim() < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.dim()} dimensions.")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.size(-2) == weight.size(-1) else "householder"
    if orthogonal_map not in _OrthMaps.__members__:
        raise ValueError('orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
                         f"Got: {orthogonal_map}")
    made = _Orthogonal(weight, _OrthMaps[orthogonal_map], use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)
