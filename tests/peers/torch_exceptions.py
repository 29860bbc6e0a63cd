# SPDX-License-Identifier: Apache-2.0
"""Differences from torch that are decisions. torch_ops.py counts them as skipped and prints them with
their reasons; one that no longer occurs fails.

Each: rows (a regular expression), the kind of difference (value, error, words, gradient, node), a
regular expression in the report, the reason.
"""

DECISIONS = []
