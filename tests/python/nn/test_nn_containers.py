# SPDX-License-Identifier: Apache-2.0
"""nn.Sequential, ModuleList, ModuleDict, ParameterList and ParameterDict. Errors have torch 2.13's words."""
import copy
import pickle
import unittest
from collections import OrderedDict

import mindtorch_v2 as torch
from mindtorch_v2 import nn


class Sequentials(unittest.TestCase):
    def setUp(self):
        self.s = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid())

    def kinds(self, modules):
        return [type(m).__name__ for m in modules]

    def test_indexing(self):
        s = self.s
        self.assertIsInstance(s[-1], nn.Sigmoid)
        self.assertEqual(self.kinds(s[1:]), ["Tanh", "Sigmoid"])
        s[-1] = nn.ELU()
        del s[0]
        self.assertEqual((self.kinds(s), list(s._modules)), (["Tanh", "ELU"], ["0", "1"]))
        del s[0:2]
        self.assertEqual(len(s), 0)
        self.assertFalse(s)
        for index in (5, -4):
            self.assertRaisesRegex(IndexError, f"index {index} is out of range", lambda i=index: self.s[i])
        self.assertRaises(TypeError, lambda: self.s["a"])

    def test_named(self):
        s = nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Tanh()))
        self.assertEqual([n for n, _ in s.named_children()], ["a", "b"])
        self.assertIsInstance(s.a, nn.ReLU)
        self.assertEqual(list(s[1:]._modules), ["b"])
        self.assertEqual(list(s.append(nn.ELU())._modules), ["a", "b", "2"])
        s.insert(0, nn.SiLU())
        self.assertEqual(self.kinds(s), ["SiLU", "ReLU", "Tanh", "ELU"])

    def test_changing(self):
        s = self.s
        self.assertIs(s.append(nn.ELU()), s)
        self.assertIsInstance(s.pop(1), nn.Tanh)
        self.assertEqual(self.kinds(s.insert(-1, nn.SiLU())), ["ReLU", "Sigmoid", "SiLU", "ELU"])
        self.assertEqual(len(s.extend(s)), 8)
        self.assertRaisesRegex(IndexError, "Index out of range: 99", s.insert, 99, nn.ReLU())
        self.assertRaisesRegex(AssertionError, "module should be of type", s.insert, 0, 3)
        self.assertRaisesRegex(TypeError, "int is not a Module subclass", s.append, 3)

    def test_arithmetic(self):
        s = self.s
        self.assertEqual(len(s + s), 6)
        self.assertEqual(len(2 * s), 6)
        self.assertIs((s * 2)[0], s[0])
        s *= 2
        self.assertEqual(len(s), 6)
        s += nn.Sequential(nn.ELU())
        self.assertEqual(list(s._modules)[-1], "6")
        self.assertRaisesRegex(ValueError, "Non-positive multiplication factor 0", lambda: s * 0)
        self.assertRaisesRegex(TypeError, r"unsupported operand type\(s\) for \*", lambda: s * "a")
        self.assertRaisesRegex(ValueError, "add operator supports only objects of Sequential class",
                               lambda: s + 3)

    def test_call(self):
        self.assertEqual(nn.Sequential()(3), 3)
        self.assertRaises(TypeError, self.s, torch.ones(1), torch.ones(1))


class Lists(unittest.TestCase):
    def setUp(self):
        self.m = nn.ModuleList([nn.ReLU(), nn.Tanh(), nn.Sigmoid()])

    def kinds(self):
        self.assertEqual(list(self.m._modules), [str(i) for i in range(len(self.m))])
        return [type(m).__name__ for m in self.m]

    def test_as_a_list(self):
        m = self.m
        m[-1] = nn.ELU()
        m.insert(-1, nn.SiLU())
        self.assertEqual(self.kinds(), ["ReLU", "Tanh", "SiLU", "ELU"])
        m.insert(99, nn.GELU())
        self.assertIsInstance(m.pop(0), nn.ReLU)
        del m[1:3]
        self.assertEqual(self.kinds(), ["Tanh", "GELU"])
        m += [nn.ReLU()]
        self.assertEqual(len(m + m), 6)
        self.assertEqual(len(m.extend(m)), 6)
        self.assertIsInstance(m[1:], nn.ModuleList)
        self.assertIn(m[0], m)
        self.assertEqual([type(x).__name__ for x in reversed(m)][0], "ReLU")
        self.assertIsInstance(m.pop(-1), nn.ReLU)

    def test_refused(self):
        self.assertRaisesRegex(IndexError, "index 3 is out of range", lambda: self.m[3])
        self.assertRaises(TypeError, lambda: self.m["a"])
        self.assertRaisesRegex(TypeError, "should be called with an iterable, but got int", nn.ModuleList, 3)
        self.assertRaisesRegex(TypeError, "int is not a Module subclass", self.m.append, 3)
        self.assertRaisesRegex(TypeError, "int is not a Module subclass", self.m.insert, 0, 3)
        self.assertRaisesRegex(NotImplementedError, r"Module \[ModuleList\] is missing", self.m, 1)

    def test_printed(self):
        m = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)] + [nn.ReLU()])
        self.assertEqual(repr(m),
                         "ModuleList(\n  (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)\n"
                         "  (3): ReLU()\n)")
        self.assertEqual(repr(nn.ModuleList()), "ModuleList()")


class Dicts(unittest.TestCase):
    def test_as_a_dict(self):
        m = nn.ModuleDict({"b": nn.ReLU(), "a": nn.Tanh()})
        self.assertEqual((list(m), list(m.keys()), len(m), "a" in m), (["b", "a"], ["b", "a"], 2, True))
        m["c"] = nn.ELU()
        m.update([("d", nn.SiLU())])
        m.update(nn.ModuleDict({"e": nn.GELU()}))
        self.assertEqual([type(v).__name__ for v in m.values()], ["ReLU", "Tanh", "ELU", "SiLU", "GELU"])
        self.assertEqual([k for k, _ in m.items()], list("bacde"))
        self.assertIsInstance(m.pop("b"), nn.ReLU)
        del m["a"]
        m.clear()
        self.assertEqual(len(m), 0)

    def test_refused(self):
        m = nn.ModuleDict()
        self.assertRaises(KeyError, lambda: m["x"])
        self.assertRaisesRegex(TypeError, "iterable of key/value pairs, but got int", m.update, 3)
        self.assertRaisesRegex(TypeError, "element #0 should be Iterable; isint", m.update, [3])
        self.assertRaisesRegex(ValueError, "element #1 has length 3; 2 is required", m.update,
                               [("a", None), (1, 2, 3)])
        self.assertRaisesRegex(TypeError, "int is not a Module subclass", m.update, {"a": 2})
        self.assertRaisesRegex(TypeError, "module name should be a string. Got int", m.update, {3: nn.ReLU()})
        self.assertRaisesRegex(KeyError, "attribute 'keys' already exists", m.update, {"keys": nn.ReLU()})


class ParameterContainers(unittest.TestCase):
    def test_list(self):
        m = nn.ParameterList([torch.zeros(1), nn.Parameter(torch.zeros(2)), "text"])
        self.assertEqual([type(v).__name__ for v in m], ["Parameter", "Parameter", "str"])
        self.assertEqual(list(m.state_dict()), ["0", "1"])
        m[0] = torch.zeros(5)
        m.append(torch.zeros(3))
        m += [torch.zeros(4)]
        m.extend(m)
        self.assertEqual(len(m), 10)
        self.assertEqual(tuple(m[-1].shape), (4,))
        self.assertEqual(len(m[1:3]), 2)
        self.assertEqual(repr(m[:1]), "ParameterList(  (0): Parameter containing: [torch.float32 of size 5])")
        self.assertRaisesRegex(RuntimeError, "ParameterList should not be called.", m, 1)
        self.assertRaisesRegex(IndexError, "index 99 is out of range", lambda: m[99])
        self.assertRaisesRegex(TypeError, "with an iterable, but got int", nn.ParameterList, 3)
        self.assertRaisesRegex(TypeError, "with an iterable, but got Tensor", nn.ParameterList,
                               torch.zeros(2))
        count = len(m)
        self.assertRaises(RuntimeError, m.append, torch.zeros(1, dtype=torch.int64))
        self.assertEqual(len(m), count)  # a refused value leaves no hole
        self.assertEqual(len(list(m)), count)

    def test_dict(self):
        m = nn.ParameterDict({"b": torch.zeros(1), "a": torch.zeros(2, 3), "c": 3})
        self.assertEqual(list(m), ["a", "b", "c"])  # plain dicts by key
        self.assertEqual(list(nn.ParameterDict([("b", torch.zeros(1)), ("a", torch.zeros(1))])), ["b", "a"])
        self.assertEqual(repr(m),
                         "ParameterDict(\n    (a): Parameter containing: [torch.FloatTensor of size 2x3]\n"
                         "    (b): Parameter containing: [torch.FloatTensor of size 1]\n"
                         "    (c): Object of type: int\n)")
        self.assertEqual((m.get("q"), m.get("q", 5), "a" in m, len(m)), (None, 5, True, 3))
        self.assertEqual(m.setdefault("c", 9), 3)
        self.assertEqual(tuple(m.setdefault("d", torch.zeros(7)).shape), (7,))
        self.assertEqual(m.popitem()[0], "d")
        self.assertEqual(m.pop("c"), 3)
        self.assertEqual(list(reversed(m)), ["b", "a"])
        twin = m.copy()
        self.assertIs(twin["a"], m["a"])
        self.assertEqual(list(m | {"z": torch.zeros(1)}), ["a", "b", "z"])
        self.assertEqual(list({"z": 1} | m), ["z", "a", "b"])
        m |= {"y": torch.zeros(1)}
        self.assertEqual([k for k, _ in m.items()], ["a", "b", "y"])
        self.assertEqual(len(list(m.values())), 3)
        self.assertEqual(list(m.fromkeys("pq", 1)), ["p", "q"])
        del m["a"]
        self.assertEqual(list(m.state_dict()), ["b", "y"])
        m.clear()
        self.assertEqual((len(m), list(m.parameters())), (0, []))
        self.assertRaises(KeyError, m.popitem)
        self.assertRaises(AttributeError, lambda: m["q"])
        self.assertRaises(KeyError, m.__delitem__, "q")
        self.assertRaisesRegex(TypeError, "not a string .type is 'int'.", m.__setitem__, 3, 3)
        self.assertRaisesRegex(KeyError, "attribute 'train' already exists", m.__setitem__, "train", 3)
        self.assertRaisesRegex(RuntimeError, "ParameterDict should not be called.", m, 1)

    def test_copies(self):
        m = nn.ParameterDict({"a": torch.ones(1)})
        twin = pickle.loads(pickle.dumps(m))
        self.assertEqual((list(twin), twin["a"].tolist()), (["a"], [1.0]))
        self.assertEqual(len(copy.deepcopy(nn.ParameterList([torch.ones(1)]))), 1)


if __name__ == "__main__":
    unittest.main()
