# SPDX-License-Identifier: Apache-2.0
"""Functions of torch as compositions of ops: statistics of samples, grids, parts, changes of size, random numbers.

What torch shows as one op around its own parts is one op here too (`_as_op`).
"""

from .. import _composed
from .._C import ops as _ops
from .changes import (_apply_, _cauchy_, _cdouble, _cfloat, _geometric_, _log_normal_, _map_, _new_empty_strided,
                      _resize_, _resize_as_, _writes, get_device, is_conj, is_neg, is_signed, isreal)
from .grids import (adjoint, as_strided_scatter, cartesian_prod, combinations, diagflat, dsplit, empty_strided,
                    gradient, hsplit, logspace, narrow_copy, put, range, unravel_index, vander, vsplit)
from .lowrank import pca_lowrank, svd_lowrank
from .rare import (_dim_order, nonzero_static, rrelu, rrelu_, unsafe_chunk, unsafe_split,
                   unsafe_split_with_sizes)
from .samples import addbmm, addr, block_diag, corrcoef, cov, histogram, histogramdd, pdist, renorm

FUNCTIONS = {function.__name__: function for function in (
    addr, addbmm, block_diag, cov, corrcoef, histogram, histogramdd, pdist, renorm, range, logspace, vander,
    cartesian_prod, combinations, unravel_index, gradient, hsplit, vsplit, dsplit, diagflat, narrow_copy, adjoint,
    as_strided_scatter, put, empty_strided, isreal, is_signed, is_conj, is_neg, get_device,
    pca_lowrank, svd_lowrank, nonzero_static, rrelu, rrelu_, unsafe_chunk, unsafe_split,
    unsafe_split_with_sizes)}
METHODS = {name: FUNCTIONS[name] for name in """
    addr addbmm cov corrcoef histogram renorm hsplit vsplit dsplit diagflat narrow_copy adjoint as_strided_scatter put
    isreal nonzero_static unsafe_chunk unsafe_split unsafe_split_with_sizes
""".split()}
METHODS.update({f"{name}_": _writes(f"{name}_", FUNCTIONS[name]) for name in "addr addbmm renorm put".split()})
METHODS.update({
    "deg2rad_": _writes("deg2rad_", _composed.deg2rad), "rad2deg_": _writes("rad2deg_", _composed.rad2deg),
    "polygamma_": _writes("polygamma_", lambda input, n: _ops.polygamma(n, input)),
    "mvlgamma_": _writes("mvlgamma_", lambda input, p: _ops.mvlgamma(input, p)),
    "resize_": _resize_, "resize_as_": _resize_as_, "new_empty_strided": _new_empty_strided, "cauchy_": _cauchy_,
    "log_normal_": _log_normal_, "geometric_": _geometric_, "apply_": _apply_, "map_": _map_, "cfloat": _cfloat,
    "cdouble": _cdouble, "dim_order": _dim_order,
})
