# SPDX-License-Identifier: Apache-2.0
"""The window of a loader with workers: the batches that are asked for and not yet given.

    ask ─► [ 7 asked | 8 here | 9 asked | 10 asked ] ─► give, from the left

  WN1  Batches are numbered as they are asked for. In order, the leftmost is given or nothing is;
       else the leftmost that is here, or what came first.
  WN2  A batch that turns out not to exist (a worker's data set has ended) leaves the window.
"""

import itertools


class Window:
    """Numbers of batches, and the batches that are here."""

    def __init__(self, in_order):
        self._in_order = in_order
        self._numbers = itertools.count()
        self._asked = {}  # numbers, leftmost first (a dict, for its order and its quick removal)
        self._here = {}  # batches, as they came

    def __len__(self):
        return len(self._asked)

    def ask(self):
        """A number for a new batch."""
        number = next(self._numbers)
        self._asked[number] = True
        return number

    def arrive(self, number, batch):
        """A batch is here."""
        self._here[number] = batch

    def drop(self, number):
        """There is no such batch (WN2)."""
        del self._asked[number]

    def ready(self):
        """The number of the batch to give (WN1); None: it is not here."""
        leftmost = next(iter(self._asked), None)
        if leftmost in self._here:
            return leftmost
        return None if self._in_order else next(iter(self._here), None)

    def give(self, number):
        """Takes a batch out."""
        del self._asked[number]
        return self._here.pop(number)
