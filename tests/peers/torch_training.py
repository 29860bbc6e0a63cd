#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the models of models_v2.py in torch and in mindtorch_v2, in one process, with each optimizer.

From the same weights 20 steps are made; the losses of all steps must agree at rtol 1e-4, and so must
the states of the optimizers at the end, and a step made after each has loaded the other's state. Where
torch is that far from itself in float64, ours must agree with the float64 run.
The last line: N passed, N failed, N skipped.

    torch_training.py [--device npu] [MODEL|OPTIMIZER...]      npu (MINDTORCH_NPU=sim): where ours trains
"""
import argparse
import sys

import models_v2
import numpy as np

STEPS = 20
RTOL = 1e-4


def arrays(state_dict):
    """{(parameter, name): values} of an optimizer's state."""
    return {
        (number, name): np.asarray(value.detach().cpu().numpy(), dtype=np.float64)
        for number, state in state_dict["state"].items()
        for name, value in state.items()
    }


def noise(work):
    """Where gradients are rounding errors: a bias before a batch norm, or of attention's keys, has none."""
    grads = [np.abs(p.grad.numpy()) for p in work.model.parameters()]
    least = 1e-5 * max(grad.max() for grad in grads)
    return [grad < least for grad in grads]


def compare_state(theirs, ours):
    a, b = arrays(theirs.optimizer.state_dict()), arrays(ours.optimizer.state_dict())
    if list(a) != list(b):
        return f"other state: {sorted(set(a) ^ set(b)) or 'another order'}"
    unsure = noise(theirs)
    for key, value in a.items():
        if value.shape != b[key].shape:
            return f"{key} has shape {b[key].shape}, not {value.shape}"
        difference = np.abs(value - b[key])
        if value.shape:
            difference = np.where(unsure[key[0]], 0.0, difference)
        scale = np.abs(value).max(initial=0.0) or 1.0
        if difference.max(initial=0.0) > 2e-3 * scale:
            return f"{key} differs by {difference.max() / scale:.2g} of its range"
    return None


def wide(work):
    """The same in float64."""
    work.model.double()
    work.batch = tuple(part.double() if part.is_floating_point() else part for part in work.batch)
    return work


def compare_losses(theirs, ours):
    for i, (a, b) in enumerate(zip(theirs, ours)):
        if not abs(a - b) <= RTOL * abs(a):
            return f"step {i}: torch {a:.7f}, ours {b:.7f}"
    return None


def try_one(torch, mindtorch, name, optimizer, device):
    """None, or what differs."""
    theirs = models_v2.build(torch, name, optimizer)
    ours = models_v2.build(mindtorch, name, optimizer, device)
    losses_theirs = [theirs.step() for _ in range(STEPS)]
    losses_ours = [ours.step() for _ in range(STEPS)]
    if not losses_theirs[-1] < losses_theirs[0]:
        return f"torch itself does not learn: {losses_theirs[0]:.4f} to {losses_theirs[-1]:.4f}"
    wrong = compare_losses(losses_theirs, losses_ours) or compare_state(theirs, ours)
    if wrong:
        # A rounding error of torch's may choose another branch of the program: then its float64 tells who is right.
        exact = wide(models_v2.build(torch, name, optimizer))
        losses_exact = [exact.step() for _ in range(STEPS)]
        astray = compare_losses(losses_exact, losses_theirs)
        if not astray or compare_losses(losses_exact, losses_ours) or compare_state(exact, ours):
            return wrong
        print(f"{name} {optimizer}: ours is torch's in float64; in float32, {astray.replace('ours', 'float32')}")
    # torch's state continues in ours.
    again = models_v2.build(mindtorch, name, optimizer, device)
    again.model.load_state_dict(
        {key: mindtorch.from_numpy(value.detach().numpy().copy())
         for key, value in theirs.model.state_dict().items()}
    )
    again.optimizer.load_state_dict(theirs.optimizer.state_dict())
    more = [again.step() for _ in range(3)]
    return compare_losses([theirs.step() for _ in range(3)], more)


def main():
    try:
        import torch
    except ImportError:
        print("torch is not installed")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    import mindtorch_v2

    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("only", nargs="*")
    options = parser.parse_args()
    only = options.only
    passed = failed = 0
    for name in models_v2.NAMES:
        for optimizer in models_v2.OPTIMIZERS:
            if only and name not in only and optimizer not in only:
                continue
            wrong = try_one(torch, mindtorch_v2, name, optimizer, options.device)
            passed, failed = passed + (not wrong), failed + bool(wrong)
            if wrong:
                print(f"{name} {optimizer}: {wrong}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
