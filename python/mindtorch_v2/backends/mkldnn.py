# SPDX-License-Identifier: Apache-2.0
"""torch.backends.mkldnn: it is not used."""


def is_available():
    """No."""
    return False


enabled, deterministic, allow_tf32, fp32_precision = True, False, True, "none"
