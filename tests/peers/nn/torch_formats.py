# SPDX-License-Identifier: Apache-2.0
"""Memory formats against torch's: the strides and values of results of channels-last tensors: torch_formats.py [-v]

The last line: N passed, N failed, N skipped.
"""
import sys
import warnings

import mindtorch_v2 as mt
import numpy as np
import torch

SHAPES = [(2, 3, 4, 5), (2, 1, 4, 5), (2, 3, 1, 1), (1, 3, 4, 5), (1, 1, 1, 1), (2, 3, 1, 5), (2, 3, 4, 5, 4)]
# Results that are contiguous here and channels last in torch: docs/differences.md names them.
KNOWN = {"pixel_shuffle", "avg_pool3d", "max_pool3d", "conv3d"}


def last(t, x):
    return t.channels_last if x.dim() == 4 else t.channels_last_3d


def formats(t, x):
    """Ways to a format, and what a tensor says of its own."""
    c = last(t, x)
    yield "contiguous", x.contiguous(memory_format=c)
    yield "to", x.to(memory_format=c)
    yield "to dtype", x.to(t.float64, memory_format=c)
    yield "clone", x.clone(memory_format=c)
    yield "clone back", x.to(memory_format=c).clone(memory_format=t.contiguous_format)
    yield "contiguous back", x.to(memory_format=c).contiguous()
    for name in ("ones_like", "zeros_like"):
        yield name, getattr(t, name)(x, memory_format=c)
        yield name + " kept", getattr(t, name)(x.to(memory_format=c))
        yield name + " back", getattr(t, name)(x.to(memory_format=c), memory_format=t.contiguous_format)
        yield name + " preserved", getattr(t, name)(x.to(memory_format=c), memory_format=t.preserve_format)
    yield "empty_like", t.empty_like(x, memory_format=c) * 0
    yield "full_like", t.full_like(x, 2.0, memory_format=c)
    yield "empty", t.empty(x.shape, memory_format=c) * 0
    yield "is", [x.is_contiguous(memory_format=c), x.to(memory_format=c).is_contiguous(memory_format=c),
                 x.to(memory_format=c).is_contiguous(), x.is_contiguous(memory_format=t.contiguous_format)]


def pointwise(t, x):
    yield "add", x + 1
    yield "mul", x * x
    yield "plain", x * t.ones(x.shape)
    yield "relu", x.relu()
    yield "where", t.where(x > 0, x, 0.0)
    yield "gelu", t.nn.functional.gelu(x)
    yield "channel", x * t.ones((x.shape[1],) + (1,) * (x.dim() - 2))
    yield "cat", t.cat([x, x], 1)
    yield "cat mixed", t.cat([x, x.contiguous()], 1)
    yield "detach", x.detach().clone()
    yield "double", x.double()
    yield "dropout", t.nn.functional.dropout(x, 0.0)


def layers(t, x):
    F, n = t.nn.functional, x.dim() - 2
    channels = x.shape[1]
    yield f"conv{n}d", getattr(F, f"conv{n}d")(x, t.ones((4, channels) + (1,) * n))
    yield "batch_norm", F.batch_norm(x, t.zeros(channels), t.ones(channels))
    if x.numel() > channels:
        yield "batch_norm training", F.batch_norm(x, None, None, training=True)
    yield f"avg_pool{n}d", getattr(F, f"avg_pool{n}d")(x, 1)
    yield f"max_pool{n}d", getattr(F, f"max_pool{n}d")(x, 1)
    if n == 2:
        yield "weights", F.conv2d(x.contiguous(), t.ones((4, channels, 1, 1)).to(memory_format=t.channels_last))
        yield "padding", F.conv2d(x, t.ones((4, channels, 3, 3)), t.ones(4), padding=1)
        yield "conv_transpose", F.conv_transpose2d(x, t.ones((channels, 2, 2, 2)))
        yield "adaptive_avg_pool2d", F.adaptive_avg_pool2d(x, (2, 2))
        yield "adaptive_avg_pool2d 1", F.adaptive_avg_pool2d(x, 1)
        yield "adaptive_max_pool2d", F.adaptive_max_pool2d(x, (1, 2))
        yield "max indices", F.max_pool2d(x, 1, return_indices=True)[1]
        yield "nearest", F.interpolate(x, scale_factor=2)
        yield "bilinear", F.interpolate(x, size=(3, 5), mode="bilinear")
        yield "pixel_shuffle", F.pixel_shuffle(t.cat([x] * 4, 1), 2)


def gradients(t, x):
    F = t.nn.functional
    if x.dim() != 4 or min(x.shape[2:]) < 2:
        return
    x = x.clone().requires_grad_()
    weight = t.ones((4, x.shape[1], 2, 2)).to(memory_format=t.channels_last).requires_grad_()
    F.max_pool2d(F.batch_norm(F.conv2d(x, weight).sin(), None, None, training=True), 2).sum().backward()
    yield "gradient of x", x.grad
    yield "gradient of weight", weight.grad


def modules(t, x):
    nn = t.nn
    if x.dim() != 4:
        return
    model = nn.Sequential(nn.Conv2d(x.shape[1], 4, 1), nn.BatchNorm2d(4), nn.ReLU()).to(memory_format=t.channels_last)
    for p in model.parameters():
        with t.no_grad():
            p.fill_(0.5)
    yield from ((f"parameter {name}", p) for name, p in model.named_parameters())
    yield "model", model.eval()(x)
    plain = t.nn.utils.convert_conv2d_weight_memory_format(nn.Sequential(nn.Conv2d(3, 4, 2)), t.channels_last)
    yield "convert", plain[0].weight.detach() * 0


def found(t, shape, given):
    x = t.tensor(np.random.default_rng(1).normal(size=shape).astype(np.float32))
    groups = [formats(t, x)] if not given else [g(t, x.to(memory_format=last(t, x)))
                                                for g in (pointwise, layers, gradients, modules)]
    return [item for group in groups for item in group]


def describe(value):
    if isinstance(value, list):
        return value, None
    # the stride of a dimension of size 1 has no meaning
    strides = tuple(stride if size > 1 else 0 for size, stride in zip(value.shape, value.stride()))
    return (tuple(value.shape), strides), value.detach().numpy()


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    passed = failed = skipped = 0
    for shape in SHAPES:
        for given in (False, True):
            ours, theirs = found(mt, shape, given), found(torch, shape, given)
            for (name, a), (_, b) in zip(ours, theirs, strict=True):
                (mine, my_values), (its, its_values) = describe(a), describe(b)
                same = my_values is None or np.allclose(my_values, its_values, rtol=1e-4, atol=1e-5, equal_nan=True)
                if mine == its and same:
                    passed += 1
                elif same and name in KNOWN:
                    skipped += 1
                else:
                    failed += 1
                    print(f"FAIL {name} of {shape}: {mine}, torch's {its}{'' if same else ', other values'}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
