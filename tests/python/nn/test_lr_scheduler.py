# SPDX-License-Identifier: Apache-2.0
"""Learning rate schedulers: torch's rates (goldens), state, warnings, and errors in torch's words."""
import copy
import json
import os
import sys
import unittest
import warnings

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import mindtorch_v2 as torch  # noqa: E402
import support_optim  # noqa: E402
from mindtorch_v2 import optim  # noqa: E402
from mindtorch_v2.optim import lr_scheduler as lrs  # noqa: E402

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
with open(os.path.join(HERE, "..", "golden", "python", "optim.json")) as _file:
    GOLDENS = json.load(_file)["schedulers"]


def make(lr=0.1, groups=1, cls=optim.SGD, **options):
    return cls([{"params": [torch.zeros(1)], "lr": lr * (i + 1)} for i in range(groups)], lr=lr, **options)


class Rates(unittest.TestCase):
    def test_goldens(self):
        self.assertEqual(set(GOLDENS), set(support_optim.SCHEDULERS))
        for name, golden in GOLDENS.items():
            for cls in ("SGD", "AdamW"):
                with self.subTest(name, optimizer=cls), warnings.catch_warnings():
                    # Nothing warns in normal use; members of a member are stepped twice, in torch as well.
                    warnings.simplefilter("ignore" if name == "sequential nested" else "error")
                    seen, _ = support_optim.run_scheduler(torch, name, cls)
                    for epoch, theirs in zip(support_optim.shown_epochs(), golden, strict=True):
                        self.assertEqual(seen[epoch][:2], theirs[:2], epoch)
                        if name.startswith(("one", "cyclic")):
                            self.assertEqual(seen[epoch][2], theirs[2], epoch)

    def test_plateau(self):
        optimizer = make(1.0, 2)
        scheduler = lrs.ReduceLROnPlateau(optimizer, factor=0.5, patience=1, cooldown=1, min_lr=[0.3, 0.0])
        rates = []
        for metric in (5, 4, 4, 4, 4, 4, 4, 3, 3, 3, 3):
            scheduler.step(metric)
            rates.append([group["lr"] for group in optimizer.param_groups])
        self.assertEqual([r[0] for r in rates], [1, 1, 1, 0.5, 0.5, 0.5, 0.3, 0.3, 0.3, 0.3, 0.3])
        self.assertEqual([r[1] for r in rates], [2, 2, 2, 1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25])
        self.assertEqual(scheduler.get_last_lr(), [0.3, 0.25])
        self.assertFalse(scheduler.in_cooldown)

    def test_plateau_upwards_and_absolute(self):
        optimizer = make(1.0)
        scheduler = lrs.ReduceLROnPlateau(optimizer, "max", 0.1, 0, threshold=0.5, threshold_mode="abs")
        for metric, rate in ((1.0, 1.0), (1.6, 1.0), (2.0, 0.1), (torch.tensor(9.0), 0.1)):
            scheduler.step(metric)
            self.assertAlmostEqual(optimizer.param_groups[0]["lr"], rate)

    def test_plateau_new_group(self):
        optimizer = make(1.0)
        scheduler = lrs.ReduceLROnPlateau(optimizer, patience=0, factor=0.5)
        fixed = lrs.ReduceLROnPlateau(optimizer, patience=0, min_lr=[0.1])
        optimizer.add_param_group({"params": [torch.zeros(1)]})
        for _ in range(2):
            scheduler.step(1.0)
        self.assertEqual([g["lr"] for g in optimizer.param_groups], [0.5, 0.5])
        fixed.step(1.0)
        with self.assertRaisesRegex(RuntimeError, "The number of param groups in the `optimizer` \\(2\\)"):
            fixed.step(1.0)

    def test_epoch_named(self):
        for name, rate in (("step", 0.1 * 0.5**2), ("exponential", 0.1 * 0.97**17)):
            optimizer = make(0.1, 2, momentum=0.9)
            scheduler = support_optim.SCHEDULERS[name](lrs, optimizer)
            optimizer.step()
            with self.assertWarnsRegex(UserWarning, "The epoch parameter in `scheduler.step"):
                scheduler.step(17)
            self.assertAlmostEqual(optimizer.param_groups[0]["lr"], rate, places=12)

    def test_resume(self):
        optimizer = make(1.0)
        scheduler = lrs.ExponentialLR(optimizer, 0.5)
        for _ in range(3):
            optimizer.step()
            scheduler.step()
        again = lrs.ExponentialLR(optimizer, 0.5, last_epoch=2)
        self.assertEqual((again.last_epoch, again.get_last_lr(), again.base_lrs), (3, [0.125], [1.0]))

    def test_restarts_named_as_stepped(self):
        """A named epoch is where the steps lead, at the ends of long periods too."""
        for first, times in ((1, 3), (5, 2), (4, 1), (2, 5)):
            stepped = lrs.CosineAnnealingWarmRestarts(make(), first, times)
            named = lrs.CosineAnnealingWarmRestarts(make(), first, times)
            for epoch in range(1, 400):
                stepped.step()
                named.step(epoch)
                where = (first, times, epoch)
                self.assertEqual((named.T_i, named.T_cur), (stepped.T_i, stepped.T_cur), where)
                self.assertEqual(named.get_last_lr(), stepped.get_last_lr(), where)
            named.step(first + 0.25)
            self.assertEqual((named.T_i, named.T_cur), (first * times, 0.25))

    def test_rules_of_others(self):
        """A class of the user's: both rules, and the marks that say which call asks."""

        class Own(lrs.LRScheduler):
            def get_lr(self):
                asked.append((self._is_initial, self._get_lr_called_within_step))
                return [group["lr"] / 2 for group in self.optimizer.param_groups]

            def _get_closed_form_lr(self):
                return [base / 2**self.last_epoch for base in self.base_lrs]

        asked = []
        scheduler = Own(make(8.0))
        self.assertEqual(scheduler.get_last_lr(), [4.0])
        scheduler.optimizer.step()
        scheduler.step()
        scheduler.get_lr()
        self.assertEqual(asked, [(True, True), (False, True), (False, False)])
        with self.assertWarnsRegex(UserWarning, "epoch parameter"):
            scheduler.step(5)
        self.assertEqual((scheduler.get_last_lr(), len(asked)), ([0.25], 3))

    def test_tensor_rate_keeps_its_identity(self):
        rate = torch.tensor(0.5)
        optimizer = optim.SGD([torch.zeros(1)], lr=rate)
        scheduler = lrs.ExponentialLR(optimizer, 0.5)
        optimizer.step()
        scheduler.step()
        self.assertIs(optimizer.param_groups[0]["lr"], rate)
        self.assertEqual((rate.item(), scheduler.base_lrs[0].item()), (0.25, 0.5))
        self.assertEqual(scheduler.get_last_lr()[0].item(), 0.25)

    def test_one_cycle_ends(self):
        optimizer = make()
        scheduler = lrs.OneCycleLR(optimizer, 0.1, total_steps=2, cycle_momentum=False)
        optimizer.step()
        scheduler.step()
        scheduler.step()
        with self.assertRaisesRegex(ValueError, "Tried to step 3 times. The specified number of total st"):
            scheduler.step()


class State(unittest.TestCase):
    def test_goes_on(self):
        for name in support_optim.SCHEDULERS:
            with self.subTest(name), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                optimizer = make(0.1, 2, momentum=0.9)
                scheduler = support_optim.SCHEDULERS[name](lrs, optimizer)
                for _ in range(7):
                    optimizer.step()
                    scheduler.step()
                saved = copy.deepcopy(scheduler.state_dict())
                other_optimizer = make(0.1, 2, momentum=0.9)
                other = support_optim.SCHEDULERS[name](lrs, other_optimizer)
                other_optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
                other.load_state_dict(saved)
                for _ in range(40):
                    scheduler.step()
                    other.step()
                    self.assertEqual(scheduler.get_last_lr(), other.get_last_lr())
                self.assertEqual(scheduler.state_dict(), other.state_dict())

    def test_layout(self):
        state = lrs.StepLR(make(), 3).state_dict()
        self.assertEqual(
            state,
            {"step_size": 3, "gamma": 0.1, "base_lrs": [0.1], "last_epoch": 0, "_step_count": 1,
             "_is_initial": False, "_get_lr_called_within_step": False, "_last_lr": [0.1]})
        self.assertNotIn("optimizer", state)

    def test_functions_are_left_out_objects_are_not(self):
        class Decay:
            def __init__(self, rate):
                self.rate = rate

            def __call__(self, epoch):
                return self.rate**epoch

        state = lrs.LambdaLR(make(0.1, 2), [lambda e: 1.0, Decay(0.5)]).state_dict()
        self.assertEqual(state["lr_lambdas"], [None, {"rate": 0.5}])
        other = lrs.LambdaLR(make(0.1, 2), [lambda e: 1.0, Decay(0.9)])
        other.load_state_dict(state)
        self.assertEqual(other.lr_lambdas[1].rate, 0.5)
        self.assertIn("lr_lambdas", state)  # the caller's is not changed

        cyclic = lrs.CyclicLR(make(momentum=0.9), 0.1, 0.2, scale_fn=Decay(0.5))
        state = cyclic.state_dict()
        self.assertEqual(state["_scale_fn_custom"], {"rate": 0.5})
        other = lrs.CyclicLR(make(momentum=0.9), 0.1, 0.2, scale_fn=Decay(0.1))
        other.load_state_dict(state)
        self.assertEqual(other.scale_fn(1), 0.5)


class Warnings(unittest.TestCase):
    def caught(self, work):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            work()
        return [str(w.message) for w in seen]

    def test_order(self):
        optimizer = make()
        scheduler = lrs.StepLR(optimizer, 1)
        first, = self.caught(scheduler.step)
        self.assertIn("Detected call of `lr_scheduler.step()` before `optimizer.step()`", first)
        self.assertEqual(self.caught(scheduler.step), [])  # once

    def test_right_order(self):
        optimizer = make()
        optimizer.step()  # before the scheduler is made: does not count
        scheduler = lrs.StepLR(optimizer, 1)
        self.assertEqual(len(self.caught(scheduler.step)), 1)
        optimizer = make()
        scheduler = lrs.StepLR(optimizer, 1)
        optimizer.step()
        self.assertEqual(self.caught(scheduler.step), [])

    def test_replaced_step(self):
        optimizer = make()
        scheduler = lrs.StepLR(optimizer, 1)
        optimizer.step = lambda: None
        text, = self.caught(scheduler.step)
        self.assertIn("`optimizer.step()` has been overridden after learning rate scheduler", text)
        optimizer = make()
        optimizer.step = lambda: None  # before
        scheduler = lrs.StepLR(optimizer, 1)
        optimizer.step()
        self.assertEqual(self.caught(scheduler.step), [])

    def test_get_lr_outside(self):
        scheduler = lrs.StepLR(make(), 1)
        self.assertEqual(self.caught(scheduler.get_lr), [
            "To get the last learning rate computed by the scheduler, please use `get_last_lr()`."])
        self.assertEqual(self.caught(scheduler.get_last_lr), [])

    def test_place_of_the_warning(self):
        scheduler = lrs.StepLR(make(), 1)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            scheduler.step()
        self.assertEqual(os.path.basename(seen[0].filename), os.path.basename(__file__))


class Refused(unittest.TestCase):
    def test_texts(self):
        one = make()
        cases = [
            (TypeError, "int is not an Optimizer", lambda: lrs.StepLR(5, 1)),
            (TypeError, "int is not an Optimizer", lambda: lrs.ReduceLROnPlateau(5)),
            (NotImplementedError, "", lambda: lrs.LRScheduler(make())),
            (KeyError, "param 'initial_lr' is not specified in param_groups\\[0\\] when resuming",
             lambda: lrs.StepLR(make(), 1, last_epoch=3)),
            (ValueError, "Constant multiplicative factor expected to be between 0 and 1.",
             lambda: lrs.ConstantLR(make(), 2)),
            (ValueError, "Starting multiplicative factor expected to be greater than 0",
             lambda: lrs.LinearLR(make(), 0)),
            (ValueError, "Ending multiplicative factor", lambda: lrs.LinearLR(make(), 1, 2)),
            (ValueError, "Expected positive integer T_0, but got 0",
             lambda: lrs.CosineAnnealingWarmRestarts(make(), 0)),
            (ValueError, "Expected integer T_mult >= 1, but got 0",
             lambda: lrs.CosineAnnealingWarmRestarts(make(), 2, 0)),
            (ValueError, "Expected float or int eta_min, but got a of type <class 'str'>",
             lambda: lrs.CosineAnnealingWarmRestarts(make(), 2, eta_min="a")),
            (ValueError, "Expected non-negative epoch, but got -1",
             lambda: lrs.CosineAnnealingWarmRestarts(make(), 2).step(-1)),
            (ValueError, "Expected 2 lr_lambdas, but got 1", lambda: lrs.LambdaLR(make(0.1, 2), [abs])),
            (TypeError, "lr_lambda should be a function, but got int",
             lambda: lrs.MultiplicativeLR(make(), 5)),
            (ValueError, "You must define either total_steps OR", lambda: lrs.OneCycleLR(make(), 0.1)),
            (ValueError, "Expected positive integer total_steps, but got 0",
             lambda: lrs.OneCycleLR(make(), 0.1, 0)),
            (ValueError, "Expected positive integer epochs, but got -1",
             lambda: lrs.OneCycleLR(make(), 0.1, epochs=-1, steps_per_epoch=1)),
            (ValueError, "Expected float between 0 and 1 pct_start, but got 2",
             lambda: lrs.OneCycleLR(make(), 0.1, 10, pct_start=2)),
            (ValueError, "anneal_strategy must be one of 'cos' or 'linear', instead got x",
             lambda: lrs.OneCycleLR(make(), 0.1, 10, anneal_strategy="x")),
            (ValueError, "max_lr must have the same length as optimizer.param_groups. max_lr has 1 values",
             lambda: lrs.OneCycleLR(make(0.1, 2), [0.1], 10)),
            (ValueError, "optimizer must support momentum or beta1 with `cycle_momentum` option enabled",
             lambda: lrs.OneCycleLR(make(cls=optim.Adagrad), 0.1, 10)),
            (ValueError, "mode is invalid and scale_fn is None",
             lambda: lrs.CyclicLR(make(), 0.1, 0.2, mode="x")),
            (ValueError, "base_lr must have the same length", lambda: lrs.CyclicLR(make(0.1, 2), [0.1], 0.2)),
            (ValueError, "Factor should be < 1.0.", lambda: lrs.ReduceLROnPlateau(make(), factor=1)),
            (ValueError, "mode x is unknown!", lambda: lrs.ReduceLROnPlateau(make(), "x")),
            (ValueError, "threshold mode x is unknown!",
             lambda: lrs.ReduceLROnPlateau(make(), threshold_mode="x")),
            (ValueError, "expected 2 min_lrs, got 1",
             lambda: lrs.ReduceLROnPlateau(make(0.1, 2), min_lr=[1])),
            (TypeError, "missing 1 required positional argument: 'metrics'",
             lambda: lrs.ReduceLROnPlateau(make()).step()),
            (ValueError, "SequentialLR expects at least one scheduler",
             lambda: lrs.SequentialLR(one, [], [])),
            (TypeError, "SequentialLR at index 0 should have `optimizer` as its attribute.",
             lambda: lrs.SequentialLR(one, [1], [])),
            (ValueError, "SequentialLR expects all schedulers to belong to the same optimizer",
             lambda: lrs.SequentialLR(one, [lrs.ExponentialLR(make(), 0.9)], [])),
            (ValueError, "SequentialLR does not support `ReduceLROnPlateau` scheduler",
             lambda: lrs.SequentialLR(one, [lrs.ReduceLROnPlateau(one)], [])),
            (ValueError, "number of schedulers 1 and the number of milestones to be equal to 1",
             lambda: lrs.SequentialLR(one, [lrs.ExponentialLR(one, 0.9)], [3])),
            (ValueError, "ChainedScheduler expects at least one scheduler", lambda: lrs.ChainedScheduler([])),
        ]
        for kind, text, work in cases:
            with self.subTest(text), self.assertRaisesRegex(kind, text):
                work()


if __name__ == "__main__":
    unittest.main()
