# SPDX-License-Identifier: Apache-2.0
"""torch.backends.mkl: it is not used."""


def is_available():
    """No."""
    return False
