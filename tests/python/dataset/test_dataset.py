# SPDX-License-Identifier: Apache-2.0
"""Data sets and queries without an engine: whose a trace is, folders that are complete or not there, command lines,
tables as text. With DuckDB also what the commands answer; more of that is in tools/peers/peer_query.sh."""
import contextlib
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import unittest
from unittest import mock

from support_results import ResultsTest, environment, small_trace

from mtprof.dataset import folder, parquet_command, query_command, show
from mtprof.dataset.engine import VIEWS, Answer, QueryError, question, questions
from mtprof.dataset.source import TABLES, Refused, Source, other_jobs, start_text

HAS_DUCKDB = importlib.util.find_spec("duckdb") is not None


def run(command, *words):
    """(exit status, standard output, standard error) of a command's main()."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = command.main(list(words))
    return status, out.getvalue(), err.getvalue()


class RankTest(ResultsTest):
    def write_rank(self, rank, size=2, name=None, **more):
        place = {"backend": "gloo", "rank": rank, "world_size": size}
        return self.write_trace({"distributedInfo": place, **small_trace(), **more}, name or f"rank{rank}.json")

    def write_damaged(self):
        path = self.write_rank(5, name="damaged.json")
        with open(path, "rb+") as file:
            file.truncate(os.path.getsize(path) - 400)
        return path


class Sources(RankTest):
    def test_place(self):
        source = Source(self.write_rank(1, 4, job_id="a/b"))
        self.assertEqual((source.job, source.rank, source.world_size, source.backend), ("a/b", 1, 4, "gloo"))
        self.assertEqual(folder.partition(source).split(os.sep)[:2], ["job=a%2Fb", "rank=1"])
        alone = Source(self.write_trace())
        self.assertEqual((alone.job, alone.rank, alone.world_size), ("none", 0, None))
        self.assertEqual(Source(self.write_trace(), job="mine").job, "mine")

    def test_a_place_that_is_none(self):
        for bad in ("x", [1], {"rank": "one"}, {"rank": -1}, {"rank": True}, {"rank": 2**40}):
            source = Source(self.write_trace({**small_trace(), "distributedInfo": bad}))
            self.assertEqual((source.rank, source.world_size), (0, None), bad)

    def test_start(self):
        self.assertEqual(start_text(1_000_000_001), "19700101T000001.000000001Z")
        self.assertEqual(start_text(-5), "19700101T000000.000000000Z")

    def test_refused(self):
        with self.assertRaisesRegex(Refused, "^no such file$"):
            Source(self.path("nothing.mtt"))
        with open(self.path("text.json"), "w", encoding="utf-8") as file:
            file.write("no trace")
        with self.assertRaises(Refused):
            Source(self.path("text.json"))
        damaged = self.write_damaged()
        with self.assertRaisesRegex(Refused, "damaged in 1 place, the first at byte"):
            Source(damaged)
        self.assertEqual(Source(damaged, keep_damaged=True).rank, 5)

    def test_other_jobs(self):
        sources = [Source(self.write_rank(rank, size, name=f"{rank}.json", job_id=job))
                   for rank, size, job in ((0, 2, "a"), (1, 2, "a"), (2, 2, "b"), (3, 8, "a"))]
        why = other_jobs(sources)
        self.assertEqual([source.rank for source in why], [2, 3])
        self.assertEqual(why[sources[2]], "of another job: b of 2 ranks, the others are job a of 2 ranks")
        self.assertEqual(other_jobs(sources[:2]), {})

    def test_job_of_the_environment(self):
        from mtprof.profiler import _job_id
        self.assertEqual(_job_id({"TORCHELASTIC_RUN_ID": "x", "SLURM_JOB_ID": "7"}), "x")
        self.assertEqual(_job_id({"TORCHELASTIC_RUN_ID": "none"}), None)
        self.assertEqual(_job_id({"SLURM_JOB_ID": "7"}), "7")
        self.assertEqual(_job_id({}), None)
        path = self.path("job.mtt")
        code = f"import mtprof\nwith mtprof.profile(path={path!r}):\n    pass\n"
        subprocess.run([sys.executable, "-c", code], env={**environment(), "SLURM_JOB_ID": "a 42"}, check=True)
        self.assertEqual(Source(path).job, "a 42")


class Folders(RankTest):
    def add(self, source, **changes):
        with folder.new_trace(self.path("set"), source, "sha256:x") as (made, manifest):
            for table in TABLES:
                with open(os.path.join(made, f"{table}.parquet"), "wb"):
                    pass
            manifest.update(changes)

    def test_complete_or_not_there(self):
        source = Source(self.write_rank(1))
        with self.assertRaises(KeyboardInterrupt), folder.new_trace(self.path("set"), source, "x") as (made, _):
            self.assertTrue(os.path.isdir(made))
            raise KeyboardInterrupt
        self.assertEqual(os.listdir(self.path("set")), [])
        self.assertFalse(folder.is_dataset(self.path("set")))
        self.add(source)
        found, left_out = folder.stored(self.path("set"))
        self.assertEqual(([(one.job, one.rank) for one in found], left_out), ([("none", 1)], {}))
        with self.assertRaises(OSError):  # its place is taken
            self.add(source)
        self.assertEqual(os.listdir(self.path("set")), ["job=none"])

    def test_another_schema_and_missing_files(self):
        self.add(Source(self.write_rank(0)), schema=99)
        self.add(Source(self.write_rank(1)))
        place = folder.folders(self.path("set"))[1]
        os.unlink(os.path.join(place, "steps.parquet"))
        found, left_out = folder.stored(self.path("set"))
        self.assertEqual(found, [])
        self.assertEqual(list(left_out.values()),
                         ["its schema is 99, this version reads 2", "steps.parquet is missing"])
        with open(os.path.join(place, "_trace.json"), "w", encoding="utf-8") as file:
            file.write("[]")
        self.assertIn("its _trace.json cannot be used", folder.stored(self.path("set"))[1][place])

    def test_what_was_killed_is_removed(self):
        done = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], check=True,
                              stdout=subprocess.PIPE, text=True)
        for owner in (done.stdout.strip(), str(os.getpid())):
            os.makedirs(self.path(f"set/_new-{owner}-00"))
        self.assertEqual(folder.remove_unfinished(self.path("set")), 1)
        self.assertEqual(os.listdir(self.path("set")), [f"_new-{os.getpid()}-00"])


class Questions(unittest.TestCase):
    def test_each_says_what_it_answers_and_uses_views(self):
        self.assertGreaterEqual(len(questions()), 10)
        for name, (about, text) in questions().items():
            self.assertTrue(about, name)
            self.assertLessEqual(len(f"{name:14} {about}"), 80, name)
            used = set(re.findall(r"(?:FROM|JOIN) (\w+)", text))
            self.assertTrue(used and used <= set(VIEWS), (name, used))

    def test_names_and_queries(self):
        self.assertEqual(question("select 1"), "select 1")
        self.assertEqual(question("top_ops"), questions()["top_ops"][1])
        with self.assertRaises(QueryError) as raised:
            question("topops")
        self.assertEqual(raised.exception.hint, "did you mean 'top_ops'?")


class Shown(unittest.TestCase):
    answer = Answer([("name", False), ("ns", True)], [("a" * 100, 5), (None, 1.5), ("é\n\x1b", None)])

    def test_a_table_fits(self):
        lines, no_room = show.table(self.answer, 40)
        self.assertEqual(no_room, [])
        self.assertLessEqual(max(map(len, lines)), 40)
        self.assertIn("…", lines[2])
        self.assertTrue(lines[2].endswith("  5"))
        self.assertEqual(lines[3].split(), ["-", "1.5"])
        self.assertTrue(lines[4].startswith("é??"))
        self.assertEqual(show.table(Answer([], [])), (["", ""], []))

    def test_numbers_are_never_cut(self):
        """Columns without room are left out from the end, and named."""
        columns = [("name", False), *((f"n{i}", True) for i in range(10))]
        lines, no_room = show.table(Answer(columns, [["a" * 50, *(10**9 + i for i in range(10))]]), 80)
        self.assertLessEqual(max(map(len, lines)), 80)
        self.assertEqual(lines[2].split()[1:], [str(10**9 + i) for i in range(6)])
        self.assertEqual(no_room, ["n6", "n7", "n8", "n9"])
        lines, no_room = show.table(Answer([("n", True)], [[10**90]]), 80)  # one column is always shown
        self.assertEqual((lines[2], no_room), (str(10**90), []))

    def test_csv_and_json(self):
        out = io.StringIO()
        show.write_csv(Answer([("a", False), ("b", True)], [('x,"', 1), (None, 2)]), out)
        self.assertEqual(out.getvalue(), 'a,b\n"x,""",1\n,2\n')
        made = json.loads(show.as_json(self.answer, 3, {"x": "gone"}))
        self.assertEqual((made["traces"], made["left_out"]), (3, [{"trace": "x", "reason": "gone"}]))
        self.assertEqual(made["rows"][1], [None, 1.5])


class CommandLines(RankTest):
    def test_misuse(self):
        for command, words, text in (
                (query_command, [], "a query is needed"), (query_command, ["select 1"], "a trace or a data set is needed"),
                (query_command, ["--forma", "csv"], "unknown option '--forma'"),
                (query_command, ["-f", "xml", "x", "y"], "'xml' is not one of table, csv, json, parquet"),
                (parquet_command, ["-o", "x"], "traces are needed"), (parquet_command, ["x"], "folder is needed"),
                (parquet_command, ["x", "-o", "y", "--writer", "z"], "unknown option '--writer'"),
                (parquet_command, ["x", "-o", "y", "-j", "0"], "'0' is not a number from 1")):
            status, _, err = run(command, *words)
            self.assertEqual(status, 2, words)
            self.assertIn(text, err)
            self.assertIn("hint: ", err)

    def test_what_needs_no_engine(self):
        self.assertEqual(run(query_command, "--list")[0], 0)
        self.assertEqual(run(query_command, "--sql", "losses")[1], questions()["losses"][1])
        status, _, err = run(query_command, "top_opps", "x.mtt")
        self.assertEqual((status, err), (1, "mtprof: query: there is no question 'top_opps'\n"
                                            "  hint: did you mean 'top_ops'?\n"))
        status, _, err = run(query_command, self.folder, "top_ops")
        self.assertEqual(err, f"mtprof: query: '{self.folder}' is no question\n"
                              "  hint: the query comes first, then the traces\n")
        status, _, err = run(query_command, "select 1", self.path("x.mtt"), self.folder)
        self.assertEqual(status, 1)
        self.assertIn("x.mtt: left out: no such file", err)
        self.assertIn("a folder, but no data set", err)
        self.assertIn("no trace is left to ask", err)

    def test_missing_packages_are_named(self):
        with mock.patch.dict(sys.modules, {"duckdb": None, "pyspark": None, "pyspark.sql": None}):
            for engine in ("duckdb", "spark"):
                with mock.patch.object(query_command, "gather", return_value=([], [object()], {})):
                    status, _, err = run(query_command, "losses", "x", "--engine", engine)
                self.assertEqual(status, 1)
                self.assertIn("pip install 'mindtorch[", err)


@unittest.skipUnless(HAS_DUCKDB, "DuckDB is not installed; peer_query.sh has it")
class Answers(RankTest):
    def ask(self, *words):
        status, out, err = run(query_command, "--json", *words)
        return status, json.loads(out) if out else None, err

    def test_traces_that_are_left_out(self):
        paths = [self.write_rank(0), self.write_rank(1), self.write_rank(2, 8), self.write_damaged(), self.path("gone.mtt")]
        status, made, err = self.ask("select rank from ranks order by rank", *paths)
        self.assertEqual((status, made["rows"], made["traces"]), (4, [[0], [1]], 2))
        self.assertEqual([os.path.basename(one["trace"]) for one in made["left_out"]],
                         ["damaged.json", "gone.mtt", "rank2.json"])
        self.assertEqual(err.count(": left out: "), 3)
        self.assertEqual(self.ask("select count(*) from ranks", "--job", "any", *paths[:3])[1]["rows"], [[3]])

    def test_a_data_set(self):
        paths = [self.write_rank(0), self.write_rank(1), self.write_damaged()]
        status, out, err = run(parquet_command, *paths, "-o", self.path("set"), "--json")
        self.assertEqual((status, json.loads(out)["added"]), (4, paths[:2]))
        self.assertIn("damaged.json: left out", err)
        status, out, _ = run(parquet_command, *paths[:2], paths[0], "-o", self.path("set"), "--json")
        self.assertEqual((status, json.loads(out)["skipped"]), (0, [*paths[:2], paths[0]]))
        for text in ("select rank, count(*), sum(self_ns) from events group by rank order by rank", "overview",
                     "top_ops"):
            self.assertEqual(self.ask(text, self.path("set"))[1]["rows"], self.ask(text, *paths[:2])[1]["rows"], text)
        other = self.write_trace({**small_trace(), "distributedInfo": {"rank": 0}}, "other.json")
        status, _, err = run(parquet_command, other, "-o", self.path("set"))
        self.assertEqual(status, 1)
        self.assertIn("has been written from rank0.json", err)

    def test_processes(self):
        paths = [self.write_rank(rank) for rank in range(3)]
        done = subprocess.run([sys.executable, "-m", "mtprof", "export", "parquet", *paths, "-j", "2", "-o",
                               self.path("set"), "--json"], env=environment(), check=True, stdout=subprocess.PIPE)
        self.assertEqual(json.loads(done.stdout)["added"], paths)

    def test_errors_name_what_was_meant(self):
        path = self.write_rank(0)
        for text, hint in (("select self_n from ops", "did you mean 'self_ns'?"), ("select 1 from event", "events")):
            status, _, err = self.ask(text, path)
            self.assertEqual(status, 1)
            self.assertIn(hint, err)
        for text in ("drop view events", "select 1; select 2", "copy ops to 'x'", "set threads = 1"):
            status, _, err = self.ask(text, path)
            self.assertEqual(status, 1, text)
            self.assertIn("exactly one SELECT", err)
        status, _, err = run(query_command, "select 1", path, "-o", self.path("no/x"))
        self.assertEqual(status, 1)
        self.assertIn("cannot write", err)
        secret = self.path("secret.csv")
        with open(secret, "w", encoding="utf-8") as file:
            file.write("a\n1\n")
        for text in (f"select * from read_csv('{secret}')", f"select * from '{secret}'"):
            status, _, err = self.ask(text, path)
            self.assertEqual(status, 1, text)


if __name__ == "__main__":
    unittest.main()
