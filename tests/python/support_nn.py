# SPDX-License-Identifier: Apache-2.0
"""Comparing layers with formulas in NumPy: values, and gradients by central differences of the formula."""
import unittest

try:
    import numpy as np
except ImportError:
    np = None

import mindtorch_v2 as torch

needs_numpy = unittest.skipIf(np is None,
                              "NumPy is not installed: its formulas are what layers are compared with")


def made(values, dtype=None, grad=True):
    """A float64 leaf of an array (another type: as it is)."""
    values = np.ascontiguousarray(values)
    tensor = torch.tensor(values.tolist(), dtype=dtype or torch.float64).reshape(tuple(values.shape))
    return tensor.requires_grad_() if grad and tensor.is_floating_point() else tensor


def array(tensor):
    """A tensor's elements."""
    return np.array(tensor.detach().tolist(), dtype="float64").reshape(tuple(tensor.shape))


class Compared(unittest.TestCase):
    """A test case with random arrays that are the same in every run."""

    def setUp(self):
        if np is None:
            self.skipTest("NumPy is not installed")
        self.rng = np.random.RandomState(3)
        torch.manual_seed(3)

    def randn(self, *shape):
        return self.rng.randn(*shape)

    def close(self, tensor, expected, tolerance=1e-8, what=""):
        expected = np.asarray(expected, dtype="float64")
        self.assertEqual(tuple(tensor.shape), expected.shape, what)
        found = array(tensor)
        self.assertTrue(np.allclose(found, expected, tolerance, tolerance, equal_nan=True),
                        f"{what} differs by {np.abs(found - expected).max()}:\n{found}\nexpected\n{expected}")

    def compare(self, ours, formula, *arrays, differentiate=True, fixed=()):
        """ours(*tensors) and formula(*arrays) have the same value, and the same derivative by each array."""
        tensors = [made(a) for a in arrays]
        output = ours(*tensors, *[made(a, grad=False) for a in fixed])
        expected = np.asarray(formula(*arrays, *fixed), dtype="float64")
        self.close(output, expected, what="the value")
        if not differentiate:
            return output
        weights = self.rng.randn(*expected.shape)
        (output * made(weights, grad=False)).sum().backward()
        for place, (tensor, given) in enumerate(zip(tensors, arrays)):
            slope = np.zeros(given.shape)
            for index in np.ndindex(*given.shape):
                both = []
                for step in (1e-5, -1e-5):
                    moved = [np.array(a, dtype="float64") for a in arrays]
                    moved[place][index] += step
                    both.append((np.asarray(formula(*moved, *fixed)) * weights).sum())
                slope[index] = (both[0] - both[1]) / 2e-5
            self.assertIsNotNone(tensor.grad, f"argument {place} has no gradient")
            self.close(tensor.grad, slope, 1e-5, f"the derivative by argument {place}")
        return output


def module_of(module, **values):
    """The module in float64, its parameters set to these arrays."""
    module = module.double()
    with torch.no_grad():
        for name, value in values.items():
            module.get_parameter(name).copy_(made(value, grad=False))
    return module
