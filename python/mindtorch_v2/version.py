# SPDX-License-Identifier: Apache-2.0
"""The version of mindtorch_v2, which is that of its libraries."""

__version__ = "0.1.0"
cuda = None
hip = None
