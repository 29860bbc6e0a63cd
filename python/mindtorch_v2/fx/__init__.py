# SPDX-License-Identifier: Apache-2.0
"""torch.fx: functions can be marked as leaves of a trace; there is no tracing."""

__all__ = ["wrap"]


def wrap(fn_or_name):
    """Returns what it is given: there is no trace that could enter it."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(f"fx.wrap: a function or its name is needed, not {type(fn_or_name).__name__}")
    return fn_or_name
