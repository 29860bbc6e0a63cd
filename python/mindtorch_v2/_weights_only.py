# SPDX-License-Identifier: Apache-2.0
"""Reads an untrusted pickle: load(weights_only=True).

A pickle is a program for a small machine with a stack. This is that machine, with only those
instructions that Python's picklers of protocol 2 to 5 write for data, and with rules that no pickle
can break:

  WO1  A name is looked up in the caller's table, and is never itself changed: what it stands for
       may be called (if the table says how) or kept as a value, but nothing is built, appended or
       set on it.
  WO2  Only objects that this load has made are changed, and only those of plain types (list, dict,
       set ...) or of classes that the user has allowed.
  WO3  Only what the table gives a maker for is called. Makers check their arguments first.
  WO4  Work and memory are bounded by the file's own size: what a maker copies is paid for
       (`spend`), a key that would take very long to hash, or overflow the C stack, is refused.
       Nesting costs no recursion.
"""

import pickle
import struct
from collections import Counter, OrderedDict, defaultdict

KEY_DEPTH = 64  # of tuples and frozensets in a key
KEY_PARTS = 4096  # of all tuples in a key, with repetitions: hash() looks at each

FACTORIES = (None, dict, list, int, float, set)  # of a defaultdict

_DICTS = (dict, OrderedDict, defaultdict, Counter)


def refuse(why):
    """The pickle wants something that is not data."""
    raise pickle.UnpicklingError(f"Weights only load failed. {why}")


def _kind(value):
    return f"the name {value.__qualname__}" if isinstance(value, type) else f"a {type(value).__name__}"


def show(value):
    """A value in a message. repr() would take very long where parts are shared many times."""
    if type(value) in (str, bytes):
        return repr(value[:100])
    if type(value) in (int, float, bool):
        return f"{value}" if type(value) is not int or abs(value) < 1 << 128 else "an int that is too large"
    if type(value) in (tuple, list):
        inner = [show(item) if type(item) not in (tuple, list) else type(item).__name__ for item in value[:10]]
        return f"({', '.join(inner)}{', ...' if len(value) > 10 else ''})"
    return "None" if value is None else type(value).__name__


def check_key(key):
    """WO4: hash() of a tuple is a recursion in C, and its result is kept nowhere."""
    if not isinstance(key, (tuple, frozenset)):
        return key
    parts, level, depth = 0, [key], 0
    while level:
        depth += 1
        inner = []
        for value in level:
            parts += len(value)
            if depth > KEY_DEPTH or parts > KEY_PARTS:
                refuse(f"A key of {KEY_PARTS} parts, or nested {KEY_DEPTH} deep, is too large")
            inner += [part for part in value if isinstance(part, (tuple, frozenset))]
        level = inner
    return key


class Reader:
    """The machine.

    find(module, name) gives (value, maker): what the name stands for, and what REDUCE may do with it
    (None: nothing). A maker is called as maker(reader, *arguments). classes: what the user has allowed
    to be made and built as pickle would. persistent_load(identity) gives a storage.
    """

    def __init__(self, data, find, classes, persistent_load, encoding="utf-8"):
        self.data = data
        self.find = find
        self.classes = classes
        self.persistent_load = persistent_load
        self.encoding = encoding
        self.at = 0
        self.stack = []
        self.marks = []
        self.memo = {}
        self.names = {}  # id -> (value, maker) of what the file has named; holds it, so that ids stay
        self.left = len(data)

    def spend(self, amount):
        """Pays for something of that many parts which the pickle did not write out itself."""
        self.left -= amount
        if self.left < 0:
            refuse("The file asks for copies that are larger than itself")

    # ---- reading ----

    def take(self, count):
        end = self.at + count
        if end > len(self.data):
            raise EOFError("it ends in the midst of an instruction")
        piece = self.data[self.at : end]
        self.at = end
        return piece

    def number(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def line(self):
        end = self.data.find(b"\n", self.at)
        if end < 0:
            raise EOFError("a name in it has no end")
        text = self.take(end - self.at)
        self.at += 1
        return text.decode("utf-8")

    def load(self):
        table, data = _INSTRUCTIONS, self.data
        while True:
            if self.at >= len(data):
                raise EOFError("it has no end")
            code = data[self.at]
            self.at += 1
            if code == 0x2E:  # STOP
                break
            do = table.get(code)
            if do is None:
                refuse(f"Unsupported operand {code} ({_NAMES.get(code, 'no instruction')})")
            do(self)
        value = self.pop()
        if self.stack or self.marks:
            raise ValueError("it ends with more than one value")
        return value

    # ---- the stack ----

    def pop(self):
        if not self.stack:
            raise IndexError("it takes a value where there is none")
        return self.stack.pop()

    def top(self):
        if not self.stack:
            raise IndexError("it uses a value where there is none")
        return self.stack[-1]

    def pop_mark(self):
        if not self.marks:
            raise IndexError("it goes back to a mark that is not there")
        items = self.stack
        self.stack = self.marks.pop()
        return items

    # ---- objects ----

    def changeable(self, kinds, what):
        """The object on top, if the load may change it (WO1, WO2)."""
        value = self.top()
        kind = type(value)
        if id(value) in self.names:
            refuse(f"{what} on {_kind(value)}, which is not of this file")
        if kind not in kinds and not (kind in self.classes and isinstance(value, kinds)):
            refuse(f"{what} on {_kind(value)} is not possible")
        return value

    def memoize(self, index):
        self.memo[index] = self.top()

    def recall(self, index):
        if index not in self.memo:
            raise ValueError(f"it recalls value {index}, which it has not stored")
        self.stack.append(self.memo[index])

    def name(self, module, name):
        found = self.find(module, name)
        self.names[id(found[0])] = found
        self.stack.append(found[0])

    def do_stack_global(self):
        name, module = self.pop(), self.pop()
        if type(name) is not str or type(module) is not str:
            refuse("A name that is no text")
        self.name(module, name)

    def do_reduce(self):
        arguments, function = self.pop(), self.pop()
        _, maker = self.names.get(id(function), (None, None))
        if maker is None or type(arguments) is not tuple:
            refuse(f"Trying to call {_kind(function)}, which is not allowed")
        self.stack.append(maker(self, *arguments))

    def do_newobj(self):
        arguments, kind = self.pop(), self.pop()
        if not isinstance(kind, type) or kind not in self.classes or type(arguments) is not tuple:
            refuse(f"Trying to make an object of {_kind(kind)}, which is not allowed")
        self.stack.append(kind.__new__(kind, *arguments))

    def do_build(self):
        state = self.pop()
        value = self.top()
        kind = type(value)
        if id(value) in self.names or kind not in (OrderedDict, *self.classes):
            refuse(f"Can only build an OrderedDict or an object of an allowed class, but got {_kind(value)}")
        if kind is not OrderedDict and hasattr(kind, "__setstate__"):
            value.__setstate__(state)
            return
        slots = None
        if type(state) is tuple and len(state) == 2 and kind is not OrderedDict:
            state, slots = state
        for names in (state, slots):
            if names is not None and (type(names) is not dict or any(type(k) is not str for k in names)):
                refuse(f"The state of {_kind(value)} is not a dict of names")
        if state:
            value.__dict__.update(state)
        for name, item in (slots or {}).items():
            if name.startswith("__"):
                refuse(f"Trying to set {name} of {_kind(value)}")
            setattr(value, name, item)

    # ---- containers ----

    def put(self, items):
        if len(items) % 2:
            raise ValueError("a dict has a key without a value")
        target = self.changeable(_DICTS, "Setting items")
        for index in range(0, len(items), 2):
            target[check_key(items[index])] = items[index + 1]

    def do_setitem(self):
        value, key = self.pop(), self.pop()
        self.put([key, value])

    def do_setitems(self):
        self.put(self.pop_mark())

    def append(self, items):
        self.changeable((list,), "Appending").extend(items)

    def do_append(self):
        self.append([self.pop()])

    def do_appends(self):
        self.append(self.pop_mark())

    def do_additems(self):
        items = [check_key(item) for item in self.pop_mark()]
        self.changeable((set,), "Adding").update(items)

    def do_frozenset(self):
        items = self.pop_mark()
        self.stack.append(frozenset(check_key(item) for item in items))

    def do_tuple(self):
        items = self.pop_mark()
        self.stack.append(tuple(items))

    def do_tuple_of(self, count):
        items = [self.pop() for _ in range(count)]
        self.stack.append(tuple(reversed(items)))

    def do_mark(self):
        self.marks.append(self.stack)
        self.stack = []

    def do_pop(self):
        if self.stack:
            self.stack.pop()
        else:
            self.pop_mark()

    # ---- values ----

    def push(self, value):
        self.stack.append(value)

    def text(self, form):
        self.push(str(self.take(self.number(form)), "utf-8", "surrogatepass"))

    def old_text(self, form):
        piece = bytes(self.take(self.number(form)))
        self.push(piece if self.encoding == "bytes" else piece.decode(self.encoding))

    def do_proto(self):
        protocol = self.take(1)[0]
        if not 2 <= protocol <= 5:
            refuse(f"Unsupported pickle protocol {protocol}")

    def do_persistent(self):
        self.push(self.persistent_load(self.pop()))


def _instructions():
    """From an instruction's byte to what it does."""
    table = {
        pickle.PROTO: Reader.do_proto,
        pickle.FRAME: lambda r: r.take(8),
        pickle.MARK: Reader.do_mark,
        pickle.POP: Reader.do_pop,
        pickle.POP_MARK: Reader.pop_mark,
        pickle.BINGET: lambda r: r.recall(r.number("<B")),
        pickle.LONG_BINGET: lambda r: r.recall(r.number("<I")),
        pickle.BINPUT: lambda r: r.memoize(r.number("<B")),
        pickle.LONG_BINPUT: lambda r: r.memoize(r.number("<I")),
        pickle.MEMOIZE: lambda r: r.memoize(len(r.memo)),
        pickle.NONE: lambda r: r.push(None),
        pickle.NEWTRUE: lambda r: r.push(True),
        pickle.NEWFALSE: lambda r: r.push(False),
        pickle.BININT: lambda r: r.push(r.number("<i")),
        pickle.BININT1: lambda r: r.push(r.number("<B")),
        pickle.BININT2: lambda r: r.push(r.number("<H")),
        pickle.LONG1: lambda r: r.push(pickle.decode_long(r.take(r.number("<B")))),
        pickle.LONG4: lambda r: r.push(pickle.decode_long(r.take(r.number("<I")))),
        pickle.BINFLOAT: lambda r: r.push(r.number(">d")),
        pickle.SHORT_BINSTRING: lambda r: r.old_text("<B"),
        pickle.BINSTRING: lambda r: r.old_text("<I"),
        pickle.SHORT_BINBYTES: lambda r: r.push(bytes(r.take(r.number("<B")))),
        pickle.BINBYTES: lambda r: r.push(bytes(r.take(r.number("<I")))),
        pickle.BINBYTES8: lambda r: r.push(bytes(r.take(r.number("<Q")))),
        pickle.BYTEARRAY8: lambda r: r.push(bytearray(r.take(r.number("<Q")))),
        pickle.SHORT_BINUNICODE: lambda r: r.text("<B"),
        pickle.BINUNICODE: lambda r: r.text("<I"),
        pickle.BINUNICODE8: lambda r: r.text("<Q"),
        pickle.EMPTY_LIST: lambda r: r.push([]),
        pickle.EMPTY_TUPLE: lambda r: r.push(()),
        pickle.EMPTY_DICT: lambda r: r.push({}),
        pickle.EMPTY_SET: lambda r: r.push(set()),
        pickle.TUPLE: Reader.do_tuple,
        pickle.TUPLE1: lambda r: r.do_tuple_of(1),
        pickle.TUPLE2: lambda r: r.do_tuple_of(2),
        pickle.TUPLE3: lambda r: r.do_tuple_of(3),
        pickle.APPEND: Reader.do_append,
        pickle.APPENDS: Reader.do_appends,
        pickle.SETITEM: Reader.do_setitem,
        pickle.SETITEMS: Reader.do_setitems,
        pickle.ADDITEMS: Reader.do_additems,
        pickle.FROZENSET: Reader.do_frozenset,
        pickle.GLOBAL: lambda r: r.name(r.line(), r.line()),
        pickle.STACK_GLOBAL: Reader.do_stack_global,
        pickle.REDUCE: Reader.do_reduce,
        pickle.NEWOBJ: Reader.do_newobj,
        pickle.BUILD: Reader.do_build,
        pickle.BINPERSID: Reader.do_persistent,
    }
    return {code[0]: do for code, do in table.items()}


_INSTRUCTIONS = _instructions()
_NAMES = {
    value[0]: name
    for name, value in vars(pickle).items()
    if name.isupper() and isinstance(value, bytes) and len(value) == 1
}


# ---- makers of plain types: maker(reader, *arguments) ------------------------------------------------


def _one(arguments, kinds, what):
    """The only argument, of one of the types; None if there is none."""
    if not arguments:
        return None
    if len(arguments) > 1 or type(arguments[0]) not in kinds:
        refuse(f"{what} of {', '.join(map(_kind, arguments))} is not possible")
    return arguments[0]


def _make_items(kind):
    def make(reader, *arguments):
        items = _one(arguments, (list, tuple), kind.__name__) or ()
        reader.spend(len(items))
        return kind(check_key(item) for item in items)

    return make


def _make_ordered(reader, *arguments):
    pairs = _one(arguments, (list, tuple), "OrderedDict") or ()
    made = OrderedDict()
    reader.spend(len(pairs))
    for pair in pairs:
        if type(pair) not in (list, tuple) or len(pair) != 2:
            refuse("An OrderedDict of what are no pairs is not possible")
        made[check_key(pair[0])] = pair[1]
    return made


def _make_counter(reader, *arguments):
    counts = _one(arguments, (dict,), "Counter") or {}
    reader.spend(len(counts))
    return Counter(counts)


def _make_default(reader, factory=None, *rest):
    if not any(factory is kind for kind in FACTORIES):  # a tensor has its own idea of ==
        refuse(f"a defaultdict of {show(factory)} is not allowed in a file")
    items = _one(rest, (dict,), "defaultdict") or {}
    reader.spend(len(items))
    return defaultdict(factory, items)


def _make_bytes(reader, *arguments):
    """Protocol 2 writes a bytearray as text and its encoding, others as bytes."""
    if not arguments:
        return bytearray()
    if type(arguments[0]) is bytes and len(arguments) == 1:
        reader.spend(len(arguments[0]))
        return bytearray(arguments[0])
    return bytearray(make_encoded(reader, *arguments))


def make_encoded(reader, text=None, encoding=None):
    """_codecs.encode(): how protocol 2 writes bytes."""
    if type(text) is not str or type(encoding) is not str or encoding not in ("latin1", "latin-1"):
        refuse(f"_codecs.encode with {show(encoding)} is not allowed in a file")
    reader.spend(len(text))
    return text.encode("latin1")


def _make_complex(reader, real=0.0, imag=0.0):
    if type(real) not in (int, float) or type(imag) not in (int, float):
        refuse("A complex number of what are no numbers is not possible")
    return complex(real, imag)


PLAIN = {
    set: _make_items(set),
    frozenset: _make_items(frozenset),
    OrderedDict: _make_ordered,
    Counter: _make_counter,
    defaultdict: _make_default,
    bytearray: _make_bytes,
    complex: _make_complex,
}
