# SPDX-License-Identifier: Apache-2.0
"""torch.cpu: the host as a device, for programs that treat all devices alike."""

import contextlib

__all__ = ["current_device", "current_stream", "device_count", "is_available", "is_initialized", "set_device",
           "stream", "synchronize", "Stream", "StreamContext"]


def is_available():
    """Yes."""
    return True


is_initialized = is_available


def device_count():
    """1."""
    return 1


def current_device():
    """Its name."""
    return "cpu"


def set_device(device):
    """There is no other."""


def synchronize(device=None):
    """Work of the host is done when its call returns."""


class Stream:
    """The host's only one."""

    def __init__(self, priority=-1):
        pass

    def wait_stream(self, stream):
        """Nothing is pending."""

    def record_event(self):
        """Nothing is pending."""

    wait_event = wait_stream


_stream = Stream()


def current_stream(device=None):
    """The host's only one."""
    return _stream


class StreamContext(contextlib.AbstractContextManager):
    """with stream(s): changes nothing."""

    def __init__(self, stream):
        self.stream = stream

    def __exit__(self, *_):
        pass


def stream(stream):
    """A context in which nothing is different."""
    return StreamContext(stream)


def __getattr__(name):
    if name == "amp":
        import importlib
        return importlib.import_module(f"{__name__}.amp")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
