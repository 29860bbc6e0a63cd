# SPDX-License-Identifier: Apache-2.0
"""The base of all optimizers: parameter groups, state, hooks, and the annotations of a profile.

A step is one fused op for the parameters of a group that share a device (and the number of steps
they have made), so what a method computes is in the runtime; here is who takes part in it.
"""

import functools
import sys
from collections import OrderedDict, defaultdict
from copy import deepcopy
from itertools import chain

import mindtorch_v2 as torch
from mtprof import begin as _begin, end as _end, profiler as _profiler

from ..utils._grads import zero_gradient
from ..utils.hooks import add_hook

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]


class _Word:
    """A value that is only itself."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


required = _Word("<required parameter>")  # in `defaults`: every group must give a value


class _Hooks:
    """Hooks by their moment, such as "before step"; each moment has an ordered dict, for its handles."""

    def __init__(self):
        self._at = defaultdict(OrderedDict)

    def add(self, moment, hook, first=False):
        """A handle that removes the hook again."""
        return add_hook(self._at[moment], hook, first)

    def at(self, moment):
        """The hooks of a moment, in their order."""
        hooks = self._at.get(moment)
        return hooks.values() if hooks else ()

    def replace(self, moment, optimizer, value):
        """Shows a value to the hooks of a moment, any of which may return another one."""
        for hook in self.at(moment):
            other = hook(optimizer, value)
            value = value if other is None else other
        return value


_everywhere = _Hooks()  # for all optimizers


def register_optimizer_step_pre_hook(hook):
    """Calls hook(optimizer, args, kwargs) before each step of every optimizer."""
    return _everywhere.add("before step", hook)


def register_optimizer_step_post_hook(hook):
    """Calls hook(optimizer, args, kwargs) after each step of every optimizer."""
    return _everywhere.add("after step", hook)


def _ask_hooks(optimizer, step, args, kwargs):
    """The arguments of a step, after the hooks before it."""
    for hook in chain(_everywhere.at("before step"), optimizer._optimizer_hooks.at("before step")):
        given = hook(optimizer, args, kwargs)
        if given is None:
            continue
        if not isinstance(given, tuple) or len(given) != 2:
            raise RuntimeError(
                f"{step} must return None or a tuple of (new_args, new_kwargs), but got {given}."
            )
        args, kwargs = given
    return args, kwargs


def _is_foreign_array(value):
    """A tensor of another library (a state_dict made by torch in the same process, NumPy)."""
    return not isinstance(value, torch.Tensor) and hasattr(value, "__array__") and hasattr(value, "dtype")


def _adopt_array(value):
    """A foreign tensor's values as a tensor of ours: always a copy."""
    import numpy

    return torch.tensor(numpy.array(value), device="cpu")


class Optimizer:
    """What all optimizers have in common.

    params: tensors, or (name, tensor) pairs, or dicts with "params" and the options of that group.
    defaults: options for groups that do not name them.
    """

    def __init__(self, params, defaults):
        self.defaults = defaults
        self._prepare()
        if isinstance(params, torch.Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + params.type()
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    # ---- the profile's rows ----

    @staticmethod
    def profile_hook_step(func):
        """A step() that shows as "Optimizer.step#<class>.step" and runs the hooks around itself."""

        @functools.wraps(func)
        def stepping(*args, **kwargs):
            optimizer = args[0]
            optimizer._opt_called = True  # for lr_scheduler's advice
            token = _begin(f"Optimizer.step#{type(optimizer).__name__}.step")
            try:
                args, kwargs = _ask_hooks(optimizer, func, args, kwargs)
                loss = func(*args, **kwargs)
                for hook in chain(optimizer._optimizer_hooks.at("after step"), _everywhere.at("after step")):
                    hook(optimizer, args, kwargs)
                return loss
            finally:
                _end(token)

        stepping.hooked = True
        return stepping

    def _prepare(self):
        """What is not part of an optimizer's state: its hooks, and that its class's step() is profiled."""
        cls = type(self)
        if not getattr(cls.step, "hooked", False):
            cls.step = self.profile_hook_step(cls.step)
        if "_optimizer_hooks" not in self.__dict__:
            self._optimizer_hooks = _Hooks()

    # ---- groups ----

    def add_param_group(self, param_group):
        """Adds a group: a dict with "params" and the options that differ from the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, torch.Tensor):
            params = [params]
        elif isinstance(params, (set, frozenset)):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of "
                "tensors in sets will change between runs. Please use a list instead."
            )
        else:
            params = list(params)
        names = [p[0] for p in params if isinstance(p, tuple)]
        if names:
            if len(names) != len(params):
                raise ValueError(
                    "all optimizer params should be with/without names. Some param names are missing"
                )
            params = [p[1] for p in params]
            param_group["param_names"] = names
        param_group["params"] = params
        self._check_params(params, self.defaults.get("differentiable"))
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    f"parameter group didn't specify a value of required optimization parameter {name}"
                )
            param_group.setdefault(name, default)
        self._check_group(param_group)
        self.param_groups.append(param_group)

    @staticmethod
    def _check_params(params, differentiable=False):
        for p in params:
            if not isinstance(p, torch.Tensor):
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {type(p).__name__}"
                )
            if not (differentiable or p.is_leaf or getattr(p, "retains_grad", False)):
                raise ValueError("can't optimize a non-leaf Tensor")

    def _check_group(self, group):
        """That a new group goes with those that are there."""
        if len(set(map(id, group["params"]))) != len(group["params"]):
            import warnings

            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will "
                "cause an error; see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=4,
            )
        if self.param_groups:
            named = "param_names" in self.param_groups[0]
            if named != ("param_names" in group):
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param group "
                    + ("without names" if named else "with names")
                    + " to the optimizer"
                )
        known = {id(p) for other in self.param_groups for p in other["params"]}
        if not known.isdisjoint(map(id, group["params"])):
            raise ValueError("some parameters appear in more than one parameter group")

    # ---- the step ----

    def step(self, closure=None):
        """Moves the parameters; `closure`, if given, computes the loss anew and is called first."""
        raise NotImplementedError

    def _closure_loss(self, closure):
        """What the closure returns, computed with gradients on; None without one."""
        if closure is None:
            return None
        with torch.enable_grad():
            return closure()

    def _tensor_step(self, value=0.0):
        """How many steps a parameter has made, as torch keeps it: a float32 of no dimension."""
        return torch.tensor(float(value), dtype=torch.float32, device="cpu")

    def zero_grad(self, set_to_none=True):
        """Takes the gradients away, or sets them to zero."""
        token = _begin(f"Optimizer.zero_grad#{type(self).__name__}.zero_grad")
        try:
            for group in self.param_groups:
                for p in group["params"]:
                    if set_to_none:
                        p.grad = None
                    elif p.grad is not None:
                        zero_gradient(p.grad)
        finally:
            _end(token)

    # ---- hooks ----

    def register_step_pre_hook(self, hook):
        """hook(optimizer, args, kwargs) before each step; may return (new_args, new_kwargs)."""
        return self._optimizer_hooks.add("before step", hook)

    def register_step_post_hook(self, hook):
        """hook(optimizer, args, kwargs) after each step."""
        return self._optimizer_hooks.add("after step", hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """hook(optimizer) before state_dict()."""
        return self._optimizer_hooks.add("before saving", hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """hook(optimizer, state_dict) after state_dict(); may return another one."""
        return self._optimizer_hooks.add("after saving", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """hook(optimizer, state_dict) before load_state_dict(); may return another one."""
        return self._optimizer_hooks.add("before loading", hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """hook(optimizer) after load_state_dict()."""
        return self._optimizer_hooks.add("after loading", hook, prepend)

    # ---- state in and out ----

    def state_dict(self):
        """{"state": {number of the parameter: its state}, "param_groups": [...]}, torch's layout.

        The tensors are the optimizer's own, not copies.
        """
        for hook in self._optimizer_hooks.at("before saving"):
            hook(self)
        numbers = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {
            numbers[id(key)] if isinstance(key, torch.Tensor) else key: value
            for key, value in self.state.items()
        }
        return self._optimizer_hooks.replace("after saving", self, {"state": state, "param_groups": groups})

    def load_state_dict(self, state_dict):
        """Takes over what state_dict() of such an optimizer gave, from torch as well."""
        state_dict = self._optimizer_hooks.replace("before loading", self, state_dict.copy())
        saved_groups = deepcopy(state_dict["param_groups"])
        if len(self.param_groups) != len(saved_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        for group, saved in zip(self.param_groups, saved_groups):
            if len(group["params"]) != len(saved["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of "
                    "optimizer's group"
                )
        params = {}
        for group, saved in zip(self.param_groups, saved_groups):
            params.update(zip(saved["params"], group["params"]))
            saved["params"] = group["params"]
            if "param_names" in group:
                saved.setdefault("param_names", group["param_names"])
            for key, value in saved.items():
                if key != "params" and _is_foreign_array(value):
                    saved[key] = _adopt_array(value)
        state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                state[params[key]] = self._cast(params[key], value)
            else:
                state[key] = value
        self.__setstate__({"state": state, "param_groups": saved_groups})
        for hook in self._optimizer_hooks.at("after loading"):
            hook(self)

    def _cast(self, param, value, key=None):
        """State with its tensors as the parameter needs them: its type and device."""
        if _is_foreign_array(value):
            value = _adopt_array(value)
        if isinstance(value, torch.Tensor):
            if key == "step":
                return value
            if param.is_floating_point():
                return value.to(dtype=param.dtype, device=param.device)
            return value.to(device=param.device)
        if isinstance(value, dict):
            return {k: self._cast(param, v, k) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self._cast(param, v) for v in value)
        return value

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._prepare()
        self.defaults.setdefault("differentiable", False)

    def _setdefaults(self, **options):
        """Options that a loaded group may lack, because it is older than they are."""
        for group in self.param_groups:
            for name, value in options.items():
                group.setdefault(name, value)

    def _tensor_steps(self):
        """Steps that were kept as numbers become tensors."""
        for state in self.state.values():
            if isinstance(state, dict) and "step" in state and not isinstance(state["step"], torch.Tensor):
                state["step"] = self._tensor_step(state["step"])

    def __repr__(self):
        lines = [type(self).__name__ + " ("]
        for i, group in enumerate(self.param_groups):
            if i:
                lines.append("")
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join(lines) + "\n)"


class _GroupOptimizer(Optimizer):
    """Optimizers whose step is one of each group: a class has _step_group(group)."""

    def step(self, closure=None):
        """One step over the parameters that have a gradient."""
        loss = self._closure_loss(closure)
        for group in self.param_groups:
            if group.get("differentiable"):
                from ._differentiable import step_group

                with torch.enable_grad():
                    step_group(self, group)
                continue
            with torch.no_grad():
                self._step_group(group)
        return loss


class _AlikeOptimizer(_GroupOptimizer):
    """Optimizers that count steps and keep, for each parameter, tensors that are like it.

    _alike: torch's names of these, in the order of the fused op's lists, and _fill(name, group) what
    they begin with. _numbers(state, group, count): what else parameters must share for one call.
    _later: options that groups of older pickles lack, besides those that all these optimizers have.
    """

    _alike = ()
    _later: dict = {}
    _counted = "params and state_steps"  # torch's words for what capturable=True needs on a device

    def __setstate__(self, state):
        super().__setstate__(state)
        self._setdefaults(foreach=None, maximize=False, differentiable=False, capturable=False, **self._later)
        self._tensor_steps()

    def _fill(self, name, group):
        return 0.0

    def _numbers(self, state, group, count):
        return ()

    def _state_of(self, p, group):
        state = self.state[p]
        if not state:
            state["step"] = self._tensor_step()
            self._begin_numbers(state, group)
            for name in self._alike:
                state[name] = torch.full_like(p, self._fill(name, group), requires_grad=False)
        return state

    def _begin_numbers(self, state, group):
        """Numbers that a parameter's state has besides."""

    def _after(self, state, group, count):
        """Changes such numbers after a step."""

    def _step_group(self, group):
        batches = _Batches()
        for p, grad in _trained(group):
            _check_capturable(group, p, self._counted)
            state = self._state_of(p, group)
            count = int(state["step"].item()) + 1
            key = (p.device, count, self._numbers(state, group, count))
            batches.add(key, p, grad, *(state[name] for name in self._alike), state)
        for (_, count, numbers), (*lists, states) in batches:
            self._fused(group, count, numbers, *lists)
            for state in states:
                state["step"].add_(1)
                self._after(state, group, count)


def _check_capturable(group, p, counted="params and state_steps"):
    """capturable=True is for devices whose work can be captured: there the CPU is none of them."""
    if group.get("capturable") and p.device.type == "cpu":
        raise AssertionError(
            f"If capturable=True, {counted} must be on supported devices: "
            "['cuda', 'xpu', 'hpu', 'privateuseone', 'xla']."
        )


def _check_forms(differentiable, foreach=None, fused=None):
    """torch's choices of implementation. There is one here, so they change nothing else."""
    if fused:
        if differentiable:
            raise RuntimeError("`fused` does not support `differentiable`")
        if foreach:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def _check_betas(betas):
    for i in (0, 1):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


def _check_averaging(lr, betas, eps, **numbers):
    """What the methods of Adam's kind check, in torch's order."""
    _check_lr(lr)
    _check_not_negative(epsilon=eps)
    _check_betas(betas)
    _check_not_negative(**numbers)


def _averaging(group):
    """The arguments that the fused ops of these methods share."""
    return {
        "lr": float(group["lr"]),
        "beta1": float(group["betas"][0]),
        "beta2": float(group["betas"][1]),
        "weight_decay": float(group["weight_decay"]),
        "eps": float(group["eps"]),
        "maximize": group["maximize"],
    }


def _check_lr(lr):
    if isinstance(lr, torch.Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not 0.0 <= lr:
        raise ValueError(f"Invalid learning rate: {lr}")


def _check_not_negative(**values):
    for name, value in values.items():
        if not 0.0 <= value:
            raise ValueError(f"Invalid {name} value: {value}")


def _trained(group):
    """(parameter, gradient) of those that have one."""
    return [(p, p.grad) for p in group["params"] if p.grad is not None]


class _Batches:
    """The parameters of a group that one fused call can step: equal keys, lists side by side."""

    def __init__(self):
        self.of = {}

    def add(self, key, *members):
        lists = self.of.get(key)
        if lists is None:
            lists = self.of[key] = tuple([] for _ in members)
        for each, member in zip(lists, members):
            each.append(member)

    def __iter__(self):
        return iter(self.of.items())


if _profiler._on_optimizers is not None:  # `mtprof run` counts steps
    _profiler._on_optimizers(sys.modules[__name__])
