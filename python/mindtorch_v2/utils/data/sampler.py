# SPDX-License-Identifier: Apache-2.0
"""Samplers: in which order a loader takes the samples."""

import itertools
from typing import Generic, TypeVar

import mindtorch_v2 as torch

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

_T_co = TypeVar("_T_co", covariant=True)


def _is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _fresh_seed(generator=None):
    """A seed from the process's generator, so that manual_seed() decides it."""
    return torch.empty((), dtype=torch.int64, device="cpu").random_(0, (1 << 63) - 1, generator=generator).item()


class Sampler(Generic[_T_co]):
    """Something with __iter__() over indices, or over lists of them; mostly with __len__()."""

    def __iter__(self):
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """0, 1, 2 ..."""

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """A new order each time; with replacement: independent draws."""

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        if not _is_count(self.num_samples):
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={self.num_samples}"
            )

    @property
    def num_samples(self):
        """How many indices one iteration gives; the data set may have grown."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        n = len(self.data_source)
        generator = self.generator
        if generator is None:
            generator = torch.Generator()
            generator.manual_seed(_fresh_seed())
        # As torch: whole rounds, then one for the rest even where nothing is left. A profile shows them.
        if self.replacement:
            for size in itertools.chain(itertools.repeat(32, self.num_samples // 32), (self.num_samples % 32,)):
                drawn = torch.randint(high=n, size=(size,), dtype=torch.int64, generator=generator)
                yield from drawn.tolist()
        else:
            for size in itertools.chain(itertools.repeat(n, self.num_samples // n), (self.num_samples % n,)):
                yield from torch.randperm(n, generator=generator).tolist()[:size]

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Some indices, in a new order each time."""

    def __init__(self, indices, generator=None):
        self.indices = indices
        self.generator = generator

    def __iter__(self):
        for i in torch.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with these weights."""

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        if not _is_count(num_samples):
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={num_samples}"
            )
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        weights = torch.as_tensor(weights, dtype=torch.float64)
        if weights.dim() != 1:
            raise ValueError(
                "weights should be a 1d sequence but given weights have shape " + str(tuple(weights.shape))
            )
        self.weights = weights
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self):
        drawn = torch.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from iter(drawn.tolist())

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler[list]):
    """Lists of a sampler's indices."""

    def __init__(self, sampler, batch_size, drop_last):
        if not _is_count(batch_size):
            raise ValueError(
                f"batch_size should be a positive integer value, but got batch_size={batch_size}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self):
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self):
        full, rest = divmod(len(self.sampler), self.batch_size)
        return full if self.drop_last or not rest else full + 1
