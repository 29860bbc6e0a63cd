# SPDX-License-Identifier: Apache-2.0
"""Queries by DuckDB, over open traces and stored ones alike.

  - exactly one SELECT is run: other statements are refused before DuckDB sees them
  - before it runs, files and the network are switched off and the settings are locked: what a query can read is the
    registered traces and the Parquet files of this call
"""
import re

from mtprof.dataset.engine import VIEWS, Answer, QueryError
from mtprof.dataset.source import TABLES, Refused

NUMBERS = ("INT", "DOUBLE", "FLOAT", "DECIMAL")


def _duckdb():
    try:
        import duckdb
    except ImportError:
        raise Refused("DuckDB is not installed; pip install 'mindtorch[query]' brings it") from None
    return duckdb


def _text(value):
    return "'" + str(value).replace("'", "''") + "'"


class DuckdbEngine:
    """Answers queries over these traces: Sources and Stored ones."""

    def __init__(self, sources, stored, memory=None):
        self._duckdb = _duckdb()
        self._connection = self._duckdb.connect()
        self._sources = sources  # their models live as long as the views
        self._run("SET autoinstall_known_extensions = false")
        self._run("SET autoload_known_extensions = false")
        if memory:
            self._run(f"SET memory_limit = {_text(memory)}")
        for table in TABLES:
            self._make_table(table, sources, stored)
        for view, select in VIEWS.items():
            self._run(f"CREATE VIEW {view} AS {select}")
        self._lock([one.file(table) for one in stored for table in TABLES])

    def _run(self, text):
        return self._connection.execute(text)

    def _make_table(self, table, sources, stored):
        parts = []
        for i, source in enumerate(sources):
            name = f"s{i}_{table}"
            self._connection.register(name, source.arrow(table))
            parts.append(f"SELECT {_text(source.job)} AS job, {source.rank} AS rank, {_text(source.start)} AS start, * "
                         f"FROM {name}")
        if stored:
            files = ", ".join(_text(one.file(table)) for one in stored)
            columns = "{'job': VARCHAR, 'rank': INTEGER, 'start': VARCHAR}"
            parts.append(f"SELECT job, rank, start, * EXCLUDE (job, rank, start) FROM read_parquet([{files}], "
                         f"hive_partitioning = true, hive_types = {columns})")
        self._run(f"CREATE VIEW t_{table} AS {' UNION ALL '.join(parts)}")

    def _lock(self, files):
        if files:
            self._run(f"SET allowed_paths = [{', '.join(map(_text, files))}]")
        self._run("SET python_enable_replacements = false")
        self._run("SET enable_external_access = false")
        self._run("SET lock_configuration = true")

    def _only_select(self, text):
        try:
            statements = self._duckdb.extract_statements(text)
        except self._duckdb.Error as error:
            raise self._problem(error) from None
        if len(statements) != 1 or statements[0].type != self._duckdb.StatementType.SELECT:
            raise QueryError("exactly one SELECT is answered", "views and their columns: mtprof query --schema")
        return statements[0]

    def _problem(self, error):
        """DuckDB's words, with what was meant as the hint."""
        lines = [line for line in str(error).splitlines() if line.strip()]
        text = re.sub(r"^(\w+ )+Error: ", "", lines[0]) if lines else type(error).__name__
        hint = next((line for line in lines if line.startswith("Did you mean")), None)
        candidates = next((line for line in lines if line.startswith("Candidate bindings")), None)
        if candidates:
            names = re.findall(r'"([^"]+)"', candidates)
            hint = f"did you mean '{names[0]}'?" if names else None
        if "'pytz'" in text:
            return QueryError("times with a zone need the package pytz", "CAST them AS VARCHAR, or install pytz")
        return QueryError(text, hint and hint[0].lower() + hint[1:])

    def ask(self, text, limit=None):
        """The answer to a SELECT; QueryError. limit: at most so many rows."""
        statement = self._only_select(text)
        try:
            done = self._connection.execute(statement)
            columns = [(one[0], str(one[1]).upper().startswith(NUMBERS) or "INT" in str(one[1]).upper())
                       for one in done.description]
            return Answer(columns, done.fetchall() if limit is None else done.fetchmany(limit))
        except self._duckdb.Error as error:
            raise self._problem(error) from None

    def arrow(self, text):
        """The answer as what writes Parquet: pyarrow's table."""
        self._only_select(text)
        try:
            return self._connection.sql(text).to_arrow_table()
        except self._duckdb.Error as error:
            raise self._problem(error) from None

    def schema(self):
        """The views' columns: {view: [(name, type)]}."""
        return {view: [(row[0], row[1]) for row in self._run(f"DESCRIBE {view}").fetchall()] for view in VIEWS}
