# SPDX-License-Identifier: Apache-2.0
"""nn.Module's hooks: forward, backward, of all modules. Errors have torch 2.13's words."""
import gc
import sys
import unittest
import warnings
import weakref

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.nn.modules import module as module_file


class Doubles(nn.Module):
    def forward(self, x, times=2):
        return x * times


class Fails(nn.Module):
    def forward(self, x):
        raise KeyError("lost")


class Hooks(unittest.TestCase):
    def test_forward_pre(self):
        m = Doubles()
        handle = m.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
        self.assertEqual(m(torch.ones(1)).item(), 4.0)
        m.register_forward_pre_hook(lambda module, args: args[0] * 10)  # one value is one argument
        self.assertEqual(m(torch.ones(1)).item(), 40.0)
        m.register_forward_pre_hook(lambda module, args: args[0] * 0 + 5, prepend=True)
        self.assertEqual(m(torch.ones(1)).item(), 120.0)
        handle.remove()
        handle.remove()
        self.assertEqual(m(torch.ones(1)).item(), 100.0)

    def test_forward_pre_with_kwargs(self):
        m = Doubles()
        m.register_forward_pre_hook(lambda module, args, kwargs: (args, {"times": 7}), with_kwargs=True)
        self.assertEqual(m(torch.ones(1)).item(), 7.0)
        m.register_forward_pre_hook(lambda module, args, kwargs: 3, with_kwargs=True)
        self.assertRaisesRegex(RuntimeError,
                               r"must return None or a tuple of \(new_args, new_kwargs\), but got 3.",
                               m, torch.ones(1))

    def test_forward(self):
        m, log = Doubles(), []
        m.register_forward_hook(lambda module, args, out: log.append((args[0].item(), out.item())))
        m.register_forward_hook(lambda module, args, out: out + 1)
        m.register_forward_hook(lambda module, args, kwargs, out: log.append(kwargs), with_kwargs=True)
        m.register_forward_hook(lambda module, args, out: log.append("first"), prepend=True)
        self.assertEqual(m(torch.ones(1), times=3).item(), 4.0)
        self.assertEqual(log, ["first", (1.0, 3.0), {"times": 3}])

    def test_a_hook_that_removes_itself(self):
        m, log = Doubles(), []
        handle = m.register_forward_hook(lambda *args: (handle.remove(), log.append(1))[0])
        m(torch.ones(1))
        m(torch.ones(1))
        self.assertEqual(log, [1])

    def test_hooks_added_during_a_call_wait_for_the_next(self):
        m, log = Doubles(), []

        def adds(module, *args):
            log.append("all")
            module.register_forward_hook(lambda *args: log.append("own"))

        handles = [module_file.register_module_forward_hook(adds)]
        try:
            m(torch.ones(1))
        finally:
            handles.pop().remove()
        self.assertEqual(log, ["all"])
        m(torch.ones(1))
        self.assertEqual(log, ["all", "own"])
        self.assertFalse(module_file.AROUND_CALLS)

    def test_always_called_with_the_arguments_of_the_hooks_that_ran(self):
        m, seen = Doubles(), []
        m.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
        m.register_forward_pre_hook(lambda module, args: 1 / 0)
        m.register_forward_hook(lambda module, args, out: seen.append((args[0].item(), out)),
                                always_call=True)
        self.assertRaises(ZeroDivisionError, m, torch.ones(1))
        self.assertEqual(seen, [(2.0, None)])

    def test_handle_as_context(self):
        m, log = Doubles(), []
        with m.register_forward_hook(lambda *args: log.append(1)):
            m(torch.ones(1))
        m(torch.ones(1))
        self.assertEqual(log, [1])

    def test_always_call(self):
        m, log = Fails(), []
        m.register_forward_hook(lambda module, args, out: log.append(("always", out)), always_call=True)
        m.register_forward_hook(lambda module, args, out: log.append("not"))
        m.register_forward_hook(lambda module, args, out: 1 / 0, always_call=True)
        with self.assertWarnsRegex(UserWarning,
                                   "silenced as another error was raised in forward: division by zero"):
            with self.assertRaises(KeyError):
                m(1)
        self.assertEqual(log, [("always", None)])
        ok, seen = Doubles(), []
        ok.register_forward_hook(lambda *args: seen.append(1), always_call=True)
        ok(torch.ones(1))
        self.assertEqual(seen, [1])  # once, not again at the end

    def test_of_all_modules(self):
        log = []
        handles = [
            module_file.register_module_forward_pre_hook(lambda m,
                                                         args: log.append(("pre", type(m).__name__))),
            module_file.register_module_forward_hook(lambda m, args,
                                                     out: log.append(("post", type(m).__name__))),
            module_file.register_module_forward_hook(lambda m, a, k, out: None, with_kwargs=True,
                                                     always_call=True),
            module_file.register_module_full_backward_hook(lambda m, gi,
                                                           go: log.append(("back", type(m).__name__))),
            module_file.register_module_full_backward_pre_hook(lambda m,
                                                               go: log.append(("before", type(m).__name__))),
        ]
        x = torch.ones(1).requires_grad_()
        try:
            nn.Sequential(Doubles())(x).backward()
        finally:
            for handle in handles:
                handle.remove()
        self.assertEqual(log, [("pre", "Sequential"), ("pre", "Doubles"), ("post", "Doubles"),
                               ("post", "Sequential"),
                               ("before", "Sequential"), ("before", "Doubles"), ("back", "Doubles"),
                               ("back", "Sequential")])
        Doubles()(x)
        self.assertEqual(len(log), 8)

    def test_no_hooks_no_extra_frames(self):
        """forward is called straight from __call__, which is the frame the profiler looks for."""
        class Looks(nn.Module):
            def forward(self, x):
                return sys._getframe(1).f_code

        self.assertIs(Looks()(1), nn.Module.__call__.__code__)
        self.assertEqual(nn.Module.__call__.__code__.co_varnames[0], "self")

    def test_exceptions_pass(self):
        self.assertRaisesRegex(KeyError, "lost", Fails(), 1)


class BackwardHooks(unittest.TestCase):
    def setUp(self):
        self.x = torch.ones(1).requires_grad_()

    def test_sees_gradients(self):
        m, log = Doubles(), []
        m.register_full_backward_hook(lambda module, gi, go: log.append((gi[0].item(), go[0].item())))
        (m(self.x) * 5).backward()
        self.assertEqual(log, [(10.0, 5.0)])
        self.assertEqual(self.x.grad.item(), 10.0)

    def test_changes_gradients(self):
        m = Doubles()
        m.register_full_backward_hook(lambda module, gi, go: (gi[0] * 100,))
        m.register_full_backward_pre_hook(lambda module, go: (go[0] * 10,))
        m.register_full_backward_pre_hook(lambda module, go: go[0] + 1)  # one value is one gradient
        m(self.x).backward()
        self.assertEqual(self.x.grad.item(), (1 * 10 + 1) * 2 * 100)

    def test_prepend(self):
        m, log = Doubles(), []
        for name in "ab":
            m.register_full_backward_hook(lambda *args, name=name: log.append(name), prepend=True)
            m.register_full_backward_pre_hook(lambda *args, name=name: log.append(name + "<"), prepend=True)
        m(self.x).backward()
        self.assertEqual(log, ["b<", "a<", "b", "a"])

    def test_nothing_to_differentiate_before_it(self):
        m, log = nn.Linear(1, 1), []
        m.register_full_backward_hook(lambda module, gi, go: log.append((gi, go[0].item())))
        with self.assertWarnsRegex(UserWarning, "no inputs require gradients"):
            m(torch.ones(1)).sum().backward()
        self.assertEqual(log, [((None,), 1.0)])
        self.assertEqual(m.weight.grad.item(), 1.0)
        m.register_full_backward_hook(lambda module, gi, go: (torch.ones(1),))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertRaisesRegex(RuntimeError, "where no input requires gradient should always return None",
                                   m(torch.ones(1)).sum().backward)

    def test_tuples_and_other_values(self):
        class Two(nn.Module):
            def forward(self, x, text, y):
                return x * 2, text, y * 3

        m, log = Two(), []
        m.register_full_backward_hook(lambda module, gi, go: log.append(
            tuple(None if g is None else g.item() for g in (*gi, *go))))
        y = torch.ones(1).requires_grad_()
        a, text, b = m(self.x, "t", y)
        self.assertEqual(text, "t")
        a.backward()
        self.assertEqual(log[0][0], 2.0)
        self.assertEqual((log[0][1], log[0][3], log[0][4], log[0][5]), (None, 1.0, None, None))

    def test_other_results_warn(self):
        class Dicts(nn.Module):
            def forward(self, x):
                return {"a": x}

        m = Dicts()
        m.register_full_backward_hook(lambda *args: None)
        with self.assertWarnsRegex(UserWarning,
                                   "should be a Tensor or a tuple of Tensors but received <class 'dict'>"):
            m(self.x)

    def test_wrong_counts(self):
        for register, words in (("register_full_backward_hook",
                                 "Backward hook returned an invalid number of grad_input"),
                                ("register_full_backward_pre_hook",
                                 "Backward pre hook returned an invalid number of grad_output")):
            m = Doubles()
            getattr(m, register)(lambda *args: (self.x, self.x))
            self.assertRaisesRegex(RuntimeError, f"{words}, got 2, but expected 1", m(self.x).backward)

    def test_exceptions_arrive(self):
        m = Doubles()
        m.register_full_backward_hook(lambda *args: 1 / 0)
        self.assertRaises(ZeroDivisionError, m(self.x).backward)

    def test_without_grad_nothing_is_added(self):
        m = Doubles()
        m.register_full_backward_hook(lambda *args: None)
        with torch.no_grad():
            self.assertIsNone(m(self.x).grad_fn)
        self.assertIn("BackwardHookFunction", type(m(self.x).grad_fn).__name__ + m(self.x).grad_fn.name())

    def test_twice_through_one_graph(self):
        m, log = Doubles(), []
        m.register_full_backward_hook(lambda module, gi, go: log.append(go[0].item()))
        y = m(self.x)
        y.backward(retain_graph=True)
        y.backward()
        self.assertEqual(log, [1.0, 1.0])
        self.assertEqual(self.x.grad.item(), 4.0)

    def test_the_graph_dies(self):
        m = Doubles()
        m.register_full_backward_hook(lambda *args: None)
        x = torch.ones(1).requires_grad_()
        gone = weakref.ref(m(x))
        for _ in range(2):
            m(x).backward()
        self.assertIsNone(gone())
        alive = weakref.ref(m)
        del m
        gc.collect()
        self.assertIsNone(alive())


if __name__ == "__main__":
    unittest.main()
