# SPDX-License-Identifier: Apache-2.0
"""autograd.Function from Python: forward, backward, ctx and what it keeps, errors, profiles; gradcheck."""
import gc
import pickle
import subprocess
import sys
import threading
import unittest
import warnings
import weakref

import mindtorch_v2 as torch
from mindtorch_v2.autograd import Function
from mindtorch_v2.autograd.function import once_differentiable
from support_autograd import Mine, Scale, leaf


class Functions(unittest.TestCase):
    def test_values_and_names(self):
        w = leaf(1.0, 2.0)
        y = Scale.apply(w, 3)
        self.assertEqual(y.tolist(), [3.0, 6.0])
        self.assertEqual(y.grad_fn.name(), "ScaleBackward")
        self.assertIn("grad_fn=<ScaleBackward>", repr(y))
        y.sum().backward()
        self.assertEqual(w.grad.tolist(), [3.0, 3.0])
        self.assertFalse(Scale.apply(w.detach(), 3).requires_grad)
        with torch.no_grad():
            self.assertFalse(Scale.apply(w, 3).requires_grad)

    def test_what_ctx_knows(self):
        seen = {}

        class F(Function):
            @staticmethod
            def forward(ctx, a, b, k, c):
                seen["needs"] = ctx.needs_input_grad
                seen["mode"] = torch.is_grad_enabled()
                ctx.save_for_backward(a, None, b)
                seen["in forward"] = ctx.saved_tensors[1]
                ctx.extra = {"k": k}
                return a + b

            @staticmethod
            def backward(ctx, g):
                seen["saved"] = ctx.saved_tensors
                seen["name"] = ctx.name()
                seen["extra"] = ctx.extra
                return g, None, None, None

        a, b = leaf(1.0), torch.ones(1)
        F.apply(a, b, "text", None).backward()
        self.assertEqual(seen["needs"], (True, False, False, False))
        self.assertFalse(seen["mode"])
        self.assertIsNone(seen["in forward"])
        self.assertIs(seen["saved"][0], a)
        self.assertIsNone(seen["saved"][1])
        self.assertTrue(torch.equal(seen["saved"][2], b))
        self.assertEqual((seen["name"], seen["extra"]), ("FBackward", {"k": "text"}))

    def test_several_outputs(self):
        got = []

        class F(Function):
            @staticmethod
            def forward(ctx, a):
                mask = a > 1
                where = a.long()
                count = (a * 0).sum()
                ctx.mark_non_differentiable(count)
                return a * 2, mask, where, 5, None, count

            @staticmethod
            def backward(ctx, *grads):
                got.append(grads)
                return grads[0]

        w = leaf(1.0, 2.0)
        out = F.apply(w)
        self.assertEqual([getattr(o, "requires_grad", o) for o in out], [True, False, False, 5, None, False])
        out[0].sum().backward()
        grads, = got
        self.assertEqual(grads[0].tolist(), [1.0, 1.0])
        self.assertEqual((grads[1].tolist(), grads[2].tolist()), ([False, False], [0, 0]))
        self.assertEqual((grads[3], grads[4], grads[5].item()), (None, None, 0.0))

    def test_materialize(self):
        got = []

        class F(Function):
            @staticmethod
            def forward(ctx, a, on):
                ctx.set_materialize_grads(on)
                return a * 2, a * 3

            @staticmethod
            def backward(ctx, g, h):
                got.append(h if h is None else h.tolist())
                return g, None

        for on in (True, False):
            F.apply(leaf(1.0), on)[0].sum().backward()
        self.assertEqual(got, [[0.0], None])

    def test_setup_context(self):
        class F(Function):
            @staticmethod
            def forward(x, factor=3):
                return x * factor

            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.factor = inputs[1]
                ctx.save_for_backward(output)

            @staticmethod
            def backward(ctx, grad):
                return grad * ctx.factor, None

        for apply, factor in ((lambda w: F.apply(w, 2), 2.0), (lambda w: F.apply(w), 3.0),
                              (lambda w: F.apply(w, factor=4), 4.0)):
            w = leaf(1.0)
            apply(w).sum().backward()
            self.assertEqual(w.grad.item(), factor)

        class G(F):
            pass

        w = leaf(1.0)
        G.apply(w).backward()
        self.assertEqual(w.grad.item(), 3.0)

    def test_keywords(self):
        w = leaf(1.0)
        Scale.apply(w, factor=5).backward()
        self.assertEqual(w.grad.item(), 5.0)
        with self.assertRaises(TypeError):
            Scale.apply(w, wrong=5)

    def test_inputs_given_back(self):
        class Same(Function):
            @staticmethod
            def forward(ctx, a):
                return a

            @staticmethod
            def backward(ctx, g):
                return g * 2

        w = leaf(1.0)
        y = Same.apply(w)
        self.assertIsNot(y, w)
        y.sum().backward()
        self.assertEqual(w.grad.item(), 2.0)

    def test_saved_output_makes_no_cycle(self):
        class Exp(Function):
            @staticmethod
            def forward(ctx, a):
                y = a.exp()
                ctx.save_for_backward(y)
                return y

            @staticmethod
            def backward(ctx, g):
                return g * ctx.saved_tensors[0]

        w = leaf(0.0)
        gc.collect()
        gc.disable()
        self.addCleanup(gc.enable)
        before = torch._C._tensors_alive()
        y = Exp.apply(w)
        there = weakref.ref(y)
        del y
        self.assertIsNone(there())
        self.assertEqual(torch._C._tensors_alive(), before)
        y = Exp.apply(w)
        y.sum().backward()
        self.assertEqual(w.grad.item(), 1.0)

    def remembering(self, how):
        """A Function of two outputs whose ctx remembers something of them."""
        class Both(Function):
            @staticmethod
            def forward(ctx, a):
                one, two = a * 2, a * 3
                how(ctx, one, two)
                return one, two

            @staticmethod
            def backward(ctx, g, h):
                return g * 2 + h * 3

        return Both

    WAYS = (
        ("one", lambda ctx, one, two: setattr(ctx, "out", one)),
        ("both", lambda ctx, one, two: vars(ctx).update(one=one, two=two)),
        ("list", lambda ctx, one, two: setattr(ctx, "all", [{"x": (one,)}, two])),
        ("itself", lambda ctx, one, two: vars(ctx).update(me=ctx, two=two)),
        ("closure", lambda ctx, one, two: setattr(ctx, "call", lambda: (one, ctx))),
        ("saved too", lambda ctx, one, two: (ctx.save_for_backward(one, two), setattr(ctx, "one", one))),
    )

    def test_remembered_outputs_are_collected(self):
        for name, how in self.WAYS:
            for use in ("dropped", "backward", "one kept", "written"):
                with self.subTest(name, use=use):
                    function = self.remembering(how)
                    w = leaf(1.0)
                    gc.collect()
                    before = torch._C._tensors_alive()
                    one, two = function.apply(w)
                    if use == "backward":
                        (one + two).sum().backward()
                        w.grad = None
                    elif use == "one kept":
                        del one
                        gc.collect()
                    elif use == "written":
                        two.mul_(2)
                    one = two = None
                    gc.collect()
                    gc.collect()
                    self.assertEqual(torch._C._tensors_alive(), before)

    def test_remembered_outputs_stay_while_they_are_used(self):
        """What a graph, or a variable, still needs is no garbage."""
        for name, how in self.WAYS:
            for kept in ("one", "two", "later", "node"):
                with self.subTest(name, kept=kept):
                    w = leaf(1.0)
                    one, two = self.remembering(how).apply(w)
                    node = None
                    if kept == "later":
                        root = (one + two) * 2
                    elif kept == "node":
                        node, root = one.grad_fn, one.sum()
                    else:
                        root = one if kept == "one" else two
                    one = two = None
                    for _ in range(3):
                        gc.collect()
                    root.sum().backward()
                    # backward is 2 g + 3 h
                    self.assertEqual(w.grad.item(), {"one": 2.0, "two": 3.0, "later": 10.0, "node": 2.0}[kept])
                    del node, root

    def test_remembered_outputs_among_threads(self):
        """The collector looks while other threads make and drop such graphs."""
        function = self.remembering(self.WAYS[1][1])
        failures = []

        def work():
            try:
                w = leaf(1.0)
                for _ in range(200):
                    one, two = function.apply(w)
                    (one + two).sum().backward()
                if w.grad.item() != 200 * 5.0:
                    failures.append(w.grad.item())
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            gc.collect()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_a_hook_on_a_remembered_output(self):
        class Double(Function):
            @staticmethod
            def forward(ctx, a):
                ctx.out = a * 2
                return ctx.out

            @staticmethod
            def backward(ctx, g):
                return g * ctx.out

        w = leaf(1.0)
        gc.collect()
        before = torch._C._tensors_alive()
        y = Double.apply(w)
        y.register_hook(lambda g, me=y: None)
        gc.collect()
        y.sum().backward()
        self.assertEqual(w.grad.item(), 2.0)
        w.grad = None
        del y
        gc.collect()
        self.assertEqual(torch._C._tensors_alive(), before)

    def test_copies_remember_nothing(self):
        function = self.remembering(self.WAYS[0][1])
        one, two = function.apply(leaf(1.0))
        self.assertNotIn("_backward_function", vars(one.detach()))
        self.assertEqual(pickle.loads(pickle.dumps(one.detach())).item(), 2.0)

    def test_ctx_goes_with_the_graph(self):
        contexts = []

        class F(Function):
            @staticmethod
            def forward(ctx, a):
                contexts.append(weakref.ref(ctx))
                ctx.save_for_backward(a)
                ctx.note = a.detach()
                return a * 2

            @staticmethod
            def backward(ctx, g):
                return g

        w = leaf(1.0)
        y = F.apply(w)
        self.assertIsNotNone(contexts[0]())
        y.sum().backward()
        del y
        torch._C._tensors_alive()
        self.assertIsNone(contexts[0]())
        F.apply(w.detach())
        self.assertIsNone(contexts[1]())

    def test_saved_tensors_changed_in_place(self):
        w = leaf(1.0)
        x = w * 1
        y = Scale.apply(x, 2)
        x += 1
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            y.sum().backward()

    def test_second_time(self):
        y = Scale.apply(leaf(1.0), 2).sum()
        y.backward()
        with self.assertRaisesRegex(RuntimeError, "second time"):
            y.backward()

    def test_ctx_that_outlives_its_graph(self):
        kept = []

        class F(Function):
            @staticmethod
            def forward(ctx, a):
                kept.append(ctx)
                ctx.save_for_backward(a)
                return a * 2

            @staticmethod
            def backward(ctx, g):
                return g

        F.apply(leaf(1.0)).sum().backward()
        gc.collect()
        with self.assertRaises(RuntimeError):
            kept[0].saved_tensors

    def test_errors_arrive_unchanged(self):
        for where in ("forward", "backward", "setup"):
            error = Mine(where)

            class F(Function):
                @staticmethod
                def forward(ctx, a):
                    if where == "forward":
                        raise error
                    return a * 2

                @staticmethod
                def backward(ctx, g):
                    raise error

            class G(F):
                @staticmethod
                def forward(a):
                    return a * 2

                @staticmethod
                def setup_context(ctx, inputs, output):
                    raise error

            with self.assertRaises(Mine) as caught:
                (G if where == "setup" else F).apply(leaf(1.0)).sum().backward()
            self.assertIs(caught.exception, error)
            self.assertTrue(torch.is_grad_enabled())

    def test_wrong_gradients(self):
        def function(result):
            class H(Function):
                @staticmethod
                def forward(ctx, a, k):
                    return a * k

                @staticmethod
                def backward(ctx, g):
                    return result(g)

            return H

        cases = [
            (lambda g: g, "function HBackward returned an incorrect number of gradients .expected 2, got 1"),
            (lambda g: (g, None, g), "incorrect number of gradients .expected 2, got 3"),
            (lambda g: (g, g), "returned a gradient different than None at position 2"),
            (lambda g: (5, None), "expected Variable or None .got int"),
            (lambda g: (g[:1], None), "invalid gradient at index 0"),
        ]
        for result, words in cases:
            with self.subTest(words=words):
                with self.assertRaisesRegex(RuntimeError, words):
                    function(result).apply(leaf(1.0, 2.0), 2).sum().backward()
        w = leaf(1.0)
        function(lambda g: (g, None, None, None)).apply(w, 2).sum().backward()  # Nones too many are fine
        self.assertEqual(w.grad.item(), 1.0)
        w = leaf(1.0)
        function(lambda g: (None, None)).apply(w, 2).sum().backward()
        self.assertIsNone(w.grad)

    def test_misuse(self):
        class NoForward(Function):
            pass

        class NoBackward(Function):
            @staticmethod
            def forward(ctx, a):
                return a * 2

        with self.assertRaisesRegex(NotImplementedError, "forward function"):
            NoForward.apply(leaf(1.0))
        with self.assertRaisesRegex(NotImplementedError, "backward or vjp"):
            NoBackward.apply(leaf(1.0)).sum().backward()
        with self.assertRaisesRegex(RuntimeError, "should not be instantiated"):
            Scale()

        class BadSave(Function):
            @staticmethod
            def forward(ctx, a):
                ctx.save_for_backward(a, 5)

        with self.assertRaisesRegex(TypeError, "can only save variables, but argument 1 is of type int"):
            BadSave.apply(leaf(1.0))

        class Dirty(Function):
            @staticmethod
            def forward(ctx, a):
                ctx.mark_dirty(5)
                return a

        with self.assertRaisesRegex(TypeError, "can only mark variables, but argument 0 is of type int"):
            Dirty.apply(leaf(1.0))
        for odd in (5, None, "text", [torch.ones(1)], ()):
            class Odd(Function):
                @staticmethod
                def forward(ctx, a):
                    return odd

            self.assertIs(type(Odd.apply(leaf(1.0))), type(odd))

    def test_double_backward(self):
        class Cube(Function):
            @staticmethod
            def forward(ctx, a):
                ctx.save_for_backward(a)
                return a * a * a

            @staticmethod
            def backward(ctx, g):
                a, = ctx.saved_tensors
                return g * 3 * a * a

        w = leaf(2.0)
        first, = torch.autograd.grad(Cube.apply(w).sum(), w, create_graph=True)
        second, = torch.autograd.grad(first.sum(), w)
        self.assertEqual((first.item(), second.item()), (12.0, 12.0))
        x = w * 1  # an inner tensor is saved with its place in the graph
        first, = torch.autograd.grad(Cube.apply(x).sum(), w, create_graph=True)
        self.assertEqual(torch.autograd.grad(first.sum(), w)[0].item(), 12.0)

    def test_once_differentiable(self):
        class F(Function):
            @staticmethod
            def forward(ctx, a):
                return a * 2

            @staticmethod
            @once_differentiable
            def backward(ctx, g):
                assert not torch.is_grad_enabled()
                return g * 2

        w, v = leaf(1.0), leaf(3.0)
        g, = torch.autograd.grad((F.apply(w) * v).sum(), w, create_graph=True)
        self.assertTrue(g.requires_grad)
        with self.assertRaisesRegex(RuntimeError, "differentiate twice a function that was marked"):
            g.sum().backward()
        F.apply(w).sum().backward()
        self.assertEqual(w.grad.item(), 2.0)

    def test_nested(self):
        class Outer(Function):
            @staticmethod
            def forward(ctx, a):
                with torch.enable_grad():
                    inner = a.detach().requires_grad_()
                    out = Scale.apply(inner, 3).sum()
                    ctx.grad, = torch.autograd.grad(out, inner)
                return a.sum() * 3

            @staticmethod
            def backward(ctx, g):
                return g * ctx.grad

        w = leaf(1.0, 2.0)
        Outer.apply(w).backward()
        self.assertEqual(w.grad.tolist(), [3.0, 3.0])

    def test_in_a_profile(self):
        try:
            from mindtorch_v2.profiler import ProfilerActivity, profile
        except ImportError as error:
            self.skipTest(f"no profiler: {error}")
        w = leaf(1.0, 2.0)
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
            Scale.apply(w, 3).sum().backward()
        events = {e.name: e for e in prof.events()}
        self.assertEqual(events["Scale"].input_shapes, [[2], []])
        self.assertEqual([e.name for e in prof.events() if e.cpu_parent is events["Scale"]], ["aten::mul"])
        self.assertIn("ScaleBackward", events)
        self.assertEqual(events["ScaleBackward"].cpu_parent.name,
                         "autograd::engine::evaluate_function: ScaleBackward")

    def test_references_are_flat(self):
        w = leaf(1.0, 2.0)

        def work():
            for _ in range(200):
                Scale.apply(w, 3).sum().backward()
                Scale.apply(w, 3)
                try:
                    Scale.apply(w)
                except TypeError:
                    pass

        work()
        gc.collect()
        before = (torch._C._tensors_alive(), sys.getrefcount(Scale), sys.getrefcount(w))
        objects = len(gc.get_objects())
        work()
        gc.collect()
        self.assertEqual((torch._C._tensors_alive(), sys.getrefcount(Scale), sys.getrefcount(w)), before)
        self.assertLess(abs(len(gc.get_objects()) - objects), 100)  # 600 calls would leave more


class EndOfProcess(unittest.TestCase):
    def test_graphs_left_over(self):
        code = """if True:
            import sys, mindtorch_v2 as torch
            from mindtorch_v2.autograd import Function
            class F(Function):
                @staticmethod
                def forward(ctx, a):
                    ctx.save_for_backward(a); ctx.mine = [1]; return a * 2
                @staticmethod
                def backward(ctx, g):
                    return g
            w = torch.ones(3, requires_grad=True)
            w.register_hook(lambda g: g)
            sys.keep = [F.apply(w), w, (w * 2).grad_fn]
            w.attribute = sys.keep
        """
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Gradcheck(unittest.TestCase):
    def test_right_and_wrong(self):
        x = torch.tensor([0.5, -1.5, 2.0], dtype=torch.float64, requires_grad=True)
        self.assertTrue(torch.autograd.gradcheck(lambda a: (a * a, a.exp()), x))
        self.assertTrue(torch.autograd.gradgradcheck(lambda a: a * a * a, x))

        class Wrong(Function):
            @staticmethod
            def forward(ctx, a):
                return a * 2

            @staticmethod
            def backward(ctx, g):
                return g * 3

        with self.assertRaisesRegex(RuntimeError, "Jacobian mismatch for output 0 with respect to input 0"):
            torch.autograd.gradcheck(Wrong.apply, x)
        self.assertFalse(torch.autograd.gradcheck(Wrong.apply, x, raise_exception=False))

    def test_refused(self):
        with self.assertRaisesRegex(ValueError, "at least one input tensor to require gradient"):
            torch.autograd.gradcheck(lambda a: a, torch.ones(1, dtype=torch.float64))
        with self.assertRaises(NotImplementedError):
            torch.autograd.gradcheck(lambda a: a, torch.ones(1, requires_grad=True), check_forward_ad=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.autograd.gradcheck(lambda a: a * 2, torch.ones(1, requires_grad=True),
                                     raise_exception=False)
        self.assertIn("not a double precision", str(caught[0].message))


if __name__ == "__main__":
    unittest.main()
