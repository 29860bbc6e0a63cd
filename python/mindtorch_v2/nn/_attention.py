# SPDX-License-Identifier: Apache-2.0
"""multi_head_attention_forward, as a line of stages over one plan.

    plan      the call's sizes; made, the arguments fit together and nothing was computed yet
    project   query, key, value (length, batch, width) by their weights
    extend    keys that every query may see: a learnt one (bias_k, bias_v), one of zeros
    split     (length, batch, width) to (batch * heads, length, part)
    attend    scores, masks, softmax, values: by single ops if the weights are asked for, else by one
    join      (queries * batch, width) through the output projection

The order of the ops is what a profile of torch shows.
"""

import math
import warnings

import mindtorch_v2 as torch

from .._C import ops


def additive_masks(dtype, padding, attention, names=("key_padding_mask", "attn_mask")):
    """Both masks as numbers to add to the scores: where a bool mask says True it is -inf."""
    if padding is not None and attention is not None and padding.dtype != attention.dtype:
        warnings.warn(
            f"Support for mismatched {names[0]} and {names[1]} is deprecated. Use same type for both "
            "instead.",
            stacklevel=3,
        )
    return tuple(_additive(mask, name, dtype) for mask, name in zip((padding, attention), names))


def _additive(mask, name, dtype):
    if mask is None or mask.is_floating_point():
        return mask
    if mask.dtype != torch.bool:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(mask, -math.inf)


class _Masks:
    """What is added to the scores: by key (batch, keys), and by query and key."""

    def __init__(self, padding, attention):
        self.padding = padding
        flat = attention is not None and attention.dim() == 2  # the same for every head
        self.attention = attention.unsqueeze(0) if flat else attention

    def widen(self):
        """One more key at the end, which no mask hides."""
        from . import functional

        if self.attention is not None:
            self.attention = functional.pad(self.attention, (0, 1))
        if self.padding is not None:
            self.padding = functional.pad(self.padding, (0, 1))

    def total(self, plan):
        """One mask that spreads to (batch * heads, queries, keys), or None."""
        if self.padding is None:
            return self.attention
        rows = self.padding.view(plan.batch, 1, 1, plan.keys).expand(-1, plan.heads, -1, -1)
        rows = rows.reshape(plan.batch * plan.heads, 1, plan.keys)
        return rows if self.attention is None else self.attention + rows


class _Plan:
    """The sizes of a call on batches. width = heads * part; `keys` counts those added to `given_keys`."""

    __slots__ = ("added", "batch", "given_keys", "heads", "keys", "part", "queries", "width")

    def __init__(self, query, key, heads):
        self.queries, self.batch, self.width = query.shape
        self.given_keys = self.keys = key.shape[0]
        self.heads, self.part, self.added = heads, self.width // heads, 0

    def check_width(self, expected):
        if self.width != expected:
            raise AssertionError(f"was expecting embedding dimension of {expected}, but got {self.width}")
        if self.part * self.heads != self.width:
            raise AssertionError(f"embed_dim {self.width} not divisible by num_heads {self.heads}")

    def check_packed(self, key, value, weight):
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        if weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")

    def check_separate(self, sources, weights):
        _, key, value = sources
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
        for name, source, weight in zip(("query", "key", "value"), sources, weights):
            if weight is None:
                raise AssertionError(f"use_separate_proj_weight is True but {name[0]}_proj_weight is None")
            expected = (self.width, source.size(-1))
            if tuple(weight.shape) != expected:
                raise AssertionError(f"expecting {name} weights shape of {expected}, but got {weight.shape}")

    def count_keys(self, learnt, static, zero):
        """Checks what replaces keys or is added to them; sets `keys`."""
        for (name, here), other in zip(learnt.items(), ("bias_v", "bias_k")):
            if here is not None and learnt[other] is None:
                raise AssertionError(f"{name} is set but {other} is None")
        is_learnt = learnt["bias_k"] is not None
        for name, tensor in static.items():
            if tensor is None:
                continue
            if is_learnt:
                raise AssertionError(f"bias cannot be added to static {name}.")
            for dim, expected in ((0, self.batch * self.heads), (2, self.part)):
                if tensor.size(dim) != expected:
                    raise AssertionError(
                        f"expecting static_{name[0]}.size({dim}) of {expected}, but got {tensor.size(dim)}"
                    )
        self.added = is_learnt + bool(zero)
        self.keys = self.added + (self.given_keys if static["key"] is None else static["key"].size(1))

    def check_masks(self, padding, attention):
        if attention is not None:
            expected = (self.queries, self.given_keys)
            if attention.dim() == 3:
                expected = (self.batch * self.heads, *expected)
            if tuple(attention.shape) != expected:
                raise RuntimeError(
                    f"The shape of the {attention.dim()}D attn_mask is {attention.shape}, but should be "
                    f"{expected}."
                )
        if padding is not None:
            rows, columns = padding.size(0), padding.size(1) + self.added
            for dim, (found, expected) in enumerate(((rows, self.batch), (columns, self.keys))):
                if found != expected:
                    raise AssertionError(
                        f"Expected key_padded_mask.shape[{dim}] to be {expected}, but got {found}"
                    )


def _check_ranks(query, key, value, padding, attention, heads):
    """AssertionError where the numbers of dimensions do not go together."""
    rank = query.dim()
    if rank not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor"
        )
    wrong = None
    if key.dim() != rank or value.dim() != rank:
        wrong = (
            f"`key` and `value` to be {rank}-D but found {key.dim()}-D and {value.dim()}-D tensors "
            "respectively"
        )
    elif padding is not None and padding.dim() != rank - 1:
        wrong = f"`key_padding_mask` to be `None` or {rank - 1}-D but found {padding.dim()}-D tensor instead"
    elif attention is not None and attention.dim() not in (2, 3):
        wrong = f"`attn_mask` to be `None`, 2-D or 3-D but found {attention.dim()}-D tensor instead"
    if wrong is not None:
        kind = "batched (3-D)" if rank == 3 else "unbatched (2-D)"
        raise AssertionError(f"For {kind} `query`, expected {wrong}")
    if rank == 2 and attention is not None and attention.dim() == 3:
        expected = (heads, query.shape[0], key.shape[0])
        if tuple(attention.shape) != expected:
            raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {attention.shape}")


def _project(sources, weights, bias):
    """query, key and value by their weights: three, or one of all three.

    Equal sources are projected by one product, if keys and values are the same tensor.
    """
    query, key, value = sources
    shares = (1, 1, 1)  # how many of the three each product makes
    if not isinstance(weights, tuple):
        if key is value:
            shares = (3,) if query is key else (1, 2)
        weights = _rows(weights, shares)
    biases = _rows(bias, shares)
    made = []
    for source, weight, offset, share in zip(sources, weights, biases, shares):
        product = ops.linear(source, weight, offset)
        made += [product] if share == 1 else _apart(product, share)
    return made


def _rows(packed, shares):
    """The rows of a packed weight or bias that belong to each product."""
    if packed is None or len(shares) == 1:
        return (packed,) * len(shares)
    if len(shares) == 3:
        return packed.chunk(3)
    third = packed.size(0) // 3
    return packed.split([third * share for share in shares])


def _apart(product, count):
    """(length, batch, count * width) as `count` tensors (length, batch, width), each without gaps."""
    stacked = product.unflatten(-1, (count, product.size(-1) // count)).unsqueeze(0)
    stacked = stacked.transpose(0, -2).squeeze(-2).contiguous()
    return [stacked[place] for place in range(count)]


def _split(plan, projected):
    return projected.view(projected.size(0), plan.batch * plan.heads, plan.part).transpose(0, 1)


def _with_zeros(split):
    zeros = torch.zeros((split.size(0), 1, split.size(2)), dtype=split.dtype, device=split.device)
    return torch.cat([split, zeros], dim=1)


def _attend_openly(plan, q, k, v, mask, dropout):
    """The values' sums (queries * batch, width), and the weights (batch, heads, queries, keys)."""
    scaled, turned = q * math.sqrt(1.0 / plan.part), k.transpose(-2, -1)
    scores = torch.bmm(scaled, turned) if mask is None else ops.baddbmm(mask, scaled, turned)
    weights = ops.softmax(scores, -1)
    if dropout > 0.0:
        weights = ops.dropout(weights, dropout, True)
    sums = torch.bmm(weights, v).transpose(0, 1).reshape(plan.queries * plan.batch, plan.width)
    return sums, weights


def _attend_at_once(plan, q, k, v, mask, dropout, causal):
    """The values' sums (queries * batch, width)."""
    outer = (plan.batch, plan.heads)
    if mask is not None:
        mask = mask.unsqueeze(0) if mask.size(0) == 1 else mask.view(*outer, *mask.shape[1:])
    q, k, v = (each.view(*outer, *each.shape[1:]) for each in (q, k, v))
    sums = ops.scaled_dot_product_attention(q, k, v, mask, dropout, causal)
    return sums.permute(2, 0, 1, 3).reshape(plan.batch * plan.queries, plan.width)


def multi_head_attention_forward(
    query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v,
    add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training=True, key_padding_mask=None,
    need_weights=True, attn_mask=None, use_separate_proj_weight=False, q_proj_weight=None,
    k_proj_weight=None, v_proj_weight=None, static_k=None, static_v=None, average_attn_weights=True,
    is_causal=False,
):  # fmt: skip
    """Attention of (L, N, E) or (L, E); the output, and the weights or None."""
    _check_ranks(query, key, value, key_padding_mask, attn_mask, num_heads)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    sources, padding, batched = (query, key, value), key_padding_mask, query.dim() == 3
    if not batched:
        sources = tuple(source.unsqueeze(1) for source in sources)
        padding = padding if padding is None else padding.unsqueeze(0)
    causal = is_causal and padding is None and not need_weights
    if causal:
        attn_mask = None  # the attention makes it by itself

    plan = _Plan(*sources[:2], num_heads)
    plan.check_width(embed_dim_to_check)
    weights = in_proj_weight
    if use_separate_proj_weight:
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        plan.check_separate(sources, weights)
    else:
        plan.check_packed(*sources[1:], weights)
    plan.count_keys({"bias_k": bias_k, "bias_v": bias_v}, {"key": static_k, "value": static_v}, add_zero_attn)
    plan.check_masks(padding, attn_mask)

    padding, attn_mask = additive_masks(query.dtype, padding, attn_mask)
    q, k, v = _project(sources, weights, in_proj_bias)
    masks = _Masks(padding, attn_mask)
    if bias_k is not None:
        k = torch.cat([k, bias_k.repeat(1, plan.batch, 1)])
        v = torch.cat([v, bias_v.repeat(1, plan.batch, 1)])
        masks.widen()
    q = _split(plan, q)
    k = _split(plan, k) if static_k is None else static_k
    v = _split(plan, v) if static_v is None else static_v
    if add_zero_attn:
        k, v = _with_zeros(k), _with_zeros(v)
        masks.widen()
    mask, dropout = masks.total(plan), dropout_p if training else 0.0
    if need_weights:
        sums, shown = _attend_openly(plan, q, k, v, mask, dropout)
    else:
        sums, shown = _attend_at_once(plan, q, k, v, mask, dropout, causal), None

    output = ops.linear(sums, out_proj_weight, out_proj_bias)
    output = output.view(plan.queries, plan.batch, output.size(1))
    if shown is not None:
        shown = shown.view(plan.batch, plan.heads, plan.queries, plan.keys)
        if average_attn_weights:
            shown = shown.mean(dim=1)
    if not batched:
        output = output.squeeze(1)
        shown = shown if shown is None else shown.squeeze(0)
    return output, shown
