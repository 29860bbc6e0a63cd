# SPDX-License-Identifier: Apache-2.0
"""__torch_function__: subclasses of Tensor, objects that are none, modes; who is asked, in which order, and when not.

What is asked for each call is what torch 2.13 asks (tests/peers/functions/torch_function.py compares).
"""
import copy
import operator
import pickle
import subprocess
import sys
import threading
import unittest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2 import overrides

SEEN = []


class Logged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        SEEN.append(func)
        return super().__torch_function__(func, types, args, kwargs)


class Plain(torch.Tensor):
    pass


class Derived(Plain):
    pass


class Other(torch.Tensor):
    pass


class Duck:
    """No tensor; it answers with the name of what was called."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__, types, len(args), dict(kwargs or {})


class Refusing:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


def of(cls, *shape):
    return torch.ones(*shape).as_subclass(cls)


class Subclasses(unittest.TestCase):
    def told(self, call):
        SEEN.clear()
        result = call()
        return result, list(SEEN)

    def test_results_keep_the_class(self):
        x, p = of(Plain, 2, 2), torch.ones(2, 2)
        for call in (lambda: x + p, lambda: p + x, lambda: x[0], lambda: x.T, lambda: x.data, lambda: x.sum(),
                     lambda: torch.cat([p, x]), lambda: F.relu(x), lambda: x.float(), lambda: torch.einsum("ij->i", x),
                     lambda: x.max(0).values, lambda: next(iter(x)), lambda: x.clone().add_(1), lambda: copy.copy(x),
                     lambda: torch.linalg.norm(x), lambda: x.new_zeros(2), lambda: torch.zeros_like(x)):
            self.assertIs(type(call()), Plain)
        self.assertIs(type(x.shape), torch.Size)
        self.assertIs(type(torch.ones(2) + 1), torch.Tensor)

    def test_the_derived_class_is_asked_first(self):
        x, y = of(Plain, 2), of(Derived, 2)
        self.assertIs(type(x + y), Derived)
        self.assertIs(type(torch.add(y, x)), Derived)
        with self.assertRaisesRegex(TypeError, r"unsupported operand type\(s\) for \+"):
            x + of(Other, 2)
        with self.assertRaisesRegex(TypeError, "Multiple dispatch failed for 'torch.add'"):
            torch.add(x, of(Other, 2))

    def test_what_handlers_are_told(self):
        x, p, i = of(Logged, 2, 2), torch.ones(2, 2), torch.tensor([1, 0]).as_subclass(Logged)
        T = torch.Tensor
        for call, func in (
                (lambda: x + p, T.add), (lambda: 2 + x, T.add), (lambda: 1 - x, T.__rsub__),
                (lambda: 1 / x, T.__rdiv__),
                (lambda: x // 2, T.__floordiv__), (lambda: x % 2, T.remainder), (lambda: x @ p, T.matmul),
                (lambda: x == 1, T.__eq__), (lambda: x < 1, T.lt), (lambda: 1 < x, T.gt), (lambda: i & 1, T.__and__),
                (lambda: 1 & i, T.bitwise_and), (lambda: -x, T.neg), (lambda: +x, T.positive), (lambda: abs(x), T.abs),
                (lambda: ~i, T.__invert__), (lambda: len(x), T.__len__), (lambda: x[0], T.__getitem__),
                (lambda: p[i], T.__getitem__), (lambda: operator.setitem(p.clone(), i, 1.), T.__setitem__),
                (lambda: x.size(), T.size), (lambda: x.double(), T.double), (lambda: x.add(1), T.add),
                (lambda: torch.add(x, 1), torch.add), (lambda: torch.add(input=p, other=x), torch.add),
                (lambda: torch.stack([p, x]), torch.stack), (lambda: F.relu(x), F.relu),
                (lambda: F.linear(x, p), F.linear),
                (lambda: torch.norm(x), torch.norm), (lambda: 1.0 in x, T.__contains__), (lambda: repr(x), T.__repr__)):
            self.assertEqual(self.told(call)[1], [func])
        self.assertEqual(self.told(lambda: x.shape)[1], [T.shape.__get__])
        self.assertEqual(self.told(lambda: setattr(x, "data", p))[1], [T.data.__set__])
        self.assertEqual(self.told(lambda: operator.iadd(p.clone(), x))[1], [T.add_])
        self.assertEqual(self.told(lambda: float(i[0])), (1.0, [T.__getitem__, T.__float__]))

    def test_gradients_pass(self):
        leaf = torch.ones(2, requires_grad=True)
        x = leaf.as_subclass(Plain)
        result = (x * 3).sum()
        self.assertEqual(result.grad_fn.name(), "AliasBackward0")
        result.backward()
        self.assertEqual(leaf.grad.tolist(), [3.0, 3.0])
        own = of(Plain, 2).requires_grad_()
        (own * 2).sum().backward()
        self.assertIs(type(own.grad), torch.Tensor)  # .grad is not made of the class
        self.assertIs(type(torch.autograd.grad((own * 2).sum(), own)[0]), Plain)

    def test_parameters_do_not_override(self):
        weight = torch.nn.Parameter(torch.ones(2))
        self.assertIs(type(weight * 2), torch.Tensor)
        self.assertFalse(overrides.has_torch_function((weight,)))
        of_class = torch.nn.Parameter(of(Plain, 2))
        self.assertIs(type(of_class), Plain)
        self.assertIsInstance(of_class, torch.nn.Parameter)
        module = torch.nn.Linear(2, 2)
        module.weight = torch.nn.Parameter(of(Plain, 2, 2))
        self.assertEqual(len(list(module.parameters())), 2)
        self.assertIs(type(module(torch.ones(1, 2))), Plain)

    def test_switched_off(self):
        x = of(Logged, 2)
        with torch._C.DisableTorchFunctionSubclass():
            result, seen = self.told(lambda: x + x)
            self.assertIs(type(result), torch.Tensor)
            self.assertFalse(overrides.has_torch_function((x,)))
            with self.assertRaisesRegex(TypeError, "must be Tensor, not Duck"):
                torch.add(Duck(), x)
        self.assertEqual(seen, [])
        self.assertIs(type(x + x), Logged)

    def test_exceptions_of_handlers_arrive(self):
        class Raising(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                raise KeyError(func.__name__)
        x = of(Raising, 2)
        for call in (lambda: x + 1, lambda: torch.add(x, 1), lambda: x.shape, lambda: len(x), lambda: F.relu(x),
                     lambda: bool(x), lambda: x.size(), lambda: operator.setitem(x, 0, 1), lambda: x == 1):
            with self.assertRaises(KeyError):
                call()

    def test_the_class_of_an_object_may_change(self):
        x = torch.ones(2)
        x.__class__ = Plain
        self.assertIs(type(x + 1), Plain)


class Ducks(unittest.TestCase):
    def test_rows_and_functions(self):
        d, p = Duck(), torch.ones(2)
        for call, name, count in ((lambda: torch.add(d, p), "add", 2), (lambda: torch.add(p, d), "add", 2),
                                  (lambda: p + d, "add", 2), (lambda: d + p, "add", 2), (lambda: p == d, "eq", 2),
                                  (lambda: torch.cat([p, d]), "cat", 1), (lambda: F.relu(d), "relu", 1),
                                  (lambda: torch.sum(d, 0), "sum", 2), (lambda: p.add(d), "add", 2),
                                  (lambda: p @ d, "matmul", 2),
                                  (lambda: torch.unique(d), "unique", 1), (lambda: torch.einsum("i", d), "einsum", 2),
                                  (lambda: torch.ones(d), "ones", 1),
                                  (lambda: F.cross_entropy(d, d), "cross_entropy", 2)):
            found = call()
            self.assertEqual((found[0], found[1], found[2]), (name, (Duck,), count))
        self.assertEqual(torch.add(p, d, alpha=2)[3], {"alpha": 2})

    def test_the_first_call_of_a_process_is_asked_too(self):
        code = """if True:
            import mindtorch_v2 as torch, mindtorch_v2.nn.functional as F
            class Duck:
                @classmethod
                def __torch_function__(cls, func, types, args=(), kwargs=None):
                    return func is F.dropout
            print(F.dropout(Duck(), 0.5))
            """
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        self.assertEqual((done.stdout, done.stderr), ("True\n", ""))

    def test_refusals(self):
        p = torch.ones(2)
        with self.assertRaisesRegex(TypeError, "Multiple dispatch failed for 'torch.add'; all __torch_function__"):
            torch.add(Refusing(), p)
        with self.assertRaisesRegex(TypeError, "no implementation found for 'torch.nn.functional.relu' on types that"):
            F.relu(Refusing())
        with self.assertRaisesRegex(TypeError, "unsupported operand"):
            p + Refusing()
        with self.assertRaisesRegex(TypeError, "must be Tensor, not object"):
            torch.add(p, object())


class OfFunctions(unittest.TestCase):
    def test_functions_of_a_program(self):
        def doubled(x, by=2):
            if overrides.has_torch_function((x,)):
                return overrides.handle_torch_function(doubled, (x,), x, by=by)
            return x * by
        self.assertEqual(doubled(torch.ones(1)).tolist(), [2.0])
        self.assertEqual(doubled(Duck()), ("doubled", (Duck,), 1, {"by": 2}))
        with self.assertRaisesRegex(TypeError, "no implementation found"):
            doubled(Refusing())

        @overrides.wrap_torch_function(lambda x, by=2: (x,))
        def wrapped(x, by=2):
            return x * by
        self.assertEqual(wrapped(Duck())[0], "wrapped")
        self.assertEqual(wrapped(torch.ones(1)).tolist(), [2.0])

    def test_questions(self):
        x = of(Plain, 1)
        self.assertTrue(overrides.has_torch_function((x,)) and overrides.has_torch_function_unary(Duck()))
        self.assertFalse(overrides.has_torch_function_variadic(torch.ones(1), 1, None))
        self.assertTrue(overrides.is_tensor_like(Duck()) and overrides.is_tensor_like(torch.ones(1)))
        self.assertFalse(overrides.is_tensor_like(1))
        self.assertTrue(overrides.is_tensor_method_or_property(torch.Tensor.add))
        self.assertTrue(overrides.is_tensor_method_or_property(torch.Tensor.shape.__get__))
        self.assertFalse(overrides.is_tensor_method_or_property(torch.add))
        found = overrides.get_overridable_functions()
        self.assertTrue(torch.add in found[torch] and F.relu in found[F] and torch.Tensor.add in found[torch.Tensor])
        self.assertEqual([overrides.resolve_name(f) for f in (torch.Tensor.add, torch.add, F.relu, len)],
                         ["torch.Tensor.add", "torch.add", "torch.nn.functional.relu", None])
        self.assertIn(torch.add, overrides.get_testing_overrides())

    def test_functions_are_what_they_were(self):
        import inspect
        for function in (F.relu, torch.einsum, F.interpolate):
            self.assertIs(pickle.loads(pickle.dumps(function)), function)
            self.assertIs(copy.deepcopy(function), function)
        self.assertEqual(str(inspect.signature(F.relu)), "(input, inplace=False)")
        self.assertTrue(F.relu.__doc__ and F.relu.__name__ == "relu")


class Modes(unittest.TestCase):
    def test_a_mode_sees_every_call(self):
        seen = []

        class Mode(overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                seen.append(func)
                return func(*args, **(kwargs or {}))
        p = torch.ones(2)
        with Mode():
            p + p
            torch.ones(2)
            F.relu(p)
            p.shape
            2 * p
        self.assertEqual(seen, [torch.Tensor.add, torch.ones, F.relu, torch.Tensor.shape.__get__, torch.Tensor.mul])
        p + p
        self.assertEqual(len(seen), 5)
        with Mode(), Mode():
            torch.add(p, p)
        self.assertEqual(len(seen), 7)
        with Mode():
            thread = threading.Thread(target=lambda: torch.add(p, p))
            thread.start()
            thread.join()
        self.assertEqual(len(seen), 7)  # a thread's own

    def test_a_mode_may_answer_or_raise(self):
        class Answers(overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                if func is torch.add:
                    raise KeyError("add")
                return 7 if func is torch.mul else func(*args, **(kwargs or {}))
        p = torch.ones(2)
        with Answers():
            self.assertEqual(torch.mul(p, p), 7)
            with self.assertRaises(KeyError):
                torch.add(p, p)
            self.assertEqual(torch.mul(p, p), 7)  # still there
        self.assertEqual(torch.mul(p, p).tolist(), [1, 1])
        with self.assertRaises(RuntimeError):
            torch._C._pop_torch_function_mode()


if __name__ == "__main__":
    unittest.main()
