# SPDX-License-Identifier: Apache-2.0
"""Parts of the loader: how samples become a batch, and what its worker processes do."""

from . import collate, worker

__all__ = ["collate", "worker"]
