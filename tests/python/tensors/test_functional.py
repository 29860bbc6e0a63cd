# SPDX-License-Identifier: Apache-2.0
"""autograd.functional and func: known derivatives, nesting, vmap as a loop, modules as functions."""

import unittest

import mindtorch_v2 as torch
from mindtorch_v2 import func
from mindtorch_v2.autograd import functional

X = torch.tensor([0.5, 1.0, -2.0], dtype=torch.float64)
ONES = torch.ones(3, dtype=torch.float64)


def cubes(x):
    return (x**3).sum()


class Functional(unittest.TestCase):
    def test_jacobian_and_hessian(self):
        self.assertEqual(functional.jacobian(lambda x: x**2, X).tolist(), torch.diag(2 * X).tolist())
        rows = functional.jacobian(lambda x, y: (x * y, x.sum()), (X, X + 1))
        self.assertEqual(rows[0][1].tolist(), torch.diag(X).tolist())
        self.assertEqual([part.tolist() for part in rows[1]], [[1.0] * 3, [0.0] * 3])
        self.assertEqual(functional.hessian(cubes, X).tolist(), torch.diag(6 * X).tolist())
        mixed = functional.hessian(lambda x, y: (x * y).sum(), (X, X))
        self.assertEqual(mixed[0][1].tolist(), torch.eye(3).tolist())
        self.assertEqual(mixed[0][0].tolist(), torch.zeros(3, 3).tolist())
        self.assertEqual(functional.jacobian(lambda x: torch.ones(2), X).shape, (2, 3))

    def test_products(self):
        value, product = functional.vjp(lambda x: x**2, X, ONES)
        self.assertEqual((value.tolist(), product.tolist()), ((X**2).tolist(), (2 * X).tolist()))
        _, product = functional.jvp(lambda x: x**2, X, ONES)
        self.assertEqual(product.tolist(), (2 * X).tolist())
        for of in (functional.hvp, functional.vhp):
            value, product = of(cubes, X, ONES)
            self.assertEqual((value.item(), product.tolist()), (cubes(X).item(), (6 * X).tolist()))

    def test_graphs(self):
        leaf = X.clone().requires_grad_()
        functional.jacobian(lambda x: x**2, leaf, create_graph=True).sum().backward()
        self.assertEqual(leaf.grad.tolist(), [2.0] * 3)
        self.assertFalse(functional.jacobian(lambda x: x**2, leaf).requires_grad)

    def test_refused(self):
        for error, text, call in (
            (TypeError, "must be either a Tensor or a tuple of Tensors", lambda: functional.jacobian(lambda x: 3, X)),
            (RuntimeError, "should contain a single element", lambda: functional.hessian(lambda x: x**3, X)),
            (RuntimeError, "v can only be None", lambda: functional.vjp(lambda x: x**2, X)),
            (
                RuntimeError,
                "v has invalid size: should be torch.Size",
                lambda: functional.vjp(cubes, X, torch.ones(2)),
            ),
            (
                RuntimeError,
                "Output 0 .* does not require gradients",
                lambda: functional.jacobian(lambda x: torch.ones(2), X, strict=True),
            ),
        ):
            with self.assertRaisesRegex(error, text):
                call()


class Func(unittest.TestCase):
    def test_grad(self):
        self.assertEqual(func.grad(cubes)(X).tolist(), (3 * X**2).tolist())
        slopes, aux = func.grad(lambda x, y: ((x * y).sum(), x + y), argnums=(0, 1), has_aux=True)(X, ONES)
        self.assertEqual([s.tolist() for s in slopes], [ONES.tolist(), X.tolist()])
        self.assertEqual(aux.tolist(), (X + 1).tolist())
        slope, value = func.grad_and_value(cubes)(X)
        self.assertEqual((slope.tolist(), value.item()), ((3 * X**2).tolist(), cubes(X).item()))
        self.assertFalse(slope.requires_grad)
        second = func.grad(lambda x: func.grad(cubes)(x).sum())(X)
        self.assertEqual(second.tolist(), (6 * X).tolist())
        with self.assertRaisesRegex(RuntimeError, "return a scalar Tensor, got tensor with 1 dims"):
            func.grad(lambda x: x)(X)
        tree = func.grad(lambda p: (p["a"] * p["b"]).sum())({"a": X, "b": ONES})
        self.assertEqual(tree["b"].tolist(), X.tolist())

    def test_vjp_jacrev_hessian(self):
        value, pull = func.vjp(lambda x: x**2, X)
        self.assertEqual((value.tolist(), pull(ONES)[0].tolist()), ((X**2).tolist(), (2 * X).tolist()))
        self.assertEqual(func.jacrev(lambda x: x**2)(X).tolist(), torch.diag(2 * X).tolist())
        self.assertEqual(func.hessian(cubes)(X).tolist(), torch.diag(6 * X).tolist())

    def test_jvp_linearize_jacfwd(self):
        value, product = func.jvp(lambda x, y: (x * y, y.sum()), (X, ONES), (ONES, X))
        self.assertEqual((value[0].tolist(), product[0].tolist()), (X.tolist(), (ONES + X * X).tolist()))
        self.assertEqual(product[1].item(), X.sum().item())
        self.assertFalse(product[0].requires_grad)
        value, product, aux = func.jvp(lambda x: (x**2, x + 1), (X,), (ONES,), has_aux=True)
        self.assertEqual((product.tolist(), aux.tolist()), ((2 * X).tolist(), (X + 1).tolist()))
        value, push = func.linearize(lambda x: x**2, X)
        for tangent in (ONES, X):  # it can be called again
            self.assertEqual(push(tangent).tolist(), (2 * X * tangent).tolist())
        twice = func.jvp(lambda x: func.jvp(lambda y: y**3, (x,), (ONES,))[1], (X,), (ONES,))[1]
        self.assertEqual(twice.tolist(), (6 * X).tolist())
        self.assertEqual(func.jacfwd(lambda x: x**2)(X).tolist(), torch.diag(2 * X).tolist())

    def test_refused(self):
        for error, text, call in (
            (RuntimeError, "Expected primals to be a tuple", lambda: func.jvp(torch.sin, X, ONES)),
            (RuntimeError, "at least one Tensor", lambda: func.jvp(torch.sin, (), ())),
            (RuntimeError, "same python structure", lambda: func.jvp(torch.sin, (X,), [ONES])),
            (RuntimeError, "different size", lambda: func.jvp(torch.sin, (X,), (torch.ones(2),))),
            (RuntimeError, "independent of the inputs", lambda: func.jvp(lambda x: ONES, (X,), (X,), strict=True)),
            (RuntimeError, "return only tensors, got unsupported type <class 'int'>", lambda: func.vjp(lambda x: 3, X)),
            (RuntimeError, "must be floating-point or complex", lambda: func.jacrev(lambda x: x.long())(X)),
            (RuntimeError, "argnum=1, but only 1 positional", lambda: func.jacfwd(torch.sin, 1)(X)),
            (RuntimeError, "must be unique", lambda: func.grad(torch.sum, (0, -1))(X)),
            (RuntimeError, "must be non-empty", lambda: func.grad(torch.sum, ())(X)),
            (RuntimeError, "argnums must be int", lambda: func.grad(torch.sum, "x")(X)),
            (ValueError, "must be Tensor, got <class 'float'>", lambda: func.grad(lambda x: x)(3.0)),
        ):
            with self.assertRaisesRegex(error, text):
                call()

    def test_vmap(self):
        batch = torch.arange(12.0).view(4, 3)
        self.assertEqual(func.vmap(torch.dot)(batch, batch).tolist(), (batch * batch).sum(1).tolist())
        self.assertEqual(func.vmap(lambda a: a * 2, in_dims=1, out_dims=1)(batch).tolist(), (batch * 2).tolist())
        each = func.vmap(func.grad(lambda w, a: (w * a).sum()), in_dims=(None, 0))(torch.ones(3), batch)
        self.assertEqual(each.tolist(), batch.tolist())
        pair = func.vmap(lambda a: {"sum": a.sum(), "self": a})(batch)
        self.assertEqual((pair["sum"].shape, pair["self"].shape), ((4,), (4, 3)))
        with self.assertRaisesRegex(ValueError, "same size in the mapped dimension, got sizes .4, 3."):
            func.vmap(lambda a, b: a)(torch.ones(4), torch.ones(3))
        with self.assertRaisesRegex(RuntimeError, "randomness error mode"):
            func.vmap(lambda a: torch.randn(2))(torch.ones(4))
        same = func.vmap(lambda a: torch.randn(2), randomness="same")(torch.ones(4))
        self.assertEqual(same[0].tolist(), same[3].tolist())
        with self.assertRaisesRegex(ValueError, "must only return Tensors"):
            func.vmap(lambda a: 3)(torch.ones(4))

    def test_modules(self):
        models = [torch.nn.Linear(2, 1) for _ in range(3)]
        own = models[0].weight
        out = func.functional_call(models[0], {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}, torch.ones(1, 2))
        self.assertEqual(out.tolist(), [[2.0]])
        self.assertIs(models[0].weight, own)
        with self.assertRaisesRegex(RuntimeError, "Missing key.s.: 'bias'"):
            func.functional_call(models[0], {"weight": torch.ones(1, 2)}, torch.ones(1, 2), strict=True)
        params, buffers = func.stack_module_state(models)
        self.assertEqual((params["weight"].shape, params["weight"].is_leaf, buffers), ((3, 1, 2), True, {}))
        x = torch.randn(5, 2)
        all_at_once = func.vmap(lambda p: func.functional_call(models[0], p, (x,)))(params)
        for one, model in zip(all_at_once, models):
            self.assertLess((one - model(x)).abs().max().item(), 1e-6)


if __name__ == "__main__":
    unittest.main()
