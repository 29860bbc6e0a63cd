# SPDX-License-Identifier: Apache-2.0
"""A sampler for several processes that each take their part of the samples."""

import math

import mindtorch_v2 as torch

from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler):
    """Every num_replicas-th sample, from `rank` on, of an order all processes share.

    There is no process group here, so both numbers are given. set_epoch() changes the order.
    """

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):
        if num_replicas is None or rank is None:
            raise ValueError(
                "Default process group has not been initialized, please make sure to call "
                "init_process_group. (There are none here: give num_replicas and rank.)"
            )
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        total = len(dataset)
        if drop_last and total % num_replicas != 0:
            total -= num_replicas - 1
        self.num_samples = math.ceil(total / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self):
        n = len(self.dataset)
        if self.shuffle:
            generator = torch.Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = torch.randperm(n, generator=generator).tolist()
        else:
            indices = list(range(n))
        if self.drop_last:
            indices = indices[: self.total_size]
        elif n:
            # Some samples come twice, so that all processes make the same number of steps.
            indices = (indices * math.ceil(self.total_size / n))[: self.total_size]
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch):
        """With shuffle: another order for each epoch, the same in all processes."""
        self.epoch = epoch
