# SPDX-License-Identifier: Apache-2.0
"""Grad mode: no_grad, enable_grad, set_grad_enabled and inference_mode, as blocks and as decorators.

The mode belongs to the thread. A decorated generator has its mode while it runs, not while it waits.
"""
import functools

from .._C import _set_grad_enabled, _set_inference_mode, is_grad_enabled, is_inference_mode_enabled

__all__ = ["no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "is_inference_mode_enabled"]

def _is_generator(func):
    """Whether a call makes a generator; inspect knows more cases, and takes 6 ms to import."""
    while isinstance(func, functools.partial):
        func = func.func
    code = getattr(getattr(func, "__func__", func), "__code__", None)
    return code is not None and bool(code.co_flags & 0x20)


def _wrap_generator(context, func):
    """Enters the mode each time the generator continues, leaves it each time it yields."""

    @functools.wraps(func)
    def generator(*args, **kwargs):
        with context.clone():
            inner = func(*args, **kwargs)
        step, given = inner.send, None
        try:
            while True:
                with context.clone():
                    value = step(given)
                try:
                    given = yield value
                    step = inner.send
                except GeneratorExit:
                    with context.clone():
                        inner.close()
                    raise
                except BaseException as error:  # whatever the caller threw goes to the generator
                    step, given = inner.throw, error
        except StopIteration as stop:
            return stop.value

    return generator


class _Mode:
    """A context manager that is a decorator too; each call of the function has a context of its own."""

    def clone(self):
        """Another one with the same arguments."""
        return type(self)()

    def __call__(self, func):
        if isinstance(func, type):
            import warnings

            warnings.warn("Decorating classes is deprecated and will be disabled in future versions. You should only "
                          "decorate functions or methods. To preserve the current behavior of class decoration, you "
                          "can directly decorate the `__init__` method and nothing else.", FutureWarning, stacklevel=2)
            func.__init__ = self(func.__init__)
            return func
        if _is_generator(func):
            return _wrap_generator(self, func)

        @functools.wraps(func)
        def wrapped(*args, **kwargs):
            with self.clone():
                return func(*args, **kwargs)

        return wrapped


class _PlainMode(_Mode):
    """A mode without arguments: `@torch.no_grad` is the same as `@torch.no_grad()`."""

    _mode = True

    def __new__(cls, orig_func=None):
        made = super().__new__(cls)
        return made if orig_func is None else made(orig_func)

    def __init__(self, orig_func=None):
        self.prev = False

    def __enter__(self):
        self.prev = _set_grad_enabled(self._mode)

    def __exit__(self, exc_type, exc_value, traceback):
        _set_grad_enabled(self.prev)


class no_grad(_PlainMode):
    """No graph is recorded inside."""

    _mode = False


class enable_grad(_PlainMode):
    """Graphs are recorded inside, whatever is around it."""

    _mode = True


class set_grad_enabled(_Mode):
    """Sets the mode at once; as a block or a decorator it puts the former one back."""

    def __init__(self, mode):
        if not isinstance(mode, bool):
            raise TypeError("set_grad_enabled(): argument 'enabled' (position 1) must be bool, "
                            f"not {type(mode).__name__}")
        self.mode = mode
        self.prev = _set_grad_enabled(mode)

    def __call__(self, func):
        _set_grad_enabled(self.prev)
        return super().__call__(func)

    def __enter__(self):
        _set_grad_enabled(self.mode)

    def __exit__(self, exc_type, exc_value, traceback):
        _set_grad_enabled(self.prev)

    def clone(self):
        """Another one with the same mode."""
        return type(self)(self.mode)

    def __str__(self):
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    __repr__ = __str__


class inference_mode(_Mode):
    """As no_grad(), and tensors made inside cannot be written outside, nor be kept by graphs."""

    def __new__(cls, mode=True):
        made = super().__new__(cls)
        if isinstance(mode, bool):
            return made
        made.mode = True
        return made(mode)

    def __init__(self, mode=True):
        self.mode = mode
        self.prev = None

    def __enter__(self):
        self.prev = (is_grad_enabled(), _set_inference_mode(self.mode))

    def __exit__(self, exc_type, exc_value, traceback):
        grad, inference = self.prev
        _set_inference_mode(inference)
        _set_grad_enabled(grad)

    def clone(self):
        """Another one with the same mode."""
        return type(self)(self.mode)
