# SPDX-License-Identifier: Apache-2.0
"""Training on the accelerator: an MLP, a CNN and a GPT with the losses of the CPU, bit for bit.

The simulated device runs the host's kernels, sums have one order, and random numbers depend on seed and place
alone, so nothing but the order of work could make a difference.
"""
import os
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support_npu import same, sim  # noqa: E402
import mindtorch_v2 as torch  # noqa: E402
from mindtorch_v2 import nn  # noqa: E402
from mindtorch_v2.nn import functional as F  # noqa: E402
from mindtorch_v2.utils import data  # noqa: E402

npu = torch.npu
WORDS, LENGTH, WIDTH, HEADS = 17, 8, 16, 2


def mlp():
    return nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 16), nn.Tanh(),
                         nn.Linear(16, 5))


def cnn():
    return nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(6, 8, 3, stride=2, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
                         nn.Linear(32, 5))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(0.1))

    def forward(self, x):
        q, k, v = (t.view(*x.shape[:2], HEADS, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).split(WIDTH, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)).flatten(0, 1)


def adamw(parameters):
    return torch.optim.AdamW(parameters, 0.003)


def momentum(parameters):
    return torch.optim.SGD(parameters, 0.05, momentum=0.9)


WORK = {"mlp": (mlp, (16, 12), 5, momentum), "cnn": (cnn, (4, 3, 12, 12), 5, adamw), "gpt": (Gpt, None, WORDS, adamw)}


class Training:
    """A model with its data and optimizer on a device; on every device the same numbers."""

    def __init__(self, name, device):
        make, shape, classes, optimizer = WORK[name]
        torch.manual_seed(11)
        self.model = make()
        if shape is None:
            text = torch.randint(0, WORDS, (3, LENGTH + 1))
            self.x, self.y = text[:, :-1], text[:, 1:].flatten()
        else:
            self.x, self.y = torch.randn(shape), torch.randint(0, classes, shape[:1])
        self.model.to(device)
        self.x, self.y = self.x.to(device), self.y.to(device)
        self.optimizer = optimizer(self.model.parameters())
        torch.manual_seed(5)

    def step(self):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(self.x), self.y)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def losses(self, count=6):
        return [loss.item() for loss in [self.step() for _ in range(count)]]

    def same_as(self, other):
        return all(same(a, b) for a, b in zip(self.model.state_dict().values(), other.model.state_dict().values()))


class Models(unittest.TestCase):
    def test_the_losses_of_the_host(self):
        for name in WORK:
            here, there, second = (Training(name, device) for device in ("cpu", "npu", "npu:1"))
            torch.manual_seed(5)
            wanted = here.losses()
            self.assertLess(wanted[-1], wanted[0], name)
            for training in (there, second):
                torch.manual_seed(5)
                self.assertEqual(training.losses(), wanted, name)
                self.assertTrue(training.same_as(here), name)

    def test_a_step_waits_for_nothing(self):
        for name in WORK:
            training = Training(name, "npu")
            training.losses(2)
            npu.synchronize()
            sim.reset_counts()
            with sim.held():
                loss = training.step()
                counts = sim.counts()
                self.assertGreater(counts["waiting"], 20, name)
                self.assertEqual((counts["gave_up"], counts["done"]), (0, 0), name)
            self.assertGreater(loss.item(), 0.0)

    def test_on_a_stream(self):
        for name in WORK:
            here, there = Training(name, "cpu"), Training(name, "npu")
            torch.manual_seed(5)
            wanted = here.losses(4)
            s = npu.Stream()
            s.wait_stream(npu.current_stream())
            torch.manual_seed(5)
            with npu.stream(s):
                losses = there.losses(4)
            npu.current_stream().wait_stream(s)
            self.assertEqual(losses, wanted, name)
            self.assertTrue(there.same_as(here), name)

    def test_two_streams(self):
        """Halves of a model on two streams, forward and backward; the first is held until all is queued."""
        ends = []
        for device in ("cpu", "npu"):
            torch.manual_seed(3)
            first, second = nn.Linear(8, 16).to(device), nn.Linear(16, 4).to(device)
            x = torch.randn(10, 8).to(device)
            optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], 0.1)
            a, b = (npu.Stream(), npu.Stream()) if device == "npu" else (None, None)
            npu.synchronize()
            for _ in range(3):
                optimizer.zero_grad()
                if device == "npu":
                    sim.hold(2**20, a)
                with npu.stream(a):
                    hidden = first(x).tanh()
                if device == "npu":
                    b.wait_stream(a)
                with npu.stream(b):
                    loss = second(hidden).square().sum()
                if device == "npu":
                    npu.current_stream().wait_stream(b)
                loss.backward()
                optimizer.step()
                if device == "npu":
                    self.assertGreater(sim.counts(a)["waiting"], 0)
                    sim.release(a)
                    a.wait_stream(npu.current_stream())  # the parameters of the next step
                    b.wait_stream(npu.current_stream())
                    npu.synchronize()
                    self.assertEqual(sim.counts(a)["gave_up"], 0)
            ends.append([first.weight, first.bias, second.weight, second.bias, loss])
        for here, there in zip(*ends):
            self.assertTrue(same(here, there))

    def test_threads(self):
        """Four threads, each with a model, a device and a stream of its own."""
        here = Training("cnn", "cpu")
        wanted = here.losses()
        trainings = [Training("cnn", f"npu:{i % 2}") for i in range(4)]
        results = [None] * 4

        def work(i):
            npu.set_device(i % 2)
            with npu.stream(npu.Stream()) if i > 1 else npu.device(None):
                npu.current_stream().wait_stream(npu.default_stream())
                results[i] = trainings[i].losses()
                npu.current_stream().synchronize()

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, [wanted] * 4)
        self.assertTrue(all(training.same_as(here) for training in trainings))
        self.assertEqual(npu.current_device(), 0)

    def test_checkpoint(self):
        """Half the steps there, the rest here, through a state_dict."""
        whole, half, rest = Training("gpt", "cpu"), Training("gpt", "npu"), Training("gpt", "cpu")
        torch.manual_seed(5)
        wanted = whole.losses(4)
        torch.manual_seed(5)
        losses = half.losses(2)
        rest.model.load_state_dict(half.model.state_dict())
        rest.optimizer.load_state_dict(half.optimizer.state_dict())
        self.assertEqual(losses + rest.losses(2), wanted)
        self.assertTrue(rest.same_as(whole))


class Loading(unittest.TestCase):
    def test_pinned_batches(self):
        """Batches copied without waiting on a stream of their own, ahead of the steps."""
        torch.manual_seed(1)
        dataset = data.TensorDataset(torch.randn(40, 12), torch.randint(0, 5, (40,)))
        losses = []
        for device in ("cpu", "npu"):
            training = Training("mlp", device)
            torch.manual_seed(9)
            loader = data.DataLoader(dataset, batch_size=8, shuffle=True, pin_memory=device == "npu")
            copies = npu.Stream()
            seen = []
            for x, y in loader:
                if device == "npu":
                    self.assertTrue(x.is_pinned() and y.is_pinned())
                    with npu.stream(copies):
                        x, y = x.to("npu", non_blocking=True), y.to("npu", non_blocking=True)
                    npu.current_stream().wait_stream(copies)
                    x.record_stream(npu.current_stream())
                    y.record_stream(npu.current_stream())
                training.x, training.y = x, y
                seen.append(training.step())
            losses.append([loss.item() for loss in seen])
        self.assertEqual(len(losses[0]), 5)
        self.assertEqual(*losses)


if __name__ == "__main__":
    unittest.main()
