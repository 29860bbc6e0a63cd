# SPDX-License-Identifier: Apache-2.0
"""Cholesky factors and triangular systems of batches of small matrices, row by row, with derivatives."""

import mindtorch_v2 as torch


def cholesky(matrix):
    """The lower triangular matrix whose product with its transpose is `matrix`; NaN where there is none."""
    matrix = (matrix + matrix.mT) / 2  # so that the gradient is symmetric too
    n = matrix.shape[-1]
    rows = []
    for i in range(n):
        row = []
        for j in range(i + 1):
            rest = matrix[..., i, j]
            for k in range(j):
                rest = rest - row[k] * (rows[j][k] if j < i else row[k])
            row.append(rest.sqrt() if i == j else rest / rows[j][j])
        rows.append(row)
    zero = torch.zeros_like(matrix[..., 0, 0])
    return torch.stack([torch.stack(row + [zero] * (n - len(row)), -1) for row in rows], -2)


def solve_lower(lower, right):
    """x with lower @ x = right, for vectors in the last dimension of `right`."""
    parts = []
    for i in range(lower.shape[-1]):
        rest = right[..., i]
        for k, part in enumerate(parts):
            rest = rest - lower[..., i, k] * part
        parts.append(rest / lower[..., i, i])
    return torch.stack(parts, -1)


def inverse_lower(lower):
    """The inverse of a lower triangular matrix."""
    unit = torch.eye(lower.shape[-1], dtype=lower.dtype, device=lower.device)
    return solve_lower(lower.unsqueeze(-3), unit.expand(lower.shape)).mT
