# SPDX-License-Identifier: Apache-2.0
"""A batch in pinned memory: its tensors, in whatever containers they are, and what has a method for it."""

import collections.abc
import copy

import mindtorch_v2 as torch


def _mapping(data):
    items = {key: pinned(value) for key, value in data.items()}
    if isinstance(data, collections.abc.MutableMapping):
        try:
            made = copy.copy(data)
            made.update(items)
            return made
        except TypeError:
            return items
    try:
        return type(data)(items)
    except TypeError:  # a class that takes no dict
        return items


def _sequence(data):
    items = [pinned(item) for item in data]
    if isinstance(data, tuple):  # torch gives a list, too
        return type(data)(*items) if hasattr(data, "_fields") else items
    try:
        return type(data)(items)
    except TypeError:  # a class that takes no list, such as range
        return items


def pinned(data):
    """The same with every tensor pinned."""
    if isinstance(data, torch.Tensor):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, collections.abc.Mapping):
        return _mapping(data)
    if isinstance(data, collections.abc.Sequence):
        return _sequence(data)
    pin = getattr(data, "pin_memory", None)
    return data if pin is None else pin()
