# SPDX-License-Identifier: Apache-2.0
"""A trace's tables as Parquet files, by pyarrow or by DuckDB: one batch of events in memory at a time."""
import importlib.util
import io
import json
import os

from mtprof.dataset.folder import new_trace
from mtprof.dataset.source import ARROW_TABLES, HEALTH_COLUMNS, RANK_COLUMNS, Refused

# Numbers that grow, or differ little from row to row. What is null is not stored. Of these, columns that packing leaves
# with little to compress are not compressed: that would take a third of the time again, and a tenth off their size.
DELTA = ("event", "start_ns", "dur_ns", "self_ns", "parent", "correlation", "link", "sequence", "forward", "stack")
PACKED = ("dur_ns", "self_ns")
STATISTICS = ("event", "start_ns", "dur_ns", "step", "track", "device")  # by which readers leave out row groups
BATCH = 16384  # values that are encoded at a time; the default of 1024 costs a tenth more
EXTRA = "pip install 'mindtorch[query]' brings pyarrow and DuckDB; one of them is enough"


def choose_writer(name=None):
    """The writer of that name, or the one that is installed; Refused: none is."""
    known = {"pyarrow": PyarrowWriter, "duckdb": DuckdbWriter}
    for one in [name] if name else known:
        if importlib.util.find_spec(one) is not None:
            return known[one]()
    raise Refused((f"{name} is not installed; " if name else "neither pyarrow nor DuckDB is installed; ") + EXTRA)


class PyarrowWriter:
    """Writes by pyarrow, which lets the encoding of each column be chosen."""

    def __init__(self):
        import pyarrow
        import pyarrow.parquet
        self._arrow, self._parquet = pyarrow, pyarrow.parquet
        self.name = f"pyarrow {pyarrow.__version__}"

    def _write(self, reader, path):
        schema, rows = reader.schema, 0
        dictionaries = [field.name for field in schema if self._arrow.types.is_dictionary(field.type)]
        delta = [field.name for field in schema if field.name in DELTA and field.name not in dictionaries]
        statistics = [field.name for field in schema if field.name in STATISTICS]
        compression = {field.name: "none" if field.name in PACKED else "zstd" for field in schema}
        with self._parquet.ParquetWriter(
                path, schema, compression=compression, store_schema=False, use_dictionary=dictionaries or False,
                compression_level={name: 1 for name, codec in compression.items() if codec == "zstd"},
                column_encoding={name: "DELTA_BINARY_PACKED" for name in delta} or None,
                write_statistics=statistics or False, write_batch_size=BATCH) as writer:
            for batch in reader:
                writer.write_batch(batch)
                rows += batch.num_rows
        return rows

    def stream(self, table, path):
        """Writes what has __arrow_c_stream__; how many rows."""
        return self._write(self._arrow.RecordBatchReader.from_stream(table), path)

    def rows(self, columns, rows, path):
        """Writes dicts; columns: their names and SQL types."""
        types = {"BIGINT": self._arrow.int64(), "VARCHAR": self._arrow.string(), "BOOLEAN": self._arrow.bool_(),
                 "DOUBLE": self._arrow.float64(), "INTEGER": self._arrow.int32()}
        schema = self._arrow.schema([(name, types[kind]) for name, kind in columns.items()])
        # As JSON, since pyarrow imports pandas, which takes longer than a trace, to look at Python's values.
        import pyarrow.json
        text = "".join(json.dumps({name: row[name] for name in columns}) + "\n" for row in rows)
        options = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
        made = schema.empty_table()
        if rows:
            made = pyarrow.json.read_json(io.BytesIO(text.encode()), parse_options=options)
        return self._write(self._arrow.RecordBatchReader.from_batches(schema, made.to_batches()), path)


class DuckdbWriter:
    """Writes by DuckDB, where pyarrow is not installed."""

    def __init__(self):
        import duckdb
        self._connection = duckdb.connect()
        self.name = f"duckdb {duckdb.__version__}"

    def _copy(self, name, path):
        quoted = path.replace("'", "''")
        done = self._connection.execute(f"COPY (SELECT * FROM {name}) TO '{quoted}' "
                                        "(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 131072)")
        return done.fetchall()[0][0]

    def stream(self, table, path):
        """Writes what has __arrow_c_stream__; how many rows."""
        self._connection.register("made", table)
        try:
            return self._copy("made", path)
        finally:
            self._connection.unregister("made")

    def rows(self, columns, rows, path):
        """Writes dicts; columns: their names and SQL types."""
        fill_table(self._connection, "rows_made", columns, rows)
        return self._copy("rows_made", path)


def fill_table(connection, name, columns, rows):
    """A table of a DuckDB connection, from dicts."""
    listed = ", ".join(f'"{column}" {kind}' for column, kind in columns.items())
    connection.execute(f"CREATE OR REPLACE TABLE {name} ({listed})")
    if rows:
        places = ", ".join("?" * len(columns))
        connection.executemany(f"INSERT INTO {name} VALUES ({places})",
                               [[row[column] for column in columns] for row in rows])


def write_trace(path, source, writer, identity, replaced=None):
    """Adds a trace to the data set: its manifest."""
    with new_trace(path, source, identity, replaced) as (folder, manifest):
        rows = {}
        for table in ARROW_TABLES:
            rows[table] = writer.stream(source.arrow(table), os.path.join(folder, f"{table}.parquet"))
        rows["ranks"] = writer.rows(RANK_COLUMNS, [source.rank_row()], os.path.join(folder, "ranks.parquet"))
        rows["health"] = writer.rows(HEALTH_COLUMNS, source.health_rows(), os.path.join(folder, "health.parquet"))
        sizes = {table: os.path.getsize(os.path.join(folder, f"{table}.parquet")) for table in rows}
        manifest["writer"] = writer.name
        manifest["tables"] = {table: {"rows": n, "bytes": sizes[table]} for table, n in rows.items()}
    return manifest
