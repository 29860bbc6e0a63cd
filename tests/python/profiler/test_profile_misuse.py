# SPDX-License-Identifier: Apache-2.0
"""Misuse fails as torch-contract 1.7 says, and never harms what follows."""
import copy
import gc
import os
import pickle
import subprocess
import sys
import tempfile
import traceback
import unittest
import warnings

import mtprof
from mtprof import ProfilerAction, _mtprof, profile, record_function
from mtprof.config import parse_bytes, parse_share
from mtprof.profiler import _KinetoProfile
from support_asan import UNDER_ASAN

NONE, WARMUP, RECORD, SAVE = ProfilerAction


class Custom(Exception):
    pass


def scope(name):
    with record_function(name):
        pass


def names(prof):
    return [event.name for event in prof.events()]


class Case(unittest.TestCase):
    def tearDown(self):
        """Whatever a test did: a new profiler works."""
        with profile() as prof:
            scope("afterwards")
        self.assertEqual(names(prof), ["afterwards"])


class BeforeTheStart(Case):
    def test_texts(self):
        prof = profile(with_stack=True)
        for call, what in ((prof.events, "accessing events"), (prof.key_averages, "getting key averages"),
                           (prof.stop, "stopping trace"), (prof.stop_trace, "stopping trace"),
                           (prof.start_trace, "starting trace"),
                           (lambda: prof.export_chrome_trace("x"), "exporting chrome trace"),
                           (lambda: prof.export_stacks("x"), "exporting stacks"),
                           (prof.health, "reading its health"), (lambda: prof.save("x"), "saving a trace")):
            with self.assertRaises(AssertionError) as caught:
                call()
            self.assertEqual(str(caught.exception), f"Profiler must be initialized before {what}")
        self.assertIsNone(prof.get_trace_id())
        self.assertIn("start() was not called", prof.explain())
        self.assertFalse(os.path.exists("x"))

    def test_step(self):
        prof = profile()
        with self.assertRaisesRegex(RuntimeError, "not running"):
            prof.step()
        self.assertEqual(prof.step_num, 0)
        with prof:
            pass
        with self.assertRaises(RuntimeError):
            prof.step()

    def test_never_prepared(self):
        with profile(schedule=lambda step: NONE) as prof:
            prof.step()
        with self.assertRaisesRegex(AssertionError, "accessing events"):
            prof.events()

    @unittest.skipUnless(hasattr(Exception, "add_note"), "exceptions have no notes before Python 3.11")
    def test_a_schedule_that_was_not_reached(self):
        with profile(schedule=mtprof.schedule(wait=1, warmup=1, active=1)) as prof:
            scope("x")
        with self.assertRaises(AssertionError) as caught:
            prof.key_averages()
        self.assertEqual(caught.exception.__notes__,
                         ["0 steps recorded: step() was called 0 times, the schedule needs 2"])

    def test_something_else_as_a_schedule(self):
        with self.assertRaisesRegex(TypeError, r"schedule\(wait=1, warmup=1, active=3\)"):
            profile(schedule=[1])

    def test_a_bare_decorator(self):
        class Named(record_function):
            pass
        for base in (record_function, Named):
            with self.assertRaisesRegex(TypeError, r'write @record_function\("name"\) above the function'):
                @base
                def function():
                    pass

    def test_overhead_as_a_part(self):
        for given, ppm in (("1%", 10000), (" 0.5 %", 5000), (0.02, 20000), (None, 0), (0, 0), ("100%", 1000000)):
            self.assertEqual(parse_share("overhead", given), ppm, given)
        with profile(overhead="100%") as prof:
            scope("x")
        self.assertEqual(names(prof), ["x"])
        self.assertEqual((prof.health().limit_ppm, prof.health().unrecorded), (1000000, 0))
        for wrong in ("", "1", "1 percent", [1], True):
            with self.assertRaisesRegex(ValueError, 'as in "1%" or 0.01'):
                profile(overhead=wrong)
        for wrong in ("101%", -0.1, 2, 1e-9, float("nan")):
            with self.assertRaisesRegex(ValueError, "between 0.0001% and 100%"):
                profile(overhead=wrong)

    def test_buffer_bytes_as_text(self):
        for text, size in (("64K", 64 << 10), ("1M", 1 << 20), ("2MiB", 2 << 20), ("1.5 mb", 3 << 19),
                           ("1G", 1 << 30), ("65536", 65536), ("131072B", 131072)):
            self.assertEqual(parse_bytes("buffer_bytes", text), size, text)
        with profile(buffer_bytes="1M", policy="ring") as prof:
            scope("x")
        self.assertEqual(names(prof), ["x"])
        for wrong in ("", "M", "64Q", "-1M", "1e6", "64 M B"):
            with self.assertRaisesRegex(ValueError, '"64M"'):
                profile(buffer_bytes=wrong)
        for wrong in (0, -1, "0M"):
            with self.assertRaisesRegex(ValueError, "must be positive"):
                profile(buffer_bytes=wrong)
        with self.assertRaisesRegex(TypeError, '"64M"'):
            profile(buffer_bytes=1.5)

    def test_memory_timeline_names_what_is_missing(self):
        for flags, said in (({}, "record_shapes=True, profile_memory=True, with_stack=True"),
                            ({"profile_memory": True}, "record_shapes=True, with_stack=True"),
                            ({"record_shapes": True, "with_stack": True}, "profile_memory=True")):
            with self.assertWarns(FutureWarning):
                with self.assertRaises(ValueError) as caught:
                    profile(**flags).export_memory_timeline("x.json")
            self.assertEqual(str(caught.exception), said + " required for memory profiling.")

    def test_export_stacks_of_nothing_is_an_empty_file(self):
        """No window was recorded: that is no reason to ask for with_stack, which was given."""
        with tempfile.TemporaryDirectory() as folder:
            trace, out = os.path.join(folder, "t.mtt"), os.path.join(folder, "stacks")
            with profile(with_stack=True, schedule=mtprof.schedule(wait=0, warmup=1, active=1), path=trace):
                pass
            mtprof.load(trace).export("stacks", out)
            self.assertEqual(os.path.getsize(out), 0)

    def test_export_stacks_needs_stacks(self):
        with profile() as prof:
            scope("x")
        with self.assertRaisesRegex(AssertionError, r"export_stacks\(\) requires with_stack=True"):
            prof.export_stacks("x")


class Arguments(Case):
    def test_constructor(self):
        for call in (lambda: profile(1), lambda: profile(unknown=1), lambda: profile(schedule=5),
                     lambda: profile(schedule="x"), lambda: _KinetoProfile(schedule=None)):
            with self.assertRaises(TypeError):
                call()

    def test_negative_timeout_is_told_at_start(self):
        prof = profile(post_processing_timeout_s=-1.0)
        with self.assertRaisesRegex(ValueError, "post_processing_timeout_s must be non-negative"):
            prof.start()
        with self.assertRaises(AssertionError):
            prof.events()
        prof.post_processing_timeout_s = 5.0
        with prof:
            scope("x")
        self.assertEqual(names(prof), ["x"])

    def test_use_cuda(self):
        said = "`use_cuda` is deprecated, use `activities` argument instead"
        with self.assertWarnsRegex(FutureWarning, said):
            prof = profile(activities=["CPU"], use_cuda=False)
        with prof:
            scope("x")
        self.assertEqual(names(prof), ["x"])

    def test_callback_that_cannot_be_called(self):
        prof = profile(on_trace_ready=5)
        with self.assertRaises(TypeError):
            with prof:
                scope("x")
        self.assertEqual(names(prof), ["x"])

    def test_schedule_answers_nonsense(self):
        answers = iter([RECORD, None, "x", 99, RECORD])
        with profile(schedule=lambda step: next(answers)) as prof:
            scope("a")
            prof.step()
            self.assertIsNone(prof.current_action)
            prof.step()
            self.assertEqual(prof.current_action, "x")
            prof.step()
            self.assertEqual(prof.current_action, 99)
            prof.step()
            scope("b")
        self.assertIn("a", [event.name for event in prof.events()] + ["a"])
        self.assertIs(prof.current_action, RECORD)


class Sessions(Case):
    def test_start_twice(self):
        with profile() as prof:
            scope("a")
            with self.assertRaisesRegex(RuntimeError, "already enabled"):
                prof.start()
            scope("b")
        self.assertEqual(names(prof), ["a", "b"])

    def test_second_profiler(self):
        with profile() as outer:
            scope("a")
            inner = profile()
            with self.assertRaises(RuntimeError):
                inner.start()
            with self.assertRaises(RuntimeError):
                with profile():
                    self.fail("entered")
            with self.assertRaises(RuntimeError):
                inner.prepare_trace()
            with self.assertRaises(AssertionError):
                inner.events()
            scope("b")
        self.assertEqual(names(outer), ["a", "b"])
        with inner:
            scope("c")
        self.assertEqual(names(inner), ["c"])

    def test_active_in_steps_that_record_nothing(self):
        with profile(schedule=lambda step: NONE):
            with self.assertRaises(RuntimeError):
                profile().start()

    def test_stop_twice(self):
        calls = []
        prof = profile(on_trace_ready=calls.append)
        prof.start()
        scope("x")
        prof.stop()
        with self.assertWarnsRegex(UserWarning, "not running"):
            prof.stop()
        self.assertEqual((names(prof), calls), (["x"], [prof]))

    def test_prepare_while_recording(self):
        with profile() as prof:
            with self.assertRaises(RuntimeError):
                prof.prepare_trace()
            scope("x")
        self.assertEqual(names(prof), ["x"])

    def test_exports_may_be_repeated(self):
        with profile() as prof:
            scope("x")
        with tempfile.TemporaryDirectory() as folder:
            for name in ("a.json", "b.json.gz", "a.json"):
                prof.export_chrome_trace(os.path.join(folder, name))
            self.assertEqual(sorted(os.listdir(folder)), ["a.json", "b.json.gz"])
            with self.assertRaises(FileNotFoundError) as caught:
                prof.export_chrome_trace(os.path.join(folder, "no", "x.json"))
            self.assertEqual(caught.exception.filename, os.path.join(folder, "no", "x.json"))


class Raising(Case):
    def check_ended(self, prof, calls=0):
        """The session is over, the results are kept, stop() is silent, no callback is called."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            prof.stop()
        with self.assertRaises(RuntimeError):
            prof.step()
        with self.assertWarns(UserWarning):
            prof.stop()

    def test_callback_at_stop(self):
        error = Custom("ready")

        def ready(prof):
            raise error
        prof = profile(on_trace_ready=ready)
        prof.start()
        scope("x")
        try:
            prof.stop()
            self.fail("nothing was raised")
        except Custom as caught:
            self.assertIs(caught, error)
            frames = [frame.name for frame in traceback.extract_tb(caught.__traceback__)]
        self.assertEqual((frames[0], frames[-1]), ("test_callback_at_stop", "ready"))
        self.assertEqual(names(prof), ["x"])
        self.check_ended(prof)

    def test_callback_at_step(self):
        calls = []

        def ready(prof):
            calls.append(names(prof))
            raise Custom("ready")
        with self.assertRaises(Custom):
            with profile(schedule=lambda step: SAVE, on_trace_ready=ready) as prof:
                scope("x")
                prof.step()
        self.assertEqual(len(calls), 1)
        self.assertIn("x", names(prof))

    def test_schedule(self):
        calls = []

        def plan(step):
            if step == 2:
                raise Custom("schedule")
            return RECORD
        prof = profile(schedule=plan, on_trace_ready=calls.append)
        prof.start()
        scope("x")
        prof.step()
        with self.assertRaises(Custom):
            prof.step()
        self.assertIn("x", names(prof))
        self.check_ended(prof)
        self.assertEqual(calls, [])
        with self.assertRaises(Custom):
            profile(schedule=lambda step: (_ for _ in ()).throw(Custom()))

    def test_observer(self):
        class Observer:
            at = "start"

            def start(self):
                if self.at == "start":
                    raise Custom("start")

            def stop(self):
                if self.at == "stop":
                    raise Custom("stop")
        observer = Observer()
        prof = profile(execution_trace_observer=observer)
        with self.assertRaisesRegex(Custom, "start"):
            prof.start()
        observer.at = "stop"
        prof.start()
        scope("x")
        with self.assertRaisesRegex(Custom, "stop"):
            prof.stop()
        self.assertEqual(names(prof), ["x"])

    def test_trace_id(self):
        prof = profile(custom_trace_id_callback=lambda: 1 / 0)
        with self.assertRaises(ZeroDivisionError):
            prof.start()
        self.assertIsNone(prof.get_trace_id())

    def test_two_at_once_the_first_is_told(self):
        class Observer:
            def start(self):
                pass

            def stop(self):
                raise Custom("second")

        def plan(step):
            if step == 1:
                raise Custom("first")
            return RECORD
        lost = []
        hook, sys.unraisablehook = sys.unraisablehook, lambda info: lost.append(str(info.exc_value))
        try:
            prof = profile(schedule=plan, execution_trace_observer=Observer())
            prof.start()
            with self.assertRaisesRegex(Custom, "first"):
                prof.step()
        finally:
            sys.unraisablehook = hook
        self.assertEqual(lost, ["second"])

    def test_base_exceptions_pass_too(self):
        for kind in (KeyboardInterrupt, SystemExit):
            def ready(prof, kind=kind):
                raise kind()
            with self.assertRaises(kind):
                with profile(on_trace_ready=ready):
                    pass

    def test_no_references_stay(self):
        error = Custom("x")

        def ready(prof):
            raise error
        before = sys.getrefcount(error)
        for _ in range(20):
            try:
                with profile(on_trace_ready=ready):
                    pass
            except Custom:
                pass
        error.__traceback__ = error.__context__ = None
        gc.collect()
        self.assertLessEqual(sys.getrefcount(error) - before, 1)

    def test_warnings_as_errors(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            letters = [RECORD, NONE, NONE]
            prof = profile(schedule=lambda step: letters[step])
            prof.start()
            scope("x")
            with self.assertRaisesRegex(UserWarning, "Incorrect schedule: RECORD followed by NONE"):
                prof.step()
            prof.step()
            prof.stop()
        self.assertIn("x", names(prof))

    def test_incorrect_schedules_warn(self):
        for letters, said in (((WARMUP, NONE), "WARMUP followed by NONE"),
                              ((RECORD, NONE), "RECORD followed by NONE"),
                              ((RECORD, WARMUP), "RECORD followed by WARMUP")):
            with self.assertWarnsRegex(UserWarning, "Incorrect schedule: " + said) as caught:
                with profile(schedule=lambda step, letters=letters: letters[step]) as prof:
                    prof.step()
            self.assertEqual(caught.filename, __file__)

    def test_where_torch_crashes(self):
        """RECORD, WARMUP, RECORD starts a trace that was not prepared."""
        letters = [WARMUP, RECORD, WARMUP, RECORD, SAVE, NONE]
        calls = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with profile(schedule=lambda step: letters[step],
                         on_trace_ready=lambda p: calls.append(names(p))) as prof:
                for step in range(5):
                    scope(f"s{step}")
                    prof.step()
        self.assertEqual(len(calls), 1)
        self.assertEqual([name for name in calls[0] if name[0] == "s"], ["s3", "s4"])


class InsideCallbacks(Case):
    def test_stop_and_start_from_the_callback(self):
        log = []

        def ready(prof):
            log.append(names(prof))
            if len(log) == 1:
                prof.stop()
                prof.start()
                scope("again")
        prof = profile(on_trace_ready=ready)
        prof.start()
        scope("x")
        prof.stop()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            prof.stop()
        self.assertEqual(log[0], ["x"])
        self.assertLessEqual(len(log), 2)

    def test_step_from_the_callback(self):
        caught = []

        def ready(prof):
            try:
                prof.step()
            except RuntimeError as error:
                caught.append(error)
        with profile(on_trace_ready=ready):
            scope("x")
        self.assertEqual(len(caught), 1)

    def test_another_profiler_from_the_callback(self):
        inner = []

        def ready(prof):
            with profile() as other:
                scope("inner")
            inner.append(names(other))
        with profile(on_trace_ready=ready) as prof:
            scope("x")
        self.assertEqual((names(prof), inner), (["x"], [["inner"]]))

    def test_callback_drops_the_last_reference(self):
        box = []

        def ready(prof):
            del box[:]
            gc.collect()
        box.append(profile(on_trace_ready=ready))
        box[0].start()
        box[0].stop()
        self.assertEqual(box, [])

    def test_init_again_from_the_callback(self):
        caught = []

        def ready(prof):
            try:
                prof.__init__()
            except RuntimeError as error:
                caught.append(error)
        with profile(on_trace_ready=ready):
            pass
        self.assertEqual(len(caught), 1)


    def test_init_again_from_the_schedule(self):
        caught = []

        def plan(step):
            try:
                prof.__init__(schedule=plan)
            except RuntimeError as error:
                caught.append(error)
            return RECORD
        prof = profile.__new__(profile)
        prof.__init__(schedule=plan)
        self.assertEqual(len(caught), 1)
        with prof:
            scope("x")
        self.assertIn("x", names(prof))

    def test_save_from_the_callback(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.mtt")
            with profile(on_trace_ready=lambda prof: prof.save(path)):
                scope("x")
            self.assertEqual([event.name for event in mtprof.load(path).events()], ["x"])


class Objects(Case):
    def test_without_init(self):
        for prof in (profile.__new__(profile), _mtprof.Profile()):
            for call in ("_start", "_step", "_stop", "_window", "_explain", "_trace_id"):
                with self.assertRaisesRegex(RuntimeError, "__init__"):
                    getattr(prof, call)()
            self.assertEqual(prof._step_num, 0)
            self.assertFalse(prof._running)

    def test_init_twice(self):
        with profile() as prof:
            scope("x")
            with self.assertRaisesRegex(RuntimeError, "running"):
                prof.__init__()
        prof.__init__(activities=["CPU"])
        with self.assertRaises(AssertionError):
            prof.events()
        with prof:
            scope("y")
        self.assertEqual(names(prof), ["y"])

    def test_there_are_no_copies(self):
        with profile() as prof:
            for call in (copy.copy, copy.deepcopy, pickle.dumps):
                with self.assertRaises(TypeError):
                    call(prof)
            scope("x")
        self.assertEqual(names(prof), ["x"])

    def test_base_without_methods(self):
        """What C calls back must be there: an object without it fails, it does not crash."""
        bare = _mtprof.Profile()
        bare._open(1, 0)
        hook, sys.unraisablehook = sys.unraisablehook, lambda info: None  # its end is reported, too
        try:
            with self.assertRaises(AttributeError):
                bare._start()
        finally:
            sys.unraisablehook = hook

    def test_bad_arguments_of_the_c_half(self):
        bare = _mtprof.Profile()
        for args, kwargs in (((), {}), ((1,), {}), ((0, 0), {}), ((1, 1 << 30), {}), ((1, 0), {"policy": 9}),
                             ((1, 0), {"schedule": (1, 2)}), ((1, 0), {"schedule": (-1, 0, 0, 0, 0, 0)}),
                             ((1, 0), {"path": 3}), (("x", 0), {})):
            with self.assertRaises((TypeError, ValueError)):
                bare._open(*args, **kwargs)
        prof = profile()
        for call in (lambda: prof._metadata(9, "a", "b"), lambda: prof._metadata(0, "a"),
                     lambda: prof._toggle(True, 1 << 20), lambda: prof._model("x"), lambda: prof._model(-1),
                     lambda: _mtprof.schedule_check([1]), lambda: _mtprof.schedule_action((1,), 1)):
            with self.assertRaises((TypeError, ValueError, OverflowError)):
                call()


@unittest.skipIf(UNDER_ASAN, "a fork in a process with threads may find AddressSanitizer's allocator locked")
class Fork(Case):
    CODE = r"""
import gc, os, sys, warnings
import mtprof
warnings.simplefilter("ignore")
prof = mtprof.profile(on_trace_ready=lambda p: None)
prof.start()
with mtprof.record_function("parent"):
    pid = os.fork()
    if pid == 0:
        status = 0
        for call in (prof.step, prof.stop, prof.start, prof.events, prof.prepare_trace, prof.explain,
                     prof.get_trace_id, lambda: prof.add_metadata("a", "b")):
            try:
                call()
                status |= 1 << 0
            except RuntimeError:
                pass
        del prof
        gc.collect()
        with mtprof.profile() as own:
            with mtprof.record_function("child"):
                pass
        if [e.name for e in own.events()] != ["child"]:
            status |= 2
        sys.stdout.flush()
        os._exit(status)
_, status = os.waitpid(pid, 0)
prof.stop()
assert status == 0, status
assert [e.name for e in prof.events()] == ["parent"]
print("fine")
"""

    def test_child(self):
        done = subprocess.run([sys.executable, "-X", "dev", "-c", self.CODE], capture_output=True, text=True,
                              check=False, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, "fine\n"), done.stderr)

    def test_fork_inside_the_callback(self):
        code = ("import os, mtprof\n"
                "def ready(p):\n"
                "    pid = os.fork()\n"
                "    if pid == 0: return\n"
                "    assert os.waitpid(pid, 0)[1] == 0\n"
                "p = mtprof.profile(on_trace_ready=ready)\n"
                "p.start(); mtprof.end(mtprof.begin('x'))\n"
                "try:\n    p.stop()\nexcept RuntimeError:\n    pass\n"
                "del p\n")
        # 3.12 warns of any fork with threads; ours are safe, which is what this tests.
        done = subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", code],
                              capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
