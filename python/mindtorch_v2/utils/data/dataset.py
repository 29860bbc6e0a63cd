# SPDX-License-Identifier: Apache-2.0
"""Data sets: by index, by iteration, and made of others."""

import bisect
import math
import warnings
from typing import Generic, TypeVar

import mindtorch_v2 as torch

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

_T_co = TypeVar("_T_co", covariant=True)


class Dataset(Generic[_T_co]):
    """Something with __getitem__(index), and mostly with __len__().

    A data set may have __getitems__(indices) as well, which gives a batch's samples as a list.
    """

    def __getitem__(self, index):
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset[_T_co]):
    """Something with __iter__(). Each worker of a loader iterates a copy: see get_worker_info()."""

    def __add__(self, other):
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """Tensors side by side: a sample is a row of each."""

    def __init__(self, *tensors):
        if any(tensor.size(0) != tensors[0].size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self):
        return self.tensors[0].size(0)


class StackDataset(Dataset):
    """Data sets side by side: a sample is a tuple, or with keywords a dict, of theirs."""

    def __init__(self, *args, **kwargs):
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, "
                "but both types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets = args or kwargs
        members = self._members()
        self._length = len(members[0])
        if any(len(dataset) != self._length for dataset in members):
            raise ValueError("Size mismatch between datasets")

    def _members(self):
        return list(self.datasets.values()) if isinstance(self.datasets, dict) else list(self.datasets)

    def _sample(self, parts):
        return dict(zip(self.datasets, parts)) if isinstance(self.datasets, dict) else tuple(parts)

    def __getitem__(self, index):
        return self._sample([dataset[index] for dataset in self._members()])

    def __getitems__(self, indices):
        columns = []
        for dataset in self._members():
            getitems = getattr(dataset, "__getitems__", None)
            if not callable(getitems):
                columns.append([dataset[index] for index in indices])
                continue
            items = getitems(indices)
            if len(items) != len(indices):
                raise ValueError(
                    f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}"
                )
            columns.append(items)
        return [self._sample(parts) for parts in zip(*columns)]

    def __len__(self):
        return self._length


class ConcatDataset(Dataset[_T_co]):
    """Data sets one after another."""

    @staticmethod
    def cumsum(sequence):
        """Where each of them ends."""
        sums, total = [], 0
        for dataset in sequence:
            total += len(dataset)
            sums.append(total)
        return sums

    def __init__(self, datasets):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx):
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        if which > 0:
            idx -= self.cumulative_sizes[which - 1]
        return self.datasets[which][idx]

    @property
    def cummulative_sizes(self):
        """An old spelling."""
        warnings.warn(
            "`cummulative_sizes` attribute is renamed to `cumulative_sizes`", FutureWarning, stacklevel=2
        )
        return self.cumulative_sizes


class ChainDataset(IterableDataset):
    """Iterable data sets one after another."""

    def __init__(self, datasets):
        super().__init__()
        self.datasets = datasets

    def _checked(self):
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self):
        for dataset in self._checked():
            yield from dataset

    def __len__(self):
        return sum(len(dataset) for dataset in self._checked())


class Subset(Dataset[_T_co]):
    """Some samples of a data set, by their indices."""

    def __init__(self, dataset, indices):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx):
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices):
        chosen = [self.indices[i] for i in indices]
        getitems = getattr(self.dataset, "__getitems__", None)
        if callable(getitems):
            return getitems(chosen)
        return [self.dataset[i] for i in chosen]

    def __len__(self):
        return len(self.indices)


def _split_fractions(total, fractions):
    """Whole lengths that sum to `total`; what rounding leaves is dealt out from the first on."""
    lengths = []
    for i, fraction in enumerate(fractions):
        if fraction < 0 or fraction > 1:
            raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        lengths.append(math.floor(total * fraction))
    for i in range(total - sum(lengths)):
        lengths[i % len(lengths)] += 1
    for i, length in enumerate(lengths):
        if length == 0:
            warnings.warn(
                f"Length of split at index {i} is 0. This might result in an empty dataset.", stacklevel=3
            )
    return lengths


def random_split(dataset, lengths, generator=None):
    """Divides a data set at random into subsets of these lengths, or of these fractions of it."""
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _split_fractions(len(dataset), lengths)
    if sum(lengths) != len(dataset):
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    indices = torch.randperm(sum(lengths), generator=generator).tolist()
    subsets, begin = [], 0
    for length in lengths:
        subsets.append(Subset(dataset, indices[begin : begin + length]))
        begin += length
    return subsets
