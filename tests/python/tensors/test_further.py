# SPDX-License-Identifier: Apache-2.0
"""Functions of _further.py against NumPy, on the host and on the simulated accelerator (tests/peers/torch_further.py
compares them with torch)."""
import os
import unittest

os.environ.setdefault("MINDTORCH_NPU", "sim")

import mindtorch_v2 as torch  # noqa: E402
import numpy as np  # noqa: E402

SAMPLE = np.random.default_rng(3).uniform(-1, 1, (3, 8))


class Further(unittest.TestCase):
    def near(self, tensor, array):
        np.testing.assert_allclose(tensor.cpu().numpy(), array, rtol=1e-12, atol=1e-14)

    def each_device(self):
        for device in ("cpu", "npu"):
            with self.subTest(device=device):
                yield torch.tensor(SAMPLE, device=device)

    def test_statistics(self):
        for x in self.each_device():
            self.near(torch.cov(x), np.cov(SAMPLE))
            self.near(torch.cov(x, correction=0, fweights=torch.arange(1, 9, device=x.device)),
                      np.cov(SAMPLE, ddof=0, fweights=np.arange(1, 9)))
            self.near(torch.corrcoef(x), np.corrcoef(SAMPLE))

    def test_histogram(self):
        counts, edges = np.histogram(SAMPLE, 5)
        for x in self.each_device():
            mine = torch.histogram(x, 5)
            self.near(mine.hist, counts)
            self.near(mine.bin_edges, edges)
            self.near(torch.histogramdd(x.t(), 2).hist, np.histogramdd(SAMPLE.T, 2)[0])

    def test_gradient_of_samples(self):
        for x in self.each_device():
            for mine, its in zip(torch.gradient(x, edge_order=2), np.gradient(SAMPLE, edge_order=2)):
                self.near(mine, its)

    def test_grids(self):
        for x in self.each_device():
            self.near(torch.vander(x[0]), np.vander(SAMPLE[0]))
            rows, columns = torch.unravel_index(torch.tensor([0, 9, 23], device=x.device), (3, 8))
            self.assertEqual((rows.tolist(), columns.tolist()), ([0, 1, 2], [0, 1, 7]))
            self.near(torch.logspace(-1, 1, 3, dtype=torch.float64, device=x.device), [0.1, 1, 10])

    def test_resize_keeps_what_was_there(self):
        for x in self.each_device():
            small = x.clone().resize_(2, 2)
            self.near(small, SAMPLE.reshape(-1)[:4].reshape(2, 2))
            self.near(small.resize_(3, 8), SAMPLE)  # the memory is still there
            large = x.clone()
            version = large._version
            self.near(large.resize_(5, 8)[:3], SAMPLE)
            self.assertGreater(large._version, version)

    def test_put(self):
        want = SAMPLE.copy().T
        np.put(want, [1, 5], [7.0, 8.0])
        for x in self.each_device():
            places = torch.tensor([1, 5], device=x.device)
            numbers = torch.tensor([7.0, 8.0], dtype=x.dtype, device=x.device)
            self.near(x.t().clone().put_(places, numbers), want)


if __name__ == "__main__":
    unittest.main()
