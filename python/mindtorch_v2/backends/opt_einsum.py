# SPDX-License-Identifier: Apache-2.0
"""torch.backends.opt_einsum: it is not used; einsum() contracts from left to right."""

enabled, strategy = False, None


def is_available():
    """No."""
    return False


def get_opt_einsum():
    """None."""
    return None
