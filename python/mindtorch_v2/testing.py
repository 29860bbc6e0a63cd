# SPDX-License-Identifier: Apache-2.0
"""torch.testing.assert_close: tensors, numbers and containers of them, compared with a tolerance."""

from collections.abc import Mapping, Sequence

from . import _C
from ._C import Tensor

_TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5),
               "float64": (1e-7, 1e-7)}


def _tolerances(actual, expected, rtol, atol):
    """Those given, or the looser defaults of both types."""
    if (rtol is None) != (atol is None):
        raise ValueError(f"rtol and atol must both be specified or both be unspecified, but got {rtol=} "
                         f"and {atol=}")
    if rtol is not None:
        return rtol, atol
    found = [_TOLERANCES.get(str(x.dtype).removeprefix("torch."), (0.0, 0.0)) for x in (actual, expected)]
    return max(pair[0] for pair in found), max(pair[1] for pair in found)


def _tensors(actual, expected, where, rtol, atol, equal_nan, check_device, check_dtype, check_stride):
    if actual.shape != expected.shape:
        raise AssertionError(f"The values for attribute 'shape' do not match: {actual.shape} != "
                             f"{expected.shape}.{where}")
    for check, name in ((check_device, "device"), (check_dtype, "dtype"), (check_stride, "stride()")):
        pair = [x.stride() if name == "stride()" else getattr(x, name) for x in (actual, expected)]
        if check and pair[0] != pair[1]:
            raise AssertionError(f"The values for attribute '{name}' do not match: {pair[0]} != "
                                 f"{pair[1]}.{where}")
    if actual.is_meta or expected.is_meta:
        return  # no elements to compare, as in torch
    rtol, atol = _tolerances(actual, expected, rtol, atol)
    actual, expected = actual.detach().cpu().to(_C.float64), expected.detach().cpu().to(_C.float64)
    close = _C.ops.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if bool(close.all()):
        return
    wrong = close.numel() - int(close.sum())
    difference = (actual - expected).abs()
    greatest = difference.max().item()
    label = "Scalars" if actual.dim() == 0 else "Tensor-likes"
    raise AssertionError(
        f"{label} are not {'equal' if rtol == atol == 0 else 'close'}!\n\n"
        f"Mismatched elements: {wrong} / {close.numel()} ({100 * wrong / close.numel():.1f}%)\n"
        f"Greatest absolute difference: {greatest} (up to {atol} allowed, rtol {rtol}){where}")


def assert_close(actual, expected, *, allow_subclasses=True, rtol=None, atol=None, equal_nan=False,
                 check_device=True, check_dtype=True, check_layout=True, check_stride=False, msg=None,
                 _where=""):
    """Raises AssertionError unless both are equal within the tolerances (by default those of the type)."""
    options = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan, "check_device": check_device,
               "check_dtype": check_dtype, "check_stride": check_stride}
    try:
        if isinstance(actual, Mapping) and isinstance(expected, Mapping):
            if actual.keys() != expected.keys():
                raise AssertionError(f"The keys of the mappings do not match: {sorted(actual, key=str)} != "
                                     f"{sorted(expected, key=str)}{_where}")
            for key in actual:
                assert_close(actual[key], expected[key], **options,
                             _where=f"\nThe failure occurred for item [{key!r}]")
        elif isinstance(actual, Sequence) and isinstance(expected, Sequence) and not isinstance(actual, str):
            if len(actual) != len(expected):
                raise AssertionError(f"The length of the sequences mismatch: {len(actual)} != "
                                     f"{len(expected)}{_where}")
            for i, (one, other) in enumerate(zip(actual, expected)):
                assert_close(one, other, **options, _where=f"\nThe failure occurred for item [{i}]")
        else:
            given = [x if isinstance(x, Tensor) else _C.as_tensor(x) for x in (actual, expected)]
            if not allow_subclasses and type(given[0]) is not type(given[1]):
                raise TypeError(f"The types do not match: {type(actual)} != {type(expected)}")
            _tensors(*given, _where, **options)
    except AssertionError as error:
        if msg is None:
            raise
        raise AssertionError(msg(str(error)) if callable(msg) else msg) from None
