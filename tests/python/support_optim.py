# SPDX-License-Identifier: Apache-2.0
"""What the tests of optimizers and schedulers run, in our library and, to record goldens, in torch.

    support_optim.py FILE     (with torch installed) writes tests/golden/python/optim.json again
"""
import json
import math
import sys

# name: (class, options)
OPTIMIZERS = {
    "sgd": ("SGD", dict(lr=0.1)),
    "sgd decay": ("SGD", dict(lr=0.1, weight_decay=0.1)),
    "sgd momentum": ("SGD", dict(lr=0.1, momentum=0.9, dampening=0.2)),
    "sgd nesterov": ("SGD", dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.05)),
    "sgd maximize": ("SGD", dict(lr=0.1, momentum=0.5, maximize=True)),
    "adam": ("Adam", dict(lr=0.05)),
    "adam amsgrad": ("Adam", dict(lr=0.05, betas=(0.8, 0.9), eps=1e-6, weight_decay=0.1, amsgrad=True)),
    "adam decoupled": ("Adam", dict(lr=0.05, weight_decay=0.1, decoupled_weight_decay=True)),
    "adam maximize": ("Adam", dict(lr=0.05, maximize=True)),
    "adamw": ("AdamW", dict(lr=0.05, weight_decay=0.3)),
    "adamw amsgrad": ("AdamW", dict(lr=0.05, amsgrad=True, maximize=True)),
    "rmsprop": ("RMSprop", dict(lr=0.02)),
    "rmsprop centered": ("RMSprop", dict(lr=0.02, alpha=0.9, centered=True, momentum=0.6, weight_decay=0.1)),
    "rmsprop maximize": ("RMSprop", dict(lr=0.02, momentum=0.3, maximize=True)),
    "adagrad": ("Adagrad", dict(lr=0.1)),
    "adagrad decay": ("Adagrad", dict(lr=0.1, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.5)),
    "adagrad maximize": ("Adagrad", dict(lr=0.1, maximize=True)),
}

STEPS = 6


def gradient(step, i):
    return math.sin(1.3 * step + 0.7 * i) + 0.1 * i


def run_optimizer(torch, name):
    """Parameters and state after some steps; the second parameter has no gradient in some of them."""
    cls, options = OPTIMIZERS[name]
    a = torch.tensor([1.0, -2.0, 0.5], requires_grad=True)
    b = torch.tensor([[0.3, 0.0], [-1.5, 2.0]], requires_grad=True)
    groups = [{"params": [a]}, {"params": [b], "lr": options["lr"] / 2}]
    optimizer = getattr(torch.optim, cls)(groups, **options)
    for step in range(STEPS):
        optimizer.zero_grad()
        a.grad = torch.tensor([gradient(step, i) for i in range(3)])
        if step % 3 != 1:
            b.grad = torch.tensor([[gradient(step, 3), gradient(step, 4)], [gradient(step, 5), 0.0]])
        optimizer.step()
    state = optimizer.state_dict()["state"]
    return {
        "a": a.tolist(),
        "b": b.tolist(),
        "state": {str(i): {k: v.tolist() for k, v in s.items()} for i, s in state.items()},
    }


SCHEDULERS = {
    "step": lambda L, o: L.StepLR(o, 7, 0.5),
    "multistep": lambda L, o: L.MultiStepLR(o, [3, 3, 10, 50], 0.3),
    "constant": lambda L, o: L.ConstantLR(o, 0.4, 8),
    "linear": lambda L, o: L.LinearLR(o, 0.2, 0.9, 30),
    "linear down": lambda L, o: L.LinearLR(o, 1.0, 0.0, 30),
    "exponential": lambda L, o: L.ExponentialLR(o, 0.97),
    "cosine": lambda L, o: L.CosineAnnealingLR(o, 13, 0.01),
    "cosine long": lambda L, o: L.CosineAnnealingLR(o, 100),
    "warm restarts": lambda L, o: L.CosineAnnealingWarmRestarts(o, 5, 2, 0.001),
    "warm restarts even": lambda L, o: L.CosineAnnealingWarmRestarts(o, 9),
    "lambda": lambda L, o: L.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (e + 1)]),
    "multiplicative": lambda L, o: L.MultiplicativeLR(o, lambda e: 0.99),
    "polynomial": lambda L, o: L.PolynomialLR(o, 40, 2.0),
    "one cycle": lambda L, o: L.OneCycleLR(o, [0.5, 0.7], total_steps=101),
    "one cycle three": lambda L, o: L.OneCycleLR(
        o, 0.5, epochs=10, steps_per_epoch=11, three_phase=True, anneal_strategy="linear"
    ),
    "cyclic": lambda L, o: L.CyclicLR(o, 0.01, 0.3, 7, 11),
    "cyclic 2": lambda L, o: L.CyclicLR(o, [0.01, 0.02], 0.3, 7, mode="triangular2"),
    "cyclic exp": lambda L, o: L.CyclicLR(o, 0.01, 0.3, 7, mode="exp_range", gamma=0.98),
    "cyclic fn": lambda L, o: L.CyclicLR(
        o, 0.01, 0.3, 7, scale_fn=lambda x: 1 / (1 + x), scale_mode="iterations"
    ),
    "sequential": lambda L, o: L.SequentialLR(
        o, [L.ConstantLR(o, 0.1, 20), L.ExponentialLR(o, 0.9), L.CosineAnnealingLR(o, 20)], [20, 40]
    ),
    "sequential warm": lambda L, o: L.SequentialLR(
        o, [L.LinearLR(o, 0.1, 1.0, 10), L.CosineAnnealingWarmRestarts(o, 7)], [10]
    ),
    "sequential nested": lambda L, o: L.SequentialLR(
        o,
        [L.SequentialLR(o, [L.ConstantLR(o, 0.5, 3), L.ExponentialLR(o, 0.9)], [5]), L.StepLR(o, 5)],
        [25],
    ),
    "chained": lambda L, o: L.ChainedScheduler(
        [L.LinearLR(o, 0.1, 1.0, 20), L.CosineAnnealingLR(o, 30, 0.001), L.StepLR(o, 9, 0.7)]
    ),
}

EPOCHS = 100


def run_scheduler(torch, name, optimizer="SGD", shown=None):
    """[[rates of the groups, momentum], ...] for the first EPOCHS epochs."""
    options = {"momentum": 0.9} if optimizer == "SGD" else {}
    groups = [{"params": [torch.zeros(1)], "lr": 0.1 * (i + 1)} for i in range(2)]
    made = getattr(torch.optim, optimizer)(groups, lr=0.1, **options)
    scheduler = SCHEDULERS[name](torch.optim.lr_scheduler, made)
    seen = []
    for _ in range(EPOCHS + 1):
        first = made.param_groups[0]
        momentum = first["momentum"] if "momentum" in first else first["betas"][0]
        seen.append([*(group["lr"] for group in made.param_groups), momentum])
        made.step()
        scheduler.step()
    return seen, scheduler


def shown_epochs():
    """Those that a golden keeps."""
    return [*range(14), *range(14, EPOCHS + 1, 9)]


def main():
    import warnings

    import torch

    warnings.simplefilter("ignore")
    goldens = {
        "optimizers": {name: run_optimizer(torch, name) for name in OPTIMIZERS},
        "schedulers": {},
    }
    for name in SCHEDULERS:
        seen, _ = run_scheduler(torch, name)
        goldens["schedulers"][name] = [seen[i] for i in shown_epochs()]
    with open(sys.argv[1], "w") as out:
        json.dump(goldens, out, separators=(",", ":"))
        out.write("\n")


if __name__ == "__main__":
    main()
