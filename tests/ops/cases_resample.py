# SPDX-License-Identifier: Apache-2.0
"""Cases of ops_resample.def and of the transposed and deep convolutions in ops_image.def."""
import math

import numpy as np
from cases_image import conv_reference
from opcases import Bad, Case, Fixed, cases

IMAGES = {"0-d": "takes images", "empty": "images are not empty"}
SOME = ("contiguous", "mixed")


# ---- other sizes: a matrix for each dimension ---------------------------------------------------

def keys(x, a):
    x = abs(x)
    if x <= 1:
        return (a + 2) * x ** 3 - (a + 3) * x ** 2 + 1
    return a * x ** 3 - 5 * a * x ** 2 + 8 * a * x - 4 * a if x < 2 else 0.0


def matrix(kind, n_in, n_out, corners=False, scale=None):
    """[n_out, n_in]: the weights of a dimension."""
    made = np.zeros((n_out, n_in))
    ratio = 1 / scale if scale else n_in / n_out
    if corners:
        ratio = (n_in - 1) / (n_out - 1) if n_out > 1 else 0.0

    def add(o, place, weight):
        made[o, min(max(place, 0), n_in - 1)] += weight

    for o in range(n_out):
        if kind in ("nearest", "exact"):
            add(o, math.floor((o + (0.5 if kind == "exact" else 0)) * ratio), 1.0)
        elif kind == "linear":
            x = o * ratio if corners else max((o + 0.5) * ratio - 0.5, 0)
            add(o, int(x), 1 - (x - int(x)))
            add(o, int(x) + 1, x - int(x))
        elif kind == "cubic":
            x = o * ratio if corners else (o + 0.5) * ratio - 0.5
            for k in range(-1, 3):
                add(o, math.floor(x) + k, keys(x - math.floor(x) - k, -0.75))
        else:
            half = (1.0 if kind == "linear_aa" else 2.0) * max(ratio, 1.0)
            centre = ratio * (o + 0.5)
            for i in range(max(int(centre - half + 0.5), 0), min(int(centre + half + 0.5), n_in)):
                x = (i - centre + 0.5) / max(ratio, 1.0)
                made[o, i] = keys(x, -0.5) if kind == "cubic_aa" else max(1 - abs(x), 0)
            made[o] /= made[o].sum()
    return made


def apply(x, matrices):
    """Each of the last dimensions times its matrix."""
    for d, m in enumerate(matrices):
        axis = x.ndim - len(matrices) + d
        x = np.moveaxis(np.tensordot(x, m, (axis, 1)), -1, axis)
    return x


KINDS = {"upsample_nearest": "nearest", "_upsample_nearest_exact": "exact", "upsample_linear": "linear",
         "upsample_bilinear": "linear", "upsample_trilinear": "linear", "upsample_bicubic": "cubic",
         "_upsample_bilinear2d_aa": "linear_aa", "_upsample_bicubic2d_aa": "cubic_aa"}


def kind_of(op):
    """(kind, dimensions, whether it has align_corners)"""
    base = op.replace("_backward", "")
    name = base if base in KINDS else base[:-2]
    kind = KINDS[name]
    return kind, int(base[-2] if base not in KINDS else 2), kind not in ("nearest", "exact")


def split(rest, corners):
    scales = rest[1:] if corners else rest
    return (rest[0] if corners else False), scales or (None, None, None)


FORWARD = ["upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "_upsample_nearest_exact1d",
           "_upsample_nearest_exact2d", "_upsample_nearest_exact3d", "upsample_linear1d", "upsample_bilinear2d",
           "upsample_trilinear3d", "upsample_bicubic2d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"]


def options_of(g, dims, corners):
    """(input sides, output sides, the rest of the arguments)"""
    ins, outs = (4, 5, 3)[:dims], (7, 4, 6)[:dims]
    none = (None,) * dims
    for flag in (False, True) if corners else (None,):
        rest = () if flag is None else (flag,)
        yield ins, outs, (*rest, *none)
        yield outs, ins, (*rest, *none)
    rest = (False,) if corners else ()
    yield ins, tuple(int(s * 1.6) for s in ins), (*rest, *((1.6,) * dims))
    yield (1,) * dims, (3,) * dims, (*rest, *none)


def fixed_point(table):
    """Weights as whole numbers of up to 15 bits, and the bits behind the point."""
    bits = 0
    while bits < 22 and int(0.5 + table.max() * 2 ** (bits + 1)) < 2 ** 15:
        bits += 1
    scaled = table * 2.0 ** bits
    return np.trunc(scaled + np.where(scaled < 0, -0.5, 0.5)), bits


def byte_cases(g, kind, dims, corners):
    """Images of bytes: the width first, rounded, then the height."""
    def run(x, size, *rest):
        flag, scales = split(rest, corners)
        found = x.astype(np.float64)
        for d in range(dims)[::-1]:
            if found.shape[2 + d] == size[d]:
                continue
            table = matrix(kind, found.shape[2 + d], size[d], flag, scales[d])
            bits = 0
            if corners:
                table, bits = fixed_point(table)
            found = np.moveaxis(np.moveaxis(found, 2 + d, -1) @ table.T, -1, 2 + d)
            found = np.clip(np.floor(found / 2.0 ** bits + (0.5 if corners else 0)), 0, 255)
        return found.astype(np.uint8)

    for ins, outs, rest in options_of(g, dims, corners):
        yield Case((Fixed(g.rng.integers(0, 256, (2, 2, *ins)).astype(np.uint8)), list(outs), *rest), {},
                   lambda x, *rest: run(x, *rest), result="uint8", layouts=SOME, grad=False)


@cases(*FORWARD, skip={**IMAGES, "extremes": {"large": "sums of weights overflow", "ends": "sums of weights overflow"}})
def resample(g):
    kind, dims, corners = kind_of(g.op)

    def run(x, size, *rest):
        flag, scales = split(rest, corners)
        return apply(x, [matrix(kind, x.shape[2 + d], size[d], flag, scales[d]) for d in range(dims)])

    for place, (ins, outs, rest) in enumerate(options_of(g, dims, corners)):
        yield Case((g.array((2, 2, *ins)), list(outs), *rest), {}, run, layouts=SOME, double=place == 0)
    if dims == 2 or not corners:
        yield from byte_cases(g, kind, dims, corners)
    rest = (False,) if corners else ()
    yield Case((g.array((0, 2, *(3,) * dims)), [4] * dims, *rest), {}, run, layouts=SOME)
    yield Bad((g.array((1, 1, *(3,) * dims)), [0] * dims, *rest), "RuntimeError", "sizes should be greater than 0")
    yield Bad((g.array((1, 3)), [4] * dims, *rest), "RuntimeError", "data tensor expected")
    yield Bad((g.array((1, 1, *(3,) * dims)), [4] * (dims + 1), *rest), "RuntimeError", "expected output_size equals")


@cases(*[name + "_backward" for name in FORWARD],
       skip={**IMAGES, "extremes": {"large": "sums of weights overflow", "ends": "sums of weights overflow"}})
def resample_backward(g):
    kind, dims, corners = kind_of(g.op)

    def run(grad, size, sizes, *rest):
        flag, scales = split(rest, corners)
        return apply(grad, [matrix(kind, sizes[2 + d], size[d], flag, scales[d]).T for d in range(dims)])

    for ins, outs, rest in options_of(g, dims, corners):
        yield Case((g.array((2, 2, *outs)), list(outs), [2, 2, *ins], *rest), {}, run, layouts=SOME)
    rest = (False,) if corners else ()
    yield Bad((g.array((2, 2, *(3,) * dims)), [4] * dims, [2, 2, *(3,) * dims], *rest), "RuntimeError",
              "expected grad_output of size")


# ---- transposed and deep convolutions ------------------------------------------------------------

def three(value, n):
    return tuple(value) * (n if len(value) == 1 else 1)


def deep_reference(x, w, b=None, stride=(1, 1, 1), padding=(0, 0, 0), dilation=(1, 1, 1), groups=1):
    """conv3d by slices of depth."""
    stride, padding, dilation = three(stride, 3), three(padding, 3), three(dilation, 3)
    if x.ndim == 4:
        return deep_reference(x[None], w, b, stride, padding, dilation, groups)[0]
    x = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (0, 0), (0, 0)))
    out = []
    for z in range((x.shape[2] - dilation[0] * (w.shape[2] - 1) - 1) // stride[0] + 1):
        out.append(sum(conv_reference(x[:, :, z * stride[0] + k * dilation[0]], w[:, :, k], None, stride[1:],
                                      padding[1:], dilation[1:], groups) for k in range(w.shape[2])))
    out = np.stack(out, 2)
    return out if b is None else out + b[:, None, None, None]


def transposed_reference(x, w, b=None, stride=(1,), padding=(0,), output_padding=(0,), groups=1, dilation=(1,)):
    """Every element of the input sends the kernel to its place."""
    n = w.ndim - 2
    stride, padding, more, dilation = (three(v, n) for v in (stride, padding, output_padding, dilation))
    if x.ndim == n + 1:
        return transposed_reference(x[None], w, b, stride, padding, more, groups, dilation)[0]
    kernel, sides = w.shape[2:], x.shape[2:]
    full = [(s - 1) * st + d * (k - 1) + 1 + m for s, st, d, k, m in zip(sides, stride, dilation, kernel, more)]
    cin, cout = x.shape[1] // groups, w.shape[1]
    out = np.zeros((x.shape[0], cout * groups, *full), x.dtype)
    for group in range(groups):
        part = x[:, group * cin:(group + 1) * cin]
        for at in np.ndindex(*kernel):
            sent = np.einsum("nc...,co->no...", part, w[(slice(group * cin, (group + 1) * cin), slice(None), *at)])
            place = tuple(slice(a * d, a * d + (s - 1) * st + 1, st)
                          for a, d, s, st in zip(at, dilation, sides, stride))
            out[(slice(None), slice(group * cout, (group + 1) * cout), *place)] += sent
    inside = tuple(slice(p, f - p) for p, f in zip(padding, full))
    out = out[(slice(None), slice(None), *inside)]
    return out if b is None else out + b.reshape(-1, *(1,) * n)


@cases("conv3d", skip={"0-d": "takes volumes", "extremes": {"large": "sums of products overflow"}})
def conv3d(g):
    yield Case((g.array((2, 2, 3, 4, 3)), g.array((3, 2, 2, 2, 2)), g.array((3,))), {}, deep_reference, layouts=SOME,
               double=True)
    yield Case((g.array((1, 4, 4, 3, 4)), g.array((2, 2, 3, 1, 2))),
               {"stride": [2, 1, 1], "padding": [1, 0, 1], "dilation": [1, 1, 2], "groups": 2}, deep_reference,
               layouts=SOME)
    yield Case((g.array((2, 3, 3, 3)), g.array((1, 2, 2, 2, 2))), {}, deep_reference, layouts=SOME)
    yield Case((g.array((0, 2, 3, 3, 3)), g.array((1, 2, 2, 2, 2))), {}, deep_reference, layouts=SOME, grad=False)
    yield Bad((g.array((1, 2, 1, 3, 3)), g.array((1, 2, 2, 2, 2))), "RuntimeError", "Kernel size can't be greater")
    yield Bad((g.array((2, 3)), g.array((1, 2, 2, 2, 2))), "RuntimeError", "Expected 4D (unbatched) or 5D (batched)")


@cases("conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
       skip={"0-d": "takes images", "empty": "refused", "extremes": {"large": "sums of products overflow"}})
def conv_transpose(g):
    n = int(g.op[-2])
    sides, kernel = (3, 4, 2)[:n], (2, 3, 2)[:n]
    yield Case((g.array((2, 2, *sides)), g.array((2, 3, *kernel)), g.array((3,))), {}, transposed_reference,
               layouts=SOME, double=True)
    yield Case((g.array((1, 4, *sides)), g.array((4, 2, *kernel))),
               {"stride": [2] * n, "padding": [1] * n, "output_padding": [1] * n, "groups": 2}, transposed_reference,
               layouts=SOME)
    yield Case((g.array((2, *sides)), g.array((2, 1, *kernel))), {"dilation": [2] * n}, transposed_reference,
               layouts=SOME)
    for some in ((0,), (1,), (2,)):
        yield Case((g.array((1, 2, *sides)), g.array((2, 2, *kernel)), g.array((2,))), {}, transposed_reference,
                   grad_args=some, layouts=("contiguous",))
    yield Bad((g.other("int32", (1, 2, *sides)), g.other("int32", (2, 2, *kernel))), "NotImplementedError",
              "not implemented for 'Int'")
    yield Bad((g.array((1, 3, *sides)), g.array((2, 2, *kernel))), "RuntimeError",
              "expected input" if n < 3 else "channels")
    if n < 3:
        yield Bad((g.array((1, 2, *sides)), g.array((2, 2, *kernel)), None, [1] * n, [0] * n, [1] * n), "RuntimeError",
                  "output padding must be smaller than either stride or dilation")
