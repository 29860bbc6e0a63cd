# SPDX-License-Identifier: Apache-2.0
"""A call of a row of our op table, and the same call of real torch.

Arrays become pairs of tensors with the same elements, strides and offset in both libraries. torch is
called through torch.ops.aten.<name>, which picks the overload itself; CALLS says how for rows whose
signature differs from torch's, and ABSENT lists the rows that torch has not, or
cannot be asked for.
"""
import os
import re
import sys
import types
from pathlib import Path

os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # its warnings are not the question
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ops"))
import layouts  # noqa: E402
import mt  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

aten = torch.ops.aten

ABSENT = {
    "_linalg_lu_parts": "linalg_lu, without the permutation, which has no gradient",
    "_lu_permutation": "the permutation of linalg_lu and lu_unpack",
    "_lu_unpack_data": "lu_unpack, without the permutation",
    "mkldnn_rnn_layer": "torch's has other arguments; lstm, gru and rnn_* call ours",
    "mkldnn_rnn_layer_backward": "torch's has other arguments; gradients of lstm, gru and rnn_* pass it",
    "_grid_sampler_backward_backward": "a formula in torch, no op; second gradients of grid_sampler pass it",
    "real.part": "real, of complex numbers only: a view",
    "_ctc_loss": "torch's process ended in some layouts; nn/torch_more.py compares nn.CTCLoss",
    "ctc_loss.IntList": "torch's process ended in some layouts; nn/torch_more.py compares nn.CTCLoss",
    "ctc_loss.Tensor": "torch's process ended in some layouts; nn/torch_more.py compares nn.CTCLoss",
    "as_strided_backward": "a helper of autograd in torch, no op; gradients of as_strided pass it",
}

# Rows whose bad input is not tried, a regular expression: torch need not look at it, and for some of
# them (batch norm, pools) its process ended.
UNCHECKED = {
    "_scaled_dot_product_flash_attention_for_cpu": "torch checks in the op above it",
    "_fused_.*": "torch's optimizers check, not these",
    "_local_scalar_dense": "torch checks in item",
    "native_batch_norm": "torch checks in batch_norm, not in this",
    r".*_backward(_data)?|.*_cpu_backward": "torch trusts its own formulas, which alone call it",
}


class Pair:
    """One tensor in both libraries."""

    def __init__(self, ours, theirs):
        self.ours, self.theirs = ours, theirs


def unchecked(name):
    """Why a row's bad input is not tried; None: it is."""
    return next((why for rows, why in UNCHECKED.items() if re.fullmatch(rows, name)), None)


def dtype_name(tensor):
    return str(tensor.dtype).removeprefix("torch.")


def elements(tensor):
    """A torch tensor's elements as mt.Tensor.numpy() gives them."""
    tensor = tensor.detach()
    if tensor.dtype == torch.bfloat16:
        return np.asarray(tensor.float().numpy(), np.float32)
    return tensor.numpy(force=True)  # zeros of its own kind too


def mirror(ours, array):
    """torch's tensor with the array's elements and the strides and offset of ours."""
    dtype = getattr(torch, mt.dtype_of(array))
    shape, strides = ours.shape, ours.strides
    extent = ours.offset
    if ours.numel > 0:
        extent += 1 + sum((n - 1) * s for n, s in zip(shape, strides))
    base = torch.full((extent,), 1, dtype=dtype)
    if dtype.is_floating_point:
        base.fill_(float("nan"))  # must not be read
    once = [min(n, 1) if s == 0 else n for n, s in zip(shape, strides)]
    plain = np.array(array[tuple(slice(n) for n in once)], order="C")
    base.as_strided(once, strides, ours.offset).copy_(torch.from_numpy(plain))
    return base.as_strided(shape, strides, ours.offset)


def pairs(value, layout, keep_first=False, dense=False):
    """Arguments with a Pair for every array. dense: torch's tensors are contiguous in any case."""
    count = 0

    def one(array):
        nonlocal count
        count += 1
        here = layout
        if layout == "mixed":
            here = "contiguous" if count % 2 == 1 else "transposed"
        if count == 1 and keep_first:
            here = "contiguous"
        ours = layouts.place(array, here)
        theirs = mirror(ours, layouts.strip(array))
        return Pair(ours, theirs.contiguous() if dense else theirs)

    return layouts.map_arrays(value, one)


def side(value, name):
    """Arguments as one of the libraries takes them: "ours" or "theirs"."""
    if isinstance(value, Pair):
        return getattr(value, name)
    if isinstance(value, (list, tuple)):
        return type(value)(side(item, name) for item in value)
    if isinstance(value, dict):
        return {key: side(item, name) for key, item in value.items()}
    if isinstance(value, mt.Generator) and name == "theirs":
        return torch.Generator().manual_seed(1)
    if isinstance(value, np.generic):
        return value.item()
    return value


def convert(parameter, value):
    """A plain argument as torch wants it."""
    if isinstance(value, str) and parameter.type == "dtype":
        return getattr(torch, value)
    if isinstance(value, str) and parameter.type == "device":
        return torch.device(value)
    return value


# ---- how torch is called ----------------------------------------------------------------------


def _steps(v, tensors):
    """torch counts steps in tensors, and adds one before; ours gets the number."""
    return [torch.tensor(float(v.step)) for _ in tensors]


def _adam(function):
    def call(v):
        # torch's lr is a float here; amsgrad without its list is an empty one in both
        function(v.self, v.grads, v.exp_avgs, v.exp_avg_sqs, v.max_exp_avg_sqs, _steps(v, v.self),
                 lr=v.lr, beta1=v.beta1, beta2=v.beta2, weight_decay=v.weight_decay, eps=v.eps,
                 amsgrad=v.amsgrad, maximize=v.maximize)

    return call


def _rmsprop(v):
    """There is no fused one: the function that torch.optim.RMSprop calls, one tensor at a time."""
    from torch.optim.rmsprop import rmsprop
    rmsprop(v.self, v.grads, v.square_avgs, v.grad_avgs, v.momentum_buffer_list,
            [torch.tensor(0.0) for _ in v.self], foreach=False, lr=v.lr, alpha=v.alpha, eps=v.eps,
            weight_decay=v.weight_decay, momentum=v.momentum, centered=v.centered,
            maximize=v.maximize)


def _more(name):
    """The others have no fused one either."""
    def call(v):
        import importlib
        function = getattr(importlib.import_module(f"torch.optim.{name}"), name)
        others = [torch.tensor(float(v.step) - 1) if hasattr(v, "step") else torch.tensor(0.0) for _ in v.self]
        extra = {key: getattr(v, key) for key in ("lr", "rho", "eps", "weight_decay", "beta1", "beta2",
                                                  "momentum_decay", "decoupled_weight_decay", "lambd",
                                                  "step_size_min", "step_size_max", "etaminus", "etaplus",
                                                  "maximize") if hasattr(v, key)}
        if name == "nadam":
            mu = v.beta1 * (1 - 0.5 * 0.96 ** (v.step * v.momentum_decay))
            before = [torch.tensor(v.mu_product / mu, dtype=torch.float64) for _ in v.self]
            return function(v.self, v.grads, v.exp_avgs, v.exp_avg_sqs, before, others, foreach=False, **extra)
        if name == "asgd":
            etas = [torch.tensor(v.eta, dtype=torch.float64) for _ in v.self]
            mus = [torch.tensor(v.mu, dtype=torch.float64) for _ in v.self]
            return function(v.self, v.grads, v.axs, mus, etas, others, foreach=False, lr=0.1, t0=1e6, alpha=0.75,
                            **extra)
        states = {"adadelta": ("square_avgs", "acc_deltas"), "adamax": ("exp_avgs", "exp_infs"),
                  "radam": ("exp_avgs", "exp_avg_sqs"), "rprop": ("prevs", "step_sizes")}[name]
        return function(v.self, v.grads, *(getattr(v, s) for s in states), others, foreach=False, **extra)

    return call


def _mask(v):
    return [bool(flag) for flag in v.output_mask]


def _sort(v):
    """Ours is stable; torch's stable one is another op, with another node."""
    if v.self.requires_grad:
        return aten.sort(v.self, v.dim, v.descending)
    return aten.sort.stable(v.self, stable=True, dim=v.dim, descending=v.descending)


def _layer_norm_backward(v):
    """torch's wants a weight and a bias where it is to give their gradients (ones change nothing),
    and reads mean and rstd as if they were contiguous."""
    ones = torch.ones(v.normalized_shape, dtype=v.input.dtype)
    return aten.native_layer_norm_backward(
        v.grad_out, v.input, v.normalized_shape, v.mean.contiguous(), v.rstd.contiguous(),
        ones if v.weight is None else v.weight, ones if v.bias is None else v.bias, _mask(v))


def _batch_norm_backward(v):
    """In evaluation ours may take the saved statistics; torch takes the running ones."""
    mean, var = v.running_mean, v.running_var
    if not v.train and mean is None:
        mean, var = v.save_mean, v.save_invstd ** -2 - v.eps
    return aten.native_batch_norm_backward(v.grad_out, v.input, v.weight, mean, var, v.save_mean,
                                           v.save_invstd, v.train, v.eps, _mask(v))


def _convolution(v):
    n = len(v.stride)
    return aten.convolution(v.input, v.weight, v.bias, v.stride, v.padding, v.dilation, False,
                            [0] * n, v.groups)


def _convolution_backward(v):
    n = len(v.stride)
    bias = [v.weight.shape[0]] if v.output_mask[2] else None
    return aten.convolution_backward(v.grad_output, v.input, v.weight, bias, v.stride, v.padding,
                                     v.dilation, False, [0] * n, v.groups, _mask(v))


def _plain_attention(v):
    """What flash attention gives, of simple ops."""
    scale = v.query.shape[-1] ** -0.5 if v.scale is None else v.scale
    scores = v.query @ v.key.transpose(-2, -1) * scale
    if v.is_causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, float("-inf"))
    if v.attn_mask is not None:
        scores = scores + v.attn_mask
    return scores.softmax(-1) @ v.value, scores.logsumexp(-1)


def _attention(v):
    """torch's own only where it can be called: it wants one head size and dense rows, and an empty
    tensor ends its process. sdpa, the row above it, goes the simple way there."""
    tensors = (v.query, v.key, v.value)
    if len({t.shape[-1] for t in tensors}) == 1 and all(
            t.is_contiguous() and t.numel() > 0 for t in tensors):
        return aten._scaled_dot_product_flash_attention_for_cpu(
            *tensors, v.dropout_p, v.is_causal, attn_mask=v.attn_mask, scale=v.scale)
    return _plain_attention(v)


def _attention_backward(v):
    v.query, v.key, v.value = (t.detach().requires_grad_() for t in (v.query, v.key, v.value))
    out, _ = _plain_attention(v)
    return torch.autograd.grad(out, (v.query, v.key, v.value), v.grad_out)


# By row, with all parameters of our schema in v.
CALLS = {
    "eye": lambda v: aten.eye(v.n, dtype=v.dtype) if v.m is None else aten.eye(v.n, v.m, dtype=v.dtype),
    "bernoulli_": lambda v: aten.bernoulli_.float(v.self, v.p, generator=v.generator),
    "clone": lambda v: v.self.clone(),
    "instance_norm": lambda v: aten.instance_norm(
        v.input, v.weight, v.bias, v.running_mean, v.running_var, v.use_input_stats, v.momentum, v.eps, False),
    "to": lambda v: v.self.to(device=v.device, dtype=v.dtype, copy=v.copy),
    "item": lambda v: v.self.item(),
    "sum": lambda v: aten.sum.dim_IntList(v.self, v.dim, v.keepdim, dtype=v.dtype)
    if v.dim is not None or v.keepdim else aten.sum(v.self, dtype=v.dtype),
    "mean": lambda v: aten.mean.dim(v.self, v.dim, v.keepdim, dtype=v.dtype)
    if v.dim is not None or v.keepdim else aten.mean(v.self, dtype=v.dtype),
    "var": lambda v: aten.var.correction(v.self, v.dim, keepdim=v.keepdim, correction=v.correction),
    "std": lambda v: aten.std.correction(v.self, v.dim, keepdim=v.keepdim, correction=v.correction),
    "var_mean": lambda v: aten.var_mean.correction(v.self, v.dim, keepdim=v.keepdim,
                                                   correction=v.correction),
    "amax": lambda v: aten.amax(v.self, v.dim or [], v.keepdim),
    "amin": lambda v: aten.amin(v.self, v.dim or [], v.keepdim),
    "all": lambda v: aten.all.dims(v.self, v.dim, v.keepdim)
    if v.dim is not None or v.keepdim else aten.all(v.self),
    "any": lambda v: aten.any.dims(v.self, v.dim, v.keepdim)
    if v.dim is not None or v.keepdim else aten.any(v.self),
    "count_nonzero": lambda v: aten.count_nonzero(v.self, v.dim)
    if v.dim is not None else aten.count_nonzero(v.self, None),
    "norm": lambda v: torch.norm(v.self, v.p, v.dim, v.keepdim),
    "sum_to_size": lambda v: v.self.sum_to_size(v.size),
    "argsort": lambda v: aten.argsort.stable(v.self, stable=True, dim=v.dim, descending=v.descending),
    "sort": _sort,
    "roll": lambda v: aten.roll(v.self, v.shifts, v.dims or []),
    "meshgrid": lambda v: aten.meshgrid(v.tensors)
    if v.indexing is None else aten.meshgrid(v.tensors, indexing=v.indexing),
    "hardtanh": lambda v: F.hardtanh(v.self, v.min_val, v.max_val),
    "hardtanh_": lambda v: F.hardtanh(v.self, v.min_val, v.max_val, inplace=True),
    "one_hot": lambda v: F.one_hot(v.self, v.num_classes),
    "_softmax": lambda v: aten._softmax(v.self, v.dim, v.half_to_float),
    "_log_softmax": lambda v: aten._log_softmax(v.self, v.dim, v.half_to_float),
    "_softmax_backward_data": lambda v: aten._softmax_backward_data(
        v.grad_output, v.output, v.dim, v.grad_output.dtype),
    "_log_softmax_backward_data": lambda v: aten._log_softmax_backward_data(
        v.grad_output, v.output, v.dim, v.grad_output.dtype),
    "batch_norm": lambda v: aten.batch_norm(v.input, v.weight, v.bias, v.running_mean, v.running_var,
                                            v.training, v.momentum, v.eps, False),
    "native_layer_norm_backward": _layer_norm_backward,
    "native_batch_norm_backward": _batch_norm_backward,
    "convolution": _convolution,
    "convolution_backward": _convolution_backward,
    "embedding_dense_backward": lambda v: aten.embedding_dense_backward(
        v.grad_output, v.indices, v.num_weights, v.padding_idx, False),
    "embedding_backward": lambda v: aten.embedding_backward(
        v.grad, v.indices, v.num_weights, v.padding_idx, v.scale_grad_by_freq, v.sparse),
    "native_dropout": lambda v: aten.native_dropout(v.input, v.p, True),
    "dropout": lambda v: aten.dropout(v.input, v.p, v.train),
    "_scaled_dot_product_flash_attention_for_cpu": _attention,
    "_scaled_dot_product_flash_attention_for_cpu_backward": _attention_backward,
    "_fused_adam_": _adam(aten._fused_adam_),
    "_fused_adamw_": _adam(aten._fused_adamw_),
    "_fused_rmsprop_": _rmsprop,
    **{f"_fused_{name}_": _more(name) for name in ("adadelta", "adamax", "nadam", "radam", "asgd", "rprop")},
    "_fused_adagrad_": lambda v: aten._fused_adagrad_(
        v.self, v.grads, v.state_sums, _steps(v, v.self), lr=v.lr, lr_decay=v.lr_decay,
        weight_decay=v.weight_decay, eps=v.eps, maximize=v.maximize),
}


def packet(name):
    """torch's op of a row's name."""
    stem, _, overload = name.partition(".")
    found = getattr(aten, stem)
    return getattr(found, overload) if overload else found


def call_theirs(op, args, kwargs):
    """Calls torch with arguments as side(..., "theirs") gives them."""
    by_name = {p.name: p for p in op.parameters}
    plain = [p for p in op.parameters if not p.keyword]
    args = [convert(p, value) for p, value in zip(plain, args)]
    kwargs = {key: convert(by_name[key], value) for key, value in kwargs.items()}
    if op.name in CALLS:
        values = types.SimpleNamespace(**{p.name: p.default for p in op.parameters})
        values.__dict__.update(zip((p.name for p in plain), args), **kwargs)
        got = CALLS[op.name](values)
    else:
        got = packet(op.name)(*args, **kwargs)
    return tuple(got) if isinstance(got, tuple) else got
