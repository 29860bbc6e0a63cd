# SPDX-License-Identifier: Apache-2.0
"""Small data sets for the tests of data loading."""
import mindtorch_v2 as torch
from mindtorch_v2.utils import data


class Numbers(data.Dataset):
    def __init__(self, n=10):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if i >= self.n:
            raise IndexError(f"{i} of {self.n}")
        return i


class Stream(data.IterableDataset):
    def __init__(self, n=10):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))


class SizedStream(Stream):
    def __len__(self):
        return 4


def values(loader):
    return [batch.tolist() if isinstance(batch, torch.Tensor) else batch for batch in loader]
