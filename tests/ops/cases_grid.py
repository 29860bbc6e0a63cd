# SPDX-License-Identifier: Apache-2.0
"""Cases of the rows of ops_volume.def that read images at the places of a grid."""
import itertools
import math

import numpy as np
from opcases import Bad, Case, cases

VOLUMES = {"0-d": "takes volumes", "empty": "volumes are not empty"}
WIDE = ("float32", "float64")  # at a kink, which bfloat16 hits, differences are no slope
SOME = ("contiguous", "mixed")


@cases("affine_grid_generator", skip={**VOLUMES, "extremes": {"large": "sums of products", "ends": "the same"}})
def affine_grid_generator(g):
    def run(theta, size, corners):
        axes = [np.linspace(-1, 1, n) if corners else (2 * np.arange(n) + 1) / n - 1 for n in size[2:]]
        places = np.meshgrid(*axes, indexing="ij")[::-1]
        return np.einsum("...k,nok->n...o", np.stack([*places, np.ones_like(places[0])], -1), theta)

    for corners in (False, True):
        yield Case((g.array((2, 2, 3)), [2, 1, 3, 4], corners), {}, run, double=True)
        yield Case((g.array((2, 3, 4)), [2, 1, 2, 3, 4], corners), {}, run)
    yield Bad((g.array((2, 3, 4)), [2, 1, 3, 4], False), "RuntimeError", "2D affine matrices of shape Nx2x3")
    yield Bad((g.array((2, 2, 3)), [2, 1, 3, 4, 5], False), "RuntimeError", "3D affine matrices of shape Nx3x4")
    yield Bad((g.array((2, 2, 3)), [2, 1, 0, 4], False), "RuntimeError", "Expected non-zero, positive output size")


def fold(x, side, padding, corners):
    low, span = (0.0, side - 1) if corners else (-0.5, side)
    if padding == 2:
        x = abs(x - low) % (2 * span)
        x = span - abs(x - span) + low
    return min(max(x, 0), side - 1) if padding else x


def keys(d, a=-0.75):
    d = abs(d)
    return ((a + 2) * d - (a + 3)) * d * d + 1 if d <= 1 else ((a * d - 5 * a) * d + 8 * a) * d - 4 * a


def axis_parts(place, side, mode, padding, corners):
    """[(element, weight)] of one coordinate."""
    pixel = (place + 1) / 2 * (side - 1) if corners else ((place + 1) * side - 1) / 2
    if mode == 2:
        base = math.floor(pixel)
        return [(int(fold(k, side, padding, corners)), keys(pixel - k)) for k in range(base - 1, base + 3)]
    pixel = fold(pixel, side, padding, corners)
    if mode == 1:
        return [(int(np.round(pixel)), 1.0)]
    base = math.floor(pixel)
    return [(base, 1 - (pixel - base)), (base + 1, pixel - base)]


def sampled(image, grid, mode, padding, corners):
    sides = image.shape[2:]
    out = np.zeros(image.shape[:2] + grid.shape[1:-1])
    for at in np.ndindex(image.shape[0], *grid.shape[1:-1]):
        lines = [axis_parts(p, side, mode, padding, corners) for p, side in zip(grid[at][::-1], sides)]
        for parts in itertools.product(*lines):
            if all(0 <= place < side for (place, _), side in zip(parts, sides)):
                weight = math.prod(w for _, w in parts)
                out[(at[0], slice(None), *at[1:])] += image[(at[0], slice(None), *(p for p, _ in parts))] * weight
    return out


def slopes(function, x, step):
    """The derivative of a number by each element, by differences."""
    x, out = x.astype(np.float64), np.zeros(x.shape)
    for at in np.ndindex(*x.shape):
        kept = x[at]
        x[at] = kept + step
        above = function(x)
        x[at] = kept - step
        out[at] = (above - function(x)) / (2 * step)
        x[at] = kept
    return out


def gradients(grad, image, grid, *rest, step=1e-5):
    return (slopes(lambda a: (sampled(a, grid, *rest) * grad).sum(), image, 1.0),
            slopes(lambda a: (sampled(image, a, *rest) * grad).sum(), grid, step))


KINDS = [(4, *kind) for kind in itertools.product((0, 1, 2), (0, 1, 2), (False, True))]
KINDS += [(5, *kind) for kind in itertools.product((0, 1), (0, 1, 2), (False, True))]
IMAGES = {4: ((2, 2, 3, 4), (2, 2, 3, 2)), 5: ((1, 2, 3, 4, 2), (1, 2, 1, 3, 3))}
PLACES = {"extremes": {kind: "places far outside" for kind in (
    "large", "ends", "mean", "special", "mixed", "small", "subnormal")}}


def sampler_cases(g, wanted):
    for dims, *rest in KINDS[::3 if len(wanted) > 1 else 1]:
        if dims in wanted:
            image, grid = IMAGES[dims]
            yield Case((g.array(image), g.array(grid, -1.3, 1.3), *rest), {}, sampled, layouts=SOME,
                       grad_args=(0,) if rest[0] == 1 else None, double=rest[0] != 1 and len(wanted) == 1, rtol=1e-4,
                       atol=1e-5)


def bad_sampler_cases(g):
    yield Bad((g.array((2, 2, 3, 4)), g.array((1, 2, 3, 2)), 0, 0, False), "RuntimeError", "same batch size")
    yield Bad((g.array((2, 2, 3, 4)), g.array((2, 2, 3, 3)), 0, 0, False), "RuntimeError", "size 2 in last dimension")
    yield Bad((g.array((2, 2, 0, 4)), g.array((2, 2, 3, 2)), 0, 0, False), "RuntimeError", "non-empty spatial")
    yield Bad((g.array((2, 2, 3)), g.array((2, 2, 1)), 0, 0, False), "RuntimeError", "D input and grid with same number")


def lost_cases(g):
    """Places that are no numbers, or that no integer holds."""
    grid = np.zeros((1, 1, 5, 2))
    grid[0, 0, :, 1] = [np.nan, np.inf, -np.inf, 1e20, -1e30]
    image = np.arange(6.0).reshape(1, 1, 2, 3)
    for mode, padding, found in ((0, 0, [np.nan, np.nan, np.nan, 0, 0]), (1, 0, [0, 0, 0, 0, 0]),
                                 (0, 1, [1, 4, 1, 4, 1]), (1, 1, [1, 4, 1, 4, 1])):
        yield Case((g.cast(image), g.cast(grid), mode, padding, True), {},
                   lambda *args, found=found: np.array(found, np.float64).reshape(1, 1, 1, 5), layouts=SOME[:1],
                   grad=False)


@cases("grid_sampler", skip={**VOLUMES, **PLACES})
def grid_sampler(g):
    yield from sampler_cases(g, (4, 5))
    yield from lost_cases(g)
    yield from bad_sampler_cases(g)
    yield Bad((g.array(IMAGES[5][0]), g.array(IMAGES[5][1]), 2, 0, False), "RuntimeError", "only supports 4D input")


@cases("grid_sampler_2d", skip={**VOLUMES, **PLACES})
def grid_sampler_2d(g):
    yield from sampler_cases(g, (4,))
    yield from bad_sampler_cases(g)
    yield Bad((g.array((2, 2, 3, 4)), g.array((2, 2, 3, 2)), 3, 0, False), "ValueError", "interpolation mode 3")


@cases("grid_sampler_3d", skip={**VOLUMES, **PLACES})
def grid_sampler_3d(g):
    yield from sampler_cases(g, (5,))
    yield from bad_sampler_cases(g)


def backward_cases(g, wanted):
    for dims, *rest in KINDS:
        image, grid = IMAGES[dims]
        if dims == wanted:
            image, grid = (image[0], 1, *image[2:]), (*grid[:-2], 2, grid[-1])
            grad = g.array((*image[:2], *grid[1:-1]))
            yield Case((grad, g.array(image), g.array(grid, -1.3, 1.3), *rest, [1, 1]), {},
                       lambda *args: gradients(*args[:-1]), layouts=SOME[:1], grad=False, rtol=1e-3, atol=1e-4)
    yield Bad((g.array((2, 2, 2, 2)), g.array(IMAGES[wanted][0]), g.array(IMAGES[wanted][1]), 0, 0, False, [1, 1]),
              "RuntimeError", "expected a gradient of sizes")


@cases("grid_sampler_2d_backward", dtypes=WIDE, skip={**VOLUMES, **PLACES})
def grid_sampler_2d_backward(g):
    yield from backward_cases(g, 4)


@cases("grid_sampler_3d_backward", dtypes=WIDE, skip={**VOLUMES, **PLACES})
def grid_sampler_3d_backward(g):
    yield from backward_cases(g, 5)


@cases("_grid_sampler_backward_backward", dtypes=WIDE, skip={**VOLUMES, **PLACES})
def grid_sampler_twice(g):
    def run(for_image, for_grid, grad, image, grid, *rest):
        def total(grad=grad, image=image, grid=grid):
            by_image, by_grid = gradients(grad, image, grid, *rest, step=1e-3)
            return (by_image * for_image).sum() + (by_grid * for_grid).sum()

        return (slopes(lambda a: total(grad=a), grad, 1.0), slopes(lambda a: total(image=a), image, 1.0),
                slopes(lambda a: total(grid=a), grid, 1e-3))

    shape, places = (1, 1, 2, 3), (1, 1, 3, 2)
    for mode, padding in ((0, 2), (2, 0)):
        yield Case((g.array(shape), g.array(places), g.array((1, 1, 1, 3)), g.array(shape),
                    g.array(places, -0.8, 0.8), mode, padding, False), {}, run, layouts=SOME[:1], grad=False, rtol=1e-2,
                   atol=1e-3)
    yield Bad((g.array((1, 1, 2, 2)), None, g.array((1, 1, 1, 3)), g.array(shape), g.array(places), 0, 0, False),
              "RuntimeError", "expected a gradient of sizes")
