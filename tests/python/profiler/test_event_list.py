# SPDX-License-Identifier: Apache-2.0
"""EventList is a list: every list operation, against the same done with a plain list; and its own copies."""
import copy
import operator
import pickle
import random
import unittest

from support_results import ResultsTest, record

from mtprof.events import EventList, FunctionEvent

# What each name of list is tried with. A name of a newer Python that is missing here fails the test below.
CALLS = {
    "append": [lambda x, a: x.append(a[0])],
    "clear": [lambda x, a: x.clear()],
    "copy": [lambda x, a: x.copy()],
    "count": [lambda x, a: x.count(a[1]), lambda x, a: x.count(None)],
    "extend": [lambda x, a: x.extend(a[:2]), lambda x, a: x.extend(iter(a[:2])), lambda x, a: x.extend(3)],
    "index": [lambda x, a: x.index(a[2]), lambda x, a: x.index(a[2], 3), lambda x, a: x.index(None)],
    "insert": [lambda x, a: x.insert(1, a[3]), lambda x, a: x.insert(-100, a[3])],
    "pop": [lambda x, a: x.pop(), lambda x, a: x.pop(0), lambda x, a: x.pop(1000)],
    "remove": [lambda x, a: x.remove(a[2]), lambda x, a: x.remove(None)],
    "reverse": [lambda x, a: x.reverse()],
    "sort": [lambda x, a: x.sort(key=lambda e: -e.time_range.start), lambda x, a: x.sort()],
    "__add__": [lambda x, a: x + a[:1], lambda x, a: a[:1] + x, lambda x, a: [] + x, lambda x, a: x + (1,)],
    "__iadd__": [lambda x, a: operator.iadd(x, a[:2])],
    "__mul__": [lambda x, a: x * 2, lambda x, a: x * -1],
    "__rmul__": [lambda x, a: 2 * x],
    "__imul__": [lambda x, a: operator.imul(x, 2)],
    "__contains__": [lambda x, a: a[1] in x, lambda x, a: None in x],
    "__eq__": [lambda x, a: x == a, lambda x, a: a == x, lambda x, a: x == a[1:]],
    "__ne__": [lambda x, a: x != a, lambda x, a: x != a[1:]],
    "__lt__": [lambda x, a: x < a, lambda x, a: [] < x],
    "__le__": [lambda x, a: x <= a],
    "__gt__": [lambda x, a: x > a[:2]],
    "__ge__": [lambda x, a: x >= a],
    "__getitem__": [lambda x, a: x[0], lambda x, a: x[-1], lambda x, a: x[1:3], lambda x, a: x[::-1],
                    lambda x, a: x[1000], lambda x, a: x["a"]],
    "__setitem__": [lambda x, a: operator.setitem(x, 0, a[1]), lambda x,
                    a: operator.setitem(x, slice(0, 2), a[:1])],
    "__delitem__": [lambda x, a: operator.delitem(x, 0), lambda x, a: operator.delitem(x, slice(0, 3))],
    "__len__": [lambda x, a: len(x)],
    "__iter__": [lambda x, a: list(iter(x)), lambda x, a: sorted(x, key=id), lambda x, a: tuple(x)],
    "__reversed__": [lambda x, a: list(reversed(x))],
    "__hash__": [lambda x, a: hash(x)],
    "__sizeof__": [lambda x, a: x.__sizeof__() > 0],
    "__bool__": [lambda x, a: bool(x)],
}
# Of the object, not of the list.
OTHERS = {"__class__", "__class_getitem__", "__delattr__", "__dir__", "__doc__", "__format__",
          "__getattribute__",
          "__getstate__", "__init__", "__init_subclass__", "__new__", "__reduce__", "__reduce_ex__",
          "__repr__", "__setattr__",
          "__str__", "__subclasshook__"}


def outcome(call, items, others):
    """What a call gives and leaves, or what it raises."""
    try:
        result = call(items, others)
    except Exception as error:
        return type(error), list(items)
    if result is items:
        result = "itself"
    return result, list(items)


class ListOperations(ResultsTest):
    def setUp(self):
        super().setUp()
        self.events = self.load().events()

    def test_all_of_list(self):
        plain = list(self.events)
        names = set(dir(list))
        self.assertEqual(names - OTHERS - set(CALLS), set(), "names of list that are not tried")
        for name, calls in CALLS.items():
            for number, call in enumerate(calls):
                with self.subTest(name=name, call=number):
                    ours = copy.copy(self.events)
                    self.assertIs(type(ours), EventList)
                    self.assertEqual(outcome(call, ours, plain), outcome(call, list(plain), plain))

    def test_results_have_the_types_that_torchs_have(self):
        for other in (self.events[1:3], self.events.copy(), self.events + [], [] + self.events,
                      self.events * 1):
            self.assertIs(type(other), list)

    def test_it_is_a_list(self):
        self.assertIsInstance(self.events, list)
        self.assertTrue(all(isinstance(event, FunctionEvent) for event in self.events))

    def test_random_changes_keep_averages_right(self):
        choose = random.Random(5)
        plain = list(self.events)
        ours = copy.copy(self.events)
        for _ in range(200):
            name = choose.choice(["append", "pop", "insert", "reverse", "shuffle", "slice"])
            if name == "append":
                ours.append(choose.choice(plain))
            elif name == "pop" and ours:
                ours.pop(choose.randrange(len(ours)))
            elif name == "insert":
                ours.insert(choose.randrange(len(ours) + 1), choose.choice(plain))
            elif name == "reverse":
                ours.reverse()
            elif name == "shuffle":
                choose.shuffle(ours)
            elif name == "slice":
                ours[2:4] = []
            rows = ours.key_averages()
            self.assertEqual(sum(row.count for row in rows), len(ours))
            self.assertAlmostEqual(sum(row.self_cpu_time_total for row in rows), ours.self_cpu_time_total)
            self.assertAlmostEqual(ours.total_average().cpu_time_total, sum(e.cpu_time_total for e in ours))

    def test_the_same_list_each_time(self):
        prof = record(3)
        self.assertIs(prof.events(), prof.events())

    def test_order_is_torchs(self):
        events = record(30).events()
        keys = [(event.time_range.start, -event.time_range.end) for event in events]
        self.assertEqual(keys, sorted(keys))


class Constructor(unittest.TestCase):
    def test_as_list_with_more_keywords(self):
        event = FunctionEvent(1, "a", 0, 0, 1)
        events = EventList([event], use_device="cuda", profile_memory=True, with_flops=True)
        self.assertEqual(events, [event])
        self.assertEqual((events._use_device, events._profile_memory, events._with_flops),
                         ("cuda", True, True))
        self.assertEqual(EventList(), [])
        self.assertEqual(EventList(iter([event])), [event])
        with self.assertRaises(TypeError):
            EventList(3)
        with self.assertRaises(TypeError):
            EventList([], nothing=1)

    def test_str_is_the_table_and_repr_is_short(self):
        event = FunctionEvent(1, "a", 0, 0, 1)
        events = EventList([event])
        self.assertEqual(str(events), events.table())
        self.assertEqual(repr(events), f"[{event!r}]")
        self.assertEqual((str(EventList()), repr(EventList())), ("", "[]"))
        events = EventList(FunctionEvent(n, f"event {n} of a very long name indeed", 0, 0, n) for n in range(20))
        self.assertEqual(repr(events[:2]), repr(list(events[:2])))  # a slice is a list
        self.assertRegex(repr(events), r"^<EventList of 20 events: event 0 of a ver…ong name indeed, .*, …>$")
        self.assertLess(len(repr(events)), 320)
        rows = repr(events.key_averages())
        self.assertIn("<EventList of 20 rows, 190.000us of self CPU time\n", rows)
        self.assertIn("  event 19 of a very long name indeed            19.000us   10.00%        1\n", rows)
        self.assertTrue(rows.endswith("  … 12 more; table() prints them>"))
        self.assertTrue(all(len(line) < 80 for line in rows.splitlines()))
        self.assertEqual(repr(EventList([1, 2])), "[1, 2]")


class TreeByHand(unittest.TestCase):
    """The rules of torch's tree (torch-contract 3.3)."""

    def build(self, *spans, **facts):
        events = EventList([FunctionEvent(i, name, thread, start, end, input_shapes=[], stack=[], **facts)
                            for i, (name, thread, start, end) in enumerate(spans)])
        events._build_tree()
        return events

    def parents(self, events):
        return {event.name: event.cpu_parent.name if event.cpu_parent else None for event in events}

    def test_nesting(self):
        events = self.build(("a", 0, 0, 10), ("b", 0, 2, 10), ("c", 0, 3, 5), ("d", 0, 5, 12), ("e", 1, 1, 2),
                            ("f", 0, 10, 10))
        self.assertEqual(self.parents(events),
                         {"a": None, "b": "a", "c": "b", "d": None, "e": None, "f": "d"})

    def test_duplicates_collapse(self):
        events = self.build(("a", 0, 0, 10), ("a", 0, 1, 9), ("a", 0, 2, 8), ("b", 0, 3, 4))
        self.assertEqual([event.id for event in events], [0, 3])
        self.assertIs(events[1].cpu_parent, events[0])

    def test_a_second_parent_is_refused(self):
        events = self.build(("a", 0, 0, 10), ("b", 0, 2, 3))
        with self.assertRaises(AssertionError):
            events._build_tree()

    def test_backward_stacks(self):
        forward = FunctionEvent(1, "f", 1, 0, 5, sequence_nr=3, stack=["here"], input_shapes=[])
        backward = FunctionEvent(2, "b", 2, 6, 9, sequence_nr=3, fwd_thread=1, scope=1, stack=["there"],
                                 input_shapes=[])
        other = FunctionEvent(3, "o", 2, 10, 12, sequence_nr=4, fwd_thread=1, scope=1, stack=["there"],
                              input_shapes=[])
        EventList([forward, backward, other])._build_tree()
        self.assertEqual((forward.stack, backward.stack, other.stack), (["here"], ["here"], []))


class Copies(ResultsTest):
    def test_copy_keeps_elements_and_facts(self):
        events = self.load().events()
        other = copy.copy(events)
        self.assertEqual(other, events)
        self.assertIs(other[0], events[0])
        self.assertEqual(other.table(), events.table())
        other.pop()
        self.assertEqual(len(events), len(other) + 1)

    def test_pickled_lists(self):
        events = self.load().events()
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            other = pickle.loads(pickle.dumps(events, protocol))
            self.assertIs(type(other), EventList)
            self.assertEqual([repr(event) for event in other], [repr(event) for event in events])
            for ours, theirs in zip(other, events):
                if theirs.cpu_parent is not None:
                    self.assertIs(ours.cpu_parent, other[events.index(theirs.cpu_parent)])
            self.assertEqual(other.key_averages().table(), events.key_averages().table())

    def test_pickled_rows(self):
        rows = self.load().key_averages(group_by_input_shape=True)
        other = pickle.loads(pickle.dumps(rows))
        self.assertEqual([repr(row) for row in other], [repr(row) for row in rows])
        self.assertEqual(other.table(), rows.table())
        self.assertLess(len(other.key_averages()), len(other))

    def test_deep_nesting_is_pickled(self):
        import mtprof
        with mtprof.profile(activities=[mtprof.ProfilerActivity.CPU]) as prof:
            tokens = [mtprof.begin("deep") if i % 2 else mtprof.begin("deeper") for i in range(5000)]
            for token in reversed(tokens):
                mtprof.end(token)
        other = pickle.loads(pickle.dumps(prof.events()))
        self.assertEqual(len(other), 5000)
        self.assertIs(other[4999].cpu_parent, other[4998])

    def test_deep_copies(self):
        events = self.load().events()
        other = copy.deepcopy(events)
        self.assertIsNot(other[0], events[0])
        self.assertIsNone(other[0]._model)


if __name__ == "__main__":
    unittest.main()
