# SPDX-License-Identifier: Apache-2.0
"""Interrupts during long work in C: loading, tables and exports end soon, leak nothing, and
can be done again. The mtprof command: tests/cli/test_interrupted.py."""
import gzip
import os
import random
import shutil
import signal
import tempfile
import threading
import time
import unittest

import mtprof

FORMATS = ("chrome", "perfetto", "stacks", "folded", "speedscope", "csv", "execution")


class Interrupted(Exception):
    pass


def interrupt(number, frame):
    raise Interrupted


class Interrupts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="mt_interrupts.")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.trace = os.path.join(cls.folder, "big.mtt")

        def work():
            for i in range(30_000):
                with mtprof.record_function(f"name {i % 100}"):
                    pass

        with mtprof.profile(path=cls.trace, with_stack=True):
            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        cls.rng = random.Random(int(os.environ.get("MT_SEED", "5")))

    def setUp(self):
        before = signal.signal(signal.SIGALRM, interrupt)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)

    def interrupted(self, work, seconds):
        """Whether the alarm came before the work was done."""
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            work()
            signal.setitimer(signal.ITIMER_REAL, 0)
            return False
        except Interrupted:
            return True

    def often(self, work, check, rounds=8):
        """Interrupts at random moments of the time that the work takes; how often it was in its midst."""
        begin = time.perf_counter()
        work()
        whole = time.perf_counter() - begin
        check(False)
        hits = 0
        for _ in range(rounds):
            stopped = self.interrupted(work, max(1e-4, self.rng.random() * whole))
            hits += stopped
            check(stopped)
        work()  # and then it works again
        check(False)
        return hits

    def test_exports(self):
        model = mtprof._mtprof.Model.open(self.trace)
        folder = os.path.join(self.folder, "out")
        hits = 0
        for form in FORMATS:
            for ending in ("", ".gz"):
                os.mkdir(folder)
                path = os.path.join(folder, f"out{ending}")

                def check(stopped, path=path):
                    left = os.listdir(folder)
                    self.assertLessEqual(set(left), {os.path.basename(path)}, left)
                    if os.path.exists(path):
                        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
                            while file.read(1 << 20):  # complete, also where the next was interrupted
                                pass

                with self.subTest(form + ending):
                    hits += self.often(lambda: model.export(form, path), check, rounds=4)
                shutil.rmtree(folder)
        self.assertGreater(hits, 0)

    def test_an_old_file_stays(self):
        model = mtprof._mtprof.Model.open(self.trace)
        path = os.path.join(self.folder, "old.json")
        with open(path, "w") as file:
            file.write("old")
        self.assertTrue(self.interrupted(lambda: model.export("chrome", path), 1e-4))
        with open(path) as file:
            self.assertEqual(file.read(), "old")
        os.unlink(path)

    def test_building(self):
        """The columns of a model: given up, made again, and other threads wait for who makes them."""
        models = []

        def work():
            models.append(mtprof._mtprof.Model.open(self.trace))
            models[-1].averages()

        self.assertGreater(self.often(work, lambda stopped: None, rounds=20), 0)
        counts = set()
        for model in models:
            counts.add(model.findings()["events"])  # also those that were interrupted
        self.assertEqual(counts, {90_000})

    def test_a_handler_that_goes_on(self):
        """A signal that raises nothing ends nothing, and may use the profiler, though not the model in the making."""
        seen = []
        model = mtprof._mtprof.Model.open(self.trace)

        def handler(number, frame):
            try:
                seen.append(model.findings()["events"])
            except RuntimeError as error:
                seen.append(str(error))
            with mtprof.profile() as prof, mtprof.record_function("in a handler"):
                pass
            seen.append(len(prof.events()))
            signal.setitimer(signal.ITIMER_REAL, 0.02)  # not before this one is done

        with mtprof.profile() as prof, mtprof.record_function("x"):
            pass
        prof.events()  # imports what it needs
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.005)
        model.averages()
        path = os.path.join(self.folder, "on.json")
        model.export("chrome", path)
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.assertIn(1, seen)
        self.assertLessEqual({text for text in seen if isinstance(text, str)},
                             {"make model: asked for from its own progress function"})
        self.assertGreater(os.path.getsize(path), 100_000)
        os.unlink(path)

    def test_saving(self):
        with mtprof.profile() as prof:
            for _ in range(300_000):
                mtprof.end(mtprof.begin("x"))
        folder = os.path.join(self.folder, "saved")
        os.mkdir(folder)
        path = os.path.join(folder, "t.mtt")

        def check(stopped):
            self.assertEqual(os.listdir(folder), ["t.mtt"])

        self.often(lambda: prof.save(path), check, rounds=12)
        self.assertEqual(mtprof.load(path).health().begins, 300_000)
        shutil.rmtree(folder)

    def test_loading_json(self):
        path = os.path.join(self.folder, "trace.json")
        mtprof._mtprof.Model.open(self.trace).export("chrome", path)
        self.assertGreater(self.often(lambda: mtprof.load(path), lambda stopped: None, rounds=8), 0)
        os.unlink(path)

    def test_keyboard_interrupt(self):
        model = mtprof._mtprof.Model.open(self.trace)
        model.averages()
        path = os.path.join(self.folder, "key.json")
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            for _ in range(1000):
                model.export("chrome", path)
        self.assertLessEqual({name for name in os.listdir(self.folder) if name != "key.json"}, {"big.mtt"})


if __name__ == "__main__":
    unittest.main(verbosity=2)
