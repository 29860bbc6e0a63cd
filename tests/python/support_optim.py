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
    "adadelta": ("Adadelta", dict(lr=1.0)),
    "adadelta all": ("Adadelta", dict(lr=0.5, rho=0.7, eps=1e-3, weight_decay=0.1, maximize=True)),
    "adamax": ("Adamax", dict(lr=0.05)),
    "adamax all": ("Adamax", dict(lr=0.05, betas=(0.7, 0.8), eps=0.1, weight_decay=0.1, maximize=True)),
    "nadam": ("NAdam", dict(lr=0.05)),
    "nadam decoupled": ("NAdam", dict(lr=0.05, weight_decay=0.3, decoupled_weight_decay=True)),
    "nadam all": ("NAdam", dict(lr=0.05, betas=(0.7, 0.8), eps=0.1, weight_decay=0.1, momentum_decay=0.2,
                                maximize=True)),
    "radam": ("RAdam", dict(lr=0.05)),
    "radam decoupled": ("RAdam", dict(lr=0.05, betas=(0.5, 0.9), weight_decay=0.3, decoupled_weight_decay=True)),
    "radam all": ("RAdam", dict(lr=0.05, betas=(0.7, 0.8), eps=0.1, weight_decay=0.1, maximize=True)),
    "asgd": ("ASGD", dict(lr=0.1)),
    "asgd all": ("ASGD", dict(lr=0.1, lambd=0.1, alpha=0.5, t0=2.0, weight_decay=0.1, maximize=True)),
    "rprop": ("Rprop", dict(lr=0.05)),
    "rprop all": ("Rprop", dict(lr=0.3, etas=(0.3, 1.7), step_sizes=(0.02, 0.4), maximize=True)),
}

LONG = 20  # steps in float64, of which every number is compared

# name: options; the loss is that of two parameters, see run_lbfgs()
LBFGS = {
    "lbfgs": dict(lr=0.3, max_iter=4),
    "lbfgs short memory": dict(lr=0.2, max_iter=2, history_size=3),
    "lbfgs wolfe": dict(line_search_fn="strong_wolfe", max_iter=3),
    "lbfgs wolfe lr": dict(lr=0.01, line_search_fn="strong_wolfe", max_iter=5, max_eval=7),
    "lbfgs wolfe far": dict(lr=50, line_search_fn="strong_wolfe", max_iter=3, max_eval=20, tolerance_change=1e-5),
    "lbfgs tolerances": dict(lr=0.5, max_iter=50, tolerance_grad=1e-2, tolerance_change=1e-3),
}

STEPS = 6


def gradient(step, i):
    return math.sin(1.3 * step + 0.7 * i) + 0.1 * i


def run_optimizer(torch, name, steps=STEPS, dtype="float32", **more):
    """Parameters and state after some steps; the second parameter has no gradient in some of them."""
    cls, options = OPTIMIZERS[name]
    options = {**options, **more}
    kind = getattr(torch, dtype)
    a = torch.tensor([1.0, -2.0, 0.5], requires_grad=True, dtype=kind)
    b = torch.tensor([[0.3, 0.0], [-1.5, 2.0]], requires_grad=True, dtype=kind)
    groups = [{"params": [a]}, {"params": [b], "lr": options["lr"] / 2}]
    optimizer = getattr(torch.optim, cls)(groups, **options)
    for step in range(steps):
        optimizer.zero_grad()
        a.grad = torch.tensor([gradient(step, i) for i in range(3)], dtype=kind)
        if step % 3 != 1:
            rows = [[gradient(step, 3), gradient(step, 4)], [gradient(step, 5), 0.0]]
            b.grad = torch.tensor(rows, dtype=kind)
        optimizer.step()
    state = optimizer.state_dict()["state"]
    return {
        "a": a.tolist(),
        "b": b.tolist(),
        "state": {str(i): {k: v.tolist() for k, v in s.items()} for i, s in state.items()},
    }


def run_lbfgs(torch, name, steps=LONG):
    """Parameters, the losses and the counts of L-BFGS on a banana-shaped loss."""
    a = torch.tensor([-1.2, 1.0], dtype=torch.float64, requires_grad=True)
    b = torch.tensor([[0.5], [2.0]], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([a, b], **LBFGS[name])

    def closure():
        optimizer.zero_grad()
        loss = 10 * (a[1] - a[0] ** 2) ** 2 + (1 - a[0]) ** 2 + (b**4).sum() + 0.1 * (a * b[:, 0]).sum()
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(steps)]
    state = optimizer.state_dict()["state"][0]
    return {"a": a.tolist(), "b": b.tolist(), "losses": losses, "evals": state["func_evals"],
            "iterations": state["n_iter"], "kept": len(state["old_dirs"])}


# Optimizers that are not alike for all shapes: name: (class, options, shapes)
MATRICES = ((4, 6), (6, 4), (5, 5))
FACTORED = {
    "muon": ("Muon", dict(lr=0.1), MATRICES),
    "muon plain": ("Muon", dict(lr=0.1, nesterov=False, weight_decay=0.0), MATRICES),
    "muon rms": ("Muon", dict(lr=0.1, adjust_lr_fn="match_rms_adamw"), MATRICES),
    "adafactor": ("Adafactor", {}, (*MATRICES, (7,), (), (2, 3, 4))),
    "adafactor all": ("Adafactor", dict(lr=0.5, beta2_decay=-0.5, eps=(1e-4, 1e-2), d=2.0, weight_decay=0.1,
                                        maximize=True), (*MATRICES, (7,), (), (2, 3, 4))),
}


def run_factored(torch, name, steps=LONG):
    """Parameters and state after so many steps in float64, and the repr."""
    cls, options, shapes = FACTORED[name]

    def numbers(shape, seed):
        count = math.prod(shape)
        return torch.tensor([math.sin(1.7 * i + seed) for i in range(count)], dtype=torch.float64).reshape(shape)

    params = [numbers(shape, i).requires_grad_() for i, shape in enumerate(shapes)]
    optimizer = getattr(torch.optim, cls)(params, **options)
    for step in range(steps):
        for i, p in enumerate(params):
            p.grad = numbers(p.shape, 10 * i + step) * (1.0 if step % 3 else 0.01)
        optimizer.step()
    return {"params": {i: p.tolist() for i, p in enumerate(params)}, "repr": repr(optimizer),
            "state": {i: {key: value.tolist() for key, value in optimizer.state[p].items()}
                      for i, p in enumerate(params)}}


def run_differentiable(torch, name):
    """Gradients of what a step with differentiable=True gives, by the parameter and the gradient.

    (torch cannot differentiate a second step of some methods: it writes over what the first one needs.)
    """
    cls, options = OPTIMIZERS[name]
    start = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64, requires_grad=True)
    by = torch.tensor([0.3, 0.7, -0.4], dtype=torch.float64, requires_grad=True)
    p = start.clone()
    optimizer = getattr(torch.optim, cls)([p], differentiable=True, **options)
    p.grad = by + 0.1 * start
    optimizer.step()
    (p * torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)).sum().backward()
    return {"p": p.tolist(), "start": start.grad.tolist(), "by": [0.0] * 3 if by.grad is None else by.grad.tolist()}


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
        "lbfgs": {name: run_lbfgs(torch, name) for name in LBFGS},
        "differentiable": {name: run_differentiable(torch, name) for name in OPTIMIZERS},
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
