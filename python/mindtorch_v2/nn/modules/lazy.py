# SPDX-License-Identifier: Apache-2.0
"""Modules that take the number of their input's channels from the first input, and become the usual module then."""

from ..parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from .batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .instancenorm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from .linear import Linear

__all__ = [
    "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d",
    "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
    "LazyInstanceNorm3d", "LazyLinear",
]  # fmt: skip


class LazyModuleMixin:
    """What lazy modules have in common; `initialize_parameters(input)` gives the parameters their sizes."""

    cls_to_become = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args, **kwargs):
        """Gives the parameters their sizes and first values."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self):
        """Whether a parameter or buffer has no size yet."""
        held = (*self._parameters.values(), *self._buffers.values())
        return any(is_lazy(tensor) for tensor in held)

    def _infer_parameters(self, module, args, kwargs=None):
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {type(self).__name__} has not been fully initialized")
        module._initialize_hook.remove()
        del module._initialize_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _load_from_state_dict(self, state_dict, prefix, *rest):
        for name, tensor in (*self._parameters.items(), *self._buffers.items()):
            given = state_dict.get(prefix + name)
            if is_lazy(tensor) and given is not None and not is_lazy(given):
                tensor.materialize(given.shape)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def reset_parameters(self):
        """Gives the parameters their first values again, once they have sizes."""
        if not self.has_uninitialized_params() and self._input_size() != 0:
            super().reset_parameters()


class LazyLinear(LazyModuleMixin, Linear):
    """Linear whose in_features is the first input's last size."""

    cls_to_become = Linear

    def __init__(self, out_features, bias=True, device=None, dtype=None):
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def _input_size(self):
        return self.in_features

    def initialize_parameters(self, input):
        """Sizes from the input."""
        if self.has_uninitialized_params():
            self.in_features = input.shape[-1]
            self.weight.materialize((self.out_features, self.in_features))
            if self.bias is not None:
                self.bias.materialize((self.out_features,))
        if self.in_features == 0:
            self.in_features = self.weight.shape[-1]
            return
        self.reset_parameters()


class _LazyConv(LazyModuleMixin):
    _dims: int

    def __init__(self, out_channels, kernel_size, *args, device=None, dtype=None, **kwargs):
        base = type(self).cls_to_become
        given = _by_name(base, args, kwargs)
        bias, groups = given.pop("bias", True), given.get("groups", 1)
        super().__init__(0, 0, kernel_size, bias=False, **{**given, "groups": 1})
        self.groups = groups
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def _input_size(self):
        return self.in_channels

    def initialize_parameters(self, input, *args, **kwargs):
        """Sizes from the input."""
        dims = self._dims
        if input.dim() not in (dims + 1, dims + 2):
            raise RuntimeError(
                f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {type(self).__name__}, but got "
                f"input of size: {input.shape}"
            )
        if not self.has_uninitialized_params():
            return
        self.in_channels = input.shape[input.dim() - dims - 1]
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        sides = (self.in_channels, self.out_channels // self.groups)
        if not self.transposed:
            sides = (self.out_channels, self.in_channels // self.groups)
        self.weight.materialize((*sides, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


def _by_name(base, args, kwargs):
    """Arguments after kernel_size by their names."""
    import inspect

    names = list(inspect.signature(base.__init__).parameters)[4:]
    return {**dict(zip(names, args)), **kwargs}


class LazyConv1d(_LazyConv, Conv1d):
    """Conv1d whose in_channels is the first input's."""

    cls_to_become = Conv1d
    _dims = 1


class LazyConv2d(_LazyConv, Conv2d):
    """Conv2d whose in_channels is the first input's."""

    cls_to_become = Conv2d
    _dims = 2


class LazyConv3d(_LazyConv, Conv3d):
    """Conv3d whose in_channels is the first input's."""

    cls_to_become = Conv3d
    _dims = 3


class LazyConvTranspose1d(_LazyConv, ConvTranspose1d):
    """ConvTranspose1d whose in_channels is the first input's."""

    cls_to_become = ConvTranspose1d
    _dims = 1


class LazyConvTranspose2d(_LazyConv, ConvTranspose2d):
    """ConvTranspose2d whose in_channels is the first input's."""

    cls_to_become = ConvTranspose2d
    _dims = 2


class LazyConvTranspose3d(_LazyConv, ConvTranspose3d):
    """ConvTranspose3d whose in_channels is the first input's."""

    cls_to_become = ConvTranspose3d
    _dims = 3


class _LazyNorm(LazyModuleMixin):
    def __init__(
        self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *, bias=True
    ):
        super().__init__(0, eps, momentum, False, False)
        made = {"device": device, "dtype": dtype}
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(**made)
            if bias:
                self.bias = UninitializedParameter(**made)
        if track_running_stats:
            import mindtorch_v2 as torch

            self.running_mean = UninitializedBuffer(**made)
            self.running_var = UninitializedBuffer(**made)
            self.num_batches_tracked = torch.tensor(0, dtype=torch.int64, device=device)

    def _input_size(self):
        return self.num_features

    def initialize_parameters(self, input):
        """Sizes from the input."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        for tensor in (*self._parameters.values(), *self._buffers.values()):
            if is_lazy(tensor):
                tensor.materialize((self.num_features,))
        self.reset_parameters()


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """BatchNorm1d whose num_features is the first input's."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """BatchNorm2d whose num_features is the first input's."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """BatchNorm3d whose num_features is the first input's."""

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """InstanceNorm1d whose num_features is the first input's."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """InstanceNorm2d whose num_features is the first input's."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """InstanceNorm3d whose num_features is the first input's."""

    cls_to_become = InstanceNorm3d
