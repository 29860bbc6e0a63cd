# SPDX-License-Identifier: Apache-2.0
"""The loader: samples in some order, made into batches, by this process or by workers.

    sampler ─► requests ─► plan ─► batch            in this process
                    └─► crew ─► window ─► batch     the plan is carried out by num_workers processes

  DL1  Batches come in the order of the sampler, not in the order of the workers (in_order).
  DL2  A worker has at most prefetch_factor batches asked for and not yet taken.
  DL3  However an iteration ends (its end, break, an exception, the interpreter's exit), its workers
       are gone or, with persistent_workers, idle.
"""

import itertools
import os
import warnings

import mindtorch_v2 as torch
from mtprof import begin as _begin, end as _end

from .collating import default_collate, default_convert
from .dataset import IterableDataset
from .loading.pinning import pinned
from .loading.plan import Plan, Unindexed
from .loading.worker import Exhausted, Raised
from .sampler import BatchSampler, RandomSampler, SequentialSampler, _fresh_seed

__all__ = ["DataLoader", "default_collate", "default_convert"]


def _check_batching(loader, batch_size, shuffle, sampler, batch_sampler, drop_last):
    """That the options which say how batches are made go together."""
    if isinstance(loader.dataset, IterableDataset):
        name = "DataLoader with IterableDataset: expected unspecified"
        if shuffle not in (False, None):
            raise ValueError(f"{name} shuffle option, but got shuffle={shuffle}")
        if sampler is not None:
            raise ValueError(f"{name} sampler option, but got sampler={sampler}")
        if batch_sampler is not None:
            raise ValueError(f"{name} batch_sampler option, but got batch_sampler={batch_sampler}")
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
            )
    elif batch_size is None and drop_last:
        raise ValueError(
            "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
        )


def _check_workers(num_workers, timeout, prefetch_factor, persistent_workers):
    """That the options about workers go together; the prefetch factor."""
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if num_workers > 0 and prefetch_factor is None:
        prefetch_factor = 2
    elif prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")
    return prefetch_factor


class DataLoader:
    """Iterates over batches of a data set.

    Arguments and their meaning are torch's. With pin_memory the process that takes a batch copies it into
    memory from which an accelerator reads by itself; without an accelerator it warns and does nothing.
    """

    _initialized = False
    _FIXED = frozenset(
        ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
    )

    def __init__(
        self,
        dataset,
        batch_size=1,
        shuffle=None,
        sampler=None,
        batch_sampler=None,
        num_workers=0,
        collate_fn=None,
        pin_memory=False,
        drop_last=False,
        timeout=0,
        worker_init_fn=None,
        multiprocessing_context=None,
        generator=None,
        *,
        prefetch_factor=None,
        persistent_workers=False,
        pin_memory_device="",
        in_order=True,
    ):
        self.prefetch_factor = _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset = dataset
        self.num_workers = num_workers
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        _check_batching(self, batch_size, shuffle, sampler, batch_sampler, drop_last)
        self.generator = generator
        self.drop_last = drop_last
        self.sampler = self._default_sampler(shuffle) if sampler is None else sampler
        if batch_sampler is not None:
            self.batch_size, self.batch_sampler = None, batch_sampler
        else:
            self.batch_size = batch_size
            one_by_one = batch_size is None
            self.batch_sampler = None if one_by_one else BatchSampler(self.sampler, batch_size, drop_last)
        by_default = default_convert if self.batch_sampler is None else default_collate
        self.collate_fn = by_default if collate_fn is None else collate_fn
        self.persistent_workers = persistent_workers
        self._promised = None  # the length that an iterable data set gave for len() of this loader
        self._kept = None  # the iteration whose workers are used again
        self._warn_of_many_workers()
        self._initialized = True

    def _default_sampler(self, shuffle):
        if isinstance(self.dataset, IterableDataset):
            return Unindexed()
        if shuffle:
            return RandomSampler(self.dataset, generator=self.generator)
        return SequentialSampler(self.dataset)

    def _warn_of_many_workers(self):
        if self.num_workers == 0:
            return
        if hasattr(os, "sched_getaffinity"):
            most = len(os.sched_getaffinity(0))
        else:
            most = os.cpu_count() or self.num_workers
        if self.num_workers > most:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested "
                f"max number of worker in current system is {most}, which is smaller than what this "
                "DataLoader is going to create. Please be aware that excessive worker creation might get "
                "DataLoader running slow or even freeze, lower the worker number to avoid potential "
                "slowness/freeze if necessary.",
                stacklevel=3,
            )

    @property
    def multiprocessing_context(self):
        """How workers are started; None: as the process's default says."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context):
        if context is not None:
            import multiprocessing
            import multiprocessing.context

            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), "
                    f"but got num_workers={self.num_workers}"
                )
            if isinstance(context, str):
                methods = multiprocessing.get_all_start_methods()
                if context not in methods:
                    raise ValueError(
                        "multiprocessing_context option should specify a valid start method in "
                        f"{methods!r}, but got multiprocessing_context={context!r}"
                    )
                context = multiprocessing.get_context(context)
            if not isinstance(context, multiprocessing.context.BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying "
                    f"the start method, but got multiprocessing_context={context}"
                )
        self.__multiprocessing_context = context

    def __setattr__(self, name, value):
        if self._initialized and name in self._FIXED:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(name, value)

    def _requests(self):
        """What says which samples a batch is made of."""
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def _plan(self):
        iterable = isinstance(self.dataset, IterableDataset)
        batched = self.batch_sampler is not None
        return Plan(self.dataset, iterable, batched, self.collate_fn, self.drop_last)

    def __iter__(self):
        kept = self._kept
        if kept is not None and not kept._crew.dismissed:
            kept._restart(self)
            return kept
        if self.pin_memory and not torch.npu.is_available():
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory "
                "won't be used.",
                stacklevel=2,
            )
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        made = _MultiProcessingDataLoaderIter(self)
        if self.persistent_workers:
            self._kept = made
        return made

    def __len__(self):
        if not isinstance(self.dataset, IterableDataset):
            return len(self._requests())
        count = self._promised = len(self.dataset)
        if self.batch_size is None:
            return count
        return (count if self.drop_last else count + self.batch_size - 1) // self.batch_size


class _BaseDataLoaderIter:
    """Takes requests one after the other; each batch is a row of a profile. A class has _take()."""

    def __init__(self, loader):
        self._source = loader._requests()
        self._pins = bool(loader.pin_memory) and torch.npu.is_available()
        self._row = f"enumerate(DataLoader)#{type(self).__name__}.__next__"

    def _restart(self, loader):
        """From the first request; a seed for the workers, which an iteration without them draws too."""
        self._requests = iter(self._source)
        self._seed = _fresh_seed(loader.generator)
        self._given = 0
        self._promised = loader._promised

    def _take(self):
        """The next batch."""
        raise NotImplementedError

    def __iter__(self):
        return self

    def __next__(self):
        token = _begin(self._row)
        try:
            batch = pinned(self._take()) if self._pins else self._take()
        finally:
            _end(token)
        self._given += 1
        if self._promised is not None and self._given > self._promised:
            self._warn_of_length()
        return batch

    def _warn_of_length(self):
        text = (
            f"Length of IterableDataset was reported to be {self._promised} (when accessing "
            f"len(dataloader)), but {self._given} samples have been fetched. "
        )
        if isinstance(self, _MultiProcessingDataLoaderIter):
            text += (
                "For multiprocessing data-loading, this could be caused by not properly configuring the "
                "IterableDataset replica at each worker."
            )
        warnings.warn(text, stacklevel=3)

    def __len__(self):
        return len(self._source)

    def __getstate__(self):
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Makes the batches in this process."""

    def __init__(self, loader):
        super().__init__(loader)
        self._restart(loader)
        self._make = loader._plan().open()

    def _take(self):
        return self._make(next(self._requests))


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Has a crew make the batches, ahead of what is taken (DL2)."""

    def __init__(self, loader):
        super().__init__(loader)
        import multiprocessing

        from .loading.crew import Crew

        self._ahead = max(1, loader.prefetch_factor)
        self._in_order = loader.in_order
        self._keep = loader.persistent_workers
        context = loader.multiprocessing_context or multiprocessing.get_context()
        self._crew = Crew(context, loader._plan(), loader.num_workers, loader.timeout, loader.worker_init_fn)
        try:
            self._restart(loader)
        except BaseException:
            self._crew.dismiss()
            raise

    def _restart(self, loader):
        from .loading.window import Window

        super()._restart(loader)
        self._window = Window(self._in_order)
        self._turns = itertools.cycle(self._crew.members)
        self._crew.begin(self._seed)
        for _ in range(self._ahead * len(self._crew.members)):
            self._ask()

    def _whose_turn(self):
        """The member to ask next. In order it is simply the next one, so that who makes which batch
        does not depend on who is fast; else one that has room for it."""
        for member in itertools.islice(self._turns, len(self._crew.members)):
            if not member.finished and (self._in_order or member.owes < self._ahead):
                return member
        return None

    def _ask(self):
        """Hands out a request, if there is one more and a worker for it."""
        member = self._whose_turn()
        if member is None:
            return
        for request in itertools.islice(self._requests, 1):
            member.ask(self._window.ask(), request)

    def _take(self):
        window, crew = self._window, self._crew
        while not crew.dismissed and window:
            number = window.ready()
            if number is not None:
                batch = window.give(number)
                self._ask()
                if isinstance(batch, Raised):
                    batch.reraise()
                return batch
            member, (number, batch) = crew.hear()
            member.owes -= 1
            if isinstance(batch, Exhausted):
                member.finished = True
                window.drop(number)
                self._ask()
            else:
                window.arrive(number, batch)
        if not self._keep:
            crew.dismiss()
        raise StopIteration
