# SPDX-License-Identifier: Apache-2.0
"""torch.backends.openmp: it is not used."""


def is_available():
    """No."""
    return False
