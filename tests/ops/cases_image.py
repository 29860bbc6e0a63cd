# SPDX-License-Identifier: Apache-2.0
"""Cases of ops_image.def, and of attention in ops_nn.def."""
import math

import numpy as np
from opcases import ALL, FLOATS, HALVES, Bad, Case, Fixed, cases

IMAGES = {"0-d": "takes images"}
NO_EMPTY = {"0-d": "takes images", "empty": "the forward op has them"}


# ---- references by plain loops ---------------------------------------------------------------------

def pair(value, n=2):
    return tuple(value) * (n if len(value) == 1 else 1)


def conv_reference(x, w, b=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    stride, padding, dilation = pair(stride), pair(padding), pair(dilation)
    if x.ndim == 3:
        return conv_reference(x[None], w, b, stride, padding, dilation, groups)[0]
    n, c, h, width = x.shape
    o, cg, kh, kw = w.shape
    padded = np.zeros((n, c, h + 2 * padding[0], width + 2 * padding[1]), x.dtype)
    padded[:, :, padding[0]:padding[0] + h, padding[1]:padding[1] + width] = x
    oh = (padded.shape[2] - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    ow = (padded.shape[3] - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    out = np.zeros((n, o, oh, ow), x.dtype)
    for group in range(groups):
        rows = slice(group * (o // groups), (group + 1) * (o // groups))
        image = padded[:, group * cg:(group + 1) * cg]
        for ky in range(kh):
            for kx in range(kw):
                part = image[:, :, ky * dilation[0]:ky * dilation[0] + (oh - 1) * stride[0] + 1:
                             stride[0],
                             kx * dilation[1]:kx * dilation[1] + (ow - 1) * stride[1] + 1:stride[1]]
                out[:, rows] += np.einsum("ncyx,oc->noyx", part, w[rows, :, ky, kx]).astype(x.dtype)
    return out if b is None else (out + b[:, None, None]).astype(x.dtype)


def conv1d_reference(x, w, b=None, stride=(1,), padding=(0,), dilation=(1,), groups=1):
    return conv_reference(x[..., None, :], w[:, :, None, :], b, (1, stride[0]), (0, padding[0]),
                          (1, dilation[0]), groups)[..., 0, :]


def out_size(size, k, s, p, d, ceil_mode):
    out = (size + 2 * p - d * (k - 1) - 1 + (s - 1 if ceil_mode else 0)) // s + 1
    return out - 1 if ceil_mode and (out - 1) * s >= size + p else out


def windows(shape, kernel, stride, padding, dilation, ceil_mode):
    """(y, x, rows, columns) of every window, elements inside the plane only."""
    kernel = pair(kernel)
    stride = pair(stride) if stride else kernel
    padding, dilation = pair(padding), pair(dilation)
    sizes = [out_size(shape[-2 + i], kernel[i], stride[i], padding[i], dilation[i], ceil_mode)
             for i in range(2)]
    for y in range(sizes[0]):
        for x in range(sizes[1]):
            inside = []
            for i, place in enumerate((y, x)):
                start = place * stride[i] - padding[i]
                inside.append([e for e in range(start, start + kernel[i] * dilation[i], dilation[i])
                               if 0 <= e < shape[-2 + i]])
            yield y, x, inside[0], inside[1], sizes


def max_reference(a, kernel_size, stride=(), padding=(0, 0), dilation=(1, 1), ceil_mode=False):
    out = indices = None
    for y, x, rows, columns, sizes in windows(a.shape, kernel_size, stride, padding, dilation,
                                              ceil_mode):
        if out is None:
            out = np.zeros(a.shape[:-2] + tuple(sizes), a.dtype)
            indices = np.zeros(out.shape, np.int64)
        part = a[..., rows, :][..., columns].reshape(a.shape[:-2] + (-1,))
        flat = np.array([r * a.shape[-1] + c for r in rows for c in columns])
        best = part.argmax(-1)
        out[..., y, x] = np.take_along_axis(part, best[..., None], -1)[..., 0]
        indices[..., y, x] = flat[best]
    return out, indices


def avg_reference(a, kernel_size, stride=(), padding=(0, 0), ceil_mode=False,
                  count_include_pad=True, divisor_override=None):
    kernel, out = pair(kernel_size), None
    stride = pair(stride) if stride else kernel
    padding = pair(padding)
    for y, x, rows, columns, sizes in windows(a.shape, kernel, stride, padding, (1, 1), ceil_mode):
        if out is None:
            out = np.zeros(a.shape[:-2] + tuple(sizes), a.dtype)
        total = a[..., rows, :][..., columns].sum((-1, -2))
        y0, x0 = y * stride[0] - padding[0], x * stride[1] - padding[1]
        full = ((min(y0 + kernel[0], a.shape[-2] + padding[0]) - y0) *
                (min(x0 + kernel[1], a.shape[-1] + padding[1]) - x0))
        count = divisor_override or (full if count_include_pad else len(rows) * len(columns))
        if a.dtype.kind == "f":
            out[..., y, x] = total / count
        else:
            out[..., y, x] = np.trunc(total / count)
    return out


def adaptive(a, output_size, function):
    out = np.zeros(a.shape[:-2] + tuple(output_size), a.dtype)
    h, w = a.shape[-2:]
    for y in range(output_size[0]):
        for x in range(output_size[1]):
            rows = slice(y * h // output_size[0], -(-(y + 1) * h // output_size[0]))
            columns = slice(x * w // output_size[1], -(-(x + 1) * w // output_size[1]))
            out[..., y, x] = function(a[..., rows, columns], rows, columns)
    return out


def adaptive_avg(a, output_size):
    return adaptive(a, output_size, lambda part, rows, columns: part.mean((-1, -2)))


def adaptive_max(a, output_size):
    def where(part, rows, columns):
        best = part.reshape(part.shape[:-2] + (-1,)).argmax(-1)
        y, x = np.divmod(best, part.shape[-1])
        return (y + rows.start) * a.shape[-1] + x + columns.start
    return (adaptive(a, output_size, lambda part, rows, columns: part.max((-1, -2))),
            adaptive(a.astype(float), output_size, where).astype(np.int64))


# ---- convolutions ----------------------------------------------------------------------------------

@cases("conv2d", dtypes=ALL, skip=IMAGES)
def conv2d(g):
    if g.is_bool:
        yield Bad((g.array((1, 1, 3, 3)), g.array((1, 1, 2, 2))), "NotImplementedError",
                  "\"slow_conv2d_cpu\" not implemented for 'Bool'")
        return
    x, w = g.array((2, 2, 4, 4)), g.array((3, 2, 3, 2))
    yield Case((x, w), {}, conv_reference, double=True)
    yield Case((x, w, g.array((3,))), {"stride": [2, 1], "padding": [1, 2]}, conv_reference,
               double=True)
    for some in ((0,), (1,), (2,), (1, 2), (0, 2)):
        yield Case((g.array((1, 2, 3, 3)), g.array((2, 2, 2, 2)), g.array((2,))), {},
                   conv_reference, grad_args=some, double=some != (2,), layouts=("contiguous",))
    yield Case((g.array((1, 2, 6, 5)), g.array((2, 2, 2, 2)), g.array((2,))),
               {"dilation": [2, 3], "padding": [1]}, conv_reference)
    yield Case((g.array((1, 4, 3, 3)), g.array((4, 2, 2, 2))), {"groups": 2}, conv_reference,
               double=True)
    yield Case((g.array((1, 3, 4, 4)), g.array((3, 1, 3, 3)), g.array((3,))),
               {"groups": 3, "padding": [1, 1]}, conv_reference, note="depthwise")
    yield Case((g.array((2, 3, 3, 3)), g.array((2, 3, 1, 1)), g.array((2,))), {}, conv_reference,
               note="1 x 1")
    yield Case((g.array((2, 4, 4)), w), {}, conv_reference, note="unbatched")
    yield Case((g.array((0, 2, 4, 4)), w), {}, conv_reference)
    yield Bad((g.array((4, 4)), w), "RuntimeError",
              "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: "
              "[4, 4]")
    yield Bad((g.array((1, 3, 8, 8)), g.array((4, 2, 3, 3))), "RuntimeError",
              "Given groups=1, weight of size [4, 2, 3, 3], expected input[1, 3, 8, 8] to have 2 "
              "channels, but got 3 channels instead")
    yield Bad((x, w, g.array((2,))), "RuntimeError", "expected bias to be 1-dimensional with 3 "
              "elements, but got bias of size [2] instead")


@cases("conv1d", dtypes=FLOATS, skip=IMAGES)
def conv1d(g):
    x, w = g.array((2, 2, 6)), g.array((3, 2, 3))
    yield Case((x, w), {}, conv1d_reference, double=True)
    yield Case((x, w, g.array((3,))), {"stride": [2], "padding": [2], "dilation": [2]},
               conv1d_reference)
    yield Case((g.array((2, 6)), w), {}, conv1d_reference)
    yield Case((g.array((2, 4, 5)), g.array((2, 2, 2))), {"groups": 2}, conv1d_reference)
    yield Case((g.array((0, 2, 6)), w), {}, conv1d_reference)
    yield Bad((g.array((6,)), w), "RuntimeError", "Expected 2D (unbatched) or 3D (batched) input "
              "to conv1d, but got input of size: [6]")
    yield Bad((g.array((1, 2, 2)), w), "RuntimeError", "Calculated padded input size per channel: "
              "(2). Kernel size: (3). Kernel size can't be greater than actual input size")
    yield Bad((x, w), "RuntimeError", "expected stride to be a single integer value or a list of "
              "1 values to match the convolution dimensions, but got stride=[1, 2]",
              {"stride": [1, 2]})


LISTS = ([1, 1], [0, 0], [1, 1], 1)


@cases("convolution", dtypes=FLOATS, skip=IMAGES)
def convolution(g):
    x, w = g.array((2, 2, 4, 4)), g.array((3, 2, 3, 2))
    yield Case((x, w, g.array((3,)), [2, 1], [1, 0], [1, 2], 1), {}, conv_reference)
    yield Case((x, w, None) + LISTS, {}, conv_reference, double=True)
    yield Case((g.array((0, 2, 4, 4)), w, None) + LISTS, {}, conv_reference)
    yield Case((g.array((1, 2, 6)), g.array((3, 2, 3)), None, [1], [1], [1], 1), {},
               conv1d_reference)

    def bad(words, stride=[1], padding=[0], dilation=[1], groups=1, x=x, w=w):
        return Bad((x, w, None, stride, padding, dilation, groups), "RuntimeError", words)
    yield bad("non-positive groups is not supported", groups=0)
    yield bad("non-positive stride is not supported", stride=[0])
    yield bad("negative padding is not supported", padding=[-1])
    yield bad("dilation should be greater than zero, but got [0, 0]", dilation=[0, 0])
    yield bad("is out of range", padding=[2 ** 40])
    yield bad("Calculated padded input size per channel: (2 x 2). Kernel size: (3 x 2).",
              x=g.array((1, 2, 2, 2)))
    yield bad("expected weight to be divisible by 2 at dimension 0, but got weight of size "
              "[[3, 2, 3, 2]] instead", groups=2)
    yield bad("expected weight to be at least 5 at dimension 0", groups=5)
    yield bad("kernel size should be greater than zero, but got kernel_height: 0 kernel_width: 2",
              w=g.array((3, 2, 0, 2)))
    yield bad("Expected 4-dimensional input for 4-dimensional weight [3, 2, 3, 2], but got "
              "3-dimensional input of size [2, 4, 4] instead", x=g.array((2, 4, 4)))
    yield bad("expected scalar type", w=g.other("int64", (3, 2, 3, 2)))


@cases("convolution_backward", dtypes=FLOATS, skip=NO_EMPTY)
def convolution_backward(g):
    def reference(grad, x, w, stride, padding, dilation, groups, output_mask):
        gx, gw = np.zeros(x.shape), np.zeros(w.shape)
        for which, array, to in ((0, x, gx), (1, w, gw)):
            for i in np.ndindex(array.shape):  # linear: the unit vectors say it all
                unit = np.zeros(array.shape)
                unit[i] = 1
                args = (unit, w) if which == 0 else (x, unit)
                to[i] = (conv_reference(*args, None, stride, padding, dilation, groups) * grad).sum()
        return gx, gw, grad.sum((0, 2, 3))
    args = ([2, 1], [1, 0], [1, 1], 1, [1, 1, 1])
    yield Case((g.array((2, 2, 2, 3)), g.array((2, 2, 3, 4)), g.array((2, 2, 3, 2))) + args, {},
               reference)
    yield Case((g.array((1, 2, 2, 2)), g.array((1, 2, 2, 2)), g.array((2, 1, 1, 1)), [1], [0], [1],
                2, [1, 1, 1]), {}, reference)
    yield Bad((g.array((2, 2, 2, 2)), g.array((2, 2, 3, 4)), g.array((2, 2, 3, 2))) + args,
              "RuntimeError", "expected grad_output of size [2, 2, 2, 3], but got [2, 2, 2, 2]")


# ---- pools -------------------------------------------------------------------------------------------

@cases("max_pool2d_with_indices", dtypes=ALL, skip=IMAGES)
def max_pool2d_with_indices(g):
    if g.is_bool:
        yield Bad((g.array((1, 4, 4)), [2]), "NotImplementedError",
                  "\"max_pool2d\" not implemented for 'Bool'")
        return
    yield Case((g.distinct((2, 1, 4, 5)), [2, 2]), {}, max_reference)
    yield Case((g.distinct((2, 5, 5)), [3]), {"stride": [2], "padding": [1]}, max_reference,
               double=True)
    yield Case((g.distinct((1, 6, 6)), [2, 3]), {"stride": [1, 2], "dilation": [2, 1]},
               max_reference)
    yield Case((g.distinct((1, 5, 6)), [2]), {"stride": [3], "padding": [1], "ceil_mode": True},
               max_reference)
    yield Case((g.array((0, 2, 4, 4)), [2]), {},
               lambda a, k: (np.zeros((0, 2, 2, 2), a.dtype), np.zeros((0, 2, 2, 2), np.int64)))
    if g.floating:
        nan = g.array((1, 2, 4))
        nan[0, 1, 1] = np.nan
        yield Case((Fixed(nan), [2]), {},
                   lambda a, k: (np.array([[[np.nan, a[0, :, 2:].max()]]]),
                                 np.array([[[5, [2, 3, 6, 7][a[0, :, 2:].argmax()]]]])), grad=False)
    x = g.array((1, 3, 8, 8))
    for words, k in [
            ("stride should not be zero", {"stride": [0]}),
            ("pad should be at most half of effective kernel size, but got pad=2, kernel_size=2 "
             "and dilation=1", {"padding": [2]}),
            ("pad must be non-negative, but got pad: -1", {"padding": [-1]}),
            ("dilation should be greater than zero, but got dilationH: 0 dilationW: 0",
             {"dilation": [0]}),
            ("max_pool2d: stride must either be omitted, a single int, or a tuple of two ints",
             {"stride": [1, 2, 3]}),
            ("max_pool2d: padding must either be a single int, or a tuple of two ints",
             {"padding": [1, 2, 3]}),
            ("is out of range", {"stride": [2 ** 40]})]:
        yield Bad((x, [2]), "RuntimeError", words, k)
    yield Bad((x, [9]), "RuntimeError", "Given input size: (3x8x8). Calculated output size: "
              "(3x0x0). Output size is too small")
    yield Bad((x, [2, 2, 2]), "RuntimeError",
              "max_pool2d: kernel_size must either be a single int, or a tuple of two ints")
    yield Bad((g.array((8, 8)), [2]), "RuntimeError",
              "non-empty 3D or 4D (batch mode) tensor expected for input")
    yield Bad((g.array((1, 3, 0, 8)), [2]), "RuntimeError",
              "tensor with optional 0 dim batch size for input, but got:[1, 3, 0, 8]")


@cases("max_pool2d", dtypes=FLOATS, skip=IMAGES)
def max_pool2d(g):
    reference = lambda *args, **kwargs: max_reference(*args, **kwargs)[0]
    yield Case((g.distinct((2, 1, 4, 5)), [2, 2]), {}, reference, double=True)
    yield Case((g.distinct((2, 5, 5)), [3]), {"stride": [2], "padding": [1], "ceil_mode": True},
               reference)
    yield Case((g.array((0, 2, 4, 4)), [2]), {}, lambda a, k: np.zeros((0, 2, 2, 2)))


@cases("max_pool2d_with_indices_backward", dtypes=FLOATS, skip=NO_EMPTY)
def max_pool_backward(g):
    def reference(grad, a, kernel, stride, padding, dilation, ceil, indices):
        out = np.zeros(a.shape)
        for i in np.ndindex(grad.shape):
            out[i[:-2] + divmod(indices[i], a.shape[-1])] += grad[i]
        return out
    window = ([2, 2], [1, 1], [0, 0], [1, 1], False)
    indices = np.array([[[0, 2], [2, 7]], [[1, 1], [8, 0]]])
    yield Case((g.array((2, 2, 2)), g.array((2, 3, 3)), *window, Fixed(indices)), {}, reference,
               grad_args=(0,), double=True)
    yield Bad((g.array((2, 2, 2)), g.array((2, 3, 3)), *window, indices + 2), "IndexError",
              "is out of range for a plane of 3 x 3")
    yield Bad((g.array((2, 2, 2)), g.array((3, 3, 3)), *window, indices), "RuntimeError",
              "does not belong to an input of size [3, 3, 3]")
    yield Bad((g.array((2, 2, 2)), g.array((2, 3, 3)), *window, indices[:1]), "RuntimeError",
              "indices must be int64 and of grad_output's size")


@cases("max_pool1d", dtypes=FLOATS, skip=IMAGES)
def max_pool1d(g):
    def reference(a, kernel_size, stride=(), padding=(0,), dilation=(1,), ceil_mode=False):
        stride = (1, stride[0]) if stride else (1, kernel_size[0])
        return max_reference(a[..., None, :], (1, kernel_size[0]), stride, (0, padding[0]),
                             (1, dilation[0]), ceil_mode)[0][..., 0, :]
    yield Case((g.distinct((2, 1, 7)), [2]), {}, reference, double=True)
    yield Case((g.distinct((2, 7)), [3]), {"stride": [2], "padding": [1], "ceil_mode": True},
               reference)
    yield Case((g.array((0, 2, 4)), [2]), {}, lambda a, k: np.zeros((0, 2, 2)))
    x = g.array((1, 3, 8))
    yield Bad((g.array((8,)), [2]), "RuntimeError", "max_pool1d: Expected 2D or 3D (batch mode) "
              "tensor with optional 0 dim batch size for input, but got:[8]")
    yield Bad((x, [9]), "RuntimeError", "max_pool1d() Invalid computed output size: 0")
    yield Bad((x, [2, 2]), "RuntimeError", "max_pool1d() kernel_size must be an int, list of ints "
              "or tuple of ints of size 1 but got size 2")
    yield Bad((x, [0]), "RuntimeError",
              "max_pool1d() kernel_size must be greater than zero, but got 0")
    yield Bad((x, [2]), "RuntimeError", "max_pool1d() padding should be at most half of kernel "
              "size, but got padding=2 and kernel_size=2", {"padding": [2]})
    yield Bad((g.other("int64", (1, 8)), [2]), "NotImplementedError",
              "\"max_pool1d_impl\" not implemented for 'Long'")


@cases("avg_pool2d", dtypes=FLOATS + ("int64",), skip=IMAGES)
def avg_pool2d(g):
    yield Case((g.array((2, 1, 4, 5)), [2, 2]), {}, avg_reference, double=True)
    for k in ({"stride": [2], "padding": [1]},
              {"stride": [2], "padding": [1], "count_include_pad": False},
              {"stride": [2, 1], "ceil_mode": True, "padding": [1]},
              {"divisor_override": -3}):
        yield Case((g.array((2, 5, 4)), [3, 2]), k, avg_reference, double=g.floating)
    yield Case((g.array((0, 2, 4, 4)), [2]), {}, lambda a, k: np.zeros((0, 2, 2, 2), a.dtype))
    x = g.array((1, 3, 8, 8))
    yield Bad((x, [2]), "RuntimeError", "divisor must be not zero", {"divisor_override": 0})
    yield Bad((x, [0]), "RuntimeError", "stride should not be zero")
    yield Bad((x, [9]), "RuntimeError", "Output size is too small")
    yield Bad((x, [2, 2, 2]), "RuntimeError",
              "avg_pool2d: kernel_size must either be a single int, or a tuple of two ints")
    yield Bad((g.other("int32", (1, 4, 4)), [2]), "NotImplementedError",
              "\"avg_pool2d\" not implemented for 'Int'")


@cases("avg_pool2d_backward", dtypes=FLOATS, skip=NO_EMPTY)
def avg_pool2d_backward(g):
    def reference(grad, a, kernel, stride, padding, ceil_mode, include, divisor):
        out = np.zeros(a.shape)
        for i in np.ndindex(a.shape):
            unit = np.zeros(a.shape)
            unit[i] = 1
            out[i] = (avg_reference(unit, kernel, stride, padding, ceil_mode, include, divisor) *
                      grad).sum()
        return out
    yield Case((g.array((1, 2, 2)), g.array((1, 4, 4)), [2], [], [0], False, True, None), {},
               reference, grad_args=(0,), double=True)
    yield Case((g.array((1, 3, 2)), g.array((1, 4, 3)), [3, 2], [2], [1], True, False, None), {},
               reference, grad_args=(0,))
    yield Bad((g.array((1, 3, 2)), g.array((1, 4, 4)), [2], [], [0], False, True, None),
              "RuntimeError", "expected planes of 2 x 2 in grad_output, but got 3 x 2")


@cases("avg_pool1d", dtypes=FLOATS, skip=IMAGES)
def avg_pool1d(g):
    def reference(a, kernel_size, stride=(), padding=(0,), ceil_mode=False, count_include_pad=True):
        stride = (1, stride[0]) if stride else (1, kernel_size[0])
        return avg_reference(a[..., None, :], (1, kernel_size[0]), stride, (0, padding[0]),
                             ceil_mode, count_include_pad)[..., 0, :]
    yield Case((g.array((2, 1, 7)), [2]), {}, reference, double=True)
    yield Case((g.array((2, 7)), [3]), {"stride": [2], "padding": [1],
                                        "count_include_pad": False}, reference)
    yield Case((g.array((0, 2, 4)), [2]), {}, lambda a, k: np.zeros((0, 2, 2)))
    yield Bad((g.array((8,)), [2]), "RuntimeError", "Expected 2 to 3 dimensions, but got "
              "1-dimensional tensor for argument #1 'self' (while checking arguments for "
              "avg_pool1d)")
    yield Bad((g.array((1, 8)), [2, 2]), "RuntimeError",
              "avg_pool1d() argument 'kernel_size' should contain one int (got 2)")


@cases("adaptive_avg_pool2d", "_adaptive_avg_pool2d", dtypes=FLOATS, skip=IMAGES)
def adaptive_avg_pool2d(g):
    for size in ([2, 3], [5, 2], [1, 1], [4, 7]):
        yield Case((g.array((2, 1, 4, 5)), size), {}, adaptive_avg, double=size == [2, 3])
    yield Case((g.array((2, 3, 3)), [2, 2]), {}, adaptive_avg)
    yield Case((g.array((0, 2, 4, 4)), [2, 2]), {}, lambda a, k: np.zeros((0, 2, 2, 2)))
    yield Case((g.array((1, 2, 4, 4)), [0, 2]), {}, adaptive_avg)
    yield Bad((g.array((1, 3, 8, 8)), [2]), "RuntimeError",
              "adaptive_avg_pool2d: output_size must be 2")
    yield Bad((g.array((1, 3, 8, 8)), [-1, 2]), "RuntimeError", "elements of output_size must be "
              "greater than or equal to 0 but received {-1, 2}")
    yield Bad((g.array((8, 8)), [2, 2]), "RuntimeError",
              "adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got [8, 8]")
    yield Bad((g.array((1, 3, 0, 8)), [2, 2]), "RuntimeError", "input has sizes [1, 3, 0, 8] with "
              "dimension 2 being empty")
    yield Bad((g.other("int64", (1, 3, 8, 8)), [2, 2]), "NotImplementedError",
              "\"adaptive_avg_pool2d\" not implemented for 'Long'")


@cases("_adaptive_avg_pool2d_backward", dtypes=FLOATS, skip=NO_EMPTY)
def adaptive_avg_pool2d_backward(g):
    def reference(grad, a):
        out = np.zeros(a.shape)
        for i in np.ndindex(a.shape):
            unit = np.zeros(a.shape)
            unit[i] = 1
            out[i] = (adaptive_avg(unit, grad.shape[-2:]) * grad).sum()
        return out
    yield Case((g.array((2, 2, 3)), g.array((2, 3, 5))), {}, reference, grad_args=(0,),
               double=True)
    yield Bad((g.array((2, 2, 3)), g.array((1, 3, 5))), "RuntimeError",
              "grad_output [2, 2, 3] does not belong to an input of size [1, 3, 5]")


@cases("adaptive_avg_pool1d", dtypes=FLOATS, skip=IMAGES)
def adaptive_avg_pool1d(g):
    reference = lambda a, size: adaptive_avg(a[..., None, :], (1, size[0]))[..., 0, :]
    yield Case((g.array((2, 1, 5)), [3]), {}, reference, double=True)
    yield Case((g.array((2, 5)), [1]), {}, reference)
    yield Case((g.array((0, 2, 4)), [2]), {}, lambda a, k: np.zeros((0, 2, 2)))
    yield Bad((g.array((8,)), [2]), "RuntimeError", "Expected 2 to 3 dimensions, but got "
              "1-dimensional tensor for argument #1 'self' (while checking arguments for "
              "adaptive_avg_pool1d)")
    yield Bad((g.array((2, 8)), [2, 2]), "RuntimeError", "should contain one int (got 2)")


@cases("adaptive_max_pool2d", dtypes=FLOATS, skip=IMAGES)
def adaptive_max_pool2d(g):
    for size in ([2, 3], [5, 2], [1, 1]):
        yield Case((g.distinct((2, 1, 4, 5)), size), {}, adaptive_max)
    yield Case((g.distinct((2, 3, 3)), [2, 2]), {}, adaptive_max, double=True)
    yield Case((g.array((0, 2, 4, 4)), [2, 2]), {},
               lambda a, k: (np.zeros((0, 2, 2, 2)), np.zeros((0, 2, 2, 2), np.int64)))
    yield Bad((g.array((8, 8)), [2, 2]), "RuntimeError",
              "adaptive_max_pool2d(): Expected 3D or 4D tensor, but got: [8, 8]")
    yield Bad((g.array((1, 3, 8, 8)), [-1, 2]), "RuntimeError",
              "Trying to create tensor with negative dimension -1: [1, 3, -1, 2]")
    yield Bad((g.array((1, 0, 8, 8)), [2, 2]), "RuntimeError", "with dimension 1 being empty")


# ---- attention ---------------------------------------------------------------------------------------

def attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None):
    scores = np.matmul(q, np.swapaxes(k, -1, -2)) * (
        1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if attn_mask is not None:
        scores = scores + (np.where(attn_mask, 0, -np.inf) if attn_mask.dtype == bool
                           else attn_mask)
    if is_causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    most = np.maximum(scores.max(-1, keepdims=True, initial=-np.inf), -1e30)
    weights = np.exp(scores - most)
    total = weights.sum(-1, keepdims=True)
    return np.matmul(weights / np.where(total == 0, 1, total), v)


@cases("scaled_dot_product_attention", dtypes=FLOATS, skip={"0-d": "takes matrices"})
def scaled_dot_product_attention(g):
    def qkv(*shape, keys=None, depth=None):
        keys = shape[-2] if keys is None else keys
        lead = shape[:-2]
        return (g.array(shape), g.array(lead + (keys, shape[-1])),
                g.array(lead + (keys, depth or shape[-1])))
    yield Case(qkv(1, 2, 3, 2), {}, attention)
    yield Case(qkv(1, 1, 3, 2, keys=4, depth=3), {}, attention)
    for keys in (2, 4):
        yield Case(qkv(1, 2, 3, 2, keys=keys), {"is_causal": True}, attention)
    yield Case(qkv(1, 2, 3, 2), {"scale": 0.3}, attention)
    for mask in ((3, 4), (1, 2, 3, 4), (2, 1, 4), (1, 1, 1, 4)):
        yield Case(qkv(1, 2, 3, 2, keys=4) + (g.array(mask),), {}, attention, grad_args=(0, 1, 2))
    yield Case(qkv(1, 1, 3, 2, keys=4) + (g.array((3, 4)),), {}, attention,
               note="a gradient for the mask")
    some = np.array([[1, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]], bool)
    yield Case(qkv(1, 2, 3, 2, keys=4) + (Fixed(some),), {}, attention, note="a row sees nothing")
    yield Case(qkv(2, 3, 2, keys=4) + (Fixed(some),), {}, attention, note="by parts")
    yield Case(qkv(1, 2, 3, 2, keys=4) + (Fixed(some),), {"is_causal": True}, attention)
    yield Case(qkv(2, 3, 2), {"is_causal": True}, attention, double=True, note="3-d")
    yield Case(qkv(3, 2), {}, attention)
    yield Case((g.array((2, 2, 3, 2)), g.array((2, 1, 3, 2)), g.array((2, 1, 3, 2))), {}, attention,
               note="heads are broadcast")
    yield Case(qkv(1, 2, 0, 2), {}, attention)
    yield Case(qkv(1, 2, 3, 2, keys=0), {}, lambda q, k, v: np.zeros((1, 2, 3, 2)))
    yield Case(qkv(0, 2, 3, 2), {}, attention)
    yield Case(qkv(1, 1, 70, 3), {"is_causal": True}, attention, grad=False, note="two tiles")
    yield Case(qkv(1, 1, 5, 3, keys=520), {}, attention, grad=False, note="two tiles of keys")
    yield Case(qkv(1, 1, 3, 2), {"dropout_p": 1.0}, lambda q, k, v, dropout_p: np.zeros(v.shape),
               grad=False)
    a = g.array((2, 3, 5, 4))
    yield Bad((g.array((4,)),) * 3, "RuntimeError", "Expected query, key, and value to all be  at "
              "least 2 dimensional, but got query.dim: 1 key.dim: 1 and value.dim: 1 instead.")
    yield Bad((a, g.other("int64", (2, 3, 5, 4)), a), "RuntimeError",
              "Expected query, key, and value to have the same dtype")
    yield Bad((a, a, a, g.other("int64", (5, 5))), "RuntimeError",
              "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
              "attn_mask.dtype: long int")
    yield Bad((a, a, a, g.array((4, 5))), "RuntimeError", "The size of tensor a (5) must match the "
              "size of tensor b (4) at non-singleton dimension 2")
    yield Bad((a, g.array((2, 3, 6, 4)), g.array((2, 3, 7, 4))), "RuntimeError",
              "6 keys, but 7 values")
    yield Bad((a, a, a), "RuntimeError", "dropout probability has to be between 0 and 1, but got "
              "1.5", {"dropout_p": 1.5})


@cases("_scaled_dot_product_flash_attention_for_cpu", dtypes=FLOATS,
       skip={"0-d": "takes [B, H, T, D]"})
def flash_attention(g):
    def reference(q, k, v, dropout_p, is_causal, attn_mask, scale):
        scale = q.shape[-1] ** -0.5 if scale is None else scale
        scores = np.matmul(q, np.swapaxes(k, -1, -2)) * scale
        scores = scores if attn_mask is None else scores + attn_mask
        if is_causal:
            scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
        lse = np.log(np.exp(scores).sum(-1)) if scores.size else np.zeros(scores.shape[:-1])
        return attention(q, k, v, attn_mask, 0, is_causal, scale), lse
    a = g.array((1, 2, 3, 2))
    yield Case((a, g.array((1, 2, 4, 2)), g.array((1, 2, 4, 3)), 0.0, False, g.array((3, 4)), 0.5),
               {}, reference, grad=False, result=(g.dtype, "float32" if g.dtype in HALVES else g.dtype))
    yield Case((a, g.array((1, 2, 3, 2)), g.array((1, 2, 3, 2)), 0.0, True, None, 0.5), {},
               reference, grad=False, result=(g.dtype, "float32" if g.dtype in HALVES else g.dtype))
    yield Case((a, g.array((1, 2, 3, 2)), g.array((1, 2, 3, 2)), 0.0, True, None, None), {},
               reference, grad=False, result=(g.dtype, "float32" if g.dtype in HALVES else g.dtype))
    yield Case((g.array((1, 2, 0, 2)), a, g.array((1, 2, 3, 2)), 0.0, True, None, 0.5), {},
               reference, grad=False, result=(g.dtype, "float32" if g.dtype in HALVES else g.dtype))
    yield Bad((a, a, a, 0.5, False, None, 1.0), "RuntimeError",
              "Currently do not support dropout > 0")
    yield Bad((a, a, g.array((1, 2, 4, 2)), 0.0, False, None, 1.0), "RuntimeError",
              "expected floating-point [B, H, T, D]")
    yield Bad((a, a, a, 0.0, False, g.array((4, 3)), 1.0), "RuntimeError",
              "does not fit scores of")


@cases("_scaled_dot_product_flash_attention_for_cpu_backward", dtypes=FLOATS, skip=NO_EMPTY)
def flash_attention_backward(g):
    shape = (1, 2, 3, 2)
    q, k, v, grad = (g.array(shape) for _ in range(4))
    scale = 2**-0.5  # which None is too
    wide = [x.astype(np.float64) for x in (q, k, v)]
    scores = np.matmul(wide[0], np.swapaxes(wide[1], -1, -2)) * scale
    scores = np.where(np.tri(3, dtype=bool), scores, -np.inf)
    lse = np.log(np.exp(scores).sum(-1))
    out = attention(*wide, None, 0, True, scale)

    def reference(grad, q, k, v, *rest):
        p = np.exp(scores - lse[..., None])
        dp = np.matmul(grad, np.swapaxes(v, -1, -2))
        ds = p * (dp - (grad * out).sum(-1)[..., None]) * scale
        return (np.matmul(ds, k), np.matmul(np.swapaxes(ds, -1, -2), q),
                np.matmul(np.swapaxes(p, -1, -2), grad))
    for given in (scale, None):
        yield Case((grad, q, k, v, out.astype(g.dtype), lse.astype(g.dtype), True, None, given), {},
                   reference, grad=False, layouts=("contiguous", "transposed", "sliced"))
    yield Bad((grad, q, k, v, out.astype(g.dtype), g.array((1, 2)), True, None, scale),
              "RuntimeError", "do not belong to query and value")
