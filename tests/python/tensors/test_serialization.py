# SPDX-License-Identifier: Apache-2.0
"""save() and load(): round trips, sharing, files that are not ours or damaged, and what is refused.

Files of torch: a small one that torch 2.13 wrote is in tests/golden/python/torch_2_13.pt.
"""
import collections
import io
import os
import pickle
import random
import subprocess
import sys
import tempfile
import unittest
import zipfile

import mindtorch_v2 as torch
from mindtorch_v2 import serialization

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TORCH_FILE = os.path.join(HERE, "..", "golden", "python", "torch_2_13.pt")
DTYPES = ("bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "int16", "uint16", "uint32", "uint64")


class Mine:
    pass


class FolderCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(self.folder, "file.pt")

    def round(self, value, **options):
        torch.save(value, self.path)
        return torch.load(self.path, **options)


class RoundTrips(FolderCase):
    def test_types(self):
        for name in DTYPES + INTEGERS:
            dtype = getattr(torch, name)
            for mapped in (False, True):
                value = torch.tensor([[0, 1, 2], [3, 0, 1]]).to(dtype)
                got = self.round({"x": value}, mmap=mapped)["x"]
                self.assertEqual((got.dtype, got.shape, got.tolist()), (dtype, value.shape, value.tolist()))

    def test_plain_values(self):
        value = {
            "a": [1, -(2**80), 2.5, float("inf"), None, True, "text \u20ac", b"\x00\xff", (1, (2,)), {3, 4}],
            5: collections.OrderedDict(x=1, y=2),
            "size": torch.Size([1, 2]),
            "dtype": torch.float64,
            "device": torch.device("cpu"),
            "counter": collections.Counter("aab"),
            "default": collections.defaultdict(dict, {1: {2: 3}}),
            "complex": 1 + 2j,
            "empty": {},
        }
        got = self.round(value)
        self.assertEqual(got, value)
        self.assertIs(got["dtype"], torch.float64)
        self.assertIsInstance(got["size"], torch.Size)
        self.assertIs(got["default"].default_factory, dict)

    def test_shapes_and_strides(self):
        value = [torch.tensor(3.0), torch.empty(0), torch.empty(2, 0, 3), torch.arange(6.0).view(2, 3).t(),
                 torch.arange(10)[2:8:3], torch.ones(1).expand(4)]
        for a, b in zip(value, self.round(value), strict=True):
            self.assertEqual((a.shape, a.tolist()), (b.shape, b.tolist()))
            if a.numel():
                self.assertEqual(a.stride(), b.stride())

    def test_views_stay_views(self):
        whole = torch.arange(12.0).view(3, 4)
        value = {"row": whole[1], "whole": whole, "again": whole, "column": whole[:, 2],
                 "other": torch.zeros(2)}
        for mapped in (False, True):
            got = self.round(value, mmap=mapped)
            got["whole"][1, 2] = 99.0
            self.assertEqual((got["row"][2].item(), got["column"][1].item()), (99.0, 99.0))
            self.assertIs(got["whole"], got["again"])
            self.assertEqual(got["other"].tolist(), [0.0, 0.0])
        with zipfile.ZipFile(self.path) as archive:
            self.assertEqual(sum("/data/" in name for name in archive.namelist()), 2)
        self.assertEqual(whole[1, 2].item(), 6.0)

    def test_gradients(self):
        leaf = torch.ones(2, requires_grad=True)
        got = self.round({"leaf": leaf, "made": leaf * 2, "plain": leaf.detach()})
        self.assertEqual([got[k].requires_grad for k in ("leaf", "made", "plain")], [True, True, False])
        self.assertTrue(got["made"].is_leaf)
        (got["leaf"] * 3).sum().backward()
        self.assertEqual(got["leaf"].grad.tolist(), [3.0, 3.0])

    def test_parameters(self):
        value = [torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(1), requires_grad=False)]
        got = self.round(value)
        self.assertTrue(all(isinstance(p, torch.nn.Parameter) for p in got))
        self.assertEqual([p.requires_grad for p in got], [True, False])

    def test_model_and_optimizer(self):
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
        optimizer = torch.optim.Adam(model.parameters())
        scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [1, 3])
        x = torch.ones(2, 3)
        for _ in range(2):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
            scheduler.step()
        saved = self.round({"m": model.state_dict(), "o": optimizer.state_dict(),
                            "s": scheduler.state_dict()})
        other = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
        self.assertEqual(str(other.load_state_dict(saved["m"])), "<All keys matched successfully>")
        other_optimizer = torch.optim.Adam(other.parameters())
        other_scheduler = torch.optim.lr_scheduler.MultiStepLR(other_optimizer, [1, 3])
        other_optimizer.load_state_dict(saved["o"])
        other_scheduler.load_state_dict(saved["s"])
        for m, o, s in ((model, optimizer, scheduler), (other, other_optimizer, other_scheduler)):
            o.zero_grad()
            m(x).sum().backward()
            o.step()
            s.step()
        self.assertEqual(model(x).tolist(), other(x).tolist())
        self.assertEqual(optimizer.param_groups[0]["lr"], other_optimizer.param_groups[0]["lr"])

    def test_whole_module(self):
        model = torch.nn.Linear(2, 2)
        torch.save(model, self.path)
        with self.assertRaisesRegex(pickle.UnpicklingError, r"mindtorch_v2\.nn\.modules\.linear\.Linear"):
            torch.load(self.path)
        got = torch.load(self.path, weights_only=False)
        self.assertEqual(got.weight.tolist(), model.weight.tolist())

    def test_text_that_looks_like_a_name(self):
        """Only names in the pickle become torch's, not what merely looks like them."""
        text = "cmindtorch_v2.serialization\n_rebuild_tensor_v2\n"
        self.assertEqual(self.round({text: [text, text.encode()]}), {text: [text, text.encode()]})

    def test_files(self):
        value = {"x": torch.arange(5)}
        memory = io.BytesIO()
        torch.save(value, memory)
        memory.seek(0)
        self.assertEqual(torch.load(memory)["x"].tolist(), [0, 1, 2, 3, 4])
        with open(self.path, "w+b") as file:
            torch.save(value, file)
            file.seek(0)
            self.assertEqual(torch.load(file)["x"].tolist(), [0, 1, 2, 3, 4])
        import pathlib

        for path in (pathlib.Path(self.path), self.path.encode()):
            torch.save(value, path)
            self.assertEqual(torch.load(path)["x"].tolist(), [0, 1, 2, 3, 4])

    def test_pipe(self):
        reading, writing = os.pipe()
        with open(writing, "wb") as out, open(reading, "rb") as source:
            torch.save([1], out)
            out.close()
            self.assertEqual(torch.load(io.BytesIO(source.read())), [1])

    def test_the_same_object_makes_the_same_file(self):
        value = {"x": torch.arange(100), "y": [torch.ones(3)] * 2}
        torch.save(value, self.path)
        with open(self.path, "rb") as file:
            first = file.read()
        torch.save(value, self.path)
        with open(self.path, "rb") as file:
            self.assertEqual(file.read(), first)

    def test_data_is_aligned(self):
        torch.save([torch.ones(i + 1, dtype=torch.uint8) for i in range(20)], self.path)
        for tensor in torch.load(self.path, mmap=True):
            self.assertEqual(tensor.data_ptr() % 64, 0)

    def test_wide_entries(self):
        """Storages of 2 GiB and more have a longer header; here all of them have it."""
        limit, serialization._LARGE = serialization._LARGE, 1
        try:
            value = [torch.arange(i + 1) for i in range(9)]
            for mapped in (False, True):
                for i, tensor in enumerate(self.round(value, mmap=mapped)):
                    self.assertEqual(tensor.tolist(), list(range(i + 1)))
                    self.assertEqual(tensor.data_ptr() % 64, 0)
        finally:
            serialization._LARGE = limit

    def test_mapped_file_is_not_written(self):
        got = self.round([torch.zeros(1000)], mmap=True)
        got[0].fill_(1.0)
        self.assertEqual(torch.load(self.path)[0].sum().item(), 0.0)

    def test_mapped_file_may_be_replaced(self):
        got = self.round([torch.zeros(10_000)], mmap=True)
        torch.save([torch.ones(10_000)], self.path)
        self.assertEqual(got[0].sum().item(), 0.0)
        os.unlink(self.path)
        self.assertEqual(got[0].sum().item(), 0.0)


class MapLocation(FolderCase):
    def test_forms(self):
        value = {"x": torch.arange(3.0)}
        seen = []

        def function(elements, place):
            seen.append((elements.tolist(), place))
            return elements

        for form in ("cpu", torch.device("cpu"), {"cpu": "cpu"}, {}, function, lambda elements, place: None):
            self.assertEqual(self.round(value, map_location=form)["x"].tolist(), [0.0, 1.0, 2.0])
        self.assertEqual(seen, [([0.0, 1.0, 2.0], "cpu")])

    def test_missing_device(self):
        if torch.npu.device_count() > 5:
            self.skipTest("there are six devices here")
        with self.assertRaisesRegex(RuntimeError, r"npu:5.*torch\.load with map_location=torch\.device\('cpu'\)"):
            self.round({"x": torch.ones(1)}, map_location="npu:5")


class Writing(FolderCase):
    def test_failing_save_leaves_the_old_file(self):
        torch.save([1], self.path)
        with self.assertRaises((AttributeError, pickle.PicklingError)):
            torch.save([torch.ones(3), lambda: 1], self.path)
        self.assertEqual(torch.load(self.path), [1])
        self.assertEqual(os.listdir(self.folder), ["file.pt"])

    def test_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("there is no /dev/full")
        with self.assertRaises(OSError):
            torch.save([torch.ones(100_000)], "/dev/full")
        self.assertTrue(os.path.exists("/dev/full"))

    def test_devices_are_not_replaced(self):
        torch.save([1], os.devnull)
        self.assertFalse(os.path.isfile(os.devnull))

    def test_links_are_followed(self):
        target = os.path.join(self.folder, "target.pt")
        torch.save([1], target)
        os.symlink(target, self.path)
        torch.save([2], self.path)
        self.assertTrue(os.path.islink(self.path))
        self.assertEqual(torch.load(target), [2])

    def test_permissions(self):
        before = os.umask(0o027)
        try:
            torch.save([1], self.path)
        finally:
            os.umask(before)
        self.assertEqual(os.stat(self.path).st_mode & 0o777, 0o640)

    def test_permissions_of_an_old_file_stay(self):
        torch.save([1], self.path)
        for mode in (0o600, 0o666, 0o440):
            os.chmod(self.path, mode)
            torch.save([2], self.path)
            self.assertEqual(os.stat(self.path).st_mode & 0o777, mode)

    def test_a_link_to_nowhere(self):
        target = os.path.join(self.folder, "target.pt")
        os.symlink(target, self.path)
        torch.save([1], self.path)
        self.assertTrue(os.path.islink(self.path))
        self.assertEqual(torch.load(target), [1])

    def test_refused(self):
        with self.assertRaisesRegex(RuntimeError, "Parent directory .*nowhere does not exist."):
            torch.save([1], os.path.join(self.folder, "nowhere", "x.pt"))
        with self.assertRaises(IsADirectoryError):
            torch.save([1], self.folder)
        with self.assertRaisesRegex(AttributeError, "expected 'f' to be string, path, or a file-like object"):
            torch.save([1], 5)
        with self.assertRaises(NotImplementedError):
            torch.save([1], self.path, _use_new_zipfile_serialization=False)


class OnlyData(FolderCase):
    def hostile(self, value):
        """A file of ours around any pickle."""
        with zipfile.ZipFile(self.path, "w") as archive:
            archive.writestr("archive/data.pkl", value)
            archive.writestr("archive/data/0", b"\0" * 16)
        return self.path

    def test_names_are_refused(self):
        class Evil:
            def __reduce__(self):
                return os.system, ("echo evil",)

        for value, name in ((Mine(), "Mine"), (Evil(), "system"), (print, "print"), (os.path.join, "join")):
            torch.save({"x": value} if not isinstance(value, Evil) else value, self.path)
            with self.assertRaisesRegex(pickle.UnpicklingError, f"GLOBAL .*{name} was not an allowed"):
                torch.load(self.path)

    def test_allowed_by_the_user(self):
        torch.save(Mine(), self.path)
        with serialization.safe_globals([Mine]):
            self.assertIsInstance(torch.load(self.path), Mine)
            self.assertEqual(serialization.get_safe_globals(), [Mine])
        with self.assertRaises(pickle.UnpicklingError):
            torch.load(self.path)
        serialization.add_safe_globals([Mine])
        self.assertIsInstance(torch.load(self.path), Mine)
        serialization.clear_safe_globals()
        with self.assertRaises(pickle.UnpicklingError):
            torch.load(self.path)
        self.assertIsInstance(torch.load(self.path, weights_only=False), Mine)

    def test_codecs(self):
        code = b"\x80\x02c_codecs\nencode\nX\x04\x00\x00\x00abcdX\x05\x00\x00\x00rot13\x86R."
        with self.assertRaisesRegex(pickle.UnpicklingError, "_codecs.encode with 'rot13' is not allowed"):
            torch.load(self.hostile(code))

    def tensor_pickle(self, count, offset, size, stride, key="0"):
        out = io.BytesIO()

        class Writer(serialization._Pickler):
            def persistent_id(self, value):
                if type(value) is serialization._Stored:
                    return ("storage", serialization.FloatStorage, key, "cpu", count)
                return None

        writer = Writer(out, 2)

        class Tensor:
            def __reduce__(self):
                stored = serialization._Stored("0", None, count)
                return serialization._rebuild_tensor_v2, (stored, offset, size, stride, False, None)

        writer.dump(Tensor())
        return self.hostile(out.getvalue())

    def test_tensors_stay_in_their_storage(self):
        self.assertEqual(torch.load(self.tensor_pickle(4, 0, (2, 2), (2, 1))).tolist(), [[0.0, 0.0]] * 2)
        for count, offset, size, stride in ((4, 0, (5,), (1,)), (4, 3, (2,), (1,)), (4, 0, (2, 2), (3, 1)),
                                            (4, -1, (1,), (1,)), (4, 0, (-1,), (1,)), (4, 0, (2,), (-1,)),
                                            (4, 0, (2,), (1, 1)), (4, 2**62, (2,), (2**62,)),
                                            (4, 0, ("a",), (1,))):
            with self.subTest((count, offset, size, stride)), self.assertRaises(pickle.UnpicklingError):
                torch.load(self.tensor_pickle(count, offset, size, stride))
        with self.assertRaisesRegex(RuntimeError, "data/0 has 16 bytes, 20 are needed"):
            torch.load(self.tensor_pickle(5, 0, (1,), (1,)))
        with self.assertRaisesRegex(RuntimeError, "data/7 is missing"):
            torch.load(self.tensor_pickle(4, 0, (1,), (1,), key="7"))
        for count in (-1, 2**61):
            with self.assertRaises((pickle.UnpicklingError, RuntimeError)):
                torch.load(self.tensor_pickle(count, 0, (1,), (1,)))

    def test_other_references(self):
        for identity in (5, ("storage",), ("module", 1, 2, 3, 4), ("storage", 1, "0", "cpu", 1)):
            out = io.BytesIO()

            class Writer(pickle.Pickler):
                def persistent_id(self, value, identity=identity):
                    return identity if isinstance(value, Mine) else None

            Writer(out, 2).dump(Mine())
            with self.assertRaisesRegex(pickle.UnpicklingError, "which is no storage"):
                torch.load(self.hostile(out.getvalue()))

    def test_random_damage(self):
        """Whatever is in a file, load() gives a value or raises: it does not crash or hang."""
        torch.save({"x": torch.arange(6.0), "y": [1, "two", torch.ones(2, 2).t()]}, self.path)
        with open(self.path, "rb") as file:
            whole = file.read()
        rng = random.Random(11)
        allowed = (pickle.UnpicklingError, RuntimeError, EOFError, AttributeError, TypeError, ValueError,
                   KeyError, NotImplementedError, MemoryError, OverflowError, IndexError, OSError)
        for _ in range(300):
            data = bytearray(whole)
            for _ in range(rng.randint(1, 4)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            for mapped in (False, True):
                with open(self.path, "wb") as file:
                    file.write(data)
                try:
                    torch.load(self.path, mmap=mapped)
                except allowed:
                    pass


class NotOurs(FolderCase):
    def write(self, data):
        with open(self.path, "wb") as file:
            file.write(data)
        return self.path

    def test_foreign(self):
        with self.assertRaises(FileNotFoundError):
            torch.load(os.path.join(self.folder, "nothing.pt"))
        with self.assertRaisesRegex(RuntimeError, "is not a file of save.*b'hell'"):
            torch.load(self.write(b"hello world"))
        with self.assertRaisesRegex(EOFError, "is empty"):
            torch.load(self.write(b""))
        with self.assertRaisesRegex(EOFError, "is empty"):
            torch.load(self.write(b""), mmap=True)
        with self.assertRaisesRegex(RuntimeError, "is a pickle, not a zip archive"):
            torch.load(self.write(pickle.dumps([1], 2)))
        with self.assertRaisesRegex(AttributeError, "'int' object has no attribute 'seek'"):
            torch.load(5)
        with self.assertRaisesRegex(ValueError, "f must be a file name in order to use the mmap argument"):
            torch.load(io.BytesIO(), mmap=True)
        with zipfile.ZipFile(self.path, "w") as archive:
            archive.writestr("hello", b"x")
        with self.assertRaisesRegex(RuntimeError, "a zip archive with 0 data.pkl"):
            torch.load(self.path)

    def test_truncated(self):
        torch.save([torch.arange(10_000)], self.path)
        with open(self.path, "rb") as file:
            whole = file.read()
        for part in (10, len(whole) // 2, len(whole) - 10):
            with self.assertRaisesRegex(RuntimeError, "its end is missing"):
                torch.load(self.write(whole[:part]))

    def test_damaged_data(self):
        torch.save([torch.zeros(10_000)], self.path)
        with open(self.path, "rb") as file:
            whole = bytearray(file.read())
        whole[len(whole) // 2] ^= 1
        with self.assertRaisesRegex(RuntimeError, "file/data/0 in it is damaged .*CRC"):
            torch.load(self.write(whole))

    def test_compressed_and_big_endian(self):
        for compression, order, text in ((zipfile.ZIP_DEFLATED, b"little", "is compressed"),
                                         (zipfile.ZIP_STORED, b"big", "byte order")):
            with zipfile.ZipFile(self.path, "w", compression) as archive:
                archive.writestr("a/data.pkl", b"\x80\x02N.")
                archive.writestr("a/byteorder", order)
            with self.assertRaisesRegex(RuntimeError, text):
                torch.load(self.path)


class FromTorch(FolderCase):
    def check(self, got):
        self.assertEqual(got["a"].tolist(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
        got["a"][2] = 7.0
        self.assertEqual(got["b"].tolist(), [7.0, 3.0])  # a view
        self.assertIsInstance(got["p"], torch.nn.Parameter)
        self.assertEqual((got["p"].tolist(), got["p"].requires_grad), ([1.0, 1.0], True))
        for name in DTYPES:
            self.assertEqual(got["types"][name].dtype, getattr(torch, name))
            self.assertEqual([float(x) for x in got["types"][name].tolist()], [0.0, 1.0, 1.0])
        self.assertEqual((got["turned"].shape, got["turned"].stride()), ((3, 2), (1, 3)))
        self.assertEqual(got["turned"].tolist(), [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]])
        self.assertEqual(got["empty"].shape, (0, 3))
        self.assertEqual((got["size"], got["dtype"], got["device"]),
                         (torch.Size([1, 2]), torch.float32, torch.device("cpu")))
        self.assertEqual(got["plain"], (1, 2.5, None, True, b"x", collections.OrderedDict(x=1)))

    def test_golden(self):
        self.check(torch.load(TORCH_FILE))
        self.check(torch.load(TORCH_FILE, mmap=True))

    def test_optimizer(self):
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.Adam(model.parameters())
        got = torch.load(TORCH_FILE)
        model.load_state_dict(got["model"])
        optimizer.load_state_dict(got["optimizer"])
        self.assertEqual(optimizer.state[model.weight]["step"].item(), 1.0)
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()

    def test_live(self):
        """torch, where it is installed, reads what we write."""
        python = os.environ.get("MT_TORCH_PYTHON", sys.executable)
        probe = subprocess.run([python, "-c", "import torch"], capture_output=True)
        if probe.returncode != 0:
            self.skipTest("torch is not installed")
        whole = torch.arange(6.0)
        torch.save({"a": whole, "b": whole[2:4], "p": torch.nn.Parameter(torch.ones(2)),
                    "h": torch.ones(2).bfloat16(), "d": torch.float16, "s": torch.Size([3])}, self.path)
        code = ("import torch, sys; d = torch.load(sys.argv[1]); d['a'][2] = 7; "
                "print(d['b'].tolist(), type(d['p']).__name__, d['h'].dtype, d['d'], d['s'])")
        done = subprocess.run([python, "-c", code, self.path], capture_output=True, text=True, timeout=100)
        self.assertEqual(done.stdout.strip(),
                         "[7.0, 3.0] Parameter torch.bfloat16 torch.float16 torch.Size([3])", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)  # reasons of skipped tests are shown
