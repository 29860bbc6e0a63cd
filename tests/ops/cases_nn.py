# SPDX-License-Identifier: Apache-2.0
"""Cases of ops_nn.def: softmax, norms, embedding, dropout, losses. References are plain NumPy."""
import numpy as np
from opcases import HALVES, Bad, Case, Fixed, cases

NONE, MEAN, SUM = 0, 1, 2


# ---- softmax ----

def softmax_of(x, dim, dtype=None):
    del dtype
    if x.size == 0:
        return x
    e = np.exp(x - x.max(dim if x.ndim else None, keepdims=True))
    return e / e.sum(dim if x.ndim else None, keepdims=True)


def log_softmax_of(x, dim, dtype=None):
    del dtype
    if x.size == 0:
        return x
    axis = dim if x.ndim else None
    shifted = x - x.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


@cases("softmax", "_softmax", "log_softmax", "_log_softmax")
def softmax(g):
    reference = log_softmax_of if "log" in g.op else softmax_of
    leaf = g.op.startswith("_")
    for dim in (0, 1, -1):
        yield Case((g.array((3, 5)), dim), {}, reference, double=True)
    yield Case((g.array((2, 3, 4)), 1), {}, reference)
    yield Case((g.array((4,)), 0), {}, reference)
    yield Case((g.array(()), 0), {}, reference)
    yield Case((g.array(()), -1), {}, reference)
    yield Case((g.array((0, 3)), 0), {}, reference)
    yield Case((g.array((3, 0)), 0), {}, reference)
    large = g.cast([[1000.0, 0.0, -1000.0], [-1e4, -1e4, -1e4]])
    yield Case((large, 1), {}, reference, grad=False)
    yield Bad((g.array((3, 5)), 2), "IndexError", "Dimension out of range (expected to be in range "
              "of [-2, 1], but got 2)")
    yield Bad((g.other("int64", (3, 5)), 1), "NotImplementedError", "not implemented for 'Long'")
    if leaf:
        yield Bad((g.array((3, 5)), 0, True), "RuntimeError", "half to float")
    else:
        yield Case((g.other("int64", (3, 5)), 0), {"dtype": g.dtype}, reference, result=g.dtype)


def softmax_backward_of(grad, output, dim):
    return output * (grad - (grad * output).sum(dim if grad.ndim else None, keepdims=True))


def log_softmax_backward_of(grad, output, dim):
    return grad - np.exp(output) * grad.sum(dim if grad.ndim else None, keepdims=True)


@cases("_softmax_backward_data", "_log_softmax_backward_data")
def softmax_backward(g):
    reference = log_softmax_backward_of if "log" in g.op else softmax_backward_of
    for shape, dim in (((3, 5), 1), ((3, 5), 0), ((2, 3, 4), 1), ((), 0), ((0, 3), 1)):
        yield Case((g.array(shape), g.array(shape), dim), {}, reference, double=True)
    yield Bad((g.array((3, 5)), g.array((2, 5)), 0), "RuntimeError",
              "but [3, 5] does not equal [2, 5]")


# ---- norms ----

def layer_norm_of(x, shape, weight=None, bias=None, eps=1e-5):
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    with np.errstate(all="ignore"):
        mean = x.sum(axes, keepdims=True) / max(int(np.prod(shape)), 1)
        var = ((x - mean) ** 2).sum(axes, keepdims=True) / np.float64(np.prod(shape))
        rstd = 1 / np.sqrt(var + eps)
    out = (x - mean) * rstd
    out = out if weight is None else out * weight
    return out if bias is None else out + bias, mean, rstd


@cases("layer_norm", skip={"0-d": "normalizes over at least one dimension"})
def layer_norm(g):
    def reference(*args, **kwargs):
        return layer_norm_of(*args, **kwargs)[0]

    x = g.array((3, 4, 5))
    yield Case((x, [5]), {}, reference, double=True)
    yield Case((x, [4, 5]), {}, reference)
    yield Case((x, [5], g.array((5,)), g.array((5,))), {"eps": 0.1}, reference, double=True)
    yield Case((x, [4, 5], g.array((4, 5)), None), {}, reference)
    yield Case((x, [3, 4, 5], None, g.array((3, 4, 5))), {}, reference)
    yield Case((g.array((0, 5)), [5], g.array((5,)), g.array((5,))), {}, reference)
    for half in HALVES:  # parameters of float32
        yield Case((Fixed(g.other(half, (3, 5))), [5], Fixed(g.other("float32", (5,))), None), {}, reference,
                   result=half, grad=False, rtol=2e-2, atol=2e-2)
    yield Bad((x, [4]), "RuntimeError", "Given normalized_shape=[4], expected input with shape "
              "[*, 4], but got input of size[3, 4, 5]")
    yield Bad((x, []), "RuntimeError", "at least 1-dimensional")
    yield Bad((x, [5], g.array((4,))), "RuntimeError", "Expected weight to be of same shape")
    yield Bad((x, [5], None, g.array((4,))), "RuntimeError", "Expected bias to be of same shape")
    yield Bad((g.other("int64", (3, 5)), [5]), "NotImplementedError", "not implemented for 'Long'")
    other = "float32" if g.dtype == "float64" else "float64"
    yield Bad((x, [5], g.other(other, (5,))), "RuntimeError", "mixed dtype")


@cases("native_layer_norm", skip={"0-d": "normalizes over at least one dimension"})
def native_layer_norm(g):
    x = g.array((3, 4, 5))
    yield Case((x, [5], None, None, 1e-5), {}, layer_norm_of, double=True)
    yield Case((x, [4, 5], g.array((4, 5)), g.array((4, 5)), 1e-3), {}, layer_norm_of)
    yield Case((g.array((0, 5)), [5], None, None, 1e-5), {}, layer_norm_of)


def layer_norm_backward_of(grad, x, shape, mean, rstd, weight, bias, mask):
    del bias, mask
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    outer = tuple(range(x.ndim - len(shape)))
    hat = (x - mean) * rstd
    gw = grad if weight is None else grad * weight
    width = max(int(np.prod(shape)), 1)
    grad_in = rstd * (gw - gw.sum(axes, keepdims=True) / width -
                      hat * (gw * hat).sum(axes, keepdims=True) / width)
    return grad_in, (grad * hat).sum(outer), grad.sum(outer)


@cases("native_layer_norm_backward", skip={"0-d": "normalizes over at least one dimension"})
def native_layer_norm_backward(g):
    for rows in (3, 0):
        x = g.array((rows, 5))
        mean = g.cast(x.mean(1, keepdims=True))
        rstd = g.positive((rows, 1))
        for weight in (None, g.array((5,))):
            yield Case((g.array((rows, 5)), x, [5], mean, rstd, weight, None, [1, 1, 1]), {},
                       layer_norm_backward_of, grad=False)
    yield Bad((g.array((2, 5)), x, [5], mean, rstd, None, None, [1, 1, 1]), "RuntimeError",
              "grad_out must have the input's sizes")


def channels(values, ndim):
    return None if values is None else values.reshape((1, -1) + (1,) * (ndim - 2))


def batch_norm_of(x, weight, bias, running_mean, running_var, training, momentum, eps):
    del momentum
    axes = (0,) + tuple(range(2, x.ndim))
    mean = x.mean(axes) if training else running_mean
    var = x.var(axes) if training else running_var
    rstd = 1 / np.sqrt(var + eps)
    out = (x - channels(mean, x.ndim)) * channels(rstd, x.ndim)
    out = out if weight is None else out * channels(weight, x.ndim)
    return out if bias is None else out + channels(bias, x.ndim), mean, rstd


@cases("batch_norm", "native_batch_norm", skip={"0-d": "has a channel dimension",
                                                "empty": "native_batch_norm wants an element"})
def batch_norm(g):
    def reference(*args):
        out = batch_norm_of(*args)
        return out if g.op.startswith("native") else out[0]

    for shape in ((4, 3), (2, 3, 4), (2, 3, 2, 2)):
        x = g.array(shape)
        yield Case((x, None, None, None, None, True, 0.1, 1e-5), {}, reference)
        yield Case((x, g.array((3,)), g.array((3,)), None, None, True, 0.1, 1e-2), {}, reference,
                   double=True, layouts=("contiguous", "transposed", "sliced", "mixed"))
        yield Case((x, g.array((3,)), g.array((3,)), g.array((3,)), g.positive((3,)), False, 0.1,
                    1e-5), {}, reference, grad_args=(0, 1, 2), double=True)

    for half in HALVES:  # parameters of float32
        yield Case((Fixed(g.other(half, (4, 3))), Fixed(g.other("float32", (3,))), None, None, None, True, 0.1, 1e-2),
                   {}, reference, result=(half, "float32", "float32") if g.op.startswith("native") else half,
                   grad=False, rtol=2e-2, atol=2e-2)

    def updated(got, tensors, arrays):
        del got
        data = np.asarray(arrays[0], np.float64)
        with np.errstate(all="ignore"):
            for i, new in ((3, data.mean(0)), (4, data.var(0, ddof=1))):
                np.testing.assert_allclose(tensors[i].numpy(), 0.75 * arrays[i] + 0.25 * new,
                                           rtol=1e-5, atol=1e-6)
                assert tensors[i].version > 0

    x = g.array((4, 3))
    yield Case((x, None, None, g.array((3,)), g.positive((3,)), True, 0.25, 1e-5), {}, reference,
               check=updated, grad=False, layouts=("contiguous", "transposed", "sliced", "mixed"))
    if g.op == "batch_norm":
        yield Case((g.array((0, 3)), g.array((3,)), g.array((3,)), None, None, True, 0.1, 1e-5), {},
                   lambda x, *rest: x)
    else:
        yield Bad((g.array((0, 3)), None, None, None, None, True, 0.1, 1e-5), "RuntimeError",
                  "at least one element")
    yield Bad((x, None, None, None, None, False, 0.1, 1e-5), "RuntimeError",
              "running_mean must be defined in evaluation mode")
    yield Bad((x, None, None, g.array((3,)), None, True, 0.1, 1e-5), "ValueError",
              "must either both be None or neither be None")
    yield Bad((x, g.array((4,)), None, None, None, True, 0.1, 1e-5), "RuntimeError",
              "weight should contain 3 elements not 4")
    yield Bad((x, None, None, g.array((4,)), g.array((3,)), True, 0.1, 1e-5), "RuntimeError",
              "running_mean should contain 3 elements not 4")
    yield Bad((g.array((4,)), None, None, None, None, True, 0.1, 1e-5), "IndexError",
              "Dimension out of range")
    yield Bad((g.other("int64", (4, 3)), None, None, None, None, True, 0.1, 1e-5),
              "NotImplementedError", "not implemented for 'Long'")


def batch_norm_backward_of(grad, x, weight, running_mean, running_var, save_mean, save_rstd, train,
                           eps, mask):
    del mask
    axes = (0,) + tuple(range(2, x.ndim))
    mean = save_mean if save_mean is not None else running_mean
    rstd = save_rstd if save_rstd is not None else 1 / np.sqrt(running_var + eps)
    mean, rstd = channels(mean, x.ndim), channels(rstd, x.ndim)
    hat = (x - mean) * rstd
    gw = grad if weight is None else grad * channels(weight, x.ndim)
    if train:
        gw = (gw - gw.mean(axes, keepdims=True) - hat * (gw * hat).mean(axes, keepdims=True))
    return gw * rstd, (grad * hat).sum(axes), grad.sum(axes)


@cases("native_batch_norm_backward", skip={"0-d": "has a channel dimension",
                                           "empty": "the forward wants an element"})
def native_batch_norm_backward(g):
    for shape in ((4, 3), (2, 3, 4)):
        x, grad = g.array(shape), g.array(shape)
        mean, rstd = g.array((3,)), g.positive((3,))
        for weight in (None, g.array((3,))):
            for train in (True, False):
                yield Case((grad, x, weight, None, None, mean, rstd, train, 1e-5, [1, 1, 1]), {},
                           batch_norm_backward_of, grad=False)
            yield Case((grad, x, weight, mean, rstd, None, None, False, 1e-5, [1, 1, 1]), {},
                       batch_norm_backward_of, grad=False)
    yield Bad((grad, x, None, None, None, None, None, True, 1e-5, [1, 1, 1]), "RuntimeError",
              "save_mean and save_invstd must be defined")


# ---- embedding, dropout ----

@cases("embedding")
def embedding(g):
    weight = g.array((6, 3))

    def reference(w, i, padding_idx=-1):
        del padding_idx
        return w[i]

    yield Case((weight, g.indices((4,), 6)), {}, reference, double=True)
    yield Case((weight, g.indices((2, 3), 6)), {}, reference)
    yield Case((weight, g.indices((2, 3), 6).astype(np.int32)), {}, reference)
    yield Case((weight, g.indices((), 6)), {}, reference)
    yield Case((weight, g.indices((0, 2), 6)), {}, reference)
    yield Case((weight, np.array([1, 2, 1], np.int64), 2), {}, reference, grad=False)
    yield Case((g.other("int64", (6, 3)), g.indices((4,), 6)), {}, reference)
    yield Bad((weight, np.array([1, 6], np.int64)), "IndexError", "out of range")
    yield Bad((weight, np.array([1, -1], np.int64)), "IndexError", "out of range")
    yield Bad((weight, g.array((2,))), "RuntimeError", "scalar types: Long, Int; but got torch.")
    yield Bad((g.array((6,)), g.indices((2,), 6)), "RuntimeError", "'weight' must be 2-D")


def embedding_backward_of(grad, indices, num_weights, padding_idx):
    out = np.zeros((num_weights, grad.shape[-1]))
    keep = indices.reshape(-1) != padding_idx
    np.add.at(out, indices.reshape(-1)[keep], grad.reshape(-1, grad.shape[-1])[keep])
    return out


@cases("embedding_dense_backward")
def embedding_dense_backward(g):
    yield Case((g.array((4, 3)), np.array([0, 2, 2, 4], np.int64), 5, -1), {},
               embedding_backward_of, double=True)
    yield Case((g.array((4, 3)), np.array([0, 2, 2, 4], np.int64), 5, 2), {}, embedding_backward_of)
    yield Case((g.array((2, 2, 3)), g.indices((2, 2), 5).astype(np.int32), 5, -1), {},
               embedding_backward_of)
    yield Case((g.array((3,)), g.indices((), 5), 5, -1), {}, embedding_backward_of)
    yield Case((g.array((0, 3)), g.indices((0,), 5), 5, -1), {}, embedding_backward_of)
    yield Bad((g.array((3, 3)), g.indices((2,), 5), 5, -1), "RuntimeError", "does not belong")


@cases("embedding_backward")
def embedding_backward(g):
    def reference(grad, indices, num_weights, padding_idx, *flags):
        return embedding_backward_of(grad, indices, num_weights, padding_idx)

    yield Case((g.array((4, 3)), np.array([0, 2, 2, 4], np.int64), 5, -1), {}, reference)
    yield Case((g.array((4, 3)), np.array([0, 2, 2, 4], np.int64), 5, 2, False, False), {}, reference)
    yield Case((g.array((3,)), g.indices((), 5), 5, -1), {}, reference)
    yield Case((g.array((0, 3)), g.indices((0,), 5), 5, -1), {}, reference)
    yield Bad((g.array((4, 3)), g.indices((4,), 5), 5, -1, True), "NotImplementedError",
              "scale_grad_by_freq is not supported")
    yield Bad((g.array((4, 3)), g.indices((4,), 5), 5, -1, False, True), "NotImplementedError",
              "sparse is not supported")


def check_dropped(got, args, kwargs):
    """Every element is 0 or scaled, both happen, and not in a regular pattern."""
    del kwargs
    data, p = args[0].numpy(), args[1]
    out = (got[0] if isinstance(got, (tuple, list)) else got).numpy()
    kept = out != 0
    np.testing.assert_allclose(out[kept], data[kept] / (1 - p), rtol=1e-6)
    if data.size >= 200:
        assert abs(kept.mean() - (1 - p)) < 0.2, kept.mean()
    if isinstance(got, (tuple, list)):
        assert got[1].dtype == "bool"
        np.testing.assert_array_equal(got[1].numpy(), kept | (data == 0))


@cases("dropout")
def dropout(g):
    yield Case((g.away((20, 12)), 0.3), {}, check=check_dropped, grad=False)
    yield Case((g.away((3, 4)), 0.5), {}, check=check_dropped)
    yield Case((g.array((3, 4)), 0.5, False), {}, lambda x, p, train: x)
    yield Case((g.array((3, 4)), 0.0), {}, lambda x, p: x)
    yield Case((g.array((3, 4)), 1.0), {}, lambda x, p: 0 * x)
    yield Case((g.array(()), 1.0), {}, lambda x, p: 0 * x)
    yield Case((g.array((0, 2)), 0.5), {}, lambda x, p: x)
    yield Bad((g.array((2,)), 1.5), "RuntimeError",
              "dropout probability has to be between 0 and 1, but got 1.5")
    yield Bad((g.array((2,)), float("nan")), "RuntimeError", "between 0 and 1, but got nan")
    yield Bad((g.other("int64", (2,)), 0.5), "RuntimeError",
              "result type Float can't be cast to the desired output type Long")


@cases("native_dropout")
def native_dropout(g):
    yield Case((g.away((20, 12)), 0.3), {}, check=check_dropped, grad=False)
    yield Case((g.away((3, 4)), 0.5), {}, check=check_dropped)
    yield Case((g.away(()), 0.0), {}, lambda x, p: (x, np.ones_like(x, bool)))
    yield Case((g.away((0, 2)), 0.5), {}, lambda x, p: (x, np.ones_like(x, bool)))
    yield Case((g.away((3,)), 1.0), {}, lambda x, p: (0 * x, np.zeros_like(x, bool)))
    yield Bad((g.array((2,)), -0.5), "RuntimeError", "between 0 and 1")


@cases("native_dropout_backward")
def native_dropout_backward(g):
    for shape in ((3, 4), (), (0, 2)):
        yield Case((g.array(shape), g.mask(shape), 2.0), {}, lambda a, m, s: a * m * s, double=True)
    yield Bad((g.array((3,)), g.array((3,)), 2.0), "RuntimeError", "mask must be bool")


# ---- losses ----

def reduce(loss, reduction):
    with np.errstate(all="ignore"):
        if reduction == MEAN:
            return loss.sum() / np.float64(loss.size)
        return loss.sum() if reduction == SUM else loss


def nll_of(x, target, weight=None, reduction=MEAN, ignore=-100):
    """Loss and the sum of the weights, for [N, C] or [C]."""
    rows = x.reshape(-1, x.shape[-1])
    flat = np.asarray(target).reshape(-1).astype(np.int64)
    kept = flat != ignore
    index = np.where(kept, flat, 0)
    w = (np.ones(x.shape[-1]) if weight is None else weight)[index] * kept
    loss = -rows[np.arange(len(flat)), index] * w
    total = w.sum()
    if reduction == NONE:
        return loss.reshape(x.shape[:-1]), np.float64(0 if x.ndim == 2 else total)
    with np.errstate(all="ignore"):
        return (loss.sum() / total if reduction == MEAN else loss.sum()), total


def nll_nd_of(x, target, weight=None, reduction=MEAN, ignore=-100):
    if x.ndim <= 2:
        return nll_of(x, target, weight, reduction, ignore)[0]
    rows = np.moveaxis(x, 1, -1)
    loss, _ = nll_of(rows.reshape(-1, x.shape[1]), target, weight, reduction, ignore)
    return loss.reshape(target.shape) if reduction == NONE else loss


@cases("nll_loss", "nll_loss_nd", skip={"0-d": "has a class dimension"})
def nll_loss(g):
    x = g.array((4, 5))
    target = np.array([0, 4, 2, 2], np.int64)
    for reduction in (NONE, MEAN, SUM):
        yield Case((x, target, None, reduction), {}, nll_nd_of, double=True)
        yield Case((x, target, g.positive((5,)), reduction, 2), {}, nll_nd_of, grad_args=(0,))
        yield Case((g.array((5,)), np.array(3, np.int64), None, reduction), {}, nll_nd_of)
        yield Case((g.array((0, 5)), np.zeros((0,), np.int64), None, reduction), {}, nll_nd_of)
    yield Case((x, target.astype(np.uint8)), {}, nll_nd_of)
    yield Case((x, np.full(4, -100, np.int64)), {}, nll_nd_of, grad=False)  # NaN
    yield Bad((x, np.array([0, 1, 2, 9], np.int64)), "IndexError", "Target 9 is out of bounds")
    yield Bad((x, np.array([0, 1, 2, -1], np.int64)), "IndexError", "Target -1 is out of bounds")
    yield Bad((x, target.astype(np.int32)), "RuntimeError",
              "expected target dtype to be Long or Byte, but got Int")
    yield Bad((x, target, g.positive((4,))), "RuntimeError",
              "weight tensor should be defined either for all 5 classes")
    yield Bad((x, target, None, 7), "ValueError", "7 is not a valid value for reduction")
    yield Bad((x, np.zeros((4, 5), np.int64)), "RuntimeError", "multi-target not supported")
    if g.op == "nll_loss_nd":
        y = g.array((2, 3, 4))
        for reduction in (NONE, MEAN, SUM):
            yield Case((y, g.indices((2, 4), 3), None, reduction), {}, nll_nd_of)
            yield Case((g.array((2, 3, 2, 2)), g.indices((2, 2, 2), 3), g.positive((3,)), reduction,
                        1), {}, nll_nd_of, grad_args=(0,))
        yield Bad((y, g.indices((2, 5), 3)), "RuntimeError",
                  "Expected target size [2, 4], got [2, 5]")
        yield Bad((x, target[:2]), "ValueError",
                  "Expected input batch_size (4) to match target batch_size (2).")
        yield Bad((g.array(()), np.array(0, np.int64)), "ValueError",
                  "Expected 1 or more dimensions (got 0)")
    else:
        yield Bad((g.array((2, 3, 4)), g.indices((2,), 3)), "RuntimeError",
                  "input tensor should be 1D or 2D")


@cases("nll_loss_forward", skip={"0-d": "has a class dimension"})
def nll_loss_forward(g):
    x = g.array((4, 5))
    target = np.array([0, 4, 2, 2], np.int64)
    for reduction in (NONE, MEAN, SUM):
        yield Case((x, target, None, reduction, -100), {}, nll_of, double=True)
        yield Case((x, target, g.positive((5,)), reduction, 2), {}, nll_of, grad_args=(0,))
        yield Case((g.array((0, 5)), np.zeros((0,), np.int64), None, reduction, -100), {}, nll_of)


def nll_backward_of(grad, x, target, weight, reduction, ignore, total):
    out = np.zeros(x.shape)
    rows = out.reshape(-1, x.shape[-1])
    for i, t in enumerate(np.reshape(target, -1)):
        if t != ignore:
            w = 1.0 if weight is None else weight[t]
            g = np.reshape(grad, -1)[i if reduction == NONE else 0]
            rows[i, t] = -w * g / (total if reduction == MEAN else 1)
    return out


@cases("nll_loss_backward")
def nll_loss_backward(g):
    x = g.array((4, 5))
    target = np.array([0, 4, 2, 2], np.int64)
    weight = g.positive((5,))
    for reduction in (NONE, MEAN, SUM):
        grad = g.array((4,) if reduction == NONE else ())
        total = g.cast(nll_of(x, target, weight, SUM, 2)[1])
        yield Case((grad, x, target, weight, reduction, 2, Fixed(total)), {}, nll_backward_of,
                   grad=False)
        yield Case((g.array(()), g.array((5,)), np.array(3, np.int64), None, reduction, -100,
                    Fixed(g.cast(1.0))), {}, nll_backward_of, grad=False)
    empty = np.zeros((0,), np.int64)
    yield Case((g.array((0,)), g.array((0, 5)), empty, None, NONE, -100, Fixed(g.cast(0.0))), {},
               nll_backward_of, grad=False)
    yield Bad((g.array((3,)), x, target, None, NONE, -100, Fixed(g.cast(1.0))), "RuntimeError",
              "Expected a tensor of dimension 1 and tensor.size[0] == 4")
    yield Bad((g.array((4,)), x, target, None, MEAN, -100, Fixed(g.cast(1.0))), "RuntimeError",
              "Expected a single element grad_output tensor, but got: [4]")


def cross_entropy_of(x, target, weight=None, reduction=MEAN, ignore=-100, smoothing=0.0):
    dim = 0 if x.ndim == 1 else 1
    logs = log_softmax_of(x, dim)
    classes = x.shape[dim]
    shape = [1] * x.ndim
    shape[dim] = classes
    w = np.ones(shape) if weight is None else weight.reshape(shape)
    if x.shape == target.shape:
        smooth = target * (1 - smoothing) + smoothing / classes
        loss = -(logs * smooth * w).sum(dim)
        with np.errstate(all="ignore"):
            return loss.sum() / np.float64(x.size / classes) if reduction == MEAN else reduce(
                loss, reduction)
    plain = nll_nd_of(logs, target, weight, reduction, ignore)
    if smoothing <= 0:
        return plain
    kept = target != ignore
    smooth = -(logs * w).sum(dim) * kept
    if reduction == MEAN:
        flat = np.ones(classes) if weight is None else weight
        smooth = smooth.sum() / (flat[np.where(kept, target, 0)] * kept).sum()
    elif reduction == SUM:
        smooth = smooth.sum()
    return (1 - smoothing) * plain + smooth * smoothing / classes


@cases("cross_entropy_loss", skip={"0-d": "has a class dimension"})
def cross_entropy_loss(g):
    x = g.array((4, 5))
    target = np.array([0, 4, 2, 2], np.int64)
    shares = g.cast(softmax_of(np.asarray(g.array((4, 5)), np.float64), 1))
    weight = g.positive((5,))
    for reduction in (NONE, MEAN, SUM):
        yield Case((x, target, None, reduction), {}, cross_entropy_of, double=True)
        yield Case((x, target, weight, reduction, 2), {}, cross_entropy_of, grad_args=(0,))
        yield Case((x, target, None, reduction, 2, 0.2), {}, cross_entropy_of)
        yield Case((x, target, weight, reduction, 2, 0.2), {}, cross_entropy_of, grad_args=(0,))
        yield Case((x, shares, None, reduction), {}, cross_entropy_of)
        yield Case((x, shares, weight, reduction, -100, 0.3), {}, cross_entropy_of)
        yield Case((g.array((5,)), np.array(3, np.int64), weight, reduction, -100, 0.1), {},
                   cross_entropy_of, grad_args=(0,))
        yield Case((g.array((5,)), g.array((5,)), None, reduction), {}, cross_entropy_of)
        y = g.array((2, 3, 4))
        yield Case((y, g.indices((2, 4), 3), None, reduction), {}, cross_entropy_of)
        yield Case((y, g.indices((2, 4), 3), g.positive((3,)), reduction, 1, 0.1), {},
                   cross_entropy_of, grad_args=(0,))
        yield Case((y, g.array((2, 3, 4)), g.positive((3,)), reduction), {}, cross_entropy_of)
        yield Case((g.array((0, 5)), np.zeros((0,), np.int64), None, reduction), {},
                   cross_entropy_of)
    yield Bad((x, target, None, 1, -100, 2.0), "RuntimeError",
              "label_smoothing must be between 0.0 and 1.0. Got: 2")
    yield Bad((x, shares, None, 1, 2), "RuntimeError",
              "ignore_index is not supported for floating point target")
    yield Bad((x, np.zeros((4, 5), np.int64)), "RuntimeError",
              "Expected floating point type for target with class probabilities, got Long")
    yield Bad((x, shares, g.array((4,))), "RuntimeError", "cross_entropy: weight tensor should be")
    yield Bad((x, target[:2]), "ValueError",
              "Expected input batch_size (4) to match target batch_size (2).")
    yield Bad((x, np.array([0, 1, 2, 9], np.int64)), "IndexError", "Target 9 is out of bounds")
    yield Bad((x, target, None, 5), "ValueError", "5 is not a valid value for reduction")


def mse_of(x, target, reduction=MEAN):
    return reduce((x - target) ** 2, reduction)


def l1_of(x, target, reduction=MEAN):
    return reduce(np.abs(x - target), reduction)


def smooth_l1_of(x, target, reduction=MEAN, beta=1.0):
    z = np.abs(x - target)
    if beta == 0:
        return reduce(z, reduction)
    return reduce(np.where(z < beta, 0.5 * z * z / beta, z - 0.5 * beta), reduction)


@cases("mse_loss", "l1_loss", "smooth_l1_loss")
def difference_loss(g):
    reference = {"mse_loss": mse_of, "l1_loss": l1_of, "smooth_l1_loss": smooth_l1_of}[g.op]
    x = g.array((3, 4))
    far = g.cast(np.asarray(x, np.float64) + np.asarray(g.away((3, 4)), np.float64))
    for reduction in (NONE, MEAN, SUM):
        double = reduction != NONE or g.op != "l1_loss"
        yield Case((x, far, reduction), {}, reference, double=double, layouts=(
            "contiguous", "transposed", "sliced", "mixed"))
        yield Case((g.array(()), g.array(()), reduction), {}, reference)
        yield Case((g.array((0, 2)), g.array((0, 2)), reduction), {}, reference)
        yield Case((g.array((3, 1)), g.array((4,)), reduction), {}, reference, grad=False)
    yield Case((x, far), {}, reference, grad=False)
    yield Bad((x, g.array((2, 4))), "RuntimeError", "The size of tensor a (3) must match the size "
              "of tensor b (2) at non-singleton dimension 0")
    yield Bad((x, far, 7), "ValueError", "7 is not a valid value for reduction")
    if g.op == "mse_loss":
        yield Case((g.array((3, 1)), g.array((4,)), MEAN), {}, reference, double=True)
        yield Case((x, g.other("int64", (3, 4))), {}, reference)
        yield Bad((g.other("int64", (2,)), g.other("int64", (2,))), "NotImplementedError",
                  "not implemented for 'Long'")
    if g.op == "smooth_l1_loss":
        for beta in (0.0, 0.2, 3.0):
            yield Case((x, far), {"beta": beta}, reference, double=beta > 0, layouts=(
                "contiguous", "transposed"))
        special = g.cast([np.nan, np.inf, -np.inf, 0.0])
        yield Case((special, g.cast(np.zeros(4)), NONE), {}, reference, grad=False)
        yield Bad((x, far, 1, -1.0), "RuntimeError", "negative values for beta")


def divisor(x, target, reduction):
    return np.broadcast(x, target).size if reduction == MEAN else 1


@cases("mse_loss_backward", "smooth_l1_loss_backward")
def difference_loss_backward(g):
    def mse(grad, x, target, reduction):
        with np.errstate(all="ignore"):
            return grad * 2 * (x - target) / np.float64(divisor(x, target, reduction))

    def smooth(grad, x, target, reduction, beta):
        slope = np.sign(x - target) if beta == 0 else np.clip(x - target, -beta, beta) / beta
        with np.errstate(all="ignore"):
            return grad * slope / np.float64(divisor(x, target, reduction))

    x, target = g.array((3, 4)), g.array((3, 4))
    for reduction in (NONE, MEAN, SUM):
        for shape in ((3, 4), (), (0, 2)):
            grad = g.array(shape if reduction == NONE else ())
            args = (grad, g.array(shape), g.array(shape), reduction)
            if g.op == "mse_loss_backward":
                yield Case(args, {}, mse, double=True)
            else:
                yield Case(args + (1.0,), {}, smooth, grad=False)
                yield Case(args + (0.0,), {}, smooth, grad=False)
    extra = () if g.op == "mse_loss_backward" else (1.0,)
    yield Bad((g.array((5,)), x, target, NONE) + extra, "RuntimeError", "must match the size")


def bce_of(x, target, weight=None, reduction=MEAN):
    with np.errstate(all="ignore"):
        loss = -(target * np.maximum(np.log(x), -100) + (1 - target) *
                 np.maximum(np.log1p(-x), -100))
    return reduce(loss if weight is None else loss * weight, reduction)


@cases("binary_cross_entropy")
def binary_cross_entropy(g):
    x, target = g.array((3, 4), 0.1, 0.9), g.array((3, 4), 0.1, 0.9)
    for reduction in (NONE, MEAN, SUM):
        yield Case((x, target, None, reduction), {}, bce_of, double=True)
        yield Case((x, target, g.positive((4,)), reduction), {}, bce_of, grad_args=(0, 1))
        yield Case((g.array((), 0.1, 0.9), g.array((), 0.1, 0.9), None, reduction), {}, bce_of)
        yield Case((g.array((0, 2)), g.array((0, 2)), None, reduction), {}, bce_of)
    edges = g.cast([0.0, 1.0, 0.0, 1.0])
    yield Case((edges, g.cast([0.0, 1.0, 1.0, 0.0]), None, NONE), {}, bce_of, grad=False)
    yield Bad((g.cast([0.5, 1.5]), g.cast([0.0, 1.0])), "RuntimeError",
              "all elements of input should be between 0 and 1")
    yield Bad((g.cast([0.5, np.nan]), g.cast([0.0, 1.0])), "RuntimeError",
              "all elements of input should be between 0 and 1")
    yield Bad((g.cast([0.5, 0.5]), g.cast([0.0, 5.0])), "RuntimeError",
              "all elements of target should be between 0 and 1")
    yield Bad((x, g.other("int64", (3, 4))), "RuntimeError", "Found dtype Long but expected")
    yield Bad((g.other("int64", (2,)), g.other("int64", (2,))), "NotImplementedError", "'Long'")
    yield Bad((x, target, g.array((2, 3, 4))), "RuntimeError",
              "output with shape [3, 4] doesn't match the broadcast shape [2, 3, 4]")


@cases("binary_cross_entropy_backward")
def binary_cross_entropy_backward(g):
    def reference(grad, x, target, weight, reduction):
        with np.errstate(all="ignore"):
            out = grad * (x - target) / np.maximum((1 - x) * x, 1e-12)
            out = out if weight is None else out * weight
            return out / np.float64(divisor(x, target, reduction))

    for reduction in (NONE, MEAN, SUM):
        for shape in ((3, 4), (), (0, 2)):
            grad = g.array(shape if reduction == NONE else ())
            yield Case((grad, g.array(shape, 0.1, 0.9), g.array(shape, 0.1, 0.9), None, reduction),
                       {}, reference, grad=False)
    yield Case((g.array(()), g.array((3, 4), 0.1, 0.9), g.array((3, 4)), g.array((4,)), MEAN), {},
               reference, grad=False)
    yield Bad((g.array((5,)), g.array((3, 4)), g.array((3, 4)), None, NONE), "RuntimeError",
              "must match the size")


def bce_logits_of(x, target, weight=None, positive=None, reduction=MEAN):
    factor = 1 if positive is None else 1 + (positive - 1) * target
    log_sigmoid = np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))
    loss = (1 - target) * x - factor * log_sigmoid
    return reduce(loss if weight is None else loss * weight, reduction)


@cases("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(g):
    x, target = g.array((3, 4)), g.array((3, 4), 0.1, 0.9)
    for reduction in (NONE, MEAN, SUM):
        yield Case((x, target, None, None, reduction), {}, bce_logits_of, double=True)
        yield Case((x, target, g.positive((4,)), g.positive((4,)), reduction), {}, bce_logits_of,
                   grad_args=(0, 1), double=True)
        yield Case((g.array(()), g.array((), 0.1, 0.9), None, None, reduction), {}, bce_logits_of)
        yield Case((g.array((0, 2)), g.array((0, 2)), None, None, reduction), {}, bce_logits_of)
    yield Case((g.array((1, 4)), target, None, None, NONE), {}, bce_logits_of)
    yield Case((g.cast([1000.0, -1000.0]), g.cast([0.0, 1.0]), None, None, NONE), {}, bce_logits_of,
               grad=False)
    yield Bad((x, g.other("int64", (3, 4))), "RuntimeError", "can't be cast to the desired output")
    yield Bad((x, g.array((4,))), "RuntimeError",
              "output with shape [4] doesn't match the broadcast shape [3, 4]")
    yield Bad((x, target, None, g.array((3,))), "RuntimeError", "must match the size")
    yield Bad((x, target, None, None, 8), "ValueError", "8 is not a valid value for reduction")
