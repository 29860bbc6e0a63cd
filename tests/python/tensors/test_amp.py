#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch.amp: which types ops compute in, kept casts, GradScaler; tests/peers/dtypes/torch_amp.py compares with torch."""
import copy
import pickle
import threading
import unittest
import warnings

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F


class Autocast(unittest.TestCase):
    def setUp(self):
        self.x = torch.randn(3, 4)
        self.w = torch.randn(4, 4, requires_grad=True)

    def test_products_are_lower_and_losses_float32(self):
        with torch.autocast("cpu"):
            out = self.x @ self.w
            self.assertIs(out.dtype, torch.bfloat16)
            self.assertIs(F.mse_loss(out, self.x).dtype, torch.float32)
            self.assertIs((out + out).dtype, torch.bfloat16)
            self.assertIs((self.x + self.x).dtype, torch.float32)
            self.assertIs((self.x.double() @ self.w.double()).dtype, torch.float64)
            self.assertIs(torch.cat([out, self.x]).dtype, torch.float32)
        self.assertIs((self.x @ self.w).dtype, torch.float32)

    def test_dtype_nesting_and_decorator(self):
        with torch.autocast("cpu", dtype=torch.float16):
            self.assertIs((self.x @ self.w).dtype, torch.float16)
            with torch.autocast("cpu", enabled=False):
                self.assertIs((self.x @ self.w).dtype, torch.float32)
            self.assertIs(torch.get_autocast_dtype("cpu"), torch.float16)
            self.assertTrue(torch.is_autocast_enabled("cpu"))
        self.assertIs(torch.get_autocast_dtype("cpu"), torch.bfloat16)
        self.assertFalse(torch.is_autocast_enabled("cpu"))
        self.assertFalse(torch.is_autocast_enabled("mps"))  # torch knows the type of device

        @torch.autocast("cpu")
        def product(a, b):
            return a @ b

        self.assertIs(product(self.x, self.w).dtype, torch.bfloat16)

    def test_it_ends_with_an_exception(self):
        with self.assertRaises(RuntimeError):
            with torch.autocast("cpu"):
                self.x @ torch.ones(3, 3)
        self.assertFalse(torch.is_autocast_enabled("cpu"))

    def test_of_one_thread(self):
        seen = []
        with torch.autocast("cpu"):
            thread = threading.Thread(target=lambda: seen.append((self.x @ self.w).dtype))
            thread.start()
            thread.join()
        self.assertEqual(seen, [torch.float32])

    def test_a_parameter_is_cast_once(self):
        def casts(cache):
            with torch.profiler.profile() as prof, torch.autocast("cpu", cache_enabled=cache):
                for _ in range(3):
                    torch.mm(self.x, self.w)
            return sum(event.name == "aten::_to_copy" for event in prof.events())

        self.assertEqual((casts(True), casts(False)), (4, 6))

    def test_gradients_reach_parameters_in_their_type(self):
        with torch.autocast("cpu"):
            loss = F.mse_loss(self.x @ self.w @ self.w, self.x)
        loss.backward()
        self.assertIs(self.w.grad.dtype, torch.float32)
        exact = F.mse_loss(self.x @ self.w.detach().requires_grad_() @ self.w.detach(), self.x)
        self.assertLess(abs(exact.item() - loss.item()), 0.05 * abs(exact.item()) + 0.05)

    def test_nothing_is_kept_after_the_region(self):
        before = torch._C._tensors_alive()
        with torch.autocast("cpu"):
            torch.mm(self.x, self.w)
            self.assertGreater(torch._C._tensors_alive(), before)
        self.assertEqual(torch._C._tensors_alive(), before)

    def test_refused(self):
        with self.assertRaisesRegex(ValueError, "Expected `device_type` of type `str`"):
            torch.autocast(3)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            self.assertFalse(torch.autocast("cpu", dtype=torch.float64)._enabled)
        self.assertIn("only supports dtype of torch.bfloat16 and torch.float16", str(told[0].message))
        with self.assertRaisesRegex(TypeError, "float64 is not a type to cast to"):
            torch.set_autocast_dtype("cpu", torch.float64)

    def test_custom_functions(self):
        class Product(torch.autograd.Function):
            @staticmethod
            @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
            def forward(ctx, a, b):
                ctx.save_for_backward(a, b)
                return a @ b

            @staticmethod
            @torch.amp.custom_bwd(device_type="cpu")
            def backward(ctx, grad):
                a, b = ctx.saved_tensors
                return grad @ b.t(), a.t() @ grad

        with torch.autocast("cpu"):
            out = Product.apply(self.x.bfloat16(), self.w)
        self.assertIs(out.dtype, torch.float32)
        out.sum().backward()
        self.assertIs(self.w.grad.dtype, torch.float32)

    def test_older_names(self):
        from mindtorch_v2.cpu.amp import autocast
        from mindtorch_v2.cuda.amp import GradScaler, autocast as cuda_autocast

        with autocast():
            self.assertIs((self.x @ self.w).dtype, torch.bfloat16)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertFalse(GradScaler().is_enabled())
            self.assertFalse(cuda_autocast()._enabled)


class Scaler(unittest.TestCase):
    def test_steps_are_left_out_and_the_scale_adapts(self):
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
        p = torch.nn.Parameter(torch.ones(2))
        optimizer = torch.optim.SGD([p], 0.5)
        seen = []
        for factors in ([1.0, 2.0], [float("inf"), 1.0], [1.0, 1.0], [1.0, 1.0]):
            optimizer.zero_grad()
            scaler.scale((p * torch.tensor(factors)).sum()).backward()
            scaler.step(optimizer)
            with self.assertRaisesRegex(RuntimeError, "already been called"):
                scaler.step(optimizer)
            scaler.update()
            seen.append((p.tolist(), scaler.get_scale()))
        self.assertEqual(seen, [([0.5, 0.0], 4.0), ([0.5, 0.0], 2.0), ([0.0, -0.5], 2.0), ([-0.5, -1.0], 4.0)])

    def test_unscaled_gradients_can_be_seen(self):
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
        p = torch.nn.Parameter(torch.ones(2))
        optimizer = torch.optim.SGD([p], 0.5)
        scaler.scale((p * 3).sum()).backward()
        self.assertEqual(p.grad.tolist(), [24.0, 24.0])
        scaler.unscale_(optimizer)
        self.assertEqual(p.grad.tolist(), [3.0, 3.0])
        with self.assertRaisesRegex(RuntimeError, "unscale_\\(\\) has already been called"):
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        self.assertEqual(p.tolist(), [-0.5, -0.5])

    def test_state(self):
        scaler = torch.amp.GradScaler("cpu", init_scale=16.0)
        scaler.scale(torch.ones(1))
        for other in (copy.deepcopy(scaler), pickle.loads(pickle.dumps(scaler)), torch.amp.GradScaler("cpu")):
            other.load_state_dict(scaler.state_dict())
            self.assertEqual(other.state_dict(), scaler.state_dict())
        self.assertEqual(torch.amp.GradScaler("cpu", enabled=False).state_dict(), {})
        with self.assertRaisesRegex(AssertionError, "Attempted update but _scale is None"):
            torch.amp.GradScaler("cpu").update()


if __name__ == "__main__":
    unittest.main()
