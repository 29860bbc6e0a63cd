# SPDX-License-Identifier: Apache-2.0
"""torch.nn.functional: layers and losses as functions.

Thin: checks and spellings are here, the work is in rows of the op table, called so that a profile
shows torch's ops in torch's order. What no row can do raises NotImplementedError and says so.
"""

import math
import warnings

import mindtorch_v2 as torch

from . import _reduction
from ._bags import *  # noqa: F403
from ._fractional import *  # noqa: F403
from ._images import *  # noqa: F403
from ._losses import *  # noqa: F403
from .. import _overriding
from .._C import ops

# ---- products, convolutions ----

linear = ops.linear


def bilinear(input1, input2, weight, bias=None):
    """y[o] = x1 . W[o] . x2 + b[o]."""
    left = torch.matmul(input1.unsqueeze(-2).unsqueeze(-2), weight).squeeze(-2)
    result = torch.matmul(left, input2.unsqueeze(-1)).squeeze(-1)
    return result if bias is None else result + bias


pdist = torch.pdist


def _pair_of(value, count):
    if isinstance(value, int):
        return (value,) * count
    value = tuple(value)
    return value * count if len(value) == 1 else value


def _convolve(run, count, input, weight, bias, stride, padding, dilation, groups):
    """Convolution with padding by name. 'same' may need one more at the end of a dimension: that much
    is padded on both sides, and what the beginning then has too much is cut off."""
    if padding == "valid":
        return run(input, weight, bias, stride, (0,) * count, dilation, groups)
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if any(step != 1 for step in _pair_of(stride, count)):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    kernel, spread = weight.shape[2:], _pair_of(dilation, count)
    totals = [d * (k - 1) for d, k in zip(spread, kernel)]
    result = run(input, weight, bias, stride, tuple((total + 1) // 2 for total in totals), dilation, groups)
    first = result.dim() - count
    for place, total in enumerate(totals):
        if total % 2:
            dim = first + place
            result = result.narrow(dim, 1, result.shape[dim] - 1)
    return result


def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolution over the last dimension; padding may be 'same' or 'valid'."""
    if isinstance(padding, str):
        return _convolve(ops.conv1d, 1, input, weight, bias, stride, padding, dilation, groups)
    return ops.conv1d(input, weight, bias, stride, padding, dilation, groups)


def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolution over the last two dimensions; padding may be 'same' or 'valid'."""
    if isinstance(padding, str):
        return _convolve(ops.conv2d, 2, input, weight, bias, stride, padding, dilation, groups)
    return ops.conv2d(input, weight, bias, stride, padding, dilation, groups)


def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolution over the last three dimensions; padding may be 'same' or 'valid'."""
    if isinstance(padding, str):
        return _convolve(ops.conv3d, 3, input, weight, bias, stride, padding, dilation, groups)
    return ops.conv3d(input, weight, bias, stride, padding, dilation, groups)


def pad(input, pad, mode="constant", value=None):
    """Adds `value` (default 0) around; pad = (left, right, top, bottom, ...) from the last dimension on."""
    if mode not in ("constant", "circular", "replicate", "reflect"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if mode == "constant":
        return ops.pad(input, pad, mode, value)
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) // 2 > input.dim():
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding "
            f"length {len(pad)} and input of dimension {input.dim()}"
        )
    if value is not None and value != 0:
        raise ValueError(f'Padding mode "{mode}" doesn\'t take in value argument')
    return _pad_picked(input, pad, mode)


def _pad_picked(input, pad, mode):
    """circular, replicate, reflect: rows picked by index, dimension by dimension."""
    for place in range(len(pad) // 2):
        dim = input.dim() - 1 - place
        size = input.shape[dim]
        before, after = pad[2 * place], pad[2 * place + 1]
        limit = {"circular": size, "reflect": size - 1, "replicate": math.inf}[mode]
        if before > limit or after > limit:
            raise RuntimeError(
                "Padding size should be less than the corresponding input dimension, but got: padding "
                f"({before}, {after}) at dimension {dim} of input {list(input.shape)}"
            )
        if size + before + after < 0 or before < -size or after < -size:
            raise RuntimeError(
                f"The input size {size}, plus negative padding {before} and {after}, resulted in a negative "
                f"output size, which is invalid. Check dimension {dim} of your input."
            )
        if before or after:
            input = input.index_select(dim, _picked_rows(mode, size, before, after, input.device))
    return input


def _picked_rows(mode, size, before, after, device):
    """The row of the input for each place."""
    index = torch.arange(-before, size + after, device=device)
    if mode == "circular":
        return index % size
    if mode == "replicate":
        return index.clamp(0, size - 1)
    index = index.abs()
    return torch.where(index < size, index, 2 * (size - 1) - index)


# ---- pooling ----


def _stride_or_empty(stride):
    return [] if stride is None else stride


def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    """Means over windows of the last dimension."""
    return ops.avg_pool1d(input, kernel_size, _stride_or_empty(stride), padding, ceil_mode, count_include_pad)


def avg_pool2d(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    """Means over windows of the last two dimensions."""
    return ops.avg_pool2d(
        input, kernel_size, _stride_or_empty(stride), padding, ceil_mode, count_include_pad, divisor_override
    )


def max_pool1d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """Largest values over windows of the last dimension, and where they are."""
    stride = _stride_or_empty(stride)
    return tuple(ops.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode))


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Largest values over windows of the last dimension."""
    if return_indices:
        return max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return ops.max_pool1d(input, kernel_size, _stride_or_empty(stride), padding, dilation, ceil_mode)


def max_pool2d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """Largest values over windows of the last two dimensions, and where they are."""
    stride = _stride_or_empty(stride)
    return tuple(ops.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode))


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Largest values over windows of the last two dimensions."""
    if return_indices:
        return max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return ops.max_pool2d(input, kernel_size, _stride_or_empty(stride), padding, dilation, ceil_mode)


def _output_size(input, output_size, count):
    """An int or a tuple with None where the input's size stays."""
    if isinstance(output_size, int) or output_size is None:
        output_size = (output_size,) * count
    if len(output_size) != count:
        raise ValueError(f"output_size must have {count} elements, but got {tuple(output_size)}")
    sizes = input.shape[-count:]
    return tuple(size if wanted is None else wanted for wanted, size in zip(output_size, sizes))


def adaptive_avg_pool1d(input, output_size):
    """Means over windows chosen so that the last dimension becomes output_size."""
    return ops.adaptive_avg_pool1d(input, output_size)


def adaptive_avg_pool2d(input, output_size):
    """Means over windows chosen so that the last two dimensions become output_size."""
    return ops.adaptive_avg_pool2d(input, _output_size(input, output_size, 2))


def adaptive_max_pool2d_with_indices(input, output_size, return_indices=False):
    """Largest values over windows chosen by the wanted size, and where they are."""
    return tuple(ops.adaptive_max_pool2d(input, _output_size(input, output_size, 2)))


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """Largest values over windows chosen so that the last two dimensions become output_size."""
    result = adaptive_max_pool2d_with_indices(input, output_size)
    return result if return_indices else result[0]


# ---- dropout ----


def _check_probability(p):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input, p=0.5, training=True, inplace=False):
    """Zeroes elements with probability p and scales the others by 1 / (1 - p)."""
    _check_probability(p)
    return ops.dropout_(input, p, training) if inplace else ops.dropout(input, p, training)


def _feature_dropout(input, p, training, inplace):
    return ops.feature_dropout_(input, p, training) if inplace else ops.feature_dropout(input, p, training)


def dropout1d(input, p=0.5, training=True, inplace=False):
    """dropout of whole channels of (N, C, L) or (C, L)."""
    _check_probability(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. Note that dropout1d "
            "exists to provide channel-wise dropout on inputs with 1 spatial dimension, a channel "
            "dimension, and an optional batch dimension (i.e. 2D or 3D inputs)."
        )
    if input.dim() == 3:
        return _feature_dropout(input, p, training, inplace)
    result = _feature_dropout(input.unsqueeze(0), p, training, inplace)
    return input if inplace else result.squeeze(0)


def dropout2d(input, p=0.5, training=True, inplace=False):
    """dropout of whole channels of (N, C, H, W)."""
    _check_probability(p)
    if input.dim() not in (3, 4):
        warnings.warn(
            f"dropout2d: Received a {input.dim()}-D input to dropout2d, which is deprecated and will "
            "result in an error in a future release. To retain the behavior and silence this warning, "
            "please use dropout instead. Note that dropout2d exists to provide channel-wise dropout on "
            "inputs with 2 spatial dimensions, a channel dimension, and an optional batch dimension (i.e. "
            "3D or 4D inputs).",
            stacklevel=2,
        )
    elif input.dim() == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout "
            "behavior is desired - input is interpreted as shape (N, C, L), where C is the channel dim. "
            "This behavior will change in a future release to interpret the input as one without a batch "
            "dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise dropout behavior, please "
            "switch to using dropout1d instead.",
            stacklevel=2,
        )
    return _feature_dropout(input, p, training, inplace)


def dropout3d(input, p=0.5, training=True, inplace=False):
    """dropout of whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    _check_probability(p)
    if input.dim() not in (4, 5):
        warnings.warn(
            f"dropout3d: Received a {input.dim()}-D input to dropout3d, which is deprecated and will "
            "result in an error in a future release. To retain the behavior and silence this warning, "
            "please use dropout instead. Note that dropout3d exists to provide channel-wise dropout on "
            "inputs with 3 spatial dimensions, a channel dimension, and an optional batch dimension (i.e. "
            "4D or 5D inputs).",
            stacklevel=2,
        )
    if input.dim() != 4:
        return _feature_dropout(input, p, training, inplace)
    result = _feature_dropout(input.unsqueeze(0), p, training, inplace)
    return input if inplace else result.squeeze(0)


# ---- activations ----


def relu(input, inplace=False):
    """max(0, x)."""
    return ops.relu_(input) if inplace else ops.relu(input)


relu_ = ops.relu_
leaky_relu_, elu_, selu_, celu_ = ops.leaky_relu_, ops.elu_, ops.selu_, ops.celu_
hardtanh_, threshold_ = ops.hardtanh_, ops.threshold_


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """x where positive, negative_slope * x elsewhere."""
    if inplace:
        return ops.leaky_relu_(input, negative_slope)
    return ops.leaky_relu(input, negative_slope)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """x where positive, elsewhere x times a slope between lower and upper: random in training, else their mean."""
    return torch.rrelu_(input, lower, upper, training) if inplace else torch.rrelu(input, lower, upper, training)


def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False):
    """rrelu() in place."""
    return rrelu(input, lower, upper, training, inplace=True)


def elu(input, alpha=1.0, inplace=False):
    """x where positive, alpha * (exp(x) - 1) elsewhere."""
    return ops.elu_(input, alpha) if inplace else ops.elu(input, alpha)


def selu(input, inplace=False):
    """elu with the constants that keep mean and variance."""
    return ops.selu_(input) if inplace else ops.selu(input)


def celu(input, alpha=1.0, inplace=False):
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""
    return ops.celu_(input, alpha) if inplace else ops.celu(input, alpha)


def gelu(input, approximate="none"):
    """x times the normal distribution's share below x; approximate='tanh' by tanh."""
    return ops.gelu(input, approximate=approximate)


def silu(input, inplace=False):
    """x * sigmoid(x)."""
    return ops.silu_(input) if inplace else ops.silu(input)


def mish(input, inplace=False):
    """x * tanh(softplus(x))."""
    return ops.mish_(input) if inplace else ops.mish(input)


def sigmoid(input):
    """1 / (1 + exp(-x))."""
    return input.sigmoid()


def tanh(input):
    """The hyperbolic tangent."""
    return input.tanh()


def logsigmoid(input):
    """log(sigmoid(x))."""
    return ops.log_sigmoid(input)


def softplus(input, beta=1, threshold=20):
    """log(1 + exp(beta x)) / beta; x itself beyond the threshold."""
    return ops.softplus(input, beta, threshold)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """x between min_val and max_val, the nearer of them elsewhere."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if inplace:
        return ops.hardtanh_(input, min_val, max_val)
    return ops.hardtanh(input, min_val, max_val)


def relu6(input, inplace=False):
    """hardtanh between 0 and 6."""
    return ops.relu6_(input) if inplace else ops.relu6(input)


def hardsigmoid(input, inplace=False):
    """relu6(x + 3) / 6."""
    return ops.hardsigmoid_(input) if inplace else ops.hardsigmoid(input)


def hardswish(input, inplace=False):
    """x * relu6(x + 3) / 6."""
    return ops.hardswish_(input) if inplace else ops.hardswish(input)


def threshold(input, threshold, value, inplace=False):
    """x where it is larger than the threshold, value elsewhere."""
    return ops.threshold_(input, threshold, value) if inplace else ops.threshold(input, threshold, value)


prelu = ops.prelu


def glu(input, dim=-1):
    """First half times sigmoid of the second."""
    return ops.glu(input, dim)


def softsign(input):
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def tanhshrink(input):
    """x - tanh(x)."""
    return input - input.tanh()


def _softmax_dim(name, ndim, stacklevel):
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an "
        "argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """exp(x), scaled to sum to one along dim."""
    if dim is None:
        dim = _softmax_dim("softmax", input.dim(), _stacklevel)
    return ops.softmax(input, dim, dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """softmax of -x."""
    if dim is None:
        dim = _softmax_dim("softmin", input.dim(), _stacklevel)
    return ops.softmax(-input, dim, dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """log(softmax(x)), computed in one piece."""
    if dim is None:
        dim = _softmax_dim("log_softmax", input.dim(), _stacklevel)
    return ops.log_softmax(input, dim, dtype)


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """A sample of the relaxed one-hot distribution; hard: one-hot with the soft one's gradient."""
    gumbels = -torch.empty_like(logits).exponential_().log()
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    return torch.zeros_like(logits).scatter_(dim, index, 1.0) - soft.detach() + soft


# ---- normalisation ----


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Mean 0 and variance 1 over the last dimensions, then weight and bias."""
    return ops.layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """x / sqrt(mean(x^2) + eps) over the last dimensions, then weight."""
    return ops.rms_norm(input, normalized_shape, weight, eps)


def _refuse_single_values(sizes):
    """(N, C, ...) with one value per channel: its variance is no estimate."""
    if len(sizes) and sizes[0] * math.prod(sizes[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {sizes}")


def batch_norm(
    input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5
):
    """Mean 0 and variance 1 per channel over the batch (or by running_mean/var), then weight and bias."""
    if training:
        _refuse_single_values(input.shape)
    return ops.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Mean 0 and variance 1 over groups of channels, then weight and bias per channel."""
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    if num_groups > 0:
        batch, channels, *rest = input.shape
        _refuse_single_values([batch * channels // num_groups, num_groups, *rest])
    return ops.group_norm(input, num_groups, weight, bias, eps)


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """x / max(norm of x along dim, eps)."""
    if out is not None:
        raise NotImplementedError("normalize(out=...) is not supported")
    norm = ops.linalg_vector_norm(input, p, [dim] if isinstance(dim, int) else dim, True)
    return input / norm.clamp_min(eps).expand_as(input)


# ---- embedding ----


def embedding(
    input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False
):
    """Rows of weight by index. The row padding_idx gets no gradient."""
    if padding_idx is None:
        padding_idx = -1
    elif padding_idx >= 0:
        if padding_idx >= weight.size(0):
            raise AssertionError("Padding_idx must be within num_embeddings")
    else:
        if padding_idx < -weight.size(0):
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx = weight.size(0) + padding_idx
    if max_norm is not None:
        raise NotImplementedError("embedding(max_norm=...) is not supported")
    if scale_grad_by_freq:
        raise NotImplementedError("embedding(scale_grad_by_freq=True) is not supported")
    if sparse:
        raise NotImplementedError("embedding(sparse=True) is not supported: there are no sparse gradients")
    return ops.embedding(weight, input, padding_idx)


def one_hot(tensor, num_classes=-1):
    """A new last dimension with 1 at the value's place and 0 elsewhere."""
    return ops.one_hot(tensor, num_classes)


# ---- losses ----


def _reduction_of(size_average, reduce, reduction):
    if size_average is None and reduce is None:
        return _reduction.get_enum(reduction)
    return _reduction.legacy_get_enum(size_average, reduce)


def _warn_sizes(input, target):
    if target.size() != input.size():
        warnings.warn(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). "
            "This will likely lead to incorrect results due to broadcasting. Please ensure they have the "
            "same size.",
            stacklevel=3,
        )


def _weighted(loss, weight, input, reduction):
    """Reduction of element losses with a weight each; mean: by the sum of the weights."""
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    loss = loss * weight
    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum()
    if reduction == "mean":
        return loss.sum() / weight.sum()
    raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """(input - target)^2."""
    _warn_sizes(input, target)
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    input, target = ops.broadcast_tensors([input, target])
    if weight is not None:
        return _weighted((input - target).pow(2), weight, input, reduction)
    return ops.mse_loss(input, target, _reduction.get_enum(reduction))


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """|input - target|."""
    _warn_sizes(input, target)
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    input, target = ops.broadcast_tensors([input, target])
    if weight is not None:
        return _weighted((input - target).abs(), weight, input, reduction)
    return ops.l1_loss(input, target, _reduction.get_enum(reduction))


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """Square below beta, absolute value above."""
    _warn_sizes(input, target)
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    input, target = ops.broadcast_tensors([input, target])
    if beta == 0.0:
        return ops.l1_loss(input, target, _reduction.get_enum(reduction))
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    return ops.smooth_l1_loss(input, target, _reduction.get_enum(reduction), beta)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """Square below delta, delta times absolute value above."""
    _warn_sizes(input, target)
    input, target = ops.broadcast_tensors([input, target])
    number = _reduction.get_enum(reduction)
    if weight is None:
        return ops.huber_loss(input, target, number, delta)
    loss = ops.huber_loss(input, target, 0, delta)
    if reduction == "mean":  # here torch divides by the count, not by the weights' sum
        return _weighted(loss, weight, input, "none").mean()
    return _weighted(loss, weight, input, reduction)


def cross_entropy(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
):
    """-log softmax(input)[target]; target may hold probabilities."""
    number = _reduction_of(size_average, reduce, reduction)
    return ops.cross_entropy_loss(input, target, weight, number, ignore_index, label_smoothing)


def nll_loss(
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"
):
    """-input[target], for log probabilities."""
    number = _reduction_of(size_average, reduce, reduction)
    return ops.nll_loss_nd(input, target, weight, number, ignore_index)


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """-(t log x + (1 - t) log(1 - x)), for probabilities."""
    number = _reduction_of(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) "
            "is deprecated. Please ensure they have the same size."
        )
    if weight is not None and weight.shape != target.shape:
        weight = weight.expand(torch.broadcast_shapes(weight.shape, target.shape))
    return ops.binary_cross_entropy(input, target, weight, number)


def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    """binary_cross_entropy of sigmoid(input), computed in one piece."""
    number = _reduction_of(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    return ops.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """target * (log target - input), for log probabilities."""
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support "
            "size.'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.'mean' will be changed to behave the same as 'batchmean' in the next major "
            "release.",
            stacklevel=2,
        )
    number = _reduction.get_enum("sum" if reduction == "batchmean" else reduction)
    loss = ops.kl_div(input, target, number, log_target=log_target)
    if reduction == "batchmean" and input.dim() != 0:
        loss = loss / input.size()[0]
    return loss


# ---- distances ----


cosine_similarity = ops.cosine_similarity


# ---- attention ----


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """softmax(query key^T scale + mask) value."""
    if enable_gqa and query.shape[-3] != key.shape[-3]:
        groups = query.shape[-3] // key.shape[-3]
        if groups * key.shape[-3] != query.shape[-3]:
            raise RuntimeError("Number of heads in key and value must divide the number of heads in query")
        key = _repeat_heads(key, groups)
        value = _repeat_heads(value, groups)
    return ops.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale=scale)


def _repeat_heads(tensor, groups):
    *lead, heads, length, width = tensor.shape
    spread = tensor.unsqueeze(-3).expand(*lead, heads, groups, length, width)
    return spread.reshape(*lead, heads * groups, length, width)


from ._attention import multi_head_attention_forward  # noqa: E402 - it uses what is above


def __getattr__(name):
    raise AttributeError(f"mindtorch_v2.nn.functional has no '{name}': no row of the op table does it")


_overriding.offer_all(globals())
