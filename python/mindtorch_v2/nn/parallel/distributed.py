# SPDX-License-Identifier: Apache-2.0
"""torch.nn.parallel.distributed: another name of the wrapper's module."""

from . import DistributedDataParallel

__all__ = ["DistributedDataParallel"]
