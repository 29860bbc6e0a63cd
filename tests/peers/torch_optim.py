#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares optimizers, schedulers and saved files of mindtorch_v2 with torch's, in one process.

Optimizers: parameters and state after some steps (tests/python/support_optim.py). Schedulers: all
rates of 100 epochs, equal to the last bit, then state_dict()s; resumed in the middle, and at an epoch
that is named. Errors: both raise the same for wrong
options. Files: each reads what the other saved. The last line: N passed, N failed, N skipped.
"""
import os
import sys
import tempfile
import warnings

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import support_optim as runs  # noqa: E402

# Expressions that both evaluate: p is a parameter, m makes an optimizer, O is optim, L is lr_scheduler.
WRONG = """
O.SGD([]) | O.SGD(5) | O.SGD([p, 5]) | O.SGD([p * 2]) | O.SGD([{'params': {p}}]) | O.SGD([{'param': [p]}])
O.SGD([{'params': [p]}, {'params': [p]}]) | O.SGD([('a', p), p]) | O.SGD([p], lr=-1) | O.SGD([p], momentum=-1)
O.SGD([p], weight_decay=-1) | O.SGD([p], nesterov=True) | O.SGD([p], foreach=True, fused=True)
O.SGD([p], fused=True, differentiable=True) | O.Adam([p], lr=-1) | O.Adam([p], betas=(1, 0.9))
O.Adam([p], betas=(0.9, 1.5)) | O.Adam([p], eps=-1) | O.Adam([p], weight_decay=-1) | O.AdamW([p], lr=-1)
O.RMSprop([p], lr=-1) | O.RMSprop([p], alpha=-1) | O.RMSprop([p], eps=-1) | O.RMSprop([p], momentum=-1)
O.Adagrad([p], lr=-1) | O.Adagrad([p], lr_decay=-1) | O.Adagrad([p], initial_accumulator_value=-1)
O.Adadelta([p], rho=1.5) | O.Adadelta([p], eps=-1) | O.Adadelta([p], weight_decay=-1)
O.Adamax([p], betas=(1, 0.9)) | O.Adamax([p], eps=-1) | O.NAdam([p], momentum_decay=-1)
O.NAdam([p], betas=(0.9, 1.)) | O.RAdam([p], lr=-1) | O.RAdam([p], weight_decay=-1) | O.ASGD([p], lr=-1)
O.ASGD([p], weight_decay=-1) | O.Rprop([p], etas=(1.5, 1.2)) | O.Rprop([p], lr=-1) | O.LBFGS([p], lr=-1)
O.LBFGS([{'params': [p]}, {'params': [p * 1]}]) | O.LBFGS([{'params': [p]}, {'params': [p.detach()]}])
O.LBFGS([p]).step() | O.SparseAdam([p], lr=-1) | O.SparseAdam([p], eps=-1) | O.SparseAdam([p], betas=(1, 0.9))
g(O.SparseAdam([p])).step() | g(O.Adamax([p], capturable=True)).step() | g(O.NAdam([p], capturable=True)).step()
g(O.RAdam([p], capturable=True)).step() | g(O.ASGD([p], capturable=True)).step()
g(O.Rprop([p], capturable=True)).step() | g(O.Adam([p], capturable=True)).step()
O.Muon([p], lr=-1) | O.Muon([p], momentum=-1) | O.Muon([p], weight_decay=-1) | O.Muon([p], adjust_lr_fn='x')
O.Muon([p.detach()[0].requires_grad_()]) | O.Adafactor([p], lr=-1) | O.Adafactor([p], beta2_decay=1)
O.Adafactor([p], eps=(-1, 1)) | O.Adafactor([p], eps=(1, -1)) | O.Adafactor([p], d=0.5)
O.Adafactor([p], weight_decay=-1) | g(O.LBFGS([p], line_search_fn='x')).step(lambda: p.sum())
U.SWALR(m(), 0.1, anneal_strategy='x') | U.SWALR(m(), [1, 2]) | U.SWALR(m(), 0.1, anneal_epochs=-1)
U.AveragedModel(None, avg_fn=1, multi_avg_fn=2) | U.get_ema_avg_fn(2) | U.get_ema_multi_avg_fn(-1)
O.Adagrad([p], eps=-1) | m().add_param_group([p]) | m().load_state_dict({'param_groups': [], 'state': {}})
m().load_state_dict({'param_groups': [{'params': [0, 1]}], 'state': {}}) | m().step(5)
L.StepLR(5, 1) | L.LRScheduler(m()) | L.StepLR(m(), 1, last_epoch=3) | L.ConstantLR(m(), 2)
L.LinearLR(m(), 0) | L.LinearLR(m(), 1, 2) | L.CosineAnnealingWarmRestarts(m(), 0)
L.CosineAnnealingWarmRestarts(m(), 2, 0)
L.CosineAnnealingWarmRestarts(m(), 2, eta_min='a') | L.CosineAnnealingWarmRestarts(m(), 2).step(-1)
L.LambdaLR(m(), [abs, abs]) | L.MultiplicativeLR(m(), 5) | L.OneCycleLR(m(), 0.1) | L.OneCycleLR(m(), 0.1, 0)
L.OneCycleLR(m(), 0.1, epochs=-1, steps_per_epoch=1) | L.OneCycleLR(m(), 0.1, 10, pct_start=2)
L.OneCycleLR(m(), 0.1, 10, anneal_strategy='x') | L.OneCycleLR(m(), [0.1, 0.1], 10)
L.OneCycleLR(O.Adagrad([p]), 0.1, 10) | L.CyclicLR(m(), 0.1, 0.2, mode='x') | L.CyclicLR(m(), [1, 2], 0.2)
L.CyclicLR(O.Adagrad([p]), 0.1, 0.2) | L.ReduceLROnPlateau(m(), factor=1) | L.ReduceLROnPlateau(m(), 'x')
L.ReduceLROnPlateau(m(), threshold_mode='x') | L.ReduceLROnPlateau(m(), min_lr=[1, 2])
L.ReduceLROnPlateau(m()).step() | L.SequentialLR(m(), [], []) | L.SequentialLR(m(), [1], [])
L.SequentialLR(m(), [L.ExponentialLR(m(), 0.9)], []) | L.ChainedScheduler([])
"""


def close(a, b, where="", rtol=2e-5, atol=2e-6):
    """None, or where two nested results differ."""
    if isinstance(a, dict):
        if list(a) != list(b):
            return f"{where}: {list(a)} and {list(b)}"
        return next(filter(None, (close(a[k], b[k], f"{where}.{k}", rtol, atol) for k in a)), None)
    if isinstance(a, str):
        return None if a == b else f"{where}: torch {a!r}, ours {b!r}"
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if a.shape != b.shape or not np.allclose(a, b, rtol=rtol, atol=atol):
        return f"{where}: torch {a.tolist()}, ours {b.tolist()}"
    return None


def compare_closely(torch, ours, run, name):
    """Both runs in float64; torch counts steps in float32, which shows at 4e-7. Muon multiplies in bfloat16, which
    processors with instructions for it add up in another order: its parameters differ by 8e-3 there after 20 steps."""
    theirs, mine = run(torch, name), run(ours, name)
    wrong = None
    if name.startswith("muon"):
        wrong = close(theirs.pop("params"), mine.pop("params"), name, 0, 3e-2)
    return wrong or close(theirs, mine, name, 1e-6, 1e-6)


def compare_long(torch, ours, name):
    """20 steps in float64; torch with and without its loops over lists."""
    for foreach in (None, True, False):
        pair = [runs.run_optimizer(library, name, runs.LONG, "float64", foreach=foreach)
                for library in (torch, ours)]
        wrong = close(*pair, f"foreach={foreach}", 1e-7, 1e-7)  # torch's two forms differ by 2e-8
        if wrong:
            return wrong
    return None


def small_model(library, weights=None):
    """A linear layer and a batch norm in float64, with the weights of another one."""
    model = library.nn.Sequential(library.nn.Linear(3, 4), library.nn.BatchNorm1d(4), library.nn.Linear(4, 1))
    model = model.double()
    if weights is not None:
        model.load_state_dict({key: library.tensor(value) for key, value in weights.items()})
    return model


def averages_of(library, weights, kind):
    """A model, its average over 20 steps, and the rates of SWALR."""
    utils = library.optim.swa_utils
    model = small_model(library, weights)
    functions = {
        "swa": {}, "ema": {"multi_avg_fn": utils.get_ema_multi_avg_fn(0.9)},
        "ema one": {"avg_fn": utils.get_ema_avg_fn(0.8)},
        "swa one": {"avg_fn": utils.get_swa_avg_fn()}, "swa many": {"multi_avg_fn": utils.get_swa_multi_avg_fn()},
        "buffers": {"use_buffers": True},
    }
    averaged = utils.AveragedModel(model, **functions[kind])
    optimizer = library.optim.SGD(model.parameters(), lr=0.02)
    scheduler = utils.SWALR(optimizer, 0.005, 7, "linear" if kind == "ema" else "cos")
    inputs = library.tensor(np.random.default_rng(3).standard_normal((20, 5, 3)))
    rates = []
    for x in inputs:
        optimizer.zero_grad()
        (model(x) ** 2).sum().backward()
        optimizer.step()
        averaged.update_parameters(model)
        scheduler.step()
        rates.append(optimizer.param_groups[0]["lr"])
    utils.update_bn(inputs, averaged)
    averaged.eval()
    result = {key: value.tolist() for key, value in averaged.state_dict().items()}
    return {**result, "rates": rates, "out": averaged(inputs[0]).tolist(), "momentum": averaged.module[1].momentum}


def compare_averages(torch, ours):
    weights = {key: value.numpy() for key, value in small_model(torch).state_dict().items()}
    return [(f"swa_utils, {kind}", close(averages_of(torch, weights, kind), averages_of(ours, weights, kind), kind,
                                         1e-7, 1e-7))
            for kind in ("swa", "ema", "ema one", "swa one", "swa many", "buffers")]


def tensor_momentum(library, scheduler, optimizer, tensors):
    """What a group says after some steps of cyclic schedulers whose momentums are tensors."""
    number = library.tensor if tensors else float
    p, momentum = library.zeros(1), library.tensor(0.9)
    made = (library.optim.SGD([p], lr=library.tensor(0.1), momentum=momentum) if optimizer == "SGD" else
            library.optim.Adam([p], lr=0.1, betas=(momentum, library.tensor(0.99))))
    low, high = number(0.85), number(0.95)
    L = library.optim.lr_scheduler
    one = (L.OneCycleLR(made, 0.5, total_steps=20, base_momentum=low, max_momentum=high) if scheduler == "one" else
           L.CyclicLR(made, 0.01, 0.3, 5, base_momentum=low, max_momentum=high))
    for _ in range(7):
        made.step()
        one.step()
    group = made.param_groups[0]
    return {key: float(group[key]) for key in ("lr", "max_momentum", "base_momentum")} | {
        "momentum": float(group["momentum"] if optimizer == "SGD" else group["betas"][0]),
        "given": [float(momentum), float(low), float(high)]}


def compare_tensor_momentum(torch, ours):
    for scheduler in ("one", "cyclic"):
        for optimizer in ("SGD", "Adam"):
            for tensors in (False, True):
                case = (scheduler, optimizer, tensors)
                wrong = close(tensor_momentum(torch, *case), tensor_momentum(ours, *case), str(case), 1e-6, 1e-9)
                if wrong:
                    return wrong
    return None


def compare_states(torch, ours):
    """state_dict()s go both ways, and training goes on as if nothing had happened."""
    for name in runs.OPTIMIZERS:
        cls, options = runs.OPTIMIZERS[name]
        for first, second in ((torch, ours), (ours, torch)):
            saved, rest = None, []
            for library, begin, end in ((first, 0, 4), (second, 4, 8), (first, 0, 8)):
                p = library.tensor(saved[0] if begin else [1.0, -2.0, 0.5], dtype=library.float64, requires_grad=True)
                optimizer = getattr(library.optim, cls)([p], **options)
                if begin:
                    optimizer.load_state_dict(saved[1])
                for step in range(begin, end):
                    values = [runs.gradient(step, i) for i in range(3)]
                    p.grad = library.tensor(values, dtype=library.float64)
                    optimizer.step()
                rest.append(p.tolist())
                state = optimizer.state_dict()
                carry = {0: {k: second.tensor(v.tolist(), dtype=getattr(second, str(v.dtype).split(".")[-1]))
                             for k, v in state["state"].get(0, {}).items()}}
                saved = saved or (p.tolist(), {"state": carry, "param_groups": state["param_groups"]})
            if not np.allclose(rest[1], rest[2], rtol=1e-9, atol=1e-9):
                return f"{name}, {first.__name__} to {second.__name__}: {rest[1]}, without a break {rest[2]}"
    return None


def compare_scheduler(torch, ours, name, optimizer):
    theirs, a = runs.run_scheduler(torch, name, optimizer)
    mine, b = runs.run_scheduler(ours, name, optimizer)
    for epoch, (x, y) in enumerate(zip(theirs, mine)):
        if x != y:
            return f"epoch {epoch}: torch {x}, ours {y}"
    if repr(a.state_dict()) != repr(b.state_dict()):
        return f"state: torch {a.state_dict()}, ours {b.state_dict()}"
    return None


# Schedulers that are made in the middle of a training, at epoch e.
RESUMED = {
    "StepLR": lambda L, o, e: L.StepLR(o, 7, 0.5, last_epoch=e),
    "MultiStepLR": lambda L, o, e: L.MultiStepLR(o, [3, 3, 10, 50], 0.3, e),
    "ConstantLR": lambda L, o, e: L.ConstantLR(o, 0.4, 8, e),
    "LinearLR": lambda L, o, e: L.LinearLR(o, 0.2, 0.9, 30, e),
    "ExponentialLR": lambda L, o, e: L.ExponentialLR(o, 0.97, e),
    "CosineAnnealingLR": lambda L, o, e: L.CosineAnnealingLR(o, 13, 0.01, e),
    "CosineAnnealingWarmRestarts": lambda L, o, e: L.CosineAnnealingWarmRestarts(o, 5, 2, 0.001, e),
    "LambdaLR": lambda L, o, e: L.LambdaLR(o, lambda epoch: 0.9**epoch, e),
    "MultiplicativeLR": lambda L, o, e: L.MultiplicativeLR(o, lambda epoch: 0.99, e),
    "PolynomialLR": lambda L, o, e: L.PolynomialLR(o, 40, 2.0, e),
    "CyclicLR": lambda L, o, e: L.CyclicLR(o, 0.01, 0.3, 7, 11, last_epoch=e),
}


def resumed(library, name, epoch, named):
    """Rates of 40 epochs after a start at `epoch`, or after step(named)."""
    optimizer = library.optim.SGD([library.zeros(1)], lr=0.1, momentum=0.9)
    if epoch >= 0:
        optimizer.param_groups[0].update(initial_lr=0.1, lr=0.037)
    try:
        scheduler = RESUMED[name](library.optim.lr_scheduler, optimizer, epoch)
        if named is not None:
            scheduler.step(named)
        seen = []
        for _ in range(40):
            seen.append(list(scheduler.get_last_lr()))
            scheduler.step()
        return seen
    except Exception as error:
        return repr(error)


def compare_resumed(torch, ours, name):
    for epoch, named in [(e, None) for e in (0, 3, 7, 8, 13, 29, 59)] + [(-1, e) for e in (0, 3, 17, 60)]:
        theirs, mine = resumed(torch, name, epoch, named), resumed(ours, name, epoch, named)
        if theirs != mine:
            return f"last_epoch {epoch}, step({named}): torch {theirs}, ours {mine}"
    return None


def compare_plateau(torch, ours):
    metrics = np.random.default_rng(1).random(100) * (1 + 1 / np.arange(1, 101))
    for mode in ("min", "max"):
        for threshold_mode in ("rel", "abs"):
            pair = [
                library.optim.lr_scheduler.ReduceLROnPlateau(
                    library.optim.SGD([library.zeros(1)], lr=0.1),
                    mode, 0.5, 3, 0.01, threshold_mode, 2, 0.001)
                for library in (torch, ours)
            ]
            for metric in metrics.tolist():
                theirs, mine = [(s.step(metric), s.state_dict())[1] for s in pair]
                if theirs != mine:
                    return f"{mode} {threshold_mode}: torch {theirs}, ours {mine}"
    return None


def raised(library, text):
    p = library.nn.Parameter(library.zeros(2))
    names = {
        "p": p,
        "O": library.optim,
        "L": library.optim.lr_scheduler,
        "U": library.optim.swa_utils,
        "g": lambda optimizer: (setattr(p, "grad", library.ones(2)), optimizer)[1],
        "m": lambda: library.optim.SGD([library.zeros(1)], lr=0.1, momentum=0.9),
    }
    try:
        eval(text, names)
    except Exception as error:
        return type(error).__name__, str(error)
    return "nothing", ""


def compare_files(torch, ours):
    with tempfile.TemporaryDirectory() as folder:
        for writer, reader in ((torch, ours), (ours, torch)):
            path = os.path.join(folder, "x.pt")
            model = writer.nn.Sequential(writer.nn.Linear(3, 4), writer.nn.BatchNorm1d(4))
            optimizer = writer.optim.AdamW(model.parameters())
            model(writer.randn(5, 3)).sum().backward()
            optimizer.step()
            whole = writer.arange(10.0)
            writer.save({"m": model.state_dict(), "o": optimizer.state_dict(), "v": whole[3:5], "w": whole,
                         "b": whole.bfloat16(), "t": whole.view(2, 5).t()}, path)
            got = reader.load(path)
            other = reader.nn.Sequential(reader.nn.Linear(3, 4), reader.nn.BatchNorm1d(4))
            if str(other.load_state_dict(got["m"])) != "<All keys matched successfully>":
                return f"{writer.__name__} to {reader.__name__}: other keys"
            loaded = reader.optim.AdamW(other.parameters())
            loaded.load_state_dict(got["o"])
            got["w"][3] = 77.0
            facts = [got["v"].tolist() == [77.0, 4.0], got["b"].float().tolist() == list(range(10)),
                     got["t"].stride() == (1, 5)]
            facts += [a.tolist() == b.tolist() for a, b in zip(model.state_dict().values(),
                                                               other.state_dict().values())]
            if not all(facts):
                return f"{writer.__name__} to {reader.__name__}: {facts}"
    return None


def main():
    try:
        import torch
    except ImportError:
        print("torch is not installed")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    import mindtorch_v2 as ours

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    results = []
    for name in runs.OPTIMIZERS:
        results.append((name, close(runs.run_optimizer(torch, name), runs.run_optimizer(ours, name))))
        results.append((f"{name}, {runs.LONG} steps", compare_long(torch, ours, name)))
        results.append((f"{name}, differentiable", compare_closely(torch, ours, runs.run_differentiable, name)))
    for name in runs.FACTORED:
        results.append((name, compare_closely(torch, ours, runs.run_factored, name)))
    for name in runs.LBFGS:
        results.append((name, compare_closely(torch, ours, runs.run_lbfgs, name)))
    results += compare_averages(torch, ours)
    results.append(("momentum of tensors", compare_tensor_momentum(torch, ours)))
    results.append(("states across", compare_states(torch, ours)))
    for name in runs.SCHEDULERS:
        for optimizer in ("SGD", "AdamW"):
            results.append((f"{name} of {optimizer}", compare_scheduler(torch, ours, name, optimizer)))
    for name in RESUMED:
        results.append((f"{name} resumed", compare_resumed(torch, ours, name)))
    results.append(("ReduceLROnPlateau", compare_plateau(torch, ours)))
    for text in filter(None, (part.strip() for part in WRONG.replace("\n", "|").split("|"))):
        theirs, mine = raised(torch, text), raised(ours, text)
        wrong = None if theirs == mine and theirs[0] != "nothing" else f"torch {theirs}, ours {mine}"
        results.append((text, wrong))
    results.append(("files", compare_files(torch, ours)))
    failed = [(name, wrong) for name, wrong in results if wrong]
    for name, wrong in failed:
        print(f"{name}: {wrong}")
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
