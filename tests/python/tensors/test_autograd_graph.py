# SPDX-License-Identifier: Apache-2.0
"""The graph as Python sees it: saved tensors, hooks of nodes, backward inside backward, what the garbage collector
frees."""
import gc
import unittest
import weakref

import mindtorch_v2 as torch
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
