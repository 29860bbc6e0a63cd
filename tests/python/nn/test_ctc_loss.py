# SPDX-License-Identifier: Apache-2.0
"""ctc_loss through log_softmax: gradients against differences, the two forms of targets and lengths. Values are in
tests/ops, against all ways one by one."""

import unittest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F

PADDED = torch.tensor([[1, 2, 2], [3, 3, 1], [2, 1, 1]])
JOINED = torch.tensor([1, 2, 2, 3, 3, 2])
INPUTS, LENGTHS = (6, 5, 1), (3, 2, 1)


def scores(seed=0, dtype=torch.float64):
    torch.manual_seed(seed)
    return torch.randn(6, 3, 4, dtype=dtype)


class Gradients(unittest.TestCase):
    def check(self, loss, x, step=1e-6):
        x.requires_grad_()
        loss(x).backward()
        flat = x.detach().reshape(-1)
        for i, got in enumerate(x.grad.reshape(-1).tolist()):
            sides = []
            for sign in (1, -1):
                moved = flat.clone()
                moved[i] += sign * step
                sides.append(loss(moved.reshape(x.shape)).item())
            self.assertAlmostEqual(got, (sides[0] - sides[1]) / (2 * step), 6)

    def test_of_scores(self):
        for reduction in ("mean", "sum"):
            for targets in (PADDED, JOINED):
                self.check(lambda x, t=targets, r=reduction: F.ctc_loss(
                    x.log_softmax(2), t, INPUTS, LENGTHS, reduction=r), scores())

    def test_of_one_sequence(self):
        self.check(lambda x: F.ctc_loss(x.log_softmax(1), PADDED[0], torch.tensor(6), torch.tensor(3)), scores()[:, 0])

    def test_unreachable_classes(self):
        """A class of probability 0 has no gradient, where torch has NaN."""
        x = scores()
        x[:, :, 0] = -float("inf")
        x.requires_grad_()
        F.ctc_loss(x.log_softmax(2), torch.tensor([[1, 2, 3]] * 3), (3, 3, 3), (3, 3, 3)).backward()
        self.assertTrue(torch.isfinite(x.grad).all().item())


class Forms(unittest.TestCase):
    def test_agree(self):
        logs = scores(1).log_softmax(2)
        expected = F.ctc_loss(logs, PADDED, INPUTS, LENGTHS, reduction="none")
        tensors = [torch.tensor(numbers) for numbers in (INPUTS, LENGTHS)]
        for targets in (PADDED, JOINED, PADDED.to(torch.int32)):
            for lengths in ((INPUTS, LENGTHS), tensors, [t.to(torch.int32) for t in tensors]):
                self.assertEqual(F.ctc_loss(logs, targets, *lengths, reduction="none").tolist(), expected.tolist())
        for i in range(3):
            one = F.ctc_loss(logs[:, i], PADDED[i, :LENGTHS[i]], tensors[0][i], tensors[1][i], reduction="none")
            self.assertEqual((one.dim(), one.item()), (0, expected[i].item()))

    def test_infinite_losses(self):
        logs = scores(2).log_softmax(2).requires_grad_()
        loss = F.ctc_loss(logs, PADDED, (2, 5, 3), LENGTHS, reduction="none")
        self.assertEqual(loss[0].item(), float("inf"))
        zeroed = torch.nn.CTCLoss(reduction="none", zero_infinity=True)(logs, PADDED, (2, 5, 3), LENGTHS)
        self.assertEqual(zeroed.tolist(), [0.0, *loss[1:].tolist()])
        zeroed.sum().backward()
        self.assertEqual(logs.grad[:, 0].abs().sum().item(), 0)
        self.assertGreater(logs.grad[:, 1].abs().sum().item(), 0)

    def test_large_batch(self):
        """As many lists as samples are kept for backward; several threads share the batch."""
        torch.manual_seed(0)
        logs = torch.randn(40, 300, 7).log_softmax(2).requires_grad_()
        targets = torch.randint(1, 7, (300, 10))
        loss = F.ctc_loss(logs, targets, [40] * 300, [10] * 300, reduction="none")
        loss.sum().backward()
        few = F.ctc_loss(logs[:, 7:9], targets[7:9], [40] * 2, [10] * 2, reduction="none")
        self.assertEqual(loss[7:9].tolist(), few.tolist())
        self.assertTrue(torch.isfinite(logs.grad).all().item())

    def test_words(self):
        logs = scores().log_softmax(2)
        with self.assertRaisesRegex(IndexError, "Target 4 is out of bounds"):
            F.ctc_loss(logs, PADDED + 1, INPUTS, LENGTHS)
        with self.assertRaisesRegex(RuntimeError, "input_lengths must be integral"):
            F.ctc_loss(logs, PADDED, torch.tensor([6.0, 5, 1]), torch.tensor(LENGTHS))
        with self.assertRaises(TypeError):
            F.ctc_loss(logs, PADDED, INPUTS, torch.tensor(LENGTHS))


if __name__ == "__main__":
    unittest.main()
