# SPDX-License-Identifier: Apache-2.0
"""multi_head_attention_forward: projections, masks, attention by heads.

    query, key, value (L, N, E) ─► in-projection ─► (N heads, L, E / heads) ─► weights ─► out-projection

With need_weights the products are single ops, so that the weights can be given; else it is one
scaled_dot_product_attention.
"""

import math
import warnings

import mindtorch_v2 as torch

from .._C import ops


def _canonical_mask(mask, mask_name, other_type, other_name, target_type, check_other=True):
    """A mask to add: bool masks become 0 and -inf."""
    if mask is None:
        return None
    is_float = mask.is_floating_point()
    if mask.dtype != torch.bool and not is_float:
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both "
            "instead.",
            stacklevel=3,
        )
    if not is_float:
        mask = torch.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))
    return mask


def _none_or_dtype(tensor):
    return None if tensor is None else tensor.dtype


def _shape_check(query, key, value, key_padding_mask, attn_mask, num_heads):
    """Is it batched? AssertionError where the arguments' dimensions do not go together."""
    if query.dim() not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor"
        )
    batched = query.dim() == 3
    kind = "batched (3-D)" if batched else "unbatched (2-D)"
    if key.dim() != query.dim() or value.dim() != query.dim():
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {query.dim()}-D but found {key.dim()}-D "
            f"and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != query.dim() - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {query.dim() - 1}-D but "
            f"found {key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
                f"{attn_mask.dim()}-D tensor instead"
            )
        if not batched and attn_mask.dim() == 3:
            expected = (num_heads, query.shape[0], key.shape[0])
            if tuple(attn_mask.shape) != expected:
                raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}")
    return batched


def _unpack(projected, count, width):
    """(..., count * width) as `count` contiguous tensors (..., width)."""
    projected = projected.unflatten(-1, (count, width)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
    return tuple(projected[place] for place in range(count))


def _in_projection_packed(q, k, v, weight, bias):
    width = q.size(-1)
    if k is v:
        if q is k:
            return _unpack(ops.linear(q, weight, bias), 3, width)
        weight_q, weight_kv = weight.split([width, width * 2])
        bias_q = bias_kv = None
        if bias is not None:
            bias_q, bias_kv = bias.split([width, width * 2])
        q = ops.linear(q, weight_q, bias_q)
        return (q, *_unpack(ops.linear(k, weight_kv, bias_kv), 2, width))
    weight_q, weight_k, weight_v = weight.chunk(3)
    bias_q = bias_k = bias_v = None
    if bias is not None:
        bias_q, bias_k, bias_v = bias.chunk(3)
    return ops.linear(q, weight_q, bias_q), ops.linear(k, weight_k, bias_k), ops.linear(v, weight_v, bias_v)


def _in_projection(q, k, v, weights, bias):
    weight_q, weight_k, weight_v = weights
    width = q.size(-1)
    for name, weight, given in (("query", weight_q, q), ("key", weight_k, k), ("value", weight_v, v)):
        expected = (width, given.size(-1))
        if tuple(weight.shape) != expected:
            raise AssertionError(f"expecting {name} weights shape of {expected}, but got {weight.shape}")
    bias_q = bias_k = bias_v = None
    if bias is not None:
        bias_q, bias_k, bias_v = bias.chunk(3)
    return ops.linear(q, weight_q, bias_q), ops.linear(k, weight_k, bias_k), ops.linear(v, weight_v, bias_v)


def _check_attn_mask(attn_mask, batch, num_heads, tgt_len, src_len):
    if attn_mask.dim() == 2:
        expected = (tgt_len, src_len)
        if tuple(attn_mask.shape) != expected:
            raise RuntimeError(
                f"The shape of the 2D attn_mask is {attn_mask.shape}, but should be {expected}."
            )
        return attn_mask.unsqueeze(0)
    expected = (batch * num_heads, tgt_len, src_len)
    if tuple(attn_mask.shape) != expected:
        raise RuntimeError(f"The shape of the 3D attn_mask is {attn_mask.shape}, but should be {expected}.")
    return attn_mask


def _widen(mask):
    """One more key at the end that every query may see."""
    from . import functional

    return None if mask is None else functional.pad(mask, (0, 1))


def _by_heads(projected, given, what, batch, num_heads, head_dim):
    if given is None:
        return projected.view(projected.shape[0], batch * num_heads, head_dim).transpose(0, 1)
    if given.size(0) != batch * num_heads:
        raise AssertionError(f"expecting {what}.size(0) of {batch * num_heads}, but got {given.size(0)}")
    if given.size(2) != head_dim:
        raise AssertionError(f"expecting {what}.size(2) of {head_dim}, but got {given.size(2)}")
    return given


def multi_head_attention_forward(
    query,
    key,
    value,
    embed_dim_to_check,
    num_heads,
    in_proj_weight,
    in_proj_bias,
    bias_k,
    bias_v,
    add_zero_attn,
    dropout_p,
    out_proj_weight,
    out_proj_bias,
    training=True,
    key_padding_mask=None,
    need_weights=True,
    attn_mask=None,
    use_separate_proj_weight=False,
    q_proj_weight=None,
    k_proj_weight=None,
    v_proj_weight=None,
    static_k=None,
    static_v=None,
    average_attn_weights=True,
    is_causal=False,
):
    """Attention of (L, N, E) or (L, E); the output, and the weights or None."""
    batched = _shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    tgt_len, batch, embed_dim = query.shape
    src_len = key.shape[0]
    key_padding_mask = _canonical_mask(
        key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype
    )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None  # the attention makes it by itself
    else:
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
        if key_padding_mask is not None:
            is_causal = False
    if embed_dim != embed_dim_to_check:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed_dim}"
        )
    head_dim = embed_dim // num_heads
    if head_dim * num_heads != embed_dim:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        for name, weight in zip("qkv", weights):
            if weight is None:
                raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
        q, k, v = _in_projection(query, key, value, weights, in_proj_bias)
    else:
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)
    if attn_mask is not None:
        attn_mask = _check_attn_mask(attn_mask, batch, num_heads, tgt_len, src_len)

    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("bias cannot be added to static key or value.")
        k = torch.cat([k, bias_k.repeat(1, batch, 1)])
        v = torch.cat([v, bias_v.repeat(1, batch, 1)])
        attn_mask, key_padding_mask = _widen(attn_mask), _widen(key_padding_mask)
    elif bias_k is not None or bias_v is not None:
        raise AssertionError("bias_k and bias_v must be given together")

    q = _by_heads(q, None, "", batch, num_heads, head_dim)
    k = _by_heads(k, static_k, "static_k", batch, num_heads, head_dim)
    v = _by_heads(v, static_v, "static_v", batch, num_heads, head_dim)
    if add_zero_attn:
        shape = (batch * num_heads, 1, head_dim)
        k = torch.cat([k, torch.zeros(shape, dtype=k.dtype, device=k.device)], dim=1)
        v = torch.cat([v, torch.zeros(shape, dtype=v.dtype, device=v.device)], dim=1)
        attn_mask, key_padding_mask = _widen(attn_mask), _widen(key_padding_mask)
    src_len = k.size(1)
    if key_padding_mask is not None:
        attn_mask = _merge(key_padding_mask, attn_mask, batch, num_heads, src_len)
    dropout_p = dropout_p if training else 0.0

    if need_weights:
        output, weights = _with_weights(q, k, v, attn_mask, dropout_p)
        output = output.transpose(0, 1).reshape(tgt_len * batch, embed_dim)
    else:
        output, weights = _without_weights(q, k, v, attn_mask, dropout_p, is_causal, batch, num_heads), None
        output = output.permute(2, 0, 1, 3).reshape(batch * tgt_len, embed_dim)
    output = ops.linear(output, out_proj_weight, out_proj_bias)
    output = output.view(tgt_len, batch, output.size(1))
    if weights is not None:
        weights = weights.view(batch, num_heads, tgt_len, src_len)
        if average_attn_weights:
            weights = weights.mean(dim=1)
    if not batched:
        output = output.squeeze(1)
        if weights is not None:
            weights = weights.squeeze(0)
    return output, weights


def _merge(key_padding_mask, attn_mask, batch, num_heads, src_len):
    """The padding mask for every head, and the attention mask with it."""
    if key_padding_mask.shape[0] != batch:
        raise AssertionError(
            f"Expected key_padded_mask.shape[0] to be {batch}, but got {key_padding_mask.shape[0]}"
        )
    if key_padding_mask.shape[1] != src_len:
        raise AssertionError(
            f"Expected key_padded_mask.shape[1] to be {src_len}, but got {key_padding_mask.shape[1]}"
        )
    spread = key_padding_mask.view(batch, 1, 1, src_len).expand(-1, num_heads, -1, -1)
    spread = spread.reshape(batch * num_heads, 1, src_len)
    return spread if attn_mask is None else attn_mask + spread


def _with_weights(q, k, v, attn_mask, dropout_p):
    scaled = q * math.sqrt(1.0 / q.shape[2])
    if attn_mask is not None:
        weights = ops.baddbmm(attn_mask, scaled, k.transpose(-2, -1))
    else:
        weights = torch.bmm(scaled, k.transpose(-2, -1))
    weights = ops.softmax(weights, -1)
    if dropout_p > 0.0:
        weights = ops.dropout(weights, dropout_p, True)
    return torch.bmm(weights, v), weights


def _without_weights(q, k, v, attn_mask, dropout_p, is_causal, batch, num_heads):
    tgt_len, src_len, head_dim = q.shape[1], k.shape[1], q.shape[2]
    if attn_mask is not None:
        if attn_mask.size(0) == 1 and attn_mask.dim() == 3:
            attn_mask = attn_mask.unsqueeze(0)
        else:
            attn_mask = attn_mask.view(batch, num_heads, -1, src_len)
    q = q.view(batch, num_heads, tgt_len, head_dim)
    k = k.view(batch, num_heads, src_len, head_dim)
    v = v.view(batch, num_heads, src_len, head_dim)
    return ops.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal)
