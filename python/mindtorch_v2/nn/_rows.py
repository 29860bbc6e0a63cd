# SPDX-License-Identifier: Apache-2.0
"""The op table as nn sees it: rows that exist, and the way around those that do not.

`ops.NAME` is a row of the op table. `row(NAME)` is the row, or None where this build has none: what
nn can do with other rows it then does so, at the price of other names in a profile.
"""

from .. import _C

ops = _C.ops

_rows = {}


def row(name):
    """The row of this name, or None."""
    try:
        return _rows[name]
    except KeyError:  # asked for the first time
        found = _rows[name] = getattr(ops, name, None)
        return found
