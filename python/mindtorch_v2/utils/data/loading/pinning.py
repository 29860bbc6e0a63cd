# SPDX-License-Identifier: Apache-2.0
"""A batch in pinned memory: its tensors, in whatever containers they are, and what has a method for it."""

import collections.abc

import mindtorch_v2 as torch

from ..collating import is_namedtuple, rebuilt_mapping, rebuilt_sequence


def pinned(data):
    """The same with every tensor pinned."""
    if isinstance(data, torch.Tensor):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, collections.abc.Mapping):
        return rebuilt_mapping(data, {key: pinned(value) for key, value in data.items()})
    if isinstance(data, collections.abc.Sequence):
        items = [pinned(item) for item in data]
        if is_namedtuple(data):
            return type(data)(*items)
        return items if isinstance(data, tuple) else rebuilt_sequence(data, items)  # torch gives a list for a tuple
    pin = getattr(data, "pin_memory", None)
    return data if pin is None else pin()
