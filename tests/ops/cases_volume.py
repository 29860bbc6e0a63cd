# SPDX-License-Identifier: Apache-2.0
"""Cases of ops_volume.def."""
import itertools
import math

import numpy as np
from opcases import FLOATS, HALVES, Bad, Case, Fixed, cases

VOLUMES = {"0-d": "takes volumes", "empty": "volumes are not empty"}
SOME = ("contiguous", "mixed")
REDUCTIONS = (0, 1, 2)


# ---- pools: every window by itself ---------------------------------------------------------------

def spread(value, n=3):
    return tuple(value) * (n if len(value) == 1 else 1)


def out_size(size, k, s, p, d, ceil_mode):
    out = (size + 2 * p - d * (k - 1) - 1 + (s - 1 if ceil_mode else 0)) // s + 1
    return out - 1 if ceil_mode and (out - 1) * s >= size + p else out


def window_lists(sides, kernel, stride, padding, dilation, ceil_mode):
    """For each dimension: the places of each window, inside only, and its length with padding."""
    found = []
    for side, k, s, p, d in zip(sides, kernel, stride, padding, dilation):
        line = []
        for o in range(out_size(side, k, s, p, d, ceil_mode)):
            start = o * s - p
            inside = [e for e in range(start, start + k * d, d) if 0 <= e < side]
            line.append((inside, min(start + k, side + p) - start))
        found.append(line)
    return found


def pooled(a, lists, function):
    """function(block, places, lengths) of every window; a has its volume last."""
    out = np.empty(a.shape[:-3] + tuple(len(line) for line in lists))
    for at in np.ndindex(*out.shape[-3:]):
        places = [lists[i][at[i]][0] for i in range(3)]
        block = a[..., places[0], :, :][..., places[1], :][..., places[2]]
        out[(..., *at)] = function(block, places, [lists[i][at[i]][1] for i in range(3)])
    return out


def flat(block):
    return block.reshape(block.shape[:-3] + (-1,))


def largest(a, lists):
    """Values and places in the volume."""
    def where(block, places, lengths):
        numbers = [(z * a.shape[-2] + y) * a.shape[-1] + x for z, y, x in itertools.product(*places)]
        return np.array(numbers)[flat(block).argmax(-1)]

    return (pooled(a, lists, lambda block, places, lengths: flat(block).max(-1)),
            pooled(a, lists, where).astype(np.int64))


def max_pool(a, kernel_size, stride=(), padding=(0, 0, 0), dilation=(1, 1, 1), ceil_mode=False):
    kernel = spread(kernel_size)
    lists = window_lists(a.shape[-3:], kernel, spread(stride) if stride else kernel, spread(padding), spread(dilation),
                         ceil_mode)
    return largest(a, lists)


def avg_pool(a, kernel_size, stride=(), padding=(0, 0, 0), ceil_mode=False, count_include_pad=True,
             divisor_override=None):
    kernel = spread(kernel_size)
    stride = spread(stride) if stride else kernel
    lists = window_lists(a.shape[-3:], kernel, stride, spread(padding), (1, 1, 1), ceil_mode)

    def mean(block, places, lengths):
        count = math.prod(lengths) if count_include_pad else math.prod(map(len, places))
        return flat(block).sum(-1) / (divisor_override or count)
    return pooled(a, lists, mean)


def adaptive_lists(a, size):
    size = spread(size)
    return [[(list(range(o * s // n, -(-(o + 1) * s // n))), 0) for o in range(n)] for s, n in zip(a.shape[-3:], size)]


@cases("max_pool3d", "max_pool3d_with_indices", skip=VOLUMES)
def max_pools(g):
    def run(*args, **kwargs):
        found = max_pool(*args, **kwargs)
        return found if g.op.endswith("indices") else found[0]

    yield Case((g.distinct((1, 2, 4, 3, 5)), [2]), {}, run, layouts=SOME)
    yield Case((g.distinct((2, 4, 4, 5)), [3, 2, 2], [1, 2, 2], [1, 1, 0]), {"dilation": [1, 1, 2]}, run, layouts=SOME)
    yield Case((g.distinct((1, 1, 5, 4, 5)), [2, 2, 3], [2]), {"ceil_mode": True}, run, layouts=SOME)
    yield Bad((g.array((2, 3)), [2]), "RuntimeError", "Expected 4D or 5D tensor")
    yield Bad((g.array((1, 4, 4, 4)), [2, 2]), "RuntimeError", "must either be a single int, or a tuple of three ints")


@cases("avg_pool3d", skip={**VOLUMES, "extremes": {"large": "two means instead of one", "ends": "the same"}})
def avg_pools(g):
    x = g.array((1, 2, 4, 3, 5))
    yield Case((x, [2]), {}, avg_pool, layouts=SOME, double=True)
    yield Case((x, [3, 2, 2], [1, 2, 2], [1, 1, 0]), {"count_include_pad": False}, avg_pool, layouts=SOME)
    yield Case((x, [2, 2, 3], [2], [1]), {"ceil_mode": True}, avg_pool, layouts=SOME)
    yield Case((x, [2, 1, 2]), {"divisor_override": 3}, avg_pool, layouts=SOME)
    yield Bad((x, [2]), "RuntimeError", "divisor must be not zero", {"divisor_override": 0})


@cases("adaptive_avg_pool3d", skip={**VOLUMES, "extremes": {"large": "two means instead of one", "ends": "the same"}})
def adaptive_avg_pools(g):
    def run(a, size):
        return pooled(a, adaptive_lists(a, size), lambda block, places, lengths: flat(block).mean(-1))

    for size in ([2, 3, 2], [1, 1, 1], [4, 3, 5]):
        yield Case((g.array((1, 2, 4, 3, 5)), size), {}, run, layouts=SOME)


@cases("adaptive_max_pool3d", skip=VOLUMES)
def adaptive_max_pools(g):
    for size in ([2, 3, 2], [1, 1, 1]):
        yield Case((g.distinct((1, 2, 4, 3, 5)), size), {}, lambda a, size: largest(a, adaptive_lists(a, size)),
                   layouts=SOME)


@cases("adaptive_max_pool1d", skip=VOLUMES)
def adaptive_max_pool1d(g):
    def run(a, size):
        values, places = largest(a[..., None, None, :], adaptive_lists(a[..., None, None, :], [1, 1, *size]))
        return values[..., 0, 0, :], places[..., 0, 0, :]

    yield Case((g.distinct((2, 3, 7)), [3]), {}, run, layouts=SOME)
    yield Bad((g.array((2, 3, 7)), [3, 2]), "RuntimeError", "should contain one int")


@cases("max_unpool2d", "max_unpool3d", skip=VOLUMES)
def unpools(g):
    dims = int(g.op[-2])

    def run(a, indices, size, *rest):
        lead = a.shape[:a.ndim - dims]
        out = np.zeros(lead + (math.prod(size),), a.dtype)
        np.put_along_axis(out, indices.reshape(*lead, -1), a.reshape(*lead, -1), -1)
        return out.reshape(*lead, *size)

    sides, size = (2, 2, 1)[:dims], [3, 4, 2][:dims]
    places = np.stack([g.rng.permutation(math.prod(size))[:math.prod(sides)] for _ in range(6)])
    rest = ([2] * dims, [0] * dims) if dims == 3 else ()
    yield Case((g.array((2, 3, *sides)), Fixed(places.reshape(2, 3, *sides)), size, *rest), {}, run, layouts=SOME)
    yield Bad((g.array((2, 3, *sides)), np.zeros((1,), np.int64), size, *rest), "RuntimeError",
              "Expected shape of indices to be same")


# ---- norms, columns, shuffles --------------------------------------------------------------------

@cases("instance_norm", skip={**VOLUMES, "extremes": {kind: "squares of large numbers overflow" for kind in (
    "large", "ends", "mean", "small", "subnormal")}})
def instance_norm(g):
    def run(x, weight, bias, mean, var, own, momentum, eps):
        axes = tuple(range(2, x.ndim))
        shape = (1, -1) + (1,) * len(axes)
        m = x.mean(axes, keepdims=True) if own else mean.reshape(shape)
        v = x.var(axes, keepdims=True) if own else var.reshape(shape)
        out = (x - m) / np.sqrt(v + eps)
        out = out if weight is None else out * weight.reshape(shape)
        return out if bias is None else out + bias.reshape(shape)

    x = g.array((2, 3, 4, 3))
    yield Case((x, None, None, None, None, True, 0.1, 1e-5), {}, run, layouts=SOME, rtol=1e-4, atol=1e-5)
    yield Case((x, g.array((3,)), g.array((3,)), None, None, True, 0.1, 1e-5), {}, run, layouts=SOME, rtol=1e-4,
               atol=1e-5)
    yield Case((g.array((2, 3, 5)), g.array((3,)), None, g.array((3,)), g.positive((3,)), False, 0.1, 1e-5), {}, run,
               layouts=SOME, rtol=1e-4, atol=1e-5, grad=False)
    yield Bad((x, None, None, None, None, False, 0.1, 1e-5), "RuntimeError", "Expected running_mean and running_var")


def columns(x, kernel, dilation, padding, stride):
    if x.ndim == 3:
        return columns(x[None], kernel, dilation, padding, stride)[0]
    x = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    oh, ow = ((x.shape[2 + i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(2))
    parts = [x[:, :, y * dilation[0]:y * dilation[0] + (oh - 1) * stride[0] + 1:stride[0],
               z * dilation[1]:z * dilation[1] + (ow - 1) * stride[1] + 1:stride[1]]
             for y, z in itertools.product(range(kernel[0]), range(kernel[1]))]
    return np.stack(parts, 2).reshape(x.shape[0], -1, oh * ow)


FORMS = (([2, 2], [1, 1], [0, 0], [1, 1]), ([2, 3], [1, 2], [1, 2], [2, 1]))


@cases("im2col", skip=VOLUMES)
def im2col(g):
    for form in FORMS:
        yield Case((g.array((2, 2, 4, 5)), *form), {}, columns, layouts=SOME, double=True)
    yield Case((g.array((2, 4, 5)), *FORMS[0]), {}, columns, layouts=SOME)
    yield Bad((g.array((1, 1, 2, 2)), [3, 3], *FORMS[0][1:]), "RuntimeError", "is too small")
    yield Bad((g.array((1, 2)), *FORMS[0]), "RuntimeError", "Expected 3D or 4D (batch mode) tensor")


@cases("col2im", skip=VOLUMES)
def col2im(g):
    def run(a, size, *form):
        if a.ndim == 2:
            return run(a[None], size, *form)[0]
        channels = a.shape[1] // math.prod(form[0])
        numbers = np.arange(math.prod(size) * channels).reshape(1, channels, *size) + 1
        where = columns(numbers, *form)[0]
        out = np.zeros((a.shape[0], numbers.size + 1))
        for n in range(a.shape[0]):
            np.add.at(out[n], where.ravel(), a[n].ravel())
        return out[:, 1:].reshape(a.shape[0], channels, *size)

    for form in FORMS:
        rows, places = columns(np.zeros((1, 2, 4, 5)), *form).shape[1:]
        yield Case((g.array((2, rows, places)), [4, 5], *form), {}, run, layouts=SOME, double=True)
    yield Case((g.array((8, 12)), [4, 5], *FORMS[0]), {}, run, layouts=SOME)
    yield Bad((g.array((1, 8, 11)), [4, 5], *FORMS[0]), "RuntimeError", "number of sliding blocks")


@cases("pixel_shuffle", "pixel_unshuffle", skip={"0-d": "takes images", "empty": "views have them"})
def pixel_shuffles(g):
    def up(a, r):
        c, h, w = a.shape[-3:]
        parts = a.reshape(*a.shape[:-3], c // r ** 2, r, r, h, w)
        n = a.ndim - 3
        turned = parts.transpose(*range(n), n, n + 3, n + 1, n + 4, n + 2)
        return turned.reshape(*a.shape[:-3], c // r ** 2, h * r, w * r)

    def down(a, r):
        c, h, w = a.shape[-3:]
        parts = a.reshape(*a.shape[:-3], c, h // r, r, w // r, r)
        n = a.ndim - 3
        turned = parts.transpose(*range(n), n, n + 2, n + 4, n + 1, n + 3)
        return turned.reshape(*a.shape[:-3], c * r * r, h // r, w // r)

    run = up if g.op == "pixel_shuffle" else down
    yield Case((g.array((2, 8, 4, 6)), 2), {}, run)
    yield Case((g.array((4, 2, 2)), 2), {}, run)
    yield Bad((g.array((2, 3)), 2), "RuntimeError", "at least 3 dimensions")
    yield Bad((g.array((3, 3, 3)), 2), "RuntimeError", "divisible by")
    yield Bad((g.array((4, 2, 2)), 0), "RuntimeError", "expects a positive")


@cases("channel_shuffle", skip={"0-d": "takes images", "empty": "views have them"})
def channel_shuffle(g):
    def run(a, groups):
        return a.reshape(a.shape[0], groups, -1, *a.shape[2:]).swapaxes(1, 2).reshape(a.shape)

    yield Case((g.array((2, 6, 2, 3)), 3), {}, run)
    yield Bad((g.array((2, 6, 2)), 4), "RuntimeError", "Number of channels must be divisible by groups")


@cases("hardshrink", "softshrink")
def shrinks(g):
    def run(a, lambd=0.5):
        if g.op == "hardshrink":
            return np.where(np.abs(a) <= lambd, 0.0, a)
        return a - np.clip(a, -lambd, lambd)

    for shape in ((3, 4), (0, 3), ()):
        yield Case((g.away(shape, 1.0),), {}, run)
        yield Case((g.away(shape, -0.5), 0.5), {}, run)


# ---- connectionist temporal classification ----

def labels_of(targets, lengths, sample):
    """A sample's labels: targets are padded rows, or all labels one after the other."""
    if np.ndim(targets) == 2:
        return tuple(targets[sample, :lengths[sample]])
    start = int(np.sum(lengths[:sample]))
    return tuple(targets[start:start + lengths[sample]])


def spells(way, blank):
    """What a class for each step means: repeated ones are one, blanks are none."""
    return tuple(c for i, c in enumerate(way) if c != blank and (i == 0 or way[i - 1] != c))


def ctc_ways(log_probs, targets, input_lengths, target_lengths, blank):
    """Every way that spells a sample's labels, one by one: losses, and how likely each class is at each step."""
    lengths, inputs = np.reshape(target_lengths, -1).astype(int), np.reshape(input_lengths, -1).astype(int)
    losses, shares = np.zeros(log_probs.shape[1]), np.zeros(log_probs.shape)
    for n in range(log_probs.shape[1]):
        steps = range(inputs[n])
        ways = [way for way in itertools.product(range(log_probs.shape[2]), repeat=inputs[n])
                if spells(way, blank) == labels_of(targets, lengths, n)]
        logs = np.array([sum(log_probs[t, n, way[t]] for t in steps) for way in ways], float)
        most = logs.max() if ways else -np.inf
        losses[n] = -(most + np.log(np.exp(logs - most).sum())) if ways else np.inf
        for way, log in zip(ways, logs):
            for t in steps:
                shares[t, n, way[t]] += np.exp(log + losses[n])
    return losses, shares


def ctc_alphas(log_probs, targets, input_lengths, target_lengths, blank):
    steps, batch, _ = log_probs.shape
    alphas = np.full((batch, steps, 2 * max(target_lengths) + 1), -np.inf)
    for n in range(batch):
        states = [blank]
        for label in labels_of(targets, target_lengths, n):
            states += [label, blank]
        for t, (s, label) in itertools.product(range(input_lengths[n]), enumerate(states)):
            if t == 0:
                alphas[n, t, s] = log_probs[t, n, label] if s < 2 else -np.inf
                continue
            skips = s > 1 and states[s - 2] != label
            before = alphas[n, t - 1, max(0, s - 2 if skips else s - 1):s + 1]
            alphas[n, t, s] = np.logaddexp.reduce(before) + log_probs[t, n, label]
    return alphas


def ctc_of(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=1, zero_infinity=False):
    batch = log_probs if log_probs.ndim == 3 else log_probs[:, None]
    losses, _ = ctc_ways(batch, targets, input_lengths, target_lengths, blank)
    losses = np.where(np.isinf(losses) & zero_infinity, 0, losses)
    if reduction == 1:
        return (losses / np.maximum(np.reshape(target_lengths, -1), 1)).mean()
    return losses.sum() if reduction == 2 else losses if log_probs.ndim == 3 else losses[0]


def no_halves(*names, **options):
    """Cases of rows that refuse half types, as torch does."""
    def register(function):
        def rows(g):
            for item in function(g):
                if g.dtype not in HALVES:
                    yield item
                elif isinstance(item, Case):
                    title = "Half" if g.dtype == "float16" else "BFloat16"
                    yield Bad(item.args, "NotImplementedError", f"\"ctc_loss_cpu\" not implemented for '{title}'")
                    return
        rows.__module__ = function.__module__
        return cases(*names, dtypes=FLOATS + HALVES, **options)(rows)
    return register


def ctc_inputs(g):
    """log_probs, padded targets and the same ones without padding, lengths; the last sample has no way."""
    log_probs = g.array((4, 3, 3), -3.0, -0.2)
    padded = np.array([[1, 2], [2, 2], [1, 2]], np.int64)
    return log_probs, padded, np.array([1, 2, 2, 2, 1, 2], np.int64), [4, 4, 1], [2, 2, 2]


@no_halves("ctc_loss.IntList", "ctc_loss.Tensor", skip={"0-d": "has steps and classes", "empty": "is refused"})
def ctc_loss(g):
    log_probs, padded, flat, inputs, lengths = ctc_inputs(g)
    as_given = list if g.op.endswith("IntList") else lambda numbers: np.asarray(numbers, np.int64)
    for reduction in REDUCTIONS:
        yield Case((log_probs, padded, as_given(inputs), as_given(lengths), 0, reduction), {}, ctc_of, grad=False)
        yield Case((log_probs, padded, as_given([3, 0, 4]), as_given([1, 0, 0]), 0, reduction), {}, ctc_of, grad=False)
        yield Case((log_probs, flat, as_given(inputs), as_given(lengths), 0, reduction, True), {}, ctc_of, grad=False)
        yield Case((log_probs[:, 0], padded[0], as_given([4]), as_given([2]), 0, reduction), {}, ctc_of, grad=False)
    yield Case((log_probs, padded.astype(np.int32) - 1, as_given([4, 3, 3]), as_given(lengths), 2), {}, ctc_of,
               grad=False)
    yield Bad((log_probs, padded, as_given([4, 5, 1]), as_given(lengths)), "RuntimeError",
              "Expected input_lengths to have value at most 4, but got value 5")
    yield Bad((log_probs, padded, as_given(inputs), as_given([2, -1, 1])), "RuntimeError",
              "Expected target_lengths to have value at least 0, but got value -1")
    yield Bad((log_probs, padded, as_given(inputs), as_given([2, 3, 1])), "RuntimeError",
              "Expected tensor to have size at least 3 at dimension 1, but got size 2")
    yield Bad((log_probs, flat[:5], as_given(inputs), as_given(lengths)), "RuntimeError",
              "Expected tensor to have size 6 at dimension 0, but got size 5")
    yield Bad((log_probs, padded, as_given(inputs[:2]), as_given(lengths)), "RuntimeError",
              "input_lengths must be of size batch_size")
    yield Bad((log_probs, padded, as_given(inputs), as_given(lengths), 3), "RuntimeError",
              "blank must be in label range")
    yield Bad((log_probs[:0], padded, as_given([0, 0, 0]), as_given(lengths)), "RuntimeError",
              "log_probs tensor must not be empty")


@no_halves("_ctc_loss", skip={"0-d": "has steps and classes", "empty": "is refused"})
def ctc_loss_forward(g):
    log_probs, padded, flat, inputs, lengths = ctc_inputs(g)

    def reference(*args):
        return ctc_of(*args, reduction=0), ctc_alphas(*args)

    yield Case((log_probs, padded, inputs, lengths, 0), {}, reference, grad=False)
    yield Case((log_probs, flat[:4], [2, 3, 0], [1, 2, 1], 0), {}, reference, grad=False)
    yield Bad((log_probs[0], padded, inputs, lengths), "RuntimeError",
              "Expected 3-dimensional tensor, but got 2-dimensional tensor for argument #1 'log_probs'")


@no_halves("_ctc_loss_backward", skip={"0-d": "has steps and classes", "empty": "is refused", "extremes": {
    kind: "log_alpha belongs to other log_probs" for kind in ("large", "small", "mean")}})
def ctc_loss_backward(g):
    log_probs, padded, flat, inputs, lengths = ctc_inputs(g)

    def reference(grad, log_probs, targets, inputs, lengths, losses, alphas, blank, zero_infinity=False):
        _, shares = ctc_ways(log_probs, targets, inputs, lengths, blank)
        made = np.zeros(log_probs.shape)
        for n, steps in enumerate(inputs):
            made[:steps, n] = (np.exp(log_probs[:steps, n]) - shares[:steps, n]) * grad[n]
            if np.isinf(losses[n]):
                made[:steps, n] = 0 if zero_infinity else np.nan
        return made

    for targets, inputs, lengths in ((padded, inputs, lengths), (flat[:4], [2, 3, 4], [1, 2, 1]),
                                     (padded, [2, 0, 1], [0, 0, 1])):
        given = (np.asarray(log_probs, np.float64), targets, inputs, lengths, 0)
        kept = Fixed(g.cast(ctc_of(*given, 0))), Fixed(g.cast(ctc_alphas(*given)))
        for zero_infinity in (False, True):
            yield Case((g.array((3,)), Fixed(log_probs), Fixed(targets), inputs, lengths, *kept, 0, zero_infinity), {},
                       reference, grad=False)


@cases("alpha_dropout", "feature_alpha_dropout", skip={"extremes": {"large": "random", "ends": "random"}})
def alpha_dropouts(g):
    def check(p):
        def run(got, args, kwargs):
            x, made = args[0].numpy(), got.numpy().astype(float)
            alpha = 1.6732632423543772 * 1.0507009873554805
            factor = 1 / math.sqrt((alpha * alpha * p + 1) * (1 - p))
            kept = factor * np.asarray(x, float) + alpha * factor * p
            dropped = alpha * factor * (p - 1)
            assert np.all(np.isclose(made, kept, 1e-4, 1e-5) | np.isclose(made, dropped, 1e-4, 1e-5))
        return run

    x = g.array((2, 3, 4))
    yield Case((x, 0.0, True), {}, lambda a, p, train: a, grad=False)
    yield Case((x, 0.5, False), {}, lambda a, p, train: a, grad=False)
    yield Case((x, 0.3, True), {}, None, check=check(0.3), grad=False, inplace=False, layouts=("contiguous",))
    yield Case((g.array((0, 3)), 0.3, True), {}, lambda a, p, train: a, grad=False)
    if g.op == "alpha_dropout":
        yield Case((g.array(()), 0.0, True), {}, lambda a, p, train: a, grad=False)
    else:
        yield Case((g.array(()), 0.5, False), {}, lambda a, p, train: a, grad=False)
        yield Bad((g.array((3,)), 0.5, True), "RuntimeError", "requires at least 2 dimensions")


# ---- losses --------------------------------------------------------------------------------------

def reduced(loss, reduction):
    return loss.mean() if reduction == 1 else loss.sum() if reduction == 2 else loss


LARGE = {"extremes": {"large": "differences of large numbers", "ends": "the same", "mean": "the same"}}


@cases("hinge_embedding_loss", skip=LARGE)
def hinge_embedding_loss(g):
    def run(x, y, margin=1.0, reduction=1):
        return reduced(np.where(y != 1, np.maximum(margin - x, 0), 0) + np.where(y != -1, x, 0), reduction)

    signs = np.sign(g.away((3, 4))).astype(g.dtype)
    for reduction in REDUCTIONS:
        yield Case((g.away((3, 4), 0.7), Fixed(signs), 0.7, reduction), {}, run, grad_args=(0,))
    yield Case((g.array(()), Fixed(np.ones((), g.dtype))), {}, run, grad_args=(0,))
    yield Case((g.array((0, 2)), Fixed(np.ones((0, 2), g.dtype)), 1.0, 2), {}, run, grad_args=(0,))


@cases("margin_ranking_loss", skip=LARGE)
def margin_ranking_loss(g):
    def run(a, b, y, margin=0.0, reduction=1):
        return reduced(np.maximum(-y * (a - b) + margin, 0), reduction)

    signs = np.sign(g.away((4,))).astype(g.dtype)
    for reduction in REDUCTIONS:
        yield Case((g.distinct((4,)) * 2, g.distinct((4,)) + g.cast(0.5), Fixed(signs), 0.25, reduction), {}, run,
                   grad_args=(0, 1))
    yield Case((g.array(()), g.array(()), Fixed(np.ones((), g.dtype))), {}, run, grad=False)
    yield Case((g.array((0,)), g.array((0,)), Fixed(np.ones((0,), g.dtype)), 0.0, 2), {}, run, grad=False)


@cases("cosine_embedding_loss", skip={"0-d": "takes rows", "empty": "rows have elements", **LARGE})
def cosine_embedding_loss(g):
    def run(a, b, y, margin=0.0, reduction=1):
        cos = (a * b).sum(-1) / np.sqrt(((a * a).sum(-1) + 1e-12) * ((b * b).sum(-1) + 1e-12))
        return reduced(np.where(y == 1, 1 - cos, 0) + np.where(y == -1, np.maximum(cos - margin, 0), 0), reduction)

    signs = Fixed(np.array([1, -1, 1, -1], g.dtype))
    for reduction in REDUCTIONS:
        yield Case((g.array((4, 3)), g.array((4, 3)), signs, 0.1, reduction), {}, run, grad_args=(0, 1))
    yield Bad((g.array((4, 3)), g.array((4, 3)), np.ones((4, 3), g.dtype)), "RuntimeError", "2D target tensor expects")


def distance(a, b, p=2.0, eps=1e-6, keepdim=False):
    return np.linalg.norm(a - b + eps, p, -1, keepdim) if a.ndim else abs(a - b + eps)


@cases("pairwise_distance", skip={"0-d": "takes rows", "empty": "rows have elements", **LARGE})
def pairwise_distance(g):
    yield Case((g.array((4, 3)), g.array((4, 3))), {}, distance)
    yield Case((g.array((4, 3)), g.array((3,)), 1.0, 1e-3, True), {}, distance)


@cases("triplet_margin_loss", skip={"0-d": "takes rows", "empty": "rows have elements", **LARGE})
def triplet_margin_loss(g):
    def run(a, near, far, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction=1):
        away = distance(a, far, p, eps)
        away = np.minimum(away, distance(near, far, p, eps)) if swap else away
        return reduced(np.maximum(distance(a, near, p, eps) - away + margin, 0), reduction)

    three = (g.array((4, 3)), g.array((4, 3)), g.array((4, 3)))
    for reduction in REDUCTIONS:
        yield Case((*three, 2.5, 2.0, 1e-6, reduction == 1, reduction), {}, run)
    yield Bad((g.array((4, 3)), g.array((3,)), g.array((4, 3))), "RuntimeError", "same number of dimensions")


@cases("poisson_nll_loss", skip={"extremes": {kind: "exp overflows, log of what is negative" for kind in (
    "large", "ends", "mean", "special", "mixed", "small", "subnormal")}})
def poisson_nll_loss(g):
    def run(x, y, log_input, full, eps, reduction):
        loss = np.exp(x) - y * x if log_input else x - y * np.log(x + eps)
        if full:
            loss = loss + np.where(y > 1, y * np.log(y) - y + 0.5 * np.log(2 * np.pi * y), 0)
        return reduced(loss, reduction)

    for reduction, full in itertools.product(REDUCTIONS, (False, True)):
        yield Case((g.positive((3, 4)), Fixed(g.away((3, 4), 3.0)), bool(reduction), full, 1e-8, reduction), {}, run,
                   grad_args=(0,))
    yield Case((g.positive(()), Fixed(g.positive(())), True, False, 1e-8, 1), {}, run, grad_args=(0,))
    yield Case((g.positive((0, 2)), Fixed(g.positive((0, 2))), True, False, 1e-8, 2), {}, run, grad_args=(0,))


@cases("soft_margin_loss", skip={"extremes": {kind: "exp overflows" for kind in (
    "large", "ends", "mean", "special", "mixed")}})
def soft_margin_loss(g):
    def run(x, y, reduction=1):
        return reduced(np.log1p(np.exp(-y * x)), reduction)

    for reduction in REDUCTIONS:
        signs = Fixed(np.sign(g.away((3, 4))).astype(g.dtype))
        yield Case((g.array((3, 4)), signs, reduction), {}, run, grad_args=(0,))
    yield Case((g.array(()), Fixed(np.ones((), g.dtype))), {}, run, grad_args=(0,))
    yield Case((g.array((0, 2)), Fixed(np.ones((0, 2), g.dtype)), 2), {}, run, grad_args=(0,))


@cases("multi_margin_loss", skip={"0-d": "takes classes", "empty": "takes classes", **LARGE})
def multi_margin_loss(g):
    def run(x, y, p=1, margin=1.0, weight=None, reduction=1):
        if x.ndim == 1:
            return reduced(run(x[None], y.reshape(1), p, margin, weight, 0)[0], reduction)
        rows = np.arange(len(x))
        hinge = np.maximum(margin - x[rows, y][:, None] + x, 0) ** p
        hinge[rows, y] = 0
        loss = hinge.sum(1) / x.shape[1]
        return reduced(loss if weight is None else loss * weight[y], reduction)

    target = Fixed(np.array([0, 2, 1, 2]))
    for reduction in REDUCTIONS:
        yield Case((g.distinct((4, 3)), target, 1 + reduction % 2, 0.7, None, reduction), {}, run)
    yield Case((g.distinct((4, 3)), target, 1, 0.7, Fixed(g.positive((3,)))), {}, run, grad_args=(0,))
    yield Case((g.distinct((3,)), Fixed(np.array(1)), 1, 0.7), {}, run)
    yield Bad((g.array((4, 3)), np.array([1, 2])), "RuntimeError", "inconsistent target size")
    yield Bad((g.array((4, 3)), np.array([0, 2, 1, 2]), 3), "RuntimeError", "only p == 1 and p == 2")


@cases("multilabel_margin_loss", skip={"0-d": "takes classes", "empty": "takes classes", **LARGE})
def multilabel_margin_loss(g):
    def run(x, y, reduction=1):
        if x.ndim == 1:
            return reduced(run(x[None], y[None], 0)[0], reduction)
        loss = np.zeros(len(x), x.dtype)
        for n, row in enumerate(y):
            chosen = [int(t) for t in itertools.takewhile(lambda t: t >= 0, row)]
            others = [j for j in range(x.shape[1]) if j not in chosen]
            loss[n] = sum(max(0.0, 1 - x[n, t] + x[n, j]) for t in chosen for j in others)
        return reduced(loss / x.shape[1], reduction)

    target = Fixed(np.array([[3, 0, -1, 1], [2, -1, 0, 1]]))
    for reduction in REDUCTIONS:
        yield Case((g.array((2, 4)), target, reduction), {}, run)
    yield Case((g.array((4,)), Fixed(np.array([1, -1, 2, 3]))), {}, run)
    yield Bad((g.array((2, 4)), np.array([[1, 2]])), "RuntimeError", "inconsistent target size")
