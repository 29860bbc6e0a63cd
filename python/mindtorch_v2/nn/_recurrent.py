# SPDX-License-Identifier: Apache-2.0
"""Packed sequences: nn.utils.rnn gives these names, recurrent modules take and return them."""

import typing

import mindtorch_v2 as torch

from .._C import ops


class PackedSequence_(typing.NamedTuple):  # noqa: N801 - torch's name
    """The fields of a PackedSequence."""

    data: torch.Tensor
    batch_sizes: torch.Tensor
    sorted_indices: typing.Optional[torch.Tensor] = None
    unsorted_indices: typing.Optional[torch.Tensor] = None


def invert_permutation(permutation):
    """Where each number stands."""
    if permutation is None:
        return None
    places = torch.arange(0, permutation.numel(), device=permutation.device)
    return torch.empty_like(permutation).scatter_(0, permutation, places)


class PackedSequence(PackedSequence_):
    """Sequences of several lengths, step by step: the rows of step 0, then those of step 1 and so on.
    batch_sizes has the number of rows of each step and is in host memory."""

    __slots__ = ()

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:  # data is a pair of both
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequences in "
                "nn.utils.rnn. https://docs.pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args, **kwargs):
        """With the data in another type or on another device."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        order = (self.sorted_indices, self.unsorted_indices)
        moved = (None if index is None else index.to(data.device) for index in order)
        return type(self)(data, self.batch_sizes, *moved)

    def cpu(self, *args, **kwargs):
        """On the host."""
        return self.to("cpu")

    def cuda(self, *args, **kwargs):
        """On a CUDA device."""
        return self.to(*args, device="cuda", **kwargs)

    def double(self):
        """In float64."""
        return self.to(dtype=torch.float64)

    def float(self):
        """In float32."""
        return self.to(dtype=torch.float32)

    def half(self):
        """In float16."""
        return self.to(dtype=torch.float16)

    def long(self):
        """In int64."""
        return self.to(dtype=torch.int64)

    def int(self):
        """In int32."""
        return self.to(dtype=torch.int32)

    def byte(self):
        """In uint8."""
        return self.to(dtype=torch.uint8)

    def pin_memory(self):
        """With the data in pinned memory."""
        order = (self.sorted_indices, self.unsorted_indices)
        pinned = (None if index is None else index.pin_memory() for index in order)
        return type(self)(self.data.pin_memory(), self.batch_sizes, *pinned)

    @property
    def is_cuda(self):
        """Whether the data is on a CUDA device."""
        return self.data.is_cuda

    def is_pinned(self):
        """Whether the data is in pinned memory."""
        return self.data.is_pinned()


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """Packs [T, B, *] (batch_first: [B, T, *]); `lengths` has each sequence's length."""
    if not isinstance(lengths, torch.Tensor):
        lengths = torch.tensor([int(length) for length in lengths], dtype=torch.int64)
    if enforce_sorted:
        order = None
    else:
        lengths, order = torch.sort(lengths, descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    data, batch_sizes = ops._pack_padded_sequence(input, lengths, batch_first)
    return PackedSequence(data, batch_sizes, order, None)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """(padded sequences, their lengths): the inverse of pack_padded_sequence."""
    longest = sequence.batch_sizes.size(0)
    if total_length is not None:
        if total_length < longest:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {longest}"
            )
        longest = total_length
    padded, lengths = ops._pad_packed_sequence(
        sequence.data, sequence.batch_sizes, batch_first, padding_value, longest
    )
    order = sequence.unsorted_indices
    if order is not None:
        return padded.index_select(0 if batch_first else 1, order), lengths[order.cpu()]
    return padded, lengths


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Sequences of several lengths in one tensor [T, B, *] (batch_first: [B, T, *])."""
    if isinstance(sequences, torch.Tensor):
        sequences = sequences.unbind(0)
    elif isinstance(sequences, str):
        raise TypeError("expected Tensor as element 0 in argument 0, but got str")
    return ops.pad_sequence(list(sequences), batch_first, padding_value, padding_side)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The sequences of pad_sequence again, a list."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [padded[: int(length)] for padded, length in zip(padded_sequences, lengths)]


def pack_sequence(sequences, enforce_sorted=True):
    """Packs a list of sequences."""
    lengths = torch.tensor([sequence.size(0) for sequence in sequences], dtype=torch.int64)
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """The sequences of pack_sequence again, a list."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
