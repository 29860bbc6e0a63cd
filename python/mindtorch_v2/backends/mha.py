# SPDX-License-Identifier: Apache-2.0
"""torch.backends.mha: the inference path of attention layers. They have one path."""

_fastpath = True


def get_fastpath_enabled():
    """What was set."""
    return _fastpath


def set_fastpath_enabled(value):
    """Is kept, and changes nothing."""
    global _fastpath
    _fastpath = value
