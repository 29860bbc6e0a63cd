# SPDX-License-Identifier: Apache-2.0
"""Optimizers: groups, state, hooks, errors in torch's words, and steps that are torch's (goldens)."""
import copy
import gc
import json
import math
import os
import pickle
import sys
import unittest
import warnings
import weakref

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import mindtorch_v2 as torch  # noqa: E402
import support_optim  # noqa: E402
from mindtorch_v2 import optim  # noqa: E402
from mindtorch_v2.optim import optimizer as base  # noqa: E402

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
with open(os.path.join(HERE, "..", "golden", "python", "optim.json")) as _file:
    ALL_GOLDENS = json.load(_file)
GOLDENS = ALL_GOLDENS["optimizers"]
CLASSES = (optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop, optim.Adagrad, optim.Adadelta, optim.Adamax, optim.NAdam,
           optim.RAdam, optim.ASGD, optim.Rprop)


def parameter(*values, grad=None):
    p = torch.nn.Parameter(torch.tensor(values))
    if grad is not None:
        p.grad = torch.tensor(grad)
    return p


def flat(value):
    if isinstance(value, list):
        return [x for v in value for x in flat(v)]
    return [value]


class Steps(unittest.TestCase):
    def test_goldens(self):
        for name, golden in GOLDENS.items():
            with self.subTest(name):
                made = support_optim.run_optimizer(torch, name)
                self.assertEqual(list(made["state"]), list(golden["state"]))
                pairs = [(made["a"], golden["a"]), (made["b"], golden["b"])]
                for number, state in golden["state"].items():
                    self.assertEqual(list(made["state"][number]), list(state))  # torch's names, in its order
                    pairs += [(made["state"][number][key], state[key]) for key in state]
                for ours, theirs in pairs:
                    for x, y in zip(flat(ours), flat(theirs), strict=True):
                        self.assertTrue(math.isclose(x, y, rel_tol=2e-5, abs_tol=2e-6), (ours, theirs))

    def assert_near(self, ours, theirs):
        for x, y in zip(flat(ours), flat(theirs), strict=True):
            self.assertTrue(math.isclose(x, y, rel_tol=1e-6, abs_tol=1e-6), (ours, theirs))

    def test_muon(self):
        """The update is near to orthogonal, of the size that the shape asks for."""
        torch.manual_seed(0)
        for rows, columns in ((4, 6), (6, 4)):
            p = torch.nn.Parameter(torch.zeros(rows, columns, dtype=torch.float64))
            p.grad = torch.randn(rows, columns, dtype=torch.float64)
            optim.Muon([p], lr=1.0, weight_decay=0.0).step()
            made = p.detach() / max(1, rows / columns) ** 0.5
            square = made @ made.T if rows < columns else made.T @ made
            diagonal = square.diagonal()
            self.assertTrue(bool((diagonal > 0.4).all() and (diagonal < 1.5).all()), diagonal)
            self.assertLess(float((square - diagonal.diag()).abs().max()), 0.35)
        with self.assertRaisesRegex(ValueError, "only supports 2D parameters"):
            optim.Muon([torch.nn.Parameter(torch.zeros(3))])

    def test_adafactor(self):
        """The first step: every update is the gradient over its estimated size, bounded by d."""
        p = torch.nn.Parameter(torch.tensor([3.0, 4.0], dtype=torch.float64))
        p.grad = torch.tensor([0.5, -2.0], dtype=torch.float64)
        optimizer = optim.Adafactor([p], lr=0.01)
        optimizer.step()
        size = math.sqrt((9 + 16) / 2)
        self.assertTrue(torch.allclose(p.detach(), torch.tensor([3 - 0.01 * size, 4 + 0.01 * size]).double()))
        self.assertEqual(set(optimizer.state[p]), {"step", "variance"})
        for name in support_optim.FACTORED:
            made = support_optim.run_factored(torch, name)
            self.assertTrue(all(math.isfinite(v) for row in made["params"][0] for v in row), name)

    def test_lbfgs(self):
        for name, golden in ALL_GOLDENS["lbfgs"].items():
            with self.subTest(name):
                made = support_optim.run_lbfgs(torch, name)
                self.assertEqual(list(made), list(golden))
                self.assert_near([made[key] for key in made], [golden[key] for key in golden])

    def test_differentiable(self):
        for name, golden in ALL_GOLDENS["differentiable"].items():
            with self.subTest(name):
                made = support_optim.run_differentiable(torch, name)
                self.assert_near([made[key] for key in golden], [golden[key] for key in golden])

    def test_differentiable_steps_are_the_others(self):
        """Both forms of each method, over several steps."""
        for name in support_optim.OPTIMIZERS:
            cls, options = support_optim.OPTIMIZERS[name]
            ends = []
            for differentiable in (False, True):
                p = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64).clone()
                optimizer = getattr(optim, cls)([p], differentiable=differentiable, **options)
                for step in range(5):
                    p.grad = torch.tensor([support_optim.gradient(step, i) for i in range(3)], dtype=torch.float64)
                    optimizer.step()
                ends.append((p.tolist(), {k: v.tolist() for k, v in optimizer.state[p].items()}))
            with self.subTest(name):
                self.assert_near(ends[0][0], ends[1][0])
                self.assertEqual(list(ends[0][1]), list(ends[1][1]))
                for key in ends[0][1]:
                    self.assert_near(ends[0][1][key], ends[1][1][key])

    def test_capturable_needs_a_device(self):
        for cls in (optim.Adam, optim.RMSprop, optim.Adadelta, optim.NAdam, optim.ASGD):
            optimizer = cls([parameter(1.0, grad=[1.0])], lr=0.1, capturable=True)
            with self.assertRaisesRegex(AssertionError, "If capturable=True, params.* must be on supported devices"):
                optimizer.step()

    def test_sparse_adam_says_what_it_cannot(self):
        optimizer = optim.SparseAdam([parameter(1.0)])
        optimizer.step()  # nothing has a gradient
        optimizer.param_groups[0]["params"][0].grad = torch.ones(1)
        with self.assertRaisesRegex(RuntimeError, "SparseAdam does not support dense gradients"):
            optimizer.step()

    def test_averaged_model_and_update_bn(self):
        model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2, momentum=0.3))
        averaged = optim.swa_utils.AveragedModel(model)
        for value in (1.0, 2.0, 6.0):
            with torch.no_grad():
                model[0].weight.fill_(value)
            averaged.update_parameters(model)
        self.assertEqual(averaged.module[0].weight.tolist(), [[3.0, 3.0], [3.0, 3.0]])
        self.assertEqual(averaged.n_averaged.item(), 3)
        averaged.eval()
        optim.swa_utils.update_bn([torch.ones(2, 2), (torch.zeros(2, 2), "target")], averaged)
        self.assertEqual(averaged.module[1].num_batches_tracked.item(), 2)
        self.assertEqual((averaged.module[1].momentum, averaged.training), (0.3, False))
        bias = averaged.module[0].bias
        self.assert_near(averaged.module[1].running_mean.tolist(), (bias + 3.0).tolist())

    def test_cyclic_momentum_of_tensors(self):
        """Neither the tensors that were given nor max_momentum change."""
        for make in (optim.lr_scheduler.OneCycleLR, optim.lr_scheduler.CyclicLR):
            low, high, first = torch.tensor(0.8), torch.tensor(0.95), torch.tensor(0.9)
            optimizer = optim.SGD([parameter(1.0)], lr=torch.tensor(0.1), momentum=first)
            rates = (0.5, 20) if make is optim.lr_scheduler.OneCycleLR else (0.01, 0.3, 5)
            scheduler = make(optimizer, *rates, base_momentum=low, max_momentum=high)
            for _ in range(6):
                optimizer.step()
                scheduler.step()
            group = optimizer.param_groups[0]
            kept = [low.item(), high.item(), first.item(), float(group["max_momentum"])]
            self.assert_near(kept, [0.8, 0.95, 0.9, 0.95])
            self.assertLess(float(group["momentum"]), 0.95)

    def test_all_goldens_are_run(self):
        self.assertEqual(set(GOLDENS), set(support_optim.OPTIMIZERS))
        self.assertEqual(set(ALL_GOLDENS["lbfgs"]), set(support_optim.LBFGS))
        self.assertEqual(set(ALL_GOLDENS["differentiable"]), set(support_optim.OPTIMIZERS))

    def test_float64_and_mixed_types(self):
        for cls in CLASSES:
            p = torch.nn.Parameter(torch.tensor([1.0], dtype=torch.float64))
            q = torch.nn.Parameter(torch.tensor([1.0]))
            p.grad, q.grad = torch.ones(1, dtype=torch.float64), torch.ones(1)
            optimizer = cls([p, q], lr=0.1)
            optimizer.step()
            self.assertAlmostEqual(p.item(), q.item(), places=6)
            self.assertLess(p.item(), 1.0)
            for state in optimizer.state.values():
                if "step" in state:
                    self.assertEqual((state["step"].dtype, state["step"].shape), (torch.float32, ()))

    def test_strided_parameter(self):
        whole = torch.zeros(3, 2)
        p = torch.nn.Parameter(whole.t())
        p.grad = torch.ones(2, 3)
        optim.SGD([p], lr=1.0, momentum=0.5).step()
        self.assertEqual(p.tolist(), [[-1.0] * 3] * 2)

    def test_steps_apart(self):
        """A parameter that had no gradient is corrected for its own number of steps."""
        p, q = parameter(0.0, grad=[1.0]), parameter(0.0)
        optimizer = optim.Adam([p, q], lr=0.1)
        optimizer.step()
        self.assertEqual(list(optimizer.state), [p])
        q.grad = torch.ones(1)
        optimizer.step()
        self.assertEqual([optimizer.state[x]["step"].item() for x in (p, q)], [2.0, 1.0])
        self.assertAlmostEqual(q.item(), -0.1, places=6)

    def test_state_appears_when_options_ask(self):
        """momentum, amsgrad and centered can be turned on by a group later."""
        p = parameter(1.0, grad=[1.0])
        for cls, option, value, state in (
            (optim.SGD, "momentum", 0.9, "momentum_buffer"),
            (optim.Adam, "amsgrad", True, "max_exp_avg_sq"),
            (optim.RMSprop, "momentum", 0.9, "momentum_buffer"),
            (optim.RMSprop, "centered", True, "grad_avg"),
        ):
            optimizer = cls([p])
            optimizer.step()
            self.assertNotIn(state, optimizer.state[p])
            optimizer.param_groups[0][option] = value
            optimizer.step()
            self.assertIn(state, optimizer.state[p])
            optimizer.param_groups[0][option] = type(value)(0)
            optimizer.step()  # state that is no longer used does no harm

    def test_failing_step_changes_nothing(self):
        p = parameter(1.0, grad=[1.0])
        optimizer = optim.Adam([p])
        optimizer.step()
        before = p.item()
        optimizer.state[p]["exp_avg"] = torch.zeros(2)
        with self.assertRaisesRegex(RuntimeError, "exp_avgs must be like its parameter"):
            optimizer.step()
        self.assertEqual((p.item(), optimizer.state[p]["step"].item()), (before, 1.0))

    def test_closure(self):
        p = parameter(2.0)
        optimizer = optim.SGD([p], lr=0.1)
        enabled = []

        def closure():
            enabled.append(torch.is_grad_enabled())
            optimizer.zero_grad()
            loss = (p * p).sum()
            loss.backward()
            return loss

        with torch.no_grad():
            loss = optimizer.step(closure)
        self.assertEqual((loss.item(), enabled), (4.0, [True]))
        self.assertAlmostEqual(p.item(), 1.6, places=6)
        self.assertIsNone(optimizer.step())
        with self.assertRaisesRegex(TypeError, "'int' object is not callable"):
            optimizer.step(5)

    def test_step_leaves_grad_mode_and_leaf(self):
        p = parameter(1.0, grad=[1.0])
        optimizer = optim.AdamW([p])
        optimizer.step()
        self.assertTrue(torch.is_grad_enabled())
        self.assertTrue(p.is_leaf and p.requires_grad)
        self.assertFalse(any(v.requires_grad for v in optimizer.state[p].values()))

    def test_writes_are_seen_by_autograd(self):
        p = parameter(1.0, grad=[1.0])
        loss = (p * p).sum()
        optim.SGD([p], lr=0.1).step()
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            loss.backward()

    def test_tensor_lr(self):
        p = parameter(1.0, grad=[1.0])
        optim.SGD([p], lr=torch.tensor(0.25)).step()
        self.assertEqual(p.item(), 0.75)

    def test_no_leaks(self):
        def work():
            for name in support_optim.OPTIMIZERS:
                support_optim.run_optimizer(torch, name)

        work()
        gc.collect()
        before = torch._C._tensors_alive()
        for _ in range(3):
            work()
        gc.collect()
        self.assertEqual(torch._C._tensors_alive(), before)

    def test_trains(self):
        torch.manual_seed(0)
        x = torch.randn(64, 3)
        y = x @ torch.tensor([1.0, -2.0, 0.5]) + 0.3
        for cls, lr in ((optim.SGD, 0.1), (optim.Adam, 0.05), (optim.AdamW, 0.05), (optim.RMSprop, 0.02),
                        (optim.Adagrad, 0.3)):
            w, b = torch.nn.Parameter(torch.zeros(3)), torch.nn.Parameter(torch.zeros(()))
            optimizer = cls([w, b], lr=lr)
            losses = []
            for _ in range(150):
                optimizer.zero_grad()
                loss = ((x @ w + b - y) ** 2).mean()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            self.assertLess(losses[-1], 0.01 * losses[0], cls.__name__)


class ZeroGrad(unittest.TestCase):
    def test_to_none(self):
        p = parameter(1.0, grad=[1.0])
        optim.SGD([p]).zero_grad()
        self.assertIsNone(p.grad)

    def test_to_zero_keeps_the_tensor(self):
        p, q = parameter(1.0, grad=[1.0]), parameter(1.0)
        grad = p.grad
        optim.SGD([p, q]).zero_grad(set_to_none=False)
        self.assertIs(p.grad, grad)
        self.assertEqual(grad.tolist(), [0.0])
        self.assertIsNone(q.grad)

    def test_to_zero_cuts_the_history(self):
        p = parameter(2.0)
        (grad,) = torch.autograd.grad((p * p * p).sum(), p, create_graph=True)
        p.grad = grad
        optim.SGD([p]).zero_grad(set_to_none=False)
        self.assertFalse(p.grad.requires_grad)
        self.assertEqual(p.grad.tolist(), [0.0])


class Groups(unittest.TestCase):
    def test_options_by_group(self):
        p, q = parameter(1.0, grad=[1.0]), parameter(1.0, grad=[1.0])
        optimizer = optim.SGD([{"params": p, "lr": 0.5}, {"params": [q]}], lr=0.1)
        optimizer.step()
        self.assertEqual((p.item(), round(q.item(), 6)), (0.5, 0.9))
        self.assertEqual([g["lr"] for g in optimizer.param_groups], [0.5, 0.1])

    def test_add(self):
        p, q = parameter(1.0), parameter(1.0, grad=[1.0])
        optimizer = optim.Adagrad([p])
        optimizer.add_param_group({"params": (x for x in [q]), "lr": 1.0})
        self.assertEqual(optimizer.state[q]["sum"].tolist(), [0.0])
        optimizer.step()
        self.assertAlmostEqual(q.item(), 0.0, places=5)

    def test_names(self):
        optimizer = optim.SGD([("a", parameter(1.0)), ("b", parameter(1.0))])
        self.assertEqual(optimizer.state_dict()["param_groups"][0]["param_names"], ["a", "b"])

    def test_refused(self):
        p, q = parameter(1.0), parameter(1.0)
        cases = [
            (ValueError, "optimizer got an empty parameter list", lambda: optim.SGD([])),
            (TypeError, "params argument given to the optimizer should be an iterable of Tensors or dicts",
             lambda: optim.SGD(p)),
            (TypeError, "'int' object is not iterable", lambda: optim.SGD(5)),
            (TypeError, "optimizer can only optimize Tensors, but one of the params is int",
             lambda: optim.SGD([p, 5])),
            (ValueError, "can't optimize a non-leaf Tensor", lambda: optim.SGD([p * 2])),
            (ValueError, "some parameters appear in more than one parameter group",
             lambda: optim.SGD([{"params": [p]}, {"params": [p]}])),
            (TypeError, "the ordering of tensors in sets will change", lambda: optim.SGD([{"params": {p}}])),
            (KeyError, "params", lambda: optim.SGD([{"param": [p]}])),
            (ValueError, "Some param names are missing", lambda: optim.SGD([("a", p), q])),
            (ValueError, "cannot add param group without names",
             lambda: optim.SGD([{"params": [("a", p)]}, {"params": [q]}])),
            (ValueError, "cannot add param group with names",
             lambda: optim.SGD([{"params": [p]}, {"params": [("a", q)]}])),
            (TypeError, "param_group must be a dict, but got <class 'list'>",
             lambda: optim.SGD([p]).add_param_group([q])),
            (ValueError, "didn't specify a value of required optimization parameter lr",
             lambda: base.Optimizer([p], {"lr": base.required})),
            (NotImplementedError, "", lambda: base.Optimizer([p], {}).step()),
        ]
        for kind, text, make in cases:
            with self.subTest(text), self.assertRaisesRegex(kind, text):
                make()

    def test_twice_warns(self):
        p = parameter(1.0)
        with self.assertWarnsRegex(UserWarning, "parameter group with duplicate parameters"):
            optim.SGD([p, p])

    def test_options_refused(self):
        p = [parameter(1.0)]
        cases = [
            (optim.SGD, dict(lr=-1), "Invalid learning rate: -1"),
            (optim.SGD, dict(momentum=-1), "Invalid momentum value: -1"),
            (optim.SGD, dict(weight_decay=-1), "Invalid weight_decay value: -1"),
            (optim.SGD, dict(nesterov=True), "Nesterov momentum requires a momentum and zero dampening"),
            (optim.SGD, dict(lr=torch.ones(2)), "Tensor lr must be 1-element"),
            (optim.Adam, dict(lr=-1), "Invalid learning rate: -1"),
            (optim.Adam, dict(betas=(1, 0.9)), "Invalid beta parameter at index 0: 1"),
            (optim.Adam, dict(betas=(0.9, 1.9)), "Invalid beta parameter at index 1: 1.9"),
            (optim.Adam, dict(eps=-1), "Invalid epsilon value: -1"),
            (optim.AdamW, dict(weight_decay=-1), "Invalid weight_decay value: -1"),
            (optim.RMSprop, dict(eps=-1), "Invalid epsilon value: -1"),
            (optim.RMSprop, dict(alpha=-1), "Invalid alpha value: -1"),
            (optim.RMSprop, dict(momentum=-1), "Invalid momentum value: -1"),
            (optim.Adagrad, dict(lr_decay=-1), "Invalid lr_decay value: -1"),
            (optim.Adagrad, dict(initial_accumulator_value=-1),
             "Invalid initial_accumulator_value value: -1"),
        ]
        for cls, options, text in cases:
            with self.subTest(text), self.assertRaises(ValueError) as caught:
                cls(p, **options)
            self.assertEqual(str(caught.exception), text)
        for cls in (optim.SGD, optim.Adam, optim.AdamW, optim.Adagrad):
            with self.assertRaisesRegex(RuntimeError, "`fused` and `foreach` cannot be `True` together."):
                cls(p, fused=True, foreach=True)
            with self.assertRaisesRegex(RuntimeError, "`fused` does not support `differentiable`"):
                cls(p, fused=True, differentiable=True)
            cls(p, fused=True)
            cls(p, foreach=True)

    def test_repr(self):
        optimizer = optim.SGD([{"params": [parameter(1.0)]}, {"params": [parameter(1.0)], "foo": 1}], lr=0.7)
        lines = ["dampening: 0", "differentiable: False", "foreach: None", "fused: None", "lr: 0.7",
                 "maximize: False", "momentum: 0", "nesterov: False", "weight_decay: 0"]
        with_foo = lines[:2] + ["foo: 1"] + lines[2:]
        text = "SGD (\nParameter Group 0\n" + "".join(f"    {line}\n" for line in lines)
        text += "\nParameter Group 1\n" + "".join(f"    {line}\n" for line in with_foo) + ")"
        self.assertEqual(repr(optimizer), text)


class State(unittest.TestCase):
    def make(self, cls=optim.Adam, **options):
        p = parameter(1.0, 2.0, grad=[0.5, -1.0])
        optimizer = cls([p], **options)
        optimizer.step()
        return p, optimizer

    def test_layout(self):
        p, optimizer = self.make()
        state = optimizer.state_dict()
        self.assertEqual(list(state), ["state", "param_groups"])
        self.assertEqual(list(state["state"]), [0])
        self.assertIs(state["state"][0]["exp_avg"], optimizer.state[p]["exp_avg"])
        group = state["param_groups"][0]
        self.assertEqual(list(group)[-1], "params")
        self.assertEqual(group["params"], [0])
        self.assertIsNot(group, optimizer.param_groups[0])

    def test_goes_on_after_loading(self):
        for cls, options in ((optim.SGD, dict(lr=0.1, momentum=0.9)), (optim.Adam, dict(amsgrad=True)),
                             (optim.AdamW, {}), (optim.RMSprop, dict(centered=True, momentum=0.5)),
                             (optim.Adagrad, dict(lr_decay=0.1))):
            p, optimizer = self.make(cls, **options)
            saved = copy.deepcopy(optimizer.state_dict())
            q = torch.nn.Parameter(p.detach().clone())
            other = cls([q])
            other.load_state_dict(saved)
            for x in (p, q):
                x.grad = torch.tensor([0.1, 0.7])
            optimizer.step()
            other.step()
            self.assertEqual(p.tolist(), q.tolist(), cls.__name__)

    def test_takes_the_parameters_type(self):
        _, optimizer = self.make()
        p = torch.nn.Parameter(torch.zeros(2, dtype=torch.float64))
        other = optim.Adam([p])
        other.load_state_dict(optimizer.state_dict())
        self.assertEqual(other.state[p]["exp_avg"].dtype, torch.float64)
        self.assertEqual(other.state[p]["step"].dtype, torch.float32)

    def test_foreign_tensors(self):
        try:
            import numpy as np
        except ImportError:
            self.skipTest("NumPy is not installed")
        p = parameter(1.0, 2.0, grad=[0.5, -1.0])
        optimizer = optim.Adam([p])
        state = {"step": np.float32(3), "exp_avg": np.ones(2), "exp_avg_sq": np.ones(2, np.float32)}
        group = dict(optimizer.state_dict()["param_groups"][0], lr=0.5)
        optimizer.load_state_dict({"state": {0: state}, "param_groups": [group]})
        mine = optimizer.state[p]
        self.assertEqual([mine[k].dtype for k in ("step", "exp_avg")], [torch.float32] * 2)
        optimizer.step()
        self.assertEqual(mine["step"].item(), 4.0)

    def test_numbers_become_tensors(self):
        p, optimizer = self.make()
        state = copy.deepcopy(optimizer.state_dict())
        state["state"][0]["step"] = 3.0
        optimizer.load_state_dict(state)
        self.assertEqual(optimizer.state[p]["step"].item(), 3.0)
        optimizer.step()

    def test_old_groups(self):
        p = parameter(1.0, grad=[1.0])
        optimizer = optim.SGD([p])
        optimizer.load_state_dict(
            {"state": {}, "param_groups": [{"params": [0], "lr": 1.0, "momentum": 0, "dampening": 0,
                                            "weight_decay": 0}]})
        optimizer.step()
        self.assertEqual(p.item(), 0.0)

    def test_refused(self):
        _, optimizer = self.make()
        for groups, text in (([], "different number of parameter groups"),
                             ([{"params": [0, 1]}], "doesn't match the size of optimizer's group")):
            with self.assertRaisesRegex(ValueError, text):
                optimizer.load_state_dict({"state": {}, "param_groups": groups})
        with self.assertRaises(KeyError):
            optimizer.load_state_dict({"param_groups": optimizer.state_dict()["param_groups"]})

    def test_state_of_nobody_is_kept(self):
        _, optimizer = self.make()
        saved = optimizer.state_dict()
        saved["state"] = dict(saved["state"], extra=7)
        optimizer.load_state_dict(saved)
        self.assertEqual(optimizer.state_dict()["state"]["extra"], 7)

    def test_pickle_and_deepcopy(self):
        p, optimizer = self.make()
        for other in (pickle.loads(pickle.dumps(optimizer)), copy.deepcopy(optimizer)):
            (q,) = other.param_groups[0]["params"]
            self.assertIsNot(q, p)
            self.assertEqual(other.state[q]["step"].item(), 1.0)
            q.grad = torch.ones(2)
            other.step()
            self.assertEqual(other.state[q]["step"].item(), 2.0)
        self.assertEqual(optimizer.state[p]["step"].item(), 1.0)


class Hooks(unittest.TestCase):
    def test_step_hooks(self):
        optimizer = optim.SGD([parameter(1.0)])
        seen = []
        handles = [
            optimizer.register_step_pre_hook(lambda *a: seen.append(("pre", a))),
            optimizer.register_step_post_hook(lambda *a: seen.append(("post", a))),
            base.register_optimizer_step_pre_hook(lambda *a: seen.append(("global pre", a))),
            base.register_optimizer_step_post_hook(lambda *a: seen.append(("global post", a))),
        ]
        optimizer.step(closure=None)
        self.assertEqual([name for name, _ in seen], ["global pre", "pre", "post", "global post"])
        for _, (given, args, kwargs) in seen:
            self.assertIs(given, optimizer)
            self.assertEqual((args, kwargs), ((optimizer,), {"closure": None}))
        for handle in handles:
            handle.remove()
            handle.remove()
        optimizer.step()
        self.assertEqual(len(seen), 4)

    def test_pre_hook_changes_arguments(self):
        optimizer = optim.SGD([parameter(1.0)])
        optimizer.register_step_pre_hook(lambda o, args, kwargs: (args, {"closure": lambda: 7}))
        self.assertEqual(optimizer.step(), 7)
        other = optim.SGD([parameter(1.0)])
        other.register_step_pre_hook(lambda *a: 5)
        with self.assertRaisesRegex(RuntimeError, "must return None or a tuple of .* but got 5"):
            other.step()

    def test_state_hooks(self):
        optimizer = optim.SGD([parameter(1.0)])
        seen = []
        optimizer.register_state_dict_pre_hook(lambda o: seen.append("second"))
        optimizer.register_state_dict_pre_hook(lambda o: seen.append("first"), prepend=True)
        optimizer.register_state_dict_post_hook(lambda o, d: dict(d, more=1))
        optimizer.register_load_state_dict_pre_hook(lambda o, d: seen.append(d.pop("more")))
        optimizer.register_load_state_dict_post_hook(lambda o: seen.append(o))
        state = optimizer.state_dict()
        self.assertEqual(state["more"], 1)
        optimizer.load_state_dict(state)
        self.assertEqual(seen, ["first", "second", 1, optimizer])
        self.assertEqual(state["more"], 1)  # the caller's is not changed

    def test_handle(self):
        optimizer = optim.SGD([parameter(1.0)])
        with optimizer.register_step_pre_hook(lambda *a: 1 / 0):
            with self.assertRaises(ZeroDivisionError):
                optimizer.step()
        optimizer.step()
        handle = optimizer.register_step_post_hook(lambda *a: None)
        del optimizer
        gc.collect()
        handle.remove()  # its dictionary is gone

    def test_handle_survives_pickling(self):
        from collections import OrderedDict

        from mindtorch_v2.utils.hooks import RemovableHandle

        hooks, extra = OrderedDict(), OrderedDict()
        handle = RemovableHandle(hooks, extra_dict=extra)
        hooks[handle.id] = extra[handle.id] = 1
        again_hooks, again_extra, again = pickle.loads(pickle.dumps((hooks, extra, handle)))
        again.remove()
        self.assertEqual((len(again_hooks), len(again_extra), len(hooks)), (0, 0, 1))
        del hooks
        gone = pickle.loads(pickle.dumps(handle))
        gone.remove()
        self.assertNotEqual(RemovableHandle(extra).id, handle.id)

    def test_no_cycles(self):
        optimizer = optim.Adam([parameter(1.0, grad=[1.0])])
        optimizer.register_step_post_hook(lambda *a: None)
        optimizer.step()
        gone = weakref.ref(optimizer)
        gc.disable()
        try:
            del optimizer
            self.assertIsNone(gone())
        finally:
            gc.enable()


class Annotations(unittest.TestCase):
    def names(self, work):
        from mindtorch_v2.profiler import profile

        with profile() as prof:
            work()
        return [e.name for e in prof.events()]

    def test_step_and_zero_grad(self):
        optimizer = optim.AdamW([parameter(1.0, grad=[1.0])])

        def work():
            optimizer.step()
            optimizer.zero_grad()

        names = self.names(work)
        self.assertEqual(names[0], "Optimizer.step#AdamW.step")
        self.assertEqual(names[-1], "Optimizer.zero_grad#AdamW.zero_grad")
        self.assertIn("aten::_fused_adamw_", names)

    def test_one_fused_call_for_all(self):
        params = [parameter(float(i), grad=[1.0]) for i in range(5)]
        for cls, op in ((optim.SGD, "sgd"), (optim.Adam, "adam"), (optim.RMSprop, "rmsprop"),
                        (optim.Adagrad, "adagrad")):
            names = self.names(cls(params).step)
            self.assertEqual(names.count(f"aten::_fused_{op}_"), 1, names)

    def test_own_class(self):
        class Mine(base.Optimizer):
            def step(self, closure=None):
                return "done"

        optimizer = Mine([parameter(1.0)], {})
        seen = []
        names = self.names(lambda: seen.append(optimizer.step()))
        self.assertEqual((names, seen), (["Optimizer.step#Mine.step"], ["done"]))

    def test_ends_after_an_error(self):
        optimizer = optim.SGD([parameter(1.0)])

        def work():
            with self.assertRaises(ZeroDivisionError):
                optimizer.step(lambda: 1 / 0)
            torch.ones(1).neg()

        from mindtorch_v2.profiler import profile

        with profile() as prof:
            work()
        neg = next(e for e in prof.events() if e.name == "aten::neg")
        self.assertIsNone(neg.cpu_parent)


if __name__ == "__main__":
    warnings.simplefilter("error", DeprecationWarning)
    unittest.main(verbosity=2)  # reasons of skipped tests are shown
