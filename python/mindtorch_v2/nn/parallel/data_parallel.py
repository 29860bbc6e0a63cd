# SPDX-License-Identifier: Apache-2.0
"""torch.nn.parallel.data_parallel: another name of the wrapper's module."""

from . import DataParallel, data_parallel

__all__ = ["DataParallel", "data_parallel"]
