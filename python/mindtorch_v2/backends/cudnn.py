# SPDX-License-Identifier: Apache-2.0
"""torch.backends.cudnn: its switches. There is no cuDNN."""

import contextlib

enabled, benchmark, deterministic, allow_tf32, benchmark_limit = True, False, False, True, 10
fp32_precision = "none"


def is_available():
    """No."""
    return False


def version():
    """None."""
    return None


def is_acceptable(tensor):
    """No."""
    return False


@contextlib.contextmanager
def flags(enabled=False, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True,
          fp32_precision="none"):
    """The switches, within a block."""
    new = dict(locals())
    before = {name: globals()[name] for name in new}
    globals().update(new)
    try:
        yield
    finally:
        globals().update(before)
