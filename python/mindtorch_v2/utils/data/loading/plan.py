# SPDX-License-Identifier: Apache-2.0
"""What a batch is: from a request to a batch.

    a request: an index, a list of indices, or None in their place for a data set that has none
    Plan.open(): a function from a request to its batch
"""

import itertools

from ..sampler import Sampler


class Unindexed(Sampler):
    """The sampler of a data set that has no indices: a None for each sample, without end."""

    def __iter__(self):
        return itertools.repeat(None)


class Plan:
    """How requests become batches; all that a worker has to know. It must not hold the loader."""

    def __init__(self, dataset, iterable, batched, collate, drop_last):
        self.dataset = dataset
        self.iterable = iterable
        self.batched = batched
        self.collate = collate
        self.drop_last = drop_last

    def open(self):
        """Begins an iteration: a function that makes the batch of a request.

        It raises StopIteration when an iterable data set has no more samples.
        """
        take = self._stream() if self.iterable else self._lookup()
        collate = self.collate
        return lambda request: collate(take(request))

    def _lookup(self):
        dataset = self.dataset
        if not self.batched:
            return lambda index: dataset[index]
        many = getattr(dataset, "__getitems__", None)
        return many or (lambda indices: [dataset[i] for i in indices])

    def _stream(self):
        samples = iter(self.dataset)
        if not self.batched:
            return lambda _: next(samples)

        def take(places):
            got = list(itertools.islice(samples, len(places)))
            least = len(places) if self.drop_last else 1
            if len(got) < least:
                raise StopIteration
            return got

        return take
