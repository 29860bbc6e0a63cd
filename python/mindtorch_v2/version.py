# SPDX-License-Identifier: Apache-2.0
"""The version of mindtorch_v2, which is that of its libraries."""
from ._C import version as __version__

cuda = None
hip = None
