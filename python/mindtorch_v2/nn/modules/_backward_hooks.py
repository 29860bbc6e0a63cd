# SPDX-License-Identifier: Apache-2.0
"""Full backward hooks of modules, by two identity functions in the graph.

    args ──► BackwardHookFunction ──► forward ──► BackwardHookFunction ──► result
                     │ 2: grad_input is known:           │ 1: grad_output is known:
                     ▼    hooks(module, in, out)         ▼    pre-hooks(module, out)

Backward goes from right to left. Where no argument needs a gradient there is no left one; then the
hooks run at 1 with grad_input of None.
"""

import warnings

import mindtorch_v2 as torch
from mindtorch_v2 import Tensor

from ...autograd import Function


class BackwardHookFunction(Function):
    """Passes tensors on; shows their gradients to `watcher` on the way back."""

    @staticmethod
    def forward(ctx, watcher, *tensors):
        ctx.watcher = watcher
        ctx.set_materialize_grads(False)
        passed = tuple(t.view_as(t) for t in tensors)
        ctx.mark_non_differentiable(*[p for p, t in zip(passed, tensors) if not t.requires_grad])
        return passed

    @staticmethod
    def backward(ctx, *grads):
        return (None, *ctx.watcher(grads))


class BackwardHook:
    """The hooks of one call of one module."""

    def __init__(self, module, hooks, pre_hooks):
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_outputs = None
        self.watches_inputs = False
        self.n_inputs = 0
        self.n_outputs = 0
        self.input_places = ()
        self.output_places = ()

    def watch_inputs(self, args):
        self.n_inputs = len(args)
        args, self.input_places = self._watch(self._at_inputs, args)
        self.watches_inputs = bool(self.input_places)
        return args

    def watch_outputs(self, result):
        single = not isinstance(result, tuple)
        results = (result,) if single else result
        self.n_outputs = len(results)
        results, self.output_places = self._watch(self._at_outputs, results)
        if hasattr(result, "_fields"):  # a named tuple stays one
            return type(result)(*results)
        return results[0] if single else results

    @staticmethod
    def _watch(watcher, values):
        """values with their tensors passed through the graph, and their places (none if not needed)."""
        places = [place for place, value in enumerate(values) if isinstance(value, Tensor)]
        if not torch.is_grad_enabled() or not any(values[place].requires_grad for place in places):
            return values, ()
        passed = BackwardHookFunction.apply(watcher, *[values[place] for place in places])
        if isinstance(passed, Tensor):
            passed = (passed,)
        values = list(values)
        for place, tensor in zip(places, passed):
            values[place] = tensor
        return tuple(values), tuple(places)

    @staticmethod
    def _spread(grads, places, count):
        spread = [None] * count
        for place, grad in zip(places, grads):
            spread[place] = grad
        return tuple(spread)

    def _at_outputs(self, grads):
        grad_output = self._spread(grads, self.output_places, self.n_outputs)
        for hook in self.pre_hooks:
            changed = hook(self.module, grad_output)
            if changed is not None:
                grad_output = self._checked("Backward pre hook", "grad_output", changed, self.n_outputs)
        self.grad_outputs = grad_output
        if not self.watches_inputs:
            if self.hooks:
                warnings.warn(
                    "Full backward hook is firing when gradients are computed with respect to module "
                    "outputs since no inputs require gradients.",
                    stacklevel=5,
                )
            self._run_hooks((None,) * self.n_inputs)
            self.grad_outputs = None
        return tuple(grad_output[place] for place in self.output_places)

    def _at_inputs(self, grads):
        grad_input = self._spread(grads, self.input_places, self.n_inputs)
        grad_input = self._run_hooks(grad_input)
        self.grad_outputs = None
        return tuple(grad_input[place] for place in self.input_places)

    def _run_hooks(self, grad_input):
        grad_output = self.grad_outputs
        if grad_output is None:  # the result was not used, only something inside the module
            grad_output = (None,) * self.n_outputs
        for hook in self.hooks:
            changed = hook(self.module, grad_input, grad_output)
            if changed is None:
                continue
            if not self.watches_inputs:
                if any(grad is not None for grad in (changed if isinstance(changed, tuple) else (changed,))):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always return "
                        "None or None for all gradients."
                    )
                continue
            grad_input = self._checked("Backward hook", "grad_input", changed, self.n_inputs)
        return grad_input

    @staticmethod
    def _checked(what, name, changed, count):
        changed = changed if isinstance(changed, tuple) else (changed,)
        if len(changed) != count:
            raise RuntimeError(
                f"{what} returned an invalid number of {name}, got {len(changed)}, but expected {count}"
            )
        return changed
