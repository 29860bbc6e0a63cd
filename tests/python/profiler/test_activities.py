# SPDX-License-Identifier: Apache-2.0
"""Activities and enumerations: spellings, refusals, what is available (torch-contract 0.1, 1.1)."""
import enum
import subprocess
import sys
import unittest
import warnings

import mtprof
from mtprof import ActivityError, DeviceType, ProfilerActivity, RecordScope, profile, supported_activities

CPU, CUDA, NPU = ProfilerActivity.CPU, ProfilerActivity.CUDA, ProfilerActivity.PrivateUse1


def made(activities):
    """The profiler and what its constructor warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        prof = profile(activities=activities)
    return prof, [str(one.message) for one in caught]


class Version(unittest.TestCase):
    def test_packages_and_libraries_have_one(self):
        import mindtorch_v2
        self.assertRegex(mtprof.__version__, r"^\d+\.\d+\.\d+$")
        self.assertEqual(mindtorch_v2.__version__, mtprof.__version__)


class Spelling(unittest.TestCase):
    def test_strings(self):
        for text in ("CPU", "cpu", "Cpu", "ProfilerActivity.CPU", "torch.profiler.ProfilerActivity.cpu"):
            self.assertEqual(made([text])[0].activities, {CPU}, text)

    def test_device_names(self):
        for text, member in (("NPU", NPU), ("npu", NPU), ("CUDA", CUDA), ("gpu", CUDA), ("PrivateUse1", NPU),
                             (ProfilerActivity.GPU, CUDA), (ProfilerActivity.NPU, NPU)):
            self.assertEqual(made(["CPU", text])[0].activities, {CPU, member}, text)

    def test_any_iterable(self):
        for given in ((CPU,), {CPU}, iter([CPU]), frozenset([CPU]), [{CPU: ["cpu_op"]}], {CPU: ["cpu_op"]}):
            self.assertEqual(made(given)[0].activities, {CPU})

    def test_filters(self):
        prof, _ = made([{CPU: ["cpu_op", "user_annotation"]}])
        self.assertEqual(prof.activity_filters, {CPU: {"cpu_op", "user_annotation"}})
        self.assertEqual(made([CPU])[0].activity_filters, {})

    def test_none_is_everything(self):
        self.assertEqual(made(None)[0].activities, supported_activities())


class Refusal(unittest.TestCase):
    def test_error_is_both(self):
        for bad in (["TPU"], [3], [None], ["CPU", object()], "CPU", CPU, 5, [b"CPU"], [["CPU"]], [""]):
            for kind in (ValueError, TypeError):
                with self.assertRaises(kind, msg=repr(bad)) as caught:
                    profile(activities=bad)
                self.assertIsInstance(caught.exception, ActivityError)

    def test_names_the_value_and_the_accepted(self):
        with self.assertRaisesRegex(ValueError, "'TPU'.*CPU, NPU, CUDA, GPU"):
            profile(activities=["TPU"])

    def test_empty(self):
        for empty in ([], (), set(), {}, [{}]):
            with self.assertRaisesRegex(AssertionError, "No valid profiler activities found"):
                profile(activities=empty)

    def test_twice(self):
        with self.assertRaisesRegex(ValueError, "Activity ProfilerActivity.CPU specified more than once"):
            profile(activities=[CPU, "cpu"])

    def test_nothing_usable_fails_at_start(self):
        prof, said = made([ProfilerActivity.XPU])
        self.assertEqual(said, ["XPU is not available, disabling XPU profiling"])
        with self.assertRaisesRegex(AssertionError, "No activities specified for the profiler"):
            prof.start()
        with self.assertRaises(AssertionError):
            prof.events()


@unittest.skipIf(len(supported_activities()) > 1, "an accelerator is registered here")
class WithoutAccelerator(unittest.TestCase):
    def test_supported(self):
        self.assertEqual(supported_activities(), {CPU})
        self.assertIs(mtprof.kineto_available(), True)

    def test_warns_and_goes_on(self):
        for given, name in (([CPU, CUDA], "CUDA"), ([CPU, "NPU"], "NPU"), (["gpu"], "CUDA"), ([NPU], "NPU")):
            prof, said = made(given)
            self.assertEqual(said, [f"{name} is not available, disabling {name} profiling"])
            self.assertIsNone(prof.use_device)
            with prof:
                with mtprof.record_function("seen"):
                    pass
            self.assertEqual([event.name for event in prof.events()], ["seen"])

    def test_each_of_the_unavailable(self):
        for name in ("XPU", "MTIA", "HPU"):
            _, said = made([CPU, name])
            self.assertEqual(said, [f"{name} is not available, disabling {name} profiling"])

    def test_warning_points_at_the_caller(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            profile(activities=[CPU, NPU])
        self.assertEqual(caught[0].filename, __file__)

    def test_muted_group(self):
        prof, _ = made([{CPU: []}])
        with prof:
            with mtprof.record_function("unseen"):
                pass
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertEqual(list(prof.events()), [])


ACCELERATOR = r"""
import ctypes, re, warnings
import mtprof
from mtprof import ProfilerActivity as A
warnings.simplefilter("error")
with open("/proc/self/maps") as maps:
    library = ctypes.CDLL(re.search(r"(/\S*libmtprof\.so\S*)", maps.read()).group(1))
START = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)
STOP = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
class Ops(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("abi", ctypes.c_uint32), ("name", ctypes.c_char_p),
                ("device_type", ctypes.c_char_p), ("context", ctypes.c_void_p), ("needs", ctypes.c_uint64),
                ("start", START), ("stop", STOP), ("flush", ctypes.c_void_p), ("clock", ctypes.c_void_p)]
log = []
def started(context, source, wants):
    log.append("start")
    return 0
ops = Ops(ctypes.sizeof(Ops), 0x10000, b"sim", b"NPU", None, 1 << 12, START(started),
          STOP(lambda context: log.append("stop")), None, None)
source = ctypes.c_void_p()
assert library.mtprof_source_register(ctypes.byref(ops), ctypes.byref(source)) == 0
"""


class WithAccelerator(unittest.TestCase):
    """An accelerator is what a source says it is: one is made up here, in a process of its own."""

    def run_code(self, code):
        done = subprocess.run([sys.executable, "-c", ACCELERATOR + code], capture_output=True, text=True,
                              check=False, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_is_supported(self):
        self.run_code("assert mtprof.supported_activities() == {A.CPU, A.PrivateUse1}\n"
                      "for given in (None, ['CPU', 'CUDA'], [A.NPU], ['gpu']):\n"
                      "    prof = mtprof.profile(activities=given)\n"
                      "    assert prof.use_device == 'npu', given\n"
                      "assert mtprof.profile(activities=['CPU']).use_device is None\n")

    def test_is_told_and_waited_for(self):
        self.run_code("mtprof.set_host(synchronize=lambda: log.append('synchronize'))\n"
                      "with mtprof.profile(activities=['CPU', 'NPU']):\n"
                      "    pass\n"
                      "assert log == ['start', 'synchronize', 'stop'], log\n"
                      "del log[:]\n"
                      "with mtprof.profile(activities=['CPU']):\n"
                      "    pass\n"
                      "assert log == [], log\n")

    def test_alone_records_no_scopes(self):
        self.run_code("with mtprof.profile(activities=['NPU']) as prof:\n"
                      "    mtprof.end(mtprof.begin('x'))\n"
                      "warnings.simplefilter('ignore')\n"
                      "assert list(prof.events()) == []\n")

    def test_toggled_by_itself(self):
        self.run_code("warnings.simplefilter('ignore')\n"
                      "with mtprof.profile() as prof:\n"
                      "    prof.toggle_collection_dynamic(False, [A.CUDA])\n"
                      "    mtprof.end(mtprof.begin('x'))\n"
                      "    prof.toggle_collection_dynamic(False, [A.CPU])\n"
                      "    mtprof.end(mtprof.begin('y'))\n"
                      "assert [e.name for e in prof.events()] == ['x']\n")

    def test_synchronize_raises(self):
        self.run_code("def fail(): raise KeyError('device')\n"
                      "mtprof.set_host(synchronize=fail)\n"
                      "prof = mtprof.profile()\n"
                      "prof.start()\n"
                      "try:\n    prof.stop()\n    assert False\nexcept KeyError:\n    pass\n"
                      "mtprof.set_host(synchronize=lambda: None)\n"
                      "with prof:\n    pass\n")


class Enumerations(unittest.TestCase):
    def test_activity_numbers(self):
        self.assertEqual({m.name: int(m) for m in ProfilerActivity},
                         {"CPU": 0, "XPU": 1, "MTIA": 4, "CUDA": 2, "HPU": 3, "PrivateUse1": 5})
        self.assertEqual([m.name for m in ProfilerActivity],
                         ["CPU", "XPU", "MTIA", "CUDA", "HPU", "PrivateUse1"])
        self.assertIs(ProfilerActivity.NPU, ProfilerActivity.PrivateUse1)
        self.assertIs(ProfilerActivity.GPU, ProfilerActivity.CUDA)
        self.assertEqual(repr(CPU), "<ProfilerActivity.CPU: 0>")
        self.assertEqual(str(CPU), "ProfilerActivity.CPU")

    def test_device_types_equal_their_names(self):
        self.assertEqual(len(DeviceType), 21)
        for member in DeviceType:
            self.assertEqual(member, member.name)
            self.assertEqual(member.name, member)
            self.assertEqual(hash(member), hash(member.name))
            self.assertIn(member, {member.name})
            self.assertEqual({member: 1}[member.name], 1)
        self.assertNotEqual(DeviceType.CPU, DeviceType.CUDA)
        self.assertNotEqual(DeviceType.CPU, "cpu")
        self.assertNotEqual(DeviceType.CPU, 0)
        self.assertEqual([int(DeviceType[name]) for name in ("CUDA", "PrivateUse1", "MTIA")], [1, 20, 19])
        self.assertIsInstance(DeviceType.CPU, enum.Enum)

    def test_device_types_survive_pickle_and_copy(self):
        import copy
        import pickle
        for member in DeviceType:
            self.assertIs(pickle.loads(pickle.dumps(member)), member)
            self.assertIs(copy.deepcopy(member), member)

    def test_record_scopes(self):
        self.assertEqual([int(m) for m in RecordScope], list(range(10)))
        self.assertEqual(RecordScope.USER_SCOPE.value, 7)


if __name__ == "__main__":
    unittest.main()
