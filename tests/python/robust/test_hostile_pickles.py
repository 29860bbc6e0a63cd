# SPDX-License-Identifier: Apache-2.0
"""load(weights_only=True) before files that were made to harm: each is refused with an error that says
why, and leaves nothing changed in the process. WO1 to WO4: python/mindtorch_v2/_weights_only.py."""
import builtins
import codecs
import collections
import copyreg
import io
import os
import pickle
import random
import struct
import unittest
import zipfile

import mindtorch_v2 as torch
from mindtorch_v2 import _weights_only, serialization


class Allowed:
    pass


class AllowedList(list):
    pass


class Slots:
    __slots__ = ("x",)


# ---- an assembler of pickles ----

def text(value):
    value = value.encode()
    return b"X" + struct.pack("<I", len(value)) + value


def name(module, what):
    return f"c{module}\n{what}\n".encode()


def number(value):
    return b"J" + struct.pack("<i", value)


def state(**items):
    return b"}" + b"".join(text(key) + value + b"s" for key, value in items.items())


def call(function, *arguments):
    return function + b"(" + b"".join(arguments) + b"tR"


NAMES = {
    "OrderedDict": name("collections", "OrderedDict"),
    "Counter": name("collections", "Counter"),
    "defaultdict": name("collections", "defaultdict"),
    "encode": name("_codecs", "encode"),
    "Size": name("torch", "Size"),
    "device": name("torch", "device"),
    "float32": name("torch", "float32"),
    "FloatStorage": name("torch", "FloatStorage"),
    "_rebuild_tensor_v2": name("torch._utils", "_rebuild_tensor_v2"),
    "_rebuild_parameter": name("torch._utils", "_rebuild_parameter"),
    **{kind: name("builtins", kind) for kind in ("set", "frozenset", "bytearray", "complex", "dict", "list",
                                                 "int", "float", "tuple")},
}
STORAGE = b"(" + text("storage") + NAMES["FloatStorage"] + text("0") + text("cpu") + number(4) + b"tQ"
TENSOR = (NAMES["_rebuild_tensor_v2"] + b"(" + STORAGE + number(0) + number(4) + b"\x85" + number(1)
          + b"\x85" + b"\x89" + b"Nt" + b"R")


def archive(code, protocol=2, data=None):
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as made:
        made.writestr("a/data.pkl", b"\x80" + bytes([protocol]) + code + b".")
        for key, content in (data or {"0": b"\0" * 16}).items():
            made.writestr(f"a/data/{key}", content)
    memory.seek(0)
    return memory


def snapshot():
    """What files have tried to change."""
    things = [collections.OrderedDict, collections.Counter, collections.defaultdict, collections, builtins,
              codecs, torch.Size, torch.device, torch.dtype, torch.Tensor, torch.nn.Parameter, torch, serialization,
              _weights_only, pickle, copyreg, os, Allowed, AllowedList, Slots]
    things += [getattr(serialization, storage) for storage in serialization._STORAGES]
    found = [dict(vars(thing)) for thing in things]
    for function in (serialization._rebuild_tensor_v2, serialization._rebuild_parameter,
                     serialization._allowed, _weights_only.refuse):
        found.append((function.__code__, function.__defaults__, function.__kwdefaults__,
                      dict(function.__dict__), dict(function.__annotations__)))
    found.append((dict(copyreg.dispatch_table), dict(serialization._safe), list(os.environ.items())))
    return found


def setUpModule():
    torch.load(archive(TENSOR))  # what is imported when it is first used
    repr(torch.ones(1))


class HostileCase(unittest.TestCase):
    def setUp(self):
        self.before = snapshot()

    def tearDown(self):
        serialization.clear_safe_globals()
        self.assertEqual(snapshot(), self.before)

    def refused(self, code, why=".", **options):
        with self.assertRaisesRegex(pickle.UnpicklingError, why):
            torch.load(archive(code, **options))

    def loads(self, code, **options):
        return torch.load(archive(code, **options))


class Names(HostileCase):
    """WO1: what a name stands for is not changed."""

    def test_build(self):
        for what, code in NAMES.items():
            for argument in (state(pwned=b"N"), b"N" + state(__defaults__=b")") + b"\x86",
                             state(name=text("IntStorage")), b"N", state(__class__=NAMES["dict"])):
                with self.subTest(what, state=argument):
                    self.refused(code + argument + b"b", "Can only build an OrderedDict or")

    def test_build_of_a_class_that_the_user_allows(self):
        for kind in (Allowed, Slots, AllowedList):
            serialization.add_safe_globals([kind])
            code = name(__name__, kind.__name__)
            self.refused(code + state(pwned=b"N") + b"b", "Can only build")
            self.refused(code + b"N" + state(pwned=b"N") + b"\x86b", "Can only build")
            self.refused(code + b"Na", "Appending on the name")

    def test_items(self):
        for what, code in NAMES.items():
            with self.subTest(what):
                self.refused(code + b"NNs", "Setting items on")
                self.refused(code + b"(NNu", "Setting items on")
                self.refused(code + b"Na", "Appending on")
                self.refused(code + b"(Ne", "Appending on")
                self.refused(code + b"(N\x90", "Adding on", protocol=4)

    def test_a_value_the_user_allows_is_not_changed(self):
        shared = {"a": 1}
        serialization.add_safe_globals([(shared, "mine.shared")])
        self.assertIs(self.loads(name("mine", "shared")), shared)
        self.refused(name("mine", "shared") + b"NNs", "not of this file")
        self.assertEqual(shared, {"a": 1})

    def test_lookup(self):
        for module, what in (("os", "system"), ("builtins", "eval"), ("builtins", "getattr"),
                             ("collections", "OrderedDict.fromkeys"), ("torch", "Size.numel"),
                             ("torch", "serialization"), ("mindtorch_v2.serialization", "_safe"),
                             ("mindtorch_v2.serialization", "torch"), ("torch._utils", "__dict__"),
                             ("__builtin__", "exec"), ("copyreg", "_reconstructor"), ("", ""),
                             ("operator", "attrgetter"), ("torch.storage", "_load_from_bytes")):
            with self.subTest(module, name=what):
                self.refused(name(module, what), "was not an allowed global")
                self.refused(text(module) + text(what) + b"\x93", "was not an allowed global", protocol=4)
        self.refused(b"NN\x93", "A name that is no text", protocol=4)
        self.refused(b"]]\x93", "A name that is no text", protocol=4)


class Calls(HostileCase):
    """WO3: nothing is called but what has a maker, and makers look first."""

    def test_what_cannot_be_called(self):
        for code in (*(NAMES[what] for what in ("dict", "list", "int", "float", "tuple", "float32", "FloatStorage")),
                     b"N", b"]", b"}", text("os.system"), number(3), TENSOR, STORAGE, b")"):
            with self.subTest(code):
                self.refused(code + b")R", "Trying to call .* not allowed")
        self.refused(NAMES["set"] + b"NR", "Trying to call")
        self.refused(NAMES["set"] + b"]R", "Trying to call")

    def test_arguments(self):
        for what, arguments in (("bytearray", number(2**31 - 1)), ("bytearray", NAMES["bytearray"] + b")R"),
                                ("bytearray", text("x") + text("rot13")), ("encode", text("x") + text("hex")),
                                ("encode", text("x") + b"N"), ("encode", TENSOR + TENSOR), ("set", number(3)),
                                ("set", text("ab")), ("set", b"]]"), ("set", b"(]t"), ("frozenset", b"}"),
                                ("OrderedDict", number(1)), ("OrderedDict", b"](Ne"), ("OrderedDict", b"](]e"),
                                ("Counter", text("aab")), ("Counter", number(3)), ("defaultdict", NAMES["encode"]),
                                ("defaultdict", TENSOR), ("defaultdict", NAMES["Counter"]),
                                ("defaultdict", b"N" + number(1)), ("complex", text("1+2j")),
                                ("Size", text("ab")), ("Size", b"N"), ("device", b"N"), ("device", b"]"),
                                ("_rebuild_tensor_v2", b""), ("_rebuild_parameter", b"N\x88N"),
                                ("_rebuild_tensor_v2", b"NK\x00))\x89N")):
            with self.subTest(what, arguments=arguments):
                self.refused(call(NAMES[what], arguments))

    def test_newobj(self):
        for code in (*NAMES.values(), b"N", text("x")):
            self.refused(code + b")\x81", "Trying to make an object")
            self.refused(code + b")}\x92", "NEWOBJ_EX", protocol=4)
        serialization.add_safe_globals([Allowed])
        self.assertIsInstance(self.loads(name(__name__, "Allowed") + b")\x81"), Allowed)
        self.refused(name(__name__, "Allowed") + b"N\x81", "Trying to make an object")
        self.refused(name(__name__, "Allowed") + b")}\x92", "NEWOBJ_EX", protocol=4)

    def test_instructions_that_are_not_there(self):
        copyreg.add_extension(__name__, "Allowed", 200)
        self.addCleanup(copyreg.remove_extension, __name__, "Allowed", 200)
        for code, what in ((b"\x82\xc8", "EXT1"), (b"\x83\xc8\x00", "EXT2"), (b"\x84\xc8\x00\x00\x00", "EXT4"),
                           (b"(icollections\nOrderedDict\n", "INST"),
                           (b"(" + NAMES["OrderedDict"] + b"o", "OBJ"), (b"P0\n", "PERSID"), (b"N2", "DUP"),
                           (b"\x97", "NEXT_BUFFER"), (b"N\x98", "READONLY_BUFFER"), (b"I1\n", "INT"),
                           (b"S'x'\n", "STRING"), (b"g0\n", "GET"), (b"Np0\n", "PUT"), (b"(d", "DICT"),
                           (b"(l", "LIST"), (b"L1L\n", "LONG"), (b"F1\n", "FLOAT"), (b"V1\n", "UNICODE"),
                           (b"\xff", "no instruction"), (b"\x00", "no instruction")):
            with self.subTest(what):
                self.refused(code, rf"Unsupported operand \d+ \({what}\)")
        for protocol in (0, 1, 6, 255):
            self.refused(b"N", f"Unsupported pickle protocol {protocol}", protocol=protocol)


class Objects(HostileCase):
    """WO2: only what the load has made is changed, and only plain types or allowed classes."""

    def test_build(self):
        for code in (b"]", b"}", b")", b"N", text("x"), number(1), TENSOR, STORAGE, b"\x8f",
                     call(NAMES["Size"], b"]"), call(NAMES["device"], text("cpu")),
                     call(NAMES["Counter"]), call(NAMES["defaultdict"], NAMES["list"]),
                     call(NAMES["_rebuild_parameter"], TENSOR, b"\x88", b"N")):
            for argument in (state(x=b"N"), b"N" + state(grad=b"N") + b"\x86", state(__class__=NAMES["dict"])):
                with self.subTest(code):
                    self.refused(code + argument + b"b", "Can only build", protocol=4)

    def test_ordered_dict(self):
        made = self.loads(call(NAMES["OrderedDict"]) + state(_metadata=b"}") + b"b")
        self.assertEqual(made._metadata, {})
        for argument in (b"N" + state(x=b"N") + b"\x86", b"]", number(3), b"}" + number(1) + b"Ns", text("ab")):
            self.refused(call(NAMES["OrderedDict"]) + argument + b"b", "not a dict of names")

    def test_allowed_classes(self):
        serialization.add_safe_globals([Allowed, AllowedList, Slots])
        made = self.loads(name(__name__, "Allowed") + b")\x81" + state(x=number(3)) + b"b")
        self.assertEqual(made.x, 3)
        made = self.loads(name(__name__, "AllowedList") + b")\x81(" + number(3) + b"e" + state(x=b"N") + b"b")
        self.assertEqual((made, made.x), ([3], None))
        made = self.loads(name(__name__, "Slots") + b")\x81N" + state(x=number(3)) + b"\x86b")
        self.assertEqual(made.x, 3)
        allowed = name(__name__, "Allowed")
        self.refused(allowed + b")\x81N" + state(__class__=name(__name__, "Slots")) + b"\x86b", "set __class__")
        self.refused(allowed + b")\x81N" + state(__dict__=b"}") + b"\x86b", "set __dict__")
        self.refused(allowed + b")\x81" + b"}" + number(1) + b"Nsb", "not a dict of names")
        self.refused(allowed + b")\x81Na", "Appending on")
        self.refused(name(__name__, "Slots") + b")\x81" + state(x=b"N") + b"b")  # has no __dict__

    def test_containers_of_another_kind(self):
        for code, why in ((text("ab") + b"Na", "Appending on a str"), (b")Na", "Appending on a tuple"),
                          (b"}Na", "Appending on a dict"), (b"](NNu", "Setting items on a list"),
                          (text("ab") + number(0) + text("c") + b"s", "Setting items on a str"),
                          (TENSOR + number(0) + number(1) + b"s", "Setting items on a Tensor"),
                          (b"](N\x90", "Adding on a list"), (b"\x96" + struct.pack("<Q", 1) + b"a" + b"Na",
                                                             "Appending on a bytearray"),
                          (STORAGE + b"Na", "Appending on a _Loaded")):
            with self.subTest(code):
                self.refused(code, why, protocol=5)

    def test_references(self):
        for code in (b"N", b"]", text("storage"), b"(" + text("storage") + b"t",
                     b"(" + text("module") + NAMES["FloatStorage"] + text("0") + text("cpu") + number(1) + b"t",
                     b"(" + text("storage") + NAMES["float32"] + text("0") + text("cpu") + number(1) + b"t",
                     b"(" + text("storage") + NAMES["FloatStorage"] + number(0) + text("cpu") + number(1) + b"t",
                     b"(" + text("storage") + NAMES["FloatStorage"] + text("0") + b"N" + number(1) + b"t",
                     b"(" + text("storage") + NAMES["FloatStorage"] + text("0") + text("cpu") + b"\x88t",
                     b"(" + text("storage") + NAMES["FloatStorage"] + text("0") + text("cpu") + number(-1) + b"t"):
            self.refused(code + b"Q", "which is no storage")


class Damage(HostileCase):
    def test_stack(self):
        for code in (b"", b"0", b"1", b"t", b"e", b"\x85", b"N\x86", b"R", b"NR", b"b", b"a", b"s", b"Ns", b"u", b"q\x00",
                     b"h\x00", b"j\x00\x00\x00\x00", b"NN", b"(N", b"}(Nu", b"Q", b"\x93", b"(\x90", b"}(]Nu"):
            with self.subTest(code):
                self.refused(code, "is damaged", protocol=4)

    def test_sizes(self):
        for code in (b"X\xff\xff\xff\xff", b"B\xff\xff\xff\x7f", b"\x8b\xff\xff\xff\x7f", b"T\xff\xff\xff\xff",
                     b"\x8d" + b"\xff" * 8, b"\x8e" + b"\xff" * 8, b"\x96" + b"\xff" * 8, b"X", b"G\0",
                     b"cos", b"cos\nx"):
            with self.subTest(code):
                self.refused(code, "is damaged", protocol=5)
        for size in (2**40, 2**62, 2**63, 2**200):
            long = size.to_bytes(32, "little")
            tensor = (NAMES["_rebuild_tensor_v2"] + b"(" + STORAGE + number(0) + (b"\x8a\x20" + long) * 2 + b"\x86"
                      + number(0) * 2 + b"\x86" + b"\x89" + b"Nt" + b"R")
            self.refused(tensor, "is not possible")
            single = tensor.replace((b"\x8a\x20" + long) * 2 + b"\x86", b"\x8a\x20" + long + b"\x85").replace(
                number(0) * 2 + b"\x86", number(1) + b"\x85")
            self.refused(single)

    def test_random(self):
        """Programs of instructions in any order give a value or an error, and change nothing."""
        rng = random.Random(int(os.environ.get("MT_SEED", "13")))
        parts = [*NAMES.values(), STORAGE, TENSOR, text("x"), text("__class__"), text("__dict__"), number(1), b"N", b"]",
                 b"}", b")", b"(", b"a", b"e", b"s", b"u", b"t", b"\x85", b"\x86", b"\x87", b"R", b"R", b"b", b"b", b"\x81",
                 b"Q", b"0", b"1", b"q\x00", b"q\x01", b"h\x00", b"h\x01", b"\x94", b"\x8f", b"\x90", b"\x91", b"\x93", b"2",
                 b")R", b"}b", call(NAMES["OrderedDict"])]
        outcomes = collections.Counter()
        for _ in range(6000):
            code = b"".join(rng.choice(parts) for _ in range(rng.randrange(1, 25)))
            try:
                self.loads(code, protocol=4)
                outcomes["loaded"] += 1
            except (pickle.UnpicklingError, RuntimeError) as error:
                outcomes[type(error).__name__] += 1
        self.assertGreater(outcomes["loaded"], 10)
        self.assertGreater(outcomes["UnpicklingError"], 1000)


class Bombs(HostileCase):
    """WO4: work and memory are bounded by the file."""

    def test_memo(self):
        self.assertEqual(self.loads(b"]r\xff\xff\xff\xff0j\xff\xff\xff\xff"), [])

    def test_nesting(self):
        deep = 200_000
        for code in (b"]" * deep + b"a" * (deep - 1), b")" + b"\x85" * deep):
            made = self.loads(code)
            while made:
                made = made[0]
        self.refused(b"(" * deep + b"N", "more than one value")

    def test_keys_that_cannot_be_hashed(self):
        deep, wide = b")" + b"\x85" * 200_000, b")" + b"q\x00h\x00\x86" * 100
        for key in (deep, wide):
            self.refused(b"}" + key + b"Ns", "A key of .* is too large")
            self.refused(b"}(" + key + b"Nu", "A key of .* is too large")
            self.refused(call(NAMES["set"], b"]" + key + b"a"), "A key of .* is too large")
            self.refused(call(NAMES["OrderedDict"], b"]]" + key + b"aNaa"), "A key of .* is too large")
            self.refused(b"\x8f(" + key + b"\x90", "A key of .* is too large", protocol=4)
            self.refused(b"(" + key + b"\x91", "A key of .* is too large", protocol=4)
        self.refused(b"}]Ns", "unhashable")
        self.assertEqual(self.loads(b"}" + b"K\x01K\x02\x86" + b"Ns"), {(1, 2): None})

    def test_messages(self):
        """An error shows what is wrong, not all of it: repr() of these has 2**100 parts."""
        wide = b")" + b"q\x00h\x00\x86" * 100
        for code in (wide + b"Q", b"(" + text("storage") + wide * 4 + b"tQ", call(NAMES["encode"], text("a"), wide),
                     call(NAMES["defaultdict"], wide), call(NAMES["Size"], wide), call(NAMES["set"], wide, wide),
                     call(NAMES["device"], wide), call(NAMES["OrderedDict"]) + wide + b"b", wide + wide + b"b",
                     NAMES["_rebuild_tensor_v2"] + b"(" + STORAGE + wide * 3 + b"\x89" + b"Nt" + b"R"):
            self.refused(code)

    def test_copies(self):
        large = text("x" * 100_000)
        many = call(NAMES["encode"], b"h\x00", text("latin1"))
        self.refused(large + b"q\x000](" + many * 50 + b"e", "copies that are larger than itself")
        self.refused(large.replace(b"X", b"B", 1) + b"q\x000](" + call(NAMES["bytearray"], b"h\x00") * 50 + b"e",
                     "copies that are larger", protocol=3)
        self.refused(b"](" + b"N" * 1000 + b"eq\x000](" + call(NAMES["set"], b"h\x00") * 900 + b"e",
                     "copies that are larger")

    def test_cycles(self):
        made = self.loads(b"]q\x00h\x00a")
        self.assertIs(made[0], made)
        made = self.loads(b"}q\x00" + text("me") + b"h\x00s")
        self.assertIs(made["me"], made)
        made = self.loads(call(NAMES["OrderedDict"]) + b"q\x00" + state(_metadata=b"h\x00") + b"b")
        self.assertIs(made._metadata, made)

    def test_storages_larger_than_the_file(self):
        data = {"0": b"\0" * 1_000_000}
        codes = []
        for kind in ("FloatStorage", "IntStorage", "ByteStorage"):
            size = 1 if kind == "ByteStorage" else 4
            codes.append(b"(" + text("storage") + name("torch", kind) + text("0") + text("cpu")
                         + number(1_000_000 // size) + b"tQ")
        self.loads(b"(" + codes[0] * 3 + b"t", data=data)
        with self.assertRaisesRegex(RuntimeError, "its storages are larger than the file"):
            self.loads(b"(" + b"".join(codes) + b"t", data=data)


class Sound(HostileCase):
    """Files that Python's own picklers write for data are read, whichever protocol they have."""

    def test_protocols(self):
        value = {"a": [1, -1, 255, 65535, 2**31, -(2**100), 1.5, None, True, False, "x\u20ac" * 300, b"\x00\xff",
                       b"y" * 300,
                       bytearray(b"\x00\xff"), (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), {1, 2}, frozenset([(3,)]),
                       1 + 2j],
                 (1, "k"): collections.OrderedDict(x=1), "c": collections.Counter("aab"), "many": list(range(3000)),
                 "d": collections.defaultdict(list, a=[1]), "e": [{}, [], set()], "\udcff": 1}
        for protocol in range(2, 6):
            data = pickle.dumps(value, protocol)
            got = self.loads(data[2:-1], protocol=protocol)
            self.assertEqual(got, value)
            self.assertIs(got["d"].default_factory, list)
        cycle = []
        cycle.append((cycle,))
        for protocol in range(2, 6):
            got = self.loads(pickle.dumps(cycle, protocol)[2:-1], protocol=protocol)
            self.assertIs(got[0][0], got)


if __name__ == "__main__":
    unittest.main(verbosity=2)
