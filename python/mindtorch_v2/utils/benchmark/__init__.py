# SPDX-License-Identifier: Apache-2.0
"""torch.utils.benchmark: Timer measures a statement, Compare prints a table of measurements."""

from .compare import Compare
from .measurement import Measurement, TaskSpec, select_unit, trim_sigfig
from .timer import Timer, timer

__all__ = ["Compare", "Measurement", "TaskSpec", "Timer", "select_unit", "timer", "trim_sigfig"]
