# SPDX-License-Identifier: Apache-2.0
"""torch.nn.utils.rnn: sequences of several lengths in one tensor, padded or packed."""

from .._recurrent import (
    PackedSequence,
    PackedSequence_,
    invert_permutation,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpack_sequence,
    unpad_sequence,
)

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip
