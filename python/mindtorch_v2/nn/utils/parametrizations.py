# SPDX-License-Identifier: Apache-2.0
"""torch.nn.utils.parametrizations: weights by direction and length, or with a spectral norm of 1."""

import mindtorch_v2 as torch

from .. import functional as F
from ..modules.module import Module
from . import parametrize
from ..._C import _call_as_op, ops

__all__ = ["spectral_norm", "weight_norm"]


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
