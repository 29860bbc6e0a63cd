# SPDX-License-Identifier: Apache-2.0
"""Many traces as one data set, and questions to it in SQL: `mtprof export parquet` and `mtprof query`.

source.py opens a trace and says whose it is; folder.py knows where a trace lies in a data set and what is complete;
writer.py writes a trace's tables; engine.py has the views, duckdb_engine.py and spark_engine.py answer. The columns of
the tables are libmtprof's (arrow.h); docs/dataset.md lists them. Packages that the engines need are imported where
they are used, so that a message can say which extra brings them.
"""
