# SPDX-License-Identifier: Apache-2.0
"""How samples become a batch.

Tensors, arrays and numbers become tensors with one more dimension; dicts, tuples and lists keep
their form and are batched member by member; texts stay lists.
"""

import collections.abc
import copy

import mindtorch_v2 as torch

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]

_REFUSED = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def _is_numpy(value):
    """Without importing NumPy."""
    return type(value).__module__ == "numpy" and type(value).__name__ not in ("str_", "bytes_")


def _is_numpy_text(value):
    return value.dtype.kind in "SUOV"


def is_namedtuple(value):
    return isinstance(value, tuple) and hasattr(value, "_fields")


def rebuilt_mapping(like, pairs):
    """A mapping of the same class, where that is possible."""
    if isinstance(like, collections.abc.MutableMapping):
        try:
            clone = copy.copy(like)
            clone.update(pairs)
            return clone
        except TypeError:
            return pairs
    try:
        return type(like)(pairs)
    except TypeError:
        return pairs


def rebuilt_sequence(like, items):
    """The same for a sequence."""
    try:
        return type(like)(items)
    except TypeError:  # one whose class takes no list, such as range
        return items


def default_convert(data):
    """Arrays become tensors; everything else stays, containers member by member."""
    if isinstance(data, torch.Tensor):
        return data
    if _is_numpy(data):
        if _is_numpy_text(data):
            return data
        return torch.as_tensor(data)
    if isinstance(data, collections.abc.Mapping):
        return rebuilt_mapping(data, {key: default_convert(data[key]) for key in data})
    if is_namedtuple(data):
        return type(data)(*(default_convert(d) for d in data))
    if isinstance(data, tuple):
        return [default_convert(d) for d in data]
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, (str, bytes)):
        return rebuilt_sequence(data, [default_convert(d) for d in data])
    return data


def _collate_text(batch, *, collate_fn_map=None):
    return batch


def _collate_tensors(batch, *, collate_fn_map=None):
    return torch.stack(batch, 0)


def _collate_floats(batch, *, collate_fn_map=None):
    return torch.tensor(batch, dtype=torch.float64)


def _collate_ints(batch, *, collate_fn_map=None):
    return torch.tensor(batch)


default_collate_fn_map = {
    float: _collate_floats,
    int: _collate_ints,
    str: _collate_text,
    bytes: _collate_text,
}


def _collate_numpy(batch):
    first = batch[0]
    if _is_numpy_text(first):
        raise TypeError(_REFUSED.format(first.dtype))
    if hasattr(first, "__array_interface__") and type(first).__name__ == "ndarray":
        return torch.stack([torch.as_tensor(each) for each in batch], 0)
    import numpy

    return torch.as_tensor(numpy.array(batch))


def _function_for(kind, table):
    function = table.get(kind)
    if function is None:
        for known, candidate in table.items():
            if issubclass(kind, known) if isinstance(known, type) else issubclass(kind, tuple(known)):
                return candidate
    return function


def collate(batch, *, collate_fn_map=None):
    """A batch of samples; `collate_fn_map` says what becomes of the types it names."""
    first = batch[0]
    kind = type(first)
    if collate_fn_map is not None:
        function = _function_for(kind, collate_fn_map)
        if function is not None:
            return function(batch, collate_fn_map=collate_fn_map)
    if collate_fn_map is default_collate_fn_map:
        if isinstance(first, torch.Tensor):
            return _collate_tensors(batch)
        if _is_numpy(first):
            return _collate_numpy(batch)

    def members(values):
        return collate(values, collate_fn_map=collate_fn_map)

    if isinstance(first, collections.abc.Mapping):
        return rebuilt_mapping(first, {key: members([sample[key] for sample in batch]) for key in first})
    if is_namedtuple(first):
        return kind(*(members(values) for values in zip(*batch)))
    if isinstance(first, collections.abc.Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [members(values) for values in zip(*batch)]
        return columns if isinstance(first, tuple) else rebuilt_sequence(first, columns)
    raise TypeError(_REFUSED.format(kind))


def default_collate(batch):
    """A batch of samples, with the rules of this module."""
    return collate(batch, collate_fn_map=default_collate_fn_map)
