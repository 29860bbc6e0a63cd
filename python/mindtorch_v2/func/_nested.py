# SPDX-License-Identifier: Apache-2.0
"""Tensors in tuples, lists and dicts: as a flat list and a shape, and back."""

import mindtorch_v2 as torch


def flatten(tree, strict=None):
    """(tensors, shape). Other values stay in the shape, unless `strict` names the function that must give tensors."""
    leaves = []

    def walk(part):
        if isinstance(part, torch.Tensor):
            leaves.append(part)
            return ("leaf",)
        if isinstance(part, dict):
            return ("dict", type(part), {key: walk(value) for key, value in part.items()})
        if isinstance(part, (tuple, list)):
            return ("sequence", type(part), [walk(value) for value in part])
        if strict is not None:
            raise ValueError(
                f"vmap({strict}, ...): `{strict}` must only return Tensors, got type {type(part)}. Did you mean to set "
                "out_dims= to None for output?"
            )
        return ("value", part)

    return leaves, walk(tree)


def unflatten(leaves, shape):
    """The tree of a shape, with these tensors (or trees) in the places of its tensors."""
    rest = iter(leaves)

    def build(part):
        if part[0] == "leaf":
            return next(rest)
        if part[0] == "dict":
            return part[1]((key, build(value)) for key, value in part[2].items())
        if part[0] == "sequence":
            items = [build(value) for value in part[2]]
            return part[1](*items) if hasattr(part[1], "_fields") else part[1](items)
        return part[1]

    return build(shape)


def values(shape):
    """What is not a tensor in the tree of a shape."""
    if shape[0] == "value":
        yield shape[1]
    elif shape[0] == "dict":
        for part in shape[2].values():
            yield from values(part)
    elif shape[0] == "sequence":
        for part in shape[2]:
            yield from values(part)
