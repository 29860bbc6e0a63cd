# SPDX-License-Identifier: Apache-2.0
"""The graph as Python sees it: saved tensors, hooks of nodes, backward inside backward, what the garbage collector
frees."""
import gc
import unittest
import warnings
import weakref

import mindtorch_v2 as torch
from mindtorch_v2.autograd import graph
from mindtorch_v2.utils.checkpoint import CheckpointError, checkpoint, set_checkpoint_early_stop
from support_autograd import leaf


class Nested(unittest.TestCase):
    """A backward in a hook, whose hook runs a backward, and so on: deeper than the frames of one thread."""

    DEPTH = 500

    def test_hooks(self):
        reached = []

        @torch.enable_grad()
        def deeper(left):
            x = leaf(1.0)
            y = x * 2
            if left:
                y.register_hook(lambda grad: deeper(left - 1))
            else:
                reached.append(torch.is_grad_enabled())
            y.sum().backward()
            self.assertEqual(x.grad.item(), 2.0)

        deeper(self.DEPTH)
        self.assertEqual(reached, [True])

    def test_what_is_raised_at_the_bottom_comes_out(self):
        class Deeper(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, left):
                ctx.left = left
                return x.clone()

            @staticmethod
            def backward(ctx, grad):
                if ctx.left == 0:
                    raise KeyError("bottom")
                with torch.enable_grad():
                    x = leaf(1.0)
                    y = Deeper.apply(x, ctx.left - 1).sum()
                torch.autograd.grad(y, x)
                return grad, None

        with self.assertRaisesRegex(KeyError, "bottom"):
            Deeper.apply(leaf(1.0), self.DEPTH).sum().backward()

    def test_an_error_of_the_library_comes_out(self):
        @torch.enable_grad()
        def deeper(left):
            y = leaf(1.0) * 2
            if left:
                y.register_hook(lambda grad: deeper(left - 1))
            else:
                y = torch.ones(2)  # has no graph
            y.sum().backward()

        with self.assertRaisesRegex(RuntimeError, "does not require grad"):
            deeper(130)


class Collected(unittest.TestCase):
    def test_a_hook_that_holds_its_node(self):
        class Mark:
            pass

        def make():
            y = leaf(1.0) * 2
            node, mark = y.grad_fn, Mark()
            y.register_hook(lambda grad: node is mark and None)
            return weakref.ref(mark)

        gone = make()
        gc.collect()
        self.assertIsNone(gone())

    def test_while_the_tensor_is_there_the_hook_is(self):
        calls = []
        x = leaf(1.0)
        y = x * 2
        y.register_hook(lambda grad, node=y.grad_fn: calls.append(node.name()))
        gc.collect()
        y.sum().backward()
        self.assertEqual(calls, ["MulBackward0"])


class Saved(unittest.TestCase):
    def test_a_function_gets_its_tensors_with_their_place_in_the_graph(self):
        seen = []

        class Product(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, w):
                result = x * w
                ctx.save_for_backward(x, w, result)
                return result

            @staticmethod
            def backward(ctx, grad):
                seen.extend((t.requires_grad, type(t.grad_fn).__name__) for t in ctx.saved_tensors)
                x, w, _ = ctx.saved_tensors
                return grad * w, grad * x

        x = leaf(3.0)
        Product.apply(x * 2, x).sum().backward()
        self.assertEqual(seen, [(True, "MulBackward0"), (True, "NoneType"), (True, "ProductBackward")])
        self.assertEqual(x.grad.item(), 12.0)


def facts(tensor):
    return tensor.requires_grad, type(tensor.grad_fn).__name__


class SavedHooks(unittest.TestCase):
    def test_pack_and_unpack(self):
        packed, unpacked = [], []

        def pack(tensor):
            packed.append(facts(tensor))
            return tensor.detach().clone()

        def unpack(tensor):
            unpacked.append(torch.is_grad_enabled())
            return tensor

        x = leaf(1.0, 2.0)
        with graph.saved_tensors_hooks(pack, unpack):
            y = (x * 2 * x).exp()
        y.sum().backward()
        self.assertEqual(packed, [(True, "MulBackward0"), (True, "NoneType"), (True, "ExpBackward0")])
        self.assertEqual(unpacked, [False] * 3)
        expected = leaf(1.0, 2.0)
        (expected * 2 * expected).exp().sum().backward()
        self.assertEqual(x.grad.tolist(), expected.grad.tolist())

    def test_second_derivatives_pass(self):
        x = leaf(2.0)
        with graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
            y = x * x * x
        first, = torch.autograd.grad(y.sum(), x, create_graph=True)
        self.assertEqual(torch.autograd.grad(first.sum(), x)[0].item(), 12.0)

    def test_of_functions_and_ops_in_place(self):
        class Product(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a, b):
                ctx.save_for_backward(a, b)
                return a * b

            @staticmethod
            def backward(ctx, grad):
                a, b = ctx.saved_tensors
                return grad * b, grad * a

        seen = []
        x = leaf(3.0)
        with graph.saved_tensors_hooks(lambda t: seen.append(facts(t)) or t.detach(), lambda t: t * 10):
            Product.apply(x, x).sum().backward()
            (x * 1).exp_().sum().backward()
        self.assertEqual(seen, [(True, "NoneType")] * 2 + [(True, "ExpBackward0")])
        self.assertAlmostEqual(x.grad.item(), 60.0 + 10 * torch.exp(torch.tensor(3.0)).item(), places=3)

    def test_nested_ones_are_the_innermost_alone_and_end(self):
        seen = []

        def hooks(name):
            return graph.saved_tensors_hooks(lambda t: seen.append(name) or t.detach(), lambda t: t)

        x = leaf(1.0)
        with hooks("outer"):
            with hooks("inner"):
                x * x
            x.exp()
        x * x
        self.assertEqual(seen, ["inner", "inner", "outer"])

    def test_what_goes_wrong(self):
        x = leaf(1.0)
        with self.assertRaises(ZeroDivisionError), graph.saved_tensors_hooks(lambda t: 1 / 0, lambda t: t):
            x * x
        with graph.saved_tensors_hooks(lambda t: 5, lambda t: t):
            y = x * x
        with self.assertRaisesRegex(TypeError, "unpack_hook expected to be a Tensor but got result of type int"):
            y.sum().backward()
        with graph.saved_tensors_hooks(lambda t: t, lambda t: 1 / 0):
            y = x * x
        with self.assertRaises(ZeroDivisionError):
            y.sum().backward()
        with self.assertRaisesRegex(RuntimeError, "pack hook is modifying its input in place"), \
                graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t):
            (x * 2) * (x * 3)
        with graph.disable_saved_tensors_hooks("not now"), self.assertRaisesRegex(RuntimeError, "not now"):
            with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                pass
        (x * x).sum().backward()

    def test_packed_values_are_given_back(self):
        class Box:
            pass

        boxes = []

        def pack(tensor):
            box = Box()
            boxes.append(weakref.ref(box))
            return box, tensor.detach()

        x = leaf(1.0)
        with graph.saved_tensors_hooks(pack, lambda packed: packed[1]):
            y = x * x
            z = x.exp()
        y.sum().backward()
        del z
        gc.collect()
        self.assertEqual([box() for box in boxes], [None] * 3)

    def test_made_of_them(self):
        x = leaf(2.0)
        with graph.save_on_cpu():
            y = x * x
        y.sum().backward()
        self.assertEqual(x.grad.item(), 4.0)
        with graph.allow_mutation_on_saved_tensors():
            a = x * 2
            b = a * a
            a.add_(1)
        x.grad = None
        b.sum().backward()
        self.assertEqual(x.grad.item(), 16.0)
        tensor = torch.ones(1)
        graph.increment_version([tensor, tensor])
        self.assertEqual(tensor._version, 2)


class Nodes(unittest.TestCase):
    def test_saved_values(self):
        x = leaf(1.0, 2.0)
        a = x * 2
        b = a * x
        self.assertEqual(facts(b.grad_fn._saved_self), (True, "MulBackward0"))
        self.assertIs(b.grad_fn._saved_other, x)
        self.assertIsNone(a.grad_fn._saved_self)
        self.assertEqual(facts(a.exp().grad_fn._saved_result), (True, "ExpBackward0"))
        total = a.sum(0, keepdim=True).grad_fn
        self.assertEqual((total._saved_dim, total._saved_keepdim), ((0,), True))
        self.assertIn("_saved_self", dir(b.grad_fn))
        with self.assertRaisesRegex(AttributeError, "no attribute '_saved_nope'"):
            b.grad_fn._saved_nope
        b.sum().backward()
        with self.assertRaisesRegex(RuntimeError, "directly access saved tensors after they have already been freed"):
            b.grad_fn._saved_self

    def test_a_functions_node_has_what_its_ctx_has(self):
        class Named(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                ctx.word = "kept"
                ctx.save_for_backward(a)
                return a * 2

            @staticmethod
            def backward(ctx, grad):
                return grad * 2

        x = leaf(1.0)
        node = Named.apply(x).grad_fn
        self.assertEqual((node.word, node.saved_tensors[0] is x), ("kept", True))
        with self.assertRaises(AttributeError):
            node.other_word

    def test_hooks(self):
        calls = []
        x = leaf(1.0, 2.0)
        node = (x * 2 * x).grad_fn
        y = x * 2 * x
        node = y.grad_fn
        handle = node.register_hook(lambda inputs, outputs: calls.append((len(inputs), outputs[0].tolist())))
        node.register_prehook(lambda outputs: (outputs[0] * 10,))
        node.register_hook(lambda inputs, outputs: (inputs[0], None))
        y.sum().backward(retain_graph=True)
        self.assertEqual(calls, [(2, [10.0, 10.0])])
        self.assertEqual(x.grad.tolist(), [20.0, 40.0])
        handle.remove()
        y.sum().backward()
        self.assertEqual(len(calls), 1)

    def test_hooks_of_a_leafs_node(self):
        calls = []
        x = leaf(1.0)
        accumulate = (x * 2).grad_fn.next_functions[0][0]
        with accumulate.register_hook(lambda inputs, outputs: calls.append((inputs, outputs[0].item()))), \
                accumulate.register_prehook(lambda outputs: (outputs[0] * 2,)):
            (x * 3).sum().backward()
        (x * 3).sum().backward()
        self.assertEqual(calls, [((), 6.0)])
        self.assertEqual(x.grad.item(), 9.0)

    def test_wrong_hooks(self):
        for hook, error, words in ((lambda i, o: i[0], TypeError, "expected tuple, but hook returned 'Tensor'"),
                                   (lambda i, o: (i[0],) * 5, RuntimeError, "incorrect number of values"),
                                   (lambda i, o: (1, 2), TypeError, "hook returned 'int'"),
                                   (lambda i, o: 1 / 0, ZeroDivisionError, "")):
            y = leaf(1.0) * leaf(2.0)
            y.grad_fn.register_hook(hook)
            with self.assertRaisesRegex(error, words):
                y.sum().backward()

    def test_metadata_stays_with_the_node(self):
        y = leaf(1.0) * 2
        y.grad_fn.metadata["word"] = 5
        gc.collect()
        self.assertEqual(y.grad_fn.metadata, {"word": 5})

    def test_hooks_and_metadata_that_hold_their_node_are_freed(self):
        class Mark:
            pass

        def make(hold):
            node, mark = (leaf(1.0) * 2).grad_fn, Mark()
            hold(node, mark)
            return weakref.ref(mark)

        for hold in (lambda node, mark: node.register_hook(lambda i, o: node is mark and None),
                     lambda node, mark: node.metadata.update(node=node, mark=mark)):
            gone = make(hold)
            gc.collect()
            self.assertIsNone(gone())

    def test_several_gradients(self):
        calls = []
        u, v, unused = leaf(2.0), leaf(3.0), leaf(4.0)
        graph.register_multi_grad_hook((u, v, unused), calls.append)
        (u * v).sum().backward()
        self.assertEqual([None if grad is None else grad.item() for grad in calls[0]], [3.0, 2.0, None])
        calls.clear()
        graph.register_multi_grad_hook((u, v), lambda grad: calls.append(grad.item()), mode="any")
        (u * v).sum().backward()
        self.assertEqual(len([call for call in calls if isinstance(call, float)]), 1)


class Dirty(unittest.TestCase):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            a.mul_(2)
            ctx.mark_dirty(a)
            ctx.save_for_backward(a)
            return a

        @staticmethod
        def backward(ctx, grad):
            assert ctx.saved_tensors[0].requires_grad
            return grad * 2

    def test_an_input_that_is_changed(self):
        x = leaf(1.0)
        y = x.clone()
        z = self.Twice.apply(y)
        self.assertIs(z, y)
        self.assertEqual((type(y.grad_fn).__name__, y._version), ("TwiceBackward", 2))
        (z * z).sum().backward()
        self.assertEqual(x.grad.item(), 8.0)
        plain = torch.ones(1)
        self.assertIs(self.Twice.apply(plain), plain)
        self.assertEqual(plain._version, 2)

    def test_wrong_ones(self):
        class Forgets(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                ctx.mark_dirty(a.mul_(2))
                return a.sum()

            @staticmethod
            def backward(ctx, grad):
                return grad

        with self.assertRaisesRegex(RuntimeError, "a leaf Variable that requires grad has been used in an in-place"):
            self.Twice.apply(leaf(1.0))
        with self.assertRaisesRegex(RuntimeError, "marked as dirty during the forward method were not returned"):
            Forgets.apply(leaf(1.0).clone())
        with self.assertRaisesRegex(NotImplementedError, "a view cannot be changed"):
            self.Twice.apply(leaf(1.0, 2.0).clone()[:1])


class Anomaly(unittest.TestCase):
    def fails(self, check_nan=True, inside=True):
        x = leaf(0.0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with torch.autograd.set_detect_anomaly(inside):
                y = torch.sqrt(x * 0) * 0
            with torch.autograd.detect_anomaly(check_nan):
                try:
                    y.sum().backward()
                    error = None
                except RuntimeError as raised:
                    error = str(raised)
        return error, [str(warning.message) for warning in caught]

    def test_nan(self):
        error, (first, second) = self.fails()
        self.assertEqual(error, "Function 'SqrtBackward0' returned nan values in its 0th output.")
        self.assertIn("Anomaly Detection has been enabled", first)
        self.assertIn("Error detected in SqrtBackward0. Traceback of forward call that caused the error:", second)
        self.assertIn("y = torch.sqrt(x * 0) * 0", second)
        error, (_, second) = self.fails(inside=False)
        self.assertIn("No forward pass information available", second)
        self.assertEqual(self.fails(check_nan=False)[0], None)
        self.assertFalse(torch.is_anomaly_enabled())
        self.assertTrue(torch.is_anomaly_check_nan_enabled())

    def test_what_a_function_raises_is_traced_and_comes_out(self):
        class Fails(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                return a.clone()

            @staticmethod
            def backward(ctx, grad):
                raise KeyError("mine")

        with warnings.catch_warnings(record=True) as caught, torch.autograd.set_detect_anomaly(True):
            warnings.simplefilter("always")
            with self.assertRaisesRegex(KeyError, "mine"):
                Fails.apply(leaf(1.0)).sum().backward()
        self.assertIn("Fails.apply(leaf(1.0))", str(caught[0].message))


class Checkpoints(unittest.TestCase):
    def test_without_reentry(self):
        calls = []

        def part(a, factor=2):
            calls.append("begin")
            y = (a * factor).exp().sin()
            z = y * y
            calls.append("end")
            return z

        x, expected = leaf(0.1, 0.5), leaf(0.1, 0.5)
        part(expected, 3).sum().backward()
        calls.clear()
        checkpoint(part, x, factor=3, use_reentrant=False).sum().backward()
        self.assertEqual(calls, ["begin", "end", "begin"])  # the second time it stops at what is needed
        self.assertEqual(x.grad.tolist(), expected.grad.tolist())
        calls.clear()
        with set_checkpoint_early_stop(False):
            checkpoint(part, x, use_reentrant=False).sum().backward()
        self.assertEqual(calls, ["begin", "end"] * 2)

    def test_twice_and_deeper(self):
        x = leaf(2.0)
        y = checkpoint(lambda a: a ** 3, x, use_reentrant=False)
        first, = torch.autograd.grad(y.sum(), x, create_graph=True)
        self.assertEqual(torch.autograd.grad(first.sum(), x)[0].item(), 12.0)
        y = checkpoint(lambda a: checkpoint(lambda b: b * b, a * 2, use_reentrant=False) * a, x, use_reentrant=False)
        y.sum().backward(retain_graph=True)
        y.sum().backward()
        self.assertEqual(x.grad.item(), 2 * 12 * 4.0)

    def test_another_computation_is_refused(self):
        runs = []

        def fewer(a):
            runs.append(a)
            return a.exp().sin() if len(runs) == 1 else a.exp()

        def smaller(a):
            runs.append(a)
            return (a if len(runs) == 1 else a[:1]).exp().sin()

        for part, words in ((fewer, "A different number of tensors was saved"), (smaller, "have different metadata")):
            runs.clear()
            with self.assertRaisesRegex(CheckpointError, words):
                checkpoint(part, leaf(1.0, 2.0), use_reentrant=False).sum().backward()

    def test_dropout_is_the_same(self):
        x = torch.ones(64, requires_grad=True)
        y = checkpoint(lambda a: torch.nn.functional.dropout(a.exp(), 0.5).sin(), x, use_reentrant=False)
        y.sum().backward()
        self.assertEqual((x.grad != 0).tolist(), (y != 0).tolist())


class Versions(unittest.TestCase):
    def test_each_op_in_place_raises_it_by_one(self):
        functional = torch.nn.functional
        for write in (torch.relu_, torch.sigmoid_, functional.elu_, functional.leaky_relu_, functional.celu_,
                      functional.selu_, lambda x: functional.hardswish(x, inplace=True),
                      lambda x: functional.mish(x, inplace=True), lambda x: functional.threshold_(x, 0.1, 2.0),
                      torch.Tensor.t_, lambda x: x.unsqueeze_(0), lambda x: x.transpose_(0, 1)):
            x = torch.rand(3, 3)
            write(x)
            self.assertEqual(x._version, 1, write)


if __name__ == "__main__":
    unittest.main()
