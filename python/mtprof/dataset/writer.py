# SPDX-License-Identifier: Apache-2.0
"""A trace's tables as Parquet files. libmtprof writes them, one batch of rows in memory at a time: no package is
needed."""
import os

from mtprof import _mtprof
from mtprof.dataset.folder import new_trace
from mtprof.dataset.source import TABLES


def write_trace(path, source, identity, replaced=None):
    """Adds a trace to the data set: its manifest."""
    with new_trace(path, source, identity, replaced) as (folder, manifest):
        tables = {}
        for table in TABLES:
            file = os.path.join(folder, f"{table}.parquet")
            rows = _mtprof.write_parquet(source.arrow(table).__arrow_c_stream__(), file)
            tables[table] = {"rows": rows, "bytes": os.path.getsize(file)}
        manifest["writer"] = f"mtprof {_mtprof.version}"
        manifest["tables"] = tables
    return manifest
