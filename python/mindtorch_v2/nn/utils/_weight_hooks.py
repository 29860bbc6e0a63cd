# SPDX-License-Identifier: Apache-2.0
"""weight_norm and spectral_norm as hooks before forward: the older form, with the older names of parameters."""

import warnings

import mindtorch_v2 as torch

from .. import functional as F
from ..parameter import Parameter
from .parametrizations import as_matrix, norm_except_dim, scaled_direction


class WeightNorm:
    """weight = weight_g * weight_v / |weight_v|"""

    def __init__(self, name, dim):
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module):
        """The weight of the module's g and v."""
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return scaled_direction(v, g, self.dim)

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module))


class SpectralNorm:
    """weight = weight_orig / its largest singular value"""

    def __init__(self, name="weight", n_power_iterations=1, dim=0, eps=1e-12):
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def compute_weight(self, module, do_power_iteration):
        """The weight of the module's original one."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            with torch.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(torch.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(torch.mv(matrix, v), dim=0, eps=self.eps))
            u, v = u.clone(), v.clone()
        return weight / torch.dot(u, torch.mv(matrix, v))

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module, module.training))


def _find(module, kind, name):
    """(number, hook) of the module's hook for this name; (None, None): there is none."""
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, kind) and hook.name == name:
            return number, hook
    return None, None


def _replace(module, hook, value):
    delattr(module, hook.name)
    module.register_parameter(hook.name, Parameter(value.detach()))


def weight_norm(module, name="weight", dim=0):
    """The weight as length (name_g) times direction (name_v)."""
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    if _find(module, WeightNorm, name)[1] is not None:
        raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
    hook = WeightNorm(name, dim)
    weight = getattr(module, name)
    del module._parameters[name]
    module.register_parameter(name + "_g", Parameter(norm_except_dim(weight, hook.dim).detach()))
    module.register_parameter(name + "_v", Parameter(weight.detach()))
    setattr(module, name, hook.compute_weight(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module, name="weight"):
    """The weight is a parameter again."""
    number, hook = _find(module, WeightNorm, name)
    if hook is None:
        raise ValueError(f"weight_norm of '{name}' not found in {module}")
    value = hook.compute_weight(module)
    del module._parameters[name + "_g"], module._parameters[name + "_v"], module._forward_pre_hooks[number]
    _replace(module, hook, value)
    return module


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """The weight divided by its largest singular value."""
    if _find(module, SpectralNorm, name)[1] is not None:
        raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    hook = SpectralNorm(name, n_power_iterations, dim, eps)
    weight = module._parameters[name]
    if weight is None:
        raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
    with torch.no_grad():
        matrix = as_matrix(weight, dim)
        u = F.normalize(matrix.new_empty(matrix.size(0)).normal_(0, 1), dim=0, eps=eps)
        v = F.normalize(matrix.new_empty(matrix.size(1)).normal_(0, 1), dim=0, eps=eps)
    del module._parameters[name]
    module.register_parameter(name + "_orig", weight)
    setattr(module, name, weight.data)
    module.register_buffer(name + "_u", u)
    module.register_buffer(name + "_v", v)
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module, name="weight"):
    """The weight is a parameter again."""
    number, hook = _find(module, SpectralNorm, name)
    if hook is None:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    with torch.no_grad():
        value = hook.compute_weight(module, False)
    del module._forward_pre_hooks[number], module._parameters[name + "_orig"]
    del module._buffers[name + "_u"], module._buffers[name + "_v"]
    _replace(module, hook, value)
    return module
