# SPDX-License-Identifier: Apache-2.0
"""TransformerEncoderLayer, TransformerEncoder. There is one way through them: the eager one."""

import copy
import math

import mindtorch_v2 as torch

from .. import functional as F
from .._attention import additive_masks
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

__all__ = ["TransformerEncoder", "TransformerEncoderLayer"]


_ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu}


def _hides_the_future(mask, length):
    """Is it the causal mask of that length: -inf above the diagonal, 0 elsewhere?"""
    hidden = torch.full((length, length), -math.inf, dtype=mask.dtype, device=mask.device)
    causal = torch.triu(hidden, diagonal=1)
    return mask.shape == causal.shape and bool((mask == causal).all())


class TransformerEncoderLayer(Module):
    """Attention and two linear layers, each with a residual and a LayerNorm."""

    __constants__ = ["norm_first"]

    def __init__(
        self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=F.relu, layer_norm_eps=1e-5,
        batch_first=False, norm_first=False, bias=True, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        made = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **made
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **made)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        if isinstance(activation, str):
            if activation not in _ACTIVATIONS:
                raise RuntimeError(f"activation should be relu/gelu, not {activation}")
            activation = _ACTIVATIONS[activation]
        self.activation = activation

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        padding, mask = additive_masks(
            src.dtype, src_key_padding_mask, src_mask, ("src_key_padding_mask", "src_mask")
        )

        def attend(x):
            attended = self.self_attn(
                x, x, x, padding, need_weights=False, attn_mask=mask, is_causal=is_causal
            )
            return self.dropout1(attended[0])

        def feed(x):
            return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))

        x = src
        for norm, branch in ((self.norm1, attend), (self.norm2, feed)):
            x = x + branch(norm(x)) if self.norm_first else norm(x + branch(x))
        return x


class TransformerEncoder(Module):
    """Copies of an encoder layer, one after the other."""

    __constants__ = ["norm"]

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm
        # There are no nested tensors here; the arguments are kept for code that passes them.
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = False
        self.mask_check = mask_check

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        padding, mask = additive_masks(
            src.dtype, src_key_padding_mask, mask, ("src_key_padding_mask", "mask")
        )
        if is_causal is None and mask is not None:  # the caller did not say: look
            is_causal = _hides_the_future(mask, self._length_of(src, mask))
        output = src
        for layer in self.layers:
            output = layer(
                output, src_mask=mask, is_causal=bool(is_causal), src_key_padding_mask=padding
            )
        return output if self.norm is None else self.norm(output)

    def _length_of(self, src, mask):
        """The length of the sequences; of a src that does not say it, what the mask says."""
        if src.dim() not in (2, 3):
            return mask.size(-2)
        first = next(iter(self.layers), None)
        batch_first = src.dim() == 3 and getattr(getattr(first, "self_attn", None), "batch_first", False)
        return src.size(1 if batch_first else 0)
