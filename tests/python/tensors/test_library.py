# SPDX-License-Identifier: Apache-2.0
"""torch.library: schemas, functions by kind of device, gradients. Values and errors are those that torch gave."""
import unittest

import mindtorch_v2 as torch
from mindtorch_v2 import library


class Libraries(unittest.TestCase):
    def setUp(self):
        self.lib = library.Library("t_lib", "FRAGMENT")
        self.addCleanup(self.lib._destroy)
        self.x = torch.ones(2)

    def test_define_and_impl(self):
        self.assertEqual(self.lib.define("scale(Tensor x, float f=2.0, *, bool flip=False) -> Tensor"), "scale")
        with self.assertRaisesRegex(NotImplementedError, "Could not run 't_lib::scale' with arguments from the 'CPU'"):
            torch.ops.t_lib.scale(self.x)
        self.lib.impl("scale", lambda x, f=2.0, *, flip=False: x * f, "CPU")
        op = torch.ops.t_lib.scale
        self.assertEqual(op(self.x).tolist(), [2, 2])
        self.assertEqual(op.default(self.x, f=3.0, flip=True).tolist(), [3, 3])
        for call, error in ((lambda: op("a"), "Expected a value of type 'Tensor' for argument 'x'"),
                            (op, "is missing value for argument 'x'"), (lambda: op(self.x, 1.0, 2), "takes 2 positional"),
                            (lambda: op(self.x, by=1), "Unknown keyword argument 'by'"),
                            (lambda: self.lib.define("scale(Tensor x) -> Tensor"), "same name and overload name")):
            with self.assertRaisesRegex(RuntimeError, error):
                call()
        self.assertEqual(op.overloads(), ["default"])
        self.lib._destroy()
        self.assertFalse(hasattr(torch.ops.t_lib, "scale"))

    def test_overloads(self):
        for name, function in (("Scalar", lambda x, s: x + s), ("Tensor", lambda x, s: x - s)):
            self.lib.define(f"ov.{name}(Tensor x, {'float' if name == 'Scalar' else 'Tensor'} s) -> Tensor")
            self.lib.impl(f"ov.{name}", function, "CPU")
        op = torch.ops.t_lib.ov
        self.assertEqual([op(self.x, 1.0).tolist(), op(self.x, self.x).tolist(), op.Scalar(self.x, 2.0).tolist()],
                         [[2, 2], [0, 0], [3, 3]])

    def test_which_function_is_called(self):
        self.lib.define("which(Tensor x) -> Tensor")
        self.lib.impl("which", lambda x: "implicit")
        self.assertEqual(torch.ops.t_lib.which(self.x), "implicit")
        self.lib.impl("which", lambda x: "cpu", "CPU")
        self.lib.impl("which", lambda x: "meta", "Meta")
        self.assertEqual(torch.ops.t_lib.which(self.x), "cpu")
        self.assertEqual(torch.ops.t_lib.which(torch.empty(2, device="meta")), "meta")
        self.lib.impl("which", lambda x: "autograd", "AutogradCPU")
        self.assertEqual(torch.ops.t_lib.which(self.x), "autograd")

    def test_gradients(self):
        library.define("t_lib2::three", "(Tensor x, int n=1) -> Tensor")

        @library.impl("t_lib2::three", "cpu")
        def three(x, n=1):
            return x.detach() * 3 * n

        library.register_autograd("t_lib2::three", lambda ctx, g: (g * 3 * ctx.n, None),
                                  setup_context=lambda ctx, inputs, output: setattr(ctx, "n", inputs[1]))
        x = torch.ones(2, requires_grad=True)
        for call in (lambda: torch.ops.t_lib2.three(x, 2), lambda: torch.ops.t_lib2.three(x, n=2)):
            self.assertEqual(torch.autograd.grad(call().sum(), x)[0].tolist(), [6, 6])

    def test_kinds(self):
        with self.assertRaisesRegex(ValueError, "Unsupported kind: X"):
            library.Library("t_lib3", "X")
        first = library.Library("t_lib3", "DEF")
        with self.assertRaisesRegex(RuntimeError, "Only a single TORCH_LIBRARY"):
            library.Library("t_lib3", "DEF")
        first._destroy()
        with library._scoped_library("t_lib3", "DEF") as scoped:
            scoped.define("q(Tensor x) -> Tensor")
            scoped.impl("q", lambda x: x + 7, "CPU")
            self.assertEqual(torch.ops.t_lib3.q(self.x).tolist(), [8, 8])
        self.assertFalse(hasattr(torch.ops.t_lib3, "q"))
        with self.assertRaisesRegex(NotImplementedError, "aten"):
            library.Library("aten", "IMPL").impl("add", lambda x, y: x)

    def test_triton_op_and_custom_op_by_device(self):
        made = library.triton_op("t_lib4::f", lambda x: x * 5, mutates_args=())
        self.assertEqual([made(self.x).tolist(), torch.ops.t_lib4.f(self.x).tolist()], [[5, 5]] * 2)
        made.register_kernel("cpu")(lambda x: x * 6)
        self.assertEqual(made(self.x).tolist(), [6, 6])


if __name__ == "__main__":
    unittest.main()
