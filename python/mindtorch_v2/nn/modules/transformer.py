# SPDX-License-Identifier: Apache-2.0
"""TransformerEncoderLayer, TransformerEncoder. There is one way through them: the eager one."""

import copy

import mindtorch_v2 as torch

from .. import functional as F
from .._attention import _canonical_mask, _none_or_dtype
from .activation import GELU, ReLU
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

__all__ = ["TransformerEncoder", "TransformerEncoderLayer"]


def _square_subsequent_mask(size, device=None, dtype=None):
    """0 on and below the diagonal, -inf above it."""
    return torch.triu(torch.full((size, size), float("-inf"), dtype=dtype, device=device), diagonal=1)


def _detect_causal(mask, is_causal, size):
    """Is the mask the causal one? Asked only where the caller did not say."""
    if is_causal is not None or mask is None:
        return is_causal is True
    causal = _square_subsequent_mask(size if size is not None else mask.size(-2), mask.device, mask.dtype)
    return mask.size() == causal.size() and bool((mask == causal).all())


def _activation_of(name):
    if name == "relu":
        return F.relu
    if name == "gelu":
        return F.gelu
    raise RuntimeError(f"activation should be relu/gelu, not {name}")


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
            activation = _activation_of(activation)
        self.activation_relu_or_gelu = (
            1 if activation is F.relu or isinstance(activation, ReLU)
            else 2 if activation is F.gelu or isinstance(activation, GELU)
            else 0
        )  # fmt: skip
        self.activation = activation

    def __setstate__(self, state):
        super().__setstate__(state)
        if "activation" not in self.__dict__ and "activation" not in self._modules:
            self.activation = F.relu

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        src_key_padding_mask = _canonical_mask(
            src_key_padding_mask, "src_key_padding_mask", _none_or_dtype(src_mask), "src_mask", src.dtype
        )
        src_mask = _canonical_mask(src_mask, "src_mask", None, "", src.dtype, False)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        x = self.self_attn(
            x, x, x, key_padding_mask, need_weights=False, attn_mask=attn_mask, is_causal=is_causal
        )[0]
        return self.dropout1(x)

    def _ff_block(self, x):
        x = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return self.dropout2(x)


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
        src_key_padding_mask = _canonical_mask(
            src_key_padding_mask, "src_key_padding_mask", _none_or_dtype(mask), "mask", src.dtype
        )
        mask = _canonical_mask(mask, "mask", None, "", src.dtype, False)
        is_causal = _detect_causal(mask, is_causal, self._length_of(src))
        output = src
        for layer in self.layers:
            output = layer(
                output, src_mask=mask, is_causal=is_causal, src_key_padding_mask=src_key_padding_mask
            )
        return output if self.norm is None else self.norm(output)

    def _length_of(self, src):
        """The length of the sequences, where src says it."""
        if src.dim() not in (2, 3):
            return None
        attention = getattr(self.layers[0], "self_attn", None) if len(self.layers) else None
        batch_first = src.dim() == 3 and getattr(attention, "batch_first", False)
        return src.size(1 if batch_first else 0)
