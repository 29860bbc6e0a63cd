# SPDX-License-Identifier: Apache-2.0
"""nn.functional.embedding_bag, made of rows: vectors of a table, joined bag by bag."""

import mindtorch_v2 as torch

__all__ = ["embedding_bag"]


def _check_bags(input, offsets, per_sample_weights, mode):
    """(indices, offsets, weights), all of one dimension."""
    if per_sample_weights is not None and per_sample_weights.shape != input.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
            f"same shape as the input ({input.shape})"
        )
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        rows, columns = input.shape
        offsets = torch.arange(0, rows * columns, columns, dtype=input.dtype, device=input.device)
        flat = None if per_sample_weights is None else per_sample_weights.reshape(-1)
        return input.reshape(-1), offsets, flat
    if input.dim() != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if not isinstance(offsets, torch.Tensor):
        raise ValueError(f"offsets has to be a 1D Tensor but got {offsets}")
    if offsets.dim() != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    return input, offsets, per_sample_weights


def _check_offsets(offsets, count):
    if offsets.numel() == 0 or offsets.device.type != "cpu":  # an accelerator is not waited for
        return
    first, last = int(offsets[0]), int(offsets[-1])
    if first != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
            f"However, got {first}"
        )
    if last > count:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {count} but got offsets[-1] of {last}"
        )


def embedding_bag(
    input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean", sparse=False,
    per_sample_weights=None, include_last_offset=False, padding_idx=None,
):  # fmt: skip
    """The sum, mean or largest elements of the vectors of each bag; a bag begins at its offset."""
    for name, value in (("max_norm", max_norm), ("scale_grad_by_freq", scale_grad_by_freq), ("sparse", sparse)):
        if value:
            raise NotImplementedError(f"embedding_bag({name}={value!r}) is not supported")
    input, offsets, scale = _check_bags(input, offsets, per_sample_weights, mode)
    if scale is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}'). Please open a feature request on GitHub."
        )
    if scale is not None and scale.dtype != weight.dtype:
        raise RuntimeError(
            f"embedding_bag: expected per_sample_weights of type {weight.dtype}, but got {scale.dtype}"
        )
    rows = weight.size(0)
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, but got {padding_idx}"
        )
    _check_offsets(offsets, input.numel())
    bags = offsets.numel()
    last = -1 if include_last_offset else bags  # what follows the last offset is no bag
    begins = torch.zeros(input.numel() + 1, dtype=torch.int64, device=input.device)
    begins = begins.index_add(0, offsets.long(), torch.ones_like(offsets, dtype=torch.int64))
    bag = begins.cumsum(0)[: input.numel()] - 1
    kept = None if padding_idx is None else input != padding_idx % rows
    vectors = torch.embedding(weight, input.long())
    if mode == "max":
        return _largest(vectors, bag, bags, kept)[:last]
    if kept is not None:
        vectors = vectors.masked_fill(~kept.unsqueeze(1), 0)
    if scale is not None:
        vectors = vectors * scale.unsqueeze(1)
    total = vectors.new_zeros((bags, weight.size(1))).index_add(0, bag, vectors)
    if mode == "sum":
        return total[:last]
    ones = torch.ones_like(bag) if kept is None else kept.long()
    counts = torch.zeros(bags, dtype=torch.int64, device=bag.device).index_add(0, bag, ones).clamp(min=1)
    return (total / counts.unsqueeze(1).to(total.dtype))[:last]


def _largest(vectors, bag, bags, kept):
    place = bag.unsqueeze(1).expand(vectors.shape)
    if kept is not None:
        vectors = vectors.masked_fill(~kept.unsqueeze(1), -torch.inf)
    ends = vectors.new_full((bags, vectors.size(1)), -torch.inf)
    found = ends.scatter_reduce(0, place, vectors, "amax", include_self=False)
    ones = torch.ones_like(bag) if kept is None else kept.long()
    counts = torch.zeros(bags, dtype=torch.int64, device=bag.device).index_add(0, bag, ones)
    return found.masked_fill((counts == 0).unsqueeze(1), 0)
