# SPDX-License-Identifier: Apache-2.0
"""Queries by Apache Spark over data sets, where one machine is not enough: the same views and questions as DuckDB's.

A query has the rights of the Spark session. Statements other than SELECT, files named in SQL and functions that call
Java are refused; what else a cluster allows is its administrator's to say.
"""
import contextlib
import logging
import os
import re

from mtprof.dataset.engine import VIEWS, Answer, QueryError
from mtprof.dataset.source import SCHEMA, TABLES, Refused

NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
CALLS_JAVA = re.compile(r"\b(?:try_reflect|reflect|java_method)\b`?\s*\(", re.IGNORECASE)


def _pyspark():
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise Refused("Spark is not installed; pip install 'mindtorch[spark]' brings it (it needs Java 17)") from None
    return SparkSession


def root_of(stored):
    """The data set that a stored trace is in: DIR of DIR/job=J/rank=R/start=S."""
    return os.path.abspath(os.path.join(stored.folder, "..", "..", ".."))


class SparkEngine:
    """Answers queries over stored traces, and over data sets at addresses such as s3a://bucket/folder."""

    def __init__(self, stored, master="local[*]", addresses=()):
        builder = _pyspark().builder.master(master).appName("mtprof query")
        for name, value in {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
                            "spark.log.level": "ERROR", "spark.sql.session.timeZone": "UTC",
                            "spark.sql.sources.partitionColumnTypeInference.enabled": "false"}.items():
            builder = builder.config(name, value)
        self._spark = builder.getOrCreate()
        self._spark.sparkContext.setLogLevel("ERROR")
        logging.getLogger("SQLQueryContextLogger").disabled = True  # it prints what _problem() says
        try:
            for table in TABLES:
                self._make_table(table, stored, addresses)
            self._check_schema(addresses)
            for view, select in VIEWS.items():
                self._spark.sql(select).createOrReplaceTempView(view)
        except BaseException:
            self.close()
            raise
        self._spark.conf.set("spark.sql.runSQLOnFiles", "false")

    def close(self):
        """Ends the session."""
        self._spark.stop()

    def _make_table(self, table, stored, addresses):
        by_root = {}
        for one in stored:
            by_root.setdefault(root_of(one), []).append("file://" + os.path.abspath(one.file(table)))
        for address in addresses:
            by_root[address] = [f"{address.rstrip('/')}/job=*/rank=*/start=*/{table}.parquet"]
        made = None
        for root, files in by_root.items():
            base = root if "://" in root else "file://" + root
            part = self._spark.read.option("basePath", base).parquet(*files)
            made = part if made is None else made.unionByName(part)
        made.createOrReplaceTempView(f"t_{table}")

    def _check_schema(self, addresses):
        """Stored traces were checked by their manifests."""
        if addresses:
            others = [row[0] for row in self._spark.sql("SELECT DISTINCT schema FROM t_ranks").collect()]
            if others != [SCHEMA]:
                raise Refused(f"the data set has schemas {others}, this version reads {SCHEMA}")

    def _run(self, text):
        from pyspark.errors import PySparkException
        if CALLS_JAVA.search(text):
            raise QueryError("functions that call Java are refused")
        try:
            # Only what gives rows can stand here: commands cannot.
            self._spark.sql(f"SELECT * FROM (\n{text.strip().rstrip(';')}\n) AS asked LIMIT 0")
            return self._spark.sql(text)
        except PySparkException as error:
            if type(error).__name__ == "ParseException":
                raise QueryError("this is not one SELECT: " + str(error).strip().splitlines()[0],
                                 "exactly one SELECT is answered") from None
            raise self._problem(error) from None

    def _problem(self, error):
        """Spark's words in one line, with what was meant as the hint."""
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        near = re.search(r"Did you mean one of the following\? \[([^\]]*)\]", text)
        names = re.findall(r"`(\w+)`", near.group(1)) if near else []
        text = re.sub(r" A column, variable, or function parameter.*", "", text) if near is None else text
        return QueryError(text, f"did you mean '{names[0]}'?" if names else None)

    def ask(self, text, limit=None):
        """The answer to a SELECT; QueryError. limit: at most so many rows."""
        from pyspark.errors import PySparkException
        made = self._run(text)
        try:
            rows = made.collect() if limit is None else made.limit(limit).collect()
        except PySparkException as error:
            raise self._problem(error) from None
        columns = [(field.name, field.dataType.simpleString().startswith(NUMBERS)) for field in made.schema.fields]
        return Answer(columns, [tuple(row) for row in rows])

    def arrow(self, text):
        """The answer as what writes Parquet: pyarrow's table."""
        with contextlib.suppress(AttributeError):
            return self._run(text).toArrow()
        raise Refused("this version of Spark gives no Arrow tables; use another --format")

    def schema(self):
        """The views' columns: {view: [(name, type)]}."""
        return {view: [(field.name, field.dataType.simpleString()) for field in self._spark.table(view).schema.fields]
                for view in VIEWS}
