# SPDX-License-Identifier: Apache-2.0
"""The loader: samples in some order, made into batches, by this process or by workers.

    sampler ─► indices ─► fetcher ─► collate_fn ─► batch
                          in this process, or in one of num_workers: _utils/worker.py

L1 Batches come in the order of the sampler, whichever worker is first (in_order).
L2 A worker has at most prefetch_factor batches asked for and not yet taken.
L3 However an iteration ends (its end, break, an exception, the interpreter's exit), its workers are
   gone or, with persistent_workers, idle.
"""

import itertools
import os
import time
import warnings
from collections import deque

import mindtorch_v2 as torch
from mtprof import begin as _begin, end as _end

from ._utils.collate import default_collate, default_convert
from ._utils.worker import CHECK_SECONDS, FETCH, RESUME, Exhausted, Raised, describe_exit, worker_loop
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, _fresh_seed

__all__ = ["DataLoader", "default_collate", "default_convert"]


class _DatasetKind:
    """How samples are had."""

    Map = 0
    Iterable = 1


class _InfiniteConstantSampler(Sampler):
    """An iterable data set has no indices: one None for each of its samples."""

    def __iter__(self):
        while True:
            yield None


class _MapFetcher:
    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        self.dataset, self.auto_collation, self.collate_fn = dataset, auto_collation, collate_fn

    def fetch(self, index):
        dataset = self.dataset
        if not self.auto_collation:
            return self.collate_fn(dataset[index])
        getitems = getattr(dataset, "__getitems__", None)
        samples = getitems(index) if getitems else [dataset[i] for i in index]
        return self.collate_fn(samples)


class _IterableFetcher:
    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        self.samples = iter(dataset)
        self.auto_collation, self.collate_fn, self.drop_last = auto_collation, collate_fn, drop_last

    def fetch(self, index):
        if not self.auto_collation:
            return self.collate_fn(next(self.samples))
        samples = list(itertools.islice(self.samples, len(index)))
        if not samples or (self.drop_last and len(samples) < len(index)):
            raise StopIteration
        return self.collate_fn(samples)


class _Job:
    """What a worker needs to know of its loader; must not hold the loader itself."""

    def __init__(self, loader):
        self.dataset = loader.dataset
        self.iterable = loader._dataset_kind == _DatasetKind.Iterable
        self.num_workers = loader.num_workers
        self.worker_init_fn = loader.worker_init_fn
        self.auto_collation = loader._auto_collation
        self.collate_fn = loader.collate_fn
        self.drop_last = loader.drop_last

    def make_fetcher(self):
        cls = _IterableFetcher if self.iterable else _MapFetcher
        return cls(self.dataset, self.auto_collation, self.collate_fn, self.drop_last)


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

    Arguments and their meaning are torch's. There is no pinned memory here, so pin_memory warns and
    does nothing.
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
        iterable = isinstance(dataset, IterableDataset)
        self._dataset_kind = _DatasetKind.Iterable if iterable else _DatasetKind.Map
        if batch_sampler is not None:
            batch_size = None
        if sampler is None:
            if iterable:
                sampler = _InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self._IterableDataset_len_called = None
        self._iterator = None
        self._warn_of_many_workers()
        self._initialized = True

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

    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def _get_iterator(self):
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        return _MultiProcessingDataLoaderIter(self)

    def __iter__(self):
        if self.persistent_workers and self.num_workers > 0:
            if self._iterator is None or self._iterator._shutdown:
                self._iterator = self._get_iterator()
            else:
                self._iterator._reset(self)
            return self._iterator
        return self._get_iterator()

    def __len__(self):
        if self._dataset_kind == _DatasetKind.Iterable:
            length = self._IterableDataset_len_called = len(self.dataset)
            if self.batch_size is not None:
                full, rest = divmod(length, self.batch_size)
                length = full if self.drop_last or not rest else full + 1
            return length
        return len(self._index_sampler)


class _BaseDataLoaderIter:
    """What both kinds of iteration have in common."""

    def __init__(self, loader):
        self._dataset_kind = loader._dataset_kind
        self._index_sampler = loader._index_sampler
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._num_workers = loader.num_workers
        self._timeout = loader.timeout
        self._generator = loader.generator
        self._sampler_iter = iter(self._index_sampler)
        self._base_seed = _fresh_seed(loader.generator)
        self._num_yielded = 0
        self._profile_name = f"enumerate(DataLoader)#{type(self).__name__}.__next__"
        if loader.pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory "
                "won't be used.",
                stacklevel=4,
            )

    def __iter__(self):
        return self

    def _reset(self, loader, first_iter=False):
        self._sampler_iter = iter(self._index_sampler)
        self._base_seed = _fresh_seed(loader.generator)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def _next_index(self):
        return next(self._sampler_iter)

    def _next_data(self):
        raise NotImplementedError

    def __next__(self):
        token = _begin(self._profile_name)
        try:
            data = self._next_data()
            self._num_yielded += 1
            expected = self._IterableDataset_len_called
            if (
                expected is not None
                and self._dataset_kind == _DatasetKind.Iterable
                and self._num_yielded > expected
            ):
                self._warn_of_length(expected)
            return data
        finally:
            _end(token)

    def _warn_of_length(self, expected):
        text = (
            f"Length of IterableDataset was reported to be {expected} (when accessing len(dataloader)), but "
            f"{self._num_yielded} samples have been fetched. "
        )
        if self._num_workers > 0:
            text += (
                "For multiprocessing data-loading, this could be caused by not properly configuring the "
                "IterableDataset replica at each worker."
            )
        warnings.warn(text, stacklevel=3)

    def __len__(self):
        return len(self._index_sampler)

    def __getstate__(self):
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Fetches in this process."""

    def __init__(self, loader):
        super().__init__(loader)
        self._fetcher = _Job(loader).make_fetcher()

    def _next_data(self):
        return self._fetcher.fetch(self._next_index())


class _Worker:
    """A worker as its loader sees it."""

    def __init__(self, context, job, worker_id):
        from ._utils import transport

        self.id = worker_id
        self.done = False  # an iterable data set has ended there
        self.backlog = deque()  # what there was no room for
        self.outstanding = 0
        self.exitcode = None  # once it has ended
        self.channel, child = transport.pair()
        try:
            self.process = context.Process(target=worker_loop, args=(child, job, worker_id), daemon=True)
            self.process.start()
        except BaseException:
            self.channel.close()
            raise
        finally:
            child.close()

    def send(self, message):
        """Never waits: a worker that waits for us to read would wait forever."""
        self.backlog.append(message)
        self.flush()

    def flush(self):
        from ._utils import transport

        try:
            while self.backlog and self.channel.send(self.backlog[0], wait=False):
                self.backlog.popleft()
        except transport.Closed:
            self.backlog.clear()  # it died; who reads from it next says so

    def receive(self):
        message = self.channel.receive()
        self.flush()
        return message


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Has workers fetch, ahead of what is asked for (L2).

    Batches have numbers: _send_idx the next to ask for, _rcvd_idx the next to give. _tasks holds the
    worker of each that is asked for, _ready what has come before its turn.
    """

    def __init__(self, loader):
        super().__init__(loader)
        import multiprocessing

        self._owner = os.getpid()
        self._prefetch = max(1, loader.prefetch_factor)
        self._in_order = loader.in_order
        self._persistent = loader.persistent_workers
        self._workers = []
        self._shutdown = False
        context = loader.multiprocessing_context or multiprocessing.get_context()
        job = _Job(loader)
        try:
            for i in range(self._num_workers):
                self._workers.append(_Worker(context, job, i))
            self._start_iteration()
        except BaseException:
            self._shutdown_workers()
            raise

    @property
    def _processes(self):
        return [worker.process for worker in self._workers]

    # ---- one iteration ----

    def _start_iteration(self):
        self._send_idx = self._rcvd_idx = 0
        self._tasks, self._ready = {}, {}
        self._turns = itertools.cycle(self._workers)
        self._exhausted = False
        waiting = set()
        for worker in self._workers:
            worker.done = False
            worker.outstanding = 0
            worker.backlog.clear()
            worker.send((RESUME, self._base_seed + worker.id))
            waiting.add(worker.id)
        while waiting:  # batches of an iteration that was left early come before the answer
            worker, message = self._receive()
            if message[0] == RESUME:
                waiting.discard(worker.id)
        for _ in range(self._prefetch * self._num_workers):
            self._ask()

    def _reset(self, loader, first_iter=False):
        super()._reset(loader)
        self._start_iteration()

    def _ask(self):
        """Asks a worker for the next batch, if there is one and the worker has room for it."""
        if self._exhausted:
            return
        for _ in range(self._num_workers):
            worker = next(self._turns)
            if not worker.done and (self._in_order or worker.outstanding < self._prefetch):
                break
        else:
            return
        try:
            index = self._next_index()
        except StopIteration:
            self._exhausted = True
            return
        worker.outstanding += 1
        self._tasks[self._send_idx] = worker
        worker.send((FETCH, self._send_idx, index))
        self._send_idx += 1

    # ---- receiving ----

    def _receive(self):
        """(worker, message) from whichever is first; raises when one died or the time is over."""
        import multiprocessing.connection as connection

        deadline = time.monotonic() + self._timeout if self._timeout > 0 else None
        while True:
            left = CHECK_SECONDS if deadline is None else max(0.0, deadline - time.monotonic())
            by_channel = {worker.channel: worker for worker in self._workers}
            by_sentinel = {worker.process.sentinel: worker for worker in self._workers}
            readable = connection.wait([*by_channel, *by_sentinel], min(left, CHECK_SECONDS))
            for item in readable:
                if item in by_channel:
                    return by_channel[item], self._read(by_channel[item])
            if readable:
                self._worker_died(by_sentinel[readable[0]])
            if deadline is not None and time.monotonic() >= deadline:
                self._shutdown_workers()
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")

    def _read(self, worker):
        from ._utils import transport

        try:
            return worker.receive()
        except transport.Closed:
            self._worker_died(worker)

    def _worker_died(self, worker):
        worker.process.join(1.0)
        text = describe_exit(worker.process)
        self._shutdown_workers()
        raise RuntimeError(text)

    def _next_data(self):
        if self._shutdown:
            raise StopIteration
        while True:
            # Batches that a worker of an iterable data set had no samples left for are passed over.
            while self._rcvd_idx < self._send_idx and self._rcvd_idx not in self._tasks:
                self._rcvd_idx += 1
            if self._rcvd_idx in self._ready:
                return self._give(self._rcvd_idx)
            if not self._in_order and self._ready:
                return self._give(next(iter(self._ready)))
            if self._rcvd_idx >= self._send_idx:
                if not self._persistent:
                    self._shutdown_workers()
                raise StopIteration
            worker, message = self._receive()
            number, data = message
            worker.outstanding -= 1
            if isinstance(data, Exhausted):
                worker.done = True
                del self._tasks[number]
                self._ask()
            else:
                self._ready[number] = data

    def _give(self, number):
        data = self._ready.pop(number)
        del self._tasks[number]
        self._ask()
        if isinstance(data, Raised):
            data.reraise()
        return data

    # ---- the end (L3) ----

    def _shutdown_workers(self):
        if self._shutdown:
            return
        self._shutdown = True
        self._tasks, self._ready = {}, {}
        if os.getpid() != self._owner:  # a fork's copy: the workers are its parent's
            for worker in self._workers:
                worker.channel.close()
            return
        for worker in self._workers:
            worker.channel.end()
        deadline = time.monotonic() + CHECK_SECONDS
        for worker in self._workers:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            if worker.process.is_alive():
                worker.process.terminate()
                worker.process.join(1.0)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
            worker.exitcode = worker.process.exitcode
            worker.process.close()

    def __del__(self):
        if not self.__dict__.get("_shutdown", True):
            self._shutdown_workers()
