# SPDX-License-Identifier: Apache-2.0
"""torch.mps: there is no such device."""

from ..xpu import *  # noqa: F403 the same answers
