# SPDX-License-Identifier: Apache-2.0
"""What differs from torch in the components of packages, and why. packages_compare.py fails for anything else."""

CANNOT_RUN = {  # component: what its error has, as long as it has it
    "neuraloperator: FNO": "\"normal_\" not implemented for 'ComplexFloat'",
}

_VIEWS = "x[...] and x[:] are an alias in ours and a slice in torch"
_COMPARE = "torch's Python compares layouts before it replaces a parameter's data"
_GROUPS = "heads are repeated before attention in ours, inside of it in torch"
_STORAGE = "storages of ours are read by copies, those of torch by set_() and elements"
_PLACE = "in-place forms without a row are the op and a copy (docs/differences.md)"
_PYTHON = "Python code of ours calls it; torch's does so in C++, or the other way round"
_CHECKS = "torch's distributions check their values by another op than ours"
_PAD = "padding other than constant is made of other ops (docs/differences.md)"
PROFILES = {  # op: why its count may differ
    "aten::slice": _VIEWS, "aten::alias": _VIEWS,
    "aten::_has_compatible_shallow_copy_type": _COMPARE,
    "aten::unsqueeze": _GROUPS, "aten::reshape": _GROUPS, "aten::expand": _GROUPS,
    "aten::empty": _STORAGE, "aten::select": _STORAGE, "aten::clone": _STORAGE, "aten::lift_fresh": _STORAGE,
    "aten::set_": _STORAGE, "aten::item": _STORAGE,
    "aten::unsqueeze_": _PLACE, "aten::triu": _PLACE, "aten::triu_": _PLACE, "aten::copy_": _PLACE,
    "aten::_is_all_true": _CHECKS, "aten::all": _CHECKS,
    "aten::contiguous": _PYTHON, "aten::view_as": _PYTHON, "aten::promote_types": _PYTHON,
    "aten::rsub": _PAD, "aten::arange": _PAD, "aten::index_select": _PAD, "aten::abs": _PAD, "aten::lt": _PAD,
    "aten::pad": _PAD, "aten::where": _PAD, "aten::clamp": _PAD,
}
