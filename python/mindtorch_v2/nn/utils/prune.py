# SPDX-License-Identifier: Apache-2.0
"""torch.nn.utils.prune: parameters with elements that stay zero.

A pruned parameter `weight` is the product of the parameter `weight_orig` and the buffer `weight_mask`, computed
before each forward.
"""

import abc
import numbers

import mindtorch_v2 as torch

from ..parameter import Parameter

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer",
    "RandomStructured", "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned",
    "l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove",
]  # fmt: skip


class BasePruningMethod(abc.ABC):
    """How to choose what is pruned: compute_mask() says what stays. PRUNING_TYPE is 'unstructured', 'structured'
    (has a `dim`) or 'global'."""

    _tensor_name: str

    def __call__(self, module, inputs):
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abc.abstractmethod
    def compute_mask(self, t, default_mask):
        """The mask of tensor t, which has `default_mask` already."""

    def apply_mask(self, module):
        """The module's original tensor times its mask."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs):
        """Prunes the module's tensor; pruning it again adds to what is pruned."""
        old = [
            (key, hook) for key, hook in module._forward_pre_hooks.items()
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
        ]  # fmt: skip
        method = cls(*args, **kwargs)
        method._tensor_name = name
        original = getattr(module, name)
        if importance_scores is not None and importance_scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter                     {name} of {module}"
            )
        scores = original if importance_scores is None else importance_scores
        if old:
            key, before = old[0]
            del module._forward_pre_hooks[key]
            container = before if isinstance(before, PruningContainer) else PruningContainer(before)
            container.add_pruning_method(method)
            default = getattr(module, name + "_mask").detach().clone()
            method = container
        else:
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
            default = torch.ones_like(original)
        with torch.no_grad():
            mask = method.compute_mask(scores, default_mask=default)
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t, default_mask=None, importance_scores=None):
        """A pruned copy of a tensor."""
        scores = t if importance_scores is None else importance_scores
        default = torch.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=default)

    def remove(self, module):
        """The tensor is a parameter again, with its zeros."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        name = self._tensor_name
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        original.data = weight.data
        del module._buffers[name + "_mask"]
        module.register_parameter(name, original if isinstance(original, Parameter) else Parameter(original))


class PruningContainer(BasePruningMethod):
    """Several methods for one tensor, one after the other."""

    def __init__(self, *args):
        self._pruning_methods = tuple(args)
        self._tensor_name = args[0]._tensor_name if args else None

    def add_pruning_method(self, method):
        """Adds a method for the same tensor."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self):
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, idx):
        return self._pruning_methods[idx]

    def compute_mask(self, t, default_mask):
        """What the last method leaves of what the mask has left."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            chosen = mask == 1
            part = method.compute_mask(t[chosen], default_mask=mask[chosen])
            made = mask.clone()
            made[chosen] = part.to(dtype=mask.dtype)
            return made
        if method.PRUNING_TYPE == "global":
            return mask * method.compute_mask(t, default_mask=mask)
        if method.PRUNING_TYPE != "structured":
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        dim = method.dim % t.dim()
        others = [d for d in range(t.dim()) if d != dim]
        kept = mask.sum(dim=others) != 0  # whole channels are gone
        places = kept.nonzero().flatten()
        part = method.compute_mask(t.index_select(dim, places), mask.index_select(dim, places))
        made = mask.clone()
        made[(slice(None),) * dim + (places,)] = part
        return made


def _check_amount(amount):
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if (isinstance(amount, numbers.Integral) and amount < 0) or (
        not isinstance(amount, numbers.Integral) and (float(amount) > 1.0 or float(amount) < 0.0)
    ):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0.0, 1.0] or a non-negative integer"
        )


def _number_of(amount, size):
    """How many of `size` are pruned."""
    if isinstance(amount, numbers.Integral):
        if amount > size:
            raise ValueError(
                f"amount={amount} should be smaller than the number of parameters to prune={size}"
            )
        return amount
    return round(amount * size)


class Identity(BasePruningMethod):
    """Prunes nothing."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        """The mask that was there."""
        return default_mask


class _Amount(BasePruningMethod):
    PRUNING_TYPE = "unstructured"

    def __init__(self, amount):
        _check_amount(amount)
        self.amount = amount

    def compute_mask(self, t, default_mask):
        """Without those of the lowest scores."""
        mask = default_mask.clone()
        count = _number_of(self.amount, t.nelement())
        if count:
            lowest = torch.topk(self._scores(t).reshape(-1), k=count, largest=False).indices
            mask.view(-1)[lowest] = 0
        return mask


class RandomUnstructured(_Amount):
    """Prunes elements at random."""

    def _scores(self, t):
        return torch.rand_like(t)


class L1Unstructured(_Amount):
    """Prunes the smallest elements."""

    def _scores(self, t):
        return t.abs()


class _Channels(BasePruningMethod):
    PRUNING_TYPE = "structured"

    def compute_mask(self, t, default_mask):
        """Without the channels of the lowest scores."""
        if t.dim() <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                f"{t.shape} with {t.dim()} dims"
            )
        dim = self.dim % t.dim()
        count = _number_of(self.amount, t.shape[dim])
        mask = default_mask.clone()
        if count:
            lowest = torch.topk(self._scores(t, dim), k=count, largest=False).indices
            mask[(slice(None),) * dim + (lowest,)] = 0
        return mask


class RandomStructured(_Channels):
    """Prunes channels at random."""

    def __init__(self, amount, dim=-1):
        _check_amount(amount)
        self.amount = amount
        self.dim = dim

    def _scores(self, t, dim):
        return torch.rand(t.shape[dim])


class LnStructured(_Channels):
    """Prunes the channels of the smallest n-norms."""

    def __init__(self, amount, n, dim=-1):
        _check_amount(amount)
        self.amount = amount
        self.n = n
        self.dim = dim

    def _scores(self, t, dim):
        others = [d for d in range(t.dim()) if d != dim]
        return torch.norm(t, p=self.n, dim=others)


class CustomFromMask(BasePruningMethod):
    """Prunes what a mask says."""

    PRUNING_TYPE = "global"

    def __init__(self, mask):
        self.mask = mask

    def compute_mask(self, t, default_mask):
        """What both masks leave."""
        return default_mask * self.mask.to(dtype=default_mask.dtype)


def identity(module, name):
    """Prunes nothing, but has a mask."""
    Identity.apply(module, name)
    return module


def random_unstructured(module, name, amount):
    """Prunes `amount` (a number, or a share) of the elements at random."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module, name, amount, importance_scores=None):
    """Prunes `amount` (a number, or a share) of the elements, the smallest."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module, name, amount, dim):
    """Prunes channels of `dim` at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module, name, amount, n, dim, importance_scores=None):
    """Prunes channels of `dim`, those of the smallest n-norms."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module, name, mask):
    """Prunes what is 0 in the mask."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs):
    """Prunes parameters (pairs of module and name) as if they were one tensor."""
    if not isinstance(parameters, (list, tuple)) and not hasattr(parameters, "__iter__"):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    parameters = list(parameters)
    scores = importance_scores or {}
    parts = [scores.get(pair, getattr(*pair)) for pair in parameters]
    masks = [getattr(module, name + "_mask", torch.ones_like(getattr(module, name))) for module, name in parameters]
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    container.add_pruning_method(method)
    with torch.no_grad():
        joined = torch.cat([part.detach().reshape(-1) for part in parts])
        final = container.compute_mask(joined, torch.cat([mask.reshape(-1) for mask in masks]))
    start = 0
    for module, name in parameters:
        tensor = getattr(module, name)
        part = final[start : start + tensor.numel()].view_as(tensor)
        start += tensor.numel()
        custom_from_mask(module, name, mask=part)


def remove(module, name):
    """Makes the zeros of a pruned parameter its own."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(
        f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
    )


def is_pruned(module):
    """Whether a tensor of the module, or of a module in it, is pruned."""
    return any(
        isinstance(hook, BasePruningMethod)
        for _, part in module.named_modules()
        for hook in part._forward_pre_hooks.values()
    )
