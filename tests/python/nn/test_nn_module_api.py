# SPDX-License-Identifier: Apache-2.0
"""nn.Module: registration, walking, converting, state_dict, copies. Errors have torch 2.13's words."""
import copy
import gc
import pickle
import threading
import unittest
import weakref
from collections import OrderedDict

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.nn.modules import module as module_file


LOADED = []


def note_load(*args):
    LOADED.append(args)


class Net(nn.Module):
    """Two layers, a buffer in state_dict and one that is not."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.second = nn.Sequential(nn.ReLU(), nn.Linear(3, 1, bias=False))
        self.scale = nn.Parameter(torch.ones(1))
        self.register_buffer("seen", torch.zeros(2))
        self.register_buffer("scratch", torch.zeros(1), persistent=False)

    def forward(self, x):
        return self.second(self.first(x)) * self.scale


NAMES = ["scale", "first.weight", "first.bias", "second.1.weight"]


class Registration(unittest.TestCase):
    def refuses(self, kind, words, call):
        with self.assertRaises(kind) as caught:
            call()
        text = caught.exception.args[0]
        self.assertEqual(str(text), words)

    def test_before_init(self):
        cases = {
            "cannot assign parameters before Module.__init__() call":
                lambda m: setattr(m, "a", nn.Parameter(torch.ones(1))),
            "cannot assign module before Module.__init__() call": lambda m: setattr(m, "a", nn.ReLU()),
            "cannot assign buffer before Module.__init__() call": lambda m: m.register_buffer("a", None),
            "cannot assign parameter before Module.__init__() call":
                lambda m: m.register_parameter("a", None),
        }
        for words, does in cases.items():
            class Early(nn.Module):
                def __init__(self, does=does):
                    self.plain = 3  # plain values may come early
                    does(self)

            self.refuses(AttributeError, words, Early)

    def test_constructor_takes_nothing(self):
        self.assertRaises(TypeError, nn.Module, 1)
        self.assertRaises(TypeError, nn.Module, a=1)

    def test_no_forward(self):
        self.refuses(NotImplementedError, 'Module [Module] is missing the required "forward" function',
                     lambda: nn.Module()(1))

    def test_names(self):
        m = nn.Module()
        for kind, register in (("parameter", m.register_parameter), ("buffer", m.register_buffer),
                               ("module", m.add_module)):
            with self.subTest(kind):
                detail = ", got: a.b" if kind == "module" else ""
                self.refuses(TypeError, f"{kind} name should be a string. Got int", lambda: register(3, None))
                self.refuses(KeyError, f'{kind} name can\'t contain "."{detail}',
                             lambda: register("a.b", None))
                self.refuses(KeyError, f'{kind} name can\'t be empty string ""', lambda: register("", None))
                self.refuses(KeyError, "attribute 'train' already exists", lambda: register("train", None))

    def test_types(self):
        m = nn.Module()
        self.refuses(TypeError, "cannot assign 'torch.FloatTensor' object to parameter 'a' "
                     "(torch.nn.Parameter or None required)",
                     lambda: m.register_parameter("a", torch.ones(1)))
        self.refuses(TypeError, "cannot assign 'int' object to buffer 'b' (torch Tensor or None required)",
                     lambda: m.register_buffer("b", 3))
        self.refuses(TypeError, "int is not a Module subclass", lambda: m.add_module("c", 3))
        self.assertRaisesRegex(TypeError, r"activation\.ReLU is not a Module subclass$", nn.Sequential,
                               nn.ReLU)

    def test_parameter_of_a_graph(self):
        class Odd(nn.Parameter):
            pass

        p = nn.Parameter(torch.ones(1))
        q = p * 2
        q._is_param = True
        self.assertRaisesRegex(ValueError, "Cannot assign non-leaf Tensor to parameter 'q'",
                               nn.Module().register_parameter, "q", q)
        self.assertIsInstance(Odd(torch.ones(1)), nn.Parameter)

    def test_assigning(self):
        m = Net()
        w = "(torch.nn.Parameter or None expected)"
        self.refuses(TypeError, f"cannot assign 'torch.FloatTensor' as parameter 'scale' {w}",
                     lambda: setattr(m, "scale", torch.ones(1)))
        self.refuses(TypeError, f"cannot assign 'int' as parameter 'scale' {w}",
                     lambda: setattr(m, "scale", 3))
        self.refuses(TypeError,
                     "cannot assign 'int' as child module 'first' (torch.nn.Module or None expected)",
                     lambda: setattr(m, "first", 3))
        self.refuses(TypeError,
                     "cannot assign 'int' as buffer 'seen' (torch.nn.Buffer, torch.Tensor or None expected)",
                     lambda: setattr(m, "seen", 3))
        m.scale = None
        m.first = None
        m.seen = None
        self.assertEqual((m.scale, m.first, m.seen), (None, None, None))
        self.assertEqual(list(m._parameters), ["scale"])
        self.assertEqual([name for name, _ in m.named_parameters()], ["second.1.weight"])
        m.scale = nn.Parameter(torch.ones(2))
        m.seen = torch.ones(2)
        self.assertEqual(list(m._buffers), ["seen", "scratch"])

    def test_kinds_replace_each_other(self):
        m = nn.Module()
        m.a = 3
        m.a = nn.Parameter(torch.ones(1))
        self.assertNotIn("a", m.__dict__)
        self.assertRaisesRegex(TypeError, r"activation\.ReLU' as parameter 'a'", setattr, m, "a", nn.ReLU())
        del m.a
        m.a = nn.ReLU()
        self.assertEqual((list(m._parameters), list(m._modules)), ([], ["a"]))
        m.a = nn.Parameter(torch.ones(1))
        self.assertEqual((list(m._parameters), list(m._modules)), (["a"], []))
        del m.a
        m.register_buffer("a", torch.ones(1), persistent=False)
        m.a = nn.ReLU()
        self.assertEqual((list(m._buffers), m._non_persistent_buffers_set), ([], set()))
        m.plain = torch.ones(1)  # a plain tensor is a plain attribute
        self.assertEqual(list(m._buffers), [])

    def test_buffer_objects(self):
        m = nn.Module()
        m.a = nn.Buffer(torch.ones(2))
        m.b = nn.Buffer(torch.ones(2), persistent=False)
        self.assertEqual(list(m._buffers), ["a", "b"])
        self.assertEqual(list(m.state_dict()), ["a"])
        self.assertIsInstance(m.a, nn.Buffer)
        self.assertNotIsInstance(torch.ones(2), nn.Buffer)
        self.assertEqual(nn.Buffer().numel(), 0)

    def test_lookup_and_deletion(self):
        m = Net()
        self.refuses(AttributeError, "'Net' object has no attribute 'foo'", lambda: m.foo)
        self.refuses(AttributeError, "'Net' object has no attribute 'foo'", lambda: delattr(m, "foo"))
        del m.scale, m.first, m.seen, m.scratch
        self.assertEqual((m._buffers, m._non_persistent_buffers_set, list(m._modules)),
                         ({}, set(), ["second"]))
        self.assertFalse(hasattr(m, "scale"))
        self.assertRaises(AttributeError, lambda: nn.Module.__new__(nn.Module).weight)

    def test_dir(self):
        m = Net()
        self.assertTrue({"first", "scale", "seen", "training", "forward"} <= set(dir(m)))
        self.assertEqual([name for name in dir(m.second) if name[0].isdigit()], [])

    def test_registration_hooks(self):
        seen = []
        handles = [
            module_file.register_module_parameter_registration_hook(lambda m, n, p: seen.append(("p", n))),
            module_file.register_module_buffer_registration_hook(lambda m, n, b: seen.append(("b", n))),
            module_file.register_module_module_registration_hook(lambda m, n, c: seen.append(("m", n))),
        ]
        try:
            m = nn.BatchNorm1d(2)
            m.child = nn.ReLU()
        finally:
            for handle in handles:
                handle.remove()
        self.assertEqual(seen, [("p", "weight"), ("p", "bias"), ("b", "running_mean"), ("b", "running_var"),
                                ("b", "num_batches_tracked"), ("m", "child")])
        count = len(seen)
        nn.BatchNorm1d(2)
        self.assertEqual(len(seen), count)


class Parameters(unittest.TestCase):
    def test_made(self):
        data = torch.ones(2)
        p = nn.Parameter(data)
        self.assertTrue(p.requires_grad and p.is_leaf)
        self.assertIs(type(p), nn.Parameter)
        data[0] = 5
        self.assertEqual(p.tolist(), [5.0, 1.0])  # the same memory
        self.assertFalse(nn.Parameter(data, requires_grad=False).requires_grad)
        self.assertEqual(nn.Parameter().numel(), 0)
        self.assertRaisesRegex(RuntimeError, "floating point", nn.Parameter, torch.ones(1, dtype=torch.int64))
        self.assertFalse(nn.Parameter(torch.ones(1, dtype=torch.int64), requires_grad=False).requires_grad)
        self.assertRaisesRegex(TypeError, "not list", nn.Parameter, [1.0])

    def test_made_of_a_result(self):
        p = nn.Parameter(nn.Parameter(torch.ones(1)) * 2)
        self.assertTrue(p.is_leaf)

    def test_ops_give_tensors(self):
        p = nn.Parameter(torch.ones(2))
        self.assertIs(type(p * 2), torch.Tensor)
        self.assertIs(type(p.detach()), torch.Tensor)
        self.assertIs(type(p.data), torch.Tensor)

    def test_printed(self):
        for printed in (repr, str, "{}".format):
            self.assertEqual(printed(nn.Parameter(torch.ones(1))),
                             "Parameter containing:\ntensor([1.], requires_grad=True)")

    def test_copies(self):
        p = nn.Parameter(torch.ones(2), requires_grad=False)
        p.mark = "kept"
        for made in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
            self.assertIs(type(made), nn.Parameter)
            self.assertFalse(made.requires_grad)
            made[0] = 7
            self.assertEqual(p.tolist(), [1.0, 1.0])
        both = copy.deepcopy([p, p])
        self.assertIs(both[0], both[1])
        self.assertEqual(pickle.loads(pickle.dumps(p)).mark, "kept")

    def test_subclass_survives_pickling(self):
        made = pickle.loads(pickle.dumps(Special(torch.ones(1))))
        self.assertIs(type(made), Special)
        self.assertIs(type(copy.deepcopy(made)), Special)


class Special(nn.Parameter):
    pass


class Walking(unittest.TestCase):
    def test_names(self):
        m = Net()
        self.assertEqual([n for n, _ in m.named_parameters()], NAMES)
        self.assertEqual([n for n, _ in m.named_parameters(recurse=False)], ["scale"])
        self.assertEqual([n for n, _ in m.named_parameters(prefix="p")][:2], ["p.scale", "p.first.weight"])
        self.assertEqual([n for n, _ in m.named_buffers()], ["seen", "scratch"])
        self.assertEqual([n for n, _ in m.named_modules()], ["", "first", "second", "second.0", "second.1"])
        self.assertEqual([n for n, _ in m.named_children()], ["first", "second"])
        self.assertEqual(len(list(m.modules())), 5)
        self.assertEqual(len(list(m.parameters())), 4)

    def test_shared(self):
        m = nn.Module()
        m.a = nn.Linear(2, 2)
        m.b = m.a
        m.c = nn.Linear(2, 2)
        m.c.weight = m.a.weight
        m.none = None
        m.add_module("nothing", None)
        self.assertEqual([n for n, _ in m.named_parameters()], ["a.weight", "a.bias", "c.bias"])
        self.assertEqual([n for n, _ in m.named_parameters(remove_duplicate=False)],
                         ["a.weight", "a.bias", "b.weight", "b.bias", "c.weight", "c.bias"])
        self.assertEqual([n for n, _ in m.named_children()], ["a", "c"])
        self.assertEqual([n for n, _ in m.named_modules(remove_duplicate=False)], ["", "a", "b", "c"])
        self.assertEqual(len(list(m.modules(remove_duplicate=False))), 4)
        self.assertEqual(list(m.state_dict()),
                         ["a.weight", "a.bias", "b.weight", "b.bias", "c.weight", "c.bias"])

    def test_equal_tensors_are_not_the_same(self):
        """Parameters are distinguished by identity; their == is elementwise."""
        m = nn.ParameterList([torch.zeros(2), torch.zeros(2)])
        self.assertEqual(len(list(m.parameters())), 2)

    def test_apply(self):
        order = []
        m = Net()
        self.assertIs(m.apply(lambda module: order.append(type(module).__name__)), m)
        self.assertEqual(order, ["Linear", "ReLU", "Linear", "Sequential", "Net"])

    def test_by_path(self):
        m = Net()
        self.assertIs(m.get_submodule("second.1"), m.second[1])
        self.assertIs(m.get_submodule(""), m)
        self.assertIs(m.get_parameter("second.1.weight"), m.second[1].weight)
        self.assertIs(m.get_buffer("seen"), m.seen)
        for words, call in {
            "Net has no attribute `x`": lambda: m.get_submodule("x"),
            "`weight` is not an nn.Module": lambda: m.get_submodule("first.weight"),
            "Linear has no attribute `x`": lambda: m.get_submodule("first.x.y"),
            "`first` is not an nn.Parameter": lambda: m.get_parameter("first"),
            "Linear has no attribute `z`": lambda: m.get_parameter("first.z"),
            "`scale` is not a buffer": lambda: m.get_buffer("scale"),
        }.items():
            with self.assertRaises(AttributeError) as caught:
                call()
            self.assertEqual(str(caught.exception), words)

    def test_set_submodule(self):
        m = Net()
        m.set_submodule("second.0", nn.Tanh())
        self.assertIsInstance(m.second[0], nn.Tanh)
        m.set_submodule("new", nn.Tanh())
        self.assertIsInstance(m.new, nn.Tanh)
        self.assertRaises(AttributeError, m.set_submodule, "other", nn.Tanh(), strict=True)
        self.assertRaises(AttributeError, m.set_submodule, "scale", nn.Tanh())
        self.assertRaises(AttributeError, m.set_submodule, "a.b", nn.Tanh())
        self.assertRaises(ValueError, m.set_submodule, "", nn.Tanh())
        self.assertRaises(ValueError, m.set_submodule, "new", 3)


class Converting(unittest.TestCase):
    def test_float_types(self):
        m = nn.BatchNorm1d(2)
        weight = m.weight
        for name, dtype in (("double", torch.float64), ("half", torch.float16), ("bfloat16", torch.bfloat16),
                            ("float", torch.float32)):
            self.assertIs(getattr(m, name)(), m)
            self.assertIs(m.weight, weight)  # the parameter stays the same object
            self.assertIs(m.weight.dtype, dtype)
            self.assertIs(m.running_mean.dtype, dtype)
            self.assertIs(m.num_batches_tracked.dtype, torch.int64)
        self.assertTrue(m.weight.requires_grad and m.weight.is_leaf)

    def test_to(self):
        m = nn.Linear(2, 2)
        for args, kwargs in (((torch.float64,), {}), (("cpu", torch.float64), {}),
                             ((), {"dtype": torch.float64}),
                             ((), {"device": "cpu", "dtype": torch.float64}),
                             ((torch.zeros(1, dtype=torch.float64),), {}),
                             ((), {"tensor": torch.zeros(1, dtype=torch.float64)}),
                             ((torch.float64, True), {}),
                             ((torch.device("cpu"), torch.float64, True), {})):
            with self.subTest(args=args, kwargs=kwargs):
                m.float()
                self.assertIs(m.to(*args, **kwargs), m)
                self.assertIs(m.weight.dtype, torch.float64)
        m.to("cpu")
        m.to()
        self.assertIs(m.weight.dtype, torch.float64)
        self.assertRaisesRegex(TypeError, "only accepts floating point or complex dtypes, but got desired "
                               "dtype=torch.int32", m.to, torch.int32)
        self.assertRaises(TypeError, m.to, torch.float32, "cpu")
        self.assertRaises(TypeError, m.to, foo=3)
        self.assertRaises(RuntimeError, m.to, "xx")

    def test_gradients_go_along(self):
        m = nn.Linear(2, 2)
        m(torch.ones(1, 2)).sum().backward()
        m.double()
        self.assertIs(m.weight.grad.dtype, torch.float64)
        m(torch.ones(1, 2, dtype=torch.float64)).sum().backward()
        self.assertEqual(m.bias.grad.tolist(), [2.0, 2.0])

    def test_type_and_empty(self):
        m = nn.BatchNorm1d(2)
        self.assertIs(m.type(torch.float64).num_batches_tracked.dtype, torch.float64)
        m = nn.Linear(2, 2)
        self.assertIs(m.to_empty(device="cpu"), m)
        self.assertEqual(tuple(m.weight.shape), (2, 2))

    def test_what_is_not_there_says_so(self):
        self.assertRaisesRegex(NotImplementedError, "share_memory", nn.Linear(1, 1).share_memory)
        self.assertRaisesRegex(NotImplementedError, "compile", nn.Linear(1, 1).compile)
        self.assertRaisesRegex(NotImplementedError, "register_full_backward_hook",
                               nn.Linear(1, 1).register_backward_hook, print)
        self.assertRaisesRegex(AttributeError, "'LinearCrossEntropyLoss'", getattr, nn, "LinearCrossEntropyLoss")

    def test_modes(self):
        m = Net()
        self.assertIs(m.eval(), m)
        self.assertFalse(any(module.training for module in m.modules()))
        m.first.train()
        self.assertTrue(m.first.training and not m.training)
        self.assertTrue(m.train().second[1].training)
        self.assertRaisesRegex(ValueError, "training mode is expected to be boolean", m.train, 1)

    def test_requires_grad_and_zero_grad(self):
        m = Net()
        self.assertIs(m.requires_grad_(False), m)
        self.assertFalse(any(p.requires_grad for p in m.parameters()))
        m.requires_grad_()
        m(torch.ones(1, 2)).sum().backward()
        m.zero_grad(set_to_none=False)
        self.assertEqual(m.first.bias.grad.tolist(), [0.0] * 3)
        m.zero_grad()
        self.assertTrue(all(p.grad is None for p in m.parameters()))


class StateDicts(unittest.TestCase):
    def test_content(self):
        m = Net()
        state = m.state_dict()
        self.assertIsInstance(state, OrderedDict)
        self.assertEqual(list(state), ["scale", "seen", "first.weight", "first.bias", "second.1.weight"])
        self.assertEqual(list(state._metadata), ["", "first", "second", "second.0", "second.1"])
        self.assertFalse(any(value.requires_grad for value in state.values()))
        state["scale"].fill_(4)  # the module's memory
        self.assertEqual(m.scale.item(), 4.0)
        self.assertIs(m.state_dict(keep_vars=True)["scale"], m.scale)
        self.assertEqual(list(m.state_dict(prefix="p."))[0], "p.scale")
        given = {}
        self.assertIs(m.state_dict(destination=given), given)
        with self.assertWarnsRegex(FutureWarning, "Positional args are being deprecated"):
            self.assertEqual(list(m.state_dict(None, "q."))[0], "q.scale")
        self.assertTrue(repr(state).startswith("OrderedDict("))

    def test_round_trip(self):
        a, b = Net(), Net()
        result = b.load_state_dict(a.state_dict())
        self.assertEqual(repr(result), "<All keys matched successfully>")
        for (_, x), (_, y) in zip(a.named_parameters(), b.named_parameters()):
            self.assertEqual(x.tolist(), y.tolist())
        self.assertTrue(b.scale.requires_grad)
        copied = pickle.loads(pickle.dumps(a.state_dict()))
        self.assertEqual(list(copied._metadata), list(a.state_dict()._metadata))
        self.assertEqual(repr(b.load_state_dict(copied)), "<All keys matched successfully>")

    def test_plain_dicts_and_other_types(self):
        m = nn.Linear(2, 1)
        m.load_state_dict({"weight": torch.ones(1, 2, dtype=torch.float64), "bias": torch.zeros(1)})
        self.assertEqual((m.weight.tolist(), m.weight.dtype), ([[1.0, 1.0]], torch.float32))
        self.assertRaisesRegex(TypeError, "Expected state_dict to be dict-like, got <class 'int'>.",
                               m.load_state_dict, 3)

    def test_what_does_not_fit(self):
        m = nn.Sequential(nn.Linear(2, 3))
        state = dict(m.state_dict())
        del state["0.weight"]
        state.update({"zz": 1, "zz2": 2, "0.bias": torch.zeros(7)})
        with self.assertRaises(RuntimeError) as caught:
            m.load_state_dict(state)
        self.assertEqual(str(caught.exception), "Error(s) in loading state_dict for Sequential:\n"
                         '\tMissing key(s) in state_dict: "0.weight". \n'
                         '\tUnexpected key(s) in state_dict: "zz", "zz2". \n'
                         "\tsize mismatch for 0.bias: copying a param with shape torch.Size([7]) from "
                         "checkpoint, "
                         "the shape in current model is torch.Size([3]).")
        state["0.bias"] = torch.zeros(3)
        result = m.load_state_dict(state, strict=False)
        self.assertEqual(repr(result),
                         "_IncompatibleKeys(missing_keys=['0.weight'], unexpected_keys=['zz', 'zz2'])")
        self.assertEqual((result.missing_keys, result.unexpected_keys), (["0.weight"], ["zz", "zz2"]))
        with self.assertRaisesRegex(RuntimeError,
                                    "expected torch.Tensor or Tensor-like object from checkpoint but "
                                    "received <class 'str'>"):
            m.load_state_dict({"0.weight": "abc"}, strict=False)

    def test_a_caller_s_dict_is_left_alone(self):
        m = nn.BatchNorm1d(2)
        state = dict(m.state_dict())
        del state["num_batches_tracked"]
        m.load_state_dict(state)  # versions before 2 had none
        self.assertNotIn("num_batches_tracked", state)
        newer = m.state_dict()
        del newer["num_batches_tracked"]
        self.assertRaisesRegex(RuntimeError, "num_batches_tracked", m.load_state_dict, newer)

    def test_assign(self):
        m = nn.Linear(2, 1)
        m.weight.requires_grad_(False)
        given = {"weight": torch.ones(1, 2, dtype=torch.float64), "bias": nn.Parameter(torch.zeros(1))}
        m.load_state_dict(given, assign=True)
        self.assertIs(m.bias, given["bias"])
        self.assertIs(m.weight.dtype, torch.float64)
        self.assertIsInstance(m.weight, nn.Parameter)
        self.assertFalse(m.weight.requires_grad)
        given["weight"][0, 0] = 9
        self.assertEqual(m.weight[0, 0].item(), 9.0)

    def test_scalars_saved_as_one_element(self):
        m = nn.BatchNorm1d(2)
        m.load_state_dict(dict(m.state_dict(), num_batches_tracked=torch.tensor([5])))
        self.assertEqual(m.num_batches_tracked.item(), 5)

    def test_extra_state(self):
        class Keeps(nn.Module):
            kept = 0

            def get_extra_state(self):
                return {"kept": self.kept}

            def set_extra_state(self, state):
                self.kept = state["kept"]

        a, b = Keeps(), Keeps()
        a.kept = 5
        self.assertEqual(list(nn.Sequential(a).state_dict()), ["0._extra_state"])
        b.load_state_dict(a.state_dict())
        self.assertEqual(b.kept, 5)
        self.assertRaisesRegex(RuntimeError, 'Missing key.*"_extra_state"', b.load_state_dict, {})
        self.assertRaisesRegex(RuntimeError, 'Unexpected key.*"_extra_state"', nn.Module().load_state_dict,
                               {"_extra_state": 3})

    def test_hooks(self):
        m, log = Net(), []
        handles = [
            m.register_state_dict_pre_hook(lambda module, prefix, keep: log.append(("pre", prefix, keep))),
            m.register_state_dict_post_hook(lambda module, state, prefix, meta: state.__delitem__("seen")),
            m.first._register_state_dict_hook(lambda module, state, prefix,
                                              meta: log.append(("post", prefix))),
            m.first.register_load_state_dict_pre_hook(lambda module, state, prefix, *rest: log.append(
                ("load", type(module).__name__, prefix))),
            m.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear()),
        ]
        state = m.state_dict()
        self.assertNotIn("seen", state)
        self.assertEqual(repr(m.load_state_dict(state)), "<All keys matched successfully>")
        self.assertEqual(log, [("pre", "", False), ("post", "first."), ("load", "Linear", "first.")])
        for handle in handles:
            handle.remove()
        self.assertIn("seen", m.state_dict())
        m.register_state_dict_post_hook(lambda *args: 3)
        self.assertRaisesRegex(RuntimeError, "state_dict post-hook must return None", m.state_dict)
        n = Net()
        n.register_load_state_dict_post_hook(lambda *args: 3)
        self.assertRaises(AssertionError, n.load_state_dict, Net().state_dict())

    def test_a_load_hook_does_not_keep_its_module(self):
        m = nn.Linear(1, 1)
        handle = m.register_load_state_dict_pre_hook(lambda *args: None)
        gone = weakref.ref(m)
        del m
        gc.collect()
        self.assertIsNone(gone())
        handle.remove()

    def test_a_load_hook_is_given_the_module_that_loads(self):
        m = nn.Linear(1, 1)
        LOADED.clear()
        with_it = m.register_load_state_dict_pre_hook(note_load)
        without = m._register_load_state_dict_pre_hook(note_load)
        for each in (m, copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
            each.load_state_dict(m.state_dict())
            self.assertIs(LOADED[0][0], each)
            self.assertEqual([len(args) for args in LOADED], [8, 7])
            LOADED.clear()
        with_it.remove()
        m.load_state_dict(m.state_dict())
        self.assertEqual([len(args) for args in LOADED], [7])
        without.remove()
        m.load_state_dict(m.state_dict())
        self.assertEqual(len(LOADED), 1)
        LOADED.clear()

    def test_a_failing_copy_is_reported(self):
        m = nn.Linear(1, 1)

        class Refuses(torch.Tensor):
            pass

        with self.assertRaisesRegex(RuntimeError, 'While copying the parameter named "weight"'):
            m.weight.copy_ = None  # instance attribute: calling it raises TypeError
            m.load_state_dict({"weight": torch.zeros(1, 1), "bias": torch.zeros(1)})


class Copies(unittest.TestCase):
    def test_deepcopy(self):
        m = Net()
        m.first.weight.grad = torch.ones(3, 2)
        twin = copy.deepcopy(m)
        self.assertEqual(list(twin.state_dict()), list(m.state_dict()))
        with torch.no_grad():
            twin.scale.fill_(9)
        self.assertEqual(m.scale.item(), 1.0)
        self.assertIsNot(twin.first, m.first)
        twin.new = nn.ReLU()
        self.assertNotIn("new", m._modules)

    def test_shared_parameters_stay_shared(self):
        m = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        m[1].weight = m[0].weight
        for twin in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
            self.assertIs(twin[0].weight, twin[1].weight)
            self.assertIsNot(twin[0].weight, m[0].weight)

    def test_pickle(self):
        m = Net().eval()
        twin = pickle.loads(pickle.dumps(m))
        x = torch.ones(2, 2)
        self.assertEqual(twin(x).tolist(), m(x).tolist())
        self.assertFalse(twin.training)
        self.assertEqual(twin._non_persistent_buffers_set, {"scratch"})

    def test_old_pickles(self):
        m = nn.Linear(1, 1)
        state = {k: v for k, v in m.__dict__.items() if "always" not in k and "pre_hook" not in k}
        old = nn.Linear.__new__(nn.Linear)
        old.__setstate__(state)
        old(torch.ones(1))
        old.register_forward_pre_hook(lambda *args: None)
        self.assertEqual(old(torch.ones(1)).tolist(), m(torch.ones(1)).tolist())

    def test_cycles_are_collected(self):
        m = Net()
        object.__setattr__(m, "self_again", [m])
        m.first.weight.owner = m
        gone = weakref.ref(m)
        del m
        gc.collect()
        self.assertIsNone(gone())

    def test_calls_from_many_threads(self):
        m, x = Net(), torch.ones(4, 2)
        expected, wrong = m(x).tolist(), []

        def work():
            for _ in range(50):
                if m(x).tolist() != expected:
                    wrong.append(1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Printing(unittest.TestCase):
    def test_tree(self):
        self.assertEqual(repr(Net()), """Net(
  (first): Linear(in_features=2, out_features=3, bias=True)
  (second): Sequential(
    (0): ReLU()
    (1): Linear(in_features=3, out_features=1, bias=False)
  )
)""")
        self.assertEqual(repr(nn.Module()), "Module()")

    def test_extra_lines(self):
        class Extra(nn.Module):
            def extra_repr(self):
                return "a=1\nb=2"

        m = Extra()
        self.assertEqual(repr(m), "Extra(\n  a=1\n  b=2\n)")
        m.child = nn.ReLU()
        self.assertEqual(repr(m), "Extra(\n  a=1\n  b=2\n  (child): ReLU()\n)")


if __name__ == "__main__":
    unittest.main()
