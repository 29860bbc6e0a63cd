# SPDX-License-Identifier: Apache-2.0
"""The default generator of the process: seeds and states."""

import contextlib

from . import _C

default_generator = _C.default_generator


def manual_seed(seed):
    """Seeds the default generator, which it returns."""
    return default_generator.manual_seed(int(seed))


def seed():
    """Seeds the default generator from the system; returns the seed."""
    return default_generator.seed()


def initial_seed():
    """What the default generator was seeded with."""
    return default_generator.initial_seed()


def get_rng_state():
    """The default generator's state, a tensor of uint8."""
    return default_generator.get_state()


def set_rng_state(new_state):
    """Goes back to a state of get_rng_state()."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True, device_type="npu"):
    """Whatever happens to the default generator inside is forgotten at the end."""
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)
