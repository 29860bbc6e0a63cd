# SPDX-License-Identifier: Apache-2.0
"""torch.profiler.itt."""
from mtprof.itt import is_available, mark, range, range_pop, range_push

__all__ = ["is_available", "range_push", "range_pop", "mark", "range"]
