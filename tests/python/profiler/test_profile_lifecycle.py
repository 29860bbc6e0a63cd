# SPDX-License-Identifier: Apache-2.0
"""profile from start to results: attributes, steps, callbacks, windows, metadata, observers, files
(torch-contract 1)."""
import gc
import gzip
import json
import os
import subprocess
import sys
import unittest
import warnings
import weakref

import mtprof
from mtprof import (ExecutionTraceObserver, KinetoStepTracker, ProfilerAction, ProfilerActivity, profile,
                    record_function, schedule)
from mtprof.profiler import _KinetoProfile
from support_asan import UNDER_ASAN
from support_folder import FolderTest

NONE, WARMUP, RECORD, SAVE = ProfilerAction


def scope(name):
    with record_function(name):
        pass


def names(prof):
    return [event.name for event in prof.events()]


def plan(letters):
    actions = dict(zip("nwrS", ProfilerAction))
    return lambda step: actions[letters[step]] if step < len(letters) else NONE


def quiet():
    return warnings.catch_warnings(action="ignore")


class Case(FolderTest):
    def trace(self, prof):
        path = self.path("trace.json")
        prof.export_chrome_trace(path)
        with open(path, encoding="utf-8") as file:
            return json.load(file)


class Attributes(Case):
    def test_after_construction(self):
        prof = profile(activities=["CPU"], record_shapes=True, with_stack=1)
        expected = {"activities": {ProfilerActivity.CPU}, "record_shapes": True, "with_flops": False,
                    "profile_memory": False, "with_stack": 1, "with_modules": False,
                    "experimental_config": None,
                    "execution_trace_observer": None, "acc_events": False, "custom_trace_id_callback": None,
                    "post_processing_timeout_s": None, "profiler": None, "has_cudagraphs": False,
                    "mem_tl": None,
                    "use_device": None, "preset_metadata": {}, "record_steps": False, "on_trace_ready": None,
                    "step_num": 0, "current_action": RECORD, "step_rec_fn": None, "activity_filters": {}}
        for name, value in expected.items():
            self.assertEqual(getattr(prof, name), value, name)
        self.assertIs(prof.schedule(5), RECORD)

    def test_with_a_schedule(self):
        steps = []

        def numbers(step):
            steps.append(step)
            return WARMUP
        prof = profile(schedule=numbers)
        self.assertIs(prof.schedule, numbers)
        self.assertIs(prof.record_steps, True)
        self.assertIs(prof.current_action, WARMUP)
        self.assertEqual(steps, [0])
        for falsy in (None, 0):
            self.assertIs(profile(schedule=falsy).record_steps, False)

    def test_with_flops_leaves_record_shapes(self):
        self.assertIs(profile(with_flops=True).record_shapes, False)

    def test_action_map_has_every_pair(self):
        pairs = profile().action_map
        for before in ProfilerAction:
            for after in ProfilerAction:
                self.assertIn((before, after), pairs)
        self.assertEqual([f.__name__ for f in pairs[SAVE, RECORD]],
                         ["stop_trace", "_trace_ready", "prepare_trace", "start_trace"])

    def test_experimental_config_takes_torchs_keywords(self):
        config = mtprof._ExperimentalConfig(
            profiler_metrics=["a"], profiler_measure_per_kernel=True, verbose=True,
            performance_events=["cycles"],
            enable_cuda_sync_events=True, adjust_profiler_step=True, disable_external_correlation=True,
            profile_all_threads=True, capture_overload_names=True, record_python_gc_info=True,
            expose_kineto_event_metadata=True, custom_profiler_config="x", adjust_timestamps=True,
            enable_cuda_graph_dependencies=True)
        self.assertIn("verbose=True", repr(config))
        self.assertIn("enable_cuda_graph_dependencies=True", repr(config))
        prof = profile(experimental_config=config)
        self.assertIs(prof.experimental_config, config)
        with prof:
            scope("x")
        self.assertIn("x", names(prof))
        with self.assertRaises(TypeError):
            mtprof._ExperimentalConfig(unknown=1)


class Windows(Case):
    def test_plain(self):
        calls = []
        with profile(on_trace_ready=calls.append) as prof:
            scope("x")
            self.assertEqual(calls, [])
        self.assertEqual(calls, [prof])
        self.assertEqual(names(prof), ["x"])
        self.assertEqual(prof.step_num, 0)

    def test_again_replaces(self):
        prof = profile()
        with prof:
            scope("a")
        kept = prof.events()
        with prof:
            scope("b")
            scope("c")
        self.assertEqual(names(prof), ["b", "c"])
        self.assertEqual([event.name for event in kept], ["a"])

    def test_step_without_schedule(self):
        with profile() as prof:
            scope("a")
            prof.step()
            scope("b")
        self.assertEqual(names(prof), ["a", "b"])
        self.assertEqual(prof.step_num, 1)
        self.assertEqual([event["step"] for event in prof.events()], [0, 1])

    def test_callback_sees_the_next_step_and_this_cycle(self):
        seen = []

        def ready(prof):
            seen.append((prof.step_num, prof.current_action, names(prof)))
        with profile(schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=ready) as prof:
            with quiet():
                for step in range(9):
                    scope(f"s{step}")
                    prof.step()
        self.assertEqual(seen, [(4, NONE, ["ProfilerStep*", "s2", "ProfilerStep*", "s3"]),
                                (8, NONE, ["ProfilerStep*", "s6", "ProfilerStep*", "s7"])])

    def test_all_save_calls_once_more_at_stop(self):
        calls = []
        with quiet(), profile(schedule=plan("SSSS"), on_trace_ready=lambda p: calls.append(names(p))) as prof:
            for _ in range(3):
                prof.step()
        self.assertEqual(calls, [["ProfilerStep*"]] * 4)

    def test_callback_may_be_set_later(self):
        prof = profile()
        calls = []
        prof.on_trace_ready = calls.append
        with prof:
            pass
        self.assertEqual(calls, [prof])

    def test_exception_of_the_body_passes(self):
        calls = []
        with self.assertRaisesRegex(KeyError, "body"):
            with profile(on_trace_ready=calls.append) as prof:
                scope("x")
                raise KeyError("body")
        self.assertEqual(calls, [prof])
        self.assertEqual(names(prof), ["x"])

    def test_acc_events(self):
        counts = []

        def ready(prof):
            counts.append(sorted(name for name in names(prof) if name[0] == "s"))
        with profile(schedule=plan("SSS"), acc_events=True, on_trace_ready=ready) as prof:
            for step in range(2):
                scope(f"s{step}")
                prof.step()
        self.assertEqual(counts, [["s0"], ["s0", "s1"], ["s0", "s1"]])

    def test_acc_events_over_sessions(self):
        prof = profile(acc_events=True)
        for name in "ab":
            with prof:
                scope(name)
        self.assertEqual(sorted(names(prof)), ["a", "b"])

    def test_advice_about_acc_events_comes_once_per_process(self):
        code = ("import warnings, mtprof\n"
                "warnings.simplefilter('always')\n"
                "A = list(mtprof.ProfilerAction)\n"
                "for _ in range(2):\n"
                "    with mtprof.profile(schedule=lambda s: A[3]) as prof:\n"
                "        prof.step(); prof.step()\n")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr.count("set acc_events=True"), 1, done.stderr)

    def test_live_view(self):
        with profile() as prof:
            scope("a")
            self.assertEqual(names(prof), ["a"])
            scope("b")
            self.assertEqual(names(prof), ["a", "b"])
        self.assertEqual(names(prof), ["a", "b"])

    def test_results_are_made_once(self):
        with profile() as prof:
            scope("x")
        self.assertIs(prof.events()[0], prof.events()[0])

    def test_results_outlive_the_profiler(self):
        with profile() as prof:
            scope("x")
        events, rows = prof.events(), prof.key_averages()
        gone = weakref.ref(prof)
        del prof
        gc.collect()
        self.assertIsNone(gone())
        self.assertEqual((events[0].name, rows[0].key), ("x", "x"))
        self.assertIn("x", rows.table())

    def test_ends_in_warmup(self):
        with profile(schedule=plan("nwww")) as prof:
            for _ in range(3):
                prof.step()
        with quiet():
            self.assertEqual(list(prof.events()), [])

    def test_explain_does_not_deny_events(self):
        with profile() as prof:
            self.assertEqual(prof._explain(), "1 step recorded, without an event in it")
            mtprof.counter("c", 1)
            self.assertEqual(prof._explain(), "1 step recorded, with marks but no scope or op in it")
            scope("x")
            self.assertEqual(prof._explain(), "1 step recorded, with events in it")
        self.assertEqual(prof._explain(), "1 step recorded, with events in it")
        with profile(schedule=schedule(wait=0, warmup=0, active=2, repeat=1)) as prof:
            for _ in range(3):
                scope("x")
                prof.step()
        self.assertEqual(prof._explain(), "2 steps recorded, with events in them")

    def test_empty_says_why(self):
        with profile(schedule=schedule(wait=1, warmup=1, active=1)) as prof:
            prof.step()
        self.assertIn("step() was called 1 time, the schedule needs 2", prof._explain())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.assertEqual(list(prof.events()), [])
        self.assertTrue(any("step() was called 1 time" in str(w.message) for w in caught))

    def test_base_class(self):
        prof = _KinetoProfile(activities=["CPU"])
        prof.start()
        scope("x")
        prof.stop()
        self.assertEqual(names(prof), ["x"])
        prof.prepare_trace()
        scope("unseen")
        prof.start_trace()
        scope("y")
        prof.stop_trace()
        self.assertEqual(names(prof), ["y"])

    def test_step_count_is_erased_at_exit(self):
        with profile():
            self.assertIn("ProfilerStep", KinetoStepTracker._counts)
        self.assertNotIn("ProfilerStep", KinetoStepTracker._counts)


class Toggle(Case):
    def test_off_and_on(self):
        with profile(activities=["CPU"]) as prof:
            scope("a")
            prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
            scope("b")
            prof.toggle_collection_dynamic(True, ["cpu"])
            scope("c")
        self.assertEqual(names(prof), ["a", "c"])

    def test_outside_a_window_nothing_happens(self):
        prof = profile()
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        with prof:
            prof.toggle_collection_dynamic(False, [])
            prof.toggle_collection_dynamic(True, [ProfilerActivity.XPU])
            scope("x")
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        self.assertEqual(names(prof), ["x"])
        with self.assertRaises(ValueError):
            prof.toggle_collection_dynamic(False, ["TPU"])


class Metadata(Case):
    def test_top_level_keys(self):
        prof = profile(record_shapes=True)
        prof.add_metadata("before", 'quo"te\n')
        prof.preset_metadata_json("preset", "[1, 2]")
        with prof:
            prof.add_metadata_json("inside", '{"a": 1}')
            scope("x")
        first = prof.events()[0]
        prof.add_metadata("after", "late")
        prof.add_metadata_json("odd", "notjson")
        found = self.trace(prof)
        self.assertEqual((found["before"], found["preset"], found["inside"], found["after"], found["odd"]),
                         ('quo"te\n', [1, 2], {"a": 1}, "late", "notjson"))
        self.assertEqual(found["record_shapes"], 1)
        self.assertIs(prof.events()[0], first)
        self.assertEqual(prof.preset_metadata, {"preset": "[1, 2]"})

    def test_types(self):
        prof = profile()
        with self.assertRaises(AttributeError):
            prof.add_metadata("a", 3)
        with self.assertRaises(TypeError):
            prof.add_metadata_json("a", 3)
        with self.assertRaises(TypeError):
            prof.preset_metadata_json("a", 3)
        with self.assertRaises(ValueError):
            prof.add_metadata("", "x")

    def test_distributed_info(self):
        code = ("import mtprof, sys\n"
                "with mtprof.profile() as p:\n    mtprof.begin('x')\n"
                "p.export_chrome_trace(sys.argv[1])\n")
        for ranks, expected in (({"RANK": "3", "WORLD_SIZE": "8"}, (3, 8)),
                                ({"RANK": "x", "WORLD_SIZE": "8"}, None)):
            path = self.path("d.json")
            environment = {**os.environ, **ranks}
            subprocess.run([sys.executable, "-c", code, path], env=environment, check=True)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            info = json.loads(text).get("distributedInfo")
            if expected is None:
                self.assertIsNone(info)
            else:
                self.assertEqual((info["rank"], info["world_size"]), expected)
                self.assertIn('"rank": 3', text)  # with a blank: HTA looks for it


class TraceIds(Case):
    def test_default(self):
        prof = profile()
        self.assertIsNone(prof.get_trace_id())
        with prof:
            inside = prof.get_trace_id()
        self.assertRegex(inside, "^[0-9A-F]{32}$")
        self.assertEqual(prof.get_trace_id(), inside)
        self.assertEqual(self.trace(prof)["trace_id"], inside)

    def test_custom_is_asked_once_per_cycle(self):
        made = []

        def make():
            made.append(f"id {len(made)}")
            return made[-1]
        ids = []
        with quiet(), profile(schedule=plan("SSn"), custom_trace_id_callback=make,
                              on_trace_ready=lambda p: ids.append(p.get_trace_id())) as prof:
            prof.step()
            prof.step()
        self.assertEqual(made, ["id 0", "id 1"])
        self.assertEqual(ids, made)

    def test_set_later(self):
        prof = profile()
        prof.set_custom_trace_id_callback(lambda: "mine ☃" + "x" * 3000)
        with prof:
            scope("x")
        self.assertTrue(prof.get_trace_id().startswith("mine ☃"))
        prof.set_custom_trace_id_callback(None)
        with prof:
            pass
        self.assertRegex(prof.get_trace_id(), "^[0-9A-F]{32}$")

    def test_must_be_text(self):
        prof = profile(custom_trace_id_callback=lambda: 5)
        with self.assertRaisesRegex(TypeError, "5"):
            prof.start()
        prof.set_custom_trace_id_callback(lambda: "x")
        with prof:
            pass
        self.assertEqual(prof.get_trace_id(), "x")


class Observers(Case):
    def test_follow_the_windows(self):
        class Observer:
            def __init__(self):
                self.log = []

            def start(self):
                self.log.append("start")

            def stop(self):
                self.log.append("stop")

            def cleanup(self):
                self.log.append("cleanup")
        observer = Observer()
        with quiet(), profile(schedule=plan("nrSr"), execution_trace_observer=observer) as prof:
            self.assertEqual(observer.log, [])
            for _ in range(3):
                prof.step()
        self.assertEqual(observer.log, ["start", "stop", "start", "stop", "cleanup"])

    def test_without_cleanup(self):
        class Observer:
            started = stopped = 0

            def start(self):
                self.started += 1

            def stop(self):
                self.stopped += 1
        observer = Observer()
        with profile(execution_trace_observer=observer):
            pass
        self.assertEqual((observer.started, observer.stopped), (1, 1))

    def test_unprepared_start_does_not_tell_it(self):
        class Observer:
            def start(self):
                raise AssertionError("told")

            stop = start
        prof = profile(execution_trace_observer=Observer())
        with self.assertRaisesRegex(AssertionError, "Profiler must be initialized before starting trace"):
            prof.start_trace()

    def test_execution_trace(self):
        path = self.path("et.json")
        observer = ExecutionTraceObserver().register_callback(path)
        self.assertTrue(observer.is_registered)
        with profile(execution_trace_observer=observer):
            self.assertTrue(observer.is_running())
            scope("x")
        self.assertFalse(observer.is_running())
        self.assertFalse(observer.is_registered)
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        self.assertIn("x", [node["name"] for node in found["nodes"]])
        self.assertTrue(found["schema"].startswith("1.1.1-chakra"))

    def test_execution_trace_by_hand(self):
        path = self.path("et.json.gz")
        observer = ExecutionTraceObserver()
        self.assertIsNone(observer.get_output_file_path())
        observer.start()  # nothing: no file
        self.assertFalse(observer.is_running())
        self.assertIs(observer.register_callback(path), observer)
        self.assertIs(observer.register_callback(self.path("other")), observer)
        self.assertEqual(observer.get_output_file_path(), path)
        observer.start()
        scope("by hand")
        observer.stop()
        observer.unregister_callback()
        with gzip.open(path, "rt", encoding="utf-8") as file:
            self.assertIn("by hand", [node["name"] for node in json.load(file)["nodes"]])

    def test_unwritable_file(self):
        with self.assertRaises(OSError):
            ExecutionTraceObserver().register_callback(self.path("no/such/folder"))

    def test_resources(self):
        observer = ExecutionTraceObserver()
        observer.set_extra_resource_collection(True)
        self.assertIsNone(observer.get_resources_dir())
        observer.register_callback(self.path("et.json"))
        self.assertEqual(observer.get_resources_dir(), self.path("et_resources"))
        self.assertTrue(os.path.isdir(self.path("et_resources")))

    def test_from_the_environment(self):
        code = ("import mtprof, os\n"
                "with mtprof.profile() as p:\n"
                "    path = p.execution_trace_observer.get_output_file_path()\n"
                "    mtprof.end(mtprof.begin('x'))\n"
                "assert os.path.getsize(path) > 100, path\n"
                "os.remove(path)\n")
        subprocess.run([sys.executable, "-c", code], check=True,
                       env={**os.environ, "ENABLE_PYTORCH_EXECUTION_TRACE": "1"})
        self.assertIsNone(ExecutionTraceObserver.build_execution_trace_obs_from_env())


class Files(Case):
    def test_save_and_load(self):
        with profile() as prof:
            scope("x")
        path = self.path("x.mtt")
        prof.save(path)
        self.assertEqual([event.name for event in mtprof.load(path).events()], ["x"])
        prof.save(path)  # again, over it
        self.assertEqual(os.listdir(self.folder), ["x.mtt"])

    def test_save_refuses(self):
        prof = profile()
        with self.assertRaisesRegex(AssertionError, "Profiler must be initialized"):
            prof.save(self.path("x.mtt"))
        with prof:
            with self.assertRaises(RuntimeError):
                prof.save(self.path("x.mtt"))
            scope("x")
        with self.assertRaises(FileNotFoundError) as caught:
            prof.save(self.path("no/x.mtt"))
        self.assertEqual(caught.exception.filename, self.path("no/x.mtt"))
        with self.assertRaises(TypeError):
            prof.save(3)

    def test_path(self):
        path = self.path("live.mtt")
        with profile(path=path) as prof:
            scope("x")
        self.assertEqual(names(prof), ["x"])
        del prof
        gc.collect()
        self.assertEqual([event.name for event in mtprof.load(path).events()], ["x"])

    def test_path_of_the_environment_survives_kill(self):
        path = self.path("killed.mtt")
        code = ("import mtprof, os, signal\n"
                "p = mtprof.profile(); p.start()\n"
                "for _ in range(100):\n    mtprof.end(mtprof.begin('x'))\n"
                "os.kill(os.getpid(), signal.SIGKILL)\n")
        done = subprocess.run([sys.executable, "-c", code], check=False,
                              env={**os.environ, "MTPROF_PATH": path})
        self.assertEqual(done.returncode, -9)
        self.assertEqual(len(mtprof.load(path).events()), 100)

    def test_path_of_the_environment_is_for_every_process(self):
        """One process has the path, its children names of their own, with a line that says so."""
        path = self.path("all.mtt")
        code = ("import mtprof, os, subprocess, sys\n"
                "with mtprof.profile():\n"
                "    mtprof.end(mtprof.begin('x'))\n"
                "    if len(sys.argv) == 2:\n"
                "        for _ in range(2):\n"
                "            subprocess.run([sys.executable, '-c', sys.argv[1]], check=True)\n")
        for given, first in ((path, ["all.mtt"]), (self.path("%p-all.mtt"), [])):
            done = subprocess.run([sys.executable, "-c", code, code], check=False, text=True, capture_output=True,
                                  env={**os.environ, "MTPROF_PATH": given})
            self.assertEqual(done.returncode, 0, done.stderr)
            said = done.stderr.count("is being recorded by another process: recording to")
            self.assertEqual(said, 2 if first else 0, done.stderr)
            made = [name for name in os.listdir(os.path.dirname(path)) if name.endswith("all.mtt" if not first else ".mtt")]
            self.assertEqual(len(made), 3, made)
            self.assertLessEqual(set(first), set(made))
            for name in made:
                self.assertEqual([event.name for event in mtprof.load(self.path(name)).events()], ["x"])
                os.unlink(self.path(name))

    def test_permissions_and_links(self):
        path, link = self.path("t.mtt"), self.path("link.mtt")
        with open(path, "w"):
            os.chmod(path, 0o600)
        os.symlink("t.mtt", link)
        with profile(path=link) as prof:
            scope("x")
        del prof
        gc.collect()
        self.assertTrue(os.path.islink(link))
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        self.assertEqual([event.name for event in mtprof.load(path).events()], ["x"])

    def test_bad_places(self):
        prof = profile(path=self.path("no/x.mtt"))
        with self.assertRaises(OSError):
            prof.start()
        for options in ({"policy": "other"}, {"buffer_bytes": 0}, {"buffer_bytes": -5}, {"buffer_bytes": 1}):
            with self.assertRaises(ValueError, msg=str(options)):
                with profile(**options):
                    pass
        with self.assertRaises((TypeError, ValueError)):
            profile(path="a\0b")

    def test_policies(self):
        for policy in ("ring", "stop"):
            with quiet(), profile(policy=policy, buffer_bytes=1 << 20) as prof:
                for i in range(200000):
                    mtprof.end(mtprof.begin("x" if i < 199999 else "last"))
            health = prof.health()
            self.assertGreater(health.evicted if policy == "ring" else health.lost, 0)
            with quiet():
                self.assertEqual("last" in {event.name for event in prof.events()}, policy == "ring")

    def test_tensorboard_handler(self):
        folder = self.path("a/b")
        handler = mtprof.tensorboard_trace_handler(folder)
        with quiet(), profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=3),
                              on_trace_ready=handler) as prof:
            for _ in range(18):
                prof.step()
        files = os.listdir(folder)
        self.assertEqual(len(files), 3)
        for name in files:
            self.assertRegex(name, r"^.+_\d+\.\d+\.pt\.trace\.json$")
        with profile(on_trace_ready=mtprof.tensorboard_trace_handler(folder, "w", use_gzip=True)):
            pass
        name, = [name for name in os.listdir(folder) if name.startswith("w.")]
        with gzip.open(os.path.join(folder, name)) as file:
            json.load(file)

    def test_tensorboard_handler_cannot_make_its_folder(self):
        with open(self.path("file"), "w", encoding="utf-8"):
            pass
        with self.assertRaisesRegex(RuntimeError, "Can't create directory: .*file/x"):
            with profile(on_trace_ready=mtprof.tensorboard_trace_handler(self.path("file/x"))):
                pass


class Backend(Case):
    def test_profiler_attribute(self):
        prof = profile(with_stack=True)
        self.assertIsNone(prof.profiler)
        with prof:
            scope("x")
            self.assertTrue(prof.profiler.entered)
        view = prof.profiler
        self.assertIs(view, prof.profiler)
        self.assertFalse(view.entered)
        self.assertEqual([event.name for event in view.function_events], ["x"])
        self.assertEqual(len(view.kineto_results.events()), 1)
        self.assertEqual(view.total_average().key, "Total")
        self.assertEqual(view.key_averages()[0].key, "x")
        self.assertGreater(view.self_cpu_time_total, 0)
        self.assertIn("Self CPU time total", view.table())
        self.assertEqual(view.trace_id, prof.get_trace_id())
        view.export_chrome_trace(self.path("a.json"))
        view.kineto_results.save(self.path("b.json"))
        view.export_stacks(self.path("c"))
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.json", "b.json", "c"])

    def test_no_cycle(self):
        with profile() as prof:
            pass
        view = prof.profiler
        gone = weakref.ref(prof)
        gc.disable()
        self.addCleanup(gc.enable)
        del view, prof
        self.assertIsNone(gone())

    def test_host_is_asked_before_a_window_closes(self):
        self.assertTrue(callable(mtprof.set_host))
        mtprof.set_host()
        with profile() as prof:
            scope("x")
        self.assertEqual(names(prof), ["x"])


class Lifetime(Case):
    def test_collected_while_running(self):
        calls = []
        prof = profile(on_trace_ready=calls.append, path=self.path("x.mtt"))
        prof.start()
        scope("x")
        del prof
        gc.collect()
        self.assertEqual(calls, [])
        self.assertEqual([event.name for event in mtprof.load(self.path("x.mtt")).events()], ["x"])
        with profile() as other:  # the session is free again
            scope("y")
        self.assertEqual(names(other), ["y"])

    def test_cycle_through_the_callback(self):
        class Owner:
            def __init__(self):
                self.prof = profile(on_trace_ready=self.ready, schedule=self.plan)

            def ready(self, prof):
                pass

            def plan(self, step):
                return RECORD
        owner = Owner()
        owner.prof.start()
        scope("x")
        gone = weakref.ref(owner)
        del owner
        gc.collect()
        self.assertIsNone(gone())
        with profile():
            pass

    @unittest.skipIf(UNDER_ASAN, "AddressSanitizer keeps freed memory")
    def test_flat_memory(self):
        import resource

        def cycle():
            with profile(record_shapes=True) as prof:
                scope("x")
            return len(prof.events())
        for _ in range(50):
            cycle()
        gc.collect()
        blocks, rss = sys.getallocatedblocks(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(300):
            cycle()
        gc.collect()
        self.assertLess(sys.getallocatedblocks() - blocks, 300)
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - rss, 20000)

    def test_interpreter_ends_while_running(self):
        path = self.path("x.mtt")
        code = ("import mtprof, sys\n"
                "p = mtprof.profile(path=sys.argv[1], on_trace_ready=lambda p: print('called'))\n"
                "p.start()\n"
                "mtprof.end(mtprof.begin('x'))\n"
                "sys.x = p\n")
        done = subprocess.run([sys.executable, "-X", "dev", "-c", code, path], capture_output=True, text=True,
                              check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertEqual([event.name for event in mtprof.load(path).events()], ["x"])

    def test_interpreter_ends_inside_the_callback(self):
        code = ("import mtprof, sys\n"
                "p = mtprof.profile(on_trace_ready=lambda p: sys.exit(7))\n"
                "p.start()\n"
                "p.stop()\n")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (7, ""))

    def test_import_needs_no_results(self):
        code = ("import sys, mtprof\n"
                "assert 'mtprof.results' not in sys.modules and 'numpy' not in sys.modules\n"
                "assert 'load' in dir(mtprof) and callable(mtprof.load)\n"
                "try:\n    mtprof.nothing\nexcept AttributeError as e:\n    assert 'nothing' in str(e)\n")
        subprocess.run([sys.executable, "-c", code], check=True)


class StepTracker(unittest.TestCase):
    def test_counts(self):
        tracker = KinetoStepTracker
        start = tracker.current_step()
        tracker.init_step_count("one")
        tracker.init_step_count("two")
        self.assertEqual(tracker.increment_step("one"), start + 1)
        self.assertEqual(tracker.increment_step("two"), start + 1)
        self.assertEqual(tracker.increment_step("two"), start + 2)
        self.assertTrue(tracker.erase_step_count("one"))
        self.assertFalse(tracker.erase_step_count("one"))
        tracker._counts["two"] += 3
        with self.assertWarnsRegex(UserWarning, "more than 1"):
            tracker.increment_step("two")
        tracker.erase_step_count("two")


if __name__ == "__main__":
    unittest.main()
