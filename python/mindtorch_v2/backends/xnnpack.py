# SPDX-License-Identifier: Apache-2.0
"""torch.backends.xnnpack: it is not used."""

enabled = False
