# SPDX-License-Identifier: Apache-2.0
"""Numbers at the ends of their types, integers in floating-point functions, empty and 0-d operands, results that
cannot be stored, x.data's own version. The expected answers are torch's
(tests/peers/torch_composed.py compares with it)."""
import math
import unittest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F

INF, NAN = float("inf"), float("nan")


class TestNumbers(unittest.TestCase):
    def near(self, tensor, expected, relative=2e-6):
        values = tensor.flatten().tolist()
        expected = expected if isinstance(expected, list) else [expected]
        self.assertEqual(len(values), len(expected))
        for value, number in zip(values, expected):
            if math.isnan(number):
                self.assertTrue(math.isnan(value), values)
            else:
                self.assertTrue(value == number or abs(value - number) <= relative * abs(number), (values, expected))

    def test_integers_are_computed_in_floating_point(self):
        self.near(torch.hypot(torch.tensor([33, 200], dtype=torch.uint8), torch.tensor([0., 1.])), [33.0, 200.0025])
        self.near(torch.hypot(torch.tensor([100000], dtype=torch.int32), torch.tensor([0.])), 100000.0)
        self.near(torch.logit(torch.tensor([0, 1, 3], dtype=torch.uint8)), [-INF, INF, NAN])
        self.near(torch.copysign(torch.tensor([3]), torch.tensor([-1])), -3.0)
        for call in (torch.hypot, torch.logaddexp):
            with self.assertRaisesRegex(NotImplementedError, "not implemented for 'Long'"):
                call(torch.tensor([3]), torch.tensor([4]))

    def test_nothing_overflows_on_the_way(self):
        large, small = torch.tensor([3e30, 4e30]), torch.tensor([3e-30, 4e-30])
        self.near(torch.hypot(large[:1], large[1:]), 5e30)
        self.near(torch.hypot(torch.tensor([INF, NAN]), torch.tensor([NAN, INF])), [INF, INF])
        for x, size in ((large, 5e30), (small, 5e-30)):
            self.near(torch.norm(x), size)
            self.near(torch.norm(x, 3), size * 91 ** (1 / 3) / 5)
            self.near(torch.dist(x, torch.zeros(2)), size)
            self.near(torch.std(x), size / 5 / math.sqrt(2))
            self.near(torch.std(x.reshape(2, 1), 0), size / 5 / math.sqrt(2))
            self.near(torch.std_mean(x)[0], size / 5 / math.sqrt(2))
        self.near(F.normalize(large.reshape(1, 2)), [0.6, 0.8])
        self.near(F.cosine_similarity(large.reshape(1, 2), large.reshape(1, 2)), 1.0)
        self.near(torch.norm(torch.tensor([1e200], dtype=torch.float64)), 1e200)
        self.near(F.layer_norm(torch.tensor([1e30, 2e30, 3e30]), (3,)), [-1.2247449, 0.0, 1.2247449])
        self.near(F.batch_norm(torch.tensor([[1e30], [2e30], [3e30]]), None, None, training=True),
                  [-1.2247449, 0.0, 1.2247449])
        self.near(torch.sum(torch.tensor([3e38, 3e38, -3e38])), 3e38)

    def test_gradients_of_large_numbers(self):
        for call in (lambda x: torch.norm(x), lambda x: torch.norm(x, 3), lambda x: torch.std(x)):
            slopes = []
            for scale in (1.0, 1e30, 1e-30):
                x = (torch.tensor([1.0, 2.0, 4.0]) * scale).requires_grad_()
                call(x).backward()
                slopes.append(x.grad.tolist())
            for other in slopes[1:]:
                self.near(torch.tensor(other), slopes[0], 1e-5)
        x = torch.tensor([[1e30, 2e30, 4e30]], requires_grad=True)
        F.layer_norm(x, (3,)).backward(torch.tensor([[1.0, 0.0, 0.0]]))
        y = torch.tensor([[1.0, 2.0, 4.0]], requires_grad=True)
        F.layer_norm(y, (3,), eps=0.0).backward(torch.tensor([[1.0, 0.0, 0.0]]))
        self.near(x.grad * 1e30, y.grad.flatten().tolist(), 1e-5)

    def test_tails(self):
        x = torch.tensor([5.0, 10.0, 26.0], dtype=torch.float64)
        self.near(torch.erfc(x), [math.erfc(v) for v in x.tolist()], 1e-14)
        self.near(torch.erfc(torch.tensor([5.0, 9.0])), [math.erfc(5.0), math.erfc(9.0)])
        self.near(torch.sinh(torch.tensor([89.0, 1e-20])), [math.sinh(89.0), 1e-20])
        self.near(torch.cosh(torch.tensor([-89.0])), math.cosh(89.0))
        self.near(torch.logaddexp(torch.tensor([INF, -INF, 1e5]), torch.tensor([INF, -INF, 1e5])),
                  [INF, -INF, 1e5 + math.log(2)])

    def test_no_elements(self):
        self.assertEqual(torch.inner(torch.ones(3, 0), torch.ones(5, 0)).tolist(), [[0.0] * 5] * 3)
        self.assertEqual(torch.tensordot(torch.ones(3, 0), torch.ones(0, 4), 1).shape, (3, 4))
        self.assertEqual(torch.tensordot(torch.ones(0, 2), torch.ones(2, 4), 1).shape, (0, 4))

    def test_other_shapes(self):
        self.assertEqual([x.tolist() for x in torch.nonzero(torch.tensor(5), as_tuple=True)], [[0]])
        self.assertEqual([x.tolist() for x in torch.nonzero(torch.tensor(0), as_tuple=True)], [[]])
        self.assertEqual(torch.diff(torch.tensor([True, True, False])).tolist(), [False, True])
        x = torch.arange(6).reshape(3, 2)
        self.assertEqual(torch.take_along_dim(x, torch.tensor([[1]]), 1).tolist(), [[1], [3], [5]])
        with self.assertRaisesRegex(RuntimeError, "must match the size"):
            torch.take_along_dim(x, torch.zeros(2, 1, dtype=torch.int64), 1)

    def test_results_that_cannot_be_stored(self):
        y = torch.tensor([2.5, 2.5])
        for name in "atan2_ fmod_ hypot_ copysign_ bitwise_and_ clamp_ clamp_min_".split():
            with self.assertRaisesRegex(RuntimeError,
                                         "result type Float can't be cast to the desired output type Long"):
                getattr(torch.tensor([7, 8]), name)(y)
        for name in "sin_ erf_ erfc_ log1p_ expm1_".split():
            with self.assertRaisesRegex(RuntimeError, "result type Float can't be cast"):
                getattr(torch.tensor([7, 8]), name)()
        with self.assertRaisesRegex(RuntimeError, "Bad in-place call: input tensor dtype long int and output tensor"):
            torch.tensor([7, 8]).cumsum_(0, dtype=torch.float32)
        self.assertEqual(torch.tensor([1, 2], dtype=torch.int32).cumsum_(0).tolist(), [1, 3])
        self.assertEqual(torch.tensor([NAN, 1.0]).nan_to_num_().tolist(), [0.0, 1.0])

    def test_data_has_a_version_of_its_own(self):
        w = torch.ones(3, requires_grad=True)
        loss = (w * w).sum()
        w.data.add_(1)
        self.assertEqual((w._version, w.tolist()), (0, [2.0] * 3))
        loss.backward()  # the change was not seen
        self.assertEqual(w.grad.tolist(), [4.0] * 3)
        first, second = torch.ones(3), torch.zeros(3)
        second.add_(1).add_(1)
        first.data = second
        first.add_(1)
        self.assertEqual((first._version, second._version, second.tolist()), (1, 2, [3.0] * 3))
        held = first.data.data
        del first, second
        self.assertEqual(held.tolist(), [3.0] * 3)
        with torch.no_grad():
            view = w.detach()
            view.add_(1)
        self.assertEqual((w._version, view._version), (1, 1))
        x = torch.arange(4.0)
        x.data[1:] = x[:-1]
        self.assertEqual(x.tolist(), [0.0, 0.0, 1.0, 2.0])
        x[torch.tensor([0, 1])] = x.data[2:]
        self.assertEqual(x.tolist(), [1.0, 2.0, 1.0, 2.0])


if __name__ == "__main__":
    unittest.main()
