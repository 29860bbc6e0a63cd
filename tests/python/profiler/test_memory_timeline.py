# SPDX-License-Identifier: Apache-2.0
"""What the memory timeline says of models with few and with many parameter tensors, and long lists of inputs.

The bytes are known here; tests/peers/torch_memory.py compares them with torch's own.
"""
import gzip
import json
import os
import tempfile
import unittest
import warnings

import mindtorch_v2 as torch

nn, F = torch.nn, torch.nn.functional
CATEGORIES = ["parameter", "optimizer_state", "input", "temporary", "activation", "gradient", "autograd_detail",
              "unknown"]
WIDTH, BATCH = 24, 16


def profiled(body):
    with torch.profiler.profile(record_shapes=True, profile_memory=True, with_stack=True) as p:
        body()
    return p


def timeline(p):
    """The most of each category, and what is left at the end."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = os.path.join(folder, "x.raw.json.gz")
        p.export_memory_timeline(path, device="cpu")
        with gzip.open(path) as file:
            raw = json.load(file)
        path = os.path.join(folder, "x.json")
        p.export_memory_timeline(path, device="cpu")
        with open(path, encoding="utf-8") as file:
            plot = json.load(file)
    now, most = [0] * 8, [0] * 8
    for _, action, size, category in raw:
        now[category] += size
        if action != 3 or size > 0:
            most = [max(a, b) for a, b in zip(most, now)]
    assert [max(row[i + 1] for row in plot[1]) for i in range(8)] == most, "the JSON has other peaks"
    return dict(zip(CATEGORIES, most)), dict(zip(CATEGORIES, now))


class Training:
    def __init__(self, layers, optimizer=torch.optim.AdamW, **settings):
        self.model = nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(layers)])
        self.optimizer = optimizer(self.model.parameters(), **settings)
        self.x, self.y = torch.randn(BATCH, WIDTH), torch.randn(BATCH, WIDTH)
        self.bytes = sum(p.numel() * 4 for p in self.model.parameters())
        self.tensors = 2 * layers

    def step(self):
        loss = F.mse_loss(self.model(self.x), self.y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


class Categories(unittest.TestCase):
    def check(self, training, p, state):
        most, end = timeline(p)
        known = {"parameter": training.bytes, "optimizer_state": state, "input": 2 * BATCH * WIDTH * 4,
                 "gradient": training.bytes}
        self.assertEqual({name: most[name] for name in known}, known)
        self.assertEqual(end, {**dict.fromkeys(CATEGORIES, 0), **known})
        self.assertEqual(most["unknown"], 0)
        self.assertEqual(p.health().texts_cut, 0)

    def test_a_window_in_which_the_state_is_made(self):
        for layers in (1, 2, 5, 20, 100):
            with self.subTest(tensors=2 * layers):
                t = Training(layers)
                self.check(t, profiled(t.step), 2 * t.bytes + 4 * t.tensors)

    def test_a_state_and_gradients_from_before_the_window(self):
        for optimizer, settings, copies, steps in ((torch.optim.AdamW, {}, 2, 1),
                                                   (torch.optim.Adam, {"amsgrad": True}, 3, 1),
                                                   (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}, 1, 0)):
            for layers in (1, 2, 5, 20, 100):
                with self.subTest(optimizer=optimizer.__name__, tensors=2 * layers):
                    t = Training(layers, optimizer, **settings)
                    t.step()
                    t.step()
                    self.check(t, profiled(t.step), copies * t.bytes + steps * 4 * t.tensors)

    def test_a_window_without_an_optimizer(self):
        t = Training(20)
        p = profiled(lambda: F.mse_loss(t.model(t.x), t.y).backward())
        most, end = timeline(p)
        self.assertEqual((most["parameter"], end["gradient"], most["input"], most["optimizer_state"]),
                         (t.bytes, t.bytes, 2 * BATCH * WIDTH * 4, 0))

    def test_frozen_parameters_and_inputs_that_need_gradients(self):
        t = Training(3)
        for parameter in t.model[0].parameters():
            parameter.requires_grad_(False)
        t.x.requires_grad_()
        p = profiled(lambda: F.mse_loss(t.model(t.x), t.y).backward())
        most, end = timeline(p)
        frozen = (WIDTH + 1) * WIDTH * 4
        self.assertEqual((most["parameter"], most["input"], end["gradient"]),
                         (t.bytes, 2 * BATCH * WIDTH * 4, t.bytes - frozen + BATCH * WIDTH * 4))

    def test_gradients_that_nothing_touches_in_the_window(self):
        t = Training(5)
        t.step()
        with torch.no_grad():
            most, _ = timeline(profiled(lambda: t.model(t.x)))
        self.assertEqual((most["parameter"], most["gradient"]), (t.bytes, t.bytes))


class LongLists(unittest.TestCase):
    """Lists of any length are kept; where an ordinary call's room ends, nothing is lost."""

    def event(self, p, name):
        return [e for e in p.events() if e.name == name][0]

    def test_tensors(self):
        for count in (1, 30, 31, 60, 100, 1000, 5000):
            many = [torch.ones(2, 3) for _ in range(count)]
            p = profiled(lambda: torch.stack(many))
            self.assertEqual(p.health().texts_cut, 0)
            event = self.event(p, "aten::stack")
            self.assertEqual(len(event.structured_input_shapes[0]), count if count <= 30 else 0)  # as torch's
            self.assertEqual(timeline(p)[0]["unknown"], (count + count) * 24)

    def test_a_list_that_is_too_long_is_counted(self):
        many = [torch.ones(1)] * 40000
        p = profiled(lambda: torch.stack(many))
        self.assertEqual(p.health().texts_cut, 2)  # its own and that of aten::cat inside
        self.assertEqual(len([e for e in p.events() if e.name == "aten::stack"]), 1)

    def test_numbers(self):
        for count, cut in ((63, False), (64, False), (252, False), (253, True)):
            x = torch.ones(count)
            p = profiled(lambda: torch.split(x, [1] * count))
            self.assertEqual(p.health().texts_cut > 0, cut, count)  # and the dimension: one more

    def test_gradients_of_many_results(self):
        for count in (2, 100, 1000):
            x = torch.ones(count, 3, requires_grad=True)

            def body():
                sum(torch.unbind(x)).sum().backward()

            p = profiled(body)
            self.assertEqual(p.health().texts_cut, 0)
            event = self.event(p, "UnbindBackward0")
            self.assertEqual(event.input_shapes, [[3]] * count)

    def test_arguments_of_a_custom_function(self):
        class First(torch.autograd.Function):
            @staticmethod
            def forward(ctx, *tensors):
                return tensors[0] * 2

            @staticmethod
            def backward(ctx, grad):
                return (grad * 2,) + (None,) * 49

        many = [torch.ones(2, requires_grad=i == 0) for i in range(50)]
        p = profiled(lambda: First.apply(*many))
        self.assertEqual(self.event(p, "First").input_shapes, [[2]] * 50)
        self.assertEqual(p.health().texts_cut, 0)


if __name__ == "__main__":
    unittest.main()
