# SPDX-License-Identifier: Apache-2.0
"""What a worker process of a loader does: fetch what it is told to, send it, go when nobody listens.

    loader ──► (RESUME, seed) | (FETCH, number, indices)      worker ──► (number, batch) | (number, Raised)
                                                                         | (number, Exhausted) | (RESUME,)
"""

__all__ = ["WorkerInfo", "get_worker_info"]

RESUME = "resume"
FETCH = "fetch"
CHECK_SECONDS = 5.0  # how often a worker looks whether its loader still lives

_worker_info = None


class WorkerInfo:
    """What a data set can know of the worker that it is in."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)
        self._fields = tuple(attributes)

    def __setattr__(self, name, value):
        if "_fields" in self.__dict__:
            raise RuntimeError(f"Cannot assign attributes to {type(self).__name__} objects")
        super().__setattr__(name, value)

    def __repr__(self):
        fields = ", ".join(f"{name}={getattr(self, name)}" for name in self._fields)
        return f"{type(self).__name__}({fields})"


def get_worker_info():
    """id, num_workers, seed and dataset in a worker process; None elsewhere."""
    return _worker_info


class Exhausted:
    """A worker's copy of an iterable data set has no more samples."""


class _KeyErrorMessage(str):
    """A KeyError shows its argument's repr, which would put all lines of a traceback into one."""

    def __repr__(self):
        return str(self)


class Raised:
    """An exception of another process, with its traceback as text."""

    def __init__(self, error, where):
        import traceback

        self.where = where
        self.kind = type(error)
        self.name = self.kind.__name__
        self.text = "".join(traceback.format_exception(type(error), error, error.__traceback__))

    def __reduce__(self):
        import pickle

        try:
            pickle.loads(pickle.dumps(self.kind))
            kind = self.kind
        except Exception:  # a class that only the worker knows
            kind = RuntimeError
        return _raised, (kind, self.name, self.text, self.where)

    def reraise(self):
        """Raises an exception of the same class, whose message has the worker's traceback."""
        message = f"Caught {self.name} {self.where}.\nOriginal {self.text}"
        if self.kind is KeyError:
            message = _KeyErrorMessage(message)
        try:
            error = self.kind(message)
        except Exception:  # its class wants other arguments
            raise RuntimeError(message) from None
        raise error


def _raised(kind, name, text, where):
    made = Raised.__new__(Raised)
    made.kind, made.name, made.text, made.where = kind, name, text, where
    return made


def _seed(seed):
    import random
    import sys

    import mindtorch_v2 as torch

    random.seed(seed)
    torch.manual_seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed([seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF])


class _Fetching:
    """The state of a worker between two messages."""

    def __init__(self, job, worker_id):
        self.job = job
        self.worker_id = worker_id
        self.where = f"in DataLoader worker process {worker_id}"
        self.fetcher = None
        self.failure = None

    def begin(self, seed, initialise):
        """A new iteration. What fails here is raised by the first batch."""
        global _worker_info

        job = self.job
        self.fetcher = self.failure = None
        try:
            _seed(seed)
            _worker_info = WorkerInfo(
                id=self.worker_id, num_workers=job.num_workers, seed=seed, dataset=job.dataset
            )
            if initialise and job.worker_init_fn is not None:
                job.worker_init_fn(self.worker_id)
            self.fetcher = job.make_fetcher()
        except Exception as error:
            self.failure = Raised(error, self.where)

    def answer(self, index):
        """A batch, or what stands for it."""
        if self.failure is not None:
            return self.failure
        if self.fetcher is None:
            return Exhausted()
        try:
            return self.fetcher.fetch(index)
        except StopIteration as error:
            if not self.job.iterable:
                return Raised(error, self.where)
            self.fetcher = None
            return Exhausted()
        except Exception as error:
            return Raised(error, self.where)


def _listen(channel, state, transport, parent):
    initialise = True
    while True:
        while not channel.poll(CHECK_SECONDS):
            if parent is not None and not parent.is_alive():
                return
        message = channel.receive()
        if message[0] == RESUME:
            state.begin(message[1], initialise)
            initialise = False
            channel.send((RESUME,))
            continue
        _, number, index = message
        answer = state.answer(index)
        try:
            channel.send((number, answer))
        except transport.Closed:
            raise
        except Exception as error:  # a batch that cannot be pickled
            channel.send((number, Raised(error, state.where)))
        del answer


def worker_loop(channel, job, worker_id):
    """The main function of a worker."""
    import multiprocessing

    import mindtorch_v2 as torch

    from . import transport

    transport.close_inherited()
    torch.set_num_threads(1)
    try:
        _listen(channel, _Fetching(job, worker_id), transport, multiprocessing.parent_process())
    except (transport.Closed, KeyboardInterrupt):
        pass  # the loader is gone, or raises KeyboardInterrupt itself
    finally:
        channel.close()


def describe_exit(process):
    """How a worker that died died."""
    code = process.exitcode
    if code is not None and code < 0:
        import signal

        try:
            name = signal.strsignal(-code) or f"signal {-code}"
        except ValueError:
            name = f"signal {-code}"
        return f"DataLoader worker (pid {process.pid}) is killed by signal: {name}."
    return f"DataLoader worker (pid {process.pid}) exited unexpectedly with exit code {code}."


