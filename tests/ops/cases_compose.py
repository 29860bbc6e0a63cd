# SPDX-License-Identifier: Apache-2.0
"""Cases of ops_compose.def: broadcasting, padding, activations, dropout of channels, norms, losses."""
import numpy as np
from opcases import ALL, EVERY, HALVES, NUMBERS, Bad, Case, Fixed, cases

NONE, MEAN, SUM = 0, 1, 2


def reduced(values, reduction):
    return values if reduction == NONE else values.mean() if reduction == MEAN else values.sum()


# ---- sizes of others, padding ----

@cases("broadcast_tensors", dtypes=EVERY, skip={"empty": "is a case below"})
def broadcast_tensors(g):
    def reference(arrays):
        return list(np.broadcast_arrays(*arrays))

    yield Case(([g.array((3, 1)), g.array((4,)), g.array(())],), {}, reference)
    yield Case(([g.array((3, 4)), g.array((3, 4))],), {}, reference)
    yield Case(([g.array((2, 1, 3))],), {}, reference)
    yield Case(([g.array((0, 1)), g.array((3,))],), {}, reference)
    yield Case(([g.array((2,))] * 30,), {}, reference, grad=False)
    yield Bad(([g.array((2,)), g.array((3,))],), "RuntimeError",
              "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0")


@cases("expand_as", dtypes=EVERY)
def expand_as(g):
    def reference(a, other):
        return np.broadcast_to(a, other.shape)

    for shape, other in (((3, 1), (3, 4)), ((4,), (2, 3, 4)), ((), (2, 2)), ((2, 3), (2, 3)),
                         ((1, 0), (2, 0))):
        yield Case((g.array(shape), g.array(other)), {}, reference, grad_args=(0,))
    yield Bad((g.array((3,)), g.array((2,))), "RuntimeError", "must match the existing size (3)")


@cases("view_as", dtypes=EVERY)
def view_as(g):
    def reference(a, other):
        return a.reshape(other.shape)

    for shape, other in (((3, 4), (2, 6)), ((1,), ()), ((), (1, 1)), ((0, 3), (3, 0))):
        yield Case((g.array(shape), g.array(other)), {}, reference, grad_args=(0,), layouts=("contiguous",))
    yield Bad((g.array((3,)), g.array((2,))), "RuntimeError", "shape '[2]' is invalid for input of size 3")


def pad_of(a, pad, mode="constant", value=None):
    del mode
    value = 0 if value is None else value
    for i in range(len(pad) // 2):
        axis = a.ndim - 1 - i
        before, after = pad[2 * i], pad[2 * i + 1]
        a = np.take(a, range(max(-before, 0), a.shape[axis] - max(-after, 0)), axis)
        widths = [(0, 0)] * a.ndim
        widths[axis] = (max(before, 0), max(after, 0))
        a = np.pad(a, widths, constant_values=value)
    return a


@cases("pad", "constant_pad_nd", dtypes=EVERY)
def pad(g):
    number = (lambda v: {"value": v}) if g.op == "pad" else (lambda v: {"value": v})
    for shape, by in (((3, 4), (1, 2)), ((3, 4), (1, 0, 2, 1)), ((2, 3, 2), (0, 0, 0, 0, 1, 1)), ((3, 4), ()),
                      ((3, 4), (-1, 2)), ((3, 4), (-1, -2, 1, -1)), ((0, 3), (1, 1, 1, 1)), ((2, 3), (-3, 4)),
                      ((), ())):
        yield Case((g.array(shape), by), {}, pad_of, double=by == (1, 2))
    yield Case((g.array((3,)), (2, 1)), number(1.0), pad_of)
    yield Case((g.array((2,) * 8), (1, 0) * 8), {}, pad_of, grad=False, layouts=("contiguous",))
    if g.op == "pad":
        yield Bad((g.array((3, 4)), (1,)), "RuntimeError", "Padding length must be divisible by 2")
        yield Bad((g.array((3, 4)), (1,) * 6), "RuntimeError",
                  "but got padding length 6 and input of dimension 2")
        yield Bad((g.array((3, 4)), (1, 1), "reflect"), "NotImplementedError", "padding mode reflect")
    else:
        yield Bad((g.array((3, 4)), (1,)), "RuntimeError",
                  "Length of pad must be even but instead it equals 1")
        yield Bad((g.array((3,)), (1,) * 4), "RuntimeError",
                  "Length of pad should be no more than twice the number of dimensions of the input")
    for by in ((-3, -2), (-5, 3), (3, -5), (0, -7), (-2**62, 0), (-2**62, -2**62)):
        yield Bad((g.array((3, 4)), by), "RuntimeError", "narrow(): length must be non-negative")
    yield Bad((g.array((3, 4)), (2**62, 2**62)), "RuntimeError", "")


# ---- activations ----

def sigmoid(a):
    return 1 / (1 + np.exp(-a))


ACTIVATIONS = {
    "mish": (lambda a: a * np.tanh(np.logaddexp(0, a)), "mish_cpu", ((),)),
    "hardsigmoid": (lambda a: np.clip(a + 3, 0, 6) / 6, "hardsigmoid_cpu", ((),)),
    "hardswish": (lambda a: a * np.clip(a + 3, 0, 6) / 6, "hardswish_cpu", ((),)),
    "selu": (lambda a: 1.0507009873554805 * np.where(a > 0, a, 1.6732632423543772 * np.expm1(a)), "elu_cpu",
             ((),)),
    "celu": (lambda a, s=1: np.where(a > 0, a, s * np.expm1(a / s)), "elu_cpu", ((), (1.7,), (-0.5,))),
}


@cases(*ACTIVATIONS, dtypes=NUMBERS)
def activations(g):
    reference, kernel, parameters = ACTIVATIONS[g.op.rstrip("_")]
    if g.integer:
        yield Bad((g.array((2,)),), "NotImplementedError", f"\"{kernel}\" not implemented for")
        return
    for more in parameters:
        yield Case((g.away((3, 4)), *more), {}, reference, double=True)
        yield Case((g.cast([-5.0, 5.0, 0.5, -0.25]), *more), {}, reference)
    for shape in ((), (0, 3)):
        yield Case((g.away(shape),), {}, reference)
    if g.op.startswith("celu"):
        yield Bad((g.array((2,)), 0.0), "RuntimeError", "ZeroDivisionError: alpha cannot be 0 for CELU")


@cases("relu6", dtypes=NUMBERS)
def relu6(g):
    for shape in ((3, 4), (), (0, 2)):
        yield Case((g.away(shape),), {}, lambda a: np.clip(a, 0, 6), result=g.dtype)
    yield Case((g.cast([0.5, 5.0, 7.0, 100.0]),), {}, lambda a: np.clip(a, 0, 6), result=g.dtype)


@cases("threshold", dtypes=ALL)
def threshold(g):
    if g.is_bool:
        yield Bad((g.array((2,)), 0, 1), "NotImplementedError",
                  "\"threshold_cpu\" not implemented for 'Bool'")
        return

    def reference(a, limit, value):
        return np.where(a > a.dtype.type(limit), a, a.dtype.type(value))

    for shape in ((3, 4), (), (2, 0)):
        yield Case((g.away(shape), 0, 5), {}, reference)
    yield Case((g.cast([1, 5, 2, 3]), 2.5, 20.5), {}, reference)
    if g.floating:
        yield Case((g.cast([np.nan, np.inf, -np.inf, 0.0]), 1.0, 9.0), {},
                   lambda a, limit, value: np.where(a <= limit, value, a), grad=False)


@cases("glu", dtypes=NUMBERS, skip={"0-d": "is refused"})
def glu(g):
    if g.integer:
        yield Bad((g.array((2,)),), "NotImplementedError", "\"glu_cpu\" not implemented for")
        return

    def reference(a, dim=-1):
        first, second = np.split(a, 2, dim)
        return first * sigmoid(second)

    for shape, dim in (((3, 4), -1), ((4, 3), 0), ((2, 6, 3), 1), ((0, 4), 1)):
        yield Case((g.array(shape), dim), {}, reference, double=dim == 1)
    yield Bad((g.array((3,)),), "RuntimeError", "Halving dimension must be even, but dimension 0 is size 3")
    yield Bad((g.array(()),), "RuntimeError", "glu does not support 0-dimensional tensors")
    yield Bad((g.array((2,)), 3), "IndexError", "Dimension out of range")


@cases("glu_backward", dtypes=NUMBERS, skip={"0-d": "is refused"})
def glu_backward(g):
    if g.integer:
        yield Bad((g.array((1,)), g.array((2,)), 0), "NotImplementedError", "\"glu_cpu\" not implemented for")
        return

    def reference(d, a, dim):
        first, second = np.split(a, 2, dim)
        gate = sigmoid(second)
        return np.concatenate([d * gate, d * first * gate * (1 - gate)], dim)

    for half, shape, dim in (((3, 2), (3, 4), -1), ((2, 3), (4, 3), 0), ((2, 3, 3), (2, 6, 3), 1), ((0, 2), (0, 4), 1)):
        yield Case((g.array(half), g.array(shape), dim), {}, reference, double=dim == 1)
    yield Bad((g.array((1,)), g.array((3,)), 0), "RuntimeError", "Halving dimension must be even")
    yield Bad((g.other("float16", (2,)), g.array((4,)), 0), "RuntimeError", "Found dtype Half but expected")


# ---- dropout ----

def kept_or_dropped(per_channel, before, got, p):
    """Every element is 0 or scaled; whole channels where it is about channels."""
    after = got.numpy()
    scaled = before / (1 - p) if p < 1 else before * 0
    kept = np.isclose(after, scaled, 1e-3, 1e-3)
    dropped = after == 0
    assert (kept | dropped).all(), f"{after} is neither 0 nor {scaled}"
    if per_channel and before.size:
        flat = (dropped & (before != 0)).reshape(before.shape[0], before.shape[1], -1)
        assert (flat.all(2) | ~flat.any(2)).all(), "a channel is dropped in part"


@cases("dropout_", "feature_dropout", "feature_dropout_",
       skip={"0-d": "is refused where it is about channels"})
def dropouts(g):
    per_channel = g.op.startswith("feature")
    for shape in ((3, 4), (2, 3, 5), (2, 3, 2, 2)):
        for p in (0.5, 0.1, 1.0):
            before = g.away(shape)
            yield Case((before, p, True), {}, None, grad=False, layouts=("contiguous",),
                       check=lambda got, args, kwargs, b=before, p=p: kept_or_dropped(per_channel, b, got, p))
        for p, train in ((0.0, True), (0.5, False)):
            yield Case((g.array(shape), p, train), {}, lambda a, p, train: a, grad=False,
                       layouts=("contiguous",))
    yield Case((g.array((0, 3)), 0.5, True), {}, lambda a, p, train: a, grad=False)
    yield Bad((g.array((2, 2)), 2.0, True), "RuntimeError", "has to be between 0 and 1, but got 2")
    yield Bad((g.array((2, 2)), -0.5, True), "RuntimeError", "has to be between 0 and 1, but got -0.5")
    if per_channel:
        yield Bad((g.array((2,)), 0.5, True), "RuntimeError", "requires at least 2 dimensions")
    yield Bad((g.other("int64", (2, 2)), 0.5, True), "RuntimeError",
              "can't be cast to the desired output type Long")


# ---- norms ----

def group_norm_of(x, groups, weight=None, bias=None, eps=1e-5):
    parts = x.reshape(x.shape[0], groups, x[0, :1].size * x.shape[1] // groups if x.size else 0)
    if parts.size:
        parts = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + eps)
    out = parts.reshape(x.shape)
    per_channel = (1, -1) + (1,) * (x.ndim - 2)
    out = out if weight is None else out * weight.reshape(per_channel)
    return out if bias is None else out + bias.reshape(per_channel)


@cases("group_norm", skip={"0-d": "has no channels"})
def group_norm(g):
    for shape, groups in (((3, 4), 2), ((2, 6, 3), 3), ((2, 4, 2, 3), 1), ((2, 4, 3), 4)):
        yield Case((g.array(shape), groups), {}, group_norm_of, rtol=1e-4, atol=1e-4)
        yield Case((g.array(shape), groups, g.array((shape[1],)), g.array((shape[1],)), 0.01), {},
                   group_norm_of, rtol=1e-4, atol=1e-4, double=True)
    yield Case((g.array((2, 4, 3)), 2, None, g.array((4,))), {}, group_norm_of, rtol=1e-4, atol=1e-4)
    yield Case((g.array((0, 4, 3)), 2), {}, group_norm_of)
    for half in HALVES:  # parameters of float32
        yield Case((Fixed(g.other(half, (2, 4, 3))), 2, Fixed(g.other("float32", (4,)))), {}, group_norm_of,
                   result=half, grad=False, rtol=2e-2, atol=2e-2)
    yield Bad((g.array((2, 4)), 3), "RuntimeError",
              "divisible by num_groups, but got input of shape [2, 4] and num_groups=3")
    yield Bad((g.array((2, 4)), 0), "RuntimeError", "Expected num groups to be greater than 0, got 0")
    yield Bad((g.array((4,)), 2), "IndexError", "Dimension out of range")
    yield Bad((g.array(()), 2), "IndexError", "Dimension specified as 0 but tensor has no dimensions")
    yield Bad((g.array((2, 4)), 2, g.array((3,))), "RuntimeError",
              "but got weight of shape [3] and input of shape [2, 4]")
    yield Bad((g.array((2, 4)), 2, None, g.array((3,))), "RuntimeError", "Expected bias to be a vector")


def rms_norm_of(x, shape, weight=None, eps=None):
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    eps = 1e-7 if eps is None else eps
    with np.errstate(all="ignore"):
        out = x / np.sqrt((x * x).mean(axes, keepdims=True) + eps)
    return out if weight is None else out * weight


@cases("rms_norm", skip={"0-d": "has nothing to normalise over"})
def rms_norm(g):
    for shape, over in (((3, 4), (4,)), ((2, 3, 4), (3, 4)), ((4,), (4,))):
        yield Case((g.away(shape), over), {}, rms_norm_of, rtol=1e-4, atol=1e-4, grad=False)
        yield Case((g.array(shape), over, g.array(over), 0.1), {}, rms_norm_of, double=True)
    yield Case((g.array((3, 4)), (4,), g.array((4,)), 0.1), {}, rms_norm_of, layouts=("transposed",))
    yield Case((g.array((0, 4)), (4,), None, 0.1), {}, rms_norm_of)
    yield Bad((g.array((2, 4)), (3,)), "RuntimeError",
              "Given normalized_shape=[3], expected input with shape [*3]")
    yield Bad((g.array((2, 4)), ()), "RuntimeError", "normalized_shape = []")
    yield Bad((g.array((2, 4)), (4,), g.array((3,))), "RuntimeError",
              "but got weight of shape [3] and normalized_shape = [4]")
    yield Bad((g.array((4,)), (2, 4)), "ValueError", "must have at least 2 dimensions, but got 1")


# ---- losses ----

def huber_of(x, y, reduction=MEAN, delta=1.0):
    d = np.abs(x - y)
    return reduced(np.where(d < delta, 0.5 * d * d, delta * (d - 0.5 * delta)), reduction)


@cases("huber_loss")
def huber_loss(g):
    for reduction in (NONE, MEAN, SUM):
        for delta in (1.0, 0.25):
            yield Case((g.array((3, 4)), g.array((3, 4)), reduction, delta), {}, huber_of, double=True)
    for shape in ((), (0, 2)):
        yield Case((g.array(shape), g.array(shape), SUM), {}, huber_of)
    yield Case((g.array((3, 4)), g.array((4,)), MEAN, 0.5), {}, huber_of)
    yield Case((g.array((3, 4)), g.array((3, 1)), NONE, 0.5), {}, huber_of)
    yield Bad((g.other("int64", (2,)), g.other("int64", (2,))), "NotImplementedError",
              "\"huber_cpu\" not implemented for 'Long'")
    yield Bad((g.array((2,)), g.array((2,)), MEAN, 0.0), "RuntimeError", "non-positive values for delta")
    yield Bad((g.array((2,)), g.array((2,)), 7), "ValueError", "")


def kl_of(x, target, reduction=MEAN, log_target=False):
    if log_target:
        return reduced(np.exp(target) * (target - x), reduction)
    with np.errstate(all="ignore"):
        own = np.where(target == 0, 0, target * np.log(np.where(target == 0, 1, target)))
    return reduced(own - target * x, reduction)


@cases("kl_div")
def kl_div(g):
    for reduction in (NONE, MEAN, SUM):
        yield Case((g.array((3, 4)), g.array((3, 4), 0.1, 1.0), reduction), {}, kl_of)
        yield Case((g.array((3, 4)), g.array((3, 4)), reduction), {"log_target": True}, kl_of)
    for shape in ((), (0, 2)):
        yield Case((g.array(shape), g.array(shape, 0.1, 1.0), SUM), {}, kl_of)
    zeros = Fixed(g.cast([[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]]))
    yield Case((g.array((2, 3)), zeros, SUM), {}, kl_of, grad_args=(0,))
    yield Case((g.array((2, 3)), g.array((3,), 0.1, 1.0), SUM), {}, kl_of)
    yield Bad((g.other("int64", (2,)), g.other("int64", (2,))), "RuntimeError",
              "Integral inputs not supported")
    yield Bad((g.array((2,)), g.array((2,)), 7), "ValueError", "")


# ---- pooling ----

@cases("max_pool1d_with_indices", skip={"0-d": "is refused", "empty": "is refused"})
def max_pool1d_with_indices(g):
    def reference(x, kernel, stride=(), padding=(0,), dilation=(1,), ceil_mode=False):
        step = stride[0] if stride else kernel[0]
        wide = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(padding[0],) * 2], constant_values=-np.inf)
        span = dilation[0] * (kernel[0] - 1) + 1
        starts = range(0, wide.shape[-1] - span + 1, step)
        windows = np.stack([wide[..., s : s + span : dilation[0]] for s in starts], -2)
        places = windows.argmax(-1)
        return windows.max(-1), places * dilation[0] + np.array(list(starts)) - padding[0]

    for args in (((2,),), ((3,), (2,)), ((3,), (1,), (1,)), ((2,), (1,), (0,), (2,))):
        yield Case((g.distinct((2, 3, 7)), *args), {}, reference, result=(g.dtype, "int64"))
    yield Case((g.distinct((3, 6)), (2,)), {}, reference, result=(g.dtype, "int64"))
    yield Bad((g.array((2, 6)), (2, 2)), "RuntimeError",
              "argument 'kernel_size' should contain one int (got 2)")
    yield Bad((g.array((2, 6)), ()), "RuntimeError", "argument 'kernel_size' should contain one int (got 0)")
    yield Bad((g.array((2, 6)), (2,), (1, 1)), "RuntimeError", "'stride' should contain one int (got 2)")


# ---- derivatives of activations ----

def sigmoid_of(x):
    return 1 / (1 + np.exp(-x))


def mish_slope(x):
    t = np.tanh(np.logaddexp(0, x))
    return t + x * sigmoid_of(x) * (1 - t * t)


BACKWARDS = {
    "hardsigmoid_backward": lambda d, x: np.where((x > -3) & (x < 3), d / 6, 0),
    "hardswish_backward": lambda d, x: np.where(x <= -3, 0, np.where(x < 3, d * (x / 3 + 0.5), d)),
    "mish_backward": lambda d, x: d * mish_slope(x),
}


@cases(*BACKWARDS)
def plain_backwards(g):
    reference = BACKWARDS[g.op]
    for x in (g.away((3, 4)), g.cast([[-9.0, -3.5, -2.5, 2.5], [3.5, 9.0, 0.5, -0.5], [1.5, -1.5, 4.0, -4.0]])):
        yield Case((g.array((3, 4)), x), {}, reference, grad=g.op != "mish_backward")
    yield Case((g.array((3, 4)), g.away((4,))), {}, reference, grad=g.op != "mish_backward")


@cases("leaky_relu_backward")
def leaky_relu_backward(g):
    def reference(d, x, slope, is_result):
        return np.where(x > 0, d, d * slope)
    for slope in (0.3, 0):
        yield Case((g.array((3, 4)), g.away((3, 4)), slope, slope == 0.3), {}, reference)
    yield Case((g.array((3, 4)), g.away((4,)), -0.5, False), {}, reference)
    yield Bad((g.array((3, 4)), g.away((3, 4)), -0.5, True), "RuntimeError", "triggered with a negative slope")


@cases("elu_backward")
def elu_backward(g):
    def reference(d, alpha, scale, inner, is_result, x):
        below = (x + alpha * scale) * inner if is_result else alpha * scale * inner * np.exp(x * inner)
        return np.where(x <= 0, d * below, d * scale)
    for numbers in ((1, 1, 1, False), (1.7, 1, 0.5, False), (1.5, 1.25, 1, False), (1.5, 1.25, 0.5, True)):
        yield Case((g.array((3, 4)), *numbers, g.away((3, 4))), {}, reference, double=True)
    yield Bad((g.array((3, 4)), -1.5, 1, 1, True, g.away((3, 4))), "RuntimeError", "triggered with a negative slope")


@cases("softplus_backward")
def softplus_backward(g):
    def reference(d, x, beta, threshold):
        return np.where(x * beta > threshold, d, d * sigmoid_of(x * beta))
    yield Case((g.array((3, 4)), g.away((3, 4)), 1, 20), {}, reference, double=True)
    yield Case((g.array((3, 4)), g.away((3, 4), 0.75), 2.0, 1.5), {}, reference, double=True)


@cases("hardtanh_backward")
def hardtanh_backward(g):
    def reference(d, x, low, high):
        return np.where((x <= low) | (x >= high), 0, d)
    halves = g.cast(g.rng.integers(-3, 3, (3, 4)) + 0.5)
    yield Case((g.array((3, 4)), halves, -1, 1), {}, reference)
    yield Case((g.array((3, 4)), halves, -2, 1.25), {}, reference)


@cases("hardshrink_backward", "softshrink_backward")
def shrink_backward(g):
    def reference(d, x, lambd):
        return np.where(np.abs(x) <= lambd, 0, d)
    for lambd in (0.5, 0, -1, 1.5):
        yield Case((g.array((3, 4)), g.away((3, 4), 0.75), lambd), {}, reference)
    yield Case((g.array((4,)), g.cast([0.5, -0.5, np.nan, np.inf]), 0.5), {}, reference, grad=False)


@cases("log_sigmoid_backward")
def log_sigmoid_backward(g):
    def reference(d, x, buffer):
        return d * np.where(x < 0, 1, buffer) / (1 + buffer)
    for shape in ((3, 4), (0, 3), ()):
        x = g.away(shape)
        yield Case((g.array(shape), x, Fixed(g.cast(np.exp(-np.abs(np.asarray(x, np.float64)))))), {}, reference,
                   grad_args=(0,))  # the buffer is of x


@cases("_prelu_kernel")
def prelu_kernel(g):
    def reference(x, weight):
        return np.where(x > 0, x, x * weight)
    yield Case((g.away((3, 4)), g.array((1, 4))), {}, reference, double=True)
    for shape in ((3, 4), (0, 3), ()):
        yield Case((g.away(shape), g.array((1,) * len(shape))), {}, reference)


@cases("_prelu_kernel_backward")
def prelu_kernel_backward(g):
    def reference(d, x, weight):
        return np.where(x > 0, d, d * weight), np.where(x > 0, 0, d * x)
    yield Case((g.array((3, 4)), g.away((3, 4)), g.array((1, 4))), {}, reference)
    for shape in ((0, 3), ()):
        yield Case((g.array(shape), g.away(shape), g.array((1,) * len(shape))), {}, reference)


# ---- prelu, cosine_similarity ----

@cases("prelu")
def prelu(g):
    def reference(a, weight):
        shape = [1] * a.ndim
        if a.ndim > 1:
            shape[1] = weight.size
        return np.where(a > 0, a, a * weight.reshape(shape))

    for shape, weights in (((3, 4), (4,)), ((2, 3, 4), (3,)), ((2, 3, 4), (1,)), ((5,), (1,)), ((), (1,)),
                           ((3, 2), ()), ((0, 3), (3,))):
        yield Case((g.away(shape), g.array(weights)), {}, reference, double=shape == (2, 3, 4))
    yield Bad((g.array((4, 3)), g.array((2,))), "RuntimeError",
              "parameter numbers = 2 and channel size = 3")
    yield Bad((g.array((4, 3)), g.array((3, 1))), "RuntimeError",
              "to be a scalar or 1D tensor, but got: ndim = 2")
    yield Bad((g.array((4,)), g.other("int64", (1,))), "RuntimeError", "prelu: Type promoting not supported")
    yield Bad((g.other("int64", (4,)), g.other("int64", (1,))), "NotImplementedError",
              "\"prelu_cpu\" not implemented for 'Long'")


@cases("cosine_similarity")
def cosine_similarity(g):
    def reference(a, b, dim=1, eps=1e-8):
        axis = dim if max(np.ndim(a), np.ndim(b)) else None
        norms = [np.maximum(np.sqrt((v * v).sum(axis, keepdims=True)), eps) for v in np.broadcast_arrays(a,
                                                                                                         b)]
        return (a / norms[0] * (b / norms[1])).sum(axis)

    for first, second, dim in (((3, 4), (3, 4), 1), ((3, 4), (3, 4), 0), ((2, 3, 4), (4,), -1),
                               ((4,), (4,), 0)):
        yield Case((g.away(first), g.away(second), dim), {}, reference)
    yield Case((g.away(()), g.away(()), 0), {}, reference, grad=False)
    yield Case((g.array((0, 3)), g.array((0, 3))), {}, reference)
    yield Case((g.cast([[0.0, 0.0]]), g.cast([[3.0, 4.0]])), {"eps": 0.5}, reference, grad=False)
    yield Case((g.other("int64", (2, 2)), g.array((2, 2))), {}, reference, grad_args=(0,))
    yield Bad((g.other("int64", (2, 2)), g.other("int64", (2, 2))), "RuntimeError",
              "expected common dtype to be floating point, yet common dtype is Long")
    yield Bad((g.array((2, 3)), g.array((2, 2))), "RuntimeError", "must match the size")
    yield Bad((g.array((2, 3)), g.array((2, 3)), 2), "IndexError", "Dimension out of range")


# ---- lists ----

def several(g):
    return [g.array((3, 4)), g.array((2,)), g.array(())]


@cases("_foreach_norm", skip={"empty": "is linalg_vector_norm's"})
def foreach_norm(g):
    for order in (2, 1, np.inf):
        yield Case((several(g), order), {},
                   lambda arrays, order=2: [np.linalg.norm(a.reshape(-1), order) for a in arrays], grad=False)
    yield Bad(([],), "RuntimeError", "Tensor list must have at least one tensor.")
    yield Case((several(g),), {}, lambda arrays, order=2: [np.linalg.norm(a.reshape(-1)) for a in arrays])


def listed(function):
    """Every tensor of the first list is what function makes of it."""

    def check(got, tensors, arrays):
        del got
        for tensor, before in zip(tensors[0], arrays[0]):
            other = arrays[1]
            expected = function(np.asarray(before, np.float64), np.asarray(other, np.float64))
            np.testing.assert_allclose(tensor.numpy(), expected, rtol=2e-5, atol=2e-6)

    return check


DISTINCT = ("contiguous", "transposed", "sliced", "mixed")  # what is written must not repeat


@cases("_foreach_mul_", "_foreach_clamp_min_", "_foreach_clamp_max_", skip={"empty": "is the single row's"})
def foreach_(g):
    function = {"_foreach_mul_": np.multiply, "_foreach_clamp_min_": np.maximum,
                "_foreach_clamp_max_": np.minimum}[g.op]
    yield Case((several(g), 0.5), {}, check=listed(function), grad=False, layouts=DISTINCT)
    yield Bad(([], 0.5), "RuntimeError", "Tensor list must have at least one tensor.")
    if g.op == "_foreach_mul_":
        yield Case((several(g), g.array(())), {}, check=listed(function), grad=False, layouts=("contiguous",))
