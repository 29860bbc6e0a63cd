# SPDX-License-Identifier: Apache-2.0
"""torch.backends.mps: there is none."""


def is_available():
    """No."""
    return False


def is_built():
    """No."""
    return False


def is_macos13_or_newer(minor=0):
    """No."""
    return False
