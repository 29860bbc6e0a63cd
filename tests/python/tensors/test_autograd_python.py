# SPDX-License-Identifier: Apache-2.0
"""Gradients from Python: backward, grad, hooks, grad mode; what is raised inside arrives outside, nothing is
kept too long, threads do not meet. Functions of the user's own are test_autograd_function.py's."""
import copy
import functools
import gc
import pickle
import sys
import threading
import traceback
import unittest
import weakref

import mindtorch_v2 as torch
from support_autograd import Mine, Scale, leaf


class Backward(unittest.TestCase):
    def test_accumulates(self):
        w = leaf(1.0, 2.0)
        (w * w).sum().backward()
        self.assertEqual(w.grad.tolist(), [2.0, 4.0])
        (w * w).sum().backward()
        self.assertEqual(w.grad.tolist(), [4.0, 8.0])
        w.grad = None
        (w * 3).backward(torch.tensor([1.0, 10.0]))
        self.assertEqual(w.grad.tolist(), [3.0, 30.0])

    def test_gradient_by_name_and_keywords(self):
        w = leaf(1.0)
        y = w * w
        y.backward(gradient=torch.tensor([2.0]), retain_graph=True)
        y.backward(torch.tensor([2.0]), create_graph=False)
        self.assertEqual(w.grad.tolist(), [8.0])

    def test_second_time(self):
        y = (leaf(1.0) ** 2).sum()
        y.backward()
        with self.assertRaisesRegex(RuntimeError, "Trying to backward through the graph a second time"):
            y.backward()

    def test_create_graph(self):
        w = leaf(3.0)
        (w ** 3).sum().backward(create_graph=True)
        self.assertEqual(w.grad.item(), 27.0)
        second, = torch.autograd.grad(w.grad.sum(), w)
        self.assertEqual(second.item(), 18.0)

    def test_inputs(self):
        a, b = leaf(2.0), leaf(5.0)
        (a * b).sum().backward(inputs=[a])
        self.assertEqual((a.grad.item(), b.grad), (5.0, None))
        (a * b).sum().backward(inputs=a)
        self.assertEqual(a.grad.item(), 10.0)
        y = a * 2
        (y * b).sum().backward(inputs=[y])
        self.assertEqual(y.grad.item(), 5.0)
        with self.assertRaisesRegex(RuntimeError, "cannot be empty"):
            (a * b).sum().backward(inputs=[])

    def test_many(self):
        a = leaf(2.0)
        torch.autograd.backward([a * 2, a * 3], [torch.tensor([1.0]), torch.tensor([10.0])])
        self.assertEqual(a.grad.item(), 32.0)
        torch.autograd.backward([])
        torch.autograd.backward((a.sum(), (a * 2).sum()))
        self.assertEqual(a.grad.item(), 35.0)
        with self.assertRaisesRegex(RuntimeError, "got 2 tensors and 1 gradients"):
            torch.autograd.backward([a * 2, a * 3], [torch.tensor([1.0])])

    def test_refused(self):
        w = leaf(1.0, 2.0)
        with self.assertRaisesRegex(RuntimeError, "implicitly created only for scalar outputs"):
            (w * 2).backward()
        with self.assertRaisesRegex(RuntimeError, "does not require grad and does not have a grad_fn"):
            torch.ones(1).backward()
        with self.assertRaisesRegex(RuntimeError, r"Mismatch in shape: grad_output\[0\]"):
            (w * 2).backward(torch.ones(3))
        with self.assertRaises(TypeError):
            w.sum().backward(5)
        with self.assertRaises(TypeError):
            torch.autograd.backward(5)
        with self.assertRaises(TypeError):
            torch._C._run_backward([w], (None,), 0)
        with self.assertRaises(TypeError):
            torch._C._run_backward((w, 5), (None, None), 0)


class Grad(unittest.TestCase):
    def test_values(self):
        a, b = leaf(2.0), leaf(3.0)
        self.assertEqual([g.item() for g in torch.autograd.grad((a * a * b).sum(), (a, b))], [12.0, 4.0])
        self.assertIsNone(a.grad)
        g, = torch.autograd.grad(a * 2, a, grad_outputs=torch.tensor([5.0]))
        self.assertEqual(g.item(), 10.0)
        self.assertEqual(torch.autograd.grad((a * b).sum(), {"a": a, "b": b})["a"].item(), 3.0)

    def test_unused(self):
        a, b = leaf(2.0), leaf(3.0)
        with self.assertRaisesRegex(RuntimeError, "index 1 appears to not have been used in the graph"):
            torch.autograd.grad(a.sum(), (a, b))
        self.assertIsNone(torch.autograd.grad(a.sum(), (a, b), allow_unused=True)[1])
        got = torch.autograd.grad(a.sum(), (a, b), materialize_grads=True)[1]
        self.assertEqual(got.tolist(), [0.0])
        with self.assertRaisesRegex(ValueError, "allow_unused to be True or not passed"):
            torch.autograd.grad(a.sum(), a, allow_unused=False, materialize_grads=True)

    def test_refused(self):
        a = leaf(2.0)
        with self.assertRaisesRegex(RuntimeError, "does not require grad"):
            torch.autograd.grad(a.sum(), torch.ones(1))
        with self.assertRaisesRegex(RuntimeError, "cannot be empty"):
            torch.autograd.grad(a.sum(), [])
        with self.assertRaisesRegex(ValueError, "is_grads_batched"):
            torch.autograd.grad((a, a), a, (torch.ones(1, 1), torch.ones(2, 1)), is_grads_batched=True)

    def test_batches_of_gradients(self):
        a, unused = leaf(2.0, 3.0), leaf(1.0)
        jacobian, none = torch.autograd.grad(a * a, (a, unused), torch.eye(2), is_grads_batched=True, allow_unused=True)
        self.assertEqual(jacobian.tolist(), [[4.0, 0.0], [0.0, 6.0]])
        self.assertIsNone(none)

    def test_through_inner_tensors(self):
        a = leaf(2.0)
        y = a * 3
        self.assertEqual(torch.autograd.grad((y * y).sum(), y)[0].item(), 12.0)


class Nodes(unittest.TestCase):
    def test_names_and_edges(self):
        w = leaf(1.0)
        y = (w * 2).sum()
        node = y.grad_fn
        self.assertEqual(node.name(), "SumBackward0")
        self.assertRegex(repr(node), r"<SumBackward0 object at 0x[0-9a-f]+>")
        (inner, number), = node.next_functions
        self.assertEqual((inner.name(), number), ("MulBackward0", 0))
        last = inner.next_functions[0][0]
        self.assertEqual(type(last).__name__, "AccumulateGrad")
        self.assertIs(last.variable, w)
        self.assertGreater(node._sequence_nr(), inner._sequence_nr())
        self.assertIsNone(w.grad_fn)
        with self.assertRaises(AttributeError):
            inner.variable
        with self.assertRaises(TypeError):
            type(node)()

    def test_identity(self):
        y = leaf(1.0) * 2
        self.assertIs(y.grad_fn, y.grad_fn)
        self.assertIs((y.sum()).grad_fn.next_functions[0][0], y.grad_fn)
        y.grad_fn.metadata["mine"] = 1
        node = y.grad_fn
        node.metadata["mine"] = 2
        self.assertEqual(y.grad_fn.metadata, {"mine": 2})
        self.assertIsInstance(node, torch.autograd.graph.Node)
        self.assertIs(torch.autograd.graph.get_gradient_edge(y).node, node)

    def test_which_output(self):
        a, b = leaf(1.0, 2.0).unbind()
        self.assertEqual((b * 2).grad_fn.next_functions[0][1], 1)

    def test_a_node_outlives_its_tensor(self):
        w = leaf(1.0)
        node = (w * 2).sum().grad_fn
        gc.collect()
        self.assertEqual(node.next_functions[0][0].name(), "MulBackward0")

    def test_nothing_is_kept(self):
        w = leaf(1.0)

        def work():
            for _ in range(100):
                node = (w * 2).sum().grad_fn
                node.metadata["self"] = node
                node.next_functions[0][0].next_functions

        work()
        gc.collect()
        before = torch._C._tensors_alive()
        work()
        gc.collect()
        self.assertEqual(torch._C._tensors_alive(), before)


class Hooks(unittest.TestCase):
    def test_order_and_replacement(self):
        w = leaf(1.0, 2.0)
        seen = []
        y = w * 2
        y.register_hook(lambda g: seen.append(g.tolist()))
        y.register_hook(lambda g: g * 10)
        y.register_hook(lambda g: seen.append(g.tolist()))
        y.sum().backward()
        self.assertEqual(seen, [[1.0, 1.0], [10.0, 10.0]])
        self.assertEqual(w.grad.tolist(), [20.0, 20.0])

    def test_removal(self):
        w = leaf(1.0)
        seen = []
        handle = w.register_hook(seen.append)
        with w.register_hook(lambda g: seen.append("block")):
            w.sum().backward()
        self.assertEqual(len(seen), 2)
        handle.remove()
        handle.remove()
        w.sum().backward()
        self.assertEqual(len(seen), 2)
        self.assertIsInstance(handle, torch.utils.hooks.RemovableHandle)

    def test_a_hook_removes_itself(self):
        w = leaf(1.0)
        seen = []

        def hook(grad):
            seen.append(grad.item())
            handle.remove()

        handle = w.register_hook(hook)
        w.sum().backward()
        w.sum().backward()
        self.assertEqual(seen, [1.0])

    def test_errors_arrive_unchanged(self):
        w = leaf(1.0)
        error = Mine("here")

        def hook(grad):
            raise error

        w.register_hook(hook)
        try:
            (w * 2).sum().backward()
        except Mine as caught:
            self.assertIs(caught, error)
            names = [frame.name for frame in traceback.extract_tb(caught.__traceback__)]
            self.assertEqual((names[0], names[-1]), ("test_errors_arrive_unchanged", "hook"))
        else:
            self.fail("nothing was raised")

    def test_wrong_results(self):
        for hook, kind, words in ((lambda g: "a", TypeError, "expected Variable, but hook returned 'str'"),
                                  (lambda g: g[:1], RuntimeError,
                                   "hook '<lambda>' has changed the size of value"),
                                  (lambda g: g.double(), RuntimeError,
                                   "type of value .was torch.FloatTensor got torch.DoubleTensor"),
                                  (5, TypeError, "not callable")):
            w = leaf(1.0, 2.0)
            w.register_hook(hook)
            with self.assertRaisesRegex(kind, words):
                w.sum().backward()

    def test_refused(self):
        with self.assertRaisesRegex(RuntimeError, "doesn't require gradient"):
            torch.ones(1).register_hook(print)
        with self.assertRaisesRegex(RuntimeError, "doesn't require gradient"):
            torch.ones(1).register_post_accumulate_grad_hook(print)
        with self.assertRaisesRegex(RuntimeError, "non-leaf"):
            (leaf(1.0) * 2).register_post_accumulate_grad_hook(print)

    def test_post_accumulate(self):
        w = leaf(1.0)
        seen = []

        def hook(tensor):
            seen.append((tensor is w, tensor.grad.item()))
            tensor.grad = None

        handle = w.register_post_accumulate_grad_hook(hook)
        (w * 5).sum().backward()
        self.assertEqual((seen, w.grad), ([(True, 5.0)], None))
        handle.remove()
        (w * 5).sum().backward()
        self.assertEqual(w.grad.item(), 5.0)
        handle = w.register_post_accumulate_grad_hook(lambda t: 5)
        with self.assertRaisesRegex(TypeError, "hook returned 'int'"):
            w.sum().backward()
        handle.remove()
        w.register_post_accumulate_grad_hook(lambda t: t)
        with self.assertRaisesRegex(RuntimeError, "should return None"):
            w.sum().backward()

    def test_hooks_go_with_the_tensor(self):
        class Hook:
            def __call__(self, grad):
                pass

        hook = Hook()
        there = weakref.ref(hook)
        w = leaf(1.0)
        w.register_hook(hook)
        w.register_post_accumulate_grad_hook(hook)
        (w * 2).sum().backward()
        del hook
        gc.collect()
        self.assertIsNotNone(there())
        del w
        gc.collect()
        torch._C._tensors_alive()
        self.assertIsNone(there())

    def test_a_hook_that_names_its_tensor(self):
        # A cycle through the library: the collector must see it. (Weak references show nothing here: it
        # clears them before it changes its mind.)
        class Note:
            pass

        for accumulate, result in ((False, False), (True, False), (False, True)):
            gc.collect()
            before = torch._C._tensors_alive()
            w = leaf(1.0) * 3 if result else leaf(1.0)
            note = w.note = Note()
            register = w.register_post_accumulate_grad_hook if accumulate else w.register_hook
            handle = register(lambda g, me=w: None)
            register(lambda g, me=w: None)
            (w * 2).sum().backward()
            del w, register
            gc.collect()
            self.assertEqual(torch._C._tensors_alive(), before)
            self.assertEqual(sys.getrefcount(note), 2)
            handle.remove()

    def test_a_graph_keeps_such_a_hook(self):
        seen = []
        w = leaf(1.0)
        w.register_hook(lambda g, me=w: seen.append(me.item()))
        y = w * 2
        handle = y.register_hook(lambda g, me=y: seen.append(me.item()))
        z = y.sum()
        del w, y
        gc.collect()
        gc.collect()
        z.backward()
        self.assertEqual(seen, [2.0, 1.0])
        handle.remove()

    def test_the_object_goes_the_hook_stays(self):
        seen = []
        w = leaf(1.0)
        y = w * 2
        kept = y.register_hook(seen.append)
        removed = y.register_hook(lambda g: seen.append("removed"))
        z = y.sum()
        del y
        gc.collect()
        removed.remove()  # without the object
        z.backward()
        self.assertEqual([g.item() for g in seen], [1.0])
        kept.remove()

    def test_copies_have_no_hooks(self):
        w = leaf(1.0)
        w.register_hook(lambda g: None)
        w.note = 1
        for other in (copy.copy(w), copy.deepcopy(w), pickle.loads(pickle.dumps(w))):
            self.assertEqual(vars(other), {"note": 1})

    def test_a_backward_inside(self):
        a, b = leaf(1.0), leaf(2.0)

        def hook(grad):
            self.assertFalse(torch.is_grad_enabled())
            with torch.enable_grad():
                (b * 3).sum().backward()

        a.register_hook(hook)
        (a * 2).sum().backward()
        self.assertEqual((a.grad.item(), b.grad.item()), (2.0, 3.0))

    def test_an_error_inside_an_inner_backward(self):
        a, b = leaf(1.0), leaf(2.0)

        def bad(grad):
            raise Mine("inner")

        b.register_hook(bad)

        def outer(grad):
            try:
                with torch.enable_grad():
                    (b * 3).sum().backward()
            except Mine:
                return grad * 7

        a.register_hook(outer)
        (a * 2).sum().backward()
        self.assertEqual(a.grad.item(), 14.0)

    def test_multi_grad(self):
        a, b = leaf(1.0), leaf(2.0)
        seen = []
        handle = torch.autograd.graph.register_multi_grad_hook(
            (a, b), lambda grads: seen.append([g.item() for g in grads]))
        (a * b).sum().backward()
        self.assertEqual(seen, [[2.0, 1.0]])
        handle.remove()
        (a * b).sum().backward()
        self.assertEqual(len(seen), 1)

    def test_retain_grad(self):
        w = leaf(2.0)
        y = w * 3
        y.retain_grad()
        (y * y).sum().backward()
        self.assertEqual(y.grad.item(), 12.0)


class Modes(unittest.TestCase):
    def test_blocks(self):
        w = leaf(1.0)
        with torch.no_grad():
            self.assertFalse(torch.is_grad_enabled())
            self.assertFalse((w * 2).requires_grad)
            with torch.enable_grad():
                self.assertTrue((w * 2).requires_grad)
            self.assertFalse(torch.is_grad_enabled())
        self.assertTrue(torch.is_grad_enabled())
        with self.assertRaises(Mine):
            with torch.no_grad():
                raise Mine
        self.assertTrue(torch.is_grad_enabled())

    def test_decorators(self):
        @torch.no_grad()
        def called(x, y=2):
            """Its text."""
            return torch.is_grad_enabled(), x, y

        @torch.no_grad
        def bare():
            return torch.is_grad_enabled()

        @torch.set_grad_enabled(False)
        def off():
            return torch.is_grad_enabled()

        @torch.inference_mode()
        def inference():
            return torch.is_grad_enabled(), torch.is_inference_mode_enabled()

        self.assertTrue(torch.is_grad_enabled())
        self.assertEqual(called(1, y=3), (False, 1, 3))
        self.assertEqual((called.__name__, called.__doc__), ("called", "Its text."))
        self.assertEqual((bare(), off(), inference()), (False, False, (False, True)))
        self.assertTrue(torch.is_grad_enabled())
        self.assertFalse(torch.is_inference_mode_enabled())
        with self.assertWarns(FutureWarning):
            @torch.no_grad()
            class Made:
                pass
        Made()

    def test_recursion(self):
        @torch.no_grad()
        def down(n):
            inside = torch.is_grad_enabled()
            return inside or (n > 0 and down(n - 1))

        self.assertFalse(down(5))
        self.assertTrue(torch.is_grad_enabled())

    def test_generators(self):
        log = []

        @torch.no_grad()
        def numbers():
            try:
                got = yield torch.is_grad_enabled()
                log.append((got, torch.is_grad_enabled()))
                try:
                    yield torch.is_grad_enabled()
                except Mine:
                    log.append(("thrown", torch.is_grad_enabled()))
                yield 3
            finally:
                log.append(("closed", torch.is_grad_enabled()))
            return 4

        it = functools.partial(numbers)()
        self.assertFalse(next(it))
        self.assertTrue(torch.is_grad_enabled())
        self.assertFalse(it.send("x"))
        self.assertEqual(it.throw(Mine()), 3)
        it.close()
        self.assertEqual(log, [("x", False), ("thrown", False), ("closed", False)])
        self.assertTrue(torch.is_grad_enabled())

        def outer():
            return (yield from numbers())

        it = outer()
        values = []
        with self.assertRaises(StopIteration) as stop:
            while True:
                values.append(next(it))
        self.assertEqual((values, stop.exception.value), ([False, False, 3], 4))

    def test_set_grad_enabled(self):
        torch.set_grad_enabled(False)
        self.assertFalse(torch.is_grad_enabled())
        torch.set_grad_enabled(True)
        with torch.set_grad_enabled(False):
            self.assertFalse(torch.is_grad_enabled())
        self.assertTrue(torch.is_grad_enabled())
        self.assertIn("mode=False", repr(torch.set_grad_enabled(False)))
        torch.set_grad_enabled(True)
        with self.assertRaisesRegex(TypeError, "must be bool, not int"):
            torch.set_grad_enabled(5)

    def test_inference_mode_off(self):
        with torch.inference_mode():
            with torch.inference_mode(False):
                self.assertFalse(torch.is_inference_mode_enabled())
            self.assertTrue(torch.is_inference_mode_enabled())

    def test_threads_have_their_own(self):
        seen = []
        with torch.no_grad():
            thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
            thread.start()
            thread.join()
        self.assertEqual(seen, [True])


class Threads(unittest.TestCase):
    def test_many_at_once(self):
        errors = []

        def work(seed):
            try:
                for i in range(60):
                    w = leaf(1.0, 2.0)
                    seen = []
                    w.register_hook(seen.append)
                    y = Scale.apply(w, seed + i)
                    y.sum().backward()
                    if w.grad.tolist() != [float(seed + i)] * 2 or len(seen) != 1:
                        errors.append((seed, i))
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])

    def test_errors_belong_to_their_thread(self):
        results = {}

        def work(name):
            def hook(grad):
                raise Mine(name)

            w = leaf(1.0)
            w.register_hook(hook)
            got = set()
            for _ in range(50):
                try:
                    (w * 2).sum().backward()
                except Mine as error:
                    got.add(str(error))
            results[name] = got

        threads = [threading.Thread(target=work, args=(str(k),)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, {str(k): {str(k)} for k in range(4)})

    def test_others_run_meanwhile(self):
        # backward runs without the GIL: a hook that waits for another thread would hang otherwise.
        ready, go = threading.Event(), threading.Event()
        w = leaf(1.0)

        def hook(grad):
            ready.set()
            if not go.wait(20):
                raise Mine("nobody came")

        w.register_hook(hook)
        thread = threading.Thread(target=lambda: ready.wait(20) and go.set())
        thread.start()
        (w * 2).sum().backward()
        thread.join()


if __name__ == "__main__":
    unittest.main()
