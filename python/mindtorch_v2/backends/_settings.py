# SPDX-License-Identifier: Apache-2.0
"""Settings of torch's top level that change nothing here: results never depend on the order of threads, and products
of float32 are computed in float32. They are kept, so that a program reads what it has set."""

_kept = {"deterministic": False, "warn_only": False, "precision": "highest", "warn_always": False, "interop": 1}


def use_deterministic_algorithms(mode, *, warn_only=False):
    """All are deterministic."""
    _kept.update(deterministic=bool(mode), warn_only=bool(warn_only))


def are_deterministic_algorithms_enabled():
    """What was set."""
    return _kept["deterministic"]


def is_deterministic_algorithms_warn_only_enabled():
    """What was set."""
    return _kept["warn_only"]


def set_deterministic_debug_mode(debug_mode):
    """0, 1 and 2, or "default", "warn" and "error"."""
    level = {"default": 0, "warn": 1, "error": 2}.get(debug_mode, debug_mode)
    if level not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, 2, default, warn or error, but got {debug_mode}")
    use_deterministic_algorithms(level > 0, warn_only=level == 1)


def get_deterministic_debug_mode():
    """0, 1 or 2."""
    return 0 if not _kept["deterministic"] else 1 if _kept["warn_only"] else 2


def set_float32_matmul_precision(precision):
    """Products are computed in float32 in any case."""
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"invalid float32 matmul precision {precision!r}: highest, high or medium")
    _kept["precision"] = precision


def get_float32_matmul_precision():
    """What was set."""
    return _kept["precision"]


def set_warn_always(b):
    """Warnings are shown as Python's filters say."""
    _kept["warn_always"] = bool(b)


def is_warn_always_enabled():
    """What was set."""
    return _kept["warn_always"]


def set_num_interop_threads(number):
    """There are no such threads."""
    if not isinstance(number, int) or number < 1:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    _kept["interop"] = number


def get_num_interop_threads():
    """What was set."""
    return _kept["interop"]


def _assert(condition, message):
    """Python's assert as a function."""
    if not condition:
        raise AssertionError(message)
