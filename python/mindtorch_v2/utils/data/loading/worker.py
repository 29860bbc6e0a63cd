# SPDX-License-Identifier: Apache-2.0
"""What a worker process of a loader does: fetch what it is asked for, send it, end when the loader
is gone.

    loader ──► (RESUME, seed) | (FETCH, number, request)      worker ──► (number, batch) | (number, Raised)
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


class _Iteration:
    """The state of a worker between two messages."""

    def __init__(self, plan, seat, seats, initialise):
        self.plan = plan
        self.seat = seat
        self.seats = seats
        self.initialise = initialise  # called once, in the first iteration
        self.where = f"in DataLoader worker process {seat}"
        self.make = None

    def begin(self, seed):
        """A new iteration. What fails here is the answer to every request."""
        global _worker_info

        initialise, self.initialise = self.initialise, None
        try:
            _seed(seed)
            _worker_info = WorkerInfo(
                id=self.seat, num_workers=self.seats, seed=seed, dataset=self.plan.dataset
            )
            if initialise is not None:
                initialise(self.seat)
            self.make = self.plan.open()
        except Exception as error:
            failure = Raised(error, self.where)
            self.make = lambda request: failure

    def answer(self, request):
        """A batch, or an object that says why there is none."""
        try:
            return self.make(request)
        except StopIteration as error:
            if not self.plan.iterable:
                return Raised(error, self.where)
            self.make = lambda request: Exhausted()
            return Exhausted()
        except Exception as error:
            return Raised(error, self.where)


def _serve(channel, iteration, closed, parent):
    """Answers messages until the loader is gone."""
    while True:
        while not channel.poll(CHECK_SECONDS):
            if parent is not None and not parent.is_alive():
                return
        message = channel.receive()
        if message[0] == RESUME:
            iteration.begin(message[1])
            channel.send((RESUME,))
            continue
        _, number, request = message
        answer = iteration.answer(request)
        try:
            channel.send((number, answer))
        except closed:
            raise
        except Exception as error:  # a batch that cannot be pickled
            channel.send((number, Raised(error, iteration.where)))
        del answer


def work(channel, plan, seat, seats, initialise):
    """The main function of a worker."""
    import multiprocessing

    import mindtorch_v2 as torch

    from . import transport

    transport.close_inherited()
    torch.set_num_threads(1)
    torch.set_default_device(None)  # the accelerator is the loader's
    iteration = _Iteration(plan, seat, seats, initialise)
    try:
        _serve(channel, iteration, transport.Closed, multiprocessing.parent_process())
    except (transport.Closed, KeyboardInterrupt):
        pass  # the loader is gone, or raises KeyboardInterrupt itself
    finally:
        channel.close()
